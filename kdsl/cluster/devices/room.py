"""The room that a node has for typical pods: the parts of its cards that they could still get."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.by_identity import ByIdentity
from kdsl.cluster.devices.typical import (
    MOST_LISTS,
    MOST_NODES,
    CardKinds,
    Int64s,
    TypicalPod,
    column,
)


def room(typical: Sequence[TypicalPod], cpu: int, free: Sequence[int], model: str, more: float) -> float:
    """Return the parts of a node's cards that typical pods could get, each kind by its weight.

    A kind counts as if all pods that come were of this kind. The first pod counts whole, each further one
    `more`. Pods that lack CPU count by the part of the CPU that is there. `cpu` is the free CPU of the node
    in thousandths, `free` the free part of each card, `model` that of all.
    """
    return Room.of(typical).of_one(cpu, free, model, more)


class Room:
    """`room` for many nodes at once, for one list of typical pods. Pods that want no cards need no room."""

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self._kinds = kinds = CardKinds(typical)
        # A pod that wants no CPU is limited by cards only.
        self._cpu = np.where(kinds.cpu == 0, np.nan, kinds.cpu)
        self._values = column(list(map(_value, kinds.pods)), np.float64)
        self._nodes = lru_cache(MOST_NODES)(self._of_one)

    @staticmethod
    def of(typical: Sequence[TypicalPod]) -> Room:
        """Return the one for a list of typical pods, made once as long as the list is the same object."""
        return _MEASURES.of(typical)

    def of_one(self, cpu: int, free: Sequence[int], model: str, more: float) -> float:
        """Return the room of one node."""
        return self._nodes(cpu, tuple(free), model, more)

    def _of_one(self, cpu: int, free: tuple[int, ...], model: str, more: float) -> float:
        total, cpu = 0.0, max(cpu, 0)
        known: dict[int, int] = {}
        for pod in self._kinds.pods:
            units = known.get(pod.share)
            if units is None:
                units = known[pod.share] = sum([max(part, 0) // pod.share for part in free])
            pods = float(units // pod.cards)
            if pod.cpu and cpu / pod.cpu < pods:
                pods = cpu / pod.cpu
            counted = min(pods, 1.0) + more * max(pods - 1.0, 0.0)
            total += _value(pod) * counted * pod.accepts(model)
        return total

    def of_all(
        self,
        cpu: Int64s,
        free: Int64s,
        codes: NDArray[np.integer[Any]],
        models: Sequence[str],
        more: float,
    ) -> NDArray[np.float64]:
        """Return the room of each row: `free` has a row for each node, 0 where a node has fewer cards, and
        `codes` the place of its model in `models`.
        """
        rows, kinds = len(cpu), self._kinds
        if not kinds.pods or not rows:
            return np.zeros(rows)
        if rows == 1:
            # numpy adds a single column in pairs, and the last bits differ.
            return np.array([self.of_one(int(cpu[0]), free[0].tolist(), models[int(codes[0])], more)])
        free, cpu = np.maximum(free, 0), np.maximum(cpu, 0)
        units = (free // kinds.shares[:, None, None]).sum(axis=2).take(kinds.place, axis=0)
        pods = np.fmin(units // kinds.cards, cpu / self._cpu)
        terms = self._values * (np.minimum(pods, 1.0) + more * np.maximum(pods - 1.0, 0.0))
        accepted = kinds.accepting(models, codes)
        if accepted is not None:
            terms *= accepted
        # INVARIANT: added one after the other along the outer axis, as `of_one` adds.
        found: NDArray[np.float64] = np.add.reduce(terms, axis=0)
        return found


_MEASURES: Final = ByIdentity(Room, MOST_LISTS)


def _value(pod: TypicalPod) -> float:
    """Return the parts of one pod by the weight of its kind."""
    return pod.weight * (pod.cards * pod.share)
