"""A broken indentation in YAML, and a rule file that is not UTF-8: the message says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source
from kdsl.lang.discovery import read_source
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
