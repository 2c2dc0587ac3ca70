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
    found = _decider(body, variable.slot, None, fns)
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


def _decider(expr: TypedExpr, slot: int, names: _Names, fns: Fns) -> _Decider | None:
    """Return the expression that decides about the value in `slot`, in the question's variables."""
    match expr:
        case CallOf(function="_&&_"):
            return _decider(operands(expr)[0], slot, names, fns)
        case CallOf(function="_?_:_", args=(condition, _, Const(value=otherwise))) if not otherwise:
            # False and 0 count as nothing; sums of doubles are left out.
            return _decider(condition, slot, names, fns)
        case CallOf(function=function, args=(receiver, Var(slot=at))) if at == slot and function in _OF_POD:
            return _named(receiver, names)
        case CallOf(function=function, args=(Var(slot=at), pod)) if at == slot and function == _OF_TERM:
            return _named(pod, names)
        case CallFn(fn=name, args=args):
            fn = fns[name]
            own = next((at for at, arg in enumerate(args) if isinstance(arg, Var) and arg.slot == slot), None)
            if own is None or isinstance(fn, ExternalFn):
                return None
            found = [(param.slot, _named(arg, names)) for param, arg in zip(fn.params, args, strict=True)]
            inside = {param: named for param, named in found if named is not None}
            return _decider(fn.body, fn.params[own].slot, inside, fns)
        case Comprehension(macro=Macro.ALL, variables=(each,), where=None):
            # The first term decides: the others are read only if it matches.
            items = _named(expr.iterable, names)
            if items is None or items.is_first:
                return None
            inside = {**(names or {}), each.slot: _Decider(items.expr, True)}
            return _decider(expr.body, slot, inside, fns)
    return None


def _named(expr: TypedExpr, names: _Names) -> _Decider | None:
    """Return the outside expression for one inside functions and macros; None if there is none."""
    if names is None:
        return _Decider(expr)
    return names.get(expr.slot) if isinstance(expr, Var) else None
