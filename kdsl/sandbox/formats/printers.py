"""The cells of Tables: the row that `kubectl get` shows of an object of each kind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from kdsl.sandbox.formats.pod_printer import pod_cells
from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.times import seconds_between

Cells = list[Any]
_NONE: Final = "<none>"
_UNKNOWN: Final = "<unknown>"
_MODES: Final = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip
_ROLE: Final = "node-role.kubernetes.io/"


def age(stamp: str | None, now: datetime) -> str:
    """Return the age of a time in kubectl's notation: `5s`, `3m20s`, `2d`."""
    if not stamp:
        return _UNKNOWN
    seconds = max(0, int(seconds_between(stamp, now)))
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        rest = seconds % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def _base(body: Json, now: datetime) -> tuple[str, str]:
    metadata = body["metadata"]
    return metadata["name"], age(metadata.get("creationTimestamp"), now)


def _pod(body: Json, now: datetime) -> Cells:
    return pod_cells(body, _base(body, now)[1], lambda stamp: age(stamp, now))


def _node(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    status = body["status"]
    words = [
        "Ready" if item.get("status") == "True" else "NotReady"
        for item in status.get("conditions", ())
        if item.get("type") == "Ready"
    ] or ["Unknown"]
    if body["spec"].get("unschedulable"):
        words.append("SchedulingDisabled")
    labels = body["metadata"].get("labels") or {}
    roles = sorted(label.removeprefix(_ROLE) for label in labels if label.startswith(_ROLE))
    facts = status["nodeInfo"]
    addresses = {item.get("type"): item.get("address", "") for item in reversed(status.get("addresses", ()))}
    return [
        name,
        ",".join(words),
        ",".join(roles) or _NONE,
        made,
        facts["kubeletVersion"],
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        *(facts[part] or _UNKNOWN for part in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _namespace(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    return [name, body["status"]["phase"], made]


def _config_map(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    return [name, str(len(body.get("data", ())) + len(body.get("binaryData", ()))), made]


def _event(body: Json, now: datetime) -> Cells:
    involved, series = body["involvedObject"], body.get("series") or {}
    first = body.get("firstTimestamp") or body.get("eventTime")
    last = series.get("lastObservedTime") or body.get("lastTimestamp") or first
    source = body.get("source") or {}
    who = source.get("component") or body.get("reportingComponent", "")
    host = source.get("host") or body.get("reportingInstance", "")
    return [
        age(last, now),
        body.get("type", ""),
        body.get("reason", ""),
        f"{involved.get('kind', '').lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        f"{who}, {host}" if host else who,
        body.get("message", "").strip(),
        age(first, now),
        series.get("count") or body.get("count") or 1,
        body["metadata"]["name"],
    ]


def _selector(body: Json) -> str:
    selector = body["spec"].get("selector") or {}
    labels = selector.get("matchLabels", selector)
    pairs = (f"{name}={value}" for name, value in sorted(labels.items()) if isinstance(value, str))
    return ",".join(pairs) or _NONE


def _containers(body: Json) -> tuple[str, str]:
    containers = body["spec"].get("template", {}).get("spec", {}).get("containers", ())
    return (
        ",".join(item.get("name", "") for item in containers),
        ",".join(item.get("image", "") for item in containers),
    )


def _service(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    spec = body["spec"]
    ports = ",".join(f"{item.get('port')}/{item.get('protocol')}" for item in spec.get("ports", ()))
    address = spec.get("clusterIP", _NONE)
    return [
        name,
        spec["type"],
        address,
        spec.get("externalName", _NONE),
        ports or _NONE,
        made,
        _selector(body),
    ]


def _deployment(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    status = body.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{body['spec'].get('replicas', 1)}"
    counts = (status.get("updatedReplicas", 0), status.get("availableReplicas", 0))
    return [name, ready, *counts, made, *_containers(body), _selector(body)]


def _replicated(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    status = body.get("status", {})
    counts = (body["spec"].get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0))
    return [name, *counts, made, *_containers(body), _selector(body)]


def _controller(body: Json, now: datetime) -> Cells:
    return _replicated(body, now)[:5]


def _stateful_set(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    ready = f"{body.get('status', {}).get('readyReplicas', 0)}/{body['spec'].get('replicas', 1)}"
    return [name, ready, made, *_containers(body)]


def _job(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    spec, status = body["spec"], body.get("status", {})
    done = [item["type"] for item in status.get("conditions", ()) if item["status"] == "True"]
    word = done[0] if done else "Suspended" if spec.get("suspend") else "Running"
    return [name, word, f"{status.get('succeeded', 0)}/{spec.get('completions', 1)}", made]


def _modes(values: list[str]) -> str:
    return ",".join(_MODES.get(value, value) for value in values)


def _claim(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    spec, status = body["spec"], body["status"]
    volume = spec.get("volumeName", "")
    capacity = status.get("capacity", {}).get("storage", "0") if volume else ""
    modes = _modes(status.get("accessModes", [])) if volume else ""
    phase = "Terminating" if "deletionTimestamp" in body["metadata"] else status["phase"]
    classes = (spec.get("storageClassName", ""), spec.get("volumeAttributesClassName", "<unset>"))
    return [name, phase, volume, capacity, modes, *classes, made, spec.get("volumeMode", "<unset>")]


def _volume(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    spec = body["spec"]
    owner = spec.get("claimRef") or {}
    claim = f"{owner.get('namespace', '')}/{owner.get('name', '')}" if owner else ""
    capacity = spec.get("capacity", {}).get("storage", "")
    rest = (
        "Terminating" if "deletionTimestamp" in body["metadata"] else body["status"]["phase"],
        claim,
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", "<unset>"),
        body["status"].get("reason", ""),
        made,
        spec.get("volumeMode", "<unset>"),
    )
    return [name, capacity, _modes(spec.get("accessModes", [])), spec["persistentVolumeReclaimPolicy"], *rest]


def _budget(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    spec = body["spec"]
    limits = (str(spec.get("minAvailable", "N/A")), str(spec.get("maxUnavailable", "N/A")))
    return [name, *limits, body["status"]["disruptionsAllowed"], made]


def _priority_class(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    return [name, body["value"], body.get("globalDefault", False), made, body["preemptionPolicy"]]


def _storage_class(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    parts = (body.get("provisioner", ""), body["reclaimPolicy"], body["volumeBindingMode"])
    return [name, *parts, body.get("allowVolumeExpansion", False), made]


def _lease(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    return [name, body["spec"].get("holderIdentity", ""), made]


def _resource_claim(body: Json, now: datetime) -> Cells:
    name, made = _base(body, now)
    status = body.get("status", {})
    words = ["allocated"] if "allocation" in status else ["pending"]
    if status.get("reservedFor"):
        words.append("reserved")
    return [name, ",".join(words), made]


CELLS: Final[dict[str, Callable[[Json, datetime], Cells]]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "configmaps": _config_map,
    "events": _event,
    "services": _service,
    "deployments.apps": _deployment,
    "replicasets.apps": _replicated,
    "replicationcontrollers": _controller,
    "statefulsets.apps": _stateful_set,
    "jobs.batch": _job,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "poddisruptionbudgets.policy": _budget,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "storageclasses.storage.k8s.io": _storage_class,
    "leases.coordination.k8s.io": _lease,
    "resourceclaims.resource.k8s.io": _resource_claim,
}
"""The cells by collection; other kinds show their name and age."""
