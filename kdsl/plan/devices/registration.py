"""Errors of an `inventory` in the words of the node's registration: its annotations, its entries and their
keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kdsl.check.model.devices import CheckedInventory
from kdsl.check.model.typed import CallOf, Const, KeyOf, TypedExpr, Var
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.frame import is_failure
from kdsl.eval.values import EvalError
from kdsl.plan.devices.device_error import DeviceError, located
from kdsl.plan.devices.reads import keys_read, needs, parts

_ROWS: Final = ""
"""The name of the rows among those of fields."""


class Registration:
    """Explains the errors of an inventory; `compiled` are its rows, `let`s and fields, functions inlined."""

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
