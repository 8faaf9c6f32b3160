"""Aggregates inside a SELECT in a ledger with a policy: proved to keep units apart, or refused."""

import pytest

from conftest import connect, one, refused


@pytest.fixture
def clinic():
    db = connect()
    db.executescript("""
        CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, ward TEXT, minutes INT, twice AS (minutes * 2), nurse INT,
                           real_patient REAL);
        CREATE TABLE exam(visit INT, result INT);
        CREATE TABLE ward(name TEXT PRIMARY KEY, beds INT);
        CREATE TABLE loose(patient INT, minutes INT);
        CREATE VIEW long_visit AS SELECT * FROM visit WHERE minutes > 10;
        INSERT INTO visit(patient, ward, minutes, nurse) VALUES
            (1, 'a', 10, 7), (1, 'b', 20, 7), (2, 'a', 30, 7), (3, 'b', 5, 8), (NULL, 'a', 40, 7);
        INSERT INTO exam VALUES (1, 2);
        INSERT INTO ward VALUES ('a', 1), ('b', 2);
        INSERT INTO loose SELECT patient, minutes FROM visit;
    """)
    db.execute("SELECT dp_init()")
    one(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_protect('exam', 'visit', 'visit')")
    one(db, "SELECT dp_public('ward')")
    one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
    yield db
    db.close()


@pytest.mark.parametrize("sql, value", [
    ("dp_sum('t', minutes, 100, patient) FROM visit", 65),  # the row without an owner counts for nobody
    ("dp_sum('t', minutes, 15, patient) FROM visit", 35),
    ("dp_sum('t', minutes + 1, 100, patient, 'named') FROM visit", 69),
    ("dp_sum('t', minutes, 100, patient) FROM visit WHERE ward = 'a' AND minutes > 5", 40),
    ("dp_sum('t', twice, 100, patient) FROM visit", 130),
    ("dp_sum('t', CASE WHEN minutes > 10 THEN 1 ELSE 2 END, 100, patient) FROM visit", 6),
    ("dp_sum('t', iif(ward = 'b', minutes, NULL), 100, patient) FROM visit AS v", 25),
    ("dp_sum('t', length(ward), 100, visit.patient) FROM main.visit", 4),
    ("dp_count('t', minutes, 10, patient) FROM visit", 4),
    ("dp_count_distinct('t', patient) FROM visit NOT INDEXED", 3),
    ("dp_sum('t', minutes, 100, patient) FROM long_visit", 50),
    ("dp_sum('t', minutes, 100, patient) FROM (SELECT * FROM visit WHERE minutes < 30)", 35),
    ("dp_sum('t', patient, 100, patient) FROM visit WHERE patient > 1", 5),
])
def test_one_loop_over_one_table_is_proved(clinic, sql, value):
    assert abs(one(clinic, "SELECT " + sql) - value) < 0.9  # ten standard deviations
    assert one(clinic, "SELECT tables FROM dp_release") == '{"visit":"protected"}'


def test_several_aggregates_and_a_parameter(clinic):
    got = clinic.execute("SELECT dp_count('t', minutes, 10, patient, ?), dp_avg('t', minutes, 0, 100, patient, ?) FROM visit"
                         " WHERE nurse = ?", ("n", "average", 7)).fetchall()[0]
    assert abs(got[0] - 3) < 0.5 and abs(got[1] - 20) < 5
    assert one(clinic, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("sql", [
    "dp_sum('t', minutes, 100, patient) FROM (SELECT * FROM visit LIMIT 2)",
    "dp_sum('t', minutes, 100, patient) FROM (SELECT DISTINCT patient, minutes FROM visit)",
    "dp_sum('t', a.minutes, 100, a.patient) FROM visit a JOIN visit b",
    "dp_sum('t', n, 100, patient) FROM (SELECT patient, count(*) OVER () AS n FROM visit)",
    "dp_sum('t', n, 100, patient) FROM (SELECT patient, sum(minutes) AS n FROM visit GROUP BY patient)",
    "dp_sum('t', minutes - (SELECT avg(minutes) FROM visit), 100, patient) FROM visit",
    "dp_sum('t', minutes, 100, patient) FROM visit WHERE minutes > (SELECT min(minutes) FROM visit)",
    "dp_sum('t', abs(minutes), 100, patient) FROM visit",
    "dp_sum('t', CASE WHEN ward = 'b' THEN abs(-9223372036854775807 - 1) ELSE 1 END, 100, patient) FROM visit",
    "dp_sum('t', minutes || ward, 100, patient) FROM visit",
    "dp_sum('t', minutes, 100, patient), sum(minutes) FROM visit",
    "dp_sum('t', minutes, 100, patient), group_concat(minutes) FROM visit",
    "dp_sum('t', minutes, 100, patient) FROM visit GROUP BY ward",
    "dp_sum('t', minutes, 100, patient) FROM loose",
    "dp_sum('t', minutes, 100, patient) FROM (SELECT 1 AS minutes, 1 AS patient)",
    "dp_sum('t', minutes, 100, patient) FROM (SELECT * FROM visit UNION ALL SELECT * FROM visit)",
    "dp_sum('t', minutes, 100, patient) FROM visit WHERE mine(minutes)",
    "dp_sum('t', result, 100, visit) FROM exam",  # a link names the row: it would have to be mapped
    "dp_sum('t', minutes, 100, patient) FROM visit WHERE id = 2",
])
def test_what_is_not_proved_is_refused_before_any_charge(clinic, sql):
    clinic.create_function("mine", 1, lambda x: 1, deterministic=True)
    assert "cannot show that" in refused(clinic, "SELECT " + sql)
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


@pytest.mark.parametrize("unit", ["nurse", "id", "minutes", "patient + 0", "'los 2024-01'", "CAST(patient AS TEXT)", "rowid",
                                  "iif(ward = 'a', patient, 1)", "NULL", "-patient", "ward"])
def test_the_unit_is_that_of_the_table(clinic, unit):
    message = refused(clinic, f"SELECT dp_sum('t', minutes, 100, {unit}) FROM visit")
    assert message.startswith("dp_sum: argument 4 must be visit.patient, the unit of table visit"), message
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


def test_one_wrong_aggregate_refuses_the_statement(clinic):
    refused(clinic, "SELECT dp_sum('t', minutes, 100, patient), dp_sum('t', minutes, 100, nurse) FROM visit")
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


def test_a_table_in_temp_is_not_the_protected_one(clinic):
    clinic.execute("CREATE TEMP TABLE visit AS SELECT 1 AS patient, 5 AS minutes")
    assert "cannot show that" in refused(clinic, "SELECT dp_sum('t', minutes, 100, patient) FROM visit")


def test_a_replaced_function_is_not_sqlites(clinic):
    assert abs(one(clinic, "SELECT dp_sum('t', length(ward), 100, patient) FROM visit") - 4) < 0.9
    clinic.create_function("length", 1, lambda x: 1, deterministic=True)
    assert "cannot show that" in refused(clinic, "SELECT dp_sum('t', length(ward), 100, patient) FROM visit")


def test_a_statement_that_writes_is_refused(clinic):
    clinic.execute("CREATE TABLE kept(x)")
    assert "cannot show that" in refused(clinic, "INSERT INTO kept SELECT dp_sum('t', minutes, 100, patient) FROM visit")
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


def test_another_busy_statement_with_releases_refuses(clinic):
    cursor = clinic.execute("SELECT dp_sum('t', minutes, 100, patient) FROM visit UNION ALL SELECT 1")
    cursor.fetchone()
    assert "cannot show that" in refused(clinic, "SELECT dp_sum('t', minutes, 100, patient) FROM visit")
    cursor.close()
    one(clinic, "SELECT dp_sum('t', minutes, 100, patient) FROM visit")
