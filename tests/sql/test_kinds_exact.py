"""What is under the noise: every kind at rate 1e6, where noise is 1/1414 of the clip, against its definition.

Every unit of a table is there COPIES times, under as many names, so that what one unit contributes is seen COPIES times
as large beside the same noise. An answer must lie where its definition and MARGIN standard deviations put it: about
10000 coordinates at 1.3e-15 each, false alarms 1.3e-11 in all.
"""

import json
import math
import random
import struct

import pytest

from kinds_reference import KINDS, Row, aggregate, answer, by_query, numbers
from noise_helpers import one, open_ledger

pytestmark = pytest.mark.alarm(2e-11)

RATE = 1e6
COPIES = 20
KEYS = ["a", "b", 3, 2.5, None, "", "nobody has this", ["a", 1]]
INF = float("inf")

PARAMETERS = {  # several calls of each kind, with a value of every parameter
    "count": [{"clip": 1}, {"clip": 2.5}],
    "count_distinct": [{}],
    "sum": [{"clip": 2.75}, {"clip": 1e-3}],
    "avg": [{"lo": -3, "hi": 5}, {"lo": -2, "hi": 2, "clip": 2}, {"lo": -2, "hi": 2, "clip": 0.02}, {"lo": 0, "hi": 1e6, "clip": 0.5}],
    "var": [{"lo": -3, "hi": 5}, {"lo": -2, "hi": 2, "clip": 3}],
    "stddev": [{"lo": -3, "hi": 5}, {"lo": -1e9, "hi": 1e9, "clip": 1.5}],
    "quantile": [{"q": [0, 0.25, 0.5, 0.9, 1], "lo": -4, "hi": 6}, {"q": 0.3, "lo": 0, "hi": 2, "bins": 8, "clip": 2}],
    "median": [{"lo": -4, "hi": 6}, {"lo": -100, "hi": 100, "bins": 2}],
    "histogram": [{"lo": -4.25, "hi": 6, "bins": 7}, {"lo": 0, "hi": 2.1, "bins": 1, "clip": 2}, {"lo": -5.3, "hi": 5, "bins": 30}],
    "vec_sum": [{"dim": 3, "clip": 4}, {"dim": 1, "clip": 1}],
    "vec_avg": [{"dim": 3, "clip": 4}, {"dim": 3, "clip": 0.5}],
    "group_count": [{"clip": 1, "keys": KEYS}, {"clip": 3, "keys": KEYS}, {"clip": 0.02, "keys": KEYS}],
    "group_sum": [{"clip": 2.5, "keys": KEYS}],
    "group_avg": [{"lo": -3, "hi": 5, "keys": KEYS}, {"lo": 0, "hi": 2, "clip": 2, "keys": KEYS}],
    "ou_count": [{"radius": 50, "clip": 2}, {"radius": 1, "clip": 1, "centre": 30}],
    "ou_sum": [{"clip": 2, "radius": 30}],
    "ou_avg": [{"lo": -3, "hi": 5, "radius": 4}, {"lo": -3, "hi": 5, "radius": 0.01, "centre": -1, "clip": 2}],
    "ou_vec_sum": [{"dim": 3, "clip": 2, "radius": 5}],
    "ou_group_count": [{"radius": 50, "clip": 2, "keys": KEYS}],
    "ou_group_sum": [{"clip": 2, "radius": 50, "keys": KEYS, "centre": 3}],
}


def random_x(rng):
    return rng.choice([lambda: rng.uniform(-5, 5), lambda: rng.randrange(-6, 7), lambda: rng.gauss(0, 1), lambda: rng.uniform(-5, 5),
                       lambda: rng.choice([None, 1e308, -1e308, INF, -INF, 2**63 - 1, -2**63, 5e-324, -0.0]),
                       lambda: rng.choice(["2.5", " -1 ", "x", "", "3abc", "1e1", b"2", b"\xff", b""])])()


def random_key(rng):
    return rng.choice(["a", "b", "a", 3, 3.0, "3", 2.5, "2.5", None, "null", "", "elsewhere", '["a",1]', b"\x00\xff"])


