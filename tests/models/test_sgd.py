"""Tests models: dp_sgd(), kind 'sgd', dp_predict() and dp_sgd_profile(). The tests compare the released point with a descent in
numpy, the distribution of the point with an exact recursion on a grid, and the charge with the formulas of models.h in mpmath.

Statistical tests state their own false-alarm rates; all of them together are below 1e-8."""

import json
import math
import random
import sqlite3
import struct

import mpmath
import numpy
import pytest

from conftest import connect, one, refused, when_looking
from model_helpers import SGD, make_tables, release

TERMS = '{"protects":"row","adjacency":"replace"}'
UNLIMITED = (1e15, 1e-6)


def open_model_ledger(rate=1.0, accountant="rdp", budget=UNLIMITED, outer=0.1):
    db = connect()
    one(db, "SELECT dp_init(?)", TERMS)
    one(db, "SELECT dp_tier('inner', ?, ?, ?, ?)", rate, *budget, accountant)
    one(db, "SELECT dp_tier('outer', ?, ?, ?, ?)", rate * outer, *budget, accountant)
    make_tables(db)
    return db


def fill(db, rows):
    db.executescript("DELETE FROM t; DELETE FROM p")
    db.executemany("INSERT INTO t(y, x) VALUES (?, ?)", rows)


def train(db, loss="logistic", tier="inner", **options):
    return release(db, tier, {"loss": loss, **options})


def model_of(db, release="(SELECT max(id) FROM dp_release)"):
    row = db.execute(f"SELECT json_extract(options, '$.model'), granularity, sensitivity FROM dp_release"
                     f" WHERE id = {release}").fetchone()
    return json.loads(row[0]), row[1], row[2]


# ---- the descent, without noise and with its law ------------------------------------------------------------------

def slope(loss, margin, y, bound=math.inf, threshold=math.inf):
    """Returns the derivative of the loss with respect to the margin w.x."""
    if loss == "logistic":
        return 1 / (1 + numpy.exp(-margin)) - (1 if y > 0.5 else 0)
    residual = margin - min(max(y, -bound), bound)
    return residual if loss == "squared" else numpy.clip(residual, -threshold, threshold)


def descend(rows, loss, n, dim, clip, radius, eta, l2=0.0, public_rows=0, **constants):
    """Runs Algorithm 1 without noise. A row is (y, features) or None."""
    w = numpy.zeros(dim)
    rows = (rows + [None] * (n + public_rows))[:n + public_rows]
    for row in rows:
        step = l2 * w
        if row is not None:
            x = numpy.array(row[1], dtype=float)
            x *= min(1, clip / max(numpy.linalg.norm(x), 1e-300))
            step = step + slope(loss, x @ w, row[0], **constants) * x
        w = w - eta * step
        w *= min(1, radius / max(numpy.linalg.norm(w), 1e-300))
    return w


LOSSES = {"logistic": {}, "squared": {"bound": 1.5}, "huber": {"threshold": 0.8}, "huber, bounded":
          {"threshold": 2.0, "bound": 0.3}}


def good_rows(rng, count, dim):
    return [(rng.choice([0, 1]) if rng.random() < 0.5 else rng.gauss(0, 1), [rng.gauss(0, 1) for _ in range(dim)])
            for _ in range(count)]


def stored(rng, features):
    """Returns the text or blob of a vector, and the features as this text or blob has them."""
    form = rng.choice(["json", "float64", "float32"])
    if form == "json":
        return json.dumps(features), features
    if form == "float64":
        return struct.pack(f"<{len(features)}d", *features), features
    blob = struct.pack(f"<{len(features)}f", *features)
    return blob, list(struct.unpack(f"<{len(features)}f", blob))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("count", [0, 7, 40, 55])
def test_the_descent_is_the_one_of_the_paper(loss, count):
    """At rate 1e6 the noise of a step is 1/707 of the step, so the exact step is visible. Missing, NULL or malformed rows make a
    step without gradient, and rows beyond n + public_rows are ignored."""
    rng = random.Random(f"{loss}{count}")
    db = open_model_ledger(rate=1e6)
    constants, name = LOSSES[loss], loss.split(",")[0]
    options = {"n": 36, "public_rows": 4, "dim": 3, "clip": 1.5, "radius": 0.7, "eta": 0.2, "l2": 0.3, **constants}
    rows, truth = [], []
    for y, features in good_rows(rng, count, 3):
        x, features = stored(rng, features)
        kind = rng.randrange(8)
        truth.append(None if kind < 5 and kind != 4 and rng.random() < 0.5 else (y, features))
        if truth[-1] is None:
            x, y = [(None, y), (x, None), ("[1,2]", y), (b"123", y)][kind % 4]
        rows.append((y, x))
    fill(db, rows)
    got = numpy.array(release(db, "inner", {"loss": name, **options}))
    model, granularity, _ = model_of(db)
    want = descend(truth, name, **options)
    sigma = math.sqrt(model["variance"]) * 2.0**granularity
    assert sigma < 0.2 * 1.5 * 2 * 1.5 / 1000
    # Each step contracts, so the error of a coordinate is at most the sum of the noise of 40 steps. (10 standard deviations:
    # 1e-21.)
    assert numpy.abs(got - want).max() < 10 * sigma * math.sqrt(40) + 1e-9


