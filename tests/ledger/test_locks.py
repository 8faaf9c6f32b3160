"""Tests that no action of this process releases the locks of the ledger by accident.

On POSIX systems, closing any descriptor of a file drops all locks that the process holds on the file. Code that opens and
closes the ledger file would therefore let other processes into the middle of a transaction.
"""

import sqlite3
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from conftest import connect, make_ledger, one, refused

PROCESSES, THREADS, RELEASES = 3, 4, 12


def test_another_connection_of_the_process_does_not_release_a_lock(path):
    create(path).close()
    holder = sqlite3.connect(f"{path}-ledger", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    other = connect(path)
    other.execute("SELECT count(*) FROM dp_budget").fetchall()
    other.close()
    # The other process is spawned, because a forked process would inherit SQLite's own table of locks.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(try_to_write, f"{path}-ledger").result() == "database is locked"
    holder.execute("ROLLBACK")


def try_to_write(ledger):
    try:
        sqlite3.connect(ledger, timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        return str(error)
    return "got the lock"


def create(path):
    db = connect(path)
    db.execute("CREATE TABLE t(x, u)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    make_ledger(db, "{}", "t, u")
    db.execute("SELECT dp_tier('a', 0.0001, 50, 1e-6)")
    return db


def work(path):
    """Runs threads that open a new connection for every release, as web workers do."""
    answers, errors = [], []

    def release():
        for _ in range(RELEASES):
            try:
                db = connect(path)
                answers.append(one(db, "SELECT dp_release('a', 'count', 'SELECT x FROM t', '{\"clip\":1}')"))
                db.close()
            except sqlite3.Error as error:
                errors.append(str(error))

    threads = [threading.Thread(target=release) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answers), errors


def test_threads_of_several_processes_lose_nothing(path):
    create(path).close()
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(work, [path] * PROCESSES))
    assert [errors for _, errors in results] == [[]] * PROCESSES
    releases = PROCESSES * THREADS * RELEASES
    assert sum(count for count, _ in results) == releases
    db = connect(path)
    assert one(db, "SELECT count(*) FROM dp_charge") == releases
    assert one(db, "SELECT dp_verify()") == "ok"
    assert sqlite3.connect(f"{path}-ledger").execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("locked", ["visit", "patient", "ward"])
def test_a_table_that_is_locked_in_the_shared_cache_costs_nothing(path, locked):
    """In the shared-cache mode, a writer on another connection locks its tables. A question that reads one of them fails before the
    charge, and the same call succeeds afterwards."""
    writer = sqlite3.connect(f"file:{path}?cache=shared", uri=True, isolation_level=None)
    db = connect(f"file:{path}?cache=shared", uri=True)
    db.executescript("""
        CREATE TABLE patient(id INTEGER PRIMARY KEY); CREATE TABLE ward(id INTEGER PRIMARY KEY);
        CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INTEGER, ward INTEGER);
        INSERT INTO patient VALUES (1), (2); INSERT INTO ward VALUES (1); INSERT INTO visit VALUES (1, 1, 1), (2, 2, 1);
        SELECT dp_init('{"unit":"patient"}'), dp_protect('patient', 'id'), dp_protect('visit', 'patient', 'patient'), dp_public('ward'),
               dp_tier('inner', 0.1, 10, 1e-6);""")
    ask = """SELECT dp_release('inner', 'count', 'SELECT 1 FROM visit JOIN ward ON ward = ward.id', '{"clip":1,"name":"r"}')"""
    writer.execute("BEGIN IMMEDIATE")
    writer.execute(f"INSERT INTO {locked}(id) VALUES (77)")
    assert refused(db, ask) == (f"dp_release: cannot read for the question: database table is locked: {locked}"
                                " (nothing was charged; try again)")
    writer.execute("COMMIT")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0 == one(db, "SELECT count(*) FROM dp_release")
    assert isinstance(one(db, ask), float) and one(db, "SELECT count(*) FROM dp_charge") == 1
