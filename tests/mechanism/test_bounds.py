"""Tests dp_bounds(), which returns two numbers between which nearly all of the data lie. Each number is 0 or a power of two with
a sign.

kinds_reference.py defines the bins and the threshold. The tests read the noisy counts from dp_path, apply this definition and
compare the answer exactly. By design, noise alone shows a bin in one release of a thousand. Tests of whole answers therefore ask
SEVERAL times and want a majority: four false ends among seven have probability at most 4e-11. Two-sided comparisons of moments
allow SEVEN standard errors (at most 1e-11 each). The number of false ends is compared at 1e-10.
"""

import collections
import json
import math
import random
import sqlite3

import numpy
import pytest
from scipy import stats

from kinds_reference import Row, bounds_threshold, by_query, exponent_bin, exponent_ends, totals
from kinds_tables import INF, fill, random_table
from noise_helpers import check_mean, check_variance, column, connect, create_table, error_of, one, open_ledger, quick_path

pytestmark = [pytest.mark.xdist_group("bounds"), pytest.mark.alarm(5e-10)]

SEVERAL, BINS = 7, 513
ASK = "SELECT dp_bounds(?, x, ?) FROM t"


def points(path):
    """Yields (release, tier, sensitivity, clock, counts) for each point; sensitivity and counts are numbers of units."""
    with sqlite3.connect(path + "-ledger") as ledger:
        steps = {release: (name, 2.0**g, s) for release, name, g, s in ledger.execute("SELECT id, name, granularity, sensitivity FROM dp_release")}
        rows = collections.defaultdict(list)
        for release, tier, clock, value in ledger.execute("SELECT release_id, tier, clock, value FROM dp_path ORDER BY release_id, tier, component"):
            rows[release, tier, clock].append(value)
    for (release, tier, clock), values in rows.items():
        name, step, sensitivity = steps[release]
        yield name, tier, sensitivity * step, clock * step**2, numpy.array(values) * step, step


def expected(counts, variance, step):
    """Returns the ends that follow from noisy counts, or None. The threshold is rounded up to the lattice, plus two steps."""
    threshold = (math.ceil(bounds_threshold(math.sqrt(variance)) / step) + 2) * step
    shown = numpy.flatnonzero(counts > threshold)
    return [exponent_ends(shown[0])[0], exponent_ends(shown[-1])[1]] if len(shown) else None


def majority(answers):
    answer, count = collections.Counter(answers).most_common(1)[0]
    assert count > SEVERAL // 2, answers
    return answer and json.loads(answer)


def test_the_reference_bins_hold_their_numbers():
    for x in [0, 1, -1, 0.75, 3, -1e9, 2**63, 1e-30, -2.0**-127, 2.0**-128, 1.5 * 2.0**-128, 2.0**128, 5e-324]:
        low, high = exponent_ends(exponent_bin(x))
        assert low <= x <= high or abs(x) <= 2.0**-128, x


