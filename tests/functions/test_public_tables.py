"""Tests the public tables of a guarded connection: the virtual tables give what the tables of the file give."""

import random
import shutil
import sqlite3
import time

import pytest

from conftest import connect, one, refused
from guard_helpers import guarded, VALUES

pytestmark = pytest.mark.alarm(0)

COLUMNS = {"p": "i a t n r b u c s".split(), "w": "t a u".split(), "q": "i v t a".split()}
SCHEMA = """
    CREATE TABLE p(i INTEGER PRIMARY KEY, a INT, t TEXT, n NUMERIC, r REAL, b BLOB, u, c TEXT COLLATE NOCASE, s VARCHAR(9) COLLATE RTRIM);
    CREATE INDEX pa ON p(a); CREATE INDEX pt ON p(t, n); CREATE INDEX pn ON p(n DESC); CREATE INDEX pr ON p(r); CREATE INDEX pb ON p(b);
    CREATE INDEX pu ON p(u); CREATE INDEX pc ON p(c); CREATE INDEX ps ON p(s, a DESC); CREATE INDEX part ON p(a) WHERE a > 3;
    CREATE TABLE w(t TEXT COLLATE NOCASE, a INT, u, PRIMARY KEY(t, a)) WITHOUT ROWID; CREATE INDEX wu ON w(u);
    CREATE TABLE visit(patient INT);
"""


def make(path, encoding="UTF-8", seed=1):
    """Makes a database whose three public tables hold values of all types in columns of all affinities."""
    db, random_of = connect(path), random.Random(seed)
    strict = sqlite3.sqlite_version_info >= (3, 37)
    db.execute(f"PRAGMA encoding = '{encoding}'")
    db.executescript(SCHEMA)
    db.execute("CREATE TABLE q(i INTEGER PRIMARY KEY, v ANY, t TEXT, a INT)" + (" STRICT" if strict else ""))
    db.execute("CREATE INDEX qv ON q(v)")
    for i in range(60):
        db.execute(f"INSERT INTO p VALUES ({i}, {', '.join(random_of.choice(VALUES) for _ in range(8))})")
        db.execute(f"INSERT OR IGNORE INTO w VALUES (ifnull({random_of.choice(VALUES)}, 0), ifnull({random_of.choice(VALUES)}, 1), {random_of.choice(VALUES)})")
        db.execute(f"INSERT INTO q VALUES ({i}, {random_of.choice(VALUES)}, CAST({random_of.choice(VALUES)} AS TEXT), {i % 7})")
    for call in ("init()", "protect('visit', 'patient')", "public('p', 'w', 'q')", "tier('public', 0.002, 3.0, 1e-6)"):
        one(db, "SELECT dp_" + call)
    return db


def comparison(random_of, left, right):
    """Returns a comparison of a column with a literal, a parameter-like expression, another column or a list."""
    literal, other = random_of.choice(VALUES), random_of.choice(VALUES)
    op = random_of.choice(["=", "=", "=", "<", "<=", ">", ">=", "<>", "IS"])
    return random_of.choice([
        f"{left} {op} {literal}", f"{left} {op} {right}", f"{right} {op} {left}", f"{left} {op} +{right}", f"{left} {op} CAST({literal} AS NUMERIC)",
        f"{left} {op} CAST({literal} AS TEXT)", f"{left} {op} {literal} COLLATE NOCASE", f"{left} COLLATE RTRIM {op} {literal}",
        f"{left} BETWEEN {literal} AND {other}", f"{left} IN ({literal}, {other})", f"{left} IN (SELECT u FROM p)", f"{left} IN (SELECT t FROM w)",
        f"{left} LIKE '{random_of.choice(['a', '1', '0', 'ab'])}%'", f"{left} GLOB '1*'", f"{left} IS NULL", f"{left} IS NOT NULL",
        f"({left}, {right}) {random_of.choice(['=', '<', '>='])} ({literal}, {other})", f"{left} {op} (SELECT max(n) FROM p)",
        f"({left} {op} {literal} OR {right} {op} {other})", f"{left} {op} {literal} AND {left} > {other}"])


