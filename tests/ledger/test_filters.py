"""Tests the filters, which enforce the budgets, against adaptive adversaries. The adversaries choose their next request
from the values that they have seen. The true guarantee of a tier must stay within its budget, and no release that fits
the budget may be refused.

The true guarantee is computed from the clocks in the ledger alone: from the draws of each release, their variances, and the
conversions of truth.py. The rates and limits in the ledger are not used.
"""

import datetime
import json
import random

import pytest
from mpmath import mp, mpf

from conftest import connect, ledger_of, one, one_row, refused
from periods_truth import bounds, DAY, period_of
from truth import true_delta, true_gaussian_epsilon, true_zcdp_epsilon

NAMES = ["in", "mid", "out"]
BUDGETS = [  # epsilon, delta, accountant of the three tiers
    [(3.0, 1e-6, "rdp"), (2.0, 1e-6, "rdp"), (1.0, 1e-6, "rdp")],
    [(3.0, 1e-6, "gdp"), (2.0, 1e-6, "gdp"), (1.0, 1e-6, "gdp")],
    [(1.5, 1e-9, "rdp"), (2.5, 1e-5, "gdp"), (0.4, 1e-3, "rdp")],
    [(0.9, 0.01, "gdp"), (1.2, 1e-4, "rdp"), (8.0, 1e-8, "gdp")],
    [(6.0, 1e-7, "gdp"), (0.05, 0.1, "rdp"), (0.3, 0.2, "gdp")],
]


pytestmark = pytest.mark.usefixtures("forty_digits")

def lattice_slack(variance):
    """Returns the charged bound on the total variation distance between a discrete Gaussian and a rounded continuous
    Gaussian."""
    s = mp.sqrt(mpf(variance) - mpf(1) / 12)
    return mpf("0.0035") * (1 + mpf("1.12") / s) / s**4 + mpf("1.1") * mp.exp(-2 * mp.pi**2 * mpf(variance))


class Truth:
    """The real draws and publications, read from the points of the paths."""

    def __init__(self, path, db):
        self.ledger, self.rates = ledger_of(path), dict(db.execute("SELECT name, rate FROM dp_tier").fetchall())
        self.published = {}  # release: tiers
        self.order = {}      # release: tiers in the order in which points were drawn

    def note(self, name, tier):
        """Records every point of a path in the order of the draws."""
        self.published.setdefault(name, set()).add(tier)
        points = self.order.setdefault(name, [])
        for (point,) in self.ledger.execute("SELECT tier FROM dp_point WHERE release = ? ORDER BY id", (name,)):
            if point not in points:
                points.append(point)

    def draws(self, name, tier):
        """Returns (sensitivity, variances, outward steps). The variances are those of the draws that read the data and on which
        the tier's publications depend."""
        seen = [t for t in self.published[name] if self.rates[t] <= self.rates[tier]]
        if not seen:
            return 0, [], []
        innermost = max(seen, key=self.rates.get)
        (sensitivity,) = self.ledger.execute("SELECT sensitivity FROM dp_release WHERE name = ?", (name,)).fetchone()
        clocks = dict(self.ledger.execute("SELECT tier, clock FROM dp_path WHERE release = ?", (name,)))
        first = self.order[name][0]
        if self.rates[innermost] <= self.rates[first]:  # diffused: the tier sees the innermost point and noise on top
            inner = [clocks[t] for t in clocks if self.rates[innermost] <= self.rates[t] <= self.rates[first]]
            inner.sort()
            return sensitivity, [clocks[innermost]], list(zip(inner, inner[1:]))
        # refined: the first draw, and one fresh draw for every step inward
        inner = sorted(clocks[t] for t in clocks if self.rates[first] <= self.rates[t] <= self.rates[innermost])
        fresh = [mp.ceil(mpf(a) * b / (b - a)) for a, b in zip(inner, inner[1:])]
        return sensitivity, [inner[-1], *fresh], []

    def epsilon(self, tier, delta, accountant):
        """Returns the least epsilon that the theorems give at this delta."""
        rate, gaussian, tau = mpf(0), mpf(0), mpf(0)
        for name in self.published:
            s, variances, steps = self.draws(name, tier)
            rate += mp.fsum(mpf(s) ** 2 / (2 * mpf(v)) for v in variances)
            gaussian += mp.fsum(mpf(s) ** 2 / (2 * (mpf(v) - mpf(1) / 12)) for v in variances)
            tau += mp.fsum(lattice_slack(v) for v in variances)
            tau += mp.fsum(mpf("2.1") * mp.exp(-2 * mp.pi**2 * a * (mpf(b) - a) / b) for a, b in steps)
        if rate == 0:
            return mpf(0)
        if accountant == "rdp":
            return true_zcdp_epsilon(rate, delta)
        epsilon = true_gaussian_epsilon(gaussian, delta, true_zcdp_epsilon(gaussian, delta) * mpf("0.9"))
        for _ in range(4):  # delta_G(epsilon) + (1 + e^epsilon) tau = delta
            epsilon = true_gaussian_epsilon(gaussian, delta - (1 + mp.exp(epsilon)) * tau, epsilon or 1)
        return epsilon


