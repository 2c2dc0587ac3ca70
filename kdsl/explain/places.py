"""Finds the field of the pod or the node that an expression reads: the input to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.typed import CallFn, CallOf, Const, FieldOf, KeyOf, TypedExpr, Var
from kdsl.check.model.types import STRING, BindingTime
from kdsl.plan.compile.scope import CompiledFunctions

_INDEX = ("_[_]", "_[?_]")
_SAME_TEXT = ("int", "double", "quantity", "string", "orValue", "value")
"""Functions that convert a value without changing its text."""


@dataclass(frozen=True, slots=True)
class FactPlace:
    """A field of the pod or node (`on`); `key` is the expression of the key of a map field."""

    on: str
    field: str
    key: TypedExpr | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """Finds places behind names, conversions and calls of functions; `lets` are the expressions of names, by
    slot.
    """

    functions: CompiledFunctions
    lets: Mapping[int, TypedExpr]

    def of(self, expr: TypedExpr) -> FactPlace | None:
        """Return the place whose value the expression is; None for any other expression."""
        match expr:
            case Var(slot=slot) if slot in self.lets:
                return self.of(self.lets[slot])
            case FieldOf(operand=Var(name="pod" | "node" as on), field=name):
                return FactPlace(on, name)
            case CallOf(function=function, args=(operand, key)) if function in _INDEX:
                return self._entry(self.of(operand), key)
            case KeyOf(operand=operand, key=name, test=False):
                key = Const(
                    type=STRING, time=BindingTime.STATIC, reads=frozenset(), span=expr.span, value=name
                )
                return self._entry(self.of(operand), key)
            case CallOf(function=function, args=(operand, *_)) if function in _SAME_TEXT:
                return self.of(operand)
            case CallFn(fn=fn, args=args):
                return self._in_body(self.functions.fns[fn], args)
        return None

    @staticmethod
    def _entry(place: FactPlace | None, key: TypedExpr) -> FactPlace | None:
        return None if place is None or place.key is not None else replace(place, key=key)

    def _in_body(self, fn: object, args: tuple[TypedExpr, ...]) -> FactPlace | None:
        """Return the place in the body of a function; a key that depends on its arguments has no meaning
        outside.
        """
        if not isinstance(fn, CheckedFn):
            return None
        names = {param.slot: arg for param, arg in zip(fn.params, args, strict=True)}
        # A function has its own slots: its arguments are looked up with the caller's names.
        found = _Body(self.functions, {}, names, self).of(fn.body)
        is_known = found is not None and (found.key is None or isinstance(found.key, Const))
        return found if is_known else None


@dataclass(frozen=True, slots=True)
class _Body(Places):
    args: Mapping[int, TypedExpr]
    caller: Places

    def of(self, expr: TypedExpr) -> FactPlace | None:
        if isinstance(expr, Var) and expr.slot in self.args:
            return self.caller.of(self.args[expr.slot])
        return Places.of(self, expr)
