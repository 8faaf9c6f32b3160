"""In a ledger with a policy, an aggregate inside a SELECT is refused unless the statement provably keeps units apart."""

import json
import re
import os
import random
import shutil
import sqlite3

import pytest

from conftest import connect, one, refused
import random_questions


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
    ("dp_sum('t', minutes, 100, patient) FROM visit", 65),  # the row without a patient does not count
    ("dp_sum('t', minutes, 15, patient) FROM visit", 35),
    ("dp_sum('t', iif(minutes < 2000000000, minutes, 0), 100, patient) FROM visit", 65),
    ("dp_ou_sum('t', minutes, 100, 1000000, patient) FROM visit", 65),
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


# a in ward: 1 bed, b: 2 beds. Patient 1 was in a and b, patient 2 in a, patient 3 in b.
JOINED = [
    ("dp_sum('t', beds, 100, patient) FROM visit JOIN ward ON name = ward", 6, "ward"),
    ("dp_sum('t', beds, 2, visit.patient) FROM visit JOIN ward ON name = ward", 5, "ward"),
    ("dp_sum('t', beds * minutes, 100, patient) FROM visit CROSS JOIN ward WHERE beds < minutes", 195, "ward"),
    ("dp_count('t', 1, 10, patient) FROM visit CROSS JOIN ward", 8, "ward"),
    ("dp_sum('t', a.beds + b.beds, 100, patient) FROM visit v CROSS JOIN ward a CROSS JOIN ward b ON b.name = v.ward", 24, "ward"),
    ("dp_sum('t', result + beds, 100, visit) FROM exam CROSS JOIN ward", 7, "ward"),
    ("dp_sum('t', level, 100, patient) FROM visit JOIN shift ON shift.nurse = visit.nurse", 11, "shift"),
]


