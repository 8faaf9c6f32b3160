"""Makes the tables of the benchmarks. The same number of rows and the same seed always give the same values.

    python3 bench/generate.py FOLDER [--rows N] [--seed S]

    visit (id, x REAL, unit INTEGER)               rows / 10 units in random order, each equally often
    ordered(id, x REAL, unit INTEGER)              the same units in order: the 10 rows of a unit are consecutive
    named (id, x REAL, unit TEXT)                  the rows of visit, the unit as a text of 16 characters
    basket(id, x REAL, unit INTEGER, key INTEGER)  units and 1000 keys by Zipf's law: a few have very many rows
    spread(id, x REAL, unit INTEGER, key INTEGER)  the units of visit and 1000 keys, uniformly: most pairs are new
    track (id, v BLOB, unit INTEGER)               rows / 10 vectors of 32 float32

Each table has a file of its own, `<table>-<rows>.db`, so that a scan reads no other data. x is log-normal with median
20 and sigma 1, rounded to hundredths. The program keeps files that exist already. A file gets its name only after all
rows are written.

Random numbers are hashes of seed, column and row in 64-bit integers (splitmix64). Zipf's weights are whole numbers,
and x comes from a table of rounded quantiles. The rows therefore do not depend on the version of a library or on the
last bit of a logarithm. The other bytes of a file depend only on the version of SQLite.
"""

import argparse
import math
import pathlib
import sqlite3
import statistics

import numpy as np

SEED = 1
CHUNK = 1 << 20
KEYS = 1000
DIMENSION = 32
TABLES = {
    "visit": "id INTEGER PRIMARY KEY, x REAL NOT NULL, unit INTEGER NOT NULL",
    "ordered": "id INTEGER PRIMARY KEY, x REAL NOT NULL, unit INTEGER NOT NULL",
    "named": "id INTEGER PRIMARY KEY, x REAL NOT NULL, unit TEXT NOT NULL",
    "basket": "id INTEGER PRIMARY KEY, x REAL NOT NULL, unit INTEGER NOT NULL, key INTEGER NOT NULL",
    "spread": "id INTEGER PRIMARY KEY, x REAL NOT NULL, unit INTEGER NOT NULL, key INTEGER NOT NULL",
    "track": "id INTEGER PRIMARY KEY, v BLOB NOT NULL, unit INTEGER NOT NULL",
}


def random(seed, stream, first, count):
    """Returns 64 random bits for each element i. The bits depend only on (seed, stream, i)."""
    with np.errstate(over="ignore"):
        z = np.arange(first, first + count, dtype=np.uint64)
        z = (z + np.uint64(seed << 48 | stream << 40)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def below(bits, n):
    return (bits % np.uint64(n)).astype(np.int64)


def log_normal():
    """Returns 65,536 equally likely values, rounded to hundredths."""
    normal = statistics.NormalDist()
    quantiles = (normal.inv_cdf((i + 0.5) / 65536) for i in range(65536))
    return np.array([round(2000 * math.exp(z)) for z in quantiles], dtype=np.int64) / 100.0


def zipf(n):
    """Returns the running totals of whole weights that are proportional to 1, 1/2, ..., 1/n."""
    return np.cumsum((1 << 40) // np.arange(1, n + 1, dtype=np.int64))


def from_weights(bits, totals):
    return np.searchsorted(totals, below(bits, totals[-1]), side="right")


class Columns:
    """Computes the columns of a table with `rows` rows, from row `first` on."""

    def __init__(self, rows, seed):
        self.seed = seed
        self.units = max(1, rows // 10)
        self.values = log_normal()

    def x(self, first, count):
        return self.values[below(random(self.seed, 1, first, count), len(self.values))].tolist()

    def unit(self, first, count):
        return below(random(self.seed, 2, first, count), self.units).tolist()

    def visit(self, first, count):
        return self.x(first, count), self.unit(first, count)

    def ordered(self, first, count):
        return self.x(first, count), (np.arange(first, first + count) // 10).tolist()

    def named(self, first, count):
        return self.x(first, count), [f"patient-{unit:08d}" for unit in self.unit(first, count)]

    def basket(self, first, count):
        if not hasattr(self, "weights"):
            self.weights = zipf(self.units), zipf(KEYS)
        return (self.x(first, count),) + tuple(
            from_weights(random(self.seed, stream, first, count), totals).tolist()
            for stream, totals in zip((3, 4), self.weights))

    def spread(self, first, count):
        return *self.visit(first, count), below(random(self.seed, 7, first, count), KEYS).tolist()

    def track(self, first, count):
        bits = random(self.seed, 5, first * DIMENSION, count * DIMENSION)
        vectors = (below(bits, 2001) - 1000).astype("<f4") / np.float32(1024)
        return [row.tobytes() for row in vectors.reshape(count, DIMENSION)], self.unit(first, count)


def table(folder, name, rows, seed=SEED):
    """Returns the path of the file with this table. Makes the file if it does not exist."""
    path = pathlib.Path(folder) / (f"{name}-{rows}.db" if seed == SEED else f"{name}-{rows}-{seed}.db")
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    columns = Columns(rows, seed)
    wanted = rows // 10 if name == "track" else rows
    db = sqlite3.connect(unfinished, isolation_level=None)
    db.execute("PRAGMA page_size = 4096")
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    db.execute(f"CREATE TABLE {name}({TABLES[name]})")
    insert = f"INSERT INTO {name} VALUES ({', '.join('?' * (TABLES[name].count(',') + 1))})"
    for first in range(0, wanted, CHUNK):
        count = min(CHUNK, wanted - first)
        db.executemany(insert, zip(range(first + 1, first + count + 1), *getattr(columns, name)(first, count)))
    db.execute("COMMIT")
    db.close()
    unfinished.rename(path)
    return path


def dimensions(folder, sizes, rows, seed=SEED):
    """Makes a file that has, for every size, a table v<size>(v BLOB) with the given number of vectors."""
    path = pathlib.Path(folder) / f"dimensions-{rows}-{max(sizes)}.db"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    db = sqlite3.connect(unfinished, isolation_level=None)
    db.execute("BEGIN")
    for size in sizes:
        bits = random(seed, 6, 0, rows * size)
        vectors = ((below(bits, 2001) - 1000).astype("<f4") / np.float32(1024)).reshape(rows, size)
        db.execute(f"CREATE TABLE v{size}(v BLOB NOT NULL)")
        db.executemany(f"INSERT INTO v{size} VALUES (?)", ((row.tobytes(),) for row in vectors))
    db.execute("COMMIT")
    db.close()
    unfinished.rename(path)
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--tables", default=",".join(TABLES))
    arguments = parser.parse_args()
    for name in arguments.tables.split(","):
        print(table(arguments.folder, name, arguments.rows, arguments.seed))


if __name__ == "__main__":
    main()
