"""Tests the pages of dp_report() in a headless Chromium (make deps-report). No text overflows, is cut off, overlaps other text or
has too little contrast. This holds on phones, on large screens and on paper, in light and dark mode. `make report-pictures`
renews the pictures of sql/reporting.md."""

import os
import pathlib

import pytest

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
        for tier in ([None, "region", "public"] if name == "hospital" else [None, HOSTILE[0], HOSTILE[6]]):
            page = one(db, "SELECT dp_report()") if tier is None else one(db, "SELECT dp_report(?)", tier)
            file = folder / f"{name}-{len(made)}.html"
            file.write_text(page)
            made[f"{name}-{'owner' if tier is None else 'inner' if tier in ('region', HOSTILE[0]) else 'outer'}"] = file, page
        db.close()
    return made


# JavaScript that lists every piece of text: the boxes of its glyphs, the box that must contain them, its colour, and the colour
# behind it.
TEXTS = """(() => {
  const rgb = text => { const p = text.match(/[\\d.]+/g).map(Number); return p.length > 3 && p[3] === 0 ? null : p.slice(0, 3) };
  const behind = element => { for (; element; element = element.parentElement) {
    const color = rgb(getComputedStyle(element).backgroundColor); if (color) return color } return [255, 255, 255] };
  const box = r => ({left: r.left + scrollX, right: r.right + scrollX, top: r.top + scrollY, bottom: r.bottom + scrollY});
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    if (!node.data.trim() || node.parentElement.closest('script')) continue;
    const style = getComputedStyle(node.parentElement), range = document.createRange();
    range.selectNodeContents(node);
    const block = node.parentElement.closest('td,th,p,h1,h2,h3,dd,dt,li,.card,.ends');
    found.push({text: node.data.trim().slice(0, 60), boxes: [...range.getClientRects()].map(box),
                block: box(block.getBoundingClientRect()), shown: style.display !== 'none' && range.getClientRects().length > 0,
                color: rgb(style.color), behind: behind(node.parentElement), size: parseFloat(style.fontSize)});
  }
  const paths = [...document.querySelectorAll('path:not(.axis)')].map(path => ({
    color: rgb(getComputedStyle(path).stroke), behind: behind(path.closest('section,body')), box: box(path.getBoundingClientRect()),
    cell: box(path.closest('td,section').getBoundingClientRect())}));
  const labels = [...document.querySelectorAll('.v td')].map(cell => {
    const label = getComputedStyle(cell, ':before'), fill = rgb(label.backgroundColor);
    return label.content === 'none' || label.content === 'normal' || !fill ? null : {color: rgb(label.color), behind: fill} })
    .filter(label => label);
  return {found, paths, labels, width: innerWidth, scroll: document.documentElement.scrollWidth}
})()"""


def contrast(one, other):
    """Returns the contrast of two colours: the ratio of their relative luminances, as WCAG 2.2 defines it."""
    def luminance(color):
        parts = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_known_pairs():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


def overlap(a, b):
    return min(a["right"], b["right"]) - max(a["left"], b["left"]) > 1 and min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 6


def faults(seen):
    """Returns descriptions of all defects of a page that a reader would see."""
    said = []
    if seen["scroll"] > seen["width"]:
        said.append(f"the page is {seen['scroll']} wide, the screen {seen['width']}")
    shown = [text for text in seen["found"] if text["shown"]]
    for text in shown:
        for box in text["boxes"]:
            if box["left"] < -0.5 or box["right"] > seen["width"] + 0.5:
                said.append(f"outside the screen: {text['text']}")
            if box["right"] > text["block"]["right"] + 1 or box["left"] < text["block"]["left"] - 1:
                said.append(f"outside its box: {text['text']}")
        if text["size"] < 12:
            said.append(f"smaller than 12 pixels: {text['text']}")
        if contrast(text["color"], text["behind"]) < 4.5:
            said.append(f"contrast {contrast(text['color'], text['behind']):.2f}: {text['text']}")
    boxes = sorted(((box, text["text"]) for text in shown for box in text["boxes"]), key=lambda pair: pair[0]["top"])
    for i, (box, text) in enumerate(boxes):
        for other, more in boxes[i + 1:]:
            if other["top"] > box["bottom"]:
                break
            if overlap(box, other):
                said.append(f"on top of each other: {text} / {more}")
    for path in seen["paths"]:
        if contrast(path["color"], path["behind"]) < 3:
            said.append(f"a line with contrast {contrast(path['color'], path['behind']):.2f}")
        if path["box"]["left"] < path["cell"]["left"] - 2 or path["box"]["right"] > path["cell"]["right"] + 2:
            said.append("a line outside its cell")
    said += [f"a label with contrast {contrast(label['color'], label['behind']):.2f}" for label in seen["labels"]
             if contrast(label["color"], label["behind"]) < 4.5]
    return said


@pytest.mark.parametrize("name", ["hospital-owner", "hospital-inner", "hospital-outer", "hostile-owner", "hostile-inner", "hostile-outer"])
def test_every_screen_and_paper(browser, pages, name):
    file, page = pages[name]
    for width, dark, media in [(320, 0, "screen"), (375, 1, "screen"), (768, 0, "screen"), (1280, 1, "screen"), (1280, 0, "screen"),
                               (680, 1, "print")]:
        asked, said = browser.open(file, width, bool(dark), media)
        assert asked == [f"file://{file}"] and not said, (asked, said)
        seen = browser.run(TEXTS)
        assert len(seen["found"]) > 50 and seen["width"] == width
        assert (min(seen["found"][0]["behind"]) < 60) == (dark and media == "screen")
        assert not faults(seen), (name, width, dark, media, faults(seen)[:10])
        if name == "hospital-owner" and width < 700 and media == "screen":
            assert len(seen["labels"]) > 20  # labels with the numbers of the tiers


@pytest.mark.parametrize("spoil,fault", [
    ("document.querySelector('h1').style.cssText = 'white-space:nowrap;width:3000px'", "wide"),
    ("document.querySelector('h2').style.cssText = 'color:#aaa'", "contrast"),
    ("document.querySelector('main p').style.cssText = 'white-space:nowrap;width:20px'", "outside its box"),
    ("document.querySelector('main p').style.cssText = 'margin-top:-60px'", "on top of each other"),
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
        columns = ["release", "tier", "key", "component", "value", "stddev", "low", "high", "display"]
        want = [dict(zip(columns, row)) for row in db.execute(f"SELECT {', '.join(columns)} FROM dp_value ORDER BY 1, 2, 3, 4")]
    assert rows == want and len(rows) > 50
    assert browser.run("document.scripts.length") == 1 and browser.run("document.images.length") == 0


@pytest.mark.skipif(not os.environ.get("PICTURES"), reason="make report-pictures")
def test_pictures(browser, pages):
    """Makes the pictures of sql/reporting.md, which people look at. The noise differs every time, so the pictures are only
    renewed on request."""
    PICTURES.mkdir(exist_ok=True)
    for name, page, width, dark, top, height in (
            ("report-desk-light", "hospital-owner", 1100, 0, 0, 1250), ("report-desk-dark", "hospital-owner", 1100, 1, 1700, 900),
            ("report-phone-light", "hospital-outer", 375, 0, 0, 900), ("report-phone-dark", "hospital-owner", 375, 1, 2300, 900)):
        browser.open(pages[page][0], width, bool(dark))
        browser.picture(PICTURES / f"{name}.png", width, top, height)
