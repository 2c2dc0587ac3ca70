"""Lists that each node has, such as its taints and used ports: a condition is evaluated once per distinct
item of all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import Final

import numpy as np

from kdsl.check.model.typed import CallOf, Macro
from kdsl.cluster.objects.ports import EVERY_ADDRESS, HostPort
from kdsl.cluster.snapshot.fact_columns import OF_PODS, FactColumn
from kdsl.eval.values import Value
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    AllBad,
    Bad,
    Coded,
    CodedLists,
    Column,
    ColumnValue,
    Int64s,
    Mask,
    NotColumnar,
    Objects,
    Same,
    spread,
)
from kdsl.plan.columns.distinct_objects import DistinctObjects
from kdsl.plan.columns.logic import ColumnClosure

MAX_CONDITIONS: Final = 64
"""The most conditions on items alone whose results are kept."""
MAX_ITEMS: Final = 65_536
"""The most distinct items of a list for columns."""


class ListItems:
    """The distinct items of a column of lists. List `owners[i]` of the column has item `places[i]`.

    Thread-safe: between two refreshes of the column it changes once, before it is read.
    """

    def __init__(self, column: FactColumn) -> None:
        self._column = column
        self._lock = Lock()
        self._lists = 1
        self._distinct: DistinctObjects[Value] = DistinctObjects()
        self.items = self._distinct.objects
        self.variable = self._distinct.variable(np.arange(0))
        self.owners: Int64s = np.zeros(0, np.int64)
        self.places: Int64s = np.zeros(0, np.int64)
        self.longest = 0
        self._chosen: dict[ColumnClosure, tuple[Mask, int]] = {}

    def refresh(self) -> None:
        """Take in the lists that the column did not have before."""
        with self._lock:
            lists, known = self._column.values, self._lists
            if len(lists) == known:
                return
            sizes = [len(each) for each in lists[known:]]
            items = list(chain.from_iterable(lists[known:]))
            self.longest = max(self.longest, *sizes)
            self.owners = np.append(self.owners, np.repeat(np.arange(known, len(lists)), sizes))
            self.places = np.append(self.places, self._distinct.number(items, items))
            self._lists = len(lists)
            self.variable = self._distinct.variable(np.arange(len(self.items)))
            self._chosen = {}

    def chosen(self, condition: ItemCondition, batch: Batch, slot: int) -> tuple[Mask, Bad, int]:
        """Return for which items a condition holds, for which it fails, and how many steps an item takes.

        A condition that reads nothing but the item is evaluated once.
        """
        known = self._chosen.get(condition.holds) if condition.is_static else None
        if known is not None:
            return known[0], None, known[1]
        size = len(self.items)
        # Nothing is read of the rows; there are as many as items.
        items = Batch(batch.snapshot, batch.rows[:1].repeat(size), batch.frame, batch.facts)
        items.columns[slot] = self.variable
        for other in condition.others:
            value = items.columns[other] = batch.columns[other]
            if not isinstance(value, Same):
                raise NotColumnar
        before = batch.frame[-1].left
        found, bad = spread(condition.holds(items), size, np.bool_)
        steps = before - batch.frame[-1].left
        batch.frame[-1].left = before
        if condition.is_static and bad is None and len(self._chosen) < MAX_CONDITIONS:
            self._chosen[condition.holds] = found, steps
        return found, bad, steps

    def count(self, chosen: Mask) -> Int64s:
        """Return how many chosen items each list of the column has, by its code."""
        owners = self.owners[chosen.take(self.places)]
        return np.bincount(owners, minlength=self._lists).astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True)
class ItemCondition:
    """A condition on the item of a list. `is_static` where it reads the item and nothing else. `others` are
    variables of macros and functions around it that it reads, too; they must have one value for all rows.
    """

    holds: ColumnClosure
    is_static: bool
    others: tuple[int, ...] = ()


def lists_of(column: FactColumn) -> ListItems:
    """Return the items of a column of lists, up to date."""
    items: ListItems = column.kept[ListItems]
    items.refresh()
    return items


def of_items(expr: CallOf, receiver: ColumnClosure, argument: ColumnClosure) -> ColumnClosure:
    """Return a method of `ITEM_METHODS` about the items of lists and one other value."""
    at, answer = ITEM_METHODS[expr.function]

    def evaluate(batch: Batch) -> ColumnValue:
        operands = receiver(batch), argument(batch)
        items, other = operands[at], operands[1 - at]
        if not isinstance(other, Same) or not isinstance(items, Objects):
            raise NotColumnar
        return Column(answer(items, other.value)[items.codes], items.bad)

    return evaluate


def tolerated(items: Objects, tolerations: Sequence[Value]) -> Mask:
    """Return which taints one of some tolerations matches, as `Toleration.tolerates` does."""
    result = np.zeros(len(items.values), np.bool_)
    for each in tolerations:
        found: Mask = np.ones(len(result), np.bool_)
        if each.effect:
            found &= has_value(items, "effect", each.effect)
        if each.key:
            found &= has_value(items, "key", each.key)
        if each.operator in ("", "Equal"):
            found &= has_value(items, "value", each.value)
        elif each.operator != "Exists":
            continue
        result |= found
    return result


def _conflicting(items: Objects, port: HostPort) -> Mask:
    """Return which ports conflict with a port, as `HostPort.conflicts_with` does."""
    found = has_value(items, "port", port.port) & has_value(items, "protocol", port.protocol)
    if port.ip != EVERY_ADDRESS:
        found &= has_value(items, "ip", port.ip) | has_value(items, "ip", EVERY_ADDRESS)
    return found


def has_value(items: Objects, name: str, value: Value) -> Mask:
    """Return which items have a value of an attribute, a number or a text."""
    column = items.read(name)
    found: Mask
    if isinstance(column, Coded):
        found = column.codes == (column.values.index(value) if value in column.values else -1)
    else:
        assert column is not None
        found = column.values == value
    return found


ITEM_METHODS: Final[Mapping[str, tuple[int, Callable[[Objects, Value], Mask]]]] = {
    "Pod.tolerates": (1, lambda taints, pod: tolerated(taints, pod.tolerations)),
    "Toleration.tolerates": (1, lambda taints, toleration: tolerated(taints, (toleration,))),
    "HostPort.conflictsWith": (0, _conflicting),
}
"""Methods that answer for all distinct items at once: the place of the item (0 is the receiver), and a
function that returns for which items the method holds, given the other value.
"""


def list_field(attribute: str) -> ColumnClosure:
    """Return the lists that nodes have in an attribute; NotColumnar for what-ifs with other pods."""
    of_pods = attribute in OF_PODS

    def read(batch: Batch) -> ColumnValue:
        if of_pods and batch.snapshot.is_overlay:
            raise NotColumnar
        column = batch.facts.field(attribute)
        return CodedLists(column.codes.take(batch.rows), lists_of(column))

    return read


def over_items(macro: Macro, iterable: ColumnClosure, slot: int, condition: ItemCondition) -> ColumnClosure:
    """Return `all`, `exists` or `filter` over lists of nodes, by a condition that reads the item in `slot`
    and nothing of the node. NotColumnar if it fails for an item that is there.
    """

    def evaluate(batch: Batch) -> ColumnValue:
        listed = iterable(batch)
        if not isinstance(listed, CodedLists) or len(listed.lists.items) > MAX_ITEMS:
            raise NotColumnar
        found = _chosen(batch, listed, slot, condition)
        if macro is Macro.FILTER:
            kept = found if listed.kept is None else found & listed.kept
            return CodedLists(listed.codes, listed.lists, kept)
        if macro is Macro.EXISTS:
            return Column(listed.count(found) > 0)
        return Column(listed.count(~found) == 0)

    return evaluate


def _chosen(batch: Batch, listed: CodedLists, slot: int, condition: ItemCondition) -> Mask:
    """Return for which of the distinct items a condition holds."""
    lists, kept = listed.lists, listed.kept
    if not lists.items:
        return np.zeros(0, np.bool_)
    try:
        found, bad, steps = lists.chosen(condition, batch, slot)
    except AllBad:
        raise NotColumnar from None
    if bad is not None and (bad if kept is None else bad & kept).any():
        raise NotColumnar
    # A row pays for each of its items, as in the scalar back end.
    batch.spend(lists.longest * (steps + 1))
    return found
