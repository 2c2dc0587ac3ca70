"""Thresholds: expressions of the rule language over the counts of a replay, such as `pending > 0`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.base.span import Source
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.lints.integer_plateau import cut_comparisons
from kdsl.check.model.types import BOOL, INT
from kdsl.check.views.view import load_views
from kdsl.config.codes import ConfigCode
from kdsl.eval.values import EvalError
from kdsl.explain.differences import Counts
from kdsl.lang.parser import parse_expression
from kdsl.plan.compile.expression import compile_expression

NAMES: Final = tuple(field.name for field in fields(Counts))
"""The names in a threshold: the counts, in the order of their fields."""

MAX_LENGTH: Final = 1000
OPTION: Final = "--fail-if"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A checked threshold."""

    text: str
    is_passed: Callable[[Counts], bool]
    """Returns whether the counts pass the threshold; KdslError if the expression has no value for them."""


def read_thresholds(texts: Iterable[str]) -> tuple[Threshold, ...]:
    """Check the expressions; raise InvalidInputError with all their mistakes."""
    found: list[Diagnostic] = []
    thresholds = [_read(text, found) for text in texts]
    if found:
        raise InvalidInputError(found)
    return tuple(each for each in thresholds if each is not None)


def passed(thresholds: Sequence[Threshold], counts: Counts) -> tuple[Threshold, ...]:
    """Return the thresholds that the counts pass."""
    return tuple(each for each in thresholds if each.is_passed(counts))


def _read(text: str, found: list[Diagnostic]) -> Threshold | None:
    if len(text) > MAX_LENGTH:
        title = f"a threshold has at most {MAX_LENGTH:,} characters, this one has {len(text):,}"
        found.append(Diagnostic(ConfigCode.WRONG_TYPE, title, where=OPTION))
        return None
    parsed, problems = parse_expression(Source(OPTION, text))
    if parsed is None or problems:
        found += problems
        return None
    typed, mistakes = check_expression(
        parsed, Environment(dict.fromkeys(NAMES, INT), strict=True), load_views()
    )
    if typed is None:
        found += mistakes
        return None
    if typed.type != BOOL:
        title = f"a threshold is true or false, this is `{typed.type}`"
        found.append(Diagnostic(ConfigCode.WRONG_TYPE, title, typed.span, help=("such as `pending > 0`",)))
        return None
    if cut := tuple(cut_comparisons(typed, {})):
        found += [replace(each, severity=Severity.ERROR) for each in cut]
        return None
    evaluate = compile_expression(typed)
    problem = _never_has_a_value(evaluate)
    if problem:
        title = f"this threshold has no value, whatever the counts are: {problem}"
        found.append(
            Diagnostic(
                ConfigCode.WRONG_VALUE, title, typed.span, help=("divide by a count such as `decided`",)
            )
        )
        return None

    def is_passed(counts: Counts) -> bool:
        try:
            return bool(evaluate(tuple(counts.document().values())))
        except EvalError as error:
            raise KdslError(f"{OPTION} `{text}` has no value: {error.message}") from error

    return Threshold(text, is_passed)


def _never_has_a_value(evaluate: Callable[[tuple[int, ...]], object]) -> str:
    """Return the error of an expression that fails for all of some very different counts, "" for others."""
    random, problem = Random(1), ""
    samples = [[0] * len(NAMES), *([random.randrange(1, most) for _ in NAMES] for most in (3, 50, 9999) * 4)]
    for sample in samples:
        try:
            evaluate(tuple(sample))
        except EvalError as error:
            problem = error.message
        else:
            return ""
    return problem
