"""Tests the declarations by dp_protect() and dp_public() and the table dp_policy."""

import json
import random
import re

import pytest

from conftest import connect, one, refused
from kinds_reference import KINDS, aggregate, by_query
from kinds_tables import PARAMETERS


@pytest.fixture
def clinic(path):
    db = connect(path)
    db.create_collation("odd", lambda a, b: (a > b) - (a < b))
    db.executescript("""
        CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, ward TEXT, minutes REAL, twice AS (minutes * 2));
        CREATE TABLE exam(visit INT, result REAL);
        CREATE TABLE ward(name TEXT PRIMARY KEY, beds INT) WITHOUT ROWID;
        CREATE TABLE pair(a INT, b INT, PRIMARY KEY (a, b));
        CREATE TABLE coded(code TEXT, other INT, PRIMARY KEY (code, other));
        CREATE UNIQUE INDEX coded_code ON coded(code);
        CREATE TABLE named(patient TEXT);
        CREATE VIEW busy AS SELECT * FROM visit;
        CREATE TABLE odd(x TEXT COLLATE odd, patient INT);
    """)
    db.execute("SELECT dp_init()")
    yield db
    db.close()


def declared(db):
    return db.execute("SELECT table_name, role, unit_column, parent FROM dp_policy").fetchall()


def test_declarations_are_listed_in_their_order(clinic):
    assert one(clinic, "SELECT dp_protect('visit', 'patient')") == "visit"
    assert one(clinic, "SELECT dp_protect('exam', 'visit', 'visit')") == "exam"
    assert one(clinic, "SELECT dp_public('ward', 'pair')") == "ward"
    assert declared(clinic) == [("visit", "protected", "patient", None), ("exam", "protected", "visit", "visit"),
                                ("ward", "public", None, None), ("pair", "public", None, None)]
    assert one(clinic, "SELECT min(created_at LIKE '____-__-__T%Z') FROM dp_policy") == 1
    assert one(clinic, "SELECT dp_verify()") == "ok"
    certificate = json.loads(one(clinic, "SELECT dp_certificate()"))
    assert {p["table_name"]: p["role"] for p in certificate["policy"]} == {
        "visit": "protected", "exam": "protected", "ward": "public", "pair": "public"}


def test_the_same_again_changes_nothing(clinic):
    one(clinic, "SELECT dp_protect('visit', 'patient')")
    before = clinic.execute("SELECT * FROM dp_policy").fetchall()
    one(clinic, "SELECT dp_protect('VISIT', 'Patient')")
    assert clinic.execute("SELECT * FROM dp_policy").fetchall() == before


def test_a_declaration_only_becomes_stricter(clinic):
    one(clinic, "SELECT dp_public('exam', 'visit')")
    one(clinic, "SELECT dp_protect('visit', 'patient')")
    one(clinic, "SELECT dp_protect('exam', 'visit', 'visit')")
    before = declared(clinic)
    for loosened in ("dp_public('visit')", "dp_protect('visit', 'id')", "dp_protect('exam', 'visit')"):
        assert "cannot be loosened or changed" in refused(clinic, f"SELECT {loosened}")
    assert declared(clinic) == before == [("exam", "protected", "visit", "visit"), ("visit", "protected", "patient", None)]


@pytest.mark.parametrize("call, reason", [
    ("dp_protect('busy', 'patient')", "is a view"),
    ("dp_protect('nowhere', 'patient')", "main has no such table"),
    ("dp_protect('visit', 'rowid')", "table 'visit' has no column 'rowid'"),
    ("dp_protect('visit', 'twice')", "generated when it is read"),
    ("dp_protect('visit')", "protects units: name the column"),
    ("dp_protect('visit', NULL)", "column must be a text"),
    ("dp_protect('exam', 'visit', NULL)", "parent must be a text"),
    ("dp_protect('exam', 'visit', 'visit')", "the parent is not protected yet"),
    ("dp_protect('visit', 'patient', 'visit')", "its own parent"),
    ("dp_protect('odd', 'patient')", "has the collation 'odd'"),
    ("dp_public('odd')", "has the collation 'odd'"),
    ("dp_protect('dp_ledger_id', 'id')", "no table for questions"),
    ("dp_public('sqlite_master')", "main has no such table"),
    ("dp_public()", "names of 1 to 100 tables"),
    ("dp_public('ward', 'nowhere')", "main has no such table"),
    ("dp_protect('passing', 'patient')", "main has no such table 'passing' (if a declared table was renamed, declare it under its new name;"
     " temporary and attached tables cannot be declared)"),
])
def test_what_cannot_be_declared(clinic, call, reason):
    clinic.execute("CREATE TEMP TABLE passing(patient INT)")
    assert reason in refused(clinic, f"SELECT {call}")
    assert declared(clinic) == []


