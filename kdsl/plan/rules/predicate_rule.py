"""A predicate of a profile, or one of its tightenings, with the state of its attempts.

It also judges what-ifs at once, each about one node that lacks some of its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.check.analyses.cures import predicate_cures
from kdsl.check.model.rule_set import CheckedPredicate
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.meter import Meter
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.compile.frames import PodFrames
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.counts.what_ifs import NotTogether, WhatIfCounts
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.rules.counted_pods import CountedPods
from kdsl.plan.rules.node_rule import NodeRule, RuleAttempt
from kdsl.plan.rules.predicate import PredicateProgram
from kdsl.plan.rules.waiting_pods import FramesOf, WaitingPods

IDS: Final = np.dtype(np.int32)
"""The type of status numbers."""


class PredicateRule(NodeRule[CheckedPredicate, PredicateProgram]):
    """A predicate without its tightenings, or one of these."""

    dtype = IDS

    def __init__(self, rule: CheckedPredicate, key: str, functions: CompiledFunctions) -> None:
        super().__init__(rule, key, functions, PredicateProgram(rule, functions))
        self.decides_early, self.can_prefetch = self._program.decides_early, self.is_columnar
        self.passes = self._program.passes
        self.cures = predicate_cures(rule, functions.fns)
        self.dependencies = Dependencies.of(rule.reads)
        self._functions = functions
        self._live: LiveSnapshot | None = None
        self._waiting: WaitingPods | None = None

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        """Decide for all nodes, and keep the state of the attempt for `statuses`."""
        self._live = nodes.snapshot.live
        attempt = self._begin(pod, ClusterView(nodes.snapshot))
        state.values[self.key] = attempt
        return self._program.decide(attempt.frame)

    def statuses(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        """Return the status of each node, as a number in `numbers`; None if all pass."""
        attempt = state.values.get(self.key)
        if isinstance(attempt, RuleAttempt) and attempt.snapshot is nodes.snapshot:
            return self._statuses(attempt, nodes, numbers)

        # PreFilter had another snapshot (as in a what-if) or did not run, so its result may not hold.
        def ask(view: ClusterView, nodes: NodeSet) -> NDArray[np.int32] | None:
            return self._decided(self._begin(pod, view), nodes, numbers)

        if nodes.snapshot.what_ifs is not None:
            return statuses_of_what_ifs(nodes, ask)
        return ask(ClusterView(nodes.snapshot), nodes)

    def _decided(
        self, attempt: RuleAttempt, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        """Return the status of each node, for an attempt that no PreFilter began."""
        match self._program.decide(attempt.frame):
            case None:
                return self._statuses(attempt, nodes, numbers)
            case Narrowed(names=names):
                return self._statuses_within(names, attempt, nodes, numbers)
            case decided:
                if decided.code is Code.SKIP:
                    return None
                return np.full(len(nodes), numbers.number(decided), IDS)

    @cached_property
    def _counted(self) -> CountedPods | None:
        """The questions about placed pods, compiled for the first of them that could wake a pod."""
        counts = self.cures.counts
        return CountedPods(self.rule, counts, self._functions) if counts else None

    @cached_property
    def pod_reads(self) -> Dependencies | None:
        """The reads of a waiting pod in `may_count`; None if no two pods share them."""
        return Dependencies.of(frozenset(word for word in self.rule.reads if word.startswith("pod.")))

    def may_count(self, pod: PodInfo, before: object, after: object) -> bool:
        """Return whether a placed pod that comes, goes or changes may cure the rejection of `pod`."""
        counted, live = self._counted, self._live
        return counted is None or live is None or counted.may_help(pod, before, after, live)

    def passing(self, pods: tuple[PodInfo, ...], node: NodeInfo, frames_of: FramesOf) -> NDArray[np.bool_]:
        """Return `passes` for many pods; `frames_of` returns the known frames of one."""
        if self._live is None:
            return np.array([self.passes(pod, node, frames_of(pod)) for pod in pods], np.bool_)
        if self._waiting is None:
            self._waiting = WaitingPods(self._program, frames_of)
        return self._waiting.passing(pods, node, self._live)

    def is_for(self, pod: PodInfo, view: ClusterView) -> bool:
        """Return whether the conditions of `applies when` that do not depend on nodes hold for a pod."""
        return self._program.is_for(self._program.begin(pod, view))

    def faults_of_pod(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Fault, ...]:
        """Return the errors in PreFilter that are not in the answer."""
        return self._program.faults_of_pod(self._program.begin(pod, ClusterView(snapshot)))

    def faults_at(self, pod: PodInfo, nodes: NodeSet) -> tuple[Fault, ...]:
        """Return the errors on nodes that are not in the answers."""
        return self._program.faults_at(self._program.begin(pod, ClusterView(nodes.snapshot)), nodes.nodes())

    def statuses_of(
        self, pod: PodInfo, nodes: NodeSet, numbers: StatusNumbers, known: PodFrames | None = None
    ) -> NDArray[np.int32] | None:
        """Return the status of each node, as a number in `numbers`, for a pod that passed PreFilter; None if
        all pass.

        The frame resumes, and replaces, the `known` one.
        """
        program, view = self._program, ClusterView(nodes.snapshot)
        self._live = nodes.snapshot.live
        if known is None:
            return program.statuses(program.begin(pod, view), nodes, numbers)
        frame = program.frames.resume(pod, view, known)
        ids = program.statuses(frame, nodes, numbers)
        program.frames.leave(frame, known)
        return ids

    def _statuses(
        self, attempt: RuleAttempt, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        try:
            frame = attempt.spare.pop()
        except IndexError:  # other threads use them
            frame = attempt.frame.copy()
        ids = self._program.statuses(frame, nodes, numbers)
        attempt.spare.append(frame)
        return ids

    def _statuses_within(
        self, names: Collection[str], attempt: RuleAttempt, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32]:
        """Evaluate the nodes that `narrow to` names, and reject the others."""
        inside = np.array([name in names for name in nodes.names()], dtype=np.bool_)
        ids = np.full(len(nodes), numbers.number(self._program.outside(attempt.frame)), IDS)
        found = self._statuses(attempt, nodes.take(inside), numbers)
        ids[inside] = 0 if found is None else found
        return ids

    def _begin(self, pod: PodInfo, view: ClusterView) -> RuleAttempt:
        frame = self._program.begin(pod, view)
        return RuleAttempt(view.snapshot, frame, [frame])


Ids = NDArray[np.int32]
Ask = Callable[[ClusterView, NodeSet], Ids | None]
"""Returns the number of each node's status in the cluster of a view; None if all pass."""


