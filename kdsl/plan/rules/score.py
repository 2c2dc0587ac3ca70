"""A score of a profile as a plugin: a raw value for every node, and its normalisation to 0..100."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kdsl.base.errors import KdslError
from kdsl.base.extremes import largest_of, least_of
from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedScore
from kdsl.check.model.types import DOUBLE
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.nodelist import NodeList
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import INT_MIN, BudgetError, EvalError, Value
from kdsl.hooks.faults import MOST_NAMED, Fault
from kdsl.hooks.specs import hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status
from kdsl.lang.choices import ErrorAction, Normalization
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.batch import Batch, batch_of
from kdsl.plan.columns.column import Column, encoded
from kdsl.plan.columns.compiler import lower_whole
from kdsl.plan.columns.groups import Grouped
from kdsl.plan.columns.node_groups import NodeGroups
from kdsl.plan.columns.node_reads import NodeReadsCompiler
from kdsl.plan.columns.programs import ColumnScore
from kdsl.plan.columns.scope import RuleColumns
from kdsl.plan.columns.tape import is_faster_over_columns
from kdsl.plan.compile.failures import FaultLog, error_text, fault_of
from kdsl.plan.compile.frames import Frames, PodFrames
from kdsl.plan.compile.scope import CompiledFunctions, Conditions, RuleScope
from kdsl.plan.rules.node_rule import NodeRule, RuleAttempt
from kdsl.plan.rules.normalize import Scores, normalize, normalize_close, normalize_few, whole
from kdsl.plan.rules.predicate import SKIP

NO_SCORE_INT = INT_MIN
"""The mark of a node without a score (failed or ignored) among ints; among doubles it is NaN."""


class ScoreError(KdslError):
    """A score with `on error abort` failed: the attempt ends."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.fault = fault


