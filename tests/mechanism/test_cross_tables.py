"""Tests of cross tables (ext/sums/layout.h): shares, lattice, clipping, reconciliation, keys, dp_table, plans, shards and refusals. The
tests compare with cross_table_reference.py, which uses dense linear algebra and plain loops."""

import itertools
import json
import math
import os
import pathlib
import random
import shutil
import sqlite3

import numpy
import pytest
from scipy import optimize

import cross_table_reference as reference
from conftest import make_ledger, refused, strict_json
from fixed_noise import run_fixed
from noise_helpers import connect, one, quick_path

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
SMALL = {"ward": ["A", "B", "C", "D", "E"], "age": ["0-17", "18-64", "65-79", "80+"], "sex": ["F", "M"]}
ODD = {'a "b"': ["x.y", "ä'", 'q"'], "n": [1, "1.5", None], "one": ["only"], "yes": ["0", "1"]}


def options(attributes, ways, **more):
    return json.dumps({"keys": attributes, "ways": ways, "clip": 1, **more})


def question(attributes, x=None):
    columns = ['"' + name.replace('"', '""') + '"' for name in attributes] + ([x] if x else [])
    return f"SELECT {', '.join(columns)} FROM person"


def fill(db, attributes, rows):
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in attributes)
    db.execute(f"CREATE TABLE IF NOT EXISTS person(id, {columns}, x)")
    db.execute("DELETE FROM person")
    db.executemany(f"INSERT INTO person VALUES (?{', ?' * (len(attributes) + 1)})", [(u, *k.values(), x) for u, k, x in rows])


def start(path, attributes, rows=(), adjacency="add-remove", protects="unit", tiers=(("inner", 1.0), ("middle", 0.25), ("outer", 0.0625))):
    db = connect(path)
    fill(db, attributes, rows)
    make_ledger(db, json.dumps({"adjacency": adjacency, "protects": protects}), "person, id" if protects == "unit" else "person")
    for tier, rate in tiers:
        one(db, "SELECT dp_tier(?, ?, 1e9, 1e-6)", tier, rate)
    return db


def release_row(path, name):
    with sqlite3.connect(path + "-ledger") as ledger:
        ledger.row_factory = sqlite3.Row
        return ledger.execute("SELECT * FROM dp_release WHERE name = ?", (name,)).fetchone()


def multipliers_of(row, attributes, ways):
    return dict(zip(reference.closure(attributes, ways), json.loads(row["multipliers"]), strict=True))


def point_of(path, name, tier):
    """Returns the coordinates of a point in lattice steps."""
    with sqlite3.connect(path + "-ledger") as ledger:
        return numpy.array([v for (v,) in ledger.execute(
            "SELECT value FROM dp_path WHERE release = ? AND tier = ? AND component >= 0 ORDER BY component", (name, tier))], dtype=float)


def people(rng, attributes, units, most=4):
    rows = []
    for unit in range(units):
        for _ in range(rng.randrange(1, most + 1)):
            rows.append((unit, {n: rng.choice(keys) for n, keys in attributes.items()}, rng.uniform(-3, 12)))
    rng.shuffle(rows)
    return rows


# ---- shares ------------------------------------------------------------------------------------------------------------

PROGRAMMES = [(SMALL, 2), (SMALL, 3), (SMALL, 1), (SMALL, [["ward", "age"], ["sex", 4]]), ({"a": list("abcdefgh"), "b": [0, 1], "c": [0, 1]}, 2),
              (ODD, 2), ({f"y{i}": [0, 1] for i in range(6)}, 2), ({"one": ["x"]}, 1), ({"a": list(range(80)), "b": list("wxyz"), "c": [0, 1, 2]}, 3)]


@pytest.mark.parametrize("attributes, ways", PROGRAMMES)
def test_the_shares_are_the_best(attributes, ways):
    """The objective at the stored multipliers is within 2^-10, and the rounding of multipliers, of the least one that SLSQP finds over
    all shares. The reference computes variances with exact fractions."""
    with quick_path() as path:
        db = start(path, attributes)
        one(db, "SELECT dp_release('inner', 'group_count', ?, ?)", question(attributes), options(attributes, ways, name="r"))
        multipliers = multipliers_of(release_row(path, "r"), attributes, ways)
    weights = reference.closure(attributes, ways)
    got, _ = reference.objective(attributes, weights, multipliers)
    n = {t: math.prod(len(attributes[name]) for name in t) for t in weights}
    tables, total = list(weights), sum(weights.values())
    ratio = numpy.array([[n[b] / n[a] if set(b) <= set(a) else 0 for a in tables] for b in tables])
    k = numpy.array([math.prod((len(attributes[name]) - 1) / len(attributes[name]) for name in b) for b in tables])
    c = k * (ratio ** 2 @ numpy.array([weights[a] / total for a in tables]))

    def error(z):  # q = softmax(z), so that every q is positive
        q = numpy.exp(z - z.max())
        q /= q.sum()
        p = ratio @ q
        return sum(ci / pi for ci, pi in zip(c, p) if ci)

    best = optimize.minimize(error, numpy.zeros(len(tables)), method="BFGS", options={"maxiter": 2000}).fun
    assert best * (1 - 1e-6) <= got <= best * (1 + 2 ** -10) * (1 + 1e-3)
    assert sum(m * m for m in multipliers.values()) <= 2 ** 30
    largest = [t for t in tables if not any(set(t) < set(o) for o in tables)]
    assert all(multipliers[t] >= 1 for t in largest)


