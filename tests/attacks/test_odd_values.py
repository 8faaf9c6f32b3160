"""Attack: NaN, infinities, text, blobs, -2^63 and other odd values. If a naive system adds such a value to its sum, the answer
reveals the value despite the noise. The diffuse extension treats every value as a number within the bounds."""

import json
import math

import numpy
import pytest

from attack import EACH_CALL, EXACT, FORMS, PEOPLE, check_distance, fill, lattice, one, path_for, system
from conftest import connect
from odd import COLUMNS, NAN, ODD, odd_row


def naive(values, rng):
    """A sum of values clipped to [-1, 1] with Gaussian noise."""
    return float(numpy.sum(numpy.clip(numpy.array(values), -1, 1)) + rng.normal(0, 100))


def test_a_nan_shows_through_naive_noise():
    rng = numpy.random.default_rng()
    assert math.isnan(naive([0.5, NAN], rng)) and math.isfinite(naive([0.5, 0.5], rng))


def test_the_least_integer_passes_a_naive_check_of_its_absolute_value():
    """In SQL, abs(-2^63) is an error. In 64-bit arithmetic that wraps round, as in numpy, it is negative, so the condition abs(x)
    <= clip accepts -2^63."""
    with pytest.raises(Exception, match="integer overflow"):
        one(connect(), "SELECT sum(CASE WHEN abs(x) <= 1 THEN x ELSE 1 END) FROM (SELECT -9223372036854775807 - 1 AS x)")
    with numpy.errstate(all="ignore"):
        assert numpy.abs(numpy.int64(-(2**63))) <= 1


def finite(answer):
    """Returns whether all published values are finite numbers."""
    values = json.loads(answer) if isinstance(answer, str) else [answer]
    values = values.values() if isinstance(values, dict) else values
    values = [x for value in values for x in (value if isinstance(value, list) else [value])]
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)


@EACH_CALL
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.sample(8)
def test_an_odd_row_moves_the_integers_by_no_more_than_the_sensitivity(call, column, tmp_path):
    """The test tries the aggregate and dp_release() in turn. If the odd value is the unit of the row, the row may count
    for an existing unit and move this unit from one end of the range to the other, which is twice the sensitivity."""
    path = path_for(call, tmp_path)
    db = system(path, EXACT)
    one(db, call.aggregate("exact"))
    for i, value in enumerate(ODD):
        fill(db, PEOPLE + [odd_row(column, value)])
        assert finite(one(db, FORMS[(i + len(column)) % 2](call, "exact"))), repr(value)
    found = lattice(db, path, "exact")
    for i, value in enumerate(ODD):
        check_distance(found, i + 1, 0, 2 if column == "unit" else 1, repr(value))


@EACH_CALL
def test_values_that_a_query_makes_are_values_too(call, tmp_path):
    """A query may compute NaN, texts that are not UTF-8, and zeroblobs. diffuse treats computed values like stored values."""
    path = path_for(call, tmp_path)
    db = system(path, EXACT)
    one(db, call.aggregate("exact"))
    fill(db, PEOPLE + [odd_row("x", 0.5)])
    expressions = ["9e999 - 9e999", "9e999", "-9e999", "CAST(x'fffe31' AS TEXT)", "zeroblob(24)", "-9223372036854775807 - 1"]
    for expression in expressions:
        columns = (f"iif(unit = 'odd', {expression}, {column}) AS {column}" for column in ("key", "x", "v"))
        assert finite(one(db, call.release("exact", source=f"(SELECT {', '.join(columns)} FROM people)")))
    found = lattice(db, path, "exact")
    for i, expression in enumerate(expressions):
        check_distance(found, i + 1, 0, 1, expression)
