"""Tests tiers with a budget for each period: the period in which a charge counts, the limit for the charges of one period, and
the guarantee for all periods together.

The reference is Python's calendar, and conftest.py sets SQLite's clock. test_filters.py has adversaries.
"""

import datetime
import json
import random

import pytest
from mpmath import mp, mpf

from conftest import add_visits, connect, interrupted, make_ledger, one, refused, run
from periods_truth import bounds, DAY, KINDS, period_of
from truth import true_gaussian_epsilon, true_zcdp_epsilon


pytestmark = pytest.mark.usefixtures("forty_digits")

def tier(db, name, rate, epsilon, delta, period, accountant="rdp", **options):
    return one(db, "SELECT dp_tier(?, ?, ?, ?, ?)", name, rate, epsilon, delta,
               json.dumps({"period": period, "accountant": accountant, **options}))


def books(path):
    """Makes a database with visits and a ledger without tiers."""
    db = connect(path)
    add_visits(db)
    make_ledger(db, "{}", "visits, patient")
    return db


def count(db, at, name, weight=1, refine=False, clip=1):
    return one(db, "SELECT dp_release(?, 'count', 'SELECT 1 FROM visits', ?)", at,
               json.dumps({"name": name, "weight": weight, "clip": clip, **({"refine": True} if refine else {})}))


def charged(db, *columns):
    """Returns the exact sums of the charged rates, grouped by the given columns of dp_charge."""
    sums = {}
    for rate, *key in db.execute(f"SELECT rate, {', '.join(columns)} FROM dp_charge"):
        sums[tuple(key)] = sums.get(tuple(key), mpf(0)) + mpf(rate)
    return sums


# ---- the calendar -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_charge_counts_in_the_period_of_the_calendar(path, clock, kind):
    """The test uses days at the edges of years, leap years and ISO weeks, and random days, in the order of time."""
    dice = random.Random(KINDS.index(kind))
    days = [datetime.date(y, m, d) for y in (2026, 2027, 2028) for m, d in
            [(1, 1), (1, 3), (1, 4), (2, 28), (3, 1), (3, 31), (4, 1), (12, 28), (12, 31)]] + [datetime.date(2028, 2, 29)]
    days += [datetime.date(2029, 1, 1) + DAY * dice.randrange(4000) for _ in range(20)]
    clock.set("2025-12-31 12:00:00")
    db = books(path)
    tier(db, "public", 0.001, 1.0, 1e-6, kind)
    for number, day in enumerate(sorted(set(days))):
        clock.set(f"{day} {dice.choice(['00:00:00', '12:34:56', '23:59:59.999'])}")
        start, end = bounds(kind, day)
        assert db.execute("SELECT period_start, period_end FROM dp_budget").fetchall() == [(start, end)]
        count(db, "public", f"r{number}")
        assert one(db, "SELECT period FROM dp_charge ORDER BY id DESC LIMIT 1") == start
    assert one(db, "SELECT dp_verify()") == "ok"


def most_overlaps(inner, outer):
    """Returns the largest number of outer periods that share a day with one inner period, over a cycle of the calendar (400
    years)."""
    seen = {}
    for ordinal in range(datetime.date(2000, 1, 1).toordinal(), datetime.date(2401, 1, 1).toordinal()):
        day = datetime.date.fromordinal(ordinal)
        seen.setdefault(period_of(inner, day), set()).add(period_of(outer, day))
    return max(map(len, seen.values()))


@pytest.mark.parametrize("inner", KINDS)
@pytest.mark.sample(1)
def test_an_inner_budget_must_hold_all_outer_budgets_that_can_overlap_it(db_without_tiers, inner):
    """With pure accounting, budgets add up, so an inner period that overlaps n outer periods of budget 1 needs the budget n. The
    test creates the tiers in both orders."""
    db = db_without_tiers
    for number, outer in enumerate(KINDS):
        most = most_overlaps(inner, outer)
        names = f"in{number}", f"out{number}"
        enough, scarce = float(most), most * (1 - 1e-6)
        tier(db, names[1], 1e-3, 1.0, 0, outer, "pure")
        message = refused(db, "SELECT dp_tier('new', 2e-3, ?, 0, ?)", scarce,
                          json.dumps({"period": inner, "accountant": "pure"}))
        assert "would block tier" in message and (most == 1 or f"smaller than {most} times that" in message)
        tier(db, names[0], 2e-3, enough, 0, inner, "pure")
        one(db, "SELECT dp_drop_tier(?)", names[1])
        if inner != outer:  # if both periods are the same, an outer tier may have the larger budget
            message = refused(db, "SELECT dp_tier('new', 1e-3, 1.000001, 0, ?)",
                              json.dumps({"period": outer, "accountant": "pure"}))
            assert f"is smaller than {most} budget" in message and "an epsilon of at most 0.999" in message
        tier(db, names[1] + "b", 1e-3, 1.0, 0, outer, "pure")
        one(db, "SELECT dp_drop_tier(?)", names[0])
        one(db, "SELECT dp_drop_tier(?)", names[1] + "b")


