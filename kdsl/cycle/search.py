"""Finds the nodes a pod fits on: PreFilter, the nominated node, then Filter over the sampled candidates.

It reads the snapshot and changes nothing; the engine, `explain` and what-if simulation all use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.feasible_filters import run_feasible_filters
from kdsl.cycle.filtering import Rotated, find_feasible, next_start
from kdsl.cycle.fit_error import Diagnosis
from kdsl.cycle.judging import Judge
from kdsl.cycle.prefilter import PreFilterResult, candidate_rows, run_pre_filters
from kdsl.cycle.visited import VisitedNodes
from kdsl.cycle.workers import Workers
from kdsl.hooks.faults import Fault

ALL_NODES: Final = 100
"""The percentageOfNodesToScore that finds all feasible nodes, whatever a profile says."""


class Search(Struct, frozen=True, eq=False):
    """The result of a search. `start` is the index at which it began, `next_start` the start of the next one.

    `nominated`: the pod's nominated node is feasible, and no other node was judged. `wanted` is the number of
    feasible nodes to look for; `faults` are the errors of its computation.
    """

    prefilter: PreFilterResult
    verdicts: VisitedNodes
    start: int
    next_start: int
    wanted: int = 0
    nominated: bool = False
    faults: Sequence[Fault] = ()

    @property
    def feasible(self) -> NDArray[np.intp]:
        """Return the rows of the feasible nodes in visiting order."""
        return self.verdicts.feasible

    def diagnosis(self, nodes: int) -> Diagnosis:
        """Return why none of the snapshot's `nodes` is feasible."""
        rejection = self.prefilter.rejection
        return Diagnosis(
            nodes,
            self.verdicts,
            self.prefilter.absent,
            prefilter_message=rejection.message if rejection else "",
        )


def search(
    attempt: Attempt,
    workers: Workers,
    percentage: int = 0,
    *,
    start: int = 0,
    nominated_node: str = "",
    rivals: Mapping[str, Sequence[PodInfo]] | None = None,
    run_length: int | None = None,
) -> Search:
    """Search for feasible nodes; raises PluginError where PreFilter fails.

    `percentage` is percentageOfNodesToScore, which a profile's `sample` may read. `rivals` are the nominated
    pods to respect, by node. `run_length` changes the time only. An error of a filter is in the verdicts: the
    search up to it counts for the start of the next one.
    """
    snapshot = attempt.snapshot
    prefilter = run_pre_filters(attempt)
    if prefilter.rejection is not None:
        return Search(prefilter, VisitedNodes.empty(), start, start)
    judge = Judge.of(attempt, rivals_by_row(attempt, rivals) if rivals else {})
    nominated: VisitedNodes | None = None
    row = snapshot.row_of(nominated_node) if nominated_node else None
    if row is not None:
        nominated = find_feasible(judge, Rotated(np.array([row], dtype=np.intp)), 1, workers)
        nominated = run_feasible_filters(attempt, nominated)
        # An error on the nominated node is not final: the search below visits the node again. Filters do not
        # repeat what narrowed the candidates.
        is_candidate = prefilter.names is None or nominated_node in prefilter.names
        if is_candidate and nominated.error is None and len(nominated.feasible):
            return Search(prefilter, nominated, start, start, wanted=1, nominated=True)
    candidates = candidate_rows(snapshot, prefilter.names)
    rows = Rotated(candidates, start)
    wanted, faults = _wanted(attempt, rows.size, percentage)
    found = find_feasible(judge, rows, wanted, workers, run_length, prefilter.share)
    verdicts = run_feasible_filters(attempt, found)
    if nominated is not None:
        verdicts = verdicts.including(nominated)
    end = next_start(start, len(verdicts.rows), len(snapshot.order))
    return Search(prefilter, verdicts, start, end, wanted, faults=faults)


def _wanted(attempt: Attempt, candidates: int, percentage: int) -> tuple[int, Sequence[Fault]]:
    """Return the number of feasible nodes of so many candidates that is enough, and the errors."""
    table = attempt.table
    if not (table.scores or table.added_scores or table.feasible_filters):
        return min(1, candidates), ()  # feasible nodes are equal without scores: the first is enough
    if table.sample_size is None or percentage == ALL_NODES:
        return candidates, ()
    return table.sample_size(candidates, percentage)


def rivals_by_row(attempt: Attempt, rivals: Mapping[str, Sequence[PodInfo]]) -> dict[int, Sequence[PodInfo]]:
    """Return the nominated pods to respect by row, of the nodes that exist."""
    rows = {node: attempt.snapshot.row_of(node) for node in rivals}
    complete = attempt.snapshot.catalog.complete
    return {row: tuple(map(complete, rivals[node])) for node, row in rows.items() if row is not None}
