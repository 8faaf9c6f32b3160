"""Tests questions on several threads (ext/query/row_loop.c, D4): which questions are divided, that
the threads give the same integers as one thread, that every row counts for its own unit, and that all threads read one state of
the file."""

import contextlib
import json
import os
import random
import resource
import shutil
import sqlite3
import sys
import threading
from collections import Counter

import pytest

from conftest import connect, library, one, open_files, refused, run
from noise_helpers import charges, quick_path
import question_reference as reference
import random_questions
from thread_helpers import all_ended, check_one_state, is_divided, new_threads, RATE, ROWS, slowed, SPREAD, state, threads_of_process, total, total_beside, uses_threads

# The tables of the questions. x is 0, 500 or 1000. There are 100 units, and the rows of one of them have no unit instead. The rows
# of a unit are far from each other. UNIT stands for the type of the units.
SCHEMA = """
CREATE TABLE t(id INTEGER PRIMARY KEY, x, unit UNIT, k TEXT, day INT);
CREATE TABLE named_rowid(rowid, oid, x, unit UNIT, k);
CREATE TABLE without_rowid(id INTEGER PRIMARY KEY, x, unit UNIT) WITHOUT ROWID;
CREATE TABLE linked(x, parent INT);
CREATE TABLE indexed(x, unit UNIT);
CREATE TABLE ward(name TEXT PRIMARY KEY, beds INT);
CREATE TABLE holiday(day INTEGER PRIMARY KEY, label TEXT);
CREATE INDEX indexed_x ON indexed(x);
"""
# Types of units, and how the units 0 to 99 are written. If texts are equal under a collation, they are one unit.
UNITS = {"": "unit", "TEXT": "'unit number ' || unit", "TEXT COLLATE NOCASE": "iif(id < 0, 'Unit ', 'uNIT ') || unit",
         "TEXT COLLATE RTRIM": "'u' || unit || iif(id < 0, '', '  ')", "REAL": "unit + 0.5", "BLOB": "CAST('u' || unit AS BLOB)"}


def fill(path, setup=(), rows=ROWS, unit=""):
    """Makes the database file of the questions, without a ledger."""
    db = sqlite3.connect(path, isolation_level=None)
    for statement in setup:
        db.execute(statement).fetchall()
    db.executescript(SCHEMA.replace("UNIT", unit))
    db.execute("BEGIN")
    db.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?),"
               " r(id, x, unit, k, day) AS (SELECT (i - 10000) * ?, 500 * (i % 3), nullif(i % 100, 7), 'k' || (i % 7), i % 40 FROM n)"
               f" INSERT INTO t SELECT id, x, {UNITS[unit]}, k, day FROM r", (rows, SPREAD))
    db.execute("INSERT INTO named_rowid(_rowid_, rowid, oid, x, unit, k) SELECT id, 1, 'a', x, unit, k FROM t")
    db.execute("INSERT INTO without_rowid SELECT id, x, unit FROM t")
    db.execute("INSERT INTO linked(rowid, x, parent) SELECT id, x, -id / 1000 * 1000 FROM t")
    db.execute("INSERT INTO indexed(rowid, x, unit) SELECT id, x, unit FROM t")
    db.execute("INSERT INTO ward VALUES ('k1', 500), ('k2', 1000), ('k3', NULL), ('k4', 'x'), ('attic', 9)")
    db.execute("INSERT INTO holiday VALUES (3, 'a'), (4, 'b'), (5, NULL), (99, 'c')")
    db.execute("COMMIT")
    db.close()


POLICY = [*(f"dp_protect('{table}', 'unit')" for table in ("t", "named_rowid", "without_rowid", "indexed")),
          "dp_protect('linked', 'parent', 't')", "dp_public('ward', 'holiday')"]


def make(path, threads=1, **how):
    fill(path, **how)
    return opened(path, threads)


def opened(path, threads=1, policy=tuple(POLICY), options="", **how):
    db = connect(path, **how)
    for call in [f"dp_init({options})", *policy, f"dp_tier('exact', {RATE}, 1e15, 1e-6, 'rdp', 1e-7)"]:
        db.execute("SELECT " + call).fetchall()
    db.execute(f"PRAGMA threads = {threads}").fetchall()
    return db


def truth(db, query, unit="unit", clip=1000):
    """Returns the sum over the units of the clipped sums of a query that also gives the unit. `query` has a place for the unit."""
    return one(db, f"SELECT coalesce(sum(max(-{clip}, min({clip}, s))), 0) FROM (SELECT total(x) AS s FROM ({query.format(', ' + unit + ' AS u')}\n)"
               " WHERE u IS NOT NULL GROUP BY u)")


