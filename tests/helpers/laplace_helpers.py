"""Helpers of the tests of Laplace noise: the scale that belongs to a clock, and a comparison of a
stored curve with the true divergence."""

import math

import mpmath as mp

from mechanism_truth import ORDERS, laplace_curve


def scale_of(clock):
    scale = math.isqrt(clock // 2)
    assert 2 * scale * scale == clock
    return scale


def check_curve(curve, sensitivity, scale, each=1):
    """Checks that the curve is never below the true divergence, and above it by a relative
    difference of at most 1e-12. With `each` > 1, checks only one of `each` orders."""
    for alpha, value in zip(ORDERS[::-each], curve[::-each]):
        truth = laplace_curve(alpha, sensitivity, scale)
        assert truth <= value <= truth * (1 + mp.mpf("1e-12")), (alpha, value, mp.nstr(truth, 20))
