"""The parts that both modes of a replay use: the cards of pods, and the recorded clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kdsl.app import devices_in_use
from kdsl.base.clock import ManualClock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.explain.differences import Cards
from kdsl.sim.comparison import Side


def cards_in(annotations: Mapping[str, str] | None, keys: Iterable[str]) -> Cards:
    """Return the records of cards among annotations."""
    found = annotations or {}
    return {key: found[key] for key in sorted(keys) if key in found}


class GivenAnnotations(MemoryAnnotations):
    """Annotations in memory, with those that each placed pod got."""

    def __init__(self, cluster: ClusterCache) -> None:
        super().__init__(cluster)
        self.given: dict[str, Mapping[str, str]] = {}

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Set the annotations of the assumed pod."""
        self.given[pod.key] = annotations
        super().assume(pod, annotations)


def set_clock(clock: ManualClock, time: int) -> None:
    """Move a clock to a recorded time; one that runs backwards stays."""
    clock.advance(max(0, time - clock.now()))


def card_keys(schedulers: Collection[str], *sides: Side | None) -> frozenset[str]:
    """Return the annotations that record the cards of pods of these schedulers under any of the sides."""
    used = (devices_in_use(side.rules, side.settings, schedulers) for side in sides if side is not None)
    return frozenset(key for devices in used for each in devices for key in each.records)
