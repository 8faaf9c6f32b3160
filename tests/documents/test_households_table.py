"""The tables of sql/households.md, computed anew: what a household counts, in plain loops over fixtures/hagelloch_1861.csv, and the epsilon of
a household with dp_within()."""

import collections
import csv
import math
import pathlib

import pytest

from noise_helpers import one, open_ledger, connect

pytestmark = pytest.mark.alarm(1e-12)

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = [line.strip("|").split("|") for line in (ROOT / "sql/households.md").read_text().splitlines() if line.startswith(("| all", "| by"))]
CHILDREN = list(csv.DictReader((ROOT / "fixtures/hagelloch_1861.csv").open()))
AGES = ["0-4", "5-9", "10-14"]


def age(child):
    return AGES[min(2, int(float(child["age"]) / 5))]


GROUPS = {
    "all children": (lambda child: "all", ["all"]),
    "by age (0-4, 5-9, 10-14)": (age, AGES),
    "by age and sex": (lambda child: age(child) + " " + child["sex"], [f"{a} {sex}" for a in AGES for sex in ("female", "male")]),
}


def counted(group, keys, factor):
    """Returns the true counts, the counts with houses cut to `factor`, and how many houses are cut."""
    houses = collections.defaultdict(collections.Counter)
    for child in CHILDREN:
        if group(child) in keys:
            houses[child["house_id"]][group(child)] += 1
    counts, cut = collections.Counter(), 0
    for house in houses.values():
        point = {key: min(n, factor) for key, n in house.items()}
        size = math.sqrt(sum(n * n for n in point.values()))
        point = {key: n * min(1, factor / size) for key, n in point.items()}
        cut += any(point[key] < n - 1e-9 for key, n in house.items())
        counts.update(point)
    return sum(houses.values(), collections.Counter()), counts, cut


@pytest.mark.parametrize("row", ROWS, ids="".join)
def test_hagelloch(row):
    figures, factor, cut, share, error, other = (cell.strip() for cell in row)
    factor = float(factor)
    true, counts, houses = counted(*GROUPS[figures], factor)
    db = open_ledger({})
    sigma = math.sqrt(1 / 2 / one(db, "SELECT dp_rate(1.0, 1e-6)"))
    bias = math.sqrt(sum((true[key] - counts[key]) ** 2 for key in true) / len(true))
    assert houses == int(cut) and f"{sum(counts.values()) / sum(true.values()):.0%}" == share
    assert f"{math.hypot(bias, sigma):.1f}" == error and f"{math.hypot(bias, factor * sigma):.1f}" == other


@pytest.mark.parametrize("row", ROWS, ids="".join)
def test_the_release_counts_the_same(row):
    """At rate 1e6, where the noise is 1/1414 of a child."""
    factor, (group, keys) = float(row[1]), GROUPS[row[0].strip()]
    db = connect()
    db.execute("CREATE TABLE child(id INTEGER PRIMARY KEY, house INT, cell TEXT)")
    db.executemany("INSERT INTO child VALUES (?, ?, ?)", [(int(c["child_id"]), int(c["house_id"]), group(c)) for c in CHILDREN])
    one(db, "SELECT dp_init()")
    one(db, "SELECT dp_protect('child', 'id')")
    one(db, "SELECT dp_within('house', 'child', 'house', ?)", factor)
    one(db, "SELECT dp_tier('exact', 1e6, 1e15, 1e-6)")
    one(db, "SELECT dp_release('exact', 'group_count', 'SELECT cell FROM child', json_object('name', 'n', 'clip', 1, 'keys', json(?)))",
        "[" + ", ".join(f'"{key}"' for key in keys) + "]")
    _, counts, _ = counted(group, keys, factor)
    for key, value in db.execute("SELECT key, value FROM dp_value"):
        assert abs(value - counts[key]) < 12 / math.sqrt(2e6)


def test_factors():
    lines = (ROOT / "sql/households.md").read_text().splitlines()
    factors, epsilons = ([cell.strip() for cell in line.strip("|").split("|")[1:]] for line in lines if line.startswith(("| f |", "| epsilon of")))
    for factor, epsilon in zip(factors, epsilons, strict=True):
        db = connect()
        db.execute("CREATE TABLE child(id INTEGER PRIMARY KEY, house INT)")
        one(db, "SELECT dp_init()")
        one(db, "SELECT dp_protect('child', 'id')")
        one(db, "SELECT dp_within('house', 'child', 'house', ?)", float(factor))
        one(db, "SELECT dp_tier('public', dp_rate(1.0, 1e-6), 1.0, 1e-6, 'gdp')")
        assert float(f"{one(db, 'SELECT wider_epsilon FROM dp_budget'):.3g}") == float(epsilon)
