"""Tests the distribution of the noise of every kind at every tier, and replay, diffusion, refinement and verification of releases
of many numbers.

Moments may differ from their expectation by SEVEN standard errors. A false alarm has probability at most 1e-11 for each of
about 220 comparisons of many numbers. The distributions of coordinates are compared at 1e-10 in 24 places. These probabilities
add up to 5e-9. tests/mechanism/test_estimate.c has the noise of averages and spreads.
"""

import json
import math

import numpy
import pytest
from scipy import stats

from conftest import INIT, ledger_of
from kinds_reference import KINDS, LINEAR, Row, aggregate, by_query, centre_of, count_factor, is_l1, levels, numbers
from kinds_tables import CALLS, consistent, few_rows, fill
from noise_helpers import SEVEN, charges, check_share, column, connect, error_of, one, open_ledger, quick_path, record

pytestmark = pytest.mark.alarm(5e-9)

TIERS = {"inner": 1.0, "middle": 0.3, "outer": 0.1}
NAMES = list(TIERS)


@pytest.fixture
def path():
    with quick_path() as path:
        yield path


def books(path):
    """Opens the ledger file alone."""
    db = ledger_of(path)
    db.execute("PRAGMA synchronous = OFF")
    return db


def flat(call):
    return call[0], *call[1]


def check_moment(products, expected, stddev, what):
    """Checks the mean of independent products with this standard deviation."""
    z = (numpy.mean(products) - expected) / (stddev / math.sqrt(len(products)))
    assert abs(z) <= SEVEN, f"{what}: {z:.1f} standard errors off"


def check_white(x, what):
    """Checks that the numbers are independent standard Gaussians."""
    check_moment(x, 0, 1, f"{what}: mean")
    check_moment(x * x, 1, math.sqrt(2), f"{what}: variance")
    assert stats.kstest(x, "norm").pvalue > 1e-10, what
    for lag in (1, 2, 64):
        check_moment(x[lag:] * x[:-lag], 0, 1, f"{what}: covariance at lag {lag}")


# ---- the law over many coordinates ---------------------------------------------------------------------------------

FEW = 8192  # number of keys for kinds with several coordinates for each key, and for tests of paths
MANY = 65536


def vector_rows(n):
    """Returns three rows of vectors of integers with norms below 1024. Integers are on every lattice."""
    return [Row(None, None, json.dumps([(i * j) % 7 - 3 for j in range(n)]), i) for i in range(3)]


def key_rows(n, values):
    """Returns rows with every 17th key. Each row belongs to another unit, and one key has two rows."""
    return [Row(k, values[k % len(values)], None, k) for k in range(0, n, 17)] + [Row(0, values[1], None, -1)]


def numbers_of(rows, n, value):
    exact = numpy.zeros(n)
    for row in rows:
        exact[row.k] += value(row)
    return exact


