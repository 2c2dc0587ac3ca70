"""`cel.block` in loose expressions; the conformance suite has the plain cases."""

from __future__ import annotations

import pytest
from kdsl.base.span import Source
from kdsl.check.environment import Environment
from kdsl.check.infer import check_expression
from kdsl.lang.parser import parse_expression
from kdsl.plan.values import EvalError

from tests.plan.lab import evaluate


def test_parts_are_computed_when_they_are_needed() -> None:
    assert evaluate("cel.block([1 / 0, 2], cel.index(1))") == 2
    assert isinstance(evaluate("cel.block([1 / 0, 2], cel.index(0))"), EvalError)


def test_blocks_nest() -> None:
    # As everywhere in CEL, the inner one hides the outer one.
    assert evaluate("cel.block([1], cel.block([cel.index(0) + 1], cel.index(0)) + cel.index(0))") == 3


def test_macro_variables() -> None:
    assert evaluate("[3].transformList(cel.iterVar(0, 0), cel.iterVar(0, 1), cel.iterVar(0, 1))") == (3,)
    assert evaluate("[[1, 2]].map(cel.iterVar(0, 0), cel.iterVar(0, 0).exists(x, x == 2))") == (True,)


@pytest.mark.parametrize(
    "text", ["cel.index()", "cel.index('a')", "cel.iterVar(0)", "cel.block(1, 2)", "cel.block([?a], 1)"]
)
def test_other_forms_are_no_blocks(text: str) -> None:
    assert isinstance(evaluate(text), EvalError)


@pytest.mark.parametrize("text", ["cel.block([1], cel.index(0))", "[1].map(cel.iterVar(0, 0), 1)"])
def test_rules_have_let_instead(text: str) -> None:
    expr, _ = parse_expression(Source("e", text))
    assert expr is not None
    typed, diagnostics = check_expression(expr, Environment(strict=True))
    assert typed is None
    assert diagnostics
