"""Tests dp_export() and sql/export.sql, which the sqlite3 shell runs: the file for an audience contains everything that the
audience may see and nothing else."""

import json
import os
import pathlib
import re
import sqlite3
import struct
import subprocess
import sys

import pytest

from conftest import connect, create, EXTENSION, INIT, interrupted, KilledAtWrite, ledger_of, library, make_ledger, one, refused, run, strict_json

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "sql" / "export.sql"
SHELL = os.environ.get("SQLITE3", "sqlite3")
NESTED = {"clinic": ["clinic", "region", "public"], "region": ["region", "public"], "public": ["public"]}
ROWS = "SELECT minutes FROM visits"


@pytest.fixture
def book(path):
    db = create(path, '{"unit":"patient","adjacency":"replace"}')

    def release(tier, kind, **options):
        one(db, "SELECT dp_release(?, ?, ?, ?)", tier, kind, ROWS, json.dumps({"clip": 1, **options}))

    release("clinic", "sum", name="only the clinic knows", clip=10)
    release("clinic", "count")  # unnamed, inner
    release("clinic", "sum", name="everywhere", clip=10)
    one(db, "SELECT dp_diffuse('everywhere', 'public')")
    release("region", "count", name="refined later", weight=0.5)
    release("clinic", "count", name="refined later", weight=0.5, refine=True)
    release("region", "ou_sum", name="only the region knows", clip=10, radius=1e4, centre=100)
    release("public", "count", name="it's for \"all\"")
    release("public", "count")  # unnamed
    release("public", "sum", name="again", clip=3)
    one(db, "SELECT dp_discard('again')")
    release("public", "sum", name="again", clip=4)
    one(db, "SELECT dp_tier('web', 0.0001, 1.0, 1e-6)")
    interrupted(db, "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visits',"
                """ '{"clip":10,"name":"a failure"}')""")
    db.execute("DELETE FROM visits")
    return db


def hand_over(path, tier, file, *more):
    """Runs the export command of sql/reference.md."""
    settings = [f".parameter set @{k} \"'{v}'\"" for k, v in (("tier", tier), ("file", file)) if v is not None]
    return subprocess.run([SHELL, str(path), f".load {EXTENSION}", ".parameter init", *settings, *more,
                           f".read {SCRIPT}"], capture_output=True, text=True)


@pytest.fixture
def handed(book, path, tmp_path):
    def run(tier):
        file = tmp_path / f"{tier}.handover"
        done = hand_over(path, tier, file)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return sqlite3.connect(file), file
    return run


def instants(ledger):
    """Returns all timestamps in the ledger."""
    columns = ledger.execute("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
                             " AND (c.name LIKE '%\\_at' ESCAPE '\\' OR c.name = 'at')").fetchall()
    assert len(columns) >= 6
    return {at for table, column in columns for (at,) in ledger.execute(f"SELECT {column} FROM {table}")} - {None}


@pytest.mark.parametrize("tier", NESTED)
def test_values_are_all_there_exactly(handed, path, tier):
    file, _ = handed(tier)
    seen = NESTED[tier] + ["web"]
    got = file.execute("SELECT tier, key, component, value, stddev, low, high, published_at FROM value").fetchall()
    want = [row for row in ledger_of(path).execute(
        "SELECT v.tier, key, component, value, stddev, low, high, date(published_at) FROM dp_value v"
        " JOIN dp_publication USING (release_id, tier) JOIN dp_release r ON r.id = release_id"
        " WHERE r.state = 'released'") if row[0] in seen]
    assert sorted(got) == sorted(want) and len(got) == {"clinic": 10, "region": 6, "public": 4}[tier]
    assert [t for (t,) in file.execute("SELECT name FROM tier ORDER BY rate DESC")] == seen
    budgets = {row[0]: row[1:] for row in ledger_of(path).execute(
        "SELECT name, t.rate, t.epsilon, t.delta, accountant, spent_rate, spent_epsilon, releases, period, period_start,"
        " period_end, wider_epsilon FROM dp_tier t JOIN dp_budget b ON b.tier = t.name")}
    for name, *rest in file.execute("SELECT * FROM tier"):
        assert tuple(rest) == budgets[name]
    names = [n for (n,) in file.execute("SELECT release FROM value WHERE tier = 'public' ORDER BY published_at")]
    assert names == [f"(unnamed {2 if tier == 'clinic' else 1})", "again", "everywhere", "it's for \"all\""]
    ((document,),) = file.execute("SELECT document FROM certificate").fetchall()
    assert [r["discarded"] for r in json.loads(document)["releases"] if r["name"] == "again"] == [True, False]


