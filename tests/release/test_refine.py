"""Tests refinement: a release is published at an outer tier first, and then at inner tiers for the difference of the rates."""

import math
import signal
import sqlite3

import numpy
import pytest

from conftest import INIT, interrupted, run, when_reading
from guard_helpers import guarded, outcome
from noise_helpers import check_path, charges, column, connect, error_of, fill, one, open_ledger

pytestmark = pytest.mark.alarm(3e-9)

TIERS = {"a": 1.0, "b": 0.3, "c": 0.1, "d": 0.02}
CLIP = 2.0
def ledger(options="{}", path=":memory:", tiers=TIERS):
    db = open_ledger(tiers, options, path)
    fill(db, [(9.0, 1), (2.5, 2), (-1.0, 3)])
    return db


def release(db, tier, refine=True, name="r", more=""):
    options = f'{{"name":"{name}","refine":{str(refine).lower()}{more}}}'
    return one(db, "SELECT dp_sum(?, x, ?, ?) FROM t", tier, CLIP, options)


def diffuse(db, tier, name="r"):
    return one(db, "SELECT dp_diffuse(?, ?)", name, tier)


def paid(db, tier, name="r"):
    return math.fsum(column(db, "SELECT rate FROM dp_charge WHERE tier = ? AND release = ?", tier, name))


# ---- what it costs -------------------------------------------------------------------------------------------------


def test_replays_after_refining_charge_nothing():
    db = ledger()
    outer, inner = release(db, "c"), release(db, "a")
    before = charges(db)
    assert (release(db, "c"), release(db, "a"), diffuse(db, "c"), diffuse(db, "a")) == (outer, inner, outer, inner)
    assert (release(db, "a", refine=False), release(db, "c", refine=False)) == (inner, outer)
    assert charges(db) == before


def test_points_are_stored_once_and_clocks_are_monotone(tmp_path):
    path = str(tmp_path / "data.db")
    db = ledger(path=path)
    for tier in ("c", "b", "a"):
        release(db, tier)
    diffuse(db, "d")
    db.close()
    with sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True) as books:
        points = books.execute("SELECT tier, clock FROM dp_path ORDER BY clock").fetchall()
        sensitivity = one(books, "SELECT sensitivity FROM dp_release")
    assert [tier for tier, _ in points] == ["a", "b", "c", "d"]
    assert all(later - before >= 16 for (_, before), (_, later) in zip(points, points[1:]))
    for tier, clock in points:
        assert sensitivity**2 <= 2 * TIERS[tier] * clock
        assert math.isclose(sensitivity**2 / (2 * clock), TIERS[tier], rel_tol=1e-9)


