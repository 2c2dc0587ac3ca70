"""Preemptions as programs: who may have pods removed, which pods, and which node is best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdsl.check.model import CheckedPreemption
from kdsl.cluster.pod import PodInfo
from kdsl.hooks.specs import Candidate, hookimpl
from kdsl.hooks.status import Code, Status
from kdsl.plan.scalar import UNSET, Closure, Frame
from kdsl.plan.scalar.meter import Meter
from kdsl.plan.scope import Functions, RuleScope
from kdsl.plan.sort_keys import SortKeys
from kdsl.plan.template import compile_template, text_in
from kdsl.plan.values import EvalError, Value
from kdsl.plan.verdicts import error_text


class PreemptionPlugin:
    """A preemption. `key` is unique among the plugins of all profiles, `name` what decisions show.

    Where the rule fails it removes nobody: an error makes a pod not eligible, or no victim.
    """

    def __init__(self, rule: CheckedPreemption, key: str, functions: Functions) -> None:
        self.key = key
        self.name = rule.name
        self.site = rule.span.site
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions)
        self._steps = functions.steps
        self._slots = {name: scope.slot_of(name) for name in rule.scope}
        self._resets = [slot for slot in map(scope.let, rule.lets) if slot is not None]
        self._eligible = [
            (scope.compile(each.condition), compile_template(each.reason, scope), each)
            for each in rule.eligible
        ]
        self._victim = scope.compile(rule.victim)
        self._importance = SortKeys(rule.order, scope)
        self._count: Closure | None = None if rule.candidates is None else scope.compile(rule.candidates)
        self._rank = SortKeys(rule.choose, scope)
        self._blank = scope.new_frame()

    @hookimpl
    def may_preempt(self, pod: PodInfo, on_nominated_node: Sequence[PodInfo]) -> Status | None:
        """Refuse the pod with the reason of the first `eligible when` that does not hold, or fails."""
        frame = self._frame(pod, onNominatedNode=on_nominated_node)
        for condition, reason, eligible in self._eligible:
            try:
                if condition(frame):
                    continue
                text = text_in(reason, frame)
            except EvalError as error:
                text = error_text(self.name, error, eligible.condition.span)
            return Status(Code.UNSCHEDULABLE, (text,), sites=(eligible.span.site,))
        return None

    @hookimpl
    def find_victims(self, pod: PodInfo, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """Return the victims in the order of `order by`; those that are equal keep theirs."""
        found = [
            (self._importance.values(frame), victim) for victim in pods if (frame := self._of(pod, victim))
        ]
        return [victim for _, victim in sorted(found, key=lambda each: each[0])]

    @hookimpl
    def enough_candidates(self, pod: PodInfo, potential_nodes: int) -> int:
        """Return what `candidates` says, at least 1; all there are where it says nothing, or fails."""
        if self._count is None:
            return potential_nodes
        try:
            return max(1, int(self._count(self._frame(pod, potentialNodes=potential_nodes))))
        except EvalError:
            return potential_nodes

    @hookimpl
    def rank_candidate(self, pod: PodInfo, candidate: Candidate) -> Any:
        """Return the keys of `choose by`."""
        return self._rank.values(self._frame(pod, candidate=candidate))

    def _of(self, pod: PodInfo, victim: PodInfo) -> Frame | None:
        """Return the frame of a pod that may be removed, None where it may not."""
        frame = self._frame(pod, victim=victim)
        try:
            return frame if self._victim(frame) else None
        except EvalError:
            return None

    def _frame(self, pod: PodInfo, **values: Value) -> Frame:
        frame = self._blank.copy()
        frame[-1] = Meter(self._steps.pod)
        for slot in self._resets:
            frame[slot] = UNSET
        frame[self._slots["pod"]] = pod
        for name, value in values.items():
            frame[self._slots[name]] = value
        return frame
