"""Attack: the time of a release reveals the size of its noise (Jin et al. 2022). Some samplers count up to the drawn value, and
therefore take longer for large noise. An attacker who measures the time learns the noise, and computes the answer from the
published value.

Under the null hypothesis, the noise is independent of the times, even on a busy machine, and the rank correlation has stddev
1/sqrt(n). A busy machine therefore cannot make the tests of diffuse fail. The test of the naive sampler has more calls than
necessary, so that it passes on a busy machine too.
"""

import random
import time

import numpy
import pytest
from scipy import stats

from attack import alarm, system

pytestmark = pytest.mark.plain

RELEASES = 10000
BOUND = 0.08  # 8 times the stddev 1/sqrt(RELEASES)


def timed(call, times):
    """Returns (time, result) for each of `times` calls."""
    clock = time.perf_counter_ns
    rows = []
    for _ in range(times):
        before = clock()
        value = call()
        rows.append((clock() - before, value))
    return numpy.array(rows, dtype=float).T


def correlation(rows, answer=0):
    return stats.spearmanr(rows[0], abs(rows[1] - answer)).statistic


@alarm(1e-30)
def test_the_time_of_a_naive_sampler_is_the_size_of_its_noise():
    """The time of a sampler that counts trials has a rank correlation above 0.5 with its geometric noise (0.99 on a quiet
    machine)."""
    rng = random.Random()

    def geometric():
        failures = 0
        while rng.random() > 0.005:
            failures += 1
        return failures

    assert correlation(timed(geometric, 2000)) > 0.5


@pytest.mark.slow
@alarm(4e-9)
@pytest.mark.parametrize("sql,answer", [("SELECT dp_sum('inner', x, 1) FROM people", 1),
                                        ("SELECT dp_release('inner', 'count', 'SELECT x FROM people', '{\"clip\":1}')", 1)])
def test_the_time_of_a_release_says_next_to_nothing(sql, answer):
    """The sampler picks the noise from 32 draws that it makes together. The remaining correlation between the time and the
    noise is 0.01, so the time explains a hundredth of a percent of the variance. The test fails at a correlation above 0.08,
    which is seven standard errors above 0.01."""
    db = system(tiers={"inner": 1.0}, rows=[(1, "", 1, "")])
    execute = db.cursor().execute
    rows = timed(lambda: execute(sql).fetchall()[0][0], RELEASES)
    assert abs(correlation(rows, answer)) < BOUND


@pytest.mark.slow
@alarm(4e-9)
def test_the_time_of_a_diffusion_says_next_to_nothing():
    db = system(tiers={"inner": 1.0, "outer": 0.1}, rows=[(1, "", 1, "")])
    execute = db.cursor().execute
    names = []
    for i in range(4000):
        execute("SELECT dp_sum('inner', x, 1) FROM people").fetchall()
        names.append(f"release-{i + 1}")
    left = iter(names)
    rows = timed(lambda: execute("SELECT dp_diffuse(?, 'outer')", (next(left),)).fetchall()[0][0], len(names))
    inner = numpy.array([value for (value,) in execute("SELECT value FROM dp_value WHERE tier = 'inner' ORDER BY release_id")])
    rows[1] -= inner
    assert abs(correlation(rows)) < 0.12  # 0.12 is 7.6 times the stddev 1/sqrt(4000): 3e-14 by chance
