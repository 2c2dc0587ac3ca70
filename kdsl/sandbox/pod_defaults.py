"""The defaults that the server writes into pods and pod templates."""

from __future__ import annotations

from typing import Final

from kdsl.base.quantity import parse_quantity
from kdsl.sandbox.errors import Json

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def default_pod_spec(spec: Json) -> None:
    """Set the missing fields of a pod's spec to their defaults."""
    for listed in _CONTAINER_LISTS:
        for container in spec.get(listed, ()):
            _default_container(container, bool(spec.get("hostNetwork")))
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


def _default_container(container: Json, is_host_network: bool) -> None:
    resources = container.setdefault("resources", {})
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if is_host_network and port.get("containerPort"):
            port.setdefault("hostPort", port["containerPort"])
    for variable in container.get("env", ()):
        reference = variable.get("valueFrom", {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in _PROBES:
        if name in container:
            _default_probe(container[name])


def _pull_policy(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if digest or (tag and tag != "latest") else "Always"


def _default_probe(probe: Json) -> None:
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")
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
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def quality_of_service(spec: Json) -> str:
    """Return the QoS class of a pod, by the requests and limits of cpu and memory."""
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
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
