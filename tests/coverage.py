"""coverage.py BUILD [LINES [BRANCHES]]: adds up the counts of gcov.

The program prints how many lines and branches of each file of ext/ were reached, and then the lines that were not
reached. If a file was compiled twice (for the extension and for the static library), its counts are added up. The
counts of a header are added up over all files that include the header. A branch is one of the two directions of a
conditional jump.
"""

import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile


def reports(build):
    """Yields the report of gcov on each object file, parsed from JSON."""
    counters = sorted(path.resolve() for path in pathlib.Path(build).rglob("*.gcno"))
    for counter in counters:
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["gcov", "-b", "--json-format", str(counter)], cwd=directory, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for path in pathlib.Path(directory).glob("*.gcov.json.gz"):
                yield json.loads(gzip.decompress(path.read_bytes()))


def collect(build):
    """Returns two dictionaries of counts: {file: {line: count}} and {file: {(line, number of branches, index):
    count}}."""
    lines = collections.defaultdict(collections.Counter)
    branches = collections.defaultdict(collections.Counter)
    for report in reports(build):
        for file in report["files"]:
            name = file["file"]
            if not name.startswith("ext/"):
                continue
            for line in file["lines"]:
                lines[name][line["line_number"]] += line["count"]
                for i, branch in enumerate(line["branches"]):
                    branches[name][line["line_number"], len(line["branches"]), i] += branch["count"]
    return lines, branches


def ranges(numbers):
    """Writes a list of numbers as ranges: [1, 2, 3, 7] becomes '1-3, 7'."""
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def share(counts):
    """Returns how many counts are above 0, how many counts there are, and the percentage."""
    reached = sum(count > 0 for count in counts)
    return reached, len(counts), 100 * reached / max(1, len(counts))


def main(build, line_goal=95, branch_goal=90):
    lines, branches = collect(build)
    shares = {"lines": share([c for f in lines.values() for c in f.values()]),
              "branches": share([c for f in branches.values() for c in f.values()])}
    for name in sorted(lines):
        reached = share(lines[name].values()), share(branches[name].values())
        print("%-34s lines %4d of %4d %6.1f%%   branches %4d of %4d %6.1f%%" % (name, *reached[0], *reached[1]))
    for name in sorted(lines):
        missing = [line for line, count in lines[name].items() if not count]
        if missing:
            print(f"{name}: lines {ranges(missing)}")
    for name in sorted(branches):
        missing = {line for (line, _, _), count in branches[name].items() if not count and lines[name][line]}
        if missing:
            print(f"{name}: a branch in {ranges(missing)}")
    for what, (reached, total, percent) in shares.items():
        print(f"{what}: {reached} of {total}, {percent:.2f}%")
    return 0 if shares["lines"][2] >= float(line_goal) and shares["branches"][2] >= float(branch_goal) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
