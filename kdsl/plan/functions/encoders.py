"""CEL's encoder extension, by overload id."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping

from kdsl.plan.values import EvalError, Value, checked_text

_LINE_BREAKS = str.maketrans("", "", "\r\n")


def decode(text: str) -> bytes:
    """Return the bytes of standard base64; padding may be left out, line breaks are passed over as in Go."""
    packed = text.translate(_LINE_BREAKS)
    padded = packed if "=" in packed else packed + "=" * (-len(packed) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise EvalError("invalid base64") from None


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "base64_encode_bytes": lambda value: checked_text(base64.b64encode(value).decode("ascii")),
    "base64_decode_string": decode,
}
