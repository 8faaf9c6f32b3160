"""Reference implementation of every kind of release: the SQL of a call, and the range of its answer.

No code of the extension is used here. A release is a vector of coordinates. The rows of each unit make a sparse vector, which is
scaled into a ball. These vectors are added up. Noise of the same standard deviation is added to every coordinate, and the answer
is computed from the noisy vector. For each published number, `answer()` returns an interval. The interval contains the number
unless the noise of some coordinate exceeds MARGIN standard deviations. For one coordinate, this has probability TAIL.
"""

import bisect
import functools
import itertools
import json
import math
import sqlite3
import struct
from collections import namedtuple
from fractions import Fraction

from scipy import stats

MARGIN = 8.0
TAIL = 1.3e-15  # the probability that a Gaussian lies beyond eight standard deviations on either side

Kind = namedtuple("Kind", "columns bounds form")  # columns of the query, names of bounds, 'number' or 'array' or 'object'

Statistic = namedtuple("Statistic", "columns bounds last form keyed", defaults=("", "number", True))

STATISTICS = {  # columns, bounds before the radius, bounds after the radius, the form without keys, whether there are groups
    "count": Statistic("x", "", "clip"),
    "count_distinct": Statistic("", ""),
    "sum": Statistic("x", "clip"),
    "avg": Statistic("x", "lo hi"),
    "var": Statistic("x", "lo hi"),
    "stddev": Statistic("x", "lo hi"),
    "quantile": Statistic("x", "q lo hi", form="array"),
    "median": Statistic("x", "lo hi"),
    "histogram": Statistic("x", "lo hi bins", form="array"),
    "bounds": Statistic("x", "", form="array", keyed=False),
    "vec_sum": Statistic("v", "dim clip", form="array", keyed=False),
    "vec_avg": Statistic("v", "dim clip", form="array", keyed=False),
}


def product():
    """Returns all kinds: each statistic, with and without a public bound, with and without keys. Only bounds have no radius."""
    for radius, keyed in itertools.product((False, True), repeat=2):
        for name, row in STATISTICS.items():
            if (keyed and not row.keyed) or (radius and name == "bounds"):
                continue
            columns = ("k" if name == "count" else f"k {row.columns}".strip()) if keyed else row.columns
            bounds = " ".join(filter(None, (row.bounds, "radius" if radius else "", row.last)))
            yield "ou_" * radius + "group_" * keyed + name, Kind(columns, bounds, "object" if keyed else row.form)


KINDS = dict(product())
LINEAR = [k for k in KINDS if not any(k.endswith(word) for word in ("avg", "var", "stddev", "quantile", "median", "bounds"))]
ROWS_COUNT = [kind for kind in KINDS if kind.removeprefix("ou_") in (  # kinds whose clip is a number of rows
    "count", "avg", "var", "stddev", "quantile", "median", "histogram", "group_count", "group_avg", "group_var", "group_stddev",
    "group_histogram", "group_quantile", "group_median")]

Row = namedtuple("Row", "k x v unit")


# ---- calls ---------------------------------------------------------------------------------------------------------


def argument(parameters, bound):
    """Returns a bound as an SQL value; a list becomes JSON."""
    value = parameters.get(bound, 1)
    return json.dumps(value) if isinstance(value, list) else value


def aggregate(kind, parameters, tier="exact"):
    """Returns the SQL of a call of the aggregate with ? in the place of each parameter, and the list of parameters."""
    bounds = KINDS[kind].bounds.split()
    options = {k: v for k, v in parameters.items() if k not in bounds}
    arguments = [tier] + [argument(parameters, b) for b in bounds]
    sql = ["?"] + KINDS[kind].columns.split() + ["?"] * len(bounds)
    if options:
        sql.append("?")
        arguments.append(json.dumps(options))
    return f"dp_{kind}({', '.join(sql)})", arguments


def by_query(kind, parameters, tier="exact", source="t"):
    """Returns the SQL and the parameters of a call of dp_release() that makes the same release."""
    columns = ", ".join(KINDS[kind].columns.split()) or "1"
    return "SELECT dp_release(?, ?, ?, ?)", [tier, kind, f"SELECT {columns} FROM {source}", json.dumps(parameters)]


