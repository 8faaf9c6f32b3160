"""Tests plans, intervals, certificates and the file for an audience, for every kind."""

import json
import math
import os
import pathlib
import re
import sqlite3
import subprocess

import pytest
from scipy import stats

from conftest import EXTENSION, INIT
from kinds_reference import KINDS, LINEAR, Row, by_query, effective, numbers, reach
from kinds_tables import PARAMETERS, fill
from noise_helpers import charges, column, connect, error_of, one, open_ledger, quick_path, record

TIERS = {"inner": 1.0, "middle": 0.3, "outer": 0.1}
KEYS = ["a", "b", "nobody"]


@pytest.fixture
def path():
    with quick_path() as path:
        yield path


def parameters_of(kind):
    p = dict(PARAMETERS[kind][0])
    return {**p, "keys": KEYS} if "keys" in p else p


def table():
    return [Row("abc"[i % 3], i % 5 - 1, f"[{i % 3},1,-1]", i) for i in range(60)]


def flat(call):
    return call[0], *call[1]


# ---- plans ---------------------------------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("weight", [1, 0.25])
@pytest.mark.parametrize("protects,adjacency", [("unit", "add-remove"), ("unit", "replace"), ("row", "add-remove"), ("row", "replace")])
def test_a_plan_is_what_the_release_then_is(protects, adjacency, weight):
    """For every kind, dp_plan() predicts the rate, the cost for every tier and the noise of the later release. A plan is not
    charged."""
    db = open_ledger(TIERS, json.dumps({"protects": protects, "adjacency": adjacency}))
    by_unit = protects == "unit"
    fill(db, table())
    for kind in KINDS:
        if kind.endswith("count_distinct") and not by_unit:
            continue
        p = {**parameters_of(kind), "name": f"{kind} r", **({"weight": weight} if weight != 1 else {})}
        before, released = charges(db), column(db, "SELECT name FROM dp_release")
        clip = p.get("clip") if kind.removeprefix("ou_") != "count_distinct" else None
        plan = json.loads(one(db, "SELECT dp_plan('middle', ?, ?, ?)", kind, clip, json.dumps({k: v for k, v in p.items() if k != "clip"})))
        assert json.loads(one(db, "SELECT dp_plan('middle', ?, NULL, ?)", kind, json.dumps(p))) == plan
        batch = json.loads(one(db, "SELECT dp_plan(?)", json.dumps([{"tier": "middle", "kind": kind, **p}])))
        assert batch["plans"] == [plan] and batch["tiers"] == plan["tiers"]
        assert charges(db) == before and column(db, "SELECT name FROM dp_release") == released
        one(db, *flat(by_query(kind, p, "middle")))
        made = record(db, "SELECT * FROM dp_publication ORDER BY release_id DESC LIMIT 1")
        release = record(db, "SELECT * FROM dp_release ORDER BY id DESC LIMIT 1")
        assert plan["rate"] == pytest.approx(made["rate"], rel=1e-12)
        assert plan["rate"] == pytest.approx(release["sensitivity"]**2 / (2 * made["clock"]), rel=1e-9)
        assert [(tier["tier"], tier["pays"]) for tier in plan["tiers"] if tier["pays"]] == [(row[2], row[3]) for row in charges(db)[len(before):]]
        assert {tier["tier"]: tier["epsilon_after"] for tier in plan["tiers"]} == dict(db.execute("SELECT tier, spent_epsilon FROM dp_budget"))
        noise = math.sqrt(made["clock"]) * 2.0**release["granularity"]
        bound = reach(kind, p, by_unit, adjacency) / math.sqrt(2 * 0.3 * weight)
        assert bound / math.sqrt(2) * (1 - 1e-9) <= noise <= bound * (1 + 3e-4)
        stated = db.execute("SELECT stddev FROM dp_value WHERE release_id = ?", (release["id"],)).fetchall()
        assert plan["half_width"] == pytest.approx(plan["sigma"] / plan["shrink"] * stats.norm.ppf(0.975), rel=1e-9)
        if kind in LINEAR:
            assert plan["shrink"] == pytest.approx(made["shrink"], rel=1e-12)
            for (stddev,) in stated:
                assert stddev == pytest.approx(plan["sigma"], rel=1e-12)
                assert stddev == pytest.approx(noise * made["shrink"], rel=1e-9)
        elif kind.endswith("avg") and "lo" in p:  # times the number of rows
            assert plan["sigma"] == pytest.approx((p["hi"] - p["lo"]) / 2 * math.sqrt(5) * noise, rel=1e-9)
        elif kind.endswith("vec_avg"):
            assert plan["sigma"] == pytest.approx(math.sqrt(5) * noise, rel=1e-9)
        elif kind.endswith(("var", "stddev")):
            assert plan["sigma"] == pytest.approx(((p["hi"] - p["lo"]) / 2) ** 2 * math.sqrt(6.5) * noise, rel=1e-9)
        assert plan["sigma"] > 0 and plan["clip"] == effective(kind, p, by_unit)["clip"]
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("kind", ["histogram", "vec_sum", "group_count", "group_sum", "count_distinct"])
def test_the_weight_of_a_half_width(kind):
    """For linear kinds, dp_plan() finds the least weight for a half-width, and the release then has this half-width."""
    db = open_ledger(TIERS)
    fill(db, table())
    p = parameters_of(kind)
    wide = json.loads(one(db, "SELECT dp_plan('inner', ?, NULL, ?)", kind, json.dumps(p)))["half_width"]
    plan = json.loads(one(db, "SELECT dp_plan('inner', ?, NULL, ?)", kind, json.dumps({**p, "half_width": 3 * wide})))
    assert plan["half_width"] <= 3 * wide and plan["half_width"] == pytest.approx(3 * wide, rel=1e-5)
    assert plan["weight"] == pytest.approx(1 / 9, rel=1e-4)
    one(db, *flat(by_query(kind, {**p, "weight": plan["weight"]}, "inner")))
    low, high = db.execute("SELECT low, high FROM dp_value LIMIT 1").fetchone()
    assert (high - low) / 2 == pytest.approx(plan["half_width"], rel=1e-6)
    assert "which is that of the rate 1 of tier 'inner'" in error_of(
        db, "SELECT dp_plan('inner', ?, NULL, ?)", kind, json.dumps({**p, "half_width": wide / 2}))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bounds" and (kind not in LINEAR or kind.startswith("ou_"))])
