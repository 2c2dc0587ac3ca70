"""Finds why two schedulers place a pod on different nodes, from our full decision and the other's node.

Pure functions. `shadow.py` and `canary.py` count their results.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kdsl.cycle.decision import Decision, NodeVerdict, Outcome, ScoreCell

MOST_SCORES: Final = 16
"""The number of scores in the text of one difference, the largest first."""


class DifferenceCause(StrEnum):
    """The reason for which our decision differs from the other one.

    `equal`: it does not. `rejected`: one of our rules rejects the other's node. `pending`: we do not place
    the pod, for a reason that is not about that node. `score`: that node has fewer points here. `tie`: it has
    as many. `unvisited`: our search ended before it. `unknown node`: we do not know it. `ours only`: we place
    a pod that the other leaves pending.
    """

    EQUAL = "equal"
    REJECTED = "rejected"
    PENDING = "pending"
    SCORE = "score"
    TIE = "tie"
    UNVISITED = "unvisited"
    UNKNOWN_NODE = "unknown node"
    OURS_ONLY = "ours only"


@dataclass(frozen=True, slots=True)
class ScoreGap:
    """The weighted points by which a score favours our node (negative: the other's)."""

    rule: str
    weight: int
    points: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The comparison for one pod. `ours` and `theirs` are nodes, "" for none.

    `rule`, `reason` and `site` are those of the rejection, or of the score with the largest effect; `gaps`
    are all scores that differ, largest first.
    """

    pod: str
    cause: DifferenceCause
    ours: str
    theirs: str
    rule: str = ""
    reason: str = ""
    site: str = ""
    gaps: tuple[ScoreGap, ...] = ()

    @property
    def is_equal(self) -> bool:
        return self.cause is DifferenceCause.EQUAL

    @property
    def text(self) -> str:
        """Return the cause of the difference in a few words."""
        match self.cause:
            case DifferenceCause.REJECTED:
                return f"{self.rule} rejects {self.theirs}: {self.reason}"
            case DifferenceCause.SCORE:
                total = sum(gap.points for gap in self.gaps)
                return f"{self.ours} has {total:+,} points: {', '.join(_gap(each) for each in self.gaps[:3])}"
            case DifferenceCause.TIE:
                return "both nodes have equal totals"
            case DifferenceCause.UNVISITED:
                return f"the search ended before {self.theirs}"
            case DifferenceCause.UNKNOWN_NODE:
                return f"{self.theirs} was not known when the pod was decided"
            case DifferenceCause.PENDING:
                return self.reason
            case _:
                return ""


def difference(ours: Decision, theirs: str) -> Difference:
    """Compare our decision, in full detail, with the node that the other scheduler bound the pod to.

    An empty `theirs` is a pod that it leaves pending.
    """
    node = ours.given_node
    if node == theirs:
        return Difference(ours.pod, DifferenceCause.EQUAL, node, theirs)
    if not theirs:
        return Difference(ours.pod, DifferenceCause.OURS_ONLY, node, theirs)
    verdict = ours.verdict_of(theirs)
    if verdict is None:
        return _without_verdict(ours, node, theirs)
    if verdict.status is not None:
        status = verdict.status
        site = status.sites[0] if status.sites else ""
        return Difference(
            ours.pod, DifferenceCause.REJECTED, node, theirs, status.plugin, status.message, site
        )
    if not node:
        return Difference(ours.pod, DifferenceCause.PENDING, node, theirs, reason=ours.message)
    if not verdict.feasible:
        return Difference(ours.pod, DifferenceCause.UNVISITED, node, theirs)
    return _by_score(ours, node, verdict)


def _without_verdict(ours: Decision, node: str, theirs: str) -> Difference:
    """Return the reason for which no node was visited, else that the node is unknown here."""
    before = ours.prefilter.status
    if before is not None:
        return Difference(
            ours.pod, DifferenceCause.REJECTED, node, theirs, before.plugin, before.message,
            before.sites[0] if before.sites else "",
        )  # fmt: skip
    if not node and (ours.outcome is Outcome.ERROR or (not ours.verdicts and ours.message)):
        return Difference(ours.pod, DifferenceCause.PENDING, node, theirs, reason=ours.message)
    return Difference(ours.pod, DifferenceCause.UNKNOWN_NODE, node, theirs)


def _by_score(ours: Decision, node: str, verdict: NodeVerdict) -> Difference:
    own = ours.verdict_of(node)
    gaps = _gaps(own.scores if own is not None else (), verdict.scores)
    total = sum(gap.points for gap in gaps)
    if total == 0:
        return Difference(ours.pod, DifferenceCause.TIE, node, verdict.node, gaps=gaps)
    # The score that favours our node most; if none does, the difference of the totals.
    first = max(gaps, key=lambda gap: gap.points)
    return Difference(ours.pod, DifferenceCause.SCORE, node, verdict.node, first.rule, gaps=gaps)


def _gaps(ours: tuple[ScoreCell, ...], theirs: tuple[ScoreCell, ...]) -> tuple[ScoreGap, ...]:
    other = {cell.plugin: cell.weighted for cell in theirs}
    gaps = (ScoreGap(cell.plugin, cell.weight, cell.weighted - other.get(cell.plugin, 0)) for cell in ours)
    found = sorted((gap for gap in gaps if gap.points), key=lambda gap: (-abs(gap.points), gap.rule))
    return tuple(found[:MOST_SCORES])


def _gap(gap: ScoreGap) -> str:
    return f"{gap.rule} {gap.points:+,}"
