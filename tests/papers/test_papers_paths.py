"""Compares dp_iteration_path() and dp_iteration_best(), which are Theorem 4 of Balle et al. step by step, with exact
distributions. Also tests equation (16) of Asoodeh et al. as printed."""

import itertools
import math
import random
import sqlite3

import mpmath as mp
import numpy
import pytest
from scipy import optimize

from paper_truth import call, connect, hockey_gaussian

INFINITY = float("inf")


def given(alpha, steps, db=None):
    """Returns dp_iteration_path() of `steps`, a list of (sigma, lipschitz, shift). The rows of the query have another
    order."""
    return over("dp_iteration_path", alpha, steps, db)


def best(alpha, steps, distance):
    return over("dp_iteration_best", alpha, [(sigma, lipschitz, distance) for sigma, lipschitz in steps])


def over(name, alpha, steps, db=None):
    db = db or connect()
    rows = [(alpha, i + 1, *step) for i, step in enumerate(steps)]
    random.Random(len(rows)).shuffle(rows)
    db.execute("CREATE TEMP TABLE IF NOT EXISTS step(alpha, i, sigma, lipschitz, last)")
    db.execute("DELETE FROM step")
    db.executemany("INSERT INTO step VALUES (?, ?, ?, ?, ?)", rows)
    return db.execute(f"SELECT {name}(alpha, i, sigma, lipschitz, last) FROM step").fetchone()[0]


