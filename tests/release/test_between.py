"""Tests values for tiers that were created between two points of an existing release: which tiers pay, how the values are
distributed, and what is refused. tests/noise/test_bridges.c tests the distribution of each draw. This file tests the joint
distribution of the points that the SQL functions make, for all orders of requests. This joint distribution must be that
of one path, within seven standard errors (noise_helpers.py).
"""

import itertools
import json
import math
import sqlite3

import numpy
import pytest

from conftest import ledger_of, start
from conftest import reading
from noise_helpers import (charges, check_covariance, check_mean, check_path, column, connect, create_table, error_of, fill, one, open_ledger, quick_path, record)

pytestmark = pytest.mark.alarm(2e-8)

CLIP = 2.0
ROWS = [(9.0, 1), (2.5, 2), (-1.0, 3)]
TRUTH = 2 + 2 - 1
RATES = {"a": 1.0, "b": 0.5, "c": 0.2, "d": 0.1, "e": 0.02}


@pytest.fixture
def path():
    with quick_path() as path:
        yield path


def ledger(*tiers, path=":memory:"):
    db = open_ledger({tier: RATES[tier] for tier in tiers}, path=path)
    fill(db, ROWS)
    return db


def add(db, tier, more="1e15, 1e-6"):
    one(db, f"SELECT dp_tier(?, ?, {more})", tier, RATES[tier])


def release(db, tier, name="r", **options):
    return one(db, "SELECT dp_sum(?, x, ?, ?) FROM t", tier, CLIP, json.dumps({"name": name, **options}))


def diffuse(db, tier, name="r"):
    return one(db, "SELECT dp_diffuse(?, ?)", name, tier)


def paid(db, what="rate"):
    """Returns what each tier has paid for release r."""
    return dict(db.execute(f"SELECT tier, sum({what}) FROM dp_charge WHERE release = 'r' GROUP BY tier"))


def books(path, sql):
    with sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True) as ledger:
        return ledger.execute(sql).fetchall()


# ---- who pays ------------------------------------------------------------------------------------------------------


def test_who_sees_the_point_pays_its_rate_and_its_slack(path):
    """A release is published at a and diffused to e. Its path has an unpublished point for b, between the points for a
    and e. Then a point for c is made between b and e. The tiers b and c pay the rate and the slack of this point,
    because they see it. The tier a pays nothing, because it has paid for the innermost point."""
    db = ledger("a", "b", "e", path=path)
    release(db, "a")
    diffuse(db, "e")
    (slack,), = books(path, "SELECT slack FROM dp_release")
    add(db, "c")
    inherited = paid(db)
    assert inherited["c"] == inherited["b"] == inherited["e"]
    before = paid(db, "slack")
    value = diffuse(db, "c")
    now, rate = paid(db), record(db, "SELECT rate FROM dp_publication WHERE tier = 'c'")["rate"]
    assert now["a"] == inherited["a"] and now["e"] == inherited["e"]
    assert math.isclose(now["b"], rate, rel_tol=1e-12) and math.isclose(now["c"], rate, rel_tol=1e-12)
    (after,), = books(path, "SELECT slack FROM dp_release")
    assert after > slack
    slacks = paid(db, "slack")
    assert slacks["a"] == before["a"] and slacks["e"] == before["e"] and slacks["b"] == slacks["c"] == after
    assert [tier for tier, in books(path, "SELECT tier FROM dp_path ORDER BY clock")] == ["a", "b", "c", "e"]
    assert diffuse(db, "c") == value == one(db, "SELECT dp_sum('c', x, ?, 'r') FROM t", CLIP)
    assert paid(db) == now and one(db, "SELECT dp_verify()") == "ok"
    exposure = json.loads(one(db, "SELECT dp_exposure('c,e')"))
    assert math.isclose(exposure["rate"], rate, rel_tol=1e-12) and exposure["slack"] >= after
    assert json.loads(one(db, "SELECT dp_exposure('e')"))["slack"] >= slacks["e"]


def test_with_data_and_refine_no_row_is_read():
    """With the option refine, a point between two points is made without reading the data. The trace of the connection shows the
    statement that reads rows, and shows none here."""
    db = ledger("a", "e")
    sql = "SELECT dp_release(?, 'sum', 'SELECT x FROM t', ?)"
    one(db, sql, "a", json.dumps({"name": "r", "clip": CLIP}))
    diffuse(db, "e")
    add(db, "c")
    with reading(db) as reads:
        value = one(db, sql, "c", json.dumps({"name": "r", "clip": CLIP, "refine": True}))
        assert not reads
        one(db, sql, "c", json.dumps({"clip": CLIP}))
        assert reads
    assert value == diffuse(db, "c") and one(db, "SELECT dp_verify()") == "ok"


