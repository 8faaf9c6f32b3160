"""Neighbours of series: histories of databases that differ in all rows of one unit, with edits between appends. Under fixed noise, the
points of neighbours differ by at most the charged sensitivity, and the unit changes nothing of others."""

import random

import numpy
import pytest

import series_reference as reference
from conftest import make_ledger, refused
from noise_helpers import connect, one, quick_path
from series_helpers import (EXACT, KEYS, YEAR, append, declare, insert, played, release_row, rows_of, start, visits)

pytestmark = pytest.mark.alarm(1e-10)  # figures are compared at nine standard deviations

PERIODS = YEAR[:5]
CASES = [("count", {"clip": 4}), ("count_distinct", {"clip": 2}), ("sum", {"clip": 6.5}), ("group_count", {"clip": 3}), ("group_sum", {"clip": 4.25}),
         ("avg", {"clip": 3}), ("group_avg", {"clip": 3}), ("count", {"clip": 4, "diagnose": True}), ("group_count", {"clip": 3, "diagnose": True})]


def edits(rng, person, periods):
    """Returns steps for each period: what happens to one person's rows before the append. Rows come late or with a future label, move
    between periods, change, vanish and return."""
    steps = []
    for _ in periods:
        mine = []
        for _ in range(rng.randrange(1, 4)):
            label, ward = rng.choice(periods), rng.choice(KEYS)
            mine.append(rng.choice([
                visits(person, label, ward, rng.choice([1.0, -2.0, 3.5, 1e9, -1e300]), rng.choice([1, 2, 9])),
                f"UPDATE visit SET label = '{label}' WHERE person = '{person}'",
                f"UPDATE visit SET x = -x, ward = '{ward}' WHERE person = '{person}'",
                f"DELETE FROM visit WHERE person = '{person}' AND label = '{label}'",
                f"DELETE FROM visit WHERE person = '{person}'"]))
        steps.append(mine)
    return steps


def merge(periods, *several):
    """Returns one list of steps: for each period the edits of all persons, and then the append."""
    found = []
    for t, label in enumerate(periods):
        for steps in several:
            found += steps[t]
        found.append(label)
    return found


def extremes(person, label, x):
    """Returns steps of a person who counts everything that is allowed, in one period."""
    return [[visits(person, label, "west", x, times=50)]] + [[] for _ in PERIODS[1:]]


def others(rng, periods):
    """Returns the edits of two other persons, whose rows the neighbours share."""
    return [edits(rng, name, periods) for name in ("ann", "bob")]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("kind, more", CASES, ids=lambda v: v if isinstance(v, str) else "-".join(v))
@pytest.mark.sample(9)
def test_neighbours_with_edits_between_appends(kind, more, adjacency):
    """The noiseless difference of the points of neighbours is at most s, whatever one unit's rows do between appends. The bound is not
    empty: some neighbours reach most of it."""
    reached = 0.0
    for seed in range(4):
        rng = random.Random(f"{kind} {more} {adjacency} {seed}")
        shared = others(rng, PERIODS)
        mine, theirs = ((extremes("eve", "p1", 1e9), extremes("eve", "p5", -1e9)) if seed == 0 else
                        (edits(rng, "eve", PERIODS), edits(rng, "eve", PERIODS)))
        with_unit = merge(PERIODS, *shared, mine)
        without = merge(PERIODS, *shared, *([theirs] if adjacency == "replace" else []))
        with quick_path() as path:
            points = [played(f"{path}{i}", steps, kind, PERIODS, adjacency, **more) for i, steps in enumerate((with_unit, without))]
            s = release_row(f"{path}0")["sensitivity"]
        distance = numpy.linalg.norm((points[0] - points[1]).astype(float))
        assert distance <= s
        reached = max(reached, distance / s)
    assert reached > (0.42 if kind == "count_distinct" else 0.75)  # who has rows in one period only counts there once


@pytest.mark.parametrize("adjacency, kind", [("add-remove", "group_count"), ("replace", "count"), ("replace", "sum")])
def test_pure_neighbours(adjacency, kind):
    """Under Laplace noise the bound is in the sum norm."""
    for seed in range(3):
        rng = random.Random(f"pure {kind} {seed}")
        shared = others(rng, PERIODS)
        mine, theirs = edits(rng, "eve", PERIODS), edits(rng, "eve", PERIODS)
        with quick_path() as path:
            points = [played(f"{path}{i}", merge(PERIODS, *shared, *s), kind, PERIODS, adjacency, clip=3, mechanism="laplace")
                      for i, s in enumerate(([mine], [theirs] if adjacency == "replace" else []))]
            s = release_row(f"{path}0")["sensitivity"]
        assert sum(map(abs, points[0] - points[1])) <= s


def test_a_unit_alone_reaches_the_bound():
    """Somebody who counts everything in the first period moves the point by the whole sensitivity, but for roundings."""
    with quick_path() as path:
        points = [played(f"{path}{i}", [visits("eve", "p1", times=50)] * (1 - i) + YEAR, clip=4) for i in range(2)]
        s = release_row(f"{path}0")["sensitivity"]
    distance = numpy.linalg.norm((points[0] - points[1]).astype(float))
    assert 0.999 * s < distance <= s


