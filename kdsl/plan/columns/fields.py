"""Facts of a node that expressions read, which determine their answers: fields, and keys of maps. And their
columns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kdsl.check.model.typed import CallOf, Const, FieldOf, HasField, KeyOf, TypedExpr, Var
from kdsl.check.model.types import STRING
from kdsl.cluster.snapshot.fact_columns import ABSENT, OF_PODS, FactColumn
from kdsl.eval.ir import is_test, looked_up
from kdsl.eval.scalar.meter import CHARACTERS
from kdsl.eval.views import attribute_of
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    DTYPES,
    AllBad,
    Coded,
    Column,
    ColumnValue,
    NotColumnar,
    ResourceTable,
    Same,
    decoded,
)
from kdsl.plan.columns.kernels import resource_scale
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.columns.traced import POD_COUNTS

_STATIC: Final = frozenset({"node.static", "cluster.static"})
"""The reads of a fact, of the current node or of any node."""
_NODES: Final = frozenset({"feasible"})
"""The reads that only select nodes."""
_UNIQUE: Final = frozenset({"name", "labels", "annotations", "allocatable", "images"})
"""Fields that differ for nearly every node, or whose order counts though equality ignores it."""


class NodeFact(NamedTuple):
    """A fact of a node that an expression reads: a field, or a map's value at a key."""

    field: str
    key: TypedExpr | None

    def __str__(self) -> str:
        if self.key is None:
            return f"node.{self.field}"
        key = f'"{self.key.value!s}"' if isinstance(self.key, Const) else self.key.span.text
        return f"node.{self.field}[{key}]"


def is_static(reads: frozenset[str]) -> bool:
    """Return whether these reads are facts of nodes only."""
    return not reads.isdisjoint(_STATIC) and reads <= _STATIC | _NODES


def is_fact(expr: FieldOf | HasField) -> bool:
    """Return whether a field of a node is a fact that many nodes share."""
    return is_static(expr.reads) and expr.field not in _UNIQUE


def has_list_column(expr: FieldOf) -> bool:
    """Return whether a list of a node has a column: a fact, or one that the pods on the node fill."""
    return is_fact(expr) or attribute_of(expr.field) in OF_PODS


def keyed(expr: TypedExpr, node: int) -> NodeFact | None:
    """Return the fact of an expression that looks up a key of a map of the node."""
    found = looked_up(expr)
    if found is None:
        return None
    table, key = found
    match table:
        case FieldOf(operand=Var(slot=slot), field=field, reads=reads) if slot == node and is_static(reads):
            is_plain = table.type.name == "map" and table.type.args[0] == key.type == STRING
            return NodeFact(field, key) if is_plain else None
    return None


_RESOURCES = {"allocatable": "allocatable", "requested": "requested", "scoredRequests": "scored_requests"}
_PLAIN = (*DTYPES, STRING)


def amount_read(expr: TypedExpr, node: int) -> tuple[str, str] | None:
    """Return the field and the name of a resource of the node, if an expression reads just its amount."""
    match expr:
        case CallOf(
            overload="index_resources",
            args=(FieldOf(operand=Var(slot=slot), field=field), Const(value=str(name))),
        ) if slot == node:
            return field, name
    return None


def node_amount(field: str, name: str) -> ColumnClosure:
    """Return the column of an amount of the node; NotColumnar if it has none."""
    if field not in _RESOURCES:
        raise NotColumnar
    place, scale = (_RESOURCES[field], name), resource_scale(name)
    return lambda batch: Column(batch.column(place), scale=scale)


def pod_count(batch: Batch) -> Column:
    """Return the number of pods on each node."""
    return Column(batch.column(POD_COUNTS))


def node_field(expr: FieldOf) -> ColumnClosure:
    """Return the column of a field of the node; NotColumnar if it has none."""
    if expr.field in _RESOURCES:
        read = _RESOURCES[expr.field]
        return lambda batch: ResourceTable(lambda name: batch.column((read, name)))
    if expr.field == "podCount":
        return pod_count
    if expr.type not in _PLAIN or not is_static(expr.reads):
        raise NotColumnar
    attribute, type_ = attribute_of(expr.field), expr.type

    def fact(batch: Batch) -> ColumnValue:
        column = batch.facts.field(attribute)
        return decoded(column.codes[batch.rows], column.values, type_)

    return fact


def keyed_fact(expr: CallOf | KeyOf, field: str, key: ColumnClosure) -> ColumnClosure:
    """Return a reader of a node's map at a key that all rows share, or of the key's presence."""
    attribute = attribute_of(field)
    tests = is_test(expr)
    if expr.optional if isinstance(expr, KeyOf) else expr.function == "_[?_]":
        raise NotColumnar

    def read(batch: Batch) -> ColumnValue:
        column = _column_at(batch, attribute, key)
        if tests and column.is_everywhere:
            return Same(True)
        codes = column.codes.take(batch.rows)
        if column.is_everywhere:
            return Coded(codes, column.values)
        absent = codes == ABSENT
        if tests:
            return Column(~absent)
        if absent.all():
            raise AllBad
        return Coded(codes, column.values, absent if absent.any() else None)

    return read


def _column_at(batch: Batch, attribute: str, key: ColumnClosure) -> FactColumn:
    """Return the column of a map at a key that all rows share."""
    name = key(batch)
    if not isinstance(name, Same):
        raise NotColumnar
    return batch.facts.key(attribute, name.value)


def text_or(field: str, key: ColumnClosure, default: str) -> ColumnClosure:
    """Return a reader of a map of texts at a key that all rows share, with `default` for absent keys.
    NotColumnar if there are more distinct texts than rows.
    """
    attribute = attribute_of(field)

    def read(batch: Batch) -> ColumnValue:
        column = _column_at(batch, attribute, key)
        texts = column.values[1:]
        if len(texts) >= len(batch):
            raise NotColumnar
        longest = max(map(len, texts), default=0)
        batch.spend(longest // CHARACTERS + len(default) // CHARACTERS)
        return Coded(column.codes.take(batch.rows), [default, *texts])

    return read
