"""Tests kernel aggregates and dp_amplify(). The tests compare coefficients with their definitions. They compare Theorem 1 with
the exact worst case over all (epsilon, delta)-DP pairs of input distributions, by a linear program for each set of outputs.
They also test malformed kernels."""

import itertools
import math
import sqlite3
import time

import numpy as np
import pytest

from conftest import HELPERS
from kernel_truth import random_kernel, worst_pair
from paper_truth import connect

DB = connect()
DB.execute("CREATE TEMP TABLE k(x, y, p)")


def load(kernel):
    DB.execute("DELETE FROM k")
    DB.executemany("INSERT INTO k VALUES (?, ?, ?)",
                   [(i, j, p) for (i, j), p in np.ndenumerate(kernel)])


def ask(kernel, name, *parameters):
    load(kernel)
    marks = "".join(", ?" for _ in parameters)
    return DB.execute(f"SELECT {name}(x, y, p{marks}) FROM k", parameters).fetchone()[0]


def amplify(condition, gamma, epsilon, delta):
    return DB.execute("SELECT epsilon, delta FROM dp_amplify(?, ?, ?, ?)",
                      (condition, gamma, epsilon, delta)).fetchone()


def stick(epsilon, p, q):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def kernel_of_any_size(rng, sparse):
    return random_kernel(rng, rng.integers(1, 6), rng.integers(1, 5), sparse)


@pytest.mark.parametrize("seed", range(12))
def test_theorem_1_part_2_is_the_exact_worst_case(seed):
    rng = np.random.default_rng(seed)
    kernel = kernel_of_any_size(rng, sparse=seed % 2)
    for epsilon, delta in ((0, 0.1), (0.7, 0), (0.7, 0.05), (2, 0.3)):
        worst = worst_pair(kernel, kernel, epsilon, delta, epsilon)
        assert ask(kernel, "dp_kernel_delta", epsilon, delta) == pytest.approx(worst, abs=1e-9)
        for out in (0, 0.5 * epsilon, epsilon, 1.5 * epsilon + 0.1):
            worst = worst_pair(kernel, kernel, epsilon, delta, out)
            got = ask(kernel, "dp_kernel_delta", epsilon, delta, out)
            assert got == pytest.approx(worst, abs=1e-9), (epsilon, delta, out)


