"""Node classes of devices: nodes that are equal in the shapes of their cards, in answers of identity tests
and in `facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from functools import partial
from operator import add
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.bounded_memo import Memo
from kdsl.base.by_identity import ByIdentity
from kdsl.base.log import Log
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.plan.devices.alike import INT32, AlikeRows, RowCards
from kdsl.plan.devices.card_memo import CardMemo
from kdsl.plan.devices.card_shapes import AskedCard, CardShapes, numbered
from kdsl.plan.devices.class_parts import NodeAnswers, NodeFacts, NodeShapes, Numbers
from kdsl.plan.devices.facts import Facts
from kdsl.plan.devices.fullness import node_score
from kdsl.plan.devices.identity import IdentityAnswer, IdentityAnswers
from kdsl.plan.devices.inventories import Inventories, device_node
from kdsl.plan.devices.node_inputs import NodeChanges
from kdsl.plan.devices.placing import NodeCards, of_kind
from kdsl.plan.devices.requests import Demand, DeviceRequest
from kdsl.plan.memo.answers import ByRow

NO_CLASS: Final = -1
"""The number of a node without a class."""
SPARE_CLASSES: Final = 16_384
"""The memo holds so many classes and twice as many as there are rows. A class takes about 200 bytes per card.
"""
_ALL: Final = -1
"""Stands for the facts of a device but for those of its choosers."""

ClassKey = tuple[int, tuple[int, ...], tuple[tuple[str, int, int], ...]]
"""The number of the shapes of a node's cards, for each kind that of the answers of its identity tests, and
the numbers of facts: kind, place of the chooser that reads them (`_ALL` for the device), and number.
"""


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
        self._by_facts = dict[tuple[str, int], ByRow]()

    def refresh(self, live: LiveSnapshot) -> None:
        """Take in the changes since the last time."""
        numbers: list[Sized] = [self._node_shapes, self.card_shapes, self._node_answers]
        numbers += [self._card_answers, self._node_facts, self._card_facts, *self._alike.values()]
        is_full = max(map(len, numbers)) > _most(live)
        changes = self._changes
        if changes is None or live is not self._live or is_full or not changes.refresh():
            self.generation += 1
            self._live = live
            self._reset()
            changes = self._changes = NodeChanges(live, self._inventories.inputs)
            self._by_shapes = ByRow(live, INT32, changes.log, live.usage_changes)
            self._by_answers.clear()
            self._by_facts.clear()
        assert self._by_shapes is not None
        self._by_shapes.refresh()
        self._inventories.forget_gone(live)

    def _reset(self) -> None:
        self._node_shapes = Numbers[Hashable, NodeShapes]()
        self.card_shapes = CardShapes()
        self._card_facts = dict[Hashable, int]()
        self._node_facts = Numbers[Hashable, NodeFacts]()
        self._node_facts.of(None, lambda: NodeFacts((), None))
        self._node_answers = Numbers[tuple[IdentityAnswer, ...], NodeAnswers]()
        self._card_answers = dict[IdentityAnswer, int]()
        self._kept = dict[Hashable, ByIdentity[NodeCards, Any]]()
        self._alike = dict[str, AlikeRows]()

    @property
    def changes(self) -> Log[int]:
        """The log of the rows whose nodes changed for device rules, of this generation."""
        assert self._changes is not None
        return self._changes.log

    def keys(self, demand: Demand, rows: Rows) -> list[ClassKey | None]:
        """Return the classes of the nodes of some rows, without choosers; None for a node without one."""
        assert self._by_shapes is not None and self._live is not None
        live = self._live

        def shapes(missing: Rows) -> NDArray[Any]:
            nodes = [live.info(row) for row in missing.tolist()]
            cards = self._inventories.cards
            return np.array([self.shapes_number(node, cards(node)) for node in nodes], np.int32)

        numbers = self._by_shapes.get(rows, shapes)[0].tolist()
        answers = zip(*[self._answer_numbers(demand, kind, live, rows) for kind in demand.kinds], strict=True)
        facts = zip(*[self._facts_numbers(kind, _ALL, rows) for kind in demand.kinds], strict=True)
        keys = zip(numbers, answers, facts, strict=True)
        return [None if NO_CLASS in key[1] else key for key in keys]

    def refined(
        self, demand: Demand, keys: Sequence[ClassKey | None], rows: Rows, memo: CardMemo
    ) -> Sequence[ClassKey | None]:
        """Return classes with their choosers; `rows` has a node of each."""
        if not any(self._inventories.programs[kind].fitting.reads_choices for kind in demand.kinds):
            return keys
        assert self._live is not None
        firsts = dict(zip(reversed(keys), reversed(rows.tolist()), strict=True))
        needed = dict[ClassKey, tuple[tuple[str, int], ...]]()
        found = dict[Hashable, tuple[tuple[str, int], ...]]()
        for key, row in firsts.items():
            if key is not None:
                node = self._live.info(row)
                about = self._inventories.inventory(node.facts).shapes, key[2]
                if about not in found:
                    found[about] = self.choices(demand, key, node, memo)
                needed[key] = found[about]
        wanted = set().union(*found.values())
        if not wanted:
            return keys
        numbers = {each: self._facts_numbers(*each, rows) for each in wanted}
        return [
            key and (key[0], key[1], (*key[2], *[numbers[each][at] for each in needed[key]]))
            for at, key in enumerate(keys)
        ]

    @property
    def live(self) -> LiveSnapshot:
        """The snapshot of which the nodes are."""
        assert self._live is not None
        return self._live

    def choices(
        self, demand: Demand, key: ClassKey, node: NodeInfo, memo: CardMemo
    ) -> tuple[tuple[str, int], ...]:
        """Return the choosers, by kind and place, that may choose on a node of a class and read facts."""
        found = dict[tuple[str, int], None]()
        for asked in demand.requests:
            for kind, request in asked.items():
                choosers = self._inventories.programs[kind].fitting.choosers
                place = self.chooser(demand, request, key, node, memo)
                for each in range(len(choosers)) if place is None else (place,):
                    if choosers[each].facts:
                        found[kind, each] = None
        return tuple(found)

    def chooser(
        self, demand: Demand, request: DeviceRequest, key: ClassKey, node: NodeInfo, memo: CardMemo
    ) -> int | None:
        """Return the place of the chooser of a request on a node of a class; None if it is not settled."""
        fitting = self._inventories.programs[request.kind].fitting
        inventory = self._inventories.inventory(node.facts)
        asked = request if fitting.chooses_by_request else request.kind
        facts = tuple([each for each in key[2] if each[1] == _ALL])
        known = (self.generation, asked, inventory.shapes, facts)
        if known not in memo.choosers:
            about = {
                "pod": demand.pod,
                "node": inventory.at.node,
                "policy": demand.policy,
                "request": request,
            }
            cards = of_kind(inventory.cards, request.kind)
            memo.choosers[known] = fitting.settled_chooser({**about, "devices": cards})
        return memo.choosers[known]

    def what_if(
        self, demand: Demand, key: ClassKey, node: NodeInfo, cards: tuple[Card, ...], memo: CardMemo
    ) -> ClassKey:
        """Return the class that a node of a class has with other cards and pods."""
        at = NodeCards(device_node(node.facts, node.requested), cards)
        facts = tuple([self._facts_number(kind, _ALL, at) for kind in demand.kinds])
        found: ClassKey = (self.shapes_number(node, cards), key[1], facts)
        more = [self._facts_number(*each, at) for each in self.choices(demand, found, node, memo)]
        return (*found[:2], (*facts, *more))

    def idle(self, key: ClassKey, at: NodeCards) -> Hashable:
        """Return the class that a node of a class would have without pods, but for shapes of cards."""
        return key[1], tuple(
            [self._once(each[:2], at, partial(self._facts_number, *each[:2])) for each in key[2]]
        )

    def knows_pairs(self, kind: str, place: int, node: NodeInfo) -> bool:
        """Return whether a chooser `knows_pairs` of the cards of a node."""
        chooser = self._inventories.programs[kind].fitting.choosers[place]
        known: bool = self._once(
            (chooser,), self._inventories.idle(node), lambda at: chooser.knows_pairs(of_kind(at.cards, kind))
        )
        return known

    def _once(self, key: Hashable, at: NodeCards, compute: Callable[[NodeCards], Any]) -> Any:
        """Compute a value of an idle node once."""
        if key not in self._kept:
            assert self._live is not None
            self._kept[key] = ByIdentity(compute, _most(self._live))
        return self._kept[key].of(at)

    def answers(self, demand: Demand, at: NodeCards, key: ClassKey) -> Mapping[str, IdentityAnswers]:
        """Return the answers of identity tests about the cards of a node of a class, by kind."""
        found: dict[str, IdentityAnswers] = {}
        for kind, number in zip(demand.kinds, key[1], strict=True):
            names = [card.id for card in of_kind(at.cards, kind)]
            found[kind] = dict(zip(names, self._node_answers.objects[number].answers, strict=True))
        return found

    def shapes(self, key: ClassKey) -> NodeShapes:
        """Return the shapes of the cards of a class."""
        return self._node_shapes.objects[key[0]]

    def facts(self, key: ClassKey) -> NodeFacts:
        """Return the facts of the nodes of a class, of the first kind."""
        return self._node_facts.objects[key[2][0][2]]

    def card_classes(
        self, kind: str, keys: Sequence[ClassKey], nodes: Sequence[NodeInfo]
    ) -> tuple[NDArray[np.int64], list[AskedCard], NDArray[np.int64]]:
        """Return the cards of a kind on one node of each class: how many a node has, the cards that differ,
        and for each card of all nodes its place among these.

        The classes are those of demands for this kind alone.
        """
        shapes = [self.shapes(key) for key in keys]
        of_kind = [each.of_kind(kind) for each in shapes]
        sizes, at = np.array([len(each) for each in of_kind], np.int64), np.concatenate(of_kind)
        answers = np.concatenate([self._node_answers.objects[key[1][0]].numbers for key in keys])
        numbers = np.concatenate([each.cards[places] for each, places in zip(shapes, of_kind, strict=True)])
        codes = numbers * len(self._card_answers) + answers
        known = [self.facts(key).cards for key in keys]
        facts = [found[places] for found, places in zip(known, of_kind, strict=True) if found is not None]
        if facts:
            codes = codes * len(self._card_facts) + np.concatenate(facts)
        _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
        answered = list(self._card_answers)
        of_nodes = np.repeat(np.arange(len(keys)), sizes)[firsts].tolist()
        cards_of = [self._inventories.at(node).cards for node in nodes]
        places_of = at[firsts].tolist()
        asked = map(
            AskedCard,
            [cards_of[of][place] for of, place in zip(of_nodes, places_of, strict=True)],
            [answered[number] for number in answers[firsts].tolist()],
            numbers[firsts].tolist(),
        )
        return sizes, list(asked), places

    def _facts_of(self, kind: str, place: int) -> Facts:
        program = self._inventories.programs[kind]
        return program.facts if place == _ALL else program.fitting.choosers[place].facts

    def _facts_numbers(self, kind: str, place: int, rows: Rows) -> list[tuple[str, int, int]]:
        """Return the number of the facts of each row that a device reads, or its chooser of this place."""
        if not self._facts_of(kind, place):
            return [(kind, place, 0)] * len(rows)
        live, known = self._live, self._by_facts.get((kind, place))
        assert live is not None
        if known is None:
            known = self._by_facts[kind, place] = ByRow(live, INT32, self.changes, live.usage_changes)
        known.refresh()

        def compute(missing: Rows) -> NDArray[Any]:
            ats = [self._inventories.at(live.info(row)) for row in missing.tolist()]
            return np.array([self._facts_number(kind, place, at)[2] for at in ats], np.int32)

        return [(kind, place, number) for number in known.get(rows, compute)[0].tolist()]

    def _facts_number(self, kind: str, place: int, at: NodeCards) -> tuple[str, int, int]:
        facts = self._facts_of(kind, place)
        if not facts:
            return kind, place, 0

        def made() -> NodeFacts:
            fitting = self._inventories.programs[kind].fitting
            read, cards = fitting.cards.facts, None
            if read.are_of_cards:
                cards = numbered(self._card_facts, map(read.of_card, at.cards))
            return NodeFacts(fitting.node_facts.of_node(at.node), cards)

        found = (facts.of_node(at.node), tuple(map(facts.of_card, at.cards)) if facts.are_of_cards else ())
        return kind, place, self._node_facts.of((kind, place, *found), made)

    def _answer_numbers(self, demand: Demand, kind: str, live: LiveSnapshot, rows: Rows) -> list[int]:
        """Return the number of the answers of identity tests for each row; `NO_CLASS` if a test fails."""
        asked = self._inventories.programs[kind].fitting.cards.identity.asked
        signature = demand.read.get(kind)
        if signature is None:
            signature = demand.read[kind] = asked.signature(demand.pod, demand.policy)
        known = self._by_answers.get(
            (kind, signature), lambda known: True, lambda: ByRow(live, INT32, self.changes)
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
                own = self._own_answers(kind, at)
                found = asked.answers(frame, at.node, of_kind(at.cards, kind))
                numbers.append(self._number(tuple(map(add, own, found))))
            return np.array(numbers, np.int32)[places]

        numbers: list[int] = known.get(rows, compute)[0].tolist()
        return numbers

    def _own_answers(self, kind: str, at: NodeCards) -> tuple[IdentityAnswer, ...]:
        """Return the answers of the identity tests that do not read the pod."""
        own = self._inventories.programs[kind].fitting.cards.identity.own

        def compute(at: NodeCards) -> tuple[IdentityAnswer, ...]:
            return own.answers(own.section.frame(), at.node, of_kind(at.cards, kind))

        found: tuple[IdentityAnswer, ...] = self._once(kind, at, compute)
        return found

    def _alike_rows(self, kind: str, live: LiveSnapshot) -> AlikeRows:
        if kind not in self._alike:
            fields = self._inventories.programs[kind].fitting.cards.identity.asked.fields

            def cards(row: int) -> RowCards:
                at = self._inventories.idle(live.info(row))
                return of_kind(at.cards, kind), self._own_answers(kind, at)

            self._alike[kind] = AlikeRows(live, self.changes, fields, cards)
        return self._alike[kind]

    def _number(self, answers: tuple[IdentityAnswer, ...]) -> int:
        if any(isinstance(each, str) for answer in answers for each in answer):
            return NO_CLASS

        return self._node_answers.of(
            answers, lambda: NodeAnswers(answers, numbered(self._card_answers, answers))
        )

    def shapes_number(self, node: NodeInfo, cards: tuple[Card, ...]) -> int:
        """Return the number of the shapes of the cards of a node, which may be those of a what-if."""

        def made() -> NodeShapes:
            return NodeShapes(
                node_score(cards),
                tuple([card.type for card in cards]),
                numbered(self.card_shapes.numbers, [card.shape for card in cards]),
            )

        faults = self._inventories.inventory(node.facts).faults
        return self._node_shapes.of((tuple(faults.items()), tuple([card.shape for card in cards])), made)


def _most(live: LiveSnapshot) -> int:
    """Return the most values that are numbered."""
    return SPARE_CLASSES + 2 * len(live.names)
