"""One test for each entry of sql/errata.md: the printed formula fails, and the corrected formula holds."""

import math
import pathlib
import re

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special

from paper_truth import call, connect


def stick(epsilon, p, q):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def one(sql, *values):
    return connect().execute(sql, values).fetchone()[0]


def test_every_entry_has_a_test():
    page = (pathlib.Path(__file__).resolve().parents[2] / "sql" / "errata.md").read_text()
    entries = re.findall(r"^\*\*E(\d+)\.", page, re.M)
    assert sorted(map(int, entries)) == [n for n in range(1, 28) if n != 12]
    assert all(f"test_e{n}" in globals() for n in entries)


def test_e1():
    bsc = np.array([[0.75, 0.25], [0.25, 0.75]])
    gamma = stick(1, bsc[0], bsc[1])
    assert gamma == pytest.approx(0.0704, abs=1e-4) and np.abs(bsc[0] - bsc[1]).sum() / 2 == 0.5
    rng = np.random.default_rng(1)
    for _ in range(2000):
        kernel = rng.dirichlet(np.full(4, 0.5), 3)
        tv = max(np.abs(a - b).sum() / 2 for a in kernel for b in kernel)
        assert max(stick(rng.uniform(0, 3), a, b) for a in kernel for b in kernel) <= tv + 1e-15


def test_e2():
    """Theorem 13 with gamma = 1: the printed epsilon' is never below epsilon, and the divergence falls as epsilon grows, so the
    printed bound is too small."""
    mu, nu, epsilon = np.array([0.9, 0.1]), np.array([0.5, 0.5]), 0.2
    delta = stick(epsilon, mu, nu)
    assert delta == pytest.approx(0.2893, abs=5e-5)
    printed_order = math.log1p(math.expm1(epsilon) / delta)
    assert stick(printed_order, mu, nu) == pytest.approx(0.0173, abs=5e-5)
    after = stick(epsilon, mu @ np.eye(2), nu @ np.eye(2))
    assert after <= 1 * delta and after > 10 * stick(printed_order, mu, nu)
    for epsilon in np.linspace(0, 5, 30):
        for delta in np.linspace(0.01, 1, 30):
            assert math.log1p(math.expm1(epsilon) / delta) >= epsilon - 1e-12


def test_e3():
    rng = np.random.default_rng(3)
    gamma, omega, rest = 0.3, rng.dirichlet([1] * 3), rng.dirichlet([1] * 3, 4)  # 4 inputs, 3 outputs
    kernel, mu = (1 - gamma) * omega + gamma * rest, rng.dirichlet([1] * 4)
    assert mu @ kernel == pytest.approx((1 - gamma) * omega + gamma * mu @ rest)
    assert mu @ rest != pytest.approx((1 - gamma) * omega + gamma * mu @ rest)


def test_e4():
    length, r = 0.7, 5
    printed = [(1 - length ** (i + 1)) / (1 - length) for i in range(r + 1)]
    assert printed[0] == pytest.approx(1) and printed[-1] != pytest.approx(1)
    for power in (1, 2):
        path = [(1 - length ** (power * i)) / (1 - length ** (power * r)) for i in range(r + 1)]
        assert path[0] == 0 and path[-1] == 1
    steps = np.diff([(1 - length ** (2 * i)) / (1 - length ** (2 * r)) for i in range(r + 1)])
    assert steps / steps[0] == pytest.approx([length ** (2 * i) for i in range(r)])
    bound = np.sum([length ** (2 * (r - i)) * d**2 for i, d in enumerate(steps, 1)]) * length**2 / 2
    assert call("dp_iteration", 1, 1, 1, length, r) == pytest.approx(bound)


def test_e5():
    limit = 1.1**2 - 1
    assert call("dp_iteration", 2, 1, 1, 1.1, 10000) == pytest.approx(limit)
    for steps in (1, 5, 50):  # the linear map is an example: its divergence is below the bound and above the limit
        exact = 1.1 ** (2 * steps) / sum(1.1 ** (2 * j) for j in range(steps))
        assert limit < exact <= call("dp_iteration", 2, 1, 1, 1.1, steps) * (1 + 1e-12)


