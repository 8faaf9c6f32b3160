"""Tests questions by brute force over small databases and queries. No unit changes the contribution of another unit.

The program `fixed` draws the same noise every time, so two releases differ exactly as their exact totals do. Each unit gets
keys of its own, so that a group release shows the contribution of every unit separately.
"""

import itertools
import json
import random

import pytest

from conftest import connect, ledger_of, one
from fixed_noise import run_fixed

SCHEMA = ["CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, n INT)", "CREATE TABLE exam(visit INT, x INT)",
          "CREATE TABLE ward(n INT, beds INT)", "INSERT INTO ward VALUES (0, 3), (1, 5), (1, 7)"]
POLICY = ["SELECT dp_init()", "SELECT dp_protect('visit', 'patient')", "SELECT dp_protect('exam', 'visit', 'visit')",
          "SELECT dp_public('ward')", "SELECT dp_tier('t', 1000, 1e15, 1e-6)"]
OWN = "(SELECT min(patient) FROM visit)"  # in a question, this is the unit for which the question is evaluated

# Each query returns the columns key and x. If a query ran once over the whole table, most of these queries would mix
# people.
QUERIES = [
    "SELECT patient, n FROM visit",
    "SELECT patient, n + 1 FROM visit WHERE n < 1",
    "SELECT patient, beds FROM visit JOIN ward USING (n)",
    "SELECT patient, n FROM visit ORDER BY n DESC LIMIT 1",
    "SELECT patient, n FROM visit LIMIT 1 OFFSET 1",
    "SELECT patient, row_number() OVER (ORDER BY n, id) FROM visit",
    "SELECT patient, sum(n) OVER () FROM visit",
    "SELECT patient, max(n) - min(n) FROM visit",
    "SELECT patient, count(*) FROM visit GROUP BY n",
    "SELECT a.patient, a.n * 2 + b.n FROM visit a, visit b",
    "SELECT patient, n FROM visit WHERE n >= (SELECT avg(n) FROM visit)",
    "SELECT patient, n FROM visit v WHERE EXISTS (SELECT 1 FROM visit w WHERE w.n > v.n)",
    "SELECT DISTINCT patient, n FROM visit",
    "SELECT patient, n FROM visit UNION ALL SELECT patient, 5 FROM visit WHERE n = 1",
    "SELECT patient, n FROM visit EXCEPT SELECT patient, 0 FROM visit",
    "SELECT patient, CASE WHEN n = 1 AND id = 2 THEN abs(-9223372036854775807 - 1) ELSE 1 END FROM visit",
    f"SELECT {OWN}, (SELECT count(*) FROM exam)",
    f"SELECT {OWN}, x FROM exam LEFT JOIN visit ON visit = id",
    "SELECT patient, total(x) FROM visit LEFT JOIN exam ON visit = id GROUP BY id",
    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < (SELECT count(*) FROM visit)) SELECT patient, i FROM c, visit",
]
CLIP = 6
OPTIONS = {"clip": CLIP, "keys": [1, 2, 3]}


def literals(row):
    return ", ".join("NULL" if x is None else str(x) for x in row)


def databases(most):
    """Yields (visits, exams). There are up to `most` visits of patient 1, patient 2 or nobody, with n = 0 or 1, in all
    combinations, and always two visits of patient 3. The exams belong to some of the visits."""
    rows = list(itertools.product([1, 2, None], [0, 1]))
    for count in range(most + 1):
        for some in itertools.combinations_with_replacement(rows, count):
            visits = [(i + 1, *row) for i, row in enumerate(some)] + [(9, 3, 1), (10, 3, 0)]
            yield visits, [(1, 2), (2, 1), (9, 4), (77, 8)]


def points(path, visits, exams, queries, options=OPTIONS):
    """Returns the point of the release of each query as {key: integer}. An integer is the exact total plus noise, and
    the noise is the same in every release."""
    asked = [f"SELECT fixed_seed(1); SELECT dp_release('t', 'group_sum', '{q}', '{json.dumps(options)}')" for q in queries]
    run_fixed(path, SCHEMA + [f"INSERT INTO visit VALUES ({literals(row)})" for row in visits]
              + [f"INSERT INTO exam VALUES ({literals(row)})" for row in exams] + POLICY + asked)
    with ledger_of(path) as ledger:
        found = [{} for _ in queries]
        for release, key, value in ledger.execute("SELECT release_id, key, value FROM dp_path WHERE component = 0"):
            found[release - 1][key] = value
    return found


