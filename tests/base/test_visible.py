"""Control characters of terminals are shown as escapes, and a line stays one line."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.visible import visible, visible_lines, visible_text
from kdsl.report.json_text import json_text

OBEYED = [
    *map(chr, (*range(0x20), *range(0x7F, 0xA0))),
    *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x2028, 0x2029, 0x85)),
    "\ud800",
    "\ufffe",
]


@pytest.mark.parametrize("character", OBEYED, ids=lambda each: f"U+{ord(each):04X}")
def test_what_is_obeyed_is_escaped(character: str) -> None:
    shown = visible(f"a{character}b")
    assert shown.isprintable() and shown.startswith("a\\") and shown.endswith("b")
    assert shown.encode().decode("unicode_escape") == f"a{character}b"


@given(st.text())
def test_what_is_shown_is_printable(text: str) -> None:
    assert visible(text).isprintable()
    assert all(line.isprintable() for line in visible_text(text).replace("\t", "").split("\n"))
    assert visible_text(text).count("\n") == text.count("\n")
    assert visible_lines([text, text]).count("\n") == 1


def test_text_stays_as_it_is() -> None:
    for text in ("", "節点 é 🎉", unicodedata.normalize("NFD", "é")):
        assert visible(text) == visible_text(text) == text


@given(st.recursive(st.text() | st.sampled_from(OBEYED), st.lists))
def test_json_is_the_same_value(value: object) -> None:
    text = json_text({"value": value})
    assert json.loads(text) == {"value": value}
    assert all(line.isprintable() for line in text.split("\n"))