@pytest.mark.parametrize("sql, value, public", JOINED)
def test_public_tables_may_be_inside(clinic, sql, value, public):
    clinic.executescript("CREATE TABLE shift(nurse INTEGER PRIMARY KEY, level INT); INSERT INTO shift VALUES (7, 2), (8, 5)")
    one(clinic, "SELECT dp_public('shift')")
    assert abs(one(clinic, "SELECT " + sql) - value) < 0.9
    assert one(clinic, "SELECT tables FROM dp_release") == f'{{"{sql.split("FROM ")[1].split()[0]}":"protected","{public}":"public"}}'
    assert one(clinic, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("sql, part", [
    ("dp_sum('t', beds, 50, patient) FROM ward CROSS JOIN visit ON name = ward", "a join that has no index"),  # the public table is outside
    ("dp_sum('t', beds, 50, patient) FROM visit LEFT JOIN ward ON name = ward", "a LEFT JOIN"),
    ("dp_sum('t', minutes, 50, patient) FROM visit CROSS JOIN (SELECT * FROM ward LIMIT 1)", "subquery"),
    ("dp_sum('t', level, 50, patient) FROM visit CROSS JOIN loose_level", "the table 'loose_level', which is not declared"),  # not declared
    ("dp_sum('t', result, 50, patient) FROM visit CROSS JOIN exam", "a join of the tables 'visit' and 'exam'"),
    ("dp_sum('t', level, 50, patient) FROM visit CROSS JOIN temp.ward", "a table of another database"),
    ("dp_sum('t', level, 50, patient) FROM visit JOIN folded ON folded.name = visit.ward", "an index under another collation"),  # the host may have replaced NOCASE
    ("dp_sum('t', abs(beds), 50, patient) FROM visit CROSS JOIN ward", "the function abs()"),
    ("dp_sum('t', beds, 50, patient) FROM visit CROSS JOIN ward LIMIT 1 OFFSET (SELECT count(*) FROM visit)", "a subquery"),
])
def test_other_joins_are_refused_before_any_charge(clinic, sql, part):
    clinic.executescript("CREATE TABLE loose_level(level INT); CREATE TEMP TABLE ward(name, level INT);"
                         "CREATE TABLE folded(name TEXT COLLATE NOCASE PRIMARY KEY, level INT);"
                         "INSERT INTO loose_level VALUES (3); INSERT INTO temp.ward VALUES ('a', 3); INSERT INTO folded VALUES ('A', 3)")
    one(clinic, "SELECT dp_public('folded')")
    if "temp." not in sql:
        clinic.execute("DROP TABLE temp.ward")
    message = refused(clinic, "SELECT " + sql)
    assert re.search(rf"cannot show that .* in this SELECT, because of .*{re.escape(part)}.*ask dp_release", message), message
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


def test_an_index_is_named_with_what_to_write(clinic):
    clinic.execute("CREATE INDEX by_minutes ON visit(minutes, patient)")
    sql = "SELECT dp_sum('t', minutes, 100, patient) FROM visit"
    assert "because of the index 'by_minutes' (write FROM \"visit\" NOT INDEXED, or ask dp_release(" in refused(clinic, sql)
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0
    assert one(clinic, sql + " NOT INDEXED") is not None


@pytest.mark.parametrize("sql, part", [
    ("dp_sum('t', minutes, 100, patient) FROM (SELECT * FROM visit LIMIT 2)", "a subquery"),
    ("dp_sum('t', minutes, 100, patient) FROM (SELECT DISTINCT patient, minutes FROM visit)", "subquery"),
    ("dp_sum('t', a.minutes, 100, a.patient) FROM visit a JOIN visit b", "a join of the tables 'visit' and 'visit'"),
    ("dp_sum('t', n, 100, patient) FROM (SELECT patient, count(*) OVER () AS n FROM visit)", "a window"),
    ("dp_sum('t', n, 100, patient) FROM (SELECT patient, sum(minutes) AS n FROM visit GROUP BY patient)", "GROUP BY"),
    ("dp_sum('t', minutes - (SELECT avg(minutes) FROM visit), 100, patient) FROM visit", "a subquery"),
    ("dp_sum('t', minutes, 100, patient) FROM visit WHERE minutes > (SELECT min(minutes) FROM visit)", "a subquery"),
    ("dp_sum('t', abs(minutes), 100, patient) FROM visit", "the function abs()"),
    ("dp_sum('t', CASE WHEN ward = 'b' THEN abs(-9223372036854775807 - 1) ELSE 1 END, 100, patient) FROM visit", "the function abs()"),
    ("dp_sum('t', minutes || ward, 100, patient) FROM visit", "||"),
    ("dp_sum('t', minutes, 100, patient), sum(minutes) FROM visit", "the aggregate sum()"),
    ("dp_sum('t', minutes, 100, patient), group_concat(minutes) FROM visit", "the aggregate group_concat()"),
    ("dp_sum('t', minutes, 100, patient) FROM visit GROUP BY ward", "GROUP BY"),
    ("dp_sum('t', minutes, 100, patient) FROM loose", "the table 'loose', which is not declared"),
    ("dp_sum('t', minutes, 100, patient) FROM (SELECT 1 AS minutes, 1 AS patient)", "a subquery"),
    ("dp_sum('t', minutes, 100, patient) FROM (SELECT * FROM visit UNION ALL SELECT * FROM visit)", "a subquery"),
    ("dp_sum('t', minutes, 100, patient) FROM visit WHERE mine(minutes)", "the function mine()"),
    ("dp_sum('t', minutes, 100, patient) FROM visit WHERE id = 2", "a search for single rows (write +column in the condition, or"),
])
def test_what_is_not_proved_is_refused_before_any_charge(clinic, sql, part):
    clinic.create_function("mine", 1, lambda x: 1, deterministic=True)
    message = refused(clinic, "SELECT " + sql)
    assert re.search(rf"cannot show that .* in this SELECT, because of .*{re.escape(part)}.*ask dp_release", message), message
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


def test_a_table_elsewhere_with_the_root_page_of_a_public_table(clinic):
    root = one(clinic, "SELECT rootpage FROM sqlite_master WHERE name = 'ward'")
    clinic.execute("ATTACH ':memory:' AS spare")
    for i in range(root):
        clinic.execute(f"CREATE TABLE spare.t{i}(level INT)")
    (name,) = [row[0] for row in clinic.execute("SELECT name FROM spare.sqlite_master WHERE rootpage = ?", (root,))]
    clinic.execute(f"INSERT INTO spare.{name} VALUES (3)")
    assert "cannot show that" in refused(clinic, f"SELECT dp_sum('t', level, 50, patient) FROM visit CROSS JOIN spare.{name}")


def test_a_column_of_a_public_table_is_not_the_unit(clinic):
    """Both visit.patient and ward.beds are the second column of their tables."""
    for unit in ("beds", "ward.beds", "name"):
        message = refused(clinic, f"SELECT dp_sum('t', minutes, 100, {unit}) FROM visit CROSS JOIN ward")
        assert message.startswith("dp_sum: argument 4 must be visit.patient, the unit of table visit"), message
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


@pytest.mark.parametrize("unit", ["nurse", "id", "minutes", "patient + 0", "'los 2024-01'", "CAST(patient AS TEXT)", "rowid",
                                  "iif(ward = 'a', patient, 1)", "iif(ward = 'a', 1, patient)", "coalesce(nurse, patient)",
                                  "CASE ward WHEN 'a' THEN 7 WHEN 'b' THEN patient END", "NULL", "-patient", "ward"])
def test_the_unit_is_that_of_the_table(clinic, unit):
    message = refused(clinic, f"SELECT dp_sum('t', minutes, 100, {unit}) FROM visit")
    assert message.startswith("dp_sum: argument 4 must be visit.patient, the unit of table visit"), message
    assert one(clinic, "SELECT count(*) FROM dp_charge") == 0


def test_the_error_shows_the_text_that_is_no_unit(clinic):
    message = refused(clinic, "SELECT dp_sum('t', minutes, 100, 'los 2024-01') FROM visit")
    assert message == "dp_sum: argument 4 must be visit.patient, the unit of table visit, not 'los 2024-01'"
    message = refused(clinic, "SELECT dp_sum('t', result, 100, result) FROM exam")
    assert message == "dp_sum: argument 4 must be exam.visit, which leads to the unit of table exam"


def linked(path=":memory:", key="id INTEGER PRIMARY KEY", spelled="INT"):
    """Makes a database of patients with visits, exams of visits, and parts of exams. Some links lead to no row, and some visits
    have no patient."""
    db = connect(path) if path != ":memory:" else connect()
    db.executescript(f"""
        CREATE TABLE visit({key}, patient INT, minutes INT);
        CREATE TABLE exam(code TEXT COLLATE NOCASE UNIQUE, visit {spelled}, result INT);
        CREATE TABLE part(exam TEXT, weight INT);
    """)
    pick = random.Random(7)
    for visit in range(60):
        db.execute("INSERT INTO visit VALUES (?, ?, ?)", (visit, pick.choice([None, 1, 2, 3, 4, 5, 6]), visit))
    for exam in range(200):
        db.execute("INSERT INTO exam VALUES (?, ?, ?)", (f"Exam{exam}", pick.choice([None, pick.randrange(80)]), pick.randrange(9)))
        for _ in range(pick.randrange(4)):
            db.execute("INSERT INTO part VALUES (?, ?)", (f"{pick.choice(['exam', 'EXAM', 'eXam'])}{exam}", pick.randrange(5)))
    db.execute("INSERT INTO part VALUES ('exam999', 4), (NULL, 4)")
    db.execute("SELECT dp_init()")
    one(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_protect('exam', 'visit', 'visit')")
    one(db, "SELECT dp_protect('part', 'exam', 'exam')")
    one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
    return db


@pytest.mark.parametrize("key, spelled", [("id INTEGER PRIMARY KEY", "INT"), ("id INT UNIQUE", "REAL"), ("id TEXT PRIMARY KEY", "TEXT")])
@pytest.mark.parametrize("table, x, link", [("exam", "result", "visit"), ("part", "weight", "exam")])
@pytest.mark.parametrize("clip", [1000, 20])
def test_links_lead_to_the_root_unit(table, x, link, clip, key, spelled):
    db = linked(key=key, spelled=spelled)
    units = dict(db.execute(f"""
        SELECT visit.patient, sum(x) FROM (SELECT {x} AS x, {'visit' if table == 'exam' else 'NULL'} AS visit, {link} AS link FROM {table}) t
        JOIN exam ON {'exam.rowid = (SELECT min(rowid) FROM exam)' if table == 'exam' else 'exam.code = t.link'}
        JOIN visit ON visit.id = {'t.visit' if table == 'exam' else 'exam.visit'} WHERE visit.patient NOT NULL GROUP BY 1"""))
    assert len(units) == 6
    want = sum(min(total, clip) for total in units.values())
    assert max(units.values()) > 20
    assert abs(one(db, f"SELECT dp_sum('t', {x}, {clip}, {link}) FROM {table}") - want) < 9 * clip / 1000
    assert abs(one(db, f"SELECT dp_count_distinct('t', {link}) FROM {table}") - 6) < 0.1
    groups = json.loads(one(db, f"SELECT dp_group_count('t', {x}, 1000, {link}, '{{\"keys\":[0,1,2,3,4,5,6,7,8]}}') FROM {table}"))
    assert abs(sum(groups.values()) - sum(1 for _ in owned(db, table))) < 20
    assert set(row[0] for row in db.execute("SELECT tables FROM dp_release")) == {f'{{"{table}":"protected"}}'}
    assert abs(one(db, "SELECT dp_release('t', 'sum', ?, ?)", f"SELECT {x} FROM {table}", f'{{"clip":{clip}}}') - want) < 9 * clip / 1000


def owned(db, table):
    exams = {code.lower(): visit for code, visit in db.execute("SELECT code, visit FROM exam")}
    visits = {str(visit) for visit, patient in db.execute("SELECT id, patient FROM visit") if patient is not None}
    for (link,) in db.execute(f"SELECT {'visit' if table == 'exam' else 'exam'} FROM {table}"):
        visit = link if table == "exam" else exams.get(str(link).lower())
        if visit is not None and str(visit).replace(".0", "") in visits:
            yield link


@pytest.mark.parametrize("seed", range(int(os.environ.get("QUESTION_SEEDS", 3))))
def test_random_aggregates_over_links(tmp_path, seed):
    """Every random aggregate that is proved gives the same integers as a loop over the units in plain SQLite."""
    path, pick = str(tmp_path / "proved"), random.Random(seed)
    tables = random_questions.Linked(seed)
    units = tables.make(path)
    shutil.copy(path, tmp_path / "trial")
    trial = connect(tmp_path / "trial")
    for call in ("dp_init()", *tables.policy, "dp_tier('t', 1e6, 1e12, 1e-6)"):
        one(trial, "SELECT " + call)
    statements, asked = [], []
    for _ in range(60):
        question = random_questions.Question(pick, random_questions.LINKED, ["visit", "exam", "exam", "part", "part", "long_exam"])
        kind, options = pick.choice([("sum", {"clip": 50}), ("count", {"clip": 3}), ("count_distinct", {})])
        x, where = question.value(), f" WHERE {question.condition()}" if pick.random() < 0.6 else ""
        alias = question.columns[0].split(".")[0]
        unit = f"{alias}.{ {'visit': 'patient', 'part': 'exam'}.get(question.table, 'visit')}"
        arguments = [*([x] if kind != "count_distinct" else []), *map(str, options.values()), unit, f"'{len(asked)}'"]
        sql = f"SELECT dp_{kind}('t', {', '.join(arguments)}) FROM {question.source}{where}"
        try:
            one(trial, sql)
        except sqlite3.Error as error:
            assert any(reason in str(error) for reason in ("cannot show that", "no row reached", "no such column", "ambiguous")), (sql, error)
            continue
        statements.append(sql)
        asked.append((kind, options, f"SELECT {x} FROM {question.source}{where}",
                      {{"long_exam": "exam"}.get(question.table, question.table)}))
    assert len(asked) > 5
    proved = random_questions.released(path, tables.policy, statements)
    by_hand = random_questions.integers_by_hand(str(tmp_path / "hand"), asked, units)
    for statement, first, second in zip(statements, proved, by_hand):
        assert first and first == second, statement


def test_links_are_followed_in_the_transaction_of_the_statement(path):
    db = linked(path)
    everything = one(db, "SELECT sum(result) FROM exam JOIN visit ON visit = id")
    db.execute("BEGIN")
    db.execute("UPDATE visit SET patient = 1")
    assert abs(one(db, "SELECT dp_sum('t', result, 20, visit) FROM exam") - 20) < 0.5
    db.execute("ROLLBACK")
    assert abs(one(db, "SELECT dp_sum('t', result, 20, visit) FROM exam") - 120) < 0.5 and everything > 120
    # Another connection moves all visits to one patient. The open transaction does not see this.
    other = connect(path)
    one(db, "PRAGMA journal_mode = WAL")
    db.execute("BEGIN")
    one(db, "SELECT count(*) FROM visit")
    other.execute("UPDATE visit SET patient = 1")
    assert abs(one(db, "SELECT dp_sum('t', result, 20, visit) FROM exam") - 120) < 0.5
    db.execute("COMMIT")
    assert abs(one(db, "SELECT dp_sum('t', result, 20, visit) FROM exam") - 20) < 0.5
    other.close()
    db.close()


def test_a_hidden_parent_is_not_followed():
    db = linked()
    db.set_authorizer(lambda action, first, second, *more: sqlite3.SQLITE_IGNORE
                      if (action, first, second) == (sqlite3.SQLITE_READ, "visit", "patient") else sqlite3.SQLITE_OK)
    assert "cannot show that" in refused(db, "SELECT dp_sum('t', result, 20, visit) FROM exam")
    db.set_authorizer(None)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


@pytest.mark.parametrize("collation, names", [("NOCASE", ["Bob", "bob", "BOB"]), ("RTRIM", ["bob", "bob ", "bob  "]),
                                              ("BINARY", ["bob", "bob", "bob"])])
def test_spellings_of_one_unit_are_one_unit(collation, names):
    db = connect()
    db.executescript(f"""
        CREATE TABLE visit(id INTEGER PRIMARY KEY, patient TEXT COLLATE {collation}, n INT);
        CREATE TABLE exam(visit INT, n INT);
    """)
    db.executemany("INSERT INTO visit(patient, n) VALUES (?, 6)", [(name,) for name in names] + [("ann",), (None,)])
    db.execute("INSERT INTO exam SELECT id, n FROM visit")
    db.execute("SELECT dp_init()")
    one(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_protect('exam', 'visit', 'visit')")
    one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
    for table, unit in (("visit", "patient"), ("exam", "visit")):
        assert abs(one(db, f"SELECT dp_sum('t', n, 10, {unit}) FROM {table}") - 16) < 0.1
        assert abs(one(db, f"SELECT dp_count_distinct('t', {unit}) FROM {table}") - 2) < 0.1
        assert abs(json.loads(one(db, f"SELECT dp_histogram('t', n, 0, 10, 1, {unit}, '{{\"clip\":1}}') FROM {table}"))[0] - 2) < 0.1
        assert abs(one(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":10}')", f"SELECT n FROM {table}") - 16) < 0.1


def test_a_unit_of_real_numbers():
    db = connect()
    db.execute("CREATE TABLE visit(patient REAL, n INT)")
    db.executemany("INSERT INTO visit VALUES (?, 6)", [(1,), (1.0,), (2.5,), (None,)])
    db.execute("SELECT dp_init()")
    one(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
    assert abs(one(db, "SELECT dp_sum('t', n, 10, patient) FROM visit") - 16) < 0.1


def rows_ledger(adjacency="add-remove"):
    db = connect()
    db.executescript("CREATE TABLE visit(n INT, ward TEXT, v TEXT); CREATE TABLE loose(n INT)")
    db.executemany("INSERT INTO visit VALUES (?, ?, ?)", [(i, "ab"[i % 2], f"[{i},1]") for i in range(20)])
    db.execute("INSERT INTO loose VALUES (1)")
    db.execute("SELECT dp_init(?)", (json.dumps({"protects": "row", "adjacency": adjacency}),))
    one(db, "SELECT dp_protect('visit')")
    one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
    return db


@pytest.mark.parametrize("call, value", [
    ("dp_sum('t', n, 10)", 45 + 10 * 10), ("dp_sum('t', n, 100, NULL, 'named')", 190), ("dp_count('t', n)", 20),
    ("dp_avg('t', n, 0, 100)", 9.5), ("dp_group_sum('t', ward, n, 100, NULL, '{\"keys\":[\"a\",\"b\"]}')", {"a": 90, "b": 100}),
    ("dp_vec_sum('t', v, 2, 100)", [190, 20]), ("dp_sum('t', n, 100), count(*)", None), ("dp_sum('t', n, 10, n)", None),
])
def test_rows_as_units(call, value):
    db = rows_ledger()
    if value is None:
        refused(db, f"SELECT {call} FROM visit")
        assert one(db, "SELECT count(*) FROM dp_charge") == 0
        return
    got = one(db, f"SELECT {call} FROM visit")
    pairs = [(got, value)] if not isinstance(got, str) else (
        [(json.loads(got)[k], value[k]) for k in (value if isinstance(value, dict) else range(len(value)))])
    assert all(abs(a - b) < 1 for a, b in pairs), got
    assert one(db, "SELECT tables FROM dp_release") == '{"visit":"protected"}'


@pytest.mark.parametrize("rest", ["FROM visit a JOIN visit b", "FROM (SELECT * FROM visit LIMIT 3)", "FROM loose",
                                  "FROM (SELECT sum(n) AS n FROM visit)", "FROM visit CROSS JOIN ward"])
def test_rows_as_units_are_proved_apart(rest):
    db = rows_ledger()
    db.executescript("CREATE TABLE ward(beds INT); INSERT INTO ward VALUES (1), (2)")
    one(db, "SELECT dp_public('ward')")
    assert "the rows of one row stay apart" in refused(db, f"SELECT dp_sum('t', {'a.' * ('a JOIN' in rest)}n, 10) {rest}")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


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


# ---- statements that wait ------------------------------------------------------------------------------------------


def test_a_statement_that_waits_between_rows_is_no_obstacle():
    """The result of one aggregate is open, as in a JDBC ResultSet. Other aggregates answer all the same, and a wrong one gets the
    error of its own statement."""
    db = connect()
    db.execute("CREATE TABLE visit(patient INT, minutes INT)")
    db.executemany("INSERT INTO visit VALUES (?, ?)", [(i // 2, i % 7) for i in range(100)])
    db.execute("SELECT dp_init()")
    one(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_tier('t', 1e6, 1e12, 1e-6)")
    exact = sum(i % 7 for i in range(100))
    waiting = [db.execute(f"SELECT dp_sum('t', minutes, 100, patient), {i} FROM visit") for i in range(6)]
    assert abs(one(db, "SELECT dp_sum('t', minutes, 100, patient) FROM visit") - exact) < 1
    assert "argument 4 must be visit.patient" in refused(db, "SELECT dp_sum('t', minutes, 100, minutes) FROM visit")
    assert [abs(cursor.fetchone()[0] - exact) < 1 for cursor in waiting] == [True] * 6
    assert [state for (state,) in db.execute("SELECT state FROM dp_release")] == ["released"] * 7
