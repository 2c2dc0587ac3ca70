"""How fields and methods of views are read from the objects of `kdsl.cluster`.

A field `usedHostPorts` is the attribute `used_host_ports`, a method `conflictsWith` the method
`conflicts_with`. What the language wraps (timestamps, optionals) the objects hold bare.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from kdsl.check.model.types import Type
from kdsl.cluster.api.storage_objects import PersistentVolume
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selectors import NodeRequirement, NodeSelector, NodeTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.objects.taints import Taint
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.snapshot.default_spread import spread_constraints
from kdsl.cluster.snapshot.groups import PodGroup, service_groups, workload_groups
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cluster.storage.claims import PodClaim, claims_of, users_of
from kdsl.cluster.storage.csi_volumes import (
    CsiVolumes,
    attached_to,
    csi_volumes_of,
    mounted_on,
    volume_limits,
)
from kdsl.cluster.storage.disks import disks_of
from kdsl.plan.nodelist import NodeList
from kdsl.plan.tallies.terms import TermKind
from kdsl.plan.tallies.topology import PodTerms, Topology
from kdsl.plan.values import NONE, Optional, Timestamp, Value

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


@cache
def attribute_of(name: str) -> str:
    """Return the attribute that holds the field or method: its name in snake case."""
    return _CAPITAL.sub(r"_\1", name).lower()


def wrapper_of(type_: Type) -> Callable[[Value], Value] | None:
    """Return what turns an attribute into a value of the type; None where it is one already."""
    if type_.name == "timestamp":
        return Timestamp
    if type_.name == "optional":
        return lambda value: NONE if value is None else Optional(value)
    if type_.name in EMPTY_VIEWS:
        empty = EMPTY_VIEWS[type_.name]
        return lambda value: empty if value is None else value
    return None


@cache
def method_of(function: str) -> Callable[..., Value] | None:
    """Return what calls the method named as `View.method`; None where it is no method's name."""
    attribute = method_name(function)
    return None if attribute is None else lambda target, *args: getattr(target, attribute)(*args)


def method_name(function: str) -> str | None:
    """Return the attribute that is the method named as `View.method`; None where it is no method's name."""
    view, dot, name = function.rpartition(".")
    return attribute_of(name) if dot and view[:1].isupper() else None


@dataclass(frozen=True, eq=False)
class ClusterView:
    """The view `Cluster`: what a snapshot tells as a whole, for one rule in one attempt."""

    snapshot: Snapshot

    @property
    def node_count(self) -> int:
        return len(self.snapshot)

    def spread_constraints(
        self, pod: PodInfo, defaults: Sequence[SpreadConstraint]
    ) -> tuple[SpreadConstraint, ...]:
        """Return the constraints of `pod`, those for pods like it where it has none of its own."""
        return spread_constraints(pod, defaults, self.snapshot.catalog)

    def services(self, pod: PodInfo) -> tuple[PodGroup, ...]:
        return service_groups(pod, self.snapshot.catalog)

    def workloads(self, pod: PodInfo) -> tuple[PodGroup, ...]:
        return workload_groups(pod, self.snapshot.catalog)

    def disks(self, pod: PodInfo, kind: str) -> tuple[str, ...]:
        return disks_of(pod, kind, self.snapshot.catalog)

    def claims(self, pod: PodInfo) -> tuple[PodClaim, ...]:
        return claims_of(pod, self.snapshot.catalog)

    def users(self, claim: PodClaim) -> int:
        return users_of(claim, self.pods)

    def csi_volumes(self, pod: PodInfo, node: NodeInfo) -> CsiVolumes:
        return csi_volumes_of(pod, node.name, self.snapshot.catalog)

    def mounted_volumes(self, node: NodeInfo) -> CsiVolumes:
        return mounted_on(node, self.snapshot.catalog)

    def attached_volumes(self, node: NodeInfo) -> CsiVolumes:
        return attached_to(node.name, self.snapshot.catalog)

    def volume_limits(self, node: NodeInfo) -> dict[str, int]:
        return volume_limits(node.name, self.snapshot.catalog)

    @cached_property
    def nodes(self) -> Sequence[NodeInfo]:
        return NodeList(NodeSet.all(self.snapshot))

    @cached_property
    def pods(self) -> tuple[PodInfo, ...]:
        return tuple(pod for node in self.nodes for pod in node.pods)

    def topology(self, key: str) -> Topology:
        return Topology(self.snapshot, key)

    def terms(self, kind: TermKind) -> PodTerms:
        """Return the affinity terms of one kind that the pods on nodes have."""
        return PodTerms(self.snapshot, kind)

    @property
    def required_affinity_terms(self) -> PodTerms:
        return self.terms(TermKind.REQUIRED_AFFINITY)

    @property
    def required_anti_affinity_terms(self) -> PodTerms:
        return self.terms(TermKind.REQUIRED_ANTI_AFFINITY)

    @property
    def preferred_affinity_terms(self) -> PodTerms:
        return self.terms(TermKind.PREFERRED_AFFINITY)

    @property
    def preferred_anti_affinity_terms(self) -> PodTerms:
        return self.terms(TermKind.PREFERRED_ANTI_AFFINITY)


READ_OF_PODS: Final[Mapping[str, tuple[str, ...]]] = {
    "PodAffinityTerm.matches": PodAffinityTerm.READ_OF_PODS,
    "PodGroup.includes": PodGroup.READ_OF_PODS,
    "SpreadConstraint.countsNode": SpreadConstraint.READ_OF_SPREAD_PODS,
    "SpreadConstraint.selects": SpreadConstraint.READ_OF_PODS,
}
"""The attributes that methods read of the pod they are given; maps among them only by key."""

EMPTY_VIEWS: Final[Mapping[str, Value]] = {
    "NodeSelector": NodeSelector((), None),
    "Volume": VolumeInfo.of(PersistentVolume()),
}
"""What an absent struct reads as, by view."""

VIEW_FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "taint": Taint,
    "spread": SpreadConstraint,
    "nodeLabel": NodeRequirement.on_label,
    "nodeField": NodeRequirement.on_field,
    "nodeTerm": NodeTerm.of,
}
"""The functions of the views file that make views."""
