"""Measures how often the 95% intervals of dp_value contain the exact figure, and writes bench/coverage.md. `make bench-coverage`

Each line has 2,000 figures at each of two tiers: a release and its diffusion. Kinds by group get 2,000 groups of the same rows in
one release, which are 2,000 independent figures. Other kinds get 2,000 releases. Private keys get groups until 2,000 of them are
published. The program calls the shipped SQL functions in a ledger with a policy.
"""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
PAGE = pathlib.Path(__file__).with_name("coverage.md")
FIGURES = 2000
TIERS = (("inner", 0.1), ("outer", 0.02))
LO, HI = 0.0, 100.0


def heavy(n):
    """Quantiles of a lognormal distribution."""
    return [round(math.exp(statistics.NormalDist(2, 1.5).inv_cdf((i + 0.5) / n)), 3) for i in range(n)]


DATA = {
    "2 rows at the ends": [0, 100], "5 rows": [3, 20, 50, 71, 98], "20 rows, even": [2.5 + 5 * i for i in range(20)],
    "50 rows, constant": [50] * 50, "50 rows at hi": [100] * 50, "50 rows, ties": [20] * 20 + [40] * 25 + [80] * 5,
    "50 rows, heavy tail, some beyond hi": heavy(50), "200 rows, even": [0.25 + 0.5 * i for i in range(200)],
    "200 rows, heavy tail": heavy(200),
}
EMPTY = {"no row": []}


def clipped(xs):
    return [min(max(x, LO), HI) for x in xs]


def quantile(q):
    """The row at rank 1/2 + q (n - 1), counted from the left."""
    return lambda xs: sorted(clipped(xs))[math.ceil(0.5 + q * (len(xs) - 1)) - 1]


def variance(xs):
    return statistics.pvariance(clipped(xs))


RANGE = {"lo": LO, "hi": HI}
# kind without group_ or ou_, its options, the exact figure, and whether it exists without rows
KINDS = [
    ("count", {}, len, True), ("sum", {"clip": 60}, lambda xs: sum(min(x, 60) for x in xs), True),
    ("avg", RANGE, lambda xs: statistics.fmean(clipped(xs)), False), ("var", RANGE, variance, False),
    ("stddev", RANGE, lambda xs: math.sqrt(variance(xs)), False), ("median", RANGE, quantile(0.5), False),
    ("quantile", {**RANGE, "q": 0.9}, quantile(0.9), False), ("histogram", {**RANGE, "bins": 4}, lambda xs: sum(25 <= x < 50 for x in xs), True),
]
TREES = ("median", "quantile")
OU = {"radius": 80, "centre": 10}


class Ledger:
    """A new database with the table t(unit, k, x) in memory, a policy, and two tiers with budgets that no release exhausts."""

    def __init__(self, rows):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="coverage-", dir=base)
        self.db = sqlite3.connect(f"{self.folder}/a.db", isolation_level=None)
        self.db.enable_load_extension(True)
        self.db.load_extension(str(BUILD / "diffuse"))
        self.db.execute("CREATE TABLE t(unit INTEGER PRIMARY KEY, k, x)")
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO t(k, x) VALUES (?, ?)", rows)
        self.db.execute("COMMIT")
        self.db.execute("SELECT dp_init(), dp_protect('t', 'unit')").fetchall()
        for name, rate in TIERS:
            self.db.execute("SELECT dp_tier(?, ?, 1e12, 0.1, 'rdp', 0.05)", (name, rate)).fetchall()

    def release(self, kind, options, query):
        self.db.execute("SELECT dp_release('inner', ?, ?, ?)", (kind, query, json.dumps(options))).fetchall()
        self.db.execute("SELECT dp_diffuse(?, 'outer')", (options["name"],)).fetchall()

    def figures(self, tier, component=0):
        return self.db.execute("SELECT value, low, high FROM dp_value WHERE tier = ? AND component = ?", (tier, component)).fetchall()

    def close(self):
        self.db.close()
        shutil.rmtree(self.folder)


def by_group(kind, options, xs, columns, count):
    """Returns the figures of `count` groups that all have the rows xs, by tier."""
    ledger = Ledger((key, x) for key in range(count) for x in xs)
    ledger.release(kind, {**options, "name": "r", "keys": list(range(count))}, f"SELECT {columns} FROM t")
    found = {tier: ledger.figures(tier, 1 if kind.endswith("histogram") else 0) for tier, _ in TIERS}
    ledger.close()
    return found


def one_by_one(kind, options, xs, columns, count):
    ledger = Ledger((0, x) for x in xs)
    for i in range(count):
        ledger.release(kind, {**options, "name": str(i)}, f"SELECT {columns} FROM t")
    found = {tier: ledger.figures(tier, 1 if kind.endswith("histogram") else 0) for tier, _ in TIERS}
    ledger.close()
    return found


def of_published_keys(kind, options, xs, columns, count):
    """Makes releases with private keys until `count` keys are published at each tier."""
    found, groups = {tier: [] for tier, _ in TIERS}, 2000
    ledger = Ledger((key, x) for key in range(groups) for x in xs)
    for i in range(60):
        ledger.release(kind, {**options, "name": str(i), "max_groups": 1, "key_share": 1e-4}, f"SELECT {columns} FROM t")
        if i % 10 == 0 or i < 5:
            found = {tier: ledger.figures(tier) for tier, _ in TIERS}
            if min(map(len, found.values())) >= count:
                break
    ledger.close()
    return found


def width_of(kind):
    """The width of the public range of a kind."""
    half = (HI - LO) / 2
    return half**2 if kind.endswith("var") else half if kind.endswith("stddev") else HI - LO


