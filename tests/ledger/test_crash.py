"""After kill -9, interrupts, errors, fork() and lost files, the charges remain, and no second value is drawn for one charge."""

import ctypes
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

from conftest import connect, create, INIT, once_charged, one, PATIENCE, Raw, refused, run, start, SUM

VALUE_SUM = "SELECT dp_sum('clinic', minutes, 10, 'a') FROM visits"
VALUE_RELEASE = """SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{"clip":10,"name":"a"}')"""
FORMS = pytest.mark.parametrize("form", [VALUE_SUM, VALUE_RELEASE], ids=["aggregate", "dp_release"])


def state(connection):
    return one(connection, "SELECT state FROM dp_release WHERE id = 1")


def charges(connection):
    return one(connection, "SELECT count(*) FROM dp_charge")


def assert_no_value(connection, form=VALUE_SUM, expected="failed", message="release 'a' failed"):
    """Checks that release 1, named 'a', is charged, stays in this state and has no value. After dp_discard(), the name stands for a new
    release."""
    assert state(connection) == expected and charges(connection) == 1
    assert one(connection, "SELECT count(*) FROM dp_value") == 0
    for sql in (form, "SELECT dp_diffuse('a', 'public')", "SELECT dp_diffuse('a', 'clinic')"):
        assert message in refused(connection, sql)
    assert one(connection, "SELECT dp_verify()") == "ok" and charges(connection) == 1
    one(connection, "SELECT dp_discard('a')")
    assert isinstance(one(connection, SUM, "a"), float)
    assert charges(connection) == 2 and one(connection, "SELECT dp_verify()") == "ok"


# ---- kill -9 --------------------------------------------------------------------------------------


@FORMS
def test_killed_while_it_reads_the_charge_is_there_and_the_name_is_not_finished(path, form):
    create(path).close()
    run("""
        db = connect(sys.argv[1])
        once_charged(db, sys.argv[1], lambda: os.kill(os.getpid(), signal.SIGKILL))
        one(db, sys.argv[2])
        """, path, form, expect=-signal.SIGKILL)
    shutil.copy(f"{path}-ledger", f"{path}-alone")  # without the other files beside it
    assert one(sqlite3.connect(f"{path}-alone"), "SELECT count(*) FROM dp_charge") == 1
    db = connect(path)
    assert one(db, "SELECT spent_rate FROM dp_budget WHERE tier = 'clinic'") > 0
    assert "dp_discard" in refused(db, form) and "dp_discard" in refused(db, "SELECT dp_diffuse('a', 'public')")
    assert_no_value(db, form, "charged", "not finished")


@FORMS
def test_killed_after_the_answer_the_same_value_is_replayed(path, form):
    create(path).close()
    printed = run("""
        db = connect(sys.argv[1])
        print(repr(one(db, sys.argv[2])), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """, path, form, expect=-signal.SIGKILL)
    db = connect(path)
    assert one(db, form) == float(printed)
    assert state(db) == "released" and charges(db) == 1


def test_killed_in_dp_init_the_next_dp_init_works(path):
    sqlite3.connect(path).executescript("CREATE TABLE visits(patient, minutes)")
    run("""
        db = connect(sys.argv[1])
        def kill(action, name, *_):
            if action == sqlite3.SQLITE_CREATE_TABLE and name == "dp_ledger_id": os.kill(os.getpid(), signal.SIGKILL)
            return sqlite3.SQLITE_OK
        db.set_authorizer(kill)
        one(db, INIT)
        """, path, expect=-signal.SIGKILL)
    db = connect(path)
    assert one(db, INIT) == f"{path}-ledger"
    assert one(db, "SELECT dp_verify()") == "ok"


def test_killed_at_random_moments_no_answer_is_lost_and_no_charge(path):
    create(path).close()
    moments = random.Random()
    answers = {}
    for attempt in range(30):
        process = start("""
            db = connect(sys.argv[1])
            for i in range(10**6):
                name = f"{sys.argv[2]}-{i}"
                print(name, repr(one(db, SUM, '{"weight":0.001,"name":"%s"}' % name)), flush=True)
            """, path, attempt)
        line = process.stdout.readline()
        assert line, process.stderr.read()
        time.sleep(moments.uniform(0, 0.012))
        process.kill()
        output = line + process.stdout.read()
        process.communicate()
        for line in output.splitlines(keepends=True):
            if line.endswith("\n"):
                name, value = line.split()
                answers[name] = float(value)
    assert len(answers) >= 30
    db = connect(path)
    assert one(db, "SELECT dp_verify()") == "ok"
    before = charges(db)
    assert len(answers) <= before == one(db, "SELECT count(*) FROM dp_release")
    stored = dict(db.execute("SELECT release, value FROM dp_value WHERE tier = 'clinic'"))
    for name, value in answers.items():
        assert stored[name] == value
        assert one(db, SUM, '{"weight":0.001,"name":"%s"}' % name) == value
    assert charges(db) == before
    states = dict(db.execute("SELECT state, count(*) FROM dp_release GROUP BY state"))
    assert states.get("charged", 0) <= 30 and set(states) <= {"charged", "released"}


