"""Measures a cluster over time: used and existing resources, integrals over time, and samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kdsl.base.errors import KdslError
from kdsl.base.resources import CPU, MEMORY
from kdsl.base.times import SECOND
from kdsl.cluster.devices.typical import Fragmentation, TypicalPod
from kdsl.cluster.objects.node import NodeInfo
from kdsl.lab.traces import CARD
from kdsl.plan.card_table import CardsOf
from kdsl.sim.openb import MODEL_LABEL

MOST_SAMPLES: Final = 1_000_000
_GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Sample:
    """The state at a time. CPU is in cores, memory in GiB, cards in whole cards, time in seconds.

    `lost` are the cards that are free but useless to typical pods, None where these are not known. `pending`
    pods have arrived and have no node. `cost` and `evictions` are those since the start.
    """

    time: float
    cpu_used: float
    memory_used: float
    cards_used: float
    cpu_total: float
    memory_total: float
    cards_total: float
    pending: int
    lost: float | None
    nodes: int
    cost: float
    evictions: int


@dataclass(frozen=True, slots=True)
class _Share:
    """The contribution of a node to the sums: thousandths of a core, bytes and parts of cards."""

    cpu: int = 0
    memory: int = 0
    cards: int = 0
    cpu_total: int = 0
    memory_total: int = 0
    cards_total: int = 0


_NOTHING: Final = _Share()


class Meter:
    """The measures of one run. `see` takes in a node that has changed, `pass_to` lets time go by."""

    def __init__(
        self,
        cards_of: CardsOf,
        typical: Sequence[TypicalPod],
        every: int,
    ) -> None:
        """`every` is the time between samples in nanoseconds."""
        self._cards_of = cards_of
        self._fragmentation = Fragmentation(typical) if typical else None
        self._every = every
        self._next = 0
        self._now = 0
        self._shares: dict[str, _Share] = {}
        self._free: dict[str, tuple[int, ...]] = {}
        self._rows: dict[str, int] = {}
        self._lost = np.zeros(64)
        self._spare: list[int] = []
        self._sums = _Share()
        self._samples: list[Sample] = []
        # Integrals over nanoseconds: whole numbers stay exact.
        self._used = _Share()
        self._node_time = 0
        self._lost_time = 0.0
        self.pending = 0
        self.evictions = 0
        self.rate = 0.0
        """The price of all nodes for an hour."""
        self._paid: dict[float, int] = {}
        self.nodes_max = 0

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(self._samples)

    def see(self, name: str, info: NodeInfo | None) -> tuple[int, ...]:
        """Take in the state of a node, None if it is gone.

        Return the numbers of the cards whose free part is another one than before.
        """
        if info is None:
            self._forget(name)
            return ()
        cards = self._cards_of(info)
        free = tuple([card.cores - card.used_cores for card in cards])
        total = sum([card.cores for card in cards])
        used, there = info.requested, info.allocatable
        share = _Share(
            used.amount(CPU),
            used.amount(MEMORY),
            total - sum(free),
            there.amount(CPU),
            there.amount(MEMORY),
            total,
        )
        before = self._free.get(name, free)
        self._set(name, share)
        self._free[name] = free
        if self._fragmentation is not None:
            row = self._row_of(name)
            model = info.labels.get(MODEL_LABEL, "")
            self._lost[row] = self._fragmentation.of_one(share.cpu_total - share.cpu, free, model)
        self.nodes_max = max(self.nodes_max, len(self._shares))
        if before is free or len(before) != len(free):
            return ()
        return tuple([at for at, (was, left) in enumerate(zip(before, free, strict=True)) if was != left])

    def pass_to(self, now: int) -> None:
        """Let time go by until `now` nanoseconds after the start; take the samples before that."""
        while self._next < now:
            self._go_to(self._next)
            self.sample()
            self._next += self._every
        self._go_to(now)

    def sample(self) -> None:
        """Take a sample now, unless there is one already."""
        at = self._now / SECOND
        if self._samples and self._samples[-1].time == at:
            self._samples.pop()
        if len(self._samples) >= MOST_SAMPLES:
            raise KdslError(
                f"more than {MOST_SAMPLES:,} samples: let `time.sample` be longer, or set `time.until`"
            )
        sums = self._sums
        self._samples.append(
            Sample(
                at,
                sums.cpu / 1000,
                sums.memory / _GIB,
                sums.cards / CARD,
                sums.cpu_total / 1000,
                sums.memory_total / _GIB,
                sums.cards_total / CARD,
                self.pending,
                self._lost_parts() / CARD if self._fragmentation is not None else None,
                len(self._shares),
                self.cost,
                self.evictions,
            )
        )

    @property
    def cost(self) -> float:
        """The cost of all nodes since the start."""
        return sum(rate * (time / (3600 * SECOND)) for rate, time in self._paid.items())

    @property
    def allocation_mean(self) -> float | None:
        """The used share of all cards over time, in percent; of all CPU where there are no cards."""
        sums = self._used
        used, total = (sums.cards, sums.cards_total) if sums.cards_total else (sums.cpu, sums.cpu_total)
        return 100 * used / total if total else None

    @property
    def fragmentation_mean(self) -> float | None:
        """The share of all cards that is free and useless to typical pods over time, in percent."""
        total = self._used.cards_total
        return None if self._fragmentation is None or not total else 100 * self._lost_time / total

    @property
    def nodes_mean(self) -> float | None:
        """The number of nodes over time."""
        return self._node_time / self._now if self._now else None

    def _go_to(self, now: int) -> None:
        passed = now - self._now
        if not passed:
            return
        sums, old = self._sums, self._used
        self._used = _Share(
            old.cpu + passed * sums.cpu,
            old.memory + passed * sums.memory,
            old.cards + passed * sums.cards,
            old.cpu_total + passed * sums.cpu_total,
            old.memory_total + passed * sums.memory_total,
            old.cards_total + passed * sums.cards_total,
        )
        self._node_time += passed * len(self._shares)
        if self._fragmentation is not None:
            self._lost_time += passed * self._lost_parts()
        self._paid[self.rate] = self._paid.get(self.rate, 0) + passed
        self._now = now

    def _lost_parts(self) -> float:
        return float(self._lost.sum())

    def _row_of(self, name: str) -> int:
        row = self._rows.get(name)
        if row is None:
            row = self._spare.pop() if self._spare else len(self._rows)
            if row >= len(self._lost):
                self._lost = np.concatenate([self._lost, np.zeros(len(self._lost))])
            self._rows[name] = row
        return row

    def _forget(self, name: str) -> None:
        self._set(name, _NOTHING)
        self._shares.pop(name, None)
        self._free.pop(name, None)
        row = self._rows.pop(name, None)
        if row is not None:
            self._lost[row] = 0.0
            self._spare.append(row)

    def _set(self, name: str, share: _Share) -> None:
        old, sums = self._shares.get(name, _NOTHING), self._sums
        self._shares[name] = share
        self._sums = _Share(
            sums.cpu - old.cpu + share.cpu,
            sums.memory - old.memory + share.memory,
            sums.cards - old.cards + share.cards,
            sums.cpu_total - old.cpu_total + share.cpu_total,
            sums.memory_total - old.memory_total + share.memory_total,
            sums.cards_total - old.cards_total + share.cards_total,
        )
