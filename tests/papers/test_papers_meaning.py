"""Compares the papers' functions with the quantities that they describe: divergences by quadrature, densities by convolution,
bounds by numerical minimisation, and mechanisms by their distributions."""

import math
import pathlib
import random
import re
import sqlite3

import mpmath as mp
import numpy as np
import pytest
from scipy import optimize

from paper_truth import call, connect


def renyi(alpha, p, q, breaks, ends=mp.inf):
    """Returns the Renyi divergence of two densities, by quadrature."""
    pieces = [-ends, *breaks, ends]
    if alpha == 1:
        return mp.quad(lambda x: p(x) * mp.log(p(x) / q(x)), pieces)
    return mp.log(mp.quad(lambda x: p(x) ** alpha * q(x) ** (1 - alpha), pieces)) / (alpha - 1)


def hockey(epsilon, p, q, breaks):
    gamma = mp.exp(epsilon)
    return mp.quad(lambda x: max(mp.mpf(0), p(x) - gamma * q(x)), breaks)


def laplace(centre, scale):
    return lambda x: mp.exp(-abs(x - centre) / scale) / (2 * scale)


def normal(centre, sigma):
    return lambda x: mp.npdf(x, centre, sigma)


@pytest.mark.parametrize("alpha", [1, 1.01, 1.5, 2, 7])
@pytest.mark.parametrize("d,scale", [(1, 1), (0.3, 2), (4, 1.5)])
def test_renyi_of_laplace(alpha, d, scale):
    want = renyi(alpha, laplace(0, scale), laplace(d, scale), [0, d])
    assert call("dp_rdp_laplace", alpha, d, scale) == pytest.approx(float(want), rel=1e-9)


@pytest.mark.parametrize("alpha", [1, 1.5, 2, 7])
@pytest.mark.parametrize("d,sigma", [(1, 1), (0.3, 2), (4, 1.5)])
@pytest.mark.sample(4)
def test_renyi_of_gaussian(alpha, d, sigma):
    want = renyi(alpha, normal(0, sigma), normal(d, sigma), [alpha * -d, 0, d, alpha * d])
    assert call("dp_rdp_gaussian", alpha, d, sigma) == pytest.approx(float(want), rel=1e-9)


@pytest.mark.parametrize("alpha", [1, 1.5, 2, 7])
@pytest.mark.sample(2)
def test_renyi_of_ou_and_brownian(alpha):
    """Compares with the process from two starting points: the mean shrinks, and the variance is the integral of 2 rho^2 e^(-2
    theta u)."""
    d, theta, rho, t = 1.3, 0.8, 0.7, 0.9
    sigma = mp.sqrt(mp.quad(lambda u: 2 * rho**2 * mp.exp(-2 * theta * u), [0, t]))
    shifted = d * mp.exp(-theta * t)
    want = renyi(alpha, normal(0, sigma), normal(shifted, sigma), [-alpha * d, 0, d, alpha * d])
    assert alpha * call("dp_ou_rate", d, theta, rho, t) == pytest.approx(float(want), rel=1e-9)
    want = renyi(alpha, normal(0, mp.sqrt(2 * t)), normal(d, mp.sqrt(2 * t)), [-alpha * d, 0, alpha * d])
    assert alpha * call("dp_brownian_rate", d, t) == pytest.approx(float(want), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0, 0.1, 1, 3])
