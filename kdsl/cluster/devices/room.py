"""The room that a node has for typical pods: the parts of its cards that they could still get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.typical import Int64s, TypicalPod

MOST_LISTS: Final = 64
MOST_NODES: Final = 4096
"""So many lists of typical pods are kept ready, and for each the room of so many single nodes."""


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
        self._kinds = tuple(pod for pod in typical if pod.wants_cards)
        shares = sorted({pod.share for pod in self._kinds})
        self._shares = np.array(shares, np.int64)
        self._place = np.array([shares.index(pod.share) for pod in self._kinds], np.intp)
        self._cards = np.array([pod.cards for pod in self._kinds], np.int64)[:, None]
        # A pod that wants no CPU is limited by cards only.
        self._cpu = np.array([pod.cpu or np.nan for pod in self._kinds], np.float64)[:, None]
        self._values = np.array([_value(pod) for pod in self._kinds], np.float64)[:, None]
        self._accepts: dict[str, NDArray[np.bool_]] = {}
        self._is_picky = any(pod.models for pod in self._kinds)
        self._known: dict[tuple[int, tuple[int, ...], str, float], float] = {}

    @staticmethod
    def of(typical: Sequence[TypicalPod]) -> Room:
        """Return the one for a list of typical pods, made once as long as the list is the same object."""
        known = _MADE.get(id(typical))
        if known is None or known[0] is not typical:
            if len(_MADE) >= MOST_LISTS:
                _MADE.clear()
            known = _MADE[id(typical)] = typical, Room(typical)
        return known[1]

    def of_one(self, cpu: int, free: Sequence[int], model: str, more: float) -> float:
        """Return the room of one node."""
        key = cpu, tuple(free), model, more
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_NODES:
                self._known.clear()
            found = self._known[key] = self._of_one(*key)
        return found

    def _of_one(self, cpu: int, free: tuple[int, ...], model: str, more: float) -> float:
        total, cpu = 0.0, max(cpu, 0)
        known: dict[int, int] = {}
        for pod in self._kinds:
            units = known.get(pod.share)
            if units is None:
                units = known[pod.share] = sum([max(part, 0) // pod.share for part in free])
            pods = float(units // pod.cards)
            if pod.cpu and cpu / pod.cpu < pods:
                pods = cpu / pod.cpu
            counted = min(pods, 1.0) + more * max(pods - 1.0, 0.0)
            accepted = not pod.models or model in pod.models
            total += _value(pod) * counted * accepted
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
        rows = len(cpu)
        if not self._kinds or not rows:
            return np.zeros(rows)
        if rows == 1:
            # numpy adds a single column in pairs, and the last bits differ.
            return np.array([self.of_one(int(cpu[0]), free[0].tolist(), models[int(codes[0])], more)])
        free, cpu = np.maximum(free, 0), np.maximum(cpu, 0)
        units = (free // self._shares[:, None, None]).sum(axis=2).take(self._place, axis=0)
        pods = np.fmin(units // self._cards, cpu / self._cpu)
        terms = self._values * (np.minimum(pods, 1.0) + more * np.maximum(pods - 1.0, 0.0))
        if self._is_picky:
            terms *= np.array(list(map(self._accepting, models)), np.bool_).T.take(codes, axis=1)
        # INVARIANT: added one after the other along the outer axis, as `of_one` adds.
        found: NDArray[np.float64] = np.add.reduce(terms, axis=0)
        return found

    def _accepting(self, model: str) -> NDArray[np.bool_]:
        """Return which kinds accept a model."""
        known = self._accepts.get(model)
        if known is None:
            found = [not pod.models or model in pod.models for pod in self._kinds]
            known = self._accepts[model] = np.array(found, np.bool_)
        return known


_MADE: Final[dict[int, tuple[Sequence[TypicalPod], Room]]] = {}


def _value(pod: TypicalPod) -> float:
    """Return the parts of one pod by the weight of its kind."""
    return pod.weight * (pod.cards * pod.share)