def test_known_errors():
    """Root mean square and largest standard deviation of a cell over tables, in units of one count alone, of the published table of
    programmes. The figures are those of a prototype in another language."""
    known = [((5, 4, 2), 2, 1.83, 2.03), ((80, 4, 3, 2, 2), 2, 2.54, 2.87), ((80, 4, 3, 2, 2), 3, 2.79, 3.23), ((52, 2, 9, 7, 4, 12), 2, 3.56, 3.89),
             ((52, 2, 9, 7, 4, 12), 3, 4.40, 4.93), ((10,) * 10, 3, 10.2, 11.4), ((12,) + (2,) * 6, 2, 2.79, 3.20), ((2,) * 10, 2, 3.52, 3.74)]
    db = start(":memory:", SMALL)
    alone = strict_json(one(db, "SELECT dp_plan('inner', 'group_count', 1, '{\"keys\":[\"a\"]}')"))["half_width"]
    for sizes, ways, rms, worst in known:
        keys = {f"k{i}": size for i, size in enumerate(sizes)}
        plan = strict_json(one(db, "SELECT dp_plan('inner', 'group_count', NULL, ?)", options(keys, ways)))
        widths = numpy.array([table["half_width"] for table in plan["tables"]]) / alone
        assert numpy.sqrt((widths ** 2).mean()) == pytest.approx(rms, rel=4e-3), sizes
        assert widths.max() == pytest.approx(worst, rel=4e-3), sizes
        assert plan["half_width"] == max(table["half_width"] for table in plan["tables"])


# ---- reconciliation ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("attributes, ways", PROGRAMMES[:-1])
def test_values_are_the_least_squares_estimate(attributes, ways):
    """At each tier the values are the dense generalised least-squares estimate from the points, every stddev is that of its covariance,
    and every table adds up to each of its margins."""
    rng = random.Random(1)
    with quick_path() as path:
        db = start(path, attributes, people(rng, attributes, 60))
        one(db, "SELECT dp_release('inner', 'group_count', ?, ?)", question(attributes), options(attributes, ways, name="r", clip=2))
        one(db, "SELECT dp_diffuse('r', 'outer')")
        one(db, "SELECT dp_diffuse('r', 'middle')")
        row = release_row(path, "r")
        multipliers = multipliers_of(row, attributes, ways)
        tables = list(multipliers)
        square = sum(m * m for m in multipliers.values())
        shares = {t: m * m / square for t, m in multipliers.items()}
        covariance = reference.variances(attributes, tables, shares)
        keys = [reference.key(attributes, t, tuple("null" if k is None else k for k in c)) for t in tables for c in reference.cells(attributes, t)]
        for tier in ("inner", "middle", "outer"):
            point = point_of(path, "r", tier) * 2.0 ** row["granularity"]
            clock = one(db, "SELECT clock FROM dp_publication WHERE release = 'r' AND tier = ?", tier)
            measured, at = [], 0
            for table in tables:
                count = len(reference.cells(attributes, table))
                if multipliers[table]:
                    measured += list(point[at:at + count] / multipliers[table])
                    at += count
                else:
                    measured += [math.nan] * count
            assert at == len(point)
            want = reference.least_squares(attributes, tables, shares, numpy.array(measured))
            noise = math.sqrt(clock / square) * 2.0 ** row["granularity"]
            values = {k: (v, s) for k, v, s in db.execute("SELECT key, value, stddev FROM dp_value WHERE release = 'r' AND tier = ?", (tier,))}
            assert values.keys() == set(keys)
            for i, key in enumerate(keys):
                assert values[key][0] == pytest.approx(want[i], abs=1e-9 * (1 + abs(want).max()))
                assert values[key][1] == pytest.approx(noise * math.sqrt(covariance[i, i]), rel=1e-9)
        assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("kind, more", [("group_count", {}), ("group_sum", {"clip": 9}), ("group_count", {"mechanism": "laplace"})])
