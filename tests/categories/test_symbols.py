"""Tests releases of a symbol: compares dp_choice() and dp_mix() with exact probabilities, and tests refusals.

This file computes the reference values: the number of units that have a candidate, the probabilities of the exponential mechanism
or randomized response, the probabilities after a kernel, and divergences by definition. The tests compare shares with their exact
distributions, in 60 comparisons at 1e-10 on each side.
"""

import itertools
import json
import math
import random
import signal
import sqlite3

import mpmath as mp
import pytest

from conftest import interrupted, run
from kinds_reference import identity, key_text
from mechanism_truth import ORDERS, curve_of, divergence, kernel_curve
from noise_helpers import create_table, charges, check_share, column, connect, error_of, one, open_ledger, quick_path

pytestmark = [pytest.mark.alarm(2e-8), pytest.mark.usefixtures("forty_digits")]

TIERS = {"in": 0.5, "mid": 0.2, "out": 0.1, "far": 0.01}
CHOICE = "SELECT dp_choice(?, k, ?, ?) FROM s"
SURE = 500.0  # at this rate, a candidate other than the most common one wins with probability e^-31
FEW_ORDERS = [*range(0, 113, 16), 113]
IDENTITY = '[["a","a",1],["b","b",1],["c","c",1]]'
NOISY = '[["a","a",0.6],["a","b",0.4],["b","b",0.7],["b","a",0.3],["c","a",0.5],["c","c",0.5]]'
FLIP = '[["a","a",0.75],["a","b",0.25],["b","b",0.75],["b","a",0.25],["c","a",0.5],["c","b",0.5]]'


@pytest.fixture
def path():
    with quick_path() as path:
        yield path


def fill(db, rows):
    """Replaces the protected table s(k, unit) by these rows."""
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 's'").fetchone():
        create_table(db, "k, unit", "s")
    db.execute("BEGIN")
    db.execute("DELETE FROM s")
    db.executemany("INSERT INTO s VALUES (?, ?)", rows)
    db.execute("COMMIT")


ROWS = [("a", 1), ("a", 2), ("b", 3)]


def ledger(path=":memory:", tiers=TIERS, options="{}", rows=ROWS):
    db = open_ledger(tiers, options, path)
    fill(db, rows)
    return db


def choose(db, tier="in", candidates=("a", "b", "c"), name="r", **options):
    return one(db, CHOICE, tier, json.dumps(list(candidates)), json.dumps({**({"name": name} if name else {}), **options}))


def mix(db, tier, kernel, name="r"):
    return one(db, "SELECT dp_mix(?, ?, ?)", name, tier, kernel)


def refuses(db, wanted, sql, *arguments):
    before = charges(db)
    message = error_of(db, sql, *arguments)
    assert wanted in message, message
    assert charges(db) == before


# ---- counts --------------------------------------------------------------------------------------------------------


def counts_of(rows, candidates, by_unit=True):
    """Returns the number of units that have each candidate. A unit counts once, for any number of rows, and NULL is nobody."""
    texts = sorted({key_text(c) for c in candidates}, key=str.encode)
    if not by_unit:
        return {t: sum(key_text(k) == t for k, _ in rows) for t in texts}
    return {t: len({identity(unit) for k, unit in rows if key_text(k) == t and unit is not None}) for t in texts}


@pytest.mark.parametrize("options", ["{}", '{"protects":"row"}'], ids=["units", "rows"])
def test_counts_are_exact(options):
    """The rows have units with many rows and keys, NULLs, keys of all types, and keys that are no candidates. The test adds units
    with the candidate 'rung'. A candidate that `count` units have wins if count - 1 units have 'rung', and loses if count + 1
    units have 'rung'."""
    rng = random.Random(5)
    db = ledger(tiers={"sure": SURE}, options=options)
    by_unit = options == "{}"
    sql_choice = CHOICE if by_unit else CHOICE.replace("unit", "NULL")
    keys = ["a", "b", 3, 3.0, "3", 2.5, None, b"\x00\xff", "", "A", "unknown", "a "]
    candidates = {"a": "a", "3": 3, "2.5": 2.5, "null": None, "": "", "x'00ff'": "x'00ff'", "none": "none"}
    for _ in range(12):
        rows = [(rng.choice(keys), rng.choice([1, 1.0, "1", None, 2, b"1", 3, 4])) for _ in range(rng.choice([0, 5, 40]))]
        rows.append(("unknown", 1))  # an aggregate needs at least one row
        truth = counts_of(rows, candidates.values(), by_unit)
        for text, count in truth.items():
            for rungs in {max(0, count - 1), count + 1}:
                fill(db, rows + [("rung", f"other {i}") for i in range(rungs)])
                winner = one(db, sql_choice, "sure", json.dumps([candidates[text], "rung"]), None)
                assert winner == (text if count > rungs else "rung" if rungs > count else winner), (rows, text, count, rungs)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("form", ["aggregate", "dp_release"])
