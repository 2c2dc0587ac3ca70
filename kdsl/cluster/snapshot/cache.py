"""Events to snapshots: the state of the cluster, updated as nodes and pods are added, changed and removed.

The cycle assumes a pod on its node before the binding has succeeded; the placed pod from the API server then
confirms it. One thread uses a cache: events and cycles take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kdsl.base.events import Resource
from kdsl.base.frozen_map import freeze
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.api.kinds import CatalogObject, KubeObject
from kdsl.cluster.api.objects import Namespace, Node, Pod
from kdsl.cluster.objects.images import NO_SIZES, ImageSpread
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.catalog import Catalog, key_of
from kdsl.cluster.snapshot.events import ClusterEvent, assigned_pod_events, node_event, object_event
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cluster.snapshot.zones import ZoneOrder

Listens = Callable[[str], bool]
"""Returns whether a change of the placed pod `namespace/name` could affect an observer."""


class ClusterCache:
    """The nodes, the pods on them and the catalog, without pods that are not placed or have finished.

    `snapshot` returns the current state. Its cost grows with the changes since the last call, and the result
    is valid until the next call.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._pods: dict[str, PodInfo] = {}
        self._assumed: set[str] = set()
        # Pods whose node is unknown (not yet added, or removed), by node and key.
        self._waiting: dict[str, dict[str, PodInfo]] = {}
        self._zones = ZoneOrder()
        self._spread = ImageSpread()
        self._catalog = Catalog()
        self._snapshot = LiveSnapshot(self._catalog, self._spread)
        self._has_new_catalog = False
        self._has_new_nodes = False
        # Ordered sets: rows and versions are assigned in the order of events, the same in every run.
        self._dirty_facts: dict[str, None] = {}
        self._dirty_usage: dict[str, None] = {}
        self._observers: list[tuple[Callable[[ClusterEvent], None], Listens]] = []

    def observe(self, observer: Callable[[ClusterEvent], None], listens: Listens = lambda pod: True) -> None:
        """Call `observer` with every change from now on, at once.

        `listens` returns whether a change of the placed pod `namespace/name` could affect the observer now.
        Where it could not, the call may be left out.
        """
        self._observers.append((observer, listens))

    @staticmethod
    def of(objects: Iterable[KubeObject]) -> ClusterCache:
        """Return a cache that holds `objects`, added in their order, without pods that are not placed."""
        cache = ClusterCache()
        for api_object in objects:
            if isinstance(api_object, Node):
                cache.add_node(NodeFacts.of(api_object))
            elif isinstance(api_object, Pod):
                cache.add_pod(PodInfo.of(api_object))
            else:
                cache.put(api_object)
        return cache

    def copy(self) -> ClusterCache:
        """Return an independent cache of the same cluster, without observers.

        It copies references only: the copy builds a snapshot when it is asked for one.
        """
        other = ClusterCache()
        other._nodes, other._pods = dict(self._nodes), dict(self._pods)
        other._assumed = set(self._assumed)
        other._waiting = {node: dict(pods) for node, pods in self._waiting.items()}
        other._zones, other._catalog = self._zones.copy(), self._catalog.copy()
        other._snapshot = LiveSnapshot(other._catalog, other._spread)
        for name, info in other._nodes.items():
            other._spread.update(name, NO_SIZES, info.facts.image_sizes)
        other._has_new_nodes, other._has_new_catalog = self._has_new_nodes, True
        if not self._has_new_nodes:
            # The order may be older than the zones: a node in a new zone moves when nodes come or go.
            live = self._snapshot
            other._snapshot.set_nodes(live.names[row] for row in live.order.tolist())
        other._dirty_facts, other._dirty_usage = dict.fromkeys(other._nodes), dict.fromkeys(other._nodes)
        return other

    def complete(self, pod: PodInfo) -> PodInfo:
        """Return the pod with the labels of its namespace from the catalog."""
        return self._catalog.complete(pod)

    def put(self, api_object: CatalogObject) -> None:
        """Add or update an object of the catalog."""
        key = key_of(api_object)
        before = self._catalog.find(api_object.KIND, key)
        if self._catalog.put(api_object):
            self._follow_catalog(api_object.KIND, api_object.metadata.name)
            self._publish(object_event(Resource(api_object.KIND), before, api_object))

    def remove(self, kind: str, key: str) -> None:
        """Remove an object of the catalog, identified by its `key_of`."""
        before = self._catalog.find(kind, key)
        if self._catalog.remove(kind, key):
            self._follow_catalog(kind, key)
            self._publish(object_event(Resource(kind), before, None))

    def assume_object(self, api_object: CatalogObject) -> None:
        """Assume the future state of an object of the catalog, until it is put, removed or forgotten."""
        self._catalog.assume(api_object)
        self._follow_catalog(api_object.KIND, api_object.metadata.name)

    def forget_object(self, api_object: CatalogObject) -> None:
        """Undo the assumption of an object, unless it has been put or removed since."""
        if self._catalog.forget(api_object.KIND, key_of(api_object)):
            self._follow_catalog(api_object.KIND, api_object.metadata.name)

    @property
    def resource_claims(self) -> Mapping[str, ResourceClaim]:
        """The claims of devices by `namespace/name`."""
        return self._catalog.resource_claims

    def add_node(self, facts: NodeFacts) -> None:
        """Add or update a node; equal facts change nothing."""
        name = facts.name
        before = self._nodes.get(name)
        if before is None:
            pods = self._waiting.pop(name, {})
            self._nodes[name] = NodeInfo.of(facts, pods.values())
            self._has_new_nodes = True
            self._dirty_usage[name] = None
        elif before.facts == facts:
            return
        else:
            self._nodes[name] = before.with_facts(facts)
        self._dirty_facts[name] = None
        self._zones.put(name, facts.labels)
        self._spread.update(name, NO_SIZES if before is None else before.facts.image_sizes, facts.image_sizes)
        self._publish(node_event(before, self._nodes[name]))

    update_node = add_node

    def remove_node(self, name: str) -> None:
        """Remove a node. Its pods stay until they are removed, in case the node is added again."""
        info = self._nodes.pop(name, None)
        if info is None:
            return
        if info.pods:
            self._waiting[name] = {pod.key: pod for pod in info.pods}
        self._has_new_nodes = True
        self._dirty_facts.pop(name, None)
        self._dirty_usage.pop(name, None)
        self._zones.remove(name)
        self._spread.update(name, info.facts.image_sizes, NO_SIZES)
        self._publish(node_event(info, None))

    def add_pod(self, pod: PodInfo) -> None:
        """Add or update a pod. A placed pod confirms its assumption."""
        key = pod.key
        before = self._pods.get(key)
        if not pod.node_name and key in self._assumed and not pod.is_finished:
            # The event is older than the binding: the assumption stands.
            return
        self._assumed.discard(key)
        # INVARIANT: the pods in the cache are complete.
        if before is pod:
            return
        pod = self._catalog.complete(pod)
        if before == pod:
            return
        nominated = pod.nominated_node_name
        if (
            before is not None
            and before.nominated_node_name != nominated
            and before.with_fields(nominated_node_name=nominated) == pod
        ):
            # No observer hears of it, so the pod keeps its place: records have no other order.
            self._replace_in_place(pod)
            return
        self._change(key, before, pod if pod.node_name and not pod.is_finished else None)

    update_pod = add_pod

    def remove_pod(self, key: str) -> None:
        """Remove the pod `namespace/name`."""
        self._assumed.discard(key)
        pod = self._pods.get(key)
        if pod is not None:
            self._change(key, pod, None)

    def assume(self, pod: PodInfo, node_name: str) -> PodInfo:
        """Assume `pod` on a node before its binding, and return it as placed there.

        Raises KeyError where there is no such node, ValueError where the pod is already on one.
        """
        if node_name not in self._nodes:
            raise KeyError(f"there is no node {node_name}")
        key = pod.key
        if key in self._pods:
            raise ValueError(f"pod {key} is already on node {self._pods[key].node_name}")
        placed = self._catalog.complete(pod).on(node_name)
        self._assumed.add(key)
        self._change(key, None, placed)
        return placed

    def forget(self, key: str) -> bool:
        """Undo the assumption of the pod `namespace/name`; return False where it is not assumed."""
        if key not in self._assumed:
            return False
        self.remove_pod(key)
        return True

    def annotate(self, key: str, annotations: Mapping[str, str]) -> bool:
        """Set the annotations of an assumed pod; return False where it is not assumed (any more)."""
        if key not in self._assumed:
            return False
        before = self._pods[key]
        self._change(key, before, before.with_fields(annotations=freeze(annotations)))
        return True

    def is_assumed(self, key: str) -> bool:
        """Return whether the pod `namespace/name` is assumed and not yet confirmed."""
        return key in self._assumed

    @property
    def pod_count(self) -> int:
        """The number of placed or assumed pods."""
        return len(self._pods)

    @property
    def assumed_count(self) -> int:
        """The number of pods that are assumed and not yet confirmed."""
        return len(self._assumed)

    def nodes(self) -> Iterable[NodeInfo]:
        """Return the nodes with the pods on them, in the order in which they were added."""
        return self._nodes.values()

    def has_node(self, name: str) -> bool:
        """Return whether the node exists."""
        return name in self._nodes

    def pod(self, key: str) -> PodInfo | None:
        """Return the placed or assumed pod `namespace/name`."""
        return self._pods.get(key)

    def pods(self) -> Iterable[PodInfo]:
        """Return the placed and assumed pods, in the order in which they were added."""
        return self._pods.values()

    def objects(self) -> Iterable[CatalogObject]:
        """Return the objects of the catalog, without assumptions, kind by kind."""
        return self._catalog.objects()

    def snapshot(self) -> Snapshot:
        """Update the snapshot and return it. It is valid until the next call."""
        snapshot = self._snapshot
        if self._has_new_nodes:
            snapshot.set_nodes(self._zones.names())
            self._has_new_nodes = False
        has_new_images = self._spread.take_changed()
        for name in self._dirty_facts:
            info = self._nodes[name]
            self._nodes[name] = info = info.counted_by(self._spread)
            snapshot.set_facts(info)
        self._dirty_facts.clear()
        for name in self._dirty_usage:
            snapshot.set_usage(self._nodes[name])
        self._dirty_usage.clear()
        if has_new_images:
            snapshot.set_images()
        if self._has_new_catalog:
            snapshot.set_catalog()
            self._has_new_catalog = False
        return snapshot

    def _follow_catalog(self, kind: str, key: str) -> None:
        """Note a change of the catalog, and update the namespace labels of pods."""
        self._has_new_catalog = True
        if kind != Namespace.KIND:
            return
        for pod in [pod for pod in self._pods.values() if pod.namespace == key]:
            self._replace_in_place(self._catalog.complete(pod))

    def _replace_in_place(self, pod: PodInfo) -> None:
        """Replace a pod on its node by one with the same requests."""
        name = pod.node_name
        self._pods[pod.key] = pod
        info = self._nodes.get(name)
        if info is None:
            self._waiting[name][pod.key] = pod
            return
        self._nodes[name] = info.with_changed(pod)
        self._dirty_usage[name] = None

    def _change(self, key: str, before: PodInfo | None, after: PodInfo | None) -> None:
        """Add, update or remove the pod `namespace/name` on its node."""
        # The hot path: most pods are placed while no pod waits, and events would cost more than the
        # placement.
        interested = [observer for observer, listens in self._observers if listens(key)]
        nodes = self._nodes_of(before, after) if interested else {}
        if before is not None:
            self._take_off(key, before)
        if after is not None:
            self._put(key, after)
        if interested:
            for event in assigned_pod_events(before, after, nodes, self._nodes_of(before, after)):
                self._publish(event)

    def _nodes_of(self, *pods: PodInfo | None) -> dict[str, NodeInfo | None]:
        """Return the nodes of pods, by name; None for an unknown node."""
        return {pod.node_name: self._nodes.get(pod.node_name) for pod in pods if pod is not None}

    def _publish(self, event: ClusterEvent | None) -> None:
        if event is not None:
            for observer, _ in self._observers:
                observer(event)

    def _put(self, key: str, pod: PodInfo) -> None:
        name = pod.node_name
        self._pods[key] = pod
        info = self._nodes.get(name)
        if info is None:
            self._waiting.setdefault(name, {})[key] = pod
            return
        self._nodes[name] = info.with_pod(pod)
        self._dirty_usage[name] = None

    def _take_off(self, key: str, pod: PodInfo) -> None:
        name = pod.node_name
        del self._pods[key]
        info = self._nodes.get(name)
        if info is not None:
            self._nodes[name] = info.without_pod(pod)
            self._dirty_usage[name] = None
            return
        del self._waiting[name][key]
        if not self._waiting[name]:
            del self._waiting[name]