def numbers(kind, parameters, result):
    """Returns an answer as a list of (key, component, value)."""
    form = KINDS[kind].form
    if kind == "bounds" and result is None:
        return []
    if form == "array" and isinstance(parameters.get("q"), float):
        form = "number"
    if form == "number":
        assert isinstance(result, float)
        return [("", 0, result)]
    parsed = json.loads(result)
    if form == "array":
        assert isinstance(parsed, list)
        return [("", i, x) for i, x in enumerate(parsed)]
    assert isinstance(parsed, dict)
    return [(k, i, x) for k, found in parsed.items() for i, x in enumerate(found if isinstance(found, list) else [found])]


# ---- values --------------------------------------------------------------------------------------------------------

_plain = sqlite3.connect(":memory:")
_plain.execute("CREATE TABLE n(x REAL)")
_plain.execute("INSERT INTO n VALUES (NULL)")


def number(x):
    """Returns the number of a value, or None. A text is a number if a REAL column of SQLite stores it as one."""
    _plain.execute("UPDATE n SET x = ?", (x,))
    return _plain.execute("SELECT iif(typeof(x) = 'real', x, NULL) FROM n").fetchone()[0]


def counts_row(kind, row):
    """Returns whether a row counts at all: `count` takes any value that is not NULL, other kinds take numbers."""
    columns = KINDS[kind].columns.split()
    if "v" in columns and row.v is None:
        return False
    return "x" not in columns or (row.x is not None if kind.removeprefix("ou_") == "count" else number(row.x) is not None)


def identity(unit):
    """Returns the identity of a unit. 1 and 1.0 are the same unit; '1' and x'31' are other units."""
    return ("number", unit) if isinstance(unit, (int, float)) else (type(unit), unit)


def key_text(key):
    if key is None:
        return "null"
    if isinstance(key, bytes):
        return f"x'{key.hex()}'"
    if isinstance(key, float) and key.is_integer() and abs(key) < 2**63:
        return str(int(key))
    if isinstance(key, float):
        return _plain.execute("SELECT printf('%!.15g', ?)", (key,)).fetchone()[0]
    return str(key)


def vector(v, dim):
    """Reads a JSON array of dim numbers, or a blob of dim float32 or float64. Any other value gives zeros."""
    zeros = [0.0] * dim
    if isinstance(v, bytes):
        form = {4 * dim: "f", 8 * dim: "d"}.get(len(v))
        if not form:
            return zeros
        found = list(struct.unpack(f"<{dim}{form}", v))
        return found if all(map(math.isfinite, found)) else zeros
    if not isinstance(v, str):
        return zeros
    try:
        found = json.loads(v)
    except ValueError:
        return zeros
    if not isinstance(found, list) or len(found) != dim:
        return zeros
    if not all(type(x) in (int, float) and abs(x) < 1.7e308 for x in found):  # a comparison with nan is false
        return zeros
    return [float(x) for x in found]


def norm(values):
    return math.hypot(*values)


def clamp(x, low, high):
    return min(max(x, low), high)


def centred(x, p):
    return clamp((x - (p["lo"] + p["hi"]) / 2) / ((p["hi"] - p["lo"]) / 2), -1, 1)