def test_both_forms_and_adjacencies(adjacency, form):
    db = ledger(tiers={"sure": SURE}, options=json.dumps({"adjacency": adjacency}), rows=[("a", 1), ("a", 1), ("a", 1), ("b", 2), ("b", 3)])
    for _ in range(2):  # the second time replays the release
        winner = (choose(db, "sure") if form == "aggregate" else
                  one(db, "SELECT dp_release('sure', 'choice', 'SELECT k FROM s', ?)", '{"candidates":["c","b","a","b"],"name":"r"}'))
        assert winner == "b" and len(charges(db)) == 1
    assert db.execute("SELECT key, component, value, stddev, low, high FROM dp_value").fetchall() == [("b", 0, 1, None, None, None)]


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip", "response"])
def test_a_unit_in_several_shards_counts_once(mechanism):
    """Three units have candidate a, with a row in each of two shards. Four units have candidate b, with one row each. b
    wins, because the six rows of a are only three units."""
    db = ledger(tiers={"sure": SURE})
    rows = [("a", unit, shard) for unit in (1, 2, 3) for shard in (0, 1)] + [("b", 10 + i, i % 2) for i in range(4)]
    db.execute("CREATE TABLE states(state)")
    for shard in (0, 1):
        fill(db, [row[:2] for row in rows if row[2] == shard])
        db.execute("INSERT INTO states SELECT dp_partial('choice', 'SELECT k FROM s', '{\"candidates\":[\"a\",\"b\"]}')")
    options = json.dumps({"name": "r", "mechanism": mechanism})
    assert one(db, "SELECT dp_merge('sure', dp_states(state), ?) FROM states", options) == "b"
    assert one(db, "SELECT dp_merge('sure', dp_states(state), ?) FROM states", options) == "b"
    assert len(charges(db)) == 1 and one(db, "SELECT dp_verify()") == "ok"


# ---- exact probabilities -------------------------------------------------------------------------------------------


def probabilities(counts, mechanism, epsilon, replace=False):
    """Returns the probabilities of the candidates in the order of their texts. Permute-and-flip is summed over all orders."""
    if mechanism == "permute-and-flip":
        accepted = [mp.exp(mp.mpf(epsilon) / (2 if replace else 1) * (n - max(counts))) for n in counts]
        found = [mp.mpf(0)] * len(counts)
        for order in itertools.permutations(range(len(counts))):
            reached = mp.mpf(1)
            for i in order:
                found[i] += reached * accepted[i]
                reached *= 1 - accepted[i]
        return [p / math.factorial(len(counts)) for p in found]
    if mechanism == "exponential":
        step = mp.mpf(epsilon) / (2 if replace else 1)
        weights = [mp.exp(step * (n - max(counts))) for n in counts]
    else:
        mode = counts.index(max(counts))
        weights = [mp.exp(mp.mpf(epsilon)) if i == mode else mp.mpf(1) for i in range(len(counts))]
    return [w / mp.fsum(weights) for w in weights]


def charged(db, name="r", tier=None):
    """Returns the curve of the first charge for a release, or of the first charge at the given tier."""
    where = "tier = ?" if tier else "1 OR ?"
    return curve_of(db.execute(f"SELECT curve FROM dp_charge WHERE release = ? AND ({where}) ORDER BY id", (name, tier)).fetchone()[0])[0]


def neighbouring(counts, replace):
    """Returns all counts that one more, one less or one replaced unit can give."""
    for change in itertools.product((-1, 0, 1) if replace else (0, 1), repeat=len(counts)):
        for sign in (1,) if replace else (1, -1):
            other = [n + sign * d for n, d in zip(counts, change)]
            if any(change) and min(other) >= 0:
                yield other


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip", "response"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("rate", [0.02, 0.5, 8.0])
@pytest.mark.sample(9)
def test_no_neighbours_are_further_apart_than_the_charge(mechanism, adjacency, rate):
    """The test enumerates small counts of 2 and 3 candidates and some larger counts, with all their neighbours. For every pair,
    the divergence is never above the curve at any order, in both directions. The worst pair is close to the curve."""
    replace = adjacency == "replace"
    db = ledger(tiers={"t": rate}, options=json.dumps({"adjacency": adjacency}))
    choose(db, "t", mechanism=mechanism)
    curve = charged(db)
    epsilon = curve[-1] / (1 + mp.mpf(2) ** -41) ** 2  # the published epsilon was rounded up twice
    assert all(value <= order * rate * (1 + 1e-11) for order, value in zip(ORDERS[:-1], curve))
    worst = [mp.mpf(0)] * len(FEW_ORDERS)
    with mp.workdps(20):
        tables = [list(c) for size in (2, 3) for c in itertools.product(range(3), repeat=size)]
        for counts in tables + [[0, 600], [1, 600], [1, 599], [9, 10, 40], [1, 30, 30]]:
            p = probabilities(counts, mechanism, epsilon, replace)
            for other in neighbouring(counts, replace):
                q = probabilities(other, mechanism, epsilon, replace)
                if p != q:
                    for i, k in enumerate(FEW_ORDERS):
                        worst[i] = max(worst[i], divergence(p, q, ORDERS[k]))
    for i, k in enumerate(FEW_ORDERS):
        assert worst[i] <= curve[k] * (1 + mp.mpf(10) ** -11), ORDERS[k]
        assert worst[i] >= curve[k] * {"response": 0.999999, "exponential": 0.5, "permute-and-flip": 0.4}[mechanism], ORDERS[k]
    assert worst[-1] >= curve[-1] * (1 - 1e-9)
    if mechanism == "exponential" and rate < 0.1:
        assert worst[0] >= curve[0] * 0.95


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip", "response"])
@pytest.mark.parametrize("options", [{"adjacency": "add-remove"}, {"adjacency": "replace"}, {"protects": "row"}], ids=str)
def test_neighbouring_tables(mechanism, options):
    """Makes tables that differ by a unit with any rows, or by a row. The divergence of their counts is within the charge. (The
    test above assumes how the counts of neighbours differ.)"""
    rng = random.Random(7)
    replace, by_unit = options.get("adjacency") == "replace", "protects" not in options
    db = ledger(tiers={"t": 1.0}, options=json.dumps(options))
    one(db, CHOICE if by_unit else CHOICE.replace("unit", "NULL"), "t", '["a","b","c","d"]', json.dumps({"name": "r", "mechanism": mechanism}))
    curve = charged(db)
    epsilon = curve[-1] / (1 + mp.mpf(2) ** -41) ** 2
    candidates = ["a", "b", "c", "d"]
    with mp.workdps(20):
        for _ in range(60):
            rows_of = lambda unit: [(rng.choice([*candidates, None, "x"]), unit) for _ in range(rng.choice([1, 2, 200]) if by_unit else 1)]
            base = [(rng.choice([*candidates, None]), rng.randrange(8)) for _ in range(rng.randrange(15))]
            one_table, other = base + rows_of("new"), base + (rows_of("new") if replace else [])
            p, q = (probabilities(list(counts_of(t, candidates, by_unit).values()), mechanism, epsilon, replace) for t in (one_table, other))
            for k in FEW_ORDERS[::2] + [113]:
                for pair in ((p, q), (q, p)):
                    assert divergence(*pair, ORDERS[k]) <= curve[k] * (1 + mp.mpf(10) ** -11)


