"""Tests Laplace noise on the vectors of every linear kind: the exact vectors, the distribution of the noise and its charge, the
intervals, shard states, and private keys. test_kinds_noise.py has the published numbers.

Points are compared with the definitions (kinds_reference.py) at the rate 1e3, where the scale of the noise is 1/1001 of
the sensitivity. About 9000 coordinates are compared at e^-40 each. Shares and moments are compared at 1e-10, in about 160 places: 2e-8 in all.
"""

import json
import math
import random
import sqlite3

import mpmath as mp
import numpy
import pytest
from scipy import stats

from kinds_reference import KINDS, Row, aggregate, by_query, effective, levels, totals
from kinds_tables import CALLS, PARAMETERS, cases, few_rows, fill, random_table
from laplace_helpers import check_curve, scale_of
from mechanism_truth import curve_of
from noise_helpers import SEVEN, check_share, connect, error_of, one, open_ledger, quick_path, record
from paper_truth import call

pytestmark = [pytest.mark.alarm(2e-8), pytest.mark.usefixtures("forty_digits")]

LAPLACE = {"mechanism": "laplace"}
LINEAR_KINDS = [kind for kind in KINDS if not kind.startswith("ou_")]
VECTORS = [kind for kind in LINEAR_KINDS if kind not in ("count", "count_distinct", "sum")]
RATE = 1e3
REACH = 40  # in scales; noise exceeds 40 scales with probability e^-40
TIERS = {"inner": 1.0, "middle": 0.3, "outer": 0.1}


@pytest.fixture
def path():
    with quick_path() as path:
        yield path


def books(path):
    return sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)


def points_of(path, release, tier):
    """Returns the point of a release as {(key, component): value}, its clock, its sensitivity and its granularity."""
    ledger = books(path)
    try:
        found = ledger.execute("SELECT key, component, value FROM dp_path WHERE release_id = ? AND tier = ? AND component >= 0",
                               (release, tier)).fetchall()
        clock = ledger.execute("SELECT clock FROM dp_path WHERE release_id = ? AND tier = ? LIMIT 1", (release, tier)).fetchone()[0]
        s, g = ledger.execute("SELECT sensitivity, granularity FROM dp_release WHERE id = ?", (release,)).fetchone()
        return {(key, component): value for key, component, value in found}, clock, s, g
    finally:
        ledger.close()


def last_release(path):
    ledger = books(path)
    try:
        return ledger.execute("SELECT max(id) FROM dp_release").fetchone()[0]
    finally:
        ledger.close()


def ask(db, kind, parameters, by_unit=True, tier="exact", form="query"):
    if form == "query":
        sql, arguments = by_query(kind, parameters, tier)
    else:
        call_, arguments = aggregate(kind, parameters, tier)
        sql = f"SELECT {call_} FROM t"
    return one(db, sql, *arguments)


# ---- what is under the noise ---------------------------------------------------------------------------------------


def place_of(kind, p, coordinate):
    """Returns (key, component) in dp_path for a coordinate of the reference."""
    cell, component = coordinate
    if kind in ("quantile", "median"):
        return "", sum(1 << level for level in levels(p) if level < cell) + component
    if kind in ("group_quantile", "group_median"):
        bits, node = component
        return cell, sum(1 << level for level in levels(p) if level < bits) + node
    if kind in ("histogram", "bounds"):
        return "", cell
    if kind == "group_sum":
        return cell, component - 1  # public keys: no counts
    return (cell, component) if kind.startswith("group") else ("", component)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("kind,protects", [case for case in cases() if case[0] in VECTORS])
