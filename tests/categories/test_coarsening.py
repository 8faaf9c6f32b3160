"""Tests kernels on groups (dp_mix of dp_group_count and dp_group_sum) and OU by time (the option t). The tests transform the
stored point by exact arithmetic and compare the result with the published values. A release must cost as much as the
point from which its values follow. One test is statistical: it compares a variance at SEVEN standard errors, with a
false-alarm probability of at most 5e-10 (noise_helpers.py).
"""

import fractions
import json
import math
import sqlite3

import numpy
import pytest
from scipy import stats

from noise_helpers import (charges, check_covariance, check_variance, column, create_table, error_of, one, open_ledger, quick_path, record)

pytestmark = pytest.mark.alarm(2e-9)

TIERS = {"in": 0.5, "mid": 0.1, "out": 0.02, "far": 0.01}
KEYS = ["a1", "a2", "a3", "b1", "b2"]
COARSE = [[key, key[0], 1] for key in KEYS]
SPLIT = [["a1", "x", 0.25], ["a1", "y", 0.75], ["a2", "y", 1], ["a3", "x", 1 / 3], ["a3", "z", 2 / 3], ["b1", "z", 1],
         ["b2", "x", 0.5], ["b2", "y", 0.5]]


@pytest.fixture
def path():
    with quick_path() as name:
        yield name


def ledger(path=":memory:", tiers=TIERS, options="{}"):
    db = open_ledger(tiers, options, path)
    create_table(db, "k, x, unit")
    db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(KEYS[i % 5], i % 7, i) for i in range(400)])
    return db


CALLS = {
    "group_count": ("SELECT dp_group_count('in', k, 1, ?) FROM t", {}),
    "group_sum": ("SELECT dp_group_sum('in', k, x, 6, ?) FROM t", {}),
    "ou_group_count": ("SELECT dp_ou_group_count('in', k, 500, 1, ?) FROM t", {"centre": 50}),
    "ou_group_sum": ("SELECT dp_ou_group_sum('in', k, x, 6, NULL, ?) FROM t", {"theta": 0.3, "rho": 20, "centre": 7}),
}


def release(db, kind, name="r"):
    sql, options = CALLS[kind]
    return json.loads(one(db, sql, json.dumps({"name": name, "keys": KEYS, **options})))


def mix(db, tier, kernel, name="r"):
    return json.loads(one(db, "SELECT dp_mix(?, ?, ?)", name, tier, json.dumps(kernel)))


def points(path, tier):
    books = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)
    rows = books.execute("SELECT key, value, clock FROM dp_path WHERE tier = ? ORDER BY key", (tier,)).fetchall()
    granularity = books.execute("SELECT granularity FROM dp_release").fetchone()[0]
    books.close()
    step = fractions.Fraction(2) ** granularity
    return {key: value * step for key, value, _ in rows}, rows[0][2] * step * step


def weights(kernel):
    """Returns the kernel with the probabilities that are drawn: multiples of 2^-52, divided by the sum of the row."""
    steps = {(x, y): math.floor(fractions.Fraction(p) * 2**52 + fractions.Fraction(1, 2)) for x, y, p in kernel}
    sums = {key: sum(w for (x, _), w in steps.items() if x == key) for key in KEYS}
    return {(x, y): fractions.Fraction(w, sums[x]) for (x, y), w in steps.items()}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("kernel", [COARSE, SPLIT], ids=["coarse", "split"])
