"""Checks of device classes, claims and slices; part of `validate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kdsl.base.diagnostic import did_you_mean
from kdsl.base.paths import Path
from kdsl.cluster.api.device_objects import (
    ALL_DEVICES,
    EXACT_COUNT,
    ClaimRequest,
    Counter,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    ResourceClaim,
    ResourceSlice,
)
from kdsl.cluster.api.kinds import DeviceObject
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.validate_amounts import check_amount
from kdsl.cluster.read.validate_selectors import check_node_selector
from kdsl.cluster.read.validate_words import ONE_OF_THEM, check_known, one_of

ALLOCATION_MODES: Final = (EXACT_COUNT, ALL_DEVICES)
TAINT_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
_REQUESTS: Final[Path] = ("spec", "devices", "requests")


def check_device_object(api_object: DeviceObject, problems: Problems) -> None:
    """Check the fields of an object that allocations depend on."""
    match api_object:
        case DeviceClass():
            _check_selectors(api_object.spec.selectors, ("spec", "selectors"), problems)
        case ResourceClaim():
            _check_claim(api_object, problems)
        case ResourceSlice():
            _check_slice(api_object, problems)


def _check_claim(claim: ResourceClaim, problems: Problems) -> None:
    devices = claim.spec.devices
    _check_names([each.name for each in devices.requests], _REQUESTS, "request", problems)
    names: set[str] = set()
    for i, request in enumerate(devices.requests):
        names.add(request.name)
        names.update(f"{request.name}/{each.name}" for each in request.first_available)
        _check_request(request, (*_REQUESTS, i), problems)
    for i, constraint in enumerate(devices.constraints):
        path: Path = ("spec", "devices", "constraints", i)
        _check_constraint(constraint, path, problems)
        _check_requests(constraint.requests, names, (*path, "requests"), problems)
    for i, config in enumerate(devices.config):
        _check_requests(config.requests, names, ("spec", "devices", "config", i, "requests"), problems)


def _check_request(request: ClaimRequest, path: Path, problems: Problems) -> None:
    if (request.exactly is None) == (not request.first_available):
        title = "a request needs either `exactly` or `firstAvailable`"
        problems.add(InputCode.VALUE, path, title, ONE_OF_THEM)
    if request.exactly is not None:
        _check_devices(request.exactly, (*path, "exactly"), problems)
    names = [each.name for each in request.first_available]
    _check_names(names, (*path, "firstAvailable"), "alternative", problems)
    for i, each in enumerate(request.first_available):
        _check_devices(each, (*path, "firstAvailable", i), problems)


def _check_devices(request: DeviceRequest, path: Path, problems: Problems) -> None:
    if not request.device_class_name:
        problems.add(InputCode.MISSING, (*path, "deviceClassName"), "the name of a device class is needed")
    mode, count = request.allocation_mode, request.count
    if mode not in ("", *ALLOCATION_MODES):
        check_known(mode, ALLOCATION_MODES, (*path, "allocationMode"), problems)
    elif count < 0 or (count and mode == ALL_DEVICES):
        title = f"{count} is not a number of devices" if count < 0 else "`All` devices have no count"
        problems.add(InputCode.VALUE, (*path, "count"), title, "leave `count` out, or write 1 or more")
    _check_selectors(request.selectors, (*path, "selectors"), problems)
    if request.capacity is not None:
        for name, amount in request.capacity.requests.items():
            check_amount(amount, (*path, "capacity", "requests", name), problems)


def _check_selectors(selectors: Sequence[DeviceSelector], path: Path, problems: Problems) -> None:
    for i, selector in enumerate(selectors):
        if selector.cel is None or not selector.cel.expression:
            problems.add(InputCode.MISSING, (*path, i, "cel", "expression"), "a CEL expression is needed")


def _check_constraint(constraint: DeviceConstraint, path: Path, problems: Problems) -> None:
    if (constraint.match_attribute is None) == (constraint.distinct_attribute is None):
        title = "a constraint needs either `matchAttribute` or `distinctAttribute`"
        problems.add(InputCode.VALUE, path, title, ONE_OF_THEM)


def _check_requests(requests: Sequence[str], names: set[str], path: Path, problems: Problems) -> None:
    for i, name in enumerate(requests):
        if name not in names:
            help = did_you_mean(name, sorted(names)) or (one_of(sorted(names)),)
            problems.add(InputCode.VALUE, (*path, i), f"the claim has no request `{name}`", *help)


def _check_slice(api_object: ResourceSlice, problems: Problems) -> None:
    spec = api_object.spec
    if not spec.driver:
        problems.add(InputCode.MISSING, ("spec", "driver"), "a slice needs a driver")
    if not spec.pool.name:
        problems.add(InputCode.MISSING, ("spec", "pool", "name"), "a slice needs the name of its pool")
    if spec.pool.resource_slice_count < 1:
        title = "the number of slices of the pool is needed"
        problems.add(InputCode.MISSING, ("spec", "pool", "resourceSliceCount"), title)
    places = (bool(spec.node_name), spec.node_selector is not None, spec.all_nodes)
    if (*places, spec.per_device_node_selection).count(True) != 1:
        title = "one of `nodeName`, `nodeSelector`, `allNodes` and `perDeviceNodeSelection` is needed"
        problems.add(InputCode.VALUE, ("spec",), title, ONE_OF_THEM)
    if spec.node_selector is not None:
        check_node_selector(spec.node_selector, ("spec", "nodeSelector"), problems)
    for i, counters in enumerate(spec.shared_counters):
        _check_counters(counters.counters, ("spec", "sharedCounters", i, "counters"), problems)
    _check_names([device.name for device in spec.devices], ("spec", "devices"), "device", problems)
    for i, device in enumerate(spec.devices):
        _check_device(device, ("spec", "devices", i), problems)


def _check_device(device: Device, path: Path, problems: Problems) -> None:
    for name, attribute in device.attributes.items():
        values = (attribute.integer, attribute.boolean, attribute.string, attribute.version)
        if sum(value is not None for value in values) > 1:
            title = "an attribute has one of `int`, `bool`, `string` and `version`"
            problems.add(InputCode.VALUE, (*path, "attributes", name), title, ONE_OF_THEM)
    for name, capacity in device.capacity.items():
        check_amount(capacity.value, (*path, "capacity", name, "value"), problems)
    for i, consumed in enumerate(device.consumes_counters):
        _check_counters(consumed.counters, (*path, "consumesCounters", i, "counters"), problems)
    for i, taint in enumerate(device.taints):
        check_known(taint.effect, TAINT_EFFECTS, (*path, "taints", i, "effect"), problems, "taint effect")
    if device.node_selector is not None:
        check_node_selector(device.node_selector, (*path, "nodeSelector"), problems)


def _check_counters(counters: Mapping[str, Counter], path: Path, problems: Problems) -> None:
    for name, counter in counters.items():
        check_amount(counter.value, (*path, name, "value"), problems)


def _check_names(names: Sequence[str], path: Path, what: str, problems: Problems) -> None:
    for i, name in enumerate(names):
        if not name:
            problems.add(InputCode.MISSING, (*path, i, "name"), f"the {what} needs a name")
        elif name in names[:i]:
            title = f"a second {what} is named `{name}`"
            problems.add(InputCode.DUPLICATE_VALUE, (*path, i, "name"), title)
