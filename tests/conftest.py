"""Helpers that all tests share: connections with the extension, a ready ledger, and snippets that run in processes of their own.
These processes import this file, too. So it does not import pytest, which would take a quarter of a second in each of them. Fixtures
and hooks are in helpers/plugin.py.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap

# SQLite counts its memory under a lock, at every allocation: a sixth of the time of a release. The processes of pytest therefore do
# not count it. This must be said before Python initialises SQLite. Tests of limits of memory start processes of their own.
if "pytest" in sys.modules:
    with contextlib.suppress(OSError):
        ctypes.CDLL("libsqlite3.so.0").sqlite3_config(9, 0)  # SQLITE_CONFIG_MEMSTATUS

import sqlite3  # noqa: E402

if "OTHER_SETTINGS" in os.environ:  # make check-settings
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "helpers"))
    import other_settings
    other_settings.change_all()

pytest_plugins = ["plugin"]

HELPERS = pathlib.Path(__file__).parent / "helpers"

EXTENSION = str((pathlib.Path(os.environ.get("BUILD", "build")) / "diffuse").resolve())

PATIENCE = 600  # seconds; a process that runs longer than this has hung, even on a busy machine

# Three audiences with room for hundreds of releases: (name, rate, epsilon, delta), the innermost first.
TIERS = [("clinic", 0.004, 8.0, 1e-6), ("region", 0.001, 5.0, 1e-6), ("public", 0.0002, 3.0, 1e-6)]


def load(connection, extension=EXTENSION):
    connection.enable_load_extension(True)
    connection.load_extension(extension)
    connection.enable_load_extension(False)
    return connection


def connect(path=":memory:", extension=EXTENSION, **options):
    """Returns a connection with the extension. The test begins and ends transactions itself."""
    options.setdefault("isolation_level", None)
    options.setdefault("check_same_thread", False)
    return load(sqlite3.connect(str(path), **options), extension)


def one(connection, sql, *parameters):
    """Returns the first column of the first row."""
    return connection.execute(sql, parameters).fetchall()[0][0]


def refused(connection, sql, *parameters):
    """Runs a statement that must fail, and returns the error message."""
    try:
        rows = connection.execute(sql, parameters).fetchall()
    except sqlite3.Error as error:
        return str(error)
    raise AssertionError(f"no error, but {rows}: {sql}")


def when_reading(connection, action):
    """Calls `action` whenever a question of this connection begins to read rows of protected tables. The question is charged then.
    (Before the charge it reads one row of each table, to see whether it may.)"""
    connection.set_trace_callback(lambda text: action() if 'FROM main."' in text and not text.endswith(" LIMIT 1") else None)


def once_charged(connection, path, action, condition="SELECT count(*) FROM dp_charge"):
    """Calls `action` once while a statement of this connection runs, as soon as the ledger meets the condition. SQLite then
    interrupts the statement if `action` returns a true value. The ledger is read without the extension, which would wait for its lock."""
    ledger, done = [], []

    def look():
        with contextlib.suppress(sqlite3.OperationalError):  # the ledger is locked for a moment
            if not ledger:
                ledger.append(sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True, timeout=0, isolation_level=None, check_same_thread=False))
            if not done and one(ledger[0], condition):
                done.append(True)
        if len(done) == 1:
            done.append(True)
            return action()

    connection.set_progress_handler(look, 1)


def when_looking(connection, action, at_reading=lambda: None):
    """Calls `action` whenever the extension looks whether its caller is interrupted: every 20 milliseconds while it waits for a lock
    or computes (ext/ledger/connection.c). Calls `at_reading` when a question begins to read protected rows. What they raise is lost."""
    def trace(text):
        if " LIMIT 300) SELECT count(*) FROM n" in text:
            action()
        elif 'FROM main."' in text and not text.endswith(" LIMIT 1"):
            at_reading()

    connection.set_trace_callback(trace)


@contextlib.contextmanager
def reading(connection):
    """Gives a list that gets an element whenever a question begins to read rows in the `with` block."""
    reads = []
    when_reading(connection, lambda: reads.append(True))
    yield reads
    connection.set_trace_callback(None)


def interrupted(connection, sql, *parameters):
    """Runs a statement that must fail, because its question is interrupted while it reads rows. Returns the error message."""
    with reading(connection) as reads:
        connection.set_progress_handler(lambda: len(reads) > 0, 1)
        message = refused(connection, sql, *parameters)
        connection.set_progress_handler(None, 0)
    assert reads and "interrupted" in message, message
    return message


def open_files(path=""):
    """Returns the names of this process's open files that contain `path`, each as often as it is open. Files of earlier tests may be
    closed at any time, so tests do not compare counts."""
    names = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(name for name in names if str(path) in name)


def add_tiers(connection, tiers=TIERS):
    for tier in tiers:
        connection.execute(f"SELECT dp_tier({','.join('?' * len(tier))})", tier).fetchall()


def add_visits(connection, rows=100):
    """Creates visits(patient, minutes) with `rows` rows of rows/2 patients."""
    connection.execute("CREATE TABLE visits(patient INTEGER, minutes REAL)")
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
        " INSERT INTO visits SELECT i / 2, i % 7 FROM n", (rows,))


INIT = "SELECT dp_init()"


def make_ledger(connection, options="{}", *protected, public=()):
    """Makes a ledger and its policy. `protected` has arguments of dp_protect() for each table, as texts: "visits, patient" or "exam,
    visit, visits"; in a ledger that protects rows, the name of the table. Returns the connection."""
    connection.execute("SELECT dp_init(?)", (options,)).fetchall()
    for table in protected:
        arguments = [word.strip() for word in table.split(",")]
        connection.execute(f"SELECT dp_protect({','.join('?' * len(arguments))})", arguments).fetchall()
    for table in public:
        connection.execute("SELECT dp_public(?)", (table,)).fetchall()
    return connection