@pytest.mark.parametrize("r", [0.2, 1, 3.5])
def test_hockey_sticks(epsilon, r):
    cut = epsilon / r - r / 2
    want = hockey(epsilon, normal(0, 1), normal(-r, 1), [cut, cut + 3, cut + 8, cut + 40])
    assert call("dp_hockey_gaussian", epsilon, r) == pytest.approx(float(want), rel=1e-9)
    edges = [-60, -r, (epsilon - r) / 2 if epsilon < r else 0, 0, 60]
    want = hockey(epsilon, laplace(0, 1), laplace(-r, 1), sorted(edges))
    assert call("dp_hockey_laplace", epsilon, r) == pytest.approx(float(want), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("l1,l2", [(1, 1), (1, 1 + 1e-9), (1, 0.3), (0.2, 5)])
@pytest.mark.parametrize("x", [0, 0.4, -1.7, 6])
@pytest.mark.sample(6)
def test_laplace2_density_is_the_convolution(l1, l2, x):
    with mp.workdps(30):
        want = mp.quad(lambda u: laplace(0, mp.mpf(l1))(u) * laplace(x, mp.mpf(l2))(u),
                       sorted({-mp.inf, mp.mpf(0), mp.mpf(x), mp.inf}))
    assert call("dp_laplace2_pdf", x, l1, l2) == pytest.approx(float(want), rel=1e-12)


@pytest.mark.parametrize("l1,l2", [(1, 1), (1, 0.5), (0.2, 3)])
def test_laplace2_epsilon(l1, l2):
    """Compares with the largest logarithm of the ratio of the density to the density shifted by D."""
    d = 0.7
    points = np.linspace(-60 * max(l1, l2), 0, 4001)
    ratio = max(math.log(call("dp_laplace2_pdf", x, l1, l2) / call("dp_laplace2_pdf", x - d, l1, l2))
                for x in points)
    epsilon = call("dp_laplace2_epsilon", d, l1, l2)
    assert ratio <= epsilon * (1 + 1e-12) and ratio > 0.98 * epsilon


@pytest.mark.parametrize("alpha", [1, 1.5, 2, 6])
@pytest.mark.parametrize("l1,l2", [(1, 1), (1, 0.5), (0.3, 2)])
def test_iterated_laplace_is_a_bound_and_amplifies(alpha, l1, l2):
    d = 1
    p = lambda x: mp.mpf(call("dp_laplace2_pdf", float(x), l1, l2))
    exact = renyi(alpha, p, lambda x: p(x - d), [-8, 0, d, 9], 120)
    bound = call("dp_iterated_laplace", alpha, d, l1, l2)
    assert exact < bound
    assert bound < min(call("dp_rdp_laplace", alpha, d, l1), call("dp_rdp_laplace", alpha, d, l2))


def test_iterated_laplace_example_of_the_notes():
    p = lambda x: mp.mpf(call("dp_laplace2_pdf", float(x), 1, 1))
    exact = renyi(2, p, lambda x: p(x - 1), [-8, 0, 1, 9], 120)
    assert float(exact) == pytest.approx(0.27172, abs=1e-5)
    assert call("dp_iterated_laplace", 2, 1, 1, 1) == pytest.approx(0.40061, abs=1e-5)
    assert call("dp_rdp_laplace", 2, 1, 1) == pytest.approx(0.61912, abs=1e-5)


def test_response_is_the_worst_of_pure_dp():
    """By random search over pairs on three points with likelihood ratios within e^epsilon, randomized response is the worst pair.
    """
    rng = np.random.default_rng(1)
    epsilon, alpha = 1.2, 3.0
    for _ in range(2000):
        q = rng.dirichlet([0.5] * 3)
        p = q * np.exp(rng.uniform(-epsilon / 2, epsilon / 2, 3))
        p /= p.sum()
        if np.abs(np.log(p / q)).max() > epsilon:
            continue
        assert np.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1) <= call(
            "dp_rdp_response", alpha, epsilon)
    p = 1 / (1 + math.exp(-epsilon))
    exact = math.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (alpha - 1)
    assert call("dp_rdp_response", alpha, epsilon) == pytest.approx(exact, rel=1e-13)


# ---- diffusion -------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [0, 1e-9, 0.4, 3])
@pytest.mark.parametrize("t,s", [(0.5, 0.5), (0.01, 2), (3, 1)])
def test_semigroup(theta, t, s):
    """Running the process for time t and then for time s is the same as running the process for time t + s. The test compares
    both moments and the rates."""
    rho, d = 0.6, 1.7
    shrink = lambda u: call("dp_ou_shrink", theta, u)
    variance = lambda u: call("dp_ou_variance", theta, rho, u)
    assert shrink(t + s) == pytest.approx(shrink(t) * shrink(s), rel=1e-14)
    assert variance(t + s) == pytest.approx(shrink(s) ** 2 * variance(t) + variance(s), rel=1e-14)
    composed = (d * shrink(t) * shrink(s)) ** 2 / (2 * (shrink(s) ** 2 * variance(t) + variance(s)))
    assert call("dp_ou_rate", d, theta, rho, t + s) == pytest.approx(composed, rel=1e-13)
    total = call("dp_ou_clock", theta, rho, t) + call("dp_ou_clock", theta, rho, s) / shrink(t) ** 2
    assert call("dp_ou_clock", theta, rho, t + s) == pytest.approx(total, rel=1e-13)


