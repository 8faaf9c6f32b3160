"""Series of thousands of periods: their figures against dense linear algebra, the work that they take, the lock of the ledger, and
interrupts. Work is the time of the processor, so that a busy machine changes nothing."""

import fcntl
import json
import random
import sqlite3
import threading
import time

import numpy
import pytest
import scipy.linalg

import series_reference as reference
from noise_helpers import connect, one
from series_helpers import start

pytestmark = pytest.mark.alarm(0)

PERIODS = 3650
LABELS = [f"d{i:04}" for i in range(PERIODS)]
MOST = 5  # seconds for ten years of days
HEARD = 0.1  # seconds until an interrupt is heard

WORK = {
    "dp_append": "SELECT dp_append('s', 'd3649')",
    "dp_diffuse": "SELECT dp_diffuse('s', 'outer') IS NULL",
    "dp_span": "SELECT count(*) FROM dp_span('s', 'inner', 1)",
    "dp_span of 30": "SELECT count(*) FROM dp_span('s', 'inner', 30)",
    "dp_interval": "SELECT dp_interval('s', 'inner', 'd0000/d3649', 0.5)",
    "dp_plan": "SELECT dp_plan('inner', 'count', 12, json_object('periods', (SELECT json_group_array(label) FROM label)))",
    "dp_verify": "SELECT dp_verify()",
    "dp_report": "SELECT length(dp_report('inner'))",
}


def declare(path):
    rows = [(i % 500, LABELS[i * 7 % PERIODS], "north", 1) for i in range(20000)]
    db = start(path, rows)
    db.execute("CREATE TABLE label AS SELECT value AS label FROM json_each(?)", (json.dumps(LABELS),))
    options = {"name": "s", "periods": LABELS, "clip": 12, "diagnose": True}
    one(db, "SELECT dp_release('inner', 'count', 'SELECT label, 1 FROM visit', ?)", json.dumps(options))
    return db


def inner_numbers(db):
    return {key: row for key, *row in db.execute("SELECT key, value, stddev FROM dp_value WHERE release = 's' AND tier = 'inner'")}


@pytest.fixture(scope="module")
def ten_years(tmp_path_factory):
    """Does all the work once. Returns the database and the seconds of each call."""
    path = tmp_path_factory.mktemp("series") / "visits.db"
    db, seconds = declare(path), {}
    for name, sql in WORK.items():
        since = time.process_time()
        db.execute(sql).fetchall()
        seconds[name] = time.process_time() - since
    return path, db, seconds


@pytest.mark.parametrize("name", WORK)
def test_ten_years_of_days(ten_years, name):
    assert ten_years[2][name] < MOST


def test_all_figures_of_ten_years(ten_years):
    """Periods, totals and moving sums are the readings of the stored points that dense linear algebra finds, with its deviations. All
    figures are there, and hundreds of them are compared."""
    path, db, _ = ten_years
    with sqlite3.connect(f"{path}-ledger") as ledger:
        points = ledger.execute("SELECT component, value FROM dp_path WHERE tier = 'inner' AND component >= 0 ORDER BY key, component").fetchall()
        granularity, clock = ledger.execute("SELECT granularity, clock FROM dp_release JOIN dp_point p ON p.release_id = dp_release.id"
                                            " WHERE p.tier = 'inner'").fetchone()
    points = numpy.array([value for component, value in points if component == 0], float) * 2.0**granularity
    sigma = clock**0.5 * 2.0**granularity
    sums = {label: (t, t + 1) for t, label in enumerate(LABELS)}  # (first period, period after the last one)
    sums |= {f"{LABELS[0]}/{label}": (0, t + 1) for t, label in enumerate(LABELS)}
    moving = {f"{LABELS[t]}/{LABELS[t + 29]}": (t, t + 30) for t in range(PERIODS - 29)}
    found = [inner_numbers(db), {key: row for key, *row in db.execute("SELECT key, value, stddev FROM dp_span('s', 'inner', 30)")}]
    assert set(sums) <= set(found[0]) and set(moving) <= set(found[1])
    factor, place, chance = reference.matrix(PERIODS).T, numpy.arange(PERIODS)[:, None], random.Random(1)
    for asked, shown in zip((sums, moving), found):
        chosen = [*list(asked)[:2], *chance.sample(list(asked), 300), list(asked)[-1]]
        first, end = numpy.array([asked[key] for key in chosen]).T
        rows = scipy.linalg.solve_triangular(factor, ((place >= first) & (place < end)).astype(float)).T
        values, deviations = numpy.array([shown[key] for key in chosen]).T
        assert numpy.abs(values - rows @ points).max() < 1e-8 * sigma
        assert deviations == pytest.approx(sigma * numpy.linalg.norm(rows, axis=1), rel=1e-9)


