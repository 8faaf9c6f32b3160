"""Tests that an answer is the answer to what was asked: a name stands for one statement, a statement without a name makes a
release once, and a batch says what it has read from the data."""

import contextlib
import json
import sqlite3

import pytest

from conftest import one, refused

ROWS = "SELECT dp_sum('region', minutes, 20, 'a') FROM visits WHERE minutes > 1"
STORED = "SELECT minutes FROM visits WHERE minutes > 1"


def charges(db):
    return one(db, "SELECT count(*) FROM dp_charge")


@pytest.fixture
def asked(db):
    """The value of the release 'a'."""
    return one(db, ROWS)


# ---- the statement around an aggregate ------------------------------------------------------------

OTHERS = [
    "SELECT dp_sum('region', minutes, 20, 'a') FROM visits WHERE minutes > 2",
    "SELECT dp_sum('region', minutes, 20, 'a') FROM visits",
    "SELECT dp_sum('region', minutes, 20, 'a') FROM archive WHERE minutes > 1",
    "SELECT dp_sum('region', minutes + 1, 20, 'a') FROM visits WHERE minutes > 1",
    "SELECT dp_sum('region', minutes, 20, 'a') FILTER (WHERE minutes > 3) FROM visits WHERE minutes > 1",
    "SELECT dp_sum('public', minutes, 20, '{\"name\":\"a\"}') FROM visits WHERE minutes > 2",
    "SELECT dp_sum('clinic', minutes, 20, '{\"name\":\"a\",\"refine\":true}') FROM visits WHERE minutes > 2",
    "WITH visits AS (SELECT * FROM archive) SELECT dp_sum('region', minutes, 20, 'a') FROM visits WHERE minutes > 1",
]


@pytest.mark.alarm(0)
@pytest.mark.parametrize("sql", OTHERS)
def test_a_name_does_not_answer_another_statement(db, asked, sql):
    db.execute("CREATE TABLE archive AS SELECT * FROM visits")
    one(db, "SELECT dp_protect('archive', 'patient')")
    before = charges(db)
    message = refused(db, sql)
    assert message == f"dp_sum: release 'a' exists with another query: {STORED} (choose another name)"
    assert charges(db) == before and one(db, ROWS) == asked


@pytest.mark.alarm(0)
def test_a_name_answers_the_same_statement_at_any_tier(db, asked):
    """Layout, comments, the tier and the way in which parameters are written do not matter. Bound values count as if they stood in
    the text."""
    same = ["  /* again */ SELECT dp_sum( 'region' /* , */, minutes, 20,\n  'a')\nFROM visits -- all\nWHERE minutes > 1 ; ",
            "SELECT dp_sum('region',minutes,2e1,'a')FROM visits WHERE minutes>1",
            "SELECT dp_sum(('region'), minutes, 20, '{\"name\": \"a\"}') FROM visits WHERE minutes > 1"]
    for sql in same:
        assert one(db, sql) == asked
    assert one(db, "SELECT dp_sum(?, minutes, ?, ?) FROM visits WHERE minutes > :least", "region", 20, "a", 1) == asked
    before = charges(db)
    assert one(db, "SELECT dp_diffuse('a', 'public')") == one(db, ROWS.replace("region", "public")) != asked
    assert charges(db) == before + 1
    finer = one(db, ROWS.replace("'region'", "'clinic'").replace("'a'", "'{\"name\":\"a\",\"refine\":true}'"))
    assert one(db, ROWS.replace("region", "clinic")) == finer and charges(db) == before + 2
    assert db.execute("SELECT sql, statement FROM dp_release").fetchall() == [(STORED, None)]
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.alarm(0)
@pytest.mark.parametrize("terms", ["ORDER BY ?", "GROUP BY ?", "ORDER BY day, ?", "GROUP BY (?), day", "ORDER BY -?", "ORDER BY max(minutes, 1), + (?)"])
def test_a_bound_number_is_no_place_of_a_column(db, terms):
    """In plain SQLite it is a constant, and the same number in the text would be the first column."""
    before = charges(db)
    message = refused(db, f"SELECT dp_sum('region', minutes, 20, 'p') FROM (SELECT minutes FROM (SELECT *, 1 AS day FROM visits) {terms})", 1)
    assert "would become the place of a column" in message and charges(db) == before


