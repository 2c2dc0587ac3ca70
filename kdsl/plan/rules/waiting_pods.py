"""Decides for many waiting pods at once whether a rule lets them onto one node.

The rule runs once for all pods of which it reads equal values, apart from the amounts that they request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.by_identity import ByIdentity, ByTuple
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.status import Code
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.batch import Batch, batch_of
from kdsl.plan.columns.column import Mask
from kdsl.plan.columns.pod_inputs import PodRows
from kdsl.plan.compile.frames import PodFrames
from kdsl.plan.rules.predicate import PredicateRule

MAX_PODS: Final = 1 << 14
"""The most pods of which the decision without a node is kept."""
MIN_PODS: Final = 12
"""For fewer pods, asking one by one is faster."""
_MAX_ASKED: Final = 1 << 17
"""The most pods of all questions whose divisions are kept: each set of rejecting plugins asks one, and each
set of possible victims.
"""
_EXAMPLES: Final = 256
"""The nodes for which a rule is recorded."""

FramesOf = Callable[[PodInfo], PodFrames]


@dataclass(slots=True, eq=False)
class _Waiting:
    """A pod without a node: whether it passes everywhere, None if that depends on the node, and its signature
    of tapes, None if it must be asked by itself.
    """

    passes: bool | None
    signature: Hashable = None


@dataclass(slots=True, eq=False)
class _Asked:
    """The pods of one question, as `WaitingPods.passing` divides them; arrays have their places."""

    passing: NDArray[np.intp]
    alone: NDArray[np.intp]
    together: list[tuple[PodRows, NDArray[np.intp]]]


class WaitingPods:
    """The waiting pods of one rule, which reads nothing but the pod and the node."""

    def __init__(self, rule: PredicateRule, frames_of: FramesOf) -> None:
        self._rule = rule
        self._frames_of = frames_of
        self._known = ByIdentity[PodInfo, _Waiting](self._without_node, MAX_PODS)
        self._asked = ByTuple[PodInfo, _Asked](self._divided, _MAX_ASKED)

    def passing(self, pods: tuple[PodInfo, ...], node: NodeInfo) -> NDArray[np.bool_]:
        """Return whether the rule lets each pod onto a node. For the same tuple, pods are divided once."""
        asked = self._asked.of(pods)
        found = np.zeros(len(pods), np.bool_)
        found[asked.passing] = True
        alone = asked.alone
        for rows, places in asked.together:
            rejected, is_known = self._rejections(rows, node)
            found[places] = is_known & ~rejected
            alone = np.concatenate((alone, places[~is_known]))
        for place in alone.tolist():
            pod = pods[place]
            found[place] = self._rule.passes(pod, node, self._frames_of(pod))
        return found

    def _rejections(self, pods: PodRows, node: NodeInfo) -> tuple[Mask, Mask]:
        """Return which pods of one signature the statements decided per node reject at a node, and for which
        that is known.
        """
        rule, tapes, live = self._rule, self._rule.whole_tapes, self._rule.live
        assert tapes is not None
        if live is None:  # without an attempt there are no nodes for a recording
            nobody = np.zeros(len(pods), np.bool_)
            return nobody, nobody

        def batch() -> Batch:
            frame = rule.frames.begin(pods.pods[0], ClusterView(live))
            frame[-1] = rule.meter_alone()
            return batch_of(NodeSet(live, live.order[:_EXAMPLES]), frame)

        return tapes.masks_for_pods(pods, node, rule.meter_alone().limit, batch)

    def _without_node(self, pod: PodInfo) -> _Waiting:
        """Decide for a pod as far as the rule needs no node."""
        frames, known = self._rule.frames, self._frames_of(pod)
        frame = frames.resume(pod, None, known)
        decided = self._rule.decide(frame)
        frames.leave(frame, known)
        if decided is None:
            tapes = self._rule.whole_tapes
            return _Waiting(None, None if tapes is None else tapes.signature(pod))
        return _Waiting(None if isinstance(decided, Narrowed) else decided.code is Code.SKIP)

    def _divided(self, pods: tuple[PodInfo, ...]) -> _Asked:
        known = list(map(self._known.of, pods))
        by_signature: dict[Hashable, list[int]] = {}
        alone: list[int] = []
        for place, each in enumerate(known):
            if each.signature is not None:
                by_signature.setdefault(each.signature, []).append(place)
            elif each.passes is None:
                alone.append(place)
        together = []
        for signature, places in by_signature.items():
            if len(places) < MIN_PODS:
                alone += places
            else:
                some = PodRows(signature, [pods[place] for place in places])
                together.append((some, np.array(places, np.intp)))
        passing = [place for place, each in enumerate(known) if each.passes]
        return _Asked(np.array(passing, np.intp), np.array(alone, np.intp), together)
