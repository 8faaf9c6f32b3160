"""Runs clang-tidy (.clang-tidy) and cppcheck on ext/: lint.py BUILD. Fails where they find what is not known.

Known are findings that are wrong, or right and meant, each with the reason. A file and a check make an entry,
not a line: it must be looked at again when another one of the kind appears, hence the number of them.
"""

import collections
import pathlib
import re
import subprocess
import sys

KNOWN = {
    # (file, check): (how many, why)
    ("ext/functions/numbers.c", "bugprone-implicit-widening-of-multiplication-result"): (2, "8 * 4096 at most"),
    ("ext/ledger/charge.c", "bugprone-implicit-widening-of-multiplication-result"): (1, "a few tiers"),
    ("ext/ledger/open.c", "bugprone-implicit-widening-of-multiplication-result"): (1, "5 ms in nanoseconds"),
    ("ext/release/tree.c", "bugprone-implicit-widening-of-multiplication-result"): (1, "65536 leaves at most"),
    ("ext/functions/plans.c", "bugprone-branch-clone"): (1, "what is looked at first is said first"),
    ("ext/functions/tables.c", "bugprone-sizeof-expression"): (1, "an array of pointers is meant"),
    ("ext/release/table.c", "bugprone-sizeof-expression"): (3, "arrays of pointers are meant"),
    ("ext/release/clip.c", "cert-flp30-c"): (1, "the loop does not count: it ends when the vector fits"),
    ("ext/functions/aggregate.h", "clang-analyzer-optin.performance.Padding"): (1, "the order is for readers"),
    ("ext/functions/request.c", "clang-analyzer-optin.performance.Padding"): (1, "the order is for readers"),
    ("ext/functions/channels.c", "clang-analyzer-core.NullDereference"): (1, "take_cell() has made room"),
    ("ext/functions/kernels.c", "clang-analyzer-core.NonNullParamChecker"): (1, "the caller has refused null bytes"),
    ("ext/functions/planning.c", "clang-analyzer-core.CallAndMessage"): (1, "registered with two arguments"),
    ("ext/functions/publish.c", "clang-analyzer-core.NullDereference"): (1, "`going` is 0 without clocks"),
    ("ext/functions/rows.c", "clang-analyzer-unix.Malloc"): (1, "&sum where there are no vectors"),
    ("ext/functions/models.c", "clang-analyzer-core.UndefinedBinaryOperatorResult"): (1, "there are dim coefficients"),
    ("ext/ledger/charge.c", "clang-analyzer-core.UndefinedBinaryOperatorResult"): (3, "budget_read() fails or fills"),
    ("ext/ledger/statements.c", "clang-analyzer-valist.Uninitialized"): (4, "va_list as a parameter (LLVM 40656)"),
    ("ext/ledger/store.c", "clang-analyzer-core.NullDereference"): (1, "make_room() fails or makes room"),
    ("ext/release/table.c", "clang-analyzer-core.uninitialized.Assign"): (1, "one spare more than chunks, or failed"),
    ("ext/release/vectors.c", "clang-analyzer-core.uninitialized.ArraySubscript"): (1, "count records are there"),
    ("ext/functions/aggregates.c", "nullPointerRedundantCheck"): (1, "checked_row() refuses a null one"),
    ("ext/functions/kernels.c", "incorrectLogicOperator"): (1, "cppcheck cannot read 0x1p63"),
    ("ext/functions/rows.c", "incorrectLogicOperator"): (1, "cppcheck cannot read 0x1p63"),
    ("ext/release/identity.c", "incorrectLogicOperator"): (1, "cppcheck cannot read 0x1p63"),
    ("ext/functions/models.c", "invalidPointerCast"): (1, "a member by its offset"),
    ("ext/functions/request.c", "invalidPointerCast"): (1, "a member by its offset"),
}

CLANG_TIDY = re.compile(r"(?:.*/)?(ext/[^:]+):(\d+):\d+: (?:warning|error): (.*) \[([^],]+)")
CPPCHECK = re.compile(r"(ext/[^:]+):(\d+):\d+: \w+: (.*) \[(\w+)\]$")


def findings(command, pattern):
    """Each finding once: (file, check) and the line as printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    lines = {match.groups(): line for line in (done.stdout + done.stderr).splitlines() if (match := pattern.match(line))}
    return [((file, check), line) for (file, _, _, check), line in lines.items()]


def main(build):
    files = sorted(map(str, pathlib.Path("ext").rglob("*.c")))
    defines = ["-std=c11", "-Iext", f"-I{build}", "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L"]
    found = findings(["clang-tidy", "--quiet", *files, "--", *defines], CLANG_TIDY)
    found += findings(["cppcheck", "--std=c11", "--enable=warning,performance,portability", "--inconclusive", "--quiet",
                       "-Iext", f"-I{build}", "ext"], CPPCHECK)
    counts = collections.Counter(what for what, _ in found)
    new = [line for what, line in found if counts[what] > KNOWN.get(what, (0, ""))[0]]
    print("\n".join(new) if new else f"{len(found)} findings, all known")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
