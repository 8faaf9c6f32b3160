"""dp_grant(): reserves a share of a budget for the questions of others, who ask on connections guarded with the option "ask"."""

import contextlib
import json
import math
import random
import re
import signal
import sqlite3
import struct
import time
from fractions import Fraction

import pytest

from conftest import connect, HELPERS, ledger_of, library, one, PATIENCE, refused, run, start
from guard_statements import READ, REFUSED
from guard_helpers import copy, copy_of, guarded, mend, outcome, published, release

pytestmark = pytest.mark.alarm(0)

ASK = {"ask": "visitors"}


def grant(db, name="visitors", tier="public", share=0.5, **options):
    return one(db, "SELECT dp_grant(?, ?, ?, ?)", name, tier, share, json.dumps({"pad_ms": 1, **options}))


def ask(db, name, tier="public", kind="count", query="SELECT 1 FROM visit", **options):
    options = {"clip": 1, "name": name, **options}
    return one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, query, json.dumps(options))


def capacity(db, most=1000, first=0, **options):
    """Asks questions until the grant of the guarded connection cannot pay for the next one. Returns the number answered, at most
    `most`."""
    for i in range(first, first + most):
        try:
            ask(db, f"question {i}", **options)
        except sqlite3.Error as error:
            assert str(error).startswith("dp_release: grant 'visitors' has too little left for this"), error
            return i - first
    return most


# ---- the amounts --------------------------------------------------------------------------------------


def test_a_grant_reserves_its_share_at_the_tier_and_inside(copy):
    db = connect(copy)
    limit, spent = db.execute("SELECT rate_limit, spent_rate FROM dp_tier JOIN dp_budget ON tier = name WHERE name = 'region'").fetchall()[0]
    assert grant(db, tier="region", share=0.25) == "visitors"
    assert db.execute("SELECT name, tier, share, questions, diffuse, pad_ms, seconds, steps, bytes FROM dp_grant").fetchall() == [
        ("visitors", "region", 0.25, None, None, 1, 10, 10000, 16 * 2**20)]
    reserves = dict(db.execute("SELECT tier, reserved FROM dp_reserve"))
    assert set(reserves) == {"clinic", "region"}
    assert all(reserved == pytest.approx((limit - spent) / 4, rel=1e-8) for reserved in reserves.values())
    before = db.execute("SELECT * FROM dp_reserve").fetchall(), db.execute("SELECT count(*) FROM dp_grant").fetchall()
    grant(db, tier="region", share=0.25)  # the same grant again
    assert before == (db.execute("SELECT * FROM dp_reserve").fetchall(), db.execute("SELECT count(*) FROM dp_grant").fetchall())
    assert "exists with other parameters" in refused(db, "SELECT dp_grant('visitors', 'region', 0.3)")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_grant_pays_for_as_many_questions_as_it_holds(copy):
    db = connect(copy)
    grant(db)
    (reserved,), rate = db.execute("SELECT reserved FROM dp_reserve WHERE tier = 'public'").fetchall()[0], 0.002
    with contextlib.closing(guarded(copy, options=ASK)) as visitor:
        assert capacity(visitor) == int(reserved / rate * (1 + 1e-9)) > 5
        assert one(visitor, "SELECT dp_reserve.spent <= reserved FROM dp_reserve") == 1
    with contextlib.closing(guarded(copy, options=ASK)) as again:  # reconnecting does not renew the grant
        assert capacity(again, first=500) == 0
        assert isinstance(ask(again, "question 0"), float)         # a replay is free
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("questions", [1, 2, 7])
def test_a_grant_of_questions_pays_for_just_as_many(copy, questions):
    db = connect(copy)
    left = one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'public'")
    grant(db, share=questions)
    assert db.execute("SELECT questions, share < 1 FROM dp_grant").fetchall() == [(questions, 1)]
    assert one(db, "SELECT releases_left FROM dp_budget WHERE tier = 'public'") == left - questions
    grant(db, share=questions)  # the same grant again, although less is left
    assert "exists with other parameters" in refused(db, "SELECT dp_grant('visitors', 'public', ?, '{\"pad_ms\":1}')", questions + 1)
    assert "exists with other parameters" in refused(db, "SELECT dp_grant('visitors', 'public', 0.5, '{\"pad_ms\":1}')")
    with contextlib.closing(guarded(copy, options=ASK)) as visitor:
        assert capacity(visitor) == questions
    assert one(db, "SELECT dp_verify()") == "ok"
    assert refused(db, "SELECT dp_grant('all', 'public', 10000)").startswith("dp_grant: tier 'public' has budget left for ")


