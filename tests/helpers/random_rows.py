"""Random schemas, rows and questions for a comparison of the ways in which a question is evaluated. Most questions are row by row or
almost so: what makes the difference is one word (ext/query/question_text.c)."""

import contextlib
import random
import sqlite3

UNITS = [None, 1, 1.0, "1", "1.0", 2, 3, 2.5, "a", "A", "a ", "Bob", "bob", "BOB ", "", b"a", b"", b"1", 2**53, 2.0**53, 2**53 + 1, -2**63]
UNIT_TYPES = ["INT", "INT", "TEXT", "TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM", "COLLATE NOCASE", "COLLATE RTRIM", "REAL", "NUMERIC", "BLOB", ""]
VALUES = [None, 0, 1, -3, 7, 12, 2**53, 2**63 - 1, -2**63, 0.5, -2.75, 1e300, 9e999, "12", " 7x", "North", "north ", "north", "", b"", b"\x00a", b"12",
          "2024-01-05", "2024-01-06", "0x10", "1e2"]
TYPES = ["INT", "TEXT", "TEXT COLLATE NOCASE", "REAL", "NUMERIC", "BLOB", "", "TEXT COLLATE RTRIM", "INT NOT NULL DEFAULT 3"]
GENERATED = ["{} AS (a + b * 2)", "{} INT AS (coalesce(length(a), b)) VIRTUAL", "{} TEXT AS (CASE WHEN a > b THEN a ELSE 'less' END)",
             "{} AS (round(b, 1)) STORED", "{} COLLATE NOCASE GENERATED ALWAYS AS (typeof(a)) VIRTUAL", "{} AS (abs(b)) STORED"]


