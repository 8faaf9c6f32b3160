"""Tests the noise of releases through SQL: its distribution at every tier, its lattice, and the exact answer without the
noise."""

import math
import random
import sqlite3
from fractions import Fraction

import numpy
import pytest
from scipy import stats

from conftest import INIT
from noise_helpers import check_path, check_share, column, connect, fill, one, open_ledger, record

pytestmark = [pytest.mark.xdist_group("noise"), pytest.mark.alarm(3e-8)]

TIERS = {"inner": 1.0, "middle": 0.3, "outer": 0.1}
EXACT = {"exact": 1e6}  # noise of clip/1414, so that the exact answer is visible
RELEASES = 1000  # tests/noise/ and test_lattice_design.c draw millions; here an error would be a factor


def sigma(clip, rate):
    return clip / math.sqrt(2 * rate)


@pytest.fixture(scope="module", params=[pytest.param("count", marks=pytest.mark.slow), "sum"])
def paths(request):
    """Makes releases of the same data at three tiers. Returns the kind, the clip, the true answer, {tier: rows of
    dp_value}, and the granularities."""
    kind, clip, truth = {"count": ("count", 2.0, 5.0), "sum": ("sum", 3.7, 3.2)}[request.param]
    db = open_ledger(TIERS)
    fill(db, [(1.25, "a"), (100.0, "b"), (-1.75, "c"), (0.0, "a")] if kind == "sum" else [(1, u) for u in "aaabbbc"])
    for i in range(RELEASES):
        one(db, f"SELECT dp_{kind}('inner', x, ?, ?) FROM t", clip, f"r{i:05}")
    db.execute("SELECT dp_diffuse(name, 'outer') FROM dp_release").fetchall()
    db.execute("SELECT dp_diffuse(name, 'middle') FROM dp_release").fetchall()
    rows = {tier: numpy.array(db.execute("SELECT value, stddev, low, high FROM dp_value WHERE tier = ? ORDER BY release",
                                         (tier,)).fetchall()) for tier in TIERS}
    granularities = column(db, "SELECT DISTINCT granularity FROM dp_release")
    assert one(db, "SELECT dp_verify()") == "ok"
    return kind, clip, truth, rows, granularities


def test_stddev_is_that_of_the_rate(paths):
    """dp_value.stddev is clip/sqrt(2 rate), rounded up by a relative 2e-6 at most, because the sensitivity is rounded
    up to an integer."""
    _, clip, _, rows, _ = paths
    for tier, rate in TIERS.items():
        assert len(set(rows[tier][:, 1])) == 1
        assert sigma(clip, rate) <= rows[tier][0, 1] <= sigma(clip, rate) * (1 + 2e-6)


def test_noise_is_one_brownian_path(paths):
    """Tests means, variances, covariances of the tiers, and the independence of steps between tiers (28 comparisons, false
    alarms 2e-10 in all)."""
    kind, clip, truth, rows, _ = paths
    noise = numpy.stack([rows[tier][:, 0] - truth for tier in TIERS], axis=1)
    check_path(noise, [sigma(clip, rate) for rate in TIERS.values()], kind)


def test_noise_is_gaussian(paths):
    """A Kolmogorov-Smirnov test at 1e-10. A lattice step is a millionth of sigma, so the test may treat the distribution as
    continuous."""
    _, clip, truth, rows, _ = paths
    for tier, rate in TIERS.items():
        assert stats.kstest((rows[tier][:, 0] - truth) / sigma(clip, rate), "norm").pvalue > 1e-10


def test_intervals_cover(paths):
    """The interval from low to high contains the truth with probability 95% (false alarm 2e-10 each)."""
    _, _, truth, rows, _ = paths
    for tier in TIERS:
        value, stddev, low, high = rows[tier].T
        check_share(numpy.sum((low <= truth) & (truth <= high)), len(value), 0.95)
        assert numpy.allclose((high - low) / stddev, 2 * stats.norm.ppf(0.975), rtol=1e-9)
        assert numpy.allclose((high + low) / 2, value)


