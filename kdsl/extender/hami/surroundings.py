"""What HAMi's behaviour stands on: the live cluster, the thread that owns it, and the ways to write to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

from kdsl.base.clock import Clock
from kdsl.cluster.cache import ClusterCache
from kdsl.live.annotations import Annotations
from kdsl.live.api import Api
from kdsl.live.binding_requests import BindingRequests
from kdsl.live.bridge import Bridge
from kdsl.live.changes import Change
from kdsl.live.events import Event
from kdsl.live.known import KnownObjects
from kdsl.live.ports import PortNodeAnnotations

T = TypeVar("T")
THREADS: Final = 8
"""So many locks are taken or given back at once; each takes some requests to the API server."""


class Surroundings(Protocol):
    """The live cluster. `cache` belongs to the scheduling thread, where `ask` and `listen` call what they are
    given.
    """

    @property
    def cache(self) -> ClusterCache: ...

    @property
    def known(self) -> KnownObjects: ...

    @property
    def api(self) -> Api: ...

    @property
    def clock(self) -> Clock:
        """The clock on the wall."""
        ...

    @property
    def host(self) -> str:
        """Where this process runs, for events."""
        ...

    async def ask(self, question: Callable[[], T]) -> T:
        """Return what a question finds on the scheduling thread."""
        ...

    def listen(self, look: Callable[[Change], object]) -> None:
        """Show each change of the cluster to `look` before the cache takes it in."""
        ...

    def record(self, event: Event) -> object:
        """Have an event recorded in core/v1."""
        ...

    def is_synced(self) -> bool:
        """Tell whether the cluster is known."""
        ...

    def leads(self) -> bool:
        """Tell whether this process may act by itself: shake hands, sweep locks."""
        ...


class Writes:
    """Writes to the cluster, for the event loop; what of it waits runs on a few threads."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.annotations = Annotations(surroundings.api)
        self.bindings = BindingRequests(surroundings.api)
        self._bridge = Bridge()
        self.nodes = PortNodeAnnotations(self._bridge, surroundings.known, self.annotations)
        self._threads = ThreadPoolExecutor(THREADS, "node locks")

    def start(self) -> None:
        """Begin to send, from the event loop that runs now."""
        self._bridge.connect()

    async def on_thread(self, call: Callable[..., T], *args: Any) -> T:
        """Run what waits for the API server."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    def close(self) -> None:
        """Send no more; who waits is told so."""
        self._bridge.disconnect()
        self._threads.shutdown(wait=False, cancel_futures=True)
