"""Tests the sums of households (dp_within) in lattice steps, without noise: the program `fixed` draws the same noise every time, so
the difference of the points of two tables is the difference of their totals.

The totals of some kinds are compared with a computation in Python's integers, to the last step. The totals of every kind are compared
between neighbours: a table without one person, and one without one household. The sensitivity and the variance are compared with the
proof at many dimensions, factors and rates."""

import fractions
import json
import math
import random
import sqlite3

import pytest

from fixed_noise import run_fixed
from kinds_reference import Row, by_query
from kinds_tables import PARAMETERS, random_key, random_v, random_x

pytestmark = [pytest.mark.alarm(0), pytest.mark.own]

RATE = 1e6
PARTS = 64


def literal(value):
    return sqlite3.connect(":memory:").execute("SELECT quote(?)", (value,)).fetchone()[0].replace("Inf", "9e999")


def values(rows):
    return ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in rows)


def inlined(sql, arguments):
    """Writes the arguments of a statement into its text."""
    first, *rest = sql.split("?")
    return first + "".join(literal(value) + part for value, part in zip(arguments, rest, strict=True))


class Story:
    """A database with people (unit, home) and rows t(k, x, v, unit), and its releases."""

    def __init__(self, people, rows, factor, tier="SELECT dp_tier('exact', 1e6, 1e15, 1e-6, 'rdp')", threads=0):
        self.statements = ["CREATE TABLE t(k, x, v, unit)", "CREATE TABLE person(unit UNIQUE, home)", "SELECT dp_init()",
                           "SELECT dp_protect('t', 'unit'), dp_protect('person', 'unit')", tier, f"PRAGMA threads = {threads}"]
        if factor:
            self.statements.append(f"SELECT dp_within('household', 'person', 'home', {factor})")
        self.statements += [f"INSERT INTO {table} VALUES {values(all_)}" for table, all_ in (("t", rows), ("person", people)) if all_]
        self.names = []

    def ask(self, name, kind, parameters, sql=None):
        text, arguments = by_query(kind, parameters)
        if sql:
            text, arguments = "SELECT dp_release('exact', ?, ?, ?)", (kind, sql, json.dumps(parameters))
        arguments = (*arguments[:-1], json.dumps({**json.loads(arguments[-1]), "name": name}))
        self.statements.append(inlined(text, arguments))

    def run(self, folder):
        """Returns {release: (point, facts)}."""
        path = str(folder / f"{random.getrandbits(60)}.db")
        run_fixed(path, self.statements)
        ledger = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)
        found = {}
        for id_, name, *facts in ledger.execute("SELECT id, name, granularity, shift, sensitivity, dimension FROM dp_release"):
            point = {(key, component): value for key, component, value in ledger.execute(
                "SELECT key, component, value FROM dp_path WHERE release_id = ?", (id_,))}
            clock, = ledger.execute("SELECT clock FROM dp_point WHERE release_id = ?", (id_,)).fetchone()
            found[name] = point, (*facts, clock)
        ledger.close()
        return found


@pytest.fixture
def folder(tmp_path):
    return tmp_path


# ---- to the last step ----------------------------------------------------------------------------------------------


