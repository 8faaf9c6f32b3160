"""Compares dp_plan() with the release that follows, and dp_interval() with scipy's quantiles."""

import hashlib
import json
import math
import pathlib
import random
import re
import sqlite3
from fractions import Fraction

import pytest
from conftest import KINDS as KNOWN_KINDS
import scipy.special
from scipy.stats import norm

from conftest import add_tiers, add_visits, connect, create, INIT, interrupted, make_ledger, one, refused, TIERS

KINDS = {"count": (1, {}), "sum": (10, {}), "ou_count": (2, {"radius": 75, "centre": 40}),
         "ou_sum": (10, {"theta": 0.3, "rho": 12, "centre": -3})}


def memory(adjacency="add-remove", protects="unit", tiers=TIERS):
    db = connect(":memory:")
    add_visits(db)
    make_ledger(db, json.dumps({"adjacency": adjacency, "protects": protects}), "visits, patient" if protects == "unit" else "visits")
    add_tiers(db, tiers)
    return db


class Connection(sqlite3.Connection):
    """A connection that can have an attribute `query`."""


@pytest.fixture(autouse=True)
def roomy(monkeypatch):
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, **{"factory": Connection, **k}))


def plan(db, tier, kind, clip, options=None):
    return json.loads(one(db, "SELECT dp_plan(?, ?, ?, ?)", tier, kind, clip, json.dumps(options) if options else None))


def release(db, tier, kind, clip, options=None):
    """Makes the release, and returns its name in the ledger."""
    options = dict(options or {}, **({} if clip is None else {"clip": clip}))
    one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, "SELECT minutes FROM visits", json.dumps(options))
    return options.get("name") or one(db, "SELECT name FROM dp_release ORDER BY id DESC LIMIT 1")


def last_charge(db):
    return one(db, "SELECT ifnull(max(id), 0) FROM dp_charge")


def check_tiers(db, tiers, since):
    """Checks that the totals which the plan predicts for every tier are now the totals in the ledger."""
    assert [t["tier"] for t in tiers] == [t for (t,) in db.execute("SELECT name FROM dp_tier")]
    for t in tiers:
        paid = math.fsum(rate for (rate,) in db.execute("SELECT rate FROM dp_charge WHERE id > ? AND tier = ?", (since, t["tier"])))
        standing = db.execute("SELECT spent_epsilon, remaining_epsilon, releases_left FROM dp_budget WHERE tier = ?",
                              (t["tier"],)).fetchone()
        assert paid <= t["pays"] <= math.nextafter(paid, math.inf)  # the ledger rounds exact sums up
        assert (t["epsilon_after"], t["remaining_epsilon"], t["releases_left"]) == standing


def check_values(db, planned, name):
    rows = db.execute(
        "SELECT v.stddev, p.rate, p.shrink, r.weight, r.clip, r.kind, p.tier, (v.high - v.low) / 2 FROM dp_value v"
        " JOIN dp_publication p USING (release_id, tier) JOIN dp_release r ON r.id = v.release_id"
        " WHERE v.release = ? AND v.tier = ? AND r.state = 'released'", (name, planned["tier"])).fetchall()
    assert len(rows) == 1
    got = [planned[k] for k in ("sigma", "rate", "shrink", "weight", "clip", "kind", "tier")]
    assert got == list(rows[0][:7])
    """The interval of a value that shrinks is that before it shrinks, and also contains the value."""
    assert planned["half_width"] == pytest.approx(planned["sigma"] / planned["shrink"] * norm.isf(0.025), rel=1e-12)
    if planned["kind"].startswith("ou_"):
        assert planned["half_width"] <= rows[0][7] * (1 + 1e-12)
    else:
        assert planned["half_width"] == pytest.approx(rows[0][7], rel=1e-12)


def check(db, tier, kind, clip, options=None):
    planned, since = plan(db, tier, kind, clip, options), last_charge(db)
    name = release(db, tier, kind, clip, options)
    check_values(db, planned, name)
    check_tiers(db, planned["tiers"], since)
    return planned


# ---- plans come true -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind,clip,options", [
    ("ou_sum", 10, {"radius": 1e-3}), ("ou_sum", 10, {"radius": 1e9, "centre": 1e6}),
    ("ou_count", 1, {"theta": 1e-9, "rho": 1e-3}), ("ou_count", 1, {"theta": 20.0, "rho": 1e6}),
    ("sum", 1e-150, {}), ("sum", 1e150, {}), ("count", 3.7, {"weight": 1e-6})])
