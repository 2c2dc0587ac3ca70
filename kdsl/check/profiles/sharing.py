"""Folding the devices of a profile: the kinds its pods may ask for, and the choice of nodes and cards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kdsl.base.span import Source, Span
from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.rule_set import CheckedParam
from kdsl.check.model.sharing import DEVICES, SETTINGS, CheckedSharing
from kdsl.check.model.typed import CallOf, Const, ListOf, TypedExpr, TypedItem
from kdsl.check.model.types import STRING, BindingTime, list_of
from kdsl.check.names.declarations import Located
from kdsl.lang.profile_tree import UseDevices
from kdsl.lang.tree import Device, Name

IGNORED: Final = "ignoredResources"
"""The parameter with the resources that a rule ignores, such as those of the profile's devices."""

LARGEST: Final = 2**31 - 1
"""The largest number that a setting can have."""


@dataclass(frozen=True, slots=True)
class DevicesDraft:
    """The devices of a profile while it is folded, in order, and the settings that were set."""

    kinds: tuple[tuple[Located[Device], Name], ...]
    used: UseDevices
    sets: Mapping[str, CheckedParam] = field(default_factory=dict)


def finish_devices(draft: DevicesDraft | None, devices: Mapping[str, CheckedDevice]) -> CheckedSharing | None:
    """Return the devices of a profile, without broken ones."""
    if draft is None:
        return None
    known = [(devices.get(located.qualified), name) for located, name in draft.kinds]
    return CheckedSharing(
        tuple(device for device, _ in known if device is not None),
        tuple(draft.sets[name] for name in SETTINGS if name in draft.sets),
        tuple(name.span for device, name in known if device is not None),
    )


def differences(
    old: CheckedSharing | None, new: CheckedSharing | None, span: Span
) -> Iterator[tuple[str, str, str, Span]]:
    """Yield the differences between two versions of a profile's devices: name, old text, new text and place.

    A setting with an empty text has its default. `span` is that of the new profile.
    """
    before, now = (", ".join(each.qualified for each in side.devices) if side else "" for side in (old, new))
    if before != now:
        yield "devices", before, now, new.origins[0] if new and new.origins else span
    was, is_ = (
        {param.variable.name: param.value for param in side.settings} if side else {} for side in (old, new)
    )
    for name in SETTINGS:
        if was.get(name) != is_.get(name):
            before, now = (side[name].span.text if name in side else "" for side in (was, is_))
            yield f"setting {DEVICES}.{name}", before, now, is_[name].span if name in is_ else span


def managed(params: Iterable[CheckedParam], sharing: CheckedSharing | None) -> tuple[CheckedParam, ...]:
    """Return the parameters of a rule, with the resources of the devices added to those it ignores."""
    found = tuple(params)
    if sharing is None or not sharing.resources:
        return found
    wanted = list_of(STRING)
    return tuple(
        replace(param, value=_with_managed(param.value, sharing))
        if param.variable.name == IGNORED and param.variable.type == wanted
        else param
        for param in found
    )


def _with_managed(value: TypedExpr, sharing: CheckedSharing) -> TypedExpr:
    """Return a list with the managed resources after its own; its span shows them as well."""
    names = list(sharing.resources)
    text = json.dumps(names) if value.span.text in ("", "[]") else f"{value.span.text} + {json.dumps(names)}"
    source = Source(sharing.origins[0].source.path, "\n" * (sharing.origins[0].line - 1) + text)
    span = Span(source, len(source.text) - len(text), len(source.text))
    items = tuple(
        TypedItem(Const(name, type=STRING, time=BindingTime.STATIC, reads=frozenset(), span=span), False)
        for name in names
    )
    more = ListOf(items, type=value.type, time=BindingTime.STATIC, reads=frozenset(), span=span)
    if isinstance(value, ListOf):
        return replace(more, items=(*value.items, *items))
    return CallOf(
        "_+_",
        (value, more),
        "add_list",
        type=value.type,
        time=BindingTime.STATIC,
        reads=frozenset(),
        span=span,
    )