@pytest.mark.parametrize("seed", range(6))
def test_exact_worst_case_is_the_maximum_over_four_states(seed):
    """Compares dp_kernel_delta() with a formula for the exact worst case, which is a maximum over any four states. Two states
    always attain the maximum."""
    kernel = kernel_of_any_size(np.random.default_rng(seed), sparse=seed % 2)
    for epsilon, delta, out in ((1.3, 0.1, 0.4), (0.5, 0, 0.5), (2, 0.4, 0)):
        e, o = math.exp(epsilon), math.exp(out)
        weights = [delta, (1 - delta) * (e - o) / (1 + e), -(1 - delta) * (e * o - 1) / (1 + e), -o * delta]
        want = max(np.maximum(np.dot(weights, kernel[list(x)]), 0).sum()
                   for x in itertools.product(range(len(kernel)), repeat=4))
        assert ask(kernel, "dp_kernel_delta", epsilon, delta, out) == pytest.approx(want, abs=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_theorem_1_bounds_the_worst_case(seed):
    """Parts 1 to 4 of Theorem 1 hold with the coefficients of the kernel."""
    rng = np.random.default_rng(100 + seed)
    kernel = kernel_of_any_size(rng, sparse=seed % 2)
    epsilon, delta = rng.uniform(0.01, 2), rng.choice([0, rng.uniform(0, 0.5)])
    for condition, name in (("dobrushin", "dp_kernel_dobrushin"), ("doeblin", "dp_kernel_doeblin"),
                            ("ultra", "dp_kernel_ultra")):
        gamma = ask(kernel, name)
        if gamma is None:
            continue
        out, bound = amplify(condition, gamma, epsilon, delta)
        assert ask(kernel, "dp_kernel_delta", epsilon, delta, out) <= bound + 1e-12, condition
    if delta > 0:
        kernel_epsilon = math.log1p(math.expm1(epsilon) / delta)
        gamma = ask(kernel, "dp_kernel_dobrushin_epsilon", kernel_epsilon)
        out, bound = amplify("dobrushin-epsilon", gamma, epsilon, delta)
        assert out == epsilon
        assert ask(kernel, "dp_kernel_delta", epsilon, delta) == pytest.approx(bound, abs=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_coefficients_are_contraction_coefficients(seed):
    """For random pairs of input distributions, the ratio of the divergences after and before the kernel never exceeds the
    coefficient. Pairs of single states attain the coefficient (Asoodeh et al., Theorem 2)."""
    rng = np.random.default_rng(200 + seed)
    kernel = kernel_of_any_size(rng, sparse=seed % 2)
    n = len(kernel)
    epsilon = rng.choice([0, rng.uniform(0, 2)])
    gamma = ask(kernel, "dp_kernel_dobrushin_epsilon", epsilon)
    for _ in range(200):
        mu, nu = rng.dirichlet([0.3] * n, 2)
        assert stick(epsilon, mu @ kernel, nu @ kernel) <= gamma * stick(epsilon, mu, nu) + 1e-13
    attained = max(stick(epsilon, a, b) for a in kernel for b in kernel)
    assert gamma == pytest.approx(attained, abs=1e-14)
    if epsilon == 0:
        assert ask(kernel, "dp_kernel_dobrushin") == pytest.approx(gamma, abs=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_coefficients_by_their_definitions(seed):
    kernel = kernel_of_any_size(np.random.default_rng(300 + seed), sparse=seed % 3 == 0)
    tv = max(np.abs(a - b).sum() / 2 for a in kernel for b in kernel)
    assert ask(kernel, "dp_kernel_dobrushin") == pytest.approx(tv, abs=1e-15)
    doeblin = ask(kernel, "dp_kernel_doeblin")
    assert doeblin == pytest.approx(1 - kernel.min(axis=0).sum(), abs=1e-14)
    columns = kernel[:, kernel.max(axis=0) > 0]
    ultra = ask(kernel, "dp_kernel_ultra")
    if (columns == 0).any():
        assert ultra is None
    else:
        assert ultra == pytest.approx(1 - (columns.min(axis=0) / columns.max(axis=0)).min(), abs=1e-15)
    previous = 0
    for epsilon in (9e999, 5, 1, 0.1, 0):
        gamma = ask(kernel, "dp_kernel_dobrushin_epsilon", epsilon)
        assert previous <= gamma + 1e-15
        previous = gamma
    assert previous <= tv + 1e-15 <= doeblin + 2e-15 <= (1 if ultra is None else ultra) + 3e-15


def test_submultiplicative():
    rng = np.random.default_rng(7)
    for _ in range(50):
        one, two = rng.dirichlet([0.5] * 4, 3), rng.dirichlet([0.5] * 5, 4)
        for name in ("dp_kernel_dobrushin", "dp_kernel_doeblin", "dp_kernel_ultra"):
            assert ask(one @ two, name) <= ask(one, name) * ask(two, name) + 1e-13


def test_very_large_epsilon_is_support():
    kernel = np.array([[0.5, 0.5, 0], [0.25, 0, 0.75]])
    for epsilon in (40, 700, 709.9, 1400, 1e300, 9e999):
        assert ask(kernel, "dp_kernel_dobrushin_epsilon", epsilon) == 0.75
    tiny = [(1, 1, 5e-324), (1, 2, 1.0), (2, 2, 1.0)]
    DB.execute("DELETE FROM k")
    DB.executemany("INSERT INTO k VALUES (?, ?, ?)", tiny)
    assert DB.execute("SELECT dp_kernel_dobrushin_epsilon(x, y, p, 1) FROM k").fetchone()[0] == 5e-324
    DB.execute("DELETE FROM k")
    DB.executemany("INSERT INTO k VALUES (?, ?, ?)",
                   [(1, 1, 1e-310), (1, 2, 1.0), (2, 1, 0.5), (2, 2, 0.5)])
    got = DB.execute("SELECT dp_kernel_dobrushin_epsilon(x, y, p, 712) FROM k").fetchone()[0]
    want = 0.5 - math.exp(712 - 310 * math.log(10))
    assert got == pytest.approx(want, rel=1e-9)
    wide = np.zeros((2, 20))  # the same for a row that is long enough for the vectorised sum
    wide[0, 3], wide[0, 4], wide[1, 3], wide[1, 4] = 1e-310, 1, 0.5, 0.5
    assert ask(wide, "dp_kernel_dobrushin_epsilon", 712) == pytest.approx(want, rel=1e-9)


def test_closely_alike_rows_keep_their_digits():
    kernel = np.array([[0.5, 0.5], [0.5 + 2**-50, 0.5 - 2**-50]])
    assert ask(kernel, "dp_kernel_dobrushin") == 2**-50
    assert ask(kernel, "dp_kernel_doeblin") == 2**-50
    assert ask(kernel, "dp_kernel_ultra") == pytest.approx(2**-49, rel=1e-14)
    got = ask(kernel, "dp_kernel_dobrushin_epsilon", 2**-52)
    assert got == pytest.approx(2**-50 - 2**-53, rel=1e-11)


def local_delta(kernel, epsilon):
    """Returns the least delta at which a local randomiser is (epsilon, delta)-LDP, by a search over all sets of outputs
    and all pairs of values."""
    sets = [list(some) for size in range(kernel.shape[1] + 1)
            for some in itertools.combinations(range(kernel.shape[1]), size)]
    return max(a[some].sum() - math.exp(epsilon) * b[some].sum() for a in kernel for b in kernel for some in sets)


@pytest.mark.parametrize("seed", range(12))
def test_table_1(seed):
    """Balle et al., Table 1: each condition is equivalent to a level of local differential privacy, which the test computes by
    definition over all sets."""
    kernel = kernel_of_any_size(np.random.default_rng(400 + seed), sparse=seed % 3 == 0)
    assert ask(kernel, "dp_kernel_dobrushin") == pytest.approx(local_delta(kernel, 0), abs=1e-14)
    for epsilon in (0.1, 0.7, 2):
        gamma = ask(kernel, "dp_kernel_dobrushin_epsilon", epsilon)
        assert gamma == pytest.approx(local_delta(kernel, epsilon), abs=1e-14)
        least = ask(kernel, "dp_kernel_epsilon", 9e999, 0, gamma)
        assert least <= epsilon + 1e-12 and local_delta(kernel, least) == pytest.approx(gamma, abs=1e-12)
    ultra = ask(kernel, "dp_kernel_ultra")
    if ultra is None:  # some output has probability 0 for one value only, so no epsilon is enough
        assert local_delta(kernel, 700) > 0 and ask(kernel, "dp_kernel_epsilon", 9e999, 0, 0) == math.inf
        return
    pure = -math.log1p(-ultra)
    assert local_delta(kernel, pure) == pytest.approx(0, abs=1e-13)
    assert pure == 0 or local_delta(kernel, 0.999 * pure) > 1e-9
    assert ask(kernel, "dp_kernel_epsilon", 9e999, 0, 0) == pytest.approx(pure, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_doeblin_threshold(seed):
    """Tests Theorem 1(3) of Balle et al. For a gamma below the threshold, the delta after the kernel is smaller than
    before. For a gamma between the threshold and 1, delta becomes larger. For gamma = 1, delta stays the same."""
    rng = np.random.default_rng(500 + seed)
    epsilon, delta = rng.uniform(0.05, 4), 10 ** rng.uniform(-9, -0.5)
    threshold = delta * math.exp(epsilon) / ((1 - delta) * math.expm1(epsilon))
    assert amplify("doeblin", 1, epsilon, delta)[1] == pytest.approx(delta, rel=1e-12)
    for part in (0, 0.01, 0.5, 1 - 1e-9):
        assert amplify("doeblin", min(part * threshold, 1), epsilon, delta)[1] < delta
    if threshold < 1:
        assert amplify("doeblin", threshold, epsilon, delta)[1] == pytest.approx(delta, rel=1e-11)
        for part in (1e-9, 0.01, 0.5, 1 - 1e-6):
            assert amplify("doeblin", threshold + part * (1 - threshold), epsilon, delta)[1] > delta


# ---- dp_amplify ------------------------------------------------------------------------------------


def test_amplify_against_high_precision():
    import mpmath as mp

    rng = np.random.default_rng(9)
    with mp.workdps(400):
        for _ in range(300):
            gamma = rng.choice([0, 1, rng.random(), 10 ** rng.uniform(-300, 0), 1 - 10 ** rng.uniform(-15, 0), 1e-307])
            epsilon = rng.choice([0, rng.uniform(0, 3), 10 ** rng.uniform(-12, 0), rng.uniform(0, 1400), rng.uniform(700, 710)])
            delta = rng.choice([0, 1, rng.random(), 10 ** rng.uniform(-300, 0)])
            g, d, e = mp.mpf(float(gamma)), mp.mpf(float(delta)), mp.exp(mp.mpf(float(epsilon)))
            out = mp.log(1 + g * (e - 1))
            beta = mp.exp(out) / e
            for condition, want in (
                ("dobrushin", (epsilon, g * d)),
                ("dobrushin-epsilon", (epsilon, g * d)),
                ("doeblin", (out, g * (1 - beta * (1 - d)))),
                ("ultra", (out, g * d * beta)),
            ):
                got = amplify(condition, float(gamma), float(epsilon), float(delta))
                for value, truth in zip(got, want):
                    if truth == 0 or abs(truth) < mp.mpf(2) ** -1022:
                        assert abs(value) < 2.3e-308
                    else:
                        assert abs(value / truth - 1) < 1e-11, (condition, gamma, epsilon, delta)
            if delta > 0 and epsilon > 0:
                asked = DB.execute(
                    "SELECT kernel_epsilon FROM dp_amplify('dobrushin-epsilon', ?, ?, ?)",
                    (float(gamma), float(epsilon), float(delta))).fetchone()[0]
                assert abs(asked / mp.log(1 + (e - 1) / d) - 1) < 1e-11


def test_amplify_joins_and_edges():
    rows = DB.execute("SELECT condition, a.epsilon, a.delta FROM (SELECT 0.5 AS g UNION SELECT 1.0) t"
                      " JOIN dp_amplify('doeblin', t.g, 1, 0.1) a ORDER BY g").fetchall()
    assert rows[1] == ("doeblin", 1, pytest.approx(0.1)) and rows[0][2] > 0.1
    assert amplify("doeblin", 0, 1, 0.1) == (0, 0) and amplify("ultra", 0, 1, 0.1) == (0, 0)
    assert amplify("doeblin", 0.5, 9e999, 0.1) == (math.inf, pytest.approx(0.5 * (0.5 + 0.05)))
    assert DB.execute("SELECT count(*) FROM dp_amplify('ultra', 0.5, 1, 0)").fetchone() == (1,)


def test_amplify_under_conditions_on_its_answer():
    call = "SELECT epsilon, delta FROM dp_amplify('dobrushin', 0.5, 1, 1e-6) WHERE "
    assert DB.execute(call + "epsilon = 1 AND delta < 1e-6").fetchall() == [(1, 5e-7)]
    assert DB.execute(call + "epsilon > 1").fetchall() == [] == DB.execute(call + "delta = 1e-6").fetchall()
    assert DB.execute(call + "gamma < 0.6 AND epsilon_in >= 1 AND condition > 'd'").fetchall() == [(1, 5e-7)]
    assert DB.execute(call + "gamma > 0.5").fetchall() == []
    assert DB.execute(call + "epsilon = 1 OR delta = 2").fetchall() == [(1, 5e-7)]


@pytest.mark.parametrize("arguments,message", [
    ("'doeblins', 0.5, 1, 0", "dp_amplify: condition must be 'dobrushin', 'dobrushin-epsilon', "
     "'doeblin' or 'ultra'"),
    ("NULL, 0.5, 1, 0", "not NULL"),
    ("'ultra', 1.5, 1, 0", "dp_amplify: gamma must be a number in [0, 1]"),
    ("'ultra', 0.5, -1, 0", "dp_amplify: epsilon must be a number of at least 0"),
    ("'ultra', 0.5, 1, 'x'", "dp_amplify: delta must be a number in [0, 1], not a text"),
    ("'ultra', 0.5, 1", "dp_amplify: an argument is missing (this table takes 4)"),
])
def test_amplify_errors(arguments, message):
    with pytest.raises(sqlite3.OperationalError) as error:
        DB.execute(f"SELECT * FROM dp_amplify({arguments})").fetchall()
    assert message in str(error.value)


# ---- kernels as tables -----------------------------------------------------------------------------


def kernel_of(rows, name="dp_kernel_dobrushin", extra=""):
    values = ", ".join(f"({x}, {y}, {p})" for x, y, p in rows)
    return DB.execute(f"SELECT {name}(column1, column2, column3{extra}) FROM (VALUES {values})").fetchone()[0]


def test_states_are_any_values():
    a = [("'a'", "x'00'", 0.25), ("'a'", "'x'", 0.75), (1.5, "x'00'", 1)]
    assert kernel_of(a) == 0.75
    same = [(1, "'y'", 0.5), (1.0, "'y'", 0.5), (2, "'z'", 1)]  # 1 and 1.0 are one state, whose cells are added
    assert kernel_of(same) == 1
    different = [("'1'", 1, 1), (1, 2, 1), ("x'31'", 3, 1), ("'A'", 4, 1), ("'a'", 5, 1), ("''", 6, 1),
                 ("x''", 7, 1), (-0.0, 8, 0.5), (0, 8, 0.5), ("9e999", 9, 1), (1e300, 10, 1)]
    assert kernel_of(different) == 1
    assert kernel_of(different, "dp_kernel_doeblin") == 1


def test_many_states_of_all_types_are_told_apart():
    """States that may collide in the dictionary differ in type, in length or in bytes. If the code took two states for one, a row
    would add up to 2."""
    values = [value for i in range(249) for value in (i - 100, i + 0.5, f"'{'x' * (i % 9)}{i}'", f"x'{i:06x}'")]
    values += [1e300, -1e300, "9e999", "-9e999"]
    assert len(values) == 1000
    assert kernel_of([(x, y, 1) for x, y in zip(values, reversed(values))], "dp_kernel_doeblin") == 1


def test_one_row_one_symbol_no_row():
    assert kernel_of([(1, 1, 0.5), (1, 2, 0.5)]) == 0
    assert kernel_of([(1, 1, 1), (2, 1, 1)]) == 0
    for name, extra in (("dp_kernel_doeblin", ""), ("dp_kernel_ultra", ""),
                        ("dp_kernel_dobrushin_epsilon", ", 0.5"), ("dp_kernel_delta", ", 1, 0.5")):
        assert kernel_of([(1, 1, 1), (2, 1, 1)], name, extra) == 0
    assert DB.execute("SELECT dp_kernel_ultra(1, 2, 3) WHERE 0").fetchone() == (None,)


@pytest.mark.parametrize("rows,message", [
    ([(1, 1, 0.5)], "dp_kernel_dobrushin: the probabilities of one x do not add up to 1 "
     "(give the whole row)"),
    ([("'it''s'", 1, 0.5)], "the probabilities of one x do not add up to 1"),
    ([("x'00'", 1, 0.5)], "the probabilities of one x do not add up to 1"),
    ([(2.5, 1, "1 + 2e-9")], "p must be a probability"),
    ([(1, 1, -0.5)], "p must be a probability"),
    ([(1, 1, "NULL")], "p must be a probability, not NULL"),
    ([(1, 1, "'1p'")], "p must be a probability, not a text"),
    ([(1, 1, "9e999")], "p must be a probability"),
    ([("NULL", 1, 1)], "x is NULL"),
    ([(1, "NULL", 1)], "y is NULL"),
    ([(1, i, 0.0001) for i in range(1001)], "more than 1000 different values of y"),
    ([(i, 1, 1) for i in range(1001)], "more than 1000 different values of x"),
])
def test_bad_kernels(rows, message):
    with pytest.raises(sqlite3.OperationalError) as error:
        kernel_of(rows)
    assert message in str(error.value)
    assert str(error.value).startswith("dp_kernel_dobrushin: ")


@pytest.mark.parametrize("extra,message", [
    (", -1", "epsilon must be a number of at least 0"),
    (", NULL", "epsilon must be a number of at least 0, not NULL"),
    (", column1", "epsilon must be the same in every row"),
])
def test_bad_parameters(extra, message):
    with pytest.raises(sqlite3.OperationalError) as error:
        kernel_of([(1, 1, 1), (2, 1, 1)], "dp_kernel_dobrushin_epsilon", extra)
    assert "dp_kernel_dobrushin_epsilon: " + message in str(error.value)


def test_rounding_of_rows_is_tolerated():
    third = 0.333333333
    assert kernel_of([(1, 1, third), (1, 2, third), (1, 3, third), (2, 1, 1)]) == pytest.approx(2 / 3)


@pytest.mark.plain
@pytest.mark.slow
def test_a_thousand_states():
    """The coefficients of Dobrushin and Doeblin of a thousand states are correct. For Dobrushin's coefficient, the code
    usually takes a fifth of the time of NumPy; the test allows 0.7."""
    rng = np.random.default_rng(11)
    kernel = rng.dirichlet(np.full(1000, 0.5), 1000)
    load(kernel)
    start = time.process_time()
    dobrushin = max(np.abs(kernel - row).sum(axis=1).max() / 2 for row in kernel)
    limit = 0.7 * (time.process_time() - start)
    for name, want in (("dobrushin", dobrushin), ("doeblin", 1 - kernel.min(axis=0).sum())):
        start = time.process_time()
        got = DB.execute(f"SELECT dp_kernel_{name}(x, y, p) FROM k").fetchone()[0]
        assert time.process_time() - start < limit
        assert got == pytest.approx(want, rel=1e-12)


def test_order_of_rows_does_not_matter():
    rng = np.random.default_rng(12)
    load(rng.dirichlet(np.full(40, 0.5), 70))
    for name in ("dobrushin", "doeblin", "ultra"):
        a = DB.execute(f"SELECT dp_kernel_{name}(x, y, p) FROM (SELECT * FROM k ORDER BY y DESC, p)")
        b = DB.execute(f"SELECT dp_kernel_{name}(x, y, p) FROM (SELECT * FROM k ORDER BY p)")
        assert a.fetchone()[0] == pytest.approx(b.fetchone()[0], rel=1e-13)


OUT_OF_MEMORY = """
import sqlite3, sys
sys.path.insert(0, sys.argv[1])
from paper_truth import connect
db = connect()
seen = set()
for limit in range(12_000_000, 200_000, -1_300_000):  # the PRAGMA only lowers it
    try:
        db.execute(f"PRAGMA hard_heap_limit={limit}").fetchall()
        row = db.execute("WITH RECURSIVE i(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM i WHERE i < 499)"
                         " SELECT dp_kernel_doeblin(CAST(a.i AS TEXT), b.i, a.i = b.i) FROM i a, i b").fetchone()
        seen.add(row[0])
    except (MemoryError, sqlite3.OperationalError) as error:
        assert isinstance(error, MemoryError) or "memory" in str(error), error
        seen.add("out of memory")
print(sorted(map(str, seen)))
"""


@pytest.mark.plain
def test_out_of_memory_is_an_error():
    """A process of its own limits SQLite's heap to less than the kernel needs. The aggregate then fails with an error."""
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY, str(HELPERS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['1.0', 'out of memory']"


LEAKS = """
import sqlite3, sys
sys.path.insert(0, sys.argv[1])
from paper_truth import connect
db = connect()
db.execute("PRAGMA hard_heap_limit=12000000").fetchall()
for call in range(24):  # 1 MB of states each; every second one fails after they were read
    big = "printf('%.*c', 500000, 'x')"
    try:
        db.execute(f"SELECT dp_kernel_doeblin(k || {big}, x || {big}, p) FROM (SELECT 1 AS k, 1 AS x,"
                   f" 0.5 AS p UNION ALL SELECT 1, 2, {0.5 if call % 2 else 0.4})").fetchall()
        assert call % 2
    except sqlite3.OperationalError as error:
        assert not call % 2 and "add up to" in str(error), error
print("done")
"""


@pytest.mark.plain
def test_states_are_freed():
    """Evaluates 24 kernels with states of 1 MB each, under a memory limit of 12 MB."""
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", LEAKS, str(HELPERS)], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