def one_row(connection, options="{}"):
    """Makes a ledger that protects a table t(unit) with one row, where the data do not matter."""
    connection.execute("CREATE TABLE t(unit)")
    connection.execute("INSERT INTO t VALUES (1)")
    return make_ledger(connection, options, "t, unit")


def create(path, options="{}", tiers=TIERS):
    """Makes a database with visits, a ledger that protects the patients of visits (or its rows), and tiers."""
    connection = connect(path)
    add_visits(connection)
    make_ledger(connection, options, "visits" if json.loads(options).get("protects") == "row" else "visits, patient")
    add_tiers(connection, tiers)
    return connection


def strict_json(text):
    """Parses JSON. Fails if an object has a name twice, or if the text contains NaN or Infinity."""
    def no_twins(pairs):
        assert len(pairs) == len(dict(pairs)), pairs
        return dict(pairs)

    def constant(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, object_pairs_hook=no_twins, parse_constant=constant)


GROUPED = ["count", "count_distinct", "sum", "avg", "var", "stddev", "quantile", "median", "histogram"]
# All kinds, in the order in which messages list them.
KINDS = ", ".join(GROUPED + ["bounds", "vec_sum", "vec_avg"] + [f"group_{name}" for name in GROUPED]
                  + [f"ou_{name}" for name in GROUPED + ["vec_sum", "vec_avg"]] + [f"ou_group_{name}" for name in GROUPED]
                  + ["choice", "response_count", "sgd"])


# dp_path joins the points and their coordinates. These triggers let a test edit this view like a table.
WRITABLE_PATH = """
    CREATE TEMP TRIGGER dp_path_insert INSTEAD OF INSERT ON main.dp_path BEGIN
      INSERT INTO dp_point(release_id, release, tier, clock) VALUES (new.release_id, new.release, new.tier, new.clock)
        ON CONFLICT (release_id, tier) DO UPDATE SET release = new.release, clock = new.clock;
      INSERT INTO dp_coordinate SELECT id, new.key, new.component, new.value FROM dp_point
        WHERE release_id = new.release_id AND tier = new.tier;
    END;
    CREATE TEMP TRIGGER dp_path_update INSTEAD OF UPDATE ON main.dp_path BEGIN
      UPDATE dp_point SET release_id = new.release_id, release = new.release, tier = new.tier, clock = new.clock
        WHERE release_id = old.release_id AND tier = old.tier;
      UPDATE dp_coordinate SET key = new.key, component = new.component, value = new.value
        WHERE key = old.key AND component = old.component
        AND point = (SELECT id FROM dp_point WHERE release_id = new.release_id AND tier = new.tier);
    END;
    CREATE TEMP TRIGGER dp_path_delete INSTEAD OF DELETE ON main.dp_path BEGIN
      DELETE FROM dp_coordinate WHERE key = old.key AND component = old.component
        AND point = (SELECT id FROM dp_point WHERE release_id = old.release_id AND tier = old.tier);
      DELETE FROM dp_point WHERE release_id = old.release_id AND tier = old.tier
        AND NOT EXISTS (SELECT 1 FROM dp_coordinate WHERE point = id);
    END;"""


