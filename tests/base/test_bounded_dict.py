"""Dictionaries with a bound."""

from __future__ import annotations

from kdsl.base.bounded_dict import BoundedDict


def test_a_full_dictionary_starts_over() -> None:
    kept = BoundedDict[str, int](2)
    assert [kept.keep(each, number) for number, each in enumerate("ab")] == [0, 1]
    assert kept == {"a": 0, "b": 1}
    assert kept.keep("c", 2) == 2
    assert kept == {"c": 2}
