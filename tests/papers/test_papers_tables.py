"""Results of the papers about tables: two kernels (Asoodeh et al., Lemma 3), a kernel behind a coupling (Balle et al., Theorem
2), inputs that are (epsilon, delta)-DP, powers, and diffusions that are given by a table (Balle et al., Theorem 6). The
reference values come from linear programs over all worst cases, enumeration, quadrature and high precision, without the code
under test."""

import json
import math

import mpmath as mp
import numpy as np
import pytest

from kernel_truth import random_kernel, worst_pair
from paper_truth import connect, relative_error

DB = connect()


def ask(rows, name, *parameters):
    """Returns the result of name(column1, column2, ..., parameters) over rows."""
    width = len(rows[0])
    places = ", ".join(f"value ->> {i}" for i in range(width))
    marks = "".join(", ?" for _ in parameters)
    return DB.execute(f"SELECT {name}({places}{marks}) FROM json_each(?)",
                      (*parameters, json.dumps(rows))).fetchone()[0]


def cells(kernel):
    return [(i, j, p) for (i, j), p in np.ndenumerate(kernel)]


@pytest.mark.parametrize("seed", range(8))
def test_two_kernels_on_inputs_that_differ(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 5), rng.integers(2, 5)
    first, second = (random_kernel(rng, n, m, sparse=seed % 2) for _ in "ab")
    rows = [(i, j, p, second[i, j]) for (i, j), p in np.ndenumerate(first)]
    for epsilon, delta, out in ((0.7, 0, 0.7), (0.7, 0.05, 0.3), (0, 0, 0.2), (1.5, 0.2, 0), (0, 0.1, 1)):
        want = worst_pair(first, second, epsilon, delta, out)
        got = ask(rows, "dp_kernel_pair", out, epsilon, delta)
        assert got == pytest.approx(want, abs=1e-9), (epsilon, delta, out)


@pytest.mark.parametrize("seed", range(4))
def test_lemma_3_is_attained_by_a_state_and_bounds_every_mixture(seed):
    rng = np.random.default_rng(50 + seed)
    first, second = (random_kernel(rng, 4, 3, sparse=seed % 2) for _ in "ab")
    rows = [(i, j, p, second[i, j]) for (i, j), p in np.ndenumerate(first)]
    for out in (0, 0.3, 2):
        stick = lambda p, r: np.maximum(p - math.exp(out) * r, 0).sum()
        got = ask(rows, "dp_kernel_pair", out)
        assert got == pytest.approx(max(map(stick, first, second)), abs=1e-15)
        for mu in rng.dirichlet(np.full(4, 0.5), 50):
            assert stick(mu @ first, mu @ second) <= got + 1e-15
    assert ask(rows, "dp_kernel_pair", 9e999) == pytest.approx(
        max(p[r == 0].sum() for p, r in zip(first, second)), abs=1e-15)


def exact_renyi(p, r, alpha):
    p, r = ([mp.mpf(float(x)) for x in law] for law in (p, r))
    p, r = ([x / mp.fsum(law) for x in law] for law in (p, r))
    if any(a > 0 and b == 0 for a, b in zip(p, r)):
        return mp.inf
    pairs = [(a, b) for a, b in zip(p, r) if a > 0]
    if alpha == 1:
        return sum(a * mp.log(a / b) for a, b in pairs)
    if alpha == math.inf:
        return mp.log(max(a / b for a, b in pairs))
    return mp.log(sum(a ** alpha * b ** (1 - alpha) for a, b in pairs)) / (alpha - 1)


@pytest.mark.parametrize("seed", range(12))
def test_theorem_2(seed):
    rng = np.random.default_rng(100 + seed)
    n, m = rng.integers(2, 5), rng.integers(2, 5)
    kernel = random_kernel(rng, n, m, sparse=seed % 3 == 0)
    coupling = rng.dirichlet(np.full(n * n, 0.5)).reshape(n, n)
    nu = rng.dirichlet(np.full(n, 2))
    if seed % 2:  # close to each other, where divergences are small
        nu = coupling.sum(axis=1) * (1 + 1e-4 * rng.uniform(-1, 1, n))
        nu /= nu.sum()
    if seed % 4 == 0:  # omega may have no mass on some states
        coupling[0] = 0
        coupling /= coupling.sum()
    rows = [("kernel", i, j, p) for (i, j), p in np.ndenumerate(kernel)]
    rows += [("coupling", i, j, p) for (i, j), p in np.ndenumerate(coupling)]
    rows += [("nu", i, None, p) for i, p in enumerate(nu)]
    omega, mu = coupling.sum(axis=1), coupling.sum(axis=0)
    for alpha in (1, 1 + 1e-6, 1.5, 2, 7, 300, math.inf):
        with mp.workdps(40):
            exact = exact_renyi(mu @ kernel, nu @ kernel, alpha)
            bound = exact_renyi(omega, nu, alpha) + max(
                exact_renyi(coupling[x] / omega[x] @ kernel, kernel[x], alpha)
                for x in range(n) if omega[x] > 0)
        got = ask(rows, "dp_kernel_renyi", alpha)
        assert got == pytest.approx(float(exact), rel=1e-9, abs=1e-14)
        assert ask(rows, "dp_kernel_coupling", alpha) == pytest.approx(float(bound), rel=1e-9, abs=1e-14)
        assert exact <= bound + mp.mpf("1e-12")