def true_limit(epsilon, delta, accountant):
    """Returns the total rate that the theorem admits: at the best fixed order for 'rdp', and by the exact profile for 'gdp'."""
    low, high = mpf(0), mpf(epsilon) + 1
    for _ in range(90):
        middle = (low + high) / 2
        within = (true_zcdp_epsilon(middle, delta) <= epsilon if accountant == "rdp"
                  else true_delta(middle, mpf(epsilon)) <= delta)
        low, high = (middle, high) if within else (low, middle)
    return low


LIMITS = {}


def limit_of(budget):
    if budget not in LIMITS:
        LIMITS[budget] = true_limit(*budget)
    return LIMITS[budget]


class Adversary:
    """Chooses its next request from the last digits of the values that it saw."""

    def __init__(self, path, seed):
        self.random = random.Random(seed)
        self.budgets = BUDGETS[seed % len(BUDGETS)]
        self.db = connect(path)
        one_row(self.db, json.dumps({"adjacency": self.random.choice(["add-remove", "replace"])}))
        rate = float("inf")
        for name, budget in zip(NAMES, self.budgets):
            rate = min(0.23 * float(limit_of(budget)), 0.3 * rate)
            self.db.execute("SELECT dp_tier(?, ?, ?, ?, ?)", (name, rate, *budget)).fetchall()
        self.truth, self.kinds, self.refused = Truth(path, self.db), {}, 0

    def dice(self):
        """Returns a random number generator whose seed depends on all published values, so that the requests are adaptive."""
        shown = self.db.execute("SELECT value FROM dp_value ORDER BY release_id, tier").fetchall()
        return random.Random(repr((shown, self.random.random())))

    def ask(self, sql, parameters, name, tier, weight):
        """Makes a request. If the request is refused, checks that the budget is the reason, and that the refusal is correct."""
        before = one(self.db, "SELECT count(*) FROM dp_charge")
        try:
            one(self.db, sql, *parameters)
        except Exception as error:
            assert "would exceed its budget" in str(error), error
            self.refused += 1
            assert one(self.db, "SELECT count(*) FROM dp_charge") == before
            self.check_refusal(str(error), name, tier, weight)
            return False
        self.truth.note(name, tier)
        return True

    def check_refusal(self, message, name, tier, weight):
        """Checks that the request would really have exceeded the limit of some tier at or inside this tier."""
        rate, over = mpf(weight) * self.truth.rates[tier], []
        for inside, budget in zip(NAMES, self.budgets):
            if self.truth.rates[inside] < self.truth.rates[tier]:
                continue
            total = mpf(0)
            for release in set(self.truth.published) | {name}:
                has = mpf(0)
                if release in self.truth.published:
                    s, variances, _ = self.truth.draws(release, inside)
                    has = mp.fsum(mpf(s) ** 2 / (2 * mpf(v)) for v in variances)
                total += max(has, rate) if release == name else has
            over.append((total > limit_of(budget) * (1 - mpf("1e-10")), inside))
        assert any(o for o, _ in over), message
        assert any(o and f"tier '{t}'" in message for o, t in over), message

    def step(self, number):
        dice = self.dice()
        tier = dice.choice(NAMES)
        if not self.kinds or dice.random() < 0.4:
            name, kind = f"r{number}", dice.choice(["sum", "count", "ou_sum"])
            options = {"name": name, "weight": dice.choice([1, 1, 0.5, dice.uniform(0.01, 1)]), "clip": 2}
            self.kinds[name] = (kind, {**options, **({"radius": 10} if kind == "ou_sum" else {})})
            refine = False
        else:
            name, refine = dice.choice(list(self.kinds)), True
        kind, options = self.kinds[name]
        sql, parameters = "SELECT dp_release(?, ?, 'SELECT 1 FROM t', ?)", (
            tier, kind, json.dumps({**options, "refine": True} if refine else options))
        if not self.ask(sql, parameters, name, tier, options["weight"]) and name not in self.truth.published:
            del self.kinds[name]

    def check(self):
        for name, (epsilon, delta, accountant) in zip(NAMES, self.budgets):
            truth = self.truth.epsilon(name, mpf(delta), accountant)
            spent = one(self.db, "SELECT spent_epsilon FROM dp_budget WHERE tier = ?", name)
            assert truth <= mpf(epsilon) * (1 + mpf("1e-12")), (name, truth)
            assert truth <= mpf(spent) * (1 + mpf("1e-12")), (name, truth, spent)
            assert mpf(spent) <= min(mpf(epsilon), truth * (1 + mpf("1e-8")) + mpf("1e-12")), (name, truth, spent)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.sample(2)
