"""Tests that every mistake in a parameter gives an error of one sentence: "function: what is wrong (what to do)". The sentence
may name the type and the domain, but never the value. A mistake costs nothing, and dp_release() reads no row."""

import re
import sqlite3

import pytest
from conftest import create, INIT, KINDS, reading, run

from noise_helpers import charges, column, connect, error_of, fill, one, said_of

KNOWN_TIERS = "(known tiers: clinic, region, public)"
CLIP = "clip must be a number in [1e-150, 1e+150]"
RADIUS = "radius must be a finite number above 0"
NO_RADIUS = ("radius must be a finite number above 0 (the public bound on the distance of the true answer from the centre),"
             " unless theta and rho are given")
NOT_EMPTY = " must be a text that is not empty"
SUM_OPTIONS = "known options: name, weight, refine, mechanism, diagnose, steps, bytes, seconds)"
OU_OPTIONS = "known options: name, weight, refine, mechanism, diagnose, centre, theta, steps, bytes, seconds, rho, t)"
SQL = "SELECT x FROM t"
BOUNDS = "SELECT dp_release('clinic', 'bounds', 'WITH q(x) AS (SELECT x FROM t) SELECT sum(x) FROM q', '{\"name\":\"bounds\"}'))"


def make(options="{}"):
    db = connect()
    one(db, "SELECT dp_init(?)", options)
    one(db, "SELECT dp_tier('clinic', 1.0, 80.0, 1e-6)")
    one(db, "SELECT dp_tier('region', 0.3, 30.0, 1e-6, 'gdp')")
    one(db, "SELECT dp_tier('public', 0.1, 10.0, 1e-6)")
    fill(db, [(1.5, 1), (2.5, 2)])
    return db


@pytest.fixture(scope="module")
def units():
    """Makes a ledger that protects units, with one release, r, at the middle tier."""
    db = make()
    one(db, "SELECT dp_sum('region', x, 2.0, 'r') FROM t")
    yield db
    assert one(db, "SELECT dp_verify()") == "ok"
    db.close()


@pytest.fixture(scope="module")
def rows():
    db = make('{"protects":"row"}')
    yield db
    db.close()


@pytest.fixture(autouse=True)
def nothing_is_charged(request):
    """Checks after each test that the test has charged nothing in these ledgers, and has left no release and no tier."""
    dbs = [request.getfixturevalue(name) for name in {"units", "rows"} & set(request.fixturenames)]

    def books():
        return [(charges(db), column(db, "SELECT name FROM dp_release"), column(db, "SELECT name FROM dp_tier")) for db in dbs]

    before = books()
    yield
    assert books() == before


def check(db, sql, message, *arguments):
    """Checks that the statement fails with exactly this message, and that the message is well formed."""
    got = error_of(db, sql, *arguments)
    function = re.search(r"dp_\w+", sql).group()
    assert got == f"{function}: {message}"
    assert "SQL logic error" not in got and "\n" not in got
    assert not re.search(r"[.!?] [A-Z]|[.]$", got), "more than one sentence"


# ---- numbers -------------------------------------------------------------------------------------------------------

BAD = [("NULL", "NULL"), ("0", "0"), ("-1", "-1"), ("0.0", "0.0"), ("-0.0", "0.0"), ("9e999", "Inf"), ("-9e999", "-Inf"),
       ("9e999 - 9e999", "NULL")]
TOO_SMALL = [("1e-310", "9.99999999999997e-311"), ("1e-151", "1.0e-151")]
TOO_LARGE = [("1e151", "1.0e+151")]


@pytest.mark.parametrize("literal,shown", BAD + TOO_SMALL + TOO_LARGE)
def test_rate_of_a_tier(units, literal, shown):
    check(units, f"SELECT dp_tier('n', {literal}, 1, 1e-6)", "rate must be a number in [1e-12, 1e+06]" + said_of(shown))


@pytest.mark.parametrize("literal,shown", BAD)
def test_epsilon_and_delta_of_a_tier(units, literal, shown):
    check(units, f"SELECT dp_tier('n', 0.01, {literal}, 1e-6)", "epsilon must be a finite number above 0" + said_of(shown))
    check(units, f"SELECT dp_tier('n', 0.01, 1, {literal})", "delta must be a number in (0, 1)" + said_of(shown))
    if shown not in ("0", "0.0"):
        check(units, f"SELECT dp_tier('n', 0.01, 1, 1e-6, 'rdp', {literal})",
              "delta_keys must be a number in [0, 1)" + said_of(shown))


