"""The ports of plugins on a live cluster: the cache shows assumed changes, and writes go to the server.

`assume` and `forget` are for the scheduling thread. A plugin's thread waits for its writes, with a time
limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Protocol

import msgspec

from kdsl.base.clock import Clock
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.resource_claims.claim_plan import ClaimPlan
from kdsl.cluster.resource_claims.pending_claims import PendingClaims
from kdsl.cluster.resource_claims.readiness import READY_TIMEOUT
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.cluster.storage.volume_plan import VolumePlan
from kdsl.cycle.bindings import BindingEnd
from kdsl.cycle.decision import Condition
from kdsl.hooks.context import NO_MANIFESTS
from kdsl.hooks.status import Code, Status
from kdsl.live.watching.changes import is_older
from kdsl.live.writing.annotations import Annotations, NotReadError
from kdsl.live.writing.api import Api
from kdsl.live.writing.binding_requests import BindingRequests
from kdsl.live.writing.bridge import Bridge, BridgeError
from kdsl.live.writing.claim_waits import Waits
from kdsl.live.writing.device_claims import ClaimNotes, DeviceClaims
from kdsl.live.writing.known import KnownObjects
from kdsl.live.writing.volumes import TIMEOUT as VOLUME_TIMEOUT
from kdsl.live.writing.volumes import Volumes

_GRACE: Final = 30.0
"""The seconds that a port waits in addition to the time limit of its request."""


class PortBinder:
    """Binds for plugins that call it; most pods are bound without a port."""

    def __init__(self, bridge: Bridge, requests: BindingRequests) -> None:
        self._bridge, self._requests = bridge, requests

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        """Bind the pod and wait for the result."""
        try:
            answer = self._bridge.call(self._requests.bind(pod, node))
        except BridgeError as error:
            return _error(error)
        return None if answer.end is BindingEnd.BOUND else Status(Code.ERROR, (answer.message,))


class PortVolumes:
    """Assumes and binds the volumes of plans."""

    def __init__(self, bridge: Bridge, cache: ClusterCache, volumes: Volumes) -> None:
        self._bridge, self._cache, self._volumes = bridge, cache, volumes

    def assume(self, plan: VolumePlan) -> None:
        """Reserve the plan's volumes for later decisions."""
        for thing in plan.changes():
            self._cache.assume_object(thing)

    def forget(self, plan: VolumePlan) -> None:
        """Release the plan's volumes, unless the watch has shown them already."""
        for thing in plan.changes():
            self._cache.forget_object(thing)

    def bind(self, pod: PodInfo, plan: VolumePlan) -> Status | None:
        """Bind the volumes and wait for the result, ten minutes at most."""
        return _status(self._bridge, self._volumes.bind(plan, pod.uid), VOLUME_TIMEOUT + _GRACE)


