"""How close a placement was, against the plain definition of leaving a score out."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cycle.decision import Decision, NodeVerdict, Outcome, ScoreCell, TieBreak
from kdsl.cycle.selection import select
from kdsl.explain.placement import placement_of

SCORES = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=2, max_size=9)
WEIGHTS = 1, 2, 3


@given(scores=SCORES, start=st.integers(0, 20), tie_break=st.sampled_from([TieBreak.HEAP, TieBreak.FIRST]))
def test_leaving_a_score_out(scores: list[tuple[int, ...]], start: int, tie_break: TieBreak) -> None:
    names = [f"n{at}" for at in range(len(scores))]
    first = start % len(scores)
    order = [*range(first, len(scores)), *range(first)]

    def winner(weights: tuple[int, ...]) -> str:
        totals = [sum(a * b for a, b in zip(scores[at], weights, strict=True)) for at in order]
        return names[order[select(np.array(totals), tie_break, Random(0)).index]]

    totals = [sum(a * b for a, b in zip(each, WEIGHTS, strict=True)) for each in scores]
    verdicts = tuple(
        NodeVerdict(
            name,
            True,
            None,
            tuple(ScoreCell(f"s{at}", raw, raw, WEIGHTS[at]) for at, raw in enumerate(each)),
            total,
        )
        for name, each, total in zip(names, scores, totals, strict=True)
    )
    chosen = winner(WEIGHTS)
    decision = Decision(
        "n/p",
        "p",
        Outcome.PLACED,
        chosen,
        start=start,
        total=max(totals),
        tied=totals.count(max(totals)),
        tie_break=tie_break,
        verdicts=verdicts,
    )
    placement = placement_of(decision)
    assert placement is not None
    assert placement.margin == max(totals) - sorted(totals)[-2]
    for at, each in enumerate(placement.without):
        left = winner(tuple(0 if at == other else weight for other, weight in enumerate(WEIGHTS)))
        assert (each.node or chosen) == left
    tied = [names[at] for at in order if totals[at] == max(totals)]
    assert list(placement.tied) == (tied if len(tied) > 1 else [])


def test_a_pending_pod_has_no_placement() -> None:
    assert placement_of(Decision("n/p", "p", Outcome.UNSCHEDULABLE)) is None
