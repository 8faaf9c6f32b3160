"""Tests dp_guard(): what a guarded connection shows to the members of its tier."""

import contextlib
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import threading

import pytest

from conftest import APPEND_ONLY, connect, edit, EXTENSION, HELPERS, ledger_of, one, PATIENCE, refused
from guard_helpers import BARE, copy, copy_of, guarded, mend, outcome, published, release
from guard_statements import AGGREGATES, OWNERS, READ, REFUSED, TABLES

pytestmark = pytest.mark.alarm(0)

ABSENT = "the rows of table 'visit' are protected, and this connection may not ask about them (dp_value has what is published)"


def bytes_of(path):
    return [open(file, "rb").read() for file in (path, f"{path}-ledger")]


# ---- getting out -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["public", "clinic"])
def test_every_way_out_is_refused_and_changes_nothing(copy, tier):
    db = connect(copy)
    db.create_function("application", 0, lambda: "host")
    assert one(db, "SELECT dp_guard(?)", tier) == tier
    before = bytes_of(copy)
    for statement in REFUSED:
        assert isinstance(outcome(db, statement), str), statement
    assert bytes_of(copy) == before
    db.execute("ROLLBACK") if db.in_transaction else None


SCHEMA_PRAGMAS = {"database_list", "foreign_key_list", "index_info", "index_list", "index_xinfo", "schema_version", "table_info", "table_list",
                  "table_xinfo"}


def test_the_columns_of_declared_tables(copy):
    owner = connect(copy)
    owner.execute("CREATE TABLE odd(a, \"b c\" VARCHAR(9) COLLATE NOCASE, d INT AS (a + 1))")
    assert one(owner, "SELECT dp_public('odd')") == "odd"
    columns = [(table, *row[1:3], role) for table, role in (("visit", "protected"), ("ward", "public"), ("odd", "public"))
               for row in owner.execute(f"PRAGMA table_xinfo({table})")]
    assert len(columns) == 10
    for db in (owner, guarded(copy)):
        assert sorted(db.execute("SELECT * FROM dp_column").fetchall()) == sorted(columns)
        assert one(db, "SELECT group_concat(column_name) FROM dp_column WHERE table_name = 'ward'") == "name,beds"
    owner.execute("DROP TABLE odd")
    assert one(guarded(copy), "SELECT count(*) FROM dp_column") == 7


def test_pragmas_show_the_new_main_and_nothing_else(copy):
    names = [name for (name,) in sqlite3.connect(":memory:").execute("SELECT name FROM pragma_pragma_list")]
    db = guarded(copy)
    assert len(names) > 50
    for name in names:
        for statement in (f"PRAGMA {name}", f"PRAGMA {name} = 1", f"PRAGMA main.{name}", f"PRAGMA {name}(visit)",
                          f"SELECT * FROM pragma_{name}", f"SELECT count(*) FROM pragma_{name}('visit')"):
            got = outcome(db, statement)
            if name not in SCHEMA_PRAGMAS:
                assert isinstance(got, str), statement
            elif name not in ("database_list", "schema_version", "table_list"):
                assert got in ([], [('0',)]) or isinstance(got, str), statement
    assert str(copy) not in str(db.execute("PRAGMA database_list").fetchall())
    assert one(db, "PRAGMA schema_version") == 1 and refused(db, "PRAGMA schema_version = 7") == "not authorized"


def test_main_holds_the_public_tables_and_nothing_else(copy):
    owner, db = connect(copy), guarded(copy)
    text = 'CREATE VIRTUAL TABLE "ward" USING dp_public_table'
    assert db.execute("SELECT * FROM sqlite_master").fetchall() == [("table", "ward", "ward", 0, text)]
    assert db.execute("SELECT name FROM pragma_table_list WHERE schema = 'main'").fetchall() == [("ward",), ("sqlite_schema",)]
    assert db.execute("PRAGMA table_info(ward)").fetchall() == owner.execute("PRAGMA table_info(ward)").fetchall()
    assert db.serialize().count(b"north") == 0 and b"minutes" not in db.serialize()


def test_every_module_is_gone_but_ours_and_json(copy):
    db = connect(copy)
    db.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()  # SQLite 3.54 lists them from their first use
    modules = [name for (name,) in db.execute("SELECT name FROM pragma_module_list")]
    one(db, "SELECT dp_guard('public')")
    ours = {*TABLES, "json_each", "json_tree", "dp_amplify", "dp_answer", "dp_parts", "dp_span", "dp_table"}
    assert {"dbstat", *ours} <= set(modules)
    for name in set(modules) - {"dp_amplify"}:  # dp_amplify cannot be read without its arguments
        assert isinstance(outcome(db, f"CREATE VIRTUAL TABLE temp.t USING {name}"), str), name
        error = outcome(db, f"SELECT * FROM {name}")
        assert isinstance(error, str) != (name in ours - {"dp_answer", "dp_parts", "dp_span", "dp_table"}), name
        assert name.startswith("pragma_") or error == f"OperationalError: no such table: {name}" or name in ours


