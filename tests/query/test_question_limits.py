"""Tests the limits of a question (ext/query/query.h): steps and bytes of one unit, and seconds of the whole question."""

import os
import sqlite3
import subprocess
import sys
import time

import pytest

from conftest import EXTENSION, HELPERS, connect, one

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
LONG = "(SELECT sum(a.day > b.day) FROM visit a, visit b, visit c, visit d)"
HEAVY = "SELECT 1 FROM visit CROSS JOIN ward WHERE beds < minutes AND minutes < beds"


def clinic(path=":memory:", rows=20000, wards=3000):
    db = connect(path)
    db.executescript("CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, day INT, minutes INT, note BLOB); CREATE TABLE ward(name TEXT, beds INT)")
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    db.execute(f"INSERT INTO visit {numbers} SELECT i, i % 50, i % 365, i % 60, NULL FROM n", (rows,))
    db.execute(f"INSERT INTO ward {numbers} SELECT 'w' || i, i % 60 FROM n", (wards,))
    for call in ["dp_init()", "dp_protect('visit', 'patient')", "dp_public('ward')", "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        one(db, "SELECT " + call)
    return db


@pytest.mark.plain
@pytest.mark.parametrize("sql, threads", [(ENDLESS + ", visit", 0), (f"SELECT {LONG} FROM visit LIMIT 1", 0), (HEAVY, 0), (HEAVY, 1)])
def test_a_question_ends_after_its_seconds(tmp_path, sql, threads):
    """The questions are evaluated by unit and in one statement, without a progress handler of the host. Each of them takes minutes. The
    limit is 0.4 seconds of time. A busy machine can delay the answer, which takes little more than 0.4 seconds of each thread's work:
    1.2 are allowed."""
    db = clinic(str(tmp_path / "db"))
    db.execute(f"PRAGMA threads = {threads}")
    spent = one(db, "SELECT count(*) FROM dp_charge")
    start, work = time.monotonic(), time.process_time()
    with pytest.raises(sqlite3.OperationalError, match=r"the question took longer than its limit of 0.4 seconds \(the charge stays\)"):
        db.execute("SELECT dp_release('t', 'sum', ?, '{\"clip\":9,\"name\":\"long\",\"steps\":1000000000000,\"seconds\":0.4}')", (sql,)).fetchall()
    assert time.monotonic() - start > 0.39 and time.process_time() - work < 1.2 * (1 + threads)
    assert one(db, "SELECT state FROM dp_release WHERE name = 'long'") == "failed"
    assert one(db, "SELECT count(*) FROM dp_charge") == spent + 1
    assert abs(one(db, "SELECT dp_release('t', 'count_distinct', 'SELECT 1 FROM visit', '{\"seconds\":6000}')") - 50) < 1


def test_a_question_within_its_seconds_is_not_disturbed():
    db = clinic(rows=100, wards=3)
    for _ in range(20):
        assert abs(one(db, "SELECT dp_release('t', 'sum', 'SELECT count(*) FROM visit LIMIT 1', '{\"clip\":9,\"seconds\":600.9}')") - 100) < 1


def test_a_question_that_has_ended_too_late_fails():
    """The question takes less time than the thread that watches the clock needs to start."""
    db = clinic(rows=4, wards=3)
    for _ in range(50):
        with pytest.raises(sqlite3.OperationalError, match="the question took longer than its limit of 1e-06 seconds"):
            db.execute("SELECT dp_release('t', 'sum', 'SELECT 1 FROM visit', '{\"clip\":9,\"seconds\":1e-6}')").fetchall()


def test_a_limit_of_memory_admits_as_many_columns_as_none():
    """SQLite admits expressions of 1000 terms, and the statement that leaves out long values names each column."""
    db, columns = connect(), [f"c{i}" for i in range(1200)]
    db.execute(f"CREATE TABLE visit(patient INT, {', '.join(columns)})")
    db.execute("INSERT INTO visit(patient, c7) VALUES (1, 2), (2, 3), (3, printf('%9999d', 4))")
    for call in ["dp_init()", "dp_protect('visit', 'patient')", "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        one(db, "SELECT " + call)
    largest = [f"max({', '.join(f'ifnull({name}, 0)' for name in columns[i:i + 100])})" for i in range(0, 1200, 100)]
    question = f"SELECT {' + '.join(largest)} FROM visit LIMIT 1"
    for options, exact in [('{"clip":9}', 9), ('{"clip":9,"bytes":9000000}', 5)]:
        assert abs(one(db, "SELECT dp_release('t', 'sum', ?, ?)", question, options) - exact) < 1


MEMORY = """
import resource, sqlite3, sys
db = sqlite3.connect(sys.argv[2], isolation_level=None)
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
db.execute("SELECT dp_version()").fetchall()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
answer = db.execute("SELECT dp_release('t', 'sum', ?, '{\\"clip\\":10,\\"bytes\\":16000000,\\"steps\\":100000000}')", (sys.argv[3],)).fetchone()[0]
print(answer, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {})"
# Each question gives 1 for everybody but patient 1, whose evaluation needs more than 16 MB.
DEMANDING = {
    "rows of the unit": "SELECT count(DISTINCT note) > 0 FROM visit",
    "a sorter": f"{NUMBERS.format('(SELECT iif(max(patient) = 1, 60000, 1) FROM visit)')} SELECT count(*) > 0 FROM (SELECT 1 FROM n GROUP BY printf('%900d', i % 59999))",
    "a temporary table": f"{NUMBERS.format('(SELECT iif(max(patient) = 1, 60000, 1) FROM visit)')} SELECT count(*) > 0 FROM (SELECT DISTINCT printf('%900d', i) FROM n)",
    "a window": f"{NUMBERS.format('(SELECT iif(max(patient) = 1, 60000, 1) FROM visit)')} SELECT max(m) > 0 FROM (SELECT length(max(x) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS m FROM (SELECT i, printf('%900d', i) AS x FROM n))",
    "results": f"{NUMBERS.format('(SELECT iif(max(patient) = 1, 60000, 1) FROM visit)')} SELECT printf('%0900d', 1) FROM n",
    "values": "SELECT length(" + " || ".join(f"'{i}'" for i in range(9)) + " || printf('%.*c', iif(max(patient) = 1, 900000, 9), 'x')) > 0 FROM visit",
}


@pytest.mark.plain
@pytest.mark.parametrize("what", DEMANDING)
def test_a_unit_that_needs_more_memory_contributes_nothing(tmp_path, what):
    """The unit is dropped, the memory stays bounded, and all other units count."""
    path = str(tmp_path / "db")
    db = clinic(path, rows=100, wards=3)
    if what == "rows of the unit":
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) INSERT INTO visit(patient, note) SELECT 1, zeroblob(8000000) FROM n")
        db.execute("UPDATE visit SET note = x'00' WHERE note IS NULL")
    db.close()
    run = subprocess.run([sys.executable, "-c", MEMORY, EXTENSION, path, DEMANDING[what]], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    answer, megabytes = run.stdout.split()
    assert abs(float(answer) - 49) < 0.5 and int(megabytes) < 80, run.stdout


def test_limits_of_the_host_decide_nothing():
    """A long value of one person does not fail the question, on any path, and the host's limits are as before."""
    db = clinic(rows=100, wards=3)
    db.execute("UPDATE visit SET note = zeroblob(200000) WHERE id = 7")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100000)
    db.setlimit(sqlite3.SQLITE_LIMIT_VDBE_OP, 100)
    db.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, 20)
    db.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 12)
    with pytest.raises(sqlite3.DataError):
        db.execute("SELECT note FROM visit WHERE id = 7 ORDER BY note").fetchall()
    for sql in ("SELECT ifnull(length(note), 1) > 0 FROM visit", "SELECT ifnull(length(note), 1) > 0 FROM visit LIMIT -1",
                "SELECT count(DISTINCT ifnull(note, 1)) FROM visit GROUP BY id"):
        assert abs(one(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":10}')", sql) - 100) < 0.5
    assert db.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == 100000 and db.getlimit(sqlite3.SQLITE_LIMIT_COLUMN) == 20


