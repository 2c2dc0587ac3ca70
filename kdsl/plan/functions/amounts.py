"""Arithmetic on `resources`, name by name, by overload id. A resource that is not named is zero."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from kdsl.base.resources import Resources
from kdsl.plan.functions.quantities import QUANTITY_OVERFLOW
from kdsl.plan.values import EvalError, Value


def _bounded(compute: Callable[[Resources, Resources], Resources]) -> Callable[[Value, Value], Resources]:
    def checked(left: Value, right: Value) -> Resources:
        try:
            return compute(left, right)
        except OverflowError:
            raise EvalError(QUANTITY_OVERFLOW) from None

    return checked


add = _bounded(operator.add)
subtract = _bounded(operator.sub)


def less_equals(left: Resources, right: Resources) -> bool:
    """Tell whether no resource of `left` is more than in `right`, whichever of them names it."""
    names = left.amounts().keys() | right.amounts().keys()
    return all(left.amount(name) <= right.amount(name) for name in names)


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "add_resources": add,
    "subtract_resources": subtract,
    "less_equals_resources": less_equals,
    "greater_equals_resources": lambda left, right: less_equals(right, left),
}
