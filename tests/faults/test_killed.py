"""Two processes make releases and are killed at random moments. There must never be more answers than charges."""

import os
import random
import time

from conftest import PATIENCE, connect, create, one, start

RELEASES = 1000 if os.environ.get("DIFFUSE_FAULTS") == "all" else 100

TELLER = """
    db = connect(sys.argv[1])
    for i in range(10**6):
        name = f"{sys.argv[2]}-{i}"
        print(name, repr(one(db, SUM, '{"weight":1e-5,"name":"%s"}' % name)), flush=True)
        if i % 3 == 0: print(name, repr(one(db, f"SELECT dp_diffuse('{name}', 'public')")), flush=True)
    """


def told(process):
    """Returns the (name, value) pairs that a process printed before it was killed."""
    output, errors = process.stdout.read(), process.stderr.read()  # communicate() would miss what readline() has read ahead
    assert process.wait(PATIENCE) == -9 and not errors, errors
    return [tuple(line.split()) for line in output.splitlines(keepends=True) if line.endswith("\n")]


def test_two_processes_killed_at_random_moments(path):
    create(path).close()
    moments, answers, lives = random.Random(), [], 0
    processes = []
    while len(answers) < RELEASES:
        while len(processes) < 2:
            processes.append(start(TELLER, path, lives))
            lives += 1
        process = processes.pop(0)
        first = process.stdout.readline()
        assert first, process.stderr.read()
        time.sleep(moments.uniform(0, 0.012))
        process.kill()
        answers += [tuple(first.split())] + told(process)
    for process in processes:
        process.kill()
        answers += told(process)
    db = connect(path)
    assert one(db, "SELECT dp_verify()") == "ok"
    charged = {name for (name,) in db.execute("SELECT DISTINCT release FROM dp_charge")}
    assert {name for name, _ in answers} <= charged
    releases = one(db, "SELECT count(*) FROM dp_release")
    assert len({name for name, _ in answers}) <= releases == len(charged) <= one(db, "SELECT count(*) FROM dp_charge")
    values = {(name, repr(value)) for name, value in db.execute("SELECT release, value FROM dp_value")}
    assert set(answers) <= values
    assert one(db, "SELECT count(*) FROM dp_release WHERE state = 'charged'") <= lives
