"""Compares random aggregates in a SELECT with the equal dp_release() and with plain SQLite over the rows of each unit in a database of
its own, to the last integer."""

import json
import os
import random
import shutil
import sqlite3

import pytest

import random_rows
from conftest import create, one, refused
from random_questions import integers, integers_by_hand, released

EACH = 100  # statements about one database
KINDS = {"sum": (("clip",), {"clip": 50}), "count": (("clip",), {"clip": 3}), "avg": (("lo", "hi"), {"lo": -10, "hi": 50, "clip": 4}),
         "count_distinct": ((), {}), "group_count": (("clip",), {"clip": 3, "keys": ["north", "south", "1", "0"]}),
         "group_sum": (("clip",), {"clip": 9, "keys": [0, 1, 5, "north"]}), "quantile": (("q", "lo", "hi"), {"q": 0.5, "lo": 0, "hi": 40, "clip": 3})}
COLUMNS = {"count_distinct": 0, "group_sum": 2}


def call(pick, kind, values, name):
    """A call of the aggregate with a name."""
    places, parameters = KINDS[kind]
    options = json.dumps({"name": name, **{k: v for k, v in parameters.items() if k not in places}}).replace("'", "''")
    function = pick.choice([f"dp_{kind}", f"DP_{kind}", f'"dp_{kind}"', f"[dp_{kind}]", f"dp_{kind} "])
    numbers = [pick.choice([f"{parameters[p]}", f"({parameters[p]} + 0)", f"{parameters[p]} /* , ) */"]) for p in places]
    arguments = [pick.choice(["'t'", "('t')"]), *values, *numbers, f"'{options}'"]
    return f"{function}({', '.join(arguments)})"


def statements(hospital, seed, count):
    """Yields a kind, a statement, the text of its question and the protected tables that it names."""
    pick = random.Random(f"aggregates {seed}")
    maker = random_rows.Rows(hospital, pick)
    plain = sqlite3.connect(":memory:")
    for sql in hospital.schema:
        plain.execute(sql)
    number = 0
    while number < count:
        kind = pick.choice(list(KINDS))
        source = maker.source()
        values = [maker.value() for _ in range(COLUMNS.get(kind, 1))]
        where, filters = maker.condition() if pick.random() < 0.5 else "", maker.condition() if pick.random() < 0.3 else ""
        if pick.random() < 0.2:
            where = f"{pick.choice(maker.columns)} IN (SELECT d FROM day)"
        conditions = " AND ".join(f"({c}\n)" for c in (where, filters) if c)
        question = f"SELECT {', '.join(values) or '1'} FROM {source}" + f" WHERE {conditions}" * bool(conditions)
        written = call(pick, kind, values, str(number)) + f" FILTER (WHERE {filters}\n)" * bool(filters)
        rest = f" FROM {source}" + f" WHERE {where}" * bool(where)
        form = pick.randrange(8)
        if form == 0:
            sql = f"SELECT CASE WHEN 1 THEN round(coalesce({written}, 1)) END /* dp_{kind}( */, 'dp_{kind}(' {rest}"
        elif form == 1 and not filters:  # with FILTER the other one may be the first that gets a row, and the noise
            sql = f"SELECT {written}, dp_var('t', 1, 0, 3, 'other {number}'){rest}"
        elif form == 2:
            sql = f"CREATE TABLE made{number} AS SELECT {written} AS x{rest}"
        elif form == 3 and not filters:
            few = ", ".join(f"{v} AS v{i}" for i, v in enumerate(values or ["1"]))
            inner = call(pick, kind, [f"v{i}" for i in range(len(values))], str(number))
            sql = f"WITH unused(a) AS (SELECT 1), w AS (SELECT {few}{rest}\n) SELECT {inner} FROM w"
        elif form == 4:
            sql = f"SELECT (SELECT {written}{rest}\n) AS x"
        elif form == 5 and not filters:
            few = ", ".join(f"{v} AS v{i}" for i, v in enumerate(values or ["1"]))
            inner = call(pick, kind, [f"v{i}" for i in range(len(values))], str(number))
            sql = f"SELECT {inner} FROM (SELECT {few}{rest}\n)"
        else:
            sql = f"{pick.choice(['SELECT', 'select ALL', '/* x */ SELECT'])} {written}{rest}"
        try:
            plain.execute(question).fetchall()
        except sqlite3.Error:
            continue
        yield kind, sql, question, {maker.table}
        number += 1
    plain.close()


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(int(os.environ.get("AGGREGATE_SEEDS", 3))))
def test_random_aggregates_have_one_answer(tmp_path, seed):
    """AGGREGATE_SEEDS=30 tries 3,000 statements."""
    whole, apart = str(tmp_path / "whole"), str(tmp_path / "apart")
    hospital = random_rows.Hospital(seed)
    units = hospital.fill(whole)
    asked = list(statements(hospital, seed, EACH))
    shutil.copy(whole, apart)
    answers = released(whole, hospital.policy, [sql for _, sql, _, _ in asked])
    questions = [(kind, KINDS[kind][1], question, tables) for kind, _, question, tables in asked]
    equal = integers(apart, hospital.policy, [question[:3] for question in questions])
    by_hand = integers_by_hand(str(tmp_path / "hand"), questions, units)
    wrong = [(item, a == b, b == c) for item, a, b, c in zip(asked, answers, equal, by_hand) if not a or not a == b == c]
    assert not wrong, (hospital.schema, len(wrong), wrong[:3])