def test_replaced_units_that_count_in_different_periods():
    """Replace: one unit counts in the first period, the other in the last one. The charge covers this, and nothing
    more."""
    with quick_path() as path:
        first = played(f"{path}0", [visits("eve", "p1", times=9)] + YEAR, adjacency="replace", clip=4)
        last = played(f"{path}1", [visits("eve", "p12", times=9)] + YEAR, adjacency="replace", clip=4)
        played(f"{path}2", YEAR, clip=4)
        row, single = release_row(f"{path}0"), release_row(f"{path}2")
    distance = numpy.linalg.norm((first - last).astype(float))
    assert distance <= row["sensitivity"]
    sizes = [r["sensitivity"] * 2.0 ** r["granularity"] for r in (row, single)]
    angle = reference.matrix(12)[:, 0] @ reference.matrix(12)[:, 11]
    assert sizes[0] / sizes[1] == pytest.approx((2 - 2 * angle) ** 0.5, rel=1e-4)
    assert distance / row["sensitivity"] == pytest.approx(1, rel=1e-4)


def test_coordinates_are_those_of_the_reference():
    """Without its noise, a point is the product of the multipliers with the sums of the periods, rounded, to the last integer."""
    rng = random.Random(5)
    rows = [(f"u{rng.randrange(20)}", rng.choice(YEAR), "north", 1.0) for _ in range(120)]
    with quick_path() as path:
        point = played(f"{path}0", [visits(*row) for row in rows] + YEAR, clip=1000)
        empty = played(f"{path}1", YEAR, clip=1000)
        row = release_row(f"{path}0")
    fine = row["granularity"] - row["shift"]
    exact = [[sum(r[1] == label for r in rows) * 2 ** -fine] for label in YEAR]
    want = sorted(x for (x,) in reference.coordinates(exact, row["shift"]))
    assert sorted(point - empty) == want


def test_others_do_not_change():
    """What one unit does changes nothing that other units count: with little noise, the figures are those without the unit plus its own."""
    periods = YEAR[:6]
    rng = random.Random(6)
    everybody = [(f"u{i % 30}", rng.choice(periods), rng.choice(KEYS), 1.0) for i in range(200)]
    mine = [("eve", rng.choice(periods), rng.choice(KEYS), 1.0) for _ in range(12)]
    found = []
    for rows in (everybody, everybody + mine, mine):
        db = start(":memory:", (), EXACT)
        declare(db, "exact", "group_count", periods, clip=5)
        for label in periods:
            insert(db, [row for row in rows if row[1] == label])
            append(db, label)
        found.append(rows_of(db, "exact"))
    for key in found[0]:
        assert abs(found[1][key][0] - found[0][key][0] - found[2][key][0]) < 9 * 2 * found[0][key][1]


# ---- one person, one entry ------------------------------------------------------------------------------------------------

def erased_and_back(db):
    db.execute("CREATE TABLE away AS SELECT * FROM visit")
    db.execute("DELETE FROM visit")
    append(db, "p2")
    db.execute("INSERT INTO visit SELECT person, 'p3', ward, x FROM away")


@pytest.mark.parametrize("change", [
    None, "UPDATE visit SET x = 0", "DELETE FROM visit WHERE label = 'p1'", "UPDATE visit SET label = 'p2'", "DELETE FROM visit",
    erased_and_back], ids=["no", "lowered", "cancelled", "moved", "erased", "erased and back"])
def test_nobody_counts_more_than_the_clip(change):
    """A person who has counted the whole clip adds nothing more, whatever happens to the rows that counted."""
    db = start(":memory:", [(1, "p1", "north", 1.0)] * 5 + [(2, "p1", "north", 1.0)], EXACT)
    declare(db, "exact", clip=3)
    append(db, "p1")
    if callable(change):
        change(db)
    elif change:
        db.execute(change)
    insert(db, [(1, "p4", "north", 1.0)] * 5 + [(2, "p4", "north", 1.0)] * 5)
    append(db, "p12")
    found = rows_of(db, "exact")
    assert round(found["p1"][0]) == 4
    assert round(sum(found[label][0] for label in YEAR)) == 6, {label: round(found[label][0]) for label in YEAR}


@pytest.mark.parametrize("collation, spellings, persons", [
    ("", (1, 1.0), 1), ("COLLATE NOCASE", ("Ann", "ANN", "ann"), 1), ("COLLATE RTRIM", ("ann", "ann  "), 1), ("", ("ann", "Ann"), 2),
    ("", (1, "1"), 2), ("", ("31", b"31"), 2), ("INTEGER", (7, "7"), 1)])
