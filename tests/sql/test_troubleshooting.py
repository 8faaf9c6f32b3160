"""Checks that sql/troubleshooting.md lists every error text of the code, and no other text."""

import os
import pathlib
import re

from error_texts import collect

PAGE = pathlib.Path(__file__).resolve().parents[2] / "sql" / "troubleshooting.md"


def rows():
    """Returns (texts, explanation, heading) for each row of the page's tables."""
    found, heading = [], None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        heading = line.lstrip("# ") if line.startswith("#") else heading
        if line.startswith("| `"):
            cells = re.fullmatch(r"\| (`.*`) \| ?(.*) \|", line)
            assert cells, line
            found.append((re.findall(r"`([^`]+)`(?:<br>|$)", cells[1]), cells[2].strip(), heading))
    return found


def test_every_error_is_listed_once():
    listed = [text for texts, _, _ in rows() for text in texts]
    assert len(listed) == len(set(listed)), [text for text in listed if listed.count(text) > 1]
    code = collect()
    assert len(code) > 450
    missing, stale = sorted(set(code) - set(listed)), sorted(set(listed) - set(code))
    assert not missing, "\n".join(f"{', '.join(sorted(code[text]))}: {text}" for text in missing)
    assert not stale, "\n".join(stale)


def test_every_row_has_a_remedy():
    """A row without an explanation has texts that contain the remedy, or name what is wrong in one clause."""
    for texts, explanation, heading in rows():
        assert explanation or len(texts) <= 4, (heading, texts)
        if not explanation:
            assert all(re.search(r"\(.+\)|: |not |need|must|twice|given|stays|is |protected", text) for text in texts), texts


def test_collected_texts_occur_in_the_extension():
    """The extension contains the texts that the collector found, between their conversions."""
    binary = (pathlib.Path(os.environ.get("BUILD", "build")) / "diffuse.so").read_bytes().replace(b"%%", b"%")
    for text in collect():
        for part in text.split("…"):
            assert part.encode() in binary, text


def test_errors_of_the_documents_are_listed():
    """sql/troubleshooting.md lists every error of diffuse that another page shows. If the collector overlooked a way to report
    errors, such errors would be missing."""
    # A text may be the end of an error, such as "has exact Gaussian accounting, ..." after "tier 'public'".
    texts = [re.compile(".*".join(map(re.escape, text.split("…"))), re.S) for listed, _, _ in rows() for text in listed
             if len(text.replace("…", "").split()) > 2]
    shown = [line[len("-- error: "):] for page in PAGE.parent.glob("*.md") for line in page.read_text(encoding="utf-8").splitlines()
             if re.match(r"-- error: dp_\w+: ", line)]
    assert len(shown) > 40
    unlisted = [error for error in shown if not any(text.search(error) for text in texts)]
    assert not unlisted, "\n".join(unlisted)
