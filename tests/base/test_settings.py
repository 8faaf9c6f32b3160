"""The settings of the extension's own connections do not depend on the build of SQLite, nor on extensions that are loaded for every
connection (helpers/other_settings.py turns each setting the other way, helpers/settings_story.py compares)."""

import os
import pathlib
import re
import sqlite3
import subprocess
import sys

import pytest

from conftest import EXTENSION, HELPERS
from other_settings import FLAGS, NO_SETTINGS, other_settings, VALUES

EXT = pathlib.Path(__file__).resolve().parents[2] / "ext"


def story(folder, *arguments):
    """Returns the differences that the story finds, and the number of connections of the extension in one story."""
    done = subprocess.run([sys.executable, HELPERS / "settings_story.py", folder, *arguments], capture_output=True, text=True,
                          env=dict(os.environ, BUILD=str(pathlib.Path(EXTENSION).parent), PYTHONDONTWRITEBYTECODE="1"))
    assert done.returncode == 0, done.stderr
    *differences, counts = done.stdout.splitlines()
    return differences, int(re.fullmatch(r"\d+ changes, \d+ results, (\d+) connections", counts)[1])


def test_all_settings_together(tmp_path):
    differences, connections = story(tmp_path)
    assert not differences and connections > 30


@pytest.mark.slow
def test_each_setting_alone(tmp_path):
    differences, connections = story(tmp_path, "each")
    assert not differences and connections > 30


def test_the_lists_have_every_pragma():
    known = {*FLAGS, *VALUES, *NO_SETTINGS}
    new = {name for (name,) in sqlite3.connect(":memory:").execute("SELECT name FROM pragma_pragma_list")} - known
    assert not {name for name in new if not name.startswith(("vdbe_", "sql_trace", "parser_trace", "activate_extensions"))}
    assert len(other_settings()) > 60


def test_one_file_opens_connections():
    opens = {str(file.relative_to(EXT)) for file in EXT.rglob("*.c") if re.search(r"\bsqlite3_open(_v2|16)?\([^)]", file.read_text())}
    assert opens == {"base/own_connection.c"}
