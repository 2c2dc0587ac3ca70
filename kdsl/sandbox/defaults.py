"""The defaults that the server writes into objects of all kinds."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Final

from kdsl.sandbox.errors import Json
from kdsl.sandbox.pod_defaults import default_pod, default_pod_spec, default_volume_source
from kdsl.sandbox.resources import Resource

_JOB: Final = "batch.kubernetes.io/"


def apply_defaults(resource: Resource, body: Json) -> None:
    """Set the missing fields of an object to their defaults, in place."""
    default = _DEFAULTS.get(resource.collection)
    if default is not None:
        default(body)


def _pod(body: Json) -> None:
    default_pod(body.setdefault("spec", {}))
    for item in body.get("status", {}).get("conditions", ()):
        item.setdefault("lastProbeTime", None)
        item.setdefault("lastTransitionTime", None)
    for listed in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for item in body.get("status", {}).get(listed, ()):
            item.setdefault("lastState", {})
            item.setdefault("state", {})
            for name, value in (("ready", False), ("restartCount", 0), ("image", ""), ("imageID", "")):
                item.setdefault(name, value)


_NODE_FACTS: Final = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
    "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip


def _node(body: Json) -> None:
    spec = body.setdefault("spec", {})
    if "podCIDR" in spec and spec.get("podCIDRs", [""])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    status = body.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))
    status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {}).setdefault("Port", 0)
    facts = status.setdefault("nodeInfo", {})
    for name in _NODE_FACTS:
        facts.setdefault(name, "")
    for item in status.get("conditions", ()):
        item.setdefault("lastHeartbeatTime", None)
        item.setdefault("lastTransitionTime", None)


def _namespace(body: Json) -> None:
    name = body["metadata"].get("name", "")
    body["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    body.setdefault("spec", {})
    body.setdefault("status", {}).setdefault("phase", "Active")


def _event(body: Json) -> None:
    body.setdefault("source", {})
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        body.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        body.setdefault(name, "")
    body.setdefault("involvedObject", {})


def _service(body: Json) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        if spec.get("clusterIP"):
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    body.setdefault("status", {}).setdefault("loadBalancer", {})


def _daemon_set(body: Json) -> None:
    _template(body)
    spec = body["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    marks = body["metadata"].setdefault("annotations", {})
    marks.setdefault("deprecated.daemonset.template.generation", "1")
    status = body.setdefault("status", {})
    for name in ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"):
        status.setdefault(name, 0)


def _controller(body: Json) -> None:
    _replicated(body)
    spec = body["spec"]
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        body["metadata"].setdefault("labels", dict(labels))


def _secret(body: Json) -> None:
    body.setdefault("type", "Opaque")
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


def _replicated(body: Json) -> None:
    _template(body)
    body["spec"].setdefault("replicas", 1)
    body.setdefault("status", {}).setdefault("replicas", 0)


def _deployment(body: Json) -> None:
    _template(body)
    spec = body["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    body.setdefault("status", {})


def _stateful_set(body: Json) -> None:
    _replicated(body)
    body["spec"].setdefault("podManagementPolicy", "OrderedReady")
    body["spec"].setdefault("revisionHistoryLimit", 10)
    kept = body["spec"].setdefault("persistentVolumeClaimRetentionPolicy", {})
    for name in ("whenDeleted", "whenScaled"):
        kept.setdefault(name, "Retain")
    strategy = body["spec"].setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    body["status"].setdefault("availableReplicas", 0)


def _job(body: Json) -> None:
    _template(body)
    spec = body["spec"]
    for name, value in (("parallelism", 1), ("completions", 1), ("backoffLimit", 6)):
        spec.setdefault(name, value)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    body.setdefault("status", {})
    if spec.get("manualSelector") or "uid" not in body["metadata"] or spec.get("selector"):
        return
    uid, name = body["metadata"]["uid"], body["metadata"].get("name", "")
    spec["selector"] = {"matchLabels": {f"{_JOB}controller-uid": uid}}
    marks = {"controller-uid": uid, "job-name": name}
    labels = spec["template"]["metadata"].setdefault("labels", {})
    labels.update(marks | {f"{_JOB}{key}": value for key, value in marks.items()})


def _budget(body: Json) -> None:
    body.setdefault("spec", {})
    status = body.setdefault("status", {})
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        status.setdefault(name, 0)


def _claim(body: Json) -> None:
    body.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    body.setdefault("status", {}).setdefault("phase", "Pending")


def _volume(body: Json) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_volume_source(spec)
    body.setdefault("status", {}).setdefault("phase", "Pending")


def _storage_class(body: Json) -> None:
    body.setdefault("reclaimPolicy", "Delete")
    body.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(body: Json) -> None:
    spec = body.setdefault("spec", {})
    defaults = {
        "attachRequired": True, "podInfoOnMount": False, "volumeLifecycleModes": ["Persistent"],
        "storageCapacity": False, "fsGroupPolicy": "ReadWriteOnceWithFSType", "requiresRepublish": False,
        "seLinuxMount": False,
    }  # fmt: skip
    for name, value in defaults.items():
        spec.setdefault(name, value)


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
    body.setdefault("status", {})


def _claim_template(body: Json) -> None:
    outer = body.setdefault("spec", {})
    outer.setdefault("metadata", {})
    _default_requests(outer.setdefault("spec", {}))


def _with_status(body: Json) -> None:
    body.setdefault("status", {})


def _with_spec(body: Json) -> None:
    body.setdefault("spec", {})


def _priority_class(body: Json) -> None:
    body.setdefault("value", 0)
    body.setdefault("preemptionPolicy", "PreemptLowerPriority")


_DEFAULTS: Final[dict[str, Callable[[Json], None]]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "events": _event,
    "services": _service,
    "replicationcontrollers": _controller,
    "secrets": _secret,
    "limitranges": _limit_range,
    "replicasets.apps": _replicated,
    "deployments.apps": _deployment,
    "daemonsets.apps": _daemon_set,
    "statefulsets.apps": _stateful_set,
    "jobs.batch": _job,
    "poddisruptionbudgets.policy": _budget,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "storageclasses.storage.k8s.io": _storage_class,
    "csidrivers.storage.k8s.io": _csi_driver,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "resourceclaimtemplates.resource.k8s.io": _claim_template,
    "leases.coordination.k8s.io": _with_spec,
    "flowschemas.flowcontrol.apiserver.k8s.io": _with_status,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _with_status,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "resourcequotas": _with_status,
}
