"""Names, reasons, annotations and what plugins say come from anywhere: no form of output obeys them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from kdsl.base.diagnostic import Diagnostic, Fix, Label
from kdsl.base.span import Source, Span
from kdsl.explain.explanation import Explanation
from kdsl.explain.placement import placement_of
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Code, Status
from kdsl.report.explanation import explanation_text, wide_text
from kdsl.report.findings import FORMATS, MACHINE_FORMATS, render_findings
from kdsl.report.simulation import Simulation, placement_lines, simulation_text
from kdsl.report.tables import table
from msgspec.structs import replace

from tests.report.decisions import PENDING, PLACED
from tests.report.test_simulation import SUMMARY

EVIL = "x\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp\u2066\u2028\x7f\x00\r\nPLACED everything ::error::%0A"
LINE = "PLACED everything"


def assert_harmless(text: str) -> None:
    """No character is obeyed, and no line begins with what only pretends to be one."""
    lines = text.split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.strip().startswith(LINE) for line in lines)
    assert LINE in text


def test_cells() -> None:
    header, row = table(["NAME", "N"], [[EVIL, "1"]])
    assert row.isprintable() and len(row) == len(header) > len(EVIL)


def test_a_simulation() -> None:
    pending = PENDING.with_fields(
        pod=f"shop/{EVIL}", message=EVIL, faults=(Fault(EVIL, EVIL, EVIL, 1, (EVIL,), ((EVIL, 1, EVIL),)),)
    )
    placed = PLACED.with_fields(pod=f"shop/{EVIL}1", node=EVIL, profile=EVIL)
    summary = replace_reasons()
    for wide in (False, True):
        assert_harmless(simulation_text(Simulation([pending, placed], summary), wide))
    assert_harmless("\n".join(placement_lines([placed, pending])))


def replace_reasons() -> object:
    from dataclasses import replace as with_fields

    return with_fields(SUMMARY, reasons={EVIL: 1}, utilisation={EVIL: SUMMARY.utilisation["cpu"]})


def test_an_explanation() -> None:
    status = Status(Code.UNSCHEDULABLE, (EVIL,), EVIL, (EVIL,))
    verdicts = tuple(replace(each, node=EVIL, status=status, feasible=False) for each in PENDING.verdicts)
    decision = PENDING.with_fields(
        pod=f"a/{EVIL}",
        message=EVIL,
        verdicts=verdicts,
        faults=(Fault(EVIL, EVIL, EVIL, 1, (EVIL,), ((EVIL, 1, EVIL),)),),
    )
    explanation = Explanation(decision, None, placement_of(decision))
    for traceback in (False, True):
        assert_harmless(explanation_text(explanation, 100, traceback))
        assert_harmless(wide_text(explanation, traceback=traceback))


SOURCE = Source(f"rules/{EVIL}.kdsl", f"line one\n  {EVIL}\n")
SPAN = Span(SOURCE, 9, 20)
FINDING = Diagnostic(
    "K0101",
    f"bad {EVIL}",
    SPAN,
    EVIL,
    secondary=(Label(SPAN, EVIL),),
    notes=(EVIL,),
    help=(EVIL,),
    fixes=(Fix(EVIL, ()),),
)
NOWHERE = Diagnostic("K1101", f"bad {EVIL}", where=EVIL)


@pytest.mark.parametrize("style", FORMATS)
def test_findings(style: str) -> None:
    text = render_findings([FINDING, NOWHERE], style)
    assert_harmless(text)
    if style in ("json", "sarif"):
        assert EVIL in strings(json.loads(text))
    elif style == "junit":
        ElementTree.fromstring(text)
    elif style == "github":
        assert len(text.split("\n")) == 2
    assert style in MACHINE_FORMATS or "\x1b" not in text


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []


def test_colours_are_the_only_ones() -> None:
    coloured = render_findings([FINDING], "full", colour=True)
    plain = render_findings([FINDING], "full")
    assert coloured != plain and coloured.count("\x1b") == coloured.count("\x1b[")
    assert "\x1b]" not in coloured and "\x1b[2J" not in coloured


def test_a_file_whose_name_is_no_text_has_an_address_in_sarif() -> None:
    source = Source(str(Path("rules") / "\udcff.kdsl"), "x\n")
    text = render_findings([Diagnostic("K0101", "bad", Span(source, 0, 1))], "sarif")
    location = json.loads(text)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "rules/%FF.kdsl"