JSON = ["SELECT * FROM json_each('[1, \"a\", {\"b\": [2, null]}, 2.5, true]')", "SELECT * FROM json_tree('{\"a\": [1, {\"b\": 2}]}')",
        "SELECT * FROM json_tree('{\"a\": [1, {\"b\": 2}]}', '$.a')", "SELECT rowid, json, root FROM json_each('[1]', '$')",
        "SELECT json_group_array(value) FROM json_each('[[1], {\"a\": 2}, \"x\"]')", "SELECT * FROM json_each('nonsense')",
        "SELECT * FROM json_each('[1]', 'nonsense')", "SELECT * FROM json_each", "SELECT * FROM json_each(NULL)",
        "SELECT a.value, b.value FROM json_each('[[1, 2], [3]]') AS a, json_each(a.value) AS b",
        "SELECT b.value FROM json_each(a.value) AS b JOIN json_each('[[1], [2, 3]]') AS a",
        "SELECT name, value FROM ward LEFT JOIN json_each('[12]') ON beds = value", "SELECT count(*) FROM json_tree('[[[[1]]]]') WHERE atom IS NULL",
        "SELECT value FROM json_each('[3, 1, 2]') ORDER BY value DESC LIMIT 2", "SELECT typeof(value), type FROM json_each('[1, 1.0, \"1\", null]')",
        "SELECT value FROM json_each('[1, 2, 3]') WHERE key IN (0, 2)", "SELECT fullkey FROM json_tree('{\"a b\": [1]}') WHERE path = '$'"]


def test_json_tables_are_as_in_sqlite(copy):
    plain, db = connect(copy), guarded(copy)
    assert [outcome(db, s) for s in JSON] == [outcome(plain, s) for s in JSON]


def test_only_functions_of_sqlite_and_ours_are_allowed(copy):
    db = connect(copy)
    db.create_function("application", -1, lambda *_: "host")
    db.create_function("upper", 1, lambda _: "host")
    db.create_aggregate("total", 1, type("A", (), {"step": lambda *_: None, "finalize": lambda _: "host"}))
    functions = db.execute("SELECT name, min(builtin), max(builtin) FROM pragma_function_list GROUP BY name").fetchall()
    one(db, "SELECT dp_guard('public')")
    planning = {name for name, *_ in functions if name.startswith("dp_")} - {
        call.split("(")[0] for call in [*OWNERS, *AGGREGATES]}
    allowed = set()
    for name, *own in functions:
        quoted = f'"{name}"'
        errors = [outcome(db, f"SELECT {quoted}({','.join(['NULL'] * count)}) FROM ward") for count in range(8)]
        if not all("not authorized" in error or "guarded" in error or "no such" in error or "wrong number" in error
                   or "may not be used" in error or "unsafe use" in error for error in errors if isinstance(error, str)) or not all(
                       isinstance(error, str) for error in errors):
            allowed.add(name)
            assert own == [1, 1] or name in planning, name
    assert not allowed & {"application", "upper", "total", "load_extension", "changes", "total_changes", "last_insert_rowid",
                          "random", "randomblob", "sqlite_log", "sqlite_offset", "fts3_tokenizer", "fts5", "match", "dp_collect"}
    assert {"lower", "count", "sum", "row_number", "substr", "date", "dp_rate", "dp_kernel_delta"} <= allowed
    # Before SQLite 3.38, the guard cannot tell the JSON functions from functions of the application.
    assert ("json_extract" in allowed) == (sqlite3.sqlite_version_info >= (3, 38))
    assert refused(db, "SELECT name FROM ward WHERE name LIKE 'n%' AND upper(name) = 'NORTH'") == "not authorized to use function: upper"


def test_errors_say_what_the_tier_may_do(copy):
    db = guarded(copy)
    for call in OWNERS:
        error = refused(db, "SELECT " + call)
        name = call.split("(")[0]
        assert error == (f"{name}: this connection is guarded for tier 'public' and may not use it (allowed: SELECT from public "
                         "tables and from the tables of this extension, planning)"), call
        assert "clinic" not in error.replace(call, "")


def test_a_table_that_appears_later_is_not_there(copy):
    db, owner = guarded(copy), connect(copy)
    owner.executescript("CREATE TABLE later(x); INSERT INTO later VALUES (1); CREATE TABLE t(x); INSERT INTO t VALUES (2)")
    one(owner, "SELECT dp_public('later')")
    assert refused(db, "SELECT * FROM later") == refused(db, "SELECT count(*) FROM later") == "no such table: later"
    assert one(db, "WITH t AS (SELECT 7 AS x) SELECT count(*) FROM t") == 1
    assert one(guarded(copy), "SELECT * FROM later") == 1


@pytest.mark.parametrize("change", ["DROP TABLE ward", "ALTER TABLE ward ADD COLUMN x", "ALTER TABLE ward RENAME COLUMN beds TO x",
                                    "SELECT dp_protect('ward', 'beds')", "DROP TABLE ward; CREATE VIEW ward AS SELECT patient AS name, minutes AS beds FROM visit",
                                    "DROP TABLE ward; CREATE TABLE ward(name TEXT COLLATE NOCASE PRIMARY KEY, beds INT)"])
