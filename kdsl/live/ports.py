"""The ports of plugins on a live cluster: what they assume is shown by the cache, what they write is sent.

`assume` and `forget` are for the scheduling thread. What is written is waited for on the thread of a plugin,
with a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol

import msgspec

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.storage.volume_plan import VolumePlan
from kdsl.cycle.bindings import BindingEnd
from kdsl.cycle.decision import Condition
from kdsl.hooks.context import NO_MANIFESTS
from kdsl.hooks.status import Code, Status
from kdsl.live.annotations import Annotations, NotReadError
from kdsl.live.binding_requests import BindingRequests
from kdsl.live.bridge import Bridge, BridgeError
from kdsl.live.known import KnownObjects
from kdsl.live.volumes import TIMEOUT as VOLUME_TIMEOUT
from kdsl.live.volumes import Volumes

_GRACE: Final = 30.0
"""Seconds that a port waits longer than the request which it waits for may take."""


class PortBinder:
    """Binds for plugins that ask for it by themselves; most pods are bound without a port."""

    def __init__(self, bridge: Bridge, requests: BindingRequests) -> None:
        self._bridge, self._requests = bridge, requests

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        """Bind the pod and wait for it."""
        try:
            answer = self._bridge.call(self._requests.bind(pod, node))
        except BridgeError as error:
            return _error(error)
        return None if answer.end is BindingEnd.BOUND else Status(Code.ERROR, (answer.message,))


class PortVolumes:
    """Shows what plans take, and has them bound."""

    def __init__(self, bridge: Bridge, cache: ClusterCache, volumes: Volumes) -> None:
        self._bridge, self._cache, self._volumes = bridge, cache, volumes

    def assume(self, plan: VolumePlan) -> None:
        """Let later pods find taken what the plan takes."""
        for thing in plan.changes():
            self._cache.assume_object(thing)

    def forget(self, plan: VolumePlan) -> None:
        """Give back what the plan took, where the watch has not said what became of it."""
        for thing in plan.changes():
            self._cache.forget_object(thing)

    def bind(self, pod: PodInfo, plan: VolumePlan) -> Status | None:
        """Have the volumes bound and wait for it, ten minutes at most."""
        return _status(self._bridge, self._volumes.bind(plan), VOLUME_TIMEOUT + _GRACE)


class PortPodAnnotations:
    """Shows what devices give a pod, and writes it."""

    def __init__(self, bridge: Bridge, cache: ClusterCache, annotations: Annotations) -> None:
        self._bridge, self._cache, self._annotations = bridge, cache, annotations

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Show the assumed pod with these annotations."""
        if self._is_there(pod):
            self._cache.annotate(pod.key, annotations)

    def forget(self, pod: PodInfo) -> None:
        """Show the pod, if it is still assumed, as it came."""
        if self._is_there(pod):
            self._cache.annotate(pod.key, pod.annotations)

    def write(self, pod: PodInfo, annotations: Mapping[str, str]) -> Status | None:
        """Add annotations to the pod and wait for it."""
        return _status(self._bridge, self._annotations.write_pod(pod, annotations))

    def _is_there(self, pod: PodInfo) -> bool:
        """Tell whether this very pod is known, and not another one under its name."""
        known = self._cache.pod(pod.key)
        return known is not None and known.uid == pod.uid


class PortNodeAnnotations:
    """Reads and writes annotations of nodes.

    Asked by the scheduling thread, it answers by what the watch said last and by its own writes, and sends
    without waiting.
    """

    def __init__(self, bridge: Bridge, known: KnownObjects, annotations: Annotations) -> None:
        self._bridge, self._known, self._annotations = bridge, known, annotations
        # What was written, and the version of the node that the watch showed then: it may be behind.
        self._written: dict[tuple[str, str], tuple[str, str]] = {}

    def read(self, node: str) -> Mapping[str, str] | None:
        """Return the annotations that a node has now."""
        if self._bridge.may_wait:
            try:
                return self._bridge.call(self._annotations.read_node(node))
            except NotReadError as error:
                raise BridgeError(str(error)) from error
        known = self._known.node(node)
        if known is None:
            return None
        mine = {
            key: value
            for (name, key), (value, version) in tuple(self._written.items())
            if name == node and version == known.version
        }
        return {**known.facts.annotations, **mine}

    def write(self, node: str, key: str, value: str, was: str) -> Status | None:
        """Give an annotation a value where it still `was` the other one."""
        work = self._annotations.write_node(node, key, value, was)
        if not self._bridge.may_wait:
            self._written.pop((node, key), None)
            self._bridge.send(work)
            return None
        known = self._known.node(node)
        problem = _status(self._bridge, work)
        if problem is None and known is not None:
            self._written[node, key] = value, known.version
        return problem

    def has_pod(self, pod: str) -> bool:
        """Tell whether there is a pod `namespace/name`."""
        return self._bridge.call(self._annotations.has_pod(pod))


class PortManifests:
    """Objects as the server sent them, read when a plugin asks."""

    def __init__(self, known: KnownObjects) -> None:
        self._known = known

    def pod(self, pod: PodInfo) -> Mapping[str, Any]:
        """Return the v1 Pod, on the node it is on by now."""
        raw = self._known.raw_pod(pod.key)
        if not raw:
            return NO_MANIFESTS.pod(pod)
        manifest: dict[str, Any] = msgspec.json.decode(raw)
        if pod.node_name:
            manifest["spec"] = {**manifest.get("spec", {}), "nodeName": pod.node_name}
        return manifest

    def node(self, node: NodeInfo) -> Mapping[str, Any]:
        """Return the v1 Node."""
        raw = self._known.raw_node(node.name)
        if not raw:
            return NO_MANIFESTS.node(node)
        manifest: dict[str, Any] = msgspec.json.decode(raw)
        return manifest


class Victims:
    """Collects those whom a decision removes; the loop takes them when it has been made."""

    def __init__(self) -> None:
        self._victims: list[tuple[PodInfo, Condition]] = []

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        """Note a victim."""
        self._victims.append((victim, condition))

    def take(self) -> tuple[tuple[PodInfo, Condition], ...]:
        """Return the victims since the last call."""
        victims, self._victims = tuple(self._victims), []
        return victims


class LivePermits:
    """The `Permits` of plugins, which answer on any thread: the scheduling thread is told to look."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._held: _Held | None = None

    def attach(self, held: _Held) -> None:
        """Speak for the pods that an engine holds."""
        self._held = held

    def allow(self, pod: str, plugin: str) -> bool:
        """Let the pod go on as far as `plugin` is concerned."""
        is_held = self._held is not None and self._held.allow(pod, plugin)
        if is_held:
            self._wake()
        return is_held

    def reject(self, pod: str, plugin: str, reason: str) -> bool:
        """Send the pod back to the queue."""
        is_held = self._held is not None and self._held.reject(pod, plugin, reason)
        if is_held:
            self._wake()
        return is_held


class _Held(Protocol):
    def allow(self, pod: str, plugin: str) -> bool: ...
    def reject(self, pod: str, plugin: str, reason: str) -> bool: ...


def _status(
    bridge: Bridge, work: Coroutine[Any, Any, Status | None], timeout: float | None = None
) -> Status | None:
    try:
        return bridge.call(work) if timeout is None else bridge.call(work, timeout)
    except BridgeError as error:
        return _error(error)


def _error(error: Exception) -> Status:
    return Status(Code.ERROR, (str(error),))
