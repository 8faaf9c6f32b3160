"""Tests how later steps of a model hide a row. Compares dp_sgd_profile() and the charges for public rows and random stops with
the recursion of models/models.h in mpmath, and with the exact output distributions of neighbouring data. The tests use
equal and falling learning rates, with Gaussian and with Laplace noise.

Two tests are statistical, with false-alarm probabilities of 1e-9 together."""

import json
import math
import random
import sqlite3

import mpmath as mp
import numpy
import pytest
from scipy.special import ndtr

from conftest import connect, one, refused
from model_helpers import SGD, make_tables, release

TERMS = '{"protects":"row","adjacency":"replace"}'
INFINITY = math.inf


def open_ledger(rate=0.5, delta=8e-6, accountant="rdp", epsilon=1e15, outer=0.1, keys=0):
    db = connect()
    one(db, "SELECT dp_init(?)", TERMS)
    for tier, share in (("inner", 1), ("outer", outer)):
        one(db, "SELECT dp_tier(?, ?, ?, ?, ?, ?)", tier, rate * share, epsilon, delta, accountant, keys)
    make_tables(db)
    db.execute("INSERT INTO t(y, x) VALUES (1, '[0.5]')")
    return db


def train(db, loss="logistic", tier="inner", **options):
    return release(db, tier, {"name": "m", "dim": 1, "clip": 1, "loss": loss, **options})


def profile_of(db):
    return json.loads(one(db, "SELECT dp_sgd_profile('m')"))


class Model:
    """The parameters of a model in the ledger, and its steps on the lattice in high precision."""

    def __init__(self, db):
        text, granularity, self.sensitivity = db.execute(
            "SELECT json_extract(options, '$.model'), granularity, sensitivity FROM dp_release").fetchone()
        self.__dict__.update(json.loads(text))
        self.unit = 2.0**granularity  # size of a lattice step
        self.steps = self.n + self.public_rows
        self.is_laplace = bool(self.__dict__.get("laplace"))
        self.last = self.sensitivity_of(self.steps)

    def eta_of(self, i):
        return self.eta / (1 + self.__dict__.get("decay", 0) * (i - 1))**self.__dict__.get("power", 1)

    def contraction(self, i):
        eta = mp.mpf(self.eta_of(i))
        return max(abs(1 - eta * self.l2), abs(1 - eta * self.beta))

    def sensitivity_of(self, i):
        """Returns the sensitivity of step i in one dimension: floor(distance) + 1, where the distance is 2 eta lipschitz in
        lattice steps."""
        return mp.floor(2 * mp.mpf(self.eta_of(i)) * self.lipschitz / self.unit) + 1

    def variance_of(self, i):
        if "decay" not in self.__dict__ or i == self.steps:
            return mp.mpf(self.variance)
        if self.is_laplace:
            return 2 * mp.ceil(mp.sqrt(self.variance / 2) * self.sensitivity_of(i) / self.last)**2
        return mp.ceil(self.variance * (self.sensitivity_of(i) / self.last)**2) + 1

    def deviation_of(self, i):
        """Returns the size of the noise of step i in units of the model: sigma, or the scale."""
        return float(mp.sqrt(self.variance_of(i) / (2 if self.is_laplace else 1))) * self.unit

    def stick(self, epsilon, distance, variance):
        if self.is_laplace:
            scale = mp.sqrt(variance / 2)
            return max(mp.mpf(0), 1 - mp.exp((epsilon - distance / scale) / 2) / mp.cosh(1 / (2 * scale)))
        r = distance / mp.sqrt(variance)
        return mp.ncdf(r / 2 - epsilon / r) - mp.exp(epsilon) * mp.ncdf(-r / 2 - epsilon / r)

    def deltas(self, index, epsilon):
        """Returns d_0, d_1, ..., where d_k is the delta of a row after k later steps. Each later step contracts the delta. For
        equal Gaussian steps, d_k is also at most the bound by the path. The slack of the lattice, 1e-26, is left out."""
        epsilon = mp.mpf(epsilon)
        width = 2 * self.radius / self.unit
        d = self.stick(epsilon, self.last, self.variance_of(self.steps))
        distance, variance, found = self.last, mp.mpf(self.variance), [d]
        for i in range(index + 1, self.steps + 1):
            if d > 0:
                moved = self.contraction(i) * width + 1.25
                d *= self.stick(mp.log(1 + (mp.exp(epsilon) - 1) / d), moved, self.variance_of(i))
            if not self.is_laplace and "decay" not in self.__dict__ and len(found) <= 256:
                distance = self.contraction(i) * distance + 2.5
                variance = self.contraction(i)**2 * variance + self.variance
                d = min(d, self.stick(epsilon, distance, variance))
            found.append(d)
        return found

    def least_epsilon(self, index, delta):
        low, high = mp.mpf(0), self.last / mp.sqrt(mp.mpf(self.variance) / 2) + 12
        if self.deltas(index, 0)[-1] <= delta:
            return mp.mpf(0)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.deltas(index, middle)[-1] <= delta else (middle, high)
        return high


