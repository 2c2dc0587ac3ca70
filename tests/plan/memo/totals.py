"""The weighted sums of joined scores."""

from __future__ import annotations

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.state import CycleState
from kdsl.plan.memo.scores import ScoreMemo


def totals_of(joined: ScoreMemo, pod: PodInfo, nodes: NodeSet) -> list[int] | None:
    """Return the weighted sums of the scores of a pod, which skip none; None if one is out of range."""
    state = CycleState()
    joined.pre_score(state, pod, nodes)
    assert state.skipped_scores == set()
    found = joined.points(state, pod, nodes)
    return None if found is None else (found[0] + found[1]).tolist()