def test_theorem_2_with_the_identity_coupling_of_one_law_is_tight():
    kernel = [[0.5, 0.5], [0.2, 0.8]]
    rows = [("kernel", i, j, p) for i, row in enumerate(kernel) for j, p in enumerate(row)]
    rows += [("coupling", 0, 1, 1), ("nu", 0, None, 1)]  # state 0 of omega has the mass of nu, and state 1 that of mu
    want = math.log(0.2**2 / 0.5 + 0.8**2 / 0.5)
    assert ask(rows, "dp_kernel_coupling", 2) == pytest.approx(want, rel=1e-12)
    assert ask(rows, "dp_kernel_renyi", 2) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_least_epsilon_behind_a_kernel(seed):
    rng = np.random.default_rng(200 + seed)
    kernel = random_kernel(rng, rng.integers(2, 5), rng.integers(2, 5), sparse=seed % 2)
    for epsilon, delta, out in ((0.7, 0, 0), (0.7, 0.05, 0.02), (2, 0.1, 0.01), (0.3, 0, 1e-3), (1, 0.2, 0.3)):
        got = ask(cells(kernel), "dp_kernel_epsilon", epsilon, delta, out)
        if got == math.inf:
            assert worst_pair(kernel, kernel, epsilon, delta, 40) > out
            continue
        assert worst_pair(kernel, kernel, epsilon, delta, got) <= out + 1e-8
        if got > 0:
            assert worst_pair(kernel, kernel, epsilon, delta, got * 0.999) > out - 1e-9
            below = ask(cells(kernel), "dp_kernel_delta", epsilon, delta, got * (1 - 1e-12))
            assert below >= out


def test_least_epsilon_of_a_channel_in_closed_form():
    """A binary symmetric channel behind randomized response is randomized response."""
    for flip, epsilon in ((0.25, 1.0), (0.01, 3.0), (0.5 - 1e-9, 2.0), (0.25, math.inf)):
        keep = 1 - flip
        e = mp.exp(mp.mpf(-epsilon)) if epsilon < math.inf else mp.mpf(0)
        want = mp.log((mp.mpf(keep) + e * mp.mpf(flip)) / (mp.mpf(flip) + e * mp.mpf(keep)))
        got = ask([(0, 0, keep), (0, 1, flip), (1, 0, flip), (1, 1, keep)],
                  "dp_kernel_epsilon", epsilon, 0, 0)
        assert relative_error(got, want) < 1e-6 if flip > 0.4 else relative_error(got, want) < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_powers(seed):
    rng = np.random.default_rng(300 + seed)
    kernel = random_kernel(rng, 5, 5, sparse=seed)
    for steps in (1, 2, 3, 7, 64, 1000):
        rows = json.loads(ask(cells(kernel), "dp_kernel_power", steps))
        got = np.zeros((5, 5))
        for x, y, p in rows:
            got[x, y] = p
        assert got == pytest.approx(np.linalg.matrix_power(kernel, steps), abs=1e-12)
        assert all(p > 0 for _, _, p in rows)
    names = ask([("a'\"", "b", 1), ("b", "a'\"", 1), (1.5, 1.5, 1)], "dp_kernel_power", 3)
    assert json.loads(names) == [["a'\"", "b", 1], ["b", "a'\"", 1], [1.5, 1.5, 1]]


def grid(kappa, times):
    return [(s, kappa(s)) for s in times]


def test_theorem_6_with_brownian_motion_and_ou_as_its_cases():
    for name, rate, parameters in (("dp_brownian_gamma", "dp_brownian_rate", (1.5,)),
                                   ("dp_ou_gamma", "dp_ou_rate", (1.5, 0.7, 0.3))):
        marks = ", ".join("?" * (len(parameters) + 1))
        one = lambda f, s: DB.execute(f"SELECT {f}({marks})", (*parameters, s)).fetchone()[0]
        for s in (1e-3, 0.3, 2.0, 9.0):  # kappa is minus the derivative of the rate
            h = s * 1e-4
            slope = (one(rate, s - h) - one(rate, s + h)) / (2 * h)
            assert one(name, s) == pytest.approx(slope, rel=1e-6)
        t, end = 0.2, 9.0
        times = t * (end / t) ** np.linspace(0, 1, 400)
        times[0], times[-1] = t, end
        rows, exact, tail = grid(lambda s: one(name, s), times), one(rate, t), one(rate, end)
        bounds = [ask(rows, "dp_diffusion_rate", tail, method)
                  for method in ("log-convex", "convex", "steps")]
        assert exact <= bounds[0] <= bounds[1] <= bounds[2] <= exact * 1.02
        assert bounds[0] <= exact * (1 + 1e-4)
        assert ask(rows, "dp_diffusion_rate", tail) == bounds[2]
        np.random.default_rng(1).shuffle(rows)
        assert ask(rows, "dp_diffusion_rate", tail, "convex") == bounds[1]


