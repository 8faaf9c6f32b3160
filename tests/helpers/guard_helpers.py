"""Makes databases with a policy and publications, and guarded connections to these databases."""

import json
import pathlib
import re
import shutil
import sqlite3

import pytest

from conftest import connect, EXTENSION, one
from guard_statements import SCHEMA

BARE = str(pathlib.Path(EXTENSION).parent / "bare/diffuse")  # the build whose guard has no authorizer
TIERS = [("clinic", 0.04, 8.0, 1e-6), ("region", 0.01, 5.0, 1e-6), ("public", 0.002, 3.0, 1e-6)]

# Literals whose comparisons depend on types, affinities and collations.
VALUES = ["NULL", "0", "1", "12", "-7", "12.0", "0.5", "1e15", "9007199254740993", "9007199254740993.0", "'12'", "'012'", "'12.0'", "' 12'", "'abc'",
          "'ABD'", "'abe '", "'1e1'", "''", "'zzz'", "'%abc'", "'Āb'", "x'3132'", "x''", "x'00ff'"]


def create(path):
    """Makes a database with a policy, and releases at every tier, one of which is also diffused to the outermost
    tier."""
    db = connect(path)
    db.executescript(SCHEMA)
    for call in ("init()", "protect('visit', 'patient')", "public('ward')"):
        db.execute("SELECT dp_" + call).fetchall()
    for tier in TIERS:
        db.execute("SELECT dp_tier(?, ?, ?, ?)", tier).fetchall()
    release(db, "public", "total")
    release(db, "clinic", "inner")
    release(db, "region", None)
    one(db, "SELECT dp_diffuse('release-3', 'public')")
    return db


def release(db, tier, name, kind="sum", **options):
    options = {"clip": 100, **({"name": name} if name else {}), **options}
    return one(db, "SELECT dp_release(?, ?, 'SELECT minutes FROM visit', ?)", tier, kind, json.dumps(options))


def guarded(path, tier="public", options=None, **how):
    db = connect(path, **how)
    assert one(db, "SELECT dp_guard(?)" if options is None else "SELECT dp_guard(?, ?)",
               *[tier, *([json.dumps(options)] if options is not None else [])]) == tier
    return db


ADDRESS = re.compile(r"vtab:[0-9A-Fa-fx]+")  # EXPLAIN shows addresses of virtual tables in memory


def outcome(db, statement):
    """Returns everything that a person who sends this statement sees: all rows, or the error."""
    try:
        rows = [tuple(map(repr, row)) for row in db.execute(statement)]
        return [tuple(ADDRESS.sub("vtab", cell) for cell in row) for row in rows] if "EXPLAIN" in statement else rows
    except sqlite3.Error as error:
        return f"{type(error).__name__}: {error}"


def copy_of(path, to):
    for end in ("", "-ledger"):
        shutil.copy(f"{path}{end}", f"{to}{end}")
    return to


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Makes a database once for each test file. Tests must not change it."""
    path = tmp_path_factory.mktemp("guard") / "a.db"
    create(path).close()
    return path


@pytest.fixture
def copy(published, tmp_path):
    return copy_of(published, tmp_path / "copy.db")


def mend(found, left, right):
    """Returns the differences that remain after the names of the two files are removed from both outcomes."""
    return [f for f in found if str(f[1]).replace(str(left), "") != str(f[2]).replace(str(right), "")]
