"""Tests what dp_plan() says in units of the answer. The half-widths of averages, spreads and quantiles are compared with the
intervals of real releases, and so are the weights for given half-widths. The number of releases that still fit is compared with
the number that can really be made."""

import json
import math

import mpmath
import pytest

from conftest import connect, INIT, make_ledger, one, refused

LO, HI, ROWS = 10.0, 50.0, 60000
BOUNDS = {"lo": LO, "hi": HI}


def books(tiers, *, row="row", adjacency="add-remove"):
    db = connect(":memory:")
    db.execute("CREATE TABLE t(k, unit)")
    db.execute("INSERT INTO t VALUES ('a', 1)")
    make_ledger(db, json.dumps({"protects": row, "adjacency": adjacency}), "t, unit" if row == "unit" else "t")
    for tier in tiers:
        one(db, f"SELECT dp_tier({', '.join('?' * len(tier))})", *tier)
    return db


def plan(db, kind, options, tier="t"):
    return json.loads(one(db, "SELECT dp_plan(?, ?, NULL, ?)", tier, kind, json.dumps(options)))


def half_widths(db, kind, query, options):
    """Releases a query at tier 't', and returns the half-widths of the intervals of its values. An interval ends at an end of the
    range, so the longer side counts."""
    one(db, "SELECT dp_release('t', ?, ?, ?)", kind, query, json.dumps(options))
    is_tree = kind in ("median", "quantile")
    return [(high - low) / 2 if is_tree else max(high - value, value - low) for value, low, high in db.execute(
        "SELECT value, low, high FROM dp_value WHERE release_id = (SELECT max(id) FROM dp_release)")]


def rows(x, columns=""):
    """Returns a query of ROWS rows. Row number i has the value of x, an SQL expression of i."""
    return f"SELECT {columns}{x} FROM n"


EVENLY = f"{LO} + (i + 0.5) / {ROWS} * {HI - LO}"
AT_THE_END = f"{HI} + i * 0"
IN_THREE_LEAVES = f"{LO} + (i + 0.5) / {ROWS} * 0.75 * {HI - LO}"  # of four; the median is in the middle of a leaf


@pytest.mark.parametrize("kind,options,query,ratio", [
    ("avg", BOUNDS, rows(AT_THE_END), 1), ("avg", BOUNDS, rows(EVENLY), math.sqrt(5)),  # exact at an end of the range
    ("var", BOUNDS, rows(EVENLY), math.sqrt(6.5) / math.hypot(1 / 6, 1 / 2)),
    ("stddev", BOUNDS, rows(EVENLY), math.sqrt(6.5) / math.hypot(1 / 6, 1 / 2)),
    ("ou_avg", {**BOUNDS, "radius": 20, "centre": HI}, rows(AT_THE_END), 1),
    ("median", {**BOUNDS, "bins": 4, "mechanism": "gaussian"}, rows(IN_THREE_LEAVES), 1),  # one leaf, with hardly any noise
    ("quantile", {**BOUNDS, "q": 0.375, "bins": 4, "mechanism": "gaussian"}, rows(EVENLY), 1),
    ("vec_avg", {"dim": 2, "clip": 3}, rows("json_array(3, 0 * i)"), None),
    ("count", {"clip": 1}, rows("i"), 1), ("sum", {"clip": 5}, rows("i"), 1), ("histogram", {**BOUNDS, "bins": 8, "clip": 1}, rows(EVENLY), 1),
    ("group_count", {"clip": 1, "keys": ["0", "1", "2", "3"]}, rows("i % 4"), 1),
    ("group_avg", {**BOUNDS, "keys": ["0", "1", "2", "3"]}, rows(AT_THE_END, "i % 4, "), 1),
    ("group_var", {**BOUNDS, "keys": ["0", "1", "2", "3"]}, rows(EVENLY, "i % 4, "), math.sqrt(6.5) / math.hypot(1 / 6, 1 / 2)),
])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.sample(12)
def test_a_planned_half_width_is_that_of_the_release(kind, options, query, ratio, mechanism):
    """Compares planned half-widths with those of releases. There are 60,000 rows and little noise, so the published half-widths
    have errors below 1%."""
    if mechanism == "laplace" and kind.startswith("ou_"):
        pytest.skip("the noise of OU kinds is Gaussian")
    db = books([("t", 0.5, 50.0, 1e-6)])
    options = {**options, **({"mechanism": "laplace"} if mechanism == "laplace" else {})}
    db.execute(f"CREATE TABLE n AS WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS - 1}) SELECT i FROM n")
    one(db, "SELECT dp_protect('n')")
    planned = plan(db, kind, {**options, "rows": ROWS})["half_width"]
    for got in half_widths(db, kind, query, options)[:1 if kind == "vec_avg" else None]:
        assert planned >= got * 0.98
        if ratio and (ratio == 1 or mechanism == "gaussian"):  # a `ratio` other than 1 holds for Gaussian noise only
            assert planned == pytest.approx(ratio * got, rel=0.02)


