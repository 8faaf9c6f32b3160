"""Tests dp_response_count(), which sends the key of every row through a public kernel and counts the results. The references are
the exact distributions of the reports, by enumeration over neighbouring tables, the pseudo-inverse of the kernel, and the exact
coverage of the intervals. Statistical tests compare shares and hypergeometric counts with their exact distributions, in 8
comparisons with false-alarm probability 2e-10 each.
"""

import itertools
import json
import math
import sqlite3

import mpmath as mp
import numpy
import pytest
from scipy import stats

from mechanism_truth import ORDERS, curve_of, divergence
from noise_helpers import charges, check_share, column, create_table, error_of, one, open_ledger, quick_path, record

pytestmark = pytest.mark.alarm(2e-9)

ROWS = '{"protects":"row","adjacency":"replace"}'
TIERS = {"in": 40.0, "mid": 30.0, "out": 20.0}
CALL = "SELECT dp_release('in', 'response_count', 'SELECT k FROM t', json_set(?2, '$.kernel', json(?1)))"
KERNEL = [["a", "x", 0.7], ["a", "y", 0.2], ["a", "z", 0.1], ["b", "x", 0.1], ["b", "y", 0.6], ["b", "z", 0.3]]
SECOND = [["x", "u", 0.8], ["x", "v", 0.2], ["y", "u", 0.3], ["y", "v", 0.7], ["z", "u", 0.5], ["z", "v", 0.5]]


@pytest.fixture
def path():
    with quick_path() as name:
        yield name


def ledger(rows, path=":memory:", tiers=TIERS):
    db = open_ledger(tiers, ROWS, path)
    create_table(db, "k")
    db.execute("BEGIN")
    db.executemany("INSERT INTO t VALUES (?)", [(row,) for row in rows])
    db.execute("COMMIT")
    return db


def ask(db, kernel=KERNEL, n=100, otherwise="b", **options):
    return json.loads(one(db, CALL, json.dumps(kernel), json.dumps({"n": n, "otherwise": otherwise, "name": "r", **options})))


def matrix(kernel):
    """Returns the kernel as numbers, with rows and columns in the order of their texts, and these texts."""
    cells = {(x, y): p for x, y, p in kernel}
    xs, ys = sorted({x for x, _ in cells}), sorted({y for _, y in cells})
    table = numpy.array([[cells.get((x, y), 0.0) for y in ys] for x in xs])
    return table / table.sum(axis=1, keepdims=True), xs, ys


def books(path, sql, *arguments):
    db = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)
    rows = db.execute(sql, arguments).fetchall()
    db.close()
    return rows


def reports(path, tier):
    return dict(books(path, "SELECT key, value FROM dp_path WHERE tier = ?", tier))


# ---- laws ----------------------------------------------------------------------------------------------------------


def test_each_row_is_reported_by_its_own_row_of_the_kernel(path):
    db = ledger(["a"] * 20000, path)
    ask(db, n=20000)
    seen = reports(path, "in")
    assert sum(seen.values()) == 20000
    for y, p in (("x", 0.7), ("y", 0.2), ("z", 0.1)):
        check_share(seen[y], 20000, p, y)


def test_rows_that_are_missing_or_unknown_are_reported_by_the_other_state(path):
    db = ledger(["what", None, 5] * 100, path)
    ask(db, n=20000)
    seen = reports(path, "in")
    assert sum(seen.values()) == 20000
    for y, p in (("x", 0.1), ("y", 0.6), ("z", 0.3)):
        check_share(seen[y], 20000, p, y)


