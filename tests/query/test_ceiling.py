"""Tests the ceiling of the proofs (ext/query/program.h): with a version of SQLite that is newer than the newest tested one,
aggregates in a SELECT are refused. For the build `ceiling`, every version is too new."""

import pathlib
import re
import sqlite3

from conftest import one, refused
from noise_helpers import BUILD

ROOT = pathlib.Path(__file__).parents[2]

SCHEMA = """
CREATE TABLE t(id INTEGER PRIMARY KEY, x INT, k INT, unit INT);
CREATE TABLE w(k INTEGER PRIMARY KEY, y INT);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2999) INSERT INTO t SELECT i, i % 9, i % 4, i % 50 FROM n;
INSERT INTO w VALUES (0, 5), (1, 7);
"""
POLICY = ["dp_init()", "dp_protect('t', 'unit')", "dp_public('w')", "dp_tier('a', 1e6, 1e15, 1e-6)"]


def opened(extension, path):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / extension))
    db.executescript(SCHEMA)
    for call in POLICY:
        one(db, "SELECT " + call)
    return db


def test_aggregates_are_refused_before_any_charge(tmp_path):
    db = opened("ceiling/diffuse", tmp_path / "data.db")
    message = refused(db, "SELECT dp_sum('a', x, 9) FROM t")
    assert message == (f"dp_sum: aggregates in a SELECT are not proved for SQLite {sqlite3.sqlite_version}, which is newer than this version"
                       " of diffuse (ask dp_release(tier, 'sum', 'SELECT ...', options))")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


def test_the_newest_version():
    """Whoever runs the suite with a newer version of SQLite has to raise the constant, if the suite passes otherwise."""
    (newest,) = re.findall(r"#define NEWEST_SQLITE (\d+)", (ROOT / "ext" / "query" / "program.h").read_text())
    major, minor, _ = sqlite3.sqlite_version_info
    assert 1000 * major + minor <= int(newest)