def test_epsilons():
    """Epsilon is sqrt(8 rate) for the exponential mechanism, by its bounded range. For the others, epsilon
    solves epsilon tanh(epsilon/2) = rate. The test includes weights, and rates at the bounds."""
    db = ledger(tiers={"t": 0.5, "sure": SURE, "over": 501.0, "least": 1e-12})
    for tier, weight, rate in (("t", 1, 0.5), ("t", 0.01, 0.005), ("sure", 1, 500), ("least", 1, 1e-12), ("over", 0.99, 501 * 0.99)):
        for mechanism in ("exponential", "permute-and-flip", "response"):
            name = f"{tier} {weight} {mechanism}"
            choose(db, tier, name=name, mechanism=mechanism, weight=weight)
            epsilon = charged(db, name, tier)[-1]
            wanted = mp.sqrt(8 * mp.mpf(rate)) if mechanism == "exponential" else mp.findroot(
                lambda e: e * mp.tanh(e / 2) - rate, mp.sqrt(2 * mp.mpf(rate)) if rate < 1 else rate)
            assert wanted * (1 - mp.mpf("1e-5")) <= epsilon <= wanted * (1 + mp.mpf("1e-11")), name  # in steps of 2^-40
    for mechanism in ("exponential", "permute-and-flip", "response"):
        refuses(db, f"the tier has a rate outside the [1e-12, 500] of mechanism '{mechanism}'", CHOICE, "over", '["a"]',
                json.dumps({"mechanism": mechanism}))
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip", "response"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("counts,rate", [([3, 2, 2, 0], 0.3), ([0, 0, 0], 0.5), ([1, 2], 0.5)], ids=str)
@pytest.mark.sample(3)
def test_the_law_is_that_of_the_probabilities(mechanism, adjacency, counts, rate):
    """250 draws detect a probability that is wrong by 0.2. The cases include ties and tables without rows that count."""
    candidates = "abcd"[:len(counts)]
    rows = [(c, f"{c}{i}") for c, n in zip(candidates, counts) for i in range(n)] + [("x", 0)]
    db = ledger(tiers={"t": rate}, options=json.dumps({"adjacency": adjacency}), rows=rows)
    choose(db, "t", candidates, mechanism=mechanism)
    for _ in range(250):
        choose(db, "t", candidates, None, mechanism=mechanism)
    symbols = column(db, "SELECT key FROM dp_value")
    exact = probabilities(counts, mechanism, charged(db)[-1], adjacency == "replace")
    for c, p in zip(candidates, exact):
        check_share(symbols.count(c), len(symbols), float(p), c)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("rows", [[], [(None, 1), (None, 2)], [("x", 1)], [("b", 1), ("b", None)]], ids=str)
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip", "response"])
def test_little_data(rows, mechanism):
    """The query gives no rows, only NULLs, or no candidates. All candidates then have the same count. 'response' then
    takes the candidate whose text comes first as the truth. The others choose any candidate."""
    db = ledger(tiers={"sure": SURE}, rows=rows)
    choose = lambda candidates: one(db, "SELECT dp_release('sure', 'choice', 'SELECT k FROM s', ?)",
                                    json.dumps({"candidates": candidates, "mechanism": mechanism}))
    assert choose(["only"]) == "only"
    winners = {choose(["c", "b"]) for _ in range(40)}
    tied = not any(k == "b" for k, _ in rows)
    assert winners == ({"b", "c"} if tied and mechanism != "response" else {"b"})  # fails by chance with probability 2^-39
    null = choose([None, "b", "c"])
    if any(k != "x" for k, _ in rows) or mechanism == "response":
        assert null == ("null" if any(k is None for k, _ in rows) else "b")
    assert len(charges(db)) == 42


@pytest.mark.parametrize("candidates,wanted", [
    ("[]", "candidates is empty"), ("a", "candidates must be a JSON array"), ('{"a":1}', "candidates must be a JSON array"),
    ("[1,", "malformed"), (None, "candidates must be a JSON array, not NULL"), (5, "candidates must be a JSON array, not a number"),
])
def test_bad_candidates(candidates, wanted):
    db = ledger()
    read = []
    db.create_function("read", 1, lambda x: read.append(x) or x)
    assert wanted in error_of(db, "SELECT dp_choice('in', k, ?) FROM s", candidates).replace("malformed JSON", "malformed")
    if candidates != "a" and candidates is not None and candidates != 5:
        error_of(db, "SELECT dp_release('in', 'choice', 'SELECT read(k) FROM s', ?)", '{"candidates":%s}' % candidates)
    assert not read and not charges(db)


@pytest.mark.parametrize("options,wanted", [
    ('{"mechanism":"gaussian"}', "unknown mechanism (this kind has: exponential, permute-and-flip, response)"),
    ('{"mechanism":"laplace"}', "unknown mechanism (this kind has: exponential, permute-and-flip, response)"),
    ('{"clip":2}', "unknown option"), ('{"keys":["a"]}', "unknown option"),
    ('{"candidates":["a"]}', "unknown option"), ('{"half_width":2}', "unknown option 'half_width': it is for dp_plan() and dp_batch() only"),
    ('{"weight":0}', "weight must be"), ('{"weight":1e-13}', "weight makes a rate outside"),
])
def test_bad_options(options, wanted):
    db = ledger()
    message = error_of(db, CHOICE, "in", '["a"]', options)
    assert wanted in message or wanted.replace("1.0e-13", "1e-13") in message, message
    assert not charges(db)


