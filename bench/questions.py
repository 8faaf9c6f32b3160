"""make bench-questions: measures questions in a ledger with a policy. Writes bench/questions.md.

The table visit has 2,000,000 rows, or the number in the first argument, and a tenth as many patients. Its rows are not in
the order of the patients. The program measures, without and with an index on the patient:

    GROUP BY     SQLite's plain query with GROUP BY patient, which "by unit" is compared with
    by unit      a question with this query, evaluated for one patient at a time
    unchecked    dp_release() in an unchecked ledger; its query returns the patient of each row
    at once      a question with the query of "unchecked", proved to be one loop and evaluated for all patients at once
    aggregate    dp_sum() in a SELECT, in the ledger with the policy

The figures are medians of interleaved rounds, in seconds. The goals are: by unit at most 3 times GROUP BY, at once at most
1.1 times unchecked.
"""

import os
import pathlib
import platform
import sqlite3
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
ROUNDS = 5

RELEASE = "SELECT dp_release('t', 'sum', '{}', '{{\"clip\":100}}')"
MEASURED = {
    "GROUP BY": (False, "SELECT sum(x) FROM (SELECT sum(minutes) AS x FROM visit GROUP BY patient)"),
    "by unit": (True, RELEASE.format("SELECT sum(minutes) FROM visit")),
    "unchecked": (False, RELEASE.format("SELECT minutes, patient FROM visit")),
    "at once": (True, RELEASE.format("SELECT minutes FROM visit")),
    "aggregate": (True, "SELECT dp_sum('t', minutes, 100, patient) FROM visit"),
}
RATIOS = [("by unit", "GROUP BY"), ("at once", "unchecked"), ("aggregate", "unchecked")]


def database(rows, has_policy, has_index):
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    db.execute("CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, ward TEXT, minutes INT)")
    db.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)"
               " INSERT INTO visit SELECT i, i * 7919 % (?1 / 10), 'ward ' || i % 7, i % 60 FROM n", (rows,))
    if has_index:
        db.execute("CREATE INDEX visit_patient ON visit(patient)")
    for sql in ["SELECT dp_init()", "SELECT dp_protect('visit', 'patient')"] if has_policy else ["SELECT dp_init('{\"unchecked\":true}')"]:
        db.execute(sql).fetchall()
    db.execute("SELECT dp_tier('t', 1, 1e9, 1e-6)").fetchall()
    return db


def measure(rows, has_index):
    databases = {has_policy: database(rows, has_policy, has_index) for has_policy in (False, True)}
    seconds = {name: [] for name in MEASURED}
    for _ in range(ROUNDS):
        for name, (has_policy, sql) in MEASURED.items():
            start = time.perf_counter()
            databases[has_policy].execute(sql).fetchall()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(several) for name, several in seconds.items()}


def report(rows):
    lines = [f"# Questions\n\n`make bench-questions` wrote this page: {rows:,} rows, {rows // 10:,} patients, SQLite {sqlite3.sqlite_version},"
             f" {platform.machine()}. Seconds, medians of {ROUNDS} rounds; bench/questions.py says what is measured.\n",
             "| index | " + " | ".join(MEASURED) + " | " + " | ".join(f"{a} / {b}" for a, b in RATIOS) + " |",
             "|---|" + "--:|" * (len(MEASURED) + len(RATIOS))]
    for has_index in (False, True):
        seconds = measure(rows, has_index)
        lines.append(f"| {'yes' if has_index else 'no'} | " + " | ".join(f"{seconds[name]:.3g}" for name in MEASURED) + " | "
                     + " | ".join(f"{seconds[a] / seconds[b]:.2f}" for a, b in RATIOS) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    text = report(count)
    print(text, end="")
    if count == 2_000_000:
        (ROOT / "bench" / "questions.md").write_text(text)
