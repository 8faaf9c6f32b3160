"""Failures at every call (injector.c): memory runs out, the system gives no random bytes, file operations fail, the disk is
full, the process is killed, or the machine loses power. There must be no wrong answer, no value without a charge and no
lost charge. dp_verify() must return 'ok', the ledger must be usable, and no memory or file may be left over. `make test`
lets a part of the requests for random bytes fail, `make test-slow` a part of all calls, `make faults` each call, and
`make coverage` each of the extension's own allocations."""

import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
STEP = os.environ.get("DIFFUSE_FAULTS", "1").replace("all", "0")
pytestmark = pytest.mark.own

MODES = ["random-once"]
# Not in `make test`, because they seldom find what test_calls.py and tests/attacks/test_kill.py do not.
SLOW = ["memory-once", "io-once", "power", "kill", "memory-on", "own-once", "io-on", "full-once", "full-on"]


def inject(mode, tmp_path):
    step = "0" if mode == "random-once" or (mode == "own-once" and STEP != "1") else STEP
    done = subprocess.run([BUILD / "injector", tmp_path, mode, step], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return int(done.stdout.split()[-1])


@pytest.mark.parametrize("mode", MODES + [pytest.param(mode, marks=pytest.mark.slow) for mode in SLOW])
def test_survives(mode, tmp_path):
    failures = inject(mode, tmp_path)
    # The statements of injector.c ask the system for random bytes only a few dozen times, because one request is enough
    # for many draws.
    assert failures > (50 if mode == "random-once" else 100)


def test_a_clock_that_goes_backwards_changes_nothing(tmp_path):
    assert inject("clock", tmp_path) == 0


@pytest.mark.sample(3)
@pytest.mark.parametrize("change", [
    "UPDATE dp_budget SET spent_rate = 0 WHERE tier = 'a'", "UPDATE dp_release SET clip = 5 WHERE name = 'vector'",
    "UPDATE dp_publication SET rate = rate / 2", "UPDATE dp_value SET value = value + 1",
    "UPDATE dp_order SET allowed = 2 * allowed", "DELETE FROM dp_budget WHERE tier = 'b'"])
def test_want_of_memory_is_never_taken_for_agreement(change, tmp_path):
    done = subprocess.run([BUILD / "injector", tmp_path, "changed", change], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert int(done.stdout) > 20  # number of allocations that failed
