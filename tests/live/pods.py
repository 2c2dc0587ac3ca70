"""Pods as the watch would show them."""

from __future__ import annotations

from kdsl.cluster.objects.pod import PodInfo
from kdsl.live.watching.changes import LivePod, PodCondition


def live_pod(
    name: str = "a",
    *,
    version: str = "1",
    node: str = "",
    nominated: str = "",
    conditions: tuple[PodCondition, ...] = (),
    namespace: str = "default",
) -> LivePod:
    info = PodInfo(name, namespace, f"uid-{name}", node_name=node, nominated_node_name=nominated)
    return LivePod(info, version, 1, conditions)
