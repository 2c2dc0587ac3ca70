"""CEL's set extension. Items only have equality, so every pair may be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdsl.eval.functions.operators import in_list
from kdsl.eval.values import EvalError, Value

MAX_COMPARISONS = 1 << 20
"""The most pairs of items that one call compares."""


def _bounded(compare: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    def checked(left: Value, right: Value) -> bool:
        if len(left) * len(right) > MAX_COMPARISONS:
            raise EvalError("the lists are too long to be compared as sets")
        return compare(left, right)

    return checked


def contains(items: Value, wanted: Value) -> bool:
    return all(in_list(item, items) for item in wanted)


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "sets.contains": _bounded(contains),
    "sets.equivalent": _bounded(lambda left, right: contains(left, right) and contains(right, left)),
    "sets.intersects": _bounded(lambda left, right: any(in_list(item, right) for item in left)),
}
