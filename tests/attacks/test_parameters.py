"""Attack: NaN, zero, negative, infinite and subnormal parameters. A comparison with NaN is always false, so NaN passes
every check that refuses wrong values (x < 0) instead of admitting right values (x >= 0). A negative weight is a refund.
A subnormal clip leaves no room for noise."""

import contextlib
import ctypes
import math
import platform
import random
import sqlite3
import subprocess

import pytest

from attack import UNLIMITED, Call, charges, each_call_and_form, one, system, verified
from conftest import connect, refused


class Naive:
    """A budget that refuses costs that are too large."""

    def __init__(self, limit):
        self.limit, self.spent = limit, 0.0

    def answer(self, rate, clip=1.0):
        if self.spent + rate > self.limit:
            return None
        self.spent += rate
        return 1000 * clip + random.gauss(0, 1) * (clip / math.sqrt(2 * abs(rate)))


def test_a_naive_budget_lets_them_in():
    budget = Naive(1.0)
    assert budget.answer(math.nan) is not None
    assert all(budget.answer(100.0) is not None for _ in range(100))  # the total is NaN from now on
    budget = Naive(1.0)
    budget.answer(-100.0)
    assert budget.answer(100.0) is not None  # a negative rate has paid for this answer
    assert Naive(10.0).answer(8.0, clip=5e-324) == 1000 * 5e-324  # the noise is below half a step, so the answer has no noise


# The bad values are SQL literals, because Python binds NaN as NULL.
SMALL = ["0", "0.0", "-0.0", "-1", "-5e-324", "5e-324", "1e-310", "2.2250738585072014e-308"]
NUMBERS = ["NULL", "9e999", "-9e999", "9e999 - 9e999", "'nan'", "'1x'", "x'31'", *SMALL]
TINY = {"5e-324", "1e-310", "2.2250738585072014e-308"}
ORDINARY = {"lo": SMALL, "hi": SMALL, "q": TINY | {"0", "0.0", "-0.0"}}  # valid values
JSON = {"NULL": "null", "'nan'": '"nan"', "'1x'": '"1x"', "x'31'": "[1]", "9e999 - 9e999": "NaN"}
ALSO = {"dim": ["1.5", "1e9", "9223372036854775807"], "bins": ["1.5", "1e9", "9223372036854775807"],
        "q": ["1.5", "'[NaN]'", "'[2]'"], "lo": ["2"], "hi": ["-2", "-2.5"], "clip": ["1e-151", "1e151"]}


@each_call_and_form
@pytest.mark.sample(12)
def test_no_call_takes_them(call, form):
    """For each parameter in turn, diffuse refuses each bad value and charges nothing. The error is the same if the table is empty,
    except that an aggregate then reads no row at all."""
    db = system(tiers={"inner": 1.0})
    empty = system(tiers={"inner": 1.0}, rows=[])
    for parameter in call.parameters:
        for bad in NUMBERS + ALSO.get(parameter, []):
            if bad in ORDINARY.get(parameter, ()) or (parameter == "q" and bad == "x'31'"):  # [1] is a list of quantiles
                continue
            if parameter == "radius" and not call.linear and bad in TINY:  # the answer is then the centre
                continue
            if form is Call.release:
                bad = JSON.get(bad, bad.strip("'"))
            message = refused(db, form(call, "inner", **{parameter: bad}))
            assert "SQL logic error" not in message, (parameter, bad)
            if form is Call.release:
                assert refused(empty, form(call, "inner", **{parameter: bad})) == message, (parameter, bad)
            assert charges(db) == 0, (parameter, bad)
    assert one(db, "SELECT count(*) FROM dp_release") == 0


@each_call_and_form
def test_no_weight_is_one_of_them(call, form):
    db = system(tiers={"inner": 1.0})
    for bad in ["null", "NaN", "9e999", "-9e999", "Infinity", '"1x"', "[1]", "true", "0", "-0.0", "-1", "5e-324", "1e-310",
                "1.0000001"]:
        refused(db, form(call, "inner", weight=bad))
    for option in ("centre", "theta", "rho", "radius", "clip", "lo", "hi", "max_groups", "key_share", "bins"):
        if option in call.parameters:
            continue
        for bad in ("null", "NaN", "9e999", "-9e999", '"1x"', "true"):
            refused(db, form(call, "inner", **{option: bad}))
    assert charges(db) == 0


