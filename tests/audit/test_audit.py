"""Empirical audit: measures the epsilon that an attacker can exploit, and checks that this epsilon is not above the
charged epsilon.

For each aggregate the audit makes thousands of releases of two neighbouring tables that are as far apart as the clipping allows.
From the first part of the releases, the attacker learns the direction in which the tables differ, and the middle between them. On
the other releases, the attacker makes a threshold test on the likelihood ratio, which for Gaussian noise is the projection on
that direction. Clopper-Pearson bounds on the error rates of this test give a lower bound on mu, the distance in standard
deviations (Nasr et al. 2023 audit the same way). The exact profile of the Gaussian mechanism converts this bound on mu to a lower
bound on epsilon. This bound must be below the charged epsilon. It must also be above half of the charged epsilon (for Laplace
noise, a quarter), because otherwise the audit would be too weak to find a defect. The attacker here sees the lattice point
itself, which is more than any tier sees.

The audit detects a build whose noise is too small by a fifth; a test makes such a build. Where a ledger protects households, the same
attacker may learn no more about a household of 30, and about a person, than the ledger tells. The audit detects a ledger that does not
bound households.

False alarms: each bound on an error rate is wrong with probability 1e-9. The bound on mu is wrong only if both bounds on error
rates are wrong, or one of these bounds is wrong by a large amount. This has probability 1e-17 even if the attacker uses all of
the charged epsilon. Power: for Gaussian noise the bound falls below half of epsilon only if an estimate is off by 20 standard
errors. For Laplace noise the docstring of the test says how far the bound is from a quarter. The test with the wrong noise makes
more releases and misses the defect with probability 3e-13.
"""

import os
import pathlib
import sqlite3
import subprocess
import tempfile

import numpy
import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import beta, norm

from conftest import quick_folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
RATE = 2.0  # mu = 2: the attacker is wrong once in six times, a rate that a few thousand releases show precisely
LEARN, TEST = 500, 4000
CONFIDENCE = 1e-9
DELTA = 1e-6

# Sanitizers do not change the statistics and are slow, so this file does not run under them.
pytestmark = [pytest.mark.plain, pytest.mark.alarm(1e-15)]

# {kind: (the call, the additional rows of the neighbour)}. Table t(unit, key, x, v) has 40 units with one row each: x = 0, key
# 'a' or 'b' in turn, and v = [0, 0].
WORST = {
    "count": ("dp_count('inner', x, 3)", [(1, "a", 0, "[0,0]")] * 3),
    "count_distinct": ("dp_count_distinct('inner')", [(1, "a", 0, "[0,0]")]),
    "sum": ("dp_sum('inner', x, 2)", [(1, "a", 1e9, "[0,0]")] * 2),
    "avg": ("dp_avg('inner', x, -1, 1)", [(1, "a", 1, "[0,0]")]),
    "var": ("dp_var('inner', x, -1, 1)", [(1, "a", 1, "[0,0]")] * 5),
    "quantile": ("dp_quantile('inner', x, '[0.1,0.9]', -1, 1, '{\"bins\":8}')", [(1, "a", 1, "[0,0]")] * 9),
    "histogram": ("dp_histogram('inner', x, -1, 1, 4, '{\"clip\":1}')", [(1, "a", 1, "[0,0]"), (1, "a", -1, "[0,0]")]),
    "vec_sum": ("dp_vec_sum('inner', v, 2, 1)", [(1, "a", 0, "[3,4]")]),
    "vec_avg": ("dp_vec_avg('inner', v, 2, 1)", [(1, "a", 0, "[3,4]")] * 2),
    "group_count": ("dp_group_count('inner', key, 1, '{\"keys\":[\"a\",\"b\"]}')",
                    [(1, "a", 0, "[0,0]"), (1, "b", 0, "[0,0]")]),
    "group_sum": ("dp_group_sum('inner', key, x, 1, '{\"keys\":[\"a\",\"b\"]}')",
                  [(1, "a", 7, "[0,0]"), (1, "b", -7, "[0,0]")]),
    "group_sum, private keys": ("dp_group_sum('inner', key, x, 1, '{\"key_share\":1e-5}')", [(1, "a", 7, "[0,0]"), (1, "b", 7, "[0,0]")]),
    "group_avg": ("dp_group_avg('inner', key, x, -1, 1, '{\"keys\":[\"a\",\"b\"]}')", [(1, "b", 1, "[0,0]")]),
    "group_var": ("dp_group_var('inner', key, x, -1, 1, '{\"keys\":[\"a\",\"b\"]}')", [(1, "b", 1, "[0,0]")]),
    "group_stddev": ("dp_group_stddev('inner', key, x, -1, 1, '{\"keys\":[\"a\",\"b\"]}')", [(1, "b", -1, "[0,0]")] * 4),
    "group_count_distinct": ("dp_group_count_distinct('inner', key, '{\"clip\":2,\"keys\":[\"a\",\"b\"]}')",
                             [(1, "a", 0, "[0,0]"), (1, "b", 0, "[0,0]")] * 3),
    "group_histogram": ("dp_group_histogram('inner', key, x, -1, 1, 4, '{\"keys\":[\"a\",\"b\"],\"clip\":1}')",
                        [(1, "a", 1, "[0,0]"), (1, "b", -1, "[0,0]")]),
    "group_histogram, private keys": ("dp_group_histogram('inner', key, x, -1, 1, 4, '{\"key_share\":1e-5,\"clip\":1}')",
                                      [(1, "a", 1, "[0,0]")] * 7),
    "group_quantile": ("dp_group_quantile('inner', key, x, 0.5, -1, 1, '{\"keys\":[\"a\",\"b\"],\"bins\":8}')",
                       [(1, "a", 1, "[0,0]")] * 9),
    "group_median, private keys": ("dp_group_median('inner', key, x, -1, 1, '{\"key_share\":1e-5,\"bins\":4}')",
                                   [(1, "b", 1, "[0,0]")]),
    "ou_sum": ("dp_ou_sum('inner', x, 2, 100)", [(1, "a", -1e9, "[0,0]")]),
    "ou_avg": ("dp_ou_avg('inner', x, -1, 1, 1)", [(1, "a", 1, "[0,0]")]),
}


