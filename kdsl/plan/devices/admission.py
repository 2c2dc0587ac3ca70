"""The admission of pods by devices, container by container: refusals and changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from kdsl.base.frozen_map import FrozenMap
from kdsl.base.quantity import Quantity
from kdsl.check.model.devices import CheckedChange, CheckedGate, CheckedTest
from kdsl.check.model.rule_set import CheckedLet
from kdsl.cluster.devices.pods import DevicePod
from kdsl.eval.scalar import Frame
from kdsl.eval.values import EvalError, Value
from kdsl.plan.compile.template import text_in
from kdsl.plan.devices.device_error import located
from kdsl.plan.devices.section import DeviceSource

AdmissionStep = Callable[[Frame, DevicePod, int], "DevicePod | str | bool | None"]
"""Returns the changed pod, a refusal, False if the container goes no further, or None."""


@dataclass(frozen=True, slots=True)
class Admission:
    """A pod after admission. `refusal` is the reason why it may not be created.

    A pod `uses_devices` if a container went through all of a device's admission.
    """

    pod: DevicePod
    uses_devices: bool = False
    refusal: str = ""


class AdmitProgram:
    """A compiled `admit`."""

    def __init__(self, source: DeviceSource) -> None:
        checked = source.device.admit
        self.section = source.section(checked.scope)
        self._lets: list[int] = []
        self._steps = [(self._step(step), step.span) for step in checked.steps]

    def admit(self, pod: DevicePod, at: int) -> Admission:
        """Take container number `at` of a pod through the section; EvalError if an expression fails."""
        if not self._steps:
            return Admission(pod)
        frame = self.section.frame(pod=pod, container=pod.containers[at])
        for step, span in self._steps:
            try:
                found = step(frame, pod, at)
            except EvalError as error:
                raise located(error, span) from error
            match found:
                case False:
                    return Admission(pod)
                case str() as refusal:
                    return Admission(pod, refusal=refusal)
                case DevicePod() as pod:
                    before = frame
                    frame = self.section.frame(pod=pod, container=pod.containers[at])
                    for slot in self._lets:
                        frame[slot] = before[slot]
        return Admission(pod, uses_devices=True)

    def _step(self, step: CheckedLet | CheckedGate | CheckedTest | CheckedChange) -> AdmissionStep:
        section = self.section
        if isinstance(step, CheckedLet):
            return self._let(step)
        if isinstance(step, CheckedChange):
            return self._change(step)
        condition = section.compile(step.condition)
        if isinstance(step, CheckedGate):
            return lambda frame, pod, at: None if condition(frame) else False
        reason = section.template(step.reason)
        return lambda frame, pod, at: None if condition(frame) else text_in(reason, frame) or None

    def _let(self, let: CheckedLet) -> AdmissionStep:
        """Compute a `let` at its place: later lines may change the values that it reads."""
        self._lets.append(self.section.let(let))
        read = self.section.compile(let.variable)

        def run(frame: Frame, pod: DevicePod, at: int) -> None:
            with suppress(EvalError):  # the slot holds the error for those who read it
                read(frame)

        return run

    def _change(self, change: CheckedChange) -> AdmissionStep:
        section = self.section
        where, key = section.maybe(change.where), section.maybe(change.key)
        value = section.compile(change.value)

        def run(frame: Frame, pod: DevicePod, at: int) -> DevicePod | None:
            if where is not None and not where(frame):
                return None
            return changed(pod, at, change.target, "" if key is None else key(frame), value(frame))

        return run


def changed(pod: DevicePod, at: int, target: str, key: str, value: Value) -> DevicePod:
    """Return the pod with one thing written: see `kdsl.check.devices.forms.TARGETS`."""
    container = pod.containers[at]
    match target:
        case "limits":
            container = replace(container, limits=FrozenMap({**container.limits, key: _amount(value)}))
        case "requests":
            container = replace(container, requests=FrozenMap({**container.requests, key: _amount(value)}))
        case "env":
            container = replace(container, env=(*container.env, (key, value)))
        case "annotations":
            return pod.with_annotations({key: value})
        case _:
            return replace(pod, runtime_class=value)
    return pod.with_container(at, container)


def _amount(value: Value) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity.of(value)


def admit_pod(programs: Sequence[AdmitProgram], pod: DevicePod) -> Admission:
    """Take every container of a pod through the admission of every device, in order, up to a refusal."""
    uses_devices = False
    for at in range(len(pod.containers)):
        for program in programs:
            admission = program.admit(pod, at)
            pod, uses_devices = admission.pod, uses_devices or admission.uses_devices
            if admission.refusal:
                return Admission(pod, uses_devices, admission.refusal)
    return Admission(pod, uses_devices)
