"""Tests the option "diagnose" and dp_clipping(): how many units a release cut down to its bounds. test_cut.py tests how much was
cut off.

is_clipped() decides for each unit of a random table from the definition of its kind. Every unit has COPIES copies, so a wrong
decision changes a count by COPIES. Noisy counts may be COPIES/4 off: at the rates of these tests this is 2,000 standard deviations
of Gaussian noise, and 35 scales of Laplace noise (1e-15). Moments may be SEVEN standard errors off (1e-11 each), shares are compared at
1e-10, and the intervals of shares at 1e-10.
"""

import json
import math
import random
import re
import sqlite3

import numpy
import pytest

from kinds_reference import KINDS, ROWS_COUNT, Row, added, aggregate, bin_of, by_query, contribution, counts_row, effective, identity, key_text, levels, norm, number, vector
from kinds_tables import CALLS, COPIES, PARAMETERS, few_rows, fill, random_table
from noise_helpers import (SEVEN, charges, check_covariance, check_mean, check_share, check_variance, connect, create_table,
                           error_of, one, open_ledger, quick_path)

pytestmark = [pytest.mark.xdist_group("clipping"), pytest.mark.alarm(2e-9)]

TAKES = [kind for kind in KINDS if not kind.endswith(("count_distinct", "bounds")) or "group" in kind]
GAUSSIAN_MOST, LAPLACE_MOST = 1.05, 1.05  # how much more noise an answer may have
TOTALS = [kind for kind in TAKES if kind.removeprefix("ou_").removeprefix("group_") in ("count", "sum", "histogram", "vec_sum", "count_distinct")]


def weight_of(kind, mechanism, adjacency, is_total=None):
    """What one unit adds to a count of units, in units of the sensitivity of the answer. A total has as large a part for the sizes."""
    changes = (2 if adjacency == "replace" else 1) * (2 if (kind in TOTALS if is_total is None else is_total) else 1)
    return 5 / 16 / math.sqrt(changes) if mechanism == "gaussian" else 3 / 64 / changes


def flat(call):
    return call[0], *call[1]


def is_clipped(kind, p, rows):
    """Whether the contribution of a unit with these rows is cut down."""
    kind, clip = kind.removeprefix("ou_"), p["clip"]
    size = (lambda values: sum(map(abs, values))) if p.get("mechanism") == "laplace" else norm
    if "lo" in p and any(not p["lo"] <= number(row.x) <= p["hi"] for row in rows):
        return True
    if kind == "sum":
        return abs(math.fsum(max(min(number(row.x), 1e30), -1e30) for row in rows)) > clip
    if kind in ("count", "avg", "var", "stddev"):
        return len(rows) > clip
    if kind == "histogram":
        return size(added((bin_of(number(row.x), p), 1) for row in rows).values()) > clip
    if kind in ("quantile", "median"):
        nodes = added(((level, bin_of(number(row.x), p) >> (levels(p)[-1] - level)), 1) for row in rows for level in levels(p))
        return size(nodes.values()) > size([clip] * len(levels(p))) * (1 + 1e-9)
    if kind in ("vec_sum", "vec_avg"):
        vectors = [[max(min(x, 1e30), -1e30) for x in vector(row.v, p["dim"])] for row in rows]
        if kind == "vec_avg":
            return len(rows) > 1 or size(vectors[0]) > clip * (1 - 1e-9)
        return size(numpy.sum(vectors, axis=0)) > clip
    if kind == "group_count_distinct":
        return size([1] * len({key_text(row.k) for row in rows})) > clip
    if kind in ("group_histogram", "group_quantile", "group_median"):
        depth = [0] if kind == "group_histogram" else [levels(p)[-1] - level for level in levels(p)]
        nodes = added(((key_text(row.k), shift, bin_of(number(row.x), p) >> shift), 1) for row in rows for shift in depth)
        return size(nodes.values()) > size([clip] * len(depth)) * (1 + 1e-9)
    amounts = (max(min(number(row.x), 1e30), -1e30) if kind == "group_sum" else 1 for row in rows)
    return size(added((key_text(row.k), amount) for row, amount in zip(rows, amounts)).values()) > clip


