"""Queries for questions, random hospitals, and a reference for the answers. The reference loops over the units. For
each unit, it evaluates the query in a plain SQLite database that has only the rows of this unit and the public
tables."""

import random
import re
import sqlite3

SCHEMA = """
CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, ward TEXT, day INT, minutes INT, note TEXT);
CREATE TABLE exam(visit INT, test TEXT, result INT);
CREATE TABLE part(exam INT, weight INT);
CREATE TABLE drug(patient INT, day INT, name TEXT COLLATE NOCASE, dose INT, PRIMARY KEY (patient, day, name)) WITHOUT ROWID;
CREATE TABLE ward(name TEXT PRIMARY KEY, beds INT, site TEXT);
CREATE TABLE holiday(day INTEGER PRIMARY KEY, label TEXT);
CREATE TABLE price(name TEXT COLLATE NOCASE, lo INT, hi INT, amount INT);
CREATE INDEX visit_patient ON visit(patient);
CREATE VIEW long_visit AS SELECT id, patient, ward, minutes FROM visit WHERE minutes > 20;
CREATE VIEW long_ward(name, total) AS SELECT w.name, sum(v.minutes) FROM long_visit v JOIN ward w ON w.name = v.ward GROUP BY w.name;
"""

POLICY = ["dp_protect('visit', 'patient')", "dp_protect('drug', 'patient')", "dp_protect('exam', 'visit', 'visit')",
          "dp_public('ward', 'holiday', 'price')"]

PROTECTED = {"visit": "SELECT rowid, * FROM visit WHERE patient = ?",
             "drug": "SELECT NULL, * FROM drug WHERE patient = ?",
             "exam": "SELECT rowid, * FROM exam WHERE visit IN (SELECT id FROM visit WHERE patient = ?)"}
PUBLIC = ["ward", "holiday", "price"]


WARDS = ["north", "south", "east", "West"]


def public_rows(pick):
    """Yields statements, with their values, that fill the public tables."""
    for ward in WARDS:
        yield "INSERT INTO ward VALUES (?, ?, ?)", (ward, pick.randrange(1, 9), pick.choice("AB"))
    for day in range(0, 30, pick.randrange(3, 6)):
        yield "INSERT INTO holiday VALUES (?, ?)", (day, "day " + str(day))
    for name in ("aspirin", "Iron", "zinc"):
        for lo in (0, 10, 20):
            yield "INSERT INTO price VALUES (?, ?, ?, ?)", (name, lo, lo + 9, pick.randrange(1, 6))


def hospital(db, seed):
    """Fills the tables with typical and with odd values."""
    pick = random.Random(seed)
    for insert_one in public_rows(pick):
        db.execute(*insert_one)
    identifier = 0
    for patient in [None] + pick.sample(range(1, 40), pick.randrange(3, 12)):
        for _ in range(pick.choice([0, 1, 1, 2, 3, 6, 14])):
            identifier += pick.randrange(1, 4)
            note = pick.choice(["fine", "[1,2,3]", '{"a":4}', "{", "", None, "12", "12.0", " 7", "Fine"])
            db.execute("INSERT INTO visit VALUES (?, ?, ?, ?, ?, ?)",
                       (identifier, patient, pick.choice(WARDS + ["attic", None]), pick.randrange(30), pick.choice(
                           [0, 5, 15, 25, 40, -3, None]), note))
            for _ in range(pick.choice([0, 0, 1, 2])):
                db.execute("INSERT INTO exam VALUES (?, ?, ?)",
                           (identifier, pick.choice(["blood", "x-ray", "BLOOD"]), pick.choice([1, 2, 3, None])))
        if patient:
            for _ in range(pick.choice([0, 0, 1, 3])):
                db.execute("INSERT OR IGNORE INTO drug VALUES (?, ?, ?, ?)",
                           (patient, pick.randrange(30), pick.choice(["aspirin", "ASPIRIN", "iron", "zinc "]),
                            pick.randrange(4)))
    db.execute("INSERT INTO exam VALUES (100000, 'blood', 50), (NULL, 'blood', 50)")


def units(db, tables):
    found = set()
    for table in tables:
        column = {"visit": "SELECT patient FROM visit", "drug": "SELECT patient FROM drug",
                  "exam": "SELECT patient FROM exam JOIN visit ON visit.id = exam.visit"}[table]
        found |= {row[0] for row in db.execute(column)} - {None}
    return sorted(found)


