"""The idle cards of a node, from its annotations and its capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.codec import shown
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.eval.scalar import Frame
from kdsl.eval.values import EvalError
from kdsl.plan.devices.device_error import DeviceError
from kdsl.plan.devices.reads import keys_read, needs
from kdsl.plan.devices.registration import Registration
from kdsl.plan.devices.section import DeviceSource, kind_word

MAPS: Final = ("annotations", "capacity", "labels")


class InventoryProgram:
    """A compiled `inventory`."""

    def __init__(self, source: DeviceSource) -> None:
        checked = source.device.inventory
        self._kind = source.kind
        self.section = source.section(checked.fields.scope)
        self._rows = self.section.compile(checked.rows)
        self._row = checked.variable.slot
        self._fields = source.fields(checked.fields, self.section)
        self._registration = Registration(checked, self.section.exprs)
        # Values that do not depend on the row are computed once for all rows.
        lets = {let.variable.slot: let for let in checked.fields.lets}
        self.section.keep([slot for slot, let in lets.items() if self._row not in needs([let.value], lets)])
        # A probe must get exactly the conditions that are evaluated on nodes.
        self.needed = self._keys_needed() if source.functions.probe is None else None
        """The keys of which every node with cards has one, in one of its `MAPS`; None if there are none."""

    def _keys_needed(self) -> frozenset[str] | None:
        needed: set[str] = set()
        for name in (*MAPS, "name"):
            keys = keys_read(self.section.exprs[:1], "DeviceNode", name)
            if keys is None:
                return None
            needed |= keys
        try:
            is_empty = not self._rows(self.section.frame(node=DeviceNode("")))
        except EvalError:
            return None
        return frozenset(needed) if is_empty else None

    def cards(self, node: DeviceNode) -> tuple[Card, ...]:
        """Return the idle cards of a node; DeviceError if its registration is unreadable."""
        frame = self.section.frame(node=node)
        cards: list[Card] = []
        try:
            rows = self._rows(frame)
            if not isinstance(rows, (tuple, list)):
                raise EvalError(f"the inventory must be a list, not {kind_word(rows)}")
            for row in rows:
                self.section.fill(frame)
                frame[self._row] = row
                cards.append(self._card(frame))
        except EvalError as error:
            raise self._registration.explained(error, node, frame, len(cards) + 1) from error
        names = Counter(card.id for card in cards)
        if len(names) < len(cards):
            name, count = names.most_common(1)[0]
            raise self.refused(f"card `{shown(name)}` is registered {count} times", node)
        return tuple(cards)

    def refused(self, problem: str, node: DeviceNode) -> DeviceError:
        """Return the error that the cards of a node are together."""
        return self._registration.explained(EvalError(problem), node, self.section.frame(node=node))

    def _card(self, frame: Frame) -> Card:
        fields = self._fields
        attributes = fields.value("attributes", frame, {})
        if not isinstance(attributes, Mapping):
            raise fields.error("attributes", f"must be a map, not {kind_word(attributes)}")
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
            healthy=fields.flag("healthy", frame),
            attributes=attributes,
        )
