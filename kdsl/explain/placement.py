"""Why a placed pod has its node: the lead, how a tie was broken, and the scores that mattered."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from kdsl.cycle.decision import Decision, NodeVerdict, TieBreak
from kdsl.cycle.selection import select


@dataclass(frozen=True, slots=True)
class WithoutScore:
    """The pod's node without one score: `node` is empty where it is the same.

    `margin` is the lead of the winner over the next node then.
    """

    score: str
    node: str
    margin: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The lead of the chosen node: `margin` is the lead over `runner_up`, which is empty for the only
    candidate.

    `unvisited` counts the nodes that were not judged.
    """

    margin: int
    runner_up: str
    tied: tuple[str, ...]
    without: tuple[WithoutScore, ...]
    unvisited: int


def placement_of(decision: Decision) -> Placement | None:
    """Return the placement of a `full` decision; None where no node was chosen."""
    if not decision.node:
        return None
    unvisited = sum(1 for each in decision.verdicts if not each.feasible and each.status is None)
    scored = [verdict for verdict in _visiting_order(decision) if verdict.total is not None]
    if not scored:
        return Placement(0, "", (), (), unvisited)
    totals = np.array([verdict.total for verdict in scored], dtype=np.int64)
    chosen = next(at for at, verdict in enumerate(scored) if verdict.node == decision.node)
    runner_up, margin = _runner_up(totals, chosen)
    tied = tuple(each.node for each in scored if each.total == decision.total) if decision.tied > 1 else ()
    without = []
    for column, cell in enumerate(scored[0].scores):
        rest = totals - np.array([verdict.scores[column].weighted for verdict in scored], dtype=np.int64)
        without.append(_without(cell.plugin, rest, chosen, scored, decision.tie_break))
    return Placement(
        margin, "" if runner_up is None else scored[runner_up].node, tied, tuple(without), unvisited
    )


def _without(
    score: str, totals: NDArray[np.int64], chosen: int, scored: list[NodeVerdict], tie_break: TieBreak
) -> WithoutScore:
    if tie_break is TieBreak.RANDOM and totals[chosen] == totals.max():
        # A random draw cannot be repeated; it can still give this node.
        winner = chosen
    else:
        by = TieBreak.FIRST if tie_break is TieBreak.RANDOM else tie_break
        winner = select(totals, by, Random(0)).index
    _, margin = _runner_up(totals, winner)
    return WithoutScore(score, "" if winner == chosen else scored[winner].node, margin)


def _runner_up(totals: NDArray[np.int64], chosen: int) -> tuple[int | None, int]:
    """Return the best of the others, the first in visiting order, and its distance to the winner."""
    if len(totals) == 1:
        return None, 0
    others = totals.copy()
    others[chosen] = np.iinfo(np.int64).min
    second = int(np.argmax(others))
    return second, int(totals[chosen] - totals[second])


def _visiting_order(decision: Decision) -> list[NodeVerdict]:
    """Return the verdicts of the candidates in the order in which the search visited them."""
    names = decision.prefilter.candidates
    wanted = None if names is None else set(names)
    candidates = [each for each in decision.verdicts if wanted is None or each.node in wanted]
    first = decision.start % len(candidates) if candidates else 0
    return candidates[first:] + candidates[:first]
