"""Nodes that fit a pod, by the number of their cards that fit: without a choice among cards.

Pods with one request need no more, if their device has no `value` and no quota counts. Their cards are chosen
for their own node alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.eval.values import EvalError
from kdsl.plan.devices.attempt import ContainerAttempt
from kdsl.plan.devices.card_memo import CardMemo, Settled
from kdsl.plan.devices.card_tests import Walker
from kdsl.plan.devices.classes import ClassKey, InventoryClasses
from kdsl.plan.devices.fitting import INSUFFICIENT, refusal
from kdsl.plan.devices.identity import NO_ANSWERS, IdentityAnswer
from kdsl.plan.devices.inventories import NodeInventory
from kdsl.plan.devices.placing import of_kind
from kdsl.plan.devices.program import DeviceProgram
from kdsl.plan.devices.requests import Demand


class CardCounts:
    """Counts the cards of nodes that fit a demand."""

    def __init__(self, program: DeviceProgram, attempt: ContainerAttempt, memo: CardMemo) -> None:
        self._fitting, self._attempt, self._memo = program.fitting, attempt, memo
        tests = program.fitting.cards
        self._walker, self._groups, self._limit = Walker(tests, attempt), tests.unlimited, tests.limit
        self._verdicts = memo.verdicts(attempt.request)

    @staticmethod
    def of(programs: Mapping[str, DeviceProgram], demand: Demand, memo: CardMemo) -> CardCounts | None:
        """Return the counts for a demand; None if cards must be chosen to answer it."""
        asked = [
            (container, request)
            for container, requests in zip(demand.pod.containers, demand.requests, strict=True)
            for request in requests.values()
        ]
        if len(asked) != 1:
            return None
        ((container, request),) = asked
        program = programs[request.kind]
        if not program.is_countable or (demand.quota and demand.quota.limits_any(program.quota_names)):
            return None
        # INVARIANT: no test of a countable device reads the node or its other cards.
        attempt = ContainerAttempt(
            demand.pod, DeviceNode(""), demand.policy, container, request, (), (), None, NO_ANSWERS
        )
        return CardCounts(program, attempt, memo)

    def reasons(
        self, classes: InventoryClasses, keys: Sequence[ClassKey], inventories: Sequence[NodeInventory]
    ) -> list[str | None]:
        """Return the reason against a node of each class, empty if the pod fits; None if only a choice of
        cards decides. `inventories` are those of the nodes.
        """
        request = self._attempt.request
        sizes, cards, places = classes.card_classes(request.kind, keys)
        settled = [self._settled(card, answer) for card, answer in cards]
        nodes = np.repeat(np.arange(len(keys)), sizes)
        is_open = self._open(settled, nodes, places, len(keys))
        numbers = {"": 0}
        found = [numbers.setdefault(each.reason, len(numbers)) if each else 0 for each in settled]
        width = len(numbers)
        counted = np.bincount(nodes * width + np.array(found, np.intp)[places], minlength=len(keys) * width)
        texts: dict[tuple[int, ...], str] = {}
        reasons: list[str | None] = []
        for inventory, size, is_unclear, counts in zip(
            inventories, sizes.tolist(), is_open.tolist(), counted.reshape(-1, width).tolist(), strict=True
        ):
            chooser = None if is_unclear else self._chooser(inventory)
            if chooser is None:
                reasons.append(None)
            elif request.count > size:
                reasons.append(INSUFFICIENT)
            elif counts[0] >= request.count:
                reasons.append("")
            else:
                key = (chooser, *counts)
                text = texts.get(key)
                if text is None:
                    text = texts[key] = self._refusal(chooser, numbers, counts)
                reasons.append(text)
        return reasons

    def _refusal(self, chooser: int, numbers: Mapping[str, int], counts: Sequence[int]) -> str:
        found = {reason: counts[number] for reason, number in numbers.items() if number and counts[number]}
        if counts[0]:
            own = str(self._fitting.choosers[chooser].reason)
            found[own] = found.get(own, 0) + counts[0]
        return refusal(found, sum(counts))

    def _chooser(self, inventory: NodeInventory) -> int | None:
        """Return the place of the chooser of a node, None if it is not `is_counted`."""
        attempt, known = self._attempt, self._memo.choosers
        request = attempt.request
        key = request if self._fitting.chooses_by_request else request.kind, inventory.shapes
        if key not in known:
            cards = of_kind(inventory.cards, request.kind)
            try:
                place = self._fitting.chooser({**attempt.names, "devices": cards})
            except EvalError:
                return None
            known[key] = place if self._fitting.choosers[place].is_counted else None
        return known[key]

    def _settled(self, card: Card, identity: IdentityAnswer) -> Settled | None:
        """Return the outcome of cards of one class; None if a test fails."""
        card_class = (card.shape, identity, False)
        try:
            verdict = self._verdicts.get(card_class)
            if verdict is None:
                verdict = self._verdicts[card_class] = self._walker.verdict(card, self._groups)
            return verdict.settled or self._walker.settled(card, verdict, identity, self._groups)
        except EvalError:
            return None

    def _open(
        self,
        settled: Sequence[Settled | None],
        nodes: NDArray[np.intp],
        places: NDArray[np.intp],
        count: int,
    ) -> NDArray[np.bool_]:
        """Return the nodes for which the order of trying may decide: a test fails, all tests together take
        too many steps, or cards are not to be together.
        """
        steps = np.array([self._limit + 1 if each is None else each.steps for each in settled], np.int64)
        is_open = np.bincount(nodes, steps[places], count) > self._limit
        for place in range(len(self._groups.together)):
            numbers = dict[object, int]()
            of_class = [_number(each, place, numbers) for each in settled]
            if len(numbers) > 1:
                values = np.array(of_class, np.intp)[places]
                one = np.zeros(count, np.intp)
                reached = values >= 0
                one[nodes[reached]] = values[reached]
                is_open[nodes[reached & (values != one[nodes])]] = True
        return is_open


def _number(settled: Settled | None, place: int, numbers: dict[object, int]) -> int:
    """Return the number of a value of `together by`, -1 without one. Equal values have one number if they are
    whole numbers or texts.
    """
    if settled is None or len(settled.apart) <= place:
        return -1
    value = settled.apart[place]
    key = (type(value), value) if isinstance(value, (int, str)) else len(numbers)
    return numbers.setdefault(key, len(numbers))
