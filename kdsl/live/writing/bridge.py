"""Runs requests on the event loop for threads that block, such as those of plugins' ports.

A port may also be called on the scheduling thread, while a statement is discarded. That thread never blocks:
the request is sent, and its failure is only logged.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final, TypeVar

T = TypeVar("T")

TIMEOUT: Final = 60.0
_LOG: Final = logging.getLogger(__name__)


class BridgeError(Exception):
    """A request has no result: it took too long, or the event loop does not run (any more)."""


class Bridge:
    """Runs coroutines on one event loop for other threads."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waited: set[Future[Any]] = set()
        self._sent: set[Future[Any]] = set()
        self._loop_thread = 0
        self._scheduling_thread = 0

    def connect(self) -> None:
        """Use the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()

    def disconnect(self) -> None:
        """Stop; waiting calls raise BridgeError."""
        self._loop = None
        for running in tuple(self._waited):
            running.cancel()

    def claim_thread(self) -> None:
        """Mark the present thread as the scheduling thread."""
        self._scheduling_thread = threading.get_ident()

    @property
    def may_wait(self) -> bool:
        """Return whether the present thread may block."""
        return threading.get_ident() not in (self._loop_thread, self._scheduling_thread)

    def call(self, work: Coroutine[Any, Any, T], timeout: float = TIMEOUT) -> T:
        """Run a coroutine and return its result within `timeout` seconds; raise BridgeError without one."""
        loop = self._loop
        if loop is None or loop.is_closed() or not self.may_wait:
            work.close()
            raise BridgeError("requests cannot be sent: the event loop does not run")
        running = asyncio.run_coroutine_threadsafe(work, loop)
        self._waited.add(running)
        try:
            return running.result(timeout)
        except CancelledError:
            raise BridgeError("the scheduler stops") from None
        except TimeoutError:
            if running.done():
                raise
            running.cancel()
            raise BridgeError(f"no answer within {timeout:g}s") from None
        finally:
            self._waited.discard(running)

    def send(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine without waiting for it; its exceptions are logged."""
        loop = self._loop
        if loop is None or loop.is_closed():
            work.close()
            return
        sent = asyncio.run_coroutine_threadsafe(_logged(work), loop)
        self._sent.add(sent)
        sent.add_done_callback(self._sent.discard)

    async def settle(self, timeout: float) -> None:
        """Wait until all work that was sent has ended, `timeout` seconds at most; on the event loop."""
        sent = [asyncio.wrap_future(each) for each in tuple(self._sent)]
        if sent:
            await asyncio.wait(sent, timeout=max(0.0, timeout))


async def _logged(work: Coroutine[Any, Any, object]) -> None:
    try:
        problem = await work
    except Exception:  # noqa: BLE001 - no caller waits for it
        _LOG.exception("a request without a waiting caller raised an error")
        return
    if problem is not None:
        _LOG.warning("a request without a waiting caller failed: %s", problem)
