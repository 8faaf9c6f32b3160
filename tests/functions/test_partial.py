"""Tests dp_partial() and dp_merge(): a release from many shards has exactly the same integers as a release from one
database.

The program `fixed` runs SQL with noise that is the same every time: equal totals give equal points, and the points of two
neighbours differ by exactly the difference of their totals.
"""

import hashlib
import itertools
import json
import os
import random
import re
import sqlite3
import struct

import pytest

from fixed_noise import COLUMNS, EXACT, books, compare, options_of, run_fixed, TIERS
from kinds_reference import KINDS, Row, identity
from kinds_tables import cases, fill, random_table
from noise_helpers import connect, one, quick_path
from shard_helpers import database, merged, policy, refusal, refused_merge
from states_reference import Decoded, added

SHAPING = ("clip", "lo", "hi", "dim", "bins", "grid", "keys", "max_groups")  # the parameters in a state; dp_merge() gets all others


def shape(parameters):
    return {k: v for k, v in parameters.items() if k in SHAPING}


def rest(parameters):
    return {k: v for k, v in parameters.items() if k not in SHAPING}


# ---- shards ------------------------------------------------------------------------------------------------------


def story(adjacency, protects, tables=("t",)):
    return policy(adjacency, protects, tables) + [f"SELECT dp_tier('{tier}', {rate}, 1e15, 1e-6, 'rdp', 1e-7)" for tier, rate in TIERS]


def question(kind, source="t"):
    return f"SELECT {', '.join(COLUMNS[kind]) or '1'} FROM {source}"


def partial(db, kind, parameters, whole=False, source="t", shard="one"):
    options = {**shape(parameters), "shard": shard, **({"whole_units": True} if whole else {})}
    return one(db, "SELECT dp_partial(?, ?, ?)", kind, question(kind, source), json.dumps(options))


def scatter(rng, rows, count, whole):
    """Distributes rows to shards, of which some may stay empty. With whole units, all rows of a unit go to the same shard."""
    place, shards = {}, [[] for _ in range(count)]
    for row in rows:
        if whole:
            shards[place.setdefault(identity(row.unit), rng.randrange(count))].append(row)
        else:
            shards[rng.randrange(count)].append(row)
    return shards


def states_of(db, shards, kind, parameters, whole, table="t"):
    """Returns the states of the shards, and one more state of a shard without rows."""
    states = []
    for number, shard in enumerate([*shards, []]):
        db.execute(f"DELETE FROM {table}")
        db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", shard)
        states.append(partial(db, kind, parameters, whole, table, f"shard {number}"))
    return states


