"""Arithmetic on `resources`, name by name, by overload id. A resource that is not named is zero."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from kdsl.base.resources import Resources
from kdsl.eval.functions.quantities import bounded
from kdsl.eval.values import Value

add = bounded(operator.add)
subtract = bounded(operator.sub)


def less_equals(left: Resources, right: Resources) -> bool:
    """Return whether no resource of `left` is more than in `right`; either may name it."""
    names = left.amounts().keys() | right.amounts().keys()
    return all(left.amount(name) <= right.amount(name) for name in names)


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "add_resources": add,
    "subtract_resources": subtract,
    "less_equals_resources": less_equals,
    "greater_equals_resources": lambda left, right: less_equals(right, left),
}