def test_of_too_many_rows_some_are_chosen(path):
    """If there are too many rows, some are chosen at random. The kernel of the test changes only one row in a billion, so the
    reports show how many rows were chosen in each state."""
    nearly = [["a", "a", 1 - 1e-9], ["a", "b", 1e-9], ["b", "b", 1 - 1e-9], ["b", "a", 1e-9]]
    db = ledger(["a"] * 6000 + ["b"] * 2000, path)
    ask(db, nearly, 4000)
    seen = reports(path, "in")
    assert sum(seen.values()) == 4000
    tail = min(stats.hypergeom.cdf(seen["a"], 8000, 6000, 4000), stats.hypergeom.sf(seen["a"] - 1, 8000, 6000, 4000))
    assert tail >= 1e-10 and 2900 < seen["a"] < 3100


def test_steps_of_the_kernel(path):
    """If the kernel has `steps`, it is this power of the matrix in `cells`."""
    walk = [["a", "a", 0.9], ["a", "b", 0.1], ["b", "b", 0.8], ["b", "a", 0.2]]
    db = ledger(["a"] * 20000, path)
    one(db, CALL, json.dumps({"steps": 3, "cells": walk}), '{"n":20000,"otherwise":"a"}')
    check_share(reports(path, "in")["a"], 20000, numpy.linalg.matrix_power(matrix(walk)[0], 3)[0, 0])


# ---- costs ---------------------------------------------------------------------------------------------------------


def law(rows, n, table, states, otherwise):
    """Returns the exact distribution of the counts of reports. There are n reports, from n random rows with a known state. If
    there are fewer such rows, `otherwise` fills up the rest."""
    known = [row for row in rows if row in states]
    subsets = list(itertools.combinations(known, n)) if len(known) > n else [tuple(known) + (otherwise,) * (n - len(known))]
    result = {}
    for subset in subsets:
        one_law = {(0,) * table.shape[1]: mp.mpf(1) / len(subsets)}
        for row in subset:
            after = {}
            for counts, p in one_law.items():
                for y, q in enumerate(table[states.index(row)]):
                    key = tuple(c + (i == y) for i, c in enumerate(counts))
                    after[key] = after.get(key, mp.mpf(0)) + p * mp.mpf(float(q))
            one_law = after
        for counts, p in one_law.items():
            result[counts] = result.get(counts, mp.mpf(0)) + p
    return result


def test_no_neighbours_are_further_apart_than_the_charge(path):
    """With n = 2, the test takes all tables of up to four rows whose values are two states and an unknown state. It compares
    all pairs of neighbours among these tables."""
    db = ledger(["a"], path)
    ask(db, n=2)
    one(db, "SELECT dp_mix('r', 'mid', ?)", json.dumps(SECOND))
    curves = {tier: curve_of(blob)[0] for tier, blob in books(path, "SELECT tier, curve FROM dp_publication")}
    first, states, _ = matrix(KERNEL)
    worst = {}
    for tier, table in (("in", first), ("mid", first @ matrix(SECOND)[0])):
        most = {k: mp.mpf(0) for k in (0, 40, 60, len(ORDERS) - 1)}
        for size in range(1, 5):
            for rest in itertools.combinations_with_replacement("ab?", size - 1):
                for p, q in itertools.permutations("ab?", 2):
                    laws = [law(rest + (row,), 2, table, states, "b") for row in (p, q)]
                    keys = sorted(laws[0])
                    assert keys == sorted(laws[1])
                    pair = [[one_law[key] for key in keys] for one_law in laws]
                    for k in most:
                        most[k] = max(most[k], divergence(*pair, ORDERS[k]))
        for k, value in most.items():
            exact = max(divergence(list(map(mp.mpf, a)), list(map(mp.mpf, b)), ORDERS[k]) for a in table for b in table if a is not b)
            assert value <= curves[tier][k] * (1 + 1e-9)
            assert curves[tier][k] == pytest.approx(float(exact), rel=1e-9)
            worst[tier] = float(most[len(ORDERS) - 1] / curves[tier][-1])
    assert all(0.99 < share <= 1 + 1e-9 for share in worst.values())  # for tables with one row, the divergence equals the charge


