"""Tests what releases from the owner's SELECT and from dp_release() accept, refuse and return."""

import json
import sqlite3

import pytest

from conftest import SUM, create, interrupted, one, reading, refused

pytestmark = pytest.mark.alarm(1e-11)

# A tier whose noise is so small (clip/1414) that an answer shows which rows were counted.
EXACT = [("exact", 1e6, 1e8, 1e-6)]
NEAR = 0.01  # 1% of the clip is 14 standard deviations of the noise


@pytest.fixture
def exact(path):
    connection = create(path, tiers=EXACT)
    yield connection
    connection.close()


def charges(connection):
    return one(connection, "SELECT count(*) FROM dp_charge")


# ---- rows that reach the aggregate ----------------------------------------------------------------


@pytest.mark.parametrize("where", ["FROM visits WHERE 0", "FILTER (WHERE patient < 0) FROM visits"])
def test_no_row_is_a_release_like_any_other(exact, where):
    """An empty result tells nobody anything: the release is made when SQLite finishes the aggregate."""
    got = one(exact, f"SELECT dp_sum('exact', minutes, 10, 'a') {where}")
    assert got == pytest.approx(0, abs=10 * NEAR) and charges(exact) == 1
    assert one(exact, f"SELECT dp_sum('exact', minutes, 10, 'a') {where}") == got
    two = "SELECT dp_sum('exact', minutes, 10, 'b'), dp_sum('exact', 1, 10, 'c') FROM visits WHERE 0"
    message = refused(exact, two)
    assert message == "dp_sum: no row reached it, and the statement calls it more than once (ask dp_release)"
    assert charges(exact) == 1


# ---- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [2, 1023, 1024, 2048, 3072])
def test_a_parameter_that_depends_on_a_row_is_refused_before_a_charge(db, row):
    db.execute("DELETE FROM visits")
    add = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3100)"
    db.execute(f"{add} INSERT INTO visits SELECT i, 1 FROM n")
    message = refused(db, f"SELECT dp_sum('clinic', minutes, iif(patient = {row}, 11, 10), 'a') FROM visits")
    assert message == "dp_sum: argument 3, clip, depends on a row, but a parameter is the same for all rows (give a constant)"
    assert charges(db) == 0 and one(db, "SELECT count(*) FROM dp_release") == 0


def test_a_parameter_that_varies_in_a_replay_leaves_the_release_alone(db):
    value = one(db, SUM, "a")
    refused(db, "SELECT dp_sum('clinic', minutes, iif(patient = 9, 11, 10), 'a') FROM visits")
    assert one(db, "SELECT state FROM dp_release") == "released"
    assert one(db, SUM, "a") == value and charges(db) == 1


# ---- dp_release -----------------------------------------------------------------------------------

RELEASE = """SELECT dp_release('clinic', 'sum', ?, '{"clip":10}')"""


@pytest.mark.parametrize("sql", [
    "SELECT minutes FROM visits;", "SELECT minutes FROM visits ; ;",
    "SELECT minutes FROM visits -- all", "SELECT minutes FROM visits; -- all\n",
    "SELECT minutes FROM visits /* all */ ;", "-- visits\n/* of */ SELECT minutes FROM visits",
    "\n\t select minutes from visits", "WITH v AS (SELECT * FROM visits) SELECT minutes FROM v",
    "SELECT minutes FROM visits UNION ALL SELECT 1 ORDER BY 1 LIMIT 3", "SELECT ';' || minutes FROM visits"])
def test_dp_release_accepts_one_select(db, sql):
    assert isinstance(one(db, RELEASE, sql), float)
    assert charges(db) == 1


