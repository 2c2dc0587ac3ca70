"""A device as a program: its sections compiled, and its constants."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.devices.cards import Card, Grant
from kdsl.cluster.devices.codec import encode
from kdsl.cluster.devices.pods import DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import QuotaNames
from kdsl.eval.values import EvalError, Timestamp
from kdsl.plan.compile.scope import Functions
from kdsl.plan.compile.verdicts import error_text
from kdsl.plan.devices.admission import AdmitProgram
from kdsl.plan.devices.fitting import FitProgram
from kdsl.plan.devices.handshakes import Handshake
from kdsl.plan.devices.inventory import InventoryProgram
from kdsl.plan.devices.locks import NodeLock
from kdsl.plan.devices.reads import annotations_read
from kdsl.plan.devices.requests import Request, RequestProgram
from kdsl.plan.devices.section import FieldsProgram, Section
from kdsl.plan.devices.situation import Allotment
from kdsl.plan.devices.telling import tells


class Allocation:
    """What a pod gets of one kind of device on a node: the view `DeviceAllocation`."""

    __slots__ = ("containers",)

    def __init__(self, containers: tuple[Allotment, ...]) -> None:
        self.containers = containers

    @property
    def cards(self) -> tuple[Grant, ...]:
        return tuple(grant for allotment in self.containers for grant in allotment.cards)

    @property
    def text(self) -> str:
        return encode(allotment.cards for allotment in self.containers)


class DeviceProgram:
    """A compiled device; `quota_names` are what quotas call its resources, `lock` and `handshake` are None
    where it has none.
    """

    def __init__(self, device: CheckedDevice, functions: Functions) -> None:
        self.checked = device
        self.kind = _constant(device.kind, device, functions)
        self.record = _constant(device.record, device, functions)
        self.quota_names = _quota_names(device, functions)
        self.lock = _lock(device, functions)
        self.handshake = _handshake(device, functions)
        self.inventory = InventoryProgram(device, self.kind, functions)
        self.admit = AdmitProgram(device, functions)
        self.requests = RequestProgram(device, self.kind, functions)
        self.fitting = FitProgram(device, self.kind, functions)
        self._order = Section(device.order.scope, device, functions)
        self._keys = [(self._order.compile(key.value), key.descending) for key in device.order.keys]
        self._has_known_order = not tells(device.order)
        self._value_section = self._value = None
        if device.value is not None:
            self._value_section = Section(device.value.scope, device, functions)
            self._value = self._value_section.compile(device.value.value)
        self._annotate = Section(device.annotations.scope, device, functions)
        self._annotations = [
            (
                self._annotate.compile(each.key),
                self._annotate.compile(each.value),
                self._annotate.maybe(each.where),
                each.value.span,
            )
            for each in device.annotations.entries
        ]

    @property
    def annotations_read(self) -> frozenset[str] | None:
        """The annotations of pods that decide which cards of a node they get; None where any may."""
        sections = [*self.fitting.sections, self._order]
        if self._value_section is not None:
            sections.append(self._value_section)
        return annotations_read(expr for section in sections for expr in section.exprs)

    @property
    def has_order(self) -> bool:
        """Tell whether the device orders cards itself, not by the pod's policy."""
        return bool(self._keys)

    def ordered(
        self,
        cards: list[Card],
        pod: DevicePod,
        node: DeviceNode,
        policy: Policy,
        request: Request,
        known: dict[tuple[Hashable, ...], tuple[Any, ...]],
    ) -> list[Card]:
        """Return cards in the order of the device's `order by`, the first to be tried first.

        `known` are keys by shape of card, for pods like this one and this request.
        """
        found: list[tuple[Any, ...]] = []
        for card in cards:
            keys = known.get(card.shape) if self._has_known_order else None
            if keys is None:
                about = {"pod": pod, "node": node, "policy": policy, "request": request, "device": card}
                keys = tuple(key(self._order.frame(**about)) for key, _ in self._keys)
                if self._has_known_order:
                    known[card.shape] = keys
            found.append(keys)
        places = list(range(len(cards)))
        for at, (_, is_descending) in reversed(tuple(enumerate(self._keys))):
            column = [keys[at] for keys in found]
            places.sort(key=column.__getitem__, reverse=is_descending)
        return [cards[place] for place in places]

    def value(
        self,
        pod: DevicePod,
        node: DeviceNode,
        policy: Policy,
        cards: tuple[Card, ...],
        allocation: Allocation,
    ) -> np.float32:
        """Return what the allocation adds to the node's score; `cards` are the node's before it."""
        if self._value is None or self._value_section is None:
            return np.float32(0)
        frame = self._value_section.frame(
            pod=pod, node=node, policy=policy, devices=cards, allocation=allocation
        )
        return np.float32(self._value(frame))

    def annotations(
        self, pod: DevicePod, node: DeviceNode, policy: Policy, allocation: Allocation, now: int
    ) -> dict[str, str]:
        """Return what is written on the pod; `now` is in nanoseconds since the Unix epoch.

        Raises EvalError, which says where, if one of the device's expressions fails.
        """
        frame = self._annotate.frame(
            pod=pod, node=node, policy=policy, allocation=allocation, now=Timestamp(now)
        )
        written = {self.record: allocation.text}
        for key, value, where, span in self._annotations:
            try:
                if where is None or where(frame):
                    written[key(frame)] = value(frame)
            except EvalError as error:
                raise EvalError(error_text(self.checked.name, error, span)) from error
        return written


def _constant(expr: TypedExpr, device: CheckedDevice, functions: Functions) -> str:
    section = Section({}, device, functions)
    text = section.compile(expr)
    return str(text(section.frame()))


def _quota_names(device: CheckedDevice, functions: Functions) -> QuotaNames:
    fields = FieldsProgram(device.quota, device, functions)
    frame = fields.section.frame()
    return QuotaNames(
        fields.text("memory", frame), fields.text("cores", frame), fields.integer("factor", frame, 1)
    )


def _lock(device: CheckedDevice, functions: Functions) -> NodeLock | None:
    fields = FieldsProgram(device.lock, device, functions)
    if not fields.has("key"):
        return None
    frame = fields.section.frame()
    return NodeLock(
        fields.text("key", frame), fields.integer("seconds", frame, 300), fields.flag("owned", frame, True)
    )


def _handshake(device: CheckedDevice, functions: Functions) -> Handshake | None:
    fields = FieldsProgram(device.handshake, device, functions)
    if not fields.has("key"):
        return None
    frame = fields.section.frame()
    return Handshake(
        fields.text("key", frame), fields.text("resource", frame), fields.integer("seconds", frame, 60)
    )