def random_v(rng):
    values = [rng.choice([rng.uniform(-3, 3), rng.randrange(-3, 4)]) for _ in range(3)]
    return rng.choice([
        lambda: json.dumps(values), lambda: json.dumps(values), lambda: struct.pack("<3d", *values), lambda: struct.pack("<3f", *values),
        lambda: json.dumps(values[:1]), lambda: struct.pack("<d", values[0]),
        lambda: rng.choice([None, "", "[]", "[1,2]", "[1,2,x]", "[1,2,NaN]", "7", 7, 2.5, b"123", struct.pack("<3d", 1, INF, 0),
                            struct.pack("<3f", 1, float("nan"), 0), "[1e308,-1e308,3]", "[1,2,3,4]"])])()


def random_unit(rng):
    """A function from the number of a copy to the name of a unit, one of every type."""
    n = rng.randrange(1000)
    return rng.choice([lambda i: 1000 * i + n, lambda i: i + n / 1000 + 1e-4, lambda i: f"{n}:{i}", lambda i: b"%d:%d" % (n, i),
                       lambda i: None if i == 0 else -1 - 1000 * i - n])


def random_table(rng, most=14):
    """Units with one row, some, many; every one COPIES times."""
    rows = []
    for _ in range(rng.randrange(1, most)):
        unit, count = random_unit(rng), rng.choice([1, 1, 2, 3, 8, 30])
        alike = rng.random() < 0.3
        mine = [(random_key(rng), random_x(rng), random_v(rng)) for _ in range(count)]
        if alike:
            mine = [mine[0]] * count
        rows += [Row(*row, unit(i)) for row in mine for i in range(COPIES)]
    rng.shuffle(rows)
    return rows


def fill(db, rows):
    db.execute("CREATE TABLE IF NOT EXISTS t(k, x, v, unit)")
    db.execute("BEGIN")
    db.execute("DELETE FROM t")
    db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    db.execute("COMMIT")


def check(kind, parameters, result, rows, by_unit, adjacency):
    wanted = answer(kind, parameters, rows, by_unit, adjacency, RATE)
    got = numbers(kind, parameters, result)
    assert {(key, component) for key, component, _ in got} == set(wanted) and len(got) == len(wanted)
    if KINDS[kind].form == "object":
        assert [key for key, _, _ in got] == sorted((key for key, _ in wanted), key=str.encode)
    for key, component, value in got:
        low, high = wanted[key, component]
        assert low <= value <= high, (kind, parameters, key, component, low, value, high)


def released(db, kind, parameters, by_unit, source="t", form="query"):
    if form == "query":
        sql, arguments = by_query(kind, parameters, by_unit, source=source)
    else:
        call, arguments = aggregate(kind, parameters, by_unit)
        sql = f"SELECT {call} FROM {source}"
    return one(db, sql, *arguments)


def cases():
    for kind in KINDS:
        for protects in ("unit", "row"):
            if (kind, protects) != ("count_distinct", "row"):
                yield kind, protects


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("kind,protects", cases())
def test_every_kind_is_what_it_says(kind, protects, adjacency):
    """Random tables with heavy units and odd values, in both call forms, in random order."""
    rng = random.Random(f"{kind} {protects} {adjacency}")
    by_unit = protects == "unit"
    db = open_ledger({"exact": RATE}, json.dumps({"protects": protects, "adjacency": adjacency}))
    for _ in range(4):
        rows = random_table(rng)
        for parameters in PARAMETERS[kind]:
            fill(db, rows)
            for form in ("query", "aggregate"):
                check(kind, parameters, released(db, kind, parameters, by_unit, form=form), rows, by_unit, adjacency)
            rng.shuffle(rows)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_reach_a_release_are_all_that_counts(kind):
    """FILTER, WHERE, a join, a subquery, a compound, a view: the same rows, the same answer."""
    rng = random.Random(kind)
    db = open_ledger({"exact": RATE})
    parameters = PARAMETERS[kind][0]
    rows = random_table(rng, 30)
    fill(db, rows)
    db.execute("CREATE TABLE kept(id INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO kept VALUES (?)", [(i,) for i in range(1, len(rows) + 1) if rng.random() < 0.5])
    kept = [rows[i[0] - 1] for i in db.execute("SELECT id FROM kept ORDER BY id")]
    db.execute("CREATE VIEW w AS SELECT t.* FROM t JOIN kept ON id = t.rowid")
    call, arguments = aggregate(kind, parameters, True)
    for sql in (f"{call} FILTER (WHERE rowid IN kept) FROM t",
                f"{call} FROM t WHERE rowid IN kept",
                f"{call} FROM t JOIN kept ON id = t.rowid",
                f"{call} FROM kept LEFT JOIN t ON id = t.rowid",
                f"{call} FROM (SELECT k, x, v, unit FROM t WHERE rowid IN kept ORDER BY random())",
                f"{call} FROM (SELECT * FROM t WHERE rowid IN kept AND rowid % 2 UNION ALL"
                " SELECT * FROM t WHERE rowid IN kept AND NOT rowid % 2)",
                f"{call} FROM w"):
        check(kind, parameters, one(db, "SELECT " + sql, *arguments), kept, True, "add-remove")
    for source in ("t WHERE rowid IN kept", "w", "(SELECT * FROM w ORDER BY x)"):
        check(kind, parameters, released(db, kind, parameters, True, source), kept, True, "add-remove")


