"""Writes the whole extension as one C file: amalgamate.py BUILD OUTPUT_FOLDER (diffuse.c and diffuse.h).

All headers come first, in the order of their includes. The C files follow. Every function except the entry point becomes
static, so a program that compiles the file gets one symbol (with SQLITE_CORE). If two C files declare the same name, or a header uses the name
for something else, the script puts the name of the file in front. The macros of a C file are undefined at its end.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">].*\n', re.M)
TOKEN = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | \w+ | \s+ | -> | .""", re.S | re.X)
WORD = re.compile(r"[A-Za-z_]\w*$")
ENTRY = "sqlite3_diffuse_init"
ENTRIES = {ENTRY, "sqlite3_extension_init"}
# Names that the C library or Windows declares. Our files also use these names for something else.
LIBRARY = {"clock", "index", "link", "remove", "signal", "time", "wait", "BOOL", "BYTE", "WORD"}


def tokens_of(text):
    return TOKEN.findall(text)


def is_space(token):
    return token.isspace() or token.startswith(("/*", "//"))


def without_directives(text):
    """Returns the text with blanks in place of directives and their continued lines. The length stays the same."""
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.M)


def declared_name(declaration):
    """Returns the name that a declaration declares: the name before the first parenthesis, or the last word. The declaration is
    the text from `static` up to the initializer or body."""
    declaration = re.sub(r"_Atomic\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|__attribute__\(\(.*?\)\)|\[[^\]]*\]", " ", declaration)
    pointer = re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*\)\s*\(", declaration)
    function = re.search(r"(\w+)\s*\(", declaration)
    return {(pointer or function).group(1)} if function else set(re.findall(r"(\w+)\s*(?=,|$)", declaration.strip()))


class Scan:
    """The names and tags that a C file declares at file scope for its own use, and where the bodies of its structs are.
    clang-format puts every such declaration at the start of a line."""

    def __init__(self, text):
        code = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), without_directives(text), flags=re.S)
        self.names, self.tags, self.bodies = set(), set(), []
        for match in re.finditer(r"^(?:[A-Z_]+\s+)?static\s+([^=;{]*)", code, re.M):
            if re.search(r"\b(?:struct|union|enum)(?:\s+\w+)?\s*$", match.group(1)) and code[match.end()] == "{":
                self.names |= set(re.findall(r"^\}\s*(\w+)", code[match.end():], re.M)[:1])
            else:
                self.names |= declared_name(match.group(1))
        for match in re.finditer(r"^typedef\s+([^;{]*);", code, re.M):
            self.names |= declared_name(match.group(1))
        for match in re.finditer(r"^enum\b[^{;()]*\{(.*?)\}", code, re.M | re.S):
            self.names |= set(re.findall(r"(?:^|,)\s*(\w+)", match.group(1)))
        for match in re.finditer(r"^(?:static\s+)?(?:const\s+)?(?:struct|union|enum)\s+(\w+)\s*\{", code, re.M):
            self.tags.add(match.group(1))
        for match in re.finditer(r"\b(?:struct|union)(?:\s+\w+)?\s*\{", code):
            end, depth = match.end(), 1
            while depth:
                depth += (code[end] == "{") - (code[end] == "}")
                end += 1
            self.bodies.append((match.end(), end))


def is_member(tokens, i):
    before = [t for t in tokens[max(0, i - 4):i] if not is_space(t)]
    return bool(before) and before[-1] in (".", "->")


def rename(text, names, tags, prefix, in_struct):
    """Returns the text with the prefix before these names and tags. The names of struct members do not change, neither where
    they are declared nor where they are used."""
    out, position, tokens = [], 0, tokens_of(text)
    for i, token in enumerate(tokens):
        start, position = position, position + len(token)
        if token in names or token in tags:
            before = next((t for t in reversed(tokens[:i]) if not is_space(t)), "")
            is_tag = before in ("struct", "union", "enum")
            inside = any(a < start < b for a, b in in_struct)
            if (token in tags) if is_tag else (token in names and not is_member(tokens, i) and not inside):
                token = prefix + token
        out.append(token)
    return "".join(out)


def static_text(text, functions):
    """Returns the text with `static` before the prototypes and definitions of these functions. Each prototype and definition
    must begin at the start of a line."""
    pattern = re.compile(r"^(?![^\n(]*\bstatic\b|typedef\b|extern\b|#|return\b|else\b)((?:[A-Za-z_][\w ]*?[ *]+)+)(\w+)\(", re.M)
    text = pattern.sub(lambda m: "static " + m.group() if m.group(2) in functions else m.group(), text)
    # Some functions are declared with a typedef of their type.
    typed = re.compile(r"^(?!static\b|typedef\b|extern\b)\w+ (\w+)(?:,\s+\w+)*;", re.M)
    return typed.sub(lambda m: "static " + m.group() if m.group(1) in functions else m.group(), text)


