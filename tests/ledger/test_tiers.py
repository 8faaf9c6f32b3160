"""Tests dp_rate() for many releases, and which tiers dp_tier() refuses. It refuses a tier whose budget does not admit one release
at its rate, and a tier that would use up its budget before the tiers outside it."""

import itertools
import json
import re
import sqlite3

import pytest
from mpmath import mp, mpf

from conftest import connect, INIT, interrupted, ledger_of, make_ledger, one, refused
from truth import log_odds, newton, true_delta

SLACK = mpf("0.0035") / mpf(2) ** 80  # total variation slack of one coordinate at variance 2^40, the least variance


pytestmark = pytest.mark.usefixtures("forty_digits")

@pytest.fixture
def db():
    connection = connect()
    connection.execute("CREATE TABLE t(unit INTEGER, x REAL)")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 0), (3, 1)")
    make_ledger(connection, "{}", "t, unit")
    return connection


# ---- the rate of one of many -----------------------------------------------------------------------------------

BUDGETS = list(itertools.product((0.1, 1.0, 3.0, 8.0, 20.0), (1e-12, 1e-9, 1e-6, 1e-3), (1, 12, 60, 1000)))


@pytest.mark.parametrize("epsilon,delta,releases", BUDGETS)
def test_releases_of_the_rate_are_the_budget(db, epsilon, delta, releases):
    """The sum of the rates of all releases is the largest rate that is (epsilon, delta)-DP after the lattice slack of all draws
    is subtracted from delta. This holds to a relative 1e-12, for a slack that is known to 4e-6."""
    rate = one(db, "SELECT dp_rate(?, ?, ?)", epsilon, delta, releases)
    for rounding, side in ((mpf(1), 1), (mpf("1.000004"), -1)):  # the slack itself, and a slightly larger slack
        left = mpf(delta) - (1 + mp.exp(epsilon)) * releases * SLACK * rounding
        truth = newton(lambda x: log_odds(x, mpf(epsilon)) - mp.log(left / (1 - left)), rate * releases)
        excess = mpf(rate) * releases / truth - 1
        assert excess <= 0 if side > 0 else excess >= mpf("-1e-12"), (side, excess)


def test_one_release_is_the_default(db):
    for epsilon, delta in itertools.product((0.1, 1.0, 3.0, 5.0), (1e-6, 1e-5)):
        assert one(db, "SELECT dp_rate(?, ?)", epsilon, delta) == one(db, "SELECT dp_rate(?, ?, 1)", epsilon, delta)


@pytest.mark.parametrize("releases", [0, -1, 1.5, 1000001, None, "60 or so", 1e300])
def test_releases_are_a_whole_number(db, releases):
    message = refused(db, "SELECT dp_rate(1, 1e-6, ?)", releases)
    assert message.startswith("dp_rate: releases must be a")
    assert one(db, "SELECT dp_rate(1, 1e-6, 1e6)") > 0


def test_a_delta_that_cannot_bear_the_slack_is_refused(db):
    assert re.fullmatch(r"dp_rate: delta cannot bear the lattice slack of so many releases at this epsilon \(.*\)",
                        refused(db, "SELECT dp_rate(20, 1e-20, 60)"))
    assert one(db, "SELECT dp_rate(20, 1e-20)") > 0  # without a number of releases, dp_rate() is for a continuous Gaussian


def spent_delta(db, epsilon):
    """Returns the delta at this epsilon of all draws together, computed from the clocks alone."""
    rate, slack = mpf(0), mpf(0)
    for sensitivity, clock in db.execute("SELECT sensitivity, clock FROM dp_release JOIN dp_publication ON release = name"):
        variance = mpf(clock) - mpf(1) / 12
        rate += mpf(sensitivity) ** 2 / (2 * variance)
        slack += mpf("0.0035") * (1 + mpf("1.12") / mp.sqrt(variance)) / variance**2
    return true_delta(rate, mpf(epsilon)) + (1 + mp.exp(epsilon)) * slack


