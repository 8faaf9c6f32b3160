"""Tests releases through a large kernel, or of many reports. Their costs and draws take seconds. The ledger is not locked during
this time: other connections make releases, an interrupt ends the work, and a change of the ledger never leads to a wrong charge."""

import json
import os
import random
import sqlite3
import time

import numpy
import pytest

from conftest import refused, when_looking
from mechanism_truth import curve_of, ORDERS
from noise_helpers import BUILD, connect, create_table, one

ROWS = '{"protects":"row","adjacency":"replace"}'
XS, YS, ZS = [f"x{i:02}" for i in range(40)], [f"y{i:02}" for i in range(40)], [f"z{i:03}" for i in range(128)]


def kernel_of(states, symbols, seed):
    """Returns a dense kernel. No two of its probabilities are equal, so every pair of rows has to be compared."""
    chance = random.Random(seed)
    cells = []
    for i, x in enumerate(states):
        weights = [1 + 0.3 * chance.random() + 0.5 * len(symbols) * (j == i) for j in range(len(symbols))]
        cells += [[x, y, weight / sum(weights)] for y, weight in zip(symbols, weights)]
    return json.dumps(cells)


LARGE = kernel_of(XS, ZS, 1)      # half a second
FIRST = kernel_of(XS, YS, 2)      # a part of it
SECOND = kernel_of(YS, ZS, 3)     # after FIRST, half a second
REPORTS = "SELECT dp_release('in', 'response_count', 'SELECT k FROM t', json_insert(?2, '$.kernel', json(?1)))"
OPTIONS = {"n": 10, "otherwise": "x00", "name": "r"}
MIX = ("SELECT dp_mix('r', 'mid', ?)", SECOND)


def response(kernel):
    return REPORTS, kernel, json.dumps(OPTIONS)


def element(kernel, name="r"):
    return {"tier": "in", "kind": "response_count", "sql": "SELECT k FROM t",
            "options": {**OPTIONS, "name": name, "kernel": json.loads(kernel)}}


def release(kernel):
    of = element(kernel)
    return "SELECT dp_release('in', 'response_count', ?, ?)", of["sql"], json.dumps(of["options"])


def batch(kernel):
    count = {"tier": "in", "kind": "count", "sql": "SELECT 1 FROM t", "options": {"name": "counted", "clip": 1}}
    return "SELECT dp_batch(?)", json.dumps([count, element(kernel)])


# The ways of paying for a large kernel: what happens before, and the statement.
WAYS = {
    "aggregate": ([], response(LARGE)),
    "dp_release": ([], release(LARGE)),
    "dp_batch": ([], batch(LARGE)),
    "dp_mix of reports": ([response(FIRST)], MIX),
    "dp_mix of a symbol": ([("SELECT dp_release('in', 'choice', 'SELECT k FROM t', json_object('name', 'r', 'candidates', json(?)))", json.dumps(YS))], MIX),
}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def ledger(path, before=(), tiers=(("in", 400.0), ("mid", 300.0), ("out", 200.0))):
    db = connect(path)
    one(db, "SELECT dp_init(?)", ROWS)
    for name, rate in tiers:
        one(db, "SELECT dp_tier(?, ?, 1e6, 1e-6)", name, rate)
    create_table(db, "k")
    db.executemany("INSERT INTO t VALUES (?)", [("x01",), ("x02",), ("y03",)])
    for sql, *arguments in before:
        one(db, sql, *arguments)
    return db


def books(path, sql):
    db = sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)
    rows = db.execute(sql).fetchall()
    db.close()
    return rows


def paid(path):
    return books(path, "SELECT release, tier, rate, curve, delta FROM dp_charge ORDER BY id")


def connection(path):
    """Returns a connection whose traces and interrupts a test may use."""
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


def is_locked(path):
    return os.path.exists(f"{path}-ledger-lock")


COUNT = "SELECT dp_release('in', 'count', 'SELECT 1 FROM t', json_object('name', ?, 'weight', 0.001, 'clip', 1))"


