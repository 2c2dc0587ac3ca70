"""The rows of a table, one at a time: CSV files and JSON lines, packed with gzip or not.

A row is in memory alone, and its size is bounded, so that a table may be larger than the memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.errors import reason_of
from kdsl.base.file_policy import open_written
from kdsl.base.span import Span
from kdsl.base.undecodable import json_mistake
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems
from kdsl.lab.inputs.cells import Column, ColumnType, RowError

MAX_ROW: Final = 2**20
"""The largest number of characters of a row."""
MAX_LINES: Final = 200_000_000
"""The largest number of lines of a table: a small packed file may stand for any number of them."""
MAX_DOCUMENT: Final = 2**30
"""The largest size in bytes of a file that is one JSON list."""

JSON_SUFFIXES: Final = (".json", ".jsonl", ".ndjson")
EVERY: Final = "*"
_DELIMITERS: Final = ",;\t|"

_GZIP_MAGIC: Final = b"\x1f\x8b"

Lines = Generator[tuple[int, Any], None, None]
"""The rows of a table, each with its line."""
Cell = Callable[[Any], str]
"""Returns the text of a cell of a row; "" where the row has none. Raises RowError."""


class _BrokenError(Exception):
    """The rest of a table cannot be read."""


@dataclass(frozen=True, slots=True)
class Table:
    """A file with rows, `file` relative to `folder`. `header` are the names of its columns; None: they are in
    its first row. `span` is the place that names the file.
    """

    folder: Path
    file: str
    span: Span
    columns: tuple[Column, ...] = ()
    header: tuple[str, ...] | None = None
    delimiter: str = ","

    @property
    def path(self) -> Path:
        return self.folder / self.file

    @property
    def is_json(self) -> bool:
        return self.file.removesuffix(".gz").endswith(JSON_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of an open table: each with its line, and the functions to the text of each column."""

    cells: tuple[Cell, ...]
    lines: Lines


@contextmanager
def open_rows(table: Table, found: list[Diagnostic]) -> Iterator[Rows | None]:
    """Open a table. None, with the reasons in `found`, where it cannot be opened or lacks a column.

    An error that makes the rest unreadable ends the rows, and is in `found`, too.
    """
    try:
        file = open_written(table.folder, table.file)
    except (OSError, ValueError) as error:
        title = f"cannot read `{table.file}`: {reason_of(error)}"
        found.append(Diagnostic(InputCode.UNREADABLE, title, table.span))
        yield None
        return
    with file, _unpacked(file) as data:
        rows = _json_rows(table, data, found) if table.is_json else _csv_rows(table, data, found)
        try:
            yield rows
        finally:
            if rows is not None:
                rows.lines.close()


def _unpacked(file: BinaryIO) -> BinaryIO:
    packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[return-value]


def _guarded(table: Table, lines: Iterator[tuple[int, Any]], found: list[Diagnostic]) -> Lines:
    """Yield rows; an error that ends the table becomes a diagnostic."""
    try:
        yield from lines
    except _BrokenError as error:
        Problems(found, str(table.path)).add(InputCode.TRACE, (), str(error))
    except (OSError, EOFError, zlib.error) as error:
        title = f"cannot unpack this file: {str(error).lower()}"
        Problems(found, str(table.path)).add(InputCode.UNREADABLE, (), title)


# ---- CSV ---------------------------------------------------------------------------------------------------


