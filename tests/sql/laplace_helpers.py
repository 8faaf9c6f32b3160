"""Helpers of the tests of Laplace noise: the scale of a clock, and a stored curve against the truth."""

import math

import mpmath as mp

from mechanism_truth import ORDERS, laplace_curve


def scale_of(clock):
    scale = math.isqrt(clock // 2)
    assert 2 * scale * scale == clock
    return scale


def check_curve(curve, sensitivity, scale, each=1):
    """Never below the truth, and at most 1e-12 above, at every order, or at some."""
    for alpha, value in zip(ORDERS[::-each], curve[::-each]):
        truth = laplace_curve(alpha, sensitivity, scale)
        assert truth <= value <= truth * (1 + mp.mpf("1e-12")), (alpha, value, mp.nstr(truth, 20))
