"""Differences of two decisions about one pod."""

from __future__ import annotations

import pytest
from kdsl.cycle.decision import Decision, NodeVerdict, Outcome, PreFilter, ScoreCell
from kdsl.hooks.status import Code, Status
from kdsl.live.rules.differences import DifferenceCause, difference

FULL = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit", ("a.kdsl:3:1",))


def scored(node: str, *points: int) -> NodeVerdict:
    cells = tuple(ScoreCell(name, each, each, 2) for name, each in zip("AB", points, strict=True))
    return NodeVerdict(node, True, None, cells, sum(cell.weighted for cell in cells))


OURS = Decision(
    "ns/p", "default", Outcome.PLACED, node="n1",
    verdicts=(
        scored("n1", 50, 30), scored("n2", 40, 35), scored("n3", 30, 50),
        NodeVerdict("full", False, FULL), NodeVerdict("late", False),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "cause", "rule", "text"),
    [
        ("n1", DifferenceCause.EQUAL, "", ""),
        (
            "full",
            DifferenceCause.REJECTED,
            "NodeResourcesFit",
            "NodeResourcesFit rejects full: Insufficient cpu",
        ),
        ("n2", DifferenceCause.SCORE, "A", "n1 has +10 points: A +20, B -10"),
        ("n3", DifferenceCause.TIE, "", "both nodes have equal totals"),
        ("late", DifferenceCause.UNVISITED, "", "the search ended before late"),
        ("new", DifferenceCause.UNKNOWN_NODE, "", "new was not known when the pod was decided"),
        ("", DifferenceCause.OURS_ONLY, "", ""),
    ],
)
def test_causes(theirs: str, cause: DifferenceCause, rule: str, text: str) -> None:
    found = difference(OURS, theirs)
    assert (found.cause, found.rule, found.text) == (cause, rule, text)
    assert (found.ours, found.theirs) == ("n1", theirs)


def test_a_rejection_has_its_place() -> None:
    assert difference(OURS, "full").site == "a.kdsl:3:1"


def test_pods_that_we_place_nowhere() -> None:
    waits = OURS.with_fields(outcome=Outcome.UNSCHEDULABLE, node="", message="0/5 nodes")
    assert difference(waits, "").is_equal
    assert difference(waits, "full").cause is DifferenceCause.REJECTED
    assert difference(waits, "n1").cause is DifferenceCause.PENDING
    before = Status(Code.UNRESOLVABLE, ("no claim",), "VolumeBinding")
    early = Decision("ns/p", "d", Outcome.UNSCHEDULABLE, prefilter=PreFilter(before), message="0/5")
    assert difference(early, "n1").rule == "VolumeBinding"
    failed = Decision("ns/p", "d", Outcome.ERROR, message="it broke")
    assert difference(failed, "n1").text == "it broke"
