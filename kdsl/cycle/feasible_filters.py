"""Filters that get all feasible nodes at once, after the search, such as extenders.

Without a plugin that has such a filter, none of this code runs on the hot path.
"""

from __future__ import annotations

import numpy as np

from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.visited import VisitedNodes, merged
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import Status, StatusColumn


def run_feasible_filters(attempt: Attempt, verdicts: VisitedNodes) -> VisitedNodes:
    """Run each `filter_feasible` hook on the nodes that are left; a failure becomes the `error` of the
    result.

    Rejected nodes still count as visited, so the start of the next search does not depend on these filters.
    """
    if verdicts.error is not None:
        return verdicts
    for plugin, call in attempt.table.feasible_filters:
        if not len(verdicts.feasible):
            break
        try:
            answer = call(attempt.state, attempt.pod, NodeSet(attempt.snapshot, verdicts.feasible))
            if answer is None:
                continue
            if isinstance(answer, Status):
                raise PluginError.answered(plugin, "filter_feasible", answer)
            verdicts = _narrowed(verdicts, answer, plugin)
        except PluginError as error:
            return VisitedNodes.of(verdicts.rows, verdicts.column, error)
        except Exception as cause:  # noqa: BLE001 - a plugin may raise anything
            raised = PluginError.raised(plugin, "filter_feasible", cause)
            raised.__cause__ = cause
            return VisitedNodes.of(verdicts.rows, verdicts.column, raised)
    return verdicts


def _narrowed(verdicts: VisitedNodes, answer: StatusColumn, plugin: str) -> VisitedNodes:
    """Return the verdicts with the statuses of `answer` for the nodes that were feasible."""
    column = verdicts.column
    places = np.flatnonzero(column.ids == 0)
    if len(answer) != len(places):
        raise ValueError(f"{len(answer)} answers for {len(places)} nodes")
    wrong = [status for status in answer.table[1:] if not status.code.is_rejection]
    if wrong:
        raise PluginError.answered(plugin, "filter_feasible", wrong[0])
    stamped = (answer.table[0], *(one.by(plugin) for one in answer.table[1:]))
    return VisitedNodes.of(verdicts.rows, merged(column, places, StatusColumn(answer.ids, stamped)))
