"""The compiled `order by` of a device: the order in which its cards are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Bind, CallFn, CallOf, Comprehension, Macro, TypedExpr, Var
from kdsl.check.rules.totality import Totality
from kdsl.cluster.devices.cards import Card
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar import Frame
from kdsl.plan.devices.attempt import NodeCards, names_of
from kdsl.plan.devices.demand import Demand, DeviceRequest
from kdsl.plan.devices.facts import Facts
from kdsl.plan.devices.fullness import card_score
from kdsl.plan.devices.identity import reads_only
from kdsl.plan.devices.section import DeviceSource, value_of

_NUMBERS: Final = frozenset(
    ("index", "numa", "slots", "used", "memory", "usedMemory", "cores", "usedCores", "healthy")
)
"""Fields of cards that take the same steps for all cards."""
_BRANCHES: Final = frozenset(("_?_:_", "_&&_", "_||_"))
_EVEN: Final = frozenset((Macro.MAP, Macro.TRANSFORM_LIST, Macro.TRANSFORM_MAP))
"""Macros that evaluate all of their body for each item, without a `where`."""


class CardOrder:
    """The keys by which cards are put in order."""

    def __init__(self, source: DeviceSource) -> None:
        names, keys = source.device.order.scope, source.device.order.steps
        self.section = source.section(names)
        self._keys = [(self.section.compile(key.value), key.descending, key.value.span) for key in keys]
        read = {part.slot for key in keys for part in walk(key.value) if isinstance(part, Var)}
        self._is_shared = names["devices"].slot not in read
        self._fns = source.functions.fns
        self._reads_fullness = names["fullness"].slot in read
        self._of_card = frozenset((names["device"].slot, names["fullness"].slot))

    @cached_property
    def is_total(self) -> bool:
        """Whether all cards have keys if one of them has: no key can fail, and all take the same steps."""
        exprs = self.section.opened
        totality = Totality({}, self._fns)
        return reads_only(exprs, _NUMBERS) and all(
            totality.why_it_may_fail(each) is None and _is_even(each, self._of_card) for each in exprs
        )

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


def _is_even(expr: TypedExpr, slots: frozenset[int]) -> bool:
    """Return whether an expression takes the same steps whatever numbers are in these slots."""
    varying = set(slots)

    def varies(*exprs: TypedExpr | None) -> bool:
        return not varying.isdisjoint(free_slots(*exprs))

    for part in walk(expr):
        match part:
            case CallOf(function=function, args=(condition, *_)) if function in _BRANCHES:
                # INVARIANT: a chain of `&&` has all operands but the last in the first argument.
                is_uneven = varies(condition)
            case Comprehension(macro=macro):
                deciding = part.where if macro in _EVEN else part.body
                is_uneven = varies(part.iterable, deciding)
            case CallFn():
                is_uneven = varies(*part.args)
            case Bind() if varies(part.value):
                varying.add(part.variable.slot)
                continue
            case _:
                continue
        if is_uneven:
            return False
    return True
