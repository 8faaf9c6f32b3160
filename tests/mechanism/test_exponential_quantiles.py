"""Tests the mechanism 'exponential' of one quantile: the distribution of its draws, its cost for each accountant, the default, plans,
refusals and verification.

The reference for a draw is computed here from its definition: the rows of each unit are clipped, each leaf has a loss in rows, and
the probability of a leaf is proportional to exp(-epsilon loss / range). Rounding of losses changes probabilities by less than 1e-4
of themselves, which no test here can see.
"""

import collections
import json
import math

import mpmath as mp
import pytest
from scipy import stats

from mechanism_truth import MARGIN, ORDERS, curve_of, response_curve
from noise_helpers import charges, column, connect, error_of, fill, one, record

pytestmark = pytest.mark.alarm(1e-8)

ASK = "SELECT dp_release(?, ?, 'SELECT x FROM t', ?)"
DRAW = {"mechanism": "exponential"}
RATE_OF_ONE = 1 + math.expm1(-1)  # the rate at which a tier of pure differential privacy pays the epsilon 1


def ledger(*tiers, options="{}", path=":memory:", rows=((1, 1), (2, 2), (5, 3))):
    """Makes a ledger with tiers (name, rate, epsilon, delta, accountant)."""
    db = connect(path)
    one(db, "SELECT dp_init(?)", options)
    fill(db, rows)
    for tier in tiers:
        one(db, "SELECT dp_tier(?, ?, ?, ?, ?)", *tier)
    return db


def ask(db, kind="median", tier="t", **options):
    return one(db, ASK, tier, kind, json.dumps({"lo": 0, "hi": 7, "grid": 1, **options}))


def plan(db, kind="median", tier="t", **options):
    return json.loads(one(db, "SELECT dp_plan(?, ?, NULL, ?)", tier, kind, json.dumps({"lo": 0, "hi": 7, "grid": 1, **options})))


# ---- draws ---------------------------------------------------------------------------------------------------------


def weights(rows, leaves, clip):
    """Returns the rows in each leaf. The rows of a unit are scaled down so that they count at most `clip` together."""
    totals = [mp.mpf(0)] * leaves
    of_unit = collections.Counter(unit for _, unit in rows)
    for leaf, unit in rows:
        totals[leaf] += min(mp.mpf(1), mp.mpf(clip) / of_unit[unit])
    return totals


def losses(totals, q):
    rank = mp.mpf(q) * sum(totals) + (mp.mpf("0.5") - mp.mpf(q))
    return [max(0, sum(totals[:i]) - rank, rank - sum(totals[:i + 1])) for i in range(len(totals))]


def law(totals, q, clip, epsilon, replace=False):
    reach = 2 * mp.mpf(clip) * (1 if replace else max(q, 1 - q))
    found = [mp.exp(-epsilon * loss / reach) for loss in losses(totals, q)]
    return [float(p / sum(found)) for p in found]


def check_draws(values, leaves, probabilities):
    """Compares the number of draws of each leaf with its probability. Leaves with few expected draws are taken together."""
    counts = collections.Counter(values)
    assert set(counts) <= set(leaves)
    cells, left = [], [0, 0.0]
    for leaf, p in zip(leaves, probabilities):
        left = [left[0] + counts[leaf], left[1] + p * len(values)]
        if left[1] >= 8:
            cells.append(left)
            left = [0, 0.0]
    cells[-1] = [cells[-1][0] + left[0], cells[-1][1] + left[1]]
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    assert stats.chi2.sf(statistic, len(cells) - 1) > 1e-9, (statistic, cells)


SPREAD = [(x, u) for u, x in enumerate([0, 1, 1, 2, 2, 2, 3, 5, 5, 6])] + [(x, 100) for x in (0, 0, 6, 6, 6)] + [(3, 101)] * 9


@pytest.mark.parametrize("q, clip, adjacency", [(0.5, 1.5, "add-remove"), (0.25, 2, "replace")])
def test_draws_have_their_distribution(q, clip, adjacency):
    db = ledger(("t", RATE_OF_ONE, 1e9, 0, "pure"), rows=SPREAD, options=json.dumps({"adjacency": adjacency}))
    epsilon = plan(db, "quantile", q=q, clip=clip, **DRAW)["epsilon"]
    assert 0.999 < epsilon <= 1
    values = [ask(db, "quantile", q=q, clip=clip, **DRAW) for _ in range(250)]
    with mp.workdps(30):
        exact = law(weights(SPREAD, 8, clip), q, clip, epsilon, adjacency == "replace")
        wrong = law(weights(SPREAD, 8, clip), q, clip, epsilon / 9, adjacency == "replace")
    check_draws(values, range(8), exact)
    with pytest.raises(AssertionError):  # these draws would show an epsilon that is 9 times as small
        check_draws(values, range(8), wrong)