def step_points(loss, row, w, eta, l2, clip, **constants):
    x = max(-clip, min(clip, row[1]))
    return w * (1 - eta * l2) - eta * slope(loss, w * x, row[0], **constants) * x


def law(rows, loss, grid, sigma, radius, eta, l2, clip, **constants):
    """Returns the density of the last point before its projection, in one dimension and on a grid. The function computes it step
    by step."""
    width = grid[1] - grid[0]
    density = numpy.exp(-0.5 * ((grid - step_points(loss, rows[0], 0.0, eta, l2, clip, **constants)) / sigma)**2)
    density /= sigma * math.sqrt(2 * math.pi)
    inside, cells = numpy.unique(numpy.clip(grid, -radius, radius), return_inverse=True)  # most of the grid is beyond the ball
    for row in rows[1:]:
        points = step_points(loss, row, inside, eta, l2, clip, **constants)
        kernel = numpy.exp(-0.5 * ((grid[None, :] - points[:, None]) / sigma)**2) / (sigma * math.sqrt(2 * math.pi))
        density = numpy.bincount(cells, density * width) @ kernel
    return density


@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.sample(1)
def test_law_of_a_model(loss):
    """A Kolmogorov-Smirnov test with 2000 models of three rows. The limit for the distance is 0.0733, which a correct
    distribution exceeds with probability 1e-9. If eta, the radius or the noise is wrong by a fifth, the distance is twice as
    large."""
    db = open_model_ledger(rate=2.0)
    constants = LOSSES[loss]
    rows = [(1.0, 0.9), (0.0, 0.5), (1.0, -1.0)]
    fill(db, [(y, json.dumps([x])) for y, x in rows])
    options = {"n": 3, "dim": 1, "clip": 1, "radius": 0.6, "eta": 0.9, "l2": 0.2, **constants}
    got = numpy.sort([train(db, loss, **options)[0] for _ in range(2000)])
    model, granularity, _ = model_of(db)
    sigma = math.sqrt(model["variance"]) * 2.0**granularity
    grid = numpy.linspace(-8, 8, 2001)
    density = law(rows, loss, grid, sigma, 0.6, 0.9, 0.2, 1, **constants)
    cumulative = numpy.cumsum(density) * (grid[1] - grid[0])
    inside = (grid > -0.6) & (grid < 0.6)
    empirical = numpy.searchsorted(got, grid[inside], side="right") / len(got)
    assert abs(cumulative[-1] - 1) < 1e-6
    assert numpy.abs(empirical - cumulative[inside]).max() < 0.0733
    assert got.min() >= -0.6 * (1 + 1e-15) and got.max() <= 0.6 * (1 + 1e-15)


# ---- what is charged --------------------------------------------------------------------------------------------------

def rate_of_index(model, granularity, index):
    """Returns the bound of models.h on the rate of a row, with 50 digits. It is the minimum over the number of later steps that the
    bound uses."""
    with mpmath.workdps(50):
        steps = 2 * mpmath.mpf(model["eta"]) * mpmath.mpf(model["lipschitz"]) / mpmath.mpf(2)**granularity
        sensitivity = mpmath.floor(steps) + 1 + mpmath.ceil(mpmath.sqrt(model["dim"]))
        if model["dim"] == 1:
            sensitivity = mpmath.floor(steps) + 1
        contraction = max(abs(1 - mpmath.mpf(model["eta"]) * model["l2"]), abs(1 - mpmath.mpf(model["eta"]) * model["beta"]))
        error, best = mpmath.mpf("2.5") * mpmath.sqrt(model["dim"]), mpmath.inf
        distance, total, power = sensitivity, mpmath.mpf(1), mpmath.mpf(1)
        for _ in range(model["n"] - index + model["public_rows"] + 1):
            best = min(best, mpmath.ceil(distance)**2 / (2 * model["variance"] * total))
            distance = contraction * distance + error
            power *= contraction**2
            total += power
        return best


@pytest.mark.parametrize("options", [
    {"n": 30}, {"n": 30, "l2": 0.4}, {"n": 30, "public_rows": 25}, {"n": 12, "public_rows": 200, "l2": 0.1, "eta": 1.5},
    {"n": 5, "public_rows": 3, "l2": 0.9, "eta": 0.9}, {"n": 1}, {"n": 1, "public_rows": 1, "dim": 1}, {"n": 20, "dim": 1}])
