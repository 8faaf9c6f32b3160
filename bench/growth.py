"""make bench-growth: measures how time and memory grow with rows, units, keys, dimension and the ledger's length, and
fits models to the measurements. Writes bench/growth.md and the SVG files in bench/growth/.

    python3 bench/growth.py [--most N] [--rounds N] [--only CURVE] [--output FILE]

The program measures as suite.py does: CPU time, one process for every measurement, medians of interleaved rounds. The
coefficients of a model are not negative and minimise the sum of squared relative deviations. The report states the
largest and the median relative deviation of the measured points. --most limits rows and charges. --only measures one
curve and takes the other curves from the last run (build/bench/growth-<most>.json).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import scipy.optimize

import generate
import ledger
import measure
from figures import plt, save

REPORT = measure.HERE / "growth.md"
PRIME = 2654435761  # id * PRIME % n takes every value below n equally often, in an irregular order
VECTORS = 4000
COORDINATE = 64  # bytes that all buffers together use for each coordinate of a row


def steps(low, high, most):
    """Returns the numbers 1, 3, 10, 30, ... from low to high that are at most `most`."""
    found, size = [], 1
    while size <= min(high, most):
        found += [n for n in (size, 3 * size) if low <= n <= min(high, most)]
        size *= 10
    return found


def query(database, sql, parameters=(), protects=None, extension=None):
    return {"job": {"call": "query", "database": str(database), "sql": sql, "parameters": list(parameters),
                    "protects": protects, "extension": extension}}


def made(table, rows):
    subprocess.run([sys.executable, measure.HERE / "generate.py", measure.TABLES, "--rows", str(rows),
                    "--tables", table], check=True, stdout=subprocess.DEVNULL)
    return measure.TABLES / f"{table}-{rows}.db"


# ---- measuring: every curve gives {series: [[x, {field: median}], ...]} -----------------------------------


def run(jobs, rounds):
    """Runs jobs, a list of (series, x, arguments of measure.run())."""
    results = measure.interleave([((series, x), job) for series, x, job in jobs], rounds)
    curves = {}
    for (series, x), found in results.items():
        fields = {}
        for name, value in found[0].items():
            if isinstance(value, dict):
                parts = {part: [result[name][part] for result in found] for part in value}
                fields |= {f"{name} {part}": float(np.median(values)) for part, values in parts.items()}
            elif not isinstance(value, str):
                fields[name] = measure.median(found, name)
        curves.setdefault(series, []).append((x, fields))
    return curves


def rows(most, rounds):
    path = made("visit", most)
    statements = {"sum(x)": ("SELECT sum(x)", None), "dp_sum, rows protected": ("SELECT dp_sum('t', x, 1000)", "row"),
                  "dp_sum, 1000 units": ("SELECT dp_sum('t', x, 1000)", "unit")}
    return run([(name, n, query(path, f"{sql} FROM visit WHERE id <= {n}", protects=protects))
                for n in steps(10**5, 10**8, most) for name, (sql, protects) in statements.items()], rounds)


def units(most, rounds):
    rows = most // 5
    path = made("visit", most)
    scan = f"FROM visit WHERE id <= {rows}"
    jobs = [("scan", rows, query(path, f"SELECT sum(x + 0 * (id * {PRIME} % {rows})) {scan}"))]
    sizes = sorted({*steps(10**3, 2 * 10**7, rows), rows})
    jobs += [("dp_sum", n, query(path, f"SELECT dp_sum('t', x, 1000) {scan}", protects="unit"))
             for n in sizes]
    return run(jobs, rounds)


def keys(most, rounds):
    rows, people = most // 100, most // 1000
    path = made("visit", most)
    jobs = []
    for n in steps(1, 10**5, most):
        option = json.dumps({"keys": list(range(n))})
        jobs.append(("two rows", n, query(
            path, "SELECT dp_release('t', 'group_count', 'SELECT id, 1 FROM visit WHERE id <= 2', json_set(?, '$.clip', 1))", [option], protects="unit")))
        jobs.append((f"{rows:,} rows of {people:,} units", n, query(
            path, f"SELECT dp_group_count('t', id * {PRIME} / 7 % {n}, 1, ?)"
                  f" FROM visit WHERE id <= {rows}", [option], protects="unit")))
    return run(jobs, rounds)


def dimension(most, rounds):
    sizes = [n for n in (1, 4, 16, 64, 256, 1024, 4096) if n <= most]
    path = generate.dimensions(measure.TABLES, sizes, VECTORS)
    jobs = []
    for n in sizes:
        jobs.append(("a loop that only decodes", n, query(path, f"SELECT decode_vector(v, {n}) FROM v{n}",
                                                          extension="bench/decode")))
        jobs.append(("dp_vec_sum, rows protected", n, query(path, f"SELECT dp_vec_sum('t', v, {n}, 10) FROM v{n}",
                                                            protects="row")))
        jobs.append(("dp_vec_sum, every row a unit", n, query(
            path, f"SELECT dp_vec_sum('t', v, {n}, 10) FROM v{n}", protects="unit")))
        jobs.append(("one row", n, query(path, f"SELECT dp_vec_sum('t', v, {n}, 10) FROM v{n} WHERE rowid = 1",
                                         protects="row")))
    return run(jobs, rounds)


def charges(most, rounds):
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", measure.BUILD)) as folder:
        curves = run([("ledger", n, {"syncs": True, "job": {"call": "ledger", "charges": n, "rounds": 21,
                                                            "folder": folder}})
                      for n in (1, 10, 100, 1000, 10**4, 10**5, 10**6) if n <= most], rounds)
        return {**curves, "bytes": list(ledger.sizes(folder).items())}


# ---- models ----------------------------------------------------------------------------------------------


def fit(terms, y):
    """Fits y by a sum of the terms (columns) with coefficients that are not negative. The coefficients minimise the sum
    of squared relative deviations. Returns the coefficients, the fitted values, and the largest and the median relative
    deviation."""
    y = np.asarray(y, dtype=float)
    columns = np.column_stack(terms)
    scale = np.abs(columns).max(axis=0)
    coefficients, _ = scipy.optimize.nnls(columns / scale / y[:, None], np.ones(len(y)))
    coefficients /= scale
    model = columns @ coefficients
    return coefficients, model, np.abs(model / y - 1)


def share_missed(level, size):
    """Returns the share of random accesses to this many bytes that miss the cache. Returns 0 if the machine does not
    tell the size of the cache."""
    cache = measure.caches().get(level, "")
    return np.maximum(0, 1 - int(cache[:-1]) * 1024 / size) if cache.endswith("K") else np.zeros(len(size))


def deviation(off):
    return f"{100 * off.max():.0f}% at most, {100 * np.median(off):.0f}% in the median"


def series(curve, name, field="cpu"):
    return np.array([x for x, _ in curve[name]], dtype=float), np.array([fields[field] for _, fields in curve[name]])


def time_of(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            return f"{measure.number(seconds / size)} {unit}"
    return f"{seconds * 1e9:.2g} ns" if seconds else "0"


class Plot:
    """Draws the measurements as points and the models as lines, with logarithmic axes."""

    def __init__(self, title, across, up):
        self.figure, self.axes = plt.subplots(figsize=(6.6, 4.2))
        self.axes.set(xscale="log", yscale="log", title=title, xlabel=across, ylabel=up)
        self.count = 0

    def add(self, x, y, model=None, label=""):
        colour = f"C{self.count}"
        self.count += 1
        self.axes.plot(x, y, "o", ms=4.5, color=colour, label=label)
        if model is not None:
            self.axes.plot(x, model, "-", lw=1.2, color=colour)

    def save(self, folder, name):
        self.axes.legend()
        save(self.figure, folder, name)


def linear(curve, plot, names, what, x_of=lambda x: x):
    """Fits each series by a + b * x. Returns rows of a table: series, a, b, deviation."""
    body = []
    for name in names:
        x, y = series(curve, name)
        (a, b), model, off = fit((np.ones(len(x)), x_of(x)), y)
        plot.add(x, y, model, name)
        body.append((f"`{name}`" if name == "sum(x)" else name, time_of(a), f"{time_of(b)} {what}", deviation(off)))
    return body


def report_rows(curve, folder):
    plot = Plot("Rows", "rows", "seconds of CPU time")
    body = linear(curve, plot, curve, "a row")
    plot.save(folder, "rows")
    return ["## Rows", "", "a + b · rows. A release reads its rows once, in one pass, and nothing that it keeps grows"
            " with them: memory is that of the units. What is fixed, a, is the ledger's two commits.", "",
            *measure.table(("statement", "a", "b", "deviation"), body), "", "![rows](growth/rows.svg)"]


def report_units(curve, folder):
    rows = curve["scan"][0][0]
    scan = curve["scan"][0][1]["cpu"]
    x, y = series(curve, "dp_sum")
    _, memory = series(curve, "dp_sum", "memory")
    base = curve["scan"][0][1]["memory"]
    table = np.maximum(memory - base, 1)
    terms, names = [np.ones(len(x)), x / rows], ["every row: its scan and its unit", "every unit, once"]
    for level in ("L2", "L3"):
        missed = share_missed(level, table)
        if missed.any():
            terms.append(missed)
            names.append(f"a row whose unit is not in {level} ({measure.caches()[level]})")
    each = y / rows
    found, model, off = fit(terms, each)
    plot = Plot("Units", "units", "ns of CPU time a row")
    plot.add(x, each * 1e9, model * 1e9, f"dp_sum, {rows:,} rows")
    plot.axes.set(yscale="linear", ylim=(0, None))
    axes = plot.axes.twinx()
    seen = table > 2**18  # smaller tables may use pages that the process already has
    axes.plot(x[seen], table[seen] / x[seen], "s", ms=4, color="grey", alpha=0.6)
    axes.set(ylabel="bytes of memory for a unit (grey)", ylim=(0, None))
    axes.grid(False)
    plot.save(folder, "units")
    body = [(name, time_of(value)) for name, value in zip(names, found)]
    millions = table[x >= min(10**6, x.max())] / x[x >= min(10**6, x.max())]
    return ["## Units", "", f"{rows:,} rows of n units in random order. To scan the rows and to evaluate the"
            f" unit takes {time_of(scan / rows)} a row without a release. A row finds the total of its unit in a hash"
            " table. While the table fits a cache that costs nothing to speak of; then the share of rows that miss it is 1 −"
            " (size of the cache) / (size of the table), and each pays what is left of a memory access after"
            " prefetching. A table of 2 MiB or more asks for huge pages, so that no step follows where the TLB ends;"
            " where the system gives none, it comes with that of L3. Every unit costs once more: its slot is made,"
            " moved when the table grows, and clipped at the end.",
            "", *measure.table(("cost of", "time"), body), "",
            f"Deviation: {deviation(off)}. Memory: {millions.min():.0f} to {millions.max():.0f} bytes for a unit from"
            f" {int(min(10**6, x.max())):,} units on; between these the table doubles.", "",
            "![units](growth/units.svg)"]


def report_keys(curve, folder):
    plot = Plot("Keys of a group release", "public keys", "seconds of CPU time")
    few, many = curve
    body = linear(curve, plot, [few], "a key")
    x, y = series(curve, many)
    rows, units = (int(part.replace(",", "")) for part in (many.split()[0], many.split()[3]))
    pairs = units * x * -np.expm1(rows * np.log1p(-1 / (units * x + 1)))  # expected number of different pairs among random pairs
    (a, b, c), model, off = fit((np.ones(len(x)), x, pairs), y)
    plot.add(x, y, model, many)
    plot.save(folder, "keys")
    return ["## Keys", "", "Every key is drawn and stored, whether a row has it or not: a + b · keys. With many rows,"
            " there is a record for each pair of unit and key that occurs: among random pairs their number"
            " rises with the keys until every row is a pair of its own, and a + b · keys + c · pairs says what that"
            " costs.", "", *measure.table(("release", "a", "b", "deviation"), body
            + [(many, time_of(a), f"{time_of(b)} a key, {time_of(c)} a pair", deviation(off))]), "",
            "![keys](growth/keys.svg)"]


def report_dimension(curve, folder):
    plot = Plot("Dimension of a vector", "dimension", "seconds of CPU time")
    body = []
    for name in curve:
        x, y = series(curve, name)
        rows = 1 if name == "one row" else VECTORS
        terms = [np.ones(len(x)), rows * x]
        missed = share_missed("L1", COORDINATE * x)
        if name.startswith("dp_") and missed.any():
            terms.append(rows * x * missed)
        found, model, off = fit(terms, y)
        plot.add(x, y, model, name)
        body.append((name, *map(time_of, found), *[""] * (3 - len(found)), deviation(off)))
    plot.save(folder, "dimension")
    return ["## Dimension", "", f"{VECTORS:,} rows of float32: a + b · rows · dimension + c · rows · dimension · (share that"
            f" misses L1), with {COORDINATE} bytes of work for a coordinate (the row's, the unit's and the total's). With"
            " units every unit has a vector of its own, so memory is units · dimension. One row alone shows what drawing"
            " and storing a coordinate costs: a + b · dimension.", "",
            *measure.table(("release", "a", "b, a coordinate", "c, one that misses L1", "deviation"), body), "",
            "![dimension](growth/dimension.svg)"]


def report_charges(curve, folder):
    plot = Plot("Length of the ledger", "charges in the ledger", "seconds of CPU time")
    x = np.array([fields["charges"] for _, fields in curve["ledger"]], dtype=float)
    body = []
    shapes = (("release", "one release", "a + b · log₂ charges", np.log2(x)),
              ("budget", "`SELECT * FROM dp_budget`", "a", None), ("exposure", "`dp_exposure()`", "a + b · charges", x))
    for part, label, shape, growing in shapes:
        y = np.array([fields[f"{part} cpu"] for _, fields in curve["ledger"]])
        found, model, off = fit([np.ones(len(x))] + ([] if growing is None else [growing]), y)
        plot.add(x, y, model, label.strip("`"))
        body.append((label, shape, ", ".join(map(time_of, found)), time_of(y[0]), time_of(y[-1]), deviation(off)))
    plot.save(folder, "charges")
    clock = [fields["release seconds"] for _, fields in curve["ledger"]]
    syncs = [fields["release sync"] for _, fields in curve["ledger"]]
    return ["## Length of the ledger", "", "What is spent is kept in sums, so a charge looks at no other charge: it"
            " walks down B-trees, whose depth is the logarithm of their length. `dp_exposure()` adds up the history."
            f" By the clock a release took {time_of(min(clock))} to {time_of(max(clock))}, of which"
            f" {time_of(min(syncs))} to {time_of(max(syncs))} waiting for the disk.", "",
            *measure.table(("statement", "model", "a, b", f"at {x[0]:,.0f}", f"at {x[-1]:,.0f}", "deviation"), body),
            "", "![charges](growth/charges.svg)", "",
            "A release that is published at three tiers takes this much of the ledger's file. A median has a number for each"
            " node of its tree at each tier, and with a `grid` its tree has only as many leaves as there are values.", "",
            *measure.table(("release", "bytes"), [(name, f"{size:,.0f}") for name, size in curve["bytes"]])]


BEYOND = """## Beyond one machine

