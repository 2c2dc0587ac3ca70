"""The statements of `profile` and `team` blocks in the syntax tree; see `tree.py` for the fields that all
nodes share.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kdsl.lang.choices import RuleKind
from kdsl.lang.expression_tree import Expr, Literal, Node
from kdsl.lang.tree import Name, Number, RuleStatement, Statement


@dataclass(frozen=True, slots=True)
class SchedulerName(Statement):
    name: Literal


@dataclass(frozen=True, slots=True)
class CheckPredicates(Statement):
    """`check all`: every predicate judges a node; `check first`: only until one rejects it."""

    all: bool


@dataclass(frozen=True, slots=True)
class SampleSize(Statement):
    """`sample N`: so many feasible nodes are enough to choose from."""

    count: Expr


@dataclass(frozen=True, slots=True)
class PredicateList(Statement):
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class WeightedScore(Statement):
    name: Name
    weight: Number


@dataclass(frozen=True, slots=True)
class ScoreList(Statement):
    scores: tuple[WeightedScore, ...]


@dataclass(frozen=True, slots=True)
class UseQueue(Statement):
    name: Name


@dataclass(frozen=True, slots=True)
class UsePreemption(Statement):
    name: Name


@dataclass(frozen=True, slots=True)
class UseDevices(Statement):
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Tighten(Statement):
    name: Name
    body: tuple[RuleStatement, ...]


@dataclass(frozen=True, slots=True)
class Reweight(Statement):
    name: Name
    weight: Number


@dataclass(frozen=True, slots=True)
class Disable(Statement):
    kind: RuleKind
    name: Name


class Placing(StrEnum):
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class AddPredicate(Statement):
    """`add predicate name [before|after anchor]`; without an anchor the predicate goes last."""

    name: Name
    placing: Placing | None
    anchor: Name | None


@dataclass(frozen=True, slots=True)
class AddScore(Statement):
    name: Name
    weight: Number


@dataclass(frozen=True, slots=True)
class SetParam(Statement):
    """`set rule.param = value`."""

    rule: Name
    param: Name
    value: Expr


ProfileStatement = (
    SchedulerName
    | CheckPredicates
    | SampleSize
    | PredicateList
    | ScoreList
    | UseQueue
    | UsePreemption
    | UseDevices
    | Tighten
    | Reweight
    | Disable
    | AddPredicate
    | AddScore
    | SetParam
)


@dataclass(frozen=True, slots=True)
class Grant(Node):
    """One right of a `may` list, as its words: `tighten`, `add predicates`, `reweight` with its bounds, …"""

    right: str
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Owns(Statement):
    condition: Expr


@dataclass(frozen=True, slots=True)
class Files(Statement):
    pattern: Literal


@dataclass(frozen=True, slots=True)
class Contact(Statement):
    address: Literal


@dataclass(frozen=True, slots=True)
class Priority(Statement):
    value: int


@dataclass(frozen=True, slots=True)
class May(Statement):
    grants: tuple[Grant, ...]


TeamStatement = Owns | Files | Contact | Priority | May
