"""Tests which states a merge takes: each state once, no two states of one shard, and all shards that the call names. The truth is a
model of the deliveries in plain Python, and the sums of one database, unit by unit."""

import collections
import json
import random
import re

import pytest

from noise_helpers import one
from shard_helpers import database, merged, refusal, refused_merge

pytestmark = pytest.mark.alarm(0)  # the allowed difference is 70 standard deviations

NAMES = ["north", "south", "west", "east", "it's", "ø-1", "7", "north "]
CLIP = 5
FORMS = [("unit", False), ("unit", True), ("row", False)]  # (what the ledger protects, whole_units)


def contributions(rows, protects, whole):
    """Returns the sum of one database in plain Python: the total of each unit, or the value of each row, is clipped."""
    if protects == "row":
        return sum(max(-CLIP, min(CLIP, x)) for _, x in rows)
    totals = collections.Counter()
    for unit, x in rows:
        totals[unit] += x
    return sum(max(-CLIP, min(CLIP, total)) for total in totals.values())


def state_of(db, rows, options):
    db.execute("DELETE FROM t")
    db.executemany("INSERT INTO t(unit, x) VALUES (?, ?)", rows)
    return one(db, "SELECT dp_partial('sum', 'SELECT x FROM t', ?)", json.dumps({"clip": CLIP, **options}))


def random_rows(rng, shard, whole):
    """Returns the rows of a shard. With whole units, no other shard has their units."""
    return [(rng.randrange(6) + (100 * shard if whole else 0), rng.randrange(-9, 10)) for _ in range(rng.choice([0, 1, 5, 12]))]


class Delivery:
    """The states that reach a merge, and what one says of them: {state: (name or None, rows)} and the order of arrival."""

    def __init__(self, db, rng, whole, named):
        self.made, count = {}, rng.randrange(1, 7)
        self.names = rng.sample(NAMES, count)
        for number, name in enumerate(self.names):
            rows = random_rows(rng, number, whole)
            options = {**({"whole_units": True} if whole else {}), **({"shard": name} if named else {})}
            states = [state_of(db, rows, options)]
            if named and rng.random() < 0.08:  # a task that was tried again, perhaps after the rows changed
                states.append(state_of(db, rows + [(0, 3)] * rng.randrange(2), options))
            if named and rng.random() < 0.08:  # a state that never arrives
                states.pop()
            self.made.update((state, (name if named else None, rows)) for state in states)
        self.arrived = [state for state in self.made for _ in range(rng.choice([1, 1, 1, 2, 4]))]
        rng.shuffle(self.arrived)

    def shards(self):
        return [name for name, _ in self.made.values()]


def wanted(rng, delivery):
    """Returns a value of the option `shards`, which is right in about half of all cases, or None."""
    found = list(dict.fromkeys(name or "?" for name in delivery.shards()))
    rng.shuffle(found)
    return rng.choice([None, None, len(found), len(found) + rng.choice([-1, 1, 3]) or 1, delivery.names, found, found + ["far"], found[:-1], found + found[:1]])


def expectation(delivery, shards):
    """Returns None, or the error, in the order in which a merge looks for errors. Written from sql/shards.md."""
    names = delivery.shards()
    double = [name for name in names if name and names.count(name) > 1]
    if double:
        return rf"two different states of shard '({'|'.join(map(re.escape, double))})'"
    if shards is None:
        return None
    if None in names:
        return "a state names no shard"
    if isinstance(shards, int):
        return None if shards == len(names) else f"the states are of {len(names)} shards, not of {shards}: " + ", ".join(f"'{n}'" for n in sorted(names))
    wrong = [f"shard '{n}' is missing" for n in set(shards) - set(names)] + [f"shard '{n}' is not one of shards" for n in set(names) - set(shards)]
    wrong += [f"shards names '{n}' twice" for n in set(shards) if shards.count(n) > 1]
    return "|".join(map(re.escape, wrong)) or None


@pytest.mark.parametrize("protects,whole", FORMS)
def test_a_merge_is_one_database_or_refuses(protects, whole):
    """Retried and doubled tasks, lost states and wrong lists of shards, in any order."""
    rng, seen = random.Random(f"{protects} {whole}"), collections.Counter()
    db, ledger = database(protects), database(protects, tier=True)
    for _ in range(150):
        named = whole or protects == "row" or rng.random() < 0.7
        delivery = Delivery(db, rng, whole, named)
        if not delivery.made:
            continue
        shards = wanted(rng, delivery)
        error, options = expectation(delivery, shards), json.dumps({} if shards is None else {"shards": shards})
        if error:
            said = refused_merge(ledger, delivery.arrived, name=options)
            assert said.startswith("dp_merge: ") and re.search(error, said) and said.endswith(")"), (said, error)
            seen[re.sub(r"'.*'|\d+", "", said)[:30]] += 1
        else:
            rows = [row for _, shard_rows in delivery.made.values() for row in shard_rows]
            assert abs(merged(ledger, delivery.arrived, name=options) - contributions(rows, protects, whole)) < 0.25
            seen[type(shards)] += 1
    assert len(seen) == (9 if (protects, whole) == ("unit", False) else 8) and seen[type(None)] > 10, seen


