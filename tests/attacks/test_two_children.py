"""Attack: two noisier versions of one private value, each made independently from that value. An attacker who sees both versions
averages them, or sees that they agree, and learns more than was charged.

In diffuse each step outward begins at the last point or symbol of its path. All values at outer tiers can therefore be computed
from a tier's own value and fresh randomness. At most one further symbol is ever drawn from a symbol.
"""

import json
import math

import numpy
from scipy import stats

from attack import alarm, charges, fill, one, person, system, verified
from conftest import refused

TIERS = {"inner": 1.0, "middle": 0.5, "outer": 0.25, "last": 0.1}
FLIP = 0.2  # the flip probability of the outer tiers' kernel, which by itself is ln(4)-DP
KERNEL = json.dumps([[x, y, 1 - FLIP if x == y else FLIP] for x in ("no", "yes") for y in ("no", "yes")])
CLAIM = math.log((1 - FLIP) / FLIP)
LEVEL = 1e-9


def significance(seen, other, epsilon):
    """Returns the p-value of the hypothesis that an event is at most e^epsilon times as likely in the world where it was seen as
    in the other world."""
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    return stats.binom.sf(seen - 1, seen + other, share)


# ---- symbols -------------------------------------------------------------------------------------------------------


def naive_children(rng, symbol, count, independent):
    """Draws inner symbols, which are nearly always the true symbol, and returns two outer symbols for each. Both are drawn from
    the inner symbol (`independent`), or the second is drawn from the first."""
    inner = numpy.full(count, symbol) ^ (rng.random(count) < 0.001)
    first = inner ^ (rng.random(count) < FLIP)
    return first, (inner if independent else first) ^ (rng.random(count) < FLIP)


def both(rng, symbol, independent):
    first, second = naive_children(rng, symbol, 4000, independent)
    return int((first & second).sum())


@alarm(1e-15)
def test_two_naive_children_reveal_more_than_either():
    """If the truth is "yes", both outer symbols are "yes" 16 times as often as if the truth is "no". The charge covers
    only a factor of 4."""
    rng = numpy.random.default_rng()
    assert significance(both(rng, 1, True), both(rng, 0, True), CLAIM) < LEVEL


@alarm(1e-9)
def test_a_child_and_its_own_child_do_not():
    """If the second symbol is drawn from the first, the event that both are "yes" stays within the charged factor."""
    rng = numpy.random.default_rng()
    assert significance(both(rng, 1, False), both(rng, 0, False), CLAIM) > LEVEL


def symbols():
    db = system(tiers={name: (rate, 1e3, 1e-6) for name, rate in TIERS.items()}, rows=[person(i, 0, "yes") for i in range(9)])
    one(db, "SELECT dp_choice('inner', key, '[\"no\",\"yes\"]', 'r') FROM people")
    return db


def test_no_second_child_of_a_symbol():
    """diffuse refuses a second symbol at a tier inside the tier of the last symbol, at the same tier by another kernel,
    at a new tier in between, by other functions, and after the data has changed."""
    db = symbols()
    shown = one(db, "SELECT dp_mix('r', 'outer', ?)", KERNEL)
    one(db, "SELECT dp_tier('new', 0.3, 1e3, 1e-6)")
    before = charges(db)
    fill(db, [person(i, 0, "no") for i in range(9)])
    for tier in ("middle", "new"):
        assert "is not outside tier 'outer', where the last symbol of release 'r' is" in refused(
            db, "SELECT dp_mix('r', ?, ?)", tier, KERNEL)
        assert "dp_mix" in refused(db, "SELECT dp_diffuse('r', ?)", tier)
        refused(db, "SELECT dp_choice(?, key, '[\"no\",\"yes\"]', '{\"name\":\"r\",\"refine\":true}') FROM people", tier)
    assert "another kernel" in refused(db, "SELECT dp_mix('r', 'outer', ?)", KERNEL.replace("0.8", "0.9").replace("0.2", "0.1"))
    assert [one(db, "SELECT dp_mix('r', 'outer', ?)", KERNEL) for _ in range(20)] == [shown] * 20
    assert charges(db) == before and verified(db)


def test_the_next_symbol_is_a_child_of_the_last():
    """With deterministic kernels, the outer symbol follows from the middle symbol alone."""
    for _ in range(20):
        db = symbols()
        middle = one(db, "SELECT dp_mix('r', 'middle', ?)", KERNEL.replace("0.8", "0.5").replace("0.2", "0.5"))
        outer = one(db, "SELECT dp_mix('r', 'last', '[[\"no\",\"from no\",1],[\"yes\",\"from yes\",1]]')")
        assert outer == f"from {middle}"
        curve = json.loads(one(db, "SELECT dp_exposure('middle,last')"))
        assert curve["releases"][0]["tier"] == "middle"


# ---- Laplace -------------------------------------------------------------------------------------------------------

# The additional Laplace noise of a step is 0 with a large probability. If two steps from one point give the same result, both
# steps were therefore almost certainly 0, and the result is the inner point itself.


def naive_step(rng, values, inner, outer):
    """Adds the noise of a step in continuous form: the value stays with probability (inner/outer)^2."""
    stay = rng.random(len(values)) < (inner / outer) ** 2
    return numpy.where(stay, values, values + rng.laplace(0, outer, len(values)))


@alarm(1e-15)
def test_two_naive_steps_that_agree_are_the_inner_point():
    """If the outer values of scales 2 and 2.2 agree, their noise is that of the inner point, which has scale 1."""
    rng = numpy.random.default_rng()
    inner = rng.laplace(0, 1, 100000)
    first, second = naive_step(rng, inner, 1, 2), naive_step(rng, inner, 1, 2.2)
    agree = first == second
    assert agree.sum() > 1000
    assert abs(numpy.mean(abs(first[agree])) - 1) < 0.3  # instead of 2
    assert abs(numpy.mean(abs(first)) - 2) < 0.1


@alarm(3e-9)
def test_steps_that_agree_say_nothing():
    """The test makes 300 releases. Where the values at two outer tiers agree, the noise is that of the inner one of these two
    tiers, and not that of the secret point."""
    db = system(tiers={"secret": 2.0, "middle": 0.5, "outer": 0.4}, rows=[person(i, 1.0) for i in range(20)])
    for i in range(300):
        one(db, "SELECT dp_sum('secret', x, 1.5, ?) FROM people", json.dumps({"name": f"r{i}", "mechanism": "laplace"}))
        one(db, "SELECT dp_diffuse(?, 'outer')", f"r{i}")
        one(db, "SELECT dp_diffuse(?, 'middle')", f"r{i}")
    values = {tier: numpy.array([v for (v,) in db.execute("SELECT value FROM dp_value WHERE tier = ? ORDER BY release_id", (tier,))])
              for tier in ("secret", "middle", "outer")}
    scale = {tier: one(db, "SELECT DISTINCT stddev FROM dp_value WHERE tier = ?", tier) / math.sqrt(2) for tier in values}
    agree = values["middle"] == values["outer"]
    sizes = abs(values["middle"][agree] - 20) / scale["middle"]
    law = stats.gamma(len(sizes))  # the law of sum(sizes); with the noise of the secret point, the sum would be 0.4 times as large
    assert len(sizes) > 100
    assert min(law.cdf(sum(sizes)), law.sf(sum(sizes))) > LEVEL
    assert scale["secret"] < 0.45 * scale["middle"]
