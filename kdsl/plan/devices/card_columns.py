"""The `charge` and `fit` of a device over columns: the outcomes of many cards at once.

In a busy cluster hardly two cards are alike. So the tests of a new pod run once over arrays of all different
cards. A card for which an expression has no value, or with a reason of its own, is left to `Walker`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.base.span import Span
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.devices.cards import INT32_MAX, Card
from kdsl.cluster.snapshot.fact_columns import FactColumns
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.values import Value
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    AllBad,
    Bad,
    Coded,
    Column,
    ColumnValue,
    Mask,
    NotColumnar,
    Same,
    bad_of,
    either,
    encoded,
    spread,
    take,
)
from kdsl.plan.columns.distinct_objects import DistinctObjects
from kdsl.plan.columns.groups import grouped
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.compile.template import Text, text_in
from kdsl.plan.devices.choice import CardCharge
from kdsl.plan.devices.demand import Outcome
from kdsl.plan.devices.identity import IdentityAnswer
from kdsl.plan.devices.section import FieldsProgram, Section, is_word

_AMOUNTS: Final = {"memory": 0, "cores": 0, "slots": 1}
"""The amounts of a charge with their defaults."""
MIN_CARDS: Final = 40
"""For fewer cards it is faster to ask card by card: a card takes 15 to 100 calls, columns 1,500 to 3,500."""
NOT_ASKED: Final = -1
"""In place of the number of an outcome: the card is asked by itself."""


class AskedCard(Struct, frozen=True, eq=False):
    """A card with its number, and the answers of identity tests about it."""

    card: Card
    answer: IdentityAnswer
    number: int


class _Tuples:
    """A tuple of values for each row: row i has `values[codes[i]]`."""

    def __init__(self, rows: int) -> None:
        self.codes: NDArray[np.intp] = np.zeros(rows, np.intp)
        self.values: list[tuple[Value, ...]] = [()]

    def add(self, value: ColumnValue) -> None:
        """Append a value to the tuple of each row."""
        if isinstance(value, Same):
            self.values = [(*each, value.value) for each in self.values]
            return
        column = encoded(value)
        before, values = self.codes, self.values
        digits = (before, len(values)), (column.codes, len(column.values))
        firsts, self.codes = grouped(digits, len(before))
        pairs = zip(before[firsts].tolist(), column.codes[firsts].tolist(), strict=True)
        self.values = [(*values[one], column.values[other]) for one, other in pairs]


class _Outcomes:
    """The outcomes of some cards: the reason against each, and its values of `together by` until then."""

    def __init__(self, cards: int) -> None:
        self.open: NDArray[np.intp] = np.arange(cards)
        """The cards that passed all tests so far."""
        self.apart = _Tuples(cards)
        """The values of `together by` so far, of the open cards."""
        self.numbers: NDArray[np.intp] = np.full(cards, NOT_ASKED)
        self._found: list[tuple[str, tuple[Value, ...]]] = []

    def settle(self, chosen: Mask, reason: str | None) -> None:
        """Settle some of the open cards. Without a reason they are left out."""
        if reason is not None:
            distinct, numbers = np.unique(self.apart.codes[chosen], return_inverse=True)
            self.numbers[self.open[chosen]] = numbers + len(self._found)
            self._found += [(reason, self.apart.values[each]) for each in distinct.tolist()]
        self.open, self.apart.codes = self.open[~chosen], self.apart.codes[~chosen]

    def settle_all(self, reason: str | None) -> None:
        """Settle all open cards."""
        self.settle(np.ones(len(self.open), np.bool_), reason)

    def settled(self, steps: int) -> list[Outcome]:
        """Return the outcomes by number; each card took at most so many steps."""
        return [Outcome(reason, apart, steps) for reason, apart in self._found]


class Step(Struct, frozen=True, eq=False):
    """A compiled `require` or `together by`.

    `identity` is the number of an identity test, which has no `value` and no `read`. `holes` are the
    expressions in the reason. `needs` are the slots that the step depends on, through `let`s too.
    """

    value: TypedExpr | None
    read: Closure | None
    reason: str | Text
    holes: tuple[TypedExpr, ...]
    needs: frozenset[int]
    identity: int | None
    is_together: bool
    span: Span


class CardColumns:
    """The tests of a device over columns; NotColumnar if one has no form over columns."""

    def __init__(self, kind: str, charge: FieldsProgram, fit: Section, steps: Iterable[Step]) -> None:
        of_charge, of_fit = charge.section.columns("device"), fit.columns("device", "charge")
        self._kind = kind
        self._fields = {name: of_charge.lower(value) for name, value in charge.exprs.items()}
        # Each step with its test, None for an identity test; and whether its reason differs by card.
        self._steps = [
            (step, None if step.value is None else of_fit.lower(step.value), of_fit.varies(*step.holes))
            for step in steps
        ]
        # The slots of the card in `charge` and in `fit`, and that of the charge in `fit`.
        self._slots = (*of_charge.slots, *of_fit.slots)

    @np.errstate(all="ignore")
    def outcomes(
        self,
        cards: Sequence[AskedCard],
        different: DistinctObjects[Card],
        frames: tuple[Frame, Frame],
        live: LiveSnapshot,
    ) -> tuple[list[Outcome], NDArray[np.intp]]:
        """Return different outcomes, and the number of each card's; -1 for cards to be asked by themselves.

        `frames` are those of `charge` and `fit`, with all names but the card and its charge.
        NotColumnar if columns have no answer.
        """
        in_charge, in_fit, of_charge = self._slots
        rows, facts = np.arange(len(cards)), live.kept[FactColumns]
        device = different.variable(np.array([each.number for each in cards], np.intp))
        charge, bad = self._charges(Batch(live, rows, frames[0], facts, {in_charge: device}))
        batch = Batch(live, rows, frames[1], facts, {in_fit: device, of_charge: charge})
        found = _Outcomes(len(cards))
        if bad is not None:
            found.settle(bad, None)
        for step, test, shows_card in self._steps:
            if not len(found.open):
                break
            if test is None:
                test = partial(_identity, [cards[each].answer for each in found.open.tolist()], step.identity)
            reason = None if shows_card else step.reason
            _run(test, step.is_together, reason, batch.part(found.open), found)
        found.settle_all("")
        steps = sum([frame[-1].limit - frame[-1].left for frame in frames])
        return found.settled(steps), found.numbers

    def _charges(self, batch: Batch) -> tuple[ColumnValue, Bad]:
        """Return the charge of each card, and the cards for which it is an error."""
        bad: Bad = None
        found = _Tuples(len(batch))
        for name, default in (*_AMOUNTS.items(), ("type", self._kind)):
            try:
                value = self._fields[name](batch) if name in self._fields else Same(default)
            except AllBad:
                raise NotColumnar from None
            is_fit = _is_word if name == "type" else _is_amount
            if not isinstance(value, Same):
                value = encoded(value)
                wrong = np.array([not is_fit(each) for each in value.values])[value.codes]
                bad = either(bad, value.bad, wrong if wrong.any() else None)
            elif not is_fit(value.value):
                raise NotColumnar
            found.add(value)
        charges = [CardCharge(*each) for each in found.values]
        return Same(charges[0]) if len(charges) == 1 else Coded(found.codes, charges), bad


def _run(
    test: ColumnClosure, is_together: bool, reason: str | Text | None, batch: Batch, found: _Outcomes
) -> None:
    """Run a step for the open cards; without a `reason` that all cards share, those that fail it are asked by
    themselves.
    """
    try:
        value = test(batch)
    except AllBad:
        found.settle_all(None)
        return
    bad = bad_of(value)
    if bad is not None and bad.any():
        found.settle(bad, None)
        value = take(value, (~bad).nonzero()[0])
    if is_together:
        found.apart.add(value)
    elif isinstance(value, Same):
        if value.value is not True:
            found.settle_all(_filled(reason, batch))
    else:
        passed, _ = spread(value, len(found.open), np.bool_)
        if not passed.all():
            found.settle(~passed, _filled(reason, batch))


def _filled(reason: str | Text | None, batch: Batch) -> str | None:
    return None if reason is None else text_in(reason, batch.frame)


def _is_amount(value: Value) -> bool:
    return value.__class__ is int and 0 <= value <= INT32_MAX


def _is_word(value: Value) -> bool:
    return isinstance(value, str) and is_word(value)


def _identity(answers: Sequence[IdentityAnswer], number: int | None, batch: Batch) -> Column:
    """Return the answers of an identity test about the cards of a batch."""
    assert number is not None
    values = [answer[number] for answer in answers]
    return Column(
        np.array([value is True for value in values]), np.array([value.__class__ is str for value in values])
    )
