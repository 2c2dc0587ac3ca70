"""Timestamps and durations: their texts and their parts, to the nanosecond."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kdsl.eval.values import (
    SECOND,
    Duration,
    EvalError,
    Timestamp,
    Value,
    checked_duration,
    checked_timestamp,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,  # the Greek letter; above is the micro sign
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_DURATION_PART = re.compile(r"([0-9]{0,20})(?:\.([0-9]{0,20}))?(ns|us|µs|μs|ms|s|m|h)")
_OFFSET = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{1,2})")


def parse_timestamp(text: str) -> Timestamp:
    """Read RFC 3339 as Go does: `T` and `Z` are upper case, digits beyond nanoseconds are dropped."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise EvalError(f"cannot convert {text[:40]!r} to timestamp")
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    fraction, sign, offset_hours, offset_minutes = match.group(7, 8, 9, 10)
    offset = (int(offset_hours) * 3600 + int(offset_minutes) * 60) if sign else 0
    if year == 0 or hour > 23 or minute > 59 or second > 59 or offset >= 86400:
        raise EvalError(f"timestamp out of range: {text[:40]!r}")
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        raise EvalError(f"timestamp out of range: {text[:40]!r}") from None
    seconds = days * 86400 + hour * 3600 + minute * 60 + second + (offset if sign == "-" else -offset)
    return checked_timestamp(seconds * SECOND + int((fraction or "")[:9].ljust(9, "0")))


def _fraction(ns: int) -> str:
    return f".{ns:09d}".rstrip("0").rstrip(".")


def timestamp_text(value: Timestamp) -> str:
    """Return RFC 3339 in UTC, with as many digits of a second as needed."""
    seconds, ns = divmod(value.ns, SECOND)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{_fraction(ns)}Z"


def parse_duration(text: str) -> Duration:
    """Parse Go's form: signed decimal numbers with units, such as `1h30m` or `-1.5s`; `0` needs no unit."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest) or at == 0:
        match = _DURATION_PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            raise EvalError(f"cannot convert {text[:40]!r} to duration")
        fraction = match[2] or ""
        # Go truncates each part to nanoseconds.
        total += int((match[1] or "0") + fraction) * _UNITS[match[3]] // 10 ** len(fraction)
        at = match.end()
    return checked_duration(sign * total)


def duration_text(value: Duration) -> str:
    """Return decimal seconds: `90s`, `-1.5s`."""
    seconds, ns = divmod(abs(value.ns), SECOND)
    return f"{'-' if value.ns < 0 else ''}{seconds}{_fraction(ns)}s"


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is not None:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        # Go reads no name as UTC.
        return ZoneInfo(name) if name not in ("", "UTC") else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvalError(f"unknown time zone: {name[:40]!r}") from None


def _moment(value: Timestamp, zone: str) -> datetime:
    try:
        return (_EPOCH + timedelta(seconds=value.ns // SECOND)).astimezone(_zone(zone))
    except OverflowError:
        raise EvalError("timestamp out of range in that time zone") from None


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda value, zone="UTC": read(_moment(value, zone))


def _whole(unit: int) -> Callable[[Duration], int]:
    """Return a function that counts the whole units of a duration, toward zero."""
    return lambda value: abs(value.ns) // unit * (-1 if value.ns < 0 else 1)


def _milliseconds(value: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)  # an unknown zone is an error; no zone has an offset finer than a second
    return value.ns % SECOND // 1_000_000


def _duration_milliseconds(value: Duration) -> int:
    return abs(value.ns) % SECOND // 1_000_000 * (-1 if value.ns < 0 else 1)


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "getFullYear": _part(lambda moment: moment.year),
    "getMonth": _part(lambda moment: moment.month - 1),
    "getDate": _part(lambda moment: moment.day),
    "getDayOfMonth": _part(lambda moment: moment.day - 1),
    "getDayOfWeek": _part(lambda moment: moment.isoweekday() % 7),
    "getDayOfYear": _part(lambda moment: moment.timetuple().tm_yday - 1),
    "getHours": _part(lambda moment: moment.hour),
    "getMinutes": _part(lambda moment: moment.minute),
    "getSeconds": _part(lambda moment: moment.second),
    "getMilliseconds": _milliseconds,
    "duration_to_hours": _whole(3600 * SECOND),
    "duration_to_minutes": _whole(60 * SECOND),
    "duration_to_seconds": _whole(SECOND),
    "duration_to_milliseconds": _duration_milliseconds,
}
