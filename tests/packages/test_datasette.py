"""The Datasette plugin, served by the real Datasette and asked over HTTP (make deps-datasette)."""

import html
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/helpers"))

from conftest import EXTENSION, connect, one  # noqa: E402
from guard_corpus import change, CHANGES, SIDES, STATEMENTS  # noqa: E402
from guard_helpers import BARE, create  # noqa: E402
from guard_statements import REFUSED  # noqa: E402

PYTHON, NEWER = ROOT / "build/datasette/bin/python", ROOT / "build/datasette-1/bin/python"
pytestmark = [pytest.mark.alarm(0), pytest.mark.skipif(not PYTHON.exists(), reason="no Datasette (make deps-datasette)")]


def package(folder, extension=EXTENSION):
    """Writes the package as pip installs it, with the extension of this build."""
    shutil.copytree(ROOT / "ext/packages/python/sqlite_diffuse", folder / "sqlite_diffuse")
    shutil.copy(f"{extension}.so", folder / "sqlite_diffuse/diffuse.so")
    start = folder / "sqlite_diffuse/__init__.py"
    start.write_text(start.read_text().replace("@LOADABLE@", "diffuse.so").replace("@VERSION@", "0"))
    points = tomllib.loads((ROOT / "ext/packages/python/pyproject.toml").read_text())["project"]["entry-points"]["datasette"]
    (folder / "sqlite_diffuse-0.dist-info").mkdir()
    (folder / "sqlite_diffuse-0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: sqlite-diffuse\nVersion: 0\n")
    (folder / "sqlite_diffuse-0.dist-info/entry_points.txt").write_text(
        "[datasette]\n" + "".join(f"{name} = {module}\n" for name, module in points.items()))


class Server:
    """A Datasette process."""

    def __init__(self, folder, databases, *arguments):
        if not (folder / "sqlite_diffuse").exists():
            package(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "metadata.json").write_text(json.dumps({"plugins": {"sqlite-diffuse": {"databases": databases}}}))
        self.log = open(folder / f"log-{self.port}", "w+")
        self.process = subprocess.Popen(
            [PYTHON, "-m", "datasette", "serve", "-p", str(self.port), "-m", folder / "metadata.json", "--setting", "trace_debug", "1",
             "--setting", "sql_time_limit_ms", "100000", *map(str, arguments)],
            env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"}, stdout=self.log, stderr=self.log)
        for _ in range(300):
            if self.process.poll() is not None:
                return
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)

    def get(self, path, **query):
        """Returns the status and the text of a page."""
        url = f"http://127.0.0.1:{self.port}{path}" + ("?" + urllib.parse.urlencode(query) if query else "")
        try:
            with urllib.request.urlopen(url, timeout=60) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def rows(self, sql, database="a"):
        status, text = self.get(f"/{database}.json", sql=sql, _shape="arrays")
        answer = json.loads(text)
        return answer["rows"] if status == 200 and answer["ok"] else answer["error"]

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasette")
    db = create(folder / "a.db")
    one(db, "SELECT dp_grant('visitors', 'public', 0.5)")
    db.close()
    db = connect(folder / "closed.db")
    db.executescript("CREATE TABLE raw(x); INSERT INTO raw VALUES ('hidden in the closed file')")
    db.close()
    return folder


@pytest.fixture(scope="module", params=["mutable", "immutable"])
def server(request, folder):
    server = Server(folder, {"a": {"tier": "public"}}, *(["-i"] if request.param == "immutable" else []), folder / "a.db", folder / "closed.db")
    yield server
    server.close()


def test_a_visitor_finds_the_published_numbers(server):
    assert server.get("/")[0] == 200
    status, page = server.get("/a")
    assert status == 200 and "/a/published" in page and "/-/diffuse/a" in page
    for query in ("published", "budget", "publications"):
        status, text = server.get(f"/a/{query}.json", _shape="objects")
        assert status == 200 and json.loads(text)["rows"], (query, text)
        assert server.get(f"/a/{query}")[0] == 200
        assert not re.search("clinic|region|inner", text)
    found = {row["release"] for row in json.loads(server.get("/a/published.json", _shape="objects")[1])["rows"]}
    assert found == {"total", "(unnamed 1)"}
    assert server.rows("SELECT release FROM dp_value ORDER BY 1") == [["(unnamed 1)"], ["total"]]


