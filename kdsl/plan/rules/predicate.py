"""Predicates as programs: PreFilter decides parts that do not depend on the node, Filter the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.span import Span
from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedNarrow,
    CheckedPredicate,
    CheckedRequire,
    CheckedTemplate,
)
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Optional, Value
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.status import Code, Status
from kdsl.lang.choices import RejectionCode
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.batch import Batch, batch_of
from kdsl.plan.columns.column import Mask
from kdsl.plan.columns.pod_inputs import PodRows
from kdsl.plan.columns.programs import ColumnPredicate, column_predicate
from kdsl.plan.columns.rule import RuleColumns, ScalarPart
from kdsl.plan.columns.tape import RuleTapes, is_faster_over_columns
from kdsl.plan.compile.failures import Failure, FaultLog, StatusNumbers, compile_on_error, status_of
from kdsl.plan.compile.frames import Frames, PodFrames
from kdsl.plan.compile.scope import CompiledFunctions, Conditions, RuleScope
from kdsl.plan.compile.statements import CODES, BlockCompiler, Run
from kdsl.plan.compile.template import compile_template, text_in

SKIP = Status(Code.SKIP)
_EXAMPLES: Final = 256
"""The nodes for which a rule is recorded that runs for many pods."""


class PredicateProgram:
    """A compiled predicate. It is immutable; frames hold the values for one pod over one snapshot.

    If conditions of `applies when` read the node, the predicate is decided per node; other conditions are
    decided once, in `decide`, which lets every pod pass unless the rule `decides_early`. `columns` is the
    form over many nodes, if any; `scalar_parts` are the parts of it that the scalar back end evaluates.
    """

    def __init__(self, rule: CheckedPredicate, functions: CompiledFunctions) -> None:
        self.rule = rule
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions, (type(rule), rule.qualified))
        self._share = scope.share
        self._pod, self._node, self._cluster = map(scope.slot_of, ("pod", "node", "cluster"))
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
        is_early = _narrows_in_pre_filter(rule)
        self._narrow, self._narrow_by_node = (narrow if is_early else None), (None if is_early else narrow)
        first, others = _split_body(rule)
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
        self.scalar_parts: list[ScalarPart] = []
        self._tapes: RuleTapes | None = None
        self.applies_by_node = bool(self._node_applies)
        """Whether a condition of `applies when` reads the node."""
        self.columns = self._over_columns(scope, functions)
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

    def is_for(self, frame: Frame, log: FaultLog | None = None) -> bool:
        """Return whether all conditions of `applies when` that do not depend on nodes hold."""
        return self._applies.hold(frame, None if log is None else log.add)

    def faults_of_pod(self, frame: Frame) -> tuple[Fault, ...]:
        """Return which conditions of `applies when` fail that do not depend on nodes."""
        log = FaultLog(self.rule.name)
        self.is_for(frame, log)
        return log.take()

    def faults_at(self, frame: Frame, nodes: Iterable[Value]) -> tuple[Fault, ...]:
        """Return the errors in conditions of `applies when` that depend on nodes. Answers have the others,
        also those of a `let` that rejects a node.
        """
        log = FaultLog(self.rule.name)
        errors: list[tuple[EvalError, Span]] = []

        def note(error: EvalError, span: Span) -> None:
            errors.append((error, span))

        if self.applies_by_node and self.is_for(frame):
            meter = frame[-1] = self._share.meter_over(frame[self._cluster])
            for node in nodes:
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

    def outside(self, frame: Frame) -> Status:
        """Return the status of nodes outside of `narrow to`, which `decide` must have narrowed."""
        assert self._narrow is not None
        return status_of((self._narrow.failure(frame),))

    def statuses(self, frame: Frame, nodes: NodeSet, numbers: StatusNumbers) -> NDArray[np.int32] | None:
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

    def decide_without_node(self, pod: Value, known: PodFrames) -> Status | Narrowed | None:
        """Decide for all nodes, as `decide` does, for rules that read nothing else than a pod and a node. The
        frame resumes, and replaces, the `known` one.
        """
        frame = self.frames.resume(pod, None, known)
        decided = self.decide(frame)
        self.frames.leave(frame, known)
        return decided

    def tape_signature(self, pod: PodInfo) -> Hashable:
        """Return the signature of a pod for `rejections`; None if the rule has no tapes."""
        whole = None if self._tapes is None else self._tapes.whole
        return None if whole is None else whole.signature(pod)

    def rejections(self, pods: PodRows, node: NodeInfo, live: LiveSnapshot) -> tuple[Mask, Mask]:
        """Return which pods of one signature the statements decided per node reject at a node, and for which
        that is known. Nodes of the live snapshot are examples for a recording.
        """

        def batch() -> Batch:
            frame = self.begin(pods.pods[0], ClusterView(live))
            frame[-1] = self._share.meter_over(None)
            return batch_of(NodeSet(live, live.order[:_EXAMPLES]), frame)

        assert self._tapes is not None
        assert self._tapes.whole is not None
        return self._tapes.whole.masks_for_pods(pods, node, self._share.meter_over(None).limit, batch)

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


def _narrows_in_pre_filter(rule: CheckedPredicate) -> bool:
    """Return whether PreFilter decides `narrow to`: the rule applies to all nodes or to none, and the text of
    an error does not depend on the node.
    """
    on_error = rule.on_error
    is_said = on_error is None or on_error.reason is None or _is_known(on_error.reason)
    return is_said and all(each.time.is_lasting for each in rule.applies)


def _split_body(
    rule: CheckedPredicate,
) -> tuple[list[CheckedRequire], list[CheckedRequire | CheckedForEach]]:
    """Return the leading statements that PreFilter decides, and the others; no `let`s."""
    first: list[CheckedRequire] = []
    others: list[CheckedRequire | CheckedForEach] = []
    is_early = _narrows_in_pre_filter(rule) and not rule.report_all
    for statement in rule.body:
        if isinstance(statement, CheckedLet):
            continue
        if is_early and isinstance(statement, CheckedRequire) and _is_in_pre_filter(statement):
            first.append(statement)
        else:
            is_early = False
            others.append(statement)
    return first, others


def _is_in_pre_filter(statement: CheckedRequire) -> bool:
    # PreFilter has no answer that keeps a pod pending.
    is_known = statement.condition.time.is_lasting and _is_known(statement.reason)
    return is_known and statement.code is not RejectionCode.PENDING


def _is_known(text: CheckedTemplate) -> bool:
    return all(isinstance(part, str) or part.time.is_lasting for part in text.parts)
