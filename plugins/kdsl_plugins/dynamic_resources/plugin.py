"""kube-scheduler's DynamicResources for pods without device claims: it skips Filter, scores every node 0, and
reports in PostFilter that there is nothing to deallocate.

Claims are not allocated: pods that have claims wait, on every node.
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
    """Answers for pods without device claims, and keeps pods with claims waiting. It takes no arguments."""

    # Hooks that run for every pod declare all arguments: with fewer, a second call drops the others.

    IS_LOCAL: ClassVar = True

    def __init__(self, args: Mapping[str, Any], context: PluginContext) -> None:
        pass

    @hookimpl
    def events(self) -> Collection[EventPattern]:
        """Return no events: a pod keeps its claims, and no event makes kdsl allocate them."""
        return ()

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        """Record that PreFilter reached this plugin; a pod without claims skips Filter."""
        state.values[_STATE] = True
        return None if pod.resource_claims else _SKIP

    @hookimpl
    def filter(self, nodes: NodeSet) -> StatusColumn:
        """Reject every node for a pod with claims: running it without its devices would be worse."""
        return StatusColumn.of([_NOT_ALLOCATED] * len(nodes))

    @hookimpl
    def post_filter(self, state: CycleState) -> Status:
        """Answer UNSCHEDULABLE, so that the next plugin makes room.

        Where another plugin ended PreFilter before this one, the reference fails to read its state, which
        ends the phase with this text.
        """
        if state.values.get(_STATE) is None:
            return Status(Code.ERROR, ("not found",))
        return Status(Code.UNSCHEDULABLE, ("no new claims to deallocate",))

    @hookimpl
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> int:
        """Score every node alike."""
        return 0
