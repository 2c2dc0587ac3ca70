"""Every extension point of the scheduling framework, in the order of a pod's way through them.

A plugin is an object with any of these methods, each marked with `kdsl.hooks.hookimpl`. Compiled rules are
plugins like any other. The order in which plugins run is the profile's, never pluggy's. `None` always means
success. Nodes come as a `NodeSet`; a column answers for its nodes in its order. Exceptions end the attempt
with an error that names the plugin.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pluggy
from msgspec import Struct

from kdsl.base.events import EventPattern
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status, StatusColumn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.events import ClusterEvent
    from kdsl.cluster.snapshot.nodeset import NodeSet

PROJECT = "kdsl"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A PreFilter answer: only these nodes are candidates."""

    names: Collection[str]


@dataclass(frozen=True, slots=True)
class Nominated:
    """A PostFilter answer: the pod may run on `node` once `victims` (keys `namespace/name`) are gone.

    Without a `node` no room was found, for these `reasons`: the pod loses its nomination. `blockers` are the
    plugins that reject the pod even beside the pods that stay, or the one that keeps no candidate.
    """

    node: str = ""
    victims: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which a pod would fit without `victims`, the most important first.

    `violations` counts the victims whose disruption budget does not allow it.
    """

    node: str
    victims: tuple[PodInfo, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class AddedScores:
    """Points beside the scores of the profile: the total of each node grows by `weight` times its score.

    `name` is their name in the score table. Scores are in any range.
    """

    name: str
    weight: int
    scores: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Wait:
    """A Permit answer: hold the pod for at most `timeout` nanoseconds."""

    timeout: int


class QueuedPod(Struct, frozen=True):
    """A pod in the queue. `queued_at` is in nanoseconds since the epoch, `sequence` counts arrivals.

    `attempts` counts the attempts that have begun.
    """

    pod: PodInfo
    queued_at: int
    sequence: int
    attempts: int = 0

    def with_pod(self, pod: PodInfo) -> QueuedPod:
        """Return the same place for a new version of the pod."""
        return QueuedPod(pod, self.queued_at, self.sequence, self.attempts)

    def tried(self, times: int) -> QueuedPod:
        """Return the pod with `times` more attempts."""
        return QueuedPod(self.pod, self.queued_at, self.sequence, self.attempts + times)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait of a pod between two attempts, in nanoseconds: `initial`, doubled each time, at most
    `maximum`.

    A `maximum` of 0 is no wait.
    """

    initial: int = 10**9
    maximum: int = 10 * 10**9

    def after(self, failures: int) -> int:
        """Return the wait after this number of failures in a row; 0 after none."""
        if failures < 1:
            return 0
        # The shift is bounded, so that the numbers of a pod that fails for weeks stay small.
        return min(self.initial << min(failures - 1, 63), self.maximum)


