"""Names in a rule file that are not its own variables, and the errors for names that do not apply."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Protocol

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.expressions.environment import FnSignature, type_constant
from kdsl.check.library import LIBRARY, TYPE_NAMES, Function
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.typed import TypedExpr
from kdsl.check.names.declarations import Declarations, Home, Located, is_external
from kdsl.check.names.externals import signature_of, unknown_function
from kdsl.lang.tree import Fn, Param


class Construct(StrEnum):
    """The constructs of a rule file with expressions, named as in diagnostics."""

    PREDICATE = "a predicate"
    SCORE = "a score"
    QUEUE = "a queue"
    PREEMPTION = "a preemption"
    NORMALIZE = "`normalize by`"
    FN = "a function"
    DYN_FN = "a `dyn fn`"
    PARAM = "the value of a parameter"
    TEAM = "`owns`"
    SAMPLE = "`sample`"
    DEVICE = "a device"


class Resolver(Protocol):
    """Provides the checked form of declarations that all rules share."""

    def signature(self, located: Located[Fn]) -> FnSignature: ...

    def constant(self, located: Located[Param]) -> TypedExpr: ...


_CLOCKS = frozenset({"now", "clock", "time", "today", "date"})
_ENGINE_NAMES = frozenset({"pod", "node", "cluster", "feasible", "topology"})
_AFTER_SCORING = frozenset({"value", "min", "max"})
_DEVICE_NAMES = frozenset(
    {
        "device",
        "request",
        "container",
        "charge",
        "chosen",
        "fitting",
        "fullness",
        "allocated",
        "allocation",
        "policy",
    }
)
_NOTHING_ELSE = ("a function reads nothing but its arguments", "pass it as an argument")
_WHY_NOT = {
    Construct.QUEUE: (
        "pods are ordered before any node is evaluated",
        "a queue can read `pod`, and `order by` also `now`",
    ),
    Construct.PREEMPTION: (
        "a preemption compares pods; the predicates decide about the node without the victims",
        "a preemption can read `pod`, `victim` and `candidate`; a label of the pods can hold another fact",
    ),
    Construct.TEAM: ("the owner of a pod does not depend on nodes", "`owns` can read `pod`"),
    Construct.SAMPLE: (
        "the number is computed before any node is evaluated",
        "`sample` can read `nodes` and `percentageOfNodesToScore`",
    ),
    Construct.FN: _NOTHING_ELSE,
    Construct.DYN_FN: _NOTHING_ELSE,
    Construct.PARAM: (
        "a parameter has one value for all pods and nodes",
        "it can use constants, functions and the parameters of files",
    ),
    Construct.NORMALIZE: (
        "scores are normalised when all nodes have theirs",
        "it can read `value`, `min`, `max` and parameters",
    ),
}


class FileNames:
    """The names that a construct can use; `hidden` are names of its rule that it cannot use."""

    def __init__(
        self,
        declarations: Declarations,
        resolver: Resolver,
        home: Home,
        construct: Construct,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._declarations = declarations
        self._resolver = resolver
        self._home = home
        self._construct = construct
        self._hidden = hidden

    def value(self, name: str, rooted: bool, span: Span) -> TypedExpr | None:
        """Return the file parameter or type of that name; a file parameter becomes its constant value."""
        if rooted:
            return None
        param = self._declarations.find(Param, name, self._home)
        if param is not None:
            return self._resolver.constant(param)
        return type_constant(name, span) if name in TYPE_NAMES else None

    def fn(self, name: str, rooted: bool) -> FnSignature | None:
        """Return the function of that name: of this package, an imported one, or an active plugin."""
        if rooted:
            return None
        if is_external(name, self._home):
            return signature_of(self._declarations.externals, name)
        found = self._declarations.find(Fn, name, self._home)
        return None if found is None else self._resolver.signature(found)

    def function(self, name: str, rooted: bool) -> Function | None:
        """Return the library function of that name."""
        return LIBRARY.get(name)

    def refusal(self, name: str, span: Span) -> Diagnostic | None:
        """Return the error for a name that other places have and this one does not."""
        if name in _CLOCKS:
            return self._no_clock(name, span)
        if is_external(name, self._home):
            return unknown_function(self._declarations.externals, name, span)
        if self._construct in _WHY_NOT and (name in _ENGINE_NAMES or name in self._hidden):
            why, help_ = _WHY_NOT[self._construct]
            return Diagnostic(
                CheckCode.NOT_HERE, f"`{name}` is not known in {self._construct}", span, why, help=(help_,)
            )
        if self._construct is Construct.PREDICATE and name == "feasible":
            title = "`feasible` is known in scores only"
            why = "the predicates decide which nodes are feasible"
            return Diagnostic(CheckCode.NOT_HERE, title, span, why)
        if name in _DEVICE_NAMES:
            title = f"`{name}` is not known here"
            where = "each section of a device has names of its own"
            help_ = "docs/devices.md lists the names of each section"
            return Diagnostic(CheckCode.NOT_HERE, title, span, where, help=(help_,))
        if self._construct is Construct.SCORE and name in _AFTER_SCORING:
            title = f"`{name}` is known in `normalize by` only"
            why = "nodes are scored one by one, before the values of all nodes are known"
            return Diagnostic(CheckCode.NOT_HERE, title, span, why)
        return None

    def _no_clock(self, name: str, span: Span) -> Diagnostic:
        title = f"`{name}` is not known in {self._construct}"
        why = "answers are cached, and an answer by the clock would be out of date"
        help_: tuple[str, ...] = (
            "for a calendar, let a CronJob taint or label the nodes: examples/calendar",
            "for an age, compare time stamps of pods: `pod.createdAt`",
        )
        if self._construct is Construct.PREEMPTION:
            help_ = ('for the age of a victim: `victim.startedAt < pod.createdAt - duration("10m")`',)
        return Diagnostic(CheckCode.NOT_HERE, title, span, why, help=help_)

    def values(self) -> Iterator[str]:
        """Return the file parameters that are visible here."""
        return self._declarations.visible(Param, self._home)

    def functions(self) -> Iterator[str]:
        """Yield the functions that can be called here."""
        yield from self._declarations.visible(Fn, self._home)
        yield from self._declarations.externals.fns
        yield from LIBRARY
