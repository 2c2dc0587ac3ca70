"""A small controller: Deployments get ReplicaSets; ReplicaSets, StatefulSets and Jobs get pods."""

from __future__ import annotations

import hashlib
from typing import Final

from kdsl.sandbox.controllers.reconcilers import Dependents, Reconciler, owner_of
from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.resources import PODS, Resource, named
from kdsl.sandbox.model.store import Event, Key, encode
from kdsl.sandbox.requests.binding import is_ready, set_condition
from kdsl.sandbox.requests.call import SandboxState
from kdsl.sandbox.requests.creating import add
from kdsl.sandbox.requests.deleting import delete_version
from kdsl.sandbox.requests.parameters import DeleteOptions

_DEPLOYMENTS: Final = named("deployments", "apps")
_REPLICA_SETS: Final = named("replicasets", "apps")
_CONTROLLERS: Final = named("replicationcontrollers")
_STATEFUL_SETS: Final = named("statefulsets", "apps")
_JOBS: Final = named("jobs", "batch")
_OWNERS: Final = {
    item.kind: item for item in (_DEPLOYMENTS, _REPLICA_SETS, _CONTROLLERS, _STATEFUL_SETS, _JOBS)
}
_HASH: Final = "pod-template-hash"
_PHASE: Final = 5
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Workloads(Reconciler):
    """Creates and deletes the pods of workloads."""

    watched = (*_OWNERS.values(), PODS)

    def __init__(self, world: SandboxState) -> None:
        super().__init__(world)
        self._dependents = Dependents()

    def seen(self, resource: Resource, event: Event) -> None:
        """Mark a workload that changed, and those whose dependents changed."""
        if resource is not PODS:
            self.mark(resource, event.version.key)
        for owner in self._dependents.take(resource, event):
            kind = _OWNERS.get(owner.get("kind", ""))
            if kind is not None:
                self.mark(kind, (event.version.key[0], owner["name"]))

    def reconcile(self, resource: Resource, key: Key) -> None:
        """Create or delete the pods of a workload, and write its status."""
        version = self.world.store.get(resource, key)
        if version is None or resource is PODS:
            return
        body = version.body()
        if "deletionTimestamp" in body["metadata"]:
            return
        if resource is _DEPLOYMENTS:
            status = self._deployment(body)
        elif resource is _JOBS:
            status = self._job(body)
        else:
            status = self._replicated(resource, body)
        if status != body.get("status"):
            body["status"] = status
            self.world.store.write(resource, key, body)

    def _pods(self, body: Json) -> list[Json]:
        found = []
        for resource, key in self._dependents.of(body["metadata"]["uid"]):
            version = self.world.store.get(resource, key)
            if version is not None and resource is PODS:
                found.append(version.body())
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def _replicated(self, resource: Resource, body: Json) -> Json:
        wanted = body["spec"].get("replicas", 1)
        pods = [pod for pod in self._pods(body) if pod["status"].get("phase") not in _ENDED]
        if resource is _STATEFUL_SETS:
            self._fill_ordinals(body, pods, wanted)
        else:
            for _ in range(wanted - len(pods)):
                self._make_pod(resource, body, {"generateName": f"{body['metadata']['name']}-"})
            # Pods that do not run yet go first.
            for pod in sorted(pods, key=is_ready)[: max(0, len(pods) - wanted)]:
                self._delete_pod(pod)
        ready = sum(map(is_ready, pods))
        counts = {"replicas": len(pods), "fullyLabeledReplicas": len(pods)}
        if resource is _STATEFUL_SETS:
            counts = {"replicas": len(pods), "currentReplicas": len(pods), "updatedReplicas": len(pods)}
        status = {**counts, "readyReplicas": ready, "availableReplicas": ready}
        kept = {name: value for name, value in status.items() if value or name == "replicas"}
        return {**kept, "observedGeneration": body["metadata"]["generation"]}

    def _fill_ordinals(self, body: Json, pods: list[Json], wanted: int) -> None:
        """Keep the pods NAME-0 and following; the next one is made when the one before it is ready."""
        present = {pod["metadata"]["name"]: pod for pod in pods}
        name = body["metadata"]["name"]
        is_parallel = body["spec"].get("podManagementPolicy") == "Parallel"
        for ordinal in range(wanted):
            pod_name = f"{name}-{ordinal}"
            if pod_name not in present:
                if self.world.store.get(PODS, (body["metadata"]["namespace"], pod_name)) is None:
                    labels = {"apps.kubernetes.io/pod-index": str(ordinal)}
                    self._make_pod(_STATEFUL_SETS, body, {"name": pod_name}, labels)
                if not is_parallel:
                    break
            elif not is_parallel and not is_ready(present[pod_name]):
                break
        wanted_names = {f"{name}-{ordinal}" for ordinal in range(wanted)}
        for pod_name, pod in present.items():
            if pod_name not in wanted_names:
                self._delete_pod(pod)

    def _job(self, body: Json) -> Json:
        spec, before = body["spec"], body.get("status", {})
        if any(item["status"] == "True" for item in before.get("conditions", ())):
            return dict(before)
        pods = self._pods(body)
        phases = [pod["status"].get("phase") for pod in pods]
        succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
        active = len(pods) - succeeded - failed
        stamp = self.world.chance.stamp()
        status: Json = {"startTime": before.get("startTime", stamp), "ready": sum(map(is_ready, pods))}
        status |= {name: count for name, count in (("succeeded", succeeded), ("failed", failed)) if count}
        completions = spec.get("completions", 1)
        done = "Complete" if succeeded >= completions else "Failed" if failed > spec["backoffLimit"] else ""
        if done:
            condition = {"type": done, "status": "True", "lastProbeTime": stamp, "lastTransitionTime": stamp}
            set_condition(status, condition)
            if done == "Complete":
                status["completionTime"] = stamp
            return status
        if not spec.get("suspend"):
            for _ in range(min(spec["parallelism"], completions - succeeded) - active):
                self._make_pod(_JOBS, body, {"generateName": f"{body['metadata']['name']}-"})
                active += 1
        if active:
            status["active"] = active
        return status

    def _deployment(self, body: Json) -> Json:
        """Keep one ReplicaSet of the present template; older ones are deleted when it is ready."""
        digest = hashlib.sha256(encode(body["spec"]["template"])).hexdigest()[:10]
        sets = []
        for resource, key in self._dependents.of(body["metadata"]["uid"]):
            version = self.world.store.get(resource, key)
            if version is not None and resource is _REPLICA_SETS:
                sets.append(version.body())
        wanted = body["spec"].get("replicas", 1)
        present = next((item for item in sets if item["metadata"]["labels"].get(_HASH) == digest), None)
        if present is None:
            self._make_set(body, digest, wanted)
        else:
            self._scale(present, wanted)
        counts = present.get("status", {}) if present else {}
        ready = counts.get("readyReplicas", 0)
        if ready >= wanted:
            for older in sets:
                if older is not present:
                    self._scale(older, 0)
        total = sum(item.get("status", {}).get("replicas", 0) for item in sets)
        status = {
            "replicas": total,
            "updatedReplicas": counts.get("replicas", 0),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(0, wanted - ready),
        }
        kept: Json = {name: value for name, value in status.items() if value}
        kept["observedGeneration"] = body["metadata"]["generation"]
        kept["conditions"] = _available(body, ready >= wanted, self.world.chance.stamp())
        return kept

    def _make_set(self, body: Json, digest: str, wanted: int) -> None:
        metadata, spec = body["metadata"], body["spec"]
        template = spec["template"]
        labels = {**(template.get("metadata", {}).get("labels") or {}), _HASH: digest}
        selector = {
            **spec["selector"],
            "matchLabels": {**spec["selector"].get("matchLabels", {}), _HASH: digest},
        }
        new = {
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "namespace": metadata["namespace"],
                "labels": labels,
                "ownerReferences": [owner_of(_DEPLOYMENTS, body)],
            },
            "spec": {
                "replicas": wanted,
                "selector": selector,
                "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
            },
        }
        add(self.world, _REPLICA_SETS, new)

    def _scale(self, body: Json, wanted: int) -> None:
        if body["spec"].get("replicas") != wanted:
            body["spec"]["replicas"] = wanted
            body["metadata"]["generation"] += 1
            key = (body["metadata"]["namespace"], body["metadata"]["name"])
            self.world.store.write(_REPLICA_SETS, key, body)

    def _make_pod(
        self, resource: Resource, body: Json, name: Json, labels: dict[str, str] | None = None
    ) -> None:
        template = body["spec"]["template"]
        given = template.get("metadata", {})
        metadata: Json = {**name, "namespace": body["metadata"]["namespace"]}
        metadata["labels"] = {**(given.get("labels") or {}), **(labels or {})}
        if resource is _JOBS:
            metadata["labels"] |= {"batch.kubernetes.io/job-name": body["metadata"]["name"]}
        if given.get("annotations"):
            metadata["annotations"] = given["annotations"]
        metadata["ownerReferences"] = [owner_of(resource, body)]
        add(self.world, PODS, {"metadata": metadata, "spec": dict(template["spec"])})

    def _delete_pod(self, pod: Json) -> None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        version = self.world.store.get(PODS, key)
        if version is not None:
            delete_version(self.world, PODS, version, DeleteOptions())


def _available(body: Json, is_available: bool, stamp: str) -> list[Json]:
    value = "True" if is_available else "False"
    for item in body.get("status", {}).get("conditions", ()):
        if item["type"] == "Available" and item["status"] == value:
            return [item]
    reason = "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable"
    return [
        {
            "type": "Available",
            "status": value,
            "lastUpdateTime": stamp,
            "lastTransitionTime": stamp,
            "reason": reason,
            "message": "",
        }
    ]
