"""mutants.py ROOM COUNT SEED: changes ext/ROOM in COUNT random ways and lists the changes that no test notices.

A mutant changes one place of a C file: an operator, a constant, a condition that is always or never true, a statement that is
left out. Each is built in a copy of the tree, build/mutants/tree (with ccache if it is there), and tested until the first failure:
the tests that the head of its file names, then those of its room, unit tests in C first, and those in C that the head names
also with sanitizers. Mutants that do not compile, and those whose object code is that of the original, do not count.

tests/mutants.txt lists known survivors with reasons. An entry is the function and the lines before and after the change, so it
holds wherever the function moves. They are not tested again. The program fails if more than a tenth of the mutants survive without
a reason.
"""

import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TREE = ROOT / "build/mutants/tree"
KNOWN = ROOT / "tests/mutants.txt"
PYTHON = "/usr/bin/python3"
MOST = 0.1  # of the mutants may survive without a reason
SANITIZED = "build/sanitize"
PROGRAMS = {"unit": r"rooms\.a", "static": r"libdiffuse\.a", "fixed": "fixed", "injector": "injector", "replays": "replay",
            "build/star.db": "star", "bench-libraries": "bench"}  # what a test needs: the words by which it names it

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "/",
         "/": "*", "%": "*", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "++": "--", "--": "++", "+=": "-=", "-=": "+=", "*=": "/=",
         "/=": "*=", "|=": "&=", "&=": "|=", "?": "? !"}
TOKEN = re.compile(r"""(?P<skip>/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\b(?:static_assert|_Static_assert)\b[^;]*;)
    |(?P<number>\b(?:0x[\da-fA-F.]+(?:p[-+]?\d+)?|\d[\d.]*(?:e[-+]?\d+)?)[uUlLfF]*)|(?P<word>\w+)|(?P<space>\s+)
    |(?P<operator><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""", re.X | re.M | re.S)