@pytest.mark.parametrize("protects", ["unit", "row"])
def test_every_number_counts_in_its_bin(protects):
    """Each number has a unit of its own. The noisy counts are within 1/10 of the true ones: 141 standard deviations."""
    edges = [2.0**e for e in (-200, -129, -128, -127, -126, -64, -1, 0, 1, 10, 62, 127, 128, 129, 1000)]
    xs = [0, 0.0, -0.0, INF, 1e308, 5e-324, 2**63 - 1, "7 kg", "x", b"3", *edges]
    xs += [math.nextafter(x, INF) for x in edges] + [math.nextafter(x, 0) for x in edges]
    xs = [y for x in xs for y in ((x, -x) if isinstance(x, (int, float)) else (x,))] + [-2**63, None]
    with quick_path() as path:
        db = open_ledger({"exact": 1e6}, json.dumps({"protects": protects}), path)
        rows = [Row(None, x, None, unit) for unit, x in enumerate(xs)]
        fill(db, rows)
        one(db, *[p for part in [by_query("bounds", {})] for p in (part[0], *part[1])])
        wanted = totals("bounds", {}, rows, protects == "unit")
        (_, _, sensitivity, _, counts, _), = points(path)
        assert sensitivity == pytest.approx(1, rel=1e-4) and len(counts) == BINS
        assert [round(n) for n in counts] == [wanted.get((i, 0), 0) for i in range(BINS)]
        assert numpy.max(numpy.abs(counts - numpy.round(counts))) < 0.1


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_answers_follow_from_the_points(mechanism, adjacency):
    """At every tier, drawn outward and refined inward, the ends are those of the noisy counts."""
    rng = random.Random(f"{mechanism} {adjacency}")
    with quick_path() as path:
        db = open_ledger({"inner": 2.0, "middle": 0.3, "outer": 0.02}, json.dumps({"adjacency": adjacency}), path)
        for i in range(12):
            rows = random_table(rng, 10)
            fill(db, rows)
            options = json.dumps({"name": f"r{i}", "mechanism": mechanism})
            tier = rng.choice(["inner", "middle"])
            first = one(db, ASK, tier, options)
            assert one(db, ASK, tier, options) == first
            assert one(db, "SELECT dp_diffuse(?, 'outer')", f"r{i}") == one(db, ASK, "outer", options)
            if tier == "middle" and mechanism == "gaussian":
                one(db, ASK, "inner", options[:-1] + ',"refine":true}')
        answers = collections.defaultdict(list)
        for name, tier, value, *noise in db.execute("SELECT release, tier, value, stddev, low, high FROM dp_value ORDER BY release, tier, component"):
            answers[name, tier].append(value)
            assert noise == [None] * 3
        published = set(db.execute("SELECT release, tier FROM dp_publication"))
        seen = 0
        for name, tier, _, variance, counts, step in points(path):
            if (name, tier) not in published:
                continue
            if mechanism == "gaussian":
                assert answers.get((name, tier)) == expected(counts, variance, step), (name, tier)
            seen += 1
        assert seen == len(published) >= 24
        assert one(db, "SELECT dp_verify()") == "ok"


def test_noise_and_false_ends():
    """Without rows, the counts are white noise of the promised variance, and an end is found in at most one release of a thousand.
    500 releases have 256,500 counts, so a variance that is 2% off is 7 standard errors off."""
    releases = 500
    with quick_path() as path:
        db = open_ledger({"t": 0.5}, path=path)
        create_table(db, "x, unit")
        db.execute("PRAGMA synchronous = OFF")
        found = [one(db, "SELECT dp_release('t', 'bounds', 'SELECT x FROM t')") for _ in range(releases)]
        noise = numpy.concatenate([counts for *_, counts, _ in points(path)])
        threshold = json.loads(one(db, "SELECT dp_plan('t', 'bounds', NULL)"))["threshold"]
    assert len(noise) == releases * BINS
    check_mean(noise, 0, 1, "counts")
    check_variance(noise, 1, "counts")
    assert threshold == pytest.approx(stats.norm.isf(1 - 0.999 ** (1 / BINS)), rel=1e-4)
    assert stats.binom.sf(sum(answer is not None for answer in found) - 1, releases, 1e-3) > 1e-10


def test_laplace_threshold():
    db = connect()
    one(db, "SELECT dp_init()")
    one(db, "SELECT dp_tier('pure', 0.02, 5, 0, 'pure')")
    plan = json.loads(one(db, "SELECT dp_plan('pure', 'bounds', NULL)"))
    scale = plan["sigma"] / math.sqrt(2)
    assert plan["threshold"] == pytest.approx(stats.laplace.isf(1 - 0.999 ** (1 / BINS)) * scale, rel=1e-3)


def test_an_absurd_value_does_not_count():
    """One absurd value in a hundred thousand, and a unit with a thousand absurd rows, move no end."""
    db = open_ledger({"t": 0.01})
    fill(db, [Row(None, 70 + i % 500, None, i) for i in range(100_000)] + [Row(None, 1e15, None, 1), *[Row(None, -1e9, None, -1)] * 1000])
    assert majority([one(db, ASK, "t", None) for _ in range(SEVERAL)]) == [64, 1024]