@pytest.mark.alarm(0)
@pytest.mark.parametrize("terms", ["ORDER BY minutes > ?", "ORDER BY max(minutes, ?), minutes", "ORDER BY minutes LIMIT 5, ?", "GROUP BY minutes HAVING count(*) > ?"])
def test_a_bound_number_in_an_expression_is_a_value(db, terms):
    asked = f"SELECT minutes FROM visits {terms}"
    value = one(db, f"SELECT dp_sum('region', minutes, 20, 'p') FROM ({asked})", 1)
    assert value == one(db, f"SELECT dp_sum('region', minutes, 20, 'p') FROM ({asked.replace('?', '1')})")


@pytest.mark.alarm(0)
def test_bound_values_are_part_of_the_statement(db):
    sql = "SELECT dp_count('region', iif(ward IN (?, ?), 1, NULL), 1, 'n') FROM moved WHERE note IS NOT ?"
    db.execute("CREATE TABLE moved(patient INTEGER, ward, note)")
    db.executemany("INSERT INTO moved VALUES (?, 'it''s A', NULL)", [(i,) for i in range(9)])
    one(db, "SELECT dp_protect('moved', 'patient')")
    value = one(db, sql, "it's A", None, b"\x00'\xff")
    assert one(db, sql, "it's A", None, b"\x00'\xff") == value
    for other in [("it's B", None, b"\x00'\xff"), ("it's A", "", b"\x00'\xff"), ("it's A", None, b"\x00'\xfe"), ("it's A", None, "x")]:
        assert "another query" in refused(db, sql, *other)
    assert one(db, "SELECT sql FROM dp_release") == (
        "SELECT iif(ward IN ('it''s A', NULL), 1, NULL) FROM moved WHERE note IS NOT x'0027ff'")


@pytest.mark.alarm(0)
def test_names_cannot_change_places(db):
    """Each call is a question of its own, whatever stands beside it."""
    calls = "SELECT dp_sum('region', minutes, 20, '{}'), dp_sum('region', minutes + 1, 20, '{}') FROM visits"
    values = db.execute(calls.format("a", "b")).fetchall()
    assert db.execute(calls.format('{"name":"a"}', "b")).fetchall() == values
    assert one(db, "SELECT dp_sum('region', minutes, 20, 'a') FROM visits") == values[0][0]
    for first, second in [("b", "a"), ('{"name":"b"}', '{"name":"a"}'), ("b", '{"name":"a"}')]:
        assert "another query" in refused(db, calls.format(first, second))


@pytest.mark.alarm(0)
def test_questions_and_aggregates_are_the_same(db, asked):
    ask = "SELECT dp_release('region', 'sum', '%s', '{\"name\":\"%s\",\"clip\":20}')"
    assert one(db, ask % (STORED, "a")) == asked
    assert refused(db, ask % ("SELECT minutes FROM visits", "a")).endswith(f"another query: {STORED} (choose another name)")
    value = one(db, ask % ("SELECT minutes FROM visits", "q"))
    assert one(db, "SELECT dp_sum('region', minutes, 20, 'q') FROM visits") == value
    assert "another query: SELECT minutes FROM visits (" in refused(db, ROWS.replace("'a'", "'q'"))
    batch = [{"tier": "region", "kind": "sum", "sql": "SELECT minutes FROM visits", "options": {"name": "a", "clip": 20}}]
    for function in ("dp_batch", "dp_plan"):
        assert "another query" in refused(db, f"SELECT {function}(?)", json.dumps(batch))
    # A plan without a question is a plan of whatever the name stands for.
    assert one(db, "SELECT dp_plan('public', 'sum', 20, 'a') IS NOT NULL")


# ---- a release without a name ---------------------------------------------------------------------