def test_ou_moments_by_simulation():
    """Simulates the stochastic equation dX = -theta X dt + sqrt(2) rho dW in small steps."""
    rng = np.random.default_rng(3)
    theta, rho, t, start, steps, paths = 0.9, 0.8, 0.7, 1.5, 200, 60000
    x = np.full(paths, start)
    dt = t / steps
    for _ in range(steps):
        x = x - theta * x * dt + math.sqrt(2 * dt) * rho * rng.standard_normal(paths)
    assert x.mean() == pytest.approx(start * call("dp_ou_shrink", theta, t), abs=0.02)
    assert x.var() == pytest.approx(call("dp_ou_variance", theta, rho, t), rel=0.03)
    assert np.mean(x**2) != pytest.approx(start**2, rel=0.1)
    error = np.mean((x - start) ** 2)
    assert error == pytest.approx(call("dp_ou_mse", theta, rho, t, start, 1), rel=0.03)


@pytest.mark.parametrize("rate,d,radius,dim", [(1, 1, 1, 1), (0.05, 1, 2, 3), (8, 0.5, 0.3, 10)])
def test_theorem_8_is_the_best_scaling(rate, d, radius, dim):
    """Compares with the worst-case mean squared error of b (f + N(0, tau)) over the ball, minimised numerically over b."""
    tau = d**2 / (2 * rate)
    worst = lambda b: (1 - b) ** 2 * radius**2 + b**2 * dim * tau
    best = optimize.minimize_scalar(worst, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    theta, rho = call("dp_ou_theta", rate, d, radius, dim), call("dp_ou_rho", rate, d, radius, dim)
    assert call("dp_ou_rate", d, theta, rho, 1) == pytest.approx(rate, rel=1e-13)
    assert call("dp_ou_shrink", theta, 1) == pytest.approx(best.x, rel=1e-6)
    assert call("dp_ou_mse", theta, rho, 1, radius, dim) == pytest.approx(best.fun, rel=1e-12)
    assert call("dp_pgm_mse", theta, rho, 1, radius, dim) == pytest.approx(best.fun, rel=1e-12)
    assert call("dp_gaussian_mse", theta, rho, 1, dim) == pytest.approx(worst(1), rel=1e-12)


# ---- iteration -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lipschitz", [0.3, 0.7, 1, 1.4])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_theorem_4_is_the_best_path(lipschitz, steps):
    """Compares with equation (2), alpha L^2/(2 sigma^2) sum_i L^(2(r-i)) Delta_i^2, minimised numerically over all shifts Delta_i
    that add up to the distance."""
    alpha, distance, sigma = 1.7, 2.2, 0.9
    weight = np.array([lipschitz ** (2 * (steps - i)) for i in range(1, steps + 1)])

    def value(free):
        shift = np.append(free, distance - np.sum(free))
        return np.sum(weight * shift**2)

    found = optimize.minimize(value, np.full(steps - 1, distance / steps), tol=1e-14).fun if steps > 1 \
        else value([])
    want = alpha * lipschitz**2 / (2 * sigma**2) * found
    got = call("dp_iteration", alpha, distance, sigma, lipschitz, steps)
    assert got == pytest.approx(want, rel=1e-8)
    if lipschitz <= 1:
        assert got <= call("dp_iteration", alpha, distance, sigma, lipschitz, steps, "paper") * (1 + 1e-14)


@pytest.mark.parametrize("lipschitz", [0.3, 0.999, 1, 1.4])
@pytest.mark.parametrize("steps", [1, 2, 30])
def test_theorem_4_is_met_by_linear_maps(lipschitz, steps):
    """For psi(x) = L x on the real line and two starting points, the exact distributions are Gaussian, and the bound holds with
    equality."""
    mean, variance = 2.2, 0.0
    for _ in range(steps):
        mean, variance = lipschitz * mean, lipschitz**2 * variance + 0.9**2
    exact = 1.7 * mean**2 / (2 * variance)
    assert call("dp_iteration", 1.7, 2.2, 0.9, lipschitz, steps) == pytest.approx(exact, rel=1e-12)


def test_examples_1_and_3_are_met():
    mean, variance = 0.6 * 1.3, 0.6**2 * 0.5**2 + 0.8**2
    assert call("dp_lipschitz_gaussian", 3, 1.3, 0.5, 0.8, 0.6) == pytest.approx(
        3 * mean**2 / (2 * variance), rel=1e-14)
    assert call("dp_iterated_gaussian", 3, 1.3, 0.5, 0.8) == pytest.approx(
        3 * 1.3**2 / (2 * (0.5**2 + 0.8**2)), rel=1e-14)


def test_best_contraction_is_a_contraction_and_attained():
    """Tests gradient steps of c/2 x^2 on the line, for rho <= c <= beta."""
    rng = random.Random(4)
    for _ in range(200):
        beta = rng.uniform(0.1, 5)
        rho, eta = rng.uniform(0, beta), rng.uniform(0.01, 1.5)
        slopes = [abs(1 - eta * (rho + (beta - rho) * k / 50)) for k in range(51)]
        assert call("dp_sgd_lipschitz", eta, beta, rho) == pytest.approx(max(slopes), rel=1e-12)
        printed = call("dp_sgd_lipschitz", eta, beta, rho, "paper")
        if eta * (beta + rho) <= 2:
            assert printed >= max(slopes) * (1 - 1e-14)
        else:
            assert printed is None


# ---- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql,message", [
    ("dp_rdp_gaussian(0.5, 1, 1)", "dp_rdp_gaussian: alpha must be a number of at least 1"),
    ("dp_rdp_gaussian(2, -1, 1)", "sensitivity must be a finite number of at least 0"),
    ("dp_rdp_gaussian(2, 1, 0)", "sigma must be a finite number above 0"),
    ("dp_rdp_gaussian(2, 1, '1 or so')", "sigma must be"),
    ("dp_rdp_gaussian(2, 1, NULL)", "not NULL"),
    ("dp_ou_rate(1, -0.1, 1, 1)", "theta must be"),
    ("dp_ou_rate(1, 9e999, 1, 1)", "theta must be"),
    ("dp_ou_mse(1, 1, 1, 1, 1.5)", "dim must be a whole number"),
    ("dp_ou_theta(0, 1, 1, 1)", "rate must be"),
    ("dp_iteration(2, 1, 1, 0.5, 0)", "steps must be"),
    ("dp_iteration(2, 1, 1, 1.1, 3, 'paper')", "dp_iteration: lipschitz must be a number in [0, 1] for the method 'paper'"),
    ("dp_iteration(2, 1, 1, 0.5, 3, 'printed')", "method must be 'path' or 'paper'"),
    ("dp_sgd_rate(0, 40, 1, 1, 1, 1, 0)", "i must be"),
    ("dp_sgd_rate(41, 40, 1, 1, 1, 1, 0)", "i must be at most n"),
    ("dp_sgd_rate(4, 40, 1, 1, 1, 1, 0, NULL)", "method must be 'best', 'path' or 'paper', not NULL"),
    ("dp_sgd_delta(-1, 4, 40, 1, 1, 1, 1, 0, 1)", "epsilon must be"),
    ("dp_sgd_delta(1, 4, 40, 1, 1, 0, 1, 0, 1)", "eta must be"),
    ("dp_sgd_delta_laplace(1, 4, 40, 1, 1, 1, 1, 0, -1)", "width must be"),
    ("dp_sgd_delta_random_stop(1, 40, 1, 1, 1, 1, 0, 1, 41)", "i must be at most n"),
])
def test_domain_errors_name_the_parameter(sql, message):
    with pytest.raises(sqlite3.OperationalError) as error:
        connect().execute("SELECT " + sql)
    assert message in str(error.value) and str(error.value).startswith(sql.split("(")[0] + ": ")