def test_the_slack_of_a_narrow_gap_is_charged(path):
    """The variances of the two points differ by some hundred lattice steps squared. The slack of a point between them
    is too small to change the double that holds the slack of the first draw, so the sum of both is rounded up. At a
    tier with exact Gaussian accounting, the slack counts against the part of delta that is set aside."""
    db = open_ledger({"a": 0.1}, path=path)
    one(db, "SELECT dp_tier('z', ?, 8, 1e-6, 'gdp')", 0.1 * (1 - 1e-10))
    fill(db, ROWS)
    release(db, "a")
    diffuse(db, "z")
    (slack,), = books(path, "SELECT slack FROM dp_release")
    one(db, "SELECT dp_tier('g', ?, 10, 1e-6, 'gdp')", 0.1 * (1 - 5e-11))
    diffuse(db, "g")
    clocks = dict(db.execute("SELECT tier, clock FROM dp_publication"))
    assert clocks["g"] - clocks["a"] >= 16 <= clocks["z"] - clocks["g"] <= 1000
    (after,), = books(path, "SELECT slack FROM dp_release")
    assert slack < after < slack * (1 + 1e-12)
    assert paid(db, "slack")["g"] >= after
    (spent, limit), = books(path, "SELECT spent_slack, slack_limit FROM dp_budget JOIN dp_tier ON name = tier WHERE tier = 'g'")
    assert after <= spent <= limit
    exposure = json.loads(one(db, "SELECT dp_exposure('g')"))
    assert exposure["slack"] >= after and exposure["epsilon"] <= 10
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("edit,found", [
    ("UPDATE dp_release SET slack = slack / 2", "dp_seal"), ("UPDATE dp_budget SET spent_slack = 0 WHERE tier = 'c'", "dp_budget"),
    ("UPDATE dp_path SET clock = clock + 1 WHERE tier = 'c'", "dp_publication"),
    ("UPDATE dp_path SET value = value + 4194304 WHERE tier = 'c'", "dp_value"),
    ("DELETE FROM dp_path WHERE tier = 'c'", "dp_publication")])
def test_edits_of_the_point_and_of_its_slack_are_noticed(path, edit, found):
    db = ledger("a", "e", path=path)
    release(db, "a")
    diffuse(db, "e")
    add(db, "c")
    diffuse(db, "c")
    db.close()
    edited = ledger_of(path)
    edited.execute(edit)
    edited.close()
    assert one(connect(path), "SELECT dp_verify()").startswith(found)


# ---- what the points are -------------------------------------------------------------------------------------------

DIM = 1024


def noise_of_orders(kind, radius, orders):
    """For each of the orders, makes a vector release, then creates the tiers in this order, and diffuses the release to
    each tier. Returns the noise, with one column for each of the five tiers, and the standard deviations at the
    tiers."""
    noise, tiers = [], sorted(RATES, key=RATES.get, reverse=True)
    for order in orders:
        db = open_ledger({"a": RATES["a"]})
        create_table(db, "x, unit")
        one(db, f"SELECT dp_release('a', '{kind}', 'SELECT x FROM t', ?)",
            json.dumps({"name": "r", "dim": DIM, "clip": 1, **radius}))
        for tier in order:
            add(db, tier)
            one(db, "SELECT dp_diffuse('r', ?)", tier)
        published = {tier: (clock, shrink) for tier, clock, shrink in db.execute("SELECT tier, clock, shrink FROM dp_publication")}
        step = 2.0 ** one(db, "SELECT granularity FROM dp_release")
        noise.append(numpy.array([numpy.array(column(db, "SELECT value FROM dp_value WHERE tier = ? ORDER BY component", tier))
                                  / published[tier][1] for tier in tiers]).T)
        assert one(db, "SELECT dp_verify()") == "ok"
        db.close()
    return noise, [math.sqrt(published[tier][0]) * step for tier in tiers]


