"""What makes a new object invalid. Only what scheduling depends on, and what clients usually get wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from kdsl.sandbox.errors import Causes, Json
from kdsl.sandbox.go_forms import go_text
from kdsl.sandbox.pod_validation import NAME_PART, QUALIFIED, check_pod
from kdsl.sandbox.resources import Resource

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_MAX_NAME: Final = 253
_MAX_PRIORITY: Final = 1_000_000_000
_MAX_NOTE: Final = 1024
_MAX_ANNOTATIONS: Final = 256 * 1024
_FREE_NAMES: Final = frozenset({"rbac.authorization.k8s.io"})
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def check_object(resource: Resource, body: Json) -> Causes:
    """Return what is not valid in a new object."""
    causes = Causes()
    _check_name(resource, body["metadata"], causes)
    check = _CHECKS.get(resource.collection)
    if check is not None:
        check(body, causes)
    return causes


def check_annotations(metadata: Json, causes: Causes) -> None:
    """Say where annotations are larger than the API takes."""
    annotations = metadata.get("annotations") or {}
    total = sum(len(name) + len(value) for name, value in annotations.items())
    if total > _MAX_ANNOTATIONS:
        causes.found.append(
            {
                "reason": "FieldValueTooLong",
                "message": f"Too long: may not be more than {_MAX_ANNOTATIONS} bytes",
                "field": "metadata.annotations",
            }
        )
    for name, value in (metadata.get("labels") or {}).items():
        if len(value) > 63:
            causes.invalid("metadata.labels", json.dumps(value), "must be no more than 63 bytes")
        elif not QUALIFIED.fullmatch(name.rpartition("/")[2]):
            causes.invalid("metadata.labels", json.dumps(name), NAME_PART)


def _check_name(resource: Resource, metadata: Json, causes: Causes) -> None:
    name = metadata.get("name", "")
    if not name:
        causes.required("metadata.name", "name or generateName is required")
    elif resource.group not in _FREE_NAMES and (len(name) > _MAX_NAME or not _SUBDOMAIN.fullmatch(name)):
        why = _SUBDOMAIN_TEXT if len(name) <= _MAX_NAME else f"must be no more than {_MAX_NAME} bytes"
        causes.invalid("metadata.name", json.dumps(name), why)
    check_annotations(metadata, causes)


def _pod(body: Json, causes: Causes) -> None:
    check_pod(body["spec"], causes)


def _template(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    if not spec.get("selector"):
        causes.required("spec.selector")
    check_pod(spec["template"]["spec"], causes, "spec.template.spec")


def _event(body: Json, causes: Causes) -> None:
    involved = body["involvedObject"].get("namespace", "")
    namespace = body["metadata"].get("namespace", "")
    if involved != namespace and not (not involved and namespace == "default"):
        causes.invalid("involvedObject.namespace", json.dumps(involved), "does not match event.namespace")
    if body.get("eventTime") is None:
        return
    controller = body["reportingComponent"]
    if not controller:
        causes.required("reportingController")
        causes.invalid("reportingController", '""', "name part must be non-empty")
        causes.invalid("reportingController", '""', NAME_PART)
    for name in ("reportingInstance", "action", "reason"):
        if not body.get(name):
            causes.required(name)
    if len(body.get("message", "").encode()) > _MAX_NOTE:
        causes.invalid("message", '""', f"can have at most {_MAX_NOTE} characters")
    if body.get("type") not in ("Normal", "Warning"):
        causes.invalid("type", '""', f"has invalid value: {body.get('type', '')}")


def _priority_class(body: Json, causes: Causes) -> None:
    name, value = body["metadata"].get("name", ""), body["value"]
    if name in SYSTEM_CLASSES:
        return
    if name.startswith("system-"):
        causes.forbidden(
            "metadata.name",
            "priority class names with 'system-' prefix are reserved for system use only. error: "
            f"{name} is not a known system priority class",
        )
    if value > _MAX_PRIORITY:
        causes.forbidden("value", f"maximum allowed value of a user defined priority is {_MAX_PRIORITY}")


def _budget(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        causes.invalid(
            "spec", go_text(spec, "BudgetSpec"), "minAvailable and maxUnavailable cannot be both set"
        )


def _claim(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    if not spec.get("accessModes"):
        causes.required("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in spec.get("resources", {}).get("requests", {}):
        causes.required("spec.resources[storage]")


def _volume(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    if not spec.get("accessModes"):
        causes.required("spec.accessModes")
    if "storage" not in spec.get("capacity", {}):
        causes.required("spec.capacity")
    if "local" in spec and "nodeAffinity" not in spec:
        causes.required("spec.nodeAffinity", "Local volume requires node affinity")


def _storage_class(body: Json, causes: Causes) -> None:
    if not body.get("provisioner"):
        causes.required("provisioner")


def _resource_claim(body: Json, causes: Causes) -> None:
    for index, request in enumerate(body["spec"].get("devices", {}).get("requests", ())):
        if ("exactly" in request) == ("firstAvailable" in request):
            detail = "exactly one of `exactly` or `firstAvailable` is required"
            causes.required(f"spec.devices.requests[{index}]", detail)


_EMPTY_CEL: Final = (
    "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', "
    "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def _device_class(body: Json, causes: Causes) -> None:
    """Refuse expressions that end in an operator: what is wrong in them otherwise is not looked for."""
    for index, selector in enumerate(body.get("spec", {}).get("selectors", ())):
        text = selector.get("cel", {}).get("expression", "")
        if re.search(r"(?:==|!=|&&|\|\||[<>+*/%(-])\s*$", text):
            place = f"1:{len(text) + 1}"
            pointer = "." * len(text) + "^"
            why = f"compilation failed: ERROR: <input>:{place}: {_EMPTY_CEL}\n | {text}\n | {pointer}"
            causes.invalid(f"spec.selectors[{index}].cel.expression", json.dumps(text), why)


def _lease(body: Json, causes: Causes) -> None:
    duration: Any = body["spec"].get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        causes.invalid("spec.leaseDurationSeconds", str(duration), "must be greater than 0")


_CHECKS: Final[dict[str, Callable[[Json, Causes], None]]] = {
    "pods": _pod,
    "replicasets.apps": _template,
    "deployments.apps": _template,
    "statefulsets.apps": _template,
    "daemonsets.apps": _template,
    "events": _event,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "poddisruptionbudgets.policy": _budget,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "storageclasses.storage.k8s.io": _storage_class,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "deviceclasses.resource.k8s.io": _device_class,
    "leases.coordination.k8s.io": _lease,
}
