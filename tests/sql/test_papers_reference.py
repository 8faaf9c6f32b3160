"""sql/papers.md and sql/errata.md cannot drift: every example is run and compared with what is
printed under it, and every function of the papers has its section."""

import pathlib
import re
import sqlite3

import pytest

from paper_truth import connect

SQL = pathlib.Path(__file__).resolve().parents[2] / "sql"
PAGES = ("papers.md", "errata.md")


def statements(page):
    """(statement, printed rows) of all sql blocks of a page, in order."""
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


def test_every_function_is_described():
    headings = re.findall(r"^### (dp_\w+)", (SQL / "papers.md").read_text(), re.M)
    assert len(headings) == len(set(headings))
    source = SQL.parent / "ext" / "functions"
    names = re.findall(r'FUNCTION\("(dp_\w+)"', (source / "papers.c").read_text())
    names += re.findall(r'^    \{"(dp_kernel_\w+)"', (source / "kernels.c").read_text(), re.M)
    names += re.findall(r'^    \{"(dp_iteration_\w+)"', (source / "paths.c").read_text(), re.M)
    assert set(headings) == {*names, "dp_amplify", "dp_diffusion_rate"}


def test_headings_name_the_arguments():
    """Each heading's argument count is one that SQLite knows, with and without the optional ones."""
    known = {(name, count) for name, count in connect().execute("SELECT name, narg FROM pragma_function_list")}
    for name, arguments in re.findall(r"^### (dp_\w+)\((.*)\)", (SQL / "papers.md").read_text(), re.M):
        if name == "dp_amplify":
            continue
        required, _, optional = arguments.partition("[")
        least = len(required.rstrip(" ,").split(","))
        assert (name, least) in known
        most = least + optional.count(",")
        assert (name, most) in known and (name, most + 1) not in known


if __name__ == "__main__":  # prints a page with its rows filled in, for whoever edits it
    import sys

    db, text = connect(), (SQL / sys.argv[1]).read_text()
    for statement, _ in statements(sys.argv[1]):
        rows = "".join(f"-- {row}\n" for row in run(db, statement))
        text = re.sub(re.escape(statement) + r"(-- .*\n)*", lambda _: statement + rows, text, count=1)
    (SQL / sys.argv[1]).write_text(text)