def test_tables_add_up_at_every_tier(kind, more, tmp_path):
    db = start(str(tmp_path / "a.db"), SMALL, people(random.Random(2), SMALL, 40))
    one(db, "SELECT dp_release('inner', ?, ?, ?)", kind, question(SMALL, "x" if kind == "group_sum" else None), options(SMALL, 2, name="r", **more))
    one(db, "SELECT dp_diffuse('r', 'outer')")
    db.execute("SELECT dp_export('outer', ?)", (str(tmp_path / "out.db"),)).fetchall()
    with sqlite3.connect(tmp_path / "out.db") as handed:
        exported = dict(handed.execute("SELECT key, value FROM value WHERE tier = 'outer'"))
    for tier in ("inner", "outer"):
        values = dict(db.execute("SELECT key, value FROM dp_value WHERE release = 'r' AND tier = ?", (tier,)))
        assert tier != "outer" or values == exported
        for table in reference.closure(SMALL, 2):
            shown = db.execute(f"SELECT key, value FROM dp_table('r', ?{', ?' * len(table)})", (tier, *random.sample(table, len(table)))).fetchall()
            assert [k for k, _ in shown] == [reference.key(SMALL, table, c) for c in reference.cells(SMALL, table)]  # in the order of keys
            assert all(values[k] == v for k, v in shown)
            for name in table:
                margin = tuple(n for n in table if n != name)
                sums = {}
                for (key, value), cell in zip(shown, reference.cells(SMALL, table)):
                    place = reference.key(SMALL, margin, tuple(c for n, c in zip(table, cell) if n != name))
                    sums[place] = sums.get(place, 0) + value
                for key, total in sums.items():
                    assert total == pytest.approx(values[key], abs=1e-9 * max(map(abs, values.values())))


# ---- clipping, sensitivity and neighbours ------------------------------------------------------------------------------

def exact_point(path, attributes, rows, tier, kind, text, adjacency, protects="unit"):
    """Returns the point of a release under fixed noise, and its row in the ledger."""
    db = start(path, attributes, rows, adjacency, protects, (("inner", 1.0), ("laplace", 0.5)))
    db.close()
    sql = question(attributes, "x" if kind != "group_count" else None).replace("'", "''")
    run_fixed(path, ["SELECT fixed_seed(7)", f"SELECT dp_release('{tier}', '{kind}', '{sql}', '{text.replace(chr(39), chr(39) * 2)}')"])
    return point_of(path, "r", tier), release_row(path, "r")


KINDS = [("group_count", {}), ("group_count", {"clip": 3}), ("group_sum", {"clip": 4.5}), ("group_avg", {"lo": -3, "hi": 12, "clip": 2}),
         ("group_count", {"mechanism": "laplace", "clip": 2}), ("group_sum", {"mechanism": "laplace", "clip": 4.5}),
         ("group_avg", {"mechanism": "laplace", "lo": -3, "hi": 12})]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("kind, more", KINDS)
@pytest.mark.sample(8)
def test_neighbours_differ_by_the_sensitivity_at_most(kind, more, adjacency):
    """Under the same noise, the points of neighbours differ by at most the charged sensitivity, whatever the rows of the unit are: many
    rows, one cell or many, extreme values. The order of rows does not matter."""
    rng = random.Random(f"{kind} {more} {adjacency}")
    small = {n: keys[:3] for n, keys in SMALL.items()}
    norm = (lambda d: abs(d).sum()) if more.get("mechanism") == "laplace" else numpy.linalg.norm
    text = options(small, rng.choice([2, 3, [["ward", "age"], ["sex"]]]), name="r", **more)
    reached = 0.0
    with quick_path() as path:
        for trial in range(4):
            base = people(rng, small, 12)

            def unit():
                choice = rng.randrange(4)
                cell = {n: rng.choice(keys) for n, keys in small.items()}
                if choice == 0:
                    return [("new", cell, rng.choice([1e9, -1e9, 12]))] * rng.choice([1, 2, 40])
                if choice == 1:
                    return [("new", dict(zip(small, c)), rng.choice([-1e300, 5, 12])) for c in itertools.product(*small.values())]
                return [("new", {n: rng.choice(keys) for n, keys in small.items()}, rng.uniform(-1e3, 1e3)) for _ in range(rng.randrange(1, 9))]

            mine, other = unit(), unit() if adjacency == "replace" else []
            one_way = base + mine
            points = []
            for i, rows in enumerate((one_way, rng.sample(one_way, len(one_way)), base + other)):
                point, row = exact_point(f"{path}{trial}{i}", small, rows, "laplace" if "mechanism" in more else "inner", kind, text, adjacency)
                points.append(point)
            assert (points[0] == points[1]).all()
            distance = norm(points[0] - points[2])
            assert distance <= row["sensitivity"]
            reached = max(reached, distance / row["sensitivity"])
    assert reached > (0.5 if adjacency == "replace" else 0.8)


