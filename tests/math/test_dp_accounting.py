"""Compares dp_epsilon, dp_zcdp_epsilon and dp_rate with Google's dp-accounting, if this is installed (make deps-accounting), and
with mpmath on a wide random grid. An epsilon is never below the true value by more than 1e-12, and never above it by more than
1e-9."""

import math
import pathlib
import random
import sys
import warnings

import pytest
from mpmath import mp, mpf

from conftest import connect, one
from truth import log_odds, newton, odds_of, true_delta, true_gaussian_epsilon, true_zcdp_epsilon

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "build" / "python"))
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian
        from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
        from dp_accounting.rdp import RdpAccountant, compute_epsilon
    MISSING = None
except ImportError as error:
    MISSING = f"NOT CROSS-CHECKED against dp-accounting, which is not installed ({error}): run make deps-accounting"
    warnings.warn(MISSING)

crosscheck = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

RATES = [1e-8, 1e-5, 1e-3, 0.02, 0.125, 0.5, 2.0, 17.3, 400.0]
DELTAS = [0.1, 1e-3, 1e-6, 1e-9, 1e-15, 1e-40, 1e-120, 1e-290]
TOO_LOW, TOO_HIGH = mpf("1e-12"), mpf("1e-9")


@pytest.fixture(scope="module")
def db():
    return connect()


def check(got, truth, where):
    assert -TOO_LOW * truth <= mpf(got) - truth <= TOO_HIGH * truth, f"{where}: {got!r}, truth {mp.nstr(truth, 20)}"


# ---- another implementation -------------------------------------------------------------------------


def sigma_of(rate):
    return 1 / math.sqrt(2 * rate)


@crosscheck
@pytest.mark.parametrize("rate", RATES)
def test_epsilon_is_that_of_dp_accounting(db, rate):
    """Our epsilon agrees with that of dp-accounting up to the errors of dp-accounting, which finds a root to an absolute 1e-12
    and loses digits in a difference of logarithms."""
    for delta in DELTAS:
        ours, theirs = one(db, "SELECT dp_epsilon(?, ?)", rate, delta), get_epsilon_gaussian(sigma_of(rate), delta)
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-11), (rate, delta)
        assert ours >= theirs * (1 - 1e-10) - 1e-11


@crosscheck
@pytest.mark.parametrize("rate", [0.02, 0.5, 17.3])
def test_delta_is_that_of_dp_accounting(db, rate):
    for epsilon in (0.0, 0.1, 1.0, 5.0, 30.0):
        theirs = GaussianPrivacyLoss(sigma_of(rate)).get_delta_for_epsilon(epsilon)
        assert one(db, "SELECT dp_delta(?, ?)", rate, epsilon) == pytest.approx(theirs, rel=1e-6, abs=1e-15)


@crosscheck
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0, 60.0])
def test_rate_is_that_of_dp_accounting(db, epsilon):
    for delta in DELTAS:
        sigma = get_sigma_gaussian(epsilon, delta)
        ours, theirs = one(db, "SELECT dp_rate(?, ?)", epsilon, delta), 1 / (2 * sigma**2)
        assert ours == pytest.approx(theirs, rel=1e-8 + 1e-11 / sigma), (epsilon, delta)


@crosscheck
@pytest.mark.parametrize("rate", RATES)
def test_zcdp_epsilon_is_the_least_over_orders_of_dp_accounting(db, rate):
    """dp-accounting minimises over a grid of orders. Its result for a coarse grid is above our minimum, and its result for a fine
    grid around our order equals our minimum."""
    for delta in DELTAS[1:]:
        ours = one(db, "SELECT dp_zcdp_epsilon(?, ?)", rate, delta)
        stock = RdpAccountant()._orders
        coarse, _ = compute_epsilon(stock, [a * rate for a in stock], delta)
        assert ours <= coarse * (1 + 1e-9)
        middle = math.sqrt(-math.log(delta) / rate)  # alpha - 1 for the best alpha, approximately
        fine = [1 + middle * 2 ** (k / 400) for k in range(-2400, 400)]
        theirs, _ = compute_epsilon(fine, [a * rate for a in fine], delta)
        if theirs > 0:  # dp-accounting returns 0 where a bound on the total variation implies epsilon 0
            assert ours == pytest.approx(theirs, rel=2e-5), (rate, delta)
            assert ours <= theirs * (1 + 1e-9)


# ---- a wide grid ------------------------------------------------------------------------------------


def points(count):
    draw = random.Random(20260101)
    corners = [(r, d) for r in (1e-12, 1.0, 1e6) for d in (0.1, 1e-6, 1e-300)]
    return corners + [(10 ** draw.uniform(-12, 6), 10 ** draw.uniform(-300 if i % 2 else -20, -1))
                      for i in range(count)]


def test_epsilon_on_the_grid(db):
    with mp.workdps(70):
        for rate, delta in points(150):
            got = one(db, "SELECT dp_epsilon(?, ?)", rate, delta)
            check(got, true_gaussian_epsilon(rate, delta, got or 1), ("dp_epsilon", rate, delta))


def test_zcdp_epsilon_on_the_grid(db):
    with mp.workdps(50):
        for rate, delta in points(150):
            got = one(db, "SELECT dp_zcdp_epsilon(?, ?)", rate, delta)
            check(got, true_zcdp_epsilon(rate, delta), ("dp_zcdp_epsilon", rate, delta))


def test_rate_on_the_grid(db):
    """dp_rate() is never above the true value by more than 1e-12, and never below it by more than 1e-9."""
    draw = random.Random(7)
    with mp.workdps(70):
        for _, delta in points(100):
            epsilon = 10 ** draw.uniform(-4, 4)
            got = one(db, "SELECT dp_rate(?, ?)", epsilon, delta)
            target = odds_of(delta)
            truth = newton(lambda x: log_odds(x, mpf(epsilon)) - target, got)
            check(float(truth), mpf(got), ("dp_rate", epsilon, delta))
            assert true_delta(got, mpf(epsilon)) <= mpf(delta) * (1 + mpf("1e-12"))