def grid_values(p):
    """Returns the number of values lo + k * grid in the range. The tests use dyadic grids, so the division is exact."""
    return int((p["hi"] - p["lo"]) // p["grid"]) + 1


def grid_share(p):
    """Returns the number of grid values in a leaf."""
    return -(-grid_values(p) // p["bins"])


@functools.cache
def edges(lo, hi, bins):
    """Returns the edges of the bins: the doubles nearest to lo + k (hi - lo)/bins, for lo and hi as decimals."""
    lo, hi = Fraction(repr(float(lo))), Fraction(repr(float(hi)))
    return [float(lo + (hi - lo) * Fraction(k, bins)) for k in range(bins + 1)]


def bin_of(x, p):
    if "grid" in p:
        nearest = math.floor((clamp(x, p["lo"], p["hi"]) - p["lo"]) / p["grid"] + 0.5)
        return min(nearest, grid_values(p) - 1) // grid_share(p)
    return min(max(bisect.bisect_right(edges(p["lo"], p["hi"], p["bins"]), x) - 1, 0), p["bins"] - 1)


MIDDLE = 256  # the bin of 0 among the bins of bounds


def exponent_bin(x):
    """Returns the bin of a number, which depends on its sign and binary exponent. Numbers of size 2^-128 or less are in the bin
    of 0. All numbers above 2^127 are in the last bin, and all numbers below -2^127 are in the first bin."""
    exponents = [e for e in range(-127, 129) if abs(x) > 2.0 ** (e - 1)]
    return MIDDLE + len(exponents) * (1 if x > 0 else -1)


def exponent_ends(i):
    """Returns the two ends of a bin. Each is 0 or a power of two with a sign."""
    e = abs(i - MIDDLE) - 128
    ends = (0, 0) if i == MIDDLE else (2.0 ** (e - 1), 2.0**e)
    return ends if i >= MIDDLE else (-ends[1], -ends[0])


def bounds_threshold(sigma):
    """Returns the threshold for a count. With probability 0.999, the noise of each of the 513 bins is below the threshold."""
    return sigma * stats.norm.isf(-math.expm1(math.log1p(-1e-3) / 513))


def levels(p):
    """Returns the logarithm of the number of nodes, for each level of the tree: one bit a level, or about four in the sum norm."""
    bits = p["bins"].bit_length() - 1
    count = math.ceil(bits / 4) if is_l1(p) else bits
    return [level * bits // count for level in range(1, count + 1)]


# ---- one unit ------------------------------------------------------------------------------------------------------


def scaled(vector, factor):
    return {c: factor * value for c, value in vector.items()}


def is_l1(p):
    """Returns whether the noise is Laplace noise. The vector of a unit is then bounded in the sum norm."""
    return p.get("mechanism") == "laplace"


def into_ball(vector, radius, p):
    size = (sum(map(abs, vector.values())) if is_l1(p) else norm(vector.values())) if vector else 0
    return scaled(vector, radius / size) if size > radius else vector


def added(pairs):
    """Adds up values by coordinate. Values beyond any clip saturate, so that opposite infinities cancel."""
    columns = {}
    for c, value in pairs:
        columns.setdefault(c, []).append(value)
    return {c: math.fsum(values) for c, values in columns.items()}


def count_factor(dim):
    """Returns the factor of the count in an average of vectors under Laplace noise: the power of two that is nearest to
    dim^(-1/3)."""
    return 2.0 ** -round(math.log2(dim) / 3)


def shares(kind, x, p):
    """Returns what one row adds to each component of an average or a spread with Laplace noise. The numbers are not negative, and
    their sum is 1."""
    w = (1 + centred(number(x), p)) / 2
    return [w, 1 - w] if kind.endswith("avg") else [(1 - w) ** 2, 2 * w * (1 - w), w**2]


def contribution(kind, p, rows):
    """Returns the coordinates of one unit: {(cell, component): value}."""
    kind = kind.removeprefix("ou_")
    clip = p.get("clip", 1)
    far = 2.0**37 * clip  # values of rows beyond `far` saturate

    def x_of(row):
        return clamp(number(row.x), -far, far)

    if kind == "count_distinct":
        return {(0, 0): 1}
    if kind in ("count", "ou_count"):
        return {(0, 0): min(len(rows), clip)}
    if kind in ("sum", "ou_sum"):
        return {(0, 0): clamp(math.fsum(map(x_of, rows)), -clip, clip)}
    if kind in ("avg", "var", "stddev") and is_l1(p):
        return scaled(added(((0, j), share) for row in rows for j, share in enumerate(shares(kind, row.x, p))), min(1, clip / len(rows)))
    if kind in ("group_avg", "group_var", "group_stddev") and is_l1(p):
        return scaled(added(((key_text(row.k), j), share) for row in rows for j, share in enumerate(shares(kind, row.x, p))),
                      min(1, clip / len(rows)))
    if kind in ("avg", "ou_avg", "var", "stddev"):
        us = [centred(number(row.x), p) for row in rows]
        factor = min(1, clip / len(rows))
        if kind.endswith("avg"):
            return scaled({(0, 0): len(rows) / 2, (0, 1): math.fsum(us)}, factor)
        return scaled({(0, 0): len(rows), (0, 1): math.fsum(us), (0, 2): math.fsum(2 * u * u - 1 for u in us)}, factor)
    if kind == "bounds":
        return into_ball(added(((exponent_bin(number(row.x)), 0), 1) for row in rows), 1, p)
    if kind == "histogram":
        return into_ball(added(((bin_of(number(row.x), p), 0), 1) for row in rows), clip, p)
    if kind == "group_histogram":
        return into_ball(added(((key_text(row.k), bin_of(number(row.x), p)), 1) for row in rows), clip, p)
    if kind.endswith(("quantile", "median")):
        cells = [key_text(row.k) if kind.startswith("group") else "" for row in rows]
        weights = [min(1, clip / cells.count(cell)) for cell in cells]  # all rows of a unit in a cell weigh the same
        nodes = [((level, bin_of(number(row.x), p) >> (levels(p)[-1] - level)), cell, weight)
                 for row, cell, weight in zip(rows, cells, weights) for level in levels(p)]
        return into_ball(added(((cell, node) if kind.startswith("group") else node, weight) for node, cell, weight in nodes),
                         clip * (len(levels(p)) if is_l1(p) else math.sqrt(len(levels(p)))), p)
    if kind in ("vec_sum", "ou_vec_sum"):
        return into_ball(added(((0, j), clamp(value, -far, far)) for row in rows for j, value in enumerate(vector(row.v, p["dim"]))),
                         clip, p)
    if kind == "vec_avg":
        pairs = [((0, 0), clip * (count_factor(p["dim"]) if is_l1(p) else 0.5)) for _ in rows]
        for row in rows:
            v = vector(row.v, p["dim"])
            most = max(map(abs, v))
            size = sum if is_l1(p) else norm
            factor = min(1, clip / most / size([abs(value) / most for value in v])) if most else 1
            pairs += [((0, 1 + j), value * factor) for j, value in enumerate(v)]
        return scaled(added(pairs), 1 / len(rows))
    counts = added((key_text(row.k), 1) for row in rows)
    if kind == "group_count_distinct":
        return into_ball({(k, 0): 1 for k in counts}, clip, p)
    if kind in ("group_count", "ou_group_count"):
        return into_ball({(k, 0): n for k, n in counts.items()}, clip, p)
    if kind in ("group_sum", "ou_group_sum"):
        sums = into_ball(added(((key_text(row.k), 1), x_of(row)) for row in rows), clip, p)
        return {**sums, **scaled(into_ball({(k, 0): n for k, n in counts.items()}, 1, p), clip / (4 if is_l1(p) else 2))}
    pairs = []
    for row in rows:
        u = centred(number(row.x), p)
        numbers_of_row = {"group_avg": (0.5, u), "group_var": (1, u, 2 * u * u - 1), "group_stddev": (1, u, 2 * u * u - 1)}[kind]
        pairs += [((key_text(row.k), j), value) for j, value in enumerate(numbers_of_row)]
    return scaled(added(pairs), min(1, clip / norm(counts.values())))


def effective(kind, parameters, by_unit):
    """Returns the parameters, with defaults for missing ones."""
    p = dict(parameters)
    p.setdefault("clip", 1)
    if not by_unit and kind in ROWS_COUNT:
        p["clip"] = min(p["clip"], 1)
    if kind.endswith(("quantile", "median")):
        p.setdefault("bins", min(1024, max(2, 1 << (grid_values(p) - 1).bit_length())) if "grid" in p else 1024)
    if kind.endswith("median"):
        p["q"] = 0.5
    return p


def within(kind, p, vectors, wider):
    """Returns the vectors of the households: {unit: vector} is added up by wider.home (a unit without one is its own), and moved into
    the ball of wider.factor units. Numbers that are published by themselves are clamped first."""
    most = reach(kind, p, True, "add-remove") * wider.factor
    homes = {}
    for unit, vector in vectors.items():
        if kind.endswith("group_sum"):  # the count of the key only selects private keys
            vector = {c: value for c, value in vector.items() if c[1] == 1}
        homes.setdefault(wider.home.get(unit, ("alone", unit)), []).append(vector)
    for vectors in homes.values():
        vector = added(pair for mine in vectors for pair in mine.items())
        if kind in LINEAR:
            vector = {c: clamp(value, -most, most) for c, value in vector.items()}
        yield into_ball(vector, most, p)


def totals(kind, parameters, rows, by_unit, wider=None):
    """Returns the exact vector of a table."""
    p = effective(kind, parameters, by_unit)
    keys = {key_text(json.dumps(k, separators=(",", ":"), ensure_ascii=False) if isinstance(k, list) else k)
            for k in p["keys"]} if "keys" in p else None
    units = {}
    for i, row in enumerate(rows):
        if not counts_row(kind, row):
            continue
        if (keys is not None and key_text(row.k) not in keys) or (by_unit and row.unit is None):  # NULL is nobody
            continue
        units.setdefault(identity(row.unit) if by_unit else i, []).append(row)
    vectors = {unit: contribution(kind, p, mine) for unit, mine in units.items()}
    return added(pair for mine in (within(kind, p, vectors, wider) if wider else vectors.values()) for pair in mine.items())


def reach(kind, parameters, by_unit, adjacency):
    """Returns an upper bound on the distance of two neighbours' vectors."""
    p = effective(kind, parameters, by_unit)
    kind = kind.removeprefix("ou_")
    clip = p["clip"]
    twice = 2 if adjacency == "replace" else 1
    if kind in ("count", "ou_count", "count_distinct"):
        return clip
    if kind == "group_count_distinct":
        return min(clip, math.sqrt(len(p["keys"]))) * math.sqrt(twice)
    if kind.endswith(("histogram", "bounds", "group_count", "quantile", "median")):
        return clip * math.sqrt(twice) * (math.sqrt(len(levels(p))) if kind.endswith(("quantile", "median")) else 1)
    if kind in ("var", "stddev"):
        return clip * (2.26818 if adjacency == "replace" else math.sqrt(3))
    if kind in ("group_var", "group_stddev"):
        return clip * (2.454912 if adjacency == "replace" else math.sqrt(3))
    if kind.endswith("avg"):
        return clip * math.sqrt(5) / 2 * twice
    if kind == "group_sum" and "keys" not in p:
        return clip * math.sqrt(5) / 2 * twice
    return clip * twice


# ---- answers -------------------------------------------------------------------------------------------------------


def corners(function, *boxes):
    values = [function(*corner) for corner in itertools.product(*boxes)]
    return min(values), max(values)


def around(x, width):
    return (x - width, x + width)


def ou(p, sigma, d):
    """Returns the shrink of Theorem 8 for noise sigma on each of d numbers."""
    return p["radius"] ** 2 / (p["radius"] ** 2 + d * sigma**2)


def mean_interval(p, n, s, width, sigma):
    """Returns the interval of an average in [lo, hi] that is computed from half the noisy count and the noisy centred sum."""
    half, middle = (p["hi"] - p["lo"]) / 2, (p["hi"] + p["lo"]) / 2

    def read(n, s, sigma):
        n = max(2 * n, 1)
        u = clamp(s / n, -1, 1)
        return middle + half * u

    return corners(read, around(n, width), around(s, width), about(sigma))


def about(sigma):
    """Returns a range that contains the true standard deviation of the noise. sigma is the standard deviation that
    follows from reach(). The true value may be a little larger, because the lattice rounds up, or smaller, because
    replaced units may be closer to each other than reach() says."""
    return sigma / 2, sigma * (1 + 4e-6)


def spread_interval(kind, p, vector, width):
    half = (p["hi"] - p["lo"]) / 2

    def read(n, a, b):
        n = max(n, 1)
        a, b = clamp(a / n, -1, 1), clamp(b / n, -1, 1)
        return clamp((b + 1) / 2 - a * a, 0, 1)

    low, high = corners(read, *(around(vector.get((0, j), 0), 2 * width) for j in range(3)))
    return (half**2 * low, half**2 * high) if kind.endswith("var") else (half * math.sqrt(low), half * math.sqrt(high))


def quantile_interval(p, vector, q, width):
    """Returns the interval of a quantile. A running total of leaves has an error of at most sqrt(levels) times the noise of a
    node, and so has the total of all leaves."""
    bins, off = p["bins"], 2 * math.sqrt(len(levels(p))) * width
    leaves = [vector.get((levels(p)[-1], i), 0) for i in range(bins)]
    running = [0.0, *itertools.accumulate(leaves)]
    if running[-1] <= off:
        return p["lo"], p["hi"]
    n = running[-1]
    rank = 0.5 + q * (n - 1) if n > 1 else n / 2  # the last row has rank n - 1/2
    low, high = rank - off - 1, rank + off + 1  # the number n of rows is noisy too
    first = max((i for i in range(bins) if running[i] <= low), default=0)
    last = min((i for i in range(1, bins + 1) if running[i] >= high), default=bins)

    def inside(i, rank):
        return i + clamp((rank - running[i]) / leaves[i], 0, 1) if leaves[i] > 0 else i

    places = inside(first, low) if low >= 0 else 0, last if running[-1] < high else inside(last - 1, high)
    if "grid" in p:
        share = grid_share(p)
        return tuple(p["lo"] + p["grid"] * clamp(math.ceil(place * share) - 1, 0, grid_values(p) - 1) for place in places)
    step = (p["hi"] - p["lo"]) / bins
    return tuple(p["lo"] + step * place for place in places)


def centre_of(kind, p):
    in_range = kind.endswith(("avg", "quantile", "median")) and "lo" in p
    return p.get("centre", (p["lo"] + p["hi"]) / 2 if in_range else 0)


def moved(kind, p, intervals):
    """Returns the intervals of the values after the values have moved to the nearest point within the radius of the centre."""
    centre, radius = centre_of(kind, p), p["radius"]
    if not kind.endswith("vec_avg"):
        return {place: (clamp(low, centre - radius, centre + radius), clamp(high, centre - radius, centre + radius))
                for place, (low, high) in intervals.items()}
    longest = norm([max(abs(low - centre), abs(high - centre)) for low, high in intervals.values()])
    shortest = norm([max(0, low - centre, centre - high) for low, high in intervals.values()])
    factors = [min(1, radius / size) if size else 1 for size in (longest, shortest)]
    return {place: corners(lambda x, a: centre + a * (x - centre), interval, factors) for place, interval in intervals.items()}


def answer(kind, parameters, rows, by_unit, adjacency, rate, wider=None):
    """Returns {(key, component): (low, high)} for a release with public keys. test_groups.py covers private keys. `wider` has the
    households of the units (`home`) and how many units one of them may count (`factor`)."""
    p = effective(kind, parameters, by_unit)
    if kind.startswith("ou_") and kind not in LINEAR:
        without = {name: value for name, value in p.items() if name not in ("radius", "centre")}
        return moved(kind, p, answer(kind.removeprefix("ou_"), without, rows, by_unit, adjacency, rate, wider))
    vector = totals(kind, parameters, rows, by_unit, wider)
    sigma = reach(kind, parameters, by_unit, adjacency) / math.sqrt(2 * rate)
    width = MARGIN * sigma + 1e-9 * p["clip"]
    if kind.endswith("vec_avg"):
        factor = p["clip"] / 2
        return {("", j): corners(lambda n, s: clamp(s / max(n / factor, 1), -p["clip"], p["clip"]),
                                 around(vector.get((0, 0), 0), width), around(vector.get((0, 1 + j), 0), width))
                for j in range(p["dim"])}
    if kind == "avg":
        return {("", 0): mean_interval(p, vector.get((0, 0), 0), vector.get((0, 1), 0), width, sigma)}
    if kind in ("var", "stddev"):
        return {("", 0): spread_interval(kind, p, vector, width)}
    if kind == "bounds":  # the noise of an empty bin may be above the threshold, so the range may be wider
        shown = sorted(i for (i, _), n in vector.items() if n > bounds_threshold(sigma * (1 + 1e-3)) + width)
        ends = [("", 0), ("", 1)] if shown else []
        return dict(zip(ends, ((-2.0**128, exponent_ends(min(shown))[0]), (exponent_ends(max(shown))[1], 2.0**128)) if shown else ()))
    if kind in ("quantile", "median"):
        return {("", i): quantile_interval(p, vector, q, width) for i, q in enumerate(p["q"] if isinstance(p["q"], list) else [p["q"]])}
    if "group" in kind:
        keys = [key_text(json.dumps(k, separators=(",", ":"), ensure_ascii=False) if isinstance(k, list) else k) for k in p["keys"]]
        if kind in ("group_quantile", "group_median"):
            trees = {k: {node: n for (key, node), n in vector.items() if key == k} for k in keys}
            return {(k, i): quantile_interval(p, trees[k], q, width)
                    for k in keys for i, q in enumerate(p["q"] if isinstance(p["q"], list) else [p["q"]])}
        if kind in ("group_var", "group_stddev"):
            return {(k, 0): spread_interval(kind, p, {(0, j): vector.get((k, j), 0) for j in range(3)}, width) for k in keys}
        if kind == "group_avg":
            return {(k, 0): mean_interval(p, vector.get((k, 0), 0), vector.get((k, 1), 0), width, sigma) for k in keys}
        places = {(k, 0): (k, int(kind.endswith("sum"))) for k in keys}
        if kind.endswith("histogram"):
            places = {(k, i): (k, i) for k in keys for i in range(p["bins"])}
    elif kind.endswith("histogram"):
        places = {("", i): (i, 0) for i in range(p["bins"])}
    else:
        places = {("", i): (0, i) for i in range(p.get("dim", 1))}
    if "radius" in p:
        shrinks, centre = [ou(p, s, len(places)) for s in about(sigma)], p.get("centre", 0)
        return {place: corners(lambda x, a: centre + a * (x - centre), around(vector.get(c, 0), width), shrinks)
                for place, c in places.items()}
    return {place: around(vector.get(c, 0), width) for place, c in places.items()}
