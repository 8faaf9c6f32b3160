"""Tests mistakes that are visible in the statement itself. diffuse refuses these statements before anything is charged,
whatever rows they read."""

import pytest

from conftest import connect, make_ledger, one, refused

COLUMN = "depends on a row, but a parameter is the same for all rows"


def ready(rows=100, units=True):
    db = connect()
    db.execute("CREATE TABLE v(id INTEGER PRIMARY KEY, x, patient, number INTEGER, ward, area)")
    db.execute("CREATE INDEX by_area ON v(area)")
    db.execute("CREATE TABLE bounds(clip, ward)")
    db.execute("INSERT INTO bounds VALUES (5, 'a')")
    db.executemany("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)", [(i, i % 7, f"P-{i}", i, "ab"[i % 2], "cd"[i % 2]) for i in range(rows)])
    make_ledger(db, "{}" if units else '{"protects":"row"}', "v, patient" if units else "v", public=["bounds"])
    one(db, "SELECT dp_tier('t', 0.01, 1e6, 1e-6)")
    return db


MISTAKES = [
    ("dp_sum('t', x, id, patient) FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, number + 1, patient) FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum(ward, x, 5, patient) FROM v", "argument 1, tier, " + COLUMN),
    ("dp_sum('t', x, 5, patient, patient) FROM v", "argument 5, name, " + COLUMN),
    ("dp_sum('t', x, b.clip, patient) FROM v, bounds b", "argument 3, clip, " + COLUMN),
    ("dp_avg('t', x, number, 6, patient) FROM v", "argument 3, lo, " + COLUMN),
    ("dp_histogram('t', x, 0, 6, number, patient) FROM v", "argument 5, bins, " + COLUMN),
    ("dp_quantile('t', x, number, 0, 6, patient) FROM v", "argument 3, q, " + COLUMN),
    ("dp_ou_sum('t', x, 1, number, patient) FROM v", "argument 4, radius, " + COLUMN),
    ("dp_sum('t', x, number, 'name') FROM v", ""),  # the proof or the unit fails first
    ("dp_sum('t', x, patient, 'name') FROM v", ""),  # the proof or the unit fails first
    ("dp_sum('t', x, abs(number), patient) FROM v", ""),  # the proof or the unit fails first
    ("dp_sum('t', x, 5, patient, 'n' || patient) FROM v", ""),  # the proof or the unit fails first
    ("dp_sum('t', x, b.clip, patient) FROM v JOIN bounds b USING (ward)", ""),  # the proof or the unit fails first
    ("dp_sum('t', x, (SELECT clip FROM bounds b WHERE b.ward = v.ward), patient) FROM v", ""),  # the proof or the unit fails first
    ("dp_sum('t', x, area, patient) FROM v WHERE area = 'c'", ""),  # the proof or the unit fails first
    ("dp_choice('t', x, patient, number) FROM v", ""),  # the proof or the unit fails first
    ("ward, dp_sum('t', x, number, patient) FROM v GROUP BY ward", ""),  # the proof or the unit fails first
    ("area, dp_sum('t', x, number, patient) FROM v GROUP BY area", ""),  # the proof or the unit fails first
    ("dp_sum('t', x, 5, 'name') FROM v", ""),  # the proof or the unit fails first
    ("dp_count('t', x, 2, 'feb') FROM v", ""),  # the proof or the unit fails first
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
    text = said.pop()
    assert message in text and (not said or not message)
    assert message or "cannot show" in text or "must be v.patient" in text or "one of them is a column" in text or "(kind, sql, options)" in text


RIGHT = [
    "dp_sum('t', x, 2 + 3, patient, 'n') FROM v",
    "dp_sum('t', x, ?, patient) FROM v",
    "dp_sum(?, x, 5, patient, ?) FROM v",
    "dp_sum('t', x, c, patient) FROM (SELECT x, 5 AS c, patient FROM v)",
    "dp_count('t', x, 1, patient), dp_sum('t', x, 3, patient) FROM v WHERE x > 2 AND ward IN ('a', 'b')",
    "dp_sum('t', x, 5, patient) FILTER (WHERE x > 1) FROM v",
]


@pytest.mark.parametrize("call", RIGHT)
def test_what_is_right_is_answered(call):
    db = ready()
    values = {1: (5,), 2: ("t", "named")}.get(call.count("?"), ())
    assert db.execute("SELECT " + call, values).fetchall() and one(db, "SELECT count(*) FROM dp_charge") > 0


def test_rows_have_no_unit_to_mistake():
    assert "give NULL as the unit" in refused(ready(units=False), "SELECT dp_sum('t', x, 5, 'name') FROM v")