def test_epsilon_of_randomised_response_and_of_a_chain():
    """Warner's kernel, which keeps the true answer with probability 3/4, costs ln 3. A second kernel, which keeps the
    reported answer with probability 4/5, reduces the cost for the outer tier to ln(13/7)."""
    warner = lambda p, xs, ys: [[x, y, p if i == j else 1 - p] for i, x in enumerate(xs) for j, y in enumerate(ys)]
    db = ledger(["yes", "no"], tiers={"in": 0.6, "out": 0.1, "small": 0.01})
    ask(db, warner(0.75, ["yes", "no"], ["yes", "no"]), 2, "no")
    one(db, "SELECT dp_mix('r', 'out', ?)", json.dumps(warner(0.8, ["yes", "no"], ["ja", "nein"])))
    spent = dict(db.execute("SELECT tier, spent FROM dp_rdp WHERE alpha = 9e999"))
    assert spent["in"] == pytest.approx(math.log(3), rel=1e-11) and spent["out"] == pytest.approx(math.log(13 / 7), rel=1e-11)
    assert spent["small"] == 0
    refusal = error_of(db, CALL.replace("'in'", "'out'"), json.dumps(warner(0.75, ["yes", "no"], ["yes", "no"])), '{"n":2,"otherwise":"no"}')
    rate = math.log(3) * math.tanh(math.log(3) / 2)
    assert refusal.startswith(f"dp_release: the kernel costs a rate of {rate:.3g}"[:-1]) and "tier 'out'" in refusal


# ---- estimates -----------------------------------------------------------------------------------------------------


def truth(table, seen):
    """Returns the estimates, the largest variance of a report's weight for each state, and the weights."""
    weights = numpy.linalg.pinv(table)  # (columns x rows), K pinv(K) = 1
    values = numpy.array(seen) @ weights
    second = table @ weights**2 - (table @ weights) ** 2
    return values, second.max(axis=0), weights


def test_estimates_are_those_of_the_pseudo_inverse(path):
    rng = numpy.random.default_rng(7)
    states, symbols = ["a", "b", "c"], ["u", "v", "w", "x", "y"]
    table = rng.dirichlet(numpy.full(5, 2.0), 3) * 0.9 + 0.02
    table /= table.sum(axis=1, keepdims=True)
    kernel = [[x, y, float(table[i, j])] for i, x in enumerate(states) for j, y in enumerate(symbols)]
    db = ledger(["a"] * 300 + ["c"] * 500, path)
    answer = ask(db, kernel, 1000)
    seen = reports(path, "in")
    values, variance, weights = truth(table, [seen[y] for y in symbols])
    for i, x in enumerate(states):
        row = record(db, "SELECT value, stddev, low, high FROM dp_value WHERE key = ?", x)
        assert row["value"] == answer[x] == pytest.approx(values[i], rel=1e-9)
        assert row["stddev"] == pytest.approx(math.sqrt(1000 * variance[i]), rel=1e-9)
        off = abs(weights[:, i][None, :] - (numpy.arange(3) == i)[:, None]).max()
        level = math.log(40)
        bernstein = off * level / 3 + math.sqrt((off * level / 3) ** 2 + 2 * 1000 * variance[i] * level)
        hoeffding = numpy.ptp(weights[:, i]) * math.sqrt(1000 * level / 2)
        assert row["high"] - row["value"] == pytest.approx(min(bernstein, hoeffding), rel=1e-6)
        assert row["value"] - row["low"] == pytest.approx(min(bernstein, hoeffding), rel=1e-6)
    assert one(db, "SELECT dp_verify()") == "ok" and ask(db, kernel, 1000) == answer


