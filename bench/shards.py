"""make bench-shards: measures one release from a folder of SQLite shards. A separate process works on each shard.

The program makes 8 shards of visits to clinics, with 400,000 rows in all or the number in the first argument. The
rows are always the same. There is one set of shards by row, where a patient's visits are in several shards, and one
set by patient. There is also one database of all rows. The program computes the same sums in three ways:

    one database   dp_partial() over all rows, in one process
    processes      dp_partial() in each shard, by concurrent.futures
    dask           the same by Dask's distributed scheduler, on two processes (make deps-shards)

Then dp_merge() runs once, in a database that has the ledger. Before the measurements, the program decodes and adds up
the states of the shards. The sum must be exactly the state of the one database (`exact`). The program prints medians of
five interleaved rounds: the seconds until all states exist, their size, and the seconds of dp_merge(), which charges
the release.
"""

import concurrent.futures
import json
import os
import pathlib
import sqlite3
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(BUILD / "python-shards")]

from states_reference import added  # noqa: E402

try:
    import distributed
except ImportError:
    distributed = None

SHARDS = 8
WORKERS = 2
ROUNDS = 5

# (kind, columns, options, set of shards). In the set "a shard", one shard has all rows of a unit. In the set "nobody", no shard
# has all rows of a unit.
QUESTIONS = [
    ("sum", "minutes", {"clip": 400}, "nobody"),
    ("sum", "minutes", {"clip": 400, "whole_units": True}, "a shard"),
    ("group_count", "clinic", {"clip": 10}, "nobody"),
    ("group_sum", "clinic, minutes", {"clip": 400, "keys": [f"clinic {i}" for i in range(40)], "whole_units": True}, "a shard"),
    ("median", "minutes", {"lo": 0, "hi": 120, "whole_units": True}, "a shard"),
]

VISITS = """
CREATE TABLE visits(patient INTEGER NOT NULL, clinic TEXT NOT NULL, minutes REAL NOT NULL);
WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {end}),
     v(i, patient) AS (SELECT i, i * 40503 % {patients} FROM n)
INSERT INTO visits SELECT patient, 'clinic ' || (patient % 40 / (1 + i % 3 / 2)), 10 + i * 2654435761 % 10007 / 100.0
FROM v WHERE {condition};
"""


def make_database(path, first, end, patients, condition="1"):
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = OFF; BEGIN;" + VISITS.format(first=first, end=end, patients=patients, condition=condition) + "COMMIT;")
    db.close()
    path.with_name(path.name + "-ledger").unlink(missing_ok=True)
    db = connect(path)
    db.execute("SELECT dp_init(), dp_protect('visits', 'patient')").fetchall()
    db.close()


def make_folder(rows):
    """Makes the shards. Returns {"nobody": shards by row, "a shard": shards by patient} and the database of all rows."""
    folder = BUILD / f"shards-with-ledgers-{rows}"
    found = {"nobody": [folder / f"by-row-{i}.db" for i in range(SHARDS)],
             "a shard": [folder / f"by-patient-{i}.db" for i in range(SHARDS)]}, folder / "all.db"
    if (folder / "done").exists():
        return found
    folder.mkdir(parents=True, exist_ok=True)
    patients = rows // 10 + 1
    for i in range(SHARDS):
        make_database(found[0]["nobody"][i], rows * i // SHARDS, rows * (i + 1) // SHARDS, patients)
        make_database(found[0]["a shard"][i], 0, rows, patients, f"patient % {SHARDS} = {i}")
    make_database(found[1], 0, rows, patients)
    (folder / "done").touch()
    return found


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


def state_of(path, kind, columns, options):
    """Computes the state of one database, in a worker."""
    db = connect(path)
    (state,) = db.execute("SELECT dp_partial(?, ?, ?)",
                          (kind, f"SELECT {columns} FROM visits", json.dumps({**options, "shard": path.stem}))).fetchone()
    db.close()
    return state


def merge(states):
    """Makes one release in the driver, which is charged once. Here the ledger is in memory; a real ledger is a file."""
    db = connect(":memory:")
    db.execute("CREATE TABLE visits(patient INTEGER, clinic TEXT, minutes REAL)")
    db.execute("SELECT dp_init(), dp_protect('visits', 'patient')").fetchall()
    db.execute("SELECT dp_tier('t', dp_rate(1, 1e-6), 10, 1e-5, 'rdp', 1e-6)")
    db.execute("CREATE TABLE states(state BLOB)")
    db.executemany("INSERT INTO states VALUES (?)", [(s,) for s in states])
    start = time.perf_counter()
    (answer,) = db.execute("SELECT dp_merge('t', dp_states(state)) FROM states").fetchone()
    seconds = time.perf_counter() - start
    assert db.execute("SELECT count(*) FROM dp_charge").fetchone() == (1,)
    db.close()
    return answer, seconds


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    shards, everything = make_folder(rows)
    pool = concurrent.futures.ProcessPoolExecutor(WORKERS)
    ways = {"one database": lambda paths, *q: [state_of(everything, *q)],
            "processes": lambda paths, *q: list(pool.map(state_of, paths, *([a] * len(paths) for a in q)))}
    cluster = client = None
    if distributed:
        cluster = distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
        client = distributed.Client(cluster)
        ways["dask"] = lambda paths, *q: client.gather([client.submit(state_of, p, *q, pure=False) for p in paths])
    print(f"{rows} rows, {SHARDS} shards, {WORKERS} workers")
    print("kind         whole    way            states s   size MB    merge s  exact")
    for kind, columns, options, whole in QUESTIONS:
        question = (kind, columns, options)
        alone = added(ways["one database"](shards[whole], *question))
        exact = {way: added(make(shards[whole], *question)) == alone for way, make in ways.items()}
        seconds = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, make in ways.items():
                start = time.perf_counter()
                states = make(shards[whole], *question)
                taken = time.perf_counter() - start
                answer, merging = merge(states)
                seconds[way].append((taken, merging, sum(map(len, states)) / 1e6))
        for way, several in seconds.items():
            taken, merging, size = (statistics.median(column) for column in zip(*several))
            print(f"{kind:12} {whole:8} {way:12} {taken:10.3f} {size:9.3f} {merging:10.4f}  {'yes' if exact[way] else 'NO'}")
    if client:
        client.close()
        cluster.close()
    pool.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