class Hospital:
    """Tables that own their units in a column or by a link, and public ones. `plain` are the columns of each that take values, and
    `columns` all of them."""

    def __init__(self, seed):
        self.pick = pick = random.Random(f"rows {seed}")
        unit = pick.choice(UNIT_TYPES)
        affinity = {"INT": "number", "REAL": "number", "NUMERIC": "number", "TEXT": "text"}.get(unit.split(" ")[0], "any")
        self.unit = (affinity, unit.partition("COLLATE ")[2] or "BINARY")
        a, b, c, d, e, f, g = (pick.choice(TYPES) for _ in range(7))
        made = pick.choice(GENERATED)
        self.plain = {"visit": ["id", "who", "a", "b", "key"], "exam": ["n", "visit", "x"], "lab": ["who", "k", "v"], "ward": ["name", "beds", "site"],
                      "day": ["d", "label"]}
        self.columns = {name: list(columns) for name, columns in self.plain.items()}
        self.columns["visit"].append("made")
        keys = pick.choice([("id INTEGER PRIMARY KEY", ""), ("id INT", ""), ("id INTEGER", ", PRIMARY KEY(id)"), ("id INT", ", PRIMARY KEY(id DESC)")])
        self.rowid = {"visit": 1, "exam": 1, "lab": 0, "ward": pick.choice([0, 1]), "day": 1}
        self.schema = [
            f"CREATE TABLE visit({keys[0]}, who {unit}, a {a}, b {b}, key {c}, {made.format('made')}{keys[1] or ', UNIQUE(id)'})",
            f"CREATE TABLE exam(n INT, visit INT, x {d})",
            f"CREATE TABLE lab(who {unit}, k {e.replace(' NOT NULL DEFAULT 3', '')}, v {f}, PRIMARY KEY(k, who, v)) WITHOUT ROWID",
            f"CREATE TABLE ward(name {g}{' PRIMARY KEY' * (not self.rowid['ward'])}, beds INT, site TEXT COLLATE NOCASE){' WITHOUT ROWID' * (not self.rowid['ward'])}",
            "CREATE TABLE day(d INTEGER PRIMARY KEY, label TEXT)",
            *pick.sample(["CREATE INDEX i1 ON visit(a)", "CREATE INDEX i2 ON visit(who, b)", "CREATE INDEX i3 ON ward(beds, name)", "CREATE INDEX i4 ON lab(v)",
                          "CREATE UNIQUE INDEX i5 ON day(label, d)", "CREATE INDEX i6 ON ward(site)", "CREATE INDEX i7 ON exam(visit)"], pick.randrange(8))]
        self.policy = ["dp_protect('visit', 'who')", "dp_protect('exam', 'visit', 'visit')", "dp_protect('lab', 'who')", "dp_public('ward', 'day')"]
        self.cells = sqlite3.connect(":memory:")
        self.cells.execute('CREATE TABLE cell(number NUMERIC, text TEXT, "any" BLOB)')

    def same(self, value):
        """Returns a Python value that is the same for two units exactly if SQLite's column of units says so, or None for NULL."""
        affinity, collation = self.unit
        self.cells.execute("DELETE FROM cell")
        self.cells.execute(f'INSERT INTO cell("{affinity}") VALUES (?)', (value,))
        ((value,),) = self.cells.execute(f'SELECT "{affinity}" FROM cell').fetchall()
        if isinstance(value, str) and collation == "NOCASE":
            value = "".join(c.lower() if c.isascii() else c for c in value)
        if isinstance(value, str) and collation == "RTRIM":
            value = value.rstrip(" ")
        return value if value is None else ("number" if isinstance(value, (int, float)) else type(value).__name__, value)

    def insert(self, db, table, row, rowid=None):
        names = self.plain[table] + ["rowid"] * (rowid is not None)
        values = [*row, rowid] if rowid is not None else row
        db.execute(f"INSERT INTO {table}({', '.join(names)}) VALUES ({', '.join('?' * len(values))})", values)

    def fill(self, path):
        """Makes a file with the tables and their rows. Returns a plain database for each unit, which has its rows and the public ones."""
        pick = self.pick
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            for sql in self.schema:
                db.execute(sql)
            units, many = pick.sample(UNITS, 7), pick.choice([8, 25, 60])
            value = lambda: pick.choice(VALUES) if pick.random() < 0.5 else pick.randrange(6)
            for table, row in (("day", lambda: (pick.randrange(8), pick.choice(["2024-01-05", "2024-01-06", "12", None]))),
                               ("ward", lambda: (value(), pick.randrange(5), pick.choice(["A", "a", "b", None]))),
                               ("visit", lambda: (pick.randrange(99), pick.choice(units), value(), value(), value())),
                               ("exam", lambda: (pick.randrange(5), pick.choice([pick.randrange(99), str(pick.randrange(99)), None]), value())),
                               ("lab", lambda: (pick.choice(units), value(), value()))):
                for _ in range(many if table in ("visit", "exam", "lab") else 7):
                    with contextlib.suppress(sqlite3.Error, OverflowError):  # a key that is not new, a NULL in a key
                        self.insert(db, table, row())
            db.execute(pick.choice(["ANALYZE", "SELECT 1"]))
            return self.split(db)

    def split(self, db):
        rows = {table: db.execute(f"SELECT {'rowid' if self.rowid[table] else 'NULL'}, {', '.join(columns)} FROM {table}").fetchall()
                for table, columns in self.plain.items()}
        visits = {row[1]: self.same(row[2]) for row in rows["visit"] if row[1] is not None}
        owner = {"visit": lambda row: self.same(row[2]), "lab": lambda row: self.same(row[1]), "exam": lambda row: visits.get(row[2])}
        found = {}
        for unit in {owner[table](row) for table in owner for row in rows[table]} - {None}:
            found[unit] = own = sqlite3.connect(":memory:", isolation_level=None)
            own.execute("PRAGMA automatic_index = OFF")  # SQLite 3.40 loses rows where it makes a Bloom filter under RTRIM
            for sql in self.schema:
                own.execute(sql)
            for table in rows:
                for row in rows[table]:
                    if table not in owner or owner[table](row) == unit:
                        self.insert(own, table, row[1:], row[0])
        return found