@pytest.mark.parametrize("kind, more", [k for k in KINDS if k[0] != "group_avg"])
def test_clipped_tables_are_those_of_the_reference(kind, more):
    """Under the same noise, rows change every coordinate by the multiplier times the clipped total, where each unit is scaled by one
    factor, within two lattice steps. A step is about 2^-20 of the noise, so that a multiplier cannot be wrong by 1."""
    rng = random.Random(4)
    rows = people(rng, SMALL, 50, most=9)
    tier = "laplace" if "mechanism" in more else "inner"
    with quick_path() as path:
        empty, full = (exact_point(f"{path}{i}", SMALL, some, tier, kind, options(SMALL, 2, name="r", **more), "add-remove")
                       for i, some in enumerate(([], rows)))
        row = full[1]
        multipliers = multipliers_of(row, SMALL, 2)
        want = reference.exact(SMALL, list(multipliers), rows, more.get("clip", 1), multipliers, kind, "mechanism" in more)
        moved = (full[0] - empty[0]) * 2.0 ** row["granularity"]
        flat = numpy.array([m * v for t, m in multipliers.items() if m for v in want[t].values()])
        assert numpy.abs(moved - flat).max() < 2 * 2.0 ** row["granularity"] + 1e-9 * numpy.abs(flat).max()
        assert numpy.abs(flat).max() > 10 * max(multipliers.values()) > 1000 * 2.0 ** row["granularity"]


def test_rows_in_one_cell_count_up_to_the_clip():
    for clip, rows, counted in ((1, 1, 1), (1, 2, 1), (3, 3, 3), (3, 4, 3), (2.5, 2, 2)):
        with quick_path() as path:
            db = start(path, SMALL, [("u", {"ward": "A", "age": "80+", "sex": "F"}, 1)] * rows, tiers=(("exact", 900.0),))
            one(db, "SELECT dp_release('exact', 'group_count', ?, ?)", question(SMALL), options(SMALL, 2, name="r", clip=clip))
            value, stddev = db.execute("SELECT value, stddev FROM dp_table('r', 'exact')").fetchone()
            assert abs(value - counted) < 9 * stddev