PLANNING = [("dp_rate({}, 1e-6)", "epsilon must be a finite number of at least 0", 0),
            ("dp_rate(1, {})", "delta must be a number in (0, 1)", 1),
            ("dp_sigma({}, 1)", "rate must be a finite number above 0", 1),
            ("dp_sigma(1, {})", "sensitivity must be a finite number above 0", 1),
            ("dp_epsilon({}, 1e-6)", "rate must be a finite number of at least 0", 0),
            ("dp_epsilon(1, {})", "delta must be a number in (0, 1)", 1),
            ("dp_delta({}, 1)", "rate must be a finite number of at least 0", 0),
            ("dp_delta(1, {})", "epsilon must be a finite number of at least 0", 0),
            ("dp_zcdp_epsilon({}, 1e-6)", "rate must be a finite number of at least 0", 0),
            ("dp_zcdp_epsilon(1, {})", "delta must be a number in (0, 1)", 1)]


@pytest.mark.parametrize("call,message,above", PLANNING)
def test_planning(units, call, message, above):
    for literal, shown in BAD:
        if above or shown not in ("0", "0.0"):
            check(units, "SELECT " + call.format(literal), message + said_of(shown))


def test_planning_needs_no_ledger():
    check(connect(), "SELECT dp_rate(-1, 1e-6)", "epsilon must be a finite number of at least 0")


# ---- the table -----------------------------------------------------------------------------------------------------

SUM = "SELECT dp_sum('clinic', x, 1, {}) FROM t"
OU = "SELECT dp_ou_sum('clinic', x, 1, NULL, {}) FROM t"

OPTIONS = [
    (SUM, '{', "malformed JSON object (check its quotes, commas and brackets)"),
    (SUM, '{"a":1,}', "malformed JSON object (check its quotes, commas and brackets)"),
    (SUM, '{"a":1}x', "malformed JSON object (check its quotes, commas and brackets)"),
    (SUM, "{'a':1}", "malformed JSON object (names and texts are in double quotes: '{\"clip\":5}'; in Python, json.dumps() writes it)"),
    (SUM, " { 'a': 1}", "malformed JSON object (names and texts are in double quotes: '{\"clip\":5}'; in Python, json.dumps() writes it)"),
    (SUM, '{"weight":NaN}', "malformed JSON object (check its quotes, commas and brackets)"),
    (SUM, '{"weight":Infinity}', "malformed JSON object (check its quotes, commas and brackets)"),
    (SUM, '{"name":"x","name":"y"}', "an option is given twice"),
    (SUM, '{"weight":0.5,"name":"x","weight":0.5}', "an option is given twice"),
    (SUM, '{"nome":"x"}', "unknown option 'nome' (did you mean 'name'? " + SUM_OPTIONS),
    (SUM, '{"Name":"x"}', "unknown option (did you mean 'name'? " + SUM_OPTIONS),
    (SUM, '{"":1}', "unknown option (" + SUM_OPTIONS),
    (SUM, '{"%s%n":1}', "unknown option (" + SUM_OPTIONS),
    (SUM, '{"clip":1}', "unknown option 'clip' (" + SUM_OPTIONS),
    (SUM, '{"radius":1}', "unknown option 'radius' (" + SUM_OPTIONS),
    (SUM, '{"theta":1,"rho":1}', "unknown option 'theta' (" + SUM_OPTIONS),
    (OU, '{"radius":1}', "unknown option 'radius' (" + OU_OPTIONS),
    (OU, '{"nope":1}', "unknown option 'nope' (" + OU_OPTIONS),
    (SUM, '{"weight":9e999}', "an option is not a finite number"),
    (SUM, '{"weight":-9e999}', "an option is not a finite number"),
    (OU, '{"theta":1,"rho":9e999}', "an option is not a finite number"),
    (OU, '{"centre":9e999}', "an option is not a finite number"),
    (SUM, '{"weight":0}', "weight must be a number in (0, 1]"),
    (SUM, '{"weight":-1}', "weight must be a number in (0, 1]"),
    (SUM, '{"weight":1.5}', "weight must be a number in (0, 1]"),
    (SUM, '{"weight":null}', "weight must be a number in (0, 1], not NULL"),
    (SUM, '{"weight":true}', "weight must be a number, not a Boolean"),
    (SUM, '{"weight":[1]}', "weight must be a number in (0, 1], not a text"),
    (SUM, '{"weight":1e-300}', "weight makes a rate outside the [1e-12, 1e+06] of mechanism 'gaussian'"),
    (SUM, '{"weight":5e-324}', "weight is nearer to 0 than 2.3e-308, which some processors take for 0 (take another number)"),
    (SUM, '{"name":"release-7"}', "name must not be like 'release-1', which is kept for unnamed releases"),
    (SUM, 'release-7', "name must not be like 'release-1', which is kept for unnamed releases"),
    (SUM, '{"name":["x"]}', "name must be a text, not an array"),
    (SUM, '{"name":{}}', "name must be a text, not an object"),
    (SUM, '', "name or options must be a name or a JSON object, not an empty text"),
    (OU, '{"theta":1}', "theta and rho belong together (rho is missing)"),
    (OU, '{"rho":1}', "theta and rho belong together (theta is missing)"),
    (OU, '{"theta":-1,"rho":1}', "theta must be a finite number of at least 0"),
    (OU, '{"theta":1,"rho":-1}', "rho must be a finite number above 0"),
    (OU, '{"centre":true}', "centre must be a number, not a Boolean"),
    (OU, '{"centre":1}', NO_RADIUS),
]


