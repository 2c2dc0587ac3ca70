"""Garbage collection of objects whose owner or namespace is gone, and the status of disruption budgets."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.controllers.reconcilers import Dependents, Reconciler
from kdsl.sandbox.formats.selectors import matches_object
from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.resources import NAMESPACES, PODS, RESOURCES, VIRTUAL, Resource, named
from kdsl.sandbox.model.store import Event, Key
from kdsl.sandbox.requests.binding import is_ready
from kdsl.sandbox.requests.call import SandboxState
from kdsl.sandbox.requests.deleting import delete_version
from kdsl.sandbox.requests.evicting import BUDGETS
from kdsl.sandbox.requests.parameters import DeleteOptions

_OWNING: Final = (
    named("deployments", "apps"), named("replicasets", "apps"), named("statefulsets", "apps"),
    named("replicationcontrollers"), named("jobs", "batch"),
)  # fmt: skip
_PROPAGATION: Final = frozenset({"orphan", "foregroundDeletion"})
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Collector(Reconciler):
    """Deletes dependents and the content of namespaces, and finishes deletions that wait for it."""

    watched = (*_OWNING, NAMESPACES, PODS)

    def __init__(self, world: SandboxState) -> None:
        super().__init__(world)
        self._dependents = Dependents()
        self._orphaned: set[str] = set()

    def seen(self, resource: Resource, event: Event) -> None:
        """Delete the dependents of an owner that is gone; mark objects that wait."""
        self._dependents.take(resource, event)
        uid = event.version.uid
        if event.type == "DELETED":
            if uid in self._orphaned:
                self._orphaned.discard(uid)
                return
            for owned, key in self._dependents.of(uid):
                self.mark(owned, key)
        elif b'"deletionTimestamp"' in event.version.data:
            self.mark(resource, event.version.key)
        if resource is PODS:
            namespace = ("", event.version.key[0])
            home = self.world.store.get(NAMESPACES, namespace)
            if home is not None and b'"Terminating"' in home.data:
                self.mark(NAMESPACES, namespace)

    def reconcile(self, resource: Resource, key: Key) -> None:
        """Finish a waiting deletion, or delete an object without owners."""
        version = self.world.store.get(resource, key)
        if version is None:
            return
        body = version.body()
        if resource is NAMESPACES:
            self._empty(key[1], body)
            return
        if "deletionTimestamp" not in body["metadata"]:
            if self._is_abandoned(body):
                delete_version(self.world, resource, version, DeleteOptions(policy="Background"))
            return
        held = set(body["metadata"].get("finalizers", ()))
        if held & _PROPAGATION:
            if "orphan" in held:
                self._orphaned.add(version.uid)
            left = sorted(held - _PROPAGATION)
            body["metadata"].pop("finalizers")
            if left:
                body["metadata"]["finalizers"] = left
                self.world.store.write(resource, key, body)
            else:
                self.world.remove(resource, version, body)

    def _is_abandoned(self, body: Json) -> bool:
        """Return whether all of an object's owners are gone."""
        owners = body["metadata"].get("ownerReferences") or ()
        namespace = body["metadata"].get("namespace", "")
        kinds = {item.kind: item for item in _OWNING}
        for owner in owners:
            kind = kinds.get(owner["kind"])
            version = self.world.store.get(kind, (namespace, owner["name"])) if kind else None
            if kind is None or (version is not None and version.uid == owner["uid"]):
                return False
        return bool(owners)

    def _empty(self, name: str, body: Json) -> None:
        """Delete the content of a namespace that is being deleted, and remove it when it is empty."""
        if "deletionTimestamp" not in body["metadata"]:
            return
        left = 0
        for resource in RESOURCES:
            if not resource.is_namespaced or resource.plural in VIRTUAL:
                continue
            for inside in self.world.store.collection(resource).sorted_versions(name):
                delete_version(self.world, resource, inside, DeleteOptions(policy="Background"))
            left += len(self.world.store.collection(resource).sorted_versions(name))
        version = self.world.store.get(NAMESPACES, ("", name))
        if left == 0 and version is not None and not body["metadata"].get("finalizers"):
            body["spec"].pop("finalizers", None)
            self.world.remove(NAMESPACES, version, body)
        elif left:
            self.mark(NAMESPACES, ("", name))


class Budgets(Reconciler):
    """Writes the number of disruptions that each budget allows."""

    watched = (BUDGETS, PODS)

    def seen(self, resource: Resource, event: Event) -> None:
        """Mark a budget that changed, and the budgets of a namespace whose pods changed."""
        if resource is BUDGETS:
            self.mark(BUDGETS, event.version.key)
        elif self.world.store.collection(BUDGETS).items:
            for version in self.world.store.collection(BUDGETS).sorted_versions(event.version.key[0]):
                self.mark(BUDGETS, version.key)

    def reconcile(self, resource: Resource, key: Key) -> None:
        """Count the pods of a budget."""
        version = self.world.store.get(BUDGETS, key)
        if version is None:
            return
        body = version.body()
        selector = body["spec"].get("selector")
        expected = healthy = 0
        for pod in self.world.store.collection(PODS).sorted_versions(key[0]):
            if matches_object(selector, pod.labels):
                state = pod.body()
                if state["status"].get("phase") not in _ENDED:
                    expected += 1
                    healthy += "deletionTimestamp" not in state["metadata"] and is_ready(state)
        needed = _needed(body["spec"], expected)
        status = {
            "observedGeneration": body["metadata"]["generation"],
            "disruptionsAllowed": max(0, healthy - needed),
            "currentHealthy": healthy,
            "desiredHealthy": needed,
            "expectedPods": expected,
        }
        if status != body["status"]:
            body["status"] = status
            self.world.store.write(BUDGETS, key, body)


def _needed(spec: Json, expected: int) -> int:
    if "minAvailable" in spec:
        return _share(spec["minAvailable"], expected)
    return max(0, expected - _share(spec.get("maxUnavailable", 0), expected))


def _share(value: object, total: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * total // 100)
    return int(str(value))
