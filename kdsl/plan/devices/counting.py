"""Nodes that fit a pod, by the number of their cards that fit: without a choice among cards.

Pods with one request that no quota limits need no more, if their device has no `value`. Their cards are
chosen for their own node alone. Where a device has a `value`, or a pod further requests for it, counts only
exclude the nodes that do not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.check.devices.forms import CHOOSERS as CHOOSER_FORMS
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceContainer
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.values import EvalError
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.devices.attempt import ContainerAttempt, NodeCards
from kdsl.plan.devices.card_columns import MIN_CARDS, NOT_ASKED, AskedCard
from kdsl.plan.devices.card_tests import Walker
from kdsl.plan.devices.classes import ClassKey, InventoryClasses
from kdsl.plan.devices.demand import Demand, DeviceRequest, Outcome
from kdsl.plan.devices.fitting import INSUFFICIENT, refusal
from kdsl.plan.devices.identity import IdentityAnswer
from kdsl.plan.devices.program import DeviceProgram

_PLAIN: Final = frozenset((bool, int, str))
"""The types of values that are equal as rules compare them."""


def countable_request(
    programs: Mapping[str, DeviceProgram], demand: Demand
) -> tuple[DeviceContainer, DeviceRequest] | None:
    """Return the first request of a pod, with its container; None if cards must be chosen."""
    asked = (
        (container, request)
        for container, requests in zip(demand.pod.containers, demand.requests, strict=True)
        for request in requests.values()
    )
    first = next(asked, None)
    if first is None or len(demand.kinds) > 1:
        return None
    program = programs[first[1].kind]
    is_countable = program.fitting.cards.are_countable and program.order.is_by_shape
    return first if is_countable and not demand.quota.limits_any(program.quota_names) else None


class CardCounts:
    """The numbers of cards that fit a `countable_request`, on nodes with the facts of one node.

    If the pod has further requests, only a choice of cards shows whether a node fits.
    """

    def __init__(
        self,
        programs: Mapping[str, DeviceProgram],
        demand: Demand,
        asked: tuple[DeviceContainer, DeviceRequest],
        at: NodeCards,
    ) -> None:
        container, request = asked
        self._program, self._at = programs[request.kind], at
        self._fitting = self._program.fitting
        # INVARIANT: no test of a countable device reads other cards, or of the node more than its facts.
        self._attempt = ContainerAttempt(demand, at.node, container, request, ())
        self._walker = Walker(self._fitting.cards, self._attempt)
        self._has_more = sum(map(len, demand.requests)) > 1

    def reasons(self, classes: InventoryClasses, keys: Sequence[ClassKey], rows: Rows) -> list[str | None]:
        """Return the reason against a node of each class, empty if the pod fits; None if only a choice of
        cards decides. `rows` has a node of each class.
        """
        attempt, order, choosers = self._attempt, self._program.order, self._fitting.choosers
        request = attempt.request
        sizes, cards, places = classes.card_classes(keys)
        tried = [each.card for each in (cards[:1] if order.is_total else cards)]
        try:
            # A card that cannot be put in order is an error.
            order.sort_keys(tried, attempt.demand, self._at, request, (request,))
            refused = self._fitting.cards.gated({**attempt.names, "devices": ()})
        except EvalError:
            return [None] * len(keys)
        outcomes, numbers_of = self._outcomes(cards, classes)
        places = numbers_of[places]
        of = np.repeat(np.arange(len(keys)), sizes)
        is_open = self._open(outcomes, of, places, len(keys))
        numbers = {"": 0}
        found = [numbers.setdefault(each.reason, len(numbers)) if each else 0 for each in outcomes]
        width = len(numbers)
        counted = np.bincount(of * width + np.array(found, np.intp)[places], minlength=len(keys) * width)
        texts, is_chosen = dict[tuple[int, ...], str](), self._has_more or self._program.has_value
        reasons: list[str | None] = []
        for place, row, size, is_unclear, counts in zip(
            classes.choosers(attempt.demand, request, rows),
            rows.tolist(),
            sizes.tolist(),
            is_open.tolist(),
            counted.reshape(-1, width).tolist(),
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
            elif counts[0] >= request.count:
                is_counted = chooser.is_counted and not is_chosen
                if is_counted and (not chooser.has_pairs or classes.knows_pairs(request.kind, place, row)):
                    reason = ""
            elif chooser.counts_refusals:
                found_counts = (place, *counts)
                reason = texts.get(found_counts)
                if reason is None:
                    reason = texts[found_counts] = self._refusal(place, numbers, counts)
            reasons.append(reason)
        return reasons

    def _refusal(self, chooser: int, numbers: Mapping[str, int], counts: Sequence[int]) -> str:
        found = {reason: counts[number] for reason, number in numbers.items() if number and counts[number]}
        if counts[0]:
            own = str(self._fitting.choosers[chooser].reason)
            found[own] = found.get(own, 0) + counts[0]
        return refusal(found, sum(counts))

    def _outcomes(
        self, cards: Sequence[AskedCard], classes: InventoryClasses
    ) -> tuple[list[Outcome | None], NDArray[np.intp]]:
        """Return different outcomes of cards, None if a test fails, and the number of each card's."""
        found: list[Outcome | None] = []
        numbers = np.full(len(cards), NOT_ASKED)
        new = np.arange(len(cards))
        known, class_of = self._walker.verdicts, self._walker.card_class
        if known:
            new = np.array([class_of(each.card, each.answer) not in known for each in cards]).nonzero()[0]
        columns = self._fitting.cards.columns if len(new) >= MIN_CARDS else None
        if columns is not None:
            asked = [cards[place] for place in new.tolist()]
            frames = self._fitting.cards.frames(self._attempt)
            with suppress(NotColumnar):
                outcomes, numbers[new] = columns.outcomes(asked, classes.cards, frames, classes.live)
                found += outcomes
        for place in (numbers == NOT_ASKED).nonzero()[0].tolist():
            numbers[place] = len(found)
            found.append(self._outcome(cards[place].card, cards[place].answer))
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
