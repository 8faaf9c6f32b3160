"""Tests the central property for every kind: the vectors of two neighbours are no further apart than the charged sensitivity. The
tests compare the lattice points of two releases, at rates where the noise is small. At rate 1e6, Gaussian noise on a coordinate
is 1/1414 of the sensitivity. At rate 1e3, the scale of Laplace noise is 1/1001 of the sensitivity. With Laplace noise,
distances are in the sum norm."""

import contextlib
import json
import math
import random
import sqlite3

import numpy
import pytest

from kinds_reference import KINDS, Row, aggregate, by_query
from kinds_tables import INF, KEYS, fill, random_key, random_v, random_x
from noise_helpers import connect, one, quick_path

RATE, LAPLACE_RATE = 1e6, 1e3
PAIRS = 14  # number of pairs of neighbours for each combination
MARGIN = 12  # the norm of Gaussian noise exceeds sqrt(coordinates) + MARGIN stddevs with probability below 1e-30
SUM_MARGIN = 45  # the sizes of n Laplace noises add up to more than n + MARGIN sqrt(n) + SUM_MARGIN scales with probability below 1e-18

PARAMETERS = {
    "count": {"clip": 3}, "count_distinct": {}, "sum": {"clip": 2.7}, "avg": {"lo": -3, "hi": 5, "clip": 2},
    "var": {"lo": -3, "hi": 5, "clip": 1.5}, "stddev": {"lo": -3, "hi": 5}, "quantile": {"q": [0.5], "lo": -4, "hi": 6, "bins": 32},
    "median": {"lo": -4, "hi": 6, "bins": 8, "clip": 2}, "histogram": {"lo": -4, "hi": 6, "bins": 7, "clip": 2}, "bounds": {}, "vec_sum": {"dim": 3, "clip": 2.5},
    "vec_avg": {"dim": 3, "clip": 2.5}, "group_count": {"clip": 2, "keys": KEYS}, "group_sum": {"clip": 2.7, "keys": KEYS},
    "group_avg": {"lo": -3, "hi": 5, "keys": KEYS, "clip": 1.5}, "group_var": {"lo": -3, "hi": 5, "keys": KEYS, "clip": 1.5},
    "group_stddev": {"lo": -3, "hi": 5, "keys": KEYS}, "group_count_distinct": {"keys": KEYS},
    "group_histogram": {"lo": -4, "hi": 6, "bins": 7, "clip": 2, "keys": KEYS},
    "group_quantile": {"q": [0.5], "lo": -4, "hi": 6, "bins": 16, "keys": KEYS},
    "group_median": {"lo": -4, "hi": 6, "bins": 8, "clip": 2, "keys": KEYS}, "ou_count": {"clip": 3, "radius": 50}, "ou_count_distinct": {"radius": 50}, "ou_sum": {"clip": 2.7, "radius": 50},
    "ou_avg": {"lo": -3, "hi": 5, "radius": 2}, "ou_vec_sum": {"dim": 3, "clip": 2.5, "radius": 9},
    "ou_group_count": {"clip": 2, "radius": 9, "keys": KEYS}, "ou_group_sum": {"clip": 2.7, "radius": 9, "keys": KEYS},
    "ou_var": {"lo": -3, "hi": 5, "clip": 1.5, "radius": 2}, "ou_stddev": {"lo": -3, "hi": 5, "radius": 2},
    "ou_quantile": {"q": [0.5], "lo": -4, "hi": 6, "bins": 16, "radius": 2}, "ou_median": {"lo": -4, "hi": 6, "bins": 8, "clip": 2, "radius": 2},
    "ou_histogram": {"lo": -4, "hi": 6, "bins": 7, "clip": 2, "radius": 9}, "ou_vec_avg": {"dim": 3, "clip": 2.5, "radius": 2},
    "ou_group_avg": {"lo": -3, "hi": 5, "keys": KEYS, "clip": 1.5, "radius": 2}, "ou_group_var": {"lo": -3, "hi": 5, "keys": KEYS, "radius": 2},
    "ou_group_stddev": {"lo": -3, "hi": 5, "keys": KEYS, "radius": 2}, "ou_group_count_distinct": {"keys": KEYS, "radius": 9},
    "ou_group_histogram": {"lo": -4, "hi": 6, "bins": 7, "clip": 2, "keys": KEYS, "radius": 9},
    "ou_group_quantile": {"q": [0.5], "lo": -4, "hi": 6, "bins": 16, "keys": KEYS, "radius": 2},
    "ou_group_median": {"lo": -4, "hi": 6, "bins": 8, "clip": 2, "keys": KEYS, "radius": 2},
    "private group_count": {"clip": 2, "max_groups": 3}, "private group_sum": {"clip": 2.7, "max_groups": 3},
    "private group_avg": {"lo": -3, "hi": 5, "max_groups": 3}, "private group_var": {"lo": -3, "hi": 5, "max_groups": 3},
    "private group_stddev": {"lo": -3, "hi": 5, "max_groups": 3, "clip": 2}, "private group_count_distinct": {"max_groups": 3, "clip": 1.2},
    "private group_histogram": {"lo": -4, "hi": 6, "bins": 7, "clip": 2, "max_groups": 3},
    "private group_median": {"lo": -4, "hi": 6, "bins": 8, "clip": 2, "max_groups": 3},
    "private group_quantile": {"q": 0.5, "lo": -4, "hi": 6, "bins": 16, "max_groups": 3},
}
PARAMETERS |= {"laplace " + name: {**p, "mechanism": "laplace"} for name, p in PARAMETERS.items() if "ou_" not in name}
DIAGNOSED = ["sum", "count", "avg", "median", "group_sum", "private group_sum", "ou_vec_sum", "laplace sum", "laplace count", "laplace avg",
             "laplace private group_sum"]  # with the counts of clipped units, which are two further coordinates
