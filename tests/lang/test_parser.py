from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.span import Source
from kdsl.lang import expression_tree, profile_tree, tree
from kdsl.lang.codes import LangCode
from kdsl.lang.parser import MAX_DEPTH, MAX_ERRORS, parse_expression, parse_file
from kdsl.report.diagnostics import render

from tests.lang.strategies import SPAN

FOLDER = Path(__file__).parent
SLIPS = sorted((FOLDER / "slips").glob("*.kdsl"))
SAMPLES = [path.read_text(encoding="utf-8") for path in sorted((FOLDER / "samples").glob("*.kdsl"))]


def read(text: str) -> expression_tree.Expr:
    expr, diagnostics = parse_expression(Source("e", text))
    assert expr is not None, diagnostics
    return expr


def name(text: str) -> expression_tree.Ident:
    return expression_tree.Ident(text, span=SPAN)


def number(value: int) -> expression_tree.Literal:
    return expression_tree.Literal(expression_tree.LiteralKind.INT, value, "", span=SPAN)


def binary(left: expression_tree.Expr, op: str, right: expression_tree.Expr) -> expression_tree.Binary:
    return expression_tree.Binary(op, left, right, span=SPAN)


def minus(operand: expression_tree.Expr) -> expression_tree.Unary:
    return expression_tree.Unary("-", operand, span=SPAN)


def call(
    target: expression_tree.Expr | None, function: str, *args: expression_tree.Expr
) -> expression_tree.Call:
    return expression_tree.Call(function, target, args, span=SPAN)


a, b, c = name("a"), name("b"), name("c")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a + b * c", binary(a, "+", binary(b, "*", c))),
        ("a - b - c", binary(binary(a, "-", b), "-", c)),
        ("a || b && c", binary(a, "||", binary(b, "&&", c))),
        ("a < b == c", binary(binary(a, "<", b), "==", c)),
        (
            "a ? b : c ? a : b",
            expression_tree.Conditional(a, b, expression_tree.Conditional(c, a, b, span=SPAN), span=SPAN),
        ),
        ("-a", minus(a)),
        ("--1", minus(minus(number(1)))),
        ("-1.f()", call(minus(number(1)), "f")),
        ("-(1.f())", minus(call(number(1), "f"))),
        ("-(1).f()", minus(call(number(1), "f"))),
        ("-a.f()", minus(call(a, "f"))),
        ("-9223372036854775808", number(-(2**63))),
        ("1 - 1", binary(number(1), "-", number(1))),
        ("order.for", expression_tree.Select(name("order"), "for", span=SPAN)),
        ("f(a)(", None),
        ("require", name("require")),
        ("indeed in a", binary(name("indeed"), "in", a)),
        ("a.b.f(c)", call(expression_tree.Select(a, "b", span=SPAN), "f", c)),
        (
            "[a, ?b,]",
            expression_tree.ListExpr(
                (expression_tree.ListItem(a, span=SPAN), expression_tree.ListItem(b, True, span=SPAN)),
                span=SPAN,
            ),
        ),
        ("[,]", expression_tree.ListExpr((), span=SPAN)),
        ("{a: b,}", expression_tree.MapExpr((expression_tree.MapEntry(a, b, span=SPAN),), span=SPAN)),
        ("// c\n a // d", a),
    ],
)
def test_expressions(text: str, expected: expression_tree.Expr | None) -> None:
    assert parse_expression(Source("e", text))[0] == expected


def test_the_smallest_int_has_no_positive_twin() -> None:
    for text in ("9223372036854775808", "-(9223372036854775808)", "--9223372036854775808"):
        expr, (diagnostic,) = parse_expression(Source("e", text))
        assert (expr, diagnostic.code) == (None, LangCode.NUMBER_RANGE)


def test_spans_cover_what_was_written() -> None:
    expr = read(" (a) . b ( -1 )[ (c + a) ] ")
    assert isinstance(expr, expression_tree.Index)
    assert expr.span.text == "(a) . b ( -1 )[ (c + a) ]"
    assert expr.index.span.text == "c + a"
    assert isinstance(expr.operand, expression_tree.Call)
    assert expr.operand.name_span is not None
    assert expr.operand.name_span.text == "b"
    assert expr.operand.args[0].span.text == "-1"


@pytest.mark.parametrize("text", ["!(a == b)", "!!((a))", "-(a + b)", "- - (a)", "!(a).b", "!( a )"])
def test_a_span_ends_behind_the_parentheses_of_an_operand(text: str) -> None:
    assert read(text).span.text == text
    both = read(f"x && {text}")
    assert isinstance(both, expression_tree.Binary) and both.right.span.text == text


