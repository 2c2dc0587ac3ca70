"""Questions to the scheduling thread, which alone may read cache, queue and engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from kdsl.live.watching.inbox import Inbox

T = TypeVar("T")


async def ask(inbox: Inbox, question: Callable[[], T]) -> T:
    """Have the scheduling thread call `question` between two decisions; return or raise its result."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(set_answer: Callable[[], None]) -> None:
        # The caller may have been cancelled.
        if not answer.done():
            set_answer()

    def evaluate() -> None:
        try:
            value = question()
        except Exception as error:  # noqa: BLE001 - the caller gets it
            failure = error
            loop.call_soon_threadsafe(settle, lambda: answer.set_exception(failure))
        else:
            loop.call_soon_threadsafe(settle, lambda: answer.set_result(value))

    inbox.post(evaluate)
    return await answer