class _Lines:
    """The lines of a text for a CSV reader, with a limit for one row."""

    def __init__(self, data: BinaryIO) -> None:
        # Lone surrogates stand for bytes that are no UTF-8: the columns that are read refuse them.
        self._text = io.TextIOWrapper(data, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self.number = 0
        self.size = 0

    def release(self) -> None:
        """Leave the file to the code that opened it: without this, it would be closed with a warning."""
        self._text.detach()

    def __iter__(self) -> Iterator[str]:
        while line := self._text.readline(MAX_ROW + 1):
            self.number += 1
            self.size += len(line)
            if self.size > MAX_ROW:
                raise _BrokenError(f"the row at line {self.number} is longer than {MAX_ROW:,} characters")
            if self.number > MAX_LINES:
                raise _BrokenError(f"this table has more than {MAX_LINES:,} lines")
            yield line


def _csv_rows(table: Table, data: BinaryIO, found: list[Diagnostic]) -> Rows | None:
    lines = _guarded(table, _csv_lines(data, table.delimiter), found)
    header: Sequence[str] | None = table.header
    if header is None:
        header = next(lines, (0, None))[1]
    if header is None:
        if not found:
            title = "this table is empty: its first row names the columns"
            Problems(found, str(table.path)).add(InputCode.TRACE, (), title)
        return None
    if any("\0" in name for name in header):
        title = "this is no table of text: its first row has a null byte"
        Problems(found, str(table.path)).add(InputCode.TRACE, (), title)
        return None
    width = len(header)
    places = [_place(table, column, header, found) for column in table.columns]
    known = [place for place in places if place is not None]
    if len(known) < len(places):
        return None
    return Rows(tuple(_csv_cell(place, width) for place in known), lines)


def _csv_lines(data: BinaryIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    lines = _Lines(data)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        while True:
            first = lines.number + 1
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise _BrokenError(f"line {lines.number} is not CSV: {error}") from error
            if row is None:
                return
            lines.size = 0
            if row:
                yield first, row
    finally:
        lines.release()


def _csv_cell(place: int, width: int) -> Cell:
    def cell(row: list[str]) -> str:
        if len(row) != width:
            title = f"this row has {len(row)} fields, the header has {width}"
            raise RowError("", title, "the row has another number of fields than the header")
        return row[place]

    return cell


def _place(table: Table, column: Column, header: Sequence[str], found: list[Diagnostic]) -> int | None:
    """Return the place of a column in the header."""
    if header.count(column.source) == 1:
        return header.index(column.source)
    count = header.count(column.source)
    how = "no column" if count == 0 else f"{count} columns"
    help_ = did_you_mean(column.source, header) if count == 0 else ("give each column a name of its own",)
    if not help_:
        names = ", ".join(f"`{name}`" for name in header[:20])
        other = next((each for each in _DELIMITERS if len(header) == 1 and each in header[0]), None)
        cure = () if other is None else (f"write `delimiter: {json.dumps(other)}` if it parts the columns",)
        help_ = (f"its columns: {names}{', …' if len(header) > 20 else ''}", *cure)
    title = f"`{table.file}` has {how} `{column.source}`"
    found.append(Diagnostic(InputCode.TRACE, title, column.span, help=help_))
    return None


# ---- JSON --------------------------------------------------------------------------------------------------


def _json_rows(table: Table, data: BinaryIO, found: list[Diagnostic]) -> Rows:
    is_list = table.file.removesuffix(".gz").endswith(".json")
    lines = _guarded(table, _json_items(data) if is_list else _json_lines(data), found)
    return Rows(tuple(map(_json_cell, table.columns)), lines)


def _json_lines(data: BinaryIO) -> Iterator[tuple[int, Any]]:
    number = 0
    while line := data.readline(MAX_ROW + 1):
        number += 1
        if len(line) > MAX_ROW:
            raise _BrokenError(f"line {number} is longer than {MAX_ROW:,} bytes")
        if number > MAX_LINES:
            raise _BrokenError(f"this table has more than {MAX_LINES:,} lines")
        if line.strip():
            yield number, line.removeprefix(b"\xef\xbb\xbf")


def _json_items(data: BinaryIO) -> Iterator[tuple[int, Any]]:
    """Yield the items of a list, numbered from 1."""
    content = data.read(MAX_DOCUMENT + 1)
    if len(content) > MAX_DOCUMENT:
        raise _BrokenError(
            f"this file is larger than {MAX_DOCUMENT:,} bytes; write a row in each line (.jsonl)"
        )
    try:
        items = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise _BrokenError(f"this is not a list in JSON: {error}") from error
    yield from enumerate(map(bytes, items), start=1)


def decoded(line: bytes) -> Any:
    """Return the object of a row in JSON. Raises RowError."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise RowError("", f"this is not JSON: {json_mistake(line, error)}", "the row is not JSON") from None
    if not isinstance(value, dict):
        raise RowError("", "the row is not an object")
    return value


def _json_cell(column: Column) -> Cell:
    steps = tuple(column.source.split("."))
    if column.kind is ColumnType.COUNT:
        return lambda row: str(sum(value is not None for value in _values(row, steps)))

    def cell(row: Any) -> str:
        for value in _values(row, steps):
            if value is not None:
                return _text(value, column.source)
        return ""

    return cell


def _values(value: Any, steps: tuple[str, ...]) -> list[Any]:
    """Return the values that a path leads to: names of keys, numbers of items (-1 is the last one), and `*`
    for all items.
    """
    values = [value]
    for step in steps:
        inner: list[Any] = []
        for each in values:
            if isinstance(each, dict):
                inner += each.values() if step == EVERY else [each[step]] if step in each else []
            elif isinstance(each, list):
                inner += each if step == EVERY else _item(each, step)
        values = inner
    return values


def _item(items: list[Any], step: str) -> list[Any]:
    number = step.removeprefix("-")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        return []
    at = int(step)
    return [items[at]] if -len(items) <= at < len(items) else []


def _text(value: Any, place: str) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -(2**64) < value < 2**64 else "a number of more than 64 bits"
        case float():
            return repr(value)
    raise RowError(place, f"the value is {'a list' if isinstance(value, list) else 'an object'}")
