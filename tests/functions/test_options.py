"""Every option of every kind either has an effect or is refused with an error. No option is parsed and then ignored.

The extension itself lists the options of a kind. The test makes two calls with two values of each option. Either both calls
are refused with an error that names the option, or the two releases differ in their design, their cost or their answer (which
at rate 1e6 has almost no noise). A difference in the stored text of the options is not enough.
"""

import json
import re
import sqlite3

import pytest

from kinds_reference import KINDS, ROWS_COUNT, Row, by_query
from kinds_tables import PARAMETERS, fill
from noise_helpers import error_of, one, open_ledger

# No quantile that the tests ask for lies at the change from one value of a key to the next, where the noise would decide.
ROWS = [Row(key, x, json.dumps([x, x + 1, 0]), unit) for unit in range(40)
        for key, x in (("a", 0.5), ("a", 0.5), ("a", 1.25), ("b", unit % 5), ("c", -1))]
VALUES = {  # two values of each option
    "name": ("one", "other"), "weight": (1, 0.5), "refine": (False, True), "mechanism": ("gaussian", "laplace"),
    "clip": (1, 0.5), "lo": (-3, 1), "hi": (5, 0.25), "q": (0.25, 0.75), "dim": (3, 2), "bins": (8, 4), "grid": (0.5, 1.5),
    "keys": (["a"], ["a", "b"]), "max_groups": (1, 3), "key_share": (0.25, 0.5), "ways": (1, 2), "periods": ("2025/2026", "2025/2027"),
    "radius": (1, 1e-5), "centre": (0, 1),
    "diagnose": (False, True), "steps": (1000, 1e6), "bytes": (1e6, 1e8), "seconds": (1e-6, 6000), "theta": (0.5, 1e13), "rho": (1, 1e-8), "t": (0.1, 0.2), "candidates": (["a", "b"], ["b", "c", "d"]),
    "until": (0.001, 0.25), "least": (0, 1e6),
}
WITH = {  # other options that an option needs
    "max_groups": {"key_share": 0.5}, "theta": {"rho": 1}, "rho": {"theta": 1}, "refine": {"name": "r"}, "until": {"least": 10, "weight": 1e-4}, "least": {"until": 0.001, "weight": 1e-4}}
# Questions whose answers depend on a limit: with the lower one, the units below 30 contribute nothing, or the question fails.
LIMITED = {
    "steps": "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT count(*) FROM n) = 1000",
    "bytes": "length(hex(zeroblob(100000))) = 200000"}
LIMITED["seconds"] = LIMITED["steps"]  # takes longer than a microsecond
INSTEAD = {"max_groups": {"keys"}, "key_share": {"keys"}, "theta": {"radius", "centre"}, "rho": {"radius", "centre"}}
BASE = {**{kind: PARAMETERS[kind][0] for kind in KINDS}, "choice": {"candidates": ["a", "b", "c"]}}
for keyed in (kind for kind in KINDS if kind.endswith("group_quantile")):  # keys whose figures the units below 30 decide
    BASE[keyed] = {**BASE[keyed], "keys": ["a"]}
DESIGN = ("SELECT name, mechanism, granularity, sensitivity, dimension, clip, p.clock, p.rate, p.shrink, p.centre"
          " FROM dp_release r LEFT JOIN dp_publication p ON p.release_id = r.id WHERE state = 'released'")


def make(kind, protects):
    db = open_ledger({}, json.dumps({"protects": protects}))
    one(db, "SELECT dp_tier('exact', ?, 1e15, 1e-6, 'rdp', 1e-7)", 1 if kind == "choice" else 1e6)  # with a share of delta for private keys
    one(db, "SELECT dp_tier('outer', ?, 1e15, 1e-6, 'rdp', 1e-7)", 0.25 if kind == "choice" else 1e4)
    fill(db, ROWS)
    return db


def call_of(kind, options, tier="exact"):
    source = "t" + "".join(f" WHERE CASE WHEN unit >= 30 THEN x < 1 ELSE x > 1 AND {work} END"
                           for limit, work in LIMITED.items() if limit in options)
    if kind == "choice":  # those who are not limited choose another symbol than those who are
        symbol = "k" if source == "t" else "iif(unit < 30, 'a', 'b')"
        return "SELECT dp_release(?, ?, ?, ?)", [tier, kind, f"SELECT {symbol} FROM {source}", json.dumps(options)]
    return by_query(kind, options, tier, source)