@pytest.mark.parametrize("kind,radius", [("vec_sum", {}), ("ou_vec_sum", {"radius": 100})])
@pytest.mark.sample(1)
def test_all_orders_of_five_tiers_have_the_joint_law_of_one_path(kind, radius):
    """The covariance of two points is the variance of the inner point. The test checks each of the 24 orders by itself,
    and misses a covariance error of 25% with probability below 1e-6. It also checks all orders together, and misses a
    covariance error of 7% with this probability."""
    orders = list(itertools.permutations("bcde"))
    noise, stddev = noise_of_orders(kind, radius, orders if kind == "vec_sum" else orders[::9])
    for order, one_order in zip(orders if kind == "vec_sum" else orders[::9], noise):
        check_path(one_order, stddev, "".join(order))
    check_path(numpy.concatenate(noise), stddev, "all orders")


def test_laplace_points_have_the_joint_law_of_one_path():
    """Tests 600 paths of a Laplace sum. The point at a is drawn first, then the point at d, and then the points at b and c
    between them. If X is a discrete Laplace variable, the variance of X^2 is five times the square of the variance of X."""
    db = ledger("a")
    for i in range(600):
        release(db, "a", name=f"r{i:04}", mechanism="laplace")
    for tier in ("d", "b", "c"):
        add(db, tier)
        for i in range(600):
            diffuse(db, tier, f"r{i:04}")
    noise, clocks = {}, {}
    step = 2.0 ** one(db, "SELECT DISTINCT granularity FROM dp_release")
    for tier in "abcd":
        noise[tier] = numpy.array(column(db, "SELECT value FROM dp_value WHERE tier = ? ORDER BY release", tier)) - TRUTH
        clocks[tier] = one(db, "SELECT DISTINCT clock FROM dp_publication WHERE tier = ?", tier) * step**2
        check_mean(noise[tier], 0, math.sqrt(clocks[tier]), tier)
        check_mean(noise[tier]**2, clocks[tier], math.sqrt(5) * clocks[tier], tier)
    for inner, outer in itertools.combinations("abcd", 2):
        step_law = noise[outer] - noise[inner]
        check_covariance(noise[inner], step_law, 0, inner + outer)
        check_mean(step_law**2, clocks[outer] - clocks[inner], math.sqrt(30) * (clocks[outer] - clocks[inner]), inner + outer)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("form", ["keys", "private", "mixed", "tree", "t"])
def test_other_forms_of_releases(form):
    """The test makes points at a new tier for public keys, private keys, a kernel at the new tier, a tree of counts, and OU by
    time. The values follow from these points. dp_verify() recomputes the values."""
    db = connect()
    one(db, "SELECT dp_init()")
    for tier in ("a", "e"):
        one(db, "SELECT dp_tier(?, ?, 1e6, 1e-3, 'rdp', 5e-4)", tier, RATES[tier])
    create_table(db, "k, x, unit")
    db.executemany("INSERT INTO t VALUES (?, ?, ?)", [("pq"[i % 2], i % 7, i) for i in range(4000)])
    make = {"keys": """dp_group_count('a', k, 1, '{"name":"r","keys":["p","q"]}')""",
            "private": "dp_group_count('a', k, 1, 'r')",
            "mixed": """dp_group_count('a', k, 1, '{"name":"r","keys":["p","q"]}')""",
            "tree": "dp_median('a', x, 0, 7, 'r')",
            "t": """dp_ou_count('a', x, NULL, 1, '{"name":"r","theta":0.001,"rho":1,"t":40}')"""}[form]
    one(db, f"SELECT {make} FROM t")
    diffuse(db, "e")
    one(db, "SELECT dp_tier('c', ?, 1e6, 1e-3, 'rdp', 5e-4)", RATES["c"])
    before = len(charges(db))
    if form == "mixed":
        assert set(json.loads(one(db, """SELECT dp_mix('r', 'c', '[["p","all",1],["q","all",1]]')"""))) == {"all"}
    else:
        diffuse(db, "c")
    # The selection of keys costs both a and c a delta. Only c pays the rate of the point.
    assert len(charges(db)) == before + (2 if form == "private" else 1)
    assert all((delta > 0) == (form == "private") for delta in column(db, "SELECT delta FROM dp_charge ORDER BY id")[before:])
    value = {"keys": 2000, "private": 2000, "mixed": 4000, "tree": 3.5, "t": None}[form]
    got = column(db, "SELECT value FROM dp_value WHERE tier = 'c'")
    assert got and (value is None or all(abs(x - value) < 200 for x in got))
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_model_gets_a_point_between_two_others():
    db = connect()
    one(db, """SELECT dp_init('{"protects":"row","adjacency":"replace"}')""")
    for tier in ("a", "e"):
        one(db, "SELECT dp_tier(?, ?, 1e6, 1e-6)", tier, RATES[tier])
    create_table(db, "y, v")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(i % 2, json.dumps([i % 3, 1])) for i in range(200)])
    one(db, """SELECT dp_release('a', 'sgd', 'SELECT y, v FROM t', '{"loss":"logistic","name":"r","n":200,"dim":2,"clip":3,"radius":1}')""")
    diffuse(db, "e")
    one(db, "SELECT dp_tier('c', ?, 1e6, 1e-6)", RATES["c"])
    assert len(json.loads(diffuse(db, "c"))) == 2
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- what is refused -----------------------------------------------------------------------------------------------


