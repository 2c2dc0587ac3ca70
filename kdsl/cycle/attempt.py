"""What one scheduling attempt is about: the four things every phase needs, handed around as one."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.snapshot import Snapshot
from kdsl.hooks.state import CycleState
from kdsl.hooks.table import HookTable


@dataclass(frozen=True, slots=True)
class Attempt:
    """One pod, the hooks of its profile, and the snapshot it is tried on. Plugins write to `state` only."""

    table: HookTable
    pod: PodInfo
    snapshot: Snapshot
    state: CycleState = field(default_factory=CycleState)

    def __post_init__(self) -> None:
        # What a pod is includes what the catalog knows of its namespace.
        object.__setattr__(self, "pod", self.snapshot.catalog.complete(self.pod))

    @property
    def all_nodes(self) -> NodeSet:
        """All nodes in the order of the snapshot."""
        return NodeSet.all(self.snapshot)
