"""Validation of a pod's spec: volumes, containers, resources, and the restrictions on its node.

The order is the reference's: its errors are listed in this order.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

from kdsl.base.quantity import parse_quantity
from kdsl.base.resources import HUGE_PAGES, is_native
from kdsl.cluster.api.objects import PodSpec
from kdsl.cluster.objects.requests import container_requests, is_pod_level_resource
from kdsl.sandbox.model import names
from kdsl.sandbox.model.errors import Causes, Json
from kdsl.sandbox.rules.metadata_rules import check_labels, say_all
from kdsl.sandbox.rules.placement_rules import check_affinity, check_gates, check_spreading, check_tolerations

_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES: Final = _CONTAINER_RESOURCES | {"pods", "storage", "requests.storage", "services"}
_MAX_INT32: Final = 2**31 - 1


def check_pod(spec: Json, causes: Causes, path: str = "spec") -> None:
    """Add the errors in a pod's spec at `path` to `causes`."""
    volumes = _check_volumes(spec.get("volumes", ()), f"{path}.volumes", causes)
    _check_containers(spec, path, volumes, causes)
    _check_used_claims(spec, path, causes)
    _check_claims(spec.get("resourceClaims", ()), f"{path}.resourceClaims", causes)
    _check_pod_level(spec, path, causes)
    if spec.get("restartPolicy", "Always") not in _RESTART:
        causes.unsupported(f"{path}.restartPolicy", json.dumps(spec["restartPolicy"]), _RESTART)
    if spec.get("dnsPolicy", "Default") not in _DNS:
        causes.unsupported(f"{path}.dnsPolicy", json.dumps(spec["dnsPolicy"]), _DNS)
    check_labels(spec.get("nodeSelector", {}), f"{path}.nodeSelector", causes)
    check_affinity(spec.get("affinity", {}), f"{path}.affinity", causes)
    check_gates(spec.get("schedulingGates", []), f"{path}.schedulingGates", causes)
    check_spreading(spec.get("topologySpreadConstraints", []), f"{path}.topologySpreadConstraints", causes)
    node = spec.get("nodeName", "")
    if node:
        say_all(causes, f"{path}.nodeName", node, names.subdomain(node))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 0 < deadline <= _MAX_INT32:
        detail = f"must be between 1 and {_MAX_INT32}, inclusive"
        causes.invalid(f"{path}.activeDeadlineSeconds", str(deadline), detail)
    check_tolerations(spec.get("tolerations", []), f"{path}.tolerations", causes)


def check_new_pod(spec: Json, causes: Causes) -> None:
    """Add the errors that apply to new pods only to `causes`."""
    if spec.get("ephemeralContainers"):
        causes.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        causes.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _check_volumes(volumes: list[Json], path: str, causes: Causes) -> set[str]:
    """Return the names of the volumes that containers may mount, after checking them."""
    known: set[str] = set()
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", volume.get("name", "")
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            causes.required(f"{where}.persistentVolumeClaim.claimName")
        if not name:
            causes.required(f"{where}.name")
            continue
        wrong = names.label_name(name)
        say_all(causes, f"{where}.name", name, wrong)
        if not wrong and name in known:
            causes.duplicate(f"{where}.name", json.dumps(name))
        known.add(name)
    return known


def _check_containers(spec: Json, path: str, volumes: set[str], causes: Causes) -> None:
    if not spec.get("containers"):
        causes.required(f"{path}.containers")
    known: set[str] = set()
    for listed in ("containers", "initContainers"):
        ports: set[tuple[object, ...]] = set()
        for index, container in enumerate(spec.get(listed, ())):
            where, name = f"{path}.{listed}[{index}]", container.get("name", "")
            _check_container(container, where, volumes, causes)
            if name and name in known:
                causes.duplicate(f"{where}.name", json.dumps(name))
            known.add(name)
            _check_probes(container, where, causes)
            if listed == "containers":
                _check_host_ports(container, where, ports, bool(spec.get("hostNetwork")), causes)


