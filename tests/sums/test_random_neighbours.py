"""Random questions of all kinds, with random options, over random pairs of neighbours. The noise is the same in both releases, so the
distance of their points is that of the exact totals, and never exceeds the charged sensitivity. (Private keys are drawn with noise of
their own: test_kinds_neighbours.py.)"""

import contextlib
import json
import math
import random
import shutil
import sqlite3

import pytest

from conftest import ledger_of
from fixed_noise import COLUMNS, options_of, run_fixed
from kinds_tables import PARAMETERS
import question_reference as reference
from random_questions import Question, database, may_be_counted

pytestmark = pytest.mark.alarm(0)

QUESTIONS = 40
KEYS = ["north", "south", "attic", "1", "0", 5, 15, None, "", "fine", 2.5]
VALUES = [None, 0, 1, -1, 5, 15, 1e308, -1e308, 2**63 - 1, -2**63, float("inf"), -0.0, 5e-324, 0.5, "12", " 7x", "north", "[1,2,3]", "[1e300,-1e300,0]",
          b"", b"\x00a", ""]
TABLES = [("group_count", {"ways": 2, "clip": 2}), ("group_count", {"ways": 3, "clip": 0.7, "mechanism": "laplace"}),
          ("group_sum", {"ways": [["a", "b"], ["c"]], "clip": 3, "diagnose": True}), ("group_avg", {"ways": 2, "lo": -3, "hi": 50, "clip": 2})]
ATTRIBUTES = {"a": ["north", "south", 1, None], "b": [0, 1, 5, 15], "c": ["fine", 2, ""]}


def asked(pick):
    """Returns a kind with options, and the names of the columns of its question."""
    if pick.random() < 0.15:
        kind, options = pick.choice(TABLES)
        return kind, {**options, "keys": ATTRIBUTES}, [*ATTRIBUTES, "x"][:3 + (kind != "group_count")]
    kind = pick.choice(list(PARAMETERS))
    options = dict(pick.choice(PARAMETERS[kind]))
    if "keys" in options:
        options["keys"] = KEYS
    if "clip" in options and pick.random() < 0.5:
        options["clip"] = pick.choice([0.3, 1, 1.7, 2.5, 7, 1000])
    if {"lo", "hi"} <= set(options) and not {"grid", "bins"} & set(options) and pick.random() < 0.4:
        options["lo"], options["hi"] = pick.choice([(-1e99, 1e99), (0, 1e-90), (-1e15, 1), (0, 40), (-3, 1e6)])
    if "ou_" not in kind and pick.random() < 0.35:
        options["mechanism"] = "laplace"
    if not kind.endswith(("count_distinct", "bounds")) and pick.random() < 0.3:
        options["diagnose"] = True
    return kind, options, COLUMNS[kind]


def select(pick, columns, likely):
    """Returns a question: one that SQLite can prove to be one loop, or one that is evaluated for one unit after the other."""
    question = Question(pick, likely=likely)

    def value():
        return pick.choice([pick.choice(question.columns)] * 3 + [question.value()])
    terms = [f"json_array({value()}, {value()}, {value()})" if column == "v" else value() for column in columns] or ["1"]
    names = [column if len(columns) > 2 else f"{column}0" for column in columns] or ["c"]
    named = ", ".join(f"{term} AS {name}" for term, name in zip(terms, names))
    rest = f"FROM {question.source}" + (f" WHERE {question.condition()}" if pick.random() < 0.3 else "")
    window = f"sum({terms[-1]}) OVER (ORDER BY {value()})"
    return pick.choice([f"SELECT {named} {rest}"] * 4 + [
        f"SELECT {', '.join(names)} FROM (SELECT {named} {rest}) LIMIT -1", f"SELECT DISTINCT {named} {rest}",
        f"SELECT {named} {rest} ORDER BY {value()} LIMIT {pick.randrange(1, 4)}", f"SELECT {named} {rest} GROUP BY {value()}",
        f"SELECT {', '.join(f'{term} AS {name}' for term, name in zip([*terms[:-1], window], names))} {rest}"])


