"""Typical pods of a workload, and the free parts of cards that they cannot use.

The measure is that of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent" (USENIX ATC 2023): for a node, the free parts of its cards, weighted by how many pods cannot use
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.by_identity import ByIdentity

Int64s = NDArray[np.int64]

MOST_LISTS: Final = 64
"""The most lists of typical pods whose measures are kept ready."""
MOST_NODES: Final = 4096
"""The most single nodes whose measure is kept for one list."""
MOST_MODELS: Final = 256
"""The most models of cards whose pods are kept for one list."""

_BOTH, _CARDS, _CPU, _NO_CARDS, _NO_CARDS_NOR_CPU, _MODEL = range(6)
"""Why pods cannot use free parts of cards. Each reason has its own sum, and the sums are added in this order:
in the paper's program, too, so that the last bits agree and a pod that changes nothing loses exactly as much
as before.
"""
_REASONS: Final = 6
_WITHOUT, _REFUSED = 0, -1
"""In place of a number of cards: the pod wants none, or does not accept the model."""


@dataclass(frozen=True, slots=True)
class TypicalPod:
    """A kind of pod of a workload. Fields are those of the `TypicalPod` view.

    A pod wants `cards` cards with `share` of each free; 0 for none. `models` are those it accepts, () for
    any. `weight` is the share of the kind among all pods.
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

    def accepts(self, model: str) -> bool:
        """Return whether the pod accepts cards of a model."""
        return not self.models or model in self.models


def column(values: Sequence[float], dtype: Any) -> NDArray[Any]:
    """Return values as a column with one row for each."""
    return np.array(values, dtype)[:, None]


class CardKinds:
    """The kinds of typical pods that want cards; `weights`, `cpu` and `cards` are columns, a row for each.

    `shares` are their distinct shares in ascending order, `place` the place of each kind's share among them.
    """

    def __init__(self, typical: Iterable[TypicalPod]) -> None:
        self.pods = tuple(pod for pod in typical if pod.wants_cards)
        shares = sorted({pod.share for pod in self.pods})
        self.shares = np.array(shares, np.int64)
        self.place = np.array([shares.index(pod.share) for pod in self.pods], np.intp)
        self.weights = column([pod.weight for pod in self.pods], np.float64)
        self.cpu = column([pod.cpu for pod in self.pods], np.int64)
        self.cards = column([pod.cards for pod in self.pods], np.int64)
        self._accepts: dict[str, NDArray[np.bool_]] = {}
        self._is_picky = any(pod.models for pod in self.pods)

    def accepting(self, models: Sequence[str], codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_] | None:
        """Return whether each kind accepts the model of each node, a row for each kind; None if all accept
        all. `codes` are the places of the nodes' models in `models`.
        """
        if not self._is_picky:
            return None
        return np.array(list(map(self._of_model, models)), np.bool_).T.take(codes, axis=1)

    def _of_model(self, model: str) -> NDArray[np.bool_]:
        known = self._accepts.get(model)
        if known is None:
            known = np.array([pod.accepts(model) for pod in self.pods], np.bool_)
            self._accepts[model] = known
        return known


def fragmentation(typical: Sequence[TypicalPod], cpu: int, free: Sequence[int], model: str) -> float:
    """Return the free part of the cards of a node that typical pods cannot use, each by its weight.

    `cpu` is the free CPU of the node in thousandths, `free` the free part of each card, `model` that of all.
    """
    return Fragmentation.of(typical).of_one(cpu, free, model)


