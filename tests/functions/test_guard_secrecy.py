"""Tests that nothing a guarded connection shows depends on one person, on an undeclared table or on inner tiers, after every kind of
change of the schema. The statements run on two databases that differ in one of these, and must give the same, also in a build whose
guard has no authorizer."""

import contextlib
import json
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import connect, EXTENSION, one, start
from guard_corpus import change, CHANGES, CORPUS, grammar, READS, SIDES, STATEMENTS
from guard_helpers import BARE, copy_of, guarded, mend, outcome, published  # noqa: F401

pytestmark = pytest.mark.alarm(0)


def pair(published, tmp_path, side):
    left, right = copy_of(published, tmp_path / "left.db"), copy_of(published, tmp_path / "right.db")
    for path in (left, right):  # corrects the markers of the copies, as every use of the owner does
        one(connect(path), "SELECT count(*) FROM dp_tier")
    SIDES[side](connect(right))
    return left, right


OWNER = """
for line in sys.stdin:
    path, statements = line.rstrip("\\n").split("\\t")
    with contextlib.closing(connect(path)) as owner:
        for statement in statements.split("; "):
            owner.execute(statement).fetchall()
    print("done", flush=True)
"""


@contextlib.contextmanager
def owners_process():
    """Gives a function like change() that changes the database in another process."""
    process = start(OWNER, stdin=subprocess.PIPE)

    def ask(path, statements):
        process.stdin.write(f"{path}\t{statements}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n", process.stderr.read()
    yield ask
    process.stdin.close()
    assert process.wait() == 0


def compare(published, tmp_path, side, extension, corpus, part):  # noqa: F811
    """Runs the statements on two guarded connections, again after each change, and returns how many had an answer with a row. The part
    of the corpus that runs after change number i is part(i). The connections keep their prepared statements."""
    left, right = pair(published, tmp_path, side)
    guests = [guarded(path, extension=extension, cached_statements=10000) for path in (left, right)]
    answers = 0
    with owners_process() as elsewhere:
        for i, statements in enumerate(["SELECT 1", *CHANGES]):
            for path in (left, right):
                (elsewhere if (i + (extension == BARE)) % 2 else change)(path, statements)
            seen = [(s, *(outcome(guest, s) for guest in guests)) for s in corpus[part(i)]]
            assert mend([s for s in seen if s[1] != s[2]], left, right) == [], statements
            answers += sum(isinstance(one_, list) and one_ != [] for _, one_, _ in seen)
    for guest in guests:
        assert "the rows of table 'visit' are protected" in str(outcome(guest, "SELECT count(*) FROM main.visit"))
    return answers


@pytest.mark.parametrize("extension", [EXTENSION, BARE], ids=["whole", "bare"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.sample(4)
def test_nothing_depends_on_what_is_secret(published, tmp_path, side, extension):  # noqa: F811
    """All statements run at first and after the second change, and every fourth one after every change. Each change is made on another
    connection of this process for one build, and by another process for the other build."""
    assert len(CORPUS) > 1500
    assert compare(published, tmp_path, side, extension, CORPUS, lambda i: slice(None, None, 1 if i in (0, 2) else 4)) > 500


@pytest.mark.slow
@pytest.mark.parametrize("extension", [EXTENSION, BARE], ids=["whole", "bare"])
@pytest.mark.parametrize("side", SIDES)
def test_nothing_depends_on_what_is_secret_in_all_statements(published, tmp_path, side, extension):  # noqa: F811
    assert compare(published, tmp_path, side, extension, CORPUS + grammar(2, 5000), lambda i: slice(None)) > 5000


QUESTIONS = ["SELECT 1 FROM {}", "SELECT x FROM main.{}", "SELECT count(*) FROM visit, {}", "SELECT {}.x FROM visit", "SELECT minutes FROM visit NATURAL JOIN {}",
             "SELECT 1 FROM visit WHERE minutes IN (SELECT x FROM {})", "SELECT minutes FROM visit INDEXED BY {}"]


def test_refusals_of_questions_do_not_say_what_else_exists(published, tmp_path):  # noqa: F811
    """An undeclared table, an index and a view are refused with the words for a name that does not exist. Nothing is charged. The text
    of a view could name undeclared tables and rows."""
    path = copy_of(published, tmp_path / "a.db")
    owner = connect(path)
    owner.executescript("CREATE VIEW peek AS SELECT x FROM secret; CREATE VIEW told AS SELECT minutes AS x, 'hidden' AS minutes FROM visit WHERE patient <> 7")
    one(owner, "SELECT dp_grant('visitors', 'public', 5, '{\"pad_ms\":1}')")
    guest = guarded(path, options={"ask": "visitors"})
    names = ("secret", "nosuch", "dp_ledger_id", "visit_day", "sqlite_sequence", "visits", "wards", "peek", "told")
    for question in QUESTIONS:
        for call in ("SELECT dp_release('public', 'count', '{}', '{{\"name\":\"x\",\"clip\":1}}')",
                     "SELECT dp_plan('[{{\"tier\":\"public\",\"kind\":\"count\",\"sql\":\"{}\",\"options\":{{\"clip\":1}}}}]')"):
            errors = [outcome(guest, call.format(question.format(name))) for name in names]
            assert all(isinstance(error, str) for error in errors), errors
            # What is suggested instead is declared, and does not depend on what exists.
            assert len({re.sub(r"did you mean '(visit|ward)'\? if not, ", "", error.replace(name, "?")) for error, name in zip(errors, names)}) == 1, errors
    assert one(guest, "SELECT sum(charges) FROM dp_reserve") == 0


def test_the_comparison_finds_what_the_owner_sees(published, tmp_path):  # noqa: F811
    """Control: on connections that are not guarded, the statements differ for each kind of secret."""
    for side in SIDES:
        (tmp_path / side).mkdir()
        left, right = pair(published, tmp_path / side, side)
        owners = [connect(left), connect(right)]
        assert mend([s for s in ((s, *(outcome(db, s) for db in owners)) for s in READS[::4]) if s[1] != s[2]], left, right), side


# ---- other hosts ---------------------------------------------------------------------------------------

HOSTS = pathlib.Path(__file__).parent.parent.parent / "build" / "hosts"
APSW = """
import json, sys
sys.path.insert(0, sys.argv[1])
import apsw
db = apsw.Connection(sys.argv[3])
db.enableloadextension(True)
db.loadextension(sys.argv[2])
db.cursor().execute("SELECT dp_guard('public')").fetchall()
for line in sys.stdin:
    seen = []
    for statement in json.loads(line):
        try:
            seen.append(repr(db.cursor().execute(statement).fetchall()))
        except Exception as error:
            seen.append(str(error))
    print(json.dumps(seen), flush=True)
"""
NODE = """
const { DatabaseSync } = require('node:sqlite');
const db = new DatabaseSync(process.argv[2], { allowExtension: true });
db.loadExtension(process.argv[1] + '.so');
db.prepare("SELECT dp_guard('public')").all();
let rest = '';
process.stdin.on('data', (data) => {
  rest += data;
  for (let end; (end = rest.indexOf('\\n')) >= 0; rest = rest.slice(end + 1)) {
    const seen = JSON.parse(rest.slice(0, end)).map((statement) => {
      try { return JSON.stringify(db.prepare(statement).all(), (_, v) => typeof v === 'bigint' ? String(v) : v); } catch (error) { return error.message; }
    });
    console.log(JSON.stringify(seen));
  }
});
"""


def host(name, path, extension):
    """Starts a guarded connection in another host, which reads lists of statements and writes lists of outcomes."""
    if name == "node":
        program = next(HOSTS.glob("node/node_modules/node-linux-*/bin/node"), None)
        arguments = [program, "-e", NODE, extension, path]
    else:
        program = HOSTS / "python" / "apsw" / name
        program = program if (program / ".done").exists() else None
        arguments = [sys.executable, "-c", APSW, program, extension, path]
    if not program:
        pytest.skip(f"no {name} here (make deps-hosts)")
    return subprocess.Popen([str(a) for a in arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.plain  # the hosts have their own runtimes, which do not work with a sanitizer
@pytest.mark.parametrize("name", ["3.39.4.0", "newest", "node"])
@pytest.mark.parametrize("side, extension", [(side, EXTENSION) for side in SIDES] + [("person", BARE)]
                         + [pytest.param(side, BARE, marks=pytest.mark.slow) for side in ("undeclared", "inner")])
@pytest.mark.sample(6)
def test_other_hosts_show_as_little(published, tmp_path, side, extension, name):  # noqa: F811
    """The hosts are processes of their own, and this one is the owner's."""
    assert len(STATEMENTS) >= 200
    left, right = pair(published, tmp_path, side)
    guests = [host(name, path, extension) for path in (left, right)]
    for statements in ["SELECT 1", *CHANGES]:
        seen = []
        for path, guest in zip((left, right), guests):
            change(path, statements)
            guest.stdin.write(json.dumps(STATEMENTS) + "\n")
            guest.stdin.flush()
            seen.append(json.loads(guest.stdout.readline()))
        differing = [(s, a, b) for s, a, b in zip(STATEMENTS, *seen) if a != b]
        assert mend(differing, left, right) == [] and sum("[" in a and a != "[]" for a in seen[0]) > 20, statements
    for guest in guests:
        guest.stdin.close()
        assert guest.wait() == 0
