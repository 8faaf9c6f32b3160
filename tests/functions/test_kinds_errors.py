"""Every mistake in a parameter of every kind gives an error of one sentence that does not show the value. Nothing is charged or
read. Also tests the calls that SQLite itself refuses, and GROUP BY with a name."""

import json
import re
import sqlite3

import pytest

from kinds_reference import STATISTICS, KINDS, LINEAR, Row, aggregate, by_query
from kinds_tables import PARAMETERS, fill
from noise_helpers import charges, connect, error_of, one, said_of


def make(options="{}"):
    db = connect()
    one(db, "SELECT dp_init(?)", options)
    one(db, "SELECT dp_tier('exact', 1.0, 1e15, 1e-6)")
    fill(db, [Row("a", 1.5, "[1,2,3]", 1), Row("b", 2.5, "[1,2,3]", 2)])
    return db


@pytest.fixture(scope="module")
def units():
    return make()


@pytest.fixture(scope="module")
def rows():
    return make('{"protects":"row"}')


@pytest.fixture(autouse=True)
def nothing_is_charged(units, rows):
    yield
    for db in (units, rows):
        assert not charges(db) and not db.execute("SELECT * FROM dp_release").fetchall()


def check(db, message, sql, *arguments):
    """Checks that the error begins with the name of the function, contains the message and is one sentence."""
    got = error_of(db, sql, *arguments)
    assert got.startswith(re.search(r"dp_\w+", sql).group() + ": "), got
    assert message in got, (got, message)
    assert "SQL logic error" not in got and "\n" not in got and not re.search(r"[.!?] [A-Z]|[.]$", got)
    return got


# ---- values --------------------------------------------------------------------------------------------------------

CLIP, RANGE = "clip must be a number in [1e-150, 1e+150]", " must be a number in [-1e+100, 1e+100]"
TYPES = [("NULL", "NULL"), ("'x'", "'x'"), ("'2 x'", "'2 x'"), ("x'32'", "a blob"), ("9e999", "Inf"), ("-9e999", "-Inf")]
BAD = {  # {bound: (the domain in the message, literals outside the domain)}
    "clip": (CLIP, [*TYPES, ("0", "0"), ("-1", "-1"), ("1e-151", "1.0e-151"), ("1e151", "1.0e+151")]),
    "lo": ("lo" + RANGE, [*TYPES, ("1e151", "1.0e+151"), ("-1e200", "-1.0e+200")]),
    "hi": ("hi" + RANGE, [*TYPES, ("1e151", "1.0e+151")]),
    "dim": ("dim must be a ", [*TYPES, ("0", "0"), ("-3", "-3"), ("4097", "4097"), ("2.5", "2.5")]),
    "bins": ("bins must be a ", [*TYPES, ("0", "0"), ("65537", "65537"), ("1.5", "1.5"), ("-2", "-2")]),
    "radius": ("radius must be a finite number above 0", [*TYPES[1:], ("0", "0"), ("-1", "-1"), ("0.0", "0.0")]),
    "q": ("q must be a number in [0, 1] or a JSON array of at most 1000 such numbers", [
        ("NULL", "NULL"), ("'x'", "'x'"), ("x'30'", "a blob"), ("9e999", "Inf"), ("-0.5", "-0.5"), ("2", "2"), ("'[2]'", "'[2]'"),
        ("'[]'", "'[]'")]),
}


def with_literal(db, kind, bound, literal):
    """Returns the call of a kind's aggregate and its arguments, of which one is the value of this literal."""
    call, arguments = aggregate(kind, PARAMETERS[kind][0])
    arguments[1 + KINDS[kind].bounds.split().index(bound)] = one(db, f"SELECT {literal}")
    return call, arguments


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].bounds])
def test_bounds(units, kind):
    for bound in KINDS[kind].bounds.split():
        if bound == "q" or not isinstance(PARAMETERS[kind][0].get(bound, 1), list):
            message, literals = BAD[bound]
            for literal, shown in literals:
                call, arguments = with_literal(units, kind, bound, literal)
                got = check(units, message, f"SELECT {call} FROM t", *arguments)
                assert ", not" not in got or got.endswith(said_of(shown)), got


