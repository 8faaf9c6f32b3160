"""Tests dp_report() without a browser: its bytes, its data, and what it must not reveal."""

import datetime
import hashlib
import json
import math
import pathlib
import re
import shutil
import sqlite3

import pytest

from conftest import add_tiers, connect, create, INIT, make_ledger, one, refused
from pages import block, figures, hospital, hostile, HOSTILE, report, Text, WARDS, words

pytestmark = pytest.mark.alarm(0)

COLUMNS = "release, tier, key, component, value, stddev, low, high, display, label"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "clinic.db"
    hospital(path, months=3).close()
    return path


@pytest.mark.parametrize("tier", [None, "clinic", "region", "public"])
def test_the_data_are_the_rows_of_dp_value(clinic, tier):
    db = connect(clinic)
    page = report(db, tier)
    rows = figures(page)
    if tier:
        guarded = connect(clinic)
        one(guarded, "SELECT dp_guard(?)", tier)
        want = guarded.execute(f"SELECT {COLUMNS} FROM dp_value").fetchall()
        assert report(guarded) == page == report(guarded, tier)
    else:
        want = db.execute(f"SELECT {COLUMNS} FROM dp_value").fetchall()
    assert [list(row) for row in rows] == [COLUMNS.split(", ")] * len(want)
    assert [tuple(row.values()) for row in rows] == sorted(want) and len(want) > 20
    assert {row["tier"] for row in rows} == {None: {"clinic", "region", "public"}, "clinic": {"clinic", "region", "public"},
                                            "region": {"region", "public"}, "public": {"public"}}[tier]
    # The hash on the page is that of the data block, and the text of the page shows every figure.
    assert re.search(r"<code>([0-9a-f]{64})</code>", page)[1] == hashlib.sha256(block(page).encode()).hexdigest()
    words = Text(page).words
    for row in rows:
        assert row["display"] in words and row["release"] in words


@pytest.mark.parametrize("lo,hi,bins,labels", [
    (2459580.5, 2459640.5, 4, ["below 2459595.5", "2459595.5 to 2459610.5", "2459610.5 to 2459625.5", "2459625.5 and more"]),
    (0, 6e6, 3, ["below 2000000", "2000000 to 4000000", "4000000 and more"]), (0, 1, 3, ["below 0.333333", "0.333333 to 0.666667", "0.666667 and more"])])
def test_the_bins_of_a_histogram_have_their_edges(lo, hi, bins, labels):
    """Julian days have more digits than six, and bins of half a month differ in the last ones."""
    db = connect()
    db.execute("CREATE TABLE t(unit, x)")
    make_ledger(db, "{}", "t, unit")
    one(db, "SELECT dp_tier('in', 1, 1e3, 1e-6)")
    one(db, "SELECT dp_release('in', 'histogram', 'SELECT x FROM t', ?)", json.dumps({"name": "h", "clip": 1, "lo": lo, "hi": hi, "bins": bins}))
    said = report(db)
    assert [label.strip() for label in re.findall(r"<th[^>]*>(?:<bdi>)?([^<]*)", said) if " to " in label or "below" in label or "more" in label] == labels


def test_the_same_ledger_gives_the_same_bytes(clinic, tmp_path):
    pages = [report(connect(clinic), "region") for _ in range(2)]
    db = connect(clinic)
    db.execute("PRAGMA query_only = ON")
    pages += [report(db, "region"), report(connect(f"file:{clinic}?mode=ro", uri=True), "region")]
    for suffix in ("", "-ledger"):
        shutil.copy(f"{clinic}{suffix}", tmp_path / f"other.db{suffix}")
    pages.append(report(connect(tmp_path / "other.db"), "region"))
    assert len(set(pages)) == 1
    before = pathlib.Path(f"{clinic}-ledger").read_bytes()
    report(connect(clinic))
    assert pathlib.Path(f"{clinic}-ledger").read_bytes() == before  # dp_report() charges and stores nothing