def test_what_is_published_is_the_point_sent_on(path, kind, kernel):
    db = ledger(path)
    release(db, kind)
    before = one(db, "SELECT count(*) FROM dp_charge")
    answer = mix(db, "out", kernel)
    assert one(db, "SELECT dp_verify()") == "ok"
    values, variance = points(path, "out")
    shrink, centre, stored = db.execute("SELECT shrink, centre, kernel FROM dp_publication WHERE tier = 'out'").fetchone()
    assert (shrink < 1) == (kind[:2] == "ou") and (centre != 0) == (kind[:2] == "ou")
    p = weights(kernel)
    symbols = sorted({y for _, y in p})
    assert sorted(answer) == symbols
    z = stats.norm.isf(0.025)
    for y in symbols:
        want = sum(p.get((x, y), 0) * (fractions.Fraction(centre) + fractions.Fraction(shrink) * (v - fractions.Fraction(centre)))
                   for x, v in values.items())
        noise = shrink * math.sqrt(variance * sum(p.get((x, y), 0) ** 2 for x in KEYS))
        row = record(db, "SELECT value, stddev, low, high FROM dp_value WHERE tier = 'out' AND key = ?", y)
        assert row["value"] == answer[y] == pytest.approx(float(want), rel=1e-12, abs=1e-9)
        assert row["stddev"] == pytest.approx(noise, rel=1e-9) and row["stddev"] >= noise * (1 - 1e-12)
        # The interval is for the exact number: around the value without the shrinking, and so wide that it contains the value.
        middle, half = float(sum(p.get((x, y), 0) * v for x, v in values.items())), z * noise / shrink
        assert row["high"] == pytest.approx(max(middle + half, row["value"]), rel=1e-9)
        assert row["low"] == pytest.approx(min(middle - half, row["value"]), rel=1e-9)
    if kernel is COARSE and kind == "group_count":  # whole lattice steps: the sums are exact
        assert all(answer[y] == float(sum(v for x, v in values.items() if x[0] == y)) for y in symbols)
    # The cost is that of the point: the same as for dp_diffuse of another release with the same layout.
    release(db, kind, "other")
    one(db, "SELECT dp_diffuse('other', 'out')")
    costs = [column(db, "SELECT rate FROM dp_publication WHERE tier = 'out' AND release = ?", name) for name in ("r", "other")]
    paid = [db.execute("SELECT tier, rate FROM dp_charge WHERE release = ? ORDER BY id", (name,)).fetchall() for name in ("r", "other")]
    assert costs[0] == costs[1] and paid[0] == paid[1] and before > 0
    assert json.loads(stored) == [[x, y, pytest.approx(q)] for x, y, q in sorted(kernel)]


def test_further_out_the_path_goes_on_from_the_point(path):
    """The path has a point of all groups, even at a tier that shows coarse groups only. A diffusion to a further tier
    begins at this point."""
    db = ledger(path)
    release(db, "group_count")
    mix(db, "mid", COARSE)
    fine = json.loads(one(db, "SELECT dp_diffuse('r', 'out')"))
    assert sorted(fine) == KEYS
    coarse = mix(db, "far", COARSE)
    assert sorted(coarse) == ["a", "b"] and one(db, "SELECT dp_verify()") == "ok"
    assert json.loads(one(db, "SELECT dp_diffuse('r', 'mid')")) == mix(db, "mid", COARSE)
    exposure = lambda *tiers: json.loads(one(db, "SELECT dp_exposure(?)", ",".join(tiers)))["rate"]
    assert exposure("mid", "out", "far") == exposure("mid") > exposure("out")


def test_the_noise_of_sums_of_cells():
    """The error of a coarse cell has the stated variance, and is correlated with the errors at the inner tier of the cells that
    it unites."""
    db = ledger(tiers={"in": 0.5, "out": 0.1})
    inner, outer = [], []
    for i in range(400):
        fine = release(db, "group_count", f"r{i}")
        coarse = mix(db, "out", COARSE, f"r{i}")
        inner.append(sum(fine[k] for k in KEYS[:3]) - 240)
        outer.append(coarse["a"] - 240)
    stated = record(db, "SELECT stddev FROM dp_value WHERE release = 'r0' AND tier = 'out' AND key = 'a'")["stddev"]
    cell = record(db, "SELECT stddev FROM dp_value WHERE release = 'r0' AND tier = 'in' AND key = 'a1'")["stddev"]
    check_variance(outer, stated)
    check_covariance(outer, inner, 3 * cell**2)
    assert stated == pytest.approx(math.sqrt(3 / (2 * 0.1)), rel=1e-3)


