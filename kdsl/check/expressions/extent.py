"""Bounds on the depth of expressions through the names they use, so that neither the checker nor a rule
recurses without end.

The parser bounds the depth of one text; this module bounds chains of `let`s, functions and parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.traversal import children, walk
from kdsl.check.model.typed import Bind, CallFn, TypedExpr, Var
from kdsl.lang.expression_tree import Node
from kdsl.lang.parser import MAX_DEPTH

MAX_PARTS = 20_000
"""The largest number of parts in the value of a file parameter, which is copied to every use."""

CALL_LEVELS = 4
"""The depth that a call of a function adds to its body's."""


class Extents:
    """The depths of one rule, function or parameter. `fns` are the depths of functions by qualified name."""

    def __init__(self, fns: Mapping[str, int]) -> None:
        self._fns = fns
        self._variables: dict[int, int] = {}

    def name(self, variable: Var, depth: int) -> None:
        """Record the depth of the value of a `let`."""
        self._variables[variable.slot] = depth

    def depth(self, expr: TypedExpr) -> int:
        """Return the maximum depth of the expression, with its `let`s and functions expanded."""
        match expr:
            case Var(slot=slot):
                return 1 + self._variables.get(slot, 0)
            case Bind(variable=variable, value=value):
                self.name(variable, self.depth(value))
            case CallFn(fn=fn):
                arguments = max(map(self.depth, expr.args), default=0)
                return CALL_LEVELS + max(self._fns.get(fn, 0), arguments)
            case _:
                pass
        return 1 + max(map(self.depth, children(expr)), default=0)


def is_too_large(expr: TypedExpr) -> bool:
    """Return whether an expression has more than `MAX_PARTS` parts."""
    return any(at >= MAX_PARTS for at, _ in enumerate(walk(expr)))


def source_depth(tree: Node) -> int:
    """Return the depth of a syntax tree, computed without recursion."""
    deepest, pending = 0, [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        for each in fields(node):
            value = getattr(node, each.name)
            parts = value if isinstance(value, tuple) else (value,)
            pending += [(part, depth + 1) for part in parts if isinstance(part, Node)]
    return deepest


def too_deep(what: str, span: Span) -> Diagnostic:
    """Return the error for a chain that would nest deeper than one expression may."""
    return Diagnostic(
        CheckCode.TOO_DEEP,
        f"{what} reaches deeper than {MAX_DEPTH} levels",
        span,
        "counted with the `let`s, functions and parameters that it is made of",
        help=("shorten the chain: range over a list instead of naming each step",),
    )


def too_large(what: str, span: Span) -> Diagnostic:
    """Return the error for a parameter that would be copied too often."""
    title = f"{what} has more than {MAX_PARTS} parts"
    why = "counted with the parameters that it is made of"
    return Diagnostic(CheckCode.TOO_LARGE, title, span, why, help=("write the value itself",))
