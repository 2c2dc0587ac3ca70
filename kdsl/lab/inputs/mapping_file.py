"""Reads the YAML file of a mapping: checks it by its schema, and its expressions in the language of rules."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.check.model.types import Type
from kdsl.cluster.api.names import is_label_key
from kdsl.config.codes import ConfigCode
from kdsl.config.documents import one_document
from kdsl.config.misfits import misfits
from kdsl.config.schema_files import read_schema
from kdsl.eval.views import attribute_of
from kdsl.lab.inputs.cells import NO_TEXT, Column, ColumnType, Unit
from kdsl.lab.inputs.formulas import Formula, Formulas, Scope, view_of
from kdsl.lab.inputs.groups import ORDERED, SUMMED, Grouping, GroupValue, How
from kdsl.lab.inputs.mapping import Join, Mapping, ObjectTable
from kdsl.lab.inputs.tables import Table
from kdsl.lang.yaml_tree import (
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    to_plain,
)

ROW: Final = "row"
GROUP: Final = "group"

_NAME = "text or a whole number", frozenset({"string", "int"})
_TEXT = "text", frozenset({"string"})
_WORD = "text, a whole number or a boolean", frozenset({"string", "int", "bool"})
_AMOUNT = "a number, or a quantity", frozenset({"int", "double", "string", "quantity"})
_NUMBER = "a number", frozenset({"int", "double"})
_INT = "a whole number", frozenset({"int"})
_BOOL = "true or false", frozenset({"bool"})
_TIME = "a time, or a number of seconds", frozenset({"timestamp", "int", "double"})
_LENGTH = "a duration, or a number of seconds", frozenset({"duration", "int", "double"})
_KEY = "text, a whole number or a boolean", frozenset({"string", "int", "bool"})

FIELDS: Final = {
    "name": _NAME, "namespace": _TEXT, "scheduler": _TEXT, "priority": _INT,
    "cpu": _AMOUNT, "memory": _AMOUNT, "pods": _INT, "cards": _NUMBER, "model": _TEXT,
    "models": ("text or a list of texts", frozenset({"string", "list"})),
    "at": _TIME, "change": _TEXT, "arrival": _TIME, "duration": _LENGTH, "deleted": _TIME, "repeat": _INT,
}  # fmt: skip
"""The types of the fields of nodes and pods."""
MAPS: Final = {"labels": _WORD, "annotations": _WORD, "nodeSelector": _WORD, "resources": _AMOUNT}
"""The fields with keys of their own."""


def mapping_schema() -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of mappings."""
    return read_schema("kdsl.lab", "mapping.v1")


def load_mapping(path: Path) -> Mapping:
    """Read a mapping; tables in it are relative to its folder. Raises InvalidInputError with all mistakes."""
    root = one_document(path, "a mapping", "Mapping kdsl.dev/v1")
    found = list(misfits(root, mapping_schema()))
    if found:
        raise InvalidInputError(found)
    reader = _Reader(path.parent, found)
    nodes, pods = (tuple(reader.objects(table) for table in _items(root, key)) for key in ("nodes", "pods"))
    if has_errors(found):
        raise InvalidInputError(sorted(found, key=lambda each: each.span.start if each.span else 0))
    return Mapping(path, nodes, pods)


def _items(node: YamlMapping, key: str) -> tuple[YamlMapping, ...]:
    value = node.get(key)
    assert isinstance(value, YamlSequence)
    return tuple(item for item in value.items if isinstance(item, YamlMapping))


def _entries(node: YamlMapping, key: str) -> tuple[tuple[YamlScalar, YamlNode], ...]:
    value = node.get(key)
    return value.entries if isinstance(value, YamlMapping) else ()


def _plain(node: YamlMapping, key: str, default: Any) -> Any:
    value = node.get(key)
    return default if value is None else to_plain(value)


