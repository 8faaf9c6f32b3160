"""Tests single sums and counts with Laplace noise: the noise distribution and its charge, publications at outer tiers,
coalitions, and refusals. The reference is the discrete Laplace distribution (mechanism_truth.py) with the sensitivity and the
clock of the ledger. The clock is 2 scale^2. The tests compare shares and mean sizes with their exact distributions, in 130
comparisons at 1e-10 on each side.
"""

import itertools
import json
import math
import sqlite3

import mpmath as mp
import numpy
import pytest
from scipy import stats

from conftest import INIT, reading
from kinds_reference import KINDS
from laplace_helpers import check_curve, scale_of
from mechanism_truth import ORDERS, continuous_laplace, curve_of, laplace_curve
from noise_helpers import charges, check_mean, check_share, column, connect, error_of, fill, one, open_ledger, quick_path, record
from paper_truth import call

pytestmark = [pytest.mark.alarm(3e-8), pytest.mark.usefixtures("forty_digits")]

TIERS = {"a": 1.0, "b": 0.3, "c": 0.1, "d": 0.02}
CLIP = 2.0
ROWS = [(9.0, 1), (2.5, 2), (-1.0, 3), (0.25, 3)]
TRUTH = 2 + 2 - 0.75
LAPLACE = {"mechanism": "laplace"}


@pytest.fixture
def path():
    with quick_path() as path:
        yield path


def ledger(path=":memory:", tiers=TIERS, options="{}"):
    db = open_ledger(tiers, options, path)
    fill(db, ROWS)
    return db


def release(db, tier, name="r", **options):
    return one(db, "SELECT dp_sum(?, x, ?, ?) FROM t", tier, CLIP, json.dumps({"name": name, **LAPLACE, **options}))


def diffuse(db, tier, name="r"):
    return one(db, "SELECT dp_diffuse(?, ?)", name, tier)


def query(path, sql, *arguments):
    """Runs a query on the ledger file alone."""
    books = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)
    try:
        return books.execute(sql, arguments).fetchall()
    finally:
        books.close()


# ---- what it costs -------------------------------------------------------------------------------------------------

CALLS = {
    "count": "SELECT dp_count(?, x, 3, ?) FROM t",
    "count_distinct": "SELECT dp_count_distinct(?, ?) FROM t",
    "sum": "SELECT dp_sum(?, x, 2.5, ?) FROM t",
}
SENSITIVITY = {"count": 3, "count_distinct": 1, "sum": 2.5}  # under "add-remove"; under "replace", twice as much for signed sums


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("rate,weight", [(1.0, 1), (0.004, 0.5), (30.0, 1)])
def test_the_charge_is_the_curve_of_the_law(path, kind, adjacency, rate, weight):
    db = ledger(path, {}, json.dumps({"adjacency": adjacency}))
    for tier, epsilon in (("t", 100.0), ("in", 1000.0)):
        one(db, "SELECT dp_tier(?, ?, ?, 1e-6)", tier, rate * (1 + (tier == "in")), epsilon)
    one(db, CALLS[kind], "t", json.dumps({"name": "r", "weight": weight, **LAPLACE}))
    assert one(db, "SELECT dp_verify()") == "ok"
    rdp = db.execute("SELECT tier, alpha, spent FROM dp_rdp").fetchall()
    charged = db.execute("SELECT tier, rate, delta, slack, curve FROM dp_charge").fetchall()
    orders = dict(db.execute("SELECT name, filter_order FROM dp_tier").fetchall())
    db.close()
    ((s, g, mechanism),) = query(path, "SELECT sensitivity, granularity, mechanism FROM dp_release")
    ((clock, stored_rate, blob),) = query(path, "SELECT clock, rate, curve FROM dp_publication")
    scale = scale_of(clock)
    assert mechanism == "laplace" and stored_rate == 0 and 2**20 <= scale <= 2**22
    moved = SENSITIVITY[kind] * (2 if adjacency == "replace" and kind == "sum" else 1)
    assert moved <= s * 2.0**g <= moved * (1 + 2.0**-18) + 2 * 2.0**g  # rounding to the lattice adds a step
    check_curve(curve_of(blob)[0], s, scale)
    assert {tier for tier, *_ in charged} == {"t", "in"}
    for tier, charged_rate, delta, slack, curve in charged:
        assert charged_rate == delta == slack == 0
        values, at_filter = curve_of(curve)
        check_curve(values, s, scale)
        assert 0 <= at_filter / laplace_curve(orders[tier], s, scale) - 1 <= mp.mpf("1e-12")
        assert [spent for t, _, spent in rdp if t == tier] == list(values)
    assert all(a == b or math.isclose(a, b, rel_tol=1e-15) for a, b in zip([alpha for t, alpha, _ in rdp if t == "t"], ORDERS, strict=True))
    # The cost is within the tier's rate at every order. With the next smaller scale, the bound on the cost would exceed the rate.
    wanted = mp.mpf(rate) * weight
    assert all(laplace_curve(alpha, s, scale) <= alpha * wanted for alpha in ORDERS[:-1])
    assert continuous_laplace(1, mp.mpf(s) / (scale - 1)) * (1 + mp.mpf(1) / (2 * scale - 2)) > wanted * (1 - mp.mpf("1e-11"))