@pytest.mark.parametrize("options", ['"theta":{},"rho":1', '"theta":1,"rho":{}', '"theta":{0},"rho":{0}', '"radius":{}'])
@pytest.mark.parametrize("kind", ["ou_count", "ou_sum"])
def test_no_ornstein_uhlenbeck_process_takes_them(kind, options):
    db = system(tiers={"inner": 1.0})
    release = f"SELECT dp_release('inner', '{kind}', 'SELECT x FROM people', '{{{{\"clip\":1,{{}}}}}}')"
    assert math.isfinite(one(db, release.format('"theta":1,"rho":1')))
    for bad in ("null", "NaN", "9e999", "-9e999", '"1x"', "0", "-0.0", "-1", "-5e-324"):
        if not (options.startswith('"theta":{},') and bad in ("0", "-0.0")):  # Brownian motion
            refused(db, release.format(options.format(bad)))
    for theta, rho in (("5e-324", "1"), ("1", "5e-324"), ("1e300", "1e-300"), ("1e-310", "1e-310")):
        # a subnormal number is either refused, or gives a shrink in (0, 1] and a finite value
        try:
            assert math.isfinite(one(db, release.format(f'"theta":{theta},"rho":{rho}')))
        except Exception as error:
            assert "dp_release: " in str(error)
    assert all(0 < shrink <= 1 for (shrink,) in db.execute("SELECT shrink FROM dp_publication"))
    assert verified(db)


TIER = ["1.0", "8.0", "1e-6", "'rdp'", "0"]


def test_no_tier_takes_them():
    """dp_tier() refuses each bad number. A tier with a subnormal epsilon or delta may be created, and then keeps to this budget.
    (With delta 1e-6, a tiny rate fits any epsilon.)"""
    db = system(tiers={})
    for place, good in ((0, set()), (1, TINY), (2, TINY), (4, TINY | {"0", "0.0", "-0.0"})):  # delta_keys may be zero
        for i, bad in enumerate(NUMBERS):
            arguments = TIER[:place] + [bad] + TIER[place + 1:]
            sql = f"SELECT dp_tier('t{place}-{i}', {', '.join(arguments)})"
            if bad not in good:
                assert "dp_tier: " in refused(db, sql), sql
            elif place != 4:
                for accountant in ("'rdp'", "'gdp'"):
                    db = system(tiers={})
                    try:
                        one(db, sql.replace("'rdp'", accountant))
                    except Exception as error:
                        assert "dp_tier: " in str(error)
                        continue
                    limit = one(db, "SELECT rate_limit FROM dp_tier")
                    epsilon, delta = one(db, "SELECT epsilon FROM dp_tier"), one(db, "SELECT delta FROM dp_tier")
                    assert epsilon == float(arguments[1]) and delta == float(arguments[2])
                    # dp_delta() rounds smaller numbers up to the least normal number
                    assert limit == 0 or one(db, "SELECT dp_delta(?, ?)", limit, epsilon) <= max(delta, 2.3e-308), sql
                    if limit < 1:
                        count = f"SELECT dp_count('t{place}-{i}', x, 1) FROM people"
                        assert "would exceed its budget" in refused(db, count) and charges(db) == 0
    assert verified(db)


PURE = ["dp_rate({}, 1e-6)", "dp_rate(1, {})", "dp_sigma({}, 1)", "dp_sigma(1, {})", "dp_epsilon({}, 1e-6)", "dp_epsilon(1, {})",
        "dp_delta({}, 1)", "dp_delta(1, {})", "dp_zcdp_epsilon({}, 1e-6)", "dp_zcdp_epsilon(1, {})",
        "dp_interval('a', 'inner', NULL, {})", "dp_plan('inner', 'count', {})", "dp_plan('inner', 'sum', {})"]


