"""The PostFilter phase: asks plugins to make room for a pod that fits nowhere, by preemption or otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdsl.cycle.attempt import Attempt
from kdsl.cycle.fit_error import Diagnosis
from kdsl.cycle.verdicts import StatusTable
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import Nominated
from kdsl.hooks.status import Code, StatusColumn


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The text for the FitError, and the node the pod is nominated for, with its victims."""

    message: str = ""
    nominated: Nominated | None = None


def run_post_filters(attempt: Attempt, diagnosis: Diagnosis) -> PostFilterResult:
    """Run the PostFilter hooks in order until one makes room; raise PluginError where one raises.

    Success and UNRESOLVABLE end the phase, UNSCHEDULABLE adds its reasons, an error status becomes the text:
    the pod stays unschedulable either way.
    """
    nodes, column = attempt.all_nodes, statuses_of_all(attempt, diagnosis)
    reasons: list[str] = []
    for plugin, call in attempt.table.post_filters:
        try:
            answer = call(attempt.state, attempt.pod, nodes, column)
        except Exception as cause:
            raise PluginError.raised(plugin, "post_filter", cause) from cause
        if isinstance(answer, Nominated):
            return PostFilterResult(nominated=answer)
        if answer is None or answer.code is Code.SUCCESS:
            return PostFilterResult()
        if answer.code is Code.UNRESOLVABLE or not answer.code.is_rejection:
            return PostFilterResult(answer.message)
        reasons.extend(answer.reasons)
    return PostFilterResult(", ".join(reasons))


def statuses_of_all(attempt: Attempt, diagnosis: Diagnosis) -> StatusColumn:
    """Spread a diagnosis over all nodes of the snapshot, in its order."""
    order = attempt.snapshot.order
    column = diagnosis.verdicts.column
    table = StatusTable()
    ids = table.translate(column.ids, column.table)
    by_row = np.full(int(order.max()) + 1, table.number(diagnosis.absent), dtype=np.int32)
    by_row[diagnosis.verdicts.rows] = ids
    return StatusColumn(by_row[order], table.statuses)
