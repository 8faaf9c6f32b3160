"""Tests dp_release() on several threads (ext/query/scan.c): which queries are divided, that the sums are the same integers as
with one thread, that all threads read the same state of the file, and how the threads end."""

import contextlib
import json
import os
import random
import sqlite3
import threading
import time
from collections import Counter

import pytest

from conftest import connect, one, open_files, refused, run, unchecked
from fixed_noise import COLUMNS, EXACT, compare, options_of, run_fixed, story
from kinds_reference import KINDS
from kinds_tables import random_table
from noise_helpers import quick_path
from thread_helpers import all_ended, check_one_state, is_divided, new_threads, RATE, ROWS, slowed, SPREAD, state, threads_of_process, total, total_beside


def make(path, threads=1, protects="row", setup=(), rows=ROWS):
    """Makes a database with the table t(id, x, unit, k). x is 0, 500 or 1000. There are 100 units."""
    db = connect(path)
    for statement in setup:
        db.execute(statement)
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, x, unit, k TEXT)")
    db.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?) INSERT INTO t"
               " SELECT (i - 10000) * ?, 500 * (i % 3), i % 100, 'k' || (i % 7) FROM n", (rows, SPREAD))
    db.execute("SELECT dp_init(?)", (unchecked(json.dumps({"protects": protects})),)).fetchall()
    db.execute("SELECT dp_tier('exact', ?, 1e15, 1e-6, 'rdp', 1e-7)", (RATE,)).fetchall()
    db.execute(f"PRAGMA threads = {threads}").fetchall()
    return db


def truth(db, query):
    return one(db, f"SELECT coalesce(sum(x), 0) FROM (SELECT * FROM ({query}))")


# ---- which queries ---------------------------------------------------------------------------------------------------

DIVIDED = [
    "SELECT x FROM t",
    "SELECT x FROM t -- a comment",
    "SELECT x FROM t;",
    "SELECT x FROM (SELECT * FROM t) AS s",
    "SELECT s.x FROM t AS s WHERE s.x > 3 OR s.unit IS NULL AND NOT s.k = 'k3'",
    "SELECT x FROM t WHERE k BETWEEN 'k2' AND 'k5'",
    "WITH s AS (SELECT x, unit FROM t WHERE x <> 500) SELECT x FROM s WHERE unit % 2",
    "SELECT CASE WHEN unit < 50 THEN x ELSE -x END AS x FROM t",
    "SELECT coalesce(CASE WHEN x > 0 THEN x END, 500) + 0.0 AS x FROM t",
    "SELECT CAST(substr AS REAL) * 500 AS x FROM (SELECT x > 0 AS substr FROM t)",
    "SELECT x FROM \"T\"",
]

ALONE = [
    "SELECT DISTINCT x FROM t",
    "SELECT DISTINCT x FROM t WHERE x = 500",
    "SELECT x FROM t ORDER BY id",
    "SELECT x FROM t LIMIT 7",
    "SELECT x FROM t LIMIT 15000 OFFSET 5000",
    "SELECT x FROM t GROUP BY x",
    "SELECT sum(x) / 10000 AS x FROM t",
    "SELECT max(x) AS x FROM t",
    "SELECT x FROM t UNION ALL SELECT x FROM t",
    "SELECT x FROM t UNION SELECT x FROM t",
    "SELECT x FROM t EXCEPT SELECT 500",
    "SELECT t.x FROM t JOIN (SELECT 1 AS one UNION ALL SELECT 2) AS s ON s.one = t.unit",
    "SELECT a.x FROM t AS a JOIN t AS b ON a.id = b.id",
    "SELECT x FROM t WHERE unit IN (SELECT unit FROM t WHERE unit < 3)",
    "SELECT x FROM t AS s WHERE EXISTS (SELECT 1 FROM t WHERE t.id = s.id + 1000)",
    "SELECT (SELECT max(x) FROM t) AS x FROM t",
    "SELECT lag(x) OVER (ORDER BY id) AS x FROM t",
    "SELECT count(*) OVER () % 3 AS x FROM t",
    "SELECT abs(x) AS x FROM t",
    "SELECT abs(x) + 0 AS x FROM t",
    "SELECT x FROM t WHERE k LIKE 'k1%'",
    "SELECT x FROM t WHERE k = 'K1' COLLATE NOCASE",
    "SELECT x FROM main.t",
    "SELECT x FROM t WHERE rowid > 500",
    'SELECT x FROM t WHERE "rowid" % 2000 = 0',
    'SELECT "oid" / 10000.0 AS x FROM t',
    "SELECT x FROM t WHERE oid + 0 > 500",
    "SELECT x FROM t WHERE id > -5000000",
    "SELECT x FROM t WHERE id = 5000",
    "SELECT x FROM seen",
    "SELECT x FROM small",
    "SELECT x FROM aside",
    "SELECT x FROM without_rowid",
    "SELECT x FROM named_rowid",
    "SELECT x FROM indexed WHERE x = 500",
    "SELECT x FROM indexed",
    "SELECT x FROM other.t",
    "SELECT value AS x FROM json_each('[500, 1000]')",
    "SELECT column1 AS x FROM (VALUES (500), (1000))",
    "SELECT x FROM empty",
]


