"""Tests several processes, threads and connections at the same time. No budget is exceeded, and no release waits for
the host's locks."""

import sqlite3
import subprocess
import threading
import time

import pytest

from conftest import (add_tiers, add_visits, all_differ, connect, create, ledger_of, once_charged, one, PATIENCE, reading, refused, start, SUM, when_looking)

pytestmark = pytest.mark.alarm(5e-10)


def finish(processes):
    outputs = []
    for process in processes:
        output, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        outputs.append(output)
    return outputs


def in_threads(work, arguments):
    """Runs work(argument) in one thread for each argument, and raises an exception that a thread has raised."""
    results, errors = [], []

    def call(argument):
        try:
            results.append(work(argument))
        except BaseException as error:  # raised in the thread of the test
            errors.append(error)

    threads = [threading.Thread(target=call, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not errors and len(results) == len(threads), errors
    return results


def other_process(path, *statements):
    """Starts another process that runs these statements on a plain connection and keeps the locks that they take."""
    process = start("""
        db = sqlite3.connect(sys.argv[1], isolation_level=None)
        for sql in sys.argv[2:]: db.execute(sql).fetchall()
        print("ready", flush=True)
        sys.stdin.readline()
        """, path, *statements, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def go(racers):
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()


# ---- races -----------------------------------------------------------------------------------------


def test_processes_that_race_for_one_name_draw_once(path):
    create(path).close()
    racers = [start("""
        db = connect(sys.argv[1])
        for i in range(20):
            while True:
                try:
                    print(repr(one(db, SUM, f"r{i}")))
                    break
                except sqlite3.Error as error:
                    assert "not finished" in str(error), error
        """, path) for _ in range(2)]
    first, second = finish(racers)
    assert first == second and len(first.split()) == 20
    db = connect(path)
    assert one(db, "SELECT count(*) FROM dp_charge") == 20 and one(db, "SELECT dp_verify()") == "ok"


def test_processes_that_race_to_diffuse_publish_one_value(path):
    db = create(path)
    for i in range(20):
        one(db, SUM, f"r{i}")
    racers = [start("""
        db = connect(sys.argv[1])
        for i in range(20): print(*(repr(one(db, f"SELECT dp_diffuse('r{i}', '{tier}')")) for tier in sys.argv[2:]))
        """, path, *order) for order in (["region", "public"], ["public", "region"])]
    first, second = [[line.split() for line in output.splitlines()] for output in finish(racers)]
    assert [tuple(pair) for pair in first] == [(b, a) for a, b in second] and len(first) == 20
    assert one(db, "SELECT dp_verify()") == "ok"


def test_processes_that_race_to_create_the_ledger_end_with_one(tmp_path):
    paths = [tmp_path / f"{i}.db" for i in range(10)]
    for path in paths:
        add_visits(sqlite3.connect(path))
        sqlite3.connect(path).close()
    racers = [start("""
        *paths, = sys.argv[1:]
        print("ready", flush=True)
        for path in paths:
            db = connect(path)
            assert sys.stdin.readline() == "go\\n"
            try:
                print(one(db, INIT), flush=True)
            except sqlite3.Error as error:
                print("error:", error, flush=True)
        """, *paths, stdin=subprocess.PIPE) for _ in range(2)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n", racer.stderr.read()
    rounds = []
    for i in range(len(paths)):
        go(racers if i % 2 else racers[::-1])
        rounds.append([racer.stdout.readline() for racer in racers])
    finish(racers)
    for path, lines in zip(paths, rounds):
        assert one(connect(path), "SELECT dp_verify()") == "ok"
        marker = sqlite3.connect(path).execute("SELECT id FROM dp_ledger_id").fetchall()
        assert marker == ledger_of(path).execute("SELECT id FROM dp_ledger").fetchall() and len(marker) == 1
        assert lines == [f"{path}-ledger\n"] * 2  # dp_init is idempotent


# ---- threads --------------------------------------------------------------------------------------


def test_many_threads_with_connections_of_their_own_release(path):
    create(path).close()

    def work(thread):
        db = connect(path)
        return [one(db, SUM, f"{thread}-{i}") for i in range(8)]

    results = in_threads(work, range(8))
    assert all_differ([value for values in results for value in values])
    db = connect(path)
    assert one(db, "SELECT count(*) FROM dp_charge") == 64 and one(db, "SELECT dp_verify()") == "ok"


def test_threads_with_shared_cache_connections_release(path):
    """A connection keeps the shared cache while it waits for the ledger, and the one that holds the ledger may need the cache. On a slow
    disk, one of them is therefore refused after ten seconds. It has paid nothing, and asks again."""
    create(path).close()
    keep = connect(f"file:{path}?cache=shared", uri=True)

    def ask(db, sql, name):
        while True:
            try:
                return one(db, sql, name)
            except sqlite3.OperationalError as error:
                assert "locked (another connection holds it)" in str(error), error

    def work(thread):
        db = connect(f"file:{path}?cache=shared", uri=True)
        values = [ask(db, SUM, f"{thread}-{i}") for i in range(15)]
        return values + [ask(db, "SELECT dp_diffuse(?, 'public')", f"{thread}-{i}") for i in range(15)]

    results = in_threads(work, range(2))
    assert all_differ([value for values in results for value in values])
    assert one(keep, "SELECT count(*) FROM dp_charge") == 90 and one(keep, "SELECT dp_verify()") == "ok"


def test_threads_that_share_one_connection_release(db):
    release = "SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', json_object('name', ?, 'clip', 10))"
    results = in_threads(lambda i: one(db, release, f"r{i}"), range(12))
    assert all_differ(results)
    assert one(db, "SELECT count(*) FROM dp_charge") == 12 and one(db, "SELECT dp_verify()") == "ok"


# ---- locks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("sql", [
    SUM.replace("?", "'a'"),
    """SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{"name":"a","clip":10}')"""])
def test_a_writer_of_the_database_does_not_block_releases(path, mode, sql):
    create(path).close()
    assert one(sqlite3.connect(path), f"PRAGMA journal_mode = {mode}") == mode
    writer = other_process(path, "BEGIN IMMEDIATE", "INSERT INTO visits VALUES (1, 1)")
    db = connect(path, timeout=0)  # another request for the lock is refused at once
    value = one(db, sql)
    assert one(db, sql) == value
    one(db, "SELECT dp_diffuse('a', 'public')")
    assert one(db, "SELECT dp_verify()") == "ok"
    writer.communicate("\n")


def test_a_release_inside_the_hosts_own_write_transaction_works_in_both_journal_modes(path):
    create(path).close()
    for mode in ("delete", "wal"):
        db = connect(path)
        one(db, f"PRAGMA journal_mode = {mode}")
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO visits VALUES (1, 1)")
        assert isinstance(one(db, SUM, mode), float)
        db.execute("COMMIT")
    assert one(db, "SELECT count(*) FROM dp_charge") == 2


def test_a_wal_snapshot_that_is_out_of_date_does_not_block_releases(path):
    create(path).close()
    db = connect(path)
    one(db, "PRAGMA journal_mode = WAL")
    db.execute("BEGIN")
    one(db, "SELECT count(*) FROM visits")
    sqlite3.connect(path, isolation_level=None).execute("INSERT INTO visits VALUES (1, 1)")
    assert isinstance(one(db, SUM, "a"), float)
    db.execute("ROLLBACK")
    assert one(db, "SELECT count(*) FROM dp_charge") == 1


def test_a_release_does_not_keep_the_database_locked(db, path):
    one(db, SUM, "a")
    sqlite3.connect(path, timeout=0, isolation_level=None).execute("INSERT INTO visits VALUES (1, 1)")
    ledger = ledger_of(path)
    ledger.execute("PRAGMA busy_timeout = 0")
    ledger.execute("BEGIN EXCLUSIVE")
    ledger.execute("ROLLBACK")


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
@pytest.mark.parametrize("opened", [True, False], ids=["opened before", "opened meanwhile"])
def test_a_release_waits_for_a_ledger_that_is_locked_for_a_moment(path, lock, opened):
    create(path).close()
    db = connect(path)
    if opened:
        one(db, "SELECT dp_verify()")
    holder = other_process(f"{path}-ledger", lock)
    looks = []
    when_looking(db, lambda: looks.append(1) or len(looks) != 3 or holder.communicate("\n"))
    assert isinstance(one(db, SUM, "a"), float)
    assert len(looks) >= 3  # before that, the ledger could not be written


@pytest.mark.slow  # waits for 10 seconds
def test_a_ledger_that_stays_locked_is_a_clear_error(db, path):
    holder = other_process(f"{path}-ledger", "BEGIN IMMEDIATE")
    began = time.time()
    with reading(db) as reads:
        message = refused(db, "SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{\"clip\":10}')")
    assert 8 < time.time() - began < PATIENCE
    assert message.startswith("dp_release: privacy ledger ") and "locked" in message and "another connection" in message
    assert reads == []
    holder.communicate("\n")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    assert isinstance(one(db, SUM, "a"), float)


# ---- in flight ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [
    "SELECT dp_sum('clinic', minutes, 10, 'a') FROM visits",
    """SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{"name":"a","clip":10}')"""])