def law_cases():
    """Yields tuples: name, kind, parameters, rows, exact coordinates, number of releases, and whether the test also checks paths
    over several tiers."""
    rows = vector_rows(4096)
    sums = numpy.sum([json.loads(row.v) for row in rows], axis=0)
    yield "vec_sum", "vec_sum", {"dim": 4096, "clip": 1024}, rows, sums, 49, True
    for name, n, releases in (("", MANY, 3), (", walked", FEW, 1)):
        keys = list(range(n))
        places = [Row(None, k + 0.5, None, k) for k in range(0, n, 17)]
        counts = numpy.zeros(n)
        counts[::17] = 1
        yield "histogram" + name, "histogram", {"clip": 1, "lo": 0, "hi": n, "bins": n}, places, counts, releases, n == FEW
        rows = key_rows(n, [1, 2])
        yield "group_count" + name, "group_count", {"clip": 1, "keys": keys}, rows, numbers_of(rows, n, lambda row: 1), releases, n == FEW
        rows = key_rows(n, [-5, 7, 0, 16])
        yield ("group_sum" + name, "group_sum", {"keys": keys, "clip": 16}, rows, numbers_of(rows, n, lambda row: row.x), releases,
               n == FEW)
    rows = key_rows(FEW, [-1, 0.5, 0, 1])
    both = numpy.stack([numbers_of(rows, FEW, lambda row: 0.5), numbers_of(rows, FEW, lambda row: row.x)], axis=1).ravel()
    yield "group_avg", "group_avg", {"keys": keys, "lo": -1, "hi": 1}, rows, both, 1, True
    some = range(FEW // 4)  # each key has four bins
    rows = [Row(k, k % 4 + 0.5, None, k) for k in some[::17]]
    bins = numpy.zeros((len(some), 4))
    for row in rows:
        bins[row.k, row.k % 4] = 1
    four = {"keys": list(some), "lo": 0, "hi": 4, "bins": 4}
    yield "group_histogram", "group_histogram", {**four, "clip": 1}, rows, bins.ravel(), 1, True
    trees = numpy.concatenate([bins[:, :2].sum(axis=1, keepdims=True), bins[:, 2:].sum(axis=1, keepdims=True), bins], axis=1)
    yield "group_median", "group_median", four, rows, trees.ravel(), 1, True
    yield "group_count_distinct", "group_count_distinct", {"keys": keys}, key_rows(FEW, [1, 1]) * 2, numbers_of(
        key_rows(FEW, [1, 1]), FEW, lambda row: 1), 1, True
    rows = [Row(k, (k % 5) - 2, None, k) for k in keys]
    both = numpy.stack([numpy.full(FEW, 2.0), numpy.array([row.x for row in rows])], axis=1).ravel()
    yield "group_sum of private keys", "group_sum", {"clip": 4}, rows, both, 1, True
    nodes, leaf = [], counts
    while len(leaf) > 1:
        nodes.insert(0, leaf)
        leaf = leaf.reshape(-1, 2).sum(axis=1)
    yield "quantile", "quantile", {"q": 0.5, "lo": 0, "hi": FEW, "bins": FEW}, places, numpy.concatenate(nodes), 1, True
    rows = [Row(None, None, json.dumps([(i + j) % 3 - 1 for j in range(4096)]), i) for i in range(4)]
    sums = numpy.sum([[32.0] + json.loads(row.v) for row in rows], axis=0)  # norm 52, below the clip 64; a row counts 32
    yield "vec_avg", "vec_avg", {"dim": 4096, "clip": 64}, rows, sums, 1, True


def read_points(ledger, release, private):
    """Returns {tier: (clock, coordinates)}. Coordinates are in the order of numeric keys, and then of components."""
    order = "CAST(key AS INTEGER), component" if private or one(ledger, "SELECT keys IS NOT NULL FROM dp_release WHERE name = ?",
                                                                release) else "component"
    points = {}
    for tier in NAMES:
        rows = ledger.execute(f"SELECT clock, value FROM dp_path WHERE release = ? AND tier = ? AND component >= 0 ORDER BY {order}",
                              (release, tier)).fetchall()
        if rows:
            assert len({clock for clock, _ in rows}) == 1
            points[tier] = rows[0][0], numpy.array([value for _, value in rows], dtype=numpy.float64)
    return points


LAWS = {case[0]: case for case in law_cases()}


@pytest.mark.parametrize("name,share", [(name, 3) for name in LAWS] + [
    pytest.param(name, 1, marks=pytest.mark.slow) for name in LAWS if LAWS[name][5] > 1])
@pytest.mark.sample(2)
def test_coordinates_are_one_brownian_path_each(path, name, share):
    """The noise of the coordinates at the inner tier must be independent Gaussian numbers with variance `clock`. The steps to
    outer tiers must be independent of this noise, whether the path was drawn outward or, by a refinement, inward. vec_sum,
    histogram, group_count and group_sum have 7e4 coordinates in `make test`, which bounds the error of the variance by 4%, and
    2e5 coordinates in `make test-slow`, which bounds it by 2%."""
    _, kind, parameters, rows, exact, releases, walked = LAWS[name]
    releases = -(-releases // share)
    private = "private" in name
    db = connect(path)
    one(db, INIT)
    for tier, rate in TIERS.items():
        one(db, "SELECT dp_tier(?, ?, 1e15, 1e-6, 'rdp', 5e-7)", tier, rate)
    fill(db, rows)

    def release(tier, name, **more):
        one(db, *flat(by_query(kind, {**parameters, "name": name, **more}, tier)))

    for i in range(releases):
        release("inner", f"forward {i}")
    if walked:
        one(db, "SELECT dp_diffuse('forward 0', 'outer')")
    if walked and not private:
        release("outer", "inward", mechanism="gaussian")  # where no tier lies outside, a quantile would be a draw
        release("inner", "inward", mechanism="gaussian", refine=True)
    ledger = books(path)
    design = record(ledger, "SELECT DISTINCT granularity, sensitivity, dimension FROM dp_release WHERE name LIKE 'forward%'")
    granularity, sensitivity = design["granularity"], design["sensitivity"]
    assert design["dimension"] == (None if private else len(exact))
    assert one(db, "SELECT dp_verify()") == "ok"

    white = []
    for i in range(releases):
        for tier, (clock, values) in read_points(ledger, f"forward {i}", private).items():
            steps = exact * 2.0**-granularity
            assert len(values) == len(steps) and (steps == numpy.rint(steps)).all()
            assert math.isclose(sensitivity**2 / (2 * clock), TIERS[tier], rel_tol=1e-9)
            assert sensitivity**2 <= 2 * TIERS[tier] * clock
            if tier == "inner":
                white.append((values - steps) / math.sqrt(clock))
    for a, b in zip(white[:3], white[1:3]):
        check_moment(a * b, 0, 1, "covariance of two releases")
    walks = [(read_points(ledger, "forward 0", private), granularity)] if walked else []
    if walked and not private:
        # The refined release has the lattice of its outer tier. Its noise has the same distribution.
        inward = read_points(ledger, "inward", private), one(ledger, "SELECT granularity FROM dp_release WHERE name = 'inward'")
        walks.append(inward)
        clock, values = inward[0]["inner"]
        white.append((values - exact * 2.0 ** -inward[1]) / math.sqrt(clock))
    check_white(numpy.concatenate(white), name)
    lowest = read_points(ledger, "forward 0", private)["inner"][1].astype(numpy.int64) & 255
    assert stats.chisquare(numpy.bincount(lowest, minlength=256)).pvalue > 1e-10
    for points, exponent in walks:
        assert list(points) == NAMES
        for inner, outer in (("inner", "middle"), ("middle", "outer")):
            (v, x), (w, y) = points[inner], points[outer]
            step = (y - x) / math.sqrt(w - v)
            check_moment(step, 0, 1, f"{inner} to {outer}: mean")
            check_moment(step * step, 1, math.sqrt(2), f"{inner} to {outer}: variance")
            check_moment(step * (x - exact * 2.0**-exponent) / math.sqrt(v), 0, 1, f"{inner} to {outer}: independence")
            check_moment(step[1:] * step[:-1], 0, 1, f"{inner} to {outer}: coordinates")
    if kind in LINEAR and not private:
        shown = numpy.array(ledger.execute("SELECT value, stddev, low, high FROM dp_value WHERE release = 'forward 0' AND"
                                             " tier = 'inner' ORDER BY CAST(key AS INTEGER), component").fetchall())
        clock, values = read_points(ledger, "forward 0", private)["inner"]
        assert (shown[:, 0] == values * 2.0**granularity).all()
        assert numpy.allclose(shown[:, 1], math.sqrt(clock) * 2.0**granularity, rtol=1e-11, atol=0)
        check_share(numpy.sum((shown[:, 2] <= exact) & (exact <= shown[:, 3])), len(exact), 0.95, "cover of the intervals")
    ledger.close()


def test_outer_points_add_nothing_for_a_coalition(path):
    """Given the inner point, the outer points add noise that does not depend on the data. The differences (outer - inner) have
    the same distribution for two tables whose numbers are 10 standard deviations apart."""
    laws = []
    for name, value in (("a", 0.0), ("b", 100.0)):
        db = open_ledger(TIERS, path=path + name)
        fill(db, [Row(None, None, json.dumps([value] * 4096), 1)])
        one(db, "SELECT dp_vec_sum('inner', v, 4096, 6400, 'r') FROM t")
        one(db, "SELECT dp_diffuse('r', 'outer')")
        points = read_points(books(path + name), "r", False)
        laws.append(points["outer"][1] - points["inner"][1])
    assert stats.ks_2samp(*laws).pvalue > 1e-10


# ---- from a point to values ----------------------------------------------------------------------------------------

def monotone(y):
    """Returns the closest non-decreasing sequence that is not below 0, by the max-min formula."""
    n = len(y)
    means = [[numpy.mean(y[i:j + 1]) if j >= i else None for j in range(n)] for i in range(n)]
    return [max(0, max(min(means[i][j] for j in range(k, n)) for i in range(k + 1))) for k in range(n)]


def values_of(kind, p, x, sigma):
    """Returns the values that follow from the coordinates x, and the shrink of the first value. x and the standard deviation
    sigma of its noise are in the units of the data."""
    if kind.startswith("ou_") and kind not in LINEAR:  # the nearest point within the radius
        found, _ = values_of(kind.removeprefix("ou_"), p, x, sigma)
        centre = centre_of(kind, p)
        if kind == "ou_vec_avg":
            return centre + (found - centre) * min(1, p["radius"] / numpy.linalg.norm(found - centre)), 1
        return numpy.clip(found, centre - p["radius"], centre + p["radius"]), 1
    if kind in ("group_quantile", "group_median"):
        nodes = sum(1 << level for level in levels(p))
        return [y for tree in x.reshape(-1, nodes) for y in values_of(kind.removeprefix("group_"), p, tree, sigma)[0]], 1
    if kind in ("quantile", "median"):
        running = [0.0, *monotone(numpy.cumsum(consistent(x, levels(p))))]
        step = (p["hi"] - p["lo"]) / p["bins"]
        found = []
        for q in p.get("q", [0.5]):
            rank = 0.5 + q * (running[-1] - 1) if running[-1] > 1 else running[-1] / 2
            i = next(i for i in range(1, len(running)) if running[i] >= rank)
            found.append(p["lo"] + step * (i - 1 + (rank - running[i - 1]) / (running[i] - running[i - 1])))
        return found, 1
    if kind.endswith(("var", "stddev")):
        half, found = (p["hi"] - p["lo"]) / 2, []
        for n, a, b in x.reshape(-1, 3):
            if is_l1(p):  # the sums of (1 - v)^2, 2 v (1 - v) and v^2, where v = (1 + u)/2
                square = min(max(b / max(n + a + b, 1), 0), 1)
                mean = min(max(a / 2 / max(n + a + b, 1) + square, 0), 1)
                w = min(max(4 * (square - mean**2), 0), 1)
            else:
                a, b = numpy.clip(numpy.array([a, b]) / max(n, 1), -1, 1)
                w = min(max((b + 1) / 2 - a * a, 0), 1)
            found.append(half**2 * w if kind.endswith("var") else half * math.sqrt(w))
        return found, 1
    if kind == "vec_avg":
        factor = count_factor(p["dim"]) if is_l1(p) else 0.5
        return numpy.clip(x[1:] / max(x[0] / (factor * p["clip"]), 1), -p["clip"], p["clip"]), 1
    if kind.endswith("avg"):
        half, middle, found = (p["hi"] - p["lo"]) / 2, (p["hi"] + p["lo"]) / 2, []
        for a, b in x.reshape(-1, 2):
            rows, total = (a + b, a - b) if is_l1(p) else (2 * a, b)
            u = min(max(total / max(rows, 1), -1), 1)
            found.append(middle + half * u)
        return found, 1
    centre, a = p.get("centre", 0), 1
    if "radius" in p:
        a = p["radius"]**2 / (p["radius"]**2 + len(x) * sigma**2)
    return centre + a * (x - centre), a


@pytest.mark.parametrize("kind,mechanism", [(kind, mechanism) for kind in KINDS if kind != "bounds"  # test_bounds.py tests this kind
                                            for mechanism in ("default", "laplace")[:1 if kind.startswith("ou_") else 2]])
def test_values_are_made_from_the_point(path, kind, mechanism):
    """At every tier, the published numbers follow from the noisy coordinates by the definition of the kind."""
    p = {**CALLS[kind], **({"mechanism": mechanism} if mechanism == "laplace" else {})}
    db = open_ledger({"inner": 20.0, "middle": 3.0, "outer": 0.9 if is_l1(p) else 2.0}, path=path)
    fill(db, few_rows())
    one(db, *flat(by_query(kind, {**p, "name": "r"}, "inner")))
    one(db, "SELECT dp_diffuse('r', 'outer')")
    one(db, "SELECT dp_diffuse('r', 'middle')")
    ledger = books(path)
    granularity = one(ledger, "SELECT granularity FROM dp_release")
    quantile = -math.log(0.05) / math.sqrt(2) if is_l1(p) else stats.norm.ppf(0.975)
    for tier in NAMES:
        rows = ledger.execute("SELECT clock, value FROM dp_path WHERE tier = ? ORDER BY key, component", (tier,)).fetchall()
        x, sigma = numpy.array([value for _, value in rows]) * 2.0**granularity, math.sqrt(rows[0][0]) * 2.0**granularity
        wanted, shrink = values_of(kind, p, x, sigma)
        got = ledger.execute("SELECT value, stddev, low, high FROM dp_value WHERE tier = ? ORDER BY key, component", (tier,)).fetchall()
        assert [value for value, _, _, _ in got] == pytest.approx(list(wanted), rel=1e-9, abs=1e-9)
        published = record(ledger, "SELECT shrink, centre, rate FROM dp_publication WHERE tier = ?", tier)
        assert published["shrink"] == pytest.approx(shrink, rel=1e-9)
        assert (shrink < 1) == (kind.startswith("ou_") and kind in LINEAR)
        for value, stddev, low, high in got:
            assert low <= value <= high
            if kind in LINEAR:
                assert stddev == pytest.approx(shrink * sigma, rel=1e-9)
            # test_means.py has averages of few rows, test_estimate.c spreads, test_intervals.py quantiles. Here the number of rows is
            # 16 standard deviations above the limit.
            if not kind.endswith(("group_avg", "var", "stddev", "quantile", "median")) and not (is_l1(p) and kind == "vec_avg"):
                width = 2 * quantile * stddev / shrink  # and a value that shrinks may be outside
                assert high - low == pytest.approx(width, rel=1e-6, abs=1e-300) or (kind.startswith("ou_") and high - low > width)
    ledger.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("ou_")])