def test_no_adversary_gets_more_than_the_budget(path, seed):
    adversary = Adversary(path, seed)
    number = 0
    while number < 45 or not adversary.refused:  # the noise decides the requests, and one of them is refused sooner or later
        adversary.step(number)
        if number % 15 == 14:
            adversary.check()  # fails if more than the budget was spent or if the ledger shows another amount
        number += 1
    assert adversary.truth.published
    assert one(adversary.db, "SELECT dp_verify()") == "ok"


class TruthByPeriod(Truth):
    def rate(self, tier):
        """Returns the total rate of the draws that a tier sees."""
        return mp.fsum(mpf(s) ** 2 / (2 * mpf(v)) for s, variances, _ in (self.draws(name, tier) for name in self.published)
                       for v in variances)


class AdversaryOfPeriods(Adversary):
    """An adversary that also sets the clock, forward and back. A tier is in the latest period in which it was charged,
    or in the period of the clock if that period is later."""

    def __init__(self, path, seed, clock):
        self.random, self.clock = random.Random(seed), clock
        self.budgets, self.period = BUDGETS[seed % len(BUDGETS)], ["month", "week", "day"][seed % 3]
        self.born = self.now = self.latest = datetime.date(2026, 1, 1) + DAY * self.random.randrange(400)
        clock.set(f"{self.born} 12:00:00")
        self.db = connect(path)
        one_row(self.db)
        rate = float("inf")
        for name, (epsilon, delta, accountant) in zip(NAMES, self.budgets):
            rate = min(0.23 * float(limit_of((epsilon, delta, accountant))), 0.3 * rate)
            one(self.db, "SELECT dp_tier(?, ?, ?, ?, ?)", name, rate, epsilon, delta,
                json.dumps({"period": self.period, "accountant": accountant}))
        self.truth, self.kinds, self.refused = TruthByPeriod(path, self.db), {}, 0
        self.reached = dict.fromkeys(NAMES, self.start(self.born))  # the first day of the period in which each tier is
        self.before = dict.fromkeys(NAMES, mpf(0))  # the rate that each tier saw in earlier periods

    def start(self, day):
        return bounds(self.period, day)[0]

    def look_at_the_clock(self):
        """Sets the clock: often back by some days, sometimes forward to the next period."""
        dice = self.dice()
        if dice.random() < 0.3:
            self.now = self.latest - DAY * dice.randrange(1, 90)
        elif dice.random() < 0.15:
            self.check()
            self.now = self.latest = datetime.date.fromisoformat(bounds(self.period, self.latest)[1])
        else:
            self.now = self.latest
        self.clock.set(f"{self.now} {dice.choice(['00:00:00', '23:59:59'])}")

    def step(self, number):
        rates = {name: self.truth.rate(name) for name in NAMES}
        super().step(number)
        for name, start in self.truth.ledger.execute("SELECT tier, period_start FROM dp_budget").fetchall():
            assert start in (self.reached[name], self.start(self.now)) and start >= self.reached[name]
            if start != self.reached[name]:
                self.reached[name], self.before[name] = start, rates[name]

    def added(self, name):
        """Returns the rate that a tier has seen in the current period."""
        return self.truth.rate(name) - self.before[name] if self.start(self.now) <= self.reached[name] else mpf(0)

    def check_refusal(self, message, name, tier, weight):
        """Checks that the request would have exceeded the limit of some tier at or inside this tier in the current period."""
        rate, over = mpf(weight) * self.truth.rates[tier], []
        for inside, budget in zip(NAMES, self.budgets):
            if self.truth.rates[inside] < self.truth.rates[tier]:
                continue
            has = mpf(0)
            if name in self.truth.published:
                s, variances, _ = self.truth.draws(name, inside)
                has = mp.fsum(mpf(s) ** 2 / (2 * mpf(v)) for v in variances)
            over.append((self.added(inside) + max(mpf(0), rate - has) > limit_of(budget) * (1 - mpf("1e-10")), inside))
        assert any(o and f"tier '{t}'" in message for o, t in over), message

    def check(self):
        exposed = {t["tier"]: t for t in json.loads(one(self.db, "SELECT dp_exposure('in,mid,out')"))["tiers"]}
        for name, budget in zip(NAMES, self.budgets):
            epsilon, delta, accountant = budget
            start, spent = self.db.execute("SELECT period_start, spent_rate FROM dp_budget WHERE tier = ?", (name,)).fetchone()
            assert start == max(self.reached[name], self.start(self.now))
            assert self.added(name) <= limit_of(budget) * (1 + mpf("1e-12"))
            assert abs(spent - self.added(name)) <= mpf("1e-6") * limit_of(budget)
            first, last = map(datetime.date.fromisoformat, (self.start(self.born), start))
            days = {period_of(self.period, first + DAY * i) for i in range((last - first).days + 1)}
            all_periods = exposed[name]["all_periods"]
            assert all_periods["periods"] == len(days) and exposed[name]["per_period"] == {"epsilon": epsilon, "delta": delta}
            assert all_periods["delta"] == pytest.approx(min(1, len(days) * delta), rel=1e-12)
            if len(days) * delta < 1:
                truth = self.truth.epsilon(name, len(days) * mpf(delta), accountant)
                assert truth <= mpf(all_periods["epsilon"]) * (1 + mpf("1e-12")), (name, truth)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sample(1)
