"""One binding at the API server, until it is known what came of it.

An answer may be lost after the server did what was asked, and a conflict may mean that somebody else was
faster, or that an earlier try of ours was. So whatever is not clear is looked up: a pod that is bound must
not be reported as failed, and room that it takes must not be given away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.bindings import BindingEnd
from kdsl.live.api import SeenPod
from kdsl.live.outcomes import Done, Lost, Refused, Result, message_of

LOOK_AGAIN: Final = 0.5
LOOK_AT_MOST_EVERY: Final = 5.0
GIVE_UP_AFTER: Final = 600.0
"""Seconds between looks at a pod whose binding nobody answered for, the longest pause, and the end of it."""

Sleep = Callable[[float], Awaitable[None]]


class BindingApi(Protocol):
    """The requests that a binding takes. `kdsl.live.api.Api` has them."""

    async def bind(self, pod: PodInfo, node: str) -> Result[None]:
        """Bind the pod, if it is still the one with its uid."""
        ...

    async def read_pod(self, namespace: str, name: str) -> Result[SeenPod]:
        """Read a pod as it is now."""
        ...


class BindAnswer(Struct, frozen=True):
    """What came of a binding. `is_known`: False where nobody could say, and it may be done all the same."""

    end: BindingEnd
    message: str = ""
    is_known: bool = True


_BOUND: Final = BindAnswer(BindingEnd.BOUND)


class BindingRequests:
    """Binds pods through an API."""

    def __init__(self, api: BindingApi, sleep: Sleep = asyncio.sleep) -> None:
        self._api, self._sleep = api, sleep

    async def bind(self, pod: PodInfo, node: str) -> BindAnswer:
        """Bind the pod and find out what came of it."""
        result = await self._api.bind(pod, node)
        match result:
            case Done():
                return _BOUND
            case Lost(may_be_done=False):
                return BindAnswer(BindingEnd.FAILED, result.reason)
            case Refused() if result.is_recreated:
                return BindAnswer(BindingEnd.DROPPED, message_of(result))
            case Refused() if not (result.is_conflict or result.is_gone or result.status >= 500):
                return BindAnswer(BindingEnd.FAILED, message_of(result))
        return await self.look_up(pod, node, message_of(result))

    async def look_up(self, pod: PodInfo, node: str, message: str) -> BindAnswer:
        """Find out by the pod itself what came of binding it; `message` is what is known so far.

        A server that does not answer is asked again, for ten minutes.
        """
        pause, waited = LOOK_AGAIN, 0.0
        while True:
            seen = await self._api.read_pod(pod.namespace, pod.name)
            if isinstance(seen, Done):
                return judge(seen.value, pod, node, message)
            if isinstance(seen, Refused) and seen.is_gone:
                return BindAnswer(BindingEnd.DROPPED, message)
            if waited >= GIVE_UP_AFTER:
                return BindAnswer(BindingEnd.FAILED, message, is_known=False)
            await self._sleep(pause)
            waited += pause
            pause = min(2 * pause, LOOK_AT_MOST_EVERY)


def judge(seen: SeenPod, pod: PodInfo, node: str, message: str) -> BindAnswer:
    """Say what came of binding `pod` to `node`, by the pod that the server has under its name now."""
    if pod.uid and seen.uid != pod.uid:
        return BindAnswer(BindingEnd.DROPPED, message)
    if seen.node == node:
        return _BOUND
    if seen.node:
        return BindAnswer(BindingEnd.DROPPED, f"pod {pod.key} is on node {seen.node} already")
    if seen.is_terminating:
        return BindAnswer(BindingEnd.DROPPED, f"pod {pod.key} is being deleted")
    return BindAnswer(BindingEnd.FAILED, message)