PARAMETERS |= {"diagnosed " + name: {**PARAMETERS[name], "diagnose": True} for name in DIAGNOSED}


def rows_of(rng, unit):
    """Returns possible rows of one unit, from rows that do not count to hundreds of rows in the same direction."""
    count = rng.choice([1, 1, 3, 200])
    if rng.random() < 0.5:
        row = (rng.choice(["a", "b", 3, rng.randrange(40)]), rng.choice([-1e9, 1e9, -3, 5, INF]),
               rng.choice(["[9,9,9]", "[-1e9,0,0]", "[1e308,1e308,0]"]))
        return [Row(*row, unit)] * count
    if rng.random() < 0.3:
        return [Row(i % 50, rng.choice([-1, 1]) * 1e9, "[1e9,-1e9,1e9]", unit) for i in range(count)]
    return [Row(random_key(rng), random_x(rng), random_v(rng), unit) for _ in range(count)]


def neighbours(rng, by_unit, replace):
    """Returns two tables that differ in the unit 'new' or, if rows are protected, in one row."""
    base = [Row(random_key(rng), random_x(rng), random_v(rng), rng.randrange(6)) for _ in range(rng.randrange(25))]
    mine, other = rows_of(rng, "new"), rows_of(rng, "new")
    if not by_unit:
        mine, other = mine[:1], other[:1]
    a, b = base + mine, base + (other if replace and rng.random() < 0.9 else [])
    rng.shuffle(a)
    rng.shuffle(b)
    return (a, b) if rng.random() < 0.5 else (b, a)


def extremes(kind, by_unit, replace):
    """Returns the pair of neighbours that is furthest apart, made by hand."""
    times = 5 if by_unit else 1
    if kind.split()[-1] in ("var", "stddev") and "laplace" not in kind:
        pair = (5, 0.2)  # far apart in the cone of (1, u, 2u^2 - 1)
    elif "quantile" in kind or "median" in kind or "histogram" in kind:
        pair = (-4, 5.9)
    else:
        pair = (1e9, -1e9)
    if kind.endswith(("group_var", "group_stddev")) and "laplace" not in kind:  # the worst pair of test_sensitivity_is_its_definition
        many, few = (94, 10) if by_unit else (1, 0)
        a = [Row("a", -3, None, "new")] * many + [Row("b", 1 + 4 * 0.234, None, "new")] * few
        return a, [row._replace(k={"a": "b", "b": "a"}[row.k]) for row in a] if replace else []
    keys = ("a", "b") if kind.endswith(("count", "group_count_distinct")) else ("a", "a")
    a = [Row(keys[0], pair[0], "[1e9,0,0]", "new")] * times
    b = [Row(keys[1], pair[1], "[-1e9,0,0]", "new")] * times
    return a, b if replace and kind.split()[-1] not in ("count", "ou_count", "count_distinct", "ou_count_distinct") else []