# Questions with a place for the unit, which a test adds to compute the truth.
DIVIDED = [
    "SELECT x{} FROM t",
    "SELECT x{} FROM t -- of all",
    "SELECT x + 0.5 AS x{} FROM t AS s WHERE s.x > 3 OR s.k IS NULL",
    "SELECT CASE WHEN unit < 50 THEN x ELSE -x END AS x{} FROM t WHERE k BETWEEN 'k2' AND 'k5'",
    "SELECT round(x / 7.0, 2) + length(k) AS x{} FROM t WHERE typeof(unit) <> 'null'",
    "SELECT id % 1000 AS x{} FROM t",
    "SELECT beds AS x{} FROM t JOIN ward ON name = k",
    "SELECT x{} FROM t JOIN holiday USING (day)",
    "SELECT x + length(label) AS x{} FROM t JOIN holiday h ON h.day = t.day JOIN ward w ON w.name = k",
    "SELECT x{} FROM named_rowid",
    "SELECT x{} FROM t WHERE id > -5000000",
    "SELECT rowid % 1000 AS x{} FROM t",
    "SELECT beds AS x{} FROM ward CROSS JOIN t ON name = k",
]
ALONE = [
    "SELECT x{} FROM main.t",
    "SELECT x{} FROM t WHERE k LIKE 'k1%'",
    "SELECT x{} FROM without_rowid",
]
# Questions that are evaluated by unit, and the sum of x for each unit in plain SQL. They stay on one thread.
BY_UNIT = [
    ("SELECT sum(x) FROM t", "SELECT sum(x) AS x, unit AS u FROM t GROUP BY unit"),
    ("SELECT max(x) FROM t GROUP BY k", "SELECT max(x) AS x, unit AS u FROM t GROUP BY unit, k"),
    ("SELECT x FROM t ORDER BY id LIMIT 1", "SELECT x, unit AS u FROM (SELECT min(id), x, unit FROM t GROUP BY unit)"),
    ("SELECT x * (row_number() OVER (ORDER BY id DESC) < 3) FROM t",
     "SELECT x * (row_number() OVER (PARTITION BY unit ORDER BY id DESC) < 3) AS x, unit AS u FROM t"),
    ("SELECT total(beds) FROM t JOIN ward ON name = k", "SELECT beds AS x, unit AS u FROM t JOIN ward ON name = k"),
    ("SELECT count(*) FROM ward LEFT JOIN t ON name = k AND x > 0 JOIN holiday USING (day)",
     "SELECT 1 AS x, unit AS u FROM ward JOIN t ON name = k AND x > 0 JOIN holiday USING (day)"),
    ("SELECT count(*) FROM t AS a JOIN t AS b USING (k)", "SELECT 1 AS x, a.unit AS u FROM t AS a JOIN t AS b USING (k, unit)"),
    ("SELECT sum(x) FROM linked", "SELECT linked.x, unit AS u FROM linked JOIN t ON t.id = parent"),
    ("SELECT sum(linked.x) - count(*) FROM linked JOIN t ON t.id = parent",
     "SELECT linked.x - 1 AS x, unit AS u FROM linked JOIN t ON t.id = parent"),
    ("SELECT max(t.x) + max(n.x) FROM t, named_rowid AS n", "SELECT max(x) + max(x) AS x, unit AS u FROM t GROUP BY unit"),
    ("SELECT sum(x) FROM indexed", "SELECT x, unit AS u FROM indexed"),
    ("SELECT x FROM t WHERE k LIKE 'k1%'", "SELECT x, unit AS u FROM t WHERE k LIKE 'k1%'"),
    # one unit has an error, and one unit has a value that is too long
    ("SELECT sum(x) + max(CASE WHEN unit = 50 THEN abs(-9223372036854775807 - 1) END IS NULL) FROM t",
     "SELECT x + 0.005 AS x, unit AS u FROM t WHERE unit <> 50"),
    ("SELECT sum(x + 0 * length(CASE WHEN unit = 51 THEN zeroblob(1500000) END IS NULL)) FROM t", "SELECT x, unit AS u FROM t WHERE unit <> 51"),
]


@pytest.fixture(scope="module")
def db():
    with quick_path() as path:
        yield make(path)


