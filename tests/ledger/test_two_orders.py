"""Tests the filter of the accountant 'rdp', which admits a release as long as one of two totals stays within its limit: the total
at the filter order, or the sum of epsilons (ext/math/README.md). The truth is the divergence of the noise at the clocks of the ledger,
and limits that are computed here. An exact search over all adaptive adversaries shows that the theorem holds.
"""

import functools
import json
import math
import pathlib
import random
import re

import pytest
from mpmath import mp, mpf

from conftest import connect, ledger_of, one, one_row, refused
from laplace_helpers import scale_of
from mechanism_truth import continuous_laplace, laplace_curve, response_curve
from truth import true_zcdp_epsilon

INFINITY = float("inf")


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(30):
        yield


def allowed(order, epsilon, delta):
    """Returns the RDP at an order that converts to (epsilon, delta)."""
    if order == INFINITY:
        return mpf(epsilon)
    return mpf(epsilon) - mp.log(1 - 1 / mpf(order)) + mp.log(mpf(delta) * order) / (order - 1)


@functools.cache
def best_order(epsilon, delta):
    """Returns the order at which the most Gaussian noise is allowed, by ternary search on ln(order - 1)."""
    low, high = mpf(-5), mpf(14)
    for _ in range(120):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        at_a, at_b = (allowed(1 + mp.exp(x), epsilon, delta) / (1 + mp.exp(x)) for x in (a, b))
        low, high = (a, high) if at_a < at_b else (low, b)
    return 1 + mp.exp(low)


def laplace_tier(n, epsilon, delta, *options):
    """Makes a ledger with a tier whose releases of weight 1 have the pure epsilon epsilon/n under Laplace noise."""
    db = one_row(connect())
    rate = one(db, "SELECT dp_rdp_laplace(1, ?, 1)", epsilon / n)
    db.execute(f"SELECT dp_tier('t', ?, ?, ?{', ?' * len(options)})", (rate, epsilon, delta, *options)).fetchall()
    return db


def count(db, name, tier="t", **options):
    return one(db, "SELECT dp_release(?, 'count', 'SELECT 1 FROM t', ?)", tier, json.dumps({"name": name, "clip": 1, **options}))


def fill(db, most=1000, **options):
    """Releases until the tier refuses. Returns the number of releases and the error."""
    for number in range(most):
        try:
            count(db, f"r{number}", **options)
        except Exception as error:
            assert "would exceed its budget" in str(error) and "nothing was charged or read" in str(error)
            assert one(db, "SELECT dp_verify()") == "ok"
            assert one(db, "SELECT spent_epsilon <= epsilon FROM dp_budget") == 1
            return number, str(error)
    raise AssertionError("the tier admits everything")


# ---- how many releases a budget admits ---------------------------------------------------------------------------------


def admitted_at(order, each, epsilon, delta):
    return mp.floor(allowed(order, epsilon, delta) * (1 + mpf("1e-12")) / continuous_laplace(order, each))


def table():
    """Yields the rows of the table in ext/math/README.md."""
    text = (pathlib.Path(__file__).parents[2] / "ext/math/README.md").read_text()
    for epsilon, *cells in re.findall(r"^\| \((\d+), 1e-6\)" + r" \| (\d+)" * 4 + r" \|$", text, re.M):
        yield int(epsilon), *map(int, cells)


@pytest.mark.parametrize("row", table())
def test_the_table_of_admitted_releases(row):
    """No filter over orders admits more than the order that is best for these very releases, if it were known beforehand."""
    epsilon, n, alone, both, best = row
    orders = [1 + mp.exp(mpf(x) / 20) for x in range(-40, 260)] + [INFINITY]
    at = {order: admitted_at(order, mpf(epsilon) / n, epsilon, mpf("1e-6")) for order in (*orders, best_order(epsilon, mpf("1e-6")))}
    assert alone == at[best_order(epsilon, mpf("1e-6"))] and best == max(at.values())
    assert both == max(alone, at[INFINITY]) <= best
    admitted, error = fill(laplace_tier(n, epsilon, 1e-6), mechanism="laplace")
    assert admitted == both, error


def test_the_table_is_there():
    assert len(list(table())) == 8