class System:
    """A database with tiers that have unlimited budgets."""

    def __init__(self, extension, options="{}", tiers=(("inner", RATE), ("outer", RATE / 4))):
        self.directory = tempfile.TemporaryDirectory(dir=quick_folder())
        self.path = os.path.join(self.directory.name, "audit.db")
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.enable_load_extension(True)
        self.db.load_extension(str(extension))
        self.db.execute("CREATE TABLE t(unit, key, x, v)")
        self.db.execute("SELECT dp_init(?)", (options,))
        self.db.execute("SELECT dp_protect('t'%s)" % ("" if '"row"' in options else ", 'unit'"))
        for name, rate in tiers:
            self.db.execute("SELECT dp_tier(?, ?, 1e15, 0.5, 'rdp', 0.4)", (name, rate))
        self.db.execute("PRAGMA synchronous = OFF")

    def fill(self, more):
        self.db.execute("DELETE FROM t")
        self.db.executemany("INSERT INTO t VALUES (?, ?, 0, '[0,0]')", [(1000 + i, "ab"[i % 2]) for i in range(40)])
        self.db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", more)

    def points(self, tier, releases):
        """Returns the lattice points of the last releases at a tier, one in each row."""
        ledger = sqlite3.connect(self.path + "-ledger")
        rows = ledger.execute("SELECT value FROM dp_path WHERE tier = ? AND component >= 0"
                              " ORDER BY release_id, key, component", (tier,)).fetchall()
        ledger.close()
        return numpy.array(rows, dtype=float).reshape(releases, -1)

    def close(self):
        self.db.close()
        self.directory.cleanup()


def epsilon_of(mu):
    """Returns the least epsilon at which N(0, 1) and N(mu, 1) are (epsilon, DELTA)-close, by the exact profile."""
    def excess(epsilon):
        a, b = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
        return numpy.log(DELTA) - (a + numpy.log1p(-numpy.exp(b - a)))
    return brentq(excess, 1e-9, 200)


def mu_bound(without, with_her, learn=LEARN):
    """Returns a lower confidence bound on mu from the attacker's threshold test."""
    direction = with_her[:learn].mean(0) - without[:learn].mean(0)
    middle = (with_her[:learn].mean(0) + without[:learn].mean(0)) / 2
    test = len(without) - learn
    false = int((((without[learn:] - middle) @ direction) > 0).sum())
    true = int((((with_her[learn:] - middle) @ direction) > 0).sum())
    least_true = beta.ppf(CONFIDENCE, true, test - true + 1)
    most_false = beta.ppf(1 - CONFIDENCE, false + 1, test - false)
    return norm.ppf(least_true) - norm.ppf(most_false)