def test_plans_with_extreme_parameters_come_true(kind, clip, options):
    check(memory(), "region", kind, clip, options)


def test_gdp_tiers_are_planned():
    db = memory(tiers=[("a", 0.05, 3.0, 1e-6, "gdp"), ("b", 0.01, 2.0, 1e-7, "gdp")])
    check(db, "a", "sum", 10)
    check(db, "b", "count", 1, {"weight": 0.2})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start,then", [
    ("clinic", ["public", "region"]), ("clinic", ["region", "public"]), ("public", ["region", "clinic"]),
    ("public", ["clinic", "region"]), ("region", ["clinic", "public"]), ("region", ["public", "clinic"])])
def test_existing_names_outward_and_inward(kind, start, then):
    db = memory()
    clip, options = KINDS[kind]
    options = {**options, "name": "a", "weight": 0.7, "refine": True}
    check(db, start, kind, clip, options)
    for tier in then:
        check(db, tier, kind, clip, options)


# ---- half_width ------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("protects", ["unit", "row"])
def test_half_width_asks_for_the_least_weight(adjacency, protects):
    db = memory(adjacency, protects)
    draw = random.Random(1)
    for _ in range(40):
        kind, (tier, *_) = draw.choice(["count", "sum"]), draw.choice(TIERS)
        clip = draw.choice([1, 10, 0.3, 7.7e5])
        best = plan(db, tier, kind, clip)["half_width"]
        wanted = best * draw.choice([1, 1 + 1e-9, 1.5, 10 ** draw.uniform(0, 3)])
        planned = plan(db, tier, kind, clip, {"half_width": wanted})
        assert wanted * (1 - 1e-8) <= planned["half_width"] <= wanted
        assert 0 < planned["weight"] <= 1
        less = plan(db, tier, kind, clip, {"weight": planned["weight"] * (1 - 3e-8)})
        assert less["half_width"] > wanted
    name = release(db, tier, kind, clip, {"weight": planned["weight"]})
    check_values(db, planned, name)


@pytest.mark.parametrize("wish", [0.01, 0.5, 0.99])
@pytest.mark.parametrize("octave", [0, 3, 9])
def test_half_width_where_no_weight_gives_it_exactly(wish, octave):
    """At a power of two the lattice becomes coarser and the half-width jumps. For a half-width inside the jump, dp_plan() returns
    the least weight whose half-width is smaller."""
    db = memory()
    rate = 10**2 / 2 / 4 ** (7 + octave)  # where the standard deviation is 2^(7 + octave)
    edge = rate / 0.004
    fine, coarse = (plan(db, "clinic", "sum", 10, {"weight": edge * (1 + e)})["half_width"] for e in (1e-9, -1e-9))
    assert coarse > fine * (1 + 1e-6)
    wanted = fine + wish * (coarse - fine)
    planned = plan(db, "clinic", "sum", 10, {"half_width": wanted})
    assert planned["half_width"] <= wanted
    assert planned["weight"] == pytest.approx(edge, rel=1e-7)


def test_half_width_out_of_reach_is_refused():
    db = memory()
    best = plan(db, "region", "sum", 10)["half_width"]
    message = refused(db, "SELECT dp_plan('region', 'sum', 10, ?)", json.dumps({"half_width": best * (1 - 1e-6)}))
    assert "which is that of the rate 0.001 of tier 'region'" in message
    message = refused(db, "SELECT dp_plan('region', 'sum', 10, ?)", json.dumps({"half_width": 1e12}))
    assert "half_width" in message and "outside [1e-12, 1e+06]" in message


@pytest.mark.parametrize("kind,options,wish", [("sum", {"clip": 10}, 60), ("count", {"clip": 1}, 3), ("avg", {"lo": 0, "hi": 20, "rows": 400}, 0.3)])
@pytest.mark.parametrize("releases", [1, 12])
def test_a_tier_that_reaches_the_half_width(kind, options, wish, releases):
    """The refusal names the terms of a tier. With these terms the wish is granted, and with a smaller epsilon it is not."""
    db = connect()
    one(db, INIT)
    one(db, "SELECT dp_tier('weak', dp_rate(1.0, 1e-6, ?), 1.0, 1e-6, 'gdp')", releases)
    wanted = json.dumps({**options, "half_width": wish})
    message = refused(db, "SELECT dp_plan('weak', ?, NULL, ?)", kind, wanted)
    said, epsilon, delta, count = re.search(r"(\d+) such releases? fits? into a tier with dp_rate\(([\d.]+), (\S+), (\d+)\)", message).groups()
    assert said == count == str(releases)
    for factor, reaches in ((1, True), (0.999, False)):
        other = connect()
        one(other, INIT)
        terms = float(epsilon) * factor, float(delta)
        one(other, "SELECT dp_tier('strong', dp_rate(?, ?, ?), ?, ?, 'gdp')", *terms, releases, *terms)
        assert one(other, "SELECT releases_left FROM dp_budget") == releases
        if reaches:
            assert json.loads(one(other, "SELECT dp_plan('strong', ?, NULL, ?)", kind, wanted))["half_width"] <= wish
        else:
            assert "half_width must be at least" in refused(other, "SELECT dp_plan('strong', ?, NULL, ?)", kind, wanted)