def test_values_lie_on_the_lattice(paths):
    _, _, _, rows, granularities = paths
    assert len(granularities) == 1
    for tier in TIERS:
        steps = rows[tier][:, 0] * 2.0 ** -granularities[0]
        assert (steps == numpy.rint(steps)).all()


def test_low_order_bits_are_uniform(paths):
    """Tests the frequency of each of the 16 lowest bits (false alarms 2e-10 each, 2e-8 in all). Also tests the 64 patterns of
    the lowest six bits, by a chi-squared test at 1e-10, whose true false-alarm rate is 1.3e-10."""
    _, _, _, rows, granularities = paths
    for tier in TIERS:
        steps = (rows[tier][:, 0] * 2.0 ** -granularities[0]).astype(numpy.int64)
        for bit in range(16):
            check_share(int(((steps >> bit) & 1).sum()), len(steps), 0.5, f"bit {bit}")
        assert stats.chisquare(numpy.bincount(steps & 63, minlength=64)).pvalue > 1e-10


# ---- the lattice is public -----------------------------------------------------------------------------------------


def test_no_two_releases_share_their_noise():
    """No two releases have the same noise, in one connection or in two. Two draws with a standard deviation of 724,000 steps are
    equal with probability 3.9e-7. Among 600 draws, 0.07 equal pairs are expected; the probability of more than 6 equal pairs is
    2e-12. No sequence of three draws occurs twice (by chance with probability 1.1e-14)."""
    values = []
    for _ in range(2):
        db = open_ledger({"wide": 1e-6})
        fill(db, [(0, 1)])
        values += [one(db, "SELECT dp_sum('wide', x, 1) FROM t") for _ in range(300)]
    assert len(set(values)) >= len(values) - 6
    assert len(set(zip(values, values[1:], values[2:]))) == len(values) - 2


# ---- Ornstein-Uhlenbeck --------------------------------------------------------------------------------------------


def ou_ledger(tmp_path, options):
    """Makes a file database with one OU release at all tiers. Returns the publications joined with the points of the path."""
    path = str(tmp_path / "data.db")
    db = open_ledger(TIERS, path=path)
    fill(db, [(3.0, 1), (4.5, 2)])
    one(db, "SELECT dp_release('inner', 'ou_sum', 'SELECT x FROM t', ?)", options)
    one(db, "SELECT dp_diffuse('r', 'outer')")
    one(db, "SELECT dp_diffuse('r', 'middle')")
    release = record(db, "SELECT * FROM dp_release")
    db.close()
    ledger = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)
    ledger.row_factory = sqlite3.Row
    rows = ledger.execute("SELECT p.tier, p.clock, p.shrink, p.centre, v.value, v.stddev, v.low, v.high, x.value AS point,"
                          " x.clock AS point_clock FROM dp_publication p JOIN dp_value v USING (release_id, tier)"
                          " JOIN dp_path x USING (release_id, tier)").fetchall()
    ledger.close()
    assert {row["tier"] for row in rows} == set(TIERS)
    return release, rows


def check_views(release, rows, centre):
    g = release["granularity"]
    for row in rows:
        assert row["clock"] == row["point_clock"] and row["centre"] == centre
        x = math.ldexp(row["point"], g)
        assert row["value"] == centre + row["shrink"] * (x - centre)
        stddev = row["shrink"] * math.ldexp(math.sqrt(row["clock"]), g)
        assert stddev <= row["stddev"] <= stddev * (1 + 1e-12)
        assert row["low"] <= row["value"] <= row["high"]  # the interval grows up to a value that shrinks out of it


def tau(release, row):
    return Fraction(row["clock"]) * Fraction(4) ** release["granularity"]