def test_gaussian_noise_closes_the_second_order():
    """After Gaussian noise the sum of epsilons is infinite. What was released before stays valid."""
    db = laplace_tier(6, 1.0, 1e-6)
    alone = admitted_at(best_order(1, mpf("1e-6")), mpf(1) / 6, 1, mpf("1e-6"))
    count(db, "gaussian", weight=0.01)
    assert fill(db, mechanism="laplace")[0] == alone == 3
    db = laplace_tier(6, 1.0, 1e-6)
    assert fill(db, mechanism="laplace")[0] == 6
    error = refused(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM t', '{\"clip\":1, \"weight\":1e-4}')")
    assert re.search(r"this needs rate [\d.e-]+, and 0 of 0.024356 is left", error)
    assert db.execute("SELECT releases, releases_left FROM dp_budget").fetchall() == [(6, 0)]
    assert mpf(one(db, "SELECT spent_epsilon FROM dp_budget")) >= 6 * mpf(one(db, "SELECT max(spent) FROM dp_rdp")) / 6 * mpf("0.99")


def test_the_error_is_about_the_order_that_admits_more():
    number, error = fill(laplace_tier(6, 1.0, 1e-6), mechanism="laplace")
    assert number == 6 and re.search(r"budget of epsilon 1: this needs 0.166667, and [\d.]+e-07 is left", error)
    number, error = fill(laplace_tier(40, 1.0, 1e-6), mechanism="laplace")
    assert number == 82 and re.search(r"this needs rate 0.00029\d+, and [\d.e-]+ of 0.024356 is left", error)


def test_a_plan_says_how_many_releases_fit():
    db = laplace_tier(6, 1.0, 1e-6)
    for left in ("5 more such releases fit", "4 more such releases fit", "3 more such releases fit", "2 more such releases fit",
                 "1 more such release fits", "no more such release fits"):
        assert left in json.loads(one(db, "SELECT dp_plan('t', 'count', 1, '{\"mechanism\":\"laplace\"}')"))["summary"]
        count(db, left[0], mechanism="laplace")


def test_a_tier_with_a_period_has_one_order(clock):
    """The budgets of several periods compose at the filter order."""
    clock.set("2026-03-03 12:00:00")
    db = laplace_tier(6, 1.0, 1e-6, '{"period":"month"}')
    assert fill(db, mechanism="laplace")[0] == 3
    assert db.execute("SELECT pure_limit FROM dp_tier").fetchall() == [(None,)]


@pytest.mark.parametrize("accountant,delta", [("gdp", 1e-6), ("pure", 0)])
def test_other_accountants_have_one_limit(accountant, delta):
    assert one(laplace_tier(6, 1.0, delta, accountant), "SELECT pure_limit FROM dp_tier") is None


def test_a_grant_keeps_the_filter_order():
    """The reserves of grants are amounts at the filter order, so a tier with a grant keeps this order."""
    db = laplace_tier(6, 1.0, 1e-6)
    one(db, "SELECT dp_grant('g', 't', 0.001)")
    assert fill(db, mechanism="laplace")[0] == 3
    db = laplace_tier(6, 1.0, 1e-6)
    assert fill(db, mechanism="laplace")[0] == 6
    assert "nothing is left of the budget" in refused(db, "SELECT dp_grant('g', 't', 0.001)")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_grant_needs_something_left_at_the_filter_order():
    """A tier that goes on by its epsilons has nothing left that a grant could hold, wherever the grant belongs."""
    db = laplace_tier(6, 1.0, 1e-6)
    one(db, "SELECT dp_tier('inner', 5, 60, 1e-6, 'rdp')")
    for i in range(5):
        count(db, f"c{i}", mechanism="laplace")
    for grant in ("'t', 1", """'inner', 1e-6, '{"diffuse":["t"]}'"""):
        assert "nothing is left of the budget of tier 't'" in refused(db, f"SELECT dp_grant('g', {grant})")
    count(db, "c5", mechanism="laplace")
    assert one(db, "SELECT dp_verify()") == "ok" and one(db, "SELECT count(*) FROM dp_reserve") == 0


def test_an_inner_tier_pays_for_all_epsilons_of_the_outer_tier():
    db, rate = one_row(connect()), 0.0131  # that of Laplace noise with an epsilon of nearly 1/6
    one(db, "SELECT dp_tier('out', ?, 1, 1e-9)", rate)
    assert "is smaller than that of 'out', epsilon 1 at delta 1e-09 (an epsilon of at least 1.001 does)" in refused(
        db, "SELECT dp_tier('in', 0.02, 0.99, 1e-3)")
    one(db, "SELECT dp_tier('in', 0.0145, 1.01, 1e-9)")
    for number in range(6):
        count(db, f"r{number}", "out", mechanism="laplace")
    one(db, "SELECT dp_tier('late', 0.0135, 1, 1e-9)")  # inherits more than its filter order admits
    assert db.execute("SELECT releases, releases_left FROM dp_budget WHERE tier = 'late'").fetchall() == [(6, 0)]
    assert one(db, "SELECT dp_verify()") == "ok"


def test_the_exposure_of_a_coalition_may_exceed_the_epsilon_of_its_outer_tier():
    db = one_row(connect())
    one(db, "SELECT dp_tier('out', 0.01, 1, 1e-9)")
    one(db, "SELECT dp_tier('in', 0.5, 8, 1e-6)")
    count(db, "r", "in")
    exposure = json.loads(one(db, "SELECT dp_exposure('in,out')"))
    assert exposure["delta"] == 1e-9 and true_zcdp_epsilon(mpf("0.4999"), mpf("1e-9")) < exposure["epsilon"]
    assert exposure["epsilon"] < true_zcdp_epsilon(mpf("0.5001"), mpf("1e-9"))


@pytest.mark.parametrize("edit", ["UPDATE dp_tier SET pure_limit = 2", "UPDATE dp_tier SET pure_limit = NULL",
                                  "UPDATE dp_budget SET spent_pure = spent_pure / 2"])
def test_edits_are_found(path, edit):
    db = one_row(connect(path))
    one(db, "SELECT dp_tier('t', 0.01, 1, 1e-6)")
    count(db, "r", mechanism="laplace")
    assert one(db, "SELECT dp_verify()") == "ok"
    with ledger_of(path) as ledger:
        ledger.execute(edit)
        ledger.commit()
    assert one(db, "SELECT dp_verify()") != "ok"
    assert "is damaged" in refused(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM t', '{\"clip\":1}')")


# ---- random releases at two tiers ----------------------------------------------------------------------------------------


class Books:
    """The two totals of each tier, from the clocks of what was published."""

    def __init__(self, path, tiers):
        self.ledger, self.tiers, self.spent = ledger_of(path), tiers, {name: {} for name in tiers}

    def cost(self, tier, weight, mechanism, rate):
        """Returns what a release would cost at the two orders of a tier, without the rounding of scales."""
        epsilon, delta = self.tiers[tier]
        order = best_order(epsilon, delta)
        if mechanism == "gaussian":
            return order * weight * rate, mp.inf
        distance = mp.findroot(lambda z: z + mp.exp(-z) - 1 - weight * rate, mp.sqrt(2 * weight * rate))
        return continuous_laplace(order, distance), distance

    def note(self, name, tiers):
        (mechanism, sensitivity, clock), = self.ledger.execute(
            "SELECT mechanism, sensitivity, clock FROM dp_release r JOIN dp_publication ON release_id = r.id WHERE name = ?", (name,))
        for tier in tiers:
            order = best_order(*self.tiers[tier])
            self.spent[tier][name] = ((order * mpf(sensitivity) ** 2 / (2 * clock), mp.inf) if mechanism == "gaussian" else
                                      [laplace_curve(o, sensitivity, scale_of(clock)) for o in (order, INFINITY)])

    def room(self, tier, cost):
        """Returns how much of the better limit a release leaves, as a share of the limit."""
        epsilon, delta = self.tiers[tier]
        limits = allowed(best_order(epsilon, delta), epsilon, delta), mpf(epsilon)
        return max(1 - (mp.fsum(spent[i] for spent in self.spent[tier].values()) + cost[i]) / limits[i] for i in (0, 1))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sample(3)
def test_a_release_is_admitted_if_and_only_if_one_order_admits_it_at_each_tier(path, seed):
    dice = random.Random(seed)
    epsilon = dice.choice([0.3, 1.0, 4.0])
    tiers = {"in": (epsilon * dice.choice([1, 1.5]), mpf("1e-5")), "out": (epsilon, mpf("1e-6"))}
    db, rates = one_row(connect(path)), {"out": epsilon**2 / 80, "in": epsilon**2 / 64}
    for name, (limit, delta) in tiers.items():
        one(db, "SELECT dp_tier(?, ?, ?, ?)", name, rates[name], limit, float(delta))
    books, outcomes, gaussian = Books(path, tiers), [], dice.random() * 0.3
    for number in range(40):
        tier, mechanism = dice.choice(list(tiers)), "gaussian" if dice.random() < gaussian and number > 8 else "laplace"
        paying, weight = ["in", "out"] if tier == "out" else ["in"], dice.uniform(0.04, 1)
        room = min(books.room(t, books.cost(t, weight, mechanism, rates[tier])) for t in paying)
        if abs(room) < 1e-5:  # the scale is rounded up to a whole number of lattice steps
            continue
        try:
            count(db, f"r{number}", tier, weight=weight, mechanism=mechanism)
        except Exception as error:
            assert "would exceed its budget" in str(error)
            outcomes.append(False)
        else:
            books.note(f"r{number}", paying)
            outcomes.append(True)
        assert outcomes[-1] == (room > 0), (number, tier, mechanism, room)
    assert {True, False} == set(outcomes)
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- the theorem, by exact search over all adversaries ---------------------------------------------------------------------

STEPS = {  # log likelihood ratios of the outcomes under one of the two worlds, and their probabilities under the other
    "response": [(z, 1 / (1 + math.exp(z))) for z in (0.1, -0.1)],
    "large response": [(z, 1 / (1 + math.exp(z))) for z in (0.25, -0.25)],
    "rarely more": [(1.9, 1e-4), (math.log((1 - 1e-4 * math.exp(1.9)) / (1 - 1e-4)), 1 - 1e-4)],  # more than the budget's epsilon
    "rarely less": [(-1.9, 2e-4), (math.log((1 - 2e-4 * math.exp(-1.9)) / (1 - 2e-4)), 1 - 2e-4)],
}


def costs(step, order):
    return (max(math.log(math.fsum(q * math.exp(way * order * loss + (0 if way > 0 else loss)) for loss, q in STEPS[step])) / (order - 1)
                for way in (1, -1)), max(abs(loss) for loss, _ in STEPS[step]))


def worst(epsilon, order, limit, pure_limit):
    """Returns the largest delta at epsilon that any adversary reaches. The adversary chooses each step from the outcomes of the
    earlier steps, as long as one of the two totals stays within its limit, or stops."""
    prices = {step: costs(step, order) for step in STEPS}

    @functools.cache
    def value(used, loss):
        """`used` counts the steps so far, and `loss` is the log of the likelihood ratio: the state of the game."""
        spent = [math.fsum(n * prices[step][i] for step, n in zip(STEPS, used)) for i in (0, 1)]
        best = max(0.0, math.exp(loss) - math.exp(epsilon))
        for at, step in enumerate(STEPS):
            after = [spent[i] + prices[step][i] for i in (0, 1)]
            if after[0] <= limit or after[1] <= pure_limit * (1 + 1e-12):
                used_then = used[:at] + (used[at] + 1,) + used[at + 1:]
                best = max(best, math.fsum(q * value(used_then, round(loss + outcome, 12)) for outcome, q in STEPS[step]))
        return best

    return value((0,) * len(STEPS), 0.0)


def test_no_adaptive_adversary_gets_more_than_epsilon_and_delta():
    """The adversary may go on at one order or at the other, depending on what it saw. The search is exact."""
    epsilon, delta = 1.0, 1e-2
    db = one_row(connect())
    one(db, "SELECT dp_tier('t', 0.001, ?, ?)", epsilon, delta)
    order, rate, pure = db.execute("SELECT filter_order, rate_limit, pure_limit FROM dp_tier").fetchone()
    assert allowed(order, epsilon, delta) >= order * rate and pure == epsilon
    both = worst(epsilon, order, order * rate, pure)
    assert 0.5 * delta < both <= delta
    assert worst(epsilon, order, 0, pure) == 0  # pure epsilons within epsilon need no delta
    assert worst(epsilon, order, order * rate, 1.5 * pure) > delta  # the search would find a wrong limit
    assert worst(epsilon, order, 2.5 * order * rate, pure) > delta


def test_order_infinity_is_the_only_further_order_that_is_free():
    """A third order needs a share of delta. The numbers are those of ext/math/README.md: what a share of 1% costs Gaussian noise, and what
    the best third order then brings to a tier that has spent a tenth or three tenths on Gaussian noise."""
    epsilon, delta, share, each = 1, mpf("1e-6"), mpf("0.01"), mpf(1) / 6
    first = best_order(epsilon, delta)
    limit = allowed(first, epsilon, delta) / first
    lower = best_order(epsilon, delta * (1 - share))
    assert mp.nstr(1 - allowed(lower, epsilon, delta * (1 - share)) / lower / limit, 2) == "0.00089"
    orders = [1 + mp.exp(mpf(x) / 50) for x in range(50, 400)]

    def admits(order, spent, part=1):
        return (allowed(order, epsilon, delta * part) - order * spent * limit) / continuous_laplace(order, each)

    found = [(mp.nstr(admits(first, spent), 3), mp.nstr(max(admits(o, spent, share) for o in orders), 3),
              mp.nstr(max(admits(o, spent) for o in orders), 3)) for spent in (mpf("0.1"), mpf("0.3"))]
    assert found == [("3.58", "4.07", "4.56"), ("2.78", "2.4", "3.21")]


def test_pure_budgets_of_two_periods_are_two_epsilons():
    """Why a tier with a period keeps one order: at the filter order, a budget of pure epsilons is nearly twice its limit."""
    order = best_order(1, mpf("1e-6"))
    assert response_curve(order, 1) > mpf("1.8") * allowed(order, 1, mpf("1e-6"))
