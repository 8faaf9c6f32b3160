"""Questions and aggregates on the versions of SQLite that apsw brings (make deps-hosts). The truth is the loop over units of
question_reference.py, on Python's own SQLite."""

import pathlib
import subprocess
import sys

import pytest

from conftest import EXTENSION, HELPERS, PATIENCE

HOSTS = pathlib.Path(__file__).resolve().parents[2] / "build" / "hosts" / "python" / "apsw"

STORY = """
import sqlite3, sys
sys.path[:0] = [sys.argv[1], sys.argv[3]]
import apsw
import question_reference as reference

db = apsw.Connection(":memory:")
(db.enableloadextension if "enableloadextension" in dir(db) else db.enable_load_extension)(True)
(db.loadextension if "loadextension" in dir(db) else db.load_extension)(sys.argv[2])
every = lambda sql, values=(): list(db.cursor().execute(sql, values))
plain = sqlite3.connect(":memory:")
plain.executescript(reference.SCHEMA)
reference.hospital(plain, 1)
every(reference.SCHEMA)
for table in ("visit", "exam", "part", "drug", "ward", "holiday", "price"):
    for row in plain.execute(f"SELECT * FROM {table}").fetchall():
        every(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
every("SELECT dp_init()")
for call in reference.POLICY:
    every("SELECT " + call)
every("SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
ask = lambda sql: every("SELECT dp_release('t', 'sum', ?, '{\\"clip\\":50}')", (sql,))[0][0]
for sql, tables in reference.QUESTIONS:
    want = reference.clipped_sum(reference.contributions(plain, sql, tables), 50)
    assert abs(ask(sql) - want) < 0.45, sql
for aggregate, query in (("dp_sum('t', minutes, 50) FROM visit", "SELECT minutes FROM visit"),
                         ("dp_sum('t', result, 50) FROM exam", "SELECT result FROM exam"),
                         ("dp_sum('t', round(minutes / 7.0), 50) FROM visit WHERE ward = 'north'",
                          "SELECT round(minutes / 7.0) FROM visit WHERE ward = 'north'"),
                         ("dp_sum('t', a.minutes, 50) FROM visit a JOIN visit b", "SELECT a.minutes FROM visit a JOIN visit b"),
                         ("dp_sum('t', minutes, 50) FROM (SELECT * FROM visit LIMIT 3)", "SELECT minutes FROM (SELECT * FROM visit LIMIT 3)"),
                         ("dp_sum('t', beds, 50) FROM ward CROSS JOIN visit ON name = ward",
                          "SELECT beds FROM ward CROSS JOIN visit ON name = ward")):
    assert abs(every("SELECT " + aggregate)[0][0] - ask(query)) < 0.9, aggregate
before = every("SELECT count(*) FROM dp_charge")
# Before 3.41, the first use of such a table asks for more than a read, so the authorizer refuses it for another reason.
for table in ("pragma_function_list", "pragma_table_info('visit')", "sqlite_master", "main.sqlite_master"):
    try:
        ask("SELECT count(*) FROM visit, " + table)
    except apsw.Error as error:
        assert "a question cannot use" in str(error), error
    else:
        raise AssertionError(table)
assert every("SELECT count(*) FROM dp_charge") == before
"""


@pytest.mark.parametrize("version", ["3.39.4.0", "3.42.0.1", "newest"])
@pytest.mark.plain
def test_questions_on_other_versions_of_sqlite(version):
    if not (HOSTS / version / ".done").exists():
        pytest.skip("no apsw in build/hosts (make deps-hosts)")
    subprocess.run([sys.executable, "-c", STORY, str(HOSTS / version), EXTENSION, str(HELPERS)],
                   check=True, timeout=PATIENCE)
