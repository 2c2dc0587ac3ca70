"""The compiled `charge` and `fit` of a device: which cards do for a container, tried one after the other.

What a test says of a card follows, but for a few tests, from the card's numbers and from what is asked of
names (`CardShape`): for pods that are alike it is worked out once, and kept in a `KnownCards`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from kdsl.check.model.devices import CheckedDevice, CheckedTest, CheckedTogether
from kdsl.check.model.rule_set import CheckedLet
from kdsl.cluster.devices.cards import Card, Grant
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value, equals
from kdsl.plan.compile.scope import Functions
from kdsl.plan.compile.template import Text, text_in
from kdsl.plan.devices.choice import Candidate
from kdsl.plan.devices.naming import OwnAnswer, OwnTests
from kdsl.plan.devices.reads import needs
from kdsl.plan.devices.section import FieldsProgram, Section
from kdsl.plan.devices.situation import Listener, Situation
from kdsl.plan.devices.telling import tells

CardShape = tuple[tuple[Hashable, ...], OwnAnswer, bool]
"""`Card.shape`, what own tests say of the card, and whether there are quotas: see `CardTests`."""


@dataclass(frozen=True, slots=True)
class Charge:
    """Fields are those of the `DeviceCharge` view; `type` is what is recorded."""

    memory: int
    cores: int
    slots: int
    type: str


@dataclass(slots=True)
class Walk:
    """What was found while the cards are tried one after the other, and the charge of each."""

    rejected: Counter[str] = field(default_factory=Counter)
    taken: list[Candidate] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    apart: dict[int, Value] = field(default_factory=dict)


@dataclass(slots=True)
class Verdict:
    """What is known of cards of one shape: the charge, what each run of tests said, and their steps."""

    charge: Charge
    steps: int
    said: list[tuple[Value, int] | None]


Verdicts = dict[CardShape, Verdict]


def candidate(card: Card, place: int, charge: Charge) -> Candidate:
    """Return a card with what it would give."""
    return Candidate(card, place, charge.memory, charge.cores, charge.slots, charge.type)


def granted(one: Candidate) -> Grant:
    """Return what a container gets of a card."""
    card = one.card
    return Grant(card.id, one.type, one.memory, one.cores, one.slots, card.index, card.attributes)


@dataclass(frozen=True, slots=True)
class _QuotaView:
    """The view `DeviceQuota` for one card."""

    card: Card
    chosen: Sequence[Grant]
    ask: Callable[[Sequence[Grant]], bool]

    def allows(self, charge: Charge) -> bool:
        return self.ask((*self.chosen, granted(candidate(self.card, 0, charge))))


class _NoQuota:
    """The view `DeviceQuota` where there are none."""

    def allows(self, charge: Charge) -> bool:
        return True


_NO_QUOTA: Final = _NoQuota()


@dataclass(frozen=True, slots=True)
class _Step:
    """A compiled `require` or `together by`: `read` is its value, `own` in place of that the number of an own
    test.

    `needs` are the slots that it depends on, through `let`s too.
    """

    read: Closure | None
    reason: str | Text
    needs: frozenset[int]
    tells: bool
    own: int | None = None
    is_together: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """Steps one after the other. What alike ones say follows from the shape of the card."""

    is_alike: bool
    is_together: bool
    steps: tuple[_Step, ...]


class CardTests:
    """The compiled `charge` and `fit` of a device. Where there are quotas, tests of them are asked for every
    card anew: what was chosen before it counts.
    """

    def __init__(self, device: CheckedDevice, kind: str, functions: Functions) -> None:
        self._kind, self._steps = kind, functions.steps.pod
        self._charge = FieldsProgram(device.charge, device, functions)
        self._section = Section(device.fit.scope, device, functions)
        self.own = OwnTests(device, functions)
        lets = {step.variable.slot: step for step in device.fit.steps if isinstance(step, CheckedLet)}
        steps = [step for each in device.fit.steps if (step := self._step(each, lets)) is not None]
        self._has_known_charge = not tells(device.charge)
        scope = device.fit.scope
        changing = frozenset(scope[name].slot for name in ("devices", "chosen", "allocated"))
        self._unlimited = _runs(steps, changing, lets)
        self._limited = _runs(steps, changing | {scope["quota"].slot}, lets)

    @property
    def sections(self) -> tuple[Section, ...]:
        return (self._charge.section, self._section, self.own.section)

    def _step(
        self, step: CheckedLet | CheckedTest | CheckedTogether, lets: Mapping[int, CheckedLet]
    ) -> _Step | None:
        section = self._section
        if isinstance(step, CheckedLet):
            section.let(step)
            return None
        value = step.condition if isinstance(step, CheckedTest) else step.by
        slots = needs((value, step.reason), lets)
        own = self.own.number(step)
        return _Step(
            section.compile(value) if own is None else None,
            section.template(step.reason),
            slots,
            tells(value, step.reason, [let.value for slot, let in lets.items() if slot in slots]),
            own,
            isinstance(step, CheckedTogether),
        )

    # ---- trying ------------------------------------------------------------------------------------------

    def walk(self, s: Situation, known: Verdicts, is_greedy: bool, listener: Listener | None = None) -> Walk:
        """Try the cards one after the other; a greedy chooser needs no more than the request counts.

        `known` is what is known of cards where the pod is like this one and the request is the same.
        EvalError where a step has no value, or all together take too long.
        """
        own = self.own.answers(s.pod, s.node, s.policy, s.cards) if s.own is None else s.own
        is_limited = s.allows is not None
        runs = self._limited if is_limited else self._unlimited
        verdicts = known if self._has_known_charge else {}
        attempt = _Attempt(s, self._section, self._charge, self._kind, Meter(self._steps))
        walk = attempt.walk
        for place, card in enumerate(s.cards):
            answer = own[card.id] if own else ()
            shape = (card.shape, answer, is_limited)
            verdict = verdicts.get(shape)
            if verdict is None:
                verdict = verdicts[shape] = attempt.verdict(card, len(runs))
            walk.charges.append(verdict.charge)
            reason = attempt.judge(card, verdict, answer, runs)
            if listener is not None:
                listener.asked(card, attempt.frame(card, verdict.charge, is_alike=False), reason)
            if reason:
                walk.rejected[reason] += 1
                continue
            walk.taken.append(candidate(card, place, verdict.charge))
            if is_greedy and len(walk.taken) == s.request.count:
                break
        return walk


class _Attempt:
    """One walk over the cards of a node. `meter` counts what all steps take together."""

    def __init__(
        self, situation: Situation, section: Section, charge: FieldsProgram, kind: str, meter: Meter
    ) -> None:
        self.walk = Walk()
        self._situation, self._section, self._charge, self._kind = situation, section, charge, kind
        self._meter = meter
        self._frame: Frame | None = None
        self._charge_frame: Frame | None = None

    def verdict(self, card: Card, runs: int) -> Verdict:
        """Return a verdict of which nothing is known but the charge."""
        fields, s = self._charge, self._situation
        section = fields.section
        if self._charge_frame is None:
            self._charge_frame = section.frame(pod=s.pod, node=s.node, policy=s.policy, request=s.request)
        frame = self._charge_frame
        section.fill(frame, device=card)
        meter = section.rewind(frame)
        charge = Charge(
            fields.amount("memory", frame),
            fields.amount("cores", frame),
            fields.amount("slots", frame, 1),
            fields.word("type", frame, self._kind),
        )
        return Verdict(charge, meter.limit - meter.left, [None] * runs)

    def judge(self, card: Card, verdict: Verdict, own: OwnAnswer, runs: Sequence[_Run]) -> str:
        """Return the reason of a card that does not do, else nothing."""
        self._meter.spend(verdict.steps)
        for number, run in enumerate(runs):
            said = verdict.said[number] if run.is_alike else None
            if said is None:
                said = self._ask(card, verdict.charge, own, run)
                if run.is_alike:
                    verdict.said[number] = said
            value, steps = said
            self._meter.spend(steps)
            if run.is_together:
                self._keep_apart(run.steps[0], value)
            elif value:
                return str(value)
        return ""

    def _ask(self, card: Card, charge: Charge, own: OwnAnswer, run: _Run) -> tuple[Value, int]:
        """Return the reason of the first test that fails, or what must be the same; and the steps taken."""
        frame = self.frame(card, charge, run.is_alike)
        meter = self._section.rewind(frame)
        value: Value = ""
        for step in run.steps:
            found = _answer(step, own) if step.read is None else step.read(frame)
            if run.is_together:
                value = found
            elif not found:
                value = text_in(step.reason, frame)
                break
        return value, meter.limit - meter.left

    def frame(self, card: Card, charge: Charge, is_alike: bool) -> Frame:
        """Return the names of `fit` for a card, for alike steps without what was taken before it."""
        s, section = self._situation, self._section
        if self._frame is None:
            self._frame = section.frame(
                pod=s.pod,
                node=s.node,
                policy=s.policy,
                request=s.request,
                devices=tuple(s.cards),
                allocated=s.allocated,
                quota=_NO_QUOTA,
            )
        frame = self._frame
        if is_alike:
            section.fill(frame, device=card, charge=charge)
        else:
            chosen = tuple(map(granted, self.walk.taken))
            section.fill(frame, device=card, charge=charge, chosen=chosen)
            if s.allows is not None:
                section.fill(frame, quota=_QuotaView(card, chosen, s.allows))
        return frame

    def _keep_apart(self, step: _Step, value: Value) -> None:
        """Give back what was taken where a card has another value than the one before that came this far."""
        walk, number = self.walk, id(step)
        if number in walk.apart and not equals(value, walk.apart[number]) and walk.taken:
            assert self._frame is not None or isinstance(step.reason, str)
            walk.rejected[text_in(step.reason, self._frame or [])] += len(walk.taken)
            walk.taken.clear()
        walk.apart[number] = value


def _answer(step: _Step, own: OwnAnswer) -> Value:
    """Return what an own test said."""
    assert step.own is not None
    found = own[step.own]
    if isinstance(found, str):
        raise EvalError(found)
    return found


def _runs(
    steps: Sequence[_Step], changing: Collection[int], lets: Mapping[int, CheckedLet]
) -> tuple[_Run, ...]:
    """Group steps into runs. `changing` are the slots of what follows from more than the shape of a card.

    Alike steps and others share no `let`: so what a run costs does not depend on what is known already.
    """
    single = {
        number
        for number, step in enumerate(steps)
        if (step.tells and step.own is None)
        or not step.needs.isdisjoint(changing)
        or (step.is_together and not isinstance(step.reason, str))
    }
    before = -1
    while before != len(single):
        before = len(single)
        shared = frozenset[int]().union(*(steps[number].needs for number in single)) & lets.keys()
        single |= {number for number, step in enumerate(steps) if not step.needs.isdisjoint(shared)}

    def group(number: int) -> tuple[bool, int]:
        return number not in single, number if steps[number].is_together else -1

    return tuple(
        _Run(is_alike, together >= 0, tuple(steps[number] for number in numbers))
        for (is_alike, together), numbers in groupby(range(len(steps)), group)
    )
