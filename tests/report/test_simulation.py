from __future__ import annotations

from dataclasses import replace

import pytest
from kdsl.cycle.decision import Decision, Outcome, Rejection, Victim
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Code, Status
from kdsl.report.simulation import SHOWN, Simulation, placement_lines, simulation_document, simulation_text
from kdsl.report.summary import Summary, SummaryBuilder, Utilisation, reasons_of

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


def test_reasons_are_broken_into_lines_of_a_width() -> None:
    simulation = Simulation([PENDING, GATED], SUMMARY)
    assert simulation_text(simulation, width=50).partition("\n\n")[0] == (
        """\
PENDING         WHY
ml/train        0/3 nodes are available: 1 node(s)
                had untolerated taint(s), 2
                Insufficient cpu, 2 Insufficient
                memory.
shop/migration  waiting for scheduling gates:
                [shop/approved]"""
    )
    narrow = simulation_text(simulation, width=10).partition("\n\n")[0]
    assert max(map(len, narrow.splitlines())) <= len("shop/migration  ") + 20


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
        "faults",
        "utilisation",
        "podsPerSecond",
        "p50Ms",
        "p99Ms",
        "peakMemoryBytes",
    ]


def test_placement_lines_have_the_form_of_the_reference() -> None:
    assert list(placement_lines([PLACED, PENDING])) == ["web n1 3 2", "train - 0 0"]


@pytest.mark.parametrize(
    ("decision", "reasons"),
    [
        (PENDING, ("Insufficient cpu", "Insufficient memory")),
        (GATED, ("waiting for scheduling gates: [shop/approved]",)),
        (PENDING.with_fields(rejections=PENDING.rejections[2:]), ("node(s) had untolerated taint(s)",)),
    ],
)
def test_a_pod_is_pending_for_the_reason_that_most_nodes_gave(
    decision: Decision, reasons: tuple[str, ...]
) -> None:
    assert reasons_of(decision) == reasons


def _rejection(reason: str, nodes: int, plugin: str = "Fit", is_error: bool = False) -> Rejection:
    return Rejection(plugin, "UnschedulableAndUnresolvable", reason, "t.kdsl:4", nodes, is_error)


def test_a_pod_that_is_short_of_two_resources_is_pending_for_both() -> None:
    short = (_rejection("Insufficient memory", 3), _rejection("Insufficient cpu", 2), _rejection("taint", 1))
    decision = PENDING.with_fields(nodes=4, rejections=short)
    assert reasons_of(decision) == ("Insufficient memory", "Insufficient cpu")


def test_errors_of_one_line_are_one_reason_of_their_own_kind() -> None:
    texts = ("rule Gpu failed: 'a' is no int", "rule Gpu failed: 'b' is no int")
    wrong = [_rejection(text, 2, "Gpu", is_error=True) for text in texts]
    decision = PENDING.with_fields(nodes=7, rejections=(_rejection("taint", 3), *wrong))
    assert reasons_of(decision) == ("error: rule Gpu (t.kdsl:4)",)


def test_a_pod_whose_attempt_an_error_ended_is_pending_for_no_other_reason() -> None:
    failed = PENDING.with_fields(outcome=Outcome.ERROR, message='running Score plugins: plugin "X" failed')
    assert reasons_of(failed) == ('error: running Score plugins: plugin "X" failed',)


def test_a_pod_that_was_turned_away_is_pending_for_what_the_plugin_said() -> None:
    turned_away = PENDING.with_fields(turned_away=Status(Code.UNSCHEDULABLE, ("no",), "P"), message="1 no")
    assert reasons_of(turned_away) == ("1 no",)


def test_what_went_wrong_is_told_once_with_its_attempts_and_most_nodes() -> None:
    builder = SummaryBuilder({})
    fault = Fault("Cheap", "no int", "t.kdsl:3:9")
    for names, count in ((["n1"], None), (["n2", "n3", "n4"], 5000), (["n5"], None)):
        builder.observe(PLACED.with_fields(faults=(fault.on(names, count),)), 1)
    late = Fault("P", "running PostBind plugin: boom")
    builder.observe(PLACED.with_fields(faults=(late,)), 1)
    summary = replace(SUMMARY, faults=builder.faults.found())
    text = simulation_text(Simulation([PLACED], summary))
    assert "1 rule and 1 plugin went wrong" in text
    assert (
        "WENT WRONG  ATTEMPTS  NODES                        ERROR                          AT\n"
        "Cheap              3  5,000 nodes (n2, n3, n4, …)  no int                         t.kdsl:3:9\n"
        "P                  1  -                            running PostBind plugin: boom\n"
    ) in text
    assert summary.document()["faults"] == [
        {
            "source": "Cheap",
            "message": "no int",
            "site": "t.kdsl:3:9",
            "nodes": 5000,
            "firstNodes": ["n2", "n3", "n4"],
            "attempts": 3,
        },
        {"source": "P", "message": late.message, "site": "", "nodes": 0, "firstNodes": [], "attempts": 1},
    ]


def test_of_each_pod_the_last_decision_counts() -> None:
    builder = SummaryBuilder({})
    makes_room = PENDING.with_fields(
        nominated="n1", victims=(Victim.of(PLACED.pod, "default-scheduler"),), message="no room"
    )
    for decision in (PLACED, makes_room, GATED, GATED, PLACED.with_fields(pod=PENDING.pod)):
        builder.observe(decision, 1_000_000)
    assert (builder.placed, builder.pending, builder.evicted) == (
        {PENDING.pod},
        {GATED.pod: (GATED.message,)},
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