@pytest.fixture(scope="module")
def db():
    with quick_path() as path:
        db = make(path)
        for statement in [
                "CREATE VIEW seen AS SELECT * FROM main.t",
                "CREATE TABLE small AS SELECT * FROM t LIMIT 10",
                "CREATE TEMP TABLE aside(id INTEGER PRIMARY KEY, x)",
                "INSERT INTO aside SELECT id, x FROM t",
                "CREATE TABLE without_rowid(id INTEGER PRIMARY KEY, x) WITHOUT ROWID",
                "INSERT INTO without_rowid SELECT id, x FROM t",
                "CREATE TABLE named_rowid(rowid, x)",
                "INSERT INTO named_rowid SELECT iif(id % 3000, id, NULL), x FROM t",
                "CREATE TABLE indexed(id INTEGER PRIMARY KEY, x, y)",
                "INSERT INTO indexed SELECT id, x, zeroblob(100) FROM t",
                "CREATE INDEX by_x ON indexed(x)",
                "CREATE TABLE empty AS SELECT * FROM t WHERE 0",
                f"ATTACH '{path}-other' AS other",
                "CREATE TABLE other.t(id INTEGER PRIMARY KEY, x)",
                "INSERT INTO other.t SELECT id, x FROM main.t"]:
            db.execute(statement)
        yield db


@pytest.mark.parametrize("query", DIVIDED)
def test_divides(db, query):
    assert abs(total_beside(db, query) - truth(db, query.split(";")[0].split("--")[0])) < 100
    assert is_divided(db, query)


@pytest.mark.parametrize("query", ALONE)
@pytest.mark.sample(6)
def test_does_not_divide(db, query):
    """A query that is more than a loop over one table also has the right sum."""
    assert abs(total_beside(db, query) - truth(db, query)) < 100
    is_table = "seen" in query and sqlite3.sqlite_version_info < (3, 36)  # the rowids of such a view were those of its table
    if one(db, f"SELECT count(*) FROM ({query})") > 5000 and not is_table:
        assert not is_divided(db, query)


def test_a_temporary_table_hides_the_other(tmp_path):
    db = make(tmp_path / "data.db")
    db.execute("CREATE TEMP TABLE t AS SELECT id, 1000 AS x FROM main.t")
    assert abs(total_beside(db, "SELECT x FROM t") - truth(db, "SELECT x FROM t")) < 100
    assert not is_divided(db, "SELECT x FROM t")


def test_what_the_host_has_replaced_is_the_hosts(tmp_path):
    db = make(tmp_path / "data.db")
    db.create_function("abs", 1, lambda x: 1000, deterministic=True)
    db.create_collation("NOCASE", lambda a, b: 0)
    assert is_divided(db, "SELECT x FROM t WHERE k = 'k1'")
    assert abs(total_beside(db, "SELECT abs(x) + 0 AS x FROM t") - 1000 * ROWS) < 100
    assert abs(total_beside(db, "SELECT x FROM t WHERE k = 'nobody' COLLATE NOCASE") - truth(db, "SELECT x FROM t")) < 100


