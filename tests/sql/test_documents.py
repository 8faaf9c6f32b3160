"""Runs the commands of README.md and sql/*.md, and compares what they print with what is written.

In a block of ```sql, a line that starts with "-- " under a statement is an expected row (columns joined
by "|"), "-- noisy" or "-- noisy: ..." any single row of finite numbers, "-- error: ..." the message the statement fails with. Numbers agree
to 1e-9. A document's blocks share one database that holds the table star.
"""

import json
import math
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
DOCUMENTS = ["README.md", "sql/reference.md", "sql/aggregates.md", "sql/models.md"]


def blocks(document, language):
    """The fenced blocks of one language, in order."""
    found, lines = [], None
    for line in (ROOT / document).read_text().splitlines():
        if lines is not None and line.startswith("```"):
            found.append("\n".join(lines) + "\n")
            lines = None
        elif lines is not None:
            lines.append(line)
        elif line.strip() == "```" + language:
            lines = []
    return found


def statements(block):
    """(statement, expected lines) of a block; shell commands are left to the shell."""
    found, text = [], ""
    for line in block.splitlines():
        if not text.strip() and line.startswith("-- "):
            found[-1][1].append(line[3:])
        elif not line.startswith(".") and line.strip():
            text += line + "\n"
            code = "\n".join(part.split("--")[0] for part in text.splitlines())
            if sqlite3.complete_statement(code):
                found.append((text, []))
                text = ""
    assert not text.strip(), f"unfinished statement: {text}"
    return found


def agrees(got, want):
    if len(got) != len(want.split("|")):
        return False
    for value, text in zip(got, want.split("|")):
        if isinstance(value, float):
            if not math.isclose(value, float(text), rel_tol=1e-9):
                return False
        elif str(value) != text:
            return False
    return True


def is_noisy(value):
    """A finite number, or JSON of such."""
    if isinstance(value, str):
        value = json.loads(value)
    numbers = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return all(math.isfinite(number) for number in numbers)


def run_statement(db, statement, expected):
    try:
        rows = db.execute(statement).fetchall()
    except sqlite3.Error as error:
        assert expected == [f"error: {error}"], f"{statement}{error}"
        return
    if expected and expected[0].startswith("noisy"):
        assert len(rows) == 1 and all(is_noisy(value) for value in rows[0]), statement
    elif expected:
        assert len(rows) == len(expected), f"{statement}{rows}"
        for row, want in zip(rows, expected):
            assert agrees(row, want), f"{statement}got {row}, want {want}"


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


@pytest.mark.parametrize("document", DOCUMENTS)
def test_sql_of_document(document, tmp_path):
    shutil.copy(BUILD / "star.db", tmp_path / "star.db")
    db = connect(tmp_path / "star.db")
    found = [pair for block in blocks(document, "sql") for pair in statements(block)]
    assert len(found) > 5
    for statement, expected in found:
        run_statement(db, statement, expected)


def test_shell_of_reference(tmp_path):
    """Its ```sh block, after its SQL: a line that starts with "# " is what the command above it prints."""
    shutil.copy(BUILD / "star.db", tmp_path / "star.db")
    db = connect(tmp_path / "star.db")
    for block in blocks("sql/reference.md", "sql"):
        for statement, expected in statements(block):
            run_statement(db, statement, expected)
    db.close()
    place_build(tmp_path)
    shutil.copytree(ROOT / "sql", tmp_path / "sql")
    (block,) = blocks("sql/reference.md", "sh")
    shell = os.environ.get("SQLITE3", "sqlite3")
    done = subprocess.run(["sh", "-e", "-c", f'sqlite3() {{ command {shell} "$@"; }}\n' + block], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert done.stdout.splitlines() == [line[2:] for line in block.splitlines() if line.startswith("# ")]


def place_build(folder):
    """The snippets load build/diffuse from where they are."""
    (folder / "build").mkdir()
    shutil.copy(BUILD / "diffuse.so", folder / "build")


def test_python_of_readme(tmp_path):
    place_build(tmp_path)
    (snippet,) = blocks("README.md", "python")
    done = subprocess.run([sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # The noise has a standard deviation of 4.2247 * 400 = 1690: 8 of them never happen (1e-15).
    exact = sum(15 + i % 30 for i in range(100000))
    assert abs(int(done.stdout) - exact) < 8 * 1690


def test_node_of_readme(tmp_path):
    modules = ROOT / "build" / "node" / "node_modules"
    if not shutil.which("node") or not (modules / "better-sqlite3").exists():
        pytest.skip("node and better-sqlite3 are not installed (make deps-hosts)")
    place_build(tmp_path)
    (snippet,) = blocks("README.md", "js")
    environment = {**os.environ, "NODE_PATH": str(modules)}
    done = subprocess.run(
        ["node", "-e", snippet], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert abs(int(done.stdout) - 70) < 8 * 1014


def test_shell_runs_the_demo(tmp_path):
    """make demo, but on a copy: every statement succeeds and the story's figures are there."""
    shutil.copy(BUILD / "star.db", tmp_path / "demo.db")
    place_build(tmp_path)
    shell = os.environ.get("SQLITE3", "sqlite3")
    done = subprocess.run(
        [shell, "demo.db"], stdin=open(ROOT / "sql" / "demo.sql"), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "│ 611.0     │" in done.stdout
    assert done.stdout.rstrip().splitlines()[-2] == "│ ok    │"
