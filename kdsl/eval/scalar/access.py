"""Access to parts of values: fields of views by attribute, keys of maps and optionals by look-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kdsl.check.model.typed import FieldOf, HasField, KeyOf, ListOf, MapOf, TypedExpr
from kdsl.eval.functions.collections import is_zero
from kdsl.eval.functions.operators import find_in_map, index_map
from kdsl.eval.scalar.frame import Closure, Compile, Frame, apply
from kdsl.eval.values import EvalError, Optional, Value, kind_of, to_map
from kdsl.eval.views import attribute_of, wrapper_of

CARDS = "cards"
DEVICE = "Device"
NODES = ("Node", "AnyNode")
"""The field of nodes that depends on the profile, the view of its items, and the views that have it."""

CardsOf = Callable[[Value], Value]
"""Returns the cards of a node as the devices of a profile see them."""

SlotOf = Callable[[TypedExpr], int | None]
"""Returns the slot of a variable that can be read without a call. None for anything else."""


def compile_field(expr: FieldOf, compile: Compile, slot_of: SlotOf) -> Closure:
    """Compile `view.field`."""
    name, wrap, slot = attribute_of(expr.field), wrapper_of(expr.type), slot_of(expr.operand)
    if wrap is None and slot is not None:
        return lambda frame: getattr(frame[slot], name)
    operand = compile(expr.operand)
    if wrap is None:
        return lambda frame: getattr(operand(frame), name)
    return lambda frame: wrap(getattr(operand(frame), name))


def compile_method(name: str, args: Sequence[TypedExpr], compile: Compile, slot_of: SlotOf) -> Closure:
    """Compile the call of a view's method; `args` begin with the view."""
    target, *others = args
    view = compile(target)
    if not others:
        return lambda frame: getattr(view(frame), name)()
    first, *further = [compile(other) for other in others]
    if further:
        return lambda frame: getattr(view(frame), name)(first(frame), *[each(frame) for each in further])
    slot = slot_of(others[0])
    if slot is not None:
        return lambda frame: getattr(view(frame), name)(frame[slot])
    return lambda frame: getattr(view(frame), name)(first(frame))


def compile_presence(expr: HasField, compile: Compile) -> Closure:
    """Compile `has(view.field)`: the field was set, to a value other than its empty value."""
    name, operand = attribute_of(expr.field), compile(expr.operand)

    def is_present(frame: Frame) -> Value:
        value = getattr(operand(frame), name)
        return value is not None and not is_zero(value)

    return is_present


def compile_key(expr: KeyOf, compile: Compile) -> Closure:
    """Compile `x.key`, `x.?key` or `has(x.key)`."""
    operand, key = compile(expr.operand), expr.key
    if expr.test or expr.optional:
        read = has_key if expr.test else find_key
        return apply(lambda value: read(value, key), [operand])

    def evaluate(frame: Frame) -> Value:
        value = operand(frame)
        # The usual case: a plain map that has the key.
        return value[key] if value.__class__ is dict and key in value else select(value, key)

    return evaluate


def select(value: Value, key: str) -> Value:
    """Return the value at `key`; for an optional, an optional."""
    match kind_of(value):
        case "map":
            return index_map(value, key)
        case "optional":
            return find_key(value, key)
    raise EvalError(f"no such overload: {kind_of(value)} has no fields")


def find_key(value: Value, key: str) -> Optional:
    """Return the value at `key` as an optional."""
    match kind_of(value):
        case "map":
            return find_in_map(value, key)
        case "optional":
            return find_key(value.value, key) if value.present else value
    raise EvalError(f"no such overload: {kind_of(value)} has no fields")


def has_key(value: Value, key: str) -> bool:
    return find_key(value, key).present


def compile_list(expr: ListOf, compile: Compile) -> Closure:
    """Compile a list; a missing optional item leaves no gap."""
    items = [compile(item.value) for item in expr.items]
    if not any(item.optional for item in expr.items):
        return lambda frame: tuple([item(frame) for item in items])
    marked = list(zip(items, (item.optional for item in expr.items), strict=True))

    def evaluate(frame: Frame) -> Value:
        result: list[Value] = []
        for item, optional in marked:
            value = item(frame)
            if not optional:
                result.append(value)
            elif _checked_optional(value).present:
                result.append(value.value)
        return tuple(result)

    return evaluate


def compile_map(expr: MapOf, compile: Compile) -> Closure:
    """Compile a map; an entry with a missing optional value is left out, a repeated key is an error."""
    entries = [(compile(entry.key), compile(entry.value), entry.optional) for entry in expr.entries]

    def evaluate(frame: Frame) -> Value:
        pairs: list[tuple[Value, Value]] = []
        for key, item, optional in entries:
            name, value = key(frame), item(frame)
            if not optional:
                pairs.append((name, value))
            elif _checked_optional(value).present:
                pairs.append((name, value.value))
        return to_map(pairs)

    return evaluate


def _checked_optional(value: Value) -> Optional:
    if value.__class__ is Optional:
        return value
    raise EvalError(f"no such overload: {kind_of(value)} is not an optional")
