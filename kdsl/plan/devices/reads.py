"""What devices read of a pod beside what it asks for: pods that are alike in it get the same cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final

from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.rule_set import CheckedLet
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallOf, Const, FieldOf, HasField, KeyOf, Typed, TypedExpr, Var
from kdsl.check.model.types import Type

_POD: Final = "DevicePod"
_ATTRIBUTES: Final = {
    "name": "name",
    "namespace": "namespace",
    "uid": "uid",
    "labels": "labels",
    "annotations": "annotations",
    "runtimeClass": "runtime_class",
}
"""Fields of the view that `DevicePod` has under these names; containers always count."""
_ONCE: Final = ("admit", "request", "annotations", "inventory", "quota", "lock", "handshake")
"""Sections that choosing cards does not ask: what comes of them counts by itself, or is no part of it."""


def pod_attributes(device: CheckedDevice) -> frozenset[str]:
    """Return the attributes of `DevicePod` that decide which cards of a node a pod gets."""
    return _attributes(device, [field.name for field in fields(device) if field.name not in _ONCE])


def review_attributes(device: CheckedDevice) -> frozenset[str]:
    """Return the attributes of `DevicePod` that decide what admission does and what a pod asks for."""
    return _attributes(device, ["admit", "request"])


def _attributes(device: CheckedDevice, sections: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for section in sections:
        direct = 0
        for part in parts(getattr(device, section)):
            if isinstance(part, FieldOf | HasField) and part.view == _POD:
                found.add(part.field)
                direct += isinstance(part.operand, Var)
            elif isinstance(part, Var) and part.type.name == _POD:
                direct -= 1
        if direct < 0:
            # The pod as a whole goes somewhere, such as into a function: anything may be read of it.
            found |= set(_ATTRIBUTES)
    return frozenset(_ATTRIBUTES[name] for name in found if name in _ATTRIBUTES)


def parts(value: object) -> Iterator[Typed]:
    """Yield every expression inside a checked section, but not the names that the engine fills."""
    if isinstance(value, Typed):
        yield value
    if isinstance(value, tuple | list):
        for each in value:
            yield from parts(each)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from parts(each)
    elif is_dataclass(value):
        for field in fields(value):
            if field.name not in ("scope", "span", "type"):
                yield from parts(getattr(value, field.name))


def annotations_read(exprs: Iterable[TypedExpr]) -> frozenset[str] | None:
    """Return the annotations of the pod that expressions ask for; None where it may be any."""
    keys = frozenset(key for expr in exprs for key in _annotations(expr))
    return None if None in keys else frozenset(key for key in keys if key is not None)


def _annotations(expr: TypedExpr) -> Iterator[str | None]:
    match expr:
        case (
            CallOf(
                function="_[_]" | "_[?_]",
                args=(FieldOf(operand=Var(), view="DevicePod", field="annotations"), Const(value=str(key))),
            )
            | CallOf(
                function="@in",
                args=(Const(value=str(key)), FieldOf(operand=Var(), view="DevicePod", field="annotations")),
            )
            | KeyOf(operand=FieldOf(operand=Var(), view="DevicePod", field="annotations"), key=key)
        ):
            yield key
        case FieldOf(operand=Var(), view="DevicePod", field=field) if field != "annotations":
            pass
        case FieldOf(view="DevicePod", field="annotations") | Var(type=Type(name="DevicePod")):
            yield None
        case _:
            for part in children(expr):
                yield from _annotations(part)


def needs(section: object, lets: Mapping[int, CheckedLet]) -> frozenset[int]:
    """Return the slots that a section reads, `let`s and what those read included."""
    found: set[int] = set()
    pending = [section]
    while pending:
        for part in parts(pending.pop()):
            if isinstance(part, Var) and part.slot not in found:
                found.add(part.slot)
                if part.slot in lets:
                    pending.append(lets[part.slot].value)
    return frozenset(found)
