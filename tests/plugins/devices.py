"""Small device objects for tests of the allocator."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kdsl.base.frozen_map import freeze
from kdsl.cluster.api.device_objects import Allocation, DeviceClass, ResourceClaim, ResourceSlice
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.plan.compile.device_conditions import CelConditions
from msgspec import convert, to_builtins

from kdsl_plugins.dynamic_resources.allocator import Allocator

DRIVER = "gpu.example.com"
CLASS = convert({"metadata": {"name": "gpu"}}, DeviceClass)
CONDITIONS = CelConditions()


def node(name: str = "n1", **labels: str) -> NodeInfo:
    """Return a node; `_` in names of labels stands for `-`."""
    facts = NodeFacts(name, freeze({key.replace("_", "-"): value for key, value in labels.items()}))
    return NodeInfo.of(facts)


def device(name: str, attributes: Mapping[str, Any] = {}, **fields: Any) -> dict[str, Any]:
    """Return a device; attributes are values of Python, versions begin with `v`."""
    return {
        "name": name,
        "attributes": {key: attribute(value) for key, value in attributes.items()},
        **fields,
    }


def attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    return {"version": value[1:]} if value[:1] == "v" and value[1:2].isdigit() else {"string": value}


def slice_of(
    *devices: str | dict[str, Any],
    name: str = "",
    node_name: str = "n1",
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    **fields: Any,
) -> ResourceSlice:
    """Return a slice, of the node `n1` unless `fields` say where it is."""
    places = {"nodeSelector", "allNodes", "perDeviceNodeSelection"}
    where = {} if places & fields.keys() else {"nodeName": node_name}
    pool = pool or node_name
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        "devices": [device(each) if isinstance(each, str) else each for each in devices],
    }
    return convert(
        {"metadata": {"name": name or f"{pool}-{driver}"}, "spec": spec | where | fields}, ResourceSlice
    )


def request(name: str = "r", count: int | str = 1, *selectors: str, **fields: Any) -> dict[str, Any]:
    """Return an exact request, for all devices if `count` is `All`."""
    amount = {"allocationMode": "All"} if count == "All" else {"allocationMode": "ExactCount", "count": count}
    written = {"selectors": [{"cel": {"expression": each}} for each in selectors]} if selectors else {}
    return {"name": name, "exactly": {"deviceClassName": "gpu"} | amount | written | fields}


def either(name: str, *alternatives: dict[str, Any]) -> dict[str, Any]:
    """Return a request for the first of some requests."""
    return {"name": name, "firstAvailable": [{"name": one["name"], **one["exactly"]} for one in alternatives]}


def claim(*requests: dict[str, Any], name: str = "c", **fields: Any) -> ResourceClaim:
    """Return a claim of namespace `default`."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return convert({"metadata": meta, "spec": {"devices": {"requests": requests, **fields}}}, ResourceClaim)


def allocated(*devices: str, name: str = "other", pool: str = "n1", **fields: Any) -> ResourceClaim:
    """Return a claim that has devices of the pool `n1`."""
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": each, **fields} for each in devices]
    meta = {"name": name, "namespace": "default"}
    return convert(
        {"metadata": meta, "status": {"allocation": {"devices": {"results": results}}}}, ResourceClaim
    )


def allocator(
    claims: ResourceClaim | Sequence[ResourceClaim],
    slices: Iterable[ResourceSlice],
    in_use: Iterable[ResourceClaim] = (),
    classes: Iterable[DeviceClass] = (CLASS,),
) -> Allocator:
    wanted = [claims] if isinstance(claims, ResourceClaim) else claims
    return Allocator.of(wanted, {each.metadata.name: each for each in classes}, slices, in_use, CONDITIONS)


def results(found: tuple[Allocation, ...] | None) -> list[list[str]] | None:
    """Return `request: device` of each claim's allocation, None where there is none."""
    if found is None:
        return None
    return [[f"{one.request}: {one.device}" for one in each.devices.results] for each in found]


def written(found: tuple[Allocation, ...] | None) -> list[dict[str, Any]]:
    """Return allocations as the status of a claim has them."""
    return [] if found is None else [to_builtins(each) for each in found]
