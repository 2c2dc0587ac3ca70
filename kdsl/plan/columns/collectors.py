"""Collectors: functions that add the reads of nodes by an expression, for one attempt.

`NodeReadsCompiler` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.check.model.typed import FieldOf, HasField
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.scalar.comprehensions import Each
from kdsl.eval.values import EvalError, Value
from kdsl.eval.views import attribute_of
from kdsl.plan.columns.atoms import is_fact
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.node_groups import Collect, NodeReads


def field_collector(expr: FieldOf | HasField) -> Collect:
    if not is_fact(expr):
        raise NotColumnar
    attribute = attribute_of(expr.field)
    return lambda frame, reads: reads.fields.add(attribute)


def key_collector(attribute: str, key: Closure, is_test: bool) -> Collect:
    def collect(frame: Frame, reads: NodeReads) -> None:
        (reads.tests if is_test else reads.keys).add((attribute, key(frame)))

    return collect


def nothing(frame: Frame, reads: NodeReads) -> None:
    """Collect nothing."""


def unclear(frame: Frame, reads: NodeReads) -> None:
    """Refuse: the expression reads more than a few facts."""
    raise NotColumnar


def is_value(closure: Closure, frame: Frame, wanted: bool) -> bool:
    try:
        value: Value = closure(frame)
    except EvalError:
        return False
    return value is wanted


def for_each(each: Each, collect: Collect) -> Collect:
    def evaluate(frame: Frame, reads: NodeReads) -> None:
        for _ in each(frame):
            collect(frame, reads)

    return evaluate


def together(collectors: Iterable[Collect | None]) -> Collect | None:
    found = [collect for collect in collectors if collect is not None]
    if unclear in found:
        return unclear
    if len(found) < 2:
        return found[0] if found else None

    def evaluate(frame: Frame, reads: NodeReads) -> None:
        for collect in found:
            collect(frame, reads)

    return evaluate
