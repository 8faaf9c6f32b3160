"""Compares the answer of every kind with its definition, at rate 1e6, where the noise is 1/1414 of the clip.

An answer may differ from its definition only by the effect of MARGIN standard deviations of noise. There are about 10000
coordinates at 1.3e-15 each, so false alarms have probability 1.3e-11 in all.
"""

import json
import math
import random

import pytest

from kinds_reference import KINDS, Row, aggregate, answer, by_query, numbers
from kinds_tables import INF, PARAMETERS, cases, fill, random_table
from noise_helpers import one, open_ledger

pytestmark = pytest.mark.alarm(2e-11)

RATE = 1e6
def check(kind, parameters, result, rows, by_unit, adjacency):
    wanted = answer(kind, parameters, rows, by_unit, adjacency, RATE)
    got = numbers(kind, parameters, result)
    if kind == "bounds":  # the published ends may be wider: in one release of a thousand, the noise of an empty bin is above the threshold
        got = got or [(key, component, math.nan) for key, component in wanted]
        wanted = wanted or {("", 0): (-INF, INF), ("", 1): (-INF, INF)} if got else {}
    assert {(key, component) for key, component, _ in got} == set(wanted) and len(got) == len(wanted)
    if KINDS[kind].form == "object":
        assert [key for key, _, _ in got] == sorted((key for key, _ in wanted), key=str.encode)
    for key, component, value in got:
        low, high = wanted[key, component]
        assert low <= value <= high, (kind, parameters, key, component, low, value, high)


def released(db, kind, parameters, by_unit, source="t", form="query"):
    if form == "query":
        sql, arguments = by_query(kind, parameters, source=source)
    else:
        call, arguments = aggregate(kind, parameters)
        sql = f"SELECT {call} FROM {source}"
    return one(db, sql, *arguments)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("kind,protects", cases())
@pytest.mark.sample(8)
def test_every_kind_is_what_it_says(kind, protects, adjacency):
    """Compares the answers for random tables with heavy units and odd values. The rows are in random order, and the test uses
    both forms of the call."""
    rng = random.Random(f"{kind} {protects} {adjacency}")
    by_unit = protects == "unit"
    db = open_ledger({"exact": RATE}, json.dumps({"protects": protects, "adjacency": adjacency}))
    for _ in range(4):
        rows = random_table(rng)
        for parameters in PARAMETERS[kind]:
            fill(db, rows)
            for form in ("query", "aggregate"):
                check(kind, parameters, released(db, kind, parameters, by_unit, form=form), rows, by_unit, adjacency)
            rng.shuffle(rows)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(4)
def test_rows_that_reach_a_release_are_all_that_counts(kind):
    """The answer depends only on the rows that reach the release. The rows are selected by FILTER, WHERE, a join, a subquery, a
    compound SELECT or a view."""
    rng = random.Random(kind)
    db = open_ledger({"exact": RATE})
    parameters = PARAMETERS[kind][0]
    rows = random_table(rng, 30)
    fill(db, rows)
    db.execute("CREATE TABLE kept(id INTEGER PRIMARY KEY)")
    one(db, "SELECT dp_public('kept')")
    db.executemany("INSERT INTO kept VALUES (?)", [(i,) for i in range(1, len(rows) + 1) if rng.random() < 0.5])
    kept = [rows[i[0] - 1] for i in db.execute("SELECT id FROM kept ORDER BY id")]
    db.execute("CREATE VIEW w AS SELECT t.* FROM t JOIN kept ON id = t.rowid")
    call, arguments = aggregate(kind, parameters)
    for sql in (f"{call} FILTER (WHERE rowid % 3) FROM t", f"{call} FROM t WHERE rowid % 3", f"{call} FROM (SELECT * FROM t WHERE rowid % 3)"):
        some = [row for i, row in enumerate(rows, 1) if i % 3]
        check(kind, parameters, one(db, "SELECT " + sql, *arguments), some, True, "add-remove")
    check(kind, parameters, one(db, f"SELECT {call} FROM t JOIN kept ON id = t.rowid", *arguments), kept, True, "add-remove")
    for source in ("t WHERE rowid IN kept", "w", "(SELECT * FROM w ORDER BY x)", "t JOIN kept ON id = t.rowid",
                   "kept LEFT JOIN t ON id = t.rowid WHERE t.rowid IS NOT NULL",
                   "(SELECT * FROM t WHERE rowid IN kept AND rowid % 2 UNION ALL SELECT * FROM t WHERE rowid IN kept AND NOT rowid % 2)"):
        check(kind, parameters, released(db, kind, parameters, True, source), kept, True, "add-remove")


