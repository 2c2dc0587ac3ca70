"""Quantities, resources and semantic versions, which share their comparisons.

Amounts are exact, in thousand-millionths of a unit, bounded like `kdsl.base.quantity`. A resource that is not
named is zero.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TypeVar

from kdsl.base.quantity import Quantity, parse_quantity
from kdsl.base.resources import Resources
from kdsl.base.semver import parse_semver
from kdsl.eval.values import EvalError, Value, checked_int, reading, succeeds

T = TypeVar("T")


def overflow() -> EvalError:
    """Return the error of an amount out of range."""
    return EvalError("quantity overflow")


def bounded(compute: Callable[[Value, Value], T]) -> Callable[[Value, Value], T]:
    """Make an overflow of exact arithmetic an error of the expression."""

    def checked(left: Value, right: Value) -> T:
        try:
            return compute(left, right)
        except OverflowError:
            raise overflow() from None

    return checked


add = bounded(operator.add)
subtract = bounded(operator.sub)
multiply = bounded(operator.mul)


def divide_by_int(quantity: Quantity, divisor: int) -> Quantity:
    if divisor == 0:
        raise EvalError("division by zero")
    return quantity / divisor


def divide(left: Quantity, right: Quantity) -> int:
    """Return the quotient, truncated toward zero."""
    if right.is_zero:
        raise EvalError("division by zero")
    return checked_int(left.quotient(right))


def ratio(left: Quantity, right: Quantity) -> float:
    if right.is_zero:
        raise EvalError("division by zero")
    return left.ratio(right)


to_quantity = reading(parse_quantity)
to_semver = reading(parse_semver)


def as_integer(quantity: Quantity) -> int:
    if not quantity.is_integer:
        raise EvalError(f"quantity `{quantity}` is not a whole number")
    return quantity.as_integer()


def less_equals_resources(left: Resources, right: Resources) -> bool:
    """Return whether no resource of `left` is more than in `right`; either may name it."""
    names = left.amounts().keys() | right.amounts().keys()
    return all(left.amount(name) <= right.amount(name) for name in names)


def _sign(quantity: Quantity) -> int:
    return (quantity.nanos > 0) - (quantity.nanos < 0)


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "quantity": to_quantity,
    "isQuantity": succeeds(to_quantity),
    "ratio": ratio,
    "asInteger": as_integer,
    "isInteger": lambda quantity: quantity.is_integer,
    "asApproximateFloat": lambda quantity: quantity.ratio(Quantity.of(1)),
    "sign": _sign,
    "add": add,
    "quantity_add_int": bounded(lambda quantity, units: quantity + Quantity.of(units)),
    "sub": subtract,
    "quantity_sub_int": bounded(lambda quantity, units: quantity - Quantity.of(units)),
    "semver": to_semver,
    "isSemver": succeeds(to_semver),
    "major": lambda version: checked_int(version.major),
    "minor": lambda version: checked_int(version.minor),
    "patch": lambda version: checked_int(version.patch),
    # Of quantities, and of versions.
    "isGreaterThan": operator.gt,
    "isLessThan": operator.lt,
    "compareTo": lambda left, right: (left > right) - (left < right),
    "add_resources": add,
    "subtract_resources": subtract,
    "less_equals_resources": less_equals_resources,
    "greater_equals_resources": lambda left, right: less_equals_resources(right, left),
}
