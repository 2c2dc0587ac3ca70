"""A device as a program: its sections compiled, and its constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import QuotaNames
from kdsl.eval.scalar import Frame
from kdsl.eval.values import EvalError, Timestamp
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.admission import AdmitProgram
from kdsl.plan.devices.card_memo import CardMemo
from kdsl.plan.devices.device_error import located
from kdsl.plan.devices.facts import Facts
from kdsl.plan.devices.fitting import FitProgram
from kdsl.plan.devices.fullness import card_score
from kdsl.plan.devices.handshakes import Handshake
from kdsl.plan.devices.inventory import InventoryProgram
from kdsl.plan.devices.locks import NodeLock
from kdsl.plan.devices.reads import keys_read
from kdsl.plan.devices.requests import Allocation, DeviceRequest, Requests
from kdsl.plan.devices.section import FieldsProgram, Section


class DeviceProgram:
    """A compiled device. `lock` and `handshake` are None if it has none."""

    def __init__(self, device: CheckedDevice, functions: CompiledFunctions) -> None:
        self.checked = device
        self.kind = _constant(device.kind, device, functions)
        self.record = _constant(device.record, device, functions)
        quota = FieldsProgram(device.quota, device, functions)
        lock = FieldsProgram(device.lock, device, functions)
        handshake = FieldsProgram(device.handshake, device, functions)
        frame = quota.section.frame()
        self.quota_names = QuotaNames(
            quota.text("memory", frame), quota.text("cores", frame), quota.integer("factor", frame, 1)
        )
        self.lock = self.handshake = None
        if lock.has("key"):
            frame = lock.section.frame()
            seconds, is_owned = lock.integer("seconds", frame, 300), lock.flag("owned", frame)
            self.lock = NodeLock(lock.text("key", frame), seconds, is_owned)
        if handshake.has("key"):
            frame = handshake.section.frame()
            key, resource = handshake.text("key", frame), handshake.text("resource", frame)
            self.handshake = Handshake(key, resource, handshake.integer("seconds", frame, 60))
        self.inventory = InventoryProgram(device, self.kind, functions)
        self.admit = AdmitProgram(device, functions)
        self._request = FieldsProgram(device.request, device, functions)
        self.fitting = FitProgram(device, self.kind, functions)
        self._order = Section(device.order.scope, device, functions)
        self._keys = [
            (self._order.compile(key.value), key.descending, key.value.span) for key in device.order.keys
        ]
        read = {part.slot for key in device.order.keys for part in walk(key.value) if isinstance(part, Var)}
        self._is_shared_order = device.order.scope["devices"].slot not in read
        self._orders_by_fullness = device.order.scope["fullness"].slot in read
        self._value_section = self._value = None
        if device.value is not None:
            self._value_section = Section(device.value.scope, device, functions)
            self._value = self._value_section.compile(device.value.value)
            self._value_span = device.value.value.span
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

    @cached_property
    def facts(self) -> Facts:
        """The facts that decide about a node, but for identity tests and the fields of choosers."""
        value = self._value_section.opened if self._value_section is not None else ()
        return Facts.read_by((*self.fitting.read, *self._order.opened, *value))

    @cached_property
    def _order_facts(self) -> Facts:
        return Facts.read_by(self._order.opened)

    @property
    def orders_by_shape(self) -> bool:
        """Whether `order by` tells cards of one shape apart by no more than their place on the node."""
        return self._is_shared_order and not self._order_facts

    @property
    def has_value(self) -> bool:
        """Whether a part of the score depends on the chosen cards."""
        return self._value is not None

    def annotations_read(self, view: str) -> frozenset[str] | None:
        """Return the annotations of a `DevicePod` or `DeviceNode` that decide which cards of a node a pod
        gets; None if any may.
        """
        # The inventory has no pod.
        sections = [*self.fitting.sections, self.inventory.section, self._order]
        if self._value_section is not None:
            sections.append(self._value_section)
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

    def ordered(self, cards: Sequence[Card], sort_keys: Sequence[tuple[Any, ...]]) -> list[Card]:
        """Return cards in the order of `order by`, by their `sort_keys`; equal ones stay as they are."""
        places = list(range(len(cards)))
        for at, (_, is_descending, _) in reversed(tuple(enumerate(self._keys))):
            column = [keys[at] for keys in sort_keys]
            places.sort(key=column.__getitem__, reverse=is_descending)
        return [cards[place] for place in places]

    def sort_keys(
        self,
        cards: Iterable[Card],
        node_cards: tuple[Card, ...],
        pod: DevicePod,
        node: DeviceNode,
        policy: Policy,
        request: DeviceRequest,
        asked: Iterable[DeviceRequest],
        memo: CardMemo,
    ) -> list[tuple[Any, ...]]:
        """Return the keys of `order by` of each card; EvalError if one has no value.

        `node_cards` are those of the node before the pod, in its own order. `asked` are all requests of the
        container. `memo` is that of the pod's signature.
        """
        facts = self._order_facts
        known = memo.sort_keys(facts.of_node(node), (request, *asked))
        frame: Frame | None = None
        found: list[tuple[Any, ...]] = []
        for card in cards:
            key = facts.key(card)
            keys = known.get(key) if self._is_shared_order else None
            if keys is None:
                if frame is None:
                    frame = self._order.frame(
                        pod=pod, node=node, policy=policy, request=request, devices=node_cards
                    )
                fullness = card_score(card, asked, policy.weights) if self._orders_by_fullness else 0.0
                self._order.fill(frame, device=card, fullness=float(fullness))
                self._order.rewind(frame)
                keys = self._sort_keys(frame)
                if self._is_shared_order:
                    known[key] = keys
            found.append(keys)
        return found

    def _sort_keys(self, frame: Frame) -> tuple[Any, ...]:
        found = []
        for key, _, span in self._keys:
            try:
                found.append(key(frame))
            except EvalError as error:
                raise located(error, span) from error
        return tuple(found)

    def value(
        self,
        pod: DevicePod,
        node: DeviceNode,
        policy: Policy,
        cards: tuple[Card, ...],
        allocation: Allocation,
    ) -> np.float32:
        """Return the part of the allocation in the node's score; `cards` are those before it."""
        if self._value is None or self._value_section is None:
            return np.float32(0)
        frame = self._value_section.frame(
            pod=pod, node=node, policy=policy, devices=cards, allocation=allocation
        )
        try:
            return np.float32(self._value(frame))
        except EvalError as error:
            raise located(error, self._value_span) from error

    def annotations(
        self, pod: DevicePod, node: DeviceNode, policy: Policy, allocation: Allocation, now: int
    ) -> dict[str, str]:
        """Return the annotations of the pod; `now` is in nanoseconds since the Unix epoch.

        EvalError, with the place, if one of the device's expressions fails.
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


def _constant(expr: TypedExpr, device: CheckedDevice, functions: CompiledFunctions) -> str:
    section = Section({}, device, functions)
    text = section.compile(expr)
    return str(text(section.frame()))