def test_the_homogeneous_process(path, kind):
    """With theta and rho, the shrink is (1 + theta tau/rho^2)^(-1/2), where tau is the variance of a coordinate or of an
    average."""
    theta, rho = 0.7, 3.0
    p = {k: v for k, v in CALLS[kind].items() if k != "radius"}
    db = open_ledger({"inner": 20.0, "outer": 0.9}, path=path)
    fill(db, few_rows())
    one(db, *flat(by_query(kind, {**p, "theta": theta, "rho": rho, "name": "r"}, "inner")))
    one(db, "SELECT dp_diffuse('r', 'outer')")
    ledger = books(path)
    granularity = one(ledger, "SELECT granularity FROM dp_release")
    for tier in ("inner", "outer"):
        rows = ledger.execute("SELECT clock, value FROM dp_path WHERE tier = ? ORDER BY key, component", (tier,)).fetchall()
        x, sigma = numpy.array([value for _, value in rows]) * 2.0**granularity, math.sqrt(rows[0][0]) * 2.0**granularity
        got = column(ledger, "SELECT value FROM dp_value WHERE tier = ? ORDER BY key, component", tier)
        centre = centre_of(kind, p)
        if kind in LINEAR:
            shown = shrink = (1 + theta * sigma**2 / rho**2) ** -0.5
        else:  # the published stddev is shrink sqrt(tau), where tau is the variance of the value without OU
            x, shown = numpy.array(values_of(kind.removeprefix("ou_"), p, x, sigma)[0]), 1
            stddev = numpy.array(column(ledger, "SELECT stddev FROM dp_value WHERE tier = ? ORDER BY key, component", tier))
            shrink = numpy.sqrt(1 - theta * stddev**2 / rho**2)  # 1 - theta tau/rho^2/(1 + theta tau/rho^2)
        if kind == "ou_avg":
            half, n = 3, max(2 * float(rows[0][1]) * 2.0**granularity, 1)
            tau = (half * sigma / n) ** 2 * (1 + 4 * ((x[0] - 2) / half) ** 2)
            assert shrink[0] == pytest.approx((1 + theta * tau / rho**2) ** -0.5, rel=1e-9)
        assert got == pytest.approx(list(centre + shrink * (x - centre)), rel=1e-6, abs=1e-6)
        assert one(ledger, "SELECT shrink FROM dp_publication WHERE tier = ?", tier) == pytest.approx(shown, rel=1e-9)
    ledger.close()


