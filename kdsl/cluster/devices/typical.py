"""Typical pods of a workload, and the free parts of cards that they cannot use.

The measure is that of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
(USENIX ATC 2023): for a node, the free parts of its cards, weighted by how many pods cannot use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]

_BOTH, _CARDS, _CPU, _NO_CARDS, _NO_CARDS_NOR_CPU, _MODEL = range(6)
"""Why pods cannot use free parts of cards. Each reason has its own sum, and the sums are added in this order: in the
paper's program, too, so that the last bits agree and a pod that changes nothing loses exactly as much as before."""
_REASONS: Final = 6


@dataclass(frozen=True, slots=True)
class TypicalPod:
    """A kind of pod of a workload. Fields are those of the `TypicalPod` view.

    A pod wants `cards` cards with `share` of each free; 0 for none. `models` are those it accepts, () for any.
    `weight` is the share of the kind among all pods.
    """

    weight: float
    cpu: int
    cards: int
    share: int
    models: tuple[str, ...] = ()

    @staticmethod
    def of(weight: float, cpu: int, cards: int, share: int, models: Sequence[str]) -> TypicalPod:
        return TypicalPod(weight, cpu, cards, share, tuple(models))

    @property
    def wants_cards(self) -> bool:
        return self.cards > 0 and self.share > 0


def fragmentation(typical: Sequence[TypicalPod], cpu: int, free: Sequence[int], model: str) -> float:
    """Return the free part of the cards of a node that typical pods cannot use, each by its weight.

    `cpu` is the free CPU of the node in thousandths, `free` the free part of each card, `model` that of all.
    """
    total = sum(free)
    sums = [0.0] * _REASONS
    for pod in typical:
        if not pod.wants_cards:
            sums[_NO_CARDS if cpu >= pod.cpu else _NO_CARDS_NOR_CPU] += pod.weight * total
            continue
        if pod.models and model not in pod.models:
            sums[_MODEL] += pod.weight * total
            continue
        large = [part for part in free if part >= pod.share]
        if len(large) < pod.cards:
            sums[_CARDS if cpu >= pod.cpu else _BOTH] += pod.weight * total
        elif cpu < pod.cpu:
            sums[_CPU] += pod.weight * total
        else:
            sums[_CARDS] += pod.weight * (total - sum(large))
    first, *others = sums
    for each in others:
        first += each
    return first


class Fragmentation:
    """`fragmentation` for many nodes at once, for one list of typical pods."""

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self.typical = tuple(typical)
        shares = sorted({pod.share for pod in self.typical if pod.wants_cards})
        place = {share: number for number, share in enumerate(shares)}
        self._shares = np.array(shares, np.int64)
        self._weights = np.array([[pod.weight] for pod in self.typical], np.float64)
        self._cpu = np.array([[pod.cpu] for pod in self.typical], np.int64)
        self._cards = np.array([[pod.cards] for pod in self.typical], np.int64)
        self._wants = np.array([[pod.wants_cards] for pod in self.typical], np.bool_)
        self._place = np.array([place.get(pod.share, 0) for pod in self.typical], np.intp)
        self._accepts: dict[str, NDArray[np.bool_]] = {}

    def accepts(self, model: str) -> NDArray[np.bool_]:
        """Return which typical pods a model is good for."""
        known = self._accepts.get(model)
        if known is None:
            known = np.array([not pod.models or model in pod.models for pod in self.typical], np.bool_)
            self._accepts[model] = known
        return known

    def of_all(
        self, cpu: Int64s, free: Int64s, codes: NDArray[np.integer[Any]], models: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return the fragmentation of each row: `free` has a row for each node, 0 where a node has fewer cards,
        and `codes` the place of its model in `models`.
        """
        rows = len(cpu)
        total = free.sum(axis=1)
        if not self.typical:
            return np.zeros(rows)
        if len(self._shares):
            is_large = free >= self._shares[:, None, None]
            large = is_large.sum(axis=2)[self._place]
            lost = (total - np.where(is_large, free, 0).sum(axis=2))[self._place]
        else:
            large = lost = np.zeros((len(self.typical), rows), np.int64)
        has_cpu = cpu >= self._cpu
        has_cards = large >= self._cards
        accepted = np.array([self.accepts(model) for model in models], np.bool_).T.take(codes, axis=1)
        is_placed = has_cpu & has_cards
        reason = np.where(
            accepted,
            np.where(has_cards, _CPU, np.where(has_cpu, _CARDS, _BOTH)),
            _MODEL,
        )
        reason = np.where(is_placed & accepted, _CARDS, reason)
        reason = np.where(self._wants, reason, np.where(has_cpu, _NO_CARDS, _NO_CARDS_NOR_CPU))
        amount = np.where(is_placed & accepted & self._wants, lost, total)
        terms = self._weights * amount
        result = np.zeros(rows)
        for each in range(_REASONS):
            # INVARIANT: one term after the other, as `fragmentation` adds them; numpy's own sum adds in pairs.
            result += np.add.accumulate(np.where(reason == each, terms, 0.0), axis=0)[-1]
        return result