@pytest.mark.plain
def test_a_build_without_progress_callbacks_answers_one_loop(tmp_path):
    """As better-sqlite3 is built. The faked API table stays in the library, so this runs in a process of its own."""
    source = (HELPERS / "capture.c").read_text().replace("old.libversion_number = old_version;", "(void)old_version, old.progress_handler = 0;")
    (tmp_path / "capture.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "capture.c"), "-o", str(tmp_path / "capture.so")], check=True)
    clinic(str(tmp_path / "db"), rows=100, wards=3).close()
    ask = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[2], isolation_level=None)
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
spent = db.execute("SELECT count(*) FROM dp_charge").fetchone()
for sql in ("SELECT 1 FROM visit WHERE id <= 50", "SELECT 1 FROM visit JOIN ward ON ward.beds = visit.minutes", "SELECT rowid > 0 FROM visit"):
    print(db.execute("SELECT dp_release('t', 'sum', ?, '{\\"clip\\":100,\\"steps\\":1000}')", (sql,)).fetchone()[0])
print(db.execute("SELECT count(*) FROM dp_charge").fetchone()[0] - spent[0])
for sql in ("SELECT count(*) FROM visit", "SELECT 1 FROM visit a JOIN visit b"):
    try: db.execute("SELECT dp_release('t', 'sum', ?, '{\\"clip\\":1}')", (sql,)).fetchall()
    except sqlite3.OperationalError as error: print(error)
