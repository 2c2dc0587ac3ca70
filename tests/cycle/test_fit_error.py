"""The FitError text, byte for byte, and the structured rejections beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from kdsl.base.reasons import MAX_RECORDED, MAX_TOGETHER
from kdsl.cycle.decision import Rejection
from kdsl.cycle.fit_error import Diagnosis, rejections, single_node_message
from kdsl.cycle.visited import VisitedNodes
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn


def diagnosis(
    nodes: int, counts: Mapping[Sequence[str], int], absent: Sequence[str] = (), **rest: str
) -> Diagnosis:
    """A diagnosis of so many nodes with each list of reasons."""
    table = [SUCCESS, *(Status(Code.UNSCHEDULABLE, tuple(reasons)) for reasons in counts)]
    ids = np.repeat(np.arange(1, len(table), dtype=np.int32), list(counts.values()))
    rows = np.arange(len(ids), dtype=np.int32)
    return Diagnosis(
        nodes,
        VisitedNodes.of(rows, StatusColumn(ids, table)),
        Status(Code.UNRESOLVABLE, tuple(absent)),
        **rest,
    )


TAINT = "node(s) had untolerated taint(s)"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (diagnosis(3, {("Insufficient cpu",): 3}), "0/3 nodes are available: 3 Insufficient cpu."),
        (
            diagnosis(5, {(TAINT,): 2, ("Insufficient cpu",): 3}),
            "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.",
        ),
        (
            # Rendered strings are sorted, so ten comes before two.
            diagnosis(12, {("x",): 10, ("y",): 2}),
            "0/12 nodes are available: 10 x, 2 y.",
        ),
        (
            # Each reason of a status counts on its own, and equal reasons of different statuses together.
            diagnosis(4, {("Insufficient cpu", "Insufficient memory"): 1, ("Insufficient memory",): 3}),
            "0/4 nodes are available: 1 Insufficient cpu, 4 Insufficient memory.",
        ),
        (
            diagnosis(6, {("no",): 1}, ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]),
            "0/6 nodes are available: 1 no, 5 node(s) didn't satisfy plugin(s) [NodeAffinity].",
        ),
        (diagnosis(2, {}), "0/2 nodes are available:"),
        (
            diagnosis(
                6, {("hidden",): 6}, prefilter_message="pod has unbound immediate PersistentVolumeClaims"
            ),
            "0/6 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
        ),
        (
            diagnosis(6, {}, prefilter_message="pod has unbound", postfilter_message="not found"),
            "0/6 nodes are available: pod has unbound. not found",
        ),
        (
            diagnosis(2, {(TAINT,): 2}, postfilter_message="no new claims to deallocate, preemption: later."),
            f"0/2 nodes are available: 2 {TAINT}. no new claims to deallocate, preemption: later.",
        ),
    ],
)
def test_message(given: Diagnosis, expected: str) -> None:
    assert given.message() == expected


def test_single_node_message() -> None:
    rejected = Status(Code.UNSCHEDULABLE, ("taken", "also this"))
    assert single_node_message(rejected) == "0/1 nodes are available: 1 also this, 1 taken."
    assert single_node_message(Status(Code.UNSCHEDULABLE)) == "0/1 nodes are available:"


def test_rejections_are_one_for_each_reason_the_most_frequent_first() -> None:
    both = Status(Code.UNSCHEDULABLE, ("cpu", "memory"), "Fit", ("fit.kdsl:4", "fit.kdsl:5"))
    other = Status(Code.UNRESOLVABLE, ("cpu",), "Fit", ("fit.kdsl:9",))
    assert rejections([(both, 2), (other, 3), (Status(Code.PENDING, (), "Gang"), 1)]) == (
        Rejection("Fit", "UnschedulableAndUnresolvable", "cpu", "fit.kdsl:9", 3),
        Rejection("Fit", "Unschedulable", "cpu", "fit.kdsl:4", 2),
        Rejection("Fit", "Unschedulable", "memory", "fit.kdsl:5", 2),
        Rejection("Gang", "Pending", "", "", 1),
    )


def test_only_what_a_column_uses_is_counted() -> None:
    """A table may hold what nodes of other searches were answered."""
    table = [SUCCESS, *(Status(Code.UNSCHEDULABLE, (str(number),)) for number in range(50))]
    column = StatusColumn(np.array([0, 40, 7, 40], np.int32), table)
    verdicts = VisitedNodes.of(np.arange(4, dtype=np.int32), column)
    assert verdicts.counted() == [(table[7], 1), (table[40], 2)]
    assert VisitedNodes.empty().counted() == []


def test_a_message_that_nobody_reads_is_cut_and_says_so() -> None:
    long = diagnosis(900, {(f"reason {at} " + "x" * 40,): 1 for at in range(900)}).message()
    assert len(long) < MAX_TOGETHER + 500
    assert re.search(r", 1 reason [0-9]+ x+, and [0-9]+ more reasons\.$", long)


def test_records_that_are_left_out_are_counted_by_rule_and_code() -> None:
    """Which rules rejected a pod must show: it decides what wakes it."""
    given = [(Status(Code.UNSCHEDULABLE, (f"no {at}",), "A", ("a:1",)), 2) for at in range(MAX_RECORDED)]
    given += [(Status(Code.UNRESOLVABLE, (f"no {at}",), "B", ("b:1",)), 1) for at in range(7)]
    found = rejections(given)
    assert len(found) == MAX_RECORDED + 1
    assert found[-1] == Rejection("B", "UnschedulableAndUnresolvable", "and 7 more reasons", "", 7)
    assert sum(each.nodes for each in found) == 2 * MAX_RECORDED + 7