def test_ends_of_the_table_are_not_the_hosts(tmp_path):
    """The scan finds the ends of the table without min() and max(), which the host may have replaced."""
    db = make(tmp_path / "data.db")

    class Zero:
        def step(self, *_):
            pass

        def finalize(self):
            return 0
    for name in ("min", "max"):
        db.create_aggregate(name, 1, Zero)
        assert abs(total_beside(db, "SELECT x FROM t") - 9999500) < 100
    for denied in ((sqlite3.SQLITE_FUNCTION, None, "max"), (sqlite3.SQLITE_READ, "t", "id"), (sqlite3.SQLITE_READ, "t", "ROWID")):
        db.set_authorizer(lambda *call: sqlite3.SQLITE_IGNORE if call[:3] == denied else sqlite3.SQLITE_OK)
        assert abs(total_beside(db, "SELECT x FROM t") - 9999500) < 100


def test_what_the_host_forbids(tmp_path):
    """The authorizer of the host may deny everything that the owner's query itself does not need."""
    db = make(tmp_path / "data.db")
    db.execute("INSERT INTO t(id, x) VALUES (?, 500)", (-2**62,))  # a row far from all others, so that the host finishes first
    db.setlimit(sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 1)
    for denied in (sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION):
        db.set_authorizer(lambda *call: sqlite3.SQLITE_DENY if call[0] == denied and call[2] != "dp_release" and call[2] != "dp_collect"
                          else sqlite3.SQLITE_OK)
        for _ in range(10):
            assert abs(total(db, "SELECT x FROM t") - 10000000) < 100


@pytest.mark.parametrize("view", ["SELECT * FROM main.t WHERE unit < 50", "SELECT id, 500 AS x, 7 AS unit FROM main.t"])
def test_a_temporary_view_hides_the_table(tmp_path, view):
    """A temporary view with the name of the table hides the table. The scan does not put the table's rows in its place."""
    db = make(tmp_path / "data.db")
    db.execute(f"CREATE TEMP VIEW t AS {view}")
    assert abs(total_beside(db, "SELECT x FROM t") - truth(db, "SELECT x FROM t")) < 100


@pytest.mark.parametrize("where", ["true", '"true" = 1', "s.true", "NOT false"])
def test_columns_whose_names_are_constants(tmp_path, where):
    """The table has columns called true and false. In a subquery, these words could become constants."""
    db = make(tmp_path / "data.db")
    for name in ("true", "false"):
        db.execute(f'ALTER TABLE t ADD COLUMN "{name}" DEFAULT 0')
        db.execute(f'UPDATE t SET "{name}" = unit < 10')
    query = f"SELECT x FROM t AS s WHERE {where}"
    assert abs(total_beside(db, query) - truth(db, query)) < 100


def test_the_authorizer_is_the_hosts(tmp_path):
    db = make(tmp_path / "data.db")
    db.set_authorizer(lambda action, table, column, *_: sqlite3.SQLITE_IGNORE if (table, column) == ("t", "x") else sqlite3.SQLITE_OK)
    assert abs(total_beside(db, "SELECT x FROM t")) < 100
    db.set_authorizer(None)
    assert abs(total_beside(db, "SELECT x FROM t")) > 1000


def test_the_limit_of_lengths_is_the_hosts(tmp_path):
    db = make(tmp_path / "data.db")
    db.execute("UPDATE t SET k = hex(zeroblob(3000)) WHERE id = 5000000")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 5000)
    with slowed(db):
        assert "too big" in refused(db, "SELECT dp_release('exact', 'sum', ?, ?)", "SELECT x FROM t WHERE k < 'l'", '{"clip":1000}')


