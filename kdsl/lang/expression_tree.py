"""Expressions in the syntax tree: CEL without message construction. `tree.py` has the statements around
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kdsl.base.span import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The base of every tree node."""

    span: Span = field(compare=False, repr=False)


class LiteralKind(StrEnum):
    NULL = "null"
    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant. `raw` is the author's spelling. `-9223372036854775808` is one literal."""

    kind: LiteralKind
    value: bool | int | float | str | bytes | None
    raw: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """`name`, or `.name` when `rooted`."""

    name: str
    rooted: bool = False


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`operand.field`, `` operand.`field` `` when `escaped`, `operand.?field` when `optional`."""

    operand: Expr
    field: str
    optional: bool = False
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(args)`, `.function(args)` when `rooted`, or `target.function(args)`; macros too."""

    function: str
    target: Expr | None
    args: tuple[Expr, ...]
    rooted: bool = False
    name_span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`operand[index]`, `operand[?index]` when `optional`."""

    operand: Expr
    index: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ListItem(Node):
    """An element of a list literal; `?expr` when `optional`."""

    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ListExpr(Node):
    items: tuple[ListItem, ...]


@dataclass(frozen=True, slots=True)
class MapEntry(Node):
    """`key: value`, or `?key: value` when `optional`."""

    key: Expr
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapExpr(Node):
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`op` is `!` or `-`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`op` is one of `|| && < <= > >= == != in + - * / %`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`condition ? then : otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


Expr = Literal | Ident | Select | Call | Index | ListExpr | MapExpr | Unary | Binary | Conditional
