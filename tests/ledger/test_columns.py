"""Checks that the lists of columns in ext/ledger/columns.h agree with the schema, sql/ledger.sql."""

import pathlib
import re
import sqlite3

import pytest

from conftest import connect, INIT, one

pytestmark = [pytest.mark.alarm(0), pytest.mark.plain]

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {"ID": "INTEGER", "WIDE": "INTEGER", "UNSIGNED": "INTEGER", "NUMBER": "INTEGER", "COUNT": "INTEGER", "REAL": "REAL",
         "TEXT": "TEXT", "BORROWED": "TEXT", "ACCOUNTANT": "TEXT", "NOW": "TEXT", "LATER": "TEXT", "BLOB": "BLOB"}
MAY_BE_NULL = {"COUNT", "REAL", "TEXT", "BORROWED", "BLOB", "LATER"}
COMPUTED = {"dp_value": [("display", "TEXT"), ("figure", "TEXT")]}  # columns that only the host's tables have; they follow the others
BY_HAND = {"dp_ledger", "dp_path"}  # one row, which dp_init() writes, and a view


def lists():
    """Returns the lists by name. A list has its columns in order, as (name, kind, shown, role)."""
    lines = (ROOT / "ext/ledger/columns.h").read_text()
    text = lines.replace("\\\n", " ")
    found = {f"dp_{name.lower()}": re.findall(r"X\(T, (\w+),\s*([A-Z]+),\s*(\d+),\s*([A-Z]+)", body)
             for name, body in re.findall(r"#define ([A-Z]+)_COLUMNS\(X, T\)(.*)", text)}
    assert sum(len(columns) for columns in found.values()) == lines.count("\n  X(")
    return found


def schema():
    db = sqlite3.connect(":memory:")
    db.executescript((ROOT / "sql/ledger.sql").read_text())
    return db


def test_every_table_has_a_list():
    assert set(lists()) | BY_HAND == {name for (name,) in schema().execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name LIKE 'dp!_%' ESCAPE '!'")}
    assert not set(lists()) & BY_HAND


@pytest.mark.parametrize("table", sorted(lists()))
def test_a_list_has_the_columns_of_its_table(table):
    columns = [column for column in lists()[table] if column[3] != "ADDED"]
    stored = {name: (kind, required or key)
              for _, name, kind, required, _, key in schema().execute(f"PRAGMA table_info({table})")}
    assert len(columns) == len({name for name, *_ in columns})
    assert {name for name, *_ in columns} == set(stored)
    for name, kind, _, _ in columns:
        type_, required = stored[name]
        assert TYPES[kind] == type_ or (table == "dp_rdp" and not type_), name
        assert required or kind in MAY_BE_NULL or table == "dp_rdp", name
        assert not (required and kind == "LATER"), name


@pytest.mark.parametrize("table", sorted(lists()))
def test_the_host_sees_the_columns_in_their_places(table, tmp_path):
    shown = sorted((int(place), name, TYPES[kind]) for name, kind, place, _ in lists()[table] if place != "0")
    assert [place for place, *_ in shown] == list(range(1, len(shown) + 1))
    db = connect(tmp_path / "a.db")
    one(db, INIT)
    if shown:
        shown += [(0, *column) for column in COMPUTED.get(table, [])]
        assert [(name, type_) for _, name, type_, *_ in db.execute(f"PRAGMA table_info({table})")] == [
            (name, type_) for _, name, type_ in shown]
        assert [column[0] for column in db.execute(f"SELECT * FROM {table}").description] == [name for _, name, _ in shown]
    else:
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            db.execute(f"SELECT * FROM {table}")
