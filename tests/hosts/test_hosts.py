"""Runs story.sql from every installed host. Each host first runs the story on its own database. Then the hosts take turns on
one database.

`make deps-hosts` installs as many hosts as it can into build/hosts, with several releases of each driver. The story therefore
runs on many versions of SQLite, from the oldest supported version to the newest.
"""

import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent import futures

import pytest

from conftest import EXTENSION, PATIENCE, connect, ledger_of, one, refused

pytestmark = [pytest.mark.own, pytest.mark.plain]  # the hosts have their own runtimes, which do not work with a sanitizer

HERE = pathlib.Path(__file__).parent
HOSTS = HERE.parent.parent / "build" / "hosts"
NODE_MODULES = HERE.parent.parent / "build" / "node" / "node_modules"
CHARGES = {"create": 1, "go on": 10, "threads": 7}  # the number of charges that each part of the story makes


# ---- the story -------------------------------------------------------------------------------------


def read_story():
    """Reads story.sql. Returns {part: [(statement, [expected line])]}."""
    parts = {}
    for line in (HERE / "story.sql").read_text().splitlines():
        if line.startswith("-- part: "):
            statements = parts[line[len("-- part: "):]] = []
        elif line.startswith("--"):
            if parts and statements and not blank:
                statements[-1][1].append(line[3:])
        elif line:
            statements.append((line, []))
        blank = not line
    return parts


STORY = read_story()


def same(expected, got, known):
    """Returns whether a printed value is the expected value. $name stands for the value that was printed at its first use."""
    try:
        number = float(got)
        expected = known.setdefault(expected, number) if expected[0] == "$" else float(expected)
        return math.isclose(expected, number, rel_tol=1e-13)  # the precision of a text of 15 digits
    except ValueError:
        return expected == got


def check(transcript, part, known):
    """Checks a driver's transcript of a part, statement by statement. A host may add its own text around an error."""
    *lines, last = transcript
    assert last == "closed", transcript
    blocks = "\n".join(lines).removeprefix(">").split("\n>")
    assert len(blocks) == len(part), transcript
    for (statement, expected), block in zip(part, blocks):
        got = [] if statement.startswith("PRAGMA") else block.split("\n")[1:]
        assert len(got) == len(expected), (statement, got)
        for want, line in zip(expected, got):
            if want.startswith("error: "):
                assert "rror" in line and want[len("error: "):] in line, (statement, line)
            else:
                assert line.count("|") == want.count("|"), (statement, line)
                values = zip(want.split("|"), line.split("|"))
                assert all(same(*pair, known) for pair in values), (statement, line, known)


# ---- the hosts -------------------------------------------------------------------------------------


class Host:
    """A program that runs a script with one statement per line and prints the results in the form of story.sql."""

    def __init__(self, name, *command, missing=None, threads=False, coarse=False, **environment):
        self.name, self.command, self.missing = name, command, missing
        self.threads, self.coarse, self.environment = threads, coarse, environment

    def __str__(self):
        return self.name

    def output(self, database, script, *threads):
        command = [*self.command, EXTENSION, database, script, self.name, *threads]
        ran = subprocess.run([str(argument) for argument in command], capture_output=True, text=True,
                             timeout=PATIENCE, env={**os.environ, **self.environment})
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
        return ran.stdout.splitlines()


