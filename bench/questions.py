"""make bench-questions, also a part of make bench: measures questions in a ledger with a policy, and guarded connections. Writes
bench/questions.md.

The table visit has 2,000,000 rows, or the number in the first argument, and a tenth as many patients. Its rows are not in
the order of the patients. The program measures, without and with an index on the patient:

    GROUP BY     the plain query of SQLite that a question by unit is compared with
    by unit      the same as a question that is evaluated for one patient at a time
    unchecked    dp_release() in an unchecked ledger, whose query names the patient of each row
    at once      the same as a question, which is proved to be one loop and evaluated for all patients at once
    where        `at once` and `unchecked` with a WHERE clause that a seventh of the rows passes
    aggregate    dp_sum() in a SELECT, in the ledger with the policy

The figures are CPU time of the process, which other programs on the machine disturb less than clock time; they are medians of
interleaved rounds, in seconds, and ratios are taken within a round. The goals are: by unit at most 3 times GROUP BY, at once
at most 1.1 times unchecked, guarded no more than unguarded.
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
WHERE = " WHERE ward = ''ward 3''"
MEASURED = {
    "GROUP BY": (False, "SELECT sum(x) FROM (SELECT sum(minutes) AS x FROM visit GROUP BY patient)"),
    "by unit": (True, RELEASE.format("SELECT sum(minutes) FROM visit")),
    "unchecked": (False, RELEASE.format("SELECT minutes, patient FROM visit")),
    "at once": (True, RELEASE.format("SELECT minutes FROM visit")),
    "unchecked, where": (False, RELEASE.format("SELECT minutes, patient FROM visit" + WHERE)),
    "at once, where": (True, RELEASE.format("SELECT minutes FROM visit" + WHERE)),
    "aggregate": (True, "SELECT dp_sum('t', minutes, 100, patient) FROM visit"),
}
RATIOS = [("by unit", "GROUP BY"), ("at once", "unchecked"), ("at once, where", "unchecked, where"), ("aggregate", "unchecked")]

# Statements on a guarded connection and on a plain one. {} is the number of the round: a release of a guarded connection has a name.
GUARDED = {
    "SELECT of a public table": "SELECT sum(price), count(*) FROM item WHERE price > 20",
    "join of public tables": "SELECT sum(a.price) FROM item a JOIN item b ON b.id = a.price",
    "question, at once": "SELECT dp_release('t', 'sum', 'SELECT minutes FROM visit', '{{\"clip\":100,\"name\":\"q{}\"}}')",
    "question, by unit": "SELECT dp_release('t', 'sum', 'SELECT sum(minutes) FROM visit', '{{\"clip\":100,\"name\":\"u{}\"}}')",
    "dp_value": "SELECT count(*), max(value) FROM dp_value",
}


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


def seconds_of(db, sql):
    start = time.process_time()
    db.execute(sql).fetchall()
    return time.process_time() - start


def measure(rows, has_index):
    databases = {has_policy: database(rows, has_policy, has_index) for has_policy in (False, True)}
    seconds = {name: [] for name in MEASURED}
    for _ in range(ROUNDS):
        for name, (has_policy, sql) in MEASURED.items():
            seconds[name].append(seconds_of(databases[has_policy], sql))
    return seconds


def measure_guard(rows):
    seconds = {name: ([], []) for name in GUARDED}
    databases = []
    for is_guarded in (False, True):
        db = database(rows, True, False)
        db.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, price INT)")
        db.execute("INSERT INTO item SELECT id, minutes FROM visit")
        db.execute("SELECT dp_public('item')").fetchall()
        db.execute("SELECT dp_grant('g', 't', 0.9)").fetchall()
        for i in range(100):
            db.execute("SELECT dp_release('t', 'count', 'SELECT 1 FROM visit WHERE id < 9', ?)", ('{"clip":1,"name":"r%d"}' % i,)).fetchall()
        if is_guarded:
            db.execute("""SELECT dp_guard('t', '{"ask":"g"}')""").fetchall()
        databases.append(db)
    for number in range(ROUNDS):
        for name, sql in GUARDED.items():
            for db, found in zip(databases, seconds[name]):
                found.append(seconds_of(db, sql.format(number)))
    return seconds


def ratio(numerators, denominators):
    return f"{statistics.median(a / b for a, b in zip(numerators, denominators)):.2f}"


def report(rows):
    lines = [f"# Questions\n\n`make bench-questions` wrote this page: {rows:,} rows, {rows // 10:,} patients, SQLite {sqlite3.sqlite_version},"
             f" {platform.machine()}. CPU seconds, medians of {ROUNDS} rounds; bench/questions.py says what is measured.\n",
             "| index | " + " | ".join(MEASURED) + " | " + " | ".join(f"{a} / {b}" for a, b in RATIOS) + " |",
             "|---|" + "--:|" * (len(MEASURED) + len(RATIOS))]
    for has_index in (False, True):
        seconds = measure(rows, has_index)
        lines.append(f"| {'yes' if has_index else 'no'} | " + " | ".join(f"{statistics.median(seconds[name]):.3g}" for name in MEASURED) + " | "
                     + " | ".join(ratio(seconds[a], seconds[b]) for a, b in RATIOS) + " |")
    lines += ["\nThe same statements on a plain connection and on one that `dp_guard` has given a grant, with a quarter of the rows:\n",
              "| statement | plain | guarded | guarded / plain |", "|---|--:|--:|--:|"]
    for name, (plain, guarded) in measure_guard(rows // 4).items():
        lines.append(f"| {name} | {statistics.median(plain):.3g} | {statistics.median(guarded):.3g} | {ratio(guarded, plain)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    text = report(count)
    print(text, end="")
    if count == 2_000_000:
        (ROOT / "bench" / "questions.md").write_text(text)
