"""Runs a predicate over one node once more, and finds the deciding parts of each `require` that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from kdsl.base.reasons import MAX_REASONS
from kdsl.base.span import Span
from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedRequire,
    CheckedStatement,
)
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import UNSET, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError
from kdsl.explain.atoms import Atom
from kdsl.explain.deciding import Deciding, Why, with_items
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.failures import error_text
from kdsl.plan.compile.scope import CompiledFunctions, Conditions, RuleScope
from kdsl.plan.compile.statements import Chosen, chosen_items
from kdsl.plan.compile.template import compile_template, text_in


@dataclass(frozen=True, slots=True)
class FailedRequire:
    """A `require` that does not hold: the text of its condition, and the atoms that decided."""

    reason: str
    site: str
    condition: str
    atoms: tuple[Atom, ...]


Run = Callable[[Frame], Iterator[FailedRequire]]


class ExplainedPredicate:
    """A predicate without its tightenings, compiled for explanations."""

    def __init__(self, rule: CheckedPredicate, functions: CompiledFunctions) -> None:
        self._rule = rule.name
        self._report_all = rule.report_all
        self._steps = functions.steps
        self._scope = RuleScope(
            rule.scope, rule.params, rule.slots, functions, rule=(type(rule), rule.qualified)
        )
        self._pod, self._node, self._cluster = map(self._scope.slot_of, ("pod", "node", "cluster"))
        self._deciding = Deciding(self._scope, functions)
        for statement in rule.body:
            if isinstance(statement, CheckedLet):
                self._let(statement)
        self._applies = Conditions(rule.applies, self._scope, rule.qualified, functions.erred)
        self._runs = [self._compile(each) for each in rule.body if not isinstance(each, CheckedLet)]
        self._blank = self._scope.new_frame()

    def failures(self, pod: PodInfo, snapshot: Snapshot, node: NodeInfo) -> tuple[FailedRequire, ...]:
        """Return the failures: the first `require`, or where the rule reports all, as many as may have
        reasons.
        """
        frame = self._blank.copy()
        frame[self._pod], frame[self._node], frame[self._cluster] = pod, node, ClusterView(snapshot)
        # One node is judged here, so the values that are computed once per pod count as well.
        frame[-1] = Meter.of(self._steps.pod)
        if not self._applies.hold(frame):
            return ()
        return tuple(islice(self._failures(self._runs, frame), MAX_REASONS))

    def _failures(self, runs: list[Run], frame: Frame) -> Iterator[FailedRequire]:
        for run in runs:
            is_failed = False
            for failed in run(frame):
                is_failed = True
                yield failed
            if is_failed and not self._report_all:
                return

    def _let(self, statement: CheckedLet) -> int | None:
        slot = self._scope.let(statement)
        self._deciding.lets[statement.variable.slot] = statement.value
        return slot

    def _compile(self, statement: CheckedStatement) -> Run:
        assert not isinstance(statement, CheckedLet)
        return self._require(statement) if isinstance(statement, CheckedRequire) else self._loop(statement)

    def _require(self, statement: CheckedRequire) -> Run:
        condition, why = self._scope.compile(statement.condition), self._deciding.why(statement.condition)
        reason = compile_template(statement.reason, self._scope)
        source, site = " ".join(statement.condition.span.text.split()), statement.span.site

        def run(frame: Frame) -> Iterator[FailedRequire]:
            try:
                if condition(frame):
                    return
            except EvalError as error:
                yield broken(source, statement.condition.span, error, self._rule)
                return
            yield FailedRequire(text_in(reason, frame), site, source, explained(why, source, frame))

        return run

    def _loop(self, statement: CheckedForEach) -> Run:
        choose = chosen_items(statement, self._scope)
        resets: list[int] = []
        runs: list[Run] = []
        for inner in statement.body:
            if isinstance(inner, CheckedLet):
                slot = self._let(inner)
                resets += [] if slot is None else [slot]
            else:
                runs.append(self._compile(inner))
        variables, where_span = statement.variables, (statement.where or statement.iterable).span

        def item(frame: Frame, chosen: Chosen) -> Iterator[FailedRequire]:
            value, error = chosen
            if len(variables) == 1:
                frame[variables[0].slot] = value
            else:
                frame[variables[0].slot], frame[variables[1].slot] = value
            if error is not None:
                yield broken(" ".join(where_span.text.split()), where_span, error, self._rule)
                return
            for slot in resets:
                frame[slot] = UNSET
            for run in runs:
                # Up to the first failure of each item, whatever the rule reports.
                found = list(run(frame))
                if found:
                    for each in found:
                        atoms = with_items(each.atoms, variables, frame)
                        yield FailedRequire(each.reason, each.site, each.condition, atoms)
                    return

        def run_all(frame: Frame) -> Iterator[FailedRequire]:
            try:
                for chosen in choose(frame):
                    found = list(item(frame, chosen))
                    yield from found
                    if found and not self._report_all:
                        return
            except EvalError as error:
                span = statement.iterable.span
                yield broken(" ".join(span.text.split()), span, error, self._rule)

        return run_all


def explained(why: Why, source: str, frame: Frame) -> tuple[Atom, ...]:
    """Return the deciding atoms of a condition; the whole condition where its parts have no value."""
    try:
        return why(frame)
    except EvalError as error:
        return (_without_value(source, error),)


def broken(source: str, span: Span, error: EvalError, rule: str = "") -> FailedRequire:
    """Return the failure for a condition without a value, with the rule's reason."""
    reason = error_text(rule, error, span) if rule else error.message
    return FailedRequire(reason, span.site, source, (_without_value(source, error),))


def _without_value(source: str, error: EvalError) -> Atom:
    """Return the atom of a condition without a value: the expression of the `let` that failed, if one did."""
    text = source if error.span is None else " ".join(error.span.text.split())
    return Atom(text, (text,), holds=False, error=error.message)


class ExplainedPredicates:
    """The predicates of a profile by their name in verdicts, each with its tightenings.

    Predicates of plugins have no text to explain.
    """

    def __init__(self, predicates: tuple[CheckedPredicate, ...], functions: CompiledFunctions) -> None:
        self._rules: Mapping[str, CheckedPredicate] = {
            rule.name: rule for rule in predicates if not rule.plugin
        }
        self._functions = functions
        self._compiled: dict[str, tuple[ExplainedPredicate, ...]] = {}

    def reads(self, name: str) -> frozenset[str] | None:
        """Return the reads of a rule, tightenings included; None where they are unknown."""
        rule = self._rules.get(name)
        if rule is None:
            return None
        return rule.reads.union(*(each.reads for each in rule.tightenings))

    def failures(
        self, name: str, pod: PodInfo, snapshot: Snapshot, node: NodeInfo
    ) -> tuple[FailedRequire, ...]:
        """Return the failures of a rule, or of the first of its tightenings that fails."""
        rule = self._rules.get(name)
        if rule is None:
            return ()
        if name not in self._compiled:
            parts = (rule, *rule.tightenings)
            self._compiled[name] = tuple(ExplainedPredicate(part, self._functions) for part in parts)
        for part in self._compiled[name]:
            found = part.failures(pod, snapshot, node)
            if found:
                return found
        return ()