def prototypes(text):
    code = re.sub(r"/\*.*?\*/", "", without_directives(text), flags=re.S)
    return set(re.findall(r"^(?![^\n(]*\bstatic\b|typedef\b|extern\b|return\b)(?:[A-Za-z_][\w ]*?[ *]+)+(\w+)\(", code, re.M))


def ordered_headers(files):
    order, seen = [], set()

    def visit(path):
        if path in seen:
            return
        seen.add(path)
        for bracket, name in INCLUDE.findall(path.read_text()):
            if bracket == '"' and (ROOT / name).exists():
                visit(ROOT / name)
        if path.suffix == ".h":
            order.append(path)

    for path in files:
        visit(path)
    return order


def write(build, output):
    version = (ROOT.parent / "VERSION").read_text().strip()
    sources = sorted(p for p in ROOT.rglob("*.c") if "packages" not in p.relative_to(ROOT).parts)
    # <windows.h> declares many names, so the files that include it come last.
    system = {p for p in sources if re.search(r'["</]windows\.h[">]', p.read_text())}
    sources.sort(key=lambda p: (p in system, p))
    headers = ordered_headers(sources)
    functions = {name for p in [*headers, *sources] for name in prototypes(p.read_text())} - ENTRIES
    scans = {p: Scan(p.read_text()) for p in [*sources, *headers]}
    counts = collections.Counter(n for s in scans.values() for n in s.names)
    tag_counts = collections.Counter(n for s in scans.values() for n in s.tags)
    generated = {name: (pathlib.Path(build) / name).read_text() for name in ("version.h", "ledger_sql.h", "report_html.h")}

    def expand(text):
        """Removes the includes of files that are already in the amalgamation, and inserts generated headers where they are
        included."""
        return INCLUDE.sub(lambda m: m.group() if m.group(1) == "<" and "sqlite3" not in m.group(2)
                           else generated.get(m.group(2), ""), text)

    out = [f"""/*
** diffuse {version}: differential privacy inside SQLite. All of the extension in one file.
**
** Copyright (C) the authors of diffuse. GPL-3.0-or-later: see COPYING.
**
** As an extension: cc -O2 -fPIC -shared -ffp-contract=off -o diffuse.so diffuse.c -lgsl -lgslcblas -lsodium -lm -lpthread
** In a program: compile it with -DSQLITE_CORE and give {ENTRY} to sqlite3_auto_extension().
** With -ffast-math or contracted multiply-adds (-ffp-contract=off turns them off) the books are wrong.
*/
#if defined(__FAST_MATH__)
#error "diffuse: compile without -ffast-math"
#endif
#define _DEFAULT_SOURCE 1
#define _DARWIN_C_SOURCE 1
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#if defined(__GNUC__) && !defined(_WIN32)
#define DIFFUSE_HIDDEN __attribute__((visibility("hidden")))
#else
#define DIFFUSE_HIDDEN
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include "sqlite3ext.h"
#ifndef SQLITE_CORE
static const sqlite3_api_routines *sqlite3_api;
#endif
"""]
    declared = [d for h in headers for d in re.findall(r"^extern ([^;(]*);", h.read_text(), re.M)]
    variables = sorted(name for d in declared for name in declared_name(d))
    out.append("".join(f"#define {name} diffuse_{name}\n" for name in variables))
    for path in headers:
        text = re.sub(r"^extern ", "extern DIFFUSE_HIDDEN ", expand(path.read_text()), flags=re.M)
        out.append(f"\n/* ==== {path.relative_to(ROOT)} ==== */\n" + static_text(text, functions))
    for path in sources:
        scan = scans[path]
        names = {n for n in scan.names if counts[n] > 1 or n in functions | LIBRARY}
        tags = {n for n in scan.tags if tag_counts[n] > 1}
        text = path.read_text()
        prefix = re.sub(r"\W", "_", "_".join(path.relative_to(ROOT).with_suffix("").parts)) + "_"
        text = rename(text, names, tags, prefix, scan.bodies)
        text = re.sub(r"^SQLITE_EXTENSION_INIT[13]\n", "", text, flags=re.M)
        macros = list(dict.fromkeys(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M)))
        text = expand(text)
        out.append(f"\n/* ==== {path.relative_to(ROOT)} ==== */\n" + static_text(text, functions))
        out.append("".join(f"#undef {name}\n" for name in macros))
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "diffuse.c").write_text("".join(out))
    header = (ROOT / "packages" / "diffuse.h.in").read_text()
    (output / "diffuse.h").write_text(header.replace("@VERSION@", version))


if __name__ == "__main__":
    write(*sys.argv[1:])
