"""A broken indentation in YAML, and a rule file that is not UTF-8: the message says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source
from kdsl.lang.codes import LangCode
from kdsl.lang.discovery import read_source, read_sources
from kdsl.lang.yaml_tree import read_yaml


@pytest.mark.parametrize(
    ("text", "title", "help_"),
    [
        ("a:\n\tb: 1\n", "this is not YAML: a tab cannot indent a line", "indent with spaces"),
        (
            "a:\n  b: 1\n c: 2\n",
            "this is not YAML: did not find expected key",
            "is this line indented as far as the lines it belongs to?",
        ),
    ],
)
def test_indentation(text: str, title: str, help_: str) -> None:
    (found,) = read_yaml(Source("a.yaml", text)).diagnostics
    assert (found.title, found.help) == (title, (help_,))


def test_not_utf_8() -> None:
    found = read_source(Path("a.kdsl"), b"kdsl 1\n\xff")
    assert isinstance(found, Diagnostic)
    assert found.notes == ("byte 0xff in line 2 starts no character",)
    assert found.help == ("save the file as UTF-8",)


@pytest.mark.parametrize(("character", "code"), [("ä", LangCode.FILE_TOO_LARGE), ("\xff", LangCode.NOT_UTF8)])
def test_a_large_file_that_is_no_text(tmp_path: Path, character: str, code: LangCode) -> None:
    """Nobody can split a picture; a character that is cut off at the end of the examined part is no mistake."""
    encoding = "utf-8" if code is LangCode.FILE_TOO_LARGE else "latin-1"
    path = tmp_path / "a.kdsl"
    path.write_bytes(("a" + character * 200_000).encode(encoding))
    _, (found,) = read_sources([path])
    assert found.code == code


@pytest.mark.parametrize("text", ["kdsl 1\npackage a\n", "\n// why\n  kdsl 1 // this\npackage a: b\n"])
def test_a_rule_file_in_place_of_yaml(text: str) -> None:
    (found,) = read_yaml(Source("a.kdsl", text)).diagnostics
    assert found.title == "this is a rule file, not YAML" and found.span is not None
    assert found.span.text == "kdsl 1"


@pytest.mark.parametrize("text", [" " * 100_000 + "x", "//a\n" * 50_000 + "x", "/" * 100_000, "kdsl: 1"])
def test_other_texts_are_no_rule_files(text: str) -> None:
    assert [
        each.title for each in read_yaml(Source("a.yaml", text)).diagnostics if "rule" in each.title
    ] == []