def test_a_table_that_has_changed_is_closed(copy, change):
    db, owner = guarded(copy), connect(copy)
    owner.execute("CREATE TABLE aside(x)")
    assert one(db, "SELECT count(*) FROM ward") == 2
    for statement in change.split("; "):
        owner.execute(statement).fetchall()
    for statement in ("SELECT count(*) FROM ward", "SELECT name FROM ward WHERE name = 'north'"):
        assert refused(db, statement) == "ward: the table has changed since dp_guard, or is not public any more (reconnect)"


def test_a_statement_reads_one_state_of_the_file(copy):
    """Another connection commits between two rows of a statement that reads the table twice."""
    connect(copy).execute("PRAGMA journal_mode = WAL").fetchall()
    db, owner = guarded(copy), connect(copy)
    rows = db.execute("SELECT a.name, (SELECT sum(beds) FROM ward) FROM ward AS a ORDER BY a.rowid")
    assert rows.fetchone() == ("north", 42)
    owner.execute("UPDATE ward SET beds = beds + 1")
    assert rows.fetchall() == [("south", 42)]
    assert one(db, "SELECT sum(beds) FROM ward") == 44


USES = ["SELECT * FROM {0}", "SELECT count(*) FROM main.{0}", "SELECT 1 FROM ward JOIN {0} USING (name)", "SELECT name IN {0} FROM ward", "DROP TABLE {0}",
        "INSERT INTO {0} VALUES (1)", "WITH a AS (SELECT * FROM {0}) SELECT 1 FROM a", "SELECT * FROM {0}(1)", "PRAGMA table_info({0})", "EXPLAIN SELECT 1 FROM {0}"]


@pytest.mark.parametrize("extension", [EXTENSION, BARE], ids=["whole", "bare"])
def test_the_name_of_a_declared_table_answers_with_advice(copy, extension):
    """What the name of a table is told depends on the declarations, which dp_column lists, and not on the tables of the file. The advice
    works as it is printed."""
    owner = connect(copy)
    names = {"visit": "protected", "odd \"one's": "protected", "fts5": "protected", "dp_value": "protected", "yard": "public", "json_each": "protected"}
    for name, role in list(names.items())[1:]:
        owner.execute(f'CREATE TABLE main."{name.replace(chr(34), chr(34) * 2)}"(patient INT, name)')
        one(owner, "SELECT dp_protect(?, 'patient')" if role == "protected" else "SELECT dp_public(?)", name)
    owner.execute("DROP TABLE yard")
    one(owner, "SELECT dp_grant('ask', 'public', 3)")
    told = {}
    for drops in ("", 'DROP VIEW visits; DROP TABLE visit; DROP TABLE "odd ""one\'s"; DROP TABLE secret; DROP TABLE fts5'):
        owner.executescript(drops)  # neither the protected nor the undeclared tables exist then
        for options in (None, {"ask": "ask"}):
            guest = guarded(copy, options=options, extension=extension)
            for name in ("visit", "odd \"one's", "yard", "secret", "nowhere"):
                for use in USES:
                    statement = use.format('"' + name.replace('"', '""') + '"')
                    got = outcome(guest, statement)
                    assert told.setdefault((statement, str(options)), got) == got
                    if not use.startswith("PRAGMA"):
                        assert ("no such table" in got) == (name not in names), (statement, got)
            assert refused(guest, "SELECT 1 FROM fts5").startswith("no such table") and one(guest, "SELECT count(*) FROM dp_value") >= 2
            assert refused(guest, "SELECT * FROM yard").startswith("table 'yard' is gone or has changed")
            assert one(guest, "SELECT value FROM json_each('[7]')") == 7
            assert one(guest, "WITH visit(a) AS (SELECT 8) SELECT visit.a FROM visit JOIN ward AS secret") == 8
        if not drops:
            for name in ("visit", "odd \"one's"):
                said = refused(guest, f'SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"')
                advice = re.fullmatch(r"the rows of table '.*' are protected \(ask about them: (.*)\)", said)[1]
                assert "±" in one(guest, advice.replace("mine", name[:3]))


def test_a_statement_from_before_the_guard_is_compiled_again(copy):
    db = connect(copy)
    statement = "WITH w(minutes) AS (VALUES (10)) SELECT w.minutes FROM w JOIN visit USING (minutes)"
    assert len(db.execute(statement).fetchall()) == 8 and one(db, "SELECT sum(beds) FROM ward") == 42
    one(db, "SELECT dp_guard('public')")
    assert refused(db, statement) == ABSENT
    assert one(db, "SELECT sum(beds) FROM ward") == 42


def test_what_a_public_table_shows_is_not_restricted(copy):
    db = guarded(copy)
    assert db.execute("SELECT * FROM ward").fetchall() == [("north", 12), ("south", 30)]
    assert one(db, "SELECT count(*) FROM main.ward") == one(db, "SELECT count(*) FROM ward") == 2
    assert one(db, "SELECT group_concat(value) FROM json_each('[1, 2]')") == "1,2"
    assert one(db, "SELECT sum(beds) OVER (ORDER BY name) FROM ward LIMIT 1") == 12


# ---- what is shown -----------------------------------------------------------------------------------