# ---- one release, two ways --------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("protects,whole", [("unit", False), ("unit", True), ("row", False)])
@pytest.mark.sample(1)
def test_merged_is_the_same_to_the_last_integer(protects, whole, adjacency):
    """Compares the path, values, charges and ledger of every kind over random tables, shards and orders of states. Then refines
    the release, if possible, and diffuses it."""
    rng = random.Random(f"{protects} {whole} {adjacency}")
    every = [(kind, parameters) for kind in KINDS for parameters in EXACT[kind] if not kind.endswith("count_distinct") or protects == "unit"]
    tables = [f"t{number}" for number in range(len(every))]
    shard_db = database(protects, tables)
    with quick_path() as path:
        single, merged = path + "-single", path + "-merged"
        direct, indirect = story(adjacency, protects, tables), story(adjacency, protects, tables)
        with sqlite3.connect(single) as rows_db, sqlite3.connect(merged) as states_db:
            states_db.execute("CREATE TABLE s(i, place, state)")
            for number, ((kind, parameters), table) in enumerate(zip(every, tables)):
                rows = random_table(rng)
                states = states_of(shard_db, scatter(rng, rows, rng.choice([1, 2, 3, 7]), whole), kind, parameters, whole, table)
                rng.shuffle(states)
                rows_db.execute(f"CREATE TABLE {table}(k, x, v, unit)")
                rows_db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
                states_db.executemany("INSERT INTO s VALUES (?, ?, ?)", [(number, j, s) for j, s in enumerate(states)])
                can_refine = "max_groups" not in parameters
                weight = rng.choice([{}, {"weight": 0.375}])
                for tier, more in ([("middle", {}), ("exact", {"refine": True})] if can_refine else [("exact", {})]):
                    seed = f"SELECT fixed_seed({rng.getrandbits(48)})"
                    more = {**weight, **more, "name": f"n{number}"}
                    direct += [seed, f"SELECT dp_release('{tier}', '{kind}', '{question(kind, table)}', {options_of(parameters, **more)})"]
                    indirect += [seed, f"SELECT dp_merge('{tier}', dp_states(state), {options_of(rest(parameters), **more)})"
                                 f" FROM s WHERE i = {number} ORDER BY place"]
                outer = [f"SELECT dp_diffuse('n{number}', 'outer')"]
                direct += outer
                indirect += outer
        run_fixed(single, direct)
        run_fixed(merged, indirect)
        compare(single, merged)
        assert one(connect(merged), "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("protects,whole", [("unit", False), ("unit", True), ("row", False)])
def test_merged_with_other_mechanisms(protects, whole, adjacency):
    """Tests mechanisms other than the Gaussian: choices, and Laplace noise."""
    rng = random.Random(f"mechanisms {protects} {whole} {adjacency}")
    asked = [("choice", "k", {"candidates": ["3", "a", "b", "nobody's"]}, "exponential"),
             ("choice", "k", {"candidates": ["3", "a", "b", "nobody's"]}, "response"),
             ("sum", "x", {"clip": 2.5}, "laplace"), ("count", "x", {"clip": 1}, "laplace")]
    tables = [f"t{i}" for i in range(len(asked))]
    direct, indirect = ([*story(adjacency, protects, tables), "SELECT dp_tier('few', 1, 1e15, 1e-6)"] for _ in range(2))
    shard_db = database(protects, tables)
    with quick_path() as path, sqlite3.connect(path + "1") as rows_db, sqlite3.connect(path + "2") as states_db:
        states_db.execute("CREATE TABLE s(i, state)")
        for i, (kind, column, parameters, mechanism) in enumerate(asked):
            rows, sql = random_table(rng, 30), f"SELECT {column} FROM t{i}"
            rows_db.execute(f"CREATE TABLE t{i}(k, x, v, unit)")
            rows_db.executemany(f"INSERT INTO t{i} VALUES (?, ?, ?, ?)", rows)
            for number, shard in enumerate(scatter(rng, rows, 3, whole)):
                options = json.dumps({**parameters, "shard": str(number), **({"whole_units": True} if whole else {})})
                shard_db.execute(f"DELETE FROM t{i}")
                shard_db.executemany(f"INSERT INTO t{i} VALUES (?, ?, ?, ?)", shard)
                states_db.execute("INSERT INTO s VALUES (?, ?)", (i, one(shard_db, "SELECT dp_partial(?, ?, ?)", kind, sql, options)))
            seed, more = f"SELECT fixed_seed({i})", {"name": f"n{i}", "mechanism": mechanism}
            direct += [seed, f"SELECT dp_release('few', '{kind}', '{sql}', {options_of(parameters, **more)})"]
            indirect += [seed, f"SELECT dp_merge('few', dp_states(state), {options_of(more)}) FROM s WHERE i = {i}"]
        rows_db.commit()
        states_db.commit()
        run_fixed(path + "1", direct)
        run_fixed(path + "2", indirect)
        compare(path + "1", path + "2")


def test_noise_of_the_program_is_known():
    """Control: with another seed or with other data, the ledgers differ."""
    def release(path, seed, x):
        run_fixed(path, story("add-remove", "row") + [f"INSERT INTO t(x) VALUES ({x})", f"SELECT fixed_seed({seed})",
                                                      "SELECT dp_release('exact', 'sum', 'SELECT x FROM t', '{\"clip\":1}')"])
        return books(path)["dp_path"]
    with quick_path() as path:
        first = release(path + "1", 7, 0.5)
        assert release(path + "2", 7, 0.5) == first
        assert release(path + "3", 8, 0.5) != first
        assert release(path + "4", 7, 0.5 + 2**-18) != first


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("protects,whole", [("unit", False), ("unit", True), ("row", False)])
@pytest.mark.sample(1)
@pytest.mark.slow
def test_neighbours_after_merging(protects, whole, adjacency):
    """A unit that is added, removed or replaced changes the merged totals by at most the sensitivity, for any distribution of its
    rows. The noise is the same, so the difference of two points is the difference of their totals."""
    rng = random.Random(f"neighbours {protects} {whole} {adjacency}")
    shard_db = database(protects)
    with quick_path() as path:
        statements, pairs, seen = story(adjacency, protects), [], 0
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE s(i, state)")
            for kind, parameters in [(k, p) for k in KINDS for p in EXACT[k] if not k.endswith("count_distinct") or protects == "unit"]:
                for _ in range(2):
                    base = random_table(rng, 5)
                    mine = [r._replace(unit="new") for r in random_table(rng, 3)]
                    other = [r._replace(unit="new") for r in random_table(rng, 3)] if adjacency == "replace" else []
                    if protects == "row":
                        mine, other = mine[:1], other[:1]
                    names = []
                    for rows in (base + mine, base + other):
                        seen += 1
                        states = states_of(shard_db, scatter(rng, rows, 3, whole), kind, parameters, whole)
                        db.executemany("INSERT INTO s VALUES (?, ?)", [(seen, s) for s in states])
                        names.append(f"n{seen}")
                        statements += [f"SELECT fixed_seed({len(pairs)})",
                                       f"SELECT dp_merge('exact', dp_states(state), {options_of(rest(parameters), name=f'n{seen}')}) FROM s WHERE i = {seen}"]
                    pairs.append(names)
        run_fixed(path, statements)
        ledger = sqlite3.connect(path + "-ledger")
        moved = 0
        for pair in pairs:
            # Both releases use the same stream of noise, one coordinate after the other. A private key that only one of them has
            # shifts the noise of all later coordinates, so such a pair is not compared.
            points = [dict(((key, component), value) for key, component, value in ledger.execute(
                "SELECT key, component, value FROM dp_path JOIN dp_release ON id = release_id WHERE name = ?", (name,))) for name in pair]
            (sensitivity,) = ledger.execute("SELECT sensitivity FROM dp_release WHERE name = ?", (pair[0],)).fetchone()
            if points[0].keys() != points[1].keys():
                continue
            distance = sum((points[0][key] - points[1][key]) ** 2 for key in points[0])
            assert distance <= sensitivity**2, pair
            moved += distance > 0.9 * sensitivity**2
        assert moved > 5  # some changes are near the bound


def test_units_that_span_shards_are_bounded_once():
    """Without whole_units, dp_merge() adds up the rows of a unit over all shards before it bounds the unit. With the option, the
    owner promises that each unit is in one shard. If the promise is false, the unit counts once for each shard that has its
    rows."""
    db = database(tier=True)
    shards = [[Row("a", 5.0, "[5]", "u")] * 3 for _ in range(4)]
    for whole, total in ((False, 1.0), (True, 4.0)):
        states = states_of(database(), shards, "sum", {"clip": 1}, whole)
        assert abs(merged(db, states) - total) < 0.01


@pytest.mark.parametrize("kind,protects,whole", [(*c, w) for c in cases() for w in (False, True) if c[1] == "unit" or not w])
@pytest.mark.sample(12)
def test_states_are_what_they_say(kind, protects, whole):
    """Independent code reads the states. The states of shards add up to the state of one database, in any order."""
    rng = random.Random(f"{kind} {protects} {whole}")
    db = database(protects)
    for parameters in EXACT[kind]:
        rows = random_table(rng)
        states = states_of(db, scatter(rng, rows, 3, whole), kind, parameters, whole)
        rng.shuffle(rows)
        alone, empty = states_of(db, [rows], kind, parameters, whole)
        assert all(set(n) == {0} for n in Decoded(empty).by_name().values())
        found = added([alone])
        assert {name: n for name, n in added(states).items() if name in found or any(n)} == found
        decoded = Decoded(alone)
        assert decoded.parameters["kind"] == kind and decoded.parameters["protects"] == protects
        assert decoded.parameters["sql"] == question(kind) and decoded.parameters["tables"] == {"t": "protected"}
        assert decoded.parameters["whole_units"] == (whole or protects == "row")
        for bound in ("clip", "lo", "hi"):
            if bound in parameters and (bound, protects) != ("clip", "row"):  # if clip is at most one row
                assert struct.unpack(">d", bytes.fromhex(decoded.parameters[bound])) == (parameters[bound],)
        assert len({Decoded(s).serial for s in states}) == len(states)


def test_selection_of_keys_is_of_max_groups():
    """A unit with more than max_groups keys keeps max_groups keys. If units are whole, dp_partial() chooses these keys;
    otherwise dp_merge() chooses them."""
    rows = [Row(f"k{i}", 1.0, None, u) for u in range(50) for i in range(10)]
    shard_db, db = database(), database(tier=True)
    for whole in (False, True):
        shards = scatter(random.Random(5), rows, 4, whole)
        states = states_of(shard_db, shards, "group_count", {"max_groups": 3, "clip": 3}, whole)
        counts = json.loads(merged(db, states))
        assert abs(sum(counts.values()) - 150) < 30  # the noise of a key is clip/1414


# ---- errors -----------------------------------------------------------------------------------------------------


@pytest.fixture
def shard():
    db = database()
    fill(db, [Row("a", 1.5, "[1,2,3]", 1), Row("b", 2.5, "[1,2,3]", "two"), Row(None, None, None, None)])
    return db


@pytest.fixture
def ledger():
    return database(tier=True)


KNOWN = "(known options: mechanism, clip, steps, bytes, seconds, whole_units, shard)"


@pytest.mark.parametrize("arguments,message", [
    ("'sum', 'SELECT x FROM t', '{}'", "clip is missing (the bound on what one unit contributes)"),
    ("'sum', 'SELECT x, unit FROM t', '{\"clip\":1}'", "sql must give 1 column (x), not 2; the policy names the unit"),
    ("'group_sum', 'SELECT k FROM t', '{\"clip\":1}'", "sql must give 2 columns (key, x), not 1; the policy names the unit"),
    ("'sum', 'SELECT x FROM t', 'name'", "options must be a JSON object or NULL, not another text"),
    ("'sum', '{\"clip\":1}'", "clip is missing (the bound on what one unit contributes)"),
    ("'sum', x, '{\"clip\":1}'", "sql must be the text of one SELECT, not a number"),
    ("'sum', 'SELECT x FROM t', '{\"clip\":1,\"name\":\"n\"}'", "unknown option 'name' " + KNOWN),
    ("'sum', 'SELECT x FROM t', '{\"clip\":1,\"weight\":1}'", "unknown option 'weight' " + KNOWN),
    ("'sum', 'SELECT x FROM t', '{\"clip\":1,\"kind\":\"sum\"}'", "unknown option 'kind' " + KNOWN),
    ("'sum', 'SELECT x FROM t', '{\"clip\":1,\"protects\":\"row\"}'", "unknown option 'protects' " + KNOWN),
    ("'sum', 'SELECT x FROM t', '{\"clip\":-1}'", "clip must be a number in [1e-150, 1e+150]"),
    ("'count', 'SELECT x FROM t', '{\"whole_units\":1}'", "whole_units must be true or false"),
    ("'median', 'SELECT x FROM t', '{}'", "lo and hi are missing (the public range of x)"),
    ("'median', 'SELECT x FROM t', '{\"lo\":0}'", "hi is missing (lo and hi are the public range of x)"),
    ("'x', 'SELECT x FROM t', NULL", "unknown kind 'x' (known kinds: count, count_distinct,"),
])
def test_refusals_of_dp_partial(shard, arguments, message):
    found = refusal(shard, f"SELECT dp_partial({arguments}) FROM t WHERE x IS NOT NULL")
    assert found == "dp_partial: " + message or message.endswith(",") and found.startswith("dp_partial: " + message)


def test_dp_partial_charges_nothing_and_needs_a_policy(shard, ledger):
    assert isinstance(partial(ledger, "count", {"clip": 1}), bytes)
    assert one(ledger, "SELECT count(*) FROM dp_charge") == 0
    assert refusal(connect(), "SELECT dp_partial('count', 'SELECT 1 FROM t')") == (
        "dp_partial: no privacy ledger for ':memory:' (run SELECT dp_init())")


def test_no_view_or_trigger(shard):
    shard.execute("CREATE TABLE r(x)")
    shard.execute("CREATE VIEW w AS SELECT dp_partial('count', 'SELECT 1 FROM t') AS state")
    shard.execute("CREATE VIEW m AS SELECT dp_merge('exact', dp_states(x'')) AS state")
    for view, name in (("w", "dp_partial"), ("m", "dp_merge")):
        assert refusal(shard, f"SELECT * FROM {view}") == f"unsafe use of {name}()"
    shard.execute("CREATE TRIGGER g AFTER INSERT ON r BEGIN SELECT dp_partial('count', 'SELECT 1 FROM t'); END")
    assert refusal(shard, "INSERT INTO r VALUES (1)") == "unsafe use of dp_partial()"


def test_a_state_that_is_too_large_says_what_to_do(shard):
    if not hasattr(shard, "setlimit"):
        pytest.skip("Connection.setlimit() is of Python 3.11")
    shard.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 250)
    assert "(make more shards, or, where all rows of a unit are in one, say \"whole_units\":true and name the shard)" in refusal(
        shard, "SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":1}')")


