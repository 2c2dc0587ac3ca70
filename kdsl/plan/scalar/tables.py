"""Functions of a few whole numbers, looked up: what one came to is not computed again for the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kdsl.check.model import CheckedFn, ExternalFn
from kdsl.check.typed import CallFn, Comprehension, Const, TypedExpr
from kdsl.check.types import BOOL, INT
from kdsl.check.walk import walk
from kdsl.plan.scalar.frame import Closure, Frame
from kdsl.plan.scalar.meter import spend
from kdsl.plan.values import Value

MAX_ENTRIES: Final = 4096
"""So many results are kept for one call in a rule; then all of them are forgotten."""


def is_tabled(fn: CheckedFn, args: Sequence[TypedExpr], fns: Mapping[str, CheckedFn | ExternalFn]) -> bool:
    """Tell whether a call is worth a table: all but constants are whole numbers or bools, and it loops."""
    if not all(isinstance(arg, Const) or arg.type in (INT, BOOL) for arg in args):
        return False
    loops, pending, seen = False, [fn], {fn.qualified}
    while pending:
        for part in walk(pending.pop().body):
            if isinstance(part, CallFn) and part.fn not in seen:
                called = fns[part.fn]
                if isinstance(called, ExternalFn):
                    return False  # a plugin may answer anything
                seen.add(part.fn)
                pending.append(called)
            loops = loops or isinstance(part, Comprehension)
    return loops


def tabled(call: Closure, args: Sequence[Closure]) -> Closure:
    """Look up what a call comes to by the values of `args`; its steps are paid every time."""
    table: dict[tuple[Value, ...], tuple[Value, int]] = {}

    def look_up(frame: Frame) -> Value:
        values = tuple([arg(frame) for arg in args])
        known = table.get(values)
        if known is not None:
            spend(frame, known[1])
            return known[0]
        left = frame[-1].left
        result = call(frame)
        if len(table) >= MAX_ENTRIES:
            table.clear()
        table[values] = (result, left - frame[-1].left)
        return result

    return look_up