def test_a_parent_needs_a_key_of_one_column(clinic):
    one(clinic, "SELECT dp_protect('pair', 'a')")
    assert "has no key" in refused(clinic, "SELECT dp_protect('exam', 'visit', 'pair')")
    one(clinic, "SELECT dp_protect('coded', 'other')")
    one(clinic, "SELECT dp_protect('exam', 'visit', 'coded')")
    clinic.execute("CREATE TABLE two(a INT UNIQUE, b INT UNIQUE, patient INT)")
    one(clinic, "SELECT dp_protect('two', 'patient')")
    clinic.execute("CREATE TABLE child(two INT)")
    assert "has no key" in refused(clinic, "SELECT dp_protect('child', 'two', 'two')")


@pytest.mark.parametrize("column,index", [("BINARY", "NOCASE"), ("NOCASE", "BINARY"), ("BINARY", "RTRIM")])
def test_a_unique_index_of_another_collation_is_no_key(clinic, column, index):
    """SQLite accepts no foreign key to such a column either. An index of the column's own collation is one."""
    clinic.executescript(f"CREATE TABLE folder(code TEXT COLLATE {column}, patient INT); CREATE TABLE sheet(folder TEXT COLLATE {column});"
                         f"CREATE UNIQUE INDEX i ON folder(code COLLATE {index})")
    one(clinic, "SELECT dp_protect('folder', 'patient')")
    assert "has no key" in refused(clinic, "SELECT dp_protect('sheet', 'folder', 'folder')")
    clinic.execute("CREATE UNIQUE INDEX j ON folder(code)")
    one(clinic, "SELECT dp_protect('sheet', 'folder', 'folder')")


def test_units_that_compare_differently_are_refused(clinic):
    one(clinic, "SELECT dp_protect('visit', 'patient')")
    message = refused(clinic, "SELECT dp_protect('named', 'patient')")
    assert "visit.patient (INT, BINARY)" in message and "named.patient (TEXT, BINARY)" in message
    clinic.execute("CREATE TABLE folded(patient INT COLLATE NOCASE)")
    assert "(INT, NOCASE)" in refused(clinic, "SELECT dp_protect('folded', 'patient')")


