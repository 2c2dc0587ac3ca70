"""Results for people, for programs (JSON) and for CI systems (JUnit XML)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree import ElementTree

from kdsl.base.visible import visible, visible_lines
from kdsl.report.decisions import Json
from kdsl.report.tables import plural
from kdsl.testing.mismatch import Mismatch
from kdsl.testing.proof import Condition
from kdsl.testing.running import CaseOutcome, CaseResult
from kdsl.testing.search import SECONDS

API_VERSION = "kdsl.dev/v1"


def results_text(results: Sequence[CaseResult], verbose: bool = False, traceback: bool = False) -> str:
    """Return the failed and unproven cases, and a summary; with `verbose` also the passed ones, with
    `traceback` also the places where plugins raised.
    """
    lines: list[str] = []
    for path, group in groupby(results, key=lambda result: str(result.test.path)):
        shown = [each for each in group if verbose or each.outcome is not CaseOutcome.PASSED]
        if shown:
            lines.append(path)
        for result in shown:
            lines.extend(_case_lines(result, traceback))
        if shown:
            lines.append("")
    return visible_lines([*lines, summary_line(results)])


def summary_line(results: Sequence[CaseResult]) -> str:
    """Return the numbers of passed, failed and unproven cases."""
    files = plural(len({result.test.path for result in results}), "file")
    counts = Counter(result.outcome for result in results)
    allowed = sum(bool(result.allowed) for result in results)
    unproven = f"{counts[CaseOutcome.UNPROVEN]} unproven" + (f" ({allowed} allowed)" if allowed else "")
    parts = [
        f"{counts[CaseOutcome.PASSED]} passed",
        *([f"{counts[CaseOutcome.FAILED]} failed"] if counts[CaseOutcome.FAILED] else []),
        *([unproven] if counts[CaseOutcome.UNPROVEN] else []),
    ]
    return f"{', '.join(parts)} in {files}"


def _case_lines(result: CaseResult, traceback: bool = False) -> Iterator[str]:
    match result.outcome:
        case CaseOutcome.PASSED:
            yield f"  ok    {result.case.name}{_seen(result)}"
            return
        case CaseOutcome.UNPROVEN:
            yield f"  open  {result.case.name}"
            yield from (f"        {line}" for line in unproven_lines(result))
            return
    yield f"  FAIL  {result.case.name}"
    for mismatch in result.mismatches:
        yield f"        {mismatch.field}  ({mismatch.span.site})"
        yield from (f"          {line}" for line in _difference(mismatch))
        yield from (f"          {line}" for line in (mismatch.traceback if traceback else ()))


def _seen(result: CaseResult) -> str:
    """Return the evidence of a proof in words."""
    if result.proof is None:
        return ""
    tried = plural(result.proof.tried, "case")
    if not result.proof.conditions:
        return f"  (proven: {tried}; no condition could break it)"
    conditions = plural(len(result.proof.conditions), "condition")
    return f"  (proven: {tried}; {conditions}, each seen true and false)"


def unproven_lines(result: CaseResult) -> Iterator[str]:
    """Yield the conditions without a relevant generated case, with help."""
    proof = result.proof
    # INVARIANT: only properties are unproven.
    assert proof is not None
    total = plural(len(proof.conditions), "condition")
    seed = "" if result.allowed else ", or say `unproven: REASON`"
    if proof.unfinished:
        yield f"unproven: given up after {SECONDS} s and {plural(proof.tried, 'case')}"
    if proof.open:
        yield f"unproven: {plural(proof.tried, 'case')} did not show all values of {total}"
    for each in proof.open:
        point = each.point
        yield f"- {_never(each)}  {point.rule}: {point.what}  {point.span}"
        yield f"    {each.text}"
    if result.allowed:
        yield f"allowed: {result.allowed}"
    elif proof.unfinished:
        yield f"help: make the rules cheaper, or try fewer and smaller clusters with `forall`{seed}"
    else:
        wanted = "make it so" if len(proof.open) == 1 else "make them so"
        yield f"help: add nodes, pods or objects to the fixtures that {wanted}: they are tried first{seed}"


def _never(condition: Condition) -> str:
    if not condition.true and not condition.false:
        return "never reached"
    value, times = ("true", condition.false) if not condition.true else ("false", condition.true)
    return f"never {value} ({'false' if value == 'true' else 'true'} {times:,} times)"


def _difference(mismatch: Mismatch) -> Iterator[str]:
    yield f"- expected  {mismatch.expected}"
    yield f"+ actual    {mismatch.actual}"
    yield from (f"  {line}" for line in mismatch.trace)


def results_document(results: Sequence[CaseResult], seed: int) -> dict[str, Json]:
    """Return the results as a versioned document. It holds no timing."""
    counts = Counter(result.outcome for result in results)
    return {
        "apiVersion": API_VERSION,
        "kind": "RuleTestResults",
        "seed": seed,
        **{outcome.value: counts[outcome] for outcome in CaseOutcome},
        "cases": [_case_document(result) for result in results],
    }


def _case_document(result: CaseResult) -> dict[str, Json]:
    document: dict[str, Json] = {
        "file": str(result.test.path),
        "line": result.case.span.line,
        "name": result.case.name,
        "subject": result.test.subject.qualified,
        "outcome": result.outcome.value,
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
    if result.proof is not None:
        document["proof"] = {
            "tried": result.proof.tried,
            "unfinished": result.proof.unfinished,
            "allowed": result.allowed,
            "conditions": [_condition_document(each) for each in result.proof.conditions],
        }
    return document


def _condition_document(condition: Condition) -> dict[str, Json]:
    point = condition.point
    return {
        "rule": point.rule,
        "what": point.what,
        "file": point.span.source.path,
        "line": point.span.line,
        "column": point.span.column,
        "condition": condition.text,
        "true": condition.true,
        "false": condition.false,
    }


def results_junit(results: Sequence[CaseResult]) -> str:
    """Return the results as JUnit XML: a suite for each file, a case for each case."""
    root = ElementTree.Element(
        "testsuites", name="kdsl test", tests=str(len(results)), failures=_failures(results), errors="0"
    )
    for path, group in groupby(results, key=lambda result: str(result.test.path)):
        cases = list(group)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=visible(path),
            tests=str(len(cases)),
            failures=_failures(cases),
            errors="0",
            skipped=str(sum(bool(result.allowed) for result in cases)),
        )
        for result in cases:
            element = ElementTree.SubElement(
                suite,
                "testcase",
                name=visible(result.case.name),
                classname=visible(result.test.subject.qualified),
                file=visible(path),
                line=str(result.case.span.line),
            )
            if result.outcome is CaseOutcome.UNPROVEN:
                # An allowed one is reported as skipped: it was not shown to hold.
                attributes = {"message": visible(result.allowed or "unproven")}
                if not result.allowed:
                    attributes["type"] = "unproven"
                tag = "skipped" if result.allowed else "failure"
                unproven = ElementTree.SubElement(element, tag, attributes)
                unproven.text = visible_lines(unproven_lines(result))
            elif not result.passed:
                message = ", ".join(each.field for each in result.mismatches)
                failure = ElementTree.SubElement(element, "failure", message=visible(message))
                failure.text = visible_lines(line.strip() for line in _case_lines(result))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _failures(results: Sequence[CaseResult]) -> str:
    return str(sum(not result.passed for result in results))
