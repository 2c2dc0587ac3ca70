"""A checked mapping: tables with compiled expressions for the fields of nodes and pods."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from pathlib import Path

from kdsl.check.model.types import Type, optional_of
from kdsl.lab.inputs.formulas import Formula
from kdsl.lab.inputs.groups import Grouping
from kdsl.lab.inputs.tables import Table


@dataclass(frozen=True, slots=True)
class Join:
    """Another table, whose row with the same key belongs to a row: `key` and `where` read its rows,
    `on` reads the others.
    """

    name: str
    table: Table
    key: Formula
    on: Formula
    where: Formula | None = None
    max_errors: int = 0

    @property
    def members(self) -> dict[str, Type]:
        """The fields of the joined row: optional, since a row may have none."""
        return {column.name: optional_of(column.item_type) for column in self.table.columns}


@dataclass(frozen=True, slots=True)
class ObjectTable:
    """A table of nodes or pods.

    `fields` are the expressions by key of the mapping; those of `maps` have a key of their own, such as
    `labels` by label. `table` is None for one row without columns.
    """

    table: Table | None
    fields: Dict[str, Formula]
    maps: Dict[str, Dict[str, Formula]] = field(default_factory=dict)
    where: Formula | None = None
    joins: tuple[Join, ...] = ()
    grouping: Grouping | None = None
    group_where: Formula | None = None
    max_errors: int = 0


@dataclass(frozen=True, slots=True)
class Mapping:
    """The tables of a trace as nodes and pods. `path` is the file of the mapping."""

    path: Path
    nodes: tuple[ObjectTable, ...]
    pods: tuple[ObjectTable, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that the workload depends on, the mapping first."""
        tables = [
            table.path
            for objects in (*self.nodes, *self.pods)
            for table in (objects.table, *(join.table for join in objects.joins))
            if table is not None
        ]
        return tuple(dict.fromkeys((self.path, *tables)))