@pytest.mark.parametrize("sql", [
    "dp_sgd_lipschitz(1.01, 1, 1, 'paper')",
    "dp_sgd_rate(20, 40, 1, 1, 2.1, 1, 0)",
    "dp_sgd_rate(20, 40, 1, 1, 2.1, 1, 0, 'path')",
    "dp_sgd_rate(20, 40, 1, 1, 2.1, 1, 0, 'paper')",
    "dp_sgd_delta(1, 20, 40, 1, 1, 2.1, 1, 0, 1)",
    "dp_sgd_delta(1, 20, 40, 1, 1, 2.1, 1, 0, 1, 'paper')",
    "dp_sgd_delta(1, 20, 40, 1, 1, 2.1, 1, 0, 1, 'iterated')",
    "dp_sgd_delta_rdp(1, 20, 40, 1, 1, 2.1, 1, 0)",
    "dp_sgd_delta_laplace(1, 20, 40, 1, 1, 2.1, 1, 0, 1)",
    "dp_sgd_delta_random_stop(1, 40, 1, 1, 2.1, 1, 0, 1)",
])
def test_too_long_a_step_is_null(sql):
    assert connect().execute("SELECT " + sql).fetchone() == (None,)


def test_edges():
    one = lambda sql: connect().execute("SELECT " + sql).fetchone()[0]
    assert one("dp_sgd_lipschitz(2.0/3, 2, 1, 'paper')") == pytest.approx(1 / 3, rel=1e-14)
    assert one("dp_sgd_lipschitz(1, 1, 1, 'paper')") == 0
    assert one("dp_sgd_lipschitz(1, 0, 0, 'paper')") == 1
    assert one("dp_sgd_delta(1, 3, 4, 1, 1, 1, 1, 1, 1)") == 0
    assert one("dp_sgd_delta(1, 4, 4, 1, 1, 1, 1, 1, 1, 'paper')") == one("dp_hockey_gaussian(1, 2)")
    assert one("dp_sgd_delta(1, 3, 9, 1, 1, 1, 1, 0, 9e999, 'paper')") == one("dp_hockey_gaussian(1, 2)")
    assert one("dp_sgd_delta(9e999, 3, 9, 1, 1, 1, 1, 0, 1)") == 0
    assert one("dp_sgd_delta_rdp(0.1, 40, 40, 1, 1, 1, 1, 0)") == 1
    assert one("dp_sgd_delta_rdp(0, 3, 40, 0, 1, 1, 1, 0)") == 0
    assert one("dp_brownian_rate(1, 0)") == math.inf and one("dp_brownian_rate(0, 0)") == 0
    assert one("dp_ou_rate(1, 1, 1, 0)") == math.inf and one("dp_ou_rate(0, 1, 1, 0)") == 0
    assert one("dp_rdp_gaussian(9e999, 1, 1)") == math.inf and one("dp_rdp_gaussian(9e999, 0, 1)") == 0
    assert one("dp_iteration(2, 1, 1, 0, 5)") == 0 and one("dp_iteration(9e999, 1, 1, 0, 5)") == 0