def test_steps_of_a_matrix_on_groups():
    db = ledger()
    fine = release(db, "group_count")
    walk = [[x, y, 0.5 + 0.1 if x == y else 0.1] for x in KEYS for y in KEYS]
    sent = json.loads(one(db, "SELECT dp_mix('r', 'out', ?, 3)", json.dumps(walk)))
    assert sorted(sent) == KEYS and fine
    matrix = numpy.linalg.matrix_power(0.5 * numpy.eye(5) + 0.1, 3)
    values = json.loads(one(db, "SELECT json_group_array(stddev) FROM dp_value WHERE tier = 'out'"))
    clock = one(db, "SELECT clock FROM dp_publication WHERE tier = 'out'")
    step = 2.0 ** one(db, "SELECT granularity FROM dp_release")
    assert values == pytest.approx(list(math.sqrt(clock) * step * numpy.sqrt((matrix**2).sum(axis=0))))
    assert one(db, "SELECT dp_verify()") == "ok"


def test_tampering_is_found(path):
    for change in ("UPDATE dp_value SET value = value + 1 WHERE tier = 'out' AND key = 'a'",
                   "UPDATE dp_publication SET kernel = replace(kernel, '\"b\",1', '\"a\",1') WHERE tier = 'out'",
                   "UPDATE dp_publication SET kernel = NULL WHERE tier = 'out'",
                   "UPDATE dp_publication SET kernel = '[[\"a1\",\"a\",1]]' WHERE tier = 'out'"):
        with quick_path() as name:
            db = ledger(name)
            release(db, "group_count")
            mix(db, "out", COARSE)
            db.close()
            books = sqlite3.connect(name + "-ledger")
            assert books.execute(change).rowcount == 1
            books.commit()
            books.close()
            db = open_again(name)
            assert one(db, "SELECT dp_verify()").startswith("dp_value: 'r' at tier 'out' is not what"), change
            db.close()


def open_again(path):
    from noise_helpers import connect

    return connect(path)


def test_what_is_refused():
    db = ledger()
    release(db, "group_count")
    mix(db, "out", COARSE)
    before = charges(db)
    one(db, "SELECT dp_count('in', 1, 1, 'number') FROM t")
    one(db, "SELECT dp_group_avg('in', k, x, 0, 6, ?) FROM t", json.dumps({"name": "means", "keys": KEYS}))
    before = charges(db)
    for name, tier, kernel, wanted in (
            ("r", "out", SPLIT, "dp_mix: release 'r' is at tier 'out' by another kernel (it is mixed once)"),
            ("r", "in", COARSE, "dp_mix: release 'r' is at tier 'in' from the start (ask dp_value)"),
            ("r", "far", COARSE[:4], "dp_mix: the kernel has no row for x 'b2'"),
            ("r", "mid", COARSE[:4], "dp_mix: the kernel has no row for x 'b2'"),
            ("number", "out", COARSE, "dp_mix: release 'number' has neither a symbol nor counts or sums of public groups"),
            ("means", "out", COARSE, "dp_mix: release 'means' has neither a symbol nor counts or sums of public groups")):
        assert error_of(db, "SELECT dp_mix(?, ?, ?)", name, tier, json.dumps(kernel)).startswith(wanted), wanted
    assert charges(db) == before and one(db, "SELECT dp_verify()") == "ok"
    assert sorted(mix(db, "far", COARSE)) == ["a", "b"]


def test_many_groups():
    """A kernel maps thousands of places to a few regions in a short time. The time would be long if the code searched
    over pairs of states."""
    db = ledger()
    keys = [f"place {i:04d}" for i in range(2000)]
    one(db, "SELECT dp_group_count('in', k, 1, ?) FROM t", json.dumps({"name": "places", "keys": keys}))
    regions = mix(db, "out", [[key, f"region {i % 9}", 1] for i, key in enumerate(keys)], "places")
    assert len(regions) == 9 and one(db, "SELECT dp_verify()") == "ok"


# ---- OU by time ----------------------------------------------------------------------------------------------------

