"""Series: one release whose numbers arrive period by period. The reference is a plain loop over the rows in Python."""

import json
import sqlite3

import pytest

from conftest import connect, one, reading, refused, run, start

pytestmark = pytest.mark.alarm(0)

TIERS = [("clinic", 1e6, 1e9), ("region", 1e5, 1e8), ("public", 1e-3, 30.0)]  # the noise of the first two is far below 1
MONTHS = "SELECT strftime('%Y-%m', day), x FROM visit"
KEYED = "SELECT strftime('%Y-%m', day), ward, x FROM visit"


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


def test_a_series_is_charged_once_and_reads_nothing_at_first(clinic):
    with reading(clinic) as reads:
        assert declare(clinic, "sum", MONTHS, clip=20) is None
        assert declare(clinic, "sum", MONTHS, clip=20) is None
        assert one(clinic, "SELECT dp_diffuse('s', 'region')") is None
    assert not reads and values(clinic) == {}
    charges = clinic.execute("SELECT * FROM dp_charge").fetchall()
    budgets = clinic.execute("SELECT * FROM dp_budget").fetchall()
    assert len(charges) == 2
    with reading(clinic) as reads:
        assert round(one(clinic, "SELECT dp_append('s', '2025-02')")) == 6
    assert reads
    with reading(clinic) as reads:
        assert round(one(clinic, "SELECT dp_append('s', '2025-01')")) == 2
        assert round(one(clinic, "SELECT dp_append('s', '2025-02')")) == 6
    assert not reads
    one(clinic, "SELECT dp_append('s', '2025-04')")
    found = {key: round(value) for key, value in values(clinic).items()}
    assert found == {"2025-01": 2, "2025-02": 6, "2025-03": 1, "2025-04": 0, "2025-01/2025-01": 2, "2025-01/2025-02": 8,
                     "2025-01/2025-03": 9, "2025-01/2025-04": 9}
    assert {key: round(value) for key, value in values(clinic, "region").items()} == found
    assert clinic.execute("SELECT * FROM dp_charge").fetchall() == charges
    assert clinic.execute("SELECT * FROM dp_budget").fetchall() == budgets
    assert one(clinic, "SELECT dp_verify()") == "ok"


def test_published_rows_stay_and_late_rows_count_nothing(clinic):
    declare(clinic, "sum", MONTHS, clip=20)
    one(clinic, "SELECT dp_append('s', '2025-02')")
    before = clinic.execute("SELECT * FROM dp_value ORDER BY key").fetchall()
    clinic.execute("INSERT INTO visit VALUES (7, '2025-01-09', 'a', 50)")
    clinic.execute("DELETE FROM visit WHERE patient = 2")
    one(clinic, "SELECT dp_append('s', '2025-03')")
    after = clinic.execute("SELECT * FROM dp_value ORDER BY key").fetchall()
    assert [row for row in after if "2025-03" not in row[3]] == before
    assert round(values(clinic)["2025-01/2025-03"]) == 9


def test_what_a_person_counted_stays_spent(clinic):
    declare(clinic, "sum", MONTHS, clip=6)
    one(clinic, "SELECT dp_append('s', '2025-01')")  # patient 1 spends 2
    clinic.execute("DELETE FROM visit WHERE patient = 1 AND day < '2025-02'")
    one(clinic, "SELECT dp_append('s', '2025-03')")  # 5 of the remaining 4, then nothing
    assert {key: round(value) for key, value in values(clinic).items() if "/" not in key} == {"2025-01": 2, "2025-02": 5, "2025-03": -3}