def test_the_pure_epsilon_that_reaches_the_half_width():
    db = connect()
    one(db, INIT)
    one(db, "SELECT dp_tier('press', dp_rdp_laplace(1, 0.1, 1), 1, 0, 'pure')")
    message = refused(db, "SELECT dp_plan('press', 'count', 1, '{\"half_width\":5}')")
    epsilon = float(re.search(r"which is an epsilon of ([\d.]+) for each release", message)[1])
    assert epsilon == pytest.approx(math.log(20) / 5, rel=1e-3)  # P(|noise| > 5) = 5% at the scale 1/epsilon


def test_half_width_at_a_tier_that_is_not_there_names_those_that_are():
    message = refused(memory(), """SELECT dp_plan('nowhere', 'sum', 10, '{"half_width":100}')""")
    assert message == "dp_plan: unknown tier 'nowhere' (known tiers: clinic, region, public)"


@pytest.mark.parametrize("options,word", [
    ({"half_width": 100, "weight": 0.5}, "give one of them, not both"), ({"half_width": 0}, "half_width must be"),
    ({"half_width": -1}, "half_width must be"), ({"half_width": "9"}, "half_width must be"),
    ({"half_width": True}, "half_width must be"), ({"half_width": None}, "half_width must be"),
    ({"half_width": [9]}, "half_width must be"), ({"half_widht": 9}, "known options: name, weight")])
def test_bad_half_widths(options, word):
    assert word in refused(memory(), "SELECT dp_plan('clinic', 'sum', 10, ?)", json.dumps(options))


def test_half_width_and_weight_are_an_error_whatever_the_weight_is():
    options = json.dumps({"half_width": 300, "weight": 1})
    assert "not both" in refused(memory(), "SELECT dp_plan('clinic', 'sum', 10, ?)", options)


@pytest.mark.parametrize("kind", ["ou_count", "ou_sum"])
def test_half_width_is_not_for_values_that_shrink(kind):
    message = refused(memory(), "SELECT dp_plan('clinic', ?, 10, ?)", kind, '{"half_width":100,"radius":1000}')
    assert "without shrink" in message


# ---- several at once -------------------------------------------------------------------------------


def check_array(db, requests):
    planned = json.loads(one(db, "SELECT dp_plan(?)", json.dumps(requests)))
    since = last_charge(db)
    assert set(planned) == {"plans", "tiers", "summary"} and len(planned["plans"]) == len(requests)
    for request, each in zip(requests, planned["plans"]):
        before = last_charge(db)
        options = {k: v for k, v in request.items() if k not in ("tier", "kind", "clip")}
        name = release(db, request["tier"], request["kind"], request.get("clip"), options)
        check_values(db, each, name)
        check_tiers(db, each["tiers"], before)
    check_tiers(db, planned["tiers"], since)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("seed", range(4))
def test_an_array_costs_what_the_releases_cost_one_after_the_other(seed):
    draw = random.Random(seed)
    db = memory(draw.choice(["add-remove", "replace"]))
    release(db, "region", "sum", 10, {"name": "old"})
    requests = [{"tier": "clinic", "kind": "sum", "clip": 10, "name": "old", "refine": True},
                {"tier": "public", "kind": "sum", "clip": 10, "name": "old"}]
    for i in range(8):
        kind = draw.choice(list(KINDS))
        clip, options = KINDS[kind]
        requests.append({"tier": draw.choice(TIERS)[0], "kind": kind, "weight": draw.choice([1, 0.25]), **options,
                         **({} if clip is None else {"clip": clip})})
    draw.shuffle(requests)
    requests = [r for r in requests if r["tier"] != "clinic" or r.get("name") != "old"] + [
        r for r in requests if r["tier"] == "clinic" and r.get("name") == "old"]
    check_array(db, requests)


