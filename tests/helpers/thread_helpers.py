"""What the tests of threads share: tables whose rowids are far apart, how to slow the host down, and how to see who read."""

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import time

from conftest import PATIENCE, one

ROWS, SPREAD = 20000, 1000  # rowids are far apart, so a few rows make many ranges
RATE = 1e6                  # the noise of a sum with clip 1000 is less than 1; a row adds at least 500


def total(db, query, clip=1000):
    return one(db, "SELECT dp_release('exact', 'sum', ?, ?)", query, json.dumps({"clip": clip}))


@contextlib.contextmanager
def slowed(db):
    """Makes the host's connection wait after every thousand instructions, so that the other threads read most rows."""
    calls = []

    def wait():
        calls.append(1)
        time.sleep(0.002)
    db.set_progress_handler(wait, 1000)
    yield calls
    db.set_progress_handler(None, 0)


def total_beside(db, query):
    """Returns the total of a query. If the query can be divided, the other threads read most of it."""
    with slowed(db):
        return total(db, query)


def is_divided(db, query):
    """Returns whether the host reads fewer rows with another thread than alone. After its first thousand instructions, the host waits
    until the other thread has read what is left, so a busy machine does not matter."""
    counts = []
    for threads in (0, 1):
        db.execute(f"PRAGMA threads = {threads}").fetchall()
        before, waits = threads_of_process(), []
        db.set_progress_handler(lambda: waits.append(all_ended(before)), 1000)
        total(db, query)
        db.set_progress_handler(None, 0)
        counts.append(len(waits))
    alone, divided = counts
    assert alone > 20  # the query was long enough to be divided
    return divided < 0.9 * alone


def threads_of_process():
    """Returns the ids of the threads of this process."""
    return set(os.listdir("/proc/self/task"))


def new_threads(before):
    """Returns the threads that are not in `before`. Threads of earlier tests may end at any time, so tests do not compare counts."""
    return threads_of_process() - before


def all_ended(before):
    """Waits until the threads that are not in `before` have ended. A thread that has been joined may take a moment to leave the
    process."""
    end = time.monotonic() + PATIENCE
    while new_threads(before):
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def uses_threads(db, query):
    """Returns whether other threads run while the query is asked."""
    before, seen = threads_of_process(), []
    db.set_progress_handler(lambda: seen.append(new_threads(before)), 200)
    total(db, query)
    db.set_progress_handler(None, 0)
    assert len(seen) > 20  # the query was long enough to be divided
    return any(seen)


def state(db):
    return one(db, "SELECT state FROM dp_release ORDER BY id DESC LIMIT 1")


def check_one_state(db, path, query, times):
    """Asks at least `times` times for the sum of a query whose sum never changes, while another connection keeps swapping the
    values of two distant rows."""
    wanted, seen = one(db, "SELECT sum(x) FROM t"), []
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), path], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout.readline() == "ready\n"
            deadline = time.monotonic() + PATIENCE
            while (len(seen) < times or len(set(seen)) <= 20) and time.monotonic() < deadline:
                assert abs(total(db, query) - wanted) < 100
                seen.append(one(db, "SELECT count(*) FROM t WHERE id < 0 AND x > 0"))
        finally:
            writer.kill()
    assert len(set(seen)) > 20  # the other connection did write


# A program that keeps swapping the values of two distant rows.
WRITER = """
    import random, sqlite3, sys, time
    db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
    db.execute("PRAGMA synchronous = OFF")
    print("ready", flush=True)
    while True:
        row = random.randrange(1, 9000) * 1000
        db.execute("UPDATE t SET x = 1000 - x WHERE id IN (?, ?)", (-row, row))
        time.sleep(random.random() * 0.004)
"""
