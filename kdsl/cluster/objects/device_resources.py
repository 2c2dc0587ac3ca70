"""Extended resources whose amounts are devices of a DeviceClass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kdsl.base.resources import is_extended
from kdsl.cluster.api.device_objects import DeviceClass

_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"
"""The beginning of the resource that each class offers; the name of the class follows."""


def offered_by(classes: Iterable[DeviceClass]) -> Mapping[str, DeviceClass]:
    """Return the classes by the resources that they offer.

    Of several classes with one resource the newest offers it; of classes of one age, the first by name.
    """
    offered = {}
    by_name = sorted(classes, key=lambda each: each.metadata.name, reverse=True)
    for each in sorted(by_name, key=_created):
        offered[_OF_CLASS + each.metadata.name] = each
        if is_extended(each.spec.extended_resource_name):
            offered[each.spec.extended_resource_name] = each
    return offered


def _created(device_class: DeviceClass) -> float:
    created = device_class.metadata.creation_timestamp
    return 0 if created is None else created.timestamp()
