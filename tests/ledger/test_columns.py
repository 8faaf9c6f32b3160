"""Checks that the tables that the host sees agree with the schema, sql/ledger.sql."""

import pathlib
import sqlite3

import pytest

from conftest import connect, INIT, one

pytestmark = [pytest.mark.alarm(0), pytest.mark.plain]

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPUTED = {"dp_value": [("display", "TEXT"), ("figure", "TEXT"), ("label", "TEXT")]}  # columns that only the host's tables have; they follow the others
# Whoever adds a column decides whether the host sees it: this list and the host's tables together have every column.
HIDDEN = {
    "dp_tier": "slack_limit",
    "dp_release": "centre radius theta rho lo hi grid diagnose key_share size max_groups quantiles stop appended secret unit_type shift "
                  "fingerprint",
    "dp_publication": "curve delta",
    "dp_value": "", "dp_policy": "definition mark", "dp_rdp": "", "dp_grant": "", "dp_page": "",
    "dp_charge": "",
    "dp_budget": "spent_high spent_low spent_slack spent_curve spent_pure",
    "dp_reserve": "reserved_slack spent_slack spent_high spent_low spent_curve"}


def schema():
    db = sqlite3.connect(":memory:")
    db.executescript((ROOT / "sql/ledger.sql").read_text())
    return db


def columns(db, table):
    return [(name, type_) for _, name, type_, *_ in db.execute(f"PRAGMA table_info({table})")]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    db = connect(tmp_path_factory.mktemp("columns") / "a.db")
    one(db, INIT)
    return db


@pytest.mark.parametrize("table", sorted(HIDDEN))
def test_the_host_sees_the_columns_of_the_schema(table, host):
    shown, computed = columns(host, table), COMPUTED.get(table, [])
    stored = dict(columns(schema(), table))
    assert shown[len(shown) - len(computed):] == computed
    shown = dict(shown[:len(shown) - len(computed)])
    assert set(shown) | set(HIDDEN[table].split()) == set(stored) and not set(shown) & set(HIDDEN[table].split())
    assert table == "dp_rdp" or all(stored[name] == type_ for name, type_ in shown.items())
    assert [column[0] for column in host.execute(f"SELECT * FROM {table}").description] == [*shown, *(name for name, _ in computed)]


def test_the_host_sees_no_other_table(host):
    for (table,) in schema().execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name LIKE 'dp!_%' ESCAPE '!'"):
        if table not in HIDDEN:
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                host.execute(f"SELECT * FROM {table}")
