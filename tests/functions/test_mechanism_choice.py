"""Tests which mechanism a release gets if its options name none, and the comparison of Gaussian and Laplace noise in
dp_plan()."""

import json
import math

import mpmath as mp
import pytest
from scipy import stats

from kinds_reference import KINDS, aggregate, by_query
from kinds_tables import CALLS, few_rows, fill
from mechanism_truth import continuous_laplace
from noise_helpers import charges, connect, error_of, one
from paper_truth import call

LINEAR = [kind for kind in KINDS if not kind.startswith("ou_")]


def ledger(*tiers):
    """Makes a ledger with tiers (name, rate, epsilon, delta, accountant) and a table of few rows."""
    db = connect()
    one(db, "SELECT dp_init(?)", "{}")
    for tier in tiers:
        one(db, "SELECT dp_tier(?, ?, ?, ?, ?)", *tier)
    fill(db, few_rows())
    return db


def ask(db, kind, tier, form="query", **more):
    parameters = {**CALLS[kind], **more}
    if form == "query":
        sql, arguments = by_query(kind, parameters, tier)
    else:
        text, arguments = aggregate(kind, parameters, tier)
        sql = f"SELECT {text} FROM t"
    return sql, *arguments


@pytest.mark.parametrize("form", ["query", "aggregate"])
@pytest.mark.parametrize("kind", LINEAR)
def test_the_mechanism_follows_the_tier(kind, form):
    db = ledger(("wide", 0.5, 1e6, 1e-6, "rdp"))
    one(db, "SELECT dp_tier('pure', ?, 1, 0, 'pure')", call("dp_rdp_laplace", 1, 0.1, 1))
    value = one(db, *ask(db, kind, "pure", form, name="p"))
    assert one(db, *ask(db, kind, "pure", form, name="p")) == value  # a replay need not name the mechanism
    drawn = kind == "median"  # one quantile at the outermost tier
    assert one(db, "SELECT mechanism FROM dp_release") == ("exponential" if drawn else "laplace")
    assert one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'pure'") == pytest.approx(0.1, rel=1e-3)
    assert "has a budget of pure differential privacy" in error_of(db, *ask(db, kind, "pure", form, mechanism="gaussian"))
    one(db, *ask(db, kind, "wide", form, name="w"))
    assert one(db, "SELECT mechanism FROM dp_release WHERE name = 'w'") == "gaussian"


def test_ou_kinds_stay_refused_at_pure_tiers():
    db = ledger(("pure", 0.001, 1, 0, "pure"))
    assert "has a budget of pure differential privacy" in error_of(db, *ask(db, "ou_avg", "pure"))
    assert not charges(db)


def test_states_keep_their_mechanism_at_a_pure_tier():
    db = ledger(("pure", 0.001, 1, 0, "pure"))
    state = one(db, "SELECT dp_partial('avg', 'SELECT x FROM t', '{\"lo\":0,\"hi\":5}')")
    assert "has a budget of pure differential privacy" in error_of(db, "SELECT dp_merge('pure', dp_states(?))", state)
    state = one(db, "SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":5}')")  # a state with a single number fits both mechanisms
    one(db, "SELECT dp_merge('pure', dp_states(?))", state)
    assert one(db, "SELECT mechanism FROM dp_release") == "laplace"


# ---- dp_plan -------------------------------------------------------------------------------------------------------


def plan(db, kind, **options):
    return json.loads(one(db, "SELECT dp_plan('t', ?, NULL, ?)", kind, json.dumps(options)))


def widths(kind, p, epsilon, delta, n):
    """Returns the half-widths for Gaussian and for Laplace noise if n releases together use up (epsilon, delta). The function
    adds up costs at the filter order of the tier. It also adds up the epsilons of Laplace noise, and takes the better sum."""
    db = ledger(("t", 1e-6, epsilon, delta, "rdp"))
    order, limit = db.execute("SELECT filter_order, rate_limit FROM dp_tier").fetchone()
    share = limit / n
    low, high = mp.mpf(0), mp.mpf(1000)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if continuous_laplace(order, middle) <= order * share else (low, middle)
    sigma, scale = 1 / math.sqrt(2 * share), float(1 / max(low, mp.mpf(epsilon) / n))
    normal, laplace = stats.norm.ppf(0.975), -math.log(0.05)
    if kind == "count":
        return normal * sigma, laplace * scale
    if kind == "avg":  # the noise at the ends of the range, where it is largest
        half = (p["hi"] - p["lo"]) / 2
        return (normal * half * math.sqrt(5) / 2 * math.sqrt(5) * sigma / p["rows"], laplace / math.sqrt(2) * half * 2 * math.sqrt(2) * scale
                / p["rows"])
    assert kind == "vec_sum"
    return normal * p["clip"] * sigma, laplace * p["clip"] * scale


@pytest.mark.parametrize("epsilon,delta", [(1, 1e-6), (0.1, 1e-6), (5, 1e-9)])
@pytest.mark.parametrize("kind,p", [("count", {"clip": 1}), ("avg", {"lo": 0, "hi": 4, "rows": 1000}), ("vec_sum", {"dim": 3, "clip": 2})])
def test_gaussian_from_is_where_it_becomes_better(kind, p, epsilon, delta):
    db = ledger(("t", call("dp_rate", epsilon, delta) / 10, epsilon, delta, "rdp"))
    found = plan(db, kind, **p)["gaussian_from"]
    near = [n for n in (found - 1, found, found + 1) if n > 0]
    better = {n: gaussian <= laplace * (1 + 1e-4) for n in near for gaussian, laplace in [widths(kind, p, epsilon, delta, n)]}
    assert better[found] and better[found + 1]
    assert found == 1 or not better[found - 1]


def test_both_half_widths_are_those_of_releases():
    db = ledger(("t", 0.2, 1e6, 1e-6, "rdp"))
    for kind, p in (("count", {"clip": 1}), ("vec_sum", {"dim": 3, "clip": 2}), ("histogram", {"clip": 1, "lo": 0, "hi": 5, "bins": 4})):
        planned = plan(db, kind, **p)
        for mechanism, figures in planned["mechanisms"].items():
            alone = plan(db, kind, **p, mechanism=mechanism)
            assert alone["half_width"] == pytest.approx(figures["half_width"], rel=1e-12)
        assert planned["half_width"] == planned["mechanisms"]["gaussian"]["half_width"]
    assert not charges(db)


@pytest.mark.parametrize("accountant,delta", [("gdp", 1e-6), ("pure", 0)])
def test_where_one_sort_of_noise_is_refused_there_is_nothing_to_compare(accountant, delta):
    db = ledger(("t", 0.01, 1, delta, accountant))
    assert "mechanisms" not in plan(db, "count", clip=1) and "gaussian_from" not in plan(db, "count", clip=1)


@pytest.mark.parametrize("kind,p", [("ou_count", {"clip": 1, "radius": 5}), ("choice", {"candidates": ["a", "b"]})])
def test_kinds_with_one_sort_of_noise(kind, p):
    db = ledger(("t", 0.01, 1, 1e-6, "rdp"))
    assert "mechanisms" not in plan(db, kind, **p)
