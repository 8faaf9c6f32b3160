"""Runs one measurement. bench/measure.py starts this program as a new process for every measurement, writes a job as
JSON to its input, and reads the result as JSON from its output.

A job names one of the functions below. The result contains seconds on the clock, seconds of CPU time (user and
system), and the growth of the process's peak memory during the measurement. Opening databases, loading extensions and
imports come before the clock starts.
"""

import ctypes
import importlib.metadata
import json
import os
import pathlib
import resource
import sqlite3
import statistics
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
EPSILON, DELTA = 1.0, 1e-6
CLIP, CONTRIBUTIONS = 1000.0, 10


def peak(anew=False):
    """Returns the peak memory of this process in bytes. With `anew`, the function first resets the peak (on Linux only). On
    Linux, the function does not use getrusage(), whose peak includes the memory of the parent process."""
    try:
        if anew:
            pathlib.Path("/proc/self/clear_refs").write_text("5")
        (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def timed(action):
    before, start, used = peak(anew=True), time.perf_counter(), time.process_time()
    answer = action()
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    return {"seconds": seconds, "cpu": cpu, "memory": peak() - before, "answer": str(answer)[:60]}


def load(db, extension):
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / extension))
    return db


def open_read_only(path):
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)


# ---- SQLite --------------------------------------------------------------------------------------------


def forget_ledger(database):
    """Drops the marker of the ledger from the database, so that the next measurement begins with a new ledger. A run
    that was killed leaves its marker behind."""
    db = sqlite3.connect(database, isolation_level=None)
    db.execute("DROP TABLE IF EXISTS dp_ledger_id")
    db.close()


