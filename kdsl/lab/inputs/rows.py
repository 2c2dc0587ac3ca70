"""The rows of a mapping's table as records that its fields read: filtered, joined and grouped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kdsl.base.diagnostic import Diagnostic
from kdsl.eval.values import Timestamp, Value
from kdsl.eval.views import attribute_of
from kdsl.lab.inputs.cells import ColumnType, RowError, reader_of
from kdsl.lab.inputs.formulas import Formula, holder
from kdsl.lab.inputs.groups import RowGroups
from kdsl.lab.inputs.ledger import Ledger
from kdsl.lab.inputs.mapping import Join, ObjectTable
from kdsl.lab.inputs.mapping_file import ROW
from kdsl.lab.inputs.tables import Rows, Table, decoded, open_rows

Record = tuple[int, Sequence[Value]]
"""A line, and the objects that fields read: a row and the rows joined to it, or a group."""
Fill = Callable[[Any, Any], None]
"""Reads the cells of some columns of a row and keeps their values in an object."""


def records(
    objects: ObjectTable, ledger: Ledger, ledgers: list[Ledger], found: list[Diagnostic]
) -> Iterator[Record]:
    """Yield the records of a table; rows with errors are counted by the ledger, those of joined tables by
    others, which are added to `ledgers`.

    A table that cannot be read, or not to its end, is in `found`.
    """
    if objects.grouping is None:
        yield from _filtered(objects, ledger, ledgers, found)
        return
    groups = RowGroups(objects.grouping)
    for line, values in _filtered(objects, ledger, ledgers, found):
        try:
            groups.take(line, values)
        except RowError as error:
            ledger.refuse(line, error)
    for line, group in groups.records():
        try:
            if objects.group_where is None or objects.group_where.value((group,)):
                yield line, (group,)
        except RowError as error:
            ledger.refuse(line, error)


def _filtered(
    objects: ObjectTable, ledger: Ledger, ledgers: list[Ledger], found: list[Diagnostic]
) -> Iterator[Record]:
    """Yield the rows of a table of nodes or pods for which its `where` holds."""
    joined = [_index(join, ledgers, found) for join in objects.joins]
    if objects.table is None:
        ledger.rows = 1
        yield 1, (SimpleNamespace(),)
        return
    with open_rows(objects.table, found) as rows:
        if rows is not None:
            early = _reads([objects.where, *(join.on for join in objects.joins)])
            late = _reads(_late(objects))
            yield from _kept(objects.table, rows, objects.where, early, late, ledger, joined)


def _kept(
    table: Table,
    rows: Rows,
    where: Formula | None,
    early: frozenset[str],
    late: frozenset[str],
    ledger: Ledger,
    joined: Sequence[_Index] = (),
) -> Iterator[Record]:
    """Yield the rows for which `where` holds, with their rows of `joined` tables.

    The columns `early` are read before `where`, those of `late` that are still missing after it.
    """
    before, after = _filler(table, rows, early), _filler(table, rows, late - early)
    for line, raw in rows.lines:
        ledger.rows += 1
        row = SimpleNamespace()
        try:
            cells = decoded(raw) if table.is_json else raw
            before(cells, row)
            values = (row, *[find(row) for find in joined])
            if where is not None and not where.value(values):
                ledger.filtered += 1
                continue
            after(cells, row)
        except RowError as error:
            ledger.refuse(line, error)
            if ledger.is_beyond:
                return
            continue
        yield line, values


def _late(objects: ObjectTable) -> list[Formula | None]:
    """Return the expressions that read rows for which `where` holds."""
    grouping = objects.grouping
    if grouping is None:
        return [*objects.fields.values(), *(each for one in objects.maps.values() for each in one.values())]
    return [
        *(formula for _, formula in grouping.keys),
        *(value.formula for value in grouping.values),
        *(value.where for value in grouping.values),
        grouping.order,
    ]


def _reads(formulas: Sequence[Formula | None]) -> frozenset[str]:
    """Return the columns of the row that some expressions read."""
    return frozenset().union(*(each.reads.get(ROW, ()) for each in formulas if each is not None))


def _filler(table: Table, rows: Rows, names: frozenset[str]) -> Fill:
    wanted = [
        (attribute_of(column.name), cell, reader_of(column))
        for column, cell in zip(table.columns, rows.cells, strict=True)
        if column.name in names
    ]

    def fill(cells: Any, row: Any) -> None:
        for name, cell, read in wanted:
            setattr(row, name, read(cell(cells)))

    return fill


# ---- joined tables -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Index:
    """The rows of a joined table by key. It is in memory as a whole."""

    on: Formula
    rows: Mapping[Value, Any]
    nothing: Any

    def __call__(self, row: Any) -> Any:
        key = self.on.value((row,))
        return self.nothing if key is None else self.rows.get(key, self.nothing)


def _index(join: Join, ledgers: list[Ledger], found: list[Diagnostic]) -> _Index:
    ledger = Ledger(str(join.table.path), join.name, join.max_errors)
    ledgers.append(ledger)
    make = holder(join.members)
    rows: dict[Value, Any] = {}
    # An optional time is a `Timestamp`; the column may be of times that are not.
    wraps = [column.kind is ColumnType.TIME and not column.is_optional for column in join.table.columns]
    attributes = [attribute_of(column.name) for column in join.table.columns]
    with open_rows(join.table, found) as opened:
        tested, members = _reads([join.where]), frozenset(join.members)
        kept = _kept(join.table, opened, join.where, tested, members, ledger) if opened is not None else ()
        for line, (row,) in kept:
            try:
                key = join.key.value((row,))
                if key is None:
                    raise RowError("key", "the row has no key")
                if key in rows:
                    raise RowError("key", f"a second row has the key `{key}`", "a second row has the key")
            except RowError as error:
                ledger.refuse(line, error)
                if ledger.is_beyond:
                    break
                continue
            values = [getattr(row, name) for name in attributes]
            ledger.objects += 1
            rows[key] = make(
                [Timestamp(one) if wrap else one for one, wrap in zip(values, wraps, strict=True)]
            )
    found.extend(ledger.diagnostics())
    return _Index(join.on, rows, make([None] * len(attributes)))
