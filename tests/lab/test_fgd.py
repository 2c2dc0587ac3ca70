"""The rule file of FGD against the paper's algorithm written out: node and cards of every decision."""

from __future__ import annotations

import math
from random import Random

import pytest
from kdsl.cluster.devices.typical import Fragmentation
from kdsl.lab.rules import TYPICAL, rules_of
from kdsl.lab.running import Placement, run
from kdsl.lab.traces import CARD, Preparation, Trace, TraceNode, TracePod, prepared, typical_pods

VALUES = {"Fragmentation.typical": TYPICAL, "Milli.typical": TYPICAL}


def _trace(random: Random) -> Trace:
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


class _Paper:
    """Places pods as the paper does, looking at every node and card."""

    def __init__(self, trace: Trace) -> None:
        self._measure = Fragmentation(trace.typical)
        self._nodes = trace.nodes
        self._cpu = [node.cpu for node in trace.nodes]
        self._memory = [node.memory for node in trace.nodes]
        self._free = [[CARD] * node.cards for node in trace.nodes]

    def place(self, pod: TracePod) -> Placement:
        best: tuple[int, int, tuple[int, ...]] | None = None
        for at in range(len(self._nodes)):
            for cards in self._choices(at, pod):
                points = self._points(at, pod, cards)
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

    def _points(self, at: int, pod: TracePod, cards: tuple[int, ...]) -> int:
        free, model = self._free[at], self._nodes[at].model
        after = [left - pod.share if card in cards else left for card, left in enumerate(free)]
        before = self._measure.of_one(self._cpu[at], free, model)
        change = before - self._measure.of_one(self._cpu[at] - pod.cpu, after, model)
        return int(100 * (1 / (1 + math.exp(-change / 1000))))


@pytest.mark.parametrize("seed", range(4))
def test_every_decision_is_the_papers(seed: int) -> None:
    trace = prepared(_trace(Random(seed)), seed, Preparation())
    checked = rules_of("policies.atc23.fgd.fgd", VALUES, trace.typical)
    paper = _Paper(trace)
    assert list(run(checked.rules, checked.profile, trace).placements) == [
        paper.place(pod) for pod in trace.pods
    ]


def test_the_trace_is_full_in_the_end() -> None:
    trace = prepared(_trace(Random(0)), 0, Preparation())
    paper = _Paper(trace)
    placements = [paper.place(pod) for pod in trace.pods]
    assert sum(placed.node is None for placed in placements) > 5
    assert sum(len(placed.cards) > 1 for placed in placements) > 5
