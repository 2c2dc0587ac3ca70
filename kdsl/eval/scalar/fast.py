"""Direct forms of calls with known types, which rules make for every node.

Each form has the value of `kdsl.eval.functions`; a test holds them equal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kdsl.check.model.typed import CallOf, TypedExpr
from kdsl.check.model.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    QUANTITY,
    RESOURCES,
    STRING,
    TIMESTAMP,
    UINT,
)
from kdsl.eval.functions.operators import not_equals
from kdsl.eval.ir import Known
from kdsl.eval.scalar.access import is_node_fact
from kdsl.eval.scalar.meter import has_weight, metered
from kdsl.eval.values import Value, checked_int, equals
from kdsl.eval.views import method_name

if TYPE_CHECKING:
    from kdsl.eval.scalar.compiler import Compiler

PLAIN_EQUALITY: Final = frozenset((BOOL, INT, UINT, STRING, BYTES, TIMESTAMP, DURATION))
"""Types for which equality in Python, within the type, is equality in CEL."""
_LOGIC: Final = frozenset(("_&&_", "_||_", "!_", "_?_:_"))
_EXTREMES: Final = {
    "math_greatest_int": (INT, "max"),
    "math_least_int": (INT, "min"),
    "math_greatest_double": (DOUBLE, "max"),
    "math_least_double": (DOUBLE, "min"),
}


def fast_call(expr: CallOf, out: Compiler) -> str | None:
    """Write a call in a special form; None if there is none."""
    if len(expr.args) != 2:
        return None
    left, right = expr.args
    match expr.overload:
        case "add_int64" | "subtract_int64" | "multiply_int64":
            return f"{out.name(checked_int)}{_operation(expr, out)}"
        case "add_double" | "subtract_double" | "multiply_double":
            return _operation(expr, out)
        case "equals" | "not_equals":
            return _equality(expr, out)
        case "in_list" if isinstance(right, Known) and _has_plain_items(left, right):
            return f"({out.text(left)} in {out.name(frozenset(right.value))})"
        case "in_map" if left.type == STRING:
            return f"({out.text(left)} in {out.text(right)}{'.entries' if is_node_fact(right) else ''})"
        case "index_resources":
            return f"{out.text(left)}[{out.text(right)}]"
    type_, extreme = _EXTREMES.get(expr.overload, (None, ""))
    if left.type == right.type == type_:
        # Like CEL, Python returns the first of equal arguments, and the first if one is NaN.
        return f"{extreme}({out.text(left)}, {out.text(right)})"
    return _operation(expr, out) if is_order(expr) else None


def _operation(expr: CallOf, out: Compiler) -> str:
    """Write an operator as that of Python. Quantities compare as their amounts do."""
    left, right = expr.args
    part = ".nanos" if left.type == QUANTITY else ""
    return f"({out.text(left)}{part} {expr.function.strip('_')} {out.text(right)}{part})"


def is_order(expr: CallOf) -> bool:
    """Return whether a call is a comparison that Python makes in the same way."""
    word = expr.overload.partition("_")[0]
    return word in ("less", "greater") and expr.args[0].type == expr.args[1].type != RESOURCES


def is_total(expr: CallOf) -> bool:
    """Return whether a call has a value for all arguments of its types, and takes no steps."""
    types = [arg.type for arg in expr.args]
    if expr.function in _LOGIC:
        return all(each == BOOL for each in types)
    if method_name(expr.function) is not None:
        return not has_weight(expr.function, types)
    if expr.overload in ("equals", "not_equals") or is_order(expr):
        return types[0] == types[1] and (types[0] in PLAIN_EQUALITY or types[0] == QUANTITY)
    match expr.overload, expr.args:
        case "index_resources", _:
            return True
        case "in_list", (value, Known() as items):
            return _has_plain_items(value, items)
        case "in_map", (key, _):
            return key.type == STRING
    return False


def _equality(expr: CallOf, out: Compiler) -> str:
    function, (left, right) = expr.function, expr.args
    if left.type == right.type and (left.type in PLAIN_EQUALITY or left.type == QUANTITY):
        return _operation(expr, out)
    compare: Callable[[Value, Value], bool] = equals if function == "_==_" else not_equals
    if left.type == right.type and left.type.name == "optional" and left.type.args[0] in PLAIN_EQUALITY:
        compare = operator.eq if function == "_==_" else operator.ne
    if has_weight(function, (left.type, right.type)):
        return metered(compare, (left, right), BOOL, out)
    return f"{out.name(compare)}({out.text(left)}, {out.text(right)})"


def _has_plain_items(value: TypedExpr, items: Known) -> bool:
    return value.type in (STRING, INT) and items.type.args == (value.type,)