def test_a_descent_reads_alone(tmp_path):
    """A model is not read on several threads, because its steps follow the order of rows."""
    db = connect(tmp_path / "data.db")
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, y, v)")
    db.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) INSERT INTO t SELECT i * 1000, i % 2, '[1]' FROM n")
    db.execute("SELECT dp_init('{\"unchecked\":true,\"protects\":\"row\",\"adjacency\":\"replace\"}')").fetchall()
    db.execute("SELECT dp_tier('exact', 1e-3, 1e15, 1e-6)").fetchall()
    calls = []
    for threads in (0, 1):
        db.execute(f"PRAGMA threads = {threads}").fetchall()
        with slowed(db) as these:
            one(db, "SELECT dp_release('exact', 'sgd', 'SELECT y, v FROM t', ?)",
                json.dumps({"loss": "logistic", "n": 10000, "dim": 1, "clip": 1, "radius": 1}))
        calls.append(len(these))
    assert calls[0] > 20 and calls[1] > calls[0] / 2


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_divides_files_of_every_form(tmp_path, journal, encoding):
    db = make(tmp_path / "data.db", setup=[f"PRAGMA encoding = '{encoding}'", f"PRAGMA journal_mode = {journal}"])
    query = "SELECT x FROM t WHERE k > 'k1'"
    assert abs(total_beside(db, query) - truth(db, query)) < 100
    assert is_divided(db, query)


@pytest.mark.parametrize("uri,divided", [("mode=rw", True), ("cache=private", True), ("nolock=1", False)])
def test_databases_opened_by_uri(tmp_path, uri, divided):
    make(tmp_path / "data.db").close()
    db = connect(f"file:{tmp_path}/data.db?{uri}", uri=True)
    db.execute("PRAGMA threads = 1").fetchall()
    assert abs(total_beside(db, "SELECT x FROM t") - truth(db, "SELECT x FROM t")) < 100
    assert is_divided(db, "SELECT x FROM t") == divided


def test_a_database_in_memory_is_read_alone():
    db = make(":memory:")
    assert abs(total_beside(db, "SELECT x FROM t") - truth(db, "SELECT x FROM t")) < 100
    assert not is_divided(db, "SELECT x FROM t")


def test_without_threads_nothing_is_divided(tmp_path):
    db = make(tmp_path / "data.db", threads=0)
    with slowed(db) as calls:
        total(db, "SELECT x FROM t")
    assert len(calls) > 40


# ---- the same sums ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("protects", ["unit", "row"])
def test_threads_give_the_same_to_the_last_integer(protects, adjacency):
    """Compares releases of every kind over random tables, with and without threads, and with the same noise. The whole ledgers
    are equal."""
    rng = random.Random(f"threads {protects} {adjacency}")
    with quick_path() as path:
        statements, number = story(adjacency, protects), 0
        with sqlite3.connect(path + "-alone") as alone:
            for kind in KINDS:
                if kind.endswith("count_distinct") and protects == "row":
                    continue
                for parameters in EXACT[kind]:
                    number += 1
                    alone.execute(f"CREATE TABLE t{number}(k, x, v, unit)")
                    alone.executemany(f"INSERT INTO t{number}(rowid, k, x, v, unit) VALUES (?, ?, ?, ?, ?)",
                                      [(rng.randrange(-2**44, 2**44), *row) for row in random_table(rng)])
                    columns = ", ".join(COLUMNS[kind] + ["unit"] * (protects == "unit"))
                    statements += [f"SELECT fixed_seed({rng.getrandbits(48)})",
                                   f"SELECT dp_release('exact', '{kind}', 'SELECT {columns} FROM t{number}',"
                                   f" {options_of(parameters, name=f'n{number}')})"]
            alone.commit()
            with sqlite3.connect(path + "-divided") as divided:
                alone.backup(divided)
        run_fixed(path + "-alone", statements)
        run_fixed(path + "-divided", ["PRAGMA threads = 3", *statements])
        compare(path + "-alone", path + "-divided")


@pytest.mark.parametrize("unit", ["unit", "'u' || unit", "unit + 0.5", "CAST('u' || unit AS BLOB)", "NULL", "iif(unit < 50, unit, NULL)"])
def test_a_unit_is_bounded_once(tmp_path, unit):
    """Several threads read the rows of a unit and give the unit the same identity, so the unit is bounded once."""
    db = make(tmp_path / "data.db", threads=4, protects="unit")
    units = one(db, f"SELECT count(DISTINCT ifnull({unit}, '-')) FROM t")
    for _ in range(3):
        assert abs(total_beside(db, f"SELECT x, {unit} FROM t") - 1000 * units) < 100


