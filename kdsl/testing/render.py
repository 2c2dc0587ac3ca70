"""Results for people, for programs (JSON) and for CI systems (JUnit XML)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree import ElementTree

from kdsl.report.decisions import Json
from kdsl.report.tables import plural
from kdsl.testing.mismatch import Mismatch
from kdsl.testing.running import CaseResult

API_VERSION = "kdsl.dev/v1"


def results_text(results: Sequence[CaseResult], verbose: bool = False) -> str:
    """Return what failed, field by field, and a summary; with `verbose` also what passed."""
    lines: list[str] = []
    for path, group in groupby(results, key=lambda result: str(result.test.path)):
        shown = [result for result in group if verbose or not result.passed]
        if shown:
            lines.append(path)
        for result in shown:
            lines.extend(_case_lines(result))
        if shown:
            lines.append("")
    return "\n".join([*lines, summary_line(results)])


def summary_line(results: Sequence[CaseResult]) -> str:
    """Count what passed and failed."""
    failed = sum(not result.passed for result in results)
    files = plural(len({result.test.path for result in results}), "file")
    passed = f"{len(results) - failed} passed"
    return f"{passed}, {failed} failed in {files}" if failed else f"{passed} in {files}"


def _case_lines(result: CaseResult) -> Iterator[str]:
    if result.passed:
        yield f"  ok    {result.case.name}"
        return
    yield f"  FAIL  {result.case.name}"
    for mismatch in result.mismatches:
        yield f"        {mismatch.field}  ({mismatch.span.site})"
        yield from (f"          {line}" for line in _difference(mismatch))


def _difference(mismatch: Mismatch) -> Iterator[str]:
    yield f"- expected  {mismatch.expected}"
    yield f"+ actual    {mismatch.actual}"
    yield from (f"  {line}" for line in mismatch.trace)


def results_document(results: Sequence[CaseResult], seed: int) -> dict[str, Json]:
    """Return the results as a versioned document. It holds no timing."""
    failed = sum(not result.passed for result in results)
    return {
        "apiVersion": API_VERSION,
        "kind": "RuleTestResults",
        "seed": seed,
        "passed": len(results) - failed,
        "failed": failed,
        "cases": [
            {
                "file": str(result.test.path),
                "line": result.case.span.line,
                "name": result.case.name,
                "subject": result.test.subject.qualified,
                "passed": result.passed,
                "mismatches": [
                    {
                        "field": each.field,
                        "expected": each.expected,
                        "actual": each.actual,
                        "line": each.span.line,
                        "trace": list(each.trace),
                    }
                    for each in result.mismatches
                ],
            }
            for result in results
        ],
    }


def results_junit(results: Sequence[CaseResult]) -> str:
    """Return the results as JUnit XML: a suite for each file, a case for each case."""
    failed = sum(not result.passed for result in results)
    root = ElementTree.Element(
        "testsuites", name="kdsl test", tests=str(len(results)), failures=str(failed), errors="0"
    )
    for path, group in groupby(results, key=lambda result: str(result.test.path)):
        cases = list(group)
        failures = sum(not result.passed for result in cases)
        suite = ElementTree.SubElement(
            root, "testsuite", name=path, tests=str(len(cases)), failures=str(failures), errors="0"
        )
        for result in cases:
            element = ElementTree.SubElement(
                suite,
                "testcase",
                name=_xml(result.case.name),
                classname=result.test.subject.qualified,
                file=path,
                line=str(result.case.span.line),
            )
            if not result.passed:
                message = ", ".join(each.field for each in result.mismatches)
                failure = ElementTree.SubElement(element, "failure", message=_xml(message))
                failure.text = _xml("\n".join(line.strip() for line in _case_lines(result)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Replace what XML cannot hold by its escape."""
    return "".join(each if each in "\t\n" or each.isprintable() else ascii(each)[1:-1] for each in text)