def ledger_of(path):
    """Opens the ledger file on a plain connection without the extension. The connection can edit the view dp_path."""
    ledger = sqlite3.connect(str(path) + "-ledger", isolation_level=None)
    if ledger.execute("SELECT 1 FROM sqlite_master WHERE name = 'dp_path'").fetchone():
        ledger.executescript(WRITABLE_PATH)
    return ledger


def edit(ledger, sql, parameters=()):
    """Runs SQL in the ledger file. Returns the number of rows that it changed. (For the view dp_path, rowcount is 0.)"""
    before = ledger.total_changes
    ledger.execute(sql, parameters)
    return ledger.total_changes - before


# The triggers that make tables append-only.
APPEND_ONLY = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"


SUM = "SELECT dp_sum('clinic', minutes, 10, ?) FROM visits"

PRELUDE = """
import ctypes, os, signal, sqlite3, sys, threading, time
sys.path.insert(0, {here!r})
from conftest import *
"""


def start(code, *arguments, **options):
    """Starts a Python snippet in a process of its own. The snippet can use all names of this file."""
    prelude = PRELUDE.format(here=str(pathlib.Path(__file__).parent))
    environment = dict(os.environ, BUILD=str(pathlib.Path(EXTENSION).parent))
    return subprocess.Popen([sys.executable, "-c", prelude + textwrap.dedent(code), *map(str, arguments)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                            **options)


def library(folder, source):
    """Compiles a library for LD_PRELOAD, from a file of tests/helpers."""
    path = folder / "library.so"
    subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-o", path, HELPERS / source, "-ldl"],
                   check=True)
    return str(path)


def run(code, *arguments, expect=0, **options):
    """Runs a snippet to its end and returns its output. `expect` is the expected exit code (-9: killed)."""
    process = start(code, *arguments, **options)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == expect, f"exit {process.returncode}\n{output}\n{errors}"
    return output


class KilledAtWrite:
    """Kills this process when SQLite makes its n-th system call that changes a file. SQLite's VFS finds its system calls in a
    table, and xSetSystemCall() replaces them there."""

    CALLS = {"write": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
             "pwrite": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long),
             "pwrite64": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long),
             "ftruncate": (ctypes.c_int, ctypes.c_int, ctypes.c_long), "unlink": (ctypes.c_int, ctypes.c_char_p)}

    def __init__(self, at):
        library, libc, self.left, self.kept = ctypes.CDLL("libsqlite3.so.0"), ctypes.CDLL(None), at, []
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
        vfs = library.sqlite3_vfs_find(None)
        slot = vfs + (3 * 4 + 7) // 8 * 8 + 16 * 8  # xSetSystemCall follows xCurrentTimeInt64
        setter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
            ctypes.c_void_p.from_address(slot).value)
        for name, types in self.CALLS.items():
            kind = ctypes.CFUNCTYPE(*types)
            call = kind(self.counting(kind((name, libc))))
            self.kept.append(call)
            setter(vfs, name.encode(), ctypes.cast(call, ctypes.c_void_p))

    def counting(self, real):
        def call(*arguments):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)
        return call


def killed_at_writes(database, writes, action):
    """Copies the folder of a database again and again, and calls action(path of the copy) in a forked process that is killed at
    write number n, for each n of `writes`, until the action ends before its write. Gives (n, path, whether the action has ended)."""
    files = sorted(database.parent.iterdir())
    for at in writes:
        folder = database.parent / f"run{at}"
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        path = str(folder / database.name)
        child = os.fork()
        if child == 0:
            try:
                killer = KilledAtWrite(at)
                action(path)
                os._exit(0 if killer.left > 0 else 2)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL), status
        yield at, path, status == 0
        shutil.rmtree(folder)
        if status == 0:
            return


