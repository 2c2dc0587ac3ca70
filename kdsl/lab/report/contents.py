"""The contents of a report, before they are written in any form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdsl.lab.report.evidence import Evidence
from kdsl.lab.report.plots import Looks, Plot
from kdsl.lab.report.study import Study


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a report. `explain` is the start of the command that explains a decision, if there is
    one.
    """

    study: Study
    evidence: Evidence
    looks: Looks
    plots: Sequence[Plot]
    explain: str | None = None
