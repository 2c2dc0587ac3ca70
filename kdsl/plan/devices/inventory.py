"""The idle cards of a node, from its annotations and its capacity, and errors in the words of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kdsl.check.model.devices import CheckedInventory
from kdsl.check.model.typed import CallOf, Const, KeyOf, TypedExpr, Var
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.codec import shown
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.frame import is_failure
from kdsl.eval.values import EvalError
from kdsl.plan.devices.device_error import DeviceError, located
from kdsl.plan.devices.reads import keys_read, needs, parts
from kdsl.plan.devices.section import DeviceSource, kind_word

MAPS: Final = ("annotations", "capacity", "labels")
_ROWS: Final = ""
"""The name of the rows among those of fields."""


class InventoryProgram:
    """A compiled `inventory`."""

    def __init__(self, source: DeviceSource) -> None:
        checked = source.device.inventory
        self._kind = source.kind
        self.section = source.section(checked.fields.scope)
        self._rows = self.section.compile(checked.rows)
        self._row = checked.variable.slot
        self._fields = source.fields(checked.fields, self.section)
        self._registration = _Registration(checked, self.section.exprs)
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


class _Registration:
    """The words for errors of an inventory, from the node's registration: its annotations, its entries and
    their keys. `compiled` are its rows, `let`s and fields, functions inlined.
    """

    def __init__(self, checked: CheckedInventory, compiled: Sequence[TypedExpr]) -> None:
        lets = checked.fields.lets
        self._row = checked.variable.slot
        self._lets = {let.variable.slot: let for let in lets}
        self._written: Mapping[str, TypedExpr] = {_ROWS: checked.rows, **checked.fields.values}
        rows, others = compiled[:1], compiled[1:]
        self._of_lets = dict(zip(self._lets, others, strict=False))
        self._of_fields = dict(zip(self._written, [*rows, *others[len(lets) :]], strict=True))

    def explained(self, error: EvalError, node: DeviceNode, frame: Frame, entry: int = 0) -> DeviceError:
        """Return the error with its place. Its message names the annotations of the node that were read, the
        number of the entry from 1, and the key of the entry if that has another name than the field.
        """
        field = error.field if isinstance(error, DeviceError) else _ROWS
        written, compiled = self._written[field], self._of_fields[field]
        slots = needs([written], self._lets)
        # A `let` that failed narrows the annotations down to its own.
        failed = next((slot for slot in self._lets if slot in slots and is_failure(frame[slot])), None)
        if failed is not None:
            compiled, slots = self._of_lets[failed], needs([self._lets[failed].value], self._lets)
        read = [compiled, *(expr for slot, expr in self._of_lets.items() if slot in slots)]
        is_of_entry = self._row in slots
        keys = keys_read(
            [*read, self._of_fields[_ROWS]] if is_of_entry else read, "DeviceNode", "annotations"
        )
        names = sorted((keys or frozenset()) & node.annotations.keys())
        about = f"annotation{'s' if len(names) > 1 else ''} {', '.join(names)}: " if names else ""
        about += f"entry {entry}: " if is_of_entry else ""
        sources = set(self._entry_keys(compiled))
        source = sources.pop() if len(sources) == 1 else ""
        origin = f" (from `{source}`)" if source and source not in str(error) else ""
        site = located(error, written.span).site
        return DeviceError(f"{about}{error}{origin}", error.code, site, field)

    def _entry_keys(self, expr: TypedExpr) -> Iterator[str]:
        """Yield the constant keys that an expression reads of an entry."""
        for part in parts(expr):
            match part:
                case CallOf(function="_[_]" | "_[?_]", args=(Var(slot=slot), Const(value=str(key)))):
                    pass
                case KeyOf(operand=Var(slot=slot), key=key):
                    pass
                case _:
                    continue
            if slot == self._row:
                yield key
