"""Helpers of the attacks: the calls to attack, a table of people, and the integers of a release.

Every file in this folder contains one attack. The tests of a file show that the attack succeeds against a naive system, which
has a few lines in the same file, and that the attack fails against diffuse, through SQL. To add an aggregate to all attacks,
add a row to CALLS.

A test that can fail by chance states this probability with @alarm(probability), for all of its parameters together.
test_alarms.py adds up these probabilities. The tests compare a distance with its bound plus twelve standard deviations
of the noise. The noise exceeds twelve standard deviations with probability 4e-33, which @alarm does not count.
"""

import json
import math
from typing import NamedTuple

import numpy
import pytest

from conftest import connect, ledger_of, make_ledger, one

PERIOD = None  # the period of the tiers that system() and room_for() make; the fixture `period` of conftest.py sets this variable
UNLIMITED = (1e15, 1e-6)  # epsilon and delta for attacks that do not concern the budget
EXACT = {"exact": 1e6}  # the noise is 1/1414 of the largest change by one unit, so an answer is almost exact
TWELVE = 12.0
KEYS = ["north", "south", "east"]
DIM = 3

alarm = pytest.mark.alarm


class Call(NamedTuple):
    """One of the calls to attack: an aggregate, the columns that it needs in a query of dp_release(), and its public parameters
    as SQL literals."""

    kind: str
    arguments: str  # the arguments of the aggregate after the tier
    columns: str  # the columns of the query
    parameters: dict
    keys: bool = False  # the aggregate takes public keys
    linear: bool = True  # published values are centre + shrink (lattice point - centre)
    clip: bool = False  # the kind needs an option clip
    always: dict = {}  # options that each call has

    def aggregate(self, tier, name=None, source="people", **changes):
        """Returns the SQL of the aggregate in the owner's SELECT. `changes` has new values for parameters, and options that are
        not in `parameters`.
        """
        parameters = {**self.parameters, **{k: v for k, v in changes.items() if k in self.parameters}}
        options = self.options(name, {k: v for k, v in changes.items() if k not in self.parameters})
        arguments = [text(tier), self.arguments.format(**parameters), text(options) if options != "{}" else ""]
        return f"SELECT dp_{self.kind}({', '.join(filter(None, arguments))}) FROM {source}"

    def release(self, tier, name=None, source="people", **changes):
        """Returns the SQL that makes the same release by dp_release()."""
        options = self.options(name, {**self.parameters, **changes})
        sql = f"SELECT {self.columns or 1} FROM {source}"
        return f"SELECT dp_release({text(tier)}, '{self.kind}', {text(sql)}, {text(options)})"

    def options(self, name, changes):
        keys = {"keys": json.dumps(KEYS)} if self.keys else {}
        named = {"name": json.dumps(name)} if name is not None else {}
        clip = {"clip": "1"} if self.clip else {}
        return "{" + ",".join(f'"{key}":{value}' for key, value in {**named, **keys, **clip, **self.always, **changes}.items()) + "}"


def text(value):
    """Writes a value as an SQL text literal."""
    return "'" + value.replace("'", "''") + "'"


FORMS = [Call.aggregate, Call.release]

CALLS = [
    Call("count", "x, {clip}", "x", {"clip": "1"}),
    Call("sum", "x, {clip}", "x", {"clip": "1.5"}),
    Call("ou_count", "x, {radius}, {clip}", "x", {"radius": "100", "clip": "1"}),
    Call("ou_sum", "x, {clip}, {radius}", "x", {"clip": "1.5", "radius": "100"}),
]

RANGE = {"lo": "-2", "hi": "2"}
VECTOR = {"dim": str(DIM), "clip": "1.5"}

