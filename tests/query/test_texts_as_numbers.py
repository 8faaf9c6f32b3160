"""A text counts as a number only if it wholly is one (value_number() in ext/base/sql_text.c), on every way that brings rows to the sums,
and for every kind that needs numbers. The truth: whether a REAL column of plain SQLite stores the text as a number."""

import json
import random
import sqlite3

import pytest

from conftest import connect, make_ledger, one

FIXED = ["", " ", "NA", "n/a", "12", " 12", "12 ", "\t1\r\n", "12abc", "12 kg", "2024-01-05", "1e3", "1e", "e3", ".5", "5.", ".", "-", "+7", "--7", "- 7", "0x10",
         "1_000", "1,5", "inf", "nan", "1e999", "-1e999", "1e-999", "9" * 40, "12\0", "\x0012", "1 2", "١٢", "12\u00a0", "true", "x'31'", "1.5.2", "1e2.5", "1e+2", "Berlin"]


def texts(count):
    rng = random.Random(7)
    return FIXED + ["".join(rng.choice("0123456789.eE+- x") for _ in range(rng.randrange(1, 6))) for _ in range(count)]


def plain(values):
    """Returns the number of each value, or None. New versions of SQLite read a text up to its zero byte; then it is no number."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE n(i INTEGER PRIMARY KEY, x REAL)")
    db.executemany("INSERT INTO n VALUES (?, ?)", enumerate(values))
    numbers = [x if isinstance(x, float) else None for (x,) in db.execute("SELECT x FROM n ORDER BY i")]
    return [None if isinstance(value, str) and "\0" in value else x for value, x in zip(values, numbers)]


def table(values, encoding="UTF-8", path=":memory:", terms="{}"):
    db = connect(path)
    db.execute(f"PRAGMA encoding = '{encoding}'")
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, unit, k, x)")
    db.executemany("INSERT INTO t(unit, k, x) VALUES (?, ?, ?)", [(i, i, value) for i, value in enumerate(values)])
    make_ledger(db, terms, "t" if "row" in terms else "t, unit")
    one(db, "SELECT dp_tier('exact', 1e6, 1e15, 1e-6), dp_tier('laplace', 900, 1e15, 1e-6)")
    return db


VALUES = texts(160) + [b"12", b"", None, 3, -2.5]
TRUTH = plain([None if isinstance(value, bytes) else value for value in VALUES])
ALL = json.dumps(list(range(len(VALUES))))
# Questions for the readers: in one statement, for all units by the evaluator, and for one unit after the other.
READERS = ["SELECT k, x FROM t", "SELECT k, (SELECT x) FROM t", "SELECT k, x FROM t ORDER BY x LIMIT 1"]


def check(answer, expected, why):
    for i, value in enumerate(VALUES):
        assert abs(answer[str(i)] - expected[i]) < 0.5, (why, value, answer[str(i)])


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
@pytest.mark.parametrize("sql", READERS)
def test_every_reader_skips_what_is_no_number(sql, encoding):
    db = table(VALUES, encoding)
    options = json.dumps({"lo": -1e9, "hi": 1e9, "bins": 1, "clip": 1, "keys": json.loads(ALL)})
    is_number = [float(x is not None) for x in TRUTH]
    answer = json.loads(one(db, "SELECT dp_release('exact', 'group_histogram', ?, ?)", sql, options))
    check({key: value[0] for key, value in answer.items()}, is_number, sql)
    clip = json.dumps({"clip": 20, "keys": json.loads(ALL)})
    sums = json.loads(one(db, "SELECT dp_release('exact', 'group_sum', ?, ?)", sql, clip))
    check(sums, [max(min(x or 0, 20), -20) for x in TRUTH], sql)


@pytest.mark.parametrize("kind, options", [
    ("avg", {"lo": 10, "hi": 11}), ("var", {"lo": -1, "hi": 1}), ("stddev", {"lo": -1, "hi": 1}), ("median", {"lo": -1, "hi": 1}),
    ("quantile", {"lo": -1, "hi": 1, "q": 0.1}), ("sum", {"clip": 1}), ("histogram", {"lo": -1, "hi": 1, "bins": 3}),
    ("avg", {"lo": 10, "hi": 11, "mechanism": "laplace"}), ("stddev", {"lo": -1, "hi": 1, "mechanism": "laplace"})])
@pytest.mark.parametrize("sql", [sql.replace("k, ", "") for sql in READERS])
def test_words_change_no_kind(kind, options, sql):
    """The average of 10.5 stays 10.5, however many words and dates there are, and so on."""
    words = [value for value in FIXED if plain([value]) == [None]]
    one_value = 10.5 if kind == "avg" else 1
    without, mixed = table([one_value] * 400), table([one_value] * 400 + words * 40)
    for db in (without, mixed):
        options = {**options, "clip": 1} if kind == "histogram" else options
    answers = [json.loads(str(one(db, "SELECT dp_release(?, ?, ?, ?)", options.get("mechanism", "exact"), kind, sql, json.dumps(options)))) for db in (without, mixed)]
    for a, b in zip(*[answer if isinstance(answer, list) else [answer] for answer in answers]):
        assert abs(a - b) <= 0.02 * (400 if kind in ("sum", "histogram") else 1), (kind, answers)


def test_a_count_takes_any_value():
    db = table(VALUES)
    assert abs(one(db, "SELECT dp_release('exact', 'count', 'SELECT x FROM t', '{\"clip\":1}')") - (len(VALUES) - 1)) < 1


CLIPPED = [max(min(x or 0, 20), -20) for x in TRUTH]
SUMS = {"clip": 20, "keys": json.loads(ALL)}


def test_a_shard_agrees():
    db = table(VALUES)
    state = one(db, "SELECT dp_partial('group_sum', 'SELECT k, x FROM t', ?)", json.dumps(SUMS))
    check(json.loads(one(db, "SELECT dp_merge('exact', dp_states(?), '{\"name\":\"m\"}')", state)), CLIPPED, "dp_merge")


def test_an_aggregate_agrees():
    db = table(VALUES)
    check(json.loads(one(db, f"SELECT dp_group_sum('exact', k, x, 20, '{{\"keys\":{ALL}}}') FROM t")), CLIPPED, "aggregate")


@pytest.mark.parametrize("kind, expected", [("sum", sum(CLIPPED)), ("count", len(VALUES) - 1)])
def test_a_series_agrees(kind, expected):
    db = table(VALUES)
    clip = 20 if kind == "sum" else 1
    one(db, "SELECT dp_release('exact', ?, 'SELECT ''p1'', x FROM t', ?)", kind, json.dumps({"name": "s", "periods": ["p1", "p2"], "clip": clip}))
    one(db, "SELECT dp_append('s', 'p1')")
    assert abs(one(db, "SELECT value FROM dp_value WHERE release = 's'") - expected) < 0.01 * clip


@pytest.mark.parametrize("threads", [0, 3])
def test_threads_agree(tmp_path, threads):
    db = table(VALUES * 60, path=str(tmp_path / "t.db"))
    db.execute(f"PRAGMA threads = {threads}")
    answer = json.loads(one(db, f"SELECT dp_release('exact', 'group_sum', 'SELECT k % {len(VALUES)}, x FROM t', ?)", json.dumps(SUMS)))
    check(answer, [60 * x for x in CLIPPED], threads)


def test_a_model_skips_what_is_no_number():
    """Steps for labels that are no numbers are empty, like those of NULL: the words change nothing."""
    options = json.dumps({"n": 40, "dim": 1, "clip": 1, "radius": 10, "eta": 0.1, "name": "m"})
    found = []
    for y in ("NA", "2024-01-05", "12 kg", b"12", None):
        db = table([3] * 20 + [y] * 20, terms='{"protects":"row","adjacency":"replace"}')
        db.execute("UPDATE t SET k = '[1]'")
        found.append(json.loads(one(db, "SELECT dp_release('exact', 'sgd', 'SELECT x, k FROM t', ?)", options.replace('"n"', '"loss":"squared","bound":5,"n"'))))
    assert max(abs(a - b) for answer in found for a, b in zip(answer, found[-1])) < 0.05, found
