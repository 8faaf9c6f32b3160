"""Calls of every kind, and random tables for them with odd values and heavy units.

A table contains every unit COPIES times under different names. The contribution of one unit is therefore COPIES times as
large, and the noise is the same.
"""

import json
import struct

import numpy
import noise_helpers
from kinds_reference import KINDS, Row

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
    "quantile": [{"q": [0, 0.25, 0.5, 0.9, 1], "lo": -4, "hi": 6}, {"q": 0.3, "lo": 0, "hi": 2, "bins": 8, "clip": 2},
                 {"q": [0, 0.25, 0.5, 0.9, 1], "lo": -4, "hi": 6.25, "grid": 0.5}, {"q": 0.5, "lo": -2, "hi": 5, "grid": 1, "bins": 4}],
    "median": [{"lo": -4, "hi": 6}, {"lo": -100, "hi": 100, "bins": 2}, {"lo": -4, "hi": 6, "grid": 1, "clip": 2}],
    "histogram": [{"clip": 1, "lo": -4.25, "hi": 6, "bins": 7}, {"lo": 0, "hi": 2.1, "bins": 1, "clip": 2}, {"clip": 1, "lo": -5.3, "hi": 5, "bins": 30}],
    "bounds": [{}],
    "vec_sum": [{"dim": 3, "clip": 4}, {"dim": 1, "clip": 1}],
    "vec_avg": [{"dim": 3, "clip": 4}, {"dim": 3, "clip": 0.5}],
    "group_count": [{"clip": 1, "keys": KEYS}, {"clip": 3, "keys": KEYS}, {"clip": 0.02, "keys": KEYS}],
    "group_sum": [{"clip": 2.5, "keys": KEYS}],
    "group_avg": [{"lo": -3, "hi": 5, "keys": KEYS}, {"lo": 0, "hi": 2, "clip": 2, "keys": KEYS}],
    "group_var": [{"lo": -3, "hi": 5, "keys": KEYS}, {"lo": -2, "hi": 2, "clip": 3, "keys": KEYS}],
    "group_stddev": [{"lo": -3, "hi": 5, "keys": KEYS}, {"lo": -1e9, "hi": 1e9, "clip": 0.5, "keys": KEYS}],
    "group_count_distinct": [{"keys": KEYS}, {"clip": 2, "keys": KEYS}, {"clip": 9, "keys": KEYS}],
    "group_histogram": [{"clip": 1, "lo": -4.25, "hi": 6, "bins": 7, "keys": KEYS}, {"lo": 0, "hi": 2.1, "bins": 1, "clip": 2, "keys": KEYS}],
    "group_quantile": [{"q": [0, 0.25, 0.5, 0.9, 1], "lo": -4, "hi": 6, "bins": 64, "keys": KEYS}, {"q": 0.3, "lo": 0, "hi": 2, "clip": 2, "keys": KEYS},
                       {"q": [0.1, 0.8], "lo": -4, "hi": 6.25, "grid": 0.5, "keys": KEYS}],
    "group_median": [{"lo": -4, "hi": 6, "bins": 32, "keys": KEYS}, {"lo": -4, "hi": 6, "grid": 1, "clip": 2, "keys": KEYS}],
    "ou_count": [{"radius": 50, "clip": 2}, {"radius": 1, "clip": 1, "centre": 30}],
    "ou_count_distinct": [{"radius": 50}, {"radius": 1, "centre": 30}],
    "ou_sum": [{"clip": 2, "radius": 30}],
    "ou_avg": [{"lo": -3, "hi": 5, "radius": 4}, {"lo": -3, "hi": 5, "radius": 0.01, "centre": -1, "clip": 2}],
    "ou_vec_sum": [{"dim": 3, "clip": 2, "radius": 5}],
    "ou_group_count": [{"radius": 50, "clip": 2, "keys": KEYS}],
    "ou_group_sum": [{"clip": 2, "radius": 50, "keys": KEYS, "centre": 3}],
    "ou_var": [{"lo": -3, "hi": 5, "radius": 4}, {"lo": -2, "hi": 2, "radius": 0.5, "centre": 2}],
    "ou_stddev": [{"lo": -3, "hi": 5, "radius": 1.5}, {"lo": -3, "hi": 5, "radius": 0.5, "centre": 1, "clip": 2}],
    "ou_quantile": [{"q": [0, 0.25, 0.5, 0.9, 1], "lo": -4, "hi": 6, "radius": 2}, {"q": 0.3, "lo": 0, "hi": 2, "bins": 8, "radius": 9}],
    "ou_median": [{"lo": -4, "hi": 6, "radius": 5}, {"lo": -4, "hi": 6, "radius": 0.25, "centre": -1, "bins": 64},
                  {"lo": -4, "hi": 6, "radius": 1.75, "centre": 0, "grid": 0.5}],
    "ou_histogram": [{"clip": 1, "lo": -4.25, "hi": 6, "bins": 7, "radius": 50}, {"clip": 1, "lo": 0, "hi": 2.1, "bins": 3, "radius": 20, "centre": 10}],
    "ou_vec_avg": [{"dim": 3, "clip": 4, "radius": 0.5}, {"dim": 2, "clip": 4, "radius": 9, "centre": 1}],
    "ou_group_avg": [{"lo": -3, "hi": 5, "radius": 4, "keys": KEYS}, {"lo": -3, "hi": 5, "radius": 0.5, "centre": 0, "keys": KEYS}],
    "ou_group_var": [{"lo": -3, "hi": 5, "radius": 4, "keys": KEYS}, {"lo": -2, "hi": 2, "radius": 0.5, "centre": 2, "keys": KEYS}],
    "ou_group_stddev": [{"lo": -3, "hi": 5, "radius": 1.5, "keys": KEYS}],
    "ou_group_count_distinct": [{"radius": 50, "keys": KEYS}, {"radius": 50, "clip": 2, "keys": KEYS, "centre": 3}],
    "ou_group_histogram": [{"clip": 1, "lo": -4.25, "hi": 6, "bins": 7, "radius": 50, "keys": KEYS}],
    "ou_group_quantile": [{"q": [0.25, 0.5, 0.9], "lo": -4, "hi": 6, "radius": 2, "bins": 64, "keys": KEYS},
                          {"q": 0.3, "lo": 0, "hi": 2, "bins": 8, "radius": 9, "keys": KEYS}],
    "ou_group_median": [{"lo": -4, "hi": 6, "radius": 5, "bins": 16, "keys": KEYS}],
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
    """Returns a function that maps the number of a copy to the name of a unit. The names have all SQL types."""
    n = rng.randrange(1000)
    return rng.choice([lambda i: 1000 * i + n, lambda i: i + n / 1000 + 1e-4, lambda i: f"{n}:{i}", lambda i: b"%d:%d" % (n, i),
                       lambda i: None if i == 0 else -1 - 1000 * i - n])  # rows without a unit belong to nobody


