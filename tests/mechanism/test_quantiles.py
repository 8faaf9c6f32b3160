"""Tests quantiles from a noisy tree: the error in rank, and the answers for odd data.

Moments may differ from their expectation by SEVEN standard errors, in addition to the effect of noise in a leaf. A false alarm
has probability 1e-11 for each of about 40 comparisons, and 4e-10 in all.
"""

import json
import math

import numpy
import pytest

from noise_helpers import SEVEN, charges, column, error_of, fill, one, open_ledger

pytestmark = [pytest.mark.xdist_group("quantiles"), pytest.mark.alarm(4e-10)]

EXACT = {"exact": 1e6}


def quantiles(db, q, lo, hi, tier="exact", unit="unit", **options):
    """Returns quantiles from the tree. Without its mechanism, one quantile would be a draw (test_exponential_quantiles.py)."""
    result = one(db, f"SELECT dp_quantile(?, x, ?, ?, ?, ?) FROM t", tier, json.dumps(q) if isinstance(q, list) else q, lo, hi,
                 json.dumps({"mechanism": "gaussian", **options}))
    return json.loads(result) if isinstance(q, list) else result


def rank_variance(levels, q, place):
    """Returns the variance of the least-squares estimate of (1 - q) (rows in the first `place` leaves) - q (other rows). The
    estimate uses the counts of all nodes of a binary tree except the root, each with noise of variance 1."""
    design = numpy.array([[leaf >> (levels - level) == node for leaf in range(1 << levels)]
                          for level in range(1, levels + 1) for node in range(1 << level)], dtype=float)
    c = numpy.where(numpy.arange(1 << levels) < place, 1 - q, -q)
    return float(c @ numpy.linalg.solve(design.T @ design, c))


# ---- how far off ---------------------------------------------------------------------------------------------------

LEVELS = 4
LEAVES = 1 << LEVELS
RATE, PER_LEAF, RELEASES = 50.0, 60, 1500
PLACES = [1, 3, 4, 8, 11, 15]
# The places of the quantiles. Ranks run from 1/2 to n - 1/2.
RIGHT = [(0.5 + place / LEAVES * (LEAVES * PER_LEAF - 1)) / PER_LEAF for place in PLACES]


