"""What HAMi's behaviour stands on: the live cluster, the thread that owns it, and the ways to write to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from kdsl.hooks.context import NodeAnnotator
from kdsl.live.annotations import Annotations
from kdsl.live.assembly import LiveScheduler
from kdsl.live.binding_requests import BindingRequests

T = TypeVar("T")
THREADS: Final = 8
"""So many locks are taken or given back at once; each takes some requests to the API server."""


class Asks(Protocol):
    """Asks the scheduling thread, which alone may look at the cache, between two changes."""

    async def __call__(self, question: Callable[[], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The live cluster of a process.

    `is_ready` tells whether it is known, `leads` whether this process may act by itself.
    """

    live: LiveScheduler
    ask: Asks
    is_ready: Callable[[], bool]
    leads: Callable[[], bool] = lambda: True

    @property
    def nodes(self) -> NodeAnnotator:
        """The annotations of nodes, for threads that may wait."""
        nodes = self.live.context.nodes
        # INVARIANT: a live scheduler's plugins get to see nodes.
        assert nodes is not None
        return nodes

    def now(self) -> int:
        """Return the time on the wall, in nanoseconds since 1970."""
        return self.live.options.wall.now()


class Writes:
    """Writes to the cluster, for the event loop; what of it waits runs on a few threads."""

    def __init__(self, surroundings: Surroundings) -> None:
        api = surroundings.live.api
        self.annotations, self.bindings = Annotations(api), BindingRequests(api)
        self._threads = ThreadPoolExecutor(THREADS, "node locks")

    async def on_thread(self, call: Callable[..., T], *args: Any) -> T:
        """Run what waits for the API server."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
