"""Arithmetic, comparison, membership and indexing. Integers are checked, division truncates.

Operators that do not evaluate all of their arguments (`&&`, `||`, `?:`) are control flow, in the back ends.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from kdsl.eval.functions import quantities
from kdsl.eval.values import (
    INT_MIN,
    NONE,
    EvalError,
    Optional,
    TotalMap,
    UInt,
    Value,
    checked_duration,
    checked_int,
    checked_list,
    checked_text,
    checked_timestamp,
    checked_uint,
    equals,
    kind_of,
    to_key,
)

_WITH_DOUBLE = ("int64_double", "uint64_double", "double_int64", "double_uint64")


def divide_int(left: int, right: int) -> int:
    """Return the quotient, truncated toward zero."""
    if right == 0:
        raise EvalError("division by zero")
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def modulo_int(left: int, right: int) -> int:
    """Return the remainder, with the sign of `left`."""
    if right == 0:
        raise EvalError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvalError("integer overflow")
    remainder = abs(left) % abs(right)
    return remainder if left >= 0 else -remainder


def divide_uint(left: int, right: int) -> UInt:
    if right == 0:
        raise EvalError("division by zero")
    return UInt(left // right)


def modulo_uint(left: int, right: int) -> UInt:
    if right == 0:
        raise EvalError("modulus by zero")
    return UInt(left % right)


def divide_double(left: float, right: float) -> float:
    """Return the IEEE quotient: infinity or NaN for a divisor of zero."""
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def list_index(index: Value, count: int) -> int:
    """Return `index` as a place in a list of `count` items; a whole uint or double will do."""
    place = index
    if place.__class__ is float:
        if not place.is_integer():
            raise EvalError(f"invalid index: {index}")
        place = int(place)
    elif kind_of(place) not in ("int", "uint"):
        raise EvalError(f"invalid index of type {kind_of(place)}")
    if not 0 <= place < count:
        raise EvalError(f"index out of range: {place} in a list of {count}")
    return int(place)


def index_list(items: Value, index: Value) -> Value:
    # The hot path: an int in the list.
    if index.__class__ is int and 0 <= index < len(items):
        return items[index]
    return items[list_index(index, len(items))]


def index_map(entries: Mapping[Value, Value], key: Value) -> Value:
    try:
        # The hot path: most keys are texts.
        return entries[key if key.__class__ is str else to_key(key)]
    except KeyError:
        raise EvalError(f"no such key: {key}") from None


def find_in_list(items: Value, index: Value) -> Optional:
    """Return the item at `index`, none if the list is shorter."""
    if index.__class__ is int and not 0 <= index < len(items):
        return NONE
    return Optional(index_list(items, index))


def find_in_map(entries: Mapping[Value, Value], key: Value) -> Optional:
    """Return the value of `key`, none if the map has no such key."""
    # The hot path: most keys are texts.
    found = key if key.__class__ is str else to_key(key)
    if found in entries or entries.__class__ is TotalMap:
        return Optional(entries[found])
    return NONE


def through(find: Callable[[Value, Value], Optional]) -> Callable[[Optional, Value], Optional]:
    """Return `find` for optional containers: a missing container has no items."""

    def find_optional(container: Optional, key: Value) -> Optional:
        return find(container.value, key) if container.present else NONE

    return find_optional


def in_list(value: Value, items: Value) -> bool:
    if value.__class__ is str:
        # No value of another type equals a text.
        return value in items
    return any(equals(value, item) for item in items)


def in_map(key: Value, entries: Mapping[Value, Value]) -> bool:
    return to_key(key) in entries


def not_equals(left: Value, right: Value) -> bool:
    return not equals(left, right)


def _ordering(
    name: str, word: str, compare: Callable[[Value, Value], Value]
) -> dict[str, Callable[..., Value]]:
    """Return the overloads of an ordering operator.

    Between an integer and a double the order is that of doubles, as the conformance suite requires: 2**63 - 1
    is not less than 2.0**63. Equality is exact.
    """

    def as_doubles(left: Value, right: Value) -> Value:
        return compare(float(left), float(right))

    return {name: compare, **{f"{word}_{kinds}": as_doubles for kinds in _WITH_DOUBLE}}


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "!_": operator.not_,
    "_==_": equals,
    "_!=_": not_equals,
    **_ordering("_<_", "less", operator.lt),
    **_ordering("_<=_", "less_equals", operator.le),
    **_ordering("_>_", "greater", operator.gt),
    **_ordering("_>=_", "greater_equals", operator.ge),
    "in_list": in_list,
    "in_map": in_map,
    "in_resources": lambda name, resources: name in resources,
    "index_list": index_list,
    "index_map": index_map,
    "index_resources": lambda resources, name: resources[name],
    "optional_list_index_value": through(find_in_list),
    "optional_map_index_value": through(find_in_map),
    "list_optindex_optional_int": find_in_list,
    "map_optindex_optional_value": find_in_map,
    "optional_list_optindex_optional_int": through(find_in_list),
    "optional_map_optindex_optional_value": through(find_in_map),
    "add_int64": lambda left, right: checked_int(left + right),
    "add_uint64": lambda left, right: checked_uint(int(left) + int(right)),
    "add_double": operator.add,
    "add_string": lambda left, right: checked_text(left + right),
    "add_bytes": lambda left, right: checked_text(left + right),
    "add_list": lambda left, right: checked_list((*left, *right), len(left) + len(right)),
    "add_duration_duration": lambda left, right: checked_duration(left.ns + right.ns),
    "add_duration_timestamp": lambda left, right: checked_timestamp(left.ns + right.ns),
    "add_timestamp_duration": lambda left, right: checked_timestamp(left.ns + right.ns),
    "add_quantity": quantities.add,
    "subtract_int64": lambda left, right: checked_int(left - right),
    "subtract_uint64": lambda left, right: checked_uint(int(left) - int(right)),
    "subtract_double": operator.sub,
    "subtract_duration_duration": lambda left, right: checked_duration(left.ns - right.ns),
    "subtract_timestamp_duration": lambda left, right: checked_timestamp(left.ns - right.ns),
    "subtract_timestamp_timestamp": lambda left, right: checked_duration(left.ns - right.ns),
    "subtract_quantity": quantities.subtract,
    "multiply_int64": lambda left, right: checked_int(left * right),
    "multiply_uint64": lambda left, right: checked_uint(int(left) * int(right)),
    "multiply_double": operator.mul,
    "multiply_quantity_int64": quantities.multiply,
    "multiply_int64_quantity": lambda left, right: quantities.multiply(right, left),
    "divide_int64": divide_int,
    "divide_uint64": divide_uint,
    "divide_double": divide_double,
    "divide_quantity_int64": quantities.divide_by_int,
    "divide_quantity": quantities.divide,
    "modulo_int64": modulo_int,
    "modulo_uint64": modulo_uint,
    "negate_int64": lambda value: checked_int(-value),
    "negate_double": operator.neg,
}