@pytest.mark.parametrize("epsilon,delta,releases", [
    (epsilon, delta, releases) for epsilon, delta, releases in BUDGETS if releases < 60] + [
    (1.0, 1e-6, 60), (8.0, 1e-9, 60), (20.0, 1e-12, 60), (0.1, 1e-3, 60), (3.0, 1e-6, 1000), (20.0, 1e-12, 1000)])
@pytest.mark.sample(10)
def test_a_tier_admits_exactly_so_many(db, epsilon, delta, releases):
    one(db, "SELECT dp_tier('t', dp_rate(?1, ?2, ?3), ?1, ?2, 'gdp')", epsilon, delta, releases)
    assert one(db, "SELECT releases_left FROM dp_budget") == releases
    for i in range(releases):
        one(db, "SELECT dp_count('t', x, 1, ?) FROM t", f"release {i}")
    assert "would exceed its budget" in refused(db, "SELECT dp_count('t', x, 1) FROM t")
    assert one(db, "SELECT releases_left FROM dp_budget") == 0
    assert one(db, "SELECT spent_epsilon FROM dp_budget") == pytest.approx(epsilon, rel=1e-9)
    unused = (1 + mp.exp(epsilon)) * releases * SLACK * mpf("1.00001")  # an upper bound
    assert delta * (1 - mpf("1e-9")) - unused <= spent_delta(db, epsilon) <= delta
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("epsilon,delta,releases", [(1.0, 1e-6, 60), (3.0, 1e-6, 12), (8.0, 1e-6, 24)])
def test_releases_of_many_coordinates_fit_as_often(db, epsilon, delta, releases):
    """A release of a vector has more lattice slack than a release of one number. Here one unit may change all 1024
    bins, and the same number of releases still fits."""
    one(db, "SELECT dp_tier('t', dp_rate(?1, ?2, ?3), ?1, ?2, 'gdp')", epsilon, delta, releases)
    for i in range(releases):
        one(db, "SELECT dp_histogram('t', x, 0, 1, 1024, ?) FROM t", json.dumps({"clip": 1e6, "name": f"release {i}"}))
    assert "would exceed its budget of epsilon" in refused(db, "SELECT dp_count('t', x, 1) FROM t")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_three_tiers_of_a_programme(db):
    """Each release is made at the inner tier and diffused to both outer tiers. Every tier admits the number of releases that
    dp_rate() was given."""
    budgets = [("school", 8.0), ("district", 3.0), ("public", 1.0)]
    for name, epsilon in budgets:
        one(db, "SELECT dp_tier(?1, dp_rate(?2, 1e-6, 24), ?2, 1e-6, 'gdp')", name, epsilon)
    for i in range(24):
        assert [left for (left,) in db.execute("SELECT releases_left FROM dp_budget")] == [24 - i] * 3
        one(db, "SELECT dp_count('school', x, 1, ?) FROM t", f"month {i}")
        for outer in ("district", "public"):
            one(db, "SELECT dp_diffuse(?, ?)", f"month {i}", outer)
    for name, _ in budgets:
        assert "would exceed its budget" in refused(db, "SELECT dp_count(?, x, 1) FROM t", name)
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- tiers that would block others -----------------------------------------------------------------------------


def numbers(message, pattern):
    return [float(number) for number in re.search(pattern, message).groups()]