def tally(kind, parameters, rows, by_unit):
    """Returns the exact numbers of clipped units and of other units."""
    p = effective(kind, parameters, by_unit)
    keys = {key_text(json.dumps(k, separators=(",", ":")) if isinstance(k, list) else k) for k in p["keys"]} if "keys" in p else None
    units = {}
    for i, row in enumerate(rows):
        if counts_row(kind, row) and (keys is None or key_text(row.k) in keys):
            units.setdefault(identity(row.unit) if by_unit else i, []).append(row)
    clipped = sum(is_clipped(kind, p, mine) for mine in units.values())
    return clipped, len(units) - clipped


def counts(db, tier="exact"):
    return db.execute("SELECT clipped, unclipped, unit_stddev FROM dp_publication WHERE tier = ? ORDER BY release_id DESC, rate LIMIT 1", (tier,)).fetchone()


def cases():
    for kind in TAKES:
        yield kind, "gaussian", 1e6
        if not kind.startswith("ou_"):
            yield kind, "laplace", 1e3


@pytest.mark.parametrize("protects,adjacency", [("unit", "add-remove"), ("unit", "replace"), ("row", "add-remove"), ("row", "replace")])
@pytest.mark.parametrize("kind,mechanism,rate", cases())
@pytest.mark.sample(12)
def test_the_clipped_units_are_those_of_the_definition(kind, mechanism, rate, protects, adjacency):
    if kind.endswith("group_count_distinct") and protects == "row":
        pytest.skip("refused as a whole")
    rng = random.Random(f"{kind} {mechanism} {protects} {adjacency}")
    by_unit = protects == "unit"
    db = open_ledger({"exact": rate}, json.dumps({"protects": protects, "adjacency": adjacency}))
    for parameters in PARAMETERS[kind]:
        parameters = {**parameters, **({"mechanism": mechanism} if mechanism == "laplace" else {})}
        rows = random_table(rng)
        fill(db, rows)
        wanted = tally(kind, parameters, rows, by_unit)
        for form in ("query", "aggregate"):
            p = {**parameters, "diagnose": True}
            call = by_query(kind, p) if form == "query" else aggregate(kind, p)
            one(db, *flat(call if form == "query" else (f"SELECT {call[0]} FROM t", call[1])))
            clipped, unclipped, stddev = counts(db)
            assert (clipped, unclipped) == pytest.approx(wanted, abs=COPIES / 4), (parameters, form)
            assert 0 < stddev < COPIES / 100
            rng.shuffle(rows)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("kind,mechanism,rate", cases())
@pytest.mark.sample(12)
def test_the_answer_has_at_most_5_percent_more_noise(kind, mechanism, rate, adjacency):
    """In the same charge. The sensitivity is that of the answer and of one count of units, or of two if a unit is replaced."""
    db = open_ledger({"t": 0.5}, json.dumps({"adjacency": adjacency}))
    fill(db, few_rows())
    p = {**CALLS[kind], **({} if kind.startswith("ou_") else {"mechanism": mechanism})}
    noise, sizes = [], []
    for diagnose in (False, True):
        before = len(charges(db))
        one(db, *flat(by_query(kind, {**p, "diagnose": diagnose}, "t")))
        assert [row[3] for row in charges(db)[before:]] == pytest.approx([0.5 if mechanism == "gaussian" else 0], rel=1e-6)
        g, s, dimension = db.execute("SELECT granularity, sensitivity, dimension FROM dp_release ORDER BY id DESC LIMIT 1").fetchone()
        noise.append(math.sqrt(one(db, "SELECT clock FROM dp_publication ORDER BY release_id DESC, rate LIMIT 1")) * 2.0**g)
        sizes.append((s * 2.0**g, dimension))
    (alone, n), (both, m) = sizes
    assert n == m and noise[1] / noise[0] <= (GAUSSIAN_MOST if mechanism == "gaussian" else LAPLACE_MOST)
    part = 5 / 16 if mechanism == "gaussian" else 3 / 64
    assert both / alone == pytest.approx(math.hypot(1, part) if mechanism == "gaussian" else 1 + part, rel=2e-4)
    stddev = one(db, "SELECT unit_stddev FROM dp_publication ORDER BY release_id DESC, rate LIMIT 1")
    assert stddev == pytest.approx(noise[1] / alone / weight_of(kind, mechanism, adjacency), rel=2e-4)
    plans = [json.loads(one(db, "SELECT dp_plan('t', ?, NULL, ?)", kind, json.dumps({**p, "diagnose": diagnose})))["sigma"] for diagnose in (False, True)]
    assert (0.9 if kind.startswith("ou_") else 1.03) < plans[1] / plans[0] <= 1.05  # an OU kind shrinks more where it has more noise