def test_a_half_width_needs_rows_or_is_not_for_what_shrinks(kind):
    db = open_ledger(TIERS)
    message = error_of(db, "SELECT dp_plan('inner', ?, NULL, ?)", kind, json.dumps({**parameters_of(kind), "half_width": 5}))
    assert (f"half_width is for numbers without shrink, not '{kind}'" if kind.startswith("ou_") else
            f"half_width of '{kind}' needs rows") in message


@pytest.mark.parametrize("kind", KINDS)
def test_plans_outward_and_inward(kind):
    """For an existing release, dp_plan() gives the cost of diffusing and refining."""
    db = open_ledger(TIERS)
    fill(db, table())
    p = {**parameters_of(kind), "name": "r"}
    one(db, *flat(by_query(kind, p, "middle")))
    for tier, more, pays in (("outer", {}, {"outer": 0.1}), ("inner", {"refine": True}, {"inner": 0.7}), ("middle", {}, {})):
        plan = json.loads(one(db, "SELECT dp_plan(?, ?, NULL, ?)", tier, kind, json.dumps({**p, **more})))
        assert {t["tier"]: t["pays"] for t in plan["tiers"] if t["pays"]} == pytest.approx(pays, rel=1e-9)
    assert len(charges(db)) == 2
    assert column(db, "SELECT tier FROM dp_publication") == ["middle"]


