"""The compiled `require`, `charge` and `fit` of a device: which cards fit a container."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from kdsl.check.model.devices import CheckedTest, CheckedTogether
from kdsl.check.model.rule_set import CheckedLet
from kdsl.check.model.typed import FieldOf
from kdsl.cluster.devices.cards import Card, DeviceGrant
from kdsl.eval.ir import free_slots
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value, equals
from kdsl.plan.compile.template import text_in
from kdsl.plan.devices.attempt import ContainerAttempt, Listener
from kdsl.plan.devices.card_columns import CardColumns, Step
from kdsl.plan.devices.choice import CardCandidate, CardCharge, Earlier
from kdsl.plan.devices.demand import ClassVerdict, Settled, Verdicts
from kdsl.plan.devices.device_error import located
from kdsl.plan.devices.facts import ANY, Facts, fields_read
from kdsl.plan.devices.identity import EQUAL_FIELDS, IdentityAnswer, IdentityTests
from kdsl.plan.devices.reads import needs, parts
from kdsl.plan.devices.section import DeviceSource, Section, value_of


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


@dataclass(frozen=True, slots=True)
class _Group:
    """Consecutive steps. A shared group has one answer for all cards of a class."""

    is_shared: bool
    is_together: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """All groups of a device, whether all are shared, and the steps that are a `together by`. The groups for
    quotas, for containers after others of their pod, and for those without either have a `number` each.
    """

    number: int
    groups: tuple[_Group, ...]
    are_shared: bool
    together: tuple[Step, ...]


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
            for test in device.gates.tests
        ]
        lets = {step.variable.slot: step for step in device.fit.steps if isinstance(step, CheckedLet)}
        steps = [step for each in device.fit.steps if (step := self._step(each, lets)) is not None]
        scope = device.fit.scope
        changing = ("devices", "chosen"), ("devices", "chosen", "allocated")
        # Quotas depend on the cards that were chosen before.
        self._groups = [
            _groups(number, steps, [scope[name].slot for name in names], lets)
            for number, names in enumerate((*changing, (*changing[1], "quota")))
        ]
        self.unlimited = self._groups[0]
        devices = device.gates.scope["devices"].slot
        self.are_countable = self.unlimited.are_shared and devices not in free_slots(*self._gates.exprs)
        """Whether neither `require` nor `fit` reads other cards, except by `together by`, for the first
        container and without quotas.
        """

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
        steps = [step for group in self.unlimited.groups for step in group.steps]
        return CardColumns.of(self.kind, self.charge, self.section, steps)

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

    def verdicts(self, attempt: ContainerAttempt) -> Verdicts:
        """Return the known verdicts on the cards of nodes with the facts of this one."""
        return attempt.demand.memo.verdicts(attempt.request, self.facts.of_node(attempt.node))

    def walk(self, attempt: ContainerAttempt, is_greedy: bool, listener: Listener | None) -> Walker:
        """Try the cards one after the other; a greedy chooser needs only as many as the request counts.

        EvalError if a step has no value, or if all together take too many steps.
        """
        verdicts = self.verdicts(attempt)
        answers = attempt.identity
        if answers is None:
            answers = self.identity.answers(
                attempt.demand.pod, attempt.demand.policy, attempt.node, attempt.cards
            )
        groups = self._groups[bool(attempt.allocated) if attempt.allows is None else 2]
        key = self.facts.key
        walker = Walker(self, attempt)
        for place, card in enumerate(attempt.cards):
            answer = answers[card.id] if answers else ()
            card_class = (key(card), answer, groups.number)
            verdict = verdicts.get(card_class)
            if verdict is None:
                verdict = verdicts[card_class] = walker.verdict(card, groups)
            walker.charges.append(verdict.charge)
            reason = walker.judge(card, verdict, answer, groups)
            if listener is not None:
                listener.asked(card, walker.frame(card, verdict.charge, is_shared=False), reason)
            if reason:
                walker.rejected[reason] += 1
                continue
            walker.taken.append(CardCandidate(card, place, verdict.charge))
            if is_greedy and len(walker.taken) == attempt.request.count:
                break
        return walker


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
        self._section, self._charge, self._kind = tests.section, tests.charge, tests.kind
        # It counts the steps of all cards.
        self._meter = Meter.of(tests.limit)
        self._charge_key = tests.charge_key
        self._charges: dict[Hashable, tuple[CardCharge, int]] = {}

    @cached_property
    def _frames(self) -> tuple[Frame, Frame]:
        return self._tests.frames(self._attempt)

    def verdict(self, card: Card, groups: Groups) -> ClassVerdict:
        """Return a verdict with the charge alone."""
        key = self._charge_key(card)
        known = self._charges.get(key)
        if known is None:
            known = self._charges[key] = self._charged(card)
        return ClassVerdict(*known, [None] * len(groups.groups))

    def _charged(self, card: Card) -> tuple[CardCharge, int]:
        """Return the charge of a card and its steps."""
        fields = self._charge
        section = fields.section
        frame, _ = self._frames
        section.fill(frame, device=card)
        meter = section.rewind(frame)
        charge = CardCharge(
            fields.amount("memory", frame),
            fields.amount("cores", frame),
            fields.amount("slots", frame, 1),
            fields.word("type", frame, self._kind),
        )
        return charge, meter.limit - meter.left

    def judge(self, card: Card, verdict: ClassVerdict, identity: IdentityAnswer, groups: Groups) -> str:
        """Return the reason why a card does not fit, empty if it does."""
        if groups.are_shared:
            settled = self.settled(card, verdict, identity, groups)
            self._meter.spend(settled.steps)
            for step, value in zip(groups.together, settled.apart, strict=False):
                self._keep_apart(step, value)
            return settled.reason
        self._meter.spend(verdict.steps)
        for number, group in enumerate(groups.groups):
            answer = verdict.answers[number] if group.is_shared else None
            if answer is None:
                answer = self._ask(card, verdict.charge, identity, group)
                if group.is_shared:
                    verdict.answers[number] = answer
            value, steps = answer
            self._meter.spend(steps)
            if group.is_together:
                self._keep_apart(group.steps[0], value)
            elif value:
                return str(value)
        return ""

    def settled(self, card: Card, verdict: ClassVerdict, identity: IdentityAnswer, groups: Groups) -> Settled:
        """Return the outcome of the cards of a class; all groups must be shared."""
        if verdict.settled is None:
            reason, apart, steps = "", list[Value](), verdict.steps
            for group in groups.groups:
                value, spent = self._ask(card, verdict.charge, identity, group)
                steps += spent
                if group.is_together:
                    apart.append(value)
                elif value:
                    reason = str(value)
                    break
            verdict.settled = Settled(reason, tuple(apart), steps)
        return verdict.settled

    def _ask(
        self, card: Card, charge: CardCharge, identity: IdentityAnswer, group: _Group
    ) -> tuple[Value, int]:
        """Return the reason of the first failed test, or the value of `together by`; and the steps."""
        frame = self.frame(card, charge, group.is_shared)
        meter = self._section.rewind(frame)
        value: Value = ""
        for step in group.steps:
            try:
                found = _answer(step, identity) if step.read is None else step.read(frame)
            except EvalError as error:
                raise located(error, step.span) from error
            if group.is_together:
                value = found
            elif not found:
                value = text_in(step.reason, frame)
                break
        return value, meter.limit - meter.left

    def frame(self, card: Card, charge: CardCharge, is_shared: bool) -> Frame:
        """Return the names of `fit` for a card, for shared steps without the cards taken before it."""
        attempt, section = self._attempt, self._section
        _, frame = self._frames
        if is_shared:
            section.fill(frame, device=card, charge=charge)
        else:
            chosen = tuple([one.grant() for one in self.taken])
            quota = _QuotaView(attempt, card, chosen)
            section.fill(frame, device=card, charge=charge, chosen=chosen, quota=quota)
        return frame

    def _keep_apart(self, step: Step, value: Value) -> None:
        """Give the taken cards back if the value differs from that of the last card that came this far."""
        number = id(step)
        if number in self._apart and not equals(value, self._apart[number]) and self.taken:
            self.earlier.append(Earlier(text_in(step.reason, self._frames[1]), tuple(self.taken)))
            self.taken.clear()
        self._apart[number] = value


def _answer(step: Step, identity: IdentityAnswer) -> Value:
    """Return the answer of an identity test."""
    assert step.identity is not None
    found = identity[step.identity]
    if isinstance(found, str):
        raise EvalError(found)
    return found


def _groups(
    of: int, steps: Sequence[Step], changing: Collection[int], lets: Mapping[int, CheckedLet]
) -> Groups:
    """Group steps. `changing` are the slots of names that differ between cards of one class.

    Shared steps and others have no common `let`: so the number of steps of a group does not depend on cached
    results.
    """
    single = {
        number
        for number, step in enumerate(steps)
        if not step.needs.isdisjoint(changing) or (step.is_together and not isinstance(step.reason, str))
    }
    before = -1
    while before != len(single):
        before = len(single)
        common = frozenset[int]().union(*(steps[number].needs for number in single)) & lets.keys()
        single |= {number for number, step in enumerate(steps) if not step.needs.isdisjoint(common)}

    def group(number: int) -> tuple[bool, int]:
        return number not in single, number if steps[number].is_together else -1

    groups = tuple(
        _Group(is_shared, together >= 0, tuple(steps[number] for number in numbers))
        for (is_shared, together), numbers in groupby(range(len(steps)), group)
    )
    return Groups(of, groups, not single, tuple(step for step in steps if step.is_together))
