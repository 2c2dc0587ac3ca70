"""Frames and closures: the form of compiled expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kdsl.base.span import Span
from kdsl.eval.values import EvalError, Value

Frame = list[Value]
"""One slot per variable of a rule or function, and the meter of `meter.py` at the end. A slot of a lazy
variable holds `UNSET` until it is first read.
"""

Closure = Callable[[Frame], Value]
"""A compiled expression; raises EvalError if it has no value."""

Compile = Callable[..., Closure]
"""The compiler as a function: a `TypedExpr` to a closure."""


class _Unset:
    """The mark of a lazy variable that was not read yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True, slots=True)
class Failed:
    """The content of a failed lazy variable: the error, its lines of a plugin that raised, and its place."""

    kind: type[EvalError]
    message: str
    code: tuple[tuple[str, int, str], ...]
    span: Span | None

    @property
    def error(self) -> EvalError:
        error = self.kind(self.message, self.code)
        error.span = self.span
        return error


def is_failure(value: Value) -> bool:
    """Return whether the slot of a lazy variable holds a failure."""
    return value.__class__ is Failed


PENDING: Final = frozenset((_Unset, Failed))
"""The classes of the objects that stand in a slot of a lazy variable without a value."""


def value_or_failure(compute: Closure, frame: Frame) -> Value:
    """Return the content of a lazy variable's slot: a value, or a failure."""
    try:
        return compute(frame)
    except EvalError as error:
        return failure(error)


def failure(error: EvalError) -> Failed:
    """Return the content of a lazy variable that failed."""
    return Failed(error.__class__, error.message, error.code, error.span)


def lazy_reader(slot: int, compute: Closure, span: Span | None = None) -> Closure:
    """Read a slot, filling it first if it is `UNSET`; a failure is repeated at every read.

    `span` is the place of a failure in `compute`, unless that has one of its own.
    """

    def read(frame: Frame) -> Value:
        value = frame[slot]
        if value is UNSET:
            try:
                value = frame[slot] = compute(frame)
            except EvalError as error:
                error.span = error.span or span
                frame[slot] = failure(error)
                raise
        elif value.__class__ is Failed:
            raise value.error
        return value

    return read


def failing(message: str) -> Closure:
    def fail(frame: Frame) -> Value:
        raise EvalError(message)

    return fail
