"""The PreFilter phase: rejects a pod before any node is judged, narrows the candidates, and finds the filters
to skip.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.attempt import Attempt
from kdsl.hooks.errors import PluginError
from kdsl.hooks.joined import UNKNOWN_SHARE, failed_together
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.hooks.table import Calls, HookTable, PreFilterHook


class PreFilterResult(Struct, frozen=True):
    """The pod's rejection, or the names of the candidates (None: all nodes) and the plugins that narrowed
    them.

    `skipping` are the plugins that skip the pod, in the order of the profile. No plugin after `ended_by` ran.
    `share` estimates the share of nodes that pass.
    """

    skipping: tuple[str, ...] = ()
    rejection: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()
    ended_by: str = ""
    share: float = UNKNOWN_SHARE

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
    state, pod, nodes = attempt.state, attempt.pod, attempt.all_nodes
    skipped = state.skipped_filters
    calls, share = _calls(attempt, nodes)
    for plugin, call in calls:
        try:
            answer = call(state, pod, nodes)
        except Exception as cause:
            _unmark_after(attempt, plugin)
            raise PluginError.raised(plugin, "pre_filter", cause) from cause
        if answer is None:
            continue
        if isinstance(answer, Narrowed):
            narrowed_by.append(plugin)
            names = frozenset(answer.names) if names is None else names.intersection(answer.names)
            if names:
                continue
            _unmark_after(attempt, plugin)
            by = tuple(sorted(narrowed_by))
            return PreFilterResult(_skipping(attempt), _nothing_left(by), names, by, plugin)
        match answer.code:
            case Code.SKIP:
                skipped.add(plugin)
            case Code.SUCCESS:
                continue
            case Code.UNRESOLVABLE:
                _unmark_after(attempt, plugin)
                return PreFilterResult(_skipping(attempt), answer.by(plugin), ended_by=plugin)
            case Code.UNSCHEDULABLE:
                rejection = answer.by(plugin)
            case _:
                _unmark_after(attempt, plugin)
                raise PluginError.answered(plugin, "pre_filter", answer)
    by = tuple(sorted(narrowed_by)) if narrowed_by else ()
    return PreFilterResult(_skipping(attempt), rejection, names, by, share=share)


def _calls(attempt: Attempt, nodes: NodeSet) -> tuple[Calls[PreFilterHook], float]:
    """Return the hooks to call, in profile order, and the estimated share of nodes that pass. Joined
    predicates that skip the pod are marked already.
    """
    table, state = attempt.table, attempt.state
    joined = table.joined_predicates
    if joined is None:
        return table.pre_filters, UNKNOWN_SHARE
    try:
        known = joined.pre_filter(state, attempt.pod, nodes)
    except Exception as cause:  # noqa: BLE001 - asked one by one, the plugin that raised is known
        state.faults.append(failed_together(cause))
        return table.pre_filters, UNKNOWN_SHARE
    state.skipped_filters.update(known.skipping, table.bystanders)
    if not known.answers:
        return table.lone_pre_filters, known.share
    answers = dict(known.answers)
    calls = tuple(
        (name, partial(_known, answers.get(name)) if name in joined.names else call)
        for name, call in table.pre_filters
        if name not in table.bystanders
    )
    return calls, known.share


def _known(
    answer: Status | Narrowed | None, state: CycleState, pod: PodInfo, nodes: NodeSet
) -> Status | Narrowed | None:
    """Return an answer that is known already, in place of a hook."""
    return answer


def _skipping(attempt: Attempt) -> tuple[str, ...]:
    """Return the plugins that skip the pod, in profile order."""
    skipped = attempt.state.skipped_filters
    return tuple(filter(skipped.__contains__, attempt.table.pre_filter_names))


def _unmark_after(attempt: Attempt, ended_by: str) -> None:
    """Unmark the joined predicates behind the plugin that ended the phase: they did not run."""
    attempt.state.skipped_filters.intersection_update(names_until(attempt.table, ended_by))


def names_until(table: HookTable, ended_by: str) -> tuple[str, ...]:
    """Return the plugins whose PreFilter ran, in order: all if none ended the phase."""
    names = table.pre_filter_names
    return names[: names.index(ended_by) + 1] if ended_by else names


def candidate_rows(snapshot: Snapshot, names: frozenset[str] | None) -> NDArray[np.intp]:
    """Return the rows of the named nodes that exist, in the order of the snapshot; all rows for None."""
    if names is None:
        return snapshot.order
    rows = [row for row in map(snapshot.row_of, names) if row is not None]
    return snapshot.order[np.isin(snapshot.order, rows)]


def _nothing_left(plugins: Sequence[str]) -> Status:
    if len(plugins) == 1:
        return Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin {plugins[0]}",))
    return Status(
        Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously",)
    )
