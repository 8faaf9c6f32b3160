"""Appends of series that are killed at every write, that two processes make at the same time, and that are interrupted: one draw, and
book, exact sums and figures always belong together."""

import itertools
import json
import shutil
import subprocess

import pytest

from conftest import PATIENCE, interrupted, killed_at_writes, start as start_process
from noise_helpers import connect, one
from series_helpers import YEAR, append, declare, rows_of, start

pytestmark = pytest.mark.alarm(1e-11)  # figures are compared at nine standard deviations

PERIODS = YEAR[:4]
ROWS = [(unit, label, "north", 1.0) for unit in range(5) for label in PERIODS for _ in range(1 + unit % 2)]
TIERS = (("exact", 1e6), ("near", 2e5))


def prepared(path):
    """Makes a series at two tiers with its first period."""
    db = start(path, ROWS, TIERS)
    declare(db, "exact", periods=PERIODS, clip=3)
    one(db, "SELECT dp_diffuse('s', 'near')")
    append(db, "p1")
    return db


def right(db, labels):
    """Checks that the figures are those of the plain loop, with every allowance spent once."""
    want = [3 + 4, 3 + 2, 3, 0]  # units 0, 2, 4 count 1, 1, 1; units 1 and 3 count 2, 1
    found = {tier: rows_of(db, tier) for tier in ("exact", "near")}
    for tier in found:
        assert [round(found[tier][label][0]) for label in labels] == want[:len(labels)]
    assert found["exact"].keys() == found["near"].keys() and one(db, "SELECT dp_verify()") == "ok"
    return found


def test_an_append_that_is_killed_at_any_write_is_stored_whole_or_not_at_all(tmp_path):
    """The test kills the append of two periods at every write. Afterwards both periods are there at both tiers, or none. The next
    append goes on; every allowance was spent once; figures that were there stay."""
    prepared(tmp_path / "a.db").close()
    seen = set()
    for at, path, done in killed_at_writes(tmp_path / "a.db", itertools.count(1), lambda path: append(connect(path), "p3")):
        db = connect(path)
        before = rows_of(db, "near")
        stored = [label for label in PERIODS if label in before]
        assert stored in (["p1"], ["p1", "p2", "p3"]) and (not done or len(stored) == 3)
        right(db, stored)
        seen.add(len(stored))
        append(db, "p4")
        after = right(db, PERIODS)["near"]
        assert {key: after[key] for key in before} == before
        assert one(db, "SELECT count(*) FROM dp_charge") == 2
        db.close()
    assert at > 5 and seen == {1, 3}


def test_two_processes_append_one_draw(tmp_path):
    """Four processes append at the same time. All get the same figures, and every allowance is spent once."""
    path = str(tmp_path / "a.db")
    prepared(path).close()
    racers = [start_process("""
        db = connect(sys.argv[1])
        print("ready", flush=True)
        sys.stdin.readline()
        print([one(db, f"SELECT dp_append('s', 'p{i}')") for i in (2, 4, 3)])
        """, path, stdin=subprocess.PIPE) for _ in range(4)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n", racer.stderr.read()
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    printed = set()
    for racer in racers:
        output, errors = racer.communicate(timeout=PATIENCE)
        assert racer.returncode == 0, errors
        printed.add(output)
    (figures,) = printed
    db = connect(path)
    found = right(db, PERIODS)["exact"]
    assert json.loads(figures) == [found[label][0] for label in ("p2", "p4", "p3")]


def test_an_interrupted_append_leaves_nothing(tmp_path):
    """An append that is interrupted while its question reads rows stores nothing and spends nothing; the next one goes on."""
    path = str(tmp_path / "a.db")
    db = prepared(path)
    before = rows_of(db, "exact")
    interrupted(db, "SELECT dp_append('s', 'p2')")
    assert rows_of(db, "exact") == before
    right(db, PERIODS[:1])
    append(db, "p4")
    right(db, PERIODS)


def test_two_connections_of_one_process(tmp_path):
    path = str(tmp_path / "a.db")
    db = prepared(path)
    other = connect(path)
    figure = append(other, "p2")
    assert append(db, "p2") == figure
    append(db, "p4")
    assert rows_of(other, "near") == rows_of(db, "near")
    right(other, PERIODS)


def test_a_copy_of_both_files_goes_on(tmp_path):
    """A series survives a move of database and ledger, with its book."""
    prepared(tmp_path / "a.db").close()
    (tmp_path / "new").mkdir()
    for end in ("", "-ledger"):
        shutil.move(tmp_path / f"a.db{end}", tmp_path / "new" / f"a.db{end}")
    db = connect(str(tmp_path / "new" / "a.db"))
    append(db, "p4")
    right(db, PERIODS)
