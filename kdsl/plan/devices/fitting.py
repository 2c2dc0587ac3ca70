"""The cards of one kind that a container gets of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import permutations
from typing import Final

from kdsl.base.by_identity import ByIdentity
from kdsl.check.devices.forms import CHOOSERS as CHOOSER_FORMS
from kdsl.check.model.devices import CheckedChooser
from kdsl.cluster.devices.cards import Attributes, Card, DeviceGrant
from kdsl.eval.ir import free_slots
from kdsl.eval.values import EvalError, Value
from kdsl.plan.compile.template import text_in
from kdsl.plan.devices.attempt import CardListener, ContainerAttempt, Unplaced
from kdsl.plan.devices.card_tests import CardTests, Walker
from kdsl.plan.devices.choice import CardChoice, CardRefusal
from kdsl.plan.devices.choosers import CHOOSERS, COUNTED, GREEDY, PAIRED, SILENT
from kdsl.plan.devices.device_error import fault_of, located
from kdsl.plan.devices.facts import ANY, Facts, fields_read
from kdsl.plan.devices.identity import FIXED_FIELDS, reads_fixed_cards, reads_only
from kdsl.plan.devices.section import DeviceSource, Section, value_of

INSUFFICIENT: Final = "NodeInsufficientDevice"
MOST_ATTRIBUTES: Final = 65_536
"""The most cards for which a field of a chooser is kept, if it reads nothing but attributes."""
_ATTRIBUTES: Final = frozenset({"attributes"})


class Chooser:
    """A compiled `choose` line."""

    def __init__(self, checked: CheckedChooser, source: DeviceSource) -> None:
        self.name = checked.name
        self.gates = source.section(checked.scope)
        self.where = self.gates.maybe(checked.where)
        self.reason = self.gates.template(checked.reason)
        self.fields = source.fields(checked.fields)
        self.has_pairs = checked.name in PAIRED
        self.is_counted = isinstance(self.reason, str) and (
            checked.name in GREEDY or (self.has_pairs and self._reads_fixed_pairs(checked))
        )
        """Whether a node that `knows_pairs` of its cards fits if enough of them do, whichever they are."""
        self.counts_refusals = isinstance(self.reason, str) and (
            checked.name in GREEDY | PAIRED
            or (checked.name == "listed" and checked.fields.values.keys().isdisjoint(COUNTED))
        )
        """Whether a node of which too few cards fit has the counts of their reasons as its reason."""
        where = self.gates.opened
        read = {name for each in where for name in fields_read(each)}
        self.is_settled = read.isdisjoint((ANY, "DeviceNode.requested")) and reads_fixed_cards(
            where, checked.scope["devices"].slot
        )
        """Whether neither the order of the cards nor their use decides about `where`."""
        self.span = checked.span if checked.where is None else checked.where.span
        exprs = self.fields.section.exprs[len(checked.fields.lets) :]
        slot = checked.fields.scope["device"].slot
        self._of_attributes = {
            name: ByIdentity[Attributes, Value](partial(self._value_of, name), MOST_ATTRIBUTES)
            for name, expr in zip(checked.fields.values, exprs, strict=True)
            # A probe observes every computation.
            if source.functions.probe is None
            and free_slots(expr) == {slot}
            and reads_only([expr], _ATTRIBUTES)
        }

    @cached_property
    def facts(self) -> Facts:
        """The facts that decide what it chooses."""
        return Facts.read_by(self.fields.section)

    def value(self, name: str, device: Card | None, about: Mapping[str, Value]) -> Value:
        """Return a field of the chooser; `about` are the values of the names it may read beside the card."""
        known = self._of_attributes.get(name)
        if known is not None and device is not None:
            return known.of(device.attributes)
        return self.fields.value(name, self.fields.section.frame(**about, device=device), None)

    def _value_of(self, name: str, attributes: Attributes) -> Value:
        device = Card("", "", "", 0, 0, 0, attributes=attributes)
        return self.fields.value(name, self.fields.section.frame(device=device), None)

    def _reads_fixed_pairs(self, checked: CheckedChooser) -> bool:
        """Return whether `affinity` depends on two cards and no pod."""
        scope, lets = checked.fields.scope, [let.variable.slot for let in checked.fields.lets]
        exprs, own = self.fields.section.exprs, {scope["device"].slot, scope["other"].slot, *lets}
        return free_slots(*exprs) <= own and reads_only(exprs, FIXED_FIELDS)

    def knows_pairs(self, cards: Sequence[Card]) -> bool:
        """Return whether `affinity` has a value for each pair of cards of a node."""
        section = self.fields.section
        frame = section.frame()
        try:
            for device, other in permutations(cards, 2):
                section.rewind(frame)
                section.fill(frame, device=device, other=other)
                if not isinstance(self.fields.value("affinity", frame, None), int):
                    return False
        except EvalError:
            return False
        return True


class FitProgram:
    """The compiled `require`, `charge`, `fit` and `choose` of a device."""

    def __init__(self, source: DeviceSource) -> None:
        choosers = source.device.choosers
        self._kind, self._span = source.kind, source.device.span
        self.cards = CardTests(source)
        self.choosers = [Chooser(chooser, source) for chooser in choosers]
        self.is_settled = all(each.is_settled for each in self.choosers)
        self.chooses_by_request = any(
            each.where is not None and each.scope["request"].slot in free_slots(each.where)
            for each in choosers
        )

    @cached_property
    def reads_choices(self) -> bool:
        """Whether some chooser reads facts."""
        return any(each.facts for each in self.choosers)

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections that decide about a node, but for those of `narrow`."""
        return *self.cards.sections, *(each.gates for each in self.choosers)

    @property
    def narrow(self) -> tuple[Section, ...]:
        """The sections that decide about some cards or nodes: identity tests and the fields of choosers."""
        identity = self.cards.identity
        return identity.own.section, identity.asked.section, *(each.fields.section for each in self.choosers)

    def chooser(self, about: Mapping[str, Value]) -> int:
        """Return the place of the chooser whose `where` holds on a node; EvalError if one has no value."""
        return next(
            place
            for place, each in enumerate(self.choosers)
            if each.where is None or value_of(each.where, each.gates.frame(**about), each.span)
        )

    def settled_chooser(self, about: Mapping[str, Value]) -> int | None:
        """Return the place of the chooser of a node, None if the order or the use of its cards may decide."""
        try:
            return self.chooser(about) if self.is_settled else None
        except EvalError:
            return None

    def fit(
        self, attempt: ContainerAttempt, listener: CardListener | None = None
    ) -> tuple[DeviceGrant, ...] | Unplaced:
        """Return the cards of the container, or the reason against the node; see `Walker.walk`."""
        total = len(attempt.cards)
        about = {**attempt.names, "devices": tuple(attempt.cards)}
        try:
            chooser = self.choosers[self.chooser(about)]
            if listener is not None:
                listener.chooses(chooser.name)
            if attempt.request.count > total and not CHOOSER_FORMS[chooser.name].repeats:
                return Unplaced(INSUFFICIENT)
            refused = self.cards.gated(about)
            if refused:
                return Unplaced(f"1/{total} {refused}")
            walker = Walker(self.cards, attempt)
            walker.walk(chooser.name in GREEDY, listener)
            return self._choose(attempt, about, chooser, walker)
        except EvalError as error:
            fault = fault_of(located(error, self._span), self._kind)
            return Unplaced(fault.message, fault)

    def _choose(
        self, attempt: ContainerAttempt, about: Mapping[str, Value], chooser: Chooser, walk: Walker
    ) -> tuple[DeviceGrant, ...] | Unplaced:
        names = {**about, "fitting": tuple(one.place for one in walk.taken), "allocated": attempt.allocated}

        def read(name: str, device: Card | None = None, other: Card | None = None) -> Value:
            return chooser.value(name, device, {**names, "other": other})

        rejected = walk.rejected.copy()
        if chooser.name not in SILENT:
            for earlier in walk.earlier:
                rejected[earlier.reason] += len(earlier.cards)
        choice = CardChoice(
            attempt.request.count, walk.taken, attempt.cards, read, rejected, walk.charges, walk.earlier
        )
        try:
            chosen = CHOOSERS[chooser.name](choice)
        except EvalError as error:
            raise located(error, chooser.span) from error
        if not isinstance(chosen, CardRefusal):
            return tuple(one.grant() for one in chosen)
        reason = text_in(chooser.reason, chooser.gates.frame(**about))
        total = len(attempt.cards) if chosen.total is None else chosen.total
        counts = dict(rejected)
        if chosen.counts is not None:
            counts = {word or reason: count for word, count in chosen.counts.items()}
        elif chosen.count or chosen.total is not None:
            counts[reason] = counts.get(reason, 0) + chosen.count
        return Unplaced(refusal(counts, total))


def refusal(counts: Mapping[str, int], total: int) -> str:
    """Return the reason against a node, from the number of its cards by reason."""
    return ", ".join(sorted(f"{count}/{total} {word}" for word, count in counts.items()))
