"""Tests how the extension finds the ledger file, which permissions this file has, and what connections can do that can only
read."""

import contextlib
import ctypes
import glob
import json
import os
import shutil
import sqlite3
import stat

import pytest

from conftest import (add_tiers, add_visits, connect, create, EXTENSION, INIT, ledger_of, load, make_ledger, once_charged, one, refused, run, SUM)

pytestmark = pytest.mark.alarm(0)

CANNOT = "this connection cannot write its database"


def charges(connection):
    return one(connection, "SELECT count(*) FROM dp_charge")


def marker(path):
    with contextlib.closing(sqlite3.connect(path)) as plain:
        return plain.execute("SELECT id, path FROM dp_ledger_id").fetchall()


def move(path, there):
    """Moves a database and its ledger, with all their files, to another name."""
    for name in glob.glob(f"{path}*"):
        os.rename(name, str(there) + name[len(str(path)):])
    return there


def dump(file):
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as plain:
        return list(plain.iterdump())


# ---- connections that cannot write ----------------------------------------------------------------


@pytest.fixture
def published(path):
    """Makes a database with release 'a', which is published at its inner tier and at 'region'. Returns the path."""
    db = create(path)
    one(db, SUM, "a")
    one(db, "SELECT dp_diffuse('a', 'region')")
    db.close()
    return path


def query_only(path):
    db = connect(path)
    db.execute("PRAGMA query_only = ON")
    return db


def hidden_pragma(answer):
    def open_it(path):
        db = connect(path)
        db.set_authorizer(lambda action, name, *_: answer if action == sqlite3.SQLITE_PRAGMA and name == "query_only"
                          else sqlite3.SQLITE_OK)
        return db

    return open_it


def was_query_only(path):
    db = query_only(path)
    one(db, "SELECT count(*) FROM dp_tier")
    db.execute("PRAGMA query_only = OFF")
    return db


READERS = {
    "mode=ro": lambda path: connect(f"file:{path}?mode=ro", uri=True),
    "immutable": lambda path: connect(f"file:{path}?immutable=1", uri=True),
    "query_only": query_only,
    "query_only, later off": was_query_only,
    "query_only denied": hidden_pragma(sqlite3.SQLITE_DENY),
    "query_only ignored": hidden_pragma(sqlite3.SQLITE_IGNORE),
}

WRITES = [
    SUM.replace("?", "'sum'"), SUM.replace(", ?", ""), "SELECT dp_diffuse('a', 'public')",
    "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visits', '{\"name\":\"count\",\"clip\":1}')",
    "SELECT dp_tier('staff', 0.01, 9, 1e-6)",
    "SELECT dp_merge('clinic', dp_states(state), 'merged') FROM (SELECT dp_partial('count', 'SELECT minutes FROM visits', '{\"clip\":1}') AS state)",
    SUM.replace("'clinic'", "'staff'").replace("?", """'{"name":"a","refine":true}'"""), "SELECT dp_discard('a')",
]


@pytest.mark.parametrize("how", READERS)
def test_a_connection_that_cannot_write_reads_and_spends_nothing(published, how):
    before, files = dump(f"{published}-ledger"), sorted(os.listdir(published.parent))
    db = READERS[how](published)
    assert one(db, "SELECT count(*) FROM dp_value") == 2 == one(db, "SELECT count(*) FROM dp_publication")
    assert one(db, "SELECT dp_verify()") == "ok" and json.loads(one(db, "SELECT dp_certificate()"))["charges"] == 2
    assert one(db, "SELECT dp_epsilon(dp_rate(1.0, 1e-6), 1e-6)") == pytest.approx(1)
    assert json.loads(one(db, "SELECT dp_plan('clinic', 'sum', 10)"))["sigma"] > 0
    assert json.loads(one(db, "SELECT dp_interval('a', 'clinic', NULL, 0.5)"))
    for sql in WRITES:
        message = refused(db, sql)
        assert CANNOT in message or ("staff" in sql and "unknown tier" in message), message
    assert dump(f"{published}-ledger") == before and sorted(os.listdir(published.parent)) == files