def test_what_is_charged(options):
    """The charge is the bound at the last private row, and is within the tier's rate. The profile has the correct bound for every
    row."""
    db = open_model_ledger(rate=0.37, budget=(40.0, 1e-6))
    fill(db, [(1, "[0.5,0.5]")])
    options = {"dim": 2, "clip": 1, "radius": 3, "name": "m", **options}
    train(db, **options)
    model, granularity, _ = model_of(db)
    profile = json.loads(one(db, "SELECT dp_sgd_profile('m')"))
    assert [entry["index"] for entry in profile] == list(range(1, options["n"] + 1))
    for entry in profile:
        want = rate_of_index(model, granularity, entry["index"])
        # The code rounds the clock down and subtracts 1/12 of a step squared.
        assert want * (1 - 1e-9) <= entry["rate"] <= want * (1 + 1e-5)
    assert all(a["rate"] <= b["rate"] for a, b in zip(profile, profile[1:]))
    if options.get("public_rows"):
        assert one(db, "SELECT max(rate) FROM dp_charge") == 0
        (spent,) = db.execute("SELECT spent / alpha FROM dp_rdp WHERE tier = 'inner' AND alpha BETWEEN 4 AND 5").fetchone()
    else:
        spent = one(db, "SELECT sum(rate) FROM dp_charge")
    if model["variance"] > 2**20:  # 2^20 is the least variance
        assert spent >= 0.37 * (1 - 1e-5)
    assert spent <= 0.37 and profile[-1]["rate"] <= spent * (1 + 1e-12)
    last = profile[-1]
    exact = one(db, "SELECT dp_epsilon(?, 1e-6)", last["rate"])
    assert last["epsilon"] <= exact * (1 + 1e-6)
    if not options.get("public_rows"):  # with public rows, epsilon follows from a stored curve and may be smaller
        assert last["epsilon"] == pytest.approx(exact, rel=1e-6)
        assert one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'inner'") == pytest.approx(
            one(db, "SELECT dp_zcdp_epsilon(?, 1e-6)", last["rate"]), rel=1e-3)


def test_profile_beside_theorem_5():
    """The member "paper" of the profile is the printed bound, as in dp_sgd_rate(). The member "rate" is never above the
    printed bound."""
    db = open_model_ledger(rate=0.5)
    fill(db, [(1, "[0.5,0.5]")])
    train(db, n=40, dim=2, clip=1, radius=3, l2=0.2, eta=1.0, name="m")
    model, granularity, _ = model_of(db)
    sigma = math.sqrt(model["variance"]) * 2.0**granularity / model["eta"]
    for entry in json.loads(one(db, "SELECT dp_sgd_profile('m')")):
        printed = one(db, "SELECT dp_sgd_rate(?, 40, ?, ?, ?, ?, ?, 'paper')", entry["index"], model["lipschitz"], sigma,
                      model["eta"], model["beta"], model["l2"])
        assert entry["paper"] == pytest.approx(printed, rel=1e-12)
        assert entry["rate"] <= printed * (1 + 1e-5)


@pytest.mark.parametrize("public_rows", [0, 2])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_exact_laws_are_within_the_profile(public_rows, l2):
    """The Renyi divergences of the exact output distributions of neighbours, in one dimension and at every index, are never above
    the profile. At the last index, the divergences are close to the profile."""
    db = open_model_ledger(rate=0.7)
    fill(db, [(1, "[0.5]")])
    constants = {"threshold": 0.5}
    train(db, "huber", n=4, public_rows=public_rows, dim=1, clip=1, radius=0.8, eta=0.9, l2=l2, name="m", **constants)
    model, granularity, _ = model_of(db)
    sigma = math.sqrt(model["variance"]) * 2.0**granularity
    profile = json.loads(one(db, "SELECT dp_sgd_profile('m')"))
    grid = numpy.linspace(-9, 9, 1601)
    rng, closest = random.Random(3), 0.0
    for index in range(4):
        for trial in range(3):
            rows = [(rng.choice([-9, 9, 0]), rng.uniform(-1, 1)) for _ in range(4 + public_rows)]
            a, b = list(rows), list(rows)
            a[index], b[index] = (9, 1.0), (-9, 1.0)
            p, q = (law(side, "huber", grid, sigma, 0.8, 0.9, l2, 1, **constants) for side in (a, b))
            for alpha in (1.5, 3, 8):
                with numpy.errstate(over="ignore", divide="ignore", invalid="ignore"):
                    terms = numpy.where(p > 1e-280, numpy.exp(alpha * numpy.log(p) + (1 - alpha) * numpy.log(q)), 0)
                divergence = math.log(terms.sum() * (grid[1] - grid[0])) / (alpha - 1)
                assert divergence <= alpha * profile[index]["rate"] * (1 + 1e-6)
                if index == 3:
                    closest = max(closest, divergence / (alpha * profile[3]["rate"]))
    assert closest > (0.95 if not public_rows else 0.2)


# ---- random stop -------------------------------------------------------------------------------------------------------

def open_stop_ledger(rate=0.5, accountant="rdp"):
    db = connect()
    one(db, "SELECT dp_init(?)", TERMS)
    one(db, "SELECT dp_tier('inner', ?, 30, 1e-2, ?, 5e-3)", rate, accountant)
    one(db, "SELECT dp_tier('outer', ?, 30, 1e-2, ?, 5e-3)", rate / 9, accountant)
    make_tables(db)
    fill(db, [(1, "[0.5]")])
    return db


def hockey_stick(epsilon, distance):
    return mpmath.ncdf(-epsilon / distance + distance / 2) - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / distance - distance / 2)


