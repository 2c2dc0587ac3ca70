"""The official CEL suite, as far as parsing goes.

Its data is not shipped: it is looked for beside the checkout, or where KDSL_SHARED says.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from kdsl.base.span import Source
from kdsl.lang.expression_tree import Literal
from kdsl.lang.parser import parse_expression
from kdsl.lang.printer import format_expr

from tests.conformance import CEL_SUITE

NOT_CEL = [
    "1 +",
    "a b",
    "(a",
    "a)",
    "[1",
    "{a}",
    "a ? b",
    "a..b",
    "a.in",
    "for",
    "while + 1",
    "!-a",
    "-!a",
    "1.",
    "'a",
    "T{}",
]


@pytest.fixture(scope="module")
def tests() -> list[dict[str, Any]]:
    if not CEL_SUITE.exists():
        pytest.skip(f"the CEL suite is not at {CEL_SUITE}")
    with gzip.open(CEL_SUITE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_every_expression_parses_and_prints(tests: list[dict[str, Any]]) -> None:
    failed = []
    for test in tests:
        expr, _ = parse_expression(Source("suite", test["expr"]))
        if expr is None or parse_expression(Source("printed", format_expr(expr)))[0] != expr:
            failed.append(test["expr"])
    assert failed == []
    assert len(tests) == 1742


def test_string_literals_have_the_value_of_the_suite(tests: list[dict[str, Any]]) -> None:
    checked = 0
    for test in tests:
        expr, _ = parse_expression(Source("suite", test["expr"]))
        if isinstance(expr, Literal) and "stringValue" in test.get("value", {}):
            assert expr.value == test["value"]["stringValue"], test["name"]
            checked += 1
    assert checked > 80


@pytest.mark.parametrize("text", NOT_CEL)
def test_what_is_no_cel_does_not_parse(text: str) -> None:
    expr, diagnostics = parse_expression(Source("e", text))
    assert expr is None
    assert len(diagnostics) == 1
