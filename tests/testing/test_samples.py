"""Texts that patterns match are found soon, whatever the pattern is."""

from __future__ import annotations

import pytest
from kdsl.testing.samples import example

from tests.attacks.layouts import soon


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^v[0-9]+rc[0-9]$", "v0rc0"),
        (r"a{3}(b|c)?\d", "aaa0"),
        (r"\Aml-\w+\z", "ml-a"),  # RE2's end of the text
        ("(?i)GOLD", "GOLD"),
        (r"a\bb", None),
        ("a{200}", None),
        ("(", None),
    ],
)
def test_an_example(pattern: str, text: str | None) -> None:
    assert example(pattern) == text


@pytest.mark.parametrize("pattern", [r"(a{60}|a|a)+\bb", r"((a{40})|(a|a))*\Bz\z", r"(a{30}|a*)*\b\Bb"])
def test_no_pattern_is_tried_without_end(pattern: str) -> None:
    assert soon(lambda: example(pattern)) in (None, "a" * 60 + "b")