def test_the_number_of_groups_stands_for_the_groups():
    """With the option for the number of groups, a plan for public keys is the same as if this number of keys were
    listed. For private keys, the plan divides the rows evenly among the groups."""
    db = books([("t", 0.5, 50.0, 1e-6, "rdp", 1e-7)], row="unit")
    keys = [str(i) for i in range(12)]
    for kind, more in (("group_count", {"clip": 1}), ("group_sum", {"clip": 2}), ("group_avg", BOUNDS)):
        listed, counted = (plan(db, kind, {**more, "keys": k, "rows": 1200}) for k in (keys, 12))
        assert listed == counted
    per_group = plan(db, "avg", {**BOUNDS, "rows": 100})["half_width"]
    assert plan(db, "group_avg", {**BOUNDS, "keys": keys, "rows": 1200})["half_width"] == pytest.approx(per_group, rel=1e-4)
    few, many = (plan(db, "group_avg", {**BOUNDS, "max_groups": 2, "keys": k, "rows": 1200})["half_width"] for k in (10, 40))
    assert many == pytest.approx(4 * few, rel=1e-12)
    assert "rows needs keys" in refused(db, "SELECT dp_plan('t', 'group_avg', NULL, ?)", json.dumps({**BOUNDS, "rows": 9}))
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


@pytest.mark.parametrize("wish", [1.0, 3.7, 250.0])
@pytest.mark.parametrize("kind,options", [
    ("avg", BOUNDS), ("var", BOUNDS), ("stddev", BOUNDS), ("median", BOUNDS), ("quantile", {**BOUNDS, "q": [0.25, 0.75]}),
    ("vec_avg", {"dim": 3, "clip": 2}), ("group_avg", {**BOUNDS, "keys": 7}), ("count", {"clip": 1, "mechanism": "laplace"}), ("sum", {"clip": 4})])
def test_a_half_width_finds_the_least_weight(kind, options, wish):
    db = books([("t", 0.01, 50.0, 1e-6)])
    options = {**options, "rows": 5000}
    wanted = plan(db, kind, options)["half_width"] * wish * (1 + 1e-12)
    found = plan(db, kind, {**options, "half_width": wanted})
    assert wanted * (1 - (1e-4 if kind == "median" else 1e-6)) <= found["half_width"] <= wanted and found["weight"] <= 1
    assert plan(db, kind, {**options, "weight": found["weight"]})["half_width"] == found["half_width"]
    if wish > 1:
        assert plan(db, kind, {**options, "weight": found["weight"] * (1 - 1e-4)})["half_width"] > wanted or kind == "median"
    assert "half_width must be at least" in refused(
        db, "SELECT dp_plan('t', ?, NULL, ?)", kind, json.dumps({**options, "half_width": wanted / wish * 0.99}))


@pytest.mark.parametrize("option", [{"rows": 0}, {"rows": 1.5}, {"rows": "many"}, {"rows": True}, {"rows": None}, {"keys": 0},
                                    {"keys": -1}, {"keys": 2.5}, {"keys": 2**40}, {"unit": 5}, {"unit": ""}])