@pytest.mark.parametrize("kind, sql, options, expected", [
    ("count", MONTHS, {"clip": 9}, {"2025-02": 2, "2025-01/2025-03": 5}),
    ("count_distinct", "SELECT strftime('%Y-%m', day) FROM visit", {"clip": 9}, {"2025-02": 2, "2025-01/2025-03": 5}),
    ("count_distinct", "SELECT strftime('%Y-%m', day) FROM visit", {}, {"2025-02": 1, "2025-01/2025-03": 3}),
    ("avg", MONTHS, {"clip": 9, "lo": -10, "hi": 10}, {"2025-02": 3, "2025-01/2025-03": 1.8}),
    ("group_count", "SELECT strftime('%Y-%m', day), ward FROM visit", {"clip": 9, "keys": ["b", "a"]},
     {'["2025-02","a"]': 1, '["2025-02","b"]': 2, '["2025-01/2025-03","b"]': 3}),
    ("group_sum", KEYED, {"clip": 20, "keys": ["a", "b"]}, {'["2025-01/2025-02","a"]': 7, '["2025-03","b"]': 4}),
    ("group_avg", KEYED, {"clip": 9, "lo": -10, "hi": 10, "keys": ["a"]}, {'["2025-03","a"]': -3, '["2025-01/2025-02","a"]': 3.5}),
])
def test_every_kind(clinic, kind, sql, options, expected):
    declare(clinic, kind, sql, **options)
    one(clinic, "SELECT dp_append('s', '2025-03')")
    found = values(clinic)
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=0.4)
    assert one(clinic, "SELECT dp_verify()") == "ok"


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


@pytest.mark.parametrize("periods, labels", [
    ("2024-W52/2025-W02", ["2024-W52", "2025-W01", "2025-W02"]), ("2020-W53/2021-W01", ["2020-W53", "2021-W01"]),
    ("2024-02-28/2024-03-01", ["2024-02-28", "2024-02-29", "2024-03-01"]), ("2024-Q4/2025-Q1", ["2024-Q4", "2025-Q1"]),
    ("2024/2025", ["2024", "2025"]), (["b", "a"], ["b", "a"])])
def test_labels(clinic, periods, labels):
    declare(clinic, "count", "SELECT ward, 1 FROM visit", clip=9, periods=periods)
    one(clinic, "SELECT dp_append('s', ?)", labels[-1])
    assert set(values(clinic)) == set(labels) | {f"{labels[0]}/{label}" for label in labels}


@pytest.mark.parametrize("periods", ["2025-01", "2025-13/2026-01", "2025-W53/2026-W01", "2025-01/2025-Q2", "2025-02/2025-01", "2025-02-29/2025-03-01",
                                     "0000/4096", [], ["a", "a"], [""], ["a/b"], [1], 3, {}])
def test_labels_that_are_refused(clinic, periods):
    assert "period" in refused(clinic, "SELECT dp_release('clinic', 'sum', ?, ?)", MONTHS, json.dumps(
        {"name": "s", "clip": 9, "periods": periods}))
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


@pytest.mark.parametrize("ends", [True, False], ids=["the last period", "dp_discard"])
def test_the_file_keeps_no_secret_after_the_end(tmp_path, ends):
    """Looks for the secret, the exact sums and the entries of the book in the bytes of the ledger's file."""
    path = tmp_path / "clinic.db"
    db = open_clinic(path, [(f"p{i}", f"2025-0{i % 4 + 1}-02", "a", i * 0.37) for i in range(3000)])
    declare(db, "sum", MONTHS, clip=500)
    one(db, "SELECT dp_append('s', '2025-03')")
    file = tmp_path / "clinic.db-ledger"
    with sqlite3.connect(file) as ledger:
        (secret,), = ledger.execute("SELECT secret FROM dp_release")
        sums = [value for (value,) in ledger.execute("SELECT value FROM dp_exact")]
        units = b"".join(part for (part,) in ledger.execute("SELECT units FROM dp_allowance"))
    assert len(secret) == 64 and len(sums) == 3 and len(units) == 24 * 2250
    needles = [secret.encode()] + [value.encode() for value in sums] + [units[i:i + 16] for i in range(0, len(units), 24)]
    before = file.read_bytes()
    assert all(needle in before for needle in needles[:4]) and sum(needle in before for needle in needles) > 0.95 * len(needles)
    one(db, "SELECT dp_append('s', '2025-04')" if ends else "SELECT dp_discard('s')")
    left = file.read_bytes()
    assert not [needle for needle in needles if needle in left]
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("edit", ["UPDATE dp_release SET appended = 1", "UPDATE dp_exact SET value = '7' WHERE period = '2025-01'",
                                  "UPDATE dp_allowance SET units = zeroblob(length(units))", "UPDATE dp_release SET secret = NULL"])
