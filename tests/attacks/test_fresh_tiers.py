"""Attack: tiers with fresh noise instead of diffused noise. An attacker who sees two tiers of such a system averages their values
and learns more than the inner tier alone shows, although only the inner tier was charged.

In diffuse all values that a coalition sees are made from the innermost of these values. Let S be the sample covariance of the
noise at p tiers in n coordinates. The variance of the best linear combination is estimated by 1/(1' S^-1 1). The ratio n
(estimate)/(true variance) has exactly the chi-squared distribution with n - p + 1 degrees of freedom. The tests check that the
true variance is that of the innermost tier.
"""

import numpy
import pytest
from scipy import stats

from attack import EACH_CALL, alarm, lattice, one, path_for, system

TIERS = {"inner": 1.0, "middle": 0.9, "outer": 0.81}
COORDINATES = 600
LEVEL = 1e-9  # probability of a false alarm on each side


def best_variance(noise):
    """Returns an estimate of the least variance that an unbiased combination of the rows of `noise` can have."""
    n, p = noise.shape[1], noise.shape[0]
    ones = numpy.ones(p)
    return 1 / (ones @ numpy.linalg.solve(noise @ noise.T / n, ones)) * n / (n - p + 1)


def significance(noise, variance):
    """Returns the two-sided p-value of the hypothesis that the best combination has this variance."""
    degrees = noise.shape[1] - noise.shape[0] + 1
    law = stats.chi2(degrees)
    x = best_variance(noise) / variance * degrees
    return min(law.cdf(x), law.sf(x))


@alarm(1e-13)
def test_a_coalition_averages_naive_tiers():
    """The mean of three tiers with fresh noise and almost the same rate has 0.37 of the inner variance. The estimate exceeds 0.55
    times the inner variance with probability 6e-14."""
    rng = numpy.random.default_rng()
    noise = numpy.stack([rng.normal(0, 1 / numpy.sqrt(2 * rate), COORDINATES) for rate in TIERS.values()])
    assert best_variance(noise) < 0.55 * 0.5
    assert significance(noise, 0.5) < LEVEL


def noise_of(call, tmp_path, order):
    """Returns the integers of releases without rows, which are pure noise, with one row for each tier. Also returns the variance
    of the innermost tier."""
    path = path_for(call, tmp_path)
    db = system(path, TIERS)
    dimension = None
    releases = 1
    while dimension is None or releases * dimension < COORDINATES:
        for tier in order:
            one(db, call.release(tier, f"r{releases:04}", "people WHERE 0", refine="true"))
        if dimension is None:
            dimension = lattice(db, path, "inner").integers.shape[1]
        releases += 1
    found = [lattice(db, path, tier) for tier in TIERS]
    return numpy.stack([tier.integers.ravel() for tier in found]), found[0].stddev ** 2


@EACH_CALL
@pytest.mark.parametrize("order", [("inner", "outer", "middle"), ("middle", "inner", "outer")], ids=" ".join)
@alarm(2 * 20 * 2 * 1e-9)
@pytest.mark.sample(2)
def test_a_coalition_knows_what_its_innermost_tier_knows(call, order, tmp_path):
    """The test publishes at the tiers in two orders: diffused outward, or refined inward and then diffused. It fails if the
    variance is below 0.65 or above 1.4 times the innermost variance. Fresh noise at all tiers would give 0.37, which is 11
    standard errors below 0.65. Fresh noise at two tiers would give 0.53, which is four standard errors below."""
    noise, variance = noise_of(call, tmp_path, order)
    assert significance(noise, variance) > LEVEL
