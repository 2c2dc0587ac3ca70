"""The fields that a field selector may name, and their values in an object."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

METADATA: Final = ("metadata.name", "metadata.namespace")
"""The fields that selectors of all kinds may name."""
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "secrets": ("type",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
        "reason", "reportingComponent", "source", "type",
    ),
}  # fmt: skip
_BOOLEANS: Final = frozenset({"spec.unschedulable", "spec.hostNetwork"})
_NUMBERS: Final = frozenset({"status.replicas", "status.successful"})


def selectable_fields(body: Json) -> tuple[str, ...] | None:
    """Return the scheduling fields of a pod, which nearly every watch selects by; None for other kinds.

    The values stand in the order of `FIELDS["pods"]`; other fields are read from the object on demand.
    """
    spec = body.get("spec")
    if not isinstance(spec, dict) or "containers" not in spec:
        return None
    status = body.get("status") or {}
    return (
        spec.get("nodeName", ""),
        spec.get("restartPolicy", ""),
        spec.get("schedulerName", ""),
        spec.get("serviceAccountName", ""),
        "true" if spec.get("hostNetwork") else "false",
        status.get("phase", ""),
        status.get("podIP", ""),
        status.get("nominatedNodeName", ""),
    )


def names(collection: str, group: str) -> tuple[str, ...]:
    """Return the field labels of a resource in the spelling of its API version."""
    fields = FIELDS.get(collection, ())
    if collection == "events" and group:
        fields = tuple(_EVENT_ALIASES.get(name, name) for name in fields)
    return METADATA + fields


def value(body: Json, name: str) -> str:
    """Return the value of a field label in an object."""
    name = _EVENT_NAMES.get(name, name)
    if name == "source" and isinstance(body.get("source"), dict):
        return str(body["source"].get("component", "") or body.get("reportingComponent", ""))
    found: Any = body
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if name in _BOOLEANS:
        return "true" if found else "false"
    if name in _NUMBERS:
        return str(found or 0)
    return "" if found is None else str(found)


_EVENT_ALIASES: Final = {
    **{
        f"involvedObject.{part}": f"regarding.{part}"
        for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
    "reportingComponent": "reportingController",
}
_EVENT_NAMES: Final = {alias: name for name, alias in _EVENT_ALIASES.items()}