@pytest.mark.parametrize("query", DIVIDED)
@pytest.mark.sample(3)
def test_divides(db, query):
    """A clip of 1000 bounds each unit, and a clip of 1e6 bounds none. A row that counts for a wrong unit changes the first sum, and
    a row that is missing or read twice changes the second one."""
    for clip in (1000, 1e6):
        with slowed(db):
            assert abs(total(db, query.format(""), clip) - truth(db, query, clip=clip)) < clip / 10
    assert is_divided(db, query.format(""))


@pytest.mark.parametrize("query", ALONE)
@pytest.mark.sample(2)
def test_does_not_divide(db, query):
    with slowed(db):
        assert abs(total(db, query.format("")) - truth(db, query)) < 100
    assert not is_divided(db, query.format(""))


def test_tables_with_links_are_read_alone(db):
    with slowed(db):
        found = total(db, "SELECT x FROM linked")
    assert abs(found - truth(db, "SELECT linked.x{} FROM linked JOIN t ON t.id = parent")) < 100
    assert not is_divided(db, "SELECT x FROM linked")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.sample(3)
def test_a_unit_is_bounded_once(tmp_path, unit):
    """Several threads read the rows of a unit. They give the unit the same identity, so the unit is bounded once."""
    db = make(tmp_path / "data.db", threads=3, unit=unit)
    assert abs(truth(db, "SELECT x{} FROM t") - 99 * 1000) < 1e-9
    with slowed(db):
        assert abs(total(db, "SELECT x FROM t") - 99 * 1000) < 100
    assert is_divided(db, "SELECT x FROM t")


def test_an_index_does_not_matter(db):
    assert abs(total_beside(db, 'SELECT x FROM "indexed" WHERE x > 0') - truth(db, "SELECT x{} FROM indexed WHERE x > 0")) < 100
    assert is_divided(db, 'SELECT x FROM "indexed" WHERE x > 0')


@pytest.mark.parametrize("query,plain", BY_UNIT)
@pytest.mark.sample(2)
def test_evaluates_units_on_one_thread(db, query, plain):
    for clip in (1000, 1e6):
        wanted = one(db, f"SELECT sum(max(-{clip}, min({clip}, s))) FROM (SELECT total(x) AS s FROM ({plain}) WHERE u IS NOT NULL GROUP BY u)")
        assert abs(total(db, query, clip) - wanted) < clip / 10
    assert not uses_threads(db, query)


ROW_LEDGER = """SELECT dp_init('{"protects":"row"}')"""


def test_rows_as_units_are_divided(tmp_path):
    fill(tmp_path / "data.db")
    db = opened(tmp_path / "data.db", policy=["dp_protect('t')"], options="""'{"protects":"row"}'""")
    assert abs(total_beside(db, "SELECT x FROM t") - one(db, "SELECT sum(x) FROM t")) < 100
    assert is_divided(db, "SELECT x FROM t")


def test_rows_count_like_units_with_one_row_each(tmp_path):
    """The rows are units of their own, in questions on one thread and on three, and in an aggregate. Or each has a unit in a column."""
    fill(tmp_path / "0", rows=2000)
    with contextlib.closing(sqlite3.connect(tmp_path / "0")) as db, db:
        db.execute("UPDATE t SET unit = id, x = CASE id % 9 WHEN 0 THEN NULL WHEN 1 THEN 1e30 WHEN 2 THEN 'a' ELSE x END")
    asked = [(kind, {**options, **({"clip": 1} if kind in ("count", "histogram", "group_count") else {})}, query.format(""))
             for query in DIVIDED[:6] for kind, options in KINDS]
    asked += [(kind, {**options, **({"clip": 1} if kind == "group_count" else {})}, f"SELECT {'k' if kind == 'group_count' else 'k, x'} FROM t")
              for kind, options in KEYED]
    for name in ("alone", "divided", "units"):
        shutil.copy(tmp_path / "0", tmp_path / name)
    alone = random_questions.integers(str(tmp_path / "alone"), ["dp_protect('t')"], asked, init=ROW_LEDGER)
    divided = random_questions.integers(str(tmp_path / "divided"), ["dp_protect('t')"], asked, init="PRAGMA threads = 3; " + ROW_LEDGER)
    units = random_questions.integers(str(tmp_path / "units"), ["dp_protect('t', 'unit')"], asked)
    for question, *found in zip(asked, alone, divided, units):
        assert found[0] and found[0] == found[1] == found[2], question
    aggregate = random_questions.released(str(tmp_path / "0"), ["dp_protect('t')"], ["""SELECT dp_sum('t', x, 700, '{"name":"0"}') FROM t"""],
                                          init=ROW_LEDGER)
    assert aggregate == alone[:1] and asked[0] == ("sum", {"clip": 700}, "SELECT x FROM t")