def test_pure_functions_in_views_and_indexes():
    db = connect()
    db.execute("PRAGMA trusted_schema=OFF")
    db.execute("CREATE TABLE t(r)")
    db.execute("CREATE INDEX i ON t(dp_hockey_gaussian(1, r))")
    db.execute("CREATE VIEW v AS SELECT epsilon, delta FROM dp_amplify('doeblin', 0.5, 1, 0)")
    db.execute("CREATE VIEW k AS SELECT dp_kernel_doeblin(1, 1, 1) AS gamma")
    db.execute("INSERT INTO t VALUES (1)")
    assert db.execute("SELECT gamma FROM k").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM v").fetchone() == (1,)


@pytest.mark.parametrize("alpha, twice, once", [(1, 0.1451, 0.2002), (8, 0.5713, 0.6173), (16, 0.6712, 0.6630)])
def test_two_laplace_noises_against_one_of_the_same_variance(alpha, twice, once):
    """Tests the comparison in ext/math/README.md. Both kinds of noise have variance 4. The divergence of the sum of two noises comes
    from quadrature."""
    sum_of_two = lambda x: mp.exp(-abs(x)) * (1 + abs(x)) / 4
    if alpha == 1:
        integrand = lambda x: sum_of_two(x) * mp.log(sum_of_two(x) / sum_of_two(x - 1))
        divergence = mp.quad(integrand, [-60, 0, 1, 60])
    else:
        integrand = lambda x: sum_of_two(x) ** alpha * sum_of_two(x - 1) ** (1 - alpha)
        divergence = mp.log(mp.quad(integrand, [-200, -20, 0, 1, 20, 200])) / (alpha - 1)
    assert float(divergence) == pytest.approx(twice, abs=5e-5)
    assert call("dp_rdp_laplace", alpha, 1, math.sqrt(2)) == pytest.approx(once, abs=5e-5)
    page = " ".join((pathlib.Path(__file__).resolve().parents[2] / "ext" / "math" / "README.md").read_text().split())
    assert re.search(rf"{twice:.4f} instead of {once:.4f} at (order )?{alpha}\b", page)
