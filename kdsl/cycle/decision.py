"""The product of a scheduling attempt: all results and reasons, without any timing.

Two equal runs give equal decisions. `summary` decisions carry the totals; `full` decisions have an entry for
every node as well.

These values, and all others made on the hot path, are structs: a frozen dataclass takes ten times as long.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Status


class Detail(StrEnum):
    """The detail of a decision: `summary` on the hot path, `full` for explaining, tests and simulation."""

    SUMMARY = "summary"
    FULL = "full"


class Outcome(StrEnum):
    """The result of an attempt.

    `skipped`: no decision was needed, since the pod is being deleted, is on a node already, or asks for a
    scheduler that this process does not run. `binding`: the pod has its node, and is being bound
    asynchronously.
    """

    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    WAITING = "waiting"
    BINDING = "binding"
    ERROR = "error"
    SKIPPED = "skipped"


_WITH_NODE: Final = frozenset((Outcome.PLACED, Outcome.WAITING, Outcome.BINDING))


class TieBreak(StrEnum):
    """The way to choose one of several nodes with the highest total.

    `heap` is kube-scheduler 1.35 and 1.36: the top of a binary heap built from the feasible list. `first` is
    the first in visiting order. `random` draws with the seed.
    """

    HEAP = "heap"
    FIRST = "first"
    RANDOM = "random"


class Rejection(Struct, frozen=True):
    """The number of nodes that one rule rejected with one reason; the reason may be the text of an error."""

    plugin: str
    code: str
    reason: str
    site: str
    nodes: int
    is_error: bool = False


class PreFilter(Struct, frozen=True):
    """The result of PreFilter.

    `status` is the rejection of the pod, if any; `skipped` the plugins that skip the pod; `narrowed_by` the
    plugins that narrowed the candidates to `candidates` (None: all nodes).
    """

    status: Status | None = None
    skipped: tuple[str, ...] = ()
    narrowed_by: tuple[str, ...] = ()
    candidates: tuple[str, ...] | None = None


class Condition(Struct, frozen=True):
    """A condition of a pod's status."""

    type: str
    status: str
    reason: str
    message: str


class Victim(Struct, frozen=True):
    """A pod (`namespace/name`) to evict, and the condition it gets before it is deleted."""

    pod: str
    condition: Condition

    @staticmethod
    def of(pod: str, scheduler: str) -> Victim:
        """Return the victim for a pod that `scheduler` preempts, with kube-scheduler's condition."""
        message = f"{scheduler}: preempting to accommodate a higher priority pod"
        return Victim(pod, Condition("DisruptionTarget", "True", "PreemptionByScheduler", message))


class ScoreCell(Struct, frozen=True):
    """One score of one node: `raw` as the rule returned it, `normalized` in 0..100, `weighted` with its
    weight.
    """

    plugin: str
    raw: int | float
    normalized: int
    weight: int

    @property
    def weighted(self) -> int:
        return self.normalized * self.weight


class NodeVerdict(Struct, frozen=True):
    """The result for one node. Without `status` and not `feasible`: the search ended before the node was
    visited.
    """

    node: str
    feasible: bool
    status: Status | None = None
    scores: tuple[ScoreCell, ...] = ()
    total: int | None = None


class Decision(Struct, frozen=True):
    """The answer for one pod.

    `pod` is `namespace/name`. `evaluated` counts the nodes with a verdict, `feasible` those that passed; they
    are kube-scheduler's EvaluatedNodes and FeasibleNodes. `start` is the index in visiting order at which the
    search began, `sampled` the number of feasible nodes to look for. `tied` counts the nodes that shared the
    highest `total`. `postfilter` is the result of PostFilter, None where it did not run: `nominated` and
    `victims` describe the room it makes. `message` is the FitError or error text of a pod that was not
    placed. `faults` are all errors of rules and plugins: those that ended the attempt, those that rejected
    nodes, and those that were ignored. `turned_away` is the rejection of the chosen node by a Reserve or
    Permit plugin. `blockers` are the plugins that keep the pod from making room: the preemption, and those
    that reject the pod even without its possible victims.
    """

    pod: str
    profile: str
    outcome: Outcome
    node: str = ""
    message: str = ""
    faults: tuple[Fault, ...] = ()
    evaluated: int = 0
    feasible: int = 0
    nodes: int = 0
    start: int = 0
    sampled: int = 0
    prefilter: PreFilter = PreFilter()
    rejections: tuple[Rejection, ...] = ()
    total: int | None = None
    tied: int = 0
    tie_break: TieBreak = TieBreak.HEAP
    postfilter: Status | None = None
    nominated: str = ""
    victims: tuple[Victim, ...] = ()
    blockers: tuple[str, ...] = ()
    turned_away: Status | None = None
    rules: str = ""
    snapshot: int = 0
    verdicts: tuple[NodeVerdict, ...] = ()

    @property
    def given_node(self) -> str:
        """The node that the pod gets, "" for none."""
        return self.node if self.outcome in _WITH_NODE else ""

    def verdict_of(self, node: str) -> NodeVerdict | None:
        """Return the result for a node; None if it has none."""
        return next((verdict for verdict in self.verdicts if verdict.node == node), None)

    def with_fields(self, **fields: Any) -> Decision:
        """Return a copy of this decision with other values in some fields."""
        return replace(self, **fields)
