"""Columns of a table: the types of their cells, and the text of a cell as a value of the rule language."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from math import isfinite
from typing import Final

from kdsl.base.span import Span
from kdsl.base.times import SECOND, TIMESTAMP_MAX, TIMESTAMP_MIN
from kdsl.check.model.types import BOOL, DOUBLE, INT, STRING, TIMESTAMP, Type, optional_of
from kdsl.eval.values import INT_MAX, INT_MIN, Timestamp, Value

NO_TEXT: Final = frozenset({""})
"""The cells that are empty unless a column lists others."""
MAX_SHOWN: Final = 60
"""The number of characters of a cell that a message shows."""

_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,19}", re.ASCII)
_POINT_ZERO: Final = re.compile(r"([-+]?[0-9]{1,15})\.0+", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?", re.ASCII)
_LONGEST_NUMBER: Final = 64
_BOOLS: Final = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ColumnType(StrEnum):
    """The types of columns. `count` is the number of values that a path of a JSON row leads to."""

    TEXT = "text"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TIME = "time"
    COUNT = "count"


class Unit(StrEnum):
    """The units of times that are numbers: they count from the Unix epoch, or from any other start."""

    S = "s"
    MS = "ms"
    US = "us"
    NS = "ns"


_TYPES: Final = {
    ColumnType.TEXT: STRING,
    ColumnType.INT: INT,
    ColumnType.FLOAT: DOUBLE,
    ColumnType.BOOL: BOOL,
    ColumnType.TIME: TIMESTAMP,
    ColumnType.COUNT: INT,
}
_SCALES: Final = {Unit.S: SECOND, Unit.MS: SECOND // 1000, Unit.US: 1000, Unit.NS: 1}
_MEANS: Final = {
    ColumnType.INT: "a whole number",
    ColumnType.FLOAT: "a number",
    ColumnType.BOOL: "`true` or `false`",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `name` in expressions, and `source` in the file, a path such as `attempts.0.start` in JSON.

    A cell of `empty` has no value: an optional column is `none` there, for any other it is an error (but for
    text, where `""` is a value). `unit` is that of times that are numbers; other times are ISO 8601.
    """

    name: str
    kind: ColumnType
    span: Span
    source: str
    is_optional: bool = False
    unit: Unit | None = None
    empty: frozenset[str] = NO_TEXT

    @property
    def type(self) -> Type:
        """The type of the column in expressions."""
        return optional_of(self.item_type) if self.is_optional else self.item_type

    @property
    def item_type(self) -> Type:
        """The type of the value of a cell that is not empty."""
        return _TYPES[self.kind]

    @property
    def means(self) -> str:
        """The condition on a cell, in words."""
        if self.kind is ColumnType.TIME:
            return "an ISO 8601 time" if self.unit is None else f"a time in {self.unit}"
        return _MEANS[self.kind]


class RowError(Exception):
    """A row cannot be used. `reason` is the message without the values of the row: rows are counted by it."""

    def __init__(self, place: str, title: str, reason: str = "") -> None:
        super().__init__(title)
        self.place = place
        self.title = title
        self.reason = reason or title


def shown(text: str) -> str:
    """Return a cell for a message: short, and without control characters."""
    short = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in short)


def reader_of(column: Column) -> Callable[[str], Value]:
    """Return the function from a cell of a column to its value, as the object of a row holds it.

    A time is a number of nanoseconds, or a `Timestamp` where it is optional; an empty cell is None. The
    function raises RowError for any other cell.
    """
    convert, empty, name = _converter(column), column.empty, column.source
    is_text, may_lack = column.kind is ColumnType.TEXT, column.is_optional
    wrap = Timestamp if column.kind is ColumnType.TIME and may_lack else None

    def read(text: str) -> Value:
        if text in empty and (may_lack or not is_text or text):
            if may_lack:
                return None
            raise RowError(name, "the cell is empty, and the column is not optional")
        value = convert(text)
        if value is None:
            reason = f"the cell is not {column.means}"
            raise RowError(name, f"`{shown(text)}` is not {column.means}", reason)
        return value if wrap is None else wrap(value)

    if is_text:
        return lambda text: _utf8(read(text), name)
    return read


def _utf8(text: str | None, name: str) -> str | None:
    """Refuse bytes that are no UTF-8, which the reader of the file keeps as lone surrogates."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RowError(name, "the cell is not UTF-8 text") from None
    return text


def _converter(column: Column) -> Callable[[str], Value]:
    match column.kind:
        case ColumnType.TEXT:
            return str
        case ColumnType.INT | ColumnType.COUNT:
            return _int
        case ColumnType.FLOAT:
            return _float
        case ColumnType.BOOL:
            return _BOOLS.get
        case ColumnType.TIME if column.unit is not None:
            scale = _SCALES[column.unit]
            return lambda text: _number_of_time(text, scale)
        case ColumnType.TIME:
            return _time


def _int(text: str) -> int | None:
    """Return a whole number; `3.0` is one, too, since tables with empty cells are often written so."""
    if not _WHOLE.fullmatch(text):
        match = _POINT_ZERO.fullmatch(text)
        return None if match is None else int(match[1])
    value = int(text)
    return value if INT_MIN <= value <= INT_MAX else None


def _float(text: str) -> float | None:
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if isfinite(value) else None


def _number_of_time(text: str, scale: int) -> int | None:
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    if _WHOLE.fullmatch(text):
        value = int(text) * scale
    else:
        number = Decimal(text)
        # A large exponent would make a number of a thousand digits; the year 9999 has 21 in nanoseconds.
        if number.adjusted() > 21:
            return None
        value = int(number * scale)
    return value if TIMESTAMP_MIN <= value <= TIMESTAMP_MAX else None


def _time(text: str) -> int | None:
    """Return the nanoseconds of an ISO 8601 time; one without a zone is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) < len("2026-11-01"):
        return None
    passed = (time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - _EPOCH
    value = ((passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds) * 1000
    return value if TIMESTAMP_MIN <= value <= TIMESTAMP_MAX else None
