"""The conditions of an attempt, each compiled once and evaluated once for a device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.errors import AllocationError

if TYPE_CHECKING:
    from kdsl.hooks.context import DeviceCondition, DeviceConditions


@dataclass(frozen=True, slots=True)
class Selector:
    """A condition; `owner` is the class or claim that writes it, at place `at`."""

    text: str
    owner: str
    at: int


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a condition has no answer for any device, or for one."""

    reason: str
    is_of_device: bool


_Answer = bool | _Failure


class Conditions:
    """Answers whether devices meet the selectors of classes and claims."""

    def __init__(self, conditions: DeviceConditions) -> None:
        self._conditions = conditions.budgeted()
        self._compiled: dict[str, DeviceCondition | _Failure] = {}
        self._answers: dict[PoolDevice, dict[str, _Answer]] = {}

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
        """Return the answers to some conditions; equal ones for devices that no condition tells apart."""
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
        condition = self._compiled.get(text)
        if condition is None:
            condition = self._compiled[text] = self._compile(text)
        if isinstance(condition, _Failure):
            return condition
        try:
            return condition(device.view)
        except ValueError as error:
            return _Failure(str(error), is_of_device=True)

    def _compile(self, text: str) -> DeviceCondition | _Failure:
        try:
            return self._conditions.compile(text)
        except ValueError as error:
            return _Failure(str(error), is_of_device=False)


def _error(selector: Selector, failure: _Failure, device: PoolDevice) -> AllocationError:
    place = f"{selector.owner}: selector #{selector.at}"
    if failure.is_of_device:
        return AllocationError(f"{place} on device {device}: CEL runtime error: {failure.reason}")
    return AllocationError(f"{place}: CEL compile error: {failure.reason}")
