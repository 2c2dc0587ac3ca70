"""Questions to the scheduling thread, which alone may look at cache, queue and engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class TakesMessages(Protocol):
    """Where messages for the scheduling thread go; `kdsl.live.inbox.Inbox` is one."""

    def post(self, message: Any) -> None: ...


async def ask(inbox: TakesMessages, question: Callable[[], T]) -> T:
    """Return the answer to a question that is asked between two decisions; raise what it raises."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(set_answer: Callable[[], None]) -> None:
        # Whoever asked may have gone away.
        if not answer.done():
            set_answer()

    def look() -> None:
        try:
            value = question()
        except Exception as error:  # noqa: BLE001 - it is raised where the question was asked
            failure = error
            loop.call_soon_threadsafe(settle, lambda: answer.set_exception(failure))
        else:
            loop.call_soon_threadsafe(settle, lambda: answer.set_result(value))

    inbox.post(look)
    return await answer