@pytest.mark.parametrize("start", TIERS)
@pytest.mark.parametrize("order", itertools.permutations("bcd"), ids="".join)
def test_published_in_any_order(path, start, order):
    """Publications from one tier outward, in any order, are points of one path. Each tier has paid the cost of the innermost
    point that it sees, for any order of publications. A tier inside the start is refused and charged nothing."""
    db = ledger(path)
    values = {start: release(db, start)}
    for tier in order:
        before = charges(db)
        if tier < start:
            assert "release 'r' has Laplace noise and cannot be refined" in error_of(db, "SELECT dp_diffuse('r', ?)", tier)
            assert "cannot be refined" in error_of(
                db, "SELECT dp_sum(?, x, ?, ?) FROM t", tier, CLIP, json.dumps({"name": "r", "refine": True, **LAPLACE}))
            assert charges(db) == before
        else:
            values[tier] = diffuse(db, tier)
            assert diffuse(db, tier) == values[tier] and release(db, tier) == values[tier]
    assert one(db, "SELECT dp_verify()") == "ok"
    rdp = db.execute("SELECT tier, spent FROM dp_rdp").fetchall()
    db.close()
    ((s, g),) = query(path, "SELECT sensitivity, granularity FROM dp_release")
    points = {tier: (clock, value) for tier, clock, value in query(path, "SELECT tier, clock, value FROM dp_path")}
    assert set(points) == {tier for tier in TIERS if tier >= start}
    clocks = [points[tier][0] for tier in sorted(points)]
    assert clocks == sorted(set(clocks))
    for tier, value in values.items():
        assert value == math.ldexp(points[tier][1], g)
        check_curve(curve_of(query(path, "SELECT curve FROM dp_publication WHERE tier = ?", tier)[0][0])[0], s,
                    scale_of(points[tier][0]), each=8)
    for tier in TIERS:
        seen = min((t for t in values if t >= tier), default=None)
        spent = [value for t, value in rdp if t == tier]
        if seen is None:
            assert not any(spent)
        else:
            check_curve(spent, s, scale_of(points[seen][0]), each=8)


def test_a_coalition_has_seen_the_innermost_and_nothing_more(path):
    db = ledger(path)
    release(db, "a")
    for tier in "dbc":
        diffuse(db, tier)
    exposure = {tiers: json.loads(one(db, "SELECT dp_exposure(?)", tiers)) for tiers in ("a", "b", "c", "a,c", "b,d,c", "d,c")}
    db.close()
    ((s,),) = query(path, "SELECT sensitivity FROM dp_release")
    clocks = dict(query(path, "SELECT tier, clock FROM dp_path"))
    for tiers, seen in exposure.items():
        innermost = min(tiers.split(","))
        assert [r["tier"] for r in seen["releases"]] == [innermost]
        check_curve(seen["curve"], s, scale_of(clocks[innermost]))
        assert seen["rate"] == 0
        assert 0 < seen["epsilon"] <= mp.mpf(s) / scale_of(clocks[innermost]) * (1 + mp.mpf("1e-12"))
    for many, single in (("a,c", "a"), ("b,d,c", "b"), ("d,c", "c")):
        if single in exposure:
            assert exposure[many]["epsilon"] == exposure[single]["epsilon"]


