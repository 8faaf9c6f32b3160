"""Tests questions that are evaluated in one statement on the host's connection (ext/query/row_loop.c): which questions are
evaluated in this way, and that the answer is the one that a loop over the units gives."""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3

import pytest

from conftest import connect, ledger_of, one
from fixed_noise import run_fixed
import question_reference as reference
import random_questions

CLIP = 50


def hospital(seed=1, before="", encoding="UTF-8"):
    db = connect()
    db.execute(f"PRAGMA encoding = '{encoding}'")
    db.executescript(reference.SCHEMA + before)
    reference.hospital(db, seed)
    for call in ["dp_init()", *reference.POLICY, "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        db.execute("SELECT " + call).fetchall()
    return db


def ask(db, sql, options=f'{{"clip":{CLIP}}}', kind="sum"):
    """Returns the answer to a question and how it was evaluated: 'direct' in one statement on the host's connection, or 'apart' by
    the evaluator for one unit after the other."""
    statements = []
    db.set_trace_callback(statements.append)
    answer = one(db, "SELECT dp_release('t', ?, ?, ?)", kind, sql, options)
    db.set_trace_callback(None)
    # Each statement below reads the rows of a protected table. The evaluator has a connection of its own, which is not traced.
    readers = [s for s in statements if "dp_collect(" in s or ("t0" in s and "ORDER BY 1" not in s and "sqlite_master" not in s)]
    return answer, "direct" if readers and "dp_collect(" in readers[-1] else "apart"


V, D, E = "visit", "drug", "exam"
WAYS = [
    ("SELECT minutes FROM visit", [V], "direct"),
    ("SELECT minutes FROM visit;", [V], "direct"),
    ("SELECT minutes FROM visit -- FROM", [V], "direct"),
    ("SELECT minutes /* FROM */ FROM visit; -- of all", [V], "direct"),
    ("SELECT minutes AS 'from' FROM visit WHERE note <> ' FROM '", [V], "direct"),
    ("SELECT minutes AS \"a FROM b\" FROM visit WHERE [day] > 1 AND `day` < 99", [V], "direct"),
    ("SELECT (minutes) FROM visit AS v WHERE v.day > 3 AND v.ward = 'north'", [V], "direct"),
    ("SELECT iif(minutes > 20, (day), 2) AS dp_unit FROM visit", [V], "direct"),
    ("SELECT visit.minutes FROM visit WHERE patient > 3 OR patient IS NULL", [V], "direct"),
    ("SELECT patient FROM visit", [V], "direct"),
    ("SELECT id % 5 FROM visit", [V], "direct"),
    ("SELECT dose FROM drug WHERE day > 5", [D], "direct"),
    ("SELECT result FROM exam WHERE result > 1", [E], "direct"),
    ("SELECT x FROM (SELECT *, minutes AS x FROM visit)", [V], "apart"),
    ("WITH v AS (SELECT minutes FROM visit) SELECT minutes FROM v", [V], "apart"),
    ("WITH visit AS (SELECT * FROM main.visit) SELECT minutes FROM visit", [V], "apart"),
    ("SELECT minutes FROM main.visit", [V], "apart"),
    ("SELECT rowid % 7 FROM visit", [V], "direct"),
    ("SELECT \"rowid\" % 7 FROM visit", [V], "direct"),  # without the rowid, a text in double quotes
    ("SELECT visit.oid FROM visit WHERE oid > 2", [V], "direct"),
    ("SELECT minutes FROM long_visit", [V], "apart"),
    ("SELECT dose FROM drug WHERE name = 'iron'", [D], "direct"),
    # with public tables
    ("SELECT beds FROM visit JOIN ward ON name = ward", [V], "direct"),
    ("SELECT beds FROM visit JOIN ward w ON w.name = visit.ward WHERE beds > 3 AND minutes > 5", [V], "direct"),
    ("SELECT 1 FROM visit JOIN holiday USING (day)", [V], "direct"),
    ("SELECT length(label) + day FROM visit JOIN holiday USING (day) WHERE label > 'day 2'", [V], "direct"),
    ("SELECT beds FROM visit CROSS JOIN ward", [V], "direct"),
    ("SELECT beds FROM visit JOIN holiday h ON h.day = visit.day JOIN ward ON name = ward", [V], "direct"),
    ("SELECT result + beds FROM exam CROSS JOIN ward WHERE beds > result", [E], "direct"),
    ("SELECT beds FROM visit LEFT JOIN ward ON name = ward", [V], "apart"),
    ("SELECT beds FROM visit CROSS JOIN ward WHERE coalesce(NULL, beds) > 2", [V], "direct"),
    ("SELECT ward.rowid FROM visit JOIN ward ON name = ward", [V], "direct"),
    ("SELECT amount FROM drug JOIN price ON price.name = drug.name", [D], "direct"),
    ("SELECT beds FROM ward CROSS JOIN visit ON name = ward", [V], "direct"),
    ("SELECT beds FROM (visit JOIN ward ON name = ward)", [V], "apart"),
    ("SELECT minutes FROM visit WHERE (day, ward) = (3, 'north') OR day IN (1, 2, minutes) OR ward IN ('east')", [V], "direct"),
    ("SELECT minutes FROM visit WHERE day IN (SELECT 3)", [V], "apart"),
    ("SELECT minutes FROM visit WHERE ward COLLATE NOCASE = 'NORTH'", [V], "direct"),
    ("SELECT minutes FROM visit WHERE ward COLLATE RTRIM = 'north '", [V], "apart"),
    ("SELECT DISTINCT minutes FROM visit", [V], "apart"),
    ("SELECT minutes FROM visit NATURAL JOIN holiday", [V], "apart"),
    ("SELECT minutes FROM visit ORDER BY id", [V], "apart"),
    ("SELECT minutes FROM visit WHERE (SELECT 1)", [V], "apart"),
    ("SELECT minutes AS limit_ FROM visit WHERE \"minutes\" > 3 AND ward <> 'LIMIT 1' /* LIMIT 1 */", [V], "direct"),
    ("SELECT minutes AS \"limit\" FROM visit", [V], "direct"),
    ("SELECT minutes AS key FROM visit", [V], "direct"),
    ("SELECT minutes AS offset FROM visit", [V], "apart"),
    ("SELECT count(*) FROM visit", [V], "apart"),
    ("SELECT max(minutes, 3) FROM visit", [V], "apart"),
    ("SELECT abs(minutes) FROM visit", [V], "apart"),
    ("SELECT minutes FROM visit AS 'v', ward WHERE name = ward", [V], "direct"),
    ("SELECT minutes FROM 'visit'", [V], "apart"),
    ("SELECT value FROM visit, json_each('[1, 2]')", [V], "apart"),
    ("SELECT minutes FROM visit LIMIT -1", [V], "apart"),
    ("SELECT sum(minutes) FROM visit", [V], "apart"),
    ("SELECT minutes FROM visit WHERE ward LIKE 'n%'", [V], "apart"),
    ("SELECT ward || note FROM visit", [V], "apart"),
    ("SELECT 1 FROM visit a JOIN visit b USING (id)", [V], "apart"),
]


with contextlib.suppress(sqlite3.Error):  # most versions of SQLite take U+FEFF for white space
    sqlite3.connect(":memory:").execute("SELECT 1 \ufeffLIMIT 1")
    WAYS.append(("SELECT minutes FROM visit \ufeffLIMIT 1", [V], "apart"))


@pytest.mark.parametrize("sql, tables, way", WAYS, ids=[w[0] for w in WAYS])
def test_which_questions_run_directly(sql, tables, way):
    for seed in (1, 2):
        db = hospital(seed)
        want = reference.clipped_sum(reference.contributions(db, sql, tables), CLIP)
        answer, taken = ask(db, sql)
        assert taken == way
        assert abs(answer - want) < 0.45  # eleven standard deviations of the noise
        db.close()


NAMES = re.findall(r'"(\w+)"', re.search(r"\bnames\[\] = \{(.*?)\}", pathlib.Path("ext/query/question_text.c").read_text(), re.S)[1])


@pytest.mark.parametrize("name", NAMES)
def test_a_keyword_that_is_a_name_in_a_select_may_name_a_column(name):
    """It is nothing but a name there, on this SQLite: a SELECT may have it wherever a column may stand, and nowhere else."""
    db = hospital()
    places = ["{0} FROM visit", "visit.{0} FROM visit WHERE {0} > 3", "coalesce({0}, 1) + {0} FROM visit"]
    want = [reference.clipped_sum(reference.contributions(db, "SELECT " + place.format("minutes"), [V]), CLIP) for place in places]
    db.execute(f"ALTER TABLE visit ADD COLUMN {name.lower()} INT")
    db.execute(f"UPDATE visit SET {name} = minutes")
    for place, sum_ in zip(places, want):
        answer, taken = ask(db, "SELECT " + place.format(name))
        assert taken == "direct" and abs(answer - sum_) < 0.45
    db.close()
    for place in (f"1 {name} 2", f"1 {name}(2)", f"{name} (1, 2)", f"{name} 1", f"1 WHERE 1 {name} 2"):
        with pytest.raises(sqlite3.Error):
            sqlite3.connect(":memory:").execute(f"SELECT {place}")


@pytest.mark.parametrize("shadow", ["TABLE visit(patient INT, minutes INT)", "VIEW visit AS SELECT * FROM main.visit WHERE day > 9",
                                    "VIEW visit AS SELECT 1 AS patient, 2 AS minutes", "TABLE ward(name TEXT PRIMARY KEY, beds INT)",
                                    "VIEW ward AS SELECT * FROM main.ward WHERE beds > 4",
                                    "VIEW ward AS SELECT patient AS name, minutes AS beds FROM main.visit"])
def test_temporary_objects_do_not_stand_in_for_a_table(shadow):
    db = hospital()
    question = "SELECT minutes FROM visit" if " visit" in shadow[:12] else "SELECT beds FROM visit JOIN ward ON name = ward"
    want, _ = ask(db, question)
    db.execute(f"CREATE TEMP {shadow}")
    answer, way = ask(db, question)
    assert way == "direct" and abs(answer - want) < 0.45


@pytest.mark.parametrize("column", ["minutes", "patient", "day", "beds", "name"])
def test_a_column_that_an_authorizer_hides_from_the_statement(column):
    """The authorizer replaces a column with NULL only where a common table expression reads it."""
    db = hospital()
    sql = "SELECT minutes + 0 * beds FROM visit JOIN ward ON name = ward WHERE day > 3"
    want, way = ask(db, sql)
    assert way == "direct"
    db.set_authorizer(lambda action, table, name, schema, inner: sqlite3.SQLITE_IGNORE if (
        action == sqlite3.SQLITE_READ and name == column and inner) else sqlite3.SQLITE_OK)
    answer, way = ask(db, sql)
    db.set_authorizer(None)
    assert way == "apart" and abs(answer - want) < 0.45


def test_values_of_any_length_count_alike_on_every_path():
    """If a question makes no values that are longer than those that it reads, the length of values has no limit, because whether
    a unit is dropped must not depend on the order in which SQLite evaluates the terms of AND. Other questions drop a unit with a
    value above 1 MB."""
    for encoding in ("UTF-8", "UTF-16le"):
        db = connect()
        db.execute(f"PRAGMA encoding = '{encoding}'")
        db.executescript("CREATE TABLE visit(patient INT, n INT, note TEXT); INSERT INTO visit VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, NULL)")
        db.execute("UPDATE visit SET note = printf('%.*c', 3000007, 'x') WHERE patient = 2")
        for call in ["dp_init()", "dp_protect('visit', 'patient')", "dp_tier('t', 1e6, 1e12, 1e-6)"]:
            db.execute("SELECT " + call).fetchall()
        fast = "direct" if encoding == "UTF-8" else "apart"
        for sql, want, way in [("SELECT length(note) % 100 FROM visit", 8, fast), ("SELECT n FROM visit WHERE note > 'c' AND n > 0", 2, fast),
                               ("SELECT note FROM visit", 0, fast), ("SELECT length(note) % 100 FROM visit LIMIT -1", 1, "apart")]:
            assert ask(db, sql, '{"clip":10}') == (pytest.approx(want, abs=0.1), way)
            # 1000 steps are too few to show that no unit exceeds the limit
            longer = sql.replace(" FROM", " + 0 * n" * 200 + " FROM")
            assert ask(db, longer, '{"clip":10,"steps":1000}') == (pytest.approx(want, abs=0.1), "apart")


def test_results_of_any_length_count_alike_on_every_path():
    """The limit on the results of a unit with r rows, (1 + r) * 64 MiB, holds only where the evaluator must keep the results."""
    db = connect()
    db.execute("CREATE TABLE visit(patient INT, note TEXT)")
    db.executemany("INSERT INTO visit VALUES (?, 'x')", [(i,) for i in range(20)])
    db.execute("UPDATE visit SET note = zeroblob(150000000) WHERE patient = 3")
    for call in ["dp_init()", "dp_protect('visit', 'patient')", "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        db.execute("SELECT " + call).fetchall()
    for sql, want, way in [("SELECT note FROM visit", 20, "direct"), ("SELECT note FROM visit LIMIT -1", 19, "apart")]:
        assert ask(db, sql, '{"clip":1}', "count") == (pytest.approx(want, abs=0.1), way)


def test_an_interrupt_ends_a_direct_question():
    db = hospital()
    db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) INSERT INTO visit(patient, minutes) SELECT i % 9, 1 FROM n")
    sql = "SELECT dp_release('t', 'sum', 'SELECT minutes FROM visit WHERE day IS NULL', '{\"clip\":50,\"name\":\"%s\"}')"
    statements = []
    db.set_trace_callback(statements.append)
    db.set_progress_handler(lambda: any("dp_collect(" in s for s in statements[-1:]), 1000)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        db.execute(sql % "stopped").fetchall()
    db.set_progress_handler(None, 0)
    db.set_trace_callback(None)
    assert one(db, "SELECT state FROM dp_release WHERE name = 'stopped'") == "failed"
    assert one(db, sql % "again") > 200


@pytest.mark.parametrize("means", ["progress handler", "interrupt"])
@pytest.mark.parametrize("sql, threads", [("SELECT minutes FROM visit", 0), ("SELECT minutes FROM visit", 2), ("SELECT rowid FROM visit", 0), ("SELECT beds FROM visit JOIN ward ON ward = name", 0),
                                          ("SELECT result FROM exam", 0), ("SELECT sum(minutes) FROM visit", 0)])
def test_a_single_interrupt_ends_a_question(tmp_path, sql, threads, means):
    """A progress handler that returns 1 only once ends the question, whichever statement of the extension it meets: a loop, a proof, a
    look-up of a link. So does sqlite3_interrupt()."""
    db = connect(tmp_path / "db")
    db.executescript(reference.SCHEMA)
    db.executescript("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO visit(patient, ward, minutes) SELECT i % 50, 'a', 1 FROM n;"
                     "INSERT INTO exam SELECT id, 'x', 1 FROM visit; INSERT INTO ward VALUES ('a', 1, 's')")
    for call in ["dp_init()", *reference.POLICY, "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        db.execute("SELECT " + call).fetchall()
    db.execute(f"PRAGMA threads = {threads}")
    ask_, charges = "SELECT dp_release('t', 'sum', ?, '{\"clip\":50}')", "SELECT count(*) FROM dp_charge"
    calls, charged, number = 0, 0, random.Random(sql).randrange(20)

    def handler():
        nonlocal calls
        calls += 1
        if calls == number + 1 and means == "interrupt":
            db.interrupt()
        return calls == number + 1 and means != "interrupt"
    while True:
        calls, before = 0, one(db, charges)
        db.set_progress_handler(handler, 40)
        try:
            db.execute(ask_, (sql,)).fetchall()
            message = ""
        except sqlite3.OperationalError as error:
            message = str(error)
        db.set_progress_handler(None, 0)
        if calls <= number:
            break
        assert message.endswith(("interrupted", "interrupted (the charge stays)", "interrupted (try again)", "interrupted (nothing was charged; try again)")), (number, message)
        charged += one(db, charges) - before
        number += 31
    assert message == "" and charged > 1


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("seed", range(int(os.environ.get("QUESTION_SEEDS", 3))))
@pytest.mark.sample(2)
def test_random_questions_give_the_same_integers_on_every_path(tmp_path, seed, linked):
    """A LIMIT that cuts nothing makes the evaluation go unit by unit. `make check-questions` tries more seeds."""
    whole, apart = str(tmp_path / "whole"), str(tmp_path / "apart")
    encoding = "UTF-16le" if linked and seed % 5 == 4 else "UTF-8"
    if linked:
        tables = random_questions.Linked(seed)
        units = tables.make(whole, encoding)
        policy, asked = tables.policy, list(random_questions.questions(seed, 100, tables.schema, **random_questions.LIKELY))
    else:
        random_questions.database(whole, seed)
        with contextlib.closing(sqlite3.connect(whole)) as db:
            units = reference.split(db)
        policy, asked = reference.POLICY, list(random_questions.questions(seed, 100))
    shutil.copy(whole, apart)
    found = random_questions.integers(whole, policy, [question[:3] for question in asked])
    slowly = random_questions.integers(apart, policy, [
        (kind, options, f"SELECT * FROM ({sql.rstrip(';')}\n{'*/' * sql.endswith('/* all')}) LIMIT -1") for kind, options, sql, _ in asked])
    by_hand = random_questions.integers_by_hand(str(tmp_path / "hand"), asked, units, encoding)
    for question, first, second, third in zip(asked, found, slowly, by_hand):
        assert first and first == second == third, question
    db = connect(whole)
    one(db, "SELECT count(*) FROM ward")  # reads the encoding, with which SQLite must compile the constants of the next statement
    ways = collections.Counter(ask(db, sql, json.dumps(options), kind)[1] for kind, options, sql, _ in asked)
    assert ways["direct"] > 40 * (encoding == "UTF-8"), ways


# The parent's key and unit, the link of the child, and whether the key is a rowid, which the map of known links needs.
LINKS = [("id INTEGER PRIMARY KEY, unit INT", "INT"), ("id INTEGER PRIMARY KEY, unit TEXT COLLATE NOCASE", ""),
         ("id INTEGER PRIMARY KEY, unit BLOB", "TEXT"), ("id INTEGER PRIMARY KEY DESC, unit TEXT COLLATE RTRIM", ""),
         ("id PRIMARY KEY, unit INT", ""), ("id INT PRIMARY KEY, unit REAL", "REAL"), ("id TEXT PRIMARY KEY COLLATE NOCASE, unit TEXT", ""),
         ("id REAL PRIMARY KEY, unit INT", "BLOB"), ("id TEXT PRIMARY KEY, unit INT", "INT")]
VALUES = random_questions.ODD_KEYS


@pytest.mark.parametrize("parent, link", LINKS, ids=[f"{parent} < {link}" for parent, link in LINKS])
@pytest.mark.parametrize("chained", [False, True])
def test_links_lead_to_the_same_integers_on_every_path(tmp_path, parent, link, chained):
    """All types of keys, links and units, links to no row, rows of the parent without a unit, and more rows of the parent than
    the map reads before the last lookup. Keys that have the same low bits have other places in the map."""
    path, pick = str(tmp_path / "db"), random.Random(parent + link)
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(f"CREATE TABLE middle({parent}); CREATE TABLE child(link {link}, x INT); CREATE TABLE owner(id INTEGER PRIMARY KEY, unit INT)")
    units = [None, 1, 2, 1.0, 2.5, "a", "A", "a ", b"a", ""]
    middle = "dp_protect('middle', 'unit')"
    if chained:
        db.executescript("INSERT INTO owner VALUES (1, 10), (2, 10), (3, NULL), (4, 20)")
        units, middle = [None, 1, 2, 3, 4, 99], "dp_protect('owner', 'unit'), dp_protect('middle', 'unit', 'owner')"
    for key in [*VALUES[1:4], *VALUES[5:], *range(100, 300), *range(5 << 40, 150 << 40, 1 << 40)]:
        if isinstance(key, int) or not parent.startswith("id INTEGER PRIMARY KEY, "):
            db.execute("INSERT OR IGNORE INTO middle VALUES (?, ?)", (key, pick.choice(units)))
    for i in range(600):
        db.execute("INSERT INTO child VALUES (?, ?)", (pick.choice([*VALUES, *range(90, 310, 3), str(pick.randrange(90, 310)), *range(1 << 40, 160 << 40, 3 << 40)]), i % 7 + 1))
    db.close()
    declared = ["SELECT dp_init()", "SELECT " + middle, "SELECT dp_protect('child', 'link', 'middle')", "SELECT dp_tier('t', 1e4, 1e15, 1e-6)"]
    asked = {"sum": '{"clip":9}', "count_distinct": "{}", "group_sum": '{"clip":5,"keys":["1","2"]}'}
    run_fixed(path, declared + [
        f"SELECT fixed_seed(1); SELECT dp_release('t', '{kind}', 'SELECT {'x % 3, ' * (kind == 'group_sum')}x FROM child{limit}',"
        f" '{{\"name\":\"{kind}{limit}\",{options[1:]}')".replace(",}", "}")
        for kind, options in asked.items() for limit in ("", " LIMIT -1")])
    with ledger_of(path) as ledger:
        for kind in asked:
            fast, slow = (ledger.execute("SELECT key, component, value FROM dp_path WHERE release_id = (SELECT id FROM dp_release WHERE name = ?)"
                                         " ORDER BY 1, 2", (kind + limit,)).fetchall() for limit in ("", " LIMIT -1"))
            assert fast and fast == slow
    db = connect(path)
    assert ask(db, "SELECT x FROM child")[1] == "direct"
    aggregate = one(db, "SELECT dp_sum('t', x, 9) FROM child")
    assert abs(aggregate - one(db, "SELECT dp_release('t', 'sum', 'SELECT x FROM child LIMIT -1', '{\"clip\":9}')")) < 2


def test_rows_as_units_run_directly_too():
    """No unit is added to such a question, so only the evaluator can tell a view of main from a temporary view."""
    db = connect()
    db.executescript("CREATE TABLE visit(n INT); CREATE VIEW few AS SELECT n FROM visit WHERE n < 5; CREATE TABLE other(n INT)")
    db.executemany("INSERT INTO visit VALUES (?)", [(i,) for i in range(20)])
    db.executemany("INSERT INTO other VALUES (?)", [(i,) for i in range(100)])
    for call in ["""dp_init('{"protects":"row"}')""", "dp_protect('visit')", "dp_protect('other')", "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        db.execute("SELECT " + call).fetchall()
    assert ask(db, "SELECT n FROM visit") == (pytest.approx(190, abs=0.45), "direct")
    assert ask(db, "SELECT n FROM visit WHERE n > 15") == (pytest.approx(70, abs=0.45), "direct")
    assert ask(db, "SELECT n FROM few") == (pytest.approx(10, abs=0.45), "apart")
    db.execute("CREATE TEMP VIEW few AS SELECT n FROM main.visit")
    db.execute("CREATE TEMP VIEW visit AS SELECT n FROM main.other")
    assert ask(db, "SELECT n FROM few") == (pytest.approx(10, abs=0.45), "apart")
    assert ask(db, "SELECT n FROM visit") == (pytest.approx(190, abs=0.45), "direct")
