"""The conditions of an attempt, each compiled once and evaluated once for devices that look alike to it.

Results of earlier attempts are kept, and cost each attempt the same steps: no attempt depends on those
before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kdsl.hooks.context import DeviceAnswer, DeviceCondition

from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.errors import AllocationError
from kdsl_plugins.dynamic_resources.looks import Attributes, Looks
from kdsl_plugins.dynamic_resources.pools import SliceIndex
from kdsl_plugins.dynamic_resources.requests import Selector
from kdsl_plugins.dynamic_resources.steps import COMPILING, CONDITION_STEPS

if TYPE_CHECKING:
    from kdsl.hooks.context import DeviceConditions

MAX_READ: Final = 16 * 1024
"""The most characters of conditions that are compiled before a device needs them."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """The reason for which a condition has no answer for any device, or for one."""

    reason: str
    is_of_device: bool


_Answer = bool | _Failure


class Conditions:
    """Answers whether devices meet the selectors of classes and claims."""

    def __init__(self, conditions: DeviceConditions, slices: SliceIndex) -> None:
        self._conditions, self._slices = conditions, slices
        self._left = CONDITION_STEPS
        self._compiled: dict[str, tuple[DeviceCondition, Looks] | _Failure] = {}
        self._answers: dict[PoolDevice, dict[str, _Answer]] = {}

    def attributes(self, texts: Collection[str]) -> Attributes:
        """Return the attributes of devices that some conditions read, None where they may read any."""
        found: set[tuple[str, str]] = set()
        # Compiling costs steps where an answer needs it: the bound of this does not depend on them.
        if sum(map(len, texts)) > MAX_READ:
            return None
        for text in texts:
            try:
                attributes = self._conditions.compile(text).attributes
            except ValueError:
                continue
            if attributes is None:
                return None
            found |= attributes
        return frozenset(found)

    def hold(self, selectors: Iterable[Selector], device: PoolDevice) -> bool:
        """Return whether a device meets all selectors; AllocationError where one fails before another does
        not hold.
        """
        known = self._of(device)
        for selector in selectors:
            answer = known.get(selector.text)
            if answer is None:
                answer = known[selector.text] = self._answer(selector.text, device)
            if answer is False:
                return False
            if answer is not True:
                raise _error(selector, answer, device)
        return True

    def answers(self, texts: Iterable[str], device: PoolDevice) -> tuple[object, ...]:
        """Return the answers to some conditions, equal for devices that no condition separates."""
        known = self._of(device)
        for text in texts:
            if text not in known:
                known[text] = self._answer(text, device)
        return tuple(known[text] for text in texts)

    def _of(self, device: PoolDevice) -> dict[str, _Answer]:
        known = self._answers.get(device)
        if known is None:
            known = self._answers[device] = {}
        return known

    def _answer(self, text: str, device: PoolDevice) -> _Answer:
        compiled = self._compiled.get(text)
        if compiled is None:
            compiled = self._compiled[text] = self._compile(text)
        if isinstance(compiled, _Failure):
            return compiled
        if self._left < 0:
            return _Failure(_TOO_MANY, is_of_device=True)
        answer = _evaluated(text, *compiled, device)
        self._left -= answer.steps
        if answer.problem:
            return _Failure(answer.problem, is_of_device=True)
        return _Failure(_TOO_MANY, is_of_device=True) if self._left < 0 else answer.holds

    def _compile(self, text: str) -> tuple[DeviceCondition, Looks] | _Failure:
        self._left -= len(text) * COMPILING
        if self._left < 0:
            return _Failure(_TOO_MANY, is_of_device=False)
        try:
            condition = self._conditions.compile(text)
        except ValueError as error:
            return _Failure(str(error), is_of_device=False)
        return condition, self._slices.looks(condition.attributes)


_TOO_MANY: Final = f"more than {CONDITION_STEPS} steps"


def _evaluated(text: str, condition: DeviceCondition, looks: Looks, device: PoolDevice) -> DeviceAnswer:
    """Return the kept answer for a device that looks alike, or evaluate the condition."""
    look = looks.of(device)
    answer = looks.kept(text, look)
    if answer is None:
        try:
            answer = condition.answer(device.view)
        except ValueError as error:
            answer = DeviceAnswer(holds=False, steps=0, problem=str(error))
        looks.keep(text, look, answer)
    return answer


def _error(selector: Selector, failure: _Failure, device: PoolDevice) -> AllocationError:
    place = f"{selector.owner}: selector #{selector.at}"
    if failure.is_of_device:
        return AllocationError(f"{place} on device {device}: CEL runtime error: {failure.reason}")
    return AllocationError(f"{place}: CEL compile error: {failure.reason}")
