"""Random comparisons of columns with every affinity and collation, for tests that evaluate them in a question and in plain SQLite."""

import random
import sqlite3

# the columns of all tables: one for each affinity and collation
TYPES = {"i": "INT", "x": "TEXT", "u": "", "r": "REAL", "n": "NUMERIC", "xn": "TEXT COLLATE NOCASE", "xr": "TEXT COLLATE RTRIM",
         "un": "COLLATE NOCASE", "ur": "BLOB COLLATE RTRIM"}
COLUMNS = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
SCHEMA = f"""CREATE TABLE t(id INTEGER PRIMARY KEY, unit INT, {COLUMNS});
CREATE TABLE w(id INT, unit INT, {COLUMNS}, PRIMARY KEY (un COLLATE BINARY, x COLLATE NOCASE, id)) WITHOUT ROWID;
CREATE TABLE z(id INT, {COLUMNS})"""
# The same without any index: SQLite up to 3.42 at least gives wrong rows for (a, b) IN (SELECT ...) if an index has one of the columns.
PLAIN = SCHEMA.replace(f", PRIMARY KEY (un COLLATE BINARY, x COLLATE NOCASE, id)) WITHOUT ROWID", ")")
POLICY = ["dp_protect('t', 'unit')", "dp_protect('w', 'unit')", "dp_public('z')"]
# A text such as 12 and a zero byte is not among them: SQLite 3.40 takes it for a text, 3.54 for the number 12 (its results are undefined).
VALUES = [None, 0, 1, 12, -3, 2**53, 2**53 + 1, 2**63 - 1, -2**63, 12.0, 0.5, 0.1 + 0.2, 1e300, float("inf"), 9007199254740992.0, 999999999999999.5,
          1e12, 10**12, 1e12 + 0.5, 10**15, 1e15, 123456789012345.4, "123456789012345.0", "123456789012345", 5.00000000000001, "5.0", " 5", "1e15", "1000000000000.5",
          "9007199254740992", "2024-01-05", "2024-01-06", "4006381333931", 4006381333931, 0.35, 0.1 * 3.5, "0.35", "+7", "7.", ".5", "1e", "ab\x00",
          "12", "12.0", " 12", "12 ", "1.2e1", "0x0C", "12abc", "0.3", "1e300", "Inf", "inf", "-Inf", "9007199254740993", "abc", "ABC", "abc ", "aBc  ",
          "", " ", "north", "NORTH ", b"", b"12", b"abc", b"ABC", b"\x00a", b"abc "]
LITERALS = ["NULL", "0", "1", "12", "-3", "9007199254740993", "12.0", "0.5", "0.30000000000000004", "9e999", "-9e999", "'12'", "'12.0'", "' 12'", "'1.2e1'", "'abc'", "'ABC '",
            "''", "x''", "x'3132'", "x'616263'", "'Inf'", "TRUE"]


def fill(db, seed):
    """Fills the tables with random values: three units with rows in t and w, and the rows of z. Each column of unit 1 in t has all values."""
    pick = random.Random(seed)
    for table, count in (("t", 8), ("w", 8), ("z", 14)):
        keys = iter(pick.sample(range(1, 1000), 100))
        for unit in ([1, 2, 3] if table != "z" else [0]):
            every = unit == 1 and table == "t"
            columns = [pick.sample(VALUES, len(VALUES)) if every else pick.choices(VALUES, k=count) for _ in TYPES]
            for values in map(list, zip(*columns)):
                key = [next(keys)]
                if table == "w":
                    values = [v if v is not None or name not in ("un", "x") else 7 for name, v in zip(TYPES, values)]
                row = key + ([unit] if table != "z" else []) + values
                db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", row)


