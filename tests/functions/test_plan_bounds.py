"""Finding a clip: the recipe in the error, and dp_plan() with the bounds of what each unit counts (ext/release/clip_bounds.c)."""

import json
import random
import re

import pytest

from conftest import connect, make_ledger, one, refused

pytestmark = pytest.mark.alarm(1e-8)


def flights(counts, rate=1e4, outer=None):
    """counts[i] flights of plane i, each of 100 km."""
    db = connect()
    db.execute("CREATE TABLE flight(id INTEGER PRIMARY KEY, plane, carrier, km)")
    db.executemany("INSERT INTO flight(plane, carrier, km) VALUES (?, ?, ?)", [(i, "ab"[i % 2], 100) for i, n in enumerate(counts) for _ in range(n)])
    make_ledger(db, '{"unit":"plane"}', "flight, plane")
    one(db, "SELECT dp_tier('t', ?, 1e12, 1e-6)", rate)
    if outer:
        one(db, "SELECT dp_tier('outer', ?, 1e12, 1e-6)", outer)
    return db


def skewed(planes=400, seed=5):
    rng = random.Random(seed)
    return [min(500, 1 + int(rng.expovariate(1 / 60))) for _ in range(planes)]


ASKED = [("count", "SELECT 1 FROM flight", "{}", 1), ("group_count", "SELECT carrier FROM flight", '{"keys":["a"]}', 1), ("sum", "SELECT km FROM flight", "{}", 100),
         ("group_sum", "SELECT carrier, km FROM flight", '{"keys":["a"]}', 100), ("group_count", "SELECT carrier FROM flight", '{"keys":{"carrier":["a"]},"ways":1}', 1),
         ("histogram", "SELECT km FROM flight", '{"lo":0,"hi":1,"bins":2}', 1), ("count", "SELECT carrier FROM flight WHERE carrier <> 'it''s'", "{}", 1),
         ("count", "WITH a AS (SELECT * FROM flight) SELECT 1 FROM a", "{}", 1), ("ou_count", "SELECT 1 FROM flight;", '{"radius":5}', 1)]


@pytest.mark.parametrize("kind, sql, options, unit", ASKED)
def test_the_error_has_the_statement_that_finds_a_clip(kind, sql, options, unit):
    """The statement runs as it stands, and its bounds hold what one plane counts."""
    counts = skewed(100)
    db = flights(counts)
    said = refused(db, "SELECT dp_release('t', ?, ?, ?)", kind, sql, options)
    assert "clip is missing" in said
    recipe = re.search(r"to find one: (SELECT dp_release\(.*\))\)$", said)[1]
    low, high = json.loads(one(db, recipe))
    assert low < unit * min(counts) and unit * max(counts) <= high <= 2 * unit * max(counts)
    assert db.execute("SELECT count(*) FROM dp_release WHERE kind = 'bounds' AND name = 'bounds'").fetchall() == [(1,)]


def test_no_recipe_where_none_would_help():
    db = flights([1] * 9)
    for kind, sql, options in (("vec_sum", "SELECT '[1]' FROM flight", '{"dim":1}'), ("count", "nonsense", "{}")):
        assert "to find one" not in refused(db, "SELECT dp_release('t', ?, ?, ?)", kind, sql, options)


def cut_by(counts, clip):
    return sum(max(0, n - clip) for n in counts) / sum(counts)


@pytest.mark.parametrize("counts", [skewed(), [40] * 300, [1, 2, 4, 8, 16, 32, 64] * 20, [500] * 30 + [1] * 300], ids=["skewed", "equal", "powers", "two"])
def test_the_cut_of_each_clip_is_in_its_interval(counts):
    """With hardly any noise: the interval holds the true share, and is as narrow as powers of two allow."""
    db = flights(counts)
    one(db, "SELECT dp_release('t', 'bounds', 'SELECT count(*) FROM flight', '{\"name\":\"b\"}')")
    for clip in (1, 3, 10, 16, 33, 64, 100, 200, 256, 512):
        plan = json.loads(one(db, "SELECT dp_plan('t', 'count', ?, '{\"bounds\":\"b\"}')", clip))
        for entry in [plan["cut"], *plan["clips"]]:
            assert entry["low"] - 1e-3 <= cut_by(counts, entry["clip"]) <= entry["high"] + 1e-3, (clip, entry)
            assert entry["half_width"] == pytest.approx(plan["half_width"] * entry["clip"] / clip, rel=1e-6)
            # what the powers of two alone leave open
            most, least = [2 * n if 2 * n > entry["clip"] else n / 2 for n in counts], [n / 2 if n / 2 > entry["clip"] else min(2 * n, entry["clip"]) for n in counts]
            assert entry["high"] <= cut_by(most, entry["clip"]) + 0.01 and entry["low"] >= cut_by(least, entry["clip"]) - 0.01
        assert plan["cut"]["clip"] == clip and "of the total cut off with clip" in plan["summary"]


