"""Eviction of pods within the limits of their disruption budgets."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.formats.selectors import matches_object
from kdsl.sandbox.model.errors import ApiError, Json, bad_request, not_found, status, success
from kdsl.sandbox.model.resources import PODS, named
from kdsl.sandbox.model.store import Version
from kdsl.sandbox.requests.binding import is_ready, set_condition
from kdsl.sandbox.requests.call import Call, Reply, SandboxState, document
from kdsl.sandbox.requests.deleting import delete_version
from kdsl.sandbox.requests.objects_in import read_part
from kdsl.sandbox.requests.parameters import read_delete_options

BUDGETS: Final = named("poddisruptionbudgets", "policy")
_FREE: Final = frozenset({"Pending", "Succeeded", "Failed"})
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
_WAIT_SECONDS: Final = 10


def evict(world: SandboxState, call: Call) -> Reply:
    """Answer a POST of an Eviction."""
    eviction = read_part(call, "Eviction")
    if eviction["metadata"].get("name", call.name) != call.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = read_delete_options(eviction.get("deleteOptions") or {}, call.query)
    version = world.store.get(PODS, call.key)
    if version is None:
        raise not_found(PODS, call.name)
    body = version.body()
    if body["status"].get("phase") not in _FREE and "deletionTimestamp" not in body["metadata"]:
        _spend_budget(world, version, body, options.is_dry)
    if not options.is_dry:
        delete_version(world, PODS, _mark(world, version, body), options)
    return document(success(201), 201)


def _mark(world: SandboxState, version: Version, body: Json) -> Version:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": world.chance.stamp(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    set_condition(body["status"], condition)
    return world.store.write(PODS, version.key, body)


def _spend_budget(world: SandboxState, version: Version, body: Json, is_dry: bool) -> None:
    budgets = [
        budget
        for budget in world.store.bodies(BUDGETS, version.key[0])
        if matches_object(budget["spec"].get("selector"), version.labels)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        raise ApiError(status(500, _TWO), 500)
    budget = budgets[0]
    state, name = budget["status"], budget["metadata"]["name"]
    if state.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        raise _refuse(f"The disruption budget {name} is still being processed by the server.", _WAIT_SECONDS)
    healthy, needed = state["currentHealthy"], state["desiredHealthy"]
    if not is_ready(body) and healthy >= needed > 0:
        return
    if state["disruptionsAllowed"] <= 0:
        if healthy <= needed:
            text = f"needs {needed} healthy pods and has {healthy} currently"
        else:
            text = "does not allow evicting pods currently"
        raise _refuse(f"The disruption budget {name} {text}")
    state["disruptionsAllowed"] -= 1
    state.setdefault("disruptedPods", {})[version.key[1]] = world.chance.stamp()
    if state["disruptionsAllowed"] == 0:
        condition = {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": state["observedGeneration"],
            "lastTransitionTime": world.chance.stamp(),
            "reason": "InsufficientPods",
            "message": "",
        }
        set_condition(state, condition)
    if not is_dry:
        world.store.write(BUDGETS, (version.key[0], name), budget)


def _refuse(why: str, wait: int = 0) -> ApiError:
    found: Json = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    headers = {}
    if wait:
        found["retryAfterSeconds"] = wait
        headers["retry-after"] = str(wait)
    return ApiError(status(429, _REFUSED, "TooManyRequests", found), 429, headers)
