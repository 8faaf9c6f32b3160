"""make bench-questions, also a part of make bench: measures questions, and guarded connections. Writes
bench/questions.md.

The table visit has 2,000,000 rows, or the number in the first argument, and a tenth as many patients. Its rows are not in
the order of the patients. The program measures, without and with an index on the patient:

    GROUP BY     the plain query of SQLite that a question by unit is compared with
    by unit      the same as a question that is evaluated for one patient at a time
    at once      the same as a question row by row, which is evaluated for all patients at once
    where        `at once` with a WHERE clause that a seventh of the rows passes
    aggregate    dp_sum() in a SELECT

The same without a WHERE clause for a table whose rows have a link: table exam has 2,000,000 rows and refers to table visit with
200,000 rows, which names one of 20,000 patients (1 link), or refers to table stay with 20,000 rows, which names one of 2,000 patients
(2 links). The rows of exam are in the order of their links, as if they were added with their visits, or in no order. The query with
GROUP BY joins the tables.

The same for a database file, without and with `PRAGMA threads = 1`, by the clock: a question that is evaluated at once, with and
without a WHERE clause, or with a join with a public table.

All other figures are CPU time of the process, which other programs on the machine disturb less than clock time; they are medians of
interleaved rounds, in seconds, and ratios are taken within a round. The goals are: by unit at most 1.8 times GROUP BY, at once
no more than GROUP BY, guarded no more than unguarded.
"""

import os
import pathlib
import platform
import sqlite3
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
ROUNDS = 5

RELEASE = "SELECT dp_release('t', 'sum', '{}', '{{\"clip\":100}}')"
WHERE = " WHERE ward = ''ward 3''"
MEASURED = {
    "GROUP BY": "SELECT sum(x) FROM (SELECT sum(minutes) AS x FROM visit GROUP BY patient)",
    "by unit": RELEASE.format("SELECT sum(minutes) FROM visit"),
    "at once": RELEASE.format("SELECT minutes FROM visit"),
    "at once, where": RELEASE.format("SELECT minutes FROM visit" + WHERE),
    "aggregate": "SELECT dp_sum('t', minutes, 100) FROM visit",
}
RATIOS = [("by unit", "GROUP BY"), ("at once", "GROUP BY"), ("at once, where", "at once"), ("aggregate", "at once")]

LINKED = {
    "GROUP BY": "SELECT sum(x) FROM (SELECT sum(result) AS x FROM exam{} GROUP BY patient)",
    "by unit": RELEASE.format("SELECT sum(result) FROM exam"),
    "at once": RELEASE.format("SELECT result FROM exam"),
    "aggregate": "SELECT dp_sum('t', result, 100) FROM exam",
}
LINKED_RATIOS = [("by unit", "GROUP BY"), ("at once", "GROUP BY"), ("aggregate", "at once")]

# Statements on a guarded connection and on a plain one. {} is the number of the round: a release of a guarded connection has a name.
GUARDED = {
    "SELECT of a public table": "SELECT sum(price), count(*) FROM item WHERE price > 20",
    "join of public tables": "SELECT sum(a.price) FROM item a JOIN item b ON b.id = a.price",
    "question, at once": "SELECT dp_release('t', 'sum', 'SELECT minutes FROM visit', '{{\"clip\":100,\"name\":\"q{}\"}}')",
    "question, by unit": "SELECT dp_release('t', 'sum', 'SELECT sum(minutes) FROM visit', '{{\"clip\":100,\"name\":\"u{}\"}}')",
    "dp_value": "SELECT count(*), max(value) FROM dp_value",
}


# Questions that two threads can read.
DIVIDED = {
    "at once": "SELECT minutes FROM visit",
    "at once, where": "SELECT minutes FROM visit" + WHERE,
    "at once, join": "SELECT beds FROM visit JOIN ward ON name = ward",
}


def database(rows, has_index, path=":memory:"):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    db.execute("CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, ward TEXT, minutes INT)")
    db.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)"
               " INSERT INTO visit SELECT i, i * 7919 % (?1 / 10), 'ward ' || (i % 7), i % 60 FROM n", (rows,))
    if has_index:
        db.execute("CREATE INDEX visit_patient ON visit(patient)")
    for sql in ["SELECT dp_init()", "SELECT dp_protect('visit', 'patient')"]:
        db.execute(sql).fetchall()
    db.execute("SELECT dp_tier('t', 1, 1e9, 1e-6)").fetchall()
    return db


