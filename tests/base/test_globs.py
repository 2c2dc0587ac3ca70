"""Patterns of file names: what matches, and that no pattern takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.globs import glob

NAMES = st.text("ab/", max_size=7)
PIECES = st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "a/", "/**/", "*/"])


@given(st.lists(PIECES, max_size=7).map("".join), st.lists(NAMES, min_size=1, max_size=30))
def test_what_matches(pattern: str, names: list[str]) -> None:
    plain = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.findall(r"(?:^|(?<=/))\*\*/|\*\*|.", pattern)
    expected = re.compile("".join(plain.get(part, part) for part in parts))
    found = glob(pattern)
    assert [found.fullmatch(name) is not None for name in names] == [
        expected.fullmatch(name) is not None for name in names
    ]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 50 + "b", "a" * 4000),
        ("**/" * 50 + "b", "a/" * 2000),
        ("**a*" * 50 + "b", "a" * 1000),
        ("**a*a" * 50 + "/b", "a" * 1000),
        ("**" + "*a" * 30 + "b", "a" * 1000),
        ("**?*a" * 30 + "b", "/a" * 2000),
    ],
)
def test_many_wildcards_take_no_longer_than_few(pattern: str, name: str) -> None:
    # With places tried again for each wildcard, the first of these would end after the sun.
    assert glob(pattern).fullmatch(name) is None
    assert glob(pattern).fullmatch(pattern.replace("*", "").replace("?", "a")) is not None
