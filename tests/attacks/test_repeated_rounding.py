"""Attack: repeated rounding (Casacuberta et al. 2022). A floating-point total is rounded after every addition, and the rounding
step depends on the size of the total. If one unit lifts the total over a power of two, the step doubles for all later rows, and
the rounding errors of these rows add up.

The test uses single precision, where 16384 pairs of rows are enough. In doubles the attack needs 2^27 pairs.
"""

import numpy
import pytest

from attack import EACH_CALL, EXACT, check_distance, fill, lattice, one, path_for, person, system

pytestmark = pytest.mark.xdist_group("repeated_rounding")

BASE, PAIRS = 8192, 16384
UP, DOWN = 2.0**-11 * (1 + 2.0**-8), -(2.0**-11) * (1 - 2.0**-8)  # a little more and a little less than half a step at BASE
PAIRED = [UP, DOWN] * PAIRS
WITH, WITHOUT = [1.0] * BASE + PAIRED, [1.0] * (BASE - 1) + PAIRED


def naive(values):
    """Returns a running total in single precision. Every row is clipped to [-1, 1]."""
    total = numpy.float32(0)
    for x in numpy.clip(numpy.array(values, dtype=numpy.float32), -1, 1):
        total += x
    return float(total)


def test_one_unit_moves_a_naive_total_by_many_clips():
    assert naive(WITH) - naive(WITHOUT) > 10


TABLES = {"with_her": WITH, "without": WITHOUT}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Makes one file with two tables, with and without one unit."""
    path = tmp_path_factory.mktemp("rounding") / "people.db"
    db = system(path, EXACT)
    for table, values in TABLES.items():
        fill(db, [person(i, x) for i, x in enumerate(values, BASE - len(values))], table)
    db.close()
    return path


@EACH_CALL
@pytest.mark.sample(6)
def test_one_unit_moves_the_integers_by_one_sensitivity(call, tables, tmp_path):
    path = path_for(call, tmp_path)
    db = system(path, EXACT)
    db.execute("ATTACH ? AS source", (str(tables),))
    for table in TABLES:
        db.execute(f"CREATE TABLE {table} AS SELECT * FROM source.{table}")
    db.execute("DETACH source")
    for table in TABLES:
        one(db, "SELECT dp_protect(?, 'unit')", table)
    one(db, call.aggregate("exact", "a", "with_her"))
    one(db, call.aggregate("exact", "b", "without"))
    check_distance(lattice(db, path, "exact"), 0, 1, 1)
