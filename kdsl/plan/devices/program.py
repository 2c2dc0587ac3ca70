"""A device as a program: its sections compiled, and its constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np

from kdsl.base.span import Span
from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import QuotaNames
from kdsl.eval.scalar import Closure
from kdsl.eval.values import EvalError, Timestamp
from kdsl.plan.compile.passes.fold import fold_constants
from kdsl.plan.compile.scope import CompiledFunctions, RuleScope
from kdsl.plan.devices.admission import AdmitProgram
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.demand import Allocation, Demand, DeviceRequest, Requests
from kdsl.plan.devices.device_error import located
from kdsl.plan.devices.facts import Facts, Parts, pod_parts
from kdsl.plan.devices.fitting import FitProgram
from kdsl.plan.devices.handshakes import Handshake
from kdsl.plan.devices.inventory import InventoryProgram
from kdsl.plan.devices.locks import NodeLock
from kdsl.plan.devices.order import CardOrder
from kdsl.plan.devices.reads import keys_read
from kdsl.plan.devices.section import DeviceSource, FieldsProgram, Section, value_of


class DeviceProgram:
    """A device, of which each section is compiled at its first use: most clusters have cards of few kinds.

    EvalError if its kind or its record has no value.

    Threads that use a section first at the same time may each compile it, to programs of equal results.
    """

    def __init__(self, device: CheckedDevice, functions: CompiledFunctions) -> None:
        scope = RuleScope({}, device.params, device.slots, functions)
        params = [replace(each, value=fold_constants(each.value, scope)) for each in device.params]
        self.checked = replace(device, params=tuple(params))
        self.kind, self.record = _text(device.kind, scope), _text(device.record, scope)
        self._source = DeviceSource(self.checked, self.kind, functions)

    def compile(self) -> None:
        """Compile all sections now."""
        for name, each in vars(DeviceProgram).items():
            if isinstance(each, cached_property):
                getattr(self, name)

    @cached_property
    def inventory(self) -> InventoryProgram:
        """The section `inventory`."""
        return InventoryProgram(self._source)

    @cached_property
    def admit(self) -> AdmitProgram:
        """The section `admit`."""
        return AdmitProgram(self._source)

    @cached_property
    def _request(self) -> FieldsProgram:
        return self._source.fields(self.checked.request)

    @cached_property
    def fitting(self) -> FitProgram:
        """The sections `require`, `charge`, `fit` and `choose`."""
        return FitProgram(self._source)

    @cached_property
    def order(self) -> CardOrder:
        """The section `order by`."""
        return CardOrder(self._source)

    @cached_property
    def _value(self) -> tuple[Section, Closure, Span] | None:
        value = self.checked.value
        if value is None:
            return None
        section = self._source.section(value.scope)
        return section, section.compile(value.value), value.value.span

    @cached_property
    def _annotate(self) -> tuple[Section, list[tuple[Closure, Closure, Closure | None, Span]]]:
        section = self._source.section(self.checked.annotations.scope)
        return section, [
            (
                section.compile(each.key),
                section.compile(each.value),
                section.maybe(each.where),
                each.value.span,
            )
            for each in self.checked.annotations.steps
        ]

    @cached_property
    def quota_names(self) -> QuotaNames:
        """The names under which quotas limit the memory and the compute of cards."""
        quota = self._source.fields(self.checked.quota)
        frame = quota.section.frame()
        return QuotaNames(
            quota.text("memory", frame), quota.text("cores", frame), quota.integer("factor", frame, 1)
        )

    @cached_property
    def lock(self) -> NodeLock | None:
        """The lock of nodes, None if it has none."""
        lock = self._source.fields(self.checked.lock)
        if not lock.has("key"):
            return None
        frame = lock.section.frame()
        return NodeLock(
            lock.text("key", frame), lock.integer("seconds", frame, 300), lock.flag("owned", frame)
        )

    @cached_property
    def handshake(self) -> Handshake | None:
        """The handshake with its device plugin, None if it has none."""
        handshake = self._source.fields(self.checked.handshake)
        if not handshake.has("key"):
            return None
        frame = handshake.section.frame()
        key, resource = handshake.text("key", frame), handshake.text("resource", frame)
        return Handshake(key, resource, handshake.integer("seconds", frame, 60))

    @property
    def _sections(self) -> tuple[Section, ...]:
        """The sections that decide about a node, but for identity tests and the fields of choosers."""
        value = () if self._value is None else self._value[:1]
        return *self.fitting.sections, self.order.section, *value

    @cached_property
    def facts(self) -> Facts:
        """The facts that decide about a node, but for identity tests and the fields of choosers."""
        return Facts.read_by(*self._sections)

    @property
    def has_value(self) -> bool:
        """Whether a part of the score depends on the chosen cards."""
        return self.checked.value is not None

    @cached_property
    def pod_parts(self) -> Parts:
        """The parts of a pod that decide which cards of a node it gets."""
        return pod_parts(self._deciding)

    @property
    def reviewing(self) -> tuple[TypedExpr, ...]:
        """The expressions that decide about the admission of a pod and its requests."""
        return *self.admit.section.exprs, *self._request.section.exprs

    @cached_property
    def node_annotations(self) -> frozenset[str] | None:
        """The annotations of a node that decide which of its cards a pod gets; None if any may."""
        return keys_read((*self._deciding, *self.inventory.section.exprs), "DeviceNode", "annotations")

    @property
    def _deciding(self) -> tuple[TypedExpr, ...]:
        """The expressions that decide which cards of a node a pod gets."""
        return tuple([expr for each in (*self._sections, *self.fitting.narrow) for expr in each.exprs])

    def request(self, pod: DevicePod, container: DeviceContainer) -> DeviceRequest | None:
        """Return the request of a container, None for no card; EvalError where it has no value."""
        fields = self._request
        frame = fields.section.frame(pod=pod, container=container)
        count = fields.integer("count", frame)
        if count <= 0:
            return None
        others = (fields.integer(name, frame) for name in ("memory", "percent", "cores"))
        return DeviceRequest(self.kind, count, *others)

    def value(self, demand: Demand, at: NodeCards, allocation: Allocation) -> np.float32:
        """Return the part of the allocation in the node's score; the cards of `at` are those before it."""
        if self._value is None:
            return np.float32(0)
        section, value, span = self._value
        pod, policy, cards = demand.pod, demand.policy, at.cards
        frame = section.frame(pod=pod, node=at.node, policy=policy, devices=cards, allocation=allocation)
        return np.float32(value_of(value, frame, span))

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