@pytest.mark.parametrize("how", READERS)
def test_what_was_published_can_be_asked_for_again_without_writing(published, how):
    writer = connect(published)
    value = one(writer, SUM, "a")
    writer.close()
    before = dump(f"{published}-ledger")
    db = READERS[how](published)
    assert one(db, SUM, "a") == value
    assert one(db, "SELECT dp_diffuse('a', 'region')") == one(db, "SELECT value FROM dp_value WHERE tier = 'region'")
    assert one(db, "SELECT dp_tier('clinic', 0.004, 8.0, 1e-6)") == "clinic"  # the same tier again
    assert one(db, INIT) == f"{published}-ledger"
    assert dump(f"{published}-ledger") == before


def test_the_reason_is_named(published):
    assert "the database is read-only" in refused(READERS["mode=ro"](published), SUM, "new")
    assert "PRAGMA query_only" in refused(query_only(published), SUM, "new")


def test_a_connection_that_can_write_spends(published):
    """A connection that can write can also spend. This is the control for the tests above."""
    db = connect(published)
    for sql in WRITES:
        db.execute(sql).fetchall()
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("how", ["mode=ro", "immutable", "query_only", "query_only denied"])
@pytest.mark.parametrize("options", ["{}", '{"path":"mine"}'])
def test_dp_init_creates_nothing_where_the_marker_cannot_be_left(path, how, options):
    db = connect(path)
    add_visits(db)
    db.close()
    message = refused(READERS[how](path), "SELECT dp_init(?)", options)
    assert message.startswith("dp_init: no privacy ledger for 'clinic.db'") and CANNOT in message
    assert os.listdir(path.parent) == ["clinic.db"]


def test_a_read_only_database_without_its_marker_shows_the_ledger_beside_it(published):
    with contextlib.closing(sqlite3.connect(published)) as plain:
        plain.execute("DROP TABLE dp_ledger_id")
    db = READERS["mode=ro"](published)
    assert one(db, INIT) == f"{published}-ledger" and charges(db) == 2
    assert CANNOT in refused(db, SUM, "new")
    elsewhere = create(published.parent / "other.db")
    assert "leave the path out" in refused(db, """SELECT dp_init('{"path":"other.db-ledger"}')""")
    assert charges(elsewhere) == 0


def test_an_in_memory_main_with_a_read_only_database_attached_only_reads(path, tmp_path_factory):
    """Web tools that query several files attach them to an in-memory database. Such a connection only reads."""
    create(path).close()
    ledger = str(tmp_path_factory.mktemp("elsewhere") / "mine")
    db = sqlite3.connect("file::memory:", uri=True, isolation_level=None)
    db.execute("ATTACH ? AS data", (f"file:{path}?mode=ro",))
    load(db)
    for options in ("{}", json.dumps({"path": ledger})):
        message = refused(db, "SELECT dp_init(?)", options)
        assert CANNOT in message and "attached" in message
    db.execute("DETACH data")
    assert CANNOT in refused(db, INIT)  # a connection that had a read-only database attached stays read-only
    assert not os.path.exists(ledger)
    assert one(connect(), INIT) == ":memory:"


def test_a_file_with_a_read_only_database_attached_can_write(path, tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "reference.db")) as plain:
        plain.execute("CREATE TABLE ward(name)")
    create(path).close()
    db = connect(f"file:{path}", uri=True)
    db.execute("ATTACH ? AS reference", (f"file:{tmp_path}/reference.db?mode=ro",))
    assert isinstance(one(db, SUM, "a"), float)


def test_a_ledger_in_wal_mode_is_not_changed_by_a_reader(published):
    plain = ledger_of(published)
    assert one(plain, "PRAGMA journal_mode = wal") == "wal"
    plain.close()
    reader = READERS["mode=ro"](published)
    assert "journal mode 'wal'" in refused(reader, "SELECT * FROM dp_value")
    plain = ledger_of(published)
    assert one(plain, "PRAGMA journal_mode") == "wal"
    plain.close()
    assert one(connect(published), "SELECT dp_verify()") == "ok"
    assert one(ledger_of(published), "PRAGMA journal_mode") != "wal" and one(reader, "SELECT dp_verify()") == "ok"


