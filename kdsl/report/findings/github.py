"""Findings as workflow commands of GitHub Actions, which shows them beside the lines of a pull request.

Source of the syntax: https://docs.github.com/actions/reference/workflow-commands-for-github-actions; of the
escapes: `command.ts` of actions/toolkit.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.base.visible import visible, visible_lines
from kdsl.report.findings.message import message_lines


def github_text(diagnostics: Sequence[Diagnostic]) -> str:
    """Return one `::error` or `::warning` command per finding."""
    return "\n".join(_command(diagnostic) for diagnostic in diagnostics)


def _command(diagnostic: Diagnostic) -> str:
    properties = {**_place(diagnostic.span), "title": f"{diagnostic.severity}[{diagnostic.code}]"}
    written = ",".join(f"{key}={_escape_property(visible(str(value)))}" for key, value in properties.items())
    message = visible_lines(message_lines(diagnostic))
    return f"::{diagnostic.severity} {written}::{_escape(message)}"


def _place(span: Span | None) -> dict[str, str | int]:
    if span is None:
        return {}
    start, end = span.source.position(span.start), span.source.position(span.end)
    place: dict[str, str | int] = {"file": span.source.path, "line": start.line, "endLine": end.line}
    # GitHub refuses columns for a finding of several lines.
    if start.line == end.line:
        place |= {"col": start.column, "endColumn": end.column}
    return place


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
