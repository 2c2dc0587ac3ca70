"""Access to parts of values: fields of views by attribute, keys of maps and optionals by look-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kdsl.check.model.typed import FieldOf, HasField, KeyOf, ListOf, MapOf, TypedExpr, TypedItem
from kdsl.cluster.objects.node import FACTS
from kdsl.eval.functions.collections import is_zero
from kdsl.eval.functions.operators import find_in_map, index_map
from kdsl.eval.scalar.logic import checked_optional
from kdsl.eval.values import EvalError, Optional, Value, kind_of, to_map
from kdsl.eval.views import attribute_of, wrapper_of

if TYPE_CHECKING:
    from kdsl.eval.scalar.compiler import Compiler

CARDS = "cards"
"""The field of nodes that depends on the profile."""
DEVICE = "Device"
"""The view of the items of `CARDS`."""
NODES = ("Node", "AnyNode")
"""The views that have `CARDS`."""

CardsOf = Callable[[Value], Value]
"""Returns the cards of a node, read by the devices of a profile."""


def field_text(expr: FieldOf, out: Compiler) -> str:
    """Write `view.field`."""
    wrap, owner = wrapper_of(expr.type), out.text(expr.operand)
    read = f"{owner}{'.facts' if is_node_fact(expr) else ''}.{attribute_of(expr.field)}"
    return read if wrap is None else f"{out.name(wrap)}({read})"


def is_node_fact(expr: TypedExpr) -> bool:
    """Return whether an expression is a field of a node that does not depend on its pods."""
    match expr:
        case FieldOf(operand=node, field=field):
            return node.type.name in NODES and attribute_of(field) in FACTS
    return False


def presence_text(expr: HasField, out: Compiler) -> str:
    """Write `has(view.field)`: the field was set, to a value other than its empty value."""
    return f"{out.name(_is_set)}({out.text(expr.operand)}.{attribute_of(expr.field)})"


def _is_set(value: Value) -> bool:
    return value is not None and not is_zero(value)


def key_text(expr: KeyOf, out: Compiler) -> str:
    """Write `x.key`, `x.?key` or `has(x.key)`."""
    read = has_key if expr.test else find_key if expr.optional else select
    return f"{out.name(read)}({out.text(expr.operand)}, {out.name(expr.key)})"


def select(value: Value, key: str) -> Value:
    """Return the value at `key`; for an optional, an optional."""
    # The usual case: a plain map that has the key.
    if value.__class__ is dict and key in value:
        return value[key]
    match kind_of(value):
        case "map":
            return index_map(value, key)
        case "optional":
            return find_key(value, key)
    raise _no_fields(value)


def find_key(value: Value, key: str) -> Optional:
    """Return the value at `key` as an optional."""
    match kind_of(value):
        case "map":
            return find_in_map(value, key)
        case "optional":
            return find_key(value.value, key) if value.present else value
    raise _no_fields(value)


def _no_fields(value: Value) -> EvalError:
    kind = kind_of(value)
    # Types of the language have lower case names; any other name is that of a class, which no user knows.
    if kind[:1].isupper():
        return EvalError("no such overload: `dyn` hides the fields of this object, read them without it")
    return EvalError(f"no such overload: {kind} has no fields")


def has_key(value: Value, key: str) -> bool:
    return find_key(value, key).present


def list_text(expr: ListOf, out: Compiler) -> str:
    """Write a list; a missing optional item leaves no gap."""
    items = ["*" * item.optional + _item_text(item, out) for item in expr.items]
    return f"({', '.join(items)},)" if items else "()"


def _item_text(item: TypedItem, out: Compiler) -> str:
    text = out.text(item.value)
    return f"{out.name(_present)}({text})" if item.optional else text


def _present(value: Value) -> tuple[Value, ...]:
    return (value.value,) if checked_optional(value).present else ()


def map_text(expr: MapOf, out: Compiler) -> str:
    """Write a map; an entry with a missing optional value is left out, a repeated key is an error."""
    entries = [
        f"({out.text(entry.key)}, {out.text(entry.value)}, {entry.optional})" for entry in expr.entries
    ]
    return f"{out.name(_map_of)}([{', '.join(entries)}])"


def _map_of(entries: list[tuple[Value, Value, bool]]) -> Value:
    present = [entry for entry in entries if not entry[2] or checked_optional(entry[1]).present]
    return to_map([(key, value.value if optional else value) for key, value, optional in present])
