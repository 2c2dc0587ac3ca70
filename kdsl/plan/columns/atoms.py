"""The facts of a node that an expression reads: fields, and keys of maps. They determine its answer."""

from __future__ import annotations

from typing import Final, NamedTuple

from kdsl.check.model.typed import Const, FieldOf, HasField, TypedExpr, Var
from kdsl.check.model.types import STRING
from kdsl.cluster.snapshot.fact_columns import OF_PODS
from kdsl.eval.ir import looked_up
from kdsl.eval.views import attribute_of

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
