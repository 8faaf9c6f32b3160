"""Memory that runs out, random bytes that are not given, files that fail, disks that fill, kill -9 and loss of power at every call
(injector.c): no wrong answer, no value without a charge, no lost charge, books that verify, a ledger that
can be used, nothing left over. make test takes every n-th call, make faults each, and make coverage each of the
extension's own allocations."""

import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
STEP = os.environ.get("DIFFUSE_FAULTS", "1").replace("all", "0")
MODES = ["memory-once", "memory-on", "own-once", "random-once", "io-once", "io-on", "full-once", "full-on", "kill", "power"]


def inject(mode, tmp_path):
    step = "0" if mode == "random-once" or (mode == "own-once" and STEP != "1") else STEP
    done = subprocess.run([BUILD / "injector", tmp_path, mode, step], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return int(done.stdout.split()[-1])


@pytest.mark.parametrize("mode", MODES)
def test_survives(mode, tmp_path):
    failures = inject(mode, tmp_path)
    # A story asks the system for randomness only some dozens of times: one request serves many draws.
    assert failures > (50 if mode == "random-once" else 100)


def test_a_clock_that_goes_backwards_changes_nothing(tmp_path):
    assert inject("clock", tmp_path) == 0


@pytest.mark.parametrize("change", [
    "UPDATE dp_budget SET spent_rate = 0 WHERE tier = 'a'", "UPDATE dp_release SET clip = 5 WHERE name = 'vector'",
    "UPDATE dp_publication SET rate = rate / 2", "UPDATE dp_value SET value = value + 1",
    "UPDATE dp_order SET allowed = 2 * allowed", "DELETE FROM dp_budget WHERE tier = 'b'"])
def test_want_of_memory_is_never_taken_for_agreement(change, tmp_path):
    done = subprocess.run([BUILD / "injector", tmp_path, "changed", change], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert int(done.stdout) > 20  # allocations that failed
