"""Tests the pages of dp_report() in a headless Chromium (make deps-report). No text overflows, is cut off, overlaps other text or
has too little contrast. This holds on phones, on large screens and on paper, in light and dark mode. `make report-pictures`
renews the pictures of sql/reporting.md."""

import json
import os
import pathlib

import pytest

from appearance import TEXTS, contrast, faults
from browser import Browser, CHROMIUM
from conftest import Clock, connect, one
from pages import hospital, hostile, HOSTILE

pytestmark = [pytest.mark.alarm(0), pytest.mark.plain, pytest.mark.skipif(not CHROMIUM, reason="needs Chromium (make deps-report)"),
              pytest.mark.xdist_group("browser")]

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "sql" / "pictures"


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    clock = Clock()
    try:
        yield make_pages(tmp_path_factory, clock)
    finally:
        clock.stop()


def make_pages(tmp_path_factory, clock):
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, db in (("hospital", hospital(folder / "a.db", months=6, clock=clock)), ("hostile", hostile(folder / "b.db"))):
        if name == "hospital":
            one(db, "SELECT dp_report('public', ?)", json.dumps({"title": "Visits to the hospital in 2025", "publisher": "Hospital of Example",
                "note": "Figures for January to June.", "order": ["visits by ward and quarter", "visits so far"]}))
        for tier in ([None, "region", "public"] if name == "hospital" else [None, HOSTILE[0], HOSTILE[6]]):
            page = one(db, "SELECT dp_report()") if tier is None else one(db, "SELECT dp_report(?)", tier)
            file = folder / f"{name}-{len(made)}.html"
            file.write_text(page)
            made[f"{name}-{'owner' if tier is None else 'inner' if tier in ('region', HOSTILE[0]) else 'outer'}"] = file, page
        db.close()
    return made


def test_the_contrast_of_known_pairs():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", ["hospital-owner", "hospital-inner", "hospital-outer", "hostile-owner", "hostile-inner", "hostile-outer"])
def test_every_screen_and_paper(browser, pages, name):
    file, page = pages[name]
    screens = [(320, 0, "screen"), (1280, 1, "screen"), (680, 1, "print"), (375, 1, "screen"), (768, 0, "screen"), (1280, 0, "screen")]
    for width, dark, media in screens if name.endswith("owner") else screens[:3]:
        asked, said = browser.open(file, width, bool(dark), media)
        assert asked == [f"file://{file}"] and not said, (asked, said)
        seen = browser.run(TEXTS)
        assert len(seen["found"]) > 50 and seen["width"] == width
        assert (min(seen["found"][0]["behind"]) < 60) == (dark and media == "screen")
        assert not faults(seen), (name, width, dark, media, faults(seen)[:10])
        if name == "hospital-owner" and width < 700 and media == "screen":
            assert len(seen["labels"]) > 20  # each figure has a label with its tier's number


AXES = """[...document.querySelectorAll('.v')].flatMap(table => {
  const ends = table.querySelector('.ends'), chart = table.querySelector('td.g svg');
  return ends && chart ? [[ends, chart].map(e => e.getBoundingClientRect()).map(r => [Math.round(r.left), Math.round(r.right)])] : [];
})"""


@pytest.mark.parametrize("width", [320, 480, 768, 1280])
def test_the_ends_of_an_axis_stand_at_the_ends_of_its_charts(browser, pages, width):
    browser.open(pages["hospital-owner"][0], width)
    found = browser.run(AXES)
    assert len(found) > 1 and all(ends == chart for ends, chart in found), found


@pytest.mark.parametrize("spoil,fault", [
    ("document.querySelector('h1').style.cssText = 'white-space:nowrap;width:3000px'", "wide"),
    ("document.querySelector('h2').style.cssText = 'color:#aaa'", "contrast"),
    ("document.querySelector('main p:not(.key)').style.cssText = 'white-space:nowrap;width:20px'", "outside its box"),
    ("document.querySelector('main p:not(.key)').style.cssText = 'margin-top:-60px'", "on top of each other"),
    ("document.querySelector('path:not(.axis)').style.stroke = '#eeeeee'", "a line with contrast")])
def test_the_checks_find_faults(browser, pages, spoil, fault):
    browser.open(pages["hospital-owner"][0], 1280)
    browser.run(spoil)
    assert any(fault in said for said in faults(browser.run(TEXTS))), faults(browser.run(TEXTS))


@pytest.mark.parametrize("name", ["hospital-owner", "hostile-owner"])
def test_a_browser_reads_the_data_back(browser, pages, name):
    file, page = pages[name]
    browser.open(file, 800)
    rows = browser.run("JSON.parse(document.getElementById('dp_value').textContent)")
    with connect(file.parent / ("a.db" if "hospital" in name else "b.db")) as db:
        columns = ["release", "tier", "key", "component", "value", "stddev", "low", "high", "display", "label"]
        want = [dict(zip(columns, row)) for row in db.execute(f"SELECT {', '.join(columns)} FROM dp_value ORDER BY 1, 2, 3, 4")]
    assert rows == want and len(rows) > 50
    assert browser.run("document.scripts.length") == 1 and browser.run("document.images.length") == 0


@pytest.mark.skipif(not os.environ.get("PICTURES"), reason="make report-pictures")
def test_pictures(browser, pages):
    """Makes the pictures of sql/reporting.md, which people look at. The noise differs every time, so the pictures are only
    renewed on request."""
    PICTURES.mkdir(exist_ok=True)
    for name, page, width, dark, top, height in (
            ("report-desk-light", "hospital-owner", 1100, 0, 0, 1250), ("report-desk-dark", "hospital-owner", 1100, 1, 4180, 880),
            ("report-phone-light", "hospital-outer", 375, 0, 0, 900), ("report-phone-dark", "hospital-owner", 375, 1, 10090, 1000)):
        browser.open(pages[page][0], width, bool(dark))
        browser.picture(PICTURES / f"{name}.png", width, top, height)