@pytest.mark.parametrize("terms", ["dp_rate(1, 1e-6, 12), 1, 1e-6, 'gdp'", "dp_rdp_laplace(1, 0.0833, 1), 1, 0, 'pure'"])
def test_grants_take_no_more_from_a_budget_than_their_questions(tmp_path, terms):
    """A budget for just 12 releases is divided among the owner and four grants, and all 12 are made."""
    path = str(tmp_path / "year.db")
    db = connect(path)
    db.executescript("CREATE TABLE visit(patient_id INT); INSERT INTO visit VALUES (1), (2)")
    one(db, """SELECT dp_init('{"unit":"patient"}')""")
    one(db, "SELECT dp_protect('visit', 'patient_id')")
    one(db, f"SELECT dp_tier('t', {terms})")
    left = lambda: one(db, "SELECT releases_left FROM dp_budget")
    assert left() == 12
    for i, (share, rest) in enumerate([(3, 9), (1, 8), (0.5, 4), (2, 2)]):
        grant(db, f"grant{i}", "t", share)
        assert left() == rest
    for i in range(2):
        assert left() == 2 - i
        ask(db, f"mine {i}", "t")
    assert "would exceed its budget" in refused(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM visit', '{\"clip\":1}')")
    for i, questions in enumerate([3, 1, 4, 2]):
        with contextlib.closing(guarded(path, "t", {"ask": f"grant{i}"})) as visitor:
            for question in range(questions):
                ask(visitor, f"question {question}", "t")
            with pytest.raises(sqlite3.Error, match="has too little left"):
                ask(visitor, "one more", "t")
    assert one(db, "SELECT dp_verify()") == "ok"
    # A sum of doubles is increased by more than its additions can round down.
    with contextlib.closing(ledger_of(path)) as books:
        for name, spent in books.execute("SELECT grant_name, spent_slack FROM dp_reserve"):
            paid = sum(Fraction(slack) for slack, in books.execute("SELECT slack FROM dp_charge WHERE grant_name = ?", (name,)))
            assert spent == paid == 0 or spent > paid


def test_the_owner_has_what_grants_leave(copy):
    db, left = connect(copy), "SELECT releases_left FROM dp_budget WHERE tier = 'public'"
    before = one(db, left)
    grant(db, share=0.75)
    assert abs(one(db, left) - before / 4) <= 1
    made = 0
    with pytest.raises(sqlite3.Error, match="would exceed its budget"):
        for made in range(1000):
            release(db, "public", f"mine {made}")
    assert abs(made - before / 4) <= 1 and one(db, left) == 0
    assert one(db, "SELECT dp_verify()") == "ok"
    with contextlib.closing(guarded(copy, options=ASK)) as visitor:
        assert abs(capacity(visitor) - before * 3 / 4) <= 1
    assert one(db, "SELECT dp_verify()") == "ok"


def test_what_inner_tiers_spend_never_refuses_a_grant(published, tmp_path):
    counts = []
    for spender in (None, "clinic", "region"):
        path = copy_of(published, tmp_path / f"{spender}.db")
        db = connect(path)
        grant(db, share=0.6)
        with contextlib.suppress(sqlite3.Error):
            for i in range(1000 if spender else 0):
                release(db, spender, f"inner-{i}")
        with contextlib.closing(guarded(path, options=ASK)) as visitor:
            counts.append(capacity(visitor))
        assert one(db, "SELECT dp_verify()") == "ok"
    assert len(set(counts)) == 1 and counts[0] > 5


def questions_left(db):
    """Returns the number of questions that each grant has left at its own tier."""
    return dict(db.execute("SELECT g.name, CAST((reserved - spent) / rate + 1e-6 AS INT) FROM dp_grant AS g JOIN dp_reserve AS r"
                           " ON grant_name = g.name AND r.tier = g.tier JOIN dp_tier AS t ON t.name = g.tier"))


@pytest.mark.parametrize("accountant", ["gdp", "rdp"])
def test_an_unused_grant_stays_in_later_periods(tmp_path, clock, accountant):
    """A grant of 9 of 36 releases of a year takes them from every year until it is used up, and gets nothing new after that."""
    clock.set("2025-06-01 12:00:00")
    db, path = connect(tmp_path / "a.db"), tmp_path / "a.db"
    db.executescript("CREATE TABLE visit(patient INT); INSERT INTO visit VALUES (1), (2), (3)")
    db.execute("SELECT dp_init()").fetchall()
    db.execute("SELECT dp_protect('visit', 'patient')").fetchall()
    for tier, epsilon in (("clinic", 8.0), ("public", 2.0)):
        rate = one(db, "SELECT dp_rate(?, 1e-6, 36)", epsilon) * (1 if accountant == "gdp" else 0.8)
        one(db, "SELECT dp_tier(?, ?, ?, 1e-6, ?)", tier, rate, epsilon, json.dumps({"accountant": accountant, "period": "year"}))
    left = "SELECT tier, releases_left FROM dp_budget"
    whole = dict(db.execute(left))
    grant(db, share=9 * one(db, "SELECT rate / rate_limit FROM dp_tier WHERE name = 'public'"))
    assert questions_left(db) == {"visitors": 9}
    beside = dict(db.execute(left))
    assert whole["public"] - beside["public"] in (9, 10) and beside["clinic"] < whole["clinic"]
    clock.set("2026-03-01 12:00:00")
    assert dict(db.execute(left)) == beside
    with contextlib.closing(guarded(path, options=ASK)) as visitor:
        assert capacity(visitor) == 9
    assert questions_left(db) == {"visitors": 0} and dict(db.execute(left)) == beside
    clock.set("2027-03-01 12:00:00")
    assert dict(db.execute(left)) == whole
    with contextlib.closing(guarded(path, options=ASK)) as visitor:
        assert capacity(visitor, first=100) == 0
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_grant_at_a_middle_tier_stops_releases_at_outer_tiers(copy):
    """Outer releases are paid by the tiers inside, so they stop when a grant holds all of a middle tier's budget. A grant holds
    nothing at outer tiers."""
    db = connect(copy)
    grant(db, tier="region", share=1 - 1e-9)
    assert {tier for (tier,) in db.execute("SELECT tier FROM dp_reserve")} == {"clinic", "region"}
    left = dict(db.execute("SELECT tier, releases_left FROM dp_budget"))
    assert left["clinic"] > 0 and left["region"] == left["public"] == 0
    assert "tier 'region' would exceed its budget" in outcome(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"late\",\"clip\":1}')")


def test_a_grant_that_an_inner_tier_cannot_carry_is_refused(copy):
    db = connect(copy)
    with contextlib.suppress(sqlite3.Error):
        for i in range(1000):
            release(db, "clinic", f"inner-{i}")
    error = refused(db, "SELECT dp_grant('visitors', 'public', 1)")
    assert re.match(r"dp_grant: tier '\w+' inside it pays for every answer, and has only .* \(take a smaller share\)", error)
    assert db.execute("SELECT count(*) FROM dp_grant").fetchall() == db.execute("SELECT count(*) FROM dp_reserve").fetchall() == [(0,)]


def sums(path):
    """Returns {tier: (limit of the tier, total of all charges, [(amount reserved, amount spent) of each grant])}. The function
    adds up the charges exactly, in the unit of the tier's accountant."""
    ledger, found = ledger_of(path), {}
    for tier, limit, accountant in ledger.execute("SELECT name, rate_limit, accountant FROM dp_tier"):
        cost = {"pure": epsilon_of}.get(accountant, rate_of(ledger, tier))
        rows = ledger.execute("SELECT grant_name, rate, curve FROM dp_charge WHERE tier = ?", (tier,)).fetchall()
        paid = {}
        for name, rate, curve in rows:
            paid[name] = paid.get(name, 0) + cost(rate, curve)
        found[tier] = (Fraction(limit), sum(paid.values()), [(Fraction(reserved), paid.get(name, 0)) for name, reserved in ledger.execute(
            "SELECT grant_name, reserved FROM dp_reserve WHERE tier = ?", (tier,))])
    return found


def at_filter(curve):
    """Returns the RDP of a stored curve at the filter order of the tier."""
    return Fraction(struct.unpack("<115d", curve)[-1]) if curve else 0


def epsilon_of(rate, curve):
    assert rate == 0
    return at_filter(curve)


def rate_of(ledger, tier):
    order = ledger.execute("SELECT filter_order FROM dp_tier WHERE name = ?", (tier,)).fetchall()[0][0]
    return lambda rate, curve: Fraction(rate) + (at_filter(curve) / Fraction(order) if curve else 0)


# Tiers from the innermost to the outermost, with budgets for a few releases, and the mechanism of the releases.
LADDERS = {
    "rdp": ([("a", 0.05, 4.0, 1e-6), ("b", 0.02, 2.5, 1e-6), ("c", 0.01, 1.2, 1e-6)], {}),
    "gdp": ([("a", 0.05, 4.0, 1e-6, "gdp"), ("b", 0.02, 2.5, 1e-6, "gdp"), ("c", 0.01, 1.2, 1e-6, "gdp")], {}),
    "rdp in gdp in rdp": ([("a", 0.05, 4.0, 1e-6), ("b", 0.02, 3.0, 1e-6, "gdp"), ("c", 0.01, 1.2, 1e-6)], {}),
    "pure": ([("a", 0.5, 9.0, 0, "pure"), ("b", 0.2, 5.0, 0, "pure"), ("c", 0.1, 3.0, 0, "pure")], {"mechanism": "laplace"}),
    "rdp around pure": ([("a", 0.5, 25.0, 1e-6), ("b", 0.2, 5.0, 0, "pure"), ("c", 0.1, 3.0, 0, "pure")], {"mechanism": "laplace"}),
    "laplace at rdp": ([("a", 0.05, 4.0, 1e-6), ("b", 0.02, 2.5, 1e-6), ("c", 0.01, 1.2, 1e-6)], {"mechanism": "laplace"}),
}


@pytest.fixture(scope="module", params=LADDERS)
def ladder(request, tmp_path_factory):
    tiers, options = LADDERS[request.param]
    path = tmp_path_factory.mktemp("ladder") / "a.db"
    with contextlib.closing(connect(path)) as db:
        db.executescript("CREATE TABLE visit(patient INT); INSERT INTO visit VALUES (1), (2), (3)")
        db.execute("SELECT dp_init()").fetchall()
        db.execute("SELECT dp_protect('visit', 'patient')").fetchall()
        for tier in reversed(tiers):
            db.execute(f"SELECT dp_tier({', '.join('?' * len(tier))})", tier).fetchall()
    return path, options


@pytest.mark.sample(2)
def test_no_sequence_of_questions_exceeds_a_filter(ladder, tmp_path):
    """The owner and the holders of grants ask in random order, and new grants are made in between, until nothing fits any more.
    The sums of the charges in exact arithmetic never exceed a budget or a grant."""
    path, options = ladder
    for seed in range(6):
        chance, here = random.Random(seed), copy_of(path, tmp_path / f"{seed}.db")
        owner = connect(here)
        names, visitors, refusals = [("visitors", "c", 0.4), ("inner", chance.choice("ab"), 0.3), ("last", "b", 0.5)], {}, 0
        names.insert(chance.randrange(4), ("deep", "a", 0.3, {"diffuse": chance.choice([["b"], ["c"], ["b", "c"]])}))
        for step in range(60):
            who = chance.random()
            if who < 0.15 and names:
                name, tier, share, *diffuse = names.pop(0)
                with contextlib.suppress(sqlite3.Error):
                    grant(owner, name, tier, share, **dict(*diffuse))
                    visitors[name] = guarded(here, tier, {"ask": name}), tier
            try:
                if who < 0.6 or not visitors:
                    ask(owner, f"{step}", chance.choice("abc"), weight=chance.choice([1, 1, 0.3]), **options)
                else:
                    visitor, tier = visitors[chance.choice(sorted(visitors))]
                    ask(visitor, f"{step}", tier, weight=chance.choice([1, 1, 0.2]), **options)
            except sqlite3.Error as error:
                assert "too little left" in str(error) or "would exceed" in str(error), error
                refusals += 1
            may_go_on = not one(owner, "SELECT count(*) FROM dp_budget WHERE spent_epsilon > epsilon")
            for limit, total, grants in sums(here).values():
                assert all(paid <= reserved for reserved, paid in grants)
                # without a grant, a tier of the accountant 'rdp' may go on by its epsilons (test_two_orders.py)
                assert total + sum(reserved - paid for reserved, paid in grants) <= limit or not grants and may_go_on
            if refusals > 8:
                break
        assert one(owner, "SELECT dp_verify()") == "ok"
        for visitor, _ in visitors.values():
            visitor.close()
        owner.close()


# Each entry has a tier, the options of a grant of this tier, and grants of inner tiers. The inner grants also publish
# their answers at this tier or further out.
SIDES = [("public", {}, [("clinic", 0.3, ["public"])]), ("public", {}, [("region", 0.2, ["public"]), ("clinic", 0.4, ["public"])]),
         ("region", {}, [("clinic", 0.3, ["region"])]), ("region", {"diffuse": ["public"]}, [("clinic", 0.3, ["region", "public"])]),
         ("region", {"diffuse": ["public"]}, [("clinic", 0.5, ["public"])])]


@pytest.mark.parametrize("tier, options, inner", SIDES)
def test_what_inner_grants_hold_does_not_change_a_grant(published, tmp_path, tier, options, inner):
    found = []
    for grants in ([], inner):
        path = copy_of(published, tmp_path / f"{len(found)}.db")
        db = connect(path)
        for i, (own, share, diffuse) in enumerate(grants):
            grant(db, f"inner-{i}", own, share, diffuse=diffuse)
        grant(db, tier=tier, share=0.3, **options)
        with contextlib.closing(guarded(path, tier, ASK)) as visitor:
            seen = [outcome(visitor, statement) for statement in (
                "SELECT * FROM dp_grant", "SELECT * FROM dp_reserve", "SELECT * FROM dp_budget", f"SELECT dp_plan('{tier}', 'count', 1)")]
            found.append((seen, capacity(visitor, tier=tier), outcome(visitor, "SELECT * FROM dp_reserve")))
        assert one(db, "SELECT dp_verify()") == "ok"
        for limit, total, held in sums(path).values():
            assert total + sum(reserved - paid for reserved, paid in held) <= limit
    assert found[0] == found[1] and found[0][1] > 5


def test_a_grant_that_does_not_fit_beside_inner_grants_is_refused(copy):
    db = connect(copy)
    grant(db, "inner", "clinic", 0.5, diffuse=["public"])
    before = db.execute("SELECT * FROM dp_reserve").fetchall()
    error = refused(db, "SELECT dp_grant('visitors', 'public', 0.6)")
    assert re.fullmatch(r"dp_grant: grants of inner tiers hold a part of what is left at tier 'public', which has only [\d.]+ of the "
                        r"[\d.]+ left that this share needs \(take a smaller share\)", error)
    assert "hold a part of what is left at tier 'region'" in refused(
        db, "SELECT dp_grant('visitors', 'region', 0.6, '{\"diffuse\":[\"public\"]}')")
    assert db.execute("SELECT * FROM dp_reserve").fetchall() == before and one(db, "SELECT count(*) FROM dp_grant") == 1
    grant(db, share=0.4)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_a_new_inner_tier_reserves_what_grants_hold(copy):
    db = connect(copy)
    grant(db, share=0.5)
    with contextlib.closing(guarded(copy, options=ASK)) as visitor:
        ask(visitor, "before")
    one(db, "SELECT dp_tier('board', 0.09, 20.0, 1e-6)")
    reserves = dict(db.execute("SELECT tier, reserved - spent FROM dp_reserve"))
    assert reserves["board"] == pytest.approx(reserves["clinic"], rel=1e-9)
    with contextlib.closing(guarded(copy, options=ASK)) as visitor:
        assert capacity(visitor) > 5
    assert one(db, "SELECT dp_verify()") == "ok"
    assert "grant 'visitors' reserves" in refused(db, "SELECT dp_drop_tier('board')")
    for limit, total, grants in sums(copy).values():
        assert total + sum(reserved - paid for reserved, paid in grants) <= limit


# ---- two processes, and crashes ------------------------------------------------------------------------


def test_two_processes_share_one_grant(copy):
    db = connect(copy)
    grant(db, share=0.5)
    (reserved,) = db.execute("SELECT reserved FROM dp_reserve WHERE tier = 'public'").fetchall()[0]
    code = """
        db = connect(sys.argv[1])
        one(db, "SELECT dp_guard('public', ?)", '{"ask":"visitors"}')
        made = 0
        try:
            for i in range(1000):
                one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', ?)", '{"name":"%s %d","clip":1}' % (sys.argv[2], i))
                made += 1
        except sqlite3.Error as error:
            assert "too little left" in str(error), error
        print(made)
    """
    processes = [start(code, copy, name) for name in ("left", "right")]
    made = [int(process.communicate(timeout=PATIENCE)[0]) for process in processes]
    assert sum(made) == int(reserved / 0.002 * (1 + 1e-9))
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_process_leaves_whole_grants_and_payments(copy, seed):
    code = """
        db, chance = connect(sys.argv[1]), __import__("random").Random(int(sys.argv[2]))
        print("ready", flush=True)
        for i in range(1000):
            one(db, "SELECT dp_grant(?, 'public', 0.05)", f"grant {i}")
            visitor = connect(sys.argv[1])
            one(visitor, "SELECT dp_guard('public', ?)", '{"ask":"grant %d"}' % i)
            for j in range(2):
                try:
                    one(visitor, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', ?)", '{"name":"%d","clip":1}' % j)
                except sqlite3.Error:
                    pass
            visitor.close()
    """
    process = start(code, copy, seed)
    process.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.002, 0.06))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    db = connect(copy)
    assert one(db, "SELECT dp_verify()") == "ok"
    tiers = db.execute("SELECT g.name, count(r.tier) FROM dp_grant g LEFT JOIN dp_reserve r ON grant_name = name GROUP BY 1").fetchall()
    assert all(count == 3 for _, count in tiers)
    for limit, total, grants in sums(copy).values():
        assert total + sum(reserved - paid for reserved, paid in grants) <= limit