# ---- interrupts and errors ------------------------------------------------------------------------


@FORMS
def test_an_interrupt_from_a_thread_leaves_the_release_failed(db, path, form):
    charged, done = threading.Event(), threading.Event()

    def interrupt():
        assert charged.wait(PATIENCE)
        db.interrupt()
        done.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    once_charged(db, path, lambda: charged.set() or not done.wait(PATIENCE))
    assert "interrupted" in refused(db, form)
    thread.join()
    db.set_progress_handler(None, 0)
    assert_no_value(db, form)


@FORMS
def test_a_progress_handler_that_aborts_leaves_the_release_failed(db, path, form):
    once_charged(db, path, lambda: True)
    message = refused(db, form)
    db.set_progress_handler(None, 0)
    assert "interrupted" in message
    assert_no_value(db, form)


def test_an_interrupt_after_the_last_row_changes_nothing(db):
    """The release was made, stored and sealed when SQLite handed over the first row."""
    cursor = db.execute(VALUE_SUM)  # fetches the row
    db.interrupt()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        cursor.fetchall()
    assert db.execute("SELECT state FROM dp_release").fetchall() == [("released",)] and one(db, "SELECT dp_verify()") == "ok"


def test_a_statement_that_is_dropped_after_its_row_keeps_its_release(path):
    """Many drivers fetch one row and then finalize the statement without stepping to its end."""
    create(path).close()
    raw = Raw(path)
    statement = raw.prepare(SUM.replace("?", "'a'"))
    assert raw.step(statement) == raw.ROW
    value = raw.double(statement)
    raw.finalize(statement)
    assert raw.close() == raw.OK
    db = connect(path)
    assert state(db) == "released" and one(db, SUM, "a") == value


# ---- fork, deleted, replaced ----------------------------------------------------------------------


def test_a_child_after_fork_is_refused_and_the_parent_goes_on(path):
    create(path).close()
    output = run("""
        db = connect(sys.argv[1])
        first = one(db, SUM, "a")
        child = os.fork()
        if child == 0:
            for sql in (SUM.replace("?", "'a'"), SUM.replace("?", "'b'"), "SELECT dp_diffuse('a', 'public')",
                        "SELECT * FROM dp_budget", "SELECT dp_verify()", INIT, "SELECT dp_discard('a')"):
                print(refused(db, sql), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert one(db, SUM, "a") == first
        one(db, SUM, "b")
        assert one(db, "SELECT dp_verify()") == "ok"
        print(one(db, "SELECT count(*) FROM dp_charge"))
        """, path)
    *messages, count = output.splitlines()
    assert count == "2" and len(messages) == 7
    for message in messages:
        assert "fork()" in message and "reconnect" in message, message


@pytest.mark.parametrize("first", ["SELECT dp_verify()", INIT])
def test_a_child_that_ends_as_programs_do_takes_nothing_from_the_parent(path, first):
    """Two children close their copies of the connection. The second child first tries to use the ledger, and is
    refused."""
    create(path).close()
    output = run("""
        db = connect(sys.argv[1])
        value = one(db, SUM, "a")
        for look in (False, True):
            child = os.fork()
            if child == 0:
                if look: assert "fork()" in refused(db, sys.argv[2])
                db.close()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert one(db, SUM, "a") == value
            one(db, SUM, None)
        print(one(db, "SELECT count(*) FROM dp_charge"), one(db, "SELECT dp_verify()"))
        """, path, first)
    assert output.split() == ["3", "ok"]