def differences(one_db, other_db):
    return [(statement, left, right) for statement in READ + REFUSED
            for left, right in [(outcome(one_db, statement), outcome(other_db, statement))] if left != right]


def test_nothing_that_is_shown_depends_on_one_person(published, tmp_path):
    left, right = copy_of(published, tmp_path / "left.db"), copy_of(published, tmp_path / "right.db")
    owner = connect(right)
    owner.execute("DELETE FROM visit WHERE patient = 7")
    owner.execute("INSERT INTO secret(x) VALUES ('more')")
    owner.close()
    assert bytes_of(left)[0] != bytes_of(right)[0]
    for tier in ("public", "region", "clinic"):
        with contextlib.closing(guarded(left, tier)) as a, contextlib.closing(guarded(right, tier)) as b:
            assert mend(differences(a, b), left, right) == []


def test_nothing_that_is_shown_depends_on_inner_activity(published, tmp_path):
    left, right = copy_of(published, tmp_path / "left.db"), copy_of(published, tmp_path / "right.db")
    owner = connect(right)
    release(owner, "clinic", "more")
    release(owner, "clinic", None, "count", clip=3)
    release(owner, "clinic", "total", refine=True)  # this refines a release that the public has seen
    one(owner, "SELECT dp_discard('inner')")
    release(owner, "clinic", "inner")
    owner.execute("SELECT dp_tier('board', 0.09, 20, 1e-6)").fetchall()
    release(owner, "board", "of the board")
    one(owner, "SELECT dp_diffuse('of the board', 'clinic')")
    with pytest.raises(sqlite3.Error):
        release(owner, "clinic", "too heavy", weight=1, kind="sum", clip=-1)
    owner.close()
    assert bytes_of(left)[1] != bytes_of(right)[1]
    with contextlib.closing(guarded(left)) as a, contextlib.closing(guarded(right)) as b:
        assert mend(differences(a, b), left, right) == []
    with contextlib.closing(guarded(left, "clinic")) as a, contextlib.closing(guarded(right, "clinic")) as b:
        assert mend(differences(a, b), left, right) != []  # control: the comparison finds differences at 'clinic'


def test_functions_that_describe_the_build_are_for_all(published, tmp_path):
    with contextlib.closing(guarded(copy_of(published, tmp_path / "a.db"))) as guest:
        assert one(guest, "SELECT dp_version()")


NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def rounded(rows):
    """Returns the rows with only four digits of each number."""
    return [tuple(NUMBER.sub(lambda number: f"{float(number[0]):.4g}", cell) for cell in row) for row in rows]


def test_only_low_digits_show_where_a_release_was_first_drawn(published, tmp_path):
    """Tests what .github/SECURITY.md says under "The lattice of a value". A rowid is a hash of all digits of its row."""
    statements = [s for s in READ if s.startswith("SELECT") and "EXPLAIN" not in s and "value" not in s and "SELECT rowid" not in s] + [
        "SELECT release, tier, key, component, stddev, high - low FROM dp_value"]
    seen, exact = [], []
    for tier in ("public", "region", "clinic"):
        path = copy_of(published, tmp_path / f"{tier}.db")
        owner = connect(path)
        release(owner, tier, "later")
        if tier != "public":
            one(owner, "SELECT dp_diffuse('later', 'public')")
        with contextlib.closing(guarded(path)) as guest:
            outcomes = [(s, outcome(guest, s)) for s in statements]
            seen.append([(s, got if isinstance(got, str) else rounded(got)) for s, got in outcomes])
            exact.append(one(guest, "SELECT rate FROM dp_publication WHERE release = 'later'"))
            value, step = one(guest, "SELECT value FROM dp_value WHERE release = 'later'"), one(
                owner, "SELECT granularity FROM dp_release WHERE name = 'later'")
            assert (value / 2.0**step).is_integer()
        owner.close()
    assert len(set(exact)) == 3  # the low digits differ, as SECURITY.md says
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("change", [
    "UPDATE dp_value SET value = value + 1 WHERE tier = 'clinic'", "UPDATE dp_release SET kind = 'count' WHERE name = 'confidential'",
    "UPDATE dp_charge SET rate = rate * 2 WHERE tier = 'clinic'", "UPDATE dp_budget SET spent_high = 0.1 WHERE tier = 'clinic'",
    "DELETE FROM dp_budget WHERE tier = 'clinic'", "DELETE FROM dp_path WHERE release_id = (SELECT max(id) FROM dp_release)",
    "UPDATE dp_release SET options = 'x' WHERE name = 'confidential'", "DELETE FROM dp_publication WHERE tier = 'clinic'"])
def test_a_damaged_ledger_names_nothing_of_inner_tiers(copy, change):
    owner, guest = connect(copy), guarded(copy)
    release(owner, "clinic", "confidential")
    with contextlib.closing(ledger_of(copy)) as ledger:
        for trigger, _ in ledger.execute(APPEND_ONLY).fetchall():
            ledger.execute(f'DROP TRIGGER "{trigger}"')
        assert edit(ledger, change) > 0
    assert outcome(owner, "SELECT dp_verify()") != [("'ok'",)]
    shown = [outcome(guest, s) for s in ("SELECT dp_report()", "SELECT dp_report('public')", "SELECT dp_certificate()")]
    shown.append(outcome(owner, "SELECT dp_report('public')"))
    shown.append(outcome(owner, f"SELECT dp_export('public', '{copy}.out')"))
    assert '"verify":"ok"' not in str(shown)
    assert all("verif" in str(text) and "confidential" not in str(text) and "clinic" not in str(text) for text in shown), shown


