"""Drawing the objects other than nodes and pods, of the kinds that rules read from the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kdsl.testing.drawing import Drawing
from kdsl.testing.manifest import Manifest
from kdsl.testing.pod_drawing import CLAIMS
from kdsl.testing.vocabulary import NAME, ZONE

_DRIVER: Final = "csi.example.com"
_CLASSES: Final = {"now": "Immediate", "later": "WaitForFirstConsumer"}


def draw_objects(draw: Drawing, nodes: Sequence[str]) -> list[Manifest]:
    """Draw the objects of a cluster with these nodes."""
    words = draw.words
    found: list[Manifest] = []
    if words.reads("namespaceLabels"):
        found.extend(_namespaces(draw))
    if words.asks("cluster.services") and draw.chance():
        found.extend(_services(draw))
    if words.asks("cluster.budgets") and draw.chance():
        spec = {"selector": {"matchLabels": _labels(draw)}, "maxUnavailable": draw.pick((0, 1))}
        found.append(_object("policy/v1", "PodDisruptionBudget", "budget", _namespace(draw), spec=spec))
    if words.asks("cluster.storage"):
        found.extend(_storage(draw, nodes))
    return found


def _object(api: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def _namespace(draw: Drawing) -> str:
    return draw.pick((*draw.words.namespaces, "default", "default"))


def _labels(draw: Drawing) -> dict[str, str]:
    labels = draw.strings("Pod", "labels") or {"app": "a"}
    key = next(iter(labels))
    return {key: labels[key]}


def _namespaces(draw: Drawing) -> Iterator[Manifest]:
    for name in draw.words.namespaces:
        if draw.random.random() < 0.7:
            namespace = _object("v1", "Namespace", name)
            namespace["metadata"]["labels"] = draw.strings("Pod", "namespaceLabels")
            yield namespace


def _services(draw: Drawing) -> Iterator[Manifest]:
    yield _object("v1", "Service", "service", _namespace(draw), spec={"selector": _labels(draw)})
    spec = {"replicas": 1, "selector": {"matchLabels": _labels(draw)}}
    yield _object("apps/v1", "ReplicaSet", draw.pick(("a", "b")), _namespace(draw), spec=spec)


def _storage(draw: Drawing, nodes: Sequence[str]) -> Iterator[Manifest]:
    if draw.random.random() < 0.1:
        return
    for name, mode in _classes(draw).items():
        yield _object("storage.k8s.io/v1", "StorageClass", name, provisioner=_DRIVER, volumeBindingMode=mode)
    namespaces = list(dict.fromkeys(("default", _namespace(draw))))
    for namespace in namespaces:
        for at, name in enumerate(CLAIMS):
            if draw.random.random() < 0.8:
                yield _claim(draw, name, namespace, f"volume-{at + 1}")
    for at in range(len(CLAIMS)):
        if draw.random.random() < 0.8:
            yield _volume(draw, f"volume-{at + 1}")
    limited = draw.some(nodes, 3)
    for name in limited:
        driver = {"name": _DRIVER, "nodeID": name, "allocatable": {"count": draw.pick((0, 1, 2))}}
        yield _object("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [driver]})


def _classes(draw: Drawing) -> dict[str, str]:
    """Return storage classes with their binding modes: two, and those that rules name."""
    named = draw.words.texts("Claim", "storageClassName", values=NAME)
    return {**_CLASSES, **dict.fromkeys(named, "Immediate")}


def _claim(draw: Drawing, name: str, namespace: str, volume: str) -> Manifest:
    known = [*draw.words.texts("Claim", "accessModes"), "ReadWriteOnce", "ReadWriteOncePod"]
    modes = [mode for mode in known if mode.startswith("Read")]
    spec: Manifest = {"accessModes": [draw.pick(modes)], "resources": {"requests": {"storage": "1Gi"}}}
    bound = draw.random.random() < 0.7
    if bound:
        spec["volumeName"] = volume
    if draw.random.random() < 0.8:
        spec["storageClassName"] = draw.pick((*_classes(draw), "unknown"))
    status = {"phase": "Bound" if bound else "Pending"}
    claim = _object("v1", "PersistentVolumeClaim", name, namespace, spec=spec, status=status)
    if bound:
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return claim


def _volume(draw: Drawing, name: str) -> Manifest:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": _DRIVER, "volumeHandle": name},
    }
    volume = _object("v1", "PersistentVolume", name, spec=spec)
    keys = draw.words.keys("Volume", "labels") or [ZONE]
    labels = {}
    for key in keys:
        if draw.random.random() < 0.3:
            known = draw.words.labels.get(key) or ("a", "b")
            labels[key] = draw.pick([value for value in known if value] or ["a"])
    volume["metadata"]["labels"] = labels
    return volume
