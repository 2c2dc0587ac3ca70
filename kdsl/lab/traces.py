"""Traces of GPU clusters as plain values, and the steps that prepare them for a run.

The steps are those of the simulator of "Beware of Fragmentation" (USENIX ATC 2023), which draws from one
generator in a fixed order: `prepared` gives the same pods and nodes for a seed, in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.devices.typical import TypicalPod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.lab.go_random import GoRandom
from kdsl.sim.openb import NODE_COLUMNS, POD_COLUMNS, Row, models_of, node_of, read_rows

CARD: Final = 1000
"""The parts of a card."""
INFORMERS: Final = 10
"""The simulator starts so many informers before it ranks nodes, and each draws one number."""
COVERED: Final = 0.95
"""Typical pods are the most frequent kinds that together are so much of all pods."""


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod: `cards` cards with `share` parts of each, 0 for none; `models` as written, such as `T4|P100`.

    `info` is the pod of a trace of another form than openb's, under its name there.
    """

    name: str
    cpu: int
    memory: int
    cards: int
    share: int
    models: str = ""
    info: PodInfo | None = field(default=None, compare=False, repr=False)

    @property
    def parts(self) -> int:
        """The parts of all of its cards."""
        return self.cards * self.share

    @property
    def accepted(self) -> tuple[str, ...]:
        return tuple(model for model in self.models.split("|") if model)


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node with so many cards of one model. CPU is in thousandths, memory in MiB.

    `facts` is the node of a trace of another form than openb's, under its name there.
    """

    name: str
    cpu: int
    memory: int
    cards: int
    model: str
    facts: NodeFacts | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Trace:
    """Nodes in the order that breaks ties, pods in order of arrival; `typical` are those of the pods as
    recorded.

    `placed` are pods that are on nodes from the start, by the names of the nodes' `facts`; `catalog` are the
    other objects, `warnings` name the parts that were left out of the recording.
    """

    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]
    typical: tuple[TypicalPod, ...]
    placed: tuple[PodInfo, ...] = ()
    catalog: tuple[CatalogObject, ...] = ()
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)

    @property
    def parts(self) -> int:
        """The parts of all cards of the nodes."""
        return sum(node.cards for node in self.nodes) * CARD

    @property
    def supply(self) -> dict[str, int]:
        """The number of cards by model, in the order of models."""
        counts: Counter[str] = Counter()
        for node in self.nodes:
            counts[node.model] += node.cards
        return dict(sorted(counts.items()))


def read_trace(nodes_csv: str | Path, pods_csv: str | Path) -> tuple[Trace, tuple[Diagnostic, ...]]:
    """Read a node list and a pod list of the openb trace, in the order of their names."""
    found: list[Diagnostic] = []
    nodes = sorted(
        read_rows(nodes_csv, NODE_COLUMNS, lambda row: TraceNode(*node_of(row)), found),
        key=lambda node: node.name,
    )
    pods = sorted(read_rows(pods_csv, POD_COLUMNS, _pod, found), key=lambda pod: pod.name)
    return Trace(tuple(nodes), tuple(pods), typical_pods(pods)), tuple(found)


def _pod(row: Row) -> TracePod:
    models_of(row)
    cards, share = row.number("num_gpu", 1024), row.number("gpu_milli", CARD)
    if cards > 1 and share < CARD:
        row.complain("gpu_milli", "a pod with several cards wants all of each")
    return TracePod(
        row.name("name"),
        row.number("cpu_milli"),
        row.number("memory_mib"),
        cards if share else 0,
        share if cards else 0,
        row.text("gpu_spec"),
    )


def typical_pods(pods: Iterable[TracePod], covered: float = COVERED) -> tuple[TypicalPod, ...]:
    """Return the most frequent kinds of pods that together are `covered` of all, with their shares among
    these.
    """
    counts = Counter((pod.cpu, pod.share, pod.cards, pod.models) for pod in pods)
    total = counts.total()
    ordered = sorted(counts.items(), key=lambda each: (each[1], *each[0]), reverse=True)
    chosen: list[tuple[tuple[int, int, int, str], int]] = []
    reached = 0
    for kind, count in ordered:
        chosen.append((kind, count))
        reached += count
        if reached >= covered * total:
            break
    share = reached / total if total else 1.0
    return tuple(
        TypicalPod(count / total / share, cpu, cards, part, tuple(each for each in models.split("|") if each))
        for (cpu, part, cards, models), count in chosen
    )


# ---- preparation -------------------------------------------------------------------------------------------


def shuffled(pods: Sequence[TracePod], random: GoRandom) -> list[TracePod]:
    """Return pods in a random order that depends on their names, not on the order given."""
    return random.shuffled(sorted(pods, key=lambda pod: pod.name))


def tuned(
    pods: Sequence[TracePod], originals: Sequence[TracePod], target: int, random: GoRandom
) -> list[TracePod]:
    """Add clones of random originals, or remove random pods, until `target` parts of cards are requested.

    Clones come last. A clone that would exceed the target ends it, with a pod of several cards counted as one
    card.
    """
    found = list(pods)
    requested = sum(pod.parts for pod in found)
    if requested > target:
        while requested > target:
            requested -= found.pop(random.intn(len(found))).parts
        return found
    ordered = sorted(originals, key=lambda pod: pod.name)
    number = 0
    while ordered:
        pod = ordered[random.intn(len(ordered))]
        if requested + pod.share > target:
            return found
        found.append(replace(pod, name=f"{pod.name}-tuned-{number}"))
        requested += pod.parts
        number += 1
    return found


def inflated(pods: Sequence[TracePod], ratio: float, random: GoRandom) -> list[TracePod]:
    """Add clones of random pods until there are `ratio` times as many; no fewer than given."""
    found = list(pods)
    ordered = sorted(pods, key=lambda pod: pod.name)
    for number in range(int(len(pods) * ratio) - len(pods)):
        pod = ordered[random.intn(len(ordered))]
        found.append(replace(pod, name=f"{pod.name}-inflated-{number}"))
    return found


def ranked(nodes: Sequence[TraceNode], random: GoRandom) -> list[TraceNode]:
    """Return nodes in random order, each with its rank before its name."""
    ordered = sorted(nodes, key=lambda node: node.name)
    named = [
        replace(node, name=f"{rank:04d}-{node.name}")
        for rank, node in zip(random.perm(len(ordered)), ordered, strict=True)
    ]
    return sorted(named, key=lambda node: node.name)


@dataclass(frozen=True, slots=True)
class Preparation:
    """The changes that make a trace the input of a run.

    `load` is the requested share of all cards, None for that of the trace. `inflation` is the number of pods
    in multiples of it, after tuning.
    """

    shuffle: bool = True
    load: float | None = 1.3
    inflation: float = 1.0


def prepared(trace: Trace, seed: int, how: Preparation) -> Trace:
    """Return a trace with its pods and nodes in the order for a seed. Without `shuffle` nodes stay as they
    are, too.
    """
    random = GoRandom(seed)
    pods: list[TracePod] = list(trace.pods)
    # INVARIANT: the simulator draws in this order, for each step one generator: one number for a log line
    # that is never written, the pods' order, clones, one for each informer, the nodes' ranks.
    random.int63()
    if how.shuffle:
        pods = shuffled(pods, random)
    if how.load is not None:
        pods = tuned(pods, trace.pods, round(how.load * trace.parts), random)
    for _ in range(INFORMERS):
        random.float64()
    nodes = ranked(trace.nodes, random) if how.shuffle else list(trace.nodes)
    if how.inflation > 1:
        pods = inflated(pods, how.inflation, random)
    return replace(trace, nodes=tuple(nodes), pods=tuple(pods))