@pytest.mark.sample(12)
def test_points_are_what_they_say(path, kind, protects, adjacency):
    """Compares points with the exact vectors of random tables, which have heavy units and odd values."""
    rng = random.Random(f"{kind} {protects} {adjacency}")
    by_unit = protects == "unit"
    db = open_ledger({"exact": RATE}, json.dumps({"protects": protects, "adjacency": adjacency}), path)
    for _ in range(2):
        rows = random_table(rng)
        fill(db, rows)
        for parameters in PARAMETERS[kind]:
            parameters = {**parameters, **LAPLACE}
            ask(db, kind, parameters, by_unit, form=rng.choice(["query", "aggregate"]))
            point, clock, s, g = points_of(path, last_release(path), "exact")
            exact = {place_of(kind, effective(kind, parameters, by_unit), c): x for c, x in totals(kind, parameters, rows, by_unit).items()
                     if kind != "group_sum" or c[1] == 1}
            assert set(exact) <= set(point)
            scale = scale_of(clock)
            assert s / scale > 990
            reach = effective(kind, parameters, by_unit)["clip"] * len(rows) * 1e-9 + 2 * 2.0**g
            for place, value in point.items():
                assert abs(value * 2.0**g - exact.get(place, 0)) <= REACH * scale * 2.0**g + reach, (parameters, place)
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- the cost ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", VECTORS)
def test_the_charge_is_the_curve_of_one_coordinate_with_the_whole_shift(path, kind):
    db = open_ledger({"inner": 0.8, "outer": 0.05}, path=path)
    fill(db, few_rows())
    ask(db, kind, {**CALLS[kind], **LAPLACE, "name": "r"}, tier="inner")
    one(db, "SELECT dp_diffuse('r', 'outer')")
    for tier in ("inner", "outer"):
        _, clock, s, _ = points_of(path, 1, tier)
        ledger = books(path)
        (blob,) = ledger.execute("SELECT curve FROM dp_publication WHERE tier = ?", (tier,)).fetchone()
        ledger.close()
        check_curve(curve_of(blob)[0], s, scale_of(clock), each=6)
        rdp = one(db, "SELECT spent FROM dp_rdp WHERE tier = ? AND alpha = 9e999", tier)
        assert 0 <= rdp / (mp.mpf(s) / scale_of(clock)) - 1 <= mp.mpf("1e-11")
    assert one(db, "SELECT dp_verify()") == "ok"
    assert "discrete Laplace" in one(db, "SELECT dp_certificate()")


@pytest.mark.parametrize("kind", VECTORS)
def test_pure_tiers_take_every_kind(kind):
    db = connect()
    one(db, "SELECT dp_init()")
    rate = call("dp_rdp_laplace", 1, 0.5, 1)
    one(db, "SELECT dp_tier('pure', ?, 1, 0, 'pure')", rate)
    fill(db, few_rows())
    for _ in range(2):
        ask(db, kind, {**CALLS[kind], **LAPLACE}, tier="pure")
    assert one(db, "SELECT spent_epsilon FROM dp_budget") == pytest.approx(1, rel=1e-4)
    assert one(db, "SELECT releases_left FROM dp_budget") == 0
    assert "would exceed its budget" in error_of(db, *flat(by_query(kind, {**CALLS[kind], **LAPLACE}, "pure")))


def flat(call):
    return call[0], *call[1]


@pytest.mark.parametrize("first,second,scale,alpha", [(1, 1, 1, 2), (0.5, 2, 1.5, 3), (2, 0, 1, 2), (0.25, 0.75, 2, 8)])
def test_continuous_noise_by_quadrature(first, second, scale, alpha):
    """The joint divergence of two coordinates, integrated numerically, is at most dp_rdp_laplace() of the sum of both shifts."""
    nodes, weights = numpy.polynomial.legendre.leggauss(60)

    def side(shift):
        """Returns quadrature weights, and exponents of the integrand at the nodes. Between two kinks the integrand is an
        exponential."""
        ends = numpy.array(sorted({-40 * scale, -8 * scale, 0, shift, 8 * scale + shift, 40 * scale + shift}))
        middles, halves = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
        x = (middles[:, None] + halves[:, None] * nodes).ravel()
        return (halves[:, None] * weights).ravel(), -(alpha * abs(x) + (1 - alpha) * abs(x - shift)) / scale

    (v, a), (w, b) = side(first), side(second)
    moment = numpy.sum(numpy.multiply.outer(v, w) * numpy.exp(numpy.add.outer(a, b))) / (4 * scale**2)
    found, bound = math.log(moment) / (alpha - 1), call("dp_rdp_laplace", alpha, first + second, scale)
    assert found <= bound * (1 + 1e-9)
    parts = call("dp_rdp_laplace", alpha, first, scale) + (call("dp_rdp_laplace", alpha, second, scale) if second else 0)
    assert found == pytest.approx(parts, rel=1e-9)
    assert second == 0 or parts < bound * (1 - 1e-3)


