"""Memory that runs out at every possible moment (faults.c): no wrong answer, no answer without a
charge, books that verify, nothing left over."""

import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()

pytestmark = pytest.mark.plain  # links the static library without the sanitizers' runtime

# (statement, true answer or never, rows of dp_charge after a success)
STATEMENTS = [
    ("SELECT dp_sum('a', x, 100, u, 'new') FROM t", "10", 3),
    ("SELECT dp_sum('a', x, 2, u) FROM t", "6", 3),
    ("SELECT dp_sum('a', x, 3) FROM t", "never", 2),  # the ledger protects units
    ("SELECT dp_release('a', 'sum', 'SELECT x, u FROM t', '{\"clip\":100,\"name\":\"new\"}')", "10", 3),
    ("SELECT dp_release('a', 'sum', 'SELECT x FROM t', '{\"clip\":100}')", "never", 2),
    ("SELECT dp_ou_sum('a', x, 100, 1e6, u, '{\"centre\":3}') FROM t", "10", 3),
    ("SELECT dp_diffuse('old', 'c')", "10", 3),
    ("SELECT dp_sum('a', x, 100, u, '{\"name\":\"old\",\"refine\":true}') FROM t", "10", 3),
    ("SELECT dp_sum('a', x, 100, u, 'old') FROM t", "never", 2),  # without refine
    ("SELECT dp_sum('b', x, 99, u, 'old') FROM t", "never", 2),  # other parameters
    ("SELECT dp_plan('a', 'sum', 100) ->> '$.shrink'", "1", 2),
    ("SELECT dp_tier('d', 1e3, 1, 1e-6)", "0", 2),
    ("SELECT count(*) > 0 FROM dp_budget", "1", 2),
    ("SELECT length(dp_certificate()) > 1000", "1", 2),
    ("SELECT dp_exposure('a,b,c') ->> '$.delta'", "1e-6", 2),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults") / "faults"
    subprocess.run(["cc", str(HERE / "faults.c"), str(BUILD / "libdiffuse.a"), "-o", str(path), "-l:libsqlite3.a",
                    "-l:libgsl.a", "-l:libgslcblas.a", "-l:libmd.a", "-lm", "-lpthread", "-ldl"], check=True)
    return path


@pytest.mark.parametrize("mode", ["once", "on"])
@pytest.mark.parametrize("sql,exact,charges", STATEMENTS)
def test_memory_runs_out(program, mode, sql, exact, charges):
    done = subprocess.run([program, mode, sql, exact, str(charges)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 5
