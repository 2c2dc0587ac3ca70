"""Lists, maps and optionals; lists as sets, CEL's set extension."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import chain

from kdsl.base.quantity import MAX_NANOS, ZERO, Quantity
from kdsl.base.resources import NOTHING
from kdsl.eval.functions import quantities
from kdsl.eval.functions.operators import in_list
from kdsl.eval.nodelist import StringList
from kdsl.eval.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    Duration,
    EvalError,
    Optional,
    UInt,
    Value,
    checked_duration,
    checked_list,
    checked_uint,
    equals,
    kind_of,
    overflow,
)


def _first(items: Value, wanted: Value, places: Iterable[int]) -> int:
    return next((place for place in places if equals(items[place], wanted)), -1)


def extreme(best: Callable[[Value], Value], name: str) -> Callable[[Value], Value]:
    """Return a function for the first of the best items, which is `max` or `min` of Python."""

    def pick(items: Value) -> Value:
        if not items:
            raise EvalError(f"{name} of an empty list")
        return best(items)

    return pick


def _is_sorted(items: Value) -> bool:
    return all(map(operator.le, items, items[1:]))


def _distinct(items: Value) -> Value:
    if items.__class__ is StringList:
        return items.distinct()
    return tuple(dict.fromkeys(items))


def _slice(items: Value, start: int, end: int) -> tuple[Value, ...]:
    if not 0 <= start <= end <= len(items):
        raise EvalError(f"no slice {start} to {end} of a list of {len(items)}")
    return tuple(items[start:end])


def _sort_by(items: Value, keys: Value) -> tuple[Value, ...]:
    """Return the items in the order of their keys, stably."""
    return tuple([items[place] for place in sorted(range(len(keys)), key=keys.__getitem__)])


def _flatten(items: Value, depth: int = 1) -> Value:
    """Flatten lists in a list, `depth` times; other items stay."""
    if depth < 0:
        raise EvalError(f"flatten to a depth of {depth}")
    for _ in range(depth):
        if not any(kind_of(item) == "list" for item in items):
            break
        runs = [item if kind_of(item) == "list" else (item,) for item in items]
        items = checked_list(chain.from_iterable(runs), sum(map(len, runs)))
    return items


def _sum_double(items: Value) -> float:
    # `sum` of Python 3.12 compensates rounding errors; adding one by one gives the same on every version.
    return reduce(operator.add, items, 0.0)


def _sum_int(items: Value) -> int:
    # Every partial sum is checked, as if the items were added with `+`.
    total = 0
    for item in items:
        total += item
        if not INT_MIN <= total <= INT_MAX:
            raise overflow()
    return total


def _sum_quantity(items: Value) -> Quantity:
    # As if the items were added with `+`, without a call for each of them.
    nanos, written = 0, ZERO.format
    for item in items:
        written = written if nanos else item.format
        nanos += item.nanos
        if not -MAX_NANOS <= nanos <= MAX_NANOS:
            raise quantities.overflow()
    return Quantity(nanos, written)


def is_zero(value: Value) -> bool:
    """Return whether `value` is null, false, zero or empty."""
    kind = kind_of(value)
    if kind in ("timestamp", "duration"):
        return bool(value.ns == 0)
    if kind == "quantity":
        return bool(value.is_zero)
    if kind == "optional":
        return not value.present
    if kind in ("null_type", "bool", "int", "uint", "double", "string", "bytes", "list", "map", "resources"):
        return not value
    return False


def value_of(optional: Optional) -> Value:
    if optional.present:
        return optional.value
    raise EvalError("optional.none() has no value")


LONGEST_RANGE = 10_000


def number_range(end: int) -> tuple[int, ...]:
    """Return 0 up to `end`, without it."""
    if end > LONGEST_RANGE:
        raise EvalError(f"a range has at most {LONGEST_RANGE} numbers")
    return tuple(range(end))


MAX_COMPARISONS = 1 << 20
"""The most pairs of items that one call on sets compares: items only have equality."""


def _of_sets(compare: Callable[[Value, Value], bool]) -> Callable[[Value, Value], bool]:
    def checked(left: Value, right: Value) -> bool:
        if len(left) * len(right) > MAX_COMPARISONS:
            raise EvalError("the lists are too long to be compared as sets")
        return compare(left, right)

    return checked


def _contains(items: Value, wanted: Value) -> bool:
    return all(in_list(item, items) for item in wanted)


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "sets.contains": _of_sets(_contains),
    "sets.equivalent": _of_sets(lambda left, right: _contains(left, right) and _contains(right, left)),
    "sets.intersects": _of_sets(lambda left, right: any(in_list(item, right) for item in left)),
    "lists.range": number_range,
    "size": len,
    "list_sum_int": _sum_int,
    "list_sum_uint": lambda items: reduce(
        lambda total, item: checked_uint(int(total) + int(item)), items, UInt(0)
    ),
    "list_sum_double": _sum_double,
    "list_sum_duration": lambda items: reduce(
        lambda total, item: checked_duration(total.ns + item.ns), items, Duration(0)
    ),
    "list_sum_quantity": _sum_quantity,
    "list_sum_resources": lambda items: reduce(quantities.add, items, NOTHING),
    "min": extreme(min, "min"),
    "max": extreme(max, "max"),
    "isSorted": _is_sorted,
    "sort": lambda items: tuple(sorted(items)),
    "@sortBy": _sort_by,
    "slice": _slice,
    "first": lambda items: Optional(items[0]) if items else NONE,
    "last": lambda items: Optional(items[-1]) if items else NONE,
    "list_reverse": lambda items: tuple(reversed(items)),
    "flatten": _flatten,
    "distinct": _distinct,
    "list_index_of": lambda items, wanted: _first(items, wanted, range(len(items))),
    "list_last_index_of": lambda items, wanted: _first(items, wanted, reversed(range(len(items)))),
    "optional.of": Optional,
    "optional.ofNonZeroValue": lambda value: NONE if is_zero(value) else Optional(value),
    "optional.none": lambda: NONE,
    "hasValue": lambda optional: optional.present,
    "value": value_of,
    "or": lambda first, second: first if first.present else second,
    "orValue": lambda optional, default: optional.value if optional.present else default,
}
