"""Compares every scalar of the papers with high precision. The relative error is at most 1e-11 over the whole domain where the
true value is a normal double. Only the choice of arguments is random."""

import math
import random

import mpmath as mp
import pytest

from paper_truth import (
    call, contraction, golden, hockey_gaussian, hockey_laplace, iterated_bound, iteration, ou_clock,
    printed_contraction, product_bound, rdp_laplace, rdp_response, relative_error, sgd_rate,
)

TOLERANCE = 1e-11


def log_uniform(rng, low, high):
    return 10 ** rng.uniform(low, high)


def check(got, want, tolerance=TOLERANCE):
    assert relative_error(got, want) <= tolerance, (got, mp.nstr(want, 20))


@pytest.mark.parametrize("seed", range(4))
def test_hockey_sticks(seed):
    rng = random.Random(seed)
    with mp.workdps(70):
        for _ in range(60):
            epsilon = rng.choice([0, log_uniform(rng, -12, 0), rng.uniform(0, 20), rng.uniform(0, 720)])
            r = log_uniform(rng, -8, 1.5)
            if epsilon and rng.random() < 0.5:
                r = max(1e-8, epsilon / rng.uniform(0.5, 38))
            check(call("dp_hockey_gaussian", epsilon, r), hockey_gaussian(epsilon, r))
            r = log_uniform(rng, -8, 3)
            check(call("dp_hockey_laplace", epsilon, r), hockey_laplace(epsilon, r))


@pytest.mark.parametrize("r", [1e-300, 1e-200, 1e-100, 1e-31, 3e-20])
@pytest.mark.parametrize("ratio", [0, 1.0, 20.0, 37.0])
def test_hockey_stick_of_tiny_distance(r, ratio):
    with mp.workdps(700):
        check(call("dp_hockey_gaussian", ratio * r, r), hockey_gaussian(ratio * r, r))


def test_hockey_stick_limits():
    assert call("dp_hockey_gaussian", 1, 0) == 0
    assert call("dp_hockey_gaussian", 1, 1e160) == 1
    assert call("dp_hockey_gaussian", 9e999, 30) == 0
    assert call("dp_hockey_laplace", 700, 700) == 0
    with mp.workdps(400):
        check(call("dp_hockey_gaussian", 700, 30), hockey_gaussian(700, 30))


@pytest.mark.parametrize("seed", range(4))
def test_renyi_laplace_and_response(seed):
    rng = random.Random(seed)
    with mp.workdps(70):
        for _ in range(60):
            alpha = rng.choice([1, 1 + log_uniform(rng, -15, 0), 1 + log_uniform(rng, 0, 4), 1e4])
            z = log_uniform(rng, -12, 3)
            check(call("dp_rdp_laplace", alpha, 3 * z, 3), rdp_laplace(alpha, mp.mpf(3 * z) / 3))
            check(call("dp_rdp_response", alpha, z), rdp_response(alpha, z))
    assert call("dp_rdp_laplace", 9e999, 2, 4) == 0.5
    assert call("dp_rdp_response", 9e999, 2) == 2


@pytest.mark.parametrize("seed", range(3))
def test_iterated_laplace(seed):
    """The true value comes from a golden-section search over w, in high precision."""
    rng = random.Random(seed)
    with mp.workdps(50):
        for _ in range(8):
            alpha = rng.choice([1, 1 + log_uniform(rng, -15, 0), 1 + log_uniform(rng, 0, 4)])
            l1 = log_uniform(rng, -3, 3)
            l2 = rng.choice([l1, l1 * (1 + log_uniform(rng, -15, -1)), log_uniform(rng, -3, 3)])
            d = log_uniform(rng, -5, 3)
            want = golden(
                lambda s: rdp_laplace(alpha, s / mp.mpf(l1)) + rdp_laplace(alpha, (d - s) / mp.mpf(l2)),
                0, d, 160)
            check(call("dp_iterated_laplace", alpha, d, l1, l2), want)
            check(call("dp_iterated_laplace", alpha, d, l2, l1), want)
    assert call("dp_iterated_laplace", 9e999, 2, 4, 8) == 0.25
    assert call("dp_iterated_laplace", 2, 0, 4, 8) == 0


def test_laplace2_pdf_close_scales():
    rng = random.Random(5)
    with mp.workdps(300):
        for _ in range(200):
            a = log_uniform(rng, -100, 100)
            b = rng.choice([a * (1 + log_uniform(rng, -16, 0)), log_uniform(rng, -100, 100)])
            x = rng.choice([0, log_uniform(rng, -100, 100), -a * log_uniform(rng, -3, 2.7)])
            big_a, big_b, big_x = mp.mpf(a), mp.mpf(b), abs(mp.mpf(x))
            if a == b:
                want = mp.exp(-big_x / big_a) / (4 * big_a) * (1 + big_x / big_a)
            else:
                want = (big_a * mp.exp(-big_x / big_a) - big_b * mp.exp(-big_x / big_b)) / (
                    2 * (big_a**2 - big_b**2))
            check(call("dp_laplace2_pdf", x, a, b), want)


