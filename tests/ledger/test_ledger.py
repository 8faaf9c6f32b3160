"""Tests the place of the ledger, its refusals, its charges, and the verification of its totals."""

import ctypes
import hashlib
import json
import os
import pathlib
import platform
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

import pytest

import conftest
from conftest import (add_tiers, add_visits, APPEND_ONLY, connect, create, edit, INIT, ledger_of, load, make_ledger, one, one_row, open_files, Raw, reading, refused, SUM)

pytestmark = pytest.mark.alarm(1e-12)

RELEASE = "SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', ?)"
TABLES = ["dp_tier", "dp_release", "dp_publication", "dp_value", "dp_charge", "dp_rdp", "dp_budget"]


def charges(connection):
    return one(connection, "SELECT count(*) FROM dp_charge")


def spent(connection, tier="clinic"):
    return one(connection, "SELECT spent_rate FROM dp_budget WHERE tier = ?", tier)


def files(path):
    """Returns the files of a directory, without the empty journals that journal_mode = TRUNCATE leaves behind."""
    return sorted(name for name in os.listdir(path)
                  if not (name.endswith("-journal") and os.path.getsize(f"{path}/{name}") == 0))


PROTECT = "SELECT dp_protect('visits', 'patient')"


def bare(path):
    """Returns a connection to a database with visits and no ledger."""
    connection = connect(path)
    add_visits(connection)
    return connection


# ---- without a ledger -----------------------------------------------------------------------------

NO_LEDGER = "{}: no privacy ledger for 'clinic.db' (run SELECT dp_init())"


@pytest.mark.parametrize("function,sql", [
    ("dp_sum", "SELECT dp_sum('clinic', minutes, 10) FROM visits"),
    ("dp_count", "SELECT dp_count('clinic', minutes, 1) FROM visits"),
    ("dp_release", "SELECT dp_release('clinic', 'sum', 'SELECT 1 FROM visits', '{\"clip\":1}')"),
    ("dp_tier", "SELECT dp_tier('clinic', 0.1, 8.0, 1e-6)"), ("dp_diffuse", "SELECT dp_diffuse('a', 'clinic')"),
    ("dp_discard", "SELECT dp_discard('a')"), ("dp_exposure", "SELECT dp_exposure('clinic')"),
    ("dp_verify", "SELECT dp_verify()")] + [(table, f"SELECT * FROM {table}") for table in TABLES])
def test_without_a_ledger_everything_says_how_to_get_one(path, function, sql):
    assert refused(bare(path), sql) == NO_LEDGER.format(function)
    assert os.listdir(path.parent) == ["clinic.db"]


def test_without_a_ledger_an_in_memory_database_is_told_the_same():
    assert refused(bare(":memory:"), "SELECT dp_verify()") == (
        "dp_verify: no privacy ledger for ':memory:' (run SELECT dp_init())")


def test_planning_needs_no_ledger(path):
    assert one(bare(path), "SELECT dp_rate(1.0, 1e-6)") > 0
    assert os.listdir(path.parent) == ["clinic.db"]


# ---- dp_init --------------------------------------------------------------------------------------


def test_dp_init_returns_the_path_and_creates_the_file(path):
    assert one(bare(path), INIT) == f"{path}-ledger"
    assert os.path.exists(f"{path}-ledger")


def test_dp_init_is_idempotent(path):
    db = bare(path)
    first = one(db, """SELECT dp_init('{"unit":"patient"}')""")
    identity = one(db, "SELECT id FROM dp_ledger_id")
    one(db, PROTECT)
    add_tiers(db)
    one(db, SUM, "a")
    for sql in (INIT, """SELECT dp_init('{"unit":"patient","protects":"unit"}')""",
                """SELECT dp_init('{"adjacency":"add-remove"}')"""):
        assert one(db, sql) == first
        assert one(connect(path), sql) == first
    assert db.execute("SELECT id, path FROM dp_ledger_id").fetchall() == [(identity, "clinic.db-ledger")]
    assert charges(db) == 1


def test_the_marker_is_one_row_with_the_ledgers_id(db, path):
    identity = ledger_of(path).execute("SELECT id FROM dp_ledger").fetchall()
    assert len(identity) == 1 and len(identity[0][0]) == 32
    assert sqlite3.connect(path).execute("SELECT id, path FROM dp_ledger_id").fetchall() == [
        (identity[0][0], "clinic.db-ledger")]


def test_the_terms_are_stored(path):
    one(bare(path), """SELECT dp_init('{"unit":"patient","protects":"row","adjacency":"replace"}')""")
    assert ledger_of(path).execute("SELECT unit, protects, adjacency FROM dp_ledger").fetchall() == [
        ("patient", "row", "replace")]


def test_the_file_is_recognised_and_never_in_wal_mode(db, path):
    ledger = ledger_of(path)
    assert one(ledger, "PRAGMA application_id") == 1684432486 == int.from_bytes(b"dfff", "big")
    assert one(ledger, "PRAGMA user_version") == 1
    assert one(ledger, "PRAGMA journal_mode") != "wal"


@pytest.mark.parametrize("number", [0, 2, 4])
def test_other_formats_are_refused_and_left_alone(db, path, number):
    ledger_of(path).execute(f"PRAGMA user_version = {number}")
    before = pathlib.Path(f"{path}-ledger").read_bytes()
    wanted = (f"the privacy ledger '{path}-ledger' has format {number}, and this version reads format 1"
              " (use the version of diffuse that wrote it)")
    assert wanted in refused(connect(path), "SELECT dp_verify()") and wanted in refused(connect(path), INIT)
    assert pathlib.Path(f"{path}-ledger").read_bytes() == before


@pytest.mark.parametrize("terms", ['{"unit":"visit"}', '{"protects":"row"}', '{"adjacency":"replace"}'])
def test_other_terms_are_refused(path, terms):
    db = bare(path)
    one(db, """SELECT dp_init('{"unit":"patient"}')""")
    for connection in (db, connect(path)):
        assert "cannot be changed" in refused(connection, "SELECT dp_init(?)", terms)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("options,word", [
    ('{"units":"patient"}', "known options: path, unit, protects, adjacency"), ('{"protects":"rows"}', "'row'"),
    ('{"adjacency":"add"}', "'add-remove'"), ('{"unit":""}', "empty"), ('{"path":3}', "path"), ('[]', "JSON"),
    ('{"unit":"a","unit":"b"}', "twice"), ("patient", "JSON"), (3, "options")])
def test_bad_options_leave_nothing_behind(path, options, word):
    db = bare(path)
    message = refused(db, "SELECT dp_init(?)", options)
    assert message.startswith("dp_init: ") and word in message
    assert os.listdir(path.parent) == ["clinic.db"]
    assert "dp_verify: no privacy ledger" in refused(db, "SELECT dp_verify()")


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT s"])
def test_dp_init_in_a_transaction_is_refused(path, begin):
    db = bare(path)
    db.execute(begin)
    assert "inside a transaction" in refused(db, INIT)
    assert db.in_transaction
    db.execute("ROLLBACK")
    assert os.listdir(path.parent) == ["clinic.db"]