# ---- asking --------------------------------------------------------------------------------------------


def test_questions_under_a_grant(copy):
    db = connect(copy)
    grant(db)
    visitor = guarded(copy, options=ASK)
    rows = visitor.execute("SELECT key, release, tier FROM dp_answer('public', 'group_count', 'SELECT ward FROM visit',"
                           " '{\"name\":\"by ward\",\"keys\":[\"north\",\"south\"],\"clip\":1}')").fetchall()
    assert rows == [("north", "visitors/by ward", "public"), ("south", "visitors/by ward", "public")]
    assert one(visitor, "SELECT count(*) FROM dp_value WHERE release = 'visitors/by ward'") == 2
    assert "the options must name the release" in refused(visitor, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"clip\":1}')")
    for tier in ("clinic", "region", "nobody"):
        assert refused(visitor, f"SELECT dp_release('{tier}', 'count', 'SELECT 1 FROM visit', '{{\"name\":\"x\",\"clip\":1}}')") == (
            "dp_release: tier must be 'public' (this connection asks under grant 'visitors')")
        assert "tier must be 'public'" in refused(visitor, f"SELECT dp_plan('{tier}', 'count', 1)")
        assert "tier must be 'public'" in refused(visitor, f"SELECT dp_plan('[{{\"tier\":\"{tier}\",\"kind\":\"count\",\"clip\":1}}]')")
    for options in ('{"name":"total","refine":true,"clip":100}', '{"name":"by ward","refine":true,"clip":1}'):
        assert "refine is the owner's" in refused(visitor, "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visit', ?)", options)
    assert "steps must be at most 10000 on" in refused(visitor, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"s\",\"steps\":1e9,\"clip\":1}')")
    assert "neither protected nor public" in refused(visitor, "SELECT dp_release('public', 'count', 'SELECT 1 FROM secret', '{\"name\":\"x\",\"clip\":1}')")
    assert "dp_diffuse: this connection is guarded" in refused(visitor, "SELECT dp_diffuse('visitors/by ward', 'public')")
    assert "planning, and dp_release, dp_answer and dp_plan at this tier" in refused(visitor, "SELECT dp_discard('visitors/by ward')")
    assert refused(visitor, "SELECT minutes FROM visit").startswith("the rows of table 'visit' are protected (ask about them: SELECT display FROM dp_answer(")