@pytest.mark.parametrize("sql,options,message", OPTIONS, ids=[f"{row[1]}" or "empty" for row in OPTIONS])
def test_options(units, sql, options, message):
    check(units, sql.format("?"), message, options)


CALLS = [
    # tiers
    ("dp_sum('nope', x, 1) FROM t", f"unknown tier 'nope' {KNOWN_TIERS}"),
    ("dp_sum('', x, 1) FROM t", f"unknown tier {KNOWN_TIERS}"),
    ("dp_sum('Clinic', x, 1) FROM t", f"unknown tier 'Clinic' (did you mean 'clinic'? {KNOWN_TIERS[1:]}"),
    ("dp_sum('%s%n%d', x, 1) FROM t", f"unknown tier '%s%n%d' {KNOWN_TIERS}"),
    ("dp_count('nope', x, 1) FROM t", f"unknown tier 'nope' {KNOWN_TIERS}"),
    ("dp_sum(NULL, x, 1) FROM t", "tier must be the name of a tier, not NULL"),
    ("dp_sum(5, x, 1) FROM t", "tier must be the name of a tier, not a number"),
    ("dp_release('nope', 'count', 'SELECT x FROM t', '{\"clip\":1}')", f"unknown tier 'nope' {KNOWN_TIERS}"),
    ("dp_diffuse('r', 'nope')", f"unknown tier 'nope' {KNOWN_TIERS}"),
    ("dp_exposure('nope')", f"unknown tier {KNOWN_TIERS}"),
    ("dp_exposure('clinic, nope')", f"unknown tier {KNOWN_TIERS}"),
    ("dp_exposure(',')", f"unknown tier {KNOWN_TIERS}"),
    ("dp_exposure(NULL)", "tiers" + NOT_EMPTY + ", not NULL"),
    # name or options
    ("dp_sum('clinic', x, 1, 5) FROM t", "name or options must be a name or a JSON object, not a number"),
    ("dp_sum('clinic', x, 1, 2.5) FROM t", "name or options must be a name or a JSON object, not a number"),
    # bounds
    ("dp_group_count('clinic', x, 1e10) FROM t", "clip must be a number of rows in [0.01, 1e+09]"),
    ("dp_group_count('clinic', x, 1e-3) FROM t", "clip must be a number of rows in [0.01, 1e+09]"),
    ("dp_avg('clinic', x, 0, 1e-200) FROM t", "lo must be below hi, by at least 1e-150"),
    ("dp_avg('clinic', x, 0, 5e-324) FROM t", "hi is nearer to 0 than 2.3e-308, which some processors take for 0 (take another number)"),
    # units
    *[(call + " FROM t", f"argument {place} is neither a name nor options (write {call[:call.index('(')]}(tier, x, {takes}, name): the policy names "
                         "the unit)")
      for call, place, takes in [("dp_sum('clinic', x, 1, unit)", 4, "clip"), ("dp_count('clinic', x, 1, unit, 'a')", 4, "clip"),
                                 ("dp_ou_sum('clinic', x, 1, 1, NULL, 'a')", 5, "clip, radius"), ("dp_ou_count('clinic', x, 1, 1, unit)", 5, "radius, clip")]],
    # names
    *[(call + " FROM t", "release 'r' exists with other parameters: sum {\"clip\":2.0} (choose another name)")
      for call in ["dp_sum('region', x, 3.0, 'r')", "dp_count('region', x, 2.0, 'r')",
                   "dp_ou_sum('region', x, 2.0, 5, 'r')", "dp_sum('public', x, 2.000000000000001, 'r')",
                   "dp_sum('region', x, 2.0, '{\"name\":\"r\",\"weight\":0.5}')",
                   "dp_sum('clinic', x, 1.0, '{\"name\":\"r\",\"refine\":true}')"]],
    *[(call, "release 'r' is not at tier 'clinic' or inside it (ask for it again, with the same rows and the option"
       " \"refine\":true, to pay the difference)")
      for call in ["dp_sum('clinic', x, 2.0, 'r') FROM t", "dp_diffuse('r', 'clinic')"]],
    # releases that exist
    ("dp_diffuse('nope', 'public')", "unknown release 'nope' (dp_release lists them)"),
    ("dp_diffuse('%s%n', 'public')", "unknown release '%s%n' (dp_release lists them)"),
    ("dp_diffuse(NULL, 'public')", "name" + NOT_EMPTY + ", not NULL"),
    ("dp_diffuse(1, 'public')", "name" + NOT_EMPTY + ", not a number"),
    ("dp_diffuse('r', NULL)", "tier" + NOT_EMPTY + ", not NULL"),
    ("dp_discard('nope')", "unknown release 'nope' (dp_release lists them)"),
    ("dp_discard(NULL)", "name" + NOT_EMPTY + ", not NULL"),
    ("dp_discard(3)", "name" + NOT_EMPTY + ", not a number"),
    # dp_tier
    ("dp_tier(NULL, 2, 1, 1e-6)", "name" + NOT_EMPTY + ", not NULL"),
    ("dp_tier(5, 2, 1, 1e-6)", "name" + NOT_EMPTY + ", not a number"),
    ("dp_tier('a,b', 2, 1, 1e-6)", "name must not contain a comma (dp_exposure lists tiers)"),
    ("dp_tier('n', 2, 1, 1e-6, 'zcdp')", "accountant must be 'rdp', 'gdp' or 'pure'"),
    ("dp_tier('n', 2, 1, 1e-6, 'RDP')", "accountant must be 'rdp', 'gdp' or 'pure'"),
    ("dp_tier('n', 2, 1, 1e-6, '')", "accountant must be 'rdp', 'gdp' or 'pure'"),
    ("dp_tier('n', 2, 1, 1e-6, 5)", "accountant must be 'rdp', 'gdp' or 'pure', not a number"),
    ("dp_tier('n', 2, 1, 1e-6, 'rdp', 1e-6)", "delta_keys must be less than delta"),
    ("dp_tier('n', 2, 1, 1e-6, 'rdp', 0.5)", "delta_keys must be less than delta"),
    ("dp_tier('n', 1.0, 1, 1e-6)", "tier 'clinic' has the same rate 1 (rates order the tiers: choose another)"),
    ("dp_tier('clinic', 2.0, 80, 1e-6)", "tier 'clinic' exists with other parameters (tiers are immutable: choose another name)"),
    ("dp_tier('clinic', 1.0, 80, 1e-6, 'gdp')",
     "tier 'clinic' exists with other parameters (tiers are immutable: choose another name)"),
    # dp_init
    ("dp_init('nope')", "malformed JSON object (check its quotes, commas and brackets)"),
    ("dp_init('[]')", "malformed JSON object"),
    ("dp_init(5)", "options" + NOT_EMPTY + ", not a number"),
    ("dp_init('{\"nope\":1}')", "unknown option 'nope' (known options: path, unit, protects, adjacency)"),
    ("dp_init('{\"unit\":\"a\",\"unit\":\"a\"}')", "an option is given twice"),
    ("dp_init('{\"protects\":\"people\"}')", "protects must be 'unit' or 'row'"),
    ("dp_init('{\"protects\":1}')", "protects must be 'unit' or 'row', not a number"),
    ("dp_init('{\"adjacency\":\"swap\"}')", "adjacency must be 'add-remove' or 'replace'"),
    ("dp_init('{\"protects\":\"row\"}')",
     "the privacy ledger ':memory:' exists and protects a unit under add-remove adjacency, which cannot be changed"),
    ("dp_init('{\"adjacency\":\"replace\"}')",
     "the privacy ledger ':memory:' exists and protects a unit under add-remove adjacency, which cannot be changed"),
    ("dp_init('{\"path\":\"rel\"}')", "the privacy ledger of this database is ':memory:' (leave the path out)"),
    # others
    ("dp_collect(1, 1)", "for dp_release() only"),
]


