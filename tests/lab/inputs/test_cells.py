"""Cells of each type against values worked out by hand."""

from __future__ import annotations

import pytest
from kdsl.base.span import Source, Span
from kdsl.eval.values import Timestamp
from kdsl.lab.inputs.cells import Column, ColumnType, RowError, Unit, reader_of, shown

SPAN = Span(Source("mapping.yaml", ""), 0, 0)


def _read(kind: ColumnType, text: str, **more: object) -> object:
    return reader_of(Column("c", kind, SPAN, "c", **more))(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ColumnType.TEXT, "", ""),
        (ColumnType.TEXT, " é\0", " é\0"),
        (ColumnType.INT, "-17", -17),
        (ColumnType.INT, "9223372036854775807", 2**63 - 1),
        (ColumnType.INT, "3.0", 3),
        (ColumnType.FLOAT, ".5", 0.5),
        (ColumnType.FLOAT, "29.296875", 29.296875),
        (ColumnType.FLOAT, "1e3", 1000.0),
        (ColumnType.BOOL, "True", True),
        (ColumnType.BOOL, "0", False),
        (ColumnType.TIME, "1970-01-02", 86_400 * 10**9),
        (ColumnType.TIME, "1970-01-01 00:00:01.5", 1_500_000_000),
        (ColumnType.TIME, "1970-01-01T01:00:00+01:00", 0),
    ],
)
def test_a_cell_becomes_a_value(kind: ColumnType, text: str, value: object) -> None:
    assert _read(kind, text) == value


@pytest.mark.parametrize(
    ("unit", "text", "nanoseconds"),
    [
        (Unit.S, "1739162.0", 1_739_162 * 10**9),
        (Unit.S, "0.1", 10**8),
        (Unit.MS, "5", 5_000_000),
        (Unit.US, "600000000", 600 * 10**9),
        (Unit.NS, "9007199254740993", 9_007_199_254_740_993),
        (Unit.S, "-1", -(10**9)),
    ],
)
def test_times_are_exact_numbers_of_a_unit(unit: Unit, text: str, nanoseconds: int) -> None:
    assert _read(ColumnType.TIME, text, unit=unit) == nanoseconds


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ColumnType.INT, ""),
        (ColumnType.INT, "1.5"),
        (ColumnType.INT, "9223372036854775808"),
        (ColumnType.INT, "٣"),
        (ColumnType.INT, "1_000"),
        (ColumnType.INT, "9" * 5000),
        (ColumnType.FLOAT, "nan"),
        (ColumnType.FLOAT, "inf"),
        (ColumnType.FLOAT, "1e999"),
        (ColumnType.FLOAT, "0x10"),
        (ColumnType.BOOL, "yes"),
        (ColumnType.TIME, "0000-01-01"),
        (ColumnType.TIME, "tomorrow"),
        (ColumnType.TIME, ""),
        (ColumnType.TEXT, "\udcff"),
    ],
)
def test_other_cells_are_errors_of_the_column(kind: ColumnType, text: str) -> None:
    with pytest.raises(RowError) as error:
        _read(kind, text)
    assert error.value.place == "c"


@pytest.mark.parametrize("text", ["1e400", "9223372036854775807", "1e19", "-1e12"])
def test_numbers_beyond_the_years_are_no_times(text: str) -> None:
    with pytest.raises(RowError, match="is not a time in s"):
        _read(ColumnType.TIME, text, unit=Unit.S)


def test_an_empty_cell_of_an_optional_column_has_no_value() -> None:
    assert _read(ColumnType.FLOAT, "", is_optional=True) is None
    assert _read(ColumnType.TEXT, "NA", is_optional=True, empty=frozenset({"NA"})) is None
    assert _read(ColumnType.TEXT, "", is_optional=True, empty=frozenset({"NA"})) == ""
    # An optional time is wrapped, since the language unwraps it.
    assert _read(ColumnType.TIME, "2", is_optional=True, unit=Unit.S) == Timestamp(2 * 10**9)


def test_an_empty_cell_of_another_column_is_an_error() -> None:
    with pytest.raises(RowError, match="not optional"):
        _read(ColumnType.TEXT, "NA", empty=frozenset({"NA"}))


def test_messages_show_cells_short_and_printable() -> None:
    assert shown("a\0b\x1b[31m") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[31m"
    assert shown("x" * 1000) == "x" * 60 + "…"