def test_candidates_are_missing_from_a_release():
    db = ledger()
    assert "candidates is missing (a JSON array)" in error_of(db, "SELECT dp_release('in', 'choice', 'SELECT k FROM s', 'r')")


def test_a_name_keeps_its_question():
    db = ledger()
    symbol = choose(db)
    before = charges(db)
    assert choose(db) == choose(db, candidates=["c", "b", "a", "a"]) == choose(db, refine=True) == choose(db, mechanism="exponential") == symbol
    assert charges(db) == before
    for options in ({"mechanism": "response"}, {"weight": 0.5}):
        refuses(db, "release 'r' exists with other parameters: choice", CHOICE, "in", '["a","b","c"]', json.dumps({"name": "r", **options}))
    refuses(db, "exists with other parameters", CHOICE, "in", '["a","b"]', '{"name":"r"}')


def test_plans():
    db = ledger()
    plan = json.loads(one(db, "SELECT dp_plan('mid', 'choice', NULL, ?)", '{"candidates":["a","b"]}'))
    assert not charges(db)
    choose(db, "mid")
    assert math.isclose(plan["epsilon"], charged(db)[-1], rel_tol=1e-11)
    for part in plan["tiers"]:
        assert (part["epsilon_after"], part["releases_left"]) == db.execute(
            "SELECT spent_epsilon, releases_left FROM dp_budget WHERE tier = ?", (part["tier"],)).fetchone()
        assert (part["pays"] > 0) == (part["tier"] in ("in", "mid"))
    refuses(db, "kind 'choice' has no clip", "SELECT dp_plan('mid', 'choice', 1, ?)", '{"candidates":["a","b"]}')
    refuses(db, "half_width is for", "SELECT dp_plan('mid', 'choice', NULL, ?)", '{"candidates":["a","b"],"half_width":1}')


# ---- dp_mix: laws --------------------------------------------------------------------------------------------------


def table_of(kernel, states=("a", "b", "c")):
    """Returns the rows of a kernel for these states, in high precision, and its symbols."""
    cells = {(x, y): p for x, y, p in json.loads(kernel)}
    symbols = sorted({y for (_, y), p in cells.items() if p > 0})
    rows = [[mp.mpf(cells.get((x, y), 0)) for y in symbols] for x in states]
    return [[v / mp.fsum(row) for v in row] for row in rows], symbols


def test_the_law_of_a_mix():
    """Makes 150 releases with an inner symbol, a second symbol drawn from it, and a third symbol drawn from the second. Compares
    the frequency of each combination with its exact probability."""
    db = ledger(tiers={"in": 0.05, "mid": 0.02, "out": 0.01}, rows=[("a", 1), ("a", 2), ("b", 3), ("c", 4)])
    second = '[["a","x",0.2],["a","y",0.8],["b","x",1],["c","y",0.5],["c","z",0.5]]'
    for i in range(150):
        choose(db, "in", name=f"r{i}")
        mix(db, "mid", NOISY, f"r{i}")
        mix(db, "out", second, f"r{i}")
    triples = list(zip(*[column(db, "SELECT key FROM dp_value WHERE tier = ? ORDER BY release_id", t) for t in ("in", "mid", "out")]))
    first_rows, _ = table_of(NOISY)
    second_rows, third = table_of(second)
    start = probabilities([2, 1, 1], "exponential", charged(db, "r0", "in")[-1])
    cells = {(a, b, c): start[i] * first_rows[i][j] * second_rows[j][k] for i, a in enumerate("abc") for j, b in enumerate("abc")
             for k, c in enumerate(third)}
    assert set(triples) <= {cell for cell, p in cells.items() if p > 0}
    for cell, p in cells.items():
        if p:
            check_share(triples.count(cell), len(triples), float(p), cell)
    assert one(db, "SELECT dp_verify()") == "ok"


def random_kernel(rng, states, symbols):
    rows = {}
    for x in states:
        weights = [rng.random() ** rng.choice((1, 6)) if rng.random() < 0.8 else 0.0 for _ in symbols]
        weights[rng.randrange(len(symbols))] += 0.1
        rows[x] = [w / sum(weights) for w in weights]
    return json.dumps([[x, y, p] for x in states for y, p in zip(symbols, rows[x])])