@pytest.mark.parametrize("seed", range(4))
def test_diffusion(seed):
    """Tests tiny and huge products of theta and t, and magnitudes from 1e-100 to 1e100."""
    rng = random.Random(seed)
    done = 0
    while done < 60:
        theta = rng.choice([0, log_uniform(rng, -15, 2), log_uniform(rng, -300, 300)])
        t = log_uniform(rng, -300, 300) if rng.random() < 0.3 else log_uniform(rng, -12, 3)
        if theta and rng.random() < 0.5:
            t = log_uniform(rng, -20, 2.8) / theta
        if not 0 < t < 1e308 or theta * t > 1e5:
            continue
        done += 1
        rho, d = log_uniform(rng, -100, 100), log_uniform(rng, -100, 100)
        with mp.workdps(80):
            tau, square = ou_clock(theta, rho, t), mp.mpf(d) ** 2
            shrink = mp.exp(-mp.mpf(theta) * t)
            check(call("dp_ou_clock", theta, rho, t), tau)
            check(call("dp_ou_rate", d, theta, rho, t), square / (2 * tau))
            check(call("dp_ou_gamma", d, theta, rho, t), square * (mp.mpf(rho) / (shrink * tau)) ** 2)
            check(call("dp_ou_shrink", theta, t), shrink)
            check(call("dp_ou_variance", theta, rho, t), tau * shrink**2)
            check(call("dp_gaussian_mse", theta, rho, t, 3), 3 * tau)
            check(call("dp_pgm_mse", theta, rho, t, d, 3), 3 * tau * square / (square + 3 * tau))
            bias = mp.expm1(-mp.mpf(theta) * t) ** 2 * square
            check(call("dp_ou_mse", theta, rho, t, d, 3), 3 * tau * shrink**2 + bias)
            check(call("dp_brownian_rate", d, t), square / (4 * mp.mpf(t)))
            check(call("dp_brownian_gamma", d, t), square / (4 * mp.mpf(t) ** 2))
            clock = log_uniform(rng, -300, 300)
            x = mp.mpf(theta) * clock / mp.mpf(rho) ** 2
            time = mp.log1p(x) / (2 * mp.mpf(theta)) if theta else clock / (2 * mp.mpf(rho) ** 2)
            check(call("dp_ou_time", theta, rho, clock), time)


def test_theorem_8_over_all_magnitudes():
    rng = random.Random(8)
    with mp.workdps(500):
        for _ in range(100):
            rate, d, radius = (log_uniform(rng, -100, 100) for _ in range(3))
            x = mp.mpf(d) ** 2 * 3 / (2 * mp.mpf(rate) * mp.mpf(radius) ** 2)
            theta = mp.log(1 + x)
            check(call("dp_ou_theta", rate, d, radius, 3), theta)
            rho = mp.sqrt(mp.mpf(d) ** 2 / (2 * mp.mpf(rate)) * theta / (x * (x + 2)))
            check(call("dp_ou_rho", rate, d, radius, 3), rho)


def test_ornstein_uhlenbeck_after_a_very_long_time():
    for theta, t in ((2, 1e5), (1e200, 1e200)):
        assert [call(f"dp_ou_{name}", 1.0, theta, 1.0, t) for name in ("rate", "gamma")] == [0, 0]
        assert call("dp_ou_clock", theta, 1.0, t) == math.inf and call("dp_ou_variance", theta, 1.0, t) == 1 / theta


def test_gaussian_examples():
    rng = random.Random(13)
    for _ in range(100):
        alpha = 1 + log_uniform(rng, -15, 4)
        d, s1, s2, lipschitz = (log_uniform(rng, -70, 70) for _ in range(4))
        with mp.workdps(400):
            head = mp.mpf(alpha) * mp.mpf(d) ** 2 / 2
            v1, v2 = mp.mpf(s1) ** 2, mp.mpf(s2) ** 2
            check(call("dp_rdp_gaussian", alpha, d, s1), head / v1)
            check(call("dp_iterated_gaussian", alpha, d, s1, s2), head / (v1 + v2))
            check(call("dp_lipschitz_gaussian", alpha, d, s1, s2, lipschitz),
                  head / (v1 + v2 / mp.mpf(lipschitz) ** 2))
    assert call("dp_lipschitz_gaussian", 2, 1, 1, 1, 0) == 0
    assert call("dp_iterated_gaussian", 2, 1, 1, 0) == call("dp_rdp_gaussian", 2, 1, 1) == 1
    assert call("dp_laplace2_epsilon", 3, 2, 4) == 0.75


