"""Reference values for mechanisms that are not Gaussian: distributions and divergences by definition, in high precision (mpmath)
or exactly. Nothing here calls the code under test. If a formula loses digits by cancellation, the code uses more digits."""

import struct

import mpmath as mp

ORDERS = [1 + 2.0 ** (k / 4) for k in range(-32, 81)] + [float("inf")]
MARGIN = 2.0**-41  # PUBLISHED_MARGIN of math/math.h


def curve_of(blob):
    """Returns the values of a curve at the stored orders, and the value at the filter order."""
    values = struct.unpack("<115d", blob)
    return values[:114], values[114]


def divergence(p, q, alpha):
    """Returns the Renyi divergence of order alpha of two lists of probabilities. alpha may be 1 (Kullback and Leibler)
    or infinity."""
    pairs = [(a, b) for a, b in zip(p, q) if a > 0]
    if any(b == 0 for _, b in pairs):
        return mp.inf
    if alpha == float("inf"):
        return max(mp.log(a / b) for a, b in pairs)
    if alpha == 1:
        return mp.fsum(a * mp.log(a / b) for a, b in pairs)
    return mp.log(mp.fsum(a ** mp.mpf(alpha) * b ** (1 - mp.mpf(alpha)) for a, b in pairs)) / (mp.mpf(alpha) - 1)


def laplace_sum(alpha, sensitivity, scale):
    """Returns the divergence between the discrete Laplace distribution and its shift by an integer, as a sum over all outcomes.
    The tails are in closed form."""
    a, s, h = mp.mpf(alpha), int(sensitivity), 1 / mp.mpf(scale)
    if alpha == float("inf"):
        return s * h
    p = mp.exp(-h)
    inside = mp.fsum(mp.exp(-h * (a * y + (1 - a) * (s - y))) for y in range(1, s))
    outside = (mp.exp((a - 1) * s * h) + mp.exp(-a * s * h)) / (1 - p)  # y <= 0 and y >= s
    return mp.log((1 - p) / (1 + p) * (inside + outside)) / (a - 1)


def laplace_curve(alpha, sensitivity, scale):
    """Returns laplace_sum() with its inner geometric sum in closed form."""
    a, s, h = mp.mpf(alpha), int(sensitivity), 1 / mp.mpf(scale)
    if alpha == float("inf"):
        return s * h
    p, x = mp.exp(-h), mp.exp((2 * a - 1) * h)
    inside = mp.exp(-a * s * h) * (x - x**s) / (1 - x)
    outside = (mp.exp((a - 1) * s * h) + mp.exp(-a * s * h)) / (1 - p)
    return mp.log((1 - p) / (1 + p) * (inside + outside)) / (a - 1)


def continuous_laplace(alpha, z):
    a, z = mp.mpf(alpha), mp.mpf(z)
    if alpha == float("inf"):
        return z
    if alpha == 1:
        return z + mp.exp(-z) - 1
    return mp.log(a / (2 * a - 1) * mp.exp(z * (a - 1)) + (a - 1) / (2 * a - 1) * mp.exp(-z * a)) / (a - 1)


def response_curve(alpha, epsilon):
    """Returns the divergence of (e^epsilon, 1)/(1 + e^epsilon) from (1, e^epsilon)/(1 + e^epsilon). These are the two output
    distributions of binary randomized response."""
    e = mp.exp(mp.mpf(epsilon))
    return divergence([e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)], alpha)


def mixed_pair(epsilon, first, second):
    """Takes the worst epsilon-DP pair of distributions on two states, and returns their distributions after a kernel with these
    two rows."""
    e = mp.exp(mp.mpf(epsilon))
    return ([(e * a + b) / (1 + e) for a, b in zip(first, second)], [(a + e * b) / (1 + e) for a, b in zip(first, second)])


def kernel_curve(alpha, epsilon, rows):
    """Returns the largest divergence over all pairs of states after a kernel. The sum of a row may differ slightly from
    1."""
    rows = [[mp.mpf(x) / mp.fsum(row) for x in row] for row in rows]
    return max([divergence(*mixed_pair(epsilon, a, b), alpha) for a in rows for b in rows if a is not b] or [mp.mpf(0)])