@pytest.mark.parametrize("accountant", ["rdp", "gdp", "pure"])
@pytest.mark.parametrize("rate", [1e-6, 0.02, 1.0, 5.0])
def test_a_rate_of_which_no_release_fits_is_refused_with_numbers_that_work(db, accountant, rate):
    delta = 0 if accountant == "pure" else 1e-6
    enough = {"rdp": "dp_zcdp_epsilon(?, 1e-6)", "gdp": "dp_epsilon(?, 1e-6)"}.get(accountant)
    epsilon = one(db, f"SELECT {enough}", rate) if enough else float(mp.findroot(lambda z: z + mp.exp(-z) - 1 - rate, 1 + rate))
    small = epsilon * 0.9
    message = refused(db, "SELECT dp_tier('t', ?, ?, ?, ?)", rate, small, delta, accountant)
    assert message.startswith("dp_tier: the budget of tier 't', epsilon ")
    most, least = numbers(message, r"\(a rate of at most (\S+) fits once; or an epsilon of at least (\S+) does(?:; or the accountant 'gdp')?(?:; dp_rate\(\) computes the rate of n releases)?\)$")
    assert ("dp_rate" in message) == (delta > 0) and rate * 0.5 < most < rate and epsilon * (1 - 1e-5) < least < epsilon * 1.002
    assert not db.execute("SELECT 1 FROM dp_tier").fetchall()
    options = '{"mechanism":"laplace"}' if accountant == "pure" else "{}"
    for name, tier_rate, budget in (("least", rate, least), ("most", most, small)):
        other = connect()
        other.execute("CREATE TABLE t AS SELECT 1 AS unit, 1 AS x")
        make_ledger(other, "{}", "t, unit")
        one(other, "SELECT dp_tier(?, ?, ?, ?, ?)", name, tier_rate, budget, delta, accountant)
        one(other, "SELECT dp_count(?, x, 1, ?) FROM t", name, options)
        assert "would exceed" in refused(other, "SELECT dp_count(?, x, 1, ?) FROM t", name, options)


@pytest.mark.parametrize("outer", ["rdp", "gdp"])
@pytest.mark.parametrize("inner", ["rdp", "gdp"])
def test_an_inner_tier_that_would_block_an_outer_one_is_refused(db, inner, outer):
    one(db, "SELECT dp_tier('out', 0.001, 2.0, 1e-6, ?)", outer)
    one(db, "SELECT dp_tier('public', 0.0001, 1.0, 1e-6)")
    one(db, "SELECT dp_count('public', x, 1) FROM t")
    message = refused(db, "SELECT dp_tier('in', 0.002, 1.5, 1e-6, ?)", inner)
    assert message.startswith("dp_tier: tier 'in' would block tier 'out' outside it")
    (least,) = numbers(message, r"\(an epsilon of at least (\S+) does\)$")
    assert abs(least - 2.0) < (0.2 if inner != outer else 0.003)
    assert [name for (name,) in db.execute("SELECT name FROM dp_tier")] == ["out", "public"]
    one(db, "SELECT dp_tier('in', 0.002, ?, 1e-6, ?)", least, inner)
    while one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'out'"):
        one(db, "SELECT dp_count('out', x, 1) FROM t")
    weight = 0.5
    while weight > 1e-3:  # smaller and smaller releases: the inner tier refuses none that fits the outer tier
        rest = one(db, "SELECT (rate_limit - spent_rate) / 0.001 FROM dp_tier JOIN dp_budget ON tier = name WHERE name = 'out'")
        if weight < rest * (1 - 1e-9):
            one(db, "SELECT dp_count('out', x, 1, ?) FROM t", json.dumps({"weight": weight}))
        weight /= 2


def test_equal_budgets_and_any_order_of_reasonable_tiers(db):
    tiers = {"school": (0.02, 8.0), "district": (0.002, 3.0), "public": (0.0002, 1.0), "press": (0.0001, 1.0)}
    for order in itertools.permutations(tiers):
        other = connect()
        one(other, INIT)
        for name in order:
            one(other, "SELECT dp_tier(?, ?, ?, 1e-6)", name, *tiers[name])


def test_a_tier_outside_one_with_a_smaller_budget_is_bounded_by_it(db):
    """A new outer tier blocks no existing tier. The remaining budget of the inner tier limits the releases_left of the
    new tier."""
    one(db, "SELECT dp_tier('in', 0.01, 1.0, 1e-6)")
    one(db, "SELECT dp_tier('out', 0.001, 5.0, 1e-6)")
    limits = dict(db.execute("SELECT name, rate_limit FROM dp_tier"))
    left = one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'out'")
    assert left == int(limits["in"] / 0.001) < limits["out"] / 0.001 / 2


