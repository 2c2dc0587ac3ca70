"""Node classes of devices: nodes whose cards have equal shapes and equal answers of identity tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from operator import add
from typing import Any, Final, Generic, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kdsl.base.by_identity import ByIdentity
from kdsl.cluster.devices.cards import NO_ATTRIBUTES, Card, Shape, Tenant
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.changed_rows import Changes
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.plan.devices.alike import INT32, AlikeRows, RowCards
from kdsl.plan.devices.fullness import node_score
from kdsl.plan.devices.identity import IdentityAnswer, IdentityAnswers
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.node_inputs import NodeChanges
from kdsl.plan.devices.placing import NodeCards, is_of, of_kind
from kdsl.plan.devices.requests import Demand
from kdsl.plan.memo.answers import ByRow
from kdsl.plan.memo.bounded_memo import Memo

NO_CLASS: Final = -1
"""The number of a node without a class."""
SPARE_CLASSES: Final = 16_384
"""The memo holds so many classes and twice as many as there are rows. A class takes about 200 bytes per card.
"""
_TENANT: Final = Tenant("", "", NO_ATTRIBUTES, 0, 0)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ClassKey = tuple[int, ...]
"""The number of the shapes of a node's cards, and for each kind that of the answers of its identity tests."""


@dataclass(frozen=True, slots=True)
class NodeShapes:
    """Nodes whose cards have equal shapes: the fill level, and of each card its type and the number of its
    shape.
    """

    fullness: np.float32
    types: tuple[str, ...]
    cards: NDArray[np.int64]
    _by_kind: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def of_kind(self, kind: str) -> NDArray[np.int64]:
        """Return the numbers of the shapes of the cards of a kind."""
        found = self._by_kind.get(kind)
        if found is None:
            found = self.cards[[is_of(each, kind) for each in self.types]]
            self._by_kind[kind] = found
        return found


@dataclass(frozen=True, slots=True)
class NodeAnswers:
    """The answers of identity tests about the cards of a node, and the number of each."""

    answers: tuple[IdentityAnswer, ...]
    numbers: NDArray[np.int64]