# ---- bound values ----------------------------------------------------------------------------------------------------


BOUND = [0, -5, 2**63 - 1, -(2**63), None, "", "it's", "x'61'", "?", "-- a", "a\nb", "\u00e4\U0001f600", b"", b"\x00'\xff", "NULL", "1.5"]


@pytest.mark.alarm(0)
@pytest.mark.parametrize("value", BOUND, ids=repr)
def test_bound_values_are_written_into_the_question(db, value):
    """The question gives the value of the bound parameter to the last bit, wherever it stands."""
    for i, place in enumerate(["?", ":a", "@a", "$a", "?1", "$a::b(c)"]):
        given = {"a": value, "a::b(c)": value} if place[0] in ":@$" else (value,)
        sql = f"SELECT dp_count('clinic', iif(patient-{place} IS {place}, 1, 2), 5, 'n{i}') FROM visits WHERE {place} IS {place}" if place != "?" else (
            "SELECT dp_count('clinic', 1, 5, 'n0') FROM visits WHERE ? IS patient")
        db.execute(sql, given).fetchall()
        text = one(db, "SELECT sql FROM dp_release WHERE name = ?", f"n{i}")
        found = db.execute(text[text.index("WHERE"):].replace("WHERE ", "SELECT ").split(" IS ")[0]).fetchall()
        assert found == [(value,)] and type(found[0][0]) is type(value)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.alarm(0)
def test_bound_reals_are_exact_or_refused(db):
    """As a parameter of the call a real number is taken to its last bit. In the question it is refused: SQLite shows 15 digits."""
    clip = 0.1 + 0.2
    db.execute("SELECT dp_sum('clinic', minutes, ?, 'a') FROM visits", (clip,)).fetchall()
    assert json.loads(one(db, "SELECT options FROM dp_release"))["clip"] == clip
    for sql in ("SELECT dp_sum('clinic', minutes * ?, 5, 'b') FROM visits", "SELECT dp_sum('clinic', minutes, 5, 'b') FROM visits WHERE minutes > ?",
                "SELECT dp_sum('clinic', minutes, ? + 0, 'b') FROM visits", "SELECT dp_sum('clinic', minutes, ?, 'b') FROM visits WHERE 0"):
        assert "cannot be read to its last bit (write it into the text)" in refused(db, sql, clip)
    assert one(db, "SELECT count(*) FROM dp_charge") == 1


@pytest.mark.alarm(0)
def test_a_bound_text_counts_up_to_its_first_zero_byte(db):
    """As SQLite shows it. (No interface of SQLite gives the rest.) The ledger shows the question that was asked. A name must be whole."""
    db.execute("SELECT dp_count('clinic', 1, 5, 'n') FROM visits WHERE patient IS NOT ?", ("a\0b",)).fetchall()
    assert one(db, "SELECT sql FROM dp_release") == "SELECT 1 FROM visits WHERE patient IS NOT 'a'"
    assert "cannot find its call" in refused(db, "SELECT dp_count('clinic', 1, 5, ?) FROM visits", "n\0b")