# ---- the same sums ---------------------------------------------------------------------------------------------------

KINDS = [("sum", {"clip": 700}), ("sum", {"clip": 700, "diagnose": True}), ("count", {"clip": 3}), ("avg", {"lo": -500, "hi": 900}),
         ("median", {"lo": 0, "hi": 900, "bins": 8}), ("histogram", {"lo": 0, "hi": 900, "bins": 4, "clip": 2})]
KEYED = [("group_sum", {"clip": 700, "keys": ["k1", "k3", "nobody"]}), ("group_count", {"clip": 2, "keys": ["k1", "k5"]}),
         ("group_avg", {"lo": 0, "hi": 900, "keys": ["k0", "k2"]}),
         ("group_sum", {"clip": 700, "keys": ["k1", "k3", "k4"], "diagnose": True}),
         ("group_sum", {"clip": 700, "keys": {"k": ["k1", "k3", "nobody"]}, "ways": 1})]


def corpus():
    """Returns questions of many kinds as tuples of a kind, options and a query."""
    asked = [(*kind, query.format("")) for query in DIVIDED for kind in KINDS]
    for kind, options in KEYED:
        asked += [(kind, options, f"SELECT {'k' if kind == 'group_count' else 'k, x'} FROM {table}") for table in ("t", "named_rowid")]
    return asked + [("count_distinct", {}, "SELECT x FROM t WHERE x > 0"), ("sum", {"clip": 700}, "SELECT x FROM linked"),
                    *(("sum", {"clip": 700}, query.format("")) for query in ALONE), *(("sum", {"clip": 700}, query) for query, _ in BY_UNIT),
                    *((*kind, "SELECT max(x) FROM t GROUP BY k") for kind in KINDS), ("count_distinct", {}, "SELECT max(x) FROM t GROUP BY k HAVING max(x) > 500"),
                    # sums of more than 64 bits, of one row and of several rows
                    ("group_sum", KEYED[0][1], "SELECT k, x * 1e15 FROM t"), ("group_sum", KEYED[0][1], "SELECT k, x * 1000 FROM t"),
                    ("group_sum", KEYED[0][1], "SELECT k, sum(x) FROM t GROUP BY k"), ("group_avg", KEYED[2][1], "SELECT k, max(x) FROM t GROUP BY day")]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.sample(1)
def test_threads_give_the_same_to_the_last_integer(tmp_path, unit):
    fill(tmp_path / "0", rows=2000, unit=unit)
    for threads in (1, 3):
        shutil.copy(tmp_path / "0", tmp_path / str(threads))
    found = [random_questions.integers(str(tmp_path / str(threads)), POLICY, corpus(), init=f"PRAGMA threads = {threads}; SELECT dp_init()")
             for threads in (0, 1, 3)]
    for question, alone, one_more, three_more in zip(corpus(), *found):
        assert alone and alone == one_more == three_more, question


def test_private_keys_meet(db):
    """A private key has one cell, even if several threads have seen the key."""
    with slowed(db):
        sums = json.loads(one(db, "SELECT dp_release('exact', 'group_sum', 'SELECT k, x FROM t', ?)",
                              json.dumps({"clip": 1e6, "max_groups": 7, "key_share": 1e-4})))
    wanted = dict(db.execute("SELECT k, sum(x) FROM t WHERE unit IS NOT NULL GROUP BY k"))
    assert sums.keys() == wanted.keys()
    for key, value in sums.items():
        assert abs(value - wanted[key]) < 1e5  # each of seven keys has a sum of about 1.4e6


@pytest.mark.parametrize("seed", range(int(os.environ.get("QUESTION_SEEDS", 2))))
def test_random_questions_on_threads(tmp_path, seed):
    """Random questions over a table whose rows are far apart."""
    paths = [str(tmp_path / str(threads)) for threads in (0, 3)]
    random_questions.database(paths[0], seed)
    with contextlib.closing(sqlite3.connect(paths[0])) as db, db:
        db.execute("UPDATE visit SET id = id * 100000 + 7")
        db.execute("UPDATE exam SET rowid = rowid * 100000, visit = visit * 100000 + 7 WHERE typeof(visit) = 'integer' AND abs(visit) < 1e9")
    shutil.copy(*paths)
    asked = [question[:3] for question in random_questions.questions(seed, 100)]
    alone = random_questions.integers(paths[0], random_questions.reference.POLICY, asked)
    divided = random_questions.integers(paths[1], random_questions.reference.POLICY, asked, init="PRAGMA threads = 3; SELECT dp_init()")
    for question, first, second in zip(asked, alone, divided):
        assert first and first == second, question