One release uses one core, or with `dp_release` and `PRAGMA threads` as many as read one file (0.7 of the time of `sum(x)`
with two, [results.md](results.md)): SQLite steps through its rows one by one. Nothing is approximate on the way from the rows to
the total, which is a sum of integers, one clipped vector for each unit, so the work divides exactly where units
divide: split the rows by unit, let every part add up its own, and add the totals; the noise is drawn once, at the end.
The limits of one machine are memory for the units and the time of one pass, both above. The parts are
made by `dp_partial` and added up by `dp_merge` ([reference](../sql/shards.md)); `make bench-shards`
does it with Dask over a folder of databases."""

CURVES = {"rows": (rows, report_rows), "units": (units, report_units), "keys": (keys, report_keys),
          "dimension": (dimension, report_dimension), "charges": (charges, report_charges)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=10**8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=CURVES)
    parser.add_argument("--output", type=pathlib.Path, default=REPORT)
    arguments = parser.parse_args()
    measure.TABLES.mkdir(parents=True, exist_ok=True)
    kept = measure.TABLES / f"growth-{arguments.most}.json"
    curves = json.loads(kept.read_text()) if arguments.only and kept.exists() else {}
    for name in [arguments.only] if arguments.only else CURVES:
        print(name, file=sys.stderr, flush=True)
        curves[name] = CURVES[name][0](arguments.most, arguments.rounds)
        kept.write_text(json.dumps(curves))
    folder = arguments.output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# How cost grows", "",
             f"Written by `make bench-growth` ([growth.py](growth.py)): CPU time, medians of {arguments.rounds}"
             " interleaved rounds. Points are measured, lines are the models, fitted to the least relative deviation."
             " Ratios to other systems: [results.md](results.md).", ""]
    lines += [f"- {line}" for line in measure.machine()]
    for name, (_, report) in CURVES.items():
        if name in curves:
            lines += ["", *report(curves[name], folder)]
    arguments.output.write_text("\n".join(lines) + "\n\n" + BEYOND + "\n")
    print(f"wrote {arguments.output.name}")


if __name__ == "__main__":
    main()
