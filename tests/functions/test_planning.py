"""Compares the planning functions with the printed formulas, evaluated with 70 digits in mpmath. A cost is never below its true
value, and an allowance is never above its true value. Both differ from the true value by at most 1e-12."""

import itertools
import os
import pathlib
import sqlite3

import pytest
from mpmath import mp, mpf

from truth import MARGIN, above, accurate, below, log_odds, newton, odds_of, true_delta, true_zcdp_epsilon

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
SMALLEST = mpf(2) ** -1022  # the smallest normal double

RATES = [0.0, 1e-12, 3.7e-9, 1e-6, 7.5e-4, 0.02, 0.1249999, 0.125, 0.125000001, 0.5, 2.0, 17.3, 400.0, 3e4, 1e6]
DELTAS = [1e-300, 1e-200, 3e-77, 1e-30, 1e-15, 1e-9, 1e-6, 1e-5, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.5000001, 0.9, 0.999,
          1 - 1e-9, 1 - 2.0**-53]
EPSILONS = [0.0, 1e-12, 1e-8, 1e-4, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 88.0, 708.0, 709.0, 710.0, 1e3, 2.5e4, 1e6]


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(70):
        yield


@pytest.fixture(scope="module")
def sql():
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    db.enable_load_extension(False)

    def call(name, *arguments):
        marks = ", ".join("?" * len(arguments))
        return db.execute(f"SELECT {name}({marks})", arguments).fetchone()[0]

    call.db = db
    yield call
    db.close()


# ---- values --------------------------------------------------------------------------------------------


def test_reference_points(sql):
    above(sql("dp_epsilon", 0.5, 1e-6), mpf("4.88655411746221201"), "reference point")
    above(sql("dp_zcdp_epsilon", 0.5, 1e-6), mpf("5.22153444453016905"), "reference point")
    sigma = sql("dp_sigma", sql("dp_rate", 1, 1e-6), 1)  # rounding the rate changes sigma by half as much
    accurate(sigma, mpf("4.22467888932683529") * (1 + MARGIN * 3 / 2), "reference point")


@pytest.mark.parametrize("rate", RATES[1:])
def test_delta(sql, rate):
    mu = (2 * rate) ** 0.5
    near = [rate + a * mu for a in (-8, -2, -1e-9, 0, 0.3, 1.9, 2.1, 7, 15, 24.4, 30, 36.9)]
    for epsilon in EPSILONS + [e for e in near if e >= 0]:
        got, want = sql("dp_delta", rate, epsilon), true_delta(rate, mpf(epsilon))
        if want < SMALLEST:
            assert got == SMALLEST, (rate, epsilon, got)
        else:
            assert got <= 1
            above(got, want, (rate, epsilon))


@pytest.mark.parametrize("rate", RATES[1:])
def test_epsilon(sql, rate):
    for delta in DELTAS:
        got = sql("dp_epsilon", rate, delta)
        if true_delta(rate, mpf(0)) <= mpf(delta):
            assert got == 0, (rate, delta, got)
        else:
            target = odds_of(delta)
            above(got, newton(lambda x: log_odds(rate, x) - target, got), (rate, delta))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rate(sql, epsilon):
    for delta in DELTAS:
        got = sql("dp_rate", epsilon, delta)
        if got == 0:  # this happens only if the rate is no normal double
            assert true_delta(4 * SMALLEST, mpf(epsilon)) > delta, (epsilon, delta)
            continue
        target = odds_of(delta)
        below(got, newton(lambda x: log_odds(x, mpf(epsilon)) - target, got), (epsilon, delta))


@pytest.mark.parametrize("rate", RATES[1:])
def test_zcdp_epsilon(sql, rate):
    for delta in DELTAS[::2]:
        got, want = sql("dp_zcdp_epsilon", rate, delta), true_zcdp_epsilon(rate, delta)
        above(got, want, (rate, delta))
        assert got >= sql("dp_epsilon", rate, delta)


