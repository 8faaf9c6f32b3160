"""Tests what dp_report() says about questions that are asked again each month: trends, what the figures are, and what clipping
did."""

import json
import re

import pytest

from conftest import connect, one
from pages import block, figures, report, Text, words

pytestmark = pytest.mark.alarm(0)


def visits(path, tiers=(("clinic", 1e4), ("public", 1e3)), unit="patient"):
    """Makes a database with rates so large that there is hardly any noise."""
    db = connect(path)
    db.execute("CREATE TABLE visit(patient, month, ward, age, days)")
    db.executemany("INSERT INTO visit VALUES (?, ?, ?, ?, ?)",
                   [(i % 400, m, "AB"[i % 2], ("0-17", "18+")[i % 3 > 0], i % 9) for m in range(1, 13) for i in range(300 + 30 * m)])
    one(db, "SELECT dp_init(?)", json.dumps({"unit": unit}))
    one(db, "SELECT dp_protect('visit', 'patient')")
    for name, rate in tiers:
        one(db, "SELECT dp_tier(?, ?, 1e9, 1e-6)", name, rate)
    return db


def release(db, name, kind="count", sql="SELECT 1 FROM visit", diffuse=("public",), **options):
    clip = {"clip": 1} if kind == "count" else {}
    one(db, "SELECT dp_release('clinic', ?, ?, ?)", kind, sql, json.dumps({"name": name, **clip, **options}))
    for tier in diffuse:
        one(db, "SELECT dp_diffuse(?, ?)", name, tier)


def series(page):
    """Returns the titles of the series on a page, with the line below the title."""
    page = re.sub(r"<span class=k>([^<]*)</span>", r"\1", page)  # keeps a period on one line
    return re.findall(r"<h3>([^<]*)<small>([^<]*\d+ releases, [^<]*)</small></h3>\n(?=<div class=trends>|<h4>|<table)", page)


def charts(page):
    """Returns the charts of a page: (label, low end, high end, {color: points}, {color: intervals})."""
    found = []
    for label, low, high, paths in re.findall(
            r'<section class=trend><div class=ends><span>(.*?)</span><span>(.*?) to (.*?)</span></div><svg viewBox="0 0 300 72">(.*?)</svg>', page):
        low, high = (float(end.replace(",", "")) for end in (low, high))

        def value(y):
            return low + (high - low) * (71 - int(y)) / 70
        lines = {color: [(int(x), value(y)) for x, y in re.findall(r"(\d+) (\d+)", path)]
                 for color, path in re.findall(r'<path class=p(\d) d="(.*?)"/>', paths)}
        bars = {color: [(int(x), value(a), value(b)) for x, a, b in re.findall(r"M(\d+) (\d+)V(\d+)", path)]
                for color, path in re.findall(r'<path class="i p(\d)" d="(.*?)"/>', paths)}
        found.append((label, low, high, lines, bars))
    return found


@pytest.mark.parametrize("names,title,period", [
    (["visits 2025-01", "visits 2025-02"], "visits", "2025-01 to 2025-02"), (["2024-11: days", "2025-02: days"], "days", "2024-11 to 2025-02"),
    (["a (2024) b", "a (2025) b"], "a b", "2024 to 2025"), (["q 2025-Q1", "q 2025-Q4"], "q", "2025-Q1 to 2025-Q4"),
    (["2025-W07", "2025-W51"], "all", "2025-W07 to 2025-W51"), (["d 2025-01-31", "d 2025-02-01"], "d", "2025-01-31 to 2025-02-01"),
    (["x 2025-02", "x 2025-13"], None, None), (["x 2025", "x 2025-02"], None, None), (["x 12025-01", "x 12025-02"], None, None),
    (["visits 1", "visits 2"], None, None), (["v2025-01", "v2025-02"], None, None), (["ü 2025-01", "ü 2025-02"], "ü", "2025-01 to 2025-02"),
    (["glucose (mg/dL) 2025-01", "glucose (mg/dL) 2025-02"], "glucose (mg/dL)", "2025-01 to 2025-02"),
    (["a [2025-01]: b", "a [2025-02]: b"], "a b", "2025-01 to 2025-02"), (["a (b, 2025)", "a (b, 2026)"], "a (b)", "2025 to 2026"),
    (["a (2025, b)", "a (2026, b)"], "a (b)", "2025 to 2026"), (["(2025) a", "(2026) a"], "a", "2025 to 2026")])