def projected(vector, reach, is_far):
    """The sum of a household, moved as sums/sums.h says."""
    box = reach << 18 if is_far else reach
    vector = {c: max(-box, min(box, value)) for c, value in vector.items()}
    square = sum(value * value for value in vector.values())
    if square <= reach * reach:
        return vector
    n = math.isqrt(square) + 1
    return {c: (abs(value) * reach // n) * (1 if value > 0 else -1) for c, value in vector.items()}


def rounded(total, shift):
    size = (2 * abs(total) + (1 << shift)) >> (shift + 1)
    return size if total >= 0 else -size


def distance(radius, d):
    return radius + 2 * (1 + math.isqrt(d - 1) + 1)


def table_of(rng, sizes):
    """Returns people in homes of these sizes, and one or two rows of each: (k, x, v, unit), with x in eighths."""
    people, rows = [], []
    for home, size in enumerate(sizes):
        for _ in range(size):
            unit = len(people) + 1
            people.append((unit, rng.choice([home, home, home, None]) if size > 1 else rng.choice([home, None])))
            rows += [(rng.choice("abc") if rng.random() < 0.8 else "a", rng.randrange(-80, 80) / 8, "[1,0,0]", unit)
                     for _ in range(rng.choice([1, 1, 2]))]
    rng.shuffle(people)
    rng.shuffle(rows)
    return people, rows


# name: kind, parameters, the vector of one person's rows in numbers, the radius in numbers as a function, how the coordinates are named
EXACT = {
    "count": ("count", {"clip": 1.5}, lambda rows: {"": min(len(rows), fractions.Fraction(3, 2))}, 1.5),
    "distinct": ("count_distinct", {}, lambda rows: {"": 1}, 1),
    "sum": ("sum", {"clip": 5}, lambda rows: {"": max(-5, min(5, sum(fractions.Fraction(x) for _, x, _, _ in rows)))}, 5),
    "groups": ("group_count", {"clip": 2, "keys": ["a", "b", "c"]}, lambda rows: {k: sum(row[0] == k for row in rows) for k in "abc"}, 2),
    "each": ("group_count_distinct", {"clip": 2, "keys": ["a", "b", "c"]}, lambda rows: {k: int(any(row[0] == k for row in rows)) for k in "abc"}, 3 ** 0.5),
}


@pytest.mark.parametrize("factor", [1, 1.015625, 2.5, 4, 1000])
def test_totals_to_the_last_step(folder, factor):
    rng = random.Random(factor)
    people, rows = table_of(rng, [1, 1, 2, 3, 5, 8, 30])
    with_rows, without, alone, threaded = Story(people, rows, factor), Story(people, [], factor), Story(people, rows, 0), None
    shuffled = Story(rng.sample(people, len(people)), rng.sample(rows, len(rows)), factor, threads=3)
    stories = [with_rows, without, shuffled, alone]
    for story in stories:
        for name, (kind, parameters, _, _) in EXACT.items():
            story.ask(name, kind, parameters)
    (found, nothing, again, single) = (story.run(folder) for story in stories)
    home = {unit: place if place is not None else ("alone", unit) for unit, place in people}
    for name, (_, parameters, vector_of, radius) in EXACT.items():
        point, (granularity, shift, sensitivity, dimension, clock) = found[name]
        scale = fractions.Fraction(2) ** (shift - granularity)
        reach = math.ceil(fractions.Fraction(radius) * scale)
        assert 2 ** 52 <= radius * factor * scale < 2 ** 53
        wide = reach * int(factor * PARTS) // PARTS
        homes = {}
        for unit, place in home.items():
            mine = [row for row in rows if row[3] == unit]
            for c, value in vector_of(mine).items():
                steps = int(value * scale)
                assert steps == value * scale
                homes.setdefault(place, {}).setdefault(c, 0)
                homes[place][c] += steps
        totals = {}
        for vector in homes.values():
            for c, value in projected(vector, wide, False).items():
                totals[c] = totals.get(c, 0) + value
        got = {key: point[key, 0] - nothing[name][0][key, 0] for key, _ in point}
        assert got == {c: rounded(total, shift) for c, total in totals.items()}, name
        assert again[name] == found[name]  # whatever the order of rows, people and threads
        d, root = dimension or 1, math.isqrt((dimension or 1) - 1) + 1
        assert sensitivity == (distance(reach, d) >> shift) + 1 + root
        assert clock == math.ceil(sensitivity**2 / fractions.Fraction(2 * RATE)) + 1
        assert (wide >> shift) + root <= factor * sensitivity
        if factor == 1000:  # nobody is cut, so the totals are those of a ledger without households
            assert got == {key: single[name][0][key, 0] - nothing[name][0][key, 0] for key in got}
            assert abs(sensitivity / single[name][1][2] - 1) < 1e-5


# ---- neighbours ----------------------------------------------------------------------------------------------------


ALLOWED = {f"{kind} {i}": p for kind, several in PARAMETERS.items() for i, p in enumerate(several)}
ATTRIBUTES = {"ward": ["a", "b", "3"], "sex": [0, 1], "year": [0, 1, 2]}
CELLS = {"group_count": "SELECT k AS ward, unit % 2 AS sex, unit / 2 % 3 AS year FROM t",
         "group_avg": "SELECT k AS ward, unit % 2 AS sex, unit / 2 % 3 AS year, x FROM t"}
WAYS = {"group_count ways": {"clip": 2, "keys": ATTRIBUTES, "ways": 2}, "group_avg ways": {"clip": 2, "lo": -3, "hi": 5, "keys": ATTRIBUTES, "ways": 3}}
DIAGNOSED = {f"{kind} diagnosed": {**(WAYS.get(f"{kind} ways") or PARAMETERS[kind][0]), "diagnose": True}
             for kind in ("count", "sum", "avg", "histogram", "median", "vec_sum", "group_sum", "group_count_distinct", "group_count", "group_avg")}
LAPLACE = {f"{kind} laplace": {**PARAMETERS[kind][0], "mechanism": "laplace"} for kind in ("count", "count_distinct", "sum")}


def random_people(rng):
    """Returns people (unit, home), and their rows. Some homes are large, and their people alike. Home 0 is the largest: its people
    count as much as they can in the same direction."""
    people = [(100 + i, 0) for i in range(12)]
    rows = [Row("a", 1e9, "[9,0,0]", unit) for unit, _ in people for _ in range(5)]
    for home in range(1, rng.randrange(3, 5)):
        alike = Row(random_key(rng), rng.choice([-1e9, 1e9, random_x(rng)]), rng.choice(["[9,9,9]", random_v(rng)]), None)
        for _ in range(rng.choice([1, 2, 4, 12])):
            unit = len(people) + 1
            people.append((unit, rng.choice([home, home, home, home, home, None])))
            mine = rng.choice([1, 1, 3])
            rows += [alike._replace(unit=unit) if rng.random() < 0.7 else Row(random_key(rng), random_x(rng), random_v(rng), unit) for _ in range(mine)]
    return people, [row for row in rows if rng.random() < 0.95]


def ask_all(story, names):
    for name in names:
        kind, parameters = name.split()[0], dict({**ALLOWED, **LAPLACE, **WAYS, **DIAGNOSED}[name])
        story.ask(name, kind, parameters, CELLS.get(kind) if "ways" in parameters else None)
    return story


def difference(one, other, is_l1=False):
    places = set(one) | set(other)
    sizes = [abs(one.get(c, 0) - other.get(c, 0)) for c in places]
    return sum(sizes) if is_l1 else math.hypot(*sizes)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(12))
def test_a_person_and_a_household(folder, seed):
    """A person moves a release by at most its sensitivity s, and a household by at most f s, of every kind. Home 0 comes close."""
    rng = random.Random(seed)
    factor = rng.choice([1, 1.25, 2, 4, 10])
    for laplace in (False, True):
        names = list(LAPLACE if laplace else {**ALLOWED, **WAYS, **DIAGNOSED})
        tier = "SELECT dp_tier('exact', 1e3, 1e15, 0, 'pure')" if laplace else "SELECT dp_tier('exact', 1e6, 1e15, 1e-6, 'rdp')"
        people, rows = random_people(rng)
        person = rng.choice(people) if seed % 2 else people[0]
        gone = {unit for unit, home in people if home == person[1]} if person[1] is not None else {person[0]}
        tables = [(people, rows)]
        for units in ({person[0]}, gone):
            tables.append(([p for p in people if p[0] not in units], [row for row in rows if row.unit not in units]))
        found = [ask_all(Story(*table, factor, tier), names).run(folder) for table in tables]
        worst = {}
        for name in names:
            (whole, facts), (without_person, _), (without_home, _) = (points[name] for points in found)
            sensitivity = facts[2]
            assert difference(whole, without_person) <= sensitivity, name
            assert difference(whole, without_home) <= factor * sensitivity, name
            part = difference(whole, without_home) / factor / sensitivity
            worst[name.split()[0]] = max(worst.get(name.split()[0], 0), part)
        assert seed % 2 or (max(worst.values()) >= 0.999 and min(worst.values()) >= 0.5), worst


# ---- the charge ----------------------------------------------------------------------------------------------------


def root_up(n):
    return math.isqrt(n - 1) + 1 if n else 0


def shares(factor, d, radius, shift, rate):
    """Returns D, s, s' and V of the proof (ext/sums/sums.h, ext/mechanism/mechanism.h), from a radius in fine steps."""
    moved = radius + 2 * (1 + root_up(d))
    person = (moved >> shift) + 1 + root_up(d)
    household = (int(radius * factor) >> shift) + root_up(d)
    return moved, person, household, math.ceil(person**2 / (2 * fractions.Fraction(rate))) + 1


def test_a_household_is_covered_by_the_charge_of_a_person():
    """On a grid of radii, factors, dimensions and lattices, from the finest on which the radius has 53 bits to the coarsest that is used."""
    rng = random.Random(45)
    for _ in range(10_000):
        factor, d = fractions.Fraction(rng.randrange(64, 64_001), 64), rng.choice([1, 2, 3, 10, rng.randrange(1, 2**20), 2**20])
        bits = rng.randrange(2, 54)
        radius = int(rng.randrange(2 ** (bits - 1), 2**bits) / factor) + 1
        moved, person, household, variance = shares(factor, d, radius, rng.randrange(bits), 2.0 ** rng.randrange(-30, 20))
        assert moved >= radius and household <= factor * person and person**2 <= 2 * 2.0**20 * variance


DIMENSIONS = [1, 2, 3, 4, 5, 9, 10, 17, 100, 1000, 1024, 4095, 4096, 4097, 20_000]


@pytest.mark.parametrize("factor", [1, 1.015625, 1.5, 2.5, 4, 5.625, 63.984375, 1000])
@pytest.mark.sample(4)
def test_the_charge_of_all_dimensions(folder, factor):
    """Groups and vectors of random clips. The ledger's facts are those of the proof, and the lattice of more than 4096 coordinates is
    16 times as fine."""
    rng = random.Random(factor)
    for rate in (2**-20, 0.001, 0.3, 1e6):
        asked = {}
        story = Story([], [], factor, f"SELECT dp_tier('exact', {rate!r}, 1e15, 1e-6, 'rdp')")
        for d in rng.sample(DIMENSIONS[:-2], 5) + rng.sample(DIMENSIONS[-2:], rate == 0.3):
            clip = rng.choice([1, 3, rng.uniform(0.02, 2), rng.uniform(1, 1e6)])
            kind = rng.choice(["group_count", "vec_sum"]) if d <= 4096 else "group_count"
            parameters = {"clip": clip, **({"keys": list(range(d))} if kind == "group_count" else {"dim": d})}
            asked[f"{kind} {d}"] = d, clip
            story.ask(f"{kind} {d}", kind, parameters)
        for name, (_, facts) in story.run(folder).items():
            (granularity, shift, sensitivity, dimension, clock), (d, clip) = facts, asked[name]
            scale = fractions.Fraction(2) ** (shift - granularity)
            radius = math.ceil(fractions.Fraction(clip) * scale)
            assert dimension == d and 2**52 <= clip * factor * scale <= 2**53
            moved, person, household, variance = shares(fractions.Fraction(factor), d, radius, shift, rate)
            assert (sensitivity, clock) == (person, variance) and household <= factor * person, name
            assert 0.999 <= math.sqrt(clock) / 2 ** (24 if d > 4096 else 20) <= 2.001, name
