"""Declarations are compared with the foreign keys of the schema, follow from them (dp_policy_plan), and can be taken back before the
first charge (dp_undeclare)."""

import itertools
import re
import sqlite3

import pytest

from conftest import connect, one, refused

SCHEMA = """
    CREATE TABLE member(id INTEGER PRIMARY KEY, age INT, code TEXT UNIQUE, invited_by INT REFERENCES member(id), club_id INT REFERENCES club);
    CREATE TABLE club(id INTEGER PRIMARY KEY, head_id INT REFERENCES member);
    CREATE TABLE station(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE rental(id INTEGER PRIMARY KEY, member_id INT REFERENCES member(id), station_id INT REFERENCES station, minutes REAL);
    CREATE TABLE ticket(id INTEGER PRIMARY KEY, rental_id INT REFERENCES rental(id), member_id INT, amount REAL);
    CREATE TABLE photo(id INTEGER PRIMARY KEY, ticket_id INT REFERENCES ticket(id), file);
    CREATE TABLE card(no TEXT PRIMARY KEY, member_code TEXT REFERENCES member(code));
    CREATE TABLE message(sender INT REFERENCES member, receiver INT REFERENCES member, text);
    CREATE TABLE pair(a INT, b INT, FOREIGN KEY (a, b) REFERENCES two(a, b));
    CREATE TABLE two(a INT, b INT, member_id INT REFERENCES member, PRIMARY KEY (a, b));
    CREATE TABLE self(id INTEGER PRIMARY KEY, up INT REFERENCES self);
    CREATE TABLE lost(id INTEGER PRIMARY KEY, x INT REFERENCES nowhere);
"""


def bikes(unit="member"):
    db = connect()
    db.executescript(SCHEMA)
    one(db, "SELECT dp_init(?)", "{}" if unit is None else '{"unit":"%s"}' % unit)
    return db


def declare(db, *calls):
    for call in calls:
        one(db, f"SELECT dp_{call}")


RENTAL, TICKET = "protect('rental', 'member_id')", "protect('ticket', 'rental_id', 'rental')"
CLUB = "protect('club', 'head_id')"

# declarations before, the declaration, parts of its error. Every declaration that the error names is tried, too.
REFUSED = [
    ([RENTAL], "protect('ticket', 'rental_id')", "column 'rental_id' of table 'ticket' is no unit, because it refers to table 'rental'"),
    ([RENTAL, TICKET], "protect('photo', 'ticket_id')", "refers to table 'ticket', whose rows belong to units"),
    ([], "protect('ticket', 'rental_id')", "from which a foreign key leads to units (protect that table first, then dp_protect('ticket', "),
    ([], "protect('rental', 'id')", "column 'id' is the key of table 'rental', so that each row would be a unit, but the table refers to 'member'"),
    ([], "PROTECT('RENTAL', 'ID')", "(dp_protect('rental', 'member_id'))"),
    (["protect('member', 'id')"], "protect('rental', 'id')", "(dp_protect('rental', 'member_id', 'member'))"),
    ([RENTAL], "protect('ticket', 'id')", "(dp_protect('ticket', 'rental_id', 'rental'))"),
    ([RENTAL, TICKET], "protect('photo', 'ticket_id', 'rental')", "refers to 'ticket', not to 'rental' (dp_protect('photo', 'ticket_id', 'ticket'))"),
    (["protect('member', 'id')"], "protect('card', 'member_code', 'member')", "refers to member.code, but a link needs the key member.id"),
    (["protect('member', 'age')"], "protect('message', 'sender')", "(dp_protect('message', 'sender', 'member'))"),
    ([], "public('rental')", "table 'rental' cannot be public, because it refers to table 'member', whose rows belong to units"),
    ([], "public('station', 'club')", "table 'club' cannot be public"),
    ([], "public('photo')", "(protect 'ticket' first, then 'photo')"),
    ([], "public('pair')", "table 'pair' cannot be public, because it refers to table 'two'"),
    ([RENTAL], "public('ticket')", "(dp_protect('ticket', 'rental_id', 'rental'))"),
    ([], "public('member')", "table 'member' cannot be public, because each of its rows is a unit (protect it instead)"),
    (["protect('card', 'member_code')"], "public('Member')", "cannot be public, because each of its rows is a unit"),
]
ACCEPTED = [
    [RENTAL, TICKET, "protect('photo', 'ticket_id', 'ticket')", "protect('member', 'id')", CLUB, "public('station')"],
    ["protect('member', 'id')", "protect('rental', 'member_id', 'member')", TICKET, "protect('message', 'sender', 'member')"],
    ["protect('member', 'id')", RENTAL, "protect('message', 'receiver')"],
    [RENTAL, "protect('ticket', 'member_id')"],  # the unit column was copied to the ticket
    [CLUB, "protect('member', 'id')"],  # a club refers to its head, and a member to the club
    ["protect('card', 'member_code')"],
    ["public('station')", "public('self')", "public('lost')"],
    ["protect('self', 'id')"], ["protect('lost', 'x')"],
]