def questions(pick, protects):
    """Yields random questions that diffuse accepts: SQLite can compile them, and a count does not count what the question counts."""
    compiler = sqlite3.connect(":memory:")
    compiler.executescript(reference.SCHEMA)
    while True:
        kind, options, columns = asked(pick)
        sql = select(pick, columns, ["visit", "visit", "exam", "drug", "long_visit"] if protects == "unit" else ["visit"])
        if protects == "row" and kind.endswith("count_distinct"):
            continue
        with contextlib.suppress(sqlite3.Error):
            compiler.execute("EXPLAIN " + sql)
            if columns or may_be_counted("count_distinct", sql):
                yield kind, options, sql


def change(pick, db, protects, adjacency):
    """Removes one unit, rather one with many rows, or replaces all its rows, which may be hundreds."""
    identity = "patient" if protects == "unit" else "id"
    (unit,) = pick.choice(db.execute(f"SELECT {identity} FROM visit WHERE {identity} IS NOT NULL").fetchall())
    if protects == "unit":
        db.execute("DELETE FROM exam WHERE visit IN (SELECT id FROM visit WHERE patient = ?)", (unit,))
        db.execute("DELETE FROM drug WHERE patient = ?", (unit,))
    db.execute(f"DELETE FROM visit WHERE {identity} = ?", (unit,))
    if adjacency == "add-remove":
        return
    for _ in range(pick.choice([0, 1, 3, 300]) if protects == "unit" else 1):
        key, patient = (None, unit) if protects == "unit" else (unit, 7)
        row = db.execute("INSERT INTO visit VALUES (?, ?, ?, ?, ?, ?)", (key, patient, *(pick.choice(VALUES) for _ in range(4)))).lastrowid
        if protects == "unit":
            db.execute("INSERT INTO exam VALUES (?, ?, ?)", (row, pick.choice(VALUES), pick.choice(VALUES)))
            db.execute("INSERT OR IGNORE INTO drug VALUES (?, ?, ?, ?)", (unit, *(pick.choice(VALUES) or 0 for _ in range(3))))


def points(path, init, policy, several):
    """Returns the point and the sensitivity of each question."""
    run_fixed(path, [f"SELECT dp_init('{json.dumps(init)}')", *("SELECT " + call for call in policy), "SELECT dp_tier('t', 1e3, 1e15, 0.9, 'rdp')"]
              + ["SELECT fixed_seed(1); SELECT dp_release('t', '{}', '{}', {})".format(kind, sql.replace("'", "''"), options_of(options))
                 for kind, options, sql in several])
    with ledger_of(path) as ledger:
        found = [({}, s) for (s,) in ledger.execute("SELECT sensitivity FROM dp_release ORDER BY id")]
        for release, key, component, value in ledger.execute("SELECT release_id, key, component, value FROM dp_path WHERE component <> -1"):
            found[release - 1][0][key, component] = value
    return found


@pytest.mark.parametrize("protects, adjacency", [("unit", "add-remove"), ("unit", "replace"), ("row", "add-remove"), ("row", "replace")])
@pytest.mark.parametrize("seed", [1] + [pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20)])
def test_no_question_moves_a_release_by_more_than_is_charged(tmp_path, seed, protects, adjacency):
    pick = random.Random(f"{seed} {protects} {adjacency}")
    paths = [str(tmp_path / name) for name in ("one", "other")]
    database(paths[0], seed)
    with contextlib.closing(sqlite3.connect(paths[0], isolation_level=None)) as db:
        for _ in range(pick.choice([0, 200])):  # a unit with many rows, which can be the one that is removed
            db.execute("INSERT INTO visit VALUES (NULL, 3, ?, ?, ?, ?)", [pick.choice(VALUES) for _ in range(4)])
    shutil.copy(*paths)
    with contextlib.closing(sqlite3.connect(paths[1], isolation_level=None)) as db:
        change(pick, db, protects, adjacency)
    pick.shuffle(paths)
    source = questions(pick, protects)
    several = [next(source) for _ in range(QUESTIONS)]
    policy = reference.POLICY if protects == "unit" else ["dp_protect('visit')", reference.POLICY[-1]]
    found = [points(path, {"protects": protects, "adjacency": adjacency}, policy, several) for path in paths]
    reached = []
    for (kind, options, sql), (a, s), (b, other) in zip(several, *found):
        differences = [a[place] - b[place] for place in a]
        distance = sum(map(abs, differences)) if "mechanism" in options else math.sqrt(sum(d * d for d in differences))
        assert s == other and set(a) == set(b) and distance <= s, (kind, options, sql)
        reached.append(distance / s)
    assert len(reached) == QUESTIONS and (protects == "row" or any(reached))