def test_states_that_do_not_fit(shard, ledger):
    rows = database("row")
    count, of_rows = partial(shard, "count", {"clip": 2}), partial(rows, "count", {})
    for other in (partial(shard, "count", {"clip": 2.0000000000000004}), partial(shard, "sum", {"clip": 2}), partial(shard, "count", {"clip": 2}, True),
                  of_rows):
        message = refused_merge(ledger, [count, other])
        assert message.startswith('dp_states: the states have different parameters: {"kind":"count","clip":2.0,"whole_units":false} and {"kind":')
    assert refused_merge(ledger, [of_rows]) == "dp_states: the ledger protects units and that of the state rows (both must be the same)"
    one(rows, "SELECT dp_tier('exact', 1, 1e15, 1e-6)")
    assert refused_merge(rows, [count]) == "dp_states: the ledger protects rows and that of the state units (both must be the same)"
    assert refused_merge(ledger, [None, None]) == (
        "dp_states: no state reached it (a shard without rows has a state, too)")
    assert refused_merge(ledger, ["text"]) == "dp_states: state must be what dp_partial() made, not a text"
    assert refused_merge(ledger, [count, 5]) == "dp_states: state must be what dp_partial() made, not a number"
    assert refused_merge(ledger, [b"a foreign blob of some length"]) == "dp_states: the state is not one of dp_partial()"
    assert refused_merge(ledger, [count], tier="nowhere") == "dp_merge: unknown tier (known tiers: exact)"
    assert refused_merge(ledger, [count], name='{"clip":2}') == "dp_merge: unknown option 'clip' (known options: name, weight, refine, mechanism, shards)"
    tree = partial(shard, "quantile", {"lo": 0, "hi": 4})
    assert refused_merge(ledger, [tree]) == "dp_merge: q is missing (a number in [0, 1] or a JSON array)"
    assert refused_merge(ledger, [tree], name='{"q":2}').startswith("dp_merge: q must be a number in [0, 1]")
    shrunk = partial(shard, "ou_sum", {"clip": 1})
    assert refused_merge(ledger, [shrunk]).startswith("dp_merge: radius must be a finite number above 0")
    assert refused_merge(ledger, [shrunk], name='{"r":1}').endswith("(known options: name, weight, refine, mechanism, radius, centre, theta, shards, rho, t)")
    assert refused_merge(ledger, [count], name='{"weight":2}') == "dp_merge: weight must be a number in (0, 1]"
    assert refusal(connect(), "SELECT dp_merge('exact', dp_states(?))", count) == "dp_states: no privacy ledger for ':memory:' (run SELECT dp_init())"
    assert refusal(ledger, "SELECT dp_merge('exact', dp_states(?), 'n') FROM (SELECT 1 g UNION SELECT 2) GROUP BY g", count) == (
        "dp_merge: the name stands for one release, but the statement evaluates it more than once (leave the name out)")


