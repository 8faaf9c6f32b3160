"""Tells a story once for each change of a setting (other_settings.py) and for all together, with noise and a clock that are always the same, and compares
everything that a statement shows, and the ledger, with those of the story without a change: settings_story.py FOLDER [each]."""

import os
import pathlib
import re
import sqlite3
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]
os.environ.update(FIXED_SEED="7", FIXED_NOW="1772000000")

from conftest import EXTENSION, load, one  # noqa: E402
from fixed_noise import books  # noqa: E402
from ledger_stories import STORIES  # noqa: E402
from other_settings import Changed, in_order, other_settings  # noqa: E402

OWNER = [sql for sql in STORIES["units"] if not sql.startswith(("killed", "interrupted"))] + [
    "CREATE TABLE ward(name TEXT PRIMARY KEY, beds INT, size AS (beds * 2)) WITHOUT ROWID", "INSERT INTO ward VALUES ('a', 3), ('b', 5), ('c', 9)",
    "CREATE TABLE person(id PRIMARY KEY NOT NULL, born)", "CREATE TABLE stay(person REFERENCES person, k, days)",
    "INSERT INTO person SELECT DISTINCT unit, 1900 + unit FROM t", "INSERT INTO stay SELECT unit, k, x FROM t",
    "CREATE VIEW busy AS SELECT k, x, rowid FROM t JOIN ward ON k = name WHERE beds > 3",
    "SELECT * FROM dp_policy_plan('person')", "SELECT dp_protect('person', 'id'), dp_protect('stay', 'person', 'person'), dp_public('ward')",
    "SELECT dp_release('clinic', 'group_sum', 'SELECT k, sum(x) FROM busy GROUP BY k', '{\"name\":\"view\",\"clip\":9,\"keys\":[\"b\",\"c\"]}')",
    "SELECT dp_release('clinic', 'sum', 'SELECT days - avg(days) OVER (ORDER BY k) FROM stay JOIN person ON person.id = stay.person"
    " WHERE born IN (SELECT born FROM person WHERE born % 3 < 2) ORDER BY 1 LIMIT 5', '{\"name\":\"linked\",\"clip\":9}')",
    "SELECT dp_release('clinic', 'count', 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM t, n"
    " WHERE printf(''%s'', x / 3.0) > ''1'' OR json_extract(json_array(x), ''$[0]'') = 2', '{\"name\":\"deep\",\"clip\":9}')",
    "SELECT dp_release('clinic', 'sum', 'SELECT \"y\" FROM t', '{\"name\":\"misspelt\",\"clip\":9}')",
    "SELECT dp_release('clinic', 'group_count', 'SELECT k, k FROM t', '{\"name\":\"series\",\"clip\":3,\"keys\":[\"a\",\"b\"],\"periods\":[\"a\",\"b\","
    "\"c\"],\"diagnose\":true}')",
    "SELECT dp_append('series', 'b'), dp_append('series', 'c')", "SELECT dp_diffuse('series', 'region')", "SELECT * FROM dp_span('series', 'region', 2)",
    "PRAGMA threads = 2", "SELECT dp_release('clinic', 'sum', 'SELECT x FROM t WHERE x < 5', '{\"name\":\"threads\",\"clip\":9}')", "PRAGMA threads = 0",
    "SELECT dp_batch('[{\"tier\":\"clinic\",\"kind\":\"sum\",\"sql\":\"SELECT x FROM t\",\"options\":{\"name\":\"batch\",\"clip\":9},\"diffuse\":"
    "[\"region\"]}]')",
    "SELECT dp_plan('clinic', 'sum', NULL, '{\"clip\":9,\"rows\":300}')", "SELECT dp_interval('avg', 'clinic', NULL, 0.9)",
    "SELECT dp_grant('ask', 'region', 2, '{\"pad_ms\":1}')"]