def test_an_array_may_diffuse_what_it_makes():
    """An array may contain a new release and then its diffusion to an outer tier. The plans are the same as if both were planned
    and made one after the other."""
    check_array(memory(), [{"tier": "clinic", "kind": "sum", "clip": 10, "name": "a"},
                           {"tier": "public", "kind": "sum", "clip": 10, "name": "a"}])


def test_an_empty_array_costs_nothing():
    db = memory()
    check_array(db, [])


def test_an_array_that_does_not_fit_together_is_refused():
    db = memory(tiers=[("a", 0.004, 1.0, 1e-6)])
    left = one(db, "SELECT releases_left FROM dp_budget")
    element = {"tier": "a", "kind": "count", "clip": 1}
    assert 0 < left < 10
    assert one(db, "SELECT dp_plan(?)", json.dumps([element] * left))
    message = refused(db, "SELECT dp_plan(?)", json.dumps([element] * (left + 1)))
    assert message.startswith(f"dp_plan: plan {left} of the array: tier 'a' would exceed its budget")
    for _ in range(left):
        release(db, "a", "count", 1)
    refused(db, "SELECT dp_release('a', 'count', ?, '{\"clip\":1}')", "SELECT minutes FROM visits")


GOOD = '{"tier":"clinic","kind":"sum","clip":10}'


@pytest.mark.parametrize("array,message", [
    ("[", "malformed JSON array (check its quotes, commas and brackets)"), ("{}", "malformed JSON array"), ("clinic", "malformed JSON array (check its quotes, commas and brackets)"),
    (GOOD, "malformed JSON array"), ("[1]", "plan 0 of the array: not an object"),
    ("[null]", "plan 0 of the array: not an object"), ("[[]]", "plan 0 of the array: not an object"),
    (json.dumps([GOOD]), "plan 0 of the array: not an object"), ("[{}]", "plan 0 of the array: kind is missing"),
    ('[{"kind":"sum","clip":1}]', "plan 0 of the array: tier is missing"),
    (f'[{GOOD},{{"tier":"clinic","kind":"sum"}}]',
     "plan 1 of the array: clip is missing (the bound on what one unit contributes)"),
    (f'[{GOOD},{{"tier":"none","kind":"count","clip":1}}]',
     "plan 1 of the array: unknown tier (known tiers: clinic, region, public)"),
    ('[{"tier":1,"kind":"count"}]', "plan 0 of the array: tier must be the name of a tier, not a number"),
    ('[{"tier":"clinic","kind":"mean"}]',
     f"plan 0 of the array: unknown kind (did you mean 'avg'? known kinds: {KNOWN_KINDS})"),
    ('[{"tier":"clinic","kind":"count","kind":"sum"}]', "plan 0 of the array: an option is given twice"),
    ('[{"tier":"clinic","kind":"count","clip":1,"half_width":90,"weight":0.5}]',
     "plan 0 of the array: half_width asks for a weight: give one of them, not both"),
    ('[{"tier":"clinic","kind":"count","weight":1e999}]',
     "plan 0 of the array: an option is not a finite number"),
    ('[{"tier":"clinic\\u0000","kind":"count"}]', None), (None, None), (1, None), (b"[]", None), ("", None)])
def test_malformed_arrays(array, message):
    db = memory()
    got = refused(db, "SELECT dp_plan(?)", array)
    assert got.startswith("dp_plan: ") and (message is None or got == "dp_plan: " + message)
    assert plan(db, "clinic", "sum", 10)["tiers"][0]["pays"] > 0  # the ledger is no longer locked


# ---- nothing happens, and nothing else is refused ----------------------------------------------------