CALLS += [
    Call("count_distinct", "", "", {}),
    Call("avg", "x, {lo}, {hi}", "x", RANGE, linear=False),
    Call("var", "x, {lo}, {hi}", "x", RANGE, linear=False),
    Call("stddev", "x, {lo}, {hi}", "x", RANGE, linear=False),
    # With the exponential mechanism a charge is a curve, not a rate.
    Call("quantile", "x, {q}, {lo}, {hi}", "x", {"q": "0.25", **RANGE}, linear=False, always={"mechanism": '"gaussian"'}),
    Call("median", "x, {lo}, {hi}", "x", RANGE, linear=False, always={"mechanism": '"gaussian"'}),
    Call("histogram", "x, {lo}, {hi}, {bins}", "x", {**RANGE, "bins": "8"}, clip=True),
    Call("vec_sum", "v, {dim}, {clip}", "v", VECTOR),
    Call("vec_avg", "v, {dim}, {clip}", "v", VECTOR, linear=False),
    Call("group_count", "key, {clip}", "key", {"clip": "1"}, keys=True),
    Call("group_sum", "key, x, {clip}", "key, x", {"clip": "1.5"}, keys=True),
    Call("group_avg", "key, x, {lo}, {hi}", "key, x", RANGE, keys=True, linear=False),
    Call("group_var", "key, x, {lo}, {hi}", "key, x", RANGE, keys=True, linear=False),
    Call("group_stddev", "key, x, {lo}, {hi}", "key, x", RANGE, keys=True, linear=False),
    Call("group_count_distinct", "key", "key", {}, keys=True),
    Call("group_histogram", "key, x, {lo}, {hi}, {bins}", "key, x", {**RANGE, "bins": "8"}, keys=True, clip=True),
    Call("group_quantile", "key, x, {q}, {lo}, {hi}", "key, x", {"q": "0.25", **RANGE}, keys=True, linear=False),
    Call("group_median", "key, x, {lo}, {hi}", "key, x", RANGE, keys=True, linear=False),
    Call("ou_avg", "x, {lo}, {hi}, {radius}", "x", {**RANGE, "radius": "100"}, linear=False),
    Call("ou_vec_sum", "v, {dim}, {clip}, {radius}", "v", {**VECTOR, "radius": "100"}),
    Call("ou_group_sum", "key, x, {clip}, {radius}", "key, x", {"clip": "1.5", "radius": "100"}, keys=True),
    Call("ou_group_count", "key, {radius}, {clip}", "key", {"radius": "100", "clip": "1"}, keys=True),
]

EACH_CALL = pytest.mark.parametrize("call", CALLS, ids=[call.kind for call in CALLS])
EACH_FORM = pytest.mark.parametrize("form", FORMS, ids=["aggregate", "dp_release"])


def each_call_and_form(test):
    """Half of the pairs are for make test-slow."""
    return pytest.mark.sample(len(CALLS))(EACH_CALL(EACH_FORM(test)))

# ---- tables --------------------------------------------------------------------------------------------------------


def person(unit, x, key="north"):
    """Returns a row of people. The vector contains the same number as x."""
    return (unit, key, x, json.dumps([x, 0.25, -0.5]) if isinstance(x, (int, float)) and math.isfinite(x) else x)


