"""Reduces the memory of 150,000 pods: equal values in pods of one workload are stored once.

`decode` makes its pods here. A pod takes 2.9 KiB with this and 5.2 KiB without.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from kdsl.live.changes import LivePod, PodCondition

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.live.decode import Identity

MAX_SHARED: Final = 16 * 1024
"""The most shared values: enough for some thousand workloads."""

_SHARED_FIELDS: Final = (
    "namespace", "node_name", "scheduler_name", "service_account", "preemption_policy", "phase",
    "owner_references", "tolerations", "node_selector", "required_node_affinity", "preferred_node_terms",
    "required_affinity", "required_anti_affinity", "preferred_affinity", "preferred_anti_affinity",
    "spread_constraints", "images", "containers", "init_containers", "device_containers", "host_ports",
)  # fmt: skip


@lru_cache(MAX_SHARED)
def _share(value: Any) -> Any:
    """Return the stored value that equals this one and has its type; store it if there is none."""
    return value


@lru_cache(MAX_SHARED)
def _share_condition(condition: PodCondition) -> PodCondition:
    return condition


def slim(info: PodInfo, identity: Identity) -> LivePod:
    """Return the pod with its values replaced by shared equal ones."""
    fields = {name: _share(value) for name in _SHARED_FIELDS if (value := getattr(info, name))}
    conditions = tuple(map(_share_condition, identity.conditions))
    return LivePod(replace(info, **fields), identity.version, identity.generation, conditions)
