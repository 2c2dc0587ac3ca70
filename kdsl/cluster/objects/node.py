"""A node as the scheduler uses it: its own facts, and the pods on it.

The cache, the cycle and the back ends use it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kdsl.base.frozen_map import NO_STRINGS, FrozenMap, freeze
from kdsl.base.resources import NOTHING, Resources
from kdsl.cluster.api.objects import Condition, Node, NodeStatus
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import whole_amounts
from kdsl.cluster.objects.containers import read_amounts
from kdsl.cluster.objects.images import NO_IMAGES, NO_SIZES, ImageSpread, NodeImage, SpreadImages
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.objects.ports import HostPort
from kdsl.cluster.objects.taints import Taint


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts of a node's API object, which placements do not change.

    `device_capacity` has the whole numbers of extended resources, as devices read them. `image_sizes` are
    bytes by every name of an image; of two images with one name the first counts.
    """

    name: str
    labels: FrozenMap[str, str] = NO_STRINGS
    annotations: FrozenMap[str, str] = NO_STRINGS
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = NOTHING
    image_sizes: FrozenMap[str, int] = NO_SIZES
    device_capacity: FrozenMap[str, int] = NO_SIZES
    capacity: Resources = NOTHING
    conditions: tuple[Condition, ...] = ()
    pod_cidr: str = ""
    provider_id: str = ""

    @staticmethod
    def of(node: Node) -> NodeFacts:
        """Convert an API object, which must have its defaults."""
        meta, spec, status = node.metadata, node.spec, node.status
        return NodeFacts(
            name=meta.name,
            labels=freeze(meta.labels),
            annotations=freeze(meta.annotations),
            unschedulable=spec.unschedulable,
            taints=tuple(Taint(one.key, one.value, one.effect) for one in spec.taints),
            allocatable=read_amounts(status.allocatable or {}),
            image_sizes=_image_sizes(status),
            device_capacity=_device_capacity(status),
            capacity=read_amounts(status.capacity),
            conditions=tuple(status.conditions),
            pod_cidr=spec.pod_cidr,
            provider_id=spec.provider_id,
        )


FACTS: Final = frozenset([field.name for field in fields(NodeFacts)])
"""The attributes of `NodeFacts`. Those of `NodeInfo` are properties, and take a call to read."""