def check_meanwhile(path, statement):
    """Runs a statement. Whenever it looks for an interrupt, another connection makes a release, if the ledger is not locked."""
    db, other, made, locked = connection(path), connect(path), [], []

    def look():
        if is_locked(path):
            locked.append(1)
        else:
            one(other, COUNT, str(len(made)))
            made.append(1)

    when_looking(db, look)
    one(db, *statement)
    db.set_trace_callback(None)
    assert len(made) > 2 and len(locked) < len(made) / 3, (len(made), len(locked))
    assert one(other, "SELECT count(*) FROM dp_charge WHERE release GLOB '[0-9]*'") == len(made)
    assert one(other, "SELECT dp_verify()") == "ok"
    assert one(other, "SELECT state FROM dp_release WHERE name = 'r'") == "released"


def interrupt(db, path, statement):
    """Interrupts a statement while it computes. Returns how much the process still works until the statement has ended."""
    looks, began = [], []

    def look():
        looks.append(is_locked(path))
        if looks[-3:] == 3 * [False] and not began:
            began.append(time.process_time())
            db.interrupt()

    when_looking(db, look)
    assert "interrupted" in refused(db, *statement)
    db.set_trace_callback(None)
    return time.process_time() - began[0]


def work_of(db, statement):
    """Returns the time that the process works for a statement. Such seconds of the processor do not pass while other processes run."""
    began = time.process_time()
    one(db, *statement)
    return time.process_time() - began


@pytest.mark.plain
@pytest.mark.sample(1)
def test_other_connections_use_the_ledger_meanwhile(tmp_path, way):
    """While the cost is computed, another connection makes releases."""
    path = tmp_path / "data.db"
    before, statement = way
    ledger(path, before).close()
    check_meanwhile(path, statement)


@pytest.mark.plain
@pytest.mark.sample(1)
def test_an_interrupt_ends_the_computation_and_charges_nothing(tmp_path, way):
    before, statement = way
    ledger(tmp_path / "whole.db", before).close()
    whole = work_of(connection(tmp_path / "whole.db"), statement)
    path = tmp_path / "data.db"
    ledger(path, before).close()
    db, charged = connection(path), paid(path)
    assert interrupt(db, path, statement) < whole / 2
    assert paid(path) == charged
    assert one(db, "SELECT dp_verify()") == "ok"
    one(db, *statement)  # the same connection works as before
    assert paid(path) == paid(tmp_path / "whole.db")
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- draws ---------------------------------------------------------------------------------------------------------

SMALL = json.dumps([["x00", "a", 0.6], ["x00", "b", 0.4], ["x01", "a", 0.4], ["x01", "b", 0.6]])
def reports(n):
    return REPORTS, SMALL, json.dumps({**OPTIONS, "n": n})


@pytest.mark.slow
@pytest.mark.plain
def test_other_connections_use_the_ledger_while_reports_are_drawn(tmp_path):
    path = tmp_path / "data.db"
    ledger(path).close()
    check_meanwhile(path, reports(2000000))


@pytest.mark.plain
def test_an_interrupt_ends_the_draws(tmp_path):
    """The release was charged before it was drawn, so it has failed, and its charge stays."""
    path = tmp_path / "data.db"
    ledger(path).close()
    db = connection(path)
    whole = 200 * work_of(db, (REPORTS, SMALL, json.dumps({**OPTIONS, "n": 100000, "name": "fast"})))
    assert interrupt(db, path, reports(20000000)) < whole / 4
    assert one(db, "SELECT state FROM dp_release WHERE name = 'r'") == "failed"
    assert [row[0] for row in paid(path)] == ["fast", "r"]
    assert books(path, "SELECT count(*) FROM dp_value WHERE release_id = 2") == [(0,)]
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- costs ---------------------------------------------------------------------------------------------------------


def reference(kernel, alpha):
    """Returns the divergence of the worst pair of rows, by its definition, in extended precision."""
    cells = {(x, y): p for x, y, p in json.loads(kernel)}
    table = numpy.array([[cells[x, y] for y in ZS] for x in XS], dtype=numpy.longdouble)
    table /= table.sum(axis=1, keepdims=True)
    logs = numpy.log(table)
    if alpha == float("inf"):
        return max((row - logs).max() for row in logs)
    terms = (alpha * row + (1 - alpha) * logs for row in logs)
    most = [(term.max(axis=1), term) for term in terms]
    return max((high + numpy.log(numpy.exp(term - high[:, None]).sum(axis=1))).max() for high, term in most) / (alpha - 1)


