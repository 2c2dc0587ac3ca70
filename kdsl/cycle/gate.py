"""The gate of the queue: the PreEnqueue hooks of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.status import Code, Status
from kdsl.hooks.table import HookTable

ROOM_IS_BEING_MADE: Final = Status(
    Code.UNSCHEDULABLE, ("room is being made for the pod",), "DefaultPreemption"
)


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A pod that is not let into the queue, and the reason."""

    queued: QueuedPod
    status: Status


def refusal_of(table: HookTable, pod: PodInfo) -> Status | None:
    """Return the status of the first PreEnqueue hook that keeps the pod out, None where all let it in.

    Raises PluginError where a hook fails.
    """
    for plugin, call in table.pre_enqueues:
        try:
            status = call(pod)
        except Exception as cause:
            # As `ask`: the hot path.
            raise PluginError.raised(plugin, "pre_enqueue", cause) from cause
        if status is not None and status.code is not Code.SUCCESS:
            return status.by(plugin)
    return None
