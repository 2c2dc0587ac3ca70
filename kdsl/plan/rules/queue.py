"""Queues as plugins: admission, order, and the waits between attempts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import attrgetter, mul
from typing import Any

from kdsl.base.bounded_dict import BoundedDict
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.events import EventPattern
from kdsl.base.span import Span
from kdsl.check.analyses.cures import queue_cures
from kdsl.check.model.rule_set import CheckedQueue, CheckedSortKey, RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.scalar import Frame
from kdsl.eval.values import EvalError, Value
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Backoff, QueuedPod, hookimpl
from kdsl.hooks.status import Code, Status
from kdsl.plan.compile.failures import FaultLog, error_text, fault_of
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.compile.sort_keys import SortKeys, number_fields
from kdsl.plan.compile.template import compile_template, text_in
from kdsl.plan.reads.dependencies import Dependencies, reads_of
from kdsl.plan.reads.signature_reads import signature_reads
from kdsl.plan.rules.codes import PlanCode

MAX_ADMITTED = 1024
"""The most signatures whose admission is kept."""

SortKey = Callable[[QueuedPod], tuple[Any, ...]]


class QueuedView:
    """The view `QueuedPod`: the pod's fields, and the start of its wait, in nanoseconds since the epoch."""

    __slots__ = ("_pod", "queued_at")

    def __init__(self, pod: Value, queued_at: int) -> None:
        self._pod = pod
        self.queued_at = queued_at

    def __getattr__(self, name: str) -> Value:
        return getattr(self._pod, name)


class QueuePlugin:
    """A queue. `key` is unique among the plugins of all profiles, `name` is shown in decisions."""

    def __init__(self, rule: CheckedQueue, key: str, functions: CompiledFunctions) -> None:
        self.key = key
        self.name, self.qualified, self.site = rule.name, rule.qualified, rule.span.site
        self._erred = functions.erred
        self._cures = queue_cures(rule, functions.fns)
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions, rule=(type(rule), rule.qualified))
        self._pod = scope.slot_of("pod")
        for let in rule.lets:
            scope.let(let)
        self._admit = [
            (scope.compile(admit.condition), compile_template(admit.reason, scope), admit)
            for admit in rule.admit
        ]
        parts = [part for each in rule.admit for part in (each.condition, *each.reason.holes)]
        values = [let.value for let in rule.lets]
        reads = signature_reads(reads_of(parts), (*parts, *values), functions.fns)
        # Admission is kept by signature, unless it depends on more than the pod.
        self._admission = Dependencies.of(reads) if all(each.startswith("pod.") for each in reads) else None
        self._admitted = BoundedDict[Hashable, Status | None](MAX_ADMITTED)
        self._keys = SortKeys(rule.order, scope)
        # A probe observes evaluations only, and values that are read have none.
        self._read_key = None if functions.probe is not None else _reader_of_numbers(rule.order, self._pod)
        self._waits = tuple((each, scope.compile(each)) for each in rule.backoff or ())
        self._new_frame = scope.frames()

    def _frame(self, pod: Value, queued_at: int) -> Frame:
        return self._new_frame(pod=QueuedView(pod, queued_at))

    @hookimpl
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Refuse the pod with the reason of the first `admit when` that is false, or fails.

        A pod that is not queued yet has the epoch as `queuedAt`.
        """
        if self._admission is None:
            return self._decide(pod)
        signature = self._admission.signature(pod)
        if signature not in self._admitted:
            return self._admitted.keep(signature, self._decide(pod))
        return self._admitted[signature]

    def _decide(self, pod: Value) -> Status | None:
        frame = self._frame(pod, 0)
        for condition, reason, admit in self._admit:
            try:
                if condition(frame):
                    continue
                text = text_in(reason, frame)
            except EvalError as error:
                span = admit.condition.span
                fault = fault_of(self.name, error, span)
                text = error_text(self.name, error, span)
                return Status(Code.UNRESOLVABLE, (text,), sites=(admit.span.site,), faults=(fault,))
            return Status(Code.UNRESOLVABLE, (text,), sites=(admit.span.site,))
        return None

    @hookimpl
    def backoff(self) -> Backoff:
        """Return the backoff of the queue, or kube-scheduler's; EvalError if it has no value."""
        return Backoff(*(wait(self._frame(None, 0)).ns for _, wait in self._waits))

    def problems(self) -> Iterator[Diagnostic]:
        """Yield the problems in the values of `backoff`."""
        for expr, wait in self._waits:
            try:
                is_negative = wait(self._frame(None, 0)).ns < 0
            except EvalError as error:
                yield Diagnostic(PlanCode.BACKOFF, "this wait has no value", expr.span, str(error))
                return
            if is_negative:
                yield Diagnostic(PlanCode.BACKOFF, "a wait cannot be negative", expr.span, "less than 0")
                return
        if self._waits and 0 < (backoff := self.backoff()).maximum < backoff.initial:
            title = "the first wait is longer than the longest"
            why = "no wait is longer than this"
            yield Diagnostic(PlanCode.BACKOFF, title, self._waits[1][0].span, why)

    @hookimpl
    def queue_sort(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Return the sort key: the rule's keys, then the order of arrival, so that no two pods are equal.

        The checker rejects keys that may fail; a key that exceeds its steps is `LAST`.
        """
        if self._read_key is not None:
            return self._read_key(queued)
        frame = self._frame(queued.pod, queued.queued_at)
        return (*self._keys.values(frame, self._report), queued.sequence)

    def faults_of_pod(self, pod: PodInfo) -> tuple[Fault, ...]:
        """Return the sort keys of a pod that exceed their steps."""
        log = FaultLog(self.name)
        self._keys.values(self._frame(pod, 0), log.add)
        return log.take()

    @hookimpl
    def events(self) -> tuple[EventPattern, ...]:
        return self._cures.patterns

    def _report(self, error: EvalError, span: Span) -> None:
        self._erred.add(self.qualified)


def _reader_of_numbers(keys: Iterable[CheckedSortKey], pod: int) -> SortKey | None:
    """Return a reader of the sort key if all `keys` are integer or time fields of the pod, as in most queues;
    else None. `pod` is the slot of the pod.
    """
    fields = number_fields(keys, pod)
    if not fields:
        return None
    names = [name if name == "queued_at" else f"pod.{name}" for name, _ in fields]
    signs = (*[sign for _, sign in fields], 1)
    read: Callable[[QueuedPod], tuple[int, ...]] = attrgetter(*names, "sequence")
    return lambda queued: tuple(map(mul, signs, read(queued)))


def check_backoffs(rules: RuleSet) -> tuple[Diagnostic, ...]:
    """Report waits between attempts that are none, of queues as they are written and as profiles use them."""
    functions = CompiledFunctions(rules.fns)
    written = (rule for rule in rules.written if isinstance(rule, CheckedQueue))
    queues = (*written, *(profile.queue for profile in rules.profiles.values()))
    found = (problem for queue in queues for problem in QueuePlugin(queue, "", functions).problems())
    return tuple({(problem.code, str(problem.span)): problem for problem in found}.values())
