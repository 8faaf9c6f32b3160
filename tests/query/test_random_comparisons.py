"""Tests comparisons in questions that are evaluated for one unit after the other: every operator, affinity and collation gives what
plain SQLite gives over ordinary tables that hold the rows of one unit."""

import contextlib
import os
import sqlite3

import pytest

import random_comparisons
from random_questions import released

TOGETHER = 90  # queries in one question
QUESTIONS = int(os.environ.get("COMPARISON_QUESTIONS", 29))


def quoted(text):
    return text.replace("'", "''")


def apart(db):
    """Returns a plain database for each unit, with its rows of the protected tables and all rows of z."""
    found = {}
    for unit in (1, 2, 3):
        found[unit] = own = sqlite3.connect(":memory:", isolation_level=None)
        # SQLite 3.40 loses rows where it makes a Bloom filter for a column with the collation RTRIM
        own.executescript("PRAGMA automatic_index = OFF;" + random_comparisons.PLAIN)
        for table in ("t", "w", "z"):
            rows = db.execute(f"SELECT * FROM {table}" + " WHERE unit = ?" * (table != "z"), (unit,) * (table != "z")).fetchall()
            own.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(8))
def test_comparisons_of_a_question_are_those_of_plain_sqlite(tmp_path, seed):
    path = str(tmp_path / "db")
    source = random_comparisons.Comparison(seed)
    statements, asked = [], []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(random_comparisons.SCHEMA + "; CREATE TABLE truth(unit INT, question INT, key TEXT, value INT)")
        random_comparisons.fill(db, seed)
        units = apart(db)
        for question in range(QUESTIONS):
            source.level = question % 3
            queries = [source.query() for _ in range(TOGETHER)]
            asked.append(queries)
            for unit, own in units.items():
                db.executemany("INSERT INTO truth VALUES (?, ?, ?, ?)", [
                    (unit, question, f"q{i}", own.execute(query).fetchone()[0]) for i, query in enumerate(queries)])
            keys = ", ".join(f'"q{i}"' for i in range(TOGETHER))
            terms = [f"SELECT 'q{i}', ({query}) FROM (SELECT 1 FROM t, w LIMIT 1)" for i, query in enumerate(queries)]
            for name, sql in ((2 * question, " UNION ALL ".join(terms)),
                              (2 * question + 1, f"SELECT key, value FROM truth WHERE question = {question} LIMIT -1")):
                statements.append(f"SELECT dp_release('t', 'group_sum', '{quoted(sql)}', '{{\"name\":\"{name}\",\"clip\":1e7,\"keys\":[{keys}]}}')")
    found = released(path, [*random_comparisons.POLICY, "dp_protect('truth', 'unit')"], statements)
    wrong = []
    for question, queries in enumerate(asked):
        assert len(found[2 * question]) == TOGETHER
        got, want = ({key: value for key, _, value in rows} for rows in found[2 * question: 2 * question + 2])
        wrong += [query for i, query in enumerate(queries) if got[f"q{i}"] != want[f"q{i}"]]
    assert not wrong, (len(wrong), wrong[:20])


# One person's rows. `note` of the second one is no JSON.
ROWS = "INSERT INTO visit VALUES (1, 7, '{\"a\":5}'), (2, 7, 'no JSON'), (3, 7, '{\"a\":9}')"


@pytest.mark.parametrize("sql", ["SELECT json_extract(note, '$.a') FROM visit ORDER BY id LIMIT 1",
                                 "SELECT json_extract(note, '$.a') FROM visit ORDER BY rowid DESC, note LIMIT 1",
                                 "SELECT (SELECT json_extract(note, '$.a') FROM visit ORDER BY id LIMIT 1) + max(id) FROM visit",
                                 "SELECT json_extract(note, '$.a') FROM visit WHERE patient = 7 ORDER BY id LIMIT 1"])
def test_an_error_in_a_row_that_is_not_reached_drops_nobody(tmp_path, sql):
    path = str(tmp_path / "db")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, note TEXT);" + ROWS)
        value = db.execute(sql).fetchone()[0]
    assert value in (5, 9, 8)
    found = released(path, ["dp_protect('visit', 'patient')"], [
        f"SELECT dp_release('t', 'sum', '{quoted(query)}', '{{\"name\":\"{i}\",\"clip\":100}}')"
        for i, query in enumerate([sql, f"SELECT {value} FROM visit LIMIT 1"])])
    assert found[0] == found[1]
