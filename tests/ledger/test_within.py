"""Tests the declaration of the wider unit (dp_within), what the ledger then refuses, and the epsilon of a wider unit in budgets,
exposures, plans, certificates and exports. tests/mechanism/test_within_kinds.py and tests/sums/test_within_neighbours.py test the
sums."""

import json
import sqlite3

import mpmath
import pytest

from conftest import connect, edit, ledger_of, one, refused
from truth import true_zcdp_epsilon

pytestmark = pytest.mark.alarm(0)

SCHEMA = """
    CREATE TABLE patient(id INTEGER PRIMARY KEY, household TEXT, age INT, twice TEXT AS (household || household));
    CREATE TABLE card(code TEXT UNIQUE, patient INT UNIQUE, household TEXT);
    CREATE TABLE visit(patient INT, minutes REAL);
    CREATE TABLE ward(name TEXT);
    INSERT INTO patient(id, household, age) SELECT value, 'h' || (value / 3), value % 4 FROM json_each('[1,2,3,4,5,6,7,8,9]');
    INSERT INTO visit SELECT id, id FROM patient;
"""
WITHIN = "SELECT dp_within('household', 'patient', 'household', ?)"


def clinic(path=":memory:", factor=4, options='{"unit":"patient"}', tiers=(("public", 0.001, 1.0, 1e-6, "gdp"),)):
    db = connect(path)
    db.executescript(SCHEMA)
    one(db, "SELECT dp_init(?)", options)
    for table, column in (("patient", "id"), ("visit", "patient"), ("card", "patient")):
        one(db, "SELECT dp_protect(?, ?)", table, column)
    if factor:
        one(db, WITHIN, factor)
    for tier in tiers:
        one(db, "SELECT dp_tier(?, ?, ?, ?, ?)", *tier)
    return db


def gaussian_epsilon(rate, delta):
    """Returns the epsilon of Gaussian noise with this zCDP rate, by bisection on its profile (Balle and Wang 2018, Theorem 8)."""
    with mpmath.workdps(40):
        mu = mpmath.sqrt(2 * mpmath.mpf(rate))

        def profile(epsilon):
            return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu) - delta

        low, high = mpmath.mpf(0), mu * mu / 2 + mu * 50
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if profile(middle) > 0 else (low, middle)
        return float(high)


# ---- the declaration -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, reason", [
    ("'household', 'visit', 'minutes', 4", "'visit' may have several rows of one patient (name the table with one row for each, such as 'patient')"),
    ("'household', 'ward', 'name', 4", "table 'ward' is not protected (protect it first)"),
    ("'household', 'nowhere', 'name', 4", "main has no such table"),
    ("'household', 'patient', 'id', 4", "'id' is the column of the unit itself"),
    ("'household', 'patient', 'houshold', 4", "table 'patient' has no column 'houshold' (did you mean 'household'?)"),
    ("'household', 'patient', 'twice', 4", "generated when it is read (make it STORED)"),
    ("'patient', 'patient', 'household', 4", "'patient' is the unit of this ledger (name the wider one)"),
    ("'household', 'patient', 'household', 0.99", "factor must be a number in [1, 1000]"),
    ("'household', 'patient', 'household', 1000.5", "factor must be a number in [1, 1000]"),
    ("'household', 'patient', 'household', 9e999", "factor must be"),
    ("'household', 'patient', 'household', 'four'", "factor must be a number"),
    ("'household', 'patient', 'household', NULL", "factor must be a number"),
    ("'household', 'patient', 'household', 1.3", "factor must be a multiple of 1/64 (such as 1.5 or 5.625)"),
    ("NULL, 'patient', 'household', 4", "name must be a text that is not empty"),
    ("'household', '', 'household', 4", "table must be a text that is not empty"),
])
def test_errors(call, reason):
    db = clinic(factor=0)
    assert reason in refused(db, f"SELECT dp_within({call})")
    assert one(db, "SELECT count(wider) FROM dp_policy") == 0 and one(db, "SELECT wider_epsilon FROM dp_budget") is None