@pytest.mark.sample(4)
def test_names_that_differ_in_their_period(path, names, title, period):
    db = visits(path)
    for i, name in enumerate(names):
        release(db, name, sql=f"SELECT 1 FROM visit WHERE month = {i + 1}", clip=1)
    found = series(report(db))
    ends = re.findall(r"</svg><div class=ends><span>(.*?)</span><span>(.*?)</span></div></section>", report(db))
    assert ends == ([] if title is None else [tuple(period.split(" to "))])
    assert found == ([] if title is None else [(title, f"rows, at most 1 of each patient · 2 releases, {period}")])
    assert all(name in words(db) for name in names)


@pytest.mark.parametrize("other", [{"clip": 3}, {"kind": "avg", "sql": "SELECT days FROM visit WHERE month = 2", "lo": 0, "hi": 9},
                                   {"sql": "SELECT days FROM visit WHERE month = 2"}])
def test_other_questions_are_no_series(path, other):
    db = visits(path)
    release(db, "visits 2025-01", sql="SELECT 1 FROM visit WHERE month = 1")
    release(db, "visits 2025-02", **{"sql": "SELECT 1 FROM visit WHERE month = 2", **other})
    assert not series(report(db)) and not charts(report(db))


def test_a_chart_has_the_figures_at_their_times(path):
    """Without the release of March, the line has a gap of a month."""
    db = visits(path)
    months = [m for m in range(1, 13) if m != 3]
    for m in months:
        release(db, f"visits 2025-{m:02}", "group_count", f"SELECT json_array(ward, age) FROM visit WHERE month = {m}", clip=9,
                keys=[[w, a] for w in "AB" for a in ("0-17", "18+")])
    page = report(db)
    drawn = charts(page)
    assert [chart[0] for chart in drawn] == ["A, 0-17", "A, 18+", "B, 0-17", "B, 18+"] and '["A"' not in Text(page).words
    for label, low, high, lines, bars in drawn:
        for tier, color in (("clinic", "1"), ("public", "2")):
            rows = [row for row in figures(page) if row["tier"] == tier and ", ".join(json.loads(row["key"])) == label]
            places = [(x - lines[color][0][0]) / (lines[color][-1][0] - lines[color][0][0]) * 11 for x, _ in lines[color]]
            assert places == pytest.approx([m - 1 for m in months], abs=0.05)
            assert [y for _, y in lines[color]] == pytest.approx([row["value"] for row in rows], abs=(high - low) / 100)
            for (_, a, b), row in zip(bars[color], rows, strict=True):
                assert (a, b) == pytest.approx((row["low"], row["high"]), abs=(high - low) / 100)
        assert low <= min(row["low"] for row in figures(page) if ", ".join(json.loads(row["key"])) == label)
    assert page.count("<h4>") == 11 and page.count("<table class=m>") == 2 * 11  # the tables of the months, for each tier


def test_an_outer_page_shows_nothing_of_inner_months(path):
    db = visits(path)
    for m in (1, 2, 3):
        release(db, f"visits 2025-{m:02}", sql=f"SELECT 1 FROM visit WHERE month = {m}", diffuse=() if m == 3 else ("public",), clip=1)
    assert "3 releases, <span class=k>2025-01 to 2025-03" in report(db)
    page = report(db, "public")
    assert "2 releases, <span class=k>2025-01 to 2025-02" in page and "2025-03" not in page and "3 releases" not in page


