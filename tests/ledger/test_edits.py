"""dp_verify() notices every edit of the ledger file that can be noticed. The tests edit every column of every table.

Each edit is made to a copy of a ledger that has releases of every mechanism (ledger_stories.py). The triggers are dropped
before the edit and created again afterwards. An edit is noticed if dp_verify() does not return 'ok' or raises an error. Some
edits cannot be noticed and are not tested: two files that differ in their free pages or in the order of rows on disk contain the
same ledger, and an older copy of both files is a correct ledger.
"""

import contextlib
import hashlib
import json
import math
import pathlib
import random
import shutil
import sqlite3
import struct

import pytest

import ledger_stories
from conftest import APPEND_ONLY, SUM, Clock, connect, edit, ledger_of, one, refused

pytestmark = pytest.mark.alarm(1e-12)

TABLES = ("dp_ledger dp_tier dp_release dp_publication dp_value dp_point dp_coordinate dp_path dp_charge dp_seal dp_budget"
          " dp_order sqlite_sequence").split()
IDENTITY = {"dp_coordinate": "point, key, component", "dp_path": "release_id, tier, key, component"}  # of tables without rowid
OTHERS = "dp_policy dp_tier dp_release dp_publication dp_value dp_charge dp_seal dp_budget dp_grant dp_reserve dp_page".split()
UNNOTICED = {}  # (table, column): why an edit of this column cannot be noticed. No such column is known.


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    """Makes two ledgers that together have every mechanism, with the current version."""
    folder = tmp_path_factory.mktemp("rich")
    for name in ("units", "rows"):
        ledger_stories.tell(ledger_stories.STORIES[name], folder / f"{name}.db")
    return folder


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Makes a ledger with a policy, with charges in a period that is over and in the current one, and with a grant that paid."""
    folder, clock = tmp_path_factory.mktemp("guarded"), Clock()
    try:
        clock.set("2026-01-10 10:00:00")
        db = connect(folder / "guarded.db")
        db.executescript("""
            CREATE TABLE visit(patient INTEGER, ward INTEGER); INSERT INTO visit VALUES (1, 1), (1, 2), (2, 1), (3, 2);
            CREATE TABLE ward(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO ward VALUES (1, 'east'), (2, 'west');
            SELECT dp_init('{"unit":"patient"}'), dp_protect('visit', 'patient'), dp_public('ward');
            SELECT dp_tier('inner', 0.01, 8, 1e-6, '{"period":"month"}'), dp_tier('outer', 0.001, 4, 1e-6, '{"period":"year"}');
            SELECT dp_release('inner', 'count', 'SELECT 1 FROM visit', '{"name":"january","clip":2}');
            SELECT dp_diffuse('january', 'outer');""")
        clock.set("2026-02-10 10:00:00")
        db.executescript("""
            SELECT dp_release('inner', 'count', 'SELECT 1 FROM visit', '{"name":"february","clip":2}');
            SELECT dp_grant('visitors', 'inner', 0.5, '{"diffuse":["outer"]}');
            SELECT dp_report('outer', '{"title":"Visits"}');""")
        db.close()
        db = connect(folder / "guarded.db")
        one(db, """SELECT dp_guard('inner', '{"ask":"visitors"}')""")
        one(db, """SELECT dp_release('inner', 'count', 'SELECT 1 FROM visit', '{"name":"asked","clip":2}')""")
        db.close()
    finally:
        clock.stop()
    return folder


def verdict(path):
    db = connect(path)
    try:
        return one(db, "SELECT dp_verify()")
    except sqlite3.Error as error:
        return str(error)
    finally:
        db.close()


STORY_CALLS = ["SELECT dp_diffuse(max(name), 'public') FROM dp_release WHERE kind = 'avg'", "SELECT dp_count('region', x, 1) FROM t",
               "SELECT dp_sum('clinic', x, 20, '{\"name\":\"refined\",\"refine\":true}') FROM t", "SELECT dp_certificate()",
               "SELECT dp_exposure('clinic')", "SELECT count(*) FROM dp_rdp", "SELECT dp_report()"]


def check_calls(path):
    """Every call answers, or says in a sentence what is wrong."""
    db = connect(path)
    for sql in STORY_CALLS:
        try:
            db.execute(sql).fetchall()
        except sqlite3.Error as error:
            assert len(str(error)) > 20, (sql, error)
    db.close()


def others(value, column, rng):
    """Returns replacements for `value`: some close to it, some far from it, and some of other types."""
    if value is None:
        return [0, 0.5, "x", b"x"]
    if isinstance(value, bytes):
        return [None, value[:-1] + bytes([value[-1] ^ 1]), value[:-8], b""]
    if isinstance(value, str):
        swapped = value.swapcase()
        return [None, value + "x", value[:-1], value.encode(), 7] + ([swapped] if swapped != value else [])
    if isinstance(value, int):
        return [None, value + 1, value - 1, value * 2 + 1, value + 0.5, f"{value}x"]
    near = [math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
    return [None, *(x for x in near if x != value), value * 0.5 + 0.25, "x", rng.choice([0.0, 1e300])]


def affine(ledger, table, column, value):
    """Returns the type and the value that the column stores for `value`, which the affinity of the column may convert."""
    (kind,) = [row[2] for row in ledger.execute(f"PRAGMA table_info({table})") if row[1] == column]
    kept = ledger.execute(f"SELECT CAST(? AS {kind})", (value,)).fetchone()[0] if kind and isinstance(value, (int, float)) else value
    return type(kept), kept


def edits_of_values(ledger, table, rng):
    """Yields (description, statements with parameters) for edits of every column of some rows."""
    names = [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]
    identity = IDENTITY.get(table, "rowid")
    this = f"({identity}) = ({', '.join('?' * len(identity.split(',')))})"
    ids = ledger.execute(f"SELECT {identity} FROM {table} ORDER BY {identity}").fetchall()
    chosen = sorted({ids[0], ids[-1], rng.choice(ids)})
    for column in names:
        for row in chosen:
            value = one(ledger, f"SELECT {column} FROM {table} WHERE {this}", *row)
            for other in others(value, column, rng):
                if affine(ledger, table, column, other) == affine(ledger, table, column, value):
                    continue  # the column would convert `other` to the old value
                yield f"{table}.{column} of row {row}: {value!r} to {other!r}", [
                    (f"UPDATE {table} SET {column} = ? WHERE {this}", (other, *row))]
        columns = ledger.execute(f"SELECT {identity}, {column} FROM {table}").fetchall()
        pairs = [(a, b) for a in columns for b in columns if a[-1] != b[-1]]
        for a, b in rng.sample(pairs, min(1, len(pairs))):
            yield f"{table}.{column}: rows {a} and {b} swapped", [
                (f"UPDATE {table} SET {column} = CASE WHEN {this} THEN ? ELSE ? END WHERE {this} OR {this}",
                 (*a[:-1], b[-1], a[-1], *a[:-1], *b[:-1]))]
    for row in chosen:
        yield f"{table}: row {row} deleted", [(f"DELETE FROM {table} WHERE {this}", row)]
        content = dict(zip(names, ledger.execute(f"SELECT * FROM {table} WHERE {this}", row).fetchone()))
        for column in [None, *names] if row == ids[-1] else []:  # a copy of the row, in which at most one column differs
            copy = dict(content)
            if column:
                copy[column] = (max(ids)[0] + 1 if column == "id" and isinstance(content[column], int) else
                                others(content[column], column, rng)[1])
            yield f"{table}: row {row} twice, with another {column}", [
                (f"INSERT INTO {table}({','.join(copy)}) VALUES ({','.join('?' * len(copy))})", tuple(copy.values()))]
    yield f"{table}: emptied", [(f"DELETE FROM {table}", ())]


def apply(path, statements):
    """Edits the ledger without its triggers, and restores the triggers. Returns 0 if the file refuses the edit or nothing has
    changed."""
    ledger = ledger_of(path)
    try:
        ledger.execute("PRAGMA ignore_check_constraints = ON")
        triggers = ledger.execute(APPEND_ONLY).fetchall()
        ledger.execute("BEGIN")
        for name, _ in triggers:
            ledger.execute(f'DROP TRIGGER "{name}"')
        changed = sum(edit(ledger, sql, parameters) for sql, parameters in statements)
        for _, sql in triggers:
            ledger.execute(sql)
        ledger.execute("COMMIT")
        return changed
    except (sqlite3.IntegrityError, OverflowError):
        return 0
    finally:
        ledger.close()


def copy_of(ledgers, name, folder):
    path = folder / f"{name}.db"
    for suffix in ("", "-ledger"):
        shutil.copy(f"{ledgers / name}.db{suffix}", f"{path}{suffix}")
    return path


SHARES = [6, pytest.param(1, marks=pytest.mark.slow)]  # every sixth edit, which is one of each column, and every edit


def check_edits(folder, name, table, copies, share):
    rng = random.Random(f"{name}{table}")
    path = copy_of(folder, name, copies)
    assert verdict(path) == "ok" and apply(path, []) == 0 and verdict(path) == "ok"
    source = ledger_of(path)
    edits = list(edits_of_values(source, table, rng))[::share]
    source.close()
    unseen, made = [], 0
    for what, statements in edits:
        path = copy_of(folder, name, copies)
        if apply(path, statements):
            made += 1
            if verdict(path) == "ok":
                unseen.append(what)
            if name == "units" and made % 3 == 1:
                check_calls(path)
    assert not [what for what in unseen if tuple(what.split(":")[0].split(" ")[0].split(".")) not in UNNOTICED], unseen
    assert made > 5 / share


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["units", "rows"])
def test_every_edit_of_a_value_is_noticed(ledgers, tmp_path, name, table, share):
    check_edits(ledgers, name, table, tmp_path, share)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("table", OTHERS)
def test_every_edit_of_a_policy_a_period_or_a_grant_is_noticed(guarded, tmp_path, clock, table, share):
    clock.set("2026-02-10 11:00:00")
    check_edits(guarded, "guarded", table, tmp_path, share)


def schema_edits():
    ledger = sqlite3.connect(":memory:")
    ledger.executescript((pathlib.Path(__file__).parents[2] / "sql" / "ledger.sql").read_text())
    for kind, name, sql in ledger.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND"
                                          " substr(name, 1, 7) <> 'sqlite_'").fetchall():
        if kind != "table":
            yield f"DROP {kind} {name}"
        if kind == "trigger":
            yield f"DROP TRIGGER {name}; {sql.replace('append-only', 'append only')}"
        if kind == "table":
            yield f"ALTER TABLE {name} ADD COLUMN extra"
            yield f"ALTER TABLE {name} RENAME TO other_{name}"
            yield f"CREATE TRIGGER mine BEFORE INSERT ON {name} BEGIN SELECT raise(IGNORE); END"
            yield f"CREATE VIEW mine AS SELECT * FROM {name}"
            yield (f"PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name ="
                   f" '{name}'")
    yield "DROP VIEW dp_rdp; CREATE VIEW dp_rdp AS SELECT tier, alpha, curve AS spent, allowed FROM dp_order"
    yield "CREATE TABLE mine(x)"
    yield "PRAGMA user_version = 3"
    yield "PRAGMA application_id = 1"


@pytest.mark.sample(50)
@pytest.mark.parametrize("edit", schema_edits())
def test_every_edit_of_the_schema_is_noticed(ledgers, tmp_path, edit):
    path = copy_of(ledgers, "rows", tmp_path)
    ledger = ledger_of(path)
    ledger.executescript(edit)
    ledger.close()
    assert verdict(path) != "ok"


def test_what_sqlite_adds_by_itself_is_no_edit(ledgers, tmp_path):
    path = copy_of(ledgers, "units", tmp_path)
    ledger = ledger_of(path)
    ledger.executescript("ANALYZE; VACUUM; REINDEX")
    ledger.close()
    assert verdict(path) == "ok"


def test_every_flipped_bit_that_sqlite_notices_is_noticed(ledgers, tmp_path):
    """Bits of the pages of indices are flipped. SQLite's integrity check on a plain connection says which flips matter. A
    statement that dp_verify() runs may read the table alone, so dp_verify() needs the check, too."""
    rng, flips, unseen = random.Random(3), 0, []
    path = copy_of(ledgers, "units", tmp_path)
    file = pathlib.Path(f"{path}-ledger")
    good = file.read_bytes()
    ledger = ledger_of(path)
    size = one(ledger, "PRAGMA page_size")
    starts = [(page - 1) * size for (page,) in ledger.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'")]
    ledger.close()
    starts = [at for at in starts if good[at + 3:at + 5] != b"\0\0"]  # pages with cells
    for _ in range(200):
        page = rng.choice(starts)
        cells = page + int.from_bytes(good[page + 5:page + 7], "big")  # the first byte of the page's cells
        at, bit = rng.randrange(cells, page + size), 1 << rng.randrange(8)
        file.write_bytes(good[:at] + bytes([good[at] ^ bit]) + good[at + 1:])
        ledger = ledger_of(path)
        try:
            matters = ledger.execute("PRAGMA integrity_check").fetchall() != [("ok",)]
        except sqlite3.DatabaseError:
            matters = True
        ledger.close()
        flips += matters
        if matters and verdict(path) == "ok":
            unseen.append((at, bit))
    assert flips > 50 and not unseen


@pytest.mark.parametrize("made,named", [
    ("CREATE TABLE _litestream_seq(id INTEGER PRIMARY KEY, seq INTEGER); CREATE TABLE _litestream_lock(id INTEGER)", "table '_litestream_lock'"),
    ("CREATE VIEW mine AS SELECT count(*) FROM dp_charge", "view 'mine'"),
    ("CREATE TRIGGER aim AFTER INSERT ON dp_charge BEGIN SELECT 1; END", "trigger 'aim'")])
def test_objects_of_other_programs_are_named_and_the_advice_loses_nothing(db, path, made, named):
    one(db, SUM, "a")
    ledger = ledger_of(path)
    charges = ledger.execute("SELECT * FROM dp_charge").fetchall()
    ledger.executescript(made)
    said = f"schema: another program has put the {named} into the ledger file (drop it there, which loses no charge)"
    assert one(db, "SELECT dp_verify()") == said
    assert refused(db, "SELECT dp_report()") == "dp_report: the ledger does not verify: " + said
    while (found := one(db, "SELECT dp_verify()")) != "ok":  # the advice
        ledger.execute("DROP {} {}".format(*found.split("put the ")[1].split(" into")[0].split(" ")))
    assert one(db, "SELECT dp_report()") and ledger.execute("SELECT * FROM dp_charge").fetchall() == charges


# ---- the digests are what the schema says -----------------------------------------------------------


def line(value):
    if value is None:
        return b"n\n"
    if isinstance(value, int):
        return b"i%d\n" % value
    if isinstance(value, float):
        return b"r" + struct.pack(">d", value).hex().encode() + b"\n"
    content = value.encode() if isinstance(value, str) else value
    return (b"t" if isinstance(value, str) else b"b") + b"%d:" % len(content) + content + b"\n"


def digest(ledger, *queries):
    text = b""
    for table, sql in queries:
        for row in ledger.execute(sql):
            text += table.encode() + b"\n" + b"".join(map(line, row))
    return hashlib.sha256(text).hexdigest()


def subject(ledger, release_id):
    if release_id == 0:
        return digest(ledger, ("dp_ledger", "SELECT * FROM dp_ledger"), ("dp_tier", "SELECT * FROM dp_tier ORDER BY name"),
                      ("dp_policy", "SELECT * FROM dp_policy ORDER BY table_name"), ("dp_grant", "SELECT * FROM dp_grant ORDER BY name"),
                      ("dp_page", "SELECT * FROM dp_page ORDER BY tier"))
    if release_id == -1:
        return digest(ledger, ("dp_order", "SELECT tier, alpha, allowed FROM dp_order ORDER BY tier, alpha"))
    return digest(ledger, ("dp_release", f"SELECT * FROM dp_release WHERE id = {release_id}"),
                  ("dp_publication", f"SELECT * FROM dp_publication WHERE release_id = {release_id} ORDER BY tier"),
                  ("dp_value", f"SELECT * FROM dp_value WHERE release_id = {release_id} ORDER BY tier, key, component"),
                  ("dp_path", f"SELECT * FROM dp_path WHERE release_id = {release_id} ORDER BY tier, key, component"))


@pytest.mark.parametrize("name", ["units", "rows"])
def test_seals_are_what_the_schema_says(ledgers, name):
    ledger = ledger_of(ledgers / f"{name}.db")
    charges = dict(ledger.execute("SELECT id, hash FROM dp_charge"))
    previous, last = "", {}
    for number, row in enumerate(ledger.execute("SELECT * FROM dp_seal ORDER BY id").fetchall(), 1):
        identity, release_id, stored, books, charge_id, at, stored_hash = row
        lines = [previous, identity, release_id, stored, books, charge_id, charges.get(charge_id, ""), at]
        previous = hashlib.sha256("".join(f"{x}\n" for x in lines).encode()).hexdigest()
        assert identity == number and stored_hash == previous
        last[release_id] = stored
    assert last == {each: subject(ledger, each) for each in
                    [0, -1] + [row[0] for row in ledger.execute("SELECT id FROM dp_release")]}
    assert books == digest(ledger, ("dp_budget", "SELECT * FROM dp_budget ORDER BY tier"))
    assert charge_id == max(charges)


def seal_anew(path):
    """Computes the last seals anew: an editor who knows what the schema says."""
    ledger = ledger_of(path)
    triggers = ledger.execute(APPEND_ONLY).fetchall()
    for name, _ in triggers:
        ledger.execute(f'DROP TRIGGER "{name}"')
    for each, last in ledger.execute("SELECT release_id, max(id) FROM dp_seal GROUP BY release_id").fetchall():
        ledger.execute("UPDATE dp_seal SET digest = ? WHERE id = ?", (subject(ledger, each), last))
    ledger.execute("UPDATE dp_seal SET books = ? WHERE id = (SELECT max(id) FROM dp_seal)",
                   (digest(ledger, ("dp_budget", "SELECT * FROM dp_budget ORDER BY tier")),))
    charges, previous = dict(ledger.execute("SELECT id, hash FROM dp_charge")), ""
    for row in ledger.execute("SELECT * FROM dp_seal ORDER BY id").fetchall():
        lines = [previous, *row[:5], charges.get(row[4], ""), row[5]]
        previous = hashlib.sha256("".join(f"{x}\n" for x in lines).encode()).hexdigest()
        ledger.execute("UPDATE dp_seal SET hash = ? WHERE id = ?", (previous, row[0]))
    for _, sql in triggers:
        ledger.execute(sql)
    ledger.close()


@pytest.mark.parametrize("column", ["kind", "mechanism"])
def test_a_release_of_a_newer_version_is_an_error(db, path, column):
    """With the seals of the newer version. Without them, nothing is computed from the edited release."""
    one(db, "SELECT dp_release('clinic', 'sum', 'SELECT minutes FROM visits', '{\"clip\":1,\"name\":\"r\",\"diagnose\":true}')")
    db.close()
    with contextlib.closing(ledger_of(path)) as ledger:
        edit(ledger, f"UPDATE dp_release SET {column} = 'newer'")
    calls = ["SELECT dp_clipping('r', 'clinic')", "SELECT dp_interval('r', 'clinic', NULL, 0.9)", "SELECT * FROM dp_parts('r', 'clinic')",
             "SELECT dp_diffuse('r', 'public')"]
    with contextlib.closing(connect(path)) as db:
        assert all("is damaged: the rows of release 1" in refused(db, call) for call in calls)
    seal_anew(path)
    with contextlib.closing(connect(path)) as db:
        assert all("this version does not know" in refused(db, call) for call in calls if "dp_parts" not in call)  # no sum has parts


# Columns with numbers that follow from those of other tables.
FOLLOWS = {"dp_publication": "release_id rate shrink delta clipped unclipped unit_stddev threshold",
           "dp_value": "release_id component value",
           "dp_budget": "spent_epsilon spent_rate spent_delta releases spent_high spent_low spent_slack spent_curve spent_pure"}


@pytest.mark.parametrize("table", FOLLOWS)
@pytest.mark.parametrize("name", ["units", "rows"])
@pytest.mark.sample(4)
def test_another_number_is_noticed_although_its_seals_are_right(ledgers, tmp_path, name, table):
    path, rng = copy_of(ledgers, name, tmp_path), random.Random(f"{name}{table}")
    seal_anew(path)
    assert verdict(path) == "ok"
    ledger = ledger_of(path)
    # A choice is a name. The number beside it says nothing.
    drawn = "" if table == "dp_budget" else " AND release_id NOT IN (SELECT id FROM dp_release WHERE kind = 'choice')"
    cells = [(column, row, value) for column in FOLLOWS[table].split()
             for row, value in ledger.execute(f"SELECT rowid, {column} FROM {table} WHERE abs({column}) < 1e300{drawn}")]
    ledger.close()
    unseen = []
    for column, row, value in rng.sample(cells, min(len(cells), 40)):
        path = copy_of(ledgers, name, tmp_path)
        other = value + 1 if isinstance(value, int) else value * 1.001 + 0.001
        if apply(path, [(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, row))]):
            seal_anew(path)
            if verdict(path) == "ok":
                unseen.append((column, row, value))
    assert not unseen


# ---- nothing is made of a row that was edited -------------------------------------------------------


@pytest.mark.parametrize("change", [
    "UPDATE dp_path SET clock = clock * 1000 WHERE release = 'a' AND tier = 'region'",
    "UPDATE dp_path SET value = value + 1 WHERE release = 'a'", "UPDATE dp_release SET sensitivity = sensitivity / 2",
    "UPDATE dp_value SET value = 0", "UPDATE dp_release SET clip = 1 WHERE name = 'a'",
    "DELETE FROM dp_publication WHERE release = 'a' AND tier = 'public'"])
@pytest.mark.parametrize("sql", ["SELECT dp_diffuse('a', 'web')", "SELECT dp_diffuse('a', 'region')",
                                 SUM.replace("?", "'a'"), "SELECT dp_discard('a')"])
def test_an_edited_release_is_refused_and_costs_nothing(db, path, change, sql):
    """The point at 'region' was made on the way to 'public' and is not published. The first change raises the clock of this
    point. If the change were accepted, publishing the point would cost nothing."""
    one(db, "SELECT dp_tier('web', 0.00001, 1.0, 1e-6)")
    one(db, SUM, "a")
    one(db, "SELECT dp_diffuse('a', 'public')")
    ledger = ledger_of(path)
    assert edit(ledger, change) > 0
    before = list(ledger.iterdump())
    message = refused(db, sql)
    assert "are not what its last seal says" in message or "other parameters" in message
    assert list(ledger.iterdump()) == before


@pytest.mark.parametrize("edit,table", [
    ("UPDATE dp_tier SET rate_limit = rate_limit * 10", "dp_tier"), ("UPDATE dp_tier SET epsilon = 100", "dp_tier"),
    ("UPDATE dp_ledger SET unit = 'x'", "dp_ledger"), ("UPDATE dp_budget SET spent_high = 0, spent_low = 0", "dp_budget")])
@pytest.mark.parametrize("sql", [SUM.replace("?", "'b'"), "SELECT dp_diffuse('a', 'public')",
                                 "SELECT dp_tier('web', 0.00001, 1.0, 1e-6)"])
def test_an_edited_budget_or_tier_is_refused_and_costs_nothing(db, path, edit, table, sql):
    one(db, SUM, "a")
    ledger = ledger_of(path)
    ledger.execute(edit)
    before = list(ledger.iterdump())
    assert table in refused(db, sql) and list(ledger.iterdump()) == before


def test_a_seal_is_written_only_where_something_changed(db, path):
    one(db, SUM, "a")
    seals = one(ledger_of(path), "SELECT count(*) FROM dp_seal")
    for _ in range(3):
        one(db, SUM, "a")
        one(db, "SELECT dp_verify()")
        one(db, "SELECT dp_plan('clinic', 'count', 1)")
        one(db, "SELECT dp_tier('clinic', 0.004, 8.0, 1e-6)")
        json.loads(one(db, "SELECT dp_certificate()"))
    assert one(ledger_of(path), "SELECT count(*) FROM dp_seal") == seals


def test_seals_are_append_only_for_any_sqlite_tool(db, path):
    for sql in ("UPDATE dp_seal SET digest = ''", "DELETE FROM dp_seal", "REPLACE INTO dp_seal SELECT * FROM dp_seal"):
        with pytest.raises(sqlite3.Error, match="append-only"):
            ledger_of(path).execute(sql)
