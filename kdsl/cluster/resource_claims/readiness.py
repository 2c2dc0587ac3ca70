"""Devices that get ready only after their allocation: a pod is bound once drivers report their conditions."""

from __future__ import annotations

import json
from typing import Final

from kdsl.cluster.api.device_objects import AllocatedDevice, DeviceStatus, ResourceClaim

READY_TIMEOUT: Final = 600.0
"""The seconds after the allocation until which devices must be ready."""
_TRUE: Final = "True"


class NotUsableError(Exception):
    """A driver reports that a device of a claim cannot be used. The text is kube-scheduler's."""


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether drivers report all binding conditions of a claim's devices; NotUsableError where one
    reports a failure.
    """
    for device in _waiting(claim):
        status = _status_of(claim, device)
        if status is None:
            return False
        reported = {each.type: each for each in status.conditions}
        for name in device.binding_failure_conditions:
            failed = reported.get(name)
            if failed is not None and failed.status == _TRUE:
                text = f"reason={failed.reason}, message={json.dumps(failed.message, ensure_ascii=False)}"
                raise NotUsableError(f"claim {claim.metadata.name} binding failed: {text}")
        if any(name not in reported or reported[name].status != _TRUE for name in device.binding_conditions):
            return False
    return True


def is_late(claim: ResourceClaim, now: int) -> bool:
    """Return whether a claim has devices with conditions whose time to get ready is over at `now`, in
    nanoseconds.
    """
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not _waiting(claim):
        return False
    return allocation.allocation_timestamp.timestamp() + READY_TIMEOUT < now / 1e9


def is_usable(claim: ResourceClaim, now: int) -> bool:
    """Return whether a claim's devices are ready, or may still get ready."""
    try:
        return is_ready(claim) or not is_late(claim, now)
    except NotUsableError:
        return False


def _waiting(claim: ResourceClaim) -> list[AllocatedDevice]:
    allocation = claim.status.allocation
    return [] if allocation is None else [one for one in allocation.devices.results if one.binding_conditions]


def _status_of(claim: ResourceClaim, device: AllocatedDevice) -> DeviceStatus | None:
    key = (device.driver, device.pool, device.device)
    return next((one for one in claim.status.devices if (one.driver, one.pool, one.device) == key), None)