# A statement, in which ? is bound, and its question.
EQUAL = [
    ("SELECT {} FROM visits WHERE patient IN (SELECT i FROM ward WHERE i IS NOT ?)", "SELECT minutes FROM visits WHERE patient IN (SELECT i FROM ward WHERE i IS NOT {})"),
    ("SELECT {} FROM visits JOIN ward ON i = patient AND name IS ?", "SELECT minutes FROM visits JOIN ward ON i = patient AND name IS {}"),
    ("SELECT {} FROM visits, exam WHERE exam.patient=visits.patient AND x IS NOT ?", "SELECT minutes FROM visits, exam WHERE exam.patient = visits.patient AND x IS NOT {}"),
    ("WITH w AS (SELECT * FROM visits WHERE patient IS NOT ?) SELECT {} FROM w", "WITH w AS (SELECT * FROM visits WHERE patient IS NOT {}) SELECT minutes FROM w"),
    ("SELECT {} FROM long WHERE minutes IS NOT ?", "SELECT minutes FROM long WHERE minutes IS NOT {}"),
    ("SELECT {} FILTER (WHERE patient IS NOT ?) FROM visits", "SELECT minutes FROM visits WHERE patient IS NOT {}"),
    ("SELECT {} FILTER (WHERE patient > 1) FROM visits WHERE patient < 9 OR patient IS ?", "SELECT minutes FROM visits WHERE (patient < 9 OR patient IS {}) AND (patient > 1)"),
    ("SELECT {} FROM visits WHERE 0 AND patient IS ?", "SELECT minutes FROM visits WHERE 0 AND patient IS {}"),
    ("SELECT {}, dp_avg('clinic', patient, 0, 9, 'other') FROM visits WHERE patient IS NOT ?", "SELECT minutes FROM visits WHERE patient IS NOT {}"),
    ("SELECT {}, dp_sum('clinic', patient, 9, 'other') FROM visits WHERE patient IS NOT ?", "SELECT minutes FROM visits WHERE patient IS NOT {}"),
    ("SELECT round(coalesce({}, 0), 3) FROM visits WHERE patient IS NOT ?", "SELECT minutes FROM visits WHERE patient IS NOT {}"),
    ("SELECT (SELECT {} FROM visits WHERE patient IS NOT ?)", "SELECT minutes FROM visits WHERE patient IS NOT {}"),
    ("INSERT INTO kept SELECT {} FROM visits WHERE patient IS NOT ?", "SELECT minutes FROM visits WHERE patient IS NOT {}"),
    ("INSERT INTO kept VALUES ((SELECT {} FROM visits WHERE patient IS NOT ?))", "SELECT minutes FROM visits WHERE patient IS NOT {}"),
    ("WITH w AS (SELECT 1) INSERT INTO kept SELECT {} FROM visits WHERE patient IS NOT ? RETURNING x",
     "WITH w AS (SELECT 1) SELECT minutes FROM visits WHERE patient IS NOT {}"),
    ("REPLACE INTO kept SELECT {} FROM visits WHERE patient IS NOT ?", "SELECT minutes FROM visits WHERE patient IS NOT {}")]


@pytest.mark.alarm(0)
@pytest.mark.parametrize("value, literal", [(3, "3"), (-5, "-5"), (None, "NULL"), ("it's", "'it''s'"), (b"\x00\xff", "x'00ff'"), (2.5, "")])
def test_every_form_is_the_equal_question(db, value, literal):
    """dp_release() with the question written by hand replays the aggregate, and the aggregate replays it."""
    db.executescript("CREATE TABLE ward(i, name); CREATE TABLE exam(patient INTEGER, x); CREATE TABLE kept(x); CREATE VIEW long AS SELECT * FROM visits")
    db.executescript("SELECT dp_public('ward'); SELECT dp_protect('exam', 'patient')")
    release = """SELECT dp_release('clinic', 'sum', ?, '{"clip":5,"name":"%s"}')"""
    for number, (sql, question) in enumerate(EQUAL):
        sql = sql.replace("'other'", f"'other {number}'")
        text, statement = question.format(literal), lambda name: sql.format(f"dp_sum('clinic', minutes, 5, '{name}')")
        if isinstance(value, float):
            assert "cannot be read to its last bit (write it into the text)" in refused(db, statement("real"), value)
            continue
        db.execute(statement(f"a{number}"), (value,)).fetchall()
        one(db, release % f"b{number}", text)
        before = one(db, "SELECT count(*) FROM dp_charge"), db.execute("SELECT release, value FROM dp_value ORDER BY 1").fetchall()
        one(db, release % f"a{number}", text)
        db.execute(statement(f"b{number}"), (value,)).fetchall()
        assert (one(db, "SELECT count(*) FROM dp_charge"), db.execute("SELECT release, value FROM dp_value ORDER BY 1").fetchall()) == before
    assert one(db, "SELECT count(*) FROM dp_release WHERE name GLOB '[ab]*'") == (0 if isinstance(value, float) else 2 * len(EQUAL))


