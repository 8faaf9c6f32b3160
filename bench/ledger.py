"""Makes ledgers with a long history for the benchmarks.

The program makes one real release at the outermost of three tiers. With INSERTs into the ledger file, it copies this
release many times, each with its publication, point, value and three charges. The append-only triggers admit an INSERT
with a new id. The hashes of the copied charges are empty, because only dp_verify() reads all hashes, and the benchmarks
do not call dp_verify(). The program sets the totals of dp_budget to the sums of the charges. It seals every copy and
the budgets as sql/ledger.sql describes. The measured statements are real: releases at the middle tier, with two charges
each. For comparison, dp_exposure() reads the whole history.
"""

import hashlib
import json
import os
import pathlib
import sqlite3
import struct

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
TIERS = [("in", 1e-3, 1e6), ("middle", 1e-4, 1e6), ("out", 1e-5, 1e6)]
STATEMENTS = {"release": "SELECT dp_release('middle', 'count', 'SELECT 1 FROM t', '{\"clip\":1}')",
              "budget": "SELECT * FROM dp_budget",
              "exposure": "SELECT dp_exposure('out')"}
# Releases whose size is measured: name: (kind, query, options)
SIZES = {"a count": ("count", "SELECT 1 FROM t", {"clip": 1}),
         "a count with Laplace noise": ("count", "SELECT 1 FROM t", {"clip": 1, "mechanism": "laplace"}),
         "counts of 1,000 public keys": ("group_count", "SELECT 1 FROM t", {"clip": 1, "keys": list(range(1000))}),
         "a median": ("median", "SELECT 1 FROM t", {"lo": 0, "hi": 1000}),
         "a median with a grid of 151 values": ("median", "SELECT 1 FROM t", {"lo": 5, "hi": 20, "grid": 0.1})}


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


def line(value):
    if value is None:
        return b"n\n"
    if isinstance(value, int):
        return b"i%d\n" % value
    if isinstance(value, float):
        return b"r%s\n" % struct.pack(">d", value).hex().encode()
    kind, value = (b"t", value.encode()) if isinstance(value, str) else (b"b", value)
    return kind + b"%d:" % len(value) + value + b"\n"


def digest(ledger, queries, parameters=()):
    """Returns the digest of the rows that the queries return, table by table."""
    found = hashlib.sha256()
    for table, sql in queries.items():
        for row in ledger.execute(sql, parameters):
            found.update(table.encode() + b"\n" + b"".join(map(line, row)))
    return found.hexdigest()


def seal(ledger):
    """Adds a seal for each release without a seal, with its last charge and the present budgets."""
    rows = {table: f"SELECT * FROM {table} WHERE {key} = ? ORDER BY {order}" for table, key, order in (
        ("dp_release", "id", "id"), ("dp_publication", "release_id", "tier"),
        ("dp_value", "release_id", "tier, key, component"), ("dp_path", "release_id", "tier, key, component"))}
    books = digest(ledger, {"dp_budget": "SELECT * FROM dp_budget ORDER BY tier"})
    last, previous, at = ledger.execute("SELECT id, hash, at FROM dp_seal ORDER BY id DESC LIMIT 1").fetchone()
    charges = ledger.execute("SELECT release_id, max(id), hash FROM dp_charge WHERE release_id NOT IN"
                             " (SELECT release_id FROM dp_seal) GROUP BY release_id ORDER BY release_id").fetchall()
    for number, (release, charge, charge_hash) in enumerate(charges, last + 1):
        sealed = digest(ledger, rows, (release,))
        text = "".join(f"{x}\n" for x in (previous, number, release, sealed, books, charge, charge_hash, at))
        previous = hashlib.sha256(text.encode()).hexdigest()
        ledger.execute("INSERT INTO dp_seal VALUES (?, ?, ?, ?, ?, ?, ?)",
                       (number, release, sealed, books, charge, at, previous))


def grow(path, charges):
    """Copies the only release until there are about `charges` charges. Each release has three charges."""
    ledger = sqlite3.connect(f"{path}-ledger", isolation_level=None)
    copies = charges // len(TIERS) - 1
    n = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {copies})"
    ledger.execute("BEGIN")
    points = ledger.execute("SELECT count(*) FROM dp_point").fetchone()[0]
    for table in ("dp_release", "dp_publication", "dp_point", "dp_coordinate", "dp_value", "dp_charge"):
        columns = [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]
        new = {"dp_release": {"id": "i + 1", "name": "'release-' || (i + 1)"},
               "dp_point": {"id": f"id + {points} * i", "release_id": "i + 1", "release": "'release-' || (i + 1)"},
               "dp_coordinate": {"point": f"point + {points} * i"},
               "dp_charge": {"id": f"id + {len(TIERS)} * i", "release_id": "i + 1", "release": "'release-' || (i + 1)",
                             "hash": "''"}}.get(table, {"release_id": "i + 1", "release": "'release-' || (i + 1)"})
        which = {"dp_release": "id = 1", "dp_coordinate": f"point <= {points}"}.get(table, "release_id = 1")
        ledger.execute(f"INSERT INTO {table} {n} SELECT {', '.join(new.get(c, c) for c in columns)}"
                       f" FROM n, {table} WHERE {which} ORDER BY i")
    ledger.execute("UPDATE dp_budget SET releases = ?1, spent_rate = ?1 * spent_rate, spent_high = ?1 * spent_high,"
                   " spent_low = 0", (copies + 1,))
    seal(ledger)
    ledger.execute("COMMIT")
    ledger.close()


def prepare(path, charges):
    """Makes a database whose ledger has about this many charges, at least three."""
    db = connect(path)
    db.execute("CREATE TABLE t(unit INT)")
    db.execute("INSERT INTO t VALUES (1)")
    db.execute("SELECT dp_init()").fetchall()
    db.execute("SELECT dp_protect('t', 'unit')").fetchall()
    for tier, rate, epsilon in TIERS:
        db.execute("SELECT dp_tier(?, ?, ?, 1e-6)", (tier, rate, epsilon)).fetchall()
    db.execute("SELECT dp_release('out', 'count', 'SELECT 1 FROM t', '{\"clip\":1}')").fetchall()
    db.close()
    if charges >= 2 * len(TIERS):
        grow(path, charges)
    return connect(path)


def sizes(folder, releases=20):
    """Returns {name: bytes of the ledger file for each release of SIZES that is published at three tiers}."""
    found = {}
    for number, (name, (kind, query, options)) in enumerate(SIZES.items()):
        path = os.path.join(folder, f"sizes-{number}.db")
        db = prepare(path, 1)
        before = os.path.getsize(f"{path}-ledger")
        for i in range(releases):
            text = json.dumps({**options, "name": f"{kind} of month {i}"})
            db.execute("SELECT dp_release('in', ?, ?, ?)", (kind, query, text)).fetchall()
            for tier in ("middle", "out"):
                db.execute("SELECT dp_diffuse(?, ?)", (f"{kind} of month {i}", tier)).fetchall()
        found[name] = (os.path.getsize(f"{path}-ledger") - before) / releases
        db.close()
    return found
