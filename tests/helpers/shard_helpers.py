"""Ledgers of shards and of merges, and merges that work or are refused."""

import json
import sqlite3

import pytest

from noise_helpers import connect, one


def policy(adjacency="add-remove", protects="unit", tables=("t",)):
    """Returns the SQL statements that make a ledger and protect tables, which may exist already."""
    unit = ", 'unit'" if protects == "unit" else ""
    return [f"SELECT dp_init('{json.dumps({'adjacency': adjacency, 'protects': protects})}')"] + [
        statement for table in tables for statement in (f"CREATE TABLE IF NOT EXISTS {table}(k, x, v, unit)", f"SELECT dp_protect('{table}'{unit})")]


def database(protects="unit", tables=("t",), tier=False):
    db = connect()
    for statement in policy("add-remove", protects, tables) + ["SELECT dp_tier('exact', 1e6, 1e15, 1e-6, 'rdp', 1e-7)"] * tier:
        db.execute(statement).fetchall()
    return db


def merged(db, states, tier="exact", name=None):
    db.execute("CREATE TEMP TABLE IF NOT EXISTS s(state)")
    db.execute("DELETE FROM s")
    db.executemany("INSERT INTO s VALUES (?)", [(s,) for s in states])
    return one(db, "SELECT dp_merge(?, dp_states(state), ?) FROM s", tier, name)


def refusal(db, sql, *arguments):
    with pytest.raises(sqlite3.Error) as caught:
        db.execute(sql, arguments).fetchall()
    return str(caught.value)


def refused_merge(db, states, **named):
    """Returns the error message of a merge, and checks that nothing has been charged or released."""
    before = one(db, "SELECT (SELECT count(*) FROM dp_charge) || '/' || (SELECT count(*) FROM dp_release)")
    with pytest.raises(sqlite3.Error) as caught:
        merged(db, states, **named)
    assert one(db, "SELECT (SELECT count(*) FROM dp_charge) || '/' || (SELECT count(*) FROM dp_release)") == before
    return str(caught.value)