def _check_container(container: Json, path: str, volumes: set[str], causes: Causes) -> None:
    name = container.get("name", "")
    if name:
        say_all(causes, f"{path}.name", name, names.label_name(name))
    else:
        causes.required(f"{path}.name")
    image = container.get("image", "")
    if not image:
        causes.required(f"{path}.image")
    elif image.strip() != image:
        causes.invalid(f"{path}.image", json.dumps(image), "must not have leading or trailing whitespace")
    _check_ports(container.get("ports", ()), f"{path}.ports", causes)
    for index, variable in enumerate(container.get("env", ())):
        if not variable.get("name"):
            causes.required(f"{path}.env[{index}].name")
    _check_mounts(container.get("volumeMounts", ()), f"{path}.volumeMounts", volumes, causes)
    policy = container.get("imagePullPolicy", "Always")
    if policy not in _PULL:
        causes.unsupported(f"{path}.imagePullPolicy", json.dumps(policy), _PULL)
    _check_resources(container.get("resources", {}), f"{path}.resources", causes)


def _check_ports(ports: list[Json], path: str, causes: Causes) -> None:
    known: set[str] = set()
    for index, port in enumerate(ports):
        where, name = f"{path}[{index}]", port.get("name", "")
        wrong = names.port_name(name) if name else []
        say_all(causes, f"{where}.name", name, wrong)
        if name and not wrong:
            if name in known:
                causes.duplicate(f"{where}.name", json.dumps(name))
            known.add(name)
        if not port.get("containerPort"):
            causes.required(f"{where}.containerPort")
        for field in ("containerPort", "hostPort"):
            number = port.get(field, 0)
            if number and not 0 < number < 65536:
                causes.invalid(f"{where}.{field}", str(number), "must be between 1 and 65535, inclusive")
        if port.get("protocol", "TCP") not in _PROTOCOLS:
            causes.unsupported(f"{where}.protocol", json.dumps(port["protocol"]), _PROTOCOLS)


def _check_host_ports(
    container: Json, path: str, known: set[tuple[object, ...]], is_host_network: bool, causes: Causes
) -> None:
    for index, port in enumerate(container.get("ports", ())):
        number, where = port.get("hostPort", 0), f"{path}.ports[{index}]"
        # A template may leave it to its pods.
        is_left_out = not number and where.startswith("spec.template.")
        if is_host_network and number != port.get("containerPort") and not is_left_out:
            detail = "must match `hostPort` when `hostNetwork` is true"
            causes.invalid(f"{where}.containerPort", str(port.get("containerPort", 0)), detail)
        if not number:
            continue
        place = (port.get("protocol", "TCP"), port.get("hostIP", ""), number)
        if place in known:
            causes.duplicate(f"{where}.hostPort", json.dumps("/".join(map(str, place))))
        known.add(place)


def _check_mounts(mounts: list[Json], path: str, volumes: set[str], causes: Causes) -> None:
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        where, name, place = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            causes.required(f"{where}.name")
        if not place:
            causes.required(f"{where}.mountPath")
        elif place in places:
            causes.invalid(f"{where}.mountPath", json.dumps(place), "must be unique")
        if name not in volumes:
            causes.missing(f"{where}.name", json.dumps(name))
        places.add(place)


def _check_probes(container: Json, path: str, causes: Causes) -> None:
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None and not any(handler in probe for handler in _HANDLERS):
            causes.required(f"{path}.{name}", "must specify a handler type")


def _check_resources(resources: Json, path: str, causes: Causes) -> None:
    limits = resources.get("limits", {})
    for resource, amount in limits.items():
        _check_amount(resource, amount, f"{path}.limits[{resource}]", causes)
    for resource, amount in resources.get("requests", {}).items():
        _check_amount(resource, amount, f"{path}.requests[{resource}]", causes)
        limit, may_exceed = limits.get(resource), is_native(resource) and not resource.startswith(HUGE_PAGES)
        if limit is None:
            if not may_exceed:
                causes.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            continue
        asked, most = parse_quantity(amount), parse_quantity(limit)
        if not may_exceed and (asked > most or most > asked):
            detail = f"must be equal to {resource} limit of {limit}"
            causes.invalid(f"{path}.requests", json.dumps(amount), detail)
        elif asked > most:
            detail = f"must be less than or equal to {resource} limit of {limit}"
            causes.invalid(f"{path}.requests", json.dumps(amount), detail)