def test_statement_spans() -> None:
    text = "kdsl 1\npackage a . b\n/// Doc.\nmandatory predicate X {\n  require (a)\n    else 'b' // c\n}\n"
    file = parse_file(Source("f", text)).file
    assert file is not None
    assert file.package is not None
    assert (file.package.text, file.package.span.text) == ("a.b", "a . b")
    (predicate,) = file.declarations
    assert predicate.span.text == text[text.index("mandatory") : -1]
    assert predicate.name.span.line == 4
    assert isinstance(predicate, tree.Predicate)
    assert predicate.body[0].span.text == "require (a)\n    else 'b'"


def test_set_names_rule_and_parameter() -> None:
    file = parse_file(Source("f", "kdsl 1 profile p { set a . b . c = 1 }")).file
    assert file is not None
    profile = file.declarations[0]
    assert isinstance(profile, tree.Profile)
    statement = profile.body[0]
    assert isinstance(statement, profile_tree.SetParam)
    assert (statement.rule.text, statement.param.text) == ("a.b", "c")
    assert (statement.rule.span.text, statement.param.span.text) == ("a . b", "c")


@pytest.mark.parametrize(
    "word", ["order", "queue", "value", "default", "on", "kdsl", "report", "mandatory", "final", "dyn"]
)
def test_keywords_are_soft(word: str) -> None:
    text = (
        f"kdsl 1 predicate {word} {{ let {word} = {word}.{word} + {word}({word}) require {word} else 'x' }}"
    )
    assert parse_file(Source("f", text)).diagnostics == ()


def test_names_in_lists_may_be_keywords() -> None:
    lists = "predicates { a queue b.set add devices . x } scores { weight weight 1 queue weight 2 }"
    result = parse_file(Source("f", f"kdsl 1 profile p {{ {lists} }}"))
    assert result.diagnostics == ()
    assert result.file is not None
    profile = result.file.declarations[0]
    assert isinstance(profile, tree.Profile)
    listed, scores = profile.body
    assert isinstance(listed, profile_tree.PredicateList)
    assert [name.text for name in listed.names] == ["a", "queue", "b.set", "add", "devices.x"]
    assert isinstance(scores, profile_tree.ScoreList)
    assert [score.name.text for score in scores.scores] == ["weight", "queue"]


def test_keywords_end_at_a_word_boundary() -> None:
    (diagnostic,) = parse_file(Source("f", "kdsl 1\npredicate X {\n  requires x else 'y'\n}\n")).diagnostics
    assert diagnostic.span is not None
    assert diagnostic.span.text == "requires"
    assert [fix.title for fix in diagnostic.fixes] == ["did you mean `require`?"]


# ---- errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SLIPS, ids=lambda path: path.stem)
def test_slip(path: Path) -> None:
    result = parse_file(Source(path.name, path.read_text(encoding="utf-8")))
    shown, golden = render(result.diagnostics) + "\n", path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "a.kdsl.json"])
def test_no_header_is_offered_for_files_of_another_form(name: str) -> None:
    (diagnostic,) = parse_file(Source(name, '{"kind": "x"}')).diagnostics
    assert diagnostic.code == LangCode.HEADER and not diagnostic.fixes
    assert "`.kdsl.yaml`" in diagnostic.help[0]


def test_every_syntax_code_has_a_slip() -> None:
    shown = "".join(path.with_suffix(".txt").read_text(encoding="utf-8") for path in SLIPS)
    elsewhere = {LangCode.TOO_DEEP, LangCode.TOO_MANY}
    missing = {code for code in LangCode if code.startswith(("K010", "K011")) and f"[{code}]" not in shown}
    assert missing == elsewhere


def test_what_is_sound_is_kept() -> None:
    text = "kdsl 1\npredicate A {\n  require a = b else 'c'\n  let x = 1\n}\nscore B {\n  value 1\n}\n"
    result = parse_file(Source("f", text))
    assert len(result.diagnostics) == 1
    assert result.file is not None
    first, second = result.file.declarations
    assert isinstance(first, tree.Predicate)
    assert [type(statement) for statement in first.body] == [tree.Let]
    assert isinstance(second, tree.Score)


def test_an_indented_file_is_read_on_after_a_block_without_end() -> None:
    lines = ["predicate A {", '  require true else "x"', "predicate B {", "}", "queue Q {", "  order by", "}"]
    result = parse_file(Source("x", "kdsl 1\npackage p\n" + "".join(f"  {each}\n" for each in lines)))
    nested, second = result.diagnostics
    assert nested.title == "`predicate` cannot stand in a `predicate` block"
    assert second.title.startswith("expected an expression")