OU = {"ou_count": ("SELECT dp_ou_count('in', x, NULL, 1, ?) FROM t", 1, 1),
      "ou_sum": ("SELECT dp_ou_sum('in', x, 6, NULL, ?) FROM t", 6, 1),
      "ou_group_sum": ("SELECT dp_ou_group_sum('in', k, x, 6, NULL, ?) FROM t", 6, 5)}


@pytest.mark.parametrize("kind", OU)
@pytest.mark.parametrize("theta, rho, t", [(0.3, 2.0, 3.0), (0.01, 9.0, 40.0)])
def test_a_release_at_a_time(kind, theta, rho, t):
    """The shrink, noise and rate are those of the process at this time (Balle et al. 2019, Corollary 7)."""
    db = ledger()
    sql, sensitivity, dimension = OU[kind]
    options = {"name": "r", "theta": theta, "rho": rho, "t": t, **({"keys": KEYS} if dimension > 1 else {})}
    answer = one(db, sql, json.dumps(options))
    clock = rho**2 * math.expm1(2 * theta * t) / theta
    rate = sensitivity**2 / (2 * clock)
    published = record(db, "SELECT rate, shrink FROM dp_publication")
    assert rate * (1 - 1e-3) <= published["rate"] <= rate * (1 + 1e-9)
    assert published["shrink"] == pytest.approx(math.exp(-theta * t), rel=1e-3)
    stddev = math.exp(-theta * t) * math.sqrt(clock)
    assert column(db, "SELECT stddev FROM dp_value") == pytest.approx([stddev] * dimension, rel=1e-3)
    assert one(db, sql, json.dumps(options)) == answer and one(db, "SELECT dp_verify()") == "ok"
    plan = json.loads(one(db, "SELECT dp_plan('in', ?, ?, ?)", kind, sensitivity,
                          json.dumps({k: v for k, v in options.items() if k != "name"})))
    assert plan["weight"] == pytest.approx(rate / 0.5, rel=1e-9)
    # At outer tiers, the values are those of the same process at a later time.
    one(db, "SELECT dp_diffuse('r', 'out')")
    later = record(db, "SELECT rate, shrink FROM dp_publication WHERE tier = 'out'")
    assert later["rate"] == pytest.approx(rate * 0.02 / 0.5, rel=1e-3)
    time = math.log1p(theta * sensitivity**2 / (2 * later["rate"]) / rho**2) / (2 * theta)
    assert later["shrink"] == pytest.approx(math.exp(-theta * time), rel=1e-3) and time > t


def test_a_time_that_costs_more_than_the_tier_is_refused():
    db = ledger()
    least = math.log1p(0.3 * 36 / (2 * 0.5) / 4) / (2 * 0.3)
    ask = lambda **options: ("SELECT dp_ou_sum('in', x, 6, NULL, ?) FROM t", json.dumps({"theta": 0.3, "rho": 2, **options}))
    assert error_of(db, *ask(t=least * 0.999)).startswith("dp_ou_sum: time ")
    assert f"(give a t of at least {least:.6g}"[:-1] in error_of(db, *ask(t=least / 2))
    assert not charges(db)
    one(db, *ask(t=least * (1 + 1e-14)))
    assert one(db, "SELECT weight FROM dp_release") == pytest.approx(1, rel=1e-9)
    for options, wanted in (({"t": 9, "weight": 0.5}, "dp_ou_sum: t asks for a weight: give one of them, not both"),
                            ({"t": 0}, "dp_ou_sum: t must be"), ({"t": 1e9}, "dp_ou_sum: weight makes a rate outside")):
        assert error_of(db, *ask(**options)).startswith(wanted)
    assert error_of(db, "SELECT dp_ou_sum('in', x, 6, 9, '{\"t\":1}') FROM t") == (
        "dp_ou_sum: t is a time of the process that theta and rho describe (they are missing)")
    assert error_of(db, "SELECT dp_ou_avg('in', x, 0, 6, 9, '{\"t\":1,\"theta\":1,\"rho\":1}') FROM t").startswith(
        "dp_ou_avg: t is for counts and sums")
    assert "unknown option" in error_of(db, "SELECT dp_sum('in', x, 6, '{\"t\":1}') FROM t")
