"""Annotations shared by schedulers and device plugins: a pod's devices, and the locks of a node.

A pod's annotations are written with its uid as precondition. A node's are compared and set: the write fails
if the node changed since it was read. Rules decide their values, times included. HAMi's times are wall-clock
times, since other programs read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from kdsl.base.frozen_map import NO_STRINGS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.status import Code, Status
from kdsl.live.writing.api import Api, SeenNode
from kdsl.live.writing.outcomes import Done, Lost, Refused, message_of
from kdsl.live.writing.retries import may_pass, repeated

MAX_BYTES: Final = 262_144
"""The limit for all keys and values of an object's annotations together; the server refuses more."""
_NODE_TRIES: Final = 5
_FIRST_PAUSE: Final = 0.1


class NotReadError(Exception):
    """The server did not answer a read: it is unknown whether the object exists."""


class Annotations:
    """Writes annotations of pods and nodes. For the thread of the event loop."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def write_pod(
        self, pod: PodInfo, annotations: Mapping[str, str], labels: Mapping[str, str] = NO_STRINGS
    ) -> Status | None:
        """Add annotations and labels to a pod; return None on success, else an ERROR with the reason."""
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
        """Return the current annotations of a node, None if the node does not exist.

        Raises NotReadError without an answer of the server.
        """
        found = await self._read(node)
        return None if found is None else found.annotations

    async def has_pod(self, pod: str) -> bool:
        """Return whether pod `namespace/name` exists; raise NotReadError without an answer."""
        namespace, _, name = pod.partition("/")
        result = await repeated(lambda: self._api.read_pod(namespace, name))
        if isinstance(result, Done):
            return True
        if isinstance(result, Refused) and result.is_gone:
            return False
        raise NotReadError(f"pod {pod} could not be read: {message_of(result)}")

    async def write_node(self, node: str, key: str, value: str, was: str) -> Status | None:
        """Set an annotation whose present value is `was`; an empty text stands for a missing annotation.

        Returns None on success, else an ERROR: the node does not exist, or another writer was faster.
        """
        pause, may_be_mine = _FIRST_PAUSE, False
        failure: Refused | Lost | None = None
        for number in range(_NODE_TRIES):
            if number:
                await asyncio.sleep(pause)
                pause *= 2
            try:
                found = await self._read(node)
            except NotReadError as error:
                return _error(str(error))
            if found is None:
                return _error(f"node {node} is gone")
            now = found.annotations.get(key, "")
            if now == value and (may_be_mine or value == was):
                return None
            if now != was:
                return _error(f"annotation {key} of node {node} was changed by another writer")
            problem = _problem({**found.annotations, key: value})
            if problem:
                return _error(f"annotations of node {node} {problem}")
            result = await self._api.annotate_node(node, {key: value}, found.version)
            if isinstance(result, Done):
                return None
            if not may_pass(result):
                return _error(message_of(result))
            failure = result
            may_be_mine = may_be_mine or (isinstance(result, Lost) and result.may_be_done)
        assert failure is not None
        return _error(message_of(failure))

    async def _read(self, node: str) -> SeenNode | None:
        result = await repeated(lambda: self._api.read_node(node))
        if isinstance(result, Done):
            return result.value
        if isinstance(result, Refused) and result.is_gone:
            return None
        raise NotReadError(f"node {node} could not be read: {message_of(result)}")


def _problem(annotations: Mapping[str, str]) -> str:
    """Return why the server would refuse the annotations; empty if it would not."""
    try:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    except UnicodeEncodeError:
        return "hold text that has no UTF-8"
    return f"take {size} bytes, more than {MAX_BYTES}" if size > MAX_BYTES else ""


def _error(reason: str) -> Status:
    return Status(Code.ERROR, (reason,))
