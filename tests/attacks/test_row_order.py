"""Attack: the order of rows (Casacuberta et al. 2022). A sum of doubles depends on the order of rows, but the noise is calibrated
as if the sum did not depend on the order. The same rows in two orders are the same table, so their answers must have the same
distribution."""

import random

from attack import EXACT, KEYS, check_distance, each_call_and_form, fill, lattice, one, path_for, person, system

UNITS = 300

# Each unit has the values 1e16, 1 and -1e16. Their total in doubles is 0 if the 1 is added to 1e16, and otherwise 1.
ROWS = [person(unit, x, KEYS[unit % 3]) for unit in range(UNITS) for x in (1e16, 1, -1e16)]


def absorbed():
    return list(ROWS)


def kept():
    return sorted(ROWS, key=lambda row: (row[0], abs(row[2]) == 1))


def naive(rows, clip=1.0):
    """Returns the sum of the clipped totals of units, in doubles."""
    totals = {}
    for unit, _, x, _ in rows:
        totals[unit] = totals.get(unit, 0.0) + x
    return sum(max(-clip, min(clip, total)) for total in totals.values())


def test_a_naive_sum_moves_by_every_unit_at_once():
    assert naive(absorbed()) == 0 and naive(kept()) == UNITS and sorted(absorbed()) == sorted(kept())


@each_call_and_form
def test_the_integers_are_the_same_in_every_order(call, form, tmp_path):
    """The naive sum changes by 300 sensitivities, and the sum of diffuse changes only by the noise."""
    path = path_for(call, tmp_path)
    db = system(path, EXACT)
    orders = [absorbed(), kept(), sorted(ROWS, key=lambda row: row[2])]
    orders.append(random.Random(1).sample(ROWS, len(ROWS)))
    for i, rows in enumerate(orders):
        fill(db, rows)
        one(db, form(call, "exact", f"r{i}"))
    found = lattice(db, path, "exact")
    for i in range(1, len(orders)):
        check_distance(found, i, 0, 0, f"order {i}")


def test_the_sum_in_every_order_is_the_exact_one():
    db = system()
    for rows in (absorbed(), kept()):
        fill(db, rows)
        assert abs(one(db, "SELECT dp_sum('exact', x, 1) FROM people") - UNITS) <= 12 / 1414
