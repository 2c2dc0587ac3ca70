"""The `sample` of a profile as a function: how many feasible nodes are enough."""

from __future__ import annotations

from typing import Final

from kdsl.base.bounded_dict import BoundedDict
from kdsl.check.model.rule_set import CheckedSample
from kdsl.eval.values import EvalError
from kdsl.hooks.faults import Fault
from kdsl.plan.compile.failures import fault_of
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope

MAX_KNOWN: Final = 1024
"""So many answers are kept: the number of candidates changes with the cluster and with PreFilter."""


class SampleProgram:
    """Answers by the number of candidates and percentageOfNodesToScore, and keeps the answers.

    Where the expression has no value, all feasible nodes are found, and the answer has a fault.
    """

    def __init__(self, sample: CheckedSample, functions: CompiledFunctions) -> None:
        scope = RuleScope(sample.scope, (), sample.slots, functions)
        self._count = scope.compile(sample.count)
        self._span = sample.count.span
        self._frame = scope.frames()
        self._known = BoundedDict[tuple[int, int], tuple[int, tuple[Fault, ...]]](MAX_KNOWN)

    def __call__(self, nodes: int, percentage: int) -> tuple[int, tuple[Fault, ...]]:
        """Return how many of `nodes` candidates are enough if they are feasible, and the errors."""
        known = self._known.get((nodes, percentage))
        if known is None:
            known = self._known.keep((nodes, percentage), self._answer(nodes, percentage))
        return known

    def _answer(self, nodes: int, percentage: int) -> tuple[int, tuple[Fault, ...]]:
        try:
            count = int(self._count(self._frame(nodes=nodes, percentageOfNodesToScore=percentage)))
            return min(max(1, count), nodes), ()
        except EvalError as error:
            return nodes, (fault_of("sample", error, self._span),)
