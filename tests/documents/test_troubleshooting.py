"""Checks that sql/troubleshooting.md is what `make errors` makes of the code, and that the collector finds every error."""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "sql"))
import troubleshooting  # noqa: E402


def test_page_is_that_of_the_code():
    assert troubleshooting.page() == troubleshooting.PAGE.read_text(encoding="utf-8"), "run make errors"


def test_every_advice_is_a_row_of_its_own():
    found, tables = troubleshooting.advices(), troubleshooting.tables()
    assert len(found) > 25 and len({text for _, text, _ in found}) == len(found)
    for _, text, advice in found:
        assert f"\n| `{troubleshooting.short(text)}` | {advice} |\n" in tables and "|" not in text + advice, text


def test_collected_texts_occur_in_the_extension():
    """The extension contains the texts that the collector found, between their conversions."""
    binary = (pathlib.Path(os.environ.get("BUILD", "build")) / "diffuse.so").read_bytes().replace(b"%%", b"%")
    code = troubleshooting.collect()
    assert len(code) > 450
    for text in code:
        for part in text.split("…"):
            assert part.encode() in binary, text


def test_collector_knows_errors_of_the_documents():
    """The collector finds every error of diffuse that a page shows. If it overlooked a way to report errors, such errors would be
    missing."""
    # A text may be the end of an error, such as "has exact Gaussian accounting, ..." after "tier 'public'".
    texts = [re.compile(".*".join(map(re.escape, text.split("…"))), re.S) for text in troubleshooting.collect()
             if len(text.replace("…", "").split()) > 2]
    shown = [line[len("-- error: "):] for page in (ROOT / "sql").glob("*.md") for line in page.read_text(encoding="utf-8").splitlines()
             if re.match(r"-- error: dp_\w+: ", line)]
    assert len(shown) > 3
    unknown = [error for error in shown if not any(text.search(error) for text in texts)]
    assert not unknown, "\n".join(unknown)
