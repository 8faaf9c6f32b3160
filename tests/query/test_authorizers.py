"""An authorizer of the host may return SQLITE_IGNORE for an action. Either the extension notices this and refuses the
release, or the missing action has no effect on the release."""

import pathlib
import sqlite3
import subprocess
import sys

import pytest

from conftest import add_tiers, add_visits, connect, create, EXTENSION, INIT, one, PATIENCE

HOSTS = pathlib.Path(__file__).parent.parent.parent / "build" / "hosts" / "python" / "apsw"
EXACT = [("exact", 1e6, 1e8, 1e-6)]
COUNT = """SELECT dp_release('exact', 'count', 'SELECT 1 FROM visits', '{"clip":1}')"""
FORMS = {"dp_release": COUNT, "by unit": COUNT.replace("FROM visits", "FROM visits LIMIT 1"), "threads": COUNT}


def ignoring(db, action, word=None):
    """Sets an authorizer that returns SQLITE_IGNORE for an action in statements compiled from now on. With `word`, the authorizer
    does so only if `word` is one of the action's arguments."""
    def authorize(code, first, second, *_):
        hit = code == action and (word is None or word in (first, second))
        return sqlite3.SQLITE_IGNORE if hit else sqlite3.SQLITE_OK

    db.set_authorizer(authorize)


# Actions that the extension causes. The statement of the owner causes none of these actions, because it is compiled
# before the authorizer is set.
HIDDEN = {"dp_collect": (sqlite3.SQLITE_FUNCTION, "dp_collect"), "database_list": (sqlite3.SQLITE_PRAGMA, "database_list"),
          "id": (sqlite3.SQLITE_READ, "id"), "path": (sqlite3.SQLITE_READ, "path"),
          "the marker": (sqlite3.SQLITE_READ, "dp_ledger_id"), "query_only": (sqlite3.SQLITE_PRAGMA, "query_only"),
          "pragmas": (sqlite3.SQLITE_PRAGMA, None), "SELECT": (sqlite3.SQLITE_SELECT, None),
          "sqlite_master": (sqlite3.SQLITE_READ, "sqlite_master"), "the rowid": (sqlite3.SQLITE_READ, "ROWID"),
          "the patient": (sqlite3.SQLITE_READ, "patient")}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("form", FORMS)
def test_an_answer_is_right_or_refused(path, form, hidden):
    db = create(path, tiers=EXACT)
    if form == "threads":
        db.execute("PRAGMA threads = 3")
    db.create_function("hide_now", 0, lambda: ignoring(db, *hidden) or 1)
    # `hide_now` runs before the release, in a statement that is compiled already
    sql = FORMS[form].replace("SELECT dp", "SELECT iif(hide_now(), dp").replace("}')", "}'), 0)")
    try:
        answer = one(db, sql)
    except sqlite3.Error as error:
        answer = str(error)
    db.set_authorizer(None)
    charges = one(db, "SELECT count(*) FROM dp_charge")
    if isinstance(answer, float):
        assert abs(answer - 50) < 0.5 and charges == 1
    elif "the charge stays" in answer:  # no rows came for the question
        assert one(db, "SELECT state FROM dp_release") == "failed" and one(db, "SELECT count(*) FROM dp_value") == 0
    else:
        assert "authorizer" in answer or "query_only" in answer or "no such table" in answer, answer
        assert charges == 0


@pytest.mark.parametrize("action", ["SQLITE_TRANSACTION", "SQLITE_CREATE_TABLE", "SQLITE_INSERT", "SQLITE_SELECT", "SQLITE_READ"])
def test_dp_init_leaves_a_marker_or_nothing(path, action):
    db = connect(path)
    add_visits(db)
    db.create_function("hide_now", 0, lambda: ignoring(db, getattr(sqlite3, action)) or 1)
    with pytest.raises(sqlite3.Error):
        db.execute("SELECT iif(hide_now(), dp_init(), 0)").fetchall()
    db.set_authorizer(None)
    db.close()
    db = connect(path)
    assert one(db, "SELECT count(*) FROM sqlite_master WHERE name = 'dp_ledger_id'") == 0
    assert one(db, INIT) == f"{path}-ledger"
    one(db, "SELECT dp_protect('visits', 'patient')")
    add_tiers(db, EXACT)
    assert abs(one(db, COUNT) - 50) < 0.5


STORY = """
import sys
sys.path.insert(0, sys.argv[1])
import apsw
db = apsw.Connection(":memory:")
def call(new, old):
    return getattr(db, new, None) or getattr(db, old)
call("enable_load_extension", "enableloadextension")(True)
call("load_extension", "loadextension")(sys.argv[2])
def one(sql):
    return db.cursor().execute(sql).fetchall()[0][0]
db.cursor().execute("CREATE TABLE visits(patient); SELECT dp_init(); SELECT dp_protect('visits', 'patient'); SELECT dp_tier('exact', 1e6, 1e8, 1e-6)").fetchall()
db.cursor().execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO visits SELECT i FROM n")
authorizer = call("set_authorizer", "setauthorizer")
def ask_hiding(code, name):
    def ignore():
        authorizer(lambda asked, a, b, *_: apsw.SQLITE_IGNORE if asked == code and name in (a, b) else apsw.SQLITE_OK)
        return 1
    call("create_scalar_function", "createscalarfunction")("hide_now", ignore)
    try:
        return one('''SELECT iif(hide_now(), dp_release('exact', 'count', 'SELECT 1 FROM visits', '{"clip":1}'), 0)''')
    finally:
        authorizer(None)
for hidden in [(apsw.SQLITE_PRAGMA, "database_list"), (apsw.SQLITE_READ, "path")]:
    try:
        answer = ask_hiding(*hidden)
        raise AssertionError((hidden, answer))
    except apsw.Error as error:
        assert "authorizer" in str(error), error
    assert one("SELECT count(*) FROM dp_charge") == 0
# Without the direct loop's function, the evaluator answers.
assert abs(ask_hiding(apsw.SQLITE_FUNCTION, "dp_collect") - 50) < 0.5
assert abs(one('''SELECT dp_release('exact', 'count', 'SELECT 1 FROM visits', '{"clip":1}')''') - 50) < 0.5
"""


@pytest.mark.parametrize("version", ["3.39.4.0", "newest"])
@pytest.mark.plain
def test_other_versions_of_sqlite(version):
    if not (HOSTS / version / ".done").exists():
        pytest.skip("no apsw in build/hosts (make deps-hosts)")
    subprocess.run([sys.executable, "-c", STORY, str(HOSTS / version), EXTENSION], check=True, timeout=PATIENCE)