@pytest.mark.parametrize("seed", range(int(os.environ.get("QUESTION_SEEDS", 1))))
def test_questions_by_unit_and_by_hand(tmp_path, seed):
    """The questions of question_reference.py over a table whose rows are far apart, on one thread, on several threads, and unit by
    unit in plain SQLite."""
    path = str(tmp_path / "0")
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.executescript(reference.SCHEMA)
        reference.hospital(db, seed)
        db.execute("UPDATE exam SET visit = visit * 100000 + 7, rowid = rowid * 100000")
        db.execute("UPDATE visit SET id = id * 100000 + 7")
    with contextlib.closing(sqlite3.connect(path)) as db:
        apart = reference.split(db)
    shutil.copy(path, tmp_path / "3")
    kinds = [("sum", {"clip": 50}), ("count", {"clip": 3}), ("avg", {"clip": 4, "lo": -10, "hi": 50})]
    asked = [(*kinds[i % 3 if i % 3 != 1 or random_questions.may_be_counted("count", sql) else 0], sql, tables)
             for i, (sql, tables) in enumerate(reference.QUESTIONS)]
    alone = random_questions.integers(path, reference.POLICY, [question[:3] for question in asked])
    divided = random_questions.integers(str(tmp_path / "3"), reference.POLICY, [question[:3] for question in asked],
                                        init="PRAGMA threads = 3; SELECT dp_init()")
    for question, first, second in zip(asked, alone, divided):
        assert first and first == second, question
    by_hand = random_questions.integers_by_hand(str(tmp_path / "hand"), asked, apart)
    for question, first, second in zip(asked, alone, by_hand):
        assert first == second, question


def test_cross_tables_with_sums_of_128_bits(tmp_path):
    """A thread may have added up a part of the units when another finds a sum that needs 128 bits. One thread then begins again, and
    no value of the first attempt may stay. Which parts are done first differs from question to question, so there are many."""
    with contextlib.closing(sqlite3.connect(tmp_path / "0", isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, x, unit, k)")
        for i in range(4000):
            db.execute("INSERT INTO t VALUES (?, 5, ?, ?)", (i * 20000, i % 40, f"k{i % 3}"))
            if i % 40 in (7, 9):
                db.execute("INSERT INTO t VALUES (?, 1e8, ?, 'k1')", (i * 20000 + 1, 2**40 if i % 40 == 7 else "big"))
        db.execute("COMMIT")
    shutil.copy(tmp_path / "0", tmp_path / "3")
    asked = [("group_sum", {"clip": 700, "keys": {"k": ["k0", "k1", "k2"]}, "ways": 1}, "SELECT k, x FROM t")] * 60
    found = [random_questions.integers(str(tmp_path / threads), ["dp_protect('t', 'unit')"], asked, init=f"PRAGMA threads = {threads}; SELECT dp_init()")
             for threads in ("0", "3")]
    assert len(set(map(str, found[0] + found[1]))) == 1


def test_a_state_does_not_depend_on_threads(tmp_path):
    """dp_partial() reads alone."""
    db = make(tmp_path / "data.db", rows=2000)
    ask = "SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":1000}')"
    states = []
    for threads in (0, 3):
        db.execute(f"PRAGMA threads = {threads}").fetchall()
        states.append(one(db, "SELECT round(dp_merge('exact', dp_states(s))) FROM (" + ask + " AS s)"))
    assert abs(states[0] - states[1]) < 100 and abs(states[0] - truth(db, "SELECT x{} FROM t")) < 100


# ---- what the host has replaced or forbids ---------------------------------------------------------------------------


