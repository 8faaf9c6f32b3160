"""Tests the state of a release after the statement around it fails, is reset, or continues."""

import json
import pathlib
import signal
import sqlite3
import subprocess
import sys

import pytest

from conftest import EXTENSION, PATIENCE, SUM, Raw, add_tiers, add_visits, connect, create, ledger_of, one, refused, run

HOSTS = pathlib.Path(__file__).parent.parent.parent / "build" / "hosts" / "python" / "apsw"

NAMED = SUM.replace("?", "'a'")
BAD_MINUTES = "abs(iif(rowid = 60, -9223372036854775808, minutes))"  # "integer overflow" at the 60th row
TORN = f"SELECT dp_sum('clinic', {BAD_MINUTES}, 10, patient, 'a') FROM visits"
GROUPED = "SELECT patient % 4, dp_count('clinic', 1, 2, patient, 'feb') FROM visits GROUP BY 1"


def states(connection):
    return [state for (state,) in connection.execute("SELECT state FROM dp_release ORDER BY id")]


def stored(path):
    """Returns the numbers of rows of dp_value, dp_path and dp_publication in the ledger file, for releases in any state."""
    ledger = ledger_of(path)
    counts = [ledger.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
              for table in ("dp_value", "dp_path", "dp_publication")]
    ledger.close()
    return counts


def assert_gone(path, name="a"):
    """Checks that the release has failed and its charge stays, and that no file or table has a value of the release, even after
    dp_discard()."""
    db = connect(path)
    assert states(db) == ["failed"] and one(db, "SELECT count(*) FROM dp_charge") == 1
    assert stored(path) == [0, 0, 0]
    assert "failed and its charge stays" in refused(db, f"SELECT dp_diffuse('{name}', 'public')")
    assert "failed" in refused(db, f"SELECT dp_interval('{name}', 'clinic', NULL, 0.9)")
    one(db, f"SELECT dp_discard('{name}')")
    assert one(db, "SELECT count(*) FROM dp_value") == one(db, "SELECT count(*) FROM dp_publication") == 0
    assert stored(path) == [0, 0, 0] and one(db, "SELECT dp_verify()") == "ok"
    db.close()


# ---- a statement that fails -----------------------------------------------------------------------


def test_an_interrupt_after_the_first_row_fails_the_release(path):
    db = connect(path)
    add_visits(db)
    one(db, "SELECT dp_init()")
    add_tiers(db)
    one(db, "SELECT dp_protect('visits', 'patient')")
    cursor = db.execute("SELECT dp_sum('clinic', minutes, 10, patient) FROM visits")  # Python has fetched the first row
    db.interrupt()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        cursor.fetchall()
    assert set(states(db)) == {"failed"} and one(db, "SELECT count(*) FROM dp_value") == 0
    # If the host resets the statement after its first row, there is no error, and the release stays. Newer versions of SQLite do not
    # tell such a reset from an interrupted step, and the cautious answer is 'failed'.
    cursor = db.execute("SELECT dp_sum('clinic', minutes, 10, patient, 'kept') FROM visits")
    db.interrupt()
    cursor.close()
    kept = "released" if sqlite3.sqlite_version_info < (3, 41) else "failed"
    assert one(db, "SELECT state FROM dp_release WHERE name = 'kept'") == kept
    # Without an interrupt, every version keeps it.
    db.execute("SELECT dp_sum('clinic', minutes, 10, patient, 'closed') FROM visits").close()
    assert one(db, "SELECT state FROM dp_release WHERE name = 'closed'") == "released"
    db.close()


@pytest.mark.parametrize("end", ["interrupt", "error", "rollback"])
def test_an_answer_is_complete_when_its_first_row_comes(path, end):
    db = connect(path)
    add_visits(db)
    one(db, "SELECT dp_init()")
    add_tiers(db)
    one(db, "SELECT dp_protect('visits', 'patient')")
    later = "abs(-9223372036854775807 - 1)" if end == "error" else "NULL"
    if end == "rollback":
        db.execute("BEGIN")
    cursor = db.execute("SELECT key, value FROM dp_answer('clinic', 'group_count', 'SELECT minutes FROM visits', ?)"
                        f" UNION ALL SELECT 'z', {later}", ('{"name":"a","clip":1,"keys":[0,1,2]}',))
    if end == "interrupt":
        db.interrupt()
    if end == "rollback":
        cursor.close()
        db.execute("ROLLBACK")
    else:
        with pytest.raises(sqlite3.Error):
            cursor.fetchall()
    assert states(db) == ["released"] and one(db, "SELECT count(*) FROM dp_value") == 3
    again = dict(db.execute("SELECT key, value FROM dp_answer('clinic', 'group_count', 'SELECT minutes FROM visits', ?)",
                            ('{"name":"a","clip":1,"keys":[0,1,2]}',)))
    assert again == dict(db.execute("SELECT key, value FROM dp_value")) and one(db, "SELECT count(*) FROM dp_charge") == 1
    db.close()


