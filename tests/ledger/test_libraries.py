"""Tests several SQLite libraries in one process; Python's sqlite3 and apsw, for example, each have a library of their
own. One copy of the shared object serves one library. The transactions of two copies exclude each other."""

import fcntl
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading

import pytest

from conftest import connect, create, EXTENSION, HELPERS, INIT, ledger_of, one, PATIENCE, refused, run, start, SUM, when_looking


def sqlite_library():
    """Returns the file of the SQLite library that this process uses."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "libsqlite3" in line:
            return pathlib.Path(line.split(maxsplit=5)[5])
    pytest.skip("no SQLite library to make a copy of")


@pytest.fixture
def second(tmp_path):
    """Makes a second SQLite library: a copy of the first under another name."""
    return shutil.copy(sqlite_library(), tmp_path / "other.so")


@pytest.mark.plain
def test_a_second_library_is_refused_and_the_first_goes_on(path, second):
    create(path).close()
    said = run("""
        db = connect(sys.argv[1])
        one(db, SUM, "a")
        for _ in range(2):
            try:
                print("loaded", Raw(sys.argv[1], sys.argv[2]).one("SELECT dp_verify()"))
            except sqlite3.Error as error:
                print(error)
        again = connect(sys.argv[1])
        assert one(again, SUM, "a") == one(db, SUM, "a")
        print(one(db, "SELECT dp_verify()"))
        """, path, second).splitlines()
    refusal = ("error during initialization: diffuse is in use by another SQLite library of this process (load a copy of "
               "the file, under another name)")
    assert said == [refusal, refusal, "ok"]


@pytest.mark.plain
def test_the_second_library_can_load_when_the_first_has_finished(second):
    assert run("""
        connect().close()
        print(Raw(":memory:", sys.argv[1]).one("SELECT dp_version()"))
        """, second) == one(connect(), "SELECT dp_version()") + "\n"


def test_threads_of_one_library_load_at_the_same_time():
    results = run("""
        barrier = threading.Barrier(8)
        def load_again():
            barrier.wait()
            print(one(connect(), "SELECT dp_version()") + ";", end="", flush=True)
        threads = [threading.Thread(target=load_again) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """)
    assert results == (one(connect(), "SELECT dp_version()") + ";") * 8


# ---- locks ----------------------------------------------------------------------------------------

ROOM = [("clinic", 1e-6, 50.0, 1e-6)]  # pays for all releases below
RELEASES = """
def releases(connect_again, count):
    # Opens the ledger anew for every release, because closing a file is what drops locks.
    for _ in range(count):
        try:
            db = connect_again()
            answers.append(db.one("SELECT dp_sum('clinic', minutes, 10) FROM visits"))
            assert db.one("SELECT count(*) > 0 FROM dp_charge") == "1"
            db.close()
        except Exception as error:
            answers.append(error)
answers = []
"""


@pytest.mark.plain
def test_two_copies_in_two_libraries_lose_nothing(path, second, tmp_path):
    create(path, tiers=ROOM).close()
    copy = shutil.copy(EXTENSION + ".so", tmp_path / "diffuse.so")
    said = run(RELEASES + textwrap.dedent("""
        path, second, copy = sys.argv[1:]
        threads = [threading.Thread(target=releases, args=(again, 40)) for again in
                   [lambda: Raw(path), lambda: Raw(path, second, copy)] * 3]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print([answer for answer in answers if isinstance(answer, Exception)], len(answers))
        """), path, second, copy)
    assert said == "[] 240\n"
    db = connect(path)
    assert one(db, "SELECT count(*) FROM dp_charge") == 240 and one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.plain
@pytest.mark.parametrize("vfs", ["unix-dotfile", "unix-none", "unix-excl"])
@pytest.mark.sample(1)
def test_hosts_with_another_default_vfs_lose_nothing(path, vfs):
    create(path, tiers=ROOM).close()
    code = RELEASES + textwrap.dedent("""
        path, vfs = sys.argv[1:]
        c = ctypes.CDLL("libsqlite3.so.0")
        c.sqlite3_vfs_find.restype = ctypes.c_void_p
        if vfs: assert c.sqlite3_vfs_register(ctypes.c_void_p(c.sqlite3_vfs_find(vfs.encode())), 1) == 0
        print("ready", flush=True)
        sys.stdin.readline()
        # The database itself is only read, and without locks: they are not what is tested.
        releases(lambda: Raw(f"file:{path}?nolock=1"), 60)
        print([answer for answer in answers if isinstance(answer, Exception)], len(answers))
        """)
    racers = [start(code, path, name, stdin=subprocess.PIPE) for name in ("", vfs, vfs)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n", racer.stderr.read()
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    assert [racer.communicate(timeout=PATIENCE)[0] for racer in racers] == ["[] 60\n"] * 3
    db = connect(path)
    assert one(db, "SELECT count(*) FROM dp_charge") == 180 and one(db, "SELECT dp_verify()") == "ok"


def test_the_lock_is_a_file_that_is_there_while_it_is_held(path):
    """A lock file that a killed process left is used and deleted. If another process holds the lock, the extension waits."""
    create(path).close()
    lock = path.with_name(path.name + "-ledger-lock")
    assert not lock.exists()
    lock.write_bytes(b"")
    db = connect(path)
    assert one(db, "SELECT count(*) FROM dp_tier") == 3 and not lock.exists()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        looks = []
        when_looking(db, lambda: looks.append(1) or len(looks) != 3 or fcntl.flock(held, fcntl.LOCK_UN))
        one(db, SUM, "a")
        assert len(looks) >= 3
    assert not lock.exists()


def test_the_lock_has_the_permissions_of_the_ledger(path):
    create(path).close()
    os.chmod(f"{path}-ledger", 0o660)
    ledger, db, modes = ledger_of(path), connect(path), []
    ledger.execute("BEGIN IMMEDIATE")

    def look():  # the extension holds the lock and waits for SQLite's
        modes.append(os.stat(f"{path}-ledger-lock").st_mode & 0o777)
        if len(modes) == 3:
            ledger.execute("ROLLBACK")

    when_looking(db, look)
    one(db, SUM, "a")
    assert len(modes) >= 3 and set(modes) == {0o660}, modes


def test_a_lock_that_cannot_be_made_is_an_error_before_anything_is_charged(path):
    db = create(path)
    os.symlink(path, f"{path}-ledger-lock")
    message = refused(db, SUM, "a")
    assert message.startswith("dp_sum: privacy ledger ") and "cannot lock " in message and "-ledger-lock" in message
    os.unlink(f"{path}-ledger-lock")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


def test_dp_init_reads_a_ledger_under_the_lock(path):
    """Without the lock file, a reader would not see that another SQLite library is writing, and would roll back the
    transaction of this library."""
    db = create(path)
    with open(f"{path}-ledger-lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        when_looking(db, db.interrupt)
        assert "interrupted" in refused(db, INIT)
    assert one(db, INIT) == f"{path}-ledger"


def test_a_file_in_the_place_of_the_lock_is_not_deleted(path):
    db = create(path)
    lock = path.with_name(path.name + "-ledger-lock")
    lock.write_text("notes")
    os.chmod(lock, 0o640)
    message = refused(db, SUM, "a")
    assert "cannot lock " in message and "move this file away" in message
    assert lock.read_text() == "notes" and lock.stat().st_mode & 0o777 == 0o640
    lock.unlink()
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


# ---- waiting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("holder", ["lock", "sqlite"])
@pytest.mark.parametrize("means", ["interrupt", "progress handler"])
def test_waiting_for_a_lock_ends_on_an_interrupt(path, holder, means):
    create(path).close()
    db = connect(path)
    one(db, "SELECT count(*) FROM dp_tier")
    other = ledger_of(path)
    with open(f"{path}-ledger-lock", "w") as held:
        if holder == "lock":
            fcntl.flock(held, fcntl.LOCK_EX)
        else:
            other.execute("BEGIN IMMEDIATE")
        looks, on_time = [], threading.Event()
        when_looking(db, lambda: looks.append(1) or len(looks) != 3 or on_time.set())
        if means == "interrupt":
            thread = threading.Thread(target=lambda: on_time.wait(PATIENCE) and db.interrupt())
            thread.start()
        else:
            db.set_progress_handler(lambda: len(looks) >= 3, 1000)
        message = refused(db, SUM, "a")  # without the interrupt, it would say that the ledger is locked
        on_time.set()
        db.set_progress_handler(None, 0)
    other.close()
    assert "interrupted" in message and len(looks) >= 3, (message, looks)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


@pytest.mark.slow  # waits for 5 seconds
def test_signals_do_not_shorten_the_wait(path):
    create(path).close()
    assert run("""
        path = sys.argv[1]
        db = connect(path)
        one(db, "SELECT count(*) FROM dp_tier")
        other = sqlite3.connect(f"{path}-ledger", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        began = time.monotonic()
        threading.Timer(6, lambda: other.execute("ROLLBACK")).start()
        one(db, SUM, "a")
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert time.monotonic() - began > 5
        print("released")
        """, path) == "released\n"


# ---- an SQLite for one thread ---------------------------------------------------------------------


def test_an_sqlite_without_mutexes(tmp_path):
    """An SQLite that is built with SQLITE_THREADSAFE=0 has null pointers in the API table in place of the functions of mutexes."""
    source = (HELPERS / "capture.c").read_text().replace(
        "old.libversion_number = old_version;",
        "(void)old_version, old.mutex_alloc = 0, old.mutex_enter = 0, old.mutex_free = 0, old.mutex_leave = 0, old.mutex_try = 0;")
    (tmp_path / "capture.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "capture.c"), "-o", str(tmp_path / "capture.so")], check=True)
    ask = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[2], isolation_level=None)
db.enable_load_extension(True)
db.load_extension(sys.argv[1])
db.execute("CREATE TABLE visit(patient INT, minutes)")
db.execute("INSERT INTO visit VALUES (1, 2), (2, 3)")
for sql in ("dp_init()", "dp_protect('visit', 'patient'), dp_tier('t', 1e6, 1e12, 1e-6)", "dp_grant('g', 't', 2)",
            "dp_release('t', 'sum', 'SELECT minutes FROM visit', '{\\"clip\\":9,\\"seconds\\":60}')", "dp_guard('t', '{\\"ask\\":\\"g\\"}')",
            "dp_release('t', 'sum', 'SELECT max(minutes) FROM visit', '{\\"clip\\":9,\\"name\\":\\"m\\"}')"):
    print(db.execute("SELECT " + sql).fetchone()[0])
"""
    done = subprocess.run([sys.executable, "-c", ask, str(tmp_path / "capture.so"), str(tmp_path / "a.db")], capture_output=True, text=True,
                          env={**os.environ, "DIFFUSE": EXTENSION + ".so"})
    assert done.returncode == 0, done.stderr
    assert [abs(float(number) - 5) < 1 for number in done.stdout.split()[3::2]] == [True, True]


# ---- a ledger that is overwritten -----------------------------------------------------------------


@pytest.mark.parametrize("change", ["other", "terms", "wal"])
def test_a_ledger_that_is_overwritten_in_place_is_refused(tmp_path, change):
    """The other ledger has the same number of pages and commits as the first, and only its rows differ."""
    first, other = tmp_path / "a.db", tmp_path / "b.db"
    db = create(first, '{"protects":"unit"}')
    create(other, '{"protects":"row"}' if change == "terms" else "{}").close()
    if change == "terms":
        plain = ledger_of(other)  # the same id
        plain.execute("UPDATE dp_ledger SET id = ?", ledger_of(first).execute("SELECT id FROM dp_ledger").fetchone())
        plain.close()
    if change == "wal":
        shutil.copy(f"{first}-ledger", f"{other}-ledger")
        plain = ledger_of(other)
        assert one(plain, "PRAGMA journal_mode = WAL") == "wal"
        plain.close()
    content = pathlib.Path(f"{other}-ledger").read_bytes()
    # Another process writes the file, because closing the file here would drop the locks of this process.
    subprocess.run([sys.executable, "-c", "import sys; f = open(sys.argv[1], 'r+b'); f.write(sys.stdin.buffer.read());"
                    " f.truncate()", f"{first}-ledger"], input=content, check=True)
    for sql in (SUM.replace("?", "'a'"), "SELECT * FROM dp_budget", "SELECT dp_verify()"):
        message = refused(db, sql)
        assert "was replaced while it was open (reconnect)" in message, message
    db.close()
    plain = ledger_of(first)
    assert one(plain, "SELECT count(*) FROM dp_charge") == 0
    assert one(plain, "SELECT protects FROM dp_ledger") == ("row" if change == "terms" else "unit")


# ---- long work ------------------------------------------------------------------------------------

PLANS = json.dumps([{"tier": "clinic", "kind": "histogram", "clip": 1, "lo": 0, "hi": 1, "bins": 65536, "weight": 1e-3}] * 100)
KEYS = json.dumps({"keys": list(range(600000))})


@pytest.mark.plain
@pytest.mark.parametrize("sql, argument", [
    ("SELECT dp_plan(?)", PLANS), ("SELECT dp_verify() OR ?", ""),
    pytest.param("SELECT dp_certificate() OR ?", "", marks=pytest.mark.slow)],
    ids=["dp_plan", "dp_verify", "dp_certificate"])
@pytest.mark.sample(1)
def test_long_work_ends_on_an_interrupt_and_holds_no_lock(path, sql, argument):
    db = create(path)
    if not argument:  # something to verify that takes seconds
        for i in range(6):
            one(db, "SELECT dp_histogram('clinic', minutes, 0, 10, 65536, '{\"clip\":1}') FROM visits")
    other, looks = connect(path), []

    def look():
        if not os.path.exists(f"{path}-ledger-lock"):
            looks.append(1)
        if len(looks) == 5:  # the work has gone on for a tenth of a second
            one(other, SUM, "meanwhile")
            db.interrupt()

    when_looking(db, look)
    assert "interrupted" in refused(db, sql, argument) and len(looks) == 5
    db.set_trace_callback(None)
    assert one(db, "SELECT count(*) FROM dp_release WHERE name = 'meanwhile'") == 1


@pytest.mark.plain
def test_a_release_of_many_keys_ends_on_an_interrupt(path):
    """(An interrupt after the charge: tests/ledger/test_crash.py.)"""
    db, looks = create(path), []
    when_looking(db, lambda: looks.append(1) or len(looks) != 3 or db.interrupt())
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        db.execute("SELECT dp_group_count('clinic', patient, 1, ?) FROM visits", (KEYS,)).fetchall()
    assert len(looks) == 3
    db.close()
    assert connect(path).execute("SELECT state FROM dp_release").fetchall() == []
