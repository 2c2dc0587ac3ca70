"""A family of metrics: its name, type, labels and buckets, without values.

The tables of families (`scheduler_families.py`, `kdsl_families.py`) consist of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class MetricType(StrEnum):
    """The type of a metric, as in the exposition format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Stability(StrEnum):
    """The stability of a name: the first word of its HELP text, as in Kubernetes."""

    STABLE = "STABLE"
    BETA = "BETA"
    ALPHA = "ALPHA"


@dataclass(frozen=True, slots=True)
class Family:
    """A family of metrics. `bounds` are the upper bounds of a histogram's buckets, without +Inf."""

    name: str
    kind: MetricType
    stability: Stability
    about: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def help(self) -> str:
        """The HELP text."""
        return f"[{self.stability}] {self.about}"


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bounds that grow by a factor, multiplied step by step, so that the last digits equal Go's."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


def named(families: Sequence[Family]) -> dict[str, Family]:
    """Return families by name."""
    return {family.name: family for family in families}
