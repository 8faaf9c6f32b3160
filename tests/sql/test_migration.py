"""Tests that this version migrates ledgers of older formats (tests/ledgers) to the current format, and that the ledgers keep
their meaning."""

import gzip
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import time
from collections import Counter

import pytest

from conftest import connect, INIT, one, refused, start

pytestmark = pytest.mark.alarm(1e-12)

LEDGERS = pathlib.Path(__file__).resolve().parents[1] / "ledgers"
OLD = sorted(str(file.relative_to(LEDGERS))[:-len(".json.gz")] for file in LEDGERS.glob("format*/*.json.gz"))
TODAY = 4


def lay(name, folder):
    """Copies a database and its ledger of an old format to a new folder. Returns the path of the database and the story of the
    ledger."""
    stem = pathlib.Path(name).name
    for suffix in (".db", ".db-ledger"):
        (folder / f"{stem}{suffix}").write_bytes(gzip.decompress((LEDGERS / f"{name}{suffix}.gz").read_bytes()))
    return folder / f"{stem}.db", json.loads(gzip.decompress((LEDGERS / f"{name}.json.gz").read_bytes()))


def plain(path):
    return sqlite3.connect(f"{path}-ledger", isolation_level=None)


def schema(ledger):
    return sorted(ledger.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall(), key=str)


