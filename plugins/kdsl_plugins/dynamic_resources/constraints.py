"""Constraints of a claim: an attribute in which all devices of some requests agree, or differ."""

from __future__ import annotations

from typing import Protocol

from kdsl.cluster.api.device_objects import DeviceAttribute, DeviceConstraint

from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.requests import Request

_Compared = tuple[str, object]


class Constraint(Protocol):
    """A constraint over the devices that were added to it."""

    def add(self, request: Request, device: PoolDevice) -> bool:
        """Add a device; return False, and add nothing, where it breaks the constraint."""
        ...

    def remove(self, request: Request, device: PoolDevice) -> None:
        """Remove the device that was added last."""
        ...


class AttributeConstraint:
    """A constraint on the values of one attribute. Values of two types differ; a device that lacks the
    attribute breaks it.
    """

    def __init__(self, requests: frozenset[str], attribute: str, are_distinct: bool) -> None:
        self._requests, self._attribute, self._are_distinct = requests, attribute, are_distinct
        self._values: list[_Compared] = []
        self._known: dict[PoolDevice, _Compared | None] = {}

    def add(self, request: Request, device: PoolDevice) -> bool:
        if not self._concerns(request):
            return True
        value = self._value(device)
        if value is None:
            return False
        if self._are_distinct:
            if value in self._values:
                return False
        elif self._values and value != self._values[0]:
            return False
        self._values.append(value)
        return True

    def remove(self, request: Request, device: PoolDevice) -> None:
        if self._concerns(request):
            self._values.pop()

    def _value(self, device: PoolDevice) -> _Compared | None:
        if device not in self._known:
            self._known[device] = compared(device.attribute(self._attribute))
        return self._known[device]

    def _concerns(self, request: Request) -> bool:
        return (
            not self._requests
            or request.full_name in self._requests
            or (request.parent or request.name) in self._requests
        )


def constraint_of(spec: DeviceConstraint) -> Constraint | None:
    """Return a new constraint, None for a kind that kdsl does not know."""
    requests = frozenset(spec.requests)
    if spec.match_attribute is not None:
        return AttributeConstraint(requests, spec.match_attribute, are_distinct=False)
    if spec.distinct_attribute is not None:
        return AttributeConstraint(requests, spec.distinct_attribute, are_distinct=True)
    return None


def compared(attribute: DeviceAttribute | None) -> _Compared | None:
    """Return type and value of an attribute; versions are compared as texts."""
    if attribute is None:
        return None
    written = (
        ("string", attribute.string),
        ("int", attribute.integer),
        ("bool", attribute.boolean),
        ("version", attribute.version),
    )
    return next(((kind, value) for kind, value in written if value is not None), None)
