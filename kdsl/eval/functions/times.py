"""Timestamps and durations: their texts and their parts, to the nanosecond."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kdsl.base.times import SECOND, parse_duration, parse_timestamp
from kdsl.eval.values import Duration, EvalError, Timestamp, Value, reading

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{1,2})")


to_timestamp = reading(lambda text: Timestamp(parse_timestamp(text)))
to_duration = reading(lambda text: Duration(parse_duration(text)))


def _fraction(ns: int) -> str:
    return f".{ns:09d}".rstrip("0").rstrip(".")


def timestamp_text(value: Timestamp) -> str:
    """Return RFC 3339 in UTC, with as many digits of a second as needed."""
    seconds, ns = divmod(value.ns, SECOND)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{_fraction(ns)}Z"


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
