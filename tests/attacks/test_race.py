"""Attack: two connections that race for the rest of a budget. After one connection has checked that its release fits the
budget, and before it writes its charge, another connection can make the same check."""

import os
import random
import subprocess

import pytest

from attack import FORMS, charges, each_call_and_form, one, room_for, system, verified
from conftest import PATIENCE, connect, refused, start


class Naive:
    """Checks the budget, reads the data, then charges."""

    def __init__(self, left):
        self.left = left

    def answer(self, meanwhile):
        if self.left < 1:
            return None
        total = sum(1 for _ in range(1000)) + random.gauss(0, 10)
        meanwhile()
        self.left -= 1
        return total


def test_two_naive_readers_both_get_the_last_of_a_budget():
    naive, answers = Naive(1), []
    answers.append(naive.answer(lambda: answers.append(naive.answer(lambda: None))))
    assert len(answers) == 2 and None not in answers


@each_call_and_form
@pytest.mark.sample(12)
def test_whoever_comes_while_the_last_release_reads_is_refused(call, form, tmp_path):
    """While the last release that fits the budget reads its rows, another connection asks for a release, with the same
    name and without a name. Both are refused."""
    path = tmp_path / "people.db"
    db = system(path, {})
    room_for(db, 1)
    other, messages = connect(path), []

    def meanwhile():
        # A slow machine also calls it inside of a transaction on the ledger, which `other` cannot enter.
        if not messages and not os.path.exists(f"{path}-ledger-lock") and one(other, "SELECT count(*) FROM dp_charge"):
            messages.extend(refused(other, sql(call, "audience", name)) for name in (None, "b")
                            for sql in FORMS)
            messages.append(refused(other, form(call, "audience", "a")))

    db.set_progress_handler(meanwhile, 10)  # SQLite calls it while a statement runs
    assert one(db, form(call, "audience", "a")) is not None
    db.set_progress_handler(None, 0)
    assert len(messages) == 5
    assert all("would exceed its budget" in message for message in messages[:4]) and "not finished" in messages[4]
    assert charges(other) == 1 and verified(other)


@pytest.mark.usefixtures("period")
@pytest.mark.parametrize("sql", ["SELECT dp_sum('audience', x, 1) FROM people",
                                 "SELECT dp_release('audience', 'sum', 'SELECT x FROM people', '{\"clip\":1}')"])
def test_processes_that_take_all_they_get_never_get_more(tmp_path, sql):
    """Two processes ask until they are refused. Together they get exactly the sixty releases that fit the budget."""
    path = tmp_path / "people.db"
    db = system(path, {})
    room_for(db, 60)
    racers = [start("""
        db = connect(sys.argv[1])
        print("ready", flush=True)
        sys.stdin.readline()
        while True:
            try:
                print(repr(one(db, sys.argv[2])), flush=True)
            except sqlite3.Error as error:
                assert "would exceed its budget" in str(error), error
                break
        """, path, sql, stdin=subprocess.PIPE) for _ in range(2)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n", racer.stderr.read()
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    outputs = [racer.communicate(timeout=PATIENCE) for racer in racers]
    assert all(racer.returncode == 0 for racer in racers), outputs
    answers = [line for output, _ in outputs for line in output.split()]
    assert len(answers) == charges(db) == 60 and verified(db)
