"""Preemptions as programs: the pods that may preempt, the victims, and the best node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.bounded_dict import BoundedDict
from kdsl.base.by_identity import ByIdentity
from kdsl.base.events import EventPattern, Resource
from kdsl.base.span import Span
from kdsl.check.analyses.cures import preemption_cures
from kdsl.check.model.rule_set import CheckedPreemption
from kdsl.check.model.typed import FieldOf
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cluster.snapshot.fact_columns import ABSENT, FactColumn, FactColumns
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.ir import fields_of
from kdsl.eval.scalar import Closure
from kdsl.eval.values import EvalError
from kdsl.eval.views import attribute_of
from kdsl.hooks.specs import Candidate, hookimpl
from kdsl.hooks.status import Code, Status
from kdsl.plan.compile.failures import FaultLog, error_text
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.compile.sort_keys import SortKeys, number_fields
from kdsl.plan.compile.template import compile_template, text_in
from kdsl.plan.rules.candidates import PLAIN, CandidateChoice

_UNKNOWN: Final = -1
_MAX_KEYS: Final = 64
_MOST_ASKED: Final = 100
"""The most nodes that are asked before the search, the first ones: the search visits most of them anyway."""


class _KnownVictims:
    """The nodes that may have victims, by the code of the fields of their pods; for each preemption, and for
    each set of values that it reads of the pod.
    """

    def __init__(self, column: FactColumn) -> None:
        self._by_key: BoundedDict[Hashable, NDArray[np.int8]] = BoundedDict(_MAX_KEYS)

    def by_code(self, *key: Hashable, codes: int) -> NDArray[np.int8]:
        """Return the answers for so many codes, to be changed: 1, 0 or `_UNKNOWN`."""
        known = self._by_key.get(key)
        if known is None or len(known) < codes:
            answers = np.full(2 * codes, _UNKNOWN, np.int8)
            if known is not None:
                answers[: len(known)] = known
            known = self._by_key.keep(key, answers)
        return known


class PreemptionPlugin:
    """A preemption. `key` is unique among the plugins of all profiles, `name` is shown in decisions.

    Pods with equal `victim_fields` are equal for `victim when`: most pods of a cluster have one of a few
    priorities.

    If the rule fails, it removes no pod: an error makes a pod not eligible, or no victim. `log` holds the
    errors until a decision takes them.
    """

    def __init__(self, rule: CheckedPreemption, key: str, functions: CompiledFunctions) -> None:
        self.key = key
        self.name = rule.name
        self.site = rule.span.site
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions, rule=(type(rule), rule.qualified))
        self.log = FaultLog(rule.name)
        self._qualified, self._erred = rule.qualified, functions.erred
        for let in rule.lets:
            scope.let(let)
        self._eligible = [
            (scope.compile(each.condition), compile_template(each.reason, scope), each)
            for each in rule.eligible
        ]
        self._cures = preemption_cures(rule, functions.fns)
        self._victim, self._victim_span = scope.compile(rule.victim), rule.victim.span
        self.victim_fields = _plain_fields(rule, rule.scope["victim"].slot)
        self._victim_key: Callable[[PodInfo], Hashable] | None = (
            attrgetter(*self.victim_fields) if self.victim_fields else None
        )
        of_pods = _plain_fields(rule, rule.scope["pod"].slot)
        self._pod_key: Callable[[PodInfo], Hashable] | None = attrgetter(*of_pods) if of_pods else None
        # The key of kept answers, which may outlive the rule: after a reload the changed rule has its `key`.
        self._rule = object()
        # For the latest pod: whether another pod is its victim, by the fields of the other pod.
        self._known = ByIdentity[PodInfo, dict[Hashable, bool | None]](lambda pod: {}, 1)
        self._importance = SortKeys(rule.order, scope)
        # A probe observes evaluations, and fields that are read need none.
        fields = [] if functions.probe is not None else number_fields(rule.order, scope.slot_of("victim"))
        # Sorting is stable: the first key is the last to sort by.
        self._numbers = [(attrgetter(name), sign < 0) for name, sign in reversed(fields)]
        self._count: Closure | None = None if rule.candidates is None else scope.compile(rule.candidates)
        self._count_span = rule.span if rule.candidates is None else rule.candidates.span
        self._choice = CandidateChoice(rule, scope, is_probed=functions.probe is not None)
        self._frame = scope.frames()

    @hookimpl
    def may_preempt(self, pod: PodInfo, on_nominated_node: Sequence[PodInfo]) -> Status | None:
        """Refuse the pod with the reason of the first `eligible when` that is false, or fails."""
        frame = self._frame(pod=pod, onNominatedNode=on_nominated_node)
        for condition, reason, eligible in self._eligible:
            try:
                if condition(frame):
                    continue
                text = text_in(reason, frame)
            except EvalError as error:
                self._report(error, eligible.condition.span)
                text = error_text(self.name, error, eligible.condition.span)
            return Status(Code.UNSCHEDULABLE, (text,), sites=(eligible.span.site,))
        return None

    @hookimpl
    def find_victims(self, pod: PodInfo, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """Return the victims in the order of `order by`; those that are equal keep theirs."""
        found = self._find(pod, pods, self._known.of(pod))
        if len(found) < 2:
            return found
        if self._numbers:
            for read, is_descending in self._numbers:
                found.sort(key=read, reverse=is_descending)
        else:
            keys = [
                self._importance.values(self._frame(pod=pod, victim=victim), self._report) for victim in found
            ]
            found = [found[at] for at in sorted(range(len(found)), key=keys.__getitem__)]
        return found

    @hookimpl
    def may_have_victims(self, pod: PodInfo, nodes: NodeSet) -> NDArray[np.bool_]:
        """Return for each node whether it may have a victim, or a pod for which the rule fails. One node
        answers for all whose pods have equal fields; those with many different pods are not asked.
        """
        live = nodes.snapshot.live
        if self._victim_key is None or self._pod_key is None or nodes.snapshot is not live:
            return np.ones(len(nodes), np.bool_)
        column = FactColumns.of(live).of_pods(self.victim_fields)
        codes = column.codes.take(nodes.rows)
        answers = column.kept[_KnownVictims].by_code(self._rule, self._pod_key(pod), codes=len(column.values))
        is_new = (answers.take(codes) == _UNKNOWN) & (codes != ABSENT)
        if is_new.any():
            known = self._known.of(pod)
            firsts = nodes.take(is_new).by_numbers(codes[is_new])[0].rows[:_MOST_ASKED]
            for row, node in zip(firsts.tolist(), live.infos(firsts), strict=True):
                found = [answer for answer, _ in self._asked(pod, node.pods, known, reports=False)]
                # An error stays unknown, as in `_asked`.
                answers[column.codes.item(row)] = _UNKNOWN if None in found else any(found)
        mask: NDArray[np.bool_] = answers.take(codes) != 0
        return mask

    def evictable(self, pod: PodInfo, pods: Sequence[PodInfo]) -> list[PodInfo]:
        """Return the possible victims in any order, outside of an attempt: errors are not recorded."""
        return self._find(pod, pods, {}, False)

    def _find(
        self, pod: PodInfo, pods: Sequence[PodInfo], known: dict[Hashable, bool | None], reports: bool = True
    ) -> list[PodInfo]:
        """Return the victims in any order: pods with equal fields are asked about once, see `known`."""
        return [victim for answer, victim in self._asked(pod, pods, known, reports) if answer]

    def _asked(
        self, pod: PodInfo, pods: Sequence[PodInfo], known: dict[Hashable, bool | None], reports: bool
    ) -> list[tuple[bool | None, PodInfo]]:
        """Return each pod and whether it is a victim, None if that fails."""
        if self._victim_key is None:
            return [(self._is_victim(pod, victim, reports), victim) for victim in pods]
        keys = list(map(self._victim_key, pods))
        for key, victim in zip(keys, pods, strict=True):
            # An error is not kept, so that the next attempt reports it as well.
            if key not in known or known[key] is None:
                known[key] = self._is_victim(pod, victim, reports)
        return list(zip(map(known.__getitem__, keys), pods, strict=True))

    @hookimpl
    def events(self) -> tuple[EventPattern, ...]:
        """Return the events that can let a pod preempt, or make other pods its victims."""
        return self._cures

    @hookimpl
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether an event may let `pod` make room: of pods on nodes, one that has become its
        victim.
        """
        if event.resource is not Resource.ASSIGNED_POD:
            return True
        before, after = event.before, event.after
        if not (isinstance(before, PodInfo) and isinstance(after, PodInfo)):
            return False
        return bool(self._is_victim(pod, after, False)) and not self._is_victim(pod, before, False)

    @hookimpl
    def hint_signature(self, pod: PodInfo) -> Hashable:
        """Return the values that `victim when` reads of a pod that preempts; None if they are unknown."""
        return None if self._pod_key is None else self._pod_key(pod)

    @hookimpl
    def enough_candidates(self, pod: PodInfo, potential_nodes: int) -> int:
        """Return the value of `candidates`, at least 1; all nodes if it is absent, or fails."""
        if self._count is None:
            return potential_nodes
        try:
            return max(1, int(self._count(self._frame(pod=pod, potentialNodes=potential_nodes))))
        except EvalError as error:
            self._report(error, self._count_span)
            return potential_nodes

    @hookimpl
    def choose_candidate(self, pod: PodInfo, candidates: Sequence[Candidate]) -> Candidate:
        """Return the first candidate in the order of `choose by`."""
        frame = self._frame
        return self._choice.best(candidates, lambda each: frame(pod=pod, candidate=each), self._report)

    def _report(self, error: EvalError, span: Span) -> None:
        self._erred.add(self._qualified)
        self.log.add(error, span)

    def _is_victim(self, pod: PodInfo, victim: PodInfo, reports: bool) -> bool | None:
        """Return whether a pod is a victim; None if the rule fails, and the pod is no victim then."""
        try:
            return bool(self._victim(self._frame(pod=pod, victim=victim)))
        except EvalError as error:
            if reports:
                self._report(error, self._victim_span)
            return None


def _plain_fields(rule: CheckedPreemption, slot: int) -> tuple[str, ...]:
    """Return the attributes that `victim when` reads of the pod of a slot; none if unknown."""
    found: set[str] = set()
    for value in (rule.victim, *(each.value for each in rule.lets)):
        read = fields_of(value, slot)
        if read is None or not all(isinstance(each, FieldOf) and each.type.name in PLAIN for each in read):
            return ()
        found.update([attribute_of(each.field) for each in read])
    return tuple(sorted(found))