# ---- a life of a release -------------------------------------------------------------------------------------------


def paid(db, tier):
    return math.fsum(column(db, "SELECT rate FROM dp_charge WHERE tier = ? AND release = 'r'", tier))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(24)
def test_replay_diffuse_refine(kind):
    """Replays and dp_diffuse() are identical, cost nothing and have the same type, for the aggregate (half of the kinds) and for
    dp_release(). A refinement pays the difference."""
    db = open_ledger(TIERS)
    fill(db, few_rows())
    parameters = {**CALLS[kind], "name": "r"}
    form = ("aggregate", "query")[list(KINDS).index(kind) % 2]

    def ask(tier, **more):
        p = {**parameters, **more}
        if form == "query":
            return one(db, *flat(by_query(kind, p, tier)))
        call, arguments = aggregate(kind, p, tier)
        return one(db, f"SELECT {call} FROM t", *arguments)

    middle = ask("middle")
    assert [(tier, pytest.approx(rate, rel=1e-9)) for _, _, tier, rate, _ in charges(db)] == [("inner", 0.3), ("middle", 0.3)]
    before = charges(db)
    assert [ask("middle"), ask("middle")] == [middle] * 2
    assert one(db, "SELECT dp_diffuse('r', 'middle')") == middle
    assert charges(db) == before
    outer = one(db, "SELECT dp_diffuse('r', 'outer')")
    if kind != "bounds":  # NULL if no bin shows rows
        assert type(outer) is type(middle)
    assert [(row[2], pytest.approx(row[3], rel=1e-9)) for row in charges(db)[2:]] == [("outer", 0.1)]
    before = charges(db)
    assert ask("outer") == one(db, "SELECT dp_diffuse('r', 'outer')") == outer
    assert "refine" in error_of(db, "SELECT dp_diffuse('r', 'inner')")
    assert charges(db) == before
    inner = ask("inner", refine=True)
    assert paid(db, "inner") == pytest.approx(1.0, rel=1e-9) and paid(db, "middle") == pytest.approx(0.3, rel=1e-9)
    before = charges(db)
    assert ask("inner") == ask("inner", refine=True) == one(db, "SELECT dp_diffuse('r', 'inner')") == inner
    assert ask("middle") == middle and ask("outer") == outer
    assert charges(db) == before
    if kind != "bounds":
        assert [(k, j) for k, j, _ in numbers(kind, parameters, inner)] == [(k, j) for k, j, _ in numbers(kind, parameters, outer)]
    stored = db.execute("SELECT key, component, value FROM dp_value WHERE tier = 'inner' ORDER BY key, component").fetchall()
    assert numbers(kind, parameters, inner) == stored
    sensitivity = one(db, "SELECT sensitivity FROM dp_release")
    for tier, rate, clock in db.execute("SELECT tier, rate, clock FROM dp_publication"):
        assert math.isclose(rate, sensitivity**2 / (2 * clock), rel_tol=1e-9) and rate <= TIERS[tier]
    assert one(db, "SELECT dp_verify()") == "ok"
    # The values of two tiers differ, because there is noise between the tiers. One pair of values is equal by chance with
    # probability 4e-7, so not all three pairs are equal.
    if kind == "bounds":  # noisy or not, ends are powers of two
        return
    pairs = [(ask("middle", name=f"r{i}"), one(db, "SELECT dp_diffuse(?, 'outer')", f"r{i}")) for i in range(2)]
    assert any(a != b for a, b in [(middle, outer), *pairs])
    assert one(db, "SELECT dp_verify()") == "ok"


