"""The search for room: dry runs on the nodes where eviction may help, and the choice between the candidates.

The engine runs it as the last PostFilter. It changes nothing and only returns the changes to make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.fit_error import Diagnosis
from kdsl.cycle.judging import Judge
from kdsl.cycle.preemption.budgets import DisruptionBudgets
from kdsl.cycle.preemption.thinned import ThinnedNodes
from kdsl.cycle.visited import VisitedNodes
from kdsl.cycle.what_if import WhatIf
from kdsl.hooks.errors import PluginError, ask
from kdsl.hooks.specs import Candidate, Nominated
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.hooks.table import PreemptionHooks

NOT_HELPFUL: Final = Status(Code.UNRESOLVABLE, ("Preemption is not helpful for scheduling",))
NO_CANDIDATE: Final = "no candidate node for preemption"
NO_VICTIMS: Final = Status(Code.UNRESOLVABLE, ("No preemption victims found for incoming pod",))

_MANY: Final = 4
"""The nodes from which on dry runs are faster together."""


class _Victims(NamedTuple):
    """The possible victims on a node, those whose removal violates a budget, and all in the order in which
    they are put back if they may be.
    """

    node: str
    potential: list[PodInfo]
    violating: list[PodInfo]
    in_order: tuple[PodInfo, ...]

    def candidate(self, gone: Sequence[PodInfo]) -> Candidate | Status:
        """Return the node as a candidate without the pods `gone`, which are in the order of `in_order`."""
        if not gone:
            return Status(Code.ERROR, (f'expected at least one victim pod on node "{self.node}"',))
        if not self.violating:
            return Candidate(self.node, tuple(gone), 0)
        keys = {pod.key for pod in gone}
        victims = tuple([pod for pod in self.potential if pod.key in keys])
        return Candidate(self.node, victims, sum([pod.key in keys for pod in self.violating]))


@dataclass(frozen=True, slots=True)
class Preemption:
    """One search for room for the pod of an attempt whose PreFilter phase is over.

    `judge` holds the nominated pods that the pod must respect, `nominated_node` is the pod's own nomination.
    `random` chooses the first node where not all are tried.
    """

    attempt: Attempt
    hooks: PreemptionHooks
    judge: Judge
    budgets: DisruptionBudgets
    random: Random
    nominated_node: str = ""

    def run(self, nodes: NodeSet, column: StatusColumn) -> Status | Nominated:
        """Find a node, given the rejection of each of `nodes`; raises PluginError where a plugin fails."""
        refusal = self._refusal(nodes, column)
        if refusal is not None:
            return Status(refusal.code, _prefixed(refusal.message), sites=refusal.sites)
        candidates, visited = self._search(_potential(nodes, column))
        if candidates:
            left, trimmer = self._trimmed(candidates)
            if isinstance(left, Status):
                return Status(left.code, _prefixed(left.message))
            if not left:
                return Nominated(reasons=_prefixed(NO_CANDIDATE), blockers=(trimmer,))
            hooks, pod = self.hooks, self.attempt.pod
            best = ask(hooks.plugin, "choose_candidate", hooks.choose_candidate, pod, left)
            if best not in left:
                raise PluginError(hooks.plugin, "choose_candidate", f"no candidate is {best.node!r}")
            return Nominated(best.node, tuple(victim.key for victim in best.victims))
        statuses = visited.column.table[1:]
        for status in statuses:
            if not status.code.is_rejection:
                return Status(status.code, _prefixed(status.message))
        blockers = {status.plugin for status in statuses if status.plugin}
        return Nominated(reasons=_prefixed(self._why(visited)), blockers=tuple(sorted(blockers)))

    def _trimmed(self, candidates: Sequence[Candidate]) -> tuple[Sequence[Candidate] | Status, str]:
        """Return the candidates that other plugins keep, or the error of one, and the last plugin asked."""
        plugin = ""
        for plugin, call in self.attempt.table.trims:
            nodes = self.attempt.all_nodes
            answer = ask(
                plugin, "trim_candidates", call, self.attempt.state, self.attempt.pod, nodes, candidates
            )
            if isinstance(answer, Status) or not answer:
                return answer, plugin
            candidates = answer
        return candidates, plugin

    def _refusal(self, nodes: NodeSet, column: StatusColumn) -> Status | None:
        """Return why the pod may not preempt, None where it may."""
        snapshot = nodes.snapshot
        row = snapshot.row_of(self.nominated_node) if self.nominated_node else None
        pods: tuple[PodInfo, ...] = ()
        if (
            row is not None
            and column[int(np.flatnonzero(nodes.rows == row)[0])].code is not Code.UNRESOLVABLE
        ):
            pods = snapshot.info(row).pods
        status = ask(self.hooks.plugin, "may_preempt", self.hooks.may_preempt, self.attempt.pod, pods)
        return None if status is None or status.code is Code.SUCCESS else status

    def _search(self, rows: list[int]) -> tuple[list[Candidate], VisitedNodes]:
        """Dry-run on nodes until there are enough candidates, one of which violates no budget.

        Returns the candidates in the order of the snapshot; without one, the reasons against each node.
        """
        if not rows:
            return [], VisitedNodes.empty()
        found: dict[int, Candidate] = {}
        rejections: dict[int, Status] = {}
        hooks = self.hooks
        enough = ask(hooks.plugin, "enough_candidates", hooks.enough_candidates, self.attempt.pod, len(rows))
        begin = self.random.randrange(len(rows)) if enough < len(rows) else 0
        in_turn, hopeless = self._screened([*rows[begin:], *rows[:begin]])
        for row, answer in self._dry_runs(in_turn, found, enough):
            if isinstance(answer, Status):
                rejections[row] = answer
                continue
            found[row] = answer
            if len(found) >= enough and any(not each.violations for each in found.values()):
                break
        if found:
            return [found[row] for row in rows if row in found], VisitedNodes.empty()
        return [], _visited(rejections, hopeless)

    def _screened(self, rows: list[int]) -> tuple[list[int], list[int]]:
        """Return the rows of the nodes that may have victims, and those of the others, in order."""
        hooks, nodes = self.hooks, NodeSet(self.judge.snapshot, np.array(rows, np.intp))
        if hooks.may_have_victims is None:
            return rows, []
        mask = ask(hooks.plugin, "may_have_victims", hooks.may_have_victims, self.attempt.pod, nodes)
        if mask.shape != (len(rows),):
            reason = f"answers of shape {mask.shape} for {len(rows)} nodes"
            raise PluginError(hooks.plugin, "may_have_victims", reason)
        return nodes.rows[mask].tolist(), nodes.rows[~mask].tolist()

    def _dry_runs(
        self, rows: list[int], found: Mapping[int, Candidate], enough: int
    ) -> Iterator[tuple[int, Candidate | Status]]:
        """Dry-run on nodes in order, and on many at once if they do not affect each other. `found` are the
        candidates so far.
        """
        table = self.attempt.table
        is_alone = not (table.add_pods or table.remove_pods) and self.judge.takes_what_ifs
        at = 0
        while at < len(rows):
            needed = max(enough - len(found), 1)
            # If few nodes help, their share gives the number of the next ones, up to the number tried so far.
            size = max(needed, min(at, needed * at // max(len(found), 1))) if is_alone else 1
            chosen = rows[at : at + size]
            at += len(chosen)
            answers = self._dry_run_all(chosen) if len(chosen) >= _MANY else {}
            for row in chosen:
                yield row, answers.get(row) or self._dry_run(row)

    def _dry_run(self, row: int) -> Candidate | Status:
        """Remove all possible victims from a node; if the pod fits then, put back every victim that still
        fits.
        """
        victims = self._victims(row)
        if victims is None:
            return NO_VICTIMS
        what_if = WhatIf(self.judge, row)
        what_if.remove(victims.potential)
        rejection = what_if.rejection()
        if rejection is not None:
            return rejection
        return victims.candidate([pod for pod in victims.in_order if not _is_spared(what_if, pod)])

    def _dry_run_all(self, rows: list[int]) -> dict[int, Candidate | Status]:
        """Do as `_dry_run` on each of some nodes, all at once. Empty if a filter raises on one of them."""
        found: dict[int, Candidate | Status] = dict.fromkeys(rows, NO_VICTIMS)
        tried = {row: victims for row in rows if (victims := self._victims(row)) is not None}
        snapshot, state = self.judge.snapshot, self.judge.state.clone()
        pods = [victims.in_order for victims in tried.values()]
        nodes = ThinnedNodes(snapshot, np.array([*tried], np.intp), pods)

        def statuses(places: NDArray[np.intp]) -> StatusColumn:
            part = nodes.part(places)
            judged = self.judge.over(snapshot.with_what_ifs(part), state).judge(part.rows)
            if judged.error is not None:
                raise judged.error
            return judged.column

        try:
            column = statuses(np.arange(len(tried)))
            left = column.passed.nonzero()[0]
            for turn in range(nodes.absent.shape[1]):
                places = left[nodes.counts[left] > turn]
                if not len(places):
                    break
                nodes.absent[places, turn] = False
                nodes.absent[places, turn] = ~statuses(places).passed
        except PluginError:
            return {}
        for place, (row, victims) in enumerate(tried.items()):
            if column.ids[place]:
                found[row] = column[place]
            else:
                gone = nodes.absent[place].nonzero()[0].tolist()
                found[row] = victims.candidate([victims.in_order[at] for at in gone])
        return found

    def _victims(self, row: int) -> _Victims | None:
        """Return the possible victims on a node; None if there are none."""
        node = self.judge.snapshot.info(row)
        hooks = self.hooks
        potential = [*ask(hooks.plugin, "find_victims", hooks.find_victims, self.attempt.pod, node.pods)]
        if not potential:
            return None
        violating, others = self.budgets.split(potential)
        return _Victims(node.name, potential, violating, (*violating, *others))

    def _why(self, visited: VisitedNodes) -> str:
        """Return the text for an unsuccessful search: a FitError about preemption."""
        return Diagnosis(len(self.judge.snapshot), visited, NOT_HELPFUL).message()


def _potential(nodes: NodeSet, column: StatusColumn) -> list[int]:
    """Return the rows of the nodes where eviction may help: those rejected with exactly `unschedulable`."""
    codes = np.array([status.code for status in column.table])
    rows: list[int] = nodes.rows[codes[column.ids] == Code.UNSCHEDULABLE].tolist()
    return rows


def _visited(rejections: Mapping[int, Status], hopeless: Sequence[int]) -> VisitedNodes:
    """Return the nodes of a search without a candidate; those of `hopeless` rows have no victims."""
    column = StatusColumn.of([*rejections.values(), NO_VICTIMS])
    ids = np.append(column.ids[:-1], np.full(len(hopeless), column.ids[-1]))
    return VisitedNodes.of(np.array([*rejections, *hopeless], np.intp), StatusColumn(ids, column.table))


def _is_spared(what_if: WhatIf, pod: PodInfo) -> bool:
    """Put a victim back where the preemptor still fits beside it; return whether it does."""
    what_if.add([pod])
    if what_if.rejection() is None:
        return True
    what_if.remove([pod])
    return False


def _prefixed(text: str) -> tuple[str]:
    return (f"preemption: {text}",)