# ---- other statements on the connection -----------------------------------------------------------


def open_returning(db):
    db.execute("CREATE TABLE log(x)")
    cursor = db.execute("INSERT INTO log VALUES (1), (2), (3) RETURNING x")
    cursor.fetchone()
    return cursor


def open_blob(db):
    db.execute("CREATE TABLE files(body BLOB)")
    db.execute("INSERT INTO files VALUES (zeroblob(10))")
    return db.blobopen("files", "body", 1)


OTHERS = pytest.mark.parametrize("open_other", [open_returning, open_blob], ids=["INSERT RETURNING", "blob"])


# ---- counters -------------------------------------------------------------------------------------

COUNTERS = {"VM_STEP": [4], "RUN": [6], "all": [1, 2, 3, 4, 5, 6]}


@pytest.mark.parametrize("last", ["DONE", "reset", "finalize"])
@pytest.mark.parametrize("counters", COUNTERS.values(), ids=COUNTERS)
def test_a_host_that_resets_counters_between_rows(path, counters, last):
    create(path).close()
    raw = Raw(path)
    statement = raw.prepare(NAMED)
    assert raw.step(statement) == raw.ROW
    value = raw.double(statement)
    for counter in counters:
        raw.c.sqlite3_stmt_status(statement, counter, 1)
    if last == "DONE":
        assert raw.step(statement) == raw.DONE
    if last == "reset":
        assert raw.reset(statement) == raw.OK
    raw.finalize(statement)
    assert raw.close() == raw.OK
    db = connect(path)
    assert states(db) == ["released"] and one(db, "SELECT value FROM dp_value") == value


# ---- nobody sees a value that fails ---------------------------------------------------------------


def test_a_release_that_is_discarded_before_its_statement_ends_is_stored_nowhere(db, path):
    cursor = db.execute(NAMED)  # fetches the row
    one(connect(path), "SELECT dp_discard('a')")
    cursor.fetchall()
    assert states(db) == ["discarded"] and stored(path) == [0, 0, 0] and one(db, "SELECT dp_verify()") == "ok"


def test_one_discarded_release_of_a_statement_keeps_none_of_the_others_from_being_stored(db, path):
    """One commit stores all releases of a statement. If that fails, each release is stored by a commit of its own."""
    three = "SELECT " + ", ".join(f"dp_count('clinic', 1, 2, patient, '{name}')" for name in "abc") + " FROM visits"
    cursor = db.execute(three + " UNION ALL SELECT 1, 2, 3 UNION ALL SELECT 4, 5, 6")
    _, b, c = cursor.fetchone()
    one(connect(path), "SELECT dp_discard('a')")
    cursor.fetchall()
    other = connect(path)
    assert other.execute("SELECT release, value FROM dp_value ORDER BY 1").fetchall() == [("b", b), ("c", c)]
    assert other.execute("SELECT name, state FROM dp_release ORDER BY 1").fetchall() == [("a", "discarded"), ("b", "released"), ("c", "released")]
    assert one(db, "SELECT dp_verify()") == "ok"


def test_killed_before_the_statement_ends(path):
    create(path).close()
    run("""
        db = connect(sys.argv[1])
        cursor = db.execute(sys.argv[2])  # fetches the row
        os.kill(os.getpid(), signal.SIGKILL)
        """, path, NAMED, expect=-signal.SIGKILL)
    db = connect(path)
    assert states(db) == ["charged"] and one(db, "SELECT count(*) FROM dp_charge") == 1 and stored(path) == [0, 0, 0]
    assert "not finished" in refused(db, NAMED)
    one(db, "SELECT dp_discard('a')")
    assert one(db, "SELECT count(*) FROM dp_value") == 0 and one(db, "SELECT dp_verify()") == "ok"


def test_what_another_connection_has_discarded_hides_nothing_else(db, path):
    one(db, SUM, "before")
    cursor = db.execute(NAMED)  # fetches the row
    one(connect(path), "SELECT dp_discard('a')")
    assert db.execute("SELECT release FROM dp_value").fetchall() == [("before",)]
    cursor.fetchall()


def test_a_group_release_is_the_same_when_it_is_stored(db):
    answer = one(db, """SELECT dp_group_count('clinic', minutes, 2, patient, '{"name":"a","keys":["0","1","2"]}') FROM visits""")
    assert json.loads(answer) == dict(db.execute("SELECT key, value FROM dp_value"))
    assert states(db) == ["released"] and one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("then", ["db.close()", "one(db, sys.argv[2])"])
def test_what_a_full_disk_keeps_from_being_stored_is_stored_later(path, then):
    """A limit on the file size simulates a disk that is full when the statement ends, but not when it returns its value and not
    when the connection closes or repeats the release."""
    create(path).close()
    value = run("""
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        db = connect(sys.argv[1])
        cursor = db.execute(sys.argv[2])
        value = cursor.fetchone()[0]
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        cursor.fetchall()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert ledger_of(sys.argv[1]).execute("SELECT state FROM dp_release").fetchall() == [("charged",)]
        exec(sys.argv[3])
        print(repr(value), flush=True)
        os._exit(0)
        """, path, NAMED + " UNION ALL SELECT 1 UNION ALL SELECT 2", then)
    db = connect(path)
    assert states(db) == ["released"] and one(db, "SELECT value FROM dp_value") == float(value)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.slow  # waits for a lock for 10 seconds
