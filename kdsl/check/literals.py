"""Texts that a rule converts while it runs, checked before: `quantity("1GB")` is found when the file is."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.quantity import parse_quantity
from kdsl.check.codes import CheckCode
from kdsl.check.typed import Const, TypedExpr


def check(overload: str, args: Sequence[TypedExpr]) -> Diagnostic | None:
    """Return what is wrong with the constant text that the overload would convert."""
    if overload != "string_to_quantity" or not isinstance(args[0], Const):
        return None
    text = args[0]
    try:
        parse_quantity(str(text.value))
    except ValueError as error:
        title, _, hint = str(error).partition(": ")
        return Diagnostic(
            CheckCode.BAD_TEXT, title, text.span, "not a quantity", help=(hint,) if hint else ()
        )
    return None
