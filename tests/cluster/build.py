"""Short ways to write API objects for the tests of this folder."""

from __future__ import annotations

from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values


def read_pod(spec: dict[str, object], status: dict[str, object] | None = None, **meta: object) -> Pod:
    """Read a pod that must be without mistakes; one container is put in where `spec` has none."""
    value = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **meta},
        "spec": {"containers": [{"name": "c"}], **spec},
        "status": status or {},
    }
    result = read_values([value])
    assert not result.diagnostics, result.diagnostics
    return result.pods[0]


def pod_info(spec: dict[str, object], status: dict[str, object] | None = None, **meta: object) -> PodInfo:
    return PodInfo.of(read_pod(spec, status, **meta))


def read_node(status: dict[str, object], spec: dict[str, object] | None = None, **meta: object) -> Node:
    """Read a node that must be without mistakes."""
    value = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", **meta},
        "spec": spec or {},
        "status": status,
    }
    result = read_values([value])
    assert not result.diagnostics, result.diagnostics
    return result.nodes[0]


def facts(name: str, images: dict[str, int] | None = None, **labels: str) -> NodeFacts:
    """Make a node with 4 cpus and 10 pods, labelled `zone=z` as in a topology."""
    keys = {"zone": "topology.kubernetes.io/zone", "region": "topology.kubernetes.io/region"}
    listed = [{"names": [name], "sizeBytes": size} for name, size in (images or {}).items()]
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}, "images": listed}
    return NodeFacts.of(
        read_node(status, name=name, labels={keys.get(key, key): value for key, value in labels.items()})
    )


def container(name: str = "c", /, **requests: str) -> dict[str, object]:
    return {"name": name, "resources": {"requests": requests}}
