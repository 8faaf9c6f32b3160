"""Makes releases with the program `fixed`, whose noise is the same every time, and compares their ledgers row by row."""

import itertools
import json
import os
import sqlite3
import subprocess

from kinds_reference import KINDS
from kinds_tables import PARAMETERS
from noise_helpers import BUILD

EXACT = {kind: [dict(p) for p in several] for kind, several in PARAMETERS.items()}
for _kind, _bounds in (("group_count", {"clip": 2}), ("group_sum", {"clip": 2.5}), ("group_avg", {"lo": -3, "hi": 5}),
                       ("group_var", {"lo": -3, "hi": 5}), ("group_count_distinct", {"clip": 2}),
                       ("group_histogram", {"clip": 1, "lo": -3, "hi": 5, "bins": 5}), ("group_quantile", {"q": 0.3, "lo": -3, "hi": 5, "bins": 8})):
    EXACT[_kind].append({**_bounds, "max_groups": 20, "key_share": 1e-4})  # a unit keeps all its private keys, so none are chosen at random
TIERS = [("exact", 1e6), ("middle", 1000.0), ("outer", 100.0)]
COLUMNS = {kind: KINDS[kind].columns.split() for kind in KINDS}


def run_fixed(path, statements):
    """Runs SQL in the program `fixed`, or in the program that FIXED names, on a database file."""
    done = subprocess.run([BUILD / os.environ.get("FIXED", "fixed"), path], input=";\n".join(statements) + ";", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def story(adjacency, protects):
    """Returns the SQL statements that make a table t, a ledger that protects it, and TIERS."""
    options = json.dumps({"adjacency": adjacency, "protects": protects})
    protect = "SELECT dp_protect('t', 'unit')" if protects == "unit" else "SELECT dp_protect('t')"
    return ["CREATE TABLE t(k, x, v, unit)", f"SELECT dp_init('{options}')", protect] + [
        f"SELECT dp_tier('{tier}', {rate}, 1e15, 1e-6, 'rdp', 1e-7)" for tier, rate in TIERS]


def options_of(parameters, **more):
    """Writes options as an SQL text literal."""
    return "'" + json.dumps({**parameters, **more}).replace("'", "''") + "'"


def books(path):
    """Returns every row of the ledger except those of dp_ledger. Leaves out the columns of times, of hashes that depend on times,
    and of query texts. (A release made from states by dp_merge() has no query text.)"""
    found = {}
    with sqlite3.connect(path + "-ledger") as ledger:
        tables = [r[0] for r in ledger.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name LIKE 'dp%' ORDER BY 1")]
        for table in tables:
            names = [r[1] for r in ledger.execute(f"PRAGMA table_info({table})")]
            kept = [f'"{n}"' for n in names if n not in ("at", "created_at", "published_at", "hash", "digest", "sql", "statement")]
            if table != "dp_ledger":
                found[table] = ledger.execute(f"SELECT {', '.join(kept)} FROM {table} ORDER BY {', '.join(kept)}").fetchall()
    return found


def compare(first, second):
    """Checks that two databases have the same ledgers, except for the columns that books() leaves out."""
    a, b = books(first), books(second)
    assert a.keys() == b.keys() and all(len(a[t]) for t in ("dp_release", "dp_path", "dp_value", "dp_publication", "dp_charge"))
    for table in a:
        for x, y in itertools.zip_longest(a[table], b[table]):
            assert x == y, (table, x, y)
