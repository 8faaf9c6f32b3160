"""Collects the texts of all errors from the code: the format strings that ext/ passes to the functions that report errors."""

import pathlib
import re

EXT = pathlib.Path(__file__).resolve().parents[2] / "ext"
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
# The functions that report an error, and calls that write its text. The text is their first argument with a literal.
REPORTERS = r"\b(?:error_set|known_names_fail|ledger_fail|ledger_discrepancy|function_error|fail_load|fail)\("
MESSAGES = r"(?:return fail\w*\([^;\"]*|(?:\*error|\*message|zErrMsg|denied)\s*=\s*(?:api->)?)(?:sqlite3_)?mprintf\("
# Texts that are only a part of an error, such as the end of "tier '…' …".
REASONS = rf'({LITERAL}(?:\s*{LITERAL})*)'
IS_REASON = re.compile(r"^(?:has .* \(nothing was charged or read|has .*; nothing was charged or read\)|is .*\(dp_mix\)$)")
NO_ERRORS = {"os/lock_file.c", "query/readers.c"}  # the fail() of these files takes a number, or SQL
NOT_SENTENCES = {"ok", " (let dp_release use them)"}  # the result of dp_verify(), and an addition to a message of SQLite


def without_comments(code):
    """Blanks comments out. Comments within strings do not occur."""
    return re.sub(rf"({LITERAL})|/\*.*?\*/", lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), code, flags=re.S)


def arguments_of(code, start):
    """Returns the arguments of the call whose opening parenthesis is before `start`."""
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
            found.append(code[last:at])
            last = at + 1
            if code[at] == ")":
                return found
        at += 1


def texts_of(argument):
    """Returns the string literals of an argument, with adjacent literals joined, and conversions as '…'."""
    joined = re.findall(rf"{LITERAL}(?:\s*(?:{LITERAL}|[A-Z_]{{3,}}|PRI\w+))*", argument)
    return [shown("".join(part[1:-1] if part[0] == '"' else f"%{part}" for part in re.findall(rf"{LITERAL}|\w+", text))) for text in joined]


def shown(text):
    text = text.replace('\\"', '"').replace("\\\\", "\\").replace("%%", "\0")
    text = re.sub(r"%[-+ 0,#!]*[\d.*]*(?:ll|l)?[diugcsfxeqQwz]|%[A-Z_]{3,}", "…", text)
    return re.sub("…+", "…", text).replace("\0", "%")


def collect():
    """Returns {text: set of files}. Leaves out texts without a word of their own, such as "…: …"."""
    found = {}
    for path in sorted(EXT.rglob("*.[ch]")):
        code, name = without_comments(path.read_text()), str(path.relative_to(EXT))
        texts = []
        for call in re.finditer(f"{REPORTERS}|{MESSAGES}", code):
            arguments = [argument for argument in arguments_of(code, call.end()) if '"' in argument]
            if arguments and name not in NO_ERRORS:
                texts += texts_of(arguments[0])
        texts += [text for literal in re.findall(REASONS, code) for text in texts_of(literal) if IS_REASON.match(text)]
        if name == "sums/shard_state.c":
            texts += [text for literal in re.findall(rf"return ({LITERAL});", code) for text in texts_of(literal)]
        for text in texts:
            if re.search(r"[a-z]{2}", text) and text not in NOT_SENTENCES:
                found.setdefault(text, set()).add(name)
    return found


if __name__ == "__main__":
    for text, files in sorted(collect().items(), key=lambda item: (sorted(item[1]), item[0])):
        print(", ".join(sorted(files)), "|", text)
