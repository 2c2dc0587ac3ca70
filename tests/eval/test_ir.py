"""Shapes: expressions that would be computed once for all, and those that must not."""

from __future__ import annotations

from itertools import product

import pytest
from kdsl.check.model.types import DOUBLE, DYN, INT
from kdsl.eval.ir import Known, shape
from kdsl.eval.values import Value

from tests.plan.lab import check

CONSTANTS: tuple[Value, ...] = (
    *(1, 1.0, True, "1", b"1", None, 0.0, -0.0, INT, DOUBLE),
    *((), (1,), (1.0,), (True,), ("1",), ((1,),), (1, 1), (1, 2), (2, 1)),
)
"""Values that all differ, though many are equal in Python."""


def test_constants_differ_by_type_and_value() -> None:
    place = check("dyn(1)")
    assert place.type == DYN
    for (at, one), (other_at, other) in product(enumerate(CONSTANTS), repeat=2):
        first, second = (shape(Known.of(place, value), {}) for value in (one, other))
        assert (first == second) is (at == other_at), (one, other)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("1 + 2", "1  +  2", True),
        ("1 + 2", "2 + 1", False),
        ("[1, 2].exists(x, x > 1)", "[1, 2].exists(y, y > 1)", True),
        ("[1, 2].exists(x, x > 1)", "[1, 2].all(x, x > 1)", False),
        ("[1, 2].exists(x, x > 1)", "[1, 3].exists(x, x > 1)", False),
        ("cel.bind(x, 1, cel.bind(y, 2, x + y))", "cel.bind(a, 1, cel.bind(b, 2, a + b))", True),
        ("cel.bind(x, 1, cel.bind(y, 2, x + y))", "cel.bind(a, 1, cel.bind(b, 2, b + a))", False),
        ("{'a': 1}", "{'a': 2}", False),
    ],
)
def test_names_and_places_make_no_difference(one: str, other: str, is_same: bool) -> None:
    assert (shape(check(one), {}) == shape(check(other), {})) is is_same
