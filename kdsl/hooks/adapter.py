"""Runs a per-node `filter_node` hook over a candidate set: the cycle knows one shape of filter only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn

if TYPE_CHECKING:
    from kdsl.cluster.node import NodeInfo
    from kdsl.cluster.nodeset import NodeSet
    from kdsl.cluster.pod import PodInfo

FilterNode = Callable[[CycleState, "PodInfo", "NodeInfo"], Status | None]
Filter = Callable[[CycleState, "PodInfo", "NodeSet"], StatusColumn | None]


def filter_over_nodes(filter_node: FilterNode) -> Filter:
    """Return a `filter` hook that asks `filter_node` about one node after the other.

    An exception becomes an error status of its node: the cycle decides whether the search got that far.
    Threads come from the cycle, which asks about disjoint sets at once.
    """

    def filter_nodes(state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        return StatusColumn.of(_judge(filter_node, state, pod, node) for node in nodes.nodes())

    return filter_nodes


def _judge(filter_node: FilterNode, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
    try:
        return filter_node(state, pod, node)
    except Exception as cause:  # noqa: BLE001 - a plugin may raise anything; it must not end the process
        return Status(Code.ERROR, (f"{type(cause).__name__}: {cause}",))
