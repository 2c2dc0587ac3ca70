"""Which cards of a node a container gets: one kind of device, one container, one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.check.devices.forms import CHOOSERS as CHOOSER_FORMS
from kdsl.check.devices.model import CheckedChooser, CheckedDevice, CheckedTest, CheckedTogether, FitStep
from kdsl.check.model import CheckedLet
from kdsl.cluster.devices.cards import Card, Grant
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.plan.devices.choice import Candidate, Choice, Refusal
from kdsl.plan.devices.choosers import CHOOSERS, GREEDY
from kdsl.plan.devices.requests import Request
from kdsl.plan.devices.section import FieldsProgram, Section
from kdsl.plan.devices.telling import is_own, tells
from kdsl.plan.scalar import Closure, Frame
from kdsl.plan.scope import Functions
from kdsl.plan.template import Text, text_in
from kdsl.plan.values import EvalError, Value, equals

INSUFFICIENT: Final = "NodeInsufficientDevice"


@dataclass(frozen=True, slots=True)
class Allotment:
    """What one container gets of one kind. Fields are those of the `DeviceAllotment` view."""

    container: DeviceContainer
    request: Request
    cards: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """One container on one node.

    `cards` are in the order of trying, `allocated` is what earlier containers of the pod got of this kind;
    `allows` tells whether quotas leave room for these cards as well.
    """

    pod: DevicePod
    node: DeviceNode
    policy: Policy
    container: DeviceContainer
    request: Request
    cards: Sequence[Card]
    allocated: tuple[Allotment, ...]
    allows: Callable[[Sequence[Grant]], bool]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a container gets, or why the node does not do.

    `is_shared` tells that no more was looked at than what nodes have in common whose cards have equal numbers
    and equal `own_answers`.
    """

    found: tuple[Grant, ...] | str
    is_shared: bool = True


OwnAnswers = tuple[tuple[bool, int], ...]
"""What own tests say of each card, and how many steps each took."""


@dataclass(frozen=True, slots=True)
class _Charge:
    """Fields are those of the `DeviceCharge` view; `type` is what is recorded."""

    memory: int
    cores: int
    slots: int
    type: str


@dataclass(frozen=True, slots=True)
class _QuotaView:
    """The view `DeviceQuota` for one card."""

    card: Card
    chosen: Sequence[Grant]
    ask: Callable[[Sequence[Grant]], bool]

    def allows(self, charge: _Charge) -> bool:
        return self.ask(
            (*self.chosen, granted(self.card, charge.memory, charge.cores, charge.slots, charge.type))
        )


def granted(card: Card, memory: int, cores: int, slots: int, type_: str) -> Grant:
    """Return what a container gets of a card."""
    return Grant(card.id, type_, memory, cores, slots, card.index, card.attributes)


@dataclass(frozen=True, slots=True)
class _Chooser:
    """A compiled `choose` line."""

    name: str
    where: Callable[[Frame], Value] | None
    gates: Section
    reason: str | Text
    fields: FieldsProgram
    is_shared: bool


_Step = Callable[[Frame, "_Walk"], str]
"""Runs one statement of `fit`; returns the reason of a card that fails it, else nothing."""


@dataclass(slots=True)
class _Walk:
    """What was found while the cards are tried one after the other."""

    rejected: Counter[str]
    taken: list[Candidate]
    apart: dict[int, Value]


