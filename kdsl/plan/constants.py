"""Constant texts that fail whenever a rule uses them, patterns and conversions, found before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.codes import CheckCode
from kdsl.check.model import RuleSet
from kdsl.check.typed import CallOf, Const, Typed, TypedExpr
from kdsl.check.walk import walk
from kdsl.plan.expression import compile_expression
from kdsl.plan.regex import RegexError, compile_regex
from kdsl.plan.values import EvalError

_WITH_PATTERN = frozenset(("matches", "find", "findAll"))
_CONVERSIONS = frozenset(("bool", "cidr", "double", "duration", "int", "ip", "timestamp", "uint", "url"))
_FORMS = {"duration": "`1h30m`, `90s` or `500ms`", "timestamp": "`2024-01-31T12:00:00Z`"}


def check_constants(rules: RuleSet) -> tuple[Diagnostic, ...]:
    """Report the constant patterns and texts of all rules, functions and devices that their use refuses."""
    parts = (rules.written, rules.fns, rules.devices, rules.teams)
    found = (problem for expr in _expressions(parts) for part in walk(expr) for problem in _problems(part))
    # What is inherited stands in several rules.
    return tuple({(str(problem.span), problem.title): problem for problem in found}.values())


def _problems(part: TypedExpr) -> Iterator[Diagnostic]:
    match part:
        case CallOf(function=function, args=(_, Const(value=str(pattern)) as text, *_)) if (
            function in _WITH_PATTERN
        ):
            try:
                compile_regex(pattern)
            except RegexError as error:
                title = f"this is no regular expression: {error}"
                help_ = ("patterns are those of RE2: no look-around, no back-references",)
                yield Diagnostic(CheckCode.BAD_TEXT, title, text.span, "not a pattern", help=help_)
        case CallOf(function=function, args=(Const(value=str()) as text,)) if function in _CONVERSIONS:
            try:
                compile_expression(part)(())
            except EvalError as error:
                forms = _FORMS.get(function)
                likes = () if forms is None else (f"write it like {forms}",)
                label = f"`{function}` refuses this"
                yield Diagnostic(CheckCode.BAD_TEXT, error.message, text.span, label, help=likes)


def _expressions(value: Any) -> Iterator[TypedExpr]:
    """List the outermost expressions in a part of the checked model."""
    if isinstance(value, Typed):
        yield value  # type: ignore[misc]  # every node is one of TypedExpr
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _expressions(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _expressions(each)
    elif is_dataclass(value):
        for each in fields(value):
            yield from _expressions(getattr(value, each.name))
