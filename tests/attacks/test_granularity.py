"""Attack: a granularity that depends on data. If a lattice is fitted to the largest value or to the sum, every published number
shows whether a large value was in the table, for any amount of noise."""

import math
import random

import pytest

from attack import EACH_CALL, PEOPLE, alarm, fill, lattice, one, path_for, person, system


def naive(values, rng):
    """Returns a noisy sum, rounded to about a millionth of the largest of the values."""
    step = 2.0 ** math.floor(math.log2(max(map(abs, values)) / 1e6))
    return round((sum(max(-1, min(1, x)) for x in values) + rng.gauss(0, 10)) / step) * step


@alarm(1e-30)
def test_a_naive_lattice_shows_the_largest_value():
    """If one person has a value of 1000, which is clipped to 1, all published values are whole multiples of 2^-10. Without this
    person, a value is such a multiple with probability below 1/1000. (The probability that more than half of 100 values
    are such multiples is below 1e-100.)"""
    rng = random.Random()
    with_her = [math.ldexp(naive([0.5, 0.25, 1000.0], rng), 10) % 1 == 0 for _ in range(100)]
    without = [math.ldexp(naive([0.5, 0.25], rng), 10) % 1 == 0 for _ in range(100)]
    assert all(with_her) and sum(without) < 50


TABLES = [PEOPLE, PEOPLE + [person("new", 1e300)], [person(1, 1e-300)], [person(1, -(2**63))], [person(None, None)],
          [person(i, float("inf")) for i in range(500)], [person(1, 0.5)] * 2000, [("x", b"y", "z", "[")]]
PUBLIC = ("SELECT DISTINCT kind, mechanism, clip, dimension, granularity, sensitivity, weight, slack, clock, rate, shrink,"
          " p.centre FROM dp_release r JOIN dp_publication p ON p.release_id = r.id")


@EACH_CALL
@alarm(20 * 4e-12)
@pytest.mark.sample(4)
def test_the_lattice_is_the_same_for_all_tables(call, tmp_path):
    """Apart from the values, all publications are equal, even for an empty table. The integers of small and of large answers use
    the whole lattice, so 40 integers are not all even. (The probability that 40 integers are all even by chance is 2^-40. The
    test checks this twice for each of 20 calls.)"""
    path = path_for(call, tmp_path)
    db = system(path, {"inner": 1.0})
    for rows in TABLES:
        fill(db, rows)
        one(db, call.aggregate("inner"))
    one(db, call.release("inner", source="people WHERE 0"))
    for rows in TABLES[:2]:
        fill(db, rows)
        for _ in range(40):
            one(db, call.aggregate("inner"))
    assert len(db.execute(PUBLIC).fetchall()) == 1
    integers = lattice(db, path, "inner").integers
    assert (integers[-40:] % 2 != 0).any() and (integers[-80:-40] % 2 != 0).any()


@EACH_CALL
def test_the_noise_that_is_stated_is_the_same_for_all_tables(call):
    """stddev in dp_value is the same for all tables if the values are lattice points. (For averages and similar kinds, stddev is
    an estimate.)"""
    db = system(tiers={"inner": 1.0})
    for rows in TABLES:
        fill(db, rows)
        one(db, call.aggregate("inner"))
    assert not call.linear or one(db, "SELECT count(DISTINCT stddev) FROM dp_value") == 1
