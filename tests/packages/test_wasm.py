"""Tests the page that `make wasm` writes, in a headless Chromium, and runs the unit tests on wasm32 with node (`make test-wasm`)."""
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/report"))

from appearance import TEXTS, faults  # noqa: E402
from browser import Browser, CHROMIUM  # noqa: E402

BUILT = (ROOT / os.environ.get("BUILD", "build") / "wasm").resolve()
PAGE = BUILT / "diffuse.html"
UNITS = sorted(path for path in (BUILT / "unit").glob("*") if not path.suffix)

needs_page = pytest.mark.skipif(not PAGE.exists() or not CHROMIUM, reason="needs the page and Chromium (make deps-wasm wasm deps-report)")


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


def show(browser, width=1000, dark=False, media="screen"):
    """Opens the page and waits until its program has run. Returns the addresses that the page requested."""
    asked, said = browser.open(PAGE, width, dark, media)
    assert not said, str(said)[:1000]
    end = time.monotonic() + 120
    while (state := browser.run("document.getElementById('state').textContent")).startswith("Starting"):
        assert time.monotonic() < end, "the program does not start"
        time.sleep(0.05)
    assert state == "Everything below has just run in this tab."
    return asked


def tables(browser, section):
    """Returns the tables below the statements of a section: lists of rows, the first with the names of the columns."""
    return browser.run(f"""[...document.querySelectorAll("section")[{section - 1}].querySelectorAll("table")].map(
        table => [...table.rows].map(row => [...row.cells].map(cell => cell.textContent)))""")


def query(browser, sql, on="undefined"):
    """Runs SQL in the page, and returns the rows of each statement, or the error as a string."""
    return browser.run(f"""(() => {{ try {{ return Module.query({json.dumps(sql)}, {on}).map(table => table.rows) }}
                                     catch (error) {{ return error.message }} }})()""")


def number(text):
    """Returns the value and the half-width of a display such as '2,400 ± 50'."""
    value, half = re.fullmatch(r"([\d,.]+) ± ([\d,.]+)", text).groups()
    return float(value.replace(",", "")), float(half.replace(",", ""))


@needs_page
def test_the_story_of_the_page(browser):
    """Every statement works. The exact tables are those of another SQLite, and each noisy figure lies within five half-widths
    (ten standard deviations)."""
    asked = show(browser)
    assert asked[0] == f"file://{PAGE}" and all(address.startswith("data:") for address in asked[1:])
    assert browser.run("document.querySelectorAll('.error').length") == 0

    native = sqlite3.connect(":memory:")
    texts = browser.run("[...document.querySelectorAll('textarea')].map(area => area.value)")
    *steps, last = [part for part in texts[0].split(";\n") if part.strip()]
    for step in steps:
        native.execute(step)
    assert tables(browser, 1)[0][1:] == [[str(cell) for cell in row] for row in native.execute(last)]
    assert tables(browser, 2)[0][1:] == [[str(cell) for cell in row] for row in native.execute(texts[1])]
    assert native.execute("SELECT count(*), count(DISTINCT patient) FROM visit").fetchone() == (12000, 4000)

    assert tables(browser, 3)[0][1:] == [[":memory:"]] and tables(browser, 3)[-1][1][3] == "24"
    *_, values, budget = tables(browser, 4)
    assert len(values) == 5 and [row[:2] for row in budget[1:]] == [["hospital", "22"], ["public", "22"]]
    for release, key, hospital, public, exact in values[1:]:
        truth = native.execute("SELECT avg(minutes) FROM visit" if release == "minutes" else "SELECT count(*) FROM visit WHERE ward = ?",
                               [key] * (release != "minutes")).fetchone()[0]
        assert float(exact) == round(truth, 2)
        (inner, small), (outer, large) = number(hospital), number(public)
        assert abs(inner - truth) < 5 * small and abs(outer - truth) < 5 * large and small < large and hospital != public
    assert tables(browser, 6)[0][1][0] == "ok"
    assert [row[1] for row in tables(browser, 5)[-1][1:]] == ["20", "22"]


@needs_page
def test_the_report_is_that_of_the_tier(browser):
    show(browser)
    for tier in ("public", "hospital"):
        browser.run(f"(() => {{ const tier = document.getElementById('tier'); tier.value = '{tier}'; tier.onchange() }})()")
        end = time.monotonic() + 20
        frame = "document.getElementById('report').contentDocument"
        while browser.run(f"{frame}.querySelector('h1') && {frame}.querySelector('h1').textContent") != tier:
            assert time.monotonic() < end
            time.sleep(0.05)
        rows = browser.run(f"JSON.parse({frame}.getElementById('dp_value').textContent)")
        shown = {(row["release"], row["tier"], row["key"] or "", row["display"]) for row in rows}
        seen = "tier = 'public'" if tier == "public" else "1"
        assert shown == {tuple(row) for row in query(browser, f"SELECT release, tier, key, display FROM dp_value WHERE {seen}")[0]}
        assert len(shown) == (4 if tier == "public" else 10)


