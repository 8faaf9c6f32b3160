"""Attack: one unit with ten thousand rows. If a system clips rows one by one, a unit with many rows changes the answer by many
times the clip, but the noise is made for a change of one clip."""

import pytest

from attack import EXACT, KEYS, PEOPLE, alarm, check_one_unit_more, each_call_and_form, one, person, system

pytestmark = pytest.mark.xdist_group("heavy_units")

ROWS = 10**4


def naive(rows, clip=1.0):
    """A sum of clipped rows."""
    return sum(max(-clip, min(clip, x)) for _, _, x, _ in rows)


HEAVY = {
    "one value": [person("heavy", 1.25)] * ROWS,
    "all values": [person("heavy", i / ROWS * 4 - 2, KEYS[i % 3]) for i in range(ROWS)],
    "large values": [person("heavy", 1e9, KEYS[i % 3]) for i in range(ROWS)],
    "all keys": [person("heavy", 1, f"key {i}") for i in range(ROWS)],
    "no name": [person(None, -1e9)] * ROWS,
}


def test_one_unit_moves_a_naive_sum_by_ten_thousand_clips():
    assert naive(PEOPLE + HEAVY["large values"]) - naive(PEOPLE) == ROWS


@each_call_and_form
@pytest.mark.sample(8)
def test_one_unit_moves_the_integers_by_one_sensitivity(call, form, tmp_path):
    check_one_unit_more(call, form, tmp_path, HEAVY)


def test_a_ledger_of_rows_says_that_it_protects_rows():
    """In a ledger that protects rows, a unit with many rows changes the answer by all of its rows. The ledger says that it
    protects rows."""
    db = system(tiers=EXACT, options='{"protects":"row"}', rows=HEAVY["large values"], policy="people")
    assert abs(one(db, "SELECT dp_sum('exact', x, 1) FROM people") - ROWS) <= 12 / 1414
    assert one(db, "SELECT dp_certificate() ->> '$.ledger.protects'") == "row"


@alarm(4e-11)
def test_a_unit_in_ten_thousand_groups_keeps_a_few():
    """With private keys, a unit that is in every group adds no more than a unit in max_groups groups."""
    db = system(rows=HEAVY["all keys"], tiers={})
    one(db, "SELECT dp_tier('exact', 1e6, 1e15, 1e-6, 'rdp', 1e-10)")
    answer = one(db, "SELECT dp_group_count('exact', key, 1, '{\"max_groups\":4}') FROM people")
    assert answer == "{}"  # each of the four keys has one unit, so a key is shown with probability 1e-11
