"""Runs each fuzz target once on every file of its corpus. The files are inputs that libFuzzer has found (make fuzz)."""

import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
CORPUS = pathlib.Path(__file__).parent / "corpus"


@pytest.mark.parametrize("target", sorted(path.name for path in CORPUS.iterdir()))
def test_corpus(target):
    files = sorted((CORPUS / target).iterdir())
    done = subprocess.run([BUILD / "replay" / target, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) == len(files) > 0
