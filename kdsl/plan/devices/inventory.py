"""The cards of a node, as its annotations and its capacity have them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final

from kdsl.check.model.devices import CheckedDevice
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.codec import shown
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.eval.scalar import Frame
from kdsl.eval.values import EvalError, kind_of
from kdsl.plan.compile.scope import Functions
from kdsl.plan.devices.reads import needs
from kdsl.plan.devices.section import FieldsProgram, Section
from kdsl.plan.devices.watched import Seen, WatchedNode

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
        # What does not depend on the row is computed once for all.
        lets = {let.variable.slot: let for let in checked.fields.lets}
        self._section.keep([slot for slot, let in lets.items() if self._row not in needs(let.value, lets)])
        self._known: deque[tuple[Seen, tuple[Card, ...]]] = deque(maxlen=MAX_KNOWN)

    def cards(self, node: DeviceNode) -> tuple[Card, ...]:
        """Return the idle cards of a node; EvalError where it registers what cannot be read."""
        return self.read(node)[0]

    def read(self, node: DeviceNode) -> tuple[tuple[Card, ...], Seen | None]:
        """Return the idle cards of a node and what was read of it: others of which the same would be read
        have the same cards. EvalError where it registers what cannot be read.
        """
        for seen, cards in tuple(self._known):
            if seen.holds(node):
                return cards, seen
        watched = WatchedNode(node)
        cards = self._cards(watched)
        seen_now = watched.seen()
        if seen_now is not None:
            self._known.append((seen_now, cards))
        return cards, seen_now

    def _cards(self, node: WatchedNode) -> tuple[Card, ...]:
        frame = self._section.frame(node=node)
        rows = self._rows(frame)
        if not isinstance(rows, (tuple, list)):
            raise EvalError(f"the inventory must be a list, not {kind_of(rows)}")
        cards = []
        for row in rows:
            self._section.fill(frame)
            frame[self._row] = row
            cards.append(self._card(frame))
        names = Counter(card.id for card in cards)
        if len(names) < len(cards):
            name, count = names.most_common(1)[0]
            raise EvalError(f"card `{shown(name)}` is registered {count} times")
        return tuple(cards)

    def _card(self, frame: Frame) -> Card:
        fields = self._fields
        attributes = fields.value("attributes", frame, {})
        if not isinstance(attributes, Mapping):
            raise EvalError(f"`attributes` must be a map, not {kind_of(attributes)}")
        return Card(
            id=fields.word("id", frame),
            kind=self._kind,
            type=fields.text("type", frame, self._kind),
            slots=fields.amount("slots", frame),
            memory=fields.amount("memory", frame),
            cores=fields.amount("cores", frame),
            index=fields.amount("index", frame),
            numa=fields.integer("numa", frame),
            mode=fields.text("mode", frame),
            healthy=fields.flag("healthy", frame, True),
            attributes=attributes,
        )