def test_dp_init_with_a_relative_path_is_relative_to_the_database(path, monkeypatch):
    (path.parent / "books").mkdir()
    monkeypatch.chdir("/")
    db = bare(path)
    assert one(db, """SELECT dp_init('{"path":"books/mine"}')""") == str(path.parent / "books/mine")
    assert one(db, "SELECT path FROM dp_ledger_id") == "books/mine"
    one(db, PROTECT)
    add_tiers(db)
    value = one(db, SUM, "a")
    assert one(connect(path), SUM, "a") == value
    assert files(path.parent) == ["books", "clinic.db"]


def test_dp_init_with_an_absolute_path(path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "mine"
    db = bare(path)
    assert one(db, "SELECT dp_init(?)", json.dumps({"path": str(elsewhere)})) == str(elsewhere)
    one(db, PROTECT)
    add_tiers(db)
    value = one(db, SUM, "a")
    assert one(connect(path), SUM, "a") == value
    assert files(path.parent) == ["clinic.db"] and elsewhere.exists()


def test_dp_init_again_with_another_path_is_refused(db, path):
    assert "clinic.db-ledger" in refused(db, """SELECT dp_init('{"path":"other"}')""")
    assert not (path.parent / "other").exists()


@pytest.mark.parametrize("spelling", ["{name}", "{full}", "./{name}", "../{parent}/{name}", "link"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_the_database_itself_cannot_be_the_ledger(path, spelling, mode):
    db = bare(path)
    db.execute(f"PRAGMA journal_mode = {mode}")
    (path.parent / "link").symlink_to(path)
    name = spelling.format(name=path.name, full=path, parent=path.parent.name)
    assert refused(db, "SELECT dp_init(?)", json.dumps({"path": name})).startswith("dp_init: ")
    assert one(db, "PRAGMA journal_mode") == mode
    assert one(db, "SELECT count(*) FROM visits") == 100
    assert [t for (t,) in db.execute("SELECT name FROM sqlite_master")] == ["visits"]


def spoil(file, how):
    if how == "garbage":
        file.write_bytes(random.Random(1).randbytes(20000))
    elif how == "a few bytes":
        file.write_bytes(b"hello\n")
    elif how == "an ordinary database":
        sqlite3.connect(file).executescript("CREATE TABLE t(x); INSERT INTO t VALUES (1)")
    elif how == "an ordinary database in WAL mode":
        other = sqlite3.connect(file)
        other.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
        other.close()
    elif how == "truncated":
        os.truncate(file, os.path.getsize(file) // 2)
    elif how == "cut to its header":
        os.truncate(file, 100)
    elif how == "zero-length":
        os.truncate(file, 0)


@pytest.mark.parametrize("how", ["garbage", "a few bytes", "an ordinary database", "an ordinary database in WAL mode"])
def test_dp_init_never_takes_or_touches_a_file_that_is_no_ledger(path, how):
    file = path.parent / "clinic.db-ledger"
    db = bare(path)
    spoil(file, how)
    before = file.read_bytes()
    for sql in (INIT, "SELECT dp_verify()"):
        message = refused(db, sql)
        assert "clinic.db-ledger" in message, message
    assert file.read_bytes() == before
    assert [t for (t,) in db.execute("SELECT name FROM sqlite_master")] == ["visits"]


@pytest.mark.parametrize("how", ["garbage", "a few bytes", "truncated", "cut to its header", "zero-length"])
def test_a_damaged_ledger_refuses_releases_and_dp_init(db, path, how):
    one(db, SUM, "a")
    db.close()
    file = path.parent / "clinic.db-ledger"
    spoil(file, how)
    before = file.read_bytes()
    for sql in (INIT, "SELECT dp_verify()", "SELECT dp_sum('clinic', minutes, 10) FROM visits"):
        message = refused(connect(path), sql)
        assert "clinic.db-ledger" in message and "restore" in message, message
    assert file.read_bytes() == before


def test_an_empty_file_is_no_ledger_and_dp_init_fills_it(path):
    db = bare(path)
    (path.parent / "clinic.db-ledger").touch()
    assert refused(db, "SELECT dp_verify()") == NO_LEDGER.format("dp_verify")
    one(db, INIT)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_directory_in_the_ledgers_place_is_refused(path):
    db = bare(path)
    (path.parent / "clinic.db-ledger").mkdir()
    assert "clinic.db-ledger" in refused(db, INIT)
    assert [t for (t,) in db.execute("SELECT name FROM sqlite_master")] == ["visits"]


def test_a_missing_directory_leaves_neither_marker_nor_file(path):
    db = bare(path)
    assert "cannot open" in refused(db, """SELECT dp_init('{"path":"nowhere/ledger"}')""")
    assert os.listdir(path.parent) == ["clinic.db"]
    assert [t for (t,) in db.execute("SELECT name FROM sqlite_master")] == ["visits"]
    assert one(db, INIT)


def test_a_marker_that_cannot_be_written_leaves_neither_marker_nor_file(path):
    db = bare(path)
    db.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "dp_ledger_id" in refused(db, INIT)
    other.execute("ROLLBACK")
    assert os.listdir(path.parent) == ["clinic.db"]
    assert [t for (t,) in db.execute("SELECT name FROM sqlite_master")] == ["visits"]
    assert not db.in_transaction and one(db, INIT)


def test_a_commit_that_fails_takes_the_marker_back(path):
    """The test deletes the ledger file after its creation and before the commit, while the marker is written."""
    db = bare(path)
    db.execute("CREATE TABLE t(x)")

    def delete(action, name, *_):
        if action == sqlite3.SQLITE_CREATE_TABLE and name == "dp_ledger_id":
            os.unlink(f"{path}-ledger")
        return sqlite3.SQLITE_OK

    db.set_authorizer(delete)
    message = refused(db, INIT)
    db.set_authorizer(None)
    assert "moved or deleted" in message
    assert one(db, "SELECT count(*) FROM sqlite_master WHERE name = 'dp_ledger_id'") == 0
    assert not db.in_transaction and one(db, INIT)


@pytest.fixture
def unwritable():
    """Yields a folder and a function that runs Python in it, when the folder cannot be written. The function runs as a user other
    than root, because the permissions of folders do not stop root."""
    home = tempfile.mkdtemp(prefix="diffuse-test-")

    def run(code, secret=()):
        shutil.copy(conftest.EXTENSION + ".so", home)
        shutil.copy(conftest.__file__, home)
        for file in os.listdir(home):
            if file not in secret:
                os.chmod(f"{home}/{file}", 0o755 if file.endswith(".so") else 0o666)
        os.chmod(home, 0o555)
        who = {"user": 65534, "group": 65534} if os.getuid() == 0 else {}
        done = subprocess.run([sys.executable, "-B", "-c", "import os; from conftest import *; assert os.getuid() != 0\n" + code], cwd=home,
                              env=dict(os.environ, BUILD=home), capture_output=True, text=True, **who)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    yield home, run
    os.chmod(home, 0o755)
    shutil.rmtree(home)


def test_an_unwritable_directory_leaves_neither_marker_nor_file(unwritable):
    home, run = unwritable
    sqlite3.connect(f"{home}/clinic.db").executescript("CREATE TABLE visits(patient, minutes)")
    message, tables = run("db = connect('clinic.db'); print(refused(db, 'SELECT dp_init()'));"
                          "print(db.execute('SELECT name FROM sqlite_master').fetchall())")
    assert message.startswith("dp_init: cannot open the privacy ledger") and "clinic.db-ledger" in message
    assert tables == "[('visits',)]"
    assert sorted(os.listdir(home)) == ["clinic.db", "conftest.py", "diffuse.so"]


def test_a_ledger_in_an_unwritable_directory_says_so(unwritable):
    home, run = unwritable
    create(f"{home}/clinic.db").close()
    (message,) = run("print(refused(connect('clinic.db'), SUM, 'a'))")
    assert "clinic.db-ledger-lock': Permission denied (make its folder writable)" in message


def test_a_ledger_that_may_not_be_read_says_so(unwritable):
    home, run = unwritable
    create(f"{home}/clinic.db").close()
    os.chmod(f"{home}/clinic.db-ledger", 0)
    (message,) = run("print(refused(connect('clinic.db'), SUM, 'a'))", ["clinic.db-ledger"])
    assert "unable to open database file (check its permissions)" in message


def test_a_ledger_is_no_database_for_another_ledger(path):
    create(path).close()
    db = connect(f"{path}-ledger")
    assert refused(db, INIT) == "dp_init: this file is a privacy ledger (open its database)"
    db.close()
    assert not os.path.exists(f"{path}-ledger-ledger")
    assert one(connect(path), "SELECT dp_verify()") == "ok"


# ---- the marker -----------------------------------------------------------------------------------


def lost(connection, words):
    for sql in (INIT, "SELECT dp_verify()", "SELECT * FROM dp_budget",
                "SELECT dp_sum('clinic', minutes, 10, 'a') FROM visits"):
        message = refused(connection, sql)
        safe, last = message.index("bring the right one along as"), message.index("DROP TABLE dp_ledger_id")
        assert words in message and safe < message.index("restore") < last and "starts a new budget" in message, message


def test_a_marker_without_its_ledger_refuses_releases_and_dp_init(db, path):
    one(db, SUM, "a")
    db.close()
    os.unlink(f"{path}-ledger")
    lost(connect(path), "missing")
    assert files(path.parent) == ["clinic.db"]


def test_dropping_the_marker_of_a_missing_ledger_starts_a_new_budget(db, path):
    one(db, SUM, "a")
    identity = one(db, "SELECT id FROM dp_ledger_id")
    db.close()
    os.unlink(f"{path}-ledger")
    db = connect(path)
    db.execute("DROP TABLE dp_ledger_id")
    one(db, INIT)
    assert one(db, "SELECT id FROM dp_ledger_id") != identity
    assert charges(db) == 0


def test_dropping_the_marker_while_the_ledger_is_there_keeps_the_budget(db, path):
    value = one(db, SUM, "a")
    identity, before = one(db, "SELECT id FROM dp_ledger_id"), spent(db)
    db.execute("DROP TABLE dp_ledger_id")
    one(db, INIT)
    assert one(db, "SELECT id FROM dp_ledger_id") == identity
    assert spent(db) == before > 0 and one(db, SUM, "a") == value


@pytest.mark.parametrize("terms", ['{"protects":"row"}', '{"adjacency":"replace"}', '{"unit":"visit"}'])
def test_dropping_the_marker_does_not_change_the_terms(db, path, terms):
    db.execute("DROP TABLE dp_ledger_id")
    assert "which cannot be changed" in refused(db, "SELECT dp_init(?)", terms)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'dp_ledger_id'").fetchall() == [(0,)]


def test_dropping_the_marker_of_a_database_that_is_locked_is_not_undone(db, path):
    db.execute("DROP TABLE dp_ledger_id")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    db.execute("PRAGMA busy_timeout = 0")
    assert "cannot leave the marker dp_ledger_id in the database: database is locked" in refused(db, INIT)
    other.execute("ROLLBACK")
    one(db, INIT)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_unit_cannot_be_named_afterwards(path):
    db = bare(path)
    one(db, INIT)
    assert "exists and its unit is '', which cannot be changed" in refused(db, """SELECT dp_init('{"unit":"patient"}')""")


def test_null_stands_for_what_is_left_out(path):
    db = bare(path)
    assert one(db, "SELECT dp_init(NULL)") == f"{path}-ledger"
    one(db, "SELECT dp_tier('a', 0.1, 8.0, 1e-6, NULL)")
    assert db.execute("SELECT accountant, delta_keys FROM dp_tier").fetchall() == [("rdp", 0)]
    one(db, "SELECT dp_tier('a', 0.1, 8.0, 1e-6, 'rdp')")  # the same


def test_a_foreign_ledger_refuses_releases_and_dp_init(db, path, tmp_path_factory):
    db.close()
    other = tmp_path_factory.mktemp("other") / "clinic.db"
    create(other).close()
    shutil.copy(f"{other}-ledger", f"{path}-ledger")
    lost(connect(path), "another database")
    assert sqlite3.connect(f"{path}-ledger").execute("SELECT count(*) FROM dp_charge").fetchall() == [(0,)]


def test_a_ledger_that_comes_back_is_accepted_again(db, path):
    value = one(db, SUM, "a")
    db.close()
    os.rename(f"{path}-ledger", f"{path}-saved")
    reopened = connect(path)
    lost(reopened, "missing")
    os.rename(f"{path}-saved", f"{path}-ledger")
    assert one(reopened, SUM, "a") == value


@pytest.mark.parametrize("damage", ["DELETE FROM dp_ledger_id", "UPDATE dp_ledger_id SET id = 'x'"])
def test_a_damaged_marker_refuses(db, path, damage):
    one(db, SUM, "a")
    db.execute(damage)
    for connection in (db, connect(path)):
        for sql in (INIT, "SELECT dp_verify()"):
            message = refused(connection, sql)
            assert message.index("restore") < message.index("DROP TABLE dp_ledger_id")


# ---- in memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [":memory:", "", "file::memory:", "file:{}/shared?vfs=memdb", "file:m?vfs=memdb",
                                  "file:m?mode=memory", "file:m?mode=memory&cache=shared"])
def test_an_in_memory_database_has_an_in_memory_ledger(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    db = connect(file.format(tmp_path), uri=True)
    add_visits(db)
    assert one(db, INIT) == ":memory:" == one(db, INIT)
    one(db, PROTECT)
    add_tiers(db)
    value = one(db, SUM, "a")
    assert one(db, SUM, "a") == value and charges(db) == 1
    assert one(db, "SELECT dp_verify()") == "ok"
    assert os.listdir(tmp_path) == []


def test_an_in_memory_ledger_belongs_to_its_connection(tmp_path):
    first = connect(f"file:{tmp_path}/one?vfs=memdb", uri=True)
    add_visits(first)
    make_ledger(first, "{}", "visits, patient")
    add_tiers(first)
    one(first, SUM, "a")
    second = connect(f"file:{tmp_path}/one?vfs=memdb", uri=True)
    assert one(second, "SELECT count(*) FROM visits") == 100
    for sql in (INIT, "SELECT dp_verify()"):
        refused(second, sql)
    assert charges(first) == 1


def test_an_in_memory_ledger_may_be_asked_for_by_its_name():
    db = bare(":memory:")
    assert one(db, """SELECT dp_init('{"path":":memory:"}')""") == ":memory:" == one(db, INIT)
    assert "must be absolute" in refused(bare(":memory:"), """SELECT dp_init('{"path":"relative"}')""")


def test_a_file_cannot_have_an_in_memory_ledger(path):
    assert refused(bare(path), """SELECT dp_init('{"path":":memory:"}')""").startswith("dp_init: ")
    assert os.listdir(path.parent) == ["clinic.db"]


def test_an_in_memory_main_with_an_attached_file_is_refused(path):
    bare(path).close()
    db = connect()
    one(db, INIT)
    add_tiers(db)
    db.execute("ATTACH ? AS data", (str(path),))
    message = refused(db, "SELECT dp_sum('clinic', minutes, 10) FROM data.visits")
    assert "'data'" in message and "dp_init" in message
    db.execute("DETACH data")
    assert charges(db) == 0


def test_a_relative_path_for_an_in_memory_database_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "absolute" in refused(connect(), """SELECT dp_init('{"path":"mine"}')""")
    assert os.listdir(tmp_path) == []


# ---- attached, read-only, copied, linked ----------------------------------------------------------


def test_an_attached_database_of_another_ledger_is_refused(db, path, tmp_path):
    create(tmp_path / "other.db").close()
    db.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
    for sql in (SUM, "SELECT dp_sum('clinic', minutes, 10, ?) FROM other.visits", RELEASE):
        assert "'other' belongs to another privacy ledger" in refused(db, sql, '{"clip":10}' if "dp_rel" in sql else "a")
    db.execute("DETACH other")
    assert charges(db) == 0
    assert isinstance(one(db, SUM, "a"), float)


def test_an_attached_database_of_the_same_ledger_is_fine(db, path, tmp_path):
    shutil.copy(path, tmp_path / "copy.db")
    db.execute("ATTACH ? AS copy", (str(tmp_path / "copy.db"),))
    assert isinstance(one(db, "SELECT dp_sum('clinic', minutes, 10) FROM visits"), float)


def test_an_attached_plain_database_is_fine(db, tmp_path):
    bare(tmp_path / "plain.db").close()
    db.execute("ATTACH ? AS plain", (str(tmp_path / "plain.db"),))
    db.execute("ATTACH ':memory:' AS scratch")
    assert isinstance(one(db, "SELECT dp_sum('clinic', minutes, 10) FROM visits"), float)
    assert charges(db) == 1


def test_a_symlinked_database_uses_the_same_ledger(db, path, tmp_path_factory):
    one(db, SUM, "a")
    link = tmp_path_factory.mktemp("links") / "link.db"
    link.symlink_to(path)
    linked = connect(link)
    one(linked, SUM, "b")
    assert charges(linked) == charges(db) == 2
    assert os.listdir(link.parent) == ["link.db"]


def test_a_symlinked_database_gets_its_ledger_beside_the_file(path, tmp_path_factory):
    bare(path).close()
    link = tmp_path_factory.mktemp("links") / "link.db"
    link.symlink_to(path)
    one(connect(link), INIT)
    assert os.path.exists(f"{path}-ledger") and os.listdir(link.parent) == ["link.db"]


def test_a_relative_database_path_survives_chdir(path, monkeypatch):
    create(path).close()
    monkeypatch.chdir(path.parent)
    db = connect("clinic.db")
    monkeypatch.chdir("/")
    assert isinstance(one(db, SUM, "a"), float) and charges(connect(path)) == 1


@pytest.mark.parametrize("name", ["with space.db", "quo'te.db", "per%cent?.db", "Ünï✓.db", "file:x.db"])
def test_odd_file_names_work(tmp_path, name):
    db = create(f"{tmp_path}/{name}")
    value = one(db, SUM, "a")
    assert one(connect(f"{tmp_path}/{name}"), SUM, "a") == value
    assert files(tmp_path) == sorted([name, name + "-ledger"])


# ---- nothing takes a charge back ------------------------------------------------------------------


@pytest.mark.parametrize("sql", [
    "UPDATE dp_charge SET rate = 0", "UPDATE dp_charge SET at = at WHERE id = 1", "DELETE FROM dp_charge",
    "INSERT OR REPLACE INTO dp_charge SELECT * FROM dp_charge", "REPLACE INTO dp_charge SELECT * FROM dp_charge WHERE id = 1",
    "INSERT INTO dp_charge SELECT * FROM dp_charge WHERE TRUE ON CONFLICT DO UPDATE SET rate = 0"])
def test_charges_are_append_only_for_any_sqlite_tool(db, path, sql):
    one(db, SUM, "a")
    before = ledger_of(path).execute("SELECT * FROM dp_charge").fetchall()
    assert refused(ledger_of(path), sql) == "dp_charge is append-only"
    assert ledger_of(path).execute("SELECT * FROM dp_charge").fetchall() == before


# ---- verification ---------------------------------------------------------------------------------


@pytest.fixture
def history(db, path):
    """Makes a ledger with three releases, one of them at two tiers, and closes the connection."""
    one(db, SUM, "a")
    one(db, "SELECT dp_diffuse('a', 'public')")
    one(db, SUM, "b")
    one(db, "SELECT dp_sum('region', minutes, 10, 'c') FROM visits")
    assert charges(db) == 6  # a is charged at clinic, region and public, b at clinic, and c at clinic and region
    db.close()
    return path


def verdict(path):
    return one(connect(path), "SELECT dp_verify()")


def tamper(path, *statements):
    ledger = ledger_of(path)
    triggers = ledger.execute(APPEND_ONLY).fetchall()
    for name, _ in triggers:
        ledger.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        assert edit(ledger, statement) != 0
    for _, sql in triggers:
        ledger.execute(sql)
    ledger.close()


def test_dp_verify_is_ok_for_an_honest_history(history):
    assert verdict(history) == "ok"
    tamper(history)
    assert verdict(history) == "ok"


@pytest.mark.parametrize("column", ["spent_rate", "spent_epsilon", "remaining_epsilon", "releases", "spent_high",
                                    "spent_low", "spent_slack", "spent_delta", "releases_left", "epsilon", "delta"])
def test_dp_verify_finds_a_changed_budget(history, column):
    tamper(history, f"UPDATE dp_budget SET {column} = {column} * 0.5 + 1e-7 WHERE tier = 'clinic'")
    assert verdict(history).startswith("dp_budget: tier 'clinic'")


def test_dp_verify_finds_a_charge_rewritten_with_its_hashes(history):
    """An attacker who knows the hash chain halves a rate and recomputes all hashes. The totals reveal the change."""
    tamper(history, "UPDATE dp_charge SET rate = rate / 2 WHERE id = 2")
    hashes = chain(ledger_of(history))
    tamper(history, *[f"UPDATE dp_charge SET hash = '{digest}' WHERE id = {identity}" for identity, digest in hashes])
    assert "budget" in verdict(history)


def chain(ledger):
    """Computes (id, hash) of every charge by the rule in sql/ledger.sql."""
    digest = ""
    hashes = []
    terms = ledger.execute("SELECT id, protects, adjacency FROM dp_ledger").fetchone()
    for identity, release_id, release, tier, rate, slack, delta, curve, *texts in ledger.execute(
            "SELECT id, release_id, release, tier, rate, slack, delta, curve, at, period, grant_name, kind FROM dp_charge"
            " ORDER BY id").fetchall():
        lattice = ledger.execute("SELECT fingerprint, granularity, shift, sensitivity FROM dp_release WHERE id = ?",
                                 (release_id,)).fetchone()
        (tier_rate,) = ledger.execute("SELECT rate FROM dp_tier WHERE name = ?", (tier,)).fetchone()
        bits = [struct.pack(">d", x).hex() for x in (tier_rate, rate, slack, delta)]
        subject = "/".join(map(str, terms + lattice))
        lines = [digest, str(identity), str(release_id), release, tier, subject, *bits, (curve or b"").hex(),
                 *(text or "" for text in texts)]
        digest = hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
        hashes.append((identity, digest))
    return hashes


def test_the_hash_chain_is_what_the_schema_says(db, path):
    for name in ("a", "with\nnewline", "Ünï✓", "it's"):
        one(db, SUM, name)
        one(db, "SELECT dp_diffuse(?, 'public')", name)
    stored = ledger_of(path).execute("SELECT id, hash FROM dp_charge ORDER BY id").fetchall()
    assert len(stored) == 12 and stored == chain(ledger_of(path))


# ---- who pays what --------------------------------------------------------------------------------


class Books:
    """A brute-force model of the ledger. It computes exposures from the publications alone, and knows which tiers have a point on
    each path."""

    def __init__(self, connection, path):
        self.db, self.ledger = connection, ledger_of(path)
        self.rates = {}     # tier: rate
        self.points = {}    # release: tiers that have a point
        self.published = {}  # release: tiers
        self.weights = {}
        self.first = {}     # release: the rate of its first point

    def inside(self, tier):
        return [t for t, rate in self.rates.items() if rate >= self.rates[tier]]

    def spent(self, tier):
        """Returns the sum, over all releases, of the rate of the innermost publication at this tier or at tiers outside
        this tier."""
        rates = {}
        for release, at, rate in self.ledger.execute("SELECT release_id, tier, rate FROM dp_publication"):
            if self.rates[at] <= self.rates[tier]:
                rates[release] = max(rates.get(release, 0), Fraction(rate))
        return rates

    def check(self):
        assert {(r, t) for r, t in self.ledger.execute("SELECT release, tier FROM dp_publication")} == {
            (r, t) for r, tiers in self.published.items() for t in tiers}
        assert {(r, t) for r, t in self.ledger.execute("SELECT DISTINCT release, tier FROM dp_path")} == {
            (r, t) for r, tiers in self.points.items() for t in tiers}
        for release, tier, rate in self.ledger.execute("SELECT release, tier, rate FROM dp_publication"):
            nominal = Fraction(self.rates[tier]) * Fraction(self.weights[release])
            assert nominal * (1 - Fraction(1, 10**9)) <= Fraction(rate) <= nominal
        for tier in self.rates:
            rates = self.spent(tier)
            want = sum(rates.values(), Fraction(0))
            paid = sum((Fraction(r) for (r,) in self.db.execute("SELECT rate FROM dp_charge WHERE tier = ?", (tier,))),
                       Fraction(0))
            total, releases = self.db.execute("SELECT spent_rate, releases FROM dp_budget WHERE tier = ?", (tier,)).fetchall()[0]
            assert want * (1 - Fraction(1, 10**15)) <= paid <= want * (1 + Fraction(1, 10**15))
            assert paid <= Fraction(total) <= paid * (1 + Fraction(1, 10**15))
            assert releases == len(rates)
        names = list(self.rates)
        for size in (1, 2, len(names)):
            seen = random.sample(names, min(size, len(names)))
            self.check_exposure(seen)

    def check_exposure(self, seen):
        """Checks the exposure: the sum over releases of the largest rate among the publications at exactly the listed tiers."""
        rates = {}
        for release, tier, rate in self.ledger.execute("SELECT release_id, tier, rate FROM dp_publication"):
            if tier in seen:
                rates[release] = max(rates.get(release, 0), Fraction(rate))
        want = sum(rates.values(), Fraction(0))
        got = json.loads(one(self.db, "SELECT dp_exposure(?)", ",".join(seen)))
        assert want <= Fraction(got["rate"]) <= want * (1 + Fraction(1, 10**14))
        assert len(got["releases"]) == len(rates)
        assert got["epsilon"] == pytest.approx(one(self.db, "SELECT dp_zcdp_epsilon(?, 1e-6)", got["rate"]), rel=1e-9)

    def try_sql(self, allowed, sql, *parameters):
        before = charges(self.db)
        if allowed:
            one(self.db, sql, *parameters)
        else:
            refused(self.db, sql, *parameters)
            assert charges(self.db) == before
        return allowed

    def new_tier(self, name, rate):
        one(self.db, "SELECT dp_tier(?, ?, 1000, 1e-6)", name, rate)
        self.rates[name] = rate

    def release(self, name, tier, weight):
        options = json.dumps({"name": name, "weight": weight, "clip": 1})
        one(self.db, "SELECT dp_release(?, 'sum', 'SELECT 1 FROM t', ?)", tier, options)
        self.weights[name], self.points[name], self.published[name] = weight, {tier}, {tier}
        self.first[name] = self.rates[tier]

    def publish(self, name, tier, refine):
        """Asks for a publication at a tier. The request must succeed in four cases: the tier has a point, the tier is outside the
        last point, the tier is inside the first point and the request refines, or the tier is between two points of which the
        inner point was not refined. Otherwise the request must be refused."""
        rates, rate = [self.rates[t] for t in self.points[name]], self.rates[tier]
        outward, inward = rate < min(rates), rate > max(rates)
        between = not outward and not inward and min(r for r in rates if r >= rate) <= self.first[name]
        allowed = tier in self.points[name] or outward or between or (inward and refine)
        if refine:
            options = json.dumps({"name": name, "weight": self.weights[name], "clip": 1, "refine": True})
            self.try_sql(allowed, "SELECT dp_release(?, 'sum', 'SELECT 1 FROM t', ?)", tier, options)
        else:
            self.try_sql(allowed, "SELECT dp_diffuse(?, ?)", name, tier)
        if allowed:
            low, high = min(rates + [rate]), max(rates + [rate])
            walked = {t for t, r in self.rates.items() if (outward and rate <= r < min(rates)) or
                      (inward and max(rates) < r <= rate)}
            assert all(low <= self.rates[t] <= high for t in walked)
            self.points[name] |= walked | {tier}
            self.published[name].add(tier)


@pytest.mark.parametrize("seed", range(6))
def test_budgets_of_a_random_history_are_the_exposures(path, seed):
    choice = random.Random(seed)
    random.seed(seed)
    db = one_row(connect(path))
    books = Books(db, path)
    rates = choice.sample([0.9, 0.5, 0.1, 0.07, 0.01, 0.003, 0.001], 7)
    for step in range(45):
        names = list(books.points)
        if not books.rates or (rates and choice.random() < 0.15):
            books.new_tier(f"t{len(rates)}", rates.pop())
        elif not names or choice.random() < 0.25:
            books.release(f"r{step}", choice.choice(list(books.rates)), choice.choice([1, 1, 0.5, 0.3, 0.01]))
        else:
            books.publish(choice.choice(names), choice.choice(list(books.rates)), choice.random() < 0.4)
        if step % 3 == 0:
            books.check()
    books.check()
    assert one(db, "SELECT dp_verify()") == "ok"
    assert sum(len(tiers) for tiers in books.published.values()) > len(books.published) > 3


def test_a_tier_created_later_that_cannot_pay_is_refused_with_nothing_stored(db, path):
    for name in "abc":
        one(db, "SELECT dp_sum('region', minutes, 10, ?) FROM visits", name)
    dump = list(ledger_of(path).iterdump())
    message = refused(db, "SELECT dp_tier('staff', 0.002, 4.999, 1e-6)")
    assert "'staff'" in message and "budget" in message
    assert list(ledger_of(path).iterdump()) == dump
    assert one(db, "SELECT dp_tier('staff', 0.002, 5, 1e-6)") == "staff"
    spent = db.execute("SELECT spent_rate, spent_epsilon FROM dp_budget WHERE tier IN ('staff', 'region')").fetchall()
    assert spent[0] == spent[1] and spent[0][0] > 0.0029


def test_the_same_tier_again_is_a_no_op(db, path):
    dump = list(ledger_of(path).iterdump())
    add_tiers(db)
    assert list(ledger_of(path).iterdump()) == dump


@pytest.mark.parametrize("seed", range(5))
def test_what_a_release_has_paid_in_pieces_is_never_below_its_rate(path, seed):
    """If a release is refined step by step, the exact sum of the charges is at least the rate of the innermost publication."""
    choice = random.Random(seed)
    db = create(path, tiers=[(f"t{i}", choice.uniform(0.001, 1), 1000, 1e-6) for i in range(6)])
    tiers = [name for (name,) in db.execute("SELECT name FROM dp_tier ORDER BY rate")]
    for tier in tiers:
        one(db, "SELECT dp_sum(?, minutes, 10, ?) FROM visits", tier, '{"name":"a","refine":true}')
    for tier in tiers:
        paid = sum(Fraction(r) for (r,) in db.execute("SELECT rate FROM dp_charge WHERE tier = ?", (tier,)))
        assert paid >= Fraction(one(db, "SELECT rate FROM dp_publication WHERE tier = ?", tier)), tier


def test_exact_accounting_is_refused_where_the_lattice_would_take_half_of_delta(path):
    db = create(path)
    message = refused(db, "SELECT dp_tier('huge', 2.5, 57.8, 1e-6, 'gdp')")
    assert message == ("dp_tier: epsilon 57.8 is too large for exact Gaussian accounting on the lattice"
                       " at delta 1e-06 (use the accountant 'rdp')")
    assert one(db, "SELECT count(*) FROM dp_tier WHERE name = 'huge'") == 0


LARGE = [("gdp", "dp_epsilon", rate) for rate in (1 / 3,)]  # epsilon is 14.6, so the factor e^epsilon of the slack is large


@pytest.mark.parametrize("accountant,function,rate", [(a, f, rate) for a, f in (("rdp", "dp_zcdp_epsilon"), ("gdp", "dp_epsilon"))
                                                      for rate in (0.1, 0.0007, 0.03)]
                         + [("rdp", "dp_zcdp_epsilon", rate) for rate in (1 / 3, 2.5)] + LARGE)
def test_ten_tenths_of_a_budget_fit_exactly_ten_times(path, accountant, function, rate):
    db = bare(path)
    make_ledger(db, "{}", "visits, patient")
    epsilon = one(db, f"SELECT {function}(10 * ?, 1e-6)", rate)
    one(db, "SELECT dp_tier('clinic', ?, ?, 1e-6, ?)", rate, epsilon, accountant)
    aggregate = "SELECT dp_sum('clinic', minutes, 10) FROM visits"
    release = """SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{"clip":10}')"""
    for i in range(10):
        assert one(db, "SELECT releases_left FROM dp_budget") == 10 - i
        one(db, aggregate if i % 2 else release)
    before = list(ledger_of(path).iterdump())
    with reading(db) as reads:
        message = refused(db, release)
    assert "tier 'clinic' would exceed its budget" in message and "nothing was charged or read" in message
    assert not reads
    assert "tier 'clinic' would exceed its budget" in refused(db, aggregate)
    assert list(ledger_of(path).iterdump()) == before
    assert one(db, "SELECT releases_left FROM dp_budget") == 0
    remaining, allowed = db.execute("SELECT remaining_epsilon, epsilon FROM dp_budget").fetchall()[0]
    assert 0 <= remaining <= 1e-9 * allowed


def test_a_refusal_of_one_tier_charges_none(path):
    """The outer release would fit its own tier but not the tier inside it."""
    db = create(path, tiers=[("inner", 0.1, 2.5, 1e-6), ("outer", 0.05, 9.0, 1e-6)])
    one(db, "SELECT dp_sum('inner', minutes, 10) FROM visits")
    before = list(ledger_of(path).iterdump())
    message = refused(db, "SELECT dp_sum('outer', minutes, 10) FROM visits")
    assert "tier 'inner'" in message and "left" in message
    assert list(ledger_of(path).iterdump()) == before


@pytest.mark.parametrize("seed", range(3))
def test_releases_left_is_how_many_really_fit(tmp_path, seed):
    choice = random.Random(seed)
    db = create(tmp_path / "clinic.db", tiers=[
        ("inner", 0.1, choice.uniform(8, 10), 1e-6, choice.choice(["rdp", "gdp"])),
        ("middle", 0.05, choice.uniform(4, 8), 1e-6), ("outer", 0.02, choice.uniform(3, 6), 1e-6, "gdp")])
    for _ in range(4):
        one(db, "SELECT dp_sum(?, minutes, 10, ?) FROM visits", choice.choice(["inner", "middle", "outer"]),
            json.dumps({"weight": choice.choice([1, 0.5, 0.3])}))
    left = dict(db.execute("SELECT tier, releases_left FROM dp_budget"))
    db.close()
    for tier in left:
        there = tmp_path / tier
        there.mkdir()
        for name in ("clinic.db", "clinic.db-ledger"):
            shutil.copy(tmp_path / name, there)
        copy = connect(there / "clinic.db")
        fitted = 0
        while fitted < 1000:
            try:
                one(copy, """SELECT dp_release(?, 'sum', 'SELECT 1 FROM visits', '{"clip":1}')""", tier)
            except sqlite3.Error as error:
                assert "would exceed its budget" in str(error)
                break
            fitted += 1
        assert fitted == left[tier] > 0, tier
        assert one(copy, "SELECT dp_verify()") == "ok"


def test_a_gdp_tier_has_room_for_more_than_an_rdp_tier(path):
    db = create(path, tiers=[("a", 0.01, 1.0, 1e-6, "rdp"), ("b", 0.011, 1.0, 1e-6, "gdp")])
    limits = dict(db.execute("SELECT accountant, rate_limit FROM dp_tier"))
    assert limits["gdp"] > limits["rdp"] * 1.1


def test_discarding_frees_the_name_and_keeps_the_charge(db):
    """After dp_discard(), the name stands for a new release with fresh noise, and the old charge stays. (The probability that two
    fresh numbers both equal the old numbers is 1.6e-13.)"""
    values = [one(db, SUM, name) for name in "ab"]
    for name in "ab":
        assert one(db, f"SELECT dp_discard('{name}')") == name
        assert charges(db) == 2
        assert f"unknown release '{name}' (dp_release lists them)" in refused(db, f"SELECT dp_diffuse('{name}', 'public')")
    assert [one(db, SUM, name) for name in "ab"] != values
    assert charges(db) == 4
    assert db.execute("SELECT state FROM dp_release ORDER BY id").fetchall() == [("discarded",)] * 2 + [("released",)] * 2
    assert one(db, "SELECT dp_verify()") == "ok"


def test_the_curve_of_a_tier_is_its_order_times_its_rate(db):
    one(db, SUM, "a")
    total = Fraction(spent(db))
    rows = db.execute("SELECT alpha, spent, allowed FROM dp_rdp WHERE tier = 'clinic'").fetchall()
    assert len(rows) > 50
    for alpha, used, _ in rows:
        if alpha != float("inf"):
            assert Fraction(alpha) * total <= Fraction(used) <= Fraction(alpha) * total * (1 + Fraction(1, 10**14))


# ---- the tables on the host connection ------------------------------------------------------------


@pytest.fixture
def rich(db):
    for name in ("a", "b", "c"):
        one(db, SUM, name)
        one(db, "SELECT dp_diffuse(?, 'public')", name)
    one(db, "SELECT dp_ou_sum('region', minutes, 10, 500, 'A') FROM visits")
    one(db, "SELECT dp_discard('c')")
    one(db, SUM, None)
    return db


@pytest.mark.parametrize("table", ["dp_path", "dp_order", "dp_ledger"])
def test_what_is_the_owners_is_not_visible_on_the_host_connection(rich, table):
    assert f"no such table: {table}" in refused(rich, f"SELECT * FROM {table}")


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_are_read_only(rich, table):
    column = rich.execute(f"SELECT * FROM {table}").description[0][0]
    for sql in (f"DELETE FROM {table}", f"UPDATE {table} SET {column} = NULL", f"INSERT INTO {table}({column}) VALUES (1)"):
        assert "may not be modified" in refused(rich, sql)


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_show_what_the_file_holds(rich, path, table):
    columns = ", ".join(d[0] for d in rich.execute(f"SELECT * FROM {table}").description if d[0] not in ("display", "figure", "label"))  # computed
    cursor = rich.execute(f"SELECT {columns} FROM {table}")
    live = "JOIN (SELECT id AS release_id FROM dp_release WHERE state = 'released') USING (release_id)"
    want = ledger_of(path).execute(
        f"SELECT {columns} FROM {table} {live if table in ('dp_value', 'dp_publication') else ''}").fetchall()
    assert sorted(cursor.fetchall(), key=repr) == sorted(want, key=repr) and want


def test_the_tables_work_in_a_persistent_view(rich, path):
    rich.execute("CREATE VIEW books AS SELECT tier, spent_rate FROM dp_budget WHERE spent_rate > 0")
    want = rich.execute("SELECT tier, spent_rate FROM dp_budget").fetchall()
    for connection in (rich, connect(path)):
        assert connection.execute("SELECT * FROM books").fetchall() == want
        connection.execute("PRAGMA trusted_schema = OFF")


def test_diffusing_every_release_terminates(db):
    names = [f"r{i}" for i in range(20)]
    for name in names:
        one(db, SUM, name)
    got = db.execute("SELECT name, dp_diffuse(name, 'public') FROM dp_release").fetchall()
    assert [name for name, _ in got] == names
    assert charges(db) == 60
    got = db.execute("SELECT release, dp_diffuse(release, 'region') FROM dp_charge").fetchall()
    assert len(got) == 60 and charges(db) == 80  # region pays the difference between its rate and that of public


@pytest.mark.parametrize("call", [
    "dp_diffuse('a', 'public')", "dp_discard('a')", "dp_init()", "dp_tier('x', 1, 8, 1e-6)", "dp_verify()",
    "dp_exposure('clinic')", """dp_release('clinic', 'sum', 'SELECT 1 FROM visits', '{"clip":1}')""",
    "(SELECT dp_sum('clinic', minutes, 10) FROM visits)",
    "(SELECT dp_count('clinic', minutes, 1) FROM visits)",
    "(SELECT dp_ou_sum('clinic', minutes, 1, 10) FROM visits)"])
def test_what_charges_cannot_hide_in_a_view_or_trigger(db, call):
    one(db, SUM, "a")
    for setup, use in ((f"CREATE VIEW trap AS SELECT {call} AS x", "SELECT * FROM trap"),
                       (f"CREATE TRIGGER spring AFTER INSERT ON visits BEGIN SELECT {call}; END",
                        "INSERT INTO visits VALUES (1, 1)")):
        db.execute(setup)
        assert "unsafe use of dp_" in refused(db, use)
        db.execute("DROP VIEW IF EXISTS trap")
    assert charges(db) == 1 and one(db, "SELECT count(*) FROM dp_release WHERE state = 'released'") == 1


# ---- closing --------------------------------------------------------------------------------------


def test_sqlite3_close_succeeds_with_the_ledger_open(path):
    create(path).close()
    raw = Raw(path)
    for sql in ("SELECT dp_sum('clinic', minutes, 10, 'a') FROM visits", "SELECT * FROM dp_charge"):
        statement = raw.prepare(sql)
        assert raw.step(statement) == raw.ROW
        raw.finalize(statement)
    assert f"{path}-ledger" in open_files(path)
    assert raw.close() == raw.OK
    assert open_files(path) == []


def test_closing_with_cursors_open_lets_go_of_the_ledger(path):
    db = create(path)
    one(db, SUM, "a")
    cursors = [db.execute("SELECT * FROM dp_rdp"), db.execute("SELECT * FROM dp_charge"),
               db.execute("SELECT dp_diffuse('a', 'public') FROM visits")]
    for cursor in cursors:
        cursor.fetchone()
    db.close()
    del cursors, cursor
    assert open_files(path) == []


def test_a_cursor_over_the_tables_keeps_nobody_from_releasing(db, path):
    for name in "abc":
        one(db, SUM, name)
    cursor = db.execute("SELECT id FROM dp_charge")
    assert cursor.fetchone() == (1,)
    one(db, SUM, "d")
    one(connect(path), SUM, "e")
    assert cursor.fetchall() == [(2,), (3,)]


def test_loading_twice_and_loading_into_two_connections_is_harmless(db, path):
    load(db)
    other = connect(path)
    one(db, SUM, "a")
    one(other, SUM, "b")
    assert charges(db) == charges(other) == 2


# ---- the host's floating-point environment ----------------------------------------------------------


@pytest.mark.parametrize("mode", ["FE_TOWARDZERO", "FE_UPWARD", "FE_DOWNWARD"])
def test_the_rounding_mode_of_the_host_changes_nothing(db, path, mode):
    """The ledger charges in one rounding mode of the host and verifies in another. The host's mode does not change."""
    values = {"FE_DOWNWARD": 0x400, "FE_UPWARD": 0x800, "FE_TOWARDZERO": 0xC00}  # x86-64
    if platform.machine() != "x86_64":
        values = {"FE_UPWARD": 0x400000, "FE_DOWNWARD": 0x800000, "FE_TOWARDZERO": 0xC00000}  # AArch64
    math = ctypes.CDLL("libm.so.6")
    one(db, SUM, "a")
    try:
        assert math.fesetround(values[mode]) == 0
        assert one(db, "SELECT dp_verify()") == "ok"
        for i in range(30):
            one(db, "SELECT dp_sum('region', minutes, 10, ?) FROM visits",
                json.dumps({"name": f"r{i}", "weight": 1 / (3 + i)}))
        one(db, "SELECT dp_diffuse('r3', 'public')")
        assert one(db, "SELECT dp_verify()") == "ok"
        refused(db, "SELECT dp_diffuse('nothing', 'public')")
        assert math.fegetround() == values[mode]
    finally:
        math.fesetround(0)
    assert one(db, "SELECT dp_verify()") == "ok"
    exact = sum(Fraction(rate) for (rate,) in ledger_of(path).execute("SELECT rate FROM dp_charge WHERE tier = 'clinic'"))
    assert Fraction(spent(db)) >= exact


@pytest.mark.parametrize("edit", [
    "INSERT INTO dp_charge SELECT 9223372036854775807, release_id, release, tier, rate, curve, delta, slack, at, period, grant_name, kind,"
    " hash FROM dp_charge WHERE id = 1",
    "UPDATE dp_budget SET releases = 9223372036854775807", "UPDATE dp_budget SET releases_left = -9223372036854775808",
    "INSERT INTO dp_seal SELECT 9223372036854775807, release_id, digest, books, charge_id, at, hash FROM dp_seal WHERE id = 1"])
def test_the_largest_numbers_in_a_damaged_ledger_overflow_nothing(history, edit):
    """The test sets numbers in the ledger to the largest possible values. The extension reports the damage, and no calculation
    overflows. `make check-sanitize` also runs this test, under UBSan."""
    tamper(history, edit)
    assert verdict(history) != "ok"
    db = connect(history)
    before = list(ledger_of(history).iterdump())
    refused(db, SUM, "new")
    assert list(ledger_of(history).iterdump()) == before


# ---- what is beside the ledger ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["-ledger-lock", "-ledger-journal", "-ledger-wal", "-journal", "-wal"])
@pytest.mark.parametrize("from_inside", [0, 1])
def test_no_export_takes_the_place_of_a_file_of_the_ledger(db, path, name, from_inside, monkeypatch):
    one(db, SUM, "a")
    for file in ("-lock", "-journal", "-wal"):
        pathlib.Path(f"{path}-ledger{file}").unlink(missing_ok=True)
    monkeypatch.chdir(pathlib.Path(path).parent)
    file = f"{pathlib.Path(path).name if from_inside else path}{name}"
    assert refused(db, "SELECT dp_export('public', ?)", file) == (
        "dp_export: file is one of the database or of its ledger (choose another name)")
    assert one(db, SUM, "b") is not None and one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("sql", ["SELECT dp_tier(?, 0.0001, 1, 1e-6)", SUM])
def test_names_have_a_length(db, sql):
    charges = one(db, "SELECT count(*) FROM dp_charge")
    for bad in ("a" * 256, "é" * 128, "a" * 1000000):
        assert "name has more than 255 bytes (choose a shorter one)" in refused(db, sql, bad)
    assert one(db, "SELECT count(*) FROM dp_charge") == charges
    assert one(db, sql, "é" * 127 + "a") is not None


def test_the_label_of_units_has_a_length(path):
    db = connect(path)
    wanted = "dp_init: unit has more than 255 bytes (choose a shorter one)"
    assert refused(db, "SELECT dp_init(?)", json.dumps({"unit": "u" * 256})) == wanted
    assert one(db, "SELECT count(*) FROM sqlite_master") == 0


@pytest.mark.parametrize("year", ["10000-01-01 00:00:00", "-0001-06-01 00:00:00"])
def test_a_clock_outside_the_calendar_charges_nothing(db, clock, year):
    clock.set("9999-12-31 23:59:59" if year[0] == "1" else "0000-01-01 00:00:01")
    assert one(db, SUM, "a") is not None
    clock.milliseconds += (1 if year[0] == "1" else -1) * 86400000
    wanted = "the system's clock is outside the years 0 to 9999 (set the clock)"
    for sql in ("SELECT dp_diffuse('a', 'public')", SUM.replace("?", "'b'"), "SELECT dp_tier('new', 0.0001, 1, 1e-6)"):
        assert wanted in refused(db, sql)
    clock.stop()
    assert one(db, "SELECT dp_diffuse('a', 'public')") is not None and one(db, "SELECT dp_verify()") == "ok"


def test_a_copy_in_memory_is_refused(db, path, monkeypatch):
    """The copy's marker names a ledger beside a file, and the copy is in no folder. The working folder must not take its place."""
    one(db, SUM, "a")
    monkeypatch.chdir(pathlib.Path(path).parent)
    copy = connect(":memory:")
    db.backup(copy)
    wanted = (f"this database in memory is a copy of a file whose privacy ledger is '{pathlib.Path(path).name}-ledger' beside that file"
              " (open the file itself)")
    for sql in (SUM.replace("?", "'b'"), "SELECT * FROM dp_value", INIT):
        assert wanted in refused(copy, sql)


def test_an_encrypted_database_needs_a_path(path, tmp_path):
    """The file of an encrypted database does not begin with SQLite's magic text. Here the test changes the text on the disk, while
    the connection keeps the page in its cache."""
    db = connect(path)
    db.execute("CREATE TABLE visits(patient, minutes)")
    db.execute("SELECT * FROM visits").fetchall()
    with open(path, "r+b") as file:
        file.write(b"\x8e" * 16)
    wanted = "dp_init: the database is encrypted, and a ledger is not (choose a folder that only you can read: dp_init('{\"path\":\"...\"}'))"
    assert refused(db, INIT) == wanted and not os.path.exists(f"{path}-ledger")
    assert one(db, "SELECT dp_init(?)", json.dumps({"path": str(tmp_path / "books")})) == str(tmp_path / "books")