PEOPLE = [person(i // 2, (-1, 0.5, 0.25, 1.25)[i % 4], KEYS[i % 3]) for i in range(120)]


def fill(db, rows, table="people"):
    """Replaces the table by these rows. A table other than people is new: the function creates and protects it."""
    db.execute("BEGIN")
    if table == "people":
        db.execute("CREATE TABLE IF NOT EXISTS people(unit, key, x, v)")
        db.execute("DELETE FROM people")
    else:
        db.execute(f"CREATE TABLE {table}(unit, key, x, v)")
    db.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
    db.execute("COMMIT")
    if table != "people":
        one(db, "SELECT dp_protect(?, 'unit')", table)


def tier_options():
    return json.dumps({"period": PERIOD} if PERIOD else {})


def system(path=":memory:", tiers=EXACT, options="{}", rows=PEOPLE, policy="people, unit"):
    """Makes a database of people with a ledger, its policy and tiers. `tiers` is {name: rate} for unlimited budgets, or {name: (rate,
    epsilon, delta)}."""
    db = connect(path)
    fill(db, rows)
    make_ledger(db, options, policy)
    for name, terms in tiers.items():
        rate, *budget = terms if isinstance(terms, tuple) else (terms,)
        one(db, "SELECT dp_tier(?, ?, ?, ?, ?)", name, rate, *(budget or UNLIMITED), tier_options())
    return db


def room_for(db, count, rate=0.1, name="audience"):
    """Creates a tier whose budget admits exactly `count` releases."""
    one(db, "SELECT dp_tier(?, ?, dp_zcdp_epsilon(? * ?, 1e-6), 1e-6, ?)", name, rate, count, rate, tier_options())


def charges(db):
    return one(db, "SELECT count(*) FROM dp_charge")


def verified(db):
    return one(db, "SELECT dp_verify()") == "ok"


# ---- the integers of releases --------------------------------------------------------------------------------------


class Lattice(NamedTuple):
    """The releases of one call. Each release is a row of integers, in lattice steps."""

    integers: numpy.ndarray
    sensitivity: int
    stddev: float


def path_for(call, tmp_path):
    """Returns the path for the database of `call`. lattice() reads the integers of some calls from publications, and of other
    calls from dp_path in the ledger file. Only the latter need a database file."""
    return ":memory:" if call.linear else tmp_path / "people.db"


def lattice(db, path, tier):
    """Returns the integers of all releases at this tier. The releases must have the same lattice."""
    designs = db.execute("SELECT DISTINCT granularity, sensitivity, clock, shrink, p.centre FROM dp_release r"
                         " JOIN dp_publication p ON p.release_id = r.id WHERE tier = ?", (tier,)).fetchall()
    assert len(designs) == 1, designs
    granularity, sensitivity, clock, shrink, centre = designs[0]
    if str(path) == ":memory:":
        rows = db.execute("SELECT release_id, (value - ?) / ? + ? FROM dp_value WHERE tier = ? ORDER BY release_id, key,"
                          " component", (centre, shrink, centre, tier)).fetchall()
        steps = numpy.ldexp(numpy.array([value for _, value in rows]), -granularity)
        integers = numpy.rint(steps)
        assert (abs(steps - integers) <= 2.0**-50 * abs(steps)).all(), "a published value is not on the lattice"
    else:
        ledger = ledger_of(path)
        rows = ledger.execute("SELECT release_id, value FROM dp_path WHERE tier = ? ORDER BY release_id, key, component",
                              (tier,)).fetchall()
        ledger.close()
        integers = numpy.array([value for _, value in rows], dtype=float)
    releases = len({release for release, _ in rows})
    return Lattice(integers.reshape(releases, -1), sensitivity, math.sqrt(clock))


def check_distance(found, a, b, bound, what=""):
    """Checks that the integers of releases a and b are at most `bound` sensitivities apart. The difference of the two
    noise vectors is longer than sqrt(2) stddev (sqrt(dimension) + 12) with probability 5e-32 at most."""
    difference = found.integers[a] - found.integers[b]
    noise = math.sqrt(2) * found.stddev * (math.sqrt(len(difference)) + TWELVE)
    assert numpy.linalg.norm(difference) <= bound * found.sensitivity + noise, what


def check_one_unit_more(call, form, folder, units):
    """Releases the people alone, and together with the rows of each unit of `units`. Its integers are at most one sensitivity away."""
    path = path_for(call, folder)
    db = system(path, EXACT)
    one(db, form(call, "exact", "base"))
    for name, rows in units.items():
        fill(db, PEOPLE + rows)
        one(db, form(call, "exact", name))
    found = lattice(db, path, "exact")
    for i, name in enumerate(units):
        check_distance(found, i + 1, 0, 1, name)