def test_e6():
    for steps in (10, 20, 40):
        ratio = call("dp_iteration", 2, 1, 1, 0.5, steps + 1) / call("dp_iteration", 2, 1, 1, 0.5, steps)
        assert ratio == pytest.approx(0.25, rel=1e-5)
        printed = call("dp_iteration", 2, 1, 1, 0.5, steps, "paper")
        assert call("dp_iteration", 2, 1, 1, 0.5, steps + 1, "paper") / printed > 0.44
    assert call("dp_iteration", 2, 1, 1, 0.7, 20, "paper") == pytest.approx(
        86.0 * call("dp_iteration", 2, 1, 1, 0.7, 20), rel=1e-3)


def test_e7():
    """In the last of the three pieces of the convolution, u > x, the factor must be -1/(1/a + 1/b), with the minus
    sign."""
    a, b, x = 1.0, 0.4, 0.7
    pieces = [integrate.quad(lambda u: math.exp(-abs(u) / a - abs(x - u) / b) / (4 * a * b), *limits)[0]
              for limits in ((-np.inf, 0), (0, x), (x, np.inf))]
    rate = 1 / a + 1 / b
    antiderivative = lambda u, sign: sign * math.exp(-u * rate + x / b) / rate / (4 * a * b)
    assert pieces[2] == pytest.approx(0 - antiderivative(x, -1))
    assert pieces[2] != pytest.approx(0 - antiderivative(x, 1))
    assert call("dp_laplace2_pdf", x, a, b) == pytest.approx(sum(pieces))
    total = integrate.quad(lambda u: call("dp_laplace2_pdf", u, a, b), 0, 60)[0]
    assert total == pytest.approx(0.5, abs=1e-9)


def test_e8():
    """OU is better at all times if and only if x <= 2. The exact condition theta R^2 <= 4 d rho^2 is
    equivalent."""
    for rate, uniformly in ((0.5, True), (0.2501, True), (0.2499, False), (0.005, False)):
        theta, rho = call("dp_ou_theta", rate, 1, 1, 1), call("dp_ou_rho", rate, 1, 1, 1)
        better = [call("dp_ou_mse", theta, rho, t, 1, 1) <= call("dp_gaussian_mse", theta, rho, t, 1)
                  for t in np.geomspace(1e-6, 3, 400)]
        assert all(better) == uniformly == (theta <= 4 * rho**2)
        assert (1 / (2 * rate) <= 2) == uniformly


def test_e9():
    theta, rho, t, x1, x2 = 0.7, 0.9, 0.8, 1.3, -0.4
    shrink, variance = math.exp(-theta * t), rho**2 * -math.expm1(-2 * theta * t) / theta
    log_density = lambda y, x: -((y - shrink * x) ** 2) / (2 * variance)
    scale = theta / (rho**2 * math.expm1(2 * theta * t))
    for y in (-1.0, 0.3, 2.0):
        ratio = log_density(y, x1) - log_density(y, x2)
        printed = scale * math.exp(theta * t) * (x1 - x2) * y
        assert ratio != pytest.approx(printed, rel=1e-3)
        assert ratio == pytest.approx(printed - scale / 2 * (x1**2 - x2**2))


def test_e10():
    rng = np.random.default_rng(10)
    steps = math.sqrt(2) * 3 * math.sqrt(1 / 64) * rng.standard_normal((20000, 64))
    assert steps.sum(axis=1).var() == pytest.approx(call("dp_ou_variance", 0, 3, 1), rel=0.04)
    assert call("dp_ou_variance", 0, 3, 1) == 2 * 3**2


