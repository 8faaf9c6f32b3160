"""Counts the work of questions that are evaluated by unit. A join with a public table takes at most three times the steps of SQLite's
virtual machine that the same query takes in plain SQL with GROUP BY, whatever the types of the keys are."""

import contextlib
import ctypes
import random
import _sqlite3

import pytest

from conftest import connect, one

PATIENTS, ROWS, PUBLIC = 5, 400, 4000
KEYS = {
    "integers": ("INT", lambda i: i), "large integers": ("INT", lambda i: 2**60 + 7 * i), "dates": ("TEXT", lambda i: f"2024-{i // 31 % 12 + 1:02}-{i % 31 + 1:02} {i}"),
    "dates without case": ("TEXT COLLATE NOCASE", lambda i: f"2024-W{i}"), "times": ("TEXT", lambda i: f"2024-01-05T{i // 60:02}:{i % 60:02}"),
    "prices": ("REAL", lambda i: i / 100), "prices without type": ("", lambda i: round(i * 0.35 + 0.05, 2)), "numbers as texts": ("TEXT", lambda i: str(4006381333931 + i)),
    "codes": ("TEXT COLLATE RTRIM", lambda i: f"{i}A "), "blobs": ("BLOB", lambda i: b"\x00" + str(i).encode()), "milliseconds": ("REAL", lambda i: 1.7e12 + i),
    "versions": ("TEXT", lambda i: f"1.{i}"), "names": ("TEXT", lambda i: f"ward {i}")}
JOINS = {
    "one key": "v.k = p.k", "the other way": "p.k = v.k", "three columns": "v.a = p.a AND v.b = p.b AND v.c = p.c", "IS": "v.k IS p.k AND v.k = p.k",
    "a key among others": "v.a = p.a AND v.k = p.k AND v.c >= p.c"}


def clinic(kind, make):
    db, pick = connect(), random.Random(kind)
    db.executescript(f"CREATE TABLE visit(patient INT, k {kind}, a INT, b TEXT, c INT); CREATE TABLE public(k {kind}, a INT, b TEXT, c INT, x INT)")
    row = lambda i: (make(i), i % 20, f"2024-{i // 20 % 20}", i // 400)
    db.executemany("INSERT INTO public VALUES (?, ?, ?, ?, 1)", [row(i) for i in pick.sample(range(PUBLIC), PUBLIC)])
    db.executemany("INSERT INTO visit VALUES (?, ?, ?, ?, ?)", [(j % PATIENTS, *row(pick.randrange(PUBLIC))) for j in range(PATIENTS * ROWS)])
    for call in ["dp_init()", "dp_protect('visit', 'patient')", "dp_public('public')", "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        one(db, "SELECT " + call)
    return db


def steps_of(db, sql):
    """Returns the result of a query and the number of its steps."""
    steps = [0]

    def count():
        steps[0] += 1

    db.set_progress_handler(count, 1)
    found = db.execute(sql).fetchall()
    db.set_progress_handler(None, 0)
    return found, steps[0]


LIBRARY = ctypes.CDLL(_sqlite3.__file__)  # finds the functions of the libsqlite3 that Python uses
START = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
TRACE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
LIBRARY.sqlite3_sql.restype = ctypes.c_char_p
LIBRARY.sqlite3_sql.argtypes = [ctypes.c_void_p]
LIBRARY.sqlite3_stmt_status.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
LIBRARY.sqlite3_trace_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint, TRACE, ctypes.c_void_p]
PROFILE, VM_STEP = 2, 4


@contextlib.contextmanager
def counted(sql):
    """Counts the steps of a statement on all connections that SQLite opens meanwhile: the evaluator's."""
    steps = []

    def ended(mask, context, statement, time):
        if LIBRARY.sqlite3_sql(statement) == sql.encode():
            steps.append(LIBRARY.sqlite3_stmt_status(statement, VM_STEP, 0))
        return 0
    trace = TRACE(ended)
    start = START(lambda db, error, api: LIBRARY.sqlite3_trace_v2(db, PROFILE, trace, None))
    LIBRARY.sqlite3_auto_extension(start)
    try:
        yield steps
    finally:
        LIBRARY.sqlite3_cancel_auto_extension(start)


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", KEYS)
def test_a_join_by_unit_looks_rows_up(kind):
    db = clinic(*KEYS[kind])
    for join in JOINS.values() if kind == "integers" else ["v.k = p.k", "v.k = p.k AND v.b = p.b"]:
        sql = f"SELECT sum(p.x) FROM visit v JOIN public p ON {join}"
        wanted, plain = steps_of(db, sql + " GROUP BY v.patient")
        assert ROWS * PATIENTS * PUBLIC > 50 * plain
        for text in (sql, sql.replace("visit v JOIN public p", "public p JOIN visit v")):
            with counted(text) as steps:
                answer = one(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":100000}')", text)
            assert sum(row[0] for row in wanted) > 1000 and abs(answer - sum(row[0] for row in wanted)) < 300
            assert len(steps) >= PATIENTS and sum(steps) <= 3 * plain, (text, sum(steps) / plain)
    db.close()
