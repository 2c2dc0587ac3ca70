"""Manifests of objects, kept from the input, so that a record contains the original objects."""

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
"""The kind of an object, and its `namespace/name`, or its name if it has no namespace."""

_NAMESPACED = frozenset(kind.KIND for kind in NAMESPACED)
_API_VERSIONS = {kind: version for version, kind in KINDS}


def object_id(thing: KubeObject) -> ObjectId:
    """Return the identity of an object."""
    meta = thing.metadata
    if isinstance(thing, Node):
        return Node.KIND, meta.name
    if isinstance(thing, Pod):
        return Pod.KIND, f"{meta.namespace}/{meta.name}"
    return thing.KIND, key_of(thing)


def manifest_id(manifest: Manifest) -> ObjectId:
    """Return the identity of a manifest's object, after defaulting."""
    kind, meta = str(manifest.get("kind")), _part(manifest.get("metadata"))
    name = str(meta.get("name"))
    return kind, f"{meta.get('namespace') or 'default'}/{name}" if kind in _NAMESPACED else name


def catalog_manifest(thing: CatalogObject) -> Manifest:
    """Return the manifest of an object that the scheduler made or changed."""
    fields: Manifest = msgspec.to_builtins(thing)
    return {"apiVersion": _API_VERSIONS[thing.KIND], "kind": thing.KIND, **fields}


def pod_manifest(
    source: Manifest,
    node: str,
    nominated: str | None = None,
    annotations: dict[str, str] | None = None,
) -> Manifest:
    """Return the manifest of a pod in its present state: with a node or pending (""), nominated or not (""),
    and with changed annotations. None leaves a field unchanged.
    """
    manifest = dict(source)
    manifest["spec"] = _with(source.get("spec"), nodeName=node)
    status = {} if nominated is None else {"nominatedNodeName": nominated}
    if _part(source.get("spec")).get("nodeName") and not node:
        # An evicted pod that returns has not started.
        status["startTime"] = ""
    if status:
        manifest["status"] = _with(source.get("status"), **status)
    if annotations is not None:
        manifest["metadata"] = _with(source.get("metadata"), annotations=annotations)
    return manifest


@dataclass(frozen=True, slots=True)
class KeptManifests:
    """The manifests that plugins read: objects as written, pods with their present node."""

    objects: Mapping[ObjectId, Manifest]

    def pod(self, pod: PodInfo) -> Manifest:
        source = self.objects[Pod.KIND, pod.key]
        return pod_manifest(source, pod.node_name, annotations=changed_annotations(source, pod))

    def node(self, node: NodeInfo) -> Manifest:
        return self.objects[Node.KIND, node.name]


def changed_annotations(source: Manifest, pod: PodInfo) -> dict[str, str] | None:
    """Return the annotations of a pod if they differ from the written ones, else None."""
    written = _part(source.get("metadata")).get("annotations") or {}
    return None if written == pod.annotations else dict(pod.annotations)


def _with(part: Any, **fields: Any) -> Manifest:
    """Return a part of a manifest with some fields set, or removed if empty."""
    merged = {**_part(part), **fields}
    return {key: value for key, value in merged.items() if value not in ("", None)}


def _part(value: Any) -> Manifest:
    """Return a part of a manifest; a record may hold anything in its place."""
    return value if isinstance(value, dict) else {}