@pytest.mark.parametrize("calls", itertools.permutations([RENTAL, "public('member')"]))
def test_the_table_that_a_unit_column_refers_to_is_not_public(calls):
    """Here dp_init() did not get the word for a unit. Other columns may refer to public tables."""
    db = bikes(None)
    declare(db, calls[0], "public('station')")
    said = refused(db, f"SELECT dp_{calls[1]}")
    assert "table 'member' cannot be public, because column 'member_id' of table 'rental' names units and refers to it (protect it instead" in said
    assert ("first dp_undeclare it" in said) == (calls[1] == RENTAL)


@pytest.mark.parametrize("before, call, error", REFUSED)
def test_a_declaration_that_a_foreign_key_contradicts_is_refused(before, call, error):
    db = bikes()
    declare(db, *before)
    message = refused(db, f"SELECT dp_{call}")
    assert error in message
    assert one(db, "SELECT count(*) FROM dp_policy") == len(before)
    for other in re.findall(r"dp_(protect\([^()]*\))", message):
        if "first" not in message:
            declare(db, other)


TYPES = (["protect('rental', 'member_id')"], "protect('card', 'member_code')", "compare differently, so that one unit could be two")
SCHEMA_PRAGMAS = {"table_xinfo", "index_list", "index_xinfo", "foreign_key_list"}


@pytest.mark.parametrize("before, call, error", [*REFUSED, TYPES])
def test_a_schema_that_cannot_be_read_is_not_taken_for_one_without_the_table(before, call, error):
    """The host's authorizer refuses the first read of the schema, then the second, and so on. No check may be skipped for that."""
    db = bikes()
    declare(db, *before)
    reads = [0]

    def deny(nth):
        def authorize(action, pragma, *_):
            reads[0] += action == sqlite3.SQLITE_PRAGMA and pragma in SCHEMA_PRAGMAS
            return sqlite3.SQLITE_DENY if reads[0] == nth and action == sqlite3.SQLITE_PRAGMA else sqlite3.SQLITE_OK
        reads[0] = 0
        db.set_authorizer(authorize)

    nth = 0
    while reads[0] >= nth:
        nth += 1
        deny(nth)
        message = refused(db, f"SELECT dp_{call}")
        db.set_authorizer(None)
        assert one(db, "SELECT count(*) FROM dp_policy") == len(before)
    assert nth > 1 or "is a unit" in error and error in message


@pytest.mark.parametrize("calls", ACCEPTED)
def test_other_declarations_are_accepted(calls):
    db = bikes()
    declare(db, *calls)
    declare(db, *calls)  # again: nothing happens
    assert one(db, "SELECT count(*) FROM dp_policy") == len(calls)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_the_order_of_declarations_does_not_matter():
    """Without a word for the units, only the later declaration shows that an earlier one was wrong."""
    db = bikes(None)
    declare(db, "protect('ticket', 'rental_id')", "public('message')")
    message = refused(db, "SELECT dp_protect('rental', 'member_id')")
    assert message.endswith("(dp_protect('ticket', 'rental_id', 'rental')); first dp_undeclare('ticket')")
    declare(db, "undeclare('ticket')", RENTAL, TICKET)
    assert "first dp_undeclare('message')" in refused(db, "SELECT dp_protect('member', 'id')")
    declare(db, "undeclare('MESSAGE')", "protect('member', 'id')", "protect('message', 'sender')")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_ledger_of_rows_has_no_public_rows_about_its_rows():
    db = connect()
    db.executescript(SCHEMA)
    one(db, """SELECT dp_init('{"protects":"row"}')""")
    declare(db, "protect('rental')", "protect('member')", "public('station')")
    assert "table 'ticket' cannot be public, because it refers to table 'rental'" in refused(db, "SELECT dp_public('ticket')")
    declare(db, "protect('ticket')")


# ---- the plan --------------------------------------------------------------------------------------


def reach(db, start):
    """Returns {table: parents} for the tables from which foreign keys of one column lead to a table, from the schema's text."""
    keys = {}
    for table, text in re.findall(r"CREATE TABLE (\w+)\((.*)\);", SCHEMA):
        text = re.sub(r"FOREIGN KEY.*", "", text)
        keys[table] = [(column, other) for column, other in re.findall(r"(\w+) \w+ REFERENCES (\w+)", text) if other != table]
    found = {start: []}
    while True:
        new = {table: [(c, o) for c, o in keys[table] if o in found] for table in keys if table not in found}
        new = {table: parents for table, parents in new.items() if parents}
        if not new:
            return found
        found.update(new)