def test_without_rows_each_value_of_the_grid_is_equally_likely():
    """Of 8 leaves, the last two hold no value."""
    db = ledger(("t", RATE_OF_ONE, 1e9, 0, "pure"), rows=())
    check_draws([ask(db, "quantile", q=1, hi=5, **DRAW) for _ in range(150)], range(6), [1 / 6] * 6)


def test_without_a_grid_the_value_is_the_middle_of_a_leaf():
    db = ledger(("t", 400, 1e9, 1e-6, "rdp"), rows=[(x, x) for x in range(100)])
    assert one(db, ASK, "t", "median", json.dumps({"lo": 0, "hi": 100, "bins": 4, **DRAW})) in (37.5, 62.5)
    assert one(db, ASK, "t", "quantile", json.dumps({"lo": 0, "hi": 100, "bins": 4, "q": 0.1, **DRAW})) == 12.5


def test_error_in_rank():
    """Where rows lie close to each other, the error in rank has the mean range/epsilon. The half-width of the plan holds 95 of 100
    errors, and the rank_error more."""
    rows = [(x, x) for x in range(1000)]
    db = ledger(("t", 0.01, 1e9, 1e-6, "rdp"), rows=rows)
    wide = {"hi": 1023, **DRAW}
    planned = plan(db, **wide)
    epsilon = math.sqrt(8 * 0.01)
    assert planned["epsilon"] == pytest.approx(epsilon, rel=1e-4)
    assert planned["half_width"] == pytest.approx(math.log(20) / epsilon, rel=1e-3)
    assert planned["rank_error"] == pytest.approx(math.log(20 * 1023) / epsilon, rel=1e-3)
    found = [abs(ask(db, **wide) - 499.5) - 0.5 for _ in range(150)]
    mean = sum(found) / len(found)
    step = math.exp(-epsilon)  # the rank of row 500 is between two rows, so errors are 0, 1, 2, ... on both sides
    truth, stddev = step / (1 - step), math.sqrt(step) / (1 - step)
    assert abs(mean - truth) <= 7 * stddev / math.sqrt(len(found)), (mean, truth)
    assert stats.binom.sf(sum(error > planned["half_width"] for error in found) - 1, len(found), 0.05) > 1e-9
    assert max(found) <= planned["rank_error"] * 2


# ---- cost ----------------------------------------------------------------------------------------------------------


def bounded_range(alpha, epsilon):
    square = mp.inf if alpha == float("inf") else mp.mpf(alpha) * mp.mpf(epsilon) ** 2 / 8
    return min(square, response_curve(alpha, epsilon))


def test_a_tier_with_curves_pays_that_of_the_bounded_range():
    db = ledger(("in", 0.3, 100, 1e-6, "rdp"), ("out", 0.02, 9, 1e-6, "rdp"))
    ask(db, tier="out", name="a", **DRAW)
    epsilon = plan(db, tier="out", **DRAW)["epsilon"]
    assert math.sqrt(8 * 0.02) * (1 - 1e-4) <= epsilon <= math.sqrt(8 * 0.02)
    rows = db.execute("SELECT tier, rate, curve FROM dp_charge").fetchall()
    assert sorted(row[0] for row in rows) == ["in", "out"]
    with mp.workdps(30):
        for _, rate, curve in rows:
            assert rate == 0
            for alpha, value in zip(ORDERS, curve_of(curve)[0]):
                truth = bounded_range(alpha, epsilon)
                assert truth <= value <= truth * (1 + 3 * MARGIN), alpha
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_pure_tier_pays_the_epsilon_of_laplace_noise():
    db = ledger(("t", RATE_OF_ONE / 7, 4, 0, "pure"))
    epsilon = plan(db, **DRAW)["epsilon"]
    laplace = plan(db, mechanism="laplace")["epsilon"]
    assert laplace * 0.999 <= epsilon <= laplace * 1.001
    ask(db, name="a", **DRAW)
    assert epsilon <= one(db, "SELECT spent_epsilon FROM dp_budget") <= epsilon * (1 + 3 * MARGIN)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_exact_gaussian_accounting_pays_the_rate_of_a_gaussian_that_is_easier_to_test():
    """mu = 2 PhiInv(1/(1 + e^(-epsilon/2))), also for an inner tier whose accountant covers curves."""
    db = ledger(("in", 0.3, 100, 1e-6, "rdp"), ("t", 0.02, 9, 1e-6, "gdp"), ("out", 0.001, 2, 1e-6, "rdp"))
    epsilon = plan(db, **DRAW)["epsilon"]
    ask(db, name="a", **DRAW)
    with mp.workdps(30):
        mu = 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(mp.mpf(epsilon) / 4))
        rate = mu**2 / 2
    rows = db.execute("SELECT tier, rate, curve, slack FROM dp_charge").fetchall()
    assert sorted(row[0] for row in rows) == ["in", "t"]
    for _, paid, curve, slack in rows:
        assert rate <= paid <= rate * (1 + 3 * MARGIN) and paid <= 0.02 and paid >= 0.02 * (1 - 1e-4)
        assert curve is None and slack == 0
    assert one(db, "SELECT dp_verify()") == "ok"


