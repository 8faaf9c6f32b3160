"""make bench: measures the time of every aggregate, of SQLite itself, of plain SQL that bounds contributions, of
DuckDB and of other systems, all in one run. Also measures the time of a small release. Writes bench/results.md.

    python3 bench/suite.py [--rows N] [--rounds N] [--only SECTION] [--output FILE]

Every measurement is a process of its own, and every result is the median of interleaved rounds. A ratio divides a time
by the time of sum(x) over the same table in the same round. Time is CPU time, which other programs on the machine
disturb less than clock time. The tables are in the system's cache, so on an idle machine CPU time equals clock time.
Memory is the growth of the process's peak during the statement. The report lists the systems that are not installed
(make deps-bench). --only measures one section and takes the other sections from the last run
(build/bench/results-<rows>.json).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import measure
from children import CLIP, CONTRIBUTIONS

REPORT = measure.HERE / "results.md"
MANY = 4   # about sixty statements, many of them slow, use a table with rows / MANY rows
AROUND = 1.0  # what an aggregate may add to the ratio of its question
SLOW = 10  # statements that take a minute or more use a table with rows / SLOW rows
KEYS = json.dumps(list(range(1000)))
THREADS = (1, 2) if os.cpu_count() > 1 else (1,)
MEMORY = "/dev/shm"  # a file system in memory, if the system has one

# name: (arguments of the aggregate, columns for dp_release, its options, SQLite's counterpart, table)
AVERAGE = "x, 0, 1000", "x", '"lo":0,"hi":1000'
SORTED = "SELECT x FROM {table} ORDER BY x LIMIT 1 OFFSET (SELECT count(*) / 2 FROM {table})"
BY_KEY = "SELECT sum(x) FROM (SELECT x, row_number() OVER (PARTITION BY key ORDER BY x) AS n FROM {table}) WHERE n = 1"
VECTORS = "SELECT decode_vector(v, 32) FROM {table}"
MODEL = '{"n":ROWS,"dim":32,"clip":10,"radius":1}'  # rows are protected; neighbours replace a row
# The kernel is so noisy that its cost is within the rate of the tier.
KERNEL = json.dumps([[x, y, 0.2503 if x == y else 0.2499] for x in range(4) for y in range(4)])
REPORTS = '{"n":ROWS,"otherwise":"0"}'  # rows are protected; neighbours replace a row
RELEASES_ONLY = ("sgd", "response_count")  # the kinds that only dp_release() has
AGGREGATES = {
    "count": ("x, 10", "x", '"clip":10', "SELECT count(x) FROM {table}", "visit"),
    "count_distinct": ("", "", "", "SELECT count(DISTINCT unit) FROM {table}", "visit"),
    "sum": ("x, 1000", "x", '"clip":1000', "SELECT sum(x) FROM {table}", "visit"),
    "bounds": ("x", "x", "", "SELECT max(x) FROM {table}", "visit"),
    "avg": (*AVERAGE, "SELECT avg(x) FROM {table}", "visit"),
    "var": (*AVERAGE, "SELECT avg(x * x) - avg(x) * avg(x) FROM {table}", "visit"),
    "stddev": (*AVERAGE, "SELECT avg(x * x) - avg(x) * avg(x) FROM {table}", "visit"),
    "quantile": ("x, '[0.1, 0.5, 0.9]', 0, 1000", "x", '"q":[0.1,0.5,0.9],"lo":0,"hi":1000', SORTED, "visit"),
    "median": (*AVERAGE, SORTED, "visit"),
    "histogram": ("x, 0, 1000, 100", "x", '"clip":1,"lo":0,"hi":1000,"bins":100',
                  "SELECT sum(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY CAST(x / 10 AS INTEGER))", "visit"),
    "vec_sum": ("v, 32, 10", "v", '"dim":32,"clip":10', VECTORS, "track"),
    "vec_avg": ("v, 32, 1", "v", '"dim":32,"clip":1', VECTORS, "track"),
    "group_count": ("key, 10", "key", '"clip":10',
                    "SELECT sum(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY key)", "basket"),
    "group_sum": ("key, x, 1000", "key, x", '"clip":1000',
                  "SELECT sum(n) FROM (SELECT sum(x) AS n FROM {table} GROUP BY key)", "basket"),
    "group_avg": ("key, x, 0, 1000", "key, x", '"lo":0,"hi":1000',
                  "SELECT sum(n) FROM (SELECT avg(x) AS n FROM {table} GROUP BY key)", "basket"),
    "group_var": ("key, x, 0, 1000", "key, x", '"lo":0,"hi":1000',
                  "SELECT sum(n) FROM (SELECT avg(x * x) - avg(x) * avg(x) AS n FROM {table} GROUP BY key)", "basket"),
    "group_stddev": ("key, x, 0, 1000", "key, x", '"lo":0,"hi":1000',
                     "SELECT sum(n) FROM (SELECT sqrt(avg(x * x) - avg(x) * avg(x)) AS n FROM {table} GROUP BY key)", "basket"),
    "group_count_distinct": ("key", "key", '"clip":2',
                             "SELECT sum(n) FROM (SELECT count(DISTINCT unit) AS n FROM {table} GROUP BY key)", "basket"),
    "group_histogram": ("key, x, 0, 1000, 10", "key, x", '"clip":1,"lo":0,"hi":1000,"bins":10',
                        "SELECT sum(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY key, CAST(x / 100 AS INTEGER))", "basket"),
    "group_quantile": ("key, x, 0.9, 0, 1000", "key, x", '"q":0.9,"lo":0,"hi":1000,"bins":64', BY_KEY, "basket"),
    "group_median": ("key, x, 0, 1000", "key, x", '"lo":0,"hi":1000,"bins":64', BY_KEY, "basket"),
    "choice": (f"key, '{KEYS}'", "key", f'"candidates":{KEYS}',
               "SELECT key FROM {table} GROUP BY key ORDER BY count(DISTINCT unit) DESC LIMIT 1", "basket"),
    "response_count": (f"key % 4, '{KERNEL}', " + repr(REPORTS), "key % 4", f'"kernel":{KERNEL},' + REPORTS[1:-1],
                       "SELECT sum(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY key % 4)", "basket"),
    "sgd": ("unit % 2, v, 'logistic', " + repr(MODEL), "unit % 2, v", '"loss":"logistic",' + MODEL[1:-1], VECTORS,
            "track"),
    "ou_count": ("x, 1e7, 10", "x", '"radius":1e7,"clip":10', "SELECT count(x) FROM {table}", "visit"),
    "ou_sum": ("x, 1000, 1e9", "x", '"clip":1000,"radius":1e9', "SELECT sum(x) FROM {table}", "visit"),
    "ou_avg": ("x, 0, 1000, 500", "x", '"lo":0,"hi":1000,"radius":500', "SELECT avg(x) FROM {table}", "visit"),
    "ou_count_distinct": ("1e7", "", '"radius":1e7', "SELECT count(DISTINCT unit) FROM {table}", "visit"),
    "ou_var": ("x, 0, 1000, 1e5", "x", '"lo":0,"hi":1000,"radius":1e5', "SELECT avg(x * x) - avg(x) * avg(x) FROM {table}", "visit"),
    "ou_stddev": ("x, 0, 1000, 500", "x", '"lo":0,"hi":1000,"radius":500',
                  "SELECT sqrt(avg(x * x) - avg(x) * avg(x)) FROM {table}", "visit"),
    "ou_quantile": ("x, 0.9, 0, 1000, 500", "x", '"q":0.9,"lo":0,"hi":1000,"radius":500',
                    SORTED, "visit"),
    "ou_median": ("x, 0, 1000, 500", "x", '"lo":0,"hi":1000,"radius":500', SORTED, "visit"),
    "ou_histogram": ("x, 0, 1000, 10, 1e7", "x", '"clip":1,"lo":0,"hi":1000,"bins":10,"radius":1e7',
                     "SELECT sum(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY CAST(x / 100 AS INTEGER))", "visit"),
    "ou_vec_avg": ("v, 32, 10, 10", "v", '"dim":32,"clip":10,"radius":10', VECTORS, "track"),
    "ou_group_avg": ("key, x, 0, 1000, 500", "key, x", '"lo":0,"hi":1000,"radius":500',
                     "SELECT sum(n) FROM (SELECT avg(x) AS n FROM {table} GROUP BY key)", "basket"),
    "ou_group_var": ("key, x, 0, 1000, 1e5", "key, x", '"lo":0,"hi":1000,"radius":1e5',
                     "SELECT sum(n) FROM (SELECT avg(x * x) - avg(x) * avg(x) AS n FROM {table} GROUP BY key)", "basket"),
    "ou_group_stddev": ("key, x, 0, 1000, 500", "key, x", '"lo":0,"hi":1000,"radius":500',
                        "SELECT sum(n) FROM (SELECT sqrt(avg(x * x) - avg(x) * avg(x)) AS n FROM {table} GROUP BY key)", "basket"),
    "ou_group_count_distinct": ("key, 1e7", "key", '"radius":1e7',
                                "SELECT sum(n) FROM (SELECT count(DISTINCT unit) AS n FROM {table} GROUP BY key)", "basket"),
    "ou_group_histogram": ("key, x, 0, 1000, 10, 1e7", "key, x", '"clip":1,"lo":0,"hi":1000,"bins":10,"radius":1e7',
                           "SELECT sum(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY key, CAST(x / 100 AS INTEGER))", "basket"),
    "ou_group_quantile": ("key, x, 0.9, 0, 1000, 500", "key, x", '"q":0.9,"lo":0,"hi":1000,"radius":500,"bins":64', BY_KEY, "basket"),
    "ou_group_median": ("key, x, 0, 1000, 500", "key, x", '"lo":0,"hi":1000,"radius":500,"bins":64', BY_KEY, "basket"),
    "ou_vec_sum": ("v, 32, 10, 1e6", "v", '"dim":32,"clip":10,"radius":1e6', VECTORS, "track"),
    "ou_group_count": ("key, 1e7, 10", "key", '"radius":1e7,"clip":10',
                       "SELECT sum(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY key)", "basket"),
    "ou_group_sum": ("key, x, 1000, 1e9", "key, x", '"clip":1000,"radius":1e9',
                     "SELECT sum(n) FROM (SELECT sum(x) AS n FROM {table} GROUP BY key)", "basket"),
}

# A bounded sum in other systems. PER_UNIT clips the total of each unit. BY_NUMBER keeps at most CONTRIBUTIONS rows of each unit
# and clips each of these rows.
PER_UNIT = f"SELECT sum(min(s, {CLIP})) FROM (SELECT sum(x) AS s FROM {{table}} GROUP BY unit)"
BY_NUMBER = (f"SELECT sum(min(max(x, 0), {CLIP})) FROM (SELECT x, row_number() OVER (PARTITION BY unit ORDER BY"
             f" random()) AS n FROM {{table}}) WHERE n <= {CONTRIBUTIONS}")
IN_DUCKDB = PER_UNIT.replace("min(", "least(")
# Sums of 1000 groups. Each unit's vector of sums is scaled down to a length of CLIP, as dp_group_sum() does.
GROUPS_IN_DUCKDB = ("WITH sums AS (SELECT unit, key, sum(x) AS s FROM {table} GROUP BY unit, key), scales AS (SELECT unit,"
                    f" least(1, {CLIP} / sqrt(sum(s * s))) AS scale FROM sums GROUP BY unit)"
                    " SELECT sum(total) FROM (SELECT key, sum(s * scale) AS total FROM sums JOIN scales USING (unit) GROUP BY key)")


# The statements of children.guarded(), which are measured on a plain and on a guarded connection, with a text for the report.
GUARDED = {"compile": "200 statements, compiled and run without rows", "public": "`sum()` over a public table",
           "values": "`sum(value)` over `dp_value`, a release for 1,000 rows", "release": "`dp_release` of a sum, by unit"}


class Suite:
    def __init__(self, rows, rounds, repeats=11):
        self.rows, self.rounds = rows, rounds
        self.repeats = repeats  # repetitions in one process, for statements that take milliseconds
        self.some, self.few = rows // MANY, rows // SLOW

    def path(self, table, rows=None):
        return str(measure.TABLES / f"{table}-{rows or self.rows}.db")

    def query(self, table, sql, parameters=(), protects=None, extension=None, rows=None, threads=1):
        return {"job": {"call": "query", "database": self.path(table, rows), "sql": sql.replace("{table}", table),
                        "parameters": list(parameters), "protects": protects, "extension": extension,
                        "threads": threads}}

    def of_rows(self, table, sql, parameters=()):
        """Makes a job on a ledger that protects rows. Neighbouring tables differ in the values of one row. The number
        of rows is an option."""
        rows = str(self.some // 10 if table == "track" else self.some)
        sql, *parameters = (text.replace("ROWS", rows) for text in (sql, *parameters))
        job = self.query(table, sql, parameters, "row", rows=self.some)
        job["job"]["adjacency"] = "replace"
        return job

    def prepare(self):
        """Makes the tables and the two small C libraries, and keeps them between runs."""
        measure.TABLES.mkdir(parents=True, exist_ok=True)
        for rows, tables in ((self.rows, "visit,ordered,named,basket,spread,track"), (self.some, "visit,basket,track"),
                             (self.few, "visit")):
            subprocess.run([sys.executable, measure.HERE / "generate.py", measure.TABLES, "--rows", str(rows),
                            "--tables", tables], check=True, stdout=subprocess.DEVNULL)
            for name in tables.split(","):  # after this read, the tables are in the system's cache if they fit
                with open(self.path(name, rows), "rb") as file:
                    while file.read(1 << 24):
                        pass

    def pair(self, table, what, question, kind, aggregate, options=None, protects="unit"):
        """Makes the jobs of a question and of the aggregate that stands for it, with a clip of 1000."""
        options = options or {}
        return [(f"dp_release, {what}", self.query(table, "SELECT dp_release('t', ?, ?, ?)", [
                    kind, question.format(table=table), json.dumps({"clip": 1000, **options})], protects)),
                (f"dp_{kind}, {what}", self.query(table, f"SELECT {aggregate} FROM {{table}}", [json.dumps(options)], protects))]

    def grouped(self, table, what):
        """Makes the jobs of grouped sums over a table with keys. The names of the jobs end with `what`."""
        def group_sum(keys, key, options=None):
            return self.pair(table, f"{keys}, {what}", f"SELECT {key}, x FROM {{table}}", "group_sum",
                             f"dp_group_sum('t', {key}, x, 1000, ?)", options)

        return [(f"sum(x) beside {what}", self.query(table, "SELECT sum(x) FROM {table}")),
                *group_sum("10 public keys", "key % 10", {"keys": list(range(10))}),
                *group_sum("1000 public keys", "key", {"keys": json.loads(KEYS)}), *group_sum("private keys", "key")]

    # ---- the sections: each function measures a section of the report and returns its results ------------

    def goals(self):
        release = "SELECT dp_release('t', 'sum', 'SELECT x FROM visit', '{\"clip\":1000}')"

        def sums(table, what, protects="unit"):
            return self.pair(table, what, "SELECT x FROM {table}", "sum", "dp_sum('t', x, 1000, ?)", None, protects)

        jobs = [
            ("sum(x)", self.query("visit", "SELECT sum(x) FROM {table}")),
            *sums("visit", "rows protected", "row"), *sums("visit", "integer units in random order"),
            ("dp_release, rows protected, 2 threads", self.query("visit", release, protects="row", threads=2)),
            ("dp_release, integer units in random order, 2 threads",
             self.query("visit", release, protects="unit", threads=2)),
            ("sum(x) beside sorted units", self.query("ordered", "SELECT sum(x) FROM {table}")),
            *sums("ordered", "integer units sorted"),
            ("sum(x) beside text units", self.query("named", "SELECT sum(x) FROM {table}")),
            *sums("named", "text units"),
            *self.grouped("basket", "Zipf keys"),
            *self.grouped("spread", "new pairs"),
            ("a loop that only decodes", self.query("track", VECTORS, extension="bench/decode")),
            ("dp_vec_sum, rows protected",
             self.query("track", "SELECT dp_vec_sum('t', v, 32, 10) FROM {table}", protects="row")),
            ("dp_vec_sum, integer units",
             self.query("track", "SELECT dp_vec_sum('t', v, 32, 10) FROM {table}", protects="unit")),
        ]
        return measure.interleave(jobs, self.rounds)

    def aggregates(self):
        jobs, seen = [], set()
        for kind, (arguments, columns, options, native, table) in AGGREGATES.items():
            extension = "bench/decode" if native == VECTORS else None
            if (native, table) not in seen:
                seen.add((native, table))
                jobs.append((f"native {native} {table}",
                             self.query(table, native, extension=extension, rows=self.some)))
            if kind in RELEASES_ONLY:
                jobs.append((kind, self.of_rows(table, "SELECT dp_release('t', ?, ?, ?)", [
                    kind, f"SELECT {columns} FROM {table}", f"{{{options}}}"])))
                continue
            parameters, keys = [], ""
            if "group" in kind:
                bins = ',"bins":64' if kind.endswith(("quantile", "median")) else ""
                clip = ',"clip":1' if kind.endswith("histogram") else ""
                parameters, keys = [f'{{"keys":{KEYS}{bins}{clip}}}'], ", ?"
                options += f',"keys":{KEYS}'
            elif kind.endswith("histogram"):
                parameters, keys = ['{"clip":1}'], ", ?"
            arguments = ", ".join(filter(None, ("'t'", arguments)))
            jobs.append((kind, self.query(table, f"SELECT dp_{kind}({arguments}{keys}) FROM {{table}}", parameters,
                                          protects="unit", rows=self.some)))
            jobs.append((f"{kind} release", self.query(
                table, "SELECT dp_release('t', ?, ?, ?)", [kind, f"SELECT {columns or '1'} FROM {table}", f"{{{options}}}"],
                protects="unit", rows=self.some)))
        return measure.interleave(jobs, self.rounds)

    def formulations(self):
        jobs = [
            ("sum(x)", self.query("visit", "SELECT sum(x) FROM {table}")),
            ("dp_sum", self.query("visit", "SELECT dp_sum('t', x, 1000) FROM {table}", protects="unit")),
            ("per unit", self.query("visit", PER_UNIT)),
            ("sum(x), text", self.query("named", "SELECT sum(x) FROM {table}")),
            ("dp_sum, text", self.query("named", "SELECT dp_sum('t', x, 1000) FROM {table}", protects="unit")),
            ("per unit, text", self.query("named", PER_UNIT)),
            ("sum(x), few", self.query("visit", "SELECT sum(x) FROM {table}", rows=self.few)),
            ("dp_sum, few", self.query("visit", "SELECT dp_sum('t', x, 1000) FROM {table}", protects="unit",
                                       rows=self.few)),
            ("row_number, few", self.query("visit", BY_NUMBER, rows=self.few)),
        ]
        for name, sql in (("sum(x)", "SELECT sum(x) FROM {table}"), ("per unit", IN_DUCKDB)):
            for table in ("visit", "named"):
                for threads in THREADS:
                    jobs.append((f"DuckDB {name}, {table}, {threads}", self.duckdb(table, sql, threads)))
        return measure.interleave(jobs, self.rounds)

    def duckdb(self, table, sql, threads):
        return {"folder": "python-bench", "job": {
            "call": "duckdb", "database": self.path(table), "threads": threads,
            "file": self.path(table).replace(".db", ".duckdb"), "sql": sql.replace("{table}", table)}}

    def groups(self):
        keys, options = f'{{"keys":{KEYS}}}', f'{{"clip":1000,"keys":{KEYS}}}'
        jobs = [("sum(x)", self.query("spread", "SELECT sum(x) FROM {table}")),
                ("dp_group_sum",
                 self.query("spread", "SELECT dp_group_sum('t', key, x, 1000, ?) FROM {table}", [keys], "unit"))]
        for threads in THREADS:
            jobs += [(f"dp_release, {threads}",
                      self.query("spread", "SELECT dp_release('t', 'group_sum', 'SELECT key, x FROM {table}', ?)", [options],
                                 "unit", threads=threads)),
                     (f"DuckDB, {threads}", self.duckdb("spread", GROUPS_IN_DUCKDB, threads))]
        return measure.interleave(jobs, self.rounds)

    def systems(self):
        jobs = [("sum(x)", self.query("visit", "SELECT sum(x) FROM {table}", rows=self.few)),
                ("diffuse", self.query("visit", "SELECT dp_sum('t', x, 1000) FROM {table}", protects="unit",
                                       rows=self.few))]
        for name, folder in (("opendp", "python-utility"), ("smartnoise", "python-utility-smartnoise"),
                             ("diffprivlib", "python-utility")):
            jobs.append((name, {"folder": folder, "job": {"call": name, "database": self.path("visit", self.few)}}))
        return measure.interleave(jobs, self.rounds)

    def small(self):
        jobs = [(what, {"syncs": True, "job": {"call": "small", "what": what, "rounds": self.repeats}})
                for what in ("commits", "release", "groups", "diffuse")]
        if pathlib.Path(MEMORY).is_dir():
            jobs.append(("memory", {"syncs": True, "job": {"call": "small", "what": "release",
                                                           "rounds": self.repeats, "folder": MEMORY}}))
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", measure.BUILD)) as folder:
            jobs += [(f"{charges}", {"syncs": True, "job": {"call": "ledger", "charges": charges,
                                                            "rounds": self.repeats, "folder": folder}})
                     for charges in (10, 1_000, 100_000, 1_000_000) if charges <= max(1000, self.rows // 10)]
            return measure.interleave(jobs, self.rounds)

    def guard(self):
        rows = max(1000, self.rows // 100)
        return measure.interleave([(f"{what}{', guarded' if guard else ''}",
                                    {"syncs": True, "job": {"call": "guarded", "what": what, "guard": guard, "rounds": self.repeats,
                                             "rows": rows}}) for what in GUARDED for guard in (False, True)], self.rounds)


# ---- the report ------------------------------------------------------------------------------------------


def mebibytes(results):
    return f"{measure.median(results, 'memory') / 2**20:,.0f}"


def against(value, goal, digits=2):
    if goal is None:
        return "", ""
    return f"≤ {goal:g}", "yes" if value <= goal else "**no**"


def report_goals(results, rows):
    bases = {"ordered": "sum(x) beside sorted units", "named": "sum(x) beside text units",
             "basket": "sum(x) beside Zipf keys", "spread": "sum(x) beside new pairs",
             "track": "a loop that only decodes"}
    # The table, and the goal: a number, or the question that stands for an aggregate, whose ratio may be larger by AROUND
    goals = {"dp_release, rows protected, 2 threads": ("visit", 0.75),
             "dp_release, integer units in random order, 2 threads": ("visit", None),
             "dp_vec_sum, rows protected": ("track", 1.5), "dp_vec_sum, integer units": ("track", None)}
    for table, what, goal in (("visit", "rows protected", 1.15), ("visit", "integer units in random order", 1.7),
                              ("ordered", "integer units sorted", 1.7), ("named", "text units", 2.3)):
        goals |= {f"dp_release, {what}": (table, goal), f"dp_sum, {what}": (table, f"dp_release, {what}")}
    for table, what in (("basket", "Zipf keys"), ("spread", "new pairs")):
        for keys, goal in (("10 public keys", 3.1), ("1000 public keys", 3.1), ("private keys", 4.0 if table == "basket" else 5.2)):
            question = f"dp_release, {keys}, {what}"
            goals |= {question: (table, goal), f"dp_group_sum, {keys}, {what}": (table, question)}
    lines = ["## Goals", "",
             f"{rows:,} rows, {rows // 10:,} units (vectors: {rows // 10:,} rows, as many units to draw from). The"
             " ratio is to `sum(x)` of the same table; for vectors to an aggregate that decodes the 32 float32 of"
             " each row and adds them up ([decode.c](decode.c)). Groups: by Zipf's law for units and for keys (\"Zipf keys\"),"
             " and uniformly, so that most pairs of unit and key are new (\"new pairs\"). Goals are"
             " stated for a million units. An aggregate is its question and SQLite's own pass over the rows: its ratio may be"
             f" larger by {AROUND}.", ""]
    body = []
    for name, found in results.items():
        table, goal = goals.get(name, (None, None))
        base = results[bases.get(table, "sum(x)")]
        clock = "seconds" if name.endswith("threads") else "cpu"
        ratio = measure.ratio(found, base, clock) if table else 1
        if isinstance(goal, str):
            goal = round(measure.ratio(results[goal], base) + AROUND, 2)
        label = f"`{name}`" if name == "sum(x)" else name + (" (by the clock)" if clock == "seconds" else "")
        body.append((label, measure.number(measure.median(found, clock)), f"{ratio:.2f}", *against(ratio, goal),
                     mebibytes(found)))
    lines += measure.table(("statement", "seconds", "ratio", "goal", "met", "memory, MiB"), body)
    each = (measure.median(results["dp_sum, integer units in random order"], "memory")
            - measure.median(results["sum(x)"], "memory")) / max(1, rows // 10)
    goal, met = against(each, 110)
    lines += ["", f"Memory of `dp_sum` over integer units, more than `sum(x)` takes: {each:.0f} bytes for each unit,"
                  f" at the peak (goal: {goal};"
                  f" met: {met})."]
    return lines


def report_aggregates(results, rows):
    lines = ["## Every aggregate", "",
             f"{rows // MANY:,} rows (vectors {rows // MANY // 10:,}), units protected (by `sgd`, a logistic model, and `response_count`, rows),"
             " 1000 public keys for groups."
             " Beside each its counterpart in SQLite, which protects nobody: `count(DISTINCT)`, `ORDER BY` for"
             " quantiles, `GROUP BY` for groups and histograms; for vectors the aggregate that only decodes them."
             " `dp_release`: its time by that of the aggregate (goal: within 5%).", ""]
    body = []
    for kind, (_, _, _, native, table) in AGGREGATES.items():
        if kind not in results:  # the result is from an earlier run
            continue
        found, other = results[kind], results[f"native {native} {table}"]
        release = 1 if kind in RELEASES_ONLY else measure.ratio(results[f"{kind} release"], found)
        base = ""
        if table == "visit":
            base = f"{measure.ratio(found, results['native ' + AGGREGATES['sum'][3] + ' visit']):.2f}"
        body.append((f"`{kind}` by `dp_release`" if kind in RELEASES_ONLY else f"`dp_{kind}`", measure.number(measure.median(found)), measure.number(measure.median(other)),
                     f"{measure.ratio(found, other):.2f}", base, mebibytes(found), mebibytes(other), f"{release:.2f}",
                     against(release, 1.05)[1]))
    return lines + measure.table(("aggregate", "seconds", "counterpart, s", "by counterpart", "by `sum(x)`",
                                  "memory, MiB", "counterpart, MiB", "`dp_release`", "within 5%"), body)


def report_formulations(results, rows):
    lines = ["## The same in plain SQL, and in DuckDB", "",
             "What systems that rewrite SQL send to the database: a sum of clipped totals over a `GROUP BY` of the"
             f" units, or {CONTRIBUTIONS} random rows of each unit by `row_number()`, before any noise. DuckDB has"
             " the rows in a file of its own format (columns, compressed). Ratios are to SQLite's `sum(x)` of the same"
             " number of rows.", ""]
    names = {
        "sum(x)": ("SQLite, `sum(x)`", "sum(x)"), "dp_sum": ("`dp_sum`, integer units", "sum(x)"),
        "per unit": ("SQLite, `GROUP BY` integer units", "sum(x)"),
        "sum(x), text": ("SQLite, `sum(x)` beside text units", "sum(x), text"),
        "dp_sum, text": ("`dp_sum`, text units", "sum(x), text"),
        "per unit, text": ("SQLite, `GROUP BY` text units", "sum(x), text"),
        "sum(x), few": (f"SQLite, `sum(x)`, {rows // SLOW:,} rows", "sum(x), few"),
        "dp_sum, few": (f"`dp_sum`, integer units, {rows // SLOW:,} rows", "sum(x), few"),
        "row_number, few": (f"SQLite, `row_number()`, {rows // SLOW:,} rows", "sum(x), few")}
    body, versions = [], set()
    for name, found in results.items():
        label, base = names.get(name, (None, None))
        if label is None:
            what, table, threads = name.removeprefix("DuckDB ").split(", ")
            label = (f"DuckDB, {'`sum(x)`' if what == 'sum(x)' else '`GROUP BY` units'},"
                     f" {'text' if table == 'named' else 'integer'} units, {threads}"
                     f" thread{'s' if threads != '1' else ''}")
            base = "sum(x), text" if table == "named" else "sum(x)"
        if "missing" in found[-1]:
            body.append((label, found[-1]["missing"], "", ""))
            continue
        versions |= {result["version"] for result in found if "version" in result}
        clock = "seconds" if label.endswith("threads") else "cpu"
        body.append((label + (" (by the clock)" if clock == "seconds" else ""),
                     measure.number(measure.median(found, clock)),
                     f"{measure.ratio(found, results[base], clock):.2f}", mebibytes(found)))
    lines += measure.table(("statement", "seconds", "ratio", "memory, MiB"), body)
    return lines + (["", f"Versions: {', '.join(sorted(versions))}."] if versions else [])


def report_groups(results, rows):
    lines = ["## Groups, and a second thread", "",
             f"Sums of {len(json.loads(KEYS)):,} groups over {rows:,} rows (\"new pairs\"), where each unit's vector of sums has a length of"
             f" at most {CLIP:g}. DuckDB computes the same exact sums from its own columns, without noise. By the clock; CPU time in"
             " the last column.", ""]
    names = {"sum(x)": "SQLite, `sum(x)`", "dp_group_sum": "`dp_group_sum`, 1 thread"}
    body = []
    for name, found in results.items():
        system, _, threads = name.rpartition(", ")
        label = names.get(name) or f"{'`dp_release`' if system == 'dp_release' else system}, {threads} thread{'s'[:threads != '1']}"
        if "missing" in found[-1]:
            body.append((label, found[-1]["missing"], "", "", ""))
            continue
        body.append((label, measure.number(measure.median(found, "seconds")),
                     f"{measure.ratio(found, results['sum(x)'], 'seconds'):.2f}", mebibytes(found), measure.number(measure.median(found))))
    lines += [*measure.table(("statement", "seconds", "by `sum(x)`", "memory, MiB", "CPU, s"), body), ""]
    pairs = [("`dp_release`, two threads by one", "dp_release, 2", "dp_release, 1", 0.6)]
    pairs += [(f"`dp_release` by DuckDB, {threads} thread{'s'[:threads != 1]}", f"dp_release, {threads}", f"DuckDB, {threads}", 0.67)
              for threads in THREADS]
    body = []
    for label, name, base, goal in pairs:
        if name in results and "missing" not in results[base][-1]:
            ratio = measure.ratio(results[name], results[base], "seconds")
            body.append((label, f"{ratio:.2f}", *against(ratio, goal), f"{measure.ratio(results[name], results[base]):.2f}"))
    return lines + measure.table(("ratio", "by the clock", "goal", "met", "of CPU time"), body)


def report_systems(results, rows):
    lines = ["## The same question in other systems", "",
             f"The sum of x over {rows // SLOW:,} rows of {rows // SLOW // 10:,} units, from the SQLite file to the"
             " noisy answer, at (1, 1e-6). diffuse, OpenDP (Polars) and diffprivlib clip each unit's total to 1000"
             f" (diffprivlib: totals by numpy); SmartNoise SQL keeps {CONTRIBUTIONS} rows of each unit and clips"
             " rows. Not counted: starting Python and its imports.", ""]
    body = []
    for name, found in results.items():
        if "missing" in found[-1]:
            body.append((name, found[-1]["missing"], "", "", ""))
            continue
        body.append((f"`{name}`" if name == "sum(x)" else found[0].get("version", name),
                     measure.number(measure.median(found)), f"{measure.ratio(found, results['sum(x)']):.1f}",
                     f"{measure.ratio(found, results['diffuse']):.1f}", mebibytes(found)))
    return lines + measure.table(("system", "seconds", "by `sum(x)`", "by diffuse", "memory, MiB"), body)


def report_small(results, rows):
    def part(found, field="seconds", what=None):
        return 1e3 * statistics.median((result[what] if what else result)[field] for result in found)

    titles = {"commits": ("two commits of one row, SQLite alone", None), "release": ("`dp_sum` over two rows", 1.5),
              "memory": ("`dp_sum` over two rows, no disk (tmpfs)", None),
              "groups": ("`dp_group_count`, 1000 public keys, two rows", None),
              "diffuse": ("`dp_diffuse` of 1000 keys", 30)}
    lines = ["## Small releases and long ledgers", "",
             "A release is two durable commits of the ledger (its charge, then its values), a diffusion one. How much"
             " of that is waiting for the disk is measured around `fsync` and `fdatasync` ([sync.c](sync.c)): it is"
             " the disk's, not this program's, and the first line shows what SQLite pays for as many commits of its"
             " own. Two commits are ten syncs (goal: 6, missed: [each is needed](../ext/README.md#where-the-syncs-come-from)). The goal of"
             " 1.5 ms leaves them 0.12 ms each."
             " Milliseconds.", ""]
    body = []
    for name, (title, goal) in titles.items():
        if name not in results:
            continue
        found = results[name]
        body.append((title, measure.number(part(found)), round(found[0]["syncs"]), measure.number(part(found, "sync")),
                     measure.number(part(found, "cpu")), *against(part(found), goal)))
    lines += measure.table(("operation", "clock, ms", "syncs", "in syncs, ms", "CPU, ms", "goal", "met"), body)
    lines += ["", "One release at the middle of three tiers, beside a ledger of so many charges; a look at the"
                  " budgets; and `dp_exposure()`, which reads the whole history. Goal: a release that does not"
                  " depend on the length.", ""]
    body = []
    for name, found in results.items():
        if name.isdigit():
            parts = (("seconds", "release"), ("sync", "release"), ("cpu", "release"), ("cpu", "budget"),
                     ("cpu", "exposure"))
            body.append((f"{found[0]['charges']:,}", *(measure.number(part(found, *which)) for which in parts)))
    return lines + measure.table(("charges", "release: clock, ms", "in syncs, ms", "CPU, ms", "`dp_budget`: CPU, ms",
                                  "`dp_exposure()`: CPU, ms"), body)


def report_guard(results, rows):
    lines = ["## Guarded connections", "",
             f"The same statement on a plain connection and on one that `dp_guard()` has given a grant,"
             f" {max(1000, rows // 100):,} rows. CPU time in milliseconds; the ratio is the median of the rounds."
             " The rows of `dp_value` are those that the tier may see.", ""]
    body = [(title, *(measure.number(1e3 * measure.median(results[name])) for name in (what, f"{what}, guarded")),
             f"{measure.ratio(results[f'{what}, guarded'], results[what]):.2f}") for what, title in GUARDED.items()]
    return lines + measure.table(("statement", "plain, ms", "guarded, ms", "ratio"), body)


SECTIONS = {"goals": report_goals, "aggregates": report_aggregates, "formulations": report_formulations,
            "groups": report_groups,
            "systems": report_systems, "small": report_small, "guard": report_guard}


def write_report(path, results, rows):
    rounds = min(len(found) for section in results.values() for found in section.values() if "missing" not in found[-1])
    lines = ["# Benchmarks", "",
             f"Written by `make bench` ([suite.py](suite.py)): medians of at least {rounds} interleaved rounds, every"
             " measurement a process of its own. Ratios are taken within a round. Seconds are CPU time of the process"
             " (user and system), where nothing else is said: other work on the machine disturbs it least, and the"
             " tables are in the system's cache. Memory is by how much the process grows while the statement"
             " runs, at its peak. Tables: [generate.py](generate.py). How cost grows: [growth.md](growth.md).", ""]
    lines += [f"- {line}" for line in measure.machine()]
    for name, report in SECTIONS.items():
        if name in results:
            lines += ["", *report(results[name], rows)]
    path.write_text("\n".join(lines) + "\n")
    print(f"wrote {path.name}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--output", type=pathlib.Path, default=REPORT)
    arguments = parser.parse_args()
    suite = Suite(arguments.rows, arguments.rounds)
    suite.prepare()
    kept = measure.TABLES / f"results-{arguments.rows}.json"
    results = json.loads(kept.read_text()) if arguments.only and kept.exists() else {}
    for name in [arguments.only] if arguments.only else SECTIONS:
        print(name, file=sys.stderr, flush=True)
        results[name] = getattr(suite, name)()
        kept.write_text(json.dumps(results))
    write_report(arguments.output, results, arguments.rows)


if __name__ == "__main__":
    main()
