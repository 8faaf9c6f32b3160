"""Random questions that SQLite can often prove to be one loop, and random databases with odd values for them."""

import random
import sqlite3

import question_reference as reference

TABLES = {"visit": ["id", "patient", "ward", "day", "minutes", "note"], "exam": ["visit", "test", "result"],
          "drug": ["patient", "day", "name", "dose"], "long_visit": ["id", "patient", "ward", "minutes"]}
PUBLIC = {"ward": ["name", "beds", "site"], "holiday": ["day", "label"], "price": ["name", "lo", "hi", "amount"]}
ODD = [None, 0, 1, -3, 7, 2**53, 2**63 - 1, -2**63, 0.5, -2.75, 1e300, "12", " 7x", "North", "north ", "", b"", b"\x00a", b"12"]


def database(path, seed):
    """Makes a file with the tables of question_reference.py, in which some cells have values of an unusual type or size."""
    pick = random.Random(seed)
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(reference.SCHEMA)
    reference.hospital(db, seed)
    for table, columns in (("visit", ["ward", "day", "minutes", "note"]), ("exam", ["test", "result", "visit"]), ("drug", ["dose"]),
                           ("ward", ["beds", "site"]), ("price", ["lo", "amount"])):
        rows = [row[0] for row in db.execute(f"SELECT {'rowid' if table != 'drug' else 'day'} FROM {table}")]
        for row in pick.sample(rows, len(rows) // 4):
            db.execute(f"UPDATE {table} SET {pick.choice(columns)} = ? WHERE {'rowid' if table != 'drug' else 'day'} = ?",
                       (pick.choice(ODD), row))
    db.close()


class Question:
    """A random query. `columns` are the columns that its expressions may use."""

    def __init__(self, pick):
        self.pick = pick
        self.table = pick.choice(["visit"] * 6 + ["exam", "drug", "long_visit"])
        alias = pick.choice([self.table, "t", '"t"', "[some rows]"])
        source = self.table if alias == self.table else f"{self.table} {pick.choice(['', 'AS '])}{alias}"
        self.columns = [f"{alias}.{c}" for c in TABLES[self.table]]
        joins = ""
        for number in range(pick.choice([0, 0, 0, 0, 1, 1, 2])):
            joins += self.join(f"p{number}")
        self.source = source + joins

    def join(self, alias):
        pick = self.pick
        public = pick.choice(list(PUBLIC))
        mine, theirs = pick.choice(self.columns), [f"{alias}.{c}" for c in PUBLIC[public]]
        condition = f"{pick.choice(theirs)} {pick.choice(['=', '=', '=', '<', 'IS'])} {mine}"
        self.columns = self.columns + theirs
        kind = pick.choice(["JOIN", "LEFT JOIN", "CROSS JOIN", "JOIN"])
        return f" {kind} {public} AS {alias} ON {condition}"

    def value(self, depth=0):
        pick = self.pick
        if depth > 2 or pick.random() < 0.4:
            return pick.choice([pick.choice(self.columns)] * 4 + ["3", "-1", "2.5", "'north'", "NULL"])
        a, b, c = (self.value(depth + 1) for _ in range(3))
        return pick.choice([
            f"({a} {pick.choice(['+', '-', '*', '/', '%', '&', '|', '<<', '>>'])} {b})", f"coalesce({a}, {b})", f"round({a}, 1)",
            f"length({a})", f"CASE WHEN {self.condition(depth + 1)} THEN {a} ELSE {b} END", f"iif({a} > {b}, {c}, 1)", f"typeof({a}) = 'text'",
            f"CAST({a} AS {pick.choice(['INT', 'TEXT', 'REAL', 'BLOB', 'NUMERIC'])})", f"nullif({a}, {b})", f"-({a})", f"~({a})",
            f"ifnull({a}, {b}) /* FROM ( */", f"unicode({a})", f"{a} IS NOT NULL", f"NOT {a}"])

    def condition(self, depth=0):
        pick = self.pick
        a, b = self.value(depth + 1), self.value(depth + 1)
        simple = pick.choice([f"{a} {pick.choice(['=', '<', '>', '<=', '<>', 'IS', 'IS NOT'])} {b}", f"{a} IS NULL", f"{a} NOT NULL",
                              f"{a} BETWEEN {b} AND 30", f"{pick.choice(self.columns)} > {pick.randrange(-5, 30)}",
                              f"{pick.choice(self.columns)} <> ' FROM '"])
        if depth > 1 or pick.random() < 0.6:
            return simple
        return f"({simple} {pick.choice(['AND', 'OR'])} {self.condition(depth + 1)})"

    def select(self, count):
        """Returns a query with `count` columns."""
        pick = self.pick
        values = [self.value() for _ in range(count)]
        where = f" WHERE {self.condition()}" if pick.random() < 0.6 else ""
        sql = f"SELECT {', '.join(values)} FROM {self.source}{where}"
        if pick.random() < 0.1 and self.source == self.table:
            names = ", ".join(f"v{i}" for i in range(count))
            inner = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
            sql = f"SELECT {names} FROM (SELECT *, {inner} FROM {self.source}){where.replace(self.table + '.', '')}"
        return sql + pick.choice(["", "", "", " -- FROM", ";", " /* all"])


# a kind of release, its options, and the number of columns of its question
KINDS = [("sum", {"clip": 50}, 1), ("count", {"clip": 3}, 1), ("avg", {"clip": 4, "lo": -10, "hi": 50}, 1), ("count_distinct", {}, 1),
         ("group_count", {"clip": 3, "keys": ["north", "south", "1", "0"]}, 1), ("group_sum", {"clip": 9, "keys": [0, 1, 5, "text"]}, 2),
         ("quantile", {"q": 0.5, "lo": 0, "hi": 40, "clip": 3}, 1)]


def questions(seed, count):
    """Yields the kind, the options and the text of `count` random questions that SQLite can compile."""
    pick = random.Random(seed)
    db = sqlite3.connect(":memory:")
    db.executescript(reference.SCHEMA)
    while count:
        kind, options, columns = pick.choice(KINDS)
        sql = Question(pick).select(columns)
        try:
            db.execute("EXPLAIN " + sql)
        except sqlite3.Error:
            continue
        count -= 1
        yield kind, options, sql
