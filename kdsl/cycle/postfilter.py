"""The PostFilter phase: plugins make room for a pod that fits nowhere, by preemption or otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.fit_error import Diagnosis
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import Nominated
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn, StatusTable
from kdsl.hooks.table import Calls

MakeRoom = Callable[[NodeSet, StatusColumn], Status | Nominated | None]
"""A search for room, given the rejection of each node."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of the phase: `status` is None where no plugin answers.

    `nominated` is the node for the pod, with its victims; an empty node withdraws the pod's nomination.
    """

    status: Status | None = None
    nominated: Nominated | None = None

    @property
    def message(self) -> str:
        """Return the text for the FitError."""
        return "" if self.status is None else self.status.message


def run_post_filters(attempt: Attempt, diagnosis: Diagnosis, last: Calls[MakeRoom] = ()) -> PostFilterResult:
    """Run the PostFilter hooks, then `last`, until one makes room; raises PluginError where one raises.

    Success and UNRESOLVABLE end the phase. UNSCHEDULABLE adds its reasons, as does finding no room. An error
    status becomes the text: the pod stays unschedulable either way.
    """
    nodes, column = attempt.all_nodes, statuses_of_all(attempt, diagnosis)
    reasons: list[str] = []
    nominated: Nominated | None = None
    calls: list[tuple[str, MakeRoom]] = [
        *((plugin, partial(call, attempt.state, attempt.pod)) for plugin, call in attempt.table.post_filters),
        *last,
    ]
    for plugin, call in calls:
        try:
            answer = call(nodes, column)
        except PluginError:
            raise
        except Exception as cause:
            raise PluginError.raised(plugin, "post_filter", cause) from cause
        if isinstance(answer, Nominated):
            nominated = answer
            if answer.node:
                return PostFilterResult(SUCCESS.by(plugin), answer)
            reasons.extend(answer.reasons)
        elif answer is None or answer.code is Code.SUCCESS:
            return PostFilterResult(SUCCESS.by(plugin), nominated)
        elif answer.code is Code.UNRESOLVABLE or not answer.code.is_rejection:
            return PostFilterResult(answer.by(plugin), nominated)
        else:
            reasons.extend(answer.reasons)
    status = Status(Code.UNSCHEDULABLE, tuple(reasons)) if calls else None
    return PostFilterResult(status, nominated)


def statuses_of_all(attempt: Attempt, diagnosis: Diagnosis) -> StatusColumn:
    """Return the statuses of a diagnosis for all nodes of the snapshot, in its order."""
    order = attempt.snapshot.order
    column = diagnosis.verdicts.column
    table = StatusTable()
    ids = table.translate(column)
    by_row = np.full(int(order.max()) + 1, table.number(diagnosis.absent), dtype=np.int32)
    by_row[diagnosis.verdicts.rows] = ids
    return StatusColumn(by_row[order], table)