@pytest.fixture(scope="module", params=["add-remove", pytest.param("replace", marks=pytest.mark.slow)])
def errors(request):
    """Returns the errors in rank of RELEASES releases at the boundaries of leaves, the standard deviation of the noise of a node,
    and the rows of dp_value."""
    db = open_ledger({"wide": RATE}, json.dumps({"adjacency": request.param}))
    fill(db, [(i // PER_LEAF + (i % PER_LEAF + 0.5) / PER_LEAF, i) for i in range(LEAVES * PER_LEAF)])
    qs = [place / LEAVES for place in PLACES]
    values = numpy.array([quantiles(db, qs, 0, LEAVES, "wide", bins=LEAVES) for _ in range(RELEASES)])
    stated = numpy.array(db.execute("SELECT value, stddev, low, high FROM dp_value ORDER BY release_id, component").fetchall())
    sigma = math.sqrt(LEVELS * (2 if request.param == "replace" else 1) / (2 * RATE))
    return (values - RIGHT) * PER_LEAF, sigma, stated.reshape(RELEASES, len(PLACES), 4)


def test_the_error_in_rank_is_that_of_least_squares(errors):
    """A leaf has 60 rows, and the noise of a node has the standard deviation 0.2 (or 0.3). The error in rank is therefore
    proportional to the error in value, up to a curvature of 2%."""
    off, sigma, _ = errors
    for j, place in enumerate(PLACES):
        stddev = sigma * math.sqrt(rank_variance(LEVELS, place / LEAVES, place))
        assert abs(numpy.std(off[:, j]) / stddev - 1) <= 0.02 + SEVEN / math.sqrt(2 * RELEASES), place
        assert abs(numpy.mean(off[:, j])) <= 0.02 * stddev + SEVEN * stddev / math.sqrt(RELEASES), place


def test_stated_figures_are_those_of_least_squares(errors):
    """stddev is the standard deviation of the rank divided by the rows in a leaf of width 1. The intervals are whole leaves, much
    wider than this noise."""
    _, sigma, stated = errors
    for j, place in enumerate(PLACES):
        stddev = sigma * math.sqrt(rank_variance(LEVELS, place / LEAVES, place)) / PER_LEAF
        assert numpy.allclose(stated[:, j, 1], stddev, rtol=0.06)
        held = numpy.mean((stated[:, j, 2] <= RIGHT[j]) & (RIGHT[j] <= stated[:, j, 3]))
        assert held >= 0.95 - SEVEN * math.sqrt(0.95 * 0.05 / RELEASES)
        assert (stated[:, j, 2:] == numpy.round(stated[:, j, 2:])).all() and (stated[:, j, 2] < stated[:, j, 3]).all()


@pytest.mark.slow
def test_a_long_tree_costs_its_levels():
    """A tree has 1024 leaves of 4 rows each, and the noise of a node has a standard deviation of sqrt(10) rows. The median has
    the error of the least-squares estimate. (The test makes 400 releases and allows 5% for the noise in the leaf of the
    median.)"""
    db = open_ledger({"wide": 200.0})
    fill(db, [(i / 4 + 0.1, i) for i in range(4096)])
    values = numpy.array([quantiles(db, 0.5, 0, 1024, "wide") for _ in range(400)])
    stddev = math.sqrt(10 / 400) * math.sqrt(rank_variance(10, 0.5, 512)) / 4
    assert abs(numpy.std(values) / stddev - 1) <= 0.05 + SEVEN / math.sqrt(800)
    assert abs(numpy.mean(values) - 512) <= 0.05 * stddev + SEVEN * stddev / math.sqrt(400)


def test_the_median_is_the_quantile_at_one_half():
    """dp_median() and dp_quantile() at 1/2 have the same distribution. The test compares the mean and the spread of 500 releases
    of each."""
    db = open_ledger({"wide": 5.0})
    fill(db, [(i % 97 / 97, i) for i in range(200)])
    a = [one(db, "SELECT dp_median('wide', x, 0, 1, '{\"bins\":16,\"mechanism\":\"gaussian\"}') FROM t") for _ in range(500)]
    b = [quantiles(db, 0.5, 0, 1, "wide", bins=16) for _ in range(500)]
    spread = math.sqrt((numpy.var(a) + numpy.var(b)) / 500)
    assert abs(numpy.mean(a) - numpy.mean(b)) <= SEVEN * spread
    assert abs(math.log(numpy.std(a) / numpy.std(b))) <= SEVEN * math.sqrt(1 / 500) * 1.2  # 1.2: heavier tails than a Gaussian
    plans = [json.loads(one(db, "SELECT dp_plan('wide', ?, 1, ?)", kind, options)) for kind, options in
             (("median", '{"lo":0,"hi":1,"bins":16}'), ("quantile", '{"lo":0,"hi":1,"bins":16,"q":0.5}'))]
    assert {**plans[0], "kind": 0, "summary": 0} == {**plans[1], "kind": 0, "summary": 0}


# ---- what always holds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e-6, 0.01, 1.0, 1e6])
@pytest.mark.parametrize("rows", [[], [(None, 1)], [(0.5, 1)], [(i / 7, i) for i in range(7)], [(-1e308, 1), (1e308, 2)]],
                         ids=["empty", "null", "one", "few", "outside"])
def test_monotone_and_in_range(rate, rows):
    db = open_ledger({"t": rate})
    fill(db, rows)
    qs = [0, 1e-9, 0.1, 0.25, 0.3, 0.5, 0.5, 0.75, 0.99, 1]
    for bins in (2, 64, 1024):
        result = json.loads(one(db, "SELECT dp_release('t', 'quantile', 'SELECT x FROM t', ?)",
                                json.dumps({"q": qs, "lo": -2.5, "hi": 1.25, "bins": bins})))
        assert result == sorted(result) and all(-2.5 <= value <= 1.25 for value in result)
        assert result[5] == result[6]
    for value, stddev, low, high in db.execute("SELECT value, stddev, low, high FROM dp_value"):
        assert -2.5 <= low <= value <= high <= 1.25 and 0 <= stddev <= 3.75


def test_the_order_of_q_is_kept():
    db = open_ledger(EXACT)
    fill(db, [(i / 100, i) for i in range(100)])
    result = quantiles(db, [0.9, 0.1, 0.5, 0.1], 0, 1)
    assert result[1] == result[3] < result[2] < result[0]
    assert result == pytest.approx([0.9, 0.1, 0.5, 0.1], abs=0.03)


def test_a_number_and_an_array():
    db = open_ledger(EXACT)
    fill(db, [(i / 100, i) for i in range(100)])
    for q in ("0.25", "2.5e-1"):
        assert one(db, f"SELECT typeof(dp_quantile('exact', x, {q}, 0, 1)) FROM t") == "real"
    assert one(db, "SELECT typeof(dp_quantile('exact', x, '[0.25]', 0, 1)) FROM t") == "text"
    assert one(db, "SELECT typeof(dp_quantile('exact', x, 0, 0, 1)) FROM t") == "real"
    assert one(db, "SELECT typeof(dp_quantile('exact', x, 1, 0, 1)) FROM t") == "real"
    assert json.loads(quantiles_text(db, "[ 0.25 ,\n0.5 ]")) == pytest.approx([0.25, 0.5], abs=0.03)
    assert [json.loads(q) for q in column(db, "SELECT json_extract(options, '$.q') FROM dp_release ORDER BY id DESC LIMIT 1")] == [[0.25, 0.5]]
    many = [i / 999 for i in range(1000)]
    result = quantiles(db, many, 0, 1)
    assert len(result) == 1000 and result == sorted(result)


def quantiles_text(db, q):
    return one(db, "SELECT dp_quantile('exact', x, ?, 0, 1) FROM t", q)


@pytest.mark.parametrize("q", ["[]", "[0.5", "[0.5,]", "[0.5 0.6]", "[[0.5]]", "[-0.1]", "[1.1]", "[0.5,null]", "['a']", "[true]",
                               "{\"q\":0.5}", "", "abc", "0.5x", "-0.0001", "1.0001", "1e999", "NaN", "5.", "0x1", "0.5.", "--0.5",
                               "[" + ",".join(["0.5"] * 1001) + "]", None, b"0.5", b"[0.5]"])
def test_malformed_q(q):
    db = open_ledger(EXACT)
    fill(db, [(1, 1)])
    message = error_of(db, "SELECT dp_quantile('exact', x, ?, 0, 1) FROM t", q)
    assert "q must be a number in [0, 1] or a JSON array of at most 1000 such numbers" in message
    assert not charges(db)


@pytest.mark.parametrize("bins", [2, 4, 1024, 65536])
def test_bins_are_the_resolution(bins):
    """If all rows are at one place, the answer lies in the leaf of this place."""
    db = open_ledger(EXACT)
    fill(db, [(0.3, i) for i in range(1000)])
    at = math.floor(0.3 * bins)
    value = quantiles(db, 0.5, 0, 1, bins=bins)
    assert at / bins <= value <= (at + 1) / bins
    assert value == pytest.approx((at + 0.5) / bins, abs=0.01 / bins)
    assert one(db, "SELECT dimension FROM dp_release") == 2 * bins - 2


@pytest.mark.parametrize("bins", [0, 1, 3, 1000, 1025, 65535, 65537, 131072, -2, 2.5, 1e9])
def test_other_bins_are_refused(bins):
    db = open_ledger(EXACT)
    fill(db, [(1, 1)])
    for call in ("dp_quantile('exact', x, 0.5, 0, 1, ?)", "dp_median('exact', x, 0, 1, ?)"):
        message = error_of(db, f"SELECT {call} FROM t", json.dumps({"bins": bins}))
        assert message.split(": ")[1] in ("bins must be a number in [1, 65536]", "bins must be a whole number",
                                          "bins must be a power of two from 2 to 65536")
    assert not charges(db)


def test_degenerate_data():
    """If all rows are equal, below the range, above the range, at its ends or infinite, the answer lies in their leaf."""
    db = open_ledger(EXACT)
    for x, low, high in ((0.5, 512 / 1024, 513 / 1024), (-7, 0, 1 / 1024), (9e999, 1023 / 1024, 1), (0, 0, 1 / 1024), (1, 1023 / 1024, 1),
                         (-9e999, 0, 1 / 1024), ("0.75", 0.75, 0.75 + 1 / 1024)):
        fill(db, [(x, i) for i in range(100)])
        for value in quantiles(db, [0.1, 0.5, 0.9], 0, 1):
            assert low <= value <= high, x


def test_without_rows_the_range_is_halved():
    """If all noisy counts are zero, the median is the middle of the range. Otherwise it may be any value of the range."""
    db = open_ledger(EXACT)
    fill(db, [])
    values = [json.loads(one(db, "SELECT dp_release('exact', 'quantile', 'SELECT x FROM t', ?)",
                             '{"q":[0,0.5,1],"lo":-4,"hi":4,"bins":2}')) for _ in range(50)]
    assert all(-4 <= a <= b <= c <= 4 for a, b, c in values)


def test_a_unit_weighs_the_same_wherever_its_rows_lie():
    """One unit has one row in each of 16 leaves and weighs one row, as every other unit."""
    db = open_ledger(EXACT)
    fill(db, [(i / 16 + 0.01, "whale") for i in range(16)] + [(0.01, i) for i in range(100)])
    # The count of the first leaf is 100 + 1/16. The count of every other leaf is 1/16. The q below is chosen so that its
    # quantile lies 4.5 leaves above 0.
    q = (100 + 4.5 / 16 - 0.5) / (99 + 1)
    assert quantiles(db, q, 0, 1, bins=16) == pytest.approx(4.5 / 16, abs=0.01)


@pytest.mark.parametrize("clip", [1, 3, 16])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_median_does_not_follow_units_whose_rows_lie_apart(clip, mechanism):
    """5 of 9 units have 16 rows with the value 10, the others have 16 rows above 30. The median is 10, by unit and by row."""
    db = open_ledger({"exact": 1e6, "near": 1000.0})
    tier = "near" if mechanism == "laplace" else "exact"
    rows = [(10, f"near {i}") for i in range(50) for _ in range(16)]
    fill(db, rows + [(31 + (7 * i + 13 * j) % 70, f"far {i}") for i in range(40) for j in range(16)])
    assert quantiles(db, 0.5, 0, 100, tier, grid=1, clip=clip, mechanism=mechanism) == 10
    groups = one(db, f"SELECT dp_group_median('{tier}', 'all', x, 0, 100, ?) FROM t",
                 json.dumps({"keys": ["all"], "grid": 1, "clip": clip, "mechanism": mechanism}))
    assert json.loads(groups) == {"all": 10}
