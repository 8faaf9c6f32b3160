"""Writes the tables of sql/troubleshooting.md from the code of ext/ (make errors).

An error says in one sentence what is wrong and what to do. Where more helps, a comment stands before the error in the code:

    /* Advice: COMMIT first. In Python, connect with isolation_level=None. */
    return fail(error, "a ledger cannot be created inside a transaction (COMMIT first)");

The comment is for the first text after it. Everything in it is copied to the page, so links are relative to sql/.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXT, PAGE = ROOT / "ext", ROOT / "sql" / "troubleshooting.md"
THEMES = {
    "Loading": ["diffuse.c", "os"],
    "The ledger, its tiers and its budget": ["ledger"],
    "Values and options": ["base", "sums"],
    "Releases": ["release", "mechanism"],
    "Questions and aggregates": ["query"],
    "Functions, guards and batches": ["functions", "report"],
    "Categories, models and functions of the papers": ["categories", "models", "papers", "math"],
}
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
COMMENT = re.compile(rf"({LITERAL})|/\*.*?\*/", re.S)
ADVICE = re.compile(r"/\* Advice: (.*?) \*/", re.S)
# The functions that report an error, and calls that write its text. The text is their first argument with a literal.
REPORTERS = r"\b(?:error_set|known_names_fail|ledger_fail|ledger_discrepancy|function_error|fail_load|fail)\("
MESSAGES = r"(?:return fail\w*\([^;\"]*|(?:\*error|\*message|zErrMsg|denied)\s*=\s*(?:api->)?)(?:sqlite3_)?mprintf\("
# Texts that are only a part of an error, such as the end of "tier '…' …".
REASONS = rf'({LITERAL}(?:\s*{LITERAL})*)'
IS_REASON = re.compile(r"^(?:has .* \(nothing was charged or read|has .*; nothing was charged or read\)|is .*\(dp_mix\)$|was drawn by )")
NO_ERRORS = {"os/file.c"}  # the fail() of this file takes a number
NOT_SENTENCES = {"ok", " (let dp_release use them)"}  # the result of dp_verify(), and an addition to a message of SQLite


def without_comments(code):
    """Blanks comments out. Comments within strings do not occur."""
    return COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), code)


def arguments_of(code, start):
    """Returns (place, argument) for each argument of the call whose opening parenthesis is before `start`."""
    found, depth, last, at = [], 0, start, start
    while True:
        literal = re.compile(LITERAL + r"|'(?:[^'\\]|\\.)'").match(code, at)
        if literal:
            at = literal.end()
            continue
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}" and depth:
            depth -= 1
        elif code[at] == ")" or code[at] == "," and not depth:
            found.append((last, code[last:at]))
            last = at + 1
            if code[at] == ")":
                return found
        at += 1


def texts_of(place, argument):
    """Returns (place, text) for the string literals of an argument, with adjacent literals joined, and conversions as '…'."""
    joined = re.finditer(rf"{LITERAL}(?:\s*(?:{LITERAL}|[A-Z_]{{3,}}|PRI\w+))*", argument)
    return [(place + text.start(),
             shown("".join(part[1:-1] if part[0] == '"' else f"%{part}" for part in re.findall(rf"{LITERAL}|\w+", text[0]))))
            for text in joined]


def shown(text):
    text = text.replace('\\"', '"').replace("\\\\", "\\").replace("%%", "\0")
    text = re.sub(r"%[-+ 0,#!]*[\d.*]*(?:ll|l)?[diugcsfxeqQwz]|%[A-Z_]{3,}", "…", text)
    return re.sub("…+", "…", text).replace("\0", "%")


def texts_in(path):
    """Returns the sorted (place, text) of all errors of a file. Leaves out texts without a word of their own, such as "…: …"."""
    code, name, found = without_comments(path.read_text(encoding="utf-8")), str(path.relative_to(EXT)), []
    for call in re.finditer(f"{REPORTERS}|{MESSAGES}", code):
        arguments = [each for each in arguments_of(code, call.end()) if '"' in each[1]]
        if arguments and name not in NO_ERRORS:
            found += texts_of(*arguments[0])
    reasons = [text for literal in re.finditer(REASONS, code) for text in texts_of(literal.start(), literal[0])]
    found += [(place, text) for place, text in reasons if IS_REASON.match(text)]
    if name == "sums/shard_state.c":
        found += [text for literal in re.finditer(rf"return ({LITERAL});", code) for text in texts_of(literal.start(1), literal[1])]
    return sorted({(place, text) for place, text in found if re.search(r"[a-z]{2}", text) and text not in NOT_SENTENCES})


def files():
    return sorted(EXT.rglob("*.[ch]"))


def collect():
    """Returns {text: set of files}."""
    found = {}
    for path in files():
        for _, text in texts_in(path):
            found.setdefault(text, set()).add(str(path.relative_to(EXT)))
    return found


def advices():
    """Returns (file, text, advice) for each comment with advice."""
    found = []
    for path in files():
        code, texts = path.read_text(encoding="utf-8"), texts_in(path)
        for comment in ADVICE.finditer(code):
            after = [(place, text) for place, text in texts if place > comment.end()]
            near = after and code[comment.end():after[0][0]].count("\n") <= 9
            assert near, f"{path}: no error follows the comment: {comment[0]}"
            found.append((path.relative_to(EXT), after[0][1], " ".join(comment[1].split())))
    return found


def short(text):
    """Returns the first words of an error. Whoever has the error can read the rest there."""
    text = re.sub(r"^….*?…\) (?=[a-z]{4,} )", "… ", text)  # names alone do not tell errors apart
    words = re.sub(r"(?<=.{12}) \(.*", "", text).split()
    return " ".join(words[:8]) + (" …" if words[:8] != text.split() and words[:8][-1] != "…" else "")


def tables():
    """Returns the tables of the page, one for each theme."""
    found, lines = advices(), []
    for theme, rooms in THEMES.items():
        rows = [f"| `{short(text)}` | {advice} |" for file, text, advice in found if file.parts[0] in rooms]
        lines += [f"### {theme}", "", "| error | what to do |", "|---|---|", *rows, ""] if rows else []
    return "\n".join(lines)


def page():
    """Returns the page with new tables between its two marks."""
    before, _, after = re.split(r"(?<=<!-- make errors writes this part -->\n)(.*)(?=<!-- end -->)",
                                PAGE.read_text(encoding="utf-8"), flags=re.S)
    return f"{before}\n{tables()}\n{after}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--all"]:
        for text, names in sorted(collect().items(), key=lambda item: (sorted(item[1]), item[0])):
            print(", ".join(sorted(names)), "|", text)
    else:
        PAGE.write_text(page(), encoding="utf-8")
