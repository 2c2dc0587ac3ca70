"""A predicate, or one of its tightenings. PreFilter decides what does not depend on the node."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.span import Span
from kdsl.check.analyses.cures import predicate_cures
from kdsl.check.model.rule_set import (
    CheckedLet,
    CheckedNarrow,
    CheckedPredicate,
)
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Optional, Value
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.lang.choices import RejectionCode
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.batch import batch_of
from kdsl.plan.columns.programs import ColumnPredicate, column_predicate
from kdsl.plan.columns.scope import RuleColumns
from kdsl.plan.columns.tape import is_faster_over_columns
from kdsl.plan.compile.failures import Failure, FaultLog, StatusNumbers, compile_on_error, status_of
from kdsl.plan.compile.frames import Frames, PodFrames
from kdsl.plan.compile.scope import CompiledFunctions, Conditions, RuleScope
from kdsl.plan.compile.statements import CODES, BlockCompiler, Run
from kdsl.plan.compile.template import compile_template, text_in
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.rules.counted_pods import CountedPods
from kdsl.plan.rules.node_rule import NodeRule, RuleAttempt
from kdsl.plan.rules.pre_filter import narrows_in_pre_filter, split_body
from kdsl.plan.rules.what_ifs import statuses_of_what_ifs

SKIP = Status(Code.SKIP)
IDS: Final = np.dtype(np.int32)
"""The type of status numbers."""


class PredicateRule(NodeRule[CheckedPredicate]):
    """A predicate without its tightenings, or one of these.

    If conditions of `applies when` read the node, the predicate is decided per node; other conditions are
    decided once, in `decide`, which lets every pod pass unless the rule `decides_early`.
    """

    dtype = IDS
    columns: ColumnPredicate | None

    def __init__(self, rule: CheckedPredicate, functions: CompiledFunctions, key: str = "") -> None:
        super().__init__(rule, functions, key)
        self.cures = predicate_cures(rule, functions.fns)
        self.dependencies = Dependencies.of(rule.reads)
        self._functions = functions
        self.live: LiveSnapshot | None = None
        """The live snapshot of the attempts, None before the first."""
        scope = self._new_scope(functions)
        # `let`s are lazy, and statements before the first `require` may use them.
        lets = [scope.let(each) for each in rule.body if isinstance(each, CheckedLet)]
        self._resets = [slot for slot in lets if slot is not None]
        self._applies, self._node_applies = (
            Conditions(
                [each for each in rule.applies if each.time.is_lasting is lasts],
                scope,
                rule.qualified,
                functions.erred,
            )
            for lasts in (True, False)
        )
        self._on_error = compile_on_error(rule.name, rule.on_error, scope)
        narrow = None if rule.narrow is None else _Narrow(rule.narrow, scope)
        is_early = narrows_in_pre_filter(rule)
        self._narrow, self._narrow_by_node = (narrow if is_early else None), (None if is_early else narrow)
        first, others = split_body(rule)
        self.decides_early = bool(self._applies or first or self._narrow)
        self._early = BlockCompiler(scope, rule.report_all, self._on_error)
        for require in first:
            self._early.add(require)
        self._block = BlockCompiler(scope, rule.report_all, self._on_error)
        if self._narrow_by_node is not None:
            self._block.add_step(self._stay_narrow(self._narrow_by_node))
        for statement in others:
            self._block.add(statement)
        self._node_statements = others
        self.applies_by_node = bool(self._node_applies)
        """Whether a condition of `applies when` reads the node."""
        self.columns = self._over_columns(scope, functions)
        self.can_prefetch = self.is_columnar
        self.frames = Frames(scope, self._resets, functions.steps.pod)
        self.begin = self.frames.begin
        """Returns the frame of one pod over the snapshot that a cluster view shows."""

    def _over_columns(self, scope: RuleScope, functions: CompiledFunctions) -> ColumnPredicate | None:
        """Compile the statements that are decided per node for many nodes at once, if they have that form."""
        if functions.probe is not None or self.applies_by_node or self._narrow_by_node is not None:
            return None
        columns = RuleColumns(scope, functions, self._node, self._resets)
        self.scalar_parts, self._tapes = columns.scalar_parts, columns.tapes
        return column_predicate(self.rule, self._node_statements, scope, columns, self._on_error)

    def decide(self, frame: Frame) -> Status | Narrowed | None:
        """Decide for all nodes: skip, reject the pod, narrow the candidates, or go on."""
        if not self._applies.hold(frame):
            return SKIP
        failures: list[Failure] = []
        if self._early.run(frame, failures):
            return status_of(tuple(failures))
        if self._narrow is None:
            return None
        try:
            names = self._narrow.names(frame)
        except EvalError as error:
            return status_of((self._on_error(error, self._narrow.span, frame),))
        if names is None:
            return None
        return Narrowed(names) if names else status_of((self._narrow.failure(frame),))

    def is_for(self, pod: PodInfo, view: ClusterView) -> bool:
        """Return whether the conditions of `applies when` that do not depend on nodes hold for a pod."""
        return self._applies.hold(self.begin(pod, view))

    def faults_of_pod(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Fault, ...]:
        """Return which conditions of `applies when` fail that do not depend on nodes: errors in PreFilter
        that are not in the answer.
        """
        log = FaultLog(self.name)
        self._applies.hold(self.begin(pod, ClusterView(snapshot)), log.add)
        return log.take()

    def faults_at(self, pod: PodInfo, nodes: NodeSet) -> tuple[Fault, ...]:
        """Return the errors in conditions of `applies when` that depend on nodes. Answers have the others,
        also those of a `let` that rejects a node.
        """
        frame = self.begin(pod, ClusterView(nodes.snapshot))
        log = FaultLog(self.name)
        errors: list[tuple[EvalError, Span]] = []

        def note(error: EvalError, span: Span) -> None:
            errors.append((error, span))

        if self.applies_by_node and self._applies.hold(frame):
            meter = frame[-1] = self._share.meter_over(frame[self._cluster])
            for node in nodes.nodes():
                frame[self._node], meter.left = node, meter.limit
                for slot in self._resets:
                    frame[slot] = UNSET
                errors.clear()
                failures: list[Failure] = []
                if self._node_applies.hold(frame, note) and errors:
                    self._block.run(frame, failures)
                answered = {failure.fault.site for failure in failures if failure.fault is not None}
                for error, span in errors:
                    if str(error.span or span) not in answered:
                        log.add(error, span, node.name)
        return log.take()

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | Narrowed | None:
        """Decide for all nodes, and keep the state of the attempt for `statuses`."""
        self.live = nodes.snapshot.live
        attempt = self._begin(pod, ClusterView(nodes.snapshot))
        state.values[self.key] = attempt
        return self.decide(attempt.frame)

    def statuses(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        """Return the status of each node, as a number in `numbers`; None if all pass."""
        attempt = state.values.get(self.key)
        if isinstance(attempt, RuleAttempt) and attempt.snapshot is nodes.snapshot:
            return self._statuses(attempt, nodes, numbers)

        # PreFilter had another snapshot (as in a what-if) or did not run, so its result may not hold.
        def ask(view: ClusterView, nodes: NodeSet) -> NDArray[np.int32] | None:
            return self._decided(self._begin(pod, view), nodes, numbers)

        if nodes.snapshot.what_ifs is not None:
            return statuses_of_what_ifs(nodes, ask)
        return ask(ClusterView(nodes.snapshot), nodes)

    def _decided(
        self, attempt: RuleAttempt, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        """Return the status of each node, for an attempt that no PreFilter began."""
        match self.decide(attempt.frame):
            case None:
                return self._statuses(attempt, nodes, numbers)
            case Narrowed(names=names):
                return self._statuses_within(names, attempt, nodes, numbers)
            case decided:
                if decided.code is Code.SKIP:
                    return None
                return np.full(len(nodes), numbers.number(decided), IDS)

    @cached_property
    def _counted(self) -> CountedPods | None:
        """The questions about placed pods, compiled for the first of them that could wake a pod."""
        counts = self.cures.counts
        return CountedPods(self.rule, counts, self._functions) if counts else None

    @cached_property
    def pod_reads(self) -> Dependencies | None:
        """The reads of a waiting pod in `may_count`; None if no two pods share them."""
        return Dependencies.of(frozenset(word for word in self.rule.reads if word.startswith("pod.")))

    def may_count(self, pod: PodInfo, before: object, after: object) -> bool:
        """Return whether a placed pod that comes, goes or changes may cure the rejection of `pod`."""
        counted, live = self._counted, self.live
        return counted is None or live is None or counted.may_help(pod, before, after, live)

    def statuses_of(
        self, pod: PodInfo, nodes: NodeSet, numbers: StatusNumbers, known: PodFrames | None
    ) -> NDArray[np.int32] | None:
        """Return the status of each node, as a number in `numbers`, for a pod that passed PreFilter; None if
        all pass.

        In a what-if the frame resumes, and replaces, the `known` one; for the live snapshot that is None.
        """
        view, frames = ClusterView(nodes.snapshot), self.frames
        self.live = nodes.snapshot.live
        if known is None:
            return self.statuses_in(frames.begin(pod, view), nodes, numbers)
        frame = frames.resume(pod, view, known)
        ids = self.statuses_in(frame, nodes, numbers)
        frames.leave(frame, known)
        return ids

    def _statuses(
        self, attempt: RuleAttempt, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32] | None:
        try:
            frame = attempt.spare.pop()
        except IndexError:  # other threads use them
            frame = attempt.frame.copy()
        ids = self.statuses_in(frame, nodes, numbers)
        attempt.spare.append(frame)
        return ids

    def _statuses_within(
        self, names: Collection[str], attempt: RuleAttempt, nodes: NodeSet, numbers: StatusNumbers
    ) -> NDArray[np.int32]:
        """Evaluate the nodes that `narrow to` names, and reject the others."""
        inside = np.array([name in names for name in nodes.names()], dtype=np.bool_)
        assert self._narrow is not None
        outside = status_of((self._narrow.failure(attempt.frame),))
        ids = np.full(len(nodes), numbers.number(outside), IDS)
        found = self._statuses(attempt, nodes.take(inside), numbers)
        ids[inside] = 0 if found is None else found
        return ids

    def _begin(self, pod: PodInfo, view: ClusterView) -> RuleAttempt:
        frame = self.begin(pod, view)
        return RuleAttempt(view.snapshot, frame, [frame])

    def statuses_in(self, frame: Frame, nodes: NodeSet, numbers: StatusNumbers) -> NDArray[np.int32] | None:
        """Return the status of each node, as a number in `numbers`, over columns if that pays; None if all
        pass.
        """

        def scalar(nodes: Iterable[Value]) -> list[int]:
            return self.scalar_statuses(frame, nodes, numbers, meter)

        if self.columns is None or not is_faster_over_columns(nodes, self._tapes, frame):
            ids = self.scalar_statuses(frame, nodes.nodes(), numbers)
            return np.array(ids, np.int32) if any(ids) else None
        meter = frame[-1] = self._share.meter_over(frame[self._cluster])
        return self.columns.statuses(batch_of(nodes, frame), numbers, scalar)

    def scalar_statuses(
        self, frame: Frame, nodes: Iterable[Value], numbers: StatusNumbers, meter: Meter | None = None
    ) -> list[int]:
        """Return the number in `numbers` of the status of each node. `frame` must not be in use elsewhere.
        `meter` is one that `Share.meter_over` made for the frame.
        """
        nodes = [*nodes]
        ids, failures = [0] * len(nodes), list[Failure]()
        run, node_slot, resets = self._block.run, self._node, self._resets
        applies = self._node_applies if self.applies_by_node else None
        if meter is None:
            meter = self._share.meter_over(frame[self._cluster])
        frame[-1] = meter
        for place, node in enumerate(nodes):
            frame[node_slot], meter.left = node, meter.limit
            for slot in resets:
                frame[slot] = UNSET
            if (applies is None or applies.hold(frame)) and run(frame, failures):
                ids[place] = numbers.id_of(tuple(dict.fromkeys(failures)))
                failures.clear()
        return ids

    def passes(self, pod: Value, node: Value, known: PodFrames) -> bool:
        """Return whether the rule lets a pod onto a node, for rules that read nothing else. The frame
        resumes, and replaces, the `known` one.
        """
        frame = self.frames.resume(pod, None, known)
        decided = self.decide(frame)
        if decided is None or (isinstance(decided, Narrowed) and node.name in decided.names):
            passes = self._passes_on(frame, node)
        else:
            passes = decided == SKIP
        self.frames.leave(frame, known)
        return passes

    def _passes_on(self, frame: Frame, node: Value) -> bool:
        """Return whether the statements decided per node let the pod onto a node; without reasons."""
        frame[-1], frame[self._node] = self._share.meter_over(frame[self._cluster]), node
        for slot in self._resets:
            frame[slot] = UNSET
        applies = not self.applies_by_node or self._node_applies.hold(frame)
        return not (applies and self._block.run(frame, None))

    def _stay_narrow(self, narrow: _Narrow) -> Run:
        """Return a step that rejects nodes outside of `narrow`: for rules that do not apply to all nodes, or
        whose error text depends on the node.
        """
        node_slot = self._node

        def step(frame: Frame, failures: list[Failure] | None) -> bool:
            try:
                names = narrow.names(frame)
            except EvalError as error:
                if failures is not None:
                    failures.append(self._on_error(error, narrow.span, frame))
                return True
            if names is None or frame[node_slot].name in names:
                return False
            if failures is not None:
                failures.append(narrow.failure(frame))
            return True

        return step


class _Narrow:
    """A compiled `narrow to`."""

    def __init__(self, narrow: CheckedNarrow, scope: RuleScope) -> None:
        self._names = scope.compile(narrow.names)
        self._reason = compile_template(narrow.reason, scope)
        # PreFilter rejects a pod or lets it pass, it does not keep it pending.
        self._code = Code.UNSCHEDULABLE if narrow.code is RejectionCode.PENDING else CODES[narrow.code]
        self.span = narrow.span

    def names(self, frame: Frame) -> tuple[str, ...] | None:
        """Return the only candidates; None for all nodes."""
        names: Optional = self._names(frame)
        return tuple(names.value) if names.present else None

    def failure(self, frame: Frame) -> Failure:
        return Failure(self._code, text_in(self._reason, frame), self.span.site)
