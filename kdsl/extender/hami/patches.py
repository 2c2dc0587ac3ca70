"""The changes of admission to a pod as a JSON patch, which contains the changed fields only.

Unknown fields stay. The order of the operations: the scheduler's name, the containers (`initContainers`
first; limits, requests and environment of each), the runtime class, the annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kdsl.base.quantity import Quantity
from kdsl.cluster.devices.pods import DeviceContainer, DevicePod

Json = dict[str, Any]


def patch_of(raw: Json, before: DevicePod, after: DevicePod, scheduler: str) -> list[Json]:
    """Return the operations that change the pod `raw`, decoded as `before`, into `after`.

    `scheduler` is its new `schedulerName`; empty: it stays.
    """
    spec = raw.get("spec") or {}
    patch: list[Json] = []
    if scheduler and spec.get("schedulerName") != scheduler:
        patch.append(_set(spec, "/spec", "schedulerName", scheduler))
    paths = _paths(spec)
    for (path, written), old, new in zip(paths, before.containers, after.containers, strict=True):
        patch += _container(path, written, old, new)
    if after.runtime_class != before.runtime_class:
        patch.append(_set(spec, "/spec", "runtimeClassName", after.runtime_class))
    texts = {key: text for key, text in after.annotations.items() if before.annotations.get(key) != text}
    return [*patch, *_entries(raw.get("metadata") or {}, "/metadata", "annotations", texts)]


def _paths(spec: Json) -> list[tuple[str, Json]]:
    """Return the path and the JSON of each container, in the order of `DevicePod.containers`."""
    return [
        (f"/spec/{key}/{number}", each)
        for key in ("initContainers", "containers")
        for number, each in enumerate(spec.get(key) or ())
    ]


def _container(path: str, written: Json, old: DeviceContainer, new: DeviceContainer) -> Iterator[Json]:
    amounts = {
        key: {name: str(amount) for name, amount in after.items() if _differs(before.get(name), amount)}
        for key, before, after in (
            ("limits", old.limits, new.limits), ("requests", old.requests, new.requests)
        )
    }  # fmt: skip
    amounts = {key: texts for key, texts in amounts.items() if texts}
    resources = written.get("resources")
    if amounts and resources is None:
        yield _set(written, path, "resources", amounts)
    elif amounts:
        for key, texts in amounts.items():
            yield from _entries(resources or {}, f"{path}/resources", key, texts)
    added = [{"name": name, "value": text} for name, text in new.env[len(old.env) :]]
    if added and not written.get("env"):
        yield _set(written, path, "env", added)
    elif added:
        yield from ({"op": "add", "path": f"{path}/env/-", "value": each} for each in added)


def _differs(before: Quantity | None, after: Quantity) -> bool:
    return before is None or before != after


def _entries(owner: Json, path: str, key: str, texts: Mapping[str, str]) -> Iterator[Json]:
    """Yield the operations that set entries of an object's map, which may be missing."""
    there = owner.get(key)
    if texts and there is None:
        yield _set(owner, path, key, dict(texts))
    elif texts:
        for name, text in texts.items():
            yield _set(there or {}, f"{path}/{key}", name, text)


def _set(owner: Json, path: str, key: str, value: object) -> Json:
    """Return the operation that sets a member of an object."""
    escaped = key.replace("~", "~0").replace("/", "~1")
    return {"op": "replace" if key in owner else "add", "path": f"{path}/{escaped}", "value": value}
