from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.plan.regex import RegexError, compile_regex
from kdsl.plan.regex.automaton import MAX_TRANSITIONS, Regex

MATCHES = [
    ("", "", True),
    ("a+b", "xaab", True),
    ("^a+$", "aab", False),
    ("a{2,3}c", "xaac", True),
    ("^a{2,3}c", "aaaac", False),
    ("a{,2}", "a{,2}", True),
    ("(?i)straße", "STRAßE", True),
    ("(?i)k", "\u212a", True),
    ("(?i:a)b", "Ab", True),
    ("(?i:a)b", "AB", False),
    ("(?i)a(?-i)b", "AB", False),
    (r"\bfoo\b", "a foo.", True),
    (r"\bfoo\b", "afoo", False),
    (r"\Boo", "foo", True),
    ("a.c", "a\nc", False),
    ("(?s)a.c", "a\nc", True),
    ("^b$", "a\nb\nc", False),
    ("(?m)^b$", "a\nb\nc", True),
    ("a$", "a\n", False),
    (r"\Aab\z", "ab", True),
    (r"\Q.*\E+", ".**", True),
    (r"[^\d]", "12", False),
    ("[[:alpha:]][[:^alpha:]]", "a1", True),
    ("[]a]", "]", True),
    ("[a-]", "-", True),
    (r"[\]\-]", "-", True),
    (r"\pL\p{Nd}", "é٣", True),
    (r"^\PL$", "1", True),
    (r"^\d$", "٣", False),
    (r"\x{1F600}", "😀", True),
    (r"\101", "A", True),
    ("(?P<name>a|b)(?<other>c)", "bc", True),
    ("x*", "", True),
    ("(|a){3}b", "b", True),
    ("(a|b)*?c", "ababc", True),
    ("foo|bar", "xbarx", True),
    ("a||b", "", True),
]

REFUSED = [
    *("a**", "a++", "a{2}{3}", "*a", "(", ")", "(a", "[a", "[b-a]", "a{1001}", "a{2,1}", "(?=a)", "(?!a)"),
    *("(?<=a)b", "(?<!a)b", r"(a)\1", r"\Z", r"\C", r"\8", r"\pX", r"\p{Greek}", r"\x{110000}", "[[:nope:]]"),
    *("(?P=a)", "(?P<1>a)", "(?>a)", "(?#c)", "(?x)a", "\\", "((a{100}){100}){100}", "(" * 300 + ")" * 300),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), MATCHES)
def test_match(pattern: str, text: str, expected: bool) -> None:
    assert compile_regex(pattern).search(text) is expected


@pytest.mark.parametrize("pattern", REFUSED)
def test_refused(pattern: str) -> None:
    with pytest.raises(RegexError):
        compile_regex(pattern)


pieces = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\b", "^", "c"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}"])).map(
            lambda both: f"(?:{both[0]}){both[1]}"
        ),
    ),
    max_leaves=8,
)


@given(pieces, st.text("abc \n", max_size=8))
def test_agrees_with_a_backtracking_engine(pattern: str, text: str) -> None:
    assert Regex(pattern).search(text) == (re.search(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "^(a|a)*$", "(a|aa)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_time_is_linear(pattern: str) -> None:
    regex = Regex(pattern)
    assert not regex.search("a" * 20_000 + "!")
    assert regex.transitions < 200


def test_remembered_states_are_bounded() -> None:
    regex = Regex("[^x]*y")
    for start in range(0, 3 * MAX_TRANSITIONS, 5000):
        assert not regex.search("".join(chr(0x4E00 + (start + at) % 0x8000) for at in range(5000)))
        assert regex.transitions <= MAX_TRANSITIONS
