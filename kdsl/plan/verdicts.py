"""Rejections of single nodes, gathered into the dictionary-encoded columns that the cycle reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kdsl.base.span import Span
from kdsl.check.model import CheckedOnError
from kdsl.hooks.status import SUCCESS, Code, Status, StatusTable
from kdsl.lang.tree import ErrorAction
from kdsl.plan.scalar import Frame
from kdsl.plan.scope import RuleScope
from kdsl.plan.template import Text, compile_template, text_in
from kdsl.plan.values import EvalError

_SEVERITY = (Code.ERROR, Code.UNRESOLVABLE, Code.UNSCHEDULABLE, Code.PENDING)


class Failure(NamedTuple):
    """One failed `require`: `site` is the `file:line` of its statement."""

    code: Code
    reason: str
    site: str


def status_of(failures: tuple[Failure, ...]) -> Status:
    """Join failures: the gravest code, the reasons in order, the same reason once."""
    if not failures:
        return SUCCESS
    codes = {failure.code for failure in failures}
    reasons = {failure.reason: failure.site for failure in reversed(failures)}
    ordered = tuple(dict.fromkeys(failure.reason for failure in failures))
    return Status(
        next(code for code in _SEVERITY if code in codes),
        ordered,
        sites=tuple(reasons[reason] for reason in ordered),
    )


class Verdicts:
    """What a rule says, as numbers in a table; 0 is success. Rules that stand together may share a table, in
    which each answers by the name of its `plugin`. Thread-safe.
    """

    def __init__(self, table: StatusTable | None = None, plugin: str = "") -> None:
        self.table = StatusTable() if table is None else table
        self._plugin = plugin
        self._ids: dict[tuple[Failure, ...], int] = {(): 0}

    def id_of(self, failures: tuple[Failure, ...]) -> int:
        """Return the number of the status that the failures make."""
        known = self._ids.get(failures)
        if known is None:
            known = self._ids[failures] = self.number(status_of(failures))
        return known

    def number(self, status: Status) -> int:
        """Return the number of a status."""
        return self.table.number(status.by(self._plugin) if self._plugin else status)


OnError = Callable[[EvalError, Span, Frame], Failure]


def compile_on_error(rule: str, on_error: CheckedOnError | None, scope: RuleScope) -> OnError:
    """Return what makes a failure of an error: a rejection that eviction cannot cure, unless the rule says
    otherwise.
    """
    code = Code.ERROR if on_error is not None and on_error.action is ErrorAction.ABORT else Code.UNRESOLVABLE
    reason: str | Text | None = None
    if on_error is not None and on_error.reason is not None:
        reason = compile_template(on_error.reason, scope)

    def fail(error: EvalError, span: Span, frame: Frame) -> Failure:
        text = error_text(rule, error, span) if reason is None else text_in(reason, frame)
        return Failure(code, text, span.site)

    return fail


def error_text(rule: str, error: EvalError, span: Span) -> str:
    """Return the reason of an error: the rule, the cause and the place."""
    return f"rule {rule} failed: {error.message} ({span})"