@pytest.mark.parametrize("options", ['{"protects":"row"}', '{"adjacency":"replace"}'])
def test_other_ledgers(options):
    db = connect()
    db.executescript(SCHEMA)
    one(db, "SELECT dp_init(?)", options)
    one(db, "SELECT dp_protect('patient')" if "row" in options else "SELECT dp_protect('patient', 'id')")
    assert "needs a ledger that adds and removes units" in refused(db, WITHIN, 4)


def test_one_wider_unit_before_the_first_charge(path):
    db = clinic(path)
    facts = "SELECT table_name, wider, wider_column, factor FROM dp_policy WHERE wider IS NOT NULL"
    declared = [("patient", "household", "household", 4.0)]
    assert db.execute(facts).fetchall() == declared
    assert one(db, "SELECT dp_within('household', 'PATIENT', 'Household', 4)") == "household"  # the same again
    for other in ("'household', 'patient', 'household', 5", "'home', 'patient', 'household', 4", "'household', 'patient', 'age', 4",
                  "'household', 'card', 'household', 4"):
        error = refused(db, f"SELECT dp_within({other})")
        assert "the ledger protects 'household' (column 'household' of 'patient', which counts as 4 units)" in error and "since 20" in error
    assert "declares the wider unit 'household' (first dp_undeclare('household'))" in refused(db, "SELECT dp_undeclare('patient')")
    assert db.execute(facts).fetchall() == declared
    assert one(db, "SELECT dp_undeclare('household')") == "household" and one(db, "SELECT wider_epsilon FROM dp_budget") is None
    one(db, WITHIN, 2)
    assert one(db, "SELECT dp_verify()") == "ok"
    one(db, "SELECT dp_release('public', 'count_distinct', 'SELECT 1 FROM visit', '{\"name\":\"n\"}')")
    assert "stays declared" in refused(db, "SELECT dp_undeclare('household')")
    assert one(db, WITHIN, 2) == "household"
    one(db, "SELECT dp_discard('n')")
    assert "stays declared" in refused(db, "SELECT dp_undeclare('household')")


def test_late(path):
    db = clinic(path, factor=0)
    one(db, "SELECT dp_release('public', 'count_distinct', 'SELECT 1 FROM visit', '{\"name\":\"n\"}')")
    for _ in range(2):
        error = refused(db, WITHIN, 4)
        assert "the first release was charged at 20" in error and "must be declared before" in error
        if one(db, "SELECT state FROM dp_release") == "released":
            one(db, "SELECT dp_discard('n')")


def test_a_table_of_people_with_links(path):
    """Links must be unique too: each leads to one person, and no two to the same person."""
    db = connect(path)
    db.executescript("""
        CREATE TABLE person(number TEXT COLLATE NOCASE UNIQUE, name TEXT COLLATE NOCASE PRIMARY KEY) WITHOUT ROWID;
        CREATE TABLE lodging(person TEXT COLLATE NOCASE UNIQUE, home TEXT COLLATE NOCASE);
        CREATE TABLE binary_lodging(person TEXT UNIQUE, home TEXT);
        CREATE TABLE visit(number TEXT COLLATE NOCASE, x);
        INSERT INTO person VALUES ('a1', 'Ann'), ('b1', 'Bob'), ('c1', 'Cid'), ('d1', 'Dan');
        INSERT INTO lodging VALUES ('ANN', 'Mill'), ('bob', 'MILL'), ('Cid', 'mill');
        INSERT INTO visit VALUES ('A1', 1), ('a1', 1), ('B1', 1), ('c1', 1), ('d1', 1);
    """)
    one(db, "SELECT dp_init()")
    one(db, "SELECT dp_protect('person', 'number'), dp_protect('visit', 'number')")
    one(db, "SELECT dp_protect('lodging', 'person', 'person'), dp_protect('binary_lodging', 'person', 'person')")
    assert "may have several rows of one unit (name the table with one row for each, such as 'lodging')" in refused(
        db, "SELECT dp_within('home', 'binary_lodging', 'home', 1)")
    one(db, "SELECT dp_within('home', 'lodging', 'home', 1)")
    one(db, "SELECT dp_tier('exact', 1e6, 1e9, 1e-6)")
    for sql in ("SELECT 1 FROM visit", "SELECT x FROM visit LIMIT 9"):  # row by row, and by unit
        count = one(db, "SELECT dp_release('exact', 'count', ?, '{\"clip\":1}')", sql)
        assert 1.98 < count < 2.02  # the mill counts as one, and Dan


