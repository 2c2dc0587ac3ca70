"""Turns lark's tree of an expression into the syntax tree. One method per rule of the grammar.

`file_builder.py` adds the rules of blocks. Errors that the grammar cannot express (ranges, escapes) become
diagnostics here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lark import Token, Tree, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.lang.codes import LangCode
from kdsl.lang.expression_tree import (
    Binary,
    Call,
    Conditional,
    Expr,
    Ident,
    Index,
    ListExpr,
    ListItem,
    Literal,
    LiteralKind,
    MapEntry,
    MapExpr,
    Select,
    Unary,
)
from kdsl.lang.literals import (
    INT64_MAX,
    UINT64_MAX,
    BadEscape,
    decode_bytes,
    decode_string,
    read_double,
    read_integer,
)
from kdsl.lang.tree import File

Locate = Callable[[int, int], Span]
"""Converts a range of the parsed text to a span of its file."""


@v_args(inline=True, meta=True)
class ExpressionBuilder(Transformer_NonRecursive[Token, Expr | File]):
    """Builds expressions. Collects `diagnostics`; an expression with an error is built all the same."""

    def __init__(self, locate: Locate) -> None:
        super().__init__(visit_tokens=False)
        self._locate = locate
        self._diagnostics: list[Diagnostic] = []
        self._grouped: set[tuple[int, int]] = set()
        self._lonely_minimum: dict[int, Diagnostic] = {}

    def _span(self, place: Meta | Token) -> Span:
        assert place.start_pos is not None and place.end_pos is not None
        return self._locate(place.start_pos, place.end_pos)

    def build(self, parsed: Tree[Token]) -> tuple[Expr | File, tuple[Diagnostic, ...]]:
        """Build the tree of a parsed text, with its diagnostics. A builder is used once."""
        built = self.transform(parsed)
        return built, (*self._diagnostics, *self._lonely_minimum.values())

    # ---- operators -----------------------------------------------------------------------------------------

    def expression(self, meta: Meta, expr: Expr) -> Expr:
        return expr

    def group(self, meta: Meta, expr: Expr) -> Expr:
        self._grouped.add((expr.span.start, expr.span.end))
        return expr

    def conditional(self, meta: Meta, condition: Expr, then: Expr, otherwise: Expr) -> Conditional:
        return Conditional(condition, then, otherwise, span=self._span(meta))

    def binary(self, meta: Meta, left: Expr, op: Token, right: Expr) -> Binary:
        return Binary(str(op), left, right, span=self._span(meta))

    def unary(self, meta: Meta, *parts: Token | Expr) -> Expr:
        *ops, operand = parts
        assert not isinstance(operand, Token)
        if len(ops) == 1 and ops[0] == "-":
            return self._negate(self._span(meta), operand)
        for op in reversed(ops):
            assert isinstance(op, Token)
            # Parentheses around the operand belong to the operator's text.
            assert op.start_pos is not None and meta.end_pos is not None
            operand = Unary(str(op), operand, span=self._locate(op.start_pos, meta.end_pos))
        return operand

    def _negate(self, span: Span, operand: Expr) -> Expr:
        """Negate as CEL does: a minus before a number belongs to the number, so `-1.f()` is `(-1).f()`."""
        chain: list[Select | Call | Index] = []
        innermost = operand
        while (innermost.span.start, innermost.span.end) not in self._grouped:
            match innermost:
                case Select(operand=inner) | Index(operand=inner) | Call(target=inner) if inner is not None:
                    chain.append(innermost)
                    innermost = inner
                case Literal(kind=LiteralKind.INT | LiteralKind.DOUBLE):
                    return self._rebuild(chain, self._negative(span, innermost), span)
                case _:
                    break
        return Unary("-", operand, span=span)

    def _negative(self, span: Span, literal: Literal) -> Expr:
        signed = span.to(literal.span)
        if self._lonely_minimum.pop(literal.span.start, None):
            return Literal(LiteralKind.INT, -(INT64_MAX + 1), f"-{literal.raw}", span=signed)
        return Unary("-", literal, span=signed)

    @staticmethod
    def _rebuild(chain: list[Select | Call | Index], innermost: Expr, span: Span) -> Expr:
        for link in reversed(chain):
            whole = span.to(link.span)
            if isinstance(link, Call):
                innermost = replace(link, target=innermost, span=whole)
            else:
                innermost = replace(link, operand=innermost, span=whole)
        return innermost

    # ---- members -------------------------------------------------------------------------------------------

    def select(self, meta: Meta, operand: Expr, optional: Token | None, field: Token) -> Select:
        escaped = field.type == "ESCAPED_FIELD"
        name = field[1:-1] if escaped else str(field)
        return Select(operand, name, optional=optional is not None, escaped=escaped, span=self._span(meta))

    def index(self, meta: Meta, operand: Expr, optional: Token | None, index: Expr) -> Index:
        return Index(operand, index, optional=optional is not None, span=self._span(meta))

    def method(self, meta: Meta, target: Expr, name: Token, args: tuple[Expr, ...]) -> Call:
        return Call(str(name), target, args, span=self._span(meta), name_span=self._span(name))

    def call(self, meta: Meta, name: Token, args: tuple[Expr, ...]) -> Call:
        return Call(str(name), None, args, span=self._span(meta), name_span=self._span(name))

    def rooted_call(self, meta: Meta, name: Token, args: tuple[Expr, ...]) -> Call:
        return Call(str(name), None, args, rooted=True, span=self._span(meta), name_span=self._span(name))

    def arguments(self, meta: Meta, *args: Expr | None) -> tuple[Expr, ...]:
        return tuple(arg for arg in args if arg is not None)

    def ident(self, meta: Meta, name: Token) -> Ident:
        return Ident(str(name), span=self._span(meta))

    def rooted_ident(self, meta: Meta, name: Token) -> Ident:
        return Ident(str(name), rooted=True, span=self._span(meta))

    # ---- constants and aggregates --------------------------------------------------------------------------

    def list_item(self, meta: Meta, optional: Token | None, value: Expr) -> ListItem:
        return ListItem(value, optional=optional is not None, span=self._span(meta))

    def list_expr(self, meta: Meta, *items: ListItem | None) -> ListExpr:
        return ListExpr(tuple(item for item in items if item is not None), span=self._span(meta))

    def map_entry(self, meta: Meta, optional: Token | None, key: Expr, value: Expr) -> MapEntry:
        return MapEntry(key, value, optional=optional is not None, span=self._span(meta))

    def map_expr(self, meta: Meta, *entries: MapEntry | None) -> MapExpr:
        return MapExpr(tuple(entry for entry in entries if entry is not None), span=self._span(meta))

    def literal(self, meta: Meta, token: Token) -> Literal:
        span = self._span(meta)
        raw = str(token)
        value: bool | int | float | str | bytes | None
        match token.type:
            case "STRING":
                decoded = decode_string(raw)
                self._report_escapes(token, decoded.problems)
                return Literal(LiteralKind.STRING, decoded.text, raw, span=span)
            case "BYTES":
                content = decode_bytes(raw)
                self._report_escapes(token, content.problems)
                return Literal(LiteralKind.BYTES, content.value, raw, span=span)
            case "TRUE" | "FALSE":
                return Literal(LiteralKind.BOOL, raw == "true", raw, span=span)
            case "NULL":
                return Literal(LiteralKind.NULL, None, raw, span=span)
            case "FLOAT":
                value = read_double(raw)
                if value is None:
                    self._report_range(span, raw, "double", "the largest is about 1.8e308")
                return Literal(LiteralKind.DOUBLE, value or 0.0, raw, span=span)
            case "UINT":
                value = read_integer(raw[:-1])
                if value is None or value > UINT64_MAX:
                    self._report_range(span, raw, "uint", f"the largest is {UINT64_MAX}u")
                return Literal(LiteralKind.UINT, value or 0, raw, span=span)
        value = read_integer(raw)
        if value is None or value > INT64_MAX:
            help_ = f"the largest is {INT64_MAX}"
            if value is not None and value <= UINT64_MAX:
                help_ += f"; write `{raw}u` for a uint"
            self._report_range(span, raw, "int", help_)
            if value == INT64_MAX + 1:
                # The smallest int contains this number; whether a minus stands before it is found later.
                self._lonely_minimum[span.start] = self._diagnostics.pop()
        return Literal(LiteralKind.INT, value or 0, raw, span=span)

    def _report_range(self, span: Span, raw: str, type_name: str, help_line: str) -> None:
        shown = raw if len(raw) <= 40 else f"{raw[:37]}…"
        self._diagnostics.append(
            Diagnostic(
                LangCode.NUMBER_RANGE, f"`{shown}` is out of range for {type_name}", span, help=(help_line,)
            )
        )

    def _report_escapes(self, token: Token, problems: tuple[BadEscape, ...]) -> None:
        start = token.start_pos
        assert start is not None
        for problem in problems:
            self._diagnostics.append(
                Diagnostic(
                    LangCode.BAD_ESCAPE,
                    problem.problem,
                    self._locate(start + problem.start, start + problem.end),
                    help=('write `\\\\` for a backslash, or a raw string: r"…"',),
                )
            )
