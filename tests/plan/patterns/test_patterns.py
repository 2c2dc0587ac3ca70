"""The meaning of patterns: syntax that RE2 takes and refuses, and which of several matches is the one."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.eval.patterns import PatternError, compile_pattern
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError

from tests.plan.lab import evaluate

STEPS = 1_000_000

MATCHES = [
    ("", "", True),
    ("a+b", "xaab", True),
    ("^a+$", "aab", False),
    ("a{2,3}c", "xaac", True),
    ("^a{2,3}c", "aaaac", False),
    ("a{,2}", "a{,2}", True),
    ("(?i)straße", "STRAßE", True),
    ("(?i)k", "\u212a", True),
    ("(?i)ſ", "S", True),
    ("(?i)ä", "Ä", True),
    ("(?i)ı", "I", False),
    ("(?i:a)b", "Ab", True),
    ("(?i:a)b", "AB", False),
    ("(?i)a(?-i)b", "AB", False),
    (r"\bfoo\b", "a foo.", True),
    (r"\bfoo\b", "afoo", False),
    (r"\Boo", "foo", True),
    (r"\bé", "é", False),
    ("a.c", "a\nc", False),
    ("(?s)a.c", "a\nc", True),
    ("^b$", "a\nb\nc", False),
    ("(?m)^b$", "a\nb\nc", True),
    ("a$", "a\n", False),
    (r"\Aab\z", "ab", True),
    (r"\Q.*+\E+", ".*++", True),
    (r"\Q\C", "\\C", True),
    (r"\\C", "\\C", True),
    (r"[^\d]", "12", False),
    ("[[:alpha:]][[:^alpha:]]", "a1", True),
    ("[]a]", "]", True),
    ("[a-]", "-", True),
    (r"[\]\-]", "-", True),
    (r"\pL\p{Nd}", "é٣", True),
    (r"^\PL$", "1", True),
    (r"^\p{Greek}+$", "λόγος", True),
    (r"^\p{^Greek}+$", "λόγος", False),
    (r"^\d$", "٣", False),
    (r"^\w$", "é", False),
    (r"\x{1F600}", "😀", True),
    ("^.$", "😀", True),
    (r"\101", "A", True),
    ("(?P<name>a|b)(?<other>c)", "bc", True),
    ("(?U)^a+$", "aa", True),
    ("a\x00b", "a\x00b", True),
    ("x*", "", True),
    ("(|a){3}b", "b", True),
    ("(a|b)*?c", "ababc", True),
    ("foo|bar", "xbarx", True),
    ("a||b", "", True),
]

REFUSED = [
    *("a**", "a++", "a{2}{3}", "*a", "(", ")", "(a", "[a", "[b-a]", "a{1001}", "a{2,1}", "(?=a)", "(?!a)"),
    *("(?<=a)b", "(?<!a)b", r"(a)\1", r"\Z", r"\C", r"a[\C]", r"\Q\C\E\C", r"\8", r"\pX", r"\p{greek}"),
    *(r"\x{110000}", "[[:nope:]]", "(?P=a)", "(?P<é-a>a)", "(?>a)", "(?#c)", "(?x)a", "\\", r"\X", r"\R"),
]

# Go's answers: the leftmost match that the pattern prefers.
FIRST = [
    ("a|ab", "xab", "a"),
    ("ab|a", "xab", "ab"),
    ("a+", "baaa", "aaa"),
    ("a+?", "baaa", "a"),
    ("a{2,3}?", "aaaa", "aa"),
    ("(a|ab)(c|bcd)", "abcd", "abcd"),
    ("[0-9]*", "abc 123", ""),
    ("x", "abc", ""),
    (r"\bb.", "abc bd", "bd"),
    ("(?m)^b$", "ab\nb\nc", "b"),
    ("(|a)*", "aa", ""),
    ("(|a)+", "aa", ""),
    ("(?P<name>é)(.)", "aéb", "éb"),
]
ALL = [
    ("[0-9]+", "123 abc 456", ["123", "456"]),
    ("[0-9]*", "12 ab", ["12", "", "", ""]),
    ("a|b*", "abba", ["a", "bb", "a"]),
    ("", "ab", ["", "", ""]),
    ("", "é😀", ["", "", ""]),
    (r"\b", "ab c", ["", "", "", ""]),
    ("^.", "ab", ["a"]),
    ("(?m)^.", "ab\ncd", ["a", "c"]),
    (".$", "ab", ["b"]),
    (r"\B.", "abc", ["b", "c"]),
    (".", "a\n😀", ["a", "😀"]),
    ("z", "aaa", []),
    ("(?P<name>a)(b)?", "aab", ["a", "ab"]),
]

characters = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "c", "é"])
pieces = st.recursive(
    characters,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]})"),
        # Repeated parts are never empty: there, backtracking engines differ from RE2.
        st.tuples(characters, inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}?"])).map(
            lambda parts: f"(?:{parts[0]}(?:{parts[1]})){parts[2]}"
        ),
    ),
    max_leaves=8,
)
texts = st.text("abcé \n", max_size=8)


def found_in(pattern: str, text: str) -> list[str]:
    return list(compile_pattern(pattern).find_all(text, Meter.of(STEPS).spend))


@pytest.mark.parametrize(("pattern", "text", "expected"), MATCHES)
def test_match(pattern: str, text: str, expected: bool) -> None:
    assert compile_pattern(pattern).matches(text, Meter.of(STEPS).spend) is expected


@pytest.mark.parametrize("pattern", REFUSED)
def test_refused(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        with pytest.raises(PatternError) as refused:
            compile_pattern(pattern)
    assert str(refused.value)[0].islower()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("pattern", "text", "expected"), FIRST)
def test_first(pattern: str, text: str, expected: str) -> None:
    assert compile_pattern(pattern).find(text, Meter.of(STEPS).spend) == expected


@pytest.mark.parametrize(("pattern", "text", "expected"), ALL)
def test_all(pattern: str, text: str, expected: list[str]) -> None:
    assert found_in(pattern, text) == expected


@given(pieces, texts)
def test_agrees_with_a_backtracking_engine(pattern: str, text: str) -> None:
    match = re.search(pattern, text, re.ASCII)
    compiled = compile_pattern(pattern)
    assert compiled.matches(text, Meter.of(STEPS).spend) == (match is not None)
    assert compiled.find(text, Meter.of(STEPS).spend) == (match[0] if match else "")


@given(pieces, texts)
def test_all_matches_are_in_the_text_one_behind_the_other(pattern: str, text: str) -> None:
    # Not by `finditer`: after an empty match it searches for a non-empty one at the same place.
    engine, expected, at = re.compile(pattern, re.ASCII), [], 0
    while at <= len(text) and (match := engine.search(text, at)) is not None:
        expected.append(match[0])
        at = max(match.end(), at + 1)
    expected = [part for part in expected if part]
    assert [part for part in found_in(pattern, text) if part] == expected


def test_half_a_surrogate_pair_is_a_character() -> None:
    assert found_in(".", "a\ud800b") == ["a", "\ud800", "b"]
    assert found_in("[^a]", "a\ud800") == found_in("\ud800", "a\ud800") == ["\ud800"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dyn(1).matches('a')", "no such overload: matches(int, string)"),
        ("'a'.matches(dyn(b'a'))", "no such overload: matches(string, bytes)"),
        ("'a'.findAll('a', dyn(2u))", "no such overload: findAll(string, string, uint)"),
        ("'a'.find(dyn('('))", "invalid regular expression: missing ): ("),
        (r"'a'.matches('a\\C')", "invalid regular expression: invalid escape sequence: \\C"),
    ],
)
def test_errors(text: str, message: str) -> None:
    error = evaluate(text)
    assert isinstance(error, EvalError) and error.message == message


def test_so_many_matches() -> None:
    assert evaluate("'abcd'.findAll('[a-c]', 0)") == ()
    assert evaluate("'abcd'.findAll('[a-c]', 2)") == ("a", "b")
    assert evaluate("'abcd'.findAll('[a-c]', -1)") == ("a", "b", "c")


def test_a_pattern_of_several_threads() -> None:
    compiled = compile_pattern("(a|b)*c(a|b){12}")
    ask = lambda at: compiled.matches("ab" * 50 + "c" + "ab" * (at % 12), Meter.of(STEPS).spend)  # noqa: E731
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(600))) == [at % 12 >= 6 for at in range(600)]


def test_a_search_pays_for_the_text_times_the_pattern() -> None:
    few, many = Meter.of(STEPS), Meter.of(STEPS)
    compile_pattern("ab").matches("x" * 1000, few.spend)
    compile_pattern("(a|b){99}c").matches("x" * 2000, many.spend)
    assert 10 < few.limit - few.left < 200
    assert 2000 < many.limit - many.left < 20_000