@pytest.mark.parametrize("call,message", CALLS, ids=[row[0] for row in CALLS])
def test_calls(units, call, message):
    check(units, "SELECT " + call, message)


@pytest.mark.parametrize("call,place,takes", [("dp_sum('clinic', x, 1, unit)", 4, "clip"), ("dp_count('clinic', x, 1, unit)", 4, "clip"),
                                              ("dp_ou_sum('clinic', x, 1, 1, unit)", 5, "clip, radius"), ("dp_sum('clinic', x, 1, NULL, 'r')", 4, "clip")])
def test_units_where_rows_are_protected(rows, call, place, takes):
    check(rows, f"SELECT {call} FROM t", f"argument {place} is neither a name nor options (write {call[:call.index('(')]}(tier, x, {takes}, name): "
                                         "the policy names the unit)")


COLUMNS = "sql must give 1 column (x), not "
ONLY_READS = "sql must be one SELECT that only reads"
RELEASES = [
    ("nope", SQL, '{"clip":1}', f"unknown kind (known kinds: {KINDS})"),
    ("SUM", SQL, '{"clip":1}', f"unknown kind (did you mean 'sum'? known kinds: {KINDS})"),
    ("", SQL, '{"clip":1}', f"unknown kind (known kinds: {KINDS})"),
    (None, SQL, '{"clip":1}', f"unknown kind (known kinds: {KINDS})"),
    ("sum", SQL, None, "clip is missing (the bound on what one unit contributes; to find one: " + BOUNDS),
    ("sum", SQL, "name", "clip is missing (the bound on what one unit contributes; to find one: " + BOUNDS),
    ("sum", SQL, '{"clip":0}', CLIP),
    ("sum", SQL, '{"clip":null}', CLIP + ", not NULL"),
    ("sum", SQL, '{"clip":1e-310}', CLIP),
    ("sum", SQL, '{"clip":true}', "clip must be a number, not a Boolean"),
    ("sum", SQL, '{"clip":9e999}', "an option is not a finite number"),
    ("sum", SQL, '{"nope":1}', "unknown option 'nope' (known options: name, weight, refine, mechanism, clip, diagnose, periods, steps, bytes, seconds, until, least)"),
    ("sum", SQL, '{"clip":1,"radius":1}', "unknown option 'radius' (known options: name, weight, refine, mechanism, clip, diagnose, periods, steps, bytes, seconds, until, least)"),
    ("ou_sum", SQL, '{"nope":1}',
     "unknown option 'nope' (known options: name, weight, refine, mechanism, clip, diagnose, radius, centre, theta, steps, bytes, seconds, until, least, rho, t)"),
    ("ou_sum", SQL, '{"clip":1}', NO_RADIUS),
    ("ou_count", SQL, '{"clip":1}', NO_RADIUS),
    ("ou_sum", SQL, '{"clip":1,"radius":0}', RADIUS),
    ("ou_sum", SQL, '{"clip":1,"theta":1}', "theta and rho belong together (rho is missing)"),
    ("sum", "SELECT x, unit FROM t", '{"clip":1}', COLUMNS + "2; the policy names the unit"),
    ("sum", "SELECT x, unit, 1 FROM t", '{"clip":1}', COLUMNS + "3; the policy names the unit"),
    ("sum", "DELETE FROM t", '{"clip":1}', ONLY_READS),
    ("sum", "BEGIN", '{"clip":1}', ONLY_READS),
    ("sum", "PRAGMA user_version", '{"clip":1}', ONLY_READS),
    ("sum", "EXPLAIN " + SQL, '{"clip":1}', ONLY_READS),
    ("sum", "EXPLAIN QUERY PLAN " + SQL, '{"clip":1}', ONLY_READS),
    ("sum", "WITH a AS (SELECT 1) DELETE FROM t RETURNING x, unit", '{"clip":1}', "cannot compile sql: table t may not be modified"),
    ("sum", "", '{"clip":1}', ONLY_READS),
    ("sum", "-- nothing", '{"clip":1}', ONLY_READS),
    ("sum", SQL + "; SELECT 1", '{"clip":1}', "sql must be one statement, but more follows"),
    ("sum", SQL + "; nonsense", '{"clip":1}', "sql must be one statement, but more follows"),
    ("sum", "SELECT nope FROM t", '{"clip":1}', "cannot compile sql: no such column: nope (a text stands in single quotes, and these are doubled inside another text)"),
    ("sum", "SELECT x FROM nope", '{"clip":1}', "table 'nope' is neither protected nor public, so a question cannot read it (declare it with dp_protect() or dp_public())"),
    ("sum", SQL + ")--", '{"clip":1}', 'cannot compile sql: near ")": syntax error'),
    ("group_count", "SELECT x, unit FROM t", '{"clip":1,"keys":[1]}',
     "sql must give 1 column (key), not 2; the policy names the unit, and a key of several columns is json_array(a, b)"),
    ("sum", "SELECT ? FROM t", '{"clip":1}', "sql cannot have parameters (write values into its text, as with printf('... = %Q', value))"),
]