def test_a_tier_outside_a_refined_point_is_refused():
    """The release is made at d and then refined at b. The tier c between them gets no value. A tier outside d gets a
    value, because all points outside the first point d were drawn outward."""
    db = ledger("b", "d")
    release(db, "d")
    release(db, "b", refine=True)
    add(db, "c")
    before = charges(db)
    for sql in ("SELECT dp_diffuse('r', 'c')", "SELECT dp_sum('c', x, 2.0, '{\"name\":\"r\",\"refine\":true}') FROM t"):
        assert error_of(db, sql) == (sql[7:sql.index("(")] + ": tier 'c' was created after release 'r' was refined, outside a refined "
                                     "point of its path (make a release of its own)")
    assert charges(db) == before
    one(db, "SELECT dp_tier('far', 0.001, 1e15, 1e-6)")
    diffuse(db, "far")
    add(db, "e")
    diffuse(db, "e")
    add(db, "a")
    release(db, "a", refine=True)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_tiers_without_room_between_them_are_refused(mechanism):
    """A tier is refused if the variances of the two points leave less than 16 lattice steps squared for the new point,
    or if there is no Laplace scale between the scales of the two points. Public parameters alone decide this."""
    db = open_ledger({"a": 1.0, "z": 1.0 - 1e-13})
    fill(db, ROWS)
    release(db, "a", mechanism=mechanism)
    diffuse(db, "z")
    one(db, "SELECT dp_tier('late', ?, 1e15, 1e-6)", 1.0 - 5e-14)
    before = charges(db)
    assert error_of(db, "SELECT dp_diffuse('r', 'late')") == (
        "dp_diffuse: tier 'late' has a rate 1 too near that of a tier beside it for a point of release 'r' (make a release of "
        "its own)")
    assert charges(db) == before and one(db, "SELECT dp_verify()") == "ok"


def test_a_budget_that_is_spent_refuses_and_stores_nothing():
    db = ledger("a")
    release(db, "a")
    add(db, "e", more="dp_zcdp_epsilon(0.02001, 1e-6), 1e-6")
    diffuse(db, "e")
    add(db, "c", more="dp_zcdp_epsilon(0.21, 1e-6), 1e-6")
    release(db, "c", name="other", weight=0.5)
    before, points = charges(db), column(db, "SELECT tier FROM dp_publication")
    assert "would exceed its budget" in error_of(db, "SELECT dp_diffuse('r', 'c')")
    assert charges(db) == before and column(db, "SELECT tier FROM dp_publication") == points
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- several processes ---------------------------------------------------------------------------------------------


def test_processes_that_race_for_the_same_points_publish_one_value(path):
    """Two processes ask for the values at two tiers that were created after the release. One process asks in the
    opposite order."""
    db = ledger("a", "e", path=path)
    for i in range(15):
        release(db, "a", name=f"r{i}")
        diffuse(db, "e", f"r{i}")
    add(db, "c"), add(db, "d")
    racers = [start("""
        db = connect(sys.argv[1])
        for i in range(15): print(*(repr(one(db, f"SELECT dp_diffuse('r{i}', '{tier}')")) for tier in sys.argv[2:]))
        """, path, *order) for order in (["c", "d"], ["d", "c"])]
    outputs = [racer.communicate(timeout=600) for racer in racers]
    assert all(racer.returncode == 0 for racer in racers), outputs
    first, second = [[line.split() for line in output.splitlines()] for output, _ in outputs]
    assert [tuple(pair) for pair in first] == [(c, d) for d, c in second] and len(first) == 15
    assert one(db, "SELECT dp_verify()") == "ok"
