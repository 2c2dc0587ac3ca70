"""A node with a hypothetical set of pods: pods are added and removed, and the filters are run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.judging import Judge, account_for
from kdsl.hooks.status import Status


class WhatIf:
    """One node of an attempt. The attempt's own state and snapshot stay as they are."""

    def __init__(self, attempt: Attempt, judge: Judge, row: int) -> None:
        self._judge = judge
        self._row = row
        self._state = judge.state.clone()
        self._node = judge.snapshot.info(row)
        self._remove_pods = attempt.table.remove_pods

    def remove(self, pods: Iterable[PodInfo]) -> None:
        """Remove pods from the node; raises PluginError where a plugin cannot account for it."""
        for pod in pods:
            self._node = self._node.without_pod(pod)
            account_for("remove_pod", self._remove_pods, self._state, self._judge.pod, pod, self._node)

    def add(self, pod: PodInfo) -> None:
        """Put a pod back on the node; raises PluginError where a plugin cannot account for it."""
        self._node = self._node.with_pod(pod)
        account_for("add_pod", self._judge.add_pods, self._state, self._judge.pod, pod, self._node)

    def rejection(self) -> Status | None:
        """Run the filters, in both passes; return None where the pod fits. Raises PluginError where one
        fails.
        """
        snapshot = self._judge.snapshot.overlay(self._row, self._node)
        judged = self._judge.over(snapshot, self._state).judge(np.array([self._row], dtype=np.intp))
        if judged.error is not None:
            raise judged.error
        return judged.column[0] if judged.column.ids[0] else None