def insert(target, table, rows):
    columns = [row[1] for row in target.execute(f"PRAGMA table_info({table})")]
    for row in rows:
        if table == "drug" or row[0] is None:
            names, values = columns, row[1:]
        elif table == "visit":
            names, values = columns, row[1:]
        else:
            names, values = ["rowid"] + columns, row
        target.execute(f"INSERT INTO {table}({','.join(names)}) VALUES ({','.join('?' * len(values))})", values)


def split(db, schema=SCHEMA):
    """Returns a plain database for each unit, with the rows of the unit and the public tables."""
    found = {}
    public = {table: db.execute(f"SELECT rowid, * FROM {table}").fetchall() for table in PUBLIC}
    for unit in units(db, PROTECTED):
        found[unit] = own = sqlite3.connect(":memory:", isolation_level=None)
        own.executescript(schema)
        for table, rows in public.items():
            if table == "holiday":
                insert(own, table, [(None,) + row[1:] for row in rows])
            else:
                insert(own, table, rows)
        for table, select in PROTECTED.items():
            insert(own, table, db.execute(select, (unit,)).fetchall())
    return found


def evaluate(own, sql, tables):
    """Returns the rows that the query gives for a unit, whose rows are in the database `own`. After an error, and if the unit has no
    row in `tables`, there are no rows."""
    if not any(own.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall() for table in tables):
        return []
    try:
        return own.execute(sql).fetchall()
    except sqlite3.Error:
        return []


def contributions(db, sql, tables, schema=SCHEMA):
    """Returns {unit: the rows that the query gives for this unit}. `tables` are the protected tables that the query names."""
    found = {}
    for unit, own in split(db, schema).items():
        found[unit] = evaluate(own, sql, tables)
        own.close()
    return found


def number(x):
    """Returns the number of a value that a query returns, or 0: a text is a number only if it is nothing else."""
    if isinstance(x, str):
        is_number = re.fullmatch(r"[ \t\n\v\f\r]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\n\v\f\r]*", x)
        return float(x) if is_number else 0
    return 0 if isinstance(x, bytes) else x or 0


def clipped_sum(found, clip):
    return sum(max(-clip, min(clip, sum(number(row[0]) for row in rows))) for rows in found.values())


