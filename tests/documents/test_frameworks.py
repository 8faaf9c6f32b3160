"""Runs the examples of sql/frameworks.md in SQLAlchemy, Django and Python's sqlite3 (make deps-hosts)."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import connect, EXTENSION, one, PATIENCE

pytestmark = pytest.mark.alarm(0)

ROOT = pathlib.Path(__file__).parents[2]
FRAMEWORKS = ROOT / "build/hosts/frameworks"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "sql" / page).read_text(), re.M | re.S)


@pytest.mark.parametrize("code", blocks("frameworks.md", "python"), ids=["sqlalchemy", "django", "autocommit"])
def test_the_examples_run(tmp_path, code):
    if "import sqlite3" not in code and not (FRAMEWORKS / ".done").exists():
        pytest.skip("no frameworks (make deps-hosts)")
    db = connect(tmp_path / "hospital.db")
    for statement in re.sub(r"^--.*\n", "", blocks("guard.md", "sql")[0], flags=re.M).split(";\n"):
        db.execute(statement).fetchall()
    (tmp_path / "build").mkdir()
    os.symlink(EXTENSION + ".so", tmp_path / "build/diffuse.so")
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE,
                         env={**os.environ, "PYTHONPATH": str(FRAMEWORKS)})
    assert run.returncode == 0, run.stderr
    first, *rest = run.stdout.splitlines()
    charged = one(db, "SELECT count(*) FROM dp_charge WHERE grant_name = 'visitors'") > 0
    if "sqlalchemy" in code:
        assert first == "[('north', 12), ('south', 30)]" and abs(float(rest[0]) - 1000) < 1000 and charged
    else:
        assert first == ("[('south', 30)]" if "django" in code else "(30,)") and not charged
    db.close()