def test_ou_shrink_of_theorem_8(tmp_path):
    """At every tier, the shrink is exactly R^2/(R^2 + tau), where tau follows from the clock. The value follows exactly from the
    point."""
    radius, centre = 7.5, 2.0
    release, rows = ou_ledger(tmp_path, '{"name":"r","clip":5,"radius":7.5,"centre":2}')
    check_views(release, rows, centre)
    for row in rows:
        t = tau(release, row)
        shrink = float(Fraction(radius) ** 2 / (Fraction(radius) ** 2 + t))
        assert math.isclose(row["shrink"], shrink, rel_tol=1e-12)
        assert math.isclose(float(t), sigma(5, TIERS[row["tier"]]) ** 2, rel_tol=4e-6)


def test_ou_shrink_of_the_homogeneous_process(tmp_path):
    """At every tier, the shrink is 1/sqrt(1 + theta tau/rho^2)."""
    theta, rho = 0.4, 3.0
    release, rows = ou_ledger(tmp_path, '{"name":"r","clip":5,"theta":0.4,"rho":3}')
    check_views(release, rows, 0.0)
    for row in rows:
        shrink = 1 / math.sqrt(1 + theta * float(tau(release, row)) / rho**2)
        assert math.isclose(row["shrink"], shrink, rel_tol=1e-12)


# ---- what is under the noise ---------------------------------------------------------------------------------------


def exact_sum(rows, clip):
    """Returns the sum of the totals of units, each clipped to [-clip, clip], in exact rational arithmetic."""
    totals = {}
    for x, unit in rows:
        if x is not None:
            key = (isinstance(unit, str), isinstance(unit, bytes), unit)
            totals[key] = totals.get(key, Fraction(0)) + Fraction(x)
    clip = Fraction(clip)
    return float(sum(max(-clip, min(clip, total)) for total in totals.values()))