def test_a_function_that_other_connections_replace(tmp_path):
    """An automatic extension replaces round() on further connections, where it gives 7. The host then reads alone."""
    path = tmp_path / "data.db"
    make(path).close()
    run("""
        import ctypes
        from conftest import connect, one
        sqlite = ctypes.CDLL("libsqlite3.so.0")
        sqlite.sqlite3_db_filename.restype = ctypes.c_char_p
        replaced = []

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        def seven(context, count, values):
            sqlite.sqlite3_result_int(ctypes.c_void_p(context), 7)

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        def replace(db, error, api):
            if not (sqlite.sqlite3_db_filename(ctypes.c_void_p(db), b"main") or b"").endswith(b"data.db"):
                return 0
            replaced.append(db)
            return sqlite.sqlite3_create_function(ctypes.c_void_p(db), b"round", 1, 0x801, None, seven, None, None)

        db = connect(sys.argv[1])
        db.execute("PRAGMA threads = 2").fetchall()
        ask = "SELECT dp_release('exact', 'sum', 'SELECT round(x) FROM t', '{\\"clip\\":1e6}')"
        want = one(db, "SELECT sum(x) FROM t WHERE unit IS NOT NULL")
        sqlite.sqlite3_auto_extension(replace)
        db.set_progress_handler(lambda: time.sleep(0.002), 1000)
        assert abs(one(db, ask) - want) < 1e5
        assert len(replaced) == 2
    """, path)


