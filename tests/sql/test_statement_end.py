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


def test_a_name_in_group_by_fails_also_the_row_that_was_delivered(db, path):
    cursor = db.execute(GROUPED)
    with pytest.raises(sqlite3.Error) as caught:
        cursor.fetchall()
    assert "dp_group_count" in str(caught.value)
    corrected = "SELECT dp_count('clinic', 1, 2, patient, 'feb') FROM visits"
    assert "release 'feb' failed and its charge stays (free the name with dp_discard('feb'))" in refused(db, corrected)
    assert_gone(path, "feb")


def test_a_name_in_group_by_fails_step_by_step(path):
    create(path).close()
    raw = Raw(path)
    statement = raw.prepare(GROUPED)
    assert raw.step(statement) == raw.ROW
    assert connect(path).execute("SELECT state FROM dp_release").fetchall() == [("charged",)]
    assert raw.step(statement) not in (raw.ROW, raw.DONE)
    raw.finalize(statement)
    assert raw.close() == raw.OK
    assert_gone(path, "feb")


def test_all_aggregates_of_a_failing_statement_fail(db):
    """The first two aggregates have returned their values when the third aggregate fails in its second group. The releases of all
    three fail."""
    refused(db, "SELECT (SELECT dp_sum('clinic', minutes, 10, patient, 'a') FROM visits),"
                " (SELECT dp_count('clinic', 1, 1, patient, 'b') FROM visits),"
                " dp_count('clinic', 1, 1, patient, 'c') FROM visits GROUP BY patient % 3")
    assert set(states(db)) == {"failed"} and one(db, "SELECT count(*) FROM dp_value") == 0


def test_releases_of_other_statements_are_not_touched(db):
    one(db, SUM, "before")
    open_row = db.execute("SELECT dp_sum('clinic', minutes, 10, patient, 'open') FROM visits UNION ALL SELECT 1 UNION ALL SELECT 2")
    assert isinstance(open_row.fetchone()[0], float)
    refused(db, TORN)
    open_row.fetchall()
    assert dict(db.execute("SELECT name, state FROM dp_release")) == {"before": "released", "open": "released", "a": "failed"}


@pytest.mark.parametrize("later", ["patient = 33", "rowid = 80"])
def test_an_error_in_a_later_group_fails_the_rows_that_were_read(path, later):
    """If an error occurs in a later group, after an aggregate was called for this group, the releases of the earlier groups fail
    too, although the host has read their rows."""
    create(path).close()
    raw = Raw(path)
    statement = raw.prepare("SELECT dp_sum('clinic', CASE WHEN " + later + " THEN abs(-9223372036854775807 - 1) ELSE minutes END,"
                            " 10, patient) FROM visits GROUP BY patient / 20")
    assert raw.step(statement) == raw.ROW and raw.step(statement) not in (raw.ROW, raw.DONE)
    raw.finalize(statement)
    assert raw.close() == raw.OK
    db = connect(path)
    assert set(states(db)) == {"failed"} and len(states(db)) == 2 and stored(path)[0] == 0
    db.close()


@pytest.mark.parametrize("options, groups", [("{}", ""), ('{"unchecked":true}', ""), ('{"unchecked":true}', " GROUP BY patient / 20")])
def test_an_interrupt_after_the_first_row_fails_the_release(path, options, groups):
    db = connect(path)
    add_visits(db)
    one(db, "SELECT dp_init(?)", options)
    add_tiers(db)
    if options == "{}":
        one(db, "SELECT dp_protect('visits', 'patient')")
    cursor = db.execute("SELECT dp_sum('clinic', minutes, 10, patient) FROM visits" + groups)  # Python has fetched the first row
    db.interrupt()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        cursor.fetchall()
    assert set(states(db)) == {"failed"} and one(db, "SELECT count(*) FROM dp_value") == 0
    # If the host resets the statement after its first row, there is no error, and the release stays.
    cursor = db.execute("SELECT dp_sum('clinic', minutes, 10, patient, 'kept') FROM visits" + groups.replace("20", "1000"))
    db.interrupt()
    cursor.close()
    assert one(db, "SELECT state FROM dp_release WHERE name = 'kept'") == "released"
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


@pytest.mark.parametrize("column", ["abs(min(-9223372036854775808, count(*)))", "json('{' || count(*))", "fail(count(*))"])
def test_an_error_in_another_column(db, path, column):
    def fail(x):
        raise ValueError

    db.create_function("fail", 1, fail)
    refused(db, f"SELECT dp_sum('clinic', minutes, 10, patient, 'a'), {column} FROM visits")
    assert_gone(path)


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