def circle(s, x, terms=16):
    """Returns the density at x of Brownian motion of variance 2s on the circle, and the derivative of this density."""
    k = np.arange(1, terms)
    decay = np.exp(-k * k * s)
    angles = np.multiply.outer(x, k)
    return (1 + 2 * (np.cos(angles) * decay).sum(-1)) / (2 * math.pi), -(
        np.sin(angles) * k * decay).sum(-1) / math.pi


def test_theorem_6_for_brownian_motion_on_the_circle():
    """Tests a diffusion that is neither Brownian motion on the line nor OU: the heat kernel of the circle, whose carre du champ
    is f'^2. The Renyi divergences of the mechanism, by quadrature, are at most alpha times the rate. At late times they are about
    half of this bound, because the theorem bounds a mean by a maximum."""
    y = np.linspace(0, 2 * math.pi, 400, endpoint=False)
    for shift, t, ratio in ((2.0, 0.3, 0), (0.4, 0.25, 0), (2.0, 4.0, 0.4)):
        times = t * (12 / t) ** np.linspace(0, 1, 300)
        rows = []
        for s in times:
            (p, dp), (r, dr) = circle(s, y), circle(s, y - shift)
            rows.append((float(s), float(((dp / p - dr / r) ** 2).max())))
        # From s = 12 on, every ratio of densities is within 1 +- 5 e^-s, so kappa is below 100 e^(-2s).
        rate = ask(rows, "dp_diffusion_rate", 50 * math.exp(-24))
        (p, _), (r, _) = circle(t, y), circle(t, y - shift)
        for alpha in (1.01, 2, 5, 20):
            renyi = math.log((p * (p / r) ** (alpha - 1)).mean() * 2 * math.pi) / (alpha - 1)
            assert ratio * alpha * rate <= renyi <= alpha * rate


def test_grid_of_several_points_takes_the_largest():
    rows = [(1, 2.0), (1, 5.0), (2, 1.0), (2, 0.5), (1, 0.0)]
    assert ask(rows, "dp_diffusion_rate", 0.25) == 5.25
    assert ask(rows, "dp_diffusion_rate", 0.25, "convex") == 3.25
    assert ask(rows, "dp_diffusion_rate", 0, "log-convex") == pytest.approx(4 / math.log(5))
    assert ask([(1, 7.0)], "dp_diffusion_rate", 0.5) == 0.5
    assert DB.execute("SELECT dp_diffusion_rate(s, 9e999, 0) FROM (SELECT 0 AS s UNION SELECT 1)"
                      ).fetchone()[0] == math.inf
    assert DB.execute("SELECT dp_diffusion_rate(1, 1, 0) WHERE 0").fetchone()[0] is None


@pytest.mark.parametrize("statement, message", [
    ("dp_diffusion_rate(column1, column2, 0, 'convex') FROM (VALUES (1, 1), (2, 1), (3, 0))",
     "dp_diffusion_rate: kappa is not convex (with 'steps' it need not be)"),
    ("dp_diffusion_rate(column1, 1, column1) FROM (VALUES (1), (2))",
     "dp_diffusion_rate: tail and method must be the same in every row"),
    ("dp_diffusion_rate(1, 1, 0, 'simpson')",
     "dp_diffusion_rate: method must be 'steps', 'convex' or 'log-convex'"),
    ("dp_diffusion_rate(1, -1, 0)", "dp_diffusion_rate: kappa must be"),
    ("dp_kernel_power(1, 2, 1, 2)",
     "dp_kernel_power: a y has no row of its own, as a transition matrix needs"),
    ("dp_kernel_power(1, 1, 1, 1.5)", "dp_kernel_power: steps must be a whole number"),
    ("dp_kernel_pair(1, 1, 1, 0.5, 0)",
     "dp_kernel_pair: the probabilities q of one x do not add up to 1 (give the whole row)"),
    ("dp_kernel_pair(value, 1, 1, 1, 0, 0, 0) FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12,13,14,"
     "15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41]')",
     "dp_kernel_pair: more than 40 different values of x"),
    ("dp_kernel_coupling('mu', 1, 1, 1, 2)",
     "dp_kernel_coupling: part must be 'kernel', 'coupling' or 'nu'"),
    ("dp_kernel_coupling('nu', 1, NULL, 1, 2)",
     "dp_kernel_coupling: there are no rows of part 'kernel'"),
    ("dp_kernel_coupling('kernel', 1, 1, 1, 2)",
     "dp_kernel_coupling: the probabilities of part 'coupling' do not add up to 1"),
])
def test_errors(statement, message):
    with pytest.raises(Exception) as error:
        DB.execute(f"SELECT {statement}").fetchall()
    assert str(error.value).startswith(message)
