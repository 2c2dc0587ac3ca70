"""Errors that the rules of a profile ignore. Rules that ever ignored one run again for each decision.

A rule ignores an error if it goes on without a value: `applies when` counts as true, a score gives the node
nothing. A kept answer does not contain the error. So such rules are remembered, and run again by the scalar
back end: equal pods on equal nodes have equal faults.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.hooks.faults import Fault
from kdsl.plan.rules.compiled_profile import CompiledProfile


class RuleFaults:
    """The errors in the rules of one profile."""

    def __init__(self, compiled: CompiledProfile) -> None:
        self._rules = compiled
        self._erred = compiled.erred

    @property
    def are_possible(self) -> bool:
        return bool(self._erred)

    def of_pod(
        self, pod: PodInfo, snapshot: Snapshot, ran: Collection[str], ended_by: str
    ) -> Iterator[Fault]:
        queue = self._rules.queue
        if queue.qualified in self._erred:
            yield from queue.faults_of_pod(pod)
        for predicate in self._rules.predicates:
            if predicate.name not in ran:
                continue
            # It is unknown whether the tightenings of the last predicate ran.
            for part in predicate.parts[:1] if predicate.name == ended_by else predicate.parts:
                if part.rule.qualified in self._erred:
                    yield from part.faults_of_pod(pod, snapshot)

    def of_filters(self, pod: PodInfo, reached: Callable[[str, bool], NodeSet]) -> Iterator[Fault]:
        for predicate in self._rules.predicates:
            for place, part in enumerate(predicate.parts):
                if part.rule.qualified in self._erred:
                    # Tightenings ran on the nodes that passed.
                    yield from part.faults_at(pod, reached(predicate.name, place > 0))

    def of_scores(self, pod: PodInfo, nodes: NodeSet) -> Iterator[Fault]:
        for score in self._rules.scores:
            if score.rule.qualified in self._erred:
                yield from score.faults_at(pod, nodes)

    def of_preemption(self) -> tuple[Fault, ...]:
        preemption = self._rules.preemption
        return () if preemption is None else preemption.log.take()
