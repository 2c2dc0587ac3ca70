"""Calls of plugins' code: every exception becomes one kind of exception with a text, except Ctrl-C.

All code of plugins runs through `contain`: imports, constructors, hooks and functions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, ParamSpec, TypeVar

from kdsl.base.errors import KdslError
from kdsl.base.interrupt import is_interrupt, members

P = ParamSpec("P")
T = TypeVar("T")

MAX_TEXT: Final = 2_000
"""The largest number of characters of a plugin's exception in a report."""

_NAME: Final = type.__dict__["__name__"].__get__


class ForeignError(KdslError):
    """Code of a plugin raised an exception; the text describes it."""


class _Running(threading.local):
    depth = 0


_running: Final = _Running()


def is_foreign() -> bool:
    """Return whether this thread is running code of a plugin."""
    return _running.depth > 0


def contain(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call code of a plugin. Raises ForeignError for every exception, including SystemExit and the like.

    Ctrl-C is not caught: the user ends the process, not a plugin.
    """
    _running.depth += 1
    try:
        return call(*args, **kwargs)
    except BaseException as cause:
        if is_interrupt(cause):
            raise
        raise ForeignError(describe(cause)) from cause
    finally:
        _running.depth -= 1


def origin_of(cause: BaseException) -> BaseException:
    """Return the plugin's exception where `contain` wrapped it, else the exception itself."""
    origin = cause.__cause__ if isinstance(cause, ForeignError) else None
    return cause if origin is None else origin


def describe(cause: BaseException) -> str:
    """Return the class and the text of an exception, and of the members of a group; never raises."""
    if isinstance(cause, ForeignError):
        return str(cause)
    name = kind_name(cause)
    text = _text_of(cause)
    if isinstance(cause, BaseExceptionGroup):
        first = members(cause)[0]
        text += f": {'an exception group' if isinstance(first, BaseExceptionGroup) else describe(first)}"
    return f"{name}: {text}" if text else name


def _text_of(cause: BaseException) -> str:
    try:
        return _exact(str(cause))
    except BaseException as other:
        if is_interrupt(other):
            raise
        return f"its text raises {kind_name(other)}"


_ITERATE: Final[Mapping[type, Callable[[Any], Iterator[Any]]]] = {
    kind: vars(kind)["__iter__"] for kind in (tuple, list, frozenset, set, dict)
}


def items_of(values: Any) -> tuple[Any, ...] | None:
    """Return the stored items of a tuple, list, set or dict: a subclass may iterate over others, without end.

    None for any other value.
    """
    for kind, iterate in _ITERATE.items():
        if issubclass(type(values), kind):
            return tuple(iterate(values))
    return None


def kind_name(value: object) -> str:
    """Return the name of a value's class, even if a metaclass overrides it."""
    return _exact(_NAME(type(value)))


def _exact(text: Any) -> str:
    """Return a plain text of bounded length: a subclass of `str` may have methods of its own."""
    exact: str = str.__getitem__(text, slice(MAX_TEXT + 1))
    return exact if len(exact) <= MAX_TEXT else f"{exact[:MAX_TEXT]}…"
