"""The theorem behind releases that stop when they are accurate enough (ext/release/noise_path.c), by exact enumeration of small walks: whatever
decides whether the next step is made, the mean of ratio^alpha exp(-alpha (alpha - 1) paid) over all outcomes is at most 1, where `paid` is
the price of one release at the stop. The walks here have small variances, so the sums of the discrete Gaussians are computed to the end."""

import itertools
import math

import pytest

pytestmark = [pytest.mark.alarm(0), pytest.mark.plain, pytest.mark.own]

REACH = 30


def gaussian(centre, variance):
    """The discrete Gaussian around a real number, as a dictionary."""
    weights = {k: math.exp(-(k - centre) ** 2 / (2 * variance)) for k in range(math.floor(centre) - REACH, math.floor(centre) + REACH)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items() if weight > 0}


def step(x, point, outer, inner):
    """The next point inward, given the exact total x and the last point: ext/release/noise_path.c."""
    share = (outer - inner) / outer
    return gaussian(share * x + (1 - share) * point, inner * (outer - inner) / outer)


def walks(x, variances, goes_on):
    """Gives (points, probability) for all walks of the exact total x, but for those of less than 1e-12."""
    def from_here(points, probability, j):
        if j == len(variances) or (points and not goes_on(points)):
            yield points, probability
            return
        law = step(x, points[-1], variances[j - 1], variances[j]) if points else gaussian(x, variances[0])
        for point, weight in law.items():
            if probability * weight > 1e-12:
                yield from from_here((*points, point), probability * weight, j + 1)

    yield from from_here((), 1.0, 0)


RULES = {"never": lambda points: False, "always": lambda points: True, "worst": lambda points: points[-1] <= 1,
         "parity": lambda points: points[-1] % 2 == 0, "path": lambda points: sum(points) * len(points) < 3}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("variances", [(12.0, 6.0), (20.0, 9.0, 5.0)])
@pytest.mark.parametrize("alpha", [1.5, 4.0])
def test_a_stopped_walk_costs_one_release_at_its_stop(rule, variances, alpha):
    s = 2
    one, other = (dict(walks(x, variances, RULES[rule])) for x in (0, s))
    mean = 0.0
    for points, probability in other.items():
        if points in one:
            paid = s * s / (2 * variances[len(points) - 1])
            mean += probability * (one[points] / probability) ** alpha * math.exp(-alpha * (alpha - 1) * paid)
    assert mean <= 1 + 1e-9, mean
    assert mean > 1 - 5e-3  # the price is exact, up to the walks that were left out
    cheaper = sum(probability * (one[points] / probability) ** alpha * math.exp(-alpha * (alpha - 1) * 0.9 * s * s
                  / (2 * variances[len(points) - 1])) for points, probability in other.items() if points in one)
    assert cheaper > 1.001


@pytest.mark.parametrize("variances", [(12.0, 6.0), (20.0, 9.0, 5.0)])
def test_a_walk_has_the_law_of_a_path_drawn_outward(variances):
    """The points of a walk inward have the joint law of noise that is added outward, up to exp(-2 pi^2 v) with v above 2."""
    inward = dict(walks(0, variances, RULES["always"]))
    for points, probability in itertools.islice(sorted(inward.items(), key=lambda item: -item[1]), 2000):
        outward = gaussian(0, variances[-1])[points[-1]]
        for inner, outer, a, b in zip(points[:0:-1], points[-2::-1], variances[:0:-1], variances[-2::-1]):
            outward *= gaussian(inner, b - a)[outer]
        assert math.isclose(probability, outward, rel_tol=1e-9)