@pytest.mark.parametrize("inner,outer", [("a", "z"), ("z", "a")])
@pytest.mark.parametrize("then", ["diffuse", "refine"])
def test_tiers_too_close_for_a_draw_share_a_point(inner, outer, then):
    """If the rates are 1e-7 apart, the draw between them would need more variance than the lattice allows, so both tiers have the
    same point. The path continues from this point in both directions, for any names of the tiers."""
    db = ledger(tiers={"most": 1.0, inner: 0.10000001, outer: 0.1, "least": 0.05})
    value = release(db, outer)
    assert release(db, inner) == value
    before = len(charges(db))
    assert before == 3  # one charge each for the innermost tier, 'inner' and 'outer'
    if then == "diffuse":
        diffuse(db, "least")
        assert [charge[2] for charge in charges(db)[before:]] == ["least"]
    else:
        release(db, "most")
        assert [charge[2] for charge in charges(db)[before:]] == ["most"]
    assert one(db, "SELECT state FROM dp_release") == "released"
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("gap", [1e-16, 1e-12, 1e-9, 1e-6, 1e-3])
def test_close_tiers_outward(gap):
    """A step outward adds noise of at least 16 steps squared, so that points stay apart."""
    db = ledger(tiers={"in": 0.1, "out": 0.1 * (1 - gap) if gap > 1e-15 else math.nextafter(0.1, 0)})
    release(db, "in")
    diffuse(db, "out")
    clocks = column(db, "SELECT clock FROM dp_publication ORDER BY rate DESC")
    assert clocks[1] - clocks[0] >= 16
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- the law -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("walk", ["one tier at a time", "two tiers at once"])
@pytest.mark.parametrize("kind", ["sum", pytest.param("ou_sum", marks=pytest.mark.slow)])
@pytest.mark.sample(1)
def test_joint_law_is_that_of_the_forward_construction(walk, kind):
    """Each of 800 releases is made at c, refined at b and a, and diffused to d. The points are those of a Brownian path at the
    clocks of the tiers (40 comparisons of moments at seven standard errors, false alarms 7e-10)."""
    db = ledger()
    radius = ", 4" if kind == "ou_sum" else ""
    for tier in ("c", "b", "a") if walk == "one tier at a time" else ("c", "a"):
        for i in range(800):
            one(db, f"SELECT dp_{kind}(?, x, ?{radius}, ?) FROM t", tier, CLIP, f'{{"name":"r{i:05}","refine":true}}')
    for tier in ("b", "d"):
        db.execute("SELECT dp_diffuse(name, ?) FROM dp_release", (tier,)).fetchall()
    truth = 2 * CLIP - 1  # 9 and 2.5 are clipped to 2
    noise, stddev = [], []
    for tier in TIERS:
        shrink = one(db, "SELECT DISTINCT shrink FROM dp_publication WHERE tier = ?", tier)
        assert (shrink == 1) == (kind == "sum")
        noise.append(numpy.array(column(db, "SELECT value FROM dp_value WHERE tier = ? ORDER BY release", tier)) / shrink - truth)
        stddev.append(CLIP / math.sqrt(2 * TIERS[tier]))
    check_path(numpy.stack(noise, axis=1), stddev, f"{kind}, {walk}:")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_refinement_reads_the_data_again_not_the_outer_value():
    """A refinement reads the data again: the inner value is close to the true value even if the outer value is far from it."""
    db = ledger(tiers={"exact": 1.0, "wide": 1e-5})
    for i in range(20):
        release(db, "wide", name=f"n{i}")
        inner = release(db, "exact", name=f"n{i}")
        assert abs(inner - (2 * CLIP - 1)) <= 12 * CLIP / math.sqrt(2)


# ---- what is refused -----------------------------------------------------------------------------------------------


def test_an_inner_tier_needs_the_option():
    db = ledger()
    release(db, "c")
    before = charges(db)
    for sql in ("SELECT dp_sum('a', x, 2.0, 'r') FROM t", "SELECT dp_diffuse('r', 'a')",
                "SELECT dp_sum('a', x, 2.0, '{\"name\":\"r\",\"refine\":false}') FROM t",
                "SELECT dp_sum('b', x, 2.0, 'r') FROM t"):
        message = error_of(db, sql)
        assert "refine" in message and "'r'" in message
    assert charges(db) == before
    assert one(db, "SELECT state FROM dp_release") == "released"


def test_a_tier_created_before_the_walk_gets_its_point(tmp_path):
    """A new tier outside the outermost point or inside the innermost point gets its point like any other tier."""
    path = str(tmp_path / "data.db")
    db = ledger(path=path)
    release(db, "c")
    one(db, "SELECT dp_tier('in', 0.5, 1e15, 1e-6)")
    one(db, "SELECT dp_tier('out', 0.05, 1e15, 1e-6)")
    release(db, "a")
    diffuse(db, "d")
    diffuse(db, "in")
    diffuse(db, "out")
    assert one(db, "SELECT dp_verify()") == "ok"
    db.close()
    with sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True) as books:
        assert column(books, "SELECT tier FROM dp_path ORDER BY clock") == ["a", "in", "b", "c", "out", "d"]


def test_a_failed_refinement_leaves_what_was_there():
    """The charge stays and pays for another attempt. Nothing is drawn, and earlier publications stay valid."""
    db = ledger()
    question = "SELECT dp_release(?, 'sum', 'SELECT x FROM t', '{\"name\":\"r\",\"clip\":2.0,\"refine\":true}')"
    value = one(db, question, "c")
    message = interrupted(db, "SELECT dp_release('a', 'sum', 'SELECT x FROM t', '{\"name\":\"r\",\"clip\":2.0,\"refine\":true}')")
    assert message.startswith("dp_release: the query failed: ") and message.endswith("(the charge stays)")
    assert one(db, "SELECT state FROM dp_release") == "released"
    assert math.isclose(paid(db, "a"), TIERS["a"], rel_tol=1e-9)
    assert column(db, "SELECT tier FROM dp_publication") == ["c"]
    before = charges(db)
    assert one(db, question, "c") == value
    one(db, question, "a")
    assert charges(db) == before
    diffuse(db, "d")
    assert one(db, "SELECT dp_verify()") == "ok"