def test_a_name_in_flight_is_not_finished_for_others(db, path, sql):
    messages = []

    def ask():
        messages.append(refused(other, sql))
        messages.append(refused(other, "SELECT dp_diffuse('a', 'public')"))
        messages.append(refused(other, "SELECT dp_diffuse('a', 'clinic')"))

    other = connect(path)
    once_charged(db, path, ask)
    value = one(db, sql)
    db.set_progress_handler(None, 0)
    assert len(messages) == 3
    for message in messages:
        assert "release 'a' is not finished" in message and "dp_discard('a')" in message
    assert one(other, sql) == value
    assert one(db, "SELECT count(*) FROM dp_charge") == 1


def test_a_name_discarded_in_flight_gives_no_value(db, path):
    other, discarded = connect(path), []

    once_charged(db, path, lambda: discarded.append(one(other, "SELECT dp_discard('a')")))
    message = refused(db, "SELECT dp_sum('clinic', minutes, 10, 'a') FROM visits")
    db.set_progress_handler(None, 0)
    assert discarded == ["a"] and "discarded" in message
    assert one(db, "SELECT count(*) FROM dp_value") == 0 and one(db, "SELECT count(*) FROM dp_charge") == 1
    assert one(db, "SELECT state FROM dp_release") == "discarded"


def test_a_refinement_in_flight_is_not_finished_for_others(db, path):
    """What is published already stays what it is."""
    outer = one(db, "SELECT dp_sum('region', minutes, 10, 'a') FROM visits")
    other, seen = connect(path), []

    def look():
        seen.extend([one(other, "SELECT dp_diffuse('a', 'region')"), refused(other, "SELECT dp_diffuse('a', 'public')")])

    once_charged(db, path, look, "SELECT state = 'charged' FROM dp_release")
    one(db, """SELECT dp_sum('clinic', minutes, 10, '{"name":"a","refine":true}') FROM visits""")
    assert len(seen) == 2 and seen[0] == outer and "not finished" in seen[1]
    assert one(other, "SELECT dp_diffuse('a', 'region')") == outer
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_tier_created_by_another_connection_is_seen(db, path):
    other = connect(path)
    one(db, SUM, "a")
    add_tiers(other, [("board", 0.1, 20.0, 1e-6)])
    assert isinstance(one(db, "SELECT dp_sum('board', minutes, 10) FROM visits"), float)
    one(db, SUM, "b")
    assert one(other, "SELECT releases FROM dp_budget WHERE tier = 'board'") == 3
