"""The cost of `matches`, `find` and `findAll`, beyond visiting their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.analysis.cost.formula import ONE, Formula
from kdsl.analysis.cost.shapes import Shape
from kdsl.check.model.typed import CallOf
from kdsl.eval.patterns import MAX_COMPILE, MAX_PROGRAM, PAIRS
from kdsl.eval.scalar.meter import CHARACTERS
from kdsl.eval.scalar.searches import pattern_of_rule

_UTF8 = 4
"""The most bytes of a character."""


def cost_of_search(expr: CallOf, args: Sequence[Shape]) -> Formula:
    """Return the steps for compiling a pattern that is no constant, and for looking for it in the text."""
    instructions, compiling = _size_of_pattern(expr)
    # A text that is just short of one more step is that long.
    characters = (args[0].size + 1) * CHARACTERS
    each = characters * -(-instructions * _UTF8 // PAIRS) + 1
    searches = characters + 1 if expr.function == "findAll" else ONE
    return searches * each + compiling


def _size_of_pattern(expr: CallOf) -> tuple[int, int]:
    """Return the most instructions of the pattern, and the most steps for compiling it."""
    constant = pattern_of_rule(expr)
    return (MAX_PROGRAM, MAX_COMPILE + MAX_PROGRAM) if constant is None else (constant.size, 0)
