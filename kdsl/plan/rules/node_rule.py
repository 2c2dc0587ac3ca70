"""The common part of predicates and scores of a profile: a rule whose answers are about nodes."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct

from kdsl.check.model.rule_set import CheckedPredicate, CheckedScore
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.plan.columns.programs import ColumnPredicate, ColumnScore
from kdsl.plan.columns.scope import ScalarPart
from kdsl.plan.columns.tape import RuleTapes, Tapes
from kdsl.plan.compile.frames import Frames
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.reads.dependencies import Dependencies, expressions_of_rule, reads_of
from kdsl.plan.reads.signature_reads import signature_reads

_TRANSIENT = frozenset({
    "cluster.pods", "cluster.static", "cluster.images", "cluster.nodes", "node.static", "node.usage",
    "feasible",
})  # fmt: skip
"""The reads that may change between two attempts."""
R = TypeVar("R", CheckedPredicate, CheckedScore)


class RuleAttempt(Struct, frozen=True, eq=False):
    """The state of a rule for one pod over one snapshot. `spare` are unused frames of a predicate with the
    values that were computed for the pod.
    """

    snapshot: Snapshot
    frame: Frame
    spare: list[Frame] = []


class NodeRule(Generic[R]):
    """A compiled rule about nodes; frames hold the values for one pod over one snapshot. `key` is unique
    among the plugins of all profiles, `name` is shown in decisions.

    `columns` is the form over many nodes, if any; `scalar_parts` are the parts of it that the scalar back end
    evaluates.
    """

    dtype: np.dtype[Any]
    """The type of its answers for nodes."""
    decides_early: bool
    """Whether its early answer may not be None."""
    can_prefetch: bool
    """Whether more nodes cost little and change nothing."""
    columns: ColumnPredicate | ColumnScore | None
    frames: Frames

    def __init__(self, rule: R, functions: CompiledFunctions, key: str) -> None:
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
        self.scalar_parts: list[ScalarPart] = []
        self._tapes: RuleTapes | None = None

    def _new_scope(self, functions: CompiledFunctions) -> RuleScope:
        rule = self.rule
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions, (type(rule), rule.qualified))
        self._share = scope.share
        self._node, self._cluster = map(scope.slot_of, ("node", "cluster"))
        return scope

    @property
    def is_columnar(self) -> bool:
        """Whether all of the rule runs over columns."""
        return self.columns is not None and not self.scalar_parts

    @property
    def whole_tapes(self) -> Tapes[Any] | None:
        """The tapes of all statements that are decided per node, if they have some."""
        return None if self._tapes is None else self._tapes.whole

    def meter_alone(self) -> Meter:
        """Return the meter of the rule on a node without a cluster."""
        return self._share.meter_over(None)

    def keep_frames(self) -> None:
        """Keep frames by signature, unless no two pods share one."""
        dependencies = Dependencies.of(self.reads - _TRANSIENT)
        if dependencies is not None:
            self.frames.keep(dependencies)