def signed(state):
    return state + hashlib.sha256(state).digest()


@pytest.mark.parametrize("kind,parameters,whole", [
    ("sum", {"clip": 1}, False), ("group_sum", {"clip": 1}, False), ("group_sum", {"clip": 1}, True),
    ("group_count", {"clip": 1, "keys": ["a", "b"]}, False), ("median", {"lo": 0, "hi": 4, "bins": 4}, True)])
def test_damaged_states(shard, ledger, kind, parameters, whole):
    """A state that is truncated, extended or changed in any byte is refused, and nothing is charged."""
    state = partial(shard, kind, parameters, whole=whole)
    rng = random.Random(kind)
    cut = [state[:n] for n in range(len(state))] + [state + b"\0"]
    changed = [state[:i] + bytes([state[i] ^ 1 << rng.randrange(8)]) + state[i + 1:] for i in range(len(state))]
    for damaged in cut + changed:
        assert refused_merge(ledger, [damaged]).startswith("dp_states: the state is ")


def test_states_with_a_right_sum_that_say_impossible_things(shard, ledger):
    """States are not signed, so anybody can write one. dp_merge() refuses a state that dp_partial() could not have made."""
    def edited(state, at, form, value):
        body = bytearray(state[:-32])
        struct.pack_into(form, body, at, value)
        return signed(bytes(body))

    units = partial(shard, "sum", {"clip": 1})
    keys = partial(shard, "group_sum", {"clip": 1})
    public = partial(shard, "group_count", {"clip": 1, "keys": ["a"]})
    entry = {id(s): 48 + struct.unpack_from("<I", s, 12)[0] + 4 + len("one") for s in (units, keys, public)}
    version = edited(units, 8, "<I", 4)
    assert refused_merge(ledger, [version]) == "dp_states: the state is of a version that this one does not read"
    impossible = [edited(units, 12, "<I", size) for size in (0xffffffff, 10**6)]  # the size of the parameters exceeds the state
    impossible += [edited(s, 16, "<I", n) for s in (units, keys, public) for n in (1, 5, 0xffffffff)]  # keys
    impossible += [edited(s, 20, "<I", n) for s in (units, keys) for n in (0, 1, 3, 0x80000002)]  # the type of an entry
    impossible += [edited(s, 24, "<Q", n) for s in (units, keys) for n in (0, 1, 2**64 - 1, 2**60)]  # a wrong number of entries
    impossible += [edited(units, entry[id(units)], "<Q", kind) for kind in (0, 4, 1 << 62)]  # identities that no unit can have
    impossible += [edited(units, entry[id(units)] + 16, "<I", cell) for cell in (1, 0xffffffff)]
    impossible += [edited(public, entry[id(public)] + 16, "<I", cell) for cell in (1, 0x80000000)]
    impossible += [edited(units, entry[id(units)] - 7, "<I", size) for size in (2, 4, 0xffffffff)]  # the name of the shard
    impossible += [edited(units, entry[id(units)] - 3, "B", byte) for byte in (0, 0xff)]
    first_key = entry[id(keys)]
    impossible += [edited(keys, first_key, "<I", size) for size in (0, 2, 4001, 0xffffffff)]
    impossible += [edited(keys, first_key + 4, "B", byte) for byte in (0, 0xff, 0xc0)]  # bytes that are not the text of a key
    impossible += [edited(keys, len(keys) - 32 - 56 + 16, "<I", cell) for cell in (3, 0xffffffff)]
    for state in impossible:
        assert refused_merge(ledger, [state]) == "dp_states: the state is malformed"
    nameless = partial(shard, "sum", {"clip": 1}, whole=True)
    nameless = signed(nameless[:-32].replace(b"\3\0\0\0one", b"\0\0\0\0"))
    assert Decoded(nameless).shard == "" and refused_merge(ledger, [nameless]) == "dp_states: the state is malformed"
    for state, was, now in ((units, b'"3ff0000000000000"', b'"7ff0000000000000"'),
                            (units, b'"3ff0000000000000"', b'"3FF0000000000000"'), (units, b'"3ff0000000000000"', b'"bff0000000000000"'),
                            (units, b'"3ff0000000000000"', b'1.0000000000000000'), (units, b'"sum"', b'"var"'), (units, b'"unit"', b'"row" '), (units, b'"protected"', b'"public"   '),
                            (units, b'{"kind"', b'["kind"'), (units, b'"kind"', b'"kinx"'), (units, b'"whole_units":false', b'"whole_units":"als"'),
                            (keys, b'"max_groups":4', b'"max_groups":-'),
                            (keys, b'"max_groups":4', b'"max_groups" :'), (units, b"clip", b"cl\0p")):
        assert state.count(was) and len(was) == len(now)
        assert refused_merge(ledger, [signed(state[:-32].replace(was, now))]).startswith("dp_states: ")


