"""Queueing hints of compiled predicates: the events that can cure a rejection, and whether one did.

The events are derived from the reads of a rule. If the answer for a node depends on the pod and that node
alone, the rule runs on the node before and after the event, which is exact. Otherwise the event alone
decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kdsl.base.events import EventPattern, Resource, merged
from kdsl.check.analyses.cures import predicate_cures
from kdsl.check.model.rule_set import CheckedPredicate, Fns
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.hooks.specs import Narrowed
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.rules.predicate import SKIP, PredicateProgram


class HintRule:
    """One predicate, without its tightenings."""

    def __init__(self, rule: CheckedPredicate, program: PredicateProgram, fns: Fns) -> None:
        self.cures = predicate_cures(rule, fns)
        self.dependencies = Dependencies.of(rule.reads)
        self._program = program

    def passes(self, pod: PodInfo, node: NodeInfo) -> bool:
        """Return whether the rule lets `pod` onto `node`, for rules with an answer local to the node."""
        frame = self._program.begin(pod, None)
        decided = self._program.decide(frame)
        if isinstance(decided, Narrowed):
            if node.name not in decided.names:
                return False
        elif decided is not None:
            return decided == SKIP
        return next(self._program.scalar_statuses(frame, (node,), StatusNumbers())) == 0


class QueueingHints:
    """A predicate with its tightenings: it is cured if all of them pass and did not before."""

    def __init__(self, rules: Iterable[HintRule]) -> None:
        self._rules = tuple(rules)
        self._is_local = all(rule.cures.is_local for rule in self._rules)
        self._event: ClusterEvent | None = None
        self._answers: dict[Hashable, bool] = {}

    def events(self) -> tuple[EventPattern, ...]:
        """Return the events that can cure a rejection."""
        return merged(pattern for rule in self._rules for pattern in rule.cures.patterns)

    def is_cured(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether the event may have cured the rejection of `pod`; evaluated once per signature."""
        if not self._is_local or event.node_after is None or event.resource is Resource.TARGET_POD:
            return True
        signature = self._signature(pod)
        if signature is None:
            return self._flips(pod, event)
        if event is not self._event:
            self._event = event
            self._answers.clear()
        if signature not in self._answers:
            self._answers[signature] = self._flips(pod, event)
        return self._answers[signature]

    def _signature(self, pod: PodInfo) -> Hashable:
        known = [rule.dependencies for rule in self._rules if rule.dependencies is not None]
        if len(known) < len(self._rules):
            return None
        return tuple(dependencies.signature(pod) for dependencies in known)

    def _flips(self, pod: PodInfo, event: ClusterEvent) -> bool:
        after, before = event.node_after, event.node_before
        if after is None or not self._pass(pod, after):
            return False
        return before is None or not self._pass(pod, before)

    def _pass(self, pod: PodInfo, node: NodeInfo) -> bool:
        return all(rule.passes(pod, node) for rule in self._rules)