def test_a_plan_charges_and_stores_nothing(path):
    db = create(path)
    release(db, "region", "sum", 10, {"name": "a"})
    ledger = pathlib.Path(f"{path}-ledger")
    before = [hashlib.sha256(p.read_bytes()).digest() for p in (ledger, path)]
    tables = [db.execute(f"SELECT * FROM {t}").fetchall() for t in ("dp_release", "dp_charge", "dp_budget", "dp_value")]
    plan(db, "clinic", "sum", 10)
    plan(db, "public", "sum", 10, {"name": "a"})                   # diffuse
    plan(db, "clinic", "sum", 10, {"name": "a", "refine": True})   # refine
    plan(db, "clinic", "count", 1, {"half_width": 30})
    one(db, "SELECT dp_plan(?)", f"[{GOOD},{GOOD}]")
    refused(db, "SELECT dp_plan(?)", f'[{GOOD},{{"tier":"x","kind":"sum","clip":1}}]')
    refused(db, "SELECT dp_plan('clinic', 'sum', 10, 'release-7')")
    assert [hashlib.sha256(p.read_bytes()).digest() for p in (ledger, path)] == before
    assert tables == [db.execute(f"SELECT * FROM {t}").fetchall()
                      for t in ("dp_release", "dp_charge", "dp_budget", "dp_value")]
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("tier,kind,clip,options", [
    ("village", "sum", 10, {}), (None, "sum", 10, {}), (3, "sum", 10, {}), ("clinic", "mean", 10, {}),
    ("clinic", None, 10, {}), ("clinic", "sum", None, {}), ("clinic", "sum", 0, {}), ("clinic", "sum", -1, {}),
    ("clinic", "sum", 1e151, {}), ("clinic", "sum", "x", {}), ("clinic", "sum", 10, {"weight": 0}),
    ("clinic", "sum", 10, {"weight": 1.5}), ("public", "sum", 10, {"weight": 1e-9}),
    ("clinic", "sum", 10, {"weight": "1a"}), ("clinic", "sum", 10, {"refine": 1}),
    ("clinic", "sum", 10, {"name": ""}), ("clinic", "sum", 10, {"name": "release-7"}),
    ("clinic", "ou_sum", 10, {}), ("clinic", "ou_sum", 10, {"radius": 0}), ("clinic", "ou_sum", 10, {"theta": 1}),
    ("clinic", "ou_sum", 10, {"rho": 1}), ("clinic", "ou_sum", 10, {"radius": 1e-300}),
    ("clinic", "sum", 11, {"name": "here"}), ("clinic", "count", 10, {"name": "here"}),
    ("clinic", "sum", 10, {"name": "here"}), ("region", "sum", 10, {"name": "failed"}),
    ("poor", "sum", 10, {}), ("poor", "sum", 10, {"name": "here"})])
def test_a_plan_is_refused_with_the_error_of_the_release(tier, kind, clip, options):
    db = memory()
    release(db, "region", "sum", 10, {"name": "here"})
    interrupted(db, "SELECT dp_release('region', 'sum', 'SELECT minutes FROM visits',"
                """ '{"clip":10,"name":"failed"}')""")
    one(db, "SELECT dp_tier('poor', 0.00005, dp_zcdp_epsilon(0.00006, 1e-6), 1e-6)")
    release(db, "poor", "sum", 10, {})
    planned = refused(db, "SELECT dp_plan(?, ?, ?, ?)", tier, kind, clip, json.dumps(options))
    more = {} if clip is None else {"clip": clip}
    released = refused(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, "SELECT minutes FROM visits", json.dumps({**options, **more}))
    released = released.partition("; to find one: ")  # the plan has no question to write a statement from
    assert planned.removeprefix("dp_plan: ") == released[0].removeprefix("dp_release: ") + ")" * bool(released[1])
    assert planned.startswith("dp_plan: ")


def test_a_plan_without_a_ledger_is_refused(path):
    assert refused(connect(path), "SELECT dp_plan('a', 'sum', 1)") == (
        "dp_plan: no privacy ledger for 'clinic.db' (run SELECT dp_init())")
    with pytest.raises(sqlite3.OperationalError, match="wrong number of arguments"):
        connect(path).execute("SELECT dp_plan('a', 'sum')")


# ---- dp_interval -----------------------------------------------------------------------------------

CONFIDENCES = [1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.6827, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 2**-53]


def half_normal(confidence):
    """Returns the quantile without cancellation in 1 - confidence."""
    return scipy.special.erfinv(confidence) * 2**0.5


