"""Compares three evaluations of random questions to the last integer: as the extension chooses (row by row where the text says so), by
unit, and by plain SQLite over the rows of each unit in a database of its own."""

import json
import os
import shutil
import sqlite3

import pytest

import random_rows
from conftest import connect, one
from random_questions import integers, integers_by_hand

EACH = 120  # questions about one database


def by_unit(sql):
    """The same question with a LIMIT that cuts nothing, which the rule does not admit."""
    return f"SELECT * FROM ({sql.rstrip(';')}\n{'*/' * sql.endswith('/* all')}) LIMIT -1"


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(int(os.environ.get("QUESTION_SEEDS", 4))))
def test_random_questions_have_one_answer(tmp_path, seed):
    """`make check-questions` tries more seeds."""
    whole, apart = str(tmp_path / "whole"), str(tmp_path / "apart")
    hospital = random_rows.Hospital(seed)
    units = hospital.fill(whole)
    asked = list(random_rows.questions(hospital, seed, EACH))
    shutil.copy(whole, apart)
    chosen = integers(whole, hospital.policy, [question[:3] for question in asked])
    slowly = integers(apart, hospital.policy, [(kind, options, by_unit(sql)) for kind, options, sql, _ in asked])
    by_hand = integers_by_hand(str(tmp_path / "hand"), asked, units)
    wrong = [(question, a == b, b == c) for question, a, b, c in zip(asked, chosen, slowly, by_hand) if not a or not a == b == c]
    assert not wrong, (hospital.schema, len(wrong), wrong[:4])
    db = connect(whole)
    statements = []
    db.set_trace_callback(statements.append)
    for kind, options, sql, _ in asked:
        one(db, "SELECT dp_release('t', ?, ?, ?)", kind, sql, json.dumps(options))
    at_once = sum("dp_collect(" in sql for sql in statements)
    assert EACH / 5 < at_once < 0.9 * EACH
    db.close()


@pytest.mark.parametrize("unit", sorted(set(random_rows.UNIT_TYPES)))
def test_units_that_are_equal_are_one(tmp_path, unit):
    """However SQLite stores them (1 and 1.0, 'a' and 'A'), equal units are one person in every evaluation, with rows of their own and
    by a link. With a clip of 1, the count of all rows is the number of units that plain SQLite sees."""
    path, hand = str(tmp_path / "a"), str(tmp_path / "b")
    plain = sqlite3.connect(path)
    plain.execute(f"CREATE TABLE visit(id INTEGER PRIMARY KEY, who {unit})")
    plain.execute("CREATE TABLE exam(visit INT)")
    plain.executemany("INSERT INTO visit(who) VALUES (?)", [(value,) for value in random_rows.UNITS] * 2)
    plain.execute("INSERT INTO exam SELECT id FROM visit ORDER BY id % 7")
    plain.commit()
    ((units,),) = plain.execute("SELECT count(DISTINCT who) FROM visit").fetchall()
    assert 8 < units < len(random_rows.UNITS)
    plain.close()
    counted = sqlite3.connect(hand)
    counted.execute("CREATE TABLE t(unit INT)")
    counted.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(units)])
    counted.commit()
    counted.close()
    questions = [("count", {"clip": 1}, sql) for table in ("visit", "exam") for sql in (f"SELECT 1 FROM {table}", by_unit(f"SELECT 1 FROM {table}"))]
    policy = ["dp_protect('visit', 'who')", "dp_protect('exam', 'visit', 'visit')"]
    assert integers(path, policy, questions) == integers(hand, ["dp_protect('t', 'unit')"], [("count", {"clip": 1}, "SELECT 1 FROM t")]) * 4
