from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.span import Source
from kdsl.lang import expression_tree, tree
from kdsl.lang.parser import parse_file
from kdsl.lang.templates import Hole, cut_template


def cut(raw: str) -> list[str | tuple[str]]:
    return [part if isinstance(part, str) else (part.text,) for part in cut_template(raw).parts]


@pytest.mark.parametrize(
    "raw, parts",
    [
        ('""', [""]),
        ('"plain $5 $"', ["plain $5 $"]),
        ('"a ${b} c"', ["a ", ("b",), " c"]),
        ('"${a}${b}"', [("a",), ("b",)]),
        ('"$${a} $$"', ["${a} $"]),
        ('"$$${a}"', ["$", ("a",)]),
        ("\"${ {'}': 1}['}'] }!\"", [(" {'}': 1}['}'] ",), "!"]),
        (r'"${m[\"k\"]}"', [('m["k"]',)]),
        (r"r'${a}\n'", [("a",), r"\n"]),
        (r'"\u0024{a}"', [("a",)]),
    ],
)
def test_cutting(raw: str, parts: list[str | tuple[str]]) -> None:
    assert cut(raw) == parts


def test_an_open_hole_reaches_to_the_end() -> None:
    (text, hole) = cut_template('"a ${b (} c"').parts
    assert text == "a "
    assert isinstance(hole, Hole)
    assert not hole.closed


@given(st.text(st.sampled_from("$ {}\"'a\\")))
def test_any_text_can_be_cut(text: str) -> None:
    parts = cut_template(f"r'''{text}'''").parts if "'''" not in text else ("",)
    assert parts


def reason(raw: str) -> tree.Template:
    source = Source("f", f"kdsl 1 predicate X {{ require a else {raw} }}")
    result = parse_file(source)
    assert result.diagnostics == ()
    assert result.file is not None
    (predicate,) = result.file.declarations
    assert isinstance(predicate, tree.Predicate)
    (statement,) = predicate.body
    assert isinstance(statement, tree.Require)
    return statement.reason


@pytest.mark.parametrize("raw", ['"é ${a.b + 1}"', '"${ a.b + 1 }"', r'"\t${a.b + 1}"'])
def test_spans_of_holes_point_into_the_file(raw: str) -> None:
    (expr,) = (part for part in reason(raw).parts if not isinstance(part, str))
    assert isinstance(expr, expression_tree.Binary)
    assert (expr.span.text, expr.left.span.text, expr.right.span.text) == ("a.b + 1", "a.b", "1")


def test_spans_of_holes_with_escapes() -> None:
    (expr,) = reason(r'"${m[\"k\"]}"').parts
    assert isinstance(expr, expression_tree.Index)
    assert expr.span.text == r"m[\"k\"]"
    assert expr.index.span.text == r"\"k\""
