from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.plan.regex import Finder, RegexError, compile_regex

# Go's answers: the leftmost match, of those the one that the pattern prefers.
FIRST = [
    ("a|ab", "xab", (1, 2)),
    ("ab|a", "xab", (1, 3)),
    ("a+", "baaa", (1, 4)),
    ("a+?", "baaa", (1, 2)),
    ("a{2,3}?", "aaaa", (0, 2)),
    ("(a|ab)(c|bcd)", "abcd", (0, 4)),
    ("[0-9]*", "abc 123", (0, 0)),
    ("x", "abc", None),
    ("", "", (0, 0)),
    (r"\bb", "ab b", (3, 4)),
    ("(?m)^b$", "a\nb\nc", (2, 3)),
    ("(|a)*", "aa", (0, 0)),
    ("(|a)+", "aa", (0, 0)),
]
ALL = [
    ("[0-9]+", "123 abc 456", ["123", "456"]),
    ("[0-9]*", "12 ab", ["12", "", "", ""]),
    ("a|b*", "abba", ["a", "bb", "a"]),
    ("", "ab", ["", "", ""]),
    (r"\b", "ab c", ["", "", "", ""]),
    (".", "a\n😀", ["a", "😀"]),
    ("z", "aaa", []),
]

characters = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "c"])
pieces = st.recursive(
    characters,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]})"),
        # What repeats is never empty: there engines that backtrack differ from RE2.
        st.tuples(characters, inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}?"])).map(
            lambda parts: f"(?:{parts[0]}(?:{parts[1]})){parts[2]}"
        ),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(("pattern", "text", "expected"), FIRST)
def test_first(pattern: str, text: str, expected: tuple[int, int] | None) -> None:
    assert Finder(compile_regex(pattern), text).first() == expected


@pytest.mark.parametrize(("pattern", "text", "expected"), ALL)
def test_all(pattern: str, text: str, expected: list[str]) -> None:
    assert list(Finder(compile_regex(pattern), text).all()) == expected


@given(pieces, st.text("abc \n", max_size=8))
def test_agrees_with_a_backtracking_engine(pattern: str, text: str) -> None:
    match = re.search(pattern, text, re.ASCII)
    assert Finder(compile_regex(pattern), text).first() == (match.span() if match else None)


@given(pieces, st.text("abc \n", max_size=8))
def test_there_is_a_match_where_search_says_so(pattern: str, text: str) -> None:
    regex = compile_regex(pattern)
    assert (Finder(regex, text).first() is not None) == regex.search(text)


def test_no_pattern_backtracks() -> None:
    assert Finder(compile_regex("(a+)+$"), "a" * 2_000 + "!").first() is None


def test_work_is_bounded() -> None:
    # Every `a` is a match only after the rest of the text was looked at: quadratic.
    with pytest.raises(RegexError, match="takes too long"):
        list(Finder(compile_regex("a.*b|a"), "a" * 5_000).all())