# ---- files that move ------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["{}", '{"path":"books/mine"}', '{"path":"ABSOLUTE"}'])
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_renamed_pair_works_and_its_marker_is_corrected(path, tmp_path_factory, before, journal):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    os.mkdir(path.parent / "books")
    db = create(path, before.replace("ABSOLUTE", str(elsewhere / "mine")))
    value, name, ledger = one(db, SUM, "a"), one(db, "PRAGMA journal_mode = " + journal), one(db, INIT)
    identity = one(db, "SELECT id FROM dp_ledger_id")
    db.close()
    there = tmp_path_factory.mktemp("there") / "study.db"
    move(path, there)
    if not os.path.exists(f"{there}-ledger"):
        os.rename(ledger, f"{there}-ledger")
    again = connect(there)
    assert name == journal and one(again, SUM, "a") == value and charges(again) == 1
    assert marker(there) == [(identity, "study.db-ledger")]
    one(again, SUM, "b")
    assert charges(connect(there)) == 2 and one(again, INIT) == f"{there}-ledger"
    assert one(again, "SELECT dp_verify()") == "ok"
    assert not os.path.exists(path) and not os.path.exists(f"{path}-ledger")


@pytest.mark.parametrize("how", ["mode=ro", "query_only"])
def test_a_renamed_pair_that_cannot_be_written_is_read_and_left_alone(published, how):
    there = move(published, published.parent / "study.db")
    before = there.read_bytes()
    db = READERS[how](there)
    assert [charges(db) for _ in range(3)] == [2, 2, 2]
    assert there.read_bytes() == before