class Clock:
    """Sets the clock of SQLite in this process. SQL cannot set this clock, so the class replaces the current time of the default
    VFS."""

    def __init__(self):
        library = ctypes.CDLL("libsqlite3.so.0")
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
        # struct sqlite3_vfs: 3 ints, then pointers; number 15 is xCurrentTimeInt64
        base = library.sqlite3_vfs_find(None)
        size = ctypes.sizeof(ctypes.c_void_p)
        first = (3 * ctypes.sizeof(ctypes.c_int) + size - 1) // size * size
        self.slot = ctypes.c_void_p.from_address(base + first + 15 * size)
        self.real = self.slot.value

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
        def now(_, result):
            result[0] = self.milliseconds
            return 0

        self.now = now

    def set(self, text):
        """Sets the time to a text such as '2026-01-31 23:59:59'."""
        (self.milliseconds,) = sqlite3.connect(":memory:").execute(
            "SELECT CAST(round(julianday(?) * 86400000.0) AS INTEGER)", (text,)).fetchone()
        self.slot.value = ctypes.cast(self.now, ctypes.c_void_p).value

    def stop(self):
        self.slot.value = self.real


def quick_folder():
    """Returns a folder in a file system in memory, or None for the system's temporary folder. Every release waits until the
    ledger is on disk, so a file system in memory is faster. The function uses /dev/shm only if it has room and allows programs
    to run."""
    memory = "/dev/shm"
    if not os.access(memory, os.W_OK):
        return None
    system = os.statvfs(memory)
    return memory if system.f_bavail * system.f_frsize > 2**30 and not system.f_flag & os.ST_NOEXEC else None


class Folders:
    """Temporary folders, in memory if possible. This class deletes them after the tests. (pytest would keep the folders of the
    last three runs.)"""

    def __init__(self, base):
        self.base = base

    def mktemp(self, name):
        return pathlib.Path(tempfile.mkdtemp(prefix=name + "-", dir=self.base))


def all_differ(values):
    """Returns whether the numbers differ, as they must if each has its own noise. The noise of a number has a standard deviation
    of at least 7e5 lattice steps, so two numbers are equal with probability 4e-7. Of 12 numbers, one may equal another; of 64
    numbers, three may. The probability of a false alarm is at most 4e-10."""
    return len(set(values)) >= len(values) - (1 if len(values) <= 12 else 3)


class Raw:
    """SQLite's C interface, for calls that Python's module does not offer: reset, step again, sqlite3_close."""

    OK, ROW, DONE = 0, 100, 101

    def __init__(self, path, library="libsqlite3.so.0", extension=EXTENSION, vfs=None):
        self.c = ctypes.CDLL(library)
        self.c.sqlite3_column_double.restype = ctypes.c_double
        self.c.sqlite3_column_text.restype = ctypes.c_char_p
        self.c.sqlite3_errmsg.restype = ctypes.c_char_p
        self.db = ctypes.c_void_p()
        flags = 0x10046  # READWRITE, CREATE, URI, FULLMUTEX
        assert self.c.sqlite3_open_v2(str(path).encode(), ctypes.byref(self.db), flags, vfs) == self.OK
        self.c.sqlite3_enable_load_extension(self.db, 1)
        error = ctypes.c_char_p()
        if self.c.sqlite3_load_extension(self.db, str(extension).encode(), None, ctypes.byref(error)) != self.OK:
            self.c.sqlite3_close(self.db)
            raise sqlite3.OperationalError(error.value.decode())

    def one(self, sql):
        """Returns the first column of the first row as a text. Raises an exception after an error."""
        statement = self.prepare(sql)
        code = self.step(statement)
        text = self.c.sqlite3_column_text(statement, 0) if code == self.ROW else None
        message = self.c.sqlite3_errmsg(self.db).decode()
        self.finalize(statement)
        if code not in (self.ROW, self.DONE):
            raise sqlite3.OperationalError(message)
        return text and text.decode()

    def prepare(self, sql):
        statement = ctypes.c_void_p()
        code = self.c.sqlite3_prepare_v2(self.db, sql.encode(), -1, ctypes.byref(statement), None)
        assert code == self.OK, self.c.sqlite3_errmsg(self.db)
        return statement

    def step(self, statement):
        return self.c.sqlite3_step(statement)

    def double(self, statement):
        return self.c.sqlite3_column_double(statement, 0)

    def reset(self, statement):
        return self.c.sqlite3_reset(statement)

    def finalize(self, statement):
        return self.c.sqlite3_finalize(statement)

    def close(self):
        """Calls sqlite3_close(). This call fails while a statement is open, unlike sqlite3_close_v2(), which Python calls."""
        return self.c.sqlite3_close(self.db)