# Questions with one column. Each comes with the protected tables that its query names.
V, D, E = "visit", "drug", "exam"
QUESTIONS = [
    # one loop
    ("SELECT minutes FROM visit", [V]),
    ("SELECT minutes + 1 FROM visit WHERE day > 10", [V]),
    ("SELECT CASE WHEN minutes > 20 THEN 2 ELSE 1 END FROM visit", [V]),
    ("SELECT iif(minutes IS NULL, 7, minutes) FROM visit WHERE ward = 'north'", [V]),
    ("SELECT 1 FROM visit WHERE ward IN ('north', 'east')", [V]),
    ("SELECT minutes FROM visit WHERE ward LIKE 'w%'", [V]),
    ("SELECT minutes FROM visit WHERE note GLOB 'F*'", [V]),
    ("SELECT length(note) FROM visit", [V]),
    ("SELECT minutes FROM visit WHERE day BETWEEN 5 AND 12", [V]),
    ("SELECT dose FROM drug", [D]),
    ("SELECT dose FROM drug WHERE name = 'aspirin'", [D]),
    ("SELECT dose FROM drug WHERE name = 'zinc'", [D]),
    ("SELECT result FROM exam", [E]),
    ("SELECT result * 2 FROM exam WHERE test = 'blood'", [E]),
    ("SELECT id % 5 FROM visit", [V]),
    ("SELECT rowid % 7 FROM visit", [V]),
    ("SELECT rowid FROM exam WHERE rowid < 9", [E]),
    ("SELECT note FROM visit", [V]),
    ("SELECT note + 1 FROM visit", [V]),
    ("SELECT note = '12' FROM visit", [V]),
    ("SELECT note = 12 FROM visit", [V]),
    ("SELECT cast(note AS INT) FROM visit", [V]),
    ("SELECT typeof(note) = 'text' FROM visit", [V]),
    # LIMIT, OFFSET, ORDER BY, DISTINCT
    ("SELECT minutes FROM visit ORDER BY id LIMIT 1", [V]),
    ("SELECT minutes FROM visit ORDER BY day, id LIMIT 2", [V]),
    ("SELECT minutes FROM visit ORDER BY day DESC, id LIMIT 1 OFFSET 1", [V]),
    ("SELECT id FROM visit LIMIT 1", [V]),
    ("SELECT DISTINCT minutes FROM visit", [V]),
    ("SELECT DISTINCT 5 FROM visit", [V]),
    ("SELECT count(DISTINCT ward) FROM visit", [V]),
    ("SELECT minutes FROM visit ORDER BY minutes IS NULL, minutes, id LIMIT 3", [V]),
    ("SELECT dose FROM drug ORDER BY day DESC, name LIMIT 1", [D]),
    ("SELECT dose FROM drug LIMIT 1", [D]),
    # aggregates
    ("SELECT count(*) FROM visit", [V]),
    ("SELECT sum(minutes) FROM visit", [V]),
    ("SELECT total(minutes) FROM visit WHERE ward = 'nowhere'", [V]),
    ("SELECT max(minutes) FROM visit", [V]),
    ("SELECT min(day) FROM visit", [V]),
    ("SELECT max(day) - min(day) FROM visit", [V]),
    ("SELECT round(avg(minutes)) FROM visit", [V]),
    ("SELECT count(*) FROM visit GROUP BY ward", [V]),
    ("SELECT sum(minutes) FROM visit GROUP BY ward HAVING count(*) > 1", [V]),
    ("SELECT max(n) FROM (SELECT count(*) AS n FROM visit GROUP BY ward)", [V]),
    ("SELECT sum(m) FROM (SELECT max(minutes) AS m FROM visit GROUP BY day % 3)", [V]),
    ("SELECT count(*) FILTER (WHERE minutes > 10) FROM visit", [V]),
    ("SELECT length(group_concat(ward)) FROM visit", [V]),
    ("SELECT json_array_length(json_group_array(day)) FROM visit", [V]),
    ("SELECT max(minutes, 10) FROM visit", [V]),
    ("SELECT count(*) > 2 FROM visit", [V]),
    ("SELECT exists(SELECT 1 FROM visit)", [V]),
    ("SELECT NOT exists(SELECT 1 FROM visit WHERE minutes > 20)", [V]),
    ("SELECT 1 WHERE EXISTS (SELECT 1 FROM visit)", [V]),
    ("SELECT 2 WHERE EXISTS (SELECT 1 FROM visit WHERE minutes > 20)", [V]),
    ("SELECT 1 WHERE 3 IN (SELECT 3 FROM visit WHERE ward IS NOT NULL)", [V]),
    ("SELECT beds FROM ward WHERE EXISTS (SELECT 1 FROM visit WHERE visit.ward = ward.name)", [V]),
    ("SELECT minutes FROM visit WHERE EXISTS (SELECT 1 FROM ward WHERE ward.name = visit.ward AND beds > 1)", [V]),
    ("SELECT minutes FROM visit v WHERE EXISTS (SELECT 1 FROM visit w WHERE w.minutes > v.minutes)", [V]),
    ("SELECT minutes FROM visit WHERE id < 60 AND minutes > 3", [V]),
    ("SELECT minutes FROM visit WHERE id BETWEEN 20 AND 70", [V]),
    # joins of a table with itself
    ("SELECT 1 FROM visit a JOIN visit b", [V]),
    ("SELECT a.minutes FROM visit a JOIN visit b ON a.day = b.day", [V]),
    ("SELECT b.day - a.day FROM visit a JOIN visit b ON b.id > a.id", [V]),
    ("SELECT 1 FROM visit a JOIN visit b ON a.ward = b.ward AND a.id < b.id", [V]),
    ("SELECT 1 FROM visit a JOIN visit b ON a.patient = b.patient", [V]),
    ("SELECT a.minutes FROM visit a LEFT JOIN visit b ON b.day = a.day + 1 WHERE b.id IS NULL", [V]),
    ("SELECT 1 FROM visit a, visit b, visit c WHERE a.id < b.id AND b.id < c.id", [V]),
    ("SELECT 1 FROM visit a JOIN visit b ON a.note = b.note COLLATE NOCASE", [V]),
    ("SELECT 1 FROM visit a JOIN visit b ON a.note = b.day", [V]),
    ("SELECT 1 FROM visit NATURAL JOIN visit AS again", [V]),
    ("SELECT 1 FROM visit a JOIN visit b USING (ward)", [V]),
    ("SELECT 1 FROM drug a JOIN drug b ON a.name = b.name", [D]),
    ("SELECT 1 FROM drug a JOIN drug b USING (name)", [D]),
    # joins with public tables
    ("SELECT beds FROM visit JOIN ward ON name = ward", [V]),
    ("SELECT beds FROM ward JOIN visit ON name = ward", [V]),
    ("SELECT beds FROM visit LEFT JOIN ward ON name = ward", [V]),
    ("SELECT ifnull(beds, 9) FROM visit LEFT JOIN ward ON name = ward WHERE site IS NULL", [V]),
    ("SELECT 1 FROM visit JOIN holiday USING (day)", [V]),
    ("SELECT 1 FROM visit WHERE day IN (SELECT day FROM holiday)", [V]),
    ("SELECT 1 FROM visit WHERE day NOT IN (SELECT day FROM holiday)", [V]),
    ("SELECT amount FROM drug JOIN price ON price.name = drug.name AND day BETWEEN lo AND hi", [D]),
    ("SELECT amount * dose FROM drug, price WHERE drug.name = price.name AND day >= lo AND day <= hi", [D]),
    ("SELECT 1 FROM visit CROSS JOIN ward", [V]),
    ("SELECT count(*) FROM ward WHERE name NOT IN (SELECT ward FROM visit WHERE ward IS NOT NULL)", [V]),
    ("SELECT count(v.id) FROM ward w LEFT JOIN visit v ON v.ward = w.name GROUP BY w.name", [V]),
    ("SELECT (SELECT count(*) FROM holiday h WHERE h.day < v.day) FROM visit v", [V]),
    ("SELECT beds FROM visit JOIN ward ON name = ward JOIN holiday USING (day)", [V]),
    ("SELECT 1 FROM visit JOIN holiday h ON h.rowid = visit.day", [V]),
    ("SELECT 1 FROM visit, ward WHERE ward.name = visit.ward COLLATE NOCASE", [V]),
    # several protected tables
    ("SELECT result FROM exam JOIN visit ON visit.id = exam.visit WHERE minutes > 10", [E, V]),
    ("SELECT count(*) FROM visit LEFT JOIN exam ON exam.visit = visit.id", [E, V]),
    ("SELECT 1 FROM visit WHERE NOT EXISTS (SELECT 1 FROM exam WHERE exam.visit = visit.id)", [E, V]),
    ("SELECT dose FROM drug JOIN visit USING (patient)", [D, V]),
    ("SELECT dose FROM drug JOIN visit ON drug.day >= visit.day", [D, V]),
    ("SELECT (SELECT count(*) FROM drug) - (SELECT count(*) FROM visit)", [D, V]),
    ("SELECT count(*) FROM drug, visit, exam", [D, V, E]),
    ("SELECT minutes FROM visit WHERE patient IN (SELECT patient FROM drug)", [D, V]),
    ("SELECT minutes FROM visit WHERE patient NOT IN (SELECT patient FROM drug)", [D, V]),
    ("SELECT count(*) FROM exam WHERE visit NOT IN (SELECT id FROM visit)", [E, V]),
    # windows
    ("SELECT row_number() OVER (ORDER BY day, id) FROM visit", [V]),
    ("SELECT minutes FROM (SELECT minutes, row_number() OVER (ORDER BY day, id) AS n FROM visit) WHERE n = 1", [V]),
    ("SELECT sum(minutes) OVER (ORDER BY day, id ROWS 1 PRECEDING) FROM visit", [V]),
    ("SELECT day - lag(day) OVER (ORDER BY day, id) FROM visit", [V]),
    ("SELECT rank() OVER (PARTITION BY ward ORDER BY minutes) FROM visit", [V]),
    ("SELECT count(*) OVER () FROM visit", [V]),
    ("SELECT ntile(2) OVER (ORDER BY id) FROM visit", [V]),
    ("SELECT first_value(minutes) OVER (PARTITION BY ward ORDER BY id) FROM visit", [V]),
    ("SELECT max(minutes) OVER w FROM visit WINDOW w AS (ORDER BY id)", [V]),
    ("SELECT dense_rank() OVER (ORDER BY sum(minutes)) FROM visit GROUP BY ward", [V]),
    # CTEs, recursion
    ("WITH v AS (SELECT * FROM visit) SELECT minutes FROM v", [V]),
    ("WITH visit AS (SELECT * FROM main.visit WHERE day > 5) SELECT minutes FROM visit", [V]),
    ("WITH v(n) AS (SELECT count(*) FROM visit) SELECT n FROM v", [V]),
    ("WITH v AS (SELECT * FROM visit) SELECT count(*) FROM v", [V]),
    ("WITH v AS (SELECT * FROM visit) SELECT 1 FROM v a, v b", [V]),
    ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < (SELECT count(*) FROM visit)) SELECT i FROM n", [V]),
    ("WITH RECURSIVE chain(id, n) AS (SELECT min(id), 1 FROM visit UNION ALL SELECT (SELECT min(id) FROM visit v WHERE v.id > chain.id),"
     " n + 1 FROM chain WHERE chain.id IS NOT NULL) SELECT max(n) FROM chain", [V]),
    ("WITH RECURSIVE d(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM d WHERE x < 29) SELECT count(*) FROM d WHERE x NOT IN (SELECT day FROM visit)", [V]),
    ("WITH a AS MATERIALIZED (SELECT day FROM visit) SELECT count(*) FROM a x JOIN a y USING (day)", [V]),
    # subqueries
    ("SELECT minutes - (SELECT min(minutes) FROM visit) FROM visit", [V]),
    ("SELECT minutes FROM visit v WHERE minutes = (SELECT max(minutes) FROM visit w WHERE w.ward = v.ward)", [V]),
    ("SELECT (SELECT minutes FROM visit ORDER BY id LIMIT 1)", [V]),
    ("SELECT 3 FROM visit WHERE (day, ward) IN (SELECT day, ward FROM visit)", [V]),
    ("SELECT (SELECT count(*) FROM visit w WHERE w.day < v.day) FROM visit v", [V]),
    ("SELECT x FROM (SELECT minutes AS x FROM visit ORDER BY id LIMIT 2)", [V]),
    ("SELECT minutes FROM visit WHERE id = (SELECT max(id) FROM visit)", [V]),
    ("SELECT minutes FROM visit WHERE id > 3 AND id < 9", [V]),
    ("SELECT minutes FROM main.visit WHERE visit.id IN (3, 4, 5, 6)", [V]),
    # set operations
    ("SELECT minutes FROM visit UNION ALL SELECT day FROM visit", [V]),
    ("SELECT minutes FROM visit UNION SELECT day FROM visit", [V]),
    ("SELECT day FROM visit INTERSECT SELECT minutes FROM visit", [V]),
    ("SELECT day FROM visit EXCEPT SELECT day FROM holiday", [V]),
    ("SELECT day FROM holiday EXCEPT SELECT day FROM visit", [V]),
    ("SELECT dose FROM drug UNION ALL SELECT minutes FROM visit", [D, V]),
    ("SELECT 1 FROM visit UNION ALL SELECT 2 FROM ward", [V]),
    ("VALUES ((SELECT count(*) FROM visit)), (1)", [V]),
    ("SELECT minutes FROM visit UNION ALL SELECT 1 ORDER BY 1 LIMIT 2", [V]),
    # views
    ("SELECT minutes FROM long_visit", [V]),
    ("SELECT total FROM long_ward", [V]),
    ("SELECT count(*) FROM long_ward", [V]),
    ("SELECT l.minutes FROM long_visit l JOIN visit v USING (id)", [V]),
    ("SELECT max(total) FROM long_ward WHERE name <> 'north'", [V]),
    # errors in the rows of some people
    ("SELECT abs(-9223372036854775808) FROM visit WHERE minutes = 40", [V]),
    ("SELECT minutes FROM visit UNION ALL SELECT abs(-9223372036854775808) FROM visit WHERE minutes = 40", [V]),
    ("SELECT CASE WHEN day = 3 THEN abs(-9223372036854775808) ELSE 1 END FROM visit", [V]),
    ("SELECT json_extract(note, '$.a') FROM visit", [V]),
    ("SELECT value FROM visit, json_each(note)", [V]),
    ("SELECT value FROM visit, json_each(visit.note) WHERE json_valid(note)", [V]),
    ("SELECT sum(9223372036854775807) FROM visit", [V]),
    ("SELECT CASE WHEN minutes = 40 THEN length(zeroblob(2000000000)) ELSE 1 END FROM visit", [V]),
    ("SELECT (SELECT minutes FROM visit a WHERE a.note = v.note) FROM visit v", [V]),
    # functions
    ("SELECT substr(note, 2, 2) FROM visit", [V]),
    ("SELECT instr(note, 'i') FROM visit", [V]),
    ("SELECT unicode(note) % 10 FROM visit", [V]),
    ("SELECT round(minutes / 3.0) FROM visit", [V]),
    ("SELECT printf('%d', minutes) FROM visit", [V]),
    ("SELECT strftime('%d', 'now') - strftime('%d', 'now') + 1 FROM visit", [V]),
    ("SELECT julianday(date('2024-01-01', '+' || day || ' days')) - 2460310.5 FROM visit", [V]),
    ("SELECT coalesce(minutes, day, 0) FROM visit", [V]),
    ("SELECT nullif(minutes, 5) FROM visit", [V]),
    ("SELECT length(upper(note) || lower(ward)) FROM visit", [V]),
]
if sqlite3.sqlite_version_info < (3, 35):
    QUESTIONS = [question for question in QUESTIONS if "MATERIALIZED" not in question[0]]