def test_what_inner_tiers_do_does_not_change_a_byte(path):
    """The pages for region and public do not change with what happens at inner tiers: releases, refinements, failures, discards
    and new tiers."""
    db = create(path)
    rows = "SELECT minutes FROM visits"
    one(db, "SELECT dp_release('region', 'count', ?, '{\"name\":\"known\",\"clip\":1}')", rows)
    one(db, "SELECT dp_diffuse('known', 'public')")
    one(db, "SELECT dp_release('public', 'group_count', ?, ?)", rows, '{"name":"groups","keys":[0,1,2,3],"clip":1}')
    one(db, "SELECT dp_release('public', 'count', ?, '{\"clip\":1}')", rows)  # unnamed
    before = {tier: report(db, tier) for tier in ("region", "public")}
    owner = report(db)
    one(db, "SELECT dp_release('clinic', 'sum', ?, ?)", rows, '{"name":"inner secret","clip":10}')
    one(db, "SELECT dp_release('clinic', 'count', ?, ?)", rows, '{"name":"known","refine":true,"clip":1}')
    one(db, "SELECT dp_release('clinic', 'count', ?, '{\"clip\":1}')", rows)
    one(db, "SELECT dp_release('clinic', 'count', ?, '{\"name\":\"gone\",\"clip\":1}')", rows)
    one(db, "SELECT dp_discard('gone')")
    refused(db, "SELECT dp_release('clinic', 'sum', 'SELECT abs(-9223372036854775807 - 1), 1', ?)", '{"name":"failed","clip":1}')
    add_tiers(db, [("ward", 0.5, 100.0, 1e-6)])
    assert {tier: report(db, tier) for tier in before} == before
    assert report(db) != owner and "inner secret" in report(db) and "ward" in report(db)
    assert "clinic" not in before["region"]
    assert "region" not in before["public"] and "clinic" not in before["public"]
    # Control: the pages do show a new release at an outer tier.
    one(db, "SELECT dp_release('public', 'count', ?, '{\"name\":\"another\",\"clip\":1}')", rows)
    assert report(db, "public") != before["public"] and "another" in report(db, "region")


@pytest.mark.parametrize("tier", [None, *HOSTILE[:7]], ids=range(8))
def test_hostile_names_stay_text(tier, hostile_db):
    page = report(hostile_db, tier)
    text = Text(page)
    assert [tag for tag, _ in text.tags].count("script") == 1 and ("script", {"type": "application/json", "id": "dp_value"}) in text.tags
    assert {tag for tag, _ in text.tags} <= {"html", "meta", "title", "style", "body", "header", "p", "h1", "h2", "h3", "main", "bdi", "b",
                                            "h4", "ul", "li", "div", "section", "svg", "path", "strong", "span", "table", "thead", "tbody", "tr", "th", "td",
                                            "small", "dl", "dt", "dd", "code", "script"}
    assert not [a for _, attributes in text.tags for a in attributes if a.startswith("on") or a in ("src", "href", "srcset", "action")]
    for name in HOSTILE[:7 if tier is None else 0] + HOSTILE:
        assert name in text.words
    rows = figures(page)
    assert {row["release"] for row in rows} == {*HOSTILE, "</table>"} and {row["key"] for row in rows} == {"", *HOSTILE}
    assert "<" not in block(page) and ">" not in block(page)


@pytest.fixture(scope="module")
def hostile_db(tmp_path_factory):
    db = hostile(tmp_path_factory.mktemp("hostile") / "a.db")
    yield db
    db.close()


def test_nothing_comes_from_elsewhere(clinic):
    page = report(connect(clinic))
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<link|<img|<iframe|<object|<embed|javascript:|\bon[a-z]+=", page)
    assert "default-src 'none'" in page


def test_200_releases_at_three_tiers_are_a_page_of_200_kB(tmp_path):
    db = create(tmp_path / "a.db", tiers=[("clinic", 0.004, 80.0, 1e-6), ("region", 0.001, 50.0, 1e-6), ("public", 0.0002, 30.0, 1e-6)])
    for i in range(200):
        one(db, "SELECT dp_release('clinic', 'count', 'SELECT minutes FROM visits', json_object('name', ?, 'clip', 1))", f"visits {i}")
        for tier in ("region", "public"):
            one(db, "SELECT dp_diffuse(?, ?)", f"visits {i}", tier)
    size = len(report(db).encode())
    assert 100_000 < size < 200_000, size
    assert len(report(db, "public").encode()) < 90_000


# ---- what the page says ---------------------------------------------------------------------------