def test_the_interval_covers_the_noise():
    """With much noise: the true share is outside the interval in at most 5% of releases, here in far fewer, because values also lie
    anywhere between their powers of two. More than 25 misses in 150 have a probability below 1e-9 at 5%."""
    counts, misses = skewed(400), 0
    db = flights(counts, rate=0.005)
    for i in range(150):
        one(db, "SELECT dp_release('t', 'bounds', 'SELECT count(*) FROM flight', ?)", json.dumps({"name": str(i)}))
        plan = json.loads(one(db, "SELECT dp_plan('t', 'count', 64, ?)", json.dumps({"bounds": str(i)})))
        misses += not plan["cut"]["low"] <= cut_by(counts, 64) <= plan["cut"]["high"]
    assert misses <= 25


def test_a_plan_without_a_clip_takes_the_upper_end():
    db = flights(skewed(), outer=1)
    one(db, "SELECT dp_release('t', 'bounds', 'SELECT count(*) FROM flight', '{\"name\":\"b\"}')")
    high = one(db, "SELECT max(value) FROM dp_value WHERE release = 'b'")
    assert one(db, "SELECT dp_plan('t', 'count', NULL, '{\"bounds\":\"b\"}') ->> 'clip'") == high
    charges = one(db, "SELECT count(*) FROM dp_charge")
    for call, said in (("dp_plan('outer', 'count', 5, '{\"bounds\":\"b\"}')", "the bounds 'b' are not published at tier 'outer'"),
                       ("dp_plan('t', 'count', 5, '{\"bounds\":\"c\"}')", "unknown release"), ("dp_plan('t', 'avg', NULL, '{\"bounds\":\"b\",\"lo\":0,\"hi\":1}')", "is for one count or sum"),
                       ("dp_plan('t', 'group_count', 5, '{\"bounds\":\"b\",\"keys\":5}')", "is for one count or sum"),
                       ("dp_release('t', 'count', 'SELECT 1 FROM flight', '{\"clip\":5,\"bounds\":\"b\"}')", "unknown option 'bounds'")):
        assert said in refused(db, f"SELECT {call}")
    one(db, "SELECT dp_diffuse('b', 'outer')")
    assert json.loads(one(db, "SELECT dp_plan('outer', 'count', 5, '{\"bounds\":\"b\"}')"))["cut"]["high"] > 0
    assert one(db, "SELECT count(*) FROM dp_charge") == charges + 1  # that of dp_diffuse()


def test_figures_of_one_question_name_the_other_clips():
    """At each tier, as far as its members see both."""
    db = flights(skewed(50), outer=1)
    for clip, more in ((5, {}), (64, {}), (512, {})):
        one(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM flight', ?)", json.dumps({"name": str(clip), "clip": clip, **more}))
    one(db, "SELECT dp_release('t', 'sum', 'SELECT 1 FROM flight', '{\"name\":\"sum\",\"clip\":7}')")
    one(db, "SELECT dp_diffuse('5', 'outer'), dp_diffuse('64', 'outer')")
    tail = {"5": "; the same is also answered with clip 64 and 512", "64": "; the same is also answered with clip 5 and 512", "512": "; the same is also answered with clip 5 and 64"}
    for name, said in tail.items():
        assert one(db, "SELECT figure FROM dp_value WHERE release = ? AND tier = 't'", name) == f"rows, at most {name} of each plane{said}"
    assert one(db, "SELECT figure FROM dp_value WHERE release = '5' AND tier = 'outer'") == "rows, at most 5 of each plane; the same is also answered with clip 64"
    assert "also answered" not in one(db, "SELECT figure FROM dp_value WHERE release = 'sum'")
    one(db, "SELECT dp_discard('512')")
    assert one(db, "SELECT figure FROM dp_value WHERE release = '64' AND tier = 't'").endswith("answered with clip 5")


def test_cross_tables_need_a_clip():
    db = flights([2] * 9)
    options = {"keys": {"carrier": ["a", "b"]}, "ways": 1}
    assert "clip is missing" in refused(db, "SELECT dp_release('t', 'group_count', 'SELECT carrier FROM flight', ?)", json.dumps(options))
    assert "clip is missing" in refused(db, "SELECT dp_plan('t', 'group_count', NULL, ?)", json.dumps(options))
    one(db, "SELECT dp_release('t', 'group_count', 'SELECT carrier FROM flight', ?)", json.dumps({**options, "clip": 2}))
