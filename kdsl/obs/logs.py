"""Log lines of a running scheduler, as JSON or as text, through Python's logging.

A call passes its fields as `extra=about(...)`: the decision, the pod, the profile. Values are escaped, so
they cannot end a line or control a terminal.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TextIO

from kdsl.base.visible import visible

ROOT: Final = "kdsl"
"""The root of all kdsl loggers."""
MOST: Final = 8_192
"""The most characters of a value; longer ones are cut and marked as cut."""
_FIELDS: Final = "kdsl_fields"


class LogFormat(StrEnum):
    """The form of log lines, in kube-scheduler's words."""

    TEXT = "text"
    JSON = "json"


def about(**fields: object) -> dict[str, Any]:
    """Return the `extra` of a log call: the fields in order, without empty ones."""
    return {_FIELDS: {name: value for name, value in fields.items() if value is not None and value != ""}}


def configure(form: LogFormat, level: int = logging.INFO, stream: TextIO | None = None) -> logging.Handler:
    """Make all loggers of kdsl, of the event loop and of the HTTP server write in this form to `stream`."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonLines() if form is LogFormat.JSON else TextLines())
    # The HTTP server warns of each request that is none: anybody could fill the log.
    least = {ROOT: level, "asyncio": max(level, logging.WARNING), "uvicorn": max(level, logging.ERROR)}
    for name, own in least.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(own)
        logger.propagate = False
    return handler


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _cut(record.getMessage()),
        }
        for name, value in _fields(self, record).items():
            line.setdefault(name, _json(value))
        # Escape all but ASCII: json leaves C1 controls and bidirectional marks unescaped otherwise.
        return json.dumps(line, ensure_ascii=True)


class TextLines(logging.Formatter):
    """One line of text: time, level, message, and the fields as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        fields = _fields(self, record).items()
        shown = "".join(f" {name}={_quoted(visible(_cut(str(value))))}" for name, value in fields)
        return f"{_time(record)} {record.levelname.lower():7} {visible(_cut(record.getMessage()))}{shown}"


def _fields(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = dict(getattr(record, _FIELDS, {}))
    if record.exc_info:
        fields["error"] = formatter.formatException(record.exc_info)
    return fields


def _time(record: logging.LogRecord) -> str:
    time = datetime.fromtimestamp(record.created, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json(value: object) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_json(each) for each in value[:100]]
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}… ({len(text):,} characters)"


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text or not text else text
