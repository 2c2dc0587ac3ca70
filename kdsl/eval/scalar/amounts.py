"""Quantities without objects: expressions about amounts compute in plain ints.

`pod.requests[r] <= node.allocatable[r] - node.requested[r]` makes no `Quantity` this way. The amounts are the
`nanos` of `kdsl.base.quantity` with its bounds, so the results are the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from kdsl.base.quantity import INT64_MAX, NANOS_PER_MILLI, NANOS_PER_UNIT, Quantity, divide_toward_zero
from kdsl.base.resources import CPU
from kdsl.check.model.typed import CallOf, Const, TypedExpr
from kdsl.check.model.types import QUANTITY
from kdsl.eval.functions.quantities import QUANTITY_OVERFLOW
from kdsl.eval.ir import Known
from kdsl.eval.scalar.frame import Closure, Compile, Frame, constant
from kdsl.eval.values import EvalError, Value, checked_int

_LIMIT = INT64_MAX * NANOS_PER_UNIT

_COMPARE: Mapping[str, Callable[[Value, Value], Value]] = {
    "less_quantity": operator.lt,
    "less_equals_quantity": operator.le,
    "greater_quantity": operator.gt,
    "greater_equals_quantity": operator.ge,
    "equals": operator.eq,
    "not_equals": operator.ne,
}


def compile_on_amounts(expr: CallOf, compile: Compile) -> Closure | None:
    """Compile a call that takes quantities and returns another type; None for any other call."""
    if expr.overload == "quantity_as_integer":
        return _as_integer(amount(expr.args[0], compile))
    if len(expr.args) != 2 or any(arg.type != QUANTITY for arg in expr.args):
        return None
    left, right = (amount(arg, compile) for arg in expr.args)
    match expr.overload:
        case "less_equals_quantity":
            return lambda frame: left(frame) <= right(frame)
        case "greater_quantity":
            return lambda frame: left(frame) > right(frame)
        case "divide_quantity":
            return lambda frame: checked_int(divide_toward_zero(left(frame), _divisor(right(frame))))
        case "ratio_quantity":
            return lambda frame: left(frame) / _divisor(right(frame))
        case overload if overload in _COMPARE:
            compare = _COMPARE[overload]
            return lambda frame: compare(left(frame), right(frame))
    return None


def amount(expr: TypedExpr, compile: Compile) -> Closure:
    """Compile an expression of type quantity to its nanos."""
    if isinstance(expr, Known):
        return constant(expr.value.nanos)
    if isinstance(expr, CallOf):
        match expr.overload, expr.args:
            case "index_resources", (resources, name):
                return _resource(compile(resources), name, compile)
            case "add_quantity" | "subtract_quantity", (left, right):
                return _sum(expr.overload, amount(left, compile), amount(right, compile))
            case "multiply_quantity_int64", (left, right):
                return _product(amount(left, compile), compile(right))
            case "multiply_int64_quantity", (left, right):
                return _product(amount(right, compile), compile(left))
    boxed = compile(expr)
    return lambda frame: boxed(frame).nanos


def _resource(resources: Closure, name: TypedExpr, compile: Compile) -> Closure:
    if isinstance(name, Const):
        key = name.value
        unit = NANOS_PER_MILLI if key == CPU else NANOS_PER_UNIT
        return lambda frame: resources(frame).amount(key) * unit
    key_of = compile(name)

    def read(frame: Frame) -> Value:
        key = key_of(frame)
        return resources(frame).amount(key) * (NANOS_PER_MILLI if key == CPU else NANOS_PER_UNIT)

    return read


def _sum(overload: str, left: Closure, right: Closure) -> Closure:
    def add(frame: Frame) -> Value:
        nanos = left(frame) + right(frame)
        if -_LIMIT <= nanos <= _LIMIT:
            return nanos
        raise EvalError(QUANTITY_OVERFLOW)

    def subtract(frame: Frame) -> Value:
        nanos = left(frame) - right(frame)
        if -_LIMIT <= nanos <= _LIMIT:
            return nanos
        raise EvalError(QUANTITY_OVERFLOW)

    return add if overload == "add_quantity" else subtract


def _product(left: Closure, factor: Closure) -> Closure:
    def multiply(frame: Frame) -> Value:
        nanos = left(frame) * factor(frame)
        if -_LIMIT <= nanos <= _LIMIT:
            return nanos
        raise EvalError(QUANTITY_OVERFLOW)

    return multiply


def _as_integer(quantity: Closure) -> Closure:
    def convert(frame: Frame) -> Value:
        units, rest = divmod(quantity(frame), NANOS_PER_UNIT)
        if rest:
            raise EvalError(f"quantity `{Quantity(units * NANOS_PER_UNIT + rest)}` is not a whole number")
        return units

    return convert


def _divisor(nanos: int) -> int:
    if nanos == 0:
        raise EvalError("division by zero")
    return nanos
