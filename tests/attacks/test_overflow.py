"""Attack: overflow (Casacuberta et al. 2022). If a total wraps around, or becomes infinite or NaN, one unit changes
the answer by the whole range."""

import math

import numpy
import pytest

from attack import check_one_unit_more, each_call_and_form, one, person, system

HUGE = 1.7976931348623157e308


def wrapping(values, clip=2**62):
    """Returns a sum of 64-bit integers that wraps around."""
    return int(numpy.sum(numpy.clip(numpy.array(values), -clip, clip)))


def floating(values):
    """Returns a clipped total of doubles."""
    return float(numpy.clip(numpy.sum(numpy.array(values)), -1, 1))


def test_a_naive_total_of_integers_wraps_around():
    one_more = wrapping([2**62, 2**62]) - wrapping([2**62])
    assert abs(one_more) > 2 * 2**62


def test_a_naive_total_of_doubles_is_no_number():
    with numpy.errstate(all="ignore"):
        assert floating([HUGE, HUGE]) == 1 and math.isnan(floating([math.inf, HUGE, -math.inf]))


# Rows of one unit that move a total out of its range in one direction, or in both directions.
RUNS = {
    "up": [HUGE] * 1000, "down": [-HUGE] * 1000, "both": [HUGE, HUGE, -HUGE, -HUGE, -HUGE] * 100,
    "infinite": [math.inf] * 10, "infinities": [math.inf, -math.inf] * 10 + [-math.inf], "integers": [-(2**63)] * 1000,
    "most": [2**63 - 1] * 1000, "texts": ["9" * 400, "-1e999", "1e308"] * 5,
}


@each_call_and_form
@pytest.mark.sample(12)
def test_no_unit_moves_the_integers_by_more_than_the_sensitivity(call, form, tmp_path):
    check_one_unit_more(call, form, tmp_path, {name: [person("new", x) for x in values] for name, values in RUNS.items()})


@pytest.mark.parametrize("clip", [1e-150, 1e-9, 1.5, 1e9, 1e150])
@pytest.mark.parametrize("sign", [1, -1])
def test_totals_at_the_ends_of_the_range_are_exact(clip, sign):
    """The total of 2000 units with the largest value in one direction is 2000 clips and does not wrap around."""
    db = system(rows=[person(i, sign * (math.inf if i % 2 else HUGE)) for i in range(2000)])
    value = one(db, "SELECT dp_sum('exact', x, ?) FROM people", clip)
    assert abs(value / clip - sign * 2000) <= 12 / 1414 + 2000 * 2.0**-50
    value = one(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM people', ?)", f'{{"clip":{clip}}}')
    assert abs(value / clip - sign * 2000) <= 12 / 1414 + 2000 * 2.0**-50


def test_a_saturated_unit_forgets_nothing_of_the_others():
    """After the total of a unit has reached the end of its range, later rows of the unit can bring the total back inside the
    range."""
    db = system(rows=[person("a", HUGE), person("a", -HUGE), person("a", 0.5), person("b", 0.25)])
    assert abs(one(db, "SELECT dp_sum('exact', x, 1) FROM people") - 0.75) <= 12 / 1414
