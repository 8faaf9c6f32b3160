"""Tests of what SQLite does that could make one unit's rows change another unit's contribution: limits, errors, types, and what an
application does to every connection."""

import contextlib
import ctypes
import random
import shutil
import sqlite3
import _sqlite3

import pytest

from conftest import EXTENSION, connect, one, refused, run

LIBRARY = ctypes.CDLL(_sqlite3.__file__)  # finds the functions of the libsqlite3 that Python uses


def clinic(schema="CREATE TABLE visit(patient INT, n INT, note TEXT)", rows=(), public=(), db=None):
    """Returns a connection whose tables have these rows, and in which all tables but `public` have the unit in column patient. The
    noise has a standard deviation of 0.04 where clip is 50."""
    db = db or connect()
    db.executescript(schema)
    for row in rows:
        db.execute(f"INSERT INTO visit VALUES ({', '.join('?' * len(row))})", row)
    one(db, "SELECT dp_init()")
    one(db, "SELECT dp_protect('visit', 'patient')")
    for table in public:
        one(db, "SELECT dp_public(?)", table)
    one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
    return db


def ask(db, sql, options='{"clip":50}'):
    return one(db, "SELECT dp_release('t', 'sum', ?, ?)", sql, options)


# ---- limits ----------------------------------------------------------------------------------------


def test_the_limit_of_steps_grows_with_the_rows_of_a_unit():
    db = clinic(rows=[(1, 0, "")] + [(2, 0, "")] * 49)
    loop = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
            " SELECT 3 + 0 * count(*) FROM n, (SELECT 1 FROM visit LIMIT 1)")
    assert abs(ask(db, loop, '{"clip":50,"steps":1000}') - 3) < 0.45  # patient 1 may take 2,000 steps, patient 2 50,000
    assert abs(ask(db, loop, '{"clip":50,"steps":100000}') - 6) < 0.45


def test_rows_of_public_tables_count_as_steps_on_every_path():
    """A join with many public rows is evaluated at once only if no unit can reach the limit of steps."""
    db = clinic("CREATE TABLE visit(patient INT, n INT, note TEXT); CREATE TABLE ward(beds INT)", [(i, 0, "") for i in range(3)], ["ward"])
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO ward SELECT i FROM n")
    for limit in ("", " LIMIT -1"):
        assert abs(ask(db, "SELECT 1 FROM visit CROSS JOIN ward" + limit, '{"clip":50,"steps":1000}')) < 0.45
        assert abs(ask(db, "SELECT 1 FROM visit CROSS JOIN ward" + limit, '{"clip":50,"steps":100000}') - 150) < 0.45


def test_a_long_pattern_drops_its_unit():
    """SQLite compares a pattern of many wildcards in one step, however long that takes."""
    db = clinic(rows=[(1, 100, ""), (2, 101, ""), (3, 100, "")])
    for operator, wildcard in (("LIKE", "%"), ("GLOB", "*")):
        assert abs(ask(db, f"SELECT 1 FROM visit WHERE note {operator} printf('%.*c', n, '{wildcard}')") - 2) < 0.45


def test_a_program_of_more_than_a_hundred_thousand_instructions_is_refused():
    db = clinic(rows=[(1, 1, "")])
    numbers = ", ".join(str(i) for i in range(60000))
    assert "sql compiles to more than 100000 instructions" in refused(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":50}')", f"SELECT n FROM visit WHERE n IN ({numbers})")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


def test_results_of_more_than_half_of_bytes_drop_their_unit():
    db = clinic(rows=[(1, 200, ""), (2, 3, "")])
    many = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < (SELECT n FROM visit)) SELECT zeroblob(900000) FROM n")
    assert abs(one(db, "SELECT dp_release('t', 'count', ?, '{\"clip\":50,\"bytes\":256000000}')", many) - 3) < 0.45


@pytest.mark.parametrize("query", ["SELECT 1 FROM n CROSS JOIN visit ORDER BY hex(zeroblob(500)) || i",
                                   "SELECT row_number() OVER (ORDER BY hex(zeroblob(500)) || i) > 0 FROM n CROSS JOIN visit"])
def test_a_sort_of_many_rows_stays_in_memory(query):
    """The evaluator has no files, so a sort that SQLite would put into a file must stay in memory."""
    db = clinic(rows=[(1, 1, "")])
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000) "
    assert abs(ask(db, numbers + query, '{"clip":20000,"steps":100000000}') - 15000) < 200


