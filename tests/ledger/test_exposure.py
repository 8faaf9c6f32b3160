"""Compares dp_exposure() with a calculation by brute force, from the joint distribution of all publications.

For each release the published lattice values are linear in the data and in independent Gaussian draws. A coalition that saw some
of these values knows y = a x + noise, where the noise has covariance Sigma. The exact rate of this knowledge is s^2/2 a^T
Sigma^-1 a. This calculation does not use the rates in the ledger. The variances of the draws follow from the clocks of the path.
"""

import itertools
import json
import pathlib
import random
import sys

import pytest
from mpmath import mp, mpf

from conftest import connect, ledger_of, one, one_row, refused
from truth import true_gaussian_epsilon, true_zcdp_epsilon

RATES = [0.18, 0.062, 0.02, 0.009, 0.002]
NAMES = ["t0", "t1", "t2", "t3", "t4"]


class Lineage:
    """One release. Each point of its path is a linear form in the data and the draws, with a coefficient for the data and a
    weight for each draw."""

    def __init__(self, sensitivity):
        self.sensitivity = sensitivity
        self.draws = []   # variances of independent draws
        self.points = {}  # tier index: (clock, coefficient, {draw: weight})
        self.published = set()

    def draw(self, variance):
        self.draws.append(mpf(variance))
        return len(self.draws) - 1

    def start(self, tier, clock):
        self.points[tier] = (clock, mpf(1), {self.draw(clock): mpf(1)})

    def outward(self, tier, clock):
        inner, coefficient, weights = self.points[max(self.points)]
        assert clock - inner >= 16
        self.points[tier] = (clock, coefficient, {**weights, self.draw(clock - inner): mpf(1)})

    def inward(self, tier, clock):
        outer, coefficient, weights = self.points[min(self.points)]
        share = mpf(clock) / outer
        fresh = mp.ceil(mpf(clock) * outer / (outer - clock))
        weights = {draw: share * weight for draw, weight in weights.items()}
        weights[self.draw(fresh)] = 1 - share
        self.points[tier] = (clock, share * coefficient + (1 - share), weights)

    def rate(self, tiers):
        """Returns s^2/2 a^T Sigma^-1 a for the publications at these tiers."""
        seen = sorted(self.published & set(tiers))
        if not seen:
            return mpf(0)
        forms = [self.points[tier] for tier in seen]
        sigma = mp.matrix(len(forms))
        for i, (_, _, v) in enumerate(forms):
            for j, (_, _, w) in enumerate(forms):
                sigma[i, j] = mp.fsum(v[d] * w[d] * self.draws[d] for d in v if d in w)
        a = mp.matrix([form[1] for form in forms])
        return self.sensitivity**2 * (a.T * mp.lu_solve(sigma, a))[0] / 2