def test_a_tier_sees_its_own_and_outer_publications(copy):
    names = {tier: {row[0] for row in guarded(copy, tier).execute("SELECT release FROM dp_value")}
             for tier in ("public", "region", "clinic")}
    assert names == {"public": {"total", "(unnamed 1)"}, "region": {"total", "(unnamed 1)"},
                     "clinic": {"total", "(unnamed 1)", "inner"}}
    db = guarded(copy, "region")
    assert [row[0] for row in db.execute("SELECT name FROM dp_tier")] == ["region", "public"]
    assert {row[0] for row in db.execute("SELECT DISTINCT tier FROM dp_publication UNION SELECT tier FROM dp_budget"
                                         " UNION SELECT tier FROM dp_rdp UNION SELECT tier FROM dp_charge")} == {"region", "public"}
    owner = connect(copy)
    assert (owner.execute("SELECT value, stddev, low, high FROM dp_value WHERE release = 'total' AND tier = 'public'").fetchall()
            == db.execute("SELECT value, stddev, low, high FROM dp_value WHERE release = 'total'").fetchall())
    assert (owner.execute("SELECT epsilon, spent_epsilon, remaining_epsilon, spent_rate, releases FROM dp_budget WHERE tier <> 'clinic'")
            .fetchall() == db.execute("SELECT epsilon, spent_epsilon, remaining_epsilon, spent_rate, releases FROM dp_budget"
                                      " ORDER BY tier DESC").fetchall())


def test_ids_states_lattices_and_times_are_left_out(copy):
    db = guarded(copy, "region")
    for columns, table in (("id, state, granularity, sensitivity", "dp_release"), ("release_id, clock", "dp_publication"),
                           ("release_id", "dp_value"), ("id, release_id, curve, slack, at, hash", "dp_charge"),
                           ("releases_left", "dp_budget")):
        rows = db.execute(f"SELECT {columns} FROM {table}").fetchall()
        assert rows and all(cell is None for row in rows for cell in row), table
    for column, table in (("created_at", "dp_tier"), ("created_at", "dp_policy"), ("created_at", "dp_release"),
                          ("published_at", "dp_publication")):
        assert all(len(day) == len("2026-01-31") for (day,) in db.execute(f"SELECT {column} FROM {table}"))


def test_the_certificate_is_that_of_the_audience(copy):
    full = json.loads(one(connect(copy), "SELECT dp_certificate()"))
    cut = json.loads(one(guarded(copy, "region"), "SELECT dp_certificate()"))
    assert cut["audience"] == "region" and cut["verify"] == "ok" and cut["ledger"] == full["ledger"]
    assert [t["name"] for t in cut["tiers"]] == ["region", "public"]
    for tier in cut["tiers"]:
        whole = next(t for t in full["tiers"] if t["name"] == tier["name"])
        assert tier == {key: whole[key] for key in tier}
    assert {r["name"] for r in cut["releases"]} == {"total", "(unnamed 1)"}
    for part in cut["releases"]:
        assert {p["tier"] for p in part["publications"]} <= {"region", "public"}
        assert not {"id", "state", "granularity", "sensitivity", "slack", "created_at"} & set(part)
    assert not {"charges", "last_hash", "last_seal"} & set(cut)


# ---- setting the guard -------------------------------------------------------------------------------


def test_the_guard_needs_a_connection_that_is_idle(copy):
    db = connect(copy)
    cursor = db.execute("SELECT * FROM visit")
    cursor.fetchone()
    assert "another statement of this connection is still running" in refused(db, "SELECT dp_guard('public')")
    assert cursor.fetchone() is not None
    cursor.close()
    db.execute("BEGIN")
    assert "open transaction" in refused(db, "SELECT dp_guard('public')")
    db.execute("COMMIT")
    if hasattr(db, "blobopen"):
        with db.blobopen("secret", "x", 1):
            assert "still running" in refused(db, "SELECT dp_guard('public')")
    db.execute("ATTACH ':memory:' AS other")
    assert refused(db, "SELECT dp_guard('public')") == "dp_guard: this connection has attached a database (detach it first)"
    db.execute("DETACH other")
    db.execute("CREATE TEMP VIEW v AS SELECT 1")
    assert "temporary tables, views or triggers" in refused(db, "SELECT dp_guard('public')")
    db.execute("DROP VIEW v")
    assert "reads a table" in refused(db, "SELECT dp_guard('public') FROM ward")
    assert "reads a table" in refused(db, "SELECT dp_guard(name) FROM dp_tier")
    db.execute("PRAGMA locking_mode = exclusive").fetchall()
    assert "locks the file" in refused(db, "SELECT dp_guard('public')")
    db.execute("PRAGMA locking_mode = normal").fetchall()
    assert one(db, "SELECT count(*) FROM visit") == 400  # not guarded yet
    assert one(db, "SELECT dp_guard('public')") == "public"
    assert refused(db, "SELECT count(*) FROM visit") == ABSENT  # Python compiled this statement before dp_guard()


