from __future__ import annotations

import pytest
from kdsl.lang.layout import Align, Doc, Fill, Group, HardLine, Line, Nest, Text, concat, render

WORDS = tuple(Text(word) for word in ("aa", "bb", "cc"))


@pytest.mark.parametrize(
    "doc, width, text",
    [
        (Group(concat("a", Line(), "b")), 3, "a b"),
        (Group(concat("a", Line(), "b")), 2, "a\nb"),
        (Group(concat("a", Nest(2, Line("")), "b")), 1, "a\n  b"),
        (Group(concat("a", Line(), Group(concat("b", Line(), "c")))), 3, "a\nb c"),
        (concat("ab", Align(Group(concat("c", Line(), "d")))), 4, "abc\n  d"),
        (concat("ab", Align(concat("c", Nest(-1, HardLine()), "d"))), 9, "abc\n d"),
        (concat("a", Nest(-3, HardLine()), "b"), 9, "a\nb"),
        (Group(concat("a", HardLine(), "b", Line(), "c")), 9, "a\nb\nc"),
        (Fill(WORDS), 6, "aa,\nbb, cc"),
        (Fill(WORDS), 7, "aa, bb,\ncc"),
        (Fill(WORDS), 10, "aa, bb, cc"),
        (Fill(WORDS, comma=""), 5, "aa bb\ncc"),
        (Fill(()), 5, ""),
        (concat(Group(concat("a", Line(), "b")), "c"), 3, "a\nbc"),
        (Group(concat(Text("'''x\nyy'''"), Line(), "b")), 6, "'''x\nyy''' b"),
    ],
)
def test_render(doc: Doc, width: int, text: str) -> None:
    assert render(doc, width) == text


def test_the_first_line_starts_at_the_indent() -> None:
    assert render(Group(concat("a", Line(), "b")), 3, indent=2) == "a\n  b"
