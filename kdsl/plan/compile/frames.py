"""The frames of a rule: one per attempt, which may start from the last frame of the pod's signature."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from msgspec import Struct

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import Value
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.scope import RuleScope
from kdsl.plan.reads.signatures import SignatureOf

MAX_FRAMES: Final = 256
"""The most signatures whose frames are kept for one rule; beyond that it starts over."""

EpochOf = Callable[[LiveSnapshot], Hashable]
"""Returns the epoch of a rule, by the catalog parts that it reads; see `plan.reads.epochs`."""


class _KeptFrame(Struct, eq=False):
    """The frame of the latest attempt of a signature, with the epoch of its values."""

    epoch: Hashable
    frame: Frame


class Frames:
    """The frames of one rule. `transient` are slots that are cleared for each attempt, `steps` the budget of
    a value that is computed once per pod.
    """

    def __init__(self, scope: RuleScope, transient: Sequence[int], steps: int) -> None:
        self._blank = scope.new_frame()
        self._pod, self._cluster = scope.slot_of("pod"), scope.slot_of("cluster")
        self._transient = (*scope.transient, *transient)
        self._steps = steps
        self._kept: dict[Hashable, _KeptFrame] = {}
        self._signature_of: SignatureOf | None = None
        self._epoch_of: EpochOf = lambda live: None

    def keep(self, signature_of: SignatureOf, epoch_of: EpochOf) -> None:
        """Start attempts of a signature from the last frame of that signature."""
        self._signature_of, self._epoch_of = signature_of, epoch_of

    def begin(self, pod: Value, cluster: Value) -> Frame:
        """Return the frame of one pod over the snapshot that `cluster` views.

        In a kept frame, the pod is the first one of its signature: to the rule they are equal, and values
        cached by identity stay valid.
        """
        # A view that records reads must see all of them.
        if self._signature_of is None or cluster.__class__ is not ClusterView or cluster.snapshot.is_overlay:
            frame = self._blank.copy()
            frame[self._pod] = pod
        else:
            frame = self._kept_frame(self._signature_of(pod), pod, cluster.snapshot.live)
        frame[self._cluster], frame[-1] = cluster, Meter(self._steps)
        return frame

    def _kept_frame(self, signature: Hashable, pod: PodInfo, live: LiveSnapshot) -> Frame:
        epoch, kept = self._epoch_of(live), self._kept.get(signature)
        if kept is not None and kept.epoch == epoch:
            frame = kept.frame = kept.frame.copy()
            for slot in self._transient:
                frame[slot] = UNSET
            return frame
        if len(self._kept) >= MAX_FRAMES:
            self._kept.clear()
        frame = self._blank.copy()
        frame[self._pod] = pod
        self._kept[signature] = _KeptFrame(epoch, frame)
        return frame
