"""Validation of new objects. Only fields that scheduling depends on, and frequent mistakes of clients."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from kdsl.sandbox.model import names
from kdsl.sandbox.model.errors import Causes, Json
from kdsl.sandbox.model.go_forms import go_text
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.rules.metadata_rules import check_labels, check_metadata, check_selector, say_all
from kdsl.sandbox.rules.placement_rules import check_node_selector, check_taints
from kdsl.sandbox.rules.pod_validation import check_new_pod, check_pod

_MAX_PRIORITY: Final = 1_000_000_000
_MAX_NOTE: Final = 1024
_MAX_WORD: Final = 128
_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def check_object(resource: Resource, body: Json) -> Causes:
    """Return the errors in a new object."""
    causes = Causes()
    check_metadata(resource, body["metadata"], causes)
    check = _CHECKS.get(resource.collection)
    if check is not None:
        check(body, causes)
    return causes


def _pod(body: Json, causes: Causes) -> None:
    check_pod(body["spec"], causes)
    check_new_pod(body["spec"], causes)


def _template(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    selector, template = spec.get("selector") or {}, spec["template"]
    if not selector:
        causes.required("spec.selector")
    elif not isinstance(next(iter(selector.values())), str):
        check_selector(selector, "spec.selector", causes)
        selector = selector.get("matchLabels", {})
    labels = template["metadata"].get("labels", {})
    if any(labels.get(name) != value for name, value in selector.items()):
        shown = json.dumps(labels, separators=(",", ":"))
        causes.invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")
    check_labels(labels, "spec.template.labels", causes)
    check_pod(template["spec"], causes, "spec.template.spec")
    _check_restarts(template["spec"], ("Always",), causes)


def _job(body: Json, causes: Causes) -> None:
    spec = body["spec"]["template"]["spec"]
    check_pod(spec, causes, "spec.template.spec")
    _check_restarts(spec, ("OnFailure", "Never"), causes)


def _check_restarts(spec: Json, allowed: tuple[str, ...], causes: Causes) -> None:
    policy = spec["restartPolicy"]
    if policy in ("Always", "OnFailure", "Never") and policy not in allowed:
        causes.unsupported("spec.template.spec.restartPolicy", json.dumps(policy), allowed)


def _node(body: Json, causes: Causes) -> None:
    check_taints(body["spec"].get("taints", []), "spec.taints", causes)


def _service(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        causes.required("spec.ports")
    check_labels(spec.get("selector", {}), "spec.selector", causes)


def _keys(body: Json, causes: Causes) -> None:
    for field in ("data", "binaryData"):
        for key in body.get(field, {}):
            say_all(causes, f"{field}[{key}]", key, names.config_key(key))


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
    say_all(causes, "reportingController", controller, names.qualified(controller))
    for name in ("reportingInstance", "action", "reason"):
        value = body.get(name, "")
        if not value:
            causes.required(name)
        if len(value.encode()) > _MAX_WORD:
            causes.invalid(name, '""', f"can have at most {_MAX_WORD} characters")
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
    policies = ("Never", "PreemptLowerPriority")
    if body["preemptionPolicy"] not in policies:
        causes.unsupported("preemptionPolicy", json.dumps(body["preemptionPolicy"]), policies)


def _budget(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        causes.invalid(
            "spec", go_text(spec, "BudgetSpec"), "minAvailable and maxUnavailable cannot be both set"
        )

    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            _check_share(spec[name], f"spec.{name}", causes)
    check_selector(spec.get("selector") or {}, "spec.selector", causes)


def _check_share(share: Any, path: str, causes: Causes) -> None:
    if isinstance(share, int):
        if share < 0:
            causes.invalid(path, str(share), _NOT_NEGATIVE)
    elif not isinstance(share, str) or not re.fullmatch("[0-9]+%", share):
        causes.invalid(path, json.dumps(share), "must be an integer or percentage (e.g '5%%')")
    elif int(share[:-1]) > 100:
        causes.invalid(path, json.dumps(share), "must not be greater than 100%")


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
    required = spec.get("nodeAffinity", {}).get("required")
    if required is not None:
        check_node_selector(required, "spec.nodeAffinity.required", causes)


def _storage_class(body: Json, causes: Causes) -> None:
    if not body.get("provisioner"):
        causes.required("provisioner")
    known = {
        "reclaimPolicy": ("Delete", "Retain"),
        "volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
    }
    for name, values in known.items():
        if body[name] not in values:
            causes.unsupported(name, json.dumps(body[name]), values)


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
    """Reject expressions that end in an operator; no other check is made."""
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
    transitions: Any = body["spec"].get("leaseTransitions")
    if transitions is not None and transitions < 0:
        causes.invalid("spec.leaseTransitions", str(transitions), _NOT_NEGATIVE)


_CHECKS: Final[dict[str, Callable[[Json, Causes], None]]] = {
    "pods": _pod,
    "nodes": _node,
    "services": _service,
    "configmaps": _keys,
    "secrets": _keys,
    "jobs.batch": _job,
    "replicationcontrollers": _template,
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