@pytest.mark.parametrize("kind,sql,options,message", RELEASES, ids=[f"{r[0]} {r[1]} {r[2]}" for r in RELEASES])
def test_dp_release(units, kind, sql, options, message):
    check(units, "SELECT dp_release('clinic', ?, ?, ?)", message, kind, sql, options)


def test_columns_where_rows_are_protected(rows):
    check(rows, "SELECT dp_release('clinic', 'sum', 'SELECT x, 1 FROM t', '{\"clip\":1}')",
          "sql must give 1 column (x), not 2; the policy names the unit")
    check(rows, "SELECT dp_release('clinic', 'sum', 'SELECT x FROM t')",
          "clip is missing (the bound on what one row contributes)")


@pytest.mark.parametrize("call", ["dp_sum('a', x, 1) FROM t", "dp_count('a', x) FROM t", "dp_tier('a', 1, 1, 1e-6)",
                                  "dp_verify()", "dp_diffuse('a', 'b')", "dp_discard('a')", "dp_exposure('a')",
                                  "dp_release('a', 'sum', 'SELECT 1 FROM t')"])
def test_without_a_ledger(call):
    db = connect()
    db.execute("CREATE TABLE t(x, unit)")
    db.execute("INSERT INTO t VALUES (1, 1)")
    check(db, "SELECT " + call, "no privacy ledger for ':memory:' (run SELECT dp_init())")


