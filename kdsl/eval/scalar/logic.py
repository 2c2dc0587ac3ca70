"""Operators that may skip arguments: `&&`, `||`, `?:`, and `or` and `orValue` of optionals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kdsl.check.model.typed import CallOf, Const, TypedExpr
from kdsl.check.model.types import BOOL, DYN
from kdsl.eval.functions.dispatch import dispatcher
from kdsl.eval.ir import operands
from kdsl.eval.scalar.frame import failing
from kdsl.eval.values import EvalError, Optional, Value, kind_of

if TYPE_CHECKING:
    from kdsl.eval.scalar.compiler import Compiler


def truth(expr: TypedExpr, out: Compiler) -> str:
    """Write a condition: its value is a bool, or reading it is an error."""
    text = out.text(expr)
    return text if expr.type == BOOL else f"{out.name(checked_truth)}({text})"


def checked_truth(value: Value) -> bool:
    """Return the value of a condition of type dyn; EvalError if it is no bool."""
    if value is True or value is False:
        return value
    raise EvalError(f"no such overload: a condition of type {kind_of(value)}")


def _joined(expr: CallOf, out: Compiler, word: str) -> str:
    """Write `&&` or `||`: an operand that decides makes up for errors in the others."""

    def lines() -> list[str]:
        found = ["e = None"]
        for condition in operands(expr):
            found += deciding(truth(condition, out), word == "or")
        return [*found, *undecided(word == "or")]

    return out.function(lines)


def deciding(condition: str, result: bool) -> list[str]:
    """Return lines that return `result` if the condition has that value, and keep the first error in `e`:
    without its traceback, which would refer to the frame of `e`.
    """
    decision = f"if {condition if result else f'not {condition}'}: return {result}"
    return ["try:", f"  {decision}", "except EvalError as x:", "  e = e or x.with_traceback(None)"]


def undecided(result: bool) -> list[str]:
    """Return the lines after all of `deciding`: raise the first error, else return the other result."""
    return ["try:", "  if e is not None: raise e", "finally: e = None", f"return {not result}"]


def _conditional(expr: CallOf, out: Compiler) -> str:
    condition, then, otherwise = truth(expr.args[0], out), out.text(expr.args[1]), out.text(expr.args[2])
    return f"({then} if {condition} else {otherwise})"


def checked_optional(value: Value) -> Optional:
    """Return a value that has to be an optional; EvalError if it is none."""
    if value.__class__ is Optional:
        return value
    raise EvalError(f"no such overload: {kind_of(value)} is not an optional")


def _first_present(expr: CallOf, out: Compiler) -> str:
    if len(expr.args) != _WITH_RECEIVER:
        return _wrong_number(expr, out)

    def lines() -> list[str]:
        check, left, right = out.name(checked_optional), *map(out.text, expr.args)
        return [f"o = {check}({left})", f"return o if o.present else {check}({right})"]

    return out.function(lines)


def _or_value(expr: CallOf, out: Compiler) -> str:
    if len(expr.args) != _WITH_RECEIVER:
        return _wrong_number(expr, out)
    left, right = expr.args
    match left:
        case CallOf(function="_[?_]", args=(entries, Const(value=str(key)))) if entries.type.name == "map":
            # An entry of a map, read without making an optional.
            if isinstance(right, Const):
                return f"{out.text(entries)}.get({out.name(key)}, {out.text(right)})"
            return out.function(
                lambda: [
                    f"v = {out.text(entries)}.get({out.name(key)}, UNSET)",
                    f"return {out.text(right)} if v is UNSET else v",
                ]
            )
        case CallOf(function="_[?_]", args=(entries, Const(value=str(key)))) if entries.type == DYN:
            # The hot path: JSON objects, without the choice of an overload.
            def lines_of_dyn() -> list[str]:
                otherwise, find = out.text(right), out.name(dispatcher("_[?_]", member=False))
                return [
                    f"c = {out.text(entries)}",
                    "if c.__class__ is dict:",
                    f"  v = c.get({out.name(key)}, UNSET)",
                    f"  return {otherwise} if v is UNSET else v",
                    f"o = {out.name(checked_optional)}({find}(c, {out.name(key)}))",
                    f"return o.value if o.present else {otherwise}",
                ]

            return out.function(lines_of_dyn)

    def lines() -> list[str]:
        found = f"o = {out.name(checked_optional)}({out.text(left)})"
        return [found, f"return o.value if o.present else {out.text(right)}"]

    return out.function(lines)


def _wrong_number(expr: CallOf, out: Compiler) -> str:
    """Fail at the call: the types, and so the number of arguments, are known only at run time."""
    return out.call(failing(f"no such overload: {expr.function} with {len(expr.args)} arguments"))


_WITH_RECEIVER: Final = 2
LAZY: Final[Mapping[str, Callable[[CallOf, Compiler], str]]] = {
    "_&&_": partial(_joined, word="and"),
    "_||_": partial(_joined, word="or"),
    "_?_:_": _conditional,
    "or": _first_present,
    "orValue": _or_value,
}
"""The writers of these functions."""
