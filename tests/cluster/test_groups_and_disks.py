"""Groups of pods, disks by kind, and nodes that would rather not have some pods."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kdsl.cluster.objects.node import PREFER_AVOID_PODS, is_avoided
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.groups import service_groups, workload_groups
from kdsl.cluster.storage.disks import disks_of

NAMED = {"metadata": {"name": "x"}}
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Service", **NAMED, "spec": {"selector": {"app": "web"}}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "headless"}, "spec": {}},
    {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        **NAMED,
        "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
    },
    {"apiVersion": "v1", "kind": "ReplicationController", **NAMED, "spec": {"selector": {"app": "other"}}},
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "ebs"},
        "provisioner": "kubernetes.io/aws-ebs",
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "awsElasticBlockStore": {"volumeID": "a"},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "v"},
        "spec": {"volumeName": "v"},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "new"},
        "spec": {"storageClassName": "ebs"},
    },
]
CATALOG = ClusterCache.of(read_values(OBJECTS).objects).snapshot().catalog


def pod(labels: dict[str, str] | None = None, *volumes: dict[str, Any], **more: Any) -> PodInfo:
    spec = {
        "containers": [{"name": "c"}],
        "volumes": [{"name": f"v{at}", **each} for at, each in enumerate(volumes)],
    }
    metadata = {"name": "p", "labels": labels or {}, **more}
    (read,) = read_values([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}]).pods
    return PodInfo.of(read)


def test_groups_of_services_and_workloads() -> None:
    web = pod({"app": "web"})
    (service,), (workload,) = service_groups(web, CATALOG), workload_groups(web, CATALOG)
    other = pod({"app": "other"})
    assert (service.includes(web), service.includes(other), workload.includes(other)) == (True, False, True)
    assert not service.includes(pod({"app": "web"}, namespace="elsewhere"))
    assert not service.includes(pod({"app": "web"}, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert service_groups(pod(), CATALOG) == workload_groups(pod(), CATALOG) == ()
    assert len(workload_groups(other, CATALOG)) == 2


def claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


@pytest.mark.parametrize(
    ("volumes", "disks"),
    [
        ([], ()),
        ([{"awsElasticBlockStore": {"volumeID": "a"}}, claim("v")], ("a",)),
        ([claim("new"), claim("missing")], ("claim default/new",)),
        ([{"gcePersistentDisk": {"pdName": "a"}}], ()),
    ],
)
def test_disks_of_a_kind(volumes: list[dict[str, Any]], disks: tuple[str, ...]) -> None:
    assert disks_of(pod(None, *volumes), "awsElasticBlockStore", CATALOG) == disks


def avoiding(**controller: str) -> str:
    return json.dumps({"preferAvoidPods": [{"podSignature": {"podController": controller}}]})


@pytest.mark.parametrize(
    ("kind", "written", "avoided"),
    [
        ("ReplicaSet", avoiding(kind="ReplicaSet", uid="u"), True),
        ("ReplicaSet", avoiding(kind="ReplicaSet", uid="w"), False),
        ("ReplicaSet", avoiding(kind="ReplicationController", uid="u"), False),
        ("StatefulSet", avoiding(kind="StatefulSet", uid="u"), False),
        ("ReplicaSet", "{", False),
        ("ReplicaSet", "[]", False),
        ("ReplicaSet", '{"preferAvoidPods": [{}]}', False),
        ("ReplicaSet", '{"preferAvoidPods": [{"podSignature": {"podController": null}}]}', False),
    ],
)
def test_who_is_avoided(kind: str, written: str, avoided: bool) -> None:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u", "controller": True}
    owned = pod(None, ownerReferences=[owner])
    assert is_avoided(owned, {PREFER_AVOID_PODS: written}) is avoided
    assert not is_avoided(pod(), {PREFER_AVOID_PODS: written})
