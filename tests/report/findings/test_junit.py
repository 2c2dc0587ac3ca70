from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given, settings
from kdsl.base.diagnostic import Diagnostic
from kdsl.report.findings import render_findings

from tests.report.findings.samples import ALL, diagnostics
from tests.report.junit_reader import read_junit


def suites(*findings: Diagnostic) -> ElementTree.Element:
    """Parse a report with a strict reader and return its only suite."""
    (suite,) = read_junit(render_findings(findings, "junit"))
    return suite


def test_errors_fail_and_warnings_pass() -> None:
    cases = {case.attrib["name"].partition(":")[0]: case for case in suites(*ALL)}
    failure = cases["K0204"].find("failure")
    assert failure is not None and failure.attrib["type"] == "K0204"
    assert (failure.text or "").startswith("teams/ml team/a.kdsl:3:7\n100% of")
    assert (cases["K0204"].attrib["file"], cases["K0204"].attrib["line"]) == ("teams/ml team/a.kdsl", "3")
    assert cases["K0801"].find("failure") is None
    assert (cases["K0801"].findtext("system-out") or "").startswith("warning: ")
    assert "\\x1b[2J]]> & <b>" in (cases["K1101"].findtext("failure") or "")


def test_no_findings_are_a_test_that_passes() -> None:
    (case,) = suites()
    assert case.attrib["name"] == "no findings" and len(case) == 0


@settings(max_examples=100, deadline=None)
@given(diagnostics)
def test_every_report_is_well_formed(findings: list[Diagnostic]) -> None:
    assert len(suites(*findings)) == max(len(findings), 1)
