"""A declaration of dp_public() holds for a table and its columns, not for its name: after every sequence of changes of the schema, a guest
reads exactly the rows of the tables that were declared, and of no others. Broken code, such as one that compares the columns alone, fails in most worlds."""

import random
import shutil
import sqlite3

import pytest

from conftest import connect, one, refused
from guard_helpers import guarded

pytestmark = pytest.mark.alarm(0)

NAMES = ["ward", "visit", "yard", "gate"]
TYPES = {"a": "TEXT", "b": "INT", "c": "NUMERIC", "d": "TEXT COLLATE NOCASE"}


class Table:
    """A table as the owner made it. `declared` maps the names under which dp_public() declared it to its columns at that time."""

    def __init__(self, columns, rows):
        self.columns, self.rows, self.declared = columns, rows, None


class World:
    """A database whose owner changes it at random, and what its guests may see of it."""

    def __init__(self, folder, seed):
        self.random, self.folder, self.path, self.number = random.Random(seed), folder, folder / "0.db", 0
        self.tables, self.public, self.guests, self.restores = {}, {}, [], 0
        self.db = connect(self.path)
        self.db.execute(f"PRAGMA auto_vacuum = {seed % 3}")
        self.create("ward", "ab"), self.create("visit", "ab")
        self.db.execute("CREATE TABLE person(id INTEGER PRIMARY KEY)")
        for call in ("init()", "protect('person', 'id')", "tier('public', 0.002, 3.0, 1e-6)"):
            one(self.db, "SELECT dp_" + call)
        self.declare("ward")

    def create(self, name, columns):
        """Makes a table whose rows say which table they are from. Tables with the same columns have the same text."""
        self.number += 1
        how = self.random.choice(["", "", " STRICT"]) if columns == "ab" and sqlite3.sqlite_version_info >= (3, 37) else ""
        body = f"({', '.join(f'{c} {TYPES[c[0]]}' for c in columns)})"
        self.db.execute(f"CREATE TABLE {name}{body}{how}")
        rows = [tuple(f"{self.number}.{i}" if c in "ad" else 1000 * self.number + i for c in columns) for i in range(self.random.randrange(1, 4))]
        self.db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
        self.tables[name] = Table([(c, TYPES[c[0]], how) for c in columns], rows)

    def declare(self, name):
        """Declares a table, if diffuse allows it. A declaration holds for this table with these columns, and for no other."""
        try:
            one(self.db, "SELECT dp_public(?)", name)
        except sqlite3.Error:
            return 0
        self.public[name] = self.tables[name], list(self.tables[name].columns)
        return 1

    def change(self):
        """Makes one change, whatever comes of it."""
        name, other = self.random.sample(NAMES, 2)
        table, db = self.tables.get(name), self.db
        do = self.random.choice(["drop", "drop", "rename", "rename", "create", "create", "copy", "copy", "remake", "vacuum", "restore", "into", "declare",
                                 "declare", "add", "remove", "column", "rows", "view", "temp", "rollback", "legacy", "swap", "back"])
        if do == "drop" and table:
            db.execute(f"DROP TABLE {name}")
            del self.tables[name]
        elif do == "rename" and table and other not in self.tables:
            db.execute(f"ALTER TABLE {name} RENAME TO {other}")
            self.tables[other] = self.tables.pop(name)
        elif do == "create" and not table:
            self.create(name, self.random.choice(["ab", "ab", "ac", "abd"]))
        elif do == "copy" and other in self.tables and name != other:
            if table:
                db.execute(f"DROP TABLE {name}")
            db.execute(f"CREATE TABLE {name} AS SELECT * FROM {other}")
            self.tables[name] = Table([(c, "copy", "") for c, *_ in self.tables[other].columns], list(self.tables[other].rows))
        elif do == "remake" and table:  # what tools do that cannot ALTER: the same rows in a new table
            sql = one(db, "SELECT sql FROM sqlite_master WHERE name = ? AND type = 'table'", name)
            db.execute(f"ALTER TABLE {name} RENAME TO old")
            db.execute(sql)
            db.execute(f"INSERT INTO {name} SELECT * FROM old")
            db.execute("DROP TABLE old")
            self.tables[name] = Table(list(table.columns), list(table.rows))
        elif do == "vacuum":
            db.execute("VACUUM")
        elif do in ("restore", "into"):
            self.move(do)
        elif do == "declare" and table:
            self.declare(name)
        elif do == "add" and table and len(table.columns) < 5 and "e" not in [c for c, *_ in table.columns]:
            db.execute(f"ALTER TABLE {name} ADD COLUMN e TEXT DEFAULT 'added'")
            table.columns, table.rows = [*table.columns, ("e", "", table.columns[0][2])], [(*row, "added") for row in table.rows]
        elif do == "remove" and table and len(table.columns) > 2 and sqlite3.sqlite_version_info >= (3, 35):
            db.execute(f"ALTER TABLE {name} DROP COLUMN {table.columns[-1][0]}")
            table.columns, table.rows = table.columns[:-1], [row[:-1] for row in table.rows]
        elif do == "column" and table:
            (old, *rest), new = table.columns[0], self.random.choice(["a", "f"])
            if new not in [c for c, *_ in table.columns]:
                db.execute(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")
                table.columns = [(new, *rest), *table.columns[1:]]
        elif do == "rows" and table:  # rows that come to a public table are public
            db.execute(f"DELETE FROM {name} WHERE rowid = (SELECT max(rowid) FROM {name})")
            table.rows = table.rows[:-1]
        elif do == "view" and not table and other in self.tables:
            db.execute(f"CREATE VIEW {name} AS SELECT * FROM {other}")
            self.look()
            self.declare_view(name)
            db.execute(f"DROP VIEW {name}")
        elif do == "temp" and table:
            db.execute(f"CREATE TEMP TABLE {name}(a TEXT, b INT)")
            self.declare(name)
            db.execute(f"DROP TABLE temp.{name}")
        elif do == "rollback" and table:
            for statement in ("BEGIN", f"DROP TABLE {name}", f"CREATE TABLE {name} AS SELECT 'not committed' AS a, 5 AS b", "ROLLBACK"):
                db.execute(statement)
        elif do == "back" and table:  # a declaration that is rolled back holds for nothing new
            holds = self.seen(name)
            db.execute("BEGIN")
            if self.declare(name) and holds is None:
                del self.public[name]
            db.execute("ROLLBACK")
        elif do == "legacy":
            db.execute(f"PRAGMA legacy_alter_table = {self.random.randrange(2)}")
        elif do == "swap" and table and other in self.tables:
            for statement in (f"{name} RENAME TO middle", f"{other} RENAME TO {name}", f"middle RENAME TO {other}"):
                db.execute(f"ALTER TABLE {statement}")
            self.tables[name], self.tables[other] = self.tables[other], self.tables[name]

    def declare_view(self, name):
        assert "is a view" in refused(self.db, "SELECT dp_public(?)", name)

    def move(self, how):
        """Dumps the database and restores it under another name, together with its ledger."""
        self.restores += 1
        to = self.folder / f"{self.restores}.db"
        if how == "into":
            self.db.execute("VACUUM INTO ?", (str(to),))
        else:
            with sqlite3.connect(to) as new:
                new.executescript("\n".join(self.db.iterdump()))
            new.close()
        self.db.close()
        for guest in self.guests:
            guest.close()
        self.guests = []
        shutil.move(f"{self.path}-ledger", f"{to}-ledger")
        self.path.unlink()
        self.path, self.db = to, connect(to)

    def seen(self, name):
        """Returns the rows that a guest may see under a name, or None."""
        table, (declared, columns) = self.tables.get(name), self.public.get(name, (None, None))
        return table.rows if table and table is declared and table.columns == columns else None

    def look(self):
        """Reads every name as a new guest, who sees all that was declared, and as the earlier guests, who see it or an error."""
        new = guarded(self.path)
        read = 0
        for name in [*NAMES, "old", "middle", "person"]:
            expected = self.seen(name)
            for guest in (new, *self.guests):
                try:
                    rows = guest.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall()
                except sqlite3.Error as error:
                    assert guest is not new or expected is None, (name, error)
                    continue
                assert rows == expected, (name, rows, expected)
                read += 1
            if one(self.db, "SELECT count(*) FROM sqlite_master WHERE type = 'view'"):
                continue  # the owner's questions may read views of public tables
            joined = outcome_of(self.db, f"SELECT 1 FROM person JOIN {name} ON 1")
            assert (joined is None) == (expected is not None or name == "person"), (name, joined)
        assert {t for (t,) in new.execute("SELECT DISTINCT table_name FROM dp_column")} == {
            "person", *(name for name in NAMES if self.seen(name) is not None)}
        self.guests = [*self.guests, new][-3:]
        return read


def outcome_of(db, question):
    """Returns why a question is refused, or None."""
    try:
        db.execute("SELECT dp_plan('public', 'count', 5, json_object('sql', ?))", (question,)).fetchall()
    except sqlite3.Error as error:
        return str(error)
    return None


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(20))
def test_a_guest_never_sees_a_row_that_was_not_declared(tmp_path, seed):
    """Makes 60 random changes, and reads after each."""
    world, read = World(tmp_path, seed), 0
    for _ in range(60):
        world.change()
        read += world.look()
    assert read > 20
    assert one(world.db, "SELECT dp_verify()") == "ok" and one(world.db, "PRAGMA integrity_check") == "ok"
