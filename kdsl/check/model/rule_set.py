"""The checked model: the meaning of a folder of rule files. The checker builds it, back ends compile it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kdsl.base.span import Span
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.check.model.types import Type
from kdsl.lang.choices import ErrorAction, Normalization, RejectionCode

if TYPE_CHECKING:
    from kdsl.check.model.devices import CheckedDevice
    from kdsl.check.model.sharing import CheckedSharing
    from kdsl.lang.profile_tree import Tighten


@dataclass(frozen=True, slots=True)
class CheckedTemplate:
    """A reason: texts and expressions in turn."""

    parts: tuple[str | TypedExpr, ...]

    @property
    def holes(self) -> tuple[TypedExpr, ...]:
        """The expressions in it."""
        return tuple([part for part in self.parts if not isinstance(part, str)])


@dataclass(frozen=True, slots=True)
class CheckedParam:
    """A parameter with its value, a constant expression: the default, or the value that a profile `set`."""

    variable: Var
    value: TypedExpr


@dataclass(frozen=True, slots=True)
class CheckedLet:
    """A name for a value.

    It is computed at its first use and at most once per node: an error in it is an error of the statement
    that uses it.
    """

    variable: Var
    value: TypedExpr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedRequire:
    condition: TypedExpr
    code: RejectionCode
    reason: CheckedTemplate
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedForEach:
    """A loop.

    One variable ranges over list elements or map keys; two over index and element, or key and value.
    """

    variables: tuple[Var, ...]
    iterable: TypedExpr
    where: TypedExpr | None
    body: tuple[CheckedStatement, ...]
    span: Span = field(compare=False, repr=False)


CheckedStatement = CheckedLet | CheckedRequire | CheckedForEach


@dataclass(frozen=True, slots=True)
class CheckedNarrow:
    """A `narrow` statement. `names` is an `optional(list(string))` that does not depend on the node."""

    names: TypedExpr
    code: RejectionCode
    reason: CheckedTemplate
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedOnError:
    """The result of a rule that fails.

    Without it a predicate rejects the node and a score contributes 0.
    """

    action: ErrorAction
    reason: CheckedTemplate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRule:
    """A rule in a profile, with its parameters set: the parts that all rules have.

    `reads` are all reads of the rule. `scope` maps the names that the engine fills (`pod`, `node`, `cluster`)
    to their slots; `slots` is the number of slots that a frame needs.
    """

    name: str
    qualified: str
    params: tuple[CheckedParam, ...] = ()
    reads: frozenset[str] = frozenset()
    scope: Mapping[str, Var] = field(default_factory=dict)
    slots: int = 0
    doc: tuple[str, ...] = ()
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPredicate(CheckedRule):
    """A predicate. `applies` are the conditions of `applies when`.

    Variables are in scope for all statements after them. `tightenings` are the predicates that profiles added
    by `tighten`: each must hold as well. The predicate of a `plugin` has no body here: the plugin of that
    name runs in its place.
    """

    applies: tuple[TypedExpr, ...] = ()
    narrow: CheckedNarrow | None = None
    body: tuple[CheckedStatement, ...] = ()
    report_all: bool = False
    on_error: CheckedOnError | None = None
    tightenings: tuple[CheckedPredicate, ...] = ()
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class CheckedNormalize:
    """The normalisation of a score.

    `by` is the expression of `normalize by`; it reads `value`, `min` and `max` from their slots in `scope`.
    """

    kind: Normalization
    by: TypedExpr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedScore(CheckedRule):
    """A score. `value` has type int or double; `applies` do not depend on the node.

    Nodes for which one of `ignores` holds get 0 and take no part in normalisation. The score of a `plugin`
    has the value 0 here: the plugin of that name scores in its place.
    """

    applies: tuple[TypedExpr, ...] = ()
    lets: tuple[CheckedLet, ...] = ()
    value: TypedExpr
    normalize: CheckedNormalize
    on_error: CheckedOnError | None = None
    ignores: tuple[TypedExpr, ...] = ()
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class CheckedAdmit:
    condition: TypedExpr
    reason: CheckedTemplate
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedSortKey:
    value: TypedExpr
    descending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedQueue(CheckedRule):
    lets: tuple[CheckedLet, ...]
    admit: tuple[CheckedAdmit, ...]
    order: tuple[CheckedSortKey, ...]
    backoff: tuple[TypedExpr, TypedExpr] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPreemption(CheckedRule):
    """The rules by which pods preempt others.

    `eligible` selects the pods that may preempt, `victim` the pods that may be evicted. `order` sorts
    victims, the most important first. `candidates` is the number of candidate nodes that suffices, None for
    all; `choose` sorts candidates, the best first.
    """

    lets: tuple[CheckedLet, ...]
    eligible: tuple[CheckedAdmit, ...]
    victim: TypedExpr
    order: tuple[CheckedSortKey, ...]
    candidates: TypedExpr | None
    choose: tuple[CheckedSortKey, ...]


@dataclass(frozen=True, slots=True)
class CheckedSample:
    """The number of feasible nodes that are enough; `scope` has the names that the engine fills."""

    count: TypedExpr
    scope: Mapping[str, Var]
    slots: int
    span: Span = field(compare=False, repr=False)

    @property
    def reads_percentage(self) -> bool:
        """Return whether the count depends on percentageOfNodesToScore."""
        slot = self.scope["percentageOfNodesToScore"].slot
        return any(isinstance(part, Var) and part.slot == slot for part in walk(self.count))


@dataclass(frozen=True, slots=True)
class CheckedFn:
    """A function; `params` are its arguments in order. It reads its arguments only."""

    qualified: str
    params: tuple[Var, ...]
    body: TypedExpr
    slots: int
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExternalFn:
    """A function of the plugin `plugin`. Rules call it, or read it as a field of its argument.

    `reads` are the reads that its manifest declares, `cost` is the number of steps of one call. `call` takes
    and returns plain Python values and may raise any exception.
    """

    qualified: str
    plugin: str
    args: tuple[Type, ...]
    result: Type
    reads: frozenset[str]
    cost: int
    call: Callable[..., Any] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WeightedRule:
    score: CheckedScore
    weight: int


@dataclass(frozen=True, slots=True)
class Origins:
    """The places where the lines of an effective profile were written.

    `predicates`, `tightenings`, `scores` and `weights` are parallel to the profile's predicates and scores.
    The value of a parameter holds its own place.
    """

    scheduler: Span
    check: Span | None
    queue: Span
    preemption: Span | None
    predicates: tuple[Span, ...]
    tightenings: tuple[tuple[Tighten, ...], ...]
    scores: tuple[Span, ...]
    weights: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class CheckedProfile:
    """An effective profile: all that it inherits folded in, in order.

    `extends` is the qualified name of its base, `team` the name of the team that wrote it; both are empty
    where there is none. `scheduler` is its own or inherited. With `check_all` every predicate runs on every
    node, else a node's predicates run until one rejects it. Without a `sample` a search finds all feasible
    nodes, without a `preemption` no pod preempts others, without `sharing` no pod gets cards.
    """

    name: str
    qualified: str
    scheduler: str
    check_all: bool
    sample: CheckedSample | None
    queue: CheckedQueue
    preemption: CheckedPreemption | None
    predicates: tuple[CheckedPredicate, ...]
    scores: tuple[WeightedRule, ...]
    sharing: CheckedSharing | None
    extends: str
    team: str
    doc: tuple[str, ...]
    span: Span = field(compare=False, repr=False)
    origins: Origins = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedTeam:
    """A team: the pods it owns and the profile they get, "" where it has none.

    `owns` depends on namespace, labels and service account of the pod only; `scope` and `slots` describe its
    frame.
    """

    name: str
    qualified: str
    owns: TypedExpr
    priority: int
    profile: str
    scope: Mapping[str, Var]
    slots: int
    doc: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


Fns = Mapping[str, CheckedFn | ExternalFn]
"""Functions by qualified name."""

WrittenRule = CheckedPredicate | CheckedScore | CheckedQueue | CheckedPreemption


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All profiles and the functions their rules call, by qualified name.

    `digest` identifies their text and the active plugins. `written` are the rules and tightenings in the form
    of their files, used or not, for analyses of the text. `devices` are the kinds of accelerators.
    """

    profiles: Mapping[str, CheckedProfile]
    fns: Fns
    digest: str
    teams: tuple[CheckedTeam, ...] = ()
    written: tuple[WrittenRule, ...] = field(default=(), repr=False)
    devices: Mapping[str, CheckedDevice] = field(default_factory=dict)
