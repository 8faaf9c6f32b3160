"""Random questions that SQLite can often prove to be one loop, and random databases with odd values for them."""

import contextlib
import json
import random
import re
import sqlite3

from conftest import ledger_of
from fixed_noise import run_fixed
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
    """A random query. `columns` are the columns that its expressions may use, and `names` are the tables that it names. `tables`
    gives the columns of the protected tables and views, and `likely` is a list of their names with repetitions. With `pairs`,
    some queries name several protected tables."""

    def __init__(self, pick, tables=TABLES, likely=("visit",) * 6 + ("exam", "drug", "long_visit"), pairs=False):
        self.pick, self.tables, self.pairs = pick, tables, pairs
        self.table = pick.choice(likely)
        self.names = {self.table}
        alias = pick.choice([self.table, "t", '"t"', "[some rows]"])
        source = self.table if alias == self.table else f"{self.table} {pick.choice(['', 'AS '])}{alias}"
        self.columns = [f"{alias}.{c}" for c in tables[self.table]]
        joins = ""
        for number in range(pick.choice([0, 0, 0, 0, 1, 1, 2])):
            joins += self.join(f"p{number}")
        self.source = source + joins

    def join(self, alias):
        pick = self.pick
        choice = self.tables if self.pairs and pick.random() < 0.1 else PUBLIC
        other = pick.choice(list(choice))
        self.names.add(other)
        mine, theirs = pick.choice(self.columns), [f"{alias}.{c}" for c in choice[other]]
        condition = f"{pick.choice(theirs)} {pick.choice(['=', '=', '=', '<', 'IS'])} {mine}"
        self.columns = self.columns + theirs
        kind = pick.choice(["JOIN", "LEFT JOIN", "CROSS JOIN", "JOIN"])
        return f" {kind} {other} AS {alias} ON {condition}"

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
        if self.pairs and count == 1 and pick.random() < 0.1:
            return f"SELECT {pick.choice(['count(', 'count(DISTINCT '])}{values[0]}) FROM {self.source}{where}"
        if pick.random() < 0.1 and self.source == self.table:
            names = ", ".join(f"v{i}" for i in range(count))
            inner = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
            sql = f"SELECT {names} FROM (SELECT *, {inner} FROM {self.source}){where.replace(self.table + '.', '')}"
        return sql + pick.choice(["", "", "", " -- FROM", ";", " /* all"])


# a kind of release, its options, and the number of columns of its question
KINDS = [("sum", {"clip": 50}, 1), ("count", {"clip": 3}, 1), ("avg", {"clip": 4, "lo": -10, "hi": 50}, 1), ("count_distinct", {}, 1),
         ("group_count", {"clip": 3, "keys": ["north", "south", "1", "0"]}, 1), ("group_sum", {"clip": 9, "keys": [0, 1, 5, "text"]}, 2),
         ("quantile", {"q": 0.5, "lo": 0, "hi": 40, "clip": 3}, 1)]