def test_e11():
    """The generator acts on phi: d/dt E phi(f + N(0, 2t)) at t = 0 is phi''(f)."""
    f, t = 0.6, 1e-5
    variance = 2 * t  # dp_brownian_rate(1, t) = 1/(2 * variance)
    assert call("dp_brownian_rate", 1, t) == pytest.approx(1 / (2 * variance))
    smoothed = float(mp.quad(lambda z: mp.sin(f + mp.sqrt(variance) * z) * mp.npdf(z), [-10, 0, 10]))
    assert (smoothed - math.sin(f)) / t == pytest.approx(-math.sin(f), rel=1e-4)


def test_e13():
    for i in (3, 9, 10):
        best = call("dp_sgd_rate", i, 10, 1.5, 2, 0.5, 1, 0)
        assert best == pytest.approx(2 * 1.5**2 / ((10 - i + 1) * 2**2))
        printed = call("dp_sgd_rate", i, 10, 1.5, 2, 0.5, 1, 0, "paper")
        assert printed == pytest.approx(best * (10 - i + 1) / (10 - i) if i < 10 else best)


def test_e14():
    r = 7
    phi = lambda length: length ** ((r - 1) / 2) * (1 - length) / (1 - length**r)
    for length in (0.3, 0.9):
        s = -math.log(length)
        assert phi(length) == pytest.approx(math.sinh(s / 2) / math.sinh(r * s / 2))
    # L'Hopital once: derivatives of numerator and denominator at L = 1
    assert -1 / -r == pytest.approx(phi(1 - 1e-7), rel=1e-5)


def test_e15():
    """D(mu_1 K_2 K_3 || nu_1 K_2 K_3) <= eta(K_2) eta(K_3) D(mu_1 || nu_1); with a third factor eta(K_1) the
    inequality is false, because K_1 is already part of mu_1."""
    k1 = np.array([[0.6, 0.4], [0.4, 0.6]])
    later = np.array([[0.9, 0.1], [0.1, 0.9]])
    mu, nu = k1
    tv = lambda a, b: np.abs(a - b).sum() / 2
    out = tv(mu @ later @ later, nu @ later @ later)
    assert out <= 0.8 * 0.8 * tv(mu, nu) + 1e-15
    assert out > 0.2 * 0.8 * 0.8 * tv(mu, nu) + 1e-3


def test_e16():
    for distance in (0.5, 3.0):
        exact = mp.log(mp.quad(lambda x: mp.npdf(x) ** 2 / mp.npdf(x, distance), [-9, -3, 0, 9]))
        assert float(exact) == pytest.approx(call("dp_rdp_gaussian", 2, distance, 1), rel=1e-9)
        assert float(exact) != pytest.approx(2 * distance / 2, rel=0.1)


def test_e17():
    """At i = n, the exact distribution is known: Laplace noise around x - eta or x + eta, projected on [0, 1]."""
    eta, epsilon = 0.9, 1.5
    cdf = lambda x: math.exp(x / eta) / 2 if x < 0 else 1 - math.exp(-x / eta) / 2
    low = lambda centre: cdf(0 - centre)  # mass of the atom at 0
    exact = max(low(x - eta) - math.exp(epsilon) * low(x + eta) for x in np.linspace(0, 1, 101))
    assert exact >= 0.2064 and epsilon >= min(2, 1 / eta)
    formula = call("dp_sgd_delta_laplace", epsilon, 2, 2, 1, 1, eta, 1, 0, 1, "paper")
    assert exact <= formula == pytest.approx(0.2212, abs=1e-4)
    assert call("dp_sgd_delta_laplace", epsilon, 1, 2, 1, 1, eta, 1, 0, 1, "paper") == 0


def test_e18():
    assert call("dp_sgd_lipschitz", 0.7, 0.3, 0.4, "paper") == pytest.approx(math.sqrt(0.76))
    assert call("dp_sgd_delta", 1, 20, 40, 1, 1, 0.7, 0.3, 0.4, 1, "paper") == pytest.approx(
        3.3476e-14, rel=1e-4)