def points_of(system, call, more, diffuse=False, count=LEARN + TEST):
    """Returns the points of both tiers for each of the two tables as {tier: array}."""
    for extra in ([], more):
        system.fill(extra)
        for _ in range(count):
            system.db.execute(f"SELECT {call} FROM t").fetchone()
    if diffuse:
        for (name,) in system.db.execute("SELECT name FROM dp_release").fetchall():
            system.db.execute("SELECT dp_diffuse(?, 'outer')", (name,))
    tiers = ["inner", "outer"] if diffuse else ["inner"]
    both = {tier: system.points(tier, 2 * count) for tier in tiers}
    return {tier: (points[:count], points[count:]) for tier, points in both.items()}


def charged(system, tier):
    """Returns the mu of one release that follows from its charged rate."""
    (rate,) = system.db.execute("SELECT max(rate) FROM dp_publication WHERE tier = ?", (tier,)).fetchone()
    (paid,) = system.db.execute("SELECT min(rate) FROM dp_charge WHERE tier = ?", (tier,)).fetchone()
    assert paid >= rate * (1 - 1e-12) or tier == "outer"
    return (2 * rate) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", WORST)
def test_no_more_than_charged_and_more_than_half(kind):
    call, more = WORST[kind]
    system = System(BUILD / "diffuse")
    points = points_of(system, call, more)
    bound, limit = mu_bound(*points["inner"]), charged(system, "inner")
    system.close()
    assert bound <= limit, "the attacker learns more than was charged"
    assert epsilon_of(bound) > epsilon_of(limit) / 2, "the audit has no power"


# ---- Laplace noise ------------------------------------------------------------------------------------------------


def with_laplace(call):
    """Returns the call with the option for Laplace noise."""
    if call.endswith("}')"):
        return call[:-3] + ',"mechanism":"laplace"}\')'
    return call[:-1] + ", '{\"mechanism\":\"laplace\"}')"


LAPLACE_WORST = {kind: (with_laplace(call), more) for kind, (call, more) in WORST.items() if not kind.startswith("ou_")}


def epsilon_bound(without, with_her, scale):
    """Returns a lower confidence bound on the pure epsilon. The attacker tests the likelihood ratio of Laplace noise around two
    centres, and learns the centres and the threshold from the first releases. A coordinate whose centres differ by less than
    four standard errors tells nothing and would hide the largest ratios, so the attacker leaves it out."""
    a, b = (numpy.median(points[:LEARN], axis=0) for points in (without, with_her))
    b = numpy.where(abs(a - b) < 4 * scale * (2 / LEARN) ** 0.5, a, b)
    false, true = ((abs(points - a) - abs(points - b)).sum(axis=1) / scale for points in (without, with_her))

    def shares(part, threshold):
        return (true[part] >= threshold).mean(), (false[part] >= threshold).mean()

    first, rest = slice(0, LEARN), slice(LEARN, None)
    levels = numpy.quantile(true[first], [0.2, 0.35, 0.5, 0.65, 0.8])
    level = max(levels, key=lambda x: (shares(first, x)[0] + 1e-3) / (shares(first, x)[1] + 0.005))
    test = len(without) - LEARN
    hits, alarms = (round(share * test) for share in shares(rest, level))
    least_true = beta.ppf(CONFIDENCE, hits, test - hits + 1)
    most_false = beta.ppf(1 - CONFIDENCE, alarms + 1, test - alarms)
    return numpy.log(least_true / most_false)


def pure_epsilon(system, tier):
    """Returns the pure epsilon that one release was charged, and the scale of its noise."""
    spent, releases = system.db.execute("SELECT spent, (SELECT count(*) FROM dp_publication WHERE tier = ?) FROM dp_rdp"
                                        " WHERE tier = ? AND alpha = 9e999", (tier, tier)).fetchone()
    (clock,) = system.db.execute("SELECT max(clock) FROM dp_publication WHERE tier = ?", (tier,)).fetchone()
    return spent / releases, (clock / 2) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAPLACE_WORST)
def test_laplace_noise_shows_no_more_than_charged_and_more_than_a_quarter(kind):
    """If the contribution is in one coordinate, the bound is 2.1 of 2.95 with a standard deviation of 0.1. If it is spread over
    several coordinates, as with private keys, the bound is 1.4 with a standard deviation of 0.13. A quarter is therefore at least
    five standard deviations away."""
    call, more = LAPLACE_WORST[kind]
    system = System(BUILD / "diffuse")
    points = points_of(system, call, more, count=LEARN + 2000)
    limit, scale = pure_epsilon(system, "inner")
    bound = epsilon_bound(*points["inner"], scale)
    system.close()
    assert bound <= limit, "the attacker learns more than was charged"
    assert bound > limit / 4, "the audit has no power"


