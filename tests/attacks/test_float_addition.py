"""Attack: the precision of a floating-point addition (Casacuberta et al. 2022, Haney et al. 2022).

A sum of two doubles is rounded to the spacing of doubles near the result. Noise that is added to an answer of 1 loses its bits
below 2^-53. Small noise that is added to an answer of 0 keeps all its bits.
"""

import math
import random

import numpy
import pytest
from scipy import stats

from attack import alarm, fill, lattice, one, person, system
from conftest import ledger_of

SAMPLES = 2000


def fine(value):
    """Returns whether the value has bits below 2^-53."""
    return math.ldexp(value, 53) % 1 != 0


@alarm(1e-28)
def test_naive_sums_show_a_small_answer():
    """With Gaussian noise of stddev 1, a quarter of the values for answer 0 have bits below 2^-53, and no value for answer 1 has
    any. (The probability that at most 300 of the 2000 values have such bits is below 1e-28.)"""
    rng = random.Random()
    assert sum(fine(0 + rng.gauss(0, 1)) for _ in range(SAMPLES)) > 300
    assert not any(fine(1 + rng.gauss(0, 1)) for _ in range(SAMPLES))


def trailing_zeros(values):
    """Returns how many integers end in exactly 0, 1, 2, 3 and 4 zero bits, and how many end in 5 or more."""
    values = values.astype(numpy.int64)
    exactly = [((values & 2**n - 1 == 0) & (values >> n & 1 == 1)).sum() for n in range(5)]
    return numpy.array(exactly + [(values & 31 == 0).sum()])


@pytest.mark.slow
@alarm(4e-9)
def test_the_precision_of_a_value_does_not_depend_on_the_answer():
    """Answers 0, 1 and 400 with noise of stddev 1 have equally many trailing zero bits (a chi-squared test against a geometric
    distribution). The same holds for the values near zero that this attack examines. The test makes four comparisons at level
    1e-10. Each comparison counts as a false alarm of probability 1e-9, because counts follow the chi-squared
    distribution only approximately. For naive values near zero, the statistic is over 200: half of the values have bits
    below 2^-53 for one answer, and no value has such bits for the other answer."""
    db = system(tiers={"inner": 0.5})
    near, law = [], numpy.array([2.0 ** -(n + 1) for n in range(5)] + [2.0**-5])
    for answer in (0, 1, 400):
        fill(db, [person(i, int(i < answer)) for i in range(max(1, answer))])
        for _ in range(SAMPLES):
            one(db, "SELECT dp_sum('inner', x, 1) FROM people")
        integers = lattice(db, ":memory:", "inner").integers[-SAMPLES:, 0]
        assert stats.chisquare(trailing_zeros(integers), SAMPLES * law).pvalue > 1e-10
        if answer < 400:
            (granularity,), = db.execute("SELECT DISTINCT granularity FROM dp_release")
            near.append(trailing_zeros(integers[abs(numpy.ldexp(integers, granularity)) < 0.5]))
    assert stats.chi2_contingency(near).pvalue > 1e-10


def test_values_are_one_conversion_of_an_integer(tmp_path):
    """The published double depends only on the integer in the ledger."""
    path = tmp_path / "people.db"
    db = system(path, {"inner": 0.5, "outer": 0.01})
    for i in range(10):
        one(db, "SELECT dp_sum('inner', x, 1, ?) FROM people", f"r{i}")
        one(db, "SELECT dp_diffuse(?, 'outer')", f"r{i}")
    (granularity,), = db.execute("SELECT DISTINCT granularity FROM dp_release")
    published = dict(((r, t), v) for r, t, v in db.execute("SELECT release, tier, value FROM dp_value"))
    points = ledger_of(path).execute("SELECT release, tier, value FROM dp_path").fetchall()
    assert len(points) == 20
    for release, tier, integer in points:
        assert published[release, tier] == math.ldexp(float(integer), granularity)
