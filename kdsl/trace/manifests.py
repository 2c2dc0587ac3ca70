"""Objects as they are written: kept from the input, so that a trace holds what its reader will read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from kdsl.cluster.api.kinds import KINDS, NAMESPACED, CatalogObject, KubeObject
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import Manifest
from kdsl.cluster.snapshot.catalog import key_of

ObjectId: TypeAlias = tuple[str, str]
"""The kind of an object, and its `namespace/name`, or its name where it is in no namespace."""

_NAMESPACED = frozenset(kind.KIND for kind in NAMESPACED)
_API_VERSIONS = {kind: version for version, kind in KINDS}


def object_id(thing: KubeObject) -> ObjectId:
    """Return what an object is known by."""
    meta = thing.metadata
    if isinstance(thing, Node):
        return Node.KIND, meta.name
    if isinstance(thing, Pod):
        return Pod.KIND, f"{meta.namespace}/{meta.name}"
    return thing.KIND, key_of(thing)


def manifest_id(manifest: Manifest) -> ObjectId:
    """Return what the object of a manifest is known by, once its defaults are filled in."""
    kind, meta = str(manifest.get("kind")), manifest.get("metadata") or {}
    name = str(meta.get("name"))
    return kind, f"{meta.get('namespace') or 'default'}/{name}" if kind in _NAMESPACED else name


def catalog_manifest(thing: CatalogObject) -> Manifest:
    """Write an object that the scheduler made or changed."""
    fields: Manifest = msgspec.to_builtins(thing)
    return {"apiVersion": _API_VERSIONS[thing.KIND], "kind": thing.KIND, **fields}


def pod_manifest(
    source: Manifest,
    node: str,
    nominated: str | None = None,
    annotations: dict[str, str] | None = None,
) -> Manifest:
    """Write a pod as it is now: on a node, or pending (""), promised a node or none (""), and with other
    annotations. None leaves what is written.
    """
    manifest = dict(source)
    manifest["spec"] = _with(source.get("spec"), nodeName=node)
    status = {} if nominated is None else {"nominatedNodeName": nominated}
    if (source.get("spec") or {}).get("nodeName") and not node:
        # A pod that comes back after its eviction has not started.
        status["startTime"] = ""
    if status:
        manifest["status"] = _with(source.get("status"), **status)
    if annotations is not None:
        manifest["metadata"] = _with(source.get("metadata"), annotations=annotations)
    return manifest


@dataclass(frozen=True, slots=True)
class KeptManifests:
    """What plugins are shown: the objects as they were written, pods where they are by now."""

    objects: Mapping[ObjectId, Manifest]

    def pod(self, pod: PodInfo) -> Manifest:
        source = self.objects[Pod.KIND, pod.key]
        return pod_manifest(source, pod.node_name, annotations=changed_annotations(source, pod))

    def node(self, node: NodeInfo) -> Manifest:
        return self.objects[Node.KIND, node.name]


def changed_annotations(source: Manifest, pod: PodInfo) -> dict[str, str] | None:
    """Return the annotations of a pod where they are not those that it was written with."""
    written = (source.get("metadata") or {}).get("annotations") or {}
    return None if written == pod.annotations else dict(pod.annotations)


def _with(part: Any, **fields: Any) -> Manifest:
    """Return a part of a manifest with some fields set, or taken out where they are empty."""
    merged = {**(part or {}), **fields}
    return {key: value for key, value in merged.items() if value not in ("", None)}
