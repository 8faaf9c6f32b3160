"""Reference values for the papers' functions: textbook formulas in high precision, without the code under test. If a formula
loses digits by cancellation, the code uses more digits."""

import os
import pathlib
import sqlite3

import mpmath as mp

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
INFINITY = float("inf")


def connect():
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


_db = connect()


def call(name, *arguments):
    """Returns the result of SELECT name(arguments)."""
    marks = ", ".join("?" * len(arguments))
    return _db.execute(f"SELECT {name}({marks})", arguments).fetchone()[0]


def relative_error(got, want):
    """Returns the relative error of a double. If the true value is too large for a double, the function requires
    infinity. If the true value is smaller than all normal doubles, the function requires a number close to 0."""
    want = mp.mpf(want)
    if want > mp.mpf(2) ** 1024:
        return mp.mpf(0) if got == INFINITY else mp.mpf(1)
    if want < mp.mpf(2) ** -1022:
        return mp.mpf(0) if 0 <= got <= 2.3e-308 else mp.mpf(1)
    return abs(mp.mpf(got) - want) / want


def q(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def hockey_gaussian(epsilon, r):
    epsilon, r = mp.mpf(epsilon), mp.mpf(r)
    if r == 0:
        return mp.mpf(0)
    return q(epsilon / r - r / 2) - mp.exp(epsilon) * q(epsilon / r + r / 2)


def hockey_laplace(epsilon, r):
    return max(mp.mpf(0), 1 - mp.exp((mp.mpf(epsilon) - mp.mpf(r)) / 2))


def rdp_laplace(alpha, z):
    a, z = mp.mpf(alpha), mp.mpf(z)
    if a == 1:
        return z + mp.exp(-z) - 1
    g = a / (2 * a - 1) * mp.exp(z * (a - 1)) + (a - 1) / (2 * a - 1) * mp.exp(-z * a)
    return mp.log(g) / (a - 1)


def golden(function, low, high, steps=260):
    """Returns the minimum of a function with only one local minimum, by golden-section search."""
    ratio = (mp.sqrt(5) - 1) / 2
    low, high = mp.mpf(low), mp.mpf(high)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    f_left, f_right = function(left), function(right)
    for _ in range(steps):
        if f_left < f_right:
            high, right, f_right = right, left, f_left
            left = high - ratio * (high - low)
            f_left = function(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + ratio * (high - low)
            f_right = function(right)
    return min(f_left, f_right)


def rdp_response(alpha, epsilon):
    a, e = mp.mpf(alpha), mp.mpf(epsilon)
    if a == 1:
        return e * mp.tanh(e / 2)
    p = 1 / (1 + mp.exp(e))
    return mp.log((1 - p) ** a * p ** (1 - a) + p**a * (1 - p) ** (1 - a)) / (a - 1)


def ou_clock(theta, rho, t):
    theta, rho, t = mp.mpf(theta), mp.mpf(rho), mp.mpf(t)
    if theta == 0:
        return 2 * rho**2 * t
    return rho**2 * mp.expm1(2 * theta * t) / theta


def iteration(alpha, distance, sigma, lipschitz, steps):
    weight = sum(mp.mpf(lipschitz) ** (-2 * j) for j in range(1, int(steps) + 1))
    return mp.mpf(alpha) * mp.mpf(distance) ** 2 / (2 * mp.mpf(sigma) ** 2) / weight


def contraction(eta, beta, rho):
    eta, beta, rho = mp.mpf(eta), mp.mpf(beta), mp.mpf(rho)
    return max(abs(1 - eta * rho), abs(1 - eta * beta))


def printed_contraction(eta, beta, rho):
    eta, beta, rho = mp.mpf(eta), mp.mpf(beta), mp.mpf(rho)
    if beta + rho == 0:
        return mp.mpf(1)
    return mp.sqrt(max(mp.mpf(0), 1 - 2 * eta * beta * rho / (beta + rho)))


def sgd_rate(i, n, c, sigma, lipschitz, method):
    top = 2 * mp.mpf(c) ** 2 / mp.mpf(sigma) ** 2
    after = n - i
    if method == "paper":
        return top if after == 0 else top / after * lipschitz ** (after + 1)
    if lipschitz == 0:
        return top if after == 0 else mp.mpf(0)
    return top / sum(lipschitz ** (-2 * j) for j in range(after + 1))


def product_bound(hockey, epsilon, after, first, later):
    return hockey(epsilon, first) * (hockey(epsilon, later) ** after if after else 1)


def iterated_bound(hockey, epsilon, after, first, later):
    d = hockey(epsilon, first)
    for _ in range(after):
        if d < mp.mpf(10) ** -320:
            return mp.mpf(0)
        d *= hockey(mp.log(1 + (mp.exp(epsilon) - 1) / d), later)
    return d