JSON_BAD = [("null", "NULL"), ('"2x"', "'2x'"), ("true", "true"), ("false", "false"), ("[1]", "'[1]'"), ('{"a":1}', '\'{"a":1}\'')]


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_a_query(units, kind):
    """dp_release() refuses options of the wrong type, and reports each missing option."""
    p = dict(PARAMETERS[kind][0])
    for option in set(p) - {"q", "keys"} | {"weight"}:
        for value, shown in JSON_BAD:
            sql, arguments = by_query(kind, p)
            text = json.dumps({k: v for k, v in p.items() if k != option})
            arguments[3] = text[:-1] + ("" if text == "{}" else ",") + f'"{option}":{value}}}'
            got = check(units, f"{option} must be a ", sql, *arguments)
            assert ", not" not in got or got.endswith(said_of(shown)), got
    for option in KINDS[kind].bounds.split():
        if option == "clip" and kind in ("count", "group_count", "ou_count", "ou_group_count"):
            continue  # clip is 1 if it is not given
        sql, arguments = by_query(kind, {k: v for k, v in p.items() if k != option})
        check(units, "radius must be" if option == "radius" else f"{option} is missing", sql, *arguments)


ALSO, WAYS = {kind: set() for kind in KINDS}, {}
for _kind in KINDS:
    if _kind.removeprefix("ou_") in ("avg", "var", "stddev", "quantile", "median", "histogram", "group_avg", "group_var", "group_stddev",
                                      "group_count_distinct", "group_histogram", "group_quantile", "group_median"):
        ALSO[_kind] |= {"clip"}
    if _kind.endswith(("quantile", "median")):
        ALSO[_kind] |= {"bins", "grid"}
    if _kind.removeprefix("ou_") not in ("count_distinct", "bounds"):
        ALSO[_kind] |= {"diagnose"}
    if "group" in _kind:
        ALSO[_kind] |= {"keys"} if _kind.startswith("ou_") else {"keys", "max_groups", "key_share"}
    WAYS[_kind] = {"ways"} if _kind in ("group_count", "group_sum", "group_avg") else set()  # not in aggregates
    WAYS[_kind] |= {"periods"} if _kind.removeprefix("group_") in ("count", "sum", "avg") else set()
    WAYS[_kind] |= {"periods", "clip", "diagnose"} if _kind == "count_distinct" else set()
    if _kind.startswith("ou_"):
        ALSO[_kind] |= {"centre", "theta", "rho", "t"}


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_options_list_the_known_ones(units, kind):
    everywhere, limits = {"name", "weight", "refine", "mechanism"}, {"steps", "bytes", "seconds"}
    p, stops = {**PARAMETERS[kind][0], "colour": 1}, {"until", "least"}
    call, arguments = aggregate(kind, p)
    bounds = set(KINDS[kind].bounds.split())
    clips = {"bounds"} if "clip" in ALSO[kind] | bounds else set()
    for wanted, sql, arguments in ((everywhere | ALSO[kind] | limits, f"SELECT {call} FROM t", arguments),
                                   (everywhere | ALSO[kind] | WAYS[kind] | bounds | limits | stops, *by_query(kind, p)),
                                   (everywhere | ALSO[kind] | WAYS[kind] | bounds | {"half_width", "rows", "unit", "sql"} | clips | stops, "SELECT dp_plan('exact', ?, NULL, ?)",
                                    [kind, json.dumps(p)])):
        got = check(units, "unknown option 'colour' (known options: ", sql, *arguments)
        assert set(re.search(r"known options: (.*)\)", got).group(1).split(", ")) == wanted
    # A parameter that is an argument is not also an option of the aggregate.
    for bound in bounds:
        call, arguments = aggregate(kind, PARAMETERS[kind][0])
        has_options = len(arguments) > 1 + len(bounds)
        sql = call if has_options else call[:-1] + ", ?)"
        arguments = arguments[:1 + len(bounds)] + [json.dumps({bound: 1})]
        check(units, f"unknown option '{bound}' (", f"SELECT {sql} FROM t", *arguments)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "lo" in KINDS[kind].bounds])