@pytest.mark.plain
@pytest.mark.parametrize("fork", ["fork", "_Fork"])  # _Fork() does not call the handlers of pthread_atfork()
@pytest.mark.parametrize("memory", [False, True], ids=["file", "memory"])
def test_a_child_that_has_the_number_of_its_parent_is_refused(path, monkeypatch, fork, memory):
    """The child has the same process id as its parent, as in a PID namespace of its own. If the child were not refused, both
    processes would draw the outer publication of a release for one charge."""
    if not hasattr(ctypes.CDLL(None), fork):
        pytest.skip(f"this C library has no {fork}()")
    shim = path.with_name("number.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", shim], input="int getpid(void) { return 42; }",
                   check=True, text=True)
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    lines = run("""
        import ctypes
        path, fork = sys.argv[1:]
        assert os.getpid() == 42
        db = create(path)
        one(db, SUM, "a")
        child = getattr(ctypes.PyDLL(None), fork)()
        if child: assert ctypes.CDLL(None).waitpid(child, None, 0) == child
        try:
            print("gave", one(db, "SELECT dp_diffuse('a', 'public')"), flush=True)
        except sqlite3.Error as error:
            print(error, flush=True)
        if child == 0: os._exit(0)
        assert one(db, "SELECT dp_verify()") == "ok"
        """, ":memory:" if memory else path, fork).splitlines()
    assert sorted(line.split()[0] for line in lines) == ["dp_diffuse:", "gave"], lines
    assert any("opened before fork() (reconnect)" in line for line in lines), lines


def test_a_child_that_reconnects_after_fork_works(path):
    create(path).close()
    output = run("""
        db = connect(sys.argv[1])
        first = one(db, SUM, "a")
        child = os.fork()
        if child == 0:
            own = connect(sys.argv[1])
            print(one(own, SUM, "a") == first and isinstance(one(own, SUM, "b"), float), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        one(db, SUM, "c")
        print(one(db, "SELECT count(*) FROM dp_charge"), one(db, "SELECT dp_verify()"))
        """, path)
    assert output.split() == ["True", "3", "ok"]


def test_children_that_fork_before_the_ledger_is_open_have_noise_of_their_own(path):
    create(path).close()
    output = run("""
        db = connect(sys.argv[1])
        one(db, "SELECT dp_sigma(1.0, 1)")
        children = []
        for i in range(4):
            child = os.fork()
            if child == 0:
                own = connect(sys.argv[1])
                print(*(repr(one(own, SUM, None)) for _ in range(3)), flush=True)
                os._exit(0)
            children.append(child)
        for child in children: assert os.waitpid(child, 0)[1] == 0
        """, path)
    assert len(set(output.splitlines())) == 4  # a line has three numbers, so no two lines are equal by chance (1e-18)


def lose(path, how):
    ledger = f"{path}-ledger"
    if how == "deleted":
        os.unlink(ledger)
    elif how == "moved":
        os.rename(ledger, f"{path}-saved")
    else:  # a copy of the ledger replaces it
        shutil.copy(ledger, f"{path}-copy")
        os.rename(f"{path}-copy", ledger)


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_ledger_that_is_lost_while_open_refuses(db, path, how):
    one(db, SUM, "a")
    lose(path, how)
    for sql in (SUM.replace("?", "'a'"), SUM.replace("?", "'b'"), "SELECT dp_diffuse('a', 'public')", INIT,
                "SELECT dp_verify()", "SELECT * FROM dp_budget", "SELECT dp_tier('x', 1, 8, 1e-6)"):
        message = refused(db, sql)
        assert "moved or deleted" in message, message


@FORMS
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_ledger_that_is_lost_while_a_release_reads_gives_no_value(db, path, form, how):
    once_charged(db, path, lambda: lose(path, how))
    assert "moved or deleted" in refused(db, form)
    db.set_progress_handler(None, 0)
    if how == "replaced":
        assert state(connect(path)) == "charged"


@FORMS
def test_a_full_disk_gives_no_value_and_keeps_the_charge(path, form):
    """A limit on the file size simulates a full disk: there is room for the charge but not for the value."""
    create(path).close()
    output = run("""
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        db = connect(sys.argv[1])
        once_charged(db, sys.argv[1], lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY)))
        print(refused(db, sys.argv[2]))
        """, path, form)
    assert "privacy ledger" in output
    db = connect(path)
    assert charges(db) == 1 and state(db) in ("charged", "failed")
    assert one(db, "SELECT count(*) FROM dp_value") == 0 and one(db, "SELECT dp_verify()") == "ok"


def test_a_disk_that_is_full_for_outer_tiers_is_named(path):
    """The values of one tier fit SQLite's cache and those of all tiers do not, so the publications at outer tiers fail first."""
    create(path).close()
    batch = {"tier": "clinic", "kind": "group_count", "sql": "SELECT minutes FROM visits", "diffuse": ["region", "public"],
             "options": {"name": "a", "clip": 1, "keys": list(range(8000))}}
    output = run("""
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        db = connect(sys.argv[1])
        once_charged(db, sys.argv[1], lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400000, resource.RLIM_INFINITY)))
        print(refused(db, "SELECT dp_batch(?)", sys.argv[2]))
        """, path, json.dumps([batch]))
    assert "privacy ledger" in output and "memory" not in output
    assert state(connect(path)) in ("failed", "charged")  # charged: the disk was too full for this word, too
