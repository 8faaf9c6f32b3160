"""Tests how dp_report() prints cross tables: every cell and every margin stands where a reader looks for it."""

import html.parser
import itertools
import json

import pytest

from conftest import connect, make_ledger, one

pytestmark = pytest.mark.alarm(0)

KEYS = {"ward": ["B", "A <c>"], "age": ["0-17", "18+", "old"], "sex": ["F", "M"]}


class Tables(html.parser.HTMLParser):
    """Collects each table of a page as a list of rows of texts, with the paragraph before it."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.said, self.rows = [], "", None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.rows = []
        elif tag == "tr" and self.rows is not None:
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        elif tag == "p":
            self.said = ""

    def handle_endtag(self, tag):
        if tag == "table":
            self.tables.append((self.said.strip(), self.rows))
            self.rows = None

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] = (self.rows[-1][-1] + data).strip()
        elif self.rows is None:
            self.said += data


def make(path, ways):
    db = connect(path)
    db.execute("CREATE TABLE person(id, ward, age, sex)")
    db.executemany("INSERT INTO person VALUES (?, ?, ?, ?)", [(i, *cell) for i, cell in enumerate(itertools.product(*KEYS.values()))] * 40)
    make_ledger(db, "{}", "person, id")
    for tier, rate in (("inner", 1.0), ("outer", 0.1)):
        one(db, "SELECT dp_tier(?, ?, 1e6, 1e-6)", tier, rate)
    one(db, "SELECT dp_release('inner', 'group_count', 'SELECT ward, age, sex FROM person', ?)", json.dumps({"name": "census", "clip": 1, "ways": ways, "keys": KEYS}))
    one(db, "SELECT dp_diffuse('census', 'outer')")
    return db


def check(db, caption, table, attributes, tier):
    """Compares a printed table with dp_value."""
    shown = dict(db.execute("SELECT key, display FROM dp_value WHERE tier = ?", (tier,)))
    *first, last = attributes
    assert table[0] == ["", *KEYS[last], "all"]
    rows = list(itertools.product(*([*KEYS[name], None] for name in first)))
    labels = ["all" if not any(row) else ", ".join(key or "all" for key in row) for row in rows]
    assert [row[0] for row in table[1:]] == labels
    for row, line in zip(rows, table[1:], strict=True):
        for column, text in zip([*KEYS[last], None], line[1:], strict=True):
            cell = {**dict(zip(first, row)), last: column}
            key = json.dumps({name: cell[name] for name in KEYS if cell.get(name)}, separators=(",", ":"))
            assert text == shown[key], (caption, key)


@pytest.mark.parametrize("ways, largest", [(2, [("ward", "age"), ("ward", "sex"), ("age", "sex")]), (1, [("ward",), ("age",), ("sex",)]),
                                           (3, [("ward", "age", "sex")]), ([["sex", "ward"], ["age", 3]], [("age",), ("ward", "sex")])])
def test_printed_tables(ways, largest, tmp_path):
    db = make(tmp_path / "a.db", ways)
    for tier, tiers in (("outer", ["outer"]), (None, ["inner", "outer"])):
        page = one(db, "SELECT dp_report(?)", tier) if tier else one(db, "SELECT dp_report()")
        found, wanted = dict(Tables(page).tables), set()
        for place, name in enumerate(tiers, 1):
            for attributes in largest:
                caption = (f"{place}{name}: " if len(tiers) > 1 else "") + " × ".join(attributes)
                check(db, caption, found[caption], attributes, name)
                wanted.add(caption)
        assert {caption for caption, rows in found.items() if rows[0][-1] == "all"} == wanted


def test_large_tables_are_not_printed(tmp_path):
    db = connect(tmp_path / "a.db")
    db.execute("CREATE TABLE person(id, a, b)")
    make_ledger(db, "{}", "person, id")
    one(db, "SELECT dp_tier('t', 1.0, 1e6, 1e-6)")
    keys = {"a": [str(i) for i in range(21)], "b": [str(i) for i in range(20)]}
    one(db, "SELECT dp_release('t', 'group_count', 'SELECT a, b FROM person', ?)", json.dumps({"name": "large", "clip": 1, "ways": 2, "keys": keys}))
    page = one(db, "SELECT dp_report()")
    assert "The table a × b is too large to print. The data of this page has it." in page
    assert page.count('{\\"a\\":') > 400  # the data of the page has all cells
