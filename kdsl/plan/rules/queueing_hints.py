"""Queueing hints of compiled predicates: the events that can cure a rejection, and whether one did.

The events are derived from the reads of a rule. If the answer for a node depends on the pod and that node
alone, the rule runs on the node before and after the event, which is exact. Otherwise the event alone
decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from kdsl.base.events import EventPattern, Resource, merged
from kdsl.check.analyses.cures import predicate_cures
from kdsl.check.model.rule_set import CheckedPredicate, Fns
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.eval.scalar import Frame
from kdsl.hooks.specs import Narrowed, hookimpl
from kdsl.plan.compile.failures import Failure, StatusNumbers
from kdsl.plan.compile.frames import WhatIfs
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.rules.predicate import SKIP, PredicateProgram

MAX_PODS: Final = 4096
"""The most pods of which the values that a rule computes once per pod are kept for the next event."""


class _Rejections(StatusNumbers):
    """Numbers that only tell rejection from success: hints need no reasons."""

    def id_of(self, failures: tuple[Failure, ...]) -> int:
        return 1


_REJECTIONS: Final = _Rejections()


class HintRule:
    """One predicate, without its tightenings."""

    def __init__(self, rule: CheckedPredicate, program: PredicateProgram, fns: Fns) -> None:
        self.cures = predicate_cures(rule, fns)
        self.dependencies = Dependencies.of(rule.reads)
        self._program = program

    def passes(self, pod: PodInfo, node: NodeInfo, known: WhatIfs) -> bool:
        """Return whether the rule lets `pod` onto `node`, for rules with an answer local to the node.

        `known` are values that depend on the pod only.
        """
        frames = self._program.frames
        frame = frames.begin_what_if(pod, None, known)
        passes = self._passes(frame, node)
        frames.end_what_if(frame, known)
        return passes

    def _passes(self, frame: Frame, node: NodeInfo) -> bool:
        decided = self._program.decide(frame)
        if isinstance(decided, Narrowed):
            if node.name not in decided.names:
                return False
        elif decided is not None:
            return decided == SKIP
        return not self._program.scalar_statuses(frame, (node,), _REJECTIONS)[0]


class QueueingHints:
    """The hints of a predicate with its tightenings: it is cured if all of them pass and did not before."""

    def __init__(self, rules: Iterable[HintRule]) -> None:
        self._hint_rules = tuple(rules)
        self._is_local = all(rule.cures.is_local for rule in self._hint_rules)
        # By the identity of pods: one that sleeps is asked about again, event by event.
        self._known: dict[int, tuple[PodInfo, WhatIfs]] = {}

    @hookimpl
    def events(self) -> tuple[EventPattern, ...]:
        """Return the events that can cure a rejection."""
        return merged(pattern for rule in self._hint_rules for pattern in rule.cures.patterns)

    @hookimpl
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether the event may have cured the rejection of `pod`."""
        after, before = event.node_after, event.node_before
        if not self._is_local or after is None or event.resource is Resource.TARGET_POD:
            return True
        known = self._known_of(pod)
        return self._pass(pod, after, known) and (before is None or not self._pass(pod, before, known))

    @hookimpl
    def hint_signature(self, pod: PodInfo) -> Hashable:
        """Return what `queueing_hint` reads of a pod; None if no two pods share it."""
        if not self._is_local:
            return ()
        known = [rule.dependencies for rule in self._hint_rules if rule.dependencies is not None]
        if len(known) < len(self._hint_rules):
            return None
        return tuple(dependencies.signature(pod) for dependencies in known)

    def _pass(self, pod: PodInfo, node: NodeInfo, known: WhatIfs) -> bool:
        return all(rule.passes(pod, node, known) for rule in self._hint_rules)

    def _known_of(self, pod: PodInfo) -> WhatIfs:
        of, known = self._known.get(id(pod), (None, {}))
        if of is not pod:
            if len(self._known) >= MAX_PODS:
                self._known.clear()
            known = {}
            self._known[id(pod)] = (pod, known)
        return known
