"""The codes of this layer's diagnostics, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class AnalysisCode(StrEnum):
    """Errors that only the evaluation of checked expressions finds."""

    NO_VALUE = "K0218"  # an expression that always fails
    TEAM_OVERLAP = "K0421"  # two teams that own one pod with equal priority


class CostCode(StrEnum):
    """K0503 and up: the cost of rules against the limits of the configuration."""

    DEAR_RULE = "K0503"  # a rule that may exceed the limit per node
    DEAR_PROFILE = "K0504"  # a profile whose rules together may exceed the limit
    TOO_MANY_FILES = "K0505"  # more rule files than the configuration allows
