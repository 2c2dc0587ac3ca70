"""Explains an engine's decision about one pod, at the pod's turn.

Simulations use an engine over a recorded cluster, a running scheduler uses one over its own copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.decision import Decision, Detail
from kdsl.cycle.engine import Engine
from kdsl.eval.scalar.meter import Steps
from kdsl.explain.cards import CardExplainer, CardsOfNode
from kdsl.explain.explanation import Explanation
from kdsl.explain.findings import Findings
from kdsl.explain.inspection import Inspection, inspect
from kdsl.explain.placement import placement_of


@dataclass(frozen=True, slots=True)
class Turns:
    """An engine with its own `cluster`, on which it places pods.

    The engine runs `rules`; `steps` is the limit of one rule.
    """

    engine: Engine
    cluster: ClusterCache
    rules: RuleSet
    steps: Steps

    def explain(self, pods: Sequence[PodInfo], pod: PodInfo, inspection: Inspection) -> Explanation | None:
        """Decide `pods` in the order of the queue until the turn of `pod`, which is one of them.

        None where it gets no turn.
        """
        found: list[Findings] = []

        def detail_of(turn: PodInfo) -> Detail | None:
            # Only this pod's decision is full: for every other pod that would cost more than deciding.
            if turn.key != pod.key:
                return None
            if inspection.is_needed and not found:
                found.extend(self._findings(turn, inspection))
            return Detail.FULL

        for decision in self.engine.decisions(pods, on_turn=detail_of):
            if decision.pod == pod.key:
                return Explanation(
                    decision,
                    found[0] if found else None,
                    placement_of(decision),
                    self.engine.waking_events(pod.key),
                    cards=self._cards(decision, pod, self.cluster.snapshot()),
                    home=inspection.home,
                )
        return None

    def _findings(self, pod: PodInfo, inspection: Inspection) -> list[Findings]:
        known = self.engine.attempt(pod)
        if known is None:
            return []
        attempt, contested = known
        return [
            inspect(
                self.rules, attempt.table, attempt.pod, attempt.snapshot, contested, self.steps, inspection
            )
        ]

    def _cards(self, decision: Decision, pod: PodInfo, snapshot: Snapshot) -> CardsOfNode | None:
        """Return the cards of the node that a pod was placed on, before the pod took its own."""
        row = snapshot.row_of(decision.node) if decision.node and pod.device_containers else None
        if row is None:
            return None
        explainer = CardExplainer.of(self.rules, self.rules.profiles[decision.profile], self.steps)
        node = snapshot.info(row)
        placed = next((each for each in node.pods if each.key == pod.key), None)
        if explainer is None or placed is None:
            return None
        return explainer.explain(pod, snapshot.overlay(row, node.without_pod(placed)), row)
