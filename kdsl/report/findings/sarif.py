"""Findings as SARIF 2.1.0, which code scanning and many editors read.

Source: OASIS standard SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/); the function of each
object names its section.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote_from_bytes

from kdsl import __version__
from kdsl.base.diagnostic import Diagnostic, Edit, Fix
from kdsl.base.span import Span
from kdsl.report.code_pages import code_pages, page_markdown, page_text, plain
from kdsl.report.decisions import Json
from kdsl.report.findings.message import message_lines
from kdsl.report.json_text import json_text

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"


def sarif_text(diagnostics: Sequence[Diagnostic]) -> str:
    """Return one log with one run (sections 3.13 and 3.14)."""
    codes = sorted({str(diagnostic.code) for diagnostic in diagnostics})
    run: dict[str, Json] = {
        "tool": {
            "driver": {"name": "kdsl", "version": __version__, "rules": [_rule(code) for code in codes]}
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the folder that kdsl ran in"}}},
        "results": [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in diagnostics],
    }
    log: dict[str, Json] = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_text(log)


def _rule(code: str) -> dict[str, Json]:
    """Return a reportingDescriptor (section 3.49), with the page of the code."""
    page = code_pages().get(code)
    if page is None:
        return {"id": code, "shortDescription": {"text": "kdsl"}}
    return {
        "id": code,
        "shortDescription": {"text": page.section.lower()},
        "fullDescription": {"text": plain(page.cause)},
        "help": {"text": page_text(page), "markdown": page_markdown(page)},
        "helpUri": page.uri,
    }


def _result(diagnostic: Diagnostic, rule_index: int) -> dict[str, Json]:
    """Return a result (section 3.27)."""
    result: dict[str, Json] = {
        "ruleId": str(diagnostic.code),
        "ruleIndex": rule_index,
        "level": str(diagnostic.severity),
        "message": {"text": "\n".join(message_lines(diagnostic))},
    }
    if diagnostic.span:
        result["locations"] = [{"physicalLocation": _physical(diagnostic.span)}]
    elif diagnostic.where:
        result["locations"] = [{"logicalLocations": [{"fullyQualifiedName": diagnostic.where}]}]
    if diagnostic.secondary:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _physical(label.span), "message": {"text": label.text}}
            for number, label in enumerate(diagnostic.secondary)
        ]
    fixes: list[Json] = [_fix(fix) for fix in diagnostic.fixes if fix.edits]
    if fixes:
        result["fixes"] = fixes
    return result


def _physical(span: Span) -> dict[str, Json]:
    """Return a physicalLocation (section 3.29)."""
    return {"artifactLocation": _artifact(span.source.path), "region": _region(span)}


def _artifact(path: str) -> dict[str, Json]:
    """Return an artifactLocation (section 3.4): absolute, or relative to the working directory."""
    if Path(path).is_absolute():
        return {"uri": Path(path).as_uri()}
    return {"uri": quote_from_bytes(os.fsencode(Path(path).as_posix())), "uriBaseId": _ROOT}


def _region(span: Span) -> dict[str, Json]:
    """Return a region (section 3.30); its end is exclusive, like a span's."""
    start, end = span.source.position(span.start), span.source.position(span.end)
    return {
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    }


def _fix(fix: Fix) -> dict[str, Json]:
    """Return a fix (section 3.55) with a change for each edited file."""
    edits: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        edits.setdefault(edit.span.source.path, []).append(edit)
    changes: list[Json] = [
        {
            "artifactLocation": _artifact(path),
            "replacements": [
                {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
                for edit in group
            ],
        }
        for path, group in edits.items()
    ]
    # The standard has only a property bag for this (section 3.8).
    properties: dict[str, Json] = {"applicability": str(fix.applicability)}
    return {"description": {"text": fix.title}, "artifactChanges": changes, "properties": properties}
