"""Shapes in which unlike pods on unlike nodes have one more feature: a search for cases that are slow alone.

The selectors, claims and ports differ from pod to pod, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from tests.bench.unlike import APPS, HOSTNAME, ZONE, ZONES, unlike_pods

Json = dict[str, Any]
Feature = Callable[[Json, int, Random], None]
"""Adds the feature to a pod, given its number."""

PREFIX = "unlike+"
DRIVER, CLASS = "csi.example.com", "wait"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def pods(shape: str, prefix: str, count: int) -> Iterator[Json]:
    """Yield unlike pods with the feature of a shape. Bound pods have no claims."""
    random = Random(f"{prefix} {shape}")
    feature = FEATURES[shape]
    for number, pod in enumerate(unlike_pods(prefix, count)):
        if feature is not _claim or prefix == "pending":
            feature(pod, number, random)
        yield pod


def other_objects(shape: str, nodes: int, pods: int) -> Iterator[Json]:
    """Yield the other objects of a shape: services, or a claim for each pending pod with its volume."""
    if shape == SERVICES:
        for number in range(APPS):
            service = _object("Service", f"app-{number}", spec={"selector": {"app": f"app-{number}"}})
            service["metadata"]["namespace"] = "bench"
            yield service
    if FEATURES.get(shape) is not _claim:
        return
    provisioner = NO_PROVISIONER if shape == LOCAL_VOLUMES else DRIVER
    yield _object("StorageClass", CLASS, provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer")
    if shape == LOCAL_VOLUMES:
        for number in range(2 * nodes):
            place = [{"key": HOSTNAME, "operator": "In", "values": [f"node-{number % nodes}"]}]
            yield _volume(number, _terms(place), {"local": {"path": f"/disks/{number}"}})
    if shape == LIMITED_VOLUMES:
        for number in range(nodes):
            driver = {"name": DRIVER, "nodeID": f"{number}", "allocatable": {"count": 25}}
            yield _object("CSINode", f"node-{number}", spec={"drivers": [driver]})
    for number in range(pods):
        if shape in (NEW_VOLUMES, LOCAL_VOLUMES):
            yield _claim_of(number, {}, {})
            continue
        affinity = _terms([{"key": ZONE, "operator": "In", "values": [f"zone-{number % ZONES}"]}])
        yield _claim_of(
            number, {"pv.kubernetes.io/bind-completed": "yes"}, {"volumeName": f"volume-{number}"}
        )
        handle = {"csi": {"driver": DRIVER, "volumeHandle": f"handle-{number}"}}
        yield _volume(number, affinity, handle, claimRef={"namespace": "bench", "name": f"claim-{number}"})


def _volume(number: int, affinity: Json, source: Json, **bound: Json) -> Json:
    """Return a volume, free unless it names a claim."""
    return _object(
        "PersistentVolume",
        f"volume-{number}",
        spec={
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "nodeAffinity": {"required": affinity},
            **source,
            **bound,
        },
        status={"phase": "Bound" if bound else "Available"},
    )


def _claim_of(number: int, annotations: Json, spec: Json) -> Json:
    claim = _object(
        "PersistentVolumeClaim",
        f"claim-{number}",
        spec={
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            **spec,
            "resources": {"requests": {"storage": "10Gi"}},
        },
        status={"phase": "Bound" if spec else "Pending"},
    )
    claim["metadata"] |= {"namespace": "bench", "annotations": annotations}
    return claim


def _object(kind: str, name: str, **fields: Any) -> Json:
    version = "v1" if kind == "Service" or kind.startswith("Persistent") else "storage.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def _terms(*terms: list[Json]) -> Json:
    return {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}


def _node_affinity(pod: Json, number: int, random: Random) -> None:
    """Require node affinity with all kinds of comparisons."""
    newer = {"key": "generation", "operator": "Gt", "values": [str(random.randrange(1, 4))]}
    racks = {"key": "rack", "operator": "In", "values": [f"rack-{random.randrange(250)}" for _ in range(8)]}
    terms = _terms([newer, {"key": "disk", "operator": "NotIn", "values": ["hdd"]}], [racks])
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = terms


def _required(kind: str, key: str) -> Feature:
    def feature(pod: Json, number: int, random: Random) -> None:
        selector = {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}
        affinity = pod["spec"].setdefault("affinity", {}).setdefault(kind, {})
        term = {"topologyKey": key, "labelSelector": selector}
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [term]

    return feature


def _spread(pod: Json, number: int, random: Random) -> None:
    """Spread over zones and nodes, with all policies."""
    selector = {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}
    zones = {"minDomains": 2, "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["team"]}
    pod["spec"]["topologySpreadConstraints"] = [
        {"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": random.randrange(1, 4), **more}
        | {"labelSelector": selector}
        for key, action, more in ((ZONE, "DoNotSchedule", zones), (HOSTNAME, "ScheduleAnyway", {}))
    ]


def _terms_of_many(pod: Json, number: int, random: Random) -> None:
    """Prefer to be near to five apps."""
    terms = [
        {
            "weight": random.randrange(1, 101),
            "podAffinityTerm": {
                "topologyKey": random.choice([ZONE, HOSTNAME]),
                "labelSelector": {"matchLabels": {"app": f"app-{random.randrange(APPS)}"}},
            },
        }
        for _ in range(5)
    ]
    affinity = pod["spec"].setdefault("affinity", {})
    affinity["podAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": terms}


def _port(pod: Json, number: int, random: Random) -> None:
    ports = [{"containerPort": 80, "hostPort": random.randrange(1_000, 4_000)}]
    pod["spec"]["containers"][0]["ports"] = ports


def _service(pod: Json, number: int, random: Random) -> None:
    """Let the service of the app select the pod, which has the default spread constraints."""
    pod["spec"].pop("topologySpreadConstraints", None)


def _claim(pod: Json, number: int, random: Random) -> None:
    claim = {"claimName": f"claim-{number}"}
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]


SERVICES = f"{PREFIX}services"
NEW_VOLUMES, LIMITED_VOLUMES = f"{PREFIX}new-volumes", f"{PREFIX}limited-volumes"
LOCAL_VOLUMES = f"{PREFIX}local-volumes"
FEATURES: Mapping[str, Feature] = {
    f"{PREFIX}node-affinity": _node_affinity,
    f"{PREFIX}affinity": _required("podAffinity", ZONE),
    f"{PREFIX}anti-affinity": _required("podAntiAffinity", HOSTNAME),
    f"{PREFIX}spread": _spread,
    f"{PREFIX}many-terms": _terms_of_many,
    f"{PREFIX}ports": _port,
    SERVICES: _service,
    NEW_VOLUMES: _claim,
    f"{PREFIX}bound-volumes": _claim,
    LIMITED_VOLUMES: _claim,
    LOCAL_VOLUMES: _claim,
}
"""The feature of each shape. New volumes are made with the pod; bound ones are in a zone; limited ones are bound, and
nodes take 25; local ones wait for the pod, two on each node.
"""
