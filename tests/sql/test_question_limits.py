"""Tests the limits of a question (ext/query/limits.h): steps and bytes of one unit, and seconds of the whole question."""

import sqlite3
import time

import pytest

from conftest import connect, one

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
LONG = "(SELECT sum(a.day > b.day) FROM visit a, visit b, visit c, visit d)"
HEAVY = "SELECT 1 FROM visit CROSS JOIN ward WHERE beds < minutes AND minutes < beds"


def clinic(path=":memory:", rows=20000, wards=3000):
    db = connect(path)
    db.executescript("CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, day INT, minutes INT, note BLOB); CREATE TABLE ward(name TEXT, beds INT)")
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    db.execute(f"INSERT INTO visit {numbers} SELECT i, i % 50, i % 365, i % 60, NULL FROM n", (rows,))
    db.execute(f"INSERT INTO ward {numbers} SELECT 'w' || i, i % 60 FROM n", (wards,))
    for call in ["dp_init()", "dp_protect('visit', 'patient')", "dp_public('ward')", "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        one(db, "SELECT " + call)
    return db


@pytest.mark.plain
@pytest.mark.parametrize("sql, threads", [(ENDLESS + ", visit", 0), (f"SELECT {LONG} FROM visit LIMIT 1", 0), (HEAVY, 0), (HEAVY, 1)])
def test_a_question_ends_after_its_seconds(tmp_path, sql, threads):
    """The questions are evaluated by unit and in one statement, without a progress handler of the host. Each of them takes minutes."""
    db = clinic(str(tmp_path / "db"))
    db.execute(f"PRAGMA threads = {threads}")
    spent = one(db, "SELECT count(*) FROM dp_charge")
    start = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match=r"the question took longer than its limit of 1.5 seconds \(the charge stays\)"):
        db.execute("SELECT dp_release('t', 'sum', ?, '{\"clip\":9,\"name\":\"long\",\"steps\":1000000000000,\"seconds\":1.5}')", (sql,)).fetchall()
    assert 1.5 <= time.monotonic() - start < 1.65
    assert one(db, "SELECT state FROM dp_release WHERE name = 'long'") == "failed"
    assert one(db, "SELECT count(*) FROM dp_charge") == spent + 1
    assert abs(one(db, "SELECT dp_release('t', 'count_distinct', 'SELECT 1 FROM visit', '{\"seconds\":60}')") - 50) < 1


def test_a_question_within_its_seconds_is_not_disturbed():
    db = clinic(rows=100, wards=3)
    for _ in range(20):
        assert abs(one(db, "SELECT dp_release('t', 'sum', 'SELECT count(*) FROM visit LIMIT 1', '{\"clip\":9,\"seconds\":0.9}')") - 100) < 1
