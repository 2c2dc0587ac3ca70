"""Filter as in HAMi: choose one node and assign its cards to the pod, in one step.

This runs on the scheduling thread, so no two pods get the same part of a card.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.frozen_map import FrozenMap
from kdsl.base.visible import visible
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.values import EvalError
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.hami.reservations import Reservations
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.devices.answers import CardAnswers
from kdsl.plan.devices.attempt import UNREGISTERED
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.device_error import one_line
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.placing import Placed
from kdsl.plan.devices.plugin import DevicesPlugin


class Ranking:
    """The feasible nodes of a pod with their scores, in the order of the call."""

    def __init__(self, names: Sequence[str], scores: NDArray[np.float64], *, spreads: bool) -> None:
        self._names, self._scores, self._spreads = names, scores, spreads

    def __len__(self) -> int:
        return len(self._names)

    @property
    def best(self) -> str:
        """The node with the lowest score if the pod's policy spreads, else the highest; the first of equal
        ones.
        """
        best = self._scores.argmin() if self._spreads else self._scores.argmax()
        return self._names[int(best)]

    def worst(self, count: int) -> list[tuple[str, float]]:
        """Return `count` nodes with their scores, the worst first."""
        order = (-self._scores if self._spreads else self._scores).argsort(kind="stable")
        return [(self._names[at], float(self._scores[at])) for at in order[:count].tolist()]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen `node`, the `pod` with all annotations, the new `annotations`, and the feasible nodes."""

    node: str
    pod: PodInfo
    annotations: Mapping[str, str]
    ranking: Ranking


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The answer of filter: the reasons of rejected nodes, `failed` for now, `never` whatever is evicted.

    Without `asks` the pod requests no card, and every node is feasible. `problem` is the error of the call.
    """

    asks: bool = True
    chosen: Chosen | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


NOTHING_ASKED: Final = FilterAnswer(asks=False)


class Chooser:
    """Chooses nodes of the cluster for pods, and reserves their cards."""

    def __init__(
        self, devices: DevicesPlugin, cache: ClusterCache, reservations: Reservations, options: HamiOptions
    ) -> None:
        self._devices, self._cache = devices, cache
        self._reservations, self._options = reservations, options

    def choose(self, pod: PodInfo, names: Sequence[str]) -> FilterAnswer:
        """Choose one of these nodes; the pod counts on it from now on."""
        demand = self._devices.demand(pod, self._cache.snapshot(), is_admitted=True)
        if demand is None:
            return NOTHING_ASKED
        if isinstance(demand, Status):
            return FilterAnswer(problem=demand.message)
        self._reservations.take_back(pod)
        known = self._cache.pod(pod.key)
        if known is not None:
            return FilterAnswer(problem=f"pod {pod.key} is on node {known.node_name} already")
        snapshot = self._cache.snapshot()
        # The pod's part of its namespace's quota is free again.
        demand = self._devices.demand(pod, snapshot, is_admitted=True)
        assert isinstance(demand, Demand)
        found = self._ask(demand, snapshot, tuple(dict.fromkeys(names)))
        return self._settled(pod, demand, snapshot, found)

    def _ask(self, demand: Demand, snapshot: Snapshot, names: Sequence[str]) -> _Found:
        found = _Found()
        rows = list(map(snapshot.row_of, names))
        if None in rows or self._options.node_labels:
            found.reject(
                [name for name, row in zip(names, rows, strict=True) if not self._has(snapshot, row)]
            )
            pairs = [each for each in zip(names, rows, strict=True) if self._has(snapshot, each[1])]
            names, rows = [name for name, _ in pairs], [row for _, row in pairs]
        known = np.array(rows, np.intp)
        column = self._devices.answers.column(demand, snapshot, known)
        scores = self._devices.answers.scores(demand, snapshot, known)
        found.take(names, column, scores, spreads=demand.policy.spreads_nodes)
        return found

    def _has(self, snapshot: Snapshot, row: int | None) -> bool:
        return row is not None and self._options.selects(snapshot.info(row).facts)

    def _settled(self, pod: PodInfo, demand: Demand, snapshot: Snapshot, found: _Found) -> FilterAnswer:
        if not found.ranking:
            return found.answer()
        node = found.ranking.best
        row = snapshot.row_of(node)
        assert row is not None
        info = snapshot.info(row)
        placed = self._devices.answers.grant(demand, snapshot, info)
        if isinstance(placed, Status):
            return FilterAnswer(problem=placed.message)
        try:
            written = self._devices.annotations_for(demand, info, placed)
        except EvalError as error:
            return FilterAnswer(problem=one_line(error))
        annotated = pod.with_fields(annotations=FrozenMap({**pod.annotations, **written}))
        self._reservations.give(annotated, node)
        return found.answer(Chosen(node, annotated, written, found.ranking))


class Simulator:
    """Chooses among the whole nodes of a call, as if they had no pods: for autoscalers."""

    def __init__(self, devices: DevicesPlugin, options: HamiOptions) -> None:
        self._devices, self._options = devices, options

    def choose(self, pod: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> FilterAnswer:
        """Choose one of these nodes; nothing is reserved."""
        demand = self._devices.demand(pod, snapshot, is_admitted=True)
        if demand is None:
            return NOTHING_ASKED
        if isinstance(demand, Status):
            return FilterAnswer(problem=demand.message)
        # These nodes are not in the cluster, and may have names of ours: their answers must not be cached.
        answers, found = CardAnswers(Inventories(self._devices.inventories.programs)), _Found()
        found.reject([node.name for node in nodes if not self._options.selects(node.facts)])
        asked = [node for node in nodes if self._options.selects(node.facts)]
        results = [answers.ask(demand, node) for node in asked]
        column = StatusColumn.of(None if isinstance(each, Placed) else each for each in results)
        scores = [float(each.score) if isinstance(each, Placed) else 0.0 for each in results]
        names, spreads = [node.name for node in asked], demand.policy.spreads_nodes
        found.take(names, column, np.array(scores), spreads=spreads)
        ranking = found.ranking
        return found.answer(Chosen(ranking.best, pod, {}, ranking) if ranking else None)


class _Found:
    """The results of the requested nodes."""

    def __init__(self) -> None:
        self.ranking = Ranking((), np.zeros(0), spreads=False)
        self._failed: dict[str, str] = {}
        self._never: dict[str, str] = {}

    def reject(self, names: Iterable[str]) -> None:
        """Reject nodes without registered cards."""
        unregistered = dict.fromkeys(names, UNREGISTERED)
        self._failed |= unregistered
        self._never |= unregistered

    def take(
        self, names: Sequence[str], column: StatusColumn, scores: NDArray[np.float64], *, spreads: bool
    ) -> None:
        """Add the answers of nodes."""
        fit = column.passed
        self.ranking = Ranking([names[at] for at in fit.nonzero()[0].tolist()], scores[fit], spreads=spreads)
        if len(self.ranking) == len(names):
            return
        reasons = [visible(status.message) for status in column.table]
        is_never = [status.code is Code.UNRESOLVABLE for status in column.table]
        for name, number in zip(names, column.ids.tolist(), strict=True):
            if number:
                self._failed[name] = reasons[number]
                if is_never[number]:
                    self._never[name] = reasons[number]

    def answer(self, chosen: Chosen | None = None) -> FilterAnswer:
        """Return the answer of filter."""
        return FilterAnswer(True, chosen, self._failed, self._never)
