"""Sends one binding to the API server and finds out its result.

An answer may be lost after the server carried out the request. A conflict may come from another writer or
from an earlier try of this scheduler. An unclear result is therefore looked up: a bound pod must not be
reported as failed, and its room must not be given away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.bindings import BindingEnd
from kdsl.live.writing.api import SeenPod
from kdsl.live.writing.outcomes import Done, Lost, Refused, Result, message_of

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 5.0
GIVE_UP_AFTER: Final = 600.0
"""Seconds between reads of a pod whose binding got no answer, the longest pause, and the time limit."""
_TIMEOUT: Final = 504

Sleep = Callable[[float], Awaitable[None]]


class BindingApi(Protocol):
    """The requests of a binding, such as those of `kdsl.live.writing.api.Api`."""

    async def bind(self, pod: PodInfo, node: str) -> Result[None]:
        """Bind the pod, if its uid is still the same."""
        ...

    async def read_pod(self, namespace: str, name: str) -> Result[SeenPod]:
        """Read the current pod."""
        ...


class BindAnswer(Struct, frozen=True):
    """The result of a binding. Without `is_known` it could not be found out: the pod may be bound."""

    end: BindingEnd
    message: str = ""
    is_known: bool = True


_BOUND: Final = BindAnswer(BindingEnd.BOUND)


class BindingRequests:
    """Binds pods through an API."""

    def __init__(self, api: BindingApi, sleep: Sleep = asyncio.sleep) -> None:
        self._api, self._sleep = api, sleep

    async def bind(self, pod: PodInfo, node: str) -> BindAnswer:
        """Bind the pod and find out the result."""
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
        # The server may still be carrying out a request whose connection was lost.
        may_come = isinstance(result, Lost) or result.status == _TIMEOUT
        return await self.look_up(pod, node, message_of(result), may_come=may_come)

    async def look_up(self, pod: PodInfo, node: str, message: str, *, may_come: bool = False) -> BindAnswer:
        """Find out the result of a binding by reading the pod; `message` is the failure so far.

        Without an answer the read is repeated, for ten minutes; with `may_come`, once if it shows no binding.
        """
        pause, waited = FIRST_PAUSE, 0.0
        while True:
            seen = await self._api.read_pod(pod.namespace, pod.name)
            if isinstance(seen, Done):
                answer = judge(seen.value, pod, node, message)
                if answer.end is not BindingEnd.FAILED or not may_come:
                    return answer
                may_come = False
            if isinstance(seen, Refused) and seen.is_gone:
                return BindAnswer(BindingEnd.DROPPED, message)
            if waited >= GIVE_UP_AFTER:
                return BindAnswer(BindingEnd.FAILED, message, is_known=False)
            await self._sleep(pause)
            waited += pause
            pause = min(2 * pause, LONGEST_PAUSE)


def judge(seen: SeenPod, pod: PodInfo, node: str, message: str) -> BindAnswer:
    """Derive the result of binding `pod` to `node` from the pod that the server has under its name now."""
    if pod.uid and seen.uid != pod.uid:
        return BindAnswer(BindingEnd.DROPPED, message)
    if seen.node == node:
        return _BOUND
    if seen.node:
        return BindAnswer(BindingEnd.DROPPED, f"pod {pod.key} is on node {seen.node} already")
    if seen.is_terminating:
        return BindAnswer(BindingEnd.DROPPED, f"pod {pod.key} is being deleted")
    return BindAnswer(BindingEnd.FAILED, message)
