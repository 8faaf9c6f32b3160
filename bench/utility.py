"""make bench-utility: measures the errors of the answers of diffuse and of other systems at the same (epsilon,
delta).

    python3 bench/utility.py [--only TEXT] [--system NAME] [--repetitions N] [--seconds S]

The program asks questions about two real tables and protects persons with all their rows. It measures the
root-mean-square error against plain SQL on the raw table, so that the error of clipping counts too. There are two
settings: one question at (1, 1e-6), and one question of a batch of 20 questions that together cost (1, 1e-6).
bench/utility_systems.py asks each system. Every system runs in a process of its own. The program names and leaves out
systems that are not installed (make deps-utility).

All systems choose contribution bounds from the same public grid. Every system gets the bound that gives this system the
least error. If a system offers a choice of noise and accounting, the program uses the best choice. To find the best
bound and choice, the program runs SCAN repetitions of every candidate and then all repetitions of the two best
candidates.

The program writes each result to build/utility.json at once. A new result replaces an earlier result for the same cell
of the table. The program writes bench/utility.md from this file. --only selects questions by a part of their name.
--system selects one system.
"""

import argparse
import csv
import dataclasses
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
RESULTS = BUILD / "utility.json"
REPORT = HERE / "utility.md"
LIBRARIES = {"diffuse": None, "SmartNoise SQL": "python-utility-smartnoise"}  # all other systems use python-utility
PACKAGES = {"OpenDP": ["opendp", "polars"], "SmartNoise SQL": ["smartnoise_sql", "opendp"],
            "diffprivlib": ["diffprivlib"], "PipelineDP": ["pipeline_dp", "python_dp", "dp_accounting"]}
SETTINGS = {"one": 1, "batch": 20}
SCAN = 48
LEAST = 20  # repetitions of a final measurement, however slow the system is