def test_one_period_after_the_other_gives_the_same_figures(tmp_path):
    """The figures of a series do not depend on how many periods an append has, to the last bits."""
    db = start(tmp_path / "visits.db", [(i, f"p{i % 9}", "north", 1) for i in range(200)])
    labels = [f"p{i}" for i in range(9)]
    one(db, "SELECT dp_release('inner', 'count', 'SELECT label, 1 FROM visit', ?)", json.dumps({"name": "s", "periods": labels, "clip": 3}))
    for label in ("p0", "p1", "p4", "p8"):
        one(db, "SELECT dp_append('s', ?)", label)
    assert one(db, "SELECT dp_verify()") == "ok"
    assert one(db, "SELECT dp_diffuse('s', 'outer') IS NULL") == 1
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- the lock --------------------------------------------------------------------------------------


def share_locked(path, work):
    """Returns the share of the time of `work` at which somebody held the ledger's lock."""
    seen, going = [], True

    def look():
        while going:
            try:
                with open(f"{path}-ledger-lock") as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                        fcntl.flock(file, fcntl.LOCK_UN)
                        seen.append(0)
                    except BlockingIOError:
                        seen.append(1)
            except FileNotFoundError:
                seen.append(0)
            time.sleep(0.0005)

    thread = threading.Thread(target=look)
    thread.start()
    work()
    going = False
    thread.join()
    return sum(seen) / len(seen)


def test_a_guest_computes_without_the_lock(ten_years):
    """A guest who reads all moving sums holds the lock only while the points are read."""
    path, _, _ = ten_years
    guest = connect(str(path))
    one(guest, "SELECT dp_guard('inner')")
    guest.execute("SELECT count(*) FROM dp_span('s', 'inner', 1)").fetchall()
    assert share_locked(path, lambda: guest.execute("SELECT count(*) FROM dp_span('s', 'inner', 1000)").fetchall()) < 0.5


def test_others_release_while_a_series_computes(tmp_path):
    """Other connections wait for no more than the reading and the writing of rows."""
    path = tmp_path / "visits.db"
    db, waits, going = declare(path), [], True

    def release():
        other, i = connect(str(path)), 0
        while going or not waits:
            since = time.monotonic()
            i += 1
            one(other, "SELECT dp_release('outer', 'count', 'SELECT 1 FROM visit', ?)", json.dumps({"name": f"r{i}", "clip": 1}))
            waits.append(time.monotonic() - since)

    thread = threading.Thread(target=release)
    thread.start()
    for name in ("dp_append", "dp_diffuse", "dp_span", "dp_verify"):
        db.execute(WORK[name]).fetchall()
    going = False
    thread.join()
    assert len(waits) > 5 and max(waits) < MOST
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_series_that_changes_meanwhile(tmp_path):
    """A tier that gets the series while another connection appends gets the appended periods, too, and nothing is drawn twice."""
    path = tmp_path / "visits.db"
    db = declare(path)
    other = connect(str(path))
    thread = threading.Thread(target=lambda: time.sleep(0.02) or one(connect(str(path)), "SELECT dp_append('s', 'd1200')"))
    thread.start()
    one(other, "SELECT dp_diffuse('s', 'outer') IS NULL")
    thread.join()
    one(db, "SELECT dp_append('s', 'd1300')")
    found = db.execute("SELECT tier, count(*), count(DISTINCT key) FROM dp_value WHERE release = 's' GROUP BY tier").fetchall()
    assert found == [("inner", 2602, 2602), ("outer", 2602, 2602)]
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- interrupts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORK)
@pytest.mark.sample(4)
def test_interrupts_are_heard(ten_years, tmp_path, name):
    """Interrupts at several moments of each call are heard at once, and nothing is stored."""
    path, db, seconds = ten_years
    if name in ("dp_append", "dp_diffuse"):
        db = declare(tmp_path / "visits.db")
        if name == "dp_diffuse":
            db.execute(WORK["dp_append"]).fetchall()
    for part in (0.05, 0.5):
        waits = []

        def interrupt():
            time.sleep(part * seconds[name])
            waits.append(time.process_time())
            db.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            db.execute(WORK[name]).fetchall()
        except sqlite3.OperationalError as error:
            assert "interrupted" in str(error)
        ended = time.process_time()
        thread.join()
        assert ended - waits[0] < HEARD
    assert one(db, "SELECT dp_verify()") == "ok"