@pytest.mark.slow
def test_tiers_of_laplace_noise():
    """The outer tier reveals no more than its own charge. Weighted sums of both tiers reveal no more than the charge of the inner
    tier."""
    system = System(BUILD / "diffuse")
    points = points_of(system, *LAPLACE_WORST["avg"], diffuse=True)
    (inner, scale), (outer, wide) = pure_epsilon(system, "inner"), pure_epsilon(system, "outer")
    assert outer / 3 < epsilon_bound(*points["outer"], wide) <= outer
    for weight in (0.25, 0.5, 0.8):
        assert epsilon_bound(*[weight * a + (1 - weight) * b for a, b in zip(points["inner"], points["outer"])], scale) <= inner
    system.close()


@pytest.mark.slow
def test_tiers_and_coalitions():
    """The outer tier reveals no more than its own charge. Both tiers together reveal no more than the inner tier, for all weights
    that the test tries."""
    system = System(BUILD / "diffuse")
    points = points_of(system, *WORST["group_sum"], diffuse=True)
    inner, outer = charged(system, "inner"), charged(system, "outer")
    bound = mu_bound(*points["outer"])
    assert epsilon_of(outer) / 2 < epsilon_of(bound) and bound <= outer
    for weight in (0.25, 0.5, 0.8):
        mixed = [weight * a + (1 - weight) * b for a, b in zip(points["inner"], points["outer"])]
        assert mu_bound(*mixed) <= inner
    stacked = [numpy.hstack(pair) for pair in zip(points["inner"], points["outer"])]
    assert mu_bound(*stacked) <= inner
    system.close()


@pytest.mark.slow
def test_replacement():
    """Under "replace", the distance between neighbours doubles, and so does the charged sensitivity."""
    system = System(BUILD / "diffuse", '{"adjacency":"replace"}')
    call, count = "dp_sum('inner', x, 2)", LEARN + TEST
    for x in (-1e9, 1e9):
        system.fill([(1, "a", x, "[0,0]")])
        for _ in range(count):
            system.db.execute(f"SELECT {call} FROM t").fetchone()
    points = system.points("inner", 2 * count)
    bound, limit = mu_bound(points[:count], points[count:]), charged(system, "inner")
    system.close()
    assert bound <= limit and epsilon_of(bound) > epsilon_of(limit) / 2


@pytest.mark.slow
def test_a_drawn_median_shows_no_more_than_its_bounded_range():
    """The charge of an epsilon of 4 is for a privacy loss in an interval of this length, which tells an attacker a mu of at most
    2.36. Two units: one is in the middle of 64 leaves, the other at the lower or at the upper end. The losses of the leaves below the
    middle and of those above then differ by the whole range, and the attacker could learn a mu of 2.27. The bound is about 1.9."""
    system, count = System(BUILD / "diffuse", '{"adjacency":"replace"}'), LEARN + TEST
    for x in (-1, 1):
        system.db.execute("DELETE FROM t")
        system.db.executemany("INSERT INTO t VALUES (?, 'a', ?, '[0,0]')", [(1, 0), (2, x)])
        for _ in range(count):
            system.db.execute("SELECT dp_median('inner', x, -1, 1, '{\"mechanism\":\"exponential\",\"bins\":64}') FROM t").fetchone()
    points = system.points("inner", 2 * count)
    epsilon, _ = pure_epsilon(system, "inner")
    bound, limit = mu_bound(points[:count], points[count:]), 2 * norm.ppf(1 / (1 + numpy.exp(-epsilon / 2)))
    system.close()
    assert abs(epsilon - 4) < 1e-6 and 1.6 < bound <= limit


