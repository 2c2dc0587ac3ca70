"""Parts of timestamps and durations, under CEL's overload ids."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare


def _timestamp_part(word: str) -> dict[str, str]:
    return {
        f"timestamp_to_{word}": "timestamp.(): int",
        f"timestamp_to_{word}_with_tz": "timestamp.(string): int",
    }


def _duration_part(word: str) -> dict[str, str]:
    return {f"duration_to_{word}": "duration.(): int"}


FUNCTIONS: tuple[Function, ...] = (
    declare("getFullYear", "The year; UTC unless a time zone is given.", _timestamp_part("year")),
    declare("getMonth", "The month from 0.", _timestamp_part("month")),
    declare("getDate", "The day of the month from 1.", _timestamp_part("day_of_month_1_based")),
    declare("getDayOfMonth", "The day of the month from 0.", _timestamp_part("day_of_month")),
    declare("getDayOfWeek", "The day of the week, Sunday is 0.", _timestamp_part("day_of_week")),
    declare("getDayOfYear", "The day of the year from 0.", _timestamp_part("day_of_year")),
    declare(
        "getHours",
        "The hour of the day, or the whole hours of a duration.",
        _timestamp_part("hours") | _duration_part("hours"),
    ),
    declare(
        "getMinutes",
        "The minute of the hour, or the whole minutes of a duration.",
        _timestamp_part("minutes") | _duration_part("minutes"),
    ),
    declare(
        "getSeconds",
        "The second of the minute, or the whole seconds of a duration.",
        _timestamp_part("seconds") | _duration_part("seconds"),
    ),
    declare(
        "getMilliseconds",
        "The millisecond of the second, of a timestamp or of a duration.",
        _timestamp_part("milliseconds") | _duration_part("milliseconds"),
    ),
)