def _check_pod_level(spec: Json, path: str, causes: Causes) -> None:
    """Add the errors in the pod's own requests and limits, which bound those of its containers."""
    own = spec.get("resources", {})
    for field in ("limits", "requests"):
        for resource in own.get(field, {}):
            if not is_pod_level_resource(resource):
                where = f"{path}.resources.{field}[{resource}]"
                causes.unsupported(where, json.dumps(resource), ("cpu", "hugepages-", "memory"))
                return
    _check_resources(own, f"{path}.resources", causes)
    asked = container_requests(msgspec.convert(spec, PodSpec)) if own.get("requests") else {}
    for resource, amount in own.get("requests", {}).items():
        if resource in asked and parse_quantity(asked[resource]) > parse_quantity(amount):
            detail = f"must be greater than or equal to aggregate container requests of {asked[resource]}"
            causes.invalid(f"{path}.resources.requests[{resource}]", json.dumps(amount), detail)


def _check_used_claims(spec: Json, path: str, causes: Causes) -> None:
    """Add the device claims that containers use and the pod does not have to `causes`."""
    known = sorted(claim.get("name", "") for claim in spec.get("resourceClaims", ()))
    rest = f": {', '.join(known)}" if known else " which is empty"
    for listed in ("containers", "initContainers"):
        for number, container in enumerate(spec.get(listed, ())):
            for index, claim in enumerate(container.get("resources", {}).get("claims", ())):
                where, name = f"{path}.{listed}[{number}].resources.claims[{index}]", claim.get("name", "")
                if name not in known:
                    detail = f"{json.dumps(name)}: must be one of the names in pod.spec.resourceClaims{rest}"
                    causes.missing(where, detail)


def _check_amount(resource: str, amount: str, path: str, causes: Causes) -> None:
    say_all(causes, path, resource, names.qualified(resource))
    is_plain = "/" not in resource
    if is_plain and resource not in _STANDARD_RESOURCES and not resource.startswith(HUGE_PAGES):
        detail = "must be a standard resource type or fully qualified"
        causes.invalid(path, json.dumps(resource), detail)
    if is_plain and resource not in _CONTAINER_RESOURCES and not resource.startswith(HUGE_PAGES):
        causes.invalid(path, json.dumps(resource), "must be a standard resource for containers")
    quantity = parse_quantity(amount)
    if quantity.nanos < 0:
        causes.invalid(path, json.dumps(amount), "must be greater than or equal to 0")
    if not is_native(resource) and quantity.nanos % 10**9:
        causes.invalid(path, json.dumps(amount), "must be an integer")


def _check_claims(claims: list[Json], path: str, causes: Causes) -> None:
    known: set[str] = set()
    for index, claim in enumerate(claims):
        where, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            causes.required(f"{where}.name")
        elif name in known:
            causes.duplicate(f"{where}.name", json.dumps(name))
        else:
            say_all(causes, f"{where}.name", name, names.label_name(name))
        known.add(name)
        sources = [claim.get(field) for field in ("resourceClaimName", "resourceClaimTemplateName")]
        shown = {"Name": name, "ResourceClaimName": sources[0], "ResourceClaimTemplateName": sources[1]}
        text, both = json.dumps(shown, separators=(",", ":")), "`resourceClaimName`"
        if all(sources):
            detail = f"at most one of {both} or `resourceClaimTemplateName` may be specified"
            causes.invalid(where, text, detail)
        elif not any(sources):
            causes.invalid(where, text, f"must specify one of: {both}, `resourceClaimTemplateName`")
