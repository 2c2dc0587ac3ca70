"""Compiled rules as plugins: what a profile becomes for the plugin manager. `kdsl.app` registers them like
any other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdsl.base.events import EventPattern
from kdsl.check.analyses.cures import queue_cures
from kdsl.check.model.rule_set import CheckedPredicate, CheckedProfile, CheckedQueue, CheckedScore, RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.eval.scalar.probe import Probe
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Backoff, Narrowed, QueuedPod, hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.groups import Grouped
from kdsl.plan.columns.nodes import lower_macro
from kdsl.plan.compile.frames import EpochOf, KindOf
from kdsl.plan.compile.scope import REWRITE_AFTER, Functions
from kdsl.plan.compile.verdicts import Verdicts
from kdsl.plan.residual.kinds import Residuals
from kdsl.plan.residual.rules import (
    prepared_predicate,
    prepared_score,
    residual_predicate,
    residual_score,
)
from kdsl.plan.rules.normalize import Scores
from kdsl.plan.rules.predicate import SKIP, PredicateProgram
from kdsl.plan.rules.preemption import PreemptionPlugin
from kdsl.plan.rules.queue import QueueProgram
from kdsl.plan.rules.score import ScoreProgram
from kdsl.plan.rules.tightened import TightenedPlugin
from kdsl.plan.rules.waking import Waking, WakingRule

_IDS = np.dtype(np.int32)


class _Judging(NamedTuple):
    """A predicate at work on one pod over one snapshot.

    `program` is the one for pods of its kind. `spare` are the frames that no thread is using: what one of
    them has computed for the pod stays known.
    """

    snapshot: Snapshot
    program: PredicateProgram
    frame: Frame
    spare: list[Frame]

    def take_frame(self) -> Frame:
        """Return a frame for the caller alone, who puts it back among the spare ones."""
        try:
            return self.spare.pop()
        except IndexError:
            return self.frame.copy()


class PredicatePlugin:
    """A predicate. `key` is unique among the plugins of all profiles, `name` what verdicts show."""

    def __init__(self, rule: CheckedPredicate, key: str, functions: Functions) -> None:
        self.key = key
        self.name = rule.name
        self.site = rule.span.site
        self.rule = rule
        self._program = PredicateProgram(rule, functions)
        self._residuals = Residuals(rule, prepared_predicate, residual_predicate, PredicateProgram, functions)
        self.waking_rule = WakingRule(rule, self._program, functions.fns)
        self._waking = Waking((self.waking_rule,))

    def keep_frames(self, kind_of: KindOf, epoch_of: EpochOf) -> None:
        """Let attempts of a kind of pod begin with what the one before found."""
        self._program.frames.keep(kind_of, epoch_of)

    def keep_residuals(self, kind_of: KindOf, epoch_of: EpochOf) -> None:
        """Have kinds of pods that come often judged by what is left of the rule for them."""
        self._residuals.keep(kind_of, epoch_of)

    @property
    def is_columnar(self) -> bool:
        """Tell whether all of the rule runs over columns."""
        return self._program.columns is not None and not self._program.notes

    @property
    def parts(self) -> tuple[PredicatePlugin, ...]:
        """The predicates that it is made of: itself."""
        return (self,)

    def applying(self, state: CycleState) -> tuple[PredicatePlugin, ...]:
        """Return the parts that apply, once PreFilter has not skipped all of it."""
        return (self,)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        judging = self._begin(pod, nodes.snapshot)
        state.write(self.key, judging)
        return judging.program.decide(judging.frame)

    @hookimpl
    def events(self) -> tuple[EventPattern, ...]:
        return self._waking.events()

    @hookimpl
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        return self._waking.is_cured(pod, event)

    @hookimpl
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        verdicts = Verdicts()
        ids = self.judge(state, pod, nodes, verdicts)
        return None if ids is None else StatusColumn(ids, verdicts.table)

    def judge(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, verdicts: Verdicts
    ) -> NDArray[np.int32] | None:
        """Return what `filter` answers for each node, as a number in `verdicts`; None where all pass."""
        judging = state.get(self.key)
        if isinstance(judging, _Judging) and judging.snapshot is nodes.snapshot:
            return self._judge(judging, nodes, verdicts)
        # PreFilter saw another snapshot, as in a what-if, or none: what it decided may not hold here.
        judging = self._begin(pod, nodes.snapshot)
        match judging.program.decide(judging.frame):
            case None:
                return self._judge(judging, nodes, verdicts)
            case Narrowed(names=names):
                return self._judge_among(names, judging, nodes, verdicts)
            case decided:
                if decided.code is Code.SKIP:
                    return None
                return np.full(len(nodes), verdicts.number(decided), _IDS)

    def is_for(self, pod: PodInfo, view: ClusterView) -> bool:
        """Tell whether the conditions of `applies when` that do not depend on nodes hold for a pod."""
        return self._program.is_for(self._program.begin(pod, view))

    def faults_of_pod(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Fault, ...]:
        """Return what went wrong at PreFilter and is not in the answer."""
        return self._program.faults_of_pod(self._program.begin(pod, ClusterView(snapshot)))

    def faults_at(self, pod: PodInfo, nodes: NodeSet) -> tuple[Fault, ...]:
        """Return what went wrong at nodes and is not in the answers."""
        return self._program.faults_at(self._program.begin(pod, ClusterView(nodes.snapshot)), nodes.nodes())

    def verdicts_of(self, pod: PodInfo, nodes: NodeSet, verdicts: Verdicts) -> NDArray[np.int32]:
        """Return the number in `verdicts` of the status of each node, for a pod that PreFilter let pass."""
        program = self._program_for(pod, nodes.snapshot)
        return program.judge_nodes(program.begin(pod, ClusterView(nodes.snapshot)), nodes, verdicts)

    def _judge(self, judging: _Judging, nodes: NodeSet, verdicts: Verdicts) -> NDArray[np.int32]:
        frame = judging.take_frame()
        ids = judging.program.judge_nodes(frame, nodes, verdicts)
        judging.spare.append(frame)
        return ids

    def _judge_among(
        self, names: Collection[str], judging: _Judging, nodes: NodeSet, verdicts: Verdicts
    ) -> NDArray[np.int32]:
        """Judge the nodes that `narrow to` names, and reject the others."""
        inside = np.array([name in names for name in nodes.names()], dtype=np.bool_)
        ids = np.full(len(nodes), verdicts.number(judging.program.outside(judging.frame)), _IDS)
        ids[inside] = self._judge(judging, nodes.take(inside), verdicts)
        return ids

    def _begin(self, pod: PodInfo, snapshot: Snapshot) -> _Judging:
        program = self._program_for(pod, snapshot)
        frame = program.begin(pod, ClusterView(snapshot))
        return _Judging(snapshot, program, frame, [frame])

    def _program_for(self, pod: PodInfo, snapshot: Snapshot) -> PredicateProgram:
        return self._residuals.of(pod, snapshot) or self._program


@dataclass(frozen=True, slots=True)
class _Scoring:
    """A score at work on one pod over one snapshot; `program` is the one for pods of its kind."""

    snapshot: Snapshot
    program: ScoreProgram
    frame: Frame


class ScorePlugin:
    """A score and its weight. `key` is unique among all plugins, `name` what decisions show."""

    def __init__(self, rule: CheckedScore, weight: int, key: str, functions: Functions) -> None:
        self.key = key
        self.name = rule.name
        self.weight = weight
        self.site = rule.span.site
        self.rule = rule
        self._program = ScoreProgram(rule, functions)
        self._residuals = Residuals(rule, prepared_score, residual_score, ScoreProgram, functions)
        self.dtype = self._program.dtype

    def keep_frames(self, kind_of: KindOf, epoch_of: EpochOf) -> None:
        """Let attempts of a kind of pod begin with what the one before found."""
        self._program.frames.keep(kind_of, epoch_of)

    def keep_residuals(self, kind_of: KindOf, epoch_of: EpochOf) -> None:
        """Have kinds of pods that come often judged by what is left of the rule for them."""
        self._residuals.keep(kind_of, epoch_of)

    @property
    def is_columnar(self) -> bool:
        """Tell whether all of the rule runs over columns."""
        return not self._program.notes

    @hookimpl
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        scoring = self._begin(pod, nodes)
        state.write(self.key, scoring)
        return None if scoring.program.applies(scoring.frame, nodes) else SKIP

    @hookimpl
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Scores:
        scoring = self._scoring(state, pod, nodes)
        raw = scoring.program.judge_nodes(scoring.frame, nodes)
        missing = self._program.missing(raw)
        state.write(f"{self.key}/missing", missing)
        if missing.any():
            raw = raw.copy()
            raw[missing] = 0
        return raw

    @hookimpl
    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, scores: Scores
    ) -> NDArray[np.int64]:
        """Normalise what `score` returned; nodes without a score get 0 and do not count for the others."""
        missing = state.get(f"{self.key}/missing")
        scoring = self._scoring(state, pod, nodes)
        return scoring.program.normalized(
            scoring.frame, scores, missing if isinstance(missing, np.ndarray) else None
        )

    def is_for(self, pod: PodInfo, view: ClusterView) -> bool:
        """Tell whether the conditions of `applies when` hold for a pod; they must not read `feasible`."""
        return self._program.is_for(self._program.begin(pod, view, NodeSet.all(view.snapshot)))

    def points_of(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> NDArray[np.int64] | Grouped[int]:
        """Return what `normalize_score` makes of what `score` gives."""
        scoring = self._scoring(state, pod, nodes)
        return scoring.program.points(scoring.frame, nodes)

    def raw_of(self, pod: PodInfo, nodes: NodeSet) -> Scores:
        """Return the raw score of each node, with what stands for none where it failed or is ignored."""
        scoring = self._begin(pod, nodes)
        return scoring.program.judge_nodes(scoring.frame, nodes)

    def normalized_of(self, pod: PodInfo, nodes: NodeSet, raw: Scores) -> NDArray[np.int64]:
        """Normalise what `raw_of` returned for the same nodes."""
        scoring = self._begin(pod, nodes)
        return scoring.program.normalized(scoring.frame, raw, self._program.missing(raw))

    def faults_at(self, pod: PodInfo, nodes: NodeSet) -> tuple[Fault, ...]:
        """Return what goes wrong where nodes are scored."""
        frame = self._program.begin(pod, ClusterView(nodes.snapshot), nodes)
        return self._program.faults(frame, nodes)

    def _begin(self, pod: PodInfo, nodes: NodeSet) -> _Scoring:
        program = self._residuals.of(pod, nodes.snapshot) or self._program
        frame = program.begin(pod, ClusterView(nodes.snapshot), nodes)
        return _Scoring(nodes.snapshot, program, frame)

    def _scoring(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> _Scoring:
        scoring = state.get(self.key)
        if not isinstance(scoring, _Scoring) or scoring.snapshot is not nodes.snapshot:
            scoring = self._begin(pod, nodes)
            scoring.program.fill(scoring.frame, nodes)
        return scoring


class QueuePlugin:
    """A queue. `key` is unique among the plugins of all profiles, `name` what decisions show."""

    def __init__(self, rule: CheckedQueue, key: str, functions: Functions) -> None:
        self.key = key
        self.name = rule.name
        self.site = rule.span.site
        self.qualified = rule.qualified
        self._program = QueueProgram(rule, functions)
        self._cures = queue_cures(rule, functions.fns)

    @hookimpl
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return self._program.admit(pod)

    @hookimpl
    def queue_sort(self, queued: QueuedPod) -> Any:
        return self._program.sort_key(queued)

    def faults_of_pod(self, pod: PodInfo) -> tuple[Fault, ...]:
        """Return what goes wrong where a pod is sorted."""
        return self._program.faults_of(pod)

    @hookimpl
    def backoff(self) -> Backoff:
        return self._program.backoff

    @hookimpl
    def events(self) -> tuple[EventPattern, ...]:
        return self._cures.patterns


@dataclass(frozen=True, slots=True)
class CompiledProfile:
    """The rules of one profile as plugins, in its order. Those that plugins bring are not among them."""

    name: str
    scheduler: str
    predicates: tuple[PredicatePlugin | TightenedPlugin[PredicatePlugin], ...]
    scores: tuple[ScorePlugin, ...]
    queue: QueuePlugin
    preemption: PreemptionPlugin | None
    erred: set[str]
    """The rules that ever passed over an error; see `Functions`."""


def compile_profile(
    rules: RuleSet,
    profile: CheckedProfile,
    probe: Probe | None = None,
    steps: Steps = DEFAULT_STEPS,
    rewrite_after: int = REWRITE_AFTER,
) -> CompiledProfile:
    """Compile every rule of a profile of `rules`; a `probe` watches them at work, `steps` bound it. For
    kinds of pods that are met more than `rewrite_after` times they are rewritten.

    Nothing is shared between profiles, not even the memo of a rule that both use: its parameters may differ.
    """
    functions = Functions.of(rules.fns, probe, steps, lower_macro, rewrite_after)
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
        functions.erred,
    )


def _predicate(
    rule: CheckedPredicate, key: str, functions: Functions
) -> PredicatePlugin | TightenedPlugin[PredicatePlugin]:
    plugin = PredicatePlugin(rule, key, functions)
    if not rule.tightenings:
        return plugin
    tightenings = (PredicatePlugin(each, f"{key}/{each.qualified}", functions) for each in rule.tightenings)
    return TightenedPlugin((plugin, *tightenings))