COUNT = "dp_release('clinic', 'count', 'SELECT minutes FROM visits', '{\"clip\":1}')"
ONCE = [
    "SELECT {}", "VALUES ({})", "SELECT 1, abs({})", "SELECT * FROM (SELECT {} AS r) LIMIT 10",
    "INSERT INTO kept SELECT 'a', {}", "INSERT INTO kept VALUES ('a', {})",
    "CREATE TABLE made AS SELECT {}", "SELECT key, value FROM json_each({})", "SELECT (SELECT {})",
    "SELECT (SELECT max(x) FROM kept), {}",
]
REFUSED = [
    "SELECT {} WHERE 1", "SELECT r, r FROM (SELECT {} AS r LIMIT 1)",
    "SELECT {} FROM visits", "SELECT {} FROM visits LIMIT 1", "SELECT {} AS r WHERE r > 0", "SELECT {} AS r FROM (SELECT 1) WHERE r > 0",
    "SELECT {0}, {0}", "SELECT count(r) FROM (SELECT {} AS r)", "SELECT count(*) FROM json_each({})", "SELECT max({}) FROM visits",
    "SELECT (SELECT {}) FROM visits WHERE minutes > 1", "SELECT {} FROM visits ORDER BY minutes", "SELECT minutes, {} FROM visits GROUP BY minutes",
    "SELECT {}, row_number() OVER () FROM visits", "UPDATE kept SET x = {}", "INSERT INTO kept SELECT 'a', {} FROM visits",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i, {} FROM n",
    "SELECT {} FROM (SELECT 1)", "SELECT minutes FROM visits WHERE {} > minutes",
]


@pytest.mark.alarm(0)
@pytest.mark.parametrize("sql", ONCE)
def test_a_release_without_a_name_is_made_once(db, sql):
    db.execute("CREATE TABLE kept(name, x)")
    db.execute(sql.format(COUNT)).fetchall()
    assert charges(db) == 1 and one(db, "SELECT state FROM dp_release") == "released"


@pytest.mark.alarm(0)
@pytest.mark.parametrize("sql", REFUSED)
def test_a_release_that_could_be_made_twice_needs_a_name(db, sql):
    """Without a name nothing is charged; the same statement with a name makes the release once."""
    db.execute("CREATE TABLE kept(name, x)")
    db.execute("INSERT INTO kept VALUES (1, 1)")
    message = refused(db, sql.format(COUNT))
    assert "must name the release" in message and "because the statement may make it more than once" in message and charges(db) == 0
    rows = db.execute(sql.format(COUNT.replace('"clip"', '"name":"n","clip"'))).fetchall()
    assert charges(db) == 1 or not rows


@pytest.mark.alarm(0)
def test_a_count_of_the_rows_charges_nothing(db):
    """Some tools count the rows of a statement before they run it. New versions of SQLite do not even call dp_release() then."""
    with contextlib.suppress(sqlite3.OperationalError):
        assert one(db, f"SELECT count(*) FROM (SELECT {COUNT})") == 1
    assert charges(db) == 0


@pytest.mark.alarm(0)
def test_a_statement_that_runs_again_makes_the_release_again(db):
    for run_ in range(1, 4):
        one(db, "SELECT " + COUNT)
        assert charges(db) == run_


@pytest.mark.alarm(0)
def test_an_aggregate_without_a_name_is_made_once(db):
    """In the outermost SELECT, SQLite executes a call once. In a subquery it may do so more than once."""
    call = "dp_sum('clinic', minutes, 5)"
    before = charges(db)
    db.execute(f"SELECT round({call}) FROM visits").fetchall()
    assert charges(db) == before + 1
    for sql in (f"SELECT count(*) FROM (SELECT {call} FROM visits)", f"SELECT * FROM (SELECT {call} AS r FROM visits) WHERE r > 0"):
        with contextlib.suppress(sqlite3.OperationalError):
            assert db.execute(sql).fetchall() == [(1,)]  # SQLite may leave the call out
    assert "give each a name of its own" in refused(db, f"SELECT {call}, dp_sum('clinic', 1, 5) FROM visits")
    assert charges(db) == before + 1


# ---- one list for plans and batches ---------------------------------------------------------------

GOOD = {"tier": "clinic", "kind": "count", "sql": "SELECT 1 FROM visits", "options": {"name": "good", "clip": 1}, "diffuse": ["public"]}
WRONG = [
    {"sql": "DELETE FROM visits"}, {"sql": "SELECT no_such FROM visits"}, {"sql": "SELECT 1, 2 FROM visits"}, {"sql": "SELECT ("},
    {"sql": "SELECT 1 FROM unknown"}, {"sql": None}, {"kind": "mean"}, {"tier": "village"}, {"diffuse": ["clinic"]}, {"diffuse": ["village"]},
    {"options": {"name": "bad", "clip": 1, "refine": True}}, {"options": {"clip": 1}}, {"options": {"name": "good", "clip": 1}},
    {"options": {"name": "bad", "clip": 1, "colour": 1}}, {"options": {"name": "bad", "clip": 1, "half_width": 0.1}}, {"colour": 1},
    {"kind": "group_count", "options": {"name": "bad", "clip": 1, "keys": 5}},
]


