"""Annotations by which schedulers and device plugins talk: what a pod gets, whose turn it is on a node.

A pod's are written to the pod that was meant, and to no other under its name. A node's are compared and set:
between reading and writing nobody else may have changed the node. What they hold, times included, is up to
rules; HAMi's are by the wall clock, since other programs read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from kdsl.base.frozen_map import NO_STRINGS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.status import Code, Status
from kdsl.live.api import Api, SeenNode
from kdsl.live.outcomes import Done, Lost, Refused, message_of
from kdsl.live.retries import may_pass, repeated

MAX_BYTES: Final = 262_144
"""What keys and values of an object's annotations may take together; the server refuses more."""
_NODE_TRIES: Final = 5
_FIRST_PAUSE: Final = 0.1


class NotReadError(Exception):
    """The server did not say what is asked: nobody knows whether there is such an object."""


class Annotations:
    """Writes annotations of pods and nodes. It belongs to the thread of the event loop."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def write_pod(
        self, pod: PodInfo, annotations: Mapping[str, str], labels: Mapping[str, str] = NO_STRINGS
    ) -> Status | None:
        """Add annotations and labels to a pod; None means that it has them, an ERROR says why not."""
        problem = _problem({**pod.annotations, **annotations})
        if problem:
            return _error(f"annotations of pod {pod.key} {problem}")
        result = await repeated(lambda: self._api.annotate_pod(pod, annotations, labels))
        if isinstance(result, Done):
            return None
        if isinstance(result, Refused) and result.is_recreated:
            return _error(f"pod {pod.key} was deleted and made anew")
        return _error(message_of(result))

    async def read_node(self, node: str) -> Mapping[str, str] | None:
        """Return the annotations that a node has now, None where there is no such node.

        Raises NotReadError where the server does not say.
        """
        seen = await self._seen(node)
        return None if seen is None else seen.annotations

    async def has_pod(self, pod: str) -> bool:
        """Tell whether there is a pod `namespace/name`; raises NotReadError where the server does not say."""
        namespace, _, name = pod.partition("/")
        result = await repeated(lambda: self._api.read_pod(namespace, name))
        if isinstance(result, Done):
            return True
        if isinstance(result, Refused) and result.is_gone:
            return False
        raise NotReadError(f"pod {pod} could not be read: {message_of(result)}")

    async def write_node(self, node: str, key: str, value: str, was: str) -> Status | None:
        """Give an annotation a value where it still `was` the other one; an empty text is no annotation.

        None means that it has it, an ERROR says why not: the node is gone, or somebody else was faster.
        """
        pause, may_be_mine = _FIRST_PAUSE, False
        failure: Refused | Lost | None = None
        for number in range(_NODE_TRIES):
            if number:
                await asyncio.sleep(pause)
                pause *= 2
            try:
                seen = await self._seen(node)
            except NotReadError as error:
                return _error(str(error))
            if seen is None:
                return _error(f"node {node} is gone")
            now = seen.annotations.get(key, "")
            if now == value and (may_be_mine or value == was):
                return None
            if now != was:
                return _error(f"annotation {key} of node {node} was changed by somebody else")
            problem = _problem({**seen.annotations, key: value})
            if problem:
                return _error(f"annotations of node {node} {problem}")
            result = await self._api.annotate_node(node, {key: value}, seen.version)
            if isinstance(result, Done):
                return None
            if not may_pass(result):
                return _error(message_of(result))
            failure = result
            may_be_mine = may_be_mine or (isinstance(result, Lost) and result.may_be_done)
        assert failure is not None
        return _error(message_of(failure))

    async def _seen(self, node: str) -> SeenNode | None:
        result = await repeated(lambda: self._api.read_node(node))
        if isinstance(result, Done):
            return result.value
        if isinstance(result, Refused) and result.is_gone:
            return None
        raise NotReadError(f"node {node} could not be read: {message_of(result)}")


def _problem(annotations: Mapping[str, str]) -> str:
    """Return what the server would find wrong with annotations; empty for nothing."""
    try:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    except UnicodeEncodeError:
        return "hold text that has no UTF-8"
    return f"take {size} bytes, more than {MAX_BYTES}" if size > MAX_BYTES else ""


def _error(reason: str) -> Status:
    return Status(Code.ERROR, (reason,))
