"""Compares walks of releases with the option until, draw by draw, with the definition in plain Python: which draws are made, from which
totals and points, where the walk stops, which points are stored, and what is charged and returned, to the last integer and bit. The
program `fixed` writes its draws; that these have the right distributions is tested in tests/noise/."""

import fractions
import json
import math
import random
import subprocess

import pytest

from conftest import ledger_of
from fixed_noise import BUILD, os
from until_reference import is_met, ladder, price, tier_rungs, variance, Z

pytestmark = [pytest.mark.alarm(0), pytest.mark.plain]

KINDS = {"count": ("SELECT 1 FROM t", {"clip": 1}), "sum": ("SELECT x FROM t", {"clip": 8}),
         "group_count": ("SELECT g FROM t", {"clip": 1, "keys": ["a", "b"]})}


def scene(seed):
    """Random tiers, two of which may be near each other, and a random release."""
    rng = random.Random(seed)
    rates = sorted((10 ** rng.uniform(-4.5, -1.5) for _ in range(rng.randint(1, 4))), reverse=True)
    if len(rates) > 1 and rng.random() < 0.4:
        near = rng.randrange(1, len(rates))
        rates[near] = rates[near - 1] * rng.choice([0.98, 0.99, 0.995, 1 - 1e-6, 1 - 1e-9, 1 - 1e-13])
        rates.sort(reverse=True)
    at = rng.randrange(len(rates)) if rng.random() < 0.5 else 0
    kind = rng.choice(list(KINDS))
    people = rng.choice([3, 40, 400, 4000])
    options = {"until": rng.choice([0.01, 0.05, 0.1, 0.25]), "weight": rng.choice([1, 0.3])}
    if rng.random() < 0.4:
        options["least"] = rng.choice([10, 300, 5000])
    return rates, at, kind, people, options, rng.choice(["gdp", "rdp"])