def test_rows_as_units(path):
    db = connect(path)
    db.execute("CREATE TABLE visit(patient INT)")
    one(db, """SELECT dp_init('{"protects":"row"}')""")
    assert "each row is a unit" in refused(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_protect('visit')")
    assert declared(db) == [("visit", "protected", None, None)]


def every_release(by_unit, replace):
    """Yields a call of every function that makes a release. The calls are SQL over the table t(unit, x, k, v)."""
    for kind in KINDS:
        if kind.endswith("count_distinct") and not by_unit:
            continue
        call, arguments = aggregate(kind, PARAMETERS[kind][0], "clinic")
        yield f"SELECT {call} FROM t", arguments
        sql, arguments = by_query(kind, PARAMETERS[kind][0], "clinic")
        yield sql, arguments
        yield sql.replace("SELECT dp_release(", "SELECT * FROM dp_answer("), arguments[:-1] + [
            json.dumps({"name": "rows of " + kind, **PARAMETERS[kind][0]})]
    yield "SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":1,\"shard\":\"north\"}')", []
    kernel = '[["a","a",0.7],["a","b",0.3],["b","b",0.7],["b","a",0.3]]'
    yield "SELECT dp_choice('clinic', k, '[\"a\",\"b\"]') FROM t", []
    if not replace:  # responses and models need the adjacency "replace"
        return
    yield "SELECT dp_release('clinic', 'response_count', 'SELECT k FROM t', ?)", ['{"kernel":%s,"n":1,"otherwise":"a"}' % json.dumps(kernel)]
    yield "SELECT dp_release('clinic', 'sgd', 'SELECT x, v FROM t', '{\"loss\":\"logistic\",\"dim\":3,\"n\":1,\"clip\":1,\"radius\":1}')", []


@pytest.mark.parametrize("protects, adjacency", [("unit", "add-remove"), ("row", "add-remove"), ("row", "replace")])
def test_without_a_protected_table_nothing_is_released_or_charged(path, protects, adjacency):
    terms = {"protects": protects, "adjacency": adjacency}
    asks = list(every_release(protects == "unit", adjacency == "replace"))
    db = connect(path)
    db.executescript("""
        CREATE TABLE t(unit INT, x REAL, k TEXT, v TEXT);
        CREATE TABLE ward(name TEXT);
        INSERT INTO t VALUES (1, 0.5, 'a', '[1,2,3]');
    """)
    db.execute("SELECT dp_init(?)", (json.dumps(terms),))
    db.execute("SELECT dp_tier('clinic', 1, 1e6, 1e-6)")
    column = ", 'patient_id'" if protects == "unit" else ""
    for declare in (None, "SELECT dp_public('ward')"):
        if declare:
            one(db, declare)
        for sql, arguments in asks:
            message = refused(db, sql, *arguments)
            assert message.endswith(f": no table is protected yet: SELECT dp_protect('visit'{column})"), (sql, message)
            assert message.startswith("dp_")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0 == one(db, "SELECT count(*) FROM dp_release")
    assert one(db, "SELECT dp_verify()") == "ok"
    one(db, "SELECT dp_protect('t', 'unit')" if protects == "unit" else "SELECT dp_protect('t')")
    for sql, arguments in asks:  # the same calls succeed
        db.execute(sql, arguments).fetchall()


@pytest.mark.parametrize("ask", [
    "dp_sum('clinic', minutes, 10, patient) FROM visit",
    "dp_release('clinic', 'sum', 'SELECT minutes, patient FROM visit', '{\"clip\":10}')",
    "dp_merge('clinic', dp_states(s)) FROM (SELECT dp_partial('sum', minutes, patient, '{\"clip\":10}') AS s FROM visit)",
])
def test_what_names_its_own_units_is_refused_before_any_charge(clinic, ask):
    clinic.execute("SELECT dp_tier('clinic', 0.004, 8, 1e-6)")
    clinic.execute("INSERT INTO visit VALUES (1, 1, 'a', 2)")
    one(clinic, "SELECT dp_protect('visit', 'patient')")
    refused(clinic, "SELECT " + ask)
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0 == one(clinic, "SELECT count(*) FROM dp_release")


# ---- the schema changes -----------------------------------------------------------------------------


@pytest.fixture
def linked(path):
    db = connect(path)
    db.executescript("""
        CREATE TABLE member(id INTEGER PRIMARY KEY); CREATE TABLE visit(id INTEGER PRIMARY KEY, member INT, ward INT);
        CREATE TABLE exam(visit INT, result REAL);
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO visit SELECT i, i / 10, i % 3 FROM n;
        INSERT INTO member SELECT DISTINCT member FROM visit; INSERT INTO exam SELECT id, 1 FROM visit;
        SELECT dp_init('{"unit":"member"}'), dp_protect('visit', 'member'), dp_protect('exam', 'visit', 'visit');
        SELECT dp_tier('inner', 1e6, 1e9, 1e-6);""")
    return db


def people(db, table, name):
    """Returns the number of units with a row in a table, with almost no noise."""
    return round(one(db, "SELECT dp_release('inner', 'count_distinct', ?, ?)", f"SELECT 1 FROM {table}", name))


def test_a_declaration_follows_a_renamed_column(linked):
    assert people(linked, "exam", "a") == 100
    linked.execute("ALTER TABLE visit RENAME COLUMN member TO person")
    wanted = ("table 'visit' has no column 'member' (if the declared column was renamed, declare the table again:"
              " dp_protect('visit', 'its new name'))")
    for table in ("visit", "exam"):
        assert wanted in refused(linked, "SELECT dp_release('inner', 'count_distinct', ?, 'b')", f"SELECT 1 FROM {table}")
    assert "cannot be loosened or changed" in refused(linked, "SELECT dp_public('visit')")
    one(linked, "SELECT dp_protect('visit', 'person')")
    assert people(linked, "exam", "b") == people(linked, "visit", "c") == 100
    assert "cannot be loosened or changed" in refused(linked, "SELECT dp_protect('visit', 'id')")  # the column is there
    assert one(linked, "SELECT dp_verify()") == "ok"
    assert one(linked, "SELECT unit_column FROM dp_policy WHERE table_name = 'visit'") == "person"


def test_declarations_follow_a_renamed_table(linked):
    linked.execute("ALTER TABLE visit RENAME TO stay")
    assert ("main has no such table: 'visit' (if it was renamed, declare it under its new name)"
            in refused(linked, "SELECT dp_release('inner', 'count_distinct', 'SELECT 1 FROM exam', 'a')"))
    assert "table 'stay' is neither protected nor public" in refused(linked, "SELECT dp_release('inner', 'count', 'SELECT 1 FROM stay', '{\"name\":\"a\",\"clip\":1}')")
    assert ("table 'stay' has the column 'member' of the protected table 'visit', which is gone (if it is the same table, protect it;"
            " otherwise rename the column)") in refused(linked, "SELECT dp_public('stay')")
    for loosened in ("dp_protect('exam', 'visit')", "dp_protect('exam', 'result', 'member')", "dp_public('exam')"):
        refused(linked, f"SELECT {loosened}")
    one(linked, "SELECT dp_protect('stay', 'member')")
    one(linked, "SELECT dp_protect('exam', 'visit', 'stay')")
    assert people(linked, "exam", "a") == people(linked, "stay", "b") == 100
    linked.execute("CREATE VIEW visit AS SELECT * FROM stay")
    assert ("'visit' is a view (declare the tables that it reads; where it has the name of a declared table that was renamed, give it another one)"
            in refused(linked, "SELECT dp_release('inner', 'count', 'SELECT 1 FROM visit', '{\"name\":\"v\",\"clip\":1}')"))
    linked.execute("DROP VIEW visit")
    linked.execute("CREATE TABLE ward(member INT)")  # the renamed table is protected, so this one is another
    one(linked, "SELECT dp_public('ward')")
    assert one(linked, "SELECT dp_verify()") == "ok"


def test_a_link_never_becomes_the_unit_itself(linked):
    """If the column of a linked table is renamed, the table stays linked. A row of the parent must not become the unit."""
    linked.execute("ALTER TABLE exam RENAME COLUMN visit TO stay")
    assert "cannot be loosened or changed" in refused(linked, "SELECT dp_protect('exam', 'stay')")
    one(linked, "SELECT dp_protect('exam', 'stay', 'visit')")
    assert people(linked, "exam", "a") == 100


def test_a_table_that_is_made_again_keeps_its_declaration(linked):
    linked.executescript("DROP TABLE visit; CREATE TABLE visit(id INTEGER PRIMARY KEY, member INT); INSERT INTO visit VALUES (1, 1), (2, 1)")
    assert people(linked, "visit", "a") == 1
    linked.executescript("DROP TABLE visit; CREATE TABLE visit(id INTEGER PRIMARY KEY, who INT); INSERT INTO visit VALUES (1, 1), (2, 1)")
    assert "cannot be loosened or changed" in refused(linked, "SELECT dp_public('visit')")
    one(linked, "SELECT dp_protect('visit', 'who')")
    assert people(linked, "visit", "b") == 1


def test_a_unit_of_several_columns_gets_advice_that_works():
    """Whatever the names and however the two columns are written, the error has the statements that make one column of them."""
    random_of = random.Random(4)
    for number in range(40):
        db, names = connect(), random_of.sample(["first", "last", "born at", "Nr", 'a"b', "größe", "key", "x1"], 3)
        table, quoted = f"people {number}", [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names]
        db.execute(f'CREATE TABLE "{table}"({", ".join(quoted)})')
        db.executemany(f'INSERT INTO "{table}" VALUES (?, ?, ?)', [(i % 3, "a" if i % 2 else "b", i) for i in range(24)])
        one(db, "SELECT dp_init()")
        arguments = ([table, names[0], names[1]] if random_of.random() < 0.3 or " " in names[0] + names[1] else
                     [table, names[0] + random_of.choice([",", ", ", " || ", "||", " + "]) + names[1]])
        error = refused(db, f"SELECT dp_protect({', '.join('?' * len(arguments))})", *arguments)
        for statement in re.search(r"make one of them: (.*)\)$", error)[1].split("; "):
            db.execute(statement)
        assert one(db, "SELECT dp_protect(?, 'unit')", table) == table
        assert one(db, f'SELECT count(DISTINCT unit) FROM "{table}"') == 6 and one(db, f'SELECT count(*) FROM "{table}" WHERE unit IS NULL') == 0


def test_a_column_without_a_name_gets_advice_that_works():
    db = connect()
    db.execute('CREATE TABLE r("" TEXT, x)')
    one(db, "SELECT dp_init()")
    error = refused(db, "SELECT dp_protect('r', '')")
    db.execute(re.search(r"rename it: (.*)\)", error)[1].replace("…", "r"))
    assert one(db, "SELECT dp_protect('r', 'id')") == "r"
