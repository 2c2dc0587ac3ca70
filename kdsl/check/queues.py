"""Queues: which pods may be scheduled, and in which order."""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.block import Block, incomplete, not_built, once
from kdsl.check.codes import CheckCode
from kdsl.check.declarations import Located
from kdsl.check.model import CheckedAdmit, CheckedFn, CheckedLet, CheckedQueue, CheckedSortKey
from kdsl.check.totality import Totality
from kdsl.check.typed import TypedExpr
from kdsl.check.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    ERROR,
    INT,
    QUANTITY,
    STRING,
    TIMESTAMP,
    UINT,
)
from kdsl.lang.tree import AdmitWhen, Backoff, Let, OrderBy, Param, Queue, SortKey

_ORDERED = frozenset({BOOL, INT, UINT, STRING, BYTES, TIMESTAMP, DURATION, QUANTITY, ERROR})


def check_queue(located: Located[Queue], block: Block, fns: Mapping[str, CheckedFn]) -> CheckedQueue:
    """Check one queue; the result is only of use where nothing was reported."""
    queue = located.declaration
    once(block.diagnostics, [each for each in queue.body if isinstance(each, OrderBy)], "order by")
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
                admit.append(CheckedAdmit(condition, reason, statement.span))
            case OrderBy(keys=keys):
                totality = Totality(block.guards.lets, fns)
                order = tuple(_sort_key(block, key, totality) for key in keys)
            case Backoff():
                instead = "leave it out: pods wait from 1 s to 10 s between attempts"
                not_built(block.diagnostics, "`backoff`", statement.span, instead)
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
        reads=block.reads,
        scope=block.scope,
        slots=block.frame.size,
        doc=queue.doc,
        span=queue.span,
    )


def _sort_key(block: Block, key: SortKey, totality: Totality) -> CheckedSortKey:
    value = block.expression(key.value)
    problem = _unfit(value, totality)
    if problem is not None:
        block.diagnostics.append(problem)
    return CheckedSortKey(value, key.descending)


def _unfit(value: TypedExpr, totality: Totality) -> Diagnostic | None:
    """Say why a value cannot be a sort key: no total order, or an error where it has none."""
    if value.type == DOUBLE:
        why = "a double may be NaN, which has no place in an order"
    elif value.type not in _ORDERED:
        why = f"values of type `{value.type}` have no order"
    else:
        failing = totality.why_it_may_fail(value)
        if failing is None:
            return None
        part, why = failing
        title = "a sort key must have a value for every pod"
        return Diagnostic(CheckCode.UNFIT_SORT_KEY, title, part.span, why)
    return Diagnostic(CheckCode.UNFIT_SORT_KEY, "a sort key needs a total order", value.span, why)