def test_keys_of_an_outer_tier_are_paid_for(db):
    one(db, "SELECT dp_tier('out', 0.001, 2.0, 1e-6, 'rdp', 1e-7)")
    message = refused(db, "SELECT dp_tier('in', 0.002, 8.0, 1e-6)")
    assert message == ("dp_tier: tier 'in' would block tier 'out' outside it, whose private keys it pays for"
                       " (delta_keys of at least 1e-07)")
    one(db, "SELECT dp_tier('in', 0.002, 8.0, 1e-6, 'rdp', 1e-7)")


def test_accountants_without_a_mechanism_in_common(db):
    one(db, "SELECT dp_tier('pure', 0.001, 2.0, 0, 'pure')")
    assert "would refuse everything" in refused(db, "SELECT dp_tier('gdp', 0.002, 8.0, 1e-6, 'gdp')")
    one(db, "SELECT dp_tier('rdp', 0.002, 8.0, 1e-6, 'rdp')")
    other = connect()
    one(other, INIT)
    one(other, "SELECT dp_tier('gdp', 0.001, 2.0, 1e-6, 'gdp')")
    assert "would refuse everything" in refused(other, "SELECT dp_tier('pure', 0.002, 8.0, 0, 'pure')")
    one(other, "SELECT dp_tier('rdp', 0.002, 4.0, 1e-6)")  # admits both kinds of releases; the refusals below still occur
    for epsilon in (8.0, 0.01):  # the same error for the larger and the smaller budget
        message = refused(other, "SELECT dp_tier('pure', 0.003, ?, 0, 'pure')", epsilon)
        assert "would refuse everything that tier 'gdp' outside it may publish" in message


def test_a_pure_tier_never_runs_into_an_inner_filter(db):
    """The least budget that dp_tier() accepts for the inner tier has room for everything that the pure tier can release."""
    one(db, "SELECT dp_tier('pure', 0.3, 1.0, 0, 'pure')")
    message = refused(db, "SELECT dp_tier('in', 0.31, 3.2, 1e-6)")
    (least,) = numbers(message, r"an epsilon of at least (\S+) does")
    one(db, "SELECT dp_tier('in', 0.31, ?, 1e-6)", least)
    for _ in range(2):
        one(db, "SELECT dp_count('pure', x, 1, '{\"mechanism\":\"laplace\",\"weight\":0.3}') FROM t")
    with pytest.raises(sqlite3.Error, match="tier 'pure' would exceed its budget"):
        for _ in range(20):
            one(db, "SELECT dp_count('pure', x, 1, '{\"mechanism\":\"laplace\",\"weight\":0.05}') FROM t")


# ---- dropping a tier ---------------------------------------------------------------------------------------------


def test_a_tier_that_was_never_charged_can_be_dropped(tmp_path):
    db = connect(tmp_path / "clinic.db")
    db.execute("CREATE TABLE t AS SELECT 1 AS unit, 1 AS x")
    make_ledger(db, "{}", "t, unit")
    one(db, "SELECT dp_tier('out', 0.001, 3.0, 1e-6)")
    one(db, "SELECT dp_tier('typo', 0.002, 3.0, 1e-6)")
    left = one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'out'")
    assert one(db, "SELECT dp_drop_tier('typo')") == "typo"
    for table, column in (("dp_tier", "name"), ("dp_budget", "tier"), ("dp_rdp", "tier")):
        assert {name for (name,) in db.execute(f"SELECT {column} FROM {table}")} == {"out"}
    assert [tier["name"] for tier in json.loads(one(db, "SELECT dp_certificate()"))["tiers"]] == ["out"]
    assert one(db, "SELECT dp_verify()") == "ok"
    assert refused(db, "SELECT dp_drop_tier('typo')").startswith("dp_drop_tier: unknown tier")
    for rate, epsilon in ((0.002, 3.0), (0.005, 8.0)):  # the name is free again, for the same terms and for others
        one(db, "SELECT dp_tier('typo', ?, ?, 1e-6)", rate, epsilon)
        assert db.execute("SELECT rate, epsilon FROM dp_tier WHERE name = 'typo'").fetchall() == [(rate, epsilon)]
        assert one(db, "SELECT dp_verify()") == "ok"
        one(db, "SELECT dp_drop_tier('typo')")
    one(db, "SELECT dp_tier('in', 0.002, 8.0, 1e-6)")  # another tier may have the rate of the dropped tier
    one(db, "SELECT dp_count('in', x, 1, 'n') FROM t")
    one(db, "SELECT dp_diffuse('n', 'out')")
    assert one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'out'") == left - 1
    assert one(db, "SELECT dp_verify()") == "ok"