@pytest.mark.parametrize("weight,epsilon", [(1, 4.0), (0.01, 2.5)])
def test_budgets_run_out_at_the_better_order(path, weight, epsilon):
    """A tier admits exactly the number of releases that fit at the filter order, or the number whose epsilons fit, if this is more.
    The next release reads nothing and charges nothing."""
    db = connect(path)
    one(db, INIT)
    fill(db, ROWS)
    one(db, "SELECT dp_tier('t', 0.1, ?, 1e-6)", epsilon)
    order, limit = db.execute("SELECT filter_order, rate_limit FROM dp_tier").fetchone()
    admitted, message = 0, ""
    while not message:
        try:
            release(db, "t", f"r{admitted}", weight=weight)
            admitted += 1
        except sqlite3.Error as error:
            message = str(error)
    assert "tier 't' would exceed its budget" in message and "nothing was charged or read" in message
    s, clock = db.execute("SELECT sensitivity, clock FROM dp_release r JOIN dp_publication p ON p.release_id = r.id").fetchone()
    fits = [int(mp.mpf(limit) * order / laplace_curve(order, s, scale_of(clock))), int(epsilon / laplace_curve(mp.inf, s, scale_of(clock)))]
    assert admitted == max(fits) > 3 and (fits[0] > fits[1]) == (weight < 1)
    assert len(charges(db)) == admitted == one(db, "SELECT count(*) FROM dp_release")
    with reading(db) as reads:
        assert "would exceed its budget" in error_of(
            db, "SELECT dp_release('t', 'sum', 'SELECT x FROM t', ?)", json.dumps({"clip": CLIP, "weight": weight, **LAPLACE}))
    assert not reads and one(db, "SELECT dp_verify()") == "ok"
    assert one(db, "SELECT spent_epsilon <= epsilon FROM dp_budget") == 1
    assert isinstance(release(db, "t", "r0", weight=weight), float)  # a replay costs nothing


# ---- the law -------------------------------------------------------------------------------------------------------

RUNS = 1000
SAME_WALKS = pytest.mark.xdist_group("laplace walks")


@pytest.fixture(scope="module")
def walks():
    """Returns the noise of many releases at three tiers in lattice steps, the scales, and how often the 95% interval contained
    the truth."""
    db = ledger(tiers={"a": 1.0, "b": 0.3, "c": 0.1})
    for i in range(RUNS):
        release(db, "a", f"r{i}")
        diffuse(db, "c", f"r{i}")
    for i in range(RUNS):  # the point in between comes last
        diffuse(db, "b", f"r{i}")
    ((g, s),) = db.execute("SELECT DISTINCT granularity, sensitivity FROM dp_release").fetchall()
    noise, scales, covered = [], [], []
    for tier in "abc":
        rows = db.execute("SELECT value, low, high FROM dp_value WHERE tier = ? ORDER BY release_id", (tier,)).fetchall()
        noise.append([math.ldexp(value - TRUTH, -g) for value, _, _ in rows])
        covered.append(sum(low <= TRUTH <= high for _, low, high in rows))
        scales.append(scale_of(one(db, "SELECT DISTINCT clock FROM dp_publication WHERE tier = ?", tier)))
    db.close()
    return numpy.array(noise), scales, covered


def check_sizes(sizes):
    """Checks the mean of independent exponential numbers with mean 1."""
    tail = min(stats.gamma.cdf(sum(sizes), len(sizes)), stats.gamma.sf(sum(sizes), len(sizes)))
    assert tail > 1e-10, f"a mean of {numpy.mean(sizes)}"


@SAME_WALKS
def test_noise_is_on_the_lattice(walks):
    """The noise is on the lattice. (The true answer of this test is on the lattice, too.)"""
    assert (walks[0] == numpy.rint(walks[0])).all()


@SAME_WALKS
@pytest.mark.parametrize("tier", range(3))
@pytest.mark.sample(2)
def test_noise_has_the_law(walks, tier):
    """Compares 32 cells of equal probability, the mean and the mean size. The test detects a scale that is wrong by 25%."""
    y = walks[0][tier] / walks[1][tier]
    cells = numpy.minimum(15, (16 * numpy.exp(-abs(y))).astype(int)) + 16 * (y < 0)
    for cell, count in enumerate(numpy.bincount(cells, minlength=32)):
        check_share(count, RUNS, 1 / 32, f"cell {cell}")
    check_mean(y, 0, math.sqrt(2))
    check_sizes(abs(y))