class Page:
    def __init__(self, count):
        self.count, self.lines, self.missed = count, [], []

    def section(self, title, text):
        self.lines += [f"\n## {title}\n", text + "\n", "| kind | rows | noise | inner | outer | whole range |", "|---|---|---|---:|---:|---:|"]

    def measure(self, ways, kind, options, name, xs, truth, columns, noise="Gaussian"):
        """Writes one line. An exact figure may be rounded differently here, so a figure counts as inside within 1e-9."""
        figures = ways(kind, options if noise == "Gaussian" else {**options, "mechanism": "laplace"}, xs, columns, self.count)
        shares, whole = [], 0
        for tier, _ in TIERS:
            rows = figures[tier]
            held = sum(low - 1e-9 <= truth <= high + 1e-9 for _, low, high in rows) / max(1, len(rows))
            whole += sum(high - low >= width_of(kind) for _, low, high in rows)
            shares.append(f"{100 * held:.1f}%" if len(rows) >= 200 else "-")
            if len(rows) >= 200 and held < 0.93:
                self.missed.append(f"{kind}, {name}, {noise}, {tier}: {100 * held:.1f}%")
        every = sum(len(rows) for rows in figures.values())
        is_ranged = not kind.endswith(("count", "sum", "histogram"))
        self.lines.append(f"| `{kind}` | {name} | {noise} | {shares[0]} | {shares[1]} | {f'{100 * whole / max(1, every):.0f}%' if is_ranged else ''} |")
        print(self.lines[-1], flush=True)


def columns_of(kind, with_key):
    return ("k" if with_key else "") if kind == "count" and with_key else ("k, x" if with_key else "x")


def measure_all(count, only):
    page = Page(count)
    some = ["2 rows at the ends", "20 rows, even", "50 rows at hi", "50 rows, heavy tail, some beyond hi"]
    if not only or only == "group":
        page.section("Public groups", "Groups of the same rows, all of them in one release.")
        for kind, options, truth, is_empty in KINDS:
            for name, xs in {**(EMPTY if is_empty else {}), **DATA}.items():
                for noise in ("Gaussian", "Laplace") if len(xs) <= 50 else ("Gaussian",):
                    page.measure(by_group, f"group_{kind}", {**options, "bins": 64} if kind in TREES else options, name, xs, truth(xs),
                                 columns_of(kind, True), noise)
    if not only or only == "single":
        page.section("Single figures", "One release for each figure.")
        for kind, options, truth, is_empty in KINDS:
            for name in ("5 rows", "200 rows, heavy tail"):
                xs = DATA[name]
                page.measure(one_by_one, kind, {**options, "bins": 64} if kind in TREES else options, name, xs, truth(xs), columns_of(kind, False))
    if not only or only == "ou":
        page.section("OU kinds", f"Values shrink towards {OU['centre']} (`radius` {OU['radius']}). The interval holds the true figure.")
        for kind, options, truth, is_empty in KINDS:
            if kind in TREES or kind == "histogram":
                continue
            for name in some:
                xs = DATA[name]
                page.measure(by_group, f"ou_group_{kind}", {**options, **OU}, name, xs, truth(xs), columns_of(kind, True))
    if not only or only == "keys":
        page.section("Private keys", "Shares among the published keys (`-`: fewer than 200 were published). A key that is rarely published owes "
                     "it to its noise.")
        for kind, options, truth, is_empty in KINDS:
            if kind in TREES or kind == "histogram":
                continue
            for n in (10, 20, 40):
                xs = [95.0] * n
                for noise in ("Gaussian", "Laplace"):
                    page.measure(of_published_keys, f"group_{kind}", options, f"{n} rows at 95", xs, truth(xs), columns_of(kind, True), noise)
    return page


HEAD = """# Coverage of the 95% intervals

`make bench-coverage` writes this page. Each number is the share of {count:,} figures whose interval
`low` to `high` in `dp_value` contains the exact figure. Goal: between 93% and 99.9%. With {count:,} figures, the standard error of 95%
is 0.5%. The inner tier has the rate {inner}, the outer tier {outer}; the outer figure is the inner one, diffused.

The exact figure is that of the clipped rows: values beyond `lo` = 0 and `hi` = 100 count as the nearer end, and each unit has one row,
so that nothing else is cut down. An interval says nothing about what clipping took away (`dp_clipping` does).

Shares above 99.9% are no alarm. The column "whole range" says how many intervals are all of [lo, hi]: there the noise is larger than
the data, and nothing narrower is known. An interval of a quantile consists of whole leaves (1/64 of the range each), so it holds more than 95% of the time where rows tie or the noise is smaller than a leaf. The variance of constant rows is the end 0 of its range, where an interval can miss on one side only.
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--figures", type=int, default=FIGURES)
    parser.add_argument("--only", help="group, single, ou or keys; writes no page")
    arguments = parser.parse_args()
    random.seed(1)
    began = time.time()
    page = measure_all(arguments.figures, arguments.only)
    commit = subprocess.run(["git", "log", "-1", "--format=%cs"], capture_output=True, text=True).stdout.strip()
    text = HEAD.format(count=arguments.figures, inner=TIERS[0][1], outer=TIERS[1][1]) + "\n".join(page.lines)
    text += "\n\n## Below 93%\n\n" + ("\n".join(f"- {line}" for line in page.missed) or "None.")
    text += f"\n\nMeasured on the commit of {commit} in {(time.time() - began) / 60:.0f} minutes.\n"
    if not arguments.only:
        PAGE.write_text(text)
    print(text.split("## Below 93%")[1])


if __name__ == "__main__":
    main()
