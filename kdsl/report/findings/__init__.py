"""Diagnostics in a chosen form: for people, for editors, for continuous integration.

`kdsl check` and `kdsl lint` print through `render_findings`. Each form for machines has a module here; those
for people are in `kdsl.report.diagnostics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kdsl.base.diagnostic import Diagnostic
from kdsl.report.diagnostics import in_order, render
from kdsl.report.findings.github import github_text
from kdsl.report.findings.json_document import findings_text
from kdsl.report.findings.junit import junit_text
from kdsl.report.findings.sarif import sarif_text

TEXT_FORMATS = ("full", "concise")
MACHINE_FORMATS: Mapping[str, Callable[[Sequence[Diagnostic]], str]] = {
    "json": findings_text,
    "sarif": sarif_text,
    "junit": junit_text,
    "github": github_text,
}
FORMATS = (*TEXT_FORMATS, *MACHINE_FORMATS)


def render_findings(diagnostics: Iterable[Diagnostic], format: str, colour: bool = False) -> str:
    """Return diagnostics in one of `FORMATS`, sorted by place, without a line break at the end.

    Without findings, `full`, `concise` and `github` are empty texts and the others whole documents.
    """
    ordered = in_order(diagnostics)
    if format in MACHINE_FORMATS:
        return MACHINE_FORMATS[format](ordered)
    return render(ordered, format, colour)