class History:
    """Makes random releases, diffusions and refinements, and records the lineage of every point."""

    def __init__(self, path, seed, tiers):
        self.choice = random.Random(seed)
        self.db = connect(path)
        adjacency = self.choice.choice(["add-remove", "replace"])
        one_row(self.db, json.dumps({"adjacency": adjacency}))
        for name, rate in zip(NAMES[:tiers], RATES):
            self.db.execute("SELECT dp_tier(?, ?, ?, ?, ?)", (
                name, rate, self.choice.choice([12.0, 10.5]), self.choice.choice([1e-6, 1e-5, 1e-9]),
                self.choice.choice(["rdp", "gdp"]))).fetchall()
        self.ledger, self.tiers, self.lineages, self.options = ledger_of(path), tiers, {}, {}

    def clock(self, name, tier):
        """Returns the clock in the stored path. The test reads clocks from the path. It never reads a rate."""
        return self.ledger.execute("SELECT clock FROM dp_path WHERE release = ? AND tier = ?",
                                   (name, NAMES[tier])).fetchone()[0]

    def release(self, name, tier):
        kind = self.choice.choice(["sum", "count", "ou_sum"])
        self.options[name] = (kind, {"name": name, "weight": self.choice.choice([1, 0.5, 0.03]), "clip": 1,
                                     **({"radius": 100} if kind == "ou_sum" else {})})
        self.ask(name, tier, False)
        (sensitivity,) = self.ledger.execute("SELECT sensitivity FROM dp_release WHERE name = ?", (name,)).fetchone()
        self.lineages[name] = Lineage(sensitivity)
        self.lineages[name].start(tier, self.clock(name, tier))
        self.lineages[name].published.add(tier)

    def ask(self, name, tier, refine):
        kind, options = self.options[name]
        options = {**options, "refine": True} if refine else options
        one(self.db, "SELECT dp_release(?, ?, 'SELECT 1 FROM t', ?)", NAMES[tier], kind, json.dumps(options))

    def publish(self, name, tier):
        lineage = self.lineages[name]
        first, last = min(lineage.points), max(lineage.points)
        if self.choice.random() < 0.5 and tier >= first:
            one(self.db, "SELECT dp_diffuse(?, ?)", name, NAMES[tier])
        else:
            self.ask(name, tier, True)
        for k in range(last + 1, tier + 1):
            lineage.outward(k, self.clock(name, k))
        for k in range(first - 1, tier - 1, -1):
            lineage.inward(k, self.clock(name, k))
        lineage.published.add(tier)

    def run(self, steps):
        for step in range(steps):
            tier = self.choice.randrange(self.tiers)
            if not self.lineages or self.choice.random() < 0.35:
                self.release(f"r{step}", tier)
            else:
                self.publish(self.choice.choice(list(self.lineages)), tier)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def check(history, coalition):
    listed = history.choice.sample(coalition, len(coalition))
    separator = history.choice.choice([",", ", ", " , "])
    got = json.loads(one(history.db, "SELECT dp_exposure(?)", separator.join(NAMES[t] for t in listed)))
    seen = {name: lineage for name, lineage in history.lineages.items() if lineage.published & set(coalition)}
    rates = {name: lineage.rate(coalition) for name, lineage in seen.items()}
    truth = mp.fsum(rates.values())
    assert truth * (1 - mpf("1e-12")) <= got["rate"] <= truth * (1 + mpf("1e-9"))

    assert [r["release"] for r in got["releases"]] == [n for n in history.lineages if n in seen]
    for r in got["releases"]:
        assert r["tier"] == NAMES[min(seen[r["release"]].published & set(coalition))]
        rate = rates[r["release"]]
        assert rate * (1 - mpf("1e-12")) <= r["rate"] <= rate * (1 + mpf("1e-9"))

    terms = {name: rest for name, *rest in history.ledger.execute(
        "SELECT name, delta, epsilon, accountant, slack_limit FROM dp_tier")}
    assert [t["tier"] for t in got["tiers"]] == [NAMES[t] for t in listed]
    epsilons = {}
    for t in got["tiers"]:
        delta, epsilon, accountant, slack = terms[t["tier"]]
        assert t["delta"] == delta
        if accountant == "gdp":  # a part of delta is set aside for the lattice
            want = true_gaussian_epsilon(truth, mpf(delta) - slack * (1 + mp.exp(epsilon)), t["epsilon"])
        else:
            want = true_zcdp_epsilon(truth, delta)
        assert want * (1 - mpf("1e-12")) <= t["epsilon"] <= want * (1 + mpf("2e-9"))
        epsilons.setdefault(delta, []).append(t["epsilon"])
    assert got["delta"] == min(epsilons)
    assert got["epsilon"] in epsilons[got["delta"]]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.sample(5)
