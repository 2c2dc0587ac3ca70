"""The definition of a lint, and its input: the checked rules of a program as their files have them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedPreemption,
    CheckedQueue,
    CheckedRequire,
    CheckedScore,
    CheckedStatement,
    CheckedTemplate,
    RuleSet,
    WrittenRule,
)
from kdsl.check.model.typed import TypedExpr
from kdsl.lang.program import Program


@dataclass(frozen=True, slots=True)
class Subject:
    """A program without errors and its checked rules."""

    program: Program
    rules: RuleSet

    def predicates(self) -> Iterator[CheckedPredicate]:
        """Yield the predicates and tightenings."""
        return (rule for rule in self.rules.written if isinstance(rule, CheckedPredicate))

    def scores(self) -> Iterator[CheckedScore]:
        """Yield the scores."""
        return (rule for rule in self.rules.written if isinstance(rule, CheckedScore))

    def queues(self) -> Iterator[CheckedQueue]:
        """Yield the queues."""
        return (rule for rule in self.rules.written if isinstance(rule, CheckedQueue))


@dataclass(frozen=True, slots=True)
class Lint:
    """One lint: a pure function that yields warnings, and its page (the docstring of its module)."""

    code: str
    name: str
    find: Callable[[Subject], Iterator[Diagnostic]]
    docstring: str | None

    @property
    def page(self) -> str:
        """Return the problem, its consequence, an example and the fix as Markdown, without a heading.

        Line breaks inside paragraphs are those of the source.
        """
        return inspect.cleandoc(self.docstring or "")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A `require` and the loops around it, the outermost first."""

    statement: CheckedRequire
    loops: tuple[CheckedForEach, ...]


def requirements(
    body: tuple[CheckedStatement, ...], loops: tuple[CheckedForEach, ...] = ()
) -> Iterator[Requirement]:
    """Yield the `require`s of a predicate in the order of the text."""
    for statement in body:
        match statement:
            case CheckedRequire():
                yield Requirement(statement, loops)
            case CheckedForEach():
                yield from requirements(statement.body, (*loops, statement))
            case CheckedLet():
                pass


def reasons(rule: WrittenRule) -> Iterator[tuple[CheckedTemplate, Span]]:
    """Yield the reasons of a rule, each with its statement."""
    if isinstance(rule, CheckedPredicate):
        for each in requirements(rule.body):
            yield each.statement.reason, each.statement.span
        if rule.narrow is not None:
            yield rule.narrow.reason, rule.narrow.span
    elif isinstance(rule, CheckedQueue | CheckedPreemption):
        for admit in rule.admit if isinstance(rule, CheckedQueue) else rule.eligible:
            yield admit.reason, admit.span


def lets(rule: WrittenRule) -> Iterator[CheckedLet]:
    """Yield the `let`s of a rule, including those inside loops."""
    yield from _lets(rule.body) if isinstance(rule, CheckedPredicate) else rule.lets


def _lets(body: tuple[CheckedStatement, ...]) -> Iterator[CheckedLet]:
    for statement in body:
        if isinstance(statement, CheckedLet):
            yield statement
        elif isinstance(statement, CheckedForEach):
            yield from _lets(statement.body)


def conditions(rule: WrittenRule) -> Iterator[tuple[str, TypedExpr]]:
    """Yield the conditions of a rule, each with its keyword."""
    match rule:
        case CheckedPredicate(applies=applies, body=body):
            yield from (("applies when", condition) for condition in applies)
            yield from _in_body(body)
        case CheckedScore(applies=applies, ignores=ignores):
            yield from (("applies when", condition) for condition in applies)
            yield from (("ignore when", condition) for condition in ignores)
        case CheckedQueue(admit=admit):
            yield from (("admit when", each.condition) for each in admit)
        case CheckedPreemption(eligible=eligible, victim=victim):
            yield from (("eligible when", each.condition) for each in eligible)
            yield "victim when", victim


def _in_body(body: tuple[CheckedStatement, ...]) -> Iterator[tuple[str, TypedExpr]]:
    for statement in body:
        match statement:
            case CheckedRequire(condition=condition):
                yield "require", condition
            case CheckedForEach(where=where, body=inner):
                if where is not None:
                    yield "where", where
                yield from _in_body(inner)
            case CheckedLet():
                pass


def values(rule: WrittenRule) -> Iterator[TypedExpr]:
    """Yield the expressions of a rule that are no conditions: `let`s, a score's value, sort keys."""
    yield from (let.value for let in lets(rule))
    if isinstance(rule, CheckedScore):
        yield rule.value
    elif isinstance(rule, CheckedQueue):
        yield from (key.value for key in rule.order)
    elif isinstance(rule, CheckedPreemption):
        yield from (key.value for key in (*rule.order, *rule.choose))
        if rule.candidates is not None:
            yield rule.candidates
