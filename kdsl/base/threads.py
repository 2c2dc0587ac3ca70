"""Calls with a limit on the time to wait for them, each on its own thread.

Python cannot end a thread: an abandoned call continues in the background. Its thread is a daemon, so the
process exits without it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")
Job = tuple[Future[Any], Callable[[], Any]]


class Threads:
    """Daemon threads, used again when their call is over."""

    def __init__(self) -> None:
        self._idle: deque[SimpleQueue[Job]] = deque()

    def begin(self, call: Callable[[], T]) -> Future[T]:
        """Start a call. `result(seconds)` of the returned future waits for it, or raises TimeoutError."""
        begun: Future[T] = Future()
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name="kdsl-call", daemon=True).start()
        inbox.put((begun, call))
        return begun

    def _work(self, inbox: SimpleQueue[Job]) -> None:
        while True:
            begun, call = inbox.get()
            # From here on the future cannot be cancelled, so somebody takes the result.
            if not begun.set_running_or_notify_cancel():
                self._idle.append(inbox)
                continue
            try:
                result = call()
            except BaseException as cause:  # noqa: BLE001 - whoever waits gets it
                self._idle.append(inbox)
                begun.set_exception(cause)
            else:
                self._idle.append(inbox)
                begun.set_result(result)
                del result
            # An idle thread keeps no objects alive.
            del begun, call


THREADS: Final = Threads()
"""The threads of the process."""
