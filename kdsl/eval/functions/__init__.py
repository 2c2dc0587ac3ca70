"""Implementations of the declared functions: one per overload id of `kdsl.check.library`.

A test holds the two lists equal. Implementations take and return values of `kdsl.eval.values`, raise only
`EvalError`, and trust the types that their overload declares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdsl.eval.functions import (
    collections,
    conversions,
    encoders,
    formats,
    networks,
    numbers,
    operators,
    quantities,
    sets,
    strings,
    times,
    urls,
    versions,
)
from kdsl.eval.values import Value

__all__ = ["IMPLEMENTATIONS"]

_MODULES = (
    *(operators, conversions, times, collections, sets, strings, encoders, numbers),
    *(quantities, versions, networks, urls, formats),
)

IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    overload: implementation
    for module in _MODULES
    for overload, implementation in module.IMPLEMENTATIONS.items()
}
