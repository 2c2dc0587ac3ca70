"""The selector that decides a question about pods or terms before any other part.

`t.matches(p) ? t.weight : 0` is 0 for every pod that the term does not match, at equal steps. So a count over
a cluster looks up the pods that the term matches, and asks only those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kdsl.check.model.rule_set import ExternalFn, Fns
from kdsl.check.model.typed import CallFn, CallOf, Comprehension, Const, Macro, TypedExpr, Var
from kdsl.eval.ir import free_slots, operands
from kdsl.eval.scalar.frame import Closure, Compile, Frame
from kdsl.eval.values import EvalError, Value

_OF_TERM: Final = "PodAffinityTerm.matches"
_OF_POD: Final = frozenset((_OF_TERM, "SpreadConstraint.selects"))
_MAX_CALLS: Final = 8


@dataclass(frozen=True, slots=True)
class _Decider:
    """The expression whose value decides; `is_first` if it is a list whose first item decides."""

    expr: TypedExpr
    is_first: bool = False


_Names: TypeAlias = Mapping[int, _Decider] | None
"""The outside expressions of a function's variables; None outside of functions and macros."""


def selector_of(body: TypedExpr, variable: Var, fns: Fns, compile: Compile) -> Closure | None:
    """Return a closure for the term or constraint that decides a question about the pod in `variable`, or for
    the pod that decides one about the term there. The closure returns None if nothing decides, as with an
    empty list of terms.
    """
    found = _Search(fns).decider(body, variable.slot, None)
    if found is None or variable.slot in free_slots(found.expr):
        return None
    value = compile(found.expr)

    def decide(frame: Frame) -> Value:
        try:
            known = value(frame)
        except EvalError:
            return None  # the question itself will fail
        if found.is_first:
            return known[0] if known else None
        return known

    return decide


class _Search:
    def __init__(self, fns: Fns) -> None:
        self._fns = fns
        self._calls = 0

    def decider(self, expr: TypedExpr, slot: int, names: _Names) -> _Decider | None:
        """Return the expression that decides about the value in `slot`, in the question's variables."""
        match expr:
            case CallOf(function="_&&_"):
                return self.decider(operands(expr)[0], slot, names)
            case CallOf(function="_?_:_", args=(condition, _, Const(value=otherwise))) if not otherwise:
                # False and 0 count as nothing; sums of doubles are left out.
                return self.decider(condition, slot, names)
            case CallOf(function=function, args=(receiver, Var(slot=at))) if (
                at == slot and function in _OF_POD
            ):
                return _named(receiver, names)
            case CallOf(function=function, args=(Var(slot=at), pod)) if at == slot and function == _OF_TERM:
                return _named(pod, names)
            case CallFn():
                return self._call(expr, slot, names)
            case Comprehension(macro=Macro.ALL, variables=(each,), where=None):
                # The first term decides: the others are read only if it matches.
                items = _named(expr.iterable, names)
                if items is None or items.is_first:
                    return None
                return self.decider(expr.body, slot, {**(names or {}), each.slot: _Decider(items.expr, True)})
        return None

    def _call(self, call: CallFn, slot: int, names: _Names) -> _Decider | None:
        fn = self._fns[call.fn]
        self._calls += 1
        if isinstance(fn, ExternalFn) or self._calls > _MAX_CALLS:
            return None
        inside: dict[int, _Decider] = {}
        own: int | None = None
        for param, arg in zip(fn.params, call.args, strict=True):
            if isinstance(arg, Var) and arg.slot == slot:
                own = param.slot
            elif (named := _named(arg, names)) is not None:
                inside[param.slot] = named
        return None if own is None else self.decider(fn.body, own, inside)


def _named(expr: TypedExpr, names: _Names) -> _Decider | None:
    """Return the outside expression for one inside functions and macros; None if there is none."""
    if names is None:
        return _Decider(expr)
    return names.get(expr.slot) if isinstance(expr, Var) else None
