"""Answers of joined plugins."""

from __future__ import annotations

from kdsl.hooks.joined import PreFilterAnswers
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.status import Code, Status

SKIP = Status(Code.SKIP)


def test_plugins_with_nothing_to_do_are_told_by_name() -> None:
    assert PreFilterAnswers.of([("A", SKIP), ("B", SKIP)]) == PreFilterAnswers(skipping=("A", "B"))
    assert PreFilterAnswers.of([]) == PreFilterAnswers()


def test_the_order_of_other_answers_is_kept() -> None:
    answers = (("A", SKIP), ("B", Narrowed(frozenset({"n"}))), ("C", SKIP))
    assert PreFilterAnswers.of(answers) == PreFilterAnswers(answers=answers)