class Rows:
    """Makes questions that are row by row, and turns some of them into others."""

    def __init__(self, hospital, pick):
        self.hospital, self.pick = hospital, pick

    def quoted(self, name):
        return self.pick.choice([name] * 6 + [name.upper(), f'"{name}"', f"[{name}]", f"`{name}`"])

    def source(self):
        """Returns what follows FROM. Notes the protected table, and the columns that expressions may use."""
        pick = self.pick
        self.table = pick.choice(["visit", "visit", "visit", "exam", "lab"])
        tables = [self.table] + pick.choices(["ward", "day"], k=pick.choice([0, 0, 0, 0, 1, 1, 2]))
        pick.shuffle(tables)
        text, self.columns = "", []
        for i, table in enumerate(tables):
            alias = pick.choice([f"t{i}", f'"t {i}"', f"[from {i}]"]) if len(tables) > 1 or pick.random() < 0.4 else table
            columns = [f"{self.quoted(alias) if alias == table else alias}.{self.quoted(c)}" for c in self.hospital.columns[table]]
            if self.hospital.rowid[table] and pick.random() < 0.3:
                columns.append(f"{alias}.{pick.choice(['rowid', '_rowid_', 'oid', 'ROWID'])}")
            if len(tables) == 1 and pick.random() < 0.3:
                columns += self.hospital.columns[table]
            self.columns += columns
            name = self.quoted(table) + (pick.choice([" ", " AS "]) + alias) * (alias != table)
            if i == 0:
                text = name
                continue
            on = f"{pick.choice(columns)} {pick.choice(['=', '=', '==', 'IS', '>'])} {pick.choice(self.columns)}"
            text += pick.choice([f" JOIN {name} ON {on}", f" INNER JOIN {name} ON {on}", f" CROSS JOIN {name} ON {on}", f", {name}", f" JOIN {name} ON {on} AND {self.condition(2)}"])
        return text

    def value(self, depth=0):
        pick = self.pick
        if depth > 2 or pick.random() < 0.35:
            return pick.choice([pick.choice(self.columns)] * 5 + ["3", "-1", "2.5", "1e3", "0x1F", "'north'", "'a''b'", "x'6100'", "NULL", "9223372036854775807"])
        x, y, z = (self.value(depth + 1) for _ in range(3))
        return pick.choice([
            f"({x} {pick.choice('+ - * / % & | << >> < <= > >= = == <> !='.split())} {y})", f"-{x}".replace("--", "- -"), f"~ {x}", f"NOT {x}", f"+{x}",
            f"coalesce({x}, {y})", f"ifnull({x}, {y})", f"nullif({x}, {y})", f"iif({x} > {y}, {z}, 1)", f"length({x})", f"round({x}, 2)", f"typeof({x}) = 'text'",
            f"unicode({x})", f"CAST({x} AS {pick.choice(['INT', 'TEXT', 'REAL', 'BLOB', 'NUMERIC', 'UNSIGNED BIG INT'])})", f"sign({x})", f"likely({x})",
            f"CASE WHEN {self.condition(depth + 1)} THEN {x} ELSE {y} END", f"CASE {x} WHEN {y} THEN 1 WHEN {z} THEN 2 END /* FROM ( LIMIT */",
            f"({x} COLLATE {pick.choice(['BINARY', 'NOCASE', 'RTRIM'])} < {y})", f"({x} IS NOT NULL)", f"({x} BETWEEN {y} AND {z})"])

    def condition(self, depth=0):
        pick = self.pick
        x, y, z = (self.value(depth + 1) for _ in range(3))
        simple = pick.choice([f"{x} {pick.choice(['=', '<', '>', '<=', '<>', 'IS', 'IS NOT'])} {y}", f"{x} IS NULL", f"{x} NOTNULL", f"{x} ISNULL", f"{x} NOT NULL",
                              f"{x} BETWEEN {y} AND 30", f"{x} NOT BETWEEN 0 AND 3", f"{pick.choice(self.columns)} > {pick.randrange(-5, 9)}",
                              f"{x} IN ({y}, {z}, 1)", f"{x} NOT IN (1, 'north', 12)", f"{x} IN ()", f"({x}, {y}) = ({z}, 1)", f"({x}, {y}) < ({z}, 2)",
                              f"{pick.choice(self.columns)} <> ' FROM ' -- LIMIT 1\n"])
        if depth > 1 or pick.random() < 0.6:
            return simple
        return f"({simple} {pick.choice(['AND', 'OR'])} {self.condition(depth + 1)})"

    def question(self, count):
        """Returns a question with `count` columns, and the protected tables that it names."""
        pick = self.pick
        source, names = self.source(), None
        values = [self.value() for _ in range(count)]
        where = f" {pick.choice(['WHERE', 'where'])} {self.condition()}" if pick.random() < 0.6 else ""
        tables, first = {self.table}, ", ".join(values)
        end = pick.choice(["", "", "", " -- FROM", ";", " /* all"])
        sql = f"{pick.choice(['SELECT', 'select', 'SELECT ALL', '/* x */ SELECT'])} {first} FROM {source}{where}"
        if pick.random() < 0.65:
            return sql + end, tables
        x, y, key = pick.choice(self.columns), pick.choice(self.columns), ", ".join(self.columns)
        other = pick.choice(["exam", "visit", "lab"])
        few = [f"{v} AS v{i}" for i, v in enumerate(values)]
        inner = ", ".join(f"v{i}" for i in range(count))
        made = pick.choice([
            f"SELECT {first} FROM {source}{where} ORDER BY {first}, {key} LIMIT {pick.choice([1, 1, 2, 3])}",
            f"SELECT {', '.join(['1'] * count)} FROM {source}{where} ORDER BY {x} LIMIT 2",
            f"SELECT DISTINCT {first} FROM {source}{where}",
            f"SELECT {first} FROM {source}{where} UNION ALL SELECT {', '.join(['2'] * count)} FROM {self.table}",
            f"SELECT {', '.join(pick.choice(['count(*)', f'max({x})', f'total({y})', f'count(DISTINCT {x})']) for _ in values)} FROM {source}{where}",
            f"SELECT {', '.join(['count(*)'] * count)} FROM {source}{where} GROUP BY {x}",
            f"SELECT {', '.join([f'row_number() OVER (ORDER BY {x}, {key})'] * count)} FROM {source}{where}",
            f"SELECT {first} FROM {source} WHERE EXISTS (SELECT 1)", f"SELECT {first} FROM {source} WHERE EXISTS (SELECT 1 FROM {other})",
            f"SELECT {first} FROM {source} WHERE {x} IN (SELECT d FROM day)", f"SELECT {first} FROM {source} WHERE {x} = (SELECT max(beds) FROM ward)",
            f"SELECT {first} FROM {source} WHERE {x} IN (SELECT {self.hospital.columns[other][0]} FROM {other})",
            f"SELECT {first} FROM {source} LEFT JOIN ward AS w ON w.beds = {x}{where}", f"SELECT {first} FROM {source} JOIN {other} AS o ON o.{self.hospital.columns[other][0]} = {x}",
            f"SELECT {first} FROM {source} JOIN {self.table} AS o ON o.{self.hospital.columns[self.table][0]} = {x}",
            f"SELECT {inner} FROM (SELECT {', '.join(few)} FROM {source}{where})", f"WITH w AS (SELECT {', '.join(few)} FROM {source}{where}) SELECT {inner} FROM w",
            f"SELECT {first} FROM (SELECT * FROM {self.table}) AS t0" if len(self.columns) < 3 else f"SELECT {', '.join(['d'] * count)} FROM {self.table}, day ORDER BY d LIMIT 1",
            f"SELECT {', '.join([f'abs({x})'] * count)} FROM {source}{where}", f"SELECT {', '.join([f'max({x}, {y})'] * count)} FROM {source}{where}",
            f"SELECT {first} FROM {source} WHERE {x} LIKE 'n%'", f"SELECT {', '.join([f'{x} || {y}'] * count)} FROM {source}{where}",
            f"SELECT {', '.join(['*'] * count)} FROM (SELECT 1 FROM {self.table})", f"SELECT {first} FROM main.{source}{where}" if source[0] == self.table[0] else f"SELECT {', '.join(['value'] * count)} FROM {source}, json_each('[1, 2, 3]')"])
        if f"FROM {other}" in made or f"JOIN {other} " in made:
            tables.add(other)
        return made + end, tables


KINDS = [("sum", {"clip": 50}, 1), ("sum", {"clip": 50}, 1), ("count", {"clip": 3}, 1), ("avg", {"clip": 4, "lo": -10, "hi": 50}, 1), ("count_distinct", {}, 1),
         ("group_count", {"clip": 3, "keys": ["north", "south", "1", "0"]}, 1), ("group_sum", {"clip": 9, "keys": [0, 1, 5, "north"]}, 2),
         ("quantile", {"q": 0.5, "lo": 0, "hi": 40, "clip": 3}, 1)]


def questions(hospital, seed, count):
    """Yields the kind, the options and the text of `count` questions that SQLite can compile, and the protected tables that each names."""
    pick = random.Random(f"questions {seed}")
    maker = Rows(hospital, pick)
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for sql in hospital.schema:
            db.execute(sql)
        while count:
            kind, options, columns = pick.choice(KINDS)
            sql, tables = maker.question(columns)
            try:
                rows = db.execute(sql).fetchall()
            except (sqlite3.Error, sqlite3.Warning):
                continue
            if kind in ("count", "count_distinct") and len(rows) == 1 and rows[0][0] in (0, None):
                continue  # refused: it counts everybody
            count -= 1
            yield kind, options, sql, tables
