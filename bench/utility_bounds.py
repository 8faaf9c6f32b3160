"""make bench-bounds: measures what it costs to find bounds privately instead of knowing them.

    python3 bench/utility_bounds.py [--repetitions N]

The program asks for the sum and the average of a value in three tables: two real data sets, and a table in which one
value of a hundred thousand is absurd. One person with all their rows is protected. There are two budgets: that of one
question at (1, 1e-6), and a twentieth of its rate.

The best public bound is the bound with the least error at the whole rate, among the powers of two, and among all
numbers of a grid with steps of 5%. It needs somebody who knows the data. The private bound is the answer of dp_bounds,
which takes SHARE of the rate; the question gets the rest. A sum takes the larger end as its clip.

Errors are root-mean-square errors against plain SQL on the raw table (without the absurd value), so that the error of
clipping counts too. By design, dp_bounds finds a false end in one release of a thousand, and its bounds are then
useless. The program counts such releases (an end more than FALSE_END times too large) and leaves them out. It writes the
section "Bounds found privately" of bench/utility.md, and leaves the rest of the file alone.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import sqlite3

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
REPORT = HERE / "utility.md"
TITLE, NEXT = "## Bounds found privately", "\n## "
ONE = 0.028015  # dp_rate(1, 1e-6)
BUDGETS = {"one question": ONE, "one of twenty": ONE / 20}
SHARE = 0.1  # of the rate, for the bounds
FALSE_END = 64


def columns(path, *names):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([row[name] for row in rows]) for name in names]


def tables():
    """Yields (name, units, values, which values are true)."""
    student, reading = columns("fixtures/star.csv", "student_id", "reading")
    taken = reading != ""
    yield "star: reading", student[taken], reading[taken].astype(float), True
    patient, test, value = columns(BUILD / "nafld2.csv", "id", "test", "value")
    yield "nafld2: hdl", patient[test == "hdl"], value[test == "hdl"].astype(float), True
    rng = np.random.default_rng(5)
    minutes = np.round(rng.gamma(4, 15, 100_000), 1)
    minutes[0] = 1e9  # somebody typed a telephone number
    yield "absurd: minutes", np.arange(100_000), minutes, minutes < 1e9


class Data:
    """A table of rows, or of the totals of persons, in a database with the extension."""

    def __init__(self, units, values, rate):
        _, self.units = np.unique(units, return_inverse=True)
        self.values, self.rate, self.states = values, rate, {}
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.enable_load_extension(True)
        self.db.load_extension(str(BUILD / "diffuse"))
        self.one("SELECT dp_init()")
        self.one("SELECT dp_tier('t', ?, 1e15, 1e-6)", rate)
        self.db.execute("CREATE TABLE t(unit, x)")
        self.one("SELECT dp_protect('t', 'unit')")
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO t VALUES (?, ?)", zip(self.units.tolist(), values.tolist()))
        self.db.execute("COMMIT")

    def one(self, sql, *arguments):
        return self.db.execute(sql, arguments).fetchone()[0]

    def state(self, kind, **options):
        """The exact sums, which do not depend on the draw. They are computed once for each set of bounds."""
        key = (kind, json.dumps(options))
        if key not in self.states:
            whole = json.dumps({"whole_units": True, **options})
            self.states[key] = self.one("SELECT dp_partial(?, 'SELECT x FROM t', ?)", kind, whole)
        return self.states[key]

    def draw(self, kind, weight, **options):
        return self.one("SELECT dp_merge('t', dp_states(?), ?)", self.state(kind, **options), json.dumps({"weight": weight}))

    def sigma(self, kind, weight, **options):
        plan = self.one("SELECT dp_plan('t', ?, NULL, ?)", kind, json.dumps({"weight": weight, **options}))
        return json.loads(plan)["sigma"]


# ---- questions: how a bound is used, and what it costs ---------------------------------------------------------


def powers(most, step):
    """The powers of a step from a four-thousandth of the largest value to just above the largest value."""
    return [step**i for i in range(math.floor(math.log(most / 4000, step)), math.ceil(math.log(most, step)) + 1)]


class Sum:
    """The sum of persons' totals, each clipped to [-clip, clip]. The rows of the table are these totals."""

    name = "sum"

    def __init__(self, units, values, true, rate):
        ids = np.unique(units, return_inverse=True)[1]
        totals = np.bincount(ids, weights=values)
        self.data = Data(np.arange(len(totals)), totals, rate)
        self.truth = (values * true).sum()
        self.most = np.max(np.abs(np.bincount(ids, weights=values * true)))

    def grid(self, step):
        return powers(self.most, step)

    def answer(self, clip, weight):
        return self.data.draw("sum", weight, clip=clip)

    def exact(self, clip, weight):
        """The error, which is known exactly for a sum."""
        bias = np.clip(self.data.values, -clip, clip).sum() - self.truth
        return math.hypot(bias, self.data.sigma("sum", weight, clip=clip))

    def of_bounds(self, bounds):
        return max(abs(bounds[0]), abs(bounds[1]))


