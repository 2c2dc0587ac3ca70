"""A node with a hypothetical set of pods: pods are added and removed, and the filters are run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.errors import PluginError, ask
from kdsl.hooks.status import Code, Status
from kdsl.hooks.table import AddPod, Calls

if TYPE_CHECKING:
    # A judge asks what-ifs, and a what-if asks a judge.
    from kdsl.cycle.judging import Judge


class WhatIf:
    """One node of an attempt. The attempt's own state and snapshot stay as they are."""

    def __init__(self, judge: Judge, row: int) -> None:
        self._judge = judge
        self._row = row
        self._state = judge.state.clone()
        self._node = judge.snapshot.info(row)

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods from the node; raises PluginError where a plugin cannot account for it."""
        for pod in pods:
            self._node = self._node.without_pod(pod)
            self._account_for("remove_pod", self._judge.remove_pods, pod)

    def add(self, pods: Iterable[PodInfo]) -> None:
        """Put pods on the node; raises PluginError where a plugin cannot account for it."""
        for pod in pods:
            self._node = self._node.with_pod(pod)
            self._account_for("add_pod", self._judge.add_pods, pod)

    def rejection(self) -> Status | None:
        """Run the filters, in both passes; return None where the pod fits. Raises PluginError where one
        fails.
        """
        snapshot = self._judge.snapshot.about_one.overlay(self._row, self._node)
        judged = self._judge.over(snapshot, self._state).judge(np.array([self._row], dtype=np.intp))
        if judged.error is not None:
            raise judged.error
        return judged.column[0] if judged.column.ids[0] else None

    def _account_for(self, point: str, calls: Calls[AddPod], other: PodInfo) -> None:
        """Call the hooks of a point for a pod that is now on the node, or has left it, except for plugins
        that skip the attempt's pod.
        """
        for plugin, call in calls:
            if plugin not in self._state.skipped_filters:
                status = ask(plugin, point, call, self._state, self._judge.pod, other, self._node)
                if status is not None and status.code is not Code.SUCCESS:
                    raise PluginError.answered(plugin, point, status)
