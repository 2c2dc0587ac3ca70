"""A predicate with its tightenings as one plugin: a node passes if all of them let it pass.

The cycle identifies a predicate by its name, also for skipping. With a plugin per tightening, one that does
not apply would skip the others; so this plugin runs them.

The events that can cure a rejection are derived from the reads of rules. If the answer for a node depends on
the pod and that node alone, the rules run on the node before and after the event, which is exact. Otherwise
the event alone decides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.by_identity import ByIdentity
from kdsl.base.events import Action, EventPattern, Resource, merged
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.storage.claims import claim_names_of, uses_claim
from kdsl.hooks.specs import Narrowed, hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.compile.frames import PodFrames
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.rules.predicate import SKIP, PredicateRule
from kdsl.plan.rules.waiting_pods import MIN_PODS, WaitingPods

MAX_PODS: Final = 4096
"""The most pods of which the values that a rule computes once per pod are kept for the next event."""

Ask = Callable[[NodeSet], NDArray[np.int32] | None]
"""Returns the number of each node's status by one predicate; None if all pass."""


class PredicatePlugin:
    """A predicate with its tightenings, in order. The first part gives key, name and site."""

    def __init__(self, parts: tuple[PredicateRule, ...]) -> None:
        self.parts = parts
        self.key, self.name, self.site = parts[0].key, parts[0].name, parts[0].site
        self.is_tightened = len(parts) > 1
        self._skips = f"{self.key}/skipped"
        self._is_local = all(part.cures.is_local for part in parts)
        self._own_claims = all(part.cures.own_claims for part in parts)
        self._volumes_only = all(part.cures.volumes_only for part in parts)
        self._counts_only = all(part.cures.counts for part in parts)
        self._waits_for_claims = any(
            pattern.matches(Resource.PERSISTENT_VOLUME_CLAIM, Action.ALL) for pattern in self.events()
        )
        # The rules run for a sleeping pod at one event after the other.
        self._frames = ByIdentity[PodInfo, PodFrames](lambda pod: {}, MAX_PODS)
        self._waiting = [WaitingPods(part, self._frames.of) for part in parts]

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        """Run all parts: the first rejection counts; the plugin skips the pod only if no part applies."""
        if not self.is_tightened:
            return self.parts[0].pre_filter(state, pod, nodes)
        skipped: set[str] = set()
        narrowed: Narrowed | None = None
        for part in self.parts:
            answer = part.pre_filter(state, pod, nodes)
            if isinstance(answer, Narrowed):
                # INVARIANT: one part at most narrows, for a tightening cannot.
                narrowed = answer
            elif answer is not None and answer.code is Code.SKIP:
                skipped.add(part.key)
            elif answer is not None:
                return answer
        state.values[self._skips] = frozenset(skipped)
        return SKIP if len(skipped) == len(self.parts) else narrowed

    def applying(self, state: CycleState) -> tuple[PredicateRule, ...]:
        """Return the parts that apply, if PreFilter did not skip all of them."""
        skipped = state.values.get(self._skips)
        if not isinstance(skipped, frozenset):
            return self.parts
        return tuple([part for part in self.parts if part.key not in skipped])

    @hookimpl
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        numbers = StatusNumbers()
        ids = self.statuses(state, pod, nodes, numbers)
        return None if ids is None else StatusColumn(ids, numbers.table)

    def statuses(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        """Return each node's status as a number in `numbers`; every part gets the nodes that are left.
        None if all pass.
        """
        if not self.is_tightened:
            return self.parts[0].statuses(state, pod, nodes, numbers)
        return first_rejections(
            nodes, (partial(part.statuses, state, pod, numbers=numbers) for part in self.applying(state))
        )

    @hookimpl
    def events(self) -> tuple[EventPattern, ...]:
        """Return the events that can cure a rejection."""
        return merged(pattern for part in self.parts for pattern in part.cures.patterns)

    @hookimpl
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether the event may have cured the rejection of `pod`. If that is known, all parts pass
        after the event, and not all did before.
        """
        if not self._is_local:
            return self._may_help(pod, event)
        after, before = event.node_after, event.node_before
        if after is None or event.resource is Resource.TARGET_POD:
            return True
        known = self._frames.of(pod)
        return self._pass(pod, after, known) and (before is None or not self._pass(pod, before, known))

    @hookimpl
    def queueing_hints(self, pods: tuple[PodInfo, ...], event: ClusterEvent) -> Sequence[bool]:
        """Return `queueing_hint` for each pod."""
        after, before = event.node_after, event.node_before
        is_one_by_one = not self._is_local or len(pods) < MIN_PODS
        if is_one_by_one or after is None or event.resource is Resource.TARGET_POD:
            return [self.queueing_hint(pod, event) for pod in pods]
        found = self._passing(pods, after)
        if before is not None and found.any():
            found &= ~self._passing(pods, before)
        answers: list[bool] = found.tolist()
        return answers

    @hookimpl
    def hint_signature(self, pod: PodInfo) -> Hashable:
        """Return the values that `queueing_hint` reads of a pod; None if no two pods share them."""
        if not self._is_local:
            claims = claim_names_of(pod) if self._own_claims and self._waits_for_claims else ()
            if not self._counts_only:
                return claims
            counted = _signature(pod, [part.pod_reads for part in self.parts])
            return None if counted is None else (claims, counted)
        return _signature(pod, [part.dependencies for part in self.parts])

    def _may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return False where the event concerns a claim, or a pod, that the rules do not read."""
        if event.resource is Resource.PERSISTENT_VOLUME_CLAIM and self._own_claims:
            return any(uses_claim(pod, each) for each in (event.before, event.after) if each is not None)
        if event.resource is Resource.ASSIGNED_POD and event.pod is not None:
            if self._volumes_only:
                return any(isinstance(each, PodInfo) and each.volumes for each in (event.before, event.after))
            if self._counts_only:
                return any(part.may_count(pod, event.before, event.after) for part in self.parts)
        return True

    def _pass(self, pod: PodInfo, node: NodeInfo, known: PodFrames) -> bool:
        return all(part.passes(pod, node, known) for part in self.parts)

    def _passing(self, pods: tuple[PodInfo, ...], node: NodeInfo) -> NDArray[np.bool_]:
        """Return `_pass` for many pods."""
        found = np.ones(len(pods), np.bool_)
        for part in self._waiting:
            found &= part.passing(pods, node)
        return found


def _signature(pod: PodInfo, reads: Sequence[Dependencies | None]) -> Hashable:
    """Return the values that rules read of a pod; None if no two pods share them."""
    known = [each for each in reads if each is not None]
    return tuple([each.signature(pod) for each in known]) if len(known) == len(reads) else None


def first_rejections(nodes: NodeSet, predicates: Iterable[Ask]) -> NDArray[np.int32]:
    """Return each node's status by the first predicate that rejects it; each gets the nodes that are left."""
    ids = np.zeros(len(nodes), np.int32)
    for ask in predicates:
        left = (ids == 0).nonzero()[0]
        if not len(left):
            break
        found = ask(nodes if len(left) == len(ids) else nodes.take(left))
        if found is not None:
            ids[left] = found
    return ids
