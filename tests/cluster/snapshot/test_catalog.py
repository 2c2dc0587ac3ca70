from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.kinds import KINDS, CatalogObject
from kdsl.cluster.api.objects import Namespace, Node, Pod
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.catalog import Catalog, CatalogWord, key_of

from tests.cluster.build import facts, pod_info

NAMES = CatalogWord.NAMESPACES
SERVICES = CatalogWord.SERVICES
STORAGE = CatalogWord.STORAGE
BUDGETS = CatalogWord.BUDGETS
QUOTAS = CatalogWord.QUOTAS
DEVICES = CatalogWord.DEVICES

WORDS = {
    "Namespace": NAMES,
    "Service": SERVICES,
    "ReplicationController": SERVICES,
    "ReplicaSet": SERVICES,
    "StatefulSet": SERVICES,
    "PodDisruptionBudget": BUDGETS,
    "ResourceQuota": QUOTAS,
    "PersistentVolume": STORAGE,
    "PersistentVolumeClaim": STORAGE,
    "StorageClass": STORAGE,
    "CSINode": STORAGE,
    "CSIDriver": STORAGE,
    "CSIStorageCapacity": STORAGE,
    "VolumeAttachment": STORAGE,
    "DeviceClass": DEVICES,
    "ResourceClaim": CatalogWord.DEVICE_CLAIMS,
    "ResourceSlice": DEVICES,
}
VERSIONS = {kind: version for version, kind in KINDS}