def test_spellings_of_one_unit_share_an_entry(collation, spellings, persons):
    """Spellings that name one unit have one allowance, in one append and across appends."""
    db = connect()
    db.execute(f"CREATE TABLE stay(person {collation}, label)")
    make_ledger(db, "{}", "stay, person")
    one(db, "SELECT dp_tier('exact', 1e6, 1e9, 1e-6)")
    declare(db, "exact", sql="SELECT label, 1 FROM stay", clip=2)
    for spelling in spellings:
        db.execute("INSERT INTO stay VALUES (?, 'p1'), (?, 'p1')", (spelling, spelling))
    append(db, "p1")
    for spelling in spellings:
        db.execute("INSERT INTO stay VALUES (?, 'p2'), (?, 'p2')", (spelling, spelling))
    append(db, "p2")
    assert [round(rows_of(db, "exact")[label][0]) for label in ("p1", "p2")] == [2 * persons, 0]


def test_linked_tables_share_an_entry():
    """Rows of a linked table belong to the person of their parent, and spend of the same allowance."""
    db = connect()
    db.executescript("CREATE TABLE visit(id INTEGER PRIMARY KEY, person, label); CREATE TABLE exam(visit, label);"
                     "INSERT INTO visit VALUES (1, 'ann', 'p1'), (2, 'ann', 'p2'), (3, 'bob', 'p2');"
                     "INSERT INTO exam VALUES (1, 'p1'), (2, 'p2'), (2, 'p2'), (3, 'p2'), (NULL, 'p2'), (9, 'p2')")
    make_ledger(db, "{}", "visit, person", "exam, visit, visit")
    one(db, "SELECT dp_tier('exact', 1e6, 1e9, 1e-6)")
    declare(db, "exact", sql="SELECT exam.label, 1 FROM exam JOIN visit ON visit.id = exam.visit", clip=2)
    append(db, "p1")
    append(db, "p2")
    assert [round(rows_of(db, "exact")[label][0]) for label in ("p1", "p2")] == [1, 2]


@pytest.mark.parametrize("before, after", [("INTEGER", "TEXT"), ("TEXT", "INTEGER"), ("TEXT", "TEXT COLLATE NOCASE"), ("", "TEXT")])
def test_a_new_type_of_the_unit_is_refused(before, after):
    """The same persons would have other values, and everybody would count up to the clip again."""
    db = connect()
    db.execute(f"CREATE TABLE visit(person {before}, label)")
    db.executemany("INSERT INTO visit VALUES (?, ?)", [(1, "p1"), (1, "p1"), (1, "p2")])
    make_ledger(db, "{}", "visit, person")
    one(db, "SELECT dp_tier('exact', 1e6, 1e9, 1e-6)")
    declare(db, "exact", sql="SELECT label, 1 FROM visit", clip=2)
    assert round(append(db, "p1")) == 2
    db.executescript(f"ALTER TABLE visit RENAME TO old; CREATE TABLE visit(person {after}, label);"
                     "INSERT INTO visit SELECT * FROM old; DROP TABLE old")
    assert "has another type or collation than when 's' was declared" in refused(db, "SELECT dp_append('s', 'p2')")
    db.executescript(f"ALTER TABLE visit RENAME TO old; CREATE TABLE visit(person {before}, label);"
                     "INSERT INTO visit SELECT * FROM old; DROP TABLE old")
    assert round(append(db, "p2")) == (0 if before else 1)  # without a type, the text '1' stays another person than the number


@pytest.mark.parametrize("names", [["ann", "bob"], [1, 2], [0.5, 1.5], [b"ann", "a name of more than 240 bytes" * 10]], ids=str)
def test_threads_and_later_connections_know_the_same_persons(names, tmp_path):
    """The entry of a person is found again on other threads and on connections that were opened later."""
    path = str(tmp_path / "a.db")
    db = start(path, [(name, "p1", "north", 1.0) for name in names for _ in range(2)], EXACT)
    db.execute("UPDATE visit SET rowid = rowid * 20000")  # several ranges, for several threads
    declare(db, "exact", clip=3)
    append(db, "p1")
    for threads, label, want in ((0, "p2", 2), (2, "p3", 0), (0, "p4", 0)):
        db.close()
        db = connect(path)
        db.execute(f"PRAGMA threads = {threads}")
        db.execute("UPDATE visit SET label = ?", (label,))
        assert round(append(db, label)) == want


def test_a_unit_whose_evaluation_fails_spends_nothing():
    """If the question fails for a unit, the unit counts nothing in this append, and its allowance is as before."""
    db = start(":memory:", [(1, "p1", "north", 1.0), (2, "p1", "bad", 1.0), (2, "p1", "north", 1.0)], EXACT)
    declare(db, "exact", sql="SELECT label, CASE ward WHEN 'bad' THEN abs(-9223372036854775807 - 1) ELSE 1 END FROM visit", clip=2)
    append(db, "p1")
    db.execute("UPDATE visit SET ward = 'north'")
    insert(db, [(1, "p2", "north", 1.0)] * 3 + [(2, "p2", "north", 1.0)] * 3)
    append(db, "p2")
    assert [round(rows_of(db, "exact")[label][0]) for label in ("p1", "p2")] == [1, 1 + 2]


def test_persons_without_a_unit_count_nothing():
    db = start(":memory:", [(None, "p1", "north", 1.0)] * 4 + [(1, "p1", "north", 1.0)], EXACT)
    declare(db, "exact", clip=2)
    assert round(append(db, "p1")) == 1
