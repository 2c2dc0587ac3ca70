"""Whether a placed pod counts for a waiting one, for rules that read other pods only to count them.

The condition of a count, as in `topology(key).count(p, p.labels == …)`, is a question about one placed pod. A
pod that comes, goes or changes can cure a rejection only if that changes an answer. The questions of a rule,
with the loops and names around them, become one list of answers about one pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kdsl.check.analyses.facts import TERMS_OF_PODS, Direction, PodCounts
from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedRequire,
    CheckedStatement,
)
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    Comprehension,
    FieldOf,
    ListOf,
    Macro,
    TypedExpr,
    TypedItem,
    Var,
)
from kdsl.check.model.types import DYN, list_of
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.ir import bound, free_slots
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.values import EvalError, Value
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope

_ANSWERS: Final = list_of(DYN)


class CountedPods:
    """The questions of one rule about a placed pod: those of counts that may cure a rejection when they rise,
    and those of counts that may do so when they fall.
    """

    def __init__(self, rule: CheckedPredicate, counts: PodCounts, functions: CompiledFunctions) -> None:
        scope = RuleScope(rule.scope, rule.params, rule.slots, functions)
        for name in ("pod", "cluster"):
            scope.slot_of(name)  # a rule need not read both
        first, _ = next(iter(counts.values()))
        other = scope.variable(first.variable)
        self._other = other.slot
        self._rising, self._falling = (
            _compiled(_Questions(counts, direction, other).of_rule(rule), scope, rule)
            for direction in (Direction.UP, Direction.DOWN)
        )
        self._frame = scope.frames()

    def may_help(self, pod: PodInfo, before: object, after: object, live: LiveSnapshot) -> bool:
        """Return whether a placed pod that comes, goes or changes may cure the rejection of `pod`."""
        frame = self._frame(pod=pod, cluster=ClusterView(live))
        try:
            if not isinstance(before, PodInfo):
                return _is_any(self._asked(frame, self._rising, after))
            if not isinstance(after, PodInfo):
                return _is_any(self._asked(frame, self._falling, before))
            # Counts rise by the pod as it is now, and fall by the pod as it was.
            return any(
                _is_new(self._asked(frame, ask, without), self._asked(frame, ask, counted))
                for ask, without, counted in (
                    (self._rising, before, after),
                    (self._falling, after, before),
                )
            )
        except EvalError:
            return True

    def _asked(self, frame: Frame, ask: Closure, other: object) -> Value:
        frame[self._other] = other
        return ask(frame)


def _is_any(answers: Value) -> bool:
    """Return whether an answer in nested lists is true."""
    return any(map(_is_any, answers)) if isinstance(answers, list | tuple) else bool(answers)


def _is_new(known: Value, answers: Value) -> bool:
    """Return whether an answer in nested lists is true that was not, or whether lists differ in length."""
    if isinstance(answers, list | tuple):
        return len(known) != len(answers) or any(map(_is_new, known, answers))
    return bool(answers) and not known


class _Questions:
    """Collects the questions of the counts that have a direction, about the pod that `other` holds."""

    def __init__(self, counts: PodCounts, direction: Direction, other: Var) -> None:
        self._counts, self._direction, self._other = counts, direction, other

    def of_rule(self, rule: CheckedPredicate) -> list[TypedExpr]:
        """Return the questions of a rule; its names are known everywhere."""
        lets = [each for each in rule.body if isinstance(each, CheckedLet)]
        others = [each for each in rule.body if not isinstance(each, CheckedLet)]
        conditions = [*rule.applies, *(() if rule.narrow is None else (rule.narrow.names,))]
        found = [question for each in conditions for question in self._of(each)]
        return self._named(lets, [*found, *self._of_all(others)])

    def _of_all(self, body: Sequence[CheckedStatement]) -> list[TypedExpr]:
        found: list[TypedExpr] = []
        for at, statement in enumerate(body):
            match statement:
                case CheckedLet():
                    return [*found, *self._named([statement], self._of_all(body[at + 1 :]))]
                case CheckedRequire(condition=condition):
                    found += self._of(condition)
                case CheckedForEach(variables=variables, iterable=iterable, where=where, body=inner):
                    of_each = [*([] if where is None else self._of(where)), *self._of_all(inner)]
                    found += [*self._of(iterable), *_looped(variables, iterable, of_each)]
        return found

    def _named(self, lets: Sequence[CheckedLet], questions: list[TypedExpr]) -> list[TypedExpr]:
        """Return the questions with the names that they use, and those in the values of the names."""
        for let in reversed(lets):
            variable, value = let.variable, let.value
            questions = [*self._of(value), *_with_value(variable, value, questions)]
        return questions

    def _of(self, expr: TypedExpr) -> list[TypedExpr]:
        match expr:
            case Aggregate() if id(expr) in self._counts:
                return [self._asked(expr)] if self._counts[id(expr)][1] & self._direction else []
            case Comprehension(variables=variables, iterable=iterable, where=where, body=body):
                of_each = [*([] if where is None else self._of(where)), *self._of(body)]
                return [*self._of(iterable), *_looped(variables, iterable, of_each)]
            case Bind(variable=variable, value=value, body=body):
                return [*self._of(value), *_with_value(variable, value, self._of(body))]
            case _:
                return [question for part in children(expr) for question in self._of(part)]

    def _asked(self, count: Aggregate) -> TypedExpr:
        """Return the question of a count: about the pod, or about each of its terms."""
        variable, target, other = count.variable, count.target, self._other
        if not (isinstance(target, FieldOf) and target.field in TERMS_OF_PODS):
            return bound(variable, other, count.body)
        terms = FieldOf(
            other, "Pod", TERMS_OF_PODS[target.field],
            type=list_of(variable.type), time=variable.time, reads=variable.reads, span=count.span,
        )  # fmt: skip
        return _listed((variable,), terms, count.body)


def _with_value(variable: Var, value: TypedExpr, questions: Iterable[TypedExpr]) -> list[TypedExpr]:
    return [bound(variable, value, each) if variable.slot in free_slots(each) else each for each in questions]


def _looped(
    variables: tuple[Var, ...], iterable: TypedExpr, questions: Sequence[TypedExpr]
) -> list[TypedExpr]:
    """Return the questions for each item; those that read no item are asked once: the items may be a node's,
    and no count reads a node.
    """
    slots = {variable.slot for variable in variables}
    return [
        each if slots.isdisjoint(free_slots(each)) else _listed(variables, iterable, each)
        for each in questions
    ]


def _listed(variables: tuple[Var, ...], iterable: TypedExpr, question: TypedExpr) -> TypedExpr:
    """Return the answers to a question for each item of a list."""
    macro = Macro.MAP if len(variables) == 1 else Macro.TRANSFORM_LIST
    return Comprehension(
        macro, iterable, variables, None, question,
        type=_ANSWERS, time=max(iterable.time, question.time), reads=iterable.reads | question.reads,
        span=question.span,
    )  # fmt: skip


def _compiled(questions: Sequence[TypedExpr], scope: RuleScope, rule: CheckedPredicate) -> Closure:
    items = tuple(TypedItem(each, False) for each in questions)
    time = max((each.time for each in questions), default=rule.scope["pod"].time)
    reads = frozenset[str]().union(*(each.reads for each in questions))
    return scope.compile(ListOf(items, type=_ANSWERS, time=time, reads=reads, span=rule.span))
