from __future__ import annotations

import re

from hypothesis import given, settings
from kdsl.base.diagnostic import Diagnostic
from kdsl.report.findings import render_findings

from tests.report.findings.samples import ALL, diagnostics

COMMAND = re.compile(r"::(error|warning) ((?:\w+=[^,:\r\n]*,?)+)::([^\r\n]*)")


def test_commands() -> None:
    assert render_findings(ALL, "github").split("\n") == [
        "::error title=error[K1101]::pods.yaml#2: spec: bad \\x1b[2J]]> & <b>",
        "::warning file=teams/ml team/a.kdsl,line=1,endLine=2,title=warning[K0801]::over lines",
        "::error file=teams/ml team/a.kdsl,line=3,endLine=3,col=7,endColumn=13,title=error[K0204]::"
        "100%25 of `a,b:c` may be missing%0Aa node without it%0Anote: labels are maps%0Ahelp: guard it"
        "%0Ahelp: give a default%0Ahelp: leave it out",
    ]
    assert render_findings([], "github") == ""


@settings(max_examples=200, deadline=None)
@given(diagnostics)
def test_no_text_breaks_out_of_its_command(findings: list[Diagnostic]) -> None:
    text = render_findings(findings, "github")
    lines = re.split(r"[\r\n]", text) if text else []
    assert len(lines) == len(findings)
    assert all(COMMAND.fullmatch(line) for line in lines)
