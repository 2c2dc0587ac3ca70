"""Short ways to write storage objects for the tests of this folder; sizes are in Gi."""

from __future__ import annotations

from typing import Any

from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache

Manifest = dict[str, Any]
ANYWHERE: dict[str, list[str]] = {}


def node(name: str, **labels: str) -> Manifest:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def pod(name: str, *claims: str, **spec: Any) -> Manifest:
    """A pod whose volumes `v0`, `v1`, … are of these claims."""
    volumes = [
        {"name": f"v{at}", "persistentVolumeClaim": {"claimName": claim}} for at, claim in enumerate(claims)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c"}], "volumes": volumes, **spec},
    }


def claim(name: str, size: int | None = 5, bound: str = "", **spec: Any) -> Manifest:
    """A claim of class `local`, `bound` to a volume where one is named."""
    requests = {} if size is None else {"storage": f"{size}Gi"}
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "volumeName": bound, **spec}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": annotations},
        "spec": {"resources": {"requests": requests}, **wanted},
    }


def volume(
    name: str, size: int = 10, on: dict[str, list[str]] = ANYWHERE, phase: str = "Available", **spec: Any
) -> Manifest:
    """A volume of class `local` that can be used `on` nodes with one of the values of each label."""
    terms = [{"key": key, "operator": "In", "values": values} for key, values in on.items()]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}} if terms else {}
    given = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "nodeAffinity": affinity, **spec}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": f"{size}Gi"}, **given},
        "status": {"phase": phase},
    }


def storage_class(
    name: str = "local", provisioner: str = "kubernetes.io/no-provisioner", **fields: Any
) -> Manifest:
    """A storage class whose claims wait for their pods."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


def csi(kind: str, name: str, **body: Any) -> Manifest:
    return {"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **body}


def changed(manifest: Manifest, **meta: Any) -> Manifest:
    """The object with further metadata."""
    return {**manifest, "metadata": {**manifest["metadata"], **meta}}


def cluster(*manifests: Manifest) -> ClusterCache:
    """A cache that holds these objects, which must be without mistakes."""
    result = read_values(manifests)
    assert not result.diagnostics, result.diagnostics
    return ClusterCache.of(result.objects)
