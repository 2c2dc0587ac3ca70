"""The defaults that the server writes into objects of all kinds; `defaults.yaml` has the constant ones."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from kdsl.base.yaml_text import read_data_file
from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.rules.pod_defaults import default_pod, default_pod_spec, default_volume_source

_JOB: Final = "batch.kubernetes.io/"
_CONSTANT: Final = Path(__file__).with_name("defaults.yaml")
_CONTAINER_STATUS: Final[Json] = {
    "lastState": {}, "state": {}, "ready": False, "restartCount": 0, "image": "", "imageID": "",
}  # fmt: skip
_INTERNAL_SERVICE: Final[Json] = {
    "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
}  # fmt: skip


def apply_defaults(resource: Resource, body: Json) -> None:
    """Set the missing fields of an object to their defaults, in place."""
    default = _DEFAULTS.get(resource.collection)
    if default is not None:
        default(body)
    fill(body, _constant().get(resource.collection, {}))


def fill(body: Json, defaults: Json) -> None:
    """Set missing fields to constant defaults; an object in the defaults has those of the field's own."""
    for name, value in defaults.items():
        if isinstance(value, dict):
            fill(body.setdefault(name, {}), value)
        else:
            body.setdefault(name, list(value) if isinstance(value, list) else value)


@cache
def _constant() -> dict[str, Json]:
    """Return the defaults that depend on nothing else in the object, by collection."""
    found: dict[str, Json] = read_data_file(_CONSTANT)
    return found


def _pod(body: Json) -> None:
    default_pod(body.setdefault("spec", {}))
    for item in body.get("status", {}).get("conditions", ()):
        fill(item, {"lastProbeTime": None, "lastTransitionTime": None})
    for listed in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for item in body.get("status", {}).get(listed, ()):
            fill(item, _CONTAINER_STATUS)


def _node(body: Json) -> None:
    spec = body.setdefault("spec", {})
    if "podCIDR" in spec and spec.get("podCIDRs", [""])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    status = body.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))
    for item in status.get("conditions", ()):
        fill(item, {"lastHeartbeatTime": None, "lastTransitionTime": None})


def _namespace(body: Json) -> None:
    name = body["metadata"].get("name", "")
    body["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _service(body: Json) -> None:
    spec = body.setdefault("spec", {})
    if spec.setdefault("type", "ClusterIP") != "ExternalName":
        if spec.get("clusterIP"):
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
        fill(spec, _INTERNAL_SERVICE)
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _daemon_set(body: Json) -> None:
    _template(body)
    _roll(body["spec"].setdefault("updateStrategy", {}), {"maxUnavailable": 1, "maxSurge": 0})


def _roll(strategy: Json, defaults: Json) -> None:
    """Set the defaults of the strategy `RollingUpdate`, which is that of objects without one."""
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), defaults)


def _controller(body: Json) -> None:
    _template(body)
    labels = body["spec"]["template"]["metadata"].get("labels")
    if labels:
        body["spec"].setdefault("selector", dict(labels))
        body["metadata"].setdefault("labels", dict(labels))


def _secret(body: Json) -> None:
    texts = body.pop("stringData", {})
    if texts:
        data = body.setdefault("data", {})
        data.update({name: b64encode(text.encode()).decode() for name, text in texts.items()})


def _limit_range(body: Json) -> None:
    for limit in body.get("spec", {}).get("limits", ()):
        if limit.get("type") != "Container":
            continue
        defaults = {**limit.get("max", {}), **limit.get("default", {})}
        requests = {**limit.get("min", {}), **defaults, **limit.get("defaultRequest", {})}
        for name, amounts in (("default", defaults), ("defaultRequest", requests)):
            if amounts:
                limit[name] = amounts


def _template(body: Json) -> None:
    template = body.setdefault("spec", {}).setdefault("template", {})
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def _deployment(body: Json) -> None:
    _template(body)
    _roll(body["spec"].setdefault("strategy", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})


def _stateful_set(body: Json) -> None:
    _template(body)
    _roll(body["spec"].setdefault("updateStrategy", {}), {"partition": 0})


def _job(body: Json) -> None:
    _template(body)
    spec = body["spec"]
    if spec.get("manualSelector") or "uid" not in body["metadata"] or spec.get("selector"):
        return
    uid, name = body["metadata"]["uid"], body["metadata"].get("name", "")
    spec["selector"] = {"matchLabels": {f"{_JOB}controller-uid": uid}}
    marks = {"controller-uid": uid, "job-name": name}
    labels = spec["template"]["metadata"].setdefault("labels", {})
    labels.update(marks | {f"{_JOB}{key}": value for key, value in marks.items()})


def _volume(body: Json) -> None:
    default_volume_source(body.setdefault("spec", {}))


def _default_requests(spec: Json) -> None:
    for request in spec.get("devices", {}).get("requests", ()):
        wanted = [*request.get("firstAvailable", ())]
        if "exactly" in request:
            wanted.append(request["exactly"])
        for one in wanted:
            if one.setdefault("allocationMode", "ExactCount") == "ExactCount":
                one.setdefault("count", 1)


def _resource_claim(body: Json) -> None:
    _default_requests(body.setdefault("spec", {}))


def _claim_template(body: Json) -> None:
    _default_requests(body.setdefault("spec", {}).setdefault("spec", {}))


_DEFAULTS: Final[dict[str, Callable[[Json], None]]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "services": _service,
    "replicationcontrollers": _controller,
    "secrets": _secret,
    "limitranges": _limit_range,
    "replicasets.apps": _template,
    "deployments.apps": _deployment,
    "daemonsets.apps": _daemon_set,
    "statefulsets.apps": _stateful_set,
    "jobs.batch": _job,
    "persistentvolumes": _volume,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "resourceclaimtemplates.resource.k8s.io": _claim_template,
}
"""The defaults that depend on other fields; they come first."""
