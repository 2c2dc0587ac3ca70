"""The frames of a rule: one for every attempt, which may begin with what the last one of its kind found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import Value
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.scope import RuleScope

MAX_FRAMES: Final = 256
"""The most kinds of pods whose frames are kept for one rule; beyond that it starts anew."""

KindOf = Callable[[PodInfo], Hashable]
"""Tells pods apart of which a rule sees different things."""
EpochOf = Callable[[Snapshot], Hashable]
"""Tells what a rule sees of the catalog."""


@dataclass(slots=True)
class _Kept:
    """The frame of the latest attempt of a kind of pod, with what it was filled from."""

    snapshot: Snapshot
    epoch: Hashable
    frame: Frame


class Frames:
    """The frames of one rule. `passing` are the slots whose values do not stay, `steps` what a value that is
    computed once for a pod may take.
    """

    def __init__(self, scope: RuleScope, passing: Sequence[int], steps: int) -> None:
        self._blank = scope.new_frame()
        self._pod, self._cluster = scope.slot_of("pod"), scope.slot_of("cluster")
        self._passing = (*scope.passing, *passing)
        self._steps = steps
        self._kept: dict[Hashable, _Kept] = {}
        self._kind_of: KindOf | None = None
        self._epoch_of: EpochOf = lambda snapshot: None

    def keep(self, kind_of: KindOf, epoch_of: EpochOf) -> None:
        """Let the attempts of a kind of pod begin with what the one before found."""
        self._kind_of, self._epoch_of = kind_of, epoch_of

    def begin(self, pod: Value, cluster: Value) -> Frame:
        """Return the frame of one pod over the snapshot that `cluster` views.

        Where frames are kept, the pod in it stays the first one of its kind: to the rule they are equal, and
        what is known by identity stays known.
        """
        # Who watches what is asked of the cluster is to see all of it.
        if self._kind_of is None or cluster.__class__ is not ClusterView or cluster.snapshot.is_overlay:
            frame = self._of(pod)
        else:
            frame = self._kept_of(self._kind_of(pod), pod, cluster.snapshot)
        frame[self._cluster], frame[-1] = cluster, Meter(self._steps)
        return frame

    def _of(self, pod: Value) -> Frame:
        frame = self._blank.copy()
        frame[self._pod] = pod
        return frame

    def _kept_of(self, kind: Hashable, pod: PodInfo, snapshot: Snapshot) -> Frame:
        epoch, kept = self._epoch_of(snapshot), self._kept.get(kind)
        if kept is not None and kept.snapshot is snapshot and kept.epoch == epoch:
            frame = kept.frame = kept.frame.copy()
            for slot in self._passing:
                frame[slot] = UNSET
            return frame
        if len(self._kept) >= MAX_FRAMES:
            self._kept.clear()
        frame = self._of(pod)
        self._kept[kind] = _Kept(snapshot, epoch, frame)
        return frame
