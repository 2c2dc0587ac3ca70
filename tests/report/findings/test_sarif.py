from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from kdsl.base.diagnostic import Diagnostic
from kdsl.report.findings import render_findings

from tests.cli.command_line import kdsl
from tests.published_schemas import published
from tests.report.findings.samples import ALL, diagnostics

ROOT = Path(__file__).parent.parent.parent.parent
VALIDATOR = published("sarif-2.1.0")


def run_of(*findings: Diagnostic) -> dict[str, Any]:
    log = json.loads(render_findings(findings, "sarif"))
    VALIDATOR.validate(log)
    (run,) = log["runs"]
    return run  # type: ignore[no-any-return]  # json


def test_places_are_those_of_the_text() -> None:
    result = next(each for each in run_of(*ALL)["results"] if each["ruleId"] == "K0204")
    location = result["locations"][0]["physicalLocation"]
    assert location == {
        "artifactLocation": {"uri": "teams/ml%20team/a.kdsl", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3, "startColumn": 7, "endLine": 3, "endColumn": 13},
    }
    assert result["relatedLocations"][0]["message"] == {"text": "the version"}
    assert result["message"]["text"].split("\n") == [
        "100% of `a,b:c` may be missing",
        "a node without it",
        "note: labels are maps",
        "help: guard it",
        "help: give a default",
        "help: leave it out",
    ]


def test_a_fix_says_what_to_replace() -> None:
    (fix,) = next(each for each in run_of(*ALL)["results"] if each["ruleId"] == "K0204")["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 7, "endLine": 3, "endColumn": 13},
            "insertedContent": {"text": "node.?x"},
        }
    ]


def test_rules_are_listed_once_and_pointed_at() -> None:
    run = run_of(*ALL, *ALL)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["K0204", "K0801", "K1101"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert {result["level"] for result in run["results"]} == {"error", "warning"}


def test_an_absolute_path_is_a_file_uri(tmp_path: Path) -> None:
    from kdsl.base.span import Source, Span

    source = Source(str(tmp_path / "a b.kdsl"), "x")
    (result,) = run_of(Diagnostic("K0101", "t", Span(source, 0, 1)))["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": (tmp_path / "a b.kdsl").as_uri()}


def test_no_findings_are_a_run_without_results() -> None:
    assert run_of()["results"] == []


@settings(max_examples=100, deadline=None)
@given(diagnostics)
def test_every_log_fits_the_standard(findings: list[Diagnostic]) -> None:
    assert len(run_of(*findings)["results"]) == len(findings)


def test_what_commands_write_fits_the_standard() -> None:
    broken = sorted((ROOT / "examples" / "broken-rules").glob("*.broken"))
    found = []
    for args in (("check", str(ROOT / "rules")), *(("check", str(path)) for path in broken)):
        ended = kdsl(*args, "--format", "sarif")
        VALIDATOR.validate(log := json.loads(ended.stdout))
        found.append(log["runs"][0]["results"])
        assert ended.exit_code == (1 if found[-1] else 0)
    assert found[0] == [] and all(found[1:])
    assert any(result.get("fixes") for results in found for result in results)


def test_what_lints_find_fits_the_standard(tmp_path: Path) -> None:
    path = tmp_path / "a.kdsl"
    path.write_text("kdsl 1\npackage a\nscore S {\n  let unused = 1\n  value 100 / 3\n}\n")
    ended = kdsl("lint", "--format", "sarif", str(path))
    VALIDATOR.validate(log := json.loads(ended.stdout))
    results = log["runs"][0]["results"]
    assert ended.exit_code == 0 and {result["level"] for result in results} == {"warning"}
    assert any(result.get("fixes") for result in results)