@SAME_WALKS
def test_tiers_are_a_walk(walks):
    """A step between tiers is 0 with the exact probability `stay`, and otherwise noise of the outer scale. Neither the step nor
    its size depends on the starting point."""
    noise, scales, _ = walks
    for inner in range(2):
        step = noise[inner + 1] - noise[inner]
        p, r = mp.exp(-mp.mpf(1) / scales[inner]), mp.exp(-mp.mpf(1) / scales[inner + 1])
        stay = float(p / r * ((1 - r) / (1 - p)) ** 2)
        check_share((step == 0).sum(), RUNS, stay)
        check_sizes(abs(step[step != 0]) / scales[inner + 1])
        assert stats.spearmanr(noise[inner], step).pvalue > 1e-9
        assert stats.spearmanr(abs(noise[inner]), abs(step)).pvalue > 1e-9


@SAME_WALKS
@pytest.mark.parametrize("tier", range(3))
def test_stored_95_percent_intervals_hold_the_truth(walks, tier):
    check_share(walks[2][tier], RUNS, 0.95)


@pytest.mark.parametrize("confidence", [1e-9, 0.01, 0.5, 0.95, 0.999999])
def test_intervals_have_the_coverage_of_the_law(confidence):
    db = ledger()
    value = release(db, "c")
    low, high = json.loads(one(db, "SELECT dp_interval('r', 'c', NULL, ?)", confidence))
    row = record(db, "SELECT granularity, clock, stddev FROM dp_release r JOIN dp_publication p ON p.release_id = r.id"
                     " JOIN dp_value v ON v.release_id = r.id")
    scale = math.ldexp(scale_of(row["clock"]), row["granularity"])
    width = -mp.log1p(-mp.mpf(confidence)) * scale
    assert width * (1 - mp.mpf("1e-15")) <= (mp.mpf(high) - low) / 2 <= width * (1 + mp.mpf("1e-9")) + 1e-15 * abs(value)
    assert math.isclose((high + low) / 2, value, rel_tol=1e-12, abs_tol=1e-12 * scale)
    assert 0 <= row["stddev"] / (mp.sqrt(2) * scale) - 1 <= 1e-11


def test_plans_are_what_happens():
    db = ledger()
    for tier in ("b", "a"):
        before = charges(db)
        plan = json.loads(one(db, "SELECT dp_plan(?, 'sum', ?, ?)", tier, CLIP, json.dumps({"name": tier, **LAPLACE})))
        assert charges(db) == before
        release(db, tier, tier)
        row = record(db, "SELECT clock, sensitivity, granularity, stddev, high - low AS width FROM dp_release r"
                         " JOIN dp_publication p ON p.release_id = r.id JOIN dp_value v ON v.release_id = r.id WHERE name = ?", tier)
        scale = scale_of(row["clock"])
        assert math.isclose(plan["sigma"], row["stddev"], rel_tol=1e-12)
        assert math.isclose(plan["half_width"], row["width"] / 2, rel_tol=1e-9)
        assert 0 <= plan["epsilon"] / (mp.mpf(row["sensitivity"]) / scale) - 1 <= 1e-11
        assert TIERS[tier] * (1 - 1e-5) <= plan["rate"] <= TIERS[tier]
        after = {t: (e, r, n) for t, e, r, n in db.execute(
            "SELECT tier, spent_epsilon, remaining_epsilon, releases_left FROM dp_budget")}
        for part in plan["tiers"]:
            assert (part["epsilon_after"], part["remaining_epsilon"], part["releases_left"]) == after[part["tier"]]
            assert (part["pays"] > 0) == (part["tier"] <= tier)