def release(kind, options, protects):
    """Returns the error, or the exact figures and the answer of the release."""
    db = make(kind, protects)
    sql, arguments = call_of(kind, options)
    if "refine" in options:  # something that the option refers to must exist already
        outer, there = call_of(kind, {**options, "refine": False}, "outer")
        db.execute(outer, there).fetchall()
    try:
        answer = one(db, sql, *arguments)
    except sqlite3.Error as error:
        return str(error), None
    spent = db.execute("SELECT spent_epsilon, spent_delta FROM dp_budget ORDER BY tier").fetchall()
    return (db.execute(DESIGN).fetchall(), spent), json.loads(answer) if isinstance(answer, str) and kind != "choice" else answer


def differ(a, b):
    """Returns whether two answers differ by more than the noise, which is below 0.05 here."""
    if type(a) is not type(b):
        return True
    if isinstance(a, dict):
        return a.keys() != b.keys() or any(differ(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) != len(b) or any(map(differ, a, b))
    return a != b if isinstance(a, str) else abs(a - b) > 0.05 * max(1, abs(a))


def known_options(kind, protects):
    options = {**BASE[kind], "colour": 1}
    sql, arguments = call_of(kind, options)
    return re.search(r"known options: (.*)\)", error_of(make(kind, protects), sql, *arguments)).group(1).split(", ")


@pytest.mark.parametrize("protects", ["unit", "row"])
@pytest.mark.parametrize("kind", BASE)
@pytest.mark.sample(3)
def test_no_option_is_ignored(kind, protects):
    if kind.endswith("count_distinct") and protects == "row":
        pytest.skip("refused as a whole")
    for option in known_options(kind, protects):
        first, second = VALUES[option]
        if kind == "choice" and option == "mechanism":
            first, second = "exponential", "response"
        base = {k: v for k, v in BASE[kind].items() if k not in INSTEAD.get(option, ())}
        if option in ("until", "least") and "keys" in base:
            base["keys"] = ["a"]  # an average of nobody never becomes accurate
        base = {**base, **WITH.get(option, {})}
        a, b = (release(kind, {**base, option: value}, protects) for value in (first, second))
        if isinstance(a[0], str) or isinstance(b[0], str):
            said = [what for what, _ in (a, b) if isinstance(what, str)]
            names = option if (kind, option) != ("choice", "refine") else "only through a public kernel"  # symbols have no points
            names = "period" if option == "periods" else names  # the question has no label, or the ledger protects rows
            names = "until" if option == "least" else names  # it needs until, which is refused
            assert all(re.match(r"dp_\w+: ", text) and names in text for text in said), (option, said)
        elif (option, protects) == ("max_groups", "row"):  # a row has one key (sql/aggregates.md)
            assert a[0] == b[0] and not differ(a[1], b[1]), (option, a, b)
        else:
            assert a[0] != b[0] or differ(a[1], b[1]), (option, a, b)


@pytest.mark.parametrize("kind", sorted(set(ROWS_COUNT) | {"group_sum"}))
@pytest.mark.sample(10)
def test_a_protected_row_counts_once_and_has_one_key(kind):
    """If larger bounds are given, the ledger stores the bounds of one row (sql/aggregates.md)."""
    options = {k: v for k, v in BASE[kind].items() if "group" not in kind or kind.startswith("ou_") or k != "keys"}
    private = "group" in kind and not kind.startswith("ou_")
    several = [(3, 5), (1, 1)] if kind in ROWS_COUNT else [(2.5, 5), (2.5, 1)]
    found = []
    for clip, groups in several:
        given = {**options, "name": "r", "clip": clip, **({"max_groups": groups, "key_share": 0.5} if private else {})}
        db = make(kind, "row")
        sql, arguments = call_of(kind, given)
        one(db, sql, *arguments)
        kept = json.loads(one(db, "SELECT options FROM dp_release WHERE name = 'r'"))
        assert kept["clip"] == several[1][0] and (not private or kept["max_groups"] == 1)
        found.append((db.execute(DESIGN).fetchall(), kept))
        # The release with larger bounds is the same release, so the same name replays it.
        sql, arguments = call_of(kind, {**given, "clip": several[1][0]})
        one(db, sql, *arguments)
        assert one(db, "SELECT count(*) FROM dp_charge") == 1
    assert found[0] == found[1]
