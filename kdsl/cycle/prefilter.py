"""The PreFilter phase: rejects a pod before any node is judged, narrows the candidates, and finds the filters
to skip.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.attempt import Attempt
from kdsl.hooks.errors import PluginError
from kdsl.hooks.joined import PreFilterAnswers
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.status import Code, Status


class PreFilterResult(Struct, frozen=True):
    """The pod's rejection, or the names of the candidates (None: all nodes) and the plugins that narrowed
    them.

    `skipping` are the plugins that skip the pod, in the order of the profile. No plugin after `ended_by` ran.
    """

    skipping: tuple[str, ...] = ()
    rejection: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()
    ended_by: str = ""

    @property
    def absent(self) -> Status:
        """Return the status of the nodes that are not candidates."""
        if self.rejection is not None:
            return self.rejection
        if self.names is None:
            return Status(Code.UNRESOLVABLE)
        return Status(
            Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{' '.join(self.narrowed_by)}]",)
        )


def run_pre_filters(attempt: Attempt) -> PreFilterResult:
    """Run the PreFilter hooks in profile order and merge their answers; raises PluginError for an error.

    A plugin that answers SKIP enters `state.skipped_filters`. UNRESOLVABLE ends the phase; of several
    UNSCHEDULABLE answers the last counts, after all plugins ran. Narrowings intersect; an empty intersection
    is a rejection.
    """
    rejection: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    skipping: list[str] = []
    state, pod, nodes = attempt.state, attempt.pod, attempt.all_nodes
    skipped = state.skipped_filters
    for step in attempt.table.pre_filter_steps:
        try:
            found = step.call(state, pod, nodes)
        except Exception as cause:
            raise PluginError.raised(step.plugin, "pre_filter", cause) from cause
        if found is None:
            continue
        if isinstance(found, PreFilterAnswers):
            skipping += found.skipping
            skipped.update(found.skipping)
            answers = found.answers
        else:
            answers = ((step.plugin, found),)
        for plugin, answer in answers:
            if isinstance(answer, Narrowed):
                narrowed_by.append(plugin)
                names = frozenset(answer.names) if names is None else names.intersection(answer.names)
                if not names:
                    by = sorted(narrowed_by)
                    return PreFilterResult(tuple(skipping), _nothing_left(by), names, tuple(by), plugin)
                continue
            match answer.code:
                case Code.SKIP:
                    skipping.append(plugin)
                    skipped.add(plugin)
                case Code.SUCCESS:
                    continue
                case Code.UNRESOLVABLE:
                    return PreFilterResult(tuple(skipping), answer.by(plugin), ended_by=plugin)
                case Code.UNSCHEDULABLE:
                    rejection = answer.by(plugin)
                case _:
                    raise PluginError.answered(plugin, "pre_filter", answer)
    return PreFilterResult(tuple(skipping), rejection, names, tuple(sorted(narrowed_by)))


def candidate_rows(snapshot: Snapshot, names: frozenset[str] | None) -> NDArray[np.intp]:
    """Return the rows of the named nodes that exist, in the order of the snapshot; all rows for None."""
    if names is None:
        return snapshot.order
    rows = [row for row in map(snapshot.row_of, names) if row is not None]
    return snapshot.order[np.isin(snapshot.order, rows)]


def _nothing_left(plugins: list[str]) -> Status:
    if len(plugins) == 1:
        return Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin {plugins[0]}",))
    return Status(
        Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously",)
    )
