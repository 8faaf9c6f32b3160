"""Tests that the intervals of dp_value hold the exact figures, where this is hardest: rows that tie, wide ranges, values that shrink.
tests/mechanism/test_estimate.c has spreads of few rows and keys that are rarely published.

A share of intervals may be as small as a binomial variable with probability 0.95 is with probability 1e-11. There are at most 60
such comparisons. Everything else is exact. bench/coverage.md has the shares of all kinds.
"""

import decimal
import json
import math
import statistics

import pytest
from scipy import stats

from conftest import connect, make_ledger, one

pytestmark = [pytest.mark.xdist_group("intervals"), pytest.mark.alarm(6e-10)]

TIERS = [("inner", 0.1, 1e12, 0.1, "rdp", 0.05), ("outer", 0.02, 1e12, 0.1, "rdp", 0.05)]


def ledger(rows, tiers=TIERS):
    """Returns a database with the table t(unit, k, x), whose units have one row each, and a ledger with its policy."""
    db = connect(":memory:")
    db.execute("CREATE TABLE t(unit INTEGER PRIMARY KEY, k, x)")
    db.executemany("INSERT INTO t(k, x) VALUES (?, ?)", rows)
    make_ledger(db, "{}", "t, unit")
    for tier in tiers:
        db.execute(f"SELECT dp_tier({','.join('?' * len(tier))})", tier).fetchall()
    return db


def release(db, kind, options, query="SELECT x FROM t", outer=True):
    one(db, "SELECT dp_release('inner', ?, ?, ?)", kind, query, json.dumps({"name": "r", **options}))
    if outer:
        one(db, "SELECT dp_diffuse(?, 'outer')", options.get("name", "r"))


def check_share(held, count, what):
    assert count and stats.binom.cdf(held, count, 0.95) >= 1e-11, f"{what}: {held} of {count}"


# ---- medians and quantiles -------------------------------------------------------------------------


HOUSE = [("ties", [50.0] * 1000, 0, 100), ("wide", [math.exp(10.8 + 0.7 * statistics.NormalDist().inv_cdf((i + 0.5) / 2000)) for i in range(2000)], 0, 1e7),
         ("mostly tied", [65000] * 1600 + [20000 + 37 * i for i in range(400)], 0, 1e6), ("at the ends", [0.0] * 300 + [100.0] * 700, 0, 100)]


@pytest.mark.parametrize("name,xs,lo,hi", HOUSE, ids=[case[0] for case in HOUSE])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.sample(4)
def test_an_interval_of_a_quantile_is_made_of_leaves_and_holds_it(name, xs, lo, hi, mechanism):
    db, qs, times, leaf = ledger((0, x) for x in xs), [0.25, 0.5, 0.75, 0.9], 12, (hi - lo) / 1024
    exact = [sorted(xs)[math.ceil(0.5 + q * (len(xs) - 1)) - 1] for q in qs]
    for i in range(times):
        release(db, "quantile", {"q": qs, "lo": lo, "hi": hi, "mechanism": mechanism, "name": str(i)})
    for component, truth in enumerate(exact):
        rows = db.execute("SELECT tier, low, high, display FROM dp_value WHERE component = ?", (component,)).fetchall()
        check_share(sum(low <= truth <= high for _, low, high, _ in rows), len(rows), (name, qs[component]))
        for tier, low, high, display in rows:
            assert all(abs(place - round(place)) < 1e-6 for place in ((low - lo) / leaf, (high - lo) / leaf)) and high - low > 0.99 * leaf
            for number in display.replace(",", "").replace("±", " ").replace("(", " ").replace(")", " ").replace("to", " ").split():
                assert decimal.Decimal(number) == round(decimal.Decimal(number), -math.floor(math.log10(leaf))), display
    for confidence in (0.5, 0.95):
        low, high = json.loads(one(db, "SELECT dp_interval('0', 'outer', 1, ?)", confidence))
        assert all(abs(place - round(place)) < 1e-6 for place in ((low - lo) / leaf, (high - lo) / leaf)) and high > low
        assert confidence == 0.5 or (low, high) == db.execute("SELECT low, high FROM dp_value WHERE release = '0' AND tier = 'outer' AND component = 1").fetchone()
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("xs", [[3, 40], [50] * 12, [20] * 20 + [40] * 25 + [80] * 5, [100] * 30], ids=["two", "tied", "three", "end"])
def test_quantiles_of_few_rows(xs):
    """The noise is as large as the number of rows."""
    keys, qs = 150, [0.1, 0.5, 0.9]
    db = ledger((key, x) for key in range(keys) for x in xs)
    release(db, "group_quantile", {"q": qs, "lo": 0, "hi": 100, "bins": 64, "keys": list(range(keys))}, "SELECT k, x FROM t")
    for component, q in enumerate(qs):
        truth = sorted(xs)[math.ceil(0.5 + q * (len(xs) - 1)) - 1]
        for tier in ("inner", "outer"):
            check_share(one(db, "SELECT sum(low <= ? AND ? <= high) FROM dp_value WHERE tier = ? AND component = ?", truth, truth, tier, component), keys, (xs, q))


