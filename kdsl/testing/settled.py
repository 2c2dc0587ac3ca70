"""Conditions that the parameters of a profile settle: no pod and no node can give them another value.

`addedAffinity.size() == 0` is true in every profile that adds no affinity: a case in which it is false is a
case of another profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kdsl.check.model.rule_set import CheckedForEach
from kdsl.check.model.traversal import children, expressions_of, walk
from kdsl.check.model.typed import CallOf, Comprehension, Const, ListOf, Macro, MapOf, TypedExpr, Var
from kdsl.testing.literals import named_in, parts_in

_INTEGERS: Final = {
    "_==_": lambda one, other: one == other,
    "_!=_": lambda one, other: one != other,
    "_<_": lambda one, other: one < other,
    "_<=_": lambda one, other: one <= other,
    "_>_": lambda one, other: one > other,
    "_>=_": lambda one, other: one >= other,
}


@dataclass(slots=True)
class SettledConditions:
    """Finds settled conditions in one rule; `named` are the expressions of its names, by slot.

    `amounts` are the slots of variables that iterate over the amounts of `resources`.
    """

    named: dict[int, TypedExpr]
    amounts: frozenset[int]

    @staticmethod
    def of(part: object) -> SettledConditions:
        """Return the finder for a checked rule."""
        named = named_in(part)
        amounts: set[int] = set()
        for each in parts_in(part):
            if isinstance(each, CheckedForEach) and _is_table_of_amounts(each.iterable, each.variables):
                amounts.add(each.variables[1].slot)
        for expr in expressions_of(part):
            for inner in walk(expr):
                if isinstance(inner, Comprehension) and _is_table_of_amounts(inner.iterable, inner.variables):
                    amounts.add(inner.variables[1].slot)
        loops = {
            variable.slot
            for each in parts_in(part)
            if isinstance(each, CheckedForEach)
            for variable in each.variables
        }
        return SettledConditions(
            {slot: expr for slot, expr in named.items() if slot not in loops}, frozenset(amounts)
        )

    def settled(self, part: object) -> Iterator[TypedExpr]:
        """Yield the expressions of a rule that always have one value, or are never computed."""
        for each in parts_in(part):
            if isinstance(each, CheckedForEach) and self.is_empty(each.iterable):
                for expr in expressions_of([each.where, each.body]):
                    yield from walk(expr)
        for expr in expressions_of(part):
            yield from self._within(expr)

    def _within(self, expr: TypedExpr) -> Iterator[TypedExpr]:
        if self.truth(expr) is not None:
            # The deciding part needs no case, and the other parts have no effect.
            yield from walk(expr)
            return
        for child in children(expr):
            yield from self._within(child)

    def truth(self, expr: TypedExpr) -> bool | None:
        """Return the constant value of a condition; None where it depends on pods and nodes."""
        match expr:
            case Const(value=bool() as value):
                return value
            case Var(slot=slot) if slot in self.named:
                return self.truth(self.named[slot])
            case CallOf(function="!_", args=(inner,)):
                truth = self.truth(inner)
                return None if truth is None else not truth
            case CallOf(function="_&&_" | "_||_" as function, args=args):
                return _joined([self.truth(arg) for arg in args], decides=function == "_||_")
            case CallOf(function="@in", args=(_, table)):
                return False if self.is_empty(table) else None
            case CallOf(function=function, args=(left, right)) if function in _INTEGERS:
                if self._is_amount_above_zero(function, left, right):
                    return True
                values = self._integer(left), self._integer(right)
                known = values[0] is not None and values[1] is not None
                return bool(_INTEGERS[function](*values)) if known else None
            case Comprehension(macro=Macro.ALL | Macro.EXISTS as macro, iterable=iterable):
                return macro is Macro.ALL if self.is_empty(iterable) else None
        return None

    def is_empty(self, expr: TypedExpr) -> bool:
        """Return whether a list or map is always empty."""
        match expr:
            case ListOf(items=items):
                return not items
            case MapOf(entries=entries):
                return not entries
            case Var(slot=slot) if slot in self.named:
                return self.is_empty(self.named[slot])
            case Comprehension(macro=macro, iterable=iterable, where=where, body=body):
                is_filtered = macro is Macro.FILTER and self.truth(body) is False
                is_cut = where is not None and self.truth(where) is False
                return is_filtered or is_cut or self.is_empty(iterable)
        return False

    def _integer(self, expr: TypedExpr) -> int | None:
        match expr:
            case Const(value=int() as value):
                return value
            case Var(slot=slot) if slot in self.named:
                return self._integer(self.named[slot])
            case CallOf(function="size", args=(inner,)) if self.is_empty(inner):
                return 0
        return None

    def _is_amount_above_zero(self, function: str, left: TypedExpr, right: TypedExpr) -> bool:
        """Return whether this is `amount > quantity("0")` in a loop over resources: those have no zero
        amounts.
        """
        is_amount = isinstance(left, Var) and left.slot in self.amounts
        match right:
            case CallOf(function="quantity", args=(Const(value="0" | 0),)):
                return function == "_>_" and is_amount
        return False


def _is_table_of_amounts(iterable: TypedExpr, variables: tuple[Var, ...]) -> bool:
    return iterable.type.name == "resources" and len(variables) == 2


def _joined(values: Iterable[bool | None], *, decides: bool) -> bool | None:
    """Return the value of `||` (which true `decides`) or `&&` (which false does)."""
    known = list(values)
    if decides in known:
        return decides
    return None if None in known else not decides