NUMBERS = [("sum", {"clip": 1}), ("avg", {"lo": 0, "hi": 4}), ("stddev", {"lo": 0, "hi": 4}), ("group_sum", {"clip": 1}),
           ("median", {"lo": 0, "hi": 4, "bins": 4}), ("group_count", {"clip": 1, "keys": ["a", "b"]})]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("kind,parameters", NUMBERS, ids=[kind for kind, _ in NUMBERS])
def test_numbers_of_states(shard, ledger, kind, parameters, whole):
    """Sums of rows saturate at 2^125. dp_merge() refuses a state with a larger number before anything is charged. A unit with a
    number up to 2^125 is bounded like every other unit."""
    honest, shards = partial(shard, kind, parameters, whole=whole), itertools.count(100)

    def with_number(number):
        """Returns the correct state with `number` as its last number, of another shard and with a new serial number."""
        body = honest[:32] + os.urandom(16) + honest[48:-48] + number.to_bytes(16, "little", signed=True)
        return signed(body.replace(b"\3\0\0\0one", b"\3\0\0\0%d" % next(shards)))

    for number in (2**127 - 1, -2**127, -2**127 + 1, 2**125 + 1, -2**125 - 1, 2**126):
        assert refused_merge(ledger, [with_number(number)]) == "dp_states: the state is malformed"
    for number in (2**125, -2**125):
        assert merged(ledger, [with_number(number) for _ in range(3)]) is not None
    if kind == "sum" and not whole:
        assert abs(merged(ledger, [with_number(2**125) for _ in range(40)])) < 3.1


