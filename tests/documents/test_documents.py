"""Runs the commands of README.md and sql/*.md, and compares the output with the documents.

In a block of ```sql, a line that starts with "-- " under a statement is an expected row (columns joined by "|"). "-- noisy"
stands for any single row of finite numbers, "-- noisy: ..." for one near these. "-- error: ..." is the error message of the
statement. Other numbers must agree to a relative 1e-9. All blocks of a document share one database, which has the table star. The
commands of README.md run twice, because a reader may run them twice.
"""

import csv
import json
import math
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
ELSEWHERE = {"tutorial": "test_tutorial.py", "series": "test_tutorial.py", "backup": "test_moves.py", "papers": "test_papers_reference.py",
             "errata": "test_papers_errata.py", "analyst": "test_documents.py"}
DOCUMENTS = ["README.md", *(f"sql/{page.name}" for page in sorted((ROOT / "sql").glob("*.md"))
                            if page.stem not in ELSEWHERE and "```sql" in page.read_text())]


def blocks(document, language):
    """Returns the fenced blocks of one language in a document, in order."""
    found, lines = [], None
    for line in (ROOT / document).read_text().splitlines():
        if lines is not None and line.startswith("```"):
            found.append("\n".join(lines) + "\n")
            lines = None
        elif lines is not None:
            lines.append(line)
        elif line.strip() == "```" + language:
            lines = []
    return found


def statements(block):
    """Returns (statement, expected lines) for each statement of a block. Dot-commands are left to the shell."""
    found, text = [], ""
    for line in block.splitlines():
        if not text.strip() and line.startswith("-- "):
            found[-1][1].append(line[3:])
        elif not line.startswith(".") and line.strip():
            text += line + "\n"
            code = "\n".join(part.split("--")[0] for part in text.splitlines())
            if sqlite3.complete_statement(code):
                found.append((text, []))
                text = ""
    assert not text.strip(), f"unfinished statement: {text}"
    return found


def agrees(got, want):
    if len(got) != len(want.split("|")):
        return False
    for value, text in zip(got, want.split("|")):
        if isinstance(value, float):
            if not math.isclose(value, float(text), rel_tol=1e-9):
                return False
        elif str(value) != text:
            return False
    return True


def is_noisy(value):
    """Returns whether a value is a finite number, or JSON of finite numbers."""
    if isinstance(value, str):
        value = json.loads(value)
    numbers = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return all(map(is_noisy, numbers)) if numbers is not None else math.isfinite(value)


def check_shown(db, statement, value, shown):
    """Checks that a noisy value that a page shows is one that the program can print: at most 17 standard deviations away, or 2% for
    a quantile, whose noise is one of rank. Of a list that ends in "..." only the keys of both are compared."""
    (last,) = db.execute("SELECT max(published_at) FROM dp_publication").fetchone()
    stddev, kind = db.execute("SELECT max(stddev), kind FROM dp_value JOIN dp_publication USING (release, tier) JOIN dp_release ON name = release"
                              " WHERE published_at = ?", (last,)).fetchone()
    got, want = (json.loads(text) if isinstance(text, str) else text for text in (value, re.sub(r",\.\.\.}$", "}", shown)))
    if kind == "bounds":  # powers of two
        return
    assert shown.endswith(",...}") or not isinstance(got, dict) or got.keys() == want.keys(), f"{statement}{value}"
    def flat(x):
        return x if isinstance(x, dict) else dict(enumerate(x)) if isinstance(x, list) else {0: x}
    got, want = flat(got), flat(want)
    for key in got.keys() & want.keys():
        far = abs(got[key]) / 50 if "median" in kind or "quantile" in kind else 17 * stddev
        assert abs(got[key] - want[key]) <= far, f"{statement}printed {value}, the page shows {shown}"


def run_statement(db, statement, expected):
    try:
        rows = db.execute(statement).fetchall()
    except sqlite3.Error as error:
        assert expected == [f"error: {error}"], f"{statement}{error}"
        return
    if expected and expected[0].startswith("noisy"):
        assert len(rows) == 1 and all(is_noisy(value) for value in rows[0]), statement
        if expected[0].startswith("noisy: "):
            check_shown(db, statement, rows[0][0], expected[0].removeprefix("noisy: "))
    elif expected:
        assert len(rows) == len(expected), f"{statement}{rows}"
        for row, want in zip(rows, expected):
            assert agrees(row, want), f"{statement}got {row}, want {want}"


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