@pytest.mark.parametrize("protects", ["unit", "row"])
def test_private_keys_meet(tmp_path, protects):
    """A private key has one cell, even if several threads have seen the key."""
    db = make(tmp_path / "data.db", threads=4, protects=protects)
    columns = "k, x, unit" if protects == "unit" else "k, x"
    options = json.dumps({"clip": 1e6, "max_groups": 7, "key_share": 1e-4} if protects == "unit" else {"clip": 1000, "key_share": 1e-4})
    sums = json.loads(one(db, "SELECT dp_release('exact', 'group_sum', ?, ?)", f"SELECT {columns} FROM t", options))
    wanted = dict(db.execute("SELECT k, sum(x) FROM t GROUP BY k"))
    assert sums.keys() == wanted.keys()
    for key, value in sums.items():
        assert abs(value - wanted[key]) < 1e5  # each of seven keys has a sum of about 1.4e6


def test_neighbouring_rowids(tmp_path):
    """The rowids are consecutive, so neighbouring rows can be at the end of one range and at the beginning of the next."""
    db = make(tmp_path / "data.db", threads=3)
    db.execute("CREATE TABLE dense AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT 500 AS x FROM n")
    assert abs(total(db, "SELECT x FROM dense") - truth(db, "SELECT x FROM dense")) < 100


def test_more_threads_than_ranges(tmp_path):
    db = make(tmp_path / "data.db", threads=8, rows=50)
    assert one(db, "PRAGMA threads") == 8
    assert abs(total_beside(db, "SELECT x FROM t") - truth(db, "SELECT x FROM t")) < 100


@pytest.mark.parametrize("first,last", [(-2**63, 2**63 - 1), (2**63 - 40000, 2**63 - 1), (-2**63, -2**63 + 40000), (-1, 40000)])
def test_rowids_at_the_ends_of_their_range(tmp_path, first, last):
    db, rng = make(tmp_path / "data.db", threads=3, rows=1), random.Random(last)
    rowids = {first, last, first + 1, last - 1, *(rng.randrange(first, last) for _ in range(5000))}
    db.execute("BEGIN")
    db.execute("DELETE FROM t")
    db.executemany("INSERT INTO t(id, x) VALUES (?, 500)", [(rowid,) for rowid in rowids])
    db.execute("COMMIT")
    assert abs(total_beside(db, "SELECT x FROM t") - 500 * len(rowids)) < 100


# ---- one state of one file -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_all_threads_read_one_state(journal):
    """One of two distant rows has the value 1000, and the other has 0. Another connection keeps swapping the two values, so the
    true sum never changes."""
    with quick_path() as path:
        db = make(path, threads=2, setup=[f"PRAGMA journal_mode = {journal}"])
        db.execute("PRAGMA busy_timeout = 60000").fetchall()
        db.execute("UPDATE t SET x = iif(id < 0, 0, 1000)")
        check_one_state(db, path, "SELECT x FROM t", 150)


def test_a_transaction_is_read_as_it_is(tmp_path):
    db = make(tmp_path / "data.db", setup=["PRAGMA journal_mode = wal"])
    other = sqlite3.connect(tmp_path / "data.db", isolation_level=None)
    before = truth(db, "SELECT x FROM t")
    db.execute("BEGIN")
    truth(db, "SELECT x FROM t")
    other.execute("UPDATE t SET x = 0 WHERE id < 0")  # not in the transaction's snapshot
    assert abs(total_beside(db, "SELECT x FROM t") - before) < 100
    assert not is_divided(db, "SELECT x FROM t")
    db.execute("COMMIT")
    after = truth(db, "SELECT x FROM t")
    assert after < before - 1e6
    assert is_divided(db, "SELECT x FROM t")
    db.execute("BEGIN")
    db.execute("UPDATE t SET x = 1000")  # not committed
    assert abs(total_beside(db, "SELECT x FROM t") - 1000 * ROWS) < 100
    db.execute("ROLLBACK")
    assert abs(total_beside(db, "SELECT x FROM t") - after) < 100


