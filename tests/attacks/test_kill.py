"""Attack: kill -9 after the answer. If the charge is written after the answer, or kept in memory for later, an
attacker who kills the process has seen a value that nobody paid for."""

import itertools
import json
import random
import signal

from attack import CALLS, FORMS, charges, one, room_for, system, verified
from conftest import connect, killed_at_writes, refused, run

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
    """If the process is killed while it reads rows, the charge stays, the ledger has no value, and the name cannot be
    drawn again."""
    path = tmp_path / "people.db"
    system(path, {"inner": 1.0}).close()
    run("""
        db = connect(sys.argv[1])
        once_charged(db, sys.argv[1], lambda: os.kill(os.getpid(), signal.SIGKILL))
        one(db, "SELECT dp_sum('inner', x, 1, 'a') FROM people")
        """, path, expect=-signal.SIGKILL)
    db = connect(path)
    assert charges(db) == 1 and one(db, "SELECT count(*) FROM dp_value") == 0
    assert "not finished" in refused(db, "SELECT dp_sum('inner', x, 1, 'a') FROM people")


# The test kills this batch at one of its writes to files.

BATCH = [
    {"tier": "inner", "kind": "count", "sql": "SELECT x FROM people", "options": {"name": "a", "clip": 1}, "diffuse": ["outer"]},
    {"tier": "outer", "kind": "count", "sql": "SELECT x FROM people", "options": {"name": "b", "clip": 1}},
]
BATCH_CHARGES = 2 + 2  # each tier pays for its own publications and those of outer tiers
BATCH_PUBLISHED = 2 + 1


def test_a_batch_that_is_killed_at_any_write_is_all_charged_or_not_at_all_and_can_be_finished(tmp_path):
    """The test kills dp_batch() at every third write, and begins with one of the first three writes. After each kill the ledger
    has all charges or none, and no value without a point. The batch then runs again to its end. It keeps the values that the
    killed process had stored, and charges nothing twice."""
    system(tmp_path / "people.db", {"inner": 1.0, "outer": 0.25}).close()
    writes, seen = itertools.count(random.randrange(1, 4), 3), set()
    for at, path, done in killed_at_writes(tmp_path / "people.db", writes, lambda path: one(connect(path), "SELECT dp_batch(?)", json.dumps(BATCH))):
        db = connect(path)
        paid, stored = charges(db), db.execute("SELECT * FROM dp_value ORDER BY release_id, tier").fetchall()
        published = one(db, "SELECT count(*) FROM dp_publication")
        assert paid in (0, BATCH_CHARGES) and verified(db)
        assert done == (published == BATCH_PUBLISHED) or not done
        seen.add((paid, published))
        answers = [item["answer"] for item in json.loads(one(db, "SELECT dp_batch(?)", json.dumps(BATCH)))]
        assert charges(db) == BATCH_CHARGES and verified(db)
        after = db.execute("SELECT * FROM dp_value ORDER BY release_id, tier").fetchall()
        assert set(stored) <= set(after) and one(db, "SELECT count(*) FROM dp_publication") == BATCH_PUBLISHED
        assert {state for (state,) in db.execute("SELECT state FROM dp_release")} == {"released"}
        assert answers == [one(db, "SELECT dp_diffuse('a', 'inner')"), one(db, "SELECT dp_diffuse('b', 'outer')")]
        db.close()
    # One commit stores the first release and its diffusion, so there is never one publication.
    assert at > 30 and seen == {(0, 0), (BATCH_CHARGES, 0), (BATCH_CHARGES, 2), (BATCH_CHARGES, 3)}
