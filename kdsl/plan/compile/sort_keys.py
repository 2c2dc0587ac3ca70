"""Sort keys as closures, for the order of queues and preemptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedSortKey
from kdsl.check.model.typed import FieldOf, Var
from kdsl.check.model.types import DURATION, INT, TIMESTAMP, Type
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.values import EvalError, Value
from kdsl.eval.views import attribute_of
from kdsl.plan.compile.scope import ReportError, RuleScope

_TIMES: Final = (TIMESTAMP, DURATION)
_NUMBERS: Final = (INT, TIMESTAMP)
"""The types of fields whose attributes are numbers."""


@dataclass(frozen=True, slots=True)
class Descending:
    """A sort key in reverse order, for keys without a negative."""

    value: Value

    def __lt__(self, other: object) -> bool:
        return bool(other.value < self.value) if isinstance(other, Descending) else NotImplemented


class _Last:
    """The sort key after all others."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return self is not other


LAST: Final = _Last()


class SortKeys:
    """The compiled keys of one `order by` or `choose by`."""

    def __init__(self, keys: Iterable[CheckedSortKey], scope: RuleScope) -> None:
        self._keys = [
            (
                _sortable(scope.compile(key.value), key.value.type),
                _reverse(key) if key.descending else None,
                key.value.span,
            )
            for key in keys
        ]

    def values(self, frame: Frame, report: ReportError) -> tuple[Value, ...]:
        """Return the sort key; a part that fails is `LAST`, and `report` receives the error."""
        return tuple([_value(*key, frame, report) for key in self._keys])

    def first(self, frames: Sequence[Frame], report: ReportError) -> int:
        """Return the place of the frame with the smallest sort key, the first of those that are equal. A part
        is evaluated only for frames that are equal in all parts before it.
        """
        places: Sequence[int] = range(len(frames))
        for key in self._keys:
            if len(places) == 1:
                break
            values = [_value(*key, frames[place], report) for place in places]
            least = min(values)
            places = [place for place, value in zip(places, values, strict=True) if not least < value]
        return places[0]


def _value(
    compute: Closure, reverse: Callable[[Value], Value] | None, span: Span, frame: Frame, report: ReportError
) -> Value:
    try:
        value = compute(frame)
    except EvalError as error:
        report(error, span)
        return LAST
    return value if reverse is None else reverse(value)


def number_fields(keys: Iterable[CheckedSortKey], slot: int) -> list[tuple[str, int]]:
    """Return the attributes of the value in `slot` whose numbers are the sort keys, each with its sign; none
    if some key is not an integer or time field of the value.
    """
    found: list[tuple[str, int]] = []
    for key in keys:
        match key.value:
            case FieldOf(operand=Var(slot=used), field=field, type=of) if used == slot and of in _NUMBERS:
                found.append((attribute_of(field), -1 if key.descending else 1))
            case _:
                return []
    return found


def _sortable(compute: Closure, type_: Type) -> Closure:
    """Return a closure for one key: times as numbers, which are compared faster."""
    if type_ not in _TIMES:
        return compute
    return lambda frame: compute(frame).ns


def _reverse(key: CheckedSortKey) -> Callable[[Value], Value]:
    is_number = key.value.type == INT or key.value.type in _TIMES
    return (lambda value: -value) if is_number else Descending
