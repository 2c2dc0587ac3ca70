"""Implementations of the declared functions: one per overload of `kdsl.check.library`.

A module lists them by the id of an overload, or by the name of a function for its other overloads.
Implementations take and return values of `kdsl.eval.values`, raise only `EvalError`, and trust the types that
their overload declares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdsl.check.library import LIBRARY
from kdsl.eval.functions import (
    collections,
    conversions,
    encoders,
    formats,
    networks,
    numbers,
    operators,
    quantities,
    strings,
    times,
    urls,
)
from kdsl.eval.values import Value

__all__ = ["BY_NAME", "IMPLEMENTATIONS"]

_MODULES = (
    *(operators, conversions, times, collections, strings, encoders, numbers),
    *(quantities, networks, urls, formats),
)

BY_NAME: Mapping[str, Callable[..., Value]] = {
    name: implementation for module in _MODULES for name, implementation in module.IMPLEMENTATIONS.items()
}
"""The implementations by overload id, or by function name for its other overloads."""

IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    overload.id: BY_NAME[name]
    for function in LIBRARY.values()
    for overload in function.overloads
    if (name := overload.id if overload.id in BY_NAME else function.name) in BY_NAME
}
"""All implementations by overload id. Control flow and searches have none: the back ends compile them."""
