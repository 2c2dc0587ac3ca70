"""`check all`: every filter is asked about every node, and a node is told all that it lacks."""

from __future__ import annotations

from kdsl.cycle.decision import Detail, Outcome, Rejection
from kdsl.cycle.engine_options import EngineOptions
from kdsl.hooks.status import Code, Status

from tests.cycle.world import engine, pod, rejecting

FULL = EngineOptions(detail=Detail.FULL)
PLUGINS = {
    "A": rejecting({0: "a", 1: "a"}),
    "B": rejecting({1: "b", 2: "b"}, Code.UNRESOLVABLE),
    "C": rejecting({1: "c", 3: "c"}),
}


def test_reasons_of_all_filters() -> None:
    decision = engine(PLUGINS, 4, options=FULL, check_all=True).schedule_one(pod())
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert decision.message.startswith("0/4 nodes are available: 2 a, 2 b, 2 c.")
    assert decision.rejections == (
        Rejection("A", "Unschedulable", "a", "", 2),
        Rejection("B", "UnschedulableAndUnresolvable", "b", "", 2),
        Rejection("C", "Unschedulable", "c", "", 2),
    )
    statuses = {verdict.node: verdict.status for verdict in decision.verdicts}
    crowded = next(status for status in statuses.values() if status is not None and len(status.parts) > 1)
    assert crowded.parts == (
        Status(Code.UNSCHEDULABLE, ("a",), "A"),
        Status(Code.UNRESOLVABLE, ("b",), "B"),
        Status(Code.UNSCHEDULABLE, ("c",), "C"),
    )
    assert (crowded.code, crowded.plugin) == (Code.UNRESOLVABLE, "A, B, C")


def test_only_the_first_filter_counts_otherwise() -> None:
    decision = engine(PLUGINS, 4, options=FULL).schedule_one(pod())
    assert decision.message.startswith("0/4 nodes are available: 1 b, 1 c, 2 a.")


def test_nodes_that_pass_are_the_same() -> None:
    for check_all in (False, True):
        decision = engine(PLUGINS, 6, check_all=check_all).schedule_one(pod())
        assert (decision.outcome, decision.feasible, decision.evaluated) == (Outcome.PLACED, 1, 5)
