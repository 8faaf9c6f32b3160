"""Runs clang-tidy (.clang-tidy) and cppcheck on ext/ and looks for unused includes: lint.py BUILD. Fails on findings that are not
listed below.

The list has the findings that are wrong and those that are right but intended, each with a reason. An entry names a file and a
check, but no line. It also has the number of these findings in the file, so that a further finding makes this program fail and
somebody looks at the entry again.
"""

import collections
import functools
import pathlib
import re
import subprocess
import sys

KNOWN = {
    # (file, check): (number of findings, reason)
    ("ext/base/sql_text.c", "incorrectLogicOperator"): (1, "cppcheck cannot read 0x1p63"),
    ("ext/base/sql_text.c", "bugprone-implicit-widening-of-multiplication-result"): (2, "8 * 4096 at most"),
    ("ext/categories/markov_kernel.c", "clang-analyzer-core.NullDereference"): (1, "take_cell() has made room"),
    ("ext/categories/markov_kernel.c", "memleak"): (1, "the chain owns it"),
    ("ext/categories/responses.c", "clang-analyzer-core.NullDereference"): (1, "not reached without them"),
    ("ext/categories/mix.c", "clang-analyzer-core.NullDereference"): (1, "not reached without reports"),
    ("ext/diffuse.c", "bugprone-sizeof-expression"): (2, "arrays of pointers are meant"),
    ("ext/functions/batch.c", "clang-analyzer-core.NullDereference"): (2, "there is a publication for each item"),
    ("ext/functions/guard.c", "bugprone-sizeof-expression"): (1, "an array of pointers is meant"),
    ("ext/functions/options.c", "invalidPointerCast"): (1, "a member by its offset"),
    ("ext/functions/shards.c", "clang-analyzer-core.NullDereference"): (2, "the caller has found the kind"),
    ("ext/functions/rates.c", "clang-analyzer-core.CallAndMessage"): (1, "registered with two arguments"),
    ("ext/functions/plans.c", "bugprone-branch-clone"): (1, "each condition has a sentence of its own"),
    ("ext/functions/policies.c", "clang-analyzer-core.CallAndMessage"): (1, "there is an argument for each parameter"),
    ("ext/ledger/open.c", "bugprone-implicit-widening-of-multiplication-result"): (1, "5 ms in nanoseconds"),
    ("ext/ledger/open.c", "clang-analyzer-core.NonNullParamChecker"): (2, "not reached without both"),
    ("ext/ledger/policy.c", "clang-analyzer-core.NullDereference"): (3, "`going` is 0 without a declaration"),
    ("ext/ledger/connection.c", "clang-analyzer-valist.Uninitialized"): (3, "va_list as a parameter (LLVM 40656)"),
    ("ext/ledger/store.c", "clang-analyzer-core.NullDereference"): (2, "make_room() fails or makes room"),
    ("ext/ledger/verify.c", "clang-analyzer-core.NullDereference"): (2, "`going` is 0 without recounts"),
    ("ext/math/mixing.c", "cert-flp30-c"): (1, "a double that counts whole steps"),
    ("ext/math/mixing.c", "clang-analyzer-core.DivideZero"): (1, "no pair where there are no rows"),
    ("ext/math/mixing.c", "clang-analyzer-security.FloatLoopCounter"): (1, "a double that counts whole steps"),
    ("ext/math/mixing.c", "nullPointerArithmeticRedundantCheck"): (3, "not used where it is null"),
    ("ext/math/pure_mechanisms.c", "invalidFunctionArg"): (1, "there is at least one term"),
    ("ext/mechanism/cross_tables.c", "clang-analyzer-core.UndefinedBinaryOperatorResult"): (1, "minimise() sets all shares"),
    ("ext/models/model_functions.c", "clang-analyzer-core.UndefinedBinaryOperatorResult"): (1, "there are dim coefficients"),
    ("ext/models/model.c", "clang-analyzer-core.UndefinedBinaryOperatorResult"): (1, "there are dim coefficients"),
    ("ext/models/model.c", "invalidPointerCast"): (1, "a member by its offset"),
    ("ext/models/model_functions.c", "cert-flp30-c"): (1, "a double that counts rows"),
    ("ext/models/sgd.c", "cert-flp30-c"): (4, "a double that counts rows"),
    ("ext/models/sgd.c", "clang-analyzer-core.UndefinedBinaryOperatorResult"): (2, "worst_ratio() sets the clock"),
    ("ext/models/sgd.c", "clang-analyzer-security.FloatLoopCounter"): (4, "a double that counts rows"),
    ("ext/noise/discrete_laplace.c", "bugprone-implicit-widening-of-multiplication-result"): (3, "scales are below 2^31"),
    ("ext/papers/kernels.c", "clang-analyzer-core.NonNullParamChecker"): (1, "the caller has refused null bytes"),
    ("ext/papers/kernels.c", "clang-analyzer-core.uninitialized.Assign"): (1, "SQLite zeroes the context"),
    ("ext/papers/kernels.c", "incorrectLogicOperator"): (1, "cppcheck cannot read 0x1p63"),
    ("ext/papers/kernels.c", "invalidPointerCast"): (1, "one allocation for numbers and places"),
    ("ext/papers/kernels.c", "nullPointerArithmeticRedundantCheck"): (1, "not used where it is null"),
    ("ext/query/evaluator.c", "bugprone-sizeof-expression"): (1, "an array of pointers is meant"),
    ("ext/query/evaluator.c", "clang-analyzer-core.NullDereference"): (1, "evaluator_open() has made it or failed"),
    ("ext/query/foreign_keys.c", "clang-analyzer-core.NullDereference"): (2, "`going` is 0 without room"),
    ("ext/query/row_reader.c", "clang-analyzer-unix.Malloc"): (1, "&sum where there are no vectors"),
    ("ext/query/row_reader.c", "incorrectLogicOperator"): (1, "cppcheck cannot read 0x1p63"),
    ("ext/query/row_loop.c", "arrayIndexOutOfBoundsCond"): (1, "callers name a range"),
    ("ext/release/kinds.h", "clang-analyzer-optin.performance.Padding"): (1, "the order is for readers"),
    ("ext/release/release.h", "clang-analyzer-optin.performance.Padding"): (1, "the order is for readers"),
    ("ext/release/noise_path.c", "clang-analyzer-core.NullDereference"): (1, "`going` is 0 without clocks"),
    ("ext/release/periods.c", "clang-analyzer-core.NonNullParamChecker"): (1, "`going` is 0 without a list"),
    ("ext/release/periods.c", "clang-analyzer-core.NullDereference"): (4, "`going` is 0 without periods"),
    ("ext/release/series.c", "clang-analyzer-core.NullDereference"): (1, "`done` is 0 without keys"),
    ("ext/sums/identity.c", "bugprone-implicit-widening-of-multiplication-result"): (2, "8 * 16 at most"),
    ("ext/sums/identity.c", "incorrectLogicOperator"): (1, "cppcheck cannot read 0x1p63"),
    ("ext/sums/layout.c", "cert-flp30-c"): (2, "powers of 64; a loop that does not count: it ends when the vector fits"),
    ("ext/mechanism/quantiles.c", "bugprone-implicit-widening-of-multiplication-result"): (1, "65536 leaves at most"),
    ("ext/mechanism/quantiles.c", "clang-analyzer-optin.portability.UnixAPI"): (2, "a tree has leaves"),
    ("ext/sums/unit_table.c", "bugprone-sizeof-expression"): (3, "arrays of pointers are meant"),
    ("ext/sums/unit_table.c", "clang-analyzer-core.uninitialized.Assign"): (1, "one spare more than chunks, or failed"),
    ("ext/sums/cross_sums.c", "bugprone-sizeof-expression"): (1, "an array of pointers is meant"),
    ("ext/sums/cross_sums.c", "cert-flp30-c"): (1, "the loop does not count: it ends when the vector fits"),
    ("ext/sums/vector_sum.c", "clang-analyzer-core.uninitialized.ArraySubscript"): (1, "count records are there"),
}

