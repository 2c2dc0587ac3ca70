"""Sort keys as closures: what queues and preemptions put things into order by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kdsl.check.model import CheckedSortKey
from kdsl.check.types import INT
from kdsl.plan.scalar import Closure, Frame
from kdsl.plan.scope import RuleScope
from kdsl.plan.values import EvalError, Value


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


class SortKeys:
    """The compiled keys of one `order by` or `choose by`."""

    def __init__(self, keys: Iterable[CheckedSortKey], scope: RuleScope) -> None:
        self._keys = [
            (scope.compile(key.value), _descending(key.value.type == INT) if key.descending else None)
            for key in keys
        ]

    def values(self, frame: Frame) -> tuple[Value, ...]:
        """Return what to sort by; a key that fails is `LAST`."""
        return tuple(_value_of(key, reverse, frame) for key, reverse in self._keys)


def _value_of(key: Closure, reverse: Callable[[Value], Value] | None, frame: Frame) -> Value:
    try:
        value = key(frame)
    except EvalError:
        return LAST
    return value if reverse is None else reverse(value)


def _descending(is_int: bool) -> Callable[[Value], Value]:
    return (lambda value: -value) if is_int else Descending
