"""What a series keeps secret, and for how long. Exact sums, the book of allowances and its secret are in the ledger file only, sealed,
and gone with the last append. Members of a tier see what their tier may know, whatever inner tiers do."""

import json
import pathlib
import sqlite3

import pytest

from conftest import refused
from fixed_noise import run_fixed
from noise_helpers import connect, one, quick_path, unnoticed
from series_helpers import (EXACT, TWO, YEAR, append, declare, file_of, literal, options, question, rows_of, start)

pytestmark = pytest.mark.alarm(0)

SECRET = ("dp_exact", "dp_allowance")
ROWS = [(f"person {i}", YEAR[i % 4], ["north", "south", "west"][i % 3], 1.0 + i / 7) for i in range(60)]


def cells(path):
    """Returns the bytes of every cell of the secret tables that is long enough to be found by chance never: numbers from 2^39 on,
    texts and blobs of 8 bytes and more; and of every column whose name contains `secret`."""
    found = set()
    with sqlite3.connect(f"{path}-ledger") as ledger:
        tables = [name for (name,) in ledger.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'dp%'")]
        for table in tables:
            for column in [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]:
                if table in SECRET and column not in ("release_id", "period", "key", "component", "part") or "secret" in column:
                    for (value,) in ledger.execute(f"SELECT {column} FROM {table}"):
                        if isinstance(value, int) and abs(value) >= 2**39:
                            found.add(value.to_bytes(6 if abs(value) < 2**47 else 8, "big", signed=True))
                        elif isinstance(value, str):
                            found.add(value.encode())
                        elif isinstance(value, bytes):
                            found |= {value[at:at + 16] for at in range(0, len(value) - 15, 8)} if len(value) >= 16 else {value}
    return {cell for cell in found if len(cell) >= 6 and len(set(cell)) > 3}


@pytest.mark.parametrize("end", ["last", "discard"])
@pytest.mark.parametrize("kind", ["sum", "group_sum"])
def test_the_secrets_end_with_the_series(kind, end):
    """While a series runs, its exact sums and the book are in the ledger. After the last append, or after dp_discard(), no byte of them
    is in the file or its journal."""
    with quick_path() as path:
        db = start(path, ROWS)
        declare(db, kind=kind, clip=50)
        secrets = set()
        for label in (YEAR[0], YEAR[2], YEAR[10]):
            append(db, label)
            now = cells(path)
            content = file_of(path)
            assert len(now) >= 20 and sum(cell in content for cell in now) > 0.9 * len(now)  # a page may end within one
            secrets |= now
        if end == "last":
            append(db, YEAR[11])
        else:
            one(db, "SELECT dp_discard('s')")
        content = file_of(path)
        assert [cell for cell in secrets if cell in content] == []
        with sqlite3.connect(f"{path}-ledger") as ledger:
            assert all(one(ledger, f"SELECT count(*) FROM {table}") == 0 for table in SECRET)
        assert one(db, "SELECT dp_verify()") == "ok"
        if end == "last":
            assert len(rows_of(db, "inner")) >= 23
            one(db, "SELECT dp_diffuse('s', 'outer')")
            assert rows_of(db, "outer").keys() == rows_of(db, "inner").keys()


def test_the_host_never_sees_them():
    """No connection with the extension has the tables of exact sums and allowances, and no answer contains an identity."""
    with quick_path() as path:
        db = start(path, ROWS)
        declare(db)
        append(db, YEAR[4])
        for table in SECRET:
            assert "no such table" in refused(db, f"SELECT * FROM {table}")
        columns = [row[1] for row in db.execute("PRAGMA table_info(dp_release)")]
        assert not [name for name in columns if "secret" in name]
        shown = one(db, "SELECT dp_certificate()") + one(db, "SELECT dp_report()")
        assert "person 3" not in shown and "dp_exact" not in shown and "dp_allowance" not in shown


def test_dp_verify_finds_every_edit():
    """dp_verify notices an edit of any column of the sums, of the book and of the number of appended periods, and rows that are missing."""
    with quick_path() as path:
        db = start(path, ROWS)
        declare(db, "inner", "group_count", clip=5)
        one(db, "SELECT dp_diffuse('s', 'outer')")
        append(db, YEAR[3])
        db.close()
        changes = []
        with sqlite3.connect(f"{path}-ledger") as ledger:
            for table in SECRET:
                for _, name, kind, *_ in ledger.execute(f"PRAGMA table_info({table})"):
                    sample = one(ledger, f"SELECT {name} FROM {table} LIMIT 1")
                    more = (f"substr({name}, 1, length({name}) - 1) || x'99'" if isinstance(sample, bytes) else f"{name} || 'x'" if isinstance(sample, str)
                            else f"{name} + 1000")
                    where = f"WHERE rowid = (SELECT max(rowid) FROM {table})" if "WITHOUT" not in one(
                        ledger, "SELECT sql FROM sqlite_schema WHERE name = ?", table) else f"WHERE {name} = (SELECT max({name}) FROM {table})"
                    changes.append(f"UPDATE {table} SET {name} = {f'CAST({more} AS BLOB)' if isinstance(sample, bytes) else more} {where}")
                changes.append(f"DELETE FROM {table} WHERE {'period' if table == 'dp_exact' else 'part'} = (SELECT max({'period' if table == 'dp_exact' else 'part'}) FROM {table})")
            tables = [name for (name,) in ledger.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'dp%'")]
            for table in tables:
                for column in [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]:
                    if column == "appended":
                        changes += [f"UPDATE {table} SET appended = appended + 1", f"UPDATE {table} SET appended = appended - 1"]
        changes += ["UPDATE dp_release SET secret = replace(secret, substr(secret, 1, 1), iif(substr(secret, 1, 1) = '0', '1', '0'))",
                    "UPDATE dp_release SET secret = NULL", "UPDATE dp_release SET periods = replace(periods, 'p12', 'p13')"]
        assert len(changes) >= 12 and any("appended" in change for change in changes)
        assert unnoticed(path, changes) == []


# ---- what members of a tier see ------------------------------------------------------------------------------------------

SHARED = ["SELECT fixed_seed(5)", f"SELECT dp_release('inner', 'count', {literal(question('count'))}, {literal(options('count', YEAR, clip=4))})",
          "SELECT dp_diffuse('s', 'outer')", "SELECT fixed_seed(6)", "SELECT dp_append('s', 'p4')"]
INSIDE = [f"SELECT dp_release('inner', 'sum', {literal(question('sum'))}, {literal(options('sum', YEAR, name='hidden'))})", "SELECT dp_append('hidden', 'p6')",
          "SELECT dp_tier('core', 9, 1e9, 1e-6)", f"SELECT dp_release('core', 'count', {literal(question('count'))}, {literal(options('count', YEAR, name='core'))})",
          "SELECT dp_append('core', 'p12')", "SELECT dp_discard('hidden')"]


def shown(path, tier, file):
    """Returns everything that the owner hands over to members of a tier, and what they see on a guarded connection."""
    db = connect(path)
    found = [one(db, "SELECT dp_report(?)", tier)]
    one(db, "SELECT dp_export(?, ?)", tier, file)
    with sqlite3.connect(file) as handed:
        for (table,) in handed.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1").fetchall():
            found.append((table, handed.execute(f"SELECT * FROM {table}").fetchall()))
    one(db, "SELECT dp_guard(?)", tier)
    for sql in ("SELECT * FROM dp_value", "SELECT * FROM dp_release", "SELECT * FROM dp_publication", "SELECT * FROM dp_charge", "SELECT * FROM dp_budget",
                f"SELECT * FROM dp_span('s', '{tier}', 3)", f"SELECT * FROM dp_span('s', '{tier}', 'p2', 'p4')", "SELECT * FROM dp_span('s', 'inner', 3)",
                "SELECT * FROM dp_span('hidden', 'inner', 3)", "SELECT * FROM dp_span('hidden', 'outer', 3)", "SELECT * FROM dp_span('core', 'core', 3)",
                f"SELECT dp_interval('s', '{tier}', 'p1/p3', 0.9)", "SELECT dp_append('s', 'p3')", "SELECT dp_append('hidden', 'p3')", "SELECT dp_append('none', 'p3')",
                "SELECT * FROM dp_exact", "SELECT * FROM dp_allowance"):
        try:
            found.append((sql, db.execute(sql).fetchall()))
        except sqlite3.Error as error:
            found.append((sql, str(error)))
    return found


def test_outer_pages_do_not_depend_on_inner_tiers():
    """Report, export and guarded connection of the outer tier are the same, to the last byte, whatever inner tiers declare, append and
    discard. Members read spans of their tier, and cannot append."""
    with quick_path() as path:
        found = []
        start(path, ROWS, TWO).close()
        kept = [(end, open(path + end, "rb").read()) for end in ("", "-ledger")]
        for name, extra in (("quiet", []), ("busy", INSIDE)):
            for end, content in kept:
                pathlib.Path(path + end).write_bytes(content)
            run_fixed(path, SHARED[:3] + extra[:1] + SHARED[3:] + extra[1:])
            found.append(shown(path, "outer", path + name))
        for quiet, busy in zip(*found):
            assert quiet == busy
        answers = dict(found[0][-17:])
        assert len(answers["SELECT * FROM dp_span('s', 'outer', 3)"]) == 2
        for sql, answer in answers.items():
            if "inner" in sql or "core" in sql or "hidden" in sql or "none" in sql or "append" in sql or "exact" in sql or "allowance" in sql:
                assert isinstance(answer, str), sql
        assert answers["SELECT dp_append('s', 'p3')"].replace("'s'", "") == answers["SELECT dp_append('none', 'p3')"].replace("'none'", "")


def test_reports_and_exports_have_the_rows_of_dp_value():
    """The page has one chart for a series, and the data block and the export have every period and total of the tier."""
    with quick_path() as path:
        db = start(path, ROWS, TWO)
        declare(db, clip=4)
        one(db, "SELECT dp_diffuse('s', 'outer')")
        append(db, YEAR[6])
        want = rows_of(db, "outer")
        page = one(db, "SELECT dp_report('outer')")
        block = json.loads(page.split('id="dp_value">')[1].split("</script>")[0])
        assert {row["key"]: row["value"] for row in block} == {key: row[0] for key, row in want.items()}
        one(db, "SELECT dp_export('outer', ?)", path + ".out")
        with sqlite3.connect(path + ".out") as handed:
            assert dict(handed.execute("SELECT key, value FROM value")) == {key: row[0] for key, row in want.items()}
        assert page.count("<section class=trend>") == 2 and "total so far" in page and "p1 to p7" in page


def test_read_only_connections_append_nothing():
    with quick_path() as path:
        db = start(path, ROWS, EXACT)
        declare(db, "exact")
        append(db, "p2")
        want = rows_of(db, "exact")
        db.close()
        visitor = connect(path)
        visitor.execute("PRAGMA query_only = ON")
        assert one(visitor, "SELECT dp_append('s', 'p2')") == want["p2"][0]
        refused(visitor, "SELECT dp_append('s', 'p3')")
        assert len(visitor.execute("SELECT * FROM dp_span('s', 'exact', 2)").fetchall()) == 1
        assert rows_of(visitor, "exact") == want
