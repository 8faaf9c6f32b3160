"""Reference implementation of series (running totals): labels of periods, multipliers, readings, allowances and coordinates.

No code of the extension is used here. Integers have any size, readings come from dense linear algebra, and allowances from a plain
loop over units and periods. The mechanism is the normalised square root (Henzinger, Kalinin and Upadhyay 2025).
"""

import datetime
import fractions
import json
import math
import re

import numpy

ONE = 2**60  # the norm of a column of multipliers is at most this


# ---- labels ------------------------------------------------------------------------------------------------------------

def first_day(label):
    """Returns the form of a calendar label and its first day."""
    for form, pattern in (("year", r"(\d{4})"), ("quarter", r"(\d{4})-Q([1-4])"), ("month", r"(\d{4})-(\d\d)"),
                          ("week", r"(\d{4})-W(\d\d)"), ("day", r"(\d{4})-(\d\d)-(\d\d)")):
        found = re.fullmatch(pattern, label, re.ASCII)
        if found:
            numbers = list(map(int, found.groups()))
            if form == "year":
                return form, datetime.date(numbers[0], 1, 1)
            if form == "quarter":
                return form, datetime.date(numbers[0], 3 * numbers[1] - 2, 1)
            if form == "month":
                return form, datetime.date(*numbers, 1)
            if form == "week":
                return form, datetime.date.fromisocalendar(*numbers, 1)
            return form, datetime.date(*numbers)
    raise ValueError(label)


def label_of(form, day):
    if form == "year":
        return f"{day.year:04}"
    if form == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    if form == "month":
        return f"{day.year:04}-{day.month:02}"
    if form == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    return day.isoformat()


def labels(periods):
    """Returns the labels of the option `periods`: "first/last", or a list of texts."""
    if isinstance(periods, list):
        return periods
    first, last = periods.split("/")
    form, day = first_day(first)
    assert first_day(last)[0] == form
    found = [first]
    while found[-1] != last:
        day += datetime.timedelta(1)
        label = label_of(form, day)
        if label != found[-1]:
            found.append(label)
    return found


# ---- multipliers and readings ------------------------------------------------------------------------------------------

def multipliers(count):
    """Returns m as a list of rows: m[t][s] for s <= t, as integers."""
    f = [2**60]
    for k in range(1, count):
        f.append(f[-1] * (2 * k - 1) // (2 * k))
    factors, scales, square = [value >> 30 for value in f], [], 0
    for value in factors:
        square += value * value
        scales.insert(0, ONE // (math.isqrt(square) + 1))
    return [[factors[t - s] * scales[s] for s in range(t + 1)] for t in range(count)]


def matrix(count):
    """Returns C = m/2^60 as a dense lower triangular matrix."""
    dense = numpy.zeros((count, count))
    for t, row in enumerate(multipliers(count)):
        dense[t, :t + 1] = [value / ONE for value in row]
    return dense


def count_spread(count):
    """Returns how far two units that only count, each at most 1, can move the points of different periods."""
    columns = matrix(count).T
    return max([1.0] + [float(numpy.linalg.norm(columns[i] - columns[j])) for j in range(count) for i in range(j)])


def reading(count, first, last):
    """Returns r with r · y = the sum of periods first..last (from 0) plus noise of the variance V |r|^2."""
    want = numpy.zeros(count)
    want[first:last + 1] = 1
    return numpy.linalg.solve(matrix(count).T, want)


def spread(count, first, last):
    """Returns |r|: the standard deviation of a span, in units of one draw."""
    return float(numpy.linalg.norm(reading(count, first, last)))


def exact_spread(count, first, last):
    """Returns |r| from exact fractions, rounded once."""
    m = multipliers(count)
    r = [fractions.Fraction(0)] * count
    for s in reversed(range(count)):
        want = fractions.Fraction(first <= s <= last) - sum(fractions.Fraction(m[t][s], ONE) * r[t] for t in range(s + 1, count))
        r[s] = want / fractions.Fraction(m[s][s], ONE)
    square = sum(x * x for x in r)
    scale = 2**200
    return math.isqrt(square.numerator * scale // square.denominator) / 2**100


# ---- allowances --------------------------------------------------------------------------------------------------------

def counted(history, bound, in_sum_norm=False):
    """Returns what one unit counts in each period. `history` has a list of numbers for each period, or None where the unit has no rows.
    The unit counts first come, first served, until its norms add up to `bound`."""
    spent, found = 0.0, []
    for vector in history:
        vector = [] if vector is None else vector
        size = math.fsum(map(abs, vector)) if in_sum_norm else math.hypot(*vector)
        left = bound - spent
        if size <= left:
            found.append(list(vector))
            spent += size
        else:
            found.append([value * left / size for value in vector])
            spent = bound
    return found


def sums(units, count, cells, bound, in_sum_norm=False):
    """Returns the clipped sums of all periods as an array [period, cell]. `units` has a history for each unit."""
    total = numpy.zeros((count, cells))
    for history in units:
        for t, vector in enumerate(counted(history, bound, in_sum_norm)):
            if vector:
                total[t] += vector
    return total


def rounded(value, divisor):
    """Returns value/divisor, rounded to the nearest integer, with halves away from zero."""
    size = (2 * abs(value) + divisor) // (2 * divisor)
    return size if value >= 0 else -size


def coordinates(exact, shift):
    """Returns the coordinates of all periods without noise, from exact sums in fine steps: lists of integers [period][cell]."""
    count = len(exact)
    m = multipliers(count)
    limit = 2**88
    clamped = [[min(max(value, -limit), limit) for value in row] for row in exact]
    return [[rounded(sum(m[t][s] * clamped[s][j] for s in range(t + 1)), 2**(shift + 60)) for j in range(len(exact[0]))]
            for t in range(count)]


# ---- charges -----------------------------------------------------------------------------------------------------------

def root_up(x):
    """Returns the least integer whose square is at least x."""
    return math.isqrt(x - 1) + 1 if x > 0 else 0


def sensitivity(distance, shift, draws, is_l1=False):
    """Returns s for a distance in fine steps: the shift of all `draws` coordinates of a neighbour, with rounding."""
    return (distance >> shift) + 1 + (draws - 1 if is_l1 else root_up(draws))


def variance(s, rate):
    """Returns V = ceil(s^2 / (2 rate)) + 1."""
    return math.ceil(fractions.Fraction(s * s) / (2 * fractions.Fraction(rate))) + 1


def key_of(label, key=None):
    """Returns the key that dp_value shows for a period or a span, and a key of a group."""
    return label if key is None else json.dumps([label, key], separators=(",", ":"), ensure_ascii=False)