def test_charge_of_a_random_stop():
    """A model with a random stop is charged a curve of pure DP whose zCDP rate is the rate of the tier. The model is also charged
    a delta, the given share of delta_keys. This is the delta of Theorem 5 of Asoodeh et al. for the first row."""
    db = open_stop_ledger()
    train(db, n=50, dim=1, clip=1, radius=0.4, eta=1.0, stop="random", key_share=0.2, name="m")
    model, granularity, _ = model_of(db)
    (epsilon,) = {entry["epsilon"] for entry in json.loads(one(db, "SELECT dp_sgd_profile('m')"))}
    assert epsilon * math.tanh(epsilon / 2) == pytest.approx(0.5, rel=1e-9)
    assert one(db, "SELECT spent_delta FROM dp_budget WHERE tier = 'inner'") == pytest.approx(1e-3, rel=1e-9)
    for alpha in (1.5, 5, 65):
        curve = one(db, "SELECT spent FROM dp_rdp WHERE tier = 'inner' AND alpha = ?", alpha)
        assert curve == pytest.approx(one(db, "SELECT dp_rdp_response(?, ?)", alpha, epsilon), rel=1e-9)
    sigma = math.sqrt(model["variance"]) * 2.0**granularity
    first, later = (hockey_stick(mpmath.mpf(epsilon), d / sigma) for d in (2 * 1.0, 0.8 * max(abs(1 - 0.25), 1)))
    for entry in json.loads(one(db, "SELECT dp_sgd_profile('m')")):
        theorem = first / 50 * sum(later**k for k in range(50 - entry["index"] + 1))
        assert entry["delta"] <= float(theorem) * (1 + 1e-5)  # test_sgd_hiding.py tests the exact value
        printed = one(db, "SELECT dp_sgd_delta_random_stop(?, 50, 1, ?, 1, 0.25, 0, 0.8, ?)", epsilon, sigma, entry["index"])
        assert entry["paper"] == pytest.approx(printed, rel=1e-9)
        assert entry["delta"] <= 1e-3
    assert json.loads(one(db, "SELECT dp_sgd_profile('m')"))[0]["delta"] == pytest.approx(1e-3, rel=1e-6)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_exact_laws_of_a_random_stop():
    """The hockey-stick divergence of the exact output distributions is within the charge for every row, even if the stop is
    revealed."""
    db = open_stop_ledger()
    constants = {"threshold": 0.5}
    train(db, "huber", n=5, dim=1, clip=1, radius=0.8, eta=0.9, l2=0.2, stop="random", name="m", **constants)
    model, granularity, _ = model_of(db)
    sigma = math.sqrt(model["variance"]) * 2.0**granularity
    profile = json.loads(one(db, "SELECT dp_sgd_profile('m')"))
    reach = 12 * sigma
    grid, rng = numpy.linspace(-reach, reach, 1601), random.Random(4)
    for index in range(5):
        for trial in range(2):
            rows = [(rng.choice([-9, 9, 0]), rng.uniform(-1, 1)) for _ in range(5)]
            a, b = list(rows), list(rows)
            a[index], b[index] = (9, 1.0), (-9, 1.0)
            delta = 0
            for stop in range(index + 1, 6):
                p, q = (law(side[:stop], "huber", grid, sigma, 0.8, 0.9, 0.2, 1, **constants) for side in (a, b))
                excess = p - math.exp(profile[0]["epsilon"]) * q
                delta += excess[excess > 0].sum() * (grid[1] - grid[0]) / 5
            assert delta <= profile[index]["delta"] * (1 + 1e-6)
            if index == 4:
                assert delta > profile[index]["delta"] * 0.2


def test_random_stop_stays_at_its_tier():
    db = open_stop_ledger()
    options = {"n": 50, "dim": 1, "clip": 1, "radius": 0.4, "stop": "random", "name": "m"}
    w = train(db, **options)
    assert train(db, **options) == w
    assert "stopped at random" in refused(db, "SELECT dp_diffuse('m', 'outer')")
    assert "stopped at random" in refused(db, SGD.format("outer"), json.dumps(options))
    assert one(db, "SELECT dp_verify()") == "ok"
    db = open_stop_ledger(accountant="gdp")
    assert "is not Gaussian" in refused(db, SGD.format("inner"), json.dumps(options))


# ---- a model in the ledger ----------------------------------------------------------------------------------------------

def separable(db, n=400):
    rng = random.Random(5)
    rows = []
    for _ in range(n):
        angle = rng.uniform(0, 2 * math.pi)
        x = [math.cos(angle), math.sin(angle)]
        rows.append((int(x[0] > 0), json.dumps(x)))
    fill(db, rows)
    return n


def test_story():
    """A model is charged once, replayed without cost, diffused outward, refused for refinement, and discarded. dp_verify()
    returns 'ok'."""
    db = open_model_ledger(rate=2.0, budget=(30.0, 1e-6))
    options = {"n": separable(db), "dim": 2, "clip": 1, "radius": 5, "name": "m"}
    w = train(db, **options)
    assert train(db, **options) == w and one(db, "SELECT count(*) FROM dp_charge") == 1
    outer = train(db, tier="outer", **options)
    assert outer != w and json.loads(one(db, "SELECT dp_diffuse('m', 'outer')")) == outer
    assert numpy.linalg.norm(w) <= 5 * (1 + 1e-12) and numpy.linalg.norm(outer) <= 5 * (1 + 1e-12)
    values = db.execute("SELECT tier, component, value FROM dp_value ORDER BY tier, component").fetchall()
    assert values == [(tier, i, v) for tier, u in (("inner", w), ("outer", outer)) for i, v in enumerate(u)]
    assert one(db, "SELECT dp_verify()") == "ok"
    certificate = json.loads(one(db, "SELECT dp_certificate()"))
    assert certificate["releases"][0]["options"]["model"]["loss"] == "logistic"
    for other in ({"eta": 0.25}, {"l2": 0.1}, {"radius": 4}, {"n": 399}, {"clip": 2}, {"public_rows": 1}):
        assert "exists with other parameters" in refused(
            db, SGD.format("inner"), json.dumps({**options, **other}))
    assert one(db, "SELECT dp_discard('m')") == "m"
    assert train(db, **options) != w