@pytest.mark.parametrize("keep", [0.55, 0.75, 0.99])
@pytest.mark.parametrize("n", [1, 10, 60])
def test_intervals_hold_whatever_the_data(keep, n):
    """For every true count, the interval contains the truth with an exact probability of at least 95%, and the exact standard
    deviation is at most `stddev`."""
    db = ledger(["a"])
    ask(db, [["a", "a", keep], ["a", "b", 1 - keep], ["b", "b", keep], ["b", "a", 1 - keep]], n)
    row = record(db, "SELECT value, stddev, high FROM dp_value WHERE key = 'a'")
    half, k = row["high"] - row["value"], numpy.arange(n + 1)
    estimate = (k - n * (1 - keep)) / (2 * keep - 1)
    for count in range(n + 1):
        law_of_reports = numpy.convolve(stats.binom.pmf(numpy.arange(count + 1), count, keep),
                                        stats.binom.pmf(numpy.arange(n - count + 1), n - count, 1 - keep))
        assert law_of_reports[abs(estimate - count) <= half].sum() >= 0.95
        assert law_of_reports @ estimate == pytest.approx(count, abs=1e-9)
        assert math.sqrt(law_of_reports @ (estimate - count) ** 2) <= row["stddev"] * (1 + 1e-9)


# ---- outward -------------------------------------------------------------------------------------------------------


def test_outward_through_another_kernel(path):
    db = ledger(["a"] * 9000 + ["b"] * 1000, path)
    ask(db, n=10000)
    before = charges(db)
    answer = json.loads(one(db, "SELECT dp_mix('r', 'out', ?)", json.dumps(SECOND)))
    inner, outer = reports(path, "in"), reports(path, "out")
    assert sum(outer.values()) == 10000 and list(outer) == ["u", "v"] and len(charges(db)) > len(before)
    table = matrix(KERNEL)[0] @ matrix(SECOND)[0]
    values, variance, _ = truth(table, [outer["u"], outer["v"]])
    assert [answer["a"], answer["b"]] == pytest.approx(list(values), rel=1e-9)
    assert column(db, "SELECT stddev FROM dp_value WHERE tier = 'out'") == pytest.approx(list(numpy.sqrt(10000 * variance)))
    mean = 0.8 * inner["x"] + 0.3 * inner["y"] + 0.5 * inner["z"]
    spread = math.sqrt(0.16 * inner["x"] + 0.21 * inner["y"] + 0.25 * inner["z"])
    assert abs(outer["u"] - mean) < 7 * spread
    assert json.loads(one(db, "SELECT dp_mix('r', 'out', ?)", json.dumps(SECOND))) == answer
    assert one(db, "SELECT dp_verify()") == "ok"
    for tier, kernel, wanted in (("out", KERNEL, "is at tier 'out' by another kernel"), ("mid", SECOND, "tier 'mid' is not outside tier 'out'"),
                                 ("in", SECOND, "is at tier 'in' from the start")):
        assert wanted in error_of(db, "SELECT dp_mix('r', ?, ?)", tier, json.dumps(kernel))


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel, options, wanted", [
    (KERNEL, {"n": None}, "n must be"), (KERNEL, {"n": 0}, "n must be"), (KERNEL, {"n": 1.5}, "n must be a whole number"),
    (KERNEL, {"n": 1e9}, "n must be"), (KERNEL, {"otherwise": "c"}, "otherwise must be an x of the kernel"),
    (KERNEL, {"refine": True, "name": "r"}, "reports cannot be refined"), (KERNEL, {"mechanism": "gaussian"}, "unknown mechanism (this kind has: "),
    (KERNEL, {"clip": 2}, "unknown option 'clip' (known options: "), ([["a", "x", 0.5]], {}, "the probabilities of one x of the kernel do not add up to 1"),
    ([["a", "x", 1], ["b", "y", 1]], {}, "the kernel gives some x a y that another x never gives"),
    ([["a", "x", 0.5], ["a", "y", 0.5], ["b", "x", 0.5], ["b", "y", 0.5]], {}, "the rows of the kernel are too close to linear combinations"),
    ([[x, y, p] for x, ps in (("a", (0.1, 0.9)), ("b", (0.9, 0.1)), ("c", (0.5, 0.5))) for y, p in zip("xy", ps)], {},
     "the rows of the kernel are too close to linear combinations"),
    ([[str(i), y, 0.5] for i in range(65) for y in "xy"], {"otherwise": "1"}, "the kernel has 65 states and 2 symbols")])