def extras(path):
    """Returns {(release, tier): (clock, all coordinates in lattice steps, the counts of units first)}."""
    with sqlite3.connect(path + "-ledger") as ledger:
        found = {}
        for release, tier, clock, value in ledger.execute(
                "SELECT release_id, tier, clock, value FROM dp_path ORDER BY release_id, tier, component >= 0, key, component"):
            found.setdefault((release, tier), (clock, []))[1].append(value)
    return found


def test_the_noise_of_the_counts():
    """The counts have the noise of the other coordinates, independent of theirs, and steps outward are independent of it. The
    draw is the same as for every coordinate; test_kinds_noise.py bounds its variance by 2%."""
    runs = 600
    with quick_path() as path:
        db = open_ledger({"inner": 1.0, "outer": 0.1}, path=path)
        fill(db, few_rows(20))
        for i in range(runs):
            one(db, *flat(by_query("sum", {"clip": 3, "diagnose": True, "name": f"r{i}"}, "inner")))
            one(db, "SELECT dp_diffuse(?, 'outer')", f"r{i}")
        g = one(db, "SELECT granularity FROM dp_release LIMIT 1")
        clipped, whole = tally("sum", {"clip": 3}, few_rows(20), True)
        shown = db.execute("SELECT clipped, unclipped, unit_stddev FROM dp_publication WHERE tier = 'inner' ORDER BY release_id").fetchall()
        points = extras(path)
    inner = numpy.array([points[i, "inner"][1] for i in range(1, runs + 1)], dtype=float)
    outer = numpy.array([points[i, "outer"][1] for i in range(1, runs + 1)], dtype=float)
    v, w = points[1, "inner"][0], points[1, "outer"][0]
    unit = weight_of("sum", "gaussian", "add-remove") * 3 * 2.0**-g
    assert inner.shape == (runs, 14)  # the ladder of sizes, two counts of units, and the answer
    inner, outer = inner[:, 11:], outer[:, 11:]
    exact = numpy.array([clipped * unit, whole * unit])
    noise = (inner[:, :2] - exact) / math.sqrt(v)
    steps = (outer - inner) / math.sqrt(w - v)
    for i in range(2):
        check_mean(noise[:, i], 0, 1, "count")
        check_variance(noise[:, i], 1, "count")
        check_variance(steps[:, i], 1, "step")
        check_covariance(noise[:, i], steps[:, i], 0, "count and step")
        check_covariance(noise[:, i], inner[:, 2] / math.sqrt(v) - numpy.mean(inner[:, 2]) / math.sqrt(v), 0, "count and answer")
    check_covariance(noise[:, 0], noise[:, 1], 0, "counts")
    values = numpy.array([(a, b) for a, b, _ in shown])
    assert numpy.allclose(values, inner[:, :2] / unit, rtol=1e-9, atol=1e-9)
    assert shown[0][2] == pytest.approx(math.sqrt(v) / unit, rel=1e-6)


# ---- shares --------------------------------------------------------------------------------------------------------


def clipping(db, name, tier):
    return json.loads(one(db, "SELECT dp_clipping(?, ?)", name, tier))


def fieller(a, b, c):
    """Searches the shares that a test of a (1 - s) - b s does not refuse, in steps of 1e-5."""
    s = numpy.linspace(0, 1, 100_001)
    held = s[numpy.abs(a * (1 - s) - b * s) <= c * numpy.hypot(1 - s, s)]
    return held[0], held[-1]


def people(db, clipped, whole):
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'p'").fetchone():
        create_table(db, "unit, x", "p")
    db.execute("DELETE FROM p")
    db.executemany("INSERT INTO p VALUES (?, ?)", [(i, 9 if i < clipped else 1) for i in range(clipped + whole)])


