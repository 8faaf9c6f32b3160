"""No error shows the value of an argument: every argument of every function may come from a row (.github/SECURITY.md)."""

import json
import random
import sqlite3

import pytest

from conftest import connect, make_ledger, one, refused

TEXT, NUMBER = "P-029978", 4711029978.5
MARKS = ("029978", "4711029978", "4.711", f"{TEXT.encode().hex()}")
SECRETS = [TEXT, NUMBER, -NUMBER, 4711029978, -4711029978, TEXT.encode(), TEXT + "\0", f" {TEXT}, ",
           json.dumps({TEXT: 1}), json.dumps({"name": TEXT, TEXT: TEXT}), json.dumps({"weight": NUMBER}), json.dumps({"weight": TEXT}),
           json.dumps({"mechanism": TEXT}), json.dumps({"name": [TEXT]}), json.dumps({"refine": TEXT}), json.dumps({"keys": TEXT}),
           json.dumps({"clip": TEXT}), json.dumps({"theta": 1, "rho": TEXT}), json.dumps({"half_width": NUMBER}), json.dumps([TEXT, TEXT]),
           json.dumps([[TEXT, TEXT, NUMBER]]), json.dumps([[TEXT, "b", 0.5]]), json.dumps([{TEXT: 1}]), json.dumps([{"tier": TEXT, "kind": TEXT}]),
           json.dumps({"stop": TEXT}), *[json.dumps({"n": 9, "dim": 2, "clip": 1, "radius": 1, word: TEXT}) for word in ("stop", "schedule", "mechanism", "loss")], json.dumps({"q": TEXT}), "{" + TEXT, "[" + TEXT, '{"%s":1,"%s":1}' % (TEXT, TEXT),
           '{"weight":9e999,"%s":1}' % TEXT, json.dumps({"n": 9, "dim": 2, "clip": 1, "radius": 1, "eta": NUMBER}),
           json.dumps({"n": 9, "dim": 2, "clip": 1, "radius": 1, "weight": 4711029978e-30})]
ORDINARY = ["'inner'", "'outer'", "'r'", "'m'", "'sum'", "'group_count'", "1", "0.5", "2", "40", "NULL", "x", "unit", "'[1,2]'", "'{}'", "'logistic'",
            "'{\"clip\":1}'", "'{\"name\":\"r\"}'", "'[[1,2,1]]'", "'[\"a\"]'", "'{\"n\":9,\"dim\":2,\"clip\":1,\"radius\":1}'"]

# Exceptions: errors of dp_init() and dp_tier() show the path or the name that the owner gave, and SQLite quotes the query of
# dp_release() that it cannot compile.
SHOWN = {("dp_init", 0), ("dp_tier", 0), ("dp_release", 2)}


def story():
    db = connect()
    db.execute("CREATE TABLE t(x, unit, secret)")
    db.executemany("INSERT INTO t VALUES (?, ?, NULL)", [(i % 3, i) for i in range(9)])
    make_ledger(db, "{}", "t, unit")
    one(db, "SELECT dp_tier('inner', 2, 1e6, 1e-6)")
    one(db, "SELECT dp_tier('outer', 1, 1e6, 1e-6)")
    one(db, "SELECT dp_sum('inner', x, 1, 'r') FROM t")
    return db


def functions():
    db = connect()
    found = sorted(db.execute("SELECT DISTINCT name, narg FROM pragma_function_list WHERE name LIKE 'dp\\_%' ESCAPE '\\' AND narg > 0"))
    assert len({name for name, _ in found}) > 60
    return found + [("dp_amplify", 4)]


@pytest.mark.parametrize("name,arguments", functions(), ids=lambda x: str(x))
@pytest.mark.sample(40)
def test_no_error_shows_an_argument(name, arguments, tmp_path, monkeypatch):
    """The test puts a secret into each argument of each function, as a column or as a bound parameter. The other arguments are
    chosen at random and may be right or wrong."""
    monkeypatch.chdir(tmp_path)  # dp_export() writes files with these names
    rng = random.Random(f"{name} {arguments}")
    db, refusals = story(), 0
    for place in range(arguments):
        if (name, place) in SHOWN:
            continue
        for secret in SECRETS:
            others = [rng.choice(ORDINARY) for _ in range(arguments)]
            if rng.random() < 0.7:
                others[0] = "'inner'"
            others[place] = "secret" if name != "dp_amplify" and rng.random() < 0.5 else "?"
            db.execute("UPDATE t SET secret = ?", (secret,))
            sql = f"SELECT {name}({', '.join(others)}) FROM t" if name != "dp_amplify" else f"SELECT * FROM {name}({', '.join(others)})"
            try:
                db.execute(sql, (secret,) if "?" in sql else ()).fetchall()
                db = story()  # without the release, whose parameters a later error could show
            except sqlite3.Error as error:
                refusals += 1
                said = str(error)
                assert not any(mark in said for mark in MARKS), (sql, secret, said)
    assert refusals > arguments or (name, 0) in SHOWN


@pytest.mark.parametrize("terms", ["{}", '{"protects":"row"}'])
@pytest.mark.parametrize("call", ["protect(?)", "protect(?, 'unit')", "protect('other', ?)", "protect('other', 'unit', ?)", "protect('other', ?, 't')",
                                  "public(?)", "public('other', ?)"])
def test_no_declaration_shows_an_unknown_name(terms, call):
    """Names that the schema and the policy know may be shown. The other arguments are right here."""
    db = connect()
    db.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY, unit); CREATE TABLE other(unit, x)")
    make_ledger(db, terms, "t" if "row" in terms else "t, unit")
    assert TEXT not in refused(db, f"SELECT dp_{call}", TEXT)
    assert one(db, "SELECT count(*) FROM dp_policy") == 1


def test_each_kind_of_error_shows_the_type():
    """Tests the most likely mistake by hand: the identifier of a patient in the place of a bound."""
    db = story()
    db.execute("UPDATE t SET secret = ?", (TEXT,))
    for call in ("dp_sum('inner', x, abs(secret) || 'x')", "dp_partial('sum', 'SELECT x FROM t', secret)"):
        assert TEXT not in refused(db, f"SELECT {call} FROM t")
    assert refused(db, "SELECT dp_hockey_gaussian(secret, 1) FROM t") == "dp_hockey_gaussian: epsilon must be a number of at least 0, not a text"


ADVICE = [("{}", "SELECT dp_sum('inner', x, 1, unit) FROM t"), ("{}", "SELECT dp_count('inner', x) FROM t"),
          ('{"protects":"row"}', "SELECT dp_sum('inner', x, 1, unit) FROM t"),
          ("{}", "SELECT dp_sgd('inner', x, '[1]', 'logistic', '{\"n\":9,\"dim\":1,\"clip\":1,\"radius\":1}') FROM t"),
          ("{}", "SELECT dp_partial('sum', x, '{\"clip\":1}') FROM t")]


@pytest.mark.parametrize("terms,sql", ADVICE)
def test_advice_never_weakens_privacy(terms, sql):
    """No error advises the owner to use a ledger that protects rows instead of units, or to make a new ledger."""
    db = connect()
    db.execute("CREATE TABLE t(x, unit)")
    db.execute("INSERT INTO t VALUES (1, 1)")
    make_ledger(db, terms, "t" if "row" in terms else "t, unit")
    one(db, "SELECT dp_tier('inner', 2, 1e6, 1e-6)")
    said = refused(db, sql)
    assert "dp_init" not in said and '"protects"' not in said and '"row"' not in said