class FitProgram:
    """The compiled `require`, `charge`, `fit` and `choose` of a device."""

    def __init__(self, device: CheckedDevice, kind: str, functions: Functions) -> None:
        self._kind = kind
        self._charge = FieldsProgram(device.charge, device, functions)
        self._gates = Section(device.gates.scope, device, functions)
        self._tests = [
            (self._gates.compile(test.condition), self._gates.template(test.reason))
            for test in device.gates.tests
        ]
        self._section = Section(device.fit.scope, device, functions)
        self._own: list[Closure] = []
        self._lets = {step.variable.slot for step in device.fit.steps if isinstance(step, CheckedLet)}
        self._scope = device.fit.scope
        self._steps = [step for each in device.fit.steps if (step := self._step(each)) is not None]
        self.is_shared = not tells(
            device.charge,
            device.gates,
            [step for step in device.fit.steps if not self._is_own(step)],
            [chooser.where for chooser in device.choosers],
            device.order,
            device.value,
        )
        self._choosers = [_compile_chooser(chooser, device, functions) for chooser in device.choosers]

    def own_answers(
        self, pod: DevicePod, node: DeviceNode, policy: Policy, cards: Sequence[Card]
    ) -> OwnAnswers | None:
        """Return what the tests that read names of cards or nodes say; None where one has no value."""
        frame = self._section.frame(pod=pod, node=node, policy=policy)
        meter = frame[-1]
        answers = []
        try:
            for card in cards:
                self._section.fill(frame, device=card)
                for condition in self._own:
                    left = meter.left
                    answers.append((bool(condition(frame)), left - meter.left))
        except EvalError:
            return None
        return tuple(answers)

    def fit(self, situation: Situation) -> Fitted:
        """Return what the container gets, or why the node does not do."""
        s = situation
        is_shared = self.is_shared
        total = len(s.cards)
        about = {
            "pod": s.pod, "node": s.node, "policy": s.policy, "request": s.request, "devices": tuple(s.cards),
        }  # fmt: skip
        try:
            chooser = next(
                each for each in self._choosers if each.where is None or each.where(each.gates.frame(**about))
            )
            if s.request.count > total and not CHOOSER_FORMS[chooser.name].repeats:
                return Fitted(INSUFFICIENT, is_shared)
            frame = self._gates.frame(**about)
            for condition, reason in self._tests:
                if not condition(frame):
                    return Fitted(f"1/{total} {text_in(reason, frame)}", is_shared)
            walk = self._walk(s, about, chooser.name in GREEDY)
            is_shared = is_shared and chooser.is_shared
            return Fitted(self._choose(s, about, chooser, walk), is_shared)
        except EvalError as error:
            return Fitted(f"{self._kind}: {error.message}", is_shared)

    def _walk(self, s: Situation, about: Mapping[str, Value], is_greedy: bool) -> _Walk:
        """Try the cards one after the other; a greedy chooser needs no more than the request counts."""
        walk = _Walk(Counter(), [], {})
        charge_frame = self._charge.section.frame(
            **{key: about[key] for key in ("pod", "node", "policy", "request")}
        )
        frame = self._section.frame(**about, allocated=s.allocated)
        for place, card in enumerate(s.cards):
            charge = self._charge_of(card, charge_frame)
            chosen = tuple(
                granted(one.card, one.memory, one.cores, one.slots, one.type) for one in walk.taken
            )
            quota = _QuotaView(card, chosen, s.allows)
            self._section.fill(frame, device=card, charge=charge, chosen=chosen, quota=quota)
            reason = next((reason for step in self._steps if (reason := step(frame, walk))), "")
            if reason:
                walk.rejected[reason] += 1
                continue
            walk.taken.append(Candidate(card, place, charge.memory, charge.cores, charge.slots, charge.type))
            if is_greedy and len(walk.taken) == s.request.count:
                break
        return walk

    def _choose(
        self, s: Situation, about: Mapping[str, Value], chooser: _Chooser, walk: _Walk
    ) -> tuple[Grant, ...] | str:
        def read(name: str, device: Card | None = None, other: Card | None = None) -> Value:
            frame = chooser.fields.section.frame(**about, device=device, other=other, allocated=s.allocated)
            return chooser.fields.value(name, frame, None)

        choice = Choice(s.request.count, walk.taken, s.cards, read, walk.rejected)
        chosen = CHOOSERS[chooser.name](choice)
        if not isinstance(chosen, Refusal):
            return tuple(granted(one.card, one.memory, one.cores, one.slots, one.type) for one in chosen)
        reason = text_in(chooser.reason, chooser.gates.frame(**about))
        total = len(s.cards) if chosen.total is None else chosen.total
        counts = dict(walk.rejected)
        if chosen.counts is not None:
            counts = {word or reason: count for word, count in chosen.counts.items()}
        elif chosen.count or chosen.total is not None:
            counts[reason] = counts.get(reason, 0) + chosen.count
        return ", ".join(sorted(f"{count}/{total} {word}" for word, count in counts.items()))

    def _charge_of(self, card: Card, frame: Frame) -> _Charge:
        fields = self._charge
        fields.section.fill(frame, device=card)
        return _Charge(
            fields.integer("memory", frame),
            fields.integer("cores", frame),
            fields.integer("slots", frame, 1),
            fields.text("type", frame, self._kind),
        )

    def _is_own(self, step: FitStep) -> bool:
        return isinstance(step, CheckedTest) and is_own(step, self._scope, self._lets)

    # ---- statements of `fit` -----------------------------------------------------------------------------

    def _step(self, step: CheckedLet | CheckedTest | CheckedTogether) -> _Step | None:
        match step:
            case CheckedLet():
                self._section.let(step)
                return None
            case CheckedTest():
                return self._test(step)
            case CheckedTogether():
                return self._together(step)

    def _test(self, test: CheckedTest) -> _Step:
        condition, reason = self._section.compile(test.condition), self._section.template(test.reason)
        if self._is_own(test):
            self._own.append(condition)

        def run(frame: Frame, walk: _Walk) -> str:
            return "" if condition(frame) else text_in(reason, frame)

        return run

    def _together(self, together: CheckedTogether) -> _Step:
        """Give back what was taken where a card has another value than the one before that came this far."""
        by, reason = self._section.compile(together.by), self._section.template(together.reason)
        number = id(together)

        def run(frame: Frame, walk: _Walk) -> str:
            value = by(frame)
            if number in walk.apart and not equals(value, walk.apart[number]) and walk.taken:
                walk.rejected[text_in(reason, frame)] += len(walk.taken)
                walk.taken.clear()
            walk.apart[number] = value
            return ""

        return run


def _compile_chooser(checked: CheckedChooser, device: CheckedDevice, functions: Functions) -> _Chooser:
    gates = Section(checked.scope, device, functions)
    return _Chooser(
        checked.name,
        gates.maybe(checked.where),
        gates,
        gates.template(checked.reason),
        FieldsProgram(checked.fields, device, functions),
        not tells(checked.reason, checked.fields),
    )