# ---- the law -------------------------------------------------------------------------------------------------------

WIDE = 4096


def law_cases():
    """Yields tuples: kind, parameters, rows, and the exact coordinates in the order of keys and components."""
    keys = list(range(WIDE))
    counts = numpy.zeros(WIDE)
    counts[::17] = 1
    places = [Row(None, k + 0.5, None, k) for k in range(0, WIDE, 17)]
    yield "vec_sum", {"dim": WIDE, "clip": 2.0**14}, [Row(None, None, json.dumps([j % 3 - 1 for j in range(WIDE)]), 1)], numpy.array(
        [j % 3 - 1 for j in range(WIDE)])
    yield "histogram", {"clip": 1, "lo": 0, "hi": WIDE, "bins": WIDE}, places, counts
    yield "group_count", {"clip": 1, "keys": keys}, [Row(k, None, None, k) for k in range(0, WIDE, 17)], counts
    yield "group_sum", {"keys": keys, "clip": 8}, [Row(k, -3, None, k) for k in range(0, WIDE, 17)], -3 * counts
    rows = [Row(k, (k % 3) - 1, None, k) for k in range(0, WIDE, 17)]
    both = numpy.zeros((WIDE, 2))
    for row in rows:
        both[row.k] = (1 + row.x) / 2, (1 - row.x) / 2
    yield "group_avg", {"keys": keys, "lo": -1, "hi": 1}, rows, both.ravel()
    rows = [Row(k // 4, k % 4 + 0.5, None, k) for k in range(0, WIDE, 17)]
    yield "group_histogram", {"clip": 1, "keys": keys[:WIDE // 4], "lo": 0, "hi": 4, "bins": 4}, rows, counts
    yield "group_count_distinct", {"keys": keys}, [Row(k, None, None, k) for k in range(0, WIDE, 17)] * 2, counts


@pytest.mark.parametrize("case", law_cases(), ids=lambda case: case[0])
@pytest.mark.sample(1)
def test_coordinates_walk_on_their_own(path, case):
    """Tests the noise of the coordinates: the frequencies of 32 equally likely cells, the mean size, and how often a step to an
    outer tier is 0. Also tests that there is no correlation between neighbouring coordinates, between the noise and the step of a
    coordinate, or between the sizes of this noise and step."""
    kind, parameters, rows, exact = case
    releases = 10 if kind == "vec_sum" else 3
    db = open_ledger(TIERS, path=path)
    fill(db, rows)
    for i in range(releases):
        ask(db, kind, {**parameters, **LAPLACE, "name": f"r{i}"}, tier="inner")
        one(db, "SELECT dp_diffuse(?, 'outer')", f"r{i}")
    noise, scales = {}, {}
    ledger = books(path)
    g = ledger.execute("SELECT DISTINCT granularity FROM dp_release").fetchall()[0][0]
    for tier in TIERS:
        values = ledger.execute("SELECT value FROM dp_path WHERE tier = ? AND component >= 0 ORDER BY release_id, CAST(key AS INTEGER),"
                                " component", (tier,)).fetchall()
        steps = numpy.array(values, dtype=float)[:, 0] - numpy.tile(exact * 2.0**-g, releases)
        assert (steps == numpy.rint(steps)).all()
        scales[tier] = scale_of(ledger.execute("SELECT clock FROM dp_path WHERE tier = ? LIMIT 1", (tier,)).fetchone()[0])
        noise[tier] = steps
    ledger.close()
    for tier, x in noise.items():
        y = x / scales[tier]
        cells = numpy.minimum(15, (16 * numpy.exp(-abs(y))).astype(int)) + 16 * (y < 0)
        for cell, count in enumerate(numpy.bincount(cells, minlength=32)):
            check_share(count, len(y), 1 / 32, f"{tier}, cell {cell}")
        assert min(stats.gamma.cdf(sum(abs(y)), len(y)), stats.gamma.sf(sum(abs(y)), len(y))) > 1e-10
        for z, variance in ((y, 2), (abs(y) - 1, 1)):  # z has mean 0, so products have the standard deviation `variance`
            assert abs(numpy.mean(z[1:] * z[:-1])) <= SEVEN * variance / math.sqrt(len(z) - 1)
    for inner, outer in (("inner", "middle"), ("middle", "outer")):
        step = noise[outer] - noise[inner]
        p, r = mp.exp(-mp.mpf(1) / scales[inner]), mp.exp(-mp.mpf(1) / scales[outer])
        check_share((step == 0).sum(), len(step), float(p / r * ((1 - r) / (1 - p)) ** 2))
        moved = abs(step[step != 0]) / scales[outer]
        assert min(stats.gamma.cdf(sum(moved), len(moved)), stats.gamma.sf(sum(moved), len(moved))) > 1e-10
        assert stats.spearmanr(noise[inner], step).pvalue > 1e-10
        assert stats.spearmanr(abs(noise[inner]), abs(step)).pvalue > 1e-10
    if kind in ("group_avg", "quantile"):
        return
    held = db.execute("SELECT low, high FROM dp_value WHERE release = 'r0' AND tier = 'inner' ORDER BY CAST(key AS INTEGER), component"
                      ).fetchall()
    check_share(sum(low <= x <= high for (low, high), x in zip(held, exact)), len(exact), 0.95, "cover of the intervals")


# ---- intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind,key", [("histogram", 1), ("vec_sum", 0), ("group_count", "a"), ("avg", None)])
def test_intervals_of_one_draw_and_of_several(kind, key):
    db = open_ledger({"inner": 0.5})
    fill(db, few_rows())
    ask(db, kind, {**CALLS[kind], **LAPLACE, "name": "r"}, tier="inner")
    component, text = (key, "") if isinstance(key, int) else (0, key or "")
    row = record(db, f"SELECT value, stddev, low, high FROM dp_value WHERE component = {component} AND key = '{text}'")
    linear = kind in ("histogram", "vec_sum", "group_count")
    for confidence in (0.5, 0.95, 0.9999):
        low, high = json.loads(one(db, "SELECT dp_interval('r', 'inner', ?, ?)", key, confidence))
        single = -math.log1p(-confidence) / math.sqrt(2)
        half = row["stddev"] * (single if linear else max(single, stats.norm.ppf((1 + confidence) / 2)))
        if linear:  # test_means.py has averages of small groups
            assert (low, high) == pytest.approx((row["value"] - half, row["value"] + half), rel=1e-9, abs=1e-9 * half)
        else:
            assert max(0, row["value"] - 1.2 * half) <= low < row["value"] < high <= row["value"] + 1.2 * half or confidence > 0.99
        if confidence == 0.95:
            assert (low, high) == pytest.approx((row["low"], row["high"]), rel=1e-9)


def test_a_mix_of_groups_has_several_draws():
    db = open_ledger({"inner": 0.5, "outer": 0.1})
    fill(db, few_rows())
    ask(db, "group_count", {"clip": 1, **CALLS["group_count"], **LAPLACE, "name": "r"}, tier="inner")
    one(db, "SELECT dp_mix('r', 'outer', '[[\"a\",\"x\",1],[\"b\",\"x\",1],[\"c\",\"y\",1]]')")
    sigma = math.sqrt(one(db, "SELECT clock FROM dp_publication WHERE tier = 'outer'")) * 2.0 ** one(db, "SELECT granularity FROM dp_release")
    rows = {key: (stddev, high - low) for key, stddev, low, high in
            db.execute("SELECT key, stddev, low, high FROM dp_value WHERE tier = 'outer'")}
    assert rows["y"][0] == pytest.approx(sigma, rel=1e-9) and rows["x"][0] == pytest.approx(math.sqrt(2) * sigma, rel=1e-9)
    assert rows["y"][1] == pytest.approx(-math.log(0.05) * math.sqrt(2) * sigma, rel=1e-9)
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- private keys --------------------------------------------------------------------------------------------------


def threshold_of(terms, m, delta, reach, scale, g, factor):
    """Returns the threshold, by bisection on the tail of a sum of Laplace noises."""
    def tail(x):
        return math.exp(-x) * {1: 0.5, 2: (2 + x) / 4, 3: (8 + 5 * x + x * x) / 16}[terms]
    low, high, wanted = 0.0, 1000.0, -math.expm1(math.log1p(-delta) / m)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > wanted else (low, middle)
    return (reach + scale * 2.0**g * high) / factor


@pytest.mark.parametrize("kind,more,terms,reach,factor", [
    ("group_count", {"clip": 3}, 1, 3, 1), ("group_sum", {"clip": 8}, 1, 2, 2), ("group_avg", {"lo": -1, "hi": 5, "clip": 2}, 2, 2, 1),
    ("group_var", {"lo": -1, "hi": 5, "clip": 2}, 3, 2, 1), ("group_count_distinct", {"clip": 3}, 1, 1, 1),
    ("group_histogram", {"lo": -1, "hi": 5, "bins": 3, "clip": 8}, 1, 2, 2), ("group_median", {"lo": -1, "hi": 5, "bins": 256, "clip": 4}, 1, 2, 2)])
def test_thresholds_follow_the_law(path, kind, more, terms, reach, factor):
    db = connect(path)
    one(db, "SELECT dp_init()")
    one(db, "SELECT dp_tier('t', 0.2, 1e15, 0.5, 'rdp', 1e-6)")
    fill(db, few_rows())
    plan = json.loads(one(db, "SELECT dp_plan('t', ?, NULL, ?)", kind, json.dumps({**more, **LAPLACE, "max_groups": 3})))
    ask(db, kind, {**more, **LAPLACE, "max_groups": 3}, tier="t")
    ledger = books(path)
    g, s = ledger.execute("SELECT granularity, sensitivity FROM dp_release").fetchone()
    (clock,) = ledger.execute("SELECT clock FROM dp_publication").fetchone()
    ledger.close()
    wanted = threshold_of(terms, 3, 1e-7, reach, scale_of(clock), g, factor)
    assert wanted <= plan["threshold"] <= wanted * (1 + 1e-9) + 8 * 2.0**g
    assert one(db, "SELECT spent_delta FROM dp_budget") == pytest.approx(1e-7, rel=1e-9)


# ---- states --------------------------------------------------------------------------------------------------------

SHAPING = ("clip", "lo", "hi", "dim", "bins", "keys", "max_groups", "mechanism")


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind", VECTORS)
def test_merged_states_are_the_whole(path, kind, whole):
    rng = random.Random(f"{kind} {whole}")
    rows = random_table(rng)
    db = open_ledger({"exact": RATE}, path=path)
    parameters = {**PARAMETERS[kind][0], **LAPLACE}
    options = {k: v for k, v in parameters.items() if k in SHAPING} | ({"whole_units": True} if whole else {})
    columns = ", ".join(KINDS[kind].columns.split()) or "1"
    states = []
    for part in (0, 1, 2):
        fill(db, [row for i, row in enumerate(rows) if (hash_of(row.unit) if whole else i) % 3 == part])
        states.append(one(db, "SELECT dp_partial(?, ?, ?)", kind, f"SELECT {columns} FROM t", json.dumps({**options, "shard": str(part)})))
    states = [state for state in states if state is not None]
    rest = {k: v for k, v in parameters.items() if k not in SHAPING}
    db.execute("CREATE TABLE states(state)")
    db.executemany("INSERT INTO states VALUES (?)", [(state,) for state in states])
    one(db, "SELECT dp_merge('exact', dp_states(state), ?) FROM states", json.dumps(rest))
    point, clock, _, g = points_of(path, last_release(path), "exact")
    exact = {place_of(kind, effective(kind, parameters, True), c): x for c, x in totals(kind, parameters, rows, True).items() if kind != "group_sum" or c[1] == 1}
    for place, value in point.items():
        assert abs(value * 2.0**g - exact.get(place, 0)) <= REACH * scale_of(clock) * 2.0**g + 1e-6
    assert "the states are for mechanism 'laplace'" in error_of(
        db, "SELECT dp_merge('exact', dp_states(state), ?) FROM states", json.dumps({**rest, "mechanism": "gaussian"}))
    assert one(db, "SELECT mechanism FROM dp_release") == "laplace"


def hash_of(unit):
    """Returns the same number for equal units."""
    return 0 if unit is None else int(1e4 * unit) if isinstance(unit, (int, float)) else sum(unit if isinstance(unit, bytes) else unit.encode())


def test_states_for_gaussian_noise_get_no_laplace_noise():
    db = open_ledger({"t": 1.0})
    fill(db, few_rows())
    state = one(db, "SELECT dp_partial('avg', 'SELECT x FROM t', '{\"lo\":0,\"hi\":5}')")
    message = error_of(db, "SELECT dp_merge('t', dp_states(?), '{\"mechanism\":\"laplace\"}')", state)
    assert "the states are for mechanism 'gaussian' (make them with \"mechanism\":\"laplace\")" in message
    state = one(db, "SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":3}')")  # a single number is the same in both norms
    one(db, "SELECT dp_merge('t', dp_states(?), '{\"mechanism\":\"laplace\"}')", state)
    assert one(db, "SELECT mechanism FROM dp_release") == "laplace"


# ---- the life of a release -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", VECTORS)
def test_replay_diffuse_and_no_refinement(path, kind):
    db = open_ledger(TIERS, path=path)
    fill(db, few_rows())
    p = {**CALLS[kind], **LAPLACE, "name": "r"}
    middle = ask(db, kind, p, tier="middle")
    assert ask(db, kind, p, tier="middle") == middle == one(db, "SELECT dp_diffuse('r', 'middle')")
    outer = one(db, "SELECT dp_diffuse('r', 'outer')")
    assert (type(outer) is type(middle) or kind == "bounds") and ask(db, kind, p, tier="outer") == outer
    assert "cannot be refined" in error_of(db, *flat(by_query(kind, {**p, "refine": True}, "inner")))
    assert one(db, "SELECT dp_verify()") == "ok"


def test_many_coordinates_at_a_small_epsilon_cost_little_more(path):
    """Rounding adds to the sensitivity one lattice step for each coordinate that a unit touches. Even at epsilon 0.01, this is at
    most 1/60 of the sensitivity."""
    db = open_ledger({"t": call("dp_rdp_laplace", 1, 0.01, 1)}, path=path)
    fill(db, few_rows())
    ask(db, "median", {"lo": 0, "hi": 5, **LAPLACE}, tier="t")
    _, clock, s, g = points_of(path, 1, "t")
    assert 3 < s * 2.0**g <= 3 * (1 + 1 / 60)  # three levels of 1024 leaves
    assert s / scale_of(clock) == pytest.approx(0.01, rel=1e-4)
