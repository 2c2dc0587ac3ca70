"""All instruments of a process, and their exposition at a scrape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from kdsl.obs.family import Family, MetricType
from kdsl.obs.instruments import Histogram, LabelledNumbers


class Registry(Collector):
    """Instruments by the name of their family. `before_scrape` functions update their numbers."""

    def __init__(self, families: Iterable[Family], *, is_process_shown: bool = False) -> None:
        self._instruments: dict[str, LabelledNumbers | Histogram] = {
            family.name: Histogram(family) if family.kind is MetricType.HISTOGRAM else LabelledNumbers(family)
            for family in families
        }
        self.before_scrape: list[Callable[[], None]] = []
        self._exposed = CollectorRegistry(auto_describe=False)
        self._exposed.register(self)
        if is_process_shown:
            ProcessCollector(registry=self._exposed)
            PlatformCollector(registry=self._exposed)

    def numbers(self, name: str) -> LabelledNumbers:
        """Return the counter or gauge of a family; raise KeyError if it is not one."""
        found = self._instruments[name]
        if not isinstance(found, LabelledNumbers):
            raise KeyError(name)
        return found

    def histogram(self, name: str) -> Histogram:
        """Return the histogram of a family; raise KeyError if it is not one."""
        found = self._instruments[name]
        if not isinstance(found, Histogram):
            raise KeyError(name)
        return found

    def collect(self) -> Iterator[Metric]:
        """Yield Prometheus metrics from copies: writers continue meanwhile."""
        for update in self.before_scrape:
            update()
        for instrument in self._instruments.values():
            yield _histogram(instrument) if isinstance(instrument, Histogram) else _numbers(instrument)

    def text(self) -> bytes:
        """Return the exposition in Prometheus' text format, version 0.0.4."""
        return generate_latest(self._exposed)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def bound_text(bound: float) -> str:
    """Return the bound of a bucket as Go writes it: `1`, `0.5`, `1.048576e+06`."""
    text: str = floatToGoString(bound)  # type: ignore[no-untyped-call]
    return text.removesuffix(".0")


def _numbers(numbers: LabelledNumbers) -> Metric:
    family = numbers.family
    made: CounterMetricFamily | GaugeMetricFamily
    if family.kind is MetricType.COUNTER:
        made = CounterMetricFamily(family.name, family.help, labels=family.labels)
    else:
        made = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in sorted(numbers.values.copy().items()):
        made.add_metric(labels, value)
    return made


def _histogram(histogram: Histogram) -> Metric:
    family = histogram.family
    made = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    bounds = [bound_text(bound) for bound in (*family.bounds, math.inf)]
    for labels, found in sorted(histogram.values.copy().items(), key=lambda item: item[0]):
        total, buckets = 0, list[tuple[str, float]]()
        for bound, count in zip(bounds, found.counts.copy(), strict=True):
            total += count
            buckets.append((bound, total))
        made.add_metric(labels, buckets, found.sum)
    return made
