"""The effects of admission plugins on new and changed objects: namespaces, priorities, tolerations,
limits.
"""

from __future__ import annotations

from typing import Any, Final

from kdsl.sandbox.model.errors import Json, forbidden, not_found
from kdsl.sandbox.model.resources import NAMESPACES, Resource, named
from kdsl.sandbox.model.store import Store
from kdsl.sandbox.model.times import Chance
from kdsl.sandbox.rules.label_keys import merge_label_keys
from kdsl.sandbox.rules.pod_defaults import quality_of_service

PRIORITY_CLASSES: Final = named("priorityclasses", "scheduling.k8s.io")
_STORAGE_CLASSES: Final = named("storageclasses", "storage.k8s.io")
_LIMIT_RANGES: Final = named("limitranges")
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
GATED_TEXT: Final = "Scheduling is blocked due to non-empty scheduling gates"
_TOLERATIONS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_DEPRECATED: Final = {f"beta.kubernetes.io/{name}": f"kubernetes.io/{name}" for name in ("arch", "os")} | {
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}


def admit_namespace(store: Store, resource: Resource, namespace: str, name: str) -> None:
    """Reject new objects in namespaces that are missing or being deleted."""
    if not namespace:
        return
    version = store.get(NAMESPACES, ("", namespace))
    if version is None:
        raise not_found(NAMESPACES, namespace)
    if b'"deletionTimestamp"' in version.data and "deletionTimestamp" in version.body()["metadata"]:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        message = f"namespace {namespace} is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        raise forbidden(resource, name, why, [cause])


def admit_create(store: Store, resource: Resource, body: Json) -> None:
    """Change or reject a new object that has its defaults."""
    collection = resource.collection
    if collection == "pods":
        _resolve_priority(store, resource, body)
        _limit(store, body)
    elif collection == "priorityclasses.scheduling.k8s.io":
        admit_global_default(store, resource, body)
    elif collection == "persistentvolumeclaims":
        body["metadata"].setdefault("finalizers", []).append("kubernetes.io/pvc-protection")
        _default_storage_class(store, body)
    elif collection == "persistentvolumes":
        body["metadata"].setdefault("finalizers", []).append("kubernetes.io/pv-protection")
    elif collection == "namespaces":
        body["spec"] = {**body.get("spec", {}), "finalizers": ["kubernetes"]}


def finish_pod(body: Json, chance: Chance) -> None:
    """Write the tolerations, the conditions of label keys and the status of a new pod."""
    spec = body["spec"]
    add_tolerations(spec)
    merge_label_keys(body)
    status: Json = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": chance.stamp(),
                "reason": "SchedulingGated",
                "message": GATED_TEXT,
            }
        ]
    status["qosClass"] = quality_of_service(spec)
    body["status"] = status


def add_tolerations(spec: Json) -> None:
    """Add the two tolerations of 300 s, where no toleration covers their taints."""
    present = spec.get("tolerations", [])
    for key in _TOLERATIONS:
        if not any(_covers(item, key) for item in present):
            present = [
                *present,
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ]
    spec["tolerations"] = present


def _covers(toleration: Json, key: str) -> bool:
    effect = toleration.get("effect", "NoExecute")
    return bool(toleration.get("key", key) == key and effect == "NoExecute")


def _resolve_priority(store: Store, resource: Resource, body: Json) -> None:
    spec = body.setdefault("spec", {})
    name = spec.get("priorityClassName", "")
    found = _priority_class(store, name)
    if name and found is None:
        raise forbidden(resource, body["metadata"]["name"], f"no PriorityClass with name {name} was found")
    computed: Json = found or {}
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    _settle(resource, body, "priority", computed.get("value", 0), "integer value of priority")
    policy = computed.get("preemptionPolicy", "PreemptLowerPriority")
    _settle(resource, body, "preemptionPolicy", policy, "string value of PreemptionPolicy")


def _settle(resource: Resource, body: Json, field: str, computed: Any, what: str) -> None:
    given = body["spec"].get(field)
    if given is not None and given != computed:
        why = (
            f"the {what} ({given}) must not be provided in pod spec; priority admission controller computed "
            f"{computed} from the given PriorityClass name"
        )
        raise forbidden(resource, body["metadata"].get("name", ""), why)
    body["spec"][field] = computed


def _priority_class(store: Store, name: str) -> Json | None:
    if name:
        version = store.get(PRIORITY_CLASSES, ("", name))
        return version.body() if version else None
    return next((item for item in store.bodies(PRIORITY_CLASSES) if item.get("globalDefault")), None)


def admit_global_default(store: Store, resource: Resource, body: Json) -> None:
    """Reject a second default priority class."""
    name = body["metadata"].get("name", "")
    if not body.get("globalDefault"):
        return
    for item in store.bodies(PRIORITY_CLASSES):
        other = item["metadata"]["name"]
        if item.get("globalDefault") and other != name:
            why = f"PriorityClass {other} is already marked as default. Only one default can exist"
            raise forbidden(resource, name, why)


def _default_storage_class(store: Store, body: Json) -> None:
    spec = body.setdefault("spec", {})
    if "storageClassName" in spec or spec.get("volumeName"):
        return
    defaults = [
        item["metadata"]["name"]
        for item in store.bodies(_STORAGE_CLASSES)
        if item["metadata"].get("annotations", {}).get(_DEFAULT_CLASS) == "true"
    ]
    if defaults:
        spec["storageClassName"] = defaults[0]


def _limit(store: Store, body: Json) -> None:
    """Apply the defaults of the namespace's LimitRanges, and record that in an annotation."""
    if not store.collection(_LIMIT_RANGES).items:
        return
    said: list[str] = []
    for limits in store.bodies(_LIMIT_RANGES, body["metadata"]["namespace"]):
        for limit in limits.get("spec", {}).get("limits", ()):
            if limit.get("type") == "Container":
                for listed, what in (("containers", "container"), ("initContainers", "init container")):
                    for container in body["spec"].get(listed, ()):
                        said.extend(_limit_container(container, limit, what))
    if said:
        text = f"LimitRanger plugin set: {'; '.join(said)}"
        body["metadata"].setdefault("annotations", {})["kubernetes.io/limit-ranger"] = text


def _limit_container(container: Json, limit: Json, what: str) -> list[str]:
    said: list[str] = []
    resources = container.setdefault("resources", {})
    for field, defaults, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
        missing = {
            name: amount
            for name, amount in (limit.get(defaults) or {}).items()
            if name not in resources.get(field, {})
        }
        if missing:
            resources.setdefault(field, {}).update(missing)
            names = ", ".join(sorted(missing))
            said.append(f"{names} {word} for {what} {container.get('name', '')}")
    return said


def pod_warnings(spec: Json) -> list[str]:
    """Return the warnings about deprecated labels in a pod's spec."""
    found = [
        f'spec.nodeSelector[{key}]: deprecated since v1.14; use "{_DEPRECATED[key]}" instead'
        for key in spec.get("nodeSelector", ())
        if key in _DEPRECATED
    ]
    path = "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    node_affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for index, term in enumerate(required.get("nodeSelectorTerms", ())):
        for place, expression in enumerate(term.get("matchExpressions", ())):
            key = expression.get("key", "")
            if key in _DEPRECATED:
                where = f"spec.affinity.{path}.nodeSelectorTerms[{index}].matchExpressions[{place}].key"
                found.append(f'{where}: {key} is deprecated since v1.14; use "{_DEPRECATED[key]}" instead')
    return found
