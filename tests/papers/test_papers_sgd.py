"""Projected noisy SGD in one dimension: compares the bounds with the exact distribution of the output.

K = [0, width]. The distribution after a step has an atom at each end and a density between the ends. The tests represent this
distribution by masses on the two ends and on the nodes of a fine quadrature rule. One step moves the points by the gradient,
adds the noise, and projects. The tests use nothing except the algorithm."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import erf

from paper_truth import call

GAUSS = np.polynomial.legendre.leggauss(12)


class Grid:
    def __init__(self, width, pieces=60):
        edges = np.linspace(0, width, pieces + 1)
        half = width / pieces / 2
        self.nodes = np.concatenate([(a + b) / 2 + half * GAUSS[0] for a, b in zip(edges, edges[1:])])
        self.weights = np.tile(half * GAUSS[1], pieces)
        self.width = width
        self.points = np.concatenate([[0.0], self.nodes, [width]])
        self.kernels = {}

    def kernel(self, gradient, eta, noise):
        """Returns the matrix of one step, which maps x to the projection of x - eta gradient(x) + noise."""
        if gradient not in self.kernels:
            density, distribution = noise(eta)
            centre = self.points - eta * gradient(self.points)
            low = distribution(0.0 - centre)
            high = distribution(centre - self.width)  # the noise is symmetric
            inner = density(self.nodes[None, :] - centre[:, None]) * self.weights
            self.kernels[gradient] = np.column_stack([low, inner, high])
        return self.kernels[gradient]


def gaussian(scale):
    return (lambda x: np.exp(-(x / scale) ** 2 / 2) / (scale * math.sqrt(2 * math.pi)),
            lambda x: (1 + erf(x / scale / math.sqrt(2))) / 2)


def laplace(scale):
    return (lambda x: np.exp(-np.abs(x) / scale) / (2 * scale),
            lambda x: np.where(x < 0, np.exp(-np.abs(x) / scale) / 2, 1 - np.exp(-np.abs(x) / scale) / 2))


def hockey(epsilon, p, q):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def renyi(alpha, p, q):
    return math.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1)


def laws(grid, noise, eta, gradients, start):
    """Returns the distributions after each step, for a list of gradient functions."""
    law = (np.abs(grid.points - start) == np.abs(grid.points - start).min()).astype(float)
    law /= law.sum()
    out = []
    for gradient in gradients:
        law = law @ grid.kernel(gradient, eta, noise)
        out.append(law)
    return out


def linear(slope):
    return lambda x: slope + 0 * x


def quadratic(curvature, centre):
    return lambda x: curvature * (x - centre)


# {name: (eta, beta, rho, width, Lipschitz constant of the loss, records of the worst pairs, other records)}
LINEAR = dict(eta=0.5, beta=0.5, rho=0.0, width=1.0, loss=1.0,
              pairs=[(linear(1), linear(-1)), (linear(-1), linear(1))],
              others=[linear(0), linear(1), linear(-1)])
CURVED = dict(eta=0.7, beta=1.5, rho=0.8, width=1.0, loss=1.5,
              pairs=[(quadratic(1.5, 0), quadratic(1.5, 1)), (quadratic(0.8, 1), quadratic(1.5, 0))],
              others=[quadratic(0.8, 0.5), quadratic(1.5, 0.2), quadratic(0.8, 1)])
FAST = dict(eta=0.1, beta=1.0, rho=0.0, width=1.0, loss=1.0,
            pairs=[(linear(1), linear(-1))], others=[linear(0), linear(1)])


def worst_laws(setting, noise, n, index, pieces=60):
    """Yields pairs of final distributions, for all starting points, pairs of records and sequences of the other records."""
    grid = Grid(setting["width"], pieces)
    for start in (0.0, setting["width"] / 2, setting["width"]):
        for one, two in setting["pairs"]:
            for others in itertools.product(setting["others"], repeat=min(n - 1, 2)):
                rest = [others[k % len(others)] for k in range(n - 1)] if others else []
                before, after = rest[: index - 1], rest[index - 1 :]
                p = laws(grid, noise, setting["eta"], [*before, one, *after], start)
                q = laws(grid, noise, setting["eta"], [*before, two, *after], start)
                yield p, q


GRID_ERROR = 2e-5  # tolerance for kinks of the divergence and of the Laplace density inside a piece of the quadrature


@pytest.mark.parametrize("setting", [LINEAR, CURVED], ids=["linear", "curved"])
@pytest.mark.parametrize("n,index", [(1, 1), (2, 1), (2, 2), (3, 1), (5, 2)])
@pytest.mark.parametrize("sigma", [0.7, 2.0])
@pytest.mark.sample(6)
def test_gaussian_bounds_hold(setting, n, index, sigma):
    s = (index, n, setting["loss"], sigma, setting["eta"], setting["beta"], setting["rho"])
    noise = lambda eta: gaussian(eta * sigma)
    pairs = [(p[-1], q[-1]) for p, q in worst_laws(setting, noise, n, index, 30)]
    for epsilon in (0.0, 0.1, 1.0):
        exact = max(hockey(epsilon, p, q) for p, q in pairs) - GRID_ERROR
        best = call("dp_sgd_delta", epsilon, *s, setting["width"])
        iterated = call("dp_sgd_delta", epsilon, *s, setting["width"], "iterated")
        printed = call("dp_sgd_delta", epsilon, *s, setting["width"], "paper")
        assert exact <= best <= iterated * (1 + 1e-12) and iterated <= printed * (1 + 1e-12)
        assert best <= call("dp_sgd_delta_rdp", epsilon, *s) * (1 + 1e-12)
    for alpha in (1.5, 2.0, 8.0):
        exact = max(renyi(alpha, p, q) for p, q in pairs) - GRID_ERROR
        best, path, printed = (alpha * call("dp_sgd_rate", *s, m) for m in ("best", "path", "paper"))
        assert exact <= best <= path * (1 + 1e-12) and path <= printed * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("after", [1, 2, 3, 4, 6])
def test_deep_bounds_hold(after, sigma):
    """Tests tiny bounds: they agree with the exact divergence to three digits, even if this divergence is very small. The descent
    starts from every corner, and the later records pull the point back to the middle."""
    grid, noise = Grid(1.0, 60), lambda eta: gaussian(eta * sigma)
    up, down, compared = linear(-1), linear(1), 0
    for start, later in itertools.product((0.0, 0.5, 1.0), (linear(0), linear(-0.5), linear(1))):
        p, q = (laws(grid, noise, 0.5, [g] + [later] * after, start)[-1] for g in (up, down))
        for epsilon in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0):
            s = (epsilon, 1, 1 + after, 1, sigma, 0.5, 0.5, 0)
            exact = max(hockey(epsilon, p, q), hockey(epsilon, q, p))
            bounds = [call("dp_sgd_delta", *s, 1, m) for m in ("best", "iterated", "paper")]
            assert exact * (1 - 1e-3) - 1e-15 <= min(bounds)
            assert bounds[0] <= bounds[1] * (1 + 1e-12) and bounds[1] <= bounds[2] * (1 + 1e-12)
            compared += exact > 1e-13
    assert compared > 20


@pytest.mark.parametrize("setting", [LINEAR, CURVED], ids=["linear", "curved"])
@pytest.mark.parametrize("n,index", [(1, 1), (2, 1), (3, 1), (4, 2)])
@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_laplace_bounds_hold(setting, n, index, scale):
    s = (index, n, setting["loss"], scale, setting["eta"], setting["beta"], setting["rho"])
    noise = lambda eta: laplace(eta * scale)
    pairs = [(p[-1], q[-1]) for p, q in worst_laws(setting, noise, n, index, 30)]
    for epsilon in (0.0, 0.1, 0.5):
        exact = max(hockey(epsilon, p, q) for p, q in pairs) - 3e-4
        best = call("dp_sgd_delta_laplace", epsilon, *s, setting["width"])
        iterated = call("dp_sgd_delta_laplace", epsilon, *s, setting["width"], "iterated")
        printed = call("dp_sgd_delta_laplace", epsilon, *s, setting["width"], "paper")
        assert exact <= best <= iterated * (1 + 1e-12) and iterated <= printed * (1 + 1e-12)


@pytest.mark.parametrize("setting", [LINEAR, CURVED], ids=["linear", "curved"])
@pytest.mark.parametrize("n,index", [(2, 1), (3, 2), (5, 1)])
def test_random_stop_bounds_hold(setting, n, index):
    """The released x is the point after T steps, where T is uniform on 1..n and is hidden or revealed."""
    sigma = 1.0
    s = (n, setting["loss"], sigma, setting["eta"], setting["beta"], setting["rho"], setting["width"])
    pairs = list(worst_laws(setting, lambda eta: gaussian(eta * sigma), n, index, 20))
    for epsilon in (0.0, 0.1, 1.0):
        bound = call("dp_sgd_delta_random_stop", epsilon, *s, index)
        assert bound <= call("dp_sgd_delta_random_stop", epsilon, *s)
        assert bound <= call("dp_hockey_gaussian", epsilon, 2 * setting["loss"] / sigma)
        for p, q in pairs:
            revealed = np.mean([hockey(epsilon, a, b) for a, b in zip(p, q)])
            hidden = hockey(epsilon, np.mean(p, axis=0), np.mean(q, axis=0))
            assert hidden <= revealed + 1e-12 and revealed <= bound + GRID_ERROR


def test_examples_of_the_notes():
    """Compares the bounds with the exact figures of two settings."""
    pairs = [(p[-1], q[-1]) for p, q in worst_laws(FAST, gaussian, 2, 1, 60)]
    exact = max(renyi(2.0, p, q) for p, q in pairs)
    s = (1, 2, 1, 1, 0.1, 1, 0)
    assert exact == pytest.approx(1.988, abs=5e-4)
    assert 2 * call("dp_sgd_rate", *s) == 2.0 and 2 * call("dp_sgd_rate", *s, "paper") == 4.0
    grid, later = Grid(1.0), linear(-0.5)  # the worst case that a search over starting points and slopes found
    p, q = (laws(grid, lambda eta: gaussian(2 * eta), 0.5, [linear(g), later, later], 0.5)[-1]
            for g in (1, -1))
    exact = hockey(0.1, p, q)
    s = (0.1, 1, 3, 1, 2, 0.5, 0.5, 0)
    assert exact == pytest.approx(0.01741, abs=1e-5)
    assert call("dp_sgd_delta", *s, 1, "iterated") == pytest.approx(0.02069, abs=1e-5)
    assert call("dp_sgd_delta", *s, 1, "paper") == pytest.approx(0.04374, abs=1e-5)
    assert call("dp_sgd_delta_rdp", *s) == 1


@pytest.mark.parametrize("curvature", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("after", [0, 1, 6])
def test_gaussian_bound_is_met_without_projection(curvature, after):
    """For quadratic losses on the whole line, the exact distribution is Gaussian, and the differing records move the means apart
    by 2 eta C. The bounds on rate and delta hold with equality."""
    eta, sigma, c, epsilon = 0.6, 1.1, 0.9, 0.3
    lipschitz = 1 - eta * curvature
    difference, variance = 2 * eta * c, (eta * sigma) ** 2
    for _ in range(after):
        difference, variance = lipschitz * difference, lipschitz**2 * variance + (eta * sigma) ** 2
    rate = difference**2 / (2 * variance)
    s = (3, 3 + after, c, sigma, eta, curvature, curvature)
    assert call("dp_sgd_rate", *s) == pytest.approx(rate, rel=1e-12)
    delta = call("dp_hockey_gaussian", epsilon, difference / math.sqrt(variance))
    assert call("dp_sgd_delta", epsilon, *s, 9e999) == pytest.approx(delta, rel=1e-12)


def test_last_step_is_met_on_a_wide_interval():
    """For i = n, Theorems 3 and 4 have one factor. The bounds hold with equality if the projection has no effect."""
    grid = Grid(60.0, 150)
    for noise, name in ((gaussian, "dp_sgd_delta"), (laplace, "dp_sgd_delta_laplace")):
        p, q = (laws(grid, lambda eta: noise(eta * 1.5), 0.5, [linear(g)], 30.0)[-1] for g in (1, -1))
        bound = call(name, 0.4, 1, 1, 1, 1.5, 0.5, 0.5, 0, 60, "paper")
        assert hockey(0.4, p, q) == pytest.approx(bound, rel=2e-3)


def test_rule_of_the_method_order():
    """On a grid of settings, the result of "best" is at most that of "iterated", which is at most that of "paper". The
    Gaussian bound is the smallest for large K."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        n = int(rng.integers(1, 60))
        i = int(rng.integers(1, n + 1))
        beta = 10 ** rng.uniform(-2, 1)
        rho = beta * rng.random()
        eta = rng.random() * 2 / (beta + rho)
        s = (float(rng.uniform(0, 3)), i, n, 1.0, 10 ** rng.uniform(-0.5, 1), eta, beta, rho)
        width = 10 ** rng.uniform(-1, 2)
        best, iterated, printed = (
            call("dp_sgd_delta", *s, width, m) for m in ("best", "iterated", "paper"))
        assert best <= iterated * (1 + 1e-11) and iterated <= printed * (1 + 1e-11)
        assert best <= call("dp_sgd_delta_rdp", *s) * (1 + 1e-11)
    wide = (1, 35, 40, 1, 2, 0.5, 0.5, 0, 10)
    assert call("dp_sgd_delta", *wide, "paper") == pytest.approx(0.127, abs=5e-4)
    assert call("dp_sgd_delta", *wide) == pytest.approx(0.00155, abs=1e-5)
