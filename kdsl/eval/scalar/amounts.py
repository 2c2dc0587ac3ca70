"""Quantities without objects: expressions about amounts compute in plain ints.

`pod.requests[r] <= node.allocatable[r] - node.requested[r]` makes no `Quantity` this way. The amounts are the
`nanos` of `kdsl.base.quantity` with its bounds, so the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kdsl.base.quantity import INT64_MAX, NANOS_PER_MILLI, NANOS_PER_UNIT, Quantity, divide_toward_zero
from kdsl.base.resources import CPU, Resources
from kdsl.check.model.typed import CallOf, Const, TypedExpr
from kdsl.check.model.types import QUANTITY
from kdsl.eval.functions.quantities import QUANTITY_OVERFLOW
from kdsl.eval.ir import Known
from kdsl.eval.values import EvalError, Value, checked_int

if TYPE_CHECKING:
    from kdsl.eval.scalar.compiler import Compiler

_LIMIT: Final = INT64_MAX * NANOS_PER_UNIT

_ORDERS: Final[Mapping[str, str]] = {
    "less_quantity": "<",
    "less_equals_quantity": "<=",
    "greater_quantity": ">",
    "greater_equals_quantity": ">=",
    "equals": "==",
    "not_equals": "!=",
}


def call_on_amounts(expr: CallOf, out: Compiler) -> str | None:
    """Write a call that takes quantities and returns another type; None for any other call."""
    if expr.overload == "quantity_as_integer":
        return f"{out.name(_whole)}({amount(expr.args[0], out)})"
    if len(expr.args) != 2 or any(arg.type != QUANTITY for arg in expr.args):
        return None
    if expr.overload in _DIVISIONS:
        left, right = (amount(arg, out) for arg in expr.args)
        return f"{out.name(_DIVISIONS[expr.overload])}({left}, {right})"
    if expr.overload not in _ORDERS:
        return None
    left, right = (amount(arg, out) for arg in expr.args)
    return f"({left} {_ORDERS[expr.overload]} {right})"


def amount(expr: TypedExpr, out: Compiler) -> str:
    """Write an expression of type quantity as its nanos."""
    if isinstance(expr, Known):
        return out.name(expr.value.nanos)
    if isinstance(expr, CallOf):
        match expr.overload, expr.args:
            case "index_resources", (resources, name):
                return _resource(resources, name, out)
            case "add_quantity", (left, right):
                return f"{out.name(_bounded)}({amount(left, out)} + {amount(right, out)})"
            case "subtract_quantity", (left, right):
                return f"{out.name(_bounded)}({amount(left, out)} - {amount(right, out)})"
            case "multiply_quantity_int64", (left, right):
                return f"{out.name(_bounded)}({amount(left, out)} * {out.text(right)})"
            case "multiply_int64_quantity", (left, right):
                return f"{out.name(_bounded)}({amount(right, out)} * {out.text(left)})"
    return f"{out.text(expr)}.nanos"


def _resource(resources: TypedExpr, name: TypedExpr, out: Compiler) -> str:
    if isinstance(name, Const):
        unit = NANOS_PER_MILLI if name.value == CPU else NANOS_PER_UNIT
        return f"({out.text(resources)}.amount({out.name(name.value)}) * {out.name(unit)})"
    # The name first, as its failure counts.
    return f"{out.name(_nanos_of)}({out.text(name)}, {out.text(resources)})"


def _nanos_of(name: str, resources: Resources) -> int:
    return resources.amount(name) * (NANOS_PER_MILLI if name == CPU else NANOS_PER_UNIT)


def _bounded(nanos: int) -> int:
    if -_LIMIT <= nanos <= _LIMIT:
        return nanos
    raise EvalError(QUANTITY_OVERFLOW)


def _whole(nanos: int) -> int:
    units, rest = divmod(nanos, NANOS_PER_UNIT)
    if rest:
        raise EvalError(f"quantity `{Quantity(units * NANOS_PER_UNIT + rest)}` is not a whole number")
    return units


def _quotient(nanos: int, divisor: int) -> int:
    return checked_int(divide_toward_zero(nanos, _divisor(divisor)))


def _ratio(nanos: int, divisor: int) -> float:
    return nanos / _divisor(divisor)


def _divisor(nanos: int) -> int:
    if nanos == 0:
        raise EvalError("division by zero")
    return nanos


_DIVISIONS: Final[Mapping[str, Callable[[int, int], Value]]] = {
    "divide_quantity": _quotient,
    "ratio_quantity": _ratio,
}