@pytest.mark.parametrize("answer", [sqlite3.SQLITE_IGNORE, sqlite3.SQLITE_DENY])
def test_an_authorizer_that_hides_the_rowid(tmp_path, answer):
    """The release is refused, with one thread as with several."""
    db, found = make(tmp_path / "data.db"), []
    db.set_authorizer(lambda action, table, column, *_: answer if (table, column) == ("t", "id") else sqlite3.SQLITE_OK)
    for threads in (0, 1):
        db.execute(f"PRAGMA threads = {threads}").fetchall()
        found.append(refused(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM t', '{\"clip\":1}')"))
    assert found[0] == found[1] and "an authorizer of the host hides column 'rowid'" in found[0] and not charges(db)


def test_dirty_reads_are_the_hosts(tmp_path):
    make(tmp_path / "data.db").close()
    name = f"file:{tmp_path}/data.db?cache=shared"
    other = sqlite3.connect(name, uri=True, isolation_level=None)
    db = connect(name, uri=True)
    db.execute("PRAGMA threads = 1").fetchall()
    db.execute("PRAGMA read_uncommitted = 1")
    other.execute("BEGIN")
    other.execute("UPDATE t SET x = 10")
    assert abs(total_beside(db, "SELECT x FROM t") - 99 * 1000) < 100
    other.execute("UPDATE t SET x = 1")
    assert abs(total_beside(db, "SELECT x FROM t") - 99 * 200) < 100
    other.execute("ROLLBACK")


@pytest.mark.parametrize("parameters,divided", [("mode=rw", True), ("cache=private&mode=rw", True), ("nolock=1", False), ("mode=rw&psow=0", False)])
def test_a_file_that_is_read_in_another_way_is_read_alone(tmp_path, parameters, divided):
    make(tmp_path / "data.db").close()
    db = connect(f"file:{tmp_path}/data.db?{parameters}", uri=True)
    db.execute("PRAGMA threads = 1").fetchall()
    assert is_divided(db, "SELECT x FROM t") == divided


# ---- one state of one file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_all_threads_read_one_state(journal):
    """Another connection keeps swapping the values of two distant rows, so the true sum never changes. Each row is its own unit."""
    with quick_path() as path:
        fill(path, setup=[f"PRAGMA journal_mode = {journal}"])
        with contextlib.closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE t SET x = iif(id < 0, 0, 1000), unit = id")
        db = opened(path, threads=2)
        db.execute("PRAGMA busy_timeout = 60000").fetchall()
        check_one_state(db, path, "SELECT x FROM t", 100)


def test_a_commit_between_the_connections_and_the_rows(tmp_path):
    """Another connection commits after the further connections have read their version, and before the host has begun to read, or
    later. In each case, the sum is the sum of one state."""
    db = make(tmp_path / "data.db", setup=["PRAGMA journal_mode = wal"])
    other = sqlite3.connect(tmp_path / "data.db", isolation_level=None)
    number, moment = [], 0

    def change(*_):
        number.append(1)
        if len(number) == moment:
            other.execute("UPDATE t SET x = 1 - x")
        return sqlite3.SQLITE_OK
    other.execute("UPDATE t SET x = 0")
    sums = {0, one(db, "SELECT count(*) FROM t WHERE unit IS NOT NULL")}  # of the two states
    total(db, "SELECT x FROM t", 1e6)
    db.set_authorizer(change)
    total(db, "SELECT x FROM t", 1e6)
    for moment in random.Random(1).sample(range(1, len(number) // 2 + 1), 10):
        number.clear()
        found = total_beside(db, "SELECT x FROM t")
        assert min(abs(found - wanted) for wanted in sums) < 100, (moment, found)
    db.set_authorizer(None)


def test_a_transaction_is_read_as_it_is(tmp_path):
    db = make(tmp_path / "data.db", setup=["PRAGMA journal_mode = wal"])
    other = sqlite3.connect(tmp_path / "data.db", isolation_level=None)
    db.execute("BEGIN")
    before = truth(db, "SELECT x{} FROM t WHERE x >= 0", clip=1e6)
    other.execute("UPDATE t SET x = 0 WHERE id < 0")  # not in the transaction's snapshot
    with slowed(db):
        assert abs(total(db, "SELECT x FROM t", 1e6) - before) < 1e5
    assert not is_divided(db, "SELECT x FROM t")
    db.execute("COMMIT")
    after = truth(db, "SELECT x{} FROM t", clip=1e6)
    assert after < before - 1e6
    assert is_divided(db, "SELECT x FROM t")
    db.execute("BEGIN")
    db.execute("UPDATE t SET x = 3")  # not committed
    assert abs(total_beside(db, "SELECT x FROM t") - 99 * 600) < 100
    db.execute("ROLLBACK")
    with slowed(db):
        assert abs(total(db, "SELECT x FROM t", 1e6) - after) < 1e5


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_that_are_added_later(tmp_path, threads):
    """Each question reads the state of its own time."""
    db = make(tmp_path / "data.db", threads=threads)
    for i in range(5):
        db.execute("INSERT INTO t(id, x, unit) VALUES (?, 1000, ?)", (10**12 * (-1)**i * (i + 1), f"new {i}"))
        assert abs(total_beside(db, "SELECT x FROM t") - truth(db, "SELECT x{} FROM t")) < 100


def test_a_file_that_has_been_replaced(tmp_path):
    """Another file has taken the name of the database file. The question reads the file that the host has open."""
    db = make(tmp_path / "data.db")
    before = truth(db, "SELECT x{} FROM t")
    fill(tmp_path / "other.db", rows=500)
    os.rename(tmp_path / "other.db", tmp_path / "data.db")
    for _ in range(3):
        assert abs(total_beside(db, "SELECT x FROM t") - before) < 100


# ---- the end ---------------------------------------------------------------------------------------------------------


def test_a_progress_handler_ends_all(tmp_path):
    query = "SELECT x FROM t WHERE 0 < " + " + ".join(["x"] * 300)
    db, message = make(tmp_path / "data.db"), None
    before = threads_of_process()
    db.set_progress_handler(lambda: bool(new_threads(before)), 20)  # interrupts as soon as another thread runs
    for _ in range(100):  # if the other thread has read all rows before the host comes to its first one, nothing is interrupted
        with contextlib.suppress(AssertionError):
            message = refused(db, "SELECT dp_release('exact', 'sum', ?, ?)", query, '{"clip":1000}')
            break
    assert "interrupted" in message
    db.set_progress_handler(None, 0)
    assert state(db) == "failed" and all_ended(before)


def test_threads_that_do_not_start(tmp_path):
    """The stack of a thread would be larger than the address space, so no thread starts, and the host does all the work."""
    make(tmp_path / "data.db", threads=0).close()
    code = """
        from conftest import connect, one
        db = connect(sys.argv[1])
        db.execute("PRAGMA threads = 3").fetchall()
        for query in ("SELECT x FROM t", "SELECT sum(x) FROM t"):
            assert abs(one(db, "SELECT dp_release('exact', 'sum', ?, '{\\"clip\\":1000}')", query) - 99 * 1000) < 100
        import threading
        try:
            threading.Thread(target=print).start()
        except RuntimeError:
            print("no thread starts")
    """
    limit = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (min(2**47, limit[1]) if limit[1] != resource.RLIM_INFINITY else 2**47, limit[1]))
    try:
        said = run(code, tmp_path / "data.db")
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, limit)
    assert "no thread starts" in said


@pytest.mark.plain  # a sanitizer must be the first library that is loaded
@pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded by LD_PRELOAD")
def test_a_limit_of_seconds_costs_nothing_without_a_thread(tmp_path, monkeypatch):
    """The thread that keeps the limit starts before the charge. Each question of a guest has such a limit."""
    make(tmp_path / "data.db", threads=0).close()
    source = tmp_path / "nothread.c"
    source.write_text("#include <errno.h>\n#include <pthread.h>\nint pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x)"
                      " { (void)t; (void)a; (void)f; (void)x; return EAGAIN; }\n")
    monkeypatch.setenv("LD_PRELOAD", library(tmp_path, source))
    run("""
        db, guest = connect(sys.argv[1]), connect(sys.argv[1])
        assert one(db, "SELECT dp_grant('g', 'exact', 0.5)") == "g"
        assert one(guest, "SELECT dp_guard('exact', '{\\"ask\\":\\"g\\"}')") == "exact"
        for connection, options in ((db, '{"clip":9,"seconds":5}'), (guest, '{"clip":9,"name":"q"}')):
            for query in ("SELECT x FROM t", "SELECT sum(x) FROM t"):
                assert "no thread starts" in refused(connection, "SELECT dp_release('exact', 'sum', ?, ?)", query, options)
        assert one(db, "SELECT count(*) FROM dp_charge") == 0
        assert one(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM t', '{\\"clip\\":9}')") is not None
    """, tmp_path / "data.db")


def test_a_guarded_connection(tmp_path):
    """A guarded connection gets the same answer with threads, and they run."""
    db = make(tmp_path / "data.db", threads=2)
    one(db, "SELECT dp_grant('g', 'exact', 0.9)")
    one(db, "SELECT dp_guard('exact', '{\"ask\":\"g\"}')")
    before, seen, done = threads_of_process(), set(), threading.Event()

    def look():
        while not done.wait(0.0005):
            seen.update(new_threads(before) - {str(threading.get_native_id())})
    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    for i in range(1000):  # on a busy machine, the threads of a question may have ended before somebody looks
        assert abs(one(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM t', ?)", json.dumps({"clip": 1000, "name": f"s{i}"})) - 99 * 1000) < 100
        if seen:
            break
    done.set()
    looker.join()
    assert seen


@pytest.mark.parametrize("where,query", [(0.1, "SELECT x FROM t"), (0.5, "SELECT x FROM t"), (0.9, "SELECT x FROM t"), (0.5, "SELECT sum(x) FROM t")])
def test_a_damaged_page_fails_the_question(tmp_path, where, query):
    """A damaged page of table t fails the question on any thread, with the same message."""
    path = tmp_path / "data.db"
    make(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        pages = [row[0] for row in db.execute("SELECT pageno FROM dbstat WHERE name = 't' AND pagetype = 'leaf' ORDER BY 1")]
    with open(path, "r+b") as file:
        file.seek((pages[int(len(pages) * where)] - 1) * 4096)
        file.write(b"\xff" * 4096)
    messages = set()
    for threads in (0, 1, 3):
        db = connect(path)
        db.execute(f"PRAGMA threads = {threads}").fetchall()
        with slowed(db):
            messages.add(refused(db, "SELECT dp_release('exact', 'sum', ?, '{\"clip\":1000}')", query))
        assert state(db) == "failed"
        db.close()
    assert len(messages) == 1 and "malformed" in messages.pop()


def test_the_hosts_limit_of_lengths_does_not_decide(tmp_path):
    """A row is longer than the host's limit. The question reads it on any thread, and the host has its limit back."""
    db = make(tmp_path / "data.db")
    db.execute("UPDATE t SET k = hex(zeroblob(3000)) WHERE id = 5000000")
    want = truth(db, "SELECT x{} FROM t WHERE k < 'l'")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 5000)
    for threads in (0, 1, 3):
        db.execute(f"PRAGMA threads = {threads}").fetchall()
        with slowed(db):
            found = one(db, "SELECT dp_release('exact', 'sum', ?, ?)", "SELECT x FROM t WHERE k < 'l'", '{"clip":1000}')
        assert abs(found - want) < 100
        assert "too big" in refused(db, "SELECT k FROM t WHERE id = 5000000")
        assert db.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == 5000


def test_nothing_is_left_open(tmp_path):
    db = make(tmp_path / "data.db", threads=4)
    files, threads = Counter(open_files()), threads_of_process()
    for query in ["SELECT x FROM t", "SELECT x FROM linked", "SELECT sum(x) FROM t WHERE id < 0", "SELECT sum(nothing) FROM t"] * 3:
        with contextlib.suppress(sqlite3.OperationalError):
            total(db, query)
    assert not Counter(open_files()) - files and all_ended(threads)
    db.execute("DROP TABLE t")  # works, because no connection still reads the table
