"""Rejections of single nodes, gathered into the dictionary-encoded columns that the cycle reads. Errors that
a rule passes over are gathered as the faults of one decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from kdsl.base.reasons import MAX_REASON, MAX_REASONS, MAX_TOGETHER, more, room, shortened
from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedOnError
from kdsl.eval.scalar import Frame
from kdsl.eval.values import BudgetError, EvalError
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import SUCCESS, Code, Status, StatusTable
from kdsl.lang.choices import ErrorAction
from kdsl.plan.compile.scope import RuleScope
from kdsl.plan.compile.template import Text, compile_template, text_in

_FEW: Final = MAX_TOGETHER // MAX_REASON
"""The number of reasons that always fit together."""
MAX_FAILURES: Final = 1_000
"""The most reasons per node of a rule that reports all; `FURTHER` stands for the others."""
FURTHER: Final = "further reasons"
_SEVERITY = (Code.ERROR, Code.UNRESOLVABLE, Code.UNSCHEDULABLE, Code.PENDING)


class Failure(Struct, frozen=True):
    """One failed `require`: `site` is the `file:line` of its statement, `fault` its error, if any."""

    code: Code
    reason: str
    site: str
    fault: Fault | None = None


def _shortened(failures: tuple[Failure, ...]) -> tuple[Failure, ...]:
    """Return the readable failures; the last one counts the rest, with their most severe code."""
    kept = room([failure.reason for failure in failures], MAX_REASONS, MAX_TOGETHER)
    others = failures[kept:]
    if not others:
        return failures
    return (*failures[:kept], Failure(_gravest(others), more(len(others)), others[0].site))


def _gravest(failures: Iterable[Failure]) -> Code:
    codes = {failure.code for failure in failures}
    return next(code for code in _SEVERITY if code in codes)


def status_of(failures: tuple[Failure, ...]) -> Status:
    """Join failures: the gravest code, the reasons in order, the same reason once, one fault for each place:
    several statements fail with the `let` that they read.
    """
    if not failures:
        return SUCCESS
    reasons = {failure.reason: failure.site for failure in reversed(failures)}
    ordered = tuple(dict.fromkeys(failure.reason for failure in failures))
    faults = {failure.fault.key: failure.fault for failure in reversed(failures) if failure.fault is not None}
    return Status(
        _gravest(failures),
        ordered,
        sites=tuple(reasons[reason] for reason in ordered),
        faults=tuple(reversed(faults.values())),
    )


class StatusNumbers:
    """The statuses of a rule, as numbers in a table; 0 is success. Joined rules share a table, in which each
    has the name of its `plugin`. Thread-safe.
    """

    def __init__(self, table: StatusTable | None = None, plugin: str = "") -> None:
        self.table = StatusTable() if table is None else table
        self._plugin = plugin
        self._ids: dict[tuple[Failure, ...], int] = {(): 0}

    def id_of(self, failures: tuple[Failure, ...]) -> int:
        """Return the number of the status that the failures make. They are different ones."""
        if len(failures) > _FEW:
            failures = _shortened(failures)
        known = self._ids.get(failures)
        if known is None:
            known = self._ids[failures] = self.number(status_of(failures))
        return known

    def number(self, status: Status) -> int:
        """Return the number of a status."""
        return self.table.number(status.by(self._plugin) if self._plugin else status)


OnError = Callable[[EvalError, Span, Frame], Failure]


def compile_on_error(rule: str, on_error: CheckedOnError | None, scope: RuleScope) -> OnError:
    """Return a function that makes the failure of an error: a rejection that eviction cannot cure, unless the
    rule has `on error`. If the share of steps ran out, the attempt ends in any case.

    If the rule gives its own reason, it expects the error, which is then no fault.
    """
    code = Code.ERROR if on_error is not None and on_error.action is ErrorAction.ABORT else Code.UNRESOLVABLE
    reason: str | Text | None = None
    if on_error is not None and on_error.reason is not None:
        reason = compile_template(on_error.reason, scope)

    def fail(error: EvalError, span: Span, frame: Frame) -> Failure:
        if isinstance(error, BudgetError):
            return Failure(Code.ERROR, error_text(rule, error, span), span.site, fault_of(rule, error, span))
        if reason is not None:
            return Failure(code, text_in(reason, frame), span.site)
        return Failure(code, error_text(rule, error, span), span.site, fault_of(rule, error, span))

    return fail


def error_text(rule: str, error: EvalError, span: Span) -> str:
    """Return the reason of an error: the rule, the cause and the place, which may be that of a `let`."""
    return shortened(f"rule {rule} failed: {error.message} ({error.span or span})")


def fault_of(rule: str, error: EvalError, span: Span) -> Fault:
    """Return the fault that an error in an expression of a rule is."""
    return Fault(rule, error.message, str(error.span or span), code=error.code)


class FaultLog:
    """The errors in a rule: one fault per expression, with the nodes on which it failed."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        # How many nodes each name stands for.
        self._found: dict[Span, tuple[Fault, dict[str, int]]] = {}

    def add(self, error: EvalError, span: Span, node: str = "", nodes: int = 1) -> None:
        """Add a failure of an expression on a node, or on `nodes` nodes of which `node` is the first. A `let`
        that several expressions read fails once on a node.
        """
        span = error.span or span
        if span not in self._found:
            self._found[span] = fault_of(self._rule, error, span), {}
        if node:
            self._found[span][1].setdefault(node, nodes)

    def take(self) -> tuple[Fault, ...]:
        """Return the faults and forget them."""
        found = [fault.on([*nodes], sum(nodes.values())) for fault, nodes in self._found.values()]
        self._found.clear()
        return tuple(found)
