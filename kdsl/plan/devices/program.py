"""A device as a program: its sections compiled, and its constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np

from kdsl.base.span import Span
from kdsl.check.model.devices import CheckedDevice, CheckedFields
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import QuotaNames
from kdsl.eval.scalar import Closure
from kdsl.eval.values import EvalError, Timestamp
from kdsl.plan.compile.passes.fold import fold_constants
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.devices.admission import AdmitProgram
from kdsl.plan.devices.device_error import located
from kdsl.plan.devices.facts import Facts
from kdsl.plan.devices.fitting import FitProgram
from kdsl.plan.devices.handshakes import Handshake
from kdsl.plan.devices.inventory import InventoryProgram
from kdsl.plan.devices.locks import NodeLock
from kdsl.plan.devices.order import CardOrder
from kdsl.plan.devices.pod_part import PodPart
from kdsl.plan.devices.reads import keys_read, pod_attributes
from kdsl.plan.devices.requests import Allocation, DeviceRequest, Requests
from kdsl.plan.devices.section import FieldsProgram, Section


class DeviceProgram:
    """A device, of which each section is compiled at its first use: most clusters have cards of few kinds.

    EvalError if its kind or its record has no value.

    Threads that use a section first at the same time may each compile it, to programs of equal results.
    """

    def __init__(self, device: CheckedDevice, functions: CompiledFunctions) -> None:
        scope = RuleScope({}, device.params, device.slots, functions)
        params = [replace(each, value=fold_constants(each.value, scope)) for each in device.params]
        self.checked, self._functions = replace(device, params=tuple(params)), functions
        self.kind, self.record = _text(device.kind, scope), _text(device.record, scope)

    def compile(self) -> None:
        """Compile all sections now."""
        for name, each in vars(DeviceProgram).items():
            if isinstance(each, cached_property):
                getattr(self, name)

    @cached_property
    def inventory(self) -> InventoryProgram:
        """The section `inventory`."""
        return InventoryProgram(self.checked, self.kind, self._functions)

    @cached_property
    def admit(self) -> AdmitProgram:
        """The section `admit`."""
        return AdmitProgram(self.checked, self._functions)

    @cached_property
    def _request(self) -> FieldsProgram:
        return self._fields(self.checked.request)

    @cached_property
    def fitting(self) -> FitProgram:
        """The sections `require`, `charge`, `fit` and `choose`."""
        return FitProgram(self.checked, self.kind, self._functions)

    @cached_property
    def order(self) -> CardOrder:
        """The section `order by`."""
        return CardOrder(self.checked, self._functions)

    @cached_property
    def _value(self) -> tuple[Section, Closure, Span] | None:
        value = self.checked.value
        if value is None:
            return None
        section = Section(value.scope, self.checked, self._functions)
        return section, section.compile(value.value), value.value.span

    @cached_property
    def _annotate(self) -> tuple[Section, list[tuple[Closure, Closure, Closure | None, Span]]]:
        section = Section(self.checked.annotations.scope, self.checked, self._functions)
        return section, [
            (
                section.compile(each.key),
                section.compile(each.value),
                section.maybe(each.where),
                each.value.span,
            )
            for each in self.checked.annotations.entries
        ]

    @cached_property
    def quota_names(self) -> QuotaNames:
        """The names under which quotas limit the memory and the compute of cards."""
        quota = self._fields(self.checked.quota)
        frame = quota.section.frame()
        return QuotaNames(
            quota.text("memory", frame), quota.text("cores", frame), quota.integer("factor", frame, 1)
        )

    @cached_property
    def lock(self) -> NodeLock | None:
        """The lock of nodes, None if it has none."""
        lock = self._fields(self.checked.lock)
        if not lock.has("key"):
            return None
        frame = lock.section.frame()
        return NodeLock(
            lock.text("key", frame), lock.integer("seconds", frame, 300), lock.flag("owned", frame)
        )

    @cached_property
    def handshake(self) -> Handshake | None:
        """The handshake with its device plugin, None if it has none."""
        handshake = self._fields(self.checked.handshake)
        if not handshake.has("key"):
            return None
        frame = handshake.section.frame()
        key, resource = handshake.text("key", frame), handshake.text("resource", frame)
        return Handshake(key, resource, handshake.integer("seconds", frame, 60))

    def _fields(self, checked: CheckedFields) -> FieldsProgram:
        return FieldsProgram(checked, self.checked, self._functions)

    @cached_property
    def facts(self) -> Facts:
        """The facts that decide about a node, but for identity tests and the fields of choosers."""
        value = self._value[0].opened if self._value is not None else ()
        return Facts.read_by((*self.fitting.read, *self.order.section.opened, *value))

    @property
    def has_value(self) -> bool:
        """Whether a part of the score depends on the chosen cards."""
        return self.checked.value is not None

    @cached_property
    def pod_part(self) -> PodPart:
        """The part of a pod that decides which cards of a node it gets."""
        keys = self._annotations_read("DevicePod")
        return PodPart(
            tuple(sorted(pod_attributes(self.checked))), None if keys is None else tuple(sorted(keys))
        )

    @cached_property
    def node_annotations(self) -> frozenset[str] | None:
        """The annotations of a node that decide which of its cards a pod gets; None if any may."""
        return self._annotations_read("DeviceNode")

    def _annotations_read(self, view: str) -> frozenset[str] | None:
        # The inventory has no pod.
        sections = [*self.fitting.sections, self.inventory.section, self.order.section]
        if self._value is not None:
            sections.append(self._value[0])
        return keys_read([expr for section in sections for expr in section.exprs], view, "annotations")

    def request(self, pod: DevicePod, container: DeviceContainer) -> DeviceRequest | None:
        """Return the request of a container, None for no card; EvalError where it has no value."""
        fields = self._request
        frame = fields.section.frame(pod=pod, container=container)
        count = fields.integer("count", frame)
        if count <= 0:
            return None
        others = (fields.integer(name, frame) for name in ("memory", "percent", "cores"))
        return DeviceRequest(self.kind, count, *others)

    def value(
        self,
        pod: DevicePod,
        node: DeviceNode,
        policy: Policy,
        cards: tuple[Card, ...],
        allocation: Allocation,
    ) -> np.float32:
        """Return the part of the allocation in the node's score; `cards` are those before it."""
        if self._value is None:
            return np.float32(0)
        section, value, span = self._value
        frame = section.frame(pod=pod, node=node, policy=policy, devices=cards, allocation=allocation)
        try:
            return np.float32(value(frame))
        except EvalError as error:
            raise located(error, span) from error

    def annotations(
        self, pod: DevicePod, node: DeviceNode, policy: Policy, allocation: Allocation, now: int
    ) -> dict[str, str]:
        """Return the annotations of the pod; `now` is in nanoseconds since the Unix epoch.

        EvalError, with the place, if one of the device's expressions fails.
        """
        section, entries = self._annotate
        frame = section.frame(pod=pod, node=node, policy=policy, allocation=allocation, now=Timestamp(now))
        written = {self.record: allocation.text}
        for key, value, where, span in entries:
            try:
                if where is None or where(frame):
                    written[key(frame)] = value(frame)
            except EvalError as error:
                problem = f"rule {self.checked.name} failed: {error.message}"
                raise located(EvalError(problem, error.code), span) from error
        return written


def requests_of(programs: Iterable[DeviceProgram], pod: DevicePod) -> Requests:
    """Return the requests of each container of a pod; EvalError if a request has no value."""
    return tuple(
        {
            program.kind: request
            for program in programs
            if (request := program.request(pod, container)) is not None
        }
        for container in pod.containers
    )


def _text(expr: TypedExpr, scope: RuleScope) -> str:
    """Return the value of a constant."""
    try:
        return str(scope.evaluate(fold_constants(expr, scope)))
    except EvalError as error:
        raise located(error, expr.span) from error