RANGES = {"avg": (-3, 5), "var": (0, 16), "stddev": (0, 4), "median": (-4, 6), "quantile": (-4, 6), "ou_avg": (-3, 5),
          "group_avg": (-3, 5), "vec_avg": (-4, 4)}


@pytest.mark.parametrize("rate", [1e6, 1e-6])
@pytest.mark.parametrize("kind,protects", cases())
def test_without_data_there_is_an_answer(kind, protects, rate):
    """No row, NULLs alone, one row: finite answers within their range, at hardly any noise and at any amount of it."""
    by_unit = protects == "unit"
    db = open_ledger({"exact": rate}, json.dumps({"protects": protects}))
    parameters = PARAMETERS[kind][0]
    for rows, form in (([], "query"), ([Row(None, None, None, None)] * 3, "query"), ([Row(None, None, None, 1)], "aggregate"),
                       ([Row("a", 1.5, "[1,2,3]", 1)], "query"), ([Row("a", -INF, b"", 1)], "aggregate")):
        fill(db, rows)
        result = released(db, kind, parameters, by_unit, form=form)
        for _, _, value in numbers(kind, parameters, result):
            low, high = RANGES.get(kind, (-INF, INF))
            assert math.isfinite(value) and low <= value <= high
        if rate == RATE:
            check(kind, parameters, result, rows, by_unit, "add-remove")
    for value, stddev, low, high in db.execute("SELECT value, stddev, low, high FROM dp_value"):
        assert all(map(math.isfinite, (value, stddev, low, high))) and stddev >= 0 and low <= value <= high


@pytest.mark.parametrize("kind", KINDS)
def test_lattices_do_not_depend_on_data(kind):
    """What is public of the noise is fixed before a row is read."""
    rng = random.Random(kind)
    db = open_ledger({"exact": RATE})
    for _ in range(5):
        fill(db, random_table(rng))
        released(db, kind, PARAMETERS[kind][0], True, form=rng.choice(["query", "aggregate"]))
    assert len(db.execute("SELECT DISTINCT granularity, sensitivity, dimension, clip FROM dp_release").fetchall()) == 1
    assert len(db.execute("SELECT DISTINCT clock, rate FROM dp_publication").fetchall()) == 1


def test_options_may_be_given_in_place_of_nothing():
    """clip is an option of averages; the unit is NULL, or left out, where rows are protected."""
    db = open_ledger({"exact": RATE}, '{"protects":"row"}')
    fill(db, [Row("a", 1.0, "[1]", None)] * 100)
    for call in ("dp_avg('exact', x, 0, 2)", "dp_avg('exact', x, 0, 2, NULL)", "dp_avg('exact', x, 0, 2, NULL, 'n')",
                 "dp_avg('exact', x, 0, 2, NULL, '{\"clip\":1}')", "dp_median('exact', x, 0, 2)",
                 "dp_quantile('exact', x, 0.5, 0, 2)", "dp_quantile('exact', x, 0.5, 0, 2, NULL)"):
        assert abs(one(db, f"SELECT {call} FROM t") - 1) <= 0.01
    for call in ("dp_histogram('exact', x, 0, 2, 1)", "dp_vec_sum('exact', v, 1, 1)"):
        assert abs(json.loads(one(db, f"SELECT {call} FROM t"))[0] - 100) <= 0.01
    assert abs(json.loads(one(db, "SELECT dp_group_count('exact', k, 1, NULL, '{\"keys\":[\"a\"]}') FROM t"))["a"] - 100) <= 0.01
