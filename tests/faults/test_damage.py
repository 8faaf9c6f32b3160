"""Ledgers that are damaged, cut short or not writable. The extension must never crash and never return a value
without a charge."""

import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile

import pytest

from conftest import SUM, connect, create, ledger_of, one, run

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
FLIPS = 40000 if os.environ.get("DIFFUSE_FAULTS") == "all" else 80


def test_flipped_bytes_all_over_the_file(tmp_path):
    """Changes one byte, and then three bytes, at a time. tests/fuzz/ledgers.c makes the changes and checks the
    results."""
    chance = random.Random(7)
    for i in range(FLIPS):
        places = [int(i / FLIPS * 2**17)] + [chance.randrange(2**17) for _ in range(2 * (i % 2))]
        change = b"".join(struct.pack("<IBB", place, 1, chance.randrange(256)) for place in places)
        (tmp_path / f"{i:06d}").write_bytes(b"\0" + change)
    files = sorted(tmp_path.iterdir())
    for i in range(0, FLIPS, 1000):
        done = subprocess.run([BUILD / "replay" / "ledgers", *files[i:i + 1000]], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def charges_in_file(path, name):
    """Returns the number of charges of a release in the file, or None if the file cannot be read."""
    try:
        return one(ledger_of(path), "SELECT count(*) FROM dp_charge NOT INDEXED WHERE release = ?", name)
    except Exception:
        return None


@pytest.mark.parametrize("part", [0, 100, 512, 4096, 0.5, 0.9])
@pytest.mark.parametrize("opened", [True, False])
def test_a_ledger_that_is_cut_short(path, part, opened):
    db = create(path)
    one(db, SUM, "a")
    size = os.path.getsize(f"{path}-ledger")
    if not opened:
        db.close()
        db = connect(path)
    os.truncate(f"{path}-ledger", part if part == int(part) else int(part * size))
    for sql in ("SELECT dp_sum('clinic', minutes, 10, 'b') FROM visits", "SELECT dp_diffuse('a', 'public')"):
        try:
            assert one(db, sql) is not None
            assert charges_in_file(path, "b" if "'b'" in sql else "a")
        except Exception as error:
            assert "privacy ledger" in str(error), error
    try:
        assert one(db, "SELECT dp_verify()") != "ok"
    except Exception as error:
        assert "privacy ledger" in str(error), error


def test_an_older_ledger_copied_over_an_open_one_goes_on_from_there(path):
    """The extension cannot notice that an older copy has replaced the ledger. It continues from the copy, and charges
    and values stay consistent."""
    db = create(path)
    one(db, SUM, "a")
    shutil.copy(f"{path}-ledger", f"{path}-older")
    one(db, SUM, "b")
    with open(f"{path}-older", "rb") as older, open(f"{path}-ledger", "r+b") as ledger:
        ledger.write(older.read())
        ledger.truncate()
    db = connect(path)
    one(db, SUM, "c")
    assert one(db, "SELECT dp_verify()") == "ok" and one(db, "SELECT count(*) FROM dp_charge") == 2


AS_NOBODY = """
    import os
    db = connect(sys.argv[1])
    if os.getuid() == 0: os.setuid(65534)
    print(refused(db, SUM, "b"))
    """


@pytest.mark.parametrize("what", ["directory", "file"])
def test_a_ledger_that_cannot_be_written(what):
    directory = tempfile.mkdtemp()
    path = os.path.join(directory, "clinic.db")
    try:
        db = create(path)
        one(db, SUM, "a")
        db.close()
        if os.path.exists(f"{path}-ledger-journal"):
            os.unlink(f"{path}-ledger-journal")
        if os.getuid() == 0:
            for name in (directory, path, f"{path}-ledger"):
                os.chown(name, 65534, 65534)
        os.chmod(directory if what == "directory" else f"{path}-ledger", 0o555 if what == "directory" else 0o444)
        message = run(AS_NOBODY, path)
        causes = ("dp_sum: privacy ledger '", "dp_sum: cannot open the privacy ledger", "dp_sum: cannot lock '")
        assert message.startswith(causes), message
        os.chmod(directory, 0o755)
        os.chmod(f"{path}-ledger", 0o644)
        db = connect(path)
        assert one(db, "SELECT count(*) FROM dp_charge") == 1 and one(db, "SELECT dp_verify()") == "ok"
        assert isinstance(one(db, SUM, "b"), float)
    finally:
        os.chmod(directory, 0o755)
        shutil.rmtree(directory)


def test_a_small_disk_that_fills_up(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a file system")
    try:
        db = create(disk / "clinic.db")
        answers = 0
        with pytest.raises(Exception, match="privacy ledger .*full"):
            while True:
                one(db, SUM, '{"name":"r%d","weight":1e-4}' % answers)
                answers += 1
        assert answers > 10 and one(db, "SELECT dp_verify()") == "ok"
        assert answers <= one(db, "SELECT count(*) FROM dp_charge") <= answers + 1
        # The disk may have room for a charge but not for an answer. diffuse then stores the answer as soon as there is room.
        released = "SELECT count(*) FROM dp_release WHERE state = 'released'"
        assert answers / 2 < one(db, released) <= answers
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        one(db, SUM, '{"name":"later","weight":1e-4}')
        assert one(db, released) == answers + 1
        assert one(db, "SELECT dp_verify()") == "ok"
        db.close()
    finally:
        subprocess.run(["umount", disk], check=True)
