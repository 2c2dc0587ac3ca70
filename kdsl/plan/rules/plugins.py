"""Compiled rules of a profile as plugins. `kdsl.app` registers them like any other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.check.analyses.cures import predicate_cures
from kdsl.check.model.rule_set import CheckedPredicate, CheckedProfile, CheckedScore, RuleSet
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.eval.scalar.probe import Probe
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Narrowed, hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.lang.choices import ErrorAction, Normalization
from kdsl.plan.card_table import CardsOf, no_cards
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.groups import Grouped
from kdsl.plan.columns.nodes import lower_macro
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.compile.frames import PodFrames
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.reads.dependencies import Dependencies, expressions_of_rule, reads_of
from kdsl.plan.reads.selected_labels import signature_reads
from kdsl.plan.rules.normalize import Scores
from kdsl.plan.rules.predicate import SKIP, PredicateProgram
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.preemption import PreemptionPlugin
from kdsl.plan.rules.queue import QueuePlugin
from kdsl.plan.rules.sample import SampleProgram
from kdsl.plan.rules.score import ScoreProgram
from kdsl.plan.rules.what_ifs import statuses_of_what_ifs

IDS: Final = np.dtype(np.int32)
"""The type of status numbers."""
_TRANSIENT = frozenset(
    {
        *("cluster.pods", "cluster.static", "cluster.images", "cluster.nodes"),
        *("node.static", "node.usage", "feasible"),
    }
)
"""The reads that may change between two attempts."""
R = TypeVar("R", CheckedPredicate, CheckedScore)
P = TypeVar("P", PredicateProgram, ScoreProgram)


class _Attempt(Struct, frozen=True, eq=False):
    """The state of a rule for one pod over one snapshot. `spare` are unused frames of a predicate with the
    values that were computed for the pod.
    """

    snapshot: Snapshot
    frame: Frame
    spare: list[Frame] = []


class _NodeRule(Generic[R, P]):
    """A rule about nodes. `key` is unique among the plugins of all profiles, `name` is shown in decisions."""

    _program: P
    dtype: np.dtype[Any]
    """The type of its answers for nodes."""

    def __init__(self, rule: R, key: str, functions: CompiledFunctions) -> None:
        self.key = key
        self.name = rule.name
        self.site = rule.span.site
        self.rule: R = rule
        self.reads = signature_reads(rule.reads, expressions_of_rule(rule), functions.fns)
        """The reads of the rule, for signatures."""
        self.applies_reads = signature_reads(reads_of(rule.applies), expressions_of_rule(rule), functions.fns)
        """The reads of its conditions `applies when`, for signatures."""
        self.node_steps = functions.budget.node_steps
        """Returns the steps of each rule of the profile on one of a number of nodes."""

    @property
    def is_columnar(self) -> bool:
        """Return whether all of the rule runs over columns."""
        return self._program.columns is not None and not self._program.scalar_parts

    def keep_frames(self) -> None:
        """Keep frames by signature, unless no two pods share one."""
        dependencies = Dependencies.of(self.reads - _TRANSIENT)
        if dependencies is not None:
            self._program.frames.keep(dependencies)


class PredicateRule(_NodeRule[CheckedPredicate, PredicateProgram]):
    """A predicate without its tightenings, or one of these."""

    dtype = IDS
    can_prefetch = _NodeRule.is_columnar
    """Whether more nodes cost little."""

    def __init__(self, rule: CheckedPredicate, key: str, functions: CompiledFunctions) -> None:
        super().__init__(rule, key, functions)
        self._program = PredicateProgram(rule, functions)
        self.cures = predicate_cures(rule, functions.fns)
        self.dependencies = Dependencies.of(rule.reads)

    @property
    def decides_early(self) -> bool:
        """Return whether PreFilter may skip or reject a pod, or narrow the candidates."""
        return self._program.decides_early

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        """Decide for all nodes, and keep the state of the attempt for `statuses`."""
        attempt = self._begin(pod, ClusterView(nodes.snapshot))
        state.values[self.key] = attempt
        return self._program.decide(attempt.frame)

    def statuses(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        """Return the status of each node, as a number in `numbers`; None if all pass."""
        attempt = state.values.get(self.key)
        if isinstance(attempt, _Attempt) and attempt.snapshot is nodes.snapshot:
            return self._statuses(attempt, nodes, numbers)

        # PreFilter had another snapshot (as in a what-if) or did not run, so its result may not hold.
        def ask(view: ClusterView, nodes: NodeSet) -> NDArray[np.int32] | None:
            return self._decided(self._begin(pod, view), nodes, numbers)

        if nodes.snapshot.what_ifs is not None:
            return statuses_of_what_ifs(nodes, ask)
        return ask(ClusterView(nodes.snapshot), nodes)

    def _decided(self, attempt: _Attempt, nodes: NodeSet, numbers: StatusNumbers) -> NDArray[np.int32] | None:
        """Return the status of each node, for an attempt that no PreFilter began."""
        match self._program.decide(attempt.frame):
            case None:
                return self._statuses(attempt, nodes, numbers)
            case Narrowed(names=names):
                return self._statuses_within(names, attempt, nodes, numbers)
            case decided:
                if decided.code is Code.SKIP:
                    return None
                return np.full(len(nodes), numbers.number(decided), IDS)

    def is_for(self, pod: PodInfo, view: ClusterView) -> bool:
        """Return whether the conditions of `applies when` that do not depend on nodes hold for a pod."""
        return self._program.is_for(self._program.begin(pod, view))

    def faults_of_pod(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Fault, ...]:
        """Return the errors in PreFilter that are not in the answer."""
        return self._program.faults_of_pod(self._program.begin(pod, ClusterView(snapshot)))

    def faults_at(self, pod: PodInfo, nodes: NodeSet) -> tuple[Fault, ...]:
        """Return the errors on nodes that are not in the answers."""
        return self._program.faults_at(self._program.begin(pod, ClusterView(nodes.snapshot)), nodes.nodes())

    def statuses_of(
        self, pod: PodInfo, nodes: NodeSet, numbers: StatusNumbers, known: PodFrames | None = None
    ) -> NDArray[np.int32] | None:
        """Return the status of each node, as a number in `numbers`, for a pod that passed PreFilter; None if
        all pass.

        The frame resumes, and replaces, the `known` one.
        """
        program, view = self._program, ClusterView(nodes.snapshot)
        if known is None:
            return program.statuses(program.begin(pod, view), nodes, numbers)
        return program.statuses_with(known, pod, view, nodes, numbers)

    def passes(self, pod: PodInfo, node: NodeInfo, known: PodFrames) -> bool:
        """Return whether the rule lets `pod` onto `node`, for rules with an answer local to the node.

        `known` are values that depend on the pod only.
        """
        return self._program.passes(pod, node, known)

    def _statuses(
        self, attempt: _Attempt, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        try:
            frame = attempt.spare.pop()
        except IndexError:  # other threads use them
            frame = attempt.frame.copy()
        ids = self._program.statuses(frame, nodes, numbers)
        attempt.spare.append(frame)
        return ids

    def _statuses_within(
        self, names: Collection[str], attempt: _Attempt, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32]:
        """Evaluate the nodes that `narrow to` names, and reject the others."""
        inside = np.array([name in names for name in nodes.names()], dtype=np.bool_)
        ids = np.full(len(nodes), numbers.number(self._program.outside(attempt.frame)), IDS)
        found = self._statuses(attempt, nodes.take(inside), numbers)
        ids[inside] = 0 if found is None else found
        return ids

    def _begin(self, pod: PodInfo, view: ClusterView) -> _Attempt:
        frame = self._program.begin(pod, view)
        return _Attempt(view.snapshot, frame, [frame])


class ScorePlugin(_NodeRule[CheckedScore, ScoreProgram]):
    """A score and its weight, of which 0 counts as 1."""

    def __init__(self, rule: CheckedScore, weight: int, key: str, functions: CompiledFunctions) -> None:
        super().__init__(rule, key, functions)
        self.weight = weight or 1
        self._program = ScoreProgram(rule, functions)
        self.dtype = self._program.dtype
        self.is_plain = rule.normalize.kind is Normalization.NONE and self.dtype == np.int64
        """Whether the score of a node is independent of other nodes."""

    @property
    def decides_early(self) -> bool:
        """Return whether PreScore may skip a pod."""
        return bool(self.rule.applies)

    @property
    def can_prefetch(self) -> bool:
        """Return whether more nodes cost little and change nothing: an error may not abort."""
        on_error = self.rule.on_error
        return self.is_columnar and (on_error is None or on_error.action is not ErrorAction.ABORT)

    @hookimpl
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        if not self.rule.applies:
            return None
        attempt = state.values[self.key] = _Attempt(nodes.snapshot, self._frame(pod, nodes))
        return None if self._program.is_for(attempt.frame) else SKIP

    @hookimpl
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Scores:
        attempt = self._attempt(state, pod, nodes)
        raw = self._program.raw_scores(attempt.frame, nodes)
        missing = self._program.missing(raw)
        state.values[f"{self.key}/missing"] = missing
        if missing.any():
            raw = raw.copy()
            raw[missing] = 0
        return raw

    @hookimpl
    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, scores: Scores
    ) -> NDArray[np.int64]:
        """Normalise the result of `score`; nodes without a score get 0 and do not affect the others."""
        missing = state.values.get(f"{self.key}/missing")
        attempt = self._attempt(state, pod, nodes)
        return self._program.normalized(
            attempt.frame, scores, missing if isinstance(missing, np.ndarray) else None
        )

    def is_for(self, pod: PodInfo, view: ClusterView) -> bool:
        """Return whether the conditions of `applies when` hold for a pod; they must not read `feasible`."""
        return self._program.is_for(self._program.frames.begin(pod, view))

    def points_of(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> NDArray[np.int64] | Grouped[int]:
        """Return the normalised scores."""
        return self._program.points(self._attempt(state, pod, nodes).frame, nodes)

    def raw_of(self, pod: PodInfo, nodes: NodeSet, known: PodFrames) -> Scores:
        """Return the raw score of each node, with the mark of no score if it failed or is ignored. The frame
        resumes, and replaces, the `known` one.
        """
        frames = self._program.frames
        frame = frames.resume(pod, ClusterView(nodes.snapshot), known)
        raw = self._program.raw_scores(frame, nodes)
        frames.leave(frame, known)
        return raw

    def normalized_of(self, pod: PodInfo, nodes: NodeSet, raw: Scores) -> NDArray[np.int64]:
        """Normalise the result of `raw_of` for the same nodes."""
        return self._program.normalized(self._frame(pod, nodes), raw, self._program.missing(raw))

    def close_normalized(self, raw: Scores) -> tuple[Sequence[int], NDArray[np.int64]] | None:
        """Normalise integers that are close to each other, see `normalize_close`; None for other scores."""
        return self._program.close_normalized(raw)

    def faults_at(self, pod: PodInfo, nodes: NodeSet) -> tuple[Fault, ...]:
        """Return the errors in scoring these nodes."""
        return self._program.faults(self._frame(pod, nodes), nodes)

    def _frame(self, pod: PodInfo, nodes: NodeSet) -> Frame:
        return self._program.begin(pod, ClusterView(nodes.snapshot), nodes)

    def _attempt(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> _Attempt:
        attempt = state.values.get(self.key)
        if not isinstance(attempt, _Attempt) or attempt.snapshot is not nodes.snapshot:
            return _Attempt(nodes.snapshot, self._frame(pod, nodes))
        return attempt


@dataclass(frozen=True, slots=True)
class CompiledProfile:
    """The rules of one profile as plugins, in its order. Those that plugins bring are not among them."""

    name: str
    scheduler: str
    predicates: tuple[PredicatePlugin, ...]
    scores: tuple[ScorePlugin, ...]
    queue: QueuePlugin
    preemption: PreemptionPlugin | None
    sample: SampleProgram | None
    erred: set[str]
    """The rules that ever ignored an error; see `CompiledFunctions`."""


def compile_profile(
    rules: RuleSet,
    profile: CheckedProfile,
    probe: Probe | None = None,
    steps: Steps = DEFAULT_STEPS,
    cards_of: CardsOf = no_cards,
) -> CompiledProfile:
    """Compile every rule of a profile; a `probe` observes them, `steps` bound them. `cards_of` reads the
    cards of a node as the devices of the profile see them.

    Profiles share nothing, not even the memo of a common rule: its parameters may differ.
    """
    functions = CompiledFunctions(rules.fns, probe, steps, lower_macro, cards_of)
    place, preemption = profile.qualified, profile.preemption
    return CompiledProfile(
        profile.name,
        profile.scheduler,
        tuple(
            _predicate(rule, f"{place}/predicate/{rule.qualified}", functions)
            for rule in profile.predicates
            if not rule.plugin
        ),
        tuple(
            ScorePlugin(entry.score, entry.weight, f"{place}/score/{entry.score.qualified}", functions)
            for entry in profile.scores
            if not entry.score.plugin
        ),
        QueuePlugin(profile.queue, f"{place}/queue/{profile.queue.qualified}", functions),
        None if preemption is None else PreemptionPlugin(preemption, f"{place}/preemption", functions),
        None if profile.sample is None else SampleProgram(profile.sample, functions),
        functions.erred,
    )


def _predicate(rule: CheckedPredicate, key: str, functions: CompiledFunctions) -> PredicatePlugin:
    tightenings = [PredicateRule(each, f"{key}/{each.qualified}", functions) for each in rule.tightenings]
    return PredicatePlugin((PredicateRule(rule, key, functions), *tightenings))
