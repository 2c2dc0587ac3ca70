"""The frames of a rule: one per attempt, which may start from the last frame of the pod's signature."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, TypeAlias

from kdsl.base.seen_signatures import SeenSignatures
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import Value
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.scope import RuleScope
from kdsl.plan.reads.dependencies import Dependencies, Epoch, Epochs

MAX_FRAMES: Final = 256
"""The most signatures whose frames are kept for one rule; beyond that it starts over."""
_MAX_SEEN: Final = 16 * MAX_FRAMES
"""The most signatures that are remembered to find repeated ones."""
_FRAME_BYTES: Final = 1024
"""The approximate bytes of a frame with its values."""


class Frames:
    """The frames of one rule. `transient` are slots that are cleared for each attempt, `steps` the budget of
    a value that is computed once per pod.

    A resumed frame keeps the values that depend on the pod and the catalog, but no counts: other pods count.
    """

    def __init__(self, scope: RuleScope, transient: Sequence[int], steps: int) -> None:
        self._blank = scope.new_frame()
        self._pod, self._cluster = scope.slot_of("pod"), scope.slot_of("cluster")
        self._transient = (*scope.transient, *transient)
        self._of_cluster = (*self._transient, *scope.counts)
        self._steps = steps
        self._seen = SeenSignatures(_MAX_SEEN)
        # The frame of the latest attempt of a repeated signature, with the epoch of its values.
        self._kept: dict[Hashable, tuple[Epoch, Frame]] = {}
        self._dependencies: Dependencies | None = None
        self._epochs = Epochs(lambda live: ())

    def keep(self, dependencies: Dependencies) -> None:
        """Start attempts of a signature from its last frame. The dependencies are those on the pod and on
        parts of the catalog.
        """
        self._dependencies, self._epochs = dependencies, Epochs(dependencies.versions)

    def begin(self, pod: Value, cluster: Value) -> Frame:
        """Return the frame of one pod over the snapshot that `cluster` views.

        In a kept frame, the pod is the first one of its signature: to the rule they are equal, and values
        cached by identity stay valid.
        """
        # A view that records reads must record all of them, also those of kept values.
        if self._dependencies is None or cluster.__class__ is not ClusterView:
            frame = self._blank.copy()
            frame[self._pod] = pod
        else:
            frame = self._kept_frame(self._dependencies.signature(pod), pod, cluster.snapshot)
        frame[self._cluster], frame[-1] = cluster, Meter(self._steps, self._steps)
        return frame

    def resume(self, pod: Value, cluster: Value, known: PodFrames) -> Frame:
        """Return a frame with the values that earlier ones left in `known`."""
        latest = known.get(self)
        frame = self._of_pod(pod) if latest is None else latest.copy()
        frame[self._cluster], frame[-1] = cluster, Meter(self._steps, self._steps)
        return frame

    def leave(self, frame: Frame, known: PodFrames) -> None:
        """Leave the values that depend on the pod and the catalog only in `known`; the frame is used up."""
        self._clear(frame)
        # A view of an overlay keeps all of it alive.
        frame[self._cluster] = UNSET
        known[self] = frame

    def _clear(self, frame: Frame) -> None:
        """Drop the values that depend on placed pods and nodes."""
        for slot in self._of_cluster:
            frame[slot] = UNSET

    def _of_pod(self, pod: Value) -> Frame:
        frame = self._blank.copy()
        frame[self._pod] = pod
        return frame

    def _kept_frame(self, signature: Hashable, pod: PodInfo, snapshot: Snapshot) -> Frame:
        epoch, latest = self._epochs[snapshot.live.shared_state], self._kept.get(signature)
        kept = latest[1] if latest is not None and latest[0] == epoch else None
        frame = self._of_pod(pod) if kept is None else kept.copy()
        if snapshot.is_overlay:
            self._clear(frame)
            return frame
        if kept is not None:
            for slot in self._transient:
                frame[slot] = UNSET
        elif self._seen.is_new(signature):
            return frame
        elif len(self._kept) >= MAX_FRAMES:
            self._kept.clear()
        self._kept[signature] = epoch, frame
        return frame


PodFrames: TypeAlias = dict[Frames, Frame]
"""Frames of one pod, or of the pods of one signature, by rule, with the values that no other pods change."""


def nbytes_of(frames: PodFrames) -> int:
    """Return the approximate bytes of frames."""
    return _FRAME_BYTES * len(frames)
