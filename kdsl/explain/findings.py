"""The findings about a pod before its decision: the rules that reject it on each node, and possible
remedies. `inspection.py` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.explain.cards import CardsOfNode, RefusedCards
from kdsl.explain.cures import Cure
from kdsl.explain.failed_requires import FailedRequire
from kdsl.explain.worlds import WorldChange
from kdsl.hooks.status import Code


@dataclass(frozen=True, slots=True)
class Rejected:
    """One rule that rejects one node. `failed` are the deciding conditions, for a rule in a rule file.

    `promised`: the rule rejects the node only because nominated pods have to fit as well. `is_error`: the
    rule failed, so its answer is unknown.
    """

    rule: str
    code: Code
    reasons: tuple[str, ...]
    sites: tuple[str, ...]
    failed: tuple[FailedRequire, ...] = ()
    promised: bool = False
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class JudgedNode:
    """The answers of all rules for a node: empty where it is feasible.

    `shortage` adds up the gaps of failing comparisons, each in 0..1; any other failing atom counts as 1.
    `cards` are the outcomes of its cards, where devices reject the node or it was requested.
    """

    node: str
    rejected: tuple[Rejected, ...]
    shortage: float
    cards: CardsOfNode | None = None

    @property
    def is_never(self) -> bool:
        """Return whether no eviction can help: the node or the pod has to change."""
        return any(each.code is Code.UNRESOLVABLE and not each.is_error for each in self.rejected)


@dataclass(frozen=True, slots=True)
class RejectionGroup:
    """The number of nodes that a rule rejects for one reason, and the number of those that it `alone`
    rejects.

    `nearest` is the nearest of these nodes, `failed` the deciding conditions there; both only for the first
    `SHOWN` groups.
    """

    rule: str
    code: Code
    reason: str
    site: str
    nodes: int
    alone: int
    nearest: str = ""
    failed: tuple[FailedRequire, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class NodeFit:
    """Steps after which every rule lets the pod onto `node`: verified by running the rules."""

    node: str
    steps: tuple[WorldChange, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings about a pod before its decision.

    `passing` counts the nodes that no rule rejects, `never` those that no eviction can make fit, `errors`
    those of the others with a failing rule. `groups` are ordered by number of nodes. `nodes` are the nearest
    rejected ones, or all: fewest failing rules first, then least shortage; `asked` is the node that was
    requested by name. `cures` has for each failing rule the changes that make it pass on the nearest node
    that it rejects, and on the requested node. `cards` counts the refused cards of all nodes by reason.
    `home` is the node from which the pod was removed. `unfinished`: the time ended before all nodes were
    compared, or all changes tried.
    """

    total: int
    passing: int
    never: int
    rules: tuple[str, ...]
    groups: tuple[RejectionGroup, ...]
    nodes: tuple[JudgedNode, ...]
    asked: JudgedNode | None
    cures: tuple[Cure, ...]
    fits: tuple[NodeFit, ...]
    cards: tuple[RefusedCards, ...] = ()
    home: JudgedNode | None = None
    errors: int = 0
    unfinished: bool = False
