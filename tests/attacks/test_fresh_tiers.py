"""Attack: tiers with fresh noise instead of diffused noise. An attacker who sees two tiers of such a system averages
them and learns more than the inner tier alone shows, although only the inner tier was paid for.

In diffuse every value that a coalition sees is made from the innermost value. With S the sample covariance of the
noise at p tiers in n coordinates, the variance of the best linear combination is 1/(1' S^-1 1), and n times that over
the true one is chi-squared with n - p + 1 degrees of freedom, exactly. It must be the variance of the innermost tier.
"""

import numpy
import pytest
from scipy import stats

from attack import EACH_CALL, alarm, lattice, one, path_for, system

TIERS = {"inner": 1.0, "middle": 0.9, "outer": 0.81}
COORDINATES = 600
LEVEL = 1e-9  # on each side


def best_variance(noise):
    """Of the unbiased combination of the rows of `noise` that is best for the sample, times n over n - p + 1."""
    n, p = noise.shape[1], noise.shape[0]
    ones = numpy.ones(p)
    return 1 / (ones @ numpy.linalg.solve(noise @ noise.T / n, ones)) * n / (n - p + 1)


def significance(noise, variance):
    """Two-sided p-value of the hypothesis that no combination is better than this."""
    degrees = noise.shape[1] - noise.shape[0] + 1
    law = stats.chi2(degrees)
    x = best_variance(noise) / variance * degrees
    return min(law.cdf(x), law.sf(x))


@alarm(1e-13)
def test_a_coalition_averages_naive_tiers():
    """Fresh noise at three tiers of almost the same rate gives 0.37 of the inner variance, and more than 0.55 with
    probability 6e-14."""
    rng = numpy.random.default_rng()
    noise = numpy.stack([rng.normal(0, 1 / numpy.sqrt(2 * rate), COORDINATES) for rate in TIERS.values()])
    assert best_variance(noise) < 0.55 * 0.5
    assert significance(noise, 0.5) < LEVEL


def noise_of(call, tmp_path, order):
    """The integers of releases without rows, which are pure noise, as one row for each tier; and the innermost
    variance."""
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
def test_a_coalition_knows_what_its_innermost_tier_knows(call, order, tmp_path):
    """In two orders of asking: diffused outward; refined inward, then diffused. An alarm is a variance below 0.65 of the
    innermost (or above 1.4): fresh noise at all tiers, 0.37, is 11 standard errors below that, at any two, 0.53, four."""
    noise, variance = noise_of(call, tmp_path, order)
    assert significance(noise, variance) > LEVEL