def test_the_interval_is_that_of_the_test():
    rng = random.Random(5)
    db = open_ledger({"t": 0.02}, '{"unit":"patient"}')
    seen = 0
    for i in range(40):
        people(db, rng.choice([0, 20, 100, 300]), rng.choice([0, 50, 200, 1000]))
        options = json.dumps({"name": f"r{i}", "diagnose": True})
        one(db, "SELECT dp_release('t', 'sum', 'SELECT x FROM p', ?)", options[:-1] + ',"clip":2}')
        a, b, stddev = counts(db, "t")
        c = 1.959963984540054 * stddev
        found = clipping(db, f"r{i}", "t")
        if a + b <= 0 or (a + b) ** 2 <= 2 * c * c:  # "about 100% were cut down (0% to 100%)" would tell nothing
            assert found["share"] is None and (found["low"], found["high"]) == (0, 1) and found["summary"].startswith("too few patients to say")
            continue
        share = min(max(a / (a + b), 0), 1)
        assert found["share"] == pytest.approx(share, abs=1e-12)
        if min(a, b) > -c:
            low, high = fieller(a, b, c)
            assert found["low"] == pytest.approx(min(low, share), abs=3e-5) and found["high"] == pytest.approx(max(high, share), abs=3e-5)
            seen += 1
        assert 0 <= found["low"] <= found["share"] <= found["high"] <= 1
        assert list(found) == ["share", "low", "high", "cut", "cut_low", "cut_high", "cut_within", "summary"]
    assert seen >= 20


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.sample(1)
def test_the_interval_covers(mechanism):
    runs = 500
    db = open_ledger({"inner": 0.1, "outer": 0.02})
    people(db, 150, 350)
    held = 0
    for i in range(runs):
        options = json.dumps({"name": f"r{i}", "diagnose": True, "clip": 2, "mechanism": mechanism})
        one(db, "SELECT dp_release('inner', 'sum', 'SELECT x FROM p', ?)", options)
        one(db, "SELECT dp_diffuse(?, 'outer')", f"r{i}")
        found = clipping(db, f"r{i}", "outer")
        held += found["low"] <= 0.3 <= found["high"]
    if mechanism == "gaussian":
        check_share(held, runs, 0.95, "cover")
    assert held / runs >= 0.95 - SEVEN * math.sqrt(0.95 * 0.05 / runs)


LITTLE = "; a few with very large contributions can matter, too"
UNTOLD = "; how much was cut off is told only of counts and sums without private keys and periods"
NOTHING = "; about 0% of the total was cut off (0% to 1%), if no patient has more than 2 times clip"


@pytest.mark.parametrize("clipped,kind,options,sentence", [
    (310, "sum", {"clip": 2}, "about 31% of patients were cut down to the bound, because their total was beyond clip: a larger clip would lower the bias"
     "; about 62% of the total was cut off (62% to 63%), if no patient has more than 16 times clip"),
    (0, "sum", {"clip": 2}, "about 0% of patients were cut down to the bound, because their total was beyond clip: a smaller clip would lower the noise, but cut off more" + NOTHING),
    (310, "avg", {"lo": 0, "hi": 2}, "about 31% of patients were cut down to the bounds, because a value was outside lo and hi, or they had more rows than clip, which then"
     " only weigh less: if it is the values, wider bounds would lower the bias" + UNTOLD),
    (310, "histogram", {"lo": 0, "hi": 2, "bins": 2, "clip": 1}, "about 31% of patients were cut down to the bounds, because a value was outside lo and hi,"
     " or they had more rows than clip: wider bounds or a larger clip would lower the bias" + NOTHING),
    (0, "median", {"lo": 0, "hi": 2}, "about 0% of patients were cut down to the bounds, because a value was outside lo and hi, or they had more rows than clip, which then only weigh less:"
     " narrower bounds would lower the noise, but cut off more" + UNTOLD + LITTLE),
    (0, "count", {"clip": 1}, "about 0% of patients were cut down to the bound, because they had more rows than clip (0% to 0%)" + NOTHING),
    (0, "count", {"clip": 2}, "about 0% of patients were cut down to the bound, because they had more rows than clip: a smaller clip would lower the noise, but cut off more" + NOTHING)])
def test_sentences(clipped, kind, options, sentence):
    """At rate 300, the noise of a share is below 0.02%."""
    db = open_ledger({"t": 300}, '{"unit":"patient"}')
    people(db, clipped, 1000 - clipped)
    one(db, "SELECT dp_release('t', ?, 'SELECT x FROM p', ?)", kind, json.dumps({**options, "name": "r", "diagnose": True}))
    said = clipping(db, "r", "t")["summary"]
    assert said.replace("off (0% to 0%)", "off (0% to 1%)") == sentence  # the noise may round the end
    page = one(db, "SELECT dp_report('t')")
    assert "What clipping did" in page and said.removesuffix(LITTLE).removesuffix(UNTOLD).replace("clip (0% to 0%)", "clip") in page


@pytest.mark.parametrize("unit,protects,plural", [("city", "unit", "cities"), ("bus", "unit", "buses"), ("day", "unit", "days"), (None, "unit", "units"),
                                                  ("city", "row", "rows")])
