"""Repeats requests that are idempotent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kdsl.live.writing.outcomes import Done, Lost, Refused, Result

T = TypeVar("T")

DELAYS: Final = (0.01, 0.05, 0.25)
"""Seconds before the second, third and fourth try."""
_PASSING: Final = (409, 500, 503)


def may_pass(result: Result[T]) -> bool:
    """Return whether the same request may succeed later."""
    match result:
        case Lost():
            return True
        case Refused():
            return result.status in _PASSING and not result.is_recreated
    return False


async def repeated(
    call: Callable[[], Awaitable[Result[T]]], goes_on: Callable[[], bool] = lambda: True
) -> Result[T]:
    """Send a request up to four times, while it may succeed and `goes_on`; return the last outcome.

    The sender has already honoured Retry-After.
    """
    result = await call()
    for delay in DELAYS:
        if not may_pass(result):
            break
        await asyncio.sleep(delay)
        if not goes_on():
            break
        result = await call()
    return result


async def updated(
    read: Callable[[], Awaitable[Result[T]]],
    change: Callable[[T], T | None],
    write: Callable[[T], Awaitable[Result[T]]],
    present: T | None = None,
) -> Result[T]:
    """Read an object, change it and write it, up to four times; return the object, or the last failure.

    `change` returns None for no change. An object that is `present` is read only after a failure.
    """
    for delay in (0.0, *DELAYS):
        await asyncio.sleep(delay)
        found: Result[T] = await repeated(read) if present is None else Done(present)
        present = None
        if not isinstance(found, Done):
            return found
        changed = change(found.value)
        if changed is None:
            return found
        result = await write(changed)
        if not may_pass(result):
            break
    return result