def test_a_statement_that_reads_is_read_as_it_is(tmp_path):
    db = make(tmp_path / "data.db", setup=["PRAGMA journal_mode = wal"])
    other = sqlite3.connect(tmp_path / "data.db", isolation_level=None)
    cursor, before = db.execute("SELECT id FROM t"), truth(db, "SELECT x FROM t")
    cursor.fetchone()
    other.execute("UPDATE t SET x = 0 WHERE id < 0")
    assert abs(total_beside(db, "SELECT x FROM t") - before) < 100
    cursor.close()
    assert abs(total_beside(db, "SELECT x FROM t") - truth(db, "SELECT x FROM t")) < 100


def test_dirty_reads_are_the_hosts(tmp_path):
    """With a shared cache, the host may read rows that another connection has not committed. The sum is over the rows that the
    host reads."""
    make(tmp_path / "data.db").close()
    name = f"file:{tmp_path}/data.db?cache=shared"
    other = sqlite3.connect(name, uri=True, isolation_level=None)
    db = connect(name, uri=True)
    db.execute("PRAGMA threads = 1").fetchall()
    db.execute("PRAGMA read_uncommitted = 1")
    other.execute("BEGIN")
    other.execute("UPDATE t SET x = 1000")
    assert abs(total_beside(db, "SELECT x FROM t") - 1000 * ROWS) < 100
    other.execute("ROLLBACK")


def test_a_file_that_has_been_replaced(tmp_path):
    """Another file has taken the name of the database file. All threads still read the file that the host has open."""
    db = make(tmp_path / "data.db")
    before = truth(db, "SELECT x FROM t")
    other = make(tmp_path / "other.db")
    other.execute("UPDATE t SET x = 0")
    other.close()
    os.rename(tmp_path / "other.db", tmp_path / "data.db")
    for _ in range(3):
        assert abs(total_beside(db, "SELECT x FROM t") - before) < 100


def test_a_file_that_has_been_replaced_is_not_written(tmp_path):
    """Another file has taken the name of the database file. The WAL of the old file still has its name. A connection that opened
    both, and was the last to close them, would write this WAL into the wrong file."""
    path = tmp_path / "data.db"
    db = make(path, setup=["PRAGMA journal_mode = wal", "PRAGMA wal_autocheckpoint = 0"])
    db.execute("UPDATE t SET x = 500")
    other = make(tmp_path / "other.db")
    other.close()
    os.rename(tmp_path / "other.db", path)
    before = path.read_bytes(), (tmp_path / "data.db-wal").read_bytes()
    assert abs(total_beside(db, "SELECT x FROM t") - 500 * ROWS) < 100
    assert (path.read_bytes(), (tmp_path / "data.db-wal").read_bytes()) == before


def test_a_file_that_is_replaced_for_a_moment(tmp_path):
    """While the other threads open the database, another file has its name for a moment. Then the host's file gets its name
    back."""
    path, away, decoy = tmp_path / "data.db", tmp_path / "away.db", tmp_path / "decoy.db"
    db = make(path)
    decoy.write_bytes(path.read_bytes())
    with contextlib.closing(sqlite3.connect(decoy)) as other, other:
        other.execute("UPDATE t SET x = 0")
    wanted, moves = truth(db, "SELECT x FROM t"), []

    def move(action, first, second, *_):
        if action == sqlite3.SQLITE_READ and (first, second) == ("sqlite_master", "rootpage") and not moves:
            moves.extend([os.rename(path, away), os.rename(decoy, path)])
        if action == sqlite3.SQLITE_READ and (first, second) == ("t", "id") and away.exists():
            moves.extend([os.rename(path, decoy), os.rename(away, path)])
        return sqlite3.SQLITE_OK
    db.set_authorizer(move)
    assert abs(total_beside(db, "SELECT x FROM t") - wanted) < 100
    db.set_authorizer(None)
    assert len(moves) == 4


