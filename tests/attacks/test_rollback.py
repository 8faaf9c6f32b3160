"""Attack: ROLLBACK and SAVEPOINT after the value was seen. If the charge is written on the caller's connection, the caller's
ROLLBACK undoes the charge, and the next answer is free."""

import random
import sqlite3

import pytest

from attack import charges, each_call_and_form, one, room_for, system, verified
from conftest import connect, refused

ROOM = 3


class Naive:
    """A budget in a table of the database itself."""

    def __init__(self, budget):
        self.db = connect()
        self.db.execute("CREATE TABLE budget(left)")
        self.db.execute("INSERT INTO budget VALUES (?)", (budget,))

    def count(self):
        if one(self.db, "SELECT left FROM budget") < 1:
            return None
        self.db.execute("UPDATE budget SET left = left - 1")
        return 1000 + random.gauss(0, 10)


# Transactions around a statement: the SQL before and after the statement.
UNDONE = {
    "rollback": (["BEGIN"], ["ROLLBACK"]),
    "immediate": (["BEGIN IMMEDIATE", "CREATE TABLE mine(x)"], ["ROLLBACK"]),
    "savepoint": (["SAVEPOINT s"], ["ROLLBACK TO s", "RELEASE s"]),
    "nested": (["BEGIN", "SAVEPOINT s", "SAVEPOINT t"], ["ROLLBACK TO s", "ROLLBACK"]),
}
EACH_UNDOING = pytest.mark.parametrize("how", UNDONE)


def undone(db, how, sql):
    """Runs a statement in a transaction, rolls the transaction back, and returns the value of the statement."""
    before, after = UNDONE[how]
    for statement in before:
        db.execute(statement)
    value = sql() if callable(sql) else one(db, sql)
    for statement in after:
        db.execute(statement)
    return value


@EACH_UNDOING
def test_a_naive_budget_is_refunded(how):
    """A budget for three answers gives three hundred, and would give any number."""
    naive = Naive(ROOM)
    answers = [undone(naive.db, how, naive.count) for _ in range(300)]
    assert None not in answers and one(naive.db, "SELECT left FROM budget") == ROOM


@each_call_and_form
@EACH_UNDOING
@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.sample(12)
def test_a_charge_is_not_refunded(call, form, how, where, tmp_path):
    """A budget for three answers gives three, and the ledger holds them."""
    db = system(tmp_path / "people.db" if where == "file" else ":memory:", {})
    room_for(db, ROOM)
    first = undone(db, how, form(call, "audience", "a"))
    assert undone(db, how, form(call, "audience", "a")) == first == one(db, form(call, "audience", "a"))
    assert charges(db) == 1
    for _ in range(ROOM - 1):
        undone(db, how, form(call, "audience"))
    assert "would exceed its budget" in refused(db, form(call, "audience"))
    if db.in_transaction:
        db.execute("ROLLBACK")
    assert charges(db) == ROOM and verified(db)


@pytest.mark.parametrize("how", ["rollback", "nested"])
@pytest.mark.parametrize("accountant", ["rdp", "pure", "gdp"])
def test_a_charge_of_a_drawn_median_is_not_refunded(how, accountant):
    """A budget admits as many drawn medians whose statements are rolled back as medians that stay."""
    sql, counts = "SELECT dp_release('audience', 'median', 'SELECT x FROM people', '{\"lo\":-2,\"hi\":2}')", []
    for undoes in (False, True):
        db = system(tiers={})
        one(db, "SELECT dp_tier('audience', 0.1, 4, ?, ?)", 0 if accountant == "pure" else 1e-6, accountant)
        try:
            while charges(db) < 100:
                undone(db, how, sql) if undoes else one(db, sql)
        except sqlite3.Error as error:
            assert "would exceed its budget" in str(error), error
        if db.in_transaction:
            db.execute("ROLLBACK")
        assert one(db, "SELECT count(*) FROM dp_release WHERE mechanism = 'exponential'") == charges(db) and verified(db)
        counts.append(charges(db))
    assert 2 < counts[0] == counts[1] < 100


@pytest.mark.usefixtures("period")
@pytest.mark.parametrize("conflict", ["ABORT", "ROLLBACK", "FAIL"])
def test_a_constraint_that_fails_afterwards_refunds_nothing(conflict):
    """The value violates a constraint of the attacker's table, and SQLite rolls the statement back."""
    db = system(tiers={})
    room_for(db, ROOM)
    db.execute("CREATE TABLE copy(value CHECK (value < -1e9))")
    for i in range(ROOM):
        db.execute("BEGIN")
        options = f'{{"clip":1,"name":"r{i}"}}'
        sql = f"INSERT OR {conflict} INTO copy SELECT dp_release('audience', 'count', 'SELECT x FROM people', '{options}')"
        assert "CHECK constraint failed" in refused(db, sql)
        if db.in_transaction:
            db.execute("ROLLBACK")
    assert "would exceed its budget" in refused(db, "SELECT dp_count('audience', x, 1) FROM people")
    assert charges(db) == ROOM and verified(db)


def test_diffusions_tiers_and_refinements_are_not_taken_back():
    """A ROLLBACK of the host does not undo diffusions, tiers and refinements, because all writes to the ledger are permanent."""
    db = system(tiers={"outer": 0.1})
    one(db, "SELECT dp_count('outer', x, 1, 'a') FROM people")
    books = "SELECT count(*), (SELECT count(*) FROM dp_tier), (SELECT count(*) FROM dp_publication) FROM dp_charge"
    for sql, expected in [("SELECT dp_tier('outermost', 0.01, 1e15, 1e-6)", (1, 2, 1)),
                          ("SELECT dp_diffuse('a', 'outermost')", (2, 2, 2)),
                          ("SELECT dp_tier('inner', 1.0, 1e15, 1e-6)", (3, 3, 2)),
                          ("SELECT dp_count('inner', x, 1, '{\"name\":\"a\",\"refine\":true}') FROM people", (4, 3, 3))]:
        undone(db, "nested", sql)
        assert db.execute(books).fetchall() == [expected], sql
    assert verified(db)
