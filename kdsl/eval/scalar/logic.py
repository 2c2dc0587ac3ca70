"""Operators that may skip arguments: `&&`, `||`, `?:`, and `or` and `orValue` of optionals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kdsl.check.model.typed import CallOf, Const, TypedExpr
from kdsl.check.model.types import BOOL
from kdsl.eval.ir import operands
from kdsl.eval.scalar.frame import Closure, Compile, Frame, failing
from kdsl.eval.values import EvalError, Optional, Value, kind_of


def truth(expr: TypedExpr, compile: Compile) -> Closure:
    """Compile a condition: its value is a bool, or reading it is an error."""
    condition = compile(expr)
    if expr.type == BOOL:
        return condition

    def checked(frame: Frame) -> Value:
        value = condition(frame)
        if value is True or value is False:
            return value
        raise EvalError(f"no such overload: a condition of type {kind_of(value)}")

    return checked


def _truths(expr: CallOf, compile: Compile) -> list[Closure]:
    return [truth(operand, compile) for operand in operands(expr)]


def _and(expr: CallOf, compile: Compile) -> Closure:
    conditions = _truths(expr, compile)

    def evaluate(frame: Frame) -> Value:
        error: EvalError | None = None
        for condition in conditions:
            try:
                if not condition(frame):
                    return False
            except EvalError as caught:
                error = error or caught
        if error is not None:
            raise error
        return True

    return evaluate


def _or(expr: CallOf, compile: Compile) -> Closure:
    conditions = _truths(expr, compile)

    def evaluate(frame: Frame) -> Value:
        error: EvalError | None = None
        for condition in conditions:
            try:
                if condition(frame):
                    return True
            except EvalError as caught:
                error = error or caught
        if error is not None:
            raise error
        return False

    return evaluate


def _conditional(expr: CallOf, compile: Compile) -> Closure:
    condition = truth(expr.args[0], compile)
    then, otherwise = compile(expr.args[1]), compile(expr.args[2])
    return lambda frame: then(frame) if condition(frame) else otherwise(frame)


def _optional(closure: Closure, frame: Frame) -> Optional:
    value = closure(frame)
    if value.__class__ is Optional:
        return value
    raise EvalError(f"no such overload: {kind_of(value)} is not an optional")


def _first_present(expr: CallOf, compile: Compile) -> Closure:
    if len(expr.args) != _WITH_RECEIVER:
        return _wrong_number(expr)
    left, right = compile(expr.args[0]), compile(expr.args[1])

    def evaluate(frame: Frame) -> Value:
        found = _optional(left, frame)
        return found if found.present else _optional(right, frame)

    return evaluate


def _or_value(expr: CallOf, compile: Compile) -> Closure:
    if len(expr.args) != _WITH_RECEIVER:
        return _wrong_number(expr)
    left, right = compile(expr.args[0]), compile(expr.args[1])
    match expr.args[0]:
        case CallOf(function="_[?_]", args=(found, Const(value=str(key)))) if found.type.name != "optional":
            return _entry_or(compile(found), key, left, right)

    def evaluate(frame: Frame) -> Value:
        found = _optional(left, frame)
        return found.value if found.present else right(frame)

    return evaluate


def _wrong_number(expr: CallOf) -> Closure:
    """Fail at the call: the types, and so the number of arguments, are known only at run time."""
    return failing(f"no such overload: {expr.function} with {len(expr.args)} arguments")


def _entry_or(entries: Closure, key: str, find: Closure, otherwise: Closure) -> Closure:
    """Compile `entries[?"key"].orValue(otherwise)`, which most often reads a plain map."""

    def evaluate(frame: Frame) -> Value:
        found = entries(frame)
        if found.__class__ is dict or isinstance(found, Mapping):
            value = found.get(key, _MISSING)
            return otherwise(frame) if value is _MISSING else value
        optional = _optional(find, frame)
        return optional.value if optional.present else otherwise(frame)

    return evaluate


_MISSING: Final = object()
_WITH_RECEIVER: Final = 2
LAZY: Mapping[str, Callable[[CallOf, Compile], Closure]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "or": _first_present,
    "orValue": _or_value,
}
"""The compilers of these functions."""
