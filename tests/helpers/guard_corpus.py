"""What the tests of guarded connections compare: kinds of secrets, changes of the schema, and statements of all kinds."""

import contextlib
import random

from conftest import connect, one
from guard_helpers import release
from guard_statements import AGGREGATES, JOINED, NAMED, READ, REFUSED, USING


def lose_a_person(db):
    db.execute("DELETE FROM visit WHERE patient = 7")


def change_an_undeclared_table(db):
    db.executescript("INSERT INTO secret(x) VALUES ('more'), ('hidden too'); ALTER TABLE secret ADD COLUMN minutes INT DEFAULT 10;"
                     "CREATE TABLE name(beds, minutes); INSERT INTO name VALUES (12, 10); CREATE INDEX secret_x ON secret(x)")


def spend_inside(db):
    release(db, "clinic", "more")
    release(db, "clinic", None, "count", clip=3)
    one(db, "SELECT dp_discard('inner')")
    release(db, "clinic", "inner")
    one(db, "SELECT dp_grant('inside', 'clinic', 0.3)")


SIDES = {"person": lose_a_person, "undeclared": change_an_undeclared_table, "inner": spend_inside}

# What another connection does to both databases between two runs of the statements.
CHANGES = ["CREATE TABLE aside(minutes INT, x)", "ALTER TABLE visit ADD COLUMN extra", "ALTER TABLE secret ADD COLUMN later", "ANALYZE",
           "CREATE INDEX visit_minutes ON visit(minutes)", "CREATE VIEW peek AS SELECT minutes FROM visit", "DROP TABLE aside",
           "CREATE TABLE kin(id INTEGER, patient INT, minutes INT); SELECT dp_protect('kin', 'patient')", "CREATE TABLE more(y); SELECT dp_public('more')", "VACUUM", "ALTER TABLE ward RENAME COLUMN beds TO places",
           "SELECT dp_protect('ward', 'places')", "DROP TABLE ward; CREATE VIEW ward AS SELECT patient AS name, minutes AS beds FROM visit"]


def grammar(seed, count):
    """Returns random SELECTs: joins with USING and NATURAL, common table expressions that shadow tables, set operations, subqueries and
    windows, over tables that the connection has and tables that it has not."""
    random_of = random.Random(seed)
    tables = ["visit", "ward", "secret", "main.visit", "main.ward", "dp_value", "dp_policy", "w", "sqlite_master", "visits", "json_each('[10, 11]')", "name"]
    columns = ["minutes", "patient", "name", "beds", "x", "release", "value", "day", "rowid", "1", "*"]

    def term(depth):
        if depth == 0 or random_of.random() < 0.5:
            return random_of.choice(tables)
        return random_of.choice([f"({select(depth - 1)})", f"({select(depth - 1)}) AS {random_of.choice(['visit', 'ward', 'w', 'q'])}"])

    def join(depth):
        left, right = term(depth), term(depth)
        return random_of.choice([f"{left} JOIN {right} USING ({random_of.choice(columns[:7])})", f"{left} NATURAL JOIN {right}", f"{left} LEFT JOIN {right} USING (minutes)",
                                 f"{left} NATURAL LEFT JOIN {right}", f"{left}, {right}", f"{left} JOIN {right} ON {random_of.choice(columns[:8])} = 10", left, left])

    def select(depth):
        column = random_of.choice(columns)
        what = random_of.choice([column, "count(*)", f"max({column.replace('*', '1')})", f"count(*) OVER (ORDER BY {column.replace('*', '1')})"])
        text = f"SELECT {what} FROM {join(depth)}"
        if random_of.random() < 0.4:
            text += " WHERE " + random_of.choice([f"{random_of.choice(columns[:8])} = 10", f"EXISTS ({select(0)})", f"10 IN (SELECT minutes FROM {term(0)})"])
        if random_of.random() < 0.2 and depth:
            text += random_of.choice([" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "]) + select(0)
        return text
    shadow = ["", "WITH w(minutes, patient, name) AS (VALUES (10, 7, 'north'), (11, 7, 'south')) ",
              "WITH w(minutes, x) AS (VALUES (10, 'hidden')), visit AS (SELECT * FROM w) ", "WITH ward AS (SELECT * FROM main.visit), w AS (SELECT * FROM ward) "]
    return [random_of.choice(shadow) + select(2) for _ in range(count)]


READS = [s for s in JOINED + USING + NAMED + READ + grammar(1, 400) + ["SELECT " + call + " FROM ward" for call in AGGREGATES] if "CREATE" not in s]
# Without the authorizer, SQLite shows freed memory in the EXPLAIN of a statement whose temporary table is gone.
CORPUS = [s for s in dict.fromkeys(READS + REFUSED) if not s.startswith(("EXPLAIN INSERT", "EXPLAIN DELETE"))]

# Fewer statements, for hosts other than Python.
STATEMENTS = [s for s in CORPUS if "EXPLAIN" not in s][::6]


def change(path, statements):
    """Changes the database on another connection of this process."""
    with contextlib.closing(connect(path)) as owner:
        for statement in statements.split("; "):
            owner.execute(statement).fetchall()