def test_what_was_public_when_read_is_named(tmp_path):
    db = connect(tmp_path / "a.db")
    db.execute("CREATE TABLE visit(patient, ward)")
    db.execute("CREATE TABLE staff(ward, patient)")
    db.execute("INSERT INTO visit VALUES (1, 'a')")
    one(db, "SELECT dp_init()")
    one(db, "SELECT dp_protect('visit', 'patient')")
    one(db, "SELECT dp_public('staff')")
    add_tiers(db)
    one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit JOIN staff USING (ward)', '{\"name\":\"early\",\"clip\":1}')")
    assert "public when read" not in words(db, "public").lower()
    one(db, "SELECT dp_protect('staff', 'patient')")
    assert "Public when read, protected now early read staff while that table was public" in words(db, "public")


@pytest.mark.parametrize("options,said", [
    ('{"unit":"patient"}', "Each patient is protected. Every figure on this page has random noise, which limits how well anybody can"
     " tell whether the rows of any one patient are in the data."),
    ('{"unit":"patient","adjacency":"replace"}', "tell what the rows of any one patient say."),
    ('{"protects":"row"}', "Each row is protected."), ('{"protects":"row","adjacency":"replace"}', "tell what any one row says.")])
def test_whose_privacy_is_protected(path, options, said):
    db = connect(path)
    one(db, "SELECT dp_init(?)", options)
    add_tiers(db)
    assert said in words(db, "public")


def test_how_often_a_guess_is_right(path):
    """Compares the bound on the page, for each tier, with the worst pair of distributions for (epsilon, delta): the data set is
    revealed with probability delta, and otherwise by randomized response with epsilon."""
    db = create(path, tiers=[(f"t{i}", 0.5 / 2**i, epsilon, delta) for i, (epsilon, delta) in enumerate(
        [(60.0, 1e-6), (20.0, 1e-3), (8.0, 1e-6), (3.0, 1e-9), (1.6, 1e-2)])])
    found = re.findall(r"ε = ([\d.]+), δ = (1 in )?([\d.,e-]+)\.? A best guess is right in at most ([\d.]+) of 100 cases", words(db))
    assert len(found) == 5
    for epsilon, one_in, delta, guess in found:
        e, d = float(epsilon), (1 / float(delta.replace(",", "")) if one_in else float(delta))
        attained = 100 * (d + (1 - d) * math.exp(e) / (1 + math.exp(e)))
        assert attained - 1e-9 <= float(guess) <= attained + 0.0101
        assert float(guess) < 100 or attained > 100 - 1e-8


def test_the_interval_has_its_name(clinic):
    said = words(connect(clinic), "public")
    assert "interval of the noise" in said and said.count("interval of the error") == said.count("not the interval of the error") == 1


def test_budgets_and_their_history(path):
    """The shares that are spent and left add up to 100%, and the bar has the length of the spent share."""
    db = create(path)
    for i in range(20):
        one(db, "SELECT dp_release('region', 'count', 'SELECT 1 FROM visits', json_object('name', ?, 'clip', 1))", f"r{i}")
    page = report(db, "region")
    spent, left = map(float, re.findall(r"Spent: ([\d.]+)%.*?Left: ([\d.]+)%", page)[0])
    rate, limit = db.execute("SELECT spent_rate, rate_limit FROM dp_budget JOIN dp_tier ON name = tier WHERE tier = 'region'").fetchone()
    assert spent == pytest.approx(100 * rate / limit, rel=6e-3) and spent >= 100 * rate / limit * 0.995
    assert spent + left == pytest.approx(100, abs=0.1)
    bar = float(re.search(r"class=p1 d=\"M0 4H([\d.]+)\"", page)[1])
    assert bar == pytest.approx(300 * spent / 100, rel=1e-2)
    assert "more releases" in report(db) and "more releases" not in page  # this number depends on the budgets of inner tiers


