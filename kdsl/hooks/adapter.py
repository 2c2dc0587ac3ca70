"""Runs the per-node hooks `filter_node` and `score_node` over sets of nodes: the cycle calls hooks with sets
only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kdsl.base.containment import ForeignError, contain
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet

FilterNode = Callable[[CycleState, "PodInfo", "NodeInfo"], Status | None]
Filter = Callable[[CycleState, "PodInfo", "NodeSet"], StatusColumn | None]
ScoreNode = Callable[[CycleState, "PodInfo", "NodeInfo"], int | float]
Score = Callable[[CycleState, "PodInfo", "NodeSet"], "NDArray[np.int64] | NDArray[np.float64] | int"]


def filter_over_nodes(filter_node: FilterNode) -> Filter:
    """Return a `filter` hook that calls `filter_node` for one node after the other.

    An exception becomes an error status of its node: the cycle decides whether the search reaches that node.
    Threads belong to the cycle, which calls the hook for disjoint sets at once.
    """

    def filter_nodes(state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        return StatusColumn.of(_judge(filter_node, state, pod, node) for node in nodes.nodes())

    return filter_nodes


def _judge(filter_node: FilterNode, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
    try:
        return contain(filter_node, state, pod, node)
    except ForeignError as error:
        return Status(Code.ERROR, (str(error),))


def score_over_nodes(score_node: ScoreNode) -> Score:
    """Return a `score` hook that calls `score_node` for one node after the other.

    The column is of floating point if any score is. A score that is no number raises TypeError.
    """

    def score_nodes(
        state: CycleState, pod: PodInfo, nodes: NodeSet
    ) -> NDArray[np.int64] | NDArray[np.float64]:
        scores = [score_node(state, pod, node) for node in nodes.nodes()]
        for score in scores:
            if not isinstance(score, (int, float, np.integer, np.floating)):
                raise TypeError(f"`score_node` must return a number, not {type(score).__name__}")
        if any(isinstance(score, (float, np.floating)) for score in scores):
            return np.array(scores, dtype=np.float64)
        return np.array(scores, dtype=np.int64)

    return score_nodes