@pytest.mark.alarm(1e-10)  # 17 standard deviations of Laplace noise; those of Gaussian noise have 1e-60
@pytest.mark.parametrize("document", DOCUMENTS)
def test_sql_of_document(document, tmp_path, monkeypatch):
    found = [pair for block in blocks(document, "sql") for pair in statements(block)]
    monkeypatch.chdir(tmp_path)
    shutil.copy(BUILD / "star.db", tmp_path / "star.db")
    db = connect(tmp_path / "star.db")
    for statement, expected in found * (2 if document == "README.md" else 1):
        run_statement(db, statement, expected)


def test_every_page_is_run_and_found():
    """Every page with SQL is run by a test, and the index names every page."""
    for page, test in ELSEWHERE.items():
        assert f"{page}.md" in next((ROOT / "tests").glob(f"*/{test}")).read_text()
    index = (ROOT / "sql" / "README.md").read_text()
    assert [page.name for page in (ROOT / "sql").glob("*.md") if page.name != "README.md" and f"({page.name})" not in index] == []


def anchors(page):
    """Returns the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = pytest.mark.parametrize("page", [
    ROOT / "README.md", *sorted((ROOT / "sql").glob("*.md")), *sorted((ROOT / ".github").glob("*.md")),
    *sorted((ROOT / "ext").rglob("README.md")), ROOT / "fixtures" / "README.md", ROOT / "tests" / "README.md",
    *sorted((ROOT / "bench").glob("*.md"))], ids=lambda page: str(page.relative_to(ROOT)))


@PAGES
def test_links(page):
    """Every link to a file of the repository names a file that exists, and a heading that the file has."""
    text = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@PAGES
def test_papers_that_a_page_cites(page):
    """ext/math/README.md has the title of each paper that a page cites by its authors and year."""
    listed = re.findall(r"^- ([\w, ]+)", (ROOT / "ext" / "math" / "README.md").read_text().split("## References")[1], re.M)
    assert len(listed) > 20
    text = " ".join(page.read_text().split())
    for first, others, year in re.findall(r"\b([A-Z]\w+)((?:, [A-Z]\w+)*,? and [A-Z]\w+| et al\.),? \(?((?:19|20)\d\d)\b", text):
        names = [first, *re.findall(r"[A-Z]\w+", others)]
        assert any(re.findall(r"[A-Z]\w+", paper)[:1] == [first] and set(names) <= set(re.findall(r"[A-Z]\w+", paper)) and year in paper
                   for paper in listed), (first, others, year)


@PAGES
def test_tests_that_a_page_names(page):
    """Each `tests/room/test_x.py` exists. A name without a folder is in the folder of the name before it, or in tests/ itself."""
    room = ROOT / "tests"
    for name in re.findall(r"`((?:tests/[\w/]*)?\w+\.(?:py|c))`", page.read_text()):
        if name.startswith("tests/"):
            room = (ROOT / name).parent
            assert (ROOT / name).exists(), name
        elif name.startswith("test_"):
            assert (room / name).exists() or (ROOT / "tests" / name).exists(), f"{name} is not in {room}"


def test_shell_of_reference(tmp_path):
    """Runs the ```sh block of the reference after its SQL. A line that starts with "# " is the output of the command above it."""
    shutil.copy(BUILD / "star.db", tmp_path / "my.db")
    db = connect(tmp_path / "my.db")
    for block in blocks("sql/reference.md", "sql"):
        for statement, expected in statements(block):
            run_statement(db, statement, expected)
    db.close()
    place_build(tmp_path)
    shutil.copytree(ROOT / "sql", tmp_path / "sql")
    (block,) = blocks("sql/reference.md", "sh")
    shell = os.environ.get("SQLITE3", "sqlite3")
    done = subprocess.run(["sh", "-e", "-c", f'sqlite3() {{ command {shell} "$@"; }}\n' + block], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert done.stdout.splitlines() == [line[2:] for line in block.splitlines() if line.startswith("# ")]


def test_page_of_reporting(tmp_path, monkeypatch):
    """Makes a report and reads its data back, with the shell commands of sql/reporting.md."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(BUILD / "star.db", tmp_path / "my.db")
    db = connect(tmp_path / "my.db")
    for statement, expected in statements(blocks("sql/reporting.md", "sql")[0]):
        run_statement(db, statement, expected)
    place_build(tmp_path)
    shell, (python,) = blocks("sql/reporting.md", "sh"), blocks("sql/reporting.md", "python")
    for script in shell:
        subprocess.run(["sh", "-e", "-c", f'sqlite3() {{ command {os.environ.get("SQLITE3", "sqlite3")} "$@"; }}\n' + script], check=True)
    with open("public.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    day = db.execute("SELECT substr(published_at, 1, 10) FROM dp_publication WHERE release = 'reading' AND tier = 'public'").fetchone()[0]
    assert [(row["release"], row["published_at"]) for row in rows] == [("reading", day)]
    assert float(rows[0]["low"]) < float(rows[0]["value"]) < float(rows[0]["high"])
    found = {}
    exec(python, found)
    columns = [column[0] for column in db.execute("SELECT * FROM dp_value").description][1:]
    columns.remove("figure")  # the page says it once for each release
    assert [tuple(row[column] for column in columns) for row in found["rows"]] == db.execute(
        f"SELECT {', '.join(columns)} FROM dp_value WHERE tier = 'public'").fetchall()
    assert len(found["rows"]) == 1 and found["rows"][0]["release"] == "reading"


def test_program_of_guard(tmp_path, monkeypatch):
    """Starts sql/ask.py and sends it the statements that an analyst types in sql/guard.md."""
    monkeypatch.chdir(tmp_path)
    place_build(tmp_path)
    db = connect(tmp_path / "hospital.db")
    for statement, expected in statements("".join(blocks("sql/guard.md", "sql")[:1])):
        run_statement(db, statement, expected)
    _, typed = blocks("sql/guard.md", "text")
    shutil.copy(ROOT / "sql" / "ask.py", tmp_path)
    pairs = re.findall(r"((?:^(?!-- ).*\n)+)((?:^-- .*\n)+)", typed, re.M)
    assert len(pairs) == 7 and "".join(map("".join, pairs)) == typed
    attacks = ["SELECT load_extension('build/diffuse');\n", "ATTACH 'hospital.db' AS again;\n", ".auth off;\n", ".trace off;\n",
               "SELECT 1; SELECT 2;\n", "SELECT * FROM visit;\n", "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visit', '{\"name\":\"x\",\"clip\":1}');\n",
               "SELECT dp_value.value FROM dp_value WHERE tier = 'clinic';\n"]
    end = "SELECT 'the end of one';\n"
    sent = [statement + end for statement, _ in pairs] + [statement + end for statement in attacks]
    done = subprocess.run([sys.executable, "-I", "ask.py"], input="".join(sent) + "SELECT 1", capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    answers = done.stdout.split("the end of one\n")
    assert len(answers) == len(sent) + 1 and answers[-1] == "error: a statement ends with a semicolon\n"
    for (statement, expected), answer in zip(pairs, answers):
        expected = [line[3:] for line in expected.splitlines()]
        if expected[0].startswith("noisy"):
            assert is_noisy(answer), (statement, answer)
        else:
            assert answer.splitlines() == expected, statement
    refused = answers[len(pairs):-1]
    assert refused.pop() == "" and len(refused) == len(attacks) - 1
    assert all(re.fullmatch("error: .*\n", answer) for answer in refused), refused


@pytest.mark.alarm(1e-10)
def test_page_of_analysts(tmp_path):
    """Runs sql/analyst.md on the guarded connection of sql/guard.md: its ten questions are answered, and figures with an interval are
    the truth, which plain SQLite counts, within 12 standard deviations, or 7 of the count inside
    an average."""
    db = connect(tmp_path / "hospital.db")
    for statement, expected in statements(blocks("sql/guard.md", "sql")[0]):
        run_statement(db, statement, expected)
    plain = {name: dict(db.execute(f"SELECT {key}, {value} FROM visit JOIN ward ON name = ward {rest}")) for name, key, value, rest in (
        ("visits", "''", "count(*)", ""), ("patients", "''", "count(DISTINCT patient_id)", "WHERE minutes > 20"),
        ("by ward", "ward", "count(*)", "GROUP BY 1"), ("stay", "''", "avg(minutes)", ""), ("stay by ward", "ward", "avg(minutes)", "GROUP BY 1"),
        ("long part", "''", "avg(minutes > 30)", ""), ("lengths", "max(0, min(2, minutes / 20))", "count(*)", "GROUP BY 1"),
        ("large wards", "''", "sum(minutes)", "WHERE beds > 20"))}
    plain["often"] = {"": one_number(db, "SELECT count(*) FROM (SELECT 1 FROM visit GROUP BY patient_id HAVING count(*) > 3)")}
    db.execute("""SELECT dp_guard('public', '{"ask":"visitors"}')""").fetchall()
    asked = [pair for block in blocks("sql/analyst.md", "sql") for pair in statements(block)]
    for statement, expected in asked:
        run_statement(db, statement, expected)
    assert sum("dp_answer(" in statement for statement, _ in asked) == 10 == one_number(db, "SELECT charges FROM dp_reserve")
    checked = 0
    for name, key, component, value, stddev in db.execute("SELECT substr(release, 10), key, component, value, stddev FROM dp_value"
                                                         " WHERE release LIKE 'visitors/%' AND stddev IS NOT NULL"):
        assert abs(value - plain[name][component if name == "lengths" else key]) <= 12 * stddev, name
        checked += 1
    assert checked == 13


def one_number(db, sql):
    return db.execute(sql).fetchone()[0]


def place_build(folder):
    """Gives the snippets a folder with build/diffuse, which they load by this relative path."""
    (folder / "build").mkdir()
    shutil.copy(BUILD / "diffuse.so", folder / "build")


# The examples of README.md use 10,000 visits of 15 to 44 minutes. Their noise exceeds 4 times the half-width of the printed 95%
# interval (7.8 standard deviations) once in 10^14 runs.
FAR = 4


def printed_twice(command, folder, **options):
    """Returns the number and the half-width that an example prints. The function runs the example twice and checks that both are
    the same the second time."""
    place_build(folder)
    outputs = set()
    for _ in range(2):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", **options)
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    (output,) = outputs
    value, half = re.fullmatch(r"(\S+) ± (\S+) minutes\n", output).groups()
    return float(value.replace(",", "")), float(half.replace(",", ""))


def test_python_of_readme(tmp_path):
    (snippet,) = blocks("README.md", "python")
    value, half = printed_twice([sys.executable, "-X", "utf8", "-c", snippet], tmp_path)
    assert 0.05 < half < 0.15 and abs(value - 29.5) < FAR * half


# ---- the demo ------------------------------------------------------------------------------------------------------


def boxes(lines):
    """Reads the tables that the shell draws in the mode box. Returns each as (header, rows) of texts."""
    found = []
    for line in lines:
        if line.startswith("┌"):
            found.append([])
        elif line.startswith("│"):
            found[-1].append([cell.strip() for cell in line.strip("│").split("│")])
    return [(rows[0], rows[1:]) for rows in found]


def steps(output):
    """Returns the tables that each numbered step of the demo prints."""
    found = []
    for line in output.splitlines():
        if re.match(r"\d+\. ", line):
            assert line.startswith(f"{len(found) + 1}. ")
            found.append([])
        elif found:
            found[-1].append(line)
    return [boxes(lines) for lines in found]


def run_demo(folder):
    """Runs the demo on a copy of its files."""
    shutil.copy(BUILD / "star.db", folder / "demo.db")
    place_build(folder)
    shell = os.environ.get("SQLITE3", "sqlite3")
    done = subprocess.run([shell, "demo.db"], stdin=open(ROOT / "sql" / "demo.sql"), cwd=folder, capture_output=True,
                          text=True, encoding="utf-8")
    assert done.returncode == 0 and not done.stderr, done.stderr
    return steps(done.stdout)


TIERS = ["school", "district", "public"]
EXACT = {"small: students": 1796, "small: average": 590.4, "reg": 579.8, "reg+A": 582.5, "small": 590.4, "spread": 123.0}
HALF = {  # half-widths of the 95% intervals of a count and of an average, at the rate of each tier
    ("small: students", "school"): 6.3, ("small: students", "district"): 14.8, ("small: students", "public"): 40.6,
    ("small: average", "school"): 1.05, ("small: average", "district"): 2.5, ("small: average", "public"): 6.8,
}


def is_near(value, exact, half):
    """Returns whether a value is within 4 half-widths of the exact value. Allows for rounding to one decimal."""
    return abs(float(value) - exact) < FAR * half + 0.1


def test_every_step_of_the_demo(tmp_path):
    """Every step of the demo prints its tables with the rows and the precision that its text promises. Each of the 21 noisy
    figures differs from the truth by more than 4 half-widths once in 10^14 runs."""
    one, two, three, four, five, six, seven, eight, nine = run_demo(tmp_path)
    assert one == [(["children", "average"], [["215", "586.5349"], ["214", "586.4206"]]), (["her_score"], [["611.0"]])]

    assert [table[0] for table in two] == [["ledger"], ["protected"], ["tier"], ["tier", "epsilon", "releases_left"]]
    path = "".join(line for (line,) in two[0][1])  # the shell breaks the line
    assert path.endswith("demo.db-ledger") and [tier for (tier,) in two[2][1]] == TIERS
    assert two[3][1] == [["school", "8.0", "24"], ["district", "3.0", "24"], ["public", "1.0", "24"]]

    ((header, ((students, average),)),) = three
    assert header == ["students", "average"]
    inner = {"small: students": students, "small: average": average}

    (header, outward), (all_header, values) = four
    assert header == ["release", "district", "public"] and sorted(row[0] for row in outward) == sorted(inner)
    shown = {(release, tier): value for release, *row in outward for tier, value in zip(TIERS[1:], row)}
    shown |= {(release, "school"): value for release, value in inner.items()}
    assert all_header == ["release", "tier", "value", "low", "high"]
    assert [row[:2] for row in values] == [[name, tier] for name in inner for tier in TIERS]
    for name, tier, value, low, high in values:
        half = (float(high) - float(low)) / 2
        assert shown[name, tier] == value and abs(half - HALF[name, tier]) < 0.1 + 0.15 * HALF[name, tier], (name, tier)
        assert float(low) < float(value) < float(high) and is_near(value, EXACT[name], half)

    ((header, rows),) = five
    assert header == ["tier", "average", "plus_minus", "truth"]
    assert [row[:2] + row[3:] for row in rows] == [[tier, shown["small: average", tier], "590.4"] for tier in TIERS]
    assert all(abs(float(row[2]) - HALF["small: average", row[0]]) < 0.1 + 0.15 * float(row[2]) for row in rows)

    (header, averages), (interval_header, intervals) = six
    assert header == ["class_type", "average"] and interval_header == ["class_type", "low", "high", "truth"]
    assert [row[0] for row in averages] == [row[0] for row in intervals] == ["reg", "reg+A", "small"]
    for (name, value), (_, low, high, truth) in zip(averages, intervals):
        half = (float(high) - float(low)) / 2
        assert float(truth) == EXACT[name] and 0.6 < half < 1.3 and is_near(value, EXACT[name], half)
        assert float(low) < float(value) < float(high)

    ((header, ((spread, low, high),)),) = seven
    assert header == ["median_spread", "low", "high"]
    half = (float(high) - float(low)) / 2
    assert float(low) <= float(spread) <= float(high) and half < 4 and is_near(spread, EXACT["spread"], half + 1)

    (again_header, again), (header, budgets), books = eight
    assert (again_header, again) == (["students"], [[students]])
    assert header == ["tier", "epsilon", "spent", "remaining", "releases", "releases_left"]
    assert [row[:2] + row[4:] for row in budgets] == [
        ["school", "8.0", "4", "20"], ["district", "3.0", "2", "22"], ["public", "1.0", "2", "22"]]
    assert all(0 < float(row[2]) < float(row[1]) / 2 for row in budgets)
    assert books == (["books"], [["ok"]])

    granted, guard, (header, ((left, right, score),)), (_, shown), (_, asked) = nine
    assert granted[1] == [["analysts"]] and guard[1] == [["public"]]
    assert header == ["all_children", "without_her", "her_score"]
    assert abs(float(score) - (215 * float(left) - 214 * float(right))) < 30
    assert [name for name, _ in shown] == ["analysts/all", "analysts/without her"]
    assert asked == [["analysts", "2", "9"]]


def test_the_end_of_the_demo(tmp_path):
    """Checks what a guarded connection does with each statement of sql/attack.sql."""
    run_demo(tmp_path)
    shell = os.environ.get("SQLITE3", "sqlite3")
    done = subprocess.run([shell, "demo.db"], stdin=open(ROOT / "sql" / "attack.sql"), cwd=tmp_path, capture_output=True,
                          text=True, encoding="utf-8")
    errors = [line for line in done.stderr.splitlines() if " near line " in line]
    assert done.returncode and len(errors) == 4
    for error, text in zip(errors, ("the rows of table 'star' are protected", "the rows of table 'star' are protected", "dp_diffuse: this connection is guarded",
                                    "dp_release: tier must be 'public'")):
        assert text in error
    assert not [line for line in done.stdout.splitlines() if re.fullmatch(r"[-\d.|]+", line)]