def test_the_share_of_laplace_noise_is_that_of_its_epsilons(path):
    """Three of six releases that together have the tier's epsilon are half of the budget, not three of the four that fit at the
    filter order."""
    db = create(path, tiers=[])
    one(db, "SELECT dp_tier('t', dp_rdp_laplace(1, 1/6.0, 1), 1, 1e-6)")
    for i in range(3):
        one(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM visits', ?)", json.dumps({"name": f"r{i}", "clip": 1, "mechanism": "laplace"}))
    spent, left = map(float, re.findall(r"Spent: ([\d.]+)%.*?Left: ([\d.]+)%", report(db, "t"))[0])
    assert spent == pytest.approx(50, abs=0.3) and spent + left == pytest.approx(100, abs=0.1)


def test_a_grant_takes_the_limit_of_the_epsilons_away(path):
    """Beside a grant, Laplace noise is admitted at the filter order alone, so the share is that of this order."""
    db = create(path, tiers=[])
    one(db, "SELECT dp_tier('t', dp_rdp_laplace(1, 1/6.0, 1), 1, 1e-6)")
    one(db, "SELECT dp_grant('g', 't', 0.001)")
    for i in range(3):
        one(db, "SELECT dp_release('t', 'count', 'SELECT 1 FROM visits', ?)", json.dumps({"name": f"r{i}", "clip": 1, "mechanism": "laplace"}))
    share = one(db, "SELECT 3 * dp_rdp_laplace(filter_order, 1/6.0, 1) / filter_order / rate_limit FROM dp_tier")
    spent = float(re.search(r"Spent: ([\d.]+)%", report(db, "t"))[1])
    assert spent == pytest.approx(100 * share, abs=0.3) and spent > 60


def test_a_report_does_not_show_grants_of_inner_tiers(tmp_path):
    """Such a grant reserves an amount at the outer tier, but the members of this tier do not know it."""
    found = []
    for grant in (0, 1):
        db = create(tmp_path / f"{grant}.db", tiers=[])
        one(db, "SELECT dp_tier('in', 4, 200, 1e-6, 'rdp')")
        one(db, "SELECT dp_tier('out', 2, 12, 1e-6, 'rdp')")
        one(db, "SELECT dp_release('out', 'count', 'SELECT 1 FROM visits', '{\"name\":\"a\",\"clip\":1,\"mechanism\":\"laplace\"}')")
        if grant:
            one(db, """SELECT dp_grant('g', 'in', 0.05, '{"diffuse":["out"]}')""")
        found.append(re.search(r"Spent: ([\d.]+)%", report(db, "out"))[1])
    assert found[0] == found[1]


def test_periods(tmp_path):
    db = create(tmp_path / "a.db", tiers=[])
    one(db, "SELECT dp_tier('public', 0.0002, 1.0, 1e-6, ?)", '{"period":"month"}')
    one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visits', '{\"name\":\"r\",\"clip\":1}')")
    said = words(db, "public")
    assert re.search(r"ε = 1, δ = 1 in 1,000,000 in each month\. A best guess is right in at most 73\.11 of 100 cases\. Spent: ", said)
    assert re.search(r"These figures are for the period from \d{4}-\d\d-01 until before \d{4}-\d\d-01\.", said)


def history(page):
    """Returns the first day of the line that shows the budget over time, and its corners: (days since the first day, share
    spent). The function reads them from the path in the page."""
    ((path, first, last),) = re.findall(r'aria-label="Budget spent over time">.*?class=p1 d="M0 63(.*?)H300"/></svg>\n<div class=ends>'
                                        r"<span>(.*?)</span><span>(.*?)</span>", page)
    days = (datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)).days
    x, corners = 0, []
    for letter, number in re.findall(r"([HV])([\d.]+)", path):
        x = float(number) if letter == "H" else x
        if letter == "V":
            corners.append((round(x / 300 * days), (63 - float(number)) / 62))
    return datetime.date.fromisoformat(first), corners


def test_the_history_of_a_budget(path, clock):
    """The corners of the line are the totals of dp_charge at the end of each day with a charge."""
    clock.set("2026-01-10 08:00:00")
    db = create(path)
    days = ["2026-01-10", "2026-01-10", "2026-01-31", "2026-03-01", "2026-12-24"]
    for i, day in enumerate(days):
        clock.set(f"{day} 12:00:00")
        one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visits', json_object('name', ?, 'clip', 1))", f"r{i}")
    first, corners = history(report(db, "public"))
    rate, limit = db.execute("SELECT (SELECT sum(rate) FROM dp_charge WHERE tier = 'public') / 5, rate_limit FROM dp_tier"
                             " WHERE name = 'public'").fetchone()
    want = [((datetime.date.fromisoformat(day) - first).days, count * rate / limit)
            for day, count in (("2026-01-10", 2), ("2026-01-31", 3), ("2026-03-01", 4), ("2026-12-24", 5))]
    assert first == datetime.date(2026, 1, 10) and [day for day, _ in corners] == [day for day, _ in want]
    assert [share for _, share in corners] == pytest.approx([share for _, share in want], abs=3e-3)


