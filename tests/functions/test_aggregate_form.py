"""Tests what releases from the owner's SELECT and from dp_release() accept, refuse and return."""

import json
import math
import sqlite3

import pytest

from conftest import SUM, add_tiers, all_differ, connect, create, interrupted, make_ledger, one, reading, refused

pytestmark = pytest.mark.alarm(1e-11)

# A tier whose noise is so small (clip/1414) that an answer shows which rows were counted.
EXACT = [("exact", 1e6, 1e8, 1e-6)]
NEAR = 0.01  # 1% of the clip is 14 standard deviations of the noise


@pytest.fixture
def exact(path):
    connection = create(path, tiers=EXACT)
    yield connection
    connection.close()


@pytest.fixture
def rows(path):
    """Returns a connection to a ledger that protects rows."""
    connection = create(path, '{"protects":"row"}', EXACT)
    yield connection
    connection.close()


def charges(connection):
    return one(connection, "SELECT count(*) FROM dp_charge")


def truth(connection, condition=lambda patient, minutes: True, clip=10, group=lambda patient: 0):
    """Computes in Python, for each group, the sum of minutes with each patient's total clipped to [-clip, clip]."""
    totals = {}
    for patient, minutes in connection.execute("SELECT patient, minutes FROM visits"):
        if condition(patient, minutes):
            key = (group(patient), patient)
            totals[key] = totals.get(key, 0) + minutes
    sums = {}
    for (key, _), total in totals.items():
        sums[key] = sums.get(key, 0) + max(-clip, min(clip, total))
    return sums


# ---- rows that reach the aggregate ----------------------------------------------------------------


def test_sum_is_the_sum_of_clipped_units(exact):
    got = one(exact, "SELECT dp_sum('exact', minutes, 3) FROM visits")
    assert got == pytest.approx(truth(exact, clip=3)[0], abs=3 * NEAR)


def test_count_counts_units_up_to_the_clip(exact):
    got = one(exact, "SELECT dp_count('exact', minutes, 1) FROM visits")
    assert got == pytest.approx(50, abs=NEAR)
    got = one(exact, "SELECT dp_count('exact', minutes, 2) FROM visits")
    assert got == pytest.approx(100, abs=2 * NEAR)


def test_sum_over_protected_rows_clips_each_row(rows):
    minutes = [m for (m,) in rows.execute("SELECT minutes FROM visits")]
    got = one(rows, "SELECT dp_sum('exact', minutes, 2) FROM visits")
    assert got == pytest.approx(sum(min(m, 2) for m in minutes), abs=2 * NEAR)


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


def test_filter_counts_only_rows_that_pass(exact):
    got = one(exact, "SELECT dp_sum('exact', minutes, 10) FILTER (WHERE minutes > 3) FROM visits")
    assert got == pytest.approx(truth(exact, lambda p, m: m > 3)[0], abs=10 * NEAR)


def test_join_and_subquery_work(exact):
    exact.execute("CREATE TABLE wards AS SELECT DISTINCT patient, patient % 3 AS ward FROM visits")
    one(exact, "SELECT dp_public('wards')")
    got = one(exact, "SELECT dp_release('exact', 'sum', 'SELECT minutes FROM visits v JOIN wards w USING (patient)"
                     " WHERE ward = (SELECT min(ward) + 1 FROM wards)', '{\"clip\":10}')")
    assert got == pytest.approx(truth(exact, lambda p, m: p % 3 == 1)[0], abs=10 * NEAR)


def test_over_is_refused_with_sqlites_words(db):
    message = refused(db, "SELECT dp_sum('clinic', minutes, 10) OVER () FROM visits")
    assert message == "dp_sum() may not be used as a window function"
    assert charges(db) == 0


def test_distinct_is_refused_with_sqlites_words(db):
    message = refused(db, "SELECT dp_sum(DISTINCT 'clinic', minutes, 10) FROM visits")
    assert message == "DISTINCT aggregates must have exactly one argument"
    assert charges(db) == 0


# ---- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [2, 1023, 1024, 2048, 3072])
def test_a_parameter_that_depends_on_a_row_is_refused_before_a_charge(db, row):
    db.execute("DELETE FROM visits")
    add = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3100)"
    db.execute(f"{add} INSERT INTO visits SELECT i, 1 FROM n")
    message = refused(db, f"SELECT dp_sum('clinic', minutes, iif(patient = {row}, 11, 10), 'a') FROM visits")
    assert message == "dp_sum: argument 3, clip, depends on a row, but a parameter is the same for all rows (give a constant)"
    assert charges(db) == 0 and one(db, "SELECT count(*) FROM dp_release") == 0


