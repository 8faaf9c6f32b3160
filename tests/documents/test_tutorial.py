"""Runs sql/tutorial.md and sql/series.md from the first command to the last, and compares every output that a page shows with what the
shell prints.

The ```sh blocks of a page run in sh, and each ```sql block runs in a sqlite3 shell of its own, all in one folder. The extension is
build/fixed.so, whose noise and clock are the same in every run. Therefore the outputs must be the same to the last character. Lines
that begin with "-- " or "# " under a command are its output. After a change that moves the noise, run

    UPDATE=1 python3 -m pytest tests/documents/test_tutorial.py

to write the new outputs into the pages, and read them before you commit them.
"""

import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import pytest

from conftest import library

pytestmark = pytest.mark.xdist_group("tutorial")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
PAGES = ROOT / "sql"
SHELL = os.environ.get("SQLITE3", "sqlite3")
NOW = 1767603600  # 2026-01-05 09:00 UTC
MARK = "----- end of statement -----"
# Every process gets another seed.
WRAPPER = f'FIXED_SEED=0; sqlite3() {{ FIXED_SEED=$((FIXED_SEED + 1)); FIXED_SEED=$BLOCK$FIXED_SEED command {SHELL} "$@" 2>&1; }}\n'


def blocks(page):
    """Returns (language, lines) for each block that is run, in order. The lines between two blocks form a block with
    the language None."""
    found, language = [(None, [])], None
    for line in (PAGES / page).read_text().splitlines():
        if line.startswith("```"):
            opening = line[3:] if language is None else None
            language = opening
            if opening is None:
                found.append((None, []))
                found[-1][1].append(line)
            else:
                found[-1][1].append(line)
                found.append((opening, []))
        else:
            found[-1][1].append(line)
    return found


def commands(lines, marker, is_complete):
    """Divides the lines of a block into (command lines, expected output lines)."""
    found, text = [], []
    for line in lines:
        if line.startswith(marker) and not text:
            found[-1][1].append(line[len(marker):])
            continue
        text.append(line)
        if is_complete("\n".join(text)):
            found.append((text, []))
            text = []
    assert not text, text
    return found


def is_complete_sql(text):
    return text.startswith(".") or sqlite3.complete_statement(text)


def is_complete_shell(text):
    """Returns whether sh would run these lines: an open loop, here-document or backslash waits for more."""
    if text.endswith("\\") or ("<<'END'" in text and not text.endswith("\nEND")):
        return False
    return not re.match(r"for .*; do", text) or text.endswith("\ndone")


