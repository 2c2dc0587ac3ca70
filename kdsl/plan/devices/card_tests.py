"""The compiled `require`, `charge` and `fit` of a device: which cards fit a container."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kdsl.check.model.devices import CheckedTest, CheckedTogether
from kdsl.check.model.rule_set import CheckedLet
from kdsl.check.model.typed import FieldOf
from kdsl.cluster.devices.cards import Card, DeviceGrant
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value, equals
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.compile.template import text_in
from kdsl.plan.devices.attempt import CardListener, ContainerAttempt
from kdsl.plan.devices.card_columns import CardColumns, Step
from kdsl.plan.devices.choice import CardCandidate, CardCharge, Earlier
from kdsl.plan.devices.demand import CardClass, Verdict
from kdsl.plan.devices.device_error import located
from kdsl.plan.devices.facts import ANY, Facts, fields_read
from kdsl.plan.devices.identity import EQUAL_FIELDS, IdentityAnswer, IdentityTests
from kdsl.plan.devices.reads import needs, parts
from kdsl.plan.devices.section import DeviceSource, Section, value_of

_OF_FIRST: Final = ("devices", "chosen")
"""The names of `fit` that differ between cards of one class, for the first container without quotas."""


@dataclass(frozen=True, slots=True)
class _QuotaView:
    """The view `DeviceQuota` for one card."""

    attempt: ContainerAttempt
    card: Card | None = None
    chosen: Sequence[DeviceGrant] = ()

    def allows(self, charge: CardCharge) -> bool:
        if self.attempt.allows is None or self.card is None:
            return True
        return self.attempt.allows((*self.chosen, CardCandidate(self.card, 0, charge).grant()))


class CardTests:
    """The compiled `require`, `charge` and `fit` of a device."""

    def __init__(self, source: DeviceSource) -> None:
        device = source.device
        self.kind, self.limit = source.kind, source.functions.steps.pod
        self.charge = source.fields(device.charge)
        self.section = source.section(device.fit.scope)
        self.identity = IdentityTests(source)
        self._gates = source.section(device.gates.scope)
        self._gate_tests = [
            (self._gates.compile(test.condition), self._gates.template(test.reason), test.condition.span)
            for test in device.gates.steps
        ]
        lets = {step.variable.slot: step for step in device.fit.steps if isinstance(step, CheckedLet)}
        self.steps = [step for each in device.fit.steps if (step := self._step(each, lets)) is not None]
        scope = device.fit.scope
        # Quotas depend on the cards that were chosen before.
        of_later, of_quota = (*_OF_FIRST, "allocated"), (*_OF_FIRST, "allocated", "quota")
        self._shared = [
            self._count_shared({scope[name].slot for name in names})
            for names in (_OF_FIRST, of_later, of_quota)
        ]
        devices = device.gates.scope["devices"].slot
        self.are_countable = self._shared[0] == len(self.steps) and devices not in free_slots(
            *self._gates.exprs
        )
        """Whether neither `require` nor `fit` reads other cards, except by `together by`, for the first
        container and without quotas.
        """
        self.are_countable_in_turn = self.are_countable and self._shared[1] == len(self.steps)
        """Whether they do not read the cards of earlier containers, either."""

    def _count_shared(self, changing: Collection[int]) -> int:
        """Count the first steps that have one answer for all cards of a class. `changing` are the slots of
        names that differ between such cards.
        """
        for number, step in enumerate(self.steps):
            shows_card = step.is_together and not isinstance(step.reason, str)
            if shows_card or not step.needs.isdisjoint(changing):
                return number
        return len(self.steps)

    def shared(self, attempt: ContainerAttempt) -> int:
        """Return how many of the steps have one answer for all cards of a class: more for the first container
        of its pod, and without quotas.
        """
        return self._shared[bool(attempt.allocated) if attempt.allows is None else 2]

    @cached_property
    def facts(self) -> Facts:
        """The facts that decide which cards fit."""
        return Facts.read_by(*self.sections)

    @cached_property
    def charge_key(self) -> Callable[[Card], Hashable]:
        """The key of a card among those with equal charges on one node."""
        exprs = self.charge.section.opened
        read = {part.field for part in parts(*exprs) if isinstance(part, FieldOf) and part.view == "Device"}
        if not read <= EQUAL_FIELDS or ANY in {name for each in exprs for name in fields_read(each)}:
            return self.facts.key
        fields = tuple(sorted(read))
        return lambda card: tuple([getattr(card, field) for field in fields])

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections that decide which cards fit, but for identity tests."""
        return self.charge.section, self.section, self._gates

    def _step(
        self, step: CheckedLet | CheckedTest | CheckedTogether, lets: Mapping[int, CheckedLet]
    ) -> Step | None:
        section = self.section
        if isinstance(step, CheckedLet):
            section.let(step)
            return None
        value = step.condition if isinstance(step, CheckedTest) else step.by
        slots = needs((value, *step.reason.holes), lets)
        identity = self.identity.number(step)
        optimised = section.optimised(value) if identity is None else None
        return Step(
            optimised,
            None if optimised is None else section.closure(optimised),
            section.template(step.reason),
            tuple(step.reason.holes),
            slots,
            identity,
            isinstance(step, CheckedTogether),
            value.span,
        )

    @cached_property
    def columns(self) -> CardColumns | None:
        """The tests for many cards at once, without quotas; None if they have no form over columns."""
        try:
            return CardColumns(self.kind, self.charge, self.section, self.steps)
        except NotColumnar:
            return None

    def frames(self, attempt: ContainerAttempt) -> tuple[Frame, Frame]:
        """Return frames of `charge` and `fit`, without the card, its charge and the cards before it."""
        return self.charge.section.frame(**attempt.names), self.section.frame(
            **attempt.names,
            devices=tuple(attempt.cards),
            allocated=attempt.allocated,
            quota=_QuotaView(attempt),
        )

    def gated(self, about: Mapping[str, Value]) -> str:
        """Return the reason of the first `require` of the device that fails, empty if none does."""
        if self._gate_tests:
            frame = self._gates.frame(**about)
            for condition, reason, span in self._gate_tests:
                if not value_of(condition, frame, span):
                    return text_in(reason, frame)
        return ""