def spellings(number):
    """Returns patterns for the forms in which a file may contain a number: texts with more or fewer digits, and bytes.
    The form with six decimals matches only a whole number in the file, because a longer rate or epsilon may begin with
    the same decimals by chance."""
    found = {repr(number), f"{number:.17g}", f"{number:.15g}"}
    decimals = f"{number:.6f}"
    bytes_ = {struct.pack(order + "d", number) for order in "<>"}
    if float(number).is_integer() and 2**31 <= abs(number) < 2**47:  # SQLite stores such integers in 6 bytes
        bytes_.add(int(number).to_bytes(6, "big", signed=True))
    # A shorter number may occur by chance.
    patterns = {re.escape(s.encode()) for s in found if len(s) >= 9} | {re.escape(b) for b in bytes_}
    return patterns | ({re.escape(decimals.encode()) + b"(?![0-9])"} if len(decimals) >= 9 else set())


@pytest.mark.parametrize("tier", ["public", "region"])
def test_nothing_of_inner_tiers_is_in_the_file(handed, path, tier):
    _, file = handed(tier)
    content, ledger, seen = file.read_bytes(), ledger_of(path), NESTED[tier] + ["web"]
    may = set()  # the numbers that the audience may see
    for row in ledger.execute("SELECT tier, value, stddev, low, high FROM dp_value"):
        may |= set(row[1:]) if row[0] in seen else set()
    numbers, words = set(), set()
    for row in ledger.execute("SELECT tier, value, stddev, low, high FROM dp_value"):
        numbers |= set(row[1:]) if row[0] not in seen else set()
    for at, value, granularity in ledger.execute(
            "SELECT q.tier, value, granularity FROM dp_path q JOIN dp_release r ON r.id = release_id"):
        numbers |= {value * 2.0**granularity, value} if at not in seen else set()
    for name, rate, spent, limit, budget in ledger.execute(
            "SELECT name, rate, spent_rate, rate_limit, spent_epsilon FROM dp_tier JOIN dp_budget ON tier = name"):
        if name not in seen:
            words.add(name)
            numbers |= {rate, spent, limit, budget}
    for name, tiers in ledger.execute(
            "SELECT name, group_concat(tier) FROM dp_release LEFT JOIN dp_publication ON id = release_id GROUP BY id"):
        if not set((tiers or "").split(",")) & set(seen):
            words.add(name)
    if tier == "public":
        assert {"only the clinic knows", "only the region knows", "refined later", "clinic", "region"} <= words
    words |= {h for (h,) in ledger.execute("SELECT hash FROM dp_charge")}
    words |= {n for (n,) in ledger.execute("SELECT name FROM dp_release WHERE name = 'release-' || id")}
    # all timestamps at which something happened
    words |= instants(ledger)
    assert len(numbers - may) > 20 and len(words) > 20
    for word in words:
        assert word.encode() not in content, word
    for number in numbers - may:
        for text in spellings(number):
            assert not re.search(text, content), (number, text)
    assert b"dp_path" not in content and b"slack" not in content and b"releases_left" not in content
    # a check of the search: it finds the audience's own values as doubles
    for (value,) in ledger.execute("SELECT value FROM dp_value WHERE tier = ? AND release_id IN"
                                   " (SELECT id FROM dp_release WHERE state = 'released')", (tier,)):
        assert struct.pack(">d", value) in content or float(value).is_integer()


