"""Tests budgets of pure differential privacy: epsilons add up, and only pure releases are admitted."""

import json
import math
import sqlite3

import mpmath as mp
import pytest

from conftest import reading
from kinds_reference import KINDS, by_query
from mechanism_truth import ORDERS, curve_of
from noise_helpers import charges, column, connect, error_of, fill, one, quick_path

LAPLACE = {"mechanism": "laplace"}
ROWS = [(1.0, 1), (2.5, 2), (-1.0, 3)]
SUM = "SELECT dp_sum(?, x, 2, ?) FROM t"


def ledger(*tiers, path=":memory:", options="{}"):
    """Makes a ledger with these tiers: (name, rate, epsilon[, delta, accountant]). Without delta and accountant, a tier is
    pure."""
    db = connect(path)
    one(db, "SELECT dp_init(?)", options)
    fill(db, ROWS)
    for name, rate, epsilon, *more in tiers:
        one(db, "SELECT dp_tier(?, ?, ?, ?, ?)", name, rate, epsilon, *(more or (0, "pure")))
    return db


def release(db, tier, name=None, **options):
    return one(db, SUM, tier, json.dumps({**({"name": name} if name else {}), **LAPLACE, **options}))


def at_infinity(blob):
    return curve_of(blob)[0][-1]


def cost(rate, weight=1.0):
    """Returns the epsilon that one release costs, measured in a separate ledger."""
    db = ledger(("t", rate, 1e6))
    release(db, "t", weight=weight)
    return at_infinity(one(db, "SELECT curve FROM dp_charge"))


def admitted(db, tier, **options):
    """Returns the number of releases that a tier admits, and the error of the first refused release."""
    for count in range(1000):
        try:
            release(db, tier, **options)
        except sqlite3.Error as error:
            return count, str(error)
    raise AssertionError("no end")


# ---- sums ----------------------------------------------------------------------------------------------------------


def sum_of(epsilon, count):
    """Returns the sum of `count` epsilons, rounded upward at every step."""
    total = 0.0
    for _ in range(count):
        total = math.nextafter(total + epsilon, math.inf)
    return total


@pytest.mark.parametrize("rate,count", [(0.1, 1), (0.1, 5), (1e-6, 7), (20.0, 3)])
def test_sums_are_enforced_to_the_last_digit(rate, count):
    """A budget equal to the sum, rounded upward, admits exactly `count` releases. A budget below the true sum admits one less."""
    each = cost(rate)
    edge = sum_of(each, count)
    with mp.workdps(30):
        below = float(mp.mpf(each) * count * (1 - mp.mpf(2) ** -52))
    for epsilon, wanted in ((edge, count), (below, count - 1), (math.nextafter(edge, math.inf), count)):
        db = ledger(("t", rate, epsilon))
        got, message = admitted(db, "t")
        assert got == wanted
        assert f"tier 't' would exceed its budget of epsilon {epsilon:g}: this needs {each:g}" in message
        assert message.endswith("(nothing was charged or read; without a period, nothing comes back)")
        assert len(charges(db)) == one(db, "SELECT count(*) FROM dp_release") == wanted
        assert one(db, "SELECT dp_verify()") == "ok"
    assert 0 <= (mp.mpf(edge) / (mp.mpf(each) * count) - 1) <= 1e-14


def test_different_costs_add_up():
    costs = [cost(0.1, weight) for weight in (1.0, 0.5, 0.01)]
    db = ledger(("t", 0.1, 100.0))
    for weight in (1.0, 0.5, 0.01):
        release(db, "t", weight=weight)
    spent, remaining, rate = db.execute("SELECT spent_epsilon, remaining_epsilon, spent_rate FROM dp_budget").fetchone()
    with mp.workdps(30):
        true = mp.fsum(mp.mpf(x) for x in costs)
    assert 0 <= spent - true <= 1e-14 and rate == 0
    assert math.isclose(remaining, 100 - spent, rel_tol=1e-12)