def may_be_counted(kind, sql, schema=reference.SCHEMA):
    """Returns whether a kind that counts takes a question. It refuses one that gives the single number 0 for a unit without rows. A
    count of units refuses one that gives a single NULL as well."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema)
        return db.execute(sql).fetchall() not in ([(0,)], [(0.0,)], [(None,)])[:2 if kind == "count" else 3]


def questions(seed, count, schema=reference.SCHEMA, **more):
    """Yields the kind, the options and the text of `count` random questions that SQLite can compile, and the protected
    tables that the question names."""
    pick = random.Random(seed)
    db = sqlite3.connect(":memory:")
    db.executescript(schema)
    while count:
        kind, options, columns = pick.choice(KINDS)
        question = Question(pick, **more)
        sql = question.select(columns)
        try:
            db.execute("EXPLAIN " + sql)
        except sqlite3.Error:
            continue
        if kind in ("count", "count_distinct") and not may_be_counted(kind, sql, schema):
            continue
        count -= 1
        yield kind, options, sql, {{"long_visit": "visit", "long_exam": "exam"}.get(name, name) for name in question.names if name not in PUBLIC}


# ---- exact integers --------------------------------------------------------------------------------


def released(path, policy, statements, init="SELECT dp_init()"):
    """Returns the exact integers of the releases "0", "1" and so on, which several statements make with the same noise."""
    run_fixed(path, [init, *("SELECT " + call for call in policy), "SELECT dp_tier('t', 1e4, 1e15, 1e-6)",
                     *("SELECT fixed_seed(1); " + sql for sql in statements)])
    with ledger_of(path) as ledger:
        return [ledger.execute("SELECT key, component, value FROM dp_path WHERE release_id = (SELECT id FROM dp_release WHERE name = ?)"
                               " ORDER BY 1, 2", (str(i),)).fetchall() for i in range(len(statements))]


def integers(path, policy, asked, **more):
    """Returns the exact integers that several questions release."""
    return released(path, policy, ["SELECT dp_release('t', '{}', '{}', '{}')".format(
        kind, sql.replace("'", "''"), json.dumps({**options, "name": str(i)})) for i, (kind, options, sql) in enumerate(asked)], **more)


def integers_by_hand(path, asked, apart, encoding="UTF-8"):
    """Returns the integers of questions that read nothing but tables of the rows that plain SQLite gives for each unit. `apart` are
    the databases of the units."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA encoding = '{encoding}'")  # SQLite reads numbers from blobs in this encoding
    db.execute("BEGIN")
    queries = []
    for i, (kind, options, sql, tables) in enumerate(asked):
        db.execute(f"CREATE TABLE t{i}(c0, c1, unit)")
        for unit, own in enumerate(apart.values()):
            for row in reference.evaluate(own, sql, tables):
                db.execute(f"INSERT INTO t{i} VALUES (?, ?, ?)", (row[0], row[-1], unit))
        names = {"count_distinct": "1", "group_sum": "c0, c1"}.get(kind, "c0")
        queries.append((kind, options, f"SELECT {names} FROM t{i}"))
    db.execute("COMMIT")
    db.close()
    return integers(path, [f"dp_protect('t{i}', 'unit')" for i in range(len(asked))], queries)


# ---- tables with links -----------------------------------------------------------------------------

# the definition of a key, what follows the columns, the affinity with which links compare with the key, and the collation
ALIAS = ("INTEGER PRIMARY KEY", "", "number", "BINARY")
LINK_KEYS = [ALIAS] * 6 + [
    ("INTEGER PRIMARY KEY DESC", "", "number", "BINARY"), ("INT PRIMARY KEY", "", "number", "BINARY"), ("PRIMARY KEY", "", "any", "BINARY"),
    ("REAL PRIMARY KEY", "", "number", "BINARY"), ("NUMERIC UNIQUE", "", "number", "BINARY"), ("TEXT UNIQUE", "", "text", "BINARY"),
    ("TEXT COLLATE NOCASE PRIMARY KEY", "", "text", "NOCASE"), ("TEXT COLLATE RTRIM UNIQUE", "", "text", "RTRIM"),
    ("TEXT", "INDEX NOCASE", "text", "NOCASE"), ("COLLATE RTRIM", "INDEX BINARY", "any", "BINARY"),
    ("INTEGER PRIMARY KEY", "WITHOUT ROWID", "number", "BINARY"), ("TEXT COLLATE NOCASE PRIMARY KEY", "WITHOUT ROWID", "text", "NOCASE"),
    ("PRIMARY KEY COLLATE NOCASE", "WITHOUT ROWID", "any", "NOCASE")]
ODD_KEYS = [None, 1, 2, 3, 77, -5, 1.0, 2.5, "1", "2 ", " 3", "a", "A", "a ", b"1", b"a", 2**53 + 1, 2.0**53, "9007199254740993", 2**63 - 1,
            9.3e18]
ODD_UNITS = [None, 1, 2, 3, 4, 1.0, 2.5, "1", "2", "a", "A", "a ", "Bob", "bob", b"a", ""]
LINKED = {"visit": ["id", "patient", "ward", "day", "minutes", "note"], "exam": ["code", "visit", "test", "result"],
          "part": ["exam", "n", "weight"], "long_exam": ["code", "visit", "result"]}