@pytest.mark.parametrize("tier,name", [
    ("iif(patient = 3, 'public', 'clinic')", "'a'"), ("iif(patient = 3, 'clinics', 'clinic')", "'a'")])
def test_a_tier_that_depends_on_a_row_is_refused_before_a_charge(db, tier, name):
    message = refused(db, f"SELECT dp_sum({tier}, minutes, 10, {name}) FROM visits")
    assert message == "dp_sum: argument 1, tier, depends on a row, but a parameter is the same for all rows (give a constant)"
    assert charges(db) == 0 and one(db, "SELECT count(*) FROM dp_release") == 0


def test_a_parameter_that_varies_in_a_replay_leaves_the_release_alone(db):
    value = one(db, SUM, "a")
    refused(db, "SELECT dp_sum('clinic', minutes, iif(patient = 9, 11, 10), 'a') FROM visits")
    assert one(db, "SELECT state FROM dp_release") == "released"
    assert one(db, SUM, "a") == value and charges(db) == 1


@pytest.mark.parametrize("clip", ["0", "-1", "NULL", "'10 or so'", "x'3130'", "1e999", "-1e999", "1e-200", "1e200"])
def test_a_bad_clip_is_refused_before_a_charge(db, clip):
    message = refused(db, f"SELECT dp_sum('clinic', minutes, {clip}) FROM visits")
    assert message.startswith("dp_sum: clip must be a number") and charges(db) == 0


@pytest.mark.parametrize("options,word", [
    ('{"wieght":1}', "known options: name, weight"), ('{"weight":0}', "weight must be"),
    ('{"weight":1.5}', "weight must be"), ('{"weight":1e999}', "finite"), ('{"name":""}', "not empty"),
    ('{"name":"a","name":"b"}', "twice"), ('{"name":', "JSON"), ('{"refine":1}', "true or false"),
    ('{"name":"release-7"}', "unnamed releases"), ('{"clip":3}', "unknown option"), ("", "not an empty text")])
def test_bad_options_are_refused_before_a_charge(db, options, word):
    message = refused(db, SUM, options)
    assert message.startswith("dp_sum: ") and word in message
    assert charges(db) == 0


def test_an_unknown_tier_is_answered_with_the_known_ones(db):
    message = refused(db, "SELECT dp_sum('clinc', minutes, 10) FROM visits")
    assert message == "dp_sum: unknown tier 'clinc' (did you mean 'clinic'? known tiers: clinic, region, public)"


# ---- names ----------------------------------------------------------------------------------------


def test_a_name_replays_and_charges_once(db):
    assert len({one(db, SUM, "a") for _ in range(5)}) == 1
    assert charges(db) == 1


def test_unnamed_releases_differ_and_each_is_charged(db):
    assert all_differ([one(db, SUM, None) for _ in range(5)])
    assert charges(db) == 5


def test_a_name_with_other_parameters_is_refused(db):
    one(db, SUM, "a")
    for sql in ("SELECT dp_sum('clinic', minutes, 11, 'a') FROM visits",
                "SELECT dp_count('clinic', minutes, 10, 'a') FROM visits",
                """SELECT dp_sum('clinic', minutes, 10, '{"name":"a","weight":0.5}') FROM visits"""):
        assert "release 'a' exists with other parameters" in refused(db, sql)
    assert charges(db) == 1


def test_a_name_at_an_outer_tier_is_dp_diffuse(db):
    one(db, SUM, "a")
    outer = one(db, "SELECT dp_sum('public', minutes, 10, 'a') FROM visits")
    assert outer == one(db, "SELECT dp_diffuse('a', 'public')")
    assert one(db, "SELECT count(*) FROM dp_release") == 1


def test_a_name_at_an_inner_tier_needs_refine(db):
    one(db, "SELECT dp_sum('public', minutes, 10, 'a') FROM visits")
    before = charges(db)
    assert '"refine":true' in refused(db, SUM, "a")
    assert charges(db) == before
    one(db, SUM, '{"name":"a","refine":true}')
    assert one(db, "SELECT count(*) FROM dp_release") == 1


# ---- data never raises ----------------------------------------------------------------------------