@pytest.mark.parametrize("call", ["dp_sum('a', x, 1) FROM t", "dp_diffuse('x', 'a')", "dp_exposure('a')",
                                  "dp_release('a', 'count', 'SELECT 1 FROM t', '{\"clip\":1}')"])
def test_without_a_tier(call):
    db = connect()
    one(db, INIT)
    fill(db, [(1, 1)])
    check(db, "SELECT " + call, "unknown tier (there are none: create one with dp_tier())")


# ---- budgets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["rdp", "gdp"])
def test_an_exhausted_budget_says_what_is_left(accountant):
    """The error names the tier, the rate needed and the rate left. Nothing is charged, and a smaller release still
    fits."""
    db = connect()
    one(db, INIT)
    one(db, "SELECT dp_tier('inner', 1.0, 20.0, 1e-6, ?)", accountant)
    one(db, "SELECT dp_tier('outer', 0.5, 8.0, 1e-6, ?)", accountant)
    fill(db, [(1, 1)])
    before = column(db, "SELECT releases_left FROM dp_budget WHERE tier = 'outer'")[0]
    assert before < 3
    for _ in range(before):
        one(db, "SELECT dp_count('outer', x, 1) FROM t")
    books = charges(db)
    for sql in ("SELECT dp_count('outer', x, 1, 'n') FROM t",
                "SELECT dp_release('outer', 'count', 'SELECT x FROM t', '{\"clip\":1}')"):
        message = error_of(db, sql)
        found = re.fullmatch(r"dp_\w+: tier 'outer' would exceed its budget of epsilon 8 at delta 1e-06: this needs rate 0.5, "
                             r"and (\S+) of (\S+) is left \(nothing was charged or read; without a period, nothing comes back\)", message)
        assert found, message
        assert float(found[1]) < 0.5 and abs(float(found[1]) + 0.5 * before - float(found[2])) < 1e-5
    assert charges(db) == books and one(db, "SELECT count(*) FROM dp_release WHERE name = 'n'") == 0
    weight = 0.9 * float(found[1]) / 0.5
    one(db, "SELECT dp_count('outer', x, 1, ?) FROM t", f'{{"weight":{weight}}}')


def test_a_budget_too_small_for_what_is_published():
    """A new tier pays at once for the releases that it sees, or is not created."""
    db = make()
    one(db, "SELECT dp_sum('region', x, 1) FROM t")
    before = charges(db)
    message = error_of(db, "SELECT dp_tier('n', 0.5, 6, 1e-6)")
    assert re.fullmatch(r"dp_tier: tier 'n' would block tier 'region' outside it: it pays for all that 'region' publishes, "
                        r"and its budget, epsilon 6 at delta 1e-06, is smaller than that of 'region', epsilon \S+ at delta "
                        r"1e-06 \(an epsilon of at least \S+ does\)", message)
    assert charges(db) == before and "n" not in column(db, "SELECT name FROM dp_tier")


# ---- no row is read ------------------------------------------------------------------------------------------------


@pytest.fixture
def hundred():
    db = make()
    fill(db, [(i, i) for i in range(100)])
    return db


@pytest.mark.parametrize("tier,kind,options", [
    ("nope", "sum", '{"clip":1}'), ("clinic", "nope", '{"clip":1}'), ("clinic", "sum", None), ("clinic", "sum", '{"clip":-1}'),
    ("clinic", "sum", '{"clip":1,"nope":1}'), ("clinic", "sum", '{'), ("clinic", "ou_sum", '{"clip":1}'),
    ("clinic", "sum", '{"clip":1,"weight":1e-300}'), ("clinic", "sum", '{"clip":1,"name":"release-1"}')])
def test_dp_release_reads_nothing(hundred, tier, kind, options):
    with reading(hundred) as reads:
        error_of(hundred, "SELECT dp_release(?, ?, 'SELECT x FROM t', ?)", tier, kind, options)
    assert len(reads) <= 1 and charges(hundred) == []  # the question reads one row of its table, to know that it is not locked


def test_an_exhausted_budget_reads_nothing(hundred):
    db = hundred
    one(db, "SELECT dp_tier('poor', 0.05, dp_zcdp_epsilon(0.06, 1e-6), 1e-6)")
    one(db, "SELECT dp_sum('poor', x, 1) FROM t")
    before = charges(db)
    with reading(db) as reads:
        message = error_of(db, "SELECT dp_release('poor', 'sum', 'SELECT x FROM t', '{\"clip\":1}')")
    assert "nothing was charged or read" in message and len(reads) <= 1 and charges(db) == before