def test_ranges(units, kind):
    for lo, hi in ((1, 1), (2, 1), (0.0, -0.0), (1e-300, 2e-300), (1, 1 - 1e-16)):
        sql, arguments = by_query(kind, {**PARAMETERS[kind][0], "lo": lo, "hi": hi})
        check(units, "lo must be below hi", sql, *arguments)
        call, arguments = aggregate(kind, {**PARAMETERS[kind][0], "lo": lo, "hi": hi})
        check(units, "lo must be below hi", f"SELECT {call} FROM t", *arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_rows_and_columns_of_questions(units, rows, kind):
    """A count of units needs a ledger that protects units. A question has no column for the unit."""
    p = PARAMETERS[kind][0]
    if kind.endswith("count_distinct"):
        call, arguments = aggregate(kind, p)
        instead = "dp_group_count" if "group" in kind else "dp_count"
        check(rows, f"the ledger protects rows, and every row is a unit (use {instead})", f"SELECT {call} FROM t", *arguments)
        sql, arguments = by_query(kind, p)
        check(rows, "the ledger protects rows, and every row is a unit", sql, *arguments)
    sql, arguments = by_query(kind, p)
    columns = ", ".join(KINDS[kind].columns.split()).replace("v", "x").replace("k", "key")
    count = columns.count(",") + 1
    for wrong in ("1, " * count + "2", "1, " * count + "2, 3") if columns else ():
        arguments[2] = f"SELECT {wrong} FROM t"
        got = check(units, f"sql must give {count} column", sql, *arguments)
        assert f"({columns}), not {wrong.count(',') + 1}" in got


@pytest.mark.parametrize("kind", KINDS)
def test_tiers_and_names(units, kind):
    p = PARAMETERS[kind][0]
    call, arguments = aggregate(kind, p)
    for tier, message in (("nowhere", "unknown tier (known tiers: exact)"), (None, "tier must be the name of a tier, not NULL"),
                          (7, "tier must be the name of a tier"), (b"exact", "tier must be the name of a tier, not a blob")):
        check(units, message, f"SELECT {call} FROM t", tier, *arguments[1:])
        sql, query = by_query(kind, p)
        check(units, message, sql, tier, *query[1:])
    for name in ("", 5, 2.5, None, True, "release-7"):
        sql, query = by_query(kind, {**p, "name": name})
        check(units, "name ", sql, *query)
    for weight in (0, -1, 1.5):
        sql, query = by_query(kind, {**p, "weight": weight})
        check(units, f"weight must be a number in (0, 1]", sql, *query)
    sql, query = by_query(kind, {**p, "refine": 1})
    check(units, "refine must be true or false", sql, *query)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("ou_")])
def test_shrinks(units, kind):
    p = {k: v for k, v in PARAMETERS[kind][0].items() if k != "radius"}
    for more, message in (
            ({}, "radius must be a finite number above 0 (the public bound on the distance of the true answer from the centre)"),
            ({"theta": 1}, "theta and rho belong together (rho is missing)"),
            ({"rho": 1}, "theta and rho belong together (theta is missing)"),
            ({"theta": -1, "rho": 1}, "theta must be a finite number of at least 0"),
            ({"theta": 0, "rho": 1, "centre": 1}, "centre is for theta above 0 (theta 0 shrinks nothing)"),
            ({"theta": 1, "rho": 1, "radius": 1}, "radius follows from theta and rho"),
            ({"theta": 1, "rho": -1}, "rho must be a finite number above 0"),
            ({"radius": 1, "centre": "x"}, "centre must be a finite number, not a text"),
            ({"radius": 1e-200}, "would shrink the value to nothing but its centre")):
        sql, arguments = by_query(kind, {**p, **more})
        if "radius" not in more or more["radius"] == 1 or kind in LINEAR:  # only linear kinds are scaled
            check(units, message, sql, *arguments)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("ou_")])
def test_options_of_other_kinds(units, kind):
    """An option that only other kinds have is refused as an unknown option."""
    p = PARAMETERS[kind][0]
    known = {"clip", "lo", "hi", "q", "dim", "bins", "grid", "keys", "max_groups", "key_share", "radius", "centre", "theta", "rho", "t"}
    for option in known - ALSO[kind] - WAYS[kind] - set(KINDS[kind].bounds.split()):
        sql, arguments = by_query(kind, {**p, option: 1})
        check(units, f"unknown option '{option}' (", sql, *arguments)


