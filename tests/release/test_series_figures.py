"""Tests of series (running totals): labels, figures, spans, charges, and the answer to every event. The tests compare with
series_reference.py, which uses big integers, dense linear algebra and a plain loop."""

import json
import math
import random

import numpy
import pytest

import series_reference as reference
from conftest import make_ledger, refused, strict_json
from noise_helpers import connect, one, quick_path, record
from series_helpers import (EXACT, KEYS, YEAR, append, clock_of, declare, insert, options, question, release_row,
                            rows_of, history, spans, start, total_key)

pytestmark = pytest.mark.alarm(1e-9)  # figures are compared at nine standard deviations


def people(seed, labels, units=40, most=5):
    """Returns rows of persons who come often or seldom, in any period and ward."""
    rng = random.Random(seed)
    rows = []
    for unit in range(units):
        for _ in range(rng.choice([1, 2, most, 4 * most])):
            rows.append((unit, rng.choice(labels), rng.choice(KEYS), rng.choice([1.0, 2.5, -1.25, 7.0])))
    rng.shuffle(rows)
    return rows


# ---- labels -------------------------------------------------------------------------------------------------------------

FORMS = ["2019/2025", "2019-Q3/2021-Q2", "2019-11/2020-03", "2020-02-27/2020-03-02", "2020-W52/2021-W02", "2015-W53/2016-W01",
         "2019-12-30/2020-01-02", "2020-06/2020-06", ["b", "a", "Ä'", '"q"', "2020-01"]]


@pytest.mark.parametrize("periods", FORMS, ids=str)
def test_labels(periods):
    """The last append publishes every label of the list in its order, and the totals from the first period on."""
    labels = reference.labels(periods)
    db = start(":memory:", [(i, label, "north", 1.0) for i, label in enumerate(labels)], EXACT)
    assert declare(db, "exact", periods=periods) is None
    append(db, labels[-1])
    found = rows_of(db, "exact")
    assert set(found) - {total_key(labels, 0)} == set(labels) | {total_key(labels, t) for t in range(1, len(labels))}
    for t, label in enumerate(labels):
        assert abs(found[label][0] - 1) < 9 * found[label][1]
        if t:
            assert abs(found[total_key(labels, t)][0] - t - 1) < 9 * found[total_key(labels, t)][1]


WRONG = ["2026-13/2026-14", "2026-00/2026-02", "2026-Q5/2027-Q1", "2026-Q0/2026-Q1", "2025-W53/2026-W01", "2026-W00/2026-W02",
         "2026-02-29/2026-03-01", "2026-12/2026-01", "2026-01/2026-Q2", "2026-01", "2026-01/", "/2026-01", "2026-1/2026-2", "2026-01/2026-02/2026-03",
         " 2026-01/2026-02", "0001-01-01/2026-01-01", "", [], ["a", "a"], ["a", 1], ["a", None], [["a"]], ["a", ""], 12, None, True, {"first": "2026-01"},
         [str(i) for i in range(4097)]]


@pytest.mark.parametrize("periods", WRONG, ids=lambda p: str(p)[:30])
def test_wrong_periods_are_refused(periods):
    db = start()
    message = refused(db, "SELECT dp_release('inner', 'count', ?, ?)", question("count"), options("count", periods))
    assert "periods" in message
    assert one(db, "SELECT count(*) FROM dp_release") == one(db, "SELECT count(*) FROM dp_charge") == 0


def test_the_longest_series_is_accepted():
    """4096 periods can be declared, and the first few appended without waiting for the rest."""
    labels = [str(i) for i in range(4096)]
    db = start(":memory:", [(1, "0", "north", 1.0), (2, "2", "north", 1.0)], EXACT)
    declare(db, "exact", periods=labels)
    append(db, "2")
    found = rows_of(db, "exact")
    assert abs(found["0/2"][0] - 2) < 9 * found["0/2"][1] and abs(found["1"][0]) < 9 * found["1"][1]


# ---- figures ------------------------------------------------------------------------------------------------------------

KINDS = [("count", 12), ("count", 3), ("count_distinct", 1), ("count_distinct", 4), ("sum", 9.5), ("group_count", 4), ("group_sum", 7.25)]


