"""The compiled `order by` of a device: the order in which its cards are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Var
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.snapshot.fact_columns import FactColumns
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar import Frame
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    AllBad,
    Array,
    Coded,
    Column,
    ColumnValue,
    Items,
    NotColumnar,
    Objects,
    Same,
    spread,
)
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.devices.attempt import NodeCards, names_of
from kdsl.plan.devices.demand import Demand, DeviceRequest
from kdsl.plan.devices.facts import Facts
from kdsl.plan.devices.fullness import card_score, card_scores
from kdsl.plan.devices.section import DeviceSource, value_of


class CardOrder:
    """The keys by which cards are put in order."""

    def __init__(self, source: DeviceSource) -> None:
        names, keys = source.device.order.scope, source.device.order.steps
        self.section = source.section(names)
        self._exprs = [self.section.optimised(key.value) for key in keys]
        self._keys = [
            (self.section.closure(expr), key.descending, key.value.span)
            for expr, key in zip(self._exprs, keys, strict=True)
        ]
        read = {part.slot for key in keys for part in walk(key.value) if isinstance(part, Var)}
        self._is_shared = names["devices"].slot not in read
        self._reads_fullness = names["fullness"].slot in read

    @cached_property
    def _facts(self) -> Facts:
        return Facts.read_by(self.section)

    @property
    def is_by_shape(self) -> bool:
        """Whether cards of one shape differ in their place on the node alone."""
        return self._is_shared and not self._facts

    def ordered(self, cards: Sequence[Card], sort_keys: Sequence[tuple[Any, ...]]) -> list[Card]:
        """Return cards in order, by their `sort_keys`; equal ones stay as they are."""
        places = list(range(len(cards)))
        for at, (_, is_descending, _) in reversed(tuple(enumerate(self._keys))):
            column = [keys[at] for keys in sort_keys]
            places.sort(key=column.__getitem__, reverse=is_descending)
        return [cards[place] for place in places]

    @cached_property
    def _columns(self) -> tuple[tuple[int, ...], list[ColumnClosure]] | None:
        """The slots of the card and its fullness, and the keys over columns; None if one has no such form."""
        lowering = self.section.columns("device", "fullness")
        try:
            return lowering.slots, [lowering.lower(expr) for expr in self._exprs]
        except NotColumnar:
            return None

    def columns(
        self, cards: Objects, live: LiveSnapshot, demand: Demand, at: NodeCards, request: DeviceRequest
    ) -> list[Array] | None:
        """Return arrays of numbers by which cards are put in order, the first array first; None if the keys
        have no such form. The order must be `by_shape`, and the container has no other request.
        """
        if self._columns is None:
            return None
        (of_card, of_fullness), keys = self._columns

        def amounts(attribute: str) -> NDArray[np.int64]:
            column = cards.read(attribute)
            assert isinstance(column, Column)
            found: NDArray[np.int64] = column.values[cards.codes]
            return found

        types = cards.read("type")
        assert isinstance(types, Coded)
        is_asked = np.array([each == request.kind for each in types.values])[types.codes[cards.codes]]
        fullness = card_scores(amounts, is_asked, request, demand.policy.weights)
        frame = self.section.frame(**names_of(demand, at.node, request))
        columns: dict[int, ColumnValue] = {of_card: cards, of_fullness: Column(fullness)}
        batch = Batch(live, np.arange(len(fullness)), frame, live.kept[FactColumns], columns)
        try:
            with np.errstate(all="ignore"):
                return [
                    _reversed(each) if is_descending else each
                    for key, (_, is_descending, _) in zip(keys, self._keys, strict=True)
                    for each in _comparable(key(batch), len(batch))
                ]
        except (NotColumnar, AllBad):
            return None

    def sort_keys(
        self,
        cards: Iterable[Card],
        demand: Demand,
        at: NodeCards,
        request: DeviceRequest,
        asked: Iterable[DeviceRequest],
    ) -> list[tuple[Any, ...]]:
        """Return the keys of each card; EvalError if one has no value.

        The cards of `at` are those of the node before the pod, in its own order. `asked` are all requests of
        the container.
        """
        facts = self._facts
        known = demand.memo.sort_keys(facts.of_node(at.node), (request, *asked))
        frame: Frame | None = None
        found: list[tuple[Any, ...]] = []
        for card in cards:
            key = facts.key(card)
            keys = known.get(key) if self._is_shared else None
            if keys is None:
                if frame is None:
                    frame = self.section.frame(**names_of(demand, at.node, request), devices=at.cards)
                fullness = card_score(card, asked, demand.policy.weights) if self._reads_fullness else 0.0
                self.section.fill(frame, device=card, fullness=float(fullness))
                self.section.rewind(frame)
                keys = tuple([value_of(key, frame, span) for key, _, span in self._keys])
                if self._is_shared:
                    known[key] = keys
            found.append(keys)
        return found


def _comparable(value: ColumnValue, rows: int) -> list[Array]:
    """Return numbers by which values are put in order, the first array first; NotColumnar without such."""
    if isinstance(value, Same) and isinstance(value.value, tuple):
        return [each for item in value.value for each in _comparable(Same(item), rows)]
    if isinstance(value, Items):
        if value.is_map or value.bad is not None or any(each.present is not None for each in value.entries):
            raise NotColumnar
        return [part for each in value.entries for part in _comparable(each.value, rows)]
    found, bad = spread(value, rows, None)
    if bad is not None and bad.any():
        raise NotColumnar
    if found.dtype == np.float64 and np.isnan(found).any():
        raise NotColumnar
    return [found]


def _reversed(numbers: Array) -> Array:
    """Return numbers in the reversed order. The smallest int has no negative."""
    return -numbers if numbers.dtype == np.float64 else ~numbers
