"""However the statement around an aggregate ends, charge and value are as the equal dp_release() leaves them: the release is made, stored
and sealed at the first row."""

import itertools
import random
import re
import sqlite3

import pytest

from conftest import Raw, connect, create, killed_at_writes, one, refused

pytestmark = pytest.mark.alarm(0)

CALL = "dp_sum('clinic', minutes, 5, 'n')"
RELEASE = "dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{\"name\":\"n\",\"clip\":5}')"
# Where a call may stand.
FORMS = ["SELECT {} FROM visits", "SELECT round({}, 3), 'x' FROM visits", "SELECT {}, dp_avg('clinic', minutes, 0, 9, 'other') FROM visits",
         "SELECT (SELECT {} FROM visits) AS x", "SELECT x FROM (SELECT {} AS x FROM visits)", "SELECT x, 1 FROM many, (SELECT {} AS x FROM visits)",
         "WITH w AS (SELECT {} AS x FROM visits) SELECT x FROM w UNION ALL SELECT 7", "SELECT {}, count(*), total(minutes) FROM visits",
         "SELECT {} FILTER (WHERE 1) FROM visits", "INSERT INTO kept SELECT {} FROM visits", "CREATE TABLE made AS SELECT {} AS x FROM visits"]


def make(path):
    db = create(path)
    db.executescript("CREATE TABLE kept(x); CREATE TABLE many(i); INSERT INTO many VALUES (1), (2), (3)")
    return db


def books(db):
    """What the ledger says of the release and of what it cost."""
    return (db.execute("SELECT state, clip, sensitivity, granularity FROM dp_release WHERE name = 'n'").fetchall(),
            db.execute("SELECT tier, rate, delta FROM dp_charge WHERE release = 'n'").fetchall(),
            db.execute("SELECT tier, stddev FROM dp_value WHERE release = 'n'").fetchall())


@pytest.fixture(scope="module")
def as_asked(tmp_path_factory):
    """What the ledger says after dp_release()."""
    db = make(tmp_path_factory.mktemp("asked") / "a.db")
    one(db, "SELECT " + RELEASE)
    return books(db)


def step_and_leave(raw, sql, leave):
    statement = raw.prepare(sql)
    raw.step(statement)
    leave(statement)


def in_transaction(begin, end):
    def run(raw, sql):
        for word in begin:
            raw.one(word)
        step_and_leave(raw, sql, raw.finalize)
        for word in end:
            raw.one(word)
    return run


def fails(raw, sql):
    """The result cannot be computed when all rows are aggregated."""
    call = re.search(re.escape(CALL) + r"( FILTER \(WHERE 1\))?", sql)[0]
    with pytest.raises(sqlite3.OperationalError, match="integer overflow"):
        raw.one(sql.replace(call, f"abs(-9223372036854775808 + 0 * length({call}))"))


ENDS = {"finalized": lambda raw, sql: step_and_leave(raw, sql, raw.finalize),
        "reset": lambda raw, sql: step_and_leave(raw, sql, lambda s: (raw.reset(s), raw.finalize(s))),
        "twice": lambda raw, sql: step_and_leave(raw, sql, lambda s: (raw.reset(s), raw.step(s), raw.step(s), raw.finalize(s))),
        "to its end": lambda raw, sql: step_and_leave(raw, sql, lambda s: (raw.step(s), raw.step(s), raw.finalize(s))),
        "rollback": in_transaction(["BEGIN"], ["ROLLBACK"]), "immediate": in_transaction(["BEGIN IMMEDIATE"], ["ROLLBACK"]),
        "savepoint": in_transaction(["BEGIN", "SAVEPOINT s"], ["ROLLBACK TO s", "COMMIT"]), "commit": in_transaction(["BEGIN"], ["COMMIT"]),
        "error": fails}


