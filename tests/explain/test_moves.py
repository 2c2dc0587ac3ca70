"""The causes that no small cluster shows: nodes that were not looked at, equal totals, messages."""

from __future__ import annotations

import pytest
from kdsl.cycle.decision import Decision, NodeVerdict, Outcome, ScoreCell, Victim
from kdsl.explain.moves import Cause, CauseKind, Eviction, Move, MoveKind, Moves, RunFault, moves_of
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Code, Status


def scored(node: str, **points: int) -> NodeVerdict:
    cells = tuple(ScoreCell(name, value, value, 1) for name, value in points.items())
    return NodeVerdict(node, True, scores=cells, total=sum(points.values()))


UNVISITED_A = NodeVerdict("a", False)
UNVISITED_B = NodeVerdict("b", False)
REJECTED_A = NodeVerdict("a", False, Status(Code.UNSCHEDULABLE, ("full", "old"), plugin="Room"))


def placed(node: str, *verdicts: NodeVerdict, victims: tuple[Victim, ...] = (), pod: str = "n/p") -> Decision:
    return Decision(pod, "p", Outcome.PLACED, node, verdicts=verdicts, victims=victims)


def pending(message: str, *verdicts: NodeVerdict) -> Decision:
    return Decision("n/p", "p", Outcome.UNSCHEDULABLE, message=message, verdicts=verdicts)


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        # not looked at, in one run or the other
        (placed("a", scored("a", S=1), UNVISITED_B), placed("b", UNVISITED_A, scored("b", S=1)), Cause(CauseKind.UNVISITED)),
        (placed("a", scored("a", S=1), UNVISITED_B), placed("b", scored("a", S=1), scored("b", S=1)), Cause(CauseKind.UNVISITED)),
        # the old node is as good as the new one, as before
        (placed("a", scored("a", S=1), scored("b", S=1)), placed("b", scored("a", S=1), scored("b", S=1)), Cause(CauseKind.TIE)),
        # a score that is gone made the difference
        (placed("a", scored("a", S=0, T=9), scored("b", S=3, T=0)), placed("b", scored("a", S=0), scored("b", S=3)), Cause(CauseKind.SCORE, "T", before=-9, now=0)),
        # a new one does
        (placed("a", scored("a", S=1), scored("b", S=0)), placed("b", scored("a", S=1, T=0), scored("b", S=0, T=5)), Cause(CauseKind.SCORE, "T", before=0, now=5)),
        # one that was not asked before, since only one node was left
        (placed("a", scored("a", S=1)), placed("b", scored("a", S=1), scored("b", S=5)), Cause(CauseKind.SCORE, "S", now=4)),
        # a rejection comes before any score
        (placed("a", scored("a", S=1), scored("b", S=0)), placed("b", REJECTED_A, scored("b", S=5)), Cause(CauseKind.REJECTS, "Room", "full, old")),
        (pending("no", REJECTED_A), placed("a", scored("a")), Cause(CauseKind.ACCEPTS, "Room", "full, old")),
        # nothing is known of the node
        (placed("a", scored("a", S=1)), pending("no profile"), Cause(CauseKind.OTHER, reason="no profile")),
        (pending("gated"), placed("a", scored("a", S=1)), Cause(CauseKind.OTHER, reason="gated")),
    ],
)  # fmt: skip
def test_what_tells_the_nodes_apart(old: Decision, new: Decision, cause: Cause) -> None:
    (move,) = moves_of([old], [new], {}).moves
    assert move.cause == cause


def test_a_pod_that_is_evicted_and_stays_away_waits() -> None:
    victim = Victim.of("n/low", "s")
    taken = placed("a", pod="n/high", victims=(victim,))
    moves = moves_of([placed("b", pod="n/high")], [taken], {"n/low": "a", "n/still": "a"})
    assert moves.moves == (
        Move("n/high", MoveKind.MOVED, "b", "a", Cause(CauseKind.EVICTS)),
        Move("n/low", MoveKind.PENDING, "a", "", Cause(CauseKind.EVICTED, reason="n/high")),
    )
    assert (moves.evictions, moves.unchanged) == ((Eviction("n/low", "n/high", True),), 0)
    assert moves_of([taken], [placed("b", pod="n/high")], {"n/low": "a"}).evictions == (
        Eviction("n/low", "n/high", False),
    )


def test_the_last_decision_counts_and_faults_are_counted() -> None:
    first = pending("no").with_fields(faults=(Fault("S", "division by zero", "a.kdsl:1:1"),))
    again = placed("a").with_fields(faults=(Fault("S", "division by zero", "a.kdsl:1:1"),))
    moves = moves_of([placed("a")], [first, again], {})
    assert moves == Moves((), (), (RunFault("S: division by zero (a.kdsl:1:1)", 2, True),), 1, 0)
    assert not moves.is_any


def test_faults_at_one_place_with_different_messages_are_told_apart_but_for_the_fourth() -> None:
    run = [
        placed("a", pod=f"n/{name}").with_fields(faults=(Fault("S", f"no '{name}'", "a.kdsl:1:1"),))
        for name in ("one", "two", "three", "four", "five", "one")
    ]
    assert [(each.text, each.decisions) for each in moves_of([], run, {}).faults] == [
        ("S: no 'one' (a.kdsl:1:1)", 2),
        ("S: other errors (a.kdsl:1:1)", 2),
        ("S: no 'two' (a.kdsl:1:1)", 1),
        ("S: no 'three' (a.kdsl:1:1)", 1),
    ]