def test_a_database_that_others_cannot_open(tmp_path):
    db = make(tmp_path / "data.db")
    db.execute("PRAGMA locking_mode = exclusive").fetchall()
    db.execute("UPDATE t SET x = 500")
    assert abs(total_beside(db, "SELECT x FROM t") - 500 * ROWS) < 100
    assert not is_divided(db, "SELECT x FROM t")


def test_a_schema_that_changes(tmp_path):
    """Another connection changes the schema after the host has prepared its statement."""
    db = make(tmp_path / "data.db")
    other = sqlite3.connect(tmp_path / "data.db", isolation_level=None)
    for change in ["ALTER TABLE t ADD COLUMN y", "CREATE TABLE s(id INTEGER PRIMARY KEY, x); INSERT INTO s SELECT id, 500 FROM t;"
                   "DROP TABLE t; ALTER TABLE s RENAME TO t", "CREATE INDEX by_x ON t(x)", "DROP INDEX by_x"]:
        total_beside(db, "SELECT x FROM t")
        other.executescript(change)
        assert abs(total_beside(db, "SELECT x FROM t") - truth(other, "SELECT x FROM t")) < 100
    assert is_divided(db, "SELECT x FROM t")


# ---- rows that are far apart -----------------------------------------------------------------------------------------

MANY = 100000

# The rowid of row i.
PLACES = {
    "close together": "i",
    "in two groups": "i + (i >= 50000) * 1000000000000",
    "in groups of 1000": "i + i / 1000 * 10000000000",
    "one far below": "iif(i = 0, -4611686018427387904, i)",
    "one far above": "iif(i = 0, 4611686018427387904, i)",
    "at both ends": "CASE i WHEN 0 THEN -9223372036854775808 WHEN 1 THEN 9223372036854775807 ELSE i END",
    "ever further apart": "iif(i < 60, 1 << (62 - i), i - 10000000)",
    "denser and denser": "iif(i < 60, -(1 << (62 - i)), i)",
}


def far_apart(path, places):
    db = make(path, rows=0)
    db.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
               f" INSERT INTO t(id, x) SELECT {places}, 1 + i % 7 FROM n", (MANY,))
    return db


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("places", PLACES)
def test_rows_that_are_far_apart_are_read_once(tmp_path, places, threads):
    """The noise is less than 0.01, so the sum shows whether a single row is missing or read twice."""
    db = far_apart(tmp_path / "data.db", PLACES[places])
    db.execute(f"PRAGMA threads = {threads}").fetchall()
    for _ in range(3):
        assert abs(total(db, "SELECT x FROM t", 8) - truth(db, "SELECT x FROM t")) < 0.3


@pytest.mark.plain
@pytest.mark.parametrize("places", PLACES)
def test_all_threads_read_rows_that_are_far_apart(tmp_path, places):
    """The host reads a fair share of the rows, not nearly all or nearly none. On a busy machine a thread may wait, so the test
    repeats the query a few times."""
    db = far_apart(tmp_path / "data.db", PLACES[places])
    query = "SELECT x FROM t WHERE 0 < " + " + ".join(["x"] * 100)

    def instructions(threads):
        calls = []
        db.execute(f"PRAGMA threads = {threads}").fetchall()
        db.set_progress_handler(lambda: calls.append(1), 1000)
        total(db, query)
        db.set_progress_handler(None, 0)
        return len(calls)
    alone = instructions(0)
    assert alone > 5000
    shares = []
    while len(shares) < 20 and not any(0.25 < share < 0.75 for share in shares):
        shares.append(instructions(1) / alone)
    assert 0.25 < shares[-1] < 0.75, shares


# ---- the end ---------------------------------------------------------------------------------------------------------


