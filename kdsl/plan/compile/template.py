"""Reasons: text with `${…}` holes, filled only when something was rejected."""

from __future__ import annotations

from collections.abc import Callable

from kdsl.base.reasons import shortened
from kdsl.check.model.rule_set import CheckedTemplate
from kdsl.eval.functions.conversions import text_of
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.values import EvalError
from kdsl.plan.compile.scope import RuleScope

Text = Callable[[Frame], str]


def compile_template(template: CheckedTemplate, scope: RuleScope) -> str | Text:
    """Return the text if it has no holes, else a function that fills them.

    A hole is printed like `string(value)`. A hole that fails is printed as its error in angle brackets, so
    that the reason is still readable. A text longer than a reason is cut.
    """
    parts = [part if isinstance(part, str) else scope.compile(part) for part in template.parts]
    if all(isinstance(part, str) for part in parts):
        return shortened("".join(part for part in parts if isinstance(part, str)))

    def fill(frame: Frame) -> str:
        return shortened("".join([part if isinstance(part, str) else _shown(part, frame) for part in parts]))

    return fill


def text_in(text: str | Text, frame: Frame) -> str:
    """Return the text of a compiled template."""
    return text if isinstance(text, str) else text(frame)


def _shown(hole: Closure, frame: Frame) -> str:
    try:
        return shortened(text_of(hole(frame)))
    except EvalError as error:
        return f"<{error.message}>"
