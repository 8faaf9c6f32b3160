"""Tests releases that stop when they are accurate enough (the options until and least): the ladder, the rule, the prices, the points
of other tiers, and what outer tiers see. until_reference.py computes the ladder, the rule and the prices a second time;
test_until_walks.py compares every draw with them."""

import fractions
import itertools
import json
import math
import random
import re
import sqlite3
import statistics

import pytest

from conftest import connect, interrupted, ledger_of, make_ledger, one, Raw, refused, run, when_reading
from until_reference import ladder, price, variance, Z

pytestmark = pytest.mark.alarm(3e-8)

TIERS = {"a": 0.009, "b": 0.001, "c": 0.0001}


def open_ledger(path=":memory:", people=18240, tiers=TIERS, accountant="gdp", options="{}"):
    """A table t(unit, g, x) of people, of whom 3 in 5 are in group 0, and one each in groups 1 and 2. x lies evenly in 0 to 10."""
    db = connect(path)
    db.execute("CREATE TABLE t(unit INTEGER PRIMARY KEY, g INTEGER, x REAL)")
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO t"
               " SELECT i, max(0, i % 5 - 2), (i * 7 % 1000) / 100.0 FROM n WHERE ?", (people, people))
    make_ledger(db, options, "t, unit")
    for tier, rate in tiers.items():
        db.execute("SELECT dp_tier(?, ?, 8.0, 1e-6, ?)", (tier, rate, accountant)).fetchall()
    return db


def ask(db, tier, name="r", kind="count", sql="SELECT 1 FROM t", **options):
    one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, sql, json.dumps({"name": name, "until": 0.05, **options}))
    return db.execute("SELECT value, low, high, display, figure FROM dp_value WHERE release = ? AND tier = ? ORDER BY key, component",
                      (name, tier)).fetchall()


def count(db, tier, name="r", **options):
    (row,) = ask(db, tier, name, **{"clip": 1, **options})
    return row


def clock_of(db, tier, name="r"):
    return one(db, "SELECT clock FROM dp_publication WHERE release = ? AND tier = ?", name, tier)


def sensitivity(db, name="r"):
    return one(db, "SELECT sensitivity FROM dp_release WHERE name = ?", name)


def charges(db, name="r"):
    return db.execute("SELECT tier, rate, kind FROM dp_charge WHERE release = ? ORDER BY id", (name,)).fetchall()


def paid(db, tier, name="r"):
    return sum(fractions.Fraction(rate) for t, rate, _ in charges(db, name) if t == tier)


def fits(db, tier, owed, name="r"):
    """Whether a tier has paid exactly what it owes, up to the rounding of the charges to doubles."""
    return 0 <= paid(db, tier, name) - owed <= owed * fractions.Fraction(1, 2**37)


# ---- the ladder, the rule and the price ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_stop_is_the_first_rung_that_is_accurate_enough(seed):
    """The stop is a rung of the ladder. The published figure meets the target there. The rung outside it did not: its point is not
    stored, but lies within 8 standard deviations of the truth. (False alarm: 1e-14 each.)"""
    rng = random.Random(seed)
    rates = sorted((10 ** rng.uniform(-5, -1.5) for _ in range(rng.randint(1, 4))), reverse=True)
    db = open_ledger(people=rng.choice([300, 5000, 40000]), tiers=dict(zip("abcd", rates)),
                     accountant=rng.choice(["gdp", "rdp"]))
    until, weight = rng.choice([0.01, 0.05, 0.25]), rng.choice([1, 0.3])
    people = one(db, "SELECT count(*) FROM t")
    value, low, high, _, figure = count(db, "a", until=until, weight=weight)
    rungs, stop = ladder(sensitivity(db), rates, weight), clock_of(db, "a")
    granularity = one(db, "SELECT granularity FROM dp_release")
    half = [Z * math.sqrt(v) * 2.0 ** granularity for v in rungs]
    at = rungs.index(stop)
    assert math.isclose((high - low) / 2, half[at], rel_tol=1e-9) or low == 0
    if "was not reached" in figure:
        assert at == len(rungs) - 1 and half[at] > until * value * (1 - 1e-9)
    else:
        assert half[at] <= until * abs(value) * (1 + 1e-9)
    if at:
        assert half[at - 1] > until * (people - 8 * half[at - 1] / Z)
    assert fits(db, "a", price(sensitivity(db), stop)) and one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("accountant", ["gdp", "rdp"])