# ---- intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bounds"])
def test_intervals_by_component_and_key(kind):
    """In dp_interval(), key is NULL for a single number, the index of a component for an array, and the text of a key for
    groups."""
    db = open_ledger(TIERS)
    fill(db, table())
    p = parameters_of(kind)
    p.pop("name", None)
    result = one(db, *flat(by_query(kind, {**p, "name": "r"}, "inner")))
    rows = {(key, component): row for key, component, *row in db.execute("SELECT key, component, value, stddev, low, high FROM dp_value")}
    for key, component, value in numbers(kind, p, result):
        place = key if KINDS[kind].form == "object" else component if KINDS[kind].form == "array" else None
        index = (component,) if component and KINDS[kind].form == "object" else ()
        stored, stddev, low, high = rows[key, component]
        assert stored == value
        inner = [value, value]
        for confidence in (0.5, 0.95, 0.999999):
            got = json.loads(one(db, f"SELECT dp_interval('r', 'inner', ?, ?{', ?' * len(index)})", place, confidence, *index))
            half = stddev * stats.norm.isf((1 - confidence) / 2)
            if kind in LINEAR and not kind.startswith("ou_"):
                assert got == pytest.approx([value - half, value + half], rel=1e-12, abs=1e-8 * half)
            if confidence == 0.95 and (index or isinstance(place, int)):  # some hosts bind all numbers as REAL
                places = (place, 0.95, float(component)) if index else (float(place), 0.95)
                assert got == json.loads(one(db, f"SELECT dp_interval('r', 'inner', {', '.join('?' * len(places))})", *places))
            assert got[0] <= inner[0] <= inner[1] <= got[1]
            assert confidence != 0.95 or got == [low, high]
            inner = got
    for place in {"object": ["c", "", 0], "array": [-1, 99999, "x"], "number": ["x", 1]}[KINDS[kind].form]:
        assert "has no value " in error_of(db, "SELECT dp_interval('r', 'inner', ?, 0.95)", place)
    for place in (1.5, b"a"):
        assert "key must be a text, the number of a component, or NULL, not " in error_of(db, "SELECT dp_interval('r', 'inner', ?, 0.9)", place)
    assert "has no value " in error_of(db, "SELECT dp_interval('r', 'outer', ?, 0.95)", place_of(kind))


def place_of(kind):
    return {"object": "a", "array": 0, "number": None}[KINDS[kind].form]


# ---- for auditors and audiences ------------------------------------------------------------------------------------


def all_kinds(path):
    """Makes a database with a release of every kind, published at the middle tier and at the outer tier, and with releases of
    private keys."""
    db = connect(path)
    one(db, INIT)
    for tier, rate in TIERS.items():
        one(db, "SELECT dp_tier(?, ?, 1e15, 0.9, 'rdp', 0.5)", tier, rate)
    fill(db, table() + [Row("secret key", 1, None, "one of a kind")])
    for kind in KINDS:
        one(db, *flat(by_query(kind, {**parameters_of(kind), "name": kind}, "middle")))
        one(db, "SELECT dp_diffuse(?, 'outer')", kind)
    for kind in ("group_count", "group_sum"):
        one(db, *flat(by_query(kind, {"clip": 1, "name": f"private {kind}", "key_share": 1e-9}, "inner")))
        one(db, "SELECT dp_diffuse(?, 'outer')", f"private {kind}")
    one(db, *flat(by_query("group_count", {"clip": 1, "name": "secret to the inner tier", "keys": ["inner key"]}, "inner")))
    return db