def statuses_of_what_ifs(nodes: NodeSet, ask: Ask) -> Ids:
    """Return the number of each node's status in its own what-if.

    The rule runs on nodes together, with the numbers of the first one's what-if; it runs again on those whose
    what-ifs have other numbers.
    """
    ids = np.zeros(len(nodes), np.int32)
    left = [np.arange(len(nodes))]
    while left:
        places = left.pop()
        some = nodes.take(places)
        try:
            found, groups = _together(some, ask)
        except NotTogether:
            for place, row in zip(places.tolist(), some.rows, strict=True):
                alone = NodeSet(nodes.snapshot.what_if(row), row[np.newaxis])
                answer = ask(ClusterView(alone.snapshot), alone)
                ids[place] = 0 if answer is None else answer[0]
            continue
        if found is not None:
            ids[places[groups[0]]] = found[groups[0]]
        left += [places[each] for each in groups[1:]]
    return ids


def _together(nodes: NodeSet, ask: Ask) -> tuple[Ids | None, list[NDArray[np.intp]]]:
    """Return the answers of a rule that are right for the first group of nodes, and all groups."""
    assert nodes.snapshot.what_ifs is not None
    counts, shortages = WhatIfCounts(nodes, nodes.snapshot.what_ifs), Meter.shortages
    found = ask(ClusterView(nodes.snapshot, counts), nodes)
    if Meter.shortages != shortages:
        # With fewer pods, counting takes fewer steps.
        raise NotTogether
    return found, counts.groups()