# ---- life among other statements --------------------------------------------------------------------------------


def test_names(shard, ledger):
    """A name stands for one release. dp_merge() checks its states even for a replay. Nothing that asks for the rows of one database
    replays a merge, and no merge replays a release of one database: they are of other rows."""
    fill(ledger, shard.execute("SELECT * FROM t").fetchall())
    first = merged(ledger, [partial(shard, "sum", {"clip": 2})], name="n")
    assert merged(ledger, [partial(shard, "sum", {"clip": 2})], name="n") == first
    assert merged(ledger, [partial(shard, "sum", {"clip": 2}, whole=True)], name='{"name":"n"}') == first
    assert one(ledger, "SELECT count(*) FROM dp_charge") == 1
    assert refused_merge(ledger, [partial(shard, "sum", {"clip": 3})], name="n").startswith("dp_merge: release 'n' exists with other parameters")
    assert merged(ledger, [partial(shard, "count", {"clip": 1})]) != merged(ledger, [partial(shard, "count", {"clip": 1})])
    state = partial(shard, "avg", {"lo": 0, "hi": 4})
    (text,) = ledger.execute("SELECT sql FROM dp_release WHERE name = 'n'").fetchone()
    one(ledger, "SELECT dp_merge('exact', dp_states(?), 'm')", state)
    for sql, *values in [("SELECT dp_avg('exact', x, 0, 4, 'm') FROM t",),
                         ("SELECT dp_release('exact', 'avg', ?, '{\"name\":\"m\",\"lo\":0,\"hi\":4}')", text)]:
        with pytest.raises(sqlite3.Error, match="'m' exists with another query: dp_merge of SELECT"):
            one(ledger, sql, *values)
    one(ledger, "SELECT dp_avg('exact', x, 0, 4, 'a') FROM t")
    assert "exists with another query: SELECT x FROM t (" in refused_merge(ledger, [state], name="a")


