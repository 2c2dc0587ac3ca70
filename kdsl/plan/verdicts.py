"""Rejections of single nodes, gathered into the dictionary-encoded columns that the cycle reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from kdsl.base.span import Span
from kdsl.check.model import CheckedOnError
from kdsl.hooks.status import SUCCESS, Code, Status
from kdsl.lang.tree import ErrorAction
from kdsl.plan.scalar import Frame
from kdsl.plan.scope import RuleScope
from kdsl.plan.template import Text, compile_template, text_in
from kdsl.plan.values import EvalError

MAX_VERDICTS = 4096
"""The most different statuses one rule keeps; a reason that names the node would else grow without end."""

_SEVERITY = (Code.ERROR, Code.UNRESOLVABLE, Code.UNSCHEDULABLE, Code.PENDING)


@dataclass(frozen=True, slots=True)
class Failure:
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
    """The statuses a rule has given so far, by number; 0 is success. `table` only ever grows at its end.

    Thread-safe: numbers are given out under a lock.
    """

    def __init__(self) -> None:
        self.table: list[Status] = [SUCCESS]
        self._ids: dict[tuple[Failure, ...], int] = {(): 0}
        self._lock = Lock()

    @property
    def is_full(self) -> bool:
        return len(self.table) >= MAX_VERDICTS

    def id_of(self, failures: tuple[Failure, ...]) -> int:
        """Return the number of the status that the failures make."""
        known = self._ids.get(failures)
        if known is not None:
            return known
        with self._lock:
            if failures not in self._ids:
                self.table.append(status_of(failures))
                self._ids[failures] = len(self.table) - 1
            return self._ids[failures]


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