# ---- questions ---------------------------------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class Question:
    name: str  # table and kind
    kind: str
    sql: str  # the question, as SQL for readers
    units: np.ndarray
    values: np.ndarray
    keys: np.ndarray | None  # keys 0 .. keys_count - 1, which are all public
    keys_count: int
    lo: float
    hi: float
    clips: list  # bounds for diffuse, in rows
    bounds: list  # (largest number of keys of a person, largest number of rows per key)
    totals: list  # largest number of rows of a person
    step: float  # values are multiples of it; for medians
    truth: object = None

    def __post_init__(self):
        # the possible values of a median, for systems that need a list
        self.candidates = [float(x) for x in np.arange(self.lo, self.hi + self.step, self.step)]
        one = {"persons": lambda: len(np.unique(self.units)), "rows": lambda: len(self.units),
               "sum": lambda: self.values.sum(), "mean": lambda: self.values.mean(),
               "median": lambda: np.sort(self.values)[(len(self.values) - 1) // 2]}
        if self.keys is None:
            self.truth = float(one[self.kind]())
            return
        count = np.bincount(self.keys, minlength=self.keys_count)
        total = np.bincount(self.keys, weights=self.values, minlength=self.keys_count)
        self.truth = {"group counts": count, "group sums": total, "group means": total / count}[self.kind]


def columns(path, *names):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([row[name] for row in rows]) for name in names]


def questions():
    found = []

    def ask(table, kind, sql, units, values, keys, lo, hi, rows, l0, linf=None, step=1):
        _, units = np.unique(units, return_inverse=True)
        keys_count = 0 if keys is None else int(keys.max()) + 1
        l0 = [1] if keys is None else l0
        rows = [1] if kind == "persons" else rows
        linf = linf or rows
        clips = [0.5, 0.7] + rows if kind == "group sums" else rows
        found.append(Question(f"{table}: {kind}", kind, sql, units, values.astype(float), keys, keys_count, lo, hi,
                              clips, [(a, b) for a in l0 for b in linf], rows, step))

    student, school, reading = columns("fixtures/star.csv", "student_id", "school_id", "reading")
    taken = reading != ""
    some = student[taken], reading[taken].astype(float)
    of_school = school.astype(int) - 1
    wide = [1, 2, 3, 4]
    everyone = student, np.ones(len(student)), None
    ask("star", "persons", "count(DISTINCT student_id)", *everyone, 0, 1, [1], [1])
    ask("star", "rows", "count(reading)", *some, None, 300, 800, wide, [1])
    ask("star", "sum", "sum(reading), in 300..800", *some, None, 300, 800, wide, [1])
    ask("star", "mean", "avg(reading), in 300..800", *some, None, 300, 800, wide, [1])
    ask("star", "median", "median of reading, in 300..800", *some, None, 300, 800, wide, [1])
    ask("star", "group counts", "count(*) by school (80)", student, np.ones(len(student)), of_school, 0, 1, wide,
        [1, 2], [1, 2, 4])
    some += (of_school[taken],)
    ask("star", "group sums", "sum(reading) by school (80)", *some, 300, 800, wide, [1, 2], [1, 2, 4])
    ask("star", "group means", "avg(reading) by school (80)", *some, 300, 800, wide, [1, 2], [1, 2, 4])

    # Values of which many are equal, and values most of which lie in a small part of the range.
    random = np.random.default_rng(7)
    people = np.arange(50_000)
    days = np.where(random.random(5_000) < 0.48, 0, np.minimum(random.geometric(0.12, 5_000), 365))
    incomes = np.clip(np.round(np.exp(random.normal(10.3, 0.9, len(people))), -2), 0, 1_000_000)
    ask("sick", "median", "median of days, in 0..365", people[:5_000], days, None, 0, 365, [1], [1])
    ask("incomes", "median", "median of income, in 0..1,000,000 by 100", people, incomes, None, 0, 1_000_000, [1], [1],
        step=100)

    path = BUILD / "nafld2.csv"
    if not path.exists():
        print(f"{path} is not there (make deps-utility): the questions about nafld2 are left out", file=sys.stderr)
        return found
    patient, days, test, value = columns(path, "id", "days", "test", "value")
    value, days = value.astype(float), days.astype(int)
    hdl = test == "hdl"
    some = patient[hdl], value[hdl]
    year = np.floor(days / 365).astype(int)
    near = hdl & (year >= -10) & (year < 10)
    by_year = patient[near], value[near], year[near] + 10
    tests = np.unique(test, return_inverse=True)[1]
    wide = [1, 2, 4, 8, 16, 32, 64, 128]
    ask("nafld2", "persons", "count(DISTINCT id)", patient, np.ones(len(patient)), None, 0, 1, [1], [1])
    ask("nafld2", "rows", "count(*)", patient, np.ones(len(patient)), None, 0, 1, wide, [1])
    ask("nafld2", "sum", "sum(value) of test hdl, in 0..150", *some, None, 0, 150, wide, [1])
    ask("nafld2", "mean", "avg(value) of test hdl, in 0..150", *some, None, 0, 150, wide, [1])
    ask("nafld2", "median", "median value of test hdl, in 0..150", *some, None, 0, 150, wide, [1])
    persons, counts = np.unique(patient, return_counts=True)
    ask("nafld2 by person", "median", "median of a person's rows, in 0..300", persons, counts, None, 0, 300, [1], [1])
    ask("nafld2", "group counts", "count(*) by test (4)", patient, np.ones(len(patient)), tests, 0, 1, wide, [1, 2, 3],
        [16, 32, 64, 128])
    ask("nafld2", "group sums", "sum(value) of hdl by year (20), in 0..150", *by_year, 0, 150, wide[:6],
        [1, 4, 8, 16], [1, 2, 4])
    ask("nafld2", "group means", "avg(value) of hdl by year (20), in 0..150", *by_year, 0, 150, wide[:6],
        [1, 4, 8, 16], [1, 2, 4])
    return found


# ---- measuring, one system in a process --------------------------------------------------------------


def repeat(draw, question, most, seconds, least=4):
    """Returns the errors of at most `most` draws, as many as fit into `seconds`, but at least `least`."""
    stop, errors = time.monotonic() + seconds, []
    while len(errors) < most and (len(errors) < least or time.monotonic() < stop):
        answer = np.asarray(draw(), dtype=float)
        if question.kind in ("mean", "group means"):
            answer = np.clip(answer, question.lo, question.hi)
        errors.append(answer - question.truth)
    return np.array(errors)


def rms(errors):
    return float(math.sqrt(np.mean(np.square(errors))))


def measure(system, question, share, repetitions, seconds):
    candidates = system.candidates(question, share)
    if len(candidates) > 1:
        scanned = [(rms(repeat(draw, question, SCAN, seconds / 20)), label, draw) for label, draw in candidates]
        scanned.sort(key=lambda entry: entry[0])
        candidates = [entry[1:] for entry in scanned[:2]]
    best = None
    for label, draw in candidates:
        errors = repeat(draw, question, repetitions, seconds, min(LEAST, repetitions))
        if best is None or rms(errors) < best["rmse"]:
            best = {"rmse": rms(errors), "bias": rms(errors.mean(axis=0)), "spread": rms(errors - errors.mean(axis=0)),
                    "repetitions": len(errors), "label": label}
    return best


def run_system(name, only, repetitions, seconds):
    """Prints one JSON object per cell."""
    import logging
    import warnings

    import utility_systems

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    system = utility_systems.SYSTEMS[name]()
    for question in questions():
        if only and only not in question.name:
            continue
        for setting, share in SETTINGS.items():
            start = time.monotonic()
            try:
                cell = measure(system, question, share, repetitions, seconds)
            except utility_systems.Cannot as reason:
                cell = {"cannot": str(reason)}
            cell.update(system=name, question=question.name, setting=setting, took=time.monotonic() - start)
            print(json.dumps(cell), flush=True)


# ---- the report --------------------------------------------------------------------------------------


def versions(name):
    folder = BUILD / (LIBRARIES.get(name) or "python-utility")
    found = []
    for package in PACKAGES.get(name, []):
        for info in folder.glob(f"{package}-*.dist-info"):
            found.append(info.name[: -len(".dist-info")].replace("-", " ").replace("_", "-"))
    return ", ".join(found)


def number(x):
    if x == 0 or not math.isfinite(x):
        return str(x)
    digits = 2 - math.floor(math.log10(abs(x)))
    return f"{round(x, digits):,.{max(0, digits)}f}"


def is_good(cell, best):
    """Returns whether an error is at most a tenth above the best one, or more by two standard errors at most."""
    noise = math.sqrt(0.5 / cell["repetitions"] + 0.5 / best["repetitions"])
    return cell["rmse"] <= 1.1 * best["rmse"] * (1 + 2 * noise)


def show(cell, best):
    if cell is None:
        return "not measured"
    if "cannot" in cell:
        return cell["cannot"]
    value = number(cell["rmse"])
    if is_good(cell, best):
        value = f"**{value}**"
    few = f"; {cell['repetitions']} runs" if cell["repetitions"] < 200 else ""
    bias = f"; bias {number(cell['bias'])}" if cell["bias"] > 0.5 * cell["rmse"] else ""
    detail = (cell["label"] + bias + few).removeprefix("; ")
    return f"{value} <br><sub>{detail}</sub>" if detail else value


def write_report():
    import measure
    import utility_systems

    cells = {(c["setting"], c["question"], c["system"]): c for c in json.loads(RESULTS.read_text()).values()}
    systems = [name for name in utility_systems.SYSTEMS if any(name == system for _, _, system in cells)]
    old = REPORT.read_text() if REPORT.exists() else ""
    remarks = old[old.index("## Where diffuse loses"):] if "## Where diffuse loses" in old else ""
    lines = ["# Utility", "",
             "Root-mean-square error against plain SQL on the raw table, at the same (epsilon, delta), for one person with all"
             " their rows. Groups: over all keys, which are public. Written by `make bench-utility` ([utility.py](utility.py))"
             f" on {datetime.date.today()}, on {measure.machine()[0]}, {measure.machine()[1]}. Every system gets the"
             " contribution bound and the noise, from one public grid, that suit it best (shown small: c, k: rows of a"
             " person; l0: keys of a person, linf: rows per key; the bias where it is more than half of the error). Bold:"
             " the least error, and what is within a tenth of it up to two standard errors of the runs. At least 200 runs, or as"
             " many as are shown. An error of n runs has itself a relative standard error of 0.7 (normal noise) to 1.1 (Laplace"
             " noise) divided by the root of n.", "",
             "Tables: `star`, 26,796 rows of 11,598 students, at most 4 each ([fixtures](../fixtures/README.md));"
             " `nafld2`, 205,435 rows of 15,666 patients, at most 257 each: laboratory tests of the R package survival"
             " (Debian: r-cran-survival) without the tests chol and dbp, which repeat hdl and sbp. Synthetic: `sick`, 5,000"
             " persons of whom 48% have 0 days; `incomes`, 50,000 log-normal values, in hundreds."]
    titles = {"one": "One question at (1, 1e-6)", "batch": "One of 20 such questions that together cost (1, 1e-6)"}
    for setting, title in titles.items():
        asked, lost = 0, []
        lines += ["", f"## {title}", "", "| question | truth | " + " | ".join(systems) + " |",
                  "|---" * (2 + len(systems)) + "|"]
        for question in questions():
            row = [cells.get((setting, question.name, system)) for system in systems]
            best = min((c for c in row if c and "rmse" in c), key=lambda c: c["rmse"], default=None)
            asked += row[0] is not None
            if row[0] and not is_good(row[0], best):
                lost.append(f"{question.name.split(':')[0]}: {question.sql}")
            truth = number(question.truth) if question.keys is None else "mean " + number(float(question.truth.mean()))
            lines.append(f"| {question.name.split(':')[0]}: {question.sql} | {truth} | "
                         + " | ".join(show(cell, best) for cell in row) + " |")
        lines += ["", f"{systems[0]} is best, or not clearly more than a tenth worse, in {asked - len(lost)} of {asked} questions"
                  + (f". It is not in: {'; '.join(lost)}." if lost else ".")]
    lines += ["", "## How each system was asked", ""]
    for name in systems:
        installed = versions(name)
        lines.append(f"- **{name}**{f' ({installed})' if installed else ''}: {utility_systems.NOTES[name]}")
    REPORT.write_text("\n".join(lines) + "\n" + ("\n" + remarks if remarks else ""))
    print(f"wrote {REPORT}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="part of a question's name, such as 'mean' or 'star: sum'")
    parser.add_argument("--system", default="", help="one system")
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10, help="at most, for a cell's final measurement")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return run_system(arguments.system, arguments.only, arguments.repetitions, arguments.seconds)

    import utility_systems

    for name in [arguments.system] if arguments.system else utility_systems.SYSTEMS:
        library = LIBRARIES.get(name, "python-utility")
        path = str(BUILD.resolve() / library) if library else ""
        if path and not pathlib.Path(path).is_dir():
            print(f"{name}: {path} is not there (make deps-utility)")
            continue
        command = [sys.executable, __file__, "--child", "--system", name, "--only", arguments.only,
                   "--repetitions", str(arguments.repetitions), "--seconds", str(arguments.seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1",
                                   "POLARS_MAX_THREADS": "1"}) as child:
            for line in child.stdout:
                if not line.startswith("{"):
                    continue
                cell = json.loads(line)
                results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
                results[" / ".join((cell["question"], cell["setting"], name))] = cell
                RESULTS.write_text(json.dumps(results, indent=1))
                what = cell.get("cannot") or f"{number(cell['rmse'])} ({cell['label']}; bias {number(cell['bias'])})"
                print(f"{cell['setting']:5} {cell['question']:22} {name:14} {what}  [{cell['took']:.0f} s]", flush=True)
        if child.returncode:
            print(f"{name}: stopped with status {child.returncode}", file=sys.stderr)
    write_report()


if __name__ == "__main__":
    main()