def test_the_same_guard_again_changes_nothing(copy):
    one(connect(copy), "SELECT dp_grant('g', 'public', 2)")
    for options, same in ((None, "NULL"), ('{"ask":"g"}', "' {\"ask\" : \"g\"} '")):
        db = connect(copy)
        one(db, "SELECT dp_guard('public', ?)", options)
        before = [outcome(db, statement) for statement in READ]
        db.execute("BEGIN")
        assert one(db, f"SELECT dp_guard('public', {same})") == "public"
        for call in ("'clinic'", "'public', '{\"ask\":\"other\"}'", f"'public', {'NULL' if options else same.replace('NULL', repr('{}'))[:-1]}"):
            if call != "'public', '{}":
                assert "is guarded for tier 'public'" in refused(db, f"SELECT dp_guard({call})") and db.in_transaction
        assert "unknown option" in refused(db, "SELECT dp_guard('public', '{\"schema\":true}')")
        assert [outcome(db, statement) for statement in READ] == before


def test_transactions_change_nothing(copy):
    """Each statement sees the newest state of the file, and an open transaction keeps no lock on it. A question that was charged
    stays charged after ROLLBACK."""
    owner = connect(copy, timeout=0)
    one(owner, "SELECT dp_grant('g', 'public', 2)")
    beds = "SELECT sum(beds) FROM ward"
    for begin, end in (("BEGIN", "COMMIT"), ("BEGIN", "ROLLBACK"), ("SAVEPOINT a", "RELEASE a"), ("SAVEPOINT a", "ROLLBACK TO a")):
        db = guarded(copy, options={"ask": "g"})
        db.execute(begin)
        before = one(db, beds)
        owner.execute("UPDATE ward SET beds = beds + 1 WHERE name = 'north'")  # not locked
        assert one(db, beds) == before + 1
        owner.execute("VACUUM")
        db.execute(end)
        assert one(db, beds) == before + 1
        if end == "ROLLBACK":
            db.execute("BEGIN")
            assert one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"a\",\"clip\":5}')") is not None
            db.execute("ROLLBACK")
            assert owner.execute("SELECT grant_name FROM dp_charge WHERE release = 'g/a'").fetchall()[0] == ("g",)
            assert one(db, "SELECT count(*) FROM dp_value WHERE release = 'g/a'") == 1
        db.execute("ROLLBACK") if db.in_transaction else None
        for statement in ("BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"):
            assert refused(db, statement) == "attempt to write a readonly database"
        db.close()
    assert one(owner, "PRAGMA integrity_check") == "ok"


def test_a_refusal_leaves_the_connection_as_it_was(copy):
    """The authorizer of the application prevents the replacement of main, the last step that can fail."""
    db, seen = connect(copy), []
    assert one(db, "SELECT count(*) FROM dp_tier") == 3  # also corrects the path in the marker of the copy

    def authorizer(action, *rest):
        seen.append(action)
        return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK
    db.set_authorizer(authorizer)
    before = bytes_of(copy)
    assert "SQLite cannot replace main" in refused(db, "SELECT dp_guard('public')")
    seen.clear()
    assert one(db, "SELECT count(*) FROM visit") == 400 and seen
    assert db.execute("SELECT name FROM dp_tier").fetchall() == [("clinic",), ("region",), ("public",)]
    assert bytes_of(copy) == before


def test_arguments_of_the_guard(copy):
    db = connect(copy)
    assert "unknown tier" in refused(db, "SELECT dp_guard('nobody')")
    assert "tier must be a text" in refused(db, "SELECT dp_guard(NULL)")
    assert refused(db, "SELECT dp_guard('public', '{\"schema\":true}')") == "dp_guard: unknown option 'schema' (known options: ask)"
    assert "no privacy ledger" in refused(connect(), "SELECT dp_guard('public')")
    memory = connect()
    for call in ("init()", "tier('public', 0.002, 3.0, 1e-6)"):
        one(memory, "SELECT dp_" + call)
    assert "main is not a file" in refused(memory, "SELECT dp_guard('public')")
    assert one(memory, "SELECT count(*) FROM dp_tier") == 1
    assert db.execute("SELECT count(*) FROM dp_tier").fetchall() == [(3,)]  # still the owner's connection, after these failures
    assert one(db, "SELECT dp_guard('public')") == "public"


def test_the_authorizer_is_a_second_line(copy):
    """Each statement runs without the authorizer, which the application has removed, or replaced by one that allows everything."""
    for authorizer in (None, lambda *_: sqlite3.SQLITE_OK):
        db = connect(copy, cached_statements=5000)
        one(db, "SELECT dp_guard('public')")
        for statement in REFUSED[:200]:
            outcome(db, statement)
        db.set_authorizer(authorizer)
        rows = [outcome(db, s) for s in REFUSED if "visit" in s or "secret" in s or "other" in s or "ATTACH" in s or "VACUUM" in s]
        assert len(rows) > 400
        assert not any("hidden" in str(row) or "59" in str(row) for row in rows if not isinstance(row, str))
        assert refused(db, "ATTACH ? AS a", str(copy)) == "too many attached databases - max 0"
        assert isinstance(outcome(db, f"VACUUM INTO '{copy}.out'"), str) and not pathlib.Path(f"{copy}.out").exists()
        assert "not authorized" in refused(db, "SELECT load_extension(?)", EXTENSION)
        assert one(db, "SELECT count(*) FROM main.ward") == 2 and one(db, "SELECT count(*) FROM dp_tier") == 1