print(db.execute("SELECT count(*) FROM dp_charge").fetchone()[0] - spent[0])
"""
    run = subprocess.run([sys.executable, "-c", ask, str(tmp_path / "capture.so"), str(tmp_path / "db")], capture_output=True, text=True,
                         env={**os.environ, "DIFFUSE": EXTENSION + ".so"})
    assert run.returncode == 0, run.stderr
    loop, join, rowid, charges, first, second, after = run.stdout.splitlines()
    assert abs(float(loop) - 50) < 1 and abs(float(join) - 6) < 1 and abs(float(rowid) - 100) < 1 and charges == after == "3"
    for message in (first, second):
        assert message.startswith("dp_release: this SQLite was built without progress callbacks, so only a question row by row")


def test_a_misspelt_column_in_double_quotes_is_an_error():
    db = clinic(rows=100, wards=3)
    db.execute('CREATE VIEW wrong AS SELECT "minuets" AS m FROM visit')
    spent = one(db, "SELECT count(*) FROM dp_charge")
    for sql in ('SELECT "minuets" FROM visit', 'SELECT 1 FROM visit WHERE minutes > "minuets"', 'SELECT m FROM wrong', 'SELECT "minuets" FROM visit LIMIT 1'):
        with pytest.raises(sqlite3.OperationalError, match='no such column: "?minuets'):
            db.execute("SELECT dp_release('t', 'sum', ?, '{\"clip\":9}')", (sql,)).fetchall()
    assert one(db, "SELECT count(*) FROM dp_charge") == spent
    assert abs(one(db, "SELECT dp_release('t', 'sum', 'SELECT \"minutes\" > 0 FROM visit', '{\"clip\":9}')") - 99) < 0.9


@pytest.mark.parametrize("name, equal", [("NOCASE", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower())),
                                         ("NOCASE", lambda a, b: (a > b) - (a < b)),
                                         ("RTRIM", lambda a, b: (a.strip() > b.strip()) - (a.strip() < b.strip())),
                                         ("BINARY", lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))])
def test_a_collation_of_the_application_is_refused(name, equal):
    """Lower case of all of Unicode, no folding at all, spaces on both sides, and BINARY that ignores case."""
    db = clinic(rows=100, wards=3)
    db.create_collation(name, equal)
    for sql in ("SELECT dp_release('t', 'sum', 'SELECT 1 FROM visit', '{\"clip\":9}')", "SELECT dp_release('t', 'sum', 'SELECT 1 FROM visit LIMIT 1', '{\"clip\":9}')",
                "SELECT dp_sum('t', minutes, 9) FROM visit"):
        with pytest.raises(sqlite3.OperationalError, match=f"the application has replaced SQLite's collation {name}"):
            db.execute(sql).fetchall()
    db.create_collation(name, None)


def test_an_aggregate_of_a_misspelt_column_in_double_quotes_is_refused():
    db = clinic(rows=100, wards=3)
    spent = one(db, "SELECT count(*) FROM dp_charge")
    for sql in ("""SELECT dp_sum('t', "minuets", 9) FROM visit""", """SELECT dp_sum('t', "minuets", 9) FROM visit WHERE 'minuets' <> day""",
                """SELECT dp_sum('t', [minutes], 9) /* " */ FROM visit WHERE day < "minuets" AND 'it''s "' <> 'minuets' -- 'minuets'""",
                """SELECT dp_sum('t', minutes, 9) FROM visit WHERE day < "da""y" """):
        with pytest.raises(sqlite3.OperationalError, match='no such column: "?(minuets|da"+y)'):
            db.execute(sql).fetchall()
    assert one(db, "SELECT count(*) FROM dp_charge") == spent
    waiting = db.execute('SELECT "text" FROM visit')  # another statement that waits between its rows does not matter
    assert waiting.fetchone() == ("text",)
    for sql in ("""SELECT dp_sum('t', "minutes" > 0, 9) AS "the sum" FROM "visit" """, """SELECT dp_sum('t', minutes > 0, 9) AS "x" FROM visit WHERE 'x' <> 'y' -- "t\"""",
                """SELECT dp_sum('t', minutes > 0, 9) AS "it`s ""x\""" FROM visit AS "v`w" """):
        assert abs(one(db, sql) - 99) < 0.9