def test_the_history_starts_anew_in_each_period_and_the_clock_changes_no_page(tmp_path, clock):
    clock.set("2026-01-10 08:00:00")
    db = create(tmp_path / "a.db", tiers=[])
    one(db, "SELECT dp_tier('public', 0.0005, 1.0, 1e-6, ?)", '{"period":"month"}')
    for i, day in enumerate(["2026-01-10", "2026-01-20", "2026-02-03", "2026-03-15"]):
        clock.set(f"{day} 12:00:00")
        one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visits', json_object('name', ?, 'clip', 1))", f"r{i}")
    page = report(db, "public")
    _, corners = history(page)
    share = corners[0][1]
    assert [day for day, _ in corners] == [0, 10, 24, 24, 64, 64]
    assert [s for _, s in corners] == pytest.approx([share, 2 * share, 0, share, 0, share], abs=4e-3) and share > 0.01
    said = re.sub(r"\s+", " ", Text(page).words)
    assert "All 3 months so far: ε = " in said and "period from 2026-03-01 until before 2026-04-01" in said
    clock.set("2026-08-01 00:00:00")
    assert report(db, "public") == page == report(connect(tmp_path / "a.db"), "public")


def test_kinds_have_words(clinic):
    said = words(connect(clinic))
    for word in ("rows, at most ", "average, values outside ", "median, values outside ", " count in the first or last bin, at most ",
                 "rows in each group, at most ", " in each group, values outside ", "sum, from "):
        assert word in said
    for ward in WARDS:
        assert ward in said


def headings(page):
    return re.findall(r"<h3>(.*?)<small>", page)


def test_what_the_owner_chooses_for_a_page(tmp_path):
    db = hospital(tmp_path / "a.db", months=2)
    before, inner = report(db, "public"), report(db, "region")
    chosen = {"title": "Visits <2025>", "publisher": "Clinic & Co", "note": "One.\nTwo \"three\".", "order": ["visits by ward", "minutes", "visits"]}
    page = one(db, "SELECT dp_report('public', ?)", json.dumps(chosen))
    assert "<title>Visits &lt;2025&gt;</title>" in page and "<h1>Visits &lt;2025&gt;</h1>" in page and "<p class=over>Clinic &amp; Co</p>" in page
    assert "<p class=note>One.\nTwo &quot;three&quot;.</p>" in page
    assert headings(page) == ["visits by ward", "minutes", "visits", *(h for h in headings(before) if h not in chosen["order"])] and len(headings(page)) == 6
    assert page.index("<h3>visits<small>") < page.index("<thead><tr><th>Release")  # what has no place in the order comes later
    assert block(page) == block(before) and report(db, "region") == inner and one(db, "SELECT dp_verify()") == "ok"
    # The options stay, also for members of the tier, who cannot change them. The same options write nothing.
    seals = one(db, "SELECT dp_certificate()")
    assert page == report(connect(tmp_path / "a.db"), "public") == one(db, "SELECT dp_report('public', ?)", json.dumps(chosen))
    assert one(db, "SELECT dp_certificate()") == seals and json.loads(one(db, "SELECT options FROM dp_page")) == chosen
    guarded = connect(tmp_path / "a.db")
    one(guarded, "SELECT dp_guard('public')")
    assert report(guarded) == page and one(guarded, "SELECT count(*) FROM dp_page") == 1
    assert "only the owner may choose" in refused(guarded, "SELECT dp_report('public', '{}')")
    for options, said in (('{"titel":"x"}', "unknown option 'titel' (did you mean 'title'?"), ('{"order":"minutes"}', "order must be a JSON array"),
                          ('{"order":["visit"]}', "order has a name of which this tier sees no release (did you mean 'visits'?"),
                          ('{"order":["minutes for the clinic only"]}', "order has a name of which this tier sees no release"),
                          ('{"title":3}', "title must be a text"), ('{"note":""}', "note must be a text"), (None, "options must be a JSON object")):
        assert said in refused(db, "SELECT dp_report('public', ?)", options)
    assert report(db, "public") == page
    assert one(db, "SELECT dp_report('public', '{}')") == report(db, "public") == before
    assert one(db, "SELECT dp_report('public', ?)", '{"order":[],"note":"N"}') != before and one(db, "SELECT options FROM dp_page") == '{"note":"N","order":[]}'
    assert one(db, "SELECT dp_report('public', '{}')") == before
    # The owner's page of all tiers has a title and an order of its own, which no audience sees.
    every = report(db)
    assert "<h1>All tiers</h1>" in every and one(db, "SELECT dp_report(NULL)") == every
    mine = one(db, "SELECT dp_report(NULL, '{\"title\":\"Our year\",\"order\":[\"visits by ward\"]}')")
    assert "<h1>Our year</h1>" in mine and mine == report(db)
    assert headings(mine)[0] == "visits by ward" != headings(every)[0] and "Our year" not in report(db, "public")
    assert db.execute("SELECT tier, json_extract(options, '$.title') FROM dp_page").fetchall() == [(None, "Our year")]
    again = connect(tmp_path / "a.db")
    one(again, "SELECT dp_guard('public')")
    assert again.execute("SELECT * FROM dp_page").fetchall() == [] and one(again, "SELECT dp_report(NULL)") == report(again)
    assert "only the owner may choose" in refused(again, "SELECT dp_report(NULL, '{}')")
    assert "<h1>All tiers</h1>" in one(db, "SELECT dp_report(NULL, '{}')") and one(db, "SELECT dp_verify()") == "ok"
    # A dropped tier leaves nothing for a new one of its name.
    one(db, "SELECT dp_tier('new', 0.0001, 0.5, 1e-6)")
    one(db, "SELECT dp_report('new', '{\"title\":\"old\"}')")
    one(db, "SELECT dp_drop_tier('new')")
    one(db, "SELECT dp_tier('new', 0.0001, 0.5, 1e-6)")
    assert "<h1>new</h1>" in report(db, "new") and one(db, "SELECT dp_verify()") == "ok"


