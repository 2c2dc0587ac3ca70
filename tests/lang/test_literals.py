from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.lang.expression_tree import LiteralKind
from kdsl.lang.literals import decode_bytes, decode_string, read_double, read_integer, spell


@pytest.mark.parametrize(
    "raw, text",
    [
        ('""', ""),
        ("'a\"b'", 'a"b'),
        (r'"\a\b\f\n\r\t\v\\\?\"\'\`"', "\a\b\f\n\r\t\v\\?\"'`"),
        (r'"\x41\X42\u0043\U00000044\105"', "ABCDE"),
        (r'"\377\xff"', "ÿÿ"),
        (r'"\U0001F62C"', "😬"),
        (r"r'\n'", r"\n"),
        (r'R"""\x41"""', r"\x41"),
        ('"""a\n"b" """', 'a\n"b" '),
        ("'''\\''''", "'"),
    ],
)
def test_strings(raw: str, text: str) -> None:
    decoded = decode_string(raw)
    assert (decoded.text, decoded.problems) == (text, ())
    assert len(decoded.offsets) == len(text) + 1


def test_offsets_point_into_the_literal() -> None:
    raw = r'R"""ab"""'
    assert [raw[at] for at in decode_string(raw).offsets] == ["a", "b", '"']
    raw = r"'a\u0062c\n'"
    assert [raw[at] for at in decode_string(raw).offsets] == ["a", "\\", "c", "\\", "'"]


@pytest.mark.parametrize(
    "raw, written",
    [
        (r'"\q"', r"\q"),
        (r'"\x4"', r"\x"),
        (r'"\u12"', r"\u"),
        (r'"\8"', r"\8"),
        (r'"\400"', r"\4"),
        (r'"\ud800"', r"\ud800"),
        (r'"\U00110000"', r"\U00110000"),
        ('"\ud800"', "\ud800"),
    ],
)
def test_bad_escapes_are_placed(raw: str, written: str) -> None:
    (problem,) = decode_string(raw).problems
    assert raw[problem.start : problem.end] == written


@pytest.mark.parametrize(
    "raw, value",
    [
        ("b'ÿ'", b"\xc3\xbf"),
        (r"b'\xff\377\n'", b"\xff\xff\n"),
        (r"br'\xff'", rb"\xff"),
        (r"Rb'''\'''", b"\\"),
        ('B"""a\nb"""', b"a\nb"),
    ],
)
def test_bytes(raw: str, value: bytes) -> None:
    decoded = decode_bytes(raw)
    assert (decoded.value, decoded.problems) == (value, ())


@pytest.mark.parametrize("raw", [r"b'\u0041'", r"b'\U00000041'", r"b'\q'", "b'\udc00'"])
def test_bytes_refuse(raw: str) -> None:
    assert len(decode_bytes(raw).problems) == 1


def test_numbers() -> None:
    assert read_integer("007") == 7
    assert read_integer("0xFf") == 255
    assert read_integer("9" * 5000) is None
    assert read_double("1e308") == 1e308
    assert read_double("1e309") is None
    assert read_double(".5") == 0.5


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_spelled_strings_read_back(text: str) -> None:
    spelled = spell(LiteralKind.STRING, text)
    assert "\n" not in spelled
    assert decode_string(spelled).text == text


@given(st.binary())
def test_spelled_bytes_read_back(value: bytes) -> None:
    spelled = spell(LiteralKind.BYTES, value)
    assert spelled.isascii()
    assert decode_bytes(spelled).value == value


def test_a_value_of_another_kind_has_no_spelling() -> None:
    with pytest.raises(ValueError, match="no value of kind"):
        spell(LiteralKind.STRING, 1)
