"""Calls of functions of plugins: arguments are passed as plain Python, and results are checked.

A plugin may raise anything and return anything. Both become an `EvalError` that names it, so only the calling
rule fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kdsl.base.containment import ForeignError, contain, items_of, kind_name, origin_of
from kdsl.base.quantity import Quantity
from kdsl.check.model.rule_set import ExternalFn
from kdsl.check.model.types import Type
from kdsl.eval.nodelist import LISTS
from kdsl.eval.scalar.frame import Closure, Frame
from kdsl.eval.scalar.meter import spend, spend_on
from kdsl.eval.values import (
    NONE,
    Duration,
    EvalError,
    Optional,
    Timestamp,
    Value,
    checked_duration,
    checked_int,
    checked_list,
    checked_text,
    checked_timestamp,
    checked_uint,
    from_key,
    to_map,
)
from kdsl.hooks.faults import lines_of

_PLAIN: Final[dict[str, tuple[type, Callable[[Any], Value] | None]]] = {
    "bool": (bool, None),
    "int": (int, checked_int),
    "uint": (int, checked_uint),
    "double": (float, None),
    "string": (str, checked_text),
    "bytes": (bytes, checked_text),
    "timestamp": (int, checked_timestamp),
    "duration": (int, checked_duration),
    "quantity": (Quantity, None),
}
"""The Python class of results for each type without parts, and the check of one; times and durations are
nanoseconds.
"""


def compile_external(fn: ExternalFn, args: Sequence[Closure]) -> Closure:
    """Compile a call; it costs the declared cost, and steps for the size of arguments and result."""

    def call(frame: Frame) -> Value:
        values = [arg(frame) for arg in args]
        spend(frame, fn.cost)
        spend_on(frame, values)
        result = call_external(fn, values)
        spend_on(frame, (result,))
        return result

    return call


def call_external(fn: ExternalFn, values: Sequence[Value]) -> Value:
    """Call the function with values of its types; EvalError if it raises or returns another type."""
    try:
        result = contain(fn.call, *map(to_python, values))
    except ForeignError as error:
        lines = lines_of(origin_of(error).__traceback__)
        raise EvalError(f"{_name(fn)} raised {error}", lines) from error
    try:
        return from_python(result, fn.result)
    except EvalError as error:
        raise EvalError(f"{_name(fn)} did not return {fn.result}: {error.message}") from None


def to_python(value: Value) -> Any:
    """Return a value in the form that functions of plugins take: without the wrappers of the language."""
    match value:
        case Timestamp(ns=ns) | Duration(ns=ns):
            return ns
        case Optional():
            return to_python(value.value) if value.present else None
        case _ if isinstance(value, LISTS):
            return tuple(map(to_python, value))
        case dict():
            return {from_key(key): to_python(each) for key, each in value.items()}
        case _:
            return value


def from_python(value: Any, type_: Type) -> Value:
    """Return the result of a function as a value of its declared type; EvalError if it is none."""
    match type_:
        case Type("list", (item,)):
            _expect(issubclass(type(value), (tuple, list)), value)
            items = items_of(value) or ()
            return checked_list((from_python(each, item) for each in items), len(items))
        case Type("map", (key, item)):
            _expect(issubclass(type(value), dict), value)
            entries = tuple(dict.items(value))  # `dict`'s own: a subclass may return others
            return to_map((from_python(name, key), from_python(each, item)) for name, each in entries)
        case Type("optional", (item,)):
            return NONE if value is None else Optional(from_python(value, item))
        case Type(name):
            # Compare the class itself, not by `isinstance`: neither True nor a number of numpy is an int.
            kind, check = _PLAIN[name]
            _expect(type(value) is kind, value)
            return value if check is None else check(value)


def _expect(fits: bool, value: Any) -> None:
    if not fits:
        raise EvalError(f"it is {kind_name(value)}")


def _name(fn: ExternalFn) -> str:
    return f"`{fn.qualified}` of plugin `{fn.plugin}`"