def question(random_of):
    """Returns a SELECT over the tables, and 1 if the order of its rows is fixed."""
    one_, two = random_of.choice(list(COLUMNS)), random_of.choice(list(COLUMNS))
    left, right = f"x.{random_of.choice(COLUMNS[one_])}", f"y.{random_of.choice(COLUMNS[two])}"
    key, descending = "x.t, x.a" if one_ == "w" else "x.rowid", random_of.choice(["", " DESC"])
    where = comparison(random_of, left, f"x.{random_of.choice(COLUMNS[one_])}")
    # Plain SQLite 3.40 does not sort by a column that equals a value of another affinity, and loses rows of a LEFT JOIN on LIKE.
    unequal, joined = where.replace(" = ", " >= "), comparison(random_of, right, left).replace(" LIKE ", " >= ").replace(" GLOB ", " >= ")
    return random_of.choice([
        (f"SELECT {key}, {left} FROM {one_} AS x WHERE {where}", 0), (f"SELECT count(*), max(typeof({left})) FROM {one_} AS x WHERE {where}", 0),
        (f"SELECT * FROM {one_} AS x WHERE {unequal} ORDER BY {left}{descending}, {key} LIMIT 7 OFFSET 1", 1),
        (f"SELECT {left} FROM {one_} AS x ORDER BY {left}{descending}", 1), (f"SELECT count(*) FROM {one_} AS x GROUP BY {left} ORDER BY {left}{descending}", 1),
        (f"SELECT DISTINCT typeof({left}), {left} FROM {one_} AS x WHERE {where}", 0),
        (f"SELECT count(*), min({left}), max({right}) FROM {one_} AS x JOIN {two} AS y ON {comparison(random_of, left, right)}", 0),
        (f"SELECT {key}, count({right}) FROM {one_} AS x LEFT JOIN {two} AS y ON {joined} WHERE {where} GROUP BY {key}", 0),
        (f"SELECT {key} FROM {one_} AS x WHERE EXISTS (SELECT 1 FROM {two} AS y WHERE {comparison(random_of, right, left)})", 0),
        (f"SELECT count(*) FROM {one_} AS x JOIN {two} AS y USING (t)", 0), (f"SELECT count(*) FROM {one_} NATURAL JOIN {two}", 0),
        (f"SELECT sum({left}) OVER (ORDER BY {key}) FROM {one_} AS x ORDER BY {key}", 1),
        (f"WITH {two}(t) AS (SELECT {left} FROM {one_} AS x WHERE {where}) SELECT count(*), max(t) FROM {two}", 0),
        (f"SELECT count(*) FROM (SELECT {left} FROM {one_} AS x WHERE {where} {random_of.choice(['UNION', 'EXCEPT', 'INTERSECT'])}"
         f" SELECT {right} FROM {two} AS y)", 0),
        (f"SELECT (SELECT {right} FROM {two} AS y WHERE {joined.replace(' = ', ' >= ')} ORDER BY 1 LIMIT 1) FROM {one_} AS x ORDER BY {key}", 1)])


def answer(db, sql, is_ordered):
    try:
        rows = [tuple(map(repr, row)) for row in db.execute(sql)]
    except sqlite3.Error as error:
        return str(error)
    return rows if is_ordered else sorted(rows)


def test_every_comparison_is_that_of_the_file(tmp_path):
    """Compares 5,000 SELECTs with the same ones on the owner's connection. On broken code, such as a `<` that is handed on for a text
    column, some dozen differ."""
    plain, random_of, differing, filled = make(tmp_path / "a.db"), random.Random(7), [], 0
    db = guarded(tmp_path / "a.db")
    for _ in range(5000):
        sql, is_ordered = question(random_of)
        expected = answer(plain, sql, is_ordered)
        filled += isinstance(expected, list) and len(expected) > 0
        if answer(db, sql, is_ordered) != expected:
            differing.append(sql)
    assert differing == [] and filled > 2500


