"""Node classes of devices: nodes that are equal in the shapes of their cards, in answers of identity tests
and in `facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.base.bounded_memo import Memo
from kdsl.base.by_identity import ByIdentity
from kdsl.base.change_log import ChangeLog
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.changed_rows import ChangedRows
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.hooks.status import Status
from kdsl.plan.columns.distinct_objects import DistinctObjects, numbered
from kdsl.plan.devices.alike import INT32, AlikeRows, RowCards
from kdsl.plan.devices.attempt import NodeCards, names_of
from kdsl.plan.devices.card_columns import AskedCard
from kdsl.plan.devices.demand import Demand, DeviceRequest
from kdsl.plan.devices.identity import IdentityAnswer, IdentityAnswers
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.placing import of_kind
from kdsl.plan.memo.answers import ByRow

NO_CLASS: Final = -1
"""The number of a node without a class."""
SPARE_CLASSES: Final = 16_384
"""The memo holds so many classes and twice as many as there are rows. A class takes about 200 bytes per card.
"""
_ALL: Final = -1
"""Stands for the facts of a device but for those of its choosers, with the shapes of all cards."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

AnswersKey = tuple[int, ...]
"""For each kind of a demand the number of the answers of its identity tests about the cards of a node."""
Part = tuple[str, int]
"""A kind, and the place of its chooser that reads facts, `_ALL` for the device."""
Fact = tuple[Part, int]
"""A part and the number of its facts."""
ClassKey = tuple[AnswersKey, tuple[Fact, ...]]
"""The key of answers, and the numbers of facts: first those of each kind's device, then those of choosers."""


@dataclass(frozen=True, slots=True)
class LikeNodes:
    """Nodes that are alike for a kind of device, beside identity tests and choosers.

    `fullness` is that of all their cards, `are_used` says whether pods have parts of these. `refusal` is the
    status of nodes without a card to try, `facts` are the node's that decide which cards fit. `cards` has for
    each card of the kind the number of its shape with the facts that decide about it.
    """

    fullness: np.float32
    are_used: bool
    refusal: Status | None
    facts: Hashable
    cards: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NodeAnswers:
    """The answers of identity tests about the cards of a node, and the number of each."""

    answers: tuple[IdentityAnswer, ...]
    numbers: NDArray[np.int64]


