"""Filters that get all feasible nodes at once, after the search, such as extenders.

Without a plugin that has such a filter, none of this code runs on the hot path.
"""

from __future__ import annotations

import numpy as np

from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.verdicts import Verdicts, merged
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import Status, StatusColumn


def run_feasible_filters(attempt: Attempt, verdicts: Verdicts) -> Verdicts:
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
            return Verdicts.of(verdicts.rows, verdicts.column, error)
        except Exception as cause:  # noqa: BLE001 - a plugin may raise anything
            raised = PluginError.raised(plugin, "filter_feasible", cause)
            raised.__cause__ = cause
            return Verdicts.of(verdicts.rows, verdicts.column, raised)
    return verdicts


def _narrowed(verdicts: Verdicts, answer: StatusColumn, plugin: str) -> Verdicts:
    """Return the verdicts with the statuses of `answer` for the nodes that were feasible."""
    column = verdicts.column
    places = np.flatnonzero(column.ids == 0)
    if len(answer) != len(places):
        raise ValueError(f"{len(answer)} answers for {len(places)} nodes")
    wrong = [status for status in answer.table[1:] if not status.code.is_rejection]
    if wrong:
        raise PluginError.answered(plugin, "filter_feasible", wrong[0])
    stamped = (answer.table[0], *(one.by(plugin) for one in answer.table[1:]))
    return Verdicts.of(verdicts.rows, merged(column, places, StatusColumn(answer.ids, stamped)))
