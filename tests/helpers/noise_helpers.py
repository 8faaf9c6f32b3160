"""Helpers of the tests of noise, neighbours, refinement and errors. Databases are in memory, and so are their
ledgers, unless a test asks for a file.

Statistical tests compare a statistic with its expectation and allow a difference of SEVEN standard errors. A false alarm has
probability 2.6e-12 for each comparison of means. For variances it has probability at most 5e-10, because chi-squared tails are
heavier; each test has at least 400 values. Shares are compared with exact binomial tails, at 1e-10 on each side.
"""

import contextlib
import math
import os
import pathlib
import shutil
import sqlite3
import tempfile

import numpy
from scipy import stats

from conftest import edit, ledger_of, quick_folder

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
SEVEN = 7.0
UNLIMITED = (1e15, 1e-6)  # epsilon and delta of tiers in tests that do not concern the budget


def connect(path=":memory:"):
    """Returns a connection with the extension, in autocommit mode."""
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    db.enable_load_extension(False)
    return db


@contextlib.contextmanager
def quick_path():
    """Gives the path of a temporary database file, which exists until the end of the `with` block."""
    directory = tempfile.mkdtemp(prefix="diffuse-", dir=quick_folder())
    try:
        yield os.path.join(directory, "data.db")
    finally:
        shutil.rmtree(directory)


def open_ledger(tiers, options="{}", path=":memory:"):
    """Returns a connection with a ledger and tiers {name: rate} of unlimited budget."""
    db = connect(path)
    one(db, "SELECT dp_init(?)", options)
    for name, rate in tiers.items():
        one(db, "SELECT dp_tier(?, ?, ?, ?)", name, rate, *UNLIMITED)
    return db


def one(db, sql, *arguments):
    """Returns the single value of a query."""
    rows = db.execute(sql, arguments).fetchall()
    assert len(rows) == 1 and len(rows[0]) == 1, rows
    return rows[0][0]


def column(db, sql, *arguments):
    return [row[0] for row in db.execute(sql, arguments)]


def record(db, sql, *arguments):
    """Returns the single row of a query as a dictionary."""
    cursor = db.execute(sql, arguments)
    names = [d[0] for d in cursor.description]
    rows = cursor.fetchall()
    assert len(rows) == 1, rows
    return dict(zip(names, rows[0]))


def create_table(db, columns, name="t"):
    """Creates a protected table. Its column `unit` names the unit of each row, or each row is a unit if the ledger protects rows."""
    db.execute(f"CREATE TABLE {name}({columns})")
    by_unit = one(db, "SELECT json_extract(dp_certificate(), '$.ledger.protects')") == "unit"
    one(db, f"SELECT dp_protect(?{', ?' * by_unit})", *[name, "unit"][:1 + by_unit])


def fill(db, rows, columns="x, unit"):
    """Replaces the protected table t by these rows."""
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 't'").fetchone():
        create_table(db, columns)
    db.execute("BEGIN")
    db.execute("DELETE FROM t")
    db.executemany(f"INSERT INTO t VALUES (?{', ?' * columns.count(',')})", rows)
    db.execute("COMMIT")


def error_of(db, sql, *arguments):
    """Runs a statement that must fail, and returns the error message."""
    try:
        rows = db.execute(sql, arguments).fetchall()
    except sqlite3.Error as error:
        return str(error)
    raise AssertionError(f"no error, but {rows}: {sql}")


def charges(db):
    return db.execute("SELECT id, release, tier, rate, hash FROM dp_charge ORDER BY id").fetchall()


def check_mean(x, mean, stddev, what=""):
    """Checks the mean of independent x with this standard deviation."""
    z = (numpy.mean(x) - mean) / (stddev / math.sqrt(len(x)))
    assert abs(z) <= SEVEN, f"{what}: the mean is {z:.1f} standard errors off"


def check_variance(x, stddev, what=""):
    """Checks the second moment of independent Gaussian x with mean 0."""
    z = (numpy.mean(numpy.square(x)) / stddev**2 - 1) / math.sqrt(2 / len(x))
    assert abs(z) <= SEVEN, f"{what}: the variance is {z:.1f} standard errors off"


def check_covariance(x, y, covariance, what=""):
    """Checks the mixed moment of independent pairs of Gaussian x and y with mean 0."""
    error = math.sqrt((numpy.mean(numpy.square(x)) * numpy.mean(numpy.square(y)) + covariance**2) / len(x))
    z = (numpy.mean(numpy.multiply(x, y)) - covariance) / error
    assert abs(z) <= SEVEN, f"{what}: the covariance is {z:.1f} standard errors off"


def check_share(hits, of, probability, what=""):
    """Checks the number of hits among independent trials."""
    tail = min(stats.binom.cdf(hits, of, probability), stats.binom.sf(hits - 1, of, probability))
    assert tail >= 1e-10, f"{what}: {hits} of {of}, where {probability} of them are expected"


def check_path(noise, stddev, what=""):
    """Checks that the noise at the tiers, from the inner to the outer tier, is a Brownian motion at the times given by the
    clocks."""
    tiers = range(len(stddev))
    for i in tiers:
        check_mean(noise[:, i], 0, stddev[i], f"{what} tier {i}")
        check_variance(noise[:, i], stddev[i], f"{what} tier {i}")
        for j in range(i):
            check_covariance(noise[:, i], noise[:, j], stddev[j] ** 2, f"{what} tiers {i} and {j}")
    for i in tiers[1:]:
        step = noise[:, i] - noise[:, i - 1]
        check_variance(step, math.sqrt(stddev[i] ** 2 - stddev[i - 1] ** 2), f"{what} step {i}")
        for j in range(i):
            check_covariance(step, noise[:, j], 0, f"{what} step {i} and tier {j}")


def unnoticed(path, changes):
    """Makes each change to the correct ledger separately, and returns the changes for which dp_verify() still returns 'ok'."""
    shutil.copy(path + "-ledger", path + "-good")
    missed = []
    for change in changes:
        shutil.copy(path + "-good", path + "-ledger")
        ledger = ledger_of(path)
        ledger.execute("PRAGMA synchronous = OFF")
        assert edit(ledger, change) > 0, change
        ledger.close()
        db = connect(path)
        try:
            if one(db, "SELECT dp_verify()") == "ok":
                missed.append(change)
        except sqlite3.Error:
            pass  # an error also counts as noticed
        db.close()
    return missed


def said_of(literal):
    """Returns the end of an error about a value that should be a number. It names the type of the value, never the value."""
    return (", not NULL" if literal == "NULL" else ", not a text" if literal[0] in "'\"" else ", not a blob" if "blob" in literal
            else ", not a Boolean" if literal in ("true", "false") else "")
