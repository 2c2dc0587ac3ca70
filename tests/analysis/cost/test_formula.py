from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.analysis.cost.formula import MAX_DEGREE, MAX_TERMS, UNBOUNDED, ZERO, Formula, total

A, B = Formula.size("a"), Formula.size("b")
NAMES = ("a", "b", "c")
FORMULAS = st.recursive(
    st.one_of(st.integers(0, 9).map(Formula.of), st.sampled_from(NAMES).map(Formula.size)),
    lambda inner: st.one_of(
        st.builds(Formula.__add__, inner, inner), st.builds(Formula.__mul__, inner, inner)
    ),
    max_leaves=5,
)
SIZES = st.fixed_dictionaries({name: st.integers(0, 50) for name in NAMES})


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (ZERO, "0"),
        (Formula.of(1200), "1,200"),
        (A + A + 3, "3 + 2·a"),
        ((A + 1) * (B + 2), "2 + 2·a + b + a·b"),
        (A * A * B, "a^2·b"),
        (UNBOUNDED + A, "unbounded"),
        (UNBOUNDED * ZERO, "0"),
    ],
)
def test_how_they_are_written(formula: Formula, text: str) -> None:
    assert str(formula) == text


@given(FORMULAS, FORMULAS, SIZES)
def test_arithmetic_is_that_of_numbers(left: Formula, right: Formula, sizes: Mapping[str, int]) -> None:
    at = sizes.__getitem__
    one, other = left.at(at), right.at(at)
    assert one is not None and other is not None
    assert (left + right).at(at) == one + other
    assert (left * right).at(at) == one * other
    larger = left.larger(right).at(at)
    assert larger is not None and larger >= max(one, other)


def test_a_formula_that_grows_too_long_is_unbounded() -> None:
    many = [Formula.size(f"s{at}") for at in range(MAX_TERMS + 1)]
    assert total(many[:-1]).is_bounded and not total(many).is_bounded
    power = Formula.of(1)
    for _ in range(MAX_DEGREE):
        power = power * A
    assert power.is_bounded and not (power * A).is_bounded
    assert UNBOUNDED.at(lambda _: 0) is None and UNBOUNDED.names == frozenset()