def content(ledger):
    """Returns {table: (columns, rows)} for every table."""
    tables = [name for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    result = {}
    for table in tables:
        cursor = ledger.execute(f"SELECT * FROM {table}")
        result[table] = ([column[0] for column in cursor.description], cursor.fetchall())
    return result


def test_there_are_old_ledgers():
    assert {"format3/units", "format3/rows", "format3/pure", "format3/empty"} <= set(OLD)
    for name in OLD:
        assert gzip.decompress((LEDGERS / f"{name}.db-ledger.gz").read_bytes())[63] == int(name[6])  # user_version


@pytest.mark.parametrize("name", OLD)
def test_nothing_is_lost_and_the_schema_is_that_of_a_new_ledger(name, tmp_path):
    path, _ = lay(name, tmp_path)
    before = content(plain(path))
    assert one(connect(path), "SELECT dp_verify()") == "ok"
    ledger = plain(path)
    assert one(ledger, "PRAGMA user_version") == TODAY and one(ledger, "PRAGMA integrity_check") == "ok"
    for table, (columns, rows) in before.items():
        now = ledger.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
        if table == "sqlite_sequence":
            now = [row for row in now if row[1] != 0]  # this table may have no entry, if no row was ever inserted
        assert len(now) == len(rows) or (table == "dp_seal" and len(now) > len(rows))  # the migration writes these anew
        assert not Counter(rows) - Counter(now)
    (tmp_path / "new").mkdir()
    fresh = connect(tmp_path / "new" / "fresh.db")
    one(fresh, INIT)
    assert schema(ledger) == schema(plain(tmp_path / "new" / "fresh.db"))


@pytest.mark.parametrize("name", OLD)
def test_every_named_release_replays_and_costs_nothing(name, tmp_path):
    """Each statement that made the ledger gives the same answer or error again, and the charges stay the same."""
    path, story = lay(name, tmp_path)
    db = connect(path)
    budgets = db.execute("SELECT * FROM dp_budget").fetchall()
    asked = 0
    for sql, answer in story:
        if isinstance(answer, dict):
            without_value = answer["error"].replace("the name 'grouped' stands", "the name stands")  # format 3 quoted the name
            failed = "{}: release '{}' failed and its charge stays (free the name with dp_discard('{}'))"
            assert refused(db, sql) in (without_value, failed.format("dp_release", "failed", "failed"),
                                        failed.format("dp_count", "grouped", "grouped"))
        elif answer is not None:
            assert one(db, sql) == answer, sql
            asked += 1
    assert asked >= (1 if "empty" in name else 5)
    assert db.execute("SELECT * FROM dp_budget").fetchall() == budgets
    assert one(db, "SELECT dp_verify()") == "ok"


def test_old_releases_diffuse_refine_and_make_room_for_new_ones(tmp_path):
    path, _ = lay("format3/units", tmp_path)
    db = connect(path)
    last = one(db, "SELECT max(id) FROM dp_release")
    ledger = plain(path)
    published = {row[0] for row in ledger.execute("SELECT release FROM dp_publication")}
    assert one(db, "SELECT dp_diffuse('refined', 'public')") != one(db, "SELECT value FROM dp_value WHERE release ="
                                                                        " 'refined' AND tier = 'region'")
    one(db, "SELECT dp_diffuse('tree', 'region')")
    refine = "SELECT dp_sum('clinic', x, 20, unit, '{\"name\":\"weighted ✓''\\n\",\"weight\":0.3,\"refine\":true}') FROM t"
    assert one(db, refine) == one(db, refine)
    assert "is not finished" in refused(db, "SELECT dp_diffuse('unfinished', 'region')")
    one(db, "SELECT dp_discard('unfinished')")
    one(db, "SELECT dp_release('clinic', 'count', 'SELECT x, unit FROM t', 'unfinished')")
    assert db.execute("SELECT id, name FROM dp_release ORDER BY id DESC").fetchone() == (last + 1, "unfinished")
    assert "unfinished" not in published
    assert one(db, "SELECT dp_verify()") == "ok"


def test_the_migrated_ledger_stays_append_only(tmp_path):
    path, _ = lay("format3/pure", tmp_path)
    assert one(connect(path), "SELECT count(*) FROM dp_charge") > 0
    for sql in ("UPDATE dp_charge SET rate = 0", "DELETE FROM dp_charge", "REPLACE INTO dp_charge SELECT * FROM dp_charge"):
        with pytest.raises(sqlite3.Error, match="append-only"):
            plain(path).execute(sql)


def test_a_view_of_the_owner_stays(tmp_path):
    path, _ = lay("format3/pure", tmp_path)
    ledger = plain(path)
    ledger.execute("CREATE VIEW mine AS SELECT count(*) FROM dp_charge")
    count = one(ledger, "SELECT * FROM mine")
    ledger.close()
    one(connect(path), "SELECT count(*) FROM dp_charge")
    assert one(plain(path), "SELECT * FROM mine") == count


def test_a_ledger_that_cannot_be_written_says_what_to_do(tmp_path):
    path, _ = lay("format3/units", tmp_path)
    before = pathlib.Path(f"{path}-ledger").read_bytes()
    db = connect(f"file:{path}?mode=ro", uri=True)
    assert (f"has format 3 and must be brought to format {TODAY} (open the database once where it and its ledger can be"
            " written)") in refused(db, "SELECT * FROM dp_tier")
    assert pathlib.Path(f"{path}-ledger").read_bytes() == before
    assert one(connect(path), "SELECT count(*) FROM dp_tier") == 4
    assert one(db, "SELECT count(*) FROM dp_tier") == 4


@pytest.mark.parametrize("number", [0, 2, TODAY + 1])
def test_other_formats_are_refused_and_left_alone(number, tmp_path):
    path, _ = lay("format3/units", tmp_path)
    ledger = plain(path)
    ledger.execute(f"PRAGMA user_version = {number}")
    ledger.close()
    before = pathlib.Path(f"{path}-ledger").read_bytes()
    assert f"has format {number}, this version reads {TODAY}" in refused(connect(path), "SELECT dp_verify()")
    assert pathlib.Path(f"{path}-ledger").read_bytes() == before


def test_a_damaged_ledger_is_left_alone(tmp_path):
    """If the new tables cannot take a row, the migration fails and leaves the ledger unchanged."""
    path, _ = lay("format3/units", tmp_path)
    ledger = plain(path)
    ledger.execute("PRAGMA ignore_check_constraints = ON")
    ledger.execute("UPDATE dp_release SET state = 'odd' WHERE id = 1")
    before = content(ledger)
    assert "CHECK constraint failed" in refused(connect(path), "SELECT dp_verify()")
    assert content(ledger) == before and one(ledger, "PRAGMA user_version") == 3


MIGRATE = "db = connect(sys.argv[1]); print(one(db, 'SELECT count(*) FROM dp_charge'))"


def test_a_process_that_is_killed_leaves_a_ledger_that_opens(tmp_path):
    """The test kills the migration after longer and longer times, until a migration finishes before it is killed. After each kill
    the ledger is whole, in the old or in the new format."""
    old = {}
    seen, wait = set(), 0.0
    while seen != {3, TODAY} and wait < 20:
        folder = tmp_path / f"{wait:.4f}"
        folder.mkdir()
        path, _ = lay("format3/units", folder)
        old = old or content(plain(path))
        process = start("db = connect(sys.argv[1]); print('up', flush=True); one(db, 'SELECT count(*) FROM dp_charge'); time.sleep(60)", path)
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        ledger = plain(path)
        number = one(ledger, "PRAGMA user_version")
        assert all(one(ledger, f"SELECT count(*) FROM {name}") == len(rows) for name, (_, rows) in old.items())
        ledger.close()
        assert one(connect(path), "SELECT dp_verify()") == "ok"
        seen.add(number)
        wait = wait * 2 + 0.0005
        shutil.rmtree(folder)
    assert seen == {3, TODAY}


def test_two_processes_migrate_once(tmp_path):
    path, _ = lay("format3/units", tmp_path)
    processes = [start(MIGRATE, path) for _ in range(4)]
    outputs = {process.communicate()[0] for process in processes}
    assert {process.returncode for process in processes} == {0} and len(outputs) == 1
    assert one(connect(path), "SELECT dp_verify()") == "ok" and os.path.getsize(f"{path}-ledger-journal") == 0
