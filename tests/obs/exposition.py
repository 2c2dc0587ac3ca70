"""Reads Prometheus' text format back, for tests."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


def samples(text: bytes | str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return every sample by its name and labels."""
    written = text if isinstance(text, str) else text.decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(written)
        for sample in family.samples
    }


def value(text: bytes | str, name: str, /, **labels: str) -> float:
    """Return one sample; KeyError where there is none."""
    return samples(text)[name, tuple(sorted(labels.items()))]
