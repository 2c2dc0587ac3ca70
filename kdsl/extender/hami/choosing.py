"""Filter as HAMi has it: one node is chosen, and the pod is given cards of it, in one step.

All of it happens on the scheduling thread, so no two pods are given the same part of a card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kdsl.base.frozen_map import FrozenMap
from kdsl.base.visible import visible
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.values import EvalError
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.hami.reservations import Reservations
from kdsl.hooks.status import Code, Status
from kdsl.plan.devices.answers import UNREGISTERED, Answers
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.placing import Placed
from kdsl.plan.devices.plugin import DevicesPlugin
from kdsl.plan.devices.stock import Stock


@dataclass(frozen=True, slots=True)
class Chosen:
    """The node of a pod, and all annotations that the pod has now. `scores` are those of the nodes that would
    do, the worst first.
    """

    node: str
    pod: PodInfo
    annotations: Mapping[str, str]
    scores: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What filter finds: `failed` says why nodes do not do, `never` those that no pod's end would help.

    Without `asks` the pod wants no card, and any node does. `problem` says why nobody can tell.
    """

    asks: bool = True
    chosen: Chosen | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


NOTHING_ASKED: Final = Answer(asks=False)


class Chooser:
    """Chooses nodes of the cluster for pods, and sets their cards aside."""

    def __init__(
        self, devices: DevicesPlugin, cache: ClusterCache, reservations: Reservations, options: HamiOptions
    ) -> None:
        self._devices, self._cache = devices, cache
        self._reservations, self._options = reservations, options

    def choose(self, pod: PodInfo, names: Sequence[str]) -> Answer:
        """Choose one of these nodes, and count the pod on it from now on."""
        self._reservations.settle()
        demand = self._devices.admitted_demand(pod, self._cache.snapshot())
        if demand is None:
            return NOTHING_ASKED
        if isinstance(demand, Status):
            return Answer(problem=demand.message)
        self._reservations.take_back(pod)
        known = self._cache.pod(pod.key)
        if known is not None:
            return Answer(problem=f"pod {pod.key} is on node {known.node_name} already")
        snapshot = self._cache.snapshot()
        # What of its namespace's quota the pod had is free again.
        demand = self._devices.admitted_demand(pod, snapshot)
        assert isinstance(demand, Demand)
        found = _Found(demand, names)
        self._ask(demand, snapshot, found)
        return self._settled(pod, demand, snapshot, found)

    def _ask(self, demand: Demand, snapshot: Snapshot, found: _Found) -> None:
        known: list[tuple[str, int]] = []
        for name in found.names:
            row = snapshot.row_of(name)
            if row is None or not self._is_selected(snapshot.info(row).facts):
                found.reject(name, UNREGISTERED, Code.UNRESOLVABLE)
            else:
                known.append((name, row))
        rows = np.array([row for _, row in known], np.int32)
        column = self._devices.answers.column(demand, snapshot, rows)
        scores = self._devices.answers.scores(demand, snapshot, rows).tolist()
        table = [(visible(status.message), status.code) for status in column.table]
        for (name, _), number, score in zip(known, column.ids.tolist(), scores, strict=True):
            if number:
                found.reject(name, *table[number])
            else:
                found.scores.append((name, score))

    def _is_selected(self, facts: NodeFacts) -> bool:
        return not self._options.node_labels or self._options.selects(facts)

    def _settled(self, pod: PodInfo, demand: Demand, snapshot: Snapshot, found: _Found) -> Answer:
        ranked = found.ranked
        if not ranked:
            return found.answer()
        node = ranked[-1][0]
        row = snapshot.row_of(node)
        assert row is not None
        placed = self._devices.answers.grant(demand, snapshot, row)
        if isinstance(placed, Status):
            return Answer(problem=placed.message)
        try:
            written = self._devices.annotations_for(demand, snapshot.info(row), placed)
        except EvalError as error:
            return Answer(problem=error.message)
        annotated = pod.with_fields(annotations=FrozenMap({**pod.annotations, **written}))
        self._reservations.give(annotated, node)
        return found.answer(Chosen(node, annotated, written, ranked))


class Simulator:
    """Chooses among nodes that come with the question, as if no pod were on them: for autoscalers."""

    def __init__(self, devices: DevicesPlugin, options: HamiOptions) -> None:
        self._devices, self._options = devices, options

    def choose(self, pod: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> Answer:
        """Choose one of these nodes; nothing is set aside."""
        demand = self._devices.admitted_demand(pod, snapshot)
        if demand is None:
            return NOTHING_ASKED
        if isinstance(demand, Status):
            return Answer(problem=demand.message)
        # The nodes are nobody else's, and may have names of ours: what is found out about them is not kept.
        answers = Answers(Stock(self._devices.stock.programs))
        found = _Found(demand, [node.name for node in nodes])
        for node in nodes:
            is_selected = self._options.selects(node.facts)
            answer = answers.ask(demand, node) if is_selected else Status(Code.UNRESOLVABLE, (UNREGISTERED,))
            if isinstance(answer, Placed):
                found.scores.append((node.name, float(answer.score)))
            else:
                found.reject(node.name, visible(answer.message), answer.code)
        ranked = found.ranked
        return found.answer(Chosen(ranked[-1][0], pod, {}, ranked) if ranked else None)


class _Found:
    """What is known of the nodes that were asked, in their order."""

    def __init__(self, demand: Demand, names: Sequence[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self.scores: list[tuple[str, float]] = []
        self._spreads = demand.policy.spreads_nodes
        self._failed: dict[str, str] = {}
        self._never: dict[str, str] = {}

    def reject(self, name: str, reason: str, code: Code) -> None:
        """Note why a node does not do."""
        self._failed[name] = reason
        if code is Code.UNRESOLVABLE:
            self._never[name] = reason

    @property
    def ranked(self) -> tuple[tuple[str, float], ...]:
        """The nodes that would do, the best last; of equal ones the first that was named is best."""
        last_first = self.scores[::-1]
        # Sorting in reverse keeps the order of equals, too.
        last_first.sort(key=lambda each: each[1], reverse=self._spreads)
        return tuple(last_first)

    def answer(self, chosen: Chosen | None = None) -> Answer:
        """Say what was found."""
        return Answer(True, chosen, self._failed, self._never)