def test_the_name_of_the_units(unit, protects, plural):
    db = open_ledger({"t": 300}, json.dumps({"protects": protects, **({"unit": unit} if unit else {})}))
    people(db, 500, 500)
    one(db, "SELECT dp_release('t', 'sum', 'SELECT x FROM p', '{\"clip\":2,\"name\":\"r\",\"diagnose\":true}')")
    assert f"about 50% of {plural} were cut down" in clipping(db, "r", "t")["summary"]


# ---- the life of such a release ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sum", "avg", "median", "vec_sum", "group_sum", "private group_sum", "ou_group_count"])
def test_replay_diffuse_refine_and_verify(kind):
    private, kind = "private" in kind, kind.split()[-1]
    with quick_path() as path:
        db = open_ledger({}, path=path)
        for name, rate in (("inner", 1.0), ("middle", 0.3), ("outer", 0.1), ("outermost", 0.01)):
            one(db, "SELECT dp_tier(?, ?, 1e15, 0.9, 'rdp', 0.5)", name, rate)
        fill(db, few_rows())
        p = {**CALLS[kind], "name": "r", "diagnose": True}
        tier = "middle"
        if private:
            tier = "inner"
            del p["keys"]
        first = one(db, *flat(by_query(kind, p, tier)))
        before = charges(db)
        assert one(db, *flat(by_query(kind, p, tier))) == first
        for diagnose in ({}, {"diagnose": False}):
            other = {**{k: v for k, v in p.items() if k != "diagnose"}, **diagnose}
            assert "exists with other parameters" in error_of(db, *flat(by_query(kind, other, tier)))
        assert charges(db) == before
        one(db, "SELECT dp_diffuse('r', 'outermost')")
        if not private:
            one(db, "SELECT dp_diffuse('r', 'outer')")
            one(db, *flat(by_query(kind, {**p, "refine": True}, "inner")))
        tiers = [row[0] for row in db.execute("SELECT tier FROM dp_publication WHERE unit_stddev IS NOT NULL")]
        assert len(set(tiers)) == (2 if private else 4)
        noise = [one(db, "SELECT unit_stddev FROM dp_publication WHERE tier = ?", tier) for tier in ("inner", "outermost")]
        assert noise[0] < noise[1]
        assert all(0 <= clipping(db, "r", tier)["low"] <= clipping(db, "r", tier)["high"] <= 1 for tier in tiers)
        assert one(db, "SELECT dp_verify()") == "ok"
        certificate = json.loads(one(db, "SELECT dp_certificate()"))["releases"][0]
        assert certificate["options"]["diagnose"] == 1 and all(p["unit_stddev"] > 0 for p in certificate["publications"])
        db.close()


def test_private_keys_that_a_unit_loses_are_clipped():
    db = connect()
    one(db, "SELECT dp_init()")
    one(db, "SELECT dp_tier('exact', 1e6, 1e15, 0.9, 'rdp', 0.5)")
    fill(db, [Row(key, 1, None, unit) for unit in range(100) for key in "abcd"[: 1 + unit % 4]])
    options = {"max_groups": 2, "clip": 100, "diagnose": True, "key_share": 0.1}
    one(db, "SELECT dp_release('exact', 'group_sum', 'SELECT k, x FROM t', ?)", json.dumps(options))
    assert counts(db)[:2] == pytest.approx((50, 50), abs=0.1)


def test_threads_count_every_unit_once():
    with quick_path() as path:
        db = open_ledger({"exact": 1e6}, path=path)
        create_table(db, "id INTEGER PRIMARY KEY, x, unit", "big")
        db.execute("INSERT INTO big WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999) SELECT i * 10, i % 100, i / 3 FROM n")
        exact = [one(db, f"SELECT count(*) FROM (SELECT 1 FROM big GROUP BY unit HAVING {having})") for having in ("sum(x) > 150", "max(x) > 80")]
        for protects in (0, 2):
            db.execute(f"PRAGMA threads = {protects}")
            one(db, "SELECT dp_release('exact', 'sum', 'SELECT x FROM big', '{\"clip\":150,\"diagnose\":true}')")
            assert counts(db)[:2] == pytest.approx((exact[0], 20000 - exact[0]), abs=0.1)
            one(db, "SELECT dp_release('exact', 'avg', 'SELECT x FROM big', '{\"lo\":0,\"hi\":80,\"clip\":5,\"diagnose\":true}')")
            assert counts(db)[:2] == pytest.approx((exact[1], 20000 - exact[1]), abs=0.1)


