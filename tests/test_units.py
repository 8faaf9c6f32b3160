"""Runs the C unit tests of build/unit/ and reports each of their TAP lines as a test of its own."""

import os
import pathlib
import subprocess

import pytest

pytestmark = [pytest.mark.own, pytest.mark.alarm(1e-8)]

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
SOURCES = sorted(pathlib.Path(__file__).parent.glob("*/test_*.c"))


def tap_names(source):
    """Returns the names that a unit test registers with RUN(). The function reads them from the
    source."""
    text = source.read_text()
    return [part.split(")")[0] for part in text.split("RUN(")[1:]]


@pytest.fixture(scope="module")
def tap():
    """Returns a function run(name) that gives the exit status and the output of a unit test. Each
    program runs only once."""
    outputs = {}

    def run(name):
        if name not in outputs:
            done = subprocess.run([BUILD / "unit" / name], capture_output=True, text=True, timeout=900)
            outputs[name] = (done.returncode, done.stdout + done.stderr)
        return outputs[name]

    return run


@pytest.mark.parametrize(
    "binary,test",
    [pytest.param(s.stem.removeprefix("test_"), name, marks=pytest.mark.xdist_group(s.stem))
     for s in SOURCES for name in tap_names(s)],
)
def test_unit(tap, binary, test):
    code, output = tap(binary)
    assert f"\nok - {test}\n" in "\n" + output, f"exit {code}\n{output[-3000:]}"