def composed(first, second):
    with mp.workdps(60):
        return [[mp.fsum(p * row[j] for p, row in zip(law, second)) for j in range(len(second[0]))] for law in first]


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(6))
def test_the_curve_of_mixes(path, seed):
    """Two kernels are applied one after the other. The curve at each tier is the exact worst case of all kernels so far for the
    epsilon of the first symbol, or the previous curve if this is smaller. The exact output distributions of neighbours are never
    further apart than the curve."""
    rng = random.Random(seed)
    mechanism, rate = rng.choice(["exponential", "permute-and-flip", "response"]), rng.choice([0.05, 0.5, 3.0])
    db = ledger(path, {"in": rate, "mid": rate / 2, "out": rate / 3})
    kernels = [random_kernel(rng, "abc", "abcd"), random_kernel(rng, "abcd", "uv")]
    choose(db, mechanism=mechanism)
    mix(db, "mid", kernels[0])
    mix(db, "out", kernels[1])
    assert one(db, "SELECT dp_verify()") == "ok"
    spent = {tier: [s for (s,) in db.execute("SELECT spent FROM dp_rdp WHERE tier = ?", (tier,))] for tier in ("in", "mid", "out")}
    db.close()
    books = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)
    curves = {tier: curve_of(blob)[0] for tier, blob in books.execute("SELECT tier, curve FROM dp_publication")}
    books.close()
    tables = [table_of(kernels[0]), table_of(kernels[1], sorted(set(table_of(kernels[0])[1])))]
    before, first = curves["in"], curves["in"][-1]
    for tier, table in (("mid", tables[0][0]), ("out", composed(tables[0][0], tables[1][0]))):
        for k, alpha in enumerate(ORDERS):
            truth = min(mp.mpf(before[k]), kernel_curve(alpha, first, table))
            assert truth * (1 - mp.mpf("1e-13")) - mp.mpf("1e-14") <= curves[tier][k] <= truth * (1 + mp.mpf("2e-12")) + mp.mpf("1e-14"), alpha
        before = curves[tier]
    for tier in spent:
        assert all(0 <= s / c - 1 <= 1e-11 for s, c in zip(spent[tier], curves[tier])), tier
    epsilon = curves["in"][-1]
    push = lambda law, table: [mp.fsum(p * row[j] for p, row in zip(law, table)) for j in range(len(table[0]))]
    with mp.workdps(25):
        for counts in ([0, 0, 0], [2, 1, 2], [9, 0, 0], [3, 3, 0], [0, 8, 1]):
            p = probabilities(counts, mechanism, epsilon)
            for other in neighbouring(counts, False):
                q = probabilities(other, mechanism, epsilon)
                laws = [push(p, tables[0][0]), push(q, tables[0][0])]
                for tier, pair in (("mid", laws), ("out", [push(law, tables[1][0]) for law in laws])):
                    if pair[0] != pair[1]:
                        for k in FEW_ORDERS:
                            assert divergence(*pair, ORDERS[k]) <= curves[tier][k] * (1 + mp.mpf("1e-9")) + mp.mpf("1e-20")


@pytest.mark.parametrize("steps", [2, 3, 64, 1000])
def test_steps_are_a_power_of_the_kernel(path, steps):
    """dp_mix(..., steps) is charged for a power of the kernel. A call with the same arguments returns the stored symbol."""
    db = ledger(path, {"in": 3.0, "out": 2.0})
    rng = random.Random(steps)
    rows = {x: [rng.random() ** 8 + 1e-3 for _ in "abc"] for x in "abc"}
    kernel = json.dumps([[x, y, p / sum(row)] for x, row in rows.items() for y, p in zip("abc", row)])
    first = choose(db)
    symbol = one(db, "SELECT dp_mix('r', 'out', ?, ?)", kernel, steps)
    assert symbol == one(db, "SELECT dp_mix('r', 'out', ?, ?)", kernel, steps) and first in "abc"
    refuses(db, "is at tier 'out' by another kernel", "SELECT dp_mix('r', 'out', ?, ?)", kernel, steps + 1)
    refuses(db, "is at tier 'out' by another kernel", "SELECT dp_mix('r', 'out', ?)", kernel)
    assert one(db, "SELECT dp_verify()") == "ok"
    stored = one(db, "SELECT kernel FROM dp_publication WHERE tier = 'out'")
    assert json.loads(stored)["steps"] == steps and one(db, "SELECT dp_mix('r', 'out', ?)", stored) == symbol
    epsilon = one(db, "SELECT spent FROM dp_rdp WHERE tier = 'in' AND alpha = 9e999")
    got = one(db, "SELECT spent FROM dp_rdp WHERE tier = 'out' AND alpha = 9e999")
    table, power = table_of(kernel)[0], None
    for _ in range(steps):
        power = composed(power, table) if power else table
    with mp.workdps(40):
        want = kernel_curve(ORDERS[-1], epsilon, power)
        assert mp.almosteq(got, want, rel_eps=mp.mpf("1e-9"), abs_eps=mp.mpf("1e-14"))


def test_steps_move_the_symbol():
    """A kernel that is a cycle of three symbols moves the symbol by `steps`."""
    cycle = '[["a","b",1],["b","c",1],["c","a",1]]'
    for steps in (1, 2, 3, 1000000):
        db = ledger(tiers={"in": SURE, "out": SURE - 1})
        start = choose(db)
        assert one(db, "SELECT dp_mix('r', 'out', ?, ?)", cycle, steps) == "abc"[("abc".index(start) + steps) % 3]
    for steps, wanted in ((0, "steps must be"), (1.5, "steps must be a whole number"), (1000001, "steps must be"), ("2 or so", "steps must be")):
        refuses(db, wanted, "SELECT dp_mix('r', 'out', ?, ?)", cycle, steps)
    refuses(db, "the kernel has no row for one of its y, which its next step needs", "SELECT dp_mix('r', 'out', ?, 2)",
            '[["a","d",1],["b","d",1],["c","d",1]]')
    for kernel, wanted in (('{"cells":[["a","a",1]],"steps":0}', "steps must be"), ('{"steps":2}', "the kernel has no cells"),
                           ('{"cells":[["a","a",1]],"power":2}', "has an array of cells, and a number of steps, and nothing else")):
        refuses(db, wanted, "SELECT dp_mix('r', 'out', ?)", kernel)


@pytest.mark.parametrize("steps", [1, 3, 30, 1000, 10**6])
def test_rows_that_are_almost_alike(path, steps):
    """Some rows differ by a few steps of 2^-52, which their probabilities as doubles do not show. The charge is never below the
    true divergence, which is computed from the drawn weights."""
    rng = random.Random(steps)
    db = ledger(path, {"in": 0.5, "out": 0.1})
    first = [rng.randrange(2**48, 2**50) for _ in range(3)]
    first.append(2**52 - sum(first) + 4)  # the sums of these rows are not powers of two
    second = [w + rng.randrange(-steps, steps + 1) for w in first]
    second[0] += steps + 1
    choose(db, candidates="ab")
    mix(db, "out", json.dumps([[x, y, w / 2**52] for x, row in (("a", first), ("b", second)) for y, w in zip("pqrs", row)]))
    db.close()
    books = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)
    before, curve = [curve_of(blob)[0] for (blob,) in books.execute("SELECT curve FROM dp_publication ORDER BY rowid")]
    books.close()
    with mp.workdps(60):
        table = [[mp.mpf(w) / sum(row) for w in row] for row in (first, second)]
        for k, alpha in enumerate(ORDERS):
            truth = kernel_curve(alpha, before[-1], table)
            assert truth <= curve[k] <= truth * (1 + mp.mpf("2e-12")), alpha