class SchedulingHooks:
    """The hook specifications. `Any` in a signature stands for a sort key: numbers, texts, and tuples of
    them, always of one form.
    """

    @hookspec
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Refuse a pod before it enters the queue; a refused pod is gated."""

    @hookspec
    def queue_sort(self, queued: QueuedPod) -> Any:
        """Return the sort key of a queued pod: the smallest key is scheduled next. One plugin per profile."""

    @hookspec
    def backoff(self) -> Backoff:
        """Return the wait of pods between attempts. For the plugin with `queue_sort`; called once."""
        raise NotImplementedError

    @hookspec
    def events(self) -> Collection[EventPattern]:
        """Return the events that may make this plugin accept a pod that it rejected or gated. Called once.

        Without this hook every event may.
        """
        raise NotImplementedError

    @hookspec
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether an event of `events` justifies another attempt for `pod`, which this plugin
        rejected.

        Without this hook every event does. Return False only if it is certain: no other event wakes the pod.
        """
        raise NotImplementedError

    @hookspec
    def queueing_hints(self, pods: tuple[PodInfo, ...], event: ClusterEvent) -> Sequence[bool]:
        """Return `queueing_hint` for each of several pods, for a plugin that answers faster for all at once.

        It is the same tuple while the same pods sleep.
        """
        raise NotImplementedError

    @hookspec
    def hint_signature(self, pod: PodInfo) -> Hashable:
        """Return the values of `pod` that `queueing_hint` reads, and `find_victims`, so that they are asked
        once for pods with equal values.

        Without this hook, and for None, they are asked about each pod.
        """

    @hookspec
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        """Prepare for filtering `pod` over all `nodes`.

        The answer may reject the pod everywhere, narrow the candidates, or, with code SKIP, leave this
        plugin's filter out of the attempt.
        """

    @hookspec
    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status | None:
        """Account in `state` for `added` as if it ran on `node`, which already has it.

        `pre_filter` was called before.
        """

    @hookspec
    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status | None:
        """Account in `state` for `removed` as if it left `node`, which no longer has it.

        `pre_filter` was called before.
        """

    @hookspec
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        """Judge each of `nodes`. Called for disjoint sets in an attempt, perhaps from several threads."""

    @hookspec
    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Judge one node: for plugins that cannot judge columns. Ignored where the plugin has `filter`."""

    @hookspec
    def decided_by(
        self, state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Mapping[str, Sequence[str]] | None:
        """Return the facts that decided the plugin's rejection of `node`, in words, by the reason of the
        rejection.

        Only explanations ask, about several nodes in one `state` for which `pre_filter` was called; it may
        have rejected the pod.
        """

    @hookspec
    def filter_feasible(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet
    ) -> StatusColumn | Status | None:
        """Judge together the nodes that the search found feasible; code ERROR ends the attempt with its text.

        Not called in the dry runs of preemption: see `trim_candidates`.
        """

    @hookspec
    def post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, column: StatusColumn
    ) -> Status | Nominated | None:
        """Make room after no node was found; `column` holds the rejection of each of `nodes`."""

    @hookspec
    def may_preempt(self, pod: PodInfo, on_nominated_node: Sequence[PodInfo]) -> Status | None:
        """Reject a pod that may not preempt others. One plugin per profile, with `find_victims`,
        `enough_candidates` and `choose_candidate`.

        `on_nominated_node` are the pods on the pod's nominated node, empty where that node cannot be used.
        """

    @hookspec
    def find_victims(self, pod: PodInfo, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """Return the pods of `pods` that `pod` may preempt, the most important first: they are spared first.

        `pods` are the pods of a node, or the pods nominated for it.
        """
        raise NotImplementedError

    @hookspec
    def may_have_victims(self, pod: PodInfo, nodes: NodeSet) -> NDArray[np.bool_]:
        """Return for each node whether `find_victims` may return one of its pods. Without this hook each is
        asked.
        """
        raise NotImplementedError

    @hookspec
    def enough_candidates(self, pod: PodInfo, potential_nodes: int) -> int:
        """Return how many candidates are enough, given the number of nodes where eviction may help."""
        raise NotImplementedError

    @hookspec
    def trim_candidates(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, candidates: Sequence[Candidate]
    ) -> Sequence[Candidate] | Status:
        """Return the candidates to choose from, perhaps with other victims; ERROR ends the search.

        Any plugin of the profile may have this hook, not only the preemption plugin.
        """
        raise NotImplementedError

    @hookspec
    def choose_candidate(self, pod: PodInfo, candidates: Sequence[Candidate]) -> Candidate:
        """Return the best of some candidates, at least one, in the order of the snapshot."""
        raise NotImplementedError

    @hookspec
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        """Prepare for scoring the feasible `nodes`; code SKIP leaves this plugin's score out."""

    @hookspec
    def score(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet
    ) -> NDArray[np.int64] | NDArray[np.float64] | int:
        """Return one raw score per node, in any range, or one integer that holds for all nodes.

        Floating point is for plugins that normalize.
        """
        raise NotImplementedError

    @hookspec
    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | float:
        """Score one node: for plugins that cannot score columns. Ignored where the plugin has `score`."""
        raise NotImplementedError

    @hookspec
    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, scores: NDArray[np.int64] | NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Map this plugin's raw scores to 0..100 (higher is better)."""
        raise NotImplementedError

    @hookspec
    def add_scores(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Sequence[AddedScores]:
        """Return points for the feasible `nodes` beside the scores of the profile."""
        raise NotImplementedError

    @hookspec
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Reserve the resources of the pod on the chosen node."""

    @hookspec
    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Release the resources that `reserve` took.

        Called in reverse order for every plugin, including those not reached, so it must be idempotent.
        """

    @hookspec
    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        """Allow, reject or hold the pod before it is bound."""

    @hookspec
    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Return whether `pre_bind` has work for the pod; code SKIP leaves it out.

        If no plugin has work, the pod is bound without delay. Without this hook `pre_bind` is always called.
        """

    @hookspec
    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Do the work that the pod needs before it can run on the node."""

    @hookspec
    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Bind the pod to the node; code SKIP passes it on to the next plugin."""

    @hookspec
    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Receive the notice that the pod was bound."""