class Points:
    """Makes releases in a ledger, and reads their points by key and component."""

    def __init__(self, path, protects, adjacency):
        self.db = connect(path)
        one(self.db, "SELECT dp_init(?)", json.dumps({"protects": protects, "adjacency": adjacency}))
        for tier, rate in (("exact", RATE), ("laplace", LAPLACE_RATE)):
            one(self.db, "SELECT dp_tier(?, ?, 1e15, 0.9, 'rdp', 0.4)", tier, rate)
        self.ledger = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)

    def of(self, kind, parameters, by_unit, rows, query):
        fill(self.db, rows)
        tier = parameters.get("mechanism", "exact")
        if query or not rows:
            sql, arguments = by_query(kind, parameters, tier)
        else:
            call, arguments = aggregate(kind, parameters, tier)
            sql = f"SELECT {call} FROM t"
        one(self.db, sql, *arguments)
        release, sensitivity = self.ledger.execute("SELECT id, sensitivity FROM dp_release ORDER BY id DESC LIMIT 1").fetchone()
        point = {(key, component): value for key, component, value in self.ledger.execute(
            "SELECT key, component, value FROM dp_path WHERE release_id = ? AND component <> -1", (release,))}
        clock = one(self.ledger, "SELECT clock FROM dp_path WHERE release_id = ? LIMIT 1", release)
        return point, sensitivity, clock

    def close(self):
        self.ledger.close()
        self.db.close()


@pytest.fixture
def open_points():
    """Returns a function that opens Points(protects, adjacency) in a separate folder, which exists until the end of the test."""
    with contextlib.ExitStack() as stack:
        def start(protects, adjacency):
            points = Points(stack.enter_context(quick_path()), protects, adjacency)
            stack.callback(points.close)
            return points
        yield start