@pytest.mark.parametrize("seed", range(3))
def test_iteration_and_rates(seed):
    rng = random.Random(seed)
    with mp.workdps(60):
        for _ in range(60):
            lipschitz = rng.choice([0.5, 1, 1 - log_uniform(rng, -16, -1), 1 + log_uniform(rng, -15, 1),
                                    log_uniform(rng, -3, 2)])
            steps = rng.choice([1, 2, rng.randint(1, 40), rng.randint(40, 2000)])
            check(call("dp_iteration", 2, 1.5, 0.7, lipschitz, steps),
                  iteration(2, 1.5, 0.7, lipschitz, steps))
            printed = (2 * mp.mpf(1.5) ** 2 * mp.mpf(lipschitz) ** (steps + 1)
                       / (2 * steps * mp.mpf(0.7) ** 2))
            if lipschitz <= 1:
                check(call("dp_iteration", 2, 1.5, 0.7, lipschitz, steps, "paper"), printed)
            beta = log_uniform(rng, -3, 3)
            rho = rng.choice([0, beta * rng.random(), beta * (1 - log_uniform(rng, -14, -1)), beta])
            eta = 2 / (beta + rho) * rng.choice([1, rng.random(), 1 - log_uniform(rng, -12, -1)])
            if mp.mpf(eta) * (mp.mpf(beta) + mp.mpf(rho)) > 2:
                continue
            tight, lemma = contraction(eta, beta, rho), printed_contraction(eta, beta, rho)
            check(call("dp_sgd_lipschitz", eta, beta, rho), tight)
            check(call("dp_sgd_lipschitz", eta, beta, rho, "paper"), lemma)
            n = rng.randint(1, 200)
            i = rng.randint(1, n)
            c, s = log_uniform(rng, -1, 1), log_uniform(rng, -1, 1)
            for method, value in (("paper", lemma), ("path", lemma), ("best", tight)):
                check(call("dp_sgd_rate", i, n, c, s, eta, beta, rho, method),
                      sgd_rate(i, n, c, s, value, method))


@pytest.mark.parametrize("seed", range(3))
def test_sgd_deltas(seed):
    rng = random.Random(seed)
    with mp.workdps(50):
        for _ in range(20):
            after = rng.choice([0, 1, 5, rng.randint(1, 60)])
            beta = log_uniform(rng, -1, 0)
            rho = beta * rng.random()
            eta = rng.random() * 2 / (beta + rho)
            s, d = log_uniform(rng, -1, 1), log_uniform(rng, -1, 2)
            epsilon = rng.choice([0, log_uniform(rng, -6, 0), rng.uniform(0, 5), rng.uniform(0, 40)])
            lemma, tight = printed_contraction(eta, beta, rho), contraction(eta, beta, rho)
            first, unit = 2 / mp.mpf(s), d / (mp.mpf(eta) * s)
            sgd = (3, 3 + after, 1, s, eta, beta, rho)
            for name, hockey in (("dp_sgd_delta", hockey_gaussian),
                                 ("dp_sgd_delta_laplace", hockey_laplace)):
                check(call(name, epsilon, *sgd, d, "paper"),
                      product_bound(hockey, epsilon, after, first, lemma * unit))
                check(call(name, epsilon, *sgd, d, "iterated"),
                      iterated_bound(hockey, epsilon, after, first, lemma * unit))
                best = iterated_bound(hockey, epsilon, after, first, tight * unit)
                if hockey is hockey_gaussian:
                    rate = sgd_rate(3, 3 + after, 1, s, tight, "best")
                    best = min(best, hockey_gaussian(epsilon, mp.sqrt(2 * rate)))
                check(call(name, epsilon, *sgd, d), best)
            kappa = sgd_rate(3, 3 + after, 1, s, lemma, "paper")
            check(call("dp_sgd_delta_rdp", epsilon, *sgd),
                  mp.exp(-((epsilon - kappa) ** 2) / (4 * kappa)) if epsilon > kappa else 1)
            later = hockey_gaussian(epsilon, lemma * unit)
            check(call("dp_sgd_delta_random_stop", epsilon, 3 + after, 1, s, eta, beta, rho, d, 3),
                  hockey_gaussian(epsilon, first) * sum(later**k for k in range(after + 1))
                  / (3 + after))