FORGETS = '[["a","x",1],["b","x",1],["c","x",1]]'


def test_a_kernel_that_forgets_costs_nothing():
    db = ledger()
    choose(db)
    before = charges(db)
    assert mix(db, "out", FORGETS) == "x" and charges(db) == before
    assert mix(db, "far", '[["x","a",0.5],["x","b",0.5]]') in "ab" and charges(db) == before
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- dp_mix: who pays, and what is refused -------------------------------------------------------------------------


def test_tiers_between_pay_and_tiers_inside_do_not():
    db = ledger()
    choose(db)
    before = len(charges(db))
    mix(db, "out", FLIP)
    assert [c[2] for c in charges(db)[before:]] == ["mid", "out"]
    assert list(charged(db, tier="mid")) == list(charged(db, tier="out"))
    assert one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'far'") == 0


def with_room():
    db = open_ledger({})
    fill(db, ROWS)
    for tier, rate in TIERS.items():
        one(db, "SELECT dp_tier(?, ?, 20, 1e-6)", tier, rate)
    choose(db)
    return db


def test_a_kernel_that_changes_nothing_charges_nobody_inside():
    db = with_room()
    before = len(charges(db))
    mix(db, "out", IDENTITY)
    assert [c[2] for c in charges(db)[before:]] == ["mid", "out"]


def test_a_second_kernel_that_changes_nothing_charges_nobody_inside():
    db = with_room()
    mix(db, "mid", FLIP)
    before = len(charges(db))
    mix(db, "out", IDENTITY)
    assert [c[2] for c in charges(db)[before:]] == ["out"]


def test_only_outward_from_the_last_symbol():
    db = ledger()
    choose(db, "mid")
    mix(db, "out", FLIP)
    for tier in ("in", "mid"):
        wanted = ("is at tier 'mid' from the start (ask dp_value)" if tier == "mid" else
                  "tier 'in' is not outside tier 'out', where the last symbol of release 'r' is")
        refuses(db, wanted, "SELECT dp_mix('r', ?, ?)", tier, FLIP)
    one(db, "SELECT dp_tier('between', 0.15, 1e15, 1e-6)")
    refuses(db, "tier 'between' is not outside tier 'out'", "SELECT dp_mix('r', 'between', ?)", FLIP)
    refuses(db, "is at tier 'out' by another kernel (it is mixed once)", "SELECT dp_mix('r', 'out', ?)", NOISY)
    assert mix(db, "far", FLIP) in "ab" and one(db, "SELECT dp_verify()") == "ok"


def test_the_same_kernel_again_is_read_back():
    """The same kernel is recognised for any order and form of its cells and any types of numbers and names. Cells of 0 are
    ignored."""
    db = ledger(rows=[(1, 1), (1, 2), (2.5, 3)])
    choose(db, candidates=[1, 2.5])
    symbol = mix(db, "out", '[[1,"x",0.5],[1,7,0.5],[2.5,7,1]]')
    before = charges(db)
    db.execute("CREATE TABLE kernel(x, y, p)")
    db.executemany("INSERT INTO kernel VALUES (?, ?, ?)", [(2.5, 7, 1), (1, "7", 0.5), (1.0, "x", 0.5), ("1", "none", 0.0)])
    for kernel in ('[["2.5","7",1],["1","7",0.5],["1","x",0.5]]',
                   '[{"x":1,"y":"x","p":0.5},{"p":0.5,"y":7,"x":"1"},{"x":2.5,"y":7,"p":1.0}]',
                   ' [[1,"x",5e-1],[2.5,"x",0],{"x":1,"y":7,"p":0.5},[2.5,7.0,1.0]] '):
        assert mix(db, "out", kernel) == symbol
    assert one(db, "SELECT dp_mix('r', 'out', json_group_array(json_array(x, y, p))) FROM kernel") == symbol
    assert one(db, "SELECT dp_mix('r', 'out', json_group_array(json_object('x', x, 'y', y, 'p', p))) FROM kernel") == symbol
    assert charges(db) == before
    assert json.loads(one(db, "SELECT kernel FROM dp_publication WHERE tier = 'out'")) == [["1", "7", 0.5], ["1", "x", 0.5], ["2.5", "7", 1]]


def test_a_backslash_is_no_zero_byte():
    """The six characters \\u0000 are a valid name, in every JSON notation. A name with a zero byte is refused."""
    name = "\\u0000"
    for written in (json.dumps(name), r'"\u005cu0000"'):
        db = ledger(rows=[(name, 1), (name, 2)], tiers={"sure": SURE, "out": 1.0})
        assert one(db, CHOICE, "sure", f'[{written},"b"]', '{"name":"r"}') == name
        assert mix(db, "out", f'[[{written},{written},1],["b","b",1]]') == name
        assert one(db, "SELECT dp_verify()") == "ok"
    refuses(db, "a zero byte", CHOICE, "sure", r'["\u0000","b"]', '{"name":"s"}')
    refuses(db, "a zero byte", CHOICE, "sure", r'["\\\u0000","b"]', '{"name":"s"}')