def test_exposure_is_the_rate_of_the_joint_law(path, seed):
    history = History(path, seed, tiers=3 + seed % 3)
    history.run(14)
    assert sum(len(lineage.published) for lineage in history.lineages.values()) > len(history.lineages)
    for size in range(1, history.tiers + 1):
        for coalition in itertools.combinations(range(history.tiers), size):
            check(history, list(coalition))
    assert one(history.db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("seed", range(3))
def test_a_tier_has_paid_for_the_joint_law_of_what_it_sees(path, seed):
    history = History(path, 100 + seed, tiers=5)
    history.run(16)
    for tier in range(5):
        truth = mp.fsum(lineage.rate(range(tier, 5)) for lineage in history.lineages.values())
        spent = one(history.db, "SELECT spent_rate FROM dp_budget WHERE tier = ?", NAMES[tier])
        assert truth * (1 - mpf("1e-12")) <= spent <= truth * (1 + mpf("1e-9"))


def test_the_sum_of_maxima_is_not_what_a_coalition_knows(path):
    """Release r is published at the inner tier alone, and release s at the outer tier alone. The exposure of both tiers together
    is the sum of both rates, which is more than the exposure of either tier."""
    history = History(path, 7, tiers=2)
    history.release("r", 0)
    history.options["s"] = ("sum", {"name": "s", "clip": 1})
    history.ask("s", 1, False)
    (sensitivity,) = history.ledger.execute("SELECT sensitivity FROM dp_release WHERE name = 's'").fetchone()
    history.lineages["s"] = Lineage(sensitivity)
    history.lineages["s"].start(1, history.clock("s", 1))
    history.lineages["s"].published.add(1)
    rates = {}
    for coalition in ([0], [1], [0, 1]):
        check(history, coalition)
        tiers = ",".join(NAMES[t] for t in coalition)
        rates[tiers] = json.loads(one(history.db, "SELECT dp_exposure(?)", tiers))["rate"]
    assert rates["t0,t1"] == pytest.approx(rates["t0"] + rates["t1"], rel=1e-12)
    assert rates["t0,t1"] > max(rates["t0"], rates["t1"])


def test_what_nobody_saw_costs_nothing(path):
    history = History(path, 8, tiers=3)
    got = json.loads(one(history.db, "SELECT dp_exposure('t0,t2')"))
    assert (got["rate"], got["epsilon"], got["releases"]) == (0, 0, [])
    history.release("r", 0)
    got = json.loads(one(history.db, "SELECT dp_exposure('t1,t2')"))
    assert (got["rate"], got["releases"]) == (0, [])


def test_names_are_exact():
    """dp_exposure() first looks for a tier with exactly this name, including blanks, and then for the name without blanks."""
    db = connect()
    one_row(db)
    names = ("a", "b ", " c", "c", "\u00a0d")
    for rate, name in enumerate(names, 1):
        one(db, "SELECT dp_tier(?, ?, 1e6, 1e-6)", name, rate)
    for name in names:
        one(db, "SELECT dp_count(?, 1, 1) FROM t", name)
    rates = {name: json.loads(one(db, "SELECT dp_exposure(?)", name))["rate"] for name in (*names, " a ", "\ta\n")}
    assert rates["a"] == rates[" a "] == rates["\ta\n"] and len(set(rates.values())) == 5
    assert one(db, "SELECT dp_exposure('b ,a, c')") != one(db, "SELECT dp_exposure('b ,a,c')")
    for name in ("b", "d", "  ", "a,,c"):
        assert "unknown tier (known tiers: " in refused(db, "SELECT dp_exposure(?)", name)


@pytest.mark.parametrize("code", ["ff", "c0af", "eda080", "f4908080", "61ff", "c3", "e282"])
def test_texts_that_are_not_utf8_are_refused(code):
    """Names, tiers, keys, labels and queries that are not UTF-8 are refused, because Python could not read the tables."""
    db = connect()
    bad = f"CAST(x'{code}' AS TEXT)"
    within = "'%s' || " + bad + " || '%s'"
    assert "UTF-8" in refused(db, f"SELECT dp_init({within % ('{$unit$:$', '$}')})".replace("$", '"'))
    one_row(db)
    one(db, "SELECT dp_tier('a', 1, 1e6, 1e-6)")
    one(db, "SELECT dp_count('a', 1, 1, 'r') FROM t")
    release = "dp_release('a', '%s', 'SELECT 1 FROM t', %s)"
    for call in (f"dp_tier({bad}, 2, 1e6, 1e-6)", release % ("count", bad), f"dp_release({bad}, 'count', 'SELECT 1 FROM t')",
                 f"dp_discard({bad})", f"dp_diffuse('r', {bad})", f"dp_exposure({bad})", f"dp_plan({bad}, 'count', 1)",
                 release % ("count", within % ('{$name$:$', '$}')), release % ("choice", within % ('{$candidates$:[$', '$]}')),
                 release % ("group_count", within % ('{$keys$:[$', '$]}')), f"dp_release('a', 'count', {within % ('SELECT $', '$ FROM t')}, '{{\"clip\":1}}')"):
        assert "UTF-8" in refused(db, "SELECT " + call.replace("$", '"')), call
    assert [row[0] for row in db.execute("SELECT name FROM dp_tier")] == ["a"]
    assert [row[0] for row in db.execute("SELECT name FROM dp_release")] == ["r"] and one(db, "SELECT dp_verify()") == "ok"


# ---- long ledgers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_ledger(tmp_path_factory):
    """Returns a connection to a database whose ledger has 10,000 releases, of which one is discarded and made again."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
    import ledger as history
    db = history.prepare(tmp_path_factory.mktemp("long") / "long.db", 30_000)
    one(db, "SELECT dp_release('middle', 'count', 'SELECT 1 FROM t', '{\"name\":\"again\",\"clip\":1}')")
    one(db, "SELECT dp_discard('again')")
    one(db, "SELECT dp_release('out', 'count', 'SELECT 1 FROM t', '{\"name\":\"again\",\"clip\":1}')")
    yield db
    db.close()


def bytes_read(db, sql, *parameters):
    """Returns the rows of a statement, and the number of bytes that this process read from files meanwhile. Each transaction
    on a ledger begins with an empty page cache, so it reads every page that it needs."""
    def total():
        return int(pathlib.Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])
    before = total()
    rows = db.execute(sql, parameters).fetchall()
    return rows, total() - before


MOST = 200_000  # bytes; the ledger has about 10 million, and a table by itself has more than 700,000


@pytest.mark.skipif(not pathlib.Path("/proc/self/io").exists(), reason="only Linux counts the bytes that a process reads")
@pytest.mark.parametrize("table, column, rows", [
    ("dp_value", "release", 1), ("dp_publication", "release", 1), ("dp_charge", "release", 3), ("dp_release", "name", 1)])
@pytest.mark.sample(2)
def test_a_name_is_found_in_a_long_ledger_without_a_scan(long_ledger, table, column, rows):
    names = {"release-7000": rows, "nobody": 0, "again": {"dp_charge": 5, "dp_release": 2}.get(table, 1)}
    everything, scanned = bytes_read(long_ledger, f"SELECT * FROM {table}")
    at = [row[1] for row in long_ledger.execute(f"PRAGMA table_info({table})")].index(column)
    assert scanned > 3 * MOST
    for name, count in names.items():
        found, read = bytes_read(long_ledger, f"SELECT * FROM {table} WHERE {column} = ?", name)
        assert read < MOST
        assert len(found) == count and found == [row for row in everything if row[at] == name]


@pytest.mark.skipif(not pathlib.Path("/proc/self/io").exists(), reason="only Linux counts the bytes that a process reads")
def test_the_exposure_through_one_release_reads_no_other_release(long_ledger):
    everything, scanned = bytes_read(long_ledger, "SELECT dp_exposure('out,middle')")
    assert scanned > 3 * MOST
    for name, rate in (("release-7000", 1e-5), ("again", 1e-5)):
        ((found,),), read = bytes_read(long_ledger, "SELECT dp_exposure('out,middle', ?)", name)
        assert read < MOST
        found = json.loads(found)
        assert found["releases"] == [r for r in json.loads(everything[0][0])["releases"] if r["release"] == name][-1:]
        assert found["rate"] == pytest.approx(rate, rel=1e-6) and found["releases"][0]["tier"] == "out"
    assert "unknown release" in refused(long_ledger, "SELECT dp_exposure('out', 'nobody')")
    assert "release must be" in refused(long_ledger, "SELECT dp_exposure('out', NULL)")


def test_the_exposure_through_one_release_is_that_of_a_ledger_with_this_release_only(tmp_path):
    ledgers = []
    for number, names in enumerate((["a", "b"], ["a"])):
        db = connect(tmp_path / f"{number}.db")
        one_row(db)
        for name, rate in zip("xyz", RATES):
            one(db, "SELECT dp_tier(?, ?, 9, 1e-6)", name, rate)
        for name in names:
            one(db, "SELECT dp_release('x', 'count', 'SELECT 1 FROM t', json_object('name', ?, 'clip', 1))", name)
            one(db, "SELECT dp_diffuse(?, 'z')", name)
        ledgers.append(db)
    for tiers in ("x", "z", "x,z", "y"):
        assert one(ledgers[0], "SELECT dp_exposure(?, 'a')", tiers) == one(ledgers[1], "SELECT dp_exposure(?)", tiers)
