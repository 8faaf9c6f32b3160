"""Helpers of the tests of series (test_series*.py): a table of visits with labels, declarations, appends and what they published."""

import json
import math
import sqlite3

import numpy

import series_reference as reference
from conftest import make_ledger
from fixed_noise import run_fixed
from noise_helpers import connect, one

YEAR = [f"p{i}" for i in range(1, 13)]  # labels without a calendar, so that no period waits for its end
KEYS = ["north", "south", "west"]
EXACT = (("exact", 1e6),)  # the noise of a number is 0.0007 clips
TWO = (("inner", 0.5), ("outer", 0.1))
COLUMNS = {"count": "label, 1", "count_distinct": "label", "sum": "label, x", "avg": "label, x",
           "group_count": "label, ward", "group_sum": "label, ward, x", "group_avg": "label, ward, x"}


def start(path=":memory:", rows=(), tiers=TWO, adjacency="add-remove", accountant="rdp", budget=1e9, delta=1e-6):
    """Makes visit(person, label, ward, x) with these rows, a ledger that protects persons, and tiers of nearly unlimited budget."""
    db = connect(str(path))
    db.execute("CREATE TABLE visit(person, label, ward, x)")
    insert(db, rows)
    make_ledger(db, json.dumps({"adjacency": adjacency}), "visit, person")
    for tier, rate in tiers:
        one(db, "SELECT dp_tier(?, ?, ?, ?, ?)", tier, rate, budget, 0 if accountant == "pure" else delta, accountant)
    return db


def insert(db, rows):
    db.executemany("INSERT INTO visit VALUES (?, ?, ?, ?)", rows)


def question(kind):
    return f"SELECT {COLUMNS[kind]} FROM visit"


def options(kind, periods, **more):
    found = {"name": "s", "periods": periods}
    if kind.startswith("group"):
        found["keys"] = KEYS
    if kind.endswith("avg"):
        found.update(lo=0, hi=10)
    found["clip"] = 12
    return json.dumps({**found, **more})


def declare(db, tier="inner", kind="count", periods=YEAR, sql=None, **more):
    return one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, sql or question(kind), options(kind, periods, **more))


def append(db, label, name="s"):
    return one(db, "SELECT dp_append(?, ?)", name, label)


def rows_of(db, tier, name="s"):
    """Returns {key: (value, stddev, low, high)} of dp_value."""
    found = db.execute("SELECT key, value, stddev, low, high FROM dp_value WHERE release = ? AND tier = ?", (name, tier)).fetchall()
    assert len(found) == len({row[0] for row in found})
    return {row[0]: row[1:] for row in found}


def total_key(labels, t, key=None):
    """Returns the key of the running total up to period t (from 0)."""
    return reference.key_of(f"{labels[0]}/{labels[t]}", key)


def spans(db, tier, first, last=None, name="s"):
    """Returns {key: (value, stddev, low, high)} of dp_span."""
    found = db.execute(f"SELECT key, value, stddev, low, high FROM dp_span(?, ?, ?{'' if last is None else ', ?'})",
                       (name, tier, first) + (() if last is None else (last,))).fetchall()
    return {row[0]: row[1:] for row in found}


def release_row(path, name="s"):
    with sqlite3.connect(f"{path}-ledger") as ledger:
        ledger.row_factory = sqlite3.Row
        return ledger.execute("SELECT * FROM dp_release WHERE name = ? ORDER BY id DESC", (name,)).fetchone()


def clock_of(path, tier, name="s"):
    with sqlite3.connect(f"{path}-ledger") as ledger:
        return ledger.execute("SELECT clock FROM dp_point WHERE release = ? AND tier = ?", (name, tier)).fetchone()[0]


def point_of(path, tier, name="s"):
    """Returns the coordinates of a point in lattice steps, in an order that depends on the series only."""
    with sqlite3.connect(f"{path}-ledger") as ledger:
        return numpy.array([v for (v,) in ledger.execute(
            "SELECT value FROM dp_path WHERE release = ? AND tier = ? AND component <> -1 ORDER BY key, component", (name, tier))], dtype=object)


def file_of(path):
    """Returns the bytes of all files of a ledger."""
    found = b""
    for end in ("", "-journal", "-wal"):
        try:
            with open(f"{path}-ledger{end}", "rb") as file:
                found += file.read()
        except FileNotFoundError:
            pass
    return found


def literal(value):
    return "'" + str(value).replace("'", "''") + "'"


def played(path, steps, kind="count", periods=YEAR, adjacency="add-remove", tiers=TWO, seed=7, **more):
    """Plays a year under fixed noise: `steps` are labels to append, and SQL texts that change the table between appends. Returns the
    point of the first tier, as integers."""
    db = start(path, (), tiers, adjacency)
    db.close()
    sql = [f"SELECT fixed_seed({seed})",
           f"SELECT dp_release({literal(tiers[0][0])}, {literal(kind)}, {literal(question(kind))}, {literal(options(kind, periods, **more))})"]
    sql += [step if " " in step else f"SELECT dp_append('s', {literal(step)})" for step in steps]
    run_fixed(str(path), sql)
    return point_of(path, tiers[0][0])


def visits(person, label, ward="north", x=1.0, times=1):
    """Returns SQL that adds rows."""
    row = f"({', '.join(literal(v) if isinstance(v, str) else repr(v) for v in (person, label, ward, x))})"
    return f"INSERT INTO visit VALUES {', '.join([row] * times)}"


def history(rows, labels, kind, unit):
    """Returns the vector of one unit in each period, or None where it has no rows: counts or sums, by cell of KEYS."""
    found = []
    for label in labels:
        mine = [row for row in rows if row[0] == unit and row[1] == label]
        if kind.startswith("group"):
            cells = [[row for row in mine if row[2] == key] for key in KEYS]
        else:
            cells = [mine]
        if kind == "count_distinct":
            vector = [min(1, len(cells[0]))]
        else:
            vector = [math.fsum(row[3] for row in cell) if kind.endswith("sum") else len(cell) for cell in cells]
        found.append(vector if any(len(cell) for cell in cells) else None)
    return found
