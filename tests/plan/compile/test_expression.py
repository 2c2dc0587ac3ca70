from __future__ import annotations

import pytest
from kdsl.check.model.types import DYN, INT, STRING
from kdsl.eval.values import EvalError

from tests.plan.lab import evaluate

TYPES = {"text": STRING, "number": INT, "it": DYN}


@pytest.mark.parametrize("text", ['int("none") + 1', 'text.size() + int("none")', "1 / 0 + number"])
def test_unread_variables_do_not_replace_a_failing_part(text: str) -> None:
    assert isinstance(evaluate(text, TYPES, "text", 1, {"a": 1}), EvalError)


def test_more_values_than_are_read() -> None:
    assert evaluate("text.size() + 1", TYPES, "text", 1, {"a": 1}) == 5


@pytest.mark.parametrize("text", ["it.or()", "it.orValue()", "optional.or().of(1)", "it.or(it, it)"])
def test_a_call_with_another_number_of_arguments_fails_when_it_is_made(text: str) -> None:
    found = evaluate(text, TYPES, "text", 1, {"a": 1})
    assert isinstance(found, EvalError) and found.message.startswith("no such overload")