@pytest.fixture
def db_without_tiers(path):
    return books(path)


def test_delta_for_keys_is_counted_as_often(path):
    db = books(path)
    tier(db, "public", 0.0001, 0.1, 1e-6, "month", delta_keys=5e-7)
    assert "delta_keys of at least 6e-06" in refused(
        db, "SELECT dp_tier('clinic', 0.002, 9, 1e-4, '{\"period\":\"year\",\"delta_keys\":5.9e-6}')")
    tier(db, "clinic", 0.002, 9.0, 1e-4, "year", delta_keys=6e-6)


def test_the_numbers_in_a_refusal_work(path):
    db = books(path)
    tier(db, "public", 0.001, 0.5, 1e-6, "month")
    message = refused(db, "SELECT dp_tier('clinic', 0.002, 1, 1e-6, '{\"period\":\"year\"}')")
    epsilon = float(message.split("an epsilon of at least ")[1].split()[0])
    assert "12 times" in message and 1 < epsilon < 6
    assert "would block" in refused(db, "SELECT dp_tier('clinic', 0.002, ?, 1e-6, '{\"period\":\"year\"}')", epsilon * 0.995)
    tier(db, "clinic", 0.002, epsilon, 1e-6, "year")
    message = refused(db, "SELECT dp_tier('press', 0.0001, 1, 1e-6, '{\"period\":\"week\"}')")
    epsilon = float(message.split("an epsilon of at most ")[1].split()[0])
    tier(db, "press", 0.0001, epsilon, 1e-6, "week")


def test_what_never_ends_cannot_lie_inside_what_begins_again(path):
    db = books(path)
    one(db, "SELECT dp_tier('public', 0.001, 1.0, 1e-6)")
    tier(db, "clinic", 0.01, 3.0, 1e-6, "year")  # one year has room for the whole budget of `public`
    message = "has no period and would lie inside tier"
    assert message in refused(db, "SELECT dp_tier('board', 0.02, 9.0, 1e-6)")
    assert message in refused(db, "SELECT dp_tier('press', 0.0001, 0.5, 1e-6, '{\"period\":\"year\"}')")
    one(db, "SELECT dp_tier('press', 0.0001, 0.5, 1e-6)")
    assert db.execute("SELECT name, period FROM dp_tier").fetchall() == [("clinic", "year"), ("public", None), ("press", None)]
    assert [row[1:] for row in db.execute("SELECT tier, period_start IS NULL, period_end IS NULL FROM dp_budget"
                                          " ORDER BY tier = 'clinic'")] == [(1, 1), (1, 1), (0, 0)]


def test_a_tier_with_another_period_is_another_tier(path):
    db = books(path)
    for _ in range(2):
        tier(db, "public", 0.001, 1.0, 1e-6, "month")
    for options in ('{"period":"year"}', None, '{}'):
        assert "exists with other parameters" in refused(db, "SELECT dp_tier('public', 0.001, 1.0, 1e-6, ?)", options)


@pytest.mark.parametrize("options,message", [
    ('{"period":"fortnight"}', "period must be 'day', 'week', 'month', 'quarter' or 'year'"),
    ('{"period":1}', "period must be"), ('{"period":true}', "period must not be a Boolean"),
    ('{"periods":"day"}', "unknown option"), ('{"accountant":"best"}', "accountant must be"),
    ('{"delta_keys":"a"}', "delta_keys must be a number"), ('{"period":"day"', "JSON"), ('["day"]', "accountant must be")])
def test_options_of_a_tier_that_are_wrong_are_refused(db_without_tiers, options, message):
    assert message in refused(db_without_tiers, "SELECT dp_tier('public', 0.001, 1.0, 1e-6, ?)", options)
    assert one(db_without_tiers, "SELECT count(*) FROM dp_tier") == 0


