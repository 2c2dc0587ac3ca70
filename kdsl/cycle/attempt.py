"""The context of one scheduling attempt: the four values that every phase needs, passed as one."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import force_setattr

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.hooks.state import CycleState
from kdsl.hooks.table import HookTable


class Attempt(Struct, frozen=True, eq=False):
    """One pod, the hooks of its profile, and the snapshot to place it on. Plugins write to `state` only."""

    table: HookTable
    pod: PodInfo
    snapshot: Snapshot
    state: CycleState = field(default_factory=CycleState)

    def __post_init__(self) -> None:
        # The catalog completes the pod with the labels of its namespace.
        pod = self.snapshot.catalog.complete(self.pod)
        if pod is not self.pod:
            force_setattr(self, "pod", pod)
        force_setattr(self, "table", self.table.for_pod(pod))

    @property
    def all_nodes(self) -> NodeSet:
        """All nodes in the order of the snapshot."""
        return NodeSet(self.snapshot, self.snapshot.order)