def random_steps(rng, count):
    return [(rng.uniform(0.3, 2), rng.uniform(0.2, 1.3), rng.uniform(0, 1)) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_equal_steps_are_equation_2(count):
    rng = random.Random(count)
    sigma, lipschitz, alpha = 0.7, 0.8, 3.5
    shifts = [rng.random() for _ in range(count)]
    want = alpha * lipschitz**2 / (2 * sigma**2) * sum(
        lipschitz**(2 * (count - i)) * shift**2 for i, shift in enumerate(shifts, 1))
    assert given(alpha, [(sigma, lipschitz, shift) for shift in shifts]) == pytest.approx(want, rel=1e-14)
    assert best(alpha, [(sigma, lipschitz)] * count, 1.5) == pytest.approx(
        call("dp_iteration", alpha, 1.5, sigma, lipschitz, count), rel=1e-13)


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_linear_maps_attain_the_best_path(count):
    """x -> L_j x + N(0, sigma_j^2) from two points: both outputs are Gaussian, so the divergence is known exactly."""
    rng = random.Random(count)
    steps = [(rng.uniform(0.3, 2), rng.uniform(0.2, 1.5)) for _ in range(count)]
    gap, variance = mp.mpf(1.7), mp.mpf(0)
    for sigma, lipschitz in steps:
        gap *= mp.mpf(lipschitz)
        variance = variance * mp.mpf(lipschitz)**2 + mp.mpf(sigma)**2
    assert best(2.5, steps, 1.7) == pytest.approx(float(mp.mpf("2.5") * gap**2 / (2 * variance)), rel=1e-13)


def test_no_path_is_better_than_the_best():
    rng = random.Random(4)
    for _ in range(20):
        steps = random_steps(rng, 4)
        total = sum(shift for _, _, shift in steps)
        least = best(2, [step[:2] for step in steps], total)
        assert given(2, steps) >= least * (1 - 1e-12)
        db = connect()

        def cost(free):
            shifts = [abs(s) for s in free]
            scale = total / max(sum(shifts), 1e-9)
            return given(2, [(*step[:2], shift * scale) for step, shift in zip(steps, shifts)], db)

        found = optimize.minimize(cost, [1, 1, 1, 1], method="Nelder-Mead", options={"maxiter": 600, "fatol": 1e-12})
        assert found.fun == pytest.approx(least, rel=1e-3)


def density(points, start, maps, sigmas, grid):
    """Returns the distribution of projected iterations in [-1, 1] as masses on a grid. It has atoms at the ends and a
    density between."""
    width = grid[1] - grid[0]
    masses = numpy.zeros(len(grid))
    for p, x in zip(points, start):
        masses[numpy.argmin(abs(grid - x))] += p
    for f, sigma in zip(maps, sigmas):
        z = (grid[None, :] - f(grid)[:, None]) / sigma
        kernel = numpy.exp(-z**2 / 2) / (sigma * math.sqrt(2 * math.pi)) * width
        kernel[:, 0] = 0.5 * (1 + numpy.vectorize(math.erf)(((grid[0] + width / 2) - f(grid)) / sigma / math.sqrt(2)))
        kernel[:, -1] = 0.5 * (1 - numpy.vectorize(math.erf)(((grid[-1] - width / 2) - f(grid)) / sigma / math.sqrt(2)))
        masses = masses @ kernel
    return masses


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
@pytest.mark.sample(2)
def test_a_path_of_laws_holds_for_projected_iterations(order):
    """mu_0 and mu_3 are distributions on two points each, and mu_1 and mu_2 are between them. The steps have different
    slopes and different noise, in every order. The bound of the theorem for this path is at least the exact divergence."""
    slopes, noises = [0.9, 0.3, 0.7], [0.5, 0.9, 0.3]
    maps = [lambda x, s=slopes[k], k=k: numpy.tanh(s * x) + 0.05 * k for k in order]
    grid = numpy.linspace(-1, 1, 2001)
    path = [(-0.9, 0.1), (-0.5, 0.3), (-0.4, 0.4), (0.2, 0.5)]  # mu_0 .. mu_3, each with probability 1/2 on two points
    shifts = [max(abs(a[0] - b[0]), abs(a[1] - b[1])) for a, b in zip(path, path[1:])]  # upper bounds on the distances W_infinity
    laws = [density((0.5, 0.5), path[end], maps, [noises[k] for k in order], grid) for end in (0, -1)]
    for alpha in (1.5, 4):
        exact = math.log((laws[0]**alpha * laws[1]**(1 - alpha)).sum()) / (alpha - 1)
        bound = given(alpha, [(noises[k], slopes[k], shift) for k, shift in zip(order, shifts)])
        assert 0 < exact <= bound


def test_extremes():
    assert given(INFINITY, [(1, 1, 5), (1, 0, 0)]) == 0 and given(INFINITY, [(1, 1, 1e-300)]) == INFINITY
    assert best(3, [(1, 1), (1, 0), (1, 1)], 9) == 0
    assert given(2, [(1, 1e-200, 1), (1, 1e200, 1)]) == pytest.approx(1, rel=1e-14)
    assert best(2, [(1, 1e-100), (1, 1e100)], 1e100) == pytest.approx(1, rel=1e-14)
    assert given(1, [(1, 1, 0.001)] * 100000) == pytest.approx(100000 * 1e-6 / 2, rel=1e-11)
    assert connect().execute("SELECT dp_iteration_path(1, 1, 1, 1, 1) WHERE 0").fetchone() == (None,)


@pytest.mark.parametrize("rows, message", [
    ([(2, 1, 1, 1, 1), (2, 3, 1, 1, 1)], "dp_iteration_path: step 2 is missing"),
    ([(2, 1, 1, 1, 1), (2, 1, 1, 1, 1)], "dp_iteration_path: step 1 comes twice"),
    ([(2, 1, 1, 1, 1), (3, 2, 1, 1, 1)], "dp_iteration_path: alpha must be the same in every row"),
    ([(2, 1.5, 1, 1, 1)], "dp_iteration_path: i must be a whole number"),
    ([(2, 0, 1, 1, 1)], "dp_iteration_path: i must be"), ([(2, 2000000, 1, 1, 1)], "dp_iteration_path: i must be"),
    ([(0.5, 1, 1, 1, 1)], "dp_iteration_path: alpha must be"), ([(2, 1, 0, 1, 1)], "dp_iteration_path: sigma must be"),
    ([(2, 1, 1, -1, 1)], "dp_iteration_path: lipschitz must be"), ([(2, 1, 1, 1, None)], "dp_iteration_path: shift must be"),
    ([(2, 1, 1, 1, "x")], "dp_iteration_path: shift must be")])
def test_bad_rows(rows, message):
    db = connect()
    db.execute("CREATE TABLE step(alpha, i, sigma, lipschitz, shift)")
    db.executemany("INSERT INTO step VALUES (?, ?, ?, ?, ?)", rows)
    with pytest.raises(sqlite3.Error) as error:
        db.execute("SELECT dp_iteration_path(alpha, i, sigma, lipschitz, shift) FROM step").fetchone()
    assert str(error.value).startswith(message)


def test_the_distance_is_one():
    db = connect()
    with pytest.raises(sqlite3.Error, match="dp_iteration_best: distance must be the same in every row"):
        db.execute("SELECT dp_iteration_best(2, value, 1, 1, value) FROM json_each('[1,2]')").fetchone()


@pytest.mark.parametrize("epsilon, n, sigma, eta, rho, diameter", [
    (1, 40, 2, 0.5, 0, 1), (0.1, 40, 0.05, 0.5, 0, 1), (0, 7, 1, 0.7, 0.4, 3), (3, 1000, 0.5, 1, 0.2, 0.4)])
def test_equation_16_as_printed(epsilon, n, sigma, eta, rho, diameter):
    """The printed bound is theta(2L/sigma)/n/(1 - theta(M D/(eta sigma))). It exceeds 1 for small noise, and is never below the
    corrected sum."""
    with mp.workdps(400):
        beta = mp.mpf(0.5)
        step = mp.sqrt(1 - 2 * mp.mpf(eta) * beta * mp.mpf(rho) / (beta + mp.mpf(rho)))
        later = hockey_gaussian(epsilon, step * mp.mpf(diameter) / (mp.mpf(eta) * mp.mpf(sigma)))
        want = hockey_gaussian(epsilon, 2 / mp.mpf(sigma)) / n / (1 - later)
    setting = (epsilon, n, 1, sigma, eta, 0.5, rho, diameter)
    got = call("dp_sgd_delta_random_stop", *setting, "paper")
    assert got == pytest.approx(float(want), rel=1e-11)
    assert call("dp_sgd_delta_random_stop", *setting, 5, "paper") == got  # the printed bound does not depend on the index
    assert got >= call("dp_sgd_delta_random_stop", *setting) == call("dp_sgd_delta_random_stop", *setting, "sum")
    assert call("dp_sgd_delta_random_stop", *setting, 3, "sum") == call("dp_sgd_delta_random_stop", *setting, 3)


def test_equation_16_without_a_bound():
    assert call("dp_sgd_delta_random_stop", 1, 40, 1, 2, 0.5, 0.5, 0, INFINITY, "paper") == INFINITY
    with pytest.raises(sqlite3.Error, match="method must be 'sum' or 'paper'$"):
        call("dp_sgd_delta_random_stop", 1, 40, 1, 2, 0.5, 0.5, 0, 1, "best")
