"""Tests all usual ways to move, copy, back up and restore a database and its ledger (sql/backup.md)."""

import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import pytest

from conftest import connect, create, EXTENSION, ledger_of, one, refused, start, SUM

pytestmark = pytest.mark.alarm(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHELL = os.environ.get("SQLITE3", "sqlite3")


@pytest.fixture
def clinic(path):
    db = create(path)
    one(db, SUM, "a")
    db.close()
    return path


def charges(path):
    db = connect(path)
    count = one(db, "SELECT count(*) FROM dp_charge")
    db.close()
    return count


def shell(file, *commands):
    subprocess.run([SHELL, str(file), *commands], check=True, capture_output=True, text=True)


def by_api(source, target):
    one, other = sqlite3.connect(source), sqlite3.connect(target)
    one.backup(other)
    one.close()
    other.close()


def by_pages(source, target):
    """Works like sqlite3_rsync: writes the pages that differ into an older copy, in one transaction."""
    shutil.copy(source, target)
    with sqlite3.connect(target) as old:
        old.execute("CREATE TABLE only_in_the_old_copy(x)")
    old.close()
    by_api(source, target)


def by_dump(source, target):
    dump = subprocess.run([SHELL, str(source), ".dump"], check=True, capture_output=True, text=True).stdout
    subprocess.run([SHELL, str(target)], input=dump, check=True, capture_output=True, text=True)


WAYS = {
    "cp": shutil.copy,
    "VACUUM INTO": lambda source, target: shell(source, f"VACUUM INTO '{target}'"),
    ".backup": lambda source, target: shell(source, f".backup '{target}'"),
    "sqlite3_backup": by_api,
    "pages": by_pages,
    ".dump": by_dump,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_the_database_elsewhere_has_no_ledger_and_says_so(clinic, tmp_path, way):
    (tmp_path / "there").mkdir()
    copy = tmp_path / "there" / "copy.db"
    WAYS[way](clinic, copy)
    for sql in ("SELECT dp_init()", SUM.replace("?", "'a'"), SUM.replace("?", "'b'"), "SELECT * FROM dp_value", "SELECT dp_report()"):
        message = refused(connect(copy), sql)
        assert "is missing" in message and f"bring the right one along as '{copy}-ledger'" in message
        assert message.index("bring the right one") < message.index("only where it is lost for good")
    assert charges(clinic) == 1
    # If the ledger is moved beside the copy, the extension finds it and corrects the marker.
    os.rename(f"{clinic}-ledger", f"{copy}-ledger")
    db = connect(copy)
    assert one(db, SUM, "a") == one(db, "SELECT value FROM dp_value") and one(db, "SELECT dp_verify()") == "ok"
    assert one(db, "SELECT path FROM dp_ledger_id") == "copy.db-ledger"


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_the_database_beside_it_shares_the_budget(clinic, way):
    """Two databases have the same ledger id and use one ledger. Each charge counts for both, and a name stands for one release in
    both."""
    copy = clinic.parent / "copy.db"
    WAYS[way](clinic, copy)
    one(connect(copy), SUM, "b")
    assert charges(clinic) == charges(copy) == 2
    values = {one(connect(file), SUM, "b") for file in (clinic, copy)}
    assert len(values) == 1 and charges(clinic) == 2
    assert not os.path.exists(f"{copy}-ledger")


PAIRS = {way: WAYS[way] for way in WAYS if way != ".dump"}


@pytest.mark.parametrize("way", PAIRS)
def test_copies_of_both_elsewhere_are_two_budgets(clinic, tmp_path, way):
    """Nothing in the files shows that there are two copies, so each copy has the whole budget. sql/backup.md warns of this
    danger."""
    (tmp_path / "there").mkdir()
    copy = tmp_path / "there" / "clinic.db"
    PAIRS[way](clinic, copy)
    PAIRS[way](f"{clinic}-ledger", f"{copy}-ledger")
    one(connect(copy), SUM, "b")
    assert (charges(clinic), charges(copy)) == (1, 2)
    assert one(connect(copy), "SELECT dp_verify()") == "ok" == one(connect(clinic), "SELECT dp_verify()")


def test_a_dump_of_the_ledger_is_no_ledger(clinic, tmp_path):
    """A dump contains neither the format number nor the application id, so the result is not accepted as a ledger."""
    (tmp_path / "there").mkdir()
    copy = tmp_path / "there" / "clinic.db"
    shutil.copy(clinic, copy)
    by_dump(f"{clinic}-ledger", f"{copy}-ledger")
    assert "is not a privacy ledger (restore it from a backup)" in refused(connect(copy), SUM, "b")


def test_copies_of_both_in_one_folder_are_refused(clinic):
    copy = clinic.parent / "copy.db"
    for suffix in ("", "-ledger"):
        by_api(f"{clinic}{suffix}", f"{copy}{suffix}")
    assert "are copies of one privacy ledger" in refused(connect(copy), SUM, "b")
    assert charges(clinic) == 1


def test_restoring_the_database_alone_costs_nothing(clinic):
    """If only the database is restored, the ledger still has every charge and every value that was drawn after the backup."""
    backup = clinic.parent / "backup"
    by_api(clinic, backup)
    db = connect(clinic)
    value = one(db, SUM, "later")
    db.execute("DELETE FROM visits")
    db.close()
    os.unlink(clinic)
    os.rename(backup, clinic)
    db = connect(clinic)
    assert one(db, SUM, "later") == value and one(db, "SELECT count(*) FROM dp_charge") == 2
    assert one(db, "SELECT count(*) FROM visits") > 0 and one(db, "SELECT dp_verify()") == "ok"


def test_an_older_ledger_shows_in_the_last_hash_alone(clinic):
    """An older ledger is consistent, so dp_verify() accepts it. Only the last hash differs. sql/backup.md therefore
    advises owners to keep this hash somewhere else."""
    old = clinic.parent / "old"
    by_api(f"{clinic}-ledger", old)
    db = connect(clinic)
    one(db, SUM, "b")
    kept = one(db, "SELECT json_extract(dp_certificate(), '$.last_hash')")
    db.close()
    os.rename(old, f"{clinic}-ledger")
    db = connect(clinic)
    assert one(db, "SELECT dp_verify()") == "ok" and one(db, "SELECT count(*) FROM dp_charge") == 1
    assert one(db, "SELECT json_extract(dp_certificate(), '$.last_hash')") != kept
    assert not ledger_of(clinic).execute("SELECT 1 FROM dp_charge WHERE hash = ?", (kept,)).fetchall()


def test_a_backup_of_the_ledger_is_whole_while_others_charge(clinic, tmp_path):
    process = start("""
        db = connect(sys.argv[1])
        for i in range(10**6):
            if i % 40 == 0: sys.stdin.readline()  # SQLite begins a backup again after each change, so there are pauses
            one(db, "SELECT dp_release('public', 'count', 'SELECT 1 FROM visits', ?)", f'{{"name":"n{i}","weight":0.001,"clip":1}}')
            print(i, flush=True)
    """, clinic, stdin=subprocess.PIPE)
    try:
        for i in range(5):
            process.stdin.write("go\n")
            process.stdin.flush()
            said = int(process.stdout.readline())
            folder = tmp_path / str(i)
            folder.mkdir()
            for suffix in ("", "-ledger"):
                shell(f"{clinic}{suffix}", ".timeout 60000", f".backup '{folder}/clinic.db{suffix}'")
            db = connect(folder / "clinic.db")
            assert one(db, "SELECT dp_verify()") == "ok"
            assert one(db, "SELECT count(*) FROM dp_release WHERE state = 'released'") > said + 1
            db.close()
            for _ in range(39):
                process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


def test_the_commands_of_the_page(clinic, monkeypatch):
    folder = clinic.parent
    monkeypatch.chdir(folder)
    (folder / "build").mkdir()
    shutil.copy(EXTENSION + ".so", folder / "build")
    text = (ROOT / "sql/backup.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 5
    for block in blocks:
        done = subprocess.run(["sh", "-e", "-c", f'sqlite3() {{ command {SHELL} "$@"; }}\n' + block], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, (block, done.stderr)
        assert done.stdout.splitlines() == [line[2:] for line in block.splitlines() if line.startswith("# ")], block
