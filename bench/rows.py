"""make bench: the aggregates over ten million rows, as ratios to SQLite's own sum() in the same run.

Prints medians of seven interleaved rounds. The first argument may give another number of rows; with
--check LIMIT3 LIMIT5 the exit status says whether dp_sum with three and with five arguments is within
these ratios where the ledger protects rows.
"""

import os
import pathlib
import sqlite3
import statistics
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
ROUNDS = 7


def make_table(path, rows):
    """Interleaved units, skewed values: the same table for everybody who runs this."""
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, x REAL NOT NULL, unit INTEGER NOT NULL)")
    db.execute(
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        " SELECT i, (i * 2654435761 % 100003) / 100.0, i * 40503 % (? / 10 + 1) FROM n",
        (rows, rows),
    )
    db.commit()
    db.close()


def connect(path, protects):
    for suffix in ("-ledger", "-ledger-journal"):
        pathlib.Path(str(path) + suffix).unlink(missing_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("DROP TABLE IF EXISTS dp_ledger_id")
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    db.execute("SELECT dp_init(?)", (f'{{"protects":"{protects}"}}',))
    db.execute("SELECT dp_tier('t', 0.001, 100, 1e-6)")
    return db


def measure(db, queries):
    """Median seconds, and median ratio to the first query, round by round."""
    seconds = {name: [] for name in queries}
    for number in range(ROUNDS):
        for name, sql in queries.items():
            start = time.perf_counter()
            db.execute(sql.replace("?", f"'n{number}{name}'")).fetchone()
            seconds[name].append(time.perf_counter() - start)
    base = next(iter(seconds.values()))
    return {
        name: (
            statistics.median(times),
            statistics.median(t / b for t, b in zip(times, base)),
        )
        for name, times in seconds.items()
    }


def report(title, results):
    print(title)
    for name, (seconds, ratio) in results.items():
        print(f"  {name:42} {seconds:7.3f} s   {ratio:5.2f}")


def main():
    arguments = sys.argv[1:]
    limits = None
    if "--check" in arguments:
        at = arguments.index("--check")
        limits = [float(x) for x in arguments[at + 1 : at + 3]]
        del arguments[at : at + 3]
    rows = int(arguments[0]) if arguments else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "bench.db"
        make_table(path, rows)
        by_row = measure(
            connect(path, "row"),
            {
                "sum(x)": "SELECT sum(x) FROM t",
                "dp_sum, 3 arguments": "SELECT dp_sum('t', x, 1000) FROM t",
                "dp_sum, 5 arguments": "SELECT dp_sum('t', x, 1000, NULL, ?) FROM t",
                "dp_count, 2 arguments": "SELECT dp_count('t', x) FROM t",
                "dp_release": """SELECT dp_release('t', 'sum', 'SELECT x FROM t', '{"clip":1000}')""",
            },
        )
        report(f"{rows} rows, ledger protects rows", by_row)
        by_unit = measure(
            connect(path, "unit"),
            {
                "sum(x)": "SELECT sum(x) FROM t",
                "dp_sum, integer units, random order": "SELECT dp_sum('t', x, 1000, unit) FROM t",
                "dp_sum, integer units, sorted": "SELECT dp_sum('t', x, 1000, id / 10) FROM t",
            },
        )
        report(f"{rows} rows, {rows // 10} units", by_unit)
    if limits:
        ratios = by_row["dp_sum, 3 arguments"][1], by_row["dp_sum, 5 arguments"][1]
        sys.exit(any(ratio > limit for ratio, limit in zip(ratios, limits)))


if __name__ == "__main__":
    main()
