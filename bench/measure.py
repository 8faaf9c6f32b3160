"""Functions that the benchmarks share. Every measurement is a process of its own (children.py), and rounds are
interleaved.

If BENCH_PREFIX is set, the program puts this command before each measured process, for example `taskset -c 1`.
"""

import json
import os
import pathlib
import platform
import shlex
import sqlite3
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
TABLES = BUILD / "bench"


def run(job, folder=None, syncs=False):
    """Returns the result of a job (children.py), or the reason why there is no result. `folder` is the folder of the
    job's libraries in build/."""
    job = dict(job)
    environment = dict(os.environ, BUILD=str(BUILD), PYTHONDONTWRITEBYTECODE="1",
                       OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1")
    if folder:
        if not (BUILD / folder).is_dir():
            return {"missing": f"not installed (build/{folder}: make deps-bench)"}
        environment["PYTHONPATH"] = str(BUILD / folder)
    command = shlex.split(os.environ.get("BENCH_PREFIX", ""))
    if syncs:
        command += ["env", f"LD_PRELOAD={TABLES / 'sync.so'}"]
    child = subprocess.run([*command, sys.executable, "-W", "ignore", str(HERE / "children.py")],
                           input=json.dumps(job), capture_output=True, text=True, env=environment)
    if child.returncode == 0:
        return json.loads(child.stdout.splitlines()[-1])
    reason = (child.stderr.strip().splitlines() or [f"status {child.returncode}"])[-1]
    if folder:
        return {"missing": reason[:120]}
    raise SystemExit(f"{job}: {child.stderr}")


def interleave(jobs, rounds):
    """Runs every job once in each round, and returns {name: [one result for each round]}. A job is (name, arguments
    of run()). If a job's system is not installed, the function does not run the job again."""
    results = {name: [] for name, _ in jobs}
    for number in range(rounds):
        for name, arguments in jobs:
            if not any("missing" in result for result in results[name]):
                results[name].append(run(**arguments))
        print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return results


def median(results, field="cpu"):
    return statistics.median(result[field] for result in results)


def ratio(results, base, field="cpu"):
    """Returns the median of the ratios result/base over all rounds."""
    return statistics.median(a[field] / b[field] for a, b in zip(results, base))


def machine():
    """Describes the machine in general terms, without its name."""
    def from_file(path, field):
        try:
            for line in pathlib.Path(path).read_text().splitlines():
                name, _, value = line.replace("=", ":", 1).partition(":")
                if name.strip() == field:
                    return value.strip().strip('"')
        except OSError:
            pass
        return None

    memory = from_file("/proc/meminfo", "MemTotal")
    version, prefix = run({"call": "version"})["diffuse"], os.environ.get("BENCH_PREFIX")
    system = platform.system()
    if system == "Linux":
        kernel = platform.release().split("-")[0]
        system = f"{from_file('/etc/os-release', 'PRETTY_NAME') or system}, Linux {kernel}"
    return [f"{os.cpu_count()} cores of {from_file('/proc/cpuinfo', 'model name') or platform.machine()}"
            + "".join(f", {name} {size}" for name, size in caches().items())
            + (f"; {round(int(memory.split()[0]) / 2**20)} GiB of memory" if memory else ""),
            system,
            f"SQLite {sqlite3.sqlite_version} with its default settings (page cache 2 MB),"
            f" Python {platform.python_version()}",
            f"diffuse {version}{commit()}",
            *([f"each measured process was started by `{prefix}`, beside other work"] if prefix else [])]


def commit():
    """Returns the commit that is measured and its date, if this is a clone."""
    done = subprocess.run(["git", "log", "-1", "--format=%h of %cs"], cwd=HERE, capture_output=True, text=True)
    return f", commit {done.stdout.strip()}" if done.returncode == 0 and done.stdout else ""


def caches():
    """Returns the caches of the first core, such as {'L2': '1024K', ...}, if the system tells their sizes."""
    found = {}
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind = ((index / name).read_text().strip() for name in ("level", "type"))
        if kind != "Instruction":
            found[f"L{level}"] = (index / "size").read_text().strip()
    return found


def number(x):
    """Formats a number with three digits."""
    if x >= 100:
        return f"{x:,.0f}"
    return f"{x:.{2 if x >= 10 else 3}g}" if x < 1 else f"{x:.{2 if x < 10 else 1}f}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