@pytest.mark.parametrize("n,sigma,diameter,epsilon", [
    (30001, 0.5, 1.6, 0.5), (60001, 0.3, 1.1, 1.0), (20001, 0.5, 1.5, 0.01), (90001, 1, 3.5, 1e-3),
])
def test_tens_of_thousands_of_steps(n, sigma, diameter, epsilon):
    with mp.workdps(40):
        want = product_bound(hockey_gaussian, epsilon, n - 1, 2 / mp.mpf(sigma),
                             diameter / (mp.mpf(0.5) * sigma))
        got = call("dp_sgd_delta", epsilon, 1, n, 1, sigma, 0.5, 0.5, 0, diameter, "paper")
        assert 1e-300 < got < 1
        check(got, want)
        width = 8 * diameter
        check(call("dp_sgd_delta_laplace", epsilon, 1, n, 1, sigma, 0.5, 0.5, 0, width, "paper"),
              product_bound(hockey_laplace, epsilon, n - 1, 2 / mp.mpf(sigma),
                            width / (mp.mpf(0.5) * sigma)))


@pytest.mark.parametrize("steps,sigma,diameter,epsilon", [
    (3000, 0.5, 1.65, 0.01), (10000, 0.5, 1.8, 1e-4), (10000, 0.4, 1.6, 0.5), (1000, 0.5, 1.3, 1e-100),
])
@pytest.mark.sample(2)
def test_thousands_of_iterated_steps(steps, sigma, diameter, epsilon):
    with mp.workdps(30):
        want = iterated_bound(hockey_gaussian, epsilon, steps, 2 / mp.mpf(sigma),
                              diameter / (mp.mpf(0.5) * sigma))
        check(call("dp_sgd_delta", epsilon, 1, steps + 1, 1, sigma, 0.5, 0.5, 0, diameter, "iterated"),
              want)


INF = math.inf


@pytest.mark.parametrize("name,arguments,value", [
    # with an infinite order or epsilon, the result is the largest privacy loss
    ("dp_iteration", (INF, 1, 1, 0.5, 10), INF), ("dp_iteration", (INF, 1, 1, 0.5, 10, "paper"), INF),
    ("dp_iteration", (INF, 0, 1, 0.5, 10), 0), ("dp_iteration", (INF, 0, 1, 0.5, 10, "paper"), 0),
    ("dp_iteration", (INF, 1, 1, 0, 10), 0), ("dp_iteration", (INF, 1, 1, 0, 10, "paper"), 0),
    ("dp_rdp_response", (2, INF), INF), ("dp_rdp_response", (INF, 3), 3), ("dp_rdp_laplace", (INF, 3, 2), 1.5),
    ("dp_rdp_laplace", (2, 1e300, 1e-300), INF),
    # a million steps: 2^-2000000 underflows, and 2^1000001 overflows
    ("dp_iteration", (2, 1, 1, 0.5, 1e6), 0), ("dp_iteration", (2, 1, 1, 0.5, 1e6, "paper"), 0),
    ("dp_iteration", (2, 1, 1, 1, 1e6, "paper"), 1e-6),
    # the noise is much larger than the radius, but the error of the projected value is at most the radius
    ("dp_pgm_mse", (1, 1, 1e6, 3, 2), 9), ("dp_hockey_gaussian", (1e308, 1e151), 0), ("dp_hockey_gaussian", (1e300, 1e151), 1),
    # a step that does not depend on its starting point, and tiny noise
    ("dp_sgd_rate", (1, 3, 1, 1, 1, 1, 1, "paper"), 0), ("dp_sgd_delta", (1, 1, 1, 1, 1e-200, 0.5, 0.5, 0, 1), 1),
    ("dp_sgd_delta_random_stop", (INF, 3, 1, 2, 0.5, 0.5, 0, 1), 0),
])
def test_limits(name, arguments, value):
    assert call(name, *arguments) == value


def test_figures_of_asoodeh():
    """Compares with reference values, which were computed in 60-digit arithmetic and printed with five digits."""
    for row in """2 20 0.5 0.5 0 0 1.7595e-09 1
                  2 39 0.5 0.5 0 3 2.3629e-06 4.3937e-02
                  2 1 0.5 0.5 0 4 8.4938e-174 2.3298e-135
                  1 20 0.7 0.3 0.4 1 3.3476e-14 6.9859e-20
                  1 39 0.7 0.3 0.4 2.5 7.8430e-03 8.5388e-01
                  1 20 0.7 0.3 0.4 4 5.0727e-59 8.1449e-310""".splitlines():
        sigma, i, eta, beta, rho, epsilon, theorem_4, proposition_1 = map(float, row.split())
        sgd = (i, 40, 1, sigma, eta, beta, rho)
        assert f"{call('dp_sgd_delta', epsilon, *sgd, 1, 'paper'):.4e}" == f"{theorem_4:.4e}"
        if proposition_1 > 1e-307:
            assert f"{call('dp_sgd_delta_rdp', epsilon, *sgd):.4e}" == f"{proposition_1:.4e}"