BAD_KERNELS = [
    ("[]", "the kernel is empty"), ("", "kernel"), ("x", "malformed"), ('{"x":1}', "array"), ("[1", "malformed"), ("null", ""), ("5", ""),
    ('[["a","a",1],["b","b",1]]', "the kernel has no row for x 'c'"),
    ('[["a","a",1],["b","b",1],["C","c",1]]', "the kernel has no row for x 'c'"),
    ('[["a","a",0.5],["b","b",1],["c","c",1]]', "the probabilities of one x of the kernel do not add up to 1"),
    ('[["a","a",0.9999999],["b","b",1],["c","c",1]]', "the probabilities of one x of the kernel do not add up to 1"),
    ('[["a","a",1],["b","b",1],["c","c",1],["c","a",0.000001]]', "the probabilities of one x of the kernel do not add up to 1"),
    ('[["a","a",1],["b","b",1],["c","c",0]]', "the probabilities of one x of the kernel do not add up to 1"),
    ('[["a","a",1],["b","b",1],["c","c",1],["d","d",0.5]]', "the probabilities of one x of the kernel do not add up to 1"),
    ('[["a","a",1.5],["a","b",-0.5],["b","b",1],["c","c",1]]', "p must be a number in [0, 1]"),
    ('[["a","a",-1e-300],["a","b",1],["b","b",1],["c","c",1]]', "p must be a number in [0, 1]"),
    ('[["a","a","1"],["b","b",1],["c","c",1]]', "p must be a number in [0, 1], not a text"),
    ('[["a","a",null],["b","b",1],["c","c",1]]', "p must be a number in [0, 1], not NULL"),
    ('[["a","a",true],["b","b",1],["c","c",1]]', "p must be a number in [0, 1]"),
    ('[["a","a",1e400],["b","b",1],["c","c",1]]', ""),
    ('[["a","a",0.5],["a","a",0.5],["b","b",1],["c","c",1]]', "the kernel has two cells for the same x and y"),
    ('[["1","a",0.5],[1,"a",0.5]]', "the kernel has two cells for the same x and y"),
    ('[["a","a"],["b","b",1],["c","c",1]]', "a cell of the kernel needs x, y and p"),
    ('[["a","a",1,2],["b","b",1],["c","c",1]]', "a cell of the kernel has x, y and p, and nothing else"),
    ('[{"x":"a","p":1}]', "a cell of the kernel needs x, y and p"), ('[{"x":"a","y":"a","q":1}]', "a cell of the kernel has x, y and p, and nothing else"),
    ('[{"x":"a","x":"b","y":"a","p":1}]', "twice"), ('[{"x":"a","0":"b","y":"a","p":1}]', "a cell of the kernel has x, y or p twice"),
    ('[{"2":1,"x":"a","y":"a","p":1}]', "a cell of the kernel has x, y or p twice"), ('["a"]', "a cell of the kernel must be an array [x, y, p]"), ("[[]]", "needs x, y and p"),
    ("[null]", "a cell of the kernel must be an array"), (json.dumps([[f"s{i}", "y", 1] for i in range(65)]), "the kernel has 65 states and 1 symbols; at most 64"),
    (json.dumps([["a", f"y{i}", 1 / 1025] for i in range(1025)]), "at most 64 and 1024 are searched"),
]


@pytest.mark.parametrize("kernel,wanted", BAD_KERNELS, ids=lambda value: str(value)[:40])
def test_kernels_that_are_none(kernel, wanted):
    db = ledger()
    choose(db)
    refuses(db, wanted, "SELECT dp_mix('r', 'out', ?)", kernel)
    assert one(db, "SELECT count(*) FROM dp_publication") == 1
    assert mix(db, "out", FLIP) in "ab" and one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("arguments,wanted", [
    (("nobody", "out", FLIP), "unknown release (dp_release lists them)"), (("r", "nowhere", FLIP), "unknown tier"), ((None, "out", FLIP), "name"),
    (("r", None, FLIP), "tier"), (("r", "out", None), "kernel"), (("r", "out", 5), "kernel"), (("number", "out", FLIP), "release 'number' has neither a symbol nor counts or sums of public groups"),
    (("laplace", "out", FLIP), "release 'laplace' has neither a symbol nor counts"),
    (("groups", "out", FLIP), "release 'groups' has neither a symbol nor counts or sums of public groups"),
])
def test_mixes_of_what_is_none(arguments, wanted):
    db = ledger()
    choose(db)
    one(db, "SELECT dp_count('in', k, 1, 'number') FROM s")
    one(db, "SELECT dp_count('in', k, 1, '{\"name\":\"laplace\",\"mechanism\":\"laplace\"}') FROM s")
    one(db, "SELECT dp_group_avg('in', k, 1, 0, 2, '{\"name\":\"groups\",\"keys\":[\"a\"]}') FROM s")
    refuses(db, wanted, "SELECT dp_mix(?, ?, ?)", *arguments)


def test_a_large_kernel():
    """Tests kernels with the largest number of states and with the largest number of symbols."""
    db = ledger()
    candidates = [f"s{i:02}" for i in range(64)]
    choose(db, candidates=candidates, name="states")
    choose(db, candidates="ab", name="symbols")
    kernel = json.dumps([[x, f"y{(i + j) % 16}", 1 / 4] for i, x in enumerate(candidates) for j in range(4)])
    assert mix(db, "out", kernel, "states").startswith("y")
    kernel = json.dumps([[x, f"y{j}", 1 / 1024] for x in "ab" for j in range(1024)])
    assert mix(db, "out", kernel, "symbols").startswith("y")


def test_symbols_are_no_numbers():
    db = ledger()
    symbol = choose(db, "mid")
    refuses(db, "release 'r' is a symbol, and reaches a tier outside its own only through a public kernel (dp_mix)", "SELECT dp_diffuse('r', 'out')")
    refuses(db, "release 'r' is a symbol", "SELECT dp_diffuse('r', 'in')")
    refuses(db, "release 'r' is a symbol", CHOICE, "in", '["a","b","c"]', '{"name":"r","refine":true}')
    refuses(db, "release 'r' is a symbol", CHOICE, "out", '["a","b","c"]', '{"name":"r"}')
    for key in (None, "a", 0):
        refuses(db, "release 'r' is a symbol, not a number", "SELECT dp_interval('r', 'mid', ?, 0.9)", key)
    assert one(db, "SELECT dp_diffuse('r', 'mid')") == symbol


