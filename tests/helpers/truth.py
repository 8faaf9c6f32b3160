"""Computes epsilon and delta from the printed formulas in high precision (mpmath), for the tests of planning and
accounting. Nothing here calls the code under test."""

from mpmath import mp, mpf

MARGIN = mpf(2) ** -41  # PUBLISHED_MARGIN of math/math.h
ACCURACY = mpf("3e-14")  # the accuracy of the formulas without the margin


def tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def true_delta(rate, epsilon):
    """Returns delta by the exact profile of the Gaussian mechanism (Balle and Wang 2018, Theorem 8)."""
    mu = mp.sqrt(2 * mpf(rate))
    with mp.workdps(mp.dps + max(0, -int(mp.log10(mu)))):  # for small mu, the difference is about mu, so more digits are needed
        mu = mp.sqrt(2 * mpf(rate))
        return tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * tail(epsilon / mu + mu / 2)


def true_complement(rate, epsilon):
    mu = mp.sqrt(2 * mpf(rate))
    return tail(mu / 2 - epsilon / mu) + mp.exp(epsilon) * tail(epsilon / mu + mu / 2)


def log_odds(rate, epsilon):
    return mp.log(true_delta(rate, epsilon)) - mp.log(true_complement(rate, epsilon))


def newton(residual, guess):
    """Returns the root near the guess, by Newton's method. Fails if the method does not converge from this guess."""
    x = mpf(guess)
    for _ in range(8):
        h = x * mpf(10) ** -20
        step = residual(x) * 2 * h / (residual(x + h) - residual(x - h))
        x -= step
        if abs(step) < abs(x) * mpf(10) ** -25:
            return x
    raise AssertionError(f"no root near {guess}")


def odds_of(delta):
    return mp.log(mpf(delta)) - mp.log(1 - mpf(delta))


def true_gaussian_epsilon(rate, delta, guess):
    """Returns the epsilon >= 0 of the Gaussian profile. Newton's method starts at the guess."""
    if rate == 0 or true_delta(rate, mpf(0)) <= mpf(delta):
        return mpf(0)
    target = odds_of(delta)
    return newton(lambda x: log_odds(rate, x) - target, guess)


def true_zcdp_epsilon(rate, delta):
    """Returns the minimum over alpha of the printed conversion, by bisection on the sign of the derivative with respect to
    ln(alpha - 1)."""
    rate, l = mpf(rate), -mp.log(mpf(delta))
    if rate == 0:
        return mpf(0)

    def value(u):
        alpha = 1 + u
        return rate * alpha + mp.log(1 - 1 / alpha) + (l - mp.log(alpha)) / u

    low, high = mpf(-60), mpf(800)
    while high - low > mpf(10) ** -12:  # flat minimum: 12 digits of the argument give 24 of the value
        middle, h = (low + high) / 2, mpf(10) ** -20
        falls = value(mp.exp(middle + h)) < value(mp.exp(middle - h))
        low, high = (middle, high) if falls else (low, middle)
    return max(mpf(0), value(mp.exp(low)))


# ---- beside the truth ----------------------------------------------------------------------------------


def accurate(got, published, where):
    """Checks that `got` equals `published`, the true value with the margin, up to the accuracy of the formula."""
    assert abs(mpf(got) - published) <= published * ACCURACY, f"{where}: {got!r}, {mp.nstr(published, 20)}"


def above(got, want, where):
    """Checks a published cost: it is never below the true value, and at most 1e-12 above it."""
    assert 0 <= mpf(got) - want <= want * mpf("1e-12"), f"{where}: {got!r}, truth {mp.nstr(want, 20)}"
    if got != 1:  # dp_delta() never returns more than 1
        accurate(got, want * (1 + MARGIN), where)


def below(got, want, where):
    """Checks a published allowance: it is never above the true value, and at most 1e-12 below it."""
    assert 0 <= want - mpf(got) <= want * mpf("1e-12"), f"{where}: {got!r}, truth {mp.nstr(want, 20)}"
    accurate(got, want * (1 - MARGIN), where)
