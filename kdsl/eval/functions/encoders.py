"""CEL's encoder extension and JSON."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from kdsl.eval.functions.conversions import text_of
from kdsl.eval.nodelist import LISTS
from kdsl.eval.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    EvalError,
    Optional,
    Value,
    checked_text,
    from_key,
    kind_of,
)

_LINE_BREAKS = str.maketrans("", "", "\r\n")


def decode(text: str) -> bytes:
    """Return the bytes of standard base64; padding is optional, line breaks are ignored as in Go."""
    packed = text.translate(_LINE_BREAKS)
    padded = packed if "=" in packed else packed + "=" * (-len(packed) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise EvalError("invalid base64") from None


def decode_json(text: str) -> Value:
    """Return the value of a JSON text; integers beyond int64 are doubles."""
    try:
        return _from_json(_DECODER.decode(text), _PLAIN if _LARGE.search(text) else _PLAIN_OR_INT)
    except (ValueError, RecursionError):
        raise EvalError("invalid JSON") from None


def read_json(text: str) -> Optional:
    """Return the value of a JSON text, none if it is not one."""
    try:
        return Optional(decode_json(text))
    except EvalError:
        return NONE


def _refuse(constant: str) -> Value:
    """Refuse `NaN` and `Infinity`, which Python accepts but JSON does not."""
    raise ValueError(constant)


def _double(value: int) -> float:
    """Return the double of a whole number; infinity beyond the doubles, as for a number with an exponent."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)

_PLAIN: Final[frozenset[type]] = frozenset((str, bool, float, type(None)))
"""The classes of decoded values that are CEL values as they are."""
_PLAIN_OR_INT: Final[frozenset[type]] = _PLAIN | {int}
_LARGE: Final = re.compile(r"\d{19}")
"""An int of fewer digits fits into 64 bits, so it is a CEL value, too."""
DEEPEST_JSON: Final = 100
"""The deepest nesting of a decoded value: comparing and printing it is recursive."""


def _from_json(value: Value, plain: frozenset[type], depth: int = 1) -> Value:
    """Return a decoded value as a CEL value; those of the classes `plain` are."""
    if value.__class__ in plain:
        return value
    if isinstance(value, int):
        return value if INT_MIN <= value <= INT_MAX else _double(value)
    if depth > DEEPEST_JSON:
        raise EvalError(f"JSON of more than {DEEPEST_JSON} levels")
    if isinstance(value, dict):
        # The keys of JSON are texts, and of equal ones the decoder keeps the last.
        return {
            key: item if item.__class__ in plain else _from_json(item, plain, depth + 1)
            for key, item in value.items()
        }
    return tuple([item if item.__class__ in plain else _from_json(item, plain, depth + 1) for item in value])


def encode_json(value: Value) -> str:
    """Return a value as JSON; EvalError for values without a JSON form."""
    return checked_text(json.dumps(_to_json(value), separators=(",", ":"), ensure_ascii=False))


def _to_json(value: Value) -> Value:
    if isinstance(value, Mapping):
        return {text_of(from_key(key)): _to_json(item) for key, item in value.items()}
    if isinstance(value, LISTS):
        return [_to_json(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else value
    raise EvalError(f"no JSON for a {kind_of(value)}")


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "base64.encode": lambda value: checked_text(base64.b64encode(value).decode("ascii")),
    "base64.decode": decode,
    "json.decode": decode_json,
    "json.read": read_json,
    "json.encode": encode_json,
    "json.value": lambda value: value,
}
