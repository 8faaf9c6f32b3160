"""Tests OU kinds of statistics that are not linear in the sums. With a radius, their value moves to the nearest point within the
radius of the centre. test_kinds_noise.py recomputes the values from their points. This file compares their errors with the
errors of the kinds without OU.
"""

import json
import math
import sqlite3

import numpy
import pytest

from noise_helpers import column, connect, create_table, error_of, fill, one, open_ledger, quick_path

SIZES, RATES, PLACES = (1, 5, 100), (0.005, 0.5), 3


def errors_of_averages(path, lo, hi, centre, radius, size, rate, runs):
    """Returns the squared errors of dp_avg() and of dp_ou_avg() for several true means within the radius. Both have the same
    noise: the function reads the points of dp_ou_avg() and computes from them what dp_avg() would publish
    (sql/aggregates.md)."""
    half, middle = (hi - lo) / 2, (hi + lo) / 2
    plain, ou = [], []
    for place in range(PLACES):
        mean = min(max(centre + radius * (2 * place / (PLACES - 1) - 1), lo), hi)
        db = open_ledger({"t": rate}, path=path + f"-{size}-{place}-{radius}-{rate}")
        fill(db, [(mean, unit) for unit in range(size)])
        for i in range(runs):
            one(db, "SELECT dp_release('t', 'ou_avg', 'SELECT x FROM t', ?)",
                json.dumps({"name": f"r{i:03}", "lo": lo, "hi": hi, "centre": centre, "radius": radius}))
        shown = column(db, "SELECT value FROM dp_value ORDER BY release")
        step = 2.0 ** one(db, "SELECT DISTINCT granularity FROM dp_release")
        db.close()
        with sqlite3.connect(f"file:{path}-{size}-{place}-{radius}-{rate}-ledger?mode=ro", uri=True) as books:
            points = numpy.array(column(books, "SELECT value FROM dp_path ORDER BY release, component")).reshape(-1, 2) * step
        rows = numpy.maximum(2 * points[:, 0], 1)
        average = numpy.clip(middle + half * numpy.clip(points[:, 1] / rows, -1, 1), lo, hi)
        plain.append((average - mean) ** 2)
        ou.append((numpy.array(shown) - mean) ** 2)
    return numpy.array(plain), numpy.array(ou)


@pytest.mark.parametrize("lo,hi,centre,radius", [(0, 10, 5, 5), (0, 10, 5, 1), (0, 10, 1, 3), (-1, 1, 0, 0.5)])
@pytest.mark.sample(2)
def test_ou_avg_is_never_farther_from_a_mean_within_the_radius(lo, hi, centre, radius):
    """With the same noise, dp_ou_avg() is never farther from the true mean than dp_avg(), for several means, sizes and rates.
    This holds for every draw, so the test cannot fail by chance. If the radius is smaller than the range, dp_ou_avg() is closer
    for some draws."""
    closer = 0
    with quick_path() as path:
        for size in SIZES:
            for rate in RATES:
                plain, ou = errors_of_averages(path, lo, hi, centre, radius, size, rate, 12)
                assert (ou <= plain + 1e-9 * (hi - lo) ** 2).all()
                assert max(ou.mean(axis=1)) <= max(plain.mean(axis=1)) + 1e-9 * (hi - lo) ** 2
                assert ou.max() <= (2 * radius) ** 2 * (1 + 1e-9)
                closer += (ou < plain - 1e-9 * (hi - lo) ** 2).sum()
    assert (closer > 20) == (centre - radius > lo or centre + radius < hi)


@pytest.mark.parametrize("kind,more,truth", [
    ("var", {"lo": 0, "hi": 10, "radius": 2, "centre": 4}, 4.0), ("stddev", {"lo": 0, "hi": 10, "radius": 1, "centre": 2}, 2.0),
    ("median", {"lo": 0, "hi": 10, "radius": 1, "centre": 5, "bins": 64}, 5.5),
    ("vec_avg", {"dim": 2, "clip": 10, "radius": 7}, None)])
@pytest.mark.sample(1)
def test_other_kinds_stay_within_the_radius(kind, more, truth):
    """The noise is much larger than the 20 rows. Values never leave the ball of the radius, and some reach its surface. The mean
    squared error over 300 releases is below nine tenths of that of the kind without OU: at least seven standard errors below."""
    db = open_ledger({"t": 1e-3})
    create_table(db, "x, unit")
    value = {"vec_avg": "[4,4]"}.get(kind)
    db.executemany("INSERT INTO t VALUES (?, ?)", [(value or 5 + (2 if i % 2 else -2), i) for i in range(20)])
    options = {k: v for k, v in more.items() if k not in ("radius", "centre")}
    found = {}
    for name, parameters in ((f"ou_{kind}", more), (kind, options)):
        for _ in range(300):
            one(db, "SELECT dp_release('t', ?, 'SELECT x FROM t', ?)", name, json.dumps(parameters))
        found[name] = numpy.array(column(db, "SELECT value FROM dp_value v JOIN dp_release r ON r.id = release_id WHERE kind = ?"
                                             " ORDER BY release_id, component", name)).reshape(300, -1)
    away = numpy.linalg.norm(found[f"ou_{kind}"] - more.get("centre", 0), axis=1)
    assert away.max() <= more["radius"] * (1 + 1e-12) and away.max() >= 0.99 * more["radius"]
    truth = numpy.array([4, 4]) if truth is None else truth
    ou, plain = (numpy.mean((found[name] - truth) ** 2) for name in (f"ou_{kind}", kind))
    assert ou < 0.9 * plain


def test_ou_count_distinct():
    """The value follows from Theorem 8, as for other counts: value = centre + R^2/(R^2 + tau) (noisy number - centre)."""
    db = open_ledger({"t": 0.5})
    create_table(db, "unit")
    db.executemany("INSERT INTO t VALUES (?)", [(i // 3,) for i in range(300)])
    tau = 1 / (2 * 0.5)
    values = [one(db, """SELECT dp_ou_count_distinct('t', 3, '{"centre":90}') FROM t""") for _ in range(400)]
    shrink = one(db, "SELECT DISTINCT shrink FROM dp_publication")
    assert shrink == pytest.approx(9 / (9 + tau), rel=1e-3)
    assert abs(numpy.mean(values) - (90 + shrink * 10)) <= 7 * shrink * math.sqrt(tau / 400)
    assert one(db, "SELECT dp_verify()") == "ok"
    assert "unknown option" in error_of(db, """SELECT dp_ou_count_distinct('t', 3, '{"clip":2}') FROM t""")
    rows = connect()
    one(rows, """SELECT dp_init('{"protects":"row"}')""")
    one(rows, "SELECT dp_tier('t', 0.5, 10, 1e-6)")
    create_table(rows, "x")
    rows.execute("INSERT INTO t VALUES (1)")
    assert "every row is a unit" in error_of(rows, "SELECT dp_ou_count_distinct('t', 3) FROM t")