def test_the_drop_of_a_tier_is_sealed(tmp_path):
    """Who deletes a tier from the file, as dp_drop_tier() does, is noticed."""
    db = connect(tmp_path / "clinic.db")
    one(db, INIT)
    one(db, "SELECT dp_tier('typo', 0.002, 3.0, 1e-6)")
    ledger = ledger_of(tmp_path / "clinic.db")
    for table, column in (("dp_order", "tier"), ("dp_budget", "tier"), ("dp_tier", "name")):
        ledger.execute(f"DELETE FROM {table} WHERE {column} = 'typo'")
    ledger.commit()
    assert one(db, "SELECT dp_verify()") != "ok"
    assert "dp_tier" in refused(db, "SELECT dp_tier('typo', 0.004, 8.0, 1e-6)")


@pytest.mark.parametrize("state", ["released", "failed", "discarded", "outer"])
def test_a_tier_with_a_charge_stays(db, state):
    """A tier that was charged for a release in any state cannot be dropped, because its members may have seen a value."""
    one(db, "SELECT dp_tier('t', 0.002, 3.0, 1e-6)")
    one(db, "SELECT dp_tier('out', 0.001, 3.0, 1e-6)")
    if state == "failed":
        interrupted(db, "SELECT dp_release('t', 'sum', 'SELECT x FROM t', '{\"clip\":1,\"name\":\"n\"}')")
    else:
        one(db, "SELECT dp_count(?, x, 1, 'n') FROM t", "out" if state == "outer" else "t")
    if state == "discarded":
        one(db, "SELECT dp_discard('n')")
    books = db.execute("SELECT * FROM dp_charge").fetchall()
    assert books
    assert refused(db, "SELECT dp_drop_tier('t')") == (
        "dp_drop_tier: tier 't' has been charged for release 'n', and stays (only a tier that was never charged can be"
        " dropped)")
    if state != "outer":
        one(db, "SELECT dp_drop_tier('out')")  # this outer tier does not see the release
    assert db.execute("SELECT * FROM dp_charge").fetchall() == books and one(db, "SELECT dp_verify()") == "ok"


# ---- the filter of extreme budgets -----------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1 - 2.0**-53, 1 - 2.0**-50, 1 - 1e-9, 0.5, 1e-6, 1e-300])
@pytest.mark.parametrize("epsilon", [2e-279, 1e-20, 1e-9, 1e-3, 1.0, 700.0])
def test_no_limit_is_above_what_its_order_allows(db, epsilon, delta):
    """The stored order is a double. The limit is never more than this rounded order allows."""
    try:
        one(db, "SELECT dp_tier('t', 1e-12, ?, ?)", epsilon, delta)
    except sqlite3.Error as error:
        assert re.search("does not admit one release|leaves nothing to spend", str(error)) and epsilon < 1e-3 and delta < 0.1
        return
    order, limit = db.execute("SELECT filter_order, rate_limit FROM dp_tier").fetchone()
    with mp.workdps(60):
        excess = mpf(order) - 1
        allowed = mpf(epsilon) + mp.log1p(1 / excess) + mp.log((1 + excess) * mpf(delta)) / excess
        truth = allowed / mpf(order)
        assert truth * (1 - mpf("1e-13")) - mpf(epsilon) * mpf("1e-13") <= mpf(limit) <= truth
