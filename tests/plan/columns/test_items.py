"""Functions of lists and maps over columns return, for every row, the value for the row's list or map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.eval.functions import IMPLEMENTATIONS
from kdsl.eval.values import INT_MAX, EvalError, Value
from kdsl.plan.columns.column import (
    AllBad,
    Bad,
    Coded,
    Column,
    ColumnValue,
    Items,
    NotColumnar,
    PresentItem,
    Same,
)
from kdsl.plan.columns.items import CALLS

ROWS = 4
INTS = st.one_of(st.integers(-3, 3), st.sampled_from([INT_MAX, INT_MAX - 1]))
DOUBLES = st.integers(-4, 4).map(lambda each: each / 2)
MASKS = st.one_of(st.none(), st.lists(st.booleans(), min_size=ROWS, max_size=ROWS).map(np.array))


@st.composite
def columns(draw: st.DrawFn, numbers: st.SearchStrategy[Value], dtype: Any) -> ColumnValue:
    """Values of all rows, or one that they share."""
    if draw(st.booleans()):
        return Same(draw(numbers))
    return Column(np.array(draw(st.lists(numbers, min_size=ROWS, max_size=ROWS)), dtype))


@st.composite
def items(draw: st.DrawFn, is_map: bool, numbers: st.SearchStrategy[Value], dtype: Any) -> Items:
    size = draw(st.integers(0, 3))
    entries = [
        PresentItem("kji"[at] if is_map else at, draw(columns(numbers, dtype)), draw(MASKS))
        for at in range(size)
    ]
    return Items(tuple(entries), is_map, draw(MASKS))


def is_set(mask: Bad, row: int) -> bool:
    return mask is not None and bool(mask[row])


def value_at(value: ColumnValue, row: int) -> Value:
    """Return the value of a row: of a list or map, the present items."""
    match value:
        case Same(value=only):
            return only
        case Column(values=values):
            return values[row].item()
        case Coded(codes=codes, values=known):
            return known[codes[row]]
        case Items(entries=entries, is_map=is_map):
            here = {
                each.key: value_at(each.value, row)
                for each in entries
                if each.present is None or each.present[row]
            }
            return here if is_map else tuple(here.values())
    raise AssertionError(value)


def bad_at(value: ColumnValue, row: int) -> bool:
    return not isinstance(value, Same) and is_set(value.bad, row)  # type: ignore[union-attr]


def expected(name: str, args: Sequence[ColumnValue], row: int) -> Value:
    """Return the value of a row by the scalar back end; EvalError if an argument is bad there."""
    if any(bad_at(arg, row) for arg in args):
        return EvalError("bad")
    try:
        return IMPLEMENTATIONS[name](*(value_at(arg, row) for arg in args))
    except EvalError as error:
        return error


def check(name: str, *args: ColumnValue) -> None:
    """Hold a function over columns to the scalar back end, row by row."""
    wanted = [expected(name, args, row) for row in range(ROWS)]
    try:
        with np.errstate(all="ignore"):
            found = CALLS[name](ROWS, list(args))
    except AllBad:
        assert all(isinstance(each, EvalError) for each in wanted)
        return
    for row, each in enumerate(wanted):
        assert bad_at(found, row) == isinstance(each, EvalError), (row, found)
        if not isinstance(each, EvalError):
            value = value_at(found, row)
            assert (type(value), value) == (type(each), each)


@settings(deadline=None, max_examples=60)
@given(items(False, INTS, np.int64), items(False, DOUBLES, np.float64), st.integers(-1, 3))
def test_lists(ints: Items, doubles: Items, index: int) -> None:
    check("list_size", ints)
    check("list_sum_double", doubles)
    check("list_sum_int", ints)
    for name in ("list_min", "list_max"):
        check(f"{name}_int", ints)
        check(f"{name}_double", doubles)
    for each in (ints, doubles):
        check("index_list", each, Same(index))


CONSTANTS = st.one_of(
    st.lists(INTS, max_size=3),
    st.lists(DOUBLES, min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
    st.lists(st.tuples(INTS, DOUBLES), min_size=1, max_size=3),
)


@settings(deadline=None, max_examples=60)
@given(
    CONSTANTS, st.lists(st.one_of(st.integers(-1, 3), st.just(INT_MAX)), min_size=ROWS, max_size=ROWS), MASKS
)
def test_the_item_at_the_position_of_each_row(constants: list[Value], places: list[int], bad: Bad) -> None:
    check("index_list", Same(tuple(constants)), Column(np.array(places, np.int64), bad))


@settings(deadline=None, max_examples=60)
@given(items(True, INTS, np.int64))
def test_maps(entries: Items) -> None:
    check("map_size", entries)


CODES = np.array([0, 1, 2, 1])
PART = np.array([True, False, False, False])
MEMBERS = [
    (Column(np.array([1, 2, 3, 4])), (1, 4)),
    (Column(np.array([1, 2, 3, 4]), PART), (1, 4)),
    (Column(np.array([1, 2, 3, 4])), ()),
    (Column(np.array([0.5, 1.5, 2.5, 3.5])), (0.5, 2.5)),
    (Coded(CODES, ["a", "b", "c"]), ("b", "x")),
    (Coded(CODES, [None, "b", "c"], PART), ("b", "x")),
    (Coded(CODES, ["a", "b", "c"]), ("b", 1)),
]


@pytest.mark.parametrize(("value", "known"), MEMBERS)
def test_membership(value: ColumnValue, known: tuple[Value, ...]) -> None:
    check("in_list", value, Same(known))


NO_FORM: Mapping[str, tuple[ColumnValue, ...]] = {
    "list_size": (Same((1, 2)),),
    "list_sum_int": (Same((1, 2)),),
    "index_list": (Items((PresentItem(0, Same(1), None),), False), Column(np.zeros(ROWS, np.int64))),
    "in_list": (Coded(CODES, ["a", 1, "b"]), Same(("a", 1))),
}
"""Arguments that a function has no form for: a whole value where entries are wanted, an index per row, numbers
among strings.
"""


@pytest.mark.parametrize("name", NO_FORM)
def test_calls_without_a_form_are_left_to_the_scalar_back_end(name: str) -> None:
    with pytest.raises(NotColumnar):
        CALLS[name](ROWS, list(NO_FORM[name]))


def test_each_argument_has_to_have_a_form() -> None:
    whole = Column(np.zeros(ROWS, np.int64))
    with pytest.raises(NotColumnar):
        CALLS["index_list"](ROWS, [whole, Same(0)])
    with pytest.raises(NotColumnar):
        CALLS["in_list"](ROWS, [whole, whole])
    with pytest.raises(NotColumnar):
        CALLS["in_list"](ROWS, [Same(1), Same((1,))])
    # An index that is no int has an error of its own, with the text of the scalar back end.
    with pytest.raises(NotColumnar):
        CALLS["index_list"](ROWS, [Items((), False), Same(True)])
