"""What devices refuse and change when a pod is created, container by container."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kdsl.base.frozen_map import FrozenMap
from kdsl.base.quantity import Quantity
from kdsl.check.model.devices import CheckedAdmit, CheckedChange, CheckedDevice, CheckedGate, CheckedTest
from kdsl.check.model.rule_set import CheckedLet
from kdsl.cluster.devices.pods import DevicePod
from kdsl.eval.scalar import Frame
from kdsl.eval.values import EvalError, Value
from kdsl.plan.compile.scope import Functions
from kdsl.plan.compile.template import text_in
from kdsl.plan.devices.section import Section


@dataclass(frozen=True, slots=True)
class Admission:
    """A pod after admission. `refusal` says why it may not be created; `uses_devices` tells whether some
    container went through all of a device's admission.
    """

    pod: DevicePod
    uses_devices: bool = False
    refusal: str = ""


@dataclass(slots=True)
class _State:
    """A container on its way; `frame` belongs to the pod as it is now."""

    pod: DevicePod
    at: int
    frame: Frame
    refusal: str = ""
    is_out: bool = False


Step = Callable[[_State], None]


class AdmitProgram:
    """A compiled `admit`."""

    def __init__(self, device: CheckedDevice, functions: Functions) -> None:
        checked: CheckedAdmit = device.admit
        self._section = Section(checked.scope, device, functions)
        self._lets: list[int] = []
        self._steps: list[Step] = [self._step(step) for step in checked.steps]
        self._is_empty = not checked.steps

    def admit(self, pod: DevicePod, at: int) -> Admission:
        """Take container number `at` of a pod through the section; EvalError where an expression fails."""
        if self._is_empty:
            return Admission(pod)
        state = _State(pod, at, self._section.frame(pod=pod, container=pod.containers[at]))
        for step in self._steps:
            step(state)
            if state.refusal or state.is_out:
                return Admission(state.pod, False, state.refusal)
        return Admission(state.pod, True)

    def _step(self, step: CheckedLet | CheckedGate | CheckedTest | CheckedChange) -> Step:
        match step:
            case CheckedLet():
                return self._let(step)
            case CheckedGate():
                return self._gate(step)
            case CheckedTest():
                return self._test(step)
            case CheckedChange():
                return self._change(step)

    def _let(self, let: CheckedLet) -> Step:
        """Compute a `let` where it stands: what it reads may change further down."""
        slot = self._section.let(let)
        read = self._section.compile(let.variable)
        self._lets.append(slot)

        def run(state: _State) -> None:
            try:
                read(state.frame)
            except EvalError:
                return  # the slot holds the error, which is its user's

        return run

    def _gate(self, gate: CheckedGate) -> Step:
        condition = self._section.compile(gate.condition)

        def run(state: _State) -> None:
            state.is_out = not condition(state.frame)

        return run

    def _test(self, test: CheckedTest) -> Step:
        condition, reason = self._section.compile(test.condition), self._section.template(test.reason)

        def run(state: _State) -> None:
            if not condition(state.frame):
                state.refusal = text_in(reason, state.frame)

        return run

    def _change(self, change: CheckedChange) -> Step:
        section = self._section
        where, key, value = (
            section.maybe(change.where),
            section.maybe(change.key),
            section.compile(change.value),
        )
        lets = tuple(self._lets)

        def run(state: _State) -> None:
            if where is not None and not where(state.frame):
                return
            name = "" if key is None else key(state.frame)
            state.pod = changed(state.pod, state.at, change.target, name, value(state.frame))
            before = state.frame
            state.frame = section.frame(pod=state.pod, container=state.pod.containers[state.at])
            for slot in lets:
                state.frame[slot] = before[slot]

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
