"""What a loss of power leaves of a ledger, and what each sync of a release is for.

A library writes down every write and sync that a release makes (tests/helpers/trace.c). From this the test computes what the disk may
hold after a loss of power: everything that was synced, and any part of the rest, in any order, also parts of a write. SQLite then
opens the ledger in such a state. It must hold all rows of one moment: before the charge, with the charge, or with the values. From
the moment on when the question reads rows, the charge must be there, and from the answer on the values.

Without any one of the ten syncs, some state breaks this. What is lost is printed (pytest -s)."""

import hashlib
import random
import shutil
import sqlite3
import sys

import pytest

from conftest import library, run

SECTOR = 512  # bytes that a disk writes at once
MOMENTS = ["before", "charged", "answered"]
WHAT = ["the journal's pages", "the directory", "the journal's header", "the ledger's file", "the emptied journal"]
DAMAGED, NO_CHARGE, NO_VALUE = "damaged", "the charge is lost", "the value is lost"

RELEASE = """
    db = create(sys.argv[1])
    ask = "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visits', json_object('name', ?, 'clip', 1))"
    for name in ("old", "older"):
        one(db, ask, name)
    forget = lambda: os.unlink(sys.argv[1] + "-ledger-journal")  # as another program does that opens the ledger
    forget()
    shutil.copy(sys.argv[1] + "-ledger", sys.argv[2])
    mark, marks = ctypes.CDLL(None).trace_mark, []
    mark(b"before")
    when_reading(db, lambda: marks.append(1) or len(marks) > 1 or mark(b"charged") or forget())
    one(db, ask, "new")
    mark(b"answered")
    """


class Disk:
    """The ledger and its journal as lists of events: their contents at the first mark, and what follows."""

    def __init__(self, base, trace):
        self.base, self.events = {"ledger": base}, []
        started = False
        for line in trace.read_text().splitlines():
            what, path, *rest = line.split(" ")
            started |= what == "mark"
            name = "journal" if path.endswith("-journal") else "ledger" if path.endswith("-ledger") else path
            if started and not path.endswith("-lock"):
                self.events.append((what, name, *rest))
        self.syncs = [i for i, event in enumerate(self.events) if event[0] == "sync"]
        self.marks = {event[1]: i for i, event in enumerate(self.events) if event[0] == "mark"}

    def state(self, end, without, choose):
        """Returns what the disk holds after the first `end` events. `without` is a sync that is left out. choose() returns the part
        of the writes after the last sync that has reached the disk."""
        files, pending, named = dict(self.base), {"ledger": [], "journal": []}, {"ledger"}
        new = set()
        for at, (what, name, *rest) in enumerate(self.events[:end]):
            if what == "create":
                new.add(name)
            elif what == "remove":
                files[name], pending[name], named, new = b"", [], named - {name}, new - {name}
            elif what in ("write", "cut"):
                pending[name].append((what, *rest))
            elif what == "sync" and at != without and name not in pending:
                named |= new
            elif what == "sync" and at != without:
                files[name] = applied(files.get(name, b""), pending[name])
                pending[name] = []
        for name, writes in pending.items():
            files[name] = applied(files.get(name, b""), choose(writes))
        kept = named | (new if choose([None]) else set())
        return {name: content for name, content in files.items() if name in kept}


def applied(content, writes):
    content = bytearray(content)
    for what, *rest in writes:
        at = int(rest[0])
        if what == "cut":
            del content[at:]
            content.extend(bytes(at - len(content)))
        else:
            written = bytes.fromhex(rest[1])
            content.extend(bytes(max(0, at + len(written) - len(content))))
            content[at:at + len(written)] = written
    return bytes(content)


def sectors(writes):
    """Divides the writes into the parts that reach the disk together."""
    for what, *rest in filter(None, writes):
        at, written = int(rest[0]), rest[1] if what == "write" else ""
        if what == "cut":
            yield what, *rest
        while written:
            size = SECTOR - at % SECTOR
            yield what, at, written[:2 * size]
            at, written = at + size, written[2 * size:]


