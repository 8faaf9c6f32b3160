"""Writes the whole extension as one C file: amalgamate.py BUILD OUTPUT_FOLDER (diffuse.c and diffuse.h).

The headers of the system come first, each under the conditions of the files that include it. All headers of the extension follow,
in the order of their includes, and then the C files. So a name of ours that meets a name of some system is an error when the file is
compiled there, never another meaning.

Every function except the entry point becomes static, so a program that compiles the file gets one symbol (with SQLITE_CORE). The
script puts the name of its C file before each name of the file's own, and `diffuse_` before each name of one word that a header
declares, because the systems' headers are full of such names. It leaves alone the words of macros in headers: some of them become
texts. The macros of a C file are undefined at its start and its end.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">].*\n', re.M)
TOKEN = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | \w+ | \s+ | -> | .""", re.S | re.X)
WORD = re.compile(r"[A-Za-z_]\w*$")
ENTRY = "sqlite3_diffuse_init"
ENTRIES = {ENTRY, "sqlite3_extension_init"}


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


def end_of(code, start):
    """Returns the place after the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place] in "({[") - (code[place] in ")}]")
        if not depth:
            return place + 1


class Scan:
    """The names and tags that a C file declares at file scope for its own use, and where the bodies of its structs are.
    clang-format puts every such declaration at the start of a line."""

    def __init__(self, text):
        code = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), without_directives(text), flags=re.S)
        self.names, self.tags, self.bodies = set(), set(), []
        for match in re.finditer(r"^(?:[A-Z_]+\s+)?static\s+([^=;{]*)", code, re.M):
            if re.search(r"\b(?:struct|union|enum)(?:\s+\w+)?\s*$", match.group(1)) and code[match.end()] == "{":
                self.names.add(re.match(r"\W*(\w+)", code[end_of(code, match.end()):]).group(1))
            else:
                self.names |= declared_name(match.group(1))
        for match in re.finditer(r"^typedef\s+([^;{]*);", code, re.M):
            self.names |= declared_name(match.group(1))
        for match in re.finditer(r"^enum\b[^{;()]*\{(.*?)\}", code, re.M | re.S):
            self.names |= set(re.findall(r"(?:^|,)\s*(\w+)", match.group(1)))
        for match in re.finditer(r"^(?:static\s+)?(?:const\s+)?(?:struct|union|enum)\s+(\w+)\s*\{", code, re.M):
            self.tags.add(match.group(1))
        for match in re.finditer(r"\b(?:struct|union)(?:\s+\w+)?\s*\{", code):
            self.bodies.append((match.end(), end_of(code, match.end() - 1)))


def is_member(tokens, i):
    before = [t for t in tokens[max(0, i - 4):i] if not is_space(t)]
    return bool(before) and before[-1] in (".", "->")


def own_prefix(path):
    """Returns what stands before the names of one file."""
    return re.sub(r"\W", "_", "_".join(path.relative_to(ROOT).with_suffix("").parts)) + "_"


def member_arguments(macros):
    """Returns {name: places of the arguments that a macro uses as names of members, or pastes, or makes a text of}."""
    found = {"offsetof": {1}}
    for name, parameters, body in macros:
        uses = {i for i, parameter in enumerate(re.findall(r"[\w.]+", parameters))
                if re.search(rf"(?:\.|->|#)\s*{re.escape(parameter)}\b|\b{re.escape(parameter)}\s*##|\boffsetof\([^,]*,\s*{re.escape(parameter)}\)", body)}
        if uses:
            found[name] = uses
    return found


def member_places(text, macros):
    """Returns where in the text names stand that are arguments of this kind."""
    places = set()
    for match in re.finditer(rf"\b({'|'.join(macros)})\(", text):
        argument, depth = 0, 0
        for word in re.finditer(r"\w+|[(){},]", text[match.end():end_of(text, match.end() - 1) - 1]):
            if word.group() == "," and not depth:
                argument += 1
            depth += (word.group() in "({") - (word.group() in ")}")
            if argument in macros[match.group(1)]:
                places.add(match.end() + word.start())
    return places


def rename(text, names, tags, prefix, in_struct, members):
    """Returns the text with a prefix before these names ({name: prefix}) and tags. The names of struct members do not change,
    neither where they are declared nor where they are used."""
    out, position, tokens = [], 0, tokens_of(text)
    for i, token in enumerate(tokens):
        start, position = position, position + len(token)
        if token in names or token in tags:
            before = next((t for t in reversed(tokens[:i]) if not is_space(t)), "")
            is_tag = before in ("struct", "union", "enum")
            after = next((t for t in tokens[i + 1:] if not is_space(t)), "")
            declares_member = any(a < start < b for a, b in in_struct) and before != "[" and after in tuple(";,[:)")
            if (token in tags) if is_tag else (token in names and not is_member(tokens, i) and not declares_member
                                                    and start not in members):
                token = (prefix if is_tag else names[token]) + token
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


def system_includes(text):
    """Returns what a file includes of the system: a list of texts, each an include or a group of them with its conditions."""
    text = re.sub(r"\\\n", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    if guard := re.search(r"^#ifndef (DIFFUSE_\w+_H)\n#define \1\n(.*)^#endif\s*\Z", text, re.M | re.S):
        text = guard.group(2)
    lines, kept, starts, groups = [], 0, [], []  # the lines of the open group, and how many of them are surely needed
    for line in re.findall(r"^#[ \t]*(?:if|el|endif|include[ \t]*<).*", text, re.M):
        if re.match(r"#\s*if", line):
            starts.append(len(lines))
        lines.append(line)
        if re.match(r"#\s*include", line):
            kept = len(lines)
        if re.match(r"#\s*endif", line):
            start = starts.pop()
            if kept > start:
                kept = len(lines)
            else:
                del lines[start:]
        if not starts:
            groups += ["\n".join(lines) + "\n"] * bool(lines)
            lines, kept = [], 0
    return [group for group in groups if "sqlite3" not in group]


def write(build, output):
    version = (ROOT.parent / "VERSION").read_text().strip()
    sources = sorted(p for p in ROOT.rglob("*.c") if "packages" not in p.relative_to(ROOT).parts)
    headers = ordered_headers(sources)
    functions = {name for p in [*headers, *sources] for name in prototypes(p.read_text())} - ENTRIES
    scans = {p: Scan(p.read_text()) for p in [*sources, *headers]}
    generated = {name: (pathlib.Path(build) / name).read_text() for name in ("version.h", "ledger_sql.h", "page_html.h", "page_sql.h")}

    def expand(text):
        """Removes the includes of files that are already in the amalgamation, and inserts generated headers where they are
        included."""
        return INCLUDE.sub(lambda m: generated.get(m.group(2), ""), text)

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
#define WIN32_LEAN_AND_MEAN
"""]
    out += dict.fromkeys(group for p in [*headers, *sources] for group in system_includes(p.read_text()))
    out.append("""#undef far /* macros of windows.h for compilers of 16 bits */
#undef near
#include "sqlite3ext.h"
#ifndef SQLITE_CORE
static const sqlite3_api_routines *sqlite3_api;
#endif
""")
    declared = [d for h in headers for d in re.findall(r"^extern ([^;(]*);", h.read_text(), re.M)]
    variables = sorted(name for d in declared for name in declared_name(d))
    out.append("".join(f"#define {name} diffuse_{name}\n" for name in variables))
    define = re.compile(r"^#[ \t]*define[ \t]+(\w+)\(([^)]*)\)((?:\\\n|.)*)", re.M)
    in_macros = {word for h in headers for macro in re.findall(r"^#[ \t]*define((?:\\\n|.)*)", h.read_text(), re.M)
                 for word in re.findall(r"\w+", macro)}
    public = {name for h in headers for name in scans[h].names | prototypes(h.read_text()) if "_" not in name} - in_macros - set(variables)
    whole = {tag for h in headers for tag in scans[h].tags}  # tags that headers define: an equal one of a C file is another
    for path in [*headers, *sources]:
        text, scan = path.read_text(), scans[path]
        own, tags = set(), set()
        if path.suffix == ".c":
            shared = {tag for h in ordered_headers([path]) for tag in re.findall(r"\b(?:struct|union|enum)\s+(\w+)", h.read_text())}
            own, tags = scan.names, scan.tags - (shared - whole)
        names = {name: "diffuse_" for name in public} | {name: own_prefix(path) for name in own}
        text = rename(text, names, tags, own_prefix(path), scan.bodies,
                      member_places(text, member_arguments(m for p in {path, *ordered_headers([path])} for m in define.findall(p.read_text()))))
        text = re.sub(r"^SQLITE_EXTENSION_INIT[13]\n", "", text, flags=re.M)
        macros = list(dict.fromkeys(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))) if path.suffix == ".c" else []
        text = re.sub(r"^extern ", "extern DIFFUSE_HIDDEN ", expand(text), flags=re.M)
        undefine = "".join(f"#undef {name}\n" for name in macros)
        out.append(f"\n/* ==== {path.relative_to(ROOT)} ==== */\n{undefine}" + static_text(text, functions | {"diffuse_" + name for name in public}))
        out.append(undefine)
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "diffuse.c").write_text("".join(out))
    header = (ROOT / "packages" / "diffuse.h.in").read_text()
    (output / "diffuse.h").write_text(header.replace("@VERSION@", version))


if __name__ == "__main__":
    write(*sys.argv[1:])
