"""The cards of a node, as its annotations and its capacity have them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from kdsl.check.devices.model import CheckedDevice
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.plan.devices.section import FieldsProgram, Section
from kdsl.plan.devices.watched import Seen, WatchedNode
from kdsl.plan.scalar import Frame
from kdsl.plan.scope import Functions
from kdsl.plan.values import EvalError, kind_of

MAX_KNOWN: Final = 4
"""How many nodes are remembered, so that others of which the same would be read need not be read."""


class InventoryProgram:
    """A compiled `inventory`."""

    def __init__(self, device: CheckedDevice, kind: str, functions: Functions) -> None:
        checked = device.inventory
        self._kind = kind
        self._section = Section(checked.fields.scope, device, functions)
        self._rows = self._section.compile(checked.rows)
        self._row = checked.variable.slot
        self._fields = FieldsProgram(checked.fields, device, functions, self._section)
        self._known: deque[tuple[Seen, tuple[Card, ...]]] = deque(maxlen=MAX_KNOWN)

    def cards(self, node: DeviceNode) -> tuple[Card, ...]:
        """Return the idle cards of a node; EvalError where it registers what cannot be read.

        Most nodes register nothing of most kinds: what was read of such a node tells that others are alike.
        """
        for seen, cards in tuple(self._known):
            if seen.holds(node):
                return cards
        watched = WatchedNode(node)
        cards = self._read(watched)
        seen_now = watched.seen()
        if seen_now is not None:
            self._known.append((seen_now, cards))
        return cards

    def _read(self, node: WatchedNode) -> tuple[Card, ...]:
        frame = self._section.frame(node=node)
        rows = self._rows(frame)
        if not isinstance(rows, (tuple, list)):
            raise EvalError(f"the inventory must be a list, not {kind_of(rows)}")
        cards = []
        for row in rows:
            self._section.fill(frame)
            frame[self._row] = row
            cards.append(self._card(frame))
        return tuple(cards)

    def _card(self, frame: Frame) -> Card:
        fields = self._fields
        attributes = fields.value("attributes", frame, {})
        if not isinstance(attributes, Mapping):
            raise EvalError(f"`attributes` must be a map, not {kind_of(attributes)}")
        return Card(
            id=fields.text("id", frame),
            kind=self._kind,
            type=fields.text("type", frame, self._kind),
            slots=fields.integer("slots", frame),
            memory=fields.integer("memory", frame),
            cores=fields.integer("cores", frame),
            index=fields.integer("index", frame),
            numa=fields.integer("numa", frame),
            mode=fields.text("mode", frame),
            healthy=fields.flag("healthy", frame, True),
            attributes=attributes,
        )