@pytest.mark.plain
@pytest.mark.parametrize("means", ["interrupt", "progress handler"])
def test_an_interrupt_ends_the_steps_without_rows(means):
    """A model takes n steps even if there are fewer rows. An interrupt ends these steps at once: without it, the extension would
    look for one some hundred times. The charge stays, the release has failed, and the same connection can train the next model."""
    db = open_model_ledger()
    fill(db, [(1, "[0.5,0.5]")])
    options = {"dim": 2, "clip": 1, "radius": 3}
    one(db, SGD.format("inner"), json.dumps({**options, "n": 1000}))
    reads, looks = [], []

    def look():
        if reads:
            looks.append(1)
        if len(looks) == 5 and means == "interrupt":
            db.interrupt()

    when_looking(db, look, lambda: reads.append(1))
    if means == "progress handler":
        db.set_progress_handler(lambda: len(looks) == 5, 100)
    message = refused(db, SGD.format("inner"), json.dumps({**options, "n": 10**8}))
    db.set_progress_handler(None, 0)
    db.set_trace_callback(None)
    assert "interrupted" in message and len(looks) == 5, (message, looks)
    assert db.execute("SELECT state FROM dp_release ORDER BY id").fetchall() == [("released",), ("failed",)]
    assert one(db, "SELECT count(*) FROM dp_charge") == 2 and one(db, "SELECT count(DISTINCT release_id) FROM dp_value") == 1
    assert one(db, "SELECT dp_verify()") == "ok"
    assert len(json.loads(one(db, SGD.format("inner"), json.dumps({**options, "n": 100})))) == 2


def test_no_refinement():
    db = open_model_ledger()
    options = {"n": separable(db), "dim": 2, "clip": 1, "radius": 5, "name": "m"}
    train(db, tier="outer", **options)
    call = SGD.format("inner")
    assert "is a model and cannot be refined" in refused(db, call, json.dumps(options))
    assert "a model cannot be refined" in refused(db, call, json.dumps({**options, "refine": True}))
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("terms", ["{}", '{"protects":"row"}', '{"protects":"unit","adjacency":"replace"}'])
def test_other_ledgers_are_refused(terms):
    db = connect()
    one(db, "SELECT dp_init(?)", terms)
    one(db, "SELECT dp_tier('inner', 1, 9, 1e-6)")
    db.execute("CREATE TABLE t(y, x, unit)")
    one(db, "SELECT dp_protect('t')" if '"row"' in terms else "SELECT dp_protect('t', 'unit')")
    message = refused(db, SGD.format("inner"), '{"n":1,"dim":1,"clip":1,"radius":1}')
    assert "protects rows, with replaced rows as neighbours" in message and "dp_init(" not in message
    assert one(db, "SELECT count(*) FROM dp_release") == 0


def test_gaussian_accounting():
    """A gdp tier accepts a model without public rows, which is one Gaussian draw. It refuses public rows, because their effect is
    proved for RDP alone."""
    db = open_model_ledger(rate=0.3, accountant="gdp", budget=(20.0, 1e-6))
    options = {"n": separable(db), "dim": 2, "clip": 1, "radius": 5}
    train(db, **options)
    assert one(db, "SELECT spent_epsilon FROM dp_budget WHERE tier = 'inner'") == pytest.approx(
        one(db, "SELECT dp_epsilon(0.3, 1e-6)"), rel=1e-4)
    assert "is not Gaussian" in refused(db, SGD.format("inner"),
                                        json.dumps({**options, "public_rows": 5}))