LIKELY = {"tables": LINKED, "likely": ["visit", "exam", "exam", "part", "part", "long_exam"], "pairs": True}


class Linked:
    """A random schema in which a visit names its patient, an exam refers to its visit, and a part refers to its exam. Some links are
    NULL, lead to no row or are spelled in another way than the key, and some visits have no patient."""

    def __init__(self, seed):
        self.pick = pick = random.Random(f"linked {seed}")
        self.visit, self.exam = pick.choice(LINK_KEYS), pick.choice(LINK_KEYS)
        unit = pick.choice(["INT", "INT", "TEXT", "TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM", "REAL", "NUMERIC", ""])
        self.unit = ("any" if not unit else "text" if "TEXT" in unit else "number", unit.partition("COLLATE ")[2] or "BINARY")
        link, other = (pick.choice(["INT", "INT", "TEXT", "TEXT COLLATE NOCASE", "REAL", "NUMERIC", ""]) for _ in range(2))
        part = pick.choice([f"exam {other}, n INT, weight INT)", f"exam {other}, n INT, weight INT)", f"exam {other}, n INT, weight INT,"
                            " PRIMARY KEY (exam, n)) WITHOUT ROWID", "exam INTEGER PRIMARY KEY, n INT, weight INT)"])
        self.schema = (self.table("visit", "id", self.visit, f"patient {unit}, ward TEXT, day INT, minutes INT, note TEXT")
                       + self.table("exam", "code", self.exam, f"visit {link}, test TEXT, result INT") + f"CREATE TABLE part({part};"
                       + "CREATE VIEW long_exam AS SELECT code, visit, result FROM exam WHERE result > 1;"
                       + "".join(t + ";" for t in reference.SCHEMA.split(";") if any(f"TABLE {name}(" in t for name in PUBLIC)))
        self.policy = ["dp_protect('visit', 'patient')", "dp_protect('exam', 'visit', 'visit')", "dp_protect('part', 'exam', 'exam')",
                       reference.POLICY[-1]]
        self.affinities = sqlite3.connect(":memory:")
        self.affinities.execute("CREATE TABLE cell(number NUMERIC, text TEXT, \"any\" BLOB)")

    def make(self, path, encoding="UTF-8"):
        """Makes a file with the tables and their rows. Returns the databases of the units, as split() does."""
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(f"PRAGMA encoding = '{encoding}'")
            self.fill(db)
            return self.split(db)

    @staticmethod
    def table(name, column, key, columns):
        definition, after, _, _ = key
        index = f"CREATE UNIQUE INDEX {name}_key ON {name}({column} COLLATE {after[6:]});" if after.startswith("INDEX") else ""
        return f"CREATE TABLE {name}({column} {definition}, {columns}) {after * (not index)};{index}"

    def fill(self, db):
        """Makes the tables and their rows. A row that SQLite refuses, for example because its key is not new, is left out."""
        pick = self.pick
        db.executescript(self.schema)
        for sql in reference.public_rows(pick):
            db.execute(*sql)
        keys = {}
        for name, others in (("visit", lambda: (pick.choice(ODD_UNITS), pick.choice(["north", "south", "attic", None]), pick.randrange(30),
                                                pick.choice([0, 5, 15, 25, 40, -3, None]), pick.choice(["fine", "12", " 7", None]))),
                             ("exam", lambda: (self.spelled(keys["visit"]), pick.choice(["blood", "BLOOD"]), pick.choice([1, 2, 3, None]))),
                             ("part", lambda: (pick.randrange(9), pick.choice([0, 1, 4, -2])))):
            for number in range(pick.choice([5, 40, 40, 250])):
                row = [self.spelled(keys["exam"]) if name == "part" else pick.choice([*ODD_KEYS, *range(100, 100 + 3 * (number + 1))]), *others()]
                if pick.random() < 0.25:
                    row[pick.randrange(len(row) - (name == "visit") - 1, len(row))] = pick.choice(ODD)
                try:
                    db.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
                except (sqlite3.Error, OverflowError):
                    pass
            keys[name] = [row[0] for row in db.execute(f"SELECT * FROM {name}")]

    def spelled(self, keys):
        """Returns a link, which mostly refers to one of the keys."""
        pick = self.pick
        key = pick.choice([*keys, *keys, None, 5000])
        way = pick.randrange(9)
        if way == 0:
            return pick.choice(ODD_KEYS)
        if isinstance(key, str):
            return {1: key.upper(), 2: key.lower(), 3: key + " ", 4: key.rstrip()}.get(way, key)
        if isinstance(key, int):
            return {1: str(key), 2: float(key), 3: f" {key}"}.get(way, key)
        return key

    def same(self, value, affinity, collation):
        """Returns a Python value that is the same for two SQL values exactly if they are equal under the affinity and the
        collation. Returns None for NULL."""
        self.affinities.execute("DELETE FROM cell")
        self.affinities.execute(f"INSERT INTO cell(\"{affinity}\") VALUES (?)", (value,))
        ((value,),) = self.affinities.execute(f"SELECT \"{affinity}\" FROM cell").fetchall()
        if isinstance(value, str):
            value = "".join(c.lower() if c.isascii() else c for c in value) if collation == "NOCASE" else value
            value = value.rstrip(" ") if collation == "RTRIM" else value
        return value if value is None else ("number" if isinstance(value, (int, float)) else type(value).__name__, value)

    def split(self, db):
        """Returns a plain database for each unit, with the rows of the unit and the public tables."""
        rows = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in [*PUBLIC, "visit", "exam", "part"]}
        visits = {self.same(row[0], *self.visit[2:]): self.same(row[1], *self.unit) for row in rows["visit"]}
        visits[None] = None  # a NULL link is not equal to a NULL key
        exams = {self.same(row[0], *self.exam[2:]): visits.get(self.same(row[1], *self.visit[2:])) for row in rows["exam"]}
        exams[None] = None
        owners = {"visit": [self.same(row[1], *self.unit) for row in rows["visit"]],
                  "exam": [visits.get(self.same(row[1], *self.visit[2:])) for row in rows["exam"]],
                  "part": [exams.get(self.same(row[0], *self.exam[2:])) for row in rows["part"]]}
        found = {}
        for unit in {unit for units in owners.values() for unit in units} - {None}:
            found[unit] = sqlite3.connect(":memory:", isolation_level=None)
            found[unit].execute(f"PRAGMA encoding = '{db.execute('PRAGMA encoding').fetchone()[0]}'")
            found[unit].executescript(self.schema)
            for name in rows:
                own = [row for row, owner in zip(rows[name], owners.get(name, [unit] * len(rows[name]))) if owner == unit]
                if own:
                    found[unit].executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(own[0]))})", own)
        return found