# Pairs of a value and the number to which SQLite converts this value, clipped to [-1, 1].
ODD = [(None, 0), ("abc", 0), ("", 0), ("1e999", 1), ("-1e999", -1), ("0.5xyz", 0), ("NaN", 0), (b"\x00\xff", 0),
       (b"0.25", 0), (b"", 0), (math.inf, 1), (-math.inf, -1), (-(2**63), -1), (2**63 - 1, 1), (1e308, 1),
       (-1e308, -1), (5e-324, 0), ("9" * 400, 1), ("-" + "9" * 400, -1), (0.75, 0.75)]


@pytest.mark.parametrize("value,clipped", ODD, ids=[repr(v)[:20] for v, _ in ODD])
def test_an_odd_value_counts_as_sqlite_converts_it(exact, value, clipped):
    exact.execute("CREATE TABLE odd(x, unit INTEGER)")
    exact.execute("INSERT INTO odd VALUES (?, 1)", (value,))
    one(exact, "SELECT dp_protect('odd', 'unit')")
    for sql in ("SELECT dp_sum('exact', x, 1) FROM odd", """SELECT dp_release('exact', 'sum', 'SELECT x FROM odd', '{"clip":1}')"""):
        assert one(exact, sql) == pytest.approx(clipped, abs=NEAR)


def test_odd_values_count_row_by_row_where_rows_are_protected(rows):
    rows.execute("CREATE TABLE odd(x)")
    one(rows, "SELECT dp_protect('odd')")
    rows.executemany("INSERT INTO odd VALUES (?)", [(value,) for value, _ in ODD])
    got = one(rows, "SELECT dp_sum('exact', x, 1) FROM odd")
    assert got == pytest.approx(sum(clipped for _, clipped in ODD), abs=NEAR)


def test_odd_units_are_units():
    """Each of these values is one unit. 1 and 1.0 are the same unit, a text and a blob are different units, and NULL is
    nobody."""
    units = [None, None, 1, 1.0, "1", b"1", "", b"", math.inf, -math.inf, -(2**63), 1.5, 1.5, 0, -0.0, "a\0b", "a\0c"]
    exact = connect()
    exact.execute("CREATE TABLE odd(u)")
    make_ledger(exact, "{}", "odd, u")
    add_tiers(exact, EXACT)
    exact.executemany("INSERT INTO odd VALUES (?)", [(u,) for u in units])
    distinct = 1 + 2 + 2 + 2 + 1 + 1 + 1 + 2
    assert one(exact, "SELECT dp_count('exact', 1, 1) FROM odd") == pytest.approx(distinct, abs=NEAR)


def test_one_unit_with_ten_thousand_rows_counts_up_to_the_clip(exact):
    exact.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
                  " INSERT INTO visits SELECT 7, 1e6 FROM n")
    got = one(exact, "SELECT dp_sum('exact', minutes, 3) FROM visits")
    assert got == pytest.approx(truth(exact, clip=3)[0], abs=3 * NEAR)


def test_values_that_are_all_null_give_a_number(exact):
    for function in ("dp_sum('exact', NULL, 1)", "dp_count('exact', NULL, 1)"):
        got = one(exact, f"SELECT {function} FROM visits")
        assert isinstance(got, float) and got == pytest.approx(0, abs=NEAR)


# ---- dp_release -----------------------------------------------------------------------------------

RELEASE = """SELECT dp_release('clinic', 'sum', ?, '{"clip":10}')"""


@pytest.mark.parametrize("kind", ["sum", "count"])
def test_dp_release_over_empty_input_gives_a_number(exact, kind):
    got = one(exact, """SELECT dp_release('exact', ?, 'SELECT minutes FROM visits WHERE 0', '{"clip":1}')""", kind)
    assert isinstance(got, float) and got == pytest.approx(0, abs=NEAR)


def test_dp_release_agrees_with_the_aggregate(exact):
    got = one(exact, """SELECT dp_release('exact', 'sum', 'SELECT minutes FROM visits', '{"clip":3}')""")
    assert got == pytest.approx(truth(exact, clip=3)[0], abs=3 * NEAR)


def test_dp_release_takes_one_column_where_rows_are_protected(rows):
    got = one(rows, """SELECT dp_release('exact', 'sum', 'SELECT minutes FROM visits', '{"clip":2}')""")
    minutes = [m for (m,) in rows.execute("SELECT minutes FROM visits")]
    assert got == pytest.approx(sum(min(m, 2) for m in minutes), abs=2 * NEAR)


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


def test_dp_release_names_the_known_kinds(db):
    message = refused(db, "SELECT dp_release('clinic', 'summe', 'SELECT 1, 1')")
    assert "unknown kind 'summe' (did you mean 'sum'? known kinds: count, " in message
