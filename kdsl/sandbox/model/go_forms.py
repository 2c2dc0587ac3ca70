"""Objects as Go prints its internal types, which some errors quote: all fields, capitalized, in order."""

from __future__ import annotations

import difflib
import json
from typing import Any, Final

from kdsl.sandbox.model.errors import Json

_NAMES: Final = {
    "dnsPolicy": "DNSPolicy", "dnsConfig": "DNSConfig", "os": "OS", "tty": "TTY", "ip": "IP", "uid": "UID",
    "setHostnameAsFQDN": "SetHostnameAsFQDN", "hostPID": "HostPID", "hostIPC": "HostIPC",
    "seLinuxOptions": "SELinuxOptions", "seLinuxChangePolicy": "SELinuxChangePolicy", "nodeID": "NodeID",
    "fsGroup": "FSGroup", "fsGroupChangePolicy": "FSGroupChangePolicy", "shareID": "ShareID",
}  # fmt: skip

# The fields of a type in Go's order, and the type of those with their own order. A leading `"` marks a text,
# whose zero value is "", and `?` a flag, whose zero value is false.
_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "PodSpec": (
        "volumes", "initContainers:Container", "containers:Container", "ephemeralContainers",
        '"restartPolicy', "terminationGracePeriodSeconds", "activeDeadlineSeconds", '"dnsPolicy',
        "nodeSelector", '"serviceAccountName', "automountServiceAccountToken", '"nodeName',
        "securityContext:SecurityContext", "imagePullSecrets", '"hostname', '"subdomain',
        "setHostnameAsFQDN", "affinity", '"schedulerName', "tolerations:Toleration", "hostAliases",
        '"priorityClassName', "priority", "preemptionPolicy", "dnsConfig", "readinessGates",
        "runtimeClassName", "enableServiceLinks", "overhead", "topologySpreadConstraints", "os",
        "schedulingGates", "resourceClaims", "resources", "hostnameOverride", "schedulingGroup",
    ),
    "Container": (
        '"name', '"image', "command", "args", '"workingDir', "ports", "envFrom", "env",
        "resources:Resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "volumeMounts",
        "volumeDevices", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle",
        '"terminationMessagePath', '"terminationMessagePolicy', '"imagePullPolicy', "securityContext",
        "?stdin", "?stdinOnce", "?tty",
    ),
    "Resources": ("limits", "requests", "claims"),
    "VolumeResources": ("limits", "requests"),
    "SecurityContext": (
        "?hostNetwork", "?hostPID", "?hostIPC", "shareProcessNamespace", "hostUsers", "seLinuxOptions",
        "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot", "supplementalGroups",
        "supplementalGroupsPolicy", "fsGroup", "fsGroupChangePolicy", "sysctls", "seccompProfile",
        "appArmorProfile", "seLinuxChangePolicy",
    ),
    "Toleration": ('"key', '"operator', '"value', '"effect', "tolerationSeconds"),
    "ClaimSpec": (
        "accessModes", "selector", "resources:VolumeResources", '"volumeName', "storageClassName",
        "volumeMode", "dataSource", "dataSourceRef", "volumeAttributesClassName",
    ),
    "BudgetSpec": ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"),
    "DeviceClaimSpec": ("devices:DeviceClaim",),
    "DeviceClaim": ("requests:DeviceRequest", "constraints", "config"),
    "DeviceRequest": ('"name', "exactly:ExactRequest", "firstAvailable"),
    "ExactRequest": (
        '"deviceClassName', "selectors", '"allocationMode', "count", "adminAccess", "tolerations", "capacity",
    ),
    "Allocation": ("devices:AllocationResult", "nodeSelector:NodeSelector", "allocationTimestamp"),
    "AllocationResult": ("results:DeviceResult", "config"),
    "DeviceResult": (
        '"request', '"driver', '"pool', '"device', "adminAccess", "tolerations", "bindingConditions",
        "bindingFailureConditions", "shareID", "consumedCapacity",
    ),
    "NodeSelector": ("nodeSelectorTerms:NodeSelectorTerm",),
    "NodeSelectorTerm": ("matchExpressions", "matchFields"),
    "Driver": ('"name', '"nodeID', "topologyKeys", "allocatable"),
}  # fmt: skip
# Fields that are structs in Go, and so never null.
_STRUCTS: Final = frozenset(
    {"resources:Resources", "resources:VolumeResources", "devices:DeviceClaim", "devices:AllocationResult"}
)


def go_form(value: Any, kind: str) -> Any:
    """Return a value of the API as Go's internal type `kind` marshals."""
    if isinstance(value, list):
        return [go_form(item, kind) for item in value]
    if not isinstance(value, dict):
        return value
    found: Json = {}
    for written in _TYPES[kind]:
        name, _, inner = written.lstrip('"?').partition(":")
        if name not in value and written not in _STRUCTS:
            found[go_name(name)] = "" if written[0] == '"' else False if written[0] == "?" else None
        elif inner:
            found[go_name(name)] = go_form(value.get(name, {}), inner)
        else:
            found[go_name(name)] = _plain(value[name], name)
    return found


def _plain(value: Any, name: str) -> Any:
    """Return a value without its own type: structs capitalized, maps as they are."""
    if isinstance(value, list):
        return [_plain(item, name) for item in value]
    if isinstance(value, dict) and name not in (
        "nodeSelector",
        "limits",
        "requests",
        "matchLabels",
        "overhead",
    ):
        return {go_name(key): _plain(item, key) for key, item in value.items()}
    return value


def go_name(name: str) -> str:
    """Return the Go name of a field."""
    return _NAMES.get(name, name[:1].upper() + name[1:])


def go_text(value: Any, kind: str) -> str:
    """Return the JSON of Go's internal form in one line."""
    return json.dumps(go_form(value, kind), separators=(",", ":"), ensure_ascii=False)


def go_diff(old: Json, new: Json, kind: str) -> str:
    """Return the difference of two values in Go's internal form, as the server prints it."""
    before, after = (
        json.dumps(go_form(side, kind), indent=1, ensure_ascii=False).split("\n") for side in (old, new)
    )
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return "".join(f"{line}\n" for line in lines)


def pod_spec_form(spec: Json) -> Json:
    """Return a pod's spec with the parts of its security context at their places in Go's internal type."""
    moved = {name: spec[name] for name in ("hostNetwork", "hostPID", "hostIPC") if name in spec}
    return {**spec, "securityContext": {**spec.get("securityContext", {}), **moved}}