# ---- found wanting -------------------------------------------------------------------------------------------------


NUMBERS = ["dp_sum('clinic', x, {}) FROM t", "dp_count('clinic', x, {}) FROM t",
           "dp_ou_sum('clinic', x, 1, {}) FROM t", "dp_tier('n', {}, 1, 1e-6)", "dp_tier('n', 0.01, {}, 1e-6)",
           "dp_tier('n', 0.01, 1, {})", "dp_tier('n', 0.01, 1, 1e-6, 'rdp', {})",
           *[call for call, _, _ in PLANNING]]
IN_OPTIONS = ["dp_sum('clinic', x, 1, '{\"weight\":\"10 l\"}') FROM t",
              "dp_ou_sum('clinic', x, 1, 1, '{\"centre\":\"10 l\"}') FROM t",
              "dp_release('clinic', 'sum', 'SELECT 1 FROM t', '{\"clip\":\"10 l\"}')"]


@pytest.mark.parametrize("call", NUMBERS)
@pytest.mark.parametrize("literal", ["'10 l'", "'abc'", "'nan'", "''", "'1e'", "x'31'", "x''"])
def test_a_text_is_not_a_number(units, call, literal):
    message = error_of(units, "SELECT " + call.format(literal))
    assert re.match(r"dp_\w+: \w+ must be a( finite)? number ", message), message


@pytest.mark.parametrize("call", [call.format("'10 l'") for call in NUMBERS] + IN_OPTIONS)
def test_a_text_is_told_from_a_number(units, call):
    """The error says that the value is a text. The domain alone would not help an owner whose number is a text."""
    assert error_of(units, "SELECT " + call).endswith(", not a text")


@pytest.mark.parametrize("call", [call for call, _, _ in PLANNING])
@pytest.mark.parametrize("number", ["0.5", " 0.5", "5e-1 ", "+.5"])
def test_a_text_that_is_a_number_is_one(units, call, number):
    """Perl's DBI and PHP's PDO bind numbers as texts."""
    assert one(units, "SELECT " + call.format("?"), number) == one(units, "SELECT " + call.format("?"), 0.5)


def test_texts_that_are_numbers_in_releases():
    """The parameters of a release, of a tier and of a grant, also in options. Their texts mean what the numbers mean."""
    units = make()
    one(units, "SELECT dp_protect('t', 'unit')")
    for text, number in (("SELECT dp_plan('clinic', 'sum', '5', '{\"weight\":\"0.5\"}')", "SELECT dp_plan('clinic', 'sum', 5, '{\"weight\":0.5}')"),
                         ("SELECT dp_plan('clinic', 'quantile', '0.5', '{\"lo\":\"0\",\"hi\":\"9\"}')",
                          "SELECT dp_plan('clinic', 'quantile', 0.5, '{\"lo\":0,\"hi\":9}')")):
        first, second = (error_of(units, sql) if "quantile" in sql else one(units, sql) for sql in (text, number))
        assert first == second
    assert one(units, "SELECT dp_tier('texts', '0.001', '1.5', '1e-6', '{\"delta_keys\":\"1e-7\"}')") == "texts"
    assert units.execute("SELECT rate, epsilon, delta, delta_keys FROM dp_tier WHERE name = 'texts'").fetchall() == [(0.001, 1.5, 1e-6, 1e-7)]
    one(units, "SELECT dp_release('clinic', 'sum', 'SELECT x FROM t', '{\"clip\":\"2\",\"name\":\"two\"}')")
    assert one(units, "SELECT clip FROM dp_release WHERE name = 'two'") == 2
    assert one(units, "SELECT dp_interval('two', 'clinic', '0', '0.9')") == one(units, "SELECT dp_interval('two', 'clinic', 0, 0.9)")


BLOB = {"clinic": "x'636c696e6963'", "sum": "x'73756d'", "r": "x'72'", "blobby": "x'626c6f626279'", "name": "x'6e616d65'",
        "options": "x'7b7d'", "sql": "x'53454c45435420782046524f4d2074'", "clip": "x'7b22636c6970223a317d'"}


@pytest.mark.parametrize("call", [
    "dp_sum({clinic}, x, 1) FROM t", "dp_sum('clinic', x, 1, {name}) FROM t",
    "dp_sum('clinic', x, 1, {options}) FROM t", "dp_release({clinic}, 'sum', 'SELECT 1 FROM t', '{{\"clip\":1}}')",
    "dp_release('clinic', 'sum', {sql}, '{{\"clip\":1}}')", "dp_release('clinic', 'sum', 'SELECT 1 FROM t', {clip})",
    "dp_tier({blobby}, 3, 1, 1e-6)", "dp_diffuse({r}, 'public')", "dp_diffuse('r', x'7075626c6963')",
    "dp_discard({r})", "dp_exposure({clinic})", "dp_init({options})"])
