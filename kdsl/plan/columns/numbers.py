"""Lists of numbers that differ from node to node, such as the free parts of the cards, over columns.

A list is a row of a matrix, filled from the left. A macro over it evaluates its body once, for all items of
all rows: the items become the rows of a batch of their own. The functions of typical pods take such lists,
too: `fragmentation` and `room`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.check.model.typed import Macro
from kdsl.cluster.devices.room import Room
from kdsl.cluster.devices.typical import Fragmentation
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    PLAIN,
    AllBad,
    Array,
    Bad,
    Cards,
    Coded,
    Column,
    ColumnValue,
    Items,
    Mask,
    NotColumnar,
    Numbers,
    PresentItem,
    Same,
    either,
    spread,
)
from kdsl.plan.columns.items import CALLS
from kdsl.plan.columns.kernels import Kernel
from kdsl.plan.columns.logic import ColumnClosure

MAX_WIDTH: Final = 64
"""Longer lists are left to the scalar back end: rows are as long as the longest."""


def is_numbers(value: ColumnValue) -> bool:
    """Return whether a value is lists of numbers or cards that differ from row to row."""
    return isinstance(value, (Numbers, Cards))


def numbers_of(value: ColumnValue) -> ColumnValue:
    """Return lists that are dictionary encoded as a matrix, and anything else as it is."""
    if not isinstance(value, Coded) or not all(each.__class__ in (tuple, list) for each in value.values):
        return value
    lists: Sequence[Sequence[Any]] = value.values
    kinds = {item.__class__ for each in lists for item in each}
    width = max(map(len, lists), default=0)
    if len(kinds) > 1 or not kinds <= PLAIN.keys() or width > MAX_WIDTH:
        return value
    cells = np.zeros((len(lists), width), PLAIN[kinds.pop()] if kinds else np.int64)
    for row, each in enumerate(lists):
        cells[row, : len(each)] = each
    sizes = np.array([len(each) for each in lists], np.int64)
    return Numbers(cells[value.codes], sizes[value.codes], value.bad)


def _filled(sizes: Array, width: int) -> Mask:
    """Return which cells of a matrix hold an item."""
    return np.arange(width) < sizes[:, None]


def _mask(numbers: Numbers) -> Mask:
    return _filled(numbers.sizes, numbers.values.shape[1])


def _compact(values: Array, kept: Mask) -> tuple[Array, Array]:
    """Move the kept items of each row to the left, and return how many there are."""
    sizes = kept.sum(axis=1)
    order = np.argsort(~kept, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), sizes


# ---- macros ------------------------------------------------------------------------------------------------


def over_numbers(
    macro: Macro,
    value: Numbers | Cards,
    slots: tuple[int, ...],
    where: ColumnClosure | None,
    body: ColumnClosure,
    batch: Batch,
) -> ColumnValue:
    """Evaluate a macro over lists that differ from row to row."""
    if where is not None:
        raise NotColumnar
    sizes = value.sizes if isinstance(value, Numbers) else value.table.sizes[value.rows]
    bad = value.bad if isinstance(value, Numbers) else None
    width = int(sizes.max(initial=0))
    owners, places = _filled(sizes, width).nonzero()
    if not len(owners):
        return _of_nothing(macro, len(batch), bad)
    inner = batch.part(owners)
    if isinstance(value, Numbers):
        inner.columns[slots[-1]] = Column(value.values[owners, places])
    else:
        inner.columns[slots[-1]] = Cards(value.table, value.rows[owners], places)
    if len(slots) == 2:
        inner.columns[slots[0]] = Column(places)
    before = batch.frame[-1].left
    result = body(inner)
    # A row pays for each of its items, as in the scalar back end.
    batch.spend(width + (width - 1) * (before - batch.frame[-1].left))
    cells, failed = spread(result, len(owners), np.bool_ if macro in _CONDITIONS else None)
    if failed is not None and failed.any():
        bad = either(bad, np.bincount(owners[failed], minlength=len(batch)) > 0)
    if macro is not Macro.FILTER and macro in _CONDITIONS:
        count = np.bincount(owners[cells], minlength=len(batch))
        if macro is Macro.ALL:
            return Column(count == sizes, bad)
        return Column(count == 1 if macro is Macro.EXISTS_ONE else count > 0, bad)
    made = np.zeros((len(batch), width), cells.dtype)
    made[owners, places] = cells
    if macro is not Macro.FILTER:
        return Numbers(made, sizes, bad)
    if not isinstance(value, Numbers):
        raise NotColumnar
    return Numbers(*_compact(value.values[:, :width], made), bad)


_CONDITIONS: Final = frozenset((Macro.ALL, Macro.EXISTS, Macro.EXISTS_ONE, Macro.FILTER))


def _of_nothing(macro: Macro, rows: int, bad: Bad) -> ColumnValue:
    """Return a macro over lists all of which are empty."""
    if macro in (Macro.ALL, Macro.EXISTS, Macro.EXISTS_ONE):
        return Column(np.full(rows, macro is Macro.ALL), bad)
    return Numbers(np.zeros((rows, 0), np.int64), np.zeros(rows, np.int64), bad)


# ---- functions ---------------------------------------------------------------------------------------------


def _numbers(value: ColumnValue) -> Numbers:
    if not isinstance(value, Numbers):
        raise NotColumnar
    return value


def _size(rows: int, args: list[ColumnValue]) -> ColumnValue:
    value = args[0]
    if isinstance(value, Cards):
        return Column(value.table.sizes[value.rows])
    numbers = _numbers(value)
    return Column(numbers.sizes, numbers.bad)


def _by_items(overload: str) -> Kernel:
    """Return a function of a list as that of the columns of its matrix."""
    kernel = CALLS[overload]

    def call(rows: int, args: list[ColumnValue]) -> ColumnValue:
        numbers = _numbers(args[0])
        columns = zip(numbers.values.T, _mask(numbers).T, strict=True)
        entries = [PresentItem(at, Column(cells), held) for at, (cells, held) in enumerate(columns)]
        return kernel(rows, [Items(tuple(entries), False, numbers.bad)])

    return call


def _index(rows: int, args: list[ColumnValue]) -> ColumnValue:
    numbers = _numbers(args[0])
    index, bad = spread(args[1], rows, np.int64)
    if not numbers.values.shape[1]:
        raise AllBad
    outside = (index < 0) | (index >= numbers.sizes)
    places = np.where(outside, 0, index)
    return Column(
        numbers.values[np.arange(rows), places],
        either(numbers.bad, bad, outside if outside.any() else None),
    )


def _index_of(rows: int, args: list[ColumnValue]) -> Column:
    numbers = _numbers(args[0])
    item, bad = spread(args[1], rows, numbers.values.dtype)
    found = (numbers.values == item[:, None]) & _mask(numbers)
    place = found.argmax(axis=1) if found.shape[1] else np.zeros(rows, np.int64)
    return Column(np.where(found.any(axis=1), place, -1), either(numbers.bad, bad))


def _in(rows: int, args: list[ColumnValue]) -> ColumnValue:
    place = _index_of(rows, args[::-1])
    return Column(place.values >= 0, place.bad)


def _slice(rows: int, args: list[ColumnValue]) -> ColumnValue:
    numbers, start, end = _numbers(args[0]), args[1], args[2]
    if not isinstance(start, Same) or not isinstance(end, Same) or not 0 <= start.value <= end.value:
        raise NotColumnar
    short = numbers.sizes < end.value
    size = end.value - start.value
    return Numbers(
        numbers.values[:, start.value : end.value],
        np.full(rows, size) if not short.any() else np.where(short, 0, size),
        either(numbers.bad, short if short.any() else None),
    )


def _distinct(rows: int, args: list[ColumnValue]) -> ColumnValue:
    numbers = _numbers(args[0])
    values, mask = numbers.values, _mask(numbers)
    if values.dtype == np.float64:
        raise NotColumnar
    same = values[:, :, None] == values[:, None, :]
    earlier = np.tri(values.shape[1], k=-1, dtype=np.bool_)
    return Numbers(*_compact(values, mask & ~(same & earlier).any(axis=2)), numbers.bad)


def _sort(rows: int, args: list[ColumnValue]) -> ColumnValue:
    numbers = _numbers(args[0])
    if numbers.values.dtype != np.int64:
        raise NotColumnar
    mask = _mask(numbers)
    ordered = np.sort(np.where(mask, numbers.values, np.iinfo(np.int64).max), axis=1)
    return Numbers(np.where(mask, ordered, 0), numbers.sizes, numbers.bad)


def _range(rows: int, args: list[ColumnValue]) -> ColumnValue:
    sizes, bad = spread(args[0], rows, np.int64)
    width = int(sizes.max(initial=0))
    if width > MAX_WIDTH or sizes.min(initial=0) < 0:
        raise NotColumnar
    return Numbers(np.where(_filled(sizes, width), np.arange(width), 0), sizes, bad)


_REDUCTIONS: Final = ("sum_int", "sum_double", "min_int", "min_double", "max_int", "max_double")

NUMBERS: Final[Mapping[str, Kernel]] = {
    **dict.fromkeys(("list_size", "size_list"), _size),
    **{f"list_{name}": _by_items(f"list_{name}") for name in _REDUCTIONS},
    "index_list": _index,
    "list_index_of": _index_of,
    "in_list": _in,
    "list_slice": _slice,
    "list_distinct_int": _distinct,
    "list_sort_int": _sort,
}
"""Functions of lists of numbers by overload id, where some argument is such a list."""

MAKERS: Final[Mapping[str, Kernel]] = {"lists_range": _range}
"""Functions that make lists of numbers of columns."""


# ---- typical pods ------------------------------------------------------------------------------------------

CardMeasure = Callable[..., NDArray[np.float64]]
"""Measures nodes by their free CPU, free parts of cards, the codes of their models, the models, and any
further arguments.
"""

MEASURES: Final[Mapping[str, Callable[[Sequence[Any]], CardMeasure]]] = {
    "fragmentation": lambda typical: Fragmentation.of(typical).of_all,
    "room": lambda typical: Room.of(typical).of_all,
}
"""The functions of typical pods and the free cards of a node."""


def over_cards(function: str, args: Sequence[ColumnClosure]) -> ColumnClosure:
    """Return a function of `MEASURES` for each row, from the operands of its arguments."""
    measure_of = MEASURES[function]

    def evaluate(batch: Batch) -> ColumnValue:
        typical, cpu, free, model, *others = [arg(batch) for arg in args]
        free = numbers_of(free)
        further = [other.value for other in others if isinstance(other, Same)]
        if not isinstance(typical, Same) or not isinstance(free, Numbers) or len(further) < len(others):
            raise NotColumnar
        rows = len(batch)
        milli, bad = spread(cpu, rows, np.int64)
        match model:
            case Coded(codes=codes, values=models, bad=unknown):
                bad = either(bad, unknown)
            case Same(value=str(only)):
                codes, models = np.zeros(rows, np.intp), [only]
            case _:
                raise NotColumnar
        batch.spend(len(typical.value) + free.values.shape[1])
        parts = np.where(_mask(free), free.values, 0)
        known = [each if isinstance(each, str) else "" for each in models]
        found = measure_of(typical.value)(milli, parts, codes, known, *further)
        return Column(found, either(bad, free.bad))

    return evaluate
