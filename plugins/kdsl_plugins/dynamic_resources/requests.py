"""The requests of claims that wait for devices, read once for all nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.api.device_objects import DeviceClass, DeviceRequest, DeviceSelector, ResourceClaim
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.hooks.context import DeviceCondition, DeviceConditions

from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.errors import AllocationError

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"
_REPELLING: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Selector:
    """A condition; `owner` is the class or claim that writes it, at place `at`."""

    text: str
    owner: str
    at: int


class Conditions:
    """The conditions of an attempt, each compiled once and evaluated once for a device."""

    def __init__(self, conditions: DeviceConditions) -> None:
        self._conditions = conditions.budgeted()
        self._compiled: dict[str, DeviceCondition | str] = {}

    def hold(self, selectors: Sequence[Selector], device: PoolDevice) -> bool:
        """Return whether a device meets all selectors; AllocationError where one fails before another does
        not hold.
        """
        answers = device.answers
        for selector in selectors:
            answer = answers.get(selector.text)
            if answer is None:
                answer = answers[selector.text] = self._answer(selector, device)
            if answer is False:
                return False
            if answer is not True:
                place = f"{selector.owner}: selector #{selector.at} on device {device}"
                raise AllocationError(f"{place}: CEL runtime error: {answer}")
        return True

    def _answer(self, selector: Selector, device: PoolDevice) -> bool | str:
        condition = self._compiled.get(selector.text)
        if condition is None:
            condition = self._compiled[selector.text] = self._compile(selector.text)
        if isinstance(condition, str):
            place = f"{selector.owner}: selector #{selector.at}"
            raise AllocationError(f"{place}: CEL compile error: {condition}")
        try:
            return condition(device.view)
        except ValueError as error:
            return str(error)

    def _compile(self, text: str) -> DeviceCondition | str:
        try:
            return self._conditions.compile(text)
        except ValueError as error:
            return str(error)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request for devices of a class, or an alternative of one: then `parent` is the name of the request.

    `problem` is why it cannot be met on any node, empty where it may be.
    """

    claim: str
    name: str
    parent: str
    spec: DeviceRequest
    device_class: DeviceClass
    selectors: tuple[Selector, ...]
    tolerations: tuple[Toleration, ...]
    problem: str = ""

    @property
    def full_name(self) -> str:
        """The name in results: `request`, or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def is_for_all(self) -> bool:
        return self.spec.allocation_mode == ALL

    @property
    def count(self) -> int:
        """The number of devices; one where none is written, as by the defaults of the API."""
        return self.spec.count or 1

    @property
    def has_admin_access(self) -> bool:
        return self.spec.admin_access and not self.parent

    def tolerates(self, device: PoolDevice) -> bool:
        """Return whether the request may get a device with its taints; other effects repel nobody."""
        return all(
            any(each.tolerates(Taint(one.key, one.value, one.effect)) for each in self.tolerations)
            for one in device.device.taints
            if one.effect in _REPELLING
        )

    def fail(self, problem: str) -> AllocationError:
        """Return an error of this request."""
        return AllocationError(f"claim {self.claim}, request {self.name}: {problem}")


@dataclass(frozen=True, slots=True, eq=False)
class ClaimRequests:
    """The requests of a claim: each one has its alternatives, or one without a parent."""

    claim: ResourceClaim
    key: str
    requests: tuple[tuple[Request, ...], ...]

    @staticmethod
    def of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> ClaimRequests:
        """Read a claim."""
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        found = []
        for each in claim.spec.devices.requests:
            if each.first_available:
                found.append(
                    tuple(_request(key, one.name, each.name, one, classes) for one in each.first_available)
                )
            else:
                found.append((_request(key, each.name, "", each.exactly or DeviceRequest(), classes),))
        return ClaimRequests(claim, key, tuple(found))


def _request(
    claim: str, name: str, parent: str, spec: DeviceRequest, classes: Mapping[str, DeviceClass]
) -> Request:
    device_class = classes.get(spec.device_class_name, DeviceClass())
    of_class = f"class {device_class.metadata.name}"
    return Request(
        claim=claim,
        name=name,
        parent=parent,
        spec=spec,
        device_class=device_class,
        selectors=(
            *_selectors(device_class.spec.selectors, of_class),
            *_selectors(spec.selectors, f"claim {claim}"),
        ),
        tolerations=tuple(
            Toleration(one.key, one.operator, one.value, one.effect) for one in spec.tolerations
        ),
        problem=_problem(spec, device_class, classes),
    )


def _selectors(selectors: Sequence[DeviceSelector], owner: str) -> tuple[Selector, ...]:
    return tuple(
        Selector(each.cel.expression, owner, at) for at, each in enumerate(selectors) if each.cel is not None
    )


def _problem(spec: DeviceRequest, device_class: DeviceClass, classes: Mapping[str, DeviceClass]) -> str:
    unknown = next((at for at, each in enumerate(spec.selectors) if each.cel is None), None)
    if unknown is not None:
        return f"selector #{unknown}: CEL expression empty (unsupported selector type?)"
    name = spec.device_class_name
    if not name:
        return "missing device class name (unsupported request type?)"
    if name not in classes:
        reason = f'deviceclass.resource.k8s.io "{name}" not found'
        return f"could not retrieve device class {name}: {reason}"
    if any(each.cel is None for each in device_class.spec.selectors):
        return f"device class {name} has a selector of an unknown type"
    if spec.allocation_mode not in ("", EXACT_COUNT, ALL):
        return f"unsupported count mode {spec.allocation_mode}"
    return ""
