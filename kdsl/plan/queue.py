"""Queues as programs: who may enter, and who comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kdsl.check.model import CheckedQueue
from kdsl.check.types import INT
from kdsl.hooks.status import Code, Status
from kdsl.plan.scalar import UNSET, Closure, Frame
from kdsl.plan.scalar.meter import POD_STEPS, Meter
from kdsl.plan.scope import Functions, RuleScope
from kdsl.plan.template import compile_template, text_in
from kdsl.plan.values import EvalError, Value
from kdsl.plan.verdicts import error_text


class QueuedView:
    """The view `QueuedPod`: the pod's own fields, and since when it waits, in nanoseconds since the epoch."""

    __slots__ = ("_pod", "queued_at")

    def __init__(self, pod: Value, queued_at: int) -> None:
        self._pod = pod
        self.queued_at = queued_at

    def __getattr__(self, name: str) -> Value:
        return getattr(self._pod, name)


@dataclass(frozen=True, slots=True)
class Descending:
    """A sort key in reverse order, for keys that have no negative."""

    value: Value

    def __lt__(self, other: object) -> bool:
        return bool(other.value < self.value) if isinstance(other, Descending) else NotImplemented


class _Last:
    """The sort key behind all others."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return self is not other


LAST: Final = _Last()


class QueueProgram:
    """A compiled queue."""

    def __init__(self, rule: CheckedQueue, functions: Functions) -> None:
        self.rule = rule
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions)
        self._pod = scope.slot_of("pod")
        self._resets = [slot for slot in map(scope.let, rule.lets) if slot is not None]
        self._admit = [
            (scope.compile(admit.condition), compile_template(admit.reason, scope), admit)
            for admit in rule.admit
        ]
        self._keys = [
            (scope.compile(key.value), _descending(key.value.type == INT) if key.descending else None)
            for key in rule.order
        ]
        self._blank = scope.new_frame()

    def _frame(self, pod: Value, queued_at: int) -> Frame:
        frame = self._blank.copy()
        frame[self._pod], frame[-1] = QueuedView(pod, queued_at), Meter(POD_STEPS)
        for slot in self._resets:
            frame[slot] = UNSET
        return frame

    def admit(self, pod: Value) -> Status | None:
        """Refuse the pod with the reason of the first `admit when` that does not hold, or fails.

        A pod that is not in the queue yet has the epoch as `queuedAt`.
        """
        frame = self._frame(pod, 0)
        for condition, reason, admit in self._admit:
            try:
                if condition(frame):
                    continue
                text = text_in(reason, frame)
            except EvalError as error:
                text = error_text(self.rule.name, error, admit.condition.span)
            return Status(Code.UNRESOLVABLE, (text,), sites=(admit.span.site,))
        return None

    def sort_key(self, pod: Value, queued_at: int, sequence: int) -> tuple[Any, ...]:
        """Return what to sort by: the rule's keys, then the order of arrival, so that no two pods are equal.

        The checker lets no key pass that may fail; one that goes beyond what rules may cost is `LAST`.
        """
        frame = self._frame(pod, queued_at)
        return (*[_value_of(key, reverse, frame) for key, reverse in self._keys], sequence)


def _value_of(key: Closure, reverse: Callable[[Value], Value] | None, frame: Frame) -> Value:
    try:
        value = key(frame)
    except EvalError:
        return LAST
    return value if reverse is None else reverse(value)


def _descending(is_int: bool) -> Callable[[Value], Value]:
    return (lambda value: -value) if is_int else Descending
