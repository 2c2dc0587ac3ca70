"""Parts of timestamps and durations."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

_TIMESTAMP = ("timestamp.(): int", "timestamp.(string): int")

FUNCTIONS: tuple[Function, ...] = (
    declare("getFullYear", "The year; UTC unless a time zone is given.", *_TIMESTAMP),
    declare("getMonth", "The month from 0.", *_TIMESTAMP),
    declare("getDate", "The day of the month from 1.", *_TIMESTAMP),
    declare("getDayOfMonth", "The day of the month from 0.", *_TIMESTAMP),
    declare("getDayOfWeek", "The day of the week, Sunday is 0.", *_TIMESTAMP),
    declare("getDayOfYear", "The day of the year from 0.", *_TIMESTAMP),
    declare(
        "getHours",
        "The hour of the day, or the whole hours of a duration.",
        *_TIMESTAMP,
        {"duration_to_hours": "duration.(): int"},
    ),
    declare(
        "getMinutes",
        "The minute of the hour, or the whole minutes of a duration.",
        *_TIMESTAMP,
        {"duration_to_minutes": "duration.(): int"},
    ),
    declare(
        "getSeconds",
        "The second of the minute, or the whole seconds of a duration.",
        *_TIMESTAMP,
        {"duration_to_seconds": "duration.(): int"},
    ),
    declare(
        "getMilliseconds",
        "The millisecond of the second, of a timestamp or of a duration.",
        *_TIMESTAMP,
        {"duration_to_milliseconds": "duration.(): int"},
    ),
)
