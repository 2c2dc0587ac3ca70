"""Times as the API writes them: whole seconds in conditions, microseconds in events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_SECOND: Final = 10**9
_MICROSECOND: Final = 10**3


def to_seconds(now: int) -> str:
    """Write nanoseconds since 1970 as `2026-11-23T03:28:04Z`."""
    return datetime.fromtimestamp(now // _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_microseconds(now: int) -> str:
    """Write nanoseconds since 1970 as `2026-11-23T03:28:03.210025Z`."""
    seconds, rest = divmod(now, _SECOND)
    return f"{to_seconds(seconds * _SECOND)[:-1]}.{rest // _MICROSECOND:06d}Z"
