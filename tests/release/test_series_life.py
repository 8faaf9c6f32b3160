"""What a series says: errors, the words of clipping, and the rows of dp_answer()."""

import json
import sqlite3

import pytest

from conftest import connect, one, refused

pytestmark = pytest.mark.alarm(0)

TIERS = [("clinic", 1e6, 1e9), ("region", 1e5, 1e8), ("public", 1e-3, 30.0)]  # the noise of the first two is far below 1
MONTHS = "SELECT strftime('%Y-%m', day), x FROM visit"


def open_clinic(path, rows, adjacency="add-remove"):
    db = connect(path)
    db.execute("CREATE TABLE visit(patient, day TEXT, ward TEXT, x REAL)")
    db.executemany("INSERT INTO visit VALUES (?, ?, ?, ?)", rows)
    db.execute("SELECT dp_init(?)", (json.dumps({"unit": "patient", "adjacency": adjacency}),))
    db.execute("SELECT dp_protect('visit', 'patient')")
    for name, rate, epsilon in TIERS:
        db.execute("SELECT dp_tier(?, ?, ?, 1e-6, 'rdp')", (name, rate, epsilon))
    return db


def declare(db, kind, sql, tier="clinic", **options):
    options = {"name": "s", "periods": "2025-01/2025-04"} | options
    return one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, sql, json.dumps(options))


def values(db, tier="clinic"):
    return dict(db.execute("SELECT key, value FROM dp_value WHERE release = 's' AND tier = ?", (tier,)).fetchall())


ROWS = [(1, "2025-01-03", "a", 2), (1, "2025-02-03", "a", 5), (1, "2025-03-03", "b", 4), (2, "2025-02-03", "b", 1),
        (2, "2025-02-20", "b", None), (3, "2025-03-31", "a", -3), (3, "2026-03-31", "a", 9), (4, None, "a", 9)]


@pytest.fixture
def clinic(tmp_path):
    return open_clinic(tmp_path / "clinic.db", ROWS)


def test_events_are_answered_with_their_sentences(clinic):
    declare(clinic, "sum", MONTHS, tier="region", clip=20)
    assert "'s' ends with 2025-04 (declare a series for the next periods)" in refused(clinic, "SELECT dp_append('s', '2025-05')")
    assert "'s' has no such period (its periods are 2025-01 to 2025-04)" in refused(clinic, "SELECT dp_append('s', '2025-W05')")
    assert "is a series and cannot be refined" in refused(clinic, "SELECT dp_diffuse('s', 'clinic')")
    assert "2025-01 has not been appended" in refused(clinic, "SELECT * FROM dp_span('s', 'region', '2025-01', '2025-02')")
    clinic.execute("SELECT dp_release('clinic', 'sum', ?, ?)", (MONTHS, json.dumps({"name": "far", "clip": 1, "periods": "9999/9999"})))
    assert "9999 ends on 9999-12-31 (append it afterwards)" in refused(clinic, "SELECT dp_append('far', '9999')")
    clinic.execute("DROP TABLE visit")
    assert "no such table" in refused(clinic, "SELECT dp_append('s', '2025-01')")
    assert one(clinic, "SELECT dp_verify()") == "ok"


def test_a_series_ends_with_the_budget_that_pays_for_it():
    db = connect()
    db.execute("CREATE TABLE visit(patient, day TEXT, x REAL)")
    db.execute("SELECT dp_init()"), db.execute("SELECT dp_protect('visit', 'patient')")
    db.execute("""SELECT dp_tier('clinic', 1, 1e6, 1e-6, '{"period":"year"}')""")
    year = one(db, "SELECT strftime('%Y', 'now')")
    for periods, error in (("1999/2999", "'s' ends on 2999-12-31, but the budget of tier 'clinic' ends on"),
                           (["first", "second"], "so the periods of a series must be dates")):
        assert error in refused(db, "SELECT dp_release('clinic', 'sum', ?, ?)", MONTHS, json.dumps({"name": "s", "clip": 1, "periods": periods}))
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    assert declare(db, "sum", MONTHS, clip=1, periods=f"{year}-01/{year}-12") is None


@pytest.mark.parametrize("edit", ["UPDATE dp_release SET appended = 1", "UPDATE dp_exact SET value = '7' WHERE period = '2025-01'",
                                  "UPDATE dp_allowance SET units = zeroblob(length(units))", "UPDATE dp_release SET secret = NULL"])
def test_edits_of_what_a_series_remembers_are_found(clinic, tmp_path, edit):
    declare(clinic, "sum", MONTHS, clip=20)
    one(clinic, "SELECT dp_append('s', '2025-02')")
    with sqlite3.connect(tmp_path / "clinic.db-ledger") as ledger:
        ledger.execute(edit)
    assert one(clinic, "SELECT dp_verify()") != "ok"
    assert "is damaged" in refused(clinic, "SELECT dp_append('s', '2025-03')")


def test_errors_name_the_periods_and_the_component(clinic):
    declare(clinic, "sum", MONTHS, clip=20)
    message = refused(clinic, "SELECT dp_release('clinic', 'sum', ?, ?)", MONTHS,
                      json.dumps({"name": "s", "clip": 20, "periods": "2025-01/2025-12"}))
    assert "'s' exists with other parameters: sum {\"clip\":20.0}, periods 2025-01/2025-04 (choose another name)" in message
    one(clinic, "SELECT dp_append('s', '2025-01')")
    assert one(clinic, "SELECT dp_interval('s', 'clinic', '2025-01', 0.9, 0)")
    assert "has no value for this key" in refused(clinic, "SELECT dp_interval('s', 'clinic', '2025-01', 0.9, 1)")


@pytest.mark.parametrize("kind, options, reason", [
    ("count_distinct", {}, "bound, because they were in more periods than clip"),
    ("count", {"clip": 1}, "bound, because they had more rows than clip in all periods together"),
    ("avg", {"clip": 1, "lo": 3, "hi": 4}, "bound, because they had more rows than clip in all periods together (values outside lo and hi are not counted)"),
    ("sum", {"clip": 3}, "bound, because their total of all periods was beyond clip")])
def test_reasons_of_clipping(clinic, kind, options, reason):
    """Of three persons, the first has visits in three months. Values outside lo and hi cut nobody down."""
    sql = "SELECT strftime('%Y-%m', day) FROM visit" if kind == "count_distinct" else MONTHS
    declare(clinic, kind, sql, diagnose=True, **options)
    one(clinic, "SELECT dp_append('s', '2025-03')")
    found = json.loads(one(clinic, "SELECT dp_clipping('s', 'clinic')"))
    assert found["share"] == pytest.approx(1 / 3, abs=0.1)
    assert found["summary"].partition("% ")[2] == (
        f"of patients were cut down to the {reason}: a larger clip would lower the bias; how much was cut off is told only of counts and"
        " sums without private keys and periods")


def test_dp_answer_names_the_periods(clinic):
    """The rows of a series that dp_answer() returns have their keys, also if the kind has none."""
    sql = "SELECT key, value, display FROM dp_answer('clinic', 'sum', ?, ?)"
    arguments = (MONTHS, json.dumps({"name": "s", "clip": 20, "periods": "2025-01/2025-04"}))
    assert clinic.execute(sql, arguments).fetchall() == []
    one(clinic, "SELECT dp_append('s', '2025-02')")
    found = clinic.execute(sql, arguments).fetchall()
    assert [row[0] for row in found] == ["2025-01", "2025-01/2025-01", "2025-01/2025-02", "2025-02"]
    assert found == clinic.execute("SELECT key, value, display FROM dp_value ORDER BY key").fetchall()