def test_columns_of_all_affinities_meet(tmp_path):
    """The file does not know the affinity of the other side: '12' in a text column is less than '%abc' in a numeric column."""
    plain = make(tmp_path / "a.db")
    db = guarded(tmp_path / "a.db")
    for left in COLUMNS["p"]:
        for right in COLUMNS["p"]:
            for op in ("=", "<", "<=", ">", ">="):
                sql = f"SELECT (SELECT count(*) FROM p AS y WHERE y.{left} {op} x.{right}) FROM p AS x ORDER BY x.i"
                assert db.execute(sql).fetchall() == plain.execute(sql).fetchall(), sql


def test_row_values_with_in(tmp_path):
    """SQLite does not tell a virtual table that an equality comes from an IN of row values. Such a statement has the right answer or none."""
    plain, random_of, answered, refused_ = make(tmp_path / "a.db"), random.Random(3), 0, 0
    db = guarded(tmp_path / "a.db")
    for _ in range(1500):
        one_, two = random_of.choice(list(COLUMNS)), random_of.choice(list(COLUMNS))
        left, right, other, last = (random_of.choice(COLUMNS[table]) for table in (one_, one_, two, two))
        sql = random_of.choice([f"SELECT count(*) FROM {one_} AS x WHERE (x.{left}, x.{right}) IN (SELECT {other}, {last} FROM {two})",
                                f"SELECT count(*) FROM {one_} AS x, {two} AS y WHERE (x.{left}, y.{other}) IN (SELECT {right}, {left} FROM {one_})",
                                f"SELECT count(*) FROM {one_} AS x WHERE lower(x.{left}) IN ('abc', '12') AND x.{right} IN (SELECT {other} FROM {two})"])
        got = answer(db, sql, 1)
        refused_ += "row values with IN" in got
        answered += isinstance(got, list)
        assert "row values with IN" in got or got == answer(plain, sql, 1), sql
    assert answered > 500 and refused_ > 100


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_file_in_utf_16_is_refused(tmp_path, encoding):
    make(tmp_path / "a.db", encoding).close()
    assert "the file has texts in UTF-16" in refused(connect(tmp_path / "a.db"), "SELECT dp_guard('public')")
    new = sqlite3.connect(tmp_path / "b.db")
    new.executescript("\n".join(connect(tmp_path / "a.db").iterdump()))
    shutil.move(tmp_path / "a.db-ledger", tmp_path / "b.db-ledger")
    assert one(guarded(tmp_path / "b.db"), "SELECT count(*) FROM p") == 60


def test_values_bound_to_parameters(tmp_path):
    plain = make(tmp_path / "a.db")
    db = guarded(tmp_path / "a.db")
    assert db.execute("SELECT t FROM p ORDER BY t").fetchall() == plain.execute("SELECT t FROM p ORDER BY t").fetchall()
    values = [row[0] for row in plain.execute(f"VALUES ({'), ('.join(VALUES)})")]
    for column in COLUMNS["p"]:
        for op in ("=", "<", "<=", ">", ">=", "IS", "<>"):
            sql = f"SELECT i FROM p WHERE {column} {op} ? ORDER BY i"
            assert [db.execute(sql, (v,)).fetchall() for v in values] == [plain.execute(sql, (v,)).fetchall() for v in values], sql