def test_half_the_weight_costs_half_the_rate():
    db = ledger(("t", 0.02, 9, 1e-6, "gdp"))
    whole, half = plan(db, **DRAW), plan(db, weight=0.5, **DRAW)
    assert half["tiers"][0]["pays"] == pytest.approx(whole["tiers"][0]["pays"] / 2, rel=1e-4)
    assert half["half_width"] == pytest.approx(whole["half_width"] * math.sqrt(2), rel=1e-2)


@pytest.mark.parametrize("accountant", ["rdp", "gdp", "pure"])
def test_the_budget_pays_for_as_many_as_were_planned(accountant):
    """At a tier that adds up rates or epsilons, 5 releases of the rate of dp_rate fit, as with noise."""
    delta = 0 if accountant == "pure" else 1e-6
    rate = 1 / 5 + math.expm1(-1 / 5) if accountant == "pure" else one(connect(), "SELECT dp_rate(1, 1e-6, 5)") * (0.8 if accountant == "rdp" else 1)
    db = ledger(("t", rate, 1, delta, accountant))
    for i in range(5):
        ask(db, name=f"r{i}", **DRAW)
    refused = error_of(db, ASK, "t", "median", json.dumps({"lo": 0, "hi": 7, "name": "late", **DRAW}))
    assert "would exceed its budget" in refused or accountant == "rdp"
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("accountant, rate", [("rdp", 0.02), ("gdp", 0.02), ("pure", 0.3)])
def test_half_width_finds_the_weight(accountant, rate):
    db = ledger(("t", rate, 4, 0 if accountant == "pure" else 1e-6, accountant))
    wanted = plan(db, rows=500)["half_width"] * 2
    found = plan(db, rows=500, half_width=wanted)
    assert found["mechanism"] == "exponential" and wanted * (1 - 1e-4) <= found["half_width"] <= wanted
    # half a leaf is 7/16; of the rest, the half-width is proportional to 1/epsilon
    part = (plan(db, rows=500)["half_width"] - 7 / 16) / (wanted - 7 / 16)
    assert found["epsilon"] == pytest.approx(plan(db)["epsilon"] * part, rel=1e-3)
    message = error_of(db, "SELECT dp_plan('t', 'median', NULL, ?)", json.dumps({"lo": 0, "hi": 7, "grid": 1, "rows": 500, "half_width": wanted / 2.01}))
    assert "half_width must be at least" in message and " needs the rate " in message
    assert ("which is an epsilon of" in message) == (accountant == "pure") and ("and the accountant 'gdp'" in message) == (accountant == "gdp")


# ---- the default ---------------------------------------------------------------------------------------------------


def mechanism_of(db, name):
    return one(db, "SELECT mechanism FROM dp_release WHERE name = ?", name)