@pytest.mark.parametrize("undo", ["ROLLBACK", "COMMIT"])
def test_the_marker_is_not_corrected_inside_a_transaction(published, undo):
    there = move(published, published.parent / "study.db")
    old = marker(there)
    db = connect(there)
    db.execute("BEGIN")
    one(db, SUM, "b")
    with contextlib.closing(sqlite3.connect(there, timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")  # no lock on the database was held
    db.execute(undo)
    assert marker(there) == old and charges(db) == 3
    assert marker(there) == [(old[0][0], "study.db-ledger")]  # the last statement has corrected the marker


def test_a_marker_that_cannot_be_corrected_now_does_no_harm(published):
    there = move(published, published.parent / "study.db")
    old = marker(there)
    other = sqlite3.connect(there, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    db = connect(there, timeout=0)
    assert charges(db) == 2
    other.execute("ROLLBACK")
    assert marker(there) == old and isinstance(one(db, SUM, "b"), float)
    assert charges(connect(there)) == 3 and marker(there) != old


def test_a_trigger_on_the_marker_is_not_run(published):
    with contextlib.closing(sqlite3.connect(published)) as plain:
        plain.executescript("CREATE TABLE ran(x); CREATE TRIGGER t AFTER UPDATE ON dp_ledger_id"
                            " BEGIN INSERT INTO ran VALUES (1); END;")
    there = move(published, published.parent / "study.db")
    db = connect(there)
    assert charges(db) == 2 and one(db, "SELECT count(*) FROM ran") == 0


def test_a_moved_pair_is_found_where_another_database_has_taken_its_name(published, path):
    there = move(published, published.parent / "study.db")
    create(path).close()  # a new clinic.db with a ledger of its own
    db = connect(there)
    assert charges(db) == 2 and charges(connect(path)) == 0
    assert marker(there)[0][1] == "study.db-ledger"


def test_copies_of_a_ledger_are_refused_where_both_are_at_hand(published):
    """The copy must not get a budget of its own, and the original must not be charged while the copy has the later
    charges."""
    copy = published.parent / "study.db"
    shutil.copy(published, copy)
    shutil.copy(f"{published}-ledger", f"{copy}-ledger")
    for sql in (INIT, "SELECT * FROM dp_budget", SUM.replace("?", "'b'")):
        message = refused(connect(copy), sql)
        assert "are copies of one privacy ledger" in message and "keep the one that was charged last" in message
        assert "clinic.db-ledger" in message and "study.db-ledger" in message and "DROP" not in message
    assert charges(connect(published)) == 2  # the marker of this database names the ledger beside the database
    os.unlink(f"{copy}-ledger")
    one(connect(copy), SUM, "b")
    assert charges(connect(published)) == 3  # one budget


def test_a_copy_that_comes_back_is_refused_although_the_ledger_is_open(published):
    there = move(published, published.parent / "study.db")
    db = READERS["mode=ro"](there)
    assert charges(db) == 2
    shutil.copy(f"{there}-ledger", f"{published}-ledger")
    assert "are copies of one privacy ledger" in refused(db, "SELECT * FROM dp_budget")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_two_names_of_one_file_are_no_copies(published, link):
    move(published, published.parent / "study.db")
    link(published.parent / "study.db-ledger", f"{published}-ledger")
    db = connect(published.parent / "study.db")
    one(db, SUM, "b")
    assert charges(db) == 3 and marker(published.parent / "study.db")[0][1] == "clinic.db-ledger"


def test_a_damaged_ledger_is_not_replaced_by_an_old_copy(published):
    """If the ledger is damaged, the extension does not use an old copy in its place, because the copy may lack charges. The error
    names the damaged file and tells the owner to restore it."""
    shutil.copy(f"{published}-ledger", f"{published.parent}/study.db-ledger")
    os.rename(published, published.parent / "study.db")
    with open(f"{published}-ledger", "r+b") as file:
        file.truncate(100)
    message = refused(connect(published.parent / "study.db"), "SELECT dp_verify()")
    assert "clinic.db-ledger" in message and "restore" in message


@pytest.mark.parametrize("beside", [b"", b"garbage", bytes(range(256)) * 20], ids=["empty", "short", "long"])
def test_what_is_no_ledger_beside_the_database_is_left_alone(published, beside):
    copy = published.parent / "study.db"
    shutil.copy(published, copy)
    (published.parent / "study.db-ledger").write_bytes(beside)
    assert charges(connect(copy)) == 2
    assert (published.parent / "study.db-ledger").read_bytes() == beside


def test_the_advice_for_a_missing_ledger_names_the_safe_way_first(published, tmp_path_factory):
    there = tmp_path_factory.mktemp("there") / "study.db"
    shutil.copy(published, there)
    message = refused(connect(there), "SELECT dp_verify()")
    steps = [f"bring the right one along as '{there}-ledger'", "restore it from a backup", "DROP TABLE dp_ledger_id"]
    assert [message.index(step) for step in steps] == sorted(message.index(step) for step in steps)
    assert message.rstrip(")").endswith("starts a new budget")
    shutil.copy(f"{published}-ledger", f"{there}-ledger")
    assert charges(connect(there)) == 2


def test_the_ledger_of_a_database_that_was_in_memory(tmp_path):
    db = connect()
    one(db, INIT)
    db.execute("VACUUM INTO ?", (f"{tmp_path}/saved.db",))
    message = refused(connect(tmp_path / "saved.db"), "SELECT dp_verify()")
    assert "in the memory of another connection" in message and message.index("restore") < message.index("DROP TABLE")


# ---- tables dp_ledger_id that are not ours --------------------------------------------------------

FOREIGN = [
    "CREATE TABLE dp_ledger_id(a, b)", "CREATE TABLE dp_ledger_id(id)", "CREATE TABLE dp_ledger_id(path)",
    "CREATE TABLE dp_ledger_id(id, path)", "CREATE TABLE DP_LEDGER_ID(ID, PATH)",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES (NULL, NULL)",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES ('x', NULL)",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES (1, 2)",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES (x'41', x'42')",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES ('', '')",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES ('a' || char(0) || 'b', 'c')",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES ('a', 'b'), ('a', 'b')",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES (hex(zeroblob(10000000)), 'b')",
    "CREATE TABLE dp_ledger_id(id, path); INSERT INTO dp_ledger_id VALUES ('a', hex(zeroblob(10000000)))",
    "CREATE TABLE dp_ledger_id(id PRIMARY KEY, path) WITHOUT ROWID",
    "CREATE TABLE dp_ledger_id(id PRIMARY KEY, path) WITHOUT ROWID; INSERT INTO dp_ledger_id VALUES ('x', 'y')",
    "CREATE TABLE dp_ledger_id(a PRIMARY KEY, b) WITHOUT ROWID",
    "CREATE VIEW dp_ledger_id AS SELECT 'a' AS id, 'b' AS path", "CREATE VIEW dp_ledger_id AS SELECT 1 AS x",
    "CREATE VIEW dp_ledger_id AS SELECT 'a' AS id, 'b' AS path WHERE 0",
    "CREATE VIEW dp_ledger_id AS SELECT id, path FROM gone", "CREATE VIEW dp_ledger_id AS SELECT * FROM dp_ledger_id",
    "CREATE VIEW dp_ledger_id AS SELECT 1 AS x; CREATE TRIGGER t INSTEAD OF INSERT ON dp_ledger_id BEGIN SELECT 1; END",
    "CREATE VIEW dp_ledger_id AS SELECT NULL AS id, NULL AS path;"
    " CREATE TRIGGER t INSTEAD OF INSERT ON dp_ledger_id BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE dp_ledger_id USING fts5(id, path)", "CREATE VIRTUAL TABLE dp_ledger_id USING fts5(a, b)",
    "CREATE VIRTUAL TABLE dp_ledger_id USING rtree(id, low, high)",
    "CREATE TABLE dp_ledger_id(id AS (NULL), path AS ('x'), z); INSERT INTO dp_ledger_id VALUES (1)",
]


@pytest.mark.parametrize("sql", FOREIGN)
@pytest.mark.sample(10)
def test_foreign_tables_in_the_markers_place_are_refused_with_a_sentence(path, sql):
    """The test runs in a process of its own, because earlier versions crashed."""
    run("""
        db = connect(sys.argv[1])
        add_visits(db)
        db.executescript(sys.argv[2])
        before = list(db.iterdump()) if "VIRTUAL" not in sys.argv[2] and "gone" not in sys.argv[2] else []
        plain = create(sys.argv[1] + "-plain")
        plain.execute("ATTACH ? AS other", (sys.argv[1],))
        for connection in (db, plain):
            for sql in (INIT, "SELECT dp_verify()", "SELECT * FROM dp_budget",
                        "SELECT dp_tier('a', 0.1, 8, 1e-6)", SUM.replace("?", "'a'")):
                if connection is plain and "init" in sql: continue
                message = refused(connection, sql)
                assert "dp_ledger_id" in message or "another privacy ledger" in message, message
                assert "VIEW" not in sys.argv[2] or "DROP" not in message, message
        assert one(plain, "SELECT count(*) FROM sqlite_master WHERE name LIKE 'dp_%'") == 1
        assert not before or list(db.iterdump()) == before
    """, path, sql)
    assert not os.path.exists(f"{path}-ledger")


@pytest.mark.parametrize("sql", [
    "CREATE INDEX dp_ledger_id ON visits(patient)",
    "CREATE TRIGGER dp_ledger_id AFTER INSERT ON visits BEGIN SELECT 1; END"])
def test_an_index_or_trigger_of_the_markers_name_does_not_pass_for_it(path, sql):
    db = connect(path)
    add_visits(db)
    db.execute(sql)
    assert "no privacy ledger" in refused(db, "SELECT dp_verify()")
    if "TRIGGER" in sql:  # a trigger may have the same name as a table
        one(db, INIT)
        assert one(db, "SELECT dp_verify()") == "ok"


# ---- a healthy marker that cannot be read now -----------------------------------------------------


def fails(connection, word, sql="SELECT dp_verify()"):
    message = refused(connection, sql)
    assert word in message and "damaged" not in message and "DROP" not in message and "not the marker" not in message
    return message


AUTHORIZERS = {
    "deny all reads of it": lambda action, a, *_: action == sqlite3.SQLITE_READ and a == "dp_ledger_id",
    "deny SELECT": lambda action, *_: action == sqlite3.SQLITE_SELECT,
}


@pytest.mark.parametrize("which", AUTHORIZERS)
def test_an_authorizer_that_denies_is_named(published, which):
    db = connect(published)
    statement = "VALUES (dp_verify())"
    assert one(db, statement) == "ok"
    wanted = []
    db.set_authorizer(lambda *a: sqlite3.SQLITE_DENY if wanted and AUTHORIZERS[which](*a) else sqlite3.SQLITE_OK)
    db.create_function("deny", 0, lambda: wanted.append(1))
    message = refused(db, "SELECT iif(deny() IS NULL, dp_verify(), 0)")
    assert ("not authorized" in message or "prohibited" in message) and "DROP" not in message and "damaged" not in message
    db.set_authorizer(None)
    assert one(db, statement) == "ok"


@pytest.mark.parametrize("hides", [
    lambda action, a, *_: action == sqlite3.SQLITE_READ and a == "dp_ledger_id",
    lambda action, *_: action == sqlite3.SQLITE_SELECT])
def test_an_authorizer_that_hides_is_noticed(published, hides):
    db = connect(published)
    wanted = []
    db.set_authorizer(lambda *a: sqlite3.SQLITE_IGNORE if wanted and hides(*a) else sqlite3.SQLITE_OK)
    db.create_function("hide", 0, lambda: wanted.append(1))
    for sql in ("dp_verify()", "dp_init()"):
        wanted.clear()
        message = refused(db, f"SELECT iif(hide() IS NULL, {sql}, 0)")
        assert "authorizer of the host hides" in message and "DROP" not in message and "damaged" not in message


@pytest.mark.parametrize("table", ["sqlite_master", "sqlite_schema"])
def test_an_authorizer_that_hides_the_schema_does_not_hide_the_ledger(path, table):
    """If an authorizer hides the marker and the schema, dp_init() must not make a second ledger with a second budget."""
    create(path, '{"path":"mine"}').close()
    db = connect(path)
    db.set_authorizer(lambda action, a, *_: sqlite3.SQLITE_IGNORE
                      if action == sqlite3.SQLITE_READ and a in ("dp_ledger_id", "sqlite_master", "sqlite_schema")
                      else sqlite3.SQLITE_OK)
    refused(db, INIT)
    assert not os.path.exists(f"{path}-ledger")


LIMITS = {"LENGTH": 0, "SQL_LENGTH": 1, "COLUMN": 2, "EXPR_DEPTH": 3, "VDBE_OP": 5}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("limit", [1, 5, 20])
@pytest.mark.parametrize("marked", [False, True])
def test_small_limits_are_named(path, name, limit, marked):
    """If a limit of SQLite prevents a statement, the error names the limit, and does not call the marker damaged or missing."""
    if marked:
        create(path, '{"path":"mine"}').close()
    db = connect(path)
    c = ctypes.CDLL("libsqlite3.so.0")
    handle = ctypes.c_void_p.from_address(id(db) + object.__basicsize__)
    reached = []

    def lower():
        reached.append(c.sqlite3_limit(handle, LIMITS[name], limit))

    db.create_function("lower_limit", 0, lower)
    try:
        db.execute("SELECT iif(lower_limit() IS NULL, dp_init(), 0)").fetchall()
    except (sqlite3.Error, MemoryError) as error:
        assert "damaged" not in str(error) and "DROP" not in str(error) and "not the marker" not in str(error)
        assert str(error) != "not an error"  # the message may be empty if the limit does not allow a text of its length
    assert reached
    c.sqlite3_limit(handle, LIMITS[name], reached[0])
    assert not marked or not os.path.exists(f"{path}-ledger")  # no second budget
    assert not marked or one(connect(path), "SELECT dp_verify()") == "ok"


def test_a_shared_cache_lock_is_named(published):
    uri = f"file:{published}?cache=shared"
    db, other = connect(uri, uri=True, timeout=0), sqlite3.connect(uri, uri=True, isolation_level=None)
    assert one(db, "SELECT dp_verify()") == "ok"
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE dp_ledger_id SET path = path")
    fails(db, "locked")
    other.execute("ROLLBACK")
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE t(x)")
    for connection in (db, connect(uri, uri=True, timeout=0)):
        fails(connection, "locked")
    other.execute("ROLLBACK")
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("sql", ["SELECT dp_verify()", INIT])
@pytest.mark.parametrize("marked", [True, False])
def test_a_busy_database_is_named(path, sql, marked):
    create(path, '{"path":"mine"}').close()
    if not marked:
        with contextlib.closing(sqlite3.connect(path)) as plain:
            plain.execute("DROP TABLE dp_ledger_id")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    fails(connect(path, timeout=0), "database is locked", sql)
    assert not os.path.exists(f"{path}-ledger")


def test_an_interrupt_is_named(published):
    db = connect(published)
    assert one(db, "SELECT dp_verify()") == "ok"
    db.create_function("stop", 0, db.interrupt)
    message = refused(db, "SELECT iif(stop() IS NULL, dp_verify(), 0)")
    assert "interrupt" in message and "damaged" not in message and "DROP" not in message
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- what another connection has just done --------------------------------------------------------


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("decoy", [False, True])
def test_a_ledger_that_another_connection_has_just_made_is_seen(path, journal, decoy):
    """Statements that use no table see a new ledger, although SQLite does not read the schema for them."""
    first = connect(path)
    add_visits(first)
    one(first, "PRAGMA journal_mode = " + journal)
    if decoy:  # an older ledger beside the database, which must not be charged
        shutil.copy(f"{path}", f"{path}-saved")
        create(path.parent / "decoy.db").close()
        os.rename(path.parent / "decoy.db-ledger", f"{path}-ledger")
    one(first, "SELECT count(*) FROM visits")  # this connection has now read the schema
    second = connect(path)
    if decoy:
        os.rename(f"{path}-ledger", f"{path}-hidden")
    one(second, """SELECT dp_init('{"path":"mine"}')""")
    if decoy:
        os.rename(f"{path}-hidden", f"{path}-ledger")
    assert one(first, "SELECT dp_tier('only', 0.1, 8, 1e-6)") == "only"
    assert one(first, INIT) == str(path.parent / "mine")
    assert second.execute("SELECT name FROM dp_tier").fetchall() == [("only",)]


def test_a_marker_that_another_connection_has_just_dropped_is_gone(path):
    first, second = create(path, '{"path":"mine"}'), connect(path)
    assert one(first, "SELECT dp_verify()") == "ok"
    second.execute("DROP TABLE dp_ledger_id")
    assert "no privacy ledger" in refused(first, "SELECT dp_verify()")


# ---- what the ledger's file lets others do --------------------------------------------------------


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o660, 0o644, 0o666, 0o604])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.sample(12)
def test_the_ledger_and_its_journal_have_the_permissions_of_the_database(path, permissions, umask):
    db = connect(path)
    add_visits(db)
    os.chmod(path, permissions)
    before = os.umask(umask)
    try:
        make_ledger(db, "{}", "visits, patient")
        add_tiers(db)
        modes = []
        once_charged(db, path, lambda: modes.extend(mode(f) for f in glob.glob(f"{path}-ledger*")))
        one(db, SUM, "a")
        db.set_progress_handler(None, 0)
    finally:
        os.umask(before)
    assert mode(f"{path}-ledger") == permissions == mode(f"{path}-ledger-journal")
    assert set(modes) == {permissions}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_the_ledger_of_root_belongs_to_the_owner_of_the_database(path):
    db = connect(path)
    add_visits(db)
    os.chown(path, 12345, 23456)
    os.chmod(path, 0o640)
    one(db, INIT)
    add_tiers(db)
    for file in (f"{path}-ledger", f"{path}-ledger-journal"):
        assert (os.stat(file).st_uid, os.stat(file).st_gid, mode(file)) == (12345, 23456, 0o640)


@pytest.mark.skipif(os.getuid() != 0, reason="needs a user who is not in the database's group")
def test_another_group_does_not_get_what_the_databases_group_has(path):
    db = connect(path)
    add_visits(db)
    db.close()
    os.chown(path, -1, 23456)
    os.chmod(path, 0o666)
    os.chmod(path.parent, 0o777)
    for folder in path.parents:
        os.chmod(folder, os.stat(folder).st_mode | 0o011)
    shutil.copy(EXTENSION + ".so", path.parent / "diffuse.so")
    run("""
        import ctypes, sqlite3
        os.setgroups([]); os.setgid(34567); os.setuid(34567)
        os.environ["BUILD"] = os.path.dirname(sys.argv[1])
        db = sqlite3.connect(sys.argv[1], isolation_level=None)
        db.enable_load_extension(True)
        db.load_extension(os.path.dirname(sys.argv[1]) + "/diffuse")
        db.execute(INIT).fetchall()
    """, path)
    assert mode(f"{path}-ledger") == 0o606 and os.stat(f"{path}-ledger").st_gid == 34567


def test_the_ledger_of_an_in_memory_database_is_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        one(connect(), "SELECT dp_init(?)", json.dumps({"path": f"{tmp_path}/mine"}))
    finally:
        os.umask(before)
    assert mode(tmp_path / "mine") == 0o600


def test_an_empty_file_in_the_ledgers_place_loses_what_the_database_does_not_give(path):
    db = connect(path)
    add_visits(db)
    os.chmod(path, 0o640)
    (path.parent / "clinic.db-ledger").touch()
    os.chmod(f"{path}-ledger", 0o666)
    one(db, INIT)
    assert mode(f"{path}-ledger") == 0o640


@pytest.mark.parametrize("options", ["{}", '{"path":"mine"}'])
def test_a_dangling_link_is_not_followed(path, tmp_path_factory, options):
    target = tmp_path_factory.mktemp("elsewhere") / "target"
    db = connect(path)
    add_visits(db)
    name = json.loads(options).get("path", "clinic.db-ledger")
    os.symlink(target, path.parent / name)
    message = refused(db, "SELECT dp_init(?)", options)
    assert "symbolic link" in message and name in message
    assert not target.exists() and os.path.islink(path.parent / name)
    assert one(db, "SELECT count(*) FROM sqlite_master WHERE name = 'dp_ledger_id'") == 0


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("spelling", ["{name}", "{full}", "./{name}", "../{parent}/{name}", "link", "{folder}/{name}"])
@pytest.mark.parametrize("there", [True, False])
def test_the_databases_own_files_are_no_place_for_the_ledger(path, tmp_path_factory, suffix, spelling, there):
    db = connect(path)
    add_visits(db)
    if there:  # makes a WAL with its index, or a persistent journal
        db.execute("PRAGMA journal_mode = " + ("persist" if suffix == "-journal" else "wal"))
        db.execute("INSERT INTO visits VALUES (1, 1)")
        assert os.path.exists(f"{path}{suffix}")
    folder = tmp_path_factory.mktemp("links") / "folder"
    folder.symlink_to(path.parent)
    if there:
        (path.parent / "link").symlink_to(f"{path}{suffix}")
    elif spelling == "link":
        return
    name = spelling.format(name=path.name + suffix, full=f"{path}{suffix}", parent=path.parent.name, folder=folder)
    def contents():  # leaves out the index of a WAL, which readers change too
        return {f: (path.parent / f).read_bytes() for f in os.listdir(path.parent) if not (path.parent / f).samefile(shm)}

    shm = f"{path}-shm" if os.path.exists(f"{path}-shm") else path.parent
    before = contents()
    message = refused(db, "SELECT dp_init(?)", json.dumps({"path": name}))
    assert "a file of the database itself" in message
    assert contents() == before
    assert one(db, INIT) == f"{path}-ledger"


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_the_ledgers_own_files_are_not_the_database(tmp_path, suffix):
    """dp_init() refuses the ledger 'mine' for a database called mine-journal, because the journal of the ledger would overwrite
    the database."""
    db = connect(f"{tmp_path}/mine{suffix}")
    add_visits(db)
    assert "a file of the database itself" in refused(db, """SELECT dp_init('{"path":"mine"}')""")
    assert one(db, "SELECT count(*) FROM visits") == 100


def test_a_marker_that_names_the_databases_own_index_does_not_open_it(path):
    """A marker that names the database's own index of the WAL is refused, because closing this file would drop the locks of the
    WAL."""
    db = create(path)
    db.execute("PRAGMA journal_mode = wal")
    db.execute("UPDATE dp_ledger_id SET path = 'clinic.db-shm'")
    os.rename(f"{path}-ledger", f"{path}-away")
    assert "a file of the database itself" in refused(db, "SELECT dp_verify()")


# ---- loading --------------------------------------------------------------------------------------


def test_loading_again_inside_a_running_statement_changes_nothing(path):
    db = create(path)
    db.enable_load_extension(True)
    cursor = db.execute("SELECT patient FROM visits")
    cursor.fetchone()
    db.load_extension(EXTENSION)
    assert one(db, "SELECT load_extension(?)", EXTENSION) is None
    assert len(cursor.fetchall()) == 99 and isinstance(one(db, SUM, "a"), float)


def test_loading_again_keeps_an_in_memory_ledger():
    db = create(":memory:")
    value = one(db, SUM, "a")
    db.enable_load_extension(True)
    db.load_extension(EXTENSION)
    assert one(db, SUM, "a") == value and charges(db) == 1


def test_a_function_in_use_is_named():
    """SQLite refuses to replace a function while a statement runs."""
    db = sqlite3.connect(":memory:")
    db.create_function("dp_rate", 2, lambda a, b: 1)
    db.enable_load_extension(True)
    cursor = db.execute("SELECT 1 UNION ALL SELECT 2")
    cursor.fetchone()
    with pytest.raises(sqlite3.Error, match="cannot add its functions .*active statements"):
        db.load_extension(EXTENSION)
    cursor.fetchall()
    db.load_extension(EXTENSION)
    assert one(db, "SELECT dp_rate(1.0, 1e-6)") < 1