# ---- questions of every shape ----------------------------------------------------------------------

INDICES = ["visit(day)", "visit(ward, minutes)", "visit(minutes) WHERE minutes > 5", "visit(day + minutes)", "visit(note COLLATE NOCASE)",
           "visit(patient, day, minutes, ward)", "exam(visit)", "exam(result, test)", "exam(visit, result) WHERE result IS NOT NULL", "drug(name)",
           "drug(dose, day)", "ward(site)", "ward(beds, name)", "price(name)", "price(lo, hi, amount)", "price(amount) WHERE amount > 2"]


def indices(pick):
    """Returns statements that make some indices, and perhaps collect statistics."""
    some = pick.sample(INDICES, pick.randrange(len(INDICES) + 1))
    return "".join(f"CREATE INDEX random_{i} ON {index};" for i, index in enumerate(some)) + pick.choice(["", "ANALYZE;"])


class Shape(Question):
    """A random query with subqueries, common table expressions, joins of every kind, groups, windows and compounds. Which rows a query takes
    may depend on the order in which SQLite reads them; truth() finds out."""

    NEW = sqlite3.sqlite_version_info

    def __init__(self, pick, outer=(), depth=0, ctes=(), wild=1):
        self.pick, self.depth, self.ctes, self.wild, self.outer = pick, depth, ctes, wild, list(outer)
        self.source, self.columns, self.own = "", [], []
        for i in range(pick.choice([1, 1, 1, 1, 2, 2, 3]) if depth < 2 else 1):
            self.add(f"{'abcdef'[depth]}{i}", i)

    def inside(self, outer=()):
        """Returns a query for a place inside this one."""
        return Shape(self.pick, outer, self.depth + 1, self.ctes, self.wild)

    def relation(self):
        """Returns something to select from, and the names of its columns."""
        pick = self.pick
        way = pick.random()
        if self.ctes and way < 0.3:
            return pick.choice(self.ctes), ["x", "y"]
        if self.depth < 2 and way < 0.3 + 0.1 * self.wild:
            inner = self.inside()
            return f"({inner.query(['x', 'y'])})", ["x", "y"]
        tables = TABLES if pick.random() < 0.7 else PUBLIC
        name = pick.choice(list(tables) + ["visit"] * 3 * (tables is TABLES))
        return name, tables[name] + ["rowid"] * (name in ("visit", "exam") and pick.random() < 0.2)

    def add(self, alias, number):
        pick = self.pick
        relation, names = self.relation()
        columns = [f"{alias}.{c}" for c in names]
        word = ""
        if number:
            word = pick.choice([", ", " JOIN ", " JOIN ", " LEFT JOIN ", " LEFT JOIN ", " CROSS JOIN "] + [" RIGHT JOIN ", " FULL JOIN "] * (self.NEW >= (3, 39)))
        condition = ""
        if number and word not in (", ", " CROSS JOIN ") or (number and pick.random() < 0.3 and word != ", "):
            condition = f" ON {pick.choice(columns)} {pick.choice(['=', '=', '=', '<', 'IS'])} {pick.choice(self.own)}"
        self.source += f"{word}{relation} AS {alias}{condition}"
        self.own += columns
        self.columns = self.own + self.outer * (pick.random() < 0.7)

    def aggregate(self):
        pick = self.pick
        x = pick.choice(self.own)
        call = pick.choice(["count(*)", f"count({x})", f"max({x})", f"min({x})", f"total({x})", f"sum({x})", f"avg({x})", f"count(DISTINCT {x})"])
        if pick.random() < 0.2:
            call += f" FILTER (WHERE {self.condition(2)})"
        return call

    def value(self, depth=0):
        pick = self.pick
        if self.depth < 3 and pick.random() < 0.08 * self.wild:
            inner = self.inside(self.columns)
            way = pick.randrange(4)
            if way == 0:
                return f"(SELECT {inner.aggregate()} FROM {inner.source}{inner.where()})"
            if way == 1:
                return f"({inner.query(['x'], limit=1)})"
            if way == 2:
                return f"EXISTS ({inner.query(['x'])})"
            return f"({super().value(2)} {pick.choice(['IN', 'NOT IN'])} ({inner.query(['x'])}))"
        return super().value(depth)

    def condition(self, depth=0):
        pick = self.pick
        if self.depth < 3 and pick.random() < 0.25 * self.wild:
            inner = self.inside(self.columns)
            text = inner.query(["x"])
            return pick.choice([f"EXISTS ({text})", f"EXISTS ({text})", f"NOT EXISTS ({text})", f"{super().value(2)} IN ({text})",
                                f"{super().value(2)} NOT IN ({text})"])
        if pick.random() < 0.1:
            x = pick.choice(self.columns)
            return pick.choice(["1", "0", f"{x} IN (1, 5, 'north', NULL)", f"{x} COLLATE NOCASE = 'NORTH'", f"{x} COLLATE RTRIM > 'a'", f"{x} LIKE 'n%'"])
        return super().condition(depth)

    def where(self):
        return f" WHERE {self.condition()}" if self.pick.random() < 0.6 else ""

    def core(self, names):
        pick = self.pick
        way = pick.random() / self.wild
        head = lambda values: ", ".join(f"{v} AS {n}" for v, n in zip(values, names))
        where = self.where()
        if way < 0.12:
            return f"SELECT {head([self.aggregate() for _ in names])} FROM {self.source}{where}"
        if way < 0.24:
            key = pick.choice(self.own)
            having = f" HAVING {self.aggregate()} > {pick.randrange(3)}" if pick.random() < 0.4 else ""
            return f"SELECT {head([pick.choice([key, self.aggregate()]) for _ in names])} FROM {self.source}{where} GROUP BY {key}{having}"
        if way < 0.32 and not self.outer:
            x, y, z = (pick.choice(self.own) for _ in range(3))
            call = pick.choice(["row_number()", "rank()", "dense_rank()", f"count({x})", f"max({x})", f"lag({x})", f"first_value({x})"])
            over = pick.choice(["", f"PARTITION BY {y}", f"PARTITION BY {y} ORDER BY {z}, {x}", f"ORDER BY {x}, {y}, {z}"])
            return f"SELECT {head([f'{call} OVER ({over})'] + [self.value() for _ in names[1:]])} FROM {self.source}{where}"
        values = [self.value() if pick.random() < 0.8 else pick.choice(["1", "2", "NULL"]) for _ in names]
        return f"SELECT {'DISTINCT ' * (pick.random() < 0.25 * self.wild)}{head(values)} FROM {self.source}{where}"

    def query(self, names, limit=None):
        """Returns a query with columns of these names."""
        pick = self.pick
        sql = self.core(names)
        if pick.random() < 0.12 * self.wild:
            sql += f" {pick.choice(['UNION ALL', 'UNION ALL', 'UNION', 'INTERSECT', 'EXCEPT'])} {self.inside(self.outer).core(names)}"
        if limit or pick.random() < 0.1 * self.wild:
            numbers = ", ".join(str(i + 1) + pick.choice(["", " DESC", ""]) for i in range(len(names)))
            sql += f" ORDER BY {numbers} LIMIT {limit or pick.choice([1, 1, 2, 3, -1])}{pick.choice(['', '', ' OFFSET 1'])}"
        return sql