# ---- the profile against the recursion --------------------------------------------------------------------------------

def test_record_199():
    """For the epsilon of row 199, Theorem 4 of Asoodeh et al. as printed gives .9159, dp_sgd_delta() gives .3680, and the Renyi
    conversion alone gives 3.2249."""
    db = open_ledger()
    train(db, n=200, radius=0.25, eta=0.9)
    entry = profile_of(db)[198]
    assert entry["index"] == 199 and entry["epsilon"] == pytest.approx(0.3680, abs=1e-4)
    model = Model(db)
    sigma = math.sqrt(model.variance) * model.unit / model.eta
    call = "SELECT dp_sgd_delta(?, 199, 200, 1, ?, 0.9, 0.25, 0, 0.5)"
    assert one(db, call, entry["epsilon"] * (1 - 1e-3), sigma) > 8e-6 >= one(db, call, entry["epsilon"], sigma)


SETTINGS = [
    {"n": 30, "radius": 0.25, "eta": 0.9}, {"n": 30, "radius": 1.5, "eta": 0.9}, {"n": 12, "radius": 9, "eta": 0.9},
    {"n": 30, "radius": 0.5, "eta": 0.9, "l2": 0.3}, {"n": 20, "public_rows": 7, "radius": 0.6, "eta": 1.5},
    {"n": 25, "radius": 0.6, "eta": 0.9, "schedule": "sqrt"},
    {"n": 25, "radius": 0.3, "eta": 1.5, "schedule": "inverse", "decay": 0.02, "l2": 0.1},
    {"n": 20, "public_rows": 5, "radius": 0.3, "eta": 1.5, "schedule": "inverse", "decay": 0.02}]


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.sample(3)
def test_profile_is_the_recursion(options, mechanism):
    db = open_ledger()
    train(db, mechanism=mechanism, **options)
    model = Model(db)
    assert one(db, "SELECT dp_verify()") == "ok"
    with mp.workdps(30):
        for entry in profile_of(db):
            if entry["index"] % 4 and entry["index"] < options["n"] - 3:
                continue
            want = model.least_epsilon(entry["index"], mp.mpf(8e-6))
            if mechanism == "gaussian":  # the profile may also use the path to the last step
                path = one(db, "SELECT dp_epsilon(?, 8e-6)", entry["rate"])
                assert entry["epsilon"] == pytest.approx(min(float(want), path), rel=1e-4, abs=1e-9)
            else:
                assert entry["epsilon"] == pytest.approx(float(want), rel=1e-4, abs=1e-9)
                pure = model.least_epsilon(entry["index"], 0)
                assert entry["pure"] == pytest.approx(float(pure), rel=1e-4, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_long_profiles(mechanism):
    """If more than 256 steps follow, rows share a bound and steps share a factor. The bound is never below the recursion, and
    only slightly above it."""
    db = open_ledger()
    train(db, mechanism=mechanism, n=900, radius=5 if mechanism == "gaussian" else 7, eta=0.9)
    model, entries = Model(db), profile_of(db)
    assert all(a["epsilon"] <= b["epsilon"] for a, b in zip(entries, entries[1:]))
    with mp.workdps(30):
        for index in (20, 300, 500, 640):
            want = float(model.least_epsilon(index, mp.mpf(8e-6)))
            if mechanism == "gaussian":
                want = min(want, one(db, "SELECT dp_epsilon(?, 8e-6)", entries[index - 1]["rate"]))
            assert 0 < want * (1 - 1e-6) <= entries[index - 1]["epsilon"] <= want * 1.5 + 5e-4


def test_paper_column_of_laplace_noise():
    """The member "paper" is Theorem 3 as printed, solved for epsilon. The theorem holds for one dimension and equal steps."""
    db = open_ledger()
    train(db, mechanism="laplace", n=10, radius=0.4, eta=0.9)
    model = Model(db)
    scale = model.deviation_of(1) / model.eta
    for entry in profile_of(db):
        call = "SELECT dp_sgd_delta_laplace(?, ?, 10, 1, ?, 0.9, 0.25, 0, 0.8, 'paper')"
        printed = entry["paper"]
        assert one(db, call, printed * (1 + 1e-9), entry["index"], scale) <= 8e-6
        assert printed == 0 or one(db, call, printed * (1 - 1e-6), entry["index"], scale) > 8e-6
        assert entry["epsilon"] <= printed * (1 + 1e-4) + 1e-9
    db = open_ledger()
    train(db, mechanism="laplace", n=3, radius=0.4, dim=2)
    assert {entry["paper"] for entry in profile_of(db)} == {None}


# ---- the profile and the charge against exact laws --------------------------------------------------------------------

def slope(loss, margin, y, threshold=0.5):
    if loss == "logistic":
        return 1 / (1 + numpy.exp(-margin)) - (1 if y > 0.5 else 0)
    return numpy.clip(margin - y, -threshold, threshold)


class Laws:
    """Computes exact distributions of the last point of a model in one dimension, as masses of the cells of a grid. The
    masses on a coarse grid are post-processing of the exact distribution, so the divergence between two such lists of
    masses is never above the true divergence."""

    def __init__(self, model, cells=601, reach=11):
        self.model = model
        widest = max(model.deviation_of(i) for i in range(1, model.steps + 1))
        ends = reach * widest * (2 if model.is_laplace else 1) + model.radius + 2 * model.eta * model.lipschitz
        self.edges = numpy.linspace(-ends, ends, cells + 1)
        self.centres = (self.edges[1:] + self.edges[:-1]) / 2

    def masses(self, z):
        """Returns the masses between neighbouring points of z. On either side of 0, a mass is the difference of two tails of
        that side, so that small masses keep their digits."""
        tails = ndtr(-abs(z)) if not self.model.is_laplace else numpy.exp(-abs(z)) / 2
        low, high = tails[:, :-1], tails[:, 1:]
        return numpy.where((z[:, :-1] < 0) & (z[:, 1:] > 0), 1 - low - high, abs(high - low))

    def law(self, loss, rows):
        masses, points = numpy.ones(1), numpy.zeros(1)
        for i, (y, x) in enumerate(rows, 1):
            eta = self.model.eta_of(i)
            moved = points * (1 - eta * self.model.l2) - eta * slope(loss, points * x, y) * x
            z = (self.edges[None, :] - moved[:, None]) / self.model.deviation_of(i)
            masses = masses @ self.masses(z)
            # Most cells are outside the ball, and projection moves their mass to its surface.
            points, cells = numpy.unique(numpy.clip(self.centres, -self.model.radius, self.model.radius), return_inverse=True)
            masses = numpy.bincount(cells, masses) if i < len(rows) else masses
        return masses


def neighbours(rng, model, index, trials, pull):
    """Returns neighbouring data in which row `index` has the largest gradient, in opposite directions."""
    for _ in range(trials):
        rows = [(rng.choice([-9, 9, 0]), rng.choice([-1, 1, rng.uniform(-1, 1)])) for _ in range(model.steps)]
        yield rows[:index] + [(pull, 1.0)] + rows[index + 1:], rows[:index] + [(-pull, 1.0)] + rows[index + 1:]


EXACT = [
    ({"n": 4, "radius": 0.3, "eta": 0.9}, 0.08), ({"n": 3, "radius": 0.8, "eta": 0.9, "l2": 0.2}, 0.05),
    ({"n": 3, "public_rows": 2, "radius": 0.5, "eta": 0.9}, 0.02),
    ({"n": 4, "radius": 0.4, "eta": 0.9, "schedule": "sqrt", "decay": 0.5}, 0.05),
    ({"n": 3, "public_rows": 2, "radius": 0.4, "eta": 0.9, "schedule": "inverse", "decay": 0.3}, 0.02)]


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("options, near", EXACT)
def test_exact_laws_are_within_profile_and_charge(options, near, mechanism):
    """For all rows, the hockey-stick divergences are within (epsilon, delta), and the Renyi divergences are within the charged
    curve or rate. For the last row, they are close to these bounds."""
    delta = 1e-3
    db = open_ledger(rate=0.7, delta=delta)
    train(db, "huber", mechanism=mechanism, threshold=0.5, **options)
    model, entries = Model(db), profile_of(db)
    laws, rng, nearest, hidden = Laws(model), random.Random(5), 0.0, 0.0
    charged = dict(db.execute("SELECT alpha, spent FROM dp_rdp WHERE tier = 'inner'").fetchall())
    alphas = [alpha for alpha in charged if alpha in (1.25, 2, 5, 17)]
    assert len(alphas) == 4
    for index in range(model.n):
        entry = entries[index]
        for a, b in neighbours(rng, model, index, 3, 9):
            p, q = laws.law("huber", a), laws.law("huber", b)
            excess = numpy.maximum(p - math.exp(entry["epsilon"]) * q, 0).sum()
            assert excess <= delta * (1 + 1e-6) + 1e-12
            if mechanism == "laplace":
                assert numpy.maximum(p - math.exp(entry["pure"]) * q, 0).sum() <= 1e-9
            if index == model.n - 1:
                hidden = max(hidden, excess / delta)
            seen = (p > 1e-200) & (q > 1e-200)
            for alpha in alphas:
                logs = alpha * numpy.log(p[seen]) + (1 - alpha) * numpy.log(q[seen])
                renyi = math.log(max(numpy.exp(logs).sum(), 1)) / (alpha - 1)
                assert renyi <= charged[alpha] * (1 + 1e-6) + 1e-12
                nearest = max(nearest, renyi / charged[alpha])
    assert nearest > near, nearest
    assert hidden > near or model.public_rows, hidden


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_charge_of_public_rows(mechanism):
    """At each order, the curve is the smaller of the cost of the noise and the divergence that the recursion implies (by
    quadrature). The curve is lower than without contraction, and dp_verify() accepts it."""
    db = open_ledger(rate=0.6)
    train(db, mechanism=mechanism, n=9, public_rows=3, radius=0.4, eta=1.0)
    model = Model(db)
    charged = db.execute("SELECT alpha, spent FROM dp_rdp WHERE tier = 'inner'").fetchall()
    (clock,) = db.execute("SELECT clock FROM dp_publication").fetchone()
    with mp.workdps(30):
        top = model.last / mp.sqrt(mp.mpf(model.variance) / 2) if model.is_laplace else mp.mpf(14)
        ends = [top * k / 400 for k in range(401)]
        deltas = [model.deltas(model.n, epsilon)[-1] for epsilon in ends]
        for alpha, spent in charged:
            if alpha not in (1.5, 3, 9, 33):
                continue
            terms = [(mp.exp((alpha - 1) * e) + mp.exp(-alpha * e)) * d for e, d in zip(ends, deltas)]
            integral = (sum(terms) - (terms[0] + terms[-1]) / 2) * top / 400
            want = mp.log(1 + alpha * (alpha - 1) * integral) / (alpha - 1)
            plain = one(db, "SELECT ?", alpha * model.sensitivity**2 / (2 * clock)) if mechanism == "gaussian" else \
                one(db, "SELECT dp_rdp_laplace(?, ?, ?)", alpha, model.sensitivity, math.sqrt(clock / 2))
            assert spent == pytest.approx(min(float(want), plain), rel=0.06)
            assert spent < plain / 5
    if mechanism == "laplace":
        with mp.workdps(30):
            assert charged[-1][1] == pytest.approx(float(model.least_epsilon(model.n, 0)), rel=1e-6)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_curve_that_is_too_low_is_found(mechanism, tmp_path):
    """dp_verify() finds a curve that is too low, even if all hashes are recomputed as if the charge had been too low from the
    start."""
    path = tmp_path / "m.db"
    db = connect(path)
    one(db, "SELECT dp_init(?)", TERMS)
    one(db, "SELECT dp_tier('inner', 0.6, 100, 1e-6)")
    make_tables(db)
    db.execute("INSERT INTO t(y, x) VALUES (1, '[0.5]')")
    train(db, mechanism=mechanism, n=9, public_rows=3, radius=0.4, eta=1.0)
    assert one(db, "SELECT dp_verify()") == "ok"
    ledger = sqlite3.connect(f"{path}-ledger", isolation_level=None)
    (curve,) = ledger.execute("SELECT curve FROM dp_publication").fetchone()
    values = numpy.frombuffer(curve, dtype="<f8").copy()
    for factor, message in ((0.999, "a curve below what its public rows hide"), (1e9, "a curve that is not that of its noise")):
        changed = values.copy()
        changed[40] *= factor
        ledger.execute("UPDATE dp_publication SET curve = ?", (changed.tobytes(),))
        assert message in one(db, "SELECT dp_verify()")
    ledger.execute("UPDATE dp_publication SET curve = ?", (curve,))
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_random_stop_has_the_least_noise():
    """The delta of the first row is the mean of the recursion over its later steps, and equals the charged share. Theorem 5 alone
    would need more noise."""
    db = open_ledger(delta=1e-2, keys=5e-3, epsilon=30)
    train(db, n=60, radius=0.8, eta=1.0, stop="random")
    model = Model(db)
    entries = profile_of(db)
    with mp.workdps(30):
        deltas = model.deltas(1, entries[0]["epsilon"])
        for entry in entries:
            want = sum(deltas[:60 - entry["index"] + 1]) / 60
            assert entry["delta"] == pytest.approx(float(want), rel=1e-5)
    assert entries[0]["delta"] == pytest.approx(5e-4, rel=1e-6) and entries[0]["paper"] > 5.02e-4


# ---- Laplace noise ----------------------------------------------------------------------------------------------------

def test_the_law_of_laplace_noise():
    """A model of one row without a gradient is pure noise. A Kolmogorov-Smirnov test of 4000 numbers limits the distance to
    0.0518, which a correct distribution exceeds with probability 1e-9. Gaussian noise of the same variance has the distance 0.06,
    and a scale that is wrong by a quarter has 0.08."""
    db = open_ledger(rate=0.5)
    got = []
    for i in range(1000):
        got += train(db, mechanism="laplace", n=1, dim=4, radius=1e3, eta=1.0, name=f"m{i}")
    (text, granularity), = db.execute(
        "SELECT json_extract(options, '$.model'), granularity FROM dp_release WHERE name = 'm0'").fetchall()
    scale = math.sqrt(json.loads(text)["variance"] / 2) * 2.0**granularity
    z = numpy.sort(got) / scale
    want = numpy.where(z < 0, numpy.exp(-abs(z)) / 2, 1 - numpy.exp(-abs(z)) / 2)
    assert numpy.abs(numpy.arange(1, 4001) / 4000 - want).max() < 0.0518 + 1 / 4000


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_each_step_has_noise_of_its_own_size(mechanism):
    """Without gradients, the model is the sum of the noise of its steps. The learning rates are 1, 1/2 and 1/3, and noise is
    proportional to them, so the variance is 9 + 9/4 + 1 times that of the last step. 2400 squares have a standard error of at
    most 4.6%, and the test allows seven of these (1e-11). The noise of the last step in all steps would give 3 instead of 12.25."""
    db = open_ledger(rate=0.5)
    db.execute("UPDATE t SET x = NULL")  # rows without a gradient
    got = []
    for i in range(300):
        got += train(db, mechanism=mechanism, n=3, dim=8, radius=1e4, eta=1.0, schedule="inverse", decay=1, name=f"m{i}")
    (text, granularity), = db.execute(
        "SELECT json_extract(options, '$.model'), granularity FROM dp_release WHERE name = 'm0'").fetchall()
    last = json.loads(text)["variance"] * 4.0**granularity
    assert numpy.mean(numpy.square(got)) / last == pytest.approx(12.25, rel=7 * 0.046)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_laplace_charge(dim):
    """The pure epsilon is the sensitivity divided by the scale. The sensitivity is sqrt(dim) times the Euclidean sensitivity,
    plus rounding."""
    db = open_ledger(rate=0.3)
    db.execute("UPDATE t SET x = ?", (json.dumps([0.5] * dim),))
    train(db, mechanism="laplace", n=5, dim=dim, radius=1, eta=0.7)
    model = Model(db)
    scale = math.sqrt(model.variance / 2)
    assert model.sensitivity == pytest.approx(math.sqrt(dim) * 2 * 0.7 / model.unit, abs=2 * dim + 2)
    spent = dict(db.execute("SELECT alpha, spent FROM dp_rdp WHERE tier = 'inner'").fetchall())
    assert spent[INFINITY] == pytest.approx(model.sensitivity / scale, rel=1e-9)
    for alpha in (1.5, 3, 65):
        assert spent[alpha] == pytest.approx(one(db, "SELECT dp_rdp_laplace(?, ?, ?)", alpha, model.sensitivity, scale), rel=1e-5)
        assert spent[alpha] <= alpha * 0.3 * (1 + 1e-9)
    assert one(db, "SELECT dp_verify()") == "ok"


def discrete_laplace(scale, shift, reach):
    p = math.exp(-1 / scale)
    k = numpy.arange(-reach, reach + 1)
    return (1 - p) / (1 + p) * p**abs(k - shift)


@pytest.mark.parametrize("scale", [1, 2.5, 7])
def test_no_shift_of_several_coordinates_is_worse_than_one(scale):
    """For every integer shift of two and three coordinates with a given sum, no hockey-stick or Renyi divergence is above that of
    one coordinate, as models/models.h states. The test enumerates the distributions."""
    reach = int(40 * scale) + 10
    p = discrete_laplace(scale, 0, reach)

    def losses(shift):
        q = discrete_laplace(scale, shift, reach)
        return p, q

    def together(shifts):
        masses, ratios = numpy.ones(1), numpy.ones(1)
        for shift in shifts:
            a, b = losses(shift)
            ratio = numpy.round(numpy.log(b / a) * scale).astype(int)  # a multiple of 1/scale
            values = numpy.unique(ratio)
            mass = numpy.array([a[ratio == v].sum() for v in values])
            masses = (masses[:, None] * mass[None, :]).ravel()
            ratios = (ratios[:, None] * numpy.exp(values / scale)[None, :]).ravel()
        return masses, ratios

    def stick(law, epsilon):
        masses, ratios = law
        return numpy.maximum(masses * (1 - math.exp(epsilon) * ratios), 0).sum()

    def renyi(law, alpha):
        masses, ratios = law
        return math.log((masses * ratios**(1 - alpha)).sum()) / (alpha - 1)

    for total in (1, 2, 3, 6, 9):
        single = together([total])
        for epsilon in [total / scale * k / 7 for k in range(8)]:
            formula = max(0, 1 - math.exp((epsilon - total / scale) / 2) / math.cosh(1 / (2 * scale)))
            assert stick(single, epsilon) <= formula + 1e-12
            for a in range(total + 1):
                for b in range(total - a + 1):
                    assert stick(together([a, b, total - a - b]), epsilon) <= formula + 1e-12
        assert max(stick(single, total / scale * k / 7) / max(1e-300, 1 - math.exp((total / scale * k / 7 - total / scale) / 2)
                                                             / math.cosh(1 / (2 * scale))) for k in range(7)) > 0.97
        for alpha in (1.5, 4):
            for a in range(total + 1):
                assert renyi(together([a, total - a]), alpha) <= renyi(single, alpha) * (1 + 1e-12)


def test_pure_tiers():
    """At a pure tier, a model with Laplace noise costs sensitivity/scale, and less with public rows."""
    db = open_ledger(delta=0, accountant="pure", epsilon=3.0)
    train(db, mechanism="laplace", n=20, radius=0.3, eta=0.9)
    model = Model(db)
    pure = model.sensitivity / math.sqrt(model.variance / 2)
    assert one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'inner'") == pytest.approx(pure, rel=1e-9)
    entries = profile_of(db)
    assert entries[-1]["epsilon"] == entries[-1]["pure"] == pytest.approx(pure, rel=1e-9)
    assert entries[-2]["pure"] < pure / 2
    train(db, mechanism="laplace", n=18, public_rows=2, radius=0.3, eta=0.9, name="hidden")
    added = one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'inner'") - pure
    assert 0 < added == pytest.approx(json.loads(one(db, "SELECT dp_sgd_profile('hidden')"))[-1]["pure"], rel=1e-6)
    assert added < pure / 10
    assert "ask for \"mechanism\":\"laplace\"" in refused(
        db, SGD.format("inner"), json.dumps({"n": 2, "dim": 1, "clip": 1, "radius": 1}))
    assert one(db, "SELECT dp_verify()") == "ok"


def test_laplace_noise_on_top():
    """If each step brings points closer by more than its rounding, the widened noise of the last step hides every row
    at least as much as the last row. The outer tier pays exactly the sensitivity divided by its scale."""
    db = open_ledger(rate=0.5, outer=0.2, delta=1e-3)
    train(db, "huber", mechanism="laplace", n=4, radius=0.5, eta=0.8, l2=0.3, threshold=0.5)
    model = Model(db)
    outer = json.loads(one(db, "SELECT dp_diffuse('m', 'outer')"))
    assert abs(outer[0]) <= 0.5 * (1 + 1e-12)
    (clock,), = db.execute("SELECT clock FROM dp_publication WHERE tier = 'outer'").fetchall()
    wide = math.sqrt(clock / 2)
    spent = dict(db.execute("SELECT alpha, spent FROM dp_rdp WHERE tier = 'outer'").fetchall())
    assert spent[INFINITY] == pytest.approx(model.sensitivity / wide, rel=1e-9)
    laws, rng = Laws(model), random.Random(2)
    scale = model.deviation_of(4)
    # the last entry: the noise of the last step together with the noise that dp_diffuse() added
    deviations = [scale, scale, scale, wide * model.unit]
    model.deviation_of = lambda i: deviations[i - 1]
    for index in range(4):
        for a, b in neighbours(rng, model, index, 4, 9):
            p, q = laws.law("huber", a), laws.law("huber", b)
            assert numpy.maximum(p - math.exp(spent[INFINITY]) * q, 0).sum() <= 1e-9
            seen = (p > 1e-200) & (q > 1e-200)
            for alpha in (1.25, 5):
                logs = alpha * numpy.log(p[seen]) + (1 - alpha) * numpy.log(q[seen])
                assert math.log(max(numpy.exp(logs).sum(), 1)) / (alpha - 1) <= spent[alpha] * (1 + 1e-6)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("options", [{"n": 4}, {"n": 4, "l2": 0.3, "schedule": "sqrt"}, {"n": 4, "l2": 1e-7}])
def test_laplace_noise_on_top_is_refused(options):
    db = open_ledger()
    train(db, mechanism="laplace", radius=0.5, eta=0.8, **options)
    before = one(db, "SELECT count(*) FROM dp_charge")
    message = refused(db, "SELECT dp_diffuse('m', 'outer')")
    assert "has Laplace noise, and its steps do not bring points closer by more than they round" in message
    assert one(db, "SELECT count(*) FROM dp_charge") == before
    db = open_ledger()
    train(db, mechanism="laplace", radius=0.5, n=1)  # a single draw
    one(db, "SELECT dp_diffuse('m', 'outer')")
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- falling learning rates --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("schedule, decay", [("sqrt", None), ("inverse", 0.03), ("inverse", None)])
def test_the_descent_has_falling_learning_rates(schedule, decay):
    """At rate 1e6 the noise of a step is 1/707 of the step, so the exact descent is visible."""
    rng = random.Random(schedule)
    db = open_ledger(rate=1e6)
    rows = [(rng.choice([0, 1]), [rng.uniform(-0.7, 0.7), rng.uniform(-0.7, 0.7)]) for _ in range(40)]
    db.execute("DELETE FROM t")
    db.executemany("INSERT INTO t(y, x) VALUES (?, ?)", [(y, json.dumps(x)) for y, x in rows])
    options = {"n": 36, "public_rows": 4, "dim": 2, "radius": 0.7, "eta": 1.2, "l2": 0.2, "schedule": schedule}
    got = numpy.array(train(db, **options, **({"decay": decay} if decay else {})))
    w = numpy.zeros(2)
    for i, (y, x) in enumerate(rows):
        eta = 1.2 / (1 + (decay or 1) * i)**(0.5 if schedule == "sqrt" else 1)
        w = w - eta * (0.2 * w + slope("logistic", w @ numpy.array(x), y) * numpy.array(x))
        w *= min(1, 0.7 / numpy.linalg.norm(w))
    model = Model(db)
    sigma = math.sqrt(sum((model.eta_of(i) / model.eta_of(40))**2 for i in range(1, 41)) * model.variance) * model.unit
    assert sigma < 0.02
    assert numpy.abs(got - w).max() < 10 * sigma  # false alarm: 1e-21 per coordinate, even if the noise of all steps added up
    assert numpy.abs(got - w).max() > 0


@pytest.mark.parametrize("options", [
    {"n": 40, "schedule": "sqrt"}, {"n": 40, "schedule": "inverse", "decay": 0.1},
    {"n": 20, "public_rows": 30, "schedule": "inverse", "decay": 0.02, "l2": 0.1},
    {"n": 20, "public_rows": 30, "schedule": "inverse", "decay": 0.2, "l2": 0.02},
    {"n": 60, "public_rows": 5, "schedule": "sqrt", "decay": 2}])
def test_charge_of_falling_learning_rates(options):
    """The step of each row costs at most that of the last row. With public rows, the worst private row is charged, even if it is
    not the last row. The reference is computed in mpmath."""
    db = open_ledger(rate=0.4)
    train(db, radius=30, eta=1.0, **options)  # the radius is so large that contraction has no effect
    model, entries = Model(db), profile_of(db)
    with mp.workdps(40):
        rates, carried, rounding, clock = [], mp.mpf(1), mp.mpf(0), mp.mpf(0)
        for i in range(model.steps, 0, -1):
            s, variance = model.sensitivity_of(i), model.variance_of(i)
            clock += carried**2 * variance
            rates.append(min((carried * s + rounding)**2 / clock, s**2 / variance) / 2)
            rounding += mp.mpf(2.5) * carried
            carried *= model.contraction(i)
        rates = rates[::-1][:model.n]
        for entry, want in zip(entries, rates):
            assert entry["rate"] <= float(want) * (1 + 1e-6)
            assert entry["rate"] >= float(want) * (1 - 1e-3)  # a path that ends before the last step may be a little better
        charged = max(rates)
    spent = one(db, "SELECT spent FROM dp_rdp WHERE tier = 'inner' AND alpha = 2") / 2
    assert spent == pytest.approx(float(charged), rel=1e-5) and spent <= 0.4 * (1 + 1e-9)
    assert spent > 0.4 * (1 - 1e-4)
    if options.get("decay") == 0.2:  # the worst row is not the last row
        assert rates.index(charged) < model.n - 1
    assert {entry["paper"] for entry in entries} == {None}
    assert one(db, "SELECT dp_verify()") == "ok"


def test_falling_learning_rates_on_top():
    """Additional noise hides late rows well. It hides early rows less well, because they made larger steps. Publications agree
    with the exact distributions, and a tier that is too far is refused."""
    db = open_ledger(rate=0.5, outer=0.6, delta=1e-3)
    train(db, "huber", n=3, radius=0.6, eta=0.7, l2=0.9, threshold=0.5, schedule="sqrt", decay=0.05)
    one(db, "SELECT dp_diffuse('m', 'outer')")
    model = Model(db)
    (clock, rate), = db.execute("SELECT clock, rate FROM dp_publication WHERE tier = 'outer'").fetchall()
    laws, rng = Laws(model), random.Random(2)
    deviations = [model.deviation_of(1), model.deviation_of(2), math.sqrt(clock) * model.unit]
    model.deviation_of = lambda i: deviations[i - 1]
    for index in range(3):
        for a, b in neighbours(rng, model, index, 4, 9):
            p, q = laws.law("huber", a), laws.law("huber", b)
            seen = (p > 1e-200) & (q > 1e-200)
            for alpha in (1.25, 5):
                logs = alpha * numpy.log(p[seen]) + (1 - alpha) * numpy.log(q[seen])
                assert math.log(max(numpy.exp(logs).sum(), 1)) / (alpha - 1) <= alpha * rate * (1 + 1e-6)
    db = open_ledger(outer=0.01)
    train(db, n=30, radius=30, eta=1.0, schedule="sqrt")
    assert "is too far from that of release 'm' for its rows" in refused(db, "SELECT dp_diffuse('m', 'outer')")


GOOD = {"n": 3, "dim": 1, "clip": 1, "radius": 1}


@pytest.mark.parametrize("options, message", [
    ({"schedule": "cosine"}, "schedule must be 'constant', 'sqrt' or 'inverse'"),
    ({"schedule": 3}, "schedule must be a text, not a number"),
    ({"decay": 0.1}, "decay is for the schedules 'sqrt' and 'inverse'"),
    ({"schedule": "constant", "decay": 0.1}, "decay is for the schedules 'sqrt' and 'inverse'"),
    ({"schedule": "sqrt", "decay": 0}, "decay must be a number in (0, 1e+06]"),
    ({"schedule": "sqrt", "n": 1e8}, "a schedule is for at most 10000000 rows"),
    ({"schedule": "sqrt", "stop": "random"}, "a schedule and a random stop do not go together"),
    ({"mechanism": "laplace", "stop": "random"}, "a random stop has Gaussian noise"),
    ({"mechanism": "iteration"}, "mechanism must be 'gaussian' or 'laplace' for a model"),
    ({"mechanism": "ou"}, "unknown mechanism (this kind has: ")])
def test_bad_options(options, message):
    db = open_ledger(keys=1e-6)
    assert f"dp_release: {message}" in refused(db, SGD.format("inner"),
                                           json.dumps({**GOOD, **options}))
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


def test_a_replay_finds_its_schedule_and_mechanism():
    db = open_ledger()
    options = {"n": 9, "radius": 1, "schedule": "sqrt", "mechanism": "laplace"}
    first = train(db, **options)
    assert train(db, **options) == first
    for other in ({"schedule": "inverse"}, {"decay": 2}, {"mechanism": "gaussian"}, {"schedule": "constant"}):
        assert "exists with other parameters" in refused(
            db, SGD.format("inner"),
            json.dumps({"name": "m", "dim": 1, "clip": 1, **options, **other}))
    model = Model(db)
    assert (model.decay, model.power, model.laplace) == (1, 0.5, 1)