CLANG_TIDY = re.compile(r"(?:.*/)?(ext/[^:]+):(\d+):\d+: (?:warning|error): (.*) \[([^],]+)")
CPPCHECK = re.compile(r"(ext/[^:]+):(\d+):\d+: \w+: (.*) \[(\w+)\]$")


def findings(command, pattern):
    """Returns each finding once, as a pair: (file, check), and the line that the tool printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    lines = {match.groups(): line for line in (done.stdout + done.stderr).splitlines() if (match := pattern.match(line))}
    return [((file, check), line) for (file, _, _, check), line in lines.items()]


NOT_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"].*$', re.M)
FLAGS = ["-std=c11", "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L"]


KEYWORDS = set("char const double enum extern float inline int long short signed static struct typedef union unsigned void".split())


def code_of(text):
    """Returns C text without includes, comments and literals."""
    return NOT_CODE.sub(" ", INCLUDE.sub("", text))


def names_declared(text):
    """Returns the names that C text declares: macros, types, enumerators, functions and variables, but not members and
    parameters."""
    code = code_of(text).replace("\\\n", " ")
    names = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", code, re.M))
    names -= set(re.findall(r"^#ifndef (\w+)\n#define \1$", code, re.M))  # include guards
    code = re.sub(r"^[ \t]*#.*$", "", code, flags=re.M)
    names |= set(re.findall(r"\b(?:struct|enum|union)\s+(\w+)\s*\{", code))
    for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", code):
        names |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
    code = re.sub(r"\(\s*\*\s*(\w+)\s*\)", r" \1 ", code)  # pointers to functions
    for inner, instead in ((r"\{[^{}]*\}", ";"), (r"\([^()]*\)|\[[^][]*\]", " ")):
        while re.search(inner, code):
            code = re.sub(inner, instead, code)
    for declaration in re.split("[;,]", code):
        words = [word for word in re.findall(r"\w+", declaration.split("=")[0]) if not word.startswith("__")]
        names |= set(words[-1:])
    return names - KEYWORDS


@functools.lru_cache(None)
def names_of_system_header(name):
    """Returns the names that a system header declares, or None if the system does not have the header. Names of the compiler,
    <stddef.h> and <stdint.h> count only for these headers, although other headers may include them."""
    done = subprocess.run(["cc", *FLAGS, "-E", "-dD", "-P", "-xc", "-"], input=f"#include <{name}>\n" if name else "",
                          capture_output=True, text=True)
    if done.returncode:
        return None
    basic = () if not name else ("",) if name in ("stddef.h", "stdint.h") else ("", "stddef.h", "stdint.h")
    return names_declared(done.stdout).difference(*map(names_of_system_header, basic))


def unused_includes(build, folders=("ext", "tests", "bench")):
    """Returns the unused includes. An include is unused if the file uses no name of the header and compiles without the include.
    (A file may need a header for the members of a struct that the file does not name.) The header of a C file itself and
    included C files always count as used."""
    found = []
    search = [pathlib.Path("ext"), pathlib.Path(build), pathlib.Path("tests/helpers")]
    for path in sorted(p for folder in folders for p in pathlib.Path(folder).rglob("*.[ch]")):
        text = path.read_text()
        words = set(re.findall(r"\w+", code_of(text)))
        for match in INCLUDE.finditer(text):
            bracket, name = match.groups()
            header = next((folder / name for folder in [path.parent, *search] if (folder / name).exists()), None)
            if bracket == "<":
                names = names_of_system_header(name)
            elif header is None or header.suffix == ".c" or header == path.with_suffix(".h"):
                continue
            else:
                names = names_declared(header.read_text())
            if names is None or names & words:
                continue
            core = [] if path.parts[0] == "ext" else ["-D_GNU_SOURCE", "-DSQLITE_CORE"]
            done = subprocess.run(["cc", *FLAGS, *core, *(f"-I{folder}" for folder in search), f"-iquote{path.parent}", "-Wall",
                                   "-Wextra", "-Wno-unused", "-Werror", "-fsyntax-only", "-xc", "-"],
                                  input=text[:match.start()] + text[match.end():], capture_output=True, text=True)
            if done.returncode == 0:
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: {name} is included, and nothing of it is used")
    return found


# The folders that each folder of ext/ may include besides itself (ext/README.md has a picture). Every folder may include base and
# os.
ARROWS = {
    "os": set(),
    "base": {"os"},
    "math": set(),
    "noise": set(),
    "sums": {"noise"},
    "mechanism": {"sums", "noise", "math"},
    "ledger": {"math"},
    "release": {"ledger", "mechanism", "sums", "noise", "math"},
    "query": {"release", "ledger", "mechanism", "sums", "noise", "math"},
    "report": {"ledger", "noise"},
    "functions": {"report", "query", "release", "ledger", "mechanism", "sums", "noise", "math"},
    # Rooms beside the core: no other room includes them.
    "papers": {"math"},
    "models": {"functions", "query", "release", "ledger", "mechanism", "sums", "noise", "math"},
    "categories": {"functions", "query", "release", "ledger", "mechanism", "sums", "noise", "math"},
}


def wrong_arrows(root="ext"):
    """Returns the includes in which a file of ext/ includes a file of a folder above its own. Also returns circles, in which
    files include each other directly or indirectly. A header and its C file count as one file."""
    root, found, needs = pathlib.Path(root), [], collections.defaultdict(set)
    for path in sorted(root.glob("*/*.[ch]")):
        room, stem = path.parent.name, str(path.relative_to(root).with_suffix(""))
        for name in re.findall(r'#include "([^"]+/[^"]+)"', path.read_text()):
            other = name.split("/")[0]
            needs[stem].add(name.rsplit(".", 1)[0])
            if other != room and other not in ARROWS.get(room, set()) | ({"base", "os"} if room not in ("base", "os") else {"os"}):
                found.append(f"{path}: includes {name}, but {room} is not above {other}")
    for stem in sorted(needs):
        reached, waiting = set(), needs[stem] - {stem}
        while waiting:
            reached |= waiting
            waiting = {after for now in waiting for after in needs[now] - {now}} - reached
        if stem in reached:
            found.append(f"{stem} needs itself through {', '.join(sorted(s for s in reached if s != stem and stem in needs[s]))}")
    return found


def symbols_of(objects):
    """Returns {object file: [(kind, symbol)]}."""
    found = {path: [] for path in objects}
    if found:
        for line in subprocess.run(["nm", "-A", *found], capture_output=True, text=True, check=True).stdout.splitlines():
            path, row = line.rsplit(":", 1)
            found[pathlib.Path(path)].append(tuple(row.split()[-2:]))
    return found


def calls_of(objects):
    """Returns {file: {called file: names}} for some object files."""
    home, calls = {}, {}
    for path, rows in objects.items():
        home.update({name: path.stem for kind, name in rows if kind in "TDRBVW"})
        calls[path.stem] = {name for kind, name in rows if kind == "U"}
    return {file: {other: sorted(name for name in names if home.get(name) == other)
                   for other in {home.get(name) for name in names} - {None}}
            for file, names in calls.items()}


def circles_of_calls(objects, root="ext"):
    """Returns the circles in which the C files of one folder of ext/ use functions or data of each other. The function reads the
    symbols of the object files, so a file that has no header of its own counts, too."""
    found, objects = [], symbols_of([pathlib.Path(objects) / path.relative_to(root).with_suffix(".o") for path in sorted(pathlib.Path(root).glob("*/*.c"))])
    for folder in sorted(path for path in pathlib.Path(root).iterdir() if path.is_dir()):
        calls = calls_of({path: rows for path, rows in objects.items() if path.parent.name == folder.name})
        for file in sorted(calls):
            ways = {file: ""}  # the files that this file uses, directly or indirectly
            waiting = [file]
            while waiting:
                now = waiting.pop(0)
                for other in sorted(calls[now]):
                    if other == file:
                        found.append(f"{folder.name}:{ways[now]} {now} -> {file} ({calls[now][file][0]})")
                        waiting = []
                        break
                    if other not in ways:
                        ways[other] = f"{ways[now]} {now} -> {other} ({calls[now][other][0]}),"
                        waiting.append(other)
    return found


def main(build):
    files = sorted(map(str, pathlib.Path("ext").rglob("*.c")))
    defines = [*FLAGS, "-Iext", f"-I{build}"]
    found = findings(["clang-tidy", "--quiet", *files, "--", *defines], CLANG_TIDY)
    found += findings(["cppcheck", "--std=c11", "--enable=warning,performance,portability", "--inconclusive", "--quiet", "-U__EMSCRIPTEN__",
                       "-Iext", f"-I{build}", "ext"], CPPCHECK)
    counts = collections.Counter(what for what, _ in found)
    new = [line for what, line in found if counts[what] > KNOWN.get(what, (0, ""))[0]]
    new += unused_includes(build) + wrong_arrows() + circles_of_calls(f"{build}/obj")
    print("\n".join(new) if new else f"{len(found)} findings, all known")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