def test_a_join_of_a_table_with_itself_looks_rows_up():
    """A thousand rows of one unit would take a million steps without an index."""
    db = clinic(rows=[(1, i, f"note {i}") for i in range(1000)])
    for condition in ("a.n = b.n", "a.note = b.note", "a.n = b.n + 1", "a.rowid = b.rowid"):
        assert abs(ask(db, f"SELECT 1 FROM visit a JOIN visit b ON {condition}", '{"clip":1000,"steps":1000}') - 1000) < 9


# ---- errors ----------------------------------------------------------------------------------------


def test_a_type_that_does_not_fit_drops_its_unit():
    db = clinic(rows=[(1, 5, "1"), (2, 5, "many"), (3, 5, "9")])
    assert abs(ask(db, "SELECT n FROM visit LIMIT (SELECT note FROM visit)") - 10) < 0.45


def test_too_little_memory_ends_the_question():
    """It is no property of a unit how much memory is free, so the unit that needs the most must not be dropped."""
    run("""
        db = connect()
        db.executescript("CREATE TABLE visit(patient INT, n INT); INSERT INTO visit VALUES (1, 1), (2, 60)")
        make_ledger(db, "{}", "visit, patient")
        one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
        large = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < (SELECT n FROM visit))"
                 " SELECT count(*) FROM (SELECT DISTINCT hex(zeroblob(400000)) || i FROM n)")
        ask = "SELECT dp_release('t', 'sum', ?, json_object('clip', 100, 'name', ?))"
        assert abs(one(db, ask, large, "enough") - 61) < 0.9
        one(db, "PRAGMA hard_heap_limit = 18000000")
        message = refused(db, ask, large, "x")
        one(db, "PRAGMA hard_heap_limit = 0")
        assert "out of memory" in message, message
        assert one(db, "SELECT state FROM dp_release WHERE name = 'x'") == "failed"
        """)


@pytest.mark.parametrize("limit", ["", " LIMIT -1"])
def test_a_damaged_page_ends_the_question(path, limit):
    """A reader that took the error for the end of the table would release a sum of some of the rows."""
    db = connect(path)
    clinic(rows=[(i, i, "x" * 100) for i in range(900)], db=db)
    root, size = one(db, "SELECT rootpage FROM sqlite_master WHERE name = 'visit'"), one(db, "PRAGMA page_size")
    db.close()
    with open(path, "r+b") as file:
        file.seek((root + 9) * size)  # the table has about 25 pages
        file.write(b"\xff" * size)
    db = connect(path)
    assert "malformed" in refused(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":50,\"name\":\"x\"}')", "SELECT n FROM visit" + limit)
    assert one(db, "SELECT count(*) FROM dp_release WHERE state = 'released'") == 0
    db.close()


# ---- types of columns ------------------------------------------------------------------------------

TYPES = ["INT", "BIGINT", "TEXT", "VARCHAR(9)", "CLOB", "BLOB", "", "REAL", "FLOAT", "DOUBLE", "NUMERIC", "DECIMAL(5, 2)", "DATE", "ANY",
         "TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM", "COLLATE NOCASE", "TEXT HIDDEN", "HIDDEN INT",
         "INT DEFAULT 3", "INT NOT NULL ON CONFLICT IGNORE"]
