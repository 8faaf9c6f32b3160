"""Tests dp_partial() with a query text, in ledgers with a policy. The release from the merged states has exactly the
same integers as the release from one database."""

import json
import random

import pytest

from conftest import connect, ledger_of, one, refused
from fixed_noise import run_fixed

SCHEMA = ["CREATE TABLE visit(id INTEGER PRIMARY KEY, patient TEXT COLLATE NOCASE, ward TEXT, minutes INT)", "CREATE TABLE exam(visit INT, x INT)",
          "CREATE TABLE ward(name TEXT, beds INT)", "INSERT INTO ward VALUES ('a', 3), ('b', 5)"]
POLICY = ["SELECT dp_init()", "SELECT dp_protect('visit', 'patient')", "SELECT dp_protect('exam', 'visit', 'visit')", "SELECT dp_public('ward')",
          "SELECT dp_tier('t', 1000, 1e15, 1e-6)"]
KEYS = {"keys": ["a", "b", "c"]}


def rows_of(seed):
    """Returns visits with their exams. The names of the patients have several spellings, and some visits have no patient."""
    pick = random.Random(seed)
    return [(i, pick.choice(["Ann", "ann", "ANN", "bob", "Bob", "cy", None]), pick.choice("abc"), pick.randrange(40),
             [pick.randrange(9) for _ in range(pick.randrange(3))]) for i in range(60)]


def literal(x):
    return "NULL" if x is None else f"'{x}'" if isinstance(x, str) else str(x)


def inserts(rows):
    for *visit, exams in rows:
        yield f"INSERT INTO visit VALUES ({', '.join(map(literal, visit))})"
        for x in exams:
            yield f"INSERT INTO exam VALUES ({visit[0]}, {x})"


def shard(rows, policy=POLICY):
    db = connect()
    for sql in [*SCHEMA, *inserts(rows), *policy]:
        db.execute(sql).fetchall()
    return db


def drawn(path, name="a"):
    with ledger_of(path) as ledger:
        assert ledger.execute("SELECT name, state FROM dp_release").fetchall() == [(name, "released")]
        return [ledger.execute(f"SELECT key, component, {values} ORDER BY 1, 2").fetchall()
                for values in ("value FROM dp_path", "value, stddev FROM dp_value")] + ledger.execute(
                    "SELECT sql, tables, clip, sensitivity FROM dp_release").fetchall()


@pytest.mark.parametrize("kind, sql, options, whole", [
    ("sum", "SELECT minutes FROM visit", {"clip": 100}, False),
    ("avg", "SELECT x FROM exam", {"clip": 3, "lo": 0, "hi": 9}, False),
    ("group_sum", "SELECT ward, beds * minutes FROM visit JOIN ward ON name = ward;  ", {"clip": 500, **KEYS}, False),
    ("histogram", "SELECT x FROM exam JOIN visit ON visit = id WHERE minutes > 5", {"lo": 0, "hi": 9, "bins": 3, "clip": 2}, False),
    # If an answer is not a sum over rows, all rows of a unit must be in one shard.
    ("sum", "SELECT max(minutes) - min(minutes) FROM visit", {"clip": 30, "whole_units": True}, True),
    ("count_distinct", "SELECT 1 FROM visit LIMIT 1", {"whole_units": True}, True),
    ("median", "SELECT minutes FROM visit ORDER BY id LIMIT 1", {"lo": 0, "hi": 40}, True),
])
def test_questions_of_shards_are_one_question(path, kind, sql, options, whole):
    rows, pick, shards = rows_of(kind + sql), random.Random(5), [[], [], [], []]
    place = {name: pick.randrange(3) for name in ("ann", "bob", "cy", None)}
    for row in rows:  # the last shard is empty
        shards[place[row[1] and row[1].lower()] if whole else pick.randrange(3)].append(row)
    states = [one(shard(some), "SELECT dp_partial(?, ?, ?)", kind, sql, json.dumps({**options, "shard": f"shard {i}"}))
              for i, some in enumerate(shards)]
    named = json.dumps({"name": "a"})
    single, merged = str(path) + "1", str(path) + "2"
    text = sql.replace("'", "''")
    run_fixed(single, [*SCHEMA, *inserts(rows), *POLICY,
                       f"SELECT dp_release('t', '{kind}', '{text}', '{json.dumps({k: v for k, v in options.items() if k != 'whole_units'} | {'name': 'a'})}')"])
    union = " UNION ALL ".join(f"SELECT x'{state.hex()}' AS s" for state in states)
    run_fixed(merged, [*SCHEMA, *POLICY, f"SELECT dp_merge('t', dp_states(s), '{named}') FROM ({union})"])
    first, second = drawn(single), drawn(merged)
    assert first == second and first[0] and first[1], (first, second)
    assert one(shard([]), f"SELECT dp_merge('t', dp_states(s), '{named}') IS NOT NULL FROM ({union})") == 1


def test_without_options_and_with_a_limit_of_steps():
    db = shard(rows_of(1))
    state = one(db, "SELECT dp_partial('count', 'SELECT 1 FROM visit', '{\"clip\":1}')")
    assert abs(one(db, "SELECT dp_merge('t', dp_states(?))", state) - 3) < 1  # three units, each of which counts at most 1
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n, visit"
    state = one(db, "SELECT dp_partial('sum', ?, '{\"clip\":5,\"steps\":1000}')", endless)
    assert abs(one(db, "SELECT dp_merge('t', dp_states(?))", state)) < 2


@pytest.mark.parametrize("call, reason", [
    ("dp_partial('sum', minutes, '{\"clip\":5}') FROM visit", "sql must be the text of one SELECT, not a number"),
    ("dp_partial('sum', 'SELECT minutes, patient FROM visit', '{\"clip\":5}')", "must give 1 column (x), not 2"),
    ("dp_partial('sum', 'SELECT x FROM secret', '{\"clip\":5}')", "neither protected nor public"),
    ("dp_partial('sum', 'SELECT minutes FROM visit', '{\"clip\":5,\"tables\":{}}')", "unknown option"),
    ("dp_partial('sum', '{\"clip\":5}')", "clip"),
    ("dp_partial('sgd', 'SELECT 1, 2 FROM visit', NULL)", "has no states"),
])
def test_refusals(call, reason):
    db = shard(rows_of(2))
    db.execute("CREATE TABLE secret(x)")
    message = refused(db, f"SELECT {call}")
    assert message.startswith("dp_partial: ") and reason in message and "charge" not in message, message


def test_what_does_not_merge():
    db = shard(rows_of(3))
    ask = "SELECT dp_partial('sum', ?, '{\"clip\":5}')"
    state = one(db, ask, "SELECT minutes FROM visit")
    other = one(db, ask, "SELECT minutes FROM visit WHERE ward = 'a'")
    assert "of different questions" in refused(db, "SELECT dp_merge('t', dp_states(s)) FROM (SELECT ? AS s UNION ALL SELECT ?)", state, other)
    public = shard([], ["SELECT dp_init()", "SELECT dp_public('visit')", "SELECT dp_protect('exam', 'visit')", "SELECT dp_tier('t', 1, 1e6, 1e-6)"])
    assert "does not declare in the same way" in refused(public, "SELECT dp_merge('t', dp_states(?))", state)
    assert one(db, "SELECT count(*) FROM dp_charge") == one(public, "SELECT count(*) FROM dp_charge") == 0
    empty = shard([], ["SELECT dp_init()"])
    assert "no table is protected yet" in refused(empty, ask, "SELECT minutes FROM visit")