@pytest.mark.parametrize("kind,protects", cases())
@pytest.mark.sample(20)
def test_an_answer_is_what_the_ledger_stores(kind, protects):
    """The first call answers before its values are stored. A second call with the same name reads the stored values. Both return
    the same text, with almost no noise and with much noise."""
    rng = random.Random(f"{kind} {protects}")
    by_unit = protects == "unit"
    db = open_ledger({"exact": RATE, "noisy": 1e-3}, json.dumps({"protects": protects}))
    fill(db, random_table(rng))
    for number, parameters in enumerate(PARAMETERS[kind]):
        for tier in ("exact", "noisy"):
            call, arguments = aggregate(kind, {**parameters, "name": f"{tier} {number}"}, tier)
            for sql, values in ((f"SELECT {call} FROM t", arguments),
                                by_query(kind, {**parameters, "name": f"{tier} {number} by query"}, tier)):
                assert repr(one(db, sql, *values)) == repr(one(db, sql, *values))


RANGES = {"avg": (-3, 5), "var": (0, 16), "stddev": (0, 4), "median": (-4, 6), "quantile": (-4, 6), "ou_avg": (-3, 5),
          "group_avg": (-3, 5), "vec_avg": (-4, 4), "ou_var": (0, 4), "ou_stddev": (0, 1.5), "ou_quantile": (-1, 3),
          "ou_median": (-4, 6), "ou_vec_avg": (-0.5, 0.5), "ou_group_avg": (-3, 5)}


@pytest.mark.parametrize("rate", [1e6, 1e-6])
@pytest.mark.parametrize("kind,protects", cases())
@pytest.mark.sample(12)
def test_without_data_there_is_an_answer(kind, protects, rate):
    """Without rows, with NULLs alone and with one row, answers are finite and in their range, with almost no noise and with much
    noise."""
    by_unit = protects == "unit"
    db = open_ledger({"exact": rate}, json.dumps({"protects": protects}))
    parameters = PARAMETERS[kind][0]
    for rows, form in (([], "query"), ([Row(None, None, None, None)] * 3, "query"), ([Row(None, None, None, 1)], "aggregate"),
                       ([Row("a", 1.5, "[1,2,3]", 1)], "query"), ([Row("a", -INF, b"", 1)], "aggregate")):
        fill(db, rows)
        result = released(db, kind, parameters, by_unit, form=form)
        for _, _, value in numbers(kind, parameters, result):
            low, high = RANGES.get(kind, (-INF, INF))
            assert math.isfinite(value) and low <= value <= high
        if rate == RATE:
            check(kind, parameters, result, rows, by_unit, "add-remove")
    for value, stddev, low, high in db.execute("SELECT value, stddev, low, high FROM dp_value WHERE stddev IS NOT NULL"):
        assert all(map(math.isfinite, (value, stddev, low, high))) and stddev >= 0 and low <= value <= high


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(12)
def test_lattices_do_not_depend_on_data(kind):
    """The public properties of the noise are fixed before a row is read."""
    rng = random.Random(kind)
    db = open_ledger({"exact": RATE})
    for _ in range(5):
        fill(db, random_table(rng))
        released(db, kind, PARAMETERS[kind][0], True, form=rng.choice(["query", "aggregate"]))
    assert len(db.execute("SELECT DISTINCT granularity, sensitivity, dimension, clip FROM dp_release").fetchall()) == 1
    assert len(db.execute("SELECT DISTINCT clock, rate FROM dp_publication").fetchall()) == 1


def test_options_may_be_given_in_place_of_nothing():
    """clip is an option of averages. If rows are protected, the unit may be NULL or may be missing."""
    db = open_ledger({"exact": RATE}, '{"protects":"row"}')
    fill(db, [Row("a", 1.0, "[1]", None)] * 100)
    for call in ("dp_avg('exact', x, 0, 2)", "dp_avg('exact', x, 0, 2)", "dp_avg('exact', x, 0, 2, 'n')",
                 "dp_avg('exact', x, 0, 2, '{\"clip\":1}')", "dp_median('exact', x, 0, 2)",
                 "dp_quantile('exact', x, 0.5, 0, 2)", "dp_quantile('exact', x, 0.5, 0, 2)"):
        assert abs(one(db, f"SELECT {call} FROM t") - 1) <= 0.01
    for call in ("dp_histogram('exact', x, 0, 2, 1)", "dp_vec_sum('exact', v, 1, 1)"):
        assert abs(json.loads(one(db, f"SELECT {call} FROM t"))[0] - 100) <= 0.01
    assert abs(json.loads(one(db, "SELECT dp_group_count('exact', k, 1, '{\"keys\":[\"a\"]}') FROM t"))["a"] - 100) <= 0.01