def linked_database(rows, links, is_ordered):
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)"
    parent = "stay" if links == 2 else "patient"
    db.executescript(f"CREATE TABLE stay(id INTEGER PRIMARY KEY, patient INT); CREATE TABLE visit(id INTEGER PRIMARY KEY, {parent} INT);"
                     " CREATE TABLE exam(visit INT, result INT)")
    db.execute(numbers + " INSERT INTO stay SELECT i, i * 7919 % (?1 / 10) FROM n", (rows // 100,))
    db.execute(numbers + " INSERT INTO visit SELECT i, i * 7919 % (?1 / 10) FROM n", (rows // 10,))
    db.execute(numbers + f" INSERT INTO exam SELECT {'i / 10' if is_ordered else 'i * 7919 % (?1 / 10)'}, i % 60 FROM n", (rows,))
    policy = ["dp_init()", *(["dp_protect('stay', 'patient')", "dp_protect('visit', 'stay', 'stay')"] if links == 2 else
                             ["dp_protect('visit', 'patient')"]), "dp_protect('exam', 'visit', 'visit')"]
    for call in policy + ["dp_tier('t', 1, 1e9, 1e-6)"]:
        db.execute("SELECT " + call).fetchall()
    return db


def seconds_of(db, sql):
    start = time.process_time()
    db.execute(sql).fetchall()
    return time.process_time() - start


def measure(rows, has_index):
    db = database(rows, has_index)
    seconds = {name: [] for name in MEASURED}
    for _ in range(ROUNDS):
        for name, sql in MEASURED.items():
            seconds[name].append(seconds_of(db, sql))
    return seconds


def measure_linked(rows, links, is_ordered):
    db = linked_database(rows, links, is_ordered)
    join = " JOIN visit ON visit.id = exam.visit" + " JOIN stay ON stay.id = visit.stay" * (links == 2)
    seconds = {name: [] for name in LINKED}
    for _ in range(ROUNDS):
        for name, sql in LINKED.items():
            seconds[name].append(seconds_of(db, sql.replace("{}", join)))
    return seconds


def measure_guard(rows):
    with tempfile.TemporaryDirectory() as directory:
        return measure_guard_in(directory, rows)


def measure_guard_in(directory, rows):
    seconds = {name: ([], []) for name in GUARDED}
    databases = []
    for is_guarded in (False, True):
        db = database(rows, False, os.path.join(directory, f"guarded-{is_guarded}.db"))
        db.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, price INT)")
        db.execute("INSERT INTO item SELECT id, minutes FROM visit")
        db.execute("SELECT dp_public('item')").fetchall()
        db.execute("""SELECT dp_grant('g', 't', 0.9, '{"pad_ms":1}')""").fetchall()  # answers return after 1, 2, 4, ... ms
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


def measure_threads(rows):
    seconds = {name: ([], []) for name in DIVIDED}
    with tempfile.TemporaryDirectory() as directory:
        db = database(rows, False, os.path.join(directory, "data.db"))
        db.execute("CREATE TABLE ward(name TEXT PRIMARY KEY, beds INT)")
        db.execute("INSERT INTO ward SELECT DISTINCT ward, minutes FROM visit WHERE id < 7")
        db.execute("SELECT dp_public('ward')").fetchall()
        for _ in range(ROUNDS):
            for name, sql in DIVIDED.items():
                for threads, found in enumerate(seconds[name]):
                    db.execute(f"PRAGMA threads = {threads}").fetchall()
                    start = time.monotonic()
                    db.execute(RELEASE.format(sql)).fetchall()
                    found.append(time.monotonic() - start)
        db.close()
    return seconds


def ratio(numerators, denominators):
    return f"{statistics.median(a / b for a, b in zip(numerators, denominators)):.2f}"


def cells(seconds, ratios):
    return " | ".join([*(f"{statistics.median(each):.3g}" for each in seconds.values()), *(ratio(seconds[a], seconds[b]) for a, b in ratios)])


def header(first, measured, ratios):
    return ["| " + " | ".join([*first, *measured, *(f"{a} / {b}" for a, b in ratios)]) + " |",
            "|" + "---|" * len(first) + "--:|" * (len(measured) + len(ratios))]


def report_tables(rows):
    lines = header(["index"], MEASURED, RATIOS)
    for has_index in (False, True):
        lines.append(f"| {'yes' if has_index else 'no'} | {cells(measure(rows, has_index), RATIOS)} |")
    return lines


def report_links(rows):
    lines = ["\nA table whose rows have a link to a parent with a tenth as many rows:\n", *header(["links", "order"], LINKED, LINKED_RATIOS)]
    for links in (1, 2):
        for is_ordered in (True, False):
            lines.append(f"| {links} | {'by link' if is_ordered else 'none'} | {cells(measure_linked(rows, links, is_ordered), LINKED_RATIOS)} |")
    return lines


def report_guard(rows):
    lines = ["\nThe same statements on a plain connection and on one that `dp_guard` has given a grant, with a quarter of the rows:\n",
             "| statement | plain | guarded | guarded / plain |", "|---|--:|--:|--:|"]
    for name, (plain, guarded) in measure_guard(rows // 4).items():
        lines.append(f"| {name} | {statistics.median(plain):.3g} | {statistics.median(guarded):.3g} | {ratio(guarded, plain)} |")
    return lines


def report_threads(rows):
    lines = ["\nQuestions in a database file on one thread and on two threads. Seconds by the clock:\n",
             "| statement | one thread | two threads | two / one |", "|---|--:|--:|--:|"]
    for name, (one, two) in measure_threads(rows).items():
        lines.append(f"| {name} | {statistics.median(one):.3g} | {statistics.median(two):.3g} | {ratio(two, one)} |")
    return lines


def report(rows):
    lines = [f"# Questions\n\n`make bench-questions` wrote this page: {rows:,} rows, {rows // 10:,} patients, SQLite {sqlite3.sqlite_version},"
             f" {platform.machine()}. CPU seconds, medians of {ROUNDS} rounds; bench/questions.py says what is measured.\n"]
    return "\n".join(lines + report_tables(rows) + report_links(rows) + report_guard(rows) + report_threads(rows)) + "\n"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    text = report(count)
    print(text, end="")
    if count == 2_000_000:
        (ROOT / "bench" / "questions.md").write_text(text)