def test_bad_requests(kernel, options, wanted):
    db = ledger(["a"])
    refusal = error_of(db, CALL, json.dumps(kernel), json.dumps({"n": 10, "otherwise": "b", **options}))
    assert refusal.startswith("dp_release: " + wanted), refusal
    assert not charges(db) and not column(db, "SELECT name FROM dp_release")


def test_missing_parts_and_other_ledgers():
    db = ledger(["a"])
    for options, wanted in (({"n": 5}, "otherwise is missing"), ({"otherwise": "a"}, "n is missing")):
        assert error_of(db, CALL, json.dumps(KERNEL), json.dumps(options)).startswith("dp_release: " + wanted)
    assert error_of(db, "SELECT dp_release('in', 'response_count', 'SELECT k FROM t', '{\"n\":5,\"otherwise\":\"a\"}')"
                    ).startswith("dp_release: kernel is missing")
    assert error_of(db, CALL, None, '{"n":5,"otherwise":"a"}').startswith("dp_release: kernel must be a JSON array")
    for terms, wanted in (("{}", "a kernel is applied to rows"), ('{"protects":"row"}', "a kernel on rows needs a ledger with replaced rows")):
        other = open_ledger(TIERS, terms)
        create_table(other, "k, unit")
        other.execute("INSERT INTO t VALUES ('a', 1)")
        assert error_of(other, CALL, json.dumps(KERNEL), '{"n":5,"otherwise":"a"}').startswith("dp_release: " + wanted)
    ask(db)
    assert "reach a tier outside their own only through a public kernel (dp_mix)" in error_of(db, "SELECT dp_diffuse('r', 'out')")
    assert "whose 95% interval is in dp_value" in error_of(db, "SELECT dp_interval('r', 'in', 'a', 0.9)")
    assert "exists with other parameters" in error_of(db, CALL, json.dumps(KERNEL), '{"n":99,"otherwise":"b","name":"r"}')
    assert "dp_mix: the kernel has no row for x 'z'" in error_of(db, "SELECT dp_mix('r', 'out', ?)", json.dumps(SECOND[:4]))


def test_by_release_and_in_a_plan():
    db = ledger(["a"] * 30)
    options = json.dumps({"kernel": KERNEL, "n": 50, "otherwise": "b"})
    plan = json.loads(one(db, "SELECT dp_plan('in', 'response_count', NULL, ?)", options))
    assert not charges(db)
    answer = json.loads(one(db, "SELECT dp_release('in', 'response_count', 'SELECT k FROM t', ?)", options))
    assert sorted(answer) == ["a", "b"] and one(db, "SELECT dp_verify()") == "ok"
    assert one(db, "SELECT DISTINCT figure FROM dp_value") == ("answers in each category, without the effect of randomisation, of exactly 50 rows,"
                                                               " missing ones count as b")
    assert plan["epsilon"] == pytest.approx(math.log(7), rel=1e-9)
    assert one(db, "SELECT spent FROM dp_rdp WHERE tier = 'in' AND alpha = 9e999") == pytest.approx(math.log(7), rel=1e-9)


def test_exactness_of_the_total():
    """There are exactly n reports for any number of rows, so the reports do not reveal this number."""
    for rows in ([], ["a"] * 3, ["?"] * 500, ["a", "b"] * 100):
        with quick_path() as name:
            db = ledger(rows, name)
            options = json.dumps({"kernel": KERNEL, "n": 50, "otherwise": "b"})
            one(db, "SELECT dp_release('in', 'response_count', 'SELECT k FROM t', ?)", options)
            assert sum(reports(name, "in").values()) == 50
            db.close()
