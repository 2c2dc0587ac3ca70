"""A volume controller and provisioner: claims get volumes, at once or when a node was selected for them."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.controllers.reconcilers import Reconciler
from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.resources import CLAIMS, Resource, named
from kdsl.sandbox.model.store import Key
from kdsl.sandbox.requests.creating import add

_VOLUMES: Final = named("persistentvolumes")
_NODES: Final = named("nodes")
_HOSTNAME: Final = "kubernetes.io/hostname"
_CLASSES: Final = named("storageclasses", "storage.k8s.io")
_SELECTED: Final = "volume.kubernetes.io/selected-node"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_PROTECTION: Final = frozenset({"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"})


class Volumes(Reconciler):
    """Binds claims: to the volume that names them, or to a new one of their class's provisioner."""

    watched = (CLAIMS, _VOLUMES)

    def reconcile(self, resource: Resource, key: Key) -> None:
        """Reconcile a claim or a volume."""
        version = self.world.store.get(resource, key)
        if version is None:
            return
        body = version.body()
        if "deletionTimestamp" in body["metadata"]:
            self._release(resource, key, body)
        elif resource is CLAIMS:
            self._claim(key, body)
        else:
            self._volume(key, body)

    def _release(self, resource: Resource, key: Key, body: Json) -> None:
        """Remove the protection of a deleted claim or volume."""
        version = self.world.store.get(resource, key)
        left = [item for item in body["metadata"].get("finalizers", ()) if item not in _PROTECTION]
        if version is not None and not left:
            body["metadata"].pop("finalizers", None)
            self.world.remove(resource, version, body)

    def _volume(self, key: Key, body: Json) -> None:
        reference = body["spec"].get("claimRef") or {}
        if not reference:
            if body["status"]["phase"] == "Pending":
                self._set_phase(key, body, "Available")
            return
        claim_key = (reference.get("namespace", ""), reference.get("name", ""))
        claim = self.world.store.get(CLAIMS, claim_key)
        if claim is None or reference.get("uid", claim.uid) != claim.uid:
            if body["status"]["phase"] == "Bound":
                self._set_phase(key, body, "Released")
            return
        if body["status"]["phase"] != "Bound":
            self._set_phase(key, body, "Bound")
        self._bind(claim_key, claim.body(), body)

    def _set_phase(self, key: Key, body: Json, phase: str) -> None:
        body["status"] |= {"phase": phase, "lastPhaseTransitionTime": self.world.chance.stamp()}
        self.world.store.write(_VOLUMES, key, body)

    def _bind(self, key: Key, claim: Json, volume: Json) -> None:
        if claim["status"]["phase"] == "Bound":
            return
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["metadata"].setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
        claim["status"] |= {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": volume["spec"]["capacity"],
        }
        self.world.store.write(CLAIMS, key, claim)

    def _claim(self, key: Key, body: Json) -> None:
        spec = body["spec"]
        if body["status"]["phase"] == "Bound":
            return
        if spec.get("volumeName"):
            self._bind_named(body)
            return
        kind = self.world.store.get(_CLASSES, ("", spec.get("storageClassName", "")))
        storage_class = kind.body() if kind else {}
        provisioner = storage_class.get("provisioner", _NO_PROVISIONER)
        waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        node = (body["metadata"].get("annotations") or {}).get(_SELECTED, "")
        if provisioner != _NO_PROVISIONER and (node or not waits):
            self._provision(body, storage_class, node)

    def _bind_named(self, claim: Json) -> None:
        """Bind a claim to the volume it names, if that is free."""
        name = claim["spec"]["volumeName"]
        version = self.world.store.get(_VOLUMES, ("", name))
        if version is None:
            return
        volume = version.body()
        if not volume["spec"].get("claimRef"):
            volume["spec"]["claimRef"] = _reference(claim)
            self.world.store.write(_VOLUMES, ("", name), volume)

    def _provision(self, claim: Json, storage_class: Json, node: str) -> None:
        name = f"pvc-{claim['metadata']['uid']}"
        if self.world.store.get(_VOLUMES, ("", name)) is not None:
            return
        provisioner = storage_class["provisioner"]
        spec: Json = {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "claimRef": _reference(claim),
            "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim["spec"]["volumeMode"],
            "csi": {"driver": provisioner, "volumeHandle": name},
        }
        found = self.world.store.get(_NODES, ("", node)) if node else None
        # A node that a person created may lack the label, which a kubelet always writes.
        host = (found.body()["metadata"].get("labels") or {}).get(_HOSTNAME, "") if found else node
        if host:
            expression = {"key": _HOSTNAME, "operator": "In", "values": [host]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        metadata = {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": provisioner}}
        add(self.world, _VOLUMES, {"metadata": metadata, "spec": spec})


def _reference(claim: Json) -> Json:
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
