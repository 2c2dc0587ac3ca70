"""A score of a profile as a plugin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdsl.check.model.rule_set import CheckedScore
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar import Frame
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status
from kdsl.lang.choices import ErrorAction, Normalization
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.groups import Grouped
from kdsl.plan.compile.frames import PodFrames
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.rules.node_rule import NodeRule, RuleAttempt
from kdsl.plan.rules.normalize import Scores
from kdsl.plan.rules.predicate import SKIP
from kdsl.plan.rules.score import ScoreProgram


class ScorePlugin(NodeRule[CheckedScore, ScoreProgram]):
    """A score and its weight, of which 0 counts as 1."""

    def __init__(self, rule: CheckedScore, weight: int, key: str, functions: CompiledFunctions) -> None:
        super().__init__(rule, key, functions, ScoreProgram(rule, functions))
        self.weight = weight or 1
        self.dtype = self._program.dtype
        self.is_plain = rule.normalize.kind is Normalization.NONE and self.dtype == np.int64
        """Whether the score of a node is independent of other nodes."""
        self.decides_early = bool(rule.applies)
        may_abort = rule.on_error is not None and rule.on_error.action is ErrorAction.ABORT
        self.can_prefetch = self.is_columnar and not may_abort

    @hookimpl
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        if not self.rule.applies:
            return None
        attempt = state.values[self.key] = RuleAttempt(nodes.snapshot, self._frame(pod, nodes))
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
        # Only a formula of the rule itself reads a frame.
        frame = [] if self.rule.normalize.by is None else self._frame(pod, nodes)
        return self._program.normalized(frame, raw, self._program.missing(raw))

    def faults_at(self, pod: PodInfo, nodes: NodeSet) -> tuple[Fault, ...]:
        """Return the errors in scoring these nodes."""
        return self._program.faults(self._frame(pod, nodes), nodes)

    def _frame(self, pod: PodInfo, nodes: NodeSet) -> Frame:
        return self._program.begin(pod, ClusterView(nodes.snapshot), nodes)

    def _attempt(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> RuleAttempt:
        attempt = state.values.get(self.key)
        if not isinstance(attempt, RuleAttempt) or attempt.snapshot is not nodes.snapshot:
            return RuleAttempt(nodes.snapshot, self._frame(pod, nodes))
        return attempt