def test_an_interrupt_ends_all(tmp_path):
    """An interrupt from another thread ends the reading of all threads."""
    db = make(tmp_path / "data.db", rows=500000)
    before, reading, interrupted = threads_of_process(), threading.Event(), threading.Event()

    def interrupt():
        reading.wait(60)
        db.interrupt()
        interrupted.set()

    def wait():
        if len(new_threads(before)) > 1:
            reading.set()
            interrupted.wait()
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    db.set_progress_handler(wait, 100)
    message = refused(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM t', '{\"clip\":1000}')")
    db.set_progress_handler(None, 0)
    thread.join()
    assert "interrupted" in message and state(db) == "failed" and all_ended(before)


def test_a_progress_handler_ends_all(tmp_path):
    db = make(tmp_path / "data.db")
    before = threads_of_process()
    db.set_progress_handler(lambda: bool(new_threads(before)), 20)  # interrupts as soon as another thread runs
    query = "SELECT x FROM t WHERE 0 < " + " + ".join(["x"] * 300)  # a slow query
    assert "interrupted" in refused(db, "SELECT dp_release('exact', 'sum', ?, ?)", query, '{"clip":1000}')
    db.set_progress_handler(None, 0)
    assert state(db) == "failed" and all_ended(before)


def test_who_waits_for_others_can_be_stopped(tmp_path):
    """One row is far from all others, which are in one range. Another thread reads this range while the host waits for it. If the
    host is interrupted, the thread stops reading."""
    db = make(tmp_path / "data.db", rows=0)
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 32000) INSERT INTO t(id, x) SELECT i, 500 FROM n")
    db.execute("INSERT INTO t(id, x) VALUES (?, 500)", (-2**62,))
    query = "SELECT x FROM t WHERE 0 < " + " AND 0 < ".join([" + ".join(["x"] * 500)] * 8)
    before, calls, start = threads_of_process(), [], time.monotonic()
    assert one(db, f"SELECT count(*) FROM ({query})") == 32001
    whole = time.monotonic() - start

    def stop():
        if not new_threads(before):
            return False
        calls.append(1)
        if len(calls) == 1:
            time.sleep(0.02)  # the host is in its first range, and the other thread takes the next
        return len(calls) > 1500  # more calls than the host makes in empty ranges
    db.set_progress_handler(stop, 5)
    start = time.monotonic()
    message = refused(db, "SELECT dp_release('exact', 'sum', ?, ?)", query, '{"clip":1000}')
    assert time.monotonic() - start < whole / 2
    db.set_progress_handler(None, 0)
    assert "interrupted" in message and state(db) == "failed" and all_ended(before)


@pytest.mark.parametrize("where", [0.02, 0.5, 0.98])
def test_a_damaged_page_fails_the_release(tmp_path, where):
    """A damaged page fails the release on any thread."""
    path = tmp_path / "data.db"
    make(path).close()
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(int(size * where) // 4096 * 4096)
        file.write(b"\xff" * 4096)
    for threads in (0, 1, 3):
        db = connect(path)
        db.execute(f"PRAGMA threads = {threads}").fetchall()
        with slowed(db):
            message = refused(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM t', '{\"clip\":1000}')")
        assert "malformed" in message, message
        assert state(db) == "failed"
        db.close()


def test_nothing_is_left_open(tmp_path):
    db = make(tmp_path / "data.db", threads=4)
    files, threads = Counter(open_files()), threads_of_process()
    for _ in range(20):
        total(db, "SELECT x FROM t")
    assert not Counter(open_files()) - files and all_ended(threads)
    db.execute("DROP TABLE t")  # works, because no connection still reads the table


def test_connections_that_cannot_be_closed_hold_no_lock(tmp_path):
    """The host has an automatic extension that keeps a statement of every connection, so the connections of the threads cannot be
    closed. These connections must not hold a lock."""
    path = tmp_path / "data.db"
    make(path).close()
    run("""
        import ctypes
        from conftest import connect, one
        sqlite = ctypes.CDLL("libsqlite3.so.0")
        kept = []

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        def keep(db, error, api):
            kept.append(ctypes.c_void_p())
            return sqlite.sqlite3_prepare_v2(ctypes.c_void_p(db), b"SELECT 1", -1, ctypes.byref(kept[-1]), None)

        db = connect(sys.argv[1])
        db.execute("PRAGMA threads = 2").fetchall()
        sqlite.sqlite3_auto_extension(keep)
        assert abs(one(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM t', '{\\"clip\\":1000}')") - 9999500) < 100
        assert len(kept) >= 2
        db.execute("UPDATE t SET x = 0")
        db.execute("PRAGMA journal_mode = delete").fetchall()
    """, path)
