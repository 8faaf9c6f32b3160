"""Attack: kill -9 after the answer. If the charge is written after the answer, or kept in memory for later, an
attacker who kills the process has seen a value that nobody paid for."""

import signal

from attack import CALLS, FORMS, charges, one, room_for, system, verified
from conftest import connect, refused, run

NAIVE = """
    import json, random
    budget = json.load(open(sys.argv[1]))
    assert budget["left"] > 0
    print(1000 + random.gauss(0, 10), flush=True)
    if sys.argv[2] == "kill": os.kill(os.getpid(), signal.SIGKILL)
    json.dump({"left": budget["left"] - 1}, open(sys.argv[1], "w"))
    """


def test_a_naive_budget_forgets_what_was_seen(tmp_path):
    """A naive budget for one answer gives three answers, because each kill undoes the charge."""
    file = tmp_path / "budget.json"
    file.write_text('{"left": 1}')
    answers = [run(NAIVE, file, "kill", expect=-signal.SIGKILL) for _ in range(2)] + [run(NAIVE, file, "go on")]
    assert len(set(answers)) == 3


def test_a_budget_remembers_what_was_seen(tmp_path):
    """For each call and form, three processes are killed just after they print an answer. The fourth gets nothing,
    and the ledger holds the three answers."""
    path = tmp_path / "people.db"
    statements = [form(call, "audience", None) for call in CALLS for form in FORMS]
    db = system(path, {})
    room_for(db, 3 * len(statements))
    db.close()
    answers = []
    for _ in range(3):
        output = run("""
            db = connect(sys.argv[1])
            for sql in sys.argv[2:]: print(repr(one(db, sql)), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """, path, *statements, expect=-signal.SIGKILL)
        answers += output.splitlines()
    db = connect(path)
    assert len(answers) == charges(db) == 3 * len(statements) >= 6 * len(CALLS)
    for sql in statements:
        assert "would exceed its budget" in refused(db, sql)
    assert one(db, "SELECT count(*) FROM dp_release WHERE state = 'released'") == len(answers)
    assert verified(db)


def test_a_process_killed_before_its_answer_has_paid_and_knows_nothing(tmp_path):
    """If the process is killed at the last row, the charge stays, the ledger has no value, and the name cannot be
    drawn again."""
    path = tmp_path / "people.db"
    system(path, {"inner": 1.0}).close()
    run("""
        db, rows = connect(sys.argv[1]), []
        def count(x):
            rows.append(x)
            if len(rows) == 120: os.kill(os.getpid(), signal.SIGKILL)
            return x
        db.create_function("count_rows", 1, count)
        one(db, "SELECT dp_sum('inner', count_rows(x), 1, unit, 'a') FROM people")
        """, path, expect=-signal.SIGKILL)
    db = connect(path)
    assert charges(db) == 1 and one(db, "SELECT count(*) FROM dp_value") == 0
    assert "not finished" in refused(db, "SELECT dp_sum('inner', x, 1, unit, 'a') FROM people")
