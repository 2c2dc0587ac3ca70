"""The facts of a node that an expression reads: fields, and keys of maps. They determine its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kdsl.check.model.traversal import children
from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import STRING, BindingTime
from kdsl.cluster.snapshot.fact_columns import OF_PODS
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar import Closure
from kdsl.eval.views import attribute_of

Definition = Callable[[int], TypedExpr | None]
"""Returns the value of a `let` by its slot; None for other variables."""

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


class Atom(NamedTuple):
    """A fact at run time: `key` reads the key from the frame; it needs the variables `slots`."""

    attribute: str
    key: Closure | None
    slots: frozenset[int]


def is_static(reads: frozenset[str]) -> bool:
    """Return whether these reads are facts of nodes only."""
    return not reads.isdisjoint(_STATIC) and reads <= _STATIC | _NODES


def is_fact(expr: FieldOf | HasField) -> bool:
    """Return whether a field of a node is a fact that many nodes share."""
    return is_static(expr.reads) and expr.field not in _UNIQUE


def has_list_column(expr: FieldOf) -> bool:
    """Return whether a list of a node has a column: a fact, or one that the pods on the node fill."""
    return is_fact(expr) or attribute_of(expr.field) in OF_PODS


def facts_of(
    expr: TypedExpr, node: int, definition: Definition, bound: frozenset[int] = frozenset()
) -> list[NodeFact] | None:
    """Return the facts of the node that an expression reads; None if it reads more than a few facts.

    `bound` are variables without a value at the time when facts are gathered, so no key may depend on them.
    """
    found: list[NodeFact] = []
    return found if _Collector(node, definition, found).collect(expr, bound) else None


def keyed(expr: TypedExpr, node: int) -> NodeFact | None:
    """Return the fact of `node.field[key]`, `node.field[?key]`, `key in node.field` and `node.field.key`."""
    key: TypedExpr
    match expr:
        case KeyOf(operand=table, key=name):
            key = Const(type=STRING, time=BindingTime.STATIC, reads=frozenset(), span=expr.span, value=name)
        case CallOf(overload="in_map", args=(key, table)):
            pass
        case CallOf(overload="index_map" | "map_optindex_optional_value", args=(table, key)):
            pass
        case _:
            return None
    match table:
        case FieldOf(operand=Var(slot=slot), field=field, reads=reads) if slot == node and is_static(reads):
            is_plain = table.type.name == "map" and table.type.args[0] == key.type == STRING
            return NodeFact(field, key) if is_plain else None
    return None


class _Collector:
    """Gathers facts in `found`. Each `let` is followed once."""

    def __init__(self, node: int, definition: Definition, found: list[NodeFact]) -> None:
        self._node = node
        self._definition = definition
        self._found = found
        self._seen: set[int] = set()

    def collect(self, expr: TypedExpr, bound: frozenset[int]) -> bool:
        """Return whether the expression reads nothing but facts of the node."""
        match expr:
            case Var(slot=slot):
                return slot != self._node and self._collect_let(slot, bound)
            case (
                FieldOf(operand=Var(slot=slot), field=field) | HasField(operand=Var(slot=slot), field=field)
            ) if slot == self._node:
                self._found.append(NodeFact(field, None))
                return is_fact(expr)
            case Comprehension(variables=variables):
                bound = bound | {variable.slot for variable in variables}
            case Bind(variable=variable) | Aggregate(variable=variable):
                bound = bound | {variable.slot}
        fact = keyed(expr, self._node)
        if fact is not None and fact.key is not None:
            self._found.append(fact)
            return not _needs(fact.key, self._definition) & (bound | {self._node})
        return all(self.collect(child, bound) for child in children(expr))

    def _collect_let(self, slot: int, bound: frozenset[int]) -> bool:
        value = self._definition(slot)
        if value is None or slot in self._seen:
            return True
        self._seen.add(slot)
        return self.collect(value, bound)


def _needs(expr: TypedExpr, definition: Definition) -> frozenset[int]:
    """Return the variables that an expression needs, directly or through `let`s."""
    found: set[int] = set()
    pending = list(free_slots(expr))
    while pending:
        slot = pending.pop()
        if slot not in found:
            found.add(slot)
            value = definition(slot)
            if value is not None:
                pending += free_slots(value)
    return frozenset(found)
