"""make bench: what a long ledger costs. Time of SELECT * FROM dp_budget and of one new release beside 10, 1,000 and
100,000 charges.

The ledger is a file of its own with its usual settings: every release is two commits to the disk. The history is
made from one real release at the outermost of three tiers: it is copied, with its publication, point, value and three
charges, by plain INSERTs into the ledger file (an INSERT of new ids is what the append-only triggers admit; hashes
are left empty, as nothing but dp_verify() reads any but the last), and the budgets are set to the sum. Everything
that is timed is then real: releases at the middle tier, two charges each. dp_exposure() reads the whole history and
is there for comparison.

Prints medians of ROUNDS. With --check the exit status says whether dp_budget takes less than a millisecond and a
release at 100,000 charges at most twice what it takes at 10.
"""

import os
import pathlib
import sqlite3
import statistics
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
ROUNDS = 21
SIZES = (10, 1_000, 100_000)
TIERS = [("in", 1e-3, 1e6), ("middle", 1e-4, 1e6), ("out", 1e-5, 1e6)]
RELEASE = "SELECT dp_release('middle', 'count', 'VALUES (1, 1)')"


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


def grow(path, charges):
    """Repeats the one release that is there until there are about this many charges, three to a release."""
    ledger = sqlite3.connect(f"{path}-ledger", isolation_level=None)
    copies = charges // len(TIERS) - 1
    n = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {copies})"
    ledger.execute("BEGIN")
    for table in ("dp_release", "dp_publication", "dp_path", "dp_value", "dp_charge"):
        columns = [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]
        new = {"dp_release": {"id": "i + 1", "name": "'release-' || (i + 1)"},
               "dp_charge": {"id": f"id + {len(TIERS)} * i", "release_id": "i + 1", "release": "'release-' || (i + 1)",
                             "hash": "''"}}.get(table, {"release_id": "i + 1", "release": "'release-' || (i + 1)"})
        which = "id = 1" if table == "dp_release" else "release_id = 1"
        ledger.execute(f"INSERT INTO {table} {n} SELECT {', '.join(new.get(c, c) for c in columns)}"
                       f" FROM n, {table} WHERE {which} ORDER BY i, {table}.rowid")
    ledger.execute("UPDATE dp_budget SET releases = ?1, spent_rate = ?1 * spent_rate, spent_high = ?1 * spent_high,"
                   " spent_low = 0", (copies + 1,))
    ledger.execute("COMMIT")
    ledger.close()


def prepare(path, charges):
    db = connect(path)
    db.execute("SELECT dp_init()").fetchall()
    for tier, rate, epsilon in TIERS:
        db.execute("SELECT dp_tier(?, ?, ?, 1e-6)", (tier, rate, epsilon)).fetchall()
    db.execute("SELECT dp_release('out', 'count', 'VALUES (1, 1)')").fetchall()
    db.close()
    if charges > len(TIERS):
        grow(path, charges)
    return connect(path)


def median(action):
    action()  # opens the ledger
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def measure(folder, charges):
    db = prepare(pathlib.Path(folder) / f"{charges}.db", charges)
    (count,) = db.execute("SELECT count(*) FROM dp_charge").fetchone()
    budget = median(lambda: db.execute("SELECT * FROM dp_budget").fetchall())
    release = median(lambda: db.execute(RELEASE).fetchall())
    exposure = median(lambda: db.execute("SELECT dp_exposure('out')").fetchall())
    db.close()
    return count, budget, release, exposure


def main():
    results = []
    print(f"{'charges':>8}  {'SELECT * FROM dp_budget':>24}  {'one release':>12}  {'dp_exposure':>12}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        for charges in SIZES:
            count, budget, release, exposure = measure(folder, charges)
            results.append((budget, release))
            print(f"{count:8}  {budget * 1e3:21.3f} ms  {release * 1e3:9.3f} ms  {exposure * 1e3:9.3f} ms")
    if "--check" in sys.argv[1:]:
        sys.exit(results[-1][0] > 1e-3 or results[-1][1] > 2 * results[0][1])


if __name__ == "__main__":
    main()
