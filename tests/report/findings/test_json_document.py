from __future__ import annotations

import json

from hypothesis import given, settings
from jsonschema import Draft202012Validator
from kdsl.base.diagnostic import Diagnostic
from kdsl.report.findings import render_findings
from kdsl.report.schemas import output_schema

from tests.report.findings.samples import ALL, FULL, diagnostics

VALIDATOR = Draft202012Validator(output_schema("Findings"))


def test_a_finding() -> None:
    document = json.loads(render_findings([FULL], "json"))
    VALIDATOR.validate(document)
    place = {"path": "teams/ml team/a.kdsl", "line": 3, "column": 7, "endLine": 3, "endColumn": 13}
    (finding,) = document["findings"]
    assert finding["location"] == place
    assert finding["fixes"][0] == {
        "title": "give a default",
        "applicability": "maybe",
        "edits": [{"location": place, "text": "node.?x"}],
    }


def test_the_summary_counts() -> None:
    document = json.loads(render_findings(ALL, "json"))
    assert document["summary"] == {"errors": 2, "warnings": 1}


@settings(max_examples=100, deadline=None)
@given(diagnostics)
def test_every_document_fits_its_schema(findings: list[Diagnostic]) -> None:
    VALIDATOR.validate(json.loads(render_findings(findings, "json")))
