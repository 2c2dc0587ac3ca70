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
    """Return whether a value is of a declared type; `dyn` and type parameters take any value."""
    if declared.name == "dyn" or declared.name.startswith("'"):
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
    return declared.name == "dyn" or declared.name.startswith("'")


def _accepts(overload: Overload, args: tuple[Value, ...]) -> bool:
    declared = _arguments(overload, len(args))
    return len(declared) == len(args) and all(map(is_of, args, declared))


def _may_accept(overload: Overload, kinds: tuple[str, ...]) -> bool:
    """Return whether an overload takes some arguments of these kinds."""
    declared = _arguments(overload, len(kinds))
    return len(declared) == len(kinds) and all(
        _is_open(each) or each.name == kind for each, kind in zip(declared, kinds, strict=True)
    )


def _arguments(overload: Overload, count: int) -> tuple[Type, ...]:
    """Return the declared arguments; the last one is repeated if the overload takes any number."""
    declared = overload.args
    if overload.variadic and count > len(declared):
        declared = (*declared, *declared[-1:] * (count - len(declared)))
    return declared


def _any_list(overload: Overload) -> Overload:
    """Let `flatten` take a list of anything, as CEL does at run time; items that are no lists stay."""
    return replace(overload, args=(Type("list", (DYN,)), *overload.args[1:]))


def _any_index(overload: Overload) -> Overload:
    """Let any whole number be a list index, as CEL does at run time; the implementation checks it."""
    container, index = overload.args
    return replace(overload, args=(container, DYN)) if index == INT else overload


def _unknown(function: str) -> Callable[..., Value]:
    def call(*args: Value) -> Value:
        raise EvalError(f"unknown function `{function}`")

    return call


@cache
def dispatcher(function: str, member: bool) -> Callable[..., Value]:
    """Return a function that applies the first matching overload; EvalError if none matches."""
    if function not in LIBRARY:
        return _unknown(function)
    overloads = tuple(
        (overload, IMPLEMENTATIONS[overload.id])
        for overload in LIBRARY[function].overloads
        if overload.member == member
    )
    # Overloads that take anything come last.
    overloads = tuple(sorted(overloads, key=lambda entry: DYN in entry[0].args))
    if function in ("_[_]", "_[?_]"):
        overloads = tuple((_any_index(overload), implementation) for overload, implementation in overloads)
    if function == "flatten":
        overloads = tuple((_any_list(overload), implementation) for overload, implementation in overloads)

    @cache
    def by_classes(*classes: type) -> Callable[..., Value] | None:
        """Return the implementation for arguments of these classes, None if it depends on their items."""
        kinds = tuple(map(kind_of_class, classes))
        for overload, implementation in overloads:
            if _may_accept(overload, kinds):
                is_sure = all(all(map(_is_open, declared.args)) for declared in overload.args)
                return implementation if is_sure else None
        return None

    def call(*args: Value) -> Value:
        known = by_classes(*map(type, args))
        if known is not None:
            return known(*args)
        for overload, implementation in overloads:
            if _accepts(overload, args):
                return implementation(*args)
        raise EvalError(f"no such overload: {function}({', '.join(map(kind_of, args))})")

    return call
