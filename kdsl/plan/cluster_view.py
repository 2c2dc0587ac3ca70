"""The view `Cluster`, through which rules read the cluster as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.node_columns import NodeColumns
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.snapshot.default_spread import spread_constraints
from kdsl.cluster.snapshot.groups import PodGroup, service_groups, workload_groups
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cluster.storage.claims import PodClaim, claims_of, users_of
from kdsl.cluster.storage.csi_volumes import (
    CsiVolumes,
    attached_to,
    csi_volumes_of,
    limited_drivers,
    mounted_on,
)
from kdsl.cluster.storage.disks import disks_of
from kdsl.cluster.storage.volume_counts import VolumeCounts, new_volumes, used_volumes, volume_limit
from kdsl.eval.nodelist import NodeList
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.topology import PodTerms, Topology
from kdsl.plan.counts.what_ifs import NotTogether, WhatIfCounts, WhatIfTerms, WhatIfTopology


class ClusterView(Struct, frozen=True, eq=False, dict=True):
    """A snapshot as one rule reads it in one attempt. `what_ifs` counts pods for many what-ifs at once; it is
    None for one cluster.

    The other members are those of the view in `kdsl/check/views`, found by their names. One that ends in
    `_over` has the values of its namesake for many nodes.
    """

    snapshot: Snapshot
    what_ifs: WhatIfCounts | None = None

    @property
    def node_count(self) -> int:
        return len(self.snapshot)

    def spread_constraints(
        self, pod: PodInfo, defaults: Sequence[SpreadConstraint]
    ) -> tuple[SpreadConstraint, ...]:
        """Return the constraints of `pod`, or the default ones if it has none."""
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

    def volume_limits(self, node: NodeInfo) -> Mapping[str, int]:
        return self.snapshot.catalog.storage.limits_of(node.name)

    def limited_drivers(self, pod: PodInfo) -> tuple[str, ...]:
        return limited_drivers(pod, self.snapshot.catalog)

    def volume_limit(self, driver: str, node: NodeInfo) -> int:
        return volume_limit(driver, node, self.snapshot.catalog)

    def volume_limit_over(self, driver: str, nodes: NodeColumns) -> NDArray[np.int64]:
        return VolumeCounts.of(self.snapshot.live).limits(driver, nodes.rows)

    def used_volume_count(self, driver: str, node: NodeInfo) -> int:
        return used_volumes(driver, node, self.snapshot.catalog)

    def used_volume_count_over(self, driver: str, nodes: NodeColumns) -> NDArray[np.int64]:
        if self.snapshot.is_overlay:
            return self._of_each(nodes, partial(self.used_volume_count, driver))
        return VolumeCounts.of(self.snapshot.live).used(driver, nodes.rows)

    def new_volume_count(self, pod: PodInfo, driver: str, node: NodeInfo) -> int:
        return new_volumes(pod, driver, node, self.snapshot.catalog)

    def new_volume_count_over(self, pod: PodInfo, driver: str, nodes: NodeColumns) -> NDArray[np.int64]:
        if self.snapshot.is_overlay:
            return self._of_each(nodes, partial(self.new_volume_count, pod, driver))
        return VolumeCounts.of(self.snapshot.live).new(pod, driver, nodes.rows)

    def _of_each(self, nodes: NodeColumns, count: Callable[[NodeInfo], int]) -> NDArray[np.int64]:
        return np.array([count(self.snapshot.info(row)) for row in nodes.rows.tolist()], np.int64)

    @cached_property
    def nodes(self) -> Sequence[NodeInfo]:
        if self.what_ifs is not None:
            raise NotTogether
        return NodeList(NodeSet.all(self.snapshot))

    @cached_property
    def pods(self) -> tuple[PodInfo, ...]:
        return tuple(chain.from_iterable([node.pods for node in self.nodes]))

    def topology(self, key: str) -> Topology:
        if self.what_ifs is not None:
            return WhatIfTopology(self.what_ifs.live, key, what_ifs=self.what_ifs)
        return Topology(self.snapshot, key)

    def terms(self, kind: TermKind) -> PodTerms:
        """Return the affinity terms of one kind of all placed pods."""
        store = TallyStore.of(self.snapshot)
        if self.what_ifs is not None:
            return WhatIfTerms(self.what_ifs.live, kind, store, what_ifs=self.what_ifs)
        return PodTerms(self.snapshot, kind, store)

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
