"""Tests dp_answer(), which makes a release and returns its values as rows."""

import pytest

from conftest import connect, one, refused

OPTIONS = '{"name":"stay by ward","clip":5,"lo":0,"hi":100,"keys":["a","b"]}'


@pytest.fixture
def clinic():
    db = connect()
    db.executescript("""
        CREATE TABLE visit(patient INT, ward TEXT, minutes INT);
        INSERT INTO visit VALUES (1, 'a', 10), (1, 'b', 20), (2, 'a', 30), (3, 'b', 6);
        CREATE VIEW hidden AS SELECT * FROM dp_answer('t', 'sum', 'SELECT minutes FROM visit', '{"name":"v","clip":9}');
    """)
    db.execute("SELECT dp_init()")
    one(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
    one(db, "SELECT dp_tier('public', 1e5, 1e12, 1e-6)")
    yield db
    db.close()


def rows(db, kind, sql, options, columns="key, value, stddev, low, high, release, tier"):
    return db.execute(f"SELECT {columns} FROM dp_answer('t', ?, ?, ?)", (kind, sql, options)).fetchall()


def test_groups_numbers_and_arrays(clinic):
    got = rows(clinic, "group_avg", "SELECT ward, minutes FROM visit", OPTIONS)
    assert [row[0] for row in got] == ["a", "b"] and {row[5:] for row in got} == {("stay by ward", "t")}
    assert all(abs(row[1] - want) < 1 and row[3] < row[1] < row[4] for row, want in zip(got, (20, 13)))
    assert got == clinic.execute(
        "SELECT key, value, stddev, low, high, release, tier FROM dp_value WHERE release = 'stay by ward'").fetchall()
    ((key, value),) = rows(clinic, "sum", "SELECT minutes FROM visit", '{"name":"sum","clip":100}', "key, value")
    assert key is None and abs(value - 66) < 1
    got = rows(clinic, "histogram", "SELECT minutes FROM visit", '{"name":"h","lo":0,"hi":40,"bins":4,"clip":5}', "key, value")
    assert [key for key, _ in got] == [0, 1, 2, 3] and [round(value) for _, value in got] == [1, 1, 1, 1]


def test_a_release_is_drawn_once(clinic):
    first = rows(clinic, "group_avg", "SELECT ward, minutes FROM visit", OPTIONS)
    assert rows(clinic, "group_avg", "SELECT ward, minutes FROM visit", OPTIONS) == first
    assert clinic.execute(
        "SELECT count(*), max(a.value <> b.value) FROM dp_answer('t', 'sum', 'SELECT minutes FROM visit', ?1) a,"
        " dp_answer('t', 'sum', 'SELECT minutes FROM visit', ?1) b", ('{"name":"twice","clip":50}',)).fetchall() == [(1, 0)]
    assert one(clinic, "SELECT count(*) FROM dp_release") == 2
    assert one(clinic, "SELECT dp_verify()") == "ok"


def test_it_is_complete_when_its_rows_come(clinic):
    cursor = clinic.execute("SELECT key FROM dp_answer('t', 'group_avg', 'SELECT ward, minutes FROM visit', ?)", (OPTIONS,))
    cursor.fetchone()
    cursor.close()  # the host stops the statement after its first row
    assert one(clinic, "SELECT state FROM dp_release") == "released"
    assert "overflow" in refused(clinic, "SELECT abs(-9223372036854775807 - 1 + (value > 1e9)) FROM dp_answer('t', 'sum',"
                                         " 'SELECT minutes FROM visit', '{\"name\":\"x\",\"clip\":9}')")
    assert one(clinic, "SELECT state FROM dp_release WHERE name = 'x'") == "released"


@pytest.mark.parametrize("sql, reason", [
    ("SELECT * FROM dp_answer('t', 'sum', 'SELECT minutes FROM visit', '{\"clip\":9}')", "must name the release"),
    ("SELECT * FROM dp_answer('t', 'sum', 'SELECT minutes FROM visit')", "dp_answer: an argument is missing (this table takes 4)"),
    ("SELECT * FROM dp_answer", "dp_answer: an argument is missing (this table takes 4)"),
    ("SELECT * FROM dp_answer WHERE value = 1 OR release = 'x'", "dp_answer: an argument is missing"),
    ("SELECT * FROM dp_answer('nowhere', 'sum', 'SELECT minutes FROM visit', '{\"clip\":9,\"name\":\"x\"}')", "unknown tier"),
    ("SELECT * FROM dp_answer('t', 'sum', 'SELECT minutes FROM absent', '{\"clip\":9,\"name\":\"x\"}')", "dp_answer: table 'absent'"),
    ("SELECT * FROM hidden", "unsafe use"),
])
def test_refusals_charge_nothing(clinic, sql, reason):
    assert reason in refused(clinic, sql)
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


def test_a_name_stands_for_its_text(clinic):
    rows(clinic, "sum", "SELECT minutes FROM visit", '{"name":"x","clip":9}')
    message = refused(clinic, "SELECT * FROM dp_answer('t', 'sum', 'SELECT 1 FROM visit', '{\"name\":\"x\",\"clip\":9}')")
    assert "exists with another query: SELECT minutes FROM visit" in message