@pytest.mark.parametrize("authorizer", [None, lambda *_: sqlite3.SQLITE_OK])
def test_what_the_authorizer_refuses_its_function_refuses_too(copy, authorizer):
    """Every function of the extension that is refused runs without the authorizer, on rows of several types. A state is
    public text, so a guest could make one, and dp_merge() would return an inner release of the same question."""
    owner = connect(copy)
    state = one(owner, "SELECT dp_partial('sum', 'SELECT minutes FROM visit', '{\"clip\":100}')")
    one(owner, "SELECT dp_merge('clinic', dp_states(?), 'merged')", state)
    books = owner.execute("SELECT * FROM dp_charge").fetchall()
    db = guarded(copy)
    functions = owner.execute("SELECT DISTINCT name, narg FROM pragma_function_list WHERE name LIKE 'dp\\_%' ESCAPE '\\'").fetchall()
    tuples = [["clinic", state, "merged", 1, 1, 1, 1, 1], ["clinic", state, "new", "{}", 1, 1, 1, 1], ["public", 1, 5, "north", None, None, None, None],
              [None] * 8, ["clinic", "north", 1, 2, 3, 4, 5, 6]]
    refused_calls = []
    for name, count in functions:
        for arity in [count] if count >= 0 else range(8):
            call = f"SELECT {name}({', '.join(['?'] * arity)}) FROM ward"
            if any(words in outcome(db, call.replace("?", "NULL")) for words in ("not authorized", "and may not use it")):
                refused_calls.append((name, call, arity))
    assert {"dp_merge", "dp_sum", "dp_ou_group_avg", "dp_collect", "dp_partial"} <= {name for name, *_ in refused_calls}
    innocuous = {name for name, in owner.execute("SELECT DISTINCT name FROM pragma_function_list WHERE name LIKE 'dp\\_%' ESCAPE '\\' AND flags & 0x200000")}
    assert len(innocuous) > 40 and not innocuous & {name for name, *_ in refused_calls}
    db.set_authorizer(authorizer)
    for name, call, arity in refused_calls:
        for values in tuples:
            with pytest.raises(sqlite3.Error, match="this connection is guarded for tier 'public' and may not use it|dp_collect: for dp_release"):
                db.execute(call, (values * 3)[:arity]).fetchall()
    assert owner.execute("SELECT * FROM dp_charge").fetchall() == books


@pytest.mark.parametrize("extension", [EXTENSION, BARE], ids=["whole", "bare"])
def test_interfaces_of_the_host_find_only_public_tables(copy, extension, tmp_path):
    """Not a promise, because the person at a guarded connection sends only SQL: what backups, dumps and blobs would show."""
    db, path = guarded(copy, extension=extension), tmp_path / "out.db"
    with contextlib.closing(sqlite3.connect(path)) as target:
        with contextlib.suppress(sqlite3.Error):
            db.backup(target)
    seen = path.read_bytes() + db.serialize() if hasattr(db, "serialize") else path.read_bytes()
    with contextlib.suppress(sqlite3.Error):
        seen += "".join(db.iterdump()).encode()
    assert b"ward" in seen and not any(name in seen for name in (b"visit", b"secret", b"hidden", b"dp_ledger_id"))
    for table, column in (("visit", "minutes"), ("secret", "x"), ("ward", "beds")):
        if hasattr(db, "blobopen"):
            with pytest.raises(sqlite3.Error):
                db.blobopen(table, column, 1, readonly=True)


CHANGES_BETWEEN_ROWS = ["DROP TABLE ward", "ALTER TABLE ward RENAME TO yard; CREATE TABLE ward AS SELECT patient AS name, minutes AS beds FROM visit",
                        "ALTER TABLE ward ADD COLUMN x DEFAULT 'hidden'", "SELECT dp_protect('ward', 'beds')", "DELETE FROM ward; INSERT INTO ward VALUES ('hidden', 59)"]


@pytest.mark.parametrize("extension", [EXTENSION, BARE], ids=["whole", "bare"])
@pytest.mark.parametrize("change", CHANGES_BETWEEN_ROWS)
def test_a_change_between_two_rows(copy, extension, change):
    """A statement that is between rows, and others that begin meanwhile, read the state of before. Those that begin later read a table
    only if it still is public and has the same columns."""
    owner = connect(copy)
    owner.execute("PRAGMA journal_mode = wal").fetchall()  # otherwise the owner waits for the end of the statement
    db = guarded(copy, extension=extension)
    before = db.execute("SELECT * FROM ward").fetchall()
    rows = db.execute("SELECT * FROM ward")
    first = rows.fetchone()
    for statement in change.split("; "):
        owner.execute(statement).fetchall()
    meanwhile = db.execute("SELECT * FROM ward").fetchall()
    assert [first, *rows.fetchall()] == before == meanwhile
    rows.close()
    if change.startswith("DELETE"):
        assert db.execute("SELECT * FROM ward").fetchall() == [("hidden", 59)]
    else:
        assert refused(db, "SELECT * FROM ward") == ("ward: the table has changed since dp_guard, or is not public any more (reconnect)")