def test_the_list_of_devices_may_stay_on_one_line() -> None:
    result = parse_file(Source("x", "kdsl 1\npackage p\nprofile q extends k {\n  devices a.B,, c.D\n}\n"))
    assert [(each.title, each.help) for each in result.diagnostics] == [("expected a name, found `,`", ())]


def test_errors_are_capped() -> None:
    text = "kdsl 1\nscore X {\n" + "  value 1 +\n" * 1000 + "}\n"
    result = parse_file(Source("f", text))
    assert len(result.diagnostics) == MAX_ERRORS
    assert result.diagnostics[-1].code == LangCode.TOO_MANY


NESTED = [
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("{1: ", "1", "}"),
    ("f(", "1", ")"),
    ("a[", "1", "]"),
    ("!", "a", ""),
    ("-", "a", ""),
    ("1 + ", "1", ""),
    ("a && ", "a", ""),
    ("a ? b : ", "a", ""),
    ("a.", "a", ""),
    ("[", "", ""),
    ("a ? ", "", ""),
    ("(", "1 1", ")"),
]


@pytest.mark.parametrize("opening, middle, closing", NESTED)
@pytest.mark.parametrize("depth", [MAX_DEPTH * 2, 20_000])
def test_deep_nesting_is_a_diagnostic(opening: str, middle: str, closing: str, depth: int) -> None:
    text = opening * depth + middle + closing * depth
    expr, diagnostics = parse_expression(Source("e", text))
    assert expr is None
    assert len(diagnostics) == 1
    result = parse_file(Source("f", f"kdsl 1 score X {{ value {text} }}"))
    assert result.file is None or middle in ("", "1 1")
    assert LangCode.TOO_DEEP in {diagnostic.code for diagnostic in result.diagnostics} or middle in (
        "",
        "1 1",
    )


def test_the_limit_leaves_room() -> None:
    depth = MAX_DEPTH // 2 - 5
    for opening, middle, closing in NESTED[:11]:
        read(opening * depth + middle + closing * depth)


def test_blocks_nest_no_deeper_either() -> None:
    text = "kdsl 1 predicate X {" + "for a in b {" * 300 + "}" * 301
    (diagnostic,) = parse_file(Source("f", text)).diagnostics
    assert diagnostic.code == LangCode.TOO_DEEP


PIECES = (
    '{ } ( ) [ ] , : . ? = == & && | || ! + - * / % < " \' """ ` ${ $$ \\ // /// \x00 é 😬 \ud800 1 1u .5 '
    "0x 1e9 kdsl in true null package import as predicate score queue param let require else for "
    "where a b unresolvable"
)
pieces = st.sampled_from([*PIECES.split(" "), "\n", "\t", "\r", " "])


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=40), st.booleans())
def test_no_text_makes_it_fail(parts: list[str], spaced: bool) -> None:
    text = (" " if spaced else "").join(parts)
    for source in (Source("f", text), Source("f", f"kdsl 1\npackage a\npredicate X {{\n{text}\n}}\n")):
        result = parse_file(source)
        assert result.file is not None or result.diagnostics
        assert render(result.diagnostics) or not result.diagnostics
    expr, diagnostics = parse_expression(Source("e", text))
    assert (expr is None) == bool(diagnostics)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SAMPLES), st.floats(0, 1), st.integers(0, 30), pieces)
def test_broken_samples_are_reported(text: str, place: float, length: int, piece: str) -> None:
    at = int(place * len(text))
    result = parse_file(Source("f", f"{text[:at]}{piece}{text[at + length :]}"))
    assert result.file is not None or result.diagnostics
    render(result.diagnostics)


def test_a_text_that_is_no_rule_file_is_told_once() -> None:
    found = parse_file(Source("README.md", "# kdsl\n\nA scheduler.\n")).diagnostics
    assert [each.code for each in found] == [LangCode.HEADER]


@pytest.mark.parametrize(
    "comment", ["// c\rrequire false", "/// c\r\rrequire false", "// \x07 c\r", "// c\r"]
)
def test_a_comment_does_not_swallow_a_line_that_an_editor_shows(comment: str) -> None:
    (found,) = parse_file(Source("f", f"kdsl 1\r\npackage a // d\r\n{comment}")).diagnostics
    assert found.code == LangCode.BAD_CHARACTER
    assert found.span is not None and (found.span.text, found.span.line) == ("\r", 3)
    assert not found.fixes


def test_a_string_has_no_return_without_a_line_feed() -> None:
    text = 'kdsl 1\npackage a\nparam a = """b\rc"""\n'
    (found,) = parse_file(Source("f", text)).diagnostics
    assert (found.code, found.fixes[0].edits[0].text) == (LangCode.BAD_CHARACTER, "\\r")
    assert not parse_file(Source("f", text.replace("\r", "\r\n"))).diagnostics
