"""Tests that releases_left is the number of releases that then succeed, for budgets that are planned to the last release and for
others, and that a grant may have all of them. The truth is to ask until the ledger refuses."""

import json
import math
import random

import pytest

from conftest import connect, one, refused

pytestmark = pytest.mark.alarm(0)

CALLS = {  # each kind costs as much as a tier's rate allows, up to the rounding of its noise
    "count": ("x", {"clip": 3}), "sum": ("x", {"clip": 0.7}), "group_count": ("k", {"clip": 1, "keys": ["a", "b"]}), "avg": ("x", {"lo": 0, "hi": 5}),
    "median": ("x", {"lo": 0, "hi": 8, "bins": 8}), "choice": ("k", {"candidates": ["a", "b"]}),
}
DRAWS = [("choice", "exponential"), ("choice", "response"), ("choice", "permute-and-flip"), ("median", "exponential"), ("median", "laplace")]


def books(tiers):
    db = connect()
    db.execute("CREATE TABLE t(unit, k, x)")
    db.execute("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    one(db, "SELECT dp_init()")
    one(db, "SELECT dp_protect('t', 'unit')")
    for tier in tiers:
        one(db, "SELECT dp_tier(?, ?, ?, ?, ?)", *tier)
    return db


def left(db, tier="t"):
    return one(db, "SELECT releases_left FROM dp_budget WHERE tier = ?", tier)


def asked(db, rng, kinds, tier="t"):
    kind, mechanism = rng.choice(kinds)
    column, options = CALLS[kind]
    one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, f"SELECT {column} FROM t",
        json.dumps({**options, **({"mechanism": mechanism} if mechanism else {})}))


def check(db, rng, kinds, wanted, tier="t"):
    """Makes releases until the ledger refuses one. After each, releases_left is one less."""
    assert left(db, tier) == wanted
    for more in range(wanted, 0, -1):
        assert left(db, tier) == more
        asked(db, rng, kinds, tier)
    assert left(db, tier) == 0
    with pytest.raises(Exception, match="would exceed"):
        asked(db, rng, kinds, tier)
    assert one(db, "SELECT dp_verify()") == "ok"


def rate_of(db, epsilon, how):
    """Returns the rate of releases with this epsilon: as dp_rdp_laplace() says, as a person computes it, or by a series."""
    if how == "function":
        return one(db, "SELECT dp_rdp_laplace(1, ?, 1)", epsilon)
    return epsilon + math.expm1(-epsilon) if how == "formula" else epsilon - 1 + math.exp(-epsilon)


@pytest.mark.parametrize("how", ["function", "formula"])
@pytest.mark.parametrize("kinds", [[(kind, None) for kind in CALLS], DRAWS], ids=["defaults", "named"])
def test_a_pure_budget_that_is_planned_to_the_last_release(kinds, how):
    rng = random.Random(how + str(len(kinds)))
    plain = books([])
    for count in [1, 1, 1, 2, 3, 5, 7, 10] + [rng.randrange(1, 13) for _ in range(12)]:
        epsilon = rng.choice([0.1, 0.2, 0.3, 0.5, 1, 2, rng.uniform(0.01, 6)])
        budget = rng.choice([count * epsilon, math.fsum([epsilon] * count)])
        tiers = [("t", rate_of(plain, epsilon, how), budget, 0, "pure")]
        if rng.random() < 0.3:  # an inner tier that pays the same
            tiers.insert(0, ("in", tiers[0][1] * (1 + 1e-7), budget, 0, "pure"))
        check(books(tiers), rng, kinds, count)


def test_a_pure_budget_with_a_rest():
    rng, plain = random.Random(3), books([])
    for _ in range(15):
        epsilon, count, rest = rng.uniform(0.05, 3), rng.randrange(1, 8), rng.uniform(0.001, 0.99)
        check(books([("t", rate_of(plain, epsilon, "function"), (count + rest) * epsilon, 0, "pure")]), rng, [(kind, None) for kind in CALLS], count)


@pytest.mark.parametrize("accountant", ["rdp", "gdp"])
def test_a_gaussian_budget_that_is_planned_to_the_last_release(accountant):
    rng = random.Random(accountant)
    kinds = [("count", None), ("sum", None)]
    for count in (1, 2, 3, 8):
        epsilon = rng.choice([0.5, 1, 3])
        db = books([])
        if accountant == "gdp":
            rate = one(db, "SELECT dp_rate(?, 1e-6, ?)", epsilon, count)
        else:
            one(db, "SELECT dp_tier('probe', 1e-9, ?, 1e-6, 'rdp')", epsilon)
            rate = one(db, "SELECT rate_limit FROM dp_tier") / (count + 0.5)
        check(books([("t", rate, epsilon, 1e-6, accountant)]), rng, kinds, count)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_grant_may_have_all_that_is_left(count):
    for epsilon in (0.1, 0.5, 1, 3):
        tier = ("t", epsilon + math.expm1(-epsilon), count * epsilon, 0, "pure")
        assert f"has budget left for {count} such question" in refused(books([tier]), "SELECT dp_grant('g', 't', ?)", count + 1)
        db = books([tier])
        one(db, "SELECT dp_grant('g', 't', ?)", count)
        assert left(db) == 0 and one(db, "SELECT dp_verify()") == "ok"
