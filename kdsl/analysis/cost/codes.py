"""The codes of the diagnostics of this package, each with its meaning: the docs list them."""

from __future__ import annotations

from enum import StrEnum


class CostCode(StrEnum):
    """K0503 and up: what rules cost against what the configuration allows."""

    DEAR_RULE = "K0503"  # a rule that may take more for a node than the configuration allows
    DEAR_PROFILE = "K0504"  # a profile whose rules together may take more than the configuration allows
    TOO_MANY_FILES = "K0505"  # more rule files than the configuration allows