@pytest.mark.parametrize("attributes, ways", [(SMALL, 2), ({"a": [str(i) for i in range(70)], "b": [str(i) for i in range(70)]}, 2)])
def test_lattice_and_charge(attributes, ways):
    """Granularity, variance, sensitivity and charge follow the formulas of ext/sums/layout.h and mechanism.h, in integers."""
    for adjacency in ("add-remove", "replace"):
        with quick_path() as path:
            db = start(path, attributes, adjacency=adjacency)
            one(db, "SELECT dp_release('inner', 'group_count', ?, ?)", question(attributes), options(attributes, ways, name="r", clip=3))
            row = release_row(path, "r")
            multipliers = multipliers_of(row, attributes, ways)
            square = sum(m * m for m in multipliers.values())
            _, exponent = math.frexp(math.sqrt(square) * 3)
            steps = 2 ** (53 - exponent)
            reach = math.isqrt(square * (3 * steps) ** 2 - 1) + 1
            distance = reach
            if adjacency == "replace":
                total = multipliers[()] ** 2
                apart = -(-2 * reach ** 2 * (square - total) // square)
                distance = max(reach, math.isqrt(apart - 1) + 1)
            touched = sum(math.prod(len(attributes[n]) for n in t) for t, m in multipliers.items() if m)
            _, width = math.frexp(math.ldexp(distance, exponent - 53) / math.sqrt(2 * 1.0))
            granularity = width - 21 - (4 if touched > 4096 else 0)
            shift = granularity - (exponent - 53)
            s = (distance >> shift) + 1 + math.isqrt(touched - 1) + 1
            assert (row["granularity"], row["shift"], row["sensitivity"], row["dimension"]) == (granularity, shift, s, touched)
            clock = one(db, "SELECT clock FROM dp_publication")
            assert clock == -(-s * s // 2) + 1
            charged = db.execute("SELECT rate FROM dp_charge").fetchall()
            assert len(charged) == 1 and s * s / (2 * clock) <= charged[0][0] <= s * s / (2 * clock) * (1 + 1e-12)


def test_noise_has_the_stated_variance_at_two_tiers():
    """A programme of 12,000 empty cells at two tiers: the standardised values have variance 1, and the covariance of inner and outer
    values is the inner variance. Coordinates are independent, so each statistic has a known standard error; 7 of them."""
    attributes = {"a": [str(i) for i in range(100)], "b": [str(i) for i in range(120)]}
    with quick_path() as path:
        db = start(path, attributes)
        one(db, "SELECT dp_release('inner', 'group_count', ?, ?)", question(attributes), options(attributes, 2, name="r"))
        one(db, "SELECT dp_diffuse('r', 'outer')")
        inner, outer = (numpy.array(db.execute("SELECT value, stddev FROM dp_table('r', ?, 'a', 'b')", (tier,)).fetchall()) for tier in ("inner", "outer"))
        n = len(inner)
        for table in (inner, outer):
            assert abs((table[:, 0] ** 2 / table[:, 1] ** 2).mean() - 1) < 7 * math.sqrt(2 / n) * 1.2
        covariance = (inner[:, 0] * outer[:, 0]).mean()
        error = inner[0, 1] * math.hypot(math.sqrt(2) * inner[0, 1], math.sqrt(outer[0, 1] ** 2 - inner[0, 1] ** 2)) / math.sqrt(n)
        assert abs(covariance - inner[0, 1] ** 2) < 7 * 1.2 * error


def test_star_has_the_promised_widths(tmp_path):
    """Grade 2 of STAR, four attributes, a tier of epsilon 3 for 24 releases: the 95% intervals of all 11 tables are from ±28 to ±34, as
    planned, and the exact counts lie where the standard deviations say."""
    path = tmp_path / "star.db"
    shutil.copy(BUILD / "star.db", path)
    db = connect(str(path))
    make_ledger(db, "{}", "star, student_id")
    one(db, "SELECT dp_tier('t', dp_rate(3.0, 1e-6, 24), 3.0, 1e-6, 'gdp')")
    columns = ("school_id", "class_type", "sex", "lunch")
    keys = {c: [k for (k,) in db.execute(f"SELECT DISTINCT {c} FROM star WHERE grade = '2' AND {c} <> ''")] for c in columns}
    listed = " AND ".join(f"{c} IN ({', '.join(map(repr, keys[c]))})" for c in columns)
    assert one(db, f"SELECT count(*) FROM star WHERE grade = '2' AND {listed}") == 6491
    text = options(keys, 2, name="r")
    plan = strict_json(one(db, "SELECT dp_plan('t', 'group_count', NULL, ?)", text))
    planned = {tuple(table["table"]): table["half_width"] for table in plan["tables"]}
    assert len(planned) == 11 and all(27.5 <= width < 34.5 for width in planned.values())
    one(db, "SELECT dp_release('t', 'group_count', ?, ?)", f"SELECT {', '.join(columns)} FROM star WHERE grade = '2'", text)
    for table, width in planned.items():
        names = ", ".join(table) or "1"
        found = db.execute(f"SELECT key, value, stddev, low, high FROM dp_table('r', 't'{', ?' * len(table)})", table).fetchall()
        exact = {reference.key(keys, table, row[:len(table)]): row[-1] for row in
                 db.execute(f"SELECT {names}, count(*) FROM star WHERE grade = '2' AND {listed} GROUP BY {names}")}
        assert len(found) == math.prod(len(keys[c]) for c in table)
        for key, value, stddev, low, high in found:
            assert abs(value - exact.get(key, 0)) < 8 * stddev and 1.9599 * stddev == pytest.approx(width, rel=2e-3)
            assert high - value == pytest.approx(width, rel=2e-3) or low == 0


# ---- averages ---------------------------------------------------------------------------------------------------------

def test_averages():
    """The average of a cell is that of its rows, within its interval; all averages lie in the range."""
    rows = [(i, {"ward": "AB"[i % 2], "age": "0-17", "sex": "F"}, 2.0 if i % 2 else 8.0) for i in range(4000)]
    with quick_path() as path:
        db = start(path, SMALL, rows)
        one(db, "SELECT dp_release('inner', 'group_avg', ?, ?)", question(SMALL, "x"), options(SMALL, 2, name="r", lo=0, hi=10))
        found = {k: (v, low, high) for k, v, low, high in db.execute("SELECT key, value, low, high FROM dp_value")}
        assert all(0 <= low <= v <= high <= 10 for v, low, high in found.values())
        for key, truth in (('{"ward":"A"}', 8), ('{"ward":"B","sex":"F"}', 2), ("{}", 5)):
            value, low, high = found[key]
            assert abs(value - truth) < 0.2 and high - low < 0.5
        assert found['{"ward":"C"}'][1:] == (0, 10) or found['{"ward":"C"}'][2] - found['{"ward":"C"}'][1] > 5


# ---- the life of a release -----------------------------------------------------------------------------------------------

def test_one_charge_replay_refine_and_a_tier_between(tmp_path):
    path = str(tmp_path / "a.db")
    db = start(path, SMALL, people(random.Random(5), SMALL, 30))
    text = options(SMALL, 2, name="r")
    first = one(db, "SELECT dp_release('middle', 'group_count', ?, ?)", question(SMALL), text)
    assert one(db, "SELECT count(*) FROM dp_charge WHERE tier = 'middle'") == 1
    assert one(db, "SELECT dp_release('middle', 'group_count', ?, ?)", question(SMALL), text) == first
    assert one(db, "SELECT count(*) FROM dp_charge WHERE tier = 'middle'") == 1
    one(db, "SELECT dp_diffuse('r', 'outer')")
    one(db, "SELECT dp_tier('between', 0.1, 1e9, 1e-6)")
    one(db, "SELECT dp_diffuse('r', 'between')")
    one(db, "SELECT dp_release('inner', 'group_count', ?, ?)", question(SMALL), options(SMALL, 2, name="r", refine=True))
    assert one(db, "SELECT dp_verify()") == "ok"
    stddev = [s for (s,) in db.execute("SELECT DISTINCT stddev FROM dp_value WHERE key = '{}' ORDER BY 1")]
    assert len(stddev) == 4 and stddev[1] / stddev[0] == pytest.approx(2, rel=1e-3)
    # a key of dp_interval may have its attributes in any order
    whole = strict_json(one(db, "SELECT dp_interval('r', 'outer', ?, 0.95)", '{"sex":"F","ward":"A"}'))
    assert whole == strict_json(one(db, "SELECT dp_interval('r', 'outer', ?, 0.95)", '{"ward":"A","sex":"F"}'))
    assert "no value for this key" in refused(db, "SELECT dp_interval('r', 'outer', '{\"sexy\":\"F\"}', 0.95)")
    assert "exists with other parameters" in refused(db, "SELECT dp_release('middle', 'group_count', ?, ?)", question(SMALL), options(SMALL, 3, name="r"))
    with sqlite3.connect(path + "-ledger") as ledger:
        ledger.execute("UPDATE dp_release SET multipliers = json_replace(multipliers, '$[0]', json_extract(multipliers, '$[0]') - 1)")
    assert one(db, "SELECT dp_verify()") != "ok"


def test_batch_and_diagnose(tmp_path):
    db = start(str(tmp_path / "a.db"), SMALL, people(random.Random(6), SMALL, 400, most=6))
    batch = [{"tier": "inner", "kind": "group_count", "sql": question(SMALL), "options": json.loads(options(SMALL, 2, name="r", diagnose=True)), "diffuse": ["outer"]}]
    one(db, "SELECT dp_plan(?)", json.dumps(batch))
    one(db, "SELECT dp_batch(?)", json.dumps(batch))
    share = strict_json(one(db, "SELECT dp_clipping('r', 'inner')"))["share"]
    assert 0.7 < share <= 1
    assert one(db, "SELECT count(*) FROM dp_value WHERE tier = 'outer'") == 1 + 5 + 4 + 2 + 20 + 10 + 8


@pytest.mark.parametrize("kind, more", [("group_count", {}), ("group_avg", {"lo": -3, "hi": 12}), ("group_sum", {"clip": 5, "mechanism": "laplace"})])
def test_shards_are_one_database(kind, more, tmp_path):
    """The states of three shards, with units in several of them, give the same release as one database, to the last integer."""
    rows = people(random.Random(7), SMALL, 60)
    names = [str(tmp_path / f"{i}.db") for i in range(4)]
    sql = question(SMALL, "x" if kind != "group_count" else None).replace("'", "''")
    text = options(SMALL, 2, **more).replace("'", "''")
    for i, name in enumerate(names):
        start(name, SMALL, rows if i == 3 else rows[i::3]).close()
    for name in names[:3]:
        connect(name).execute(f"CREATE TABLE state AS SELECT dp_partial('{kind}', '{sql}', '{text}') AS s")
    joined = str(tmp_path / "joined.db")
    start(joined, SMALL).close()
    attach = [f"ATTACH '{name}' AS d{i}" for i, name in enumerate(names[:3])]
    copies = [f"{'CREATE TABLE state AS' if i == 0 else 'INSERT INTO state'} SELECT s FROM d{i}.state" for i in range(3)]
    run_fixed(joined, attach + copies)
    run_fixed(joined, ["SELECT fixed_seed(3)", "SELECT dp_merge('inner', dp_states(s), 'r') FROM state"])
    run_fixed(names[3], ["SELECT fixed_seed(3)", f"SELECT dp_release('inner', '{kind}', '{sql}', '{options(SMALL, 2, name='r', **more)}')"])
    assert (point_of(joined, "r", "inner") == point_of(names[3], "r", "inner")).all()


def test_plan_says_what_the_tables_cost():
    db = start(":memory:", SMALL)
    plan = strict_json(one(db, "SELECT dp_plan('inner', 'group_count', NULL, ?)", options({"ward": 5, "age": 4, "sex": 2}, 2)))
    assert [t["table"] for t in plan["tables"]] == [list(t) for t in reference.closure(SMALL, 2)]
    assert [t["cells"] for t in plan["tables"]] == [1, 5, 4, 2, 20, 10, 8]
    weights = reference.closure(SMALL, 2)
    alone = strict_json(one(db, "SELECT dp_plan('inner', 'group_count', 1, '{\"keys\":[\"a\"]}')"))["half_width"]
    cost = sum((alone / t["half_width"]) ** 2 for t in plan["tables"])
    assert "7 tables that agree" in plan["summary"] and f"would cost {cost:.1f} times as much" in plan["summary"]
    assert len(weights) == 7


def test_keys_are_texts():
    """1, 1.0 and '1' are one key, NULL is a key where the list has null, and a row with another key counts in no table."""
    with quick_path() as path:
        db = start(path, ODD, [], tiers=(("exact", 900.0),))
        rows = [(i, {'a "b"': "ä'", "n": n, "one": one_, "yes": 1}, 0) for i, (n, one_) in enumerate([(1, "only"), (1.0, "only"), ("1", "only"), (None, "only"),
                                                                                               ("1.50", "only"), (1, "other"), (1, None), (7, "only")])]
        fill(db, ODD, rows)
        one(db, "SELECT dp_release('exact', 'group_count', ?, ?)", question(ODD), options(ODD, 2, name="r"))
        found = {k: round(v) for k, v in db.execute("SELECT key, value FROM dp_table('r', 'exact', 'N')")}
        assert found == {'{"n":"1"}': 3, '{"n":"1.5"}': 0, '{"n":"null"}': 1}
        assert [round(v) for (v,) in db.execute("SELECT value FROM dp_table('r', 'exact')")] == [4]
        names = [k for (k,) in db.execute("SELECT key FROM dp_table('r', 'exact', 'yes', ?)", ('a "b"',))]
        assert names[1] == json.dumps({'a "b"': "x.y", "yes": "1"}, separators=(",", ":")) and len(names) == 6


def test_rows_as_units(tmp_path):
    db = start(str(tmp_path / "a.db"), SMALL, people(random.Random(8), SMALL, 50), protects="row", tiers=(("exact", 900.0),))
    one(db, "SELECT dp_release('exact', 'group_count', ?, ?)", question(SMALL), options(SMALL, 2, name="r"))
    exact = one(db, "SELECT count(*) FROM person")
    value, stddev = db.execute("SELECT value, stddev FROM dp_table('r', 'exact')").fetchone()
    assert abs(value - exact) < 9 * stddev
    assert release_row(str(tmp_path / "a.db"), "r")["sensitivity"] < 2 ** 32


# ---- refusals -------------------------------------------------------------------------------------------------------------

REFUSALS = [
    ("group_count", "SELECT age, ward, sex FROM person", options(SMALL, 2),
     "column 1 of the question is 'age', attribute 1 of keys is 'ward' (give both in the same order, with AS where the names differ)"),
    ("group_count", None, options({"ward": ["A", "A"], "age": [1], "sex": [1]}, 1), "keys: 'ward' has the key 'A' twice (keys are compared as texts)"),
    ("group_count", None, options({"ward": ["1", 1], "age": [1], "sex": [1]}, 1), "keys: 'ward' has the key '1' twice (keys are compared as texts)"),
    ("group_count", None, options({"ward": []}, 1), "keys: 'ward' has no key"),
    ("group_count", None, options({}, 1), "keys has no attribute"),
    ("group_count", None, options({"ward": ["A"], "Ward": ["B"]}, 1), "keys: 'ward' and 'Ward' are the same name (names ignore case)"),
    ("group_count", None, json.dumps({"keys": SMALL, "clip": 1}), "ways is missing"),
    ("group_count", None, json.dumps({"ways": 2, "clip": 1}), "ways needs keys as an object of attributes"),
    ("group_count", None, json.dumps({"ways": 2, "clip": 1, "keys": ["A"]}), "ways needs keys as an object of attributes"),
    ("group_count", None, options(SMALL, 4), "ways must be a whole number from 1 to 3"),
    ("group_count", None, options(SMALL, 0), "ways must be a whole number from 1 to 3"),
    ("group_count", None, options(SMALL, 1.5), "ways must be a whole number"),
    ("group_count", None, options(SMALL, [["ward", "sx"]]), "ways: unknown attribute 'sx' (known attributes: ward, age, sex)"),
    ("group_count", None, options(SMALL, [["ward", "age"], ["age", "ward"]]), "is there twice"),
    ("group_count", None, options(SMALL, [["ward", 0]]), "ways: a weight must be a number above 0"),
    ("group_count", None, options(SMALL, [["ward", 1e300]]), "ways: a weight must be a number above 0 (from 1e-06 to 1e+06)"),
    ("group_count", None, json.dumps({"keys": SMALL, "clip": 1, "ways": 10 ** 20}), "ways must be a whole number from 1 to 3"),
    ("group_median", None, json.dumps({"keys": ["A"], "ways": 1, "lo": 0, "hi": 1}), "kind 'group_median' has no cross tables (ways is for group_count,"),
    ("count", None, json.dumps({"ways": 1, "clip": 1}), "kind 'count' has no cross tables (ways is for group_count,"),
    ("group_count", None, options(SMALL, [["ward", 2, "age"]]), "ways: a weight is not at the end of its table"),
    ("group_count", None, options({"a": list(range(2000)), "b": list(range(2000)), "c": [0, 1]}, 2),
     "the tables have 4012003 cells (at most 1048576; ask for fewer ways or a list of tables)"),
    ("group_count", None, options({f"k{i}": [0, 1] for i in range(17)}, 1), "keys has more than 16 attributes"),
    ("group_count", None, options({f"k{i}": list(range(99)) for i in range(16)}, 1), "must be below 2^62"),
    ("group_count", None, options(SMALL, 2, max_groups=3), "cross tables have public keys only"),
    ("group_median", None, json.dumps({"keys": SMALL, "lo": 0, "hi": 1}), "kind 'group_median' has no cross tables"),
    ("group_count_distinct", None, json.dumps({"keys": SMALL, "clip": 1}), "kind 'group_count_distinct' has no cross tables"),
    ("ou_group_count", None, json.dumps({"keys": SMALL, "radius": 9}), "kind 'ou_group_count' has no cross tables"),
]


@pytest.mark.parametrize("kind, sql, text, message", REFUSALS)
def test_refusals_read_and_charge_nothing(kind, sql, text, message):
    db = start(":memory:", SMALL, people(random.Random(9), SMALL, 5))
    said = refused(db, "SELECT dp_release('inner', ?, ?, ?)", kind, sql or question(SMALL), text)
    assert message in said, said
    assert one(db, "SELECT count(*) FROM dp_release") == 0


def test_other_refusals(tmp_path):
    db = start(str(tmp_path / "a.db"), SMALL, people(random.Random(9), SMALL, 5))
    assert "cross tables are for dp_release() and dp_answer()" in refused(db, "SELECT dp_group_count('inner', ward, 1, ?) FROM person", json.dumps({"keys": SMALL}))
    assert "cross tables are for dp_release() and dp_answer()" in refused(db, "SELECT dp_group_count('inner', ward, 1, ?) FROM person", options(SMALL, 2))
    one(db, "SELECT dp_release('inner', 'group_count', ?, ?)", question(SMALL), options(SMALL, 2, name="r"))
    one(db, "SELECT dp_release('inner', 'count', 'SELECT 1 FROM person', '{\"name\":\"plain\",\"clip\":1}')")
    assert "no table of the release contains ward and age and sex" in refused(db, "SELECT * FROM dp_table('r', 'inner', 'ward', 'age', 'sex')")
    assert "unknown attribute 'x' (known attributes: ward, age, sex)" in refused(db, "SELECT * FROM dp_table('r', 'inner', 'x')")
    assert "the attribute 'WARD' is there twice" in refused(db, "SELECT * FROM dp_table('r', 'inner', 'ward', 'WARD')")
    assert "is not of cross tables" in refused(db, "SELECT * FROM dp_table('plain', 'inner')")
    assert "has no values at tier 'outer'" in refused(db, "SELECT * FROM dp_table('r', 'outer')")
    kernel = json.dumps([["{}", "a", 1]])
    assert "neither a symbol nor counts or sums of public groups" in refused(db, "SELECT dp_mix('r', 'outer', ?)", kernel)


def test_a_guarded_analyst_reads_tables_of_visible_tiers(tmp_path):
    """The members of a tier read its cross tables and those of outer tiers. Inner activity changes nothing that they see, and an analyst
    can ask for cross tables with a grant."""
    def session(inner):
        path = str(tmp_path / f"{inner}.db")
        db = start(path, SMALL, people(random.Random(10), SMALL, 40))
        db.close()
        run = ["SELECT fixed_seed(5)", f"SELECT dp_release('middle', 'group_count', '{question(SMALL)}', '{options(SMALL, 2, name='r')}')",
               "SELECT dp_diffuse('r', 'outer')"]
        run_fixed(path, run + ([f"SELECT dp_release('inner', 'group_count', '{question(SMALL)}', '{options(SMALL, 3, name='secret')}')"] if inner else []))
        db = connect(path)
        one(db, "SELECT dp_grant('ask', 'outer', 0.5)")
        one(db, "SELECT dp_guard('outer', '{\"ask\":\"ask\"}')")
        return db
    quiet, busy = session(False), session(True)
    queries = ["SELECT * FROM dp_table('r', 'outer', 'ward', 'sex')", "SELECT name, kind, keys, ways FROM dp_release", "SELECT * FROM dp_value",
               "SELECT * FROM dp_table('r', 'middle')", "SELECT * FROM dp_table('secret', 'outer')", "SELECT * FROM dp_table('secret', 'inner')"]
    for query in queries:
        seen = []
        for db in (quiet, busy):
            try:
                seen.append(db.execute(query).fetchall())
            except sqlite3.Error as error:
                seen.append(str(error))
        assert seen[0] == seen[1] and seen[0], query
    assert len(quiet.execute(queries[0]).fetchall()) == 10
    assert isinstance(refused(quiet, queries[3]), str)
    asked = "SELECT key, value FROM dp_answer('outer', 'group_count', ?, ?) WHERE key = '{}'"
    assert len(quiet.execute(asked, (question(SMALL), options(SMALL, 1, name="mine"))).fetchall()) == 1
    assert len(quiet.execute("SELECT * FROM dp_table('ask/mine', 'outer', 'ward')").fetchall()) == 5