class Average:
    """The average of x in [lo, hi], with as many rows of a person as suit the table."""

    name = "average"

    def __init__(self, units, values, true, rate):
        self.data = Data(units, values, rate)
        self.truth = (values * true).sum() / (np.ones(len(values)) * true).sum()
        self.most, self.least = np.max(values * true), np.min(values)
        self.rows = int(np.quantile(np.bincount(self.data.units), 0.99))

    def grid(self, step):
        """Ranges [0, hi] and ranges that start where the data do."""
        below = 2.0 ** math.floor(math.log2(self.least)) if step == 2 else self.least
        return [(lo, hi) for lo in {0.0, below} for hi in powers(self.most, step) if hi > lo]

    def answer(self, bounds, weight):
        return self.data.draw("avg", weight, lo=bounds[0], hi=bounds[1], clip=self.rows)

    def exact(self, bounds, weight):
        """The error to first order: the bias of clamping, and the noise for the number of rows."""
        lo, hi = bounds
        clamped = np.clip(self.data.values, lo, hi)
        counts = np.bincount(self.data.units)
        factors = np.minimum(1, self.rows / counts)[self.data.units]
        mean = (clamped * factors).sum() / factors.sum()
        sigma = self.data.sigma("avg", weight, lo=lo, hi=hi, clip=self.rows)  # of the worst average, at an end
        slope = math.hypot(1, 2 * (mean - (lo + hi) / 2) / ((hi - lo) / 2)) / math.sqrt(5)
        return math.hypot(mean - self.truth, sigma * slope / factors.sum())

    def of_bounds(self, bounds):
        return bounds


# ---- measuring -------------------------------------------------------------------------------------------------------


def rms(errors):
    return float(math.sqrt(np.mean(np.square(errors))))


def measure(question, repetitions):
    """Returns the errors of the best public power of two, of the best public number and of dp_bounds, and how many releases of
    bounds had a false end, and how many had no answer."""
    twos, best = (min(question.exact(bound, 1) for bound in question.grid(step)) for step in (2.0, 1.05))
    errors, false, missing = [], 0, 0
    for _ in range(repetitions):
        found = json.loads(question.data.draw("bounds", SHARE) or "null")
        if found is None:
            missing += 1
        elif max(map(abs, found)) > FALSE_END * question.most:
            false += 1
        else:
            errors.append(question.answer(question.of_bounds(found), 1 - SHARE) - question.truth)
    return twos, best, rms(errors), false, missing


def number(x):
    digits = 2 - math.floor(math.log10(abs(x)))
    return f"{round(x, digits):,.{max(0, digits)}f}"


PREFACE = """\
Written by `make bench-bounds` ([utility_bounds.py](utility_bounds.py)): {repetitions} repetitions, Gaussian noise. One
person with all their rows is protected. The public bounds are those with the least error at the whole rate, which only
somebody who knows the data can choose: a power of two, or any number. `dp_bounds` takes {share:.0%} of the rate, and the
question the rest. The goal is at most 1.25 times the error of the best public power of two, because `dp_bounds` answers
with powers of two. Public numbers of any size can be more than twice as good. In one release of a thousand, an end is false
by design. Such releases are counted and left out. The truth leaves out the absurd value, one of a hundred thousand."""

HEAD = ("question", "budget", "truth", "best power of two", "best number", "dp_bounds", "of the power of two", "of the number",
        "false, none")


def section(repetitions):
    lines = [TITLE, "", PREFACE.format(repetitions=repetitions, share=SHARE), "", "| " + " | ".join(HEAD) + " |",
             "|---" * len(HEAD) + "|"]
    for name, units, values, true in tables():
        table, value = name.split(": ")
        for kind in (Sum, Average):
            for budget, rate in BUDGETS.items():
                question = kind(units, values, true, rate)
                twos, best, found, false, missing = measure(question, repetitions)
                cells = (f"{table}: {kind.name} of {value}", budget, number(question.truth), number(twos), number(best),
                         number(found), f"{found / twos:.2f}", f"{found / best:.2f}", f"{false}, {missing}")
                lines.append("| " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=300)
    text = section(parser.parse_args().repetitions)
    old = REPORT.read_text()
    start = old.find(TITLE)
    rest = old[start + 1:] if start >= 0 else ""
    after = rest[rest.index(NEXT):] if NEXT in rest else ""
    before = old[:start] if start >= 0 else old.rstrip("\n") + "\n\n"
    REPORT.write_text(before + text + after)
    print(f"wrote {REPORT}")


if __name__ == "__main__":
    main()
