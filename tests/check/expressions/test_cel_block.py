"""`cel.block` in loose expressions; the conformance suite has the plain cases."""

from __future__ import annotations

import pytest
from kdsl.base.span import Source
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.eval.values import EvalError
from kdsl.lang.parser import parse_expression

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


def test_parts_read_those_before_them() -> None:
    parts = "cel.block([2, cel.index(0) * 5, cel.index(1) + cel.index(0)]"
    for number, value in enumerate((2, 10, 12)):
        assert evaluate(f"{parts}, cel.index({number}))") == value


def test_a_part_does_not_read_itself_or_those_after_it() -> None:
    assert isinstance(evaluate("cel.block([cel.index(0)], cel.index(0))"), EvalError)
    assert isinstance(evaluate("cel.block([cel.index(1), 2], cel.index(0))"), EvalError)


def test_a_block_without_parts_is_its_body() -> None:
    assert evaluate("cel.block([], 7)") == 7


def test_variables_are_told_apart_by_name_and_by_both_numbers() -> None:
    text = "[3, 4].transformList(cel.iterVar({}), cel.iterVar({}), cel.iterVar({}) * 10 + cel.iterVar({}))"
    for one, other in (("0, 0", "0, 1"), ("0, 0", "1, 0"), ("1, 2", "2, 1")):
        assert evaluate(text.format(one, other, one, other)) == (3, 14)
    same = (
        "[3].map(cel.iterVar(0, 0), [4].map(cel.accuVar(0, 0), cel.iterVar(0, 0) * 10 + cel.accuVar(0, 0)))"
    )
    assert evaluate(same) == ((34,),)


def test_a_block_of_another_is_not_one_of_cel() -> None:
    expr, _ = parse_expression(Source("e", "cex.block([1], cel.index(0))"))
    assert expr is not None
    typed, _ = check_expression(expr, Environment({}))
    assert typed is None or isinstance(evaluate("cex.block([1], 1)"), EvalError)


@pytest.mark.parametrize(
    "text", ["cel.block([7], cex.index(0))", "[3].map(cel.iterVar(0, 0), cex.iterVar(0, 0))"]
)
def test_a_variable_of_another_is_not_one_of_cel(text: str) -> None:
    expr, _ = parse_expression(Source("e", text))
    assert expr is not None
    typed, _ = check_expression(expr, Environment({}))
    assert typed is None or isinstance(evaluate(text), EvalError)


@pytest.mark.parametrize("text", ["[1].map(f(1), 1)", "[1].map(a.f(1), 1)", "[1].map(cel.index('a'), 1)"])
def test_a_call_of_something_else_is_no_variable(text: str) -> None:
    expr, _ = parse_expression(Source("e", text))
    assert expr is not None
    typed, diagnostics = check_expression(expr, Environment({}))
    assert typed is None
    assert diagnostics


@pytest.mark.parametrize("text", ["block([1], 2)", "index(0)"])
def test_the_words_alone_are_no_blocks(text: str) -> None:
    assert isinstance(evaluate(text), EvalError)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "cel.index(0, 0)",
            "cel.iterVar(0, 0, 0)",
            "cel.accuVar('a', 0)",
            "cel.index(0u)",
            "cel.index(1 + 0)",
        ),
        *("cel.block([1], 2, 3)", "cel.block([1])", "cel.other([1], 2)"),
    ],
)
def test_other_forms_have_no_value(text: str) -> None:
    assert isinstance(evaluate(text), EvalError)


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