class ScorePlugin(NodeRule[CheckedScore]):
    """A score and its weight, of which 0 counts as 1. `dtype` is the type of its raw scores, int64 or
    float64.
    """

    columns: ColumnScore | None

    def __init__(
        self, rule: CheckedScore, functions: CompiledFunctions, weight: int = 1, key: str = ""
    ) -> None:
        super().__init__(rule, functions, key)
        self.weight = weight or 1
        self.decides_early = bool(rule.applies)
        self._erred = functions.erred
        self._is_double = rule.value.type == DOUBLE
        self.dtype = np.dtype(np.float64 if self._is_double else np.int64)
        self.is_plain = rule.normalize.kind is Normalization.NONE and not self._is_double
        """Whether the score of a node is independent of other nodes."""
        self._nothing: int | float = math.nan if self._is_double else NO_SCORE_INT
        self._aborts = rule.on_error is not None and rule.on_error.action is ErrorAction.ABORT
        scope = self._new_scope(functions)
        self._feasible = scope.slot_of("feasible")
        self._reads_feasible = "feasible" in rule.reads
        self._range = tuple(map(scope.slot_of, ("value", "min", "max")))
        self._resets = [slot for slot in map(scope.let, rule.lets) if slot is not None]
        self._applies = Conditions(rule.applies, scope, rule.qualified, functions.erred)
        self._ignores = [(scope.compile(condition), condition.span) for condition in rule.ignores]
        self._value = scope.compile(rule.value)
        self._by = None if rule.normalize.by is None else scope.compile(rule.normalize.by)
        self._groups: NodeGroups | None = None
        self.columns = None if functions.probe is not None else self._over_columns(scope, functions)
        self.can_prefetch = self.is_columnar and not self._aborts
        self.frames = Frames(scope, (*self._resets, self._feasible), functions.steps.pod)

    def _over_columns(self, scope: RuleScope, functions: CompiledFunctions) -> ColumnScore:
        columns = RuleColumns(scope, functions, self._node, self._resets)
        self.scalar_parts, self._tapes = columns.scalar_parts, columns.tapes
        value, *ignores = map(scope.optimised, (self.rule.value, *self.rule.ignores))
        self._groups = NodeReadsCompiler(columns).of_rule((*ignores, value), (), scope)
        lowered = lower_whole(value, columns), [lower_whole(each, columns) for each in ignores]
        return ColumnScore(*lowered, self._nothing)

    def begin(self, pod: Value, cluster: Value, feasible: NodeSet) -> Frame:
        """Return the frame of one pod over the snapshot that `cluster` views, with the feasible nodes if the
        score reads them.
        """
        frame = self.frames.begin(pod, cluster)
        if self._reads_feasible:
            frame[self._feasible] = NodeList(feasible)
        return frame

    @hookimpl
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        if not self.rule.applies:
            return None
        attempt = state.values[self.key] = self._begin(pod, nodes)
        return None if self._applies.hold(attempt.frame) else SKIP

    @hookimpl
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Scores:
        attempt = self._attempt(state, pod, nodes)
        raw = self.raw_scores(attempt.frame, nodes)
        missing = self.missing(raw)
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
        return self.normalized(attempt.frame, scores, missing if isinstance(missing, np.ndarray) else None)

    def is_for(self, pod: PodInfo, view: ClusterView) -> bool:
        """Return whether the conditions of `applies when` hold for a pod; they must not read `feasible`."""
        return self._applies.hold(self.frames.begin(pod, view))

    def raw_of(self, pod: PodInfo, nodes: NodeSet, known: PodFrames) -> Scores:
        """Return the raw score of each node, with the mark of no score if it failed or is ignored. The frame
        resumes, and replaces, the `known` one.
        """
        frames = self.frames
        frame = frames.resume(pod, ClusterView(nodes.snapshot), known)
        raw = self.raw_scores(frame, nodes)
        frames.leave(frame, known)
        return raw

    def normalized_of(self, pod: PodInfo, nodes: NodeSet, raw: Scores) -> NDArray[np.int64]:
        """Normalise the result of `raw_of` for the same nodes."""
        return self.normalized(self._frame_of_formula(pod, nodes), raw, self.missing(raw))

    def close_normalized(self, raw: Scores) -> tuple[Sequence[int], NDArray[np.int64]] | None:
        """Normalise integers that are close to each other, see `normalize_close`; None for other scores, if
        some are missing, or if the rule has its own formula.
        """
        return None if self._by is not None else normalize_close(self.rule.normalize.kind, raw)

    def normalized_for_all(self, pod: PodInfo, nodes: NodeSet, only: Value) -> int:
        """Normalise the raw score that all nodes share."""
        # Normalising reads the least, the largest and the score itself, so one value stands for all.
        # It may be a number of numpy, whose products wrap around.
        raw = [self.dtype.type(only).item()]
        return self._few_normalized(self._frame_of_formula(pod, nodes), raw)[0]

    def _frame_of_formula(self, pod: PodInfo, nodes: NodeSet) -> Frame:
        """Return the frame for normalising, which only a formula of the rule itself reads."""
        return [] if self.rule.normalize.by is None else self.begin(pod, ClusterView(nodes.snapshot), nodes)

    def _attempt(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> RuleAttempt:
        attempt = state.values.get(self.key)
        if not isinstance(attempt, RuleAttempt) or attempt.snapshot is not nodes.snapshot:
            return self._begin(pod, nodes)
        return attempt

    def _begin(self, pod: PodInfo, nodes: NodeSet) -> RuleAttempt:
        return RuleAttempt(nodes.snapshot, self.begin(pod, ClusterView(nodes.snapshot), nodes))

    def raw_scores(self, frame: Frame, nodes: NodeSet) -> Scores:
        """Return the raw score of each node, as `scalar_scores` gives it."""
        raw = self._grouped_scores(frame, nodes)
        return raw.column(self.dtype) if isinstance(raw, Grouped) else raw

    def points_of(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> NDArray[np.int64] | Grouped[int]:
        """Return the normalised scores of nodes; those without a score get 0 and do not affect the others."""
        frame = self._attempt(state, pod, nodes).frame
        raw = self._grouped_scores(frame, nodes)
        if isinstance(raw, Grouped):
            # Normalising reads the least, the largest and the score itself, so one value stands for its
            # group.
            return Grouped(self._few_normalized(frame, raw.values), raw.groups)
        return self.normalized(frame, raw, self.missing(raw))

    def _grouped_scores(self, frame: Frame, nodes: NodeSet) -> Scores | Grouped[Value]:
        """Return raw scores, by group if there are few groups of nodes, over columns if that pays."""

        def scalar(batch: Batch) -> Scores:
            return np.fromiter(self.scalar_scores(frame, batch.nodes(), meter=meter), self.dtype, len(batch))

        if self.columns is None or not is_faster_over_columns(nodes, self._tapes, frame):
            return np.fromiter(self.scalar_scores(frame, nodes.nodes()), self.dtype, len(nodes))
        meter = frame[-1] = self._share.meter_over(frame[self._cluster])
        batch = batch_of(nodes, frame)
        groups = None if self._groups is None else self._groups.groups(batch)
        if groups is None:
            return self.columns.raw_scores(batch, scalar)
        firsts = batch.nodes_at(groups.firsts)
        return Grouped(list(self.scalar_scores(frame, firsts, meter=meter)), groups)

    def faults_at(self, pod: PodInfo, nodes: NodeSet) -> tuple[Fault, ...]:
        """Return the errors in scoring these nodes."""
        frame, log = self.begin(pod, ClusterView(nodes.snapshot), nodes), FaultLog(self.name)
        if not self._applies.hold(frame, log.add):
            return log.take()
        if self._ignores:
            raw = np.fromiter(self.scalar_scores(frame, nodes.nodes(), log), self.dtype, len(nodes))
            missing = self.missing(raw)
        else:
            # One expression fails on all nodes without a score; the first of them gives the reason.
            raw = self.raw_scores(frame, nodes)
            missing = self.missing(raw)
            failed = missing.nonzero()[0]
            for at in failed[:MOST_NAMED].tolist():
                more = len(failed) - MOST_NAMED if at == failed[0] and len(failed) > MOST_NAMED else 0
                list(self.scalar_scores(frame, nodes.take(np.array([at])).nodes(), log, 1 + more))
        if self._by is not None and not missing.all():
            left = nodes.take(~missing)
            values = raw[~missing].tolist()
            self._normalized_by(frame, values, min(values), max(values), log, left.names())
        return log.take()

    def scalar_scores(
        self,
        frame: Frame,
        nodes: Iterable[Value],
        log: FaultLog | None = None,
        count: int = 1,
        meter: Meter | None = None,
    ) -> Iterator[int | float]:
        """Yield the raw score of each node, `NO_SCORE_INT` or NaN if it failed or the node is ignored.
        ScoreError under `on error abort`. `log` receives errors, each for `count` nodes. `meter` is one that
        `Share.meter_over` made for the frame.
        """
        value, resets, node_slot = self._value, self._resets, self._node
        if meter is None:
            meter = self._share.meter_over(frame[self._cluster])
        frame[-1] = meter
        for node in nodes:
            frame[node_slot], meter.left = node, meter.limit
            for slot in resets:
                frame[slot] = UNSET
            if self._ignores and self._is_ignored(frame, log):
                yield self._nothing
                continue
            try:
                raw = value(frame)
                if not math.isfinite(raw) if self._is_double else raw == NO_SCORE_INT:
                    raise EvalError(f"the score is {raw}")
                yield raw
            except EvalError as error:
                yield self._failed(error, self.rule.value.span, log, node.name, count)

    def _is_ignored(self, frame: Frame, log: FaultLog | None) -> bool:
        """Return whether an `ignore when` holds; one that fails does not."""
        for condition, span in self._ignores:
            try:
                if condition(frame):
                    return True
            except BudgetError as error:
                self._failed(error, span, log, "")
            except EvalError as error:
                self._erred.add(self.rule.qualified)
                if log is not None:
                    log.add(error, span, frame[self._node].name)
        return False

    def missing(self, raw: Scores) -> NDArray[np.bool_]:
        """Return the raw scores that stand for no score: the node failed or is ignored."""
        return np.isnan(raw) if self._is_double else raw == NO_SCORE_INT

    def normalized(
        self, frame: Frame, raw: Scores, missing: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return the scores, in 0..100 if the rule keeps to that; `missing` ones get 0 and do not count."""
        if missing is not None and True in missing:
            normalized = np.zeros(len(raw), np.int64)
            normalized[~missing] = self.normalized(frame, raw[~missing])
            return normalized
        if self._by is None:
            return normalize(self.rule.normalize.kind, raw)
        if not raw.size:
            return raw.astype(np.int64)
        # Equal scores are normalised to equal ones.
        distinct = encoded(Column(raw))
        found = self._normalized_by(frame, distinct.values, least_of(raw), largest_of(raw))
        return np.array(found, np.int64).take(distinct.codes)

    def _few_normalized(self, frame: Frame, raw: Sequence[Value]) -> list[int]:
        """Normalise a few scores like `normalized`; each operation on a column costs as much as they do."""
        if self._is_double:
            column = np.array(raw, np.float64)
            points: list[int] = self.normalized(frame, column, self.missing(column)).tolist()
            return points
        scores = sorted({*raw} - {NO_SCORE_INT})
        if not scores:
            return [0] * len(raw)
        if self._by is None:
            found = normalize_few(self.rule.normalize.kind, scores)
        else:
            found = self._normalized_by(frame, scores, scores[0], scores[-1])
        known = dict(zip(scores, found, strict=True))
        return [known.get(score, 0) for score in raw]

    def _normalized_by(
        self,
        frame: Frame,
        values: Sequence[Value],
        least: Value,
        largest: Value,
        log: FaultLog | None = None,
        names: Sequence[str] = (),
    ) -> list[int]:
        """Normalise scores by the rule's own formula; they lie between `least` and `largest`.

        `log` receives errors, with the nodes `names` on which they happen.
        """
        assert self._by is not None and self.rule.normalize.by is not None
        by_span = self.rule.normalize.by.span
        value_slot, min_slot, max_slot = self._range
        frame[min_slot], frame[max_slot] = least, largest
        meter = frame[-1] = self._share.meter_over(frame[self._cluster])
        found: list[int] = []
        for at, value in enumerate(values):
            frame[value_slot], meter.left = value, meter.limit
            try:
                result = self._by(frame)
                if not math.isfinite(result):
                    raise EvalError(f"the normalised score is {result}")
                found.append(whole(float(result)))
            except EvalError as error:
                self._failed(error, by_span, log, names[at] if names else "")
                found.append(0)
        return found

    def _failed(
        self, error: EvalError, span: Span, log: FaultLog | None, node: str, count: int = 1
    ) -> int | float:
        """Return the mark of no score; add the error to `log`, and remember that there was one."""
        if self._aborts or isinstance(error, BudgetError):
            rule = self.rule.name
            fault = fault_of(rule, error, span)
            raise ScoreError(error_text(rule, error, span), fault.on([node]) if node else fault)
        self._erred.add(self.rule.qualified)
        if log is not None:
            log.add(error, span, node, count)
        return self._nothing