class Shell(Host):
    """The sqlite3 shell. It reads the statements directly, with dot-commands around them."""

    def output(self, database, script, *settings):
        lines = [f".load {EXTENSION}", ".parameter init", f""".parameter set :host "'{self.name}'" """]
        lines += [".output /dev/null", *settings, ".output"]
        for statement in script.read_text().splitlines():
            lines += [".print >", statement]
        # Errors go to stderr without a buffer. stdbuf makes the other output line-buffered, so that all lines stay in order.
        ran = subprocess.run(["stdbuf", "-oL", *self.command, database], input="\n".join(lines) + "\n",
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        return ran.stdout.splitlines() + ["closed"]


def unless(present, what):
    return None if present else f"{what} (make deps-hosts)"


def stale(made, source):
    return not made.exists() or made.stat().st_mtime < (HERE / source).stat().st_mtime


def by_version(paths):
    return sorted(paths, key=lambda path: [int(number) for number in re.findall(r"\d+", path.name)])


def find_hosts():
    python, driver = sys.executable, HERE / "story.py"
    yield Shell("shell", "sqlite3")
    yield Host("python", python, driver, "sqlite3", threads=True)
    for package, module in [("apsw", "apsw"), ("pysqlite3-binary", "pysqlite3.dbapi2")]:
        found = by_version(HOSTS.glob(f"python/{package}/*/*.dist-info"))
        for path in found:
            # The SQLite of pysqlite3 0.5.0 was built without usleep(), so it waits for a lock in steps of a second.
            yield Host(path.stem, python, driver, module, threads=True,
                       coarse=path.stem == "pysqlite3_binary-0.5.0", PYTHONPATH=str(path.parent))
        if not found:
            yield Host(package, missing=unless(False, f"no {package} in build/hosts/python"))

    jars = by_version(HOSTS.glob("java/sqlite-jdbc-*.jar"))
    current = shutil.which("java") and not stale(HOSTS / "java" / "Story.class", "Story.java")
    for jar in jars:
        classes = [jar.parent, jar, *jar.parent.glob("slf4j-*.jar")]
        yield Host(jar.stem, "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                   "-cp", os.pathsep.join(map(str, classes)), "Story", threads=True,
                   missing=unless(current, "no java, or Story.class older than its source"))
    if not jars:
        yield Host("sqlite-jdbc", missing=unless(False, "no sqlite-jdbc in build/hosts/java"))

    found = sorted(HOSTS.glob("go/*/story"))
    for path in found:
        yield Host(f"go-sqlite3-{path.parent.name}", path, threads=True,
                   missing=unless(not stale(path, "story.go"), "a program older than story.go"))
    if not found:
        yield Host("go-sqlite3", missing=unless(False, "no go-sqlite3 in build/hosts/go"))

    better = NODE_MODULES / "better-sqlite3"
    yield Host("better-sqlite3", "node", HERE / "story.js", better,
               missing=unless(shutil.which("node") and better.exists(), "no node with better-sqlite3"))
    node = next(HOSTS.glob("node/node_modules/node-*/bin/node"), None)
    yield Host("node:sqlite", node, "--no-warnings", HERE / "story.js", "node:sqlite",
               missing=unless(node, "no node in build/hosts/node"))

    perl = shutil.which("perl") and subprocess.run(["perl", "-MDBD::SQLite", "-e", "1"], capture_output=True)
    yield Host("perl", "perl", HERE / "story.pl",
               missing=unless(perl and perl.returncode == 0, "no perl with DBD::SQLite"))
    php = shutil.which("php") and subprocess.run(["php", "-m"], capture_output=True, text=True).stdout
    yield Host("php", "php", "-d", f"sqlite3.extension_dir={os.path.dirname(EXTENSION)}", HERE / "story.php",
               missing=unless(php and "sqlite3" in php.split(), "no php with sqlite3"))


EVERY = list(find_hosts())
BELOW_FLOOR = [host for host in EVERY if re.match(r"sqlite-jdbc-3\.([0-9]|[12][0-9]|3[0-3])\.", host.name)]
ALLOWED = [host for host in EVERY if host not in BELOW_FLOOR]
AVAILABLE = [host for host in ALLOWED if not host.missing]


@pytest.fixture
def database(tmp_path):
    return tmp_path / "story.db"


def script_of(database, part):
    """Writes the statements of a part, one in each line, to a file beside the database for a driver."""
    script = database.with_name("script.sql")
    script.write_text("\n".join(statement for statement, _ in part) + "\n")
    return script


def play(host, database, *parts, known, arguments=()):
    """Lets a host run parts of the story on the database. Checks the output and the ledger afterwards."""
    if host.missing:
        pytest.skip(host.missing)
    part = [pair for name in parts for pair in STORY[name]]
    before = charges(database)
    check(host.output(database, script_of(database, part), *arguments), part, known)
    assert charges(database) - before == sum(CHARGES[name] for name in parts)


def charges(database):
    if not pathlib.Path(f"{database}-ledger").exists():
        return 0
    ledger = ledger_of(database)
    count = one(ledger, "SELECT count(*) FROM dp_charge")
    ledger.close()
    return count


def sound(database):
    """Checks on a new connection that the ledger is consistent and no release is unfinished."""
    db = connect(database)
    assert one(db, "SELECT dp_verify()") == "ok"
    assert one(db, "SELECT count(*) FROM dp_release WHERE state <> 'released'") == 0
    db.close()


# ---- the tests -------------------------------------------------------------------------------------


def ends(hosts):
    """Returns the first and the last host of each driver, which are its oldest and newest versions."""
    drivers = {}
    for host in hosts:
        drivers.setdefault(re.sub(r"-(v?\d.*|latest)$", "", host.name), []).append(host)
    return [host for group in drivers.values() for host in group[:1] + group[1:][-1:]]


@pytest.mark.parametrize("host", [host if host in ends(ALLOWED) else pytest.param(host, marks=pytest.mark.slow) for host in ALLOWED], ids=str)
def test_story(host, database):
    play(host, database, "create", "go on", known={})
    sound(database)


def test_one_database_passes_through_all_hosts(database):
    minutes = {}
    for number, host in enumerate(ends(AVAILABLE)):
        if number == 0:
            play(host, database, "create", known=minutes)
        play(host, database, "go on", known=dict(minutes))
    sound(database)


NONE_BELOW = [Host("below-3.34", missing=unless(False, "no SQLite below 3.34"))]


@pytest.mark.parametrize("host", BELOW_FLOOR or NONE_BELOW, ids=str)
def test_old_sqlite_is_refused_with_a_sentence(host, database):
    if host.missing:
        pytest.skip(host.missing)
    (line,) = host.output(database, script_of(database, [("SELECT 1;", ["1"])]))
    assert re.search(r"error: .*diffuse needs SQLite 3\.34 or newer, this is 3\.3[0-3]\.", line)


WAITING = [host for host in AVAILABLE if not host.coarse]


@pytest.mark.parametrize("host", ends(host for host in WAITING if host.threads), ids=str)
def test_threads(host, database):
    """Connections of one process, each in its own thread, make releases at the same time. No charge is lost."""
    threads, known = 8, {}
    play(host, database, "create", known=known)
    transcript = host.output(database, script_of(database, STORY["threads"]), threads)
    stops = [number + 1 for number, line in enumerate(transcript) if line == "closed"]
    assert len(stops) == threads, transcript
    for start, end in zip([0, *stops], stops):
        check(transcript[start:end], STORY["threads"], dict(known))
    assert charges(database) == CHARGES["create"] + threads * CHARGES["threads"]
    sound(database)


def test_all_hosts_at_once(database):
    """Hosts of all languages, with old and new versions of SQLite, make releases from one database at the same time."""
    known = {}
    play(WAITING[0], database, "create", known=known)
    script = script_of(database, STORY["threads"])
    with futures.ThreadPoolExecutor(8) as pool:
        transcripts = list(pool.map(lambda host: host.output(database, script), WAITING))
    for transcript in transcripts:
        check(transcript, STORY["threads"], dict(known))
    assert charges(database) == CHARGES["create"] + len(WAITING) * CHARGES["threads"]
    sound(database)


HARDENED = {
    "defensive": [".dbconfig defensive on"],
    "untrusted schema": [".dbconfig trusted_schema off"],
    "everything": [".dbconfig defensive on", ".dbconfig trusted_schema off", "PRAGMA journal_mode = WAL;",
                   "PRAGMA cell_size_check = ON;", "PRAGMA foreign_keys = ON;", "PRAGMA recursive_triggers = ON;",
                   "PRAGMA case_sensitive_like = ON;"],
}


@pytest.mark.parametrize("settings", HARDENED.values(), ids=HARDENED.keys())
def test_hardened_connection(settings, database, monkeypatch):
    play(Shell("shell", "sqlite3"), database, "create", "go on", known={}, arguments=settings)
    sound(database)


def test_stored_view_of_a_table_needs_a_trusted_schema(database):
    """With PRAGMA trusted_schema = OFF, which is meant for files from strangers, a stored view cannot read the ledger."""
    play(Shell("shell", "sqlite3"), database, "create", known={})
    db = connect(database)
    db.execute("CREATE VIEW published AS SELECT release, value FROM dp_value")
    assert one(db, "SELECT count(*) FROM published") == 1
    db.execute("PRAGMA trusted_schema = OFF")
    assert refused(db, "SELECT count(*) FROM published") == 'unsafe use of virtual table "dp_value"'
    assert one(db, "SELECT count(*) FROM dp_value") == 1
    db.close()