def test_a_guarded_connection_in_another_thread(copy):
    db, errors = guarded(copy), []
    threads = [threading.Thread(target=lambda: errors.append(outcome(db, "SELECT * FROM visit"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [f"OperationalError: {ABSENT}"] * 4


@pytest.mark.parametrize("how", ["mode=ro", "immutable=1"])
def test_a_read_only_connection_can_be_guarded(copy, how):
    db = guarded(f"file:{copy}?{how}", uri=True)
    assert {row[0] for row in db.execute("SELECT release FROM dp_value")} == {"total", "(unnamed 1)"}
    assert one(db, "SELECT count(*) FROM ward") == 2
    assert refused(db, "SELECT count(*) FROM visit") == ABSENT


# ---- other versions of SQLite --------------------------------------------------------------------------

HOSTS = pathlib.Path(__file__).parent.parent.parent / "build" / "hosts" / "python" / "apsw"
STORY = """
import sys
sys.path[:0] = sys.argv[1], sys.argv[2]
import apsw
from guard_statements import READ, REFUSED, SCHEMA, TABLES

def connect():
    db = apsw.Connection(sys.argv[4])
    db.enableloadextension(True)
    db.loadextension(sys.argv[3])
    return db

def rows(db, sql):
    return db.cursor().execute(sql).fetchall()

def must_fail(db, statement):
    try:
        got = rows(db, statement)
    except apsw.Error:
        return
    raise AssertionError((statement, got))

db = connect()
rows(db, SCHEMA)
for call in ("init()", "protect('visit', 'patient')", "public('ward')", "tier('clinic', 0.04, 8.0, 1e-6)",
             "tier('public', 0.002, 3.0, 1e-6)", "grant('visitors', 'public', 0.5)",
             "release('public', 'sum', 'SELECT minutes FROM visit', '{\\"name\\":\\"total\\",\\"clip\\":9}')",
             "release('clinic', 'sum', 'SELECT minutes FROM visit', '{\\"name\\":\\"inner\\",\\"clip\\":9}')"):
    rows(db, "SELECT dp_" + call)
pragmas = [name for name, in rows(db, "SELECT name FROM pragma_pragma_list")]
modules = [name for name, in rows(db, "SELECT name FROM pragma_module_list")]
functions = [name for name, in rows(db, "SELECT DISTINCT name FROM pragma_function_list WHERE builtin = 0 AND name NOT LIKE 'dp%'")]
db = connect()
rows(db, "SELECT dp_guard('public')")
for statement in REFUSED:
    must_fail(db, statement)
for name in set(pragmas) - {"database_list", "foreign_key_list", "index_info", "index_list", "index_xinfo", "schema_version", "table_info",
                            "table_list", "table_xinfo"}:
    must_fail(db, f"PRAGMA {name}"), must_fail(db, f"PRAGMA {name} = 1"), must_fail(db, f"SELECT * FROM pragma_{name}")
for name in set(modules) - {*TABLES, "json_each", "json_tree"}:
    must_fail(db, f"SELECT * FROM {name}")
for name in functions:
    for count in range(5):
        if not name.startswith(("json", "->")):
            must_fail(db, f'SELECT "{name}"({",".join(["NULL"] * count)}) FROM ward')
assert len(rows(db, "SELECT * FROM ward")) == 2 and rows(db, "SELECT release FROM dp_value") == [("total",)]
assert rows(db, "SELECT count(*) FROM ward") == [(2,)] and rows(db, "SELECT value FROM json_each('[7]')") == [(7,)]
db.setauthorizer(None)
for statement in REFUSED:
    if "FROM visit" in statement or "secret" in statement:
        must_fail(db, statement)
db = connect()
rows(db, "SELECT dp_guard('public', '{\\"ask\\":\\"visitors\\"}')")
assert rows(db, "SELECT release FROM dp_answer('public', 'count', 'SELECT 1 FROM visit', '{\\"name\\":\\"n\\",\\"clip\\":2}')") == [("visitors/n",)]
print(apsw.sqlitelibversion(), len(REFUSED), len(pragmas), len(modules))
"""


@pytest.mark.plain  # the hosts have their own runtimes, which do not work with a sanitizer
@pytest.mark.parametrize("version", ["3.39.4.0", "3.42.0.1", "3.46.1.0", "newest"])
def test_other_versions_of_sqlite_refuse_the_same(version, path):
    if not (HOSTS / version / ".done").exists():
        pytest.skip("no apsw in build/hosts (make deps-hosts)")
    subprocess.run([sys.executable, "-c", STORY, str(HOSTS / version), str(HELPERS), EXTENSION, str(path)],
                   check=True, timeout=PATIENCE)