class Fragmentation:
    """`fragmentation` for many nodes at once, for one list of typical pods."""

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self._typical = tuple(typical)
        self._kinds = CardKinds(self._typical)
        others = [pod for pod in self._typical if not pod.wants_cards]
        self._other_weights = column([pod.weight for pod in others], np.float64)
        self._other_cpu = column([pod.cpu for pod in others], np.int64)
        self._nodes = lru_cache(MOST_NODES)(self._of_one)
        self._shares: list[int] = self._kinds.shares.tolist()
        self._rows = lru_cache(MOST_MODELS)(self._rows_of)

    @staticmethod
    def of(typical: Sequence[TypicalPod]) -> Fragmentation:
        """Return the one for a list of typical pods, which is made once as long as the list is the same
        object.
        """
        return _MEASURES.of(typical)

    def of_one(self, cpu: int, free: Sequence[int], model: str) -> float:
        """Return the fragmentation of one node."""
        return self._nodes(cpu, tuple(free), model)

    def _of_one(self, cpu: int, free: tuple[int, ...], model: str) -> float:
        total = sum(free)
        sums = [0.0] * _REASONS
        counts: list[int] = []
        smalls: list[int] = []
        for share in self._shares:
            large = [part for part in free if part >= share]
            counts.append(len(large))
            smalls.append(total - sum(large))
        for weight, wanted_cpu, cards, place in self._rows(model):
            if cards == _WITHOUT:
                sums[_NO_CARDS if cpu >= wanted_cpu else _NO_CARDS_NOR_CPU] += weight * total
            elif cards == _REFUSED:
                sums[_MODEL] += weight * total
            elif counts[place] < cards:
                sums[_CARDS if cpu >= wanted_cpu else _BOTH] += weight * total
            elif cpu < wanted_cpu:
                sums[_CPU] += weight * total
            else:
                sums[_CARDS] += weight * smalls[place]
        first, *others = sums
        for each in others:
            first += each
        return first

    def _rows_of(self, model: str) -> list[tuple[float, int, int, int]]:
        """Return weight, CPU, number of cards and place of the share of each pod, for nodes of a model."""
        return [self._row(pod, model) for pod in self._typical]

    def _row(self, pod: TypicalPod, model: str) -> tuple[float, int, int, int]:
        if not pod.wants_cards:
            return pod.weight, pod.cpu, _WITHOUT, 0
        if not pod.accepts(model):
            return pod.weight, pod.cpu, _REFUSED, 0
        return pod.weight, pod.cpu, pod.cards, self._shares.index(pod.share)

    def of_all(
        self, cpu: Int64s, free: Int64s, codes: NDArray[np.integer[Any]], models: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return the fragmentation of each row: `free` has a row for each node, 0 where a node has fewer
        cards, and `codes` the place of its model in `models`.
        """
        rows = len(cpu)
        if rows == 1:
            # numpy adds a single column in pairs, see `_added`.
            return np.array([self.of_one(int(cpu[0]), free[0].tolist(), models[int(codes[0])])])
        total = free.sum(axis=1)
        sums = [np.zeros(rows)] * _REASONS
        if len(self._other_cpu):
            terms = self._other_weights * total
            has_cpu = cpu >= self._other_cpu
            sums[_NO_CARDS], sums[_NO_CARDS_NOR_CPU] = _added(terms, has_cpu), _added(terms, ~has_cpu)
        kinds = self._kinds
        if kinds.pods:
            # Cards along the outer axis: numpy adds whole rows there.
            cards = np.ascontiguousarray(free.T)[:, None, :]
            is_large = cards >= kinds.shares[:, None]
            has_cards = np.count_nonzero(is_large, axis=0).take(kinds.place, axis=0) >= kinds.cards
            small = (total - (cards * is_large).sum(axis=0)).take(kinds.place, axis=0)
            has_cpu = cpu >= kinds.cpu
            terms = kinds.weights * total
            partial = np.where(has_cards, kinds.weights * small, terms)
            accepted = kinds.accepting(models, codes)
            if accepted is not None:
                sums[_MODEL] = _added(terms, ~accepted)
                terms, partial = terms * accepted, partial * accepted
            sums[_BOTH] = _added(terms, ~(has_cpu | has_cards))
            sums[_CARDS] = _added(partial, has_cpu)
            sums[_CPU] = _added(terms, has_cards & ~has_cpu)
        first, *others = sums
        for each in others:
            first = first + each
        return first


_MEASURES: Final = ByIdentity(Fragmentation, MOST_LISTS)


def _added(terms: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Add up the chosen terms of each column.

    INVARIANT: one after the other, as `of_one` adds them. Along the outer axis numpy does so too.
    """
    found: NDArray[np.float64] = np.add.reduce(terms * chosen, axis=0)
    return found