def test_e19():
    """dp_sgd_delta_rdp() is the minimum over alpha > 1 of exp((alpha - 1)(alpha kappa - epsilon)), for epsilon >
    kappa."""
    sgd = (20, 40, 1, 2, 0.5, 0.5, 0)
    kappa, epsilon = call("dp_sgd_rate", *sgd, "paper"), 0.7
    alphas = 1 + np.geomspace(1e-3, 1e3, 20001)
    found = np.argmin((alphas - 1) * (alphas * kappa - epsilon))
    assert alphas[found] == pytest.approx((epsilon + kappa) / (2 * kappa), rel=1e-3)
    least = math.exp(np.min((alphas - 1) * (alphas * kappa - epsilon)))
    assert call("dp_sgd_delta_rdp", epsilon, *sgd) == pytest.approx(least, rel=1e-4)
    assert min((alphas - 1) * (alphas * kappa - kappa / 2)) > 0  # for epsilon < kappa, no value is below 1
    assert call("dp_sgd_delta_rdp", kappa / 2, *sgd) == 1


def test_e20():
    rng = np.random.default_rng(20)
    for _ in range(200):
        kernel, epsilon = rng.dirichlet([0.7] * 2, 2), rng.uniform(0, 2)
        points = stick(epsilon, *kernel), stick(epsilon, *kernel[::-1])
        assert stick(epsilon, np.array([1, 0]), np.array([0, 1])) == 1
        rows = [(x, y, float(kernel[x, y])) for x in (0, 1) for y in (0, 1)]
        values = ", ".join(f"({x}, {y}, {p!r})" for x, y, p in rows)
        got = one("SELECT dp_kernel_dobrushin_epsilon(column1, column2, column3, ?)"
                  f" FROM (VALUES {values})", epsilon)
        assert got == pytest.approx(max(points), abs=1e-15)


def test_e21():
    """With t = u + m2 and m~ = m2 - m1, the densities are those at u + m~ and at u. The sign of m~ does not
    matter."""
    m1, m2, epsilon = 0.4, 2.1, 0.6
    density = lambda t: math.exp(-abs(t)) / 2

    def divergence(shift):
        kinks = [-shift, 0, (-shift - epsilon) / 2, (-shift + epsilon) / 2]
        return integrate.quad(lambda u: max(0, density(u + shift) - math.exp(epsilon) * density(u)),
                              -40, 40, points=kinks, limit=400)[0]

    for u in (-1.3, 0.2, 0.7):
        assert density(u + (m2 - m1)) == pytest.approx(density((u + m2) - m1))
        assert density(u - (m2 - m1)) != pytest.approx(density((u + m2) - m1))
    direct = integrate.quad(lambda t: max(0, density(t - m1) - math.exp(epsilon) * density(t - m2)),
                            -40, 40, points=[m1, m2, (m1 + m2 - epsilon) / 2], limit=400)[0]
    assert divergence(m2 - m1) == pytest.approx(direct, rel=1e-6)
    assert divergence(m1 - m2) == pytest.approx(direct, rel=1e-6)
    assert call("dp_hockey_laplace", epsilon, abs(m1 - m2)) == pytest.approx(direct, rel=1e-6)


def test_e22():
    sigma, eta, epsilon, n = 0.3, 0.5, 0.1, 40
    first = call("dp_hockey_gaussian", epsilon, 2 / sigma)
    later = call("dp_hockey_gaussian", epsilon, 1 / (eta * sigma))
    assert first / n / (1 - later) > 1
    bound = call("dp_sgd_delta_random_stop", epsilon, n, 1, sigma, eta, 0.5, 0, 1)
    assert bound == pytest.approx(first / n * sum(later**k for k in range(n)), rel=1e-12)
    assert bound <= first


