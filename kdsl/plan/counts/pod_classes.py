"""Placed pods by class: a selector that matches most pods is asked about one pod of each class.

Pods are of one class if they have one pod key. Pods of one app mostly do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.label_selectors import SELECTED_KEYS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar.pod_keys import PodKey

MAX_CLASSES: Final = 4096
"""The most classes of pods; beyond that the pods are asked one by one."""


class PodClasses:
    """The pods of a live snapshot by one pod key. `pods` has one of each class, by the number of the class;
    `stale` are the rows whose pods have changed since they were read.
    """

    def __init__(self, live: LiveSnapshot, key: PodKey) -> None:
        self._live, self._key = live, key
        self.stale: set[int] = set(live.pod_counts.nonzero()[0].tolist())
        self.pods: list[PodInfo] = []
        # Keys have the labels that selectors named so far.
        self._selected_keys = SELECTED_KEYS.version
        self._numbers: dict[Hashable, int] = {}
        self._by_row: dict[int, list[int]] = {}
        self._columns: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None
        self._was_complete = False

    @property
    def keys(self) -> Iterable[Hashable]:
        """The key of each class, by its number."""
        return self._numbers

    @property
    def is_outdated(self) -> bool:
        """Return whether to begin anew: keys mean less than now, or classes have come and gone for long."""
        is_full = len(self._numbers) > MAX_CLASSES
        return self._selected_keys != SELECTED_KEYS.version or (is_full and self._was_complete)

    def refresh(self) -> bool:
        """Read the stale rows; return False if there are too many classes."""
        if self.stale and len(self._numbers) <= MAX_CLASSES:
            self._columns = None
            for row in self.stale:
                pods = self._live.info(row).pods if self._live.names[row] else ()
                self._by_row[row] = list(self._classes_of(pods))
                if len(self._numbers) > MAX_CLASSES:
                    return False
            self.stale.clear()
            self._was_complete = True
        return len(self._numbers) <= MAX_CLASSES

    def _classes_of(self, pods: Iterable[PodInfo]) -> Iterable[int]:
        numbers = self._numbers
        for pod, key in zip(pods, map(self._key, pods), strict=True):
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(numbers)
                self.pods.append(pod)
            yield number

    def columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the row and the class of each pod."""
        if self._columns is None:
            counts = [len(each) for each in self._by_row.values()]
            rows = np.repeat(np.fromiter(self._by_row, np.intp, len(counts)), counts)
            self._columns = rows, np.fromiter(chain.from_iterable(self._by_row.values()), np.intp, len(rows))
        return self._columns
