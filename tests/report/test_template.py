"""Compares template_fill() with an implementation of the same rules in Python, on random templates and tables."""

import html
import os
import pathlib
import random
import re
import sqlite3
import subprocess

import pytest

pytestmark = pytest.mark.alarm(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TAG = re.compile(r"\{\{([#^/&]?)([^}]*)\}\}")


def fill(text, tables, rows=()):
    """Fills a template. `rows` are the rows around it, the innermost first."""
    def find(name):
        return next(row for row in rows if name in row)[name]

    out, at = "", 0
    while match := TAG.search(text, at):
        out += text[at:match.start()]
        sign, (name, *keys) = match[1], match[2].split()
        at = match.end()
        if sign in ("#", "^"):
            depth, end = 1, at
            while depth:
                inner = TAG.search(text, end)
                depth += (inner[2].split()[0] == name) * {"#": 1, "^": 1, "/": -1}.get(inner[1], 0)
                end = inner.end()
            body, at = text[at:inner.start()], end
            if not keys and any(name in row for row in rows):
                out += fill(body, tables, rows) if (sign == "#") == (find(name) not in (None, 0, "")) else ""
                continue
            found = [row for row in tables[name] if all(row[key] == find(key) for key in keys)]
            out += "".join(fill(body, tables, (row, *rows)) for row in found) if sign == "#" else "" if found else fill(body, tables, rows)
        else:
            value = find(name)
            shown = "" if value is None else str(value)
            out += shown if sign == "&" else html.escape(shown).replace("&#x27;", "&#39;")
    return out + text[at:]


def random_template(draw, tables, known, depth):
    """Returns a template whose fields are all known where they stand."""
    out = ""
    for _ in range(draw.randrange(1, 5)):
        out += draw.choice(["", "a", " {b} ", "}}", "<p>", "\n"])
        kind = draw.randrange(4)
        if kind < 2 and known:
            out += "{{%s%s}}" % (draw.choice(["", "&"]), draw.choice(sorted(known)))
        elif depth and kind == 2:
            name = draw.choice(sorted(tables))
            columns = set(tables[name][0]) if tables[name] else set()
            keys = [key for key in sorted(columns & known) if draw.random() < 0.5]
            sign = draw.choice("##^")
            inner = known | columns if sign == "#" else known
            out += "{{%s%s}}%s{{/%s}}" % (sign, " ".join([name, *keys]), random_template(draw, tables, inner, depth - 1), name)
        elif depth and known:
            name = draw.choice(sorted(known))
            out += "{{%s%s}}%s{{/%s}}" % (draw.choice("#^"), name, random_template(draw, tables, known, depth - 1), name)
    return out


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("fill") / "fill.so"
    subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c11", "-shared", "-fPIC", "-I", ROOT / "ext", "-o", path,
                    ROOT / "tests/report/fill.c", ROOT / "ext/report/template.c", ROOT / "ext/base/error.c"], check=True)
    return path


def open_tables(library, tables):
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(library))
    for name, rows in tables.items():
        columns = list(rows[0]) if rows else ["unused"]
        db.execute(f"CREATE TABLE {name}({', '.join(columns)})")
        db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", [tuple(row.values()) for row in rows])
    return db


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(40))
def test_random_templates(library, seed):
    draw = random.Random(seed)
    values = [None, 0, 1, 2, 0.5, "", "0", "x", "<&>\"'", "{{c}}", "ü"]
    tables = {name: [{column: draw.choice(values) for column in columns} for _ in range(draw.randrange(1, 5))]
              for name, columns in (("t", "ab"), ("u", "bc"), ("v", "acd"))} | {"none": []}
    db = open_tables(library, tables)
    texts = [random_template(draw, tables, set(), 4) for _ in range(60)]
    for text in texts:
        assert db.execute("SELECT fill(?)", (text,)).fetchone() == (fill(text, tables),), text
    assert sum(map(len, texts)) > 1000


@pytest.mark.parametrize("text,said", [
    ("{{x}}", "the page has no 'x'"), ("{{#t}}{{b}}{{/t}}", "the page has no 'b'"), ("{{#t a}}{{/t}}", "the page has no 'a'"), ("{{#t b}}{{/t}}", "no such column: named.b"), ("{{#t}}", "the page has no 't'"),
    ("{{/t}}", "the page has no 't'"), ("{{#t}}{{#t}}{{/t}}", "the page has no 't'"), ("{{#x}}{{/x}}", "no such table: x"),
    ("{{#u}}{{#t b}}{{/t}}{{/u}}", "no such column: named.b")])
def test_what_a_template_does_not_have_is_an_error(library, text, said):
    db = open_tables(library, {"t": [{"a": 1}], "u": [{"b": 1}]})
    with pytest.raises(sqlite3.OperationalError, match=re.escape(said)):
        db.execute("SELECT fill(?)", (text,)).fetchone()
