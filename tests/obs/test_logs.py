"""Log lines: what they hold, and that nothing in them ends a line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from kdsl.obs.logs import MOST, LogFormat, about, configure

LOGGERS = ("kdsl", "asyncio", "uvicorn")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = {name: (list(logging.getLogger(name).handlers), logging.getLogger(name).level, logging.getLogger(name).propagate) for name in LOGGERS}  # fmt: skip
    yield
    for name, (handlers, level, propagate) in before.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_a_line_of_json() -> None:
    stream = io.StringIO()
    configure(LogFormat.JSON, stream=stream)
    fields = about(decision="i-7", pod="a/b\nc\u202e\x1b[2J", profile="", nodes=3, rules=("x", "y"))
    logging.getLogger("kdsl.live").info("bound %s", "a\nb", extra=fields)
    (line,) = stream.getvalue().splitlines()
    assert line.isascii() and line.isprintable()
    read = json.loads(line)
    assert read.pop("time").endswith("Z")
    assert read == {
        "level": "info", "logger": "kdsl.live", "message": "bound a\nb", "decision": "i-7",
        "pod": "a/b\nc\u202e\x1b[2J", "nodes": 3, "rules": ["x", "y"],
    }  # fmt: skip


def test_a_line_of_text() -> None:
    stream = io.StringIO()
    configure(LogFormat.TEXT, stream=stream)
    logger = logging.getLogger("kdsl.live")
    logger.debug("not shown")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logger.exception("it\x1b broke", extra=about(pod="a/b", reason="no room"))
    (line,) = stream.getvalue().splitlines()
    assert ' error   it\\x1b broke pod=a/b reason="no room" error="Traceback' in line
    assert "two\\nlines" in line


def test_lines_of_the_event_loop_and_of_the_http_server() -> None:
    stream = io.StringIO()
    configure(LogFormat.JSON, stream=stream)
    logging.getLogger("asyncio").error("a task failed\nat\x1b[2J")
    # There is one for each request that is none, whoever sends it.
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logging.getLogger("uvicorn.error").error("an answer failed")
    lines = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert lines == ["a task failed\nat\x1b[2J", "an answer failed"]


def test_a_value_has_a_bound() -> None:
    stream = io.StringIO()
    configure(LogFormat.JSON, stream=stream)
    logging.getLogger("kdsl").warning("x" * 10**6, extra=about(pod="y" * 10**6))
    assert len(stream.getvalue()) < 3 * MOST
