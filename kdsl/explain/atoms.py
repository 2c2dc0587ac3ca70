"""The parts of a condition that decided its value: the smallest ones, with their values."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.check.model.types import Type
from kdsl.eval.values import Value


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of an expression: its text in the rule file, and its value."""

    source: str
    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Handle:
    """A place that a condition compares with a value: setting it to `value` may make the condition hold.

    `on` is `pod` or `node`; `key` is the key of a map, empty for a field that is no map.
    """

    on: str
    field: str
    key: str
    value: Value


@dataclass(frozen=True, slots=True)
class Atom:
    """A condition without `&&`, `||` and `!` of its own, and its value (`holds`).

    `parts` are its operators and operands in turn, empty for a fact in the words of a plugin; `items` the
    variables of the loops around it, innermost last. `shortage` is the share of the larger side by which a
    comparison of numbers fails, None for any other atom. `error` is set where it has no value.
    """

    source: str
    parts: tuple[str | Shown, ...]
    holds: bool
    items: tuple[Shown, ...] = ()
    shortage: float | None = None
    handles: tuple[Handle, ...] = ()
    error: str = ""
