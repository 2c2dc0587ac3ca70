"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class AnalysisCode(StrEnum):
    """Errors that only the evaluation of checked expressions finds."""

    NO_VALUE = "K0218"  # an expression that always fails
    TEAM_OVERLAP = "K0421"  # two teams that own one pod with equal priority
