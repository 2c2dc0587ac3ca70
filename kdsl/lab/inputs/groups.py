"""Rows of one object, such as the events of one task, as one record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kdsl.check.model.types import Type, optional_of
from kdsl.eval.values import INT_MAX, INT_MIN, Timestamp, Value
from kdsl.lab.inputs.cells import RowError
from kdsl.lab.inputs.formulas import OPTIONAL, Formula, holder

ORDERED: Final = frozenset({"int", "double", "string", "timestamp", "duration"})
"""The types whose values have a smallest one."""
SUMMED: Final = frozenset({"int", "double"})


class How(StrEnum):
    """The way to make one value of the values of a group's rows."""

    FIRST = "first"
    LAST = "last"
    MIN = "min"
    MAX = "max"
    SUM = "sum"


@dataclass(frozen=True, slots=True)
class GroupValue:
    """A value of a group: that of the rows for which `where` holds. Rows without a value do not count."""

    name: str
    how: How
    formula: Formula
    where: Formula | None = None

    @property
    def type(self) -> Type:
        """The type in expressions; optional where no row of a group may count."""
        may_lack = self.where is not None or self.formula.type.name == OPTIONAL
        return optional_of(self.formula.item_type) if may_lack else self.formula.item_type


@dataclass(frozen=True, slots=True)
class Grouping:
    """The grouping of rows: `keys` are the values that rows of one group have in common."""

    keys: tuple[tuple[str, Formula], ...]
    values: tuple[GroupValue, ...]
    order: Formula | None = None

    @property
    def members(self) -> dict[str, Type]:
        """The fields of a group and their types."""
        types = {name: formula.type for name, formula in self.keys}
        return types | {value.name: value.type for value in self.values}


@dataclass(slots=True)
class _State:
    """A group while rows arrive: `at` are the places of the rows whose values count, to compare with."""

    line: int
    at: list[Any]
    values: list[Value]


@dataclass(slots=True)
class RowGroups:
    """Takes rows and yields the groups in the order of their first rows.

    It holds a few values of each group and no rows.
    """

    grouping: Grouping
    _states: dict[tuple[Value, ...], _State] = field(default_factory=dict)
    _count: int = 0

    def take(self, line: int, objects: Sequence[Value]) -> None:
        """Add a row. Raises RowError, and then the row has changed nothing."""
        grouping = self.grouping
        key = tuple(formula.value(objects) for _, formula in grouping.keys)
        self._count += 1
        place: Any = self._count
        if grouping.order is not None:
            place = (grouping.order.value(objects), self._count)
            if place[0] is None:
                raise RowError(grouping.order.place, "the row has no value to order it by")
        taken: list[tuple[int, Value, Any]] = []
        state = self._states.get(key)
        for number, value in enumerate(grouping.values):
            if value.where is not None and not value.where.value(objects):
                continue
            new = value.formula.value(objects)
            if new is None:
                continue
            old, old_at = (None, None) if state is None else (state.values[number], state.at[number])
            if old_at is None or _COUNTS[value.how](new, place, old, old_at):
                taken.append((number, new, place))
            elif value.how is How.SUM:
                taken.append((number, _sum(old, new, value), place))
        if state is None:
            empty = [None] * len(grouping.values)
            state = self._states[key] = _State(line, empty, list(empty))
        for number, new, at in taken:
            state.values[number], state.at[number] = new, at

    def records(self) -> list[tuple[int, Any]]:
        """Return the groups: the line of the first row, and the object that expressions read."""
        grouping = self.grouping
        types = list(grouping.members.values())
        make = holder(grouping.members)
        bare = [type_.name == "timestamp" for type_ in types]
        found = []
        for key, state in self._states.items():
            values = [
                value.ns if is_bare and isinstance(value, Timestamp) else value
                for value, is_bare in zip((*key, *state.values), bare, strict=True)
            ]
            found.append((state.line, make(values)))
        return found


def _sum(old: Value, new: Value, value: GroupValue) -> Value:
    total = old + new
    if isinstance(total, int) and not INT_MIN <= total <= INT_MAX:
        raise RowError(value.formula.place, "the sum is larger than 64 bits")
    return total


_COUNTS: Final[dict[How, Callable[[Value, Any, Value, Any], bool]]] = {
    How.FIRST: lambda new, at, old, old_at: at < old_at,
    How.LAST: lambda new, at, old, old_at: at > old_at,
    How.MIN: lambda new, at, old, old_at: new < old,
    How.MAX: lambda new, at, old, old_at: new > old,
    How.SUM: lambda new, at, old, old_at: False,
}
"""Whether a row's value replaces that of the rows before."""
