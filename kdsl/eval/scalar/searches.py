"""`matches`, `find` and `findAll`: a constant pattern is compiled with its rule, any other at run time.

Their cost depends on the compiled pattern, so they take their steps themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from kdsl.check.model.typed import CallOf, Const, TypedExpr
from kdsl.eval.patterns import (
    MAX_COMPILE,
    MAX_PROGRAM,
    Pattern,
    PatternError,
    Spend,
    compile_pattern,
    compile_steps,
)
from kdsl.eval.scalar.frame import Closure, Compile, Frame
from kdsl.eval.scalar.meter import CHARACTERS
from kdsl.eval.values import EvalError, Value, checked_list, kind_of

_ALL: Final = -1


def _find_all(pattern: Pattern, text: str, count: int, spend: Spend) -> Value:
    """Return the first `count` matching parts, all if it is negative."""
    if count == 0:
        return ()
    found = tuple(_paid(islice(pattern.find_all(text, spend), count if count > 0 else None), spend))
    return checked_list(found, len(found))


def _paid(parts: Iterator[str], spend: Spend) -> Iterator[str]:
    for part in parts:
        spend(len(part) // CHARACTERS)
        yield part


SEARCHES: Final[Mapping[str, Callable[[Pattern, str, int, Spend], Value]]] = {
    "matches": lambda pattern, text, _, spend: pattern.matches(text, spend),
    "find": lambda pattern, text, _, spend: pattern.find(text, spend),
    "findAll": _find_all,
}
"""Functions of a text, a pattern and for `findAll` a number."""


def constant_pattern(expr: TypedExpr) -> Const | None:
    """Return the pattern of a search if it is a constant text."""
    match expr:
        case CallOf(function=function, args=(_, Const(value=str()) as pattern, *_)) if function in SEARCHES:
            return pattern
    return None


def compile_search(expr: CallOf, compile: Compile) -> Closure:
    """Compile a call of one of `SEARCHES`, with arguments of any type."""
    search = SEARCHES[expr.function]
    text_of, pattern_of, *rest = map(compile, expr.args)
    count_of = rest[0] if rest else _every
    constant = pattern_of_rule(expr)

    def call(frame: Frame) -> Value:
        text, pattern, count = text_of(frame), pattern_of(frame), count_of(frame)
        if text.__class__ is not str or pattern.__class__ is not str or count.__class__ is not int:
            given = (text, pattern, count)[: len(expr.args)]
            raise EvalError(f"no such overload: {expr.function}({', '.join(map(kind_of, given))})")
        spend = frame[-1].spend
        return search(constant or _compiled_now(pattern, spend), text, count, spend)

    return call


def _every(frame: Frame) -> Value:
    return _ALL


def pattern_of_rule(expr: CallOf) -> Pattern | None:
    """Return the pattern of a search that is compiled with its rule; None if it is not constant, or is
    refused, so that its use is an error.
    """
    constant = constant_pattern(expr)
    try:
        return None if constant is None else compile_pattern(str(constant.value))
    except PatternError:
        return None


def _compiled_now(text: str, spend: Spend) -> Pattern:
    """Compile a pattern, always at the same cost: caching depends on other rules."""
    spend(len(text) // CHARACTERS + min(compile_steps(text), MAX_COMPILE))
    try:
        pattern = compile_pattern(text)
    except PatternError as error:
        # The work done so far is unknown.
        spend(MAX_PROGRAM)
        raise EvalError(f"invalid regular expression: {error}") from None
    spend(pattern.size)
    return pattern