def test_the_epsilon_is_sensitivity_over_scale():
    with quick_path() as path:
        db = ledger(("t", 0.1, 100.0), path=path)
        release(db, "t", "r")
        spent = one(db, "SELECT spent_epsilon FROM dp_budget")
        s, clock = db.execute("SELECT sensitivity, clock FROM dp_release r JOIN dp_publication p ON p.release_id = r.id").fetchone()
        exposure = json.loads(one(db, "SELECT dp_exposure('t')"))
        db.close()
    truth = mp.mpf(s) / math.isqrt(clock // 2)
    assert 0 <= spent / truth - 1 <= 1e-12
    assert exposure["epsilon"] == spent and exposure["delta"] == 0 and exposure["tiers"] == [{"tier": "t", "delta": 0, "epsilon": spent}]


@pytest.mark.parametrize("rate,epsilon", [(0.1, 3.0), (1e-4, 0.1), (5.0, 50.0)])
def test_releases_left_are_left(rate, epsilon):
    """releases_left is the number of releases that the tier then admits, or one less."""
    db = ledger(("t", rate, epsilon))
    said = []
    for _ in range(1000):
        said.append(one(db, "SELECT releases_left FROM dp_budget"))
        try:
            release(db, "t")
        except sqlite3.Error:
            break
    got = len(said) - 1
    assert all(left <= got - i <= left + 1 for i, left in enumerate(said)) and got > 3


def test_plans_say_what_is_left():
    db = ledger(("in", 1.0, 9.0), ("out", 0.1, 2.0))
    plan = json.loads(one(db, "SELECT dp_plan('out', 'sum', 2, ?)", json.dumps(LAPLACE)))
    release(db, "out")
    for part in plan["tiers"]:
        spent, remaining, left = db.execute("SELECT spent_epsilon, remaining_epsilon, releases_left FROM dp_budget WHERE tier = ?",
                                            (part["tier"],)).fetchone()
        assert (part["epsilon_after"], part["remaining_epsilon"], part["releases_left"]) == (spent, remaining, left)
        assert spent == plan["epsilon"]
    assert "pure differential privacy" in error_of(db, "SELECT dp_plan('in', 'sum', 2, '{\"mechanism\":\"gaussian\"}')")
    assert json.loads(one(db, "SELECT dp_plan('in', 'sum', 2)"))["epsilon"] > plan["epsilon"]  # Laplace noise is the default here


def test_plans_say_what_is_paid():
    db = ledger(("t", 1.0, 9.0))
    assert json.loads(one(db, "SELECT dp_plan('t', 'sum', 2, ?)", json.dumps(LAPLACE)))["tiers"][0]["pays"] > 0


# ---- what is not admitted ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_gaussian_noise_is_refused_at_and_outside(kind):
    """Gaussian noise is refused before a row is read. Gaussian noise is allowed at inner tiers, which members of the
    pure tier do not see."""
    parameters = {"clip": 1.0, "lo": 0.0, "hi": 1.0, "q": 0.5, "bins": 4, "dim": 2, "radius": 10.0, "keys": ["a"]}
    takes = (KINDS[kind].bounds.split() if "clip" in KINDS[kind].bounds else KINDS[kind].bounds.split()) + (
        ["keys"] if "group" in kind else []) + (["clip"] if "histogram" in kind else [])
    parameters = {key: parameters[key] for key in takes} | ({} if kind.startswith("ou_") else {"mechanism": "gaussian"})
    db = ledger(("rdp in", 5.0, 1e4, 1e-6, "rdp"), ("pure", 1.0, 1e6), ("rdp out", 0.1, 1e4, 1e-6, "rdp"))
    db.execute("CREATE VIEW source AS SELECT x, 'a' AS k, '[1,2]' AS v FROM t")
    with reading(db) as reads:
        for tier in ("pure", "rdp out"):
            sql, arguments = by_query(kind, parameters, tier, "source")
            message = error_of(db, sql, *arguments)
            assert "tier 'pure' has a budget of pure differential privacy" in message and "Gaussian noise" in message
    assert not reads and not charges(db)
    sql, arguments = by_query(kind, parameters, "rdp in", "source")
    one(db, sql, *arguments)
    assert column(db, "SELECT DISTINCT tier FROM dp_charge") == ["rdp in"]
    assert "pure differential privacy" in error_of(db, "SELECT dp_diffuse('release-1', 'rdp out')")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_private_keys_are_refused():
    db = ledger(("in", 1.0, 1e4, 1e-6, "rdp"), ("pure", 0.1, 1e6))
    for tier in ("in", "pure"):
        message = error_of(db, "SELECT dp_group_count(?, x, 1) FROM t", tier)
        assert "delta_keys" in message or "pure differential privacy" in message
    assert not charges(db)


@pytest.mark.parametrize("arguments,wanted", [
    ("'t', 1, 1, 1e-6, 'pure'", "delta of accountant 'pure' must be a number in [0, 0]"),
    ("'t', 1, 1, NULL, 'pure'", "delta of accountant 'pure'"),
    ("'t', 1, 1, 'x', 'pure'", "delta of accountant 'pure'"),
    ("'t', 1, 1, -1, 'pure'", "delta of accountant 'pure'"),
    ("'t', 1, 0, 0, 'pure'", "epsilon"),
    ("'t', 1, 9e999, 0, 'pure'", "epsilon"),
    ("'t', 1, 1, 0, 'pure', 1e-9", "delta_keys must be less than delta"),
    ("'t', 1, 1, 0, 'rdp'", "delta must be"),
    ("'t', 1, 1, 0", "delta must be"),
    ("'t', 1, 1, 0, 'Pure'", "accountant must be 'rdp', 'gdp' or 'pure'"),
])
def test_bad_tiers(arguments, wanted):
    db = ledger()
    assert wanted in error_of(db, f"SELECT dp_tier({arguments})")
    assert one(db, "SELECT count(*) FROM dp_tier") == 0


def test_the_same_tier_again():
    db = ledger(("t", 1.0, 2.0))
    assert one(db, "SELECT dp_tier('t', 1.0, 2.0, 0, 'pure')") == one(db, "SELECT dp_tier('t', 1, 2, 0.0, 'pure', 0)") == "t"
    assert "exists with other parameters" in error_of(db, "SELECT dp_tier('t', 1.0, 2.0, 1e-6, 'rdp')")
    assert "exists with other parameters" in error_of(db, "SELECT dp_tier('t', 1.0, 2.5, 0, 'pure')")


# ---- tiers of several kinds ----------------------------------------------------------------------------------------


def test_one_path_through_all_accountants():
    """One release is published at pure tiers and rdp tiers, and each tier pays by its own accountant. The release has Laplace
    noise, so it cannot be published at a gdp tier."""
    db = ledger(("rdp in", 2.0, 50.0, 1e-6, "rdp"), ("pure in", 1.0, 50.0), ("rdp out", 0.5, 50.0, 1e-6, "rdp"), ("pure out", 0.1, 50.0),
                ("gdp", 0.01, 5.0, 1e-6, "gdp"))
    release(db, "rdp in", "r")
    before = charges(db)
    assert [c[2] for c in before] == ["rdp in"]
    for tier, payers in (("pure out", ["pure in", "rdp out", "pure out"]), ("pure in", ["pure in"]), ("rdp out", ["rdp out"])):
        since = len(charges(db))
        one(db, "SELECT dp_diffuse('r', ?)", tier)
        assert [c[2] for c in charges(db)[since:]] == payers
        assert one(db, "SELECT dp_verify()") == "ok"
    assert "tier 'gdp' has exact Gaussian accounting" in error_of(db, "SELECT dp_diffuse('r', 'gdp')")
    spent = dict(db.execute("SELECT tier, spent_epsilon FROM dp_budget").fetchall())
    infinity = dict(db.execute("SELECT tier, spent FROM dp_rdp WHERE alpha > 1e300").fetchall())
    for tier in ("pure in", "pure out"):
        assert spent[tier] == infinity[tier]
    for tier in ("rdp in", "rdp out"):
        assert spent[tier] <= infinity[tier]
    assert spent["pure in"] > spent["pure out"] > 0 and spent["gdp"] == 0
    # The charges of the pure tiers follow from the path, for any order of requests.
    for tier in ("pure in", "pure out"):
        s, clock = db.execute("SELECT sensitivity, clock FROM dp_release r JOIN dp_publication p ON p.release_id = r.id"
                              " WHERE tier = ?", (tier,)).fetchone()
        assert 0 <= spent[tier] / (mp.mpf(s) / math.isqrt(clock // 2)) - 1 <= 1e-11
    exposure = json.loads(one(db, "SELECT dp_exposure('pure in,rdp out')"))
    assert math.isclose(exposure["epsilon"], spent["pure in"], rel_tol=1e-12) and exposure["delta"] == 0


def test_a_gaussian_sight_has_no_pure_epsilon():
    """A pure tier has not seen an inner Gaussian release, but a coalition with an inner member has, so the coalition has no pure
    epsilon."""
    db = ledger(("in", 2.0, 50.0, 1e-6, "rdp"), ("pure", 1.0, 50.0))
    one(db, "SELECT dp_count('in', x, 1) FROM t")
    release(db, "pure")
    exposure = json.loads(one(db, "SELECT dp_exposure('in,pure')"))
    assert exposure["epsilon"] is None
    assert {t["tier"]: t["epsilon"] is None for t in exposure["tiers"]} == {"in": False, "pure": True}
    assert json.loads(one(db, "SELECT dp_exposure('pure')"))["epsilon"] == one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'pure'")


def test_one_tier_that_refuses_keeps_all_from_paying():
    db = ledger(("in", 1.0, 2.0), ("out", 0.1, 50.0))
    release(db, "in")
    before = charges(db)
    _, message = admitted(db, "out")
    assert "tier 'in' would exceed its budget of epsilon 2:" in message
    assert charges(db) == before and one(db, "SELECT count(*) FROM dp_release") == 1
    assert one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'out'") == 0


def test_tiers_created_later_pay_what_they_see():
    db = ledger(("out", 0.0005, 1.0, 1e-6, "rdp"))
    for i in range(45):
        release(db, "out", f"release {i}")
    truth = sum(at_infinity(c) for c in column(db, "SELECT curve FROM dp_charge"))
    assert truth > 1
    for epsilon in (truth * (1 - 1e-9), 0.999):
        assert "budget" in error_of(db, "SELECT dp_tier('small', 0.001, ?, 0, 'pure')", epsilon)
    one(db, "SELECT dp_tier('in', 0.001, ?, 0, 'pure')", truth * (1 + 1e-12))
    assert math.isclose(one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'in'"), truth, rel_tol=1e-14)
    assert one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'in'") == 0
    assert one(db, "SELECT dp_verify()") == "ok"
    one(db, "SELECT dp_tier('outer', 0.0001, 1, 0, 'pure')")  # this tier sees none of the releases
    assert one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'outer'") == 0


def test_tiers_created_later_refuse_what_is_gaussian():
    db = ledger(("out", 0.1, 50.0, 1e-6, "rdp"))
    one(db, "SELECT dp_count('out', x, 1) FROM t")
    message = error_of(db, "SELECT dp_tier('in', 1, 50, 0, 'pure')")
    assert "tier 'in' has a budget of pure differential privacy" in message
    assert column(db, "SELECT name FROM dp_tier") == ["out"] and one(db, "SELECT dp_verify()") == "ok"
    one(db, "SELECT dp_tier('outer', 0.01, 50, 0, 'pure')")


@pytest.mark.parametrize("mechanism", [None, "permute-and-flip", "exponential", "response"])
@pytest.mark.parametrize("epsilon", [0.2, 1, 5])
def test_symbols_cost_what_laplace_noise_costs(mechanism, epsilon):
    """Every mechanism takes the epsilon of Laplace noise at the rate of the tier. The default is permute-and-flip."""
    db = ledger(("t", epsilon + math.expm1(-epsilon), 100.0))
    one(db, "SELECT dp_choice('t', x, '[1,2.5,-1]', ?) FROM t", json.dumps({"mechanism": mechanism} if mechanism else {}))
    assert math.isclose(one(db, "SELECT spent_epsilon FROM dp_budget"), epsilon, rel_tol=1e-9)
    assert one(db, "SELECT mechanism FROM dp_release") == (mechanism or "permute-and-flip")
    one(db, "SELECT dp_count('t', x, 1) FROM t")
    assert math.isclose(one(db, "SELECT spent_epsilon FROM dp_budget"), 2 * epsilon, rel_tol=1e-4)  # scales are whole
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("inner,mechanism", [("pure", "permute-and-flip"), ("rdp", "exponential")])
def test_a_symbol_is_flipped_where_epsilons_alone_count(inner, mechanism):
    """An inner tier with finite orders pays, too, and the exponential mechanism costs less there. A later tier changes no release."""
    db = ledger(("in", 0.5, 100.0, 0 if inner == "pure" else 1e-6, inner), ("out", 0.02, 100.0))
    call = "SELECT dp_choice('out', x, '[1,2.5,-1]', 'c') FROM t"
    symbol = one(db, call)
    assert one(db, "SELECT mechanism FROM dp_release") == mechanism
    assert math.isclose(one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'out'"), 0.2068, rel_tol=0.01)
    one(db, "SELECT dp_tier('new', 0.3, 1000.0, 1e-6, 'rdp')")
    assert one(db, call) == symbol and one(db, "SELECT count(*) FROM dp_release") == 1
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- the books -----------------------------------------------------------------------------------------------------


def test_the_orders_of_a_pure_tier():
    """Without a delta, no finite order certifies the budget. The order infinity has the limit epsilon."""
    db = ledger(("t", 0.1, 3.0))
    release(db, "t")
    rows = db.execute("SELECT alpha, spent, allowed FROM dp_rdp").fetchall()
    assert len(rows) == len(ORDERS)
    assert all(allowed == -math.inf for alpha, _, allowed in rows[:-1])
    assert rows[-1] == (math.inf, one(db, "SELECT spent_epsilon FROM dp_budget"), 3.0)
    assert [spent for _, spent, _ in rows] == sorted(spent for _, spent, _ in rows)
    tier = db.execute("SELECT delta, delta_keys, accountant, filter_order, rate_limit FROM dp_tier").fetchone()
    assert tier == (0, 0, "pure", math.inf, 3.0)


def test_a_certificate_of_a_pure_tier():
    db = ledger(("t", 0.1, 3.0))
    release(db, "t")
    certificate = json.loads(one(db, "SELECT dp_certificate()"))
    (tier,) = certificate["tiers"]
    assert tier["accountant"] == "pure" and tier["delta"] == 0 and tier["epsilon"] == 3.0
