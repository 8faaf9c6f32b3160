"""The central property: the releases of two neighbours differ by no more than the charged sensitivity. Noise at rate 1e6 is
1/1414 of the clip, so the exact answer is visible."""

import math
import random

import pytest

from noise_helpers import fill, one, open_ledger, record

RATE = 1e6
TABLES = 25  # pairs of neighbours for each combination
MARGIN = 12 * math.sqrt(2)  # the difference of two noises exceeds MARGIN times the stddev of one noise with probability 1e-32

KINDS = {  # kind: (the call, its clip)
    "count": ("dp_count('exact', x, 3)", 3.0),
    "sum": ("dp_sum('exact', x, 2.7)", 2.7),
    "ou_count": ("dp_ou_count('exact', x, 50, 3)", 3.0),
    "ou_sum": ("dp_ou_sum('exact', x, 2.7, 50)", 2.7),
}


def random_value(rng):
    return rng.choice([
        lambda: rng.uniform(-1, 1), lambda: rng.uniform(-10, 10), lambda: rng.choice([1e308, -1e308, 1e20, -2**63, 2**63 - 1]),
        lambda: rng.choice([float("inf"), float("-inf")]), lambda: None, lambda: rng.choice(["7", "abc", b"3", "", b"\xff"]),
        lambda: rng.choice([5e-324, 0.0, -0.0, 2.7, -2.7])])()


def random_unit(rng):
    return rng.choice([lambda: None, lambda: rng.randrange(8), lambda: rng.randrange(8) / 2,
                       lambda: rng.choice(["a", "b", "1", ""]), lambda: rng.choice([b"a", b"1", b""])])()


def rows_of(rng, unit):
    """Returns possible rows of one unit, from rows that do not count to a thousand rows in the same direction."""
    count = rng.choice([1, 1, 3, 1000])
    if rng.random() < 0.5:
        return [(rng.choice([-1e9, 1e9]), unit)] * count
    return [(random_value(rng), unit) for _ in range(count)]


def neighbours(rng, protects, adjacency):
    """Returns two tables that differ in the unit 'new' or, if rows are protected, in one row of any unit."""
    base = [(random_value(rng), random_unit(rng)) for _ in range(rng.randrange(30))]
    if protects == "unit":
        mine, other = rows_of(rng, "new"), rows_of(rng, "new")
    else:
        mine, other = [(random_value(rng), random_unit(rng))], [(random_value(rng), random_unit(rng))]
    a, b = base + mine, base + (other if adjacency == "replace" and rng.random() < 0.9 else [])
    rng.shuffle(a)
    rng.shuffle(b)
    return (a, b) if rng.random() < 0.5 else (b, a)


def released(db, rows, kind):
    """Returns a release of the table in lattice steps, before the shrink. Uses dp_release() for an empty table."""
    fill(db, rows)
    call, clip = KINDS[kind]
    if rows:
        return one(db, "SELECT " + call + " FROM t")
    radius = ',"radius":50' if kind.startswith("ou") else ""
    return one(db, f"SELECT dp_release('exact', '{kind}', 'SELECT x FROM t', '{{\"clip\":{clip}{radius}}}')")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protects", ["unit", "row"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_neighbours_differ_by_the_sensitivity_at_most(kind, protects, adjacency):
    rng = random.Random(f"{kind} {protects} {adjacency}")
    db = open_ledger({"exact": RATE}, f'{{"protects":"{protects}","adjacency":"{adjacency}"}}')
    worst = 0.0
    for i in range(TABLES):
        a, b = neighbours(rng, protects, adjacency)
        if i == 0:  # the worst case, made by hand: rows at one end of the range, and rows at the other end or none
            few = 1 if protects == "row" else 5
            a, b = [(1e9, "new")] * few, [(-1e9, "new")] * few if adjacency == "replace" else []
        difference = abs(released(db, a, kind) - released(db, b, kind))
        release = record(db, "SELECT * FROM dp_release ORDER BY id DESC LIMIT 1")
        publication = record(db, "SELECT * FROM dp_publication ORDER BY release_id DESC LIMIT 1")
        step = math.ldexp(publication["shrink"], release["granularity"])
        noise = step * math.sqrt(publication["clock"])
        assert difference <= release["sensitivity"] * step + MARGIN * noise, (a, b)
        worst = max(worst, difference / (release["sensitivity"] * step))
    # The worst pair attains the sensitivity, up to the noise. Counts under replacement are an exception, because both versions
    # of the unit have the same count.
    counts_nothing = kind.endswith("count") and adjacency == "replace"
    assert worst >= 1 - MARGIN / math.sqrt(2 * RATE) or counts_nothing


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_sensitivity_is_that_of_the_clip(kind, adjacency):
    """The charged integer is the distance on the lattice, rounded up by at most one step."""
    db = open_ledger({"exact": RATE}, f'{{"adjacency":"{adjacency}"}}')
    released(db, [(1, 1)], kind)
    release = record(db, "SELECT * FROM dp_release")
    distance = KINDS[kind][1] * (2 if kind.endswith("sum") and adjacency == "replace" else 1)
    steps = math.ldexp(distance, -release["granularity"])
    assert steps <= release["sensitivity"] <= steps + 1
    publication = record(db, "SELECT * FROM dp_publication")
    assert release["sensitivity"] ** 2 <= 2 * RATE * publication["clock"]
    assert publication["rate"] <= RATE