def test_groups_have_the_order_of_their_keys(tmp_path):
    db = connect(tmp_path / "a.db")
    db.execute("CREATE TABLE t(u, k)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(i, "cab"[i % 3]) for i in range(300)])
    make_ledger(db, "{}", "t, u")
    one(db, "SELECT dp_tier('t', 1, 1e3, 1e-6)")
    for name, keys in (("given", ["c", "a", "b"]), ("numbers", [10, 9, 1]), ("sorted", ["a", "b", "c"])):
        one(db, "SELECT dp_release('t', 'group_count', 'SELECT k FROM t', ?)", json.dumps({"name": name, "clip": 1, "keys": keys}))
        table = re.search(rf"<h3>{name}<small>.*?<tbody>(.*?)</table>", report(db, "t"), re.S)[1]
        assert re.findall(r"<tr><th>([^<]*)<td>", table) == [str(key) for key in keys]


def test_a_heat_map(tmp_path):
    """Compares the shades with dp_value, at a tier where the small cells are lost in the noise."""
    db = connect(tmp_path / "a.db")
    db.execute("CREATE TABLE t(u, a, b)")
    size = {(a, b): (100 * i) ** 2 // 500 for i, (a, b) in enumerate((a, b) for a in "xyz" for b in (2, 1, 3))}
    cells = [cell for cell, count in size.items() for _ in range(count)]
    db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, *cell) for i, cell in enumerate(cells)])
    make_ledger(db, "{}", "t, u")
    for tier, rate in (("in", 0.001), ("out", 0.0001)):
        one(db, "SELECT dp_tier(?, ?, 1e3, 1e-6)", tier, rate)
    keys = [list(cell) for cell in size if cell != ("y", 1)]
    one(db, "SELECT dp_release('in', 'group_count', 'SELECT json_array(a, b) FROM t', ?)", json.dumps({"name": "map", "clip": 1, "keys": keys[::-1]}))
    one(db, "SELECT dp_diffuse('map', 'out')")
    tables = re.findall(r"<table class=m>\n(.*?)</table>", report(db), re.S)
    greys = 0
    for tier, table in zip(("in", "out"), tables, strict=True):
        assert re.findall(r"<th>(\d+)", table) == ["3", "1", "2"]  # in the order of the keys, which begin with z, 3
        rows = {tuple(json.loads(key)): (value, low, high, display) for key, value, low, high, display in db.execute(
            "SELECT key, value, low, high, display FROM dp_value WHERE tier = ?", (tier,))}
        most = max(value for value, *_ in rows.values())
        found = {}
        for a, line in re.findall(r"<tr><th>([xyz])(.*)", table):
            for shade, b, display in re.findall(r'<td(?: class=(\w+))? data-k="(\d)">([^<]*)', line):
                found[a, int(b)] = shade, display
        assert list(found) == [(a, b) for a in "zyx" for b in (3, 1, 2)] and found.pop(("y", 1)) == ("", "")
        for cell, (value, low, high, display) in rows.items():
            greys += low <= 0 <= high
            assert found[cell] == ("z" if low <= 0 <= high else f"h{int(max(0, min(9.99, 10 * value / most)))}", display)
    assert 1 <= greys < 16


