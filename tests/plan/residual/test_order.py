from __future__ import annotations

import pytest
from kdsl.check.model.types import DYN
from kdsl.plan.residual.order import asks_first, fails_only_with

from tests.plan.lab import check
from tests.plan.residual.left import checked_score


@pytest.mark.parametrize(
    ("text", "is_first"),
    [
        *(("x", True), ("1", False), ("y", False), ("x.a", True), ("has(x.a)", True), ("1 + x", True)),
        *(("x + 1 / 0", True), ("1 / 0 + x", False), ("y + x", False), ("size(x)", True), ("[x]", False)),
        *(("x > 1 ? 2 : y", True), ("y ? x : x", False), ("x.orValue(y)", True), ("y.or(x)", False)),
        *(("x && y", False), ("x || true", False), ("!x", True), ("x.all(i, i > 0)", True)),
        *(("y.all(i, x)", False), ("cel.bind(z, x, z)", False), ("cel.bind(z, x, 1)", False)),
    ],
)
def test_variables_that_are_read_first(text: str, is_first: bool) -> None:
    expr = check(text, {"x": DYN, "y": DYN})
    assert asks_first(expr, 0) is is_first


@pytest.mark.parametrize(
    ("text", "is_only"),
    [
        *(
            ("c.here(node)", True),
            ("c.least(3)", True),
            ("c.total()", True),
            ("c.domains()", True),
            ("c", True),
        ),
        *(
            ("c.least(node.podCount)", True),
            ("c.least(1 / 0)", False),
            ("c.here(node) + 1", False),
            ("3", False),
        ),
        *(("node.podCount", False), ("[c][0].total()", False)),
    ],
)
def test_expressions_that_fail_only_with_a_count(text: str, is_only: bool) -> None:
    value = f"[{text}].size()"
    rule, _ = checked_score(f'let c = topology("k").count(p, true)\nvalue {value}')
    (item,) = rule.value.args[0].items  # type: ignore[union-attr]
    named = {variable.slot for variable in rule.scope.values()}
    assert fails_only_with(item.value, rule.lets[0].variable.slot, named) is is_only