def test_edits_of_what_a_series_remembers_are_found(clinic, tmp_path, edit):
    declare(clinic, "sum", MONTHS, clip=20)
    one(clinic, "SELECT dp_append('s', '2025-02')")
    with sqlite3.connect(tmp_path / "clinic.db-ledger") as ledger:
        ledger.execute(edit)
    assert one(clinic, "SELECT dp_verify()") != "ok"
    assert "is damaged" in refused(clinic, "SELECT dp_append('s', '2025-03')")


def test_pure_epsilon_has_a_point_for_each_period():
    db = connect()
    db.execute("CREATE TABLE visit(patient, day TEXT, ward TEXT, x REAL)")
    db.executemany("INSERT INTO visit VALUES (?, ?, ?, ?)", ROWS)
    db.execute("SELECT dp_init()"), db.execute("SELECT dp_protect('visit', 'patient')")
    db.execute("SELECT dp_tier('public', 0.5, 30, 0, 'pure')")
    declare(db, "sum", MONTHS, tier="public", clip=20)
    db.execute("SELECT dp_append('s', '2025-03')")
    assert one(db, "SELECT mechanism FROM dp_release") == "laplace" and one(db, "SELECT dp_verify()") == "ok"
    found = values(db, "public")
    assert found["2025-01/2025-03"] == pytest.approx(sum(found[f"2025-0{i}"] for i in (1, 2, 3)))


def test_a_killed_append_leaves_nothing_or_all(tmp_path):
    """Kills an append at many steps of the statement and of the ledger's commit. Afterwards, the same append gives the same sums."""
    path = tmp_path / "clinic.db"
    db = open_clinic(path, ROWS)
    declare(db, "sum", MONTHS, clip=20)
    one(db, "SELECT dp_append('s', '2025-01')")
    before = db.execute("SELECT * FROM dp_value").fetchall()
    db.close()
    outcomes = []
    for delay in (0, 0.002, 0.005, 0.01, 0.02, 0.04):
        run("""
            import signal, threading
            db = connect(sys.argv[1])
            threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGKILL)).start()
            db.execute("SELECT dp_append('s', '2025-03')").fetchall()
            os.kill(os.getpid(), signal.SIGKILL)
            """, path, str(delay), expect=-9)
        db = connect(path)
        found = db.execute("SELECT * FROM dp_value").fetchall()
        assert found == before or len(found) == 6 and (not outcomes or found in outcomes)
        outcomes += [found] if len(found) == 6 else []
        assert one(db, "SELECT dp_verify()") == "ok"
        db.close()
    db = connect(path)
    one(db, "SELECT dp_append('s', '2025-03')")
    assert {key: round(value) for key, value in values(db).items() if "/" not in key} == {"2025-01": 2, "2025-02": 6, "2025-03": 1}


def test_two_processes_append_with_one_draw(tmp_path):
    path = tmp_path / "clinic.db"
    db = open_clinic(path, ROWS)
    declare(db, "sum", MONTHS, tier="public", clip=20)
    processes = [start("print(repr(one(connect(sys.argv[1]), \"SELECT dp_append('s', '2025-02')\")))", path) for _ in range(3)]
    assert len({process.communicate()[0] for process in processes}) == 1
    assert all(process.returncode == 0 for process in processes)
    assert len(values(db, "public")) == 4 and one(db, "SELECT dp_verify()") == "ok"


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
    assert found["summary"].partition("% ")[2] == f"of patients were cut down to the {reason}: a larger clip would lower the bias"


def test_dp_answer_names_the_periods(clinic):
    """The rows of a series that dp_answer() returns have their keys, also if the kind has none."""
    sql = "SELECT key, value, display FROM dp_answer('clinic', 'sum', ?, ?)"
    arguments = (MONTHS, json.dumps({"name": "s", "clip": 20, "periods": "2025-01/2025-04"}))
    assert clinic.execute(sql, arguments).fetchall() == []
    one(clinic, "SELECT dp_append('s', '2025-02')")
    found = clinic.execute(sql, arguments).fetchall()
    assert [row[0] for row in found] == ["2025-01", "2025-01/2025-01", "2025-01/2025-02", "2025-02"]
    assert found == clinic.execute("SELECT key, value, display FROM dp_value ORDER BY key").fetchall()
