"""Differences between two runs of one workload: the pods with another node, and the causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kdsl.cycle.decision import Decision, NodeVerdict, Outcome, Rejection
from kdsl.hooks.faults import ToldApart, merged


class MoveKind(StrEnum):
    """The change for a pod under the new rules."""

    MOVED = "moved"
    PENDING = "pending"
    PLACED = "placed"


class CauseKind(StrEnum):
    """The reason for a pod's new node.

    `evicted`: the pod goes for another, which `reason` names. `evicts`: others go for it. `rejects`: a rule
    rejects the old node. `accepts`: a rule rejected the new node and does so no longer. `score`: a score
    changed most in favour of the new node. `unvisited`: the search did not reach one of the nodes. `tie`:
    both have equal totals. `cards`: the devices chose other cards on the node. `other`: no reason at a node;
    `reason` is the message.
    """

    EVICTED = "evicted"
    EVICTS = "evicts"
    REJECTS = "rejects"
    ACCEPTS = "accepts"
    SCORE = "score"
    UNVISITED = "unvisited"
    TIE = "tie"
    CARDS = "cards"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason why a pod moves. `rule`, `reason` and `site` are those of a rejection or the score.

    `before` and `now` are the weighted points by which the score favours the new node over the old one, in
    the old run and the new one; None where a run did not score both.
    """

    kind: CauseKind
    rule: str = ""
    reason: str = ""
    site: str = ""
    before: int | None = None
    now: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A pod with another node: `before` and `after` are nodes, "" where it waits."""

    pod: str
    kind: MoveKind
    before: str
    after: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that only one of the two runs evicts, in favour of another pod."""

    pod: str
    preemptor: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class RunFault:
    """An error of a run, and the number of decisions with it."""

    text: str
    decisions: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Moves:
    """All differences. `skipped` counts the unchanged pods for which neither run has a profile."""

    moves: tuple[Move, ...]
    evictions: tuple[Eviction, ...]
    faults: tuple[RunFault, ...]
    unchanged: int
    skipped: int

    def count(self, kind: MoveKind) -> int:
        return sum(1 for each in self.moves if each.kind is kind)

    @property
    def is_any(self) -> bool:
        """Return whether the runs differ in more than their errors."""
        return bool(self.moves or self.evictions)


@dataclass(frozen=True, slots=True)
class Ends:
    """The last decision of each pod of a run, and the preemptors of the evicted pods."""

    decisions: Mapping[str, Decision]
    evicted: Mapping[str, str]

    def node(self, pod: str) -> str:
        """Return the final node of a pod, "" where it waits."""
        decision = self.decisions.get(pod)
        return decision.node if decision is not None and decision.outcome is Outcome.PLACED else ""


def ends_of(decisions: Sequence[Decision]) -> Ends:
    """Return the end of a run for each pod; a pod that was evicted and did not return waits."""
    last: dict[str, Decision] = {}
    evicted: dict[str, str] = {}
    for decision in decisions:
        last[decision.pod] = decision
        for victim in decision.victims:
            last.pop(victim.pod, None)
            evicted[victim.pod] = decision.pod
    return Ends(last, evicted)