def combinations():
    for name in PARAMETERS:
        for protects in ("unit", "row"):
            if not name.endswith("count_distinct") or protects == "unit":
                yield name, protects


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("name,protects", combinations())
@pytest.mark.sample(12)
def test_neighbours_differ_by_the_sensitivity_at_most(open_points, name, protects, adjacency):
    rng = random.Random(f"{name} {protects} {adjacency}")
    kind, by_unit, replace = name.split()[-1], protects == "unit", adjacency == "replace"
    parameters = dict(PARAMETERS[name])
    private, laplace = "private" in name, "laplace" in name
    if private:
        parameters["key_share"] = 1e-3
    points, worst, sensitivities = open_points(protects, adjacency), 0.0, set()
    for i in range(PAIRS):
        pair = neighbours(rng, by_unit, replace) if i else extremes(name, by_unit, replace)
        if private:
            # If a unit has too many keys, each release chooses anew which keys it keeps. All units except 'new' therefore get one
            # key only.
            pair = [[row._replace(k=["a", "b", 3][row.unit % 3]) if row.unit != "new" else row for row in rows] for rows in pair]
        (a, s, clock), (b, _, _) = (points.of(kind, parameters, by_unit, rows, rng.random() < 0.5) for rows in pair)
        sensitivities.add((s, clock))
        places = set(a) | set(b)
        differences = [abs(a.get(c, 0) - b.get(c, 0)) for c in places]
        difference = sum(differences) if laplace else math.hypot(*differences)
        noise = math.sqrt(2 * clock) * (math.sqrt(len(places)) + MARGIN)
        if laplace:  # each place has the noise of two releases, and the size of Laplace noise has an exponential distribution
            draws = 2 * len(places)
            noise = math.sqrt(clock / 2) * (draws + MARGIN * math.sqrt(draws) + SUM_MARGIN)
        assert difference <= s + noise, pair
        worst = max(worst, difference / s)
    assert len(sensitivities) == 1
    if laplace:
        z = s / math.isqrt(clock // 2)
        assert math.isclose(z + math.exp(-z) - 1, LAPLACE_RATE, rel_tol=1e-4)
    else:
        assert math.isclose(s**2 / (2 * clock), RATE, rel_tol=1e-9)
    # At least one pair, made by hand or random, must come close to the charged sensitivity.
    assert worst >= 0.7, worst
    assert one(points.db, "SELECT dp_verify()") == "ok"


def test_every_kind_is_here():
    assert set(KINDS) <= set(PARAMETERS)


@pytest.mark.parametrize("name", [name for name in PARAMETERS if name.split()[-1].removeprefix("ou_") != "count_distinct"])
@pytest.mark.sample(12)
def test_sensitivity_is_its_definition(open_points, name):
    """The integer sensitivity is the radius of a unit's ball in lattice steps, plus the rounding of each coordinate.
    Under 'replace', the sensitivity is at most twice as large, and sqrt(2) times as large for counts."""
    kind, p = name.split()[-1], PARAMETERS[name]
    base = kind.removeprefix("ou_")
    found = {}
    for adjacency in ("add-remove", "replace"):
        points = open_points("unit", adjacency)
        more = {"key_share": 0.5} if "private" in name else {}
        _, sensitivity, _ = points.of(kind, {**p, **more}, True, [Row("a", 1, "[1,2,3]", 1)], True)
        found[adjacency] = sensitivity * 2.0 ** one(points.ledger, "SELECT granularity FROM dp_release")
    clip = p.get("clip", 1)
    counts = base.endswith(("quantile", "median", "histogram", "bounds", "group_count", "group_count_distinct"))
    selects = "private" in name and base in (
        "group_sum", "group_histogram", "group_quantile", "group_median")  # a count of units beside the vector
    radius = clip
    part = (3 / 64 if "laplace" in name else 5 / 16) if "diagnosed" in name else 0  # of the sensitivity; the counts of clipped units have it
    found = {adjacency: size / (1 + part if "laplace" in name else math.hypot(1, part)) for adjacency, size in found.items()}
    if "laplace" in name:
        once = 0  # the part of the radius for coordinates that are the same in all units
        if kind.endswith(("quantile", "median")):
            radius *= math.ceil(math.log2(p["bins"]) / 4)  # levels
        elif kind == "vec_avg":
            once = clip / 2  # the count (of vectors with three numbers)
        if selects:
            radius *= 1.25
        twice = 1 if kind == "count" else 2
        assert found["add-remove"] == pytest.approx(radius + once, rel=1e-4) and found["add-remove"] >= (radius + once) * (1 - 1e-12)
        # two units with rows have the same count, and a unit without rows is nothing: `once` is at most the radius
        assert found["replace"] == pytest.approx(twice * radius, rel=1e-4) and found["replace"] >= twice * radius * (1 - 1e-12)
        return
    if base.endswith(("quantile", "median")):
        radius *= math.sqrt(math.log2(p["bins"])) * (math.sqrt(5) / 2 if selects else 1)
    elif base.endswith(("var", "stddev")):
        radius *= math.sqrt(3)
    elif base.endswith("avg") or selects:
        radius *= math.sqrt(5) / 2
    assert found["add-remove"] == pytest.approx(radius, rel=1e-5) and found["add-remove"] >= radius * (1 - 1e-12)
    if kind in ("count", "ou_count"):
        assert found["replace"] == pytest.approx(radius, rel=1e-5)
    elif counts:
        assert found["replace"] == pytest.approx(math.sqrt(2) * radius, rel=1e-5)
    elif base in ("var", "stddev"):  # the worst pair is (1, 1, 1) and (1, v, 2v^2 - 1) with v = (sqrt(1/2) - 1)/2
        v = (math.sqrt(0.5) - 1) / 2
        apart = math.hypot(1 - v, 2 - 2 * v * v) / math.sqrt(3)
        assert apart * radius * (1 - 1e-12) <= found["replace"] <= apart * radius * (1 + 1e-5)
    elif base in ("group_var", "group_stddev"):  # worst: two units with (n, m) and (m, n) rows in two keys, at u = -1 and u = 0.234
        u = numpy.linspace(-1, 1, 4001)
        q = numpy.stack([numpy.ones_like(u), u, 2 * u * u - 1])
        largest = max(numpy.linalg.eigvalsh([[3, -w], [-w, size]])[1] for w, size in zip(numpy.array([1, -1, 1]) @ q, (q * q).sum(axis=0)) if w < 0)
        assert found["replace"] == pytest.approx(math.sqrt(2 * largest) * clip, rel=1e-5)
        assert found["replace"] >= math.sqrt(2 * largest) * clip
    else:
        assert radius * math.sqrt(2) * (1 - 1e-12) <= found["replace"] <= 2 * radius * (1 + 1e-5)