def test_no_adversary_gets_more_than_the_budget_of_each_period(path, clock, seed):
    adversary = AdversaryOfPeriods(path, seed, clock)
    number = 0
    while number < 45 or not adversary.refused or adversary.latest < adversary.born + DAY * 3:
        adversary.look_at_the_clock()
        adversary.step(number)
        number += 1
    adversary.check()
    assert one(adversary.db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("budget", sorted({b for budgets in BUDGETS for b in budgets}))
@pytest.mark.sample(6)
def test_the_budget_is_used_up_to_the_last_drop(path, budget):
    """Releases of decreasing weight fill a tier until 1e-10 of the limit is left. The true guarantee is within the budget."""
    db = connect(path)
    one_row(db)
    limit = limit_of(budget)
    db.execute("SELECT dp_tier('in', ?, ?, ?, ?)", (float(limit) * 0.6, *budget)).fetchall()
    truth, weight = Truth(path, db), 1.0
    for number in range(36):
        options = json.dumps({"name": f"r{number}", "clip": 1, "weight": weight})
        before = mp.fsum(mpf(s) ** 2 / (2 * mpf(v[0])) for s, v, _ in (truth.draws(n, "in") for n in truth.published))
        fits = before + mpf(weight) * truth.rates["in"]
        if fits <= limit * (1 - mpf("1e-10")):
            one(db, "SELECT dp_release('in', 'count', 'SELECT 1 FROM t', ?)", options)
            truth.note(f"r{number}", "in")
        elif fits > limit * (1 + mpf("1e-10")):
            assert "would exceed its budget" in refused(
                db, "SELECT dp_release('in', 'count', 'SELECT 1 FROM t', ?)", options)
        if weight * truth.rates["in"] > 2.1e-12:
            weight /= 2
    epsilon, delta, accountant = budget
    true = truth.epsilon("in", mpf(delta), accountant)
    assert epsilon * (1 - mpf("1e-6")) <= true <= epsilon * (1 + mpf("1e-12"))


@pytest.mark.parametrize("budget", sorted({b for budgets in BUDGETS for b in budgets}))
def test_the_last_release_may_take_all_that_is_left(path, budget):
    """If a tier is filled exactly to its stored limit, the true epsilon equals the epsilon of the budget to 1e-12 and never
    exceeds it."""
    epsilon, delta, accountant = budget
    db = connect(path)
    one_row(db)
    db.execute("SELECT dp_tier('in', ?, ?, ?, ?)", (float(limit_of(budget)) * 0.4, *budget)).fetchall()
    truth = Truth(path, db)
    rate, limit = db.execute("SELECT rate, rate_limit FROM dp_tier").fetchone()
    ask = "SELECT dp_release('in', 'count', 'SELECT 1 FROM t', ?)"
    for name in ("a", "b"):
        one(db, ask, json.dumps({"name": name, "clip": 1}))
        truth.note(name, "in")
    weight = (limit - one(db, "SELECT spent_rate FROM dp_budget")) / rate
    assert "would exceed its budget" in refused(db, ask, json.dumps({"name": "c", "clip": 1, "weight": weight * (1 + 1e-9)}))
    one(db, ask, json.dumps({"name": "c", "clip": 1, "weight": weight * (1 - 1e-12)}))
    truth.note("c", "in")
    true = truth.epsilon("in", mpf(delta), accountant)
    assert epsilon * (1 - mpf("1e-8")) <= true <= epsilon * (1 + mpf("1e-12"))
    assert one(db, "SELECT spent_epsilon FROM dp_budget") == pytest.approx(epsilon, rel=1e-8)


def test_an_exact_gaussian_budget_refuses_a_refinement_for_which_the_lattice_is_too_coarse(path):
    """If the outer rate is 500 times smaller, the inner variance in lattice steps is small, and its slack exceeds the part of
    delta that is set aside (2^-40). The refinement is refused with a clear error, and nothing is charged."""
    db = connect(path)
    one_row(db)
    for tier in (("in", 0.05, 6.0, 1e-9, "gdp"), ("out", 0.0001, 6.0, 1e-9, "gdp")):
        db.execute("SELECT dp_tier(?, ?, ?, ?, ?)", tier).fetchall()
    ask = "SELECT dp_release(?, 'count', 'SELECT 1 FROM t', '{\"name\":\"r\",\"refine\":true,\"clip\":1}')"
    one(db, ask, "out")
    before = one(db, "SELECT count(*) FROM dp_charge")
    assert "would exceed the lattice slack of its exact-Gaussian budget" in refused(db, ask, "in")
    assert one(db, "SELECT count(*) FROM dp_charge") == before
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("place,bad", [(p, b) for p in (1, 2, 3) for b in (float("nan"), float("inf"), -float("inf"))])
@pytest.mark.parametrize("accountant", ["rdp", "gdp"])
def test_a_tier_that_is_no_number_is_refused(db, place, bad, accountant):
    arguments = ["new", 0.5, 4.0, 1e-6, accountant]
    arguments[place] = bad  # SQLite binds NaN as NULL
    assert "must be a" in refused(db, "SELECT dp_tier(?, ?, ?, ?, ?)", *arguments)
    assert one(db, "SELECT count(*) FROM dp_tier") == 3


@pytest.mark.parametrize("option", ["weight", "clip", "radius", "centre", "theta", "rho"])
@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "null", '"nan"', '"1"'])
@pytest.mark.parametrize("function", ["dp_release", "dp_plan"])
def test_a_parameter_that_is_no_number_is_refused(db, option, bad, function):
    good = {"clip": "1", "radius": "10", "theta": "1", "rho": "1"}
    options = "{" + ",".join(f'"{k}":{v}' for k, v in {**good, option: bad}.items()) + "}"
    middle = "'SELECT 1 FROM t'" if function == "dp_release" else "NULL"
    message = refused(db, f"SELECT {function}('clinic', 'ou_sum', {middle}, ?)", options)
    assert message.startswith(f"{function}: ")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0 == one(db, "SELECT count(*) FROM dp_release")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_bound_that_is_no_number_is_refused(db, bad):
    for sql in ("SELECT dp_sum('clinic', minutes, ?) FROM visits",
                "SELECT dp_count('clinic', minutes, ?) FROM visits",
                "SELECT dp_ou_sum('clinic', minutes, 10, ?, '{\"theta\":1}') FROM visits",
                "SELECT dp_plan('clinic', 'sum', ?)"):
        refused(db, sql, bad)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