def test_guesses_that_cannot_be_are_refused(option):
    db = books([("t", 0.01, 50.0, 1e-6)])
    message = refused(db, "SELECT dp_plan('t', 'group_avg', NULL, ?)", json.dumps({**BOUNDS, "keys": 3, **option}))
    assert f"{next(iter(option))} must be" in message


def test_a_release_takes_no_guesses():
    db = books([("t", 0.01, 50.0, 1e-6)])
    for option in ({"rows": 5}, {"unit": "days"}):
        assert "unknown option" in refused(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM t', ?)", json.dumps(option))
    assert "keys must be a JSON array" in refused(
        db, "SELECT dp_release('t', 'group_count', 'SELECT 1', '{\"keys\":3,\"clip\":1}')")


# ---- the sentence -------------------------------------------------------------------------------


@pytest.mark.parametrize("width,unit,shown", [
    (0.2083, "days", "±0.21 days"), (0.21, "days", "±0.21 days"), (0.9999, None, "±1.00"), (1.04, "h", "±1.1 h"), (9.51, None, "±9.6"),
    (64.14, None, "±65"), (1233.2, "minutes", "±1,234 minutes"), (0.00123, None, "±0.0013")])
def test_the_half_width_in_the_sentence_is_rounded_up(width, unit, shown):
    db = books([("t", 100.0, 500.0, 1e-6)])
    options = {"half_width": width, "clip": width / 9}
    planned = plan(db, "sum", {**options, **({"unit": unit} if unit else {})})
    assert planned["summary"].startswith(f"{shown} around the sum (95% of the noise); ")
    assert float(shown.split()[0][1:].replace(",", "")) >= planned["half_width"] * (1 - 1e-9)


@pytest.mark.parametrize("kind,options,words", [
    ("count", {"clip": 1}, "around the count"), ("group_avg", {**BOUNDS, "keys": 3, "rows": 99}, "around each average"),
    ("median", {**BOUNDS, "rows": 99}, "around the median"), ("quantile", {**BOUNDS, "q": 0.1, "rows": 99}, "around each quantile"),
    ("stddev", {**BOUNDS, "rows": 99}, "around the standard deviation"), ("ou_sum", {"clip": 1, "radius": 99}, "around the sum"),
    ("histogram", {**BOUNDS, "bins": 3, "clip": 1}, "around each count"), ("avg", BOUNDS, None), ("choice", {"candidates": ["a", "b"]}, None)])
def test_the_sentence_names_the_value(kind, options, words):
    summary = plan(books([("t", 0.1, 50.0, 1e-6)]), kind, options)["summary"]
    of = "draws" if kind in ("median", "quantile") else "noise"
    of += ", if the rows are spread evenly" * (kind in ("median", "quantile", "stddev")) + "; the figure will have no interval" * (of == "draws")
    assert f" {words} (95% of the {of}); " in summary if words else "±" not in summary and ("95%" in summary) == (kind == "choice")
    assert ('would show how accurate' in summary) == (kind == "avg")  # its noise depends on how many rows there are
    assert summary.endswith("more such releases fit into the budget")


@pytest.mark.parametrize("adjacency,steps", [("add-remove", 1), ("replace", 2)])
@pytest.mark.parametrize("count", [1, 3, 500])
def test_the_plan_of_a_choice_says_how_often_it_is_wrong(adjacency, steps, count):
    """One category has `count_error` units, the others have none. Then the exponential mechanism draws another with at most 5%."""
    db = books([("t", 0.02, 50.0, 1e-6)], adjacency=adjacency)
    options = {"candidates": [str(i) for i in range(count)]}
    drawn = plan(db, "choice", options)
    weight = math.exp(drawn["epsilon"] / steps * drawn["count_error"])
    assert weight == pytest.approx(20 * count, rel=1e-9) and (count - 1) / (weight + count - 1) < 0.05
    assert drawn["summary"].startswith(f"a category with at most {math.floor(drawn['count_error']):,} fewer than the most common one (95% of the draws); ")
    assert drawn["epsilon"] == pytest.approx(math.sqrt(8 * 0.02), rel=1e-6)
    response = plan(db, "choice", {**options, "mechanism": "response"})
    assert response["probability"] == pytest.approx(math.exp(response["epsilon"]) / (math.exp(response["epsilon"]) + count - 1), rel=1e-9)
    assert response["summary"].startswith(f"the most common category in {100 * response['probability']:.3g}% of the draws; ")


@pytest.mark.parametrize("count", [1, 3, 500])
def test_the_plan_of_a_flip_says_how_often_it_is_wrong(count):
    """All other categories are `count_error` units behind. The law is that of the integral in ext/categories/categories.c, by mpmath."""
    db = books([("t", 0.2 + math.expm1(-0.2), 50.0, 0, "pure")])
    drawn = plan(db, "choice", {"candidates": [str(i) for i in range(count)]})
    assert drawn["mechanism"] == "permute-and-flip" and drawn["epsilon"] == pytest.approx(0.2, rel=1e-6)
    accepted = math.exp(-drawn["epsilon"] * drawn["count_error"])
    assert accepted * count == pytest.approx(0.1, rel=1e-9)
    wrong = (count - 1) * accepted * mpmath.quad(lambda t: (1 - t) * (1 - t * accepted)**max(count - 2, 0), [0, 1])
    assert (0.9 if count > 1 else 0) * 0.05 * (count - 1) / count <= wrong <= 0.05


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip", "response"])
def test_the_plan_of_a_choice_that_exists_says_nothing_of_a_draw(mechanism):
    db, options = books([("t", 0.02, 50.0, 1e-6)]), {"name": "c", "candidates": ["a", "b"], "mechanism": mechanism}
    one(db, "SELECT dp_release('t', 'choice', 'SELECT k FROM t', ?)", json.dumps(options))
    again = plan(db, "choice", options)
    assert not {"count_error", "probability"} & set(again) and "draws" not in again["summary"], again


@pytest.mark.parametrize("kind,options,dimension", [("ou_count", {"clip": 1, "centre": 40}, 1), ("ou_sum", {"clip": 10}, 1),
                                                    ("ou_group_count", {"clip": 1, "keys": 5, "centre": -7.5}, 5)])
def test_the_sentence_says_how_far_the_value_moves(kind, options, dimension):
    """A value x becomes centre + A (x - centre), A = R^2/(R^2 + d tau), for Gaussian noise of variance tau = clip^2/(2 rate)."""
    db, tau = books([("t", 0.1, 50.0, 1e-6)]), options["clip"]**2 / 0.2
    for radius in (5, 20, 9999):
        moves = dimension * tau / (radius**2 + dimension * tau)
        said = f" (95% of the noise), which is moved {100 * moves:.3g}% of the way to {options.get('centre', 0):g}; "
        summary = plan(db, kind, {**options, "radius": radius})["summary"]
        assert said in summary if radius < 9999 else "moved" not in summary and "noise); " in summary


def test_the_sentence_says_how_far_an_average_moves():
    """OU with theta and rho scales by (1 + theta tau/rho^2)^(-1/2), where tau is the variance of this average. A radius only clamps."""
    db = books([("t", 0.1, 50.0, 1e-6)])
    options = {**BOUNDS, "theta": 0.5, "rho": 0.5, "rows": 500}
    planned = plan(db, "ou_avg", options)
    moves = 1 - (1 + 0.5 * planned["sigma"]**2 / 0.25)**-0.5
    assert moves > 0.01 and f", which is moved {100 * moves:.3g}% of the way to {(BOUNDS['lo'] + BOUNDS['hi']) / 2:g}; " in planned["summary"]
    assert "moved" not in plan(db, "ou_avg", {**BOUNDS, "radius": 1, "rows": 500})["summary"]


@pytest.mark.parametrize("period,now,named", [
    ("year", "2026-07-15", "2026"), ("quarter", "2026-07-15", "quarter 3 of 2026"), ("month", "2026-12-31", "December 2026"),
    ("week", "2026-07-15", "the week from 2026-07-13"), ("day", "2026-07-15", "2026-07-15")])
def test_the_sentence_names_the_period(clock, period, now, named):
    clock.set(f"{now} 12:00:00")
    db = connect(":memory:")
    one(db, INIT)
    one(db, "SELECT dp_tier('t', dp_rate(1.0, 1e-6, 60), 1.0, 1e-6, ?)", json.dumps({"period": period, "accountant": "gdp"}))
    assert plan(db, "count", {"clip": 1})["summary"] == f"±65 around the count (95% of the noise); then 59 more such releases fit into {named}"


def repeat(db, times, kind, tier, options):
    """Makes the release `times` times, and checks that one more is refused."""
    query = "SELECT k FROM t"
    for _ in range(times):
        one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, query, json.dumps(options))
    assert "would exceed its" in refused(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, query, json.dumps(options))


