"""Times and durations as texts: RFC 3339 and Go's notation of durations, to the nanosecond."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final

SECOND: Final = 10**9
"""The nanoseconds of a second."""
TIMESTAMP_MIN, TIMESTAMP_MAX = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1
"""The years 1 to 9999, in nanoseconds since the Unix epoch."""
DURATION_MIN, DURATION_MAX = -(2**63), 2**63 - 1

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,  # the Greek letter; above is the micro sign
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_DURATION_PART: Final = re.compile(r"([0-9]{0,20})(?:\.([0-9]{0,20}))?(ns|us|µs|μs|ms|s|m|h)")
_LARGE: Final = (("h", 3600 * SECOND), ("m", 60 * SECOND))
_SMALL: Final = (("ms", 10**6), ("µs", 10**3))


def parse_timestamp(text: str) -> int:
    """Read RFC 3339 as Go does: `T` and `Z` are upper case, digits beyond nanoseconds are dropped.

    Returns nanoseconds since the Unix epoch. Raises ValueError.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"cannot convert {text[:40]!r} to timestamp")
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    fraction, sign, offset_hours, offset_minutes = match.group(7, 8, 9, 10)
    offset = (int(offset_hours) * 3600 + int(offset_minutes) * 60) if sign else 0
    if year == 0 or hour > 23 or minute > 59 or second > 59 or offset >= 86400:
        raise ValueError(f"timestamp out of range: {text[:40]!r}")
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        raise ValueError(f"timestamp out of range: {text[:40]!r}") from None
    seconds = days * 86400 + hour * 3600 + minute * 60 + second + (offset if sign == "-" else -offset)
    found = seconds * SECOND + int((fraction or "")[:9].ljust(9, "0"))
    if not TIMESTAMP_MIN <= found <= TIMESTAMP_MAX:
        raise ValueError("timestamp out of range")
    return found


def parse_duration(text: str) -> int:
    """Read a duration as Go does: signed decimal numbers with units, `1h30m` or `-1.5s`; `0` needs no unit.

    Returns nanoseconds, within 64 bits. Raises ValueError.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest) or at == 0:
        match = _DURATION_PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            raise ValueError(f"cannot convert {text[:40]!r} to duration")
        fraction = match[2] or ""
        # Go truncates each part to nanoseconds.
        total += int((match[1] or "0") + fraction) * _UNITS[match[3]] // 10 ** len(fraction)
        at = match.end()
    if not DURATION_MIN <= sign * total <= DURATION_MAX:
        raise ValueError("duration out of range")
    return sign * total


def go_duration(nanoseconds: int) -> str:
    """Write a duration as Go does: `1h0m0s`, `15m0s`, `2.5s`, `100ms`."""
    if nanoseconds < SECOND:
        for unit, size in _SMALL:
            if nanoseconds >= size:
                return _decimal(nanoseconds, size) + unit
        return f"{nanoseconds}ns" if nanoseconds else "0s"
    text = ""
    for unit, size in _LARGE:
        if nanoseconds >= size or text:
            text += f"{nanoseconds // size}{unit}"
            nanoseconds %= size
    return text + _decimal(nanoseconds, SECOND) + "s"


def _decimal(value: int, unit: int) -> str:
    digits = len(str(unit)) - 1
    return f"{value // unit}.{value % unit:0{digits}}".rstrip("0").rstrip(".")


def to_seconds(now: int) -> str:
    """Write nanoseconds since 1970 as the API does in whole seconds: `2026-11-23T03:28:04Z`."""
    return datetime.fromtimestamp(now // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_microseconds(now: int) -> str:
    """Write nanoseconds since 1970 as the API does in events: `2026-11-23T03:28:03.210025Z`."""
    return f"{to_seconds(now)[:-1]}.{now % SECOND // 1000:06d}Z"