class Comparison:
    """Makes random queries that give one number, in the form of a scalar subquery. The evaluator looks up no rows for a text with
    IN (before SQLite 3.38) or with IN after a row value, so `level` says what the next queries may contain: 0: neither, 1: IN,
    OR and EXISTS, 2: everything."""

    def __init__(self, seed):
        self.pick = random.Random(seed)
        self.level = 0
        self.new = sqlite3.sqlite_version_info >= (3, 39)

    def column(self, alias):
        return f"{alias}.{self.pick.choice(list(TYPES))}"

    def side(self, alias):
        """Returns a column, sometimes with a collation, a unary plus or a cast."""
        column = self.column(alias)
        return self.pick.choice([column] * 12 + [f"+{column}", f"{column} COLLATE NOCASE", f"{column} COLLATE RTRIM", f"{column} COLLATE BINARY",
                                                 f"CAST({column} AS TEXT)", f"CAST({column} AS NUMERIC)", f"{alias}.rowid" if self.tables[alias] != "w" else column])

    def other(self, alias):
        return self.pick.choice([self.side(alias)] * 5 + [self.pick.choice(LITERALS)] * 3)

    def condition(self, a, b):
        """Returns a condition about the tables with the aliases `a` and `b`."""
        pick = self.pick
        table = self.tables["q"] = pick.choice(["z", "z", "z", "t", "w"])
        x, y, z, x2, y2 = self.side(a), self.other(b), self.other(b), self.side(a), self.other(b)
        inner = pick.choice([self.column("q"), self.side("q"), f"max(q.{pick.choice('inr')})", pick.choice(LITERALS)])
        source = pick.choice([f"SELECT {inner} FROM {table} AS q", f"SELECT {inner} FROM {table} AS q WHERE {self.side('q')} >= {y}",
                              f"SELECT {inner} FROM {table} AS q WHERE {self.side('q')} = {y}", f"SELECT {self.column('q')} FROM {table} AS q ORDER BY q.id LIMIT 3"])
        pair = f"SELECT {self.side('q')}, {self.side('q')} FROM {table} AS q"
        operator = pick.choice(["=", "=", "==", "IS", "IS NOT", "<>", "<", "<=", ">", ">="] + ["IS DISTINCT FROM", "IS NOT DISTINCT FROM"] * self.new)
        one, two, three = (pick.choice(LITERALS) for _ in range(3))
        forms = [f"{x} {operator} {y}", f"{x} {operator} {y}", f"{self.column(a)} = {y}", f"{self.column(a)} = {one}", f"{y} {operator} {x}",
                 f"{x} BETWEEN {y} AND {z}", f"{x} = {y} AND {x2} = {z}", f"({x}, {x2}) {pick.choice(['=', 'IS', '<', '>='])} ({y}, {y2})",
                 f"({x}, {x2}) = ({pair} ORDER BY q.id LIMIT 1)", f"{x} {operator} ({source}{' ORDER BY q.id LIMIT 1' * ('LIMIT' not in source)})",
                 f"CASE {x} WHEN {y} THEN 1 WHEN {z} THEN 0 END", f"{x} LIKE {y}", f"nullif({x}, {y}) IS NULL", f"min({x}, {y}) = {z}"]
        if self.level > 0:
            forms += [f"{x} IN ({source})", f"{x} IN ({source})", f"{x} NOT IN ({source})", f"{x} IN ({y}, {z})", f"{x} IN ({one}, {two}, 7)",
                      f"{y} IN ({x}, {x2})", f"({x} = {y} OR {x} = {z})", f"({x} = {one} OR {x} = {two})", f"({x} = {y} OR {x2} = {z})",
                      f"EXISTS ({source})", f"EXISTS (SELECT 1 FROM {table} AS q WHERE {self.column('q')} = {x})"]
        if self.level > 1:
            forms += [f"({x}, {x2}) IN ({pair})", f"({x}, {x2}) IN ({pair})", f"({x}, {x2}) NOT /**/ IN ({pair})",
                      f"(({x}, {x2})) /* ( */ IN (VALUES ({one}, {two}), (12, 'abc'))", f"(SELECT {y}, {y2}) IN ({pair})"]
        return pick.choice(forms)

    def query(self):
        pick = self.pick
        one, two = (pick.choice(["t", "t", "w", "z"]) for _ in range(2))
        self.tables = {"a": one, "b": two}
        given = "count(*) * 1001 + total(a.id)"
        number = pick.randrange(12)
        if number < 3:
            return f"SELECT {given} FROM {one} AS a WHERE {self.condition('a', 'a')}"
        join = pick.choice(["JOIN", "JOIN", "LEFT JOIN", "CROSS JOIN"] + ["RIGHT JOIN", "FULL JOIN"] * self.new)
        if number < 7:
            where = f" WHERE {self.condition('a', 'b')}" if pick.random() < 0.4 else ""
            return f"SELECT {given} + total(b.id) FROM {one} AS a {join} {two} AS b ON {self.condition('a', 'b')}{where}"
        if number == 7:
            return f"SELECT {given} FROM {one} AS a {join.replace('CROSS ', '')} {two} AS b USING ({pick.choice(list(TYPES))})"
        if number == 8:
            c, d = pick.sample(list(TYPES), 2)
            return f"SELECT {given} FROM (SELECT id, {c}, {d} FROM {one}) AS a NATURAL JOIN (SELECT {c}, {d} FROM {two} ORDER BY id LIMIT 5)"
        if number == 9:
            return (f"SELECT count(*) * 1001 + total(n) FROM (SELECT {pick.choice(['DISTINCT ', ''])}count(*) AS n FROM {one} AS a"
                    f" GROUP BY {self.side('a')}{pick.choice(['', ', ' + self.side('a')])})")
        if number == 10:
            return pick.choice([f"SELECT count(DISTINCT {self.side('a')}) FROM {one} AS a",
                                f"SELECT count(*) FROM (SELECT DISTINCT {self.column('a')} FROM {one} AS a)"])
        word = pick.choice(["UNION", "INTERSECT", "EXCEPT"])
        return f"SELECT count(*) FROM (SELECT {self.column('a')} FROM {one} AS a {word} SELECT {self.column('b')} FROM {two} AS b)"