def random_table(rng, most=14):
    """Returns a table of units with one, some or many rows. Every unit occurs COPIES times."""
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
    """Replaces the protected table t(k, x, v, unit) by these rows."""
    noise_helpers.fill(db, rows, "k, x, v, unit")


def cases():
    for kind in KINDS:
        for protects in ("unit", "row"):
            if not kind.endswith("count_distinct") or protects == "unit":
                yield kind, protects


# ---- one call of each kind, and few rows ---------------------------------------------------------------------------

THREE = ["a", "b", "c"]
CALLS = {
    "count": {"clip": 2}, "count_distinct": {}, "sum": {"clip": 3}, "avg": {"lo": -1, "hi": 5, "clip": 2}, "var": {"lo": -1, "hi": 5},
    "stddev": {"lo": -1, "hi": 5}, "quantile": {"q": [0.1, 0.5, 1], "lo": -1, "hi": 5, "bins": 32}, "median": {"lo": -1, "hi": 5, "bins": 8},
    "histogram": {"clip": 1, "lo": -1, "hi": 5, "bins": 6}, "bounds": {}, "vec_sum": {"dim": 3, "clip": 4}, "vec_avg": {"dim": 3, "clip": 4},
    "group_count": {"clip": 2, "keys": THREE}, "group_sum": {"clip": 3, "keys": THREE}, "group_avg": {"lo": -1, "hi": 5, "keys": THREE},
    "group_var": {"lo": -1, "hi": 5, "keys": THREE}, "group_stddev": {"lo": -1, "hi": 5, "keys": THREE, "clip": 2},
    "group_count_distinct": {"keys": THREE, "clip": 1.25}, "group_histogram": {"clip": 1, "lo": -1, "hi": 5, "bins": 3, "keys": THREE},
    "group_quantile": {"q": [0.1, 0.5, 1], "lo": -1, "hi": 5, "bins": 8, "keys": THREE}, "group_median": {"lo": -1, "hi": 5, "bins": 8, "keys": THREE},
    "ou_count": {"radius": 60, "clip": 2, "centre": 50}, "ou_count_distinct": {"radius": 30}, "ou_sum": {"clip": 3, "radius": 4}, "ou_avg": {"lo": -1, "hi": 5, "radius": 0.5},
    "ou_vec_sum": {"dim": 3, "clip": 4, "radius": 30, "centre": 2}, "ou_group_count": {"radius": 40, "clip": 2, "keys": THREE},
    "ou_group_sum": {"clip": 3, "radius": 20, "keys": THREE, "centre": -1},
    "ou_var": {"lo": -1, "hi": 5, "radius": 5}, "ou_stddev": {"lo": -1, "hi": 5, "radius": 3},
    "ou_quantile": {"q": [0.1, 0.5, 1], "lo": -1, "hi": 5, "bins": 16, "radius": 1}, "ou_median": {"lo": -1, "hi": 5, "bins": 8, "radius": 3},
    "ou_histogram": {"clip": 1, "lo": -1, "hi": 5, "bins": 6, "radius": 40}, "ou_vec_avg": {"dim": 3, "clip": 4, "radius": 0.5},
    "ou_group_avg": {"lo": -1, "hi": 5, "keys": THREE, "radius": 0.1}, "ou_group_var": {"lo": -1, "hi": 5, "keys": THREE, "radius": 4},
    "ou_group_stddev": {"lo": -1, "hi": 5, "keys": THREE, "radius": 2}, "ou_group_count_distinct": {"keys": THREE, "radius": 20},
    "ou_group_histogram": {"clip": 1, "lo": -1, "hi": 5, "bins": 3, "keys": THREE, "radius": 30},
    "ou_group_quantile": {"q": [0.1, 0.5, 1], "lo": -1, "hi": 5, "bins": 8, "keys": THREE, "radius": 1},
    "ou_group_median": {"lo": -1, "hi": 5, "bins": 8, "keys": THREE, "radius": 0.25},
}


def few_rows(units=40):
    return [Row("abcd"[i % 4], i % 5 * 0.9, f"[{i % 3},{i % 4 - 1},0.5]", i // 2) for i in range(2 * units)]


def consistent(nodes, levels):
    """Returns the counts of the leaves that best fit the noisy counts of all nodes except the root, by least
    squares. `levels` is that of kinds_reference.py."""
    design = numpy.array([[leaf >> (levels[-1] - level) == node for leaf in range(1 << levels[-1])]
                          for level in levels for node in range(1 << level)], dtype=float)
    return numpy.linalg.lstsq(design, nodes, rcond=None)[0]