def test_gaussian_accounting_of_outer_tiers():
    """With additional noise, a model is not a Gaussian draw for its earlier rows. dp_diffuse() therefore refuses such a
    publication at a gdp tier, and dp_tier() refuses a new gdp tier that would see such a publication."""
    db = open_model_ledger(rate=0.3, budget=(20.0, 1e-6))
    options = {"n": separable(db), "dim": 2, "clip": 1, "radius": 5, "name": "m"}
    train(db, **options)
    one(db, "SELECT dp_tier('exact', 0.02, 20, 1e-6, 'gdp')")
    message = refused(db, "SELECT dp_diffuse('m', 'exact')")
    assert "tier 'exact' has exact Gaussian accounting" in message
    assert one(db, "SELECT spent_rate FROM dp_budget WHERE tier = 'exact'") == 0
    one(db, "SELECT dp_diffuse('m', 'outer')")
    message = refused(db, "SELECT dp_tier('between', 0.1, 20, 1e-6, 'gdp')")
    assert "tier 'between' would see model 'm' with noise on top" in message
    one(db, "SELECT dp_tier('between', 0.1, 20, 1e-6)")
    one(db, "SELECT dp_tier('inside', 0.9, 20, 1e-6)")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_exact_laws_of_a_diffused_model():
    """The Renyi divergences of the exact output distributions with additional noise are within the rate of the outer tier, for
    every row."""
    db = open_model_ledger(rate=0.7, outer=0.3)
    fill(db, [(1, "[0.5]")])
    constants = {"threshold": 0.5}
    train(db, "huber", n=4, dim=1, clip=1, radius=0.8, eta=0.9, name="m", **constants)
    one(db, "SELECT dp_diffuse('m', 'outer')")
    model, granularity, _ = model_of(db)
    sigma = math.sqrt(model["variance"]) * 2.0**granularity
    (clock, rate), = db.execute("SELECT clock, rate FROM dp_publication WHERE tier = 'outer'").fetchall()
    top = math.sqrt(clock - model["variance"]) * 2.0**granularity
    assert rate <= 0.21
    grid, rng = numpy.linspace(-14, 14, 1601), random.Random(7)
    kernel = numpy.exp(-0.5 * ((grid[None, :] - grid[:, None]) / top)**2) / (top * math.sqrt(2 * math.pi)) * (grid[1] - grid[0])
    for index in range(4):
        for trial in range(4):
            rows = [(rng.choice([-9, 9, 0]), rng.uniform(-1, 1)) for _ in range(4)]
            a, b = list(rows), list(rows)
            a[index], b[index] = (9, 1.0), (-9, 1.0)
            p, q = (law(side, "huber", grid, sigma, 0.8, 0.9, 0, 1, **constants) @ kernel for side in (a, b))
            inside = p > 1e-250
            for alpha in (1.5, 3, 8):
                logs = alpha * numpy.log(p[inside]) + (1 - alpha) * numpy.log(q[inside])
                divergence = math.log(numpy.exp(logs).sum() * (grid[1] - grid[0])) / (alpha - 1)
                assert divergence <= alpha * rate * (1 + 1e-6)


def test_public_rows_are_worth_their_noise():
    db = open_model_ledger(rate=0.3)
    n = separable(db)
    noise = []
    for public_rows in (0, 3, 99):
        train(db, n=n - public_rows, public_rows=public_rows, dim=2, clip=1, radius=5, eta=0.5)
        model, granularity, _ = model_of(db)
        noise.append(model["variance"] * 4.0**granularity)
    assert noise[0] / noise[1] == pytest.approx(4, rel=1e-3) and noise[0] / noise[2] == pytest.approx(100, rel=1e-2)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_rounding_of_many_public_rows():
    """At a very small rate, the noise cannot hide a million roundings in 4096 dimensions. The model is refused, and nothing is
    charged."""
    db = open_model_ledger(rate=1e-9)
    fill(db, [(1, "[1]")])
    options = {"n": 3, "public_rows": 1000000, "dim": 4096, "clip": 1, "radius": 1e-3}
    message = refused(db, "SELECT dp_plan('inner', 'sgd', 1, ?)", json.dumps({"loss": "logistic", **options}))
    assert "no noise on the lattice with which the last private row has the rate of its tier" in message
    assert message[8:] in refused(db, SGD.format("inner"), json.dumps(options))
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


GOOD = {"n": 3, "dim": 2, "clip": 1, "radius": 1}
ASKED = SGD.format("inner").replace("""json_patch('{"loss":"logistic"}', ?1)""", "?1")


@pytest.mark.parametrize("loss, options, message", [
    ("hinge", GOOD, "unknown loss (known losses: 'logistic', 'squared', 'huber')"),
    (7, GOOD, "loss must be a text, not a number"), (None, GOOD, "loss must be a text, not NULL"),
    ("logistic", {**GOOD, "eta": 9}, "eta must be at most 2/(beta + l2), where"),
    ("logistic", {**GOOD, "eta": 8, "l2": 1}, "eta must be at most 2/(beta + l2), where"),
    ("logistic", {**GOOD, "eta": 0}, "eta must be a finite number above 0"),
    ("logistic", {**GOOD, "eta": "fast"}, "eta must be a finite number above 0, not a text"),
    ("logistic", {**GOOD, "n": 2.5}, "n must be a whole number"),
    ("logistic", {**GOOD, "n": 0}, "n must be a number in [1, 1e+09]"),
    ("logistic", {**GOOD, "dim": 5000}, "dim must be a number in [1, 4096]"),
    ("logistic", {**GOOD, "bound": 1}, "the loss 'logistic' has no bound"),
    ("squared", GOOD, "bound is missing"), ("huber", GOOD, "threshold is missing"),
    ("squared", {**GOOD, "bound": 1, "threshold": 1}, "the loss 'squared' has no threshold"),
    ("logistic", {**GOOD, "radius": 1e9, "eta": 1e-3}, "eta is too small for the lattice"),
    ("logistic", {**GOOD, "stop": "sometimes"}, "stop must be 'last' or 'random'"),
    ("logistic", {**GOOD, "stop": 3}, "stop must be a text, not a number"),
    ("logistic", {**GOOD, "stop": "random", "public_rows": 1}, "public_rows and a random stop do not go together"),
    ("logistic", {**GOOD, "weight": 1e-13}, "weight makes a rate outside the [1e-12, 1e+06] of a model"),
    ("logistic", {**GOOD, "key_share": 0.5}, "key_share is for a random stop"),
    ("logistic", {**GOOD, "stop": "random"}, "tier 'inner' has no delta_keys"),
    ("squared", {**GOOD, "radius": 1e140, "clip": 1e140, "bound": 1}, "clip, radius, bound and eta are too large"),
    *[("logistic", {k: v for k, v in GOOD.items() if k != gone}, f"{gone} is missing") for gone in GOOD]])
