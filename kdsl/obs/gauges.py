"""Gauges that a scrape is made of as a whole: made anew each time, with as many series as there are things.

The families of a running scheduler are in `registry`; these are for who shows a large cluster as it is now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family: its name, its HELP text, the names of its labels, and its numbers with their labels."""

    name: str
    about: str
    labels: tuple[str, ...]
    values: list[tuple[tuple[str, ...], float]] = field(default_factory=list)


def exposition(gauges: Iterable[Gauge]) -> bytes:
    """Return gauges in Prometheus' text format, version 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(gauges))
    return generate_latest(registry)


class _Once(Collector):
    def __init__(self, gauges: Iterable[Gauge]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        for gauge in self._gauges:
            family = GaugeMetricFamily(gauge.name, gauge.about, labels=gauge.labels)
            for labels, value in gauge.values:
                family.add_metric(labels, value)
            yield family
