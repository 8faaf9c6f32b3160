"""Tests the option "grid" of quantiles: x counts as the nearest of lo, lo + grid, lo + 2 grid, ..., and the answer is one of them.

Answers are compared with least squares and isotonic regression in numpy, computed from the noisy counts in dp_path. The
coverage of the intervals may be SEVEN standard errors below 95%. A false alarm has probability 3e-12 in each of 4
comparisons. tests/helpers/kinds_tables.py runs the tests of all kinds (exact sums, neighbours, shards, tampering) on calls
with a grid, too.
"""

import json
import math
import random
import sqlite3
from fractions import Fraction

import numpy
import pytest
from scipy import stats

from kinds_reference import levels
from noise_helpers import SEVEN, charges, error_of, fill, one, open_ledger, quick_path

pytestmark = [pytest.mark.xdist_group("grid"), pytest.mark.alarm(2e-11)]

QS = [0, 0.1, 0.25, 0.5, 0.73, 1]


def ask(db, tier, q, lo, hi, **options):
    return json.loads(one(db, "SELECT dp_quantile(?, x, ?, ?, ?, ?) FROM t", tier, json.dumps(q), lo, hi, json.dumps(options)))


def consistent(nodes, levels):
    """Returns the matrix from leaves to nodes, and the counts of the leaves by least squares."""
    design = numpy.array([[leaf >> (levels[-1] - level) == node for leaf in range(1 << levels[-1])]
                          for level in levels for node in range(1 << level)], dtype=float)
    return design, numpy.linalg.lstsq(design, nodes, rcond=None)[0]


def isotonic(totals):
    """Returns the best non-decreasing fit. Its value at place i is the maximum over starts a <= i of the minimum over
    ends b >= i of the mean from a to b."""
    sums = numpy.concatenate([[0], numpy.cumsum(totals)])
    n = len(totals)
    means = numpy.array([[(sums[b + 1] - sums[a]) / (b + 1 - a) if b >= a else math.inf for b in range(n)] for a in range(n)])
    return [max(min(means[a, i:]) for a in range(i + 1)) for i in range(n)]


