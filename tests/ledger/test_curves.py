"""Tests ledgers in which some releases are charged curves and others are charged rates. The program curves.c charges Laplace
releases through ledger.h. The tests compare dp_rdp, dp_budget and dp_exposure with mpmath: the Renyi divergence of two
Laplace distributions by quadrature, and conversions by minimisation over real orders.
"""

import json
import os
import pathlib
import sqlite3
import subprocess

import mpmath
import pytest

from conftest import connect, INIT, one

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()

pytestmark = pytest.mark.plain  # this file links the static library without the sanitizers' runtime


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("curves") / "curves"
    subprocess.run(["cc", "-DSQLITE_CORE", f"-I{ROOT}/ext", str(HERE / "curves.c"), str(BUILD / "libdiffuse.a"),
                    "-o", str(path), "-l:libsqlite3.a", "-l:libgsl.a", "-l:libgslcblas.a", "-l:libsodium.a", "-lm",
                    "-lpthread", "-ldl"], check=True)
    return path


@pytest.fixture
def books(tmp_path, program):
    """Makes a database with three tiers. Returns a connection, and a function that charges its ledger through curves.c."""
    path = tmp_path / "a.db"
    db = connect(path)
    db.execute(INIT)
    db.execute("SELECT dp_tier('inner', 0.5, 8, 1e-6, 'rdp', 1e-7)")
    db.execute("SELECT dp_tier('middle', 0.1, 4, 1e-6, 'rdp', 1e-7)")
    db.execute("SELECT dp_tier('outer', 0.01, 1, 1e-5, 'rdp', 1e-7)")

    def charge(*releases):
        arguments = [str(x) for release in releases for x in release]
        done = subprocess.run([program, path, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return db, charge


def laplace_rdp(alpha, ratio):
    """Returns the Renyi divergence for Laplace noise of scale 1: ln of the integral of p^alpha q^(1-alpha), divided by alpha
    - 1."""
    if alpha == mpmath.inf:
        return mpmath.mpf(ratio)
    p = lambda x: alpha * (-abs(x)) + (1 - alpha) * (-abs(x - ratio))
    pieces = [-mpmath.inf, 0, ratio, mpmath.inf]
    total = mpmath.quad(lambda x: mpmath.exp(p(x)) / 2, pieces)
    return mpmath.log(total) / (alpha - 1)


def closed_rdp(alpha, ratio):
    """Returns the same divergence in closed form. A test below compares it with the quadrature."""
    a, z = mpmath.mpf(alpha), mpmath.mpf(ratio)
    if a == mpmath.inf:
        return z
    return mpmath.log(a / (2 * a - 1) * mpmath.exp((a - 1) * z) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * z)) / (a - 1)


def epsilon(rate, ratios, delta):
    """Returns the least epsilon over all real orders, by golden-section search around the best order of a fine grid."""
    def at(t):
        a = 1 + mpmath.exp(t)
        r = a * mpmath.mpf(rate) + sum(closed_rdp(a, z) for z in ratios)
        return r + mpmath.log(1 - 1 / a) - (mpmath.log(delta) + mpmath.log(a)) / (a - 1)
    grid = [mpmath.mpf(k) / 8 for k in range(-40, 240)]
    best = min(grid, key=at)
    low, high = best - 0.125, best + 0.125
    for _ in range(80):
        a, b = low + 0.381966 * (high - low), low + 0.618034 * (high - low)
        low, high = (low, b) if at(a) < at(b) else (a, high)
    pure = sum(ratios) if rate == 0 else mpmath.inf
    return min(at(low), pure)


def test_the_curve_of_a_laplace_release_is_on_the_books(books):
    db, charge = books
    assert charge(("middle", "laplace", 1, 3.0, 0)) == ["charged"]
    with mpmath.workdps(40):
        for tier, alpha, spent in db.execute("SELECT tier, alpha, spent FROM dp_rdp").fetchall():
            if tier == "outer":
                assert spent == 0
                continue
            truth = closed_rdp(mpmath.mpf(alpha), mpmath.mpf(1) / 3)
            assert truth * (1 - mpmath.mpf("1e-12")) <= spent <= truth * (1 + mpmath.mpf("1e-9")), (tier, alpha)
        for alpha in (1.5, 2, 7):
            assert abs(laplace_rdp(alpha, mpmath.mpf(1) / 3) / closed_rdp(alpha, mpmath.mpf(1) / 3) - 1) < 1e-12
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("rates,ratios", [([], [0.5]), ([0.02], [0.5]), ([0.02, 0.03], [0.1, 0.2, 0.3]),
                                          ([1e-3], [1e-3] * 4), ([], [0.01] * 5), ([0.08], [1.2])])
def test_epsilon_of_a_mix_is_the_least_that_can_be_claimed(books, rates, ratios):
    """The epsilon is never below the true value. The epsilon exceeds the true value by less than 1e-4, because only
    some orders are stored."""
    db, charge = books
    answers = charge(*[("middle", "gaussian", rate, 0, 0) for rate in rates],
                     *[("middle", "laplace", ratio, 1, 0) for ratio in ratios])
    assert answers == ["charged"] * (len(rates) + len(ratios))
    with mpmath.workdps(40):
        truth = epsilon(sum(map(mpmath.mpf, rates)), [mpmath.mpf(z) for z in ratios], mpmath.mpf(1e-6) - mpmath.mpf(1e-7))
        for (spent,) in (db.execute("SELECT spent_epsilon FROM dp_budget WHERE tier = 'middle'").fetchone(),
                         (json.loads(one(db, "SELECT dp_exposure('middle')"))["epsilon"],)):
            assert truth * (1 - mpmath.mpf("1e-12")) <= spent <= truth * mpmath.mpf("1.0001")
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("ratio,pure", [(0.11, False), (0.43, True)])
def test_the_filter_admits_what_fits_at_one_of_its_orders_and_nothing_more(books, ratio, pure):
    db, charge = books
    order, limit = db.execute("SELECT filter_order, rate_limit FROM dp_tier WHERE name = 'middle'").fetchone()
    answers = charge(*[("middle", "laplace", ratio, 1, 0)] * 200)
    with mpmath.workdps(40):
        at_order = int(mpmath.floor(mpmath.mpf(limit) * order / closed_rdp(mpmath.mpf(order), mpmath.mpf(ratio))))
        fits = max(at_order, int(4 / mpmath.mpf(ratio)))
    assert (fits > at_order) == pure
    assert answers[:fits] == ["charged"] * fits and fits < 200
    assert all("tier 'middle' would exceed its budget" in answer for answer in answers[fits:])
    assert one(db, "SELECT releases FROM dp_budget WHERE tier = 'middle'") == fits
    assert one(db, "SELECT dp_verify()") == "ok"


def test_deltas_add_up_out_of_delta_keys(books):
    db, charge = books
    answers = charge(*[("outer", "gaussian", 1e-5, 0, 4e-8)] * 3)
    assert answers[:2] == ["charged"] * 2 and "would exceed its delta_keys of 1e-07" in answers[2]
    for tier in ("inner", "middle", "outer"):
        assert 8e-8 <= one(db, "SELECT spent_delta FROM dp_budget WHERE tier = ?", tier) <= 8.0000001e-8
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_changed_curve_is_found(books):
    db, charge = books
    charge(("middle", "laplace", 0.4, 1, 0))
    ledger = sqlite3.connect(one(db, INIT))
    ledger.execute("UPDATE dp_order SET curve = curve / 2 WHERE tier = 'middle' AND alpha = 2")
    ledger.commit()
    assert one(db, "SELECT dp_verify()") == "dp_rdp: the orders of tier 'middle' are damaged"
