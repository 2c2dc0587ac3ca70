"""Validation of updates: the fields that must not change."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from kdsl.sandbox.model.errors import Causes, Json
from kdsl.sandbox.model.go_forms import go_diff, go_text, pod_spec_form
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.rules.metadata_rules import check_marks, check_owners
from kdsl.sandbox.rules.placement_rules import check_taints
from kdsl.sandbox.rules.pod_defaults import quality_of_service
from kdsl.sandbox.rules.pod_validation import check_pod

_POD_TEXT: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)
_CLAIM_TEXT: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims\n"
)
_IMMUTABLE: Final = "field is immutable"


def check_update(resource: Resource, old: Json, new: Json, subresource: str) -> Causes:
    """Return the errors in a change; both sides have their defaults."""
    causes = Causes()
    _check_metadata(old["metadata"], new["metadata"], causes)
    if causes.found:
        causes.twice()
        return causes
    check_marks(new["metadata"], causes)
    check_owners(new["metadata"].get("ownerReferences", ()), causes)
    check = _CHECKS.get((resource.collection, subresource))
    if check is not None:
        check(old, new, causes)
    return causes


def _check_metadata(old: Json, new: Json, causes: Causes) -> None:
    if new.get("uid") and new["uid"] != old["uid"]:
        causes.invalid("metadata.uid", json.dumps(new["uid"]), _IMMUTABLE)
    added = [item for item in new.get("finalizers", ()) if item not in old.get("finalizers", ())]
    if "deletionTimestamp" in old and added:
        listed = ", ".join(json.dumps(item) for item in added)
        detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
        causes.forbidden("metadata.finalizers", f"{detail}[]string{{{listed}}}")


def _pod(old: Json, new: Json, causes: Causes) -> None:
    before, after = old["spec"], new["spec"]
    check_pod(after, causes)
    _check_gates(before, after, causes)
    _check_tolerations(before, after, causes)
    if causes.found:
        return
    allowed = _with_changeable(after, before)
    if before.get("schedulingGates"):
        # The node selection of a gated pod may be narrowed.
        for name in ("nodeSelector", "affinity"):
            _take(allowed, before, name)
    if allowed != before:
        causes.forbidden("spec", _POD_TEXT + go_diff(pod_spec_form(before), pod_spec_form(after), "PodSpec"))


def _with_changeable(after: Json, before: Json) -> Json:
    """Return the new spec with the old values of the fields that may change."""
    allowed = dict(after)
    for name in ("tolerations", "schedulingGates", "activeDeadlineSeconds"):
        _take(allowed, before, name)
    for listed in ("containers", "initContainers"):
        olds, news = before.get(listed, []), after.get(listed, [])
        if len(olds) == len(news) and olds:
            allowed[listed] = [
                {**item, "image": was.get("image")} if "image" in item else item
                for item, was in zip(news, olds, strict=True)
            ]
    return allowed


def _take(target: Json, source: Json, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _check_gates(before: Json, after: Json, causes: Causes) -> None:
    known = {gate.get("name") for gate in before.get("schedulingGates", ())}
    for index, gate in enumerate(after.get("schedulingGates", ())):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            causes.forbidden(f"spec.schedulingGates[{index}].name", detail)


def _check_tolerations(before: Json, after: Json, causes: Causes) -> None:
    def shape(toleration: Json) -> Json:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    present = [shape(item) for item in after.get("tolerations", ())]
    if any(shape(item) not in present for item in before.get("tolerations", ())):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        causes.forbidden("spec.tolerations", detail)


def _pod_status(old: Json, new: Json, causes: Causes) -> None:
    nominated = new["status"].get("nominatedNodeName")
    changed = nominated and nominated != old["status"].get("nominatedNodeName")
    if changed and old["spec"].get("nodeName"):
        detail = "may not be set on pods that are already bound to a node"
        causes.forbidden("status.nominatedNodeName", detail)


def _pod_resize(old: Json, new: Json, causes: Causes) -> None:
    check_pod(new["spec"], causes)
    quality = quality_of_service(new["spec"])
    if quality != old["status"].get("qosClass"):
        detail = "Pod QOS Class may not change as a result of resizing"
        causes.invalid("spec", json.dumps(quality), detail)


def _node(old: Json, new: Json, causes: Causes) -> None:
    check_taints(new["spec"].get("taints", []), "spec.taints", causes)
    before = old["spec"].get("podCIDRs")
    if before and new["spec"].get("podCIDRs") != before:
        causes.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')


def _priority_class(old: Json, new: Json, causes: Causes) -> None:
    if new["value"] != old["value"]:
        causes.forbidden("value", "may not be changed in an update.")
    if new["preemptionPolicy"] != old["preemptionPolicy"]:
        causes.invalid("preemptionPolicy", json.dumps(new["preemptionPolicy"]), _IMMUTABLE)


def _claim(old: Json, new: Json, causes: Causes) -> None:
    before, after = old["spec"], new["spec"]
    allowed = dict(after)
    if not before.get("volumeName"):
        _take(allowed, before, "volumeName")
    if old["status"]["phase"] == "Bound":
        for name in ("resources", "volumeAttributesClassName"):
            _take(allowed, before, name)
    if allowed != before:
        causes.forbidden("spec", _CLAIM_TEXT + go_diff(before, after, "ClaimSpec"))


def _storage_class(old: Json, new: Json, causes: Causes) -> None:
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if new.get(name) != old.get(name):
            causes.invalid(name, json.dumps(new.get(name)), _IMMUTABLE)


def _csi_node(old: Json, new: Json, causes: Causes) -> None:
    present = {driver["name"]: driver for driver in new.get("spec", {}).get("drivers", ())}
    for driver in old.get("spec", {}).get("drivers", ()):
        other = present.get(driver["name"])
        if other is None:
            continue
        if {**other, "allocatable": None} != {**driver, "allocatable": None}:
            shown = {name: value for name, value in other.items() if name != "allocatable"}
            causes.invalid("spec.drivers", go_text(shown, "Driver"), _IMMUTABLE)


def _capacity(old: Json, new: Json, causes: Causes) -> None:
    if new.get("storageClassName") != old.get("storageClassName"):
        causes.invalid("storageClassName", json.dumps(new.get("storageClassName", "")), _IMMUTABLE)


def _resource_claim(old: Json, new: Json, causes: Causes) -> None:
    if new["spec"] != old["spec"]:
        causes.invalid("spec", go_text(new["spec"], "DeviceClaimSpec"), _IMMUTABLE)


def _resource_claim_status(old: Json, new: Json, causes: Causes) -> None:
    before, after = old["status"].get("allocation"), new["status"].get("allocation")
    if after is None and new["status"].get("reservedFor"):
        causes.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif before is not None and after is not None and before != after:
        causes.invalid("status.allocation", go_text(after, "Allocation"), _IMMUTABLE)


def _event(old: Json, new: Json, causes: Causes) -> None:
    if old.get("eventTime") is None:
        return
    fields = (
        "involvedObject",
        "reason",
        "message",
        "type",
        "action",
        "reportingComponent",
        "reportingInstance",
    )
    for name in fields:
        if new.get(name) != old.get(name):
            causes.invalid(name, json.dumps(new.get(name)), _IMMUTABLE)


_CHECKS: Final[dict[tuple[str, str], Callable[[Json, Json, Causes], None]]] = {
    ("pods", ""): _pod,
    ("pods", "status"): _pod_status,
    ("pods", "resize"): _pod_resize,
    ("nodes", ""): _node,
    ("priorityclasses.scheduling.k8s.io", ""): _priority_class,
    ("persistentvolumeclaims", ""): _claim,
    ("storageclasses.storage.k8s.io", ""): _storage_class,
    ("csinodes.storage.k8s.io", ""): _csi_node,
    ("csistoragecapacities.storage.k8s.io", ""): _capacity,
    ("resourceclaims.resource.k8s.io", ""): _resource_claim,
    ("resourceclaims.resource.k8s.io", "status"): _resource_claim_status,
    ("events", ""): _event,
}