def moved_pods(old: Ends, new: Ends, homes: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the nodes before and after of each pod with another node.

    `homes` are the nodes of pods that were placed at the start: a pod that neither run evicts is still there.
    """
    pods = dict.fromkeys((*old.decisions, *new.decisions, *old.evicted, *new.evicted))
    nodes = {pod: (_end(old, pod, homes), _end(new, pod, homes)) for pod in pods}
    return {pod: (before, after) for pod, (before, after) in nodes.items() if before != after}


def moves_of(old: Sequence[Decision], new: Sequence[Decision], homes: Mapping[str, str]) -> Moves:
    """Compare two runs whose decisions about moved pods are full."""
    was, is_ = ends_of(old), ends_of(new)
    nodes = moved_pods(was, is_, homes)
    moves = tuple(_move(pod, before, after, was, is_) for pod, (before, after) in nodes.items())
    pods = {*was.decisions, *is_.decisions, *was.evicted, *is_.evicted}
    same = pods - nodes.keys()
    skipped = sum(1 for pod in same if _is_skipped(was, pod) and _is_skipped(is_, pod))
    return Moves(moves, _evictions(was, is_), _faults(old, new), len(same), skipped)


def _end(ends: Ends, pod: str, homes: Mapping[str, str]) -> str:
    if pod in ends.decisions or pod in ends.evicted:
        return ends.node(pod)
    return homes.get(pod, "")


def _is_skipped(ends: Ends, pod: str) -> bool:
    decision = ends.decisions.get(pod)
    return decision is not None and decision.outcome is Outcome.SKIPPED


def _evictions(old: Ends, new: Ends) -> tuple[Eviction, ...]:
    was, is_ = old.evicted.items(), new.evicted.items()
    return (
        *(Eviction(pod, by, False) for pod, by in was if (pod, by) not in is_),
        *(Eviction(pod, by, True) for pod, by in is_ if (pod, by) not in was),
    )


def _faults(old: Sequence[Decision], new: Sequence[Decision]) -> tuple[RunFault, ...]:
    """Count the errors of each run, the most frequent first, each in its first form."""
    return tuple(
        RunFault(text, count, is_new)
        for run, is_new in ((old, False), (new, True))
        for text, count in _counted(run)
    )


def _counted(run: Sequence[Decision]) -> Iterator[tuple[str, int]]:
    faults = (fault for each in run for fault in merged(each.faults))
    counts = Counter(str(fault.on(())) for fault in map(ToldApart(), faults))
    yield from counts.most_common()


def _move(pod: str, before: str, after: str, old: Ends, new: Ends) -> Move:
    kind = MoveKind.MOVED if before and after else MoveKind.PLACED if after else MoveKind.PENDING
    was, is_ = old.decisions.get(pod), new.decisions.get(pod)
    cause = _eviction_of(pod, old, new) or cause_of(before, after, was, is_)
    if was is None and pod in old.evicted and cause == Cause(CauseKind.OTHER):
        cause = Cause(CauseKind.OTHER, reason=f"evicted for {old.evicted[pod]}")
    return Move(pod, kind, before, after, cause)


def _eviction_of(pod: str, old: Ends, new: Ends) -> Cause | None:
    """Return the cause where the pod is evicted, or evicts others, and the old run has no such eviction."""
    if pod in new.evicted.keys() - old.evicted.keys():
        return Cause(CauseKind.EVICTED, reason=new.evicted[pod])
    evicts = pod in set(new.evicted.values()) - set(old.evicted.values())
    return Cause(CauseKind.EVICTS) if evicts else None


def cause_of(before: str, after: str, was: Decision | None, is_: Decision | None) -> Cause:
    """Return the first cause that applies to the two nodes, in the order of `CauseKind`.

    `was` and `is_` are full decisions. One without verdicts contributes its message, and an old one a
    rejection of all other nodes.
    """
    (old_before, old_after), (now_before, now_after) = (
        [None if each is None else each.verdict_of(node) for node in (before, after)] for each in (was, is_)
    )
    for kind, verdict in ((CauseKind.REJECTS, now_before), (CauseKind.ACCEPTS, old_after)):
        if verdict is not None and verdict.status is not None:
            status = verdict.status
            return Cause(kind, status.plugin, ", ".join(status.reasons), next(iter(status.sites), ""))
    rejection = None if not after or was is None or was.verdicts else _only_rejection(was)
    if rejection is not None and rejection.plugin:
        return Cause(CauseKind.ACCEPTS, rejection.plugin, rejection.reason, rejection.site)
    if not after or not before:
        pending = is_ if not after else was
        return Cause(CauseKind.OTHER, reason="" if pending is None else pending.message)
    score = _score(_gaps(old_before, old_after), _gaps(now_before, now_after))
    if score is not None:
        return score
    if any(each is not None and not each.feasible for each in (now_before, old_after)):
        return Cause(CauseKind.UNVISITED)
    return Cause(CauseKind.TIE)


def _only_rejection(decision: Decision) -> Rejection | None:
    """Return the rejection of all nodes but the chosen one, if it is only one: so of every other node.

    It is known without verdicts about nodes.
    """
    if len(decision.rejections) != 1 or decision.evaluated < decision.nodes:
        return None
    (rejection,) = decision.rejections
    others = decision.nodes - bool(decision.node)
    return rejection if 0 < others == rejection.nodes else None


def _gaps(before: NodeVerdict | None, after: NodeVerdict | None) -> Mapping[str, int] | None:
    """Return the lead of the new node in each score; None where a run did not score both."""
    if before is None or after is None or before.total is None or after.total is None:
        return None
    least = {cell.plugin: cell.weighted for cell in before.scores}
    return {cell.plugin: cell.weighted - least.get(cell.plugin, 0) for cell in after.scores}


def _score(old: Mapping[str, int] | None, new: Mapping[str, int] | None) -> Cause | None:
    """Return the score whose lead changed most towards the new node, the first of equal ones."""
    if new is None:
        return None
    change = {rule: new.get(rule, 0) - (old or {}).get(rule, 0) for rule in {**new, **(old or {})}}
    rule = max(change, key=lambda each: change[each], default="")
    if not rule or change[rule] <= 0:
        return None
    before = None if old is None else old.get(rule, 0)
    return Cause(CauseKind.SCORE, rule, before=before, now=new.get(rule, 0))