@pytest.mark.parametrize("kind,sql,options,said", [
    ("count", "SELECT 1 FROM visit", {"clip": 1500}, "rows, at most 1,500 of each patient · "),
    ("sum", "SELECT days FROM visit", {"clip": 2.5}, "sum, from -2.5 to 2.5 of each patient · "),
    ("avg", "SELECT days FROM visit", {"lo": -1, "hi": 9}, "average, values outside -1 to 9 count as -1 or 9, each patient counts once · "),
    ("median", "SELECT days FROM visit", {"lo": 0, "hi": 9, "grid": 0.5}, "median, values outside 0 to 9 count as 0 or 9, in steps of 0.5, each patient counts once · "),
    ("group_sum", "SELECT ward, days FROM visit", {"clip": 9, "keys": ["A", "B"]},
     "sum in each group, from -9 to 9 of each patient in one group (a patient with rows in several groups may count less in each, by the share of amounts there) · "),
    ("group_count_distinct", "SELECT ward FROM visit", {"keys": ["A", "B"]},
     "patients in each group (a patient in several groups counts less in each) · "),
    ("count_distinct", "SELECT 1 FROM visit", {}, "patients · ")])
def test_what_a_figure_is(path, kind, sql, options, said):
    db = visits(path)
    release(db, "r", kind, sql, **options)
    assert said in words(db)


def test_private_groups_and_rows(tmp_path):
    db = visits(tmp_path / "a.db", tiers=())
    one(db, "SELECT dp_tier('clinic', 1e4, 1e9, 1e-2, 'rdp', 1e-3)")
    release(db, "r", "group_count", "SELECT ward FROM visit", (), clip=1, max_groups=2)
    assert ("rows in each group, at most 1 of each patient in one group (a patient with rows in several groups counts less in each, by the share of rows there), at most 2 groups of each patient;"
            " groups below about 2 rows do not appear · ") in words(db)
    rows = connect(tmp_path / "b.db")
    rows.execute("CREATE TABLE t AS SELECT 1 AS x")
    one(rows, "SELECT dp_init('{\"protects\":\"row\"}')")
    one(rows, "SELECT dp_protect('t')")
    one(rows, "SELECT dp_tier('clinic', 1, 1e9, 1e-6)")
    release(rows, "r", "avg", "SELECT x FROM t", (), lo=0, hi=2)
    assert "average, values outside 0 to 2 count as 0 or 2 · " in words(rows)


@pytest.mark.parametrize("keys", [None, ["B", "A"]])
def test_a_period_and_its_running_total_are_one_row(path, keys):
    """The oldest row comes first, and each tier has two columns."""
    db = visits(path)
    group, options = (", ward", {"keys": keys}) if keys else (", 1", {})
    release(db, "so far", "group_count" if keys else "count", f"SELECT printf('2025-%02d', month){group} FROM visit", clip=9, periods="2025-01/2025-12", **options)
    for month in range(1, 5):
        one(db, "SELECT dp_append('so far', ?)", f"2025-{month:02}")
    page = report(db)
    table = re.search(r"<table class=\"v r\">(.*?)</table>", page, re.S)[1]
    assert re.sub(r"<[^>]*>", " ", table.split("<tbody>")[0]).split() == [word for place, tier in ((1, "clinic"), (2, "public")) for word in (
        str(place), tier, "each", "period", str(place), tier, "total", "so", "far")]
    shown = {(tier, key): display for tier, key, display in db.execute("SELECT tier, key, display FROM dp_value")}
    want = []
    for month in (f"2025-{i:02}" for i in range(1, 5)):
        for key in keys or [None]:
            named = [json.dumps([span, key], separators=(",", ":")) if key else span for span in (month, f"2025-01/{month}")]
            want.append([month + (f", {key}" if key else ""), *(shown[tier, name] for tier in ("clinic", "public") for name in named)])
    assert [re.split("<t[dh]>", line)[1:] for line in table.split("<tr>")[2:]] == [[*row[:-1], row[-1] + "\n"] for row in want]
    assert len(charts(page)) == 2 * len(keys or [None])


