"""Ledgers with a long history, for the benchmarks.

The history is made from one real release at the outermost of three tiers: it is copied, with its publication, point,
value and three charges, by plain INSERTs into the ledger file (an INSERT of new ids is what the append-only triggers
admit; hashes are left empty, as nothing but dp_verify() reads any but the last), and the budgets are set to the sum.
Everything that is timed on it is then real: releases at the middle tier, two charges each. dp_exposure() reads the
whole history and is there for comparison.
"""

import os
import pathlib
import sqlite3

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
TIERS = [("in", 1e-3, 1e6), ("middle", 1e-4, 1e6), ("out", 1e-5, 1e6)]
STATEMENTS = {"release": "SELECT dp_release('middle', 'count', 'VALUES (1, 1)')",
              "budget": "SELECT * FROM dp_budget",
              "exposure": "SELECT dp_exposure('out')"}


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


def grow(path, charges):
    """Repeats the one release that is there until there are about this many charges, three to a release."""
    ledger = sqlite3.connect(f"{path}-ledger", isolation_level=None)
    copies = charges // len(TIERS) - 1
    n = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {copies})"
    ledger.execute("BEGIN")
    for table in ("dp_release", "dp_publication", "dp_path", "dp_value", "dp_charge"):
        columns = [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]
        new = {"dp_release": {"id": "i + 1", "name": "'release-' || (i + 1)"},
               "dp_charge": {"id": f"id + {len(TIERS)} * i", "release_id": "i + 1", "release": "'release-' || (i + 1)",
                             "hash": "''"}}.get(table, {"release_id": "i + 1", "release": "'release-' || (i + 1)"})
        which = "id = 1" if table == "dp_release" else "release_id = 1"
        ledger.execute(f"INSERT INTO {table} {n} SELECT {', '.join(new.get(c, c) for c in columns)}"
                       f" FROM n, {table} WHERE {which} ORDER BY i, {table}.rowid")
    ledger.execute("UPDATE dp_budget SET releases = ?1, spent_rate = ?1 * spent_rate, spent_high = ?1 * spent_high,"
                   " spent_low = 0", (copies + 1,))
    ledger.execute("COMMIT")
    ledger.close()


def prepare(path, charges):
    """A database whose ledger has about that many charges, at least three."""
    db = connect(path)
    db.execute("SELECT dp_init()").fetchall()
    for tier, rate, epsilon in TIERS:
        db.execute("SELECT dp_tier(?, ?, ?, 1e-6)", (tier, rate, epsilon)).fetchall()
    db.execute("SELECT dp_release('out', 'count', 'VALUES (1, 1)')").fetchall()
    db.close()
    if charges >= 2 * len(TIERS):
        grow(path, charges)
    return connect(path)