def value(kind: str, name: str = "x", /, **fields: Any) -> dict[str, Any]:
    base = {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": {"name": name}}
    if kind in ("ReplicaSet", "StatefulSet"):
        base["spec"] = {"selector": {"matchLabels": {"app": "a"}}}
    if kind == "StorageClass":
        base["provisioner"] = "csi.example.com"
    if kind == "ResourceSlice":
        pool = {"name": "x", "generation": 1, "resourceSliceCount": 1}
        base["spec"] = {"driver": "d.example.com", "nodeName": "n", "pool": pool}
    return {**base, **fields}


def read(kind: str, name: str = "x", /, **fields: Any) -> CatalogObject:
    """Read an object that must be without mistakes."""
    result = read_values([value(kind, name, **fields)])
    assert not result.diagnostics, result.diagnostics
    return result.catalog[0]


def test_every_kind_but_pods_and_nodes_has_a_word() -> None:
    assert {kind for _, kind in KINDS} == WORDS.keys() | {Pod.KIND, Node.KIND}


@pytest.mark.parametrize("kind", WORDS)
def test_changes_raise_the_version_of_their_word_only(kind: str) -> None:
    catalog, thing = Catalog(), read(kind)
    assert not catalog.remove(kind, key_of(thing))
    changed = read(kind, metadata={"name": "x", "labels": {"new": "label"}})
    changes: list[Callable[[], bool]] = [
        lambda: catalog.put(thing),
        lambda: catalog.put(changed),
        lambda: catalog.remove(kind, key_of(thing)),
    ]
    for change in changes:
        before = {word: catalog.version(word) for word in CatalogWord}
        assert change()
        after = {word: catalog.version(word) for word in CatalogWord}
        assert {word for word in CatalogWord if after[word] > before[word]} == {WORDS[kind]}
    catalog.put(thing)
    version = catalog.version(WORDS[kind])
    assert not catalog.put(read(kind))
    assert catalog.version(WORDS[kind]) == version


def test_services_and_workloads_are_kept_as_selectors() -> None:
    catalog = Catalog()
    web = read("Service", "web", spec={"selector": {"app": "web"}})
    for thing in (
        web,
        read("Service", "all", spec={"selector": {}}),
        read("Service", "none"),
        read("Service", "far", metadata={"name": "far", "namespace": "b"}, spec={"selector": {"app": "far"}}),
        read("ReplicationController", "old", spec={"template": {"metadata": {"labels": {"app": "old"}}}}),
        read(
            "StatefulSet",
            "db",
            spec={"selector": {"matchExpressions": [{"key": "db", "operator": "Exists"}]}},
        ),
    ):
        catalog.put(thing)
    app_web = LabelSelector.of_labels({"app": "web"})
    pods = {
        app: PodInfo("p", namespace, labels=FrozenMap({"app": app}))
        for app, namespace in (("web", "default"), ("new", "default"), ("far", "b"), ("gone", "c"))
    }
    assert catalog.service_selectors(pods["web"]) == [app_web, LabelSelector()]
    assert catalog.service_selectors(pods["new"]) == [LabelSelector()]
    assert catalog.service_selectors(pods["far"]) == [LabelSelector.of_labels({"app": "far"})]
    assert catalog.service_selectors(pods["gone"]) == []
    old = catalog.workload_selector("ReplicationController", "default/old")
    assert old == LabelSelector.of_labels({"app": "old"})
    sts = catalog.workload_selector("StatefulSet", "default/db")
    assert sts is not None and sts.matches({"db": ""}) and not sts.matches({})
    assert catalog.workload_selector("ReplicaSet", "default/db") is None

    catalog.put(read("Service", "web", spec={"selector": {"app": "new"}}))
    catalog.remove("Service", "default/all")
    catalog.remove("Service", "b/far")
    catalog.remove("StatefulSet", "default/db")
    assert catalog.service_selectors(pods["web"]) == []
    assert catalog.service_selectors(pods["new"]) == [LabelSelector.of_labels({"app": "new"})]
    assert catalog.service_selectors(pods["far"]) == []
    assert catalog.workload_selector("StatefulSet", "default/db") is None


def test_objects_are_found_by_their_keys() -> None:
    cache = ClusterCache.of(
        read_values(
            [value(kind, metadata={"name": "x", "namespace": "ns"}) for kind in WORDS if kind != "Namespace"]
        ).objects
    )
    catalog = cache.snapshot().catalog
    assert [*catalog.claims] == ["ns/x"] and [*catalog.storage_capacities] == ["ns/x"]
    by_name = (catalog.volumes, catalog.storage_classes, catalog.csi_nodes, catalog.csi_drivers)
    assert [[*objects] for objects in by_name] == [["x"]] * 4
    assert [budget.metadata.name for budget in catalog.budgets] == ["x"]
    cache.remove("PersistentVolumeClaim", "ns/x")
    assert not cache.snapshot().catalog.claims


def namespace(name: str, **labels: str) -> Namespace:
    thing = read("Namespace", metadata={"name": name, "labels": labels})
    assert isinstance(thing, Namespace)
    return thing


def test_pods_know_the_labels_of_their_namespace() -> None:
    cache = ClusterCache()
    cache.add_node(facts("n"))
    before = pod_info({"nodeName": "n"}, name="before", namespace="a")
    lost = pod_info({"nodeName": "nowhere"}, name="lost", namespace="a")
    for pod in (before, pod_info({"nodeName": "n"}, name="other", namespace="b"), lost):
        cache.add_pod(pod)
    usage = cache.snapshot().usage_version[0]

    def labels() -> list[tuple[str, str | None]]:
        node = cache.snapshot().node("n")
        assert node is not None
        return [(pod.name, pod.namespace_labels.get("env")) for pod in node.pods]

    cache.put(namespace("a", env="prod"))
    assert labels() == [("before", "prod"), ("other", None)]
    assert cache.snapshot().usage_version[0] > usage
    cache.add_pod(pod_info({"nodeName": "n"}, name="after", namespace="a"))
    cache.assume(pod_info({}, name="assumed", namespace="a"), "n")
    assert labels() == [("before", "prod"), ("other", None), ("after", "prod"), ("assumed", "prod")]
    cache.remove("Namespace", "a")
    assert labels() == [("before", None), ("other", None), ("after", None), ("assumed", None)]
    cache.put(namespace("a", env="dev"))
    cache.add_node(facts("nowhere"))
    node = cache.snapshot().node("nowhere")
    assert node is not None and node.pods[0].namespace_labels["env"] == "dev"


def test_a_pod_that_is_to_be_placed_is_completed() -> None:
    cache = ClusterCache.of([namespace("a", env="prod")])
    catalog = cache.snapshot().catalog
    pod = pod_info({}, namespace="a")
    completed = catalog.complete(pod)
    assert completed.namespace_labels == {"env": "prod", "kubernetes.io/metadata.name": "a"}
    assert catalog.complete(completed) is completed
    stray = PodInfo("p", "nowhere")
    assert catalog.complete(stray) is stray


def test_a_change_of_the_catalog_is_a_new_version_of_the_same_snapshot() -> None:
    cache = ClusterCache()
    cache.add_node(NodeFacts("n"))
    snapshot = cache.snapshot()
    version, overlay = snapshot.version, snapshot.overlay(0, snapshot.info(0))
    assert overlay.catalog is snapshot.catalog
    cache.put(read("StorageClass"))
    assert cache.snapshot() is snapshot and snapshot.version > version
    version = snapshot.version
    cache.put(read("StorageClass"))
    assert cache.snapshot().version == version


DEFAULTS = [
    ("PersistentVolumeClaim", {}, {"spec.volume_mode": "Filesystem", "status.phase": "Pending"}),
    ("PersistentVolumeClaim", {"spec": {"volumeMode": "Block"}}, {"spec.volume_mode": "Block"}),
    ("PersistentVolumeClaim", {"spec": {"storageClassName": ""}}, {"spec.storage_class_name": ""}),
    ("PersistentVolumeClaim", {}, {"spec.storage_class_name": None, "metadata.namespace": "default"}),
    ("PersistentVolume", {}, {"spec.volume_mode": "Filesystem", "metadata.namespace": "", "metadata.uid": "x"}),
    ("StorageClass", {}, {"volume_binding_mode": "Immediate"}),
    ("StorageClass", {"volumeBindingMode": "WaitForFirstConsumer"}, {"volume_binding_mode": "WaitForFirstConsumer"}),
    ("CSIDriver", {}, {"spec.storage_capacity": False}),
    ("CSINode", {"spec": {"drivers": []}}, {"metadata.uid": "x"}),
    ("Namespace", {}, {"metadata.labels": {"kubernetes.io/metadata.name": "x"}}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "expected"), DEFAULTS)
def test_defaults(kind: str, fields: dict[str, Any], expected: dict[str, object]) -> None:
    thing = read(kind, **fields)
    for path, wanted in expected.items():
        found: object = thing
        for step in path.split("."):
            found = getattr(found, step)
        assert found == wanted, path


SELECTOR = {"matchExpressions": [{"key": "a", "operator": "Is"}]}
MISTAKES = [
    ("Service", {"spec": {"selector": {"not a key": "x"}}}, 'spec.selector["not a key"]'),
    ("ReplicaSet", {"spec": {}}, "spec.selector"),
    ("StatefulSet", {"spec": {"selector": SELECTOR}}, "spec.selector.matchExpressions[0].operator"),
    ("PodDisruptionBudget", {"spec": {"selector": SELECTOR}}, "spec.selector.matchExpressions[0].operator"),
    ("PersistentVolumeClaim", {"spec": {"accessModes": ["RWO"]}}, "spec.accessModes[0]"),
    ("PersistentVolumeClaim", {"spec": {"volumeMode": "Raw"}}, "spec.volumeMode"),
    ("PersistentVolumeClaim", {"spec": {"selector": SELECTOR}}, "spec.selector.matchExpressions[0].operator"),
    ("PersistentVolumeClaim", {"spec": {"resources": {"requests": {"storage": "5GB!"}}}}, "spec.resources.requests.storage"),
    ("PersistentVolume", {"spec": {"capacity": {"storage": "-1"}}}, "spec.capacity.storage"),
    ("PersistentVolume", {"spec": {"nodeAffinity": {"required": {}}}}, "spec.nodeAffinity.required.nodeSelectorTerms"),
    ("StorageClass", {"provisioner": ""}, "provisioner"),
    ("StorageClass", {"volumeBindingMode": "Later"}, "volumeBindingMode"),
    ("CSINode", {"spec": {"drivers": [{"name": "a"}, {"name": "a"}]}}, "spec.drivers[1].name"),
    ("CSINode", {"spec": {"drivers": [{}]}}, "spec.drivers[0].name"),
    ("CSINode", {"spec": {"drivers": [{"name": "a", "allocatable": {"count": -1}}]}}, "spec.drivers[0].allocatable.count"),
    ("CSIStorageCapacity", {"capacity": "much"}, "capacity"),
    ("CSIStorageCapacity", {"nodeTopology": SELECTOR}, "nodeTopology.matchExpressions[0].operator"),
    ("Namespace", {"metadata": {"name": "a.b"}}, "metadata.name"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "place"), MISTAKES)
def test_mistakes_are_said_where_they_are(kind: str, fields: dict[str, Any], place: str) -> None:
    result = read_values([value(kind, **fields)])
    assert not result.objects
    assert [one.where for one in result.diagnostics] == [f"<values>#1: {place}"]
    assert isinstance(result.diagnostics[0].code, InputCode)


def test_an_assumed_pod_is_confirmed_with_the_labels_its_namespace_has_by_then() -> None:
    cache = ClusterCache.of([namespace("a", env="prod")])
    cache.add_node(facts("n"))
    assumed = cache.assume(pod_info({}, name="p", namespace="a"), "n")
    version = cache.snapshot().version
    cache.add_pod(assumed)
    assert cache.snapshot().version == version
    cache.put(namespace("a", env="dev"))
    cache.add_pod(assumed)
    assert not cache.is_assumed("a/p")
    placed = cache.pod("a/p")
    assert placed is not None and placed.namespace_labels["env"] == "dev"


def test_an_index_of_storage_forgets_classes_and_drivers_that_are_gone() -> None:
    catalog = Catalog()
    for number in range(3):
        driver = {"name": f"d{number}", "nodeID": "x", "allocatable": {"count": 1}}
        objects = [
            read("PersistentVolume", spec={"storageClassName": f"s{number}"}),
            read("CSINode", spec={"drivers": [driver]}),
        ]
        for each in objects:
            catalog.put(each)
        assert [volume.name for volume in catalog.storage.of_class(f"s{number}")] == ["x"]
        assert catalog.storage.is_limited(f"d{number}")
        for each in objects:
            catalog.remove(each.KIND, key_of(each))
    assert not catalog.storage._classes
    assert not catalog.storage._limited