def test_a_page_says_of_a_release_what_its_innermost_tier_says(path):
    """The words differ between tiers: by what was cut off, and by what else their members see."""
    db = visits(path)
    release(db, "days", "sum", "SELECT days FROM visit", clip=1, diagnose=True)
    release(db, "days by clip 2", "sum", "SELECT days FROM visit", (), clip=2)
    said = dict(db.execute("SELECT tier, figure FROM dp_value WHERE release = 'days'"))
    assert said["clinic"].endswith("also answered with clip 2") and "clip 2" not in said["public"]
    for tier, inner in ((None, "clinic"), ("clinic", "clinic"), ("public", "public")):
        assert f"{said[inner]} · " in one(db, "SELECT dp_report(?)", tier), tier


def test_clipping_is_said_once_for_a_question(path):
    db = visits(path)
    for m in range(1, 13):
        release(db, f"days 2025-{m:02}", "sum", f"SELECT sum(days) FROM visit WHERE month = {m}", clip=2, diagnose=True)
    release(db, "other", "count", clip=100, diagnose=True)
    page = report(db)
    (listed,) = re.findall(r"<h3>What clipping did</h3>\n<ul>(.*?)</ul>", page, re.S)
    lines = re.findall(r"<li>(.*)", listed)
    shares = [one(db, "SELECT dp_clipping(?, 'clinic')", f"days 2025-{m:02}") for m in range(1, 13)]
    low, high = (round(100 * pick(json.loads(share)[end] for share in shares)) for end, pick in (("low", min), ("high", max)))
    amount = json.loads(one(db, "SELECT dp_clipping('other', 'clinic')"))["summary"].partition("; ")[2]
    assert "about 0% of the total was cut off" in amount  # said of a release alone, and not of a series of releases
    assert low < high and lines == [
        f"days (12 releases): about {low}% to {high}% of patients were cut down to the bound, because their total was beyond clip: a larger clip"
        " would lower the bias",
        "other: about 0% of patients were cut down to the bound, because they had more rows than clip: a smaller clip would lower the noise, but cut off more; " + amount]
    assert "a few with very large contributions can matter, too" in words(db)


def test_advice_on_clipping_that_differs_by_month_is_left_out(path):
    """In January most totals are beyond clip, in February none is."""
    db = visits(path)
    for m, factor in ((1, 9), (2, 0)):
        release(db, f"days 2025-{m:02}", "sum", f"SELECT sum(days) * {factor} FROM visit WHERE month = {m}", clip=2, diagnose=True)
        assert ": a " in json.loads(one(db, "SELECT dp_clipping(?, 'clinic')", f"days 2025-{m:02}"))["summary"]
    (line,) = re.findall(r"<li>(days.*)", report(db))
    assert re.fullmatch(r"days \(2 releases\): about \d+% to \d+% of patients were cut down to the bound, because their total was beyond clip", line)


def test_a_year_of_three_questions_is_a_page_of_310_kB(path):
    """900 values of 36 releases at three tiers."""
    db = visits(path, (("clinic", 0.1), ("region", 0.01), ("public", 0.001)))
    wards, ages = [f"ward of medicine {i}" for i in range(6)], ["0-17", "18-64", "65+"]
    for m in range(1, 13):
        release(db, f"visits 2025-{m:02}", "group_count", f"SELECT json_array(ward, age) FROM visit WHERE month = {m}", ("region", "public"),
                clip=2, diagnose=True, keys=[[w, a] for w in wards for a in ages])
        release(db, f"stay in days 2025-{m:02}", "group_avg", f"SELECT ward, days FROM visit WHERE month = {m}", ("region", "public"), lo=0, hi=20,
                diagnose=True, keys=wards)
        release(db, f"days 2025-{m:02}", "median", f"SELECT days FROM visit WHERE month = {m}", ("region", "public"), lo=0, hi=20, diagnose=True)
    page = report(db)
    assert len(figures(page)) == 900 and len(charts(page)) == 18 + 6 + 1
    assert 100_000 < len(page.encode()) < 310_000, len(page.encode())
    assert len(block(page).encode()) < 250_000