def test_a_plan_shows_nothing_of_inner_tiers(copy):
    grant(connect(copy))
    visitor = guarded(copy, options=ASK)
    plan = json.loads(one(visitor, "SELECT dp_plan('public', 'count', 1)"))
    assert [tier["tier"] for tier in plan["tiers"]] == ["public"] and "releases_left" not in plan["tiers"][0]
    assert "clinic" not in json.dumps(plan)


def test_names_belong_to_the_grant(copy):
    db = connect(copy)
    grant(db)
    visitor = guarded(copy, options=ASK)
    assert "dp_grant lists them" in refused(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visit', '{\"name\":\"visitors/x\",\"clip\":1}')")
    for name in ("inner", "total"):  # the owner has these names, too
        assert isinstance(ask(visitor, name), float)
    assert one(db, "SELECT count(*) FROM dp_release WHERE name IN ('inner', 'visitors/inner')") == 2
    assert "exists with other parameters" in refused(visitor, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"inner\",\"clip\":2}')")
    release(db, "clinic", "group/a")
    assert "begins with 'group/'" in refused(db, "SELECT dp_grant('group', 'public', 0.1)")
    assert "name must have 1 to 64 letters" in refused(db, "SELECT dp_grant('a/b', 'public', 0.1)")
    assert isinstance(one(db, "SELECT dp_diffuse('visitors/inner', 'public')"), float)  # the owner may do this
    grant(db, "others", share=0.5)
    other = guarded(copy, options={"ask": "others"})
    assert ask(other, "inner") != ask(visitor, "inner")


def test_answers_are_also_published_where_the_grant_says(copy):
    db = connect(copy)
    grant(db, tier="clinic", share=0.2, diffuse=["public"])
    assert {tier for (tier,) in db.execute("SELECT tier FROM dp_reserve")} == {"clinic", "region", "public"}
    visitor = guarded(copy, "clinic", ASK)
    ask(visitor, "a", "clinic")
    ask(visitor, "a", "clinic")
    assert visitor.execute("SELECT tier FROM dp_publication WHERE release = 'visitors/a' ORDER BY rate DESC").fetchall() == [
        ("clinic",), ("public",)]
    assert one(db, "SELECT count(*) FROM dp_charge WHERE release = 'visitors/a'") == 3  # a charge for each tier, before the draw
    assert one(db, "SELECT count(*) FROM dp_charge WHERE release = 'visitors/a' AND tier = 'public'") == 1
    assert "release = 'x'" not in refused(visitor, "SELECT dp_release('clinic', 'choice', 'SELECT ward FROM visit',"
                                          " '{\"name\":\"c\",\"candidates\":[\"north\"]}')")
    plan = json.loads(one(visitor, "SELECT dp_plan('clinic', 'count', 1)"))
    assert all(tier["pays"] > 0 for tier in plan["tiers"]) and len(plan["tiers"]) == 3
    assert capacity(visitor, tier="clinic") > 0
    assert one(db, "SELECT dp_verify()") == "ok"
    assert "must list tiers outside 'region'" in refused(db, "SELECT dp_grant('x', 'region', 0.1, '{\"diffuse\":[\"clinic\"]}')")


def test_the_limits_of_a_grant(copy):
    owner = connect(copy)
    owner.execute("CREATE TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n")
    one(owner, "SELECT dp_public('n')")
    grant(owner, seconds=0.4, steps=1e9, bytes=2e6, share=0.9)
    visitor = guarded(copy, options=ASK)
    for limit, most in (("seconds", 0.5), ("steps", 1.5e9), ("bytes", 3e6)):
        assert f"{limit} must be at most " in outcome(visitor, f"SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{{\"name\":\"x\",\"{limit}\":{most},\"clip\":1}}')")
    assert one(visitor, "SELECT sum(charges) FROM dp_reserve") == 0
    begun = time.process_time()
    error = outcome(visitor, "SELECT dp_release('public', 'sum', 'SELECT count(*) FROM visit, n AS a, n AS b, n AS c', '{\"name\":\"x\",\"clip\":9}')")
    assert "seconds" in error and time.process_time() - begun < 4  # without the limit, hours
    assert one(visitor, "SELECT sum(charges) FROM dp_reserve") == 1
    # A unit beyond the bytes contributes nothing: about one unit in a hundred, the others are counted.
    grant(owner, "others", seconds=6000, steps=1e9, bytes=2e6, share=0.9)
    other = guarded(copy, options={"ask": "others"})
    assert 0 <= ask(other, "long", query="SELECT length(group_concat(hex(zeroblob(iif(patient = 7, 900000, 9))))) > 0 FROM visit", kind="sum") < 300


WAITS = """
    import ctypes, time
    sys.path.insert(0, sys.argv[3])
    from guard_helpers import guarded, outcome
    forward = ctypes.CDLL(None).clock_forward
    forward.argtypes = [ctypes.c_int64]
    visitors, work, found = {}, [], []
    for grant, statement, takes in json.loads(sys.argv[2]):
        if grant not in visitors:
            visitors[grant] = guarded(sys.argv[1], options={"ask": grant})
            # While a question runs, the extension looks for an interrupt with this statement. Meanwhile the clock goes on.
            visitors[grant].set_trace_callback(lambda text: forward(work.pop()) if work and "LIMIT 300" in text else None)
        work[:] = [takes]
        begun = time.monotonic()
        seen = outcome(visitors[grant], statement)
        found.append([round(1000 * (time.monotonic() - begun)), seen, work == []])
    print(json.dumps(found))
"""


@pytest.mark.plain  # a sanitizer must be the first library that is loaded
def test_answers_return_after_1_2_4_times_the_pad(copy, tmp_path, monkeypatch):
    """The clock of this process moves only when the extension waits, and while a question works (waits.c)."""
    owner = connect(copy)
    owner.execute("CREATE TABLE n AS SELECT value AS x FROM json_each('[' || substr(replace(hex(zeroblob(500)), '0', ',1'), 2) || ']')")
    one(owner, "SELECT dp_public('n')")
    grant(owner, "short", pad_ms=60, steps=1e9, share=0.4)
    grant(owner, "long", pad_ms=700, seconds=2, steps=1e9, share=0.4)
    one(owner, "SELECT dp_grant('usual', 'public', 0.4, '{\"steps\":1e9}')")

    def ask_(name, sql="SELECT count(*) FROM visit JOIN (SELECT 1 FROM n AS a, n AS b LIMIT 4000)"):
        return f"SELECT dp_release('public', 'sum', '{sql}', '{{\"name\":\"{name}\",\"clip\":1}}')"
    pads = {"short": 60, "long": 700, "usual": 500}
    worked = [(name, ask_(f"{pad} {takes}"), takes, pad * 2 ** max(0, math.ceil(math.log2(takes / pad))))
              for name, pad in pads.items() for takes in (1, pad - 1, pad, pad + 1, 2 * pad, 2 * pad + 1) if takes < 1950]
    worked += [("short", ask_(f"far {takes}"), takes, wait) for takes, wait in ((250, 480), (1000, 1920), (9000, 15360))]
    late = [("long", ask_("late", "SELECT count(*) FROM visit, n AS a, n AS b, n AS c, n AS d"), 2100, 2800)]  # the limit is 2 seconds
    quick = [("short", statement, 0, wait) for statement, wait in (
        (ask_("60 1"), 60), (ask_("x", "SELECT 1 FROM nosuch"), 60), ("SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visit', '{\"name\":\"b\",\"clip\":1}')", 60),
        ("SELECT dp_plan('public', 'count', 1)", 60), ("SELECT value IS NULL FROM dp_answer('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"c\",\"clip\":1}')", 60),
        ("SELECT count(*) FROM dp_value", 0), ("SELECT count(*) FROM ward", 0), ("SELECT dp_discard('x')", 0))]
    monkeypatch.setenv("LD_PRELOAD", library(tmp_path, "waits.c"))
    tried = worked + late + quick
    for (name, statement, takes, wait), (waited, seen, did) in zip(tried, json.loads(run(WAITS, copy, json.dumps([t[:3] for t in tried]), HELPERS))):
        assert waited == wait and (did or takes == 0), (name, statement, takes, wait, waited, seen)
        assert "took longer than its limit of 2 seconds (the charge stays)" in seen if takes == 2100 else takes == 0 or isinstance(seen, list), seen


@pytest.mark.parametrize("how", ["mode=ro", "immutable=1", "query_only"])
def test_a_grant_is_spent_on_a_read_only_connection(copy, how):
    grant(connect(copy))
    db = connect(copy) if how == "query_only" else connect(f"file:{copy}?{how}", uri=True)
    if how == "query_only":
        db.execute("PRAGMA query_only = 1")
    assert "cannot write its database" in refused(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"x\",\"clip\":1}')")
    before = open(copy, "rb").read()
    assert one(db, "SELECT dp_guard('public', ?)", json.dumps(ASK)) == "public"
    assert isinstance(ask(db, "x"), float)
    assert "guarded" in refused(db, "SELECT dp_discard('visitors/x')")
    assert open(copy, "rb").read() == before
    assert one(connect(copy), "SELECT dp_verify()") == "ok"


def test_arguments_of_grants(copy):
    db = connect(copy)
    for call, error in {"'g', 'public', 0": "share must be a number in (0, 1e+09]",
                        "'g', 'public', 1.5": "share must be a whole number of questions, or a share below 1 of what is left",
                        "'g', 'public', 1000": "tier 'public' has budget left for ",
                        "'a/b', 'public', 0.5": "name must have 1 to 64 letters", "'a b', 'public', 0.5": "name must have 1 to 64 letters",
                        f"'{65 * 'a'}', 'public', 0.5": "name must have 1 to 64 letters", "'ä', 'public', 0.5": "name must have 1 to 64",
                        "'g', 'public', 0.5, '{\"seconds\":0}'": "seconds must be a number in (0, 86400]",
                        "'g', 'public', 0.5, '{\"steps\":1}'": "steps must be", "'g', 'public', 0.5, '{\"bytes\":2e6, \"steps\":1000.5}'": "steps must be a whole number",
                        "'g', 'public', 0.5, '{\"bytes\":\"1e6 or so\"}'": "bytes must be",
                        "'g', 'nobody', 0.5": "unknown tier", "NULL, 'public', 0.5": "name must be a text",
                        "'g', 'public', 0.5, '{\"pad_ms\":0.5}'": "pad_ms must be", "'g', 'public', 0.5, '{\"pad\":5}'": "unknown option",
                        "'g', 'public', 0.5, '{\"diffuse\":[]}'": "diffuse must be a JSON array",
                        "'g', 'public', 0.5, '{\"diffuse\":[1]}'": "diffuse must be a JSON array",
                        "'g', 'public', 0.5, '{\"diffuse\":\"public\"}'": "diffuse must be a JSON array",
                        "'g', 'clinic', 0.5, '{\"diffuse\":[\"nobody\"]}'": "unknown tier"}.items():
        assert error in refused(db, f"SELECT dp_grant({call})"), call
    grant(db)
    for options, error in {'{"ask":"nobody"}': "unknown grant", '{"ask":1}': "ask must be the name of a grant",
                           '{"as":"visitors"}': "unknown option"}.items():
        assert error in refused(db, "SELECT dp_guard('public', ?)", options), options
    assert "grant 'visitors' is of tier 'public', not 'clinic'" in refused(db, "SELECT dp_guard('clinic', '{\"ask\":\"visitors\"}')")
    assert one(db, "SELECT count(*) FROM visit") == 400  # the refused calls have not set a guard


def test_an_edited_grant_is_noticed(copy):
    db = connect(copy)
    grant(db)
    with contextlib.closing(guarded(copy, options=ASK)) as visitor:
        ask(visitor, "a")
    for edit in ("UPDATE dp_reserve SET reserved = reserved * 2", "UPDATE dp_reserve SET spent_high = 0 WHERE tier = 'public'",
                 "UPDATE dp_grant SET share = 0.9", "DELETE FROM dp_reserve WHERE tier = 'clinic'",
                 "UPDATE dp_grant SET tier = 'clinic'", "UPDATE dp_grant SET seconds = 99", "UPDATE dp_grant SET questions = 5",
                 "INSERT INTO dp_grant VALUES ('g', 'public', 1, NULL, NULL, 1, 1, 1, 1, '')"):
        backup = open(f"{copy}-ledger", "rb").read()
        with contextlib.closing(ledger_of(copy)) as ledger:
            ledger.execute(edit)
        assert one(connect(copy), "SELECT dp_verify()") != "ok", edit
        assert "damaged" in refused(connect(copy), "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"mine\",\"clip\":1}')"), edit
        with open(f"{copy}-ledger", "wb") as ledger:
            ledger.write(backup)
    assert one(connect(copy), "SELECT dp_verify()") == "ok"


# ---- nothing but the answers is shown --------------------------------------------------------------------


# A cell that is a number, a number as dp_value.display writes it, or JSON of such numbers.
NUMBER = re.compile(r"'?[-−(\d][-−\d,.±()×^ toe+]*'?")
QUESTIONS = [
    "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"a\",\"clip\":1}')",
    "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visit', '{\"name\":\"b\",\"clip\":100}')",
    "SELECT dp_release('public', 'avg', 'SELECT minutes FROM visit WHERE patient = 7', '{\"name\":\"c\",\"lo\":0,\"hi\":9}')",
    "SELECT dp_release('public', 'sum', 'SELECT abs(-9223372036854775807 - (patient = 7)) FROM visit', '{\"name\":\"d\",\"clip\":9}')",
    "SELECT dp_release('public', 'sum', 'SELECT json(patient) FROM visit', '{\"name\":\"e\",\"clip\":9}')",
    "SELECT dp_release('public', 'sum', 'SELECT x FROM secret', '{\"name\":\"f\",\"clip\":9}')",
    "SELECT dp_release('public', 'sum', 'SELECT nothing FROM visit', '{\"name\":\"g\",\"clip\":9}')",
    "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visit', '{\"name\":\"inner\",\"clip\":3}')",
    "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visit', '{\"name\":\"total\",\"clip\":3}')",
    "SELECT dp_release('public', 'sum', 'SELECT count(*) FROM dp_value', '{\"name\":\"h\",\"clip\":3}')",
    "SELECT key, value FROM dp_answer('public', 'group_count', 'SELECT ward FROM visit', '{\"name\":\"i\",\"keys\":[\"north\",\"west\"],\"clip\":1}')",
    "SELECT dp_plan('public', 'count', 1)", "SELECT dp_plan('public', 'count', 1, '{\"name\":\"inner\"}')",
    "SELECT dp_plan('[{\"tier\":\"public\",\"kind\":\"count\"},{\"tier\":\"public\",\"kind\":\"count\"}]')",
    "SELECT dp_plan('public', 'count', 1, '{\"half_width\":0.1}')", "SELECT dp_plan('clinic', 'count', 1)",
] + [f"SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{{\"name\":\"q{i}\",\"clip\":1}}')" for i in range(60)]


def asked(path):
    """Runs all statements on a guarded connection. Returns each with its result, in which noisy numbers are replaced by x."""
    seen = []
    with contextlib.closing(guarded(path, options=ASK)) as db:
        for statement in QUESTIONS + READ + [s for s in REFUSED if "dp_release" not in s and "dp_plan" not in s and "dp_answer" not in s]:
            got = outcome(db, statement)
            noisy = statement.startswith("SELECT dp_release") or "dp_answer" in statement or "dp_value" in statement
            if noisy and not isinstance(got, str):  # the text of an error is not changed
                got = [tuple("x" if NUMBER.fullmatch(cell) else cell for cell in row) for row in got]
            seen.append((statement, got))
    return seen


def test_what_a_grant_shows_does_not_depend_on_one_person_or_inner_tiers(published, tmp_path):
    left, person, inner = (copy_of(published, tmp_path / f"{name}.db") for name in ("left", "person", "inner"))
    for path in (left, person, inner):
        grant(connect(path), share=0.5)
    owner = connect(person)
    owner.execute("DELETE FROM visit WHERE patient = 7")
    owner = connect(inner)
    with contextlib.suppress(sqlite3.Error):
        for i in range(1000):
            release(owner, "clinic", f"more {i}")
    one(owner, "SELECT dp_discard('inner')")
    owner.execute("SELECT dp_tier('board', 0.09, 20, 1e-6)").fetchall()
    grant(owner, "staff", "board", 0.1)
    expected = asked(left)
    assert sum("too little left" in str(got) for _, got in expected) > 3  # the statements use up the grant
    for path in (person, inner):
        found = [(s, a, b) for (s, a), (_, b) in zip(expected, asked(path)) if a != b]
        assert mend(found, left, path) == []


@pytest.mark.parametrize("accountant", ["rdp", "gdp", "pure"])
def test_a_plan_says_whether_a_question_fits(path, accountant):
    """Under a grant with something left, with too little and with nothing, also where the owner has spent the rest of the budget: dp_plan
    answers, and says that 0 such releases fit exactly if the release is refused. The plan changes nothing."""
    random_of, seen = random.Random(accountant), {True: 0, False: 0}
    db = connect(path)
    db.executescript("CREATE TABLE visit(patient INT, x REAL); INSERT INTO visit VALUES (1, 2), (2, 3)")
    for call in ("init()", f"tier('inner', 0.1, 14, {0 if accountant == 'pure' else 1e-6}, '{accountant}')",
                 f"tier('public', 0.02, 6, {0 if accountant == 'pure' else 1e-6}, '{accountant}')", "protect('visit', 'patient')"):
        one(db, "SELECT dp_" + call)
    noise = "laplace" if accountant == "pure" else "gaussian"
    for number in range(6):
        one(db, "SELECT dp_grant(?, 'public', ?, '{\"pad_ms\":1}')", f"g{number}", random_of.choice([1, 0.1, 0.05]))
    for number in range(6):
        guest, questions = guarded(path, options={"ask": f"g{number}"}), 0
        while seen[False] < 4 * (number + 1) and questions < 60:
            kind, weight = random_of.choice(["count", "sum", "avg"]), random_of.choice([0.1, 0.3, 0.5, 1])
            options = {"mechanism": noise, "weight": weight, **({"lo": 0, "hi": 5} if kind == "avg" else {"clip": 2}), "name": f"q{questions}"}
            query, questions = "SELECT 1 FROM visit" if kind == "count" else "SELECT x FROM visit", questions + 1
            reserved = db.execute("SELECT * FROM dp_reserve").fetchall()
            plan = json.loads(one(guest, "SELECT dp_plan('public', ?, NULL, ?)", kind, json.dumps({**options, "sql": query})))
            assert plan["half_width"] is None or plan["half_width"] > 0
            assert db.execute("SELECT * FROM dp_reserve").fetchall() == reserved
            fits = "0 such releases fit into the grant: too little of it is left" not in plan["summary"]
            assert fits == ("no more such release fits" in plan["summary"] or "more such release" in plan["summary"]), plan
            try:
                one(guest, "SELECT dp_release('public', ?, ?, ?)", kind, query, json.dumps(options))
                asked = True
            except sqlite3.Error as error:
                assert "too little left" in str(error)
                asked = False
            assert asked == fits, (plan["summary"], options)
            seen[fits] += 1
        guest.close()
        with contextlib.suppress(sqlite3.Error):  # the owner spends from the rest
            for i in range(random_of.choice([0, 3, 100])):
                one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', ?)", json.dumps({"clip": 1, "mechanism": noise, "name": f"own {number} {i}"}))
    assert min(seen.values()) > 6 and one(db, "SELECT dp_verify()") == "ok"
