"""The short forms of fixtures as edits of Kubernetes manifests: `cpu: "4"` to `status.allocatable.cpu`.

A fixture is a blank manifest, or the one of its `like` fixture, with one edit for every key. `fixtures`
applies them; the result is then read and validated like any object from a cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from kdsl.cluster.api.kinds import KINDS
from kdsl.cluster.read.pod_classes import PRIORITY_CLASS

Manifest = dict[str, Any]
Edit = Callable[[Manifest, Any], None]
"""Writes the value of one short-form key into a manifest."""

_TAINT: Final = re.compile(r"(?P<key>[^=:]*)(=(?P<value>[^:]*))?(:(?P<effect>[A-Za-z]*))?")


def blank_node(name: str) -> Manifest:
    """Return a node with room for 110 pods and without other resources."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {},
        "status": {"allocatable": {"pods": "110"}},
    }


def blank_pod(name: str) -> Manifest:
    """Return a pod with one container without requests."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main"}]},
        "status": {},
    }


def merge(into: Manifest, patch: Mapping[str, Any]) -> None:
    """Merge mappings deeply, as JSON Merge Patch (RFC 7386) does: null deletes, lists are replaced."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, Mapping):
            below = into.get(key)
            target = below if isinstance(below, dict) else {}
            into[key] = target
            merge(target, value)
        else:
            into[key] = value


def _merging(*path: str) -> Edit:
    """Merge a mapping into the one at `path`."""

    def edit(manifest: Manifest, value: Any) -> None:
        for step in reversed(path):
            value = {step: value}
        merge(manifest, value)

    return edit


def _listing(convert: Callable[[Any], Any], *path: str) -> Edit:
    """Replace the list at `path` by the converted items of another."""
    write = _merging(*path)
    return lambda manifest, value: write(manifest, [convert(item) for item in value])


def _annotations(manifest: Manifest, value: Any) -> None:
    """Merge annotations; a value that is no text is written as JSON."""
    texts = {
        key: text if text is None or isinstance(text, str) else json_of(text) for key, text in value.items()
    }
    _merging("metadata", "annotations")(manifest, texts)


def json_of(value: Any) -> str:
    """Return JSON without blanks, its keys in the order of the file."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _in_container(*path: str) -> Edit:
    """Merge into the first container."""
    write = _merging(*path)

    def edit(manifest: Manifest, value: Any) -> None:
        containers = manifest.setdefault("spec", {}).setdefault("containers", [{"name": "main"}])
        write(containers[0], value)

    return edit


def _images(manifest: Manifest, value: Any) -> None:
    """Give the pod one container per image; the first container keeps its other fields."""
    containers = manifest["spec"]["containers"]
    first = {**containers[0], "image": value[0]}
    rest = [{"name": f"extra-{at}", "image": image} for at, image in enumerate(value[1:], start=1)]
    manifest["spec"]["containers"] = [first, *rest]


def _taint(written: Any) -> Any:
    """Read `key=value:Effect` or `key:Effect`; mappings are as in the API."""
    if not isinstance(written, str):
        return written
    key, value, effect = _parts(written)
    return {"key": key, "value": value or "", "effect": effect or ""}


def _toleration(written: Any) -> Any:
    """Read a toleration in the form of a taint: without a value it tolerates every value, without an effect
    every effect.
    """
    if not isinstance(written, str):
        return written
    key, value, effect = _parts(written)
    found = {"key": key, "operator": "Exists"} if value is None else {"key": key, "value": value}
    return {**found, "effect": effect} if effect else found


def _parts(written: str) -> tuple[str, str | None, str | None]:
    found = _TAINT.fullmatch(written)
    return (found["key"], found["value"], found["effect"]) if found else (written, None, None)


NODE_EDITS: Final[Mapping[str, Edit]] = {
    "metadata": _merging("metadata"),
    "spec": _merging("spec"),
    "status": _merging("status"),
    "cpu": _merging("status", "allocatable", "cpu"),
    "memory": _merging("status", "allocatable", "memory"),
    "pods": _merging("status", "allocatable", "pods"),
    "allocatable": _merging("status", "allocatable"),
    "capacity": _merging("status", "capacity"),
    "labels": _merging("metadata", "labels"),
    "annotations": _annotations,
    "taints": _listing(_taint, "spec", "taints"),
    "unschedulable": _merging("spec", "unschedulable"),
    "images": lambda manifest, value: merge(
        manifest,
        {"status": {"images": [{"names": [name], "sizeBytes": size} for name, size in value.items()]}},
    ),
}
"""The keys of a node, in the order in which they are applied."""

POD_EDITS: Final[Mapping[str, Edit]] = {
    "metadata": _merging("metadata"),
    "spec": _merging("spec"),
    "status": _merging("status"),
    "images": _images,
    "namespace": _merging("metadata", "namespace"),
    "cpu": _in_container("resources", "requests", "cpu"),
    "memory": _in_container("resources", "requests", "memory"),
    "requests": _in_container("resources", "requests"),
    "limits": _in_container("resources", "limits"),
    "labels": _merging("metadata", "labels"),
    "annotations": _annotations,
    "tolerations": _listing(_toleration, "spec", "tolerations"),
    "nodeSelector": _merging("spec", "nodeSelector"),
    "nodeName": _merging("spec", "nodeName"),
    "priority": _merging("spec", "priority"),
    "schedulerName": _merging("spec", "schedulerName"),
    "serviceAccount": _merging("spec", "serviceAccountName"),
    "schedulingGates": _listing(lambda name: {"name": name}, "spec", "schedulingGates"),
    "hostPorts": lambda manifest, value: _in_container("ports")(
        manifest, [{"containerPort": port, "hostPort": port} for port in value]
    ),
    "affinity": _merging("spec", "affinity"),
}
"""The keys of a pod, in the order in which they are applied. `on`, `count` and `like` are no edits."""


def manifest_of(blank: Manifest, edits: Mapping[str, Edit], written: Mapping[str, Any]) -> Manifest:
    """Apply the keys of a short form to a manifest in place; other keys are ignored."""
    for key, edit in edits.items():
        if written.get(key) is not None:
            edit(blank, deepcopy(written[key]))
    return blank


def objects_in(value: Any) -> Iterator[Manifest]:
    """Yield the objects of a document; a list as kubectl writes it counts as its items."""
    if not isinstance(value, dict):
        return
    items = value.get("items")
    kind = str(value.get("kind", ""))
    if isinstance(items, list) and kind.endswith("List"):
        for item in items:
            if isinstance(item, dict):
                api = value.get("apiVersion")
                implied = {"apiVersion": api, "kind": kind.removesuffix("List")} if kind != "List" else {}
                yield from objects_in({**implied, **item})
    elif (value.get("apiVersion"), kind) in (*KINDS, PRIORITY_CLASS):
        yield value
