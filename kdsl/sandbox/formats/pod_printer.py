"""The row of `kubectl get pods`: the number of ready containers, and the pod's state in one word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kdsl.sandbox.model.errors import Json

_NONE: Final = "<none>"
_ENDED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


@dataclass(slots=True)
class _Count:
    """The number of ready containers and restarts, and the last end of a restarted one."""

    ready: int = 0
    restarts: int = 0
    ended: str = ""

    def add_restarts(self, status: Json) -> None:
        self.restarts += status.get("restartCount", 0)
        ended = (status.get("lastState", {}).get("terminated") or {}).get("finishedAt") or ""
        self.ended = max(self.ended, ended)


def pod_cells(body: Json, made: str, age: Callable[[str], str]) -> list[Any]:
    """Return the cells of a pod; `made` is its age, `age` returns the age of a time."""
    spec, status = body["spec"], body["status"]
    sidecars = {each["name"] for each in spec.get("initContainers", ()) if _is_sidecar(each)}
    count, word = _judge(body, sidecars)
    restarts = str(count.restarts)
    if count.restarts and count.ended:
        restarts += f" ({age(count.ended)} ago)"
    addresses = status.get("podIPs") or [{"ip": status.get("podIP", _NONE)}]
    return [
        body["metadata"]["name"],
        f"{count.ready}/{len(spec['containers']) + len(sidecars)}",
        word,
        restarts,
        made,
        addresses[0]["ip"],
        spec.get("nodeName", _NONE),
        status.get("nominatedNodeName", _NONE),
        _gates(spec, status),
    ]


def pod_conditions(body: Json) -> list[Json]:
    """Return the conditions of a pod's row, by which `kubectl` can leave out pods that have ended."""
    phase = body["status"].get("phase", "")
    if phase not in _ENDED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}]


def _is_sidecar(container: Json) -> bool:
    return container.get("restartPolicy") == "Always"


def _gates(spec: Json, status: Json) -> str:
    gates = [each.get("conditionType") for each in spec.get("readinessGates", ())]
    held = {each["type"] for each in status.get("conditions", ()) if each.get("status") == "True"}
    return f"{sum(each in held for each in gates)}/{len(gates)}" if gates else _NONE


def _judge(body: Json, sidecars: set[str]) -> tuple[_Count, str]:
    status = body["status"]
    phase = status.get("phase", "")
    word = status.get("reason") or phase
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    count = _Count()
    beginning = _initializing(body, sidecars, count)
    if beginning:
        word = beginning
    if not beginning or conditions.get("Initialized", {}).get("status") == "True":
        word = _running(body, sidecars, count, word)
    if "deletionTimestamp" in body["metadata"]:
        if status.get("reason") == "NodeLost":
            word = "Unknown"
        elif phase not in _ENDED:
            word = "Terminating"
    return count, word


def _initializing(body: Json, sidecars: set[str], count: _Count) -> str:
    """Return the progress of the init containers; empty where they have finished."""
    total = len(body["spec"].get("initContainers", ()))
    for index, status in enumerate(body["status"].get("initContainerStatuses", ())):
        count.add_restarts(status)
        state = status.get("state", {})
        ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason", "")
        if ended is not None and not ended.get("exitCode"):
            continue
        if status.get("name") in sidecars and status.get("started"):
            count.ready += bool(status.get("ready"))
            continue
        if ended is not None:
            return f"Init:{_ending(ended)}"
        return f"Init:{waiting}" if waiting not in ("", "PodInitializing") else f"Init:{index}/{total}"
    return ""


def _running(body: Json, sidecars: set[str], count: _Count, word: str) -> str:
    """Return the state of a pod whose init containers have finished; their restarts no longer count."""
    status = body["status"]
    count.restarts, count.ended = 0, ""
    for each in status.get("initContainerStatuses", ()):
        if each.get("name") in sidecars:
            count.add_restarts(each)
    is_running = False
    for each in reversed(status.get("containerStatuses", ())):
        count.add_restarts(each)
        state = each.get("state", {})
        waiting, ended = (state.get("waiting") or {}).get("reason", ""), state.get("terminated")
        if waiting:
            word = waiting
        elif ended is not None:
            word = _ending(ended)
        elif each.get("ready") and state.get("running") is not None:
            is_running = True
            count.ready += 1
    if word == "Completed" and is_running:
        is_ready = any(
            each["type"] == "Ready" and each.get("status") == "True" for each in status.get("conditions", ())
        )
        return "Running" if is_ready else "NotReady"
    return str(word)


def _ending(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"
