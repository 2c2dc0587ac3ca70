"""Writes a decision: gathers the results of the phases and condenses them to the wanted detail."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kdsl.cycle.attempt import Attempt
from kdsl.cycle.decision import (
    Decision,
    Detail,
    NodeVerdict,
    Outcome,
    PreFilter,
    Rejection,
    ScoreCell,
    Victim,
)
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.faults import faults_of
from kdsl.cycle.fit_error import Diagnosis, rejections
from kdsl.cycle.postfilter import PostFilterResult, statuses_of_all
from kdsl.cycle.scoring import Scores
from kdsl.cycle.search import Search
from kdsl.cycle.selection import Choice
from kdsl.cycle.visited import VisitedNodes
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Code


class AttemptRecord(Struct, eq=False):
    """The results of an attempt so far; the field of a phase that did not run is empty."""

    attempt: Attempt
    detail: Detail
    options: EngineOptions
    search: Search | None = None
    scores: Scores | None = None
    choice: Choice | None = None
    postfilter: PostFilterResult | None = None

    @property
    def diagnosis(self) -> Diagnosis:
        """Return the statuses of all nodes so far."""
        nodes = len(self.attempt.snapshot.order)
        if self.search is None:
            return Diagnosis(nodes, VisitedNodes.empty())
        return self.search.diagnosis(nodes)

    def decision(
        self, outcome: Outcome, *, node: str = "", message: str = "", fault: Fault | None = None
    ) -> Decision:
        """Write the decision; `fault` is the error that ended the attempt, if one did."""
        attempt, search, choice, result = self.attempt, self.search, self.choice, self.postfilter
        visited = 0 if search is None else len(search.verdicts.rows)
        nominated, status = (None, None) if result is None else (result.nominated, result.status)
        # The hot path: so many fields by name take five times as long as by place.
        return Decision(
            attempt.pod.key,
            attempt.table.profile,
            outcome,
            node,
            message,
            faults_of(attempt, search, self.scores is not None, status, fault),
            visited,
            0 if search is None else visited - search.verdicts.rejected,
            len(attempt.snapshot.order),
            0 if search is None else search.start,
            0 if search is None else search.wanted,
            self._prefilter(),
            self._rejections(),
            None if choice is None else choice.total,
            0 if choice is None else choice.tied,
            self.options.tie_break,
            status,
            "" if nominated is None else nominated.node,
            () if nominated is None or not nominated.node else self._victims(nominated.victims),
            () if result is None else self._blockers(result),
            rules=attempt.table.rules or self.options.rules,
            snapshot=attempt.snapshot.version,
            verdicts=self._verdicts() if self.detail is Detail.FULL else (),
        )

    def _victims(self, pods: Iterable[str]) -> tuple[Victim, ...]:
        scheduler = self.attempt.pod.scheduler_name
        return tuple(Victim.of(pod, scheduler) for pod in pods)

    def _blockers(self, result: PostFilterResult) -> tuple[str, ...]:
        table, nominated, status = self.attempt.table, result.nominated, result.status
        if table.preemption is None:
            return ()
        preemption = table.preemption.plugin
        found = [preemption, *(() if nominated is None else nominated.blockers)]
        if status is not None and status.code is Code.ERROR and status.plugin == preemption:
            # A plugin may have failed to choose among the candidates.
            found += [plugin for plugin, _ in table.trims]
        return tuple(found)

    def _prefilter(self) -> PreFilter:
        if self.search is None:
            names = (plugin for plugin, _ in self.attempt.table.pre_filters)
            return PreFilter(skipped=tuple(filter(self.attempt.state.skipped_filters.__contains__, names)))
        found = self.search.prefilter
        candidates = None if found.names is None else tuple(sorted(found.names))
        return PreFilter(found.rejection, found.skipping, found.narrowed_by, candidates)

    def _rejections(self) -> tuple[Rejection, ...]:
        if self.search is None:
            return ()
        verdicts = self.search.verdicts
        is_complete = verdicts.error is None and not len(verdicts.feasible)
        if not is_complete and not verdicts.rejected:
            return ()
        # Where the search ended early, a node without a verdict was not rejected.
        return rejections(self.diagnosis.counted() if is_complete else verdicts.counted())

    def _verdicts(self) -> tuple[NodeVerdict, ...]:
        """Return one entry for every node of the snapshot, in its order."""
        if self.search is None:
            return ()
        order = self.attempt.snapshot.order.tolist()
        nodes = self.attempt.all_nodes.names()
        statuses = statuses_of_all(self.attempt, self.diagnosis)
        visited = set(self.search.verdicts.rows.tolist())
        candidates = self.search.prefilter.names
        is_rejected = self.search.prefilter.rejection is not None
        scored = self._scored(self.search)
        found: list[NodeVerdict] = []
        for at, (row, node) in enumerate(zip(order, nodes, strict=True)):
            status = statuses[at]
            if row in visited:
                feasible = status.code is Code.SUCCESS
                cells, total = scored.get(row, ((), None))
                found.append(NodeVerdict(node, feasible, None if feasible else status, cells, total))
            elif is_rejected or (candidates is not None and node not in candidates):
                found.append(NodeVerdict(node, False, status))
            else:
                found.append(NodeVerdict(node, False))
        return tuple(found)

    def _scored(self, search: Search) -> dict[int, tuple[tuple[ScoreCell, ...], int]]:
        """Return the score cells and the total of each scored node by row."""
        if self.scores is None:
            return {}
        columns = [
            [
                ScoreCell(column.plugin, raw, normalized, column.weight)
                for raw, normalized in zip(column.raw.tolist(), column.normalized.tolist(), strict=True)
            ]
            for column in self.scores.columns
        ]
        totals = self.scores.totals.tolist()
        return {
            row: (tuple(column[at] for column in columns), totals[at])
            for at, row in enumerate(search.feasible.tolist())
        }