@pytest.mark.slow
def test_the_cost_is_that_of_the_worst_pair_of_rows(tmp_path):
    """The three ways to make the same release cost the same, to the last bit."""
    costs = []
    for name in ("aggregate", "dp_release", "dp_batch"):
        path = tmp_path / f"{name}.db"
        before, statement = WAYS[name]
        one(ledger(path, before), *statement)
        costs.append([row for row in paid(path) if row[0] == "r"])
    assert costs[0] == costs[1] == costs[2]
    curve = curve_of(costs[0][0][3])[0]
    for k in (20, 40, 60, 80, len(ORDERS) - 1):
        assert abs(curve[k] / float(reference(LARGE, ORDERS[k])) - 1) < 1e-9, ORDERS[k]


@pytest.mark.slow
def test_a_batch_of_large_kernels(tmp_path):
    """Each kernel of a batch has its own cost, which is that of a release of its own."""
    kernels = {"a": LARGE, "b": kernel_of(XS[:20], ZS, 4), "c": LARGE}
    path = tmp_path / "data.db"
    one(ledger(path), "SELECT dp_batch(?)", json.dumps([element(kernel, name) for name, kernel in kernels.items()]))
    together = {row[0]: row[1:] for row in paid(path)}
    for name, kernel in kernels.items():
        alone = tmp_path / f"{name}.db"
        one(ledger(alone), *release(kernel))
        assert [row[1:] for row in paid(alone)] == [together[name]]


# ---- changes meanwhile ---------------------------------------------------------------------------------------------


def run_during(path, change, statement):
    """Runs `statement`, and `change` on another connection while the first one computes. Returns the error of `statement`."""
    db, other, looks = connection(path), connect(path), []

    def look():
        looks.append(is_locked(path))
        if looks[-3:] == 3 * [False] and "changed" not in looks:
            one(other, *change)
            looks.append("changed")

    when_looking(db, look)
    try:
        one(db, *statement)
        return None
    except sqlite3.Error as error:
        return str(error)
    finally:
        assert "changed" in looks


NEW_TIER = ("SELECT dp_tier('new', 500.0, 1e7, 1e-6)",)


@pytest.mark.plain
@pytest.mark.parametrize("name", ["dp_batch", "dp_mix of reports", "dp_mix of a symbol"])
@pytest.mark.sample(1)
@pytest.mark.slow
def test_a_tier_that_is_created_meanwhile_pays_the_right_cost(tmp_path, name):
    """The budget of the new tier is enforced at an order of its own, at which the cost was not computed."""
    before, statement = WAYS[name]
    path, wanted = tmp_path / "data.db", tmp_path / "wanted.db"
    ledger(path, before).close()
    assert run_during(path, NEW_TIER, statement) is None
    one(ledger(wanted, before + [NEW_TIER]), *statement)
    assert sorted(paid(path)) == sorted(paid(wanted))
    assert one(connect(path), "SELECT dp_verify()") == "ok"


@pytest.mark.plain
def test_a_budget_that_is_spent_meanwhile_is_not_exceeded(tmp_path):
    path = tmp_path / "data.db"
    db = ledger(path, tiers=[])
    one(db, "SELECT dp_tier('in', 400.0, ?, 1e-6)", one(db, "SELECT dp_zcdp_epsilon(400.1, 1e-6)"))
    db.close()
    spend = ("SELECT dp_release('in', 'count', 'SELECT 1 FROM t', '{\"name\":\"counted\",\"clip\":1}')",)
    assert "would exceed its budget" in run_during(path, spend, release(LARGE))
    assert [row[0] for row in paid(path)] == ["counted"]
    assert one(connect(path), "SELECT dp_verify()") == "ok"


@pytest.mark.plain
def test_a_release_that_is_discarded_meanwhile_is_not_mixed(tmp_path):
    before, statement = WAYS["dp_mix of reports"]
    path = tmp_path / "data.db"
    ledger(path, before).close()
    charged = paid(path)
    assert "unknown release" in run_during(path, ("SELECT dp_discard('r')",), statement)
    assert paid(path) == charged
    assert one(connect(path), "SELECT dp_verify()") == "ok"
