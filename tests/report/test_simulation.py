from __future__ import annotations

from dataclasses import replace

import pytest
from kdsl.cycle.decision import Decision, Victim
from kdsl.report.simulation import SHOWN, Simulation, placement_lines, simulation_document, simulation_text
from kdsl.report.summary import Summary, SummaryBuilder, Utilisation, dominant_reason

from tests.report.decisions import GATED, PENDING, PLACED

SUMMARY = Summary(
    placed=1,
    pending=2,
    evicted=0,
    reasons={"Insufficient cpu": 1, "waiting for scheduling gates: [shop/approved]": 1},
    utilisation={"cpu": Utilisation(8000, 1000, 3000), "memory": Utilisation(2**34, 0, 2**32)},
    pods_per_second=1234.5,
    p50_ms=0.5,
    p99_ms=1.25,
    peak_memory_bytes=64 * 2**20,
)


def test_text() -> None:
    assert simulation_text(Simulation([PLACED, PENDING, GATED], SUMMARY)) == (
        """\
PLACED    NODE  SCORE  FEASIBLE
shop/web  n1      330       2/4

PENDING         WHY
ml/train        0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory.
shop/migration  waiting for scheduling gates: [shop/approved]

1 pod placed, 2 pending

PENDING BY REASON                              PODS
Insufficient cpu                                  1
waiting for scheduling gates: [shop/approved]     1

RESOURCE  ALLOCATABLE  BEFORE         AFTER
cpu               8.0     1.0  12.5%    3.0  37.5%
memory         16.0Gi       0   0.0%  4.0Gi  25.0%

1,234 pods/s, p50 0.50 ms, p99 1.25 ms, peak memory 64.0Mi"""
    )


def test_wide_lists_everything_text_does_not() -> None:
    placed = [PLACED.with_fields(pod=f"shop/web-{at}") for at in range(SHOWN + 3)]
    simulation = Simulation(placed, SUMMARY)
    assert "… and 3 more (-o wide lists all)" in simulation_text(simulation)
    wide = simulation_text(simulation, wide=True)
    assert "more" not in wide and wide.count("shop/web-") == SHOWN + 3
    assert "PROFILE" in wide and "kubernetes.v1_36.default" in wide


def test_the_summary_has_the_published_keys() -> None:
    document = simulation_document(Simulation([], SUMMARY))
    assert list(document) == ["apiVersion", "kind", "decisions", "summary"]
    assert list(SUMMARY.document()) == [
        "placed",
        "pending",
        "evicted",
        "reasons",
        "utilisation",
        "podsPerSecond",
        "p50Ms",
        "p99Ms",
        "peakMemoryBytes",
    ]


def test_placement_lines_have_the_form_of_the_reference() -> None:
    assert list(placement_lines([PLACED, PENDING])) == ["web n1 3 2", "train - 0 0"]


@pytest.mark.parametrize(
    ("decision", "reason"),
    [
        (PENDING, "Insufficient cpu"),
        (GATED, "waiting for scheduling gates: [shop/approved]"),
        (PENDING.with_fields(rejections=PENDING.rejections[2:]), "node(s) had untolerated taint(s)"),
    ],
)
def test_the_dominant_reason_is_the_one_most_nodes_gave(decision: Decision, reason: str) -> None:
    assert dominant_reason(decision) == reason


def test_of_each_pod_the_last_decision_counts() -> None:
    builder = SummaryBuilder({})
    makes_room = PENDING.with_fields(
        nominated="n1", victims=(Victim.of(PLACED.pod, "default-scheduler"),), message="no room"
    )
    for decision in (PLACED, makes_room, GATED, GATED, PLACED.with_fields(pod=PENDING.pod)):
        builder.observe(decision, 1_000_000)
    assert (builder.placed, builder.pending, builder.evicted) == (
        {PENDING.pod},
        {GATED.pod: GATED.message},
        1,
    )


def test_text_names_who_made_room_for_whom() -> None:
    makes_room = PENDING.with_fields(nominated="n1", victims=(Victim.of(PLACED.pod, "default-scheduler"),))
    decisions = [PLACED, makes_room, PLACED.with_fields(pod=PENDING.pod)]
    text = simulation_text(Simulation(decisions, replace(SUMMARY, pending=0, evicted=1)))
    assert text.startswith(
        """\
EVICTED   FOR       ON
shop/web  ml/train  n1

PLACED    NODE  SCORE  FEASIBLE
ml/train  n1      330       2/4

1 pod placed, 0 pending, 1 pod evicted
"""
    )