@pytest.mark.parametrize("accountant, noise", [("rdp", "gaussian"), ("gdp", "gaussian"), ("pure", "laplace")])
def test_default(accountant, noise):
    delta = 0 if accountant == "pure" else 1e-6
    db = ledger(("in", 0.3, 40 if accountant == "pure" else 15, delta, accountant), ("out", 0.02, 9, delta, accountant))
    cases = [  # options of the request, and whether it gets the draw
        ("median", {}, True), ("quantile", {"q": 0.5}, True), ("quantile", {"q": "[0.5]"}, True), ("median", {"weight": 0.1}, True),
        ("quantile", {"q": "[0.1, 0.9]"}, False), ("median", {"diagnose": True}, False),
        ("median", {"tier": "in"}, False), ("median", {"mechanism": noise}, False), ("median", {"refine": True}, False)]
    for number, (kind, options, draws) in enumerate(cases):
        name = f"r{number}"
        ask(db, kind, name=name, **{"tier": "out", **options})
        assert mechanism_of(db, name) == ("exponential" if draws else noise), (kind, options)


def test_the_default_is_what_the_plan_says_is_better():
    db = ledger(("t", 0.02, 9, 1e-6, "rdp"))
    for hi, q in [(1, 0.5), (7, 0.5), (1000, 0.5), (1000, 0.99), (7, 1)]:
        planned = plan(db, "quantile", q=q, hi=hi)
        name = f"{hi} {q}"
        ask(db, "quantile", q=q, hi=hi, name=name)
        width = {mechanism: found["half_width"] for mechanism, found in planned["mechanisms"].items()}
        assert mechanism_of(db, name) == ("exponential" if width["exponential"] <= width["gaussian"] else "gaussian"), (hi, q, width)
        assert planned["half_width"] == width[mechanism_of(db, name)]


def test_three_times_less_error_than_the_tree():
    """10,000 rows with values 0 .. 500: one release of epsilon 1, and one of 20 at (1, 1e-6)."""
    strict = ledger(("t", RATE_OF_ONE, 1, 0, "pure"))
    planned = plan(strict, hi=500)["mechanisms"]
    assert planned["exponential"]["half_width"] == pytest.approx(math.log(20), rel=2e-3)  # a mean error of 1
    assert planned["laplace"]["half_width"] >= 5 * planned["exponential"]["half_width"]
    rate = one(strict, "SELECT dp_rate(1, 1e-6, 20)")
    many = ledger(("t", rate, 1, 1e-6, "gdp"))
    planned = plan(many, hi=500)["mechanisms"]
    assert planned["exponential"]["half_width"] / math.log(20) <= 12  # the mean error
    assert planned["gaussian"]["half_width"] >= 3 * planned["exponential"]["half_width"]


def test_a_release_keeps_its_mechanism_when_tiers_change():
    db = ledger(("t", 0.02, 9, 1e-6, "rdp"))
    first = ask(db, name="a")
    one(db, "SELECT dp_tier('outer', 0.001, 2, 1e-6)")
    before = charges(db)
    assert ask(db, name="a") == first and charges(db) == before
    ask(db, name="b")
    assert mechanism_of(db, "b") == "gaussian"
    assert one(db, "SELECT dp_diffuse('b', 'outer')") is not None


# ---- what is published, and what is refused ------------------------------------------------------------------------


def test_what_is_published():
    db = ledger(("t", 0.02, 9, 1e-6, "gdp"), options='{"unit":"patient"}')
    value = ask(db, name="a")
    row = record(db, "SELECT * FROM dp_value")
    assert (row["value"], row["stddev"], row["low"], row["high"]) == (value, None, None, None)
    assert row["display"] == str(int(value))
    assert row["figure"] == "median, values outside 0 to 7 count as 0 or 7, in steps of 1, each patient counts once; drawn at random near it"
    one(db, ASK, "t", "median", json.dumps({"lo": 0, "hi": 1000, "name": "b", "bins": 512, **DRAW}))
    drawn = record(db, "SELECT value, display FROM dp_value WHERE release = 'b'")
    assert abs(float(drawn["display"].replace(",", "")) - drawn["value"]) <= 0.5 + 1e-9  # a leaf has the width 1.95
    assert len(drawn["display"]) <= 5
    assert "exponential mechanism" in one(db, "SELECT dp_certificate()")


def refuses(db, wanted, sql, *arguments):
    before = charges(db)
    message = error_of(db, sql, *arguments)
    assert wanted in message, message
    assert charges(db) == before


