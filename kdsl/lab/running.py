"""One run: the engine places the pods of a trace in sequence, with measurements after each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.app import Settings, devices_in_use
from kdsl.base.errors import KdslError
from kdsl.base.frozen_map import freeze
from kdsl.base.garbage import settled_heap
from kdsl.base.resources import CPU
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.devices.typical import TypicalPod, fragmentation
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.decision import TieBreak
from kdsl.lab.traces import CARD, Trace, TraceNode, TracePod
from kdsl.plan.card_table import CardsOf
from kdsl.sim.openb import MODEL_LABEL, node_facts, pod_info
from kdsl.sim.run import simulated_engine
from kdsl.sim.workload import Workload

CARDS_LABEL: Final = "openb.kdsl.dev/cards"
"""The label of pods that want cards: `share`, or the number of cards."""
MOST_PODS: Final = 1001
"""The pods that a node takes."""

ALL_NODES: Final = 100
"""The percentage of nodes among which a run searches."""

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of a pod and the numbers of its cards; `node` is None for a pod that waits, for a `reason`."""

    pod: str
    node: str | None
    cards: tuple[int, ...] = ()
    reason: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Samples:
    """The measures after each pod, in parts of cards: requested so far, in use, free and useless to
    typical pods.

    `total` is that of all cards.
    """

    total: int
    arrived: Int64s
    used: Int64s
    lost: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run."""

    placements: tuple[Placement, ...]
    samples: Samples
    pending: Mapping[str, int] = field(default_factory=dict)
    """The pods without a node, by reason."""


def workload_of(trace: Trace) -> Workload:
    """Return the nodes and pods of a trace as Kubernetes objects."""
    nodes, pods = list(map(_node_of, trace.nodes)), list(map(_pod_of, trace.pods))
    # Nodes in random order have other names than those that pods are on.
    names = {node.facts.name: node.name for node in trace.nodes if node.facts is not None}
    placed = [pod.on(names.get(pod.node_name, pod.node_name)) for pod in trace.placed]
    return Workload(nodes, placed, pods, trace.catalog)


def _node_of(node: TraceNode) -> NodeFacts:
    if node.facts is not None:
        return replace(node.facts, name=node.name)
    return node_facts(node.name, node.cpu, node.memory, node.cards, node.model, MOST_PODS)


def _pod_of(pod: TracePod) -> PodInfo:
    if pod.info is not None:
        # The clone of a pod has another name, with the same namespace before it.
        return pod.info.with_fields(name=pod.name.rpartition("/")[2], uid=pod.name)
    tag = "" if not pod.parts else "share" if pod.parts < CARD else str(pod.cards)
    return pod_info(
        pod.name,
        pod.cpu,
        pod.memory,
        pod.parts,
        pod.accepted,
        freeze({CARDS_LABEL: tag} if tag else {}),
        0,
    )


def out_of_order(decided: str, first: str) -> KdslError:
    """Return the error of a run whose queue does not keep the order of arrival, as with priorities."""
    return KdslError(
        f"`{decided}` was decided before `{first}`, which arrived first: the profile's queue prefers it, as"
        " by priority. Pods of a run without time are decided in order of arrival: give the experiment `time`"
    )


def run(
    rules: RuleSet, profile: str, trace: Trace, seed: int = 0, tie_break: TieBreak = TieBreak.FIRST
) -> Run:
    """Place the pods of a trace in sequence: each is tried once, with all nodes evaluated.

    `seed` is for the tie-break `random`. Raises KdslError if the profile has no devices.
    """
    settings = Settings(profile=profile, seed=seed, tie_break=tie_break, percentage=ALL_NODES)
    workload = workload_of(trace)
    devices = next(devices_in_use(rules, settings, ()), None)
    if devices is None:
        raise KdslError(f"profile `{profile}` has no devices: the lab measures cards")
    meter = _Meter(trace, devices.inventories.cards)
    placements: list[Placement] = []
    pending: dict[str, int] = {}
    with simulated_engine(rules, workload, settings) as (engine, cluster, _), settled_heap():
        meter.start(cluster.snapshot(), {pod.node_name for pod in workload.placed})
        decisions = zip(trace.pods, workload.pending, engine.decisions(workload.pending), strict=False)
        for arrived, pod, decision in decisions:
            if decision.pod != pod.key:
                raise out_of_order(decision.pod, pod.key)
            if decision.node:
                node = cluster.snapshot().node(decision.node)
                assert node is not None
                placements.append(Placement(arrived.name, decision.node, meter.place(node)))
            else:
                pending[decision.message] = pending.get(decision.message, 0) + 1
                placements.append(Placement(arrived.name, None, reason=decision.message))
                engine.leave_queue(pod)
            meter.sample()
    return Run(tuple(placements), meter.samples(), pending)


class _Meter:
    """Measures after each pod; only the pod's node is measured again."""

    def __init__(self, trace: Trace, cards_of: CardsOf) -> None:
        self._typical: Sequence[TypicalPod] = trace.typical
        self._cards_of = cards_of
        self._total = trace.parts
        self._free = {node.name: (CARD,) * node.cards for node in trace.nodes}
        self._rows = {node.name: row for row, node in enumerate(trace.nodes)}
        known: dict[tuple[int, int, str], float] = {}
        for node in trace.nodes:
            kind = node.cpu, node.cards, node.model
            if kind not in known:
                known[kind] = fragmentation(self._typical, node.cpu, (CARD,) * node.cards, node.model)
        self._lost = np.array([known[node.cpu, node.cards, node.model] for node in trace.nodes])
        self._used = 0
        self._sums: list[tuple[int, float]] = []
        self._arrived = np.cumsum(np.array([pod.parts for pod in trace.pods], np.int64))

    def start(self, snapshot: Snapshot, names: Iterable[str]) -> None:
        """Take in the nodes that have pods from the start."""
        for node in map(snapshot.node, sorted(names)):
            if node is not None:
                self.place(node)
        self._arrived += self._used

    def place(self, node: NodeInfo) -> tuple[int, ...]:
        """Take in a node that got a pod; return the numbers of the cards that give a part to it."""
        before = self._free[node.name]
        after = tuple([card.cores - card.used_cores for card in self._cards_of(node)])
        self._free[node.name] = after
        self._used += sum(before) - sum(after)
        cpu = node.allocatable.amount(CPU) - node.requested.amount(CPU)
        model = node.labels.get(MODEL_LABEL, "")
        self._lost[self._rows[node.name]] = fragmentation(self._typical, cpu, after, model)
        return tuple([at for at, (was, left) in enumerate(zip(before, after, strict=True)) if was != left])

    def sample(self) -> None:
        self._sums.append((self._used, float(self._lost.sum())))

    def samples(self) -> Samples:
        used = np.array([used for used, _ in self._sums], np.int64)
        lost = np.array([lost for _, lost in self._sums], np.float64)
        return Samples(self._total, self._arrived[: len(used)], used, lost)