class _Numbers(Generic[K, V]):
    """The numbers of values, from 0, and an object for each."""

    def __init__(self) -> None:
        self.objects: list[V] = []
        self._numbers: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self.objects)

    def of(self, value: K, make: Callable[[], V]) -> int:
        """Return the number of a value; a new value gets the next one."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.objects)
            self.objects.append(make())
        return number


class InventoryClasses:
    """The classes of the rows of a live snapshot. `generation` rises when all numbers become void."""

    def __init__(self, inventories: Inventories) -> None:
        self.generation = 0
        self._inventories = inventories
        self._live: LiveSnapshot | None = None
        self._reset()
        self._changes: NodeChanges | None = None
        self._by_shapes: ByRow | None = None
        self._by_answers: Memo[ByRow] = Memo()

    def refresh(self, live: LiveSnapshot) -> None:
        """Take in the changes since the last time."""
        numbers: list[Sized] = [self._node_shapes, self._card_shapes, self._node_answers]
        numbers += [self._card_answers, *self._alike.values()]
        is_full = max(map(len, numbers)) > _most(live)
        changes = self._changes
        if changes is None or live is not self._live or is_full or not changes.refresh():
            self.generation += 1
            self._live = live
            self._reset()
            changes = self._changes = NodeChanges(live, self._inventories.inputs)
            self._by_shapes = ByRow(live, INT32, changes.log, live.usage_changes)
            self._by_answers.clear()
        assert self._by_shapes is not None
        self._by_shapes.refresh()
        self._inventories.forget_gone(live)

    def _reset(self) -> None:
        self._node_shapes = _Numbers[Hashable, NodeShapes]()
        self._card_shapes = _Numbers[Shape, Card]()
        self._node_answers = _Numbers[tuple[IdentityAnswer, ...], NodeAnswers]()
        self._card_answers = _Numbers[IdentityAnswer, IdentityAnswer]()
        self._own = dict[str, ByIdentity[NodeCards, tuple[IdentityAnswer, ...]]]()
        self._alike = dict[str, AlikeRows]()
        self._by_pairs = dict[tuple[str, int], ByRow]()

    @property
    def changes(self) -> Changes:
        """The log of the rows whose nodes changed for device rules, of this generation."""
        assert self._changes is not None
        return self._changes.log

    def keys(self, demand: Demand, rows: Rows) -> list[ClassKey | None]:
        """Return the classes of the nodes of some rows; None for a node without a class."""
        assert self._by_shapes is not None and self._live is not None
        live = self._live
        if not all(self._inventories.programs[kind].fitting.is_shared for kind in demand.kinds):
            return [None] * len(rows)

        def shapes(missing: Rows) -> NDArray[Any]:
            nodes = [live.info(row) for row in missing.tolist()]
            cards = self._inventories.cards
            return np.array([self.shapes_number(node, cards(node)) for node in nodes], np.int32)

        columns = [self._by_shapes.get(rows, shapes)[0].tolist()]
        columns += [self._answer_numbers(demand, kind, live, rows) for kind in demand.kinds]
        return [key if NO_CLASS not in key else None for key in zip(*columns, strict=True)]

    def answers(self, demand: Demand, at: NodeCards, key: ClassKey) -> Mapping[str, IdentityAnswers]:
        """Return the answers of identity tests about the cards of a node of a class, by kind."""
        found: dict[str, IdentityAnswers] = {}
        for kind, number in zip(demand.kinds, key[1:], strict=True):
            names = [card.id for card in of_kind(at.cards, kind)]
            found[kind] = dict(zip(names, self._node_answers.objects[number].answers, strict=True))
        return found

    def shapes(self, key: ClassKey) -> NodeShapes:
        """Return the shapes of the cards of a class."""
        return self._node_shapes.objects[key[0]]

    def card_classes(
        self, kind: str, keys: Sequence[ClassKey]
    ) -> tuple[NDArray[np.int64], list[tuple[Card, IdentityAnswer]], NDArray[np.int64]]:
        """Return the cards of a kind, the only one of the classes, on a node of each: how many there are, the
        different ones with their answers of identity tests, and the place of each card among the different.

        Names, attributes and pods of the different ones are void.
        """
        found = [self._node_shapes.objects[key[0]].of_kind(kind) for key in keys]
        answers = [self._node_answers.objects[number].numbers for _, number in keys]
        width = len(self._card_answers.objects)
        distinct, places = np.unique(
            np.concatenate(found) * width + np.concatenate(answers), return_inverse=True
        )
        cards = [
            (self._card_shapes.objects[code // width], self._card_answers.objects[code % width])
            for code in distinct.tolist()
        ]
        return np.array([len(each) for each in found], np.int64), cards, places

    def _answer_numbers(self, demand: Demand, kind: str, live: LiveSnapshot, rows: Rows) -> list[int]:
        """Return the number of the answers of identity tests for each row; `NO_CLASS` if a test fails, or a
        pair of cards has no value.
        """
        fitting = self._inventories.programs[kind].fitting
        asked = fitting.cards.identity.asked
        read = demand.read.get(kind)
        if read is None:
            pairing = tuple(fitting.pairing(demand.pod, demand.policy))
            read = demand.read[kind] = asked.signature(demand.pod, demand.policy), pairing
        signature, pairing = read
        known = self._by_answers.get(
            (kind, signature, pairing), lambda known: True, lambda: ByRow(live, INT32, self.changes)
        )
        known.refresh()

        def compute(missing: Rows) -> NDArray[Any]:
            frame = asked.frame(demand.pod, demand.policy)
            sought = asked.sought(frame)
            if sought is None:
                alike = np.arange(len(missing))
            else:
                alike = self._alike_rows(kind, live).numbers(missing, sought)
            _, firsts, places = np.unique(alike, return_index=True, return_inverse=True)
            numbers = []
            for row in missing[firsts].tolist():
                at = self._inventories.idle(live.info(row))
                own = self._own_answers(kind, at, live)
                found = asked.answers(frame, at.node, of_kind(at.cards, kind))
                numbers.append(self._number(tuple(map(add, own, found))))
            of_rows = np.array(numbers, np.int32)[places]
            for place in pairing:
                of_rows[~self._known_pairs(kind, place, live, missing)] = NO_CLASS
            return of_rows

        numbers: list[int] = known.get(rows, compute)[0].tolist()
        return numbers

    def _known_pairs(self, kind: str, place: int, live: LiveSnapshot, rows: Rows) -> NDArray[np.bool_]:
        """Return for each row whether a chooser `knows_pairs` of its cards."""
        if (kind, place) not in self._by_pairs:
            self._by_pairs[kind, place] = ByRow(live, np.dtype(np.bool_), self.changes)
        known, chooser = self._by_pairs[kind, place], self._inventories.programs[kind].fitting.choosers[place]
        known.refresh()

        def compute(missing: Rows) -> NDArray[np.bool_]:
            cards = [self._inventories.idle(live.info(row)).cards for row in missing.tolist()]
            return np.array([chooser.knows_pairs(of_kind(each, kind)) for each in cards], np.bool_)

        found: NDArray[np.bool_] = known.get(rows, compute)[0]
        return found

    def _own_answers(self, kind: str, at: NodeCards, live: LiveSnapshot) -> tuple[IdentityAnswer, ...]:
        """Return the answers of the identity tests that do not read the pod."""
        if kind not in self._own:
            own = self._inventories.programs[kind].fitting.cards.identity.own
            frame = own.section.frame()
            self._own[kind] = ByIdentity(
                lambda at: own.answers(frame, at.node, of_kind(at.cards, kind)), _most(live)
            )
        return self._own[kind].of(at)

    def _alike_rows(self, kind: str, live: LiveSnapshot) -> AlikeRows:
        if kind not in self._alike:
            fields = self._inventories.programs[kind].fitting.cards.identity.asked.fields

            def cards(row: int) -> RowCards:
                at = self._inventories.idle(live.info(row))
                return of_kind(at.cards, kind), self._own_answers(kind, at, live)

            self._alike[kind] = AlikeRows(live, self.changes, fields, cards)
        return self._alike[kind]

    def _number(self, answers: tuple[IdentityAnswer, ...]) -> int:
        if any(isinstance(each, str) for answer in answers for each in answer):
            return NO_CLASS

        def made() -> NodeAnswers:
            return NodeAnswers(answers, np.array(list(map(self._answer_number, answers)), np.int64))

        return self._node_answers.of(answers, made)

    def _answer_number(self, answer: IdentityAnswer) -> int:
        return self._card_answers.of(answer, lambda: answer)

    def shapes_number(self, node: NodeInfo, cards: tuple[Card, ...]) -> int:
        """Return the number of the shapes of the cards of a node, which may be those of a what-if."""

        def made() -> NodeShapes:
            return NodeShapes(
                node_score(cards),
                tuple([card.type for card in cards]),
                np.array([self._card_number(card) for card in cards], np.int64),
            )

        faults = self._inventories.inventory(node.facts).faults
        return self._node_shapes.of((tuple(faults.items()), tuple([card.shape for card in cards])), made)

    def _card_number(self, card: Card) -> int:
        # The pods of a card stay in memory no longer than they are there.
        return self._card_shapes.of(card.shape, lambda: replace(card, tenants=(_TENANT,) * len(card.tenants)))


def _most(live: LiveSnapshot) -> int:
    """Return the most values that are numbered."""
    return SPARE_CLASSES + 2 * len(live.names)
