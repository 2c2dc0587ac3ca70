"""The defaults that the server writes into pods and pod templates."""

from __future__ import annotations

from typing import Final

import msgspec

from kdsl.base.quantity import parse_quantity
from kdsl.cluster.api.objects import PodSpec
from kdsl.cluster.objects.requests import container_requests
from kdsl.sandbox.model.errors import Json

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_SOURCES: Final[dict[str, Json]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
}
"""The defaults of kinds of volumes."""


def default_pod(spec: Json) -> None:
    """Set the missing fields of a pod's spec to their defaults, and those that templates do not get."""
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for listed in _CONTAINER_LISTS:
        for container in spec.get(listed, ()):
            _default_requests(container["resources"])
            if spec.get("hostNetwork"):
                for port in container.get("ports", ()):
                    port.setdefault("hostPort", port.get("containerPort", 0))
    if spec.get("resources", {}).get("limits"):
        asked = container_requests(msgspec.convert(spec, PodSpec))
        for name in ("cpu", "memory"):
            if name in asked:
                spec["resources"].setdefault("requests", {}).setdefault(name, asked[name])
        _default_requests(spec["resources"])


def default_pod_spec(spec: Json) -> None:
    """Set the missing fields of a pod's spec, or of a template's, to their defaults."""
    for listed in _CONTAINER_LISTS:
        for container in spec.get(listed, ()):
            _default_container(container)
    for volume in spec.get("volumes", ()):
        _default_volume(volume)
    spec.setdefault("restartPolicy", "Always")
    if spec.get("terminationGracePeriodSeconds", 30) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for constraint in spec.get("topologySpreadConstraints", ()):
        constraint.setdefault("maxSkew", 1)
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])


def _default_requests(resources: Json) -> None:
    """Set a missing request to its limit."""
    for name, amount in resources.get("limits", {}).items():
        resources.setdefault("requests", {}).setdefault(name, amount)


def _default_container(container: Json) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", ()):
        _default_reference(variable.get("valueFrom", {}))
    for name in _PROBES:
        if name in container:
            _default_probe(container[name])
    for handler in container.get("lifecycle", {}).values():
        if isinstance(handler, dict):
            _default_request(handler)


def _default_reference(owner: Json) -> None:
    """Set the API version of a reference to a field of the pod."""
    if "fieldRef" in owner:
        owner["fieldRef"].setdefault("apiVersion", "v1")


def _default_request(handler: Json) -> None:
    if "httpGet" in handler:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if digest or (tag and tag != "latest") else "Always"


def _default_probe(probe: Json) -> None:
    _default_request(probe)
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1)):
        probe.setdefault(name, value)
    probe.setdefault("failureThreshold", 3)


def _default_volume(volume: Json) -> None:
    sources = volume.keys() - {"name"}
    if not sources:
        volume["emptyDir"] = {}
    for name in ("configMap", "secret", "downwardAPI", "projected"):
        if name in volume:
            volume[name].setdefault("defaultMode", 420)
    default_volume_source(volume)
    projected = volume.get("projected", {}).get("sources", ())
    for source in (volume, *projected):
        for item in source.get("downwardAPI", {}).get("items", ()):
            _default_reference(item)
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def default_volume_source(source: Json) -> None:
    """Set the missing fields of a volume of a pod, or of a PersistentVolume's spec."""
    for kind, defaults in _SOURCES.items():
        if kind in source:
            for name, value in defaults.items():
                source[kind].setdefault(name, value)


def quality_of_service(spec: Json) -> str:
    """Return the QoS class of a pod, by the requests and limits of cpu and memory; its own come before those
    of its containers.
    """
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    if any(spec.get("resources", {}).get(name) for name in ("requests", "limits")):
        containers = [spec]
    asked = False
    guaranteed = True
    for container in containers:
        resources = container.get("resources", {})
        requests, limits = resources.get("requests", {}), resources.get("limits", {})
        for name in ("cpu", "memory"):
            request, limit = requests.get(name), limits.get(name)
            asked = asked or any(value and not parse_quantity(value).is_zero for value in (request, limit))
            if limit is None or (request or limit) != limit or parse_quantity(limit).is_zero:
                guaranteed = False
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
