"""Runs the examples of sql/shards.md: the functions of a partition in plain Python, and the programs for Spark and Dask
(make deps-hosts). The truth is the sum in one table."""

import collections
import importlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import pytest

from conftest import connect, EXTENSION, one, PATIENCE, refused

pytestmark = pytest.mark.alarm(1e-12)  # 7.5 standard deviations, in four tests

ROOT = pathlib.Path(__file__).parents[2]
ENGINES = ROOT / "build/hosts/engines"
SHARDS, MAKE, SPARK, DASK = re.findall(r"^```python\n(.*?)^```", (ROOT / "sql/shards.md").read_text(), re.M | re.S)
CLIP, SIGMAS = 100, 7.5


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with shards.py, the extension and clinic.db."""
    (tmp_path / "build").mkdir()
    os.symlink(EXTENSION + ".so", tmp_path / "build/diffuse.so")
    (tmp_path / "shards.py").write_text(SHARDS)
    subprocess.run([sys.executable, "-c", MAKE], cwd=tmp_path, check=True, timeout=PATIENCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def visits(count=5000):
    """Returns visits of people who have a few or many of them, some beyond the clip, and of nobody."""
    rng = random.Random(3)
    return [(rng.choice([None, *range(40)] + 2 * [rng.randrange(400)]), rng.choice([None, *range(1, 60)])) for _ in range(count)]


def truth(rows):
    totals = collections.Counter()
    for patient, minutes in rows:
        if patient is not None:
            totals[patient] += minutes or 0
    assert sum(total > CLIP for total in totals.values()) > 40
    return sum(min(CLIP, total) for total in totals.values())


def check(place, printed, rows, shards):
    db = connect(place / "clinic.db")
    assert db.execute("SELECT name, state, clip FROM dp_release").fetchall() == [("all minutes", "released", CLIP)]
    value, stddev = db.execute("SELECT value, stddev FROM dp_value").fetchone()
    assert printed == value and abs(value - truth(rows)) < SIGMAS * stddev and stddev < 0.01 * truth(rows)
    assert one(db, "SELECT count(*) FROM dp_charge") == 1


def plain_parts(rows, count):
    parts = [[] for _ in range(count)]
    for row in rows:
        parts[hash(row[0] or 0) % count].append(row)
    return parts


def test_partitions_in_plain_python(place, monkeypatch):
    """The functions of the page, in one process. A task that is tried again is refused, and so is a lost one."""
    monkeypatch.syspath_prepend(str(place))
    sys.modules.pop("shards", None)
    shards = importlib.import_module("shards")
    rows = visits()
    states = [shards.make_state(iter(part), i) for i, part in enumerate(plain_parts(rows, 7) + [[]])]
    again = shards.make_state([], 7)
    db = connect(place / "clinic.db")
    for some, message in ((states + [again], "two different states of shard '7'"), (states[:-1], "are of 7 shards, not of 8: '0', '1'")):
        db.execute("CREATE TEMP TABLE s AS SELECT NULL AS state WHERE 0")
        db.executemany("INSERT INTO s VALUES (?)", [(state,) for state in some])
        assert message in refused(db, "SELECT dp_merge('clinic', dp_states(state), '{\"shards\":8}') FROM s")
        db.execute("DROP TABLE s")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0
    db.close()
    check(place, shards.merge(states + states[2:4], 8), rows, 8)
    assert max(map(len, states)) < 300  # "a few hundred bytes"
    del sys.modules["shards"]


def parquet(place, rows):
    """Writes visits/ with the pandas of the engines."""
    code = ("import json, pandas, sys; rows = json.load(sys.stdin);"
            "pandas.DataFrame(rows, columns=['patient_id', 'minutes']).astype('Int64').to_parquet('visits/part.parquet', compression=None)")
    (place / "visits").mkdir()
    subprocess.run([sys.executable, "-c", code], input=json.dumps(rows), text=True, cwd=place, check=True, env=environment(), timeout=PATIENCE)


def environment():
    return {**os.environ, "PYTHONPATH": str(ENGINES), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.mark.xdist_group("engines")
@pytest.mark.parametrize("engine,code", [pytest.param("spark", SPARK, marks=pytest.mark.slow), ("dask", DASK)], ids=["spark", "dask"])
def test_the_engines_merge_their_partitions(place, engine, code):
    if not (ENGINES / ".done").exists() or (engine == "spark" and not shutil.which("java")):
        pytest.skip("no engines (make deps-hosts)")
    rows = visits()
    parquet(place, rows)
    (place / "program.py").write_text(code)
    run = subprocess.run([sys.executable, "program.py"], cwd=place, capture_output=True, text=True, timeout=PATIENCE * 2, env=environment())
    assert run.returncode == 0, run.stderr
    check(place, float(run.stdout.split()[-1]), rows, 8)
