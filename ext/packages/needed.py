"""Finds the files of GSL and libsodium that a program needs, as a linker would: by names.

Each file of both libraries is compiled once, by the compiler of this machine. A file is needed if it defines a name that the text
of the program contains, or a name that a needed file leaves undefined.
"""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import tempfile


def symbols(jobs, work, folder):
    """Returns {file: (names that it defines, names that it leaves undefined)} for jobs of (source, object, flags)."""
    def compile(job):
        number, (source, _, flags) = job
        output = f"{folder}/{number}.o"
        subprocess.run(["cc", "-O0", "-w", *flags, "-c", source, "-o", output], check=True, cwd=work)
        rows = [line.split() for line in subprocess.run(["nm", "-g", "--format=posix", output], check=True, capture_output=True, text=True)
                .stdout.splitlines()]
        return [sorted(row[0] for row in rows if (row[1] in "Uwv") == undefined) for undefined in (False, True)]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return {str(job[0]): names for job, names in zip(jobs, pool.map(compile, enumerate(jobs)))}


def index(jobs, work):
    """Returns symbols(jobs). They are kept in the file symbols.json of WORK as long as the sources stay the same."""
    cache = work / "symbols.json"
    stamps = {str(path): path.stat().st_mtime for path in [work / "gsl-config/config.h", *(job[0] for job in jobs)]}
    if cache.exists():
        kept = json.loads(cache.read_text())
        if kept["stamps"] == stamps:
            return kept["symbols"]
    with tempfile.TemporaryDirectory() as folder:
        found = symbols(jobs, work, folder)
    part = cache.with_name(cache.name + ".part")
    part.write_text(json.dumps({"stamps": stamps, "symbols": found}))
    part.replace(cache)
    return found


def closure(found, text):
    """Returns the files of `found` (see symbols) that a program with this text needs."""
    defined_by = collections.defaultdict(list)
    for source, (defined, _) in found.items():
        for name in defined:
            defined_by[name].append(source)
    needed, names = set(), set(re.findall(r"\w+", text))
    while more := {source for name in names for source in defined_by[name]} - needed:
        needed |= more
        names = {name for source in more for name in found[source][1]}
    return needed