@pytest.mark.alarm(0)
@pytest.mark.parametrize("wrong", WRONG, ids=[json.dumps(w) for w in WRONG])
def test_a_plan_refuses_the_list_that_a_batch_refuses(db, wrong):
    elements = json.dumps([GOOD, {**GOOD, "options": {"name": "bad", "clip": 1}, **wrong}])
    planned, batched = (refused(db, f"SELECT {f}(?)", elements) for f in ("dp_plan", "dp_batch"))
    assert planned.startswith("dp_plan: plan 1 of the array: ") and batched.startswith("dp_batch: release 1 of the batch: ")
    assert planned.split(": ", 2)[2] == batched.split(": ", 2)[2] and charges(db) == 0


@pytest.mark.alarm(0)
def test_one_list_serves_plan_and_batch(db):
    elements = [GOOD, {"tier": "region", "kind": "avg", "sql": "SELECT minutes FROM visits",
                       "options": {"name": "average", "lo": 0, "hi": 10, "rows": 100, "unit": "minutes", "half_width": 400}}]
    plan = json.loads(one(db, "SELECT dp_plan(?)", json.dumps(elements)))
    assert "400 minutes around the average" in plan["plans"][1]["summary"] and charges(db) == 0
    one(db, "SELECT dp_batch(?)", json.dumps(elements))
    (weight,) = db.execute("SELECT weight FROM dp_release WHERE name = 'average'").fetchone()
    assert weight == plan["plans"][1]["weight"] and 0 < weight < 1
    assert [i["outcome"] for i in json.loads(one(db, "SELECT dp_batch(?)", json.dumps(elements)))] == ["replayed", "replayed"]


@pytest.mark.alarm(0)
def test_a_plan_runs_no_question(db):
    """A question that would run for ever, and rows that nobody may read."""
    reads = []
    db.set_authorizer(lambda action, table, column, *_: reads.append((table, column)) or sqlite3.SQLITE_OK)
    forever = {**GOOD, "sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n, visits"}
    assert one(db, "SELECT dp_plan(?) IS NOT NULL", json.dumps([forever]))
    db.set_authorizer(None)
    assert charges(db) == 0 and one(db, "SELECT count(*) FROM dp_release") == 0


# ---- corrected data -------------------------------------------------------------------------------


@pytest.mark.alarm(0)
def test_the_recipe_for_corrected_data(db):
    """A batch says that it has replayed the old figure. After dp_discard() it makes the figure again, for a new charge, and the
    reports of those who saw the old one say so."""
    outcome = "SELECT json_extract(dp_batch(?), '$[0].outcome')"
    elements = json.dumps([GOOD])
    assert one(db, outcome, elements) == "made"
    db.execute("DELETE FROM visits WHERE minutes > 3")
    before = charges(db)
    assert one(db, outcome, elements) == "replayed" and charges(db) == before
    (day,) = db.execute("SELECT date(published_at) FROM dp_publication LIMIT 1").fetchone()
    mark = f"corrects a figure of {day}"
    assert mark not in one(db, "SELECT dp_report()")
    one(db, "SELECT dp_discard('good')")
    assert one(db, outcome, elements) == "made" and charges(db) == 2 * before
    for report in ("SELECT dp_report()", "SELECT dp_report('clinic')", "SELECT dp_report('public')"):
        assert mark in one(db, report)


@pytest.mark.alarm(0)
def test_only_those_who_saw_the_old_figure_are_told(db):
    """The page of an outer tier does not show that an inner tier had an earlier figure, nor that a release failed."""
    elements = [{**GOOD, "diffuse": []}]
    one(db, "SELECT dp_batch(?)", json.dumps(elements))
    one(db, "SELECT dp_discard('good')")
    one(db, "SELECT dp_batch(?)", json.dumps([GOOD]))
    assert "corrects a figure" in one(db, "SELECT dp_report('clinic')")
    assert "corrects a figure" not in one(db, "SELECT dp_report('public')")