def projected_step(weights, points, centre, scale):
    """Returns the distribution of centre(x) + N(0, scale^2) after projection on [0, 1], as masses of cells. x has
    the masses `weights` on the grid `points`. The first and the last cell include the atoms at both ends."""
    edges = np.concatenate(([-np.inf], (points[1:] + points[:-1]) / 2, [np.inf]))
    cdf = special.ndtr((edges[None, :] - centre(points)[:, None]) / scale)
    return weights @ np.diff(cdf, axis=1)


def test_e23():
    """K is [0, 1]. The two descents differ in the record of the first step and share the second step. The bound
    holds with the projection. Without the projection, the iterate may leave K, and the loss need not contract
    outside K."""
    eta, sigma, bound = 0.5, 2.0, 1.0
    grid = np.linspace(0, 1, 401)
    start = np.zeros(401)
    start[0] = 1
    laws = []
    for gradient in (-bound, bound):
        first = projected_step(start, grid, lambda x: x - eta * gradient, eta * sigma)
        laws.append(projected_step(first, grid, lambda x: x, eta * sigma))
    renyi = math.log(np.sum(laws[0] ** 2 / laws[1]))
    assert 0 < renyi <= 2 * call("dp_sgd_rate", 1, 2, bound, sigma, eta, 1, 0, "paper")
    inside = special.ndtr((1 - eta * bound) / (eta * sigma)) - special.ndtr(-eta * bound / (eta * sigma))
    assert 1 - inside == pytest.approx(0.62, abs=0.005)


def test_e24():
    """A rotation of the circle never changes the divergence of two distributions, although its invariant
    distribution is unique."""
    angles = np.linspace(0, 2 * np.pi, 3600, endpoint=False)
    law = lambda t, centre: (lambda p: p / p.sum())(np.exp(np.cos(angles - t - centre)))
    renyi = lambda p, q: math.log(np.sum(p**2 / q))
    first = renyi(law(0, 0), law(0, 1))
    assert first > 0.1
    for t in (1.0, 50.0, 1e4):
        assert renyi(law(t, 0), law(t, 1)) == pytest.approx(first, rel=1e-9)
    # The Fourier coefficients of an invariant distribution do not change, so all of them except the constant one
    # are zero.
    assert all(abs(np.exp(1j * k) - 1) > 1e-6 for k in range(1, 300))


def test_e25():
    """psi is 0 on K = [0, 1], so L is 0 on K. Two points outside K show that the bound needs distributions on
    K."""
    psi = lambda x: 0.0 if 0 <= x <= 1 else 100.0 * (x == 3)
    assert call("dp_iteration", 2, 1, 1, 0, 1) == 0
    at_zero = [special.ndtr(0 - psi(x)) for x in (2, 3)]  # N(psi(x), 1), projected on K
    assert at_zero == pytest.approx([0.5, 0.0], abs=1e-12)
    assert psi(0.2) == psi(0.9) == 0


def test_e26():
    """Reference [12] has n - i + 1 where Theorem 5 at rho = 0 has n - i. The two bounds are equal for the last
    record only."""
    for i in (1, 5, 9, 10):
        earlier = 2 * 1.5**2 / ((10 - i + 1) * 2**2)
        printed = call("dp_sgd_rate", i, 10, 1.5, 2, 0.5, 1, 0, "paper")
        assert (printed == pytest.approx(earlier)) == (i == 10)
        assert printed >= earlier * (1 - 1e-12)


def test_e27():
    """Finds the least worst-case error by trying many scalings of the noisy answer."""
    x, radius = 1.7, 2.5
    tau = x * radius**2
    scalings = np.linspace(0, 1, 100001)
    least = ((1 - scalings) ** 2 * radius**2 + scalings**2 * tau).min()
    assert least == pytest.approx(3.935, abs=5e-4) and least == pytest.approx(radius**2 * x / (1 + x))
    rate = 1 / (2 * tau)
    theta, rho = call("dp_ou_theta", rate, 1, radius, 1), call("dp_ou_rho", rate, 1, radius, 1)
    assert call("dp_ou_mse", theta, rho, 1, radius, 1) == pytest.approx(least, rel=1e-8)
