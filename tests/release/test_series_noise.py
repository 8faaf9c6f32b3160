"""The noise of series at several tiers. Without data, the points of a series are independent noise of one variance at each tier, and the
tiers are a path (noise_helpers.check_path). The figures are the dense readings of these points."""

import math

import numpy
import pytest

import series_reference as reference
from noise_helpers import check_covariance, check_mean, check_path, check_variance, column, one, quick_path
from series_helpers import append, clock_of, declare, point_of, release_row, rows_of, start, total_key

# Each check has a false-alarm probability of at most 1e-11, for more than 10,000 values. There are fewer than 200.
pytestmark = [pytest.mark.xdist_group("series noise"), pytest.mark.alarm(2e-9)]

LABELS = ["a", "b", "c", "d"]
RATES = {"inner": 1.0, "middle": 0.4, "outer": 0.1}

# When the tiers get their points. Each order ends with all periods at three tiers. A tier is created when it is first named.
ORDERS = {
    "before": ["outer", "a", "b", "c", "d", "middle"],
    "between": ["a", "outer", "c", "middle", "d"],
    "after": ["b", "d", "middle", "outer"],
}


def play(path, order, keys, tiers=RATES, **more):
    db = start(path, (), (("inner", tiers["inner"]),), **more)
    kind = {"mechanism": "laplace"} if more.get("accountant") == "pure" else {}
    declare(db, "inner", "group_count", LABELS, clip=1, keys=[f"{i:06}" for i in range(keys)], **kind)
    for step in order:
        if step in LABELS:
            append(db, step)
        else:
            one(db, "SELECT dp_tier(?, ?, 1e9, ?, ?)", step, tiers[step], *((0, "pure") if kind else (1e-6, "rdp")))
            one(db, "SELECT dp_diffuse('s', ?)", step)
    return db


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ORDERS)
def test_points_are_a_path_of_tiers(name):
    """Every tier has the stated variance; the covariance of an inner and an outer point is the inner variance; periods are independent.
    The law is the same whether tiers get their points before, between or after the appends, also between two tiers."""
    keys = 5000
    with quick_path() as path:
        play(path, ORDERS[name], keys)
        noise = numpy.array([point_of(path, tier) for tier in RATES], dtype=float).T
        stddev = [math.sqrt(clock_of(path, tier)) for tier in RATES]
        steps = 2.0 ** release_row(path)["granularity"]
    for tier, rate in enumerate(RATES.values()):
        assert stddev[tier] * steps == pytest.approx(1 / math.sqrt(2 * rate), rel=1e-3)  # clip 1
    check_path(noise, stddev, name)
    periods = noise.reshape(len(LABELS), keys, len(RATES)) / stddev
    for t in range(len(LABELS)):
        for s in range(t):
            for inner in range(len(RATES)):
                for outer in range(len(RATES)):
                    check_covariance(periods[t, :, inner], periods[s, :, outer], 0, f"{name} {t} {s}")


def test_variance_to_two_percent():
    """250,000 draws: an error of 2% in a variance is noticed."""
    with quick_path() as path:
        play(path, ["b"], 125000)
        noise, stddev = point_of(path, "inner").astype(float), math.sqrt(clock_of(path, "inner"))
    assert len(noise) == 250000 and 7 * math.sqrt(2 / 250000) < 0.02
    check_mean(noise, 0, stddev)
    check_variance(noise, stddev)
    check_covariance(noise[:125000], noise[125000:], 0)


@pytest.mark.parametrize("name", ORDERS)
def test_figures_are_the_readings_of_the_points(name):
    """At each tier, every period and total is the dense reading of the points of this tier, whenever the tier got them. So figures of two
    tiers have the covariance of their points: that of an inner and an outer total is the variance of the inner one."""
    with quick_path() as path:
        db = play(path, ORDERS[name], 2)
        steps = 2.0 ** release_row(path)["granularity"]
        for tier in RATES:
            points = point_of(path, tier).astype(float).reshape(len(LABELS), 2) * steps
            found = rows_of(db, tier)
            for t, label in enumerate(LABELS):
                for j in range(2):
                    value, stddev, _, _ = found[reference.key_of(label, f"{j:06}")]
                    assert value == pytest.approx(reference.reading(4, t, t) @ points[:, j], rel=1e-9)
                    assert stddev == pytest.approx(math.sqrt(clock_of(path, tier)) * steps * reference.spread(4, t, t), rel=1e-9)
                    value, stddev, _, _ = found[total_key(LABELS, t, f"{j:06}")]
                    assert value == pytest.approx(reference.reading(4, 0, t) @ points[:, j], rel=1e-9)
                    assert stddev == pytest.approx(math.sqrt(clock_of(path, tier)) * steps * reference.spread(4, 0, t), rel=1e-9)
        assert one(db, "SELECT dp_verify()") == "ok"


def test_pure_noise_at_two_tiers():
    """Under pure epsilon the points of periods are the figures, with independent Laplace noise, at every tier."""
    keys, tiers = 5000, {"inner": 0.5, "outer": 0.1}
    with quick_path() as path:
        db = play(path, ["a", "outer", "d"], keys, tiers, accountant="pure")
        noise = {tier: point_of(path, tier).astype(float) for tier in tiers}
        steps = 2.0 ** release_row(path)["granularity"]
        stddev = {}
        for tier in tiers:
            rows = rows_of(db, tier)
            stddev[tier] = rows[reference.key_of("a", "000000")][1] / steps
            assert rows[reference.key_of("a", "000000")][0] == pytest.approx(noise[tier][0] * steps)
            assert rows[total_key(LABELS, 3, "000007")][0] == pytest.approx(noise[tier].reshape(4, keys)[:, 7].sum() * steps)
    n = 4 * keys
    for tier in tiers:
        share = (noise[tier] ** 2).mean() / stddev[tier] ** 2 - 1
        assert abs(share) < 8.5 * math.sqrt(5 / n)  # the square of a Laplace number has 5 times the variance of its square
        first, last = noise[tier][:keys], noise[tier][-keys:]
        assert abs((first * last).mean()) < 8.5 * stddev[tier] ** 2 / math.sqrt(keys)
    covariance = (noise["inner"] * noise["outer"]).mean() / stddev["inner"] ** 2 - 1
    ratio = (stddev["outer"] / stddev["inner"]) ** 2
    assert ratio > 3 and abs(covariance) < 8.5 * math.sqrt((5 + ratio) / n)


def test_intervals_of_totals_cover():
    """Of 3,000 running totals, 95% lie within their intervals."""
    labels = [str(i) for i in range(12)]
    db = start(":memory:", (), (("inner", 0.2),))
    declare(db, "inner", "group_count", labels, clip=1, keys=list(range(3000)))
    append(db, labels[-1])
    inside = column(db, "SELECT 0 BETWEEN low AND high FROM dp_value WHERE key LIKE ?", '["0/11",%')
    assert len(inside) == 3000
    assert abs(sum(inside) - 2850) < 7 * math.sqrt(3000 * 0.95 * 0.05)