# ---- metrics -----------------------------------------------------------------------------------------------


def loads(samples: Samples) -> Int64s:
    """Return the requested share of all cards at each sample, in whole percent, halves to even."""
    return np.rint(samples.arrived / (samples.total / 100)).astype(np.int64)


def allocation(samples: Samples) -> NDArray[np.float64]:
    """Return the used share of all cards at each sample, in percent with two decimals."""
    return _rounded(100 * samples.used / samples.total)


def lost_of_idle(samples: Samples) -> NDArray[np.float64]:
    """Return the percentage of free capacity that typical pods cannot use, with two decimals."""
    idle = samples.total - samples.used
    return _rounded(100 * samples.lost / np.where(idle == 0, 1, idle))


def lost_of_all(samples: Samples) -> NDArray[np.float64]:
    """Return the share of all cards that is free and useless to typical pods, in percent."""
    return 100 * samples.lost / samples.total


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # Python rounds decimal digits correctly; numpy multiplies first.
    return np.array([round(value, 2) for value in values.tolist()])


def by_load(samples: Samples, values: NDArray[np.float64], wanted: Sequence[int]) -> Iterator[float | None]:
    """Yield the mean of the samples at each load; where there are none, of those at the loads next to it."""
    at = loads(samples)
    for load in wanted:
        chosen = values[at == load]
        if not len(chosen):
            chosen = values[abs(at - load) <= 1]
        yield float(np.mean(chosen)) if len(chosen) else None