def test_a_blob_is_not_a_text(call):
    """A name that is a blob (Python's bytes) is refused before anything is charged. (Earlier, aggregates over two rows charged
    first and then reported that 'a parameter changed', because sqlite3_value_type() after sqlite3_value_text() is undefined.)"""
    db = make()
    one(db, "SELECT dp_sum('region', x, 2.0, 'r') FROM t")
    before = charges(db)
    with pytest.raises(sqlite3.OperationalError) as error:
        db.execute("SELECT " + call.format(**BLOB)).fetchall()
    assert charges(db) == before
    assert "changed" not in str(error.value)


@pytest.mark.parametrize("sql,text", [
    (SUM.format("?"), "na\0me"), (SUM.format("?"), '{"name":"na\\u0000me"}'), (SUM.format("?"), '{"weight":0.5}\0{'),
    ("SELECT dp_sum(?, x, 1) FROM t", "clinic\0x"), ("SELECT dp_tier(?, 3, 1000, 1e-6)", "n\0x"),
    ("SELECT dp_diffuse(?, 'public')", "r\0x"), ("SELECT dp_diffuse('r', ?)", "public\0x"), ("SELECT dp_discard(?)", "r\0x"),
    ("SELECT dp_release('clinic', 'sum', ?, '{\"clip\":1}')", SQL + "\0 WHERE x < 3")])
def test_a_text_with_a_zero_byte_is_refused(sql, text):
    """If the text 'r\\0x' were cut at its zero byte, it would name another release, 'r'."""
    db = make()
    one(db, "SELECT dp_sum('region', x, 2.0, 'r') FROM t")
    before = charges(db)
    with pytest.raises(sqlite3.OperationalError):
        db.execute(sql, (text,)).fetchall()
    assert charges(db) == before


@pytest.mark.parametrize("arguments", ["1e-310", "1e-170", "NULL, '{\"theta\":1e300,\"rho\":1e-300}'"])
def test_a_shrink_to_nothing_is_refused(arguments):
    """The shrink must be in (0, 1] (mechanism.h). If it underflowed to 0, a release would be charged and would show only its
    centre."""
    db = make()
    with pytest.raises(sqlite3.OperationalError):
        db.execute(f"SELECT dp_ou_sum('clinic', x, 1, {arguments}) FROM t").fetchall()
    assert charges(db) == []


@pytest.mark.parametrize("options", [' {"weight":0.5}', '\n{"weight":0.5}\n', '\t{"name":"q"}'])
def test_white_space_before_options(options):
    """A text that starts with white space and a brace is read as options or refused. It is never taken as the name of a release
    at the full rate."""
    db = make()
    try:
        db.execute(SUM.format("?"), (options,)).fetchall()
    except sqlite3.OperationalError:
        pass
    assert not {name for name in column(db, "SELECT name FROM dp_release") if "{" in name}


@pytest.mark.parametrize("name", ["release-", "release-1a", "release", "Release-1"])
def test_names_that_only_look_like_those_of_unnamed_releases(name):
    db = make()
    value = one(db, "SELECT dp_sum('clinic', x, 1, ?) FROM t", name)
    assert one(db, "SELECT dp_sum('clinic', x, 1, ?) FROM t", name) == value
    assert column(db, "SELECT name FROM dp_release") == [name]


@pytest.mark.parametrize("sql", ["SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{\"name\":\"x\",\"clip\":9}')",
                                 "SELECT dp_sum('clinic', minutes, 9, 'x') FROM visits",
                                 "SELECT dp_group_count('clinic', minutes, 9, '{\"name\":\"x\",\"keys\":[1]}') FROM visits"])
def test_an_error_after_the_charge_says_that_the_charge_stays(path, sql):
    """From the charge on, this process may write no further block of a file: the ledger cannot store the answer. SQLite says "disk I/O
    error", and no more."""
    create(path).close()
    said = run("""
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        db = connect(sys.argv[1])
        ledger = ledger_of(sys.argv[1])

        def limit():
            if not resource.getrlimit(resource.RLIMIT_FSIZE)[0] == 512 and one(ledger, "SELECT count(*) FROM dp_charge"):
                resource.setrlimit(resource.RLIMIT_FSIZE, (512, resource.RLIM_INFINITY))

        db.set_progress_handler(limit, 1)
        print(refused(db, sys.argv[2]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(one(ledger, "SELECT count(*) FROM dp_charge"))
    """, path, sql)
    message, charges = said.strip().rsplit("\n", 1)
    assert charges == "1" and message.endswith("(the charge stays)") and message.count("charge stays") == 1, message
