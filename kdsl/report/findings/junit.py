"""Findings as a JUnit report, which most systems for continuous integration show as failed tests.

There is no single standard; this is the part on which Jenkins, GitLab and Azure agree. A finding is a test
case of its file: errors fail, warnings pass with an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.visible import visible, visible_lines
from kdsl.report.findings.message import message_lines

_SUITE = "kdsl check"


def junit_text(diagnostics: Sequence[Diagnostic]) -> str:
    """Return a report with a test case for each finding, or one passing case without findings."""
    failures = sum(diagnostic.is_error for diagnostic in diagnostics)
    counts = {"tests": str(len(diagnostics) or 1), "failures": str(failures), "errors": "0", "time": "0"}
    root = ElementTree.Element("testsuites", {"name": _SUITE, **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _SUITE, "skipped": "0", **counts})
    for diagnostic in diagnostics:
        _case(suite, diagnostic)
    if not diagnostics:
        ElementTree.SubElement(suite, "testcase", {"classname": _SUITE, "name": "no findings", "time": "0"})
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _case(suite: ElementTree.Element, diagnostic: Diagnostic) -> None:
    span = diagnostic.span
    file = span.source.path if span else diagnostic.where
    title = visible(diagnostic.title)
    attributes = {"classname": visible(file) or _SUITE, "name": f"{diagnostic.code}: {title}", "time": "0"}
    if span:
        attributes |= {"file": visible(file), "line": str(span.line)}
    case = ElementTree.SubElement(suite, "testcase", attributes)
    # XML cannot contain most control characters: they become escapes.
    text = visible_lines([*([str(span)] if span else []), *message_lines(diagnostic)])
    if diagnostic.is_error:
        kind = {"message": title, "type": str(diagnostic.code)}
        ElementTree.SubElement(case, "failure", kind).text = text
    else:
        ElementTree.SubElement(case, "system-out").text = f"warning: {text}"