def test_refusals():
    db = ledger(("in", 0.3, 100, 1e-6, "rdp"), ("t", 0.02, 9, 1e-6, "rdp"), ("out", 0.001, 2, 1e-6, "rdp"))
    ask(db, name="a", **DRAW)
    tree = '"mechanism":"gaussian" or "laplace", whose tree of counts can be diffused'
    refuses(db, tree, "SELECT dp_diffuse('a', 'out')")
    refuses(db, tree, "SELECT dp_diffuse('a', 'in')")
    refuses(db, "has neither a symbol nor counts", "SELECT dp_mix('a', 'out', '[[0,0,1]]')")
    refuses(db, "has no interval (its error is bounded in rank", "SELECT dp_interval('a', 't', NULL, 0.9)")
    for kind, options, wanted in [
            ("median", {"diagnose": True}, "diagnose counts clipped units with noise, which mechanism 'exponential' does not add"),
            ("quantile", {"q": "[0.1, 0.9]"}, "mechanism 'exponential' draws one quantile"),
            ("group_median", {"keys": ["a"]}, "unknown mechanism (this kind has: gaussian, laplace)"),
            ("ou_median", {"radius": 3}, "unknown mechanism (this kind has: ou)"),
            ("avg", {}, "unknown mechanism (this kind has: gaussian, laplace)")]:
        grid = {} if kind == "avg" else {"grid": 1}
        refuses(db, wanted, ASK, "t", kind, json.dumps({"lo": 0, "hi": 7, **grid, **options, **DRAW}))
    item = {"tier": "t", "kind": "median", "sql": "SELECT x FROM t", "diffuse": ["out"], "options": {"name": "b", "lo": 0, "hi": 7, **DRAW}}
    refuses(db, "every answer is also published at tier 'out', but this one was drawn by the exponential mechanism and stays at its tier",
            "SELECT dp_batch(?)", json.dumps([item]))
    assert column(db, "SELECT name FROM dp_release") == ["a"]


def test_other_ways_to_ask():
    """The aggregate in a SELECT, a batch, an answer, and shards give values of the grid and the same cost."""
    db = ledger(("t", 0.02, 9, 1e-6, "rdp"), rows=[(x % 8, x) for x in range(800)])
    options = json.dumps({"name": "a", "grid": 1})
    assert one(db, "SELECT dp_median('t', x, 0, 7, ?) FROM t", options) in range(8)
    item = {"tier": "t", "kind": "median", "sql": "SELECT x FROM t", "options": {"name": "b", "lo": 0, "hi": 7, "grid": 1}}
    one(db, "SELECT dp_batch(?)", json.dumps([item]))
    drawn = {"lo": 0, "hi": 7, "grid": 1, **DRAW}
    one(db, "SELECT display FROM dp_answer('t', 'median', 'SELECT x FROM t', ?)", json.dumps({"name": "c", **drawn}))
    state = one(db, "SELECT dp_partial('median', 'SELECT x FROM t', ?)", json.dumps(drawn))
    assert one(db, "SELECT dp_merge('t', dp_states(?), 'd')", state) in range(8)
    plain = one(db, "SELECT dp_partial('median', 'SELECT x FROM t', ?)", json.dumps({"lo": 0, "hi": 7, "grid": 1}))
    assert 0 <= one(db, "SELECT dp_merge('t', dp_states(?), 'e')", plain) <= 7
    refuses(db, "the states are for mechanism 'gaussian'", "SELECT dp_merge('t', dp_states(?), ?)", plain, json.dumps({"name": "f", **DRAW}))
    assert dict(db.execute("SELECT name, mechanism FROM dp_release")) == {
        "a": "exponential", "b": "exponential", "c": "exponential", "d": "exponential", "e": "gaussian"}
    assert len({curve for _, curve in db.execute("SELECT release, curve FROM dp_charge WHERE release <> 'e'")}) == 1
    assert one(db, "SELECT dp_verify()") == "ok"


def test_the_merged_shards_have_the_distribution_of_all_rows():
    """Two shards: each unit is in one of them. At a large rate, the draw is the leaf of the median."""
    db = ledger(("t", 400, 1e9, 1e-6, "rdp"))
    options, states = json.dumps({"lo": 0, "hi": 7, "grid": 1, **DRAW}), []
    for rows in ([(1, 1), (1, 2)], [(6, 3), (6, 4), (6, 5)]):
        fill(db, rows)
        states.append(one(db, "SELECT dp_partial('median', 'SELECT x FROM t', ?)", options))
    assert one(db, "SELECT dp_merge('t', dp_states(value), 'a') FROM (SELECT ? AS value UNION ALL SELECT ?)", *states) == 6