def test_an_index_of_the_file_is_used(tmp_path):
    make(tmp_path / "a.db")
    db = guarded(tmp_path / "a.db")

    def plan(sql):
        return " ".join(row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql))
    for order in ("i", "a", "n DESC", "s, a DESC", "r"):
        assert "TEMP B-TREE" not in plan(f"SELECT * FROM p ORDER BY {order}")
    assert "TEMP B-TREE" in plan("SELECT * FROM p ORDER BY a + 1") and "TEMP B-TREE" in plan("SELECT i, r FROM p ORDER BY r, t")
    # The small table is outside, because the index makes the inner loop cheap.
    assert plan("SELECT * FROM p AS x JOIN p AS y ON x.u = 'abc' AND y.i = x.a").startswith("SCAN x VIRTUAL TABLE")


def test_columns_with_odd_names_and_types(tmp_path):
    db = make(tmp_path / "a.db")
    wide = ", ".join(f"c{i} INT" for i in range(70))
    db.executescript(f"""CREATE TABLE "odd one"("a b" "my type", "rowid" TEXT, h "TEXT HIDDEN", "select" DECIMAL(10,5), g INT AS (length(h)), "x""y");
        INSERT INTO "odd one" VALUES (1, 'r', 'hid', '1.50', 2); CREATE TABLE wide({wide}); INSERT INTO wide(c0, c62, c63, c69) VALUES (1, 2, 3, 4);
        CREATE TABLE empty(x)""")
    one(db, "SELECT dp_public('odd one', 'wide', 'empty')")
    guest = guarded(tmp_path / "a.db")
    for sql in ('SELECT * FROM "odd one"', 'SELECT "a b", h, g, "x""y" FROM "odd one" WHERE "select" = 1.5', "SELECT * FROM wide", "SELECT c63, c69, c62 FROM wide",
                "SELECT c69 FROM wide WHERE c69 > 3", "SELECT * FROM empty", 'SELECT _rowid_ FROM "odd one" WHERE "rowid" = \'r\''):
        assert guest.execute(sql).fetchall() == db.execute(sql).fetchall(), sql
    types = [row[2] for row in guest.execute('PRAGMA table_info("odd one")')]
    assert types == ["my type", "TEXT", "TEXT", "DECIMAL(10,5)", "INT", ""]


def test_a_long_read_is_interrupted(tmp_path):
    db = make(tmp_path / "a.db")
    db.execute("CREATE TABLE long AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT i FROM n")
    one(db, "SELECT dp_public('long')")
    guest, begun = guarded(tmp_path / "a.db"), time.monotonic()
    guest.set_progress_handler(lambda: time.monotonic() - begun > 0.03, 100)
    assert refused(guest, "SELECT i FROM long WHERE i < 0 AND i > -5").endswith("interrupted")
    guest.set_progress_handler(None, 0)
    assert one(guest, "SELECT count(*) FROM long WHERE i < 5") == 4


@pytest.mark.plain
def test_a_guard_costs_little(tmp_path):
    """A scan takes at most 1.5 times as long as without a guard (2 times here, because other tests run beside), and an indexed look-up
    below 0.1 ms. The best of three runs counts, in time of this thread."""
    db = make(tmp_path / "a.db")
    db.execute("CREATE TABLE m(id INTEGER PRIMARY KEY, name TEXT, beds INT, x REAL)")
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
               " INSERT INTO m SELECT i, 'name ' || i, i % 1000, i * 0.5 FROM n")
    db.execute("CREATE INDEX mn ON m(name)")
    one(db, "SELECT dp_public('m')")
    guest, best = guarded(tmp_path / "a.db"), {}

    def scan(connection):
        for _ in connection.execute("SELECT * FROM m"):
            pass

    def look_up(connection):
        for i in range(500):
            assert one(connection, "SELECT id FROM m WHERE name = ?", f"name {7 * i + 1}") == 7 * i + 1
    for work in (scan, look_up):
        for _ in range(3):
            for connection in (db, guest):
                begun = time.thread_time()
                work(connection)
                key = work.__name__, connection is guest
                best[key] = min(best.get(key, 99), time.thread_time() - begun)
    assert best["scan", True] < 2 * best["scan", False], best
    assert best["look_up", True] / 500 < 1e-4, best