def reference(nodes, levels, sigma, q, lo, hi, grid, bins):
    """Returns the answer and its interval under Gaussian noise."""
    values = round((hi - lo) // grid) + 1
    share = -(-values // bins)
    design, leaves = consistent(nodes, levels)
    totals = [0.0] + [max(total, 0) for total in isotonic(numpy.cumsum(leaves))]
    n = totals[-1]

    def place(rank):
        if rank <= totals[0]:
            return 0.0
        leaf = next((i for i in range(bins) if totals[i] < rank <= totals[i + 1]), None)
        return bins if leaf is None else leaf + (rank - totals[leaf]) / (totals[leaf + 1] - totals[leaf])

    def value(k):
        return lo + grid * min(max(k, 0), values - 1)

    def rank_of(n):
        return 0.5 + q * (n - 1) if n > 1 else n / 2

    middle = place(rank_of(n)) if n > 0 else q * values / share
    answer = value(math.ceil(middle * share) - 1)
    # the noise of the total left of each border of leaves, minus the rank
    left = numpy.tril(numpy.ones((bins + 1, bins)), -1) - q
    noise = stats.norm.ppf(0.975) * sigma * numpy.sqrt(numpy.maximum(0, numpy.einsum("ij,ij->i", left, numpy.linalg.solve(design.T @ design, left.T).T)))
    rank = rank_of(max(sum(leaves), 0))
    first = next((i for i in range(bins - 1) if totals[i + 1] - rank >= -noise[i + 1]), bins - 1)
    last = next((i for i in range(bins - 1, 0, -1) if totals[i] - rank <= noise[i]), 0)
    first, last = min(first, last), max(first, last)
    return answer, min(value(first * share), answer), max(value((last + 1) * share - 1), answer)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_answers_are_those_of_the_definition(mechanism):
    rng = random.Random(5)
    for rate in (0.05, 1.0, 50.0):
        with quick_path() as path:
            db = open_ledger({"t": rate}, path=path)
            asked = []
            for _ in range(12):
                grid = rng.choice([0.25, 0.5, 1, 3])
                lo = rng.choice([-4, 0, 0.5])
                hi = lo + grid * rng.choice([1, 2, 7, 8, 20, 30.5])
                values = round((hi - lo) // grid) + 1
                bins = max(2, 1 << (values - 1).bit_length()) >> rng.choice([0, 0, 1 if values > 4 else 0])
                fill(db, [(rng.gauss((lo + hi) / 2, (hi - lo) / 4), unit) for unit in range(rng.choice([0, 3, 80]))] + [(None, 1)])
                options = {} if bins >= values else {"bins": bins}
                answers = ask(db, "t", QS, lo, hi, grid=grid, mechanism=mechanism, **options)
                asked.append((answers, lo, hi, grid, bins))
            ledger = sqlite3.connect(path + "-ledger")
            for release, (answers, lo, hi, grid, bins) in enumerate(asked, 1):
                g, size, stored = ledger.execute("SELECT granularity, size, grid FROM dp_release WHERE id = ?", (release,)).fetchone()
                rows = ledger.execute("SELECT value, clock FROM dp_path WHERE release_id = ? ORDER BY component", (release,)).fetchall()
                shape = levels({"bins": bins, "mechanism": mechanism})
                assert (size, stored, len(rows)) == (bins, grid, sum(1 << level for level in shape))
                nodes = numpy.array([value for value, _ in rows]) * 2.0**g
                wanted = [reference(nodes, shape, math.sqrt(rows[0][1]) * 2.0**g, q, lo, hi, grid, bins) for q in QS]
                assert answers == [answer for answer, _, _ in wanted]
                found = ledger.execute("SELECT low, high FROM dp_value WHERE release_id = ? ORDER BY component", (release,)).fetchall()
                if mechanism == "gaussian":
                    for (low, high), (_, first, last) in zip(found, wanted):
                        assert math.isclose(low, first, abs_tol=1e-12) and math.isclose(high, last, abs_tol=1e-12)
            assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_without_noise_the_answer_is_a_row(mechanism):
    """Each row has 40 copies, and each rank is at least 4 away from the copies of other rows. Noise with a standard
    deviation of 0.04 therefore does not change an answer."""
    db = open_ledger({"exact": 900})
    rng = random.Random(7)
    for lo, hi, grid in ((0, 100, 1), (300, 800, 1), (-2, 2.3, 0.125), (0, 1000, 5)):
        for n in (1, 2, 8, 60):
            xs = [rng.uniform(lo - 1, hi + 1) for _ in range(n)]
            fill(db, list(zip(xs * 40, range(40 * n))))
            steps = sorted(min(max(math.floor((x - lo) / grid + 0.5), 0), int((hi - lo) // grid)) for x in xs)
            ranks = {q: (0.5 + q * (40 * n - 1)) / 40 for q in (0.13, 0.2, 0.37, 0.6, 0.9)}
            qs = [q for q, rank in ranks.items() if 0.1 < rank % 1 < 0.9]
            wanted = [lo + grid * steps[math.ceil(ranks[q]) - 1] for q in qs]
            assert qs
            assert ask(db, "exact", qs, lo, hi, grid=grid, mechanism=mechanism) == wanted


def test_ties_count_to_the_larger_value():
    db = open_ledger({"exact": 1e6})
    for x, wanted in ((0.4999, 0), (0.5, 1), (1.4999, 1), (1.5, 2), (-7, 0), (9.5, 9), (1e308, 9), ("2.6", 3)):
        fill(db, [(x, unit) for unit in range(5)])
        assert one(db, "SELECT dp_median('exact', x, 0, 9, '{\"grid\":1}') FROM t") == wanted


@pytest.mark.parametrize("lo,hi,grid,count", [(0, 1, 0.1, 11), (0, 0.3, 0.1, 4), (-1, 1, 0.2, 11), (0, 1e6, 1e3, 1001), (0, 2.5, 1, 3)])
def test_every_grid_value_can_be_an_answer(lo, hi, grid, count):
    """The end of the range is an answer, although 0.3 / 0.1 is below 3 in floating point."""
    db = open_ledger({"exact": 1e6})
    for k in {0, 1, count // 2, count - 1}:
        fill(db, [(lo + k * grid, unit) for unit in range(5)])
        assert ask(db, "exact", [0, 0.5, 1], lo, hi, grid=grid) == [min(lo + k * grid, hi)] * 3
    assert one(db, "SELECT max(dimension) FROM dp_release") == 2 * max(2, 1 << (count - 1).bit_length()) - 2


@pytest.mark.parametrize("lo,hi,grid,leaves", [(0, 1, 1, 2), (0, 7, 1, 8), (0, 8, 1, 16), (300, 800, 1, 512), (0, 1023, 1, 1024), (0, 1024, 1, 1024),
                                               (0, 1e9, 1, 1024)])
def test_default_number_of_leaves(lo, hi, grid, leaves):
    """The default number of leaves depends only on lo, hi and grid. The sensitivity is that of a tree with this number
    of leaves and without a grid."""
    db = open_ledger({"t": 1.0})
    design = "SELECT dimension, granularity, sensitivity FROM dp_release ORDER BY id DESC LIMIT 1"
    found = set()
    for rows in ([(None, 1)], [(lo, 1)], [(hi, unit) for unit in range(50)]):
        fill(db, rows)
        for options in ({"grid": grid}, {"bins": leaves}, {"bins": leaves, "grid": grid}):
            ask(db, "t", [0.5], lo, hi, mechanism="gaussian", **options)
            found.add(db.execute(design).fetchone())
    assert [dimension for dimension, _, _ in found] == [2 * leaves - 2]
    plan = json.loads(one(db, "SELECT dp_plan('t', 'median', 1, ?)", json.dumps({"lo": lo, "hi": hi, "grid": grid, "mechanism": "gaussian"})))
    same = json.loads(one(db, "SELECT dp_plan('t', 'median', 1, ?)", json.dumps({"lo": lo, "hi": hi, "bins": leaves, "mechanism": "gaussian"})))
    assert plan == same


def test_refusals_cost_nothing():
    db = open_ledger({"t": 1.0})
    fill(db, [(1, 1)])
    for options, message in (({"grid": 0}, "grid must be a finite number above 0"), ({"grid": -1}, "grid must be a finite number above 0"),
                             ({"grid": "1 m"}, "grid must be a finite number above 0"), ({"grid": None}, "grid must be a finite number above 0"),
                             ({"grid": 10.5}, "grid must be a step from (hi - lo) / 2^40 to hi - lo"),
                             ({"grid": 5e-324}, "grid is nearer to 0 than 2.3e-308"), ({"grid": 9e-12}, "grid must be a step from"),
                             ({"grid": 1, "bins": 32}, "bins must be at most 16 with this grid (one for each value)"),
                             ({"grid": 1, "bins": 12}, "bins must be a power of two")):
        for sql in ("SELECT dp_median('t', x, 0, 10, ?) FROM t", "SELECT dp_quantile('t', x, 0.5, 0, 10, ?) FROM t"):
            assert message in error_of(db, sql, json.dumps(options)), options
        assert message in error_of(db, "SELECT dp_plan('t', 'median', 1, ?)", json.dumps({"lo": 0, "hi": 10, **options}))
        assert message in error_of(db, "SELECT dp_partial('median', 'SELECT x FROM t', ?)", json.dumps({"lo": 0, "hi": 10, **options}))
    for sql in ("SELECT dp_histogram('t', x, 0, 10, 5, '{\"grid\":1}') FROM t",
                "SELECT dp_avg('t', x, 0, 10, '{\"grid\":1}') FROM t"):
        assert "unknown option" in error_of(db, sql)
    assert charges(db) == []


def test_replays_diffusions_and_states():
    with quick_path() as path:
        db = open_ledger({"inner": 1.0, "outer": 0.02}, path=path)
        fill(db, [(unit % 37, unit) for unit in range(300)])
        first = ask(db, "inner", QS, 0, 36, name="r", grid=1)
        assert ask(db, "inner", QS, 0, 36, name="r", grid=1) == ask(db, "inner", QS, 0, 36, name="r", grid=1.0, bins=64) == first
        before = charges(db)
        for options in ({}, {"bins": 64}, {"grid": 0.75, "bins": 64}, {"grid": 1, "bins": 32}):
            assert "exists with other parameters" in error_of(db, "SELECT dp_quantile('inner', x, ?, 0, 36, ?) FROM t", json.dumps(QS),
                                                              json.dumps({"name": "r", **options}))
        assert charges(db) == before
        one(db, "SELECT dp_tier('between', 0.2, 1e15, 1e-6)")
        for tier in ("outer", "between"):
            values = json.loads(one(db, "SELECT dp_diffuse('r', ?)", tier))
            assert all(value == int(value) and 0 <= value <= 36 for value in values) and values == sorted(values)
        # The states of two shards can be merged. A state with another grid is refused.
        states = []
        for shard, grid in ((0, 1), (1, 1), (1, 0.75)):
            fill(db, [(unit % 37, unit) for unit in range(300) if unit % 2 == shard])
            states.append(one(db, "SELECT dp_partial('quantile', 'SELECT x FROM t', ?)", json.dumps({"lo": 0, "hi": 36, "grid": grid, "bins": 32})))
        merge = "SELECT dp_merge('inner', dp_states(s), '{\"name\":\"%s\",\"q\":0.5}') FROM (SELECT ? AS s UNION ALL SELECT ?)"
        assert one(db, merge % "m", states[0], states[1]) in range(37)
        assert one(db, "SELECT json_extract(options, '$.grid') FROM dp_release WHERE name = 'm'") == 1
        assert "grid" in error_of(db, merge % "n", states[0], states[2])
        batch = json.dumps([{"tier": "inner", "kind": "median", "sql": "SELECT x FROM t", "options": {"name": "b", "lo": 0, "hi": 36, "grid": 3}}])
        db.execute("SELECT dp_batch(?)", (batch,)).fetchall()
        assert one(db, "SELECT value FROM dp_value WHERE release = 'b'") % 3 == 0
        assert one(db, "SELECT dp_verify()") == "ok"


def test_spare_leaves_are_outside_the_range():
    """A grid of 17 values has a tree of 32 leaves. Noise in the spare leaves may move a rank beyond the last value, but
    the answer stays in the range."""
    db = open_ledger({"t": 0.01})
    for xs in ([None], [16] * 5, [0] * 5, range(17)):
        fill(db, list(zip(xs, range(17))))
        for _ in range(25):
            ask(db, "t", QS, -8, 8, grid=1)
    assert one(db, "SELECT count(*) FROM dp_value") == 100 * len(QS)
    assert one(db, "SELECT count(*) FROM dp_value WHERE -8 <= low AND low <= value AND value <= high AND high <= 8 AND value = round(value)"
                   " AND stddev > 0") == 100 * len(QS)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("bins", [16, 4])
@pytest.mark.sample(2)
def test_intervals_cover(mechanism, bins):
    """Many rows share each of a few values. The ranks of the quantiles are near the change from one value to the next,
    where the answer is least certain."""
    db = open_ledger({"t": 0.05})
    lumps = {1: 20, 4: 20, 5: 3, 6: 17, 11: 15, 12: 25}
    xs = sorted(x for x, count in lumps.items() for _ in range(count))
    fill(db, list(zip(xs, range(len(xs)))))
    qs = [0.205, 0.4, 0.43, 0.59, 0.74]
    truth = [xs[math.ceil(0.5 + q * (len(xs) - 1)) - 1] for q in qs]
    runs = 600
    for _ in range(runs):
        ask(db, "t", qs, 0, 15, grid=1, bins=bins, mechanism=mechanism)
    for j, true in enumerate(truth):
        held = one(db, "SELECT avg(low <= ? AND ? <= high) FROM dp_value WHERE component = ?", true, true, j)
        assert held >= 0.95 - SEVEN * math.sqrt(0.95 * 0.05 / runs), (true, held)
    widths = one(db, "SELECT avg(high - low) FROM dp_value")
    assert widths < 13, widths


@pytest.mark.parametrize("lo, hi, bins", [("0", "1", 100), ("-1", "1", 20), ("0", "10", 1000), ("0.1", "0.7", 6), ("-1.5", "2.7", 42), ("0", "1", 3)])
def test_edges_of_histograms_are_the_decimals_that_people_type(lo, hi, bins):
    """The decimal lo + k (hi - lo)/bins is in bin k, and the double before it is in the bin before."""
    low, width = Fraction(lo), (Fraction(hi) - Fraction(lo)) / bins
    edges = [float(low + k * width) for k in range(bins)]
    before = [math.nextafter(edge, -math.inf) for edge in edges[1:]]
    db = open_ledger({"exact": 1e6})
    fill(db, [(x, unit) for unit, x in enumerate(edges + before * 2)])
    counts = json.loads(one(db, "SELECT dp_histogram('exact', x, ?, ?, ?, '{\"clip\":1}') FROM t", float(lo), float(hi), bins))
    assert [round(count) for count in counts] == [3] * (bins - 1) + [1]
