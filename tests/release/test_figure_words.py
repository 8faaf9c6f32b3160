"""Tests that a figure says what it counts: kinds that count rows need a clip, and the column `figure` says in words what a number is.
"""

import json
import sqlite3

import pytest

from conftest import connect, one, refused, run

pytestmark = pytest.mark.alarm(0)

PATIENTS, VISITS = 40, 120  # three visits of each patient, in three wards


def clinic(path=":memory:", options='{"unit":"patient"}'):
    db = connect(path)
    db.execute("CREATE TABLE visit(patient INTEGER, ward TEXT, minutes REAL)")
    db.executemany("INSERT INTO visit VALUES (?, ?, ?)", [(i // 3, "abc"[i % 3], i % 60) for i in range(VISITS)])
    one(db, "SELECT dp_init(?)", options)
    one(db, "SELECT dp_tier('clinic', 100, 1e6, 1e-3, '{\"delta_keys\":1e-4}')")
    one(db, "SELECT dp_tier('public', 1, 1e6, 1e-6)")
    one(db, "SELECT dp_protect('visit', 'patient')" if "row" not in options else "SELECT dp_protect('visit')")
    return db


# ---- kinds that count rows ------------------------------------------------------------------------------------------

BINS = '"lo":0,"hi":60,"bins":4'
ROWS = [("count", "SELECT 1", "", "count_distinct"), ("group_count", "SELECT ward", '"keys":["a"]', "group_count_distinct"),
        ("histogram", "SELECT minutes", BINS, "histogram"), ("group_histogram", "SELECT ward, minutes", BINS + ',"keys":["a"]', "group_histogram"),
        ("ou_count", "SELECT 1", '"radius":9', "ou_count_distinct"), ("ou_histogram", "SELECT minutes", BINS + ',"radius":9', "ou_histogram"),
        ("ou_group_count", "SELECT ward", '"radius":9,"keys":["a"]', "ou_group_count_distinct"),
        ("ou_group_histogram", "SELECT ward, minutes", BINS + ',"radius":9,"keys":["a"]', "ou_group_histogram")]


@pytest.mark.parametrize("kind,columns,options,units", ROWS)
def test_a_count_of_rows_needs_a_clip(kind, columns, options, units):
    db = clinic()
    for call in (f"dp_release('clinic', '{kind}', '{columns} FROM visit', '{{{options}}}')",
                 f"dp_plan('clinic', '{kind}', NULL, '{{{options}}}')"):
        said = refused(db, "SELECT " + call)
        assert f"clip is missing (the most rows of one unit that count; '{units}' counts units" in said
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    more = f'{{{options}{"," if options else ""}"clip":3}}'
    assert one(db, f"SELECT dp_release('clinic', '{kind}', '{columns} FROM visit', ?)", more) is not None


def test_aggregates_that_count_rows_need_a_clip():
    db = clinic()
    assert "clip is missing" in refused(db, "SELECT dp_histogram('clinic', minutes, 0, 60, 4) FROM visit")
    assert "clip is missing" in refused(db, "SELECT dp_group_histogram('clinic', ward, minutes, 0, 60, 4) FROM visit")
    assert sum(json.loads(one(db, "SELECT dp_histogram('clinic', minutes, 0, 60, 4, '{\"clip\":3}') FROM visit"))) == pytest.approx(120, abs=9)


def test_a_count_counts_all_rows_within_the_clip():
    db = clinic()
    assert one(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visit', '{\"clip\":3}')") == pytest.approx(VISITS, abs=3)
    assert one(db, "SELECT dp_release('clinic', 'count_distinct', 'SELECT 1 FROM visit')") == pytest.approx(PATIENTS, abs=1)


def test_rows_that_are_units_need_no_clip():
    db = clinic(options='{"protects":"row"}')
    assert one(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visit', 'n')") == pytest.approx(VISITS, abs=1)
    assert one(db, "SELECT figure FROM dp_value") == "rows"


COUNTS = [
    "SELECT count(*) FROM visit", "SELECT Count(minutes) FROM visit WHERE minutes > 2", "SELECT count(*) AS n FROM visit",
    "SELECT count(*) > 2 FROM visit", "SELECT coalesce(sum(minutes), 0) FROM visit WHERE ward = 'x'", "SELECT total(minutes) FROM visit",
    "WITH v AS (SELECT count(*) AS n FROM visit) SELECT n FROM v", "SELECT EXISTS (SELECT 1 FROM visit WHERE ward = 'x')",
]


@pytest.mark.parametrize("kind,options", [("count", {"clip": 3}), ("ou_count", {"clip": 3, "radius": 50})])
@pytest.mark.parametrize("sql", COUNTS)
def test_a_count_does_not_count_counts(kind, options, sql):
    """SELECT count(*) gives one row for each unit, so a count of these rows would be the number of patients."""
    db = clinic()
    said = refused(db, "SELECT dp_release('clinic', ?, ?, ?)", kind, sql, json.dumps({"name": "n", **options}))
    assert "this kind counts such rows (write 'SELECT 1 FROM ...', or take the kind 'sum'" in said
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    total = one(db, "SELECT dp_release('clinic', 'sum', 'SELECT count(*) FROM visit', '{\"clip\":3}')")
    assert total == pytest.approx(VISITS, abs=3)


@pytest.mark.parametrize("sql", [*COUNTS, "SELECT count(DISTINCT patient) FROM visit WHERE ward = 'x'", "SELECT sum(minutes) FROM visit",
                                 "SELECT max(ward), count(*) FROM visit WHERE minutes > 2"])
def test_a_count_of_units_does_not_count_all_of_them(sql):
    db = clinic()
    said = refused(db, "SELECT dp_release('clinic', 'count_distinct', ?)", sql)
    assert "so all units would count (write 'SELECT 1 FROM ...')" in said and one(db, "SELECT count(*) FROM dp_charge") == 0
    for sql in ("SELECT 1 FROM visit WHERE ward = 'x' LIMIT 1", "SELECT count(*) FROM visit WHERE ward = 'x' GROUP BY patient"):
        assert one(db, "SELECT dp_release('clinic', 'count_distinct', ?)", sql) == pytest.approx(0, abs=1)


def test_counts_look_public_tables_up():
    """The question is evaluated for nobody first, before the public tables have rows."""
    db = clinic()
    db.executescript("CREATE TABLE kind(ward, big INT); INSERT INTO kind SELECT DISTINCT ward, 1 FROM visit; SELECT dp_public('kind');")
    for i, (kind, sql) in enumerate([("count", "SELECT 1 FROM visit v JOIN kind k ON k.ward = v.ward WHERE k.big = 1"),
                                     ("count", "SELECT 1 FROM visit v, kind k WHERE k.ward = v.ward AND k.big = 1 GROUP BY v.rowid"),
                                     ("count", "SELECT k.big FROM kind k LEFT JOIN visit v ON k.ward = v.ward WHERE k.big = 1 AND v.rowid > 0"),
                                     ("count_distinct", "SELECT 1 FROM kind k JOIN visit v ON k.ward = v.ward WHERE k.big = 1")]):
        options = {"name": f"n{i}", **({"clip": 3} if kind == "count" else {})}
        expected = VISITS if kind == "count" else PATIENTS
        assert one(db, "SELECT dp_release('clinic', ?, ?, ?)", kind, sql, json.dumps(options)) == pytest.approx(expected, abs=3)


def test_a_long_computation_for_nobody_ends():
    """Nobody is charged for it, so it may take few steps only, and a question that takes more is not refused."""
    db = clinic()
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 90000) SELECT count(*) * 0 FROM n, (SELECT count(*) FROM visit)"
    assert one(db, "SELECT dp_release('clinic', 'count', ?, '{\"clip\":3}')", sql) == pytest.approx(PATIENTS, abs=1)


def test_rows_of_an_aggregate_with_a_condition_may_be_counted():
    """These questions give no number for a patient without such visits."""
    db = clinic()
    for i, sql in enumerate(["SELECT count(*) FROM visit GROUP BY patient HAVING count(*) >= 3", "SELECT max(minutes) FROM visit",
                             "SELECT nullif(count(*), 0) FROM visit", "SELECT 1 WHERE EXISTS (SELECT 1 FROM visit)"]):
        options = json.dumps({"name": f"n{i}", "clip": 3})
        assert one(db, "SELECT dp_release('clinic', 'count', ?, ?)", sql, options) == pytest.approx(PATIENTS, abs=1)
    assert one(db, "SELECT dp_release('clinic', 'count', 'SELECT count(*) FROM visit GROUP BY patient HAVING count(*) > 3', '{\"clip\":3}')") == pytest.approx(0, abs=1)


def test_rows_of_groups_may_be_counted():
    """Each patient has a visit in each of three wards."""
    db = clinic()
    for i, sql in enumerate(["SELECT count(*) FROM visit GROUP BY ward HAVING count(*) > 0", "SELECT count(*) OVER () FROM visit",
                             "SELECT count(*) AS n FROM visit GROUP BY ward"]):
        assert one(db, "SELECT dp_release('clinic', 'count', ?, ?)", sql, json.dumps({"name": f"n{i}", "clip": 3})) == pytest.approx(VISITS, abs=3)


# ---- the words ------------------------------------------------------------------------------------------------------

IN_GROUPS = " (a patient with rows in several groups counts less in each, by the share of rows there)"
MAY_IN_GROUPS = IN_GROUPS.replace("counts", "may count")
IN_MARGINS = ", averaged over the tables (a patient with rows in several cells may count less in each, by the share of rows there, and more than 3 in a margin)"
WORDS = [
    ("count", "SELECT 1", {"clip": 2}, "rows, at most 2 of each patient"),
    ("count", "SELECT 1", {"clip": 1500}, "rows, at most 1,500 of each patient"),
    ("count_distinct", "SELECT 1", {}, "patients"),
    ("sum", "SELECT minutes", {"clip": 240}, "sum, from -240 to 240 of each patient"),
    ("avg", "SELECT minutes", {"lo": 0, "hi": 60}, "average, values outside 0 to 60 count as 0 or 60, each patient counts once"),
    ("avg", "SELECT minutes", {"lo": 0, "hi": 60, "clip": 2.5}, "average, values outside 0 to 60 count as 0 or 60, each patient counts as at most 2.5 rows"),
    ("var", "SELECT minutes", {"lo": 0, "hi": 60}, "variance, values outside 0 to 60 count as 0 or 60, each patient counts once"),
    ("stddev", "SELECT minutes", {"lo": 0, "hi": 60}, "standard deviation, values outside 0 to 60 count as 0 or 60, each patient counts once"),
    ("median", "SELECT minutes", {"lo": 0, "hi": 60, "grid": 0.5}, "median, values outside 0 to 60 count as 0 or 60, in steps of 0.5, each patient counts once"),
    ("quantile", "SELECT minutes", {"lo": 0, "hi": 60, "q": [0.1, 0.9]}, "quantiles 0.1 and 0.9, values outside 0 to 60 count as 0 or 60, each patient counts once"),
    ("quantile", "SELECT minutes", {"lo": 0, "hi": 60, "q": [0.1, 0.5, 0.9]}, "quantiles 0.1, 0.5 and 0.9, values outside 0 to 60 count as 0 or 60, each patient counts once"),
    ("quantile", "SELECT minutes", {"lo": 0, "hi": 60, "q": 0.9}, "quantile 0.9, values outside 0 to 60 count as 0 or 60, each patient counts once"),
    ("histogram", "SELECT minutes", {"lo": 0, "hi": 60, "bins": 4, "clip": 3}, "rows in each bin, values outside 0 to 60 count in the first or last bin, at most 3 of each patient in one bin"
     " (a patient with rows in several bins may count less in each, by the share of rows there)"),
    ("bounds", "SELECT minutes", {}, "bounds of nearly all values, in size from 2.9e-39 to 3.4e+38, each patient counts once, rare values by their share of rows"),
    ("vec_sum", "SELECT json_array(minutes, 1)", {"dim": 2, "clip": 60}, "sum of vectors, up to length 60 of each patient"),
    ("vec_avg", "SELECT json_array(minutes, 1)", {"dim": 2, "clip": 60}, "average of vectors, each cut to length 60, each patient counts once"),
    ("choice", "SELECT ward", {"candidates": ["a", "b"]}, "category that most patients have; drawn at random, it may be a rarer one"),
    ("group_count", "SELECT ward", {"clip": 3, "keys": ["a"]}, "rows in each group, at most 3 of each patient in one group" + MAY_IN_GROUPS),
    ("group_count", "SELECT ward", {"clip": 1, "keys": ["a"]}, "rows in each group, at most 1 of each patient in one group" + IN_GROUPS),
    ("group_count", "SELECT ward", {"clip": 3, "max_groups": 4}, "rows in each group, at most 3 of each patient in one group" + MAY_IN_GROUPS
     + ", at most 4 groups of each patient; groups below about 4 rows do not appear"),
    ("group_count", "SELECT ward", {"clip": 3, "ways": 1, "keys": {"ward": ["a"]}}, "rows in each cell, at most 3 of each patient in one cell" + IN_MARGINS),
    ("group_sum", "SELECT ward, minutes", {"clip": 3, "ways": 1, "keys": {"ward": ["a"]}}, "sum in each cell, from -3 to 3 of each patient in one cell"
     + IN_MARGINS.replace("of rows", "of amounts")),
    ("group_avg", "SELECT ward, minutes", {"lo": 0, "hi": 60, "ways": 1, "keys": {"ward": ["a"]}},
     "average in each cell, values outside 0 to 60 count as 0 or 60, each patient counts about once" + IN_MARGINS.replace("3", "1")),
    ("group_avg", "SELECT ward, minutes", {"lo": 0, "hi": 60, "ways": 1, "clip": 3, "keys": {"ward": ["a"]}},
     "average in each cell, values outside 0 to 60 count as 0 or 60, each patient counts as at most 3 rows" + IN_MARGINS),
    ("group_count", "SELECT ward", {"clip": 3, "keys": ["a"], "mechanism": "laplace"}, "rows in each group, at most 3 of each patient in all groups together"
     + MAY_IN_GROUPS),
    ("group_histogram", "SELECT ward, minutes", {"lo": 0, "hi": 60, "bins": 4, "clip": 3, "keys": ["a"]},
     "rows in each bin of each group, values outside 0 to 60 count in the first or last bin, at most 3 of each patient in one bin"
     " (a patient with rows in several bins may count less in each, by the share of rows there)"),
    ("group_count", "SELECT ward", {"clip": 3, "ways": 1, "keys": {"ward": ["a"]}, "mechanism": "laplace"},
     "rows in each cell, at most 3 of each patient in all cells of a table"
     " (a patient with rows in several cells may count less in each, by the share of rows there)"),
    ("group_sum", "SELECT ward, minutes", {"clip": 9, "keys": ["a"]}, "sum in each group, from -9 to 9 of each patient in one group" + MAY_IN_GROUPS.replace("of rows", "of amounts")),
    ("group_avg", "SELECT ward, minutes", {"lo": 0, "hi": 60, "keys": ["a"]},
     "average in each group, values outside 0 to 60 count as 0 or 60, each patient counts once" + IN_GROUPS),
    ("group_median", "SELECT ward, minutes", {"lo": 0, "hi": 60, "keys": ["a"]},
     "median in each group, values outside 0 to 60 count as 0 or 60, each patient counts once (a patient in several groups counts less in each)"),
    ("group_count_distinct", "SELECT ward", {"keys": ["a"]}, "patients in each group (a patient in several groups counts less in each)"),
    ("group_count_distinct", "SELECT ward", {"keys": ["a"], "clip": 2}, "patients in each group (a patient in more than 4 groups counts less in each)"),
    ("group_count_distinct", "SELECT ward", {"keys": ["a"], "clip": 1.5}, "patients in each group (a patient in more than 2 groups counts less in each)"),
    ("group_count_distinct", "SELECT ward", {"keys": ["a"], "clip": 2, "mechanism": "laplace"},
     "patients in each group (a patient in more than 2 groups counts less in each)"),
    ("group_count_distinct", "SELECT ward", {"keys": ["a"], "clip": 0.5},
     "patients in each group, at most 0.5 of each patient in one group (a patient in several groups counts less in each)"),
    ("ou_count", "SELECT 1", {"clip": 2, "radius": 50, "centre": 100}, "rows, at most 2 of each patient, shrunk towards 100"),
    ("ou_avg", "SELECT minutes", {"lo": 0, "hi": 60, "radius": 9}, "average, values outside 0 to 60 count as 0 or 60, each patient counts once, kept within 9 of 30"),
    ("ou_stddev", "SELECT minutes", {"lo": 0, "hi": 60, "theta": 1, "rho": 9}, "standard deviation, values outside 0 to 60 count as 0 or 60,"
     " each patient counts once, shrunk towards 0"),
    ("ou_vec_avg", "SELECT json_array(minutes, 1)", {"dim": 2, "clip": 60, "radius": 9}, "average of vectors, each cut to length 60, each patient counts once,"
     " kept within 9 of 0"),
    ("avg", "SELECT minutes", {"lo": 2459580.5, "hi": 2459945.5},
     "average, values outside 2459580.5 to 2459945.5 count as 2459580.5 or 2459945.5, each patient counts once"),
    ("quantile", "SELECT minutes", {"lo": 0, "hi": 60.125, "q": 0.9999995}, "quantile 0.9999995, values outside 0 to 60.125 count as 0 or 60.125, each patient counts once"),
    ("ou_sum", "SELECT minutes", {"clip": 9, "theta": 0, "rho": 1e3}, "sum, from -9 to 9 of each patient"),
]


@pytest.mark.parametrize("kind,columns,options,words", WORDS)
def test_a_figure_says_what_it_is(kind, columns, options, words):
    db = clinic()
    asked = db.execute("SELECT key, value, display, figure FROM dp_answer('clinic', ?, ?, ?)",
                       (kind, columns + " FROM visit", json.dumps({"name": "n", **options}))).fetchall()
    stored = db.execute("SELECT key, value, display, figure FROM dp_value ORDER BY key, component").fetchall()
    assert [row[1:] for row in asked] == [row[1:] for row in stored] and asked
    assert {figure for *_, figure in asked} == {words} and all(display for _, _, display, _ in asked)


@pytest.mark.parametrize("kind,columns,options,shown", [
    ("ou_count", "SELECT 1", {"clip": 2, "radius": 50, "centre": 100}, "shrunk towards 100"), ("ou_sum", "SELECT minutes", {"clip": 9, "theta": 0, "rho": 1e3}, None),
    ("ou_avg", "SELECT minutes", {"lo": 0, "hi": 60, "radius": 9}, "kept within 9 of 30"), ("avg", "SELECT minutes", {"lo": 0, "hi": 60}, None)])
def test_a_number_says_how_a_bound_moves_it(kind, columns, options, shown):
    """The average of all minutes lies within 9 of 30, so it does not move, and nothing pulls it to 30."""
    db = clinic()
    one(db, "SELECT dp_release('clinic', ?, ?, ?)", kind, columns + " FROM visit", json.dumps({"name": "n", **options}))
    assert one(db, "SELECT iif(display LIKE '%, %', substr(display, instr(display, ', ') + 2), NULL) FROM dp_value") == shown


def test_numbers_that_a_kernel_has_changed_say_so(tmp_path):
    """A coarser group may have more rows of a patient than the clip of one group, and each of its parts was shrunk towards the centre."""
    db = clinic(tmp_path / "a.db")
    of_group = "rows in each group, at most 3 of each patient in one group" + MAY_IN_GROUPS
    asked = [("ou_group_count", {"clip": 3, "keys": ["a", "b"], "radius": 60, "centre": 9}, [["a", "x", 1], ["b", "x", 0.5], ["b", "y", 0.5]],
              of_group + ", shrunk towards 9", "added up into other groups by a public kernel"),
             ("choice", {"candidates": ["a", "b"]}, [["a", "x", 1], ["b", "x", 0.5], ["b", "y", 0.5]],
              "category that most patients have; drawn at random, it may be a rarer one", "changed at random by a public kernel")]
    for kind, options, kernel, words, more in asked:
        one(db, "SELECT dp_release('clinic', ?, 'SELECT ward FROM visit', ?)", kind, json.dumps({"name": kind, **options}))
        one(db, "SELECT dp_mix(?, 'public', ?)", kind, json.dumps(kernel))
        said = dict(db.execute("SELECT DISTINCT tier, figure FROM dp_value WHERE release = ?", (kind,)))
        assert said == {"clinic": words, "public": f"{words}; then {more}"}
        assert f"{words}; at some tiers then {more} · " in one(db, "SELECT dp_report()")
        assert f"{words}; then {more} · " in one(db, "SELECT dp_report('public')")
    moved = dict(db.execute("SELECT tier, group_concat(DISTINCT substr(display, instr(display, ', shrunk'))) FROM dp_value WHERE release GLOB 'ou*' GROUP BY 1"))
    assert moved == {"clinic": ", shrunk towards 9", "public": ", shrunk"}
    one(db, "SELECT dp_guard('public')")
    assert one(db, "SELECT count(DISTINCT figure) FROM dp_value") == 2 == one(db, "SELECT count(*) FROM dp_value WHERE display LIKE '%, shrunk'")


@pytest.mark.parametrize("label,units", [("family", "families"), ("class", "classes"), ("day", "days"), (None, "units")])
def test_the_ledger_names_the_units(label, units):
    db = clinic(options=json.dumps({"unit": label} if label else {}))
    one(db, "SELECT dp_release('clinic', 'count_distinct', 'SELECT 1 FROM visit', 'n')")
    one(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visit', '{\"name\":\"m\",\"clip\":2}')")
    assert [f for (f,) in db.execute("SELECT figure FROM dp_value ORDER BY release DESC")] == [units, f"rows, at most 2 of each {label or 'unit'}"]


def test_members_exports_and_pages_say_it_too(tmp_path):
    db = clinic(tmp_path / "a.db")
    one(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visit', '{\"name\":\"visits\",\"clip\":5}')")
    one(db, "SELECT dp_diffuse('visits', 'public')")
    words = "rows, at most 5 of each patient"
    one(db, "SELECT dp_export('public', ?)", str(tmp_path / "public.db"))
    handed = sqlite3.connect(tmp_path / "public.db")
    value, shown, said = handed.execute("SELECT value, display, figure FROM value").fetchone()
    handed.close()
    assert (value, shown, said) == db.execute("SELECT value, display, figure FROM dp_value WHERE tier = 'public'").fetchone() and said == words
    for tier in (None, "public"):
        page = one(db, "SELECT dp_report(?)", tier) if tier else one(db, "SELECT dp_report()")
        assert f"visits<small>{words} · " in page
    one(db, "SELECT dp_guard('public')")
    assert db.execute("SELECT display, figure FROM dp_value WHERE figure = ?", (words,)).fetchall() == [(shown, words)]


def test_an_answer_without_memory_for_all_rows_is_an_error(tmp_path):
    """The answer has 20,000 rows. Whatever the limit of SQLite's memory, the statement gets all of them or an error."""
    path = tmp_path / "a.db"
    ask = ("SELECT count(*) FROM dp_answer('clinic', 'histogram', 'SELECT minutes FROM visit',"
           " '{\"name\":\"h\",\"clip\":3,\"lo\":0,\"hi\":60,\"bins\":20000}')")
    db = clinic(path)
    assert one(db, ask) == 20000
    db.close()
    said = run("""
        db = connect(sys.argv[1])
        for limit in range(18_000_000, 3_000_000, -1_500_000):
            try:
                one(db, f"PRAGMA hard_heap_limit = {limit}")
                print(one(db, sys.argv[2]))
            except (sqlite3.Error, MemoryError):
                print("error")
        """, path, ask).split()
    assert set(said) == {"20000", "error"}, said


@pytest.mark.parametrize("kind, columns, options, counted", [
    ("group_count", "ward", {"clip": 3}, "rows"), ("group_count_distinct", "ward", {}, "patients"), ("group_sum", "ward, minutes", {"clip": 60}, "patients"),
    ("group_avg", "ward, minutes", {"lo": 0, "hi": 60}, "patients"), ("group_stddev", "ward, minutes", {"lo": 0, "hi": 60, "clip": 3}, "rows"),
    ("group_median", "ward, minutes", {"lo": 0, "hi": 60, "bins": 8, "clip": 3}, "patients"), ("group_histogram", "ward, minutes", {"lo": 0, "hi": 60, "bins": 3, "clip": 3}, "patients")])
@pytest.mark.parametrize("tier", ["clinic", "region"])
def test_private_groups_name_their_threshold(kind, columns, options, counted, tier):
    """The plan and the figure of each tier say below which size a group does not appear, in rows or in patients."""
    db = clinic()
    one(db, "SELECT dp_tier('region', 2, 1e6, 1e-3, '{\"delta_keys\":1e-4}')")
    plan = json.loads(one(db, "SELECT dp_plan(?, ?, NULL, ?)", tier, kind, json.dumps(options)))
    one(db, "SELECT dp_release('clinic', ?, ?, ?)", kind, f"SELECT {columns} FROM visit", json.dumps({"name": "r", **options}))
    if tier == "region":
        one(db, "SELECT dp_diffuse('r', 'region')")
    threshold = one(db, "SELECT threshold FROM dp_publication WHERE tier = ?", tier)
    assert threshold == pytest.approx(plan["threshold"], rel=0.01)
    step = 10 ** max(len(str(int(threshold))) - 2, 0)
    shown = f"groups below about {-(-threshold // step) * step:,.0f} {counted} do not appear"
    for figure, in db.execute("SELECT figure FROM dp_value WHERE tier = ?", (tier,)):
        assert figure.endswith("; " + shown)
    assert plan["threshold"] != threshold or shown in plan["summary"]
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_figure_says_how_much_was_cut_off():
    """With the option diagnose, at each tier, from its own noisy counts."""
    db = clinic()
    one(db, "SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visit', '{\"name\":\"r\",\"clip\":60,\"diagnose\":true}')")
    one(db, "SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visit', '{\"name\":\"q\",\"clip\":60}')")
    found = json.loads(one(db, "SELECT dp_clipping('r', 'clinic')"))
    share, cut = round(100 * found["share"]), round(100 * found["cut"])
    assert db.execute("SELECT release, figure FROM dp_value ORDER BY release").fetchall() == [
        ("q", "sum, from -60 to 60 of each patient"), ("r", f"sum, from -60 to 60 of each patient; about {cut}% was cut off, from {share}% of patients (more if any is over {found['cut_within']:.0f} times the bound)")]