@pytest.mark.parametrize("tier", ["public", "region"])
def test_the_file_does_not_tell_what_inner_tiers_did(book, path, tmp_path, tier):
    """The file is the same, byte for byte, for any events at inner tiers."""
    def content(name):
        file = tmp_path / name
        assert hand_over(path, tier, file).returncode == 0
        dump = list(sqlite3.connect(file).iterdump())
        return dump, file.read_bytes()
    before = content("before")
    one(book, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visits', '{\"clip\":1}')")
    one(book, """SELECT dp_release('clinic', 'ou_sum', 'SELECT minutes FROM visits',
                 '{"name":"only the region knows","clip":10,"radius":1e4,"centre":100,"refine":true}')""")
    one(book, "SELECT dp_release('clinic', 'count', ?, ?)", ROWS,
        json.dumps({"name": 'it\'s for "all"', "refine": True, "clip": 1}))
    one(book, "SELECT dp_diffuse('everywhere', 'clinic')")
    one(book, "SELECT dp_tier('ward', 0.1, 9.0, 1e-6)")
    assert content("after") == before


def test_times_are_days_and_their_order_tells_nothing(path, tmp_path):
    """The file has no time finer than a day, and the order of its rows does not show which value was published first."""
    db = create(path)
    for name in ("b", "a", "c"):
        one(db, "SELECT dp_release('public', 'count', ?, json_object('name', ?, 'clip', 1))", ROWS, name)
    handed = tmp_path / "handed"
    assert hand_over(path, "public", handed).returncode == 0
    assert not re.search(rb"\d\d:\d\d", handed.read_bytes())
    file = sqlite3.connect(handed)
    assert [name for (name,) in file.execute("SELECT release FROM value ORDER BY rowid")] == ["a", "b", "c"]
    assert {len(at) for (at,) in file.execute("SELECT published_at FROM value")} == {10}
    (document,) = file.execute("SELECT document FROM certificate").fetchone()
    assert [r["name"] for r in json.loads(document)["releases"]] == ["a", "b", "c"]
    assert not re.search(r"\d\d:\d\d", one(db, "SELECT dp_certificate()"))


def figures(release, seen):
    """Returns the figures that identify a release in a certificate, without its number and times."""
    name = release["name"]
    if name.startswith("(unnamed ") or name == f"release-{release.get('id')}":
        name = None
    return json.dumps([name, release["kind"], release["options"], [p for p in release["publications"] if p["tier"] in seen and
                                                             p.pop("variance", 1)]], sort_keys=True)


@pytest.mark.parametrize("tier", NESTED)
def test_the_certificate_is_that_of_the_ledger_cut_down(handed, book, tier):
    file, _ = handed(tier)
    ((text,),) = file.execute("SELECT document FROM certificate").fetchall()
    got = strict_json(text)
    full = json.loads(one(book, "SELECT dp_certificate()"))
    seen = NESTED[tier] + ["web"]
    assert set(got) == {"certificate", "audience", "ledger", "policy", "wider", "tiers", "releases", "verify"}
    assert (got["audience"], got["verify"], got["certificate"]) == (tier, "ok", 1)
    assert got["ledger"] == full["ledger"] and got["policy"] == full["policy"]
    terms = {t["name"]: t for t in full["tiers"]}
    assert [t["name"] for t in got["tiers"]] == seen
    for t in got["tiers"]:
        assert t.items() <= terms[t["name"]].items()
        assert set(terms[t["name"]]) - set(t) == {"slack_limit", "spent_slack"}
    visible = [r for r in full["releases"]
               if r["state"] != "failed" and any(p["tier"] in seen for p in r["publications"])]
    assert len(got["releases"]) == len(visible)
    by_figures = {figures(r, seen): r for r in visible}
    assert len(by_figures) == len(visible)
    for r in got["releases"]:
        want = by_figures[figures(r, seen)]
        assert {k: r[k] for k in ("kind", "mechanism", "options", "dimension", "weight", "tables", "theorem")} == {
            k: want[k] for k in ("kind", "mechanism", "options", "dimension", "weight", "tables", "theorem")}
        assert r["discarded"] == (want["state"] == "discarded")
        assert r["name"] == want["name"] or (r["name"].startswith("(unnamed ")
                                             and want["name"] == f"release-{want['id']}")
        assert set(r) == {"name", "kind", "mechanism", "discarded", "options", "dimension", "weight", "tables",
                          "publications", "theorem"}
        publications = [p for p in want["publications"] if p["tier"] in seen]
        assert r["publications"] == [{k: v for k, v in p.items() if k != "variance"} for p in publications]


def test_an_existing_file_is_refused_and_left_alone(book, path, tmp_path):
    other = tmp_path / "other.db"
    sqlite3.connect(other).executescript("CREATE TABLE mine(x); INSERT INTO mine VALUES (1)")
    for file in (other, path, f"{path}-ledger"):
        before = pathlib.Path(file).read_bytes()
        done = hand_over(path, "public", file)
        assert done.returncode != 0 and "dp_export: file exists already" in done.stderr
        assert pathlib.Path(file).read_bytes() == before


@pytest.mark.parametrize("tier,file,word", [
    ("village", "x.db", "dp_export: unknown tier (known tiers: clinic, region, public, web)"),
    ("public,region", "x.db", "dp_export: unknown tier"),
    (None, "x.db", "dp_export: tier must be a text that is not empty, not NULL"),
    ("public", None, "dp_export: file must be a text that is not empty, not NULL")])
def test_a_wrong_request_makes_no_file(book, path, tmp_path, tier, file, word):
    done = hand_over(path, tier, file and tmp_path / file)
    assert done.returncode != 0 and word in done.stderr
    assert not (tmp_path / "x.db").exists()


def test_books_that_do_not_verify_are_not_handed_over(book, path, tmp_path):
    ledger = ledger_of(path)
    ledger.execute("UPDATE dp_value SET value = value + 1e9 WHERE tier = 'public'")
    ledger.close()
    done = hand_over(path, "public", tmp_path / "x.db")
    assert done.returncode != 0 and "dp_export: the ledger does not verify (dp_verify() shows the owner where)" in done.stderr
    assert not (tmp_path / "x.db").exists()


def test_it_charges_nothing_and_can_be_done_again(book, path, tmp_path):
    before = pathlib.Path(f"{path}-ledger").read_bytes()
    files = [tmp_path / "1", tmp_path / "2"]
    for file in files:
        done = hand_over(path, "region", file)
        assert done.stdout.strip() == f"6 values of 6 releases for 'region' in {file}"
    assert files[0].read_bytes() == files[1].read_bytes()
    assert pathlib.Path(f"{path}-ledger").read_bytes() == before
    assert [t for (t,) in sqlite3.connect(path).execute("SELECT name FROM sqlite_schema ORDER BY 1")] == [
        "dp_ledger_id", "visits"]


def test_twice_in_one_session(book, path, tmp_path):
    first = [f".parameter set @file \"'{tmp_path / 'a'}'\"", ".parameter set @tier public", f".read {SCRIPT}"]
    done = hand_over(path, "region", tmp_path / "b", *first, f".parameter set @file \"'{tmp_path / 'b'}'\"")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a").exists() and (tmp_path / "b").exists()


def test_nothing_published_is_an_empty_file(path, tmp_path):
    db = create(path)
    one(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visits', '{\"name\":\"inner\",\"clip\":1}')")
    assert hand_over(path, "public", tmp_path / "x").returncode == 0
    file = sqlite3.connect(tmp_path / "x")
    assert file.execute("SELECT count(*) FROM value").fetchone() == (0,)
    assert json.loads(file.execute("SELECT document FROM certificate").fetchone()[0])["releases"] == []


MODEL = {"n": 200, "dim": 2, "clip": 1, "radius": 1}


@pytest.mark.parametrize("more", [{}, {"eta": 0.01}, {"weight": 0.5}], ids=str)
def test_a_model_does_not_tell_the_rate_of_its_inner_tier(tmp_path, more):
    """The test makes two ledgers that differ only in the rate of the inner tier. The default learning rate, the noise of a step
    and the noise of the coefficients change with this rate. The file for the outer tier is the same, except for the values,
    the time and the random id of the ledger."""
    dumps, inside = [], []
    for inner in (0.9, 0.95, 1.0):
        path = tmp_path / f"{inner}.db"
        db = connect(path)
        db.execute("CREATE TABLE t(y, x)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(i % 2, json.dumps([i % 3 / 3, 0.5])) for i in range(200)])
        make_ledger(db, '{"protects":"row","adjacency":"replace"}', "t")
        one(db, "SELECT dp_tier('in', ?, 1e3, 1e-6)", inner)
        one(db, "SELECT dp_tier('out', 0.5, 1e3, 1e-6)")
        one(db, "SELECT dp_release('in', 'sgd', 'SELECT y, x FROM t', ?)", json.dumps({"name": "m", "loss": "logistic", **MODEL, **more}))
        one(db, "SELECT dp_diffuse('m', 'out')")
        inside.append(one(db, "SELECT options ->> '$.model.variance' || ' ' || (options ->> '$.model.eta') FROM dp_release"))
        own = hand_over(path, "in", tmp_path / f"{inner}.in")
        assert own.returncode == 0, own.stderr
        document = json.loads(sqlite3.connect(tmp_path / f"{inner}.in").execute("SELECT document FROM certificate").fetchone()[0])
        assert f"{document['releases'][0]['options']['model']['variance']:.0f}" in inside[-1]  # tier "in" sees the variance
        file = tmp_path / f"{inner}.out"
        done = hand_over(path, "out", file)
        assert done.returncode == 0 and not done.stderr, done.stderr
        handed = sqlite3.connect(file)
        assert handed.execute("SELECT count(*), count(stddev), count(low), count(high) FROM value").fetchone() == (2, 0, 0, 0)
        handed.execute("UPDATE value SET value = 0, display = ''")
        dumps.append(re.sub(r'"id":"\w+"|\d{4}-\d\d-\d\d[T \d:.]*Z?', "", "\n".join(handed.iterdump())))
        spent, rate = handed.execute("SELECT spent_rate, rate FROM tier").fetchone()
        assert rate * more.get("weight", 1) <= spent <= 1.002 * rate
    assert len(set(inside)) == 3
    for dump in dumps[1:]:
        assert dump.split(",") == dumps[0].split(",")


# ---- dp_export by itself ----------------------------------------------------------------------------


def test_the_function_writes_what_the_script_writes(book, path, tmp_path):
    assert hand_over(path, "region", tmp_path / "script").returncode == 0
    assert one(book, "SELECT dp_export('region', ?)", str(tmp_path / "call")) == (
        f"6 values of 6 releases for 'region' in {tmp_path / 'call'}")
    call, script = ((tmp_path / name).read_bytes() for name in ("call", "script"))
    if call[96:100] == script[96:100]:  # written by the same version of SQLite; the shell may have another one
        assert call == script
    assert [list(sqlite3.connect(tmp_path / name).iterdump()) for name in ("call", "script")] == [
        list(sqlite3.connect(tmp_path / "call").iterdump())] * 2
    assert os.listdir(tmp_path).count("call-journal") == 0


def test_the_file_has_the_permissions_of_the_database(book, path, tmp_path):
    os.chmod(path, 0o640)
    one(book, "SELECT dp_export('region', ?)", str(tmp_path / "a"))
    assert os.stat(tmp_path / "a").st_mode & 0o777 == 0o640
    memory = connect()
    one(memory, INIT)
    one(memory, "SELECT dp_tier('public', 0.001, 1.0, 1e-6)")
    one(memory, "SELECT dp_export('public', ?)", str(tmp_path / "b"))
    assert os.stat(tmp_path / "b").st_mode & 0o777 == 0o600
    assert sqlite3.connect(tmp_path / "b").execute("SELECT name FROM tier").fetchall() == [("public",)]


@pytest.mark.parametrize("name", [":memory:", "file:a.db?mode=memory", "a 'quoted' name.db", "ü.db"])
def test_a_strange_name_is_a_file(book, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    one(book, "SELECT dp_export('public', ?)", name)
    assert sqlite3.connect(tmp_path / name).execute("SELECT count(*) FROM value").fetchone() == (4,)


@pytest.mark.parametrize("make", [lambda f: f.touch(), lambda f: f.write_text("mine"), lambda f: f.mkdir(),
                                  lambda f: f.symlink_to("nowhere"), lambda f: f.symlink_to("clinic.db")], ids=range(5))
def test_nothing_that_exists_is_touched(book, tmp_path, make):
    file = tmp_path / "there"
    make(file)
    before = os.lstat(file)
    assert "dp_export: file exists already" in refused(book, "SELECT dp_export('public', ?)", str(file))
    after = os.lstat(file)
    assert (before.st_mode, before.st_size, before.st_mtime_ns) == (after.st_mode, after.st_size, after.st_mtime_ns)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["public.csv", "PUBLIC.CSV", "x.tsv", "x.txt", "x.json", "x.html"])
def test_the_name_of_a_text_file_is_refused(book, tmp_path, name):
    assert ".mode csv" in refused(book, "SELECT dp_export('public', ?)", str(tmp_path / name))
    assert not (tmp_path / name).exists()
    one(book, "SELECT dp_export('public', ?)", str(tmp_path / f"{name}.db"))


def test_a_folder_that_is_missing_or_closed_is_named(book, tmp_path):
    assert "cannot create file" in refused(book, "SELECT dp_export('public', ?)", str(tmp_path / "no" / "x"))


def test_a_failure_leaves_no_file(path, tmp_path):
    """A limit on the file size of this process simulates a full file system."""
    create(path).close()
    out = run("""
        import resource
        db = connect(sys.argv[1])
        one(db, SUM, "a")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        print(refused(db, "SELECT dp_export('clinic', ?)", sys.argv[2]))
    """, path, tmp_path / "x")
    assert "dp_export: cannot write file" in out
    assert not [name for name in os.listdir(tmp_path) if name.startswith("x")]


def test_a_file_has_its_name_only_when_it_is_complete(path, tmp_path):
    """The process is killed at each of its calls that change files. The next export does not mind what is left."""
    book = create(path)
    one(book, "SELECT dp_release('public', 'sum', 'SELECT minutes FROM visits', '{\"name\":\"total\",\"clip\":10}')")
    one(book, "SELECT dp_export('public', ?)", str(tmp_path / "right"))
    right, kills, names = list(sqlite3.connect(tmp_path / "right").iterdump()), 0, set()
    for at in range(1, 100):
        folder = tmp_path / f"killed {at}"
        folder.mkdir()
        child = os.fork()
        if not child:
            db = connect(path)
            KilledAtWrite(at)
            one(db, "SELECT dp_export('public', ?)", str(folder / "x.db"))
            os._exit(0)
        if os.waitstatus_to_exitcode(os.wait()[1]) == 0:
            break
        kills += 1
        left = {re.sub("[0-9a-f]{16}", "N", name) for name in os.listdir(folder)}
        assert left <= {"x.db", "dp_export-N.part"}
        names |= left
        if "x.db" not in left:
            one(book, "SELECT dp_export('public', ?)", str(folder / "x.db"))
        assert list(sqlite3.connect(folder / "x.db").iterdump()) == right
    assert kills > 3 and names >= {"dp_export-N.part"} and os.listdir(folder) == ["x.db"]


@pytest.mark.plain  # a sanitizer must be the first library that is loaded
@pytest.mark.skipif(sys.platform != "linux", reason="the library is loaded by LD_PRELOAD")
def test_what_is_synced_when(path, tmp_path, monkeypatch):
    create(path).close()
    folder = tmp_path / "out-ledger"  # the library looks at such names
    folder.mkdir()
    monkeypatch.setenv("LD_PRELOAD", library(tmp_path, "trace.c"))
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    run("one(connect(sys.argv[1]), \"SELECT dp_export('public', ?)\", sys.argv[2])", path, folder / "x.db")
    events = [line.split()[:3] for line in (tmp_path / "trace").read_text().splitlines() if "out-ledger" in line]
    (part,) = {event[1] for event in events if event[0] == "write"}
    last = max(i for i, event in enumerate(events) if event[:2] == ["write", part])
    assert part.endswith(".part")
    assert events[last + 1:] == [["sync", part], ["link", part, str(folder / "x.db")], ["remove", part], ["sync", str(folder)]]


@pytest.mark.plain
def test_where_a_file_system_has_no_links(path, tmp_path, monkeypatch):
    create(path).close()
    source = tmp_path / "nolinks.c"
    source.write_text("#include <errno.h>\nint link(const char *a, const char *b) { (void)a; (void)b; errno = EPERM; return -1; }\n")
    monkeypatch.setenv("LD_PRELOAD", library(tmp_path, source))
    for name, message in (("x.db", None), ("dangling", "file exists already")):
        if message:
            (tmp_path / name).symlink_to("nowhere")
        said = run("db = connect(sys.argv[1])\ntry:\n    one(db, \"SELECT dp_export('public', ?)\", sys.argv[2])\nexcept sqlite3.Error as e:\n"
                   "    print(e)", path, tmp_path / name)
        assert message in said if message else not said
    assert sqlite3.connect(tmp_path / "x.db").execute("SELECT count(*) FROM tier").fetchone() == (1,)
    assert not list(tmp_path.glob("*.part")) and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("spoil", ["PRAGMA query_only = ON", "SELECT dp_guard('public')"])
def test_a_connection_that_may_not_write_writes_no_file(book, path, tmp_path, spoil):
    db = connect(path)
    db.execute(spoil).fetchall()
    assert re.search("cannot write its database|guarded for tier", refused(db, "SELECT dp_export('public', ?)", str(tmp_path / "x")))
    db = connect(f"file:{path}?mode=ro", uri=True)
    assert "cannot write its database" in refused(db, "SELECT dp_export('public', ?)", str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_an_inner_refinement_that_fails_takes_nothing_away(book, path, tmp_path):
    """The query of an inner refinement fails after the charge. The file for outer tiers does not show this."""
    one(book, "SELECT dp_export('public', ?)", str(tmp_path / "before"))
    charges = one(book, "SELECT count(*) FROM dp_charge")
    interrupted(book, "SELECT dp_release('region', 'count', ?, ?)", ROWS, json.dumps({"name": 'it\'s for "all"', "refine": True, "clip": 1}))
    assert one(book, "SELECT count(*) FROM dp_charge") > charges
    one(book, "SELECT dp_export('public', ?)", str(tmp_path / "after"))
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