# ---- which statement, and which call ---------------------------------------------------------------------------------


@pytest.mark.alarm(0)
def test_a_statement_that_waits_is_not_taken_for_the_running_one(path):
    db = create(path)
    waiting = db.execute("SELECT x FROM (SELECT (SELECT dp_sum('clinic', minutes, 5, 'a') FROM visits) AS x UNION ALL SELECT 1)")
    next(waiting)
    assert one(db, "SELECT dp_sum('clinic', minutes + 1, 5, 'b') FROM visits") is not None
    assert [r[0] for r in db.execute("SELECT sql FROM dp_release ORDER BY id")] == ["SELECT minutes FROM visits", "SELECT minutes + 1 FROM visits"]
    waiting.close()


@pytest.mark.alarm(0)
def test_a_statement_inside_a_function_of_another_one_is_told_to_ask(db):
    """Both statements are executing, and both call the function."""
    said = []
    db.create_function("inner_sum", 0, lambda: said.append(refused(db, "SELECT dp_sum('clinic', 1, 5, 'b') FROM visits")))
    db.execute("SELECT inner_sum(), dp_sum('clinic', minutes, 5, 'a') FROM visits").fetchall()
    assert said and said[0] == "dp_sum: several statements of this connection that call it are running (ask dp_release)"


@pytest.mark.alarm(0)
@pytest.mark.parametrize("sql, sentence", [
    ("SELECT {} FROM visits GROUP BY patient", "GROUP BY cannot stand around it (for one release by key, write dp_group_sum(tier, key, ...) without GROUP BY)"),
    ("SELECT {} FROM visits LIMIT 1", "LIMIT cannot stand in its SELECT (put the rows into a subquery, as in FROM (SELECT ...), or ask dp_release)"),
    ("SELECT {} FROM visits ORDER BY 1", "ORDER BY cannot stand in its SELECT ("), ("SELECT DISTINCT {} FROM visits", "DISTINCT cannot stand in its SELECT ("),
    ("SELECT {} FROM visits UNION SELECT 1", "UNION cannot stand in its SELECT ("), ("SELECT 1 UNION ALL SELECT {} FROM visits", "UNION cannot stand in its SELECT ("),
    ("SELECT {} FROM visits HAVING 1", "HAVING cannot stand in its SELECT ("),
    ("SELECT (SELECT {} FROM visits v WHERE v.patient <> o.patient) FROM visits o",
     "its SELECT names 'o.patient', which is a column of another SELECT (ask dp_release, or write dp_group_sum(tier, key, ...))"),
    ("UPDATE kept SET x = (SELECT {} FROM visits)", "a statement that updates or deletes cannot make a release (nothing was charged"),
    ("DELETE FROM kept WHERE x = (SELECT {} FROM visits)", "a statement that updates or deletes cannot make a release (nothing was charged"),
    ("SELECT {}, dp_sum('clinic', 1, 5, 'n') FROM visits", "two calls in the statement have the same parameters (give each a name of its own)")])
def test_what_cannot_be_a_question_is_refused(db, sql, sentence):
    db.execute("CREATE TABLE kept(x)")
    db.execute("INSERT INTO kept VALUES (1)")
    assert refused(db, sql.format("dp_sum('clinic', minutes, 5, 'n')")).startswith("dp_sum: " + sentence)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


@pytest.mark.alarm(0)
def test_a_call_in_a_subquery_needs_a_name(db):
    for sql in ("SELECT (SELECT {} FROM visits)", "SELECT * FROM (SELECT {} AS r FROM visits)", "WITH w AS (SELECT {} AS r FROM visits) SELECT r FROM w"):
        assert "it stands in a subquery, which SQLite may execute more than once (give it a name" in refused(db, sql.format("dp_sum('clinic', minutes, 5)"))
        one(db, sql.format("dp_sum('clinic', minutes, 5, 'n')"))
    assert one(db, "SELECT count(*) FROM dp_charge") == 1