def shape(pick):
    """Returns a random question of one column, and the protected tables that it names."""
    wild = pick.choice([0.1, 0.1, 1])  # a tame question is mostly evaluated for all units at once
    ctes = {}
    while pick.random() < 0.25 and len(ctes) < 2:
        name = f"cte{len(ctes)}"
        if pick.random() < 0.3:
            start = Shape(pick, (), 2).query(["x"], limit=1)
            ctes[name] = f"{name}(x, y) AS (SELECT 1, ({start}) UNION ALL SELECT x + 1, y FROM {name} WHERE x < {pick.randrange(2, 6)})"
        else:
            materialized = pick.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "]) if Shape.NEW >= (3, 35) else ""
            ctes[name] = f"{name}(x, y) AS {materialized}({Shape(pick, (), 1, tuple(ctes), wild).query(['x', 'y'])})"
    sql = Shape(pick, (), 0, tuple(ctes), wild).query(["v"])
    used = []
    for name in reversed(ctes):
        if name in "".join([sql, *used]):  # SQLite does not even look for the tables of an expression that is not used
            used.insert(0, ctes[name])
    sql = (f"WITH RECURSIVE {', '.join(used)} " if used else "") + sql
    return sql, {{"long_visit": "visit"}.get(name, name) for name in re.findall(f"(?<![.\\w])({'|'.join(TABLES)}) AS", sql)}


def shapes(seed, count, schema=reference.SCHEMA):
    """Yields `count` random questions of every shape that SQLite can compile, and the protected tables that each names."""
    pick = random.Random(f"shapes {seed}")
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema)
        while count:
            sql, tables = shape(pick)
            try:
                db.execute("EXPLAIN " + sql)
            except (sqlite3.Error, sqlite3.Warning):
                continue
            if tables:
                count -= 1
                yield sql, tables


def truth(own, sql, tables, steps=200000):
    """Returns the rows that a query gives for a unit, whose rows are in the database `own`, or None if they depend on the order in which
    SQLite reads the rows, or need very many steps."""
    answers = []
    calls = [0]

    def count():
        calls[0] += 1
        return calls[0] > steps // 1000

    own.set_progress_handler(count, 1000)
    for order in ("OFF", "ON"):
        own.execute(f"PRAGMA reverse_unordered_selects = {order}")
        rows = reference.evaluate(own, sql, tables)
        answers.append(sorted(reference.number(row[0]) for row in rows))
        if calls[0] > steps // 1000:
            answers.append(None)
    own.set_progress_handler(None, 0)
    return rows if all(answer == answers[0] for answer in answers) else None
