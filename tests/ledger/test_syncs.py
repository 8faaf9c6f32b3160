"""Counts the calls of fsync() and fdatasync() that releases make. ext/README.md says where each of them comes from.

A library that is loaded before the C library counts the calls (bench/sync.c). The counts are those of SQLite's unix VFS with a
rollback journal: each commit syncs the journal, its directory, the header of the journal, the ledger's file and the emptied
journal."""

import json
import sys

import pytest

from conftest import connect, library, one, run

COMMIT = 5
ROWS = "SELECT minutes FROM visits"

COUNT = """
    library = ctypes.CDLL(None)
    db = create(sys.argv[1])
    one(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visits', json_object('name', 'first', 'clip', 1))")
    one(db, "SELECT dp_release('region', 'count', 'SELECT 1 FROM visits', json_object('name', 'second', 'clip', 1))")
    for text in sys.argv[2:]:
        before = library.bench_sync_calls()
        db.execute(text).fetchall()
        print(library.bench_sync_calls() - before)
    assert one(db, "SELECT dp_verify()") == "ok"
    """


def batch(*names, diffuse=()):
    return "SELECT dp_batch('" + json.dumps([{"tier": "clinic", "kind": "count", "sql": ROWS, "options": {"name": name, "clip": 1},
                                              "diffuse": list(diffuse)} for name in names]) + "')"


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    return library(tmp_path_factory.mktemp("sync"), "../../bench/sync.c")


@pytest.mark.plain  # a sanitizer must be the first library that is loaded
@pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded by LD_PRELOAD")
def test_every_commit_syncs_five_times_and_nothing_else_syncs(tmp_path, monkeypatch, counter):
    monkeypatch.setenv("LD_PRELOAD", counter)
    keys = json.dumps({"keys": list(range(100))})
    commits = {
        "SELECT 1": 0, "SELECT * FROM dp_value": 0, "SELECT dp_exposure('public')": 0, "SELECT dp_verify()": 0,
        "SELECT dp_diffuse('first', 'public')": 1, "SELECT dp_diffuse('first', 'public') AS again": 0,
        "SELECT dp_release('region', 'count', 'SELECT 1 FROM visits', '{\"name\":\"release\",\"clip\":1}')": 2,
        "SELECT dp_release('region', 'count', 'SELECT 1 FROM visits', '{\"name\":\"release\",\"clip\":1}') AS again": 0,
        "SELECT dp_sum('clinic', minutes, 10, 'sum') FROM visits": 2,
        "SELECT dp_sum('clinic', minutes, 10), dp_avg('clinic', minutes, 0, 9) FROM visits": 4,
        f"SELECT dp_group_count('clinic', patient, 1, '{keys}') FROM visits": 2,
        # One commit charges a batch, and one commit stores each release with its diffusions.
        batch("a"): 2, batch("b", "c", "d"): 4, batch("e", "f", diffuse=["region", "public"]): 3,
        batch("e", "f", diffuse=["region", "public"]) + " AS again": 0, batch("e", diffuse=["public"]): 0,
        "SELECT dp_discard('a')": 1}
    found = run(COUNT, tmp_path / "a.db", *commits).split()
    assert dict(zip(commits, map(int, found))) == {sql: COMMIT * count for sql, count in commits.items()}


INIT_AND_STOP = """
    db = connect(sys.argv[1])
    one(db, f"PRAGMA journal_mode = {sys.argv[3]}")
    db.execute("CREATE TABLE visit(patient)")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("INSERT INTO visit VALUES (1)")  # the database itself is on the disk
    db.execute(f"PRAGMA synchronous = {sys.argv[4]}")
    one(db, "SELECT dp_init(?)", '{"path":"%s"}' % sys.argv[2])
    print(one(db, "PRAGMA synchronous"), one(db, "PRAGMA fullfsync"), flush=True)
    os._exit(0)
    """


@pytest.mark.plain
@pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded by LD_PRELOAD")
@pytest.mark.parametrize("mode,level", [("WAL", 1), ("WAL", 0), ("DELETE", 1), ("DELETE", 0), ("WAL", 2)])
def test_a_loss_of_power_after_dp_init_leaves_the_marker(tmp_path, monkeypatch, mode, level):
    """The ledger is at a path of its own, so only the marker leads to it. The files after the loss of power hold what was synced."""
    path, ledger = tmp_path / "a.db", tmp_path / "elsewhere" / "books"
    ledger.parent.mkdir()
    monkeypatch.setenv("LD_PRELOAD", library(tmp_path, "durable.c"))
    assert run(INIT_AND_STOP, path, ledger, mode, level).split() == [str(level), "0"]  # the settings of the host stay
    monkeypatch.delenv("LD_PRELOAD")
    for file in [*tmp_path.glob("a.db*"), *ledger.parent.glob("books*")]:
        if file.suffix != ".durable":
            file.unlink()
    for file in [*tmp_path.glob("*.durable"), *ledger.parent.glob("*.durable")]:
        if not file.name.startswith("a.db-journal"):
            file.rename(file.with_suffix(""))
    db = connect(path)
    assert one(db, "SELECT path FROM dp_ledger_id") == str(ledger)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