GUEST = ["SELECT * FROM ward WHERE name >= 'b'", "SELECT size, typeof(beds) FROM ward JOIN json_each('[3,9]') ON beds = json_each.value",
         "SELECT release, tier, display, figure FROM dp_value", "SELECT * FROM dp_budget", "SELECT * FROM dp_column",
         "SELECT dp_release('region', 'group_sum', 'SELECT k, x FROM t JOIN ward ON k = name', '{\"name\":\"asked\",\"clip\":9,\"keys\":[\"b\",\"c\"]}')",
         "SELECT dp_plan('region', 'count', NULL, '{\"clip\":9}')", "SELECT * FROM dp_answer('region', 'count', 'SELECT x FROM t', '{\"clip\":2,\"name\":\"answer\"}')",
         "SELECT dp_report()", "SELECT dp_certificate()"]
LAST = ["SELECT dp_verify()", "SELECT dp_certificate()", "SELECT dp_exposure('region, public')", "SELECT dp_report('region')", "SELECT dp_report()",
        "SELECT * FROM dp_charge", "SELECT display, figure FROM dp_value", "SELECT dp_export('region', '{folder}/region.db')"]


def everything(db, folder, statements, known):
    """Returns the rows or the error of each statement, without what differs between two runs."""
    said = []
    for sql in statements:
        try:
            got = repr(db.execute(sql.replace("{folder}", folder)).fetchall())
        except (sqlite3.Error, MemoryError) as error:
            got = f"error: {error or 'out of memory'}"
        for text, name in known.items():
            got = got.replace(text, name)
        got = re.sub(r"\b[0-9a-f]{64}\b", "SEAL", got)  # of rows with the id, which differs
        said.append((sql, got))
    return said


def tell(changed, folder):
    folder.mkdir()
    path = str(folder / "a.db")

    def connect():
        with changed.plain():
            return load(sqlite3.connect(path, isolation_level=None), str(pathlib.Path(EXTENSION).parent / "fixed"))

    owner, known = connect(), {str(folder): "FOLDER"}
    told = everything(owner, str(folder), OWNER, known)
    if not (folder / "a.db-ledger").exists():
        return told
    with changed.plain():
        for name, of in (("id", "dp_ledger_id"), ("name", "sqlite_master WHERE type = 'trigger'")):  # the ledger's id and the mark of a table
            known[one(sqlite3.connect(path), f"SELECT {name} FROM {of}")] = "ID"
    guest = connect()
    told += everything(guest, str(folder), ["SELECT dp_guard('region', '{\"ask\":\"ask\"}')"] + GUEST, known)
    told += everything(owner, str(folder), LAST, known)
    owner.close(), guest.close()
    with changed.plain():
        for name, rows in books(path).items():
            told.append((name, re.sub("|".join(known), "ID", repr(rows))))
        exported = sqlite3.connect(folder / "region.db")
        for (table,) in exported.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'certificate'").fetchall():
            told.append((table, repr(exported.execute(f"SELECT * FROM {table}").fetchall())))
        ledger = sqlite3.connect(path + "-ledger")
        told.append(("encoding, journal", repr([one(ledger, "PRAGMA encoding"), one(ledger, "PRAGMA integrity_check")])))
    return told


def difference(right, got):
    """Returns the first statement whose results differ, and where they begin to differ."""
    for (sql, one_result), (_, other) in zip(right, got, strict=False):
        if one_result != other:
            start = max(0, len(os.path.commonprefix([one_result, other])) - 40)
            return f"{sql[:200]}: {one_result[start:start + 200]} <> {other[start:start + 200]}"


def main(folder, each):
    changed, changes = Changed(), other_settings()
    right = tell(changed, folder / "plain")
    failed = [(sql, got) for sql, got in right if got.startswith("error") and "misspelt" not in sql]
    assert not failed, failed
    changed.count = 0
    trials = {"all": in_order(changes.values())} | ({name: [what] for name, what in changes.items()} if each else {})
    for number, (name, trial) in enumerate(trials.items()):
        changed.changes = trial
        found = difference(right, tell(changed, folder / str(number)))
        if found:
            print(f"{name}: {found}")
    print(f"{len(changes)} changes, {len(right)} results, {changed.count // len(trials)} connections")


main(pathlib.Path(sys.argv[1]), sys.argv[2:] == ["each"])
