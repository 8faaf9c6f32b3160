"""The option until, computed from its definition in integers and fractions: the ladder of a walk, its draws, the rule, and prices."""

import fractions
import math
import statistics

Z = statistics.NormalDist().inv_cdf(0.975)


def variance(s, rate):
    """The lattice variance of a rate: ceil(s^2 / (2 rate)) + 1."""
    return math.ceil(fractions.Fraction(s * s) / (2 * fractions.Fraction(rate))) + 1


def price(s, v):
    """The rate of Gaussian noise of variance v, as every accountant charges it (with the margin of 1/12)."""
    return fractions.Fraction(s * s) / (2 * (fractions.Fraction(v) - fractions.Fraction(1, 12)))


def tier_rungs(s, rates, weight=1, start=2**55):
    """The clocks of the asked tier, whose rate is the first, and of the tiers outside it, as {clock: number of the tier}, the
    outermost first. Of two within 1/64 of the outer one, the inner tier has the clock of the outer one. `start` is the clock of the
    point where a refinement begins, which counts as one of them."""
    found, last = {}, start
    for number in range(len(rates) - 1, -1, -1):
        v = variance(s, fractions.Fraction(weight) * fractions.Fraction(rates[number]))
        near = v >= last or (last - v) * 64 < last
        if near and number == 0:
            found[last] = 0
        elif number == 0 or not near:
            found[v], last = number, v
    return found


def ladder(s, rates, weight=1, start=2**55):
    """All rungs, the outermost first."""
    tiers = tier_rungs(s, rates, weight, start)
    ceiling = variance(s, fractions.Fraction(weight) * fractions.Fraction(rates[0]))
    stays = [v for v, number in tiers.items() if number or v != ceiling] + [start] * (start < 2**55)
    rungs, v = list(tiers), ceiling + ceiling // 4
    while v <= 4096 * ceiling and v < start:
        if all(abs(v - t) * 64 >= t for t in stays):
            rungs.append(v)
        v += v // 4
    return sorted(rungs, reverse=True)


def is_met(figures, half, until, least=0):
    """Whether the walk stops: the half-width is small enough for every figure. Fails where a rounding could decide."""
    room = [until * max(abs(figure), least) / half for figure in figures]
    assert all(abs(r - 1) > 1e-9 for r in room)
    return min(room) >= 1