def test_questions_of_a_policy_and_their_audience():
    """Under a policy a question gives one row for each person. The members of a tier see what clipping did at their tier only."""
    with quick_path() as path:
        db = connect(path)
        one(db, "SELECT dp_init('{\"unit\":\"patient\"}')")
        db.execute("CREATE TABLE visit(patient INTEGER, minutes REAL)")
        db.executemany("INSERT INTO visit VALUES (?, ?)", [(i % 500, 10 if i % 500 < 155 else 1) for i in range(2000)])
        one(db, "SELECT dp_protect('visit', 'patient')")
        one(db, "SELECT dp_tier('clinic', 900, 1e9, 1e-6)")
        one(db, "SELECT dp_tier('public', 300, 1e9, 1e-6)")
        batch = [{"tier": "clinic", "kind": "sum", "sql": "SELECT sum(minutes) FROM visit WHERE minutes > 0", "diffuse": ["public"],
                  "options": {"clip": 20, "name": "minutes", "diagnose": True}},
                 {"tier": "clinic", "kind": "count", "sql": "SELECT minutes FROM visit", "options": {"name": "inner", "clip": 9, "diagnose": True}},
                 {"tier": "public", "kind": "count", "sql": "SELECT minutes FROM visit", "options": {"name": "plain", "clip": 1}}]
        one(db, "SELECT dp_batch(?)", json.dumps(batch))
        wanted = ("about 31% of patients were cut down to the bound, because their total was beyond clip: a larger clip would lower the bias"
                  "; about 41% of the total was cut off (x), if no patient has more than 4 times clip")

        def without_interval(text):
            return re.sub(r"\((39|40)% to 4[12]%\)", "(x)", text)
        assert {without_interval(clipping(db, "minutes", tier)["summary"]) for tier in ("clinic", "public")} == {wanted}
        for arguments in (("plain", "public"), ("minutes", "nowhere"), ("nothing", "public"), ("inner", "public")):
            message = error_of(db, "SELECT dp_clipping(?, ?)", *arguments)
            assert ("was made without" if arguments[0] == "plain" else "is not published at this tier") in message
        db.close()
        guest = connect(path)
        one(guest, "SELECT dp_guard('public')")
        assert without_interval(clipping(guest, "minutes", "public")["summary"]) == wanted
        assert wanted in without_interval(one(guest, "SELECT dp_report()"))
        assert "about 41% was cut off, from 31% of patients" in guest.execute("SELECT figure FROM dp_value WHERE release = 'minutes'").fetchone()[0]
        hidden = [error_of(guest, "SELECT dp_clipping(?, ?)", *arguments) for arguments in (("minutes", "clinic"), ("inner", "clinic"), ("no", "no"))]
        assert len(set(hidden)) == 1
        assert guest.execute("SELECT release, round(clipped), round(unclipped) FROM dp_publication WHERE unit_stddev IS NOT NULL").fetchall() == [
            ("minutes", 155, 345)]


def test_refusals_cost_nothing():
    db = open_ledger({"t": 1.0})
    fill(db, few_rows())
    for sql in ("SELECT dp_count_distinct('t', '{\"diagnose\":true}') FROM t", "SELECT dp_bounds('t', x, '{\"diagnose\":true}') FROM t",
                "SELECT dp_choice('t', k, '[1]', '{\"diagnose\":true}') FROM t", "SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":1,\"diagnose\":true}')"):
        assert "unknown option" in error_of(db, sql)
    for value in ("1", '"yes"', "null"):
        assert "diagnose must be true or false" in error_of(db, "SELECT dp_sum('t', x, 1, ?) FROM t", f'{{"diagnose":{value}}}')
    state = one(db, "SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":1}')")
    assert "unknown option" in error_of(db, "SELECT dp_merge('t', dp_states(?), '{\"diagnose\":true}')", state)
    assert "name must be a text" in error_of(db, "SELECT dp_clipping(NULL, 't')")
    assert charges(db) == []


def test_every_kind_with_a_clip_takes_it():
    assert {kind for kind in KINDS if kind in ROWS_COUNT or "clip" in KINDS[kind].bounds} <= set(TAKES)
    assert contribution("sum", {"clip": 2}, [Row(None, 5, None, 1)]) == {(0, 0): 2}