# ---- beside iterated Laplace ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner,outer", itertools.combinations("abcd", 2), ids="".join)
def test_better_than_iterated_laplace(path, inner, outer):
    """Example 2 of Balle et al. adds fresh Laplace noise to the inner value. If the total variance is the same as at
    our outer tier, the cost of Example 2 (dp_iterated_laplace) is above our cost at every order. Its epsilon
    (dp_laplace2_epsilon) is also above ours."""
    db = ledger(path)
    release(db, inner)
    diffuse(db, outer)
    db.close()
    ((s,),) = query(path, "SELECT sensitivity FROM dp_release")
    scales = {tier: scale_of(clock) for tier, clock in query(path, "SELECT tier, clock FROM dp_path")}
    fresh = math.sqrt(scales[outer] ** 2 - scales[inner] ** 2)
    ours = curve_of(query(path, "SELECT curve FROM dp_publication WHERE tier = ?", outer)[0][0])[0]
    for alpha, value in zip(ORDERS, ours):
        assert value <= call("dp_iterated_laplace", alpha, s, scales[inner], fresh) * (1 + 1e-6), alpha
    assert ours[-1] < call("dp_laplace2_epsilon", s, scales[inner], fresh) * (1 - 1e-3)
    assert ours[-1] < call("dp_iterated_laplace", 9e999, s, scales[inner], fresh) * (1 - 1e-3)


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("ou_")])
def test_kinds_that_shrink_have_no_laplace(kind):
    db = ledger()
    columns = ", ".join(["x"] * max(1, len(KINDS[kind].columns.split())))
    with reading(db) as reads:
        message = error_of(db, "SELECT dp_release('a', ?, ?, ?)", kind, f"SELECT {columns} FROM t", json.dumps(LAPLACE))
    assert "unknown mechanism (this kind has: ou)" in message
    assert not reads and not charges(db)


@pytest.mark.parametrize("value,wanted", [('"x"', "unknown mechanism (this kind has: gaussian, laplace)"),
                                          ('"Laplace"', "unknown mechanism ("), ('""', "unknown mechanism ("),
                                          ("5", "mechanism must be a text, not a number"), ("null", "mechanism must be a text, not NULL"),
                                          ('"response"', "unknown mechanism ("), ('"ou"', "unknown mechanism ("),
                                          ('["laplace"]', "unknown mechanism ("), ("true", "mechanism must be a text")])
def test_names_of_mechanisms(value, wanted):
    db = ledger()
    assert wanted in error_of(db, "SELECT dp_sum('a', x, 2, ?) FROM t", '{"mechanism":%s}' % value)
    assert not charges(db)


def test_a_name_keeps_its_mechanism():
    db = ledger()
    value = release(db, "b")
    before = charges(db)
    other = "SELECT dp_sum('b', x, ?, ?) FROM t"
    for options in ('{"name":"r"}', '{"name":"r","mechanism":"gaussian"}', '{"name":"r","mechanism":"laplace","weight":0.5}'):
        assert "release 'r' exists with other parameters" in error_of(db, other, CLIP, options)
    assert release(db, "b") == release(db, "b", refine=True) == value and charges(db) == before
    plain = one(db, other, CLIP, '{"name":"g"}')
    assert "exists with other parameters" in error_of(db, other, CLIP, '{"name":"g","mechanism":"laplace"}')
    assert one(db, other, CLIP, '{"name":"g","mechanism":"gaussian"}') == plain


def test_exact_gaussian_tiers_refuse_it():
    """Laplace releases are refused at a gdp tier and at any tier outside a gdp tier, because the gdp tier would see them. They
    are allowed at tiers inside all gdp tiers."""
    db = open_ledger({"in": 3.0})
    fill(db, ROWS)
    one(db, "SELECT dp_tier('out', 0.1, 7, 1e-6)")
    one(db, "SELECT dp_tier('exact', 1, 8, 1e-6, 'gdp')")
    for tier in ("exact", "out"):
        assert "tier 'exact' has exact Gaussian accounting" in error_of(
            db, "SELECT dp_sum(?, x, 2, ?) FROM t", tier, json.dumps(LAPLACE))
    assert not charges(db)
    release(db, "in")
    before = charges(db)
    for tier in ("exact", "out"):
        assert "tier 'exact' has exact Gaussian accounting" in error_of(db, "SELECT dp_diffuse('r', ?)", tier)
    assert charges(db) == before and one(db, "SELECT dp_verify()") == "ok"


