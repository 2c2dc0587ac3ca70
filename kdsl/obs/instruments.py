"""Counts and histograms in plain numbers: adding to one is a dictionary entry, and nothing is locked.

One thread writes to each family; a scrape reads copies. Prometheus objects are made at the scrape
(`registry.py`): one of its counters costs more than all counts of a decision.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from kdsl.obs.family import Family, MetricType

Labels = tuple[str, ...]
MAX_SERIES: Final = 2_000
"""The most label values of one family. Further ones are counted together, under `(other)`."""
OTHER: Final = "(other)"


class LabelledNumbers:
    """The numbers of a counter or gauge, by the values of its labels in their order."""

    __slots__ = ("family", "values")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[Labels, float] = {}
        if not family.labels and family.kind is MetricType.COUNTER:
            self.values[()] = 0

    def add(self, labels: Labels = (), amount: float = 1) -> None:
        """Add to the number."""
        values = self.values
        if labels in values:
            values[labels] += amount
        else:
            labels = self._room_for(labels)
            values[labels] = values.get(labels, 0) + amount

    def set(self, value: float, labels: Labels = ()) -> None:
        """Set the number."""
        self.values[labels if labels in self.values else self._room_for(labels)] = value

    def remove(self, labels: Labels) -> None:
        """Remove the number, if there is one."""
        self.values.pop(labels, None)

    def replace(self, values: dict[Labels, float]) -> None:
        """Replace all numbers of the family."""
        self.values = dict(list(values.items())[:MAX_SERIES])

    def _room_for(self, labels: Labels) -> Labels:
        return labels if len(self.values) < MAX_SERIES else (OTHER,) * len(labels)


class Distribution:
    """The number of values in each bucket, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.sum = 0.0


class Histogram:
    """Distributions of values by the values of labels."""

    __slots__ = ("_bounds", "family", "values")

    def __init__(self, family: Family) -> None:
        self.family = family
        self._bounds = family.bounds
        self.values: dict[Labels, Distribution] = {}
        if not family.labels:
            self.values[()] = Distribution(len(family.bounds))

    def observe(self, value: float, labels: Labels = ()) -> None:
        """Add a value."""
        found = self.values.get(labels)
        if found is None:
            labels = labels if len(self.values) < MAX_SERIES else (OTHER,) * len(labels)
            found = self.values.setdefault(labels, Distribution(len(self._bounds)))
        found.counts[bisect_left(self._bounds, value)] += 1
        found.sum += value
