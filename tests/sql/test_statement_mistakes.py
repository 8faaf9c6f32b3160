"""Tests mistakes that are visible in the statement itself. diffuse refuses these statements before anything is charged,
whatever rows they read."""

import pytest

from conftest import connect, one, refused, unchecked

COLUMN = "is a column, but a parameter is the same for all rows"


def ready(rows=100, units=True):
    db = connect()
    db.execute("CREATE TABLE v(id INTEGER PRIMARY KEY, x, patient, number INTEGER, ward, area)")
    db.execute("CREATE INDEX by_area ON v(area)")
    db.execute("CREATE TABLE bounds(clip, ward)")
    db.execute("INSERT INTO bounds VALUES (5, 'a')")
    db.executemany("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)", [(i, i % 7, f"P-{i}", i, "ab"[i % 2], "cd"[i % 2]) for i in range(rows)])
    one(db, "SELECT dp_init(?)", unchecked("{}" if units else '{"protects":"row"}'))
    one(db, "SELECT dp_tier('t', 0.01, 1e6, 1e-6)")
    return db


MISTAKES = [
    ("dp_sum('t', x, number, 'name') FROM v", "argument 3, clip, " + COLUMN), ("dp_sum('t', x, patient, 'name') FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, id, patient) FROM v", "argument 3, clip, " + COLUMN), ("dp_sum('t', x, number + 1, patient) FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, abs(number), patient) FROM v", "argument 3, clip, " + COLUMN), ("dp_sum(ward, x, 5, patient) FROM v", "argument 1, tier, " + COLUMN),
    ("dp_sum('t', x, 5, patient, patient) FROM v", "argument 5, name, " + COLUMN), ("dp_sum('t', x, 5, patient, 'n' || patient) FROM v", "argument 5, name, " + COLUMN),
    ("dp_sum('t', x, b.clip, patient) FROM v, bounds b", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, b.clip, patient) FROM v JOIN bounds b USING (ward)", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, (SELECT clip FROM bounds b WHERE b.ward = v.ward), patient) FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, area, patient) FROM v WHERE area = 'c'", "argument 3, clip, " + COLUMN),
    ("dp_avg('t', x, number, 6, patient) FROM v", "argument 3, lo, " + COLUMN), ("dp_histogram('t', x, 0, 6, number, patient) FROM v", "argument 5, bins, " + COLUMN),
    ("dp_quantile('t', x, number, 0, 6, patient) FROM v", "argument 3, q, " + COLUMN), ("dp_choice('t', x, patient, number) FROM v", "argument 3, candidates, " + COLUMN),
    ("dp_ou_sum('t', x, 1, number, patient) FROM v", "argument 4, radius, " + COLUMN), ("dp_sgd('t', x, x, patient, '{}') FROM v", "argument 4, loss, " + COLUMN),
    ("ward, dp_sum('t', x, number, patient) FROM v GROUP BY ward", "argument 3, clip, " + COLUMN),
    ("area, dp_sum('t', x, number, patient) FROM v GROUP BY area", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, 5, 'name') FROM v", "argument 4, the unit, is one text for all rows"), ("dp_count('t', x, 2, 'feb') FROM v", "argument 4, the unit, is one text for all rows"),
    ("dp_partial('sum', x, patient, patient) FROM v", "one of them is a column"), ("dp_partial(ward, x, patient, '{}') FROM v", "one of them is a column"),
    ("dp_merge(ward, x) FROM (SELECT ward, dp_partial('sum', x, patient, '{\"clip\":1}') AS x FROM v GROUP BY ward)", ""),
]


@pytest.mark.parametrize("call,message", MISTAKES, ids=[call for call, _ in MISTAKES])
def test_mistakes(call, message):
    """The error is the same for one row and for a hundred rows, and also for rows whose values would be valid arguments. Nothing
    is charged."""
    said = set()
    for rows in (1, 2, 100):
        db = ready(rows)
        said.add(refused(db, "SELECT " + call))
        db.execute("UPDATE v SET number = 5, patient = 5")
        if message:
            said.add(refused(db, "SELECT " + call))
        assert not one(db, "SELECT count(*) FROM dp_charge") and not one(db, "SELECT count(*) FROM dp_release")
    assert message in said.pop() and (not said or not message)


RIGHT = [
    "dp_sum('t', x, 5, patient) FROM v", "dp_sum('t', x, (SELECT clip FROM bounds), patient) FROM v", "dp_sum('t', x, 2 + 3, patient, 'n') FROM v",
    "dp_sum('t', x, ?, patient) FROM v", "dp_sum(?, x, 5, patient, ?) FROM v", "ward, dp_sum('t', x, 5, patient) FROM v GROUP BY ward",
    "ward, dp_sum('t', x, iif(ward = 'a', 2, 3), patient) FROM v GROUP BY ward", "area, dp_sum('t', x, iif(area = 'c', 2, 3), patient) FROM v GROUP BY area",
    "(SELECT dp_sum('t', x, b.clip, patient) FROM v) FROM bounds b", "(SELECT dp_sum('t', x, b.clip, patient) FROM v WHERE v.ward = b.ward) FROM bounds b",
    "b.ward, dp_sum('t', x, b.clip, patient) FROM v JOIN bounds b USING (ward) GROUP BY b.ward, b.clip",
    "dp_sum('t', x, c, patient) FROM (SELECT x, 5 AS c, patient FROM v)", "dp_sum('t', x, c, patient) FROM (SELECT x, 5 AS c, patient FROM v ORDER BY random() LIMIT 10)",
    "dp_count('t', x, 1, patient), dp_sum('t', x, 3, patient) FROM v WHERE x > 2 AND ward IN ('a', 'b')", "dp_sum('t', x, 5, patient) FROM v WHERE id = 5",
    "dp_sum('t', abs(x), abs(-5), patient || '') FROM v", "dp_sum('t', x, 5, patient) FILTER (WHERE x > 1) FROM v", "dp_sum('t', x, 5, NULL) FROM v",
    "dp_sum('t', x, 5, 7) FROM v", "length(ward), dp_count('t', x, 2, patient) FROM v GROUP BY length(ward)",
    "dp_avg('t', x, 0, 6, patient), max(x), group_concat(patient) FROM v", "dp_sum('t', x, 5, patient) FROM v AS a WHERE EXISTS (SELECT 1 FROM bounds b WHERE b.ward = a.ward)",
]


@pytest.mark.parametrize("call", RIGHT)
def test_what_is_right_is_answered(call):
    db = ready()
    values = {1: (5,), 2: ("t", "named")}.get(call.count("?"), ())
    assert db.execute("SELECT " + call, values).fetchall() and one(db, "SELECT count(*) FROM dp_charge") > 0


def test_rows_have_no_unit_to_mistake():
    assert "give NULL as the unit" in refused(ready(units=False), "SELECT dp_sum('t', x, 5, 'name') FROM v")
