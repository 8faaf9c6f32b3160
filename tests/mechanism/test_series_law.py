"""Compares the mathematics of series (ext/mechanism/series_matrix.c) with integers of any length and with dense linear algebra. The numbers
come from the unit test, which prints them."""

import hashlib
import math
import os
import pathlib
import subprocess
from fractions import Fraction

import mpmath
import numpy
import pytest

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()


def printed(*words):
    return subprocess.run([BUILD / "unit" / "series", *map(str, words)], capture_output=True, check=True, timeout=300).stdout


def multipliers(periods):
    """Returns the function m(t, s) of the contract, computed with Python's integers."""
    exact = [2**60]
    for k in range(1, periods):
        exact.append(exact[-1] * (2 * k - 1) // (2 * k))
    factors, scales, squares = [factor // 2**30 for factor in exact], [], 0
    for factor in factors:
        squares += factor**2
        scales.append(2**60 // (math.isqrt(squares) + 1))
    return lambda t, s: factors[t - s] * scales[periods - s - 1]


def matrix(periods):
    m, dense = multipliers(periods), numpy.zeros((periods, periods))
    for t in range(periods):
        dense[t, :t + 1] = [m(t, s) / 2**60 for s in range(t + 1)]
    return dense


def rows(periods, spans):
    """Returns the rows r with r C = indicator of each span (first, last)."""
    wanted = numpy.zeros((len(spans), periods))
    for row, (first, last) in zip(wanted, spans):
        row[first:last + 1] = 1
    return numpy.linalg.solve(matrix(periods).T, wanted.T).T


LENGTHS = [1, 2, 3, 12, 52, 365]


@pytest.mark.parametrize("periods", LENGTHS + [pytest.param(3650, marks=pytest.mark.slow), pytest.param(4096, marks=pytest.mark.slow)])
def test_multipliers_are_exact(periods):
    m, whole = multipliers(periods), hashlib.sha256()
    for t in range(periods):
        whole.update(numpy.array([m(t, s) for s in range(t + 1)], "<u8").tobytes())
    assert hashlib.sha256(printed("multipliers", periods)).hexdigest() == whole.hexdigest()


@pytest.mark.parametrize("periods", [12, 52, 365])
def test_multipliers_are_the_normalised_square_root(periods):
    """C_ts is binom(2k, k)/4^k / sqrt(sum of these squares), up to 2^-29."""
    f = [Fraction(math.comb(2 * k, k), 4**k) for k in range(periods)]
    m = multipliers(periods)
    with mpmath.workdps(40):
        for s in {0, 1, periods // 2, periods - 2, periods - 1}:
            gamma = sum(x * x for x in f[:periods - s])
            norm = mpmath.sqrt(mpmath.mpf(gamma.numerator) / gamma.denominator)
            for t in range(s, periods):
                ideal = mpmath.mpf(f[t - s].numerator) / f[t - s].denominator / norm
                assert abs(ideal * 2**30 - mpmath.mpf(m(t, s)) / 2**30) < 2


# The table of ext/math/README.md: deviations of the totals (largest, final), of the periods (largest, rms), and of the worst window of
# so many periods.
FIGURES = {12: (1.70, 1.61, 1.51, 1.40, 3, 1.83), 52: (2.15, 1.95, 1.71, 1.60, 4, 2.20), 365: (2.76, 2.39, 1.93, 1.83, 30, 3.14),
           3650: (3.48, 2.91, 2.16, 2.07, 30, 3.54)}


@pytest.mark.parametrize("periods", [12, 52, 365, pytest.param(3650, marks=pytest.mark.slow)])
def test_deviations(periods):
    inverse = numpy.linalg.inv(matrix(periods))
    sums = numpy.vstack([numpy.zeros(periods), numpy.cumsum(inverse, axis=0)])
    total, period, window = sums[1:], inverse, FIGURES[periods][4]
    window = sums[window:] - sums[:-window]
    total, period, window = (numpy.linalg.norm(rows, axis=1) for rows in (total, period, window))
    found = (total.max(), total[-1], period.max(), (period**2).mean()**0.5, FIGURES[periods][4], window.max())
    assert found == pytest.approx(FIGURES[periods], abs=0.0051)
    for at in (total.argmax(), periods - 1, 0):
        assert float(printed("reading", periods, 0, at).split()[0]) == pytest.approx(total[at]**2, rel=1e-12 if periods < 100 else 1e-9)


def check_reading(periods, spans, tolerance):
    for (first, last), row in zip(spans, rows(periods, spans)):
        variance, *weights = map(float, printed("reading", periods, first, last).split())
        assert len(weights) == last + 1 and not row[last + 1:].any()
        assert variance == pytest.approx(row @ row, rel=tolerance)
        assert numpy.abs(numpy.array(weights) - row[:last + 1]).max() < tolerance


@pytest.mark.parametrize("periods", [1, 2, 12, 52])
def test_readings(periods):
    ends = sorted({0, 1, 2, periods // 3, periods - 2, periods - 1} & set(range(periods)))
    check_reading(periods, [(first, last) for first in ends for last in ends if first <= last], 1e-12)


def test_long_readings():
    check_reading(365, [(0, 364), (100, 129), (364, 364), (0, 0)], 1e-11)


@pytest.mark.slow
def test_the_longest_readings():
    check_reading(3650, [(0, 3649), (1000, 1029), (3649, 3649), (0, 1824)], 1e-9)


def test_readings_against_exact_fractions():
    """Solves the equations of a short series without any rounding."""
    periods, m = 12, multipliers(12)
    for first, last in ((0, 11), (3, 7), (11, 11)):
        row = [Fraction(0)] * periods
        for s in range(last, -1, -1):
            rest = 2**60 * (s >= first) - sum(m(t, s) * row[t] for t in range(s + 1, last + 1))
            row[s] = rest / m(s, s)
        variance = float(printed("reading", periods, first, last).split()[0])
        assert variance == pytest.approx(float(sum(x * x for x in row)), rel=1e-14)


@pytest.mark.parametrize("shift", [0, 1, 30, 52, 70])
def test_coordinates(shift):
    """The coordinates of sums of all sizes: clamped to 2^88, rounded with halves away from zero, saturated at 2^62."""
    periods, m = 24, multipliers(24)
    for sign in (1, -1):
        sums = [sign * (-1)**(s // 5) * int(Fraction(7, 3)**(4 * s)) + s for s in range(periods)]
        found = [int(word) for word in printed("coordinates", periods, shift, *sums).split()]
        wanted = []
        for t in range(periods):
            whole = sum(m(t, s) * max(-2**88, min(2**88, sums[s])) for s in range(t + 1))
            rounded = (2 * abs(whole) + 2**(shift + 60)) // 2**(shift + 61)
            wanted.append(min(rounded, 2**62) * (1 if whole > 0 else -1))
        assert found == wanted


# ---- replaced units ------------------------------------------------------------------------------


def directions(half_angle, signs):
    """Returns unit vectors (of one or two coordinates) that a unit's vector of one period can have."""
    angles = numpy.linspace(-half_angle, half_angle, 9) if half_angle else [0]
    return [sign * numpy.array([math.cos(angle), math.sin(angle)]) for angle in angles for sign in signs]


def count_spread(periods):
    """Returns max(1, sqrt(2 - 2 g)), the bound for two counts (ext/mechanism/series_matrix.c)."""
    m = multipliers(periods)
    return max(1, 2 - 2 * m(periods - 1, 0) * m(periods - 1, periods - 1) / 2**120)**0.5


@pytest.mark.parametrize("periods", [1, 2, 12, 52])
@pytest.mark.parametrize("half_angle,signs,spread", [(0, [1], 1), (0, [1, -1], 2), (math.atan(2), [1], 4 / 5**0.5)])
def test_replaced_units(periods, half_angle, signs, spread):
    """Two units that count 1 each, in any two periods and in any of the directions of a family, move the points by at most
    max(sqrt(2), spread), or if they have one coordinate and no sign by at most the bound of count_spread(). The spread occurs in one
    period. The other bound occurs in the first and the last period, which one release does not know: a charge for its spread of 1
    would be too small."""
    dense = matrix(periods)
    gram = numpy.clip(dense.T @ dense, 0, None)
    worst = {True: 0.0, False: 0.0}
    for a in directions(half_angle, signs):
        for b in directions(half_angle, signs):
            squares = 2 - 2 * gram * (a @ b)
            same = numpy.eye(periods, dtype=bool)
            for place, which in ((True, same), (False, ~same)):
                worst[place] = max([worst[place], *squares[which]])
    if spread > 1:
        assert max(worst.values()) <= max(2, spread**2) + 1e-6
        assert worst[True] == pytest.approx(spread**2, abs=1e-6)
    if spread == 1 and periods > 1:
        assert worst[True] < 1e-6 and worst[False] == pytest.approx(count_spread(periods)**2, abs=1e-7)
        assert 1.1 < worst[False] < 2 and (worst[False] > 1.8 or periods < 52)


@pytest.mark.parametrize("periods", [2, 3, 4, 7, 20, 90])
def test_the_least_product_of_columns(periods):
    """Of all pairs of columns, the first and the last one have the least product, in integers."""
    m = multipliers(periods)
    columns = [[m(t, s) if t >= s else 0 for t in range(periods)] for s in range(periods)]
    products = {(i, j): sum(map(int.__mul__, columns[i], columns[j])) for j in range(periods) for i in range(j)}
    assert min(products.values()) == products[0, periods - 1] == m(periods - 1, 0) * m(periods - 1, periods - 1)


@pytest.mark.parametrize("diagnose", [0, 1])
@pytest.mark.parametrize("replace", [0, 1])
@pytest.mark.parametrize("periods", [1, 2, 3, 12])
def test_replaced_counts(periods, replace, diagnose):
    """Searches all corners: what two units count, and when they first count and are first cut. The greatest distance is what is charged,
    and no mixture of corners is further apart."""
    words = printed("design", "sum", "gaussian", 1, 0.5, 1, 1, diagnose, periods, replace).split()
    reach, w, fine, grain, touched, s = map(int, words[:6])
    dense = matrix(periods)
    corners = [numpy.zeros(periods), *numpy.eye(periods)]
    apart = max(numpy.sum((dense @ (a - b))**2) for a in corners for b in (corners if replace else corners[:1]))
    greatest = (apart * (reach**2 + 2 * w**2))**0.5 / 2.0**(grain - fine)
    whole = greatest + 1 + touched**0.5
    assert whole * (1 - 1e-5) < s <= whole + 2
    assert apart == pytest.approx(count_spread(periods)**2 if replace else 1, abs=1e-8)
    random = numpy.random.default_rng(periods)
    for _ in range(500):
        pair = random.dirichlet(numpy.full(periods + 1, 10 ** random.uniform(-2, 1)), size=(2, 3))[:, :, 1:]
        moved = numpy.array([reach, w, w]) * (dense @ (pair[0] - replace * pair[1]).T)
        assert numpy.linalg.norm(moved) / 2.0**(grain - fine) <= greatest * (1 + 1e-9)


def test_mixtures_are_no_further_apart():
    """Units that count in several periods are means of units that count in one period, so they are no further apart."""
    random, dense = numpy.random.default_rng(12), matrix(12)
    for _ in range(3000):
        pair = random.dirichlet(numpy.full(12, 10 ** random.uniform(-2, 1)), size=2)
        assert numpy.linalg.norm(dense @ (pair[0] - pair[1])) < 2**0.5
        assert numpy.linalg.norm(dense @ pair[0]) <= 1 + 1e-9


# ---- sensitivity and charge ------------------------------------------------------------------------

CASES = [("sum", 1, 1, 0, 2), ("sum", 1, 1, 1, 1), ("mean", 2, 1, 0, 4 / 5**0.5), ("count", 1, 7, 1, 2**0.5),
         ("key means", 2, 7, 0, 4 / 5**0.5)]


@pytest.mark.parametrize("replace", [0, 1])
@pytest.mark.parametrize("diagnose", [0, 1])
@pytest.mark.parametrize("family,components,keys,nonnegative,spread", CASES)
def test_sensitivity_and_charge(family, components, keys, nonnegative, spread, diagnose, replace):
    """s = floor(D/2^shift) + 1 + ceil(sqrt(T cells)), V = ceil(s^2/(2 rate)) + 1, and the charge s^2/(2(V - 1/12)). D may be larger
    by the margin for truncation, a few fine steps of 2^53."""
    for periods, clip, rate in ((1, 1, 0.5), (12, 12, 0.5), (12, 7.3, 0.013), (365, 40, 1e-6), (52, 0.3, 900)):
        words = printed("design", family, "gaussian", clip, rate, keys, nonnegative, diagnose, periods, replace).split()
        reach, steps, fine, grain, touched, s, variance = map(int, words[:-1])
        row = clip * (1.25**0.5 if components == 2 else 1)
        assert reach * 2.0**fine == pytest.approx(row, rel=1e-15)
        assert steps == (int(reach * 0.22) if diagnose else 0)
        assert touched == periods * (components * keys + 2 * diagnose)
        with mpmath.workdps(40):
            counts = mpmath.mpf(count_spread(periods)) if replace else 1
            own = counts if spread == 1 or not replace else max(mpmath.sqrt(2), spread)
            distance = mpmath.sqrt((reach * own)**2 + 2 * (steps * counts)**2)
            whole = int(distance / 2**(grain - fine)) + 1 + math.isqrt(touched - 1) + 1 if touched > 1 else \
                int(distance / 2**(grain - fine)) + 2
        assert s == whole
        rate = Fraction(rate)
        assert variance == math.ceil(Fraction(s**2) / (2 * rate)) + 1
        charge = Fraction(s**2) / (2 * (variance - Fraction(1, 12)))
        assert 0 <= float(words[-1]) / float(charge) - 1 < 1e-14 and charge <= rate


@pytest.mark.parametrize("replace", [0, 1])
@pytest.mark.parametrize("family,keys,nonnegative", [("sum", 1, 0), ("sum", 1, 1), ("mean", 1, 0), ("count", 7, 1)])
def test_laplace(family, keys, nonnegative, replace):
    """In the sum norm, s = floor(D/2^shift) + T cells, and the scale is the least whose epsilon is in the tier's rate."""
    for periods, clip, rate, diagnose in ((1, 1, 0.5, 0), (12, 12, 0.5, 0), (365, 40, 1e-4, 1), (52, 0.3, 90, 1)):
        words = printed("design", family, "laplace", clip, rate, keys, nonnegative, diagnose, periods, replace).split()
        reach, steps, fine, grain, touched, s, clock = map(int, words[:-1])
        assert reach * 2.0**fine == pytest.approx(clip, rel=1e-15)
        assert steps == (reach // 40 if diagnose else 0)
        assert touched == periods * ((2 if family == "mean" else keys) + 2 * diagnose)
        assert s == ((reach + 2 * steps) * (2 if replace else 1) >> grain - fine) + touched
        scale = math.isqrt(clock // 2)
        z = s / scale
        assert 2 * scale**2 == clock and z + math.exp(-z) - 1 <= rate < z * 1.01 + math.exp(-z * 1.01) - 1
