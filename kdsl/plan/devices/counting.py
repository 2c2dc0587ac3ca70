"""Nodes that fit a pod, by the number of their cards that fit: many nodes at once.

Pods that no quota limits need no more, if their device has no `value`. The requests of a pod are counted in
turn: a chooser that takes the first cards that fit leaves known cards to the next request. Where a device has
a `value`, or with another chooser before the last request, counts only exclude the nodes that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.check.devices.forms import CHOOSERS as CHOOSER_FORMS
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceContainer, Phase
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.values import EvalError
from kdsl.plan.columns.column import Array, Mask, NotColumnar
from kdsl.plan.devices.attempt import ContainerAttempt, NodeCards
from kdsl.plan.devices.card_columns import MIN_CARDS, NOT_ASKED
from kdsl.plan.devices.card_tests import Walker
from kdsl.plan.devices.cards_left import CardsLeft
from kdsl.plan.devices.choosers import GREEDY
from kdsl.plan.devices.classes import ClassKey, InventoryClasses
from kdsl.plan.devices.demand import Demand, DeviceRequest, Outcome
from kdsl.plan.devices.fitting import INSUFFICIENT, refusal
from kdsl.plan.devices.identity import IdentityAnswer
from kdsl.plan.devices.program import DeviceProgram

FEW_CARDS: Final = 12
"""Fewer cards are put in order one by one."""
_PLAIN: Final = frozenset((bool, int, str))
"""The types of values that are equal as rules compare them."""


Turn = tuple[DeviceContainer, DeviceRequest]
"""A container that requests cards, and its request."""


def countable_turns(programs: Mapping[str, DeviceProgram], demand: Demand) -> list[Turn]:
    """Return the requests of a pod in turn; none if cards must be chosen."""
    if len(demand.kinds) != 1:
        return []
    program = programs[demand.kinds[0]]
    if demand.quota.limits_any(program.quota_names):
        return []
    if not program.fitting.cards.are_countable or not program.order.is_by_shape:
        return []
    return [
        (container, request)
        for container, requests in zip(demand.pod.containers, demand.requests, strict=True)
        for request in requests.values()
    ]


class CardCounts:
    """The cards that fit `countable_turns` on nodes with the facts of one node."""

    def __init__(
        self, programs: Mapping[str, DeviceProgram], demand: Demand, turns: Sequence[Turn], at: NodeCards
    ) -> None:
        self._program = programs[turns[0][1].kind]
        self._turns = [_RequestCounts(self._program, demand, turn, at) for turn in turns]

    def reasons(self, classes: InventoryClasses, keys: Sequence[ClassKey], rows: Rows) -> list[str | None]:
        """Return the reason against a node of each class, empty if the pod fits; None if only a choice of
        cards decides. `rows` has a node of each class.
        """
        reasons: list[str | None] = [None] * len(keys)
        nodes, cards = np.arange(len(keys)), CardsLeft.of(*classes.card_classes(keys), classes.cards)
        # A `value` depends on the chosen cards.
        must_choose = self._program.has_value
        for turn in self._turns:
            is_last = turn is self._turns[-1]
            served = list[int]()
            found, fitting, order = turn.reasons(classes, cards, rows[nodes], takes=not is_last)
            for place, (node, reason) in enumerate(zip(nodes.tolist(), found, strict=True)):
                if reason == "" and not is_last:
                    served.append(place)
                elif reason != "" or not must_choose:
                    reasons[node] = reason
            if not served or order is None or not self._program.fitting.cards.are_countable_in_turn:
                break
            places = np.array(served, np.intp)
            nodes, cards = nodes[places], turn.left(cards.part(places), fitting, order)
        return reasons


class _RequestCounts:
    """The cards that fit one request, among those that earlier containers of the pod leave."""

    def __init__(self, program: DeviceProgram, demand: Demand, turn: Turn, at: NodeCards) -> None:
        container, request = turn
        self._order, self._fitting, self._at = program.order, program.fitting, at
        # INVARIANT: no test of a countable device reads other cards, or of the node more than its facts.
        self._attempt = ContainerAttempt(demand, at.node, container, request, ())
        self._walker = Walker(self._fitting.cards, self._attempt)

    def reasons(
        self, classes: InventoryClasses, cards: CardsLeft, rows: Rows, takes: bool
    ) -> tuple[list[str | None], Mask, list[Array] | None]:
        """Return the reason against each node, empty if enough cards fit; None if only a choice of cards
        decides. With `takes` it is empty only if the container takes the first cards that fit. Return also
        which of the different cards fit, and the numbers by which they are put in order.
        """
        attempt, choosers = self._attempt, self._fitting.choosers
        request, sizes = attempt.request, cards.sizes
        order: list[Array] | None = None
        try:
            # Keys of few cards are mostly known, from other pods of this signature. Columns need a card, and
            # nodes may have only cards of other kinds.
            if len(cards.different) >= (1 if takes else FEW_CARDS):
                order = self._order.columns(cards.variable(), classes.live, attempt.demand, self._at, request)
            if order is None:
                # A card that cannot be put in order is an error.
                tried = [each.card for each in cards.different]
                self._order.sort_keys(tried, attempt.demand, self._at, request, (request,))
            refused = self._fitting.cards.gated({**attempt.names, "devices": ()})
        except EvalError:
            return [None] * len(rows), np.zeros(len(cards.different), np.bool_), None
        counts, reasons_of, fitting, is_open = self._count(cards, classes.live)
        texts = dict[tuple[int, ...], str]()
        reasons: list[str | None] = []
        for place, row, size, is_unclear, of_node in zip(
            classes.choosers(attempt.demand, request, rows),
            rows.tolist(),
            sizes.tolist(),
            is_open.tolist(),
            counts.tolist(),
            strict=True,
        ):
            reason: str | None = None
            chooser = None if place is None else choosers[place]
            if place is None or chooser is None:
                pass
            elif request.count > size and not CHOOSER_FORMS[chooser.name].repeats:
                reason = INSUFFICIENT
            elif refused:
                reason = f"1/{size} {refused}"
            elif is_unclear:
                pass
            elif of_node[0] >= request.count:
                is_counted = chooser.is_counted and (chooser.name in GREEDY or not takes)
                if is_counted and (not chooser.has_pairs or classes.knows_pairs(request.kind, place, row)):
                    reason = ""
            elif chooser.counts_refusals:
                found_counts = (place, *of_node)
                reason = texts.get(found_counts)
                if reason is None:
                    reason = texts[found_counts] = self._refusal(place, reasons_of, of_node)
            reasons.append(reason)
        return reasons, fitting, order

    def _count(self, cards: CardsLeft, live: LiveSnapshot) -> tuple[NDArray[np.intp], list[str], Mask, Mask]:
        """Return how many cards of each node have each reason against them, these reasons, of which the first
        is empty, which different cards fit, and whether the order of trying may decide about a node.
        """
        nodes = len(cards.sizes)
        outcomes, numbers_of = self._outcomes(cards, live)
        places = numbers_of[cards.places]
        numbers = {"": 0}
        found = [numbers.setdefault(each.reason, len(numbers)) if each else 0 for each in outcomes]
        reason_of = np.array(found, np.intp)
        width = len(numbers)
        counts = np.bincount(cards.nodes * width + reason_of[places], minlength=nodes * width)
        is_open = self._open(outcomes, cards.nodes, places, nodes)
        return counts.reshape(nodes, width), list(numbers), (reason_of == 0)[numbers_of], is_open

    def left(self, cards: CardsLeft, fitting: Mask, order: Iterable[Array]) -> CardsLeft:
        """Return the cards that the container leaves on nodes where it takes the first cards that fit;
        `fitting` and `order` are those that `reasons` returns.
        """
        if self._attempt.container.phase is Phase.INIT:
            return cards
        ordered = cards.ordered(order)
        chosen = ordered.first(fitting, self._attempt.request.count)
        # INVARIANT: a card that fits has a charge.
        return ordered.after(chosen, self._walker.charge, self._fitting.cards.facts.key)

    def _refusal(self, chooser: int, reasons: Sequence[str], counts: Sequence[int]) -> str:
        found = {reason: count for reason, count in zip(reasons, counts, strict=True) if reason and count}
        if counts[0]:
            own = str(self._fitting.choosers[chooser].reason)
            found[own] = found.get(own, 0) + counts[0]
        return refusal(found, sum(counts))

    def _outcomes(
        self, cards: CardsLeft, live: LiveSnapshot
    ) -> tuple[list[Outcome | None], NDArray[np.intp]]:
        """Return different outcomes, None if a test fails, and the number of that of each different card."""
        found: list[Outcome | None] = []
        different = cards.different
        numbers = np.full(len(different), NOT_ASKED)
        new = np.arange(len(different))
        known, class_of = self._walker.verdicts, self._walker.card_class
        if known:
            new = np.array([class_of(each.card, each.answer) not in known for each in different]).nonzero()[0]
        columns = self._fitting.cards.columns if len(new) >= MIN_CARDS else None
        if columns is not None:
            asked = [different[place] for place in new.tolist()]
            frames = self._fitting.cards.frames(self._attempt)
            with suppress(NotColumnar):
                outcomes, numbers[new] = columns.outcomes(asked, cards.objects, frames, live)
                found += outcomes
        for place in (numbers == NOT_ASKED).nonzero()[0].tolist():
            numbers[place] = len(found)
            found.append(self._outcome(different[place].card, different[place].answer))
        return found, numbers

    def _outcome(self, card: Card, identity: IdentityAnswer) -> Outcome | None:
        """Return the outcome of cards of one class; None if a test fails."""
        walker = self._walker
        card_class = walker.card_class(card, identity)
        try:
            return walker.verdicts.get(card_class) or walker.judge(card, identity, card_class)
        except EvalError:
            return None

    def _open(
        self,
        outcomes: Sequence[Outcome | None],
        nodes: NDArray[np.intp],
        places: NDArray[np.intp],
        count: int,
    ) -> NDArray[np.bool_]:
        """Return the nodes for which the order of trying may decide: a test fails, all tests together take
        too many steps, or cards are not to be together.
        """
        limit = self._fitting.cards.limit
        steps = np.array([limit + 1 if each is None else each.steps for each in outcomes], np.int64)
        is_open = np.bincount(nodes, steps[places], count) > limit
        numbers = dict[object, int]()
        of_class = [_number(each, numbers) for each in outcomes]
        if len(numbers) > 1:
            values = np.array(of_class, np.intp)[places]
            one = np.zeros(count, np.intp)
            reached = values >= 0
            one[nodes[reached]] = values[reached]
            is_open[nodes[reached & (values != one[nodes])]] = True
        return is_open


def _number(outcome: Outcome | None, numbers: dict[object, int]) -> int:
    """Return the number of the values of `together by`, -1 without one. Equal values have one number if they
    are whole numbers or texts.
    """
    if outcome is None or not outcome.apart:
        return -1
    types = tuple(map(type, outcome.apart))
    key = (types, outcome.apart) if _PLAIN.issuperset(types) else len(numbers)
    return numbers.setdefault(key, len(numbers))
