"""Frames and closures: what compiled expressions are and what they run on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kdsl.plan.values import EvalError, Value

Frame = list[Value]
"""One slot per variable of a rule or function, and the meter of `meter.py` at the end. A slot of a lazy
variable holds `UNSET` until it is first read.
"""

Closure = Callable[[Frame], Value]
"""A compiled expression; raises EvalError where it has no value."""

Compile = Callable[..., Closure]
"""The compiler as its parts see it: a `TypedExpr` to a closure."""


class _Unset:
    """The mark of a lazy variable that was not read yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True, slots=True)
class _Failed:
    """What a lazy variable holds that has no value."""

    message: str


def constant(value: Value) -> Closure:
    return lambda frame: value


def slot_reader(slot: int) -> Closure:
    return lambda frame: frame[slot]


def lazy_reader(slot: int, compute: Closure) -> Closure:
    """Read a slot, filling it first where it is `UNSET`; what fails once fails at every reading."""

    def read(frame: Frame) -> Value:
        value = frame[slot]
        if value is UNSET:
            try:
                value = compute(frame)
            except EvalError as error:
                value = _Failed(error.message)
            frame[slot] = value
        if value.__class__ is _Failed:
            raise EvalError(value.message)
        return value

    return read


def failing(message: str) -> Closure:
    def fail(frame: Frame) -> Value:
        raise EvalError(message)

    return fail


def apply(implementation: Callable[..., Value], args: list[Closure]) -> Closure:
    """Call `implementation` with the values of `args`, from left to right."""
    match args:
        case []:
            return lambda frame: implementation()
        case [only]:
            return lambda frame: implementation(only(frame))
        case [first, second]:
            return lambda frame: implementation(first(frame), second(frame))
        case [first, second, third]:
            return lambda frame: implementation(first(frame), second(frame), third(frame))
    return lambda frame: implementation(*[arg(frame) for arg in args])
