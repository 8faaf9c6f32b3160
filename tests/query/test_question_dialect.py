"""A question speaks SQLite's own dialect. Where the connection has another one for what the question uses, a SELECT would give something
else, so the question is refused before its charge."""

import pathlib
import re
import sqlite3

import pytest

from conftest import connect, one, refused

SOURCE = (pathlib.Path(__file__).parents[2] / "ext" / "query" / "question_text.c").read_text().split("---- words and signs")[0]
LISTED = {name for names in re.findall(r"static const char \*const \w+\[\] = \{(.*?)\};", SOURCE, re.S) for name in re.findall(r'"([^"]+)"', names)}
OPERATORS = {"like": "note LIKE 'a%'", "glob": "note GLOB 'a*'", "->": "note -> '$'", "->>": "note ->> '$'", "current_date": "CURRENT_DATE",
             "current_time": "CURRENT_TIME", "current_timestamp": "CURRENT_TIMESTAMP"}


def clinic():
    db = connect()
    db.executescript("CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, minutes INT, note TEXT);"
                     "INSERT INTO visit VALUES (1, 1, 10, '[1]'), (2, 1, 20, '{}'), (3, 2, 30, 'ABC'), (4, 3, 5, 'abc')")
    for call in ["dp_init()", "dp_protect('visit', 'patient')", "dp_tier('t', 1e6, 1e12, 1e-6)"]:
        one(db, "SELECT " + call)
    return db


def calls():
    """Yields each function of the list that this SQLite has, a number of arguments that it takes, and a question that calls it."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE visit(id INTEGER PRIMARY KEY, patient INT, minutes INT, note TEXT)")
    found = {name.lower(): most for name, most in db.execute("SELECT name, max(narg) FROM pragma_function_list WHERE builtin GROUP BY name")}
    for name in sorted(LISTED & set(found)):
        for arguments in ([found[name]] if found[name] >= 0 else [2, 1, 3, 0]):
            values = ", ".join(["0.5" if name == "likelihood" and i else ("note", "minutes", "2")[i % 3] for i in range(arguments)])
            forms = [OPERATORS[name]] if name in OPERATORS else [f"{name}({values})", f"{name}({values}) OVER (ORDER BY id)"]
            for form in forms:
                try:
                    db.execute(f"EXPLAIN SELECT {form} FROM visit")
                except sqlite3.Error:
                    continue
                yield name, arguments, form
                break
            else:
                continue
            break


CALLS = list(calls())


def test_most_functions_of_the_list_are_tried():
    assert len(CALLS) > (80 if sqlite3.sqlite_version_info > (3, 38) else 50)


@pytest.mark.parametrize("name, arguments, form", CALLS, ids=[name for name, _, _ in CALLS])
def test_a_function_that_the_host_has_replaced(name, arguments, form):
    db = clinic()
    sql, after = f"SELECT {form} FROM visit", f"SELECT {form} FROM visit LIMIT -1"
    ask = "SELECT dp_release('t', 'sum', ?, '{\"clip\":50}')"
    one(db, ask, sql)
    charges = one(db, "SELECT count(*) FROM dp_charge")
    db.create_function(name.upper(), arguments, lambda *values: 42)
    for text in (sql, after):
        assert f"replaced SQLite's function {name}()" in refused(db, ask, text)
    assert one(db, "SELECT count(*) FROM dp_charge") == charges
    one(db, ask, "SELECT minutes FROM visit")  # a question that does not call it is not refused
    db.close()


@pytest.mark.parametrize("value", [0, 1])
def test_like_with_case(value):
    db = clinic()
    db.execute(f"PRAGMA case_sensitive_like = {value}")
    for sql in ("SELECT 1 FROM visit WHERE note LIKE 'a%'", "SELECT count(*) FROM visit WHERE note LIKE 'a%'", "SELECT like('a', note) FROM visit"):
        assert "replaced SQLite's function like()" in refused(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":50}')", sql)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    one(db, "SELECT dp_release('t', 'sum', 'SELECT minutes FROM visit WHERE note GLOB ''a*''', '{\"clip\":50}')")


ORDERS = {"reversed": lambda a, b: (a < b) - (a > b), "of numbers": lambda a, b: (lambda x, y: (x > y) - (x < y))(
    *([int(t) if t.isdigit() else -1, t] for t in (a, b))), "without case": lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()),
    "by length": lambda a, b: (len(a), a) > (len(b), b) or -((len(a), a) < (len(b), b))}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["BINARY", "NOCASE", "RTRIM"])
def test_a_collation_that_the_host_has_replaced(name, order):
    if (name, order) == ("NOCASE", "without case"):
        pytest.skip("differs from SQLite's for other letters than ASCII, which test_question_limits.py tries")
    db = clinic()
    db.create_collation(name, ORDERS[order])
    for sql in ("SELECT minutes FROM visit WHERE note < 'b'", "SELECT max(note) FROM visit"):
        assert f"the application has replaced SQLite's collation {name}" in refused(db, "SELECT dp_release('t', 'sum', ?, '{\"clip\":50}')", sql)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