@pytest.mark.parametrize("call", PURE)
def test_no_plan_is_made_of_them(call):
    """A planning function gives an error, or, where zero and tiny numbers have a meaning, a number. It never gives NaN,
    which SQL would show as NULL."""
    db = system(tiers={"inner": 1.0})
    one(db, "SELECT dp_count('inner', x, 1, 'a') FROM people")
    for bad in NUMBERS:
        try:
            value = one(db, "SELECT " + call.format(bad))
        except Exception as error:
            assert str(error).startswith(call.split("(")[0] + ": "), error
            continue
        assert bad in SMALL + (["NULL", "9e999 - 9e999"] if "plan" in call else []) and not bad.startswith("-1"), bad
        assert value is not None and (isinstance(value, str) or value >= 0), (bad, value)
        assert "Inf" not in str(value) and "nan" not in str(value).lower(), (bad, value)


def test_terms_of_all_that_was_let_in_are_numbers():
    """After a good release and all the refused releases, all numbers in the ledger are finite."""
    db = system(tiers={"inner": (1.0, *UNLIMITED), "outer": 0.1})
    for weight in ("NaN", "-1", "0", "0.5", "5e-324", "1"):
        try:
            one(db, f"SELECT dp_sum('inner', x, 1, '{{\"weight\":{weight}}}') FROM people")
        except Exception as error:
            assert str(error).startswith("dp_sum: ")
    assert [rate > 0 and math.isfinite(rate) for (rate,) in db.execute("SELECT rate FROM dp_charge")] == [True, True]
    for row in db.execute("SELECT * FROM dp_budget"):
        assert all(term is None or isinstance(term, str) or math.isfinite(term) for term in row[:-2])
        assert row[-2:] == (None, None)  # no period
    assert verified(db)


FLUSH = "#include <xmmintrin.h>\nvoid flush(int on) { _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040u); }\n"


@pytest.mark.plain
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="sets a register of x86")
def test_a_host_that_flushes_to_zero_changes_nothing(tmp_path):
    """A library that was compiled with -ffast-math makes the processor compute with 0 instead of subnormal numbers. Bounds of every size are
    then admitted or refused as without it, and give the same lattice."""
    (tmp_path / "flush.c").write_text(FLUSH)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "flush.so", tmp_path / "flush.c"], check=True)
    flush, random_of, admitted = ctypes.CDLL(str(tmp_path / "flush.so")).flush, random.Random(2), 0
    sizes = ["0", *SMALL[4:], "2.3e-308", "2.4e-308", *(f"{random_of.choice(['', '-'])}{random_of.uniform(1, 9):.3g}e{random_of.randrange(-323, -140)}" for _ in range(60)), "1"]
    with contextlib.closing(connect()) as db:
        db.execute("CREATE TABLE t(p, x)")
        db.execute("INSERT INTO t VALUES (1, 0.5)")
        for call in ("init()", "tier('t', 1e6, 1e12, 1e-6)", "protect('t', 'p')"):
            one(db, "SELECT dp_" + call)
        for number in range(300):
            lo, hi = random_of.choice(sizes), random_of.choice([random_of.choice(sizes), "1", "2.5", "1e-149", "9.9e-151"])
            kind, told = random_of.choice(["avg", "median", "var", "histogram"]), []
            for on in (0, 1):
                options = f'{{"lo":{lo},"hi":{hi},"name":"{number}.{on}"' + (',"bins":4' if kind == "histogram" else "") + "}"
                flush(on)
                try:
                    one(db, f"SELECT dp_release('t', '{kind}', 'SELECT x FROM t', ?)", options)
                    told.append(db.execute("SELECT granularity, sensitivity, weight FROM dp_release WHERE name = ?", (f"{number}.{on}",)).fetchall())
                    admitted += 1
                except sqlite3.Error as error:
                    told.append(str(error))
                finally:
                    flush(0)
            assert told[0] == told[1], (kind, lo, hi, told)
    assert 50 < admitted < 500