def test_budget(shard):
    """A merge that exceeds the budget is refused with the same message as the aggregate, and leaves nothing behind."""
    db = database()
    one(db, "SELECT dp_tier('exact', dp_rate(1, 1e-6), 1, 1e-6, 'gdp')")
    fill(db, shard.execute("SELECT * FROM t").fetchall())
    message = ""
    for _ in range(3):
        try:
            merged(db, [partial(shard, "count", {"clip": 1})])
        except sqlite3.Error as error:
            message = str(error)
            break
    assert "would exceed" in message
    assert refusal(db, "SELECT dp_count('exact', x, 1) FROM t").replace("dp_count", "dp_merge") == message
    assert refused_merge(db, [partial(shard, "count", {"clip": 1})]) == message


def test_an_aborted_statement(shard, ledger):
    """If a statement fails, SQLite still finishes its aggregates, but does not call dp_merge() with their results. A release
    that was made before stays."""
    state = partial(shard, "count", {"clip": 1})
    refusal(ledger, "SELECT dp_merge('exact', dp_states(?)), abs(min(count(*), -9223372036854775807 - 1))", state)
    assert ledger.execute("SELECT state FROM dp_release").fetchall() in ([("released",)], [])
    before = one(ledger, "SELECT count(*) FROM dp_charge")
    refusal(ledger, "SELECT dp_merge('exact', dp_states(iif(i = 2, abs(-9223372036854775807 - 1), ?))) FROM (SELECT 1 i UNION SELECT 2)", state)
    assert one(ledger, "SELECT count(*) FROM dp_charge") == before
    assert one(ledger, "SELECT dp_verify()") == "ok"