@pytest.mark.parametrize("count", [1, 2, 5, 12])
@pytest.mark.parametrize("kind, clip", KINDS)
def test_figures_are_those_of_a_plain_loop(kind, clip, count):
    """With nearly no noise, every period is the sum of what units may still count, in order. Many units use up their allowance. Every
    span is the sum of its periods, with the stddev of the dense reading."""
    labels = YEAR[:count]
    rows = people(f"{kind} {clip} {count}", labels)
    with quick_path() as path:
        db = start(path, rows, EXACT)
        declare(db, "exact", kind, labels, clip=clip)
        for t in sorted({0, count // 2, count - 1}):
            append(db, labels[t])
        keys = KEYS if kind.startswith("group") else [None]
        units = [history(rows, labels, kind, unit) for unit in {row[0] for row in rows}]
        want = reference.sums(units, count, len(keys), clip)
        is_bound = not numpy.allclose(want, reference.sums(units, count, len(keys), 1e9))
        assert is_bound or (kind == "count_distinct" and count <= clip)
        one_draw = math.sqrt(clock_of(path, "exact")) * 2.0 ** release_row(path)["granularity"]
        found = rows_of(db, "exact")
        for j, key in enumerate(keys):
            for t, label in enumerate(labels):
                value, stddev, low, high = found[reference.key_of(label, key)]
                assert stddev == pytest.approx(one_draw * reference.spread(count, t, t), rel=1e-9)
                assert abs(value - want[t, j]) < 9 * stddev and low < value < high
                if t:
                    value, stddev, _, _ = found[total_key(labels, t, key)]
                    assert stddev == pytest.approx(one_draw * reference.spread(count, 0, t), rel=1e-9)
                    assert abs(value - want[:t + 1, j].sum()) < 9 * stddev
        for first in range(count):
            for last in range(first, count):
                read = spans(db, "exact", labels[first], labels[last])
                assert len(read) == len(keys)
                for j, (value, stddev, low, high) in enumerate(read.values()):
                    parts = math.fsum(found[reference.key_of(labels[t], keys[j])][0] for t in range(first, last + 1))
                    assert value == pytest.approx(parts, abs=1e-9 * (1 + abs(want).max() * count))
                    assert stddev == pytest.approx(one_draw * reference.spread(count, first, last), rel=1e-9)
                    assert (high - low) / 2 == pytest.approx(1.959963984540054 * stddev, rel=1e-6)
        assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("count", [12, 52])
def test_variances_have_twelve_digits(count):
    """The stddev of every period and total is exactly that of the reading, from fractions. It is rounded up at the twelfth digit."""
    labels = [str(i) for i in range(count)]
    with quick_path() as path:
        db = start(path)
        declare(db, "inner", periods=labels)
        append(db, labels[-1])
        one_draw = math.sqrt(clock_of(path, "inner")) * 2.0 ** release_row(path)["granularity"]
        found = rows_of(db, "inner")
        for t in (0, 1, count // 2, count - 2, count - 1):
            assert found[labels[t]][1] == pytest.approx(one_draw * reference.exact_spread(count, t, t), rel=3e-12)
            if t:
                assert found[total_key(labels, t)][1] == pytest.approx(one_draw * reference.exact_spread(count, 0, t), rel=3e-12)


def test_figures_of_known_series():
    """Largest and root mean square standard deviation of totals and periods, in units of one release of the whole, as published for this
    mechanism."""
    for count, total, total_rms, period, period_rms in ((12, 1.70, 1.63, 1.51, 1.40), (52, 2.15, 2.06, 1.71, 1.60)):
        labels = [str(i) for i in range(count)]
        db = start(":memory:", (), (("inner", 0.5),))
        declare(db, "inner", periods=labels, clip=1)
        append(db, labels[-1])
        found = rows_of(db, "inner")
        periods = numpy.array([found[label][1] for label in labels])
        totals = numpy.array([periods[0]] + [found[total_key(labels, t)][1] for t in range(1, count)])
        for figures, largest, rms in ((totals, total, total_rms), (periods, period, period_rms)):
            assert figures.max() == pytest.approx(largest, abs=0.006)
            assert math.sqrt((figures ** 2).mean()) == pytest.approx(rms, abs=0.006)


def test_periods_add_up_and_earlier_rows_never_change():
    """Running totals are the sums of periods at every tier. An append leaves every earlier row as it was, to the last bit."""
    db = start(":memory:", people(1, YEAR))
    declare(db, "inner", "group_sum", clip=5)
    one(db, "SELECT dp_diffuse('s', 'outer')")
    before = {}
    for t in (0, 1, 4, 10, 11):
        append(db, YEAR[t])
        for tier in ("inner", "outer"):
            found = rows_of(db, tier)
            shown = dict(db.execute("SELECT key, display || figure FROM dp_value WHERE tier = ?", (tier,)))
            for key in KEYS:
                running = 0.0
                for i in range(t + 1):
                    running += found[reference.key_of(YEAR[i], key)][0]
                    if i:
                        assert found[total_key(YEAR, i, key)][0] == pytest.approx(running, abs=1e-9 * 1000)
            assert len(found) in ((2 * t + 1) * len(KEYS), (2 * t + 2) * len(KEYS))
            for key, row in before.get(tier, {}).items():
                assert (found[key], shown[key]) == row, key
            before[tier] = {key: (row, shown[key]) for key, row in found.items()}


def test_spans_of_a_length():
    """dp_span(release, tier, n) reads every n periods that follow each other, of those that were appended, in their order."""
    db = start(":memory:", people(2, YEAR))
    declare(db, "inner", "group_count", clip=5)
    append(db, YEAR[6])
    for length in (1, 3, 7):
        want = {}
        for first in range(8 - length):
            want.update(spans(db, "inner", YEAR[first], YEAR[first + length - 1]))
        found = spans(db, "inner", length)
        assert list(found) == list(want) and len(found) == (8 - length) * len(KEYS)
        for key, row in found.items():
            assert row == pytest.approx(want[key], rel=1e-13, abs=1e-13 * row[1])
        assert spans(db, "inner", float(length)) == found  # some hosts bind all numbers as REAL
    assert {reference.key_of(label, key): rows_of(db, "inner")[reference.key_of(label, key)] for label in YEAR[:7] for key in KEYS} == spans(db, "inner", 1)
    for arguments in ((0,), (-1,), (2.5,), (None,), (YEAR[7], YEAR[8]), (YEAR[3], YEAR[2]), ("nothing", YEAR[2]), (YEAR[0], None)):
        refused(db, f"SELECT * FROM dp_span('s', 'inner'{', ?' * len(arguments)})", *arguments)
    for arguments in (("t", "inner", 1), ("s", "outer", 1), ("s", "nobody", 1)):
        refused(db, "SELECT * FROM dp_span(?, ?, ?)", *arguments)


def test_intervals_of_any_span():
    """dp_interval takes the keys of dp_value and any other span, at any confidence."""
    db = start(":memory:", people(3, YEAR))
    declare(db, "inner", "group_count", clip=5)
    declare(db, "inner", "count", name="all")
    append(db, YEAR[6])
    append(db, YEAR[6], "all")
    for name, key in (("s", "west"), ("all", None)):
        for first, last in ((0, 0), (0, 5), (2, 4), (6, 6)):
            label = YEAR[first] if first == last else f"{YEAR[first]}/{YEAR[last]}"
            found = strict_json(one(db, "SELECT dp_interval(?, 'inner', ?, 0.95)", name, reference.key_of(label, key)))
            (read,) = [row for k, row in spans(db, "inner", YEAR[first], YEAR[last], name).items() if key is None or key in k]
            assert found == pytest.approx(read[2:], rel=1e-9)
            wide = strict_json(one(db, "SELECT dp_interval(?, 'inner', ?, 0.99)", name, reference.key_of(label, key)))
            assert (wide[1] - wide[0]) / (found[1] - found[0]) == pytest.approx(2.5758293 / 1.9599640, rel=1e-6)
    for key in ("p8", "p3/p2", "p1/p8", "p1/", "nothing", None):
        refused(db, "SELECT dp_interval('all', 'inner', ?, 0.95)", key)


# ---- averages -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["avg", "group_avg"])
def test_averages_over_spans(kind):
    """The average over a span is that of all of its rows, not the mean of averages; with little noise it is the exact one."""
    rng = random.Random(4)
    rows = [(unit, YEAR[t], rng.choice(KEYS), rng.choice([1.0, 4.0, 9.0, 10.0]) if t else 2.0)
            for unit in range(400) for t in range(12) for _ in range(1 + 3 * (t == 0)) if rng.random() < 0.5]
    db = start(":memory:", rows, EXACT)
    declare(db, "exact", kind, clip=40)
    append(db, YEAR[-1])
    for key in KEYS if kind == "group_avg" else [None]:
        mine = [row for row in rows if key in (None, row[2])]
        for first, last in ((0, 0), (3, 3), (0, 1), (2, 7), (0, 11)):
            exact = numpy.mean([row[3] for row in mine if first <= YEAR.index(row[1]) <= last])
            (value, stddev, low, high), = [row for k, row in spans(db, "exact", YEAR[first], YEAR[last]).items() if key is None or key in k]
            assert abs(value - exact) < 9 * stddev and stddev < 0.05 and low <= value <= high
            if first == 0 and last:
                assert rows_of(db, "exact")[total_key(YEAR, last, key)] == (value, stddev, low, high)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("kind, clip", [("avg", 1), ("avg", 3), ("group_avg", 1), ("group_avg", 2)])
def test_a_value_in_the_middle_counts_no_more_rows(kind, clip, mechanism):
    """Each unit has a row in each of six periods, half of them with the value 50 and half with 100. Each counts in its first `clip`
    periods, although the vector of a row in the middle of [0, 100] is shorter."""
    rows = [(unit, YEAR[t], "north", 50.0 + 50 * (unit % 2)) for unit in range(600) for t in range(6)]
    db = start(":memory:", rows, (("exact", 900.0),))
    declare(db, "exact", kind, clip=clip, lo=0, hi=100, mechanism=mechanism, diagnose=True, **({"keys": ["north"]} if kind == "group_avg" else {}))
    append(db, YEAR[5])
    found, key = rows_of(db, "exact"), "north" if kind == "group_avg" else None
    for t in range(clip):
        assert found[reference.key_of(YEAR[t], key)][0] == pytest.approx(75, abs=0.2)
    value, _, low, high = found[total_key(YEAR, 5, key)]
    assert value == pytest.approx(75, abs=0.1)
    low, high = found[reference.key_of(YEAR[clip], key)][2:]
    assert high - low > 5  # nobody is left to count


def test_rounding_does_not_make_a_unit_clipped():
    """Ends of the range have vectors of an irrational length. Twelve rows fit into clip 12 all the same."""
    rows = [(unit, YEAR[t], "north", [0.0, 10.0, 5.0, 3.3][unit % 4]) for unit in range(400) for t in range(12)]
    for clip, share in ((12, 0), (11, 1)):
        db = start(":memory:", rows, (("exact", 900.0),))
        declare(db, "exact", "avg", clip=clip, lo=0, hi=10, diagnose=True)
        append(db, YEAR[11])
        assert strict_json(one(db, "SELECT dp_clipping('s', 'exact')"))["share"] == pytest.approx(share, abs=0.05)


def test_intervals_of_averages_cover():
    """Averages of many series lie within their 95% intervals; the interval of a period with few rows is the whole range."""
    rows = [(unit, YEAR[t % 6], KEYS[unit % 3], float(unit % 11)) for unit in range(900) for t in range(6)]
    db = start(":memory:", rows, (("inner", 0.05),))
    declare(db, "inner", "group_avg", clip=6, lo=0, hi=10)
    append(db, YEAR[11])
    inside = 0
    for key in KEYS:
        exact = numpy.mean([row[3] for row in rows if row[2] == key])
        for t in range(6):
            _, _, low, high = rows_of(db, "inner")[reference.key_of(YEAR[t], key)]
            inside += low <= numpy.mean([row[3] for row in rows if row[2] == key and row[1] == YEAR[t]]) <= high
        value, _, low, high = rows_of(db, "inner")[total_key(YEAR, 11, key)]
        assert 0 <= low <= value <= high <= 10 and high - low < 3 and abs(value - exact) < 3
        _, _, low, high = rows_of(db, "inner")[reference.key_of(YEAR[11], key)]
        assert high - low > 1.5  # nobody came; 11 over a noisy number of rows that is over 7 standard deviations has probability 1e-12
    assert inside >= 7  # each of 18 intervals covers with probability 0.95 at least: fewer than 7 have probability 1e-11


# ---- charges ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("kind, clip", KINDS)
def test_lattice_and_charge(kind, clip, adjacency):
    """Granularity and shift are those of one release with this clip. Sensitivity, variance and charge follow the contract."""
    rate, count = 0.37, 12
    with quick_path() as path:
        db = start(path, people(5, YEAR), (("inner", rate), ("outer", 0.01)), adjacency)
        declare(db, "inner", kind, clip=clip)
        if kind != "count_distinct":
            single = json.loads(options(kind, None, name="one", clip=clip))
            del single["periods"]
            one(db, "SELECT dp_release('inner', ?, ?, ?)", kind, question(kind).replace("label, ", ""), json.dumps(single))
        append(db, YEAR[2])
        row = release_row(path)
        fine = row["granularity"] - row["shift"]
        if kind != "count_distinct":
            assert fine == release_row(path, "one")["granularity"] - release_row(path, "one")["shift"]
        bound = math.ceil(clip * 2.0 ** -fine)
        counts = reference.count_spread(count) ** 2
        square = 1 if adjacency == "add-remove" else 4 if "sum" in kind else 2 if kind.startswith("group") else counts
        distance = math.ceil(bound * square ** 0.5)
        draws = count * (len(KEYS) if kind.startswith("group") else 1)
        s = reference.sensitivity(distance, row["shift"], draws)
        if adjacency == "add-remove":
            assert row["sensitivity"] == s
        assert s <= row["sensitivity"] <= s + 2
        s = row["sensitivity"]
        assert clock_of(path, "inner") == reference.variance(s, rate)
        charges = db.execute("SELECT tier, rate FROM dp_charge WHERE release = 's'").fetchall()
        assert len(charges) == 1 and charges[0][0] == "inner"
        least = s * s / (2 * clock_of(path, "inner"))
        assert least <= charges[0][1] <= min(rate, s * s / (2 * (clock_of(path, "inner") - 1 / 12)) * (1 + 1e-12))
        assert one(db, "SELECT dp_verify()") == "ok"


def test_one_charge_for_each_tier_and_none_for_appends():
    """A budget of one release pays for the whole year. Appends leave charges and budgets as they are, also when nothing is left."""
    db = start(":memory:", people(6, YEAR), ())
    for tier, epsilon in (("inner", 4), ("outer", 1)):
        one(db, "SELECT dp_tier(?, dp_rate(?, 1e-6, 1), ?, 1e-6, 'gdp')", tier, epsilon, epsilon)
    declare(db, "inner", "group_count", clip=5)
    one(db, "SELECT dp_diffuse('s', 'outer')")
    books = [db.execute(f"SELECT * FROM {table}").fetchall() for table in ("dp_charge", "dp_budget")]
    assert [row for row in db.execute("SELECT tier, releases, releases_left FROM dp_budget")] == [("inner", 1, 0), ("outer", 1, 0)]
    assert [row for row in db.execute("SELECT tier FROM dp_charge ORDER BY id")] == [("inner",), ("outer",)]
    assert "would exceed its budget" in refused(db, "SELECT dp_release('outer', 'count', 'SELECT 1 FROM visit', '{\"name\":\"x\",\"clip\":1}')")
    for label in YEAR:
        append(db, label)
        assert [db.execute(f"SELECT * FROM {table}").fetchall() for table in ("dp_charge", "dp_budget")] == books
    assert one(db, "SELECT dp_verify()") == "ok"
    publications = db.execute("SELECT tier FROM dp_publication").fetchall()
    assert sorted(publications) == [("inner",), ("outer",)]


def test_weight_and_diagnose():
    """A quarter of the weight has twice the noise. With diagnose, dp_clipping says how many persons have been cut so far."""
    with quick_path() as path:
        rows = [(unit, label, "north", 1.0) for unit in range(300) for label in YEAR[:1 + unit % 4]]
        db = start(path, rows, EXACT)
        declare(db, "exact", clip=2, weight=0.25)
        declare(db, "exact", clip=2, name="whole")
        declare(db, "exact", clip=2, name="seen", diagnose=True)
        for t in range(4):
            for name in ("s", "whole", "seen"):
                append(db, YEAR[t], name)
            share = strict_json(one(db, "SELECT dp_clipping('seen', 'exact')"))["share"]
            assert share == pytest.approx(0 if t < 2 else 0.5, abs=0.02)  # half come in more than two periods
        stddev = {name: rows_of(db, "exact", name)[YEAR[0]][1] for name in ("s", "whole", "seen")}
        assert stddev["s"] / stddev["whole"] == pytest.approx(2, rel=1e-4)
        assert 1 < stddev["seen"] / stddev["whole"] < 1.06
        row, plain = release_row(path, "seen"), release_row(path, "whole")
        fine = row["granularity"] - row["shift"]
        bound = math.ceil(2 * 2.0 ** -fine)
        s = reference.sensitivity(math.ceil(bound * (1 + 2 * 0.22 ** 2) ** 0.5 * (1 - 1e-12)), row["shift"], 12 * 3)
        assert s <= row["sensitivity"] <= s + 1 and plain["sensitivity"] < s
        assert len(rows_of(db, "exact", "seen")) == len(rows_of(db, "exact", "whole"))


def test_pure_tiers_have_independent_periods():
    """Under pure epsilon each period has Laplace noise of its own, and the totals are sums: the stddev grows as the root of t. The
    allowance is in the sum norm, and the charge covers T·cells - 1 roundings."""
    with quick_path() as path:
        labels, rows = YEAR[:6], people(7, YEAR[:6])
        db = start(path, rows, (("press", 10.0),), accountant="pure")
        one(db, "SELECT dp_tier('exact', 1000, 1e9, 0, 'pure')")
        for tier in ("exact", "press"):
            declare(db, tier, "group_count", labels, clip=4, name=tier)
            append(db, labels[-1], tier)
        units = [history(rows, labels, "group_count", unit) for unit in {row[0] for row in rows}]
        want = reference.sums(units, 6, 3, 4, in_sum_norm=True)
        found = rows_of(db, "exact", "exact")
        for j, key in enumerate(KEYS):
            single = found[reference.key_of(labels[0], key)][1]
            for t in range(6):
                value, stddev, _, _ = found[reference.key_of(labels[t], key)]
                assert stddev == pytest.approx(single, rel=1e-9) and abs(value - want[t, j]) < 45 * stddev
                if t:
                    value, stddev, _, _ = found[total_key(labels, t, key)]
                    assert stddev == pytest.approx(single * math.sqrt(t + 1), rel=1e-9)
                    assert abs(value - want[:t + 1, j].sum()) < 60 * single
        row = release_row(path, "press")
        bound = math.ceil(4 * 2.0 ** (row["shift"] - row["granularity"]))
        assert row["sensitivity"] == reference.sensitivity(bound, row["shift"], 18, is_l1=True)
        assert one(db, "SELECT dp_verify()") == "ok"


# ---- events -------------------------------------------------------------------------------------------------------------

def test_a_stored_figure_is_replayed():
    """An append that was made already, and earlier ones, give the stored figure and read nothing, also after the data changed."""
    db = start(":memory:", people(8, YEAR))
    declare(db)
    figures = {label: append(db, label) for label in YEAR[:4]}
    assert figures == {label: rows_of(db, "inner")[label][0] for label in YEAR[:4]}
    db.execute("DELETE FROM visit")
    before = rows_of(db, "inner")
    assert {label: append(db, label) for label in YEAR[:4]} == figures
    assert db.execute("SELECT dp_append('s', 'p4') UNION ALL SELECT dp_append('s', 'p4')").fetchall() == [(figures["p4"],)] * 2
    db.execute("ALTER TABLE visit RENAME TO gone")
    assert append(db, "p2") == figures["p2"] and rows_of(db, "inner") == before
    assert isinstance(refused(db, "SELECT dp_append('s', 'p5')"), str) and rows_of(db, "inner") == before


def test_groups_return_an_object():
    db = start(":memory:", people(9, YEAR))
    declare(db, "inner", "group_count", clip=3)
    found = strict_json(append(db, "p3"))
    assert found == {key: pytest.approx(rows_of(db, "inner")[reference.key_of("p3", key)][0]) for key in KEYS}


def test_a_skipped_period_comes_with_the_next_one():
    """One append of three periods publishes what three appends publish, but for the noise."""
    rows = people(10, YEAR)
    found = []
    for steps in (("p1", "p2", "p3"), ("p3",)):
        db = start(":memory:", rows, EXACT)
        declare(db, "exact", clip=3)
        for label in steps:
            append(db, label)
        found.append(rows_of(db, "exact"))
    assert found[0].keys() == found[1].keys()
    assert all(abs(found[0][key][0] - found[1][key][0]) < 9 * 1.5 * found[0][key][1] for key in found[0])


def test_a_period_that_is_not_over(clock):
    """Calendar periods end at midnight UTC after their last day."""
    cases = [("2026-01/2026-12", "2026-03", "2026-03-31"), ("2026/2027", "2026", "2026-12-31"), ("2026-Q1/2026-Q4", "2026-Q2", "2026-06-30"),
             ("2026-W01/2026-W20", "2026-W07", "2026-02-15"), ("2026-02-01/2026-03-31", "2026-02-28", "2026-02-28")]
    for periods, label, last in cases:
        db = start()
        declare(db, periods=periods)
        clock.set(f"{last} 23:59:59")
        assert f"{label} ends on {last} (append it afterwards)" in refused(db, "SELECT dp_append('s', ?)", label)
        assert rows_of(db, "inner") == {}
        following = reference.datetime.date.fromisoformat(last) + reference.datetime.timedelta(1)
        clock.set(f"{following} 00:00:00")
        append(db, label)
        assert label in rows_of(db, "inner")


def test_after_the_last_period():
    db = start()
    declare(db, periods="2020-01/2020-03")
    append(db, "2020-03")
    assert "'s' ends with 2020-03 (declare a series for the next periods)" in refused(db, "SELECT dp_append('s', '2020-04')")
    append(db, "2020-02")


def test_labels_that_a_series_has_not():
    db = start()
    declare(db, periods="2020-01/2020-03")
    for label in ("2019-12", "2020-1", "2020-Q1", "", None, 202001, "2020-01/2020-02"):
        refused(db, "SELECT dp_append('s', ?)", label)
    refused(db, "SELECT dp_append('nothing', '2020-01')")
    one(db, "SELECT dp_release('inner', 'count', 'SELECT 1 FROM visit', '{\"name\":\"plain\",\"clip\":1}')")
    refused(db, "SELECT dp_append('plain', '2020-01')")
    refused(db, "SELECT * FROM dp_span('plain', 'inner', 1)")
    assert rows_of(db, "inner") == {}


def test_declared_again():
    """The same declaration is the same series; another text or other options are an error with the stored text."""
    db = start()
    declare(db)
    append(db, "p1")
    before = rows_of(db, "inner")
    assert declare(db) == declare(db) and rows_of(db, "inner") == before
    assert one(db, "SELECT count(*) FROM dp_charge") == 1
    message = refused(db, "SELECT dp_release('inner', 'count', 'SELECT label, 2 FROM visit', ?)", options("count", YEAR))
    assert "SELECT label, 1 FROM visit" in message
    for more in ({"clip": 3}, {"periods": YEAR[:6]}, {"diagnose": True}, {"weight": 0.5}):
        text = options("count", **{"periods": YEAR, **more})
        assert "exists with other parameters" in refused(db, "SELECT dp_release('inner', 'count', ?, ?)", question("count"), text)


def test_a_question_that_fails_leaves_nothing():
    """A question that cannot run stores nothing. The next append goes on where the series was."""
    db = start(":memory:", people(11, YEAR))
    declare(db)
    append(db, "p2")
    before = rows_of(db, "inner")
    db.execute("ALTER TABLE visit RENAME TO away")
    refused(db, "SELECT dp_append('s', 'p4')")
    db.execute("ALTER TABLE away RENAME TO visit")
    assert rows_of(db, "inner") == before
    append(db, "p4")
    assert one(db, "SELECT dp_verify()") == "ok" and len(rows_of(db, "inner")) > len(before)


def test_rollback_of_the_host():
    """A ROLLBACK of the host takes back neither a declaration nor an append. The question reads the changes of an open transaction."""
    db = start(":memory:", (), EXACT)
    db.execute("BEGIN")
    declare(db, "exact")
    insert(db, [(1, "p1", "north", 1.0), (2, "p1", "north", 1.0)])
    figure = append(db, "p1")
    db.execute("ROLLBACK")
    assert round(figure) == 2 and append(db, "p1") == figure
    assert one(db, "SELECT count(*) FROM dp_charge") == 1 and one(db, "SELECT count(*) FROM visit") == 0


def test_the_budget_period_bounds_the_series(clock):
    """A series must end within the current budget period of every tier that pays."""
    clock.set("2026-05-10 12:00:00")
    db = start(":memory:", (), ())
    one(db, "SELECT dp_tier('clinic', 0.5, 100, 1e-6, '{\"period\":\"year\"}')")
    one(db, "SELECT dp_tier('public', 0.05, 2, 1e-6, '{\"period\":\"month\"}')")
    refused(db, "SELECT dp_release('clinic', 'count', ?, ?)", question("count"), options("count", "2026-01/2027-01"))
    refused(db, "SELECT dp_release('clinic', 'count', ?, ?)", question("count"), options("count", "2026-W01/2026-W53"))  # ends on 2027-01-03
    for periods in (["2027-01", "2026-01"], ["9999-W52"]):
        refused(db, "SELECT dp_release('clinic', 'count', ?, ?)", question("count"), options("count", periods))
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    declare(db, "clinic", periods="2026-01/2026-12")
    refused(db, "SELECT dp_diffuse('s', 'public')")
    refused(db, "SELECT dp_release('public', 'count', ?, ?)", question("count"), options("count", "2026-01/2026-06", name="x"))
    declare(db, "public", periods="2026-05-01/2026-05-31", name="may")
    clock.set("2026-05-11 12:00:00")
    append(db, "2026-05-10", "may")
    assert one(db, "SELECT count(*) FROM dp_charge WHERE release = 's'") == 1


REFUSED = [("median", {"lo": 0, "hi": 9}), ("var", {"lo": 0, "hi": 9}), ("stddev", {"lo": 0, "hi": 9}), ("histogram", {"lo": 0, "hi": 9, "bins": 3}),
           ("bounds", {}), ("ou_count", {"radius": 10}), ("vec_sum", {"dim": 2}), ("group_count", {"keys": None}),
           ("group_count", {"max_groups": 3, "keys": None}), ("group_count_distinct", {}), ("choice", {"candidates": ["a"]})]


@pytest.mark.parametrize("kind, more", REFUSED)
def test_other_kinds_are_refused(kind, more):
    db = start(":memory:", people(12, YEAR))
    text = {**json.loads(options(kind, YEAR)), **more}
    refused(db, "SELECT dp_release('inner', ?, 'SELECT label, ward, x FROM visit', ?)", kind, json.dumps({k: v for k, v in text.items() if v is not None}))
    assert one(db, "SELECT count(*) FROM dp_release") == 0


def test_what_this_version_refuses():
    db = start(":memory:", people(13, YEAR))
    declare(db, "outer", "group_count")
    append(db, "p2")
    refused(db, "SELECT dp_release('inner', 'group_count', ?, ?)", question("group_count"), options("group_count", YEAR, refine=True))
    kernel = json.dumps([[key, "all", 1] for key in KEYS])
    refused(db, "SELECT dp_mix('s', 'outer', ?)", kernel)
    refused(db, "SELECT dp_partial('count', ?, ?)", question("count"), json.dumps({"clip": 3, "periods": YEAR}))
    refused(db, "SELECT dp_count('inner', x, 1, ?) FROM visit", json.dumps({"periods": YEAR}))
    refused(db, "SELECT dp_release('inner', 'count', ?, ?)", question("count"), json.dumps({"periods": YEAR, "clip": 1}))  # no name
    refused(db, "SELECT dp_release('inner', 'count', ?, ?)", question("count"), json.dumps({"periods": YEAR, "name": "c"}))  # no clip
    refused(db, "SELECT dp_release('inner', 'group_count', ?, ?)", question("group_count"), options("group_count", YEAR, ways=1, name="w"))
    assert one(db, "SELECT count(*) FROM dp_release") == 1


def test_a_ledger_of_rows_has_no_series():
    db = connect()
    db.execute("CREATE TABLE visit(person, label, ward, x)")
    make_ledger(db, '{"protects":"row"}', "visit")
    one(db, "SELECT dp_tier('inner', 1, 1e9, 1e-6)")
    refused(db, "SELECT dp_release('inner', 'count', ?, ?)", question("count"), options("count", YEAR))
    assert one(db, "SELECT count(*) FROM dp_release") == 0


def test_rows_with_other_labels_count_nothing():
    """NULL, labels that are not in the list, other cases and labels with blanks count nothing, and spend nothing of the clip."""
    db = start(":memory:", [(1, None, "north", 1.0), (1, "p13", "north", 1.0), (1, "P1", "north", 1.0), (1, "p1 ", "north", 1.0), (1, 1, "north", 1.0),
                            (1, b"p1", "north", 1.0)] * 5 + [(1, "p1", "north", 1.0), (2, "p2", "north", 1.0), (1, "p2", "north", 1.0)], EXACT)
    declare(db, "exact", clip=2)
    append(db, "p12")
    assert [round(rows_of(db, "exact")[label][0]) for label in YEAR] == [1, 2] + [0] * 10


def test_labels_that_are_numbers():
    """A label of the question is compared as a text: 2020 and '2020' are one period."""
    db = start(":memory:", [(1, 2020, "north", 1.0), (2, "2021", "north", 1.0), (3, 2021.0, "north", 1.0)], EXACT)
    declare(db, "exact", periods="2019/2021", clip=2)
    append(db, "2021")
    assert [round(rows_of(db, "exact")[label][0]) for label in ("2019", "2020", "2021")] == [0, 1, 2]


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("rest", ["", ", 1", ", NULL, person", " FROM visit UNION ALL SELECT label, 'x'"])
def test_counts_of_units_ignore_further_columns(rest, threads, tmp_path):
    """A unit counts in the periods that its rows name, whatever else they give, as in a count of units without periods."""
    db = start(tmp_path / "a.db", [(i % 5, YEAR[i % 3], "north", 1.0) for i in range(20)], EXACT)
    db.execute(f"PRAGMA threads = {threads}")
    sql = f"SELECT label{', 1' if 'UNION' in rest else ''}{rest} FROM visit"
    declare(db, "exact", "count_distinct", sql=sql, clip=2)
    append(db, "p12")
    assert [round(rows_of(db, "exact")[label][0]) for label in YEAR] == [5, 5] + [0] * 10


def test_late_rows_count_nothing_and_the_other_label_counts_them():
    """A row that comes after its period was published counts nothing, unless the question labels it by the later of event and recording."""
    late = "SELECT max(label, x), 1 FROM visit"
    db = start(":memory:", [(1, "2020-01", "north", "2020-01")], EXACT)
    declare(db, "exact", periods="2020-01/2020-03")
    declare(db, "exact", periods="2020-01/2020-03", sql=late, name="late")
    for name in ("s", "late"):
        append(db, "2020-01", name)
    insert(db, [(2, "2020-01", "north", "2020-02"), (3, "2020-02", "north", "2020-02")])
    for name, second in (("s", 1), ("late", 2)):
        append(db, "2020-03", name)
        assert [round(rows_of(db, "exact", name)[label][0]) for label in ("2020-01", "2020-02", "2020-03")] == [1, second, 0]


def test_discard_ends_a_series():
    db = start(":memory:", people(14, YEAR))
    declare(db)
    append(db, "p2")
    one(db, "SELECT dp_discard('s')")
    refused(db, "SELECT dp_append('s', 'p3')")
    assert rows_of(db, "inner") == {}
    declare(db, clip=3)
    append(db, "p1")
    assert one(db, "SELECT count(*) FROM dp_charge") == 2 and one(db, "SELECT dp_verify()") == "ok"


def test_an_append_cannot_hide_in_a_view_or_trigger():
    db = start(":memory:", people(15, YEAR))
    declare(db)
    db.execute("CREATE VIEW peek AS SELECT dp_append('s', 'p1')")
    refused(db, "SELECT * FROM peek")
    assert rows_of(db, "inner") == {}


def test_certificate_and_answers():
    """The certificate describes a series without its secrets. dp_answer declares a series and shows its rows."""
    with quick_path() as path:
        db = start(path, people(16, YEAR))
        declare(db)
        append(db, "p3")
        certificate = strict_json(one(db, "SELECT dp_certificate()"))
        (found,) = [release for release in certificate["releases"] if release["name"] == "s"]
        assert found["sensitivity"] == release_row(path)["sensitivity"] and certificate["verify"] == "ok"
        assert record(db, "SELECT state, periods ->> 11 AS last FROM dp_release") == {"state": "released", "last": "p12"}


@pytest.mark.parametrize("kind, clip, words", [
    ("count", 5, "rows, at most 5 of each unit in all periods together, earliest first"),
    ("sum", 5, "sum, at most 5 up and down of each unit in all periods together, earliest first"),
    ("avg", 1, "average, values outside 0 to 10 count as 0 or 10, each unit counts once in all periods together, earliest first"),
    ("count_distinct", 1, "units, each in their first period only"),
    ("count_distinct", 3, "units of each period, added up over periods (a unit counts in their first 3 only)"),
    ("group_count", 5, "rows in each group, at most 5 of each unit in all groups and periods together, earliest first (more with several groups in one period)"),
    ("group_sum", 5, "sum in each group, at most 5 up and down of each unit in all groups and periods together, earliest first (more with several groups in one period)"),
    ("group_avg", 2, "average in each group, values outside 0 to 10 count as 0 or 10, each unit counts as at most 2 rows in all groups and periods together,"
     " earliest first (more with several groups in one period)")])
def test_figures_in_words(kind, clip, words):
    db = start()
    declare(db, "inner", kind, clip=clip)
    append(db, "p1")
    assert {figure for (figure,) in db.execute("SELECT figure FROM dp_value")} == {words}


# ---- plans and batches ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("count", [1, 2, 12, 52])
@pytest.mark.parametrize("kind", ["count", "count_distinct", "group_sum"])
def test_plan_of_a_series(kind, count):
    """A plan gives the half-widths that the noisiest period and the final total will have, and the price of one release. It changes
    nothing, and needs no name."""
    labels = [str(i) for i in range(count)]
    db = start(":memory:", (), (("inner", 0.2), ("outer", 0.05)))
    text = json.loads(options(kind, labels, clip=4))
    del text["name"]
    plan = strict_json(one(db, "SELECT dp_plan('outer', ?, NULL, ?)", kind, json.dumps(text)))
    clip = text.pop("clip")
    assert plan == strict_json(one(db, "SELECT dp_plan('outer', ?, ?, ?)", kind, clip, json.dumps(text)))
    assert one(db, "SELECT count(*) FROM dp_release") == one(db, "SELECT count(*) FROM dp_charge") == 0
    declare(db, "outer", kind, labels, clip=4)
    append(db, labels[-1])
    found = rows_of(db, "outer")
    key = KEYS[0] if kind == "group_sum" else None
    widest = max((found[reference.key_of(label, key)][3] - found[reference.key_of(label, key)][2]) / 2 for label in labels)
    total = (found[total_key(labels, count - 1, key)][3] - found[total_key(labels, count - 1, key)][2]) / 2
    assert plan["periods"] == count
    assert plan["half_width"] == pytest.approx(widest, rel=1e-9) and plan["total_half_width"] == pytest.approx(total, rel=1e-9)
    assert f"of all {count} periods" in plan["summary"]
    paid = dict(db.execute("SELECT tier, rate FROM dp_charge"))
    assert {tier["tier"]: tier["pays"] for tier in plan["tiers"]} == pytest.approx({"inner": paid.get("inner", 0), "outer": paid["outer"]})


def test_plans_for_a_half_width_and_for_averages():
    db = start(":memory:", (), (("inner", 0.2),))
    plan = strict_json(one(db, "SELECT dp_plan('inner', 'count', 4, ?)", json.dumps({"periods": YEAR, "half_width": 50})))
    assert plan["half_width"] == pytest.approx(50) and plan["weight"] < 1
    assert "half_width must be at least" in refused(db, "SELECT dp_plan('inner', 'count', 4, ?)", json.dumps({"periods": YEAR, "half_width": 1}))
    guess = {"periods": YEAR, "lo": 0, "hi": 10, "rows": 12000, "unit": "days"}
    plan = strict_json(one(db, "SELECT dp_plan('inner', 'avg', 2, ?)", json.dumps(guess)))
    ratio = 12 * reference.spread(12, 1, 1) / reference.spread(12, 0, 11)  # a twelfth of the rows
    assert plan["half_width"] / plan["total_half_width"] == pytest.approx(ratio, rel=0.05) and "days" in plan["summary"]
    refused(db, "SELECT dp_plan('inner', 'median', NULL, ?)", json.dumps({"periods": YEAR, "lo": 0, "hi": 1}))


def test_plans_compare_mechanisms_with_their_own_matrix():
    """Laplace noise has no matrix: its periods have the noise of one release, and its total is a sum."""
    db = start(":memory:", (), (("inner", 0.2),))
    plans = [strict_json(one(db, "SELECT dp_plan('inner', 'count', 4, ?)", json.dumps({"periods": YEAR, **more})))
             for more in ({}, {"mechanism": "laplace"}, {"mechanism": "gaussian"})]
    assert plans[0]["mechanisms"] == plans[1]["mechanisms"] == plans[2]["mechanisms"]
    assert plans[0]["mechanisms"]["laplace"]["half_width"] == pytest.approx(plans[1]["half_width"])
    assert plans[0]["mechanisms"]["gaussian"]["half_width"] == pytest.approx(plans[2]["half_width"])
    assert plans[1]["total_half_width"] == pytest.approx(plans[1]["half_width"] * math.sqrt(12), rel=1e-3)


def test_a_batch_declares_series():
    """dp_batch() declares series with their outer tiers, beside other releases, and finishes what it began. dp_plan() takes the same list."""
    db = start(":memory:", people(17, YEAR))
    batch = json.dumps([
        {"tier": "inner", "kind": "group_count", "sql": question("group_count"), "options": json.loads(options("group_count", YEAR, clip=3)), "diffuse": ["outer"]},
        {"tier": "inner", "kind": "count", "sql": "SELECT 1 FROM visit", "options": {"name": "plain", "clip": 1}},
        {"tier": "outer", "kind": "count_distinct", "sql": question("count_distinct"), "options": {"name": "persons", "periods": YEAR}}])
    planned = strict_json(one(db, "SELECT dp_plan(?)", batch))
    assert [plan.get("periods") for plan in planned["plans"]] == [12, None, 12]
    answers = [item["answer"] for item in json.loads(one(db, "SELECT dp_batch(?)", batch))]
    assert len(answers) == 3 and answers[0] is None and isinstance(answers[1], float) and answers[2] is None
    charges = db.execute("SELECT * FROM dp_charge").fetchall()
    paid = {tier: total for tier, total in db.execute("SELECT tier, sum(rate) FROM dp_charge GROUP BY tier")}
    assert {tier["tier"]: tier["pays"] for tier in planned["tiers"]} == pytest.approx(paid)
    append(db, "p3")
    append(db, "p3", "persons")
    assert len(rows_of(db, "outer")) == 6 * len(KEYS) and len(rows_of(db, "outer", "persons")) == 6
    assert json.loads(one(db, "SELECT dp_batch(?)", batch))[1]["answer"] == answers[1]
    assert db.execute("SELECT * FROM dp_charge").fetchall() == charges and one(db, "SELECT dp_verify()") == "ok"


def test_a_batch_that_does_not_fit_declares_nothing():
    db = start(":memory:", people(18, YEAR), ())
    one(db, "SELECT dp_tier('inner', dp_rate(1, 1e-6, 1), 1, 1e-6, 'gdp')")
    batch = json.dumps([{"tier": "inner", "kind": "count", "sql": question("count"), "options": json.loads(options("count", YEAR, name=name))} for name in "ab"])
    assert "release 1 of the batch" in refused(db, "SELECT dp_batch(?)", batch)
    assert one(db, "SELECT count(*) FROM dp_release") == one(db, "SELECT count(*) FROM dp_charge") == 0
