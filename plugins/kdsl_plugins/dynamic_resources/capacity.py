"""The capacity that a request gets of a device: default, rounding and limits of the device's policy.

Facts of k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go, 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.base.quantity import NANOS_PER_UNIT, Quantity, QuantityFormat
from kdsl.cluster.api.device_objects import CapacityPolicy, CapacityRange, DeviceCapacity, DeviceRequest
from kdsl.cluster.api.objects import WrittenQuantity

from kdsl_plugins.dynamic_resources.amounts import read, total
from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.errors import AllocationError

_Used = Mapping[str, Quantity]


def share_of(request: DeviceRequest, device: PoolDevice, used: tuple[_Used, ...]) -> _Used | None:
    """Return the capacity that the request consumes, by name; None where the device has too little left or
    its policy forbids the amount. `used` is the consumption of others.
    """
    wanted = {} if request.capacity is None else request.capacity.requests
    offered = device.device.capacity
    if not offered.keys() >= wanted.keys():
        return None
    consumed: dict[str, Quantity] = {}
    for name, capacity in offered.items():
        what = f"device {device}, capacity {name}"
        amount = _consumed(wanted.get(name), capacity, what)
        if _violates(amount, capacity.request_policy, what):
            return None
        together = amount
        for others in used:
            if name in others:
                together = total(together, others[name], what)
        if together > read(capacity.value, what):
            return None
        consumed[name] = amount
    return consumed


def _consumed(wanted: WrittenQuantity | None, capacity: DeviceCapacity, what: str) -> Quantity:
    policy = capacity.request_policy
    if wanted is None:
        default = None if policy is None else policy.default
        return read(capacity.value if default is None else default, what)
    amount = read(wanted, f"{what}, request")
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded(amount, policy.valid_range, what)
    values = (read(each, what) for each in policy.valid_values)
    return next((value for value in values if amount <= value), amount)


def _rounded(amount: Quantity, valid: CapacityRange, what: str) -> Quantity:
    """Round up to the next step above the minimum, in whole units."""
    least = read(valid.min or 0, what)
    if amount < least:
        return least
    if valid.step is None:
        return amount
    step = _step(valid.step, what)
    steps = -((least.value() - amount.value()) // step)
    try:
        return Quantity((least.value() + step * steps) * NANOS_PER_UNIT, QuantityFormat.BINARY_SI)
    except OverflowError as error:
        raise AllocationError(f"{what}: {error}") from error


def _step(written: WrittenQuantity, what: str) -> int:
    step = read(written, what).value()
    if step <= 0:
        raise AllocationError(f"{what}: the step of the valid range is not above zero")
    return step


def _violates(amount: Quantity, policy: CapacityPolicy | None, what: str) -> bool:
    if policy is None or (policy.default is not None and amount == read(policy.default, what)):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > read(valid.max, what):
            return True
        if valid.step is None:
            return False
        return (amount.value() - read(valid.min or 0, what).value()) % _step(valid.step, what) != 0
    return bool(policy.valid_values) and all(amount != read(each, what) for each in policy.valid_values)
