"""Conversions between types. Texts of numbers are Go's, as in the reference CEL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from kdsl.base.times import SECOND
from kdsl.check.library import LIBRARY
from kdsl.check.model.types import Type
from kdsl.eval.functions.times import duration_text, timestamp_text, to_duration, to_timestamp
from kdsl.eval.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    EvalError,
    UInt,
    Value,
    checked_int,
    checked_timestamp,
    checked_uint,
    kind_of,
)

_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_INT = re.compile(r"[+-]?[0-9]+")
_UINT = re.compile(r"[0-9]+")
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)
_LONGEST_NUMBER = 400


def _number(text: str, pattern: re.Pattern[str], kind: str) -> str:
    if len(text) > _LONGEST_NUMBER or pattern.fullmatch(text) is None:
        raise EvalError(f"cannot convert {text[:40]!r} to {kind}")
    return text


def string_to_bool(text: str) -> bool:
    if text in _BOOLS:
        return _BOOLS[text]
    raise EvalError(f"cannot convert {text[:40]!r} to bool")


def double_to_int(value: float) -> int:
    """Truncate toward zero. The ends of the range are refused: a double may stand for a value beyond."""
    if not INT_MIN < value < INT_MAX + 1:
        raise EvalError("integer overflow: double out of range")
    return int(value)


def double_to_uint(value: float) -> UInt:
    if not 0.0 <= value < UINT_MAX + 1:
        raise EvalError("unsigned integer overflow: double out of range")
    return UInt(int(value))


def string_to_double(text: str) -> float:
    """Read a double as Go does: a number beyond the largest double is an error."""
    value = float(_number(text, _DOUBLE, "double"))
    if math.isinf(value) and "n" not in text.lower():
        raise EvalError(f"{text[:40]!r} is out of range for double")
    return value


def double_text(value: float) -> str:
    """Return the shortest text that reads back as `value`; exponents below 1e-4 and from 1e6, as in Go."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    number = Decimal(repr(value)).normalize()
    if -4 <= number.adjusted() < 6:
        return f"{number:f}"
    mantissa, _, exponent = f"{number:e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def bytes_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None


def string_to_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise EvalError("the string holds a surrogate, cannot convert to bytes") from None


def type_of(value: Value) -> Type:
    return Type(kind_of(value))


def _same(value: Value) -> Value:
    return value


_TEXTS: Mapping[str, Callable[[Value], str]] = {
    "string": _same,
    "bool": lambda value: "true" if value else "false",
    "int": lambda value: str(int(value)),
    "uint": lambda value: str(int(value)),
    "double": double_text,
    "bytes": bytes_text,
    "timestamp": timestamp_text,
    "duration": duration_text,
    "quantity": str,
    "semver": str,
    "ip": str,
    "cidr": str,
}


def text_of(value: Value) -> str:
    """Return the result of `string(value)`; types without a text are an error."""
    kind = kind_of(value)
    if kind not in _TEXTS:
        raise EvalError("no such overload: string")
    return _TEXTS[kind](value)


_SAME = ("bool", "bytes", "double", "duration", "int64", "timestamp", "uint64")

IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    **{f"{kind}_to_{kind}": _same for kind in _SAME},
    **{overload.id: _TEXTS[overload.args[0].name] for overload in LIBRARY["string"].overloads},
    "bool": string_to_bool,
    "bytes": string_to_bytes,
    "double": float,
    "string_to_double": string_to_double,
    "duration": to_duration,
    "dyn": _same,
    "uint64_to_int64": lambda value: checked_int(int(value)),
    "double_to_int64": double_to_int,
    "string_to_int64": lambda text: checked_int(int(_number(text, _INT, "int"))),
    "timestamp_to_int64": lambda value: value.ns // SECOND,
    "string_to_timestamp": to_timestamp,
    "int64_to_timestamp": lambda seconds: checked_timestamp(seconds * SECOND),
    "type": type_of,
    "int64_to_uint64": checked_uint,
    "double_to_uint64": double_to_uint,
    "string_to_uint64": lambda text: checked_uint(int(_number(text, _UINT, "uint"))),
}