def run_sql(found, folder, environment):
    script = "".join("\n".join(text) + f"\n.print {MARK}\n" for text, _ in found)
    done = subprocess.run([SHELL, "hospital.db"], input=script, cwd=folder, env=environment, text=True, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    outputs = done.stdout.split(MARK + "\n")
    assert len(outputs) == len(found) + 1 and not outputs[-1], done.stdout
    return outputs[:-1]


def run_shell(found, folder, environment):
    outputs = []
    for i, (text, _) in enumerate(found):
        done = subprocess.run(["sh", "-e", "-c", WRAPPER + "\n".join(text)], cwd=folder, text=True, encoding="utf-8",
                              env={**environment, "BLOCK": f"{environment['FIXED_SEED']}{i}"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        outputs.append(done.stdout)
    return outputs


def plain(output):
    """Returns the lines of an output. The words before an error message differ between versions of the shell, so they
    are replaced by "Error: "."""
    return [re.sub(r"^(Runtime error|Parse error|Error:)( near line \d+)?:? ", "Error: ", line).removesuffix(" (19)").removesuffix(" (1)")
            for line in output.splitlines()]


LANGUAGES = {"sql": ("-- ", is_complete_sql, run_sql), "sh": ("# ", is_complete_shell, run_shell)}


def play(folder, page):
    """Runs a page in a folder. Returns the folder and a list of blocks. A block is (language, lines, commands). A command is (lines,
    output in the page, actual output)."""
    (folder / "build").mkdir()
    shutil.copy(BUILD / "fixed.so", folder / "build" / "diffuse.so")
    shutil.copytree(ROOT / "fixtures", folder / "fixtures")
    waits = library(folder, "waits.c")  # the waits of a grant take no time
    results = []
    for number, (language, lines) in enumerate(blocks(page)):
        if language not in LANGUAGES:
            results.append((language, lines, []))
            continue
        marker, is_complete, run = LANGUAGES[language]
        found = commands(lines, marker, is_complete)
        environment = {**os.environ, "FIXED_SEED": str(number), "FIXED_NOW": str(NOW), "LC_ALL": "C.UTF-8",
                       "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {waits}"}
        outputs = run(found, folder, environment)
        results.append((language, lines, [(text, shown, plain(output)) for (text, shown), output in zip(found, outputs)]))
    if os.environ.get("UPDATE"):
        (PAGES / page).write_text("\n".join(line for result in results for line in rewritten(*result)) + "\n")
    return folder, results


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return play(tmp_path_factory.mktemp("tutorial"), "tutorial.md")


@pytest.fixture(scope="module")
def played_series(tmp_path_factory):
    return play(tmp_path_factory.mktemp("series"), "series.md")


def rewritten(language, lines, ran):
    if not ran:
        return lines
    marker = LANGUAGES[language][0]
    return [line for text, shown, printed in ran for line in text + ([marker + line for line in printed] if shown else [])]


@pytest.mark.parametrize("name, least", [("played", 26), ("played_series", 14)])
def test_every_output_of_the_page(name, least, request):
    _, results = request.getfixturevalue(name)
    count = 0
    for _, _, ran in results:
        for text, shown, printed in ran:
            if shown:
                assert printed == shown, "\n".join(text)
                count += 1
            elif text[0].startswith(("SELECT dp", "sqlite3")) and not text[0].endswith("fixtures/hospital.sql"):
                raise AssertionError(f"the page shows no output of: {text}")
    assert count >= least


def test_the_reports_that_are_handed_over(played):
    """Each page shows the year's 36 releases at its own tier and the tiers outside it, and names no inner tier."""
    folder, _ = played
    tiers = ["hospital", "region", "public"]
    for i, tier in enumerate(tiers):
        page = (folder / f"{tier}.html").read_text(encoding="utf-8")
        (block,) = re.findall(r'<script type="application/json" id="dp_value">(.*?)</script>', page, re.S)
        db = sqlite3.connect(":memory:")
        rows = db.execute("SELECT value ->> 'release', value ->> 'tier' FROM json_each(?)", (block,)).fetchall()
        assert {name for name, _ in rows} == {f"{what} 2025-{month:02}" for what in ("visits", "stay in days", "haemoglobin") for month in range(1, 13)}
        assert {shown for _, shown in rows} == set(tiers[i:])
        assert len(rows) == 12 * (7 * 4 + 6 + 1) * (3 - i)
        db.close()


def test_the_figures_are_near_the_truth(played):
    """A count may be too low, because a patient counts at most about twice. Any further difference of more than 60 beside the noise of
    the hospital's cells, whose standard deviation is about 12, would be an error."""
    folder, _ = played
    with sqlite3.connect(folder / "hospital.db") as db, sqlite3.connect(folder / "hospital.db-ledger") as ledger:
        truth = dict(db.execute("""SELECT substr(admitted, 1, 7) || ward || age_band.name, count(*) FROM visit
                                   JOIN patient ON patient.id = patient_id
                                   JOIN age_band ON strftime('%Y', admitted) - born BETWEEN low AND high
                                   WHERE ward IS NOT NULL GROUP BY 1"""))
        shown = ledger.execute("""SELECT substr(release, 8) || (key ->> 'ward') || (key ->> 'age'), value FROM dp_value
                                  WHERE tier = 'hospital' AND release LIKE 'visits%' AND key LIKE '%,%'""").fetchall()
    assert len(shown) == 216
    off = [value - truth[key] for key, value in shown]
    assert max(map(abs, off)) < 60 and 100 < sum(d * d for d in off) / len(off) < 250
