"""Tests in `fit` that read names of cards or nodes: asked beforehand, once per node for pods that are alike.

So nodes of which they say the same can share what else there is to say of their cards: see `looks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from kdsl.check.model.devices import CheckedDevice, CheckedTest, FitStep
from kdsl.check.model.rule_set import CheckedLet
from kdsl.check.model.types import BindingTime
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.eval.values import EvalError
from kdsl.plan.compile.scope import Functions
from kdsl.plan.devices.section import Section
from kdsl.plan.devices.telling import is_own

OwnAnswer = tuple[bool | str, ...]
"""What each own test says of a card; a text is why it has no value."""
OwnAnswers = Mapping[str, OwnAnswer]
"""What own tests say, by name of card."""
NO_ANSWERS: Final[OwnAnswers] = MappingProxyType({})


class OwnTests:
    """The own tests of a device, compiled: what does not depend on the card is computed once per node."""

    def __init__(self, device: CheckedDevice, functions: Functions) -> None:
        scope = device.fit.scope
        lets = {step.variable.slot for step in device.fit.steps if isinstance(step, CheckedLet)}
        own = [
            step for step in device.fit.steps if isinstance(step, CheckedTest) and is_own(step, scope, lets)
        ]
        self._numbers = {id(test): number for number, test in enumerate(own)}
        node = replace(scope["node"], time=BindingTime.POD)
        self.section = Section({**scope, "node": node}, device, functions)
        self._tests = [self.section.compile(test.condition) for test in own]

    def number(self, step: FitStep) -> int | None:
        """Return the place of a step among the answers; None where it is no own test."""
        return self._numbers.get(id(step))

    def answers(self, pod: DevicePod, node: DeviceNode, policy: Policy, cards: Sequence[Card]) -> OwnAnswers:
        """Ask the tests about each of these cards."""
        if not self._tests:
            return NO_ANSWERS
        section = self.section
        frame = section.frame(pod=pod, node=node, policy=policy)
        found: dict[str, OwnAnswer] = {}
        for card in cards:
            answer: list[bool | str] = []
            for test in self._tests:
                section.fill(frame, device=card)
                section.rewind(frame)
                try:
                    answer.append(bool(test(frame)))
                except EvalError as error:
                    answer.append(error.message)
            found[card.id] = tuple(answer)
        return found