REFINED = "SELECT dp_release(?, 'sum', 'SELECT x FROM t', '{\"name\":\"%s\",\"clip\":%s,\"refine\":true}')"


def as_seen(path):
    """Returns what a member of an outer tier sees, with the stored answers, and the state of the release."""
    guest, owner = guarded(path, "c"), connect(path)
    rows = [outcome(guest, f"SELECT * FROM {table}") for table in ("dp_value", "dp_publication", "dp_release", "dp_budget")]
    assert "also answered with clip 2" in str(rows)
    seen = rows, one(owner, REFINED % ("r", "2.0"), "c"), diffuse(owner, "c"), one(owner, "SELECT state FROM dp_release WHERE name = 'r'")
    guest.close(), owner.close()
    return seen


def test_outer_tiers_see_nothing_of_a_refinement_that_reads_rows(tmp_path):
    db, seen = ledger(path=str(tmp_path / "data.db")), []
    one(db, REFINED % ("r", "2.0"), "c"), one(db, REFINED % ("wide", "8.0"), "c")
    seen.append(as_seen(tmp_path / "data.db"))
    when_reading(db, lambda: seen.append(as_seen(tmp_path / "data.db")))
    one(db, REFINED % ("r", "2.0"), "a")
    db.set_trace_callback(None)
    seen.append(as_seen(tmp_path / "data.db"))
    assert [state for *_, state in seen] == ["released", "charged", "released"] and seen[0][:3] == seen[1][:3] == seen[2][:3]


def test_outer_tiers_keep_their_release_if_a_refinement_is_killed(tmp_path):
    path = tmp_path / "data.db"
    db = ledger(path=str(path))
    one(db, REFINED % ("r", "2.0"), "c"), one(db, REFINED % ("wide", "8.0"), "c")
    before = as_seen(path)
    db.close()
    run("""
        db = connect(sys.argv[1])
        when_reading(db, lambda: os.kill(os.getpid(), signal.SIGKILL))
        one(db, sys.argv[2], "a")
        """, path, REFINED % ("r", "2.0"), expect=-signal.SIGKILL)
    after, db = as_seen(path), connect(path)
    assert after[:3] == before[:3] and after[3] == "charged" and one(db, "SELECT dp_verify()") == "ok"
    assert "not finished" in error_of(db, REFINED.replace("?", "'a'") % ("r", "2.0")) and "not finished" in error_of(db, "SELECT dp_diffuse('r', 'd')")


def test_an_interrupt_after_the_first_step_changes_no_refinement():
    """The first step of a refining statement makes, stores and seals the release."""
    db = ledger()
    release(db, "c")
    cursor = db.execute("SELECT dp_sum('a', x, 2.0, '{\"name\":\"r\",\"refine\":true}') FROM t")  # fetches the row
    db.interrupt()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        cursor.fetchall()
    assert one(db, "SELECT state FROM dp_release") == "released"
    assert one(db, "SELECT count(*) FROM dp_value WHERE tier = 'a'") == 1 and one(db, "SELECT dp_verify()") == "ok"
    assert math.isclose(paid(db, "a"), TIERS["a"], rel_tol=1e-9)


def test_an_exhausted_budget_refuses_a_refinement_whole():
    """Nothing is charged, read or marked, and earlier publications stay valid."""
    db = connect()
    one(db, INIT)
    one(db, "SELECT dp_tier('a', 1.0, dp_zcdp_epsilon(1.05, 1e-6), 1e-6)")  # the budget of c has no room for another release
    one(db, "SELECT dp_tier('c', 0.1, 1e15, 1e-6)")
    fill(db, [(1, 1)])
    one(db, "SELECT dp_sum('c', x, 2.0, 'other') FROM t")
    value = release(db, "c")
    before = charges(db)
    message = error_of(db, "SELECT dp_sum('a', x, 2.0, '{\"name\":\"r\",\"refine\":true}') FROM t")
    assert "tier 'a' would exceed its budget" in message and "this needs rate 0.9" in message
    assert charges(db) == before
    assert column(db, "SELECT state FROM dp_release") == ["released", "released"]
    assert diffuse(db, "c") == value
    assert one(db, "SELECT dp_verify()") == "ok"
