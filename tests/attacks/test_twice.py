"""Attack: some drivers run a SELECT twice (PHP's sqlite3), and some tools run it in a savepoint first (DB Browser). The second
run must not make a second draw for one charge, and must not lose a charge."""

import ctypes
import random

from attack import charges, each_call_and_form, one, system, verified
from conftest import Raw, connect


def twice(raw, sql):
    """Steps a statement, resets it and steps it again, and prepares another statement that never runs. Returns the values as
    texts."""
    raw.c.sqlite3_column_text.restype = ctypes.c_char_p
    raw.finalize(raw.prepare(sql))
    statement = raw.prepare(sql)
    answers = []
    for _ in range(2):
        assert raw.step(statement) == raw.ROW
        answers.append(raw.c.sqlite3_column_text(statement, 0))
        raw.reset(statement)
    raw.finalize(statement)
    return answers


def test_a_naive_answer_is_drawn_twice():
    """A naive system charges once for the statement and draws for each run of the statement."""
    db, books = connect(), []
    db.create_function("naive_noise", 0, lambda: random.gauss(0, 10))
    sql = "SELECT count(*) + naive_noise() FROM (VALUES (1), (2))"
    books.append(sql)
    assert one(db, sql) != one(db, sql) and len(books) == 1


@each_call_and_form
def test_a_named_statement_that_runs_twice_is_one_release(call, form, tmp_path):
    path = tmp_path / "people.db"
    system(path, {"inner": 1.0}).close()
    raw = Raw(path)
    first, second = twice(raw, form(call, "inner", "a"))
    assert first == second
    db = connect(path)
    assert charges(db) == 1 and verified(db)


@each_call_and_form
def test_an_unnamed_statement_that_runs_twice_is_two_releases_and_two_charges(call, form, tmp_path):
    path = tmp_path / "people.db"
    system(path, {"inner": 1.0}).close()
    twice(Raw(path), form(call, "inner"))
    db = connect(path)
    assert charges(db) == 2 and one(db, "SELECT count(*) FROM dp_release WHERE state = 'released'") == 2


@each_call_and_form
def test_a_rehearsal_in_a_savepoint_is_the_release(call, form):
    db = system(tiers={"inner": 1.0})
    db.execute("SAVEPOINT rehearsal")
    value = one(db, form(call, "inner", "a"))
    db.execute("ROLLBACK TO rehearsal")
    db.execute("RELEASE rehearsal")
    assert one(db, form(call, "inner", "a")) == value and charges(db) == 1
