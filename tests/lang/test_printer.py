from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from kdsl.base.span import Source
from kdsl.lang import device_tree, expression_tree, profile_tree, tree
from kdsl.lang.parser import parse_expression, parse_file
from kdsl.lang.printer import WIDTH, format_declaration, format_expr, format_file

from tests.lang.strategies import expressions, files

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.kdsl"))
slow = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def read_expression(text: str) -> expression_tree.Expr:
    expr, diagnostics = parse_expression(Source("e", text))
    assert expr is not None, (text, diagnostics)
    return expr


@slow
@given(expressions)
def test_an_expression_reads_back(expr: expression_tree.Expr) -> None:
    text = format_expr(expr)
    assert read_expression(text) == expr
    assert format_expr(read_expression(text)) == text


@slow
@given(files)
def test_a_file_reads_back(file: tree.File) -> None:
    text = format_file(file)
    result = parse_file(Source("f", text))
    assert result.diagnostics == ()
    assert result.file == file
    assert format_file(result.file) == text


@pytest.mark.parametrize(
    "written, printed",
    [
        ("a||b&&c", "a || (b && c)"),
        ("(a&&b)||c", "(a && b) || c"),
        ("(a||b)&&c", "(a || b) && c"),
        ("a ? (b ? c : d) : (e ? f : g)", "a ? (b ? c : d) : e ? f : g"),
        ("(a ? b : c) ? d : e", "(a ? b : c) ? d : e"),
        ("(a+b)-(c-d)", "a + b - (c - d)"),
        ("(a*b)/c%d", "a * b / c % d"),
        ("!(!a)", "!!a"),
        ("!(-a)", "!(-a)"),
        ("-(-1)", "--1"),
        ("-1.abs()", "(-1).abs()"),
        ("-(1.abs())", "-(1.abs())"),
        ("(-1)[0].x", "(-1)[0].x"),
        ("(a in b) == c", "a in b == c"),
        ("a == (b in c)", "a == (b in c)"),
        ("[ 1,2 , ]", "[1, 2]"),
        ("{ 'a' : 1, ?b : c, }", "{'a': 1, ?b: c}"),
        ("a . b [ ?c ] . ?d . `e-f`", "a.b[?c].?d.`e-f`"),
        (". a ( ) . b ( c , d )", ".a().b(c, d)"),
        ("0x1F + 07u + 1e3 + .5", "0x1F + 07u + 1e3 + .5"),
    ],
)
def test_spelling(written: str, printed: str) -> None:
    assert format_expr(read_expression(written)) == printed
    assert read_expression(printed) == read_expression(written)


def test_the_sample_holds_every_class_of_the_tree() -> None:
    source = Source("f", (Path(__file__).parent / "samples/everything.kdsl").read_text(encoding="utf-8"))
    modules = (tree, expression_tree, profile_tree, device_tree)
    classes = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, expression_tree.Node)
    }
    bases = {expression_tree.Node, tree.Statement, tree.Declared}
    assert classes - _classes(parse_file(source).file) == bases


def _classes(node: object) -> set[type]:
    if isinstance(node, tuple):
        return set().union(*map(_classes, node))
    if not isinstance(node, expression_tree.Node):
        return set()
    fields = (getattr(node, name) for name in node.__dataclass_fields__ if name != "span")
    return {type(node)}.union(*map(_classes, fields))


def test_a_declaration_alone() -> None:
    result = parse_file(Source("f", "kdsl 1\n/// Doc.\npredicate   X{require a else 'b'}  // end\n"))
    assert result.file is not None
    expected = "/// Doc.\npredicate X {\n  require a\n    else 'b'\n}  // end"
    assert format_declaration(result.file.declarations[0]) == expected


A, B, C = (letter * 32 for letter in "abc")


@pytest.mark.parametrize(
    "body, lines",
    [
        (f"({A} || {B} || {C}) && d", [f"({A}", f"   || {B}", f"   || {C})", "  && d"]),
        (f"!({A} || {B} || {C})", [f"!({A}", f"    || {B}", f"    || {C})"]),
        (f"({A} + {B} + {C}).f()", [f"({A}", f"   + {B}", f"   + {C}).f()"]),
        (f"{A} || {B} || {C} ? d : e", [A, f"  || {B}", f"  || {C}", "  ? d", "  : e"]),
        (f"{A} && ({B} || {C} || {A})", [A, f"  && ({B}", f"   || {C}", f"   || {A})"]),
        (f"f({A}{B}, {A} || {B} || {C})", [f"f({A}{B},", f"  {A}", f"    || {B}", f"    || {C})"]),
    ],
)
def test_no_line_of_a_function_stands_left_of_its_body(body: str, lines: list[str]) -> None:
    source = Source("f", f"kdsl 1\nfn f(): bool = {body}\n")
    result = parse_file(source)
    assert result.file is not None
    printed = format_file(result.file)
    expected = ["fn f(): bool =", *(f"  {line}" for line in lines)]
    assert printed.splitlines()[-len(expected) :] == expected
    again = parse_file(Source("f", printed))
    assert again.file == result.file
    assert again.file is not None and format_file(again.file) == printed


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_sample(path: Path) -> None:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    result = parse_file(source)
    assert result.diagnostics == ()
    assert result.file is not None
    printed = format_file(result.file)
    assert printed == path.with_suffix(".formatted").read_text(encoding="utf-8")
    long = [
        line
        for line in printed.splitlines()
        if len(line) > WIDTH and "else" not in line and "///" not in line
    ]
    assert long == []
