"""Attack: the low-order bits of the noise (Mironov 2012; Jin et al. 2022).

A floating-point sampler can produce only some of all doubles. Which doubles can be published therefore depends on the answer to
which the noise is added. An attacker who knows the sampler computes which of two answers can have led to the published number.
"""

import math
import random

import numpy
import pytest
from scipy import stats

from attack import EACH_CALL, PEOPLE, alarm, fill, lattice, one, path_for, person, system

# ---- naive: inversion in doubles -----------------------------------------------------------------------------------


def naive(answer, rng):
    """Laplace noise of scale 1 from a uniform double, by the textbook formula."""
    return answer + rng.choice([-1, 1]) * math.log(1 - rng.random())


def could_be(value, answer):
    """Returns whether the naive system can publish `value` for `answer`, for some output of random()."""
    near = round(math.exp(-abs(value - answer)) * 2**53)
    return any(answer + sign * math.log(k * 2.0**-53) == value
               for k in range(max(1, near - 3), min(2**53, near + 3) + 1) for sign in (-1, 1))


@alarm(1e-21)
def test_naive_values_tell_which_neighbour_they_come_from():
    """The test makes 500 values, each for the answer 0 or 1. About six in ten are impossible for the other answer.
    (The probability that fewer than 200 are impossible is 1e-21.)"""
    rng = random.Random()
    certain = 0
    for _ in range(500):
        truth = rng.choice([0, 1])
        value = naive(truth, rng)
        assert could_be(value, truth)
        certain += not could_be(value, 1 - truth)
    assert certain >= 200


# ---- diffuse -------------------------------------------------------------------------------------------------------


def test_every_value_could_come_from_either_neighbour():
    """Every value is possible for the answers 60 and 59: both need noise of a whole number of lattice steps, and every whole
    number is possible."""
    db = system(tiers={"inner": 0.5})
    for rows in (PEOPLE, PEOPLE[2:]):
        fill(db, rows)
        for _ in range(250):
            one(db, "SELECT dp_count('inner', x, 1) FROM people")
    (granularity,), = db.execute("SELECT DISTINCT granularity FROM dp_release")
    for (value,) in db.execute("SELECT value FROM dp_value"):
        for answer in (59, 60):
            noise = math.ldexp(value - answer, -granularity)
            assert noise == int(noise) and answer + math.ldexp(noise, granularity) == value


CELLS = 16


def low_bits(values):
    return numpy.bincount(values.astype(numpy.int64).ravel() % CELLS, minlength=CELLS)


@EACH_CALL
@alarm(60 * 1e-9)
@pytest.mark.sample(4)
def test_low_order_bits_say_nothing(call, tmp_path):
    """The four lowest bits of the integers are uniform for each of two neighbours, and have the same distribution for both. For
    each of 20 calls, three chi-squared tests are made at level 1e-10: one for each neighbour, and one that compares both. Counts
    follow the chi-squared distribution only approximately, so the true probability of a false alarm may be ten times the level:
    1e-9 for each of the 60 tests. With 400 integers for each neighbour, the limit is 79. A bit that is always 0 would give 400,
    and a bit that is 0 four times in five would give 144."""
    path = path_for(call, tmp_path)
    db = system(path, {"inner": 0.5})
    for table, rows in (("with_her", PEOPLE), ("without", PEOPLE[2:])):
        fill(db, rows, table)
    one(db, call.aggregate("inner", "first", "with_her"))
    dimension = lattice(db, path, "inner").integers.shape[1]
    for i in range(-(-400 // dimension)):
        one(db, call.aggregate("inner", f"a{i}", "with_her"))
        one(db, call.aggregate("inner", f"b{i}", "without"))
    integers = lattice(db, path, "inner").integers[1:]
    counts = [low_bits(integers[0::2]), low_bits(integers[1::2])]
    for count in counts:
        assert stats.chisquare(count).pvalue > 1e-10
    assert stats.chi2_contingency(counts).pvalue > 1e-10


@alarm(1e-30)
def test_that_comparison_finds_naive_noise():
    """The same comparison of 800 naive values for the answer 1, on a grid of 2^-53, gives a chi-squared of 670 with a standard
    deviation of 50. The probability that such a chi-squared is below 79 is 1e-30."""
    rng = random.Random()
    count = low_bits(numpy.array([math.ldexp(naive(1, rng), 53) % 2**40 for _ in range(800)]))
    assert stats.chisquare(count).pvalue < 1e-10


def test_odd_answers_are_on_the_lattice_too():
    """The answer 0.1 is not on the lattice. diffuse rounds the answer before it adds the noise, so the bits of the answer do not
    show."""
    db = system(tiers={"inner": 0.5}, rows=[person(1, 0.1), person(2, 1e-300), person(3, 1 / 3)])
    for _ in range(20):
        one(db, "SELECT dp_sum('inner', x, 1) FROM people")
    lattice(db, ":memory:", "inner")