class PortClaims(PendingClaims):
    """Keeps devices for pods, and writes the claims of plans.

    An allocation is `pending` from its assumption on, until the watch shows it or something newer. `wake` has
    pods tried again that wait for a claim or its devices, from any thread: no change of the claim wakes them.
    """

    def __init__(
        self,
        bridge: Bridge,
        cache: ClusterCache,
        api: Api,
        clock: Clock,
        waits: Waits,
        wake: Callable[[ResourceClaim], None],
    ) -> None:
        super().__init__(cache)
        self._bridge, self._wake = bridge, wake
        notes = ClaimNotes(self._note_written, self._note_created)
        self._claims = DeviceClaims(api, clock, waits, notes)
        self._versions: dict[str, str] = {}
        # The keys of reservations by the keys of the claims that were created for them.
        self._reserved: dict[str, str] = {}

    def forget(self, plan: ClaimPlan) -> None:
        """Release the devices that were not written, and the pod as a user of its claims."""
        for key, claim in plan.allocated().items():
            if key not in plan.written and key in self._pending:
                self._drop(key)
                self._wake(claim)
        for claim in plan.created.values():
            self._reserved.pop(key_of(claim), None)
            self.delete(claim)
        for claim in plan.to_release():
            self._bridge.send(self._claims.release(claim, plan.user.uid))

    def write(self, pod: PodInfo, plan: ClaimPlan) -> Status | None:
        """Write the claims and wait until their devices are ready, ten minutes at most."""
        return _status(self._bridge, self._claims.write(plan), READY_TIMEOUT + _GRACE)

    def deallocate(self, claim: ResourceClaim) -> Status | None:
        """Request that the devices are taken away; after a failure pods are tried again."""
        self._bridge.send(self._or_wake(self._claims.deallocate, claim))
        return None

    def delete(self, claim: ResourceClaim) -> None:
        """Request that a claim is deleted; after a failure pods are tried again."""
        self._bridge.send(self._or_wake(self._claims.delete, claim))

    def notice(self, key: str, version: str, claim: ResourceClaim | None) -> None:
        """Note a change of a claim that the watch shows; None: the claim is gone."""
        named, key = key, self._reserved.get(key, key)
        if key in self._pending:
            written = self._versions.get(key)
            is_newer = written is not None and not is_older(version, written)
            if claim is None or claim.status.allocation is not None or is_newer:
                self._drop(key)
                self._reserved.pop(named, None)

    async def _or_wake(
        self, work: Callable[[ResourceClaim], Awaitable[Status | None]], claim: ResourceClaim
    ) -> Status | None:
        problem = await work(claim)
        if problem is not None:
            self._wake(claim)
        return problem

    def _note_written(self, key: str, version: str) -> None:
        if key in self._pending:
            self._versions[key] = version

    def _note_created(self, key: str, claim: str) -> None:
        self._reserved[claim] = key

    def _drop(self, key: str) -> None:
        self._pending.pop(key, None)
        self._versions.pop(key, None)


class PortPodAnnotations:
    """Assumes and writes the annotations by which devices are assigned to a pod."""

    def __init__(self, bridge: Bridge, cache: ClusterCache, annotations: Annotations) -> None:
        self._bridge, self._cache, self._annotations = bridge, cache, annotations

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Show the assumed pod with these annotations in the cache."""
        if self._is_there(pod):
            self._cache.annotate(pod.key, annotations)

    def write(self, pod: PodInfo, annotations: Mapping[str, str]) -> Status | None:
        """Add annotations to the pod and wait for the result."""
        return _status(self._bridge, self._annotations.write_pod(pod, annotations))

    def _is_there(self, pod: PodInfo) -> bool:
        """Return whether the pod with this uid is known, not another one of its name."""
        known = self._cache.pod(pod.key)
        return known is not None and known.uid == pod.uid


class PortNodeAnnotations:
    """Reads and writes annotations of nodes.

    On the scheduling thread a read returns the state of the watch plus this port's own writes, and a write
    does not wait.
    """

    def __init__(self, bridge: Bridge, known: KnownObjects, annotations: Annotations) -> None:
        self._bridge, self._known, self._annotations = bridge, known, annotations
        # Own writes, with the version of the node in the watch at that time, which may be older.
        self._written: dict[tuple[str, str], tuple[str, str]] = {}

    def read(self, node: str) -> Mapping[str, str] | None:
        """Return the present annotations of a node."""
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
        """Set an annotation whose present value is `was`."""
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
        """Return whether the pod `namespace/name` exists."""
        return self._bridge.call(self._annotations.has_pod(pod))


class PortManifests:
    """Objects as JSON of the server, read when a plugin requests them."""

    def __init__(self, known: KnownObjects) -> None:
        self._known = known

    def pod(self, pod: PodInfo) -> Mapping[str, Any]:
        """Return the v1 Pod, with its present node."""
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
    """Collects the victims of a decision; the loop takes them afterwards."""

    def __init__(self) -> None:
        self._victims: list[tuple[PodInfo, Condition]] = []

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        """Add a victim."""
        self._victims.append((victim, condition))

    def take(self) -> tuple[tuple[PodInfo, Condition], ...]:
        """Return the victims since the last call."""
        victims, self._victims = tuple(self._victims), []
        return victims


class LivePermits:
    """The `Permits` of plugins, which answer on any thread; an answer wakes the scheduling thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._held: _Held | None = None

    def attach(self, held: _Held) -> None:
        """Attach the held pods of an engine."""
        self._held = held

    def allow(self, pod: str, plugin: str) -> bool:
        """Allow the pod on behalf of `plugin`."""
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