def test_what_cannot_be_stored_at_the_end_is_stored_later(db, path):
    """While the statement ends, another connection locks the ledger for longer than the extension waits (10 s). The value is
    stored by a later statement."""
    named = NAMED + " UNION ALL SELECT 1 UNION ALL SELECT 2"
    cursor = db.execute(named)
    value = cursor.fetchone()[0]
    ledger = ledger_of(path)
    ledger.execute("BEGIN IMMEDIATE")
    cursor.fetchall()
    ledger.execute("ROLLBACK")
    ledger.close()
    assert one(connect(path), "SELECT state FROM dp_release") == "charged"
    assert one(db, "SELECT value FROM dp_value") == value  # the value is in memory
    assert one(db, named) == value and one(connect(path), "SELECT value FROM dp_value") == value
    assert one(db, "SELECT count(*) FROM dp_charge") == 1 and one(db, "SELECT dp_verify()") == "ok"


# ---- live releases --------------------------------------------------------------------------------


def test_tables_show_live_releases_only(db, path):
    first = one(db, NAMED)
    one(db, "SELECT dp_discard('a')")
    assert db.execute("SELECT * FROM dp_value").fetchall() == db.execute("SELECT * FROM dp_publication").fetchall() == []
    second = one(db, NAMED)
    assert db.execute("SELECT release, value FROM dp_value").fetchall() == [("a", second)]
    assert db.execute("SELECT release_id FROM dp_publication").fetchall() == [(2,)]
    assert states(db) == ["discarded", "released"]
    assert ledger_of(path).execute("SELECT value FROM dp_value").fetchall() == [(first,), (second,)]


# ---- other versions of SQLite ---------------------------------------------------------------------

STORY = """
import sys
sys.path.insert(0, sys.argv[1])
import apsw

def fail(*_):
    raise ValueError

db = apsw.Connection(sys.argv[3])
def call(new, old):
    return getattr(db, new, None) or getattr(db, old)
call("enable_load_extension", "enableloadextension")(True)
call("load_extension", "loadextension")(sys.argv[2])
def every(sql):
    return db.cursor().execute(sql).fetchall()
def refused(sql):
    try:
        every(sql)
    except Exception:
        return
    raise AssertionError(sql)
every("CREATE TABLE visits(patient INTEGER, minutes REAL); CREATE TABLE published(v); CREATE TABLE log(x)")
every("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) INSERT INTO visits SELECT i / 2, i % 7 FROM n")
every("SELECT dp_init(); SELECT dp_protect('visits', 'patient'); SELECT dp_tier('clinic', 0.004, 8.0, 1e-6)")
every("CREATE TABLE files(body BLOB); INSERT INTO files VALUES (zeroblob(10))")
def agg(name, minutes="minutes"):
    return f"dp_sum('clinic', {minutes}, 10, patient, '{name}')"
good, bad = [], []
def well(name, sql):
    good.append(name)
    every(sql.format(agg(name)))
def ill(name, sql, minutes="abs(iif(rowid = 60, -9223372036854775808, minutes))"):
    bad.append(name)
    refused(sql.format(agg(name, minutes)))
def all_of(suffix):
    well("select" + suffix, "SELECT {} FROM visits")
all_of("")
cursor = db.cursor().execute("INSERT INTO log VALUES (1), (2), (3) RETURNING x")
next(cursor)
all_of(" beside RETURNING")
cursor.close(True)
blob = call("blob_open", "blobopen")("main", "files", "body", 1, True)
all_of(" beside a blob")
blob.close()
calls = []
progress = call("set_progress_handler", "setprogresshandler")
progress(lambda: calls.append(1) or len(calls) > 30, 10)
ill("progress", "SELECT {} FROM visits", "minutes")
progress(None)
states = dict(every("SELECT name, state FROM dp_release"))
assert {name for name, state in states.items() if state == "released"} == set(good), states
assert {name for name, state in states.items() if state == "failed"} <= set(bad), states
assert {name for name, in every("SELECT release FROM dp_value")} == set(good)
assert every("SELECT dp_verify()") == [("ok",)]
"""


@pytest.mark.parametrize("version", ["3.39.4.0", "newest"])
@pytest.mark.plain
def test_other_versions_of_sqlite(tmp_path, version):
    if not (HOSTS / version / ".done").exists():
        pytest.skip("no apsw in build/hosts (make deps-hosts)")
    subprocess.run([sys.executable, "-c", STORY, str(HOSTS / version), EXTENSION, str(tmp_path / "clinic.db")],
                   check=True, timeout=PATIENCE)
