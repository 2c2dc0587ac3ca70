"""Direct forms of calls with known types, which rules make for every node.

Each form returns the value of `kdsl.eval.functions`; a test holds them equal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from kdsl.check.model.typed import CallOf, Const, TypedExpr
from kdsl.check.model.types import BOOL, BYTES, DURATION, INT, RESOURCES, STRING, TIMESTAMP, UINT
from kdsl.eval.ir import Known
from kdsl.eval.scalar.amounts import compile_on_amounts
from kdsl.eval.scalar.frame import Closure, Compile, Frame
from kdsl.eval.scalar.meter import has_weight, metered
from kdsl.eval.values import INT_MAX, INT_MIN, EvalError, Value, equals

_PLAIN_EQUALITY = frozenset((BOOL, INT, UINT, STRING, BYTES, TIMESTAMP, DURATION))
"""Types for which equality in Python, within the type, is equality in CEL."""


def compile_fast(expr: CallOf, compile: Compile) -> Closure | None:
    """Compile a call in a special form; None if there is none."""
    on_amounts = compile_on_amounts(expr, compile)
    if on_amounts is not None or len(expr.args) != 2:
        return on_amounts
    left, right = expr.args
    word = expr.overload.partition("_")[0]
    match expr.overload:
        case "add_int64" | "subtract_int64" | "multiply_int64":
            return _arithmetic(word, compile(left), compile(right))
        case "equals" | "not_equals":
            return _equality(expr.function, left, right, compile)
        case "in_list":
            return _member(left, right, compile)
        case "in_map" if left.type == STRING:
            return _contains(compile(left), compile(right))
        case "index_map" if left.type.args[0] == right.type == STRING:
            return _look_up(compile(left), compile(right))
    if word in ("less", "greater") and left.type == right.type != RESOURCES:
        return _comparison(expr.function, compile(left), right, compile)
    return None


def _arithmetic(word: str, left: Closure, right: Closure) -> Closure:
    def add(frame: Frame) -> Value:
        result = left(frame) + right(frame)
        if INT_MIN <= result <= INT_MAX:
            return result
        raise EvalError("integer overflow")

    def subtract(frame: Frame) -> Value:
        result = left(frame) - right(frame)
        if INT_MIN <= result <= INT_MAX:
            return result
        raise EvalError("integer overflow")

    def multiply(frame: Frame) -> Value:
        result = left(frame) * right(frame)
        if INT_MIN <= result <= INT_MAX:
            return result
        raise EvalError("integer overflow")

    return {"add": add, "subtract": subtract, "multiply": multiply}[word]


def _comparison(function: str, left: Closure, right: TypedExpr, compile: Compile) -> Closure:
    if isinstance(right, Const):
        bound: Value = right.value
        return {
            "_<_": lambda frame: left(frame) < bound,
            "_<=_": lambda frame: left(frame) <= bound,
            "_>_": lambda frame: left(frame) > bound,
            "_>=_": lambda frame: left(frame) >= bound,
        }[function]
    other = compile(right)
    return {
        "_<_": lambda frame: left(frame) < other(frame),
        "_<=_": lambda frame: left(frame) <= other(frame),
        "_>_": lambda frame: left(frame) > other(frame),
        "_>=_": lambda frame: left(frame) >= other(frame),
    }[function]


def _equality(function: str, left: TypedExpr, right: TypedExpr, compile: Compile) -> Closure:
    wanted = function == "_==_"
    first = compile(left)
    if left.type != right.type or left.type not in _PLAIN_EQUALITY:
        second = compile(right)
        if has_weight(function, (left.type, right.type)):
            return metered(lambda one, other: equals(one, other) is wanted, [first, second])
        return lambda frame: equals(first(frame), second(frame)) is wanted
    if isinstance(right, Const):
        value: Value = right.value
        return (lambda frame: first(frame) == value) if wanted else (lambda frame: first(frame) != value)
    compare: Callable[[Value, Value], Value] = operator.eq if wanted else operator.ne
    second = compile(right)
    return lambda frame: compare(first(frame), second(frame))


def _member(value: TypedExpr, items: TypedExpr, compile: Compile) -> Closure | None:
    """Compile membership of a string or int in a constant list as a look-up in a set."""
    if not isinstance(items, Known) or value.type not in (STRING, INT) or items.type.args != (value.type,):
        return None
    members = frozenset(items.value)
    first = compile(value)
    return lambda frame: first(frame) in members


def _contains(key: Closure, entries: Closure) -> Closure:
    return lambda frame: key(frame) in entries(frame)


def _look_up(entries: Closure, key: Closure) -> Closure:
    def read(frame: Frame) -> Value:
        name = key(frame)
        try:
            return entries(frame)[name]
        except KeyError:
            raise EvalError(f"no such key: {name}") from None

    return read