def test_pages_of_empty_books(tmp_path):
    db = connect(tmp_path / "a.db")
    assert "dp_report: no privacy ledger" in refused(db, "SELECT dp_report()")
    one(db, INIT)
    assert "There is no tier yet." in words(db) and figures(report(db)) == []
    add_tiers(db)
    assert "Nothing has been published yet." in words(db, "public")
    assert "dp_report: unknown tier" in refused(db, "SELECT dp_report('village')")
    assert "dp_report: tier must be a text" in refused(db, "SELECT dp_report(5)")
    assert one(db, "SELECT dp_report(NULL) = dp_report()")
    memory = connect()
    one(memory, INIT)
    assert "There is no tier yet." in words(memory)


def test_a_guarded_connection_reports_its_own_tier_only(clinic):
    db = connect(clinic)
    one(db, "SELECT dp_guard('region')")
    assert "clinic" not in Text(report(db)).words
    assert "guarded for tier 'region'" in refused(db, "SELECT dp_report('clinic')")
    assert "guarded for tier 'region'" in refused(db, "SELECT dp_report('public')")


def test_books_that_do_not_verify_have_no_page(tmp_path):
    db = create(tmp_path / "a.db")
    one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visits', '{\"name\":\"r\",\"clip\":1}')")
    db.close()
    ledger = sqlite3.connect(tmp_path / "a.db-ledger")
    ledger.execute("UPDATE dp_value SET value = value + 1")
    ledger.commit()
    ledger.close()
    db = connect(tmp_path / "a.db")
    assert "dp_report: the ledger does not verify: dp_value" in refused(db, "SELECT dp_report()")
    assert refused(db, "SELECT dp_report('public')") == "dp_report: the ledger does not verify (dp_verify() shows the owner where)"


def test_an_interrupt_does_not_put_the_books_into_question(tmp_path):
    """Books of many rows take longer than the time after which the host is asked whether it is interrupted."""
    db = create(tmp_path / "clinic.db")
    one(db, "SELECT dp_histogram('public', minutes, 0, 10, 16384, '{\"clip\":1}') FROM visits")
    db.set_progress_handler(lambda: 1, 2000)
    assert refused(db, "SELECT dp_report('public')") == "dp_report: interrupted"
    db.set_progress_handler(None, 0)
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("more", [{}, {"eta": 0.01}, {"weight": 0.5}], ids=str)
def test_a_model_does_not_tell_the_rate_of_its_inner_tier(tmp_path, more):
    """As in test_export.py: ledgers that differ in the rate of the inner tier have the same page for the outer tier,
    except for the drawn values, their hash and the id of the ledger."""
    pages = []
    for inner in (0.9, 0.95, 1.0):
        db = connect(tmp_path / f"{inner}.db")
        db.execute("CREATE TABLE t(y, x)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(i % 2, json.dumps([i % 3 / 3, 0.5])) for i in range(200)])
        make_ledger(db, '{"protects":"row","adjacency":"replace"}', "t")
        one(db, "SELECT dp_tier('in', ?, 1e3, 1e-6)", inner)
        one(db, "SELECT dp_tier('out', 0.5, 1e3, 1e-6)")
        one(db, "SELECT dp_release('in', 'sgd', 'SELECT y, x FROM t', ?)",
            json.dumps({"name": "m", "loss": "logistic", "n": 200, "dim": 2, "clip": 1, "radius": 1, **more}))
        one(db, "SELECT dp_diffuse('m', 'out')")
        page = report(db, "out")
        rows = figures(page)
        assert [(row["stddev"], row["low"], row["high"]) for row in rows] == [(None, None, None)] * 2
        assert all(re.fullmatch(r"-?[\d.]+|-?[\d.]+ × 10\^-?\d+", row["display"]) for row in rows)
        for row in rows:
            page = page.replace(f"<td>{row['display']}<", "<td><")
        pages.append(re.sub(r"[0-9a-f]{32,64}|\d{4}-\d\d-\d\d", "", page.replace(block(page), "")))
    assert pages[1] == pages[0] == pages[2] and "coefficients of a model" in pages[0]