class Walker:
    """One walk over the cards of a node: the number of `rejected` cards by reason, the `taken` ones, the
    `earlier` ones that were given back for a `together by`, and the charges of all.
    """

    def __init__(self, tests: CardTests, attempt: ContainerAttempt) -> None:
        self.rejected = Counter[str]()
        self.taken: list[CardCandidate] = []
        self.earlier: list[Earlier] = []
        self.charges: list[CardCharge] = []
        # The last value of each `together by`.
        self._apart: dict[int, Value] = {}
        self._attempt, self._tests = attempt, tests
        self._section, self._charge = tests.section, tests.charge
        # It counts the steps of all cards.
        self._meter = Meter.of(tests.limit)
        shared = tests.shared(attempt)
        self._shared, self._own = tests.steps[:shared], tests.steps[shared:]
        self._together = [step for step in self._shared if step.is_together]
        self._key, self._charge_key = tests.facts.key, tests.charge_key
        self.verdicts = attempt.demand.memo.verdicts(attempt.request, tests.facts.of_node(attempt.node))
        """The known verdicts on the cards of nodes with the facts of this one."""
        self._charges: dict[Hashable, tuple[CardCharge, int]] = {}

    @cached_property
    def _frames(self) -> tuple[Frame, Frame]:
        return self._tests.frames(self._attempt)

    def walk(self, is_greedy: bool, listener: CardListener | None) -> None:
        """Try the cards one after the other; a greedy chooser needs only as many as the request counts.

        EvalError if a step has no value, or if all together take too many steps.
        """
        attempt, answers = self._attempt, self._attempt.identity
        if answers is None:
            demand, tests = attempt.demand, self._tests.identity
            answers = tests.answers(demand.pod, demand.policy, attempt.node, attempt.cards)
        for place, card in enumerate(attempt.cards):
            answer = answers[card.id] if answers else ()
            card_class = self.card_class(card, answer)
            verdict = self.verdicts.get(card_class) or self.judge(card, answer, card_class)
            self.charges.append(verdict.charge)
            self._meter.spend(verdict.steps)
            for step, value in zip(self._together, verdict.apart, strict=False):
                self._keep_apart(step, value)
            reason = verdict.reason
            if self._own and not reason:
                reason = self._ask_own(card, verdict.charge, answer)
            if listener is not None:
                listener.asked(card, self._frame_after(card, verdict.charge), reason)
            if reason:
                self.rejected[reason] += 1
                continue
            self.taken.append(CardCandidate(card, place, verdict.charge))
            if is_greedy and len(self.taken) == attempt.request.count:
                break

    def card_class(self, card: Card, answer: IdentityAnswer) -> CardClass:
        """Return the class of a card."""
        return self._key(card), answer, len(self._shared)

    def judge(self, card: Card, answer: IdentityAnswer, card_class: CardClass) -> Verdict:
        """Return the verdict on the cards of a class, and keep it; EvalError if a step has no value."""
        charge, steps = self._charged(card)
        frame = self._frames[1]
        self._section.fill(frame, device=card, charge=charge)
        meter = self._section.rewind(frame)
        reason, apart = "", list[Value]()
        for step in self._shared:
            value = _value(step, frame, answer)
            if step.is_together:
                apart.append(value)
            elif not value:
                reason = text_in(step.reason, frame)
                break
        steps += meter.limit - meter.left
        verdict = self.verdicts[card_class] = Verdict(reason, tuple(apart), steps, charge)
        return verdict

    def charge(self, card: Card) -> CardCharge:
        """Return the charge of a card; EvalError if it has none."""
        return self._charged(card)[0]

    def _charged(self, card: Card) -> tuple[CardCharge, int]:
        """Return the charge of a card and its steps."""
        key = self._charge_key(card)
        known = self._charges.get(key)
        if known is None:
            fields, frame = self._charge, self._frames[0]
            fields.section.fill(frame, device=card)
            meter = fields.section.rewind(frame)
            charge = CardCharge(
                fields.amount("memory", frame),
                fields.amount("cores", frame),
                fields.amount("slots", frame, 1),
                fields.word("type", frame, self._tests.kind),
            )
            known = self._charges[key] = charge, meter.limit - meter.left
        return known

    def _ask_own(self, card: Card, charge: CardCharge, answer: IdentityAnswer) -> str:
        """Return the reason of the first failed test among the steps that each card is asked by itself, empty
        if it fits.
        """
        frame = self._frame_after(card, charge)
        meter = self._section.rewind(frame)
        reason = ""
        for step in self._own:
            value = _value(step, frame, answer)
            if step.is_together:
                self._keep_apart(step, value)
                # The taken cards may be fewer now.
                frame = self._frame_after(card, charge)
            elif not value:
                reason = text_in(step.reason, frame)
                break
        self._meter.spend(meter.limit - meter.left)
        return reason

    def _frame_after(self, card: Card, charge: CardCharge) -> Frame:
        """Return the names of `fit` for a card after the cards that were taken before it."""
        frame, chosen = self._frames[1], tuple([one.grant() for one in self.taken])
        quota = _QuotaView(self._attempt, card, chosen)
        self._section.fill(frame, device=card, charge=charge, chosen=chosen, quota=quota)
        return frame

    def _keep_apart(self, step: Step, value: Value) -> None:
        """Give the taken cards back if the value differs from that of the last card that came this far."""
        number = id(step)
        if number in self._apart and not equals(value, self._apart[number]) and self.taken:
            self.earlier.append(Earlier(text_in(step.reason, self._frames[1]), tuple(self.taken)))
            self.taken.clear()
        self._apart[number] = value


def _value(step: Step, frame: Frame, answers: IdentityAnswer) -> Value:
    """Return the value of a step, for an identity test its answer; EvalError if it has none."""
    try:
        if step.read is not None:
            return step.read(frame)
        assert step.identity is not None
        found = answers[step.identity]
        if isinstance(found, str):
            raise EvalError(found)
        return found
    except EvalError as error:
        raise located(error, step.span) from error