def test_the_plan_follows_foreign_keys_and_can_be_declared():
    db = bikes()
    plan = db.execute("SELECT table_name, declaration, note FROM dp_policy_plan('MEMBER')").fetchall()
    assert plan[0] == ("member", "SELECT dp_protect('member', 'id')", "each row is a unit")
    expected = reach(db, "member")
    assert {table for table, declaration, _ in plan if declaration} == set(expected) - {"card"}
    for table, parents in expected.items():
        links = [(d, note) for t, d, note in plan if t == table and table != "member"]
        assert sorted(re.match(r"(\w+) refers to (\w+)", note).groups() for _, note in links) == sorted(parents)
        assert all(("choose one" in note) == (len(links) > 1) for _, note in links)
    assert [note for table, _, note in plan if table == "card"] == ["member_code refers to member.code, but a link needs the key member.id"]
    assert [note for table, _, note in plan if table == "station"] == [
        "no foreign key leads to member: name the column that does in dp_protect(), or call dp_public() if anybody may know the rows"]
    # a table comes after its parents, so the declarations can be run in this order, one for each table
    for table, rows in itertools.groupby(plan, key=lambda row: row[0]):
        declaration = next(rows)[1]
        if declaration:
            assert one(db, declaration) == table
    declare(db, "public('station')")
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("people,visit,column", [
    ("person(pid TEXT PRIMARY KEY)", "visit(id INTEGER PRIMARY KEY, PID TEXT)", "PID"),
    ("person(id INTEGER PRIMARY KEY)", "visit(id INTEGER PRIMARY KEY, person_id INT)", "person_id"),
    ("person(id INTEGER PRIMARY KEY)", "visit(id INT, at TEXT)", None),
    ("person(id INTEGER PRIMARY KEY)", "visit(id INT, person_id INTEGER PRIMARY KEY)", "person_id"),
    ("person(id INTEGER PRIMARY KEY)", "visit(id INTEGER PRIMARY KEY, patient INT)", None)])
def test_the_plan_points_at_a_column_with_the_name_of_the_key(people, visit, column):
    """Without a foreign key, a table of visits must not look like one to declare public."""
    db = connect()
    db.executescript(f"CREATE TABLE {people}; CREATE TABLE {visit}")
    one(db, "SELECT dp_init()")
    ((declaration, note),) = db.execute("SELECT declaration, note FROM dp_policy_plan('person') WHERE table_name = 'visit'").fetchall()
    assert declaration is None
    if column is None:
        assert "name of its key" not in note and "dp_protect()" in note
    else:
        assert f"but {column} has the name of its key" in note
        assert one(db, note.partition(": ")[2]) == "visit"


def test_the_plan_names_what_is_wrong():
    db = bikes()
    assert "main has no such table 'membr' (did you mean 'member'? if" in refused(db, "SELECT * FROM dp_policy_plan('membr')")
    assert "table 'message' has no key of one column" in refused(db, "SELECT * FROM dp_policy_plan('message')")
    assert "table must be a text that is not empty" in refused(db, "SELECT * FROM dp_policy_plan(7)")
    db.execute("CREATE VIEW v AS SELECT * FROM member")
    assert "'v' is a view" in refused(db, "SELECT * FROM dp_policy_plan('v')")
    db.execute('CREATE TABLE "odd ""name"(id INTEGER PRIMARY KEY, "who\'s" INT REFERENCES member)')
    sql = one(db, "SELECT declaration FROM dp_policy_plan('member') WHERE table_name LIKE 'odd%'")
    assert one(db, sql) == 'odd "name'


# ---- taking back -----------------------------------------------------------------------------------


def test_a_declaration_can_be_taken_back_until_the_first_charge():
    db = bikes()
    declare(db, RENTAL, TICKET, "public('station')")
    assert "table 'rental' is the parent of 'ticket' (first dp_undeclare('ticket'))" in refused(db, "SELECT dp_undeclare('rental')")
    assert "no table 'tickets' is declared (did you mean 'ticket'? dp_policy lists them)" in refused(db, "SELECT dp_undeclare('tickets')")
    assert [one(db, "SELECT dp_undeclare(?)", table) for table in ("TICKET", "rental", "station")] == ["TICKET", "rental", "station"]
    assert one(db, "SELECT count(*) FROM dp_policy") == 0 and one(db, "SELECT dp_verify()") == "ok"
    declare(db, RENTAL)
    one(db, "SELECT dp_tier('t', 1, 100, 1e-6)")
    db.execute("INSERT INTO rental(member_id, minutes) VALUES (1, 1)")
    one(db, "SELECT dp_release('t', 'sum', 'SELECT minutes FROM rental', '{\"clip\":1,\"name\":\"s\"}')")
    for state in ("released", "discarded"):
        if state == "discarded":
            one(db, "SELECT dp_discard('s')")
        assert "table 'rental' stays declared, because releases have been charged" in refused(db, "SELECT dp_undeclare('rental')")
    assert "before the first charge, dp_undeclare() takes it back" in refused(db, "SELECT dp_protect('rental', 'station_id')")
    assert one(db, "SELECT count(*) FROM dp_policy") == 1 and one(db, "SELECT dp_verify()") == "ok"


def test_near_names_of_tables_and_columns():
    db = bikes()
    assert "main has no such table 'rentals' (did you mean 'rental'? if a declared" in refused(db, "SELECT dp_protect('rentals', 'member_id')")
    assert "table 'rental' has no column 'memberid' (did you mean 'member_id'?)" in refused(db, "SELECT dp_protect('rental', 'memberid')")
    assert refused(db, "SELECT dp_protect('rental', 'zzzzz')").endswith("table 'rental' has no column 'zzzzz'")
