"""Runs the benchmarks at small sizes, so that they keep working. The tests check the bytes of the generator, every measured
statement and both reports, but not the measured times."""

import hashlib
import importlib
import pathlib
import re
import sqlite3
import subprocess
import sys

import pytest

from conftest import EXTENSION

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 20_000
pytestmark = [pytest.mark.own, pytest.mark.plain]


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Returns the modules of bench/ by name. Tables are written to a folder of the test, and each job runs once, in this process.
    """
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.setenv("BENCH_DIR", str(tmp_path))
    modules = {name: importlib.import_module(name) for name in ("children", "generate", "measure", "suite")}
    monkeypatch.setattr(modules["measure"], "TABLES", tmp_path)

    def query(database, extension=None, **job):
        return modules["children"].query(database, extension=extension, **job)

    started = modules["measure"].run

    def run(job, folder=None, syncs=False):
        if folder:
            return {"missing": "not installed"}
        return started(job) if job["call"] == "version" else query(**{k: v for k, v in job.items() if k != "call"})

    monkeypatch.setattr(modules["measure"], "run", run)
    yield modules | {"started": started}
    for name in ("children", "generate", "measure", "suite", "growth", "figures", "ledger"):
        sys.modules.pop(name, None)


def content(path, name):
    digest = hashlib.sha256()
    for row in sqlite3.connect(path).execute(f"SELECT * FROM {name}"):
        digest.update(repr(row).encode())
    return digest.hexdigest()[:16]


def test_the_tables_are_the_same_for_everybody(bench, tmp_path):
    table = bench["generate"].table
    known = {"visit": "19e28b3d931b64e2", "named": "9e302c51d68e2ee1",
             "basket": "5f772f922653273d", "spread": "238f7f6bb853122f", "track": "507879546e6bb32c"}
    for name in known:
        first, second = (table(tmp_path / folder, name, ROWS) for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()
        assert content(first, name) != content(table(tmp_path, name, ROWS, seed=2), name)
        assert content(first, name) == known[name], name


def test_the_tables_are_as_described(bench, tmp_path):
    db = sqlite3.connect(bench["generate"].table(tmp_path, "visit", ROWS))
    units, most, median = db.execute(
        "SELECT (SELECT count(DISTINCT unit) FROM visit),"
        " (SELECT max(n) FROM (SELECT count(*) AS n FROM visit GROUP BY unit)),"
        " (SELECT x FROM visit ORDER BY x LIMIT 1 OFFSET 10000)").fetchone()
    assert units == ROWS // 10 and most < 40 and 19 < median < 21
    # A unit's rows lie far apart.
    assert db.execute("SELECT count(*) FROM visit AS a, visit AS b WHERE b.id = a.id + 1 AND a.unit = b.unit"
                      ).fetchone()[0] < 40
    db = sqlite3.connect(bench["generate"].table(tmp_path, "spread", ROWS))
    pairs, keys = db.execute("SELECT (SELECT count(*) FROM (SELECT DISTINCT unit, key FROM spread)), count(DISTINCT key) FROM spread"
                             ).fetchone()
    assert 0.99 * ROWS < pairs < ROWS and keys == 1000
    db = sqlite3.connect(bench["generate"].table(tmp_path, "basket", ROWS))
    largest = [n for (n,) in db.execute("SELECT count(*) AS n FROM basket GROUP BY unit ORDER BY n DESC LIMIT 2")]
    assert largest[0] > ROWS / 12 and 1.7 < largest[0] / largest[1] < 2.3  # Zipf's law: the first key has twice as many rows as the next


def test_every_aggregate_is_measured(bench):
    """The table of statistics in sql/aggregates.md, with its two adverbs, names the aggregates that the benchmark measures."""
    listed = set()
    for line in (ROOT / "sql/aggregates.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 7 and cells[4].startswith(("yes", "no")):
            listed |= {bound + key + name for name in re.findall(r"`(\w+)`", cells[1])
                       for bound in ("", "ou_" * (cells[4] == "yes")) for key in ("", "group_" * cells[5].startswith("yes"))}
    assert len(listed) == 44 and listed == set(bench["suite"].AGGREGATES)


@pytest.mark.slow
def test_every_statement_runs_and_is_reported(bench, tmp_path):
    suite = bench["suite"].Suite(ROWS, rounds=1, repeats=1)
    suite.prepare()
    results = {name: getattr(suite, name)() for name in ("goals", "aggregates", "formulations", "groups", "systems")}
    bench["suite"].write_report(tmp_path / "results.md", results, ROWS)
    report = (tmp_path / "results.md").read_text()
    only = bench["suite"].RELEASES_ONLY
    assert all((f"`{kind}` by `dp_release`" if kind in only else f"`dp_{kind}`") in report for kind in bench["suite"].AGGREGATES)
    assert "not installed" in report
    # Every system gets the same question. With almost no noise, all give the same answer.
    plain, ours = (float(results["formulations"][name][0]["answer"]) for name in ("per unit", "dp_sum"))
    assert abs(plain - ours) < 1000 * 22.4 * 7  # 7 standard deviations of clip / sqrt(2 * 0.001) each
    assert float(results["formulations"]["per unit, text"][0]["answer"]) == pytest.approx(plain)


def test_a_process_for_each_measurement(bench, monkeypatch, tmp_path):
    """These measurements need a process of their own: peak memory, and the number of fsync calls, which a preloaded library
    counts."""
    library = pathlib.Path(EXTENSION).parent / "bench/sync.so"
    monkeypatch.setattr(bench["measure"], "TABLES", library.parent)
    monkeypatch.setattr(bench["measure"], "run", bench["started"])
    database = tmp_path / "empty.db"
    sqlite3.connect(database).execute("CREATE TABLE t(x)")
    text = bench["started"]({"call": "query", "database": str(database),
                             "sql": "SELECT length(hex(zeroblob(20000000)))"})
    assert text["answer"] == "40000000" and 38 * 2**20 < text["memory"] < 200 * 2**20
    empty = bench["started"]({"call": "query", "database": str(database), "sql": "SELECT 1"})
    assert empty["memory"] < 2**20
    results = bench["suite"].Suite(1000, rounds=1, repeats=1).small()
    syncs = {name: found[0]["syncs"] for name, found in results.items() if name in ("commits", "release", "diffuse")}
    assert 2 * syncs["diffuse"] == syncs["commits"] >= 4
    assert syncs["release"] == syncs["commits"]
    assert [results[name][0]["charges"] for name in ("10", "1000")] == [9, 999]
    assert "long ledgers" in "\n".join(bench["suite"].report_small(results, 1000))
    guard = bench["suite"].Suite(1000, rounds=1, repeats=1).guard()
    assert len(guard) == 8 and all(found[0]["cpu"] > 0 for found in guard.values())
    assert "guarded, ms" in "\n".join(bench["suite"].report_guard(guard, 1000))


def test_a_history_is_sealed_as_the_ledger_seals(bench, tmp_path):
    history = importlib.import_module("ledger")
    db = history.prepare(tmp_path / "long.db", 30)
    ledger = sqlite3.connect(f"{tmp_path / 'long.db'}-ledger")
    assert ledger.execute("SELECT count(*) FROM dp_release r WHERE EXISTS"
                          " (SELECT 1 FROM dp_seal WHERE release_id = r.id)").fetchone() == (10,)
    # The extension checks the seal of a copied release when the release is published again, and the seal of the budgets at every
    # charge. All these seals must be valid.
    for number in range(1, 11):
        assert db.execute("SELECT dp_diffuse(?, 'out')", (f"release-{number}",)).fetchone()[0] is not None
    assert db.execute(history.STATEMENTS["release"]).fetchone()[0] is not None
    # From the fourth charge on, the hashes in this history are wrong, and dp_verify() finds this.
    assert db.execute("SELECT dp_verify()").fetchone()[0].startswith("dp_charge: row 4 does not match its hash")


def test_what_is_measured_keeps_its_rows(bench, tmp_path):
    path = bench["generate"].table(tmp_path, "visit", ROWS)
    before = content(path, "visit")
    for killed in (False, True):
        if killed:
            sqlite3.connect(path).execute("CREATE TABLE dp_ledger_id(id)")
        bench["children"].query(path, "SELECT dp_sum('t', x, 1000) FROM visit", protects="unit")
        assert content(path, "visit") == before
        assert [name for (name,) in sqlite3.connect(path).execute("SELECT name FROM sqlite_schema")] == ["visit"]


def test_growth(bench, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    growth = importlib.import_module("growth")
    monkeypatch.setattr(growth.measure, "TABLES", tmp_path)
    monkeypatch.setattr(growth, "VECTORS", 100)
    for name, (measured, report) in growth.CURVES.items():
        if name != "charges":
            most = {"rows": 100_000, "dimension": 300}.get(name, 20_000)
            monkeypatch.setattr(growth, "made", bench["generate"].table.__get__(tmp_path))
            lines = report(measured(most, 1), tmp_path)
            assert f"![{name}](growth/{name}.svg)" in lines and (tmp_path / f"{name}.svg").exists()


def test_the_ledger_stays_small(bench, tmp_path):
    """A coordinate of a point takes about 20 bytes. It took 76 when each row repeated the names of the release and the tier."""
    sizes = importlib.import_module("ledger").sizes(tmp_path, 10)
    nodes, small = 3 * 2046, 3 * 510  # of the trees at three tiers
    assert 8 * nodes < sizes["a median"] < 20 * nodes and 8 * small < sizes["a median with a grid of 151 values"] < 20 * small
    assert sizes["a count"] < 4096 and sizes["counts of 1,000 public keys"] < 3000 * 160


def test_a_model_is_found_again(bench):
    pytest.importorskip("matplotlib")
    growth = importlib.import_module("growth")
    import numpy

    x = numpy.array([1e3, 1e4, 1e5, 1e6, 1e7])
    (a, b), _, off = growth.fit((numpy.ones(5), x), 2e-3 + 3e-8 * x)
    assert (a, b) == pytest.approx((2e-3, 3e-8)) and off.max() < 1e-9
    assert growth.fit((numpy.ones(5), x), 5 - 1e-8 * x)[0][1] == 0  # no coefficient of a cost is negative


def test_questions_are_measured():
    done = subprocess.run([sys.executable, str(ROOT / "bench" / "questions.py"), "2000"], capture_output=True, text=True, check=True)
    header, _, without, with_index, top, _, *rest = [line for line in done.stdout.splitlines() if line.startswith("|")]
    links, (head, _, *statements), (clocks, _, *threads) = rest[:4], rest[4:11], rest[11:]
    assert header.count("|") == without.count("|") == with_index.count("|") and "by unit / GROUP BY" in header
    assert [line.split("|")[1].strip() for line in (without, with_index)] == ["no", "yes"]
    assert all(line.count("|") == top.count("|") for line in links) and "at once / GROUP BY" in top
    assert [[cell.strip() for cell in line.split("|")[1:3]] for line in links] == [["1", "by link"], ["1", "none"], ["2", "by link"], ["2", "none"]]
    assert len(statements) == 5 and all(line.count("|") == head.count("|") for line in statements) and "guarded / plain" in head
    assert len(threads) == 3 and all(line.count("|") == clocks.count("|") for line in threads) and "two / one" in clocks
    assert all(float(cell) > 0 for line in (without, with_index, *statements, *threads) for cell in line.split("|")[2:-1])
    assert all(float(cell) > 0 for line in links for cell in line.split("|")[3:-1])