def query(database, sql, parameters=(), protects=None, extension=None, adjacency="add-remove", threads=1):
    """Measures one statement on a database whose rows do not change. The ledger is a new file in another folder of
    the same disk. The connection can write the database, because only such a connection can use a ledger."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", pathlib.Path(database).parent)) as folder:
        if protects:
            forget_ledger(database)
        db = sqlite3.connect(database, isolation_level=None) if protects else open_read_only(database)
        if extension:
            load(db, extension)
        if protects:
            load(db, "diffuse")
            terms = {"protects": protects, "adjacency": adjacency, "path": f"{folder}/ledger"}
            db.execute("SELECT dp_init(?)", (json.dumps(terms),)).fetchall()
            for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'dp%'").fetchall():
                db.execute(f"SELECT dp_protect(?{', ?' * (protects == 'unit')})", [table, "unit"][:1 + (protects == "unit")]).fetchall()
            db.execute("SELECT dp_tier('t', 0.001, 100, 1e-5, 'rdp', 5e-6)").fetchall()
        db.execute(f"PRAGMA threads = {threads - 1}").fetchall()  # SQLite counts threads in addition to the host's own thread
        result = timed(lambda: db.execute(sql, parameters).fetchone()[0])
        db.close()
        if protects:
            forget_ledger(database)
    return result


def version():
    (found,) = load(sqlite3.connect(":memory:"), "diffuse").execute("SELECT dp_version()").fetchone()
    return {"diffuse": found}


# ---- other systems: the sum of x with a bound on each person's total, from the SQLite file to the answer ---


def duckdb(database, file, threads, sql):
    """Measures DuckDB on a file of its own with the same rows. The function makes this file once and keeps it. Making
    the file is not part of the measured time."""
    import duckdb as library
    import numpy

    if not pathlib.Path(file).exists():
        for leftover in pathlib.Path(file).parent.glob(f"{pathlib.Path(file).name}.unfinished*"):
            leftover.unlink()
        made = library.connect(f"{file}.unfinished")
        (table,) = open_read_only(database).execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchone()
        cursor = open_read_only(database).execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        made.execute("SET threads = 1")
        wanted = "*" if table != "named" else "id, x, CAST(unit AS VARCHAR) AS unit"
        while rows := cursor.fetchmany(1 << 20):
            columns = {name: numpy.array(column) for name, column in zip(names, zip(*rows))}
            made.execute(f"CREATE TABLE IF NOT EXISTS {table} AS SELECT {wanted} FROM columns LIMIT 0")
            made.execute(f"INSERT INTO {table} SELECT {wanted} FROM columns")
        made.close()
        pathlib.Path(f"{file}.unfinished").rename(file)
    db = library.connect(str(file), read_only=True)
    db.execute(f"SET threads = {threads}")
    return timed(lambda: db.execute(sql).fetchone()[0]) | {"version": versions("duckdb")}


def versions(*packages):
    return ", ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)


def opendp(database):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib", "honest-but-curious")

    def answer():
        frame = pl.read_database("SELECT x, unit FROM visit", open_read_only(database)).lazy()
        context = dp.Context.compositor(
            data=frame, privacy_loss=dp.loss_of(epsilon=EPSILON), split_evenly_over=1,
            privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("unit")),
            margins=[dp.polars.Margin(max_length=10**9, max_groups=10**9)])
        totals = context.query().group_by("unit").agg(pl.col("x").sum().clip(0.0, CLIP))
        return totals.select(pl.col("x").dp.sum((0.0, CLIP))).release().collect().item()

    return timed(answer) | {"version": versions("opendp", "polars")}


def smartnoise(database):
    import snsql

    columns = {"max_ids": CONTRIBUTIONS, "row_privacy": False, "sample_max_ids": True, "clamp_counts": False,
               "clamp_columns": True, "id": {"type": "int"}, "unit": {"type": "int", "private_id": True},
               "x": {"type": "float", "lower": 0.0, "upper": CLIP}}

    def answer():
        reader = snsql.from_connection(open_read_only(database), engine="sqlite",
                                       privacy=snsql.Privacy(epsilon=EPSILON, delta=DELTA),
                                       metadata={"": {"main": {"visit": columns}}})
        return reader.execute("SELECT SUM(x) AS n FROM main.visit")[1][0]

    return timed(answer) | {"version": versions("smartnoise-sql")}


def diffprivlib(database):
    import diffprivlib as library
    import numpy

    def answer():
        x, unit = zip(*open_read_only(database).execute("SELECT x, unit FROM visit"))
        totals = numpy.bincount(numpy.array(unit), weights=numpy.array(x))
        return library.tools.sum(numpy.minimum(totals, CLIP), bounds=(0, CLIP), epsilon=EPSILON,
                                 accountant=library.BudgetAccountant())

    return timed(answer) | {"version": versions("diffprivlib")}


# ---- small releases: where the time goes between the commits ---------------------------------------------


class Syncs:
    """Reads how many calls of fsync and fdatasync this process made, and how long they took. bench/sync.c (LD_PRELOAD) counts the
    calls."""

    def __init__(self):
        self.library = ctypes.CDLL(None)
        self.library.bench_sync_seconds.restype = ctypes.c_double

    def read(self):
        return self.library.bench_sync_seconds(), self.library.bench_sync_calls()


def repeat(action, rounds):
    """Returns the medians of the clock time, the CPU time and the time in fsync, and the number of fsyncs of the last
    round. Each round calls action() with the number of the round."""
    syncs, found = Syncs(), {"seconds": [], "cpu": [], "sync": [], "syncs": []}

    def clocks():
        return (time.perf_counter(), time.process_time(), *syncs.read())

    for number in range(-2, rounds):  # the first two rounds are not counted
        before = clocks()
        action(number)
        for samples, start, end in zip(found.values(), before, clocks()):
            samples.append(end - start)
    return {name: statistics.median(samples[2:]) for name, samples in found.items()}


def small(what, rounds, folder=None):
    """Measures one of the operations below repeatedly, with the ledger in the given folder."""
    with tempfile.TemporaryDirectory(dir=folder or os.environ.get("BENCH_DIR", BUILD)) as folder:
        db = load(sqlite3.connect(f"{folder}/small.db", isolation_level=None), "diffuse")
        db.execute("CREATE TABLE visit(x REAL, unit INTEGER)")
        db.execute("INSERT INTO visit VALUES (1, 1), (2, 2)")
        plain = sqlite3.connect(f"{folder}/plain.db", isolation_level=None)
        for pragma in ("journal_mode = TRUNCATE", "synchronous = FULL"):
            plain.execute(f"PRAGMA {pragma}").fetchall()
        plain.execute("CREATE TABLE n(i)")
        db.execute("SELECT dp_init(), dp_protect('visit', 'unit')").fetchall()
        for tier, rate in (("in", 1e-3), ("out", 1e-5)):
            db.execute("SELECT dp_tier(?, ?, 1e6, 1e-6)", (tier, rate)).fetchall()
        keys = json.dumps({"keys": list(range(1000))})

        def commits(number):
            for i in range(2):
                plain.execute("INSERT INTO n VALUES (?)", (number,))

        def release(number):
            db.execute("SELECT dp_sum('in', x, 10) FROM visit").fetchone()

        def groups(number):
            db.execute("SELECT dp_group_count('in', x, 1, ?) FROM visit", (keys,)).fetchone()

        names = {}
        if what == "diffuse":
            for number in range(-2, rounds):
                db.execute("SELECT dp_group_count('in', x, 1, ?) FROM visit", (keys,)).fetchone()
                (names[number],) = db.execute("SELECT name FROM dp_release ORDER BY id DESC").fetchone()

        def diffuse(number):
            db.execute("SELECT dp_diffuse(?, 'out')", (names[number],)).fetchone()

        actions = {"commits": commits, "release": release, "groups": groups, "diffuse": diffuse}
        result = repeat(actions[what], rounds)
        db.close()
    return result


def guarded(what, guard, rounds, rows):
    """Measures one of the statements below. The connection is guarded by dp_guard(), or plain if `guard` is false."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR", BUILD)) as folder:
        path = f"{folder}/guarded.db"
        db = load(sqlite3.connect(path, isolation_level=None), "diffuse")
        db.execute("CREATE TABLE visit(unit INTEGER, x REAL)")
        db.execute("CREATE TABLE ward(id INTEGER PRIMARY KEY, beds INTEGER)")
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        db.execute(f"{numbers} INSERT INTO visit SELECT i / 10, i % 50 FROM n", (rows,))
        db.execute(f"{numbers} INSERT INTO ward SELECT i, i % 90 FROM n", (rows,))
        for call in ("init()", "protect('visit', 'unit')", "public('ward')", "tier('t', 1e-6, 1e3, 1e-6)", "grant('g', 't', 0.5, '{\"pad_ms\":1}')"):
            db.execute(f"SELECT dp_{call}").fetchall()
        for number in range(max(1, rows // 1000)):
            db.execute("SELECT dp_release('t', 'count', 'SELECT 1 FROM visit LIMIT 1', json_object('name', ?, 'clip', 1))", (f"old {number}",)).fetchall()
        db.close()
        db = load(sqlite3.connect(path, isolation_level=None), "diffuse")
        if guard:
            db.execute("""SELECT dp_guard('t', '{"ask":"g"}')""").fetchall()
        statements = {"compile": "SELECT sum(beds) FROM ward WHERE id = -%d", "public": "SELECT sum(beds) FROM ward WHERE id <> -%d",
                      "values": "SELECT sum(value) FROM dp_value WHERE component <> -%d",
                      "release": "SELECT dp_release('t', 'sum', 'SELECT x FROM visit', '{\"clip\":1000,\"name\":\"%d\"}')"}
        times = 200 if what == "compile" else 1

        def ask(number):
            for i in range(times):  # each text is new, so that Python compiles it
                db.execute(statements[what] % (1000 + number * times + i)).fetchall()

        result = repeat(ask, rounds)
        db.close()
    return result


def ledger(charges, rounds, folder):
    """Measures one release, SELECT * FROM dp_budget and dp_exposure() on a ledger with a history of the given number
    of charges. The function makes the history if the folder does not contain one."""
    import ledger as history

    # The measured releases themselves lengthen a short history noticeably, so the program makes a short history anew each time.
    path = pathlib.Path(folder) / (f"{charges}.db" if charges >= 10_000 else f"{charges}-{os.getpid()}.db")
    db = history.connect(path) if path.exists() else history.prepare(path, charges)
    (count,) = db.execute("SELECT count(*) FROM dp_charge").fetchone()
    result = {name: repeat(lambda _: db.execute(sql).fetchall(), rounds if name != "exposure" else min(rounds, 5))
              for name, sql in history.STATEMENTS.items()} | {"charges": count}
    db.close()
    return result


def main():
    job = json.load(sys.stdin)
    print(json.dumps(globals()[job.pop("call")](**job)))


if __name__ == "__main__":
    main()