@OTHERS
def test_another_writing_statement_does_not_hide_an_abort(db, path, open_other):
    other = open_other(db)
    assert "integer overflow" in refused(db, TORN)
    other.close()
    assert_gone(path)


@OTHERS
def test_another_writing_statement_does_not_hide_a_progress_handler(db, path, open_other):
    other, calls = open_other(db), []
    db.create_function("note", 1, lambda x: calls.append(x) or x)
    db.set_progress_handler(lambda: len(calls) > 30, 10)
    assert "interrupted" in refused(db, "SELECT dp_sum('clinic', note(minutes), 10, patient, 'a') FROM visits")
    db.set_progress_handler(None, 0)
    other.close()
    assert_gone(path)


@OTHERS
def test_another_writing_statement_does_not_hurt_a_good_answer(db, open_other):
    other = open_other(db)
    value = one(db, SUM, "a")
    other.close()
    assert states(db) == ["released"] and one(db, "SELECT value FROM dp_value") == value == one(db, SUM, "a")


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


@pytest.mark.parametrize("counters", COUNTERS.values(), ids=COUNTERS)
def test_resetting_counters_between_groups(path, counters):
    create(path).close()
    raw = Raw(path)
    statement = raw.prepare("SELECT dp_sum('clinic', minutes, 10, patient) FROM visits GROUP BY patient % 4")
    for _ in range(4):
        assert raw.step(statement) == raw.ROW
        for counter in counters:
            raw.c.sqlite3_stmt_status(statement, counter, 1)
    assert raw.step(statement) == raw.DONE
    raw.finalize(statement)
    assert states(connect(path)) == ["released"] * 4


def test_resetting_counters_does_not_hide_an_abort(path):
    create(path).close()
    raw = Raw(path)
    statement = raw.prepare("SELECT json(iif(dp_sum('clinic', minutes, 10, patient) <> 0 AND patient % 4 = 2, '{', '{}'))"
                            " FROM visits GROUP BY patient % 4")
    for _ in range(2):
        assert raw.step(statement) == raw.ROW
        raw.c.sqlite3_stmt_status(statement, 4, 1)
    assert raw.step(statement) not in (raw.ROW, raw.DONE)
    raw.finalize(statement)
    assert states(connect(path)) == ["failed"] * 3 and stored(path) == [0, 0, 0]


# ---- nobody sees a value that fails ---------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_other_connections_see_a_value_only_when_the_statement_has_ended(db, path, fails):
    """The function `look` runs after the aggregate, in the same statement. Other connections do not see the value yet."""
    other, seen = connect(path), []

    def look(value):
        seen.append((other.execute("SELECT state FROM dp_release").fetchall(),
                     other.execute("SELECT * FROM dp_value").fetchall(), stored(path), value))
        assert "not finished" in refused(other, NAMED)
        if fails:
            raise ValueError
        return value

    db.create_function("look", 1, look)
    sql = "SELECT look(dp_sum('clinic', minutes, 10, patient, 'a')) FROM visits"
    if fails:
        refused(db, sql)
    else:
        value = one(db, sql)
        assert one(other, "SELECT value FROM dp_value") == value == one(other, NAMED)
    (state, values, rows, value), = seen
    assert state == [("charged",)] and values == [] and rows == [0, 0, 0] and isinstance(value, float)
    if fails:
        assert_gone(path)