@pytest.mark.parametrize("sql", [
    "SELECT minutes FROM visits; SELECT 1, 2", "SELECT minutes FROM visits; DELETE FROM visits",
    "SELECT minutes FROM visits; nonsense", "EXPLAIN SELECT minutes FROM visits",
    "EXPLAIN QUERY PLAN SELECT minutes FROM visits", "PRAGMA table_info(visits)", "PRAGMA user_version",
    "INSERT INTO visits VALUES (1, 1)", "INSERT INTO visits VALUES (1, 1) RETURNING minutes, patient",
    "WITH v(a, b) AS (SELECT 1, 1) INSERT INTO visits SELECT a, b FROM v RETURNING minutes, patient",
    "DELETE FROM visits RETURNING minutes, patient", "BEGIN", "COMMIT", "ATTACH ':memory:' AS x", "VACUUM", "", " ; ",
    "-- nothing", "/* SELECT minutes FROM visits", "/* a */", "SELECT minutes, patient FROM visits", "SELECT * FROM visits, visits",
    "SELECT minutes, ? FROM visits", "SELECT minutes, :a FROM visits", "SELECT no_such, patient FROM visits",
    "SELECT minutes FROM visits) SELECT 1, 2 --", "SELECT (", "nonsense"])
def test_dp_release_refuses_what_is_not_one_select(db, sql):
    message = refused(db, RELEASE, sql)
    assert message.startswith("dp_release: ") and "the charge stays" not in message
    assert charges(db) == 0
    assert one(db, "SELECT count(*) FROM visits") == 100 and not db.in_transaction


def test_dp_release_with_an_unclosed_comment_never_charges_for_nothing(db):
    """SQLite accepts a /* comment that is not closed. dp_release() either runs such a query or refuses it without a charge."""
    try:
        assert isinstance(one(db, RELEASE, "SELECT minutes FROM visits /* all"), float)
        assert charges(db) == 1
    except sqlite3.Error as error:
        assert "sql" in str(error) and charges(db) == 0, error


def test_dp_release_replays_without_running_the_query(db):
    sql = """SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{"clip":10,"name":"a"}')"""
    with reading(db) as reads:
        value = one(db, sql)
        assert len(reads) == 1
        assert one(db, sql) == value and len(reads) == 1


def released(db, sql, name="a", **options):
    return one(db, "SELECT dp_release('clinic', 'sum', ?, json_patch(?, ?))", sql, json.dumps({"clip": 10, "name": name}),
               json.dumps(options))


def test_dp_release_refuses_a_name_for_another_query(db):
    """A release keeps the text of its query. If the same name comes with another query, the error shows the stored query, and
    nothing is charged or changed."""
    text = "SELECT minutes FROM visits WHERE minutes < 5"
    value = released(db, text)
    charged = db.execute("SELECT * FROM dp_charge").fetchall()
    for other in ("SELECT minutes FROM visits", text.lower(), text.replace(" <", "  <"), f"{text} -- x", f" {text}"):
        with pytest.raises(sqlite3.Error) as caught:
            released(db, other)
        assert str(caught.value) == f"dp_release: release 'a' exists with another query: {text} (choose another name)"
        with pytest.raises(sqlite3.Error, match="another query"):
            released(db, other, refine=True)
    for same in (text, f"{text};", f"{text} ;\n\t ", f"{text}\n"):
        assert released(db, same) == value
    assert db.execute("SELECT * FROM dp_charge").fetchall() == charged
    assert one(db, "SELECT sql FROM dp_release") == text
    assert one(db, "SELECT dp_discard('a')") == "a"
    released(db, "SELECT minutes FROM visits")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_dp_release_whose_query_fails_is_failed_and_charged(db):
    message = interrupted(db, """SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{"clip":10,"name":"a"}')""")
    assert "the query failed" in message and "the charge stays" in message
    assert charges(db) == 1
    assert one(db, "SELECT state FROM dp_release") == "failed"
    assert "failed" in refused(db, "SELECT dp_diffuse('a', 'public')")


def test_the_internal_aggregate_of_dp_release_is_of_no_use_to_others(db):
    assert "dp_release" in refused(db, "SELECT dp_collect(minutes, patient) FROM visits")


def test_dp_release_reads_a_table_that_has_the_name_of_its_own_cte(db):
    """The names in the statement that dp_release() builds never clash with the owner's names."""
    db.execute('CREATE TABLE "dp rows"(x, unit INTEGER)')
    one(db, "SELECT dp_protect('dp rows', 'unit')")
    db.execute('INSERT INTO "dp rows" VALUES (1, 1)')
    assert isinstance(one(db, RELEASE, 'SELECT x FROM "dp rows"'), float)