class NodeInfo(Struct, frozen=True):
    """A node and the pods on it, immutable: `with_pod` and `without_pod` return a new one.

    It has the fields of the `Node` view. The cache fills `images` with the number of nodes of each image; a
    node outside a cache counts itself. `affine_pods` is the number of its pods with affinity terms.
    """

    facts: NodeFacts
    images: FrozenMap[str, NodeImage] = NO_IMAGES
    pods: tuple[PodInfo, ...] = ()
    requested: Resources = NOTHING
    scored_requests: Resources = NOTHING
    used_host_ports: tuple[HostPort, ...] = ()
    affine_pods: int = 0

    @staticmethod
    def of(node: Node | NodeFacts, pods: Iterable[PodInfo] = ()) -> NodeInfo:
        """Return the node with `pods` on it."""
        facts = NodeFacts.of(node) if isinstance(node, Node) else node
        images = {name: NodeImage(size, 1) for name, size in facts.image_sizes.items()}
        info = NodeInfo(facts, FrozenMap(images) if images else NO_IMAGES)
        for pod in pods:
            info = info.with_pod(pod)
        return info

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.facts.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.facts.annotations

    @property
    def unschedulable(self) -> bool:
        return self.facts.unschedulable

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.facts.taints

    @property
    def allocatable(self) -> Resources:
        return self.facts.allocatable

    @property
    def capacity(self) -> Resources:
        return self.facts.capacity

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.facts.conditions

    def avoids(self, pod: PodInfo) -> bool:
        """Return whether an annotation asks to keep the pods of `pod`'s controller off this node."""
        return is_avoided(pod, self.annotations)

    @property
    def pod_cidr(self) -> str:
        return self.facts.pod_cidr

    @property
    def provider_id(self) -> str:
        return self.facts.provider_id

    @property
    def pod_count(self) -> int:
        return len(self.pods)

    @property
    def cards(self) -> tuple[Card, ...]:
        """No cards: which ones there are depends on the devices of a profile, so rules are given them."""
        return ()

    @property
    def used_volumes(self) -> tuple[PodVolume, ...]:
        return tuple(volume for pod in self.pods for volume in pod.volumes)

    def with_pod(self, pod: PodInfo) -> NodeInfo:
        """Return this node with `pod` on it as well."""
        ports = self.used_host_ports
        if pod.host_ports:
            ports = tuple(dict.fromkeys(ports + pod.host_ports))
        requested = self.requested.plus(pod.usage)
        # The hot path: nearly always both amounts are one object.
        is_one = self.scored_requests is self.requested and pod.scored_usage is pod.usage
        return NodeInfo(
            self.facts,
            self.images,
            (*self.pods, pod),
            requested,
            requested if is_one else self.scored_requests.plus(pod.scored_usage),
            ports,
            self.affine_pods + pod.has_affinity_terms,
        )

    def without_pod(self, pod: PodInfo) -> NodeInfo:
        """Return this node without `pod`, identified by its key; raises KeyError for a pod not on it."""
        key = pod.key
        index = next((i for i, other in enumerate(self.pods) if other.key == key), None)
        if index is None:
            raise KeyError(f"pod {key} is not on node {self.name}")
        gone = self.pods[index]
        pods = self.pods[:index] + self.pods[index + 1 :]
        ports = self.used_host_ports
        if gone.host_ports:
            ports = tuple(dict.fromkeys(port for other in pods for port in other.host_ports))
        return NodeInfo(
            self.facts,
            self.images,
            pods,
            self.requested.minus(gone.usage),
            self.scored_requests.minus(gone.scored_usage),
            ports,
            self.affine_pods - gone.has_affinity_terms,
        )

    def with_changed(self, pod: PodInfo) -> NodeInfo:
        """Return this node with `pod` in place of the pod of its key, which had the same requests."""
        return self.with_fields(pods=tuple(pod if other.key == pod.key else other for other in self.pods))

    def with_facts(self, facts: NodeFacts) -> NodeInfo:
        """Return this node with other facts and the same pods."""
        return self.with_fields(facts=facts)

    def counted_by(self, spread: ImageSpread) -> NodeInfo:
        """Return this node with the images of its facts, as counted by `spread`."""
        images, sizes = self.images, self.facts.image_sizes
        if isinstance(images, SpreadImages) and images.belongs_to(spread, sizes):
            return self
        return self.with_fields(images=SpreadImages(spread, sizes) if sizes else NO_IMAGES)

    def with_fields(self, **fields: Any) -> NodeInfo:
        """Return this node with other values in some fields."""
        return replace(self, **fields)


def _image_sizes(status: NodeStatus) -> FrozenMap[str, int]:
    sizes: dict[str, int] = {}
    for image in status.images:
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return FrozenMap(sizes) if sizes else NO_SIZES


def _device_capacity(status: NodeStatus) -> FrozenMap[str, int]:
    extended = {name: written for name, written in status.capacity.items() if "/" in name}
    return FrozenMap(whole_amounts(extended)) if extended else NO_SIZES


PREFER_AVOID_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
"""The annotation of nodes that should not get the pods of some controllers."""
_KINDS: Final = ("ReplicationController", "ReplicaSet")


def is_avoided(pod: PodInfo, annotations: Mapping[str, str]) -> bool:
    """Return whether the annotations of a node name the ReplicationController or ReplicaSet of `pod`.

    An annotation that cannot be parsed names no controller, as in kube-scheduler.
    """
    owner = pod.owner
    written = annotations.get(PREFER_AVOID_PODS)
    if written is None or owner is None or owner.kind not in _KINDS:
        return False
    try:
        document: Any = json.loads(written)
        controllers = [each["podSignature"]["podController"] for each in document["preferAvoidPods"]]
        return any((each.get("kind"), each.get("uid")) == (owner.kind, owner.uid) for each in controllers)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
