"""Expanders: expressions of the rule language that choose the node group to grow.

An expression is evaluated for each group that would help; the highest value wins, of equal ones the first
group of the experiment. The choices of cluster-autoscaler's `--expander` are `-waste` (least-waste), `pods`
(most-pods), `-price` (price) and `priority`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import KdslError
from kdsl.base.span import Source, Span
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import DOUBLE, INT, STRING, Type
from kdsl.check.views.view import load_views
from kdsl.config.codes import ConfigCode
from kdsl.eval.values import EvalError
from kdsl.lang.expression_builder import Locate
from kdsl.lang.parser import parse_embedded
from kdsl.plan.compile.expression import compile_expression


@dataclass(frozen=True, slots=True)
class Option:
    """The facts that an expander reads about a group that would help.

    `nodes` more of it would take `pods` of all `pending` pods. `price` is that of these nodes for an hour.
    `size` is how many nodes it has. The waste is the share of these nodes that would stay free, from 0 to 1:
    `waste` is the mean of CPU, memory and, if there are any, cards.
    """

    group: str
    nodes: int
    pods: int
    pending: int
    size: int
    priority: int
    price: float
    waste: float
    waste_cpu: float
    waste_memory: float
    waste_cards: float


NAMES: Final[dict[str, Type]] = {
    "group": STRING,
    **dict.fromkeys(("nodes", "pods", "pending", "size", "priority"), INT),
    **dict.fromkeys(("price", "waste", "wasteCpu", "wasteMemory", "wasteCards"), DOUBLE),
}
"""The names in an expression, in the order of the fields of `Option`."""

Expander = Callable[[Option], float]
"""Returns the value of an option; KdslError if it has none."""


def check_expander(text: str, locate: Locate) -> tuple[TypedExpr | None, tuple[Diagnostic, ...]]:
    """Check an expander; `locate` finds its characters in the file. None where there is an error."""
    parsed, problems = parse_embedded(text, locate)
    if parsed is None or problems:
        return None, problems
    typed, found = check_expression(parsed, Environment(NAMES, strict=True), load_views())
    if typed is not None and typed.type not in (INT, DOUBLE):
        title = f"an expander is a number, this is `{typed.type}`"
        return None, (Diagnostic(ConfigCode.WRONG_TYPE, title, typed.span),)
    return typed, tuple(found)


def expander_of(text: str) -> Expander:
    """Return the expander of a text that was checked."""
    source = Source("expander", text)
    typed, found = check_expander(text, lambda start, end: Span(source, start, end))
    if typed is None:
        raise KdslError(f"the expander `{text}` has mistakes: {found[0].title}")
    evaluate = compile_expression(typed)

    def value(option: Option) -> float:
        try:
            found = float(evaluate(astuple(option)))
        except EvalError as error:
            raise KdslError(
                f"the expander has no value for group `{option.group}`: {error.message}"
            ) from error
        if math.isnan(found):
            raise KdslError(f"the expander has no value for group `{option.group}`: it is not a number")
        return found

    return value
