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


UNIT = "argument 4 is neither a name nor options (write dp_sum(tier, x, clip, name): the policy names the unit)"
TABLE = "must be a constant that reads no table: no such table: bounds"
MISTAKES = [
    ("dp_sum('t', x, id) FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, number + 1) FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum(ward, x, 5) FROM v", "argument 1, tier, " + COLUMN),
    ("dp_sum('t', x, b.clip) FROM v, bounds b", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, b.clip) FROM v JOIN bounds b USING (ward)", "argument 3, clip, " + COLUMN),
    ("dp_avg('t', x, number, 6) FROM v", "argument 3, lo, " + COLUMN),
    ("dp_histogram('t', x, 0, 6, number) FROM v", "argument 5, bins, " + COLUMN),
    ("dp_quantile('t', x, number, 0, 6) FROM v", "argument 3, q, " + COLUMN),
    ("dp_ou_sum('t', x, 1, number) FROM v", "argument 4, radius, " + COLUMN),
    ("dp_sum('t', x, number, 'name') FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, abs(number)) FROM v", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, area) FROM v WHERE area = 'c'", "argument 3, clip, " + COLUMN),
    ("dp_sum('t', x, (SELECT clip FROM bounds b WHERE b.ward = v.ward)) FROM v", "argument 3, clip, " + TABLE),
    ("dp_sum('t', x, (SELECT max(clip) FROM bounds)) FROM v", "argument 3, clip, " + TABLE),
    ("dp_sum('t', x, 5 + random() % 1) FROM v", "argument 3, clip, must be a constant that reads no table: not authorized to use function: random"),
    ("dp_sum('t', x, 5, patient) FROM v", UNIT),
    ("dp_sum('t', x, 5, patient, 'name') FROM v", UNIT),
    ("dp_sum('t', x, 5, NULL, 'name') FROM v", UNIT),
    ("dp_sum('t', x, 5, 'n' || patient) FROM v", UNIT),
    ("ward, dp_sum('t', x, number) FROM v GROUP BY ward", "argument 3, clip, " + COLUMN),
    ("ward, dp_sum('t', x, 5) FROM v GROUP BY ward", "GROUP BY cannot stand around it (for one release by key, write dp_group_sum(tier, key, ...)"),
    ("dp_sum('t', x, c) FROM (SELECT x, 5 AS c, patient FROM v)", "argument 3, clip, " + COLUMN),
    ("dp_choice('t', x, patient) FROM v", "argument 3, candidates, " + COLUMN),
]


@pytest.mark.parametrize("call,message", MISTAKES, ids=[call for call, _ in MISTAKES])
@pytest.mark.parametrize("units", [True, False])
def test_mistakes(call, message, units):
    """The error is the same for one row and for a hundred rows, and also for rows whose values would be valid arguments. Nothing
    is charged."""
    for rows in (1, 2, 100):
        db = ready(rows, units)
        for _ in range(2):
            assert message in refused(db, "SELECT " + call)
            db.execute("UPDATE v SET number = 5, patient = 5")
        assert not one(db, "SELECT count(*) FROM dp_charge") and not one(db, "SELECT count(*) FROM dp_release")


RIGHT = [
    "dp_sum('t', x, 2 + 3, 'n') FROM v",
    "dp_sum('t', x, ?) FROM v",
    "dp_sum(?, x, 5, ?) FROM v",
    "dp_sum('t', x, 5, NULL) FROM v",
    "dp_count('t', x, 1), dp_sum('t', x, 3) FROM v WHERE x > 2 AND ward IN ('a', 'b')",
    "dp_sum('t', x, 5) FILTER (WHERE x > 1) FROM v",
]


@pytest.mark.parametrize("call", RIGHT)
def test_what_is_right_is_answered(call):
    db = ready()
    values = {1: (5,), 2: ("t", "named")}.get(call.count("?"), ())
    assert db.execute("SELECT " + call, values).fetchall() and one(db, "SELECT count(*) FROM dp_charge") > 0