def test_what_is_charged_and_returned(accountant):
    db = open_ledger(accountant=accountant)
    budget = "SELECT spent_rate, releases FROM dp_budget WHERE tier = 'b'"
    count(db, "b")
    s = sensitivity(db)
    ceiling, stop = price(s, variance(s, TIERS["b"])), price(s, clock_of(db, "b"))
    rows = charges(db)
    assert [(tier, kind) for tier, _, kind in rows] == [("a", "charge"), ("b", "charge"), ("a", "return"), ("b", "return")]
    for tier, rate, kind in rows:
        exact = ceiling if kind == "charge" else stop - ceiling
        assert math.isclose(rate, exact, rel_tol=1e-12)
    assert all(fits(db, tier, stop) for tier in "ab") and not paid(db, "c")
    rungs = ladder(s, [TIERS["b"], TIERS["c"]])
    made = rungs[:rungs.index(clock_of(db, "b")) + 1]
    draws = [made[0]] + [inner * (outer - inner) // outer for outer, inner in zip(made, made[1:])]
    slack = sum(0.0035 * (1 + 1.12 / math.sqrt(v - 1 / 12)) / (v - 1 / 12) ** 2 for v in draws)  # gaussian_lattice_slack()
    for tier in "ab":  # the slack of the draws that were not made is returned, too
        assert one(db, "SELECT sum(slack) FROM dp_charge WHERE tier = ?", tier) == pytest.approx(slack, rel=1e-9, abs=0)
    assert one(db, "SELECT slack FROM dp_charge WHERE kind = 'charge'") > 100 * slack
    (told,) = json.loads(one(db, "SELECT dp_certificate()"))["releases"]
    assert "The epsilon of this release alone is that of its ceiling, weight times the rate of the tier" in told["theorem"]["stopping"]
    spent, releases = db.execute(budget).fetchone()
    assert math.isclose(spent, stop, rel_tol=1e-9) and releases == 1
    before = charges(db)
    for again in ({}, {"least": 0}):  # asked again: the same figure
        assert count(db, "b", **again)[0] == one(db, "SELECT value FROM dp_value WHERE tier = 'b'")
    assert charges(db) == before and one(db, "SELECT dp_verify()") == "ok"


def test_a_count_of_nothing():
    db = open_ledger(people=0)
    value, low, high, display, figure = count(db, "b")
    assert figure.endswith("; ±5% was not reached") and not [kind for *_, kind in charges(db) if kind == "return"]
    assert clock_of(db, "b") == variance(sensitivity(db), TIERS["b"])
    plan = one(db, "SELECT dp_plan('b', 'count', 1, '{\"until\":0.05, \"least\":10}') ->> 'summary'")
    assert plan.startswith("stops at ±5% (±0.5 below 10), or at ±")
    assert count(db, "b", "least", least=10)[4].endswith("; ±5% (±0.5 below 10) was not reached")
    whole = one(db, "SELECT dp_plan('b', 'count', 1) ->> 'half_width'")
    figure = count(db, "b", "whole", until=0.1, least=round(10.5 * whole))[4]
    assert figure.endswith(", 100% of the price of a whole release") and clock_of(db, "b", "whole") == clock_of(db, "b")
    known = []  # with `least`, it ends at a price that is known beforehand
    for name in "xyz":
        figure = count(db, "a", name, least=1000)[4]
        assert "; stopped at ±5% (±50 below 1000), " in figure
        known.append(clock_of(db, "a", name))
    granularity = one(db, "SELECT granularity FROM dp_release WHERE name = 'x'")
    rungs = ladder(sensitivity(db, "x"), [*TIERS.values()])
    assert set(known) == {next(v for v in rungs if Z * math.sqrt(v) * 2.0 ** granularity <= 50)}


def test_one_group_that_is_never_accurate_holds_all_others():
    db = open_ledger(people=5000)
    keys = {"keys": ["0", "1", "2", "9"], "clip": 1}
    rows = ask(db, "a", "with", "group_count", "SELECT g FROM t", **keys)
    assert all("was not reached" in row[4] for row in rows)
    rows = ask(db, "a", "least", "group_count", "SELECT g FROM t", least=400, **keys)
    for value, low, high, *_ in rows:
        assert (high - low) / 2 <= 0.05 * max(abs(value), 400) * (1 + 1e-9) or low == 0
    assert clock_of(db, "a", "least") > clock_of(db, "a", "with")


KINDS = [("count", "SELECT 1 FROM t", {"clip": 1}), ("count_distinct", "SELECT 1 FROM t", {}),
         ("sum", "SELECT x FROM t", {"clip": 10}), ("avg", "SELECT x FROM t", {"lo": 0, "hi": 10}),
         ("group_avg", "SELECT g, x FROM t", {"lo": 0, "hi": 10, "keys": ["0", "1", "2"]}),
         ("group_sum", "SELECT g, x FROM t", {"clip": 10, "keys": ["0", "1"]}),
         ("histogram", "SELECT x FROM t", {"lo": 0, "hi": 10, "bins": 4, "clip": 1}),
         ("stddev", "SELECT x FROM t", {"lo": 0, "hi": 10}), ("median", "SELECT x FROM t", {"lo": 0, "hi": 10}),
         ("vec_sum", "SELECT json_array(x, 5) FROM t", {"dim": 2, "clip": 12}),
         ("group_count", "SELECT g, unit % 2 AS odd FROM t",
          {"keys": {"g": ["0", "1", "2"], "odd": ["0", "1"]}, "ways": 2, "clip": 1})]


@pytest.mark.parametrize("kind,sql,options", KINDS, ids=[f"{kind}{'-ways' * ('ways' in options)}" for kind, _, options in KINDS])
def test_every_kind_with_an_interval(kind, sql, options):
    """All figures meet the target where the walk stopped, and it stopped before the ceiling."""
    db = open_ledger()
    rows = ask(db, "a", kind=kind, sql=sql, until=0.1, **options)
    for value, low, high, _, figure in rows:
        assert (high - low) / 2 <= 0.1 * abs(value) * (1 + 1e-9), (value, low, high)
        assert "; stopped at ±10%, " in figure
    assert clock_of(db, "a") > variance(sensitivity(db), TIERS["a"])
    assert fits(db, "a", price(sensitivity(db), clock_of(db, "a"))) and one(db, "SELECT dp_verify()") == "ok"
    assert json.loads(one(db, "SELECT options FROM dp_release"))["stopped"] < 1


SPREAD = math.sqrt(statistics.fmean((i * 7 % 1000 / 100 - 4.995) ** 2 for i in range(1, 2001)))


@pytest.mark.parametrize("kind,sql,options,truth", [
    ("count", "SELECT 1 FROM t", {"clip": 1}, 2000),
    ("sum", "SELECT x FROM t", {"clip": 10}, sum(i * 7 % 1000 / 100 for i in range(1, 2001))),
    ("avg", "SELECT x FROM t", {"lo": 0, "hi": 10}, sum(i * 7 % 1000 / 100 for i in range(1, 2001)) / 2000),
    ("stddev", "SELECT x FROM t", {"lo": 0, "hi": 10}, SPREAD),
    ("group_count", "SELECT g FROM t", {"clip": 1, "keys": ["0", "1", "2"]}, 1200),
    ("group_count", "SELECT g, unit % 2 AS odd FROM t", {"clip": 1, "ways": 2, "keys": {"g": ["0", "1"], "odd": ["0", "1"]}}, 600)],
    ids=["count", "sum", "avg", "stddev", "group_count", "ways"])
@pytest.mark.parametrize("until", [0.05, *(pytest.param(until, marks=pytest.mark.slow) for until in (0.01, 0.1, 0.25))])
@pytest.mark.alarm(1e-9)
def test_intervals_contain_the_truth(kind, sql, options, truth, until):
    """95% of the intervals of the first figure contain it, and its mean error is small. At 0.25, a simulation of counts finds 94.7% and
    a mean error of 0.12 standard deviations (0.16 at half of that for the standard deviation), because noise that enlarges a figure
    stops a walk earlier. Of 400 draws more than 60 miss at a rate of 5.6% with a probability of 2e-12; a mean error of 0.5 is 6.8 of its
    own standard deviations away from 0.16."""
    db = open_ledger(people=2000, tiers={"a": 0.03}, accountant="rdp", options='{"protects":"unit"}')
    db.execute("SELECT dp_drop_tier('a')").fetchall()
    db.execute("SELECT dp_tier('z', 0.03, 5000.0, 1e-6)").fetchall()
    until, misses, errors = until / 2 if kind == "stddev" else until, 0, []
    for i in range(400):
        value, low, high, *_ = ask(db, "z", f"r{i}", kind, sql, until=until, **options)[0]
        misses += not low <= truth <= high
        errors.append((value - truth) / ((high - low) / 2 / Z))
    assert misses <= 60 and abs(statistics.fmean(errors)) < 0.5, (misses, statistics.fmean(errors))


# ---- several tiers -------------------------------------------------------------------------------------------------


def points(path, name="r"):
    ledger = ledger_of(path)
    rows = ledger.execute("SELECT tier, clock, value FROM dp_path WHERE release = ? AND component = 0", (name,)).fetchall()
    ledger.close()
    return {tier: (clock, value) for tier, clock, value in rows}


def test_tiers_that_are_finer_than_the_stop_get_the_same_number(path_of):
    db = open_ledger(path_of, people=40)
    ask(db, "a", clip=1, until=0.25)
    stop = clock_of(db, "a")
    s = sensitivity(db)
    for tier in "cb":
        one(db, "SELECT dp_diffuse('r', ?)", tier)
        own = variance(s, TIERS[tier])
        assert clock_of(db, tier) == max(stop, own)
        assert fits(db, tier, price(s, clock_of(db, tier)))
    values = dict(db.execute("SELECT tier, value FROM dp_value"))
    for outer, inner in [("b", "a"), ("c", "b")]:
        assert (values[outer] == values[inner]) == (clock_of(db, outer) == clock_of(db, inner))
    assert set(points(path_of)) == set("abc") and one(db, "SELECT dp_verify()") == "ok"


def test_a_tier_too_far_out_for_the_lattice_is_told_so():
    db = open_ledger(tiers={"a": 0.009, "z": 1e-9})
    assert "stopped" in count(db, "a")[4]
    assert "tier 'z' has a rate 1e-09 too far from that of release 'r' for its lattice" in refused(db, "SELECT dp_diffuse('r', 'z')")


@pytest.mark.alarm(1e-9)
def test_the_path_of_three_tiers_and_of_one_between():
    """The errors of tiers a, b and c, and of d, which is made between b and c afterwards, have the variances of their clocks, and the
    difference of two tiers is independent of the inner one: Cov(inner, outer) = Var(inner). `least` makes all walks end at the
    ceiling of a. Bounds of 7.5 standard deviations: the mean square of 600 normal errors exceeds it with probability 2e-11, and a mean
    product of two with 4e-12."""
    errors = {}
    db = open_ledger(people=30, tiers={}, accountant="rdp")
    for tier, rate in (("a", 0.02), ("b", 0.005), ("c", 0.0005)):
        one(db, "SELECT dp_tier(?, ?, 1e6, 1e-6, 'rdp')", tier, rate)
    for i in range(600):
        one(db, "SELECT dp_release('a', 'count', 'SELECT 1 FROM t', ?)", json.dumps({"name": f"r{i:03}", "clip": 1, "until": 0.001}))
    for tier in "bcd":
        if tier == "d":
            one(db, "SELECT dp_tier('d', 0.002, 1e6, 1e-6)")
        db.execute("SELECT dp_diffuse(name, ?) FROM dp_release", (tier,)).fetchall()
    unit = 2.0 ** one(db, "SELECT DISTINCT granularity FROM dp_release")
    clocks = {tier: one(db, "SELECT DISTINCT clock FROM dp_publication WHERE tier = ?", tier) * unit * unit for tier in "abcd"}
    for tier in "abcd":
        errors[tier] = [value - 30 for (value,) in db.execute("SELECT value FROM dp_value WHERE tier = ? ORDER BY release", (tier,))]
        assert len(errors[tier]) == 600
    assert clocks["a"] < clocks["b"] < clocks["d"] < clocks["c"]
    n = len(errors["a"])
    for tier in "abcd":
        ratio = statistics.fmean(x * x for x in errors[tier]) / clocks[tier]
        assert abs(ratio - 1) < 7.5 * math.sqrt(2 / n), (tier, ratio)
    for inner, outer in itertools.combinations("abdc", 2):
        covariance = statistics.fmean(x * (y - x) for x, y in zip(errors[inner], errors[outer]))
        scale = math.sqrt(clocks[inner] * (clocks[outer] - clocks[inner]) / n)
        assert abs(covariance) < 7.5 * scale, (inner, outer)


def test_refining_walks_on():
    """A release that was not accurate enough at its tier walks on at an inner one, and pays the difference. One that was accurate
    enough costs nothing more, and shows the same number."""
    db = open_ledger(people=700)
    figure = count(db, "c")[4]
    assert "was not reached" in figure
    assert "stopped" in count(db, "a", refine=True)[4]
    s = sensitivity(db)
    assert fits(db, "a", price(s, clock_of(db, "a"))) and fits(db, "b", price(s, variance(s, TIERS["c"])))
    assert variance(s, TIERS["a"]) <= clock_of(db, "a") < clock_of(db, "c") == variance(s, TIERS["c"])
    one(db, "SELECT dp_diffuse('r', 'b')")
    assert clock_of(db, "b") == max(clock_of(db, "a"), variance(s, TIERS["b"])) and fits(db, "b", price(s, clock_of(db, "b")))
    first = count(db, "b", "early", until=0.25)
    assert count(db, "a", "early", until=0.25, refine=True)[:3] == first[:3]
    assert fits(db, "a", price(sensitivity(db, "early"), clock_of(db, "b", "early")), "early") and one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("seed", range(24))
def test_whatever_happens_every_tier_pays_for_what_it_sees(seed):
    """Random tiers (two of which may be near each other), releases, diffusions, refinements, batches, later tiers, and questions that
    are interrupted. In the end each tier has paid exactly for the least noisy point that it sees, and the ceiling for what failed."""
    rng = random.Random(seed)
    rates = {f"t{i}": rate for i, rate in enumerate(sorted((10 ** rng.uniform(-5, -2) for _ in range(rng.randint(1, 4))), reverse=True))}
    if len(rates) > 1 and rng.random() < 0.4:
        rates["t1"] = rates["t0"] * rng.choice([0.995, 1 - 1e-9, 1 - 1e-13])
    accountant, asked, failed = rng.choice(["gdp", "rdp"]), {}, set()
    db = open_ledger(people=rng.choice([30, 400, 5000]), tiers=rates, accountant=accountant)

    def act(action, name, tier):
        options = {"clip": 1, "until": rng.choice([0.01, 0.05, 0.25]), "weight": rng.choice([1, 0.5]), **rng.choice([{}, {"least": 300}])}
        outer = [t for t in rates if rates[t] < rates[tier]]
        if action == "tier":
            rate = 10 ** rng.uniform(-5.5, -2)
            one(db, "SELECT dp_tier(?, ?, 8.0, 1e-6, ?)", name, rate, accountant)
            rates[name] = rate
        elif action == "batch":
            one(db, "SELECT dp_batch(?)", json.dumps([{"tier": tier, "kind": "count", "sql": "SELECT DISTINCT 1 FROM t",
                                                       "options": {**options, "name": name}, "diffuse": rng.sample(outer, rng.randint(0, len(outer)))}]))
            asked[name] = options
        elif action == "ask" or action == "interrupt":
            sql = "SELECT dp_release(?, 'count', 'SELECT DISTINCT 1 FROM t', ?)"
            if action == "interrupt":
                interrupted(db, sql, tier, json.dumps({**options, "name": name}))
            else:
                one(db, sql, tier, json.dumps({**options, "name": name}))
                asked[name] = options
        elif asked:
            name = rng.choice(list(asked))
            sql, options = "SELECT dp_release(?, 'count', 'SELECT DISTINCT 1 FROM t', ?)", {**asked[name], "name": name, "refine": True}
            if action == "diffuse":
                one(db, "SELECT dp_diffuse(?, ?)", name, tier)
            elif action == "refine":
                one(db, sql, tier, json.dumps(options))
                failed.discard(name)
            elif rates[tier] > max(rates[t] for (t,) in db.execute("SELECT tier FROM dp_publication WHERE release = ?", (name,))):
                interrupted(db, sql, tier, json.dumps(options))
                failed.add(name)

    for step in range(14):
        try:
            act(rng.choice(["ask", "ask", "diffuse", "diffuse", "refine", "refused refine", "tier", "batch", "interrupt"]), f"n{step}", rng.choice(list(rates)))
        except sqlite3.OperationalError as error:
            assert any(words in str(error) for words in ("at tier", "too near", "is not finished", "was created after")), error
    seen = db.execute("SELECT release, tier, clock FROM dp_publication").fetchall()
    for name, tier in itertools.product(asked, rates):
        clocks = [clock for release, t, clock in seen if release == name and rates[t] <= rates[tier]]
        owed = price(sensitivity(db, name), min(clocks)) if clocks else 0
        assert fits(db, tier, owed, name) or (name in failed and paid(db, tier, name) > owed), (name, tier)
    for tier, spent in db.execute("SELECT tier, spent_rate FROM dp_budget"):
        rows = [fractions.Fraction(rate) for (rate,) in db.execute("SELECT rate FROM dp_charge WHERE tier = ?", (tier,))]
        assert math.isclose(spent, sum(rows), rel_tol=1e-12)
    assert one(db, "SELECT dp_verify()") == "ok"


TABLES = ["dp_release", "dp_charge", "dp_publication", "dp_budget", "dp_tier", "dp_reserve", "dp_grant", "dp_rdp", "dp_value", "dp_policy"]


def sight(path, tier):
    """Everything that a guest of a tier can read, but for noisy numbers, times and hashes of them."""
    db, seen = connect(path), {}
    one(db, "SELECT dp_guard(?)", tier)
    for table in TABLES:
        rows = db.execute(f"SELECT * FROM {table}")
        names = [column for column, *_ in rows.description]
        seen[table] = [{name: value for name, value in zip(names, row) if name not in ("value", "low", "high", "display", "published_at", "at")}
                       for row in rows]
    certificate = json.loads(one(db, "SELECT dp_certificate()"))
    page = one(db, "SELECT dp_report()").replace(certificate.pop("ledger")["id"], "")
    seen["page"] = re.sub(r"[-+]?[\d.,]+", "#", re.sub(r"(?s)<svg.*?</svg>|[0-9a-f]{64}", "", page))
    seen["certificate"] = certificate
    db.close()
    return seen


@pytest.mark.parametrize("by_grant", [False, True])
def test_outer_tiers_do_not_see_where_inner_ones_stopped(path_of, by_grant):
    """Everything that a guest of c can read is the same in two ledgers in which the walks at b stop at different rungs inside c. A guest
    of b, whose tier pays, sees its own return, and not that of a."""
    seen, stops = [], set()
    for i, people in enumerate([900, 1600]):
        path = path_of.with_name(f"{i}.db")
        db = open_ledger(path, people=people)
        options = json.dumps({"name": "r", "clip": 1, "until": 0.08})
        one(db, """SELECT dp_grant('g', 'b', 2, '{"pad_ms":1,"diffuse":["c"]}')""")
        if by_grant:
            guest = connect(path)
            one(guest, """SELECT dp_guard('b', '{"ask":"g"}')""")
            one(guest, "SELECT dp_release('b', 'count', 'SELECT 1 FROM t', ?)", options)
        else:
            one(db, "SELECT dp_release('b', 'count', 'SELECT 1 FROM t', ?)", options)
            one(db, "SELECT dp_diffuse('r', 'c')")
        name = "g/r" if by_grant else "r"
        assert clock_of(db, "c", name) == variance(sensitivity(db, name), TIERS["c"]) > clock_of(db, "b", name)
        assert {tier for tier, _, kind in charges(db, name) if kind == "return"} == {"a", "b"}
        stops.add(clock_of(db, "b", name))
        db.close()
        inner = sight(path, "b")["dp_charge"]
        assert {row["tier"] for row in inner if row["kind"] == "return"} == {"b"}
        seen.append(sight(path, "c"))
    assert len(stops) == 2
    for part in seen[0]:
        assert seen[0][part] == seen[1][part], part
    assert "stopped" not in json.dumps(seen[0]["dp_release"]) and "was not reached" in seen[0]["dp_value"][0]["figure"]


@pytest.fixture
def path_of(tmp_path):
    return tmp_path / "t.db"


# ---- grants, plans and batches -------------------------------------------------------------------------------------


def test_a_grant_pays_for_the_stop_only(path_of):
    """A grant of 20 whole releases answers a hundred questions that stop early. Verified afterwards."""
    db = open_ledger(path_of, tiers={"a": 0.005, "b": 0.0005})
    one(db, "SELECT dp_grant('g', 'b', 20, '{\"pad_ms\":1}')")
    db.close()
    guest = connect(path_of)
    one(guest, "SELECT dp_guard('b', '{\"ask\":\"g\"}')")
    for i in range(100):
        one(guest, "SELECT dp_release('b', 'count', 'SELECT 1 FROM t', ?)", json.dumps({"name": f"q{i}", "clip": 1, "until": 0.1}))
    assert {kind for (kind,) in guest.execute("SELECT kind FROM dp_charge")} == {"charge", "return"}
    charges, reserved, spent = guest.execute("SELECT charges, reserved, spent FROM dp_reserve WHERE tier = 'b'").fetchone()
    assert charges == 100 and spent < reserved
    guest.close()
    db = connect(path_of)
    assert one(db, "SELECT dp_verify()") == "ok"
    before = one(db, "SELECT sum(releases_left) FROM dp_budget")
    count(db, "a", until=0.2)
    assert one(db, "SELECT dp_verify()") == "ok" and one(db, "SELECT sum(releases_left) FROM dp_budget") <= before


TEN = [str(i) for i in range(10)]


@pytest.mark.parametrize("people,until,kind,sql,options,each", [
    (18240, 0.05, "count", "SELECT 1 FROM t", {}, 18240), (2000, 0.1, "count", "SELECT 1 FROM t", {}, 2000),
    (300, 0.25, "count", "SELECT 1 FROM t", {}, 300), (20000, 0.25, "group_count", "SELECT unit % 10 FROM t", {"keys": TEN}, 2000),
    (20000, 0.1, "histogram", "SELECT x FROM t", {"lo": 0, "hi": 10, "bins": 4}, 5000)])
@pytest.mark.alarm(1e-9)
def test_the_plan_expects_the_mean_price(people, until, kind, sql, options, each):
    """The expected part of the price is within 15% of the mean of 100 walks. (The price of one walk differs by at most two rungs,
    a factor of 1.6, so the mean of 100 has a standard deviation below 3%.)"""
    db = open_ledger(people=people, tiers={"a": 0.03}, accountant="rdp")
    db.execute("SELECT dp_drop_tier('a')").fetchall()
    db.execute("SELECT dp_tier('z', 0.03, 5000.0, 1e-6)").fetchall()
    options = {**options, "clip": 1, "until": until}
    plan = json.loads(one(db, "SELECT dp_plan('z', ?, NULL, ?)", kind, json.dumps({**options, "rows": people})))
    assert f"stops at ±{100 * until:g}%, or at ±" in plan["summary"] and "then at most " in plan["summary"]
    assert f"if each counts {each:,}" in plan["summary"] and plan["tiers"][0]["pays"] == pytest.approx(0.03, rel=1e-6)
    spent = []
    for i in range(100):
        ask(db, "z", f"r{i}", kind, sql, **options)
        spent.append(paid(db, "z", f"r{i}") / fractions.Fraction(0.03))
    assert abs(statistics.fmean(map(float, spent)) / plan["expected_part"] - 1) < 0.15
    assert not db.in_transaction and one(db, "SELECT dp_verify()") == "ok"


def test_a_plan_of_cross_tables_or_averages_expects_no_price():
    db = open_ledger()
    for kind, options in [("group_count", {"clip": 1, "ways": 2, "keys": {"g": 3, "odd": 2}}), ("avg", {"lo": 0, "hi": 10})]:
        plan = json.loads(one(db, "SELECT dp_plan('a', ?, NULL, ?)", kind, json.dumps({**options, "until": 0.1, "rows": 900})))
        assert "expected_part" not in plan and "if each counts" not in plan["summary"]
        assert ("4 tables that agree, stop at ±10%, or at ±" if kind == "group_count" else "stops at ±10%, or at ±") in plan["summary"]


def test_a_batch_with_outer_tiers_returns_what_they_prepaid():
    db = open_ledger(people=18240)
    batch = [{"tier": "a", "kind": "count", "sql": "SELECT 1 FROM t", "options": {"clip": 1, "name": name, "until": until},
              "diffuse": ["b", "c"]}
             for name, until in [("x", 0.05), ("y", 0.001)]]
    one(db, "SELECT dp_batch(?)", json.dumps(batch))
    for name, tier in itertools.product("xy", "abc"):
        assert fits(db, tier, price(sensitivity(db, name), clock_of(db, tier, name)), name), (name, tier)
    assert clock_of(db, "a", "x") == clock_of(db, "b", "x") and clock_of(db, "a", "y") < clock_of(db, "b", "y") < clock_of(db, "c", "y")
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- errors --------------------------------------------------------------------------------------------------------

REFUSED = [
    ("count", {"until": 0.0005}, "until must be a number in [0.001, 0.25]"),
    ("count", {"until": 0.3}, "until must be a number in [0.001, 0.25]"),
    ("count", {"until": "much"}, "until must be a number"),
    ("count", {"until": None, "least": 5}, "least belongs to until (give until, a part of the figure)"),
    ("count", {"least": -1}, "least must be a finite number of at least 0"),
    ("count", {"mechanism": "laplace"}, "until needs Gaussian noise, not mechanism 'laplace'"),
    ("ou_count", {"radius": 100, "clip": 1}, "until is for figures without shrink (ask for 'count')"),
    ("group_count", {"max_groups": 2}, "until needs public keys (list them in \"keys\")"),
    ("count", {"periods": "2026-01/2026-03"}, "a series cannot stop early"),
    ("bounds", {"clip": None}, "until is for numbers with an interval, not 'bounds'"),
    ("stddev", {"clip": None, "lo": 0, "hi": 9, "until": 0.13}, "until must be at most 0.125 for standard deviations"),
    ("median", {"clip": None, "lo": 0, "hi": 9, "mechanism": "exponential"}, "until needs Gaussian noise, not mechanism 'exponential'"),
    ("count", {"half_width": 5}, "unknown option 'half_width'"),
    ("choice", {"clip": None, "candidates": ["0", "1"]}, "until is for numbers with an interval, not 'choice'"),
]


@pytest.mark.parametrize("kind,options,words", REFUSED, ids=[words[:40] for *_, words in REFUSED])
def test_refusals(kind, options, words):
    db = open_ledger(people=50)
    options = {key: value for key, value in {"clip": 1, "until": 0.05, "name": "r", **options}.items() if value is not None}
    columns = {"group_count": "g", "choice": "g", "bounds": "x", "stddev": "x", "median": "x"}.get(kind, "1")
    message = refused(db, "SELECT dp_release('a', ?, ?, ?)", kind, f"SELECT {columns} FROM t", json.dumps(options))
    assert words in message, message
    assert not one(db, "SELECT count(*) FROM dp_charge")


def test_refusals_of_other_calls():
    db = open_ledger(people=50)
    assert "give until (part of the figure) or half_width (a number)" in refused(
        db, "SELECT dp_plan('a', 'count', 1, '{\"until\":0.05, \"half_width\":5}')")
    pure = open_ledger(people=50, tiers={})
    one(pure, "SELECT dp_tier('p', 0.3, 5.0, 0, 'pure')")
    for call in ("dp_release('p', 'count', 'SELECT 1 FROM t', '{\"clip\":1, \"until\":0.05}')", "dp_plan('p', 'count', 1, '{\"until\":0.05}')"):
        assert ("tier 'p' has a budget of pure differential privacy, and until needs Gaussian noise (leave until out, and ask dp_plan() for the"
                " weight of a half_width)") in refused(pure, f"SELECT {call}")
    one(db, "SELECT dp_release('a', 'count', 'SELECT 1 FROM t', '{\"clip\":1, \"name\":\"r\"}')")
    assert "exists with other parameters" in refused(
        db, "SELECT dp_release('a', 'count', 'SELECT 1 FROM t', '{\"clip\":1, \"name\":\"r\", \"until\":0.05}')")
    one(db, "SELECT dp_release('a', 'count', 'SELECT 1 FROM t', '{\"clip\":1, \"name\":\"s\", \"until\":0.05}')")
    for other in ({}, {"until": 0.1}, {"until": 0.05, "least": 10}):
        assert "exists with other parameters" in refused(
            db, "SELECT dp_release('a', 'count', 'SELECT 1 FROM t', ?)", json.dumps({"clip": 1, "name": "s", **other}))
    assert "until and least are for dp_release() and dp_answer()" in refused(db, "SELECT dp_count('a', x, 1, '{\"until\":0.05}') FROM t")
    assert "until and least are for dp_release() and dp_answer()" in refused(
        db, "SELECT dp_merge('a', dp_states(value), '{\"name\":\"m\", \"until\":0.05}') FROM"
            " (SELECT dp_partial('count', 'SELECT 1 FROM t', '{\"clip\":1}') AS value)")


# ---- interrupts and crashes ----------------------------------------------------------------------------------------


def test_an_interrupted_walk_leaves_the_ceiling_charged():
    db = open_ledger(people=5000)
    interrupted(db, "SELECT dp_release('a', 'count', 'SELECT DISTINCT 1 FROM t', '{\"clip\":1, \"name\":\"r\", \"until\":0.05}')")
    assert [kind for *_, kind in charges(db)] == ["charge"] and not one(db, "SELECT count(*) FROM dp_value")
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("who", ["owner", "refinement", "grant"])
def test_a_kill_leaves_the_ceiling_or_the_whole_walk(path_of, who):
    """The process is killed at each of its writes. Either the ceiling is charged and no value is stored, or both are. If the owner's
    batch then finishes what a grant has begun, the grant gets back what it paid."""
    db = open_ledger(path_of, people=2000)
    if who == "refinement":
        assert "was not reached" in count(db, "c")[4]
    one(db, "SELECT dp_grant('g', 'b', 2, '{\"pad_ms\":1}')")
    before = charges(db)
    db.close()
    options = {"name": "q" if who == "grant" else "r", "clip": 1, "until": 0.05, **({"refine": True} if who == "refinement" else {})}
    run("""
        database, before, who, sql, batch, ends = pathlib.Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:], set()

        def release(path):
            db = connect(path)
            if who == "grant":
                one(db, "SELECT dp_guard('b', '{}')".format('{"ask":"g"}'))
            one(db, sql)

        for at, path, ended in killed_at_writes(database, range(1, 300), release):
            db = connect(path)
            kinds = [kind for (kind,) in db.execute("SELECT kind FROM dp_charge WHERE id > ? ORDER BY id", (before,))]
            values = one(db, "SELECT count(*) FROM dp_value WHERE tier = 'b'")
            assert (kinds, values) in [([], 0), (["charge"] * 2, 0), (["charge"] * 2 + ["return"] * 2, 1)], (kinds, values)
            assert one(db, "SELECT dp_verify()") == "ok"
            if len(kinds) == 2 and not ends & {(2, 0)} and who == "grant":
                assert json.loads(one(db, "SELECT dp_batch(?)", batch))[0]["outcome"] == "made"
                assert db.execute("SELECT kind, grant_name FROM dp_charge").fetchall() == [("charge", "g")] * 2 + [("return", "g")] * 2
                assert all(spent == sum(rate for (rate,) in db.execute("SELECT rate FROM dp_charge WHERE tier = ?", (tier,)))
                           for tier, spent in db.execute("SELECT tier, spent FROM dp_reserve"))
                assert one(db, "SELECT dp_verify()") == "ok"
            ends.add((len(kinds), values))
            db.close()
        assert ends == {(0, 0), (2, 0), (4, 1)} and ended
        """, path_of, len(before), who, f"SELECT dp_release('b', 'count', 'SELECT 1 FROM t', '{json.dumps(options)}')",
        json.dumps([{"tier": "b", "kind": "count", "sql": "SELECT 1 FROM t", "options": {"name": "g/q", "clip": 1, "until": 0.05}}]))


@pytest.mark.parametrize("before,after", [(["BEGIN"], ["ROLLBACK"]), (["SAVEPOINT s"], ["ROLLBACK TO s", "RELEASE s"]),
                                          (["BEGIN IMMEDIATE", "DELETE FROM t"], ["ROLLBACK"])])
def test_a_rollback_of_the_host_undoes_neither_charge_nor_return(path_of, before, after):
    db = open_ledger(path_of, people=5000)
    for sql in before:
        db.execute(sql)
    row = count(db, "b", until=0.25, least=1e6)
    for sql in after:
        db.execute(sql)
    assert one(db, "SELECT count(*) FROM t") == 5000 and count(db, "b", until=0.25, least=1e6) == row
    assert [kind for *_, kind in charges(db)] == ["charge"] * 2 + ["return"] * 2 and one(db, "SELECT dp_verify()") == "ok"


def test_a_statement_that_a_driver_runs_twice_is_one_walk(path_of):
    """As PHP's SQLite3::query() does: step, reset, step again."""
    open_ledger(path_of, people=5000).close()
    raw = Raw(path_of)
    statement = raw.prepare("SELECT display FROM dp_answer('b', 'count', 'SELECT 1 FROM t', '{\"name\":\"r\",\"clip\":1,\"until\":0.05}')")
    said = []
    for _ in range(2):
        assert raw.step(statement) == raw.ROW
        said.append(raw.c.sqlite3_column_text(statement, 0))
        raw.reset(statement)
    raw.finalize(statement)
    db = connect(path_of)
    assert said[0] == said[1] and [kind for *_, kind in charges(db)] == ["charge"] * 2 + ["return"] * 2


def test_a_return_counts_in_the_period_of_its_charge(path_of, clock):
    """While the first walk goes on, its month ends: January gets the return. While the second goes on, its month ends, and another
    charge opens the next: February is closed, and the ceiling stays charged. A refinement returns what it was charged."""
    clock.set("2026-01-01 00:00:00")
    db = open_ledger(path_of, people=5000, tiers={})
    for tier, rate in TIERS.items():
        one(db, "SELECT dp_tier(?, ?, 8.0, 1e-6, '{\"period\":\"month\"}')", tier, rate)

    def meanwhile(day, opens):
        def act():
            db.set_trace_callback(None)
            clock.set(day)
            if opens:
                count(connect(path_of), "a", "opens")
        when_reading(db, act)

    clock.set("2026-01-31 23:59:59")
    meanwhile("2026-02-01 00:00:01", False)
    count(db, "a", "first")
    assert db.execute("SELECT kind, period FROM dp_charge").fetchall() == [("charge", "2026-01-01"), ("return", "2026-01-01")]
    assert fits(db, "a", price(sensitivity(db, "first"), clock_of(db, "a", "first")), "first")
    meanwhile("2026-03-01 00:00:01", True)
    assert "stopped at" in count(db, "a", "second")[4]
    assert [kind for _, _, kind in charges(db, "second")] == ["charge"]
    assert "was not reached" in count(db, "c", "third", until=0.02)[4]
    clock.set("2026-04-01 00:00:00")
    assert "stopped at" in count(db, "a", "third", until=0.02, refine=True)[4]
    assert fits(db, "a", price(sensitivity(db, "third"), clock_of(db, "a", "third")), "third")
    assert db.execute("SELECT kind, period FROM dp_charge WHERE release = 'third' AND tier = 'a' AND period > '2026-03-01'").fetchall() == [
        ("charge", "2026-04-01"), ("return", "2026-04-01")]
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- edits of the ledger -------------------------------------------------------------------------------------------


def rehash(ledger):
    """Computes the hash chain of dp_charge anew, and a seal of the last charge: an editor who knows how diffuse hashes rows."""
    import hashlib
    import struct

    def text(value):
        return b"" if value is None else str(value).encode()

    def bits(value):
        return struct.pack(">d", value).hex().encode()

    rates = dict(ledger.execute("SELECT name, rate FROM dp_tier"))
    subjects = dict(ledger.execute(
        "SELECT r.id, l.id || '/' || protects || '/' || adjacency || '/' || fingerprint || '/' || granularity || '/' || shift || '/'"
        " || sensitivity FROM dp_ledger l, dp_release r"))
    previous = b""
    for row in ledger.execute("SELECT id, release_id, release, tier, rate, slack, delta, curve, at, period, grant_name, kind"
                              " FROM dp_charge ORDER BY id").fetchall():
        id_, release_id, release, tier, rate, slack, delta, curve, at, period, grant, kind = row
        lines = [previous, text(id_), text(release_id), text(release), text(tier), text(subjects.get(release_id)), bits(rates[tier]),
                 bits(rate), bits(slack), bits(delta), (curve or b"").hex().encode(), text(at), text(period), text(grant), text(kind)]
        previous = hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest().encode()
        ledger.execute("UPDATE dp_charge SET hash = ? WHERE id = ?", (previous.decode(), id_))


@pytest.mark.parametrize("edit,words", [
    ("", None),
    ("UPDATE dp_charge SET rate = rate * 1.001 WHERE kind = 'return'", "gave back"),
    ("UPDATE dp_charge SET rate = rate * 0.999 WHERE kind = 'return'", "gave back"),
    ("UPDATE dp_charge SET slack = slack * 1.5 WHERE kind = 'return'", "gave back"),
    ("INSERT INTO dp_charge SELECT id + 2, release_id, release, tier, rate, curve, delta, slack, at, period, grant_name, kind, hash"
     " FROM dp_charge WHERE kind = 'return'", "gave back"),
    ("DELETE FROM dp_charge WHERE kind = 'charge' AND tier = 'a'; UPDATE dp_charge SET id = id - 1 WHERE id > 1", "gave back"),
    ("UPDATE dp_charge SET kind = 'charge' WHERE kind = 'return'", "is negative"),
    ("UPDATE dp_charge SET kind = 'return' WHERE kind = 'charge'", "is no return"),
    ("UPDATE dp_release SET stop = NULL", "dp_"), ("UPDATE dp_release SET until = 0.1", "dp_"),
])
def test_an_edited_return_is_found(path_of, edit, words):
    """Even if the chain of hashes was computed anew. (The unedited ledger shows that the computation here is right.)"""
    db = open_ledger(path_of)
    count(db, "b")
    db.close()
    found = edited(path_of, edit)
    assert (found == "ok") if not edit else words in found, found


def test_a_return_of_a_release_without_until_is_found(path_of):
    """The charge of a refinement that failed may not be taken back."""
    db = open_ledger(path_of, people=300)
    sql = "SELECT dp_release(?, 'count', 'SELECT DISTINCT 1 FROM t', '{\"clip\":1,\"name\":\"r\",\"refine\":true}')"
    one(db, sql, "c")
    interrupted(db, sql, "a")
    (*_, (tier, rate, kind)) = charges(db)
    assert (tier, kind) == ("a", "charge") and rate > 0.008
    db.close()
    assert "gave back to tier 'a'" in edited(
        path_of, "INSERT INTO dp_charge SELECT id + 1, release_id, release, tier, -rate, curve, delta, 0, at, period, grant_name, 'return', hash"
        " FROM dp_charge ORDER BY id DESC LIMIT 1")


def edited(path_of, edit):
    """Edits the ledger as somebody would who knows how diffuse hashes rows. Returns what dp_verify() says."""
    ledger = ledger_of(path_of)
    triggers = ledger.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        ledger.execute(f"DROP TRIGGER {name}")
    before = ledger.execute("SELECT id, hash FROM dp_charge").fetchall()
    ledger.executescript(edit)
    rehash(ledger)
    if not edit:
        assert ledger.execute("SELECT id, hash FROM dp_charge").fetchall() == before
    for _, sql in triggers:
        ledger.execute(sql)
    ledger.close()
    return one(connect(path_of), "SELECT dp_verify()")