def test_bad_input(loss, options, message):
    """Bad input gives an error of one sentence before any row is read, and nothing is charged."""
    db = open_model_ledger()
    fill(db, [(1, "[1,1]")])
    assert f"dp_release: {message}" in refused(db, ASKED, json.dumps({"loss": loss, **options}))
    assert one(db, "SELECT count(*) FROM dp_release") == 0 and one(db, "SELECT count(*) FROM dp_charge") == 0


def test_bad_calls():
    db = open_model_ledger()
    fill(db, [(1, "[1,1]")])
    assert "not a finite number" in refused(db, "SELECT dp_release('inner', 'sgd', 'SELECT y, x FROM t', '{\"eta\":1e999}')")
    query = json.dumps({"loss": "logistic", **GOOD})
    assert "2 columns (y, features" in refused(db, "SELECT dp_release('inner', 'sgd', 'SELECT y FROM t', ?)", query)
    assert "no such function" in refused(db, "SELECT dp_sgd('inner', y, x, 'logistic', ?) FROM t", query)


PUBLIC = "SELECT dp_release('inner', 'sgd', ?, '{\"loss\":\"logistic\",\"n\":2,\"public_rows\":1,\"dim\":1,\"clip\":1,\"radius\":1,\"name\":\"m\"}')"


@pytest.mark.parametrize("sql, message", [
    ("SELECT y, x FROM t", "with public_rows, sql has a second SELECT, which gives the public rows ('SELECT ...; SELECT ...')"),
    ("SELECT y, x FROM t; -- none", "sql must be one SELECT that only reads"),
    ("SELECT y, x FROM t; SELECT y, x FROM t", "table 't' is protected, so it has no public rows (the second SELECT names tables that dp_public() declares)"),
    ("SELECT y, x FROM t; SELECT y, p.x FROM p, secret", "table 'secret' is neither protected nor public"),
    ("SELECT y, x FROM t; SELECT y FROM p", "sql must give 2 columns (y, features), not 1"),
    ("SELECT y, x FROM t; SELECT y, x FROM p; SELECT 1, 2", "sql must be one statement, but more follows"),
])
def test_bad_public_rows(sql, message):
    db = open_model_ledger()
    fill(db, [(1, "[1,1]")])
    db.execute("CREATE TABLE secret(z)")
    assert message in refused(db, PUBLIC, sql)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    assert "more follows" in refused(db, PUBLIC.replace('"public_rows":1,', ''), "SELECT y, x FROM t; SELECT y, x FROM p")


def test_public_rows_that_cannot_be_read():
    db = open_model_ledger()
    fill(db, [(1, "[1,1]")])
    db.execute("INSERT INTO p VALUES (1, -9223372036854775807 - 1, '[1]')")
    message = refused(db, PUBLIC, "SELECT y, x FROM t; SELECT abs(y), x FROM p")
    assert message == "dp_release: the query of the public rows failed: integer overflow (the charge stays)"
    assert one(db, "SELECT state FROM dp_release") == "failed"


@pytest.mark.parametrize("computed", ["zeroblob(24)", "CAST(x'fffe31' AS TEXT)", "x''", "''"])
def test_a_label_that_the_query_computes_is_a_number(computed):
    """Texts and blobs that are no numbers are 0, for private and for public rows. On SQLite 3.54, a zeroblob ended the process."""
    db = open_model_ledger()
    fill(db, [(1, "[1,1]")])
    db.execute("INSERT INTO p VALUES (1, 1, '[1]')")
    assert one(db, PUBLIC, f"SELECT iif(y = 1, {computed}, y), x FROM t; SELECT {computed}, x FROM p")
    assert one(db, "SELECT state FROM dp_release") == "released"


def test_tables_of_public_rows_are_listed():
    db = open_model_ledger()
    fill(db, [(1, "[1,1]")])
    one(db, PUBLIC, "SELECT y, x FROM t; SELECT y, x FROM p")
    (release,) = json.loads(one(db, "SELECT dp_certificate()"))["releases"]
    assert release["tables"] == {"t": "protected", "p": "public"}


def test_default_eta_is_public():
    """The default learning rate follows from the tier's rate and the parameters, never from the rows. A replay keeps it."""
    chosen = set()
    for rows in ([(1, "[1,0]")], [(0, "[0,9]")] * 50):
        db = open_model_ledger(rate=0.5)
        fill(db, rows)
        train(db, name="m", n=1000, dim=2, clip=1, radius=2)
        chosen.add(model_of(db)[0]["eta"])
        train(db, tier="outer", name="m", n=1000, dim=2, clip=1, radius=2)
        assert one(db, "SELECT count(*) FROM dp_release") == 1
    (eta,) = chosen
    noise = 2 / math.sqrt(2 * 0.5)
    assert eta == pytest.approx(1 / math.hypot(1, noise * math.sqrt(2)) / math.sqrt(math.e * 1000), rel=0.01)


def test_default_eta_is_found_again():
    """A replay finds the default learning rate in the text of the model for any digits, although the parser is wrong in the last
    place for one small number in five."""
    db = open_model_ledger(rate=0.5)
    fill(db, [(1, "[1]")])
    rng = random.Random(8)
    for i in range(300):
        options = {"n": 1, "dim": 1, "clip": 10**rng.uniform(2, 4), "radius": 1e-3, "name": f"m{i}"}
        assert train(db, **options) == train(db, **options)


