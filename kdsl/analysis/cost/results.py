"""The sizes of the results of functions, from the sizes of their arguments; and the cost of searches."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.analysis.cost.formula import ONE, Formula, total
from kdsl.analysis.cost.shapes import SCALAR, Shape, largest, shape_up_to
from kdsl.check.model.typed import CallOf
from kdsl.eval.functions.collections import LONGEST_RANGE
from kdsl.eval.functions.formatting import MAX_PRECISION
from kdsl.eval.patterns import MAX_COMPILE, MAX_PROGRAM, PAIRS
from kdsl.eval.scalar.meter import CHARACTERS
from kdsl.eval.scalar.searches import pattern_of_rule

_PARTS = frozenset(("_[_]", "_[?_]", "sum", "min", "max"))
"""Functions that return an item of a list or map; there is no `sum` of texts."""
_AS_LARGE = frozenset(
    (
        "value",
        "optional.of",
        "optional.ofNonZeroValue",
        "dyn",
        "string",
        "bytes",
        "charAt",
        "substring",
        "trim",
    )
) | frozenset(("reverse", "lowerAscii", "upperAscii", "find", "distinct", "sort", "@sortBy", "slice"))
"""Functions whose result is no larger than their first argument, if that has the same type."""
_LONGEST_NUMBER = MAX_PRECISION // CHARACTERS + 24
"""A formatted number, in steps: the digits of the largest double and of the precision."""
_ESCAPED = 8
"""The largest factor by which escaping and encoding lengthen a text."""
_UTF8 = 4
"""The most bytes of a character."""


def shape_of_result(expr: CallOf, args: Sequence[Shape]) -> Shape:
    """Return the shape of a call's value."""
    first = args[0] if args else SCALAR
    match expr.function:
        case "_?_:_":
            return args[1].larger(args[2])
        case "or" | "orValue":
            return largest(list(args))
        case "_+_" if len(args) == 2:
            # Two texts that are each a step short of one more are one more together.
            joined = args[0].joined(args[1])
            return Shape(joined.size + 1) if expr.type.name in ("string", "bytes") else joined
        case "lists.range":
            return Shape(Formula.of(LONGEST_RANGE))
        case "replace":
            return Shape((first.size + 1) * (args[2].size + 1) * (CHARACTERS + 1))
        case "split" | "findAll":
            return Shape((first.size + 1) * CHARACTERS, Shape(first.size))
        case "join":
            separator = args[1].size if len(args) > 1 else Formula()
            return Shape(first.weight + first.size * (separator + 1))
        case "format":
            items = args[1].weight if len(args) > 1 else ONE
            return Shape(first.size + (items + 1) * (_LONGEST_NUMBER + _ESCAPED))
        case function if function in _PARTS and args:
            return first.inside
        case function if function in _AS_LARGE and args and expr.args[0].type in (expr.type, *expr.type.args):
            return first
    whole = total(arg.weight for arg in args) + 1
    if expr.type.name in ("string", "bytes"):
        return Shape(whole * _ESCAPED)
    return shape_up_to(expr.type, whole * CHARACTERS)


def cost_of_search(expr: CallOf, args: Sequence[Shape]) -> Formula:
    """Return the cost of `matches`, `find` and `findAll`, beyond visiting their arguments: the steps for
    compiling a pattern that is no constant, and for searching the text.
    """
    constant = pattern_of_rule(expr)
    instructions, compiling = (
        (MAX_PROGRAM, MAX_COMPILE + MAX_PROGRAM) if constant is None else (constant.size, 0)
    )
    # A text that is just short of one more step is that long.
    characters = (args[0].size + 1) * CHARACTERS
    each = characters * -(-instructions * _UTF8 // PAIRS) + 1
    searches = characters + 1 if expr.function == "findAll" else ONE
    return searches * each + compiling