def test_a_coalition_has_seen_the_innermost():
    db = ledger()
    choose(db)
    mix(db, "mid", NOISY)
    mix(db, "out", FLIP)
    seen = {tiers: json.loads(one(db, "SELECT dp_exposure(?)", tiers)) for tiers in ("in", "mid", "out", "out,mid", "mid,in,out", "far")}
    assert seen["out,mid"]["curve"] == seen["mid"]["curve"] and seen["mid,in,out"]["curve"] == seen["in"]["curve"]
    for inner, outer in (("in", "mid"), ("mid", "out")):
        assert all(a >= b for a, b in zip(seen[inner]["curve"], seen[outer]["curve"]))
    assert "curve" not in seen["far"]


def test_budgets_and_other_accountants():
    """Symbols are refused at a gdp tier, at tiers outside it, and at a tier without enough budget. Nothing is drawn or
    charged."""
    db = open_ledger({"in": 0.5})
    fill(db, ROWS)
    one(db, "SELECT dp_tier('gdp', 0.2, 3, 1e-6, 'gdp')")
    refuses(db, "tier 'gdp' has exact Gaussian accounting", CHOICE, "gdp", '["a"]', None)
    choose(db)
    one(db, "SELECT dp_tier('poor', 1e-6, 0.01, 1e-6)")
    refuses(db, "tier 'gdp' has exact Gaussian accounting", "SELECT dp_mix('r', 'poor', ?)", FLIP)
    db = open_ledger({"in": 0.5})
    fill(db, ROWS)
    one(db, "SELECT dp_tier('poor', 1e-6, 0.01, 1e-6)")
    choose(db)
    refuses(db, "tier 'poor' would exceed its budget", "SELECT dp_mix('r', 'poor', ?)", FLIP)
    assert one(db, "SELECT count(*) FROM dp_publication") == 1
    weak = '[["a","a",0.5001],["a","b",0.4999],["b","a",0.4999],["b","b",0.5001],["c","a",0.5],["c","b",0.5]]'
    assert mix(db, "poor", weak) in "ab" and one(db, "SELECT dp_verify()") == "ok"


def test_tiers_created_later_pay_what_they_see():
    db = open_ledger({"in": 0.5, "out": 0.1})
    fill(db, ROWS)
    choose(db)
    mix(db, "out", FLIP)
    one(db, "SELECT dp_tier('inner', 1, 1e15, 1e-6)")
    one(db, "SELECT dp_tier('between', 0.3, 1e15, 1e-6)")
    spent = {tier: column(db, "SELECT spent FROM dp_rdp WHERE tier = ?", tier) for tier in ("in", "inner", "out", "between")}
    assert spent["between"] == spent["out"]
    assert all(math.isclose(a, b, rel_tol=1e-14) for a, b in zip(spent["inner"], spent["in"]))
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- what is left behind -------------------------------------------------------------------------------------------


def test_a_query_that_fails_is_charged_and_gives_no_symbol():
    db = ledger()
    assert "the charge stays" in interrupted(db, "SELECT dp_release('in', 'choice', 'SELECT k FROM s', ?)", '{"candidates":["a"],"name":"r"}')
    assert len(charges(db)) == 1 and one(db, "SELECT state FROM dp_release") == "failed"
    refuses(db, "release 'r' failed", "SELECT dp_mix('r', 'out', '[[\"a\",\"a\",1]]')")
    refuses(db, "release 'r' failed and its charge stays", CHOICE, "in", '["a"]', '{"name":"r"}')
    one(db, "SELECT dp_discard('r')")
    assert choose(db, candidates=["a"]) == "a" and one(db, "SELECT dp_verify()") == "ok"


def test_killed_while_it_reads(path):
    """After a kill during the read, the ledger has the charge and no symbol, and no second symbol is drawn for this charge."""
    ledger(path).close()
    run("""
        db, other = connect(sys.argv[1]), connect(sys.argv[1])
        def look():
            if one(other, "SELECT count(*) FROM dp_charge"): os.kill(os.getpid(), signal.SIGKILL)
        db.set_progress_handler(look, 1)
        one(db, "SELECT dp_choice('in', k, '[\\"a\\",\\"b\\",\\"c\\"]', 'r') FROM s")
        """, path, expect=-signal.SIGKILL)
    db = connect(path)
    assert len(charges(db)) == 1 and one(db, "SELECT state FROM dp_release") == "charged"
    assert one(db, "SELECT count(*) FROM dp_value") == 0
    refuses(db, "release 'r' is not finished", "SELECT dp_mix('r', 'out', ?)", FLIP)
    refuses(db, "release 'r' is not finished", CHOICE, "in", '["a","b","c"]', '{"name":"r"}')
    assert one(db, "SELECT dp_verify()") == "ok"
    one(db, "SELECT dp_discard('r')")
    assert choose(db) in "abc" and len(charges(db)) == 2


def test_killed_after_the_answer_the_same_symbols_are_replayed(path):
    ledger(path).close()
    printed = run("""
        db = connect(sys.argv[1])
        print(one(db, "SELECT dp_choice('in', k, '[\\"a\\",\\"b\\",\\"c\\"]', 'r') FROM s"))
        print(one(db, "SELECT dp_mix('r', 'out', ?)", sys.argv[2]), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """, path, FLIP, expect=-signal.SIGKILL)
    db = connect(path)
    before = charges(db)
    assert [choose(db), mix(db, "out", FLIP)] == printed.split() and charges(db) == before