def test_unknown_kinds(units):
    for kind in ("average", "", "AVG", "avg ", "dp_avg", "group", "ou", "group_ou_avg", None, 5):
        for sql in ("SELECT dp_release('exact', ?, 'SELECT x FROM t')", "SELECT dp_plan('exact', ?, 1)"):
            got = check(units, "unknown kind (", sql, kind)
            assert set(re.search(r"known kinds: (.*)\)", got).group(1).split(", ")) == set(KINDS) | {"choice", "sgd", "response_count"}


def test_combinations_without_sense_say_why(units):
    """Every statistic says why there is no kind of it with a public bound or with keys, if there is none."""
    for statistic in (*STATISTICS, "choice", "sgd", "response_count"):
        for kind in (f"ou_{statistic}", f"group_{statistic}", f"ou_group_{statistic}"):
            if kind not in KINDS:
                got = error_of(units, "SELECT dp_release('exact', ?, 'SELECT x FROM t')", kind)
                assert got.startswith(f"dp_release: there is no kind '{kind}', because "), got
                assert got.endswith(f" (take '{statistic}')"), got


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_arguments(units, kind):
    """SQLite itself refuses calls with one argument too few. A call with one too many, such as the unit, is told what to write."""
    most = 2 + len(KINDS[kind].columns.split()) + len(KINDS[kind].bounds.split())
    optional = kind in ("count", "ou_count", "group_count", "ou_group_count")
    for count in (0, most - 2 - optional, most + 2):
        with pytest.raises(sqlite3.OperationalError, match=f"wrong number of arguments to function dp_{kind}"):
            units.execute(f"SELECT dp_{kind}({', '.join(['1'] * count)}) FROM t").fetchall()
    for unit in ("unit", "unit, 'a'"):
        call, arguments = aggregate(kind, {p: v for p, v in PARAMETERS[kind][0].items() if p in KINDS[kind].bounds.split()})
        check(units, f"argument {most} is neither a name nor options (write dp_{kind}(tier, ", f"SELECT {call[:-1]}, {unit}) FROM t", *arguments)
    assert one(units, "SELECT count(*) FROM dp_charge") == 0


# ---- what SQLite refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_distinct_windows_views_and_triggers(units, kind):
    call, _ = aggregate(kind, PARAMETERS[kind][0])
    call = call.replace("?", "1")
    wanted = "DISTINCT" if kind == "count_distinct" else "DISTINCT aggregates must have exactly one argument"
    assert wanted in error_of(units, f"SELECT {call.replace('(', '(DISTINCT ', 1)} FROM t")
    assert f"dp_{kind}() may not be used as a window function" in error_of(units, f"SELECT {call} OVER () FROM t")
    units.execute("SAVEPOINT s")
    units.execute(f"CREATE VIEW w AS SELECT {call} FROM t")
    assert f"unsafe use of dp_{kind}()" in error_of(units, "SELECT * FROM w")
    units.execute(f"CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT {call} FROM t; END")
    assert f"unsafe use of dp_{kind}()" in error_of(units, "INSERT INTO t DEFAULT VALUES")
    units.execute("ROLLBACK TO s")
    units.execute("RELEASE s")


@pytest.mark.parametrize("kind", KINDS)
def test_group_by_is_refused(units, kind):
    """GROUP BY would show which groups exist, with and without a name."""
    for name in ({}, {"name": "n"}):
        call, arguments = aggregate(kind, {**PARAMETERS[kind][0], **name})
        check(units, "GROUP BY cannot stand around it (for one release by key, write dp_", f"SELECT {call} FROM t GROUP BY k", *arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_that_change_from_row_to_row(kind):
    db = make()
    for i, bound in enumerate(KINDS[kind].bounds.split()):
        if bound == "q":
            continue
        value = PARAMETERS[kind][0].get(bound, 1)
        call, arguments = with_literal(db, kind, bound, 1)
        place = 1 + KINDS[kind].bounds.split().index(bound)
        parts = call.split("?")
        call = "?".join(parts[:place + 1]) + f"iif(unit = 1, {value}, {value} + 1)" + "?".join(parts[place + 1:])
        del arguments[place]
        got = error_of(db, f"SELECT {call} FROM t", *arguments)
        assert got.startswith(f"dp_{kind}: ") and "row" in got, got