def test_delta_keys_is_an_option_or_an_argument(db_without_tiers):
    db = db_without_tiers
    one(db, "SELECT dp_tier('a', 0.001, 1.0, 1e-6, '{\"delta_keys\":1e-7}')")
    one(db, "SELECT dp_tier('b', 0.002, 2.0, 1e-6, '{}', 1e-7)")
    one(db, "SELECT dp_tier('c', 0.003, 3.0, 1e-6, NULL, 1e-7)")
    assert "given twice" in refused(db, "SELECT dp_tier('d', 0.004, 4.0, 1e-6, '{\"delta_keys\":1e-7}', 1e-7)")
    assert {keys for (keys,) in db.execute("SELECT delta_keys FROM dp_tier")} == {1e-7}


# ---- charges ------------------------------------------------------------------------------------


def test_each_period_has_the_whole_budget(path, clock):
    """A monthly tier with dp_rate(1, 1e-6, 7) admits seven releases in every month and no more. Unused releases are lost at the
    end of a month."""
    clock.set("2026-01-31 23:59:59")
    db = books(path)
    tier(db, "public", one(db, "SELECT dp_rate(1.0, 1e-6, 7)"), 1.0, 1e-6, "month", "gdp")
    for month, wanted in (("2026-01-31 23:59:59", 9), ("2026-02-01 00:00:00", 3), ("2026-03-15 12:00:00", 9)):
        clock.set(month)
        for number in range(wanted):
            left = one(db, "SELECT releases_left FROM dp_budget")
            assert left == max(0, 7 - number)
            if left:
                count(db, "public", f"{month} {number}")
            else:
                assert "would exceed its budget" in refused(
                    db, "SELECT dp_count('public', minutes, 1) FROM visits")
        assert one(db, "SELECT releases FROM dp_budget") == min(7, wanted)
    assert [row for row in charged(db, "period")] == [("2026-01-01",), ("2026-02-01",), ("2026-03-01",)]
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_refinement_pays_the_difference_in_the_period_in_which_it_is_made(path, clock):
    """A release at the outer tier costs 0.45 in January, and its refinement at the inner tier costs 0.5 in February. The inner
    tier pays 0.05 in February."""
    clock.set("2026-01-10 08:00:00")
    db = books(path)
    tier(db, "public", 0.45, 6.0, 1e-6, "month")
    tier(db, "region", 0.5, 6.5, 1e-6, "month")
    count(db, "public", "visits", clip=100)
    clock.set("2026-02-10 08:00:00")
    count(db, "region", "visits", refine=True, clip=100)
    paid = charged(db, "tier", "period")
    wanted = {("public", "2026-01-01"): 0.45, ("region", "2026-01-01"): 0.45, ("region", "2026-02-01"): 0.05}
    assert set(paid) == set(wanted)
    assert all(abs(paid[key] - rate) < 1e-6 for key, rate in wanted.items())
    assert db.execute("SELECT tier, round(spent_rate, 6), releases FROM dp_budget ORDER BY tier").fetchall() == [
        ("public", 0.0, 0), ("region", 0.05, 1)]
    assert db.execute("SELECT tier, round(rate, 6) FROM dp_publication ORDER BY tier").fetchall() == [
        ("public", 0.45), ("region", 0.5)]
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_clock_that_goes_back_opens_no_earlier_period(path, clock):
    clock.set("2026-02-10 00:00:00")
    db = books(path)
    tier(db, "public", 0.001, 1.0, 1e-6, "month")
    room = one(db, "SELECT releases_left FROM dp_budget")
    count(db, "public", "february")
    clock.set("2026-03-05 00:00:00")
    count(db, "public", "march")
    for back in ("2026-02-28 23:59:59", "2025-01-01 00:00:00", "1970-01-01 00:00:00"):
        clock.set(back)
        assert one(db, "SELECT period_start FROM dp_budget") == "2026-03-01"
        left = one(db, "SELECT releases_left FROM dp_budget")
        count(db, "public", back)
        assert one(db, "SELECT period FROM dp_charge ORDER BY id DESC") == "2026-03-01"
        assert one(db, "SELECT releases_left FROM dp_budget") == left - 1
    assert one(connect(path), "SELECT period_start FROM dp_budget") == "2026-03-01"
    clock.set("2026-04-01 00:00:00")
    assert one(db, "SELECT releases_left FROM dp_budget") == room
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_period_that_begins_is_seen_before_its_first_charge(path, clock):
    """A new period is seen before its first charge, even on a read-only connection, and without a change to the ledger file."""
    clock.set("2026-01-10 00:00:00")
    db = books(path)
    tier(db, "public", 0.01, 1.0, 1e-6, "month")
    fresh = db.execute("SELECT * FROM dp_budget").fetchall()
    count(db, "public", "january")
    used = db.execute("SELECT * FROM dp_budget").fetchall()
    assert used != fresh
    before = open(f"{path}-ledger", "rb").read()
    clock.set("2026-02-10 00:00:00")
    reader = connect(f"file:{path}?mode=ro", uri=True)
    for connection in (db, reader):
        (row,) = connection.execute("SELECT * FROM dp_budget").fetchall()
        assert row[:9] == fresh[0][:9] and row[9:11] == ("2026-02-01", "2026-03-01")
        assert one(connection, "SELECT sum(spent) FROM dp_rdp") == 0
        tiers = json.loads(one(connection, "SELECT dp_exposure('public')"))["tiers"]
        assert tiers[0]["all_periods"]["periods"] == 2
        assert json.loads(one(connection, "SELECT dp_certificate()"))["tiers"][0]["spent_rate"] == 0
        assert one(connection, "SELECT dp_verify()") == "ok"
    plan = json.loads(one(db, "SELECT dp_plan('public', 'count', 1)"))
    assert plan["tiers"][0]["releases_left"] == fresh[0][8] - 1
    assert open(f"{path}-ledger", "rb").read() == before