def test_the_certificate_tells_of_every_kind(path):
    db = all_kinds(path)
    certificate = json.loads(one(db, "SELECT dp_certificate()"))
    assert certificate["verify"] == "ok"
    releases = {release["name"]: release for release in certificate["releases"]}
    for kind in KINDS:
        release, p = releases[kind], parameters_of(kind)
        assert release["kind"] == kind and release["mechanism"] == ("ou" if kind.startswith("ou_") else "gaussian")
        for option in set(p) - {"keys", "name"}:
            assert release["options"][option] == p[option], option
        assert [publication["tier"] for publication in release["publications"]] == ["middle", "outer"]
        for publication in release["publications"]:
            assert publication["rate"] == pytest.approx(release["sensitivity"]**2 / (2 * publication["variance"]), rel=1e-9)
            assert publication["delta"] == 0
        assert release["dimension"] == one(db, "SELECT dimension FROM dp_release WHERE name = ?", kind)
        assert release["theorem"]["rate"] and (release["theorem"]["shrink"] is None) == (not kind.startswith("ou_"))
    for name in ("private group_count", "private group_sum"):
        release = releases[name]
        assert release["dimension"] is None and release["options"]["max_groups"] == 4 and release["options"]["key_share"] == 1e-9
        assert [p["delta"] for p in release["publications"]] == pytest.approx([5e-10, 5e-10])
        assert release["theorem"]["keys"] and not releases["group_count"]["theorem"].get("keys")
    assert "secret key" not in json.dumps(certificate)


def hand_over(path, tier, file):
    script = pathlib.Path(__file__).resolve().parents[2] / "sql" / "export.sql"
    done = subprocess.run([os.environ.get("SQLITE3", "sqlite3"), path, f".load {EXTENSION}", ".parameter init", f".parameter set @tier {tier}",
                           f".parameter set @file \"'{file}'\"", f".read {script}"], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return sqlite3.connect(file)


@pytest.mark.parametrize("tier,seen", [("outer", ["outer"]), ("middle", ["middle", "outer"])])
def test_what_an_audience_gets(path, tier, seen):
    """The audience's file has all values of groups and arrays exactly, only the shown private keys, and nothing of inner tiers.
    """
    file = path + "-handed"
    db = all_kinds(path)
    wanted = db.execute(f"SELECT release, tier, key, component, value, stddev, low, high FROM dp_value WHERE tier IN"
                        f" ({','.join('?' * len(seen))}) ORDER BY 1, 2, 3, 4", seen).fetchall()
    db.close()
    handed = hand_over(path, tier, file)
    got = handed.execute("SELECT release, tier, key, component, value, stddev, low, high FROM value ORDER BY 1, 2, 3, 4").fetchall()
    assert got == wanted
    assert {row[0] for row in got} >= set(KINDS)
    document = one(handed, "SELECT document FROM certificate")
    certificate = json.loads(document)
    assert certificate["verify"] == "ok" and certificate["audience"] == tier
    releases = {release["name"]: release for release in certificate["releases"]}
    assert set(releases) == set(KINDS) | {"private group_count", "private group_sum"}
    for release in releases.values():
        assert {publication["tier"] for publication in release["publications"]} <= set(seen)
        assert "sensitivity" not in release and "granularity" not in release
    assert releases["private group_sum"]["dimension"] is None
    assert releases["private group_sum"]["publications"][0]["delta"] == pytest.approx(5e-10)
    handed.close()
    content = pathlib.Path(file).read_bytes()
    for secret in (b"secret key", b"inner key", b"secret to the inner tier"):
        assert secret not in content
    assert not re.search(rb"inner\b", content)


def test_exposure_counts_the_innermost_publication_of_vectors():
    db = open_ledger(TIERS)
    fill(db, table())
    for kind in ("group_sum", "vec_avg", "median"):
        one(db, *flat(by_query(kind, {**parameters_of(kind), "name": kind}, "inner")))
        one(db, "SELECT dp_diffuse(?, 'outer')", kind)
    for tiers, rate in (("inner,outer", 3.0), ("outer", 0.3), ("inner", 3.0)):
        assert json.loads(one(db, "SELECT dp_exposure(?)", tiers))["rate"] == pytest.approx(rate, rel=1e-6)
