"""The records of cards in the annotations of pods, and those that cannot be read.

A pod has no cards by a record that cannot be read, as in HAMi. Decisions about cards report such records, and
those with a word where a card should be. A record of a card that its node does not have is not reported:
nodes lose cards while pods run, and register them later than pods arrive.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from kdsl.cluster.devices.cards import DeviceGrant
from kdsl.cluster.devices.codec import held, shown, stray
from kdsl.cluster.devices.pods import DevicePod, Phase
from kdsl.cluster.devices.usage import Holding
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot

MOST: Final = 1_000
"""The largest number of pods with unreadable records that are kept; every decision about cards visits them.
"""
SHOWN: Final = 20
_NOTHING: Final[Mapping[str, tuple[DeviceGrant, ...]]] = MappingProxyType({})
_LONG: Final = 2048
_ALL: Final = "this record counts for nothing"


def device_pod(pod: PodInfo) -> DevicePod:
    """Return a pod as device rules read it."""
    return DevicePod(
        pod.name,
        pod.namespace,
        pod.uid,
        pod.labels,
        pod.annotations,
        containers=pod.device_containers,
        requests=pod.requests,
    )


class CardRecords:
    """The reader of records of cards; `keys` are their annotations by kind of device."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys, self._names = keys, frozenset(keys.values())
        self._unreadable: OrderedDict[str, tuple[PodInfo, tuple[str, ...]]] = OrderedDict()

    def grants(self, pod: PodInfo) -> Mapping[str, tuple[DeviceGrant, ...]]:
        """Return the cards of a pod by kind."""
        annotations = pod.annotations
        names = self._names.intersection(annotations) if annotations else ()
        if not names:
            return _NOTHING
        phases = tuple(each.phase for each in pod.device_containers)
        grants: dict[str, tuple[DeviceGrant, ...]] = {}
        problems: list[str] = []
        for kind, key in self._keys.items():
            if key in names:
                record = annotations[key]
                # Long records are not kept: 65,536 of them would be too much memory.
                read = _read if len(record) > _LONG else _read_kept
                found, problem = read(record, phases)
                if problem:
                    problems.append(f"pod {pod.key}: annotation {key}: {problem}")
                if found:
                    grants[kind] = found
        if problems and pod.node_name:
            self._unreadable[pod.key] = (pod, tuple(problems))
            if len(self._unreadable) > MOST:
                self._unreadable.popitem(last=False)
        return grants

    def holdings(self, pods: Iterable[PodInfo]) -> list[Holding]:
        """Return the pods that have cards, with their cards."""
        return [Holding(device_pod(pod), grants) for pod in pods if (grants := self.grants(pod))]

    def problems(self, snapshot: Snapshot) -> list[str]:
        """Return the unreadable records of pods that are still there; those of other pods are forgotten."""
        found: list[str] = []
        for key, (pod, problems) in tuple(self._unreadable.items()):
            if _is_there(pod, snapshot):
                found += problems
            else:
                self._unreadable.pop(key, None)
        rest = len(found) - SHOWN
        return found if rest <= 0 else [*found[:SHOWN], f"{rest:,} more records of cards cannot be read"]


def _is_there(pod: PodInfo, snapshot: Snapshot) -> bool:
    row = snapshot.row_of(pod.node_name)
    return row is not None and any(
        each.key == pod.key and each.annotations == pod.annotations for each in snapshot.info(row).pods
    )


def _read(text: str, phases: tuple[Phase, ...]) -> tuple[tuple[DeviceGrant, ...], str]:
    """Read a record; the text names the parts that do not count, and why."""
    try:
        grants = held(text, phases)
    except ValueError as error:
        return (), f"{error}; {_ALL}"
    if part := stray(text):
        return grants, f"`{shown(part)}` is no card; {'it counts for nothing' if grants else _ALL}"
    # Without any word it is the record of containers without cards, or an annotation that was cleared.
    return grants, ""


_read_kept = lru_cache(maxsize=65536)(_read)
