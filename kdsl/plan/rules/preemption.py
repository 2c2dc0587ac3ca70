"""Preemptions as programs: who may have pods removed, which pods, and which node is best."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedPreemption
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import FieldOf, TypedExpr, Var
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.scalar import UNSET, Closure, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value
from kdsl.eval.views import attribute_of
from kdsl.hooks.specs import Candidate, hookimpl
from kdsl.hooks.status import Code, Status
from kdsl.plan.compile.noting import Noted
from kdsl.plan.compile.scope import Functions, RuleScope
from kdsl.plan.compile.sort_keys import SortKeys
from kdsl.plan.compile.template import compile_template, text_in
from kdsl.plan.compile.verdicts import error_text

_PLAIN: Final = frozenset(("bool", "int", "string", "timestamp", "duration"))
"""Types of fields that tell all that an expression can see of them by being equal."""
_NOT_PLAIN: Final = ""


class PreemptionPlugin:
    """A preemption. `key` is unique among the plugins of all profiles, `name` what decisions show.

    `looks_at` are the attributes of pods in which those are equal that `victim when` cannot tell apart.

    Where the rule fails it removes nobody: an error makes a pod not eligible, or no victim. `noted` has the
    errors until a decision takes them.
    """

    def __init__(self, rule: CheckedPreemption, key: str, functions: Functions) -> None:
        self.key = key
        self.name = rule.name
        self.site = rule.span.site
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions, rule=(type(rule), rule.qualified))
        self.noted = Noted(rule.name)
        self._qualified, self._erred = rule.qualified, functions.erred
        self._steps = functions.steps
        self._slots = {name: scope.slot_of(name) for name in rule.scope}
        self._resets = [slot for slot in map(scope.let, rule.lets) if slot is not None]
        self._eligible = [
            (scope.compile(each.condition), compile_template(each.reason, scope), each)
            for each in rule.eligible
        ]
        self._victim, self._victim_span = scope.compile(rule.victim), rule.victim.span
        self.looks_at = _fields_of_victims(rule)
        self._look: Callable[[PodInfo], Hashable] | None = (
            attrgetter(*self.looks_at) if self.looks_at else None
        )
        # Of the pod asked about last: which looks of pods may be removed for it.
        self._known: tuple[PodInfo | None, dict[Hashable, bool]] = (None, {})
        self._importance = SortKeys(rule.order, scope)
        self._count: Closure | None = None if rule.candidates is None else scope.compile(rule.candidates)
        self._count_span = rule.span if rule.candidates is None else rule.candidates.span
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
                self._note(error, eligible.condition.span)
                text = error_text(self.name, error, eligible.condition.span)
            return Status(Code.UNSCHEDULABLE, (text,), sites=(eligible.span.site,))
        return None

    @hookimpl
    def find_victims(self, pod: PodInfo, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """Return the victims in the order of `order by`; those that are equal keep theirs."""
        latest, known = self._known
        if latest is not pod:
            known = {}
            self._known = (pod, known)
        look, found = self._look, []
        for victim in pods:
            seen = None if look is None else look(victim)
            goes = None if seen is None else known.get(seen)
            if goes is None:
                goes = self._goes(pod, victim)
                # What failed is asked again: the next attempt has to tell of it as well.
                if seen is not None and goes is not None:
                    known[seen] = goes
            if goes:
                found.append(victim)
        if len(found) > 1:
            keys = [self._importance.values(self._frame(pod, victim=victim), self._note) for victim in found]
            found = [found[at] for at in sorted(range(len(found)), key=keys.__getitem__)]
        return found

    @hookimpl
    def enough_candidates(self, pod: PodInfo, potential_nodes: int) -> int:
        """Return what `candidates` says, at least 1; all there are where it says nothing, or fails."""
        if self._count is None:
            return potential_nodes
        try:
            return max(1, int(self._count(self._frame(pod, potentialNodes=potential_nodes))))
        except EvalError as error:
            self._note(error, self._count_span)
            return potential_nodes

    @hookimpl
    def rank_candidate(self, pod: PodInfo, candidate: Candidate) -> Any:
        """Return the keys of `choose by`."""
        return self._rank.values(self._frame(pod, candidate=candidate), self._note)

    def _note(self, error: EvalError, span: Span) -> None:
        self._erred.add(self._qualified)
        self.noted.add(error, span)

    def _goes(self, pod: PodInfo, victim: PodInfo) -> bool | None:
        """Tell whether a pod may be removed; None where that fails, so that it may not."""
        try:
            return bool(self._victim(self._frame(pod, victim=victim)))
        except EvalError as error:
            self._note(error, self._victim_span)
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


def _fields_of_victims(rule: CheckedPreemption) -> tuple[str, ...]:
    """Return the attributes that are all `victim when` can see of a victim; none where that is not known.

    Pods that look alike here share an answer: most of a cluster has one of a few priorities.
    """
    slot = rule.scope["victim"].slot
    values = (rule.victim, *(each.value for each in rule.lets))
    fields = {field for value in values for field in _fields_of(value, slot)}
    return () if _NOT_PLAIN in fields else tuple(sorted(map(attribute_of, fields)))


def _fields_of(expr: TypedExpr, slot: int) -> Iterator[str]:
    """Yield the plain fields that are read of a variable, `_NOT_PLAIN` for any other use of it."""
    match expr:
        case FieldOf(operand=Var(slot=used), field=name) if used == slot:
            yield name if expr.type.name in _PLAIN else _NOT_PLAIN
        case Var(slot=used) if used == slot:
            yield _NOT_PLAIN
        case _:
            for child in children(expr):
                yield from _fields_of(child, slot)
