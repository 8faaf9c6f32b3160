"""make bench-tables: measures cross tables and writes bench/tables.md.

A release of 22 tables (all pairs of six attributes, 3,302 cells) is compared with a group_count of the first attribute, over
1,000,000 rows or the number in the first argument: with a row for each person, with keys that are numbers or texts, and with ten
rows for each person in different cells, so that each person is clipped. The goal is twice the time of the group_count. tables.c
measures the shares of 176 tables and the reconciliation of 124,601 cells.

All figures are CPU seconds of the process, which other programs on the machine disturb less than clock time. They are medians of
five interleaved rounds, and ratios are taken within a round.
"""

import json
import os
import pathlib
import platform
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
ROUNDS = 5
SIZES = {"region": 52, "sex": 2, "age": 9, "school": 7, "work": 4, "month": 12}
KINDS = [("numbers", 1), ("texts", 1), ("numbers", 10)]


def attributes(kind):
    return {name: [f"{name} {i}" if kind == "texts" else i for i in range(size)] for name, size in SIZES.items()}


def fill(db, keys, rows, each):
    chance = random.Random(1)
    db.execute(f"CREATE TABLE person(id, {', '.join(SIZES)})")
    db.execute("BEGIN")
    db.executemany("INSERT INTO person VALUES (?, ?, ?, ?, ?, ?, ?)",
                   ((chance.randrange(rows // each) if each > 1 else i, *map(chance.choice, keys.values())) for i in range(rows)))
    db.execute("COMMIT")
    for statement in ("SELECT dp_init()", "SELECT dp_protect('person', 'id')", "SELECT dp_tier('t', 1, 1e9, 1e-6)"):
        db.execute(statement).fetchall()


def seconds(db, columns, options):
    start = time.process_time()
    db.execute("SELECT dp_release('t', 'group_count', ?, ?)", (f"SELECT {columns} FROM person", json.dumps({"clip": 1, **options}))).fetchall()
    return time.process_time() - start


def measure(folder, kind, each, rows):
    """Returns the seconds of the group_count and of the cross tables, and their ratio."""
    keys = attributes(kind)
    db = sqlite3.connect(pathlib.Path(folder) / f"{kind}{each}.db", isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    fill(db, keys, rows, each)
    rounds = [(seconds(db, "region", {"keys": keys["region"]}), seconds(db, ", ".join(SIZES), {"keys": keys, "ways": 2})) for _ in range(ROUNDS)]
    db.close()
    alone, tables = (statistics.median(side) for side in zip(*rounds))
    return alone, tables, statistics.median(b / a for a, b in rounds)


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    times = {}
    for _ in range(ROUNDS):
        done = subprocess.run([BUILD / "bench" / "tables"], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            name, value = line.split("\t")
            times.setdefault(name, []).append(float(value))
    with tempfile.TemporaryDirectory() as folder:
        releases = [(kind, each, *measure(folder, kind, each, rows)) for kind, each in KINDS]
    lines = ["# Cross tables", "",
             f"`make bench-tables` wrote this page: {rows:,} rows, SQLite {sqlite3.sqlite_version}, {platform.machine()}. CPU seconds, medians of"
             f" {ROUNDS} rounds; bench/tables.py says what is measured.", "",
             "| keys | rows of a person | one group_count | 22 tables | 22 tables / one |", "|---|--:|--:|--:|--:|"]
    lines += [f"| {kind} | {each} | {alone:.3g} | {tables:.3g} | {ratio:.2f} |" for kind, each, alone, tables, ratio in releases]
    lines += ["", "| arithmetic | seconds | goal |", "|---|--:|--:|",
              f"| shares of 176 tables | {statistics.median(times['shares']):.3g} | 0.1 |",
              f"| reconciliation of 124,601 cells | {statistics.median(times['reconcile']):.3g} | 0.05 |"]
    page = "\n".join(lines) + "\n"
    print(page, end="")
    if rows == 1_000_000:
        (ROOT / "bench" / "tables.md").write_text(page)


if __name__ == "__main__":
    main()