def test_a_release_that_is_discarded_before_its_statement_ends_is_stored_nowhere(db, path):
    cursor = db.execute(NAMED + " UNION ALL SELECT 1 UNION ALL SELECT 2")
    cursor.fetchone()
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
        cursor = db.execute(sys.argv[2] + " UNION ALL SELECT 1 UNION ALL SELECT 2")
        print(cursor.fetchone(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """, path, NAMED, expect=-signal.SIGKILL)
    db = connect(path)
    assert states(db) == ["charged"] and one(db, "SELECT count(*) FROM dp_charge") == 1 and stored(path) == [0, 0, 0]
    assert "not finished" in refused(db, NAMED)
    one(db, "SELECT dp_discard('a')")
    assert one(db, "SELECT count(*) FROM dp_value") == 0 and one(db, "SELECT dp_verify()") == "ok"


def test_a_statement_replays_what_it_has_drawn_itself(db):
    first, second = db.execute(f"SELECT ({NAMED}), ({NAMED})").fetchone()
    assert first == second == one(db, "SELECT value FROM dp_value") and one(db, "SELECT count(*) FROM dp_charge") == 1


def test_the_own_connection_reads_what_its_statement_has_drawn(db, path):
    """The connection itself can read the value in the same statement, and in other statements while the first statement
    waits between rows. The ledger file does not have the value yet."""
    value, low, seen, state = db.execute(
        "SELECT v, dp_interval('a', 'clinic', NULL, 0.9) ->> 0, (SELECT value FROM dp_value WHERE release = 'a' AND v IS NOT NULL),"
        f" (SELECT state FROM dp_release WHERE v IS NOT NULL) FROM ({NAMED.replace('FROM', 'AS v FROM')} LIMIT 1)").fetchone()
    assert low < value == seen and state == "released"
    one(db, "SELECT dp_discard('a')")
    cursor = db.execute(NAMED.replace("'a'", "'b'") + " UNION ALL SELECT 1 UNION ALL SELECT 2")
    value = cursor.fetchone()[0]
    before = stored(path)
    assert one(db, "SELECT value FROM dp_value") == value == one(db, NAMED.replace("'a'", "'b'"))
    assert "not finished" in refused(db, "SELECT dp_diffuse('b', 'public')")
    assert stored(path) == before and one(db, "SELECT count(*) FROM dp_charge") == 2
    cursor.fetchall()
    assert one(connect(path), "SELECT value FROM dp_value") == value and one(db, "SELECT dp_verify()") == "ok"


def test_what_another_connection_has_discarded_hides_nothing_else(db, path):
    one(db, SUM, "before")
    cursor = db.execute(NAMED + " UNION ALL SELECT 1 UNION ALL SELECT 2")
    cursor.fetchone()
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
        cursor = db.execute(sys.argv[2] + " UNION ALL SELECT 1 UNION ALL SELECT 2")
        value = cursor.fetchone()[0]
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        cursor.fetchall()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert ledger_of(sys.argv[1]).execute("SELECT state FROM dp_release").fetchall() == [("charged",)]
        exec(sys.argv[3])
        print(repr(value), flush=True)
        os._exit(0)
        """, path, NAMED, then)
    db = connect(path)
    assert states(db) == ["released"] and one(db, "SELECT value FROM dp_value") == float(value)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.slow  # waits for a lock for 10 seconds
def test_what_cannot_be_stored_at_the_end_is_stored_later(db, path):
    """While the statement ends, another connection locks the ledger for longer than the extension waits (10 s). The value is
    stored by a later statement."""
    cursor = db.execute(NAMED + " UNION ALL SELECT 1 UNION ALL SELECT 2")
    value = cursor.fetchone()[0]
    ledger = ledger_of(path)
    ledger.execute("BEGIN IMMEDIATE")
    cursor.fetchall()
    ledger.execute("ROLLBACK")
    ledger.close()
    assert one(connect(path), "SELECT state FROM dp_release") == "charged"
    assert one(db, "SELECT value FROM dp_value") == value  # the value is in memory
    assert one(db, NAMED) == value and one(connect(path), "SELECT value FROM dp_value") == value
    assert one(db, "SELECT count(*) FROM dp_charge") == 1 and one(db, "SELECT dp_verify()") == "ok"


# ---- statements that write ------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [
    f"INSERT INTO published {NAMED}", f"INSERT INTO published VALUES (({NAMED}))", f"REPLACE INTO published {NAMED}",
    f"INSERT INTO published {NAMED} RETURNING v", f"CREATE TABLE made AS {NAMED}", f"CREATE TEMP TABLE made AS {NAMED}",
    f"INSERT INTO published SELECT ({NAMED}) + 0 * count(*) FROM published", f"WITH r AS ({NAMED}) INSERT INTO published SELECT * FROM r",
    f"BEGIN; INSERT INTO published {NAMED}"])
def test_a_value_that_is_inserted_is_released(db, sql):
    """last_insert_rowid() is 1 before and after the statement, so it does not show that a row was inserted."""
    db.execute("CREATE TABLE published(v)")
    db.execute("CREATE TABLE other(v)")
    db.execute("INSERT INTO other VALUES (1)")
    *before, sql = sql.split("; ")
    for statement in before:
        db.execute(statement)
    db.execute(sql).fetchall()
    table = "made" if "made" in sql else "published"
    assert states(db) == ["released"]
    assert one(db, f"SELECT v FROM {table}" if table == "published" else "SELECT * FROM made") == one(db, "SELECT value FROM dp_value")
    assert one(db, "SELECT last_insert_rowid()") == 1


@pytest.mark.parametrize("sql", [
    f"INSERT INTO published {TORN}", f"CREATE TABLE made AS {TORN}", f"INSERT INTO published {TORN} RETURNING v",
    f"INSERT INTO checked {NAMED}", f"INSERT INTO published SELECT json('{{' || dp_sum('clinic', minutes, 10, patient, 'a')) FROM visits",
    f"INSERT INTO by_key SELECT 1, dp_sum('clinic', minutes, 10, patient, 'a') FROM visits WHERE {BAD_MINUTES} IS NOT NULL"])
