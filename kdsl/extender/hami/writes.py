"""The writers to the cluster: pods and bindings on the event loop, locks of nodes on threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from kdsl.base.threads import Threads
from kdsl.base.visible import visible
from kdsl.hooks.context import NodeAnnotator
from kdsl.live.services import Host
from kdsl.live.writing.annotations import Annotations
from kdsl.live.writing.binding_requests import BindingRequests
from kdsl.live.writing.bridge import BridgeError
from kdsl.plan.devices.locks import Locks, NodeLock

T = TypeVar("T")
THREADS: Final = 8
"""The most locks that are taken or released at once; each takes some requests to the API server."""

_LOG: Final = logging.getLogger(__name__)


class Writes:
    """The writers of a process to its cluster."""

    def __init__(self, host: Host) -> None:
        live = host.scheduler
        self.annotations, self.bindings = Annotations(live.api), BindingRequests(live.api)
        self.locks = Locks(_nodes(host), live.options.wall)
        self._threads, self._room = Threads(), asyncio.Semaphore(THREADS)

    async def on_thread(self, call: Callable[..., T], *args: Any) -> T:
        """Run a blocking call on a thread; the end of the process does not wait for it."""
        async with self._room:
            return await asyncio.wrap_future(self._threads.begin(partial(call, *args)))

    async def release(self, locks: Sequence[NodeLock], node: str, pod: str) -> bool:
        """Release the locks of the pod `namespace/name`; return whether that succeeded.

        A failure is logged; the sweeper repeats it.
        """
        try:
            problem = await self.on_thread(self.locks.release, locks, node, pod)
            reason = "" if problem is None else problem.message
        except BridgeError as error:
            reason = str(error)
        if reason:
            _LOG.warning("node %s: the lock of pod %s stays: %s", node, visible(pod), visible(reason))
        return not reason


def _nodes(host: Host) -> NodeAnnotator:
    nodes = host.scheduler.context.nodes
    # INVARIANT: the plugins of a live scheduler have access to nodes.
    assert nodes is not None
    return nodes