def check_interval(db, confidence, tier="clinic"):
    """Checks that the interval is never narrower than the true interval by more than 1e-12, and never wider by more than `most`. The
    interval of a value that shrinks is that before it shrinks, and also contains the value."""
    low, high = json.loads(one(db, "SELECT dp_interval('a', ?, NULL, ?)", tier, confidence))
    value, stddev = db.execute("SELECT value, stddev FROM dp_value WHERE tier = ?", (tier,)).fetchone()
    clock, granularity, shrink, centre = db.execute(
        "SELECT clock, granularity, shrink, centre FROM dp_publication p JOIN dp_release r ON r.id = release_id"
        " WHERE tier = ?", (tier,)).fetchone()
    assert stddev == pytest.approx(shrink * clock**0.5 * 2.0**granularity, rel=1e-12)
    quantile = norm.isf((1 - confidence) / 2) if confidence >= 0.01 else half_normal(confidence)
    half_width = clock**0.5 * 2.0**granularity * quantile
    x = centre + (value - centre) / shrink
    rounding = (abs(x) + abs(value) + 2 * abs(x - centre)) * 2**-51  # the rounding of the two ends, and of x
    most = 1e-9 + 2**-53 / confidence  # the probability outside, (1 - confidence)/2, is rounded
    assert low <= value <= high
    for got, moved in ((high - x, value - x), (x - low, x - value)):
        assert got == moved > half_width or half_width * (1 - 1e-12) - rounding <= got <= half_width * (1 + most) + 2 * rounding
    return low, high, half_width


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_have_the_width_of_the_normal_quantile(kind):
    db = memory()
    clip, options = KINDS[kind]
    release(db, "clinic", kind, clip, {**options, "name": "a"})
    one(db, "SELECT dp_diffuse('a', 'public')")
    for confidence in CONFIDENCES:
        for tier in ("clinic", "public"):
            check_interval(db, confidence, tier)
    low, high, _ = check_interval(db, 0.95)
    want = db.execute("SELECT low, high FROM dp_value WHERE tier = 'clinic'").fetchone()
    assert (low, high) == pytest.approx(want, rel=1e-14)


def test_interval_ends_are_rounded_outward():
    """If a value is large compared with its noise, the ends of its interval are on a coarse grid, and lie outside the true
    interval."""
    db = memory(tiers=[("clinic", 1e6, 1e15, 1e-6)])
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) INSERT INTO visits SELECT -i, 1e7 FROM n")
    one(db, "SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', ?)", '{"clip":1e7,"name":"a"}')
    value, stddev = db.execute("SELECT value, stddev FROM dp_value").fetchone()
    wrong = []
    for percent in range(5, 100, 5):
        low, high = json.loads(one(db, "SELECT dp_interval('a', 'clinic', NULL, ?)", percent / 100))
        half_width = Fraction(stddev * norm.isf((1 - percent / 100) / 2)) * (1 - Fraction(1, 10**12))
        if Fraction(value) - Fraction(low) < half_width or Fraction(high) - Fraction(value) < half_width:
            wrong.append(percent)
    assert not wrong


@pytest.mark.parametrize("arguments,message", [
    (("x", "clinic", None, 0.5), "unknown release (dp_release lists them)"),
    (("a", "x", None, 0.5), "unknown tier (known tiers: clinic, region, public)"),
    (("a", "public", None, 0.5), "release 'a' has no value at tier 'public'"),
    (("a", "clinic", "k", 0.5), "release 'a' has no value for this key at tier 'clinic' (the key of one number is NULL; in an array,"
     " it is the index from 0)"),
    (("keyed", "clinic", None, 0.5), "release 'keyed' has no value at tier 'clinic' (dp_value lists its keys)"),
    (("gone", "clinic", None, 0.5), "unknown release (dp_release lists them)"),
    (("failed", "clinic", None, 0.5), "release 'failed' is failed"),
    (("a", "clinic", None, 0), "confidence must be a number in (0, 1)"),
    (("a", "clinic", None, 1), "confidence must be a number in (0, 1)"),
    (("a", "clinic", None, -0.5), None), (("a", "clinic", None, 95), None), (("a", "clinic", None, None), None),
    (("a", "clinic", None, "0.5e"), None), (("a", "clinic", None, float("inf")), None),
    ((None, "clinic", None, 0.5), None),
    (("a", None, None, 0.5), None), ((1, "clinic", None, 0.5), None), (("a", "clinic", 3, 0.5), None),
    (("a", "clinic", b"k", 0.5), None)])
def test_interval_errors(arguments, message):
    db = memory()
    for name in ("a", "gone"):
        release(db, "clinic", "sum", 10, {"name": name})
    one(db, "SELECT dp_discard('gone')")
    one(db, "SELECT dp_release('clinic', 'group_count', 'SELECT minutes FROM visits', ?)", '{"clip":1,"name":"keyed","keys":[1]}')
    interrupted(db, "SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits',"
                """ '{"clip":10,"name":"failed"}')""")
    got = refused(db, "SELECT dp_interval(?, ?, ?, ?)", *arguments)
    assert got.startswith("dp_interval: ") and (message is None or got == "dp_interval: " + message)