def test_a_statement_that_writes_and_fails(db, path, sql):
    db.execute("CREATE TABLE published(v)")
    db.execute("CREATE TABLE checked(v CHECK (v IS NULL))")
    db.execute("CREATE TABLE by_key(k PRIMARY KEY, v) WITHOUT ROWID")
    db.execute("INSERT INTO published VALUES (1)")
    refused(db, sql)
    assert one(db, "SELECT last_insert_rowid()") == 1
    assert_gone(path)


@pytest.mark.parametrize("sql", [
    "INSERT INTO by_key SELECT 1, dp_sum('clinic', minutes, 10, patient, 'a') FROM visits",
    f"WITH r AS ({NAMED}) UPDATE published SET v = (SELECT * FROM r)",
    "INSERT INTO published SELECT dp_sum('clinic', minutes, 10, patient, 'a') + 0 * last_insert_rowid() FROM visits"])
def test_what_cannot_be_told_fails(db, path, sql):
    """The guard has no evidence that these statements continued, so their releases fail (statement_guard.h)."""
    db.execute("CREATE TABLE published(v)")
    db.execute("CREATE TABLE by_key(k PRIMARY KEY, v) WITHOUT ROWID")
    db.execute("INSERT INTO published VALUES (1)")
    db.execute(sql)
    assert_gone(path)


@pytest.mark.parametrize("sql", [f"UPDATE published SET v = ({NAMED})", f" /* a */ -- b\n delete from published WHERE v = ({NAMED})"])
def test_update_and_delete_are_refused_before_the_charge(db, sql):
    db.execute("CREATE TABLE published(v)")
    db.execute("INSERT INTO published VALUES (1)")
    assert "nothing was charged" in refused(db, sql)
    assert states(db) == [] and one(db, "SELECT count(*) FROM dp_charge") == 0
    value = one(db, NAMED)
    db.execute(f"UPDATE published SET v = ({NAMED})")  # a replay
    assert one(db, "SELECT v FROM published") == value


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


def test_a_refinement_hides_nothing_while_it_runs(db, path):
    outer = one(db, "SELECT dp_sum('public', minutes, 10, patient, 'a') FROM visits")
    other, seen = connect(path), []
    db.create_function("look", 1, lambda x: seen.append(other.execute("SELECT value FROM dp_value").fetchall()) or x)
    one(db, """SELECT look(dp_sum('clinic', minutes, 10, patient, '{"name":"a","refine":true}')) FROM visits""")
    assert seen == [[(outer,)]]
    assert [tier for (tier,) in db.execute("SELECT tier FROM dp_value")] == ["public", "clinic"]
    assert one(db, "SELECT dp_verify()") == "ok"


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
every("SELECT dp_init(json_object('unchecked', json('true'))); SELECT dp_tier('clinic', 0.004, 8.0, 1e-6)")
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
    well("insert" + suffix, "INSERT INTO published SELECT {} FROM visits")
    well("create" + suffix, f"CREATE TEMP TABLE [made{suffix}] AS SELECT {{}} AS v FROM visits")
    ill("torn" + suffix, "SELECT {} FROM visits")
    ill("torn insert" + suffix, "INSERT INTO published SELECT {} FROM visits")
    ill("column" + suffix, "SELECT {}, json('{{' || count(*)) FROM visits", "minutes")
    ill("group" + suffix, "SELECT {} FROM visits GROUP BY patient % 3", "minutes")
all_of("")
cursor = db.cursor().execute("INSERT INTO log VALUES (1), (2), (3) RETURNING x")
next(cursor)
all_of(" beside RETURNING")
cursor.close(True)
blob = call("blob_open", "blobopen")("main", "files", "body", 1, True)
all_of(" beside a blob")
blob.close()
calls = []
create = call("create_scalar_function", "createscalarfunction")
create("note", lambda x: calls.append(x) or x)
progress = call("set_progress_handler", "setprogresshandler")
progress(lambda: len(calls) > 30, 10)
ill("progress", "SELECT {} FROM visits", "note(minutes)")
progress(None)
create("stop", lambda x: db.interrupt() or x)
ill("interrupt", "SELECT {} FROM visits", "iif(rowid = 60, stop(minutes), minutes)")
states = dict(every("SELECT name, state FROM dp_release"))
assert {name for name, state in states.items() if state == "released"} == set(good), states
assert {name for name, state in states.items() if state == "failed"} == set(bad), states
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
