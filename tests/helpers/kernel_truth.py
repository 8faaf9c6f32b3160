"""Computes the worst case of Markov kernels by linear programs, and makes random kernels."""

import itertools
import math

import numpy as np
from scipy.optimize import linprog


def random_kernel(rng, n, m, sparse=False):
    kernel = rng.dirichlet(np.full(m, rng.choice([0.3, 1, 5])), n)
    if sparse:
        kernel = np.where(rng.random((n, m)) < 0.3, 0, kernel)
        kernel[:, 0] += 1e-3
        kernel /= kernel.sum(axis=1, keepdims=True)
    return kernel


def worst_pair(first, second, epsilon, delta, out):
    """Returns the largest hockey-stick divergence at e^out of mu K and nu K' over all (epsilon, delta)-DP pairs mu, nu. Each set
    of outputs gives a linear program in (mu, nu, s, s') with s >= mu - e^epsilon nu and sum s <= delta, and with the
    same conditions on s' for (nu, mu)."""
    n, m = first.shape
    e, one, zero = math.exp(epsilon), np.eye(n), np.zeros((n, n))
    rows = [np.hstack([one, -e * one, -one, zero]), np.hstack([-e * one, one, zero, -one])]
    totals = np.zeros((2, 4 * n))
    totals[0, 2 * n : 3 * n] = totals[1, 3 * n :] = 1
    equal = np.zeros((2, 4 * n))
    equal[0, :n] = equal[1, n : 2 * n] = 1
    best = 0.0
    for size in range(1, m + 1):
        for outputs in itertools.combinations(range(m), size):
            gain, loss = first[:, outputs].sum(axis=1), second[:, outputs].sum(axis=1)
            found = linprog(-np.concatenate([gain, -math.exp(out) * loss, np.zeros(2 * n)]),
                            np.vstack([*rows, totals]),
                            np.concatenate([np.zeros(2 * n), [delta, delta]]), equal, [1, 1])
            assert found.status == 0
            best = max(best, -found.fun)
    return best
