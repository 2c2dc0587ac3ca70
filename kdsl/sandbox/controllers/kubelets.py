"""Fake kubelets: they run bound pods, end the pods of Jobs, and stop deleted ones."""

from __future__ import annotations

import asyncio
from typing import Final

from kdsl.sandbox.model.errors import ApiError, Json
from kdsl.sandbox.model.resources import NODES, PODS
from kdsl.sandbox.model.store import Event, Key, Version
from kdsl.sandbox.options import SandboxOptions
from kdsl.sandbox.requests.binding import set_condition
from kdsl.sandbox.requests.call import SandboxState
from kdsl.sandbox.requests.deleting import delete_version
from kdsl.sandbox.requests.parameters import DeleteOptions

RUN_SECONDS: Final = "sandbox.kdsl/run-seconds"
"""The annotation with the time in seconds that a pod runs before it succeeds."""

_NODE_NAME, _PHASE = 0, 5
_STOP_SECONDS: Final = 0.3
_DELETING: Final = b'"deletionTimestamp"'


class Kubelets:
    """The kubelets of all nodes. Later steps are timers of the event loop."""

    def __init__(self, world: SandboxState, options: SandboxOptions) -> None:
        self._world = world
        self._options = options
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._addresses = 0

    def start(self) -> None:
        """Run the pods that are bound now, and those bound later."""
        store = self._world.store
        for resource, take in ((NODES, self._node_changed), (PODS, self._pod_changed)):
            collection = store.collection(resource)
            for version in collection.sorted_versions():
                take(Event("ADDED", version, None))
            collection.watchers[self, resource] = take

    def stop(self) -> None:
        """Stop running anything."""
        for resource in (NODES, PODS):
            self._world.store.collection(resource).watchers.pop((self, resource), None)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _node_changed(self, event: Event) -> None:
        if event.type == "ADDED" and b'"Ready"' not in event.version.data:
            asyncio.get_running_loop().call_soon(self._register, event.version.key)

    def _register(self, key: Key) -> None:
        """Report a node without another kubelet as ready."""
        version = self._world.store.get(NODES, key)
        if version is None:
            return
        body = version.body()
        stamp = self._world.chance.stamp()
        condition = {
            "type": "Ready",
            "status": "True",
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
            "reason": "KubeletReady",
            "message": "a kubelet of the sandbox is posting ready status",
        }
        set_condition(body["status"], condition)
        body["status"]["nodeInfo"]["kubeletVersion"] = "v1.36.0-kdsl-sandbox"
        self._world.store.write(NODES, key, body)

    def _pod_changed(self, event: Event) -> None:
        version = event.version
        if event.type == "DELETED":
            self._cancel(version.uid)
            return
        fields = version.fields
        if fields is None or not fields[_NODE_NAME]:
            return
        if _DELETING in version.data:
            previous = event.previous
            if previous is None or _DELETING not in previous.data:
                grace = version.body()["metadata"].get("deletionGracePeriodSeconds", 0)
                self._after(min(_STOP_SECONDS, grace), version, self._take_down)
        elif fields[_PHASE] == "Pending" and version.uid not in self._timers:
            self._after(self._options.start_seconds, version, self._run)

    def _after(self, seconds: float, version: Version, act: object) -> None:
        self._cancel(version.uid)
        loop = asyncio.get_running_loop()
        self._timers[version.uid] = loop.call_later(seconds, self._due, act, version.key, version.uid)

    def _cancel(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def _due(self, act: object, key: Key, uid: str) -> None:
        self._timers.pop(uid, None)
        version = self._world.store.get(PODS, key)
        if version is not None and version.uid == uid and callable(act):
            act(version)

    def _run(self, version: Version) -> None:
        body = version.body()
        if self._world.store.get(NODES, ("", body["spec"]["nodeName"])) is None:
            return
        stamp = self._world.chance.stamp()
        status = body["status"]
        status["phase"] = "Running"
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
            _set(status, kind, "True", stamp)
        self._addresses += 1
        address = (
            f"10.{128 + (self._addresses >> 16) % 128}.{(self._addresses >> 8) % 256}.{self._addresses % 256}"
        )
        status |= {"podIP": address, "podIPs": [{"ip": address}], "startTime": stamp}
        status["containerStatuses"] = [
            {**_container(item), "ready": True, "started": True, "state": {"running": {"startedAt": stamp}}}
            for item in body["spec"]["containers"]
        ]
        written = self._world.store.write(PODS, version.key, body)
        self._plan_end(written, body)

    def _plan_end(self, version: Version, body: Json) -> None:
        """Schedule the end of a pod that does not run for ever."""
        seconds = self._run_seconds(body)
        deadline = body["spec"].get("activeDeadlineSeconds")
        if deadline is not None and (seconds is None or deadline < seconds):
            self._after(deadline, version, self._exceed)
        elif seconds is not None:
            self._after(seconds, version, self._succeed)

    def _run_seconds(self, body: Json) -> float | None:
        metadata = body["metadata"]
        written = (metadata.get("annotations") or {}).get(RUN_SECONDS)
        if written is not None and written.replace(".", "", 1).isdecimal():
            return float(written)
        is_job = any(owner.get("kind") == "Job" for owner in metadata.get("ownerReferences") or ())
        return self._options.job_seconds if is_job else None

    def _succeed(self, version: Version) -> None:
        self._end(version, "Succeeded", "Completed", 0)

    def _exceed(self, version: Version) -> None:
        self._end(version, "Failed", "DeadlineExceeded", 137)

    def _end(self, version: Version, phase: str, reason: str, code: int) -> None:
        body = version.body()
        stamp = self._world.chance.stamp()
        status = body["status"]
        status["phase"] = phase
        if phase == "Failed":
            status["reason"] = reason
        for kind in ("Ready", "ContainersReady"):
            _set(status, kind, "False", stamp, f"Pod{'Completed' if code == 0 else 'Failed'}")
        ended = {"exitCode": code, "reason": reason, "finishedAt": stamp}
        status["containerStatuses"] = [
            {**_container(item), "ready": False, "state": {"terminated": ended}}
            for item in body["spec"]["containers"]
        ]
        self._world.store.write(PODS, version.key, body)

    def _take_down(self, version: Version) -> None:
        try:
            delete_version(self._world, PODS, version, DeleteOptions(grace=0, uid=version.uid))
        except ApiError:
            # Another pod has the name by now.
            return


def _set(status: Json, kind: str, value: str, stamp: str, reason: str = "") -> None:
    condition = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": stamp}
    if reason:
        condition["reason"] = reason
    set_condition(status, condition)


def _container(spec: Json) -> Json:
    image = spec.get("image", "")
    return {"name": spec["name"], "image": image, "imageID": image, "restartCount": 0, "lastState": {}}
