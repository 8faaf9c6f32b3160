"""Compares every kind in a ledger that protects households beside units (dp_within) with its definition: each unit is clipped as
without households, the vectors of a household are added up, and the sum is moved into the ball of f units.

As in test_kinds_exact.py, an answer may differ from its definition only by the effect of MARGIN standard deviations of noise."""

import collections
import json
import random

import pytest

from kinds_reference import KINDS, aggregate, answer, by_query, identity, numbers
from kinds_tables import PARAMETERS, fill, random_table
from noise_helpers import one, open_ledger

pytestmark = pytest.mark.alarm(2e-11)

RATE = 1e6
Wider = collections.namedtuple("Wider", "home factor")
HOMES = ["a", "b", 1, 2, 1.0, 2.5, "1", b"a", None]


def open_homes(factor, column="", threads=0):
    """Returns a connection to a ledger that protects the table t(k, x, v, unit) by unit, and the homes of home(unit, place)."""
    db = open_ledger({"exact": RATE})
    db.execute(f"CREATE TABLE home(unit UNIQUE, place {column})")
    one(db, "SELECT dp_protect('home', 'unit')")
    one(db, "SELECT dp_within('household', 'home', 'place', ?)", factor)
    return db


def settle(db, rng, rows, least=0.8):
    """Gives most units a home, and returns {identity of the unit: identity of the home}."""
    units = {identity(row.unit): row.unit for row in rows if row.unit is not None}
    homes = rng.sample(HOMES, rng.randrange(1, len(HOMES)))
    placed = {unit: rng.choice(homes) for unit in units if rng.random() < least}
    people = [(units[unit], place) for unit, place in placed.items()] + [(None, "a"), (-5, "a"), ("nobody", None)]
    rng.shuffle(people)
    db.execute("DELETE FROM home")
    db.executemany("INSERT INTO home VALUES (?, ?)", people)
    return {unit: identity(place) for unit, place in placed.items() if place is not None}


def check(kind, parameters, result, rows, wider):
    wanted = answer(kind, parameters, rows, True, "add-remove", RATE, wider)
    got = numbers(kind, parameters, result)
    if kind == "bounds" and not got:
        return
    assert {(key, component) for key, component, _ in got} == set(wanted)
    for key, component, value in got:
        low, high = wanted[key, component]
        assert low <= value <= high, (kind, parameters, wider, key, component, low, value, high)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(8)
def test_every_kind_adds_up_households(kind):
    """With random households of all sizes, by the question and as an aggregate, on one thread and on three."""
    rng = random.Random(kind)
    for factor in (1, 1.5, 4, 300):
        db = open_homes(factor)
        for _ in range(1 + (factor == 1.5)):
            rows = random_table(rng)
            fill(db, rows)
            wider = Wider(settle(db, rng, rows), factor)
            for parameters in PARAMETERS[kind]:
                sql, arguments = by_query(kind, parameters)
                check(kind, parameters, one(db, sql, *arguments), rows, wider)
            call, arguments = aggregate(kind, parameters)
            db.execute(f"PRAGMA threads = {rng.choice([0, 3])}")
            check(kind, parameters, one(db, f"SELECT {call} FROM t", *arguments), rows, wider)
        assert one(db, "SELECT dp_verify()") == "ok"


def test_threads_add_up_the_same_households(path):
    """A table of 300,000 rows, which several threads read in parts, and cross tables of the same rows."""
    db = open_ledger({"exact": RATE}, path=str(path))
    db.executescript("""
        CREATE TABLE person(id INTEGER PRIMARY KEY, home INT);
        CREATE TABLE visit(person INT, k INT, a INT);
        BEGIN;
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 60000) INSERT INTO person SELECT i, i * 7919 % 9000 FROM n;
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 300000) INSERT INTO visit SELECT i * 7 % 60000, i % 5, i / 7 % 3 FROM n;
        COMMIT;
    """)
    one(db, "SELECT dp_protect('person', 'id')")
    one(db, "SELECT dp_protect('visit', 'person')")
    one(db, "SELECT dp_within('home', 'person', 'home', 2)")
    for options in ('{"clip":2,"keys":[0,1,2,3,4]}', '{"clip":2,"keys":{"k":[0,1,2,3,4],"a":[0,1,2]},"ways":2}'):
        found = []
        for threads in (0, 3):
            db.execute(f"PRAGMA threads = {threads}")
            sql = "SELECT k, a FROM visit" if "ways" in options else "SELECT k FROM visit"
            found.append(list(json.loads(one(db, "SELECT dp_release('exact', 'group_count', ?, ?)", sql, options)).values()))
        assert all(abs(a - b) < 0.1 for a, b in zip(*found, strict=True)), found
