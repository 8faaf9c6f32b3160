"""Keeps sql/papers.md and sql/errata.md correct: every example is run and compared with the output printed under it, and every
function of the papers is described."""

import pathlib
import re
import sqlite3

import pytest

from paper_truth import connect

SQL = pathlib.Path(__file__).resolve().parents[2] / "sql"
PAGES = ("papers.md", "errata.md")


def statements(page):
    """Returns (statement, printed rows) of all sql blocks of a page, in order."""
    found = []
    for block in re.findall(r"```sql\n(.*?)```", (SQL / page).read_text(), re.S):
        statement = ""
        for line in block.splitlines():
            if line.startswith("-- ") and found:
                found[-1][1].append(line[3:])
                continue
            statement += line + "\n"
            if sqlite3.complete_statement(statement):
                found.append((statement, []))
                statement = ""
        assert not statement.strip(), statement
    return found


def shown(value):
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def run(db, statement):
    try:
        return ["|".join(map(shown, row)) for row in db.execute(statement).fetchall()]
    except sqlite3.OperationalError as error:
        return [f"Error: {error}"]


@pytest.mark.parametrize("page", PAGES)
def test_examples(page):
    db = connect()
    found = statements(page)
    assert len(found) > 8
    for statement, printed in found:
        assert run(db, statement) == printed, statement


def described():
    """Returns (name, arguments) for each function that the page describes: in the first cell of a row, or at the start of a line."""
    return re.findall(r"^(?:\| )?`(dp_\w+)\(([^`]*)\)`", (SQL / "papers.md").read_text(), re.M)


def test_every_function_is_described():
    names = [name for name, _ in described()]
    assert len(names) == len(set(names))
    assert set(names) == pure_functions()


def test_rows_name_the_arguments():
    """SQLite has each function with the number of arguments on the page, with and without the optional arguments."""
    known = {(name, count) for name, count in connect().execute("SELECT name, narg FROM pragma_function_list")}
    for name, arguments in described():
        if name == "dp_amplify":
            continue
        required, _, optional = arguments.partition("[")
        least = len(required.rstrip(" ,").split(","))
        assert (name, least) in known
        most = least + optional.count(",")
        assert (name, most) in known and (name, most + 1) not in known


# ---- the table of items ----------------------------------------------------------------------------


def items():
    """Returns the rows of the table in ext/papers/README.md: (item, statement, function or mechanism, tests, errata)."""
    page = (SQL.parent / "ext" / "papers" / "README.md").read_text().split("\n## ")[1]
    assert page.startswith("Every item of both papers")
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in page.splitlines() if line.startswith("| ")]
    assert rows[0] == ["item", "what it says", "function or mechanism", "test", "errata"]
    assert all(len(row) == 5 for row in rows), rows
    return rows[1:]


def pure_functions():
    """Returns the names of the functions of the papers, which it reads from the sources."""
    names = {"dp_amplify"}
    for file in (SQL.parent / "ext" / "papers").glob("*.c"):
        names.update(re.findall(r'"(dp_\w+)", \d', file.read_text()))
    return names


def test_the_table_is_complete():
    rows = items()
    assert len({row[0] + row[1] for row in rows}) == len(rows)
    named = set(re.findall(r"`(dp_\w+)`", " ".join(row[2] for row in rows)))
    assert pure_functions() <= named, pure_functions() - named
    known = {name for name, in connect().execute("SELECT name FROM pragma_function_list")}
    known |= {name for name, in connect().execute("SELECT name FROM pragma_module_list")}
    assert named <= known, named - known
    found = [row[0] for row in rows]
    for paper, kind, last in (("B", "Theorem", 8), ("B", "Example", 4), ("A", "Theorem", 5), ("A", "Lemma", 4),
                              ("A", "Figure", 3)):
        numbers = {int(n) for item in found for n in re.findall(rf"^\[{paper}\] {kind} (\d+)", item)}
        missing = {*range(1, last + 1)} - numbers
        assert missing <= ({3, 7} if (paper, kind) == ("B", "Theorem") else set()), (paper, kind, missing)
    for item in ("[B] Lemma 3, equation (6)", "[B] Corollary 7", "[B] Definition 1", "[B] Figure 1", "[B] Table 1",
                 "[B] Algorithm 1", "[A] Algorithm 1", "[A] Proposition 1", "[B] Lemma 9", "[B] Lemma 18"):
        assert item in found, item


@pytest.mark.parametrize("row", items(), ids=lambda row: f"{row[0]}: {row[1]}")
def test_a_row_names_what_exists(row):
    item, _, mechanism, tests, errata = row
    functions = re.findall(r"`(dp_\w+)`", mechanism)
    pairs = re.findall(r"`(\w+\.py)::(\w+)`", tests)
    assert tests.count("`") == 2 * len(pairs)
    assert pairs or mechanism.startswith("no number: "), item
    assert functions or "mechanism" in mechanism or mechanism.startswith("no number: "), item
    texts = {}
    for file, name in pairs:
        texts[file] = next((SQL.parent / "tests").glob(f"*/{file}")).read_text()
        assert re.search(rf"^def {name}\(", texts[file], re.M), name
    for function in functions:  # one of the test files in the row calls each function, by its name or as dp_{...}
        short = re.sub("^dp_(kernel_)?", "", function)
        assert any(re.search(rf"\b(dp_(kernel_)?)?{short}\b", text) for text in texts.values()), function
    helpers = [(SQL.parent / "tests" / "helpers" / f"{name}.py").read_text()
               for text in texts.values() for name in re.findall(r"^from (\w+_helpers) import", text, re.M)]
    for kind in re.findall(r"of kind `('\w+')`", mechanism):
        assert any(kind in text for text in [*texts.values(), *helpers]), kind
    numbers = re.findall(r"E\d+", errata)
    assert errata == ", ".join(numbers)
    errors = (SQL / "errata.md").read_text()
    for number in numbers:
        assert f"**{number}. {item[:3]}" in errors, number
    for figure in re.findall(r"`(\w+)\.svg`", mechanism):
        assert f'"{figure}"' in (SQL.parent / "bench" / "figures.py").read_text()


def test_every_erratum_is_in_the_table():
    entries = re.findall(r"^\*\*(E\d+)\.", (SQL / "errata.md").read_text(), re.M)
    assert set(entries) == {number for row in items() for number in re.findall(r"E\d+", row[4])}


if __name__ == "__main__":  # run as a program, this file prints a page with the output of its statements, for people who edit the page
    import sys

    db, text = connect(), (SQL / sys.argv[1]).read_text()
    for statement, _ in statements(sys.argv[1]):
        rows = "".join(f"-- {row}\n" for row in run(db, statement))
        text = re.sub(re.escape(statement) + r"(-- .*\n)*", lambda _: statement + rows, text, count=1)
    (SQL / sys.argv[1]).write_text(text)