@needs_page
def test_the_page_says_what_is_not_durable(browser):
    show(browser)
    warning = browser.run("document.querySelector('.warn').innerText")
    assert warning.startswith("Nothing here is durable.") and "the record of what was spent is lost" in warning
    assert query(browser, "SELECT count(*) FROM dp_charge")[0] != [["0"]]
    query(browser, "CREATE TABLE mine(x)")
    show(browser)
    assert query(browser, "SELECT count(*) FROM sqlite_schema WHERE name = 'mine'") == [[["0"]]]


@needs_page
def test_a_ledger_in_a_file_is_refused(browser):
    """Emscripten's flock() reports success and locks nothing. So a database in a file, whose ledger would be a file, gets none."""
    show(browser)
    browser.run("void (window.other = Module.connect('/clinic.db'))")
    assert query(browser, "CREATE TABLE t(x); INSERT INTO t VALUES (1); SELECT count(*) FROM t", "other") == [[["1"]]]
    refused = ("dp_init: privacy ledger '/clinic.db-ledger': cannot lock '/clinic.db-ledger-lock': WebAssembly cannot lock files"
               " (put it where files can be locked)")
    for _ in range(2):
        assert query(browser, "SELECT dp_init()", "other") == refused
    assert "cannot lock" in query(browser, "SELECT dp_tier('t', 1, 1, 1e-6)", "other")


# A source of bytes that is the same in every page: a counter, and the number of bytes that the program asked for.
COUNTER = """window.given = 0; crypto.getRandomValues = array => { for (let i = 0; i < array.length; i++)
    array[i] = Math.imul(given++ * 2654435761, 1) >>> 24 ^ SEED; return array };"""
VALUES = "SELECT json_group_array(value) FROM (SELECT value FROM dp_value ORDER BY release, tier, key)"


@needs_page
def test_all_noise_comes_from_getrandomvalues(browser):
    """With the same bytes from crypto.getRandomValues() the page has the same noise, and with other bytes it has other noise."""
    drawn = {}
    for name, seed in (("a", 1), ("again", 1), ("b", 2)):
        script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=COUNTER.replace("SEED", str(seed)))["identifier"]
        show(browser)
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        assert browser.run("given") >= 32 * 4  # a key of 32 bytes for each release
        drawn[name] = json.loads(query(browser, VALUES)[0][0][0])
    assert drawn["a"] == drawn["again"] and len(drawn["a"]) == 10
    assert all(one != other for one, other in zip(drawn["a"], drawn["b"]))


@needs_page
def test_without_random_bytes_there_is_no_release(browser):
    show(browser)
    before = query(browser, "SELECT count(*) FROM dp_value")
    browser.run("void (crypto.getRandomValues = () => { throw Error('none') })")
    assert "random" in query(browser, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visit', '{\"name\":\"more\",\"clip\":3}')")
    assert query(browser, "SELECT count(*) FROM dp_value") == before
    assert query(browser, "SELECT dp_verify()") == [[["ok"]]]


@needs_page
@pytest.mark.parametrize("width,dark", [(320, False), (375, True), (1280, False), (1280, True)])
def test_the_page_fits_every_screen(browser, width, dark):
    show(browser, width, dark)
    browser.run("document.querySelectorAll('textarea,pre,option,output,button,summary').forEach(element => element.remove())")  # in no block, or with a scroll bar
    assert not faults(browser.run(TEXTS))


# What WebAssembly does not have. {unit test: {failing function: the reason}}
MISSING = {
    "bridges": {"the_slack_bounds_the_ratio_of_the_two_laws": "its C library computes expl() in double precision"},
    "discrete_gaussian": {"threads_draw_at_once": "one thread", "processes_share_nothing": "no fork()"},
    "entropy": {"fill_continues_after_short_reads_and_signals": "no signals", "fork_shares_nothing": "no fork()"},
}


@pytest.mark.skipif(not UNITS or not shutil.which("node"), reason="needs the unit tests on wasm32 (make test-wasm)")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_unit_tests_on_wasm32(unit):
    """size_t and long have 32 bits there. Every function passes except those of MISSING, and the last one has run."""
    done = subprocess.run(["node", unit], capture_output=True, text=True, timeout=1200)
    said = re.findall(r"^(ok|not ok) - (\w+)$", done.stdout, re.M)
    failed = {name for state, name in said if state == "not ok"}
    wanted = re.findall(r"^ +(?:if .*)?RUN\((\w+)\)", next((ROOT / "tests").glob(f"*/test_{unit.name}.c")).read_text(), re.M)
    ran = [name for _, name in said]  # some functions run once for each norm
    assert wanted and set(ran) == set(wanted) and ran[-1:] == wanted[-1:] and failed == set(MISSING.get(unit.name, {})), done.stdout[-2000:] + done.stderr[-2000:]
    assert done.returncode == len(failed)
