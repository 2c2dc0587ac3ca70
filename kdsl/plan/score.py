"""Scores as programs: a raw value for every node, and what makes it 0..100."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from kdsl.base.errors import KdslError
from kdsl.base.span import Span
from kdsl.check.model import CheckedScore
from kdsl.check.types import DOUBLE
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.snapshot import Snapshot
from kdsl.lang.tree import ErrorAction
from kdsl.plan.columns.batch import Batch, batch_of, is_worth_columns
from kdsl.plan.columns.column import Column, encoded
from kdsl.plan.columns.compiler import ColumnCompiler
from kdsl.plan.columns.programs import ColumnScore
from kdsl.plan.columns.rule import Note
from kdsl.plan.nodelist import NodeList
from kdsl.plan.normalize import Scores, normalize, truncate
from kdsl.plan.scalar import UNSET, Frame
from kdsl.plan.scalar.meter import Meter
from kdsl.plan.scope import Functions, RuleScope, holds
from kdsl.plan.steady import KeptFrames
from kdsl.plan.values import INT_MIN, EvalError, Value
from kdsl.plan.verdicts import error_text
from kdsl.plan.views import ClusterView

NO_SCORE_INT = INT_MIN
"""What stands among ints for a node without a score, as it failed or is ignored; among doubles it is NaN."""


class ScoreError(KdslError):
    """A score with `on error abort` failed: the attempt ends."""


class ScoreProgram:
    """A compiled score. `dtype` is that of its raw scores, int64 or float64."""

    def __init__(self, rule: CheckedScore, functions: Functions) -> None:
        self.rule = rule
        self._steps = functions.steps
        self._is_double = rule.value.type == DOUBLE
        self.dtype: np.dtype[np.int64 | np.float64] = np.dtype(np.float64 if self._is_double else np.int64)
        self._nothing: int | float = math.nan if self._is_double else NO_SCORE_INT
        self._aborts = rule.on_error is not None and rule.on_error.action is ErrorAction.ABORT
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions)
        self._pod, self._node, self._cluster = map(scope.slot_of, ("pod", "node", "cluster"))
        self._feasible = scope.slot_of("feasible")
        self._reads_feasible = "feasible" in rule.reads
        self._applies_to_feasible = any("feasible" in each.reads for each in rule.applies)
        self._range = tuple(map(scope.slot_of, ("value", "min", "max")))
        self._resets = [slot for slot in map(scope.let, rule.lets) if slot is not None]
        self._applies = [scope.compile(condition) for condition in rule.applies]
        self._ignores = [scope.compile(condition) for condition in rule.ignores]
        self._value = scope.compile(rule.value)
        self._by = None if rule.normalize.by is None else scope.compile(rule.normalize.by)
        self.notes: list[Note] = []
        self._columns = None if functions.probe is not None else self._over_columns(scope, functions)
        self._blank = scope.new_frame()
        self._passing = (*scope.passing, *self._resets, self._feasible)
        self._kept: KeptFrames | None = None

    def keep_frames(
        self, kind_of: Callable[[PodInfo], Hashable], epoch_of: Callable[[Snapshot], Hashable]
    ) -> None:
        """Let attempts of a kind of pod begin with what the one before found, see `KeptFrames`."""
        self._kept = KeptFrames(self._blank, self._pod, self._passing, kind_of, epoch_of)

    def _over_columns(self, scope: RuleScope, functions: Functions) -> ColumnScore:
        compiler = ColumnCompiler(scope, functions, self._node, self._resets)
        self.notes = compiler.notes
        ignores = [compiler.compile(scope.optimised(condition)) for condition in self.rule.ignores]
        return ColumnScore(compiler.compile(scope.optimised(self.rule.value)), ignores, self._nothing)

    def begin(self, pod: Value, cluster: Value, feasible: NodeSet) -> Frame:
        """Return the frame of one pod over the snapshot that `cluster` views."""
        # Who watches what is asked of the cluster is to see all of it.
        if self._kept is None or cluster.__class__ is not ClusterView or cluster.snapshot.is_overlay:
            frame = self._blank.copy()
            frame[self._pod] = pod
        else:
            frame = self._kept.begin(pod, cluster.snapshot)
        frame[self._cluster], frame[-1] = cluster, Meter(self._steps.pod)
        if self._applies_to_feasible:
            self.fill(frame, feasible)
        return frame

    def is_for(self, frame: Frame) -> bool:
        """Tell whether all conditions of `applies when` hold that do not depend on nodes."""
        return all(holds(condition, frame) for condition in self._applies)

    def fill(self, frame: Frame, feasible: NodeSet) -> None:
        """Let the frame know the feasible nodes, if the score reads them."""
        if self._reads_feasible and frame[self._feasible] is UNSET:
            frame[self._feasible] = NodeList(feasible)

    def applies(self, frame: Frame, feasible: NodeSet) -> bool:
        """Tell whether the score takes part for this pod. `feasible` is what the frame was begun with."""
        if not self.is_for(frame):
            return False
        self.fill(frame, feasible)
        return True

    def judge_nodes(self, frame: Frame, nodes: NodeSet) -> Scores:
        """Return the raw score of each node, as `judge` gives it, over columns where that pays."""

        def scalar(batch: Batch) -> Scores:
            return np.fromiter(self.judge(frame, batch.nodes()), self.dtype, len(batch))

        if self._columns is None or not is_worth_columns(nodes):
            return np.fromiter(self.judge(frame, nodes.nodes()), self.dtype, len(nodes))
        frame[-1] = Meter(self._steps.node)
        return self._columns.judge(batch_of(nodes, frame), scalar)

    def judge(self, frame: Frame, nodes: Iterable[Value]) -> Iterator[int | float]:
        """Yield the raw score of each node, `NO_SCORE_INT` or NaN where it failed or the node is ignored.
        ScoreError under `on error abort`.
        """
        value, resets, node_slot = self._value, self._resets, self._node
        meter = frame[-1] = Meter(self._steps.node)
        for node in nodes:
            frame[node_slot], meter.left = node, self._steps.node
            for slot in resets:
                frame[slot] = UNSET
            if self._ignores and self._is_ignored(frame):
                yield self._nothing
                continue
            try:
                raw = value(frame)
                if not math.isfinite(raw) if self._is_double else raw == NO_SCORE_INT:
                    raise EvalError(f"the score is {raw}")
                yield raw
            except EvalError as error:
                yield self._failed(error, self.rule.value.span)

    def _is_ignored(self, frame: Frame) -> bool:
        """Tell whether some `ignore when` holds; one that fails does not."""
        for condition in self._ignores:
            try:
                if condition(frame):
                    return True
            except EvalError:
                continue
        return False

    def missing(self, raw: Scores) -> NDArray[np.bool_]:
        """Tell which raw scores stand for none: the node failed or is ignored."""
        return np.isnan(raw) if self._is_double else raw == NO_SCORE_INT

    def normalized(self, frame: Frame, raw: Scores) -> NDArray[np.int64]:
        """Return the scores in 0..100 if the rule keeps to that; no raw score may be missing."""
        if self._by is None:
            return normalize(self.rule.normalize.kind, raw)
        if not len(raw):
            return raw.astype(np.int64)
        values = raw.tolist()
        min_slot, max_slot = self._range[1:]
        frame[min_slot], frame[max_slot] = min(values), max(values)
        # Equal scores are normalised to equal ones.
        distinct = encoded(Column(raw))
        normalized = np.array(list(self._normalized_by(frame, distinct.values)), np.float64)
        scores: NDArray[np.int64] = truncate(normalized)[distinct.codes]
        return scores

    def _normalized_by(self, frame: Frame, values: Iterable[Value]) -> Iterator[int | float]:
        assert self._by is not None and self.rule.normalize.by is not None
        by_span = self.rule.normalize.by.span
        value_slot = self._range[0]
        meter = frame[-1] = Meter(self._steps.node)
        for value in values:
            frame[value_slot], meter.left = value, self._steps.node
            try:
                result = self._by(frame)
                if not math.isfinite(result):
                    raise EvalError(f"the normalised score is {result}")
                yield result
            except EvalError as error:
                self._failed(error, by_span)
                yield 0

    def _failed(self, error: EvalError, span: Span) -> int | float:
        if self._aborts:
            raise ScoreError(error_text(self.rule.name, error, span))
        return self._nothing