CHANGES = {"clip": 1.5, "lo": -2, "hi": 6, "q": [0.1, 0.5], "bins": 4, "grid": 0.25, "dim": 2, "radius": 61, "centre": 0.25, "weight": 0.5,
           "keys": ["a", "b"], "max_groups": 3, "key_share": 0.2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_has_one_set_of_parameters(kind):
    db = connect()
    one(db, INIT)
    one(db, "SELECT dp_tier('inner', 1.0, 1e15, 1e-6, 'rdp', 5e-7)")
    fill(db, few_rows())
    for parameters in [CALLS[kind]] + ([{k: v for k, v in CALLS[kind].items() if k != "keys"} | {"max_groups": 2, "key_share": 0.05}]
                                       if kind.startswith("group") else []):
        name = f"r{len(charges(db))}"
        one(db, *flat(by_query(kind, {**parameters, "name": name}, "inner")))
        before = charges(db)
        takes = set(parameters) | {"weight"} | (set() if kind.removeprefix("ou_") in ("count_distinct", "bounds") else {"clip"})
        changed = {k: CHANGES[k] for k in takes}
        if kind.startswith("ou_"):
            changed["centre"] = CHANGES["centre"]
        if kind.endswith(("quantile", "median")):
            changed["bins"] = CHANGES["bins"]
        if kind.endswith(("quantile", "median")):
            changed["grid"] = CHANGES["grid"]
        for option, value in changed.items():
            other = {**parameters, option: value, "name": name}
            call, arguments = aggregate(kind, other, "inner")
            for sql in ((f"SELECT {call} FROM t", *arguments), flat(by_query(kind, other, "inner"))):
                message = error_of(db, *sql)
                assert f"release '{name}' exists with other parameters" in message, (option, message)
        assert charges(db) == before


def test_another_kind_of_the_same_parameters_is_another_release():
    db = open_ledger(TIERS)
    fill(db, few_rows())
    one(db, "SELECT dp_var('inner', x, 0, 5, 'r') FROM t")
    assert "exists with other parameters" in error_of(db, "SELECT dp_stddev('inner', x, 0, 5, 'r') FROM t")
    one(db, "SELECT dp_quantile('inner', x, 0.5, 0, 5, 'q') FROM t")
    assert "exists with other parameters" in error_of(db, "SELECT dp_median('inner', x, 0, 5, 'q') FROM t")
    assert "exists with other parameters" in error_of(db, "SELECT dp_quantile('inner', x, '[0.5]', 0, 5, 'q') FROM t")


def test_the_same_parameters_in_other_words():
    """The same parameters may be written differently: keys in any order and repeated, numbers in any notation."""
    db = open_ledger(TIERS)
    fill(db, few_rows())
    for kind, first, others in (
            ("group_count", '"clip":1,"keys":["b","a",7]', ['"keys":["a","b","7","a"],"clip":1.0', ' "clip" : 1 , "keys":[7.0,"b","a"]']),
            ("quantile", '"lo":0,"hi":5,"q":[0.5,0.25]', ['"q":[ 5e-1 , 0.250 ],"hi":5.0,"lo":0.0,"bins":1024', '"lo":0,"hi":5,"q":[0.5,0.25],"clip":1']),
            ("median", '"lo":0,"hi":5', ['"lo":0,"hi":5,"bins":1024.0', '"weight":1,"lo":0,"hi":5'])):
        column = "k" if kind == "group_count" else "x"
        ask = "SELECT dp_release('inner', ?, 'SELECT ' || ? || ' FROM t', ?)"
        value = one(db, ask, kind, column, f'{{"name":"{kind}",{first}}}')
        before = charges(db)
        for other in others:
            assert one(db, ask, kind, column, f'{{"name":"{kind}",{other}}}') == value
        assert charges(db) == before
