"""dp_parts(): the count inside an average, and the count and the average inside a spread, from one charge (ext/functions/figures.c)."""

import json
import math
import random

import pytest

from conftest import connect, make_ledger, one, refused

KEYS = 250
RELEASES = 20  # of each case: 5,000 intervals
KINDS = [("group_avg", None), ("group_avg", "laplace"), ("group_stddev", None), ("group_var", "laplace"), ("group_stddev", "laplace")]


def people(rate, rows=60, keys=KEYS, seed=3):
    """One row for each person, so that nothing is clipped. Returns the database and {key: values}."""
    rng = random.Random(seed)
    db = connect()
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, k, x)")
    truth = {str(k): [rng.choice([10.0, 20.0, 20.0, 50.0]) + k % 7 for _ in range(rows + k % 5)] for k in range(keys)}
    db.executemany("INSERT INTO t(k, x) VALUES (?, ?)", [(int(k), x) for k, values in truth.items() for x in values])
    make_ledger(db, "{}", "t, id")
    one(db, "SELECT dp_tier('t', ?, 1e9, 1e-6)", rate)
    one(db, "SELECT dp_tier('out', ?, 1e9, 1e-6)", rate / 4)
    return db, truth


def statistics(values):
    mean = math.fsum(values) / len(values)
    variance = math.fsum((x - mean) ** 2 for x in values) / len(values)
    return {"count": len(values), "average": mean, "variance": variance, "standard deviation": math.sqrt(variance)}


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind, mechanism", KINDS)
@pytest.mark.alarm(1e-7)
def test_the_truth_is_in_95_of_100_intervals(kind, mechanism):
    """Of 5,000 intervals of each statistic and tier, all with noise of their own, 93% to 97% hold the truth: 6.5 standard deviations.
    The interval of a spread may hold it more often, because a spread is not linear, and one of several Laplace draws is the wider of
    two (up to 98%, and 6.5 standard deviations more)."""
    db, truth = people(0.02)
    exact = {key: statistics(values) for key, values in truth.items()}
    held = {}
    for i in range(RELEASES):
        options = {"name": str(i), "lo": 0, "hi": 60, "keys": list(range(KEYS)), **({"mechanism": mechanism} if mechanism else {})}
        one(db, "SELECT dp_release('t', ?, 'SELECT k, x FROM t', ?)", kind, json.dumps(options))
        one(db, "SELECT dp_diffuse(?, 'out')", str(i))
        for tier in ("t", "out"):
            for key, statistic, low, high in db.execute("SELECT key, statistic, low, high FROM dp_parts(?, ?)", (str(i), tier)):
                held.setdefault((statistic, tier), []).append(low <= exact[key][statistic] <= high)
    own = {"group_avg": ["average"], "group_stddev": ["average", "standard deviation"], "group_var": ["average", "variance"]}[kind]
    assert {statistic for statistic, _ in held} == {"count", *own}
    for (statistic, tier), found in held.items():
        assert len(found) == KEYS * RELEASES
        share = sum(found) / len(found)
        most = 1 if statistic not in ("count", "average") else 0.993 if mechanism else 0.97
        assert 0.93 <= share <= most, (statistic, tier, share)


@pytest.mark.parametrize("kind, own", [("avg", "average"), ("var", "variance"), ("stddev", "standard deviation"), ("group_avg", "average"), ("group_stddev", "standard deviation")])
def test_the_parts_are_of_the_same_release(kind, own):
    """With hardly any noise the parts are right. The statistic itself is the one of dp_value, and nothing is charged."""
    db, truth = people(1e5, keys=5)
    columns = "k, x" if kind.startswith("group") else "x"
    options = {"name": "r", "lo": 0, "hi": 60, **({"keys": list(range(5))} if kind.startswith("group") else {})}
    one(db, "SELECT dp_release('t', ?, ?, ?)", kind, f"SELECT {columns} FROM t", json.dumps(options))
    charges = one(db, "SELECT count(*) FROM dp_charge")
    groups = truth if kind.startswith("group") else {None: [x for values in truth.values() for x in values]}
    parts = {(key, statistic): value for key, statistic, value in db.execute("SELECT key, statistic, value FROM dp_parts('r', 't')")}
    wanted = ["count", own] if own == "average" else ["count", "average", own]
    assert set(parts) == {(key, statistic) for key in groups for statistic in wanted}
    for (key, statistic), value in parts.items():
        assert value == pytest.approx(statistics(groups[key])[statistic], rel=0.01)
    shown = db.execute("SELECT key, value, stddev, low, high, display FROM dp_value WHERE release = 'r'").fetchall()
    again = db.execute("SELECT ifnull(key, ''), value, stddev, low, high, display FROM dp_parts('r', 't') WHERE statistic = ?", (own,)).fetchall()
    assert sorted(again) == sorted((key or "", *rest) for key, *rest in shown)
    assert one(db, "SELECT count(*) FROM dp_charge") == charges and one(db, "SELECT dp_verify()") == "ok"


def test_clip_bounds_the_count():
    """A person with ten rows counts as at most clip rows in the count."""
    db = connect()
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, person, x)")
    db.executemany("INSERT INTO t(person, x) VALUES (?, 1)", [(i % 30,) for i in range(300)])
    make_ledger(db, "{}", "t, person")
    one(db, "SELECT dp_tier('t', 1e5, 1e9, 1e-6)")
    for clip, count in ((1, 30), (4, 120), (20, 300)):
        one(db, "SELECT dp_release('t', 'avg', 'SELECT x FROM t', ?)", json.dumps({"name": str(clip), "lo": 0, "hi": 2, "clip": clip}))
        assert one(db, "SELECT value FROM dp_parts(?, 't') WHERE statistic = 'count'", str(clip)) == pytest.approx(count, abs=1)


def test_private_keys_show_the_parts_of_the_published_keys():
    db, truth = people(1, rows=40, keys=6)
    one(db, "SELECT dp_tier('keys', 2, 1e9, 1e-3, '{\"delta_keys\":1e-4}')")
    db.execute("INSERT INTO t(k, x) VALUES ('lone', 3)")
    one(db, "SELECT dp_release('keys', 'group_avg', 'SELECT k, x FROM t', '{\"name\":\"r\",\"lo\":0,\"hi\":60}')")
    published = {key for (key,) in db.execute("SELECT key FROM dp_value WHERE release = 'r'")}
    assert published == set(truth)
    for key, low, high in db.execute("SELECT key, low, high FROM dp_parts('r', 'keys') WHERE statistic = 'count'"):
        assert key in published and low - 30 < len(truth[key]) < high + 30  # sixty standard deviations
    assert {key for (key,) in db.execute("SELECT key FROM dp_parts('r', 'keys')")} == published


@pytest.mark.parametrize("kind, more", [("sum", {"clip": 1}), ("count", {"clip": 1}), ("median", {"lo": 0, "hi": 60, "mechanism": "gaussian"}), ("ou_avg", {"lo": 0, "hi": 60, "radius": 9}),
                                        ("bounds", {}), ("histogram", {"lo": 0, "hi": 60, "bins": 2, "clip": 1})])
def test_other_releases_have_no_parts(kind, more):
    db, _ = people(1, keys=2)
    one(db, "SELECT dp_release('t', ?, 'SELECT x FROM t', ?)", kind, json.dumps({"name": "r", **more}))
    assert "release 'r' has no parts" in refused(db, "SELECT * FROM dp_parts('r', 't')")
    assert "not published at this tier" in refused(db, "SELECT * FROM dp_parts('r', 'out')")
    assert "not published at this tier" in refused(db, "SELECT * FROM dp_parts('nope', 't')")