def test_several_merges_in_one_statement(shard, ledger):
    states = [partial(shard, "sum", {"clip": 9}), partial(shard, "count", {"clip": 1})]
    row = ledger.execute("SELECT dp_merge('exact', dp_states(?)), dp_merge('exact', dp_states(?))", states).fetchone()
    assert abs(row[0] - 4) < 0.1 and abs(row[1] - 2) < 0.01
    assert one(ledger, "SELECT count(*) FROM dp_charge") == 2


def test_a_merge_in_a_later_row_stays_released(shard, ledger):
    """From its second row on, a statement that executes looks like one that waits, since SQLite 3.41."""
    state = partial(shard, "sum", {"clip": 1})
    rows = ledger.execute("SELECT 1.0 UNION ALL SELECT dp_merge('exact', dp_states(?), 'late')", (state,)).fetchall()
    assert one(ledger, "SELECT state FROM dp_release WHERE name = 'late'") == "released"
    assert one(ledger, "SELECT value FROM dp_value WHERE release = 'late'") == rows[1][0]


def test_no_merge_and_no_state_inside_a_question(shard, ledger):
    state = partial(shard, "count", {"clip": 1})
    for call in (f"dp_merge(''exact'', dp_states(x''{state.hex()}''))", "dp_partial(''count'', ''SELECT 1 FROM t'')"):
        message = refusal(ledger, f"SELECT dp_release('exact', 'count', 'SELECT {call} FROM t', '{{\"clip\":1}}')")
        assert "a question cannot use" in message or "no such function" in message


def test_a_merge_keeps_the_order_of_keys(shard, ledger):
    """The page has the groups in the order of `keys`, as that of a release has. States with another order are refused."""
    keys = ["c", "a", "b", "a"]
    states = [partial(shard, "group_count", {"clip": 1, "keys": keys}, shard=name) for name in ("north", "south")]
    one(ledger, "SELECT dp_merge('exact', dp_states(value), 'merged') FROM (SELECT ? AS value UNION ALL SELECT ?)", *states)
    one(ledger, "SELECT dp_release('exact', 'group_count', 'SELECT k FROM t', ?)", json.dumps({"name": "plain", "clip": 1, "keys": keys}))
    asked = ledger.execute("SELECT name, keys, json_extract(options, '$.keys') FROM dp_release ORDER BY 1").fetchall()
    assert asked == [(name, '["a","b","c"]', '["c","a","b","a"]') for name in ("merged", "plain")]
    shown = re.findall(r"<tr><th[^>]*>([abc])<", one(ledger, "SELECT dp_report()"))
    assert shown == ["c", "a", "b"] * (len(shown) // 3) and shown, shown
    other = partial(shard, "group_count", {"clip": 1, "keys": sorted(keys)}, shard="south")
    assert "the states have different parameters" in refused_merge(ledger, [states[0], other])
