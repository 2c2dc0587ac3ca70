"""Early checks of constant texts that a conversion would reject at run time, such as `quantity("1GB")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.quantity import parse_quantity
from kdsl.base.semver import parse_semver
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.typed import Const, TypedExpr

_PARSERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "string_to_quantity": ("not a quantity", parse_quantity),
    "string_to_semver": ("not a semantic version", parse_semver),
}


def check(overload: str, args: Sequence[TypedExpr]) -> Diagnostic | None:
    """Return the error in the constant text that the overload would convert."""
    if overload not in _PARSERS or not isinstance(args[0], Const):
        return None
    text = args[0]
    label, parse = _PARSERS[overload]
    try:
        parse(str(text.value))
    except ValueError as error:
        title, _, hint = str(error).partition(": ")
        return Diagnostic(CheckCode.BAD_TEXT, title, text.span, label, help=(hint,) if hint else ())
    return None
