"""Fixes for expressions whose types do not fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kdsl.base.diagnostic import Applicability, Edit, Fix
from kdsl.base.quantity import parse_quantity
from kdsl.base.times import parse_duration, parse_timestamp
from kdsl.check.model.typed import CallOf, Const, TypedExpr
from kdsl.check.model.types import (
    BOOL,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    QUANTITY,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    optional_of,
)

_DECIMAL = re.compile(r"\d+\.\d+")
_DATE = re.compile(r"\d{4}-")
_EXACT: Final = 1 << 53
"""Up to here every integer is a double."""
_LARGEST: Final = (1 << 63) - 1
"""The largest `int`."""
_NUMBERS = (INT, UINT, DOUBLE)
# The most likely default of each type.
_EMPTY = {STRING: '""', INT: "0", DOUBLE: "0.0", BOOL: "false", QUANTITY: 'quantity("0")'}


Takes = Callable[[Type, Type], bool]
"""Returns whether an operator or function takes two operands of these types."""


def align_fixes(left: TypedExpr, right: TypedExpr) -> tuple[Fix, ...]:
    """Return the fixes that give two expressions one type by a conversion without loss."""
    if alignment := _alignment(left, right):
        return () if _is_no_time(*alignment) else conversion_fixes(*alignment)
    for one, other in ((left, right), (right, left)):
        if other.type == BOOL and isinstance(one, Const) and one.value in ("true", "false"):
            return _replaced(one, str(one.value))
    return ()


def operand_fixes(left: TypedExpr, right: TypedExpr, takes: Takes) -> tuple[Fix, ...]:
    """Return the fixes that convert an operand so that the operator or function takes both."""
    alignment = _alignment(left, right)
    if alignment is None:
        return align_fixes(left, right)
    expr, wanted = alignment
    if _is_no_time(expr, wanted):
        wanted = DURATION
    types = [wanted if side is expr else side.type for side in (left, right)]
    return conversion_fixes(expr, wanted) if takes(*types) else ()


def _alignment(left: TypedExpr, right: TypedExpr) -> tuple[TypedExpr, Type] | None:
    """Return which of two expressions becomes which type, so that both have one."""
    for one, other in ((left, right), (right, left)):
        is_number = one.type in (INT, DOUBLE) and isinstance(one, Const)
        if other.type == QUANTITY and (one.type == STRING or is_number):
            return one, QUANTITY
        if other.type in (DURATION, TIMESTAMP) and one.type == STRING:
            return one, other.type
        if one.type == INT and other.type == QUANTITY:
            return other, INT
    if left.type in _NUMBERS and right.type in _NUMBERS and left.type != right.type:
        one, other = (left, right) if right.type == DOUBLE else (right, left)
        return one, other.type
    return None


def _is_no_time(expr: TypedExpr, wanted: Type) -> bool:
    """Return whether a text that is to become a timestamp, such as `1h`, is none."""
    return wanted == TIMESTAMP and isinstance(expr, Const) and not _DATE.match(str(expr.value))


def conversion_fixes(expr: TypedExpr, wanted: Type) -> tuple[Fix, ...]:
    """Return the fixes that convert the expression to the type; none where there is no obvious conversion."""
    text = expr.span.text
    number = isinstance(expr, Const) and text.isdigit()
    if wanted == DOUBLE and number:
        new = f"{text}.0"
    elif wanted in _NUMBERS and expr.type in _NUMBERS and wanted != expr.type:
        new = f"{wanted}({text})"
    elif wanted == QUANTITY and (number or (expr.type == DOUBLE and _DECIMAL.fullmatch(text))):
        new = f'quantity("{text}")'
    elif wanted in (QUANTITY, DURATION, TIMESTAMP) and expr.type == STRING:
        new = f"{wanted}({text})"
    elif wanted == INT and expr.type == QUANTITY:
        new = f"{_target(expr)}.asInteger()"
    elif wanted == STRING and number:
        new = f'"{text}"'
    elif expr.type == DYN and wanted in (*_NUMBERS, BOOL, STRING):
        new = f"{wanted}({text})"
    elif wanted == STRING and expr.type in (*_NUMBERS, BOOL, QUANTITY):
        new = f"string({text})"
    else:
        return ()
    if "\n" in new:
        return ()
    # For a computed value the intent is uncertain.
    is_certain = isinstance(expr, Const) and _keeps_its_meaning(expr, wanted)
    applicability = Applicability.CERTAIN if is_certain else Applicability.MAYBE
    return (Fix(f"write `{new}`", (Edit(expr.span, new),), applicability),)


def _keeps_its_meaning(literal: Const, wanted: Type) -> bool:
    """Return whether a literal has the same meaning in the other type: a text may be none of its values, a
    number may be too large for it or have a fraction.
    """
    match literal.value:
        case str(text):
            return _is_text_of(wanted, text)
        case int(number) if wanted == DOUBLE:
            return abs(number) <= _EXACT
        case int(number) if wanted in (INT, UINT):
            return 0 <= number <= _LARGEST
    return literal.type != DOUBLE or wanted not in (INT, UINT)


def _is_text_of(type_: Type, text: str) -> bool:
    """Return whether a conversion to a quantity, duration or timestamp takes the text."""
    parse = {DURATION: parse_duration, TIMESTAMP: parse_timestamp}.get(type_, parse_quantity)
    try:
        parse(text)
    except ValueError:
        return False
    return True


def parsing_fixes(symbol: str, left: TypedExpr, right: TypedExpr) -> tuple[Fix, ...]:
    """Return the fixes that parse a text as the number that it is compared or combined with."""
    for one, other in ((left, right), (right, left)):
        if one.type == optional_of(STRING) and other.type in _NUMBERS:
            return _replaced(one, f'{other.type}({_target(one)}.orValue("0"))')
        if one.type == STRING and other.type in _NUMBERS:
            if symbol == "+":
                return conversion_fixes(other, STRING)
            if not isinstance(one, Const):
                return _replaced(one, _call(other.type, one))
            if isinstance(one.value, str) and one.value.isascii() and one.value.isdigit():
                return _replaced(one, one.value)
    return ()


def optional_fixes(left: TypedExpr, right: TypedExpr) -> tuple[Fix, ...]:
    """Return the fixes that compare the value inside an optional, with a default for an empty one."""
    return default_fixes(left, right.type) or default_fixes(right, left.type)


def default_fixes(expr: TypedExpr, wanted: Type) -> tuple[Fix, ...]:
    """Return the fixes that take a value of the type out of an optional."""
    default = _EMPTY.get(wanted)
    if default is None or expr.type != optional_of(wanted):
        return ()
    return _replaced(expr, f"{_target(expr)}.orValue({default})")


def optional_of_fixes(expr: TypedExpr, wanted: Type) -> tuple[Fix, ...]:
    """Return the fixes that put a value into the optional that is wanted."""
    return _replaced(expr, f"optional.of({expr.span.text})") if wanted == optional_of(expr.type) else ()


def number_fixes(expr: TypedExpr) -> tuple[Fix, ...]:
    """Return the fixes that convert an expression to a number."""
    if expr.type == BOOL:
        is_choice = isinstance(expr, CallOf) and expr.function == "_?_:_"
        return _replaced(expr, f"{_target(expr) if is_choice else expr.span.text} ? 100 : 0")
    if expr.type == optional_of(STRING):
        return _replaced(expr, f'int({_target(expr)}.orValue("0"))')
    if expr.type == STRING:
        return _replaced(expr, _call(INT, expr))
    return conversion_fixes(expr, INT)


def _target(expr: TypedExpr) -> str:
    """Return the text of an expression before a dot: an operator needs parentheses."""
    function = expr.function if isinstance(expr, CallOf) else ""
    is_operator = symbol_of(function) != function and function not in ("_[_]", "_[?_]")
    return f"({expr.span.text})" if is_operator else expr.span.text


def _call(function: Type, expr: TypedExpr) -> str:
    return f"{function}({expr.span.text})"


def _replaced(expr: TypedExpr, new: str) -> tuple[Fix, ...]:
    """Return the fix, marked as uncertain, that replaces the expression by another text."""
    return () if "\n" in new else (Fix(f"write `{new}`", (Edit(expr.span, new),), Applicability.MAYBE),)


def symbol_of(name: str) -> str:
    """Return the symbol of an operator, and any other name unchanged."""
    return "in" if name == "@in" else name.replace("_", "") if name.strip("_!-+*/%<>=&|?:[]") == "" else name