@dataclass(slots=True)
class _Reader:
    """Builds tables from a tree that fits the schema; mistakes of meaning are added to `found`."""

    folder: Path
    found: list[Diagnostic]
    _attributes: dict[str, str] = field(default_factory=dict)

    def objects(self, node: YamlMapping) -> ObjectTable:
        columns = self._columns(node)
        table = self._table(node, columns)
        self._check_joins(_entries(node, "join"))
        joins = [
            self._join(key, value, columns)
            for key, value in _entries(node, "join")
            if isinstance(value, YamlMapping)
        ]
        known = tuple(join for join in joins if join is not None)
        members: dict[str, Dict[str, Type]] = {ROW: _members(columns)}
        members |= {join.name: join.members for join in known}
        rows = Formulas(Scope(members), self.found)
        where = self._formula(rows, node, "where", _BOOL)
        group = node.get(GROUP)
        grouping, group_where, scope = None, None, rows
        if isinstance(group, YamlMapping):
            grouping = self._grouping(rows, group)
            scope = Formulas(Scope({GROUP: grouping.members}), self.found)
            group_where = self._formula(scope, group, "where", _BOOL)
        for entry, _ in (each for key in MAPS for each in _entries(node, key)):
            if not is_label_key(entry.text):
                title = f"`{entry.text}` is no key here: one is like `team`, or `example.com/team`"
                self._refuse(ConfigCode.WRONG_VALUE, entry, title)
        fields = {key: self._formula(scope, node, key, types) for key, types in FIELDS.items()}
        return ObjectTable(
            table,
            {key: formula for key, formula in fields.items() if formula is not None},
            {key: self._formulas(scope, node, key, types) for key, types in MAPS.items()},
            where,
            known,
            grouping,
            group_where,
            int(_plain(node, "maxErrors", 0)),
        )

    # ---- tables ----

    def _table(self, node: YamlMapping, columns: tuple[Column, ...]) -> Table | None:
        """Return the table of a mapping; None without a file, with all keys about the table refused."""
        file = node.get("file")
        if not isinstance(file, YamlScalar):
            for key in ("columns", "header", "delimiter"):
                if (entry := node.entry(key)) is not None:
                    title = f"`{key}` is about a table, and there is no `file` here"
                    self._refuse(ConfigCode.CONFLICT, entry[0], title)
            return None
        header = _plain(node, "header", None)
        table = Table(
            self.folder, file.text, file.span, columns,
            None if header is None else tuple(header), _plain(node, "delimiter", ","),
        )  # fmt: skip
        if table.is_json and (entry := node.entry("header") or node.entry("delimiter")):
            self._refuse(
                ConfigCode.CONFLICT, entry[0], f"`{entry[0].text}` is about CSV, and this file is JSON"
            )
        for column in columns:
            if column.kind is ColumnType.COUNT and not table.is_json:
                title = "`count` counts values of a JSON row, and this file is CSV"
                self.found.append(Diagnostic(ConfigCode.CONFLICT, title, column.span))
        return table

    def _column(self, key: YamlScalar, node: YamlNode) -> Column:
        plain: Any = to_plain(node)
        written = {"type": plain} if isinstance(plain, str) else plain
        type_: str = written["type"]
        kind = ColumnType(type_.removesuffix("?"))
        unit = written.get("unit")
        if unit is not None and kind is not ColumnType.TIME:
            self._refuse(ConfigCode.CONFLICT, key, f"`unit` is for times, and `{key.text}` is `{type_}`")
        return Column(
            key.text,
            kind,
            key.span,
            written.get("from", key.text),
            type_.endswith("?"),
            None if unit is None else Unit(unit),
            frozenset(written["empty"]) if "empty" in written else NO_TEXT,
        )

    def _columns(self, node: YamlMapping) -> tuple[Column, ...]:
        """Return the columns; `startTime` and `start_time` are one name, and refused."""
        columns = tuple(self._column(key, value) for key, value in _entries(node, "columns"))
        first: dict[str, Column] = {}
        for column in columns:
            other = first.setdefault(attribute_of(column.name), column)
            if other is not column:
                title = f"`{column.name}` and `{other.name}` are the same name: write one of them differently"
                self.found.append(Diagnostic(ConfigCode.LISTED_TWICE, title, column.span))
        return columns

    def _check_joins(self, joins: tuple[tuple[YamlScalar, YamlNode], ...]) -> None:
        """Refuse joined tables whose names are taken."""
        taken = {view_of(ROW), view_of(GROUP)}
        for key, _ in joins:
            if view_of(key.text) in taken:
                title = f"the name `{key.text}` is taken: name the table differently"
                self._refuse(ConfigCode.LISTED_TWICE, key, title)
            taken.add(view_of(key.text))

    def _join(self, key: YamlScalar, node: YamlMapping, columns: tuple[Column, ...]) -> Join | None:
        """Return a joined table; `columns` are those of the table that it is joined to."""
        other = self._table(node, self._columns(node))
        # INVARIANT: the schema requires the file of a joined table.
        assert other is not None
        own = Formulas(Scope({ROW: _members(other.columns)}), self.found)
        main = Formulas(Scope({ROW: _members(columns)}), self.found)
        identity = self._formula(own, node, "key", _KEY)
        on = self._formula(main, node, "equals", _KEY)
        where = self._formula(own, node, "where", _BOOL)
        if identity is None or on is None:
            return None
        if identity.item_type != on.item_type:
            types = f"`equals` is `{on.item_type}`, and `key` is `{identity.item_type}`"
            title = f"{types}: no row has the other's key"
            self._refuse(ConfigCode.WRONG_TYPE, node.get("equals") or node, title)
            return None
        return Join(key.text, other, identity, on, where, int(_plain(node, "maxErrors", 0)))

    # ---- expressions ----

    def _formula(
        self, scope: Formulas, node: YamlMapping, key: str, types: tuple[str, frozenset[str]]
    ) -> Formula | None:
        value = node.get(key)
        return None if value is None else scope.read(value, key, *types)

    def _formulas(
        self, scope: Formulas, node: YamlMapping, key: str, types: tuple[str, frozenset[str]]
    ) -> dict[str, Formula]:
        read = {
            entry.text: scope.read(value, f"{key}.{entry.text}", *types)
            for entry, value in _entries(node, key)
        }
        return {name: formula for name, formula in read.items() if formula is not None}

    def _grouping(self, rows: Formulas, node: YamlMapping) -> Grouping:
        keys = self._formulas(rows, node, "by", _KEY)
        values = [
            value
            for key, entry in _entries(node, "values")
            if isinstance(entry, YamlMapping) and (value := self._group_value(rows, key, entry)) is not None
        ]
        for key, _ in _entries(node, "values"):
            if key.text in keys:
                self._refuse(ConfigCode.LISTED_TWICE, key, f"`{key.text}` is a name of `by`, too")
        order = self._formula(rows, node, "order", ("a value with an order", ORDERED))
        return Grouping(tuple(keys.items()), tuple(values), order)

    def _group_value(self, rows: Formulas, key: YamlScalar, node: YamlMapping) -> GroupValue | None:
        written = [How(name.text) for name, _ in node.entries if name.text != "where"]
        if len(written) != 1:
            title = f"`{key.text}` needs one of {', '.join(f'`{how}`' for how in How)}"
            self._refuse(ConfigCode.MISSING_KEY if not written else ConfigCode.CONFLICT, key, title)
            return None
        (how,) = written
        types = SUMMED if how is How.SUM else ORDERED if how in (How.MIN, How.MAX) else frozenset()
        words = "a number" if how is How.SUM else "a value with an order"
        formula = self._formula(rows, node, how, (words, types))
        where = self._formula(rows, node, "where", _BOOL)
        return None if formula is None else GroupValue(key.text, how, formula, where)

    def _refuse(self, code: ConfigCode, node: YamlNode, title: str) -> None:
        self.found.append(Diagnostic(code, title, node.span))


def _members(columns: tuple[Column, ...]) -> dict[str, Type]:
    return {column.name: column.type for column in columns}
