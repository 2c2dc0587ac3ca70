"""Values of expressions for many nodes at once.

The value of an expression for the rows of a batch is one of these:

| class | holds |
|---|---|
| `Same` | one value that all rows share |
| `Column` | bool, int64 or float64, or quantities as int64, one per row |
| `Coded` | any values, dictionary encoded: few distinct ones, one code per row |
| `Numbers` | lists of numbers, one per row |
| `Cards` | the cards of each row, or one of them |
| `Items` | a list or map whose entries are the same for all rows but may be absent in some |
| `ResourceTable` | the resources of all nodes, to be indexed by name |

`bad` marks the rows without an answer: the expression fails there, or its value does not fit the class. The
scalar back end evaluates those rows, so an error has one text and one meaning. `bad` is None if no row is
bad. The value in a bad row is arbitrary.

These values are structs, not dataclasses: an attempt makes hundreds of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kdsl.base.extremes import largest_of, least_of
from kdsl.check.model.types import BOOL, DOUBLE, INT, Type
from kdsl.eval.values import EvalError, Value
from kdsl.plan.card_table import CardTable

if TYPE_CHECKING:
    from kdsl.plan.columns.node_items import ListItems

Mask: TypeAlias = NDArray[np.bool_]
Bad: TypeAlias = Mask | None
Array: TypeAlias = NDArray[Any]
Int64s: TypeAlias = NDArray[np.int64]

_MOST_TABLED: Final = 4096
"""The largest range of integers whose distinct ones are found by a table."""

DTYPES: Final[dict[Type, Any]] = {BOOL: np.bool_, INT: np.int64, DOUBLE: np.float64}
"""The types with their own arrays."""

PLAIN: Final[dict[type, Any]] = {bool: np.bool_, int: np.int64, float: np.float64}
"""The type of array for values of a class."""


class NotColumnar(Exception):  # noqa: N818 - control flow, not an error
    """An expression has no column form; the expression around it is evaluated row by row."""


class ColumnsOutOfSteps(NotColumnar):
    """The meter ran out; the scalar back end, with a meter per row, finds the rows that really ran out."""


class AllBad(Exception):  # noqa: N818 - control flow, not an error
    """An expression is bad for every row of the batch."""


class Same(Struct, frozen=True, eq=False):
    value: Value


class Column(Struct, frozen=True, eq=False):
    """With a `scale` the values are quantities: multiples of `1/scale`."""

    values: Array
    bad: Bad = None
    scale: int = 0


class Coded(Struct, frozen=True, eq=False):
    """Row `i` has the value `values[codes[i]]`. An unused code may have any value."""

    codes: NDArray[np.integer[Any]]
    values: Sequence[Value]
    bad: Bad = None


class Objects(Coded, frozen=True, eq=False, kw_only=True):
    """Coded objects of which `read` returns an attribute of all `values` at once; None if it cannot."""

    read: Callable[[str], Column | Coded | None]


class PresentItem(Struct, frozen=True, eq=False):
    """One item of a list or entry of a map; `present` is None if all rows have it."""

    key: Value
    value: ColumnValue
    present: Bad


class Items(Struct, frozen=True, eq=False):
    """`is_map` distinguishes keys from positions. `bad` marks rows whose entries are unknown."""

    entries: tuple[PresentItem, ...]
    is_map: bool
    bad: Bad = None


class ResourceTable(Struct, frozen=True, eq=False):
    """`read` returns the amounts of a resource, in its canonical unit."""

    read: Callable[[str], Int64s]


class CodedLists(Struct, frozen=True, eq=False):
    """One list per row: list `codes[i]` of a column, restricted to the `kept` items (None: all)."""

    codes: NDArray[np.integer[Any]]
    lists: ListItems
    kept: Bad = None

    def count(self, chosen: Mask) -> Int64s:
        """Return the number of chosen items by row."""
        return self.lists.count(chosen if self.kept is None else chosen & self.kept).take(self.codes)


class Numbers(Struct, frozen=True, eq=False):
    """A list of bools, int64s or float64s of each row: the first `sizes[i]` cells of row `i` of a matrix."""

    values: Array
    sizes: Int64s
    bad: Bad = None


class Cards(Struct, frozen=True, eq=False):
    """The cards of row `rows[i]` of the snapshot for each row; with `places` one of them."""

    table: CardTable
    rows: NDArray[np.integer[Any]]
    places: NDArray[np.integer[Any]] | None = None


ColumnValue: TypeAlias = Same | Column | Coded | Items | ResourceTable | CodedLists | Numbers | Cards

GOOD: Final = (Same, ResourceTable, CodedLists, Cards)
"""Values that no row is bad of."""


def either(*masks: Bad) -> Bad:
    """Return the rows that any of the masks marks."""
    result: Bad = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result | mask
    return result


def rows_of(mask: Mask) -> Array:
    """Return the places at which a mask is true."""
    return mask.nonzero()[0]


def bad_of(value: ColumnValue) -> Bad:
    """Return the bad rows of a value."""
    return None if isinstance(value, GOOD) else value.bad


def with_bad(value: ColumnValue, bad: Bad) -> ColumnValue:
    """Return a value that is bad in these rows as well; NotColumnar if its class cannot be."""
    if bad is None:
        return value
    if isinstance(value, Same):
        # The rows that are not bad share it.
        if value.value.__class__ in PLAIN:
            return Column(np.full(len(bad), value.value), bad)
        return Coded(np.zeros(len(bad), np.int64), [value.value], bad)
    if isinstance(value, GOOD):
        raise NotColumnar
    return replace(value, bad=either(value.bad, bad))


def spread(value: ColumnValue, rows: int, dtype: Any) -> tuple[Array, Bad]:
    """Return a bool, int or double as an array with one element per row; `dtype` None takes any of them.
    NotColumnar for other values.
    """
    found: Array
    bad: Bad = None
    match value:
        case Column(values=found, bad=bad, scale=0):
            pass
        case Same(value=only) if only.__class__ in PLAIN:
            found = np.full(rows, only, dtype=PLAIN[only.__class__])
        case _:
            raise NotColumnar
    if dtype is not None and found.dtype != dtype:
        raise NotColumnar
    return found, bad


def operand(value: ColumnValue, dtype: Any) -> tuple[Array, Bad]:
    """Return a bool, int or double for arithmetic: an array, or one number that all rows share. NotColumnar
    for other values or types.
    """
    match value:
        case Column(values=found, bad=bad, scale=0) if found.dtype == dtype:
            return found, bad
        case Same(value=only) if PLAIN.get(only.__class__) is dtype:
            return cast(Array, only), None
    raise NotColumnar


def decoded(
    codes: NDArray[np.integer[Any]], values: Sequence[Value], type_: Type, bad: Bad = None
) -> Column | Coded:
    """Return a column of values of a type: row `i` has value `codes[i]`. Unused and bad codes
    may have None.
    """
    dtype = DTYPES.get(type_)
    if dtype is None:
        return Coded(codes, values, bad)
    return Column(np.array([0 if value is None else value for value in values], dtype)[codes], bad)


def of_results(
    results: Sequence[Value | EvalError], type_: Type, codes: NDArray[np.integer[Any]]
) -> ColumnValue:
    """Return a column of scalar results: row `i` has result `codes[i]`. AllBad if all are errors."""
    failed = np.array([isinstance(result, EvalError) for result in results], dtype=np.bool_)
    if not failed.any():
        return decoded(codes, results, type_)
    if failed.all():
        raise AllBad
    values = [None if out else value for value, out in zip(results, failed, strict=True)]
    return decoded(codes, values, type_, failed[codes])


def encoded(value: ColumnValue) -> Coded:
    """Return the dictionary-encoded form of a column; NotColumnar if it has none."""
    if isinstance(value, Coded):
        return value
    if not isinstance(value, Column) or value.scale:
        raise NotColumnar
    values, codes = _distinct(value.values)
    return Coded(codes, values.tolist(), value.bad)


def _distinct(values: Array) -> tuple[Array, Array]:
    """Return the distinct values, and the place of each value among them."""
    if type(values) is np.ndarray and values.dtype == np.int64 and values.size:
        least = least_of(values)
        span = largest_of(values) - least + 1
        if span <= _MOST_TABLED:
            # Sorting takes several times as long.
            offsets = values - least
            present = np.bincount(offsets).nonzero()[0]
            places = np.zeros(span, np.intp)
            places[present] = np.arange(len(present))
            return present + least, places.take(offsets)
    # Doubles are distinguished by their bits: -0.0 is not 0.0.
    plain = values.view(np.int64) if values.dtype == np.float64 else values
    distinct, codes = np.unique(plain, return_inverse=True)
    return distinct.view(values.dtype), codes


def take(value: ColumnValue, index: Array) -> ColumnValue:
    """Return the value for some of its rows."""

    def part(bad: Bad) -> Bad:
        return None if bad is None else bad[index]

    match value:
        case Column(values=values, bad=bad, scale=scale):
            return Column(values[index], part(bad), scale)
        case Coded(codes=codes, bad=bad):
            return replace(value, codes=codes[index], bad=part(bad))
        case Items(entries=entries, is_map=is_map, bad=bad):
            taken = (PresentItem(one.key, take(one.value, index), part(one.present)) for one in entries)
            return Items(tuple(taken), is_map, part(bad))
        case ResourceTable(read=read):
            return ResourceTable(lambda name: read(name)[index])
        case CodedLists(codes=codes, lists=lists, kept=kept):
            return CodedLists(codes[index], lists, kept)
        case Numbers(values=values, sizes=sizes, bad=bad):
            return Numbers(values[index], sizes[index], part(bad))
        case Cards(table=table, rows=rows, places=places):
            return Cards(table, rows[index], None if places is None else places[index])
    return value
