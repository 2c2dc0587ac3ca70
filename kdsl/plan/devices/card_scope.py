"""Expressions of a section of a device over columns: a row is a card."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.compiler import Lowering
from kdsl.plan.columns.logic import Operand
from kdsl.plan.columns.rule import NO_NODE, BodyColumns
from kdsl.plan.compile.passes.inline import substitute
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope

_MOST_PARTS: Final = 2_000
"""The most parts of an expression with its `let`s: each use of a `let` is a copy of its value."""


class CardLowering:
    """Compiles the expressions of a section of which some slots, in `varying`, differ from card to card."""

    def __init__(self, scope: RuleScope, functions: CompiledFunctions, varying: Iterable[int]) -> None:
        self.slots = tuple(varying)
        self._varying = frozenset(self.slots)
        self._needs = scope.needs
        columns = BodyColumns(functions, NO_NODE, self._varying, scope.closure, scope.needs)
        self._lowering = Lowering(columns, frozenset(), self._varying)
        # The values of `let`s that differ from card to card, and the number of their parts.
        self._lets: dict[int, TypedExpr] = {}
        self._sizes: dict[int, int] = {}
        for slot, value in scope.definitions.items():
            if self.varies(value):
                self._sizes[slot] = self._size(value)
                self._lets[slot] = self._with_lets(value) if self._sizes[slot] <= _MOST_PARTS else value

    def lower(self, expr: TypedExpr) -> Operand:
        """Compile an expression; NotColumnar if it has no form over columns."""
        if self._size(expr) > _MOST_PARTS:
            raise NotColumnar
        return self._lowering.lower(self._with_lets(expr))

    def varies(self, *exprs: TypedExpr) -> bool:
        """Return whether one of some values may differ from card to card."""
        return any(not self._needs(each).isdisjoint(self._varying | self._lets.keys()) for each in exprs)

    def _with_lets(self, expr: TypedExpr) -> TypedExpr:
        # INVARIANT: a `let` binds slots of its own, and is not used inside itself: they need no new names.
        return substitute(expr, self._lets, _same)

    def _size(self, expr: TypedExpr) -> int:
        return sum([self._sizes.get(part.slot, 1) if isinstance(part, Var) else 1 for part in walk(expr)])


def _same(bound: TypedExpr) -> Var:
    assert isinstance(bound, Var)
    return bound