@pytest.mark.parametrize("q", [0, 0.1, 0.333, 0.4, 0.5, 0.9])
@pytest.mark.sample(3)
def test_a_plan_of_a_quantile_holds_for_every_q(q):
    """The rows are spread evenly, so that dp_plan() assumes what is the case. The noise is many leaves wide."""
    keys, n = 200, 500
    db = ledger((key, (i + 0.5) / n) for key in range(keys) for i in range(n))
    options = {"q": q, "lo": 0, "hi": 1, "bins": 128, "keys": list(range(keys))}
    planned = json.loads(one(db, "SELECT dp_plan('inner', 'group_quantile', NULL, ?)", json.dumps({**options, "rows": n * keys})))["half_width"]
    release(db, "group_quantile", options, "SELECT k, x FROM t", outer=False)
    truth = (0.5 + q * (n - 1)) / n
    held = one(db, "SELECT sum(abs(value - ?) <= ?) FROM dp_value", truth, planned)
    assert stats.binom.cdf(held, keys, 0.93) >= 1e-11, (q, held)


@pytest.mark.parametrize("lo,hi,grid", [(0, 10, 0.1), (0, 100, 0.1), (-1, 1, 0.01), (0.3, 5.3, 0.2), (1e6, 1e6 + 3, 0.05)])
def test_values_on_a_grid_are_the_literals_that_people_type(lo, hi, grid):
    """Each literal is the only value in the data. Noise cannot move it, so it is the answer and the interval."""
    step, first = decimal.Decimal(repr(grid)), decimal.Decimal(repr(lo))
    db = ledger([], [("inner", 1e5, 1e15, 1e-6)])
    values = int((decimal.Decimal(repr(hi)) - first) / step)
    for k in sorted({0, values} | set(range(0, values, max(1, values // 8)))):
        literal = str(first + k * step)
        db.execute("DELETE FROM t")
        db.execute(f"WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9) INSERT INTO t(x) SELECT {literal} FROM n")
        release(db, "median", {"lo": lo, "hi": hi, "grid": grid, "name": literal}, outer=False)
        row = db.execute("SELECT value, low, high FROM dp_value WHERE release = ?", (literal,)).fetchone()
        assert row == (float(literal),) * 3, literal


# ---- OU kinds ---------------------------------------------------------------------


@pytest.mark.parametrize("kind,options,truth", [
    ("ou_group_count", {"clip": 1, "radius": 50}, 5), ("ou_group_sum", {"radius": 50, "clip": 100, "centre": 10}, 300), ("ou_group_avg", {"radius": 5, "lo": 0, "hi": 100, "centre": 50}, 60),
    ("ou_group_sum", {"theta": 1, "rho": 0.5, "clip": 100}, 300), ("ou_group_var", {"theta": 1, "rho": 30, "lo": 0, "hi": 100}, 200)])
def test_the_interval_of_a_value_that_shrinks_holds_the_true_value(kind, options, truth):
    keys, xs = 400, [40, 50, 60, 70, 80]
    db = ledger((key, x) for key in range(keys) for x in xs)
    release(db, kind, {**options, "keys": list(range(keys))}, "SELECT k FROM t" if kind == "ou_group_count" else "SELECT k, x FROM t")
    for tier in ("inner", "outer"):
        check_share(one(db, "SELECT sum(low <= ? AND ? <= high) FROM dp_value WHERE tier = ?", truth, truth, tier), keys, (kind, tier))
    is_kept = kind == "ou_group_avg" and "radius" in options
    words = ", kept within 5 of 50" if is_kept else f", shrunk towards {options.get('centre', 0)}"
    assert one(db, "SELECT count(*) FROM dp_value WHERE low <= value AND value <= high AND display LIKE '%' || ?", words) == 2 * keys
