"""Notices about questions that mean something else than in a plain SELECT (ext/query/notices.c): in dp_plan() before the charge, and in
the figure of every answer. They depend on the text and the schema, never on a row."""

import itertools
import json
import sqlite3

import pytest

from conftest import connect, make_ledger, one, refused

SCHEMA = """CREATE TABLE trip(id INTEGER PRIMARY KEY, plane, city TEXT, km, day DATE, at DATETIME, cost REAL, words VARCHAR(9));
    CREATE TABLE ward(name, beds); CREATE TABLE names(name);
    CREATE VIEW cities AS SELECT DISTINCT plane, city FROM trip; CREATE VIEW far AS SELECT plane, city AS c, km FROM trip WHERE km > 3;"""
ROWS = [(plane, "abc"[(plane + i) % 3], plane * i, "2024-01-05", "2024-01-05 10:00", 1.5, "x") for plane in range(4) for i in range(1 + plane)]


def planes(rows=ROWS, terms='{"unit":"plane"}'):
    db = connect()
    db.executescript(SCHEMA)
    db.executemany("INSERT INTO trip(plane, city, km, day, at, cost, words) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    make_ledger(db, terms, "trip" if "row" in terms else "trip, plane")
    one(db, "SELECT dp_public('ward', 'names')")
    one(db, "SELECT dp_tier('t', 1, 1e9, 1e-6)")
    return db


def notice(db, sql, kind="sum", **more):
    options = {"clip": 5, "sql": sql, **more}
    return json.loads(one(db, "SELECT dp_plan('t', ?, NULL, ?)", kind, json.dumps(options))).get("notice")


SEEN = [
    ("SELECT DISTINCT km FROM trip", "DISTINCT"), ("SELECT count(DISTINCT city) FROM trip", "DISTINCT"), ("SELECT km FROM trip LIMIT 10", "LIMIT"),
    ("SELECT km FROM trip ORDER BY km LIMIT 3 OFFSET 1", "LIMIT"), ("SELECT sum(km) FROM trip GROUP BY city HAVING count(*) > 9", "HAVING"),
    ("SELECT km FROM trip UNION SELECT beds FROM ward", "UNION, EXCEPT and INTERSECT"), ("SELECT km FROM trip EXCEPT SELECT beds FROM ward", "UNION, EXCEPT and INTERSECT"),
    ("SELECT km - lag(km) OVER (ORDER BY day) FROM trip", "a window"), ("SELECT rank() OVER w FROM trip WINDOW w AS (ORDER BY km)", "a window"),
    ("SELECT km FROM trip WHERE km > (SELECT avg(km) FROM trip)", "a subquery"), ("SELECT (SELECT max(t.km) FROM main.trip t) FROM trip", "a subquery"),
    ("SELECT km FROM trip WHERE EXISTS (SELECT 1 FROM trip t WHERE t.km > trip.km)", "a subquery"), ("SELECT km FROM trip WHERE city IN (SELECT c FROM far)", "a subquery"),
    ("SELECT km FROM trip, (SELECT 1 AS one) WHERE km = (SELECT max(km) FROM \"trip\")", "a subquery"),
    ("WITH a AS (SELECT city FROM trip) SELECT km FROM trip WHERE city IN a", "a subquery"),
    ("SELECT a.km FROM trip a JOIN trip b USING (city)", "a join of a table with itself"), ("SELECT a.km FROM trip a, trip b", "a join of a table with itself"),
    ("SELECT a.km FROM (trip a JOIN trip b)", "a join of a table with itself"), ("SELECT a.km FROM [trip] a, main.\"TRIP\" b", "a join of a table with itself"),
    ("SELECT a.km FROM (SELECT * FROM trip) a JOIN (SELECT * FROM trip) b", "a join of a table with itself"), ("SELECT a.km FROM far a JOIN far b", "a join of a table with itself"),
    ("WITH a AS (SELECT * FROM trip) SELECT a.km FROM a JOIN a AS b", "a join of a table with itself"), ("SELECT length(city) FROM cities", "DISTINCT"),
    ("SELECT DISTINCT km FROM trip WHERE km > (SELECT avg(km) FROM trip) LIMIT 2", "DISTINCT, LIMIT and a subquery")]
UNSEEN = [
    "SELECT km FROM trip", "SELECT sum(km) FROM trip", "SELECT sum(km) FROM trip GROUP BY city", "SELECT km FROM trip UNION ALL SELECT km FROM trip", "SELECT km FROM far",
    "SELECT km FROM trip WHERE city IN (SELECT name FROM ward)", "SELECT km FROM trip WHERE city IN names", "SELECT km FROM trip WHERE km > (SELECT avg(beds) FROM ward)",
    "SELECT km FROM trip, ward a, ward b", "SELECT km FROM trip JOIN ward ON city = name", "SELECT km FROM (SELECT km FROM trip)", "SELECT km FROM ((SELECT km FROM trip))",
    "SELECT km FROM trip, (SELECT name FROM ward)", "SELECT km AS \"LIMIT\" FROM trip WHERE city <> 'DISTINCT (SELECT 1 FROM trip)' /* HAVING */ -- OVER ()",
    "SELECT km FROM trip, ward WHERE city IS DISTINCT FROM name", "WITH a AS (SELECT * FROM trip), b AS (SELECT * FROM trip) SELECT km FROM a",
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT km FROM trip, n", "SELECT km FROM trip, json_each('[1]') a, json_each('[2]') b"]


@pytest.mark.parametrize("sql, seer", SEEN)
@pytest.mark.parametrize("rows", [[], ROWS], ids=["empty", "full"])
def test_what_sees_one_unit_is_named(sql, seer, rows):
    verb = "see" if " and " in seer else "sees"
    assert notice(planes(rows), sql) == f"{seer} {verb} one plane's rows at a time: the answer is made of the results of each plane"


@pytest.mark.parametrize("sql", UNSEEN)
def test_other_questions_have_no_notice(sql):
    assert notice(planes(), sql.replace(" IS DISTINCT FROM", " IS NOT") if sqlite3.sqlite_version_info < (3, 39) else sql) is None


def by_plane(sql):
    """Evaluates a question for each plane alone, with plain SQLite."""
    found = []
    for plane in range(4):
        own = sqlite3.connect(":memory:")
        own.executescript(SCHEMA)
        own.executemany("INSERT INTO trip(plane, city, km, day, at, cost, words) VALUES (?, ?, ?, ?, ?, ?, ?)", [row for row in ROWS if row[0] == plane])
        found += own.execute(sql).fetchall()
    return sorted(found, key=str)


WHATS = ["km", "DISTINCT city", "a.km", "count(*) OVER ()"]
FROMS = ["trip", "trip AS a", "trip a, trip b", "far a", "cities a", "(SELECT * FROM trip) a", "(SELECT DISTINCT km, city FROM trip) a", "trip a JOIN ward ON city = name"]
ENDS = ["", "WHERE km > (SELECT avg(km) FROM trip)", "WHERE city IN (SELECT name FROM ward)", "ORDER BY 1 LIMIT 2", "UNION SELECT 2 FROM trip", "UNION ALL SELECT 2 FROM trip"]


def test_a_question_that_differs_from_the_plain_select_has_a_notice():
    """All combinations that compile: where plain SQLite over all rows gives other rows than SQLite for each plane, there is a notice."""
    db, plain, differ, same = planes(), sqlite3.connect(":memory:"), 0, 0
    plain.executescript(SCHEMA)
    plain.executemany("INSERT INTO trip(plane, city, km, day, at, cost, words) VALUES (?, ?, ?, ?, ?, ?, ?)", ROWS)
    for what, source, end in itertools.product(WHATS, FROMS, ENDS):
        sql = f"SELECT {what} FROM {source} {end}"
        try:
            rows = sorted(plain.execute(sql).fetchall(), key=str)
        except sqlite3.Error:
            continue
        said = notice(db, sql, "count")
        if rows != by_plane(sql):
            differ += 1
            assert said and said.endswith("this counts the results of each plane"), sql
        same += said is None
    assert differ > 60 and same > 15


@pytest.mark.parametrize("kind, more, end", [
    ("count", {}, "this counts the results of each plane"), ("count_distinct", {"clip": None}, "this counts planes with a result"),
    ("histogram", {"lo": 0, "hi": 9, "bins": 3}, "this counts the results of each plane"), ("avg", {"lo": 0, "hi": 9}, "the answer is made of the results of each plane")])
def test_the_kind_decides_the_end(kind, more, end):
    options = {key: value for key, value in {"clip": 5, **more, "sql": "SELECT DISTINCT km FROM trip"}.items() if value is not None}
    db = planes()
    assert json.loads(one(db, "SELECT dp_plan('t', ?, NULL, ?)", kind, json.dumps(options)))["notice"].endswith(": " + end)


def test_a_ledger_of_rows_says_row():
    db = planes(terms='{"protects":"row"}')
    assert notice(db, "SELECT km FROM trip WHERE km > (SELECT avg(km) FROM trip t)") == "a subquery sees one row at a time"


@pytest.mark.parametrize("column, type", [("city", "texts"), ("words", "texts"), ("day", "dates"), ("at", "dates"), ("cost", None), ("km", None), ("id", None)])
@pytest.mark.parametrize("kind, more", [("sum", {}), ("avg", {"lo": 0, "hi": 1}), ("median", {"lo": 0, "hi": 1}), ("histogram", {"lo": 0, "hi": 1, "bins": 2})])
def test_a_column_of_texts_is_named_where_numbers_are_needed(column, type, kind, more):
    db = planes()
    said = notice(db, f"SELECT {column} FROM trip", kind, **more)
    assert (f"from a column of {type}: " in said and said.count("as NULL") == 1) if type else said is None
    assert notice(db, f"SELECT length({column}) FROM trip", kind, **more) is None
    assert notice(db, f"SELECT {column} FROM trip", "count") is None
    assert notice(db, f"SELECT {column}, km FROM trip", "group_sum", keys=["a"]) is None  # the key may be a text


def test_plans_and_answers_say_it():
    db, sql = planes(), "SELECT DISTINCT city FROM trip"
    words = "DISTINCT sees one plane's rows at a time: this counts the results of each plane"
    charges = "SELECT count(*) FROM dp_charge"
    assert one(db, "SELECT dp_plan('t', 'count', 5, ?) ->> 'summary'", json.dumps({"sql": sql})).endswith("; " + words)
    batch = json.dumps([{"tier": "t", "kind": "count", "sql": sql, "options": {"name": "b", "clip": 5}}])
    assert json.loads(one(db, "SELECT dp_plan(?)", batch))["plans"][0]["notice"] == words
    assert one(db, charges) == 0
    figure = f"rows, at most 5 of each plane; {words}"
    assert db.execute("SELECT figure FROM dp_answer('t', 'count', ?, '{\"name\":\"a\",\"clip\":5}')", (sql,)).fetchall() == [(figure,)]
    one(db, "SELECT dp_batch(?)", batch)
    assert {row for (row,) in db.execute("SELECT figure FROM dp_value")} == {figure}
    assert one(db, "SELECT options ->> 'notice' FROM dp_release WHERE name = 'a'") == words
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_plan_finds_the_errors_of_its_question():
    db = planes()
    for sql, said in (("SELECT zzz FROM trip", "no such column: zzz"), ("SELECT km FROM tripp", "did you mean 'trip'?"), ("SELECT count(*) FROM trip", "adds up the numbers"),
                      ("SELECT km, city FROM trip", "sql must give 1 column")):
        assert said in refused(db, "SELECT dp_plan('t', 'count', 5, ?)", json.dumps({"sql": sql}))
    assert "sql must be the text of one SELECT" in refused(db, "SELECT dp_plan('t', 'count', 5, '{\"sql\":5}')")