@pytest.mark.parametrize("xs,wanted", [
    ([], None), ([None] * 50, None), ([0] * 50, [0, 0]), ([1] * 50, [0.5, 1]), ([-3.5] * 50, [-4, -2]), ([-3.5, 0, 12] * 50, [-4, 16]),
    ([-3.5, 0] * 50, [-4, 0]), ([INF] * 50, [2.0**127, 2.0**128]), ([1e-300, 0.01] * 50, [0, 2.0**-6]), ([5], None)])
def test_ends(xs, wanted):
    db = open_ledger({"t": 0.5})
    fill(db, [Row(None, x, None, unit) for unit, x in enumerate(xs)])
    answers = [one(db, "SELECT dp_release('t', 'bounds', 'SELECT x FROM t')") for _ in range(SEVERAL)]
    assert majority(answers) == wanted


def test_bounds_of_a_persons_total():
    """In a ledger with a policy the question is evaluated for one person at a time, so the published bounds hold for persons'
    totals and can serve as a clip."""
    db = connect()
    one(db, "SELECT dp_init('{\"unit\":\"patient\"}')")
    db.execute("CREATE TABLE visit(patient INTEGER, minutes REAL)")
    db.executemany("INSERT INTO visit VALUES (?, ?)", [(i % 400, 30) for i in range(4000)])
    one(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_tier('clinic', 0.1, 1e6, 1e-6)")
    answers = [one(db, "SELECT dp_release('clinic', 'bounds', 'SELECT sum(minutes) FROM visit')") for _ in range(SEVERAL)]
    assert majority(answers) == [256, 512]  # ten visits of 30 minutes each
    assert majority([one(db, "SELECT dp_bounds('clinic', minutes) FROM visit") for _ in range(SEVERAL)]) == [16, 32]


def test_shards_make_the_bounds_of_one_table():
    with quick_path() as path:
        db = open_ledger({"exact": 1e6}, path=path)
        rows, states = random_table(random.Random(3), 20), []
        for shard in range(3):
            fill(db, rows[shard::3])
            states.append(one(db, "SELECT dp_partial('bounds', 'SELECT x FROM t', '{}')"))
        one(db, "SELECT dp_merge('exact', dp_states(s)) FROM (SELECT ? AS s UNION ALL SELECT ? UNION ALL SELECT ?)", *states)
        wanted = totals("bounds", {}, rows, True)
        (*_, counts, _), = points(path)
        assert counts == pytest.approx([wanted.get((i, 0), 0) for i in range(BINS)], abs=0.01)


def test_where_there_is_no_number():
    """dp_interval(), display, plan, report, certificate and batch know that bounds have no interval and may be NULL."""
    db = open_ledger({"t": 1.0})
    fill(db, [Row(None, 0.3, None, unit) for unit in range(300)])
    while one(db, ASK, "t", "b") != "[0.25,0.5]":  # a false end has probability 1e-3
        one(db, "SELECT dp_discard('b')")
    assert "release 'b' is a pair of bounds, not a number with noise around it" in error_of(db, "SELECT dp_interval('b', 't', 0, 0.9)")
    assert column(db, "SELECT display FROM dp_value ORDER BY component") == ["0.25", "0.5"]
    assert db.execute("SELECT key, value, stddev, low, high FROM dp_answer('t', 'bounds', 'SELECT x FROM t', '{\"name\":\"a\"}')").fetchall()[0][2:] == (
        None, None, None)
    batch = json.dumps([{"tier": "t", "kind": "bounds", "sql": "SELECT NULL FROM t", "options": {"name": f"n{i}"}} for i in range(SEVERAL)])
    assert [item["answer"] for item in json.loads(one(db, "SELECT dp_batch(?)", batch))].count(None) > SEVERAL // 2
    assert one(db, "SELECT dp_batch(?)", batch) == one(db, "SELECT dp_batch(?)", batch)
    summary = json.loads(one(db, "SELECT dp_plan('t', 'bounds', NULL)"))["summary"]
    assert summary.startswith("an end needs a count of about 3.3 in its bin; ")
    page = one(db, "SELECT dp_report('t')")
    assert "bounds of nearly all values" in page and "lower end" in page and "upper end" in page
    assert any(release["kind"] == "bounds" for release in json.loads(one(db, "SELECT dp_certificate()"))["releases"])
    assert one(db, "SELECT dp_verify()") == "ok"
    for option in ("clip", "lo", "bins", "grid", "keys"):
        assert "unknown option" in error_of(db, ASK, "t", json.dumps({option: 1}))


@pytest.mark.parametrize("sign", [1, -1])
def test_ends_that_are_cut_say_so(sign):
    """The bins end at 2^128 and begin at 2^-128. An end in the last bin says that values may lie beyond it, and no other end does."""
    db = open_ledger({"t": 1.0})
    sizes = [2.0 ** 127, 2.0 ** 127 * 1.5, 1e39, 1e60, 1e300, 1.0, 2.0 ** -127 * 1.1, 2.0 ** -129, 1e-60, 1e-300]
    seen = 0
    for number, size in enumerate(sizes):
        fill(db, [Row(None, sign * size, None, unit) for unit in range(300)])
        one(db, ASK, "t", f"n{number}")
        found = db.execute("SELECT value, display, figure FROM dp_value WHERE release = ? ORDER BY abs(value)", (f"n{number}",)).fetchall()
        if [value for value, *_ in found] != sorted(exponent_ends(exponent_bin(sign * size)), key=abs):  # a false end has probability 1e-3
            continue
        assert [words.endswith(" or more" if sign > 0 else " or less") for _, words, _ in found] == [False, size > 2.0 ** 127], (size, found)
        assert all("in size from 2.9e-39 to 3.4e+38" in words for *_, words in found)
        seen += 1
    assert seen > 4


def test_a_batch_does_not_carry_bounds_outward():
    """A batch that holds published bounds refuses to use them where an outer tier would see their effect."""
    db = open_ledger({"inner": 1.0, "middle": 0.5, "outer": 5e-5})
    fill(db, [Row(None, 100 + i % 700, None, i // 2) for i in range(20000)] + [Row(None, 90000, None, i) for i in range(20)])

    def element(kind, name, tier="inner", outward=(), **options):
        return {"tier": tier, "kind": kind, "sql": "SELECT x FROM t", "options": {"name": name, **options}, "diffuse": list(outward)}

    bounds = element("bounds", "b")
    while json.loads(one(db, "SELECT dp_batch(?)", json.dumps([bounds])))[0]["answer"][1] != 131072:  # a false end has probability 1e-3
        one(db, "SELECT dp_discard('b')")
    charged = one(db, "SELECT count(*) FROM dp_charge")
    for use in (element("sum", "s", "outer", clip=131072), element("sum", "s", clip=131072, outward=["outer"]),
                element("sum", "s", clip=131072, outward=["middle", "outer"]), element("avg", "s", "middle", lo=0, hi=131072),
                element("avg", "s", "outer", lo=-131072, hi=1)):
        for batch in ([bounds, use], [use, bounds]):
            message = error_of(db, "SELECT dp_batch(?)", json.dumps(batch))
            assert "from the bounds 'b' at tier 'inner', but 's' is published at tier " in message
    assert one(db, "SELECT count(*) FROM dp_charge") == charged
    one(db, "SELECT dp_diffuse('b', 'middle')")
    allowed = [element("sum", "at the tier", clip=131072), element("count", "one row of each", "outer", clip=1), element("sum", "another", "outer", clip=131071)]
    if "131072" in one(db, "SELECT group_concat(CAST(value AS INTEGER)) FROM dp_value WHERE tier = 'middle'"):
        allowed.append(element("sum", "after diffusion", "middle", clip=131072))
    assert len(json.loads(one(db, "SELECT dp_batch(?)", json.dumps([bounds, *allowed])))) == len(allowed) + 1
    assert one(db, "SELECT dp_verify()") == "ok"