class InventoryClasses:
    """The classes of the rows of a live snapshot. `generation` rises when all numbers become void; `changes`
    has the rows whose nodes changed for device rules since then.
    """

    def __init__(self, inventories: Inventories) -> None:
        self.generation = 0
        self._inventories = inventories
        self._live: LiveSnapshot | None = None
        self._reset()

    @property
    def live(self) -> LiveSnapshot:
        """The live snapshot of the last `refresh`."""
        assert self._live is not None
        return self._live

    def refresh(self, live: LiveSnapshot) -> None:
        """Take in the changes since the last time."""
        numbers: list[Sized] = [self._facts, self.cards, self._node_answers, self._card_answers]
        is_full = max(map(len, (*numbers, *self._alike.values()))) > _most(live)
        changed = self._changed.take(live.fact_changes)
        if changed is None or live is not self._live or is_full:
            self.generation += 1
            self._live = live
            self._reset()
            self._changed.take(live.fact_changes)
        elif changed:
            self._note(changed, live.nodes_by_row())
        self._inventories.forget_if_many(live)

    def _note(self, rows: Iterable[int], infos: Sequence[NodeInfo | None]) -> None:
        """Note those of the changed rows whose nodes changed for device rules."""
        for row in rows:
            info, before = infos[row], self._nodes.pop(row, None)
            if info is not None:
                self._nodes[row] = self._inventories.inventory(info.facts)
            if before is None or before is not self._nodes.get(row):
                self.changes.note(row, len(infos))

    def _reset(self) -> None:
        self.changes, self._changed = ChangeLog[int](), ChangedRows()
        self._nodes = dict[int, NodeCards]()
        self._facts = dict[Hashable, int]()
        self._like = dict[int, LikeNodes]()
        self.cards = DistinctObjects[Card]()
        self._node_answers = dict[tuple[IdentityAnswer, ...], int]()
        self._answers_of = dict[int, NodeAnswers]()
        self._card_answers = dict[IdentityAnswer, int]()
        self._kept = dict[Hashable, ByIdentity[NodeCards, Any]]()
        self._alike = dict[str, AlikeRows]()
        self._by_answers: Memo[ByRow] = Memo()
        self._by_facts = dict[tuple[Part, bool], ByRow]()

    def keys(
        self, demand: Demand, rows: Rows, what_ifs: Sequence[NodeCards] | None = None
    ) -> list[ClassKey | None]:
        """Return the classes of the nodes of some rows, or those that they would have as `what_ifs`, with
        other cards and pods; None for a node without one.
        """

        def facts_of(part: Part) -> list[Fact]:
            if what_ifs is None:
                return self._facts_of_rows(part, rows)
            return [(part, self._facts_number(part, at)) for at in what_ifs]

        facts = list(zip(*[facts_of((kind, _ALL)) for kind in demand.kinds], strict=True))
        choices = self._choices(demand, rows)
        more = {part: facts_of(part) for part in set().union(*choices)}
        if more:
            facts = [(*facts[at], *[more[part][at] for part in chosen]) for at, chosen in enumerate(choices)]
        answers = zip(*[self._answer_numbers(demand, kind, rows) for kind in demand.kinds], strict=True)
        return [None if NO_CLASS in key[0] else key for key in zip(answers, facts, strict=True)]

    def _choices(self, demand: Demand, rows: Rows) -> list[tuple[Part, ...]]:
        """Return for each row the choosers that may choose on its node and read facts."""
        programs = self._inventories.programs
        if not any(programs[kind].fitting.reads_choices for kind in demand.kinds):
            return [()] * len(rows)

        def compute(idle: tuple[Fact, ...], row: int) -> tuple[Part, ...]:
            found = dict[Part, None]()
            for (kind, _), number in idle:
                choosers = programs[kind].fitting.choosers
                for request in [asked[kind] for asked in demand.requests if kind in asked]:
                    place = self._chooser(demand, request, number, row)
                    for each in range(len(choosers)) if place is None else (place,):
                        if choosers[each].facts:
                            found[kind, each] = None
            return tuple(found)

        idle = [self._facts_of_rows((kind, _ALL), rows, is_idle=True) for kind in demand.kinds]
        return _once_each(zip(*idle, strict=True), rows, compute)

    def choosers(self, demand: Demand, request: DeviceRequest, rows: Rows) -> list[int | None]:
        """Return the place of the chooser of a request on the node of each row; None if it is not settled."""
        return _once_each(
            self._facts_of_rows((request.kind, _ALL), rows, is_idle=True),
            rows,
            lambda idle, row: self._chooser(demand, request, idle[1], row),
        )

    def _chooser(self, demand: Demand, request: DeviceRequest, idle: int, row: int) -> int | None:
        """Return the place of a chooser; `idle` is the number of the facts of the node without pods."""
        fitting = self._inventories.programs[request.kind].fitting
        asked = request if fitting.chooses_by_request else request.kind
        known, choosers = (self.generation, asked, idle), demand.memo.choosers
        if known not in choosers:
            at = self._inventories.inventory(self.live.info(row).facts)
            cards = of_kind(at.cards, request.kind)
            choosers[known] = fitting.settled_chooser(
                {**names_of(demand, at.node, request), "devices": cards}
            )
        return choosers[known]

    def idle(self, keys: Sequence[ClassKey], rows: Rows) -> list[ClassKey]:
        """Return the classes that nodes would have without pods; they have these classes and rows."""
        parts = {part for key in keys for part, _ in key[1]}
        facts = {part: self._facts_of_rows(part, rows, is_idle=True) for part in parts}
        return [
            (answers, tuple([facts[part][place] for part, _ in own]))
            for place, (answers, own) in enumerate(keys)
        ]

    def _idle_number(self, part: Part, at: NodeCards) -> int:
        number: int = self._once(part, at, partial(self._facts_number, part))
        return number

    def knows_pairs(self, kind: str, place: int, row: int) -> bool:
        """Return whether a chooser `knows_pairs` of the cards of a row."""
        chooser = self._inventories.programs[kind].fitting.choosers[place]
        known: bool = self._once(
            chooser,
            self._inventories.inventory(self.live.info(row).facts),
            lambda at: chooser.knows_pairs(of_kind(at.cards, kind)),
        )
        return known

    def _once(self, key: Hashable, at: NodeCards, compute: Callable[[NodeCards], Any]) -> Any:
        """Compute a value of an idle node once."""
        if key not in self._kept:
            self._kept[key] = ByIdentity(compute, _most(self.live))
        return self._kept[key].of(at)

    def identity(self, demand: Demand, key: ClassKey, node: NodeInfo) -> Mapping[str, IdentityAnswers]:
        """Return the answers of identity tests about the cards of a node of a class, by kind."""
        cards = self._inventories.inventory(node.facts).cards
        found: dict[str, IdentityAnswers] = {}
        for kind, number in zip(demand.kinds, key[0], strict=True):
            names = [card.id for card in of_kind(cards, kind)]
            found[kind] = dict(zip(names, self._answers_of[number].answers, strict=True))
        return found

    def like(self, keys: Iterable[ClassKey]) -> list[LikeNodes]:
        """Return the common properties of the nodes of each class, for the first kind."""
        return [self._like[facts[0][1]] for _, facts in keys]

    def card_classes(
        self, keys: Sequence[ClassKey]
    ) -> tuple[NDArray[np.int64], list[AskedCard], NDArray[np.int64]]:
        """Return the cards of the first kind on the nodes of some classes: how many a node has, the cards
        that differ, and the place of each card of all nodes among these.
        """
        of_nodes = [like.cards for like in self.like(keys)]
        answers = np.concatenate([self._answers_of[key[0][0]].numbers for key in keys])
        answered = list(self._card_answers)
        codes = np.concatenate(of_nodes) * len(answered) + answers
        different, places = np.unique(codes, return_inverse=True)
        cards = (different // len(answered)).tolist()
        asked = map(
            AskedCard,
            [self.cards.objects[number] for number in cards],
            [answered[number] for number in (different % len(answered)).tolist()],
            cards,
        )
        return np.fromiter(map(len, of_nodes), np.int64), list(asked), places

    def _facts_of_rows(self, part: Part, rows: Rows, is_idle: bool = False) -> list[Fact]:
        """Return the number of the facts that a device or a chooser reads of the node of each row, with its
        pods or as if it was `is_idle`.
        """
        live, known = self.live, self._by_facts.get((part, is_idle))
        if known is None:
            logs = (self.changes,) if is_idle else (self.changes, live.usage_changes)
            known = self._by_facts[part, is_idle] = ByRow(live, INT32, *logs)
        known.refresh()

        def compute(missing: Rows) -> NDArray[Any]:
            of = self._inventories
            numbers = [
                self._idle_number(part, of.inventory(node.facts))
                if is_idle or not node.pods
                else self._facts_number(part, of.at(node))
                for node in map(live.info, missing.tolist())
            ]
            return np.array(numbers, np.int32)

        return [(part, number) for number in known.get(rows, compute)[0].tolist()]

    def _facts_number(self, part: Part, at: NodeCards) -> int:
        kind, place = part
        program = self._inventories.programs[kind]
        facts = program.facts if place == _ALL else program.fitting.choosers[place].facts
        found = (facts.of_node(at.node), tuple(map(facts.of_card, at.cards)) if facts.are_of_cards else ())
        if place != _ALL:
            return self._facts.setdefault((part, found), len(self._facts))
        value = (part, found, at.faults.get(kind), tuple([card.shape for card in at.cards]))
        number = self._facts.setdefault(value, len(self._facts))
        if number not in self._like:
            read, cards = program.fitting.cards.facts, of_kind(at.cards, kind)
            numbers = self.cards.number([(kind, read.key(card)) for card in cards], cards)
            refusal = at.refusal((kind,))
            self._like[number] = LikeNodes(at.fullness, at.are_used, refusal, read.of_node(at.node), numbers)
        return number

    def _answer_numbers(self, demand: Demand, kind: str, rows: Rows) -> list[int]:
        """Return the number of the answers of identity tests for each row; `NO_CLASS` if a test fails."""
        live, asked = self.live, self._inventories.programs[kind].fitting.cards.identity.asked
        signature = demand.memo.read.get(kind)
        if signature is None:
            signature = demand.memo.read[kind] = asked.signature(demand.pod, demand.policy)
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
                at = self._inventories.inventory(live.info(row).facts)
                own = self._own_answers(kind, at)
                found = asked.answers(frame, at.node, of_kind(at.cards, kind))
                numbers.append(self._number(tuple(map(add, own, found))))
            return np.array(numbers, np.int32)[places]

        numbers: list[int] = known.get(rows, compute)[0].tolist()
        return numbers

    def _own_answers(self, kind: str, at: NodeCards) -> tuple[IdentityAnswer, ...]:
        """Return the answers of the identity tests that do not read the pod."""
        own = self._inventories.programs[kind].fitting.cards.identity.own
        found: tuple[IdentityAnswer, ...] = self._once(
            kind, at, lambda at: own.answers(own.section.frame(), at.node, of_kind(at.cards, kind))
        )
        return found

    def _alike_rows(self, kind: str, live: LiveSnapshot) -> AlikeRows:
        if kind not in self._alike:
            fields = self._inventories.programs[kind].fitting.cards.identity.asked.fields

            def cards(row: int) -> RowCards:
                at = self._inventories.inventory(live.info(row).facts)
                return of_kind(at.cards, kind), self._own_answers(kind, at)

            self._alike[kind] = AlikeRows(live, self.changes, fields, cards)
        return self._alike[kind]

    def _number(self, answers: tuple[IdentityAnswer, ...]) -> int:
        if any(isinstance(each, str) for answer in answers for each in answer):
            return NO_CLASS
        number = self._node_answers.setdefault(answers, len(self._node_answers))
        if number not in self._answers_of:
            self._answers_of[number] = NodeAnswers(answers, numbered(self._card_answers, answers))
        return number


def _most(live: LiveSnapshot) -> int:
    """Return the most values that are numbered."""
    return SPARE_CLASSES + 2 * len(live.names)


def _once_each(values: Iterable[K], rows: Rows, compute: Callable[[K, int], V]) -> list[V]:
    """Return a result for each value, computed once for equal ones, with one of their rows."""
    values = list(values)
    firsts = dict(zip(values, rows.tolist(), strict=True))
    found = {value: compute(value, row) for value, row in firsts.items()}
    return [found[value] for value in values]