def test_the_page_of_a_database_shows_figures_first(server):
    page = server.get("/a")[1]
    figures, box = page.index("Published figures"), page.index("Custom SQL query")
    assert figures < page.index("total") < box and "±" in page[figures:box]
    assert "Ask a question" not in page and "attached to this connection" not in page and "dp_ledger_id" not in page
    links = set(re.findall(r'href="(/a[^"?]*)"', page))
    assert {"/a/ward", "/a/published", "/a/columns"} <= links
    for link in links:
        assert server.get(link)[0] == 200, link
    found = json.loads(server.get("/a/columns.json", _shape="arrays")[1])["rows"]
    assert ["visit", "minutes", "INT", "protected"] in found and not any("secret" in row for row in found)


def test_the_report_is_that_of_the_tier(server, folder):
    status, page = server.get("/-/diffuse/a")
    assert status == 200 and page == one(connect(folder / "a.db"), "SELECT dp_report('public')")
    assert server.get("/-/diffuse/nothing")[0] == server.get("/-/diffuse/closed")[0] == server.get("/-/diffuse/_memory")[0] == 404


def test_a_public_table_can_be_browsed(server):
    status, text = server.get("/a/ward.json", _shape="array", _facet="name")
    assert status == 200 and [row["beds"] for row in json.loads(text)] == [12, 30]
    assert server.get("/a/ward")[0] == server.get("/a/ward.csv")[0] == 200


def test_no_row_of_a_protected_table_by_its_pages(server):
    for table in ("visit", "visits", "secret", "wards"):
        for end in ("", ".json", ".csv", "/1", "/1.json"):
            for query in ({}, {"_shape": "array"}, {"_facet": "day"}, {"_stream": "on"}, {"_trace": "1"}, {"_col": "minutes"}, {"_where": "minutes > 0"},
                          {"minutes__gt": "0"}, {"_size": "max"}, {"_labels": "on"}, {"_next": "5"}, {"_sort": "minutes"}, {"_nocount": "1"}):
                status, page = server.get(f"/a/{table}{end}", **query)
                assert "hidden" not in page and "Traceback" not in page
                assert status != 200 or end == ".csv" and not re.search(r"^\d", page, re.M), (table, end, query, page[:300])


def test_no_statement_gets_out(server):
    for statement in REFUSED[::2]:
        answer = server.rows(statement)
        assert isinstance(answer, str), (statement, answer)
    assert server.rows("SELECT count(*) FROM dp_charge") == [[2]]


@pytest.mark.parametrize("extension", [EXTENSION, BARE], ids=["whole", "bare"])
@pytest.mark.parametrize("part", [slice(None, None, 20), pytest.param(slice(None), marks=pytest.mark.slow)])
def test_nothing_depends_on_what_is_secret_after_changes_of_the_schema(tmp_path, part, extension):
    """Databases that differ in one person, in an undeclared table or in inner tiers give the same, before and after another process
    changes their schemas, with and without the guard's authorizer."""
    # Whether a thread of Datasette has opened its empty database `temp` depends on the statements it has got.
    statements = [s for s in STATEMENTS if "database_list" not in s and "TEMP" not in s]
    assert len(statements) >= 200
    paths = {name: tmp_path / f"apart from {name}" / f"{name}.db" for name in ("left", *SIDES)}  # the marker of a copy finds no other ledger
    for name, path in paths.items():
        path.parent.mkdir()
        if name == "left":
            create(path).close()
            continue
        for end in ("", "-ledger"):
            shutil.copy(f"{paths['left']}{end}", f"{path}{end}")
    for name, path in paths.items():
        one(connect(path), "SELECT count(*) FROM dp_tier")
        if name in SIDES:
            SIDES[name](connect(path))
    package(tmp_path, extension)
    server, answers = Server(tmp_path, {name: {"tier": "public"} for name in paths}, *paths.values()), 0
    try:
        for i, change_ in enumerate(["SELECT 1", *CHANGES]):
            for path in paths.values():
                change(path, change_)
            asked = statements[i % (part.step or 1)::part.step]
            left, *others = ([server.rows(s, name) for s in asked] for name in paths)
            for side, right in zip(SIDES, others):
                assert left == right, (side, change_, [x for x in zip(asked, left, right) if x[1] != x[2]])
            answers += sum(isinstance(rows, list) and rows != [] for rows in left)
        assert answers > len(asked)
    finally:
        server.close()