@pytest.mark.parametrize("tier,kind,options", [
    (("t", 0.001, 1.0, 1e-6, "gdp"), "count", {"clip": 1}), (("t", 0.001, 1.0, 1e-6), "count", {"clip": 1, "weight": 0.7}),
    (("t", 0.005, 1.0, 1e-6), "count", {"clip": 1, "mechanism": "laplace"}), (("t", 0.005, 1.0, 0, "pure"), "count", {"clip": 1, "mechanism": "laplace"}),
    (("t", 0.0001, 1.0, 1e-6, "rdp", 4e-7), "group_count", {"clip": 1, "max_groups": 1, "key_share": 0.15}),
    (("t", 0.0005, 1.0, 0, "pure"), "choice", {"candidates": ["a", "b"]})])
def test_as_many_more_releases_fit_as_the_sentence_says(tier, kind, options):
    """Makes releases one after the other until one is refused. The limit is the rate, a curve, pure epsilon, or delta for
    keys."""
    db = books([tier], row="unit")
    for before in (0, 3):
        for _ in range(before):
            one(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM t', '{\"weight\":0.3,\"mechanism\":\"laplace\",\"clip\":1}')"
                if tier[-1] == "pure" else "SELECT dp_release('t', 'count', 'SELECT 1 FROM t', '{\"weight\":0.3,\"clip\":1}')")
        more = plan(db, kind, options)["summary"].split("; ")[-1].split()[1]
    assert int(more) >= 5
    repeat(db, int(more) + 1, kind, "t", options)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_the_sentence_counts_down_to_none():
    db = books([("t", 0.01, 1.0, 1e-6)])
    said = []
    for _ in range(2):
        said.append(plan(db, "count", {"clip": 1})["summary"].split("; ")[1])
        one(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM t', '{\"clip\":1}')")
    assert said == ["then 1 more such release fits into the budget", "then no more such release fits into the budget"]


def test_the_sentence_names_the_tier_that_limits():
    """The outer tier has room for more releases, but the inner tier also pays for each of them and has less room."""
    db = books([("in", 0.004, 1.0, 1e-6)], row="unit")
    one(db, "SELECT dp_tier('out', 0.001, 9.0, 1e-6)")
    summary = plan(db, "count", {"clip": 1}, "out")["summary"]
    assert summary.endswith("then 23 more such releases fit into the budget (tier 'in')")
    repeat(db, 24, "count", "out", {"clip": 1})


def test_a_plan_of_what_is_paid_costs_nothing_more():
    db = books([("t", 0.01, 1.0, 1e-6)])
    one(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM t', '{\"name\":\"a\",\"clip\":1}')")
    assert plan(db, "count", {"clip": 1, "name": "a"})["summary"].endswith("; no tier pays for it")


def test_a_batch_has_a_sentence_of_its_own():
    db = books([("t", 0.001, 1.0, 1e-6)], row="unit")
    planned = json.loads(one(db, "SELECT dp_plan(?)", json.dumps([{"tier": "t", "kind": "count", "clip": 1}] * 5)))
    assert planned["summary"] == "then 3 more such batches fit into the budget (tier 't')"
    repeat(db, 24, "count", "t", {"clip": 1})
