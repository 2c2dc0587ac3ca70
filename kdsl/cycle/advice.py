"""Answers for another scheduler about nodes of its choice: verdicts, scores, and fits after preemption.

Nothing is changed, and all requested nodes are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.feasible_filters import run_feasible_filters
from kdsl.cycle.judging import Contested, Judge
from kdsl.cycle.prefilter import PreFilterResult, run_pre_filters
from kdsl.cycle.scoring import score_nodes
from kdsl.cycle.visited import VisitedNodes
from kdsl.cycle.what_if import WhatIf
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.hooks.table import MAX_NODE_SCORE

GONE = Status(Code.UNSCHEDULABLE, ("node is not known here",))


def judge_nodes(attempt: Attempt, contested: Contested, rows: NDArray[np.intp]) -> StatusColumn:
    """Evaluate the filters on nodes, by row; raise PluginError if one fails on any node."""
    found = run_pre_filters(attempt)
    column = _judged(attempt, contested, rows, found)
    verdicts = run_feasible_filters(attempt, VisitedNodes.of(rows, column))
    if verdicts.error is not None:
        raise verdicts.error
    return verdicts.column


def score_rows(attempt: Attempt, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], int]:
    """Return the weighted scores of nodes, by row, and their maximum: 0 without scores.

    Scores that do not apply to the pod are not in the maximum. Raises PluginError.
    """
    run_pre_filters(attempt)
    scores = score_nodes(attempt, NodeSet(attempt.snapshot, rows))
    table, skipped = attempt.table, attempt.state.skipped_scores
    weights = [hook.weight for hook in table.scores if hook.plugin not in skipped]
    if table.added_scores:
        own = {hook.plugin for hook in table.scores}
        weights += [column.weight for column in scores.columns if column.plugin not in own]
    return scores.totals, MAX_NODE_SCORE * sum(map(abs, weights))


def fit_on(attempt: Attempt, contested: Contested, node: str) -> Status | None:
    """Return the rejection of a pod on a node, None if it fits; raise PluginError."""
    row = attempt.snapshot.row_of(node)
    if row is None:
        return GONE
    column = _judged(attempt, contested, np.array([row], np.intp), run_pre_filters(attempt))
    return column[0] if column.ids[0] else None


Rejects = Callable[[int, Sequence[PodInfo]], Status | None]
"""Returns the rejection on the node of a row without these pods, None if the pod fits."""


def preemption(attempt: Attempt, contested: Contested) -> Rejects:
    """Return a function that evaluates nodes without some of their pods; raise PluginError.

    The preemption of the profile must allow these pods as victims.
    """
    found = run_pre_filters(attempt)
    judge, hooks = Judge.of(attempt, contested), attempt.table.preemption

    def rejects(row: int, victims: Sequence[PodInfo]) -> Status | None:
        if found.rejection is not None:
            return found.rejection
        if found.names is not None and attempt.snapshot.names[row] not in found.names:
            return found.absent
        if hooks is not None:
            try:
                may_go = {pod.key for pod in hooks.find_victims(attempt.pod, victims)}
            except Exception as cause:
                raise PluginError.raised(hooks.plugin, "find_victims", cause) from cause
            if len(may_go) < len(victims):
                return Status(Code.UNSCHEDULABLE, ("a victim may not go",), hooks.plugin)
        what_if = WhatIf(judge, row)
        what_if.remove(victims)
        return what_if.rejection()

    return rejects


def _judged(
    attempt: Attempt, contested: Contested, rows: NDArray[np.intp], found: PreFilterResult
) -> StatusColumn:
    if found.rejection is not None:
        return StatusColumn(np.ones(len(rows), np.int32), (SUCCESS, found.rejection))
    if found.names is None:
        return _asked(attempt, contested, rows)
    names = attempt.snapshot.names
    inside = np.array([names[row] in found.names for row in rows.tolist()], dtype=bool)
    column = _asked(attempt, contested, rows[inside])
    ids = np.full(len(rows), len(column.table), dtype=np.int32)
    ids[inside] = column.ids
    return StatusColumn(ids, (*column.table, found.absent))


def _asked(attempt: Attempt, contested: Contested, rows: NDArray[np.intp]) -> StatusColumn:
    judged = Judge.of(attempt, contested).judge(rows)
    if judged.error is not None:
        raise judged.error
    return judged.column