def test_sum_is_exact_in_every_order():
    """Values whose sum has no correct digit in doubles are added in random order. The result is within 12 sigma (1e-32) of the
    exact sum every time."""
    db = open_ledger(EXACT)
    rng = random.Random(5)
    rows = [(rng.choice([1e16, -1e16, 1.0, 0.1, -3.5, 1e-9]), rng.randrange(12)) for _ in range(400)]
    rows += [(-x, unit) for x, unit in rows if abs(x) > 1e15]
    want = exact_sum(rows, 100)
    for _ in range(20):
        rng.shuffle(rows)
        fill(db, rows)
        assert abs(one(db, "SELECT dp_sum('exact', x, 100) FROM t") - want) <= 12 * sigma(100, 1e6)
        value = one(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM t ORDER BY abs(x), x DESC', '{\"clip\":100}')")
        assert abs(value - want) <= 12 * sigma(100, 1e6)


@pytest.mark.parametrize("units,count", [
    ([None] * 50, 0), ([1, 1.0], 1), ([0.0, -0.0, 0], 1), (["1", 1], 2), (["1", b"1"], 2), ([b"1", 1], 2),
    ([2**53 + 1, float(2**53)], 2), ([2**63 - 1, float(2**63)], 2), ([-2**63, -float(2**63)], 1), (["a", "A"], 2),
    (["", None], 1), ([b"", ""], 2), ([b"", None], 1), (["\u00e9", "e\u0301"], 2), ([float("inf"), float("-inf")], 2),
    (["a", "a\0b"], 2), ([b"a\0b", b"a\0c"], 2)])
@pytest.mark.parametrize("form", ["SELECT dp_count('exact', x, 1) FROM t",
                                  "SELECT dp_release('exact', 'count', 'SELECT x FROM t', '{\"clip\":1}')"])
def test_units_are_equal_as_sqlite_keys(units, count, form):
    """dp_count() with clip 1 counts each unit once, like SQLite's own count(DISTINCT). A row whose unit is NULL belongs to nobody."""
    db = open_ledger(EXACT)
    fill(db, [(1, unit) for unit in units])
    assert abs(one(db, form) - count) <= 12 * sigma(1, 1e6)
    assert one(db, "SELECT count(DISTINCT unit) FROM t") == count


@pytest.mark.parametrize("x,counts_as", [
    (12, 12), (-2.5, -2.5), ("12.5", 12.5), ("12abc", 0), ("abc", 0), ("", 0), ("1e2", 100), (" 7", 7), (b"12", 0),
    (b"\x00\xff", 0), (b"", 0), (float("inf"), 1000), (float("-inf"), -1000), (-2**63, -1000), (2**63 - 1, 1000),
    (1e308, 1000), (-1.7976931348623157e308, -1000), (5e-324, 0), ("1e999", 1000), ("nan", 0), ("inf", 0), (None, 0)])
@pytest.mark.parametrize("protects", ["unit", "row"])
def test_values_count_if_they_are_numbers(x, counts_as, protects):
    db = open_ledger(EXACT, f'{{"protects":"{protects}"}}')
    unit = "unit" if protects == "unit" else "NULL"
    fill(db, [(x, i) for i in range(1000)])  # so many rows that the noise of 0.7 is tiny beside their sum
    noise = 12 * sigma(1000, 1e6)
    assert abs(one(db, f"SELECT dp_sum('exact', x, 1000) FROM t") - 1000 * counts_as) <= noise
    value = one(db, f"SELECT dp_release('exact', 'sum', 'SELECT x FROM t', '{{\"clip\":1000}}')")
    assert abs(value - 1000 * counts_as) <= noise
    count = one(db, f"SELECT dp_count('exact', x, 1) FROM t")
    assert abs(count - 1000 * (x is not None)) <= 12 * sigma(1, 1e6)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
@pytest.mark.parametrize("sql", [
    "SELECT dp_sum('exact', x, 1000, '{\"name\":\"\u00fc\"}') FROM t",
    "SELECT dp_release('exact', 'sum', 'SELECT x FROM t', '{\"name\":\"\u00fc\",\"clip\":1000}')"])
def test_encodings(encoding, sql):
    """Text units are distinguished, and parameters stay the same from row to row, in every text encoding of the
    database."""
    db = connect()
    db.execute(f"PRAGMA encoding = '{encoding}'")
    one(db, INIT)
    one(db, "SELECT dp_tier('exact', 1e6, 1e15, 1e-6)")
    fill(db, [("25.5", f"n{i % 50}\u00e9") for i in range(3000)] + [("1", "n1e\u0301")])
    value = one(db, sql)
    assert abs(value - 50 * 1000) <= 12 * sigma(1000, 1e6)
    assert one(db, "SELECT name FROM dp_release") == "\u00fc"
    assert one(db, sql) == value


@pytest.mark.parametrize("protects", ["unit", "row"])
@pytest.mark.parametrize("where", ["WHERE 0", "WHERE x IS NULL"])
def test_empty_input_is_an_input(protects, where):
    """dp_release() accepts a query without rows, or with NULLs alone, and returns a noisy zero."""
    db = open_ledger(EXACT, f'{{"protects":"{protects}"}}')
    fill(db, [(None, 1), (None, 2), (3, 3)])
    for kind in ("count", "sum"):
        value = one(db, f"SELECT dp_release('exact', '{kind}', 'SELECT x FROM t {where}', '{{\"clip\":1}}')")
        assert value is not None and abs(value) <= 12 * sigma(1, 1e6)


def test_weight_makes_the_noise_of_a_smaller_rate():
    db = open_ledger(TIERS)
    fill(db, [(1, 1)])
    one(db, "SELECT dp_sum('inner', x, 2, '{\"name\":\"w\",\"weight\":0.25}') FROM t")
    one(db, "SELECT dp_diffuse('w', 'outer')")
    for tier in ("inner", "outer"):
        wanted = sigma(2, TIERS[tier] / 4)
        assert wanted <= one(db, "SELECT stddev FROM dp_value WHERE tier = ?", tier) <= wanted * (1 + 4e-6)
        assert one(db, "SELECT rate FROM dp_publication WHERE tier = ?", tier) <= TIERS[tier] / 4
