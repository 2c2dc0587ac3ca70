"""The nodes and pods of an openb trace as Kubernetes objects, for recorded runs."""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.base.resources import CPU, MEMORY, Resources
from kdsl.base.times import to_seconds
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import Manifest
from kdsl.records.manifests import ObjectId
from kdsl.sim.openb import CONTAINER


def openb_manifests(nodes: Iterable[NodeFacts], pods: Iterable[PodInfo]) -> dict[ObjectId, Manifest]:
    """Return manifests for nodes and pods of `read_openb`; reading the manifests gives the same objects."""
    found: dict[ObjectId, Manifest] = {(Node.KIND, node.name): _node(node) for node in nodes}
    found |= {(Pod.KIND, pod.key): _pod(pod) for pod in pods}
    return found


def _node(node: NodeFacts) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": Node.KIND,
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "status": {
            "allocatable": _amounts(node.allocatable),
            "capacity": {name: str(amount) for name, amount in node.device_capacity.items()},
        },
    }


def _pod(pod: PodInfo) -> Manifest:
    spec: Manifest = {"containers": [{"name": CONTAINER, "resources": {"requests": _amounts(pod.requests)}}]}
    if pod.required_node_affinity is not None:
        terms = [
            {
                "matchExpressions": [
                    {"key": one.key, "operator": str(one.operator), "values": sorted(one.values)}
                    for one in term.labels
                ]
            }
            for term in pod.required_node_affinity.terms
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    return {
        "apiVersion": "v1",
        "kind": Pod.KIND,
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "labels": dict(pod.labels),
            "annotations": dict(pod.annotations),
            "creationTimestamp": to_seconds(pod.created_at),
        },
        "spec": spec,
    }


def _amounts(amounts: Resources) -> dict[str, str]:
    # Scores use defaults for missing requests: the rows of the trace explicitly request 0.
    return {CPU: "0", MEMORY: "0", **{name: str(amount) for name, amount in amounts.items()}}
