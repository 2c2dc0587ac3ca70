"""Lists and maps over columns: macros, sizes, sums, look-ups.

A macro over a list that all rows share is a Python loop with a column per item; a filter is a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from kdsl.check.model.typed import Macro
from kdsl.check.model.types import Type
from kdsl.eval.scalar.comprehensions import pairs
from kdsl.eval.values import Value, kind_of
from kdsl.plan.card_table import PLAIN_FIELDS
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    PLAIN,
    AllBad,
    Array,
    Bad,
    Cards,
    Coded,
    CodedLists,
    Column,
    ColumnValue,
    Int64s,
    Items,
    NotColumnar,
    Objects,
    PresentItem,
    Same,
    bad_of,
    decoded,
    either,
    operand,
    spread,
    take,
    with_bad,
)
from kdsl.plan.columns.kernels import Kernel, sum_overflows
from kdsl.plan.columns.logic import ColumnClosure, OpenRows
from kdsl.plan.columns.traced import is_traced

_MOST_RECORDED: Final = 16
"""The most items of a list of which a recording chooses one by comparisons."""


def field_of(coded: ColumnClosure, attribute: str, type_: Type) -> ColumnClosure:
    """Return a field of coded values, read once per distinct value."""

    def read(batch: Batch) -> ColumnValue:
        value = coded(batch)
        if isinstance(value, Same):
            return Same(getattr(value.value, attribute))
        if isinstance(value, Cards):
            if attribute not in PLAIN_FIELDS:
                raise NotColumnar
            return Column(value.table.field(attribute)[value.rows, value.places])
        if isinstance(value, Objects) and (column := value.read(attribute)) is not None:
            return with_bad(take(column, value.codes), value.bad)
        if not isinstance(value, Coded):
            raise NotColumnar
        # Unused codes may have any value, such as an absent key.
        fields = [None if known is None else getattr(known, attribute) for known in value.values]
        return decoded(value.codes, fields, type_, value.bad)

    return read


def list_of(items: Sequence[ColumnClosure]) -> ColumnClosure:
    """Return a list with an item for each operand."""

    def build(batch: Batch) -> ColumnValue:
        values = [item(batch) for item in items]
        entries = [PresentItem(place, value, None) for place, value in enumerate(values)]
        return _list_value(entries, either(*map(bad_of, values)))

    return build


def _list_value(entries: Sequence[PresentItem], bad: Bad) -> ColumnValue:
    """Return a list of entries; `Same` if all rows have the same."""
    same = [entry.value.value for entry in entries if entry.present is None and isinstance(entry.value, Same)]
    if len(same) == len(entries) and bad is None:
        return Same(tuple(same))
    return Items(tuple(entries), False, bad)


Over = Callable[[ColumnValue, Batch], ColumnValue]
"""Evaluates a macro over the value of a list or map."""


def comprehension(
    macro: Macro, slots: tuple[int, ...], where: ColumnClosure | None, body: ColumnClosure
) -> Over:
    """Return a macro over a list or map."""
    if macro in (Macro.ALL, Macro.EXISTS):
        return _quantifier(slots, body, macro is Macro.EXISTS)
    if macro is Macro.EXISTS_ONE:
        return _exists_one(_build(slots, body, None, False))
    if macro is Macro.FILTER:
        return _build(slots, body, None, False)
    if macro in (Macro.MAP, Macro.TRANSFORM_LIST, Macro.TRANSFORM_MAP):
        return _build(slots, where, body, macro is Macro.TRANSFORM_MAP)
    raise NotColumnar


def _exists_one(kept: Over) -> Over:
    def evaluate(listed: ColumnValue, batch: Batch) -> ColumnValue:
        value = kept(listed, batch)
        if isinstance(value, Same):
            return Same(len(value.value) == 1)
        assert isinstance(value, Items)
        return Column(_count(value, len(batch)) == 1, value.bad)

    return evaluate


def _source(value: ColumnValue, variables: int, batch: Batch) -> Items:
    """Return the items of a macro. As in the scalar back end, each item is a step."""
    if isinstance(value, Same):
        batch.spend(len(value.value))
        is_map = kind_of(value.value) != "list"
        return Items(tuple(PresentItem(key, Same(item), None) for key, item in pairs(value.value)), is_map)
    if not isinstance(value, Items):
        raise NotColumnar
    if variables == 2 and not value.is_map and any(entry.present is not None for entry in value.entries):
        raise NotColumnar  # positions differ from row to row
    batch.spend(len(value.entries))
    return value


def _bind(batch: Batch, slots: tuple[int, ...], items: Items, place: int) -> None:
    entry = items.entries[place]
    key = Same(entry.key if items.is_map else place)
    if len(slots) == 2:
        batch.columns[slots[0]], batch.columns[slots[1]] = key, entry.value
    else:
        batch.columns[slots[0]] = key if items.is_map else entry.value


def _quantifier(slots: tuple[int, ...], body: ColumnClosure, decider: bool) -> Over:
    def evaluate(value: ColumnValue, batch: Batch) -> ColumnValue:
        items = _source(value, len(slots), batch)
        if items.bad is not None:
            raise NotColumnar
        state = OpenRows(len(batch), decider)
        for place, entry in enumerate(items.entries):
            _bind(batch, slots, items, place)
            present = entry.present
            try:
                value = body(batch)
            except AllBad:
                state.fail(present)
                continue
            if isinstance(value, Same) and value.value is not decider:
                continue
            values, bad = spread(value, len(batch), np.bool_)
            if present is not None:
                absent = ~present
                values = (values & present) if decider else (values | absent)
                bad = None if bad is None else bad & present
            state.add(values, bad)
            if not is_traced(values) and not len(state.open_rows()):
                break
        return state.result()

    return evaluate


def _build(
    slots: tuple[int, ...], where: ColumnClosure | None, body: ColumnClosure | None, to_map: bool
) -> Over:
    """Return `filter` (no `body`), `map` or `transform…`."""

    def evaluate(value: ColumnValue, batch: Batch) -> ColumnValue:
        items = _source(value, len(slots), batch)
        bad = items.bad
        entries: list[PresentItem] = []
        for place, entry in enumerate(items.entries):
            _bind(batch, slots, items, place)
            present = entry.present
            try:
                if where is not None:
                    present, failed = _kept(where(batch), present, len(batch))
                    bad = either(bad, failed)
                    if present is not None and not is_traced(present) and not present.any():
                        continue
                # `filter` keeps its variable.
                value = batch.columns[slots[0]] if body is None else body(batch)
            except AllBad:
                if entry.present is None and present is None:
                    raise
                bad = either(bad, entry.present if present is None else present)
                continue
            own = bad_of(value)
            if own is not None:
                bad = either(bad, own if present is None else own & present)
            key = entry.key if items.is_map else place
            entries.append(PresentItem(key if to_map else len(entries), value, present))
        return Items(tuple(entries), True, bad) if to_map else _list_value(entries, bad)

    return evaluate


def _kept(condition: ColumnValue, present: Bad, rows: int) -> tuple[Bad, Bad]:
    """Return which rows keep an item, and for which the condition failed."""
    if isinstance(condition, Same):
        return (present, None) if condition.value else (np.zeros(rows, dtype=np.bool_), None)
    values, bad = spread(condition, rows, np.bool_)
    if bad is not None:
        values = values & ~bad
        bad = bad if present is None else bad & present
    if not is_traced(values) and values.all():
        return present, bad
    return (values if present is None else values & present), bad


# ---- functions of lists and maps ---------------------------------------------------------------------------


def _size(rows: int, args: list[ColumnValue]) -> ColumnValue:
    items = args[0]
    if isinstance(items, CodedLists):
        return Column(items.count(np.ones(len(items.lists.items), np.bool_)))
    if not isinstance(items, Items):
        raise NotColumnar
    if items.bad is None and all(entry.present is None for entry in items.entries):
        return Same(len(items.entries))
    return Column(_count(items, rows), items.bad)


def _count(items: Items, rows: int) -> Int64s:
    some = [entry.present for entry in items.entries if entry.present is not None]
    everywhere = len(items.entries) - len(some)
    if not some:
        return np.full(rows, everywhere, dtype=np.int64)
    return sum((mask.astype(np.int64) for mask in some[1:]), some[0] + everywhere)


def _sum(dtype: Any) -> Kernel:
    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        items = args[0]
        if not isinstance(items, Items):
            raise NotColumnar
        total, bad = dtype(0), items.bad
        for entry in items.entries:
            values, _ = operand(entry.value, dtype)
            if entry.present is not None:
                values = np.where(entry.present, values, dtype(0))
            after = total + values
            if dtype is np.int64:
                overflow = sum_overflows(total, values, after)
                if overflow.any():
                    bad = either(bad, np.broadcast_to(overflow, rows))
            total = after
        # All good rows may share it.
        return Column(np.full(rows, total) if isinstance(total, dtype) else total, bad)

    return kernel


def _extreme(dtype: Any, better: Callable[..., Array]) -> Kernel:
    """Return the kernel of `min` or `max`: the first of the best items that a row has."""

    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        items = args[0]
        if not isinstance(items, Items):
            raise NotColumnar
        if not items.entries:
            raise AllBad
        best, _ = operand(items.entries[0].value, dtype)
        # The rows with an item so far; None if all have one.
        found = items.entries[0].present
        for entry in items.entries[1:]:
            values, _ = operand(entry.value, dtype)
            present, wins = entry.present, better(values, best)
            wins = wins if found is None else wins | ~found
            best = np.where(wins if present is None else wins & present, values, best)
            found = None if found is None or present is None else found | present
        bad = items.bad if found is None or found.all() else either(items.bad, ~found)
        return Column(best if is_traced(best) else np.broadcast_to(np.asarray(best, dtype), rows), bad)

    return kernel


def _index_list(rows: int, args: list[ColumnValue]) -> ColumnValue:
    """Return the item at a position that all rows share: the one with that many present items before it.
    Or the item at the position of each row, of a list that all rows share.
    """
    items, index = args
    if isinstance(items, Same) and isinstance(index, Column):
        return _chosen(items.value, index)
    if not isinstance(items, Items) or not isinstance(index, Same):
        raise NotColumnar
    if type(index.value) is not int:
        raise NotColumnar
    if all(entry.present is None for entry in items.entries):
        if not 0 <= index.value < len(items.entries):
            raise AllBad
        return with_bad(items.entries[index.value].value, items.bad)
    before = np.zeros(rows, dtype=np.int64)
    found = np.zeros(rows, dtype=np.bool_)
    result: Any = None
    for entry in items.entries:
        values, _ = spread(entry.value, rows, None)
        present = np.ones(rows, dtype=np.bool_) if entry.present is None else entry.present
        here = present & (before == index.value)
        result = np.where(here, values, np.zeros(1, values.dtype) if result is None else result)
        found |= here
        before += present
    if result is None:
        raise AllBad
    return Column(result, either(items.bad, ~found if not found.all() else None))


def _chosen(items: Sequence[Value], index: Column) -> ColumnValue:
    """Return the item at the position of each row."""
    places, bad = operand(index, np.int64)
    is_outside = (places < 0) | (places >= len(items))
    # A recording must hold for other rows, too.
    if is_traced(is_outside) or is_outside.any():
        if not is_traced(is_outside) and is_outside.all():
            raise AllBad
        places, bad = np.where(is_outside, 0, places), either(bad, is_outside)
    return with_bad(_at(items, places), bad)


def _at(items: Sequence[Value], places: Int64s) -> ColumnValue:
    """Return the items at some positions: numbers or texts, or a list with a column for each of its items."""
    classes = {item.__class__ for item in items}
    if len(classes) == 1 and (dtype := PLAIN.get(*classes)) is not None:
        if not is_traced(places):
            return Column(np.array(items, dtype)[places])
        if len(items) > _MOST_RECORDED:
            raise NotColumnar
        found: Any = items[0]
        for at, item in enumerate(items[1:], 1):
            is_here: Any = places == at
            if is_traced(is_here):
                found = np.where(is_here, item, found)
            elif is_here:
                found = item
        return Column(found) if is_traced(found) else Same(found)
    if classes <= {tuple, list} and len(sizes := {len(item) for item in items}) == 1:
        columns = [_at([item[at] for item in items], places) for at in range(*sizes)]
        return Items(tuple(PresentItem(at, each, None) for at, each in enumerate(columns)), False)
    if classes != {str} or is_traced(places):
        raise NotColumnar
    return Coded(places, items)


def _in_list(rows: int, args: list[ColumnValue]) -> ColumnValue:
    value, items = args
    if not isinstance(items, Same):
        raise NotColumnar
    if isinstance(value, Column) and not value.scale:
        # INVARIANT: the compiler admits only lists of the value's own type.
        return Column(np.isin(value.values, np.array(items.value, value.values.dtype)), value.bad)
    if not isinstance(value, Coded):
        raise NotColumnar
    if not all(known is None or isinstance(known, str) for known in value.values):
        raise NotColumnar
    members = frozenset(item for item in items.value if isinstance(item, str))
    matches = np.array([known in members for known in value.values], dtype=np.bool_)
    return Column(matches[value.codes], value.bad)


CALLS: Final[Mapping[str, Callable[[int, list[ColumnValue]], ColumnValue]]] = {
    **dict.fromkeys(("list_size", "size_list", "map_size", "size_map"), _size),
    "list_sum_int": _sum(np.int64),
    "list_sum_double": _sum(np.float64),
    "list_min_int": _extreme(np.int64, np.less),
    "list_max_int": _extreme(np.int64, np.greater),
    "list_min_double": _extreme(np.float64, np.less),
    "list_max_double": _extreme(np.float64, np.greater),
    "index_list": _index_list,
    "in_list": _in_list,
}
