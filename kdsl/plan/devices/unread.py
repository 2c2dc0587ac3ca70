"""Records of cards that cannot be read: pods have nothing by them, and decisions about cards tell of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot

MOST: Final = 1_000
"""So many pods are remembered; they are looked at in every attempt that asks for cards."""
SHOWN: Final = 20


class UnreadRecords:
    """What is wrong with the records of pods, as long as the pods are there and have them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[PodInfo, tuple[str, ...]]] = OrderedDict()

    def note(self, pod: PodInfo, problems: Sequence[str]) -> None:
        """Remember what is wrong with the records of a pod that is on a node."""
        self._known[pod.key] = (pod, tuple(f"pod {pod.key}: {problem}" for problem in problems))
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    def told(self, snapshot: Snapshot) -> list[str]:
        """Return the problems of pods that are still there; those of others are forgotten."""
        found: list[str] = []
        for key, (pod, problems) in tuple(self._known.items()):
            if _is_there(pod, snapshot):
                found += problems
            else:
                self._known.pop(key, None)
        rest = len(found) - SHOWN
        return found if rest <= 0 else [*found[:SHOWN], f"{rest:,} more records of cards cannot be read"]


def _is_there(pod: PodInfo, snapshot: Snapshot) -> bool:
    row = snapshot.row_of(pod.node_name)
    return row is not None and any(
        each.key == pod.key and each.annotations == pod.annotations for each in snapshot.info(row).pods
    )
