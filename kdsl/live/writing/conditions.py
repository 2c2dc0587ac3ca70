"""The intended status of a pod, and the patch from its known status to the intended one.

The patch equals that of kube-scheduler: a strategic merge of the fields that differ. Conditions merge by
their type, so conditions of other writers stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kdsl.cycle.decision import Condition
from kdsl.live.watching.changes import LivePod, PodCondition
from kdsl.live.writing.bodies import status_patch

POD_SCHEDULED = "PodScheduled"
_ORDER = "$setElementOrder/conditions"


@dataclass(frozen=True, slots=True)
class StatusWish:
    """The intended status of a pod; None leaves a field unchanged.

    `nominated` is the nominated node, empty for none.
    """

    condition: Condition | None = None
    nominated: str | None = None

    @property
    def denies_binding(self) -> bool:
        """Return whether it says that the pod has no node."""
        condition = self.condition
        return condition is not None and (condition.type, condition.status) == (POD_SCHEDULED, "False")

    def over(self, older: StatusWish) -> StatusWish:
        """Return this wish, with the older wish's fields where this one has None."""
        return StatusWish(
            older.condition if self.condition is None else self.condition,
            older.nominated if self.nominated is None else self.nominated,
        )


def patch_for(pod: LivePod, wish: StatusWish, now: str) -> bytes | None:
    """Return the patch that fulfils a wish; None if the status does already. `now` is the new time."""
    status: dict[str, Any] = {}
    if wish.condition is not None:
        status |= _condition_patch(pod, wish.condition, now)
    if wish.nominated is not None and wish.nominated != pod.info.nominated_node_name:
        status["nominatedNodeName"] = wish.nominated or None
    return status_patch(pod.info.uid, status) if status else None


def whole_patch(pod: LivePod, wish: StatusWish, now: str) -> bytes:
    """Return the patch that fulfils a wish, if the present status is unknown."""
    status: dict[str, Any] = {}
    if wish.condition is not None:
        status["conditions"] = [_added(pod, wish.condition, now)]
    if wish.nominated is not None:
        status["nominatedNodeName"] = wish.nominated or None
    return status_patch(pod.info.uid, status)


def bound_patch(uid: str, now: str) -> bytes:
    """Return the patch that sets the condition of a bound pod, as the server sets it with the binding."""
    gone = dict.fromkeys(("message", "observedGeneration", "reason"))
    condition = {**gone, "lastTransitionTime": now, "status": "True", "type": POD_SCHEDULED}
    return status_patch(uid, {"conditions": [condition]})


def _condition_patch(pod: LivePod, wanted: Condition, now: str) -> Mapping[str, Any]:
    before = next((known for known in pod.conditions if known.type == wanted.type), None)
    if before is None:
        return _merged(pod, _added(pod, wanted, now), wanted.type)
    if (before.status, before.reason, before.message) == (wanted.status, wanted.reason, wanted.message):
        return {}
    return _merged(pod, _changed(before, _renewed(before, wanted, pod.generation, now)), wanted.type)


def _added(pod: LivePod, wanted: Condition, now: str) -> dict[str, Any]:
    texts = {"message": wanted.message, "reason": wanted.reason}
    return {
        "lastProbeTime": None,
        "lastTransitionTime": now,
        **{key: text for key, text in texts.items() if text},
        **({"observedGeneration": pod.generation} if pod.generation else {}),
        "status": wanted.status,
        "type": wanted.type,
    }


def _renewed(before: PodCondition, wanted: Condition, generation: int, now: str) -> PodCondition:
    """Return the new condition; its transition time changes only with its status."""
    return replace(
        before,
        status=wanted.status,
        reason=wanted.reason,
        message=wanted.message,
        last_transition_time=before.last_transition_time if before.status == wanted.status else now,
        observed_generation=generation,
    )


def _changed(before: PodCondition, after: PodCondition) -> dict[str, Any]:
    """Return the fields that differ, and the type that identifies the condition."""
    fields = {
        "lastTransitionTime": (before.last_transition_time, after.last_transition_time),
        "message": (before.message, after.message),
        "observedGeneration": (before.observed_generation, after.observed_generation),
        "reason": (before.reason, after.reason),
        "status": (before.status, after.status),
    }
    found: dict[str, Any] = {key: new or None for key, (old, new) in fields.items() if old != new}
    return {**found, "type": after.type}


def _merged(pod: LivePod, condition: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    known = [each.type for each in pod.conditions]
    if not known:
        return {"conditions": [condition]}
    order = known if type_ in known else [*known, type_]
    return {_ORDER: [{"type": each} for each in order], "conditions": [condition]}
