"""The policy `room` against its algorithm written out: node and cards of every decision."""

from __future__ import annotations

import math
from random import Random

import pytest
from kdsl.cluster.devices.typical import TypicalPod
from kdsl.lab.rules import SUPPLY, TYPICAL, rules_of
from kdsl.lab.running import run
from kdsl.lab.traces import Preparation, Trace, prepared

from tests.lab.plain_placing import PlainPlacer, State, random_trace

VALUES = {
    "Room.typical": TYPICAL,
    "Room.supply": SUPPLY,
    "Milli.typical": TYPICAL,
    "Milli.supply": SUPPLY,
}
MORE = 0.8


def _plain(trace: Trace) -> PlainPlacer:
    """Return the algorithm for a trace, with fractions of pods in place of arrays."""
    supply = trace.supply

    def room_of(pod: TypicalPod, cpu: int, free: list[int], model: str) -> float:
        if not pod.cards or (pod.models and model not in pod.models):
            return 0.0
        pods = float(sum(part // pod.share for part in free) // pod.cards)
        if pod.cpu:
            pods = min(pods, cpu / pod.cpu)
        accepted = sum(count for each, count in supply.items() if each in pod.models)
        rarity = sum(supply.values()) / accepted if pod.models else 1.0
        counted = min(pods, 1.0) + MORE * max(pods - 1.0, 0.0)
        return pod.weight * rarity * (pod.cards * pod.share) * counted

    def points(before: State, after: State) -> int:
        was, is_now = (sum(room_of(pod, *state) for pod in trace.typical) for state in (before, after))
        change = 1000.0 * (is_now - was)
        # Halves go away from zero.
        return int(math.copysign(math.floor(abs(change) + 0.5), change))

    return PlainPlacer(trace, points)


@pytest.mark.parametrize("seed", range(4))
def test_every_decision_is_that_of_the_algorithm(seed: int) -> None:
    trace = prepared(random_trace(Random(seed)), seed, Preparation())
    checked = rules_of("policies.room.room", VALUES, trace.typical, supply=trace.supply)
    plain = _plain(trace)
    placements = list(run(checked.rules, checked.profile, trace).placements)
    assert placements == [plain.place(pod) for pod in trace.pods]
    assert sum(placed.node is None for placed in placements) > 5


def test_the_supply_is_the_number_of_cards_by_model() -> None:
    trace = random_trace(Random(3))
    assert sum(trace.supply.values()) == sum(node.cards for node in trace.nodes)
    assert list(trace.supply) == ["P100", "T4"]
