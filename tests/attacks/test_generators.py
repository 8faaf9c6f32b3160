"""Attack: generators that can be predicted, set, or copied by fork(). An attacker who knows the noise knows the
answer.

To compare noise that must differ, the tests compare four releases at once. A release is an integer with a stddev of at least a
million steps, so four pairs of releases are equal by chance with probability (3e-7)^4 < 1e-26.
"""

import ctypes
import random
import time

import pytest

from attack import system
from conftest import Raw, run

FOUR = "[one(db, \"SELECT dp_count('inner', x, 1) FROM people\") for _ in range(4)]"


def guess(value, seeds):
    """Returns the integer answers that fit `value` for at least one of the seeds."""
    candidates = (value - random.Random(seed).gauss(0, 100) for seed in seeds)
    return {round(answer) for answer in candidates if abs(answer - round(answer)) < 1e-9}


def test_a_naive_seed_of_the_clock_is_guessed():
    now = int(time.time())
    value = 1234 + random.Random(now - 1000).gauss(0, 100)
    assert 1234 in guess(value, range(now - 3600, now))


def test_naive_children_of_a_fork_share_their_noise():
    output = run("""
        import random
        rng = random.Random()
        for answer in (10, 11):
            child = os.fork()
            if child == 0:
                print(repr(answer + rng.gauss(0, 100)), flush=True)
                os._exit(0)
            os.waitpid(child, 0)
        """)
    first, second = map(float, output.split())
    assert abs(second - first - 1) < 1e-9


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "people.db"
    system(path, {"inner": 1.0}).close()
    return path


def test_children_of_a_fork_have_noise_of_their_own(path):
    """The parent draws noise before and after the fork, and three children open the ledger again. All noise differs."""
    output = run(f"""
        db = connect(sys.argv[1])
        before = {FOUR}
        for i in range(3):
            child = os.fork()
            if child == 0:
                db = connect(sys.argv[1])
                print(*map(repr, {FOUR}), flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        print(*map(repr, {FOUR}))
        print(*map(repr, before))
        """, path)
    lines = output.splitlines()
    assert len(lines) == 5 and len(set(lines)) == 5


@pytest.mark.parametrize("ledger", ["file", "memory"])
def test_a_connection_that_was_forked_gives_nothing(path, ledger):
    """A child process cannot release on the parent's connection. This matters most for a ledger in memory, because the child has
    a copy of the ledger with its own budget."""
    output = run("""
        db = connect(sys.argv[1])
        if sys.argv[1] == ":memory:":
            add_visits(db)
            db.execute("ALTER TABLE visits RENAME TO people")
            db.execute("ALTER TABLE people RENAME patient TO unit")
            db.execute("ALTER TABLE people RENAME minutes TO x")
            make_ledger(db, "{}", "people, unit")
            add_tiers(db, [("inner", 1.0, 100.0, 1e-6)])
        count = "SELECT dp_count('inner', x, 1, ?) FROM people"
        value = one(db, count, "a")
        child = os.fork()
        if child == 0:
            for name in ("a", "b", None):
                assert "fork()" in refused(db, count, name)
            assert "fork()" in refused(db, "SELECT dp_release('inner', 'count', 'SELECT x FROM people', json_object('clip', 1))")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert one(db, count, "a") == value
        print(one(db, "SELECT count(*) FROM dp_charge"), one(db, "SELECT dp_verify()"))
        """, path if ledger == "file" else ":memory:")
    assert output.split() == ["1", "ok"]


# ---- generators that others can set -------------------------------------------------------------------------

PRNG_SAVE, PRNG_RESTORE = 5, 6  # codes of sqlite3_test_control()


def four_times(raw, sql):
    values = []
    for _ in range(4):
        statement = raw.prepare(sql)
        assert raw.step(statement) == raw.ROW
        values.append(raw.double(statement))
        raw.finalize(statement)
    return values


def test_sqlites_generator_can_be_set_and_is_not_the_source(path):
    """sqlite3_test_control() resets random(). The naive answer then repeats, and the answer of diffuse does not."""
    raw = Raw(path)
    control = ctypes.CDLL("libsqlite3.so.0").sqlite3_test_control
    answers = {}
    for sql in ("SELECT count(DISTINCT unit) + random() / 1e18 FROM people",
                "SELECT dp_count('inner', x, 1) FROM people"):
        four_times(raw, sql)  # the generator is seeded
        control(PRNG_SAVE)
        before = four_times(raw, sql)
        control(PRNG_RESTORE)
        answers[sql] = before == four_times(raw, sql)
    assert list(answers.values()) == [True, False]
    raw.close()


def test_seeds_of_the_environment_and_of_libc_change_nothing(path):
    """Two processes draw different noise although rand(), random(), drand48(), GSL and Python have the same seeds."""
    outputs = [run(f"""
        import ctypes, random
        for name in ("GSL_RNG_SEED", "GSL_RNG_TYPE", "PYTHONHASHSEED"): os.environ[name] = "mt19937" if "TYPE" in name else "1"
        libc = ctypes.CDLL(None)
        libc.srand(1); libc.srandom(1); libc.srand48(1); random.seed(1)
        db = connect(sys.argv[1])
        print(libc.rand(), random.random())
        print(*map(repr, {FOUR}))
        """, path).splitlines() for _ in range(2)]
    assert outputs[0][0] == outputs[1][0] and outputs[0][1] != outputs[1][1]