def choices(rng, most):
    """Gives functions that choose a part of the writes: none, all, all up to a place, and all or none with a few exceptions."""
    yield lambda writes: []
    yield lambda writes: writes
    for _ in range(most):
        share, exceptions, up_to = rng.choice([0, 1]), rng.choice([0.02, 0.1, 0.5]), rng.choice([1, 1, rng.random()])
        seed = rng.random()

        def choose(writes):
            own = random.Random(seed + len(writes))
            if writes == [None]:
                return [None] if own.random() < share else []
            parts = list(sectors(writes))
            return [part for part in parts[:int(len(parts) * up_to) + 1] if (own.random() < exceptions) != (share == 1)]

        yield choose


class Opened:
    """Opens states of the disk. The same state is opened once."""

    def __init__(self, folder):
        self.folder, self.known = folder, {}

    def content(self, state):
        """Returns a hash of all rows, or DAMAGED."""
        key = hashlib.sha256(repr(sorted(state.items())).encode()).digest()
        if key not in self.known:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
            for name, content in state.items():
                (self.folder / name.replace("journal", "ledger-journal")).write_bytes(content)
            self.known[key] = self.read()
        return self.known[key]

    def read(self):
        db = sqlite3.connect(self.folder / "ledger")
        try:
            if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                return DAMAGED
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
            rows = [db.execute(f'SELECT * FROM "{table}"').fetchall() for table in tables]
            return hashlib.sha256(repr((tables, rows)).encode()).hexdigest()
        except sqlite3.DatabaseError:
            return DAMAGED
        finally:
            db.close()


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disk")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", library(folder, "trace.c"))
        patch.setenv("TRACE", str(folder / "trace"))
        run("import shutil\n" + "\n".join(line[4:] for line in RELEASE.splitlines()), folder / "a.db", folder / "base")
    disk = Disk((folder / "base").read_bytes(), folder / "trace")
    opened = Opened(folder / "state")
    moments = {opened.content(disk.state(disk.marks[moment], None, lambda writes: writes)): moment for moment in MOMENTS}
    assert list(moments.values()) == MOMENTS and DAMAGED not in moments
    return disk, opened, moments


def wrong(disk, opened, moments, end, without, choose):
    """Returns what is wrong with a state, or None."""
    moment = moments.get(opened.content(disk.state(end, without, choose)))
    if moment is None:
        return DAMAGED
    if end > disk.marks["answered"]:
        return NO_VALUE if moment != "answered" else None
    return NO_CHARGE if end > disk.marks["charged"] and moment == "before" else None


pytestmark = [pytest.mark.plain, pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded by LD_PRELOAD")]


def test_a_release_syncs_what_it_has_to(disk):
    disk, _, _ = disk
    names = ["journal", "folder", "journal", "ledger", "journal"]
    found = [name if name in ("journal", "ledger") else "folder" for what, name, *_ in disk.events if what == "sync"]
    assert found == names + ["journal", "folder", "journal", "ledger", "journal"]


def test_no_loss_of_power_damages_a_ledger_or_loses_a_charge(disk):
    """Every moment, with several parts of what was not synced."""
    rng = random.Random(1)
    for end in range(len(disk[0].events) + 1):
        for choose in choices(rng, 2):
            assert wrong(*disk, end, None, choose) is None, end


@pytest.mark.parametrize("number", range(10), ids=[f"{commit} {what}" for commit in ("charge", "values") for what in WHAT])
def test_without_a_sync_some_state_of_the_disk_is_wrong(disk, number):
    without, last = disk[0].syncs[number], len(disk[0].events)
    rng = random.Random(460 + number)  # finds such states soon
    for attempt in range(3000):
        end = rng.randint(without + 1, last)
        for choose in choices(rng, 1):
            if found := wrong(*disk, end, without, choose):
                print(f"{WHAT[number % 5]}: {end - without} events later, {found}")
                return
    raise AssertionError("no state of the disk needs this sync")