def test_tiers_created_later():
    """A new tier between two points gets a point from the conditional distribution given these points. A new tier outside gets a
    point by diffusion. A new tier inside the path pays for the points that it sees."""
    db = ledger(tiers={})
    for name, rate in (("a", 1.0), ("c", 0.1)):
        one(db, "SELECT dp_tier(?, ?, 1e4, 1e-6)", name, rate)
    release(db, "a")
    diffuse(db, "c")
    for name, rate in (("between", 0.5), ("outer", 0.001), ("inner", 5.0)):
        one(db, "SELECT dp_tier(?, ?, 1e4, 1e-6)", name, rate)
    spent = {tier: one(db, "SELECT spent FROM dp_rdp WHERE tier = ? AND alpha = 2", tier) for tier in ("a", "c", "between", "inner")}
    assert spent["between"] == spent["c"] and spent["inner"] == spent["a"]
    diffuse(db, "between")
    clock = one(db, "SELECT clock FROM dp_publication WHERE tier = 'between'")
    check_curve(column(db, "SELECT spent FROM dp_rdp WHERE tier = 'between' ORDER BY alpha"),
                one(db, "SELECT sensitivity FROM dp_release"), scale_of(clock))
    assert "cannot be refined" in error_of(db, "SELECT dp_diffuse('r', 'inner')")
    diffuse(db, "outer")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_rates_at_the_bounds():
    """The largest product of rate and weight is 1000. The least rate is the same as for all mechanisms. A diffusion to
    a tier that is too far is refused."""
    db = ledger(tiers={"over": 1001.0, "most": 1000.0, "least": 1e-12})
    sql = "SELECT dp_sum(?, x, 2, ?) FROM t"
    assert "the tier has a rate outside the [1e-12, 1000] of mechanism 'laplace'" in error_of(db, sql, "over", json.dumps(LAPLACE))
    assert "weight makes a rate outside the [1e-12, 1000]" in error_of(
        db, sql, "least", json.dumps({"weight": 0.5, **LAPLACE}))
    assert not charges(db)
    values = [one(db, sql, tier, json.dumps({"weight": weight, "name": tier, **LAPLACE}))
              for tier, weight in (("over", 0.999), ("most", 1), ("least", 1))]
    assert abs(values[0] - TRUTH) < 0.1 and abs(values[1] - TRUTH) < 0.1  # the scale is 0.002: a false alarm has probability e^-48
    rows = db.execute("SELECT sensitivity, clock FROM dp_release r JOIN dp_publication p ON p.release_id = r.id").fetchall()
    for (s, clock), rate in zip(rows, (1001 * 0.999, 1000, 1e-12)):
        scale = scale_of(clock)
        assert continuous_laplace(1, mp.mpf(s) / scale) <= rate
        assert all(laplace_curve(alpha, s, scale) <= alpha * mp.mpf(rate) for alpha in ORDERS[:-1:8])
    before = charges(db)
    assert "too far from that of release 'most' for its lattice" in error_of(db, "SELECT dp_diffuse('most', 'least')")
    assert charges(db) == before and one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("gap", [1e-16, 1e-12, 1e-9, 1e-6, 1e-3])
def test_close_tiers(gap):
    """The scales of neighbouring tiers are integers that differ by at least one, so that the points of the tiers differ."""
    db = ledger(tiers={"in": 0.1, "out": 0.1 * (1 - gap) if gap > 1e-15 else math.nextafter(0.1, 0), "last": 0.09})
    release(db, "in")
    diffuse(db, "last")
    diffuse(db, "out")
    scales = [scale_of(clock) for clock in column(db, "SELECT clock FROM dp_publication p JOIN dp_tier t ON t.name = p.tier ORDER BY t.rate DESC")]
    assert scales[0] < scales[1] < scales[2] and one(db, "SELECT dp_verify()") == "ok"


def test_shards_can_be_merged():
    db = ledger()
    db.execute("CREATE TABLE states(state)")
    for part in (0, 1):
        fill(db, ROWS[part::2])
        db.execute("INSERT INTO states SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":2.0}')")
    options = json.dumps({"name": "r", **LAPLACE})
    value = one(db, "SELECT dp_merge('b', dp_states(state), ?) FROM states", options)
    assert value == one(db, "SELECT dp_merge('b', dp_states(state), ?) FROM states", options)
    assert len(charges(db)) == 2 and one(db, "SELECT mechanism FROM dp_release") == "laplace"
    assert "exists with other parameters" in error_of(db, "SELECT dp_merge('b', dp_states(state), 'r') FROM states")
