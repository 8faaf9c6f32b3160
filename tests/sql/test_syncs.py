"""Counts the calls of fsync() and fdatasync() that releases make. ext/README.md says where each of them comes from.

A library that is loaded before the C library counts the calls (bench/sync.c). The counts are those of SQLite's unix VFS with a
rollback journal: each commit syncs the journal, its directory, the header of the journal, the ledger's file and the emptied
journal."""

import json
import os
import subprocess
import sys

import pytest

from conftest import run

COMMIT = 5
ROWS = "SELECT minutes, patient FROM visits"

COUNT = """
    library = ctypes.CDLL(None)
    db = create(sys.argv[1])
    one(db, "SELECT dp_release('clinic', 'count', 'VALUES (1, 1)', 'first')")
    one(db, "SELECT dp_release('region', 'count', 'VALUES (1, 1)', 'second')")
    for text in sys.argv[2:]:
        before = library.bench_sync_calls()
        db.execute(text).fetchall()
        print(library.bench_sync_calls() - before)
    assert one(db, "SELECT dp_verify()") == "ok"
    """


def batch(*names, diffuse=()):
    return "SELECT dp_batch('" + json.dumps([{"tier": "clinic", "kind": "count", "sql": ROWS, "options": {"name": name},
                                              "diffuse": list(diffuse)} for name in names]) + "')"


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    library = tmp_path_factory.mktemp("sync") / "sync.so"
    source = os.path.join(os.path.dirname(__file__), "../../bench/sync.c")
    subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return str(library)


@pytest.mark.plain  # a sanitizer must be the first library that is loaded
@pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded by LD_PRELOAD")
def test_every_commit_syncs_five_times_and_nothing_else_syncs(tmp_path, monkeypatch, counter):
    monkeypatch.setenv("LD_PRELOAD", counter)
    keys = json.dumps({"keys": list(range(100))})
    commits = {
        "SELECT 1": 0, "SELECT * FROM dp_value": 0, "SELECT dp_exposure('public')": 0, "SELECT dp_verify()": 0,
        "SELECT dp_diffuse('first', 'public')": 1, "SELECT dp_diffuse('first', 'public') AS again": 0,
        "SELECT dp_release('region', 'count', 'VALUES (1, 1)', 'release')": 2,
        "SELECT dp_release('region', 'count', 'VALUES (1, 1)', 'release') AS again": 0,
        # An aggregate also tries to store its values before its statement ends, and rolls this back.
        "SELECT dp_sum('clinic', minutes, 10, patient, 'sum') FROM visits": 2,
        # Each aggregate of a statement commits its charge, and one commit stores all values.
        "SELECT dp_sum('clinic', minutes, 10, patient), dp_avg('clinic', minutes, 0, 9, patient) FROM visits": 3,
        f"SELECT dp_group_count('clinic', patient, 1, patient, '{keys}') FROM visits": 2,
        # One commit charges a batch, and one commit stores each release with its diffusions.
        batch("a"): 2, batch("b", "c", "d"): 4, batch("e", "f", diffuse=["region", "public"]): 3,
        batch("e", "f", diffuse=["region", "public"]) + " AS again": 0, batch("e", diffuse=["public"]): 0,
        "SELECT dp_discard('a')": 1}
    found = run(COUNT, tmp_path / "a.db", *commits).split()
    assert dict(zip(commits, map(int, found))) == {sql: COMMIT * count for sql, count in commits.items()}
