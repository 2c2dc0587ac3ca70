"""Filters that see all feasible nodes at once, after the search: extenders, for one.

The cycle knows of none unless a plugin brings one: nothing here runs on the hot path without it.
"""

from __future__ import annotations

import numpy as np

from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.verdicts import Verdicts, merged
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import Status, StatusColumn


def run_feasible_filters(attempt: Attempt, verdicts: Verdicts) -> Verdicts:
    """Let each `filter_feasible` hook judge the nodes that are left; what goes wrong is the `error` of the
    answer.

    The nodes stay visited, whatever becomes of them: where the next search starts does not depend on it.
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
    """Return the verdicts with those of `answer` for the nodes that were feasible."""
    column = verdicts.column
    places = np.flatnonzero(column.ids == 0)
    if len(answer) != len(places):
        raise ValueError(f"{len(answer)} answers for {len(places)} nodes")
    wrong = [status for status in answer.table[1:] if not status.code.is_rejection]
    if wrong:
        raise PluginError.answered(plugin, "filter_feasible", wrong[0])
    stamped = (answer.table[0], *(one.by(plugin) for one in answer.table[1:]))
    return Verdicts.of(verdicts.rows, merged(column, places, StatusColumn(answer.ids, stamped)))
