"""Compiled rules as plugins: what a profile becomes for the plugin manager. `kdsl.app` registers them like
any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdsl.check.model import CheckedPredicate, CheckedProfile, CheckedQueue, CheckedScore, RuleSet
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.hooks.specs import Narrowed, QueuedPod, hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status, StatusColumn
from kdsl.plan.memo import Dependencies, Memo
from kdsl.plan.normalize import Scores
from kdsl.plan.predicate import SKIP, PredicateProgram
from kdsl.plan.queue import QueueProgram
from kdsl.plan.scalar import Frame
from kdsl.plan.scalar.probe import Probe
from kdsl.plan.scope import Functions
from kdsl.plan.score import ScoreProgram
from kdsl.plan.tightened import TightenedPlugin
from kdsl.plan.verdicts import Verdicts
from kdsl.plan.views import ClusterView

_IDS = np.dtype(np.int32)


@dataclass(frozen=True, slots=True)
class _Judging:
    """A predicate at work on one pod. The memo holds numbers of `verdicts`."""

    frame: Frame
    verdicts: Verdicts
    memo: Memo[np.int32] | None


class PredicatePlugin:
    """A predicate. `key` is unique among the plugins of all profiles, `name` what verdicts show."""

    def __init__(self, rule: CheckedPredicate, key: str, functions: Functions) -> None:
        self.key = key
        self.name = rule.name
        self.site = rule.span.site
        self._program = PredicateProgram(rule, functions)
        self._dependencies = Dependencies.of(rule.reads)
        self._lock = Lock()
        self._renew()

    def _renew(self) -> None:
        self._verdicts = Verdicts()
        self._memo = None if self._dependencies is None else Memo(self._dependencies, _IDS)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        judging = self._begin(pod, nodes)
        state.write(self.key, judging)
        return self._program.decide(judging.frame)

    @hookimpl
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        judging = state.get(self.key)
        if not isinstance(judging, _Judging):
            judging = self._begin(pod, nodes)

        def compute(wanted: NodeSet) -> NDArray[np.int32]:
            ids = self._program.judge(judging.frame.copy(), wanted.nodes(), judging.verdicts)
            return np.fromiter(ids, _IDS, len(wanted))

        ids = compute(nodes) if judging.memo is None else judging.memo.answers(pod, nodes, compute)
        return StatusColumn(ids, judging.verdicts.table)

    def _begin(self, pod: PodInfo, nodes: NodeSet) -> _Judging:
        with self._lock:
            if self._verdicts.is_full:
                self._renew()
            verdicts, memo = self._verdicts, self._memo
        return _Judging(self._program.begin(pod, ClusterView(len(nodes.snapshot))), verdicts, memo)


class ScorePlugin:
    """A score and its weight. `key` is unique among all plugins, `name` what decisions show."""

    def __init__(self, rule: CheckedScore, weight: int, key: str, functions: Functions) -> None:
        self.key = key
        self.name = rule.name
        self.weight = weight
        self.site = rule.span.site
        self._program = ScoreProgram(rule, functions)
        dependencies = Dependencies.of(rule.reads)
        self._memo: Memo[np.int64 | np.float64] | None = None
        if dependencies is not None:
            self._memo = Memo(dependencies, self._program.dtype)

    @hookimpl
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        frame = self._begin(pod, nodes)
        state.write(self.key, frame)
        return None if self._program.applies(frame) else SKIP

    @hookimpl
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Scores:
        frame = self._frame(state, pod, nodes)

        def compute(wanted: NodeSet) -> Scores:
            raw = self._program.judge(frame.copy(), wanted.nodes())
            return np.fromiter(raw, self._program.dtype, len(wanted))

        raw = compute(nodes) if self._memo is None else self._memo.answers(pod, nodes, compute)
        failed = self._program.failed(raw)
        state.write(f"{self.key}/failed", failed)
        if failed.any():
            raw = raw.copy()
            raw[failed] = 0
        return raw

    @hookimpl
    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, scores: Scores
    ) -> NDArray[np.int64]:
        """Normalise what `score` returned; nodes whose score failed get 0 and do not count for the others."""
        failed = state.get(f"{self.key}/failed")
        frame = self._frame(state, pod, nodes).copy()
        if not isinstance(failed, np.ndarray) or not failed.any():
            return self._program.normalized(frame, scores)
        normalized = np.zeros(len(scores), dtype=np.int64)
        normalized[~failed] = self._program.normalized(frame, scores[~failed])
        return normalized

    def _begin(self, pod: PodInfo, nodes: NodeSet) -> Frame:
        return self._program.begin(pod, ClusterView(len(nodes.snapshot)))

    def _frame(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Frame:
        frame = state.get(self.key)
        return frame if isinstance(frame, list) else self._begin(pod, nodes)


class QueuePlugin:
    """A queue. `key` is unique among the plugins of all profiles, `name` what decisions show."""

    def __init__(self, rule: CheckedQueue, key: str, functions: Functions) -> None:
        self.key = key
        self.name = rule.name
        self.site = rule.span.site
        self._program = QueueProgram(rule, functions)

    @hookimpl
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return self._program.admit(pod)

    @hookimpl
    def queue_sort(self, queued: QueuedPod) -> Any:
        return self._program.sort_key(queued.pod, queued.queued_at, queued.sequence)


@dataclass(frozen=True, slots=True)
class CompiledProfile:
    """The rules of one profile as plugins, in its order. Those that plugins bring are not among them."""

    name: str
    scheduler: str
    predicates: tuple[PredicatePlugin | TightenedPlugin, ...]
    scores: tuple[ScorePlugin, ...]
    queue: QueuePlugin


def compile_profile(rules: RuleSet, profile: CheckedProfile, probe: Probe | None = None) -> CompiledProfile:
    """Compile every rule of a profile of `rules`; a `probe` watches them at work.

    Nothing is shared between profiles, not even the memo of a rule that both use: its parameters may differ.
    """
    functions = Functions.of(rules.fns, probe)
    place = profile.qualified
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
    )


def _predicate(rule: CheckedPredicate, key: str, functions: Functions) -> PredicatePlugin | TightenedPlugin:
    plugin = PredicatePlugin(rule, key, functions)
    if not rule.tightenings:
        return plugin
    tightenings = (PredicatePlugin(each, f"{key}/{each.qualified}", functions) for each in rule.tightenings)
    return TightenedPlugin((plugin, *tightenings))