@pytest.mark.sample(30)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("form", FORMS)
def test_however_the_statement_ends_the_release_is_as_asked(path, as_asked, form, end):
    make(path).close()
    raw = Raw(path)
    ENDS[end](raw, form.format(CALL))
    assert raw.close() == raw.OK
    db = connect(path)
    assert books(db) == as_asked
    value = one(db, "SELECT value FROM dp_value WHERE release = 'n'")
    assert one(db, f"SELECT {CALL}{' FILTER (WHERE 1)' * ('FILTER' in form)} FROM visits") == value
    assert one(db, "SELECT dp_release('clinic', 'sum', sql, '{\"name\":\"n\",\"clip\":5}') FROM dp_release WHERE name = 'n'") == value
    assert books(db) == as_asked and one(db, "SELECT dp_verify()") == "ok"


# ---- interrupts ------------------------------------------------------------------------------------------------------


def stopped(path, sql, after):
    """Runs a statement that is interrupted after some steps of SQLite. Returns whether it was, and what the ledger then says."""
    db, left = make(path), [after]

    def count():
        left[0] -= 1
        return left[0] < 0

    db.set_progress_handler(count, 5)
    try:
        db.execute(sql).fetchall()
    except sqlite3.OperationalError as error:
        assert "interrupted" in str(error)
    else:
        left[0] = max(left[0], 0)
    db.set_progress_handler(None, 0)
    states = one(db, "SELECT (SELECT group_concat(state) FROM dp_release WHERE name = 'n')"), one(db, "SELECT count(*) FROM dp_charge WHERE release = 'n'")
    again = f"SELECT {CALL} FROM visits"
    if states[0] == "failed":
        assert "release 'n' failed" in refused(db, again)
        one(db, "SELECT dp_discard('n')")
    value = one(db, "SELECT value FROM dp_value WHERE release = 'n'") if states[0] == "released" else None
    assert value in (None, one(db, again)) and one(db, "SELECT dp_verify()") == "ok"
    return left[0] < 0, states


@pytest.mark.parametrize("form", ["SELECT {} FROM visits", "INSERT INTO kept SELECT {} FROM visits", "SELECT x, 1 FROM many, (SELECT {} AS x FROM visits)"])
def test_an_interrupt_at_any_step_leaves_the_charge(tmp_path, form):
    """Nothing was charged, or the release failed and its charge stays, or its value is stored: as for dp_release()."""
    seen = set()
    for number in itertools.count():
        after = random.randrange(6) if number < 6 else int(6 * 1.25 ** (number - 5))
        was_stopped, states = stopped(tmp_path / f"{number}.db", form.format(CALL), after)
        assert states in [(None, 0), ("failed", 1), ("released", 1)]
        seen.add(states)
        if not was_stopped:
            break
    assert states == ("released", 1) and {(None, 0), ("released", 1)} <= seen


# ---- kills -----------------------------------------------------------------------------------------------------------


def test_a_kill_at_any_write_leaves_the_same_as_of_dp_release(tmp_path):
    """An aggregate writes what dp_release() writes, in the same order, and the charge comes first. The test kills it at every third write,
    and begins with one of the first three."""
    left, first = {}, random.randrange(1, 4)
    for name, sql in (("aggregate", f"SELECT {CALL} FROM visits"), ("release", "SELECT " + RELEASE)):
        folder = tmp_path / name
        folder.mkdir()
        make(folder / "a.db").close()
        left[name] = []
        for _, path, done in killed_at_writes(folder / "a.db", itertools.count(first, 3), lambda path, sql=sql: one(connect(path), sql)):
            db = connect(path)
            (states, paid, values), ok = books(db), one(db, "SELECT dp_verify()")
            left[name].append((states, paid, values, ok, done))
            assert ok == "ok" and (not values or paid) and len(paid) == len(states)
            if values:
                assert one(db, sql) == one(db, "SELECT value FROM dp_value")
            elif states:
                assert "not finished" in refused(db, sql) and one(db, "SELECT dp_discard('n')") == "n"
            db.close()
    assert left["aggregate"] == left["release"] and len(left["release"]) > 7
    assert {(len(paid), len(values)) for _, paid, values, _, _ in left["release"]} == {(0, 0), (1, 0), (1, 1)}