def test_many_states_are_taken_once():
    """The table of states grows. The states arrive three times, in three orders."""
    rng, db, ledger = random.Random(5), database("row"), database("row", tier=True)
    states = [state_of(db, [(i, 1)], {"shard": f"shard {i}"}) for i in range(300)]
    arrived = [state for _ in range(3) for state in rng.sample(states, len(states))]
    assert abs(merged(ledger, arrived, name='{"shards":300}') - 300) < 0.25
    again = state_of(db, [(7, 1)], {"shard": "shard 7"})
    assert refused_merge(ledger, [*arrived, again]) == "dp_merge: there are two different states of shard 'shard 7' (merge one of them)"
    said = refused_merge(ledger, arrived, name='{"shards":301}')
    assert said.count("shard ") == 20 and said.endswith(", ... (merge the states of all shards, also of those without rows)"), said


def test_a_doubled_state_of_whole_units_would_be_charged_too_little():
    """The attack that the names prevent: without them, a person with one row would count once for each state."""
    db, ledger = database(), database(tier=True)
    options = {"whole_units": True, "shard": "north"}
    states = [state_of(db, [(1, 99)], options) for _ in range(5)]
    assert len(set(states)) == 5
    assert "two different states of shard 'north'" in refused_merge(ledger, states)
    assert abs(merged(ledger, [states[0]] * 5) - CLIP) < 0.25


@pytest.mark.parametrize("options,message", [
    ({"whole_units": True}, "shard is missing (a state of whole units names its shard, such as \"shard\":\"north\", so that a merge cannot count it twice)"),
    ({"shard": ""}, "shard must be a text of 1 to 1000 characters"), ({"shard": 7}, "shard must be a text of 1 to 1000 characters, not a number"),
    ({"shard": "x" * 1001}, "shard must be a text of 1 to 1000 characters"), ({"shard": None}, "shard must be a text of 1 to 1000 characters, not NULL"),
    ({"shards": 7}, "unknown option 'shards' (did you mean 'shard'? known options: mechanism, clip, steps, bytes, seconds, whole_units, shard)")])
def test_names_that_a_state_refuses(options, message):
    db = database()
    assert refusal(db, "SELECT dp_partial('count', 'SELECT 1 FROM t', ?)", json.dumps({"clip": 1, **options})) == "dp_partial: " + message


def test_a_state_of_rows_names_its_shard():
    db = database("row")
    assert refusal(db, "SELECT dp_partial('count', 'SELECT 1 FROM t')") == (
        "dp_partial: shard is missing (a state of rows names its shard, such as \"shard\":\"north\", so that a merge cannot count it twice)")


@pytest.mark.parametrize("shards", ["north", 0, -1, 1.5, True, None, {"north": 1}])
def test_lists_that_a_merge_refuses(shards):
    db, ledger = database(), database(tier=True)
    state = state_of(db, [(1, 1)], {"shard": "north"})
    assert refused_merge(ledger, [state], name=json.dumps({"shards": shards})) == (
        'dp_merge: shards must be their number, or a JSON array of their names, such as ["north","south"]')


def test_elements_that_a_merge_refuses():
    db, ledger = database(), database(tier=True)
    state = state_of(db, [(1, 1)], {"shard": "7"})
    for element, kind in ((7, "integer"), (None, "null"), (["7"], "array")):
        assert refused_merge(ledger, [state], name=json.dumps({"shards": [element]})) == f"dp_merge: shards must be texts, not {kind}"
    assert refused_merge(ledger, [state], name='{"shards":[]}').startswith("dp_merge: shard '7' is not one of shards (")
    assert merged(ledger, [state], name='{"shards":["7"],"name":"n"}') == merged(ledger, [state, state], name='{"shards":1,"name":"n"}')


def test_the_name_is_part_of_what_is_hashed():
    """Another name under the old SHA-256 is damage. Names do not shape the sums, so states of different shards are merged."""
    db, ledger = database(), database(tier=True)
    state = state_of(db, [(1, 1)], {"shard": "north"})
    assert state.count(b"north") == 1
    assert refused_merge(ledger, [state.replace(b"north", b"south")]) == "dp_states: the state is damaged or cut short"