def test_plan():
    db = open_model_ledger(rate=0.5)
    plan = json.loads(one(db, "SELECT dp_plan('inner', 'sgd', 1, ?)", json.dumps({"loss": "logistic", "n": 50, "dim": 2,
                                                                              "radius": 2})))
    assert plan["rate"] == pytest.approx(0.5, rel=1e-5) and plan["tiers"][0]["pays"] == plan["rate"]
    assert one(db, "SELECT count(*) FROM dp_release") == 0
    assert "half_width is for numbers without shrink, not 'sgd'" in refused(
        db, "SELECT dp_plan('inner', 'sgd', 1, ?)",
        json.dumps({"loss": "logistic", "n": 50, "dim": 2, "radius": 2, "half_width": 1}))


def test_intervals_lie_in_the_ball():
    """Ten rows have much noise, and all coefficients that a descent can have lie in the ball."""
    db = open_model_ledger(rate=0.01)
    rows = {"n": separable(db, 10), "dim": 2, "clip": 1}
    for radius in (0.5, 30):
        train(db, **rows, radius=radius, eta=0.1, name=f"r{radius}")
    spans = db.execute("SELECT high - low, low, high, stddev, figure FROM dp_value WHERE tier = 'inner'").fetchall()
    assert [span[:3] for span in spans[:2]] == [(1, -0.5, 0.5)] * 2
    assert all(span[0] == pytest.approx(2 * 1.959964 * span[3], rel=1e-6) and span[0] < 60 for span in spans[2:])
    assert {span[4] for span in spans} == {"coefficients of a model, as at most one pass over the rows leaves them"}


# ---- predictions ----------------------------------------------------------------------------------------------------------

def test_predictions():
    db = open_model_ledger()
    n = separable(db)
    w = train(db, name="m", n=n, dim=2, clip=1, radius=5)
    v = train(db, "squared", name="r", n=n, dim=2, clip=1, radius=5, bound=1)
    for features in ([0.6, 0.8], [0, 0], [-0.3, 0.1]):
        score = w[0] * features[0] + w[1] * features[1]
        assert one(db, "SELECT dp_predict('m', 'inner', ?)", json.dumps(features)) == pytest.approx(
            1 / (1 + math.exp(-score)), rel=1e-12)
        assert one(db, "SELECT dp_predict('r', 'inner', ?)", struct.pack("<2d", *features)) == pytest.approx(
            v[0] * features[0] + v[1] * features[1], rel=1e-12, abs=1e-15)
    assert one(db, "SELECT dp_predict('r', 'inner', '[6,8]')") == pytest.approx(v[0] * 0.6 + v[1] * 0.8, rel=1e-12)
    assert one(db, "SELECT dp_predict('m', 'inner', NULL)") is None
    right = one(db, "SELECT avg((dp_predict('m', 'inner', x) > 0.5) = (y = 1)) FROM t")
    assert 0 <= right <= 1
    for features in ("[1]", "[1,2,3]", "[1,null]", b"12345", "", 7, "[1,2"):
        assert "features must be a JSON array of 2 numbers" in refused(db, "SELECT dp_predict('m', 'inner', ?)", features)
    assert "is not published at tier 'outer'" in refused(db, "SELECT dp_predict('m', 'outer', '[1,2]')")
    assert "unknown tier" in refused(db, "SELECT dp_predict('m', 'none', '[1,2]')")
    assert "unknown release 'none' (dp_release lists them)" in refused(db, "SELECT dp_predict('none', 'inner', '[1,2]')")
    one(db, "SELECT dp_sum('inner', y, 1, 's') FROM t")
    assert "release 's' is no model" in refused(db, "SELECT dp_predict('s', 'inner', '[1,2]')")
    assert "release 's' is no model" in refused(db, "SELECT dp_sgd_profile('s')")
    db.execute("CREATE VIEW planted AS SELECT dp_predict('m', 'inner', x) FROM t")
    with pytest.raises(sqlite3.Error, match="unsafe use"):
        db.execute("SELECT * FROM planted").fetchall()


def test_it_learns():
    """At rate 50 there is almost no noise. The model classifies all rows correctly, except rows next to the separating line."""
    db = open_model_ledger(rate=50)
    train(db, name="m", n=separable(db, 3000), dim=2, clip=1, radius=5)
    assert one(db, "SELECT avg((dp_predict('m', 'inner', x) > 0.5) = (y = 1)) FROM t") > 0.9


def test_a_tampered_model_is_found(tmp_path):
    path = tmp_path / "m.db"
    db = connect(path)
    one(db, "SELECT dp_init(?)", TERMS)
    one(db, "SELECT dp_tier('inner', 1, 50, 1e-6)")
    make_tables(db)
    train(db, name="m", n=separable(db), dim=2, clip=1, radius=5)
    assert one(db, "SELECT dp_verify()") == "ok"
    ledger = sqlite3.connect(f"{path}-ledger", isolation_level=None)
    ledger.execute("UPDATE dp_release SET model = '{}', options = json_set(options, '$.model', json('{}'))")
    assert one(db, "SELECT dp_verify()") != "ok"
    assert "impossible model" in refused(db, "SELECT dp_predict('m', 'inner', '[1,2]')")
