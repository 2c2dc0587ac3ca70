"""What kube-scheduler's DynamicResources does for pods without device claims: it stays out of filtering,
scores every node 0, and says in PostFilter that it has nothing to take back.

Claims are not allocated: pods that have some wait, on every node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kdsl.hooks import Code, CycleState, PluginContext, Status, StatusColumn, hookimpl

if TYPE_CHECKING:
    from kdsl.base.events import EventPattern
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet

_STATE: Final = "DynamicResources"
_SKIP: Final = Status(Code.SKIP)
_NOT_ALLOCATED: Final = Status(
    Code.PENDING, ("pod has resource claims, which this scheduler does not allocate",)
)


class DynamicResources:
    """Answers for pods without device claims, and holds those that have some. It takes no arguments."""

    IS_LOCAL: ClassVar = True

    def __init__(self, args: Mapping[str, Any], context: PluginContext) -> None:
        pass

    @hookimpl
    def events(self) -> Collection[EventPattern]:
        """Wait for nothing: a pod keeps its claims, and nothing that happens has them allocated here."""
        return ()

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Note that the phase got here; without claims there is nothing to filter."""
        state.write(_STATE, True)
        return None if pod.resource_claims else _SKIP

    @hookimpl
    def filter(self, nodes: NodeSet) -> StatusColumn:
        """Keep a pod with claims waiting: running it without its devices would be worse."""
        return StatusColumn.of([_NOT_ALLOCATED] * len(nodes))

    @hookimpl
    def post_filter(self, state: CycleState) -> Status:
        """Let the next plugin make room.

        Where another plugin ended PreFilter before this one, the reference fails to read its state, which
        ends the phase with this text.
        """
        if state.get(_STATE) is None:
            return Status(Code.ERROR, ("not found",))
        return Status(Code.UNSCHEDULABLE, ("no new claims to deallocate",))

    @hookimpl
    def score(self) -> int:
        """Find every node equally good."""
        return 0