CELLS = [None, 0, 1, 12, 1.0, 0.5, 12.5, "1", "12", " 12", "12.0", "1e1", "a", "A", "a ", "", b"", b"a", b"12", 2**53 + 1, 2.0**53]
QUERIES = [f"SELECT {test} FROM visit" for test in [
    "x = '12'", "x = 12", "x = 1", "x < 'a'", "x < 2", "x = 'a'", "x IN ('A', 12)", "x IN (1, 'a')", "typeof(x) = 'text'", "typeof(x) = 'real'",
    "typeof(x || '') = 'text'", "x || '' = '12'", "length(x) = 2", "x LIKE 'A'", "x BETWEEN 1 AND '2'", "max(x, 'a') = 'a'", "nullif(x, 'a') IS NULL",
    "CASE x WHEN 12 THEN 1 WHEN 'a' THEN 1 ELSE 0 END"]] + [
        "SELECT a.x = b.x FROM visit a, visit b", "SELECT a.x < b.x FROM visit a, visit b", "SELECT 1 FROM visit a JOIN visit b ON a.x = b.x",
        "SELECT 1 FROM visit a JOIN visit b USING (x)", "SELECT (SELECT count(*) FROM visit a WHERE a.x = b.x) FROM visit b",
        "SELECT count(DISTINCT x) FROM visit", "SELECT count(*) > 1 FROM visit GROUP BY x", "SELECT x IS NOT NULL FROM (SELECT * FROM visit)"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("declared", TYPES)
@pytest.mark.sample(24)
def test_columns_compare_as_in_the_database(declared, strict):
    """The truth is SQLite's answer over a table of the same type that has the rows of one unit."""
    types = ("INT", "TEXT", "BLOB", "REAL", "ANY", "TEXT COLLATE NOCASE")
    if strict and (declared not in types or sqlite3.sqlite_version_info < (3, 37)):
        pytest.skip("no type of a STRICT table")
    schema, rows, units = f"CREATE TABLE visit(patient INT, x {declared}) {'STRICT' * strict}", [], []
    for patient in range(3):
        units.append(sqlite3.connect(":memory:"))
        units[-1].executescript(schema)
        for cell in CELLS[patient::3]:
            with contextlib.suppress(sqlite3.Error):  # a STRICT table refuses some cells
                units[-1].execute("INSERT INTO visit VALUES (?, ?)", (patient, cell))
                rows.append((patient, cell))
    db = clinic(schema, rows)
    for query in QUERIES:
        want = sum(row[0] or 0 for unit in units for row in unit.execute(query))
        for limit in ("", " LIMIT -1"):
            assert abs(ask(db, query + limit) - want) < 0.45, query
    db.close()


def test_a_table_without_rowid_has_no_rowid():
    db = clinic("CREATE TABLE visit(patient INT, n INT, PRIMARY KEY (n, patient)) WITHOUT ROWID", [(1, 5), (2, 4)])
    for limit in ("", " LIMIT -1"):
        assert "no such column: rowid" in refused(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":50}')", "SELECT rowid FROM visit" + limit)


STARS = ["SELECT n FROM ({}) AS a", "WITH a AS ({}) SELECT n FROM a WHERE note <> 'b'", "WITH a AS ({}), b AS (SELECT * FROM a) SELECT b.n FROM b",
         "SELECT max(n) FROM ({}) GROUP BY note", "SELECT n FROM visit WHERE EXISTS ({})", "SELECT n FROM visit WHERE n IN (SELECT n FROM ({}))",
         "SELECT a.n FROM ({}) AS a JOIN visit AS b USING (n, note)", "SELECT n FROM (SELECT * FROM ({}) WHERE n < 5) ORDER BY n LIMIT 2"]
FLAT = ["SELECT {} FROM visit", "SELECT {} FROM visit WHERE n > 2", "SELECT visit.{} FROM visit WHERE note = 'a' OR n = 1"]
KEPT = ["SELECT {} FROM visit ORDER BY n LIMIT 3", "SELECT {} FROM visit UNION ALL SELECT {} FROM visit WHERE n = 3"]  # SQLite keeps all columns of some


def test_a_star_reads_the_columns_that_are_read():
    """A virtual column that could fail for one row prevents a question that reads it, and no other. The same rows in a table without the
    column answer the question, too; the noise is far below 1."""
    random_of, asked = random.Random(1), 0
    columns, rows = "patient INT, n INT, note TEXT", [(i % 7, random_of.randrange(6), random_of.choice("abc")) for i in range(40)]
    bad, without = (clinic(f"CREATE TABLE visit({columns})", rows) for _ in range(2))
    for column in ("y AS (abs(n - 9223372036854775807 - 3))", "z AS (json_extract(note, '$'))"):
        bad.execute(f"ALTER TABLE visit ADD COLUMN {column}")
    for outer in STARS:
        for part in FLAT + KEPT:
            sql, told = outer.format(part.replace("{}", "*")), None
            try:
                told = round(ask(bad, sql))
            except sqlite3.Error as error:
                assert "is generated when it is read" in str(error) and part in KEPT, (sql, error)
            assert told is None or told == round(ask(without, sql)), sql
            asked += told is not None
    assert asked >= len(STARS) * len(FLAT)
    for sql in ("SELECT y FROM (SELECT * FROM visit)", "SELECT n FROM (SELECT * FROM visit) WHERE y > 3", "SELECT count(DISTINCT z) FROM (SELECT * FROM visit)",
                "SELECT n FROM (SELECT DISTINCT * FROM visit)", "SELECT n FROM (SELECT * FROM visit UNION SELECT * FROM visit)",
                "SELECT 1 FROM visit NATURAL JOIN visit AS b", "SELECT n FROM visit ORDER BY y LIMIT 2", "SELECT a.n FROM visit AS a JOIN visit AS b USING (y) LIMIT 3"):
        assert "is generated when it is read" in refused(bad, "SELECT dp_release('t', 'sum', ?, '{\"clip\":50}')", sql), sql


def test_another_collation_is_refused():
    db = connect()
    db.create_collation("odd", lambda a, b: (a > b) - (a < b))
    db.executescript("CREATE TABLE visit(patient INT, note TEXT COLLATE odd)")
    one(db, "SELECT dp_init()")
    assert "has the collation 'odd'" in refused(db, "SELECT dp_protect('visit', 'patient')")


# ---- what an application does to every connection --------------------------------------------------

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
START = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
for name, arguments in (("sqlite3_create_function", [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, FUNCTION,
                                                     ctypes.c_void_p, ctypes.c_void_p]),
                        ("sqlite3_exec", [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
                        ("sqlite3_result_text", [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p])):
    getattr(LIBRARY, name).argtypes = arguments


@contextlib.contextmanager
def in_every_connection(start):
    """Calls start(db, api) for each connection that SQLite opens, as an application does with sqlite3_auto_extension()."""
    callback = START(lambda db, error, api: start(db, api) or 0)
    LIBRARY.sqlite3_auto_extension(callback)
    try:
        yield
    finally:
        LIBRARY.sqlite3_cancel_auto_extension(callback)


@FUNCTION
def host(context, count, values):
    LIBRARY.sqlite3_result_text(context, b"HOST", -1, None)


@pytest.mark.parametrize("function, call", [("upper", "length(upper(note))"), ("substr", "length(substr(note, 1))"), ("abs", "abs(n)")])
def test_a_function_that_an_application_replaces_everywhere(function, call):
    db = clinic(rows=[(1, 7, "a"), (2, 7, "b")])
    for limit in ("", " LIMIT -1"):
        assert ask(db, f"SELECT {call} FROM visit{limit}") < 20
    charges = one(db, "SELECT count(*) FROM dp_charge")
    arguments = 2 if function == "substr" else 1
    with in_every_connection(lambda db, api: LIBRARY.sqlite3_create_function(db, function.encode(), arguments, 1, None, host, None, None)):
        for limit in ("", " LIMIT -1"):
            assert f"cannot use the function '{function}'" in refused(
                db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":50}')", f"SELECT {call} FROM visit{limit}")
        assert abs(ask(db, "SELECT n FROM visit LIMIT -1") - 14) < 0.45
    assert one(db, "SELECT count(*) FROM dp_charge") == charges + 1


def test_tables_that_an_application_makes_everywhere():
    db = clinic(rows=[(1, 7, "a")])
    with in_every_connection(lambda db, api: LIBRARY.sqlite3_exec(db, b"CREATE TABLE ward(beds)", None, None, None)):
        assert "makes tables" in refused(db, "SELECT dp_release('t', 'sum', 'SELECT n FROM visit', '{\"clip\":50}')")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    # SQLite drops temporary tables where the extension sets temp_store.
    with in_every_connection(lambda db, api: LIBRARY.sqlite3_exec(db, b"CREATE TEMP TABLE visit(patient, n)", None, None, None)):
        assert abs(ask(db, "SELECT n FROM visit") - 7) < 0.45


def test_a_view_works_where_an_application_trusts_no_schema():
    db = clinic("CREATE TABLE visit(patient INT, n INT, note TEXT); CREATE VIEW few AS SELECT n FROM visit WHERE n < 5", [(1, 7, ""), (2, 3, "")])
    with in_every_connection(lambda db, api: LIBRARY.sqlite3_exec(db, b"PRAGMA trusted_schema = OFF", None, None, None)):
        assert abs(ask(db, "SELECT n FROM few") - 3) < 0.45


def test_without_an_authorizer_nothing_is_asked_or_guarded(tmp_path):
    """A SQLite that was built with SQLITE_OMIT_AUTHORIZATION hands extensions a null pointer instead of sqlite3_set_authorizer()."""
    shutil.copy(EXTENSION + ".so", tmp_path / "other.so")  # a second library, which takes its own functions of SQLite
    extension, kept = ctypes.CDLL(str(tmp_path / "other.so")), []
    authorizer = ctypes.cast(LIBRARY.sqlite3_set_authorizer, ctypes.c_void_p).value

    def start(db, api):
        if not kept:
            functions = ctypes.cast(api, ctypes.POINTER(ctypes.c_void_p))
            kept.append((ctypes.c_void_p * 284)(*functions[:284]))  # as many as SQLite 3.40 has
            assert list(kept[0]).count(authorizer) == 1
            kept[0][list(kept[0]).index(authorizer)] = None
            return extension.sqlite3_diffuse_init(ctypes.c_void_p(db), ctypes.byref(ctypes.c_void_p()), kept[0])
        return 0

    with in_every_connection(start):
        db = sqlite3.connect(":memory:", isolation_level=None)
    clinic(rows=[(1, 7, "a")], db=db)
    assert "no authorizer" in refused(db, "SELECT dp_release('t', 'sum', 'SELECT n FROM visit', '{\"clip\":50}')")
    assert "SQLITE_OMIT_AUTHORIZATION" in refused(db, "SELECT dp_guard('t')")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    db.close()
