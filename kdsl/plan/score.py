"""Scores as programs: a raw value for every node, and what makes it 0..100."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from kdsl.base.errors import KdslError
from kdsl.base.span import Span
from kdsl.check.model import CheckedScore
from kdsl.check.types import DOUBLE
from kdsl.lang.tree import ErrorAction
from kdsl.plan.normalize import Scores, normalize, truncate
from kdsl.plan.scalar import UNSET, Frame
from kdsl.plan.scalar.meter import NODE_STEPS, POD_STEPS, Meter
from kdsl.plan.scope import Functions, RuleScope, holds
from kdsl.plan.values import INT_MIN, EvalError, Value
from kdsl.plan.verdicts import error_text

FAILED_INT = INT_MIN
"""What stands for a failed score among ints; among doubles it is NaN, which is no score."""


class ScoreError(KdslError):
    """A score with `on error abort` failed: the attempt ends."""


class ScoreProgram:
    """A compiled score. `dtype` is that of its raw scores, int64 or float64."""

    def __init__(self, rule: CheckedScore, functions: Functions) -> None:
        self.rule = rule
        self._is_double = rule.value.type == DOUBLE
        self.dtype: np.dtype[np.int64 | np.float64] = np.dtype(np.float64 if self._is_double else np.int64)
        self._aborts = rule.on_error is not None and rule.on_error.action is ErrorAction.ABORT
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions)
        self._pod, self._node, self._cluster = map(scope.slot_of, ("pod", "node", "cluster"))
        self._range = tuple(map(scope.slot_of, ("value", "min", "max")))
        self._resets = [slot for slot in map(scope.let, rule.lets) if slot is not None]
        self._applies = [scope.compile(condition) for condition in rule.applies]
        self._value = scope.compile(rule.value)
        self._by = None if rule.normalize.by is None else scope.compile(rule.normalize.by)
        self._blank = scope.new_frame()

    def begin(self, pod: Value, cluster: Value) -> Frame:
        """Return the frame of one pod."""
        frame = self._blank.copy()
        frame[self._pod], frame[self._cluster], frame[-1] = pod, cluster, Meter(POD_STEPS)
        return frame

    def applies(self, frame: Frame) -> bool:
        """Tell whether the score takes part for this pod."""
        return all(holds(condition, frame) for condition in self._applies)

    def judge(self, frame: Frame, nodes: Iterable[Value]) -> Iterator[int | float]:
        """Yield the raw score of each node, `FAILED_INT` or NaN where it failed. ScoreError under `on error
        abort`.
        """
        value, resets, node_slot = self._value, self._resets, self._node
        meter = frame[-1] = Meter(NODE_STEPS)
        for node in nodes:
            frame[node_slot], meter.left = node, NODE_STEPS
            for slot in resets:
                frame[slot] = UNSET
            try:
                raw = value(frame)
                if raw == FAILED_INT or (self._is_double and not math.isfinite(raw)):
                    raise EvalError(f"the score is {raw}")
                yield raw
            except EvalError as error:
                yield self._failed(error, self.rule.value.span)

    def failed(self, raw: Scores) -> NDArray[np.bool_]:
        """Tell which raw scores stand for a failure."""
        return np.isnan(raw) if self._is_double else raw == FAILED_INT

    def normalized(self, frame: Frame, raw: Scores) -> NDArray[np.int64]:
        """Return the scores in 0..100 if the rule keeps to that; raw scores without failures."""
        if self._by is None:
            return normalize(self.rule.normalize.kind, raw)
        return truncate(np.array(list(self._normalized_by(frame, raw)), dtype=np.float64))

    def _normalized_by(self, frame: Frame, raw: Scores) -> Iterator[int | float]:
        assert self._by is not None and self.rule.normalize.by is not None
        by_span = self.rule.normalize.by.span
        value_slot, min_slot, max_slot = self._range
        values = raw.tolist()
        if values:
            frame[min_slot], frame[max_slot] = min(values), max(values)
        for value in values:
            frame[value_slot], frame[-1] = value, Meter(NODE_STEPS)
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
        return math.nan if self._is_double else FAILED_INT
