"""Queues: the pods that may be scheduled, and their order."""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedAdmit, CheckedFn, CheckedLet, CheckedQueue, CheckedSortKey
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import DURATION, BindingTime
from kdsl.check.names.declarations import Located
from kdsl.check.rules.block import BlockCheck, incomplete, once
from kdsl.check.rules.passing_time import PassingTime
from kdsl.check.rules.sort_keys import check_sort_keys
from kdsl.check.rules.totality import Totality
from kdsl.lang.tree import AdmitWhen, Backoff, Let, OrderBy, Param, Queue


def check_queue(located: Located[Queue], block: BlockCheck, fns: Mapping[str, CheckedFn]) -> CheckedQueue:
    """Check one queue; the result is valid only where nothing was reported."""
    queue = located.declaration
    once(block.diagnostics, [each for each in queue.body if isinstance(each, OrderBy)], "order by")
    once(block.diagnostics, [each for each in queue.body if isinstance(each, Backoff)], "backoff")
    time = PassingTime(block)
    backoff: tuple[TypedExpr, TypedExpr] | None = None
    admit: list[CheckedAdmit] = []
    order: tuple[CheckedSortKey, ...] = ()
    lets: list[CheckedLet] = []
    for statement in queue.body:
        match statement:
            case Param():
                block.param(statement)
            case Let():
                lets.append(block.let(statement))
            case AdmitWhen():
                condition = block.condition(statement.condition, "the condition of `admit when`")
                reason = block.template(statement.reason, block.guards.when(condition, False))
                time.refuse(condition, "who may enter a queue")
                for part in reason.parts:
                    if not isinstance(part, str):
                        time.refuse(part, "the reason of `admit when`")
                admit.append(CheckedAdmit(condition, reason, statement.span))
            case OrderBy(keys=keys):
                totality = Totality(block.guards.lets, fns)
                order = check_sort_keys(block, keys, totality, time)
            case Backoff():
                backoff = _backoff(block, statement)
    if not order:
        why = "pods would have no order"
        incomplete(block.diagnostics, "queue", located.name, queue.name.span, "order by", why)
    return CheckedQueue(
        name=located.name,
        qualified=located.qualified,
        params=tuple(block.params),
        lets=tuple(lets),
        admit=tuple(admit),
        order=order,
        backoff=backoff,
        reads=block.reads,
        scope=block.scope,
        slots=block.frame.size,
        doc=queue.doc,
        span=queue.span,
    )


def _backoff(block: BlockCheck, statement: Backoff) -> tuple[TypedExpr, TypedExpr]:
    """Check the waiting time between a pod's attempts: two durations that are equal for all pods."""
    initial = block.expression(statement.initial, DURATION, "the first wait")
    maximum = block.expression(statement.maximum, DURATION, "the longest wait")
    for each in (initial, maximum):
        if each.time > BindingTime.STATIC:
            title, why = "`backoff` must be constant", "this depends on the pod or on the time"
            help_ = ("one `backoff` holds for all pods of a queue",)
            block.diagnostics.append(Diagnostic(CheckCode.TOO_LATE, title, each.span, why, help=help_))
    return initial, maximum