def test_sigma(sql):
    for rate, sensitivity in itertools.product(RATES[1:] + [1e-300, 1e300], [1e-9, 1.0, 3, 2.5e8]):
        above(sql("dp_sigma", rate, sensitivity), sensitivity / mp.sqrt(2 * mpf(rate)), (rate, sensitivity))
    assert sql("dp_sigma", 1e300, 1e-300) >= SMALLEST  # sigma is never 0


def test_rate_zero_is_perfect_privacy(sql):
    assert sql("dp_epsilon", 0, 1e-9) == 0
    assert sql("dp_delta", 0, 0) == 0
    assert sql("dp_zcdp_epsilon", 0.0, 0.5) == 0


@pytest.mark.parametrize("rate", [1e-10, 0.02, 3.0])
def test_epsilon_clamps_at_the_total_variation(sql, rate):
    """If delta is close to the total variation, epsilon is close to 0. The rounding of delta to a double then causes an error of
    2e-15 mu in epsilon (math.h)."""
    total, mu = true_delta(rate, mpf(0)), mp.sqrt(2 * mpf(rate))
    assert sql("dp_epsilon", rate, float(total * (1 + mpf(10) ** -12))) == 0
    for gap in ("1e-4", "1e-7", "1e-10"):
        delta = float(total * (1 - mpf(gap)))
        target = odds_of(delta)
        want = newton(lambda x: log_odds(rate, x) - target, mpf(gap) * total * 2)
        assert abs(sql("dp_epsilon", rate, delta) - want) < mpf("2e-15") * mu + want * mpf("1e-12")


def test_delta_is_never_above_one(sql):
    assert sql("dp_delta", 1e6, 0) == 1
    assert sql("dp_delta", 40, 1e-3) <= 1


# ---- the face ------------------------------------------------------------------------------------------

GOOD = {"rate": 0.5, "epsilon": 1.0, "delta": 1e-6, "sensitivity": 2.0}
BAD = {
    "rate": [-1e-300, -1, float("inf")],
    "epsilon": [-1e-300, -1, float("inf")],
    "delta": [0, 0.0, 1, 1.0, -0.1, 2],
    "sensitivity": [0, -1.0, float("inf")],
}
FUNCTIONS = {
    "dp_rate": ("epsilon", "delta"),
    "dp_sigma": ("rate", "sensitivity"),
    "dp_epsilon": ("rate", "delta"),
    "dp_delta": ("rate", "epsilon"),
    "dp_zcdp_epsilon": ("rate", "delta"),
}


@pytest.mark.parametrize("name,place", [(n, i) for n in FUNCTIONS for i in range(2)])
def test_a_bad_argument_is_an_error_that_names_it(sql, name, place):
    parameter = FUNCTIONS[name][place]
    for bad in BAD[parameter] + [None, "0.5.", "x", b"\x01"] + ([0] if name == "dp_sigma" else []):
        arguments = [GOOD[p] for p in FUNCTIONS[name]]
        arguments[place] = bad
        with pytest.raises(sqlite3.OperationalError, match=f"^{name}: {parameter} must be a"):
            sql(name, *arguments)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_two_arguments(sql, name):
    for count in (0, 1, 4) if name == "dp_rate" else (0, 1, 3):
        with pytest.raises(sqlite3.OperationalError, match="wrong number of arguments"):
            sql(name, *[0.5] * count)


def test_pure_functions_serve_in_schemas(sql):
    """Pure functions are DETERMINISTIC and INNOCUOUS, so a CHECK in an untrusted schema may use them."""
    sql.db.execute("PRAGMA trusted_schema = off")
    sql.db.execute("CREATE TABLE plan(rate REAL CHECK (dp_epsilon(rate, 1e-6) <= 5))")
    sql.db.execute("CREATE VIEW costs AS SELECT dp_zcdp_epsilon(rate, 1e-6) AS epsilon FROM plan")
    sql.db.execute("INSERT INTO plan VALUES (0.5)")
    with pytest.raises(sqlite3.IntegrityError):
        sql.db.execute("INSERT INTO plan VALUES (0.6)")
    assert 5.2 < sql.db.execute("SELECT epsilon FROM costs").fetchone()[0] < 5.3