@pytest.mark.slow
def test_noise_a_fifth_too_small_is_caught(tmp_path):
    """Makes the same audit on a build in which every draw has 16/25 of its variance."""
    source = (ROOT / "ext/mechanism/mechanism.c").read_text()
    wrong = source.replace("draw(clock, values,", "draw(clock / 25 * 16, values,")
    assert wrong != source
    (tmp_path / "release.c").write_text(wrong)
    subprocess.run(["cc", "-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-I", ROOT / "ext", "-D_DEFAULT_SOURCE", "-c",
                    "release.c", "-o", "release.o"], cwd=tmp_path, check=True)
    sources = [path.relative_to(ROOT / "ext").with_suffix(".o") for path in (ROOT / "ext").rglob("*.c")]
    objects = [BUILD / "obj" / path for path in sources if path != pathlib.Path("mechanism/mechanism.o")]
    subprocess.run(["cc", "-shared", "-o", tmp_path / "diffuse.so", tmp_path / "release.o", *objects, "-Wl,--exclude-libs,ALL",
                    "-l:libgsl.a", "-l:libgslcblas.a", "-l:libsodium.a", "-lm"], check=True)
    system = System(tmp_path / "diffuse")
    call, more = WORST["sum"]
    points = points_of(system, call, more, count=LEARN + 5000)
    bound, limit = mu_bound(*points["inner"]), charged(system, "inner")
    system.close()
    assert bound > limit


# ---- households ----------------------------------------------------------------------------------------------------


FACTOR, HOME = 4, 30  # a household counts as at most 4 people, and home 0 has 30
HOUSEHOLD_WORST = {
    "count": ("dp_count('inner', x, 3)", [("a", 0)] * 3),
    "avg": ("dp_avg('inner', x, -1, 1)", [("a", 1)]),
    "group_count": ("dp_group_count('inner', key, 1, '{\"keys\":[\"a\",\"b\"]}')", [("a", 0), ("b", 0)]),
}


class Homes(System):
    """A system whose people live in homes. Its ledger protects homes if `factor` is not 0."""

    def __init__(self, factor, rate, budget="1e15, 0.5, 'rdp', 0.4"):
        super().__init__(BUILD / "diffuse", tiers=())
        self.db.execute("CREATE TABLE person(unit UNIQUE, home)")
        self.db.execute("SELECT dp_protect('person', 'unit')")
        if factor:
            self.db.execute("SELECT dp_within('household', 'person', 'home', ?)", (factor,))
        self.db.execute(f"SELECT dp_tier('public', ?, {budget})", (rate,))
        self.db.executemany("INSERT INTO person VALUES (?, ?)", [(1000 + i, 1 + i // 3) for i in range(40)] + [(i, 0) for i in range(HOME)])


def home_bound(kind, people, factor, rate, learn, test):
    """Returns a lower bound on mu from releases of two tables: in one of them, this number of people of home 0 has rows."""
    call, rows = HOUSEHOLD_WORST[kind]
    system = Homes(factor, rate)
    for count in (0, people):
        system.fill([(unit, key, x, "[0,0]") for unit in range(count) for key, x in rows])
        for _ in range(learn + test):
            system.db.execute(f"SELECT {call.replace('inner', 'public')} FROM t").fetchone()
    points = system.points("public", 2 * (learn + test))
    system.close()
    return mu_bound(points[:learn + test], points[learn + test:], learn)


def told(rate, which):
    """Returns the epsilon of a person, or that of a household, that a ledger tells after one release at this rate."""
    system = Homes(FACTOR, rate, f"14, {DELTA}, 'gdp'")
    system.fill([])
    system.db.execute("SELECT dp_count('public', x, 3) FROM t").fetchone()
    (epsilon,) = system.db.execute("SELECT dp_exposure('public') ->> ?", (which,)).fetchone()
    system.close()
    return epsilon


HOUSEHOLD, PERSON = (HOME, RATE / FACTOR**2, "wider_epsilon"), (1, RATE, "epsilon")  # the people, the rate at which their mu is 2, the limit


def check_homes(kind, learn, test, share, *whom):
    """Checks them, and that the audit notices 30 people who are not bounded: without dp_within, the home has a mu of 15."""
    for people, rate, which in whom:
        limit = told(rate, which)
        assert abs(limit / epsilon_of(2) - 1) < 1e-3
        bound = epsilon_of(home_bound(kind, people, FACTOR, rate, learn, test))
        assert share * limit < bound <= limit, (people, bound, limit)
    assert epsilon_of(home_bound(kind, HOME, 0, RATE / FACTOR**2, learn, test)) > told(RATE / FACTOR**2, "wider_epsilon")


@pytest.mark.alarm(1e-10)
def test_a_household_shows_no_more_than_its_epsilon():
    """The bound is a mu of 1.2 with a standard deviation of 0.09. A quarter of epsilon is a mu of 0.6."""
    check_homes("group_count", 100, 500, 0.25, HOUSEHOLD)


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOUSEHOLD_WORST)
def test_a_household_and_a_person_show_more_than_half_of_their_epsilon(kind):
    check_homes(kind, LEARN, TEST, 0.5, HOUSEHOLD, PERSON)
