"""Which cards of a node a container gets: one kind of device, one container, one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.check.devices.forms import CHOOSERS as CHOOSER_FORMS
from kdsl.check.model.devices import CheckedChooser, CheckedDevice
from kdsl.cluster.devices.cards import Card, Grant
from kdsl.eval.scalar import Frame
from kdsl.eval.values import EvalError, Value
from kdsl.plan.compile.scope import Functions
from kdsl.plan.compile.template import Text, text_in
from kdsl.plan.devices.choice import Candidate, Choice, Refusal
from kdsl.plan.devices.choosers import CHOOSERS, GREEDY
from kdsl.plan.devices.section import FieldsProgram, Section
from kdsl.plan.devices.situation import Listener, Situation
from kdsl.plan.devices.telling import tells
from kdsl.plan.devices.trying import CardTests, Verdicts, Walk, candidate, granted

INSUFFICIENT: Final = "NodeInsufficientDevice"


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a container gets, or why the node does not do.

    `is_shared` tells that no more was looked at than what nodes have in common whose cards have equal numbers
    and equal answers of own tests. `is_error` tells that an expression of the device failed.
    """

    found: tuple[Grant, ...] | str
    is_shared: bool = True
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class _Chooser:
    """A compiled `choose` line."""

    name: str
    where: Callable[[Frame], Value] | None
    gates: Section
    reason: str | Text
    fields: FieldsProgram
    is_shared: bool


class FitProgram:
    """The compiled `require`, `charge`, `fit` and `choose` of a device."""

    def __init__(self, device: CheckedDevice, kind: str, functions: Functions) -> None:
        self._kind = kind
        self._gates = Section(device.gates.scope, device, functions)
        self._tests = [
            (self._gates.compile(test.condition), self._gates.template(test.reason))
            for test in device.gates.tests
        ]
        self.cards = CardTests(device, kind, functions)
        self.is_shared = not tells(
            device.charge,
            device.gates,
            [step for step in device.fit.steps if self.cards.own.number(step) is None],
            [chooser.where for chooser in device.choosers],
            device.order,
            device.value,
        )
        self._choosers = [_compile_chooser(chooser, device, functions) for chooser in device.choosers]

    @property
    def sections(self) -> tuple[Section, ...]:
        """What decides which cards are chosen."""
        choosers = (section for each in self._choosers for section in (each.gates, each.fields.section))
        return (*self.cards.sections, self._gates, *choosers)

    def fit(self, s: Situation, known: Verdicts, listener: Listener | None = None) -> Fitted:
        """Return what the container gets, or why the node does not do; `known` as in `CardTests.walk`."""
        is_shared = self.is_shared
        total = len(s.cards)
        about = {
            "pod": s.pod, "node": s.node, "policy": s.policy, "request": s.request, "devices": tuple(s.cards),
        }  # fmt: skip
        try:
            chooser = next(
                each for each in self._choosers if each.where is None or each.where(each.gates.frame(**about))
            )
            if listener is not None:
                listener.chooses(chooser.name)
            if s.request.count > total and not CHOOSER_FORMS[chooser.name].repeats:
                return Fitted(INSUFFICIENT, is_shared)
            if self._tests:
                frame = self._gates.frame(**about)
                for condition, reason in self._tests:
                    if not condition(frame):
                        return Fitted(f"1/{total} {text_in(reason, frame)}", is_shared)
            walk = self.cards.walk(s, known, chooser.name in GREEDY, listener)
            is_shared = is_shared and chooser.is_shared
            return Fitted(self._choose(s, about, chooser, walk), is_shared)
        except EvalError as error:
            return Fitted(f"{self._kind}: {error.message}", is_shared, is_error=True)

    def _choose(
        self, s: Situation, about: Mapping[str, Value], chooser: _Chooser, walk: Walk
    ) -> tuple[Grant, ...] | str:
        def read(name: str, device: Card | None = None, other: Card | None = None) -> Value:
            frame = chooser.fields.section.frame(**about, device=device, other=other, allocated=s.allocated)
            return chooser.fields.value(name, frame, None)

        def charged(place: int) -> Candidate:
            return candidate(s.cards[place], place, walk.charges[place])

        choice = Choice(s.request.count, walk.taken, s.cards, read, walk.rejected, charged)
        chosen = CHOOSERS[chooser.name](choice)
        if not isinstance(chosen, Refusal):
            return tuple(map(granted, chosen))
        reason = text_in(chooser.reason, chooser.gates.frame(**about))
        total = len(s.cards) if chosen.total is None else chosen.total
        counts = dict(walk.rejected)
        if chosen.counts is not None:
            counts = {word or reason: count for word, count in chosen.counts.items()}
        elif chosen.count or chosen.total is not None:
            counts[reason] = counts.get(reason, 0) + chosen.count
        return ", ".join(sorted(f"{count}/{total} {word}" for word, count in counts.items()))


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
