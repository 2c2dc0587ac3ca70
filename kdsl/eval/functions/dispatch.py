"""Overloads chosen at run time, for calls whose argument types are `dyn`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from kdsl.check.library import LIBRARY, Overload
from kdsl.check.model.types import DYN, INT, Type
from kdsl.eval.functions import IMPLEMENTATIONS
from kdsl.eval.values import EvalError, Value, from_key, kind_of, kind_of_class


def is_of(value: Value, declared: Type) -> bool:
    """Return whether a value is of a declared type."""
    if _is_open(declared):
        return True
    if declared.name != kind_of(value):
        return False
    match declared.name:
        case "list":
            (item,) = declared.args
            return _is_open(item) or all(is_of(element, item) for element in value)
        case "map":
            key, item = declared.args
            return (_is_open(key) and _is_open(item)) or all(
                is_of(from_key(name), key) and is_of(element, item) for name, element in value.items()
            )
        case "optional":
            return not value.present or is_of(value.value, declared.args[0])
    return True


def _is_open(declared: Type) -> bool:
    """Return whether a declared type takes any value: `dyn` and type parameters do."""
    return declared.name == "dyn" or declared.name.startswith("'")


def _arguments(overload: Overload, count: int) -> tuple[Type, ...]:
    """Return the declared arguments; the last one is repeated if the overload takes any number."""
    declared = overload.args
    if overload.variadic and count > len(declared):
        declared = (*declared, *declared[-1:] * (count - len(declared)))
    return declared


def _at_run_time(function: str, overload: Overload) -> Overload:
    """Let any whole number be a list index, and `flatten` take any list, as CEL does at run time; the
    implementations check them.
    """
    others = overload.args[1:]
    if function == "flatten":
        return replace(overload, args=(Type("list", (DYN,)), *others))
    if function in ("_[_]", "_[?_]") and others == (INT,):
        return replace(overload, args=(overload.args[0], DYN))
    return overload


def _unknown(function: str) -> Callable[..., Value]:
    def call(*args: Value) -> Value:
        raise EvalError(f"unknown function `{function}`")

    return call


@cache
def dispatcher(function: str, member: bool) -> Callable[..., Value]:
    """Return a function that applies the first matching overload; EvalError if none matches."""
    if function not in LIBRARY:
        return _unknown(function)
    declared = [each for each in LIBRARY[function].overloads if each.member == member]
    # Overloads that take anything come last.
    declared.sort(key=lambda overload: DYN in overload.args)
    overloads = [(_at_run_time(function, each), IMPLEMENTATIONS[each.id]) for each in declared]

    @cache
    def candidates(*classes: type) -> list[tuple[tuple[Type, ...], Callable[..., Value]]]:
        """Return the overloads that may take arguments of these classes: the types of the arguments, none if
        their classes decide, and the implementation.
        """
        found = []
        for overload, implementation in overloads:
            types = _arguments(overload, len(classes))
            if len(types) == len(classes) and all(
                _is_open(each) or each.name == kind_of_class(cls)
                for each, cls in zip(types, classes, strict=True)
            ):
                is_sure = all(_is_open(part) for each in types for part in each.args)
                found.append(((() if is_sure else types), implementation))
        return found

    def call(*args: Value) -> Value:
        for types, implementation in candidates(*map(type, args)):
            if not types or all(map(is_of, args, types)):
                return implementation(*args)
        raise EvalError(f"no such overload: {function}({', '.join(map(kind_of, args))})")

    return call
