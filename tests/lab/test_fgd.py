"""The rule file of FGD against the paper's algorithm written out: node and cards of every decision."""

from __future__ import annotations

import math
from random import Random

import pytest
from kdsl.cluster.devices.typical import Fragmentation
from kdsl.lab.rules import TYPICAL, rules_of
from kdsl.lab.running import run
from kdsl.lab.traces import Preparation, Trace, prepared

from tests.lab.plain_placing import PlainPlacer, State, random_trace

VALUES = {"Fragmentation.typical": TYPICAL, "Milli.typical": TYPICAL}


def _paper(trace: Trace) -> PlainPlacer:
    """Return the paper's algorithm for the typical pods of a trace."""
    measure = Fragmentation(trace.typical)

    def points(before: State, after: State) -> int:
        change = measure.of_one(*before) - measure.of_one(*after)
        return int(100 * (1 / (1 + math.exp(-change / 1000))))

    return PlainPlacer(trace, points)


@pytest.mark.parametrize("seed", range(4))
def test_every_decision_is_the_papers(seed: int) -> None:
    trace = prepared(random_trace(Random(seed)), seed, Preparation())
    checked = rules_of("policies.atc23.fgd.fgd", VALUES, trace.typical)
    paper = _paper(trace)
    assert list(run(checked.rules, checked.profile, trace).placements) == [
        paper.place(pod) for pod in trace.pods
    ]


def test_the_trace_is_full_in_the_end() -> None:
    trace = prepared(random_trace(Random(0)), 0, Preparation())
    paper = _paper(trace)
    placements = [paper.place(pod) for pod in trace.pods]
    assert sum(placed.node is None for placed in placements) > 5
    assert sum(len(placed.cards) > 1 for placed in placements) > 5