# ---- the schema changes --------------------------------------------------------------------------------------------


CHANGES = {
    "ALTER TABLE patient RENAME COLUMN household TO home": ("has lost this column", "'household', 'patient', 'home', "),
    "ALTER TABLE patient DROP COLUMN twice; ALTER TABLE patient DROP COLUMN household": ("has lost this column", None),
    "DROP TABLE patient; CREATE TABLE patient(id INTEGER, household TEXT, age INT)": ("may have several rows of a unit", None),
    "ALTER TABLE patient RENAME TO person": ("is gone", "'household', 'person', 'household', "),
    "DROP TABLE patient; CREATE TABLE patient(id INTEGER PRIMARY KEY, age INT, household TEXT AS (age))": ("computes this column when it is read", None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_release_fails_closed(path, change):
    db = clinic(path)
    ask = "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visit', '{\"clip\":5}')"
    one(db, ask)
    charges = one(db, "SELECT count(*) FROM dp_charge")
    reason, repair = CHANGES[change]
    db.executescript(change)
    error = refused(db, ask)
    assert reason in error and "nothing was charged or read" in error
    assert one(db, "SELECT count(*) FROM dp_charge") == charges
    if repair:
        if "person" in repair:
            one(db, "SELECT dp_protect('person', 'id')")
        for factor in (3, 5):
            assert "which counts as 4 units" in refused(db, f"SELECT dp_within({repair}{factor})")
        since = one(db, "SELECT max(wider_at) FROM dp_policy")
        one(db, f"SELECT dp_within({repair}4)")
        assert one(db, "SELECT max(wider_at) FROM dp_policy") == since
        one(db, ask)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_an_authorizer_cannot_hide_the_column():
    db = clinic()
    ask = "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visit', '{\"clip\":5}')"
    for hidden, reason in (("household", "hides column 'household'"), ("dp_collect", "leaves out dp_collect()")):
        db.set_authorizer(lambda action, first, second, *_, hidden=hidden: sqlite3.SQLITE_IGNORE if second == hidden else sqlite3.SQLITE_OK)
        assert reason in refused(db, ask)
        db.set_authorizer(None)
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


# ---- what is refused -----------------------------------------------------------------------------------------------


KEYS = '"keys":[0,1,2,3]'


@pytest.mark.parametrize("kind, sql, options, reason", [
    ("group_count", "SELECT age FROM patient", '{"clip":1,"max_groups":2}', 'private keys (list public "keys")'),
    ("median", "SELECT age FROM patient", '{"lo":0,"hi":9,"mechanism":"exponential"}', "a drawn quantile"),
    ("group_count", "SELECT age FROM patient", '{"clip":1,"mechanism":"laplace",' + KEYS + "}", "Laplace noise on several numbers"),
    ("avg", "SELECT age FROM patient", '{"lo":0,"hi":9,"mechanism":"laplace"}', "Laplace noise on several numbers"),
    ("vec_sum", "SELECT '[1,2]' FROM patient", '{"dim":2,"clip":9,"mechanism":"laplace"}', "Laplace noise on several numbers"),
    ("count", "SELECT age FROM patient", '{"clip":9,"mechanism":"laplace","diagnose":true}', "diagnose under Laplace noise"),
    ("count_distinct", "SELECT '2026-01' FROM patient", '{"name":"s","periods":["2026-01","2026-02"]}', "a series"),
    ("choice", "SELECT age FROM patient", '{"candidates":[0,1,2]}', "this kind"),
])
def test_kinds_that_cannot_protect_households(kind, sql, options, reason):
    for factor in (4, 0):
        db = clinic(factor=factor, tiers=[("open", 0.1, 9.0, 1e-6, "rdp")])
        ask = ("SELECT dp_release('open', ?, ?, ?)", kind, sql, options if factor or "max_groups" not in options else '{"clip":1,' + KEYS + "}")
        if factor:
            error = refused(db, *ask)
            assert "cannot be protected with " + reason in error and one(db, "SELECT count(*) FROM dp_charge") == 0
        else:
            one(db, *ask)


def test_shards_are_refused():
    with_households, without = clinic(tiers=[("open", 0.1, 9.0, 1e-6, "rdp")]), clinic(factor=0)
    partial = "SELECT dp_partial('sum', 'SELECT minutes FROM visit', '{\"clip\":5}')"
    assert "cannot be protected with shards" in refused(with_households, partial)
    state = one(without, partial)
    assert "cannot be protected with shards" in refused(with_households, "SELECT dp_merge('open', dp_states(?))", state)
    assert one(with_households, "SELECT count(*) FROM dp_charge") == 0


def test_a_median_is_not_drawn_by_default():
    """Without a wider unit, the most precise mechanism for one quantile is the default."""
    tiers = [("open", 0.1, 9.0, 1e-6, "rdp")]
    found = {factor: clinic(factor=factor, tiers=tiers) for factor in (0, 4)}
    for db in found.values():
        one(db, "SELECT dp_release('open', 'median', 'SELECT minutes FROM visit', '{\"lo\":0,\"hi\":9}')")
    assert [one(db, "SELECT mechanism FROM dp_release") for db in found.values()] == ["exponential", "gaussian"]


# ---- epsilon -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor, epsilon", [(1.5, 1.55), (2, 2.12), (3, 3.32), (4, 4.59), (5, 5.93), (8, 10.3)])
def test_the_table_of_the_documentation(factor, epsilon):
    assert one(clinic(factor=factor), "SELECT wider_epsilon FROM dp_budget") == pytest.approx(epsilon, abs=0.05 if factor == 8 else 0.005)


@pytest.mark.parametrize("factor", [1, 1.25, 4, 30])
@pytest.mark.parametrize("count", [1, 24])
def test_wider_epsilon(path, factor, count):
    """In budgets, exposures and plans, against mpmath: exact Gaussian, tight conversion of zCDP, and the sum of pure epsilons."""
    kinds = {"gdp": ("sum", '{"clip":5}'), "rdp": ("avg", '{"lo":0,"hi":9}'), "pure": ("count_distinct", "{}")}
    for accountant, (kind, options) in kinds.items():
        delta = 0 if accountant == "pure" else 1e-6
        db = clinic(factor=factor, tiers=[("public", 0.0002, 2.0, delta, accountant)])
        for i in range(count):
            one(db, "SELECT dp_release('public', ?, 'SELECT minutes FROM visit', ?)", kind, options)
        (limit,), = db.execute("SELECT rate_limit FROM dp_tier")
        exposure = json.loads(one(db, "SELECT dp_exposure('public')"))
        plan = json.loads(one(db, "SELECT dp_plan('public', ?, ?, ?)", kind, {"sum": 5, "avg": 1}.get(kind), "{}" if kind == "sum" else options))["tiers"][0]
        spent = one(db, "SELECT spent_rate FROM dp_budget")
        budget = one(db, "SELECT wider_epsilon FROM dp_budget")
        if accountant == "pure":
            assert budget == pytest.approx(2 * factor, rel=1e-12) and exposure["wider_epsilon"] == pytest.approx(factor * exposure["epsilon"], rel=1e-11)
            assert plan["wider_epsilon_after"] == pytest.approx(factor * plan["epsilon_after"], rel=1e-11)
            continue
        for rate, epsilon in ((limit, budget), (spent, exposure["wider_epsilon"]), (spent * (count + 1) / count, plan["wider_epsilon_after"])):
            with mpmath.workdps(40):
                truth = float(true_zcdp_epsilon(factor**2 * rate, delta))
            if accountant == "gdp" and truth < 30:  # a larger epsilon leaves no room for the lattice slack in delta
                truth = gaussian_epsilon(factor**2 * rate, delta)
            assert truth <= epsilon * (1 + 1e-14) and epsilon == pytest.approx(truth, rel=2e-12 if accountant == "rdp" else 1e-6 if epsilon > 12 else 1e-9)
        assert exposure["tiers"][0]["wider_epsilon"] == exposure["wider_epsilon"]
        assert one(db, "SELECT dp_verify()") == "ok"


def test_no_tier_with_a_delta_takes_curves():
    db = clinic()
    error = refused(db, "SELECT dp_release('public', 'count_distinct', 'SELECT 1 FROM visit', '{\"mechanism\":\"laplace\"}')")
    assert "tier 'public' has exact Gaussian accounting, under which the wider unit of this ledger is protected by Gaussian noise only" in error
    assert "accountant 'pure'" in error and one(db, "SELECT count(*) FROM dp_charge") == 0


def test_outer_and_inner_tiers_as_without():
    """A release that is made less and more precise, and one between: with nobody cut, the same noise, costs and coalitions as in a ledger
    without households. The outer points come from the same bounded sum, so they need no bound of their own."""
    tiers = [("inner", 0.1, 50.0, 1e-6, "rdp"), ("middle", 0.01, 40.0, 1e-6, "rdp"), ("outer", 0.001, 30.0, 1e-6, "rdp")]
    coalitions = {"inner": "inner", "middle": "middle", "outer": "outer", "middle,outer": "middle", "outer,inner,middle": "inner"}
    noise, rates = {}, {}
    for factor in (0, 1, 4, 1000):
        db = clinic(factor=factor, tiers=tiers)
        for name, tier, options in (("a", "inner", ""), ("b", "outer", ""), ("b", "inner", ',"refine":true')):
            one(db, "SELECT dp_release(?, 'group_count', 'SELECT age FROM patient', ?)", tier, f'{{"name":"{name}","clip":1,{KEYS}{options}}}')
        for name, tier in (("a", "outer"), ("a", "middle"), ("b", "middle")):
            one(db, "SELECT dp_diffuse(?, ?)", name, tier)
        assert one(db, "SELECT dp_verify()") == "ok"
        noise[factor] = [deviation for deviation, in db.execute("SELECT stddev FROM dp_value ORDER BY release, tier, key")]
        told = {who: json.loads(one(db, "SELECT dp_exposure(?)", who)) for who in coalitions}
        rates[factor] = [exposure["rate"] for exposure in told.values()]
        assert len(noise[factor]) == 24 and noise[factor] == pytest.approx(noise[0], rel=1e-5) and rates[factor] == pytest.approx(rates[0], rel=1e-9)
        for who, worst in coalitions.items():
            assert told[who]["epsilon"] == told[worst]["epsilon"]
            if factor in (1, 4):
                with mpmath.workdps(40):
                    truth = float(true_zcdp_epsilon(factor**2 * told[who]["rate"], 1e-6))
                assert told[who]["wider_epsilon"] == told[worst]["wider_epsilon"] == pytest.approx(truth, rel=2e-12)


def test_curves_are_for_pure_tiers():
    db = clinic(tiers=[("inner", 0.1, 9.0, 1e-6, "rdp"), ("outer", 0.0002, 2.0, 0, "pure")])
    for tier, options in (("inner", '{"mechanism":"laplace"}'), ("outer", "{}")):  # an inner tier pays for an outer release
        error = refused(db, "SELECT dp_release(?, 'count_distinct', 'SELECT 1 FROM visit', ?)", tier, options)
        assert "tier 'inner' has RDP accounting, under which the wider unit of this ledger is protected by Gaussian noise only" in error
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


def test_periods(path):
    db = clinic(path, tiers=())
    one(db, "SELECT dp_tier('public', 0.001, 1.0, 1e-6, '{\"accountant\":\"gdp\",\"period\":\"month\"}')")
    assert one(db, "SELECT wider_epsilon FROM dp_budget") == pytest.approx(4.5924, abs=1e-4)


# ---- documents -----------------------------------------------------------------------------------------------------


def test_figures_certificates_exports(path, tmp_path):
    db = clinic(path)
    one(db, "SELECT dp_release('public', 'group_count', 'SELECT age FROM patient', '{\"name\":\"by age\",\"clip\":1," + KEYS + "}')")
    one(db, "SELECT dp_release('public', 'avg', 'SELECT age FROM patient', '{\"name\":\"age\",\"lo\":0,\"hi\":9}')")
    figures = dict(db.execute("SELECT release, figure FROM dp_value"))
    assert figures["by age"].endswith(", each household at most as much as 4 patients in one group (as 16 in different groups)")
    assert figures["age"].endswith("each patient counts once, each household at most as much as 4 patients")
    certificate = json.loads(one(db, "SELECT dp_certificate()"))
    assert {k: v for k, v in certificate["wider"].items() if k != "theorem"} == {
        "unit": "household", "factor": 4, "table": "patient", "column": "household"}
    assert certificate["tiers"][0]["wider_epsilon"] == one(db, "SELECT wider_epsilon FROM dp_budget")
    one(db, "SELECT dp_export('public', ?)", str(tmp_path / "handover.db"))
    handover = sqlite3.connect(tmp_path / "handover.db")
    assert one(handover, "SELECT wider_epsilon FROM tier") == certificate["tiers"][0]["wider_epsilon"]
    assert json.loads(one(handover, "SELECT document FROM certificate"))["wider"]["unit"] == "household"
    page = one(db, "SELECT dp_report('public')")
    assert "For each household: ε = 4.592" in page and "all rows of each household, which counts as at most 4 of them" in page


def test_an_audience_sees_the_name_and_the_factor(path):
    clinic(path).close()
    db = connect(path)
    one(db, "SELECT dp_guard('public')")
    assert db.execute("SELECT wider, factor, wider_column, wider_at FROM dp_policy WHERE wider IS NOT NULL").fetchall() == [("household", 4.0, None, None)]
    assert one(db, "SELECT wider_epsilon FROM dp_budget") == pytest.approx(4.5924, abs=1e-4)
    assert {k for k in json.loads(one(db, "SELECT dp_certificate()"))["wider"]} == {"unit", "factor", "theorem"}
    assert "dp_within" in refused(db, WITHIN, 4)
    with pytest.raises(sqlite3.Error):
        db.execute("SELECT household FROM patient").fetchall()


EDITS = {"factor": 8.0, "wider": "home", "wider_column": "age", "wider_at": "2020-01-01T00:00:00.000Z"}


@pytest.mark.parametrize("column", [*EDITS, "wider_epsilon"])
def test_verify_finds_an_edit(path, column):
    db = clinic(path)
    one(db, "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visit', '{\"clip\":5}')")
    ledger = ledger_of(path)
    if column == "wider_epsilon":
        assert edit(ledger, "UPDATE dp_budget SET wider_epsilon = 1.0") == 1
    else:
        assert edit(ledger, f"UPDATE dp_policy SET {column} = ? WHERE wider IS NOT NULL", (EDITS[column],)) == 1
    ledger.close()
    assert one(db, "SELECT dp_verify()") != "ok"
    assert "is damaged" in refused(db, "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visit', '{\"clip\":6}')")