@pytest.mark.parametrize("kinds", [("month", "month"), ("year", "month"), ("month", "week"), ("day", "month"),
                                   ("quarter", None), ("week", "week")])
def test_a_tier_that_is_created_later_pays_in_the_periods_of_the_original_charges(tmp_path, clock, kinds):
    """Two ledgers have the same releases. In one of them the inner tiers exist from the start, and in the other they are created
    at the end. Both ledgers then have the same charges of the inner tiers by release and period, also for a failed and a
    discarded release. This holds for the innermost tier too, which sees only what the other inner tier inherits."""
    inner, outer = kinds
    early, late = books(tmp_path / "early.db"), books(tmp_path / "late.db")
    clock.set("2026-01-20 10:00:00")

    def outer_tiers(db):
        options = json.dumps({"period": outer} if outer else {})
        one(db, "SELECT dp_tier('press', 0.0005, 0.4, 1e-6, ?)", options)
        one(db, "SELECT dp_tier('public', 0.001, 0.5, 1e-6, ?)", options)

    def inner_tiers(db):
        for number, name in enumerate(("clinic", "board")):
            tier(db, name, 0.002 + number / 1000, 60.0 + number, 1e-6, inner)

    outer_tiers(early), outer_tiers(late), inner_tiers(early)
    back = "2026-03-31" if kinds == ("day", "month") else "2026-01-05"  # if inner periods are days, the clock must not go back
    for number, day in enumerate(["2026-01-20", "2026-01-30", "2026-02-01", "2026-02-02", "2026-03-31", back, "2026-04-01"]):
        clock.set(f"{day} 10:00:00")
        for db in (early, late):
            count(db, "press", f"r{number}")
            if number in (2, 3, 4, 6):
                count(db, "public", f"r{number - 2}", refine=True)  # a later charge for the same release
            if number == 3:
                interrupted(db, "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visits', '{\"name\":\"f\",\"clip\":1}')")
                one(db, "SELECT dp_discard('r3')")
    clock.set("2026-06-01 10:00:00")
    inner_tiers(late)
    for name in ("clinic", "board"):
        wanted, got = ({key[1:]: rate for key, rate in charged(db, "tier", "release_id", "period").items() if key[0] == name}
                       for db in (early, late))
        assert wanted.keys() == got.keys() and len(got) >= 8
        assert all(abs(got[key] - wanted[key]) <= 1e-15 * wanted[key] for key in got)
        ats = [{(r, a[:10]) for t, r, a in db.execute("SELECT tier, release_id, at FROM dp_charge") if t == name} for db in (early, late)]
        assert ats[1] <= ats[0]
    for db in (early, late):
        assert one(db, "SELECT dp_verify()") == "ok"
    clock.set("2026-06-02 10:00:00")
    for db in (early, late):
        count(db, "clinic", "last")
        assert one(db, "SELECT dp_verify()") == "ok"
    same = [db.execute("SELECT tier, period_start, releases, releases_left FROM dp_budget ORDER BY tier").fetchall()
            for db in (early, late)]
    assert same[0] == same[1]