@pytest.mark.parametrize("most", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_no_unit_changes_the_contribution_of_another(tmp_path, most):
    """If the rows of one patient are removed, the integers of the other patients stay the same. The test removes each
    patient of every small database."""
    memory, number = {}, 0

    def ask(visits, exams):
        nonlocal number
        key = (tuple(visits), tuple(exams))
        if key not in memory:
            number += 1
            memory[key] = points(str(tmp_path / f"{number}.db"), visits, exams, QUERIES)
        return memory[key]

    compared = changed = 0
    for visits, exams in databases(most):
        everyone = ask(visits, exams)
        for patient in {row[1] for row in visits} - {None}:
            gone = {row[0] for row in visits if row[1] == patient}
            others = ask([row for row in visits if row[1] != patient], [row for row in exams if row[0] not in gone])
            for query, with_rows, without in zip(QUERIES, everyone, others):
                for key in ("1", "2", "3"):
                    if key != str(patient):
                        assert with_rows[key] == without[key], (query, visits, patient)
                        compared += 1
                    else:
                        changed += with_rows[key] != without[key]
    assert compared > (1000 if most == 2 else 5000) and changed > (200 if most == 2 else 1000)  # the points show what a patient contributes


TERMS = [f"{column} COLLATE {collation}{direction}" for column in "kl" for collation in ("BINARY", "NOCASE", "RTRIM") for direction in ("", " DESC")]


def random_table(pick):
    """Returns the statements that make a table with some indices. Its key can be unique under finer collations than its columns have."""
    key = [pick.choice(TERMS[:6]), pick.choice(TERMS[6:]), *pick.choice([[], ["u"], ["u DESC"]])]
    pick.shuffle(key)
    indices = [["u DESC"], ["u"], *(["u", *pick.sample(TERMS + ["x DESC"], 2)] for _ in range(3))]
    return [f"CREATE TABLE t(u INT NOT NULL, k TEXT COLLATE {pick.choice(['NOCASE', 'RTRIM', 'BINARY'])}, l TEXT COLLATE NOCASE, x INT,"
            f" PRIMARY KEY ({', '.join(key)})) WITHOUT ROWID",
            *(f"CREATE INDEX i{i} ON t({', '.join(columns)})" for i, columns in enumerate(pick.sample(indices, 2)))]


def first_of(table, others):
    """Returns what a question takes from unit 1 if it takes one row of each unit. The values of the other units are 0."""
    db = connect()
    for statement in table:
        db.execute(statement)
    db.executemany("INSERT OR IGNORE INTO t VALUES (?, ?, ?, ?)",
                   [(1, k, l, 1 + 3 * i + j) for i, k in enumerate(["a", "A", "a "]) for j, l in enumerate("bBc")] + others)
    for statement in ("ANALYZE", "SELECT dp_init()", "SELECT dp_protect('t', 'u')", "SELECT dp_tier('t', 1e6, 1e15, 1e-6)"):
        db.execute(statement).fetchall()
    return round(one(db, "SELECT dp_release('t', 'sum', 'SELECT x FROM t LIMIT 1', '{\"clip\":9}')"))


def test_the_order_of_a_units_rows_depends_on_no_other_unit():
    """SQLite chooses indices by statistics, to which all units add, and rows that an ORDER BY does not tell apart come in the order of
    an index. A table WITHOUT ROWID is read by its indices, also after NOT INDEXED."""
    several = set()
    for seed in range(25):
        table = random_table(random.Random(seed))
        found = {first_of(table, [(unit, f"{unit} {i}", "", 0) for unit in range(7, 7 + units) for i in range(rows)])
                 for units, rows in ((0, 0), (1, 40), (40, 1))}
        assert len(found) == 1, table
        several |= found
    assert len(several) > 2


@pytest.mark.parametrize("table", ["t(id INTEGER PRIMARY KEY, u INT{}, x INT)", "t(id INT PRIMARY KEY, u TEXT COLLATE NOCASE{}, x INT) WITHOUT ROWID",
                                   "t(id UNIQUE, u{}, x)"])
def test_rows_of_nobody_join_no_unit(table):
    """An edited schema declares a column NOT NULL that has NULLs, so SQLite takes IS NOT NULL for true."""
    def answers(nobody):
        db = connect()
        db.execute("CREATE TABLE " + table.format(""))
        db.execute("CREATE TABLE child(link INT, x INT)")
        for row in range(40 + nobody):
            db.execute("INSERT INTO t VALUES (?, ?, 1)", (row, row % 10 if row < 40 else None))
            db.execute("INSERT INTO child VALUES (?, 1)", (row,))
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 't'", ("CREATE TABLE " + table.format(" NOT NULL"),))
        db.execute("PRAGMA writable_schema = RESET")
        for call in ("dp_init()", "dp_protect('t', 'u')", "dp_protect('child', 'link', 't')", "dp_tier('t', 1e6, 1e15, 1e-6)"):
            db.execute("SELECT " + call).fetchall()
        return [round(one(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":9}')", sql.format(name))) for name in ("t", "child") for sql in (
            "SELECT x FROM {}", "WITH v AS (SELECT x FROM {}) SELECT x FROM v", "SELECT x FROM {} LIMIT -1", "SELECT count(*) FROM {}", "SELECT x FROM {} LIMIT 1")]
    assert answers(0) == answers(1) == answers(20) == [40, 40, 40, 40, 10] * 2
