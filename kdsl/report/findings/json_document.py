"""Findings as one JSON document, described by `kdsl schema findings`."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.base.diagnostic import Diagnostic, Fix, Severity
from kdsl.base.span import Span
from kdsl.report.decisions import API_VERSION, Json
from kdsl.report.json_text import json_text


def findings_text(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the document of `findings_document` as text."""
    return json_text(findings_document(diagnostics))


def findings_document(diagnostics: Sequence[Diagnostic]) -> dict[str, Json]:
    """Return diagnostics as a versioned document. Lines and columns begin at 1, an end is exclusive."""
    severities = [diagnostic.severity for diagnostic in diagnostics]
    return {
        "apiVersion": API_VERSION,
        "kind": "Findings",
        "findings": [_finding(diagnostic) for diagnostic in diagnostics],
        "summary": {f"{severity}s": severities.count(severity) for severity in Severity},
    }


def _finding(diagnostic: Diagnostic) -> dict[str, Json]:
    return {
        "code": str(diagnostic.code),
        "severity": str(diagnostic.severity),
        "title": diagnostic.title,
        "label": diagnostic.label,
        "location": None if diagnostic.span is None else _location(diagnostic.span),
        "where": diagnostic.where,
        "secondary": [
            {"location": _location(label.span), "label": label.text} for label in diagnostic.secondary
        ],
        "notes": list(diagnostic.notes),
        "help": list(diagnostic.help),
        "fixes": [_fix(fix) for fix in diagnostic.fixes],
    }


def _fix(fix: Fix) -> dict[str, Json]:
    edits: list[Json] = [{"location": _location(edit.span), "text": edit.text} for edit in fix.edits]
    return {"title": fix.title, "applicability": str(fix.applicability), "edits": edits}


def _location(span: Span) -> dict[str, Json]:
    start, end = span.source.position(span.start), span.source.position(span.end)
    return {
        "path": span.source.path,
        "line": start.line,
        "column": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    }