def test_a_later_tier_pays_for_curves_period_by_period(path, clock):
    """Laplace noise is charged as a curve. A later tier pays the curves of both months, each in its own month."""
    clock.set("2026-01-20 10:00:00")
    db = books(path)
    tier(db, "public", 0.001, 0.5, 1e-6, "month")
    for day in ("2026-01-20", "2026-02-20"):
        clock.set(f"{day} 10:00:00")
        one(db, "SELECT dp_count('public', minutes, 1, ?) FROM visits",
            json.dumps({"name": day, "mechanism": "laplace"}))
    tier(db, "clinic", 0.002, 2.0, 1e-6, "month")
    assert db.execute("SELECT tier, period, curve IS NOT NULL FROM dp_charge ORDER BY id").fetchall() == [
        (name, month, 1) for name in ("public", "clinic") for month in ("2026-01-01", "2026-02-01")]
    spent = dict(db.execute("SELECT tier, max(spent) FROM dp_rdp GROUP BY tier"))
    assert spent["clinic"] == spent["public"] > 0
    assert one(db, "SELECT dp_verify()") == "ok"


# ---- what periods compose to ---------------------------------------------------------------------


@pytest.mark.parametrize("epsilon,delta,accountant", [(1.0, 1e-6, "rdp"), (1.0, 1e-6, "gdp"), (0.1, 1e-9, "gdp"), (3.0, 1e-3, "rdp")])
def test_all_periods_compose_to_whole_budgets(path, clock, epsilon, delta, accountant):
    """dp_exposure() gives a guarantee for k periods together, which is compared with high precision: for 'gdp' the exact profile
    of k limits, and for 'rdp' the conversion of k limits at the filter order. The guarantee is at most k epsilon. It
    depends on the limits, not on the amounts that were spent."""
    clock.set("2026-01-15 00:00:00")
    db = books(path)
    tier(db, "public", 1e-5, epsilon, delta, "month", accountant)
    limit, order = db.execute("SELECT rate_limit, filter_order FROM dp_tier").fetchone()
    for months in (1, 2, 5, 12, 60):
        clock.set(f"{2026 + (months - 1) // 12}-{(months - 1) % 12 + 1:02}-20 00:00:00")
        got = json.loads(one(db, "SELECT dp_exposure('public')"))["tiers"][0]["all_periods"]
        assert got["periods"] == months and got["delta"] == pytest.approx(months * delta, rel=1e-12)
        rate, target = months * mpf(limit), months * mpf(delta)
        if accountant == "gdp":
            wanted = true_gaussian_epsilon(rate, target, true_zcdp_epsilon(rate, target))
            low, high = wanted, wanted * (1 + mpf("1e-5"))
        else:
            low = order * rate + mp.log(1 - 1 / mpf(order)) - (mp.log(target) + mp.log(order)) / (order - 1)
            assert low >= true_zcdp_epsilon(rate, target) * (1 - mpf("1e-20"))
            high = low * (1 + mpf("1e-9"))
        assert min(low, months * mpf(epsilon)) * (1 - mpf("1e-9")) <= got["epsilon"] <= min(high, months * mpf(epsilon))


@pytest.mark.parametrize("accountant", ["rdp", "pure"])
def test_a_pure_composition_adds_epsilons(path, clock, accountant):
    clock.set("2026-01-15 00:00:00")
    db = books(path)
    tier(db, "public", 1e-5, 0.25, 0 if accountant == "pure" else 1e-6, "year", accountant)
    clock.set("2029-01-15 00:00:00")
    got = json.loads(one(db, "SELECT dp_exposure('public')"))["tiers"][0]["all_periods"]
    assert got["periods"] == 4 and (got["epsilon"] == 1.0 if accountant == "pure" else got["epsilon"] < 1.0)
    assert json.loads(one(db, "SELECT dp_certificate()"))["tiers"][0]["all_periods"] == got


# ---- edits of the file --------------------------------------------------------------------------


def test_two_processes_enter_a_period_once(path, clock):
    """Two processes make the first charges of a new period. Only one of them enters the period, and both charges count in it."""
    clock.set("2026-02-02 00:00:00")
    db = books(path)
    tier(db, "public", 0.01, 1.0, 1e-6, "month")
    count(db, "public", "february")
    code = """
        clock = Clock()
        clock.set('2026-03-02 00:00:00')
        db = connect(sys.argv[1])
        one(db, "SELECT dp_count('public', minutes, 1, 'march') FROM visits")
    """
    run(code, path)
    assert one(db, "SELECT releases FROM dp_budget") == 1
    count(db, "public", "also march")
    assert charged(db, "period").keys() == {("2026-02-01",), ("2026-03-01",)}
    assert db.execute("SELECT releases, period_start FROM dp_budget").fetchall() == [(2, "2026-03-01")]
    assert one(db, "SELECT dp_verify()") == "ok"