def run_traced(path, statements):
    """Runs SQL in the program `fixed`. Returns the draws as {name: [words]}."""
    done = subprocess.run([BUILD / os.environ.get("FIXED", "fixed"), path], input=";\n".join(statements) + ";", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    draws = {}
    for line in done.stdout.splitlines():
        name, kind, *numbers = line.split()
        draws.setdefault(name, []).append((kind, *map(int, numbers)))
    return draws


class Walk:
    """Follows a walk of the totals X along its draws."""

    def __init__(self, totals, unit, until, least=0):
        self.totals, self.unit, self.until, self.least = totals, unit, until, least
        self.stored, self.clock, self.point, self.met = {}, 0, None, False

    def go(self, rungs, tiers, draws):
        """Walks these rungs, as the draws say. Stores the points of the tiers {clock: tier} that were passed, and of the last."""
        draws, refines = list(draws), self.clock > 0
        for v in rungs:
            if self.met:
                break
            if v == self.clock:
                fresh = self.point
            elif self.clock == 0 or refines:
                w = v if not refines else -(-v * self.clock // (self.clock - v))
                fresh = [(x + noise) for x, (kind, of, noise) in zip(self.totals, draws) if (kind, of) == ("draw", w)]
                assert len(fresh) == len(self.totals), (draws[:2], w)
                if refines:
                    means = [fractions.Fraction(v * y + (self.clock - v) * z, self.clock) for y, z in zip(self.point, fresh)]
                    fresh = [math.floor(abs(mean) + fractions.Fraction(1, 2)) * (1 if mean > 0 else -1) for mean in means]
                del draws[:len(self.totals)]
            else:
                made = draws[:len(self.totals)]
                assert [d[:-1] for d in made] == [("between", v, self.clock - v, x, y) for x, y in zip(self.totals, self.point)]
                fresh = [d[-1] for d in made]
                del draws[:len(self.totals)]
            self.clock, self.point = v, fresh
            self.met = is_met([y * self.unit for y in fresh], Z * math.sqrt(v) * self.unit, self.until, self.least)
            if v in tiers and not self.met:
                self.stored[tiers[v]] = v, fresh
        assert not draws
        self.stored[tiers[rungs[-1]]] = self.clock, self.point


def book(path):
    ledger = ledger_of(path)
    points = {}
    for tier, clock, value in ledger.execute("SELECT tier, clock, value FROM dp_path ORDER BY tier, key, component"):
        points.setdefault(int(tier[1:]), (clock, []))[1].append(value)
    charges = ledger.execute("SELECT substr(tier, 2) + 0, kind, rate, slack FROM dp_charge ORDER BY id").fetchall()
    rates = dict(ledger.execute("SELECT substr(tier, 2) + 0, rate FROM dp_publication"))
    release = ledger.execute("SELECT sensitivity, granularity, stop FROM dp_release").fetchone()
    ledger.close()
    return points, charges, rates, release


def check_payments(charges, rates, s, stored, tiers):
    """What each tier paid in all is the rate of the least noisy publication that it sees, to the last bit of the last row."""
    for tier in range(tiers):
        seen = [number for number in rates if number >= tier]
        rows = [(kind, fractions.Fraction(rate)) for number, kind, rate, _ in charges if number == tier]
        if not seen:
            assert not rows
            continue
        owed = fractions.Fraction(max(rates[number] for number in seen))
        exact = price(s, min(stored[number][0] for number in seen))
        assert exact <= owed <= exact * (1 + fractions.Fraction(1, 2**48))
        paid = sum(rate for _, rate in rows)
        last = math.ulp(float(max(abs(rate) for _, rate in rows)))
        assert 0 <= paid - owed <= 2 * fractions.Fraction(last), (float(paid), float(owed))
        assert all((kind == "return") == (rate < 0) for kind, rate in rows)
        total = 0
        for kind, rate in rows:
            total += rate
            assert total >= 0 and kind in ("charge", "return")


@pytest.mark.parametrize("seed", range(60))
def test_a_walk_to_the_integer(seed, tmp_path):
    rates, at, kind, people, options, accountant = scene(seed)
    path, (sql, own) = str(tmp_path / "t.db"), KINDS[kind]
    ask = json.dumps({**own, **options, "name": "r"})
    refine = json.dumps({**own, **options, "name": "r", "refine": True})
    release = f"SELECT dp_release('t%d', '{kind}', '{sql}', '%s')"
    draws = run_traced(path, [
        f"SELECT fixed_seed({seed})", "CREATE TABLE t(unit, g, x)",
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {people}) INSERT INTO t SELECT i, char(97 + i % 2), i % 8 FROM n",
        "SELECT dp_init('{\"adjacency\":\"add-remove\"}')", "SELECT dp_protect('t', 'unit')"]
        + [f"SELECT dp_tier('t{i}', {rate!r}, 8.0, 1e-6, '{accountant}')" for i, rate in enumerate(rates)]
        + ["SELECT fixed_trace('ask')", release % (at, ask), "SELECT fixed_trace('again')", release % (at, ask)]
        + [f"SELECT fixed_trace('outer{i}'), dp_diffuse('r', 't{i}')" for i in range(at + 1, len(rates))]
        + ([f"SELECT fixed_trace('refine')", release % (0, refine)] if at else []))
    points, charges, published, (s, granularity, stop) = book(path)
    count = {"count": [people], "sum": [sum(i % 8 for i in range(1, people + 1))], "group_count": [people // 2, people - people // 2]}[kind]
    unit = 2.0 ** granularity
    walk = Walk([int(n / unit) for n in count], unit, options["until"], options.get("least", 0))

    own_rates = rates[at:]
    rungs, tiers = ladder(s, own_rates, options["weight"]), {v: at + n for v, n in tier_rungs(s, own_rates, options["weight"]).items()}
    walk.go(rungs, tiers, draws["ask"])
    first, outer = dict(walk.stored), walk.met
    assert "again" not in draws
    for tier in range(at + 1, len(rates)):
        if tier in first:
            assert f"outer{tier}" not in draws and points[tier] == first[tier]
        elif variance(s, fractions.Fraction(options["weight"]) * fractions.Fraction(rates[tier])) <= walk.clock:
            assert f"outer{tier}" not in draws and points[tier] == (walk.clock, walk.point)
        else:
            assert points[tier][0] > walk.clock
    if at:
        start = walk.clock
        walk.go(ladder(s, rates, options["weight"], start), tier_rungs(s, rates, options["weight"], start), draws.get("refine", []))
    for tier, point in walk.stored.items():
        assert points[tier] == point, tier
    assert stop == (walk.clock if walk.met else None)
    assert (first[at][0] == walk.clock) == (outer or at == 0)
    check_payments(charges, published, s, points, len(rates))
