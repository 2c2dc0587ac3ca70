"""Placing pods one after the other by points, written out: what policies of the lab are compared with."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from kdsl.lab.running import Placement
from kdsl.lab.traces import CARD, Trace, TraceNode, TracePod, typical_pods

State = tuple[int, list[int], str]
"""The free CPU of a node, the free parts of its cards, and their model."""
Points = Callable[[State, State], int]
"""Returns how good it is that a node comes from one state to another."""


def random_trace(random: Random) -> Trace:
    """Return a small cluster, and more pods than it can take."""
    nodes = tuple(
        TraceNode(
            f"node-{number:02d}",
            random.choice([32000, 64000, 96000]),
            random.choice([65536, 262144]),
            random.choice([1, 2, 4, 8]),
            random.choice(["T4", "P100"]),
        )
        for number in range(16)
    )
    pods = []
    for number in range(70):
        cards, share = random.choice([(0, 0), (1, 1000), (2, 1000), (1, 320), (1, 460), (1, 810)])
        cpu, memory = random.choice([2000, 4000, 8000, 12000]), random.choice([4096, 30517])
        models = random.choice(["", "", "", "T4", "P100|T4"]) if cards else ""
        pods.append(TracePod(f"pod-{number:02d}", cpu, memory, cards, share, models))
    return Trace(nodes, tuple(pods), typical_pods(pods))


class PlainPlacer:
    """Places each pod on the node and cards with the most points, looking at all of them; the first wins."""

    def __init__(self, trace: Trace, points: Points) -> None:
        self._points = points
        self._nodes = trace.nodes
        self._cpu = [node.cpu for node in trace.nodes]
        self._memory = [node.memory for node in trace.nodes]
        self._free = [[CARD] * node.cards for node in trace.nodes]

    def place(self, pod: TracePod) -> Placement:
        best: tuple[int, int, tuple[int, ...]] | None = None
        for at in range(len(self._nodes)):
            for cards in self._choices(at, pod):
                left, model = self._cpu[at] - pod.cpu, self._nodes[at].model
                free = self._free[at]
                after = [part - pod.share if card in cards else part for card, part in enumerate(free)]
                points = self._points((self._cpu[at], free, model), (left, after, model))
                if best is None or points > best[0]:
                    best = points, at, cards
        if best is None:
            return Placement(pod.name, None)
        _, at, cards = best
        self._cpu[at] -= pod.cpu
        self._memory[at] -= pod.memory
        for card in cards:
            self._free[at][card] -= pod.share
        return Placement(pod.name, self._nodes[at].name, cards)

    def _choices(self, at: int, pod: TracePod) -> list[tuple[int, ...]]:
        model = self._nodes[at].model
        if self._cpu[at] < pod.cpu or self._memory[at] < pod.memory:
            return []
        if not pod.parts:
            return [()]
        if pod.accepted and model not in pod.accepted:
            return []
        large = [card for card, left in enumerate(self._free[at]) if left >= pod.share]
        if pod.share < CARD:
            return [(card,) for card in large]
        return [tuple(large[: pod.cards])] if len(large) >= pod.cards else []
