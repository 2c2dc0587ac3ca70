"""Version requirements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.hooks.requirement import satisfies


@pytest.mark.parametrize(
    ("version", "requirement", "fits"),
    [
        ("1.2.3", ">=1.2,<2", True),
        ("2.0", ">=1.2,<2", False),
        ("1.10", ">1.9", True),
        ("1.0", "==1", True),
        ("1.0.1", "==1", False),
        ("1.0.1", "!=1", True),
        ("1.2rc1", "<=1.2", True),
        ("0.9", " >= 1 ", False),
    ],
)
def test_versions(version: str, requirement: str, fits: bool) -> None:
    assert satisfies(version, requirement) is fits


@pytest.mark.parametrize("requirement", ["", "1.2", "~=1", ">=1,", ">=x", ">= 1.2.*"])
def test_what_is_no_requirement(requirement: str) -> None:
    with pytest.raises(ValueError, match="is no requirement"):
        satisfies("1", requirement)


def test_what_is_no_version() -> None:
    with pytest.raises(ValueError, match="`dev` is no version"):
        satisfies("dev", ">=1")


releases = st.lists(st.integers(0, 99), min_size=1, max_size=4)


@given(releases, releases)
def test_versions_are_ordered_as_their_numbers(left: list[int], right: list[int]) -> None:
    width = max(len(left), len(right))
    one, other = (each + [0] * (width - len(each)) for each in (left, right))
    texts = [".".join(map(str, each)) for each in (left, right)]
    assert satisfies(texts[0], f"<{texts[1]}") is (one < other)
    assert satisfies(texts[0], f"=={texts[1]}") is (one == other)