def test_nobody_downloads_the_file(server):
    status, page = server.get("/a.db")
    assert status == 403 and "SQLite format 3" not in page


def test_size_and_hash_and_counts_of_the_file_are_left_out(server, folder):
    (about,) = [d for d in json.loads(server.get("/-/databases.json")[1]) if d["name"] == "a"]
    assert about["size"] == 0 and not about["hash"]
    answer = json.loads(server.get("/a.json")[1])
    assert answer["size"] == 0
    assert {t["name"]: t["count"] for t in answer["tables"]} == {"ward": 2}  # what cannot be opened is not listed
    assert str((folder / "a.db").stat().st_size) not in server.get("/a")[1]


def test_a_database_without_a_tier_is_closed(server):
    assert "database 'closed' is closed" in server.said()
    for path in ("/closed", "/closed.json", "/closed/raw", "/closed/raw.json", "/closed.db", "/closed/raw/1.json"):
        status, page = server.get(path)
        assert status in (403, 404) and "hidden" not in page
    assert "raw" not in server.get("/")[1]


def test_databases_in_memory_stay_usable_and_reach_no_file(folder):
    server = Server(folder, {}, "--memory", folder / "a.db")
    try:
        assert server.rows("SELECT 1 + 1", "_memory") == [[2]]
        assert server.get("/a")[0] == 404
        assert "visit" not in server.get("/")[1]
    finally:
        server.close()


def test_questions_under_a_grant(folder):
    """Datasette opens the file read-only, but the grant can still be charged."""
    server = Server(folder, {"a": {"tier": "public", "ask": "visitors"}}, folder / "a.db")
    try:
        ask = "SELECT dp_release('{}', 'sum', 'SELECT minutes FROM visit', '{{\"name\":\"mine\",\"clip\":100}}') AS noisy"
        ((value,),) = server.rows(ask.format("public"))
        assert isinstance(value, (int, float)) and server.rows(ask.format("public")) == [[value]]
        assert "tier must be 'public'" in server.rows(ask.format("clinic"))
        owner = connect(folder / "a.db")
        assert one(owner, "SELECT charges FROM dp_reserve WHERE grant_name = 'visitors' AND tier = 'public'") == 1
        page = server.get("/a")[1]
        example = html.unescape(re.search(r"<pre>(SELECT .*?)</pre>", page, re.S)[1])
        ((value, low, high),) = server.rows(example)
        assert low < value < high
        assert one(owner, "SELECT charges FROM dp_reserve WHERE grant_name = 'visitors' AND tier = 'public'") == 2
        assert "visitors/my first question" in server.get("/a")[1]
        owner.close()
    finally:
        server.close()


@pytest.mark.parametrize("databases, arguments, error", [
    ({"a": {"tier": "nobody"}}, [], "unknown tier"),
    ({"a": {"ask": "visitors"}}, [], "needs a tier"),
    ({"a": {"tier": "public", "tear": 1}}, [], "nothing else"),
    ({"a": {"tier": "public"}}, ["--crossdb"], "--crossdb attaches databases"),
])
def test_mistakes_stop_datasette(folder, databases, arguments, error):
    server = Server(folder, databases, folder / "a.db", *arguments)
    try:
        assert server.process.wait(60) != 0 and error in server.said()
    finally:
        server.close()


@pytest.mark.skipif(not NEWER.exists(), reason="no Datasette 1.0 (make deps-datasette)")
def test_versions_that_would_offer_the_file_are_refused(folder):
    """Datasette 1.0 does not ask this plugin whether a visitor may download the database, so it does not start."""
    Server(folder, {"a": {"tier": "public"}}, folder / "a.db").close()  # writes the package
    done = subprocess.run([NEWER, "-m", "datasette", "serve", "--get", "/a.db", "-m", folder / "metadata.json", "-i", folder / "a.db"],
                          env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"}, capture_output=True, timeout=60)
    assert done.returncode and b"cannot forbid downloads in this version of Datasette" in done.stderr and not done.stdout