def end_of(code, start):
    """Returns the place after the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place] in "({[") - (code[place] in ")}]")
        if not depth:
            return place + 1
    return len(code)


def code_of(text):
    """Returns the text with blanks in place of comments, directives and literals. The length stays the same."""
    return "".join(re.sub(r"[^\n]", " ", m.group()) if m.lastgroup == "skip" else m.group() for m in TOKEN.finditer(text))


def changes(text):
    """Returns the changes of a file: (start, end, new text)."""
    code, found, before = code_of(text), [], ""
    within = {place for body in re.finditer(r"^[^\s#}][^;{}]*\)\s*\{", code, re.M) for place in range(body.end(), end_of(code, body.end() - 1))}
    for match in TOKEN.finditer(code):
        kind, token, start = match.lastgroup, match.group(), match.start()
        if kind == "space":
            continue
        if start in within:
            binary = re.match(r"[\w)\]]", before[-1:]) and before not in ("return", "case", "sizeof", "else")
            spaced = code[start - 1:start] == " " and code[match.end():match.end() + 1] == " "
            if token in SWAPS and (token in ("++", "--") or (binary and spaced)):
                found.append((start, match.end(), SWAPS[token]))
            elif token == "!":
                found.append((start, match.end(), ""))
            elif kind == "number":
                found += [(start, match.end(), f"({token} + 1)"), (start, match.end(), "1" if token == "0" else "0")]
            elif token == "if":
                opening = code.index("(", start)
                found += [(opening, end_of(code, opening), f"({value})") for value in "01"]
        before = token
    for match in re.finditer(r"^[ \t]+(?!return|break|continue|goto|case|default|else|if|for|while|do|switch|static|const|struct|typedef)"
                             r"(?:\*?[\w.>\[\]-]+[ ]*(?:[-+*/|&^%]|<<|>>)?=|\w+\()[^;{}]*;", code, re.M):
        if match.start() in within:
            found.append((match.start(), match.end(), re.match(r"[ \t]*", match.group()).group() + ";"))
    return found


def described(text, change):
    """Returns the function, and the changed lines before and after, without needless space: the key of tests/mutants.txt."""
    start, end, new = change
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    names = re.findall(r"^[^\s#}/][^;{}\n]*?(\w+)\(", text[:start], re.M)
    plain = lambda lines: " ".join(lines.split())  # noqa: E731
    return names[-1] if names else "-", plain(text[first:last]), plain(text[first:start] + new + text[end:last])


def known():
    """Returns {(function, before, after): reason}."""
    parts = re.findall(r"^(\w+)\n- (.*)\n\+ (.*)\n((?:  .*\n)+)", KNOWN.read_text(), re.M)
    return {(name, before, after): " ".join(reason.split()) for name, before, after, reason in parts}


def run(*command, limit=None):
    """Runs a command in the copy of the tree. Returns its exit status, or None if a process used more than `limit` seconds of
    processor time or the command hangs, and its output."""
    def begin():
        if limit:
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))

    process = subprocess.Popen(command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                               env={**os.environ, "BUILD": "build", "MAKEFLAGS": ""}, preexec_fn=begin)
    try:
        said, _ = process.communicate(timeout=limit and 60 + 20 * limit)
        return (None if process.returncode in (-signal.SIGKILL, -signal.SIGXCPU) else process.returncode), said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def make(*targets):
    sanitized = any(target.startswith(SANITIZED) for target in targets)
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=all" if sanitized else ""
    return run("make", "-s", f"-j{os.cpu_count()}", "WARNINGS=-w", f"CFLAGS=-O1 -g0 {flags}", f"BUILD={SANITIZED if sanitized else 'build'}",
               *targets)


def run_unit(path, limit):
    """Runs a unit test in C. Returns what noticed the change, or None."""
    status, said = run(path, limit=limit)
    if status == 0:
        return None
    return "too slow" if status is None else f"{path}: " + next(iter(re.findall(r"^not ok - (\w+)", said, re.M)), "a crash")


def run_scripts(names, limit):
    """Runs tests in Python. Returns what noticed the change, or None."""
    status, said = run(PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", str(os.cpu_count()), "-m", "not slow", *names,
                       limit=limit)
    if status in (0, 5):  # 5: no test
        return None
    return "too slow" if status is None else next(iter(re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.M)), "a crash")


def targets_of(names):
    """Returns what tests in Python need to be built."""
    text = "".join((ROOT / name).read_text() for name in names)
    return ["all", *(target for target, words in PROGRAMS.items() if re.search(words, text))]


def suites(room, path):
    """Yields (targets of make, runner, argument), the quickest first."""
    head = re.match(r"/\*.*?\*/", path.read_text(), re.S).group()
    named = [name for name in re.findall(r"tests/[\w/]+\.\w+", head) if (ROOT / name).exists()]
    own = [str(test.relative_to(ROOT)) for test in sorted((ROOT / "tests" / room).glob("test_*.*"))]
    units = [pathlib.Path(name).stem.removeprefix("test_") for name in dict.fromkeys(named + own) if name.endswith(".c")]
    for unit in units:
        yield [f"build/unit/{unit}"], run_unit, f"build/unit/{unit}"
    for unit in units[:sum(name.endswith(".c") for name in named)]:
        yield [f"{SANITIZED}/unit/{unit}"], run_unit, f"{SANITIZED}/unit/{unit}"
    scripts = [name for name in named if name.endswith(".py")]
    others = [name for name in own if name.endswith(".py") and name not in named]
    for names in [*([name] for name in scripts), others]:
        if names:
            yield targets_of(names), run_scripts, names


def notice(suites, limits):
    """Builds and tests the copy. Returns what noticed the change, or None."""
    for targets, runner, argument in suites:
        status, said = make(*targets)
        if status:
            return "the build: " + said[-300:]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seen = runner(argument, limits.get(str(argument)))
        if seen:
            return seen
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        limits.setdefault(str(argument), 10 + 5 * (after.ru_utime - before.ru_utime))
    return None


def copy_tree():
    for name in subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
        source, target = ROOT / name, TREE / name
        if source.exists() and (not target.exists() or target.read_bytes() != source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for path in TREE.glob("ext/*/*.[ch]"):
        if not (ROOT / path.relative_to(TREE)).exists():
            path.unlink()


def main(room, count, seed):
    copy_tree()
    reasons, limits, chance = known(), {}, random.Random(seed)
    files = sorted((ROOT / "ext" / room).glob("*.c"))
    texts = {path: path.read_text() for path in files}
    all_changes = [(path, change) for path in files for change in changes(texts[path])]
    for key in reasons:
        if not any(key[1] in " ".join(text.split()) for text in map(pathlib.Path.read_text, (ROOT / "ext").glob("*/*.c"))):
            print(f"tests/mutants.txt: no line of ext/ is now: {key[1]}", flush=True)
    for targets, runner, argument in {str(suite[2]): suite for path in files for suite in suites(room, path)}.values():
        if seen := notice([(targets, runner, argument)], limits):
            raise SystemExit(f"the tests fail without a change: {seen}")
    chance.shuffle(all_changes)
    made, survivors = 0, {"explained": 0, "not explained": 0}
    for path, change in all_changes:
        if made == count:
            break
        copy, text = TREE / path.relative_to(ROOT), texts[path]
        compiled = TREE / "build/obj" / path.relative_to(ROOT / "ext").with_suffix(".o")
        original = compiled.read_bytes()
        copy.write_text(text[:change[0]] + change[2] + text[change[1]:])
        try:
            if make(str(compiled.relative_to(TREE)))[0] or compiled.read_bytes() == original:
                continue
            made += 1
            key = described(text, change)
            seen = None if key in reasons else notice(suites(room, path), limits)
        finally:
            copy.write_text(text)
            make(str(compiled.relative_to(TREE)))
        place = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, change[0]) + 1}"
        if seen:
            print(f"{made:4} {place}: noticed by {seen}", flush=True)
            continue
        survivors["explained" if key in reasons else "not explained"] += 1
        print(f"{made:4} {place}: SURVIVES" + (f" ({reasons[key]})" if key in reasons else "")
              + f"\n{key[0]}\n- {key[1]}\n+ {key[2]}", flush=True)
    print(f"{room}: {made} mutants, {made - sum(survivors.values())} noticed, {survivors['explained']} survive with a reason,"
          f" {survivors['not explained']} without")
    if survivors["not explained"] > MOST * made:
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
